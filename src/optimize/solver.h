/* solver.h - the second door: who makes plans.
 *
 * Whether a call worked (the return value) and what the solver concluded (the verdict)
 * are two different answers. Solvers keep no state between calls that changes a plan: the
 * same snapshot, options and seed give the same plan.
 */
#ifndef OPTIMIZE_SOLVER_H
#define OPTIMIZE_SOLVER_H

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct err;
struct estimator;
struct plan;
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
    double unfit_max;            // a combination is tried when its chance of not fitting is below
    double alone_unfit_max;      // and a job alone, which has no other way to find out
    bool may_share, may_move;    // what a plan may use to save energy
    bool may_limit;              // and power limits (estimate/limits.h)
};

/* The values of a run that says nothing: joules, 50 W, no cap, 60 s, 0.25 and 0.9, sharing and
 * moving allowed.
 */
extern const struct solve_options solve_defaults;

enum verdict {
    VERDICT_NONE,    // no plan
    VERDICT_FEASIBLE,
    VERDICT_OPTIMAL,
};

struct solver {
    const char *name;
    uint64_t seed;
    const void *how;    // the solver's own; lives as long as the process
    int (*solve)(const struct solver *self, struct arena *a, const struct snapshot *s,
                 const struct estimator *est, const struct solve_options *o, struct plan *out,
                 enum verdict *verdict, struct err *e);
};

/* "gogh", "greedy", "fifo-fastest", "fifo-random", "fifo-first". -ENOENT lists them. */
int solver_by_name(const char *name, uint64_t seed, struct solver *out, struct err *e);

/* The planner (optimize.h) on the snapshot as a problem (lower.h). */
extern const struct solver solver_gogh;

/* The standing fallback: always makes a plan, in time linear in jobs and GPUs. */
extern const struct solver solver_greedy;

/* First come, first served, one job a GPU: what most sites do. The next job gets the
 * fastest free GPU, a random one, or the first.
 */
extern const struct solver solver_fifo_fastest, solver_fifo_random, solver_fifo_first;

#endif
