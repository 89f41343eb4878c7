/* One run of a study, against the simulator taken in one go. */
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "catalog/cluster/state.h"
#include "optimize/policy/solver.h"
#include "sim/sim.h"
#include "sim/world/world.h"
#include "study/run.h"
#include "unit/suite.h"

static const struct scenario small = {
    .name = "small",
    .title = "made up",
    .cluster = "node a p100:2\nnode b v100:1 k80:1\n",
    .truth = TRUTH_BUILTIN,
    .n_jobs = 120,
    .first_seed = 11,
    .n_seeds = 1,
};

static struct study_run key_of(const char *policy, int seed)
{
    return (struct study_run){ .scenario = &small,
                               .load = 0.8,
                               .policy = policy,
                               .seed = seed,
                               .has_sleep = true,
                               .without = "",
                               .knows = KNOWS_NOTHING };
}

struct fixture {
    struct arena arena;
    struct study_run key;
    struct study_result got;
    struct study_inputs inputs;
    struct sim *sim;    // of the same run
};

static void fixture_init(struct fixture *f, struct study_run k)
{
    struct err e = { 0 };

    *f = (struct fixture){ .key = k };
    arena_init(&f->arena);
    ck_assert_msg(study_run_do(&f->arena, &k, NULL, &f->got, &e) == 0, "%s", e.text);
    ck_assert_msg(scenario_open(&f->arena, &k, NULL, &f->inputs, &e) == 0, "%s", e.text);
    struct sim_options o = { .cluster = &f->inputs.cluster,
                             .trace = &f->inputs.trace,
                             .truth = &f->inputs.ground.truth,
                             .policy = k.policy,
                             .seed = (uint64_t)k.seed };
    ck_assert_msg(sim_create(&o, &f->sim, &e) == 0, "%s", e.text);
}

static void fixture_release(struct fixture *f)
{
    sim_destroy(f->sim);
    scenario_close(&f->inputs);
    arena_release(&f->arena);
}

static void go_to(struct fixture *f, double until_s)
{
    struct err e = { 0 };

    ck_assert_msg(sim_advance(f->sim, until_s, &e) >= 0, "%s", e.text);
}

#define NEAR(got, want) ck_assert_double_eq_tol((got), (want), 1e-9 * (1 + fabs((double)(want))))

static const char *const policies[] = { "greedy", "fifo-random", "gogh" };

TIMES(looking_at_a_run_does_not_change_it, 3)
{
    struct sim_result want;
    struct fixture f;

    fixture_init(&f, key_of(policies[_i], 11));
    go_to(&f, INFINITY);
    sim_result(f.sim, &want);
    ck_assert_int_gt(f.got.n_intervals, 0);
    ck_assert(f.got.mean_jct_s == want.mean_jct_s && f.got.p95_jct_s == want.p95_jct_s);
    ck_assert(f.got.promise_attainment == want.promise_attainment);
    ck_assert(f.got.energy_kwh == want.energy_j / 3.6e6 && f.got.work_s == want.work_s);
    ck_assert(f.got.moves == want.n_moves && f.got.decisions == want.n_decisions);
    ck_assert(f.got.measurements == want.n_measurements && f.got.makespan_s == want.makespan_s);
    ck_assert(f.got.jobs == 120 && f.got.finished == 120);
    bool has_bound = strcmp(policies[_i], "gogh") == 0;
    ck_assert_int_eq(f.got.gap_mean_w == want.gap_mean.watts, has_bound);
    ck_assert_int_eq(f.got.gap_worst_ratio == want.gap_worst.ratio, has_bound);
    ck_assert_int_eq(isnan(f.got.gap_worst_varying_ratio), !has_bound);
    fixture_release(&f);
}

TEST(the_window_is_from_a_fifth_of_the_arrivals_to_their_end)
{
    double energy_j, work_s, gpu_s;
    struct fixture f;

    fixture_init(&f, key_of("greedy", 11));
    go_to(&f, f.inputs.arrivals_s / 5);
    energy_j = world_energy_j(sim_world(f.sim));
    work_s = world_work_s(sim_world(f.sim));
    gpu_s = world_gpu_s(sim_world(f.sim));
    go_to(&f, f.inputs.arrivals_s);
    energy_j = world_energy_j(sim_world(f.sim)) - energy_j;
    work_s = world_work_s(sim_world(f.sim)) - work_s;
    gpu_s = world_gpu_s(sim_world(f.sim)) - gpu_s;
    NEAR(f.got.energy_j_per_work, energy_j / work_s);
    NEAR(f.got.allocation_efficiency, work_s / gpu_s);
    fixture_release(&f);
}

