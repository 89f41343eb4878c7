/* The linear program grows and shrinks, and is right after each change. */
#include <math.h>

#include "optimize/prices/lp.h"
#include "unit/suite.h"

/* Two foods, x and y, at 3 and 2: x + y >= 4, x >= 1. */
static struct lp *diet(void)
{
    struct lp *lp = lp_create();
    const double row_low[] = { 4, 1 }, row_high[] = { INFINITY, INFINITY };
    const int row_start[] = { 0, 0, 0 };
    const double low[] = { 0, 0 }, high[] = { INFINITY, INFINITY }, cost[] = { 3, 2 };
    const int start[] = { 0, 2, 3 }, index[] = { 0, 1, 0 };
    const double value[] = { 1, 1, 1 };

    lp_add_rows(lp, &(struct lp_lines){ .n = 2,
                                        .lower = row_low,
                                        .upper = row_high,
                                        .start = row_start,
                                        .index = row_start,
                                        .value = row_low });
    lp_add_columns(lp, &(struct lp_lines){ .n = 2,
                                           .lower = low,
                                           .upper = high,
                                           .cost = cost,
                                           .start = start,
                                           .index = index,
                                           .value = value });
    return lp;
}

static void expect(struct lp *lp, enum lp_method method, double cost)
{
    ck_assert(lp_solve(lp, method));
    ck_assert_double_eq_tol(lp_cost(lp), cost, 1e-9);
}

TEST(it_is_solved_and_its_prices_add_up)
{
    struct lp *lp = diet();

    expect(lp, LP_PRIMAL, 9);    // x = 1, y = 3
    ck_assert_double_eq_tol(lp_values(lp)[0], 1, 1e-9);
    ck_assert_double_eq_tol(lp_values(lp)[1], 3, 1e-9);
    ck_assert_double_eq_tol(lp_duals(lp)[0] * 4 + lp_duals(lp)[1] * 1, 9, 1e-9);
    lp_destroy(lp);
}

TEST(a_row_that_is_added_counts)
{
    struct lp *lp = diet();
    const double low[] = { -INFINITY }, high[] = { 2 }, value[] = { 1 };
    const int start[] = { 0, 1 }, index[] = { 1 };

    expect(lp, LP_PRIMAL, 9);
    lp_add_rows(
        lp,
        &(struct lp_lines){
            .n = 1, .lower = low, .upper = high, .start = start, .index = index, .value = value });
    expect(lp, LP_DUAL, 10);    // y <= 2, so x = 2
    lp_destroy(lp);
}

TEST(a_column_that_is_added_counts_and_may_become_dearer)
{
    struct lp *lp = diet();
    const double cost[] = { 1 }, value[] = { 1 };
    const int start[] = { 0, 1 }, index[] = { 0 };

    expect(lp, LP_PRIMAL, 9);
    lp_add_columns(lp, &(struct lp_lines){
                           .n = 1, .cost = cost, .start = start, .index = index, .value = value });
    expect(lp, LP_PRIMAL, 6);    // x = 1, z = 3
    ck_assert_int_eq(lp_n_columns(lp), 3);
    lp_set_cost(lp, 2, 100);
    expect(lp, LP_PRIMAL, 9);
    lp_destroy(lp);
}

TEST(rows_may_begin_empty_and_without_limits)
{
    struct lp *lp = lp_create();
    const double high[] = { 5, 3 }, cost[] = { -1 }, value[] = { 1, 1 };
    const int start[] = { 0, 2 }, index[] = { 0, 1 };

    lp_add_rows(lp, &(struct lp_lines){ .n = 2, .upper = high });
    lp_add_columns(lp, &(struct lp_lines){
                           .n = 1, .cost = cost, .start = start, .index = index, .value = value });
    expect(lp, LP_PRIMAL, -3);
    lp_destroy(lp);
}

TEST(what_cannot_be_is_not_called_solved)
{
    struct lp *lp = diet();
    const double low[] = { -INFINITY }, high[] = { 3 }, value[] = { 1, 1 };
    const int start[] = { 0, 2 }, index[] = { 0, 1 };

    lp_add_rows(
        lp,
        &(struct lp_lines){
            .n = 1, .lower = low, .upper = high, .start = start, .index = index, .value = value });
    ck_assert(!lp_solve(lp, LP_DUAL));    // x + y is at least 4 and at most 3
    lp_destroy(lp);
}
