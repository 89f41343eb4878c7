/* lp.h - a linear program that grows: minimise cost, rows and columns added as they are needed.
 *
 * The only place that knows Clp. One program per thread; nothing is shared between programs.
 * Solving again after an addition starts from where the last solution stood.
 */
#ifndef OPTIMIZE_PRICES_LP_H
#define OPTIMIZE_PRICES_LP_H

#include <stdbool.h>

struct lp;    // Clp's model

/* Rows or columns to add, sparse: entries start[i] .. start[i + 1] - 1 belong to the i-th. */
struct lp_lines {
    int n;
    const double *lower, *upper;    // (n) of the row's sum, or of the column's value. NULL: a row
                                    // has no such limit, a column is at least 0
    const double *cost;             // (n) columns only
    const int *start;               // (n + 1); NULL: they are empty
    const int *index;               // which columns, or which rows
    const double *value;
};

struct lp *lp_create(void);
void lp_destroy(struct lp *lp);

void lp_add_rows(struct lp *lp, const struct lp_lines *rows);
void lp_add_columns(struct lp *lp, const struct lp_lines *columns);

/* A column's cost from now on. */
void lp_set_cost(struct lp *lp, int column, double cost);

int lp_n_columns(struct lp *lp);

/* A solution takes no longer than about this many seconds from now on. */
void lp_limit(struct lp *lp, double seconds);

enum lp_method { LP_PRIMAL, LP_DUAL };

/* Solve to the optimum; false when that was not reached (then nothing below may be read). */
bool lp_solve(struct lp *lp, enum lp_method method);

double lp_cost(struct lp *lp);
const double *lp_values(struct lp *lp);    // (n_columns) borrowed until the next addition
const double *lp_duals(struct lp *lp);     // (n_rows) likewise

#endif
