/* explain.h - why here and not there: each candidate place of a job at the time of a decision.
 *
 * Made in the same breath as the plan, from the same snapshot and estimates, and recorded with
 * it; nobody reconstructs it later. Read by whoever shows it.
 */
#ifndef OPTIMIZE_EXPLAIN_EXPLAIN_H
#define OPTIMIZE_EXPLAIN_EXPLAIN_H

#include <jansson.h>
#include <stdbool.h>

#include "optimize/model/plan.h"

struct arena;
struct estimator;
struct snap_job;
struct snapshot;
struct solve_options;

/* A kind of place: so many GPUs of a type, empty or beside one resident job. */
enum candidate_verdict {
    CANDIDATE_CHOSEN,
    CANDIDATE_COSTS_MORE,          // it would do, for more joules
    CANDIDATE_BREAKS_PROMISE,      // its own
    CANDIDATE_BREAKS_NEIGHBOUR,    // a neighbour's
    CANDIDATE_UNFIT,               // memory
    CANDIDATE_FULL,                // all of them are taken: it would have to wait for one
    CANDIDATE_EXCLUSIVE,           // it, or who is there, shares with nobody
    CANDIDATE_NOT_ALLOWED,         // types, gang size, one node
    CANDIDATE_NODE_AWAY,           // drained or down
    CANDIDATE_MOVE_COSTS,          // better, but the move would cost more than it brings
    CANDIDATE_POWER_CAP,           // the cluster's power cap leaves no room for it
    CANDIDATE_PASSED_OVER,         // it would do, for no more; the plan weighs all jobs together
    CANDIDATE_VERDICTS,
};
const char *candidate_verdict_name(enum candidate_verdict v);    // "chosen", "costs more", ...

/* A GPU that several share stands for all of its type with the same workloads on it, under the same
 * power limit; what is said of the neighbour is of the one that loses most there. Of GPUs that are
 * alike the one is shown whose residents ask for least.
 */
struct candidate {
    int type;
    int n_gpus;
    int n_places;     // GPUs (or gangs) like this now
    int gpu;          // one of them, in the snapshot; -1: none is there now
    int neighbour;    // snapshot job; -1: it would be alone
    int limit_w;      // under this power limit: who is there has it, or it costs least; 0: none
    double speed, low, high;    // steps/s; low and high hold with the stated confidence
    double unfit;               // chance that it does not fit
    double watts;               // the GPU's draw with all on it (a gang's: of all its GPUs)
    double added_w;             // of these by this job
    double joules;    // until its work is done: added draw and what the neighbour loses; NaN
    double cost_j;    // the same with GPU-seconds at their price, as plans weigh it; NaN
    double margin;    // low / need - 1; NaN: it has no promise
    double
        wake_s;    // its GPUs sleep, and are awake in so many seconds: counted in the two above; 0
    double neighbour_speed;    // what is left to the neighbour, as a part of what it has now; NaN
    bool neighbour_keeps;      // its promise
    enum candidate_verdict verdict;
};

/* More than anybody reads; a cluster has a few types, and a place beside each workload on each. */
#define CANDIDATES_MAX 64

struct explanation {
    int job;             // in the snapshot
    int n_candidates;    // best first: the chosen one, then by cost_j
    int n_left_out;      // beyond CANDIDATES_MAX: those that would not do first, then the dearest
    struct candidate *candidates;
    enum wait_reason reason;    // WAIT_NOT: it is placed
    double may_start_s;    // when the first place it suits is expected to be free; NaN: unknown
    int waits_for;         // snapshot job whose end that is; -1: none
};

/* Candidates of one job, given the plan (priced): what is taken is what the plan takes. Every figure
 * is what plan_price would say of the plan with the job there instead. Linear in GPUs.
 */
void explain_job(struct arena *a, const struct snapshot *s, const struct estimator *est,
                 const struct solve_options *o, const struct plan *p, int job,
                 struct explanation *out);

/* Does a job that runs stay on the GPUs it has? Their order does not matter, nor does the limit. */
bool plan_job_stays(const struct plan_job *pj, const struct snap_job *j);

/* As it is recorded (docs/formats/explain.md): names instead of indices. */
json_t *explain_json(const struct explanation *x, const struct snapshot *s,
                     const struct estimator *est, const struct plan *p);

/* The whole plan, for `gogh plan`: each job with what would happen to it (start, stay, move, stop,
 * wait, limit), predicted speed, watts, shortfalls; totals. How long it took ("seconds") and whether
 * it is the fallback ("fallback") is not the plan's to know: whoever made it adds them.
 */
json_t *plan_json(const struct plan *p, const struct snapshot *s, const struct estimator *est);

#endif
