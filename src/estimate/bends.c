#include "estimate/bends.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "catalog/catalog.h"

/* Sums, each weighted by 1/noise^2. */
struct bend_seen {
    double weight, x, xx, y, xy;
};

void bends_release(struct bends *b)
{
    free(b->seen);
    *b = (struct bends){ 0 };
}

void bends_note(struct bends *b, int n_types, int workload, int type, double ln_pace,
                double ln_speed, double noise)
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
    struct bend_seen *s = &b->seen[workload * n_types + type];
    double weight = 1 / (noise * noise);
    s->weight += weight;
    s->x += weight * ln_pace;
    s->xx += weight * ln_pace * ln_pace;
    s->y += weight * ln_speed;
    s->xy += weight * ln_pace * ln_speed;
}

/* The slope less 1, and its weight (0: speeds under one limit only, which say nothing). */
static double slope_of(const struct bend_seen *s, double *weight)
{
    double spread = s->weight > 0 ? s->xx - s->x * s->x / s->weight : 0;

    *weight = spread > 1e-6 ? spread : 0;    // below are rounding errors
    return *weight > 0 ? (s->xy - s->x * s->y / s->weight) / spread - 1 : 0;
}

/* How a family differs from the law on a type, without 'except': mean and variance. Of the variance
 * of LIMITS_LOSS_SD a family has this much in common.
 */
#define FAMILY_SHARE 0.64

static double family_bend(const struct bends *b, const struct catalog *c, int except, int type,
                          double *var)
{
    const double all = LIMITS_LOSS_SD * LIMITS_LOSS_SD, own = (1 - FAMILY_SHARE) * all;
    const struct workload *w = c->workloads;
    double sum = 0, trust = 1 / (FAMILY_SHARE * all);

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

struct limit_bend bends_of(const struct bends *b, const struct catalog *c, int workload, int type)
{
    const struct bend_seen nothing = { 0 }, *s = &nothing;
    double var, weight;

    if (type >= b->n_types)
        return limit_law;
    if (workload < b->n)
        s = &b->seen[workload * b->n_types + type];
    double mean = family_bend(b, c, workload, type, &var), own = slope_of(s, &weight);
    var += (1 - FAMILY_SHARE) * LIMITS_LOSS_SD * LIMITS_LOSS_SD;
    mean += var * weight / (var * weight + 1) * (own - mean);
    return (struct limit_bend){ .loss = fmin(fmax(1 + mean, 1.0 / 3), 3),
                                .draw = 1,
                                .loss_sd = sqrt(var / (var * weight + 1)),
                                .at = s->weight > 0 ? s->x / s->weight : 0 };
}
