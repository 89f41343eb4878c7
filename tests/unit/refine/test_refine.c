/* Measurements are recorded, as what they say without limits, and what was believed is judged. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/rng.h"
#include "estimate/prior/limits.h"
#include "nn/gp.h"
#include "refine/refine.h"
#include "store/store.h"
#include "unit/suite.h"
#include "unit/support.h"

static const char three[] =
    "type v100\ntype k80\ntype a100\n"
    "workload a params=1e7 flop_per_sample=1e9 bytes_per_sample=1e7 batch=32\n"
    "workload b params=1e8 flop_per_sample=1e10 bytes_per_sample=1e7 batch=8\n"
    "workload c\n";

static struct world w;
static struct refiner r;

static void set_up(void)
{
    nn_init();
    world_init(&w, three);
    estimate_use(&w.est, NULL, ESTIMATOR_HIERARCHICAL);
    estimate_refresh(&w.est);
    refiner_init(&r, &w.catalog, &w.est);
}

static void tear_down(void)
{
    world_release(&w);
}

FIXTURE(set_up, tear_down)

static struct measurement speed_of(int workload, int type, int beside, double speed)
{
    return (struct measurement){
        .key = { .workload = workload, .gpu_type = type, .neighbour = beside, .n_gpus = 1 },
        .fits = true,
        .throughput = speed,
        .watts = NAN,
        .noise = NAN,
    };
}

static void take(const struct measurement *m)
{
    struct err e = { 0 };

    ck_assert_msg(refine_take(&r, m, &e) == 0, "%s", e.text);
}

/* And let it be believed. */
static void learn(const struct measurement *m)
{
    take(m);
    estimate_refresh(&w.est);
}

static struct cell_estimate cell(int workload, int type, int beside)
{
    return estimate_cell(&w.est, workload, type, beside);
}

static const struct cell *seen_alone(void)
{
    return catalog_cell(&w.catalog, (struct cell_key){ .n_gpus = 1, .neighbour = -1 });
}

/* A speed alone of 10 steps/s and 200 W without a limit, under one of 'limit_w' (0: none), for who
 * loses 'loss' times what the law says.
 */
static struct measurement under(int limit_w, double loss)
{
    const struct gpu_type *type = &w.catalog.types[0];
    struct limited at =
        limits_bent(type, limit_w, 200, (struct limit_bend){ .loss = loss, .draw = 1 });
    struct measurement m = speed_of(0, 0, -1, 10 * at.speed);

    m.watts = at.watts;
    m.key.limit_w = limit_w;
    return m;
}

/* ---- recording ---- */

TEST(what_is_taken_is_recorded_and_believed_after_a_refresh)
{
    struct cell_estimate was = cell(0, 0, -1), other = cell(0, 1, -1);
    struct measurement m = speed_of(0, 0, -1, 2 * exp((double)was.mean));

    m.watts = 123;
    take(&m);
    ck_assert_int_eq(w.catalog.n_measurements, 1);
    ck_assert_double_eq_tol(exp(seen_alone()->ln_speed), m.throughput, 1e-9);
    ck_assert_double_eq_tol(exp(seen_alone()->ln_watts), 123, 1e-9);
    ck_assert_double_eq((double)cell(0, 0, -1).mean, (double)was.mean);    // not yet
    estimate_refresh(&w.est);
    ck_assert_double_eq_tol((double)(cell(0, 0, -1).mean - was.mean), log(2), 0.05);
    ck_assert_double_gt((double)(cell(0, 1, -1).mean - other.mean), 0.1);
}

TEST(many_measurements_converge)
{
    struct rng chance;
    const double truth = (double)cell(1, 2, 0).mean - 0.5;

    rng_init(&chance, 2, "refine");
    for (int i = 0; i < 200; i++) {
        struct measurement m = speed_of(1, 2, 0, exp(truth + 0.05 * rng_normal(&chance)));
        learn(&m);
    }
    ck_assert_double_eq_tol((double)cell(1, 2, 0).mean, truth, 0.05);
    ck_assert_double_lt((double)cell(1, 2, 0).sd, 0.06);
    ck_assert_int_eq(r.n_measurements, 200);
    ck_assert_double_lt(r.sum_abs_error / 200, 0.08);
    ck_assert_int_gt(r.n_covered, 150);
}

