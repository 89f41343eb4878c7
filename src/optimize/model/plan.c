#include "optimize/model/plan.h"

#include "base/arena.h"
#include "catalog/snapshot.h"
#include "estimate/estimate.h"
#include "optimize/policy/board.h"

const char *wait_reason_name(enum wait_reason r)
{
    static const char *const names[] = {
        [WAIT_NOT] = "placed",      [WAIT_CAPACITY] = "capacity", [WAIT_MEMORY] = "memory",
        [WAIT_TYPE] = "gpu type",   [WAIT_GANG] = "gang size",    [WAIT_POWER] = "power cap",
        [WAIT_PROMISE] = "promise", [WAIT_TURN] = "turn",
    };
    return names[r];
}

static void price_job(struct plan *p, const struct board *b, int job)
{
    struct plan_job *pj = &p->jobs[job];

    if (pj->n_gpus == 0) {
        p->n_waiting++;
        return;
    }
    double need = b->snapshot->jobs[job].need;
    pj->speed = board_speed(b, job, &pj->low);
    pj->is_short = pj->low < need;
    p->n_placed++;
    p->n_short += pj->is_short;
}

void plan_price(struct arena *a, struct plan *p, const struct snapshot *s,
                const struct estimator *est)
{
    struct board b;

    board_lay(&b, a, s, est, p);
    p->n_placed = p->n_waiting = p->n_short = 0;
    p->watts = 0;
    for (int j = 0; j < p->n_jobs; j++)
        price_job(p, &b, j);
    for (int g = 0; g < s->n_gpus; g++)
        p->watts += board_watts(&b, g);
}