TEST(slices_add_up_to_the_run)
{
    double energy_j = 0, work_s = 0, last_s = 0, errors = 0;
    long measured = 0;
    struct fixture f;

    fixture_init(&f, key_of("greedy", 11));
    go_to(&f, INFINITY);
    ck_assert_int_gt(f.got.n_slices, 100);
    ck_assert(f.got.slices[99].time_s == f.inputs.arrivals_s);
    for (int i = 0; i < f.got.n_slices; i++) {
        const struct study_slice *s = &f.got.slices[i];

        ck_assert(s->time_s > last_s && s->measurements >= measured);
        energy_j += s->watts * (s->time_s - last_s);
        work_s += s->work_per_s * (s->time_s - last_s);
        if (s->measurements > measured)
            errors += s->error * (double)(s->measurements - measured);
        else
            ck_assert(isnan(s->error));
        last_s = s->time_s;
        measured = s->measurements;
    }
    NEAR(energy_j, f.got.energy_kwh * 3.6e6);
    NEAR(work_s, f.got.work_s);
    NEAR(errors / (double)measured, f.got.prediction_error);
    ck_assert_int_eq(measured, f.got.measurements);
    ck_assert(last_s == sim_now_s(f.sim));
    ck_assert_int_eq(f.got.slices[f.got.n_slices - 1].waiting, 0);
    fixture_release(&f);
}

TEST(types_add_up_to_the_cluster)
{
    double hours = 0, energy_kwh = 0;
    int n_gpus = 0;
    struct fixture f;

    fixture_init(&f, key_of("greedy", 11));
    go_to(&f, INFINITY);
    ck_assert_int_eq(f.got.n_types, 3);
    for (int i = 0; i < 3; i++) {
        hours += f.got.types[i].gpu_hours;
        energy_kwh += f.got.types[i].energy_kwh;
        n_gpus += f.got.types[i].n_gpus;
    }
    NEAR(hours, world_gpu_s(sim_world(f.sim)) / 3600);
    NEAR(energy_kwh, f.got.energy_kwh);
    ck_assert_int_eq(n_gpus, 4);
    ck_assert_str_eq(f.got.types[0].name, "p100");
    ck_assert_int_eq(f.got.types[0].n_gpus, 2);
    fixture_release(&f);
}

TEST(attainment_of_slices_and_of_the_first_hundred_jobs_lies_around_the_whole)
{
    double low = INFINITY, high = 0;
    struct fixture f;

    fixture_init(&f, key_of("fifo-random", 11));
    for (int i = 0; i < f.got.n_slices; i++) {
        low = fmin(low, f.got.slices[i].attainment);
        high = fmax(high, f.got.slices[i].attainment);
        ck_assert(i < 100 || isnan(f.got.slices[i].attainment));    // nobody arrives any more
    }
    ck_assert(low < f.got.promise_attainment && f.got.promise_attainment < high);
    low = fmin(f.got.first_100_attainment, f.got.next_attainment);
    high = fmax(f.got.first_100_attainment, f.got.next_attainment);
    ck_assert(low < f.got.promise_attainment && f.got.promise_attainment < high);
    ck_assert(f.got.mean_queue_s > 0 && f.got.mean_queue_s < f.got.mean_jct_s);
    fixture_release(&f);
}

TEST(stays_are_of_the_middle_hours_of_every_seed)
{
    struct fixture f;

    fixture_init(&f, key_of("greedy", 11));
    NEAR(f.got.intervals_to_s - f.got.intervals_from_s, fmin(6 * 3600.0, f.inputs.arrivals_s));
    NEAR(f.got.intervals_to_s + f.got.intervals_from_s, f.inputs.arrivals_s);
    ck_assert_int_gt(f.got.n_intervals, 0);
    for (int i = 0; i < f.got.n_intervals; i++) {
        const struct study_interval *s = &f.got.intervals[i];

        ck_assert(s->from_s >= f.got.intervals_from_s && s->to_s <= f.got.intervals_to_s);
        ck_assert(s->from_s < s->to_s && s->gpu >= 0 && s->gpu < 4);
        ck_assert(i == 0 || s[-1].gpu < s->gpu ||
                  (s[-1].gpu == s->gpu && s[-1].from_s <= s->from_s));
    }
    fixture_release(&f);
    fixture_init(&f, key_of("greedy", 12));
    ck_assert_int_gt(f.got.n_intervals, 0);
    ck_assert(study_run_keeps_intervals(&f.key, &f.inputs));
    fixture_release(&f);
}

/* GPU-seconds that two jobs shared in the strip. */
static double shared_s(const struct study_result *r)
{
    double sum = 0;

    for (int i = 0; i < r->n_intervals; i++) {
        for (int k = i + 1; k < r->n_intervals && r->intervals[k].gpu == r->intervals[i].gpu; k++)
            sum +=
                fmax(fmin(r->intervals[i].to_s, r->intervals[k].to_s) - r->intervals[k].from_s, 0);
    }
    return sum;
}

