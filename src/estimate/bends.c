#include "estimate/bends.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "catalog/catalog.h"

void bends_release(struct bends *b)
{
    free(b->cell);
    *b = (struct bends){ 0 };
}

static void make_room(struct bends *b, int workload)
{
    int n = workload + 64;

    if (workload < b->n)
        return;
    RESIZE(b->cell, (size_t)n * (size_t)b->n_types);
    for (int i = b->n * b->n_types; i < n * b->n_types; i++)
        b->cell[i] = -1;
    b->n = n;
}

void bends_meet(struct bends *b, const struct catalog *c)
{
    if (b->n_types != c->n_types)
        *b = (struct bends){ .cell = b->cell, .n_types = c->n_types };
    for (; b->n_cells < c->n_cells; b->n_cells++) {
        const struct cell_key *k = &c->cells[b->n_cells].key;
        if (!cell_key_is_plain(k) || k->neighbour >= 0)
            continue;
        make_room(b, k->workload);
        b->cell[k->workload * b->n_types + k->gpu_type] = b->n_cells;
    }
}

static const struct limit_sums *seen_of(const struct bends *b, const struct catalog *c,
                                        int workload, int type)
{
    static const struct limit_sums nothing;
    int cell = workload < b->n ? b->cell[workload * b->n_types + type] : -1;

    return cell >= 0 ? &c->cells[cell].limits : &nothing;
}

/* The slope less 1, and its weight (0: nothing is said). */
typedef double slope_f(const struct limit_sums *s, double *weight);

static double loss_of(const struct limit_sums *s, double *weight)
{
    double spread = s->weight > 0 ? s->xx - s->x * s->x / s->weight : 0;

    *weight = spread > 1e-6 ? spread : 0;    // below are rounding errors: speeds under one limit
    return *weight > 0 ? (s->xy - s->x * s->y / s->weight) / spread - 1 : 0;
}

static double draw_of(const struct limit_sums *s, double *weight)
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
        double slope = slope_of(seen_of(b, c, i, type), &weight);
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
    double var, weight, mean = family_bend(b, c, workload, type, slope_of, sd * sd, &var);
    double own = slope_of(seen_of(b, c, workload, type), &weight);

    var += (1 - FAMILY_SHARE) * sd * sd;
    *left_sd = sqrt(var / (var * weight + 1));
    return mean + var * weight / (var * weight + 1) * (own - mean);
}

struct limit_bend bends_of(const struct bends *b, const struct catalog *c, int workload, int type)
{
    double loss_sd, draw_sd;

    if (type >= b->n_types)
        return limit_law;
    const struct limit_sums *s = seen_of(b, c, workload, type);
    double loss = bend_of(b, c, workload, type, loss_of, LIMITS_LOSS_SD, &loss_sd);
    double draw = bend_of(b, c, workload, type, draw_of, LIMITS_DRAW_SD, &draw_sd);
    return (struct limit_bend){ .loss = fmin(fmax(1 + loss, 1.0 / 3), 3),
                                .draw = fmin(fmax(1 + draw, 0.5), 2),
                                .loss_sd = loss_sd,
                                .at = s->weight > 0 ? s->x / s->weight : 0 };
}
