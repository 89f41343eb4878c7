/* sim.h - a discrete-event simulator behind the four doors.
 *
 * The world runs jobs at their true speeds and draws their true watts; the cycle
 * decides with what it believes. Same inputs and seed, same bytes out, but for the
 * wall times of decisions.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "cycle/cycle.h"
#include "optimize/model/plan.h"
#include "sim/trace/trace.h"

struct catalog;
struct estimator;
struct cluster;
struct err;
struct model;
struct sim;
struct state;
struct store;
struct truth;
struct world;
struct world_outcome;

/* "gogh-oracle" is "gogh" that knows the truth: before the run it believes, of every workload of
 * the trace on every type, the true speed and watts alone, the true speed beside every other, and
 * what fits. Measurements, which have noise, do not change its mind. Without LEVER_SLEEP GPUs
 * of the world never fall asleep.
 */
struct sim_options {
    const struct cluster *cluster;
    const struct trace *trace;
    const struct truth *truth;
    const char *policy;       // "gogh", "gogh-oracle", "greedy", ...
    const char *reference;    // GPU type that work is counted in; NULL: p100 where it is known
    const struct catalog *known;    // what the policy may know before it starts; NULL: nothing
    struct store *journal;          // an empty store that keeps every event; NULL: nothing is kept
    uint64_t seed;
    double until_s;    // stop the clock here; 0: run until all jobs have ended
    enum estimator_kind estimator;
    const struct model *model;    // what the policy has learned elsewhere; NULL: nothing
    bool is_learning;             // and it learns anew from what it measures
    cycle_plan_f *on_plan;        // told of each decision's plan before it acts; NULL: nobody is
    void *owner;                  // of that
    unsigned without;    // levers taken away: bits 1 << enum lever (optimize/policy/solver.h)
};

/* Figures of a run, from time 0 to the end of the last job, or to now. What there is none
 * of is NaN.
 *
 * - Promised throughput: the largest of a job's minimum, a server's rate, and steps over
 *   deadline. Promise attainment: over all jobs that have one, the time spent at or above it
 *   (to one part in 10^9), over the time from submission to the job's end, or to now. Waiting,
 *   starting and moving count as below.
 * - Work: steps done (a server's: served) over the workload's true speed alone on one
 *   reference GPU; where it does not fit there, on the first type of the truth where it does.
 * - Allocation efficiency: work over GPU-seconds held by anybody; a GPU that two jobs share
 *   is held once, and one that waits for a job to start is held.
 * - JCT: from submission to the end, over finished jobs. Makespan: from the first arrival to
 *   the last end.
 * - Energy: of all GPUs, also idle and sleeping ones; nothing else of a node.
 * - Events: arrivals, starts, first steps, reports, ends, stops and sleeps that happened.
 */
struct sim_result {
    int n_waiting[WAIT_REASONS];    // those that wait at the end, by what keeps them
    int n_jobs;                     // of the trace
    int n_submitted, n_finished, n_failed;
    double energy_j;
    double work_s;                // done, in seconds alone on the reference GPU
    double promise_attainment;    // 0..1
    double mean_jct_s, p95_jct_s;
    double makespan_s;
    double allocation_efficiency;
    double gpu_s;    // allocated
    long n_moves, n_decisions, n_events, n_fallbacks, n_measurements;
    long n_models;              // learned from them that were better than the one before
    double prediction_error;    // mean |measured / believed - 1| of speeds, before each was learned
    double coverage90;          // share of them inside the believed 90 % interval
    double decision_p50_s, decision_p99_s;    // wall time
    long n_repricings;                        // prices found anew, between decisions
    double repricing_s;                       // wall time of all of them
    /* How far plans may be from the best ones, over those that know it; NaN: the policy gives no
     * bound.
     */
    struct plan_gap gap_mean, gap_worst;

    /* Of services; NaN without any, and the figures above leave services and replicas out. */
    double service_hours_kept;    // share of the hours in which at most 1 % was late
    double late_share;            // of all requests
    double p99_s;                 // of all requests
    double interruptions;         // world.h says what one is
    double starts_per_service_day;
    double training_work;    // as work_s, of training
};

/* Everything that 'o' points at must outlive the simulation. -EINVAL: a type or workload
 * that the truth does not know, an unknown policy, a job that fits no type of the cluster.
 */
int sim_create(const struct sim_options *o, struct sim **out, struct err *e);
void sim_destroy(struct sim *s);

/* Advance to 'until_s' of simulated time, or to the end. Returns 1 while there is more
 * to come, 0 at the end, -Exxx.
 */
int sim_advance(struct sim *s, double until_s, struct err *e);

/* The figures so far. */
void sim_result(struct sim *s, struct sim_result *out);

/* How job 'i' of the trace has fared; false before it is submitted. */
bool sim_job_outcome(const struct sim *s, int i, struct world_outcome *out);

/* "running", or why it waits ("memory", ...) or has failed ("out of memory"); "" for a job that has
 * finished or not arrived.
 */
const char *sim_job_reason(const struct sim *s, int i);

/* What there is now. Borrowed. The world has single figures of sim_result, so far, without going
 * through all jobs.
 */
double sim_now_s(const struct sim *s);
const struct world *sim_world(const struct sim *s);
const struct state *sim_state(const struct sim *s);
const struct catalog *sim_catalog(const struct sim *s);
const struct estimator *sim_estimator(const struct sim *s);    // what the policy believes

/* Sum of |measured / believed - 1| over the '*n' speeds measured so far. */
void sim_learning(const struct sim *s, double *sum_abs_error, long *n);

/* Into 'to' what was measured in 'from', all that each cell adds up to, but for that in which a
 * workload of 'family' (NULL: none) takes part, as itself or as a neighbour.
 */
int sim_adopt(struct catalog *to, const struct catalog *from, const char *family, struct err *e);

#endif
