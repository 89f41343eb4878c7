/* The door to time. */
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "unit/suite.h"

TEST(a_manual_clock_stands_until_moved)
{
    struct clock_manual m = { 5 };
    struct clock c = clock_manual(&m);

    ck_assert_double_eq(clock_now_s(&c), 5);
    ck_assert_double_eq(clock_now_s(&c), 5);
    m.t_s = 7.25;
    ck_assert_double_eq(clock_now_s(&c), 7.25);
}

TEST(the_real_clock_is_the_system_s)
{
    struct clock c = clock_real();
    struct timespec before, after;
    double now_s;

    clock_gettime(CLOCK_REALTIME, &before);
    now_s = clock_now_s(&c);
    clock_gettime(CLOCK_REALTIME, &after);
    ck_assert_double_ge(now_s, (double)before.tv_sec - 1);
    ck_assert_double_le(now_s, (double)after.tv_sec + 2);
}

TEST(the_stopwatch_never_runs_backwards)
{
    double last_s = clock_stopwatch_s();

    for (int i = 0; i < 1000; i++) {
        double now_s = clock_stopwatch_s();

        ck_assert_double_ge(now_s, last_s);
        last_s = now_s;
    }
}

TEST(what_was_begun_together_does_not_stay_together)
{
    for (int i = 0; i < 100; i++) {
        const double wait_s = clock_spread_s(10, i);

        ck_assert(wait_s >= 9 && wait_s <= 11);
        ck_assert(i == 0 || fabs(wait_s - clock_spread_s(10, i - 1)) > 0.1);
    }
}
