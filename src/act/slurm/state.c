#include "act/slurm/state.h"

#include <math.h>

#include "act/slurm/inner.h"

#define IN(state) (1u << MANAGED_##state)
#define ALL ((1u << MANAGED_STATES) - 1)
#define LEAVING (IN(STOPPING) | IN(MOVING) | IN(CANCELLING) | IN(RETIRING))
#define OVER (IN(ENDED) | IN(REPORTED) | IN(TAKEN))
#define FOR_GOOD (IN(CANCELLING) | IN(RETIRING))

/* From which states an event leads where; from any other it leads nowhere. */
static const struct {
    unsigned from;
    enum managed_state to;
} arrows[MANAGED_EVENTS][2] = {
    [ON_NEW] = { { IN(SUBMITTED), MANAGED_ABSENT } },
    [ON_STOP] = { { IN(PINNED) | IN(RUNNING) | IN(MOVING), MANAGED_STOPPING } },
    [ON_MOVE] = { { IN(PINNED) | IN(RUNNING), MANAGED_MOVING } },
    [ON_CANCEL] = { { IN(ABSENT), MANAGED_ENDED },
                    { ALL & ~(IN(ABSENT) | OVER), MANAGED_CANCELLING } },
    [ON_SUBMIT_SENT] = { { IN(ABSENT), MANAGED_SUBMITTED } },
    [ON_SUBMIT_FAILED] = { { IN(SUBMITTED), MANAGED_ABSENT } },
    [ON_PIN_SENT] = { { IN(HELD), MANAGED_PINNED } },
    [ON_PIN_FAILED] = { { IN(PINNED), MANAGED_HELD } },
    [ON_STAYS] = { { IN(STOPPING) | IN(MOVING), MANAGED_RUNNING } },
    [ON_REPLACED] = { { IN(HELD) | IN(PINNED) | IN(RUNNING), MANAGED_ABSENT } },
    [ON_PENDING] = { { ALL & ~FOR_GOOD, MANAGED_HELD } },
    [ON_STARTING] = { { ALL & ~LEAVING, MANAGED_PINNED } },
    [ON_RUNNING] = { { ALL & ~LEAVING, MANAGED_RUNNING } },
    [ON_UNWANTED] = { { ALL & ~LEAVING, MANAGED_STOPPING } },
    [ON_SERVED] = { { IN(RUNNING), MANAGED_RETIRING } },
    [ON_RISEN] = { { ALL, MANAGED_CANCELLING } },
    [ON_RETRY] = { { ALL & ~FOR_GOOD, MANAGED_STOPPING } },
    [ON_ENDED] = { { ALL & ~OVER, MANAGED_ENDED } },
    [ON_REPORTED] = { { ALL, MANAGED_REPORTED } },
    [ON_UNREPORTED] = { { IN(REPORTED), MANAGED_ENDED } },
    [ON_LOST] = { { ALL & ~OVER, MANAGED_ABSENT } },
    [ON_PARKED] = { { ALL & ~OVER, MANAGED_PARKED } },
    [ON_TAKEN] = { { ALL, MANAGED_TAKEN } },
};

enum managed_state managed_next(enum managed_state from, enum managed_event e)
{
    for (int i = 0; i < 2; i++)
        if (arrows[e][i].from >> from & 1)
            return arrows[e][i].to;
    return from;
}

bool managed_is_leaving(const struct managed *m)
{
    return LEAVING >> m->state & 1;
}

bool managed_has_ended(const struct managed *m)
{
    return OVER >> m->state & 1;
}

bool managed_update(struct slurm *x, struct managed *m, enum managed_event e)
{
    const enum managed_state next = managed_next(m->state, e);
    const bool was_leaving = managed_is_leaving(m);

    x->n_busy = -1;
    if (next == m->state)
        return false;
    m->state = next;
    if (was_leaving && managed_is_leaving(m))
        return true;    // the time to save runs on
    if (!managed_is_leaving(m))
        m->asked_run = -1;
    m->again_s = 0;
    m->due_s = (double)INFINITY;
    m->is_logged = false;
    return true;
}
