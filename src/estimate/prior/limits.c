#include "estimate/prior/limits.h"

#include <math.h>

#include "catalog/gpu_type.h"

/* Fitted to the averages of Zeus's power traces (You, Chung, Chowdhury, NSDI 2023): training on
 * A40, P100, RTX 6000 and V100 under six to nine limits each. The law misses their watts by 3.6 %
 * and their speeds by 5 % in the mean.
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
        return (struct limited){ .watts = w0, .speed = 1, .low = 1 };
    double watts = w0 * exp(-soft(WATTS_AT - log(limit_w / w0), WATTS_BEND));
    double room = log((limit_w - idle_w) / (w0 - idle_w));
    double speed = exp(-SPEED_SLOPE * soft(SPEED_AT - room, SPEED_BEND));
    return (struct limited){ .watts = fmax(watts, idle_w), .speed = speed, .low = speed };
}

const struct limit_bend limit_law = { .loss = 1, .draw = 1, .loss_sd = LIMITS_LOSS_SD };

struct limited limits_bent(const struct gpu_type *g, int limit_w, double w0, struct limit_bend b)
{
    struct limited law = limits_apply(g, limit_w, w0);

    if (law.watts >= w0)
        return law;
    double watts = w0 * pow(law.watts / w0, b.draw), speed = pow(law.speed, b.loss);
    return (struct limited){
        .watts = fmax(fmin(watts, fmax(law.watts, limit_w)), g->idle_w > 0 ? g->idle_w : 0),
        .speed = speed,
        .low = speed,
    };
}

struct limit_bend limit_bend_mean(const struct limit_bend *b, const double *weights, int n)
{
    struct limit_bend mean = { 0 };
    double weight = 0;

    for (int i = 0; i < n; i++)
        weight += weights[i];
    if (!(weight > 0))
        return limit_law;
    for (int i = 0; i < n; i++) {
        mean.loss += weights[i] / weight * b[i].loss;
        mean.draw += weights[i] / weight * b[i].draw;
        mean.loss_sd += weights[i] / weight * b[i].loss_sd;
        mean.at += weights[i] / weight * b[i].at;
    }
    return mean;
}

double limits_undo_bent(const struct gpu_type *g, int limit_w, double watts, struct limit_bend b)
{
    double low = watts, high = g->cap_w > watts ? g->cap_w : watts;

    if (limits_bent(g, limit_w, high, b).watts <= watts)
        return high;
    for (int i = 0; i < 60; i++) {    // watts rise with w0
        double w0 = (low + high) / 2;
        if (limits_bent(g, limit_w, w0, b).watts < watts)
            low = w0;
        else
            high = w0;
    }
    return (low + high) / 2;
}

/* Deep ones save most; those above are for promises, and for time that has a price. Three near
 * these come within 2 % of the best of all that Zeus measured, on each of its four boards, in
 * joules and in (watts + 50 W) * time (docs/experiments.md): finer steps would buy little.
 */
#define OFFER_LOW 0.3      // of the room between idle and cap: the deepest
#define OFFER_STEP 0.08    // and from one to the next

static double to_5(double w)
{
    return 5 * round(w / 5);
}

int limits_offer(const struct gpu_type *g, int *out)
{
    const double room_w = g->cap_w - g->idle_w;
    int n = 0;

    if (!(g->limit_low_w > 0) || !(g->idle_w > 0) || !(room_w > 0) || !(g->cap_w < 10000))
        return 0;
    double low_w = fmax(ceil(g->limit_low_w / 5) * 5, to_5(g->idle_w + OFFER_LOW * room_w));
    double step_w = fmax(to_5(OFFER_STEP * room_w), 5);
    for (int i = LIMITS_OFFERED - 1; i >= 0; i--)
        if (low_w + i * step_w < g->cap_w)
            out[n++] = (int)(low_w + i * step_w);
    return n;
}
