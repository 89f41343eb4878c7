/* The planner behind the solver's door.
 *
 * A small cluster is planned as a whole each time, from nothing but the problem. On a large one the
 * prices of the last whole plan are kept: newcomers go where these say, a few steps of search
 * improve what is around them, and every plan still has its bound, which says when the prices serve
 * no longer (kept_count); whoever keeps them finds them anew then. Without a place to keep prices
 * every plan is a whole one.
 */
#include "base/arena.h"
#include "base/err.h"
#include "catalog/cluster/snapshot.h"
#include "optimize/model/plan.h"
#include "optimize/model/lower.h"
#include "optimize/optimize.h"
#include "optimize/model/problem.h"
#include "optimize/policy/solver.h"

/* Up to this many jobs and GPUs together every decision is a whole plan. */
#define WHOLE_SIZE 256

/* Search steps for each job and GPU; a decision on 36 GPUs takes some milliseconds. */
#define NODES_EACH 8
#define NODES_LEAST 500
#define NODES_STANDING 5000    // around what has changed

static long size_of(const struct problem *p)
{
    return (long)p->n_jobs + p->n_gpus;
}

/* A service's parts come and go, and only they pay for their starts. */
static bool is_service(const struct problem_job *j)
{
    return j->name && j->start_w > 0;
}

static bool has_services(const struct problem *p)
{
    for (int j = 0; j < p->n_jobs; j++)
        if (is_service(&p->jobs[j]))
            return true;
    return false;
}

/* Was somebody who runs left without a place? */
static bool stops_somebody(const struct problem *p, const struct plan *x)
{
    for (int j = 0; j < p->n_jobs; j++)
        if (p->jobs[j].name && !is_service(&p->jobs[j]) && p->jobs[j].n_present > 0 &&
            x->jobs[j].n_gpus == 0)
            return true;
    return false;
}

static struct optimize_options options_for(const struct solver *self, const struct problem *p)
{
    struct optimize_options how = optimize_defaults;
    bool is_small = size_of(p) <= WHOLE_SIZE;

    how.method = is_small ? METHOD_FAST : METHOD_STANDING;
    how.kept = is_small ? NULL : self->kept;
    how.threads = 1;
    how.seed = self->seed;
    how.nodes = is_small ? NODES_LEAST + NODES_EACH * size_of(p) : NODES_STANDING;
    return how;
}

/* A search may end with a running job in nobody's place, though that is dearer than anything but a
 * service that lacks replicas: then those that run stay where they are, and the others are planned
 * around them, unless that is dearer still.
 */
static int solve(const struct solver *self, struct arena *a, const struct problem *p,
                 struct plan *out, struct err *e)
{
    const struct optimize_options how = options_for(self, p);
    struct optimize_report report;
    struct problem held = *p;

    int rc = optimize_run(a, p, &how, out, &report, e);
    if (rc < 0 || !stops_somebody(p, out))
        return rc;
    held.jobs = ARENA_ARRAY(a, struct problem_job, (size_t)p->n_jobs);
    for (int j = 0; j < p->n_jobs; j++) {
        held.jobs[j] = p->jobs[j];
        held.jobs[j].is_fixed = p->jobs[j].n_present > 0 && !is_service(&p->jobs[j]);
    }
    struct plan stopping = *out;
    rc = optimize_run(a, &held, &how, out, &report, e);
    if (rc == 0 && has_services(p) && stopping.cost_w < out->cost_w)
        *out = stopping;
    out->bound_w = stopping.bound_w;    // of all plans, not only of those in which nobody moves
    return rc;
}

const struct solver solver_gogh = {
    .name = "gogh",
    .about = "a planner over the whole cluster: the least joules to finish all jobs with their "
             "promises kept, by what it has measured and believes",
    .levers = LEVER_BIT(TYPES) | LEVER_BIT(SHARING) | LEVER_BIT(MOVING) | LEVER_BIT(JOULES),
    .solve = solve,
};

const struct solver solver_static_peak = {
    .name = "static-peak",
    .about = "gogh's planner, with as many replicas of each service at all times as its peak and a "
             "tenth more take",
    .levers = LEVER_BIT(TYPES) | LEVER_BIT(SHARING) | LEVER_BIT(MOVING) | LEVER_BIT(JOULES),
    .services = SERVICE_PEAK,
    .solve = solve,
};

const struct solver solver_autoscaler = {
    .name = "autoscaler",
    .about = "gogh's planner, with as many replicas of each service as are busy for 60 % of the "
             "time at the load of the last minutes",
    .levers = LEVER_BIT(TYPES) | LEVER_BIT(SHARING) | LEVER_BIT(MOVING) | LEVER_BIT(JOULES),
    .services = SERVICE_AUTOSCALE,
    .solve = solve,
};

const struct solver solver_watts = {
    .name = "watts",
    .about = "gogh's planner that seeks the least watts now instead of the least joules to finish",
    .levers = LEVER_BIT(TYPES) | LEVER_BIT(SHARING) | LEVER_BIT(MOVING),
    .objective = OBJECTIVE_WATTS,
    .solve = solve,
};
