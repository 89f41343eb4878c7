/* A guide: where jobs should go at given prices, for insertions that look further than the next
 * watt. A place costs its GPU's worth and what stands there, less what the others there should
 * pay; on an empty GPU, less what the best company could pay that may still come.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "optimize/search/desk_inner.h"
#include "base/grow.h"
#include "optimize/prices/prices.h"

struct guiding {
    struct desk_guide *g;
    const struct desk *d;
    const struct prices *u;
};

/* What the GPU costs with its worth and watts. */
static double worth_w(const struct guiding *b, int type, double cost_w, double watts)
{
    const struct problem *p = b->d->problem;
    double draw_w = (watts - p->types[type].idle_w) * p->watts_margin;

    return cost_w + b->g->type_w[type] + b->u->u.cap_price * draw_w;
}

static void open_offer(struct guiding *b, int type, int kind, double low, double w)
{
    double alone = tables_alone(b->d->tables, type, kind, 0)->low;
    float *open = b->g->open_w + ((long)type * b->d->tables->n_kinds + kind) * (NEED_STEPS + 1);

    for (int step = 0; step <= NEED_STEPS && low >= alone * step / NEED_STEPS * (1 - 1e-12); step++)
        open[step] = fminf(open[step], (float)w);
}

/* The least that a newcomer of 'kind' costs beside 'other', who pays for what he gets. */
static double beside_w(struct guiding *b, int type, int kind, int other)
{
    double least = HUGE_VAL;

    for (int limit = 0; limit < b->d->problem->types[type].n_limits; limit++) {
        struct yield y;
        if (!tables_yield(b->d, type, limit, (int[]){ kind, other }, 2, &y))
            break;
        double w = worth_w(b, type, y.cost_w, y.watts) - prices_slot_w(b->u, other, y.low[1]);
        open_offer(b, type, kind, y.low[0], w);
        least = fmin(least, w);
    }
    return least;
}

static int by_least(const void *a, const void *b)
{
    const struct berth *x = a, *y = b;

    if (x->least_w != y->least_w)
        return x->least_w < y->least_w ? -1 : 1;
    return x->type != y->type ? x->type - y->type : x->beside - y->beside;
}

static void guide_kind(struct guiding *b, int kind)
{
    const struct desk_tables *t = b->d->tables;
    struct berth *row = b->g->berths + (long)kind * t->n_berths;
    int n = 0;

    for (; n < t->n_berths && t->berths[(long)kind * t->n_berths + n].type >= 0; n++) {
        row[n] = t->berths[(long)kind * t->n_berths + n];
        if (row[n].beside >= 0)
            row[n].least_w = (float)beside_w(b, row[n].type, kind, row[n].beside);
    }
    for (int i = 0; i < n; i++) {
        if (row[i].beside >= 0)
            continue;
        int type = row[i].type;
        for (int limit = 0; limit < b->d->problem->types[type].n_limits; limit++) {
            const struct alone_cell *c = tables_alone(t, type, kind, limit);
            open_offer(b, type, kind, c->low, worth_w(b, type, c->cost_w, c->watts));
        }
        row[i].least_w = b->g->open_w[((long)type * t->n_kinds + kind) * (NEED_STEPS + 1)];
    }
    qsort(row, (size_t)n, sizeof *row, by_least);
    row[n] = (struct berth){ (float)HUGE_VAL, 0, -1, -1, -1, 0 };
}

struct desk_guide *desk_guide_create(const struct desk *d, const struct prices *u)
{
    const struct desk_tables *t = d->tables;
    struct desk_guide *g = heap_array(1, sizeof *g);
    struct guiding b = { g, d, u };
    long n_open = (long)t->n_types * t->n_kinds * (NEED_STEPS + 1);

    g->type_w = u->u.type_w;
    g->cap_price = u->u.cap_price * d->problem->watts_margin;
    g->n_kinds = t->n_kinds;
    g->open_w = heap_array((size_t)n_open, sizeof *g->open_w);
    for (long i = 0; i < n_open; i++)
        g->open_w[i] = (float)HUGE_VAL;
    g->berths = heap_array((size_t)t->n_kinds * (size_t)(t->n_berths + 1), sizeof *g->berths);
    for (int kind = 0; kind < t->n_kinds; kind++)
        guide_kind(&b, kind);
    return g;
}

void desk_guide_destroy(struct desk_guide *g)
{
    if (!g)
        return;
    free(g->open_w);
    free(g->berths);
    free(g);
}

/* What coming to an empty GPU costs in the long run, for a job that needs 'low' of it. */
double guide_open_w(const struct desk *d, int type, int kind, double need)
{
    double alone = tables_alone(d->tables, type, kind, 0)->low;
    double step = alone > 0 ? ceil(need / alone * NEED_STEPS) : 0;
    const float *open =
        d->guide->open_w + ((long)type * d->guide->n_kinds + kind) * (NEED_STEPS + 1);

    return (double)open[(int)fmin(fmax(step, 0), NEED_STEPS)];
}

/* What those on a GPU should pay for being there. */
double guide_dues_w(const struct desk *d, int gpu)
{
    const struct desk_gpu *g = &d->gpus[gpu];
    double w = 0;

    for (int i = 0; i < g->n_jobs; i++)
        w += d->dues_w[g->jobs[i]] / d->jobs[g->jobs[i]].n_gpus;
    return w;
}
