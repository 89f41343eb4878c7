#include <math.h>

#include "base/arena.h"
#include "optimize/policy/gavel_inner.h"
#include "optimize/prices/lp.h"

/* Normalised throughput of a job of class 'c' that would go at 'speed' and hold 'low' on a type.
 * What was not measured yet is taken for as fast as it may well be, one standard deviation up, so
 * that it gets tried: else one wrong belief keeps a class on a slow type for ever. Gavel profiles
 * what it does not know; this does it at work.
 */
static double throughput(const struct gavel_program *p, int c, int type, int n, double speed,
                         double low)
{
    const struct gavel_class *class = &p->classes[c];
    struct problem_trust hope = problem_trust(p->problem, type, class->kind, n);
    double believed = speed / (double)hope.speed, held = low / (double)hope.low;

    speed = held > 0 && p->problem->z > 0 ? believed * pow(believed / held, 1 / p->problem->z)
                                          : believed;

    return class->weight * (class->rate > 0 ? fmin(speed, class->rate) : speed) / class->norm;
}

double gavel_value(const struct gavel_program *p, int type, int a, int b)
{
    int kinds[2] = { p->classes[a].kind, b < 0 ? -1 : p->classes[b].kind };
    int n = b < 0 ? 1 : 2;
    struct yield y;

    if (!problem_yield(p->problem, type, 0, kinds, n, &y))
        return 0;
    return throughput(p, a, type, n, y.speed[0], y.low[0]) +
           (b < 0 ? 0 : throughput(p, b, type, n, y.speed[1], y.low[1]));
}

/* ---- columns ---- */

static int *column_at(const struct gavel_program *p, int type, int a, int b)
{
    return &p->column_of[(type * p->n_classes + a) * (p->n_classes + 1) + b + 1];
}

int gavel_column_at(const struct gavel_program *p, int type, int a, int b)
{
    return b >= 0 && b < a ? *column_at(p, type, b, a) : *column_at(p, type, a, b);
}

/* What a job of the class is believed to do on a type alone; 0: it may not be there. */
static double alone_speed(const struct gavel_program *p, int type, int c)
{
    const struct problem_job job = { .allowed_types = p->classes[c].allowed_types };
    int kind = p->classes[c].kind;
    struct yield y;

    if (!problem_allows(&job, type) || !problem_yield(p->problem, type, 0, &kind, 1, &y))
        return 0;
    return y.speed[0] / (double)problem_trust(p->problem, type, kind, 1).speed;
}

static bool may_pair(const struct gavel_program *p, int type, int a, int b)
{
    return p->problem->theta > 1 && alone_speed(p, type, b) > 0 && !p->classes[a].is_exclusive &&
           !p->classes[b].is_exclusive && (a != b || p->classes[a].n_jobs > 1);
}

static void add_column(struct gavel_program *p, int type, int a, int b, double value)
{
    *column_at(p, type, a, b) = p->n_columns;
    p->columns[p->n_columns++] =
        (struct gavel_column){ .type = type, .a = a, .b = b, .value = value };
}

/* A pair that does no more than one of the two alone is in no optimum that is not also one
 * without it.
 */
static void add_columns_with(struct gavel_program *p, int type, int a)
{
    double alone = gavel_value(p, type, a, -1);

    add_column(p, type, a, -1, alone);
    for (int b = a; b < p->n_classes; b++) {
        double value = may_pair(p, type, a, b) ? gavel_value(p, type, a, b) : 0;
        if (value > alone && value > gavel_value(p, type, b, -1))
            add_column(p, type, a, b, value);
    }
}

static void find_columns(struct gavel_program *p)
{
    size_t n = (size_t)p->problem->n_types * (size_t)p->n_classes * (size_t)(p->n_classes + 1);

    p->column_of = ARENA_ARRAY(p->arena, int, n);
    p->columns = ARENA_ARRAY(p->arena, struct gavel_column, n);
    for (size_t i = 0; i < n; i++)
        p->column_of[i] = -1;
    for (int type = 0; type < p->problem->n_types; type++)
        for (int a = 0; a < p->n_classes && p->n_gpus[type] > 0; a++)
            if (alone_speed(p, type, a) > 0)
                add_columns_with(p, type, a);
}

