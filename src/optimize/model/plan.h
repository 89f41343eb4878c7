/* plan.h - who shall be where next, what it costs, and what each gets: a value. Making one touches
 * nothing.
 *
 * Made by: a policy, for a problem (problem.h); its jobs and GPUs are the problem's, and those of
 * the snapshot that was lowered to it. Judged by: plan_check, whoever made it. Read by: act, and
 * whoever explains. Plain data in the arena it was made in.
 */
#ifndef OPTIMIZE_MODEL_PLAN_H
#define OPTIMIZE_MODEL_PLAN_H

#include <math.h>
#include <stdbool.h>

struct arena;
struct err;
struct problem;

enum wait_reason {
    WAIT_NOT,         // it is placed
    WAIT_CAPACITY,    // nothing suitable is free
    WAIT_MEMORY,      // too large for any GPU it may use
    WAIT_TYPE,        // no GPU of a type it allows
    WAIT_GANG,        // more GPUs than the cluster (or, where asked, a node) has of any one type
    WAIT_POWER,       // the power cap leaves no room
    WAIT_PROMISE,     // no place could hold its promise, and a broken one costs more than waiting
    WAIT_TURN,        // the policy goes by order, and others come first
    WAIT_ENGINE,      // the engine could realise no place, whoever else runs (engine.h)
    WAIT_REASONS,
};

const char *wait_reason_name(enum wait_reason r);

struct plan_job {
    int n_gpus;                 // 0: it waits
    const int *gpus;            // (n_gpus) ascending
    int limit_w;                // of its GPUs (of the first, where it has parts); 0: the default
    enum wait_reason reason;    // WAIT_NOT when placed
    double speed, low;          // what it gets, by what is believed (problem.trust)
    bool is_short;              // 'low' is below its need (PROMISE_SHORT)
    double
        kept;    // the chance that its promise holds, by what is believed; 1: it has none; 0: waits
    double short_w;    // what it is expected to miss, by what was counted on
};

struct plan {
    const char *made_by;    // the policy's name
    int n_jobs, n_gpus;
    struct plan_job *jobs;    // (n_jobs)
    unsigned char *limit;     // (n_gpus) the setting of each GPU; 0 where nobody is
    double cost_w;            // the objective, as problem.h has it
    double watts;             // of all GPUs, empty ones asleep
    int n_placed, n_waiting, n_short, n_moves;
    double short_w, wait_w;    // parts of cost_w
    double move_w;             // and another: moves, and what is woken
    double hope_w;             // what is hoped of types and pairs: at most so much is lost by it
    double bound_w;            // no plan costs less; -INFINITY: nobody has looked
    double base_w;             // what the promised work is worth (problem_base_w)
    double varying_w;    // what plans can change: cost_w with no GPU's gain set off against others
};

/* How far a plan may be from the best one: in watts, as a part of all that it costs (with base_w),
 * and of what plans can change (varying_w; at most all of it). All NaN: nobody has looked.
 */
struct plan_gap {
    double watts, ratio, varying_ratio;
};

struct plan_gap plan_gap(const struct plan *x);

/* A job's GPUs, in rising order. */
void plan_sort_gpus(int *gpus, int n);

/* Fill in what follows from who is where ('gpus', 'n_gpus', 'limit' and 'reason' of those with a
 * name are given): where frozen jobs are, why others cannot run, limits in watts, speeds,
 * shortfalls, counts, costs.
 */
void plan_price(struct arena *a, const struct problem *p, struct plan *out);

/* Is the plan feasible, and does it say the truth? Does the arithmetic of problem.h again from the
 * raw tables, with none of the planners' code: every job once; GPUs that exist and may start
 * something (or already run it); at most theta jobs a GPU and exclusive ones alone; memory; gangs
 * whole, of one type, on as many nodes as asked; allowed types; what the engine cannot do, CPUs and
 * memory of nodes among it; fixed and frozen jobs where they are; power caps; each shortfall named;
 * speeds, costs and counts as they follow from who is where. 0, or -EINVAL naming the first thing
 * that is wrong. Who is not placed must have a reason.
 */
int plan_check(struct arena *a, const struct problem *p, const struct plan *x, struct err *e);

#endif
