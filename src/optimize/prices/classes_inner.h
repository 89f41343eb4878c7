/* classes_inner.h - the class program while it is being solved; for the files of classes only.
 *
 * classes_lines.c puts rows and columns in, classes_rows.c finds rows that are broken,
 * classes_prices.c finds columns that pay and forgets those that do not, classes.c begins and ends.
 */
#ifndef OPTIMIZE_PRICES_CLASSES_INNER_H
#define OPTIMIZE_PRICES_CLASSES_INNER_H

#include <stdbool.h>

#include "optimize/prices/classes.h"
#include "optimize/prices/lp.h"

enum column_kind { COLUMN_SLACK, COLUMN_DISH, COLUMN_WAY };

struct column {
    enum column_kind kind;
    int what;    // slack: its row; dish: in the menu; way: its group
    struct way way;
    int before;    // way: the one its group got before; -1: none
};

/* The shared slots of one cluster: rows by level, the levels its jobs' bases ask for, and the columns
 * that touch it. The first row, at level 0, is an equation: no more slots than jobs
 * to fill them; its price may be negative.
 */
struct room {
    int n_rows, cap_rows;
    double *from;     // (n_rows) levels, ascending
    double *price;    // (n_rows) of a slot that reaches it, as columns are looked for
    double *best;     // (n_rows) the same in the best prices so far
    int *row;         // (n_rows) in the program
    int n_wants;
    double *wants;    // (n_wants) falling
    int n_columns, cap_columns;
    int *columns;
};

struct program {
    struct arena *arena;
    const struct problem *p;
    const struct classes *c;
    const struct demand *demand;
    const struct classes_options *options;
    struct lp *lp;
    int n_columns, cap_columns;
    struct column *columns;
    struct room *rooms;    // (n_clusters)
    bool *is_in;           // (n_dishes) the program has it
    int *group_row;        // (n_groups) its convexity row; -1: not needed so far
    int *group_way;        // (n_groups) the last way it got, a column; -1: none
    int *tariff_n;
    double **tariff_from, **tariff_price;
    struct tariff tariff;
    double *type_w;    // (n_types) worth of a GPU
    double slack_w, worth_w, guess_w, broken;
    double *x, *dual;    // the last solution
    int n_x;
    double *n_usable;    // (n_types)
    double *most_w;      // (n_types) what the best dish earns beyond the GPU's worth
    double room_w;       // what the cap leaves above all GPUs awake
    double bound_w;      // what the last prices prove, nearly
    double best_w;       // the most that any did, which are these
    double *best_type_w, best_cap_price;
    double fine_w;           // less of a rise counts as none
    double idle_w;           // a column that loses more is of no use at present
    int n_slim;              // columns after the last thinning out
    int n_rounds, n_idle;    // rounds, and those since the bound last rose
    int cap_row;             // -1: no cap
    int gang_most;           // GPUs that any job may have

    /* Lines on their way into the program. */
    int n_lines, cap_lines, n_entries, cap_entries;
    double *lower, *upper, *cost, *value;
    int *start, *index;
};

/* ---- classes_lines.c ---- */

/* One line after the other: begin, entries; then all of them into the program at once. */
void program_line_begin(struct program *g, double lower, double upper, double cost);
void program_line_entry(struct program *g, int index, double value);
void program_lines_add(struct program *g, void (*add)(struct lp *, const struct lp_lines *));

/* Queue a column. */
void program_add_dish(struct program *g, int which);
void program_add_way(struct program *g, int group, const struct way *w);
bool program_has_way(const struct program *g, int group, const struct way *w);

/* Queue the row "as many slots hold 'level' as jobs need it"; 'at' is where it will stand. */
void program_queue_row(struct program *g, int cluster, double level, int at);
bool program_has_row(const struct room *r, double level);

/* Columns that let rows from .. to-1 be broken, at a price. */
void program_add_slacks(struct program *g, int from, int to, double sign);

/* ---- classes_rows.c: return how many were added ---- */

int program_add_broken_rows(struct program *g);
int program_add_broken_groups(struct program *g);

/* ---- classes_prices.c ---- */

/* Take over the solution. */
void program_read_solution(struct program *g);

/* The best new dishes for each cluster on each type, if they earn more than 'least_w'. */
int program_add_dishes(struct program *g, double least_w);

/* Look for columns at prices between the best and the solution's, and keep those prices when
 * they prove more. Returns how many were added.
 */
int program_add_columns(struct program *g, bool is_early);

/* Forget idle columns; they come back when prices call for them. */
void program_drop_idle(struct program *g);

#endif
