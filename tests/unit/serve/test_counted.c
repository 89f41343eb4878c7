/* Servers that only count: which minutes speak for them. */
#include <math.h>

#include "serve/capacity.h"
#include "serve/counted.h"
#include "unit/suite.h"

/* From 'at_s' on, for ten minutes, 'n_replicas' tell every ten seconds. */
static void tell(struct counted *c, double at_s, int n_replicas, double rate, double late_share,
                 double queued)
{
    struct lengths one = { .prompt = { 0 } };

    lengths_add(one.prompt, 900);
    for (int i = 0; i < 60; i++)
        for (int k = 0; k < n_replicas; k++)
            counted_add(c, at_s + 10 * i, at_s + 10 * (i + 1), 10 * rate, 10 * rate * late_share,
                        queued, &one);
}

static struct serving_metrics metrics(const struct counted *c)
{
    struct serving_metrics m;

    ck_assert(counted_metrics(c, &m));
    return m;
}

TEST(nothing_is_known_before_ten_minutes_with_requests)
{
    struct counted c = { 0 };
    struct serving_metrics m;

    ck_assert(!counted_metrics(&c, &m));
    for (int i = 0; i < 59; i++)
        counted_add(&c, 10 * i, 10 * (i + 1), 20, 0, 0, NULL);
    ck_assert(!counted_metrics(&c, &m));
    counted_add(&c, 590, 600, 20, 0, 0, NULL);
    ck_assert_double_eq_tol(metrics(&c).rate, 2, 1e-9);
}

TEST(few_requests_take_longer)
{
    struct counted c = { 0 };
    struct serving_metrics m;

    tell(&c, 0, 1, 0.2, 0, 0);
    ck_assert(!counted_metrics(&c, &m));
    tell(&c, 600, 1, 0.2, 0, 0);
    ck_assert_double_eq_tol(metrics(&c).rate, 0.2, 1e-6);
}

TEST(the_mean_replica_of_the_busiest_minutes_speaks)
{
    struct counted c = { 0 };

    tell(&c, 0, 2, 3, 0.1, 5);
    tell(&c, 600, 4, 2, 0.5, 5);
    ck_assert_double_eq_tol(metrics(&c).rate, 3, 1e-9);
    ck_assert_double_eq_tol(metrics(&c).late_share, 0.1, 1e-9);
    ck_assert(isnan(metrics(&c).queue_s));
    ck_assert_int_ge(lengths_quantile(metrics(&c).lengths.prompt, 0.5), 720);
    tell(&c, 1200 + 86400, 1, 1, 0.2, 5);    // a day later
    ck_assert_double_eq_tol(metrics(&c).rate, 1, 1e-9);
    ck_assert_double_eq_tol(metrics(&c).late_share, 0.2, 1e-9);
}

TEST(who_does_not_say_what_was_late_is_judged_by_what_waits)
{
    struct counted c = { 0 };

    tell(&c, 0, 1, 4, NAN, 8);
    ck_assert(isnan(metrics(&c).late_share) && isnan(metrics(&c).p99_s));
    ck_assert_double_eq_tol(metrics(&c).queue_s, 2, 1e-9);    // eight wait, four come a second
}

TEST(what_says_nothing_changes_nothing)
{
    struct counted c = { 0 };
    struct serving_metrics m;

    tell(&c, 0, 1, NAN, NAN, 3);
    counted_add(&c, 700, 700, 1e6, 0, 0, NULL);
    ck_assert(!counted_metrics(&c, &m));
    ck_assert_double_eq(c.now.served_s, 0);
}
