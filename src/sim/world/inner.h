/* inner.h - the simulated world's state, for world.c and replicas.c, which change it, and
 * figures.c, which reads it.
 */
#ifndef SIM_WORLD_INNER_H
#define SIM_WORLD_INNER_H

#include "base/arena.h"
#include "base/heap.h"
#include "base/rng.h"
#include "catalog/cluster/state.h"
#include "sim/world/service.h"
#include "sim/world/world.h"

/* What the heap holds. A job has at most one event that is not stale: its stamp changes
 * whenever its conditions do. So has a GPU.
 */
enum world_event {
    WORLD_READY,     // a started job makes its first step
    WORLD_UNFIT,     // or runs out of memory
    WORLD_REPORT,    // unchanged conditions have lasted long enough to tell
    WORLD_FINISH,
    WORLD_SLEEP,     // an empty GPU
    WORLD_SERVED,    // replicas tell what they did
    WORLD_DRAIN,     // one of them may be done
};

/*           start             ready              finish
 *   ABSENT --------> STARTING --------> RUNNING ---------> ENDED
 *     ^  ^              |  \               |                 ^
 *     |  '-- stop ------'   '-> CHOKING    |                 |
 *     |                         |  |  '----|--- UNFIT_MAX ---'
 *     '------- unfit -----------'  '-------'  (move: back to STARTING)
 *
 * A replica that runs is ready; cancelled, it goes on until it has answered what it has.
 */
enum phase { ABSENT, STARTING, CHOKING, RUNNING, ENDED };

struct world_job {
    struct world_job_spec ask;
    double done;          // steps, up to since_s
    double speed;         // steps/s since then
    double capacity;      // what it could do where it is; more than 'speed' for a server
    double base_speed;    // the same with nobody beside it and no power limit
    double share;         // of that which it does, but for a limit
    double since_s;
    double window_s;        // conditions are as they are since then
    double window_j;        // its first GPU had used this much then
    double report_gap_s;    // to its next report
    double kept_s;
    double submit_s, first_s, end_s;
    int *gpus;    // (ask.max_gpus)
    int n_gpus;
    int limit_w;
    int n_unfit;
    int choked_by;    // the neighbour it did not fit beside; -1: not even alone
    uint32_t stamp, mark;
    enum phase phase;
    bool has_failed;

    int served_by;    // index in 'services' of the service that it is, or is a replica of; -1
    bool is_service, is_draining;
    double busy;           // a replica: share of the time since services were last played
    double felt_now;       // the same of the last minutes
    double felt;           // and as its neighbours' conditions have it
    double busy_seen;      // of its server's seconds those that were booked
    double done_before;    // requests before it was last ready
};

struct world_gpu {
    double watts, energy_j, since_s;    // energy up to since_s, watts from there on
    double awake_s;                     // ready for work from here on
    double held_s, held_since_s;        // by somebody: up to held_since_s
    const struct gpu_type *figures;
    int type, node;
    int n_jobs;
    int jobs[THETA_MAX];
    uint32_t stamp;
    bool is_asleep;
};

struct world {
    const struct truth *truth;
    const struct cluster_settings *settings;
    bool is_always_on;
    double now_s;
    struct world_gpu *gpus;
    int n_gpus;
    struct world_job *jobs;
    int cap_jobs;
    struct world_counts counts;
    struct arena arena;    // lists of GPUs
    struct heap heap;
    struct rng noise, watts_noise;

    double watts, energy_j;    // of all GPUs, integrated on its own
    double watts_since_s;
    int n_held;    // GPUs with somebody on them
    double held_s, held_since_s;
    double work_s;    // done by all jobs, each up to its since_s

    /* What the sensor has to tell; lists of GPUs by their offset in 'told_gpus'. */
    struct observation *news;
    int n_news, cap_news, next_news;
    int *told_gpus;
    int n_told, cap_told;

    struct world_service *services;
    int n_services, cap_services;
    double served_s;    // they were played until here
    bool is_played;     // at set times: WORLD_SERVED is in the heap
    struct told {       // of OBS_SERVED, in the order of the news
        struct served served;
        int counts_at;    // offset in told_counts
    } * told;
    int n_told_served, cap_told_served, next_told;
    unsigned *told_counts;
    int n_told_counts, cap_told_counts;

    int *touched;    // jobs whose conditions are changing
    int n_touched, cap_touched;
    uint32_t mark;
};

/* ---- of world.c, for replicas.c ---- */

static inline bool job_steps(const struct world_job *j)
{
    return j->phase == RUNNING;
}

static inline bool is_replica(const struct world_job *j)
{
    return j->served_by >= 0 && !j->is_service;
}

struct observation *world_tell(struct world *w, enum observation_kind kind, int job);
void world_change_begin(struct world *w, const int *gpus, int n);
void world_change_end(struct world *w, const int *gpus, int n);
void world_end_job(struct world *w, int job, bool has_failed);

/* What a GPU drew on average since its watts were last said: as much more or less than that. */
void world_correct_watts(struct world *w, struct world_gpu *g, double since_s);

/* ---- of replicas.c, for world.c ---- */

/* Play services until now, and book what their GPUs drew meanwhile. */
void replicas_play(struct world *w);

/* How much job 'j' slows a neighbour down, where it would by 'r' if it were always busy. */
double replica_slows(const struct world_job *j, double r);

/* Its conditions have changed; its GPU's clocks are at 'pace' of their speed. */
void replica_set_figures(struct world *w, struct world_job *j, double pace);

void replica_ready(struct world *w, int job);
void replica_leave(struct world *w, int job);    // what it has is lost
void replica_drain(struct world *w, int job);
void on_served(struct world *w, int index);
void on_drain(struct world *w, int job);
void replicas_release(struct world *w);

#endif
