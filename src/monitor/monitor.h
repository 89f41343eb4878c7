/* monitor.h - what the sensor saw, told as events and measurements.
 *
 * Flows in: observations through the sensor door. Flows out: an event for the ledger, and a
 * measurement for 'refine' where the conditions were steady long enough to mean something.
 */
#ifndef MONITOR_MONITOR_H
#define MONITOR_MONITOR_H

#include <stdbool.h>

#include "catalog/catalog.h"
#include "catalog/cluster/event.h"

struct observation;
struct served;
struct state;

struct finding {
    bool has_event;
    struct event event;    // borrows from the observation
    bool has_measurement;
    struct measurement measurement;
    bool has_profile;    // of the measurement's workload
    struct solo_profile profile;
    bool has_served;    // by the replica event.job; an event where it is ready at last
    const struct served *served;
};

/* Steady for less than this and a window says more about its edges than about the job. */
#define MONITOR_WINDOW_MIN_S 10.0

/* What one observation means, given the state as it is before it. News that comes too late
 * (of a job that was cancelled meanwhile, say) is no event.
 */
void monitor_read(const struct observation *seen, const struct state *s, struct finding *out);

#endif
