/* The evaluation's protocol: what is held out stays out, what is revealed is not scored, and the
 * figures are what they say. On a catalog of five workloads in three families on two types.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/rng.h"
#include "catalog/catalog.h"
#include "sim/eval/eval.h"
#include "sim/eval/cells.h"
#include "sim/eval/score.h"
#include "unit/sim/small_truth.h"
#include "unit/suite.h"

enum { N_WORKLOADS = 5, N_TYPES = 2 };

static void name_all(struct catalog *c)
{
    static const struct {
        const char *name, *family;
        double batch, flop;
    } table[N_WORKLOADS] = {
        { "a small", "a", 16, 1e9 }, { "a large", "a", 64, 1e9 }, { "b small", "b", 8, 5e9 },
        { "b large", "b", 32, 5e9 }, { "c", "c", 20, 2e8 },
    };
    static const char *const types[N_TYPES] = { "k80", "v100" };
    struct err e;
    int index;

    catalog_init(c);
    for (int g = 0; g < N_TYPES; g++)
        ck_assert_int_eq(catalog_add_type(c, gpu_type_builtin(types[g]), &index, &e), 0);
    for (int i = 0; i < N_WORKLOADS; i++) {
        struct workload w;

        workload_init(&w, table[i].name);
        w.family = table[i].family;
        w.batch = table[i].batch;
        w.flop_per_sample = table[i].flop;
        w.params = 1e6 * (i + 1);
        ck_assert_int_eq(catalog_add_workload(c, &w, &index, &e), 0);
    }
}

/* By what factor the measurements of one workload, or on one type, are other than usual: what
 * nobody may know while that is held out.
 */
struct twist {
    int workload, type;    // -1: none
    double factor;
};

/* Everything was measured, but 'b large' and 'c' do not fit a K80 together. */
static void measure_all(struct catalog *c, struct twist t)
{
    name_all(c);
    for (int w = 0; w < N_WORKLOADS; w++) {
        for (int g = 0; g < N_TYPES; g++) {
            double speed = 1e3 * (1 + 4 * g) / (c->workloads[w].batch * (1 + w % 3));

            if (w == t.workload || g == t.type)
                speed *= t.factor;
            record_speed(c, w, g, -1, speed, 100 + 20 * w + 50 * g + (g == t.type ? t.factor : 0));
            for (int n = 0; n < N_WORKLOADS; n++) {
                double r = 1 - 0.06 * (n + 1) - 0.05 * ((w + n + g) % 3);

                if (n == t.workload || g == t.type)
                    r /= t.factor;
                record_speed(c, w, g, n, g == 0 && w + n == 7 && w != n ? 0 : r * speed, NAN);
            }
        }
    }
}

static const struct twist none = { -1, -1, 1 };

static struct eval_options usual(enum eval_split split, const int *k, int n_k)
{
    return (struct eval_options){
        .split = split,
        .k = k,
        .n_k = n_k,
        .n_sequences = 2,
        .seed = 7,
        .n_threads = 1,
        .keeps_predictions = true,
    };
}

static void evaluate(struct twist t, const struct eval_options *o, struct eval_result *out)
{
    struct catalog c;
    struct err e;

    measure_all(&c, t);
    int rc = eval_run(&c, o, out, &e);
    ck_assert_msg(rc == 0, "%s", rc < 0 ? e.text : "");
    catalog_release(&c);
}

/* ---- figures ---- */

/* The share of ordered pairs; ties count half. */
static double auc_by_counting(const double *score, const bool *is_hit, int n)
{
    double won = 0, all = 0;

    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            if (!is_hit[i] || is_hit[j])
                continue;
            won += score[i] > score[j] ? 1 : score[i] < score[j] ? 0 : 0.5;
            all++;
        }
    }
    return won / all;
}

static double rank_by_counting(const double *x, int n, int of)
{
    double rank = 0.5;

    for (int i = 0; i < n; i++)
        rank += x[i] < x[of] ? 1 : x[i] > x[of] ? 0 : 0.5;
    return rank;
}

