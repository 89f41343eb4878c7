/* exact.h - the optimum of a small problem, with its proof, or as near as time allows.
 *
 * Called by: optimize_run, with the heuristic's answer to start from. Single jobs of one kind are
 * told apart only where it matters (their promise, the place they hold now), so the integer
 * program has few symmetries:
 *
 *     columns that may pay  ->  linear program (lp.h), its duals  ->  every column whose reduced
 *     cost is within the gap  ->  integer program (mip.h)  ->  an answer, priced and judged
 *
 * A column whose reduced cost exceeds (cost of the best answer - bound) is in no better answer:
 * leaving it out loses nothing. So "proven" rests on CBC's claim for the columns within the gap,
 * and on our own duals, over every column there could be, for all others; a claim that our answer
 * contradicts is dropped.
 */
#ifndef OPTIMIZE_EXACT_EXACT_H
#define OPTIMIZE_EXACT_EXACT_H

#include <stdbool.h>

struct arena;
struct err;
struct plan;
struct prices;
struct problem;

struct exact_options {
    double time_s;       // at most about this long
    int columns_most;    // the integer program has no more than this; 0: as many as are sensible
};

/* Look for an answer that is cheaper than 'start', which must have passed plan_check. 'u' (may
 * be NULL) are prices to begin with, 'bound_w' a bound that is known already, -INFINITY without;
 * one above the start's cost is false, and forgotten. 'out' is 'start' or a cheaper answer that
 * has passed plan_check; '*bound_w_out' holds for every answer; '*is_proven': 'out' is the
 * optimum, up to 1e-6 of it. 0, or -errno when there can be no child process; 'out' is 'start'
 * then, and the bound still holds.
 */
int exact_run(struct arena *a, const struct problem *p, const struct prices *u, double bound_w,
              const struct plan *start, const struct exact_options *o, struct plan *out,
              double *bound_w_out, bool *is_proven, struct err *e);

#endif
