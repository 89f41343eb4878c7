/* clock.h - the first door: what time it is.
 *
 * The real side reads the system's clock; the simulated side stands where it is
 * put. Nothing else in the house may ask for the time, except to measure how
 * long a piece of work took (clock_stopwatch_s), which never decides anything.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <math.h>

struct clock {
    void *self;
    double (*now_s)(void *self);    // seconds since the epoch of this clock
};

/* Seconds since 1970, from CLOCK_REALTIME. */
struct clock clock_real(void);

/* A clock that stands still until somebody moves it. */
struct clock_manual {
    double t_s;
};

/* The door onto 'm', which must outlive it. */
struct clock clock_manual(struct clock_manual *m);

static inline double clock_now_s(const struct clock *c)
{
    return c->now_s(c->self);
}

/* Monotonic seconds for measuring durations only. */
double clock_stopwatch_s(void);

/* 'every_s', a tenth more or less by 'id': what was begun together does not stay together. */
static inline double clock_spread_s(double every_s, int id)
{
    const double part = id * 0.6180339887498949;    // the golden section, so that any few are even

    return every_s * (0.9 + 0.2 * (part - floor(part)));
}

#endif