static double spearman_by_counting(const double *x, const double *y, int n)
{
    double sx = 0, sy = 0, xx = 0, yy = 0, xy = 0;

    for (int i = 0; i < n; i++) {
        double p = rank_by_counting(x, n, i), q = rank_by_counting(y, n, i);
        sx += p;
        sy += q;
        xx += p * p;
        yy += q * q;
        xy += p * q;
    }
    return (n * xy - sx * sy) / sqrt((n * xx - sx * sx) * (n * yy - sy * sy));
}

TEST(ranks_and_roc_agree_with_counting_pairs)
{
    enum { N = 40 };
    double x[N], y[N];
    bool is_hit[N];
    struct arena a;
    struct rng r;

    arena_init(&a);
    rng_init(&r, 1, "test");
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < N; i++) {
            x[i] = (double)rng_below(&r, 12);    // many ties
            y[i] = x[i] + (double)rng_below(&r, 12);
            is_hit[i] = i == 0 || (i > 1 && rng_uniform(&r) < 0.3);
        }
        ck_assert_double_eq_tol(eval_spearman(&a, x, y, N), spearman_by_counting(x, y, N), 1e-12);
        ck_assert_double_eq_tol(eval_auc(&a, x, is_hit, N), auc_by_counting(x, is_hit, N), 1e-12);
    }
    ck_assert(isnan(eval_spearman(&a, x, y, 1)));
    ck_assert(isnan(eval_spearman(&a, (double[]){ 1, 1 }, y, 2)));
    ck_assert(isnan(eval_auc(&a, x, (bool[]){ true, true }, 2)));
    ck_assert(isnan(eval_auc(&a, x, is_hit, 0)));
    arena_release(&a);
}

TEST(figures_of_a_few_predictions_are_those_by_hand)
{
    static const struct eval_prediction p[] = {
        { .quantity = EVAL_ISOLATED, .type = 0, .truth = 10, .mean = 11, .sd = 0.1 },
        { .quantity = EVAL_ISOLATED, .type = 1, .truth = 10, .mean = 7, .sd = 0.1 },
        { .quantity = EVAL_PAIR, .type = 0, .truth = 4, .mean = 5, .sd = 0.2 },
        { .quantity = EVAL_SLOWDOWN, .type = 0, .truth = 0.4, .mean = 0.5, .sd = 0.1 },
        { .quantity = EVAL_PARTNER, .type = 0, .truth = 0.9, .mean = 0.6, .sd = 0.1 },
        { .quantity = EVAL_WATTS, .type = 0, .truth = 100, .mean = 132, .sd = 0.1 },
    };
    double figure[EVAL_FIGURES];
    struct arena a;

    arena_init(&a);
    eval_score(&a, p, 6, figure);
    ck_assert_double_eq_tol(figure[EVAL_ISOLATED_MAPE], 0.2, 1e-12);
    ck_assert_double_eq_tol(figure[EVAL_ISOLATED_ABS_LN], log(1.1 / 0.7) / 2, 1e-12);
    ck_assert_double_eq_tol(figure[EVAL_PAIR_MAPE], 0.25, 1e-12);
    ck_assert_double_eq_tol(figure[EVAL_SLOWDOWN_MAE], 0.1, 1e-12);
    ck_assert_double_eq_tol(figure[EVAL_PARTNER_MAE], 0.3, 1e-12);
    ck_assert_double_eq_tol(figure[EVAL_WATTS_MAPE], 0.32, 1e-12);
    ck_assert_double_eq_tol(figure[EVAL_JOULES_MAPE], 0.2, 1e-12);       // 12 J/step for 10
    ck_assert_double_eq_tol(figure[EVAL_COVERAGE90], 2.0 / 3, 1e-12);    // 7 for 10 is too low
    ck_assert_double_eq_tol(figure[EVAL_COVERAGE90_ISOLATED], 0.5, 1e-12);
    ck_assert_double_eq_tol(figure[EVAL_COVERAGE90_SLOWDOWN], 0, 1e-12);
    ck_assert_double_eq_tol(figure[EVAL_SPEARMAN], sqrt(0.75), 1e-12);
    ck_assert(isnan(figure[EVAL_ORDER]));    // both types are equally fast
    ck_assert(isnan(figure[EVAL_FIT_AUC]));
    eval_score(&a, p, 0, figure);
    for (int f = 0; f < EVAL_FIGURES; f++)
        ck_assert(isnan(figure[f]));
    arena_release(&a);
}

