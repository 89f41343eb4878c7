/* The exact planner against brute force, and what it must never do. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "optimize/model/plan.h"
#include "optimize/exact/exact.h"
#include "optimize/model/problem.h"
#include "optimize/files/problem_make.h"
#include "optimize/prices/prices.h"
#include "unit/optimize/brute.h"
#include "unit/optimize/tiny.h"
#include "unit/suite.h"

#define TIME_S 3600    // for what is to be proven
#define BRUTE_NODES 20000000

/* Everybody where he is now; the others wait. */
static void present_answer(struct arena *a, const struct problem *p, struct plan *out)
{
    *out = (struct plan){ .n_jobs = p->n_jobs, .n_gpus = p->n_gpus };
    out->jobs = ARENA_ARRAY(a, struct plan_job, (size_t)p->n_jobs);
    out->limit = ARENA_ARRAY(a, unsigned char, (size_t)p->n_gpus);
    for (int j = 0; j < p->n_jobs; j++) {
        const struct problem_job *job = &p->jobs[j];
        if (!job->name)
            continue;
        out->jobs[j].n_gpus = job->n_present;
        out->jobs[j].gpus = job->present;
        out->jobs[j].reason = job->n_present ? WAIT_NOT : WAIT_CAPACITY;
        for (int i = 0; i < job->n_present; i++)
            out->limit[job->present[i]] = (unsigned char)job->present_limit;
    }
    plan_price(a, p, out);
}

struct outcome {
    struct plan start, out;
    double bound_w;
    bool is_proven;
};

static void run(struct arena *a, const struct problem *p, double bound_w, double time_s,
                const struct plan *start, struct outcome *r)
{
    struct err e = { 0 };

    if (start)
        r->start = *start;
    else
        present_answer(a, p, &r->start);
    ck_assert_msg(plan_check(a, p, &r->start, &e) == 0, "start: %s", e.text);
    r->start.bound_w = bound_w;
    int proven = exact_run(a, p, &r->start, time_s, &r->out, &e);
    ck_assert_int_ge(proven, 0);
    r->is_proven = proven > 0;
    r->bound_w = r->out.bound_w;
    ck_assert_msg(plan_check(a, p, &r->out, &e) == 0, "%s", e.text);
    ck_assert_double_le(r->out.cost_w, r->start.cost_w);
    ck_assert_double_le(r->bound_w, r->out.cost_w);
}

static double slack_w(double cost_w)
{
    return 1e-6 * fmax(fabs(cost_w), 1);
}

static void compare(uint64_t seed)
{
    struct arena a;
    struct problem p;
    struct plan best;
    struct outcome r;

    arena_init(&a);
    tiny_make(&a, seed, 6, 5, &p);
    if (brute_solve(&a, &p, BRUTE_NODES, &best)) {
        run(&a, &p, -INFINITY, TIME_S, NULL, &r);
        ck_assert_msg(r.is_proven, "seed %lu: not proven", (unsigned long)seed);
        ck_assert_msg(fabs(r.out.cost_w - best.cost_w) <= slack_w(best.cost_w),
                      "seed %lu: %.9g W, brute force has %.9g", (unsigned long)seed, r.out.cost_w,
                      best.cost_w);
        ck_assert_msg(r.bound_w <= best.cost_w + slack_w(best.cost_w),
                      "seed %lu: bound %.9g above %.9g", (unsigned long)seed, r.bound_w,
                      best.cost_w);
    }
    arena_release(&a);
}

TEST(agrees_with_brute_force_on_tiny_problems)
{
    for (uint64_t seed = 1; seed <= (uint64_t)suite_size(25, 250); seed++)
        compare(seed);
}

/* On the first three CBC called another point optimal, with a start or preprocessing; on the next
 * it crashed; it said that there is none on 3026; and the optimum of the last is 0.
 */
TEST(agrees_where_the_solver_was_wrong)
{
    static const uint64_t seeds[] = { 1487, 3025, 10318, 2681, 3026, 31414 };

    for (int i = 0; i < (int)(sizeof seeds / sizeof seeds[0]); i++)
        compare(seeds[i]);
}

