/* Ground truth: measurements stay as they are, gaps are filled, names depend on nothing else. */
#include <math.h>
#include <string.h>

#include "sim/ground.h"
#include "unit/sim/small_truth.h"
#include "unit/suite.h"

TEST(measured_cells_are_taken_as_they_are)
{
    struct catalog c;
    struct truth t;
    struct err e;
    int n_filled;

    small_truth_names(&c);
    record_speed(&c, BIG, SLOW, -1, 10, 120);
    record_speed(&c, BIG, SLOW, SMALL, 7, NAN);
    record_speed(&c, BIG, SLOW, BIG, 10.5, NAN);
    record_speed(&c, SMALL, SLOW, -1, 4, NAN);
    record_speed(&c, SMALL, SLOW, HUGE_ONE, 0, NAN);
    record_speed(&c, HUGE_ONE, SLOW, -1, 0, NAN);
    ck_assert_int_eq(truth_from_catalog(&t, &c, &n_filled, &e), 0);
    ck_assert_double_eq_tol(truth_speed(&t, BIG, SLOW), 10, 1e-9);
    ck_assert_double_eq_tol(truth_watts(&t, BIG, SLOW), 120, 1e-9);
    ck_assert_double_eq_tol(truth_slowdown(&t, BIG, SLOW, SMALL), 0.7, 1e-6);
    ck_assert(truth_slowdown(&t, BIG, SLOW, BIG) == 1);    // noise does not speed anybody up
    ck_assert(truth_slowdown(&t, SMALL, SLOW, HUGE_ONE) == 0);
    ck_assert(truth_speed(&t, HUGE_ONE, SLOW) == 0);

    /* Both types have the same figures here, so the gap is filled with the same speed. */
    ck_assert_double_eq_tol(truth_speed(&t, BIG, FAST), 10, 1e-6);
    ck_assert_double_eq_tol(truth_watts(&t, BIG, FAST), 120, 1e-6);
    ck_assert_int_gt(n_filled, 0);
    truth_release(&t);
    catalog_release(&c);
}

TEST(a_workload_nobody_knows_anything_of_is_an_error)
{
    struct workload w;
    struct catalog c;
    struct truth t;
    struct err e;
    int n_filled, index;

    small_truth_names(&c);
    workload_init(&w, "mystery");
    catalog_add_workload(&c, &w, &index, &e);
    ck_assert_int_lt(truth_from_catalog(&t, &c, &n_filled, &e), 0);
    ck_assert_ptr_nonnull(strstr(e.text, "'mystery' has neither"));
    catalog_release(&c);
}

TEST(hidden_factors_belong_to_names_and_seed)
{
    struct catalog c, fewer;
    struct truth a, b, other;
    struct err e;
    int index;

    small_truth_names(&c);
    catalog_init(&fewer);
    catalog_add_type(&fewer, &c.types[FAST], &index, &e);
    catalog_add_workload(&fewer, &c.workloads[SMALL], &index, &e);
    ck_assert_int_eq(truth_analytic(&a, &c, 5, 0.25, &e), 0);
    ck_assert_int_eq(truth_analytic(&b, &fewer, 5, 0.25, &e), 0);
    ck_assert_int_eq(truth_analytic(&other, &c, 6, 0.25, &e), 0);
    ck_assert(truth_speed(&a, SMALL, FAST) == truth_speed(&b, 0, 0));
    ck_assert(truth_watts(&a, SMALL, FAST) == truth_watts(&b, 0, 0));
    ck_assert(truth_slowdown(&a, SMALL, FAST, SMALL) == truth_slowdown(&b, 0, 0, 0));
    ck_assert(truth_speed(&a, SMALL, FAST) != truth_speed(&other, SMALL, FAST));
    ck_assert(truth_speed(&a, SMALL, FAST) != truth_speed(&a, SMALL, SLOW));
    ck_assert(truth_bend(&a, SMALL, FAST).loss == truth_bend(&b, 0, 0).loss);
    ck_assert(truth_bend(&a, SMALL, FAST).draw == truth_bend(&b, 0, 0).draw);
    ck_assert(truth_bend(&a, SMALL, FAST).loss != truth_bend(&other, SMALL, FAST).loss);
    truth_release(&a);
    truth_release(&b);
    truth_release(&other);
    catalog_release(&c);
    catalog_release(&fewer);
}

TEST(hidden_factors_have_the_spread_that_was_asked)
{
    struct ground g;
    double squares = 0, loss = 0, draw = 0;
    struct truth flat;
    struct err e;
    int n = 0;

    ck_assert_int_eq(ground_builtin(&g, NULL, NULL, NULL, 3, &e), 0);
    ck_assert_int_eq(truth_analytic(&flat, &g.catalog, 3, 0, &e), 0);
    for (int i = 0; i < g.truth.n_workloads * g.truth.n_types; i++) {
        ck_assert(flat.bend[i].loss == 1 && flat.bend[i].draw == 1);
        loss += pow(log(g.truth.bend[i].loss), 2);
        draw += pow(log(g.truth.bend[i].draw), 2);
        ck_assert((flat.speed[i] > 0) == (g.truth.speed[i] > 0));
        if (flat.speed[i] > 0) {
            squares += pow(log(g.truth.speed[i] / flat.speed[i]), 2);
            n++;
        }
    }
    ck_assert_int_gt(n, 300);
    ck_assert_double_eq_tol(sqrt(squares / n), GROUND_SPREAD, 0.03);
    ck_assert_double_eq_tol(sqrt(loss / (g.truth.n_workloads * g.truth.n_types)), LIMITS_LOSS_SD,
                            0.04);
    ck_assert_double_eq_tol(sqrt(draw / (g.truth.n_workloads * g.truth.n_types)), LIMITS_DRAW_SD,
                            0.013);
    truth_release(&flat);
    ground_close(&g);
}

TEST(names_are_found_as_people_write_them)
{
    struct small_truth s;
    struct ground g;
    struct err e;

    small_truth_init(&s);
    ck_assert_int_eq(truth_find_type(&s.truth, "Fast"), FAST);
    ck_assert_int_eq(truth_find_type(&s.truth, "v100"), -1);
    ck_assert_int_eq(truth_find_workload(&s.truth, "BIG"), BIG);
    ck_assert_int_eq(truth_find_workload(&s.truth, "bigger"), -1);
    small_truth_release(&s);
    ck_assert_int_eq(ground_builtin(&g, NULL, NULL, NULL, 1, &e), 0);
    ck_assert_int_eq(truth_find_type(&g.truth, "v100"), truth_find_type(&g.truth, "v100-16"));
    ck_assert_int_ge(truth_find_type(&g.truth, "v100"), 0);
    ground_close(&g);
}

TEST(measured_gangs_win_over_the_rule)
{
    struct small_truth s;
    struct err e;
    struct measurement m = {
        .key = { .workload = BIG, .gpu_type = SLOW, .neighbour = -1, .n_gpus = 4 },
        .fits = true,
        .throughput = 33,
        .watts = NAN,
        .duration_s = NAN,
        .noise = NAN,
    };
    double rule;

    small_truth_init(&s);
    rule = truth_gang_speed(&s.truth, BIG, SLOW, 4, 0);
    ck_assert(rule > 20 && rule < 40);
    ck_assert(truth_gang_speed(&s.truth, BIG, SLOW, 4, 1) < rule);
    ck_assert_int_eq(catalog_record(&s.catalog, &m, 0, &e), 0);
    ck_assert_double_eq_tol(truth_gang_speed(&s.truth, BIG, SLOW, 4, 0), 33, 1e-9);
    small_truth_release(&s);
}
