#include "estimate/prior/power.h"

#include <math.h>

#include "catalog/gpu_type.h"

static double idle_of(const struct gpu_type *g)
{
    return g->idle_w > 0 ? g->idle_w : 0;    // unknown: all of it counts as the jobs'
}

double power_dynamic_w(const struct gpu_type *g, double alone_w, double share)
{
    return fmax(alone_w - idle_of(g), 0) * share;
}

static double wanted_w(const struct gpu_type *g, const double *alone_w, const double *share, int n)
{
    double w = idle_of(g);

    for (int i = 0; i < n; i++)
        w += power_dynamic_w(g, alone_w[i], share[i]);
    return w;
}

double power_shared_w(const struct gpu_type *g, const double *alone_w, const double *share, int n,
                      double factor)
{
    double idle_w = idle_of(g), w = idle_w + factor * (wanted_w(g, alone_w, share, n) - idle_w);

    return g->cap_w > idle_of(g) ? fmin(w, g->cap_w) : w;
}

static struct limited drawn_additively(const struct gpu_type *g, double wanted_w)
{
    const int cap_w = (int)round(g->cap_w);

    if (wanted_w <= g->cap_w)
        return (struct limited){ .watts = wanted_w, .speed = 1, .low = 1 };
    double pace = limits_apply(g, cap_w, wanted_w).speed / limits_apply(g, cap_w, g->cap_w).speed;
    return (struct limited){ .watts = g->cap_w, .speed = pace, .low = pace };
}

struct limited power_drawn(enum power_model m, const struct gpu_type *g, const double *alone_w,
                           const double *share, int n)
{
    const double room_w = g->cap_w - idle_of(g);
    double left = 1;

    if (!(room_w > 0))
        return (struct limited){ .watts = wanted_w(g, alone_w, share, n), .speed = 1, .low = 1 };
    if (m == POWER_ADDITIVE)
        return drawn_additively(g, wanted_w(g, alone_w, share, n));
    for (int i = 0; i < n; i++)
        left *= 1 - fmin(power_dynamic_w(g, alone_w[i], share[i]) / room_w, 1);
    return (struct limited){ .watts = g->cap_w - room_w * left, .speed = 1, .low = 1 };
}
