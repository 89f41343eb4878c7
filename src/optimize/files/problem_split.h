/* problem_split.h - jobs of one kind whose time has different prices become kinds of their own.
 *
 * Called by: the reader of problem files, where a job says "time_w". What a step is worth is a
 * figure of the kind, so that tables stay as small as there are different prices.
 */
#ifndef OPTIMIZE_FILES_PROBLEM_SPLIT_H
#define OPTIMIZE_FILES_PROBLEM_SPLIT_H

struct arena;
struct problem;

/* 'time_w' (n_jobs) is each job's price, NaN: its kind's. Kinds and tables of 'p' are made anew in
 * 'a', those that were there first; what steps are worth is copied, and wrong by now. Returns which
 * kind each was made of (n_kinds), or NULL: tables would have more than 'cells_most' cells, and
 * nothing has changed.
 */
const int *problem_split(struct arena *a, struct problem *p, const double *time_w, long cells_most);

#endif
