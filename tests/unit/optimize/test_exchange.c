/* Jobs come back to where they stand, where that costs nothing else; and rounding makes plans. */
#include <math.h>

#include "base/arena.h"
#include "base/err.h"
#include "optimize/files/problem_make.h"
#include "optimize/model/plan.h"
#include "optimize/model/problem.h"
#include "optimize/prices/prices.h"
#include "optimize/search/assignment.h"
#include "optimize/search/exchange.h"
#include "optimize/search/round.h"
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

START_TEST(a_cycle_of_moves_is_undone)
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
END_TEST

/* On random problems: never dearer, and what comes of it passes the judge. */
START_TEST(rounding_and_exchange_make_plans_that_hold)
{
    struct arena a;
    struct problem p;
    struct plan x;
    struct err e = { 0 };

    arena_init(&a);
    for (int seed = 1; seed <= 100; seed++) {
        arena_reset(&a);
        tiny_make(&a, (uint64_t)(_i * 1000 + seed), 8, 6, &p);
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
END_TEST

int main(void)
{
    Suite *s = suite_create("exchange");
    TCase *c = tcase_create("homes");

    tcase_add_test(c, a_cycle_of_moves_is_undone);
    tcase_add_loop_test(c, rounding_and_exchange_make_plans_that_hold, 0, 6);
    suite_add_tcase(s, c);
    return suite_run(s);
}
