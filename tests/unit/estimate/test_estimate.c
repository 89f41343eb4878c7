/* Cells that are worked out when they are asked for, and what is asked of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/rng.h"
#include "catalog/import/import.h"
#include "estimate/estimate.h"
#include "estimate/prior/prior.h"
#include "estimate/prior/roofline.h"
#include "nn/gp.h"
#include "unit/suite.h"
#include "unit/support.h"

static void nothing(void)
{
}

FIXTURE(nn_init, nothing)

static struct measurement speed_of(int w, int type, int beside, double speed)
{
    return (struct measurement){
        .key = { .workload = w, .gpu_type = type, .neighbour = beside, .n_gpus = 1 },
        .fits = true,
        .throughput = speed,
        .watts = NAN,
        .noise = NAN,
    };
}

static void record(struct catalog *c, const struct measurement *m)
{
    struct err e = { 0 };

    ck_assert_msg(catalog_record(c, m, 0, &e) == 0, "%s", e.text);
}

/* A world whose estimator learns, which others' does not. */
static void learning_world(struct world *w, const char *text)
{
    world_init(w, text);
    estimate_use(&w->est, NULL, ESTIMATOR_GOGH);
    world_look(w);
}

static bool is_same(struct cell_estimate a, struct cell_estimate b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

/* ---- the same answers ---- */

static const char some[] =
    "type v100\ntype k80\n"
    "workload a family=one params=1e7 flop_per_sample=1e9 bytes_per_sample=1e7 batch=32\n"
    "workload b family=one params=1e8 flop_per_sample=1e10 bytes_per_sample=1e7 batch=8\n"
    "workload c family=two params=1e7 flop_per_sample=3e9 bytes_per_sample=1e8 batch=8\n"
    "workload d\n";
enum { A, B, C, D };

static void random_measurement(struct rng *r, struct catalog *c)
{
    int w = (int)rng_below(r, (uint64_t)c->n_workloads);
    int type = (int)rng_below(r, (uint64_t)c->n_types);
    int n = (int)rng_below(r, (uint64_t)c->n_workloads + 1) - 1;
    struct measurement m = speed_of(w, type, n, exp(rng_normal(r)));

    m.watts = n < 0 && rng_below(r, 2) ? rng_between(r, 50, 200) : (double)NAN;
    m.fits = rng_below(r, 8) > 0;
    if (!m.fits)
        m.throughput = m.watts = NAN;
    record(c, &m);
}

static void random_change(struct rng *r, struct catalog *c)
{
    static const char *const types[] = { "a100", "p100", "t4" };
    int what = (int)rng_below(r, 24), index;
    char name[16];

    if (what < 3) {
        struct workload added;
        snprintf(name, sizeof name, "w%d", c->n_workloads);
        workload_init(&added, name);
        added.flop_per_sample = rng_between(r, 1e9, 1e12);
        ck_assert_int_eq(catalog_add_workload(c, &added, &index, NULL), 0);
    } else if (what == 3) {
        struct workload more = c->workloads[rng_below(r, (uint64_t)c->n_workloads)];
        more.params = rng_between(r, 1e6, 1e8);
        ck_assert_int_eq(catalog_set_workload(c, &more, &index, NULL), 0);
    } else if (what == 4 && rng_below(r, 4) == 0) {
        const char *type = types[rng_below(r, 3)];
        ck_assert_int_eq(catalog_add_type(c, gpu_type_builtin(type), &index, NULL), 0);
    } else {
        random_measurement(r, c);
    }
}

static void ask_some(struct rng *r, const struct estimator *e, int n)
{
    while (n-- > 0)
        estimate_cell(e, (int)rng_below(r, (uint64_t)e->n_workloads),
                      (int)rng_below(r, (uint64_t)e->n_types),
                      (int)rng_below(r, (uint64_t)e->n_workloads + 1) - 1);
}

/* Every 'step'-th cell. */
static void assert_same(const struct estimator *a, const struct estimator *b, int step)
{
    ck_assert_int_eq(a->n_workloads, b->n_workloads);
    ck_assert_int_eq(a->n_types, b->n_types);
    for (int i = 0; i < a->n_workloads * a->n_types * (a->n_workloads + 1); i += step) {
        int w = i % a->n_workloads, t = i / a->n_workloads % a->n_types;
        int n = i / a->n_workloads / a->n_types - 1;
        /* Asserted only on a difference: Check notes each assertion, and there are many. */
        if (!is_same(estimate_cell(a, w, t, n), estimate_cell(b, w, t, n)))
            ck_abort_msg("cell %d on %d beside %d differs", w, t, n);
    }
}

TEST(a_cell_asked_twice_is_the_same)
{
    struct world w;
    struct measurement m = speed_of(A, 0, -1, 20);

    learning_world(&w, some);
    record(&w.catalog, &m);
    world_look(&w);
    struct cell_estimate first = estimate_cell(&w.est, B, 0, A);
    struct rng r;
    rng_init(&r, 1, "estimate");
    ask_some(&r, &w.est, 1000);
    ck_assert(is_same(first, estimate_cell(&w.est, B, 0, A)));
    estimate_refresh(&w.est);    // of nothing
    ck_assert(is_same(first, estimate_cell(&w.est, B, 0, A)));
    world_release(&w);
}

/* Bit for bit: who is asked between cycles decides as a record that is run again does. */
TIMES(answers_do_not_depend_on_what_was_asked_in_between, 4)
{
    struct rng r, whim;
    struct world w;
    struct estimator curious;

    rng_init(&r, (uint64_t)_i, "refresh");
    rng_init(&whim, (uint64_t)_i, "whim");
    learning_world(&w, some);
    estimator_init(&curious, &w.catalog, 1);
    estimate_refresh(&curious);
    for (int i = 0; i < 100; i++) {
        for (int k = (int)rng_below(&r, 6); k > 0; k--) {
            random_change(&r, &w.catalog);
            if (rng_below(&whim, 3) == 0) {
                estimate_meet(&curious);
                ask_some(&whim, &curious, 5);
            }
        }
        estimate_refresh(&w.est);
        estimate_refresh(&curious);
        assert_same(&w.est, &curious, 97);    // few, so that much is asked for the first time later
    }
    assert_same(&w.est, &curious, 1);
    ck_assert_int_gt(w.catalog.n_workloads, 16);
    ck_assert_int_gt(w.catalog.n_types, 2);
    estimator_release(&curious);
    world_release(&w);
}

static const enum estimator_kind kinds[] = { ESTIMATOR_GOGH, ESTIMATOR_HIERARCHICAL,
                                             ESTIMATOR_NETWORK, ESTIMATOR_MEAN,
                                             ESTIMATOR_ROOFLINE };

static void assert_believed(const struct estimator *e, int beside, struct cell_estimate was)
{
    struct cell_estimate is = estimate_cell(e, A, 0, beside);

    is.unfit = was.unfit;    // what has run fits at once
    ck_assert(is_same(is, was));
}

/* Whether or not the cell was asked for before: neither speed alone nor beside, nor watts. */
EACH(what_was_measured_since_the_last_refresh_is_in_no_answer, kinds)
{
    struct world w;
    struct estimator curious;
    struct measurement m[] = { speed_of(A, 0, -1, 1e4), speed_of(A, 0, B, 2e4) };

    world_init(&w, some);
    estimate_use(&w.est, NULL, kinds[_i]);
    estimator_init(&curious, &w.catalog, 1);
    estimate_use(&curious, NULL, kinds[_i]);
    estimate_refresh(&w.est);
    estimate_refresh(&curious);
    struct cell_estimate alone = estimate_cell(&curious, A, 0, -1);
    struct cell_estimate beside = estimate_cell(&curious, A, 0, B);
    m[0].watts = 77;
    record(&w.catalog, &m[0]);
    record(&w.catalog, &m[1]);
    assert_believed(&w.est, -1, alone);
    assert_believed(&w.est, B, beside);
    estimate_refresh(&w.est);
    ck_assert(estimate_cell(&w.est, A, 0, -1).mean > alone.mean + 0.5F);
    estimator_release(&curious);
    world_release(&w);
}

TEST(another_model_answers_at_once_and_leaves_nothing_behind)
{
    struct world w;
    struct measurement m = speed_of(A, 0, -1, 20);

    learning_world(&w, some);
    record(&w.catalog, &m);
    world_look(&w);
    struct cell_estimate was = estimate_cell(&w.est, B, 0, -1);
    estimate_use(&w.est, NULL, ESTIMATOR_ROOFLINE);
    estimate_refresh(&w.est);
    ck_assert(!is_same(was, estimate_cell(&w.est, B, 0, -1)));
    estimate_use(&w.est, NULL, ESTIMATOR_HIERARCHICAL);
    estimate_refresh(&w.est);
    ck_assert(is_same(was, estimate_cell(&w.est, B, 0, -1)));
    world_release(&w);
}

/* ---- what a measurement changes ---- */

TEST(one_more_measurement_reaches_other_types_and_workloads)
{
    struct world w;
    struct measurement first = speed_of(C, 1, -1, 5);

    learning_world(&w, some);
    record(&w.catalog, &first);
    world_look(&w);
    struct cell_estimate own = estimate_cell(&w.est, A, 0, -1);
    struct measurement m = speed_of(A, 0, -1, 3 * exp((double)own.mean));
    struct cell_estimate type = estimate_cell(&w.est, A, 1, -1);
    struct cell_estimate kin = estimate_cell(&w.est, B, 0, -1);
    struct cell_estimate beside = estimate_cell(&w.est, A, 0, D);
    record(&w.catalog, &m);
    estimate_refresh(&w.est);
    struct cell_estimate is = estimate_cell(&w.est, A, 0, -1);
    ck_assert_double_eq_tol((double)(is.mean - own.mean), log(3), 0.1);
    ck_assert_double_lt((double)is.sd, 0.08);
    ck_assert_double_gt((double)(estimate_cell(&w.est, A, 1, -1).mean - type.mean), 0.1);
    ck_assert_double_gt((double)(estimate_cell(&w.est, B, 0, -1).mean - kin.mean), 0.1);
    ck_assert_double_gt((double)(estimate_cell(&w.est, A, 0, D).mean - beside.mean), 0.5);
    ck_assert(estimate_cell(&w.est, A, 1, -1).sd < type.sd);
    ck_assert(estimate_cell(&w.est, B, 0, -1).sd < kin.sd);
    ck_assert(estimate_cell(&w.est, A, 0, D).sd < beside.sd);
    world_release(&w);
}

TEST(measured_watts_reach_other_types)
{
    struct world w;
    struct measurement m = speed_of(A, 0, -1, 20);

    learning_world(&w, some);
    struct cell_estimate own = estimate_cell(&w.est, A, 0, -1);
    struct cell_estimate type = estimate_cell(&w.est, A, 1, -1);
    m.watts = 1.3 * (double)own.watts;
    record(&w.catalog, &m);
    estimate_refresh(&w.est);
    ck_assert_double_eq_tol((double)(estimate_cell(&w.est, A, 0, -1).watts / own.watts), 1.3, 0.05);
    ck_assert_double_lt((double)estimate_cell(&w.est, A, 0, -1).watts_sd, 0.06);
    ck_assert_double_gt((double)(estimate_cell(&w.est, A, 1, -1).watts / type.watts), 1.02);
    world_release(&w);
}

/* Whoever was measured here was faster in company. */
TEST(no_slowdown_is_believed_above_1_unless_it_was_measured)
{
    struct world w;
    int n_measured = 0;

    learning_world(&w, some);
    for (int i = 0; i < 2 * 4; i++) {
        struct measurement m = speed_of(i / 2, i % 2, -1, 10);
        m.noise = 0.01;
        record(&w.catalog, &m);
        for (m.key.neighbour = 0; m.key.neighbour < 4; m.key.neighbour++) {
            m.throughput = 10.8;
            if ((i + m.key.neighbour) % 3)
                record(&w.catalog, &m);
        }
    }
    world_look(&w);
    for (int i = 0; i < 2 * 4 * 4; i++) {
        int type = i % 2, job = i / 2 % 4, by = i / 8;
        float alone = estimate_cell(&w.est, job, type, -1).mean;
        float beside = estimate_cell(&w.est, job, type, by).mean;
        if (beliefs_has_read(w.est.beliefs, type, job, by)) {
            ck_assert_double_eq_tol((double)(beside - alone), log(1.08), 0.03);
            n_measured++;
        } else {
            ck_assert_msg(beside <= alone, "%d on %d beside %d: %g, alone %g", job, type, by,
                          (double)beside, (double)alone);
        }
    }
    ck_assert(n_measured > 16 && n_measured < 32);
    world_release(&w);
}

TEST(a_type_that_nobody_described_spoils_no_other)
{
    struct world w;
    struct gpu_type mystery = { .name = "mystery" };
    int type;

    learning_world(&w, some);
    ck_assert_int_eq(catalog_add_type(&w.catalog, &mystery, &type, NULL), 0);
    struct measurement m[] = { speed_of(A, type, -1, 25), speed_of(A, 0, -1, 10) };
    m[0].watts = 120;
    record(&w.catalog, &m[0]);
    record(&w.catalog, &m[1]);
    world_look(&w);
    ck_assert_double_eq_tol((double)estimate_cell(&w.est, A, 0, -1).mean, log(10), 0.1);
    ck_assert_double_eq_tol((double)estimate_cell(&w.est, A, type, -1).mean, log(25), 0.1);
    for (int i = 0; i < 3 * 4; i++) {
        struct cell_estimate is = estimate_cell(&w.est, i / 3, i % 3, -1);
        ck_assert(isfinite(is.speed) && is.speed > 0 && isfinite(is.watts) && is.watts > 0);
        ck_assert(is.low > 0 && is.low <= is.speed && is.watts_sd > 0);
    }
    world_release(&w);
}

/* ---- whom to believe ---- */

TEST(the_roofline_is_the_prior_and_what_was_measured_of_the_very_cell)
{
    struct world w;
    struct roofline on[4];
    struct prior p;
    struct measurement m = speed_of(A, 0, B, 3);

    world_init(&w, some);
    estimate_use(&w.est, NULL, ESTIMATOR_ROOFLINE);
    m.noise = 0.3;
    record(&w.catalog, &m);
    m = speed_of(C, 0, -1, 7);
    m.watts = 99;
    record(&w.catalog, &m);
    world_look(&w);
    const struct gpu_type *g = &w.catalog.types[0];
    for (int i = 0; i < 4; i++)
        roofline(&w.catalog.workloads[i], g, &on[i]);
    for (int i = 0; i < 4 * 5; i++) {
        int job = i % 4, by = i / 4 - 1;
        bool is_read = (job == A && by == B) || (job == C && by < 0);
        struct cell_estimate is = estimate_cell(&w.est, job, 0, by);
        prior_of(&on[job], by < 0 ? NULL : &on[by], g->mem_bytes, &p);
        if (by >= 0)    // from what was measured of it alone
            p.ln_speed += (double)estimate_cell(&w.est, job, 0, -1).mean + log(on[job].step_s);
        double noise = hypot(job == A ? 0.3 : CATALOG_NOISE, READING_NOISE);
        double trust = is_read ? p.sd * p.sd / (p.sd * p.sd + noise * noise) : 0;
        double mean = p.ln_speed + trust * (log(job == A ? 3 : 7) - p.ln_speed);
        if (by >= 0 && !is_read)    // no faster than alone, whatever is known of that
            mean = fmin(mean, (double)estimate_cell(&w.est, job, 0, -1).mean);
        ck_assert_double_eq_tol((double)is.mean, mean, 1e-5);
        ck_assert_double_eq_tol((double)is.sd, sqrt(1 - trust) * p.sd, 1e-6);
        if (by >= 0)
            continue;
        double watts = roofline_watts(&on[job], g), var = ROOFLINE_WATTS_SD * ROOFLINE_WATTS_SD;
        trust = job == C ? var / (var + CATALOG_NOISE * CATALOG_NOISE) : 0;
        ck_assert_double_eq_tol((double)is.watts, watts * pow(99 / watts, trust), 1e-3);
        ck_assert_double_eq_tol((double)is.watts_sd, sqrt(var * (1 - trust)), 1e-6);
    }
    world_release(&w);
}

/* ln speed over the reference. */
static double residual_of(const struct estimator *e, int w, int type)
{
    return (double)(estimate_cell(e, w, type, -1).mean -
                    site_on(&e->beliefs->site, w, type)->ln_reference);
}

TEST(the_mean_says_the_same_of_all_who_were_not_measured_on_a_type)
{
    struct world w;
    struct measurement m[] = { speed_of(A, 0, -1, 500), speed_of(A, 1, -1, 1) };

    learning_world(&w, some);
    record(&w.catalog, &m[0]);
    record(&w.catalog, &m[1]);
    world_look(&w);
    ck_assert_double_gt(fabs(residual_of(&w.est, B, 0) - residual_of(&w.est, C, 0)), 0.02);
    estimate_use(&w.est, NULL, ESTIMATOR_MEAN);
    estimate_refresh(&w.est);
    for (int type = 0; type < 2; type++)
        ck_assert_double_eq_tol(residual_of(&w.est, B, type), residual_of(&w.est, C, type), 1e-4);
    ck_assert_double_gt(fabs(residual_of(&w.est, B, 0) - residual_of(&w.est, B, 1)), 0.1);
    world_release(&w);
}

/* ---- what is known otherwise ---- */

static const char two[] = "type v100\nworkload w\nworkload x\nworkload y\n"
                          "speed w v100 10 sd=0.5\nspeed w v100 6 beside=x sd=0.25\n"
                          "speed w v100 8 beside=y\nwatts w v100 200\n"
                          "speed x v100 4\nspeed x v100 2 beside=w\nwatts x v100 100\n";

/* The speed that stands for a cell is less than its median by half its variance. */
static double standing(double median, double sd)
{
    return median * exp(-sd * sd / 2);
}

TEST(what_was_told_wins_and_the_last_word_counts)
{
    struct world w;
    struct measurement m = speed_of(0, 0, -1, 500);

    learning_world(&w, two);
    struct cell_estimate c = estimate_cell(&w.est, 0, 0, -1);
    ck_assert_double_eq_tol((double)c.mean, log(10), 1e-6);
    ck_assert_double_eq_tol((double)c.speed, standing(10, 0.5), 1e-5);
    ck_assert_double_eq_tol((double)c.low, 10 * exp(-0.5), 1e-5);
    ck_assert_double_eq_tol((double)c.sd, 0.5, 1e-6);
    ck_assert_double_eq_tol((double)estimate_cell(&w.est, 0, 0, 1).speed, standing(6, 0.25), 1e-5);
    ck_assert_double_eq((double)estimate_cell(&w.est, 0, 0, 2).low, 8);
    struct cell_estimate untold = estimate_cell(&w.est, 2, 0, -1);
    ck_assert_ptr_null(estimate_told(&w.est, 2, 0, -1));
    m.watts = 50;
    record(&w.catalog, &m);
    world_look(&w);
    c.unfit = 0;    // but that it fits
    ck_assert(is_same(c, estimate_cell(&w.est, 0, 0, -1)));
    ck_assert(!is_same(untold, estimate_cell(&w.est, 2, 0, -1)));    // which it taught something
    struct told_cell last = *estimate_told(&w.est, 0, 0, -1);
    last.ln_speed = log(12);
    last.ln_watts = NAN;
    estimate_tell(&w.est, 0, 0, -1, &last);
    c = estimate_cell(&w.est, 0, 0, -1);    // at once
    ck_assert_double_eq_tol((double)c.mean, log(12), 1e-6);
    ck_assert_double_eq_tol((double)c.watts, 50, 5);    // of which nobody knows any more
    world_release(&w);
}

TEST(slowdowns_multiply_in_whatever_order)
{
    static const int xy[] = { 1, 2 }, yx[] = { 2, 1 }, x[] = { 1 };
    struct world w;
    const double alone = standing(10, 0.5), beside_x = standing(6, 0.25);
    double low, low2;

    world_init(&w, two);
    ck_assert_double_eq_tol(estimate_speed(&w.est, 0, 0, NULL, 0, &low), alone, 1e-5);
    ck_assert_double_eq_tol(low, 10 * exp(-0.5), 1e-5);
    ck_assert_double_eq_tol(estimate_speed(&w.est, 0, 0, x, 1, &low), beside_x, 1e-5);
    ck_assert_double_eq_tol(low, 6 * exp(-0.25), 1e-5);
    ck_assert_double_eq_tol(estimate_speed(&w.est, 0, 0, xy, 2, &low), beside_x * 8 / alone, 1e-5);
    ck_assert_double_eq_tol(low, 6 * exp(-0.25) * 8 / alone, 1e-5);
    estimate_speed(&w.est, 0, 0, yx, 2, &low2);
    ck_assert_double_eq_tol(low, low2, 1e-12);
    world_add(&w, "speed w v100 12 beside=y\n");    // faster in company: believed for one only
    world_look(&w);
    ck_assert_double_eq_tol(estimate_speed(&w.est, 0, 0, xy, 2, &low), beside_x, 1e-5);
    ck_assert_double_eq_tol(estimate_speed(&w.est, 0, 0, yx, 2, &low2), beside_x, 1e-5);
    ck_assert_double_eq_tol(low, low2, 1e-12);
    world_release(&w);
}

TEST(gangs_are_measured_or_scaled)
{
    struct world w;
    const double alone = standing(10, 0.5);
    double low;
    struct measurement m = { .key = { .neighbour = -1, .n_gpus = 4 },
                             .fits = true,
                             .throughput = 35,
                             .watts = NAN,
                             .noise = 0.1 };

    world_init(&w, two);
    ck_assert_double_eq_tol(estimate_gang_speed(&w.est, 0, 0, 1, 0, &low), alone, 1e-5);
    ck_assert_double_eq_tol(estimate_gang_speed(&w.est, 0, 0, 4, 0, &low),
                            alone * roofline_gang(4, 0), 1e-4);
    ck_assert_double_eq_tol(low, 10 * exp(-0.5) * roofline_gang(4, 0), 1e-4);
    ck_assert_int_eq(catalog_record(&w.catalog, &m, 0, NULL), 0);
    world_look(&w);
    ck_assert_double_eq_tol(estimate_gang_speed(&w.est, 0, 0, 4, 0, &low), 35, 1e-9);
    ck_assert_double_eq_tol(low, 35 * exp(-0.1), 1e-9);
    m.throughput = 35 * exp(2);    // contradicts: the mean is one off either, and so is its sd
    ck_assert_int_eq(catalog_record(&w.catalog, &m, 0, NULL), 0);
    ck_assert_double_eq_tol(estimate_gang_speed(&w.est, 0, 0, 4, 0, &low), 35 * exp(1), 1e-9);
    ck_assert_double_eq_tol(low, 35, 1e-9);
    ck_assert_double_eq_tol(estimate_gang_speed(&w.est, 0, 0, 4, 1, NULL),
                            alone * roofline_gang(4, 1),
                            1e-4);    // spread was not measured
    world_release(&w);
}

TEST(watts_of_one_of_two_and_of_nobody)
{
    static const int w_[] = { 0 }, wx[] = { 0, 1 };
    struct world w;

    world_init(&w, two);
    const struct gpu_type *g = &w.catalog.types[0];
    ck_assert_double_eq(estimate_watts(&w.est, 0, NULL, NULL, 0), g->sleep_w);
    ck_assert_double_eq_tol(estimate_watts(&w.est, 0, w_, NULL, 1), 200, 1e-3);
    ck_assert_double_eq_tol(estimate_watts(&w.est, 0, wx, NULL, 2),
                            g->idle_w + (200 - g->idle_w) * standing(6, 0.25) / standing(10, 0.5) +
                                (100 - g->idle_w) * 0.5,
                            1e-3);
    world_release(&w);
}

/* ---- fitting ---- */

static const char large[] = "type v100 memory=16\n"
                            "workload small params=1e6 bytes_per_sample=1e6 batch=1\n"
                            "workload half params=6e8 bytes_per_sample=1e6 batch=1\n"
                            "workload huge params=3e9 bytes_per_sample=1e6 batch=1\n";

static const struct {
    const char *name, *more, *who, *beside;
    double low, high;
} fits[] = {
    { "small ones fit", "", "small", NULL, 0, 0.01 },
    { "huge ones do not", "", "huge", NULL, 0.99, 1 },
    { "two halves of a memory are a risk", "", "half", "half", 0.25, 1 },
    { "seen not to fit beats memory", "unfit small v100\n", "small", NULL, 1, 1 },
    { "a pair seen not to fit is no pair", "unfit small v100 beside=half\n", "half", "small", 1,
      1 },
    { "one that does not fit alone fits beside nobody", "", "small", "huge", 0.99, 1 },
    { "one that is built for newer ones does not run",
      "workload new params=1e6 bytes_per_sample=1e6 batch=1 needs_capability=8.0\n", "new", NULL, 1,
      1 },
    { "nor beside another",
      "workload new params=1e6 bytes_per_sample=1e6 batch=1 needs_capability=8.0\n", "small", "new",
      1, 1 },
    { "one that is built for these does",
      "workload old params=1e6 bytes_per_sample=1e6 batch=1 needs_capability=70\n", "old", NULL, 0,
      0.01 },
};

EACH(memory_decides_unless_somebody_has_looked, fits)
{
    struct world w;
    int both[2], n = 1;

    world_init(&w, large);
    world_add(&w, fits[_i].more);
    world_look(&w);
    both[0] = world_workload(&w, fits[_i].who);
    if (fits[_i].beside)
        both[n++] = world_workload(&w, fits[_i].beside);
    double unfit = estimate_unfit(&w.est, 0, both, n);
    ck_assert_msg(unfit >= fits[_i].low && unfit <= fits[_i].high, "%s: %g", fits[_i].name, unfit);
    world_release(&w);
}

TEST(what_has_run_fits_even_if_it_once_did_not)
{
    struct world w;
    int huge;

    world_init(&w, large);
    huge = world_workload(&w, "huge");
    world_add(&w, "unfit huge v100\n");
    struct measurement m = { .key = { .workload = huge, .neighbour = -1, .n_gpus = 1 },
                             .fits = true,
                             .throughput = 2,
                             .watts = NAN,
                             .noise = NAN };
    ck_assert_int_eq(catalog_record(&w.catalog, &m, 0, NULL), 0);
    world_look(&w);
    ck_assert_double_eq(estimate_unfit(&w.est, 0, &huge, 1), 0);
    world_release(&w);
}

/* ---- limits ---- */

TEST(a_limit_takes_what_is_known_of_those_who_are_there)
{
    struct world w;
    const int both[] = { 0, 1 };

    world_init(&w, "type v100 cap=250 idle=40 sleep=10\nworkload x\nworkload y\n"
                   "speed x v100 10\nwatts x v100 200\nspeed y v100 10\nwatts y v100 120\n"
                   "pairs 0.5\n");
    const struct gpu_type *g = &w.catalog.types[0];
    struct limited law = limits_apply(g, 105, 200);
    struct limited got = estimate_limited(&w.est, 0, both, NULL, 1, 105);
    ck_assert_double_eq_tol(got.speed, law.speed, 1e-4);
    ck_assert_double_eq_tol(got.watts, law.watts, 0.01);
    ck_assert_double_eq_tol(got.low, pow(law.speed, 1 + LIMITS_LOSS_SD), 1e-4);

    /* Who loses twice as much; beside it, by dynamic watts of 80 and 40: 5/3. */
    struct told_cell is = *estimate_told(&w.est, 0, 0, -1);
    is.bend = (struct limit_bend){ .loss = 2, .draw = 1, .loss_sd = 0.1, .at = log(law.speed) };
    estimate_tell(&w.est, 0, 0, -1, &is);
    got = estimate_limited(&w.est, 0, both, NULL, 1, 105);
    ck_assert_double_eq_tol(got.speed, law.speed * law.speed, 1e-4);
    ck_assert_double_eq_tol(got.low, got.speed, 1e-4);    // where it was measured
    got = estimate_limited(&w.est, 0, both, NULL, 1, 0);
    ck_assert(got.speed == 1 && fabs(got.low - pow(law.speed, 0.1)) < 1e-4);
    law = limits_apply(g, 105, 40 + 80 + 40);
    got = estimate_limited(&w.est, 0, both, NULL, 2, 105);
    ck_assert_double_eq_tol(got.speed, pow(law.speed, 5.0 / 3), 1e-3);
    got = estimate_limited(&w.est, 0, both, NULL, 2, 0);
    ck_assert(got.speed == 1 && fabs(got.watts - 160) < 0.1);
    got = estimate_limited(&w.est, 0, both, NULL, 0, 105);
    ck_assert(got.speed == 1 && got.watts == 10);
    world_release(&w);
}

static const struct {
    const char *name;
    double sd[2];    // of the watts of x and y
    double speed_sd;
    double rate;    // of x; 0: it trains
    int n, may;
} limitable[] = {
    { "one whose watts are known may be limited", { 0.1, 0.5 }, 0.3, 0, 1, 1 },
    { "one whose are not may not", { 0.2, 0.1 }, 0.3, 0, 1, 0 },
    { "nor where anybody's are not", { 0.1, 0.2 }, 0.3, 0, 2, 0 },
    { "two that are known may", { 0.1, 0.1 }, 0.3, 0, 2, 1 },
    { "and so may nobody", { 0.5, 0.5 }, 0.3, 0, 0, 1 },
    { "a server whose speed is not known may not", { 0.1, 0.5 }, 0.3, 2, 1, 0 },
    { "one whose speed is known may", { 0.1, 0.5 }, 0.05, 2, 1, 1 },
};

EACH(only_who_is_known_may_be_limited, limitable)
{
    struct world w;
    const int both[] = { 0, 1 };
    const double rates[] = { limitable[_i].rate, 0 };

    world_init(&w, "type v100\nworkload x\nworkload y\n");
    ck_assert(!estimate_may_limit(&w.est, 0, both, NULL, 1));    // nobody has measured it
    for (int i = 0; i < 2; i++) {
        struct told_cell is = { .sd = limitable[_i].speed_sd,
                                .ln_watts = 5,
                                .watts_sd = limitable[_i].sd[i] };
        estimate_tell(&w.est, i, 0, -1, &is);
    }
    ck_assert_msg(estimate_may_limit(&w.est, 0, both, rates, limitable[_i].n) == limitable[_i].may,
                  "%s", limitable[_i].name);
    world_release(&w);
}

/* ---- the stated errors, where the measurements are at hand ---- */

static const char *data_file(struct arena *a, const char *name)
{
    const char *data = getenv("GOGH_DATA"), *src = getenv("SRC");
    char *path = data ? arena_printf(a, "%s/%s", data, name)
                      : arena_printf(a, "%s/../shared/data/%s", src ? src : ".", name);
    FILE *f = fopen(path, "r");

    if (!f)
        return NULL;
    fclose(f);
    return path;
}

TEST(the_stated_bias_and_spread_hold_on_measured_data)
{
    struct world w;
    struct import_report report;
    struct err e = { 0 };
    double n[2] = { 0 }, sum[2] = { 0 }, sum2[2] = { 0 }, abs_pair = 0;

    world_init(&w, "");
    struct import_gavel in = { .path = data_file(&w.arena, "gavel/simulation_throughputs.json"),
                               .workloads = data_file(&w.arena, "workloads/gavel_workloads.csv") };
    if (!in.path || !in.workloads) {
        printf("skipped: no measured data (set GOGH_DATA)\n");
        world_release(&w);
        return;
    }
    ck_assert_msg(import_gavel(&w.catalog, &in, 0, NULL, &report, &e) == 0, "%s", e.text);
    for (int i = 0; i < w.catalog.n_cells; i++) {
        const struct cell *c = &w.catalog.cells[i];
        struct cell_key alone_key = c->key;
        struct roofline on, beside;
        bool is_pair = c->key.neighbour >= 0;
        if (!c->n_speed || c->key.n_gpus > 1)
            continue;
        roofline(&w.catalog.workloads[c->key.workload], &w.catalog.types[c->key.gpu_type], &on);
        double error = c->ln_speed + log(on.step_s);
        if (is_pair) {
            alone_key.neighbour = -1;
            const struct cell *alone = catalog_cell(&w.catalog, alone_key);
            roofline(&w.catalog.workloads[c->key.neighbour], &w.catalog.types[c->key.gpu_type],
                     &beside);
            double believed = roofline_slowdown(&on, &beside);
            error = c->ln_speed - alone->ln_speed - log(believed);
            abs_pair += fabs(exp(c->ln_speed - alone->ln_speed) - believed);
        }
        n[is_pair]++;
        sum[is_pair] += error;
        sum2[is_pair] += error * error;
    }
    for (int k = 0; k < 2; k++) {
        sum[k] /= n[k];
        sum2[k] = sqrt(sum2[k] / n[k] - sum[k] * sum[k]);
    }
    printf(
        "alone: %.0f cells, bias %.3f, sd %.3f; pairs: %.0f, bias %.3f, sd %.3f, mean error %.3f\n",
        n[0], sum[0], sum2[0], n[1], sum[1], sum2[1], abs_pair / n[1]);
    ck_assert_double_eq_tol(sum[0], -0.13, 0.05);
    ck_assert_double_eq_tol(sum2[0], 0.52, 0.05);
    ck_assert_double_eq_tol(abs_pair / n[1], 0.15, 0.03);
    ck_assert_double_eq_tol(sum2[1], 0.35, 0.05);
    world_release(&w);
}
