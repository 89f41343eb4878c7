/* sensor.h - the fourth door: what really happened.
 *
 * Sides: the simulator's world (sim), job reports, NVML, DCGM. A sensor is polled and
 * hands over what it has seen since, oldest first, each thing once.
 */
#ifndef MONITOR_SENSOR_H
#define MONITOR_SENSOR_H

#include <stdbool.h>

#include "act/gpu/devices.h"
#include "serve/arrivals.h"

enum observation_kind {
    OBS_STARTED,      // job runs on gpus: a start or a move came true
    OBS_STOPPED,      // job was stopped and has steps_done behind it; it waits again
    OBS_FINISHED,     // job did what it had to
    OBS_FAILED,       // job ended by itself, badly; reason
    OBS_UNFIT,        // job ran out of memory beside the one neighbour told, or alone; it waits
    OBS_INCAPABLE,    // its program was not built for GPUs of this type; it waits for others
    OBS_WINDOW,       // job ran under unchanged conditions from from_s to time_s; where these are
                      // equal, it is so far, and how fast it went is not known
    OBS_SERVED,       // a replica says what it has served
    OBS_NODE_UP,
    OBS_NODE_DOWN,       // OBS_STOPPED of each job that ran there comes with it
    OBS_NODE_DRAINED,    // what runs there goes on, nothing new starts: by a wish from outside
};

#define OBS_NEIGHBOURS_MAX 3

/* What a replica did since it was last told of. */
struct served {
    bool is_ready;          // takes requests
    double from_s, to_s;    // the time it speaks of
    double bin_s;           // width of the bins; 0: none
    int n_bins;
    const unsigned
        *counts;    // (n_bins) arrivals, from from_s on. Where nothing was lost, they go on
                    // where the last ones ended, within some milliseconds
    double n_requests, n_late, n_batches, busy_s;    // since the last one; NaN: not said
    double n_queued;                                 // now; NaN: not said
    bool has_lengths;                                // of a language model, where it says
    struct lengths lengths;                          // tokens of requests, some of them or all
    bool is_false;       // it contradicts itself (late > requests, counts fall, more than fit):
                         // nothing of it is counted
    bool is_flooding;    // it says so much that it is not heard for a while
};

struct observation {
    enum observation_kind kind;
    double time_s;
    int job;    // id in the state
    int n_gpus;
    const int *gpus;    // borrowed until the next poll
    int limit_w;
    double steps_done;    // in all, as far as known

    /* OBS_WINDOW (and OBS_UNFIT: neighbours only). Pauses are left out: the window is as long as
     * what counts of it.
     */
    double from_s;
    double steps;             // done in the window
    double watts;             // mean draw of its first GPU in the window; NaN: not seen
    struct device_use use;    // of its first GPU, mean of the readings in the window
    int n_uses;               // how many these are; 0: 'use' says nothing
    double noise;    // sd of ln (steps / length) as the window's parts have it; 0 or NaN: not known
    int n_neighbours;
    int neighbours[OBS_NEIGHBOURS_MAX];    // job ids that shared its GPU throughout

    const struct served *served;    // OBS_SERVED; borrowed until another thing is safe

    const char *reason;
    int node;           // OBS_NODE_*: index in the state
    bool ends_drain;    // OBS_NODE_UP: also of a drained node, since whoever drained it is done
};

struct sensor {
    void *self;

    /* The next observation into '*out': 1, or 0 when there is no more. It stays the next one
     * until 'done' says that what it tells is safe.
     */
    int (*next)(void *self, struct observation *out);
    void (*done)(void *self);
};

#endif
