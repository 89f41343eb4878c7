/* event.h - one change of state, as the journal keeps it.
 *
 * Made by whoever learned of the change (monitor, cli, daemon), applied by
 * state_apply, kept by the ledger. The state is nothing but the fold over these.
 */
#ifndef CATALOG_CLUSTER_EVENT_H
#define CATALOG_CLUSTER_EVENT_H

#include <stdbool.h>

#include "catalog/cluster/job.h"

struct arena;
struct catalog;
struct err;
struct row_event;
struct state;

enum event_kind {
    EVENT_NODE_ADDED,        // node, gpu types in slot order
    EVENT_NODE_CHANGED,      // node goes up, down or is drained
    EVENT_JOB_SUBMITTED,     // spec
    EVENT_JOB_STARTED,       // job, gpus, limit, steps done
    EVENT_JOB_PROGRESSED,    // job, steps done
    EVENT_JOB_STOPPED,       // job, steps done, reason: back to waiting
    EVENT_JOB_FINISHED,      // job, steps done
    EVENT_JOB_FAILED,        // job, reason
    EVENT_JOB_CANCELLED,
    EVENT_JOB_HELD,
    EVENT_JOB_RELEASED,
    EVENT_SERVICE_SCALED,      // job: rate, max_gpus
    EVENT_REPLICA_READY,       // job: takes requests
    EVENT_REPLICA_DRAINING,    // job, reason: takes no more
    EVENT_KINDS,
};

enum node_state {
    NODE_UP,
    NODE_DRAINED,    // what runs goes on, nothing new starts
    NODE_DOWN,
};

/* Only the fields named beside the kind above are read. */
struct event {
    enum event_kind kind;
    double time_s;
    int job;    // index in the state
    const struct job_spec *spec;
    const int *gpus;    // (n_gpus) indices in the state
    int n_gpus;
    int limit_w;
    double steps_done;
    double rate;     // of EVENT_SERVICE_SCALED; 0: as it was
    int max_gpus;    // likewise
    const char *reason;
    const char *node;    // name
    enum node_state node_state;
    const int *gpu_types;    // (n_gpus) catalog types, for EVENT_NODE_ADDED
};

/* "job_started", ... and back; -1 for an unknown word. */
const char *event_kind_name(enum event_kind k);
int event_kind_parse(const char *name);

/* The body of the journal's row: a JSON object, names instead of indices, in 'a'.
 * 's' and 'c' give the names. NULL: a text is not UTF-8, a number not finite, or
 * a command not a JSON object.
 */
const char *event_encode(struct arena *a, const struct event *ev, const struct state *s,
                         const struct catalog *c);

/* A command of a job, a JSON object as text, without what means nothing: as it looks when it
 * has been through a journal. In 'a'; NULL: not an object, or a key twice.
 */
const char *event_compact(struct arena *a, const char *command);

/* The reverse. -EINVAL names what is wrong with the row. Workloads and types must
 * be in the catalog already.
 */
int event_decode(struct arena *a, const struct row_event *row, const struct state *s,
                 const struct catalog *c, struct event *out, struct err *e);

#endif
