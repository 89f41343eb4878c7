/* job.h - one request to run a workload, its promise, and where it stands.
 *
 * Made from a submission (an event); changed only by events (state.h). Read by
 * every room to the right, through the snapshot.
 */
#ifndef CATALOG_CLUSTER_JOB_H
#define CATALOG_CLUSTER_JOB_H

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
};

/* What was asked; never changes after submission. */
struct job_spec {
    const char *name;    // the user's word for it, unique among live jobs
    const char *owner;
    enum job_kind kind;
    int workload;    // index in the catalog
    double submit_s;
    double steps;              // training: how many
    double rate;               // inference: steps/s asked of it
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
    return s->kind == JOB_INFERENCE ? s->rate : 0;
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