TEST(gangs_and_misfits_are_recorded_and_surprise_nobody)
{
    struct measurement m[] = { speed_of(0, 0, -1, 1e-3), speed_of(0, 0, -1, NAN) };
    struct cell_estimate was = cell(0, 0, -1);

    m[0].key.n_gpus = 4;
    m[1].fits = false;
    for (int i = 0; i < 2; i++)
        learn(&m[i]);
    ck_assert_double_eq((double)cell(0, 0, -1).mean, (double)was.mean);
    ck_assert_double_eq((double)cell(0, 0, -1).unfit, 1);
    ck_assert_int_eq(w.catalog.n_cells, 2);
    ck_assert_int_eq(r.n_measurements, 0);
    ck_assert_double_eq(r.sum_abs_error, 0);
}

TEST(what_is_no_measurement_is_refused_and_changes_nothing)
{
    struct measurement m[] = { speed_of(0, 0, -1, -1), speed_of(0, 0, -1, 5) };
    struct measurement limited = under(105, 1);
    struct err e = { 0 };

    learn(&limited);
    struct limit_bend bend = estimate_bend(&w.est, 0, 0);
    struct refiner was = r;
    m[1].watts = -1;
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(refine_take(&r, &m[i], &e), -EINVAL);
    ck_assert_int_eq(w.catalog.n_measurements, 1);
    ck_assert_int_eq(r.n_measurements, was.n_measurements);
    ck_assert_double_eq(r.sum_abs_error, was.sum_abs_error);
    ck_assert_double_eq(estimate_bend(&w.est, 0, 0).loss, bend.loss);
    ck_assert_double_eq(estimate_bend(&w.est, 0, 0).at, bend.at);
}

TEST(with_a_store_a_measurement_is_on_disk)
{
    char *dir = scratch_make(), path[256];
    struct catalog c;
    struct estimator est;
    struct store *store;
    struct workload load;
    struct err e = { 0 };
    int index;

    snprintf(path, sizeof path, "%s/store", dir);
    ck_assert_int_eq(store_open(path, STORE_CREATE, &store, &e), 0);
    catalog_init(&c);
    ck_assert_int_eq(catalog_load(&c, store, &e), 0);
    workload_init(&load, "w");
    ck_assert_int_eq(store_begin(store, &e), 0);
    ck_assert_int_eq(catalog_add_type(&c, gpu_type_builtin("v100"), &index, &e), 0);
    ck_assert_int_eq(catalog_add_workload(&c, &load, &index, &e), 0);
    ck_assert_int_eq(store_commit(store, &e), 0);
    estimator_init(&est, &c, 1);
    estimate_refresh(&est);
    refiner_init(&r, &c, &est);
    struct measurement m = speed_of(0, 0, -1, 3);
    take(&m);
    ck_assert_int_eq(count_rows(store, "measurements"), 1);
    m.throughput = 0;
    ck_assert_int_eq(refine_take(&r, &m, &e), -EINVAL);
    estimator_release(&est);
    catalog_release(&c);
    store_close(store);
    ck_assert_int_eq(store_open(path, STORE_CREATE, &store, &e), 0);
    catalog_init(&c);
    ck_assert_int_eq(catalog_load(&c, store, &e), 0);
    ck_assert_int_eq(c.n_measurements, 1);
    ck_assert_double_eq_tol(exp(c.cells[0].ln_speed), 3, 1e-9);
    catalog_release(&c);
    store_close(store);
    scratch_remove(dir);
}

/* ---- surprise ---- */

static const struct {
    double at;    // in standard deviations of a measurement
    double noise;
    int is_covered;
} intervals[] = { { 1.6, NAN, 1 },  { -1.6, NAN, 1 }, { 1.7, NAN, 0 },
                  { -1.7, NAN, 0 }, { 1.6, 2, 1 },    { 1.7, 2, 0 } };