TEST(order_counts_types_that_differ_by_a_fifth)
{
    const struct eval_prediction p[] = {
        { .quantity = EVAL_ISOLATED, .type = 0, .truth = 10, .mean = 10, .sd = NAN },
        { .quantity = EVAL_ISOLATED, .type = 1, .truth = 11, .mean = 9, .sd = NAN },    // of 0: no
        { .quantity = EVAL_ISOLATED, .type = 2, .truth = 15, .mean = 9.5, .sd = NAN },
        { .quantity = EVAL_ISOLATED, .type = 3, .truth = 40, .mean = 9.5, .sd = NAN },
    };
    double figure[EVAL_FIGURES];
    struct arena a;

    /* 2 over 0 is wrong and over 1 right; 3 likewise, and level with 2. */
    arena_init(&a);
    eval_score(&a, p, 4, figure);
    ck_assert_double_eq_tol(figure[EVAL_ORDER], 2.5 / 5, 1e-12);
    arena_release(&a);
}

/* ---- cells ---- */

TEST(truth_is_what_was_measured_from_both_sides)
{
    struct catalog c;
    struct arena a;

    arena_init(&a);
    name_all(&c);
    record_speed(&c, 0, 1, -1, 10, 150);
    record_speed(&c, 0, 1, 2, 6, NAN);
    record_speed(&c, 2, 1, -1, 4, NAN);
    record_speed(&c, 2, 1, 0, 3, NAN);
    record_speed(&c, 0, 0, 2, 5, NAN);    // alone it was not measured there
    record_speed(&c, 3, 1, 0, 2, NAN);    // this side only
    record_speed(&c, 0, 1, 4, 0, NAN);    // does not fit
    struct eval_cells *all = eval_cells_take(&a, &c, CATALOG_SITE);
    const struct eval_cell *x = all[0].cell;
    ck_assert_int_eq(all[0].n, 5);
    ck_assert_int_eq(all[0].n_isolated, 1);
    ck_assert_double_eq_tol(exp(x[0].ln_speed), 10, 1e-9);
    ck_assert_double_eq_tol(exp(x[0].ln_watts), 150, 1e-9);
    ck_assert_double_eq_tol(exp(x[1].ln_speed), 6, 1e-9);
    ck_assert_double_eq_tol(exp(x[1].ln_r), 0.6, 1e-9);
    ck_assert_double_eq_tol(exp(x[1].ln_r_partner), 0.75, 1e-9);
    ck_assert(!isnan(x[2].ln_speed) && isnan(x[2].ln_r) && isnan(x[2].ln_r_partner));
    ck_assert(x[3].neighbour == 3 && isnan(x[3].ln_speed) && !x[3].is_unfit);
    ck_assert(x[4].is_unfit && isnan(x[4].ln_speed));
    ck_assert_int_eq(all[1].n, 0);
    ck_assert_int_eq(all[4].n, 1);    // nobody told, but it is the other side
    ck_assert(!all[4].cell[0].is_unfit);
    catalog_release(&c);
    arena_release(&a);
}

TEST(draws_are_three_tenths_alone_and_never_repeat)
{
    struct catalog c;
    struct arena a;
    struct rng r;
    bool is_out[2 * N_WORKLOADS * N_TYPES + 8] = { 0 };
    int n_alone = 0, n_drawn = 0, at;

    arena_init(&a);
    rng_init(&r, 1, "test");
    measure_all(&c, none);
    const struct eval_cells *cells = eval_cells_take(&a, &c, CATALOG_SITE);
    for (int i = 0; i < 4000; i++)
        n_alone += cells->cell[eval_cells_draw(cells, N_TYPES, -1, is_out, &r)].neighbour < 0;
    ck_assert_double_eq_tol(n_alone / 4000.0, 0.3, 0.03);

    /* On one type only; then everywhere, until nothing is left. */
    for (; (at = eval_cells_draw(cells, N_TYPES, 1, is_out, &r)) >= 0; n_drawn++) {
        ck_assert(!is_out[at] && cells->cell[at].type == 1);
        is_out[at] = true;
    }
    ck_assert_int_eq(n_drawn, 1 + N_WORKLOADS);
    for (; (at = eval_cells_draw(cells, N_TYPES, -1, is_out, &r)) >= 0; n_drawn++) {
        ck_assert(!is_out[at]);
        is_out[at] = true;
    }
    ck_assert_int_eq(n_drawn, N_TYPES * (1 + N_WORKLOADS));
    catalog_release(&c);
    arena_release(&a);
}

