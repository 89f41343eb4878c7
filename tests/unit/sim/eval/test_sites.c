/* Campaigns held out whole: what is learned elsewhere and on the spot, and that nothing leaks. On
 * four campaigns, two of which are of the same jobs, of ten workloads in five families on two types.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "catalog/catalog.h"
#include "estimate/site/site.h"
#include "sim/eval/eval.h"
#include "sim/eval/rivals.h"
#include "unit/suite.h"

enum { N_FAMILIES = 5, IN_FAMILY = 2, N_WORKLOADS = N_FAMILIES * IN_FAMILY, N_TYPES = 2 };
enum { OWN, NORTH, NORTH_AGAIN, SOUTH, N_CAMPAIGNS };

static void name_all(struct catalog *c)
{
    static const char *const types[N_TYPES] = { "k80", "v100" };
    static const char *const campaigns[N_CAMPAIGNS] = { "site", "north", "north-again", "south" };
    struct err e;
    int index;

    catalog_init(c);
    for (int g = 0; g < N_TYPES; g++)
        ck_assert_int_eq(catalog_add_type(c, gpu_type_builtin(types[g]), &index, &e), 0);
    for (int i = 1; i < N_CAMPAIGNS; i++)
        ck_assert_int_eq(catalog_add_campaign(c, campaigns[i], SHARING_UNKNOWN, &index, &e), 0);
    for (int i = 0; i < N_WORKLOADS; i++) {
        char name[16] = "a0", family[2] = "a";
        struct workload w;

        name[0] = family[0] = (char)('a' + i / IN_FAMILY);
        name[1] = (char)('0' + i % IN_FAMILY);
        workload_init(&w, name);
        w.family = family;
        w.batch = 8 << (i % IN_FAMILY);
        w.flop_per_sample = 1e9 * (1 + i / IN_FAMILY);
        w.bytes_per_sample = 1e7 * (1 + i / IN_FAMILY);
        w.kernels_per_step = 100;
        w.params = 1e6 * (i + 1);
        ck_assert_int_eq(catalog_add_workload(c, &w, &index, &e), 0);
    }
}

/* What nobody may know while it is held out: measurements of a campaign (-1: of all), and there of
 * a family (-1: of all), are other than usual by a factor, which differs from pair to pair.
 */
struct twist {
    int campaign, family;
    double factor;
};
static const struct twist none = { -1, -1, 1 };

static void record(struct catalog *c, int campaign, int w, int g, int n, double speed)
{
    struct measurement m = {
        .key = { .workload = w, .gpu_type = g, .neighbour = n, .n_gpus = 1, .campaign = campaign },
        .fits = true,
        .throughput = speed,
        .watts = n < 0 ? 100 + 10 * w + 40 * g : (double)NAN,
        .noise = 0.01
    };
    struct err e;

    ck_assert_int_eq(catalog_record(c, &m, 0, &e), 0);
}

/* Families differ by a constant, and so do campaigns; in the south everybody slows everybody by
 * half, elsewhere by a tenth.
 */
static void measure(struct catalog *c, struct twist t)
{
    struct site s;

    name_all(c);
    site_init(&s, c->types, c->n_types);
    for (int i = 0; i < N_WORKLOADS; i++)
        site_add(&s, &c->workloads[i], c->types);
    for (int i = 1; i < N_CAMPAIGNS; i++)
        for (int at = 0; at < N_TYPES * N_WORKLOADS * (N_WORKLOADS + 1); at++) {
            int w = at % N_WORKLOADS, n = at / N_WORKLOADS % (N_WORKLOADS + 1) - 1;
            int g = at / N_WORKLOADS / (N_WORKLOADS + 1);
            double ln = (double)site_on(&s, w, g)->ln_reference + 0.4 * ((w / IN_FAMILY) % 3 - 1) +
                        0.3 * (i - 2);
            double r = n < 0 ? 1 : i == SOUTH ? 0.5 : 0.9;
            bool is_odd = (t.campaign == i) &&
                          (t.family < 0 || w / IN_FAMILY == t.family || n / IN_FAMILY == t.family);
            record(c, i, w, g, n, exp(ln) * r * (is_odd ? pow(t.factor, 1 + 0.1 * n) : 1));
        }
    site_release(&s);
}

static struct eval_options usual(enum eval_split split, const int *n, int n_n, const int *k,
                                 int n_k)
{
    return (struct eval_options){
        .split = split,
        .campaign = SOUTH,
        .n = n,
        .n_n = n_n,
        .k = k,
        .n_k = n_k,
        .n_sequences = 2,
        .seed = 3,
        .n_threads = 1,
        .keeps_predictions = true,
    };
}

