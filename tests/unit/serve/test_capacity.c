/* Tables of capacity against bisection, and what must hold for any of them. */
#include "serve/capacity.h"

#include <math.h>

#include "base/rng.h"
#include "unit/suite.h"

enum { N = 6000, HOURS = 3 };

static double at[HOURS][N];
static struct replay hours[HOURS];

static void draw(int seed, double clump, double rate)
{
    struct rng r;

    rng_init(&r, (uint64_t)seed, "test");
    for (int h = 0; h < HOURS; h++) {
        double t = 0;

        for (int i = 0; i < N;) {
            t += rng_exponential(&r, clump / rate);
            do
                at[h][i++] = t;
            while (i < N && rng_uniform(&r) > 1 / clump);
        }
        hours[h] = (struct replay){ at[h], N, t };
    }
}

static const struct serving batching = { .rate = 20, .latency_s = 0.5, .max_batch = 16 };
static const struct serving llm = {
    .rate = 3, .is_llm = true, .ttft_s = 1, .tpot_s = 0.1, .max_running = 64
};

/* Whether every hour, brought to 'rate', has at most 1 % late there. */
static bool all_hold(double t0, double a, double rate)
{
    for (int h = 0; h < HOURS; h++) {
        const double s = rate * hours[h].span_s / hours[h].n;

        if (batching_late(&hours[h], t0 * s, a * s, 16, 0.5 * s, N) > N / 100)
            return false;
    }
    return true;
}

TIMES(a_table_says_what_bisection_says, 4)
{
    struct capacity c;
    struct rng r;

    draw(_i, _i % 2 ? 1 : 4, 20);
    capacity_build_replays(&c, hours, HOURS, NULL, &batching);
    ck_assert(c.margin >= 1 && c.margin <= 1.3);
    rng_init(&r, (uint64_t)_i, "places");
    for (int k = 0; k < 40; k++) {
        const double t0 = 0.3 * exp(-3 * rng_uniform(&r)), a = t0 * 0.3 * rng_uniform(&r);
        const double mu = capacity_mu(&c, t0, a);

        if (mu < 0.3 * c.rate_ref || mu > 1.9 * c.rate_ref)
            continue;
        ck_assert_msg(all_hold(t0, a, 0.97 * mu), "t0 %g a %g holds less than %g", t0, a, mu);
        ck_assert_msg(!all_hold(c.margin * t0 * 1.15, c.margin * a * 1.15, 1.15 * mu),
                      "t0 %g a %g holds more than %g", t0, a, mu);
    }
}

static void check_falls(const struct capacity *c, int seed)
{
    struct rng r;

    rng_init(&r, (uint64_t)seed, "falls");
    for (int k = 0; k < 20000; k++) {
        const double t0 = exp(-9 + 9 * rng_uniform(&r)), a = t0 * exp(-9 + 11 * rng_uniform(&r));
        const double p = c->spec.is_llm ? t0 * exp(-10 + 8 * rng_uniform(&r)) : 0;
        const double more = 1 + pow(rng_uniform(&r), 3);
        const double mu = capacity_mu_llm(c, t0, a, p), most = mu * (1 + 1e-6);

        ck_assert(isfinite(mu) && mu >= 0);
        ck_assert_double_le(capacity_mu_llm(c, t0 * more, a, p), most);
        ck_assert_double_le(capacity_mu_llm(c, t0, a * more, p), most);
        ck_assert_double_le(capacity_mu_llm(c, t0, a, p * more), most);
    }
}

TIMES(slower_places_hold_no_more, 3)
{
    struct capacity c;

    draw(10 + _i, 1 + 3 * _i, 20);
    capacity_build_replays(&c, hours, HOURS, NULL, &batching);
    check_falls(&c, _i);
}

TEST(slower_places_hold_no_more_of_a_language_model)
{
    struct capacity c;

    draw(20, 2, 3);
    for (int h = 0; h < HOURS; h++) {
        hours[h].span_s *= 500.0 / N;
        hours[h].n = 500;
    }
    capacity_build_replays(&c, hours, HOURS, NULL, &llm);
    check_falls(&c, 1);
    ck_assert_double_gt(capacity_mu_llm(&c, 0.012, 0.00012, 0.00002), 0.5);
    ck_assert_double_eq(capacity_mu_llm(&c, 0.2, 0.001, 0.00002), 0);
}

TEST(a_place_where_a_lone_request_is_late_holds_nothing)
{
    struct capacity c;

    draw(1, 1, 20);
    capacity_build_replays(&c, hours, HOURS, NULL, &batching);
    ck_assert_double_eq(capacity_mu(&c, 0.49, 0.02), 0);
    ck_assert_double_eq(capacity_mu(&c, (double)NAN, 0.02), 0);
    ck_assert_double_eq(capacity_mu(&c, 0, 0), 0);
    ck_assert(capacity_mu(&c, 0.6, 0) == 0);
}

