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
    return y.speed[0] / (double)problem_trust(g->work.problem, type, kind, 1).speed;
}

/* Normalised throughput of a job of class 'c' that would go at 'speed' and hold 'low' on a type.
 * What was not measured yet is taken for as fast as it may well be, one standard deviation up, so
 * that it gets tried: else one wrong belief keeps a class on a slow type for ever. Gavel profiles
 * what it does not know; this does it at work. Where cost counts, what everybody hopes is enough: a
 * slow type that draws little is tried soon enough, and dear to try.
 */
static double throughput(const struct gavel_program *g, int c, int type, int n, double speed,
                         double low)
{
    const struct gavel_class *class = &g->classes[c];
    struct problem_trust hope = problem_trust(g->work.problem, type, class->kind, n);
    double believed = speed / (double)hope.speed, held = low / (double)hope.low;

    if (!g->minds_cost)
        speed = held > 0 && g->work.problem->z > 0
                    ? believed * pow(believed / held, 1 / g->work.problem->z)
                    : believed;
    return class->weight * (class->rate > 0 ? fmin(speed, class->rate) : speed) / class->norm;
}

/* Speed held over what was promised, of one job of class 'c'. */
static double share_held(const struct gavel_program *g, int c, int type, int n, double low)
{
    const struct gavel_class *class = &g->classes[c];
    struct problem_trust hope = problem_trust(g->work.problem, type, class->kind, n);

    return class->need > 0 ? low / (double)hope.low / class->need : (double)INFINITY;
}

static double kept(const struct gavel_program *g, int c, double share)
{
    return g->classes[c].need > 0 ? (share >= 1 ? 1 : NEARLY_KEPT * share) : 0;
}

/* Under the setting that costs least and breaks no promise that holds without, which is what the
 * assignment will choose; without a mind for cost, under the default.
 */
static bool best_yield(const struct gavel_program *g, int type, const int *classes, int n,
                       struct yield *best)
{
    const struct problem *p = g->work.problem;
    int kinds[2] = { g->classes[classes[0]].kind, n > 1 ? g->classes[classes[1]].kind : -1 };
    struct yield y, plain;

    if (!problem_yield(p, type, 0, kinds, n, &plain))
        return false;
    *best = plain;
    for (int limit = 1; limit < p->types[type].n_limits && g->minds_cost; limit++) {
        if (!problem_yield(p, type, limit, kinds, n, &y) || y.cost_w >= best->cost_w)
            continue;
        bool breaks = false;
        for (int i = 0; i < n; i++)
            breaks |= share_held(g, classes[i], type, n, y.low[i]) < 1 &&
                      share_held(g, classes[i], type, n, plain.low[i]) >= 1;
        if (!breaks)
            *best = y;
    }
    return true;
}

static struct gavel_cell make_cell(const struct gavel_program *g, int type, int a, int b)
{
    const struct problem *p = g->work.problem;
    const int classes[2] = { a, b };
    struct gavel_cell cell = { 0 };
    int n = b < 0 ? 1 : 2;
    struct yield y;

    if (!best_yield(g, type, classes, n, &y))
        return cell;
    for (int i = 0; i < n; i++) {
        cell.done += throughput(g, classes[i], type, n, y.speed[i], y.low[i]);
        cell.kept += kept(g, classes[i], share_held(g, classes[i], type, n, y.low[i]));
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
