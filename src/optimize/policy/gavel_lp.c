#include <math.h>

#include "base/arena.h"
#include "optimize/policy/gavel_inner.h"
#include "optimize/prices/lp.h"

/* The most in proportion to cost is sought by Dinkelbach's method: a linear program at a price of
 * watts, and the price that its optimum would have borne for the next. Prices settle at once, or
 * nearly so; the last one stands.
 */
#define PRICES_MAX 3
#define PRICE_HAIR 0.02

/* ---- columns ---- */

static bool may_pair(const struct gavel_program *g, int type, int a, int b)
{
    return g->work.problem->theta > 1 && gavel_alone(g, type, b) > 0 &&
           !g->classes[a].is_exclusive && !g->classes[b].is_exclusive &&
           (a != b || g->classes[a].n_jobs > 1) && gavel_work(g, type, a, b) > 0;
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
    for (int b = a; b < g->n_classes; b++)
        if (gavel_value(g, type, a, b) > alone &&
            gavel_value(g, type, a, b) > gavel_value(g, type, b, -1) && may_pair(g, type, a, b))
            add_column(g, type, a, b, gavel_value(g, type, a, b));
}

static void find_columns(struct gavel_program *g)
{
    size_t n = (size_t)g->work.problem->n_types * (size_t)g->n_classes * (size_t)(g->n_classes + 1);

    if (!g->columns) {
        g->column_of = ARENA_ARRAY(g->work.arena, int, n);
        g->columns = ARENA_ARRAY(g->work.arena, struct gavel_column, n);
    }
    g->n_columns = 0;
    for (size_t i = 0; i < n; i++)
        g->column_of[i] = -1;
    for (int type = 0; type < g->work.problem->n_types; type++)
        for (int a = 0; a < g->n_classes && g->n_gpus[type] > 0; a++)
            if (gavel_alone(g, type, a) > 0)
                add_columns_with(g, type, a);
}

/* ---- the program ---- */

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

/* False: there is no optimum. */
static bool solve_once(struct gavel_program *g)
{
    int n_types = g->work.problem->n_types;

    find_columns(g);
    if (g->n_columns == 0)
        return false;
    struct lp *lp = lp_create();
    add_rows(g, lp);
    add_columns(g, lp);
    bool is_solved = lp_solve(lp, LP_PRIMAL);
    for (int i = 0; i < g->n_columns && is_solved; i++)
        g->columns[i].n = lp_values(lp)[i];
    for (int type = 0; type < n_types; type++)
        g->gpu_price[type] = is_solved ? fmax(-lp_duals(lp)[type], 0) : 0;
    lp_destroy(lp);
    return is_solved;
}

/* What the optimum does for a watt, the price of its jobs' time among the watts. */
static double done_for_a_watt(const struct gavel_program *g)
{
    double done = 0, cost_w = g->time_w;

    for (int i = 0; i < g->n_columns; i++) {
        const struct gavel_column *c = &g->columns[i];
        const struct gavel_cell *cell = gavel_cell_at(g, c->type, c->a, c->b);
        done += c->n * cell->done;
        cost_w += c->n * cell->cost_w;
    }
    return cost_w > 0 ? done / cost_w : 0;
}

/* The same where every job has the place that does most for a watt. */
static double first_price(const struct gavel_program *g)
{
    double done = 0, cost_w = g->time_w, n_jobs = 0;

    for (int c = 0; c < g->n_classes; c++)
        n_jobs += g->classes[c].n_jobs;
    for (int c = 0; c < g->n_classes; c++) {
        const struct gavel_cell *best = NULL;
        double most = 0, time_w = g->time_w / n_jobs;
        for (int type = 0; type < g->work.problem->n_types; type++) {
            const struct gavel_cell *cell = gavel_cell_at(g, type, c, -1);
            if (gavel_alone(g, type, c) > 0 && cell->done > most * (cell->cost_w + time_w)) {
                most = cell->done / (cell->cost_w + time_w);
                best = cell;
            }
        }
        done += best ? g->classes[c].n_jobs * best->done : 0;
        cost_w += best ? g->classes[c].n_jobs * best->cost_w : 0;
    }
    return cost_w > 0 ? done / cost_w : 0;
}

void gavel_solve(struct gavel_program *g)
{
    gavel_find_cells(g);
    g->watt_price = g->minds_cost ? first_price(g) : 0;
    g->gpu_price = ARENA_ARRAY(g->work.arena, double, (size_t)g->work.problem->n_types);
    for (int i = 0; solve_once(g) && g->minds_cost && i < PRICES_MAX; i++) {
        double price = done_for_a_watt(g);
        bool is_settled = fabs(price - g->watt_price) <= PRICE_HAIR * price;
        g->watt_price = price;
        if (is_settled)
            break;
    }
}
