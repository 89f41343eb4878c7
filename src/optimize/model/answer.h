/* answer.h - who is where: the answer to a problem, what it costs, and how good it must be.
 *
 * Made by: a planner. Judged by: answer_check, whoever made it. Plain data in the arena it was
 * made in.
 */
#ifndef OPTIMIZE_MODEL_ANSWER_H
#define OPTIMIZE_MODEL_ANSWER_H

#include <stdbool.h>

#include "optimize/model/plan.h"    // enum wait_reason

struct arena;
struct err;
struct problem;

struct answer_job {
    int n_gpus;                 // 0: it waits
    const int *gpus;            // (n_gpus) ascending
    int limit_w;                // of its GPUs (of the first, where it has parts); 0: the default
    enum wait_reason reason;    // WAIT_NOT when placed
    double speed, low;          // what it gets, by what is believed: without hopes
    bool is_short;              // 'low' is below its need
    double short_w;             // what it misses in watts, by what was counted on
};

struct answer {
    const char *made_by;    // the policy's name
    int n_jobs, n_gpus;
    struct answer_job *jobs;    // (n_jobs)
    unsigned char *limit;       // (n_gpus) the setting of each GPU; 0 where nobody is
    double cost_w;              // the objective, as problem.h has it
    double watts;               // of all GPUs, empty ones asleep
    int n_placed, n_waiting, n_short, n_moves;
    double short_w, wait_w;    // parts of cost_w
    double move_w;             // and another: moves, and what is woken
};

/* Fill in what follows from who is where ('gpus', 'n_gpus', 'limit' and 'reason' of those with a
 * name are given): where frozen jobs are, why others cannot run, limits in watts, speeds,
 * shortfalls, counts, costs.
 */
void answer_price(struct arena *a, const struct problem *p, struct answer *out);

/* Is the answer feasible, and does it say the truth? Does the arithmetic of problem.h again
 * from the raw tables, with none of the planners' code. 0, or -EINVAL naming the first thing
 * that is wrong. Who is not placed must have a reason.
 */
int answer_check(struct arena *a, const struct problem *p, const struct answer *x, struct err *e);

#endif
