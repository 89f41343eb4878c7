/* state.h - what exists right now: nodes, GPUs, jobs. The fold over all events.
 *
 * One thread owns it. Changed by state_apply and nothing else; frozen views for
 * the rooms to the right are snapshots (snapshot.h).
 */
#ifndef CATALOG_CLUSTER_STATE_H
#define CATALOG_CLUSTER_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "catalog/cluster/event.h"

struct err;

#define THETA_MAX 4    // jobs that may share a GPU at the very most; the default is 2

#define GPU_JOBS_MAX \
    (2 * THETA_MAX)    // while jobs change places: one may be there before one leaves

struct node {
    const char *name;
    enum node_state state;
    int first_gpu, n_gpus;
};

struct gpu {
    int node;
    int slot;    // index on its node
    int type;    // index in the catalog
    int n_jobs;
    int jobs[GPU_JOBS_MAX];    // who runs on it
};

struct undo_step;

struct state {
    struct arena arena;    // names, specs
    struct node *nodes;
    int n_nodes, cap_nodes;
    struct gpu *gpus;    // a node's GPUs stand together
    int n_gpus, cap_gpus;
    struct job **jobs;    // by id; finished ones stay
    int n_jobs, cap_jobs;
    int *running;    // (n_running) ids in rising order, so that a replay gives the same view
    int n_running;
    int first_waiting, last_waiting;    // the queue: by priority, then id; no services, no replicas
    int n_waiting;
    int *services;    // (n_services) ids in rising order, of those too that have ended
    int n_services, cap_services;
    int n_ended;    // finished, failed or cancelled
    struct map node_by_name, job_by_name, job_by_key;
    uint64_t version;    // changes with every event that calls for a decision: all but progress
    uint64_t node_version;    // changes when nodes are added or change

    bool is_marked;               // see state_mark
    struct undo_step *changes;    // (n_changes) since then
    int n_changes, cap_changes;
    struct arena past;    // what they need
};

void state_init(struct state *s);
void state_release(struct state *s);

/* Apply one event. -EINVAL (an arrow that job.h does not draw, an unknown job or node)
 * leaves the state as it was. EVENT_JOB_SUBMITTED gives the new job id s->n_jobs - 1.
 */
int state_apply(struct state *s, const struct event *ev, struct err *e);

/* Would it? 0, or why not. */
int state_check(const struct state *s, const struct event *ev, struct err *e);

/* From a mark on every event is remembered, until state_keep forgets them or state_undo
 * takes all of them back. Whoever was there before the mark stays where it is in memory; the
 * versions go on. (What an undone submission took of the arena is not given back.)
 */
void state_mark(struct state *s);
void state_keep(struct state *s);
void state_undo(struct state *s);

/* Does job.h draw an arrow for this event from where the job stands? False for a job that
 * does not exist; a start may still be refused for its GPUs.
 */
bool state_expects(const struct state *s, enum event_kind kind, int job);

/* Add a job as it was when its row was written ('as' with its id, GPUs and counters), and when
 * all are there, line up those that wait. -EINVAL: it does not fit what is there.
 */
int state_restore_job(struct state *s, const struct job *as, struct err *e);
void state_line_up(struct state *s);

int state_find_node(const struct state *s, const char *name);    // -1: none
int state_find_job(const struct state *s, const char *name);     // -1: none
int state_find_key(const struct state *s, const char *key);      // who came with it; -1: none
int state_find_gpu(const struct state *s, const char *node, int slot);

/* Stop the process when GPUs and jobs disagree about each other. For tests, and after
 * a replay.
 */
void state_assert(const struct state *s);

#endif
