/* repair.h - as much of a plan as the rules allow by now.
 *
 * Called by: the cycle, when something has changed between a plan and the time to act on it. Who
 * cannot have what the plan wanted stays as it is, with whoever then cannot have it either.
 */
#ifndef OPTIMIZE_SEARCH_REPAIR_H
#define OPTIMIZE_SEARCH_REPAIR_H

#include <stdbool.h>

struct arena;
struct plan;
struct plan_job;
struct problem;

/* 'wanted' (n_jobs) are the places (n_gpus, gpus, limit_w) that the problem's jobs should have; it
 * is changed where a job does not get its place. Those of 'is_left' (n_jobs) want what they have,
 * their power limit too. The plan is in 'a'; the judge has not seen it.
 */
void plan_repair(struct arena *a, const struct problem *p, struct plan_job *wanted,
                 const bool *is_left, struct plan *out);

#endif
