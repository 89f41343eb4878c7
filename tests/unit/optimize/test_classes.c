/* The class program and what is made of its prices: clusters, menu, bounds. */
#include <math.h>

#include "base/arena.h"
#include "optimize/model/plan.h"
#include "optimize/prices/classes.h"
#include "optimize/prices/mend.h"
#include "optimize/prices/prices.h"
#include "optimize/model/problem.h"
#include "optimize/files/problem_make.h"
#include "unit/optimize/brute.h"
#include "unit/optimize/tiny.h"
#include "unit/suite.h"

#define SEEDS 300

static const struct classes_options options = { .clusters_most = 100, .alike = 0.97 };

static void generate(struct arena *a, int n_jobs, int n_gpus, int n_kinds, struct problem *p)
{
    struct make_options o = make_defaults;

    o.n_jobs = n_jobs;
    o.n_gpus = n_gpus;
    o.n_kinds = n_kinds;
    o.standing = 0;
    problem_make(a, &o, p);
}

START_TEST(its_prices_prove_what_it_costs)
{
    struct arena a;
    struct problem p;
    struct classes c;
    struct prices u;

    arena_init(&a);
    generate(&a, 140, 100, 10, &p);
    classes_solve(&a, &p, &options, &c, &u);
    double bound_w = certificate_bound(&a, &p, &u, 1, NULL), base_w = problem_base_w(&p);
    /* The certificate knows a little more (any-of lists) and a little less (nothing). */
    ck_assert_double_ge(bound_w + base_w, 0.97 * (c.cost_w + base_w));
    arena_release(&a);
}
END_TEST

START_TEST(prices_of_tiny_problems_are_never_above_the_optimum)
{
    struct arena a;

    arena_init(&a);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct problem p;
        struct classes c;
        struct prices u, anew;
        struct plan best;
        tiny_make(&a, seed, 4, 4, &p);
        ck_assert(brute_solve(&a, &p, 50000000, &best));
        double optimum_w = best.cost_w;
        classes_solve(&a, &p, &options, &c, &u);
        ck_assert_msg(certificate_bound(&a, &p, &u, 1, NULL) <= optimum_w + 1e-6 * fabs(optimum_w),
                      "seed %lu", (unsigned long)seed);
        prices_share(&a, &p, &u, 0.5, &anew);
        prices_mend(&a, &p, &anew, 2);
        ck_assert_msg(certificate_bound(&a, &p, &anew, 1, NULL) <=
                          optimum_w + 1e-6 * fabs(optimum_w),
                      "seed %lu, shares", (unsigned long)seed);
        arena_reset(&a);
    }
    arena_release(&a);
}
END_TEST

START_TEST(mended_prices_are_broken_by_no_combination)
{
    struct arena a;
    struct problem p;
    struct classes c;
    struct prices u, anew;
    double type_w[64];

    arena_init(&a);
    generate(&a, 60, 40, 8, &p);
    classes_solve(&a, &p, &options, &c, &u);
    prices_share(&a, &p, &u, 1, &anew);
    certificate_bound(&a, &p, &anew, 1, type_w);
    for (int t = 0; t < p.n_types; t++)    // no GPU earns more than it is worth
        ck_assert_double_le(type_w[t], anew.type_w[t] + 1e-6);
    double before_w = certificate_bound(&a, &p, &anew, 1, NULL);
    prices_mend(&a, &p, &anew, 3);
    ck_assert_double_ge(certificate_bound(&a, &p, &anew, 1, NULL), before_w - 1e-6);
    arena_release(&a);
}
END_TEST

START_TEST(kinds_that_differ_by_a_scale_come_together)
{
    struct arena a;
    struct problem p;
    struct kinds k;

    arena_init(&a);
    generate(&a, 40, 30, 4, &p);
    for (int t = 0; t < p.n_types; t++) {    // the second is the first at three times the speed
        p.watts[t * p.n_kinds + 1] = p.watts[t * p.n_kinds];
        for (int n = -1; n < p.n_kinds; n++) {
            p.speed[problem_cell(&p, t, 1, n)] = 3 * p.speed[problem_cell(&p, t, 0, n)];
            p.low[problem_cell(&p, t, 1, n)] = 3 * p.low[problem_cell(&p, t, 0, n)];
        }
        for (int o = 0; o < p.n_kinds; o++) {    // and others feel no difference
            p.speed[problem_cell(&p, t, o, 1)] = p.speed[problem_cell(&p, t, o, 0)];
            p.low[problem_cell(&p, t, o, 1)] = p.low[problem_cell(&p, t, o, 0)];
        }
    }
    p.kinds[1] = p.kinds[0];
    p.kinds[1].value_j /= 3;
    kinds_cluster(&a, &p, 1e-3, 100, &k);
    ck_assert_int_eq(k.n, 3);
    ck_assert_int_eq(k.of[0], k.of[1]);
    ck_assert_double_eq_tol(k.scale[1] / k.scale[0], 3, 1e-3);
    kinds_cluster(&a, &p, 0, 2, &k);
    ck_assert_int_eq(k.n, 2);
    ck_assert_double_gt(k.spread, 1e-3);
    arena_release(&a);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("classes");
    TCase *t = tcase_create("classes");

    tcase_set_timeout(t, 120);
    tcase_add_test(t, its_prices_prove_what_it_costs);
    tcase_add_test(t, prices_of_tiny_problems_are_never_above_the_optimum);
    tcase_add_test(t, mended_prices_are_broken_by_no_combination);
    tcase_add_test(t, kinds_that_differ_by_a_scale_come_together);
    suite_add_tcase(s, t);
    return suite_run(s);
}
