/* demand.c - the rate to provide for: a forecast from what arrived, and a guard against bursts. */
#include "serve/demand.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/rng.h"
#include "serve/arrivals.h"
#include "serve/batching.h"

/* Tried on twenty services against rises of the day before (three times as many starts) and the
 * week before (more than six times the misses): docs/experiments.md.
 */
#define MARGIN 1.3       // over the busiest slot of the hold
#define HOLD_S 7200.0    // how long a busy slot is remembered, at least
#define HOLD_MAX_S 86400.0

#define GUARD_STEP (4.0 / 3)

enum { RECENT_MAX = 200000 };

static double slot_n(const struct demand *d, long slot)
{
    if (!d->newest || slot > d->newest || slot < d->first || slot <= d->newest - DEMAND_SLOTS)
        return (double)NAN;
    return (double)d->n[slot % DEMAND_SLOTS];
}

static void open_slot(struct demand *d, long slot)
{
    if (!d->newest) {
        d->newest = slot;
        d->first = slot + 1;    // the first one is seen in part only
        memset(d->n, 0, sizeof d->n);
    }
    if (slot - d->newest > DEMAND_SLOTS)
        d->newest = slot - DEMAND_SLOTS;
    while (d->newest < slot)
        d->n[++d->newest % DEMAND_SLOTS] = 0;
}

void demand_add(struct demand *d, double from_s, double to_s, double n)
{
    if (!(from_s >= 0 && to_s > from_s && to_s - from_s < 86400 && to_s < 1e12 && n >= 0))
        return;
    const long first = (long)(from_s / DEMAND_SLOT_S) + 1, last = (long)(to_s / DEMAND_SLOT_S) + 1;
    for (long slot = first; slot <= last; slot++) {    // counted from 1: 0 is "nothing seen"
        const double low_s = fmax(from_s, (double)(slot - 1) * DEMAND_SLOT_S);
        const double high_s = fmin(to_s, (double)slot * DEMAND_SLOT_S);

        open_slot(d, slot);
        if (high_s > low_s && slot > d->newest - DEMAND_SLOTS)
            d->n[slot % DEMAND_SLOTS] += (float)(n * (high_s - low_s) / (to_s - from_s));
    }
}

double demand_now(const struct demand *d, double now_s)
{
    return slot_n(d, (long)(now_s / DEMAND_SLOT_S)) / DEMAND_SLOT_S;    // the one before this
}

double demand_rate(const struct demand *d, double now_s, double horizon_s, double fallback)
{
    const long last = (long)(now_s / DEMAND_SLOT_S);    // the last whole slot
    const long held = (long)(fmin(fmax(HOLD_S, horizon_s), HOLD_MAX_S) / DEMAND_SLOT_S);
    double most = slot_n(d, last);

    if (isnan(most))
        return fallback;
    for (long slot = last - held + 1; slot < last; slot++)
        most = fmax(most, slot_n(d, slot));    // fmax passes over what was not seen
    return MARGIN * most / DEMAND_SLOT_S;
}

/* ---- the guard ---- */

bool guard_minute_is_late(double n_requests, double n_late)
{
    return n_late > 1 && n_late > 0.01 * n_requests;
}

double guard_rate(double held, double recent)
{
    return fmax(GUARD_STEP * held, MARGIN * recent);
}

/* Of 'n' arrivals at random those that fall to 'share' of the weight from 'from' on. */
static int split(const double *at_s, const double *chance, int n, double from, double to,
                 double *out)
{
    int m = 0;

    for (int i = 0; i < n; i++)
        if (chance[i] >= from && chance[i] < to)
            out[m++] = at_s[i];
    return m;
}

bool guard_is_short(const struct arrivals *a, double now_s, const struct guard_place *p, int n,
                    int max_batch, double latency_s, unsigned long seed)
{
    double *at_s = heap_array(3 * RECENT_MAX, sizeof *at_s), total = 0, below = 0;
    double *chance = at_s + RECENT_MAX, *part = chance + RECENT_MAX, late = 0;
    int n_all = arrivals_recent(a, now_s - GUARD_RECENT_S, now_s, at_s, RECENT_MAX);
    struct rng rng;

    if (n_all > RECENT_MAX)
        n_all = RECENT_MAX;
    rng_init(&rng, seed, "serve/guard");
    for (int i = 0; i < n_all; i++)
        chance[i] = rng_uniform(&rng);
    for (int k = 0; k < n; k++)
        total += p[k].weight;
    for (int k = 0; k < n && total > 0; k++) {
        const double to = k + 1 < n ? below + p[k].weight / total : 1;
        const int n_here = split(at_s, chance, n_all, below, to, part);
        const struct replay r = { part, n_here, GUARD_RECENT_S };

        late += batching_late(&r, p[k].t0_s, p[k].a_s, max_batch, latency_s, r.n);
        below = to;
    }
    if (total <= 0)
        late = n_all;
    free(at_s);
    return guard_minute_is_late(n_all, late);
}
