#include <math.h>

#include "base/arena.h"
#include "optimize/policy/gavel_inner.h"
#include "optimize/prices/lp.h"

/* Normalised throughput of a job of class 'c' on a type, the i-th of 'n' there. What was not measured
 * yet is taken for as fast as it may well be, one standard deviation up, so that it gets tried: else
 * one wrong belief keeps a class on a slow type for ever. Gavel profiles what it does not know; this
 * does it at work.
 */
static double throughput(const struct gavel_program *g, int c, int type, const int *kinds, int n,
                         const struct yield *y, int i)
{
    const struct gavel_class *class = &g->classes[c];
    double hope = problem_counted_on(g->work.problem, type, kinds, n, i).speed;
    double doubt = y->held[i].mean > 0 ? y->held[i].dev / y->held[i].mean : 0;
    double speed = y->speed[i] / hope * exp(doubt);

    return class->weight * (class->rate > 0 ? fmin(speed, class->rate) : speed) / class->norm;
}

double gavel_value(const struct gavel_program *g, int type, int a, int b)
{
    int kinds[2] = { g->classes[a].kind, b < 0 ? -1 : g->classes[b].kind };
    int n = b < 0 ? 1 : 2;
    struct yield y;

    if (!problem_yield(g->work.problem, type, 0, kinds, n, &y))
        return 0;
    return throughput(g, a, type, kinds, n, &y, 0) +
           (b < 0 ? 0 : throughput(g, b, type, kinds, n, &y, 1));
}

/* ---- columns ---- */

/* What a job of the class is believed to do on a type alone; 0: it may not be there. */
static double alone_speed(const struct gavel_program *g, int type, int c)
{
    const struct problem_job job = { .allowed_types = g->classes[c].allowed_types };
    int kind = g->classes[c].kind;
    struct yield y;

    if (!problem_allows(&job, type) || !problem_yield(g->work.problem, type, 0, &kind, 1, &y))
        return 0;
    return y.speed[0] / problem_counted_on(g->work.problem, type, &kind, 1, 0).speed;
}

static bool may_pair(const struct gavel_program *g, int type, int a, int b)
{
    return g->work.problem->theta > 1 && alone_speed(g, type, b) > 0 &&
           !g->classes[a].is_exclusive && !g->classes[b].is_exclusive &&
           (a != b || g->classes[a].n_jobs > 1);
}

static void add_column(struct gavel_program *g, int type, int a, int b, double value)
{
    *gavel_column_at(g, type, a, b) = g->n_columns;
    if (b >= 0)
        *gavel_column_at(g, type, b, a) = g->n_columns;
    g->columns[g->n_columns++] =
        (struct gavel_column){ .type = type, .a = a, .b = b, .value = value };
}

/* A pair that does no more than one of the two alone is in no optimum that is not also one
 * without it.
 */
static void add_columns_with(struct gavel_program *g, int type, int a)
{
    double alone = gavel_value(g, type, a, -1);

    add_column(g, type, a, -1, alone);
    for (int b = a; b < g->n_classes; b++) {
        double value = may_pair(g, type, a, b) ? gavel_value(g, type, a, b) : 0;
        if (value > alone && value > gavel_value(g, type, b, -1))
            add_column(g, type, a, b, value);
    }
}

static void find_columns(struct gavel_program *g)
{
    size_t n = (size_t)g->work.problem->n_types * (size_t)g->n_classes * (size_t)(g->n_classes + 1);

    g->column_of = ARENA_ARRAY(g->work.arena, int, n);
    g->columns = ARENA_ARRAY(g->work.arena, struct gavel_column, n);
    for (size_t i = 0; i < n; i++)
        g->column_of[i] = -1;
    for (int type = 0; type < g->work.problem->n_types; type++)
        for (int a = 0; a < g->n_classes && g->n_gpus[type] > 0; a++)
            if (alone_speed(g, type, a) > 0)
                add_columns_with(g, type, a);
}

/* ---- the program ---- */

/* The throughput of an equal share: as much time on every GPU as there are of each type. */
static void normalise(struct gavel_program *g)
{
    for (int c = 0; c < g->n_classes; c++) {
        double rate = g->classes[c].rate, sum = 0, n = 0;
        for (int type = 0; type < g->work.problem->n_types; type++) {
            double speed = alone_speed(g, type, c);
            sum += g->n_gpus[type] * speed;
            n += speed > 0 ? g->n_gpus[type] : 0;
        }
        g->classes[c].norm = rate > 0 ? rate : sum > 0 ? sum / n : 1;
    }
}

/* Rows: the GPUs of each type, then the jobs of each class; none may be used more than once. */
static void add_rows(const struct gavel_program *g, struct lp *lp)
{
    int n = g->work.problem->n_types + g->n_classes;
    double *upper = ARENA_ARRAY(g->work.arena, double, (size_t)n);

    for (int i = 0; i < n; i++)
        upper[i] = i < g->work.problem->n_types ? g->n_gpus[i]
                                                : g->classes[i - g->work.problem->n_types].n_jobs;
    lp_add_rows(lp, &(struct lp_lines){ .n = n, .upper = upper });
}

static void add_columns(const struct gavel_program *g, struct lp *lp)
{
    size_t n = (size_t)g->n_columns;
    double *cost = ARENA_ARRAY(g->work.arena, double, n);
    double *value = ARENA_ARRAY(g->work.arena, double, 3 * n);
    int *start = ARENA_ARRAY(g->work.arena, int, n + 1);
    int *index = ARENA_ARRAY(g->work.arena, int, 3 * n);
    int at = 0;

    for (int i = 0; i < g->n_columns; i++) {
        const struct gavel_column *c = &g->columns[i];
        cost[i] = -c->value;
        index[at] = c->type;
        value[at++] = 1;
        index[at] = g->work.problem->n_types + c->a;
        value[at++] = c->a == c->b ? 2 : 1;
        if (c->b >= 0 && c->b != c->a) {
            index[at] = g->work.problem->n_types + c->b;
            value[at++] = 1;
        }
        start[i + 1] = at;
    }
    lp_add_columns(lp, &(struct lp_lines){ g->n_columns, NULL, NULL, cost, start, index, value });
}

void gavel_solve(struct gavel_program *g)
{
    int n_types = g->work.problem->n_types;

    normalise(g);
    find_columns(g);
    g->gpu_price = ARENA_ARRAY(g->work.arena, double, (size_t)n_types);
    if (g->n_columns == 0)
        return;
    struct lp *lp = lp_create();
    add_rows(g, lp);
    add_columns(g, lp);
    bool is_solved = lp_solve(lp, LP_PRIMAL);
    for (int i = 0; i < g->n_columns && is_solved; i++)
        g->columns[i].n = lp_values(lp)[i];
    for (int type = 0; type < n_types && is_solved; type++)
        g->gpu_price[type] = fmax(-lp_duals(lp)[type], 0);
    lp_destroy(lp);
}