/* ---- the program ---- */

/* The throughput of an equal share: as much time on every GPU as there are of each type. */
static void normalise(struct gavel_program *p)
{
    for (int c = 0; c < p->n_classes; c++) {
        double rate = p->classes[c].rate, sum = 0, n = 0;
        for (int type = 0; type < p->problem->n_types; type++) {
            double speed = alone_speed(p, type, c);
            sum += p->n_gpus[type] * speed;
            n += speed > 0 ? p->n_gpus[type] : 0;
        }
        p->classes[c].norm = rate > 0 ? rate : sum > 0 ? sum / n : 1;
    }
}

/* Rows: the GPUs of each type, then the jobs of each class; none may be used more than once. */
static void add_rows(const struct gavel_program *p, struct lp *lp)
{
    int n = p->problem->n_types + p->n_classes;
    double *lower = ARENA_ARRAY(p->arena, double, (size_t)n);
    double *upper = ARENA_ARRAY(p->arena, double, (size_t)n);
    int *start = ARENA_ARRAY(p->arena, int, (size_t)n + 1);

    for (int i = 0; i < n; i++) {
        lower[i] = -INFINITY;
        upper[i] =
            i < p->problem->n_types ? p->n_gpus[i] : p->classes[i - p->problem->n_types].n_jobs;
    }
    lp_add_rows(lp, &(struct lp_lines){ .n = n,
                                        .lower = lower,
                                        .upper = upper,
                                        .start = start,
                                        .index = start,
                                        .value = lower });
}

static void add_columns(const struct gavel_program *p, struct lp *lp)
{
    size_t n = (size_t)p->n_columns;
    double *lower = ARENA_ARRAY(p->arena, double, n), *upper = ARENA_ARRAY(p->arena, double, n);
    double *cost = ARENA_ARRAY(p->arena, double, n), *value = ARENA_ARRAY(p->arena, double, 3 * n);
    int *start = ARENA_ARRAY(p->arena, int, n + 1), *index = ARENA_ARRAY(p->arena, int, 3 * n);
    int at = 0;

    for (int i = 0; i < p->n_columns; i++) {
        const struct gavel_column *c = &p->columns[i];
        upper[i] = INFINITY;
        cost[i] = -c->value;
        index[at] = c->type;
        value[at++] = 1;
        index[at] = p->problem->n_types + c->a;
        value[at++] = c->a == c->b ? 2 : 1;
        if (c->b >= 0 && c->b != c->a) {
            index[at] = p->problem->n_types + c->b;
            value[at++] = 1;
        }
        start[i + 1] = at;
    }
    lp_add_columns(lp, &(struct lp_lines){ .n = p->n_columns,
                                           .lower = lower,
                                           .upper = upper,
                                           .cost = cost,
                                           .start = start,
                                           .index = index,
                                           .value = value });
}

static void read_optimum(struct gavel_program *p, const struct lp *lp)
{
    const double *n = lp_values(lp), *price = lp_duals(lp);

    p->total = -lp_cost(lp);
    for (int i = 0; i < p->n_columns; i++)
        p->columns[i].n = n[i];
    for (int type = 0; type < p->problem->n_types; type++)
        p->gpu_price[type] = fmax(-price[type], 0);
}

bool gavel_program_solve(struct gavel_program *p)
{
    normalise(p);
    find_columns(p);
    p->gpu_price = ARENA_ARRAY(p->arena, double, (size_t)p->problem->n_types);
    if (p->n_columns == 0)
        return true;
    struct lp *lp = lp_create();
    add_rows(p, lp);
    add_columns(p, lp);
    bool is_solved = lp_solve(lp, LP_PRIMAL);
    if (is_solved)
        read_optimum(p, lp);
    lp_destroy(lp);
    return is_solved;
}
