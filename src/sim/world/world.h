/* world.h - the simulated side of the executor and sensor doors: GPUs that run jobs at their true
 * speeds and draw their true watts.
 *
 * Made by sim_create; owned by the simulator; knows nothing of policies and beliefs. Time moves
 * only by world_advance; orders take effect at the present time.
 *
 * What is simulated, exactly: - A start holds its GPUs at once (OBS_STARTED) and makes its first
 * step after restart_s,
 *   after wake_s more when a GPU was asleep. A move, and the restart of a job that was
 *   stopped, lose move_s too (waking goes on meanwhile). A job that makes no step draws
 *   nothing above the GPU's idle watts and slows nobody down.
 * - A job steps at its true speed alone times the true slowdown beside each neighbour; a
 *   gang at its gang speed times the worst of its GPUs' slowdowns.
 * - A server serves the lesser of its rate and its speed, from its first start until
 *   duration_s later. Should that end pass while it is stopped, it ends at its next start.
 * - A GPU draws sleep watts when asleep, idle watts when nobody steps on it, else what the
 *   settings' model of estimate/prior/power.h says of the true watts; a server's part is scaled by
 *   rate over speed. Where a model's clocks fall, all go slower. Under a power limit (the least
 *   of those that step there) it draws less and all go slower, as estimate/prior/limits.h has it,
 *   with the truth's differences from the law.
 * - What does not fit is found out when it allocates: UNFIT_S after its start OBS_UNFIT
 *   tells, and it waits again. After UNFIT_MAX of those the job fails.
 */
#ifndef SIM_WORLD_WORLD_H
#define SIM_WORLD_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "act/executor.h"
#include "monitor/sensor.h"

struct cluster_settings;
struct gpu_type;
struct truth;
struct world;

#define UNFIT_S 10    // from the first step to "out of memory"; a guess, so that it costs something
#define UNFIT_MAX 32    // a policy that never learns must come to an end

/* Conditions that lasted less are not worth a report at their end. */
#define WINDOW_LEAST_S 30

struct world_setup {
    const struct truth *truth;
    const struct cluster_settings *settings;
    int n_gpus;
    const int *types;                         // (n_gpus) the truth's
    const struct gpu_type *const *figures;    // (n_gpus) idle, sleep and cap watts; borrowed
    const int *nodes;                         // (n_gpus)
    uint64_t seed;
    bool is_always_on;    // empty GPUs idle and never fall asleep
};

struct world *world_create(const struct world_setup *s);
void world_destroy(struct world *w);

/* What a job asks of the world. */
struct world_job_spec {
    int workload;    // the truth's
    bool is_inference;
    double steps;               // training
    double rate, duration_s;    // inference
    double promise;             // steps/s; 0: none
    double reference_speed;     // steps/s alone on the reference GPU; counts its work
    int max_gpus;
};

/* A job arrives at 'now'; ids are given out from 0, as the state gives them. */
int world_submit(struct world *w, const struct world_job_spec *ask);

struct executor world_executor(struct world *w);
struct sensor world_sensor(struct world *w);

/* When something happens next; INFINITY: never, unless there are orders. */
double world_next_s(struct world *w);

/* Let everything up to and including 't_s' happen. */
void world_advance(struct world *w, double t_s);

double world_now_s(const struct world *w);
bool world_has_news(const struct world *w);    // for the sensor

struct world_counts {
    long n_events;    // that happened, and orders carried out
    int n_jobs, n_ended;
    int n_placed;    // jobs that hold GPUs
};
struct world_counts world_counts(const struct world *w);

/* One GPU: what it draws now, and since the beginning its joules and the seconds in which somebody
 * held it. Those of all are integrated on their own, so that each can check the other.
 */
struct world_gpu_figures {
    double watts, energy_j, held_s;
    bool is_asleep;
};
struct world_gpu_figures world_gpu_now(const struct world *w, int gpu);
double world_energy_j(const struct world *w);
double world_gpu_s(const struct world *w);    // held, as above

/* Work done by all jobs: the sum of their outcomes' work_s, in time linear in GPUs. */
double world_work_s(const struct world *w);
double world_watts(const struct world *w);

/* How a job has fared so far. */
struct world_outcome {
    double submit_s;
    double first_s;      // its first start; NaN: none yet
    double end_s;        // NaN: not yet
    bool is_finished;    // false with an end: it failed
    double steps_done;
    double speed;     // steps/s now
    double kept_s;    // time spent at or above its promise
    double work_s;    // steps done, in seconds alone on the reference GPU
    bool has_promise;
};
void world_job_outcome(const struct world *w, int job, struct world_outcome *out);

#endif
