/* snapshot.h - a frozen view of the state for one cycle.
 *
 * Made by: snapshot_take, from the state. Read by: every room to the right. Never
 * changed after it is made; lives in the cycle arena. Jobs here are only those that
 * matter for a decision: running, services, and the front of the queue.
 */
#ifndef CATALOG_CLUSTER_SNAPSHOT_H
#define CATALOG_CLUSTER_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "catalog/cluster/state.h"

struct arena;
struct catalog;
struct engine_rules;

struct capacity;

/* What is known of a service when a snapshot is taken. */
struct service_view {
    double demand;    // requests/s that it shall be ready for
    double coming;    // requests/s of replicas that are submitted and do not run yet
    int n_coming;
    int max_gpus;                       // replicas that it may have
    double load_s;                      // from a replica's start until it is ready
    double hold_s;                      // so long it stays then, at the least
    bool may_move;                      // a replica may be put elsewhere to save energy
    const struct capacity *capacity;    // requests/s of a place (serve/capacity.h)
    double z;    // what is believed of step times is taken so many standard deviations longer
    double busy_most;    // instead: a place holds what keeps it busy for this part; 0: the table
};

struct snapshot_gpu {
    int type, node;
    bool may_start;    // its node is up, and nobody is on the way out or in
    double wake_s;     // it sleeps: who comes begins so much later; 0: it is awake
    int n_jobs;
    int jobs[THETA_MAX];    // indices into snapshot.jobs
};

struct snapshot_job {
    int id;    // in the state
    const struct job_spec *spec;
    int workload;
    double need;           // steps/s that keep the promise; 0: none
    double remaining;      // steps
    double time_left_s;    // inference: until its time is served; NaN for training
    bool is_running;
    int n_held;
    const int *gpus;    // (n_held) indices into snapshot.gpus
    int limit_w;
    double waited_s;    // since it began to wait; 0 when running
    double ran_s;       // since its present start; 0 when waiting

    /* Of services and their replicas; NULL otherwise. A service stands for those of its replicas
     * that a plan may let go or put elsewhere: it "runs" on their GPUs. Each of the others is a job
     * that stays where it is.
     */
    const struct service_view *service;
    bool is_leaving;        // a replica that takes no more requests
    const int *replicas;    // of a service: (n_held) ids of these
};

struct snapshot {
    double now_s;
    const struct catalog *catalog;
    int theta;    // jobs that may share a GPU
    int n_gpus;
    const struct snapshot_gpu *gpus;
    int n_jobs;    // running first, then waiting in the order of the queue
    int n_running;
    const struct snapshot_job *jobs;
    int n_behind;    // waiting jobs that did not get in this time
    const struct node *nodes;
    int n_nodes;
    uint64_t settings;                    // which were in force: struct cycle's
    const struct engine_rules *engine;    // of its jobs, in order; NULL: every place can be had
};

/* Waiting jobs handed to the solver per cycle; the rest wait their turn. A cluster starts
 * at most as many jobs at once as it has free places; 1,024 is more than any cycle of the
 * largest bench starts (100,000 jobs on 1,000 GPUs), and keeps a cycle with an endless queue as
 * quick as one without.
 */
#define SNAPSHOT_WAITING_MAX 1024

/* What the state does not know. Zeroed: nothing of it is so. */
struct snapshot_marks {
    const bool *is_parked;    // (n_parked) by job id: waits, and cannot run on this cluster as it
                              // is, so it does not take the place of those behind it
    int n_parked;
    const bool *is_busy;     // by GPU: nothing may be started there now; NULL: none is
    const double *wake_s;    // by GPU: how long it takes to wake; 0: it is awake; NULL: all are
    const struct service_view *services;    // as the state's services; NULL: nobody plans for these
};

/* Does the job stand where the snapshot saw it? */
bool snapshot_is_so(const struct snapshot_job *seen, const struct state *now);

void snapshot_take(struct arena *a, const struct state *s, const struct catalog *c, double now_s,
                   int theta, struct snapshot_marks marks, struct snapshot *out);

#endif
