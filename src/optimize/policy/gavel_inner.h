/* gavel_inner.h - inside the policies "gavel" and "gavel-cost": classes of jobs (gavel.c), what
 * they do together (gavel_cells.c), the linear program over them (gavel_lp.c), and the drafts of a
 * plan that come near its optimum (gavel_draft.c).
 *
 * The program says how many GPUs of each type should run what: for the most throughput of all jobs
 * together, or for the most in proportion to what it costs. Everything lives in the arena of one
 * solve.
 */
#ifndef OPTIMIZE_POLICY_GAVEL_INNER_H
#define OPTIMIZE_POLICY_GAVEL_INNER_H

#include <stdbool.h>
#include <stdint.h>

#include "optimize/policy/backfill.h"

/* Jobs between which the program makes no difference. */
struct gavel_class {
    int kind;                  // the first of its workload; they may differ in the rates they serve
    uint64_t allowed_types;    // as in a problem_job
    bool is_exclusive;
    double rate;    // asked of its servers, in the mean; 0: it trains
    int n_jobs;
    double weight;    // what its throughput counts; it grows with waiting
    double norm;      // steps/s that count as 1: its throughput with an equal share of all GPUs
    double need;      // promised to each of its jobs; 0: nothing, or the program does not care
};

/* What one or two classes do on a GPU of a type. */
struct gavel_cell {
    double done;      // weighted, normalised throughput; 0: they must not run so
    double kept;      // promises that are kept, and parts of those that are not
    double cost_w;    // watts above sleep, and the price of a GPU
};

/* A GPU of 'type' with a job of class 'a' alone, or with another of class 'b' >= a beside it. */
struct gavel_column {
    int type, a, b;    // b -1: alone
    double value;      // gavel_value
    double n;          // how many of them, in the optimum
};

struct gavel_program {
    struct policy_work work;     // as things are, and gangs that wait where they fit
    struct backfill backfill;    // GPUs that are reserved for one that does not
    bool minds_cost;             // "gavel-cost": what is done is set against what it costs
    double watt_price;           // the throughput that a watt has to bring; 0: watts do not count
    double time_w;               // the price of the time of all its jobs, wherever they are
    int n_classes, n_columns;
    struct gavel_class *classes;
    struct gavel_column *columns;
    struct gavel_cell *cells;    // (n_types, n_classes, n_classes + 1) likewise
    int *column_of;              // (n_types, n_classes, n_classes + 1) see gavel_column_at
    int *n_gpus;                 // (n_types) that the program may fill
    double *gpu_price;           // (n_types) what another GPU would add
    int *class_of;               // (n_jobs) -1: not in the program
    bool *is_out;                // (n_gpus) not for the program to fill
};

static inline struct gavel_cell *gavel_cell_at(const struct gavel_program *g, int type, int a,
                                               int b)
{
    return &g->cells[(type * g->n_classes + a) * (g->n_classes + 1) + b + 1];
}

/* What a GPU with classes 'a' and 'b' (-1: alone) does: throughput and promises; 0: they must not
 * run so.
 */
double gavel_work(const struct gavel_program *g, int type, int a, int b);

/* The same with its watts paid for. */
double gavel_value(const struct gavel_program *g, int type, int a, int b);

/* The index of a column, in whatever order its classes are given; -1: not one that is worth it. */
static inline int *gavel_column_at(const struct gavel_program *g, int type, int a, int b)
{
    return &g->column_of[(type * g->n_classes + a) * (g->n_classes + 1) + b + 1];
}

/* Steps/s that a job of the class is believed to do on a type alone; 0: it may not be there. */
double gavel_alone(const struct gavel_program *g, int type, int c);

/* With classes and GPUs known: what classes do, alone and together. */
void gavel_find_cells(struct gavel_program *g);

/* The same, and then find the columns and solve. Where there is no optimum nothing is
 * wanted, and GPUs are worth nothing.
 */
void gavel_solve(struct gavel_program *g);

/* On the assignment: what the program makes of it, newcomers placed, and those who have had their
 * lease where they may move. Returns its value, as far as it was reached, moves paid for.
 */
double gavel_draft(const struct gavel_program *g, bool may_move);

#endif
