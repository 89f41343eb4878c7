/* solver.h - the second door: who makes plans.
 *
 * A policy sees a problem (model/problem.h) and makes a plan (model/plan.h). Whether a call worked
 * (the return value) and what the solver concluded (the verdict) are two different answers. The
 * same problem, seed and kept prices give the same plan; only large clusters use kept prices.
 */
#ifndef OPTIMIZE_POLICY_SOLVER_H
#define OPTIMIZE_POLICY_SOLVER_H

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct err;
struct estimator;
struct kept_prices;
struct lowered;
struct plan;
struct problem;
struct snapshot;

/* What a plan shall use least of. */
enum objective {
    OBJECTIVE_JOULES,    // until the known work is done
    OBJECTIVE_WATTS,     // now
};

struct solve_options {
    enum objective objective;    // for those that have a choice: "gogh"
    double price_w;              // what a GPU-second is worth, in joules
    double power_cap_w;          // of the whole cluster; 0: none
    double move_s;               // running time that a move loses
    double settle_s;             // who started less than this ago stays where it is
    double unfit_max;            // a combination is tried when its chance of not fitting is below
    double alone_unfit_max;      // and a job alone, which has no other way to find out

    /* What a plan may use to save energy. */
    bool may_share, may_move;
    bool may_limit;     // power limits (estimate/limits.h)
    bool may_choose;    // types by what jobs do on them; false: "gogh" takes all types for alike
    bool may_sleep;     // empty GPUs fall asleep; false: they idle
};

/* The values of a run that says nothing: joules, 50 W, no cap, 60 s, 300 s, 0.25 and 0.9,
 * everything allowed but power limits.
 */
extern const struct solve_options solve_defaults;

/* What can be taken away from a plan, to see what it is worth. */
enum lever {
    LEVER_TYPES,
    LEVER_SHARING,
    LEVER_MOVING,
    LEVER_SLEEP,
    LEVER_LIMITS,
    LEVER_JOULES,    // least watts now is sought instead
    LEVERS,
};

const char *lever_name(enum lever l);    // "types", "sharing", ...
int lever_by_name(const char *name);     // -1: there is none
void lever_take(struct solve_options *o, enum lever l);

enum verdict {
    VERDICT_NONE,    // no plan
    VERDICT_FEASIBLE,
    VERDICT_OPTIMAL,
};

struct solver {
    const char *name;
    uint64_t seed;
    const void *how;             // the solver's own; lives as long as the process
    struct kept_prices *kept;    // between decisions, for "gogh" and "watts"; NULL: nothing is kept
    bool is_for_watts;           // its problem asks for least watts now, whatever the options say
    bool has_levers;    // may_choose and the objective are for it; others want joules, by type
    int (*solve)(const struct solver *self, struct arena *a, const struct problem *p,
                 struct plan *out, enum verdict *verdict, struct err *e);
};

/* The snapshot as a problem, with the objective that the policy has. As lower_problem. */
int solver_lower(const struct solver *self, struct arena *a, const struct snapshot *s,
                 const struct estimator *est, const struct solve_options *o, struct lowered *out,
                 struct err *e);

/* Solve it, into 'a', and have the plan judged. 0; what 'solve' returns; -EAGAIN: it made none; or
 * -EINVAL: its plan did not pass plan_check.
 */
int solver_plan(const struct solver *self, struct arena *a, const struct lowered *asked,
                struct plan *out, struct err *e);

/* "gogh", "watts", "greedy", "gavel", "pack", "eaco", "fifo-promise", "fifo-fastest",
 * "fifo-random", "fifo-first". -ENOENT lists them.
 */
int solver_by_name(const char *name, uint64_t seed, struct solver *out, struct err *e);

/* The planner (optimize.h); and the same with least watts now for its objective. */
extern const struct solver solver_gogh, solver_watts;

/* The standing fallback: always makes a plan, in time linear in jobs and GPUs. */
extern const struct solver solver_greedy;

/* First come, first served, one job a GPU: what most sites do. The next job gets the
 * fastest free GPU, a random one, or the first.
 */
extern const struct solver solver_fifo_fastest, solver_fifo_random, solver_fifo_first;

/* First come, first served, on GPUs that keep the promise: alone; alone or beside somebody, where
 * that costs less and all promises hold; and beside somebody wherever nobody is slowed down much.
 */
extern const struct solver solver_fifo_promise, solver_pack, solver_eaco;

/* The most throughput of all jobs together, by a linear program over kinds of jobs and GPU types,
 * shared GPUs included, in leases of six minutes.
 */
extern const struct solver solver_gavel;

#endif
