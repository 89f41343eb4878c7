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
 * - A replica of a service loads for load_s and then takes requests (service.h), in batches whose
 *   time is serving.h's: longer beside neighbours, who feel it as much as it is busy; under a power
 *   limit 'a' grows as clocks fall, as prompts do, and t0, which waits for memory and launches,
 *   does not. It draws
 *   as one that steps while it is busy, and nothing meanwhile. SERVED_EVERY_S and at changes
 *   OBS_SERVED tells what it did. Cancelled it drains: no more requests, and it ends when it has
 *   answered those it has. Stopped or moved, these are lost.
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
struct llm_request;
struct truth;
struct world;

#define UNFIT_S 10    // from the first step to "out of memory"; a guess, so that it costs something
#define UNFIT_MAX 32    // a policy that never learns must come to an end

#define SERVED_EVERY_S 10.0    // a replica tells at least that often what it served

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
    bool is_replica;    // of a service: it has no steps, and one GPU
    int service;        // which
    int replica;        // its number there
    double load_s;      // from its start until it is ready
};

/* Requests that come to a service, and what it promises of them. */
struct world_service_spec {
    int workload;        // the truth's
    double latency_s;    // later than this is late; of a language model: a first token
    double tpot_s;       // and further ones that took longer than this each; 0: it is no such model
    int max_batch;
    uint64_t seed;    // of routes and tails; arrivals have one of their own
    void *traffic;    // whose; outlives the world
    int (*next)(void *traffic, struct llm_request *out, int n);    // the next ones, at most 'n', in
                                                                   // order: how many; 0: no more
};

/* A service is there from now on, and has an id as jobs have. It never runs: its replicas do. */
int world_add_service(struct world *w, const struct world_service_spec *ask);

/* The weights that its balancer goes by from now on, of its replicas 'jobs'; others have none. */
void world_set_weights(struct world *w, int service, const int *jobs, const double *weights, int n);

/* Its requests come no more; so they do when it is cancelled. */
void world_end_service(struct world *w, int service);

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
    bool is_inference;
    bool is_serving;    // it is a service or a replica
};
void world_job_outcome(const struct world *w, int job, struct world_outcome *out);

#define HOUR_LATE_MOST 0.01    // of an hour's requests, in one that is kept

/* How a service has fared so far. A request is answered, refused (nobody was ready in time, or the
 * queue was full) or lost with its replica; refused and lost ones are late. An hour is kept in
 * which at most one in a hundred is. An interruption: a ready replica went and requests were lost,
 * or a request found nobody where somebody had been.
 */
struct world_service_figures {
    int n_hours, n_kept;
    double n_requests, n_late, n_refused, n_lost;
    double n_arrived;    // those that still wait among them
    double p99_s;        // of all; NaN: there was none
    double lived_s;      // since it came
    int n_starts;        // of replicas
    int n_interruptions;
};
void world_service_now(struct world *w, int service, struct world_service_figures *out);

/* All services together: their hours, their requests; p99_s of all requests. */
void world_services_now(struct world *w, struct world_service_figures *out);

#endif
