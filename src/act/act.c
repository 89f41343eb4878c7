#include "act/act.h"

#include <stdbool.h>

#include "act/executor.h"
#include "base/err.h"
#include "base/log.h"
#include "catalog/snapshot.h"
#include "optimize/model/plan.h"

enum order { ORDER_NONE, ORDER_STOP, ORDER_MOVE, ORDER_LIMIT, ORDER_START };

static bool holds(const struct snap_job *j, int gpu)
{
    for (int i = 0; i < j->n_held; i++)
        if (j->gpus[i] == gpu)
            return true;
    return false;
}

/* The same set of GPUs, in whatever order. */
static bool is_same_place(const struct snap_job *j, const struct plan_job *pj)
{
    if (j->n_held != pj->n_gpus)
        return false;
    for (int i = 0; i < pj->n_gpus; i++)
        if (!holds(j, pj->gpus[i]))
            return false;
    return true;
}

static enum order order_for(const struct snap_job *j, const struct plan_job *pj)
{
    if (!j->is_running)
        return pj->n_gpus ? ORDER_START : ORDER_NONE;
    if (!pj->n_gpus)
        return ORDER_STOP;
    if (!is_same_place(j, pj))
        return ORDER_MOVE;
    return j->limit_w == pj->limit_w ? ORDER_NONE : ORDER_LIMIT;
}

static int give(const struct executor *x, enum order order, const struct placement *p,
                struct err *e)
{
    switch (order) {
    case ORDER_STOP:
        return x->stop(x->self, p->job, e);
    case ORDER_MOVE:
    case ORDER_LIMIT:    // a move to where it is
        return x->move(x->self, p, e);
    case ORDER_START:
        return x->start(x->self, p, e);
    case ORDER_NONE:
        break;
    }
    return 0;
}

static void count(struct act_report *r, enum order order, int rc)
{
    if (rc < 0)
        r->n_refused++;
    else if (order == ORDER_STOP)
        r->n_stopped++;
    else if (order == ORDER_MOVE)
        r->n_moved++;
    else if (order == ORDER_LIMIT)
        r->n_limited++;
    else
        r->n_started++;
}

static void act_on(const struct executor *x, const struct snap_job *j, const struct plan_job *pj,
                   enum order order, struct act_report *out)
{
    struct placement place = {
        .job = j->id, .n_gpus = pj->n_gpus, .gpus = pj->gpus, .limit_w = pj->limit_w
    };
    struct err e = { 0 };
    int rc = give(x, order, &place, &e);

    if (rc < 0)
        log_warn("job %s: %s; trying again next time", j->spec->name, e.text);
    count(out, order, rc);
}

void act_commit(const struct executor *x, const struct snapshot *s, const struct plan *p,
                struct act_report *out)
{
    *out = (struct act_report){ 0 };
    for (enum order now = ORDER_STOP; now <= ORDER_START; now++)
        for (int j = 0; j < s->n_jobs; j++)
            if (order_for(&s->jobs[j], &p->jobs[j]) == now)
                act_on(x, &s->jobs[j], &p->jobs[j], now, out);
}
