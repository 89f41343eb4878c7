/* The planner against brute force: exact where it says so, never wrong about a bound. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "optimize/model/plan.h"
#include "optimize/exact/exact.h"
#include "optimize/optimize.h"
#include "optimize/model/problem.h"
#include "optimize/files/problem_make.h"
#include "unit/optimize/brute.h"
#include "unit/optimize/tiny.h"
#include "unit/suite.h"

#define NODES 20000000L
#define SAME 2e-6    // 'optimal' is within 1e-6, on either side

/* ---- one problem, one method ---- */

struct trial {
    struct arena arena;
    struct problem p;
    struct plan best, x;
    struct optimize_report report;
    const char *what;
    int seed;
};

static double scale_of(const struct trial *t)
{
    return 1 + fabs(t->best.cost_w) + problem_base_w(&t->p);
}

static void trial_open(struct trial *t, const char *what, int seed, int jobs, int gpus)
{
    t->what = what;
    t->seed = seed;
    arena_init(&t->arena);
    tiny_make(&t->arena, (uint64_t)seed, jobs, gpus, &t->p);
}

static void trial_best(struct trial *t)
{
    struct err e = { 0 };

    ck_assert_msg(problem_check(&t->p, &e) == 0, "%s, seed %d: %s", t->what, t->seed, e.text);
    ck_assert_msg(brute_solve(&t->arena, &t->p, NODES, &t->best), "%s, seed %d: too large", t->what,
                  t->seed);
}

/* Whatever the method: feasible, not below the optimum, and the bound is one. */
static void trial_run(struct trial *t, enum optimize_method method)
{
    struct optimize_options o = optimize_defaults;
    struct err e = { 0 };

    o.method = method;
    o.exact = exact_run;
    o.time_s = method == METHOD_EXACT ? 3600 : 0;
    o.nodes = method == METHOD_AUTO ? 0 : 2000;
    int rc = optimize_run(&t->arena, &t->p, &o, &t->x, &t->report, &e);
    ck_assert_msg(rc == 0, "%s, seed %d: %s", t->what, t->seed, e.text);
    rc = plan_check(&t->arena, &t->p, &t->x, &e);
    ck_assert_msg(rc == 0, "%s, seed %d: %s", t->what, t->seed, e.text);
    double base_w = problem_base_w(&t->p), best_w = t->best.cost_w;
    ck_assert_msg(t->x.cost_w >= best_w - SAME * scale_of(t),
                  "%s, seed %d: %.9g is below the optimum of %.9g", t->what, t->seed, t->x.cost_w,
                  best_w);
    ck_assert_msg(t->report.bound_w - base_w <= best_w + SAME * scale_of(t),
                  "%s, seed %d: a bound of %.9g above the optimum of %.9g", t->what, t->seed,
                  t->report.bound_w - base_w, best_w);
    ck_assert_double_eq_tol(t->report.cost_w, t->x.cost_w + base_w, SAME * scale_of(t));
}

static void expect_optimum(const struct trial *t)
{
    ck_assert_msg(t->report.status == STATUS_OPTIMAL, "%s, seed %d: not proven", t->what, t->seed);
    ck_assert_msg(t->x.cost_w <= t->best.cost_w + SAME * scale_of(t),
                  "%s, seed %d: %.9g called optimal, the optimum is %.9g", t->what, t->seed,
                  t->x.cost_w, t->best.cost_w);
}

/* ---- thousands of tiny problems ---- */

#define ROUND 20    // seeds in a loop of a test; so that none takes long

static void trial_seed(struct trial *t, int seed)
{
    trial_open(t, "tiny", seed, 2 + seed % 5, 1 + seed % 5);
    trial_best(t);
}

TIMES(exact_is_the_optimum, suite_size(8, 100))
{
    for (int seed = _i * ROUND; seed < (_i + 1) * ROUND; seed++) {
        struct trial t;
        trial_seed(&t, seed);
        trial_run(&t, METHOD_EXACT);
        expect_optimum(&t);
        arena_release(&t.arena);
    }
}

