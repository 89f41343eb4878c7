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

#include "optimize/policy/solver.h"
#include "optimize/search/assignment.h"

struct policy_work {
    struct arena *arena;
    const struct problem *problem;
    struct assignment *assignment;
    enum wait_reason *why;    // (n_jobs) what the policy knows better; WAIT_NOT: nothing
};

/* Everybody who runs is where it is, and services have what they lack. */
void work_begin(struct policy_work *w, struct arena *a, const struct problem *p);

/* Is the job one that waited and has no place yet? */
bool work_is_waiting(const struct policy_work *w, int job);

/* May the job run on a type, where there are enough GPUs for it, and how would it on one alone? */
bool work_suits(const struct policy_work *w, int job, int type, struct yield *alone);

/* What 'n' GPUs of a type do for it, one GPU's being 1: near each other where that can be. */
double work_gang_factor(const struct policy_work *w, int job, int type, int n);

/* Where a job could go; n_gpus 0: nowhere. */
struct destination {
    double cost;
    int n_gpus;
    int gpus[GANG_MAX];
};

/* There, if nothing costs less so far; of equals the first. */
void work_prefer(struct destination *best, double cost, const int *gpus, int n);

/* What would come of putting a job there. */
struct offer {
    double cost_w;    // added to the assignment's cost, if waiting cost nothing
    double share;     // work_least_share there
    bool keeps;       // every promise there, its own included
};

/* A job that waits, or one that may be moved, on these GPUs under the best setting; the assignment
 * is as it was. False: it may not be there.
 */
bool work_weigh(struct policy_work *w, int job, const int *gpus, int n, struct offer *out);

/* Do so, where that was found to be possible. */
bool work_put(struct policy_work *w, int job, const struct destination *to);

/* Of those on a GPU: how many miss their promise, and the least part of its speed alone that one of
 * them has, whatever the GPU's limit; INFINITY: nobody is there.
 */
int work_n_short(const struct policy_work *w, int gpu);
double work_least_share(const struct policy_work *w, int gpu);

/* Settle power limits, and say who is where: a plan. */
void work_end(struct policy_work *w, struct plan *out);

#endif