EACH(an_interval_is_kept_on_both_sides_of_the_mean, intervals)
{
    struct cell_estimate is = cell(0, 0, 1);
    double noise = isnan(intervals[_i].noise) ? CATALOG_NOISE : intervals[_i].noise;
    double off = intervals[_i].at * hypot((double)is.sd, noise);
    struct measurement m = speed_of(0, 0, 1, exp((double)is.mean + off));

    m.noise = intervals[_i].noise;
    take(&m);
    ck_assert_int_eq(r.n_measurements, 1);
    ck_assert_int_eq(r.n_covered, intervals[_i].is_covered);
    ck_assert_double_eq_tol(r.sum_abs_error, fabs(m.throughput / (double)is.speed - 1), 1e-6);
}

TEST(errors_add_up)
{
    double speed = (double)cell(0, 0, -1).speed;
    struct measurement m[] = { speed_of(0, 0, -1, 1.5 * speed), speed_of(0, 0, -1, 0.75 * speed) };

    take(&m[0]);
    take(&m[1]);    // by what was believed before either
    ck_assert_int_eq(r.n_measurements, 2);
    ck_assert_double_eq_tol(r.sum_abs_error, 0.5 + 0.25, 1e-6);
}

/* Whoever is new may be measured before anybody has asked about it. */
static const struct {
    const char *name, *more;
    int workload, type, beside;
} newcomers[] = {
    { "a workload", "workload d\n", 3, 0, -1 },
    { "a neighbour", "workload d\n", 0, 0, 3 },
    { "a type", "type p100\n", 0, 3, -1 },
};

EACH(newcomers_are_met, newcomers)
{
    const double watts[] = { NAN, 140 };
    struct measurement m =
        speed_of(newcomers[_i].workload, newcomers[_i].type, newcomers[_i].beside, 10);

    world_add(&w, newcomers[_i].more);
    for (int i = 0; i < 4; i++) {    // without a limit and with one, with watts and without
        m.key.limit_w = i / 2 * 150;
        m.watts = watts[i % 2];
        take(&m);
        ck_assert_msg(r.n_measurements == i + 1, "%s", newcomers[_i].name);
    }
    ck_assert_int_eq(w.catalog.n_cells, 1);    // what the limit took was undone
    estimate_refresh(&w.est);
    ck_assert_double_eq_tol((double)cell(m.key.workload, m.key.gpu_type, m.key.neighbour).mean,
                            log(10), 0.2);
}

/* ---- limits ---- */

TEST(what_a_limit_shows_counts_as_without_it)
{
    const struct gpu_type *type = &w.catalog.types[0];
    double w0 = 0.8 * type->cap_w;
    int limit_w = (int)w0;    // the law takes peaks only, and watts tell
    struct limited at = limits_apply(type, limit_w, w0);
    struct measurement m = speed_of(0, 0, -1, 10 * at.speed);

    m.watts = at.watts;
    m.key.limit_w = limit_w;
    take(&m);
    const struct cell *seen = seen_alone();
    ck_assert_double_eq_tol(exp(seen->ln_speed), 10, 1e-3);
    ck_assert_double_eq_tol(exp(seen->ln_watts), w0, 1e-3 * w0);
    ck_assert_double_eq_tol(seen->ln_pace, log(at.speed), 1e-3);
    ck_assert_double_eq_tol(seen->ln_undone, -log(at.speed), 1e-3);
    ck_assert_int_eq(r.n_measurements, 1);
    ck_assert_int_eq(w.catalog.n_cells, 1);
}

/* What it draws under a limit, once it is known what it draws without. */
TEST(watts_under_a_limit_are_learned_too)
{
    const struct gpu_type *type = &w.catalog.types[0];
    struct measurement m = under(0, 1);

    m.watts = limits_bent(type, 105, 200, (struct limit_bend){ .loss = 1, .draw = 1.2 }).watts;
    m.key.limit_w = 105;
    take(&m);
    ck_assert_double_eq(estimate_bend(&w.est, 0, 0).draw, 1);    // of what, nobody knows
    for (int i = 0; i < 5; i++) {
        struct measurement free_of_it = under(0, 1);
        learn(&free_of_it);
    }
    for (int i = 0; i < 20; i++)
        learn(&m);
    ck_assert_double_eq_tol(estimate_bend(&w.est, 0, 0).draw, 1.2, 0.08);
}

