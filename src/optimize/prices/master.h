/* master.h - the class program: how many GPUs of each type run which pattern, as a linear program.
 *
 *     minimise   cost of patterns, gangs, shortfalls, waiting, less what staying saves
 *     for each type         GPUs used                                   <= GPUs there are
 *     for each class, bin   slots in this bin or above                  >= jobs that need as much
 *     for each group        other choices than its first                <= its jobs
 *     under a cap           watts drawn above idle                      <= room
 *     for each type         watts drawn above idle                      <= room in its racks
 *
 * Eligibility is nested, so counts from each bin upwards are all that matters of jobs that take one
 * slot. Jobs that may take several, or several GPUs, are groups of alike ones: what they choose at
 * the first prices is in the right-hand sides, and a column exchanges it for something else. Rows
 * come in where the solution breaks them, patterns when they are near the best at the prices of the
 * round before.
 *
 * Made by: master_solve, from prices to begin with. Read by: rounding (the vertex it ends at says
 * how many of what), and whoever wants its prices: the best ones by their certificate. Owned.
 */
#ifndef OPTIMIZE_PRICES_MASTER_H
#define OPTIMIZE_PRICES_MASTER_H

#include <stdbool.h>

struct columns;
struct dual;
struct prices_options;

enum column_kind {
    COLUMN_PATTERN,
    COLUMN_KEPT,     // a pattern as it stands on some GPUs now
    COLUMN_FIXED,    // beside the fixed jobs of a GPU
    COLUMN_GANG,     // of a group: a gang
    COLUMN_SLOTS,    // of a group: several slots
    COLUMN_WAIT,     // of a group or a job
    COLUMN_SHORT,    // a job takes a slot that holds less than it needs
    COLUMN_SLACK,    // what keeps the program feasible
};

struct master_column {
    enum column_kind kind;
    int type;      // of a pattern, a GPU that is kept, a gang
    long which;    // pattern; GPU that is kept; fixed pattern; gang
    int group;     // -1: none
    int n_gives, n_takes;
    const int *gives, *takes;    // bins of slots that it brings (a pattern's, or those left for
                                 // others), and that it needs
    double cost_w, most;         // upper bound of x
    double x;
    int next;    // of the same group; -1: none
};

/* Jobs that are alike but for a few percent of their needs, and take several slots or GPUs. */
struct job_group {
    int n_jobs, first;    // jobs are group_jobs[first ..], by rising need
    int base;             // the column that is in the right-hand sides: x is what is left of it
    int row;              // -1: none yet
    int last_column;
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
    bool is_done;    // it lacks nothing
    struct master_inner *inner;
};

/* 'u' has prices to begin with, and gets the best ones. NULL: there was no time for one solution.
 */
struct master *master_solve(const struct columns *c, const struct prices_options *o,
                            int rounds_most, struct dual *u);
void master_destroy(struct master *m);

#endif