/* Larger than brute force can do, with every feature on. */
TIMES(no_certificate_is_above_a_proven_optimum, suite_size(2, 15))
{
    for (uint64_t seed = (uint64_t)_i * 10 + 1; seed <= (uint64_t)(_i + 1) * 10; seed++) {
        struct prices_options o = { .wants_vertex = true, .threads = 1 };
        struct arena a;
        struct problem p;
        struct outcome r;

        arena_init(&a);
        tiny_make(&a, seed, 12, 9, &p);
        struct prices *u = prices_find(&p, &o);
        run(&a, &p, -INFINITY, TIME_S, NULL, &r);
        ck_assert_msg(r.is_proven, "seed %lu: not proven", (unsigned long)seed);
        ck_assert_msg(u->bound_w <= r.out.cost_w + slack_w(r.out.cost_w),
                      "seed %lu: a bound of %.9g above an optimum of %.9g", (unsigned long)seed,
                      u->bound_w, r.out.cost_w);
        prices_destroy(u);
        arena_release(&a);
    }
}

static void small_make(struct arena *a, int n_jobs, int n_gpus, uint64_t seed, struct problem *p)
{
    struct make_options o = make_defaults;

    o.n_jobs = n_jobs;
    o.n_gpus = n_gpus;
    o.n_types = 3;
    o.seed = seed;
    problem_make(a, &o, p);
}

TEST(proves_generated_problems)
{
    for (uint64_t seed = 1; seed <= (uint64_t)suite_size(2, 5); seed++) {
        struct arena a;
        struct problem p;
        struct outcome r, again;

        arena_init(&a);
        small_make(&a, 20, 14, seed, &p);
        run(&a, &p, -INFINITY, TIME_S, NULL, &r);
        ck_assert_msg(r.is_proven, "seed %lu: %.9g W, bound %.9g", (unsigned long)seed,
                      r.out.cost_w, r.bound_w);
        run(&a, &p, -INFINITY, TIME_S, &r.out, &again);    // from the optimum
        ck_assert(again.is_proven);
        ck_assert_double_eq_tol(again.out.cost_w, r.out.cost_w, slack_w(r.out.cost_w));
        arena_release(&a);
    }
}

TEST(a_bound_that_meets_the_start_is_proof_enough)
{
    struct arena a;
    struct problem p;
    struct plan start;
    struct outcome r;

    arena_init(&a);
    small_make(&a, 140, 100, 1, &p);
    present_answer(&a, &p, &start);
    double began_s = suite_cpu_s();
    run(&a, &p, start.cost_w, 1000, &start, &r);
    ck_assert(r.is_proven);
    ck_assert_double_lt(suite_cpu_s() - began_s, 20);    // nothing is solved
    arena_release(&a);
}

TEST(a_bound_above_the_start_proves_nothing)
{
    struct arena a;
    struct problem p;
    struct outcome r;

    arena_init(&a);
    small_make(&a, 20, 14, 1, &p);
    run(&a, &p, 1e6, TIME_S, NULL, &r);
    ck_assert(r.is_proven);
    ck_assert_double_lt(r.out.cost_w, r.start.cost_w);
    arena_release(&a);
}

TEST(without_time_the_start_and_its_bound_come_back)
{
    struct arena a;
    struct problem p;
    struct outcome r;

    arena_init(&a);
    small_make(&a, 140, 100, 2, &p);
    run(&a, &p, -12345, 0, NULL, &r);
    ck_assert(!r.is_proven);
    ck_assert_double_eq(r.out.cost_w, r.start.cost_w);
    ck_assert_double_eq(r.bound_w, -12345);
    arena_release(&a);
}

TEST(with_little_time_the_bound_still_holds)
{
    struct arena a;
    struct problem p;
    struct outcome little, much;

    arena_init(&a);
    small_make(&a, 40, 30, 3, &p);
    run(&a, &p, -INFINITY, 0.1, NULL, &little);
    run(&a, &p, -INFINITY, 60, NULL, &much);
    ck_assert_double_le(little.bound_w, much.out.cost_w + slack_w(much.out.cost_w));
    arena_release(&a);
}

/* Four may share, so that there are millions of combinations: whoever lists them minds the time.
 * The ceiling is for machines that are busy; without the clock it took minutes.
 */
TEST(ends_in_time_where_it_cannot_even_build)
{
    struct make_options o = make_defaults;
    struct arena a;
    struct problem p;
    struct outcome r;

    arena_init(&a);
    o.n_jobs = 750;
    o.n_gpus = 500;
    o.theta = 4;
    problem_make(&a, &o, &p);
    double began_s = suite_cpu_s();
    run(&a, &p, -12345678, 0.5, NULL, &r);
    ck_assert_double_lt(suite_cpu_s() - began_s, 20);
    ck_assert(!r.is_proven);
    arena_release(&a);
}
