#include "estimate/bends.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "catalog/catalog.h"

/* Sums, each weighted by 1/noise^2: of speeds, a line; of watts, one through 0. */
struct bend_seen {
    double weight, x, xx, y, xy;
    double watts_xx, watts_xy;
};

void bends_release(struct bends *b)
{
    free(b->seen);
    *b = (struct bends){ 0 };
}

static struct bend_seen *seen_of(struct bends *b, int n_types, int workload, int type)
{
    if (n_types != b->n_types) {
        b->n = 0;
        b->n_types = n_types;
    }
    if (workload >= b->n) {
        size_t was = (size_t)b->n * (size_t)n_types, n = (size_t)workload + 64;
        RESIZE(b->seen, n * (size_t)n_types);
        memset(b->seen + was, 0, (n * (size_t)n_types - was) * sizeof *b->seen);
        b->n = (int)n;
    }
    return &b->seen[workload * n_types + type];
}

void bends_note(struct bends *b, int n_types, int workload, int type, double ln_pace,
                double ln_speed, double noise)
{
    struct bend_seen *s = seen_of(b, n_types, workload, type);
    double weight = 1 / (noise * noise);

    s->weight += weight;
    s->x += weight * ln_pace;
    s->xx += weight * ln_pace * ln_pace;
    s->y += weight * ln_speed;
    s->xy += weight * ln_pace * ln_speed;
}

void bends_note_watts(struct bends *b, int n_types, int workload, int type, double ln_law,
                      double ln_watts, double noise)
{
    struct bend_seen *s = seen_of(b, n_types, workload, type);

    s->watts_xx += ln_law * ln_law / (noise * noise);
    s->watts_xy += ln_law * ln_watts / (noise * noise);
}

/* The slope less 1, and its weight (0: nothing is said). */
typedef double slope_f(const struct bend_seen *s, double *weight);

static double loss_of(const struct bend_seen *s, double *weight)
{
    double spread = s->weight > 0 ? s->xx - s->x * s->x / s->weight : 0;

    *weight = spread > 1e-6 ? spread : 0;    // below are rounding errors: speeds under one limit
    return *weight > 0 ? (s->xy - s->x * s->y / s->weight) / spread - 1 : 0;
}

static double draw_of(const struct bend_seen *s, double *weight)
{
    *weight = s->watts_xx > 1e-6 ? s->watts_xx : 0;
    return *weight > 0 ? s->watts_xy / s->watts_xx - 1 : 0;
}

/* How a family differs from the law on a type, without 'except': mean and variance. Of the variance
 * over all workloads a family has this much in common.
 */
#define FAMILY_SHARE 0.64

static double family_bend(const struct bends *b, const struct catalog *c, int except, int type,
                          slope_f *slope_of, double all, double *var)
{
    const struct workload *w = c->workloads;
    double own = (1 - FAMILY_SHARE) * all, sum = 0, trust = 1 / (FAMILY_SHARE * all);

    for (int i = 0; i < b->n && i < c->n_workloads; i++) {
        double weight;
        double slope = slope_of(&b->seen[i * b->n_types + type], &weight);
        if (i == except || weight == 0 || !w[i].family || !w[except].family ||
            strcmp(w[i].family, w[except].family) != 0)
            continue;
        sum += slope / (1 / weight + own);
        trust += 1 / (1 / weight + own);
    }
    *var = 1 / trust;
    return sum / trust;
}

/* The slope of one workload, less 1: what its family has shown, and what it has shown itself. */
static double bend_of(const struct bends *b, const struct catalog *c, int workload, int type,
                      slope_f *slope_of, double sd, double *left_sd)
{
    const struct bend_seen nothing = { 0 };
    const struct bend_seen *s = workload < b->n ? &b->seen[workload * b->n_types + type] : &nothing;
    double var, weight, mean = family_bend(b, c, workload, type, slope_of, sd * sd, &var);
    double own = slope_of(s, &weight);

    var += (1 - FAMILY_SHARE) * sd * sd;
    *left_sd = sqrt(var / (var * weight + 1));
    return mean + var * weight / (var * weight + 1) * (own - mean);
}

struct limit_bend bends_of(const struct bends *b, const struct catalog *c, int workload, int type)
{
    double loss_sd, draw_sd;

    if (type >= b->n_types)
        return limit_law;
    const struct bend_seen *s = workload < b->n ? &b->seen[workload * b->n_types + type] : NULL;
    double loss = bend_of(b, c, workload, type, loss_of, LIMITS_LOSS_SD, &loss_sd);
    double draw = bend_of(b, c, workload, type, draw_of, LIMITS_DRAW_SD, &draw_sd);
    return (struct limit_bend){ .loss = fmin(fmax(1 + loss, 1.0 / 3), 3),
                                .draw = fmin(fmax(1 + draw, 0.5), 2),
                                .loss_sd = loss_sd,
                                .at = s && s->weight > 0 ? s->x / s->weight : 0 };
}
