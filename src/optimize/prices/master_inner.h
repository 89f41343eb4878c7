/* master_inner.h - what the files of the class program share and nobody else reads.
 *
 * master_rows.c makes groups and rows, master_columns.c columns; master.c solves, prices and goes
 * round.
 */
#ifndef OPTIMIZE_PRICES_MASTER_INNER_H
#define OPTIMIZE_PRICES_MASTER_INNER_H

#include "base/arena.h"
#include "optimize/prices/columns.h"
#include "optimize/prices/dual.h"
#include "optimize/prices/lp.h"
#include "optimize/prices/master.h"

struct class_rows {
    int n, cap;
    int *bin, *row;    // (n) ascending bins of the class
};

/* Columns that wait to be added together. */
struct lp_batch {
    int n, cap;
    double *upper, *cost;    // (n)
    int *start;              // (n + 1)
    int n_entries, cap_entries;
    int *index;
    double *value;
};

struct master_inner {
    struct master m;
    const struct prices_options *o;
    struct arena arena, scratch[2];
    struct lp *lp;
    int cap_columns;
    double first_w;                // the bound of the prices to begin with
    struct class_rows *rows;       // (n_classes)
    int n_rows, cap_row;           // cap_row -1: none
    int *rack_row;                 // (n_types) of the racks' caps; -1: none
    int *held_row;                 // (n_gpus) where others may come
    double *demand;                // (n_bins) slots needed in this bin or a higher one
    double *base_gpus;             // (n_types) of groups as they first choose
    double *base_draw_w;           // (n_types)
    double *base_w;                // (n_groups) what a job of the group costs as it first chooses
    bool **is_in;                  // (n_types) patterns in the program
    bool *is_fixed_in;             // (n_fixed)
    bool *is_short_in;             // (n_jobs) may wait or fall short in the program
    struct dual *best, now;        // best: the caller's
    struct job_choice *choices;    // at the present prices
    struct lp_batch batch;
};

/* ---- master_rows.c ---- */

void master_groups(struct master_inner *in);

/* What single jobs need and groups choose first, the right-hand sides. */
void master_demand(struct master_inner *in);

/* Rows of types, of the cap, of held GPUs, and of classes where prices rise. */
void master_first_rows(struct master_inner *in);

/* Rows where the solution has fewer slots than jobs need; returns how many. */
int master_lacking_rows(struct master_inner *in);

/* Rows of groups that exchange more than they have; returns how many. Sets x of the bases. */
int master_group_rows(struct master_inner *in);

/* The bin that a single job needs; the last one where none holds as much. */
int master_bin(const struct master_inner *in, int job);

/* The job with the median need speaks for its group. */
static inline int master_representative(const struct master *m, int group)
{
    return m->group_jobs[m->groups[group].first + m->groups[group].n_jobs / 2];
}

/* ---- master_columns.c ---- */

/* Patterns of a type that are worth more than 'from_w' at the present prices and not in yet, the
 * best ones first, at most so many; returns how many.
 */
int master_add_near(struct master_inner *in, int type, double from_w, int most);

void master_add_cover(struct master_inner *in);      // patterns for every row
void master_add_kept(struct master_inner *in);       // GPUs as they stand
void master_add_fixed(struct master_inner *in);      // of fixed jobs, near the best
void master_add_choices(struct master_inner *in);    // of all groups, and their waiting
void master_add_shorts(struct master_inner *in);     // of single jobs, near the best
void master_add_slack(struct master_inner *in, int k, int b);
void master_add_type_slack(struct master_inner *in);

/* Where slack is used it becomes dearer; returns in how many columns. */
int master_loosen(struct master_inner *in);

/* Hand all that were added to the program. */
void master_flush(struct master_inner *in);

#endif
