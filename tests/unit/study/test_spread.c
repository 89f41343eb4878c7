/* Means over seeds and their intervals, against values computed by hand and from tables. */
#include <math.h>

#include "study/spread.h"
#include "unit/suite.h"

#define NONE ((double)NAN)

TEST(students_quantiles_are_those_of_the_tables)
{
    static const struct {
        int freedom;
        double want;
    } cases[] = {
        { 1, 12.706 }, { 2, 4.303 },  { 5, 2.571 },   { 10, 2.228 },     { 20, 2.086 },
        { 21, 2.080 }, { 30, 2.042 }, { 120, 1.980 }, { 100000, 1.960 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_msg(fabs(spread_student(cases[i].freedom) - cases[i].want) < 6e-4,
                      "%d degrees of freedom: %g", cases[i].freedom,
                      spread_student(cases[i].freedom));
}

TEST(more_freedom_is_never_a_larger_quantile)
{
    for (int i = 1; i < 100; i++)
        ck_assert(spread_student(i + 1) < spread_student(i));
}

TEST(spreads_are_those_computed_by_hand)
{
    /* 1, 2, 3: sd 1, 4.30265 / sqrt(3) = 2.48414. 10, 14: sd 2.82843, 12.7062 * 2 = 25.4124. */
    static const struct {
        const char *name;
        int n;
        double v[4];
        int want_n;
        double mean, half, low, high;
    } cases[] = {
        { "three values", 3, { 1, 2, 3 }, 3, 2, 2.48414, 1, 3 },
        { "two values are far from sure", 2, { 10, 14 }, 2, 12, 25.4124, 10, 14 },
        { "equal values have no width", 3, { 5, 5, 5 }, 3, 5, 0, 5, 5 },
        { "one value has no interval", 1, { 7 }, 1, 7, NONE, 7, 7 },
        { "what is not a number is left out", 4, { NONE, 1, 2, 3 }, 3, 2, 2.48414, 1, 3 },
        { "nothing has no mean", 0, { 0 }, 0, NONE, NONE, NONE, NONE },
        { "nothing but NaN has no mean", 2, { NONE, NONE }, 0, NONE, NONE, NONE, NONE },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct spread s = spread_of(cases[i].v, cases[i].n);
        const double got[] = { s.mean, s.half, s.low, s.high };
        const double want[] = { cases[i].mean, cases[i].half, cases[i].low, cases[i].high };

        ck_assert_msg(s.n == cases[i].want_n, "%s: n is %d", cases[i].name, s.n);
        for (int k = 0; k < 4; k++)
            ck_assert_msg((isnan(got[k]) && isnan(want[k])) || fabs(got[k] - want[k]) < 1e-4,
                          "%s: figure %d is %g", cases[i].name, k, got[k]);
    }
}

TEST(what_is_shown_is_an_interval_from_four_values_on)
{
    /* 1, 2, 3, 2: sd 0.8165, 3.18245 * 0.8165 / 2 = 1.29923. */
    static const struct {
        const char *name;
        int n;
        double v[4], least, most, from, to;
        bool is_even;
    } cases[] = {
        { "four values", 4, { 1, 2, 3, 2 }, 0, 100, 0.70077, 3.29923, true },
        { "three values: the smallest and the largest", 3, { 1, 2, 3 }, 0, 100, 1, 3, false },
        { "cut off below", 4, { 1, 2, 3, 2 }, 1, 100, 1, 3.29923, false },
        { "cut off above", 4, { 1, 2, 3, 2 }, 0, 3, 0.70077, 3, false },
        { "one value has nothing around it", 1, { 1 }, 0, 3, NONE, NONE, false },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct spread s =
            spread_within(spread_of(cases[i].v, cases[i].n), cases[i].least, cases[i].most);

        ck_assert_msg(isnan(s.from) ? isnan(cases[i].from) : fabs(s.from - cases[i].from) < 1e-4,
                      "%s: from %g", cases[i].name, s.from);
        ck_assert_msg(isnan(s.to) ? isnan(cases[i].to) : fabs(s.to - cases[i].to) < 1e-4,
                      "%s: to %g", cases[i].name, s.to);
        ck_assert_msg(spread_is_even(&s) == cases[i].is_even, "%s", cases[i].name);
    }
}
