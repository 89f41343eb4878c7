#include "cli/offline/learned.h"

#include <math.h>
#include <stdio.h>

#include "base/text/json.h"
#include "estimate/model/model.h"

/* Effects by how much readings differ for them: standard deviations of ln speed, or of ln slowdown.
 */
struct effect_name {
    enum hyper_at at;
    const char *name;
};
static const struct effect_name alone[] = {
    { ALONE_SITE, "site" },
    { ALONE_TYPE, "gpu_type" },
    { ALONE_FAMILY, "family" },
    { ALONE_WORKLOAD, "workload" },
    { ALONE_TYPE_FAMILY, "family_on_type" },
    { ALONE_CELL, "workload_on_type" },
};
static const struct effect_name beside[] = {
    { BESIDE_SITE, "site" },
    { BESIDE_TYPE, "gpu_type" },
    { BESIDE_FAMILY, "family" },
    { BESIDE_BY_FAMILY, "neighbour_family" },
    { BESIDE_WORKLOAD, "workload" },
    { BESIDE_BY_WORKLOAD, "neighbour" },
    { BESIDE_FAMILIES, "both_families" },
    { BESIDE_CELL, "both_workloads" },
};
enum { N_ALONE = sizeof alone / sizeof *alone, N_BESIDE = sizeof beside / sizeof *beside };

static double sd_of(const struct model *m, enum learned what, const struct effect_name *e)
{
    return exp(m->hyper[what].at[e->at] / 2);
}

static void print_effects(const struct model *m, enum learned what, const char *title,
                          const struct effect_name *list, int n)
{
    printf("%s:", title);
    for (int i = 0; i < n; i++)
        printf("%s %s %.3f", i ? "," : "", list[i].name, sd_of(m, what, &list[i]));
    putchar('\n');
}

/* ---- who foresees campaigns left out ---- */

static void print_errors(const double *error)
{
    if (isnan(error[CONTEST_HIERARCHICAL]))
        printf("  %6s %7s %-7s", "-", "-", "-");
    else
        printf("  %6.3f %7.3f %-7s", error[CONTEST_HIERARCHICAL], error[CONTEST_NETWORK],
               error[CONTEST_NETWORK] < error[CONTEST_HIERARCHICAL] ? "network" : "model");
}

static void print_contests(const struct model *m)
{
    if (m->n_contests == 0)
        return;
    printf("campaigns left out, foreseen by the model and by the network with so many of their "
           "cells known:\n"
           "%-30s  %-22s  %s\n"
           "%-24s %5s  %6s %7s %-7s  %6s %7s %s\n",
           "", "speeds alone, |ln|", "slowdowns", "campaign", "cells", "model", "network", "better",
           "model", "network", "better");
    for (int i = 0; i < m->n_contests; i++) {
        printf("%-24.24s %5d", m->contests[i].campaign, m->contests[i].n_cells);
        print_errors(m->contests[i].alone);
        print_errors(m->contests[i].slowdown);
        putchar('\n');
    }
}

static json_t *errors_json(const double *error)
{
    return json_pack("{s:o, s:o}", "hierarchical", json_number_or_null(error[CONTEST_HIERARCHICAL]),
                     "network", json_number_or_null(error[CONTEST_NETWORK]));
}

static json_t *contests_json(const struct model *m)
{
    json_t *list = json_array();

    for (int i = 0; i < m->n_contests; i++) {
        const struct contest *c = &m->contests[i];
        json_array_append_new(list,
                              json_pack("{s:s, s:i, s:o, s:o}", "campaign", c->campaign, "cells",
                                        c->n_cells, "isolated_abs_ln", errors_json(c->alone),
                                        "slowdown_mae", errors_json(c->slowdown)));
    }
    return list;
}

void learned_print(const struct model *m, bool with_contests)
{
    printf("%s (arithmetic of %s)\n", m->about, m->blas);
    printf("learned from %d cells alone, %d beside a neighbour, %d with watts: %d workloads of %d "
           "families in %d campaign%s\n",
           m->n_alone, m->n_pairs, m->n_watts, m->n_workloads, m->n_families, m->n_campaigns,
           m->n_campaigns == 1 ? "" : "s");
    printf("how much speeds and watts differ for each, sd of the logarithm:\n");
    print_effects(m, LEARN_SPEEDS, "  alone", alone, N_ALONE);
    print_effects(m, LEARN_SPEEDS, "  slowdown", beside, N_BESIDE);
    print_effects(m, LEARN_WATTS, "  watts", alone, N_ALONE);
    if (with_contests)
        print_contests(m);
    if (isnan(model_error(m)))
        return;
    printf("families never seen here: wrong by %.3f of ln speed; intervals are widened %.2f times "
           "alone, %.2f times beside a neighbour\n",
           model_error(m), m->scale[LEARN_SPEEDS].alone, m->scale[LEARN_SPEEDS].beside);
}

static json_t *effects_json(const struct model *m, enum learned what,
                            const struct effect_name *list, int n)
{
    json_t *o = json_object();

    for (int i = 0; i < n; i++)
        json_object_set_new(o, list[i].name, json_real(sd_of(m, what, &list[i])));
    return o;
}

json_t *learned_json(const struct model *m)
{
    const struct hyper_scale *s = &m->scale[LEARN_SPEEDS];

    return json_pack(
        "{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:o, s:f, s:f, s:{s:o, s:o, s:o}, s:o}", "about",
        m->about, "blas", m->blas, "campaigns", m->n_campaigns, "alone", m->n_alone, "pairs",
        m->n_pairs, "watts", m->n_watts, "workloads", m->n_workloads, "families", m->n_families,
        "error", json_number_or_null(model_error(m)), "widened_alone", s->alone, "widened_beside",
        s->beside, "effects", "alone", effects_json(m, LEARN_SPEEDS, alone, N_ALONE), "slowdown",
        effects_json(m, LEARN_SPEEDS, beside, N_BESIDE), "watts",
        effects_json(m, LEARN_WATTS, alone, N_ALONE), "contests", contests_json(m));
}
