/* Jobs come back to where they stand, where that costs nothing else; and rounding makes plans. */
#include <math.h>

#include "base/arena.h"
#include "base/err.h"
#include "optimize/files/problem_make.h"
#include "optimize/model/plan.h"
#include "optimize/model/problem.h"
#include "optimize/optimize.h"
#include "optimize/prices/prices.h"
#include "optimize/search/assignment.h"
#include "optimize/search/search.h"
#include "unit/optimize/tiny.h"
#include "unit/suite.h"

/* Four jobs that run on four GPUs of one type, and are laid one further. */
static const int stands_on[4][1] = { { 0 }, { 1 }, { 2 }, { 3 } };

static void make_four(struct arena *a, struct problem *p)
{
    struct make_options o = make_defaults;

    o.n_jobs = 4;
    o.n_gpus = 4;
    o.n_types = 1;
    o.n_kinds = 1;
    o.standing = 0;
    problem_make(a, &o, p);
    p->power_cap_w = 0;
    p->rack_cap_w = NULL;
    for (int g = 0; g < 4; g++)
        p->gpus[g].may_start = true;
    for (int j = 0; j < 4; j++) {
        p->jobs[j] = (struct problem_job){ .name = p->jobs[j].name,
                                           .n_min = 1,
                                           .n_max = 1,
                                           .wait_w = 1000,
                                           .move_w = 1 + j,
                                           .n_present = 1,
                                           .present = stands_on[j] };
    }
}

TEST(a_cycle_of_moves_is_undone)
{
    struct arena a;
    struct problem p;

    arena_init(&a);
    make_four(&a, &p);
    struct assignment *d = assignment_create(&p);
    for (int j = 0; j < 4; j++)
        ck_assert(assignment_put(d, j, stands_on[(j + 1) % 4], 1, -1));
    double before_w = assignment_cost(d);
    ck_assert_double_eq_tol(exchange_homes(d), 1 + 2 + 3 + 4, 1e-9);
    ck_assert_double_eq_tol(assignment_cost(d), before_w - 10, 1e-9);
    for (int j = 0; j < 4; j++)
        ck_assert_int_eq(assignment_gpus(d, j)[0], j);
    ck_assert_double_eq(exchange_homes(d), 0);
    assignment_destroy(d);
    arena_release(&a);
}

/* On random problems: never dearer, and what comes of it passes the judge. */
TIMES(rounding_and_exchange_make_plans_that_hold, suite_size(6, 60))
{
    struct arena a;
    struct problem p;
    struct plan x;
    struct err e = { 0 };

    arena_init(&a);
    for (int seed = 1; seed <= 10; seed++) {
        arena_reset(&a);
        tiny_make(&a, (uint64_t)(_i * 100 + seed), 8, 6, &p);
        if (seed % 2)
            tiny_rules(&a, (uint64_t)seed, &p);
        struct prices_options o = { .wants_vertex = true, .threads = 1 };
        struct prices *u = prices_find(&p, &o);
        struct assignment *d = assignment_create(&p);
        if (u->master) {
            struct reduced_costs *reduced = reduced_costs_create(d, u);
            round_vertex(u, reduced, d);
            reduced_costs_destroy(reduced);
        }
        ck_assert_double_ge(exchange_homes(d), 0);
        assignment_plan(d, &a, &x);
        ck_assert_msg(plan_check(&a, &p, &x, &e) == 0, "seed %d: %s", seed, e.text);
        ck_assert(x.cost_w >= u->bound_w - 1e-9 * fabs(u->bound_w));
        assignment_destroy(d);
        prices_destroy(u);
    }
    arena_release(&a);
}

/* ---- what is planned fresh ---- */

/* The same problem, in which nobody stands anywhere. */
static void forget_present(struct arena *a, struct problem *p)
{
    struct problem_job *jobs = ARENA_ARRAY(a, struct problem_job, (size_t)p->n_jobs);

    for (int j = 0; j < p->n_jobs; j++) {
        jobs[j] = p->jobs[j];
        if (!jobs[j].is_fixed)
            jobs[j].n_present = 0;
    }
    p->jobs = jobs;
}

/* A plan that was made fresh, with its contents exchanged among like GPUs: what it costs here. */
static double exchanged_w(const struct problem *p, const struct plan *fresh)
{
    struct assignment *d = assignment_create(p);

    for (int j = 0; j < p->n_jobs; j++) {
        const struct plan_job *at = &fresh->jobs[j];
        if (at->n_gpus > 0 && d->jobs[j].n_gpus == 0)
            assignment_put(d, j, at->gpus, at->n_gpus, fresh->limit[at->gpus[0]]);
    }
    exchange_homes(d);
    double w = assignment_cost(d);
    assignment_destroy(d);
    return w;
}

/* To leave where everybody stands out of account, and then see who can stay, is no better: of these
 * seeds 18 are cheaper, by up to 13 %, and two dearer by 0.3 %, which is chance.
 */
#define CHANCE 0.005

SPAN(a_plan_is_not_dearer_than_a_fresh_one_exchanged, 1, 1 + suite_size(2, 20))
{
    struct optimize_options how = optimize_defaults;
    struct make_options o = make_defaults;
    struct optimize_report report;
    struct problem p, fresh;
    struct plan ours, theirs;
    struct err e = { 0 };
    struct arena a;

    arena_init(&a);
    o.n_jobs = 700;
    o.n_gpus = 500;
    o.n_types = 6;
    o.seed = (uint64_t)_i;
    problem_make(&a, &o, &p);
    fresh = p;
    forget_present(&a, &fresh);
    how.method = METHOD_FAST;
    how.nodes = 30000;
    ck_assert_msg(optimize_run(&a, &p, &how, &ours, &report, &e) == 0, "%s", e.text);
    ck_assert_msg(optimize_run(&a, &fresh, &how, &theirs, &report, &e) == 0, "%s", e.text);
    double theirs_w = exchanged_w(&p, &theirs);
    double chance_w = CHANCE * fabs(ours.cost_w + problem_base_w(&p));
    ck_assert_msg(ours.cost_w <= theirs_w + chance_w, "seed %d: %g W, and %g W fresh", _i,
                  ours.cost_w, theirs_w);
    arena_release(&a);
}