/* Two share a GPU: by the law for what both are believed to draw. */
TEST(what_a_limit_shows_of_a_pair_counts_as_without_it)
{
    const int both[] = { 0, 1 };
    struct limited at = estimate_limited(&w.est, 0, both, NULL, 2, 120);
    struct measurement m = speed_of(0, 0, 1, 4 * at.speed);
    struct cell_key key = { .n_gpus = 1, .neighbour = 1 };

    m.key.limit_w = 120;
    ck_assert_double_lt(at.speed, 0.99);
    take(&m);
    ck_assert_double_eq_tol(exp(catalog_cell(&w.catalog, key)->ln_speed), 4, 1e-6);
    ck_assert_double_eq(estimate_bend(&w.est, 0, 0).at, 0);    // of limits it says nothing
}

TEST(what_a_limit_shows_is_less_sure_the_more_it_takes)
{
    struct measurement m = under(0, 1);

    m.noise = 10;    // but that it draws 200 W
    learn(&m);
    m = under(105, 1);
    m.noise = 0.01;
    take(&m);
    double pace = exp(seen_alone()->ln_pace);
    ck_assert_double_lt(pace, 0.8);
    ck_assert_double_eq_tol(cell_variance(seen_alone()),
                            0.01 * 0.01 + pow(LIMITS_ERROR * (1 - pace), 2), 1e-6);
}

static double pace_at(int limit_w)
{
    return estimate_limited(&w.est, 0, (int[]){ 0 }, NULL, 1, limit_w).speed;
}

static const enum estimator_kind kinds[] = { ESTIMATOR_HIERARCHICAL, ESTIMATOR_ROOFLINE };

EACH(what_limits_take_is_learned_from_speeds_under_two_of_them, kinds)
{
    const double law = 0.634;    // of 200 W at 105, cf. test_limits.c
    const double within = kinds[_i] == ESTIMATOR_ROOFLINE ? 0.06 : 0.03;    // it knows watts less

    estimate_use(&w.est, NULL, kinds[_i]);
    estimate_refresh(&w.est);
    for (int i = 0; i < 8; i++) {    // one limit tells nothing of limits
        struct measurement m = under(i == 0 ? 0 : 105, 1.6);
        m.noise = i == 0 ? 1 : m.noise;    // but that it draws 200 W
        learn(&m);
    }
    ck_assert_double_eq_tol(pace_at(105), law, within);
    ck_assert_double_eq_tol((double)cell(0, 0, -1).mean + log(pace_at(105)),
                            log(10) + 1.6 * log(law), within);
    for (int i = 0; i < 8; i++) {
        struct measurement m = under(0, 1.6);
        learn(&m);
    }
    ck_assert_double_eq_tol(log(pace_at(105)), 1.58 * log(law), within);
    ck_assert_double_eq_tol((double)cell(0, 0, -1).mean, log(10), within);
    ck_assert_double_eq_tol(estimate_bend(&w.est, 1, 0).loss, 1, 1e-6);    // another family
}

TEST(under_a_deep_limit_watts_say_nothing_about_other_ones)
{
    struct measurement m = under(105, 1);

    m.watts = 105;    // a little more than the law allows to anybody
    take(&m);
    ck_assert_int_eq(seen_alone()->n_watts, 0);
    double w0 = estimate_watts(&w.est, 0, (int[]){ 0 }, NULL, 1);
    double pace = limits_apply(&w.catalog.types[0], 105, w0).speed;
    ck_assert_double_eq_tol(exp(seen_alone()->ln_speed), m.throughput / pace, 1e-6);
}

TEST(of_gangs_and_misfits_limits_teach_nothing)
{
    struct measurement m[] = { under(0, 1.6), under(105, 1.6), under(0, 1), under(105, 1) };

    m[0].key.n_gpus = m[1].key.n_gpus = 2;
    for (int i = 2; i < 4; i++) {
        m[i].fits = false;
        m[i].throughput = m[i].watts = NAN;
    }
    for (int i = 0; i < 4; i++)
        learn(&m[i]);
    ck_assert_double_eq(estimate_bend(&w.est, 0, 0).loss, 1);
    ck_assert_double_eq(estimate_bend(&w.est, 0, 0).at, 0);
    ck_assert_double_eq_tol(estimate_bend(&w.est, 0, 0).loss_sd, LIMITS_LOSS_SD, 1e-9);
}

