/* The jobs of scenarios: thinned to a load, serving over the day, from published traces. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "sim/trace/generate.h"
#include "study/scenario/jobs.h"
#include "unit/sim/drawing.h"
#include "unit/study/published.h"
#include "unit/suite.h"

/* 'n' jobs of 100 to 200 s of work, one every 10 s: a load of 3 on a capacity of 5. */
static struct trace heavy(struct drawing *s, int n)
{
    struct trace t = { .name = "heavy", .n_jobs = n };

    t.jobs = ARENA_ARRAY(&s->arena, struct trace_job, (size_t)n);
    for (int i = 0; i < n; i++)
        t.jobs[i] = (struct trace_job){
            .name = arena_printf(&s->arena, "j%d", i),
            .at_s = 10 * i,
            .workload = "big",
            .steps = 10 * (100 + i % 100),
            .deadline_s = NAN,
            .n_gpus = 1,
            .max_gpus = 1,
        };
    return t;
}

TEST(what_is_offered_is_counted_on_the_reference)
{
    struct drawing s;

    drawing_open(&s, NULL, 1);
    struct trace_job jobs[] = {
        { .workload = "big", .steps = 100, .n_gpus = 1, .at_s = 0 },
        { .workload = "small", .is_inference = true, .rate = 2, .duration_s = 60, .at_s = 4 },
        { .workload = "huge",
          .steps = 50,
          .n_gpus = 1,
          .at_s = 10 },    // does not fit the reference
    };
    const struct trace t = { .n_jobs = 3, .jobs = jobs };
    ck_assert_double_eq_tol(jobs_offered_s(&s.draw, &s.cluster, &t), 10 + 30 + 10, 1e-9);
    ck_assert_double_eq_tol(jobs_load(&s.draw, &s.cluster, &t), 50.0 / (5 * 10), 1e-9);
    drawing_close(&s);
}

TEST(a_gang_offers_what_it_keeps_busy)
{
    struct drawing s;

    drawing_open(&s, NULL, 1);
    struct trace_job gang = { .workload = "big", .steps = 100, .n_gpus = 2 };
    const struct trace t = { .n_jobs = 1, .jobs = &gang };
    const double speed = truth_gang_speed(&s.small.truth, BIG, SLOW, 2, 0);
    ck_assert_double_lt(speed, 20);
    ck_assert_double_eq_tol(jobs_offered_s(&s.draw, &s.cluster, &t), 2 * 100 / speed, 1e-9);
    gang.n_gpus = 4;    // more than a node has
    ck_assert_double_eq_tol(jobs_offered_s(&s.draw, &s.cluster, &t),
                            4 * 100 / truth_gang_speed(&s.small.truth, BIG, SLOW, 4, 1), 1e-9);
    drawing_close(&s);
}

static const struct {
    const char *name;
    double load;
    int n_jobs;
    int low, high;    // jobs that are left
} thinned[] = {
    { "a heavy trace loses jobs", 0.9, 0, 1500, 2500 },
    { "the lighter the load, the fewer are left", 0.3, 0, 450, 850 },
    { "a load above its own keeps all of them", 4, 0, 6000, 6000 },
    { "no more than asked for are kept", 0.9, 1000, 1000, 1000 },
};

EACH(a_trace_is_thinned_to_the_load, thinned)
{
    struct drawing s;
    struct err e = { 0 };

    drawing_open(&s, NULL, 1);
    struct trace t = heavy(&s, 6000);
    ck_assert_msg(jobs_thin(&s.arena, &s.draw, &s.cluster, thinned[_i].load, thinned[_i].n_jobs, 5,
                            &t, &e) == 0,
                  "%s", e.text);
    ck_assert_double_eq_tol(jobs_load(&s.draw, &s.cluster, &t) / thinned[_i].load, 1, 1e-4);
    ck_assert_msg(t.n_jobs >= thinned[_i].low && t.n_jobs <= thinned[_i].high, "%s: %d",
                  thinned[_i].name, t.n_jobs);
    ck_assert_double_eq(t.jobs[0].at_s, 0);
    for (int i = 0; i < t.n_jobs; i++) {
        int number = 0;

        ck_assert_int_eq(sscanf(t.jobs[i].name, "j%d", &number), 1);
        ck_assert_double_eq(t.jobs[i].steps, 10 * (100 + number % 100));    // its length intervals
        if (i > 0)
            ck_assert_double_ge(t.jobs[i].at_s, t.jobs[i - 1].at_s);
    }
    drawing_close(&s);
}

