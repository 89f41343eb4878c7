#include "base/clock.h"

#include <assert.h>
#include <stddef.h>
#include <time.h>

static double read_s(clockid_t id)
{
    struct timespec t;
    int rc = clock_gettime(id, &t);

    assert(rc == 0);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double real_now_s(void *self)
{
    (void)self;
    return read_s(CLOCK_REALTIME);
}

static double manual_now_s(void *self)
{
    return ((const struct clock_manual *)self)->t_s;
}

struct clock clock_real(void)
{
    return (struct clock){ .self = NULL, .now_s = real_now_s };
}

struct clock clock_manual(struct clock_manual *m)
{
    return (struct clock){ .self = m, .now_s = manual_now_s };
}

double clock_stopwatch_s(void)
{
    return read_s(CLOCK_MONOTONIC);
}
