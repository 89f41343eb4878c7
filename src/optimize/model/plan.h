/* plan.h - what every job shall do next: a value. Making one touches nothing.
 *
 * Made by: a solver. Judged by: plan_check, whoever made it. Read by: act, and whoever
 * explains. Lives in the cycle arena beside the snapshot it was made for.
 */
#ifndef OPTIMIZE_MODEL_PLAN_H
#define OPTIMIZE_MODEL_PLAN_H

#include <stdbool.h>

struct arena;
struct err;
struct estimator;
struct snapshot;
struct solve_options;

enum wait_reason {
    WAIT_NOT,         // it is placed
    WAIT_CAPACITY,    // nothing suitable is free
    WAIT_MEMORY,      // too large for any GPU it may use
    WAIT_TYPE,        // no GPU of a type it allows
    WAIT_GANG,        // more GPUs than the cluster (or, where asked, a node) has of any one type
    WAIT_POWER,       // the power cap leaves no room
    WAIT_PROMISE,     // no place could hold its promise, and a broken one costs more than waiting
    WAIT_TURN,        // the policy goes by order, and others come first
    WAIT_REASONS,
};

const char *wait_reason_name(enum wait_reason r);

/* One entry for each job of the snapshot, in its order. */
struct plan_job {
    int n_gpus;         // 0: it waits
    const int *gpus;    // indices into snapshot.gpus
    int limit_w;        // 0: the type's default
    enum wait_reason reason;
    double speed;     // predicted, steps/s; 0 when waiting
    double low;       // held with the stated confidence
    bool is_short;    // named shortfall: 'low' is below the job's need
};

struct plan {
    const char *made_by;    // the solver's name
    int n_jobs;
    struct plan_job *jobs;    // (n_jobs)
    int n_placed, n_waiting, n_short;
    double watts;    // predicted draw of all GPUs, empty ones asleep
};

/* Fill in what follows from who is where: speeds, shortfalls, counts, watts. */
void plan_price(struct arena *a, struct plan *p, const struct snapshot *s,
                const struct estimator *est);

/* Is the plan feasible, and does it say the truth about its promises? Looks at the plan,
 * the snapshot and the estimates only, with none of the solvers' code: every job once;
 * GPUs that exist and may start something (or already run it); at most theta jobs a GPU
 * and exclusive ones alone; memory; gangs whole, of one type, on as many nodes as asked;
 * at most max_gpus; allowed types; the power cap; each promise held or its shortfall named;
 * speeds and counts as they follow from who is where (under a power cap, watts too).
 * 0, or -EINVAL naming the first thing that is wrong.
 */
int plan_check(struct arena *a, const struct plan *p, const struct snapshot *s,
               const struct estimator *est, const struct solve_options *o, struct err *e);

#endif
