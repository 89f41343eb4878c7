/* job.h - one request to run a workload, its promise, and where it stands.
 *
 * Made from a submission (an event); changed only by events (state.h). Read by
 * every room to the right, through the snapshot.
 */
#ifndef CATALOG_CLUSTER_JOB_H
#define CATALOG_CLUSTER_JOB_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* The life of a job. Each arrow is an event, performed by state_apply.
 *
 *             submitted            started               finished
 *    (nothing) -------> WAITING -------------> RUNNING ------------> FINISHED
 *                        ^  ^ |   <----------   |   | \
 *               released |  | |     stopped     '---'  \   failed
 *                        |  | | (preempted, lost its    '----------> FAILED
 *                   held v  | |  node, did not fit)
 *                       HELD  |               started again on other GPUs: a move
 *                         \   |
 *                          '--'------- cancelled (from RUNNING too) --> CANCELLED
 */
enum job_state {
    JOB_WAITING,
    JOB_HELD,
    JOB_RUNNING,
    JOB_FINISHED,
    JOB_FAILED,
    JOB_CANCELLED,
};

/* The reason of a stop that is half of a move: where that takes a while, the job waits meanwhile.
 */
#define JOB_MOVING "is being moved"

/* "waiting", "running", ... and back; -1 for an unknown word. */
const char *job_state_name(enum job_state s);
int job_state_parse(const char *name);

enum job_kind {
    JOB_TRAINING,     // steps to do
    JOB_INFERENCE,    // a rate to hold for a time
    JOB_SERVICE,      // a rate to serve in time, until it is ended: by its replicas
    JOB_REPLICA,      // one of these
};

/* What a service promises of each request, and how its replicas are to be run. A service itself
 * runs nowhere: it waits, as far as the life above goes, until it is cancelled. Its replicas are
 * jobs on one GPU each, which the cycle submits and cancels (cycle/services.h):
 *
 *     submitted           started            ready              draining         cancelled
 *    ---------> WAITING ---------> (loads) --------> (serves) ----------> (ends) ---------->
 *
 * and nothing but a promise to the service brings back one that has ended.
 */
struct service_terms {
    double latency_s;         // 99 of 100 requests are answered within this; 0: see below
    double ttft_s, tpot_s;    // of language models: to the first token, and for each further one
    int max_batch;            // requests that are answered at once; 0: SERVICE_BATCH
    double load_s;            // from a replica's start until it is ready; 0: nobody said
    bool is_unmoved;          // no replica is moved to save energy
    const char *probe;        // path that answers 200 when a replica is ready; NULL: it reports
    const char *metrics;      // path of its Prometheus metrics; NULL: it reports
};

/* Requests within the promised latency, of all: judged by the hour. */
#define SERVICE_LATE_MOST 0.01
#define SERVICE_BATCH 32
#define SERVICE_LOAD_S 120.0    // until one has been seen to load
#define SERVICE_GPUS_MOST 64    // replicas at once

/* What was asked; never changes after submission. */
struct job_spec {
    const char *name;    // the user's word for it, unique among live jobs
    const char *owner;
    enum job_kind kind;
    int workload;    // index in the catalog
    double submit_s;
    double steps;              // training: how many
    double rate;               // inference: steps/s asked of it; a service: requests/s, at first
    double duration_s;         // inference: for how long, from its first start
    double min_throughput;     // the promise, steps/s; 0: none
    double deadline_s;         // the promise as a time; NaN: none
    int n_gpus;                // the gang: at least this many, all at once
    int max_gpus;              // and at most this many
    int priority;              // higher goes first
    double urgency;            // its time is worth so many times the usual; 0: nobody said, 1
    bool is_exclusive;         // shares its GPU with nobody
    int n_nodes;               // the gang stands on so many nodes, in equal parts; 0: wherever
    uint64_t allowed_types;    // bit per catalog type; 0: any
    bool is_guess;             // 'steps' is only a guess: nobody said how many
    const char *command;       // what to run, a JSON object (docs/formats/command.md), made compact
                               // by the ledger; NULL: nothing
    const char *key;           // of the submission, so that asking twice submits once; NULL: none
    const char *digest;        // of what was asked with that key
    const struct service_terms *terms;    // of a service and its replicas; NULL: it is neither
    int service;                          // a replica: of which
    int replica;                          // and its number there, from 0
    int port;                             // that it shall serve at
    int gpu;                              // that it is submitted for
};