TIMES(auto_without_a_budget_is_the_optimum_too, suite_size(2, 15))
{
    for (int seed = _i * ROUND; seed < (_i + 1) * ROUND; seed++) {
        struct trial t;
        trial_seed(&t, 100000 + seed);
        trial_run(&t, METHOD_AUTO);
        expect_optimum(&t);
        arena_release(&t.arena);
    }
}

/* Every second one with rules of an engine, every third in doubt. */
static void trial_ruled(struct trial *t, int seed)
{
    trial_open(t, "tiny", seed, 2 + seed % 5, 1 + seed % 5);
    if (seed % 2)
        tiny_rules(&t->arena, (uint64_t)seed, &t->p);
    if (seed % 3 == 0)
        tiny_doubts(&t->arena, (uint64_t)seed, &t->p);
    trial_best(t);
}

TIMES(fast_is_feasible_and_its_bound_holds, suite_size(10, 100))
{
    for (int seed = _i * ROUND; seed < (_i + 1) * ROUND; seed++) {
        struct trial t;
        trial_ruled(&t, 200000 + seed);
        trial_run(&t, METHOD_FAST);
        arena_release(&t.arena);
    }
}

/* The judge's price of leaving who runs where it is, and all others waiting. */
static double standing_w(struct trial *t)
{
    struct plan x = { .n_jobs = t->p.n_jobs, .n_gpus = t->p.n_gpus };
    struct err e = { 0 };

    x.jobs = ARENA_ARRAY(&t->arena, struct plan_job, (size_t)t->p.n_jobs);
    x.limit = ARENA_ARRAY(&t->arena, unsigned char, (size_t)t->p.n_gpus);
    for (int j = 0; j < t->p.n_jobs; j++) {
        const struct problem_job *job = &t->p.jobs[j];
        if (!job->name)
            continue;
        x.jobs[j] = (struct plan_job){ .n_gpus = job->n_present, .gpus = job->present };
        x.jobs[j].reason = job->n_present ? WAIT_NOT : WAIT_CAPACITY;
        for (int i = 0; i < job->n_present; i++)
            x.limit[job->present[i]] = (unsigned char)job->present_limit;
    }
    plan_price(&t->arena, &t->p, &x);
    int rc = plan_check(&t->arena, &t->p, &x, &e);
    ck_assert_msg(rc == 0, "standing, seed %d: %s", t->seed, e.text);
    return x.cost_w;
}

TIMES(fast_is_never_worse_than_what_stands, suite_size(5, 25))
{
    for (int seed = _i * ROUND; seed < (_i + 1) * ROUND; seed++) {
        struct trial t;
        trial_ruled(&t, 300000 + seed);
        trial_run(&t, METHOD_FAST);
        double stands_w = standing_w(&t);
        ck_assert_msg(t.x.cost_w <= stands_w + SAME * scale_of(&t),
                      "seed %d: %.9g W, and %.9g W where nobody moves", seed, t.x.cost_w, stands_w);
        arena_release(&t.arena);
    }
}

/* ---- problems made to be unpleasant ---- */

static void nobody_runs(struct problem *p)
{
    for (int j = 0; j < p->n_jobs; j++) {
        p->jobs[j].n_present = 0;
        p->jobs[j].is_fixed = false;
    }
}

static void promises_impossible(struct problem *p)
{
    for (int j = 0; j < p->n_jobs; j++)
        p->jobs[j].need = 1e9;
}

static void jobs_identical(struct problem *p)
{
    nobody_runs(p);
    for (int j = 1; j < p->n_jobs; j++)
        p->jobs[j] = p->jobs[0];
}

static void one_per_type(struct problem *p)
{
    nobody_runs(p);
    p->theta = 1;
    for (int j = 0; j < p->n_jobs; j++) {
        p->jobs[j].allowed_types = UINT64_C(1) << (j % p->n_types);
        p->jobs[j].n_min = p->jobs[j].n_max = 1;
        p->jobs[j].n_nodes = 0;
    }
    for (int g = 0; g < p->n_gpus; g++)
        p->gpus[g] =
            (struct problem_gpu){ .type = g % p->n_types, .node = g, .may_start = g < p->n_types };
}

static void nothing_fits(struct problem *p)
{
    nobody_runs(p);
    for (int k = 0; k < p->n_kinds; k++)
        p->kinds[k].mem_gib = 1e6;
}

