#include "catalog/drift.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "catalog/catalog.h"
#include "store/store.h"
#include "unit/catalog/stored.h"
#include "unit/suite.h"

static void set_up_names(void)
{
    static const char *const types[] = { "k80", "v100", "a100" };
    static const char *const workloads[] = { "a", "b", "c", "d" };
    struct workload w;
    int i;

    set_up();
    for (int t = 0; t < 3; t++)
        ck_assert_int_eq(catalog_add_type(&c, &(struct gpu_type){ .name = types[t] }, &i, NULL), 0);
    for (int n = 0; n < 4; n++) {
        workload_init(&w, workloads[n]);
        ck_assert_int_eq(catalog_add_workload(&c, &w, &i, NULL), 0);
    }
}

FIXTURE(set_up_names, tear_down)

static const struct cell *record(int workload, int type, double steps_s, double time_s)
{
    struct measurement m = {
        .key = { .workload = workload, .gpu_type = type, .neighbour = -1, .n_gpus = 1 },
        .fits = true,
        .throughput = steps_s,
        .watts = 20 * steps_s,
        .time_s = time_s,
        .noise = 0.05,
    };

    ck_assert_int_eq(catalog_record(&c, &m, 0, NULL), 0);
    return catalog_cell(&c, m.key);
}

/* 'n' measurements around 'steps_s', as noisy as they say. */
static const struct cell *record_noisy(struct rng *rng, int workload, int type, double steps_s,
                                       int n)
{
    const struct cell *cell = NULL;

    for (int i = 0; i < n; i++)
        cell = record(workload, type, steps_s * exp(0.05 * rng_normal(rng)), i);
    return cell;
}

SPAN(steady_noise_never_fires, 1, 6)
{
    struct rng rng;

    rng_init(&rng, (uint64_t)_i, "test-drift");
    const struct cell *cell = record_noisy(&rng, 0, 0, 10, 10000);
    ck_assert_int_eq(cell->n_drifts, 0);
    ck_assert_double_eq_tol(cell->ln_speed, log(10), 0.002);
}

SPAN(noise_larger_than_stated_is_no_drift, 1, 6)
{
    struct rng rng;
    const struct cell *cell = NULL;

    rng_init(&rng, (uint64_t)_i, "test-drift");
    for (int i = 0; i < 2000; i++)
        cell = record(0, 0, 10 * exp(rng_normal(&rng)), i);    // twenty times
    ck_assert_int_eq(cell->n_drifts, 0);
}

/* 'n_before' steady measurements, then others: is it noticed, and within how many? */
static const struct {
    const char *name;
    int n_before;
    double factor;
    int n_after;
    int want_within;    // 0: never
} steps[] = {
    { "a step of 20 % up", 20, 1.2, 20, 10 },
    { "a step of 20 % down", 20, 0.8, 20, 10 },
    { "the same after a long time", 500, 1.2, 20, 6 },
    { "a speed twice as high", 20, 2, 20, 4 },
    { "a step of 10 %", 100, 1.1, 30, 15 },
    { "one outlier", 20, 3, 1, 0 },
    { "two outliers", 20, 3, 2, 0 },
    { "nothing at all", 20, 1, 200, 0 },
};

EACH(a_step_is_noticed_and_the_mean_follows, steps)
{
    struct rng rng;
    const struct cell *cell = NULL;
    int n_until = 0;

    for (uint64_t seed = 1; seed <= 5; seed++) {
        tear_down();
        set_up_names();
        rng_init(&rng, seed, "test-drift");
        record_noisy(&rng, 0, 0, 10, steps[_i].n_before);
        n_until = 0;
        for (int i = 0; i < steps[_i].n_after; i++) {
            cell = record(0, 0, 10 * steps[_i].factor * exp(0.05 * rng_normal(&rng)), 1000 + i);
            n_until = cell->n_drifts && !n_until ? i + 1 : n_until;
        }
        ck_assert_msg(steps[_i].want_within ? n_until > 0 && n_until <= steps[_i].want_within
                                            : n_until == 0,
                      "%s: seed %d: noticed after %d", steps[_i].name, (int)seed, n_until);
        if (!n_until)
            continue;
        ck_assert_double_eq(cell->drift_s, 1000 + n_until - 1);
        ck_assert_double_eq_tol(cell->ln_speed, log(10 * steps[_i].factor), 0.05);
        ck_assert_double_eq_tol(cell->ln_watts, log(200 * steps[_i].factor), 0.12);
        ck_assert(sqrt(cell_variance(cell)) < 0.05);
        check_reload();
    }
}

