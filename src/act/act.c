#include "act/act.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>

#include "act/executor.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "catalog/cluster/snapshot.h"
#include "optimize/model/plan.h"
#include "optimize/search/assignment.h"

/* Services have none: their replicas come and go by events (cycle/services.h). */
static enum order_kind order_for(const struct snapshot_job *j, const struct plan_job *pj)
{
    if (j->spec->kind == JOB_SERVICE)
        return ORDER_NONE;
    if (!j->is_running)
        return pj->n_gpus ? ORDER_START : ORDER_NONE;
    if (!pj->n_gpus)
        return ORDER_STOP;
    if (!gpus_same(j->gpus, j->n_held, pj->gpus, pj->n_gpus))
        return ORDER_MOVE;
    return j->limit_w == pj->limit_w ? ORDER_NONE : ORDER_LIMIT;
}

bool act_changes(const struct snapshot_job *j, const struct plan_job *pj)
{
    return order_for(j, pj) != ORDER_NONE;
}

static void count(struct act_report *r, enum order_kind order, int rc)
{
    int *const accepted[] = { [ORDER_STOP] = &r->n_stopped,
                              [ORDER_MOVE] = &r->n_moved,
                              [ORDER_LIMIT] = &r->n_limited,
                              [ORDER_START] = &r->n_started };

    assert(rc < 0 || (order >= ORDER_STOP && order <= ORDER_START));
    ++*(rc < 0 ? &r->n_refused : accepted[order]);
}

struct acting {
    const struct executor *executor;
    const struct snapshot *snapshot;
    const struct plan *plan;
    bool *is_asked, *is_told;    // (n_jobs) its order was given; and accepted
    bool *is_impossible;         // (n_jobs)
    struct act_report *report;
};

/* Would the same order be refused again? */
static bool is_for_good(int rc)
{
    return rc == -ENODEV || rc == -EINVAL || rc == -ENOTSUP;
}

/* Of a limit alone: the GPUs in the order in which the job has them. */
static void act_on(struct acting *x, int job, enum order_kind order)
{
    const struct snapshot_job *j = &x->snapshot->jobs[job];
    const struct plan_job *pj = &x->plan->jobs[job];
    struct placement place = { .job = j->id,
                               .n_gpus = pj->n_gpus,
                               .gpus = order == ORDER_LIMIT ? j->gpus : pj->gpus,
                               .limit_w = pj->limit_w };
    struct err e = { 0 };
    int rc = executor_give(x->executor, order, &place, &e);

    x->is_impossible[job] = order != ORDER_STOP && is_for_good(rc);
    if (x->is_impossible[job])
        log_warn("job %s: %s; no rule of the executor's said so, which is a bug. Not there again",
                 j->spec->name, e.text);
    else if (rc < 0)
        log_warn("job %s: %s; trying again next time", j->spec->name, e.text);
    x->is_asked[job] = true;
    x->is_told[job] = rc == 0;
    count(x->report, order, rc);
}

/* Is somebody where the job shall be who is to leave, and has not been told so? With 'is_refused':
 * was asked, in vain.
 */
static bool is_held_up(const struct acting *x, int job, bool is_refused)
{
    const struct plan_job *pj = &x->plan->jobs[job];

    for (int i = 0; i < pj->n_gpus; i++) {
        const struct snapshot_gpu *g = &x->snapshot->gpus[pj->gpus[i]];
        for (int k = 0; k < g->n_jobs; k++) {
            int other = g->jobs[k];
            const struct plan_job *to = &x->plan->jobs[other];
            if (other != job && !x->is_told[other] && (!is_refused || x->is_asked[other]) &&
                !gpus_have(to->gpus, to->n_gpus, pj->gpus[i]))
                return true;
        }
    }
    return false;
}

/* It is left alone, so nobody can come to where it is. */
static void pass_over(struct acting *x, int job)
{
    x->is_asked[job] = true;
    x->report->n_refused++;
}

static bool is_due(const struct acting *x, int job, enum order_kind order)
{
    return !x->is_asked[job] && order_for(&x->snapshot->jobs[job], &x->plan->jobs[job]) == order;
}

/* Whose way is free goes first; of a ring of moves any one. */
static void move_all(struct acting *x)
{
    int waiting;

    do {
        bool is_stuck = true;
        waiting = -1;
        for (int j = 0; j < x->snapshot->n_running; j++) {
            if (!is_due(x, j, ORDER_MOVE))
                continue;
            if (is_held_up(x, j, true))
                pass_over(x, j);
            else if (!is_held_up(x, j, false))
                act_on(x, j, ORDER_MOVE);
            is_stuck &= !x->is_asked[j];
            waiting = x->is_asked[j] ? waiting : j;
        }
        if (waiting >= 0 && is_stuck)
            act_on(x, waiting, ORDER_MOVE);
    } while (waiting >= 0);
}