static void costs_equal(struct problem *p)
{
    long cells = (long)p->n_types * p->n_kinds * (p->n_kinds + 1);

    nobody_runs(p);
    for (int t = 0; t < p->n_types; t++) {
        p->types[t] = (struct problem_type){ "type", 10, 10, 100, 64, 1, { { 0 } } };
        for (int k = 0; k < p->n_kinds; k++)
            p->watts[t * p->n_kinds + k] = 50;
    }
    for (long i = 0; i < cells; i++)
        p->speed[i] = p->held[i] = 1;
    for (int j = 0; j < p->n_jobs; j++)
        p->jobs[j].short_w = p->jobs[j].wait_w = p->jobs[j].need = 40;
}

static void everything_free(struct problem *p)
{
    costs_equal(p);
    p->price_w = 0;
    for (int t = 0; t < p->n_types; t++) {
        p->types[t].sleep_w = p->types[t].idle_w = 0;
        for (int k = 0; k < p->n_kinds; k++)
            p->watts[t * p->n_kinds + k] = 0;
    }
    for (int j = 0; j < p->n_jobs; j++)
        p->jobs[j].short_w = p->jobs[j].wait_w = p->jobs[j].move_w = 0;
    for (int k = 0; k < p->n_kinds; k++)
        p->kinds[k].value_j = 0;
}

/* Steps of one kind are a million times those of another, and so are what jobs may miss. */
static void ratios_extreme(struct problem *p)
{
    static const double factors[] = { 1e-6, 1, 1e6 };

    for (int k = 0; k < p->n_kinds; k++) {
        double f = factors[k % 3];
        p->kinds[k].rate *= f;
        p->kinds[k].value_j /= f;
        for (int t = 0; t < p->n_types; t++)
            for (int n = -1; n < p->n_kinds; n++) {
                long cell = problem_cell(p, t, k, n);
                p->speed[cell] = (float)((double)p->speed[cell] * f);
                p->held[cell] = (float)((double)p->held[cell] * f);
            }
    }
    for (int j = 0; j < p->n_jobs; j++) {
        p->jobs[j].need *= factors[p->jobs[j].kind % 3];
        p->jobs[j].short_w *= factors[j % 3];
        p->jobs[j].wait_w *= factors[(j + 1) % 3];
        p->jobs[j].move_w *= factors[(j + 2) % 3];
    }
}

static void all_drained(struct problem *p)
{
    for (int g = 0; g < p->n_gpus; g++)
        p->gpus[g].may_start = false;
}

static void no_power(struct problem *p)
{
    p->power_cap_w = 1e-3;
}

static void as_it_is(struct problem *p)
{
    (void)p;
}

static const struct {
    const char *name;
    void (*spoil)(struct problem *p);
    int jobs, gpus;
} unpleasant[] = {
    { "all promises are impossible", promises_impossible, 6, 5 },
    { "all jobs are identical", jobs_identical, 6, 5 },
    { "one job per type fits", one_per_type, 6, 5 },
    { "nothing fits", nothing_fits, 6, 5 },
    { "equal costs everywhere", costs_equal, 5, 4 },
    { "nothing costs anything", everything_free, 5, 4 },
    { "extreme ratios", ratios_extreme, 6, 5 },
    { "nobody may start", all_drained, 6, 5 },
    { "a cap below what idle GPUs draw", no_power, 6, 5 },
    { "no GPUs", as_it_is, 6, 0 },
    { "no jobs", as_it_is, 0, 5 },
    { "nothing at all", as_it_is, 0, 0 },
};

EACH(unpleasant_problems_are_solved_like_others, unpleasant)
{
    for (int seed = 1; seed <= suite_size(5, 40); seed++) {
        struct trial t;
        trial_open(&t, unpleasant[_i].name, seed, unpleasant[_i].jobs, unpleasant[_i].gpus);
        unpleasant[_i].spoil(&t.p);
        trial_best(&t);
        trial_run(&t, METHOD_FAST);
        trial_run(&t, METHOD_EXACT);
        expect_optimum(&t);
        arena_release(&t.arena);
    }
}

/* ---- what is no number is refused at the door ---- */