TEST(half_of_each_kind_is_offered)
{
    struct catalog c;
    struct arena a;
    struct rng r;
    bool is_offered[2 * N_WORKLOADS * N_TYPES + 8] = { 0 };
    int n_alone = 0, n_pairs = 0;

    arena_init(&a);
    rng_init(&r, 1, "test");
    measure_all(&c, none);
    const struct eval_cells *cells = eval_cells_take(&a, &c, CATALOG_SITE);
    eval_cells_halve(&a, cells, -1, &r, is_offered);
    for (int i = 0; i < cells->n; i++) {
        n_alone += is_offered[i] && cells->cell[i].neighbour < 0;
        n_pairs += is_offered[i] && cells->cell[i].neighbour >= 0;
    }
    ck_assert_int_eq(n_alone, 1);
    ck_assert_int_eq(n_pairs, N_WORKLOADS);
    catalog_release(&c);
    arena_release(&a);
}

/* ---- the protocol ---- */

/* Predictions of one workload, sequence, k and method, by quantity. */
static void count(const struct eval_result *r, int w, int sequence, int k, const char *method,
                  int n[EVAL_QUANTITIES])
{
    memset(n, 0, EVAL_QUANTITIES * sizeof *n);
    for (int i = 0; i < r->n_predictions; i++) {
        const struct eval_prediction *p = &r->predictions[i];
        if (p->workload == w && p->sequence == sequence && p->k == k &&
            strcmp(p->method, method) == 0)
            n[p->quantity]++;
    }
}

/* Of families at random, of jobs by active choice; and of jobs at random. */
TIMES(what_is_revealed_is_not_scored, 3)
{
    static const int k[] = { 0, 3 };
    struct eval_options o = usual(_i == 0 ? EVAL_FAMILY : EVAL_JOB, k, 2);
    struct eval_result r;
    int before[EVAL_QUANTITIES], after[EVAL_QUANTITIES];

    o.choice = _i == 1 ? EVAL_ACTIVE : EVAL_RANDOM;
    evaluate(none, &o, &r);
    ck_assert_int_eq(r.n_workloads, N_WORKLOADS);
    ck_assert_int_eq(r.n_folds, _i == 0 ? 3 : N_WORKLOADS);
    for (int w = 0; w < N_WORKLOADS; w++) {
        int n_pairs = N_TYPES * N_WORKLOADS - (w >= 3);
        count(&r, w, 0, 0, "gogh", before);
        ck_assert_int_eq(before[EVAL_ISOLATED], N_TYPES);
        ck_assert_int_eq(before[EVAL_WATTS], N_TYPES);
        ck_assert_int_eq(before[EVAL_PAIR], n_pairs);
        ck_assert_int_eq(before[EVAL_SLOWDOWN], n_pairs);
        ck_assert_int_eq(before[EVAL_PARTNER], n_pairs);
        count(&r, w, 1, 0, "gogh", after);
        ck_assert_int_eq(after[EVAL_ISOLATED], 0);    // before a measurement, one sequence is all
        for (int s = 0; s < 2; s++) {
            count(&r, w, s, 3, "gogh", after);
            ck_assert_int_eq(after[EVAL_ISOLATED] + after[EVAL_PAIR], N_TYPES + n_pairs - 3);
            ck_assert_int_eq(after[EVAL_WATTS], after[EVAL_ISOLATED]);
            ck_assert_int_eq(after[EVAL_SLOWDOWN], after[EVAL_PAIR]);
            ck_assert_int_eq(after[EVAL_PARTNER], after[EVAL_PAIR]);    // revealed cells whole
            if (_i == 1)
                ck_assert_int_ge(after[EVAL_ISOLATED], 1);
        }
    }
    eval_release(&r);
}

