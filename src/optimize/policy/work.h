/* work.h - what the policies that place job by job share: an assignment as things are, what a place
 * would be for a job, and the plan that came of it.
 *
 * Made by: each solve of such a policy, with work_begin; ended with work_end, which frees the
 * assignment. On the assignment no promise that is kept is broken by who comes, and no limit breaks
 * one that would hold without it (assignment.is_keeping).
 */
#ifndef OPTIMIZE_POLICY_WORK_H
#define OPTIMIZE_POLICY_WORK_H

#include <stdbool.h>

#include "optimize/search/assignment.h"

struct plan;
struct arena;

struct work {
    struct arena *arena;
    const struct problem *problem;
    struct assignment *assignment;
    struct assignment_capacity capacity;
    enum wait_reason
        *why;    // (n_jobs) what the policy knows better than the assignment; WAIT_NOT: nothing
};

/* Everybody who runs is where it is. */
void work_begin(struct work *w, struct arena *a, const struct problem *p);

/* Is the job one that waited and has no place yet? */
bool work_is_waiting(const struct work *w, int job);

/* May the job run on a type alone, and how would it? There may be no such GPU. */
bool work_suits(const struct work *w, int job, int type, struct yield *alone);

/* What would come of putting a job there. */
struct offer {
    double cost_w;    // added to the assignment's cost, if waiting cost nothing
    double share;     // work_least_share there
    bool keeps;       // every promise there, its own included
};

/* A job that waits, or one that may be moved, on these GPUs under the best setting; the assignment
 * is as it was. False: it may not be there.
 */
bool work_weigh(struct work *w, int job, const int *gpus, int n, struct offer *out);

/* Do so, where that was found to be possible. */
bool work_put(struct work *w, int job, const int *gpus, int n);

/* Of those on a GPU: how many miss their promise, and the least part of its speed alone that one of
 * them has, whatever the GPU's limit; INFINITY: nobody is there.
 */
int work_n_short(const struct work *w, int gpu);
double work_least_share(const struct work *w, int gpu);

/* Settle power limits, and say who is where. */
void work_end(struct work *w, struct plan *out);

#endif