#define FIELDS 20
#define TABLES 3

static double *field_of(struct problem *p, int i)
{
    double *const fields[FIELDS] = {
        &p->z,
        &p->price_w,
        &p->power_cap_w,
        &p->watts_margin,
        &p->gang_near[2],
        &p->gang_far[2],
        &p->types[0].sleep_w,
        &p->types[0].idle_w,
        &p->types[0].cap_w,
        &p->types[0].mem_gib,
        &p->kinds[0].mem_gib,
        &p->kinds[0].value_j,
        &p->kinds[0].rate,
        &p->jobs[0].need,
        &p->jobs[0].short_w,
        &p->jobs[0].wait_w,
        &p->jobs[0].move_w,
        &p->jobs[p->n_jobs - 1].need,
        &p->jobs[p->n_jobs - 1].wait_w,
        &p->types[p->n_types - 1].idle_w,
    };

    return fields[i];
}

static void expect_refused(struct problem *p, const char *what, int i)
{
    struct arena a;
    struct plan x;
    struct optimize_report report;
    struct err e = { 0 };

    arena_init(&a);
    int rc = optimize_run(&a, p, &optimize_defaults, &x, &report, &e);
    ck_assert_msg(rc == -EINVAL && e.text[0], "%s %d: %d %s", what, i, rc, e.text);
    arena_release(&a);
}

TIMES(what_is_no_number_is_refused, 3)
{
    static const double none[] = { NAN, INFINITY, -INFINITY };

    for (int i = 0; i < FIELDS + TABLES; i++) {
        struct trial t;
        trial_open(&t, "none", 7, 6, 5);
        for (int j = 0; j < t.p.n_jobs; j++)
            t.p.jobs[j].name = "job";
        nobody_runs(&t.p);
        t.p.jobs[0].form = FORM_GANG;
        t.p.jobs[0].n_max = 3;
        float *tables[TABLES] = { t.p.speed, t.p.held, t.p.watts };
        if (i < FIELDS)
            *field_of(&t.p, i) = none[_i];
        else
            tables[i - FIELDS][0] = (float)none[_i];
        expect_refused(&t.p, i < FIELDS ? "field" : "table", i);
        arena_release(&t.arena);
    }
}

/* ---- the same on one thread and on two ---- */

static void expect_same(const struct plan *x, const struct plan *y)
{
    ck_assert_int_eq(x->n_jobs, y->n_jobs);
    ck_assert(memcmp(x->limit, y->limit, (size_t)x->n_gpus) == 0);
    ck_assert(memcmp(&x->cost_w, &y->cost_w, sizeof(double)) == 0);
    for (int j = 0; j < x->n_jobs; j++) {
        ck_assert_int_eq(x->jobs[j].n_gpus, y->jobs[j].n_gpus);
        ck_assert_int_eq(x->jobs[j].reason, y->jobs[j].reason);
        for (int i = 0; i < x->jobs[j].n_gpus; i++)
            ck_assert_int_eq(x->jobs[j].gpus[i], y->jobs[j].gpus[i]);
    }
}

static void same_on_one_and_two(int seed, enum optimize_method method)
{
    struct make_options m = make_defaults;
    struct optimize_options o = optimize_defaults;
    struct optimize_report report[2];
    struct plan x[2];
    struct problem p;
    struct arena a;
    struct err e = { 0 };

    arena_init(&a);
    m.seed = o.seed = (uint64_t)seed;
    m.theta = 2 + seed % 2;
    problem_make(&a, &m, &p);
    o.method = method;
    o.exact = exact_run;
    o.nodes = 20000;
    for (int i = 0; i < 2; i++) {
        o.threads = 1 + i;
        int rc = optimize_run(&a, &p, &o, &x[i], &report[i], &e);
        ck_assert_msg(rc == 0, "%s", e.text);
    }
    expect_same(&x[0], &x[1]);
    ck_assert(report[0].bound_w == report[1].bound_w);
    ck_assert(report[0].nodes == report[1].nodes);
    arena_release(&a);
}

SPAN(one_thread_and_two_give_the_same_answer, 1, 1 + suite_size(1, 4))
{
    same_on_one_and_two(_i, METHOD_FAST);
}
