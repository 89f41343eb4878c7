/* gavel_inner.h - inside the policy "gavel": classes of jobs (gavel.c), the linear program over
 * them (gavel_lp.c), and the drafts of a plan that come near its optimum (gavel_draft.c).
 *
 * The program says how many GPUs of each type should run what, for the most throughput of all jobs
 * together. Everything lives in the arena of one solve.
 */
#ifndef OPTIMIZE_POLICY_GAVEL_INNER_H
#define OPTIMIZE_POLICY_GAVEL_INNER_H

#include <stdbool.h>
#include <stdint.h>

#include "optimize/policy/work.h"

/* Jobs between which the program makes no difference. */
struct gavel_class {
    int kind;                  // the first of its workload; they may differ in the rates they serve
    uint64_t allowed_types;    // as in a problem_job
    bool is_exclusive;
    double rate;    // asked of its servers, in the mean; 0: it trains
    int n_jobs;
    double weight;    // what its throughput counts; it grows with waiting
    double norm;      // steps/s that count as 1: its throughput with an equal share of all GPUs
};

/* A GPU of 'type' with a job of class 'a' alone, or with another of class 'b' >= a beside it. */
struct gavel_column {
    int type, a, b;    // b -1: alone
    double value;      // weighted, normalised throughput
    double n;          // how many of them, in the optimum
};

struct gavel_program {
    struct policy_work work;    // as things are, and gangs that wait where they fit
    int n_classes, n_columns;
    struct gavel_class *classes;
    struct gavel_column *columns;
    int *column_of;       // (n_types, n_classes, n_classes + 1) see gavel_column_at
    int *n_gpus;          // (n_types) that the program may fill
    double *gpu_price;    // (n_types) what another GPU would add
    int *class_of;        // (n_jobs) -1: not in the program
    bool *is_out;         // (n_gpus) not for the program to fill
};

/* The value of a GPU with classes 'a' and 'b' (-1: alone); 0: they must not run so. */
double gavel_value(const struct gavel_program *g, int type, int a, int b);

/* The index of a column, in whatever order its classes are given; -1: not one that is worth it. */
static inline int *gavel_column_at(const struct gavel_program *g, int type, int a, int b)
{
    return &g->column_of[(type * g->n_classes + a) * (g->n_classes + 1) + b + 1];
}

/* With classes and GPUs known: find the columns and solve. Where there is no optimum nothing is
 * wanted, and GPUs are worth nothing.
 */
void gavel_solve(struct gavel_program *g);

/* On the assignment: what the program makes of it, newcomers placed, and those who have had their
 * lease where they may move. Returns its value, as far as it was reached, moves paid for.
 */
double gavel_draft(const struct gavel_program *g, bool may_move);

#endif
