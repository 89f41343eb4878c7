/* exact.h - the optimum of a small problem, with its proof, or as near as time allows.
 *
 * Called by: optimize_run, with the heuristic's answer to start from.
 *
 *     linear program by column generation (lp.h), its duals  ->  every column whose reduced cost is
 *     within the gap  ->  integer program (mip.h)  ->  an answer, priced and judged
 *
 * A column whose reduced cost exceeds (cost of the best answer - bound) is in no better answer:
 * leaving it out loses nothing. So "proven" rests on CBC's claim for the columns within the gap,
 * and on our own duals, over every column there could be, for all others; a claim that our answer
 * contradicts is dropped. What an engine cannot do (problem_has_rules)
 * is not in the program: its bound holds, and the judge refuses an answer that breaks a rule.
 */
#ifndef OPTIMIZE_EXACT_EXACT_H
#define OPTIMIZE_EXACT_EXACT_H

#include <stdbool.h>

struct arena;
struct err;
struct plan;
struct problem;

/* Look for an answer that is cheaper than 'start', which must have passed plan_check, for 'time_s'
 * seconds. Its bound_w is one that is known already, -INFINITY without; one above the start's cost
 * is false, and forgotten. 'out' is 'start' or a cheaper answer that has passed plan_check; its
 * bound_w holds for every answer. 1: 'out' is the optimum, up to 1e-6 of it; 0: nobody knows; or
 * -errno when there can be no child process; 'out' is 'start' then, and the bound still holds.
 */
int exact_run(struct arena *a, const struct problem *p, const struct plan *start, double time_s,
              struct plan *out, struct err *e);

#endif
