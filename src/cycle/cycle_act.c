/* From a plan to orders, as things are by now. */
#include "cycle/cycle_inner.h"

#include "act/act.h"
#include "base/err.h"
#include "base/log.h"
#include "catalog/ledger.h"
#include "catalog/snapshot.h"
#include "optimize/model/lower.h"
#include "optimize/model/plan.h"
#include "optimize/search/repair.h"

/* ---- has anything changed since it was looked at? ---- */

/* Does the job stand where the snapshot saw it? */
static bool is_as_seen(const struct state *s, const struct snap_job *seen)
{
    const struct job *j = s->jobs[seen->id];

    if (j->state != (seen->is_running ? JOB_RUNNING : JOB_WAITING) || j->n_held != seen->n_held)
        return false;
    for (int i = 0; i < j->n_held; i++)
        if (j->gpus[i] != seen->gpus[i])
            return false;
    return true;
}

/* An order about it is being carried out, or it ends by itself. */
static bool is_untouchable(const struct cycle *c, int job)
{
    const struct executor *x = &c->executor;

    return (x->job_is_busy && x->job_is_busy(x->self, job)) ||
           (c->is_ending && c->is_ending(c->owner, job));
}

static bool gpu_is_as_seen(const struct cycle *c, const struct snap_gpu *seen, int gpu)
{
    const struct state *s = &c->ledger->state;
    const struct executor *x = &c->executor;
    bool may_start = s->nodes[s->gpus[gpu].node].state == NODE_UP &&
                     !(x->gpu_is_busy && x->gpu_is_busy(x->self, gpu));

    return s->gpus[gpu].n_jobs == seen->n_jobs && may_start == seen->may_start;
}

/* Are all GPUs as they were, and all jobs, and may those be touched that the plan changes? */
static bool still_holds(const struct cycle *c, const struct snapshot *s, const struct plan *p)
{
    const struct state *now = &c->ledger->state;

    if (now->n_gpus != s->n_gpus)
        return false;
    for (int g = 0; g < s->n_gpus; g++)
        if (!gpu_is_as_seen(c, &s->gpus[g], g))
            return false;
    for (int j = 0; j < s->n_jobs; j++)
        if (!is_as_seen(now, &s->jobs[j]) ||
            (act_changes(&s->jobs[j], &p->jobs[j]) && is_untouchable(c, s->jobs[j].id)))
            return false;
    return true;
}

/* ---- a plan for what is now ---- */

/* What the plan wants of each job that is there now; who changed is to stay as it is. */
static struct plan_job *wanted_now(const struct cycle *c, struct arena *a,
                                   const struct snapshot *then, const struct plan *p,
                                   const struct snapshot *now)
{
    const struct state *s = &c->ledger->state;
    int *at = ARENA_ARRAY(a, int, (size_t)s->n_jobs);    // by id: 1 + its number then
    struct plan_job *wanted = ARENA_ARRAY(a, struct plan_job, (size_t)now->n_jobs);

    for (int j = 0; j < then->n_jobs; j++)
        at[then->jobs[j].id] = j + 1;
    for (int j = 0; j < now->n_jobs; j++) {
        const struct snap_job *here = &now->jobs[j];
        int was = at[here->id] - 1;
        wanted[j] = (struct plan_job){ .n_gpus = here->n_held,
                                       .gpus = here->gpus,
                                       .limit_w = here->limit_w };
        if (was >= 0 && is_as_seen(s, &then->jobs[was]) && !is_untouchable(c, here->id))
            wanted[j] = p->jobs[was];
    }
    return wanted;
}

/* Look again, and make of the plan what is allowed now. */
static int renew(struct cycle *c, const struct snapshot *then, const struct plan *p,
                 struct snapshot *now, struct plan *out, struct err *e)
{
    struct arena *a = &c->arena;
    struct lowered asked;
    int rc = cycle_look(c, a, now, e);

    if (rc == 0)
        rc = lower_problem(a, now, &c->estimator, &c->options, &asked, e);
    if (rc < 0)
        return rc;
    plan_repair(a, &asked.problem, wanted_now(c, a, then, p, now), out);
    out->made_by = p->made_by;
    return plan_check(a, &asked.problem, out, e);
}

void cycle_act(struct cycle *c, const struct snapshot *s, const struct plan *p,
               struct act_report *out)
{
    struct snapshot now = *s;
    struct plan renewed = *p;
    struct err e = { 0 };
    int rc = still_holds(c, s, p) ? 0 : renew(c, s, p, &now, &renewed, &e);

    *out = (struct act_report){ 0 };
    cycle_note_reasons(c, s, p);
    if (rc == 0)
        act_commit(&c->executor, &now, &renewed, out);
    else
        log_warn("nothing is ordered this time: %s", e.text);
    c->n_moves += out->n_moved;
    log_debug("t %.0f s: %d placed, %d waiting, %d short; started %d, moved %d, stopped %d, "
              "refused %d",
              s->now_s, p->n_placed, p->n_waiting, p->n_short, out->n_started, out->n_moved,
              out->n_stopped, out->n_refused);
}
