/* Chance that repeats. */
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/rng.h"
#include "unit/suite.h"

TEST(the_generator_is_xoshiro256_star_star)
{
    static const uint64_t want[] = { 11520, 0, 1509978240, 1215971899390074240,
                                     1216172134540287360 };
    struct rng r = { { 1, 2, 3, 4 } };

    for (int i = 0; i < 5; i++)
        ck_assert_uint_eq(rng_u64(&r), want[i]);
}

/* Golden values computed by a second implementation in another language. */
TEST(seed_and_purpose_choose_the_sequence_for_ever)
{
    static const struct {
        uint64_t seed;
        const char *purpose;
        uint64_t want[3];
    } cases[] = {
        { 1, "arrivals", { 0xd4bf44f4bea7da2b, 0x91ad422e2e984071, 0x7fdaddacbc7f46e7 } },
        { 1, "noise", { 0x3b6a55c3c8163738, 0xe631c897adb393dd, 0xfc909cb291f9ae89 } },
        { 0, "", { 0x1e28178eedbf0f30, 0x32dadb1a9e4a4d08, 0x4ef49088479a6d5c } },
        { UINT64_MAX, "arrivals", { 0xb658a6386d55c039, 0x7346de472c46c519, 0xf20c93aa690c0731 } },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rng r;

        rng_init(&r, cases[i].seed, cases[i].purpose);
        for (int k = 0; k < 3; k++)
            ck_assert_uint_eq(rng_u64(&r), cases[i].want[k]);
    }
}

#define N_DRAWS 200000

struct moments {
    double mean, sd, min, max;
};

static double draw_uniform(struct rng *r)
{
    return rng_uniform(r);
}

static double draw_between(struct rng *r)
{
    return rng_between(r, -2, 4);
}

static double draw_below(struct rng *r)
{
    return (double)rng_below(r, 10);
}

static double draw_exponential(struct rng *r)
{
    return rng_exponential(r, 3);
}

static struct moments measure(double (*draw_f)(struct rng *r))
{
    struct moments m = { .min = INFINITY, .max = -INFINITY };
    double sum = 0, squares = 0;
    struct rng r;

    rng_init(&r, 7, "moments");
    for (int i = 0; i < N_DRAWS; i++) {
        double v = draw_f(&r);

        sum += v;
        squares += v * v;
        m.min = fmin(m.min, v);
        m.max = fmax(m.max, v);
    }
    m.mean = sum / N_DRAWS;
    m.sd = sqrt(squares / N_DRAWS - m.mean * m.mean);
    return m;
}

/* The mean of 200,000 draws strays by sd/447; five times that is allowed. */
TEST(moments_are_those_of_the_distribution)
{
    static const struct {
        const char *name;
        double (*draw_f)(struct rng *r);
        double mean, sd, min, max;
    } cases[] = {
        { "uniform", draw_uniform, 0.5, 0.288675, 0, 0.99999999999999989 },
        { "between", draw_between, 1, 1.732051, -2, 3.9999999999999996 },
        { "below", draw_below, 4.5, 2.872281, 0, 9 },
        { "normal", rng_normal, 0, 1, -6, 6 },
        { "exponential", draw_exponential, 3, 3, 0, 120 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct moments m = measure(cases[i].draw_f);

        ck_assert_msg(fabs(m.mean - cases[i].mean) < 5 * cases[i].sd / 447, "%s: mean %g",
                      cases[i].name, m.mean);
        ck_assert_msg(fabs(m.sd / cases[i].sd - 1) < 0.02, "%s: sd %g", cases[i].name, m.sd);
        ck_assert_msg(m.min >= cases[i].min && m.max <= cases[i].max, "%s: %g to %g", cases[i].name,
                      m.min, m.max);
    }
}

TEST(below_reaches_every_value_and_nothing_else)
{
    static const uint64_t bounds[] = { 1, 2, 3, 7, 64, (uint64_t)3 << 62, UINT64_MAX };
    int seen[7] = { 0 };
    struct rng r;

    rng_init(&r, 3, "below");
    for (size_t k = 0; k < sizeof bounds / sizeof bounds[0]; k++) {
        for (int i = 0; i < 1000; i++)
            ck_assert_uint_lt(rng_below(&r, bounds[k]), bounds[k]);
    }
    for (int i = 0; i < 70000; i++)
        seen[rng_below(&r, 7)]++;
    for (int i = 0; i < 7; i++)
        ck_assert_int_lt(abs(seen[i] - 10000), 500);
}

TEST(between_equal_ends_is_that_end)
{
    struct rng r;

    rng_init(&r, 3, "between");
    ck_assert_double_eq(rng_between(&r, 2, 2), 2);
    for (int i = 0; i < 1000; i++) {
        double v = rng_between(&r, 1, nextafter(1, 2));

        ck_assert_double_eq(v, 1);    // the only value in [1, the next double)
    }
}

ABORT(below_zero_stops_the_process)
{
    struct rng r;

    rng_init(&r, 3, "zero");
    rng_below(&r, 0);
}