static bool same_but_truth(const struct eval_prediction *a, const struct eval_prediction *b)
{
    return a->workload == b->workload && a->sequence == b->sequence && a->k == b->k &&
           strcmp(a->method, b->method) == 0 && a->type == b->type &&
           a->neighbour == b->neighbour && a->quantity == b->quantity &&
           memcmp(&a->mean, &b->mean, sizeof a->mean) == 0 &&
           (memcmp(&a->sd, &b->sd, sizeof a->sd) == 0 || (isnan(a->sd) && isnan(b->sd)));
}

/* Is 'p' of what was twisted? */
static bool must_stay(const struct eval_prediction *p, struct twist t)
{
    return t.type >= 0 ? p->type == t.type : p->workload == t.workload;
}

TIMES(nothing_of_the_held_out_part_leaks, 3)
{
    static const int k[] = { 0 };
    static const struct {
        enum eval_split split;
        struct twist twist;
    } cases[] = {
        { EVAL_FAMILY, { 3, -1, 10 } },
        { EVAL_GPU, { -1, 0, 10 } },
        { EVAL_JOB, { 1, -1, 10 } },
    };
    struct eval_options o = usual(cases[_i].split, k, 1);
    struct eval_result r, twisted;
    int n_same = 0, n_truths = 0;

    evaluate(none, &o, &r);
    evaluate(cases[_i].twist, &o, &twisted);
    ck_assert_int_eq(r.n_predictions, twisted.n_predictions);
    for (int i = 0; i < r.n_predictions; i++) {
        if (!must_stay(&r.predictions[i], cases[_i].twist))
            continue;
        ck_assert_msg(same_but_truth(&r.predictions[i], &twisted.predictions[i]),
                      "%s, type %d, neighbour %d: %.9g, was %.9g", r.predictions[i].method,
                      r.predictions[i].type, r.predictions[i].neighbour,
                      twisted.predictions[i].mean, r.predictions[i].mean);
        n_same++;
        n_truths += fabs(r.predictions[i].truth / twisted.predictions[i].truth - 1) > 0.1;
    }
    ck_assert_int_gt(n_same, 100);
    ck_assert_int_gt(n_truths, 50);
    eval_release(&r);
    eval_release(&twisted);
}

TEST(threads_change_nothing)
{
    static const int k[] = { 0, 2 };
    struct eval_options o = usual(EVAL_FAMILY, k, 2);
    struct eval_result one, two;

    evaluate(none, &o, &one);
    o.n_threads = 2;
    evaluate(none, &o, &two);
    ck_assert_int_eq(one.n_rows, two.n_rows);
    ck_assert_int_eq(one.n_predictions, two.n_predictions);
    for (int i = 0; i < one.n_rows; i++) {
        ck_assert_str_eq(one.rows[i].method, two.rows[i].method);
        for (int f = 0; f < EVAL_FIGURES; f++)
            ck_assert(one.rows[i].figure[f] == two.rows[i].figure[f] ||
                      (isnan(one.rows[i].figure[f]) && isnan(two.rows[i].figure[f])));
    }
    for (int i = 0; i < one.n_predictions; i++)
        ck_assert(same_but_truth(&one.predictions[i], &two.predictions[i]));
    eval_release(&one);
    eval_release(&two);
}

static int n_rows_of(const struct eval_result *r, const char *method)
{
    int n = 0;

    for (int i = 0; i < r->n_rows; i++)
        n += strcmp(r->rows[i].method, method) == 0;
    return n;
}

static const struct {
    enum eval_split split;
    unsigned methods;
    int n_rows;    // at each k
} rows[] = {
    { EVAL_JOB, 0, 7 },
    { EVAL_GPU, 0, 8 },
    { EVAL_FAMILY, 1U << EVAL_MEAN | 1U << EVAL_GOGH, 2 },
    { EVAL_GPU, 1U << EVAL_GOGH, 1 },
    { EVAL_JOB, 1U << EVAL_NETWORK | 1U << EVAL_GOGH, 2 },
};

