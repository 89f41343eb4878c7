#include "optimize/model/lower.h"

#include <errno.h>
#include <math.h>

#include "base/arena.h"
#include "base/err.h"
#include "optimize/model/answer.h"
#include "optimize/model/lower_inner.h"
#include "optimize/policy/place.h"
#include "optimize/model/plan.h"

/* ---- down ---- */

int lower_problem(struct arena *a, const struct snapshot *s, const struct estimator *est,
                  const struct solve_options *o, struct lowered *out, struct err *e)
{
    struct problem *p = &out->problem;
    struct lowering l = { .arena = a, .snapshot = s, .est = est, .options = o, .problem = p };

    *p = (struct problem){ .theta = o->may_share ? s->theta : 1,
                           .z = est->z,
                           .price_w = o->objective == OBJECTIVE_JOULES ? o->price_w : 0,
                           .n_jobs = s->n_jobs,
                           .n_racks = 1,
                           .turn = (uint64_t)fabs(s->now_s * 1000) };
    if (lower_types(&l, e) < 0)
        return -EINVAL;
    lower_gpus(&l);
    lower_kinds(&l);
    lower_cells(&l);
    lower_caps(&l);
    lower_limits(&l);
    lower_bends(&l);
    lower_memory(&l);
    lower_values(&l);
    lower_gangs(p);
    p->jobs = ARENA_ARRAY(a, struct problem_job, (size_t)s->n_jobs);
    for (int j = 0; j < s->n_jobs; j++)
        lower_job(&l, j);
    lower_misfits(&l);
    lower_power(&l);
    out->type_of = l.type_of;
    out->workload_of = l.workload_of;
    return problem_check(p, e);
}

/* ---- up ---- */

/* As the job holds them now where nothing changes. */
static const int *raise_gpus(const struct snap_job *sj, const struct problem_job *j,
                             const struct answer_job *x)
{
    bool is_same = x->n_gpus == j->n_present;

    for (int i = 0; i < x->n_gpus && is_same; i++)
        is_same = x->gpus[i] == j->present[i];
    return is_same ? sj->gpus : x->gpus;
}

/* The cluster knows best why; but what was in the way of a place that is there, only the planner. */
static enum wait_reason raise_reason(const struct board *b, int job, const struct solve_options *o,
                                     enum wait_reason said)
{
    enum wait_reason why = place_reason(b, job, o->alone_unfit_max);

    bool is_known = said == WAIT_POWER || said == WAIT_PROMISE || said == WAIT_TURN;

    return why == WAIT_CAPACITY && is_known ? said : why;
}

void raise_plan(struct arena *a, const struct lowered *l, const struct snapshot *s,
                const struct estimator *est, const struct solve_options *o, const struct answer *x,
                const char *made_by, struct plan *out)
{
    struct board b;

    board_init(&b, a, s, est);
    *out = (struct plan){ .made_by = made_by, .n_jobs = s->n_jobs };
    out->jobs = ARENA_ARRAY(a, struct plan_job, (size_t)s->n_jobs);
    for (int j = 0; j < s->n_jobs; j++) {
        const struct snap_job *sj = &s->jobs[j];
        const struct answer_job *xj = &x->jobs[j];
        struct plan_job *pj = &out->jobs[j];
        if (l->problem.jobs[j].frozen) {
            *pj =
                (struct plan_job){ .n_gpus = sj->n_held, .gpus = sj->gpus, .limit_w = sj->limit_w };
        } else if (xj->n_gpus > 0) {
            pj->n_gpus = xj->n_gpus;
            pj->gpus = raise_gpus(sj, &l->problem.jobs[j], xj);
            int type = l->problem.gpus[xj->gpus[0]].type;
            pj->limit_w = l->problem.types[type].limits[x->limit[xj->gpus[0]]].limit_w;
        } else {
            pj->reason = raise_reason(&b, j, o, xj->reason);
        }
    }
}