static void evaluate(struct twist t, const struct eval_options *o, struct eval_result *out)
{
    struct catalog c;
    struct err e;

    measure(&c, t);
    int rc = eval_run(&c, o, out, &e);
    ck_assert_msg(rc == 0, "%s", rc < 0 ? e.text : "");
    catalog_release(&c);
}

static const double *figures(const struct eval_result *r, int campaign, int n, int k,
                             const char *method)
{
    for (int i = 0; i < r->n_rows; i++) {
        const struct eval_row *row = &r->rows[i];
        if (row->campaign == campaign && row->n == n && row->k == k &&
            strcmp(row->method, method) == 0)
            return row->figure;
    }
    ck_abort_msg("no row: campaign %d, n %d, k %d, %s", campaign, n, k, method);
    return NULL;
}

/* ---- what is learned ---- */

TEST(constants_of_sites_and_families_are_learned)
{
    static const int n[] = { 0, 24 }, k[] = { 0, 1 };
    struct eval_options o = usual(EVAL_SITE, n, 2, k, 2);
    struct eval_result r;

    evaluate(none, &o, &r);
    ck_assert_int_eq(r.n_folds, N_FAMILIES);
    ck_assert_int_eq(r.n_workloads, N_WORKLOADS);
    ck_assert_int_eq(r.n_rows, 2 * 2 * 7);
    for (int i = 0; i < r.n_rows; i++)
        ck_assert_int_eq(r.rows[i].campaign, SOUTH);
    const double *at_first = figures(&r, SOUTH, 0, 0, "hierarchical");
    const double *at_home = figures(&r, SOUTH, 24, 0, "hierarchical");
    const double *met = figures(&r, SOUTH, 24, 1, "hierarchical");
    ck_assert_double_gt(at_first[EVAL_SLOWDOWN_MAE], 0.2);
    ck_assert_double_lt(at_home[EVAL_SLOWDOWN_MAE], 0.05);
    ck_assert_double_gt(at_home[EVAL_ISOLATED_ABS_LN], 0.2);
    ck_assert_double_lt(met[EVAL_ISOLATED_ABS_LN], 0.15);
    ck_assert_double_ge(at_home[EVAL_COVERAGE90_SLOWDOWN], 0.9);
    ck_assert_double_gt(at_home[EVAL_WATTS_MAPE], 0);
    ck_assert_double_gt(at_home[EVAL_JOULES_MAPE], 0);
    ck_assert_double_eq_tol(figures(&r, SOUTH, 24, 1, "none")[EVAL_SLOWDOWN_MAE], 0.5, 1e-6);
    ck_assert(isnan(figures(&r, SOUTH, 24, 1, "none")[EVAL_ISOLATED_MAPE]));
    ck_assert(isnan(figures(&r, SOUTH, 24, 1, "roofline")[EVAL_PAIR_MAPE]));
    ck_assert_double_lt(figures(&r, SOUTH, 24, 0, "mean")[EVAL_SLOWDOWN_MAE], 0.06);
    ck_assert_double_lt(figures(&r, SOUTH, 24, 0, "ridge")[EVAL_SLOWDOWN_MAE], 0.06);
    ck_assert_double_lt(figures(&r, SOUTH, 24, 0, "network")[EVAL_SLOWDOWN_MAE], 0.06);
    ck_assert_double_gt(figures(&r, SOUTH, 0, 0, "network")[EVAL_SLOWDOWN_MAE], 0.06);
    const double *both = figures(&r, SOUTH, 24, 1, "gogh");
    ck_assert(both[EVAL_ISOLATED_ABS_LN] == met[EVAL_ISOLATED_ABS_LN]);
    ck_assert(both[EVAL_WATTS_MAPE] == met[EVAL_WATTS_MAPE]);
    ck_assert_double_lt(both[EVAL_SLOWDOWN_MAE], 0.05);
    eval_release(&r);
}

TEST(each_campaign_has_rows_and_all_have_a_mean)
{
    static const int n[] = { 0, 6 }, k[] = { 0 };
    struct eval_options o = usual(EVAL_CAMPAIGN, n, 2, k, 1);
    struct eval_result r;

    evaluate(none, &o, &r);
    ck_assert_int_eq(r.n_rows, 4 * 2 * 7);    // the site's own has no cells
    for (int f = 0; f < 2; f++) {
        int figure = f ? EVAL_SLOWDOWN_MAE : EVAL_ISOLATED_MAPE;
        double sum = 0;
        for (int i = NORTH; i < N_CAMPAIGNS; i++)
            sum += figures(&r, i, 6, 0, "gogh")[figure];
        ck_assert_double_eq_tol(figures(&r, -1, 6, 0, "gogh")[figure], sum / 3, 1e-12);
    }
    eval_release(&r);
}

