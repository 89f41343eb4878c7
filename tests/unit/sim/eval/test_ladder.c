/* Step times of a server as they were measured: the line through them, and what they hold. */
#include "sim/eval/ladder.h"

#include <math.h>

#include "unit/suite.h"

/* Steps of 10 ms and 1 ms a request alone, 2 ms beside a copy; batches of 1, 2, 4 and 16. */
static struct ladder made(void)
{
    struct ladder l = { .first = 0, .last = 4, .last_beside = 4 };

    for (int i = 0; i < SERVING_RUNGS; i++) {
        bool is = i <= 4 && i != 3;
        l.alone[i] = is ? 0.010 + 0.001 * (1 << i) : (double)NAN;
        l.beside[i] = is ? 0.010 + 0.002 * (1 << i) : (double)NAN;
    }
    return l;
}

TEST(the_line_through_a_line_is_that_line)
{
    struct ladder l = made();
    struct serving_estimate is = ladder_line(l.alone);

    ck_assert_double_eq_tol(exp(is.ln_t0), 0.010, 1e-9);
    ck_assert_double_eq_tol(exp(is.ln_a), 0.001, 1e-9);
}

/* Batches of 8, between rungs, take 26 ms: 307.7 requests/s. */
static const struct {
    const char *name;
    double rate, within_s;
    bool holds;
} promises[] = {
    { "two steps fit", 8 / 0.026, 0.0521, true },
    { "two steps do not", 8 / 0.026, 0.0519, false },
    { "fewer requests make smaller batches", 4 / 0.018, 0.0361, true },
    { "more than the largest batch serves", 16 / 0.042 + 1, 100, false },
};

EACH(a_rate_is_held_by_the_batch_that_serves_it, promises)
{
    struct ladder l = made();

    ck_assert_msg(ladder_holds(&l, promises[_i].rate * (1 - 1e-9), promises[_i].within_s) ==
                      promises[_i].holds,
                  "%s", promises[_i].name);
}