EACH(methods_that_are_asked_for_have_rows, rows)
{
    static const int k[] = { 0, 1 };
    struct eval_options o = usual(rows[_i].split, k, 2);
    struct eval_result r;

    o.methods = rows[_i].methods;
    evaluate(none, &o, &r);
    ck_assert_int_eq(r.n_rows, 2 * rows[_i].n_rows);
    ck_assert_int_eq(n_rows_of(&r, "gogh"), 2);
    ck_assert_int_eq(n_rows_of(&r, "nearest"), rows[_i].n_rows == 8 ? 2 : 0);
    for (int i = 0; i < r.n_rows; i++) {
        ck_assert_int_eq(r.rows[i].n, -1);
        ck_assert(isnan(r.rows[i].figure[EVAL_FIT_AUC]) == (strcmp(r.rows[i].method, "gogh") != 0));
    }
    eval_release(&r);
}

/* Of the two types either is the nearest of the other; on one a workload was never measured. */
TEST(nearest_is_the_speed_there_by_the_root_of_peak_and_bandwidth)
{
    static const int k[] = { 0 };
    struct eval_options o = usual(EVAL_GPU, k, 1);
    int n[EVAL_QUANTITIES] = { 0 };
    struct eval_result r;
    struct catalog c;
    struct err e;

    name_all(&c);
    for (int w = 0; w < N_WORKLOADS; w++)
        for (int g = 0; g < N_TYPES && (g == 1 || w > 0); g++) {
            record_speed(&c, w, g, -1, 10 * (w + 1) * (1 + g), 100);
            record_speed(&c, w, g, 3, (g ? 8 : 7) * (w + 1) * (1 + g), NAN);
        }
    double root = sqrt(c.types[1].peak_fp32_flops / c.types[0].peak_fp32_flops *
                       c.types[1].bandwidth_bytes_s / c.types[0].bandwidth_bytes_s);
    o.methods = 1U << EVAL_NEAREST;
    ck_assert_int_eq(eval_run(&c, &o, &r, &e), 0);
    for (int i = 0; i < r.n_predictions; i++) {
        const struct eval_prediction *p = &r.predictions[i];
        double there = 10 * (p->workload + 1) * (p->type ? root : 2 / root);
        n[p->quantity]++;
        ck_assert_int_ne(p->workload, 0);
        if (p->quantity == EVAL_ISOLATED)
            ck_assert_double_eq_tol(p->mean / there, 1, 1e-5);
        else if (p->quantity == EVAL_PAIR)
            ck_assert_double_eq_tol(p->mean / (there * (p->type ? 0.7 : 0.8)), 1, 1e-5);
        else if (p->quantity == EVAL_SLOWDOWN)
            ck_assert_double_eq_tol(p->mean, p->type ? 0.7 : 0.8, 1e-5);
    }
    ck_assert_int_eq(n[EVAL_ISOLATED], 2 * (N_WORKLOADS - 1));
    ck_assert_int_eq(n[EVAL_PAIR], 2 * (N_WORKLOADS - 1));
    ck_assert_int_eq(n[EVAL_WATTS], 0);
    eval_release(&r);
    catalog_release(&c);
}

TIMES(too_little_to_hold_out_is_told, 4)
{
    static const int k[] = { 0 };
    static const struct {
        enum eval_split split;
        const char *want;
        int n_workloads, n_types;
    } cases[] = {
        { EVAL_JOB, "no workload was measured alone", 0, 1 },
        { EVAL_JOB, "only one workload", 1, 2 },
        { EVAL_FAMILY, "only one family", 2, 2 },
        { EVAL_GPU, "only one GPU type", 4, 1 },
    };
    struct eval_options o = usual(cases[_i].split, k, 1);
    struct eval_result r;
    struct catalog c;
    struct err e;

    name_all(&c);
    for (int w = 0; w < cases[_i].n_workloads; w++)
        for (int g = 0; g < cases[_i].n_types; g++)
            record_speed(&c, w, g, -1, 10, NAN);
    ck_assert_int_eq(eval_run(&c, &o, &r, &e), -ENODATA);
    ck_assert_msg(strstr(e.text, cases[_i].want) != NULL, "%s", e.text);
    eval_release(&r);
    catalog_release(&c);
}
