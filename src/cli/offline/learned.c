#include "cli/offline/learned.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/text/json.h"
#include "estimate/p1/p1.h"
#include "refine/model.h"
#include "refine/p2.h"

/* ---- as a table ---- */

/* An error of a member; one that was not trained has none. */
static void print_error(double x)
{
    if (x > 0)
        printf(" %8.3f", x);
    else
        printf(" %8s", "-");
}

static void print_member(const struct p1 *p, enum p1_member m)
{
    struct p1_score s = p1_score_of(p, m);

    printf("%-16s", p1_member_names[m]);
    for (int r = 0; r < REGIMES; r++) {
        print_error(s.alone[r]);
        print_error(s.pair[r]);
        for (int is_pair = 0; is_pair < 2 && m != P1_ENSEMBLE; is_pair++)
            printf(" %7.2f", p1_weight_of(p, m, (enum regime)r, is_pair));
        if (m == P1_ENSEMBLE && r == 0)
            printf(" %7s %7s", "", "");
    }
    putchar('\n');
}

static void print_contest(const struct p2 *p)
{
    struct p2_contest c = p2_contest(p);

    if (isnan(c.closed_form) || isnan(c.network)) {
        printf("P2: the closed form; too few families (%d) for a contest\n", c.n_families);
        return;
    }
    printf("P2: %s is champion: closed form %.4f, network %.4f (%+.1f %%), mean error of ln speed "
           "on %d families held out\n",
           c.is_promoted ? "the network" : "the closed form", c.closed_form, c.network,
           100 * (c.network / c.closed_form - 1), c.n_families);
}

void learned_print(const struct model *m)
{
    printf("%s (arithmetic of %s)\n", m->about, m->blas);
    printf("learned from %d cells alone, %d beside a neighbour, %d with watts: %d workloads of %d "
           "families\n",
           m->n_alone, m->n_pairs, m->n_watts, m->n_workloads, m->n_families);
    printf("\n%-16s %-33s %s\n", "P1", "workload held out", "family held out");
    printf("%-16s %8s %8s %7s %7s %8s %8s %7s %7s\n", "member", "alone", "beside", "weight",
           "weight", "alone", "beside", "weight", "weight");
    for (int i = 0; i < P1_MEMBERS; i++)
        print_member(m->p1, (enum p1_member)i);
    printf("errors: root mean square of ln speed alone and of ln r beside a neighbour; weights: "
           "for each\n\n");
    print_contest(m->p2);
}

/* ---- as JSON ---- */

static json_t *error_json(double x)
{
    return x > 0 ? json_real(x) : json_null();
}

static json_t *member_json(const struct p1 *p, enum p1_member m)
{
    static const char *const regimes[REGIMES] = { "workload_out", "family_out" };
    struct p1_score s = p1_score_of(p, m);
    json_t *o = json_pack("{s:s}", "name", p1_member_names[m]);
    bool is_member = m != P1_ENSEMBLE;

    for (int r = 0; r < REGIMES; r++)
        json_object_set_new(
            o, regimes[r],
            json_pack("{s:o, s:o, s:o, s:o}", "alone_error", error_json(s.alone[r]), "pair_error",
                      error_json(s.pair[r]), "alone_weight",
                      is_member ? json_number_or_null(p1_weight_of(p, m, (enum regime)r, false))
                                : json_null(),
                      "pair_weight",
                      is_member ? json_number_or_null(p1_weight_of(p, m, (enum regime)r, true))
                                : json_null()));
    return o;
}

json_t *learned_json(const struct model *m)
{
    struct p2_contest c = p2_contest(m->p2);
    json_t *members = json_array();

    for (int i = 0; i < P1_MEMBERS; i++)
        json_array_append_new(members, member_json(m->p1, (enum p1_member)i));
    return json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:o, s:o, s:{s:s, s:o, s:o, s:i}}",
                     "about", m->about, "blas", m->blas, "alone", m->n_alone, "pairs", m->n_pairs,
                     "watts", m->n_watts, "workloads", m->n_workloads, "families", m->n_families,
                     "error", json_number_or_null(model_error(m)), "p1", members, "p2", "champion",
                     c.is_promoted ? "network" : "closed form", "closed_form",
                     json_number_or_null(c.closed_form), "network", json_number_or_null(c.network),
                     "families", c.n_families);
}
