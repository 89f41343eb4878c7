/* mip.h - a mixed integer program as plain arrays, solved by CBC in a process of its own.
 *
 * Made by: the exact planner and the textbook program. CBC overshoots its time limits, fails when
 * two solves meet in one process, and may answer nonsense when its time runs out; so it runs in a
 * child that is killed at the deadline, each time on a fresh model. What it says is a claim:
 * whoever asks checks the solution for himself.
 *
 * CBC 2.10.8 called points optimal that were not in 3 of 15,000 tiny problems: once because of
 * its preprocessing, twice because it was given a point to start from. So it gets neither; since
 * then it was right in 16,000.
 */
#ifndef OPTIMIZE_EXACT_MIP_H
#define OPTIMIZE_EXACT_MIP_H

#include <stdbool.h>

struct arena;
struct err;

/* Least cost * x with row_low <= A x <= row_high and 0 <= x <= upper. INFINITY: no such limit. */
struct mip {
    int n_rows, n_columns;
    const int *start;                    // (n_columns + 1) where each column's elements begin
    const int *row;                      // of each element
    const double *value;                 // of each element
    const double *cost;                  // (n_columns)
    const double *upper;                 // (n_columns)
    const bool *is_integer;              // (n_columns)
    const double *row_low, *row_high;    // (n_rows)
};

struct mip_options {
    double time_s;         // the child is dead after this many seconds
    const double *most;    // points that cost more are of no use; NULL: all are
    bool is_proof;         // it has a point that costs no more: rather prove than find
    bool is_as_shipped;    // with the preprocessing that errs: for comparisons
};

enum mip_status {
    MIP_NONE,        // killed, crashed, or it says that there is no solution: nothing is known
    MIP_FEASIBLE,    // 'x' is said to be feasible
    MIP_OPTIMAL,     // and no other to be cheaper
};

struct mip_result {
    enum mip_status status;
    double objective;    // of 'x'; INFINITY without
    double bound;        // no point is cheaper, CBC says; -INFINITY when it says nothing
    double *x;           // (n_columns) in the arena; NULL with MIP_NONE
    int nodes;           // of the search tree
    double seconds;
};

/* Solve. 0, or -errno when there can be no child. Needs no other child of the caller's to be
 * left alone: it waits for its own only. Threads of the caller do no harm: the child solves
 * and leaves, it never returns.
 */
int mip_solve(struct arena *a, const struct mip *m, const struct mip_options *o,
              struct mip_result *out, struct err *e);

#endif
