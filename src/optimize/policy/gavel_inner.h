/* gavel_inner.h - inside the policy "gavel": the linear program (gavel_lp.c), made from a snapshot
 * (gavel.c), and the drafts of a plan that come near its optimum (gavel_draft.c).
 *
 * The program says how many GPUs of each type should run what, by kinds of jobs, for the most
 * throughput of all jobs together. Everything lives in the arena of one solve.
 */
#ifndef OPTIMIZE_POLICY_GAVEL_INNER_H
#define OPTIMIZE_POLICY_GAVEL_INNER_H

#include <stdbool.h>
#include <stdint.h>

#include "optimize/policy/board.h"

struct arena;
struct estimator;
struct snapshot;
struct solve_options;

/* Jobs between which the program makes no difference. */
struct gavel_kind {
    int workload;
    uint64_t allowed_types;    // as in a job_spec
    bool is_exclusive;
    double rate;    // asked of its servers, in the mean; 0: it trains
    int n_jobs;
    double weight;    // what its throughput counts; it grows with waiting
    double norm;      // steps/s that count as 1: its throughput with an equal share of all GPUs
};

/* A GPU of 'type' with a job of kind 'a' alone, or with another of kind 'b' >= a beside it. */
struct gavel_column {
    int type, a, b;    // b -1: alone
    double value;      // weighted, normalised throughput
    double n;          // how many of them, in the optimum
};

struct gavel_program {
    struct arena *arena;
    const struct estimator *est;
    const struct solve_options *options;
    bool may_share;
    int n_types, n_kinds, n_columns;
    int *n_gpus;    // (n_types) that the program may fill
    struct gavel_kind *kinds;
    struct gavel_column *columns;
    int *column_of;       // (n_types, n_kinds, n_kinds + 1) see gavel_column_at
    double *gpu_price;    // (n_types) what another GPU would add
    double *job_price;    // (n_kinds) what another job would add
    double total;
};

/* What a job of kind 'k' may add on a GPU of 'type' beside one of kind 'beside' (-1: alone). */
double gavel_value(const struct gavel_program *p, int k, int type, int beside);

/* The value of a GPU with kinds 'a' and 'b' (-1: alone). */
double gavel_value_of(const struct gavel_program *p, int type, int a, int b);

/* The index of a column, in whatever order its kinds are given; -1: not one that is worth it. */
int gavel_column_at(const struct gavel_program *p, int type, int a, int b);

/* With everything up to 'kinds' set (weights, counts): find the columns and solve. False when
 * there was no optimum; then nothing is wanted and prices are 0.
 */
bool gavel_program_solve(struct gavel_program *p);

struct gavel {
    struct arena *arena;
    const struct snapshot *snapshot;
    const struct estimator *est;
    const struct solve_options *options;
    struct gavel_program program;
    int *kind_of;      // (n_jobs) -1: not in the program
    bool *is_out;      // (n_gpus) not for the program to fill
    bool *is_saved;    // (n_types) what is free there is saved for a gang that waits
    int *targets;      // (n_columns) whole GPUs that should do this
};

/* One way to come near the targets. */
struct draft {
    const struct gavel *gavel;
    struct board board;
    int *left;            // (n_columns) of the targets
    bool *is_settled;     // (n_gpus) does what the program wants
    int *first, *next;    // (n_kinds), (n_jobs) jobs without a place, by kind
    double value;         // of the program, as far as it was reached, moves paid for
};

/* Gangs take free GPUs before anybody else; one that finds too few has those of one type saved. */
void gavel_seat_gangs(const struct gavel *g, struct board *b);

/* Who may be taken up: nobody; those that would do enough elsewhere by the program's prices; or all
 * that are not where the program wants them, since prices miss it when two had better swap.
 */
enum gavel_moves { GAVEL_STAY, GAVEL_PRICED, GAVEL_ALL };

/* The present allocation, and what the program makes of it: newcomers placed, and those that may be
 * moved. False: nobody would be, and there is no draft (GAVEL_STAY always makes one).
 */
bool gavel_draft(const struct gavel *g, enum gavel_moves moves, struct draft *d);

#endif
