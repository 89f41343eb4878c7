/* When Slurm is left alone, and for how long. */
#include "act/driver/breaker.h"
#include "unit/suite.h"

TEST(a_failure_opens_and_pauses_double_up_to_eight_seconds)
{
    static const double pauses_s[] = { 1, 2, 4, 8, 8 };
    struct breaker b;
    double t = 1000;

    breaker_init(&b);
    ck_assert(!b.is_open && !breaker_wants_probe(&b, t));
    for (size_t i = 0; i < sizeof pauses_s / sizeof *pauses_s; i++) {
        ck_assert(breaker_failed(&b, t) == (i == 0));
        ck_assert(b.is_open);
        ck_assert(!breaker_wants_probe(&b, t + pauses_s[i] - 0.01));
        t += pauses_s[i];
        ck_assert(breaker_wants_probe(&b, t));
    }
    ck_assert(breaker_succeeded(&b, t));
    ck_assert(!b.is_open && !breaker_wants_probe(&b, t + 100));
    ck_assert(!breaker_succeeded(&b, t));
}

TEST(one_that_opens_again_soon_pauses_longer_and_later_as_at_first)
{
    struct breaker b;

    breaker_init(&b);
    breaker_failed(&b, 0);
    breaker_succeeded(&b, 1);
    breaker_failed(&b, 1 + BREAKER_STEADY_S / 2);
    ck_assert_double_eq(b.pause_s, 2);
    breaker_succeeded(&b, 10);
    breaker_failed(&b, 10 + BREAKER_STEADY_S);
    ck_assert_double_eq(b.pause_s, BREAKER_PAUSE_MIN_S);
}

TEST(a_bucket_gives_its_burst_at_once_and_then_its_rate)
{
    struct rate_bucket b;
    int n = 0;

    rate_bucket_init(&b, 4, 10, 0);
    while (rate_bucket_take(&b, 0))
        n++;
    ck_assert_int_eq(n, 10);
    ck_assert_double_eq_tol(rate_bucket_wait_s(&b, 0), 0.25, 1e-9);
    for (int i = 1; i <= 100; i++)
        n += rate_bucket_take(&b, i * 0.1);
    ck_assert_int_eq(n, 10 + 40);
    ck_assert(rate_bucket_wait_s(&b, 10.0) > 0);
    ck_assert_double_eq(rate_bucket_wait_s(&b, 10.25), 0);
}

TEST(a_bucket_is_never_fuller_than_its_burst_and_time_does_not_go_back)
{
    struct rate_bucket b;
    int n = 0;

    rate_bucket_init(&b, 1000, 3, 5);
    while (rate_bucket_take(&b, 1e6))
        n++;
    ck_assert_int_eq(n, 3);
    ck_assert(!rate_bucket_take(&b, 5));
    ck_assert(!rate_bucket_take(&b, 1e6));
}