TEST(kin_share_a_name_up_to_the_dash)
{
    ck_assert(eval_are_kin("gavel", "gavel-oracle"));
    ck_assert(eval_are_kin("gavel-physical", "gavel-oracle"));
    ck_assert(!eval_are_kin("gavel", "gavels"));
    ck_assert(!eval_are_kin("miso", "parva"));
}

/* ---- what is revealed ---- */

static void count(const struct eval_result *r, int w, int sequence, int n, int k,
                  int count[EVAL_QUANTITIES])
{
    memset(count, 0, EVAL_QUANTITIES * sizeof *count);
    for (int i = 0; i < r->n_predictions; i++) {
        const struct eval_prediction *p = &r->predictions[i];
        if (p->workload == w && p->sequence == sequence && p->n == n && p->k == k &&
            strcmp(p->method, "gogh") == 0)
            count[p->quantity]++;
    }
}

/* Cells that were drawn, and that were chosen. */
TIMES(what_is_revealed_is_not_scored, 2)
{
    static const int n[] = { 0, 6 }, k[] = { 0, 3 };
    struct eval_options o = usual(EVAL_SITE, n, 2, k, 2);
    int had[EVAL_QUANTITIES], has[EVAL_QUANTITIES];
    struct eval_result r;

    o.choice = _i ? EVAL_ACTIVE : EVAL_RANDOM;
    evaluate(none, &o, &r);
    for (int w = 0; w < N_WORKLOADS; w++) {
        count(&r, w, 0, 0, 0, had);
        ck_assert_int_eq(had[EVAL_ISOLATED], N_TYPES);
        ck_assert_int_eq(had[EVAL_WATTS], N_TYPES);
        ck_assert_int_eq(had[EVAL_PAIR], N_TYPES * N_WORKLOADS);
        count(&r, w, 1, 0, 0, has);
        ck_assert_int_eq(has[EVAL_ISOLATED], 0);    // before anything is known, one is all
        for (int s = 0; s < 2; s++) {
            count(&r, w, s, 6, 3, has);
            ck_assert_int_eq(has[EVAL_ISOLATED] + has[EVAL_PAIR],
                             had[EVAL_ISOLATED] + had[EVAL_PAIR] - 3);
            ck_assert_int_eq(has[EVAL_PARTNER], has[EVAL_PAIR]);
            ck_assert_int_eq(has[EVAL_WATTS], has[EVAL_ISOLATED]);
        }
    }
    eval_release(&r);
}

static bool same_but_truth(const struct eval_prediction *a, const struct eval_prediction *b)
{
    return a->workload == b->workload && a->sequence == b->sequence && a->n == b->n &&
           a->k == b->k && strcmp(a->method, b->method) == 0 && a->type == b->type &&
           a->neighbour == b->neighbour && a->quantity == b->quantity &&
           memcmp(&a->mean, &b->mean, sizeof a->mean) == 0 &&
           (memcmp(&a->sd, &b->sd, sizeof a->sd) == 0 || (isnan(a->sd) && isnan(b->sd)));
}

/* A family of the site; a campaign before any of its cells is known; one that is its kin. */
TIMES(nothing_of_the_held_out_part_leaks, 3)
{
    static const int n[] = { 0, 12 }, k[] = { 0 };
    static const struct {
        int campaign, n_n;
        struct twist twist;
        bool has_other_truth;
    } cases[] = {
        { SOUTH, 2, { SOUTH, 2, 3 }, true },
        { NORTH, 1, { NORTH, -1, 3 }, true },
        { NORTH, 2, { NORTH_AGAIN, -1, 3 }, false },
    };
    struct eval_options o = usual(EVAL_SITE, n, cases[_i].n_n, k, 1);
    struct twist t = cases[_i].twist;
    struct eval_result r, twisted;
    int n_same = 0, n_truths = 0;

    o.campaign = cases[_i].campaign;
    evaluate(none, &o, &r);
    evaluate(t, &o, &twisted);
    ck_assert_int_eq(r.n_predictions, twisted.n_predictions);
    for (int i = 0; i < r.n_predictions; i++) {
        const struct eval_prediction *p = &r.predictions[i], *q = &twisted.predictions[i];
        if (t.family >= 0 && p->workload / IN_FAMILY != t.family)
            continue;
        ck_assert_msg(same_but_truth(p, q), "%s, n %d, type %d, neighbour %d: %.17g, was %.17g",
                      p->method, p->n, p->type, p->neighbour, q->mean, p->mean);
        n_same++;
        n_truths += fabs(p->truth / q->truth - 1) > 0.1;
    }
    ck_assert_int_gt(n_same, 100);
    ck_assert(cases[_i].has_other_truth ? n_truths > 50 : n_truths == 0);
    eval_release(&r);
    eval_release(&twisted);
}

