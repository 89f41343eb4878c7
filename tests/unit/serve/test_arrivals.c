/* Arrivals: what is added is there again, respread, forgotten, saved and loaded. */
#include "serve/arrivals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/rng.h"
#include "base/text/buf.h"
#include "unit/suite.h"

static void add_one(struct arrivals *a, double at_s)
{
    ck_assert_double_eq(arrivals_add(a, at_s, at_s, 0.001, 1, (const unsigned[]){ 1 }), 1);
}

TEST(bins_are_an_eighth_of_the_promise_and_no_less_than_a_millisecond)
{
    ck_assert_double_eq_tol(arrivals_bin_s(0.2), 0.025, 1e-12);
    ck_assert_double_eq_tol(arrivals_bin_s(0.001), 0.001, 1e-12);
}

TEST(an_hour_expands_to_its_times_within_a_bin)
{
    struct arrivals *a = arrivals_create(0.025);
    double want[2000], got[2000], span_s, t = 0;
    struct rng r;

    rng_init(&r, 1, "test");
    for (int i = 0; i < 2000; i++)
        add_one(a, want[i] = t += rng_exponential(&r, 1.5));
    arrivals_advance(a, 3600);
    ck_assert_int_eq(arrivals_n_hours(a), 1);
    ck_assert_int_eq(arrivals_hour(a, 0).n, 2000);
    ck_assert_int_eq(arrivals_expand(a, 0, got, 2000, &span_s), 2000);
    ck_assert_double_eq_tol(span_s, 3600, 1e-9);
    for (int i = 0; i < 2000; i++)
        ck_assert_double_eq_tol(got[i], want[i], 0.0255);
    const int n = arrivals_expand(a, 0, got, 500, &span_s);
    ck_assert(n > 400 && n <= 500);
    ck_assert_double_eq_tol(n / span_s, 2000 / 3600.0, 0.1);
    for (int i = 1; i < n; i++)
        ck_assert(got[i] >= got[i - 1]);
    arrivals_destroy(a);
}

TEST(wide_bins_are_spread_and_nothing_is_lost)
{
    struct arrivals *a = arrivals_create(0.025);
    const unsigned counts[] = { 7, 0, 100 };

    ck_assert_double_eq(arrivals_add(a, 60, 3.003, 1.7, 3, counts), 107);
    ck_assert_int_eq(arrivals_recent(a, 0, 60, NULL, 0), 107);
    ck_assert_int_eq(arrivals_recent(a, 3.0, 4.725, NULL, 0), 7);
    arrivals_destroy(a);
}

TEST(what_is_far_ahead_or_long_ago_is_left_out)
{
    struct arrivals *a = arrivals_create(0.1);
    const unsigned one[] = { 1 };

    arrivals_advance(a, 10 * 3600);
    ck_assert_double_eq(arrivals_add(a, 36000, 36500, 1, 1, one), 0);
    ck_assert_double_eq(arrivals_add(a, 36000, 100, 1, 1, one), 0);
    ck_assert_double_eq(arrivals_add(a, 36000, 32500, 1, 1, one), 1);
    ck_assert_double_eq(arrivals_add(a, 36000, (double)NAN, 1, 1, one), 0);
    ck_assert_double_eq(arrivals_add(a, 36000, 35999, 0, 1, one), 0);
    arrivals_destroy(a);
}

TEST(a_day_is_kept_and_older_hours_are_forgotten)
{
    struct arrivals *a = arrivals_create(1);

    for (int h = 0; h < 40; h++)
        add_one(a, 3600.0 * h + 100);
    ck_assert_int_le(arrivals_n_hours(a), ARRIVALS_HOURS + 1);
    ck_assert_int_ge(arrivals_n_hours(a), ARRIVALS_HOURS);
    ck_assert_double_eq(arrivals_hour(a, 0).from_s, 3600.0 * 38);
    arrivals_advance(a, 3600.0 * 100);
    ck_assert_int_eq(arrivals_n_hours(a), 0);
    arrivals_destroy(a);
}

TEST(an_hour_is_the_same_after_its_bytes)
{
    struct arrivals *a = arrivals_create(0.0125), *b = arrivals_create(0.0125);
    struct buf one, two;
    struct rng r;
    struct err e;

    rng_init(&r, 2, "test");
    for (int i = 0; i < 500; i++) {
        const unsigned counts[] = { (unsigned)rng_below(&r, 30), 0, 1 };
        struct lengths one_more = { .output[LENGTH_BUCKETS - 1] = 2 };

        lengths_add(one_more.prompt, 1 + (int)rng_below(&r, 4000));
        arrivals_add(a, 7 * i, 7 * i, 0.0125, 3, counts);
        arrivals_add_lengths(a, 7 * i, &one_more);
    }
    buf_init(&one, 2 << 20);
    buf_init(&two, 2 << 20);
    ck_assert_int_eq(arrivals_save_newest(a, &one), 0);
    arrivals_advance(a, 3700);
    buf_clear(&one);
    ck_assert_int_eq(arrivals_save(a, 0, &one), 0);
    ck_assert_int_eq(arrivals_load(b, one.data, one.len, &e), 0);
    ck_assert_int_eq(arrivals_save(b, 0, &two), 0);
    ck_assert_uint_eq(one.len, two.len);
    ck_assert_mem_eq(one.data, two.data, one.len);
    for (size_t cut = 0; cut < 20; cut++)
        if (arrivals_load(b, one.data, cut, &e) < 0)
            ck_assert_int_eq(e.code, 22);
    arrivals_advance(b, 1800);    // the hour is under way again, after a restart
    ck_assert_int_eq(arrivals_n_hours(b), 0);
    arrivals_advance(b, 3700);
    ck_assert_int_eq(arrivals_hour(b, 0).n, arrivals_hour(a, 0).n);
    ck_assert_uint_eq(arrivals_hour(b, 0).lengths.output[LENGTH_BUCKETS - 1], 1000);
    buf_release(&one);
    buf_release(&two);
    arrivals_destroy(a);
    arrivals_destroy(b);
}

TEST(lengths_come_back_within_their_bucket)
{
    struct lengths l = { .prompt = { 0 } };

    for (int i = 0; i < 100; i++)
        lengths_add(l.prompt, 1000);
    ck_assert_int_eq(lengths_quantile(l.output, 0.5), 1);
    ck_assert_int_ge(lengths_quantile(l.prompt, 0.01), 720);
    ck_assert_int_le(lengths_quantile(l.prompt, 0.99), 1025);
    ck_assert_double_eq_tol(lengths_mean(l.prompt), 861, 1);    // a bucket's middle
    ck_assert_double_eq(lengths_mean(l.output), 1);
}
