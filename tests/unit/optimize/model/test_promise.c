/* What promises are expected to miss: against sums over many draws of the speed, and the one number
 * that prices go by against all needs.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "base/grow.h"
#include "optimize/model/promise.h"
#include "unit/suite.h"

/* The i-th of n equally likely standard normal numbers, by bisection. */
static double normal(int i, int n)
{
    double low = -9, high = 9, p = (i + 0.5) / n;

    for (int k = 0; k < 60; k++) {
        double mid = (low + high) / 2;
        *(0.5 * erfc(-mid / sqrt(2)) < p ? &low : &high) = mid;
    }
    return (low + high) / 2;
}

/* By definition, over so many speeds. */
enum { DRAWS = 4000 };

static double missed(double need, struct held h, double miss, const double *z)
{
    double sd = h.dev / h.mean, sum = 0;

    for (int i = 0; i < DRAWS; i++) {
        double speed = h.mean * exp(sd * z[i] - sd * sd / 2);
        sum += speed < need ? 1 - speed / need + miss : 0;
    }
    return sum / DRAWS;
}

TEST(a_promise_misses_what_its_speeds_miss)
{
    double *z = heap_array(DRAWS, sizeof *z);

    for (int i = 0; i < DRAWS; i++)
        z[i] = normal(i, DRAWS);
    for (double sd = 0.02; sd < 1; sd *= 1.7)
        for (double need = 0.25; need < 4; need *= 1.11) {
            struct held h = { 2, 2 * sd };
            double is = promise_missed(need, h, PROMISE_MISS),
                   by = missed(need, h, PROMISE_MISS, z);
            ck_assert_msg(fabs(is - by) < 0.002, "sd %g, need %g: %g, %g by draws", sd, need, is,
                          by);
            ck_assert_double_ge(is, 0);
            ck_assert_double_le(is, 1 + PROMISE_MISS);
        }
    free(z);
}

TEST(without_doubt_a_part_costs_in_proportion)
{
    ck_assert_double_eq(promise_missed(4, (struct held){ 4, 0 }, 0), 0);
    ck_assert_double_eq(promise_missed(4, (struct held){ 5, 0 }, 0.2), 0);
    ck_assert_double_eq(promise_missed(4, (struct held){ 3, 0 }, 0), 0.25);
    ck_assert_double_eq_tol(promise_missed(4, (struct held){ 3, 0 }, 0.2), 0.45, 1e-12);
    ck_assert_double_eq(promise_missed(4, (struct held){ 0, 0 }, 0.2), 1.2);
    ck_assert_double_lt(promise_missed(4, (struct held){ 4 * (1 - 1e-7), 0 }, 0.2), 1e-6);
}

/* More is never worse, and the number for prices misses no more than is missed, yet is near. */
TEST(what_is_sure_misses_least)
{
    for (double sd = 0.007; sd < 2.5; sd += 0.007) {
        struct held h = { 3, 3 * sd };
        double sure = promise_sure(h, PROMISE_MISS), nearest = 1;
        ck_assert_double_le(sure, 3);
        for (double need = 0.3; need < 12; need *= 1.013) {
            double gap = promise_missed(need, h, PROMISE_MISS) - fmax(1 - sure / need, 0);
            ck_assert_msg(gap > -1e-9, "sd %g, need %g: %g", sd, need, gap);
            nearest = fmin(nearest, need > sure ? gap : 1);
            ck_assert_double_ge(promise_missed(need, h, PROMISE_MISS) + 1e-12,
                                promise_missed(need, held_times(h, 1.01), PROMISE_MISS));
        }
        ck_assert_msg(nearest < 0.01 || sd < 0.02 || sd > 1, "sd %g: %g from the nearest need", sd,
                      nearest);
    }
    ck_assert_double_eq(promise_sure((struct held){ 3, 1 }, 0), 3);
}

TEST(a_chance_is_one_and_parts_add_up)
{
    ck_assert_double_eq(promise_kept(0, (struct held){ 1, 1 }), 1);
    ck_assert_double_eq(promise_kept(2, (struct held){ 2, 0 }), 1);
    ck_assert_double_eq(promise_kept(2, (struct held){ 1.9, 0 }), 0);
    double median = 2 * exp(-0.3 * 0.3 / 2);
    ck_assert_double_eq_tol(promise_kept(median, (struct held){ 2, 0.6 }), 0.5, 1e-12);
    struct held both = held_add((struct held){ 1, 0.25 }, (struct held){ 3, 0.75 });
    ck_assert_double_eq(both.dev / both.mean, 0.25);
    ck_assert_double_eq_tol(promise_kept(held_low(both), both), 0.8413447, 1e-6);
    ck_assert_double_eq(held_low((struct held){ 3, 0 }), 3);
    ck_assert_double_eq(held_less(both, (struct held){ 1, 0.25 }).mean, 3);
}
