/* place.h - what solvers ask of a job and a place before they decide.
 *
 * Questions about a board; only place_limits changes it. Asked by: greedy and the baselines.
 */
#ifndef OPTIMIZE_POLICY_PLACE_H
#define OPTIMIZE_POLICY_PLACE_H

#include <stdbool.h>

#include "optimize/policy/board.h"
#include "optimize/model/plan.h"

struct solve_options;

/* The job may run on this type and, alone, fits its memory well enough. */
bool place_suits(const struct board *b, int job, int type, double unfit_max);

/* Free GPUs of 'type' for a gang of 'n', into 'out': on one node where possible (the node
 * with the fewest to spare, and an awake one before that), else, unless the job asks for one node, the first ones; on several
 * nodes in equal parts where it asks for that.
 * Returns whether they were found.
 */
bool place_gang(const struct board *b, int job, int type, int n, int *out);

/* Seconds until the last of these GPUs is awake: how much later a job that comes there begins. */
double place_wake_s(const struct board *b, const int *gpus, int n);

/* What is spent on these GPUs until they are awake, at their price. */
double place_wake_j(const struct board *b, const struct solve_options *o, const int *gpus, int n);

/* Why a job for which no place was found has to wait. */
enum wait_reason place_reason(const struct board *b, int job, double unfit_max);

/* Watts of all GPUs, as a power cap counts them. */
double place_drawn_w(const struct board *b);

/* What would come of putting a job on one GPU, free or with others on it. */
struct place_offer {
    double joules;    // until it is done: added draw, GPU-seconds, what the others lose
    double share;     // the least part of its speed alone that somebody there is left with
    bool keeps;       // every promise there, its own included
};

/* ... under the power limit that suits them best, where limits are allowed. */
struct place_offer place_weigh(const struct board *b, const struct solve_options *o, int job,
                               int gpu);

/* The same for a gang that has free GPUs to itself; 'share' is 1. */
struct place_offer place_weigh_gang(const struct board *b, const struct solve_options *o, int job,
                                    const int *gpus, int n);

/* Where limits are allowed: set on every GPU, of those offered and none, the one with the least
 * joules for the work done under it, GPU-seconds at their price included. A promise that holds
 * without a limit holds under it too; where one does not hold, there is none. Set where residents
 * are new, where the present one breaks a promise that could hold, or is clearly worse.
 */
void place_limits(struct board *b, const struct solve_options *o);

#endif
