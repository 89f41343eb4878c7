/* demand.h - the rate to provide for: a forecast from what arrived, and a guard against bursts.
 *
 * One per service, plain data, fed with counts as they are told. The forecast is for the time that
 * a start takes and the hold after it; the guard is for what no forecast sees.
 */
#ifndef SERVE_DEMAND_H
#define SERVE_DEMAND_H

#include <stdbool.h>

struct arrivals;

enum { DEMAND_SLOT_S = 300, DEMAND_SLOTS = 2016 };    // five minutes; a week of them

struct demand {
    long newest;              // slot since the epoch; 0: nothing seen
    long first;               // the first slot that was seen whole
    float n[DEMAND_SLOTS];    // arrivals, by slot modulo DEMAND_SLOTS
};

/* 'n' arrivals from 'from_s' to 'to_s'. Bytes of the struct may be kept and put back. */
void demand_add(struct demand *d, double from_s, double to_s, double n);

/* The rate to provide from now on for the next 'horizon_s' (a start, and how long it is held): 1.3
 * times the busiest slot of the last two hours, or of 'horizon_s' where that is longer; 'fallback'
 * until a slot was seen.
 */
double demand_rate(const struct demand *d, double now_s, double horizon_s, double fallback);

/* Mean rate of the last whole slot; NaN: none. */
double demand_now(const struct demand *d, double now_s);

/* A replica as the guard replays it. */
struct guard_place {
    double t0_s, a_s;
    double weight;
};

/* What a minute of all replicas was; whether it had more than 1 % late (and more than one). */
bool guard_minute_is_late(double n_requests, double n_late);

#define GUARD_RECENT_S 300.0    // what the guard replays

/* Whether the last five minutes, split at random by weight ('seed') onto these places, would have
 * had more than 1 % late.
 */
bool guard_is_short(const struct arrivals *a, double now_s, const struct guard_place *p, int n,
                    int max_batch, double latency_s, unsigned long seed);

/* The rate to provide for at once where the guard speaks: a third more than is held, and no less
 * than the last minutes'.
 */
double guard_rate(double held, double recent);

#endif