TEST(three_workloads_that_change_on_a_type_cast_doubt_on_all_of_it)
{
    const struct cell *cell;
    double before = 0;

    for (int i = 0; i < 40; i++)
        for (int w = 0; w < 4; w++)
            for (int t = 0; t < 2; t++)
                before = cell_variance(record(w, t, 10, i));
    for (int i = 0; i < 6; i++)
        for (int w = 0; w < 3; w++)
            record(w, 0, 13, 100 + i);    // a new driver; nobody runs the fourth workload
    ck_assert_int_eq(c.type_drift[0].n_drifts, 1);
    ck_assert_int_eq(c.type_drift[1].n_drifts, 0);
    ck_assert_int_eq(c.workload_drift[0].n_drifts, 0);
    cell = catalog_cell(&c, (struct cell_key){ 3, 0, -1, 1, false, 0, CATALOG_SITE });
    ck_assert_double_eq_tol(cell_variance(cell), before + CATALOG_DRIFT * CATALOG_DRIFT, 1e-12);
    cell = catalog_cell(&c, (struct cell_key){ 3, 1, -1, 1, false, 0, CATALOG_SITE });
    ck_assert_double_eq_tol(cell_variance(cell), before, 1e-12);
    check_reload();
    ck_assert_int_eq(record(3, 0, 13, 200)->n_behind, 0);    // measured anew: as good as ever
}

TEST(cells_that_tell_of_the_change_are_not_behind_it)
{
    for (int i = 0; i < 40; i++)
        for (int w = 0; w < 4; w++)
            record(w, 0, 10, i);
    for (int i = 0; c.type_drift[0].n_drifts == 0 && i < 30; i++)
        record(i % 3, 0, 13, 100 + i);    // stop at the alarm
    ck_assert_int_eq(c.type_drift[0].n_drifts, 1);
    ck_assert_uint_eq(c.n_drifts, 1);
    for (int w = 0; w < 4; w++) {
        const struct cell *cell =
            catalog_cell(&c, (struct cell_key){ w, 0, -1, 1, false, 0, CATALOG_SITE });
        ck_assert_int_eq(cell->n_drifts, w < 3);
        ck_assert_int_eq(cell->n_behind, w == 3);
    }
    check_reload();
}

TEST(a_workload_that_changes_on_two_types_is_doubted_on_the_third)
{
    const struct cell *cell;

    for (int i = 0; i < 20; i++)
        for (int w = 0; w < 2; w++)
            for (int t = 0; t < 3; t++)
                record(w, t, 10, i);
    for (int i = 0; i < 6; i++)
        for (int t = 0; t < 2; t++)
            record(0, t, 7, 100 + i);    // a new container
    ck_assert_int_eq(c.workload_drift[0].n_drifts, 1);
    ck_assert_int_eq(c.workload_drift[1].n_drifts, 0);
    cell = catalog_cell(&c, (struct cell_key){ 0, 2, -1, 1, false, 0, CATALOG_SITE });
    ck_assert_int_eq(cell->n_behind, 1);
    cell = catalog_cell(&c, (struct cell_key){ 1, 0, -1, 1, false, 0, CATALOG_SITE });
    ck_assert_int_eq(cell->n_behind, 0);
    check_reload();
}

/* Cells that change, as (other, measurements since the one before); three are needed. */
static const struct {
    const char *name;
    int other[4], gap[4];
    int want;    // which of them is the last straw; -1: none
} runs[] = {
    { "three within a short run", { 1, 2, 3, 4 }, { 0, 10, 10, 0 }, 2 },
    { "the same one again does not count", { 1, 1, 1, 2 }, { 0, 10, 10, 10 }, -1 },
    { "those of long ago do not count", { 1, 2, 3, 4 }, { 0, DRIFT_RUN + 1, 10, 10 }, 3 },
};

EACH(several_changes_within_a_short_run_are_no_coincidence, runs)
{
    struct drift_watch w = { 0 };
    int fired = -1;

    for (int i = 0; i < 4 && fired < 0; i++) {
        w.n_seen += (uint32_t)runs[_i].gap[i];
        if (drift_watch_note(&w, runs[_i].other[i], 3, i))
            fired = i;
    }
    ck_assert_msg(fired == runs[_i].want, "%s: %d", runs[_i].name, fired);
    ck_assert_int_eq(w.n_drifts, fired >= 0);
}