/* The test above would see it: another campaign does change what is believed. */
TEST(other_campaigns_teach)
{
    static const int n[] = { 0 }, k[] = { 0 };
    struct eval_options o = usual(EVAL_SITE, n, 1, k, 1);
    struct eval_result r, twisted;
    int n_other = 0;

    evaluate(none, &o, &r);
    evaluate((struct twist){ NORTH, -1, 3 }, &o, &twisted);
    for (int i = 0; i < r.n_predictions; i++)
        n_other += fabs(r.predictions[i].mean / twisted.predictions[i].mean - 1) > 0.02;
    ck_assert_int_gt(n_other, 50);
    eval_release(&r);
    eval_release(&twisted);
}

TEST(threads_change_nothing_and_seeds_do)
{
    static const int n[] = { 0, 6 }, k[] = { 0, 2 };
    struct eval_options o = usual(EVAL_CAMPAIGN, n, 2, k, 2);
    struct eval_result one, two, three;

    evaluate(none, &o, &one);
    o.n_threads = 3;
    evaluate(none, &o, &two);
    ck_assert_int_eq(one.n_predictions, two.n_predictions);
    for (int i = 0; i < one.n_predictions; i++)
        ck_assert(same_but_truth(&one.predictions[i], &two.predictions[i]));
    ck_assert_int_eq(one.n_rows, two.n_rows);
    for (int i = 0; i < one.n_rows; i++)
        for (int f = 0; f < EVAL_FIGURES; f++)
            ck_assert(one.rows[i].figure[f] == two.rows[i].figure[f] ||
                      (isnan(one.rows[i].figure[f]) && isnan(two.rows[i].figure[f])));
    o.seed = 4;
    evaluate(none, &o, &three);
    ck_assert(figures(&one, SOUTH, 6, 0, "mean")[EVAL_ISOLATED_MAPE] !=
              figures(&three, SOUTH, 6, 0, "mean")[EVAL_ISOLATED_MAPE]);
    eval_release(&one);
    eval_release(&two);
    eval_release(&three);
}

TIMES(a_campaign_without_cells_is_told, 2)
{
    static const int n[] = { 0 }, k[] = { 0 };
    struct eval_options o = usual(_i ? EVAL_SITE : EVAL_CAMPAIGN, n, 1, k, 1);
    struct eval_result r;
    struct catalog c;
    struct err e;

    name_all(&c);
    ck_assert_int_eq(eval_run(&c, &o, &r, &e), -ENODATA);
    ck_assert_msg(strstr(e.text, _i ? "campaign 'south'" : "no workload") != NULL, "%s", e.text);
    eval_release(&r);
    catalog_release(&c);
}

/* ---- rivals ---- */

/* Readings of one type, and of both: the type's mean is drawn to that of all. */
TEST(means_of_types_are_shrunk_and_ridges_find_a_line)
{
    struct reading list[2 * N_WORKLOADS];
    double ridge[RIVAL_PARTS];
    struct catalog c;
    struct rival r;
    struct arena a;
    struct site s;

    arena_init(&a);
    name_all(&c);
    site_init(&s, c.types, c.n_types);
    for (int i = 0; i < N_WORKLOADS; i++)
        site_add(&s, &c.workloads[i], c.types);
    for (int i = 0; i < 2 * N_WORKLOADS; i++) {
        int g = i % 2, w = i / 2;
        list[i] = (struct reading){ READ_ALONE, g, w, -1, 0, 0.02F };
        list[i].value = 0.5F + 0.3F * site_on(&s, w, g)->x[6] + (g ? 0.4F : 0);
    }
    rival_fit(&a, RIVAL_MEAN, &s, NULL, list, 2 * N_WORKLOADS, &r);
    double low = rival_ask(&r, READ_ALONE, 0, 0, -1), high = rival_ask(&r, READ_ALONE, 1, 3, -1);
    ck_assert_double_eq(low, rival_ask(&r, READ_ALONE, 0, 5, -1));
    ck_assert_double_eq_tol(high - low, 0.4 * N_WORKLOADS / (N_WORKLOADS + 2.0), 0.01);
    ck_assert_double_eq(rival_ask(&r, READ_SLOWDOWN, 0, 0, 1), 0);    // nothing was read
    rival_choose(&a, &s, list, 2 * N_WORKLOADS, ridge);
    rival_fit(&a, RIVAL_RIDGE, &s, ridge, list, 2 * N_WORKLOADS, &r);
    for (int i = 0; i < 2 * N_WORKLOADS; i++)
        ck_assert_double_eq_tol(rival_ask(&r, READ_ALONE, list[i].type, list[i].job, -1),
                                (double)list[i].value, 0.05);
    site_release(&s);
    catalog_release(&c);
    arena_release(&a);
}