struct job {
    struct job_spec spec;
    enum job_state state;
    int id;               // index in the state: also the order of submission
    double steps_done;    // as last heard
    double heard_s;       // when that was
    double pace;          // steps/s between the last two reports of this placement; 0: unknown
    double changed_s;     // of the last change of state
    double started_s;     // first start; NaN before
    int n_held;           // GPUs it holds now
    int *gpus;            // (spec.max_gpus) which ones
    int limit_w;          // power limit of its placement; 0: default
    int n_moves;
    double ready_s;                    // a replica: it serves since; NaN: not yet
    double drain_s;                    // and takes no more requests since; NaN: it does
    const char *reason;                // of its last stop or its failure; NULL: none was told
    int next_waiting, prev_waiting;    // the queue's links, -1 at its ends
};

/* Has it ended for good? */
static inline bool job_is_over(const struct job *j)
{
    return j->state == JOB_FINISHED || j->state == JOB_FAILED || j->state == JOB_CANCELLED;
}

/* Neither over nor held? */
static inline bool job_may_run(const struct job *j)
{
    return j->state == JOB_WAITING || j->state == JOB_RUNNING;
}

/* Does a plan look for a place for it? Replicas have theirs from the beginning. */
static inline bool job_is_planned(const struct job *j)
{
    return j->spec.kind != JOB_REPLICA;
}

/* Does a replica take requests? */
static inline bool job_serves_now(const struct job *j)
{
    return j->state == JOB_RUNNING && !isnan(j->ready_s) && isnan(j->drain_s);
}

/* The longest that a request may take, of whatever it is promised. */
static inline double service_latency_s(const struct service_terms *t)
{
    return t->latency_s > 0 ? t->latency_s : t->ttft_s;
}

static inline int service_batch(const struct service_terms *t)
{
    return t->max_batch > 0 ? t->max_batch : SERVICE_BATCH;
}

/* Steps still to do at 'now_s', for inference to be served: as last heard, and on from there
 * at the pace it had. Where the number of steps is a guess, a job that is past half of it is
 * taken to be half done, until it has finished.
 */
double job_remaining(const struct job *j, double now_s);

/* Seconds until an inference job has served its time; NaN for training. */
double job_time_left_s(const struct job *j, double now_s);

/* Steps/s that keep the promise from now on: the minimum throughput, the rate, or
 * what the deadline leaves, whichever is more. 0: no promise. A deadline that has
 * passed asks for nothing more than the other two.
 */
double job_need(const struct job *j, double now_s);

/* Steps/s asked of a server; 0 for training, which goes as fast as it can. */
static inline double job_serves(const struct job_spec *s)
{
    return s->kind == JOB_TRAINING ? 0 : s->rate;
}

/* How many times a usual job's time its own is worth, beside what its priority says. */
#define URGENCY_LEAST 0.01
#define URGENCY_MOST 100.0

static inline double job_urgency(const struct job_spec *s)
{
    return s->urgency > 0 ? s->urgency : 1;
}

/* May the job run on this GPU type? Types beyond the 64th cannot be named, only be any. */
static inline bool job_allows(const struct job_spec *s, int type)
{
    return !s->allowed_types || (type < 64 && (s->allowed_types >> type & 1));
}

/* Is this one of them? */
static inline bool gpus_have(const int *gpus, int n, int gpu)
{
    for (int i = 0; i < n; i++)
        if (gpus[i] == gpu)
            return true;
    return false;
}

/* Is a job on 'a' where 'b' says it is, or shall be? All who compare placements do it by this. In
 * whatever order: plans name a gang's GPUs by rising number, an engine as it pleases, and no GPU of
 * a gang is its first. Neither list has a GPU twice.
 */
static inline bool gpus_same(const int *a, int n_a, const int *b, int n_b)
{
    if (n_a != n_b)
        return false;
    for (int i = 0; i < n_a; i++)
        if (a[i] != b[i] && !gpus_have(b, n_b, a[i]))
            return false;
    return true;
}

/* 0 when a submission makes sense; -EINVAL names what does not, and the cure. */
struct err;
int job_spec_check(const struct job_spec *s, struct err *e);

#endif