static void do_all(struct acting *x, enum order_kind order)
{
    for (int j = 0; j < x->snapshot->n_jobs; j++) {
        if (!is_due(x, j, order))
            continue;
        if (order == ORDER_START && is_held_up(x, j, false))
            pass_over(x, j);
        else
            act_on(x, j, order);
    }
}

/* ---- with something in common ---- */

/* Those who stay on a GPU that somebody leaves do so under the limit it has. */
static bool leave(struct assignment *d, int job)
{
    int gpus[GANG_MAX], limits[GANG_MAX], n = d->jobs[job].n_gpus;

    if (n == 0 || d->problem->jobs[job].is_fixed)
        return false;
    for (int i = 0; i < n; i++) {
        gpus[i] = assignment_gpus(d, job)[i];
        limits[i] = d->gpus[gpus[i]].limit;
    }
    if (!assignment_take(d, job))
        return false;
    for (int i = 0; i < n; i++)
        if (d->gpus[gpus[i]].n_jobs > 0 && !assignment_set_limit(d, gpus[i], limits[i]))
            return false;
    return true;
}

/* The number of the power limit that a plan gives a job's GPUs: plans of a child say watts only.
 * -1: there is no such limit.
 */
static int setting_of(const struct assignment *d, const struct plan_job *pj)
{
    if (pj->n_gpus == 0)
        return 0;
    return problem_setting(&d->problem->types[d->problem->gpus[pj->gpus[0]].type], pj->limit_w);
}

/* Is what the order leads to allowed, after all that were accepted? Then it is so assigned. */
static bool leads_well(const struct acting *x, struct assignment *d, int job, enum order_kind order)
{
    const struct plan_job *pj = &x->plan->jobs[job];
    int setting = setting_of(d, pj);

    if (setting < 0)
        return false;
    if (order == ORDER_LIMIT)
        return assignment_set_limit(d, pj->gpus[0], setting);
    return (order == ORDER_START || leave(d, job)) &&
           (order == ORDER_STOP || assignment_put(d, job, pj->gpus, pj->n_gpus, setting));
}

/* Each order that can be given now; is there one? */
static bool give_some(struct acting *x, struct assignment *d, enum order_kind order)
{
    bool is_any = false;

    for (int j = 0; j < x->snapshot->n_jobs; j++) {
        if (!is_due(x, j, order))
            continue;
        assignment_mark(d);
        bool may = leads_well(x, d, j, order);
        if (may)
            act_on(x, j, order);
        is_any |= may;
        if (x->is_told[j])
            assignment_keep(d);
        else
            assignment_undo(d);
    }
    return is_any;
}

/* Moves of which none can be the first, a ring: is what all of them together lead to allowed? */
static bool give_ring(struct acting *x, struct assignment *d)
{
    bool is_any = false, may = true;

    assignment_mark(d);
    for (int j = 0; j < x->snapshot->n_running && may; j++)
        if (is_due(x, j, ORDER_MOVE)) {
            may = leave(d, j);
            is_any = true;
        }
    for (int j = 0; j < x->snapshot->n_running && may; j++)
        if (is_due(x, j, ORDER_MOVE))
            may = leads_well(x, d, j, ORDER_START);
    if (!may || !is_any) {
        assignment_undo(d);
        return false;
    }
    assignment_keep(d);
    for (int j = 0; j < x->snapshot->n_running; j++)
        if (is_due(x, j, ORDER_MOVE))
            act_on(x, j, ORDER_MOVE);
    return true;
}

static void walk(struct acting *x, struct assignment *d)
{
    bool is_any = true;

    while (is_any) {
        is_any = give_some(x, d, ORDER_STOP);
        is_any |= give_some(x, d, ORDER_LIMIT);
        is_any |= give_some(x, d, ORDER_MOVE);
        is_any |= give_some(x, d, ORDER_START);
        is_any = is_any || give_ring(x, d);
    }
    for (int j = 0; j < x->snapshot->n_jobs; j++)
        if (!is_due(x, j, ORDER_NONE) && !x->is_asked[j])
            pass_over(x, j);
}

void act_commit(const struct executor *x, const struct snapshot *s, const struct plan *p,
                struct assignment *allowed, bool *is_impossible, struct act_report *out)
{
    struct arena a;
    struct acting acting = {
        .executor = x, .snapshot = s, .plan = p, .is_impossible = is_impossible, .report = out
    };

    *out = (struct act_report){ 0 };
    arena_init(&a);
    acting.is_asked = ARENA_ARRAY(&a, bool, (size_t)s->n_jobs);
    acting.is_told = ARENA_ARRAY(&a, bool, (size_t)s->n_jobs);
    for (int j = 0; j < s->n_jobs; j++)    // nobody comes to where a replica has yet to drain
        acting.is_asked[j] = s->jobs[j].spec->kind == JOB_SERVICE;
    if (allowed) {
        walk(&acting, allowed);
    } else {
        do_all(&acting, ORDER_STOP);
        move_all(&acting);
        do_all(&acting, ORDER_LIMIT);
        do_all(&acting, ORDER_START);
    }
    arena_release(&a);
}