TEST(a_lever_that_is_taken_away_is_not_used)
{
    struct study_run k = key_of("gogh", 11);
    struct study_result with, without;
    struct err e = { 0 };
    struct arena a;

    arena_init(&a);
    k.load = 2;    // so that somebody has to share
    ck_assert_msg(study_run_do(&a, &k, NULL, &with, &e) == 0, "%s", e.text);
    k.without = "sharing";
    ck_assert_msg(study_run_do(&a, &k, NULL, &without, &e) == 0, "%s", e.text);
    ck_assert(shared_s(&with) > 0);
    ck_assert(shared_s(&without) == 0);
    arena_release(&a);
}

TEST(the_bound_lies_below_and_has_no_schedule)
{
    struct study_run k = key_of("bound", 11);
    struct study_result bound, run;
    struct err e = { 0 };
    struct arena a;

    arena_init(&a);
    ck_assert_msg(study_run_do(&a, &k, NULL, &bound, &e) == 0, "%s", e.text);
    k.policy = "greedy";
    ck_assert_msg(study_run_do(&a, &k, NULL, &run, &e) == 0, "%s", e.text);
    ck_assert(bound.energy_kwh > 0 && bound.energy_kwh < run.energy_kwh);
    ck_assert(bound.energy_j_per_work > 0 && isnan(bound.promise_attainment));
    ck_assert(bound.n_slices == 0 && bound.n_intervals == 0 && bound.moves == 0);
    NEAR(bound.work_s, run.work_s);
    arena_release(&a);
}

/* The figures of a run at a price. */
static struct study_result priced(struct arena *a, struct study_run k, const double *delay_w,
                                  const double *promise_w)
{
    struct study_result r;
    struct err e = { 0 };

    k.delay_w = delay_w;
    k.promise_w = promise_w;
    ck_assert_msg(study_run_do(a, &k, NULL, &r, &e) == 0, "%s", e.text);
    return r;
}

static const double cheap_w = 5, dear_w = 2000;

/* Who is run at one price only would have done the same at another. */
static void check_minds(struct arena *a, const struct study_run *k)
{
    if (!study_run_minds_delay(k))
        ck_assert_msg(priced(a, *k, &cheap_w, NULL).energy_kwh ==
                          priced(a, *k, &dear_w, NULL).energy_kwh,
                      "%s minds the price of delay", k->policy);
    if (!study_run_minds_promise(k))
        ck_assert_msg(priced(a, *k, NULL, &cheap_w).energy_kwh ==
                          priced(a, *k, NULL, &dear_w).energy_kwh,
                      "%s minds the price of a promise", k->policy);
}

TIMES(who_minds_no_price_does_the_same_at_any, 2)
{
    struct study_run k = key_of("gogh", 11);
    struct scenario few = small;
    struct arena a;

    arena_init(&a);
    few.n_jobs = 40;
    k.scenario = &few;
    k.has_limits = _i == 1;
    for (int i = 0; solver_at(i) != NULL; i++) {
        k.policy = solver_at(i)->name;
        check_minds(&a, &k);
    }
    k.policy = "gogh";
    k.without = "joules";
    check_minds(&a, &k);
    arena_release(&a);
}

/* The price of delay decides which limits it chooses. */
TEST(who_only_chooses_limits_minds_the_price_of_delay)
{
    struct study_run k = key_of("fifo-fastest", 11);
    struct arena a;

    arena_init(&a);
    k.has_limits = true;
    ck_assert(study_run_minds_delay(&k));
    ck_assert(priced(&a, k, &cheap_w, NULL).energy_kwh < priced(&a, k, &dear_w, NULL).energy_kwh);
    arena_release(&a);
}

TEST(what_cannot_be_opened_is_told)
{
    struct scenario needs_data = small;
    struct study_run k = key_of("greedy", 11);
    struct study_result r;
    struct err e = { 0 };
    struct arena a;

    needs_data.truth = TRUTH_GAVEL;
    k.scenario = &needs_data;
    arena_init(&a);
    ck_assert_int_lt(study_run_do(&a, &k, "/nowhere", &r, &e), 0);
    ck_assert_msg(strstr(e.text, "/nowhere") != NULL, "%s", e.text);
    arena_release(&a);
}

TEST(planning_costs_more_than_not_planning)
{
    struct study_run gogh = key_of("gogh", 11), fifo = key_of("fifo-fastest", 11);

    ck_assert(study_run_cost(&gogh) > study_run_cost(&fifo) && study_run_cost(&fifo) > 0);
}
