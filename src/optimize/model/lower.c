#include "optimize/model/lower.h"

#include <errno.h>
#include <math.h>

#include "base/arena.h"
#include "base/err.h"
#include "optimize/model/lower_inner.h"

int lower_problem(struct arena *a, const struct snapshot *s, const struct estimator *est,
                  const struct solve_options *o, struct lowered *out, struct err *e)
{
    struct problem *p = &out->problem;
    struct lowering l = { .arena = a, .snapshot = s, .est = est, .options = o, .problem = p };

    out->snapshot = s;
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
    lower_engine(&l);
    lower_misfits(&l);
    lower_nodes(&l);
    lower_power(&l);
    out->type_of = l.type_of;
    out->workload_of = l.workload_of;
    return problem_check(p, e);
}
