/* The planner behind the solver's door: snapshot -> problem -> answer -> plan.
 *
 * A small cluster is planned as a whole each time. On a large one a whole plan is worth its time
 * only now and then; in between, newcomers go where greedy puts them.
 */
#include <math.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "catalog/catalog.h"
#include "catalog/snapshot.h"
#include "optimize/model/answer.h"
#include "optimize/model/lower.h"
#include "optimize/optimize.h"
#include "optimize/model/plan.h"
#include "optimize/policy/solver.h"

/* Up to this many jobs and GPUs together every decision is a whole plan; beyond, every n-th is,
 * with n growing so that the time for whole plans stays a fixed part.
 */
#define WHOLE_SIZE 256

/* Search steps for each job and GPU; a decision on 36 GPUs takes some milliseconds. */
#define NODES_EACH 8
#define NODES_LEAST 500

/* About so many jobs and GPUs that they could ask for matter. */
static long size_of(const struct snapshot *s)
{
    long wanted = 1;

    for (int j = 0; j < s->n_jobs; j++)
        wanted += s->jobs[j].spec->max_gpus;
    wanted *= s->catalog->n_types;
    return s->n_jobs + (wanted < s->n_gpus ? wanted : s->n_gpus);
}

/* Which decision is a whole plan follows from the time alone, so that a snapshot repeats its
 * plan; by a hash of it, as times are often round.
 */
static bool is_whole(const struct snapshot *s)
{
    uint64_t every = (uint64_t)size_of(s) / WHOLE_SIZE + 1;

    return ((uint64_t)fabs(s->now_s * 1000) * UINT64_C(0x9e3779b97f4a7c15) >> 32) % every == 0;
}

/* Was somebody who runs left without a place? */
static bool stops_somebody(const struct lowered *l, const struct answer *x)
{
    for (int j = 0; j < l->problem.n_jobs; j++)
        if (l->problem.jobs[j].name && l->problem.jobs[j].n_present > 0 && x->jobs[j].n_gpus == 0)
            return true;
    return false;
}

/* A search may end with a running job in nobody's place, though that is dearer than anything: then
 * those that run stay where they are, and the others are planned around them.
 */
static int plan(struct arena *a, struct lowered *l, const struct optimize_options *how,
                struct answer *out, struct optimize_report *report, struct err *e)
{
    int rc = optimize_run(a, &l->problem, how, out, NULL, report, e);

    if (rc < 0 || !stops_somebody(l, out))
        return rc;
    for (int j = 0; j < l->problem.n_jobs; j++)
        l->problem.jobs[j].is_fixed = l->problem.jobs[j].n_present > 0;
    rc = optimize_run(a, &l->problem, how, out, NULL, report, e);
    report->status = STATUS_FEASIBLE;
    return rc;
}

static struct optimize_options quickly(const struct snapshot *s, uint64_t seed)
{
    struct optimize_options how = optimize_defaults;

    how.method = METHOD_QUICK;
    how.threads = 1;
    how.seed = seed;
    how.nodes = NODES_LEAST + NODES_EACH * size_of(s);
    return how;
}

static int solve(const struct solver *self, struct arena *a, const struct snapshot *s,
                 const struct estimator *est, const struct solve_options *o, struct plan *out,
                 enum verdict *verdict, struct err *e)
{
    const struct optimize_options how = quickly(s, self->seed);
    struct optimize_report report = { 0 };
    struct lowered lowered;
    struct answer answer;

    if (!is_whole(s)) {
        int rc = solver_greedy.solve(&solver_greedy, a, s, est, o, out, verdict, e);
        out->made_by = self->name;
        return rc;
    }
    int rc = lower_problem(a, s, est, o, &lowered, e);
    if (rc == 0)
        rc = plan(a, &lowered, &how, &answer, &report, e);
    if (rc < 0)
        return rc;
    raise_plan(a, &lowered, s, est, o, &answer, self->name, out);
    plan_price(a, out, s, est);
    *verdict = report.status == STATUS_OPTIMAL ? VERDICT_OPTIMAL : VERDICT_FEASIBLE;
    return 0;
}

double solver_gogh_gap(struct arena *a, const struct snapshot *s, const struct estimator *est,
                       const struct solve_options *o, uint64_t seed)
{
    struct optimize_options how = quickly(s, seed);
    struct optimize_report quick, fast;
    struct lowered lowered;
    struct answer unused;
    struct err e;

    if (s->n_jobs == 0 || size_of(s) > WHOLE_SIZE ||
        lower_problem(a, s, est, o, &lowered, &e) < 0 ||
        optimize_run(a, &lowered.problem, &how, &unused, NULL, &quick, &e) < 0)
        return NAN;
    how.method = METHOD_FAST;
    if (optimize_run(a, &lowered.problem, &how, &unused, NULL, &fast, &e) < 0)
        return NAN;
    double gap_w = quick.cost_w - fast.bound_w;
    return gap_w > 0 && quick.cost_w != 0 ? gap_w / fabs(quick.cost_w) : 0;
}

const struct solver solver_gogh = { .name = "gogh", .solve = solve };
