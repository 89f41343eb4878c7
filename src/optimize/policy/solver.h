/* solver.h - the second door: who makes plans.
 *
 * A policy sees a problem (model/problem.h) and makes a plan (model/plan.h). The same problem, seed
 * and kept prices give the same plan; only large clusters use kept prices.
 */
#ifndef OPTIMIZE_POLICY_SOLVER_H
#define OPTIMIZE_POLICY_SOLVER_H

#include <stdbool.h>
#include <stdint.h>

#include "optimize/model/options.h"

struct arena;
struct err;
struct estimator;
struct kept_prices;
struct lowered;
struct plan;
struct problem;
struct snapshot;

/* How services are provided for. */
enum service_rule {
    SERVICE_REPLAY,       // by replay of what arrived, for the forecast demand
    SERVICE_PEAK,         // for what was said at submission, and a tenth more, at all times
    SERVICE_AUTOSCALE,    // by utilisation: so many that they are busy for 60 % of the time
};

struct solver {
    const char *name;
    const char *about;    // what it does, in a line
    unsigned levers;      // LEVER_BITs of those it goes by; all do by SLEEP and LIMITS besides
    enum objective objective;    // of its problems, unless it goes by JOULES
    enum service_rule services;
    uint64_t seed;
    const void *how;             // the solver's own; lives as long as the process
    struct kept_prices *kept;    // between decisions, for "gogh" and "watts"; NULL: nothing is kept
    int (*solve)(const struct solver *self, struct arena *a, const struct problem *p,
                 struct plan *out, struct err *e);
};

/* Does taking the lever away change what it does? */
bool solver_has_lever(const struct solver *self, enum lever l);

/* The snapshot as a problem, with the objective that the policy has. As lower_problem. */
int solver_lower(const struct solver *self, struct arena *a, const struct snapshot *s,
                 const struct estimator *est, const struct solve_options *o, struct lowered *out,
                 struct err *e);

/* Solve it, into 'a', and have the plan judged. 0; what 'solve' returns; or -EINVAL: its plan did
 * not pass plan_check.
 */
int solver_plan(const struct solver *self, struct arena *a, const struct lowered *asked,
                struct plan *out, struct err *e);

/* The one of that name, in the order of the table; -ENOENT names them all. */
int solver_by_name(const char *name, uint64_t seed, struct solver *out, struct err *e);

/* All that there are, one after the other; NULL behind the last. */
const struct solver *solver_at(int i);

/* The planner (optimize.h). */
extern const struct solver solver_gogh;

/* The standing fallback: always makes a plan, in time linear in jobs and GPUs. */
extern const struct solver solver_greedy;

/* The others, each of which says what it does ('about'). */
extern const struct solver solver_watts, solver_gavel, solver_gavel_cost, solver_pack, solver_eaco,
    solver_fifo_promise, solver_fifo_fastest, solver_fifo_random, solver_fifo_first, solver_slurm,
    solver_static_peak, solver_autoscaler;

#endif
