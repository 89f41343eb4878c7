/* Demand and its guard; traffic by chance; Azure's traces. */
#include "serve/demand.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "serve/arrivals.h"
#include "serve/azure.h"
#include "serve/traffic.h"
#include "unit/suite.h"

TEST(the_busiest_slot_of_two_hours_is_held)
{
    static struct demand d;

    ck_assert_double_eq(demand_rate(&d, 0, 600, 7), 7);
    for (int i = 0; i < 60; i++)
        demand_add(&d, 300.0 * i, 300.0 * (i + 1), i == 30 ? 6000 : 300);
    ck_assert_double_eq_tol(demand_now(&d, 300 * 60), 1, 1e-6);
    ck_assert_double_eq_tol(demand_rate(&d, 300 * 32, 600, 7), 1.3 * 20, 1e-3);
    ck_assert_double_eq_tol(demand_rate(&d, 300 * 50, 600, 7), 1.3 * 20, 1e-3);
    ck_assert_double_eq_tol(demand_rate(&d, 300 * 59, 600, 7), 1.3, 1e-3);
}

TEST(a_longer_horizon_remembers_longer)
{
    static struct demand d;

    for (int i = 0; i < 100; i++)
        demand_add(&d, 300.0 * i, 300.0 * (i + 1), i == 30 ? 6000 : 300);
    ck_assert_double_eq_tol(demand_rate(&d, 300 * 100, 600, 0), 1.3, 1e-3);
    ck_assert_double_eq_tol(demand_rate(&d, 300 * 100, 8 * 3600, 0), 1.3 * 20, 1e-3);
    ck_assert_double_eq(demand_rate(&d, 300 * 300, 600, 5), 5);    // silence: nobody knows
}

static const struct {
    double n_requests, n_late;
    bool is_late;
} minutes[] = { { 100, 0, false },  { 100, 1, false }, { 20, 1, false }, { 1000, 10, false },
                { 1000, 11, true }, { 100, 2, true },  { 0, 0, false } };

EACH(a_minute_is_late_with_more_than_a_hundredth_and_more_than_one, minutes)
{
    ck_assert(guard_minute_is_late(minutes[_i].n_requests, minutes[_i].n_late) ==
              minutes[_i].is_late);
}

TEST(the_guard_sees_that_places_are_too_few)
{
    struct arrivals *a = arrivals_create(0.025);
    const struct guard_place one[] = { { 0.02, 0.01, 1 } };
    const struct guard_place four[] = {
        { 0.02, 0.01, 1 }, { 0.02, 0.01, 1 }, { 0.02, 0.01, 1 }, { 0.02, 0.01, 1 }
    };

    for (int i = 0; i < 300 * 150; i++)
        arrivals_add(a, 1000 + i / 150.0, 1000 + i / 150.0, 0.001, 1, (const unsigned[]){ 1 });
    ck_assert(guard_is_short(a, 1300, one, 1, 16, 0.2, 1));
    ck_assert(!guard_is_short(a, 1300, four, 4, 16, 0.2, 1));
    ck_assert(guard_is_short(a, 1300, one, 0, 16, 0.2, 1));
    ck_assert(!guard_is_short(a, 9000, one, 1, 16, 0.2, 1));    // nothing arrived
    ck_assert_double_eq(guard_rate(30, 10), 40);
    ck_assert_double_eq(guard_rate(30, 100), 130);
    arrivals_destroy(a);
}

static struct traffic_spec bursty = { .rate = 5,
                                      .day = 0.5,
                                      .peak_h = 14,
                                      .week = 0.3,
                                      .clump = 4,
                                      .clump_s = 0.01,
                                      .spell = 3,
                                      .spell_s = 60,
                                      .calm_s = 600,
                                      .clients_day = 30,
                                      .client_s = 1800,
                                      .client_rate = 0.3,
                                      .client_clump = 2 };

TEST(traffic_keeps_its_mean_rate_and_its_order)
{
    static struct traffic t, again;
    double last = 0, want = 0;
    const double end = 7 * 86400;
    long n = 0, n_wrong = 0;

    traffic_init(&t, &bursty, 3);
    traffic_init(&again, &bursty, 3);
    for (double at; (at = traffic_next(&t)) < end; n++) {
        n_wrong += at < last || at > traffic_next(&again);
        last = at;
    }
    ck_assert_int_eq(n_wrong, 0);
    for (double s = 0; s < end; s += 600)
        want += 600 * traffic_rate(&t, s);
    ck_assert_double_eq_tol((double)n / want, 1, 0.06);
    ck_assert_double_gt(traffic_rate(&t, 14 * 3600), 2 * traffic_rate(&t, 2 * 3600));
    ck_assert_double_gt(traffic_rate(&t, 14 * 3600), traffic_rate(&t, (5 * 24 + 14) * 3600));
}

static const struct {
    const char *text, *error;    // NULL: fine
} traces[] = {
    { "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 23:59:59.5,4808,10\n"
      "2023-11-17 00:00:01.25,0,8\n",
      NULL },
    { "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,1,1\nyesterday,1,1\n", ":3:" },
    { "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,1,1\n"
      "2023-11-16 18:17:02,1,1\n",
      "sort" },
    { "TIMESTAMP,ContextTokens\n", "GeneratedTokens" },
    { "TIMESTAMP,ContextTokens,GeneratedTokens\n", "no two" },
};

EACH(a_trace_is_read_or_says_what_is_wrong, traces)
{
    struct azure_trace t;
    struct arena a;
    struct err e = { 0 };

    arena_init(&a);
    const int rc = azure_read(&a, "f.csv", traces[_i].text, strlen(traces[_i].text), &t, &e);
    ck_assert(traces[_i].error ? rc < 0 && strstr(e.text, traces[_i].error) : rc == 0);
    if (rc == 0) {
        ck_assert_int_eq(t.n, 2);
        ck_assert_double_eq_tol(t.span_s, 1.75, 1e-6);
        ck_assert_int_eq(t.requests[0].prompt, 4808);
        ck_assert_int_eq(t.requests[1].prompt, 1);
    }
    arena_release(&a);
}
