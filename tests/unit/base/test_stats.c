/* Summaries of samples. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>

#include "base/stats.h"
#include "unit/suite.h"

TEST(no_samples_have_no_summary)
{
    struct samples s = { 0 };

    ck_assert(isnan(samples_mean(&s)));
    ck_assert(isnan(samples_quantile(&s, 0.5)));
    samples_release(&s);
}

TEST(quantiles_interpolate_between_order_statistics)
{
    static const struct {
        const char *name;
        int n;
        double v[5], q, want;
    } cases[] = {
        { "one sample is every quantile", 1, { 7 }, 0.3, 7 },
        { "the median of two lies between", 2, { 3, 1 }, 0.5, 2 },
        { "the median of three is the middle one", 3, { 9, 1, 5 }, 0.5, 5 },
        { "quantile 0 is the least", 4, { 4, 2, 8, 6 }, 0, 2 },
        { "quantile 1 is the greatest", 4, { 4, 2, 8, 6 }, 1, 8 },
        { "a quarter of the way from the first to the last of five",
          5,
          { 5, 4, 3, 2, 1 },
          0.25,
          2 },
        { "ninety-five hundredths of five fall between the last two",
          5,
          { 1, 2, 3, 4, 5 },
          0.95,
          4.8 },
        { "infinite samples do not make it NaN", 2, { 1, INFINITY }, 0, 1 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct samples s = { 0 };
        double got;

        for (int k = 0; k < cases[i].n; k++)
            samples_add(&s, cases[i].v[k]);
        got = samples_quantile(&s, cases[i].q);
        ck_assert_msg(fabs(got - cases[i].want) < 1e-12, "%s: got %g", cases[i].name, got);
        samples_release(&s);
    }
}

TEST(the_mean_of_many_is_their_mean)
{
    struct samples s = { 0 };

    for (int i = 1; i <= 10000; i++)
        samples_add(&s, i);
    ck_assert_double_eq(samples_mean(&s), 5000.5);
    ck_assert_uint_eq(s.n, 10000);
    samples_release(&s);
    ck_assert_uint_eq(s.n, 0);
}

ABORT(a_sample_that_is_no_number_stops_the_process)
{
    struct samples s = { 0 };

    samples_add(&s, (double)NAN);
}
