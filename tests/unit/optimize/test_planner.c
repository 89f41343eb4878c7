/* The standing planner: feasible after every event, and nobody moves for an arrival. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/rng.h"
#include "optimize/model/plan.h"
#include "optimize/search/desk.h"
#include "optimize/optimize.h"
#include "optimize/search/planner.h"
#include "optimize/prices/prices.h"
#include "optimize/model/problem.h"
#include "optimize/files/problem_make.h"
#include "unit/suite.h"

#define N_JOBS 140
#define N_SPARE 60

struct scene {
    struct arena arena;
    struct problem whole, begin;    // 'begin' has all but the last jobs of 'whole'
    struct planner *planner;
    struct rng rng;
};

static void scene_open(struct scene *s, uint64_t seed, int theta)
{
    struct make_options o = make_defaults;

    arena_init(&s->arena);
    rng_init(&s->rng, seed, "scene");
    o.n_jobs = N_JOBS + N_SPARE;
    o.seed = seed;
    o.theta = theta;
    o.standing = 0.5;
    problem_make(&s->arena, &o, &s->whole);
    s->begin = s->whole;
    s->begin.n_jobs = N_JOBS;
    s->planner = planner_create(&s->begin, NULL, seed);
}

static void scene_close(struct scene *s)
{
    planner_destroy(s->planner);
    arena_release(&s->arena);
}

static void must_stand(struct scene *s, const char *after)
{
    struct arena a;
    struct plan x;
    struct err e = { 0 };

    arena_init(&a);
    planner_plan(s->planner, &a, &x);
    ck_assert_msg(plan_check(&a, planner_problem(s->planner), &x, &e) == 0, "after %s: %s", after,
                  e.text);
    ck_assert_msg(fabs(x.cost_w - desk_cost(planner_desk(s->planner))) <
                      1e-6 * (1 + fabs(x.cost_w)),
                  "after %s: %.9g W, but the desk says %.9g W", after, x.cost_w,
                  desk_cost(planner_desk(s->planner)));
    ck_assert_int_eq(x.n_moves, 0);
    arena_release(&a);
}

static int live_job(struct scene *s)
{
    const struct problem *p = planner_problem(s->planner);
    int job;

    do
        job = (int)rng_below(&s->rng, (uint64_t)p->n_jobs);
    while (!p->jobs[job].name);
    return job;
}

static void arrive(struct scene *s)
{
    planner_arrive(s->planner, &s->whole.jobs[N_JOBS + (int)rng_below(&s->rng, N_SPARE)]);
}

static const char *happen(struct scene *s)
{
    const struct problem *p = planner_problem(s->planner);
    int node = p->gpus[rng_below(&s->rng, (uint64_t)p->n_gpus)].node;

    switch (rng_below(&s->rng, 6)) {
    case 0:
    case 1:
        arrive(s);
        return "an arrival";
    case 2:
        planner_leave(s->planner, live_job(s));
        return "a departure";
    case 3:
        planner_lose_node(s->planner, node);
        return "a lost node";
    case 4:
        planner_gain_node(s->planner, node);
        return "a node that is back";
    default:
        planner_reestimate(s->planner, (int)rng_below(&s->rng, (uint64_t)p->n_kinds));
        return "a new estimate";
    }
}

START_TEST(it_stands_after_every_event)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct scene s;
        scene_open(&s, seed, seed == 3 ? 3 : 2);
        must_stand(&s, "the beginning");
        for (int i = 0; i < 60; i++) {
            must_stand(&s, happen(&s));
            double before_w = desk_cost(planner_desk(s.planner));
            planner_improve(s.planner, 60);
            ck_assert(desk_cost(planner_desk(s.planner)) <= before_w + 1e-9 * fabs(before_w));
            must_stand(&s, "a slice");
        }
        scene_close(&s);
    }
}
END_TEST

START_TEST(an_arrival_moves_nobody)
{
    struct scene s;

    scene_open(&s, 4, 2);
    for (int i = 0; i < 40; i++) {
        struct arena a;
        struct plan before, after;
        arena_init(&a);
        planner_plan(s.planner, &a, &before);
        arrive(&s);
        planner_plan(s.planner, &a, &after);
        for (int j = 0; j < before.n_jobs; j++) {
            if (before.jobs[j].n_gpus == 0)
                continue;
            ck_assert_int_eq(before.jobs[j].n_gpus, after.jobs[j].n_gpus);
            ck_assert(memcmp(before.jobs[j].gpus, after.jobs[j].gpus,
                             (size_t)before.jobs[j].n_gpus * sizeof(int)) == 0);
        }
        arena_release(&a);
    }
    scene_close(&s);
}
END_TEST

/* Cells of a kind change, and what it draws with them. */
static void slow_down(const struct problem *p, int kind, float factor)
{
    for (int type = 0; type < p->n_types; type++)
        for (int beside = -1; beside < p->n_kinds; beside++) {
            p->speed[problem_cell(p, type, kind, beside)] *= factor;
            p->low[problem_cell(p, type, kind, beside)] *= factor;
        }
}

START_TEST(a_changed_estimate_is_priced_everywhere)
{
    struct scene s;

    scene_open(&s, 5, 2);
    for (int kind = 0; kind < 6; kind++) {
        slow_down(&s.whole, kind, kind % 2 ? 0.5f : 0.0f);    // 0: it must not run at all
        planner_reestimate(s.planner, kind);
        must_stand(&s, "a new estimate");
    }
    scene_close(&s);
}
END_TEST

START_TEST(prices_and_full_plans_are_adopted_when_they_pay)
{
    struct scene s;
    struct optimize_options o = optimize_defaults;
    struct optimize_report r;
    struct prices u;
    struct plan x;
    struct err e = { 0 };

    scene_open(&s, 6, 2);
    ck_assert(planner_wants_prices(s.planner));
    for (int i = 0; i < 20; i++)
        arrive(&s);
    o.method = METHOD_FAST;
    o.nodes = 4000;
    ck_assert_msg(optimize_run(&s.arena, planner_problem(s.planner), &o, &x, &u, &r, &e) == 0, "%s",
                  e.text);
    planner_adopt(s.planner, &u);
    ck_assert(!planner_wants_prices(s.planner));
    double before_w = desk_cost(planner_desk(s.planner));
    int n_moves = planner_full(s.planner, &x);
    ck_assert_int_ge(n_moves, 0);
    ck_assert(desk_cost(planner_desk(s.planner)) <= before_w);
    must_stand(&s, "a full plan");
    planner_improve(s.planner, 400);
    must_stand(&s, "a slice by prices");
    scene_close(&s);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("planner");
    TCase *t = tcase_create("planner");

    tcase_set_timeout(t, 120);
    tcase_add_test(t, it_stands_after_every_event);
    tcase_add_test(t, an_arrival_moves_nobody);
    tcase_add_test(t, a_changed_estimate_is_priced_everywhere);
    tcase_add_test(t, prices_and_full_plans_are_adopted_when_they_pay);
    suite_add_tcase(s, t);
    return suite_run(s);
}
