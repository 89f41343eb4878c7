/* Reduced costs: where jobs should go at given prices, for insertions that look further than the
 * next watt. A place costs its GPU's worth and what stands there, less what the others there should
 * pay; on an empty GPU, less what the best neighbours could pay that may still come.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "optimize/search/assignment_inner.h"
#include "base/grow.h"
#include "optimize/prices/prices.h"

/* What the GPU costs with its worth and watts. */
static double worth_w(const struct problem *p, const struct dual *u, int type, double cost_w,
                      double watts)
{
    double draw_w = (watts - p->types[type].idle_w) * p->watts_margin;

    return cost_w + u->type_w[type] + dual_watt_price(u, type) * draw_w;
}

static void open_offer(struct reduced_costs *g, const struct assignment *d, int type, int kind,
                       double low, double w)
{
    double alone = tables_alone(d->tables, type, kind, 0)->low;
    float *open = g->open_w + ((long)type * d->tables->n_kinds + kind) * (NEED_STEPS + 1);

    for (int step = 0; step <= NEED_STEPS && low >= alone * step / NEED_STEPS * (1 - 1e-12); step++)
        open[step] = fminf(open[step], (float)w);
}

/* The least that a newcomer of 'kind' costs beside 'other', who pays for what he gets. */
static double beside_w(struct reduced_costs *g, const struct assignment *d, const struct prices *u,
                       int type, int kind, int other)
{
    double least = HUGE_VAL;

    for (int limit = 0; limit < d->problem->types[type].n_limits; limit++) {
        struct yield y;
        if (!tables_yield(d, type, limit, (int[]){ kind, other }, 2, &y))
            break;
        double w = worth_w(d->problem, &u->u, type, y.cost_w, y.watts) -
                   prices_slot_w(u, other, yield_low(d->problem, &y, 1));
        open_offer(g, d, type, kind, yield_low(d->problem, &y, 0), w);
        least = fmin(least, w);
    }
    return least;
}

static void reduced_kind(struct reduced_costs *g, const struct assignment *d,
                         const struct prices *u, int kind)
{
    const struct assignment_tables *t = d->tables;
    struct position *row = g->positions + (long)kind * t->n_positions;
    int n = 0;

    for (; n < t->n_positions && t->positions[(long)kind * t->n_positions + n].type >= 0; n++) {
        row[n] = t->positions[(long)kind * t->n_positions + n];
        if (row[n].beside >= 0)
            row[n].least_w = (float)beside_w(g, d, u, row[n].type, kind, row[n].beside);
    }
    for (int i = 0; i < n; i++) {
        if (row[i].beside >= 0)
            continue;
        int type = row[i].type;
        for (int limit = 0; limit < d->problem->types[type].n_limits; limit++) {
            const struct alone_cell *c = tables_alone(t, type, kind, limit);
            open_offer(g, d, type, kind, c->low,
                       worth_w(d->problem, &u->u, type, c->cost_w, c->watts));
        }
        row[i].least_w = g->open_w[((long)type * t->n_kinds + kind) * (NEED_STEPS + 1)];
    }
    qsort(row, (size_t)n, sizeof *row, position_order);
    row[n] = position_end;
}

struct reduced_costs *reduced_costs_create(const struct assignment *d, const struct prices *u)
{
    const struct assignment_tables *t = d->tables;
    struct reduced_costs *g = heap_array(1, sizeof *g);
    long n_open = (long)t->n_types * t->n_kinds * (NEED_STEPS + 1);

    g->type_w = u->u.type_w;
    g->watt_price = ARENA_ARRAY(&g->arena, double, (size_t)t->n_types);
    for (int type = 0; type < t->n_types; type++)
        g->watt_price[type] = dual_watt_price(&u->u, type) * d->problem->watts_margin;
    g->n_kinds = t->n_kinds;
    g->open_w = ARENA_ARRAY(&g->arena, float, (size_t)n_open);
    for (long i = 0; i < n_open; i++)
        g->open_w[i] = (float)HUGE_VAL;
    g->positions =
        ARENA_ARRAY(&g->arena, struct position, (size_t)t->n_kinds * (size_t)(t->n_positions + 1));
    for (int kind = 0; kind < t->n_kinds; kind++)
        reduced_kind(g, d, u, kind);
    return g;
}

void reduced_costs_destroy(struct reduced_costs *g)
{
    if (!g)
        return;
    arena_release(&g->arena);
    free(g);
}

/* What coming to an empty GPU costs in the long run, for a job that needs 'low' of it. */
double reduced_open_w(const struct assignment *d, int type, int kind, double need)
{
    double alone = tables_alone(d->tables, type, kind, 0)->low;
    double step = alone > 0 ? ceil(need / alone * NEED_STEPS) : 0;
    const float *open =
        d->reduced->open_w + ((long)type * d->reduced->n_kinds + kind) * (NEED_STEPS + 1);

    return (double)open[(int)fmin(fmax(step, 0), NEED_STEPS)];
}

/* What those on a GPU should pay for being there. */
double reduced_prices_w(const struct assignment *d, int gpu)
{
    const struct assignment_gpu *g = &d->gpus[gpu];
    double w = 0;

    for (int i = 0; i < g->n_jobs; i++)
        w += d->job_price_w[g->jobs[i]] / d->jobs[g->jobs[i]].n_gpus;
    return w;
}