TEST(what_is_kept_depends_on_the_seed_alone)
{
    struct drawing s;
    struct err e;

    drawing_open(&s, NULL, 1);
    struct trace one = heavy(&s, 3000), same = heavy(&s, 3000), other = heavy(&s, 3000);
    ck_assert_int_eq(jobs_thin(&s.arena, &s.draw, &s.cluster, 0.5, 100, 5, &one, &e), 0);
    ck_assert_int_eq(jobs_thin(&s.arena, &s.draw, &s.cluster, 0.5, 100, 5, &same, &e), 0);
    ck_assert_int_eq(jobs_thin(&s.arena, &s.draw, &s.cluster, 0.5, 100, 6, &other, &e), 0);
    ck_assert_str_eq(one.jobs[0].name, same.jobs[0].name);
    ck_assert_double_eq(one.jobs[99].at_s, same.jobs[99].at_s);
    ck_assert_str_ne(one.jobs[0].name, other.jobs[0].name);
    drawing_close(&s);
}

TEST(a_trace_that_leaves_nothing_is_an_error)
{
    struct drawing s;
    struct err e = { 0 };

    drawing_open(&s, NULL, 1);
    struct trace t = heavy(&s, 3);
    ck_assert_int_lt(jobs_thin(&s.arena, &s.draw, &s.cluster, 1e-9, 0, 5, &t, &e), 0);
    ck_assert_ptr_nonnull(strstr(e.text, "heavy"));
    drawing_close(&s);
}

/* ---- services ---- */

static const double loads[] = { 0.6, 0 };
static const struct scenario served = {
    .name = "served",
    .jobs = JOBS_SERVED,
    .served = 1.0 / 3,
    .n_jobs = 60,
    .loads = loads,
};

static struct trace serve(struct drawing *s, int seed)
{
    const struct study_run k = { .scenario = &served, .load = 0.6, .seed = seed, .without = "" };
    struct trace t;
    struct err e = { 0 };

    ck_assert_msg(jobs_make(&s->arena, &k, "/nowhere", &s->cluster, &s->small.truth, &t, &e) == 0,
                  "%s", e.text);
    return t;
}

/* What servers offer, all of it, and what that is of the cluster's capacity. */
static void count_served(struct drawing *s, int seed, double *served_s, double *all_s, double *load)
{
    struct trace t = serve(s, seed), servers = { 0 };

    servers.jobs = ARENA_ARRAY(&s->arena, struct trace_job, (size_t)t.n_jobs);
    for (int i = 0; i < t.n_jobs; i++)
        if (t.jobs[i].is_inference)
            servers.jobs[servers.n_jobs++] = t.jobs[i];
    ck_assert_int_eq(t.n_jobs - servers.n_jobs, 60);
    *served_s += jobs_offered_s(&s->draw, &s->cluster, &servers);
    *all_s += jobs_offered_s(&s->draw, &s->cluster, &t);
    *load = jobs_load(&s->draw, &s->cluster, &servers);
}

TEST(a_third_of_the_work_is_served)
{
    double served_s = 0, all_s = 0, load;
    struct drawing s;

    drawing_open(&s, NULL, 1);
    for (int seed = 1; seed <= 20; seed++) {
        count_served(&s, seed, &served_s, &all_s, &load);
        ck_assert_double_eq_tol(load, 0.2, 0.02);    // nothing but the ends of days is chance
    }
    ck_assert_double_eq_tol(served_s / all_s, 1.0 / 3, 0.03);    // training is drawn
    drawing_close(&s);
}

