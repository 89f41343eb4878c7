#include "optimize/prices/lp.h"

#include <coin/Clp_C_Interface.h>
#include <math.h>
#include <stdlib.h>

#include "base/grow.h"

/* Clp aborts on costs of 1e25. What costs or saves more than this does so beyond all else. */
#define COST_MOST 1e20

static double within(double cost)
{
    return fmax(fmin(cost, COST_MOST), -COST_MOST);
}

struct lp *lp_create(void)
{
    struct lp *lp = Clp_newModel();

    Clp_setLogLevel(lp, 0);
    Clp_scaling(lp, 0);              // coefficients are small integers as they stand
    Clp_setPerturbation(lp, 100);    // none: restarts are many and short
    return lp;
}

void lp_destroy(struct lp *lp)
{
    if (lp)
        Clp_deleteModel(lp);
}

void lp_add_rows(struct lp *lp, const struct lp_lines *rows)
{
    if (rows->n)
        Clp_addRows(lp, rows->n, rows->lower, rows->upper, rows->start, rows->index, rows->value);
}

void lp_add_columns(struct lp *lp, const struct lp_lines *columns)
{
    double *cost = heap_array((size_t)columns->n, sizeof *cost);

    for (int i = 0; i < columns->n; i++)
        cost[i] = within(columns->cost[i]);
    if (columns->n)
        Clp_addColumns(lp, columns->n, columns->lower, columns->upper, cost, columns->start,
                       columns->index, columns->value);
    free(cost);
}

void lp_set_cost(struct lp *lp, int column, double cost)
{
    Clp_objective(lp)[column] = within(cost);
}

int lp_n_columns(struct lp *lp)
{
    return Clp_numberColumns(lp);
}

void lp_limit(struct lp *lp, double seconds)
{
    Clp_setMaximumSeconds(lp, seconds);
}

bool lp_solve(struct lp *lp, enum lp_method method)
{
    if (method == LP_PRIMAL)
        Clp_primal(lp, 0);
    else
        Clp_dual(lp, 0);
    return Clp_status(lp) == 0;
}

double lp_cost(struct lp *lp)
{
    return Clp_objectiveValue(lp);
}

const double *lp_values(struct lp *lp)
{
    return Clp_primalColumnSolution(lp);
}

const double *lp_duals(struct lp *lp)
{
    return Clp_dualRowSolution(lp);
}
