#include <math.h>

#include "base/arena.h"
#include "catalog/job.h"
#include "catalog/catalog.h"
#include "estimate/estimate.h"
#include "optimize/policy/gavel_inner.h"
#include "optimize/prices/lp.h"
#include "optimize/policy/solver.h"

/* What was not measured yet is taken for as fast as it may well be, so many standard deviations up,
 * so that it gets tried: else one wrong belief keeps a kind of jobs on a slow type for ever. Gavel
 * profiles what it does not know; this does it at work.
 */
#define HOPE_SD 1.0

double gavel_value(const struct gavel_program *p, int k, int type, int beside)
{
    const struct gavel_kind *kind = &p->kinds[k];
    int neighbour = beside < 0 ? -1 : p->kinds[beside].workload;
    const struct cell_estimate *cell = estimate_cell(p->est, kind->workload, type, neighbour);
    double speed = (double)cell->speed * exp(HOPE_SD * (double)cell->sd);

    if (kind->rate > 0)
        speed = fmin(speed, kind->rate);
    return kind->weight * speed / kind->norm;
}

double gavel_value_of(const struct gavel_program *p, int type, int a, int b)
{
    if (b < 0)
        return gavel_value(p, a, type, -1);
    return gavel_value(p, a, type, b) + gavel_value(p, b, type, a);
}

/* ---- columns ---- */

static int *column_at(const struct gavel_program *p, int type, int a, int b)
{
    return &p->column_of[(type * p->n_kinds + a) * (p->n_kinds + 1) + b + 1];
}

int gavel_column_at(const struct gavel_program *p, int type, int a, int b)
{
    return b >= 0 && b < a ? *column_at(p, type, b, a) : *column_at(p, type, a, b);
}

static bool is_allowed(const struct gavel_program *p, int type, int k)
{
    const struct gavel_kind *kind = &p->kinds[k];
    struct job_spec spec = { .allowed_types = kind->allowed_types };

    return job_allows(&spec, type) &&
           (double)estimate_cell(p->est, kind->workload, type, -1)->unfit <=
               p->options->alone_unfit_max;
}

static bool may_pair(const struct gavel_program *p, int type, int a, int b)
{
    int both[2] = { p->kinds[a].workload, p->kinds[b].workload };

    return p->may_share && gpu_type_theta(&p->est->catalog->types[type], 2) == 2 &&
           !p->kinds[a].is_exclusive && !p->kinds[b].is_exclusive &&
           (a != b || p->kinds[a].n_jobs > 1) &&
           estimate_unfit(p->est, type, both, 2) <= p->options->unfit_max;
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
    double alone = gavel_value(p, a, type, -1);

    add_column(p, type, a, -1, alone);
    for (int b = a; b < p->n_kinds; b++) {
        if (!is_allowed(p, type, b) || !may_pair(p, type, a, b))
            continue;
        double value = gavel_value_of(p, type, a, b);
        if (value > fmax(alone, gavel_value(p, b, type, -1)))
            add_column(p, type, a, b, value);
    }
}

static void find_columns(struct gavel_program *p)
{
    size_t n = (size_t)p->n_types * (size_t)p->n_kinds * (size_t)(p->n_kinds + 1);

    p->column_of = ARENA_ARRAY(p->arena, int, n);
    p->columns = ARENA_ARRAY(p->arena, struct gavel_column, n);
    for (size_t i = 0; i < n; i++)
        p->column_of[i] = -1;
    for (int type = 0; type < p->n_types; type++)
        for (int a = 0; a < p->n_kinds && p->n_gpus[type] > 0; a++)
            if (is_allowed(p, type, a))
                add_columns_with(p, type, a);
}

/* ---- the program ---- */

/* The throughput of an equal share: as much time on every GPU as there are of each type. */
static void normalise(struct gavel_program *p)
{
    for (int k = 0; k < p->n_kinds; k++) {
        struct gavel_kind *kind = &p->kinds[k];
        double sum = 0, n = 0;
        for (int type = 0; type < p->n_types; type++) {
            if (!is_allowed(p, type, k))
                continue;
            sum += p->n_gpus[type] * (double)estimate_cell(p->est, kind->workload, type, -1)->speed;
            n += p->n_gpus[type];
        }
        kind->norm = kind->rate > 0 ? kind->rate : n > 0 && sum > 0 ? sum / n : 1;
    }
}

/* Rows: the GPUs of each type, then the jobs of each kind; none may be used more than once. */
static void add_rows(const struct gavel_program *p, struct lp *lp)
{
    int n = p->n_types + p->n_kinds;
    double *lower = ARENA_ARRAY(p->arena, double, (size_t)n);
    double *upper = ARENA_ARRAY(p->arena, double, (size_t)n);
    int *start = ARENA_ARRAY(p->arena, int, (size_t)n + 1);

    for (int i = 0; i < n; i++) {
        lower[i] = -INFINITY;
        upper[i] = i < p->n_types ? p->n_gpus[i] : p->kinds[i - p->n_types].n_jobs;
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
        index[at] = p->n_types + c->a;
        value[at++] = c->a == c->b ? 2 : 1;
        if (c->b >= 0 && c->b != c->a) {
            index[at] = p->n_types + c->b;
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
    for (int type = 0; type < p->n_types; type++)
        p->gpu_price[type] = fmax(-price[type], 0);
    for (int k = 0; k < p->n_kinds; k++)
        p->job_price[k] = fmax(-price[p->n_types + k], 0);
}

bool gavel_program_solve(struct gavel_program *p)
{
    normalise(p);
    find_columns(p);
    p->gpu_price = ARENA_ARRAY(p->arena, double, (size_t)p->n_types);
    p->job_price = ARENA_ARRAY(p->arena, double, (size_t)p->n_kinds);
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
