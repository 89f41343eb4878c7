#include "estimate/power.h"

#include <math.h>

#include "catalog/gpu_type.h"

double power_shared_w(const struct gpu_type *g, const double *alone_w, const double *share, int n)
{
    double idle_w = g->idle_w > 0 ? g->idle_w : 0;    // unknown: all of it counts as the jobs'
    double w = idle_w;

    for (int i = 0; i < n; i++)
        w += fmax(alone_w[i] - idle_w, 0) * share[i];
    return g->cap_w > idle_w ? fmin(w, g->cap_w) : w;
}
