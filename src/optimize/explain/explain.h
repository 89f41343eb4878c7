/* explain.h - why here and not there: each candidate place of a job at the time of a decision.
 *
 * Made in the same breath as the plan, from the very problem that was solved, and recorded with it;
 * nobody reconstructs it later. Read by whoever shows it.
 */
#ifndef OPTIMIZE_EXPLAIN_EXPLAIN_H
#define OPTIMIZE_EXPLAIN_EXPLAIN_H

#include <jansson.h>
#include <stdbool.h>

#include "catalog/cluster/engine.h"
#include "optimize/model/plan.h"

struct arena;
struct lowered;
struct snapshot_job;
struct snapshot;

enum candidate_verdict {
    CANDIDATE_CHOSEN,
    CANDIDATE_COSTS_MORE,          // all in all
    CANDIDATE_BREAKS_PROMISE,      // mostly for its own shortfall
    CANDIDATE_BREAKS_NEIGHBOUR,    // mostly for what neighbours lose
    CANDIDATE_MOVE_COSTS,          // mostly for the move, or for waking
    CANDIDATE_TRIED_LESS,          // and it would not if no more were counted on than is believed
    CANDIDATE_UNFIT,               // memory, or never so
    CANDIDATE_FULL,                // all of them are taken: it would have to wait for one
    CANDIDATE_EXCLUSIVE,           // it, or who is there, shares with nobody
    CANDIDATE_NOT_ALLOWED,         // types, gang size, nodes
    CANDIDATE_NODE_AWAY,           // drained or down, or an order is under way there
    CANDIDATE_ENGINE,              // the engine cannot realise it: 'rule' says why
    CANDIDATE_POWER_CAP,           // the cluster's power cap leaves no room for it
    CANDIDATE_FIXED,               // it costs less, and the job is not moved (yet)
    CANDIDATE_PASSED_OVER,         // it costs less, and the policy did not take it
    CANDIDATE_VERDICTS,
};
const char *candidate_verdict_name(enum candidate_verdict v);    // "chosen", "costs more", ...

/* What a place costs, in watts: what the plan with the job there costs more than without it, all
 * others where the plan has them (problem.h). The parts add up to it.
 */
struct candidate_cost {
    double cost_w;
    double draw_w;         // more watts of the GPUs
    double price_w;        // of GPUs that nobody else uses
    double work_w;         // what its own steps are worth: below 0
    double short_w;        // its promise
    double neighbour_w;    // what neighbours lose of theirs: promises and work
    double move_w, wake_w;
    double hope_w;    // not one of them: so much more it would cost if only belief counted
};

/* A kind of place: so many GPUs of a type, empty or beside one resident job. A GPU that several
 * share stands for all of its type with the same kinds on it, under the same power limit; what is
 * said of the neighbour is of the one that loses most there. Of GPUs that are alike the one is
 * shown whose residents ask for least.
 */
struct candidate {
    int type;    // of the problem
    int n_gpus;
    int n_places;               // GPUs (or gangs) like this now
    int gpu;                    // one of them; -1: none is there now
    int neighbour;              // job; -1: it would be alone
    int limit_w;                // under this power limit, the cheapest; 0: none
    double speed, low, high;    // steps/s believed; low and high hold with the stated confidence
    double counted;             // of the speed by this factor was counted on: not 1 where in doubt
    double watts;               // the GPU's draw with all on it (a gang's: of all its GPUs)
    double joules;              // what it adds to that until its work is done; NaN: unknown
    struct candidate_cost cost;    // NaN where it cannot run
    double kept;                   // the chance that its promise holds
    double margin;                 // low / need - 1; NaN: it has no promise
    double wake_s;                 // its GPUs sleep, and are awake in so many seconds; 0
    double neighbour_speed;    // what is left to the neighbour, as a part of what it has now; NaN
    bool neighbour_keeps;      // all promises of neighbours hold
    enum candidate_verdict verdict;
    enum engine_rule rule;    // of CANDIDATE_ENGINE
};

/* More than anybody reads; a cluster has a few types, and a place beside each workload on each. */
#define CANDIDATES_MAX 64

struct explanation {
    int job;             // in the snapshot
    int n_candidates;    // best first: the chosen one, then by cost
    int n_left_out;      // beyond CANDIDATES_MAX: those that would not do first, then the dearest
    struct candidate *candidates;
    enum wait_reason reason;    // WAIT_NOT: it is placed
    double wait_w;              // what waiting costs; NaN: nobody plans for it
    double may_start_s;    // when the first place it suits is expected to be free; NaN: unknown
    int waits_for;         // snapshot job whose end that is; -1: none
};

/* Candidates of one job, given the plan (judged): what is taken is what the plan takes. Every cost
 * is what plan_price would say of the plan with the job there instead. Linear in GPUs.
 */
void explain_job(struct arena *a, const struct lowered *asked, const struct plan *p, int job,
                 struct explanation *out);

/* Does a job that runs stay on the GPUs it has? Their order does not matter, nor does the limit. */
bool plan_job_stays(const struct plan_job *pj, const struct snapshot_job *j);

/* As it is recorded (docs/formats/explain.md): names instead of indices. */
json_t *explain_json(const struct explanation *x, const struct lowered *asked,
                     const struct plan *p);

/* The whole plan, for `gogh plan`: each job with what would happen to it (start, stay, move, stop,
 * wait, limit), predicted speed, watts, shortfalls; totals. How long it took ("seconds") and
 * whether it is the fallback ("fallback") is not the plan's to know: whoever made it adds them.
 */
json_t *plan_json(const struct plan *p, const struct lowered *asked);

#endif
