/* What classes of jobs do on a GPU, alone and two together: throughput, promises, watts. */
#include <math.h>

#include "base/arena.h"
#include "optimize/policy/gavel_inner.h"

/* A promise that is kept is worth so many equal shares of the cluster, more than one place usually
 * is over another; one that is nearly kept, this part of that. Chosen on the reference cluster
 * (docs/experiments.md, "The policies").
 */
#define PROMISE_WORTH 4.0
#define NEARLY_KEPT 0.8

double gavel_work(const struct gavel_program *g, int type, int a, int b)
{
    const struct gavel_cell *c = gavel_cell_at(g, type, a, b);

    return c->done + PROMISE_WORTH * c->kept;
}

double gavel_value(const struct gavel_program *g, int type, int a, int b)
{
    return gavel_work(g, type, a, b) - g->watt_price * gavel_cell_at(g, type, a, b)->cost_w;
}

double gavel_alone(const struct gavel_program *g, int type, int c)
{
    const struct problem_job job = { .allowed_types = g->classes[c].allowed_types };
    int kind = g->classes[c].kind;
    struct yield y;

    if (!problem_allows(&job, type) || !problem_yield(g->work.problem, type, 0, &kind, 1, &y))
        return 0;
    return y.speed[0] / problem_counted_on(g->work.problem, type, &kind, 1, 0).speed;
}

/* Two classes of jobs on a GPU of a type, or one. */
struct gavel_pair {
    int type, n;
    int classes[2], kinds[2];
};

/* Normalised throughput of the i-th. What was not measured yet is taken for as fast as it may well
 * be, one standard deviation up, so that it gets tried: else one wrong belief keeps a class on a
 * slow type for ever. Gavel profiles what it does not know; this does it at work. Where cost
 * counts, what everybody hopes is enough: a slow type that draws little is tried soon enough, and
 * dear to try.
 */
static double throughput(const struct gavel_program *g, const struct gavel_pair *x,
                         const struct yield *y, int i)
{
    const struct gavel_class *class = &g->classes[x->classes[i]];
    double hope = problem_counted_on(g->work.problem, x->type, x->kinds, x->n, i).speed;
    double doubt = y->held[i].mean > 0 ? y->held[i].dev / y->held[i].mean : 0;
    double speed = g->minds_cost ? y->speed[i] : y->speed[i] / hope * exp(doubt);

    return class->weight * (class->rate > 0 ? fmin(speed, class->rate) : speed) / class->norm;
}

/* Speed held over what was promised, of the i-th. */
static double share_held(const struct gavel_program *g, const struct gavel_pair *x,
                         const struct yield *y, int i)
{
    double need = g->classes[x->classes[i]].need;
    double hope = problem_counted_on(g->work.problem, x->type, x->kinds, x->n, i).held;

    return need > 0 ? held_low(y->held[i]) / hope / need : (double)INFINITY;
}

static double kept(const struct gavel_program *g, int c, double share)
{
    return g->classes[c].need > 0 ? (share >= 1 ? 1 : NEARLY_KEPT * share) : 0;
}

/* Under the setting that costs least and breaks no promise that holds without, which is what the
 * assignment will choose; without a mind for cost, under the default.
 */
static bool best_yield(const struct gavel_program *g, const struct gavel_pair *x,
                       struct yield *best)
{
    const struct problem *p = g->work.problem;
    struct yield y, plain;

    if (!problem_yield(p, x->type, 0, x->kinds, x->n, &plain))
        return false;
    *best = plain;
    for (int limit = 1; limit < p->types[x->type].n_limits && g->minds_cost; limit++) {
        if (!problem_yield(p, x->type, limit, x->kinds, x->n, &y) || y.cost_w >= best->cost_w)
            continue;
        bool breaks = false;
        for (int i = 0; i < x->n; i++)
            breaks |= share_held(g, x, &y, i) < 1 && share_held(g, x, &plain, i) >= 1;
        if (!breaks)
            *best = y;
    }
    return true;
}

static struct gavel_cell make_cell(const struct gavel_program *g, int type, int a, int b)
{
    const struct problem *p = g->work.problem;
    const struct gavel_pair x = {
        type, b < 0 ? 1 : 2, { a, b }, { g->classes[a].kind, b < 0 ? -1 : g->classes[b].kind }
    };
    struct gavel_cell cell = { 0 };
    struct yield y;

    if (!best_yield(g, &x, &y))
        return cell;
    for (int i = 0; i < x.n; i++) {
        cell.done += throughput(g, &x, &y, i);
        cell.kept += kept(g, x.classes[i], share_held(g, &x, &y, i));
    }
    cell.cost_w = y.watts - p->types[type].sleep_w + p->price_w;
    return cell;
}

/* The throughput of an equal share: as much time on every GPU as there are of each type. */
static void normalise(struct gavel_program *g)
{
    for (int c = 0; c < g->n_classes; c++) {
        double rate = g->classes[c].rate, sum = 0, n = 0;
        for (int type = 0; type < g->work.problem->n_types; type++) {
            double speed = gavel_alone(g, type, c);
            sum += g->n_gpus[type] * speed;
            n += speed > 0 ? g->n_gpus[type] : 0;
        }
        g->classes[c].norm = rate > 0 ? rate : sum > 0 ? sum / n : 1;
    }
}

void gavel_find_cells(struct gavel_program *g)
{
    int n_types = g->work.problem->n_types, n = g->n_classes;

    normalise(g);
    g->cells = ARENA_ARRAY(g->work.arena, struct gavel_cell,
                           (size_t)n_types * (size_t)n * (size_t)(n + 1));
    for (int type = 0; type < n_types; type++)
        for (int a = 0; a < n && g->n_gpus[type] > 0; a++) {
            *gavel_cell_at(g, type, a, -1) = make_cell(g, type, a, -1);
            for (int b = a; b < n && g->work.problem->theta > 1; b++)
                *gavel_cell_at(g, type, a, b) = *gavel_cell_at(g, type, b, a) =
                    make_cell(g, type, a, b);
        }
}
