#include "estimate/limits.h"

#include <math.h>

#include "catalog/gpu_type.h"

/* Fitted to the averages of Zeus's power traces (You, Chung, Chowdhury, NSDI 2023): training on A40,
 * P100, RTX 6000 and V100 under six to nine limits each. The law misses their watts by 3.6 % and
 * their speeds by 5 % in the mean.
 */
#define WATTS_AT 0.016
#define WATTS_BEND 0.185
#define SPEED_AT (-0.344)
#define SPEED_BEND 0.182
#define SPEED_SLOPE 0.83

/* 0 far below 0, z far above, a bend of width 'c' between. */
static double soft(double z, double c)
{
    return z > 30 * c ? z : c * log1p(exp(z / c));
}

struct limited limits_apply(const struct gpu_type *g, int limit_w, double w0)
{
    double idle_w = g->idle_w > 0 ? g->idle_w : 0;

    if (limit_w <= 0 || !(w0 > idle_w) || !(limit_w > idle_w))
        return (struct limited){ .watts = w0, .speed = 1 };
    double watts = w0 * exp(-soft(WATTS_AT - log(limit_w / w0), WATTS_BEND));
    double room = log((limit_w - idle_w) / (w0 - idle_w));
    return (struct limited){
        .watts = fmax(watts, idle_w),
        .speed = exp(-SPEED_SLOPE * soft(SPEED_AT - room, SPEED_BEND)),
    };
}

double limits_undo(const struct gpu_type *g, int limit_w, double watts)
{
    double low = watts, high = g->cap_w > watts ? g->cap_w : watts;

    if (limits_apply(g, limit_w, high).watts <= watts)
        return high;
    for (int i = 0; i < 60; i++) {    // watts rise with w0
        double w0 = (low + high) / 2;
        if (limits_apply(g, limit_w, w0).watts < watts)
            low = w0;
        else
            high = w0;
    }
    return (low + high) / 2;
}

int limits_offer(const struct gpu_type *g, int *out)
{
    static const double parts[LIMITS_OFFERED] = { 0.7, 0.55, 0.42 };    // of the cap
    int n = 0;

    for (int i = 0; i < LIMITS_OFFERED; i++) {
        double limit_w = 5 * round(parts[i] * g->cap_w / 5);
        if (g->idle_w > 0 && limit_w > 1.3 * g->idle_w && limit_w < 10000)
            out[n++] = (int)limit_w;
    }
    return n;
}