TEST(a_service_is_a_chain_of_hours_whose_rates_follow_the_day)
{
    const struct trace_job *before = NULL;
    double low = INFINITY, high = 0;
    struct drawing s;
    int n = 0;

    drawing_open(&s, NULL, 1);
    struct trace t = serve(&s, 4);
    for (int i = 0; i < t.n_jobs; i++) {
        const struct trace_job *j = &t.jobs[i];

        if (j->owner == NULL || strcmp(j->owner, "service-001") != 0)
            continue;
        ck_assert(j->is_inference);
        ck_assert_double_eq(j->duration_s, 3600);
        if (before != NULL) {
            ck_assert_double_eq_tol(j->at_s, before->at_s + 3600, 1e-6);
            ck_assert_str_eq(j->workload, before->workload);
        }
        before = j;
        low = fmin(low, j->rate);
        high = fmax(high, j->rate);
        n++;
    }
    ck_assert_int_gt(n, 24);
    ck_assert_double_gt(low, 0);
    ck_assert_double_le(low, 0.55 * high);    // at least half as deep as its peak
    drawing_close(&s);
}

/* ---- promises ---- */

TEST(tight_promises_are_drawn_where_the_scenario_says)
{
    const struct scenario tight = {
        .name = "t", .n_jobs = 200, .promise_low = 0.7, .promise_high = 1.0, .loads = loads
    };
    const struct study_run k = { .scenario = &tight, .load = 0.6, .seed = 2, .without = "" };
    struct drawing s;
    struct trace t;
    struct err e;
    int n_hard = 0;

    drawing_open(&s, NULL, 1);
    ck_assert_int_eq(jobs_make(&s.arena, &k, "/nowhere", &s.cluster, &s.small.truth, &t, &e), 0);
    for (int i = 0; i < t.n_jobs; i++) {
        const double of =
            t.jobs[i].min_throughput / (strcmp(t.jobs[i].workload, "big") == 0 ? 10 : 4);

        ck_assert_double_ge(of, 0.7);
        n_hard += of > 1;
    }
    ck_assert(n_hard > 5 && n_hard < 45);    // one in ten
    drawing_close(&s);
}

/* ---- published traces, where they are ---- */

static const struct {
    const char *scenario;
    double load;
    int n_least;
} thin_ones[] = { { "msr", 0.3, 300 }, { "msr", 0.9, 500 }, { "philly", 0.6, 1000 } };

EACH(published_traces_are_thinned_too, thin_ones)
{
    struct study_run k = {
        .scenario = scenario_by_name(thin_ones[_i].scenario),
        .load = thin_ones[_i].load,
        .policy = "gogh",
        .seed = 11,
        .has_sleep = true,
        .without = "",
    };
    const char *data;
    struct trace_draw d;
    struct study_inputs s;
    struct arena a;
    struct err e = { 0 };

    log_set_level(LOG_ERROR);
    arena_init(&a);
    data = published(&a, k.scenario);
    if (data == NULL) {
        arena_release(&a);
        return;
    }
    ck_assert_msg(scenario_open(&a, &k, data, &s, &e) == 0, "%s", e.text);
    ck_assert_int_eq(trace_draw_init(&d, &a, &s.ground.truth, &s.cluster, NULL, 1, &e), 0);
    ck_assert_double_eq_tol(jobs_load(&d, &s.cluster, &s.trace) / k.load, 1, 1e-4);
    ck_assert_int_le(s.trace.n_jobs, 1000);
    ck_assert_int_ge(s.trace.n_jobs, thin_ones[_i].n_least);
    for (int i = 0; i < s.trace.n_jobs; i++) {
        ck_assert_int_le(s.trace.jobs[i].n_gpus, 12);
        ck_assert_double_gt(s.trace.jobs[i].min_throughput, 0);
    }
    scenario_close(&s);
    arena_release(&a);
}