TEST(beyond_the_table_no_more_is_said_than_is_held)
{
    struct capacity c;

    draw(2, 3, 20);
    capacity_build_replays(&c, hours, HOURS, NULL, &batching);
    for (double t0 = 0.02; t0 > 1e-4; t0 /= 2) {
        const double mu = capacity_mu(&c, t0, 0.05 * t0);

        ck_assert_double_gt(mu, 2 * c.rate_ref);
        ck_assert(all_hold(t0, 0.05 * t0, mu));
    }
}

TEST(a_new_service_gets_less_than_half_of_what_poisson_says)
{
    struct capacity careful, poisson;

    capacity_build(&careful, NULL, &batching);
    draw(3, 1, 20);
    capacity_build_replays(&poisson, hours, HOURS, NULL, &batching);
    ck_assert_int_eq(careful.source, CAPACITY_CAREFUL);
    for (double t0 = 0.005; t0 < 0.2; t0 *= 1.5)
        ck_assert_double_le(capacity_mu(&careful, t0, 0.1 * t0),
                            capacity_mu(&poisson, t0, 0.1 * t0) / 2);
}

/* Places that hold a lone prompt hold something; that is about half of Poisson's. */
TEST(so_does_a_new_language_model_and_it_gets_something)
{
    const double t0 = 0.02, a = 2e-4, c = 1.6e-4;    // 2,048 tokens: 0.35 s of the second promised
    struct capacity careful, poisson;

    capacity_build(&careful, NULL, &llm);
    draw(3, 1, 3);
    capacity_build_replays(&poisson, hours, HOURS, NULL, &llm);
    ck_assert_int_eq(careful.source, CAPACITY_CAREFUL);
    ck_assert_double_eq_tol(careful.rate_ref, llm.rate, 0.2);
    ck_assert_double_gt(capacity_mu_llm(&careful, t0, a, c), 0);
    for (double more = 0.2; more < 1.1; more += 0.2)
        ck_assert_double_le(capacity_mu_llm(&careful, t0 * more, a * more, c * more),
                            capacity_mu_llm(&poisson, t0 * more, a * more, c * more) / 1.9);
}

TEST(metrics_of_short_prompts_give_more_than_those_of_usual_ones)
{
    struct serving_metrics m = { .rate = 20, .t0_s = 0.02, .a_s = 2e-4, .c_s = 1.6e-4 };
    struct capacity usual, brief;

    capacity_from_metrics(&usual, &llm, &m);
    lengths_add_many(m.lengths.prompt, 200, 500);
    lengths_add_many(m.lengths.output, 50, 500);
    capacity_from_metrics(&brief, &llm, &m);
    ck_assert_int_eq(brief.source, CAPACITY_METRICS);
    ck_assert_double_gt(capacity_mu_llm(&brief, 0.02, 2e-4, 1.6e-4),
                        2 * capacity_mu_llm(&usual, 0.02, 2e-4, 1.6e-4));
}

TEST(few_arrivals_are_not_believed_beyond_the_careful_rule)
{
    struct arrivals *a = arrivals_create(0.0625);
    struct capacity few, careful;
    struct serving s = batching;

    for (int i = 0; i < 30; i++)    // evenly: no burst was seen
        arrivals_add(a, 100.0 * i, 100.0 * i, 0.01, 1, (const unsigned[]){ 1 });
    arrivals_advance(a, 3601);
    capacity_build(&few, a, &batching);
    ck_assert_int_eq(few.n_hours, 1);
    s.rate = few.rate_ref;
    capacity_build(&careful, NULL, &s);
    for (double t0 = 0.001; t0 < 0.6; t0 *= 1.7)
        ck_assert_double_le(capacity_mu(&few, t0, 0), capacity_mu(&careful, t0, 0) * (1 + 1e-9));
    arrivals_destroy(a);
}

TEST(metrics_with_a_longer_tail_give_less_and_never_far_beyond_the_load)
{
    const double nan = (double)NAN;
    struct serving_metrics m = {
        .rate = 20, .t0_s = 0.02, .a_s = 0.005, .late_share = nan, .p99_s = 0.08, .queue_s = nan
    };
    struct capacity calm, rough;

    capacity_from_metrics(&calm, &batching, &m);
    m.p99_s = 0.4;
    capacity_from_metrics(&rough, &batching, &m);
    ck_assert_int_eq(rough.source, CAPACITY_METRICS);
    ck_assert_double_lt(capacity_mu(&rough, 0.05, 0.02), capacity_mu(&calm, 0.05, 0.02));
    ck_assert_double_le(capacity_mu(&calm, 0.0001, 0), 28.0001);
}
