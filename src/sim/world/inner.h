/* inner.h - the simulated world's state, for world.c, which changes it, and figures.c,
 * which reads it.
 */
#ifndef SIM_WORLD_INNER_H
#define SIM_WORLD_INNER_H

#include "base/arena.h"
#include "base/heap.h"
#include "base/rng.h"
#include "catalog/cluster/state.h"
#include "sim/world/world.h"

/* What the heap holds. A job has at most one event that is not stale: its stamp changes
 * whenever its conditions do. So has a GPU.
 */
enum world_event {
    WORLD_READY,     // a started job makes its first step
    WORLD_UNFIT,     // or runs out of memory
    WORLD_REPORT,    // unchanged conditions have lasted long enough to tell
    WORLD_FINISH,
    WORLD_SLEEP,    // an empty GPU
};

/*           start             ready              finish
 *   ABSENT --------> STARTING --------> RUNNING ---------> ENDED
 *     ^  ^              |  \               |                 ^
 *     |  '-- stop ------'   '-> CHOKING    |                 |
 *     |                         |  |  '----|--- UNFIT_MAX ---'
 *     '------- unfit -----------'  '-------'  (move: back to STARTING)
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

    int *touched;    // jobs whose conditions are changing
    int n_touched, cap_touched;
    uint32_t mark;
};

#endif