/* ---- whoever asks in between changes nothing ---- */

static struct measurement random_measurement(struct rng *chance, int n_workloads)
{
    const int limits[] = { 0, 0, 105, 150 };
    int neighbour = rng_below(chance, 3) ? -1 : (int)rng_below(chance, (uint64_t)n_workloads);
    struct measurement m = speed_of((int)rng_below(chance, (uint64_t)n_workloads), 0, neighbour,
                                    rng_between(chance, 2, 20));

    m.key.limit_w = limits[rng_below(chance, 4)];
    m.watts = neighbour < 0 && rng_below(chance, 2) ? rng_between(chance, 80, 140) : (double)NAN;
    if (!isnan(m.watts) && rng_below(chance, 2))
        m.throughput = NAN;    // it told nobody
    return m;
}

static void ask_some(struct world *of, struct rng *whim)
{
    estimate_meet(&of->est);
    for (int i = 0; i < 8; i++) {
        int n = of->est.n_workloads,
            both[] = { (int)rng_below(whim, (uint64_t)n), (int)rng_below(whim, (uint64_t)n) };
        estimate_limited(&of->est, 0, both, NULL, 2, 105);
    }
}

/* A newcomer, or nothing. */
static const char *news(struct rng *chance, int i)
{
    static const char *const types[] = { "type p100\n", "type t4\n" };
    static char line[32];

    snprintf(line, sizeof line, "workload w%d\n", i);
    switch (rng_below(chance, 4)) {
    case 0:
        return types[rng_below(chance, 2)];
    case 1:
        return line;
    default:
        return "";
    }
}

/* Now and then somebody writes down something else of a workload. */
static void describe(struct world *of, int i)
{
    struct workload more = of->catalog.workloads[i % 3];
    int index;

    more.params = 1e6 * (i + 1);
    if (i % 4 == 0)
        ck_assert_int_eq(catalog_set_workload(&of->catalog, &more, &index, NULL), 0);
}

/* Bit for bit: of a daemon that is asked over HTTP, and a record that is run again. */
TIMES(what_is_recorded_does_not_depend_on_what_was_asked_in_between, 4)
{
    struct world curious;
    struct refiner other;
    struct rng chance, whim;

    rng_init(&chance, (uint64_t)_i, "refine");
    rng_init(&whim, (uint64_t)_i, "whim");
    world_init(&curious, three);
    estimate_use(&curious.est, NULL, ESTIMATOR_HIERARCHICAL);
    estimate_refresh(&curious.est);
    refiner_init(&other, &curious.catalog, &curious.est);
    for (int i = 0; i < 120; i++) {
        struct measurement m = random_measurement(&chance, w.catalog.n_workloads);
        take(&m);
        ck_assert_int_eq(refine_take(&other, &m, NULL), 0);
        if (i % 10 == 0) {
            const char *line = news(&chance, i);
            world_add(&w, line);
            world_add(&curious, line);
            describe(&w, i);
            describe(&curious, i);
        }
        if (rng_below(&whim, 3) == 0)
            ask_some(&curious, &whim);
        if (rng_below(&chance, 8) == 0) {
            estimate_refresh(&w.est);
            estimate_refresh(&curious.est);
        }
    }
    ck_assert_int_eq(w.catalog.n_cells, curious.catalog.n_cells);
    for (int i = 0; i < w.catalog.n_cells; i++)
        ck_assert_msg(w.catalog.cells[i].ln_speed == curious.catalog.cells[i].ln_speed &&
                          w.catalog.cells[i].ln_watts == curious.catalog.cells[i].ln_watts,
                      "cell %d of %d: %.9g, not %.9g", i, w.catalog.n_cells,
                      curious.catalog.cells[i].ln_speed, w.catalog.cells[i].ln_speed);
    ck_assert_double_eq(r.sum_abs_error, other.sum_abs_error);
    ck_assert_int_eq(r.n_covered, other.n_covered);
    world_release(&curious);
}
