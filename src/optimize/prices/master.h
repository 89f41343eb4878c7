/* master.h - the class program: how many GPUs of each type run which pattern, as a linear program.
 *
 *     minimise   cost of patterns, ways, shortfalls, waiting, less what staying saves
 *     for each type         GPUs used                                   <= GPUs there are
 *     for each class, bin   slots in this bin or above                  >= jobs that need as much
 *     for each group        ways chosen                                  = its jobs
 *     under a cap           watts drawn above idle                      <= room
 *
 * Jobs that take one slot are rows (eligibility is nested, so counts from each bin upwards are all
 * that matters); jobs that take several are groups of alike ones, whose ways and sums of slots are
 * columns. Patterns come in when they are near the best at the prices of the round before; rows
 * where the solution lacks slots.
 *
 * Made by: master_solve, from prices to begin with. Read by: rounding (the vertex it ends at says
 * how many of what), and whoever wants its prices: the best ones by their certificate. Owned.
 */
#ifndef OPTIMIZE_PRICES_MASTER_H
#define OPTIMIZE_PRICES_MASTER_H

#include <stdbool.h>

struct clock;
struct columns;
struct dual;

enum column_kind {
    COLUMN_PATTERN,
    COLUMN_KEPT,       // a pattern as it stands on some GPUs now
    COLUMN_COMPANY,    // beside the fixed jobs of a GPU
    COLUMN_WAY,        // of a group: a gang
    COLUMN_SLOTS,      // of a group: several slots
    COLUMN_WAIT,       // of a group or a job
    COLUMN_SHORT,      // a job takes a slot that holds less than it needs
    COLUMN_SLACK,      // what keeps the program feasible
};

struct master_column {
    enum column_kind kind;
    int type;          // -1: none
    long which;        // pattern; GPU that is kept; company; way
    int group, job;    // -1: none
    int n_slots;
    const int *bins;        // (n_slots) given (patterns) or taken (groups)
    double cost_w, most;    // upper bound of x
    double x;
    int next;    // of the same group; -1: none
};

/* Jobs that are alike but for a few percent of their needs, and take several slots or GPUs. */
struct job_group {
    int n_jobs, first;    // jobs are group_jobs[first ..], by rising need
    int row, last_column;
};

struct master {
    const struct columns *c;
    struct master_column *columns;
    int n_columns;
    struct job_group *groups;
    int n_groups, *group_jobs;
    int *group_of;    // (n_jobs) -1: a row's
    double bound_w;
    int n_rows, n_rounds;
    struct master_inner *inner;
};

struct master_options {
    int threads, rounds_most;
    const struct clock *clock;    // NULL: no end but the rounds
    double until_s;
};

/* 'u' has prices to begin with, and gets the best ones. NULL: there was no time for one solution.
 */
struct master *master_solve(const struct columns *c, const struct master_options *o,
                            struct dual *u);
void master_destroy(struct master *m);

#endif
