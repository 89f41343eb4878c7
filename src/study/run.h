/* run.h - one run of a study: its inputs simulated under its policy, and what came of it.
 *
 * Called by the pool, in a process of its own; the result is a plain value in the caller's
 * arena, the same for the same key, data and program but for wall times and 'rss_bytes'.
 */
#ifndef STUDY_RUN_H
#define STUDY_RUN_H

#include <stdbool.h>

#include "study/scenario/scenario.h"

struct err;

/* A stretch of the run: a hundredth of the arrival period, or as long a one after it. Everything
 * but 'time_s' and 'measurements' is of the stretch alone. NaN: nothing to say.
 */
struct study_slice {
    double time_s;        // where it ends
    double watts;         // mean draw of the cluster
    double work_per_s;    // mean work done, units a second
    double error;         // mean |measured / believed - 1| of its measurements
    long measurements;    // from the beginning of the run to the slice's end
    double attainment;    // promises kept, over the jobs that arrived in the slice, to their ends
    int waiting;          // jobs that wait at its end
};

/* Who was on which GPU, to the minute. */
struct study_interval {
    int gpu, job;    // of the cluster, of the trace
    int limit_w;     // 0: none
    double from_s, to_s;
};

struct study_type {
    const char *name;
    int n_gpus;
    double gpu_hours;     // held by somebody
    double energy_kwh;    // of its GPUs, also idle and asleep
};

struct study_result {
    /* Over the steady window: 20 % to 100 % of the arrival period. */
    double energy_j_per_work;
    double allocation_efficiency;    // work over GPU-seconds held

    /* To completion. */
    double energy_kwh;
    double promise_attainment;    // 0..1; waiting counts as broken
    double mean_jct_s, p95_jct_s;
    double mean_queue_s;    // from submission to the first start
    double makespan_s;
    double work_s;
    long moves, decisions, fallbacks, repricings, measurements;
    int jobs, finished, failed;
    double moves_per_job;
    double gap_mean_w, gap_worst_w;    // as sim_result has them; NaN: the policy gives no bound
    double gap_mean_ratio, gap_worst_ratio;
    double gap_mean_varying_ratio, gap_worst_varying_ratio;
    double prediction_error, coverage90;
    double first_100_attainment, next_attainment;    // jobs 1 to 100; those after them
    double effective_delay_w;    // what a second of a job's time was worth; NaN: to a bound
    /* Of services, as sim_result has them; NaN without any. */
    double service_hours_kept, late_share, p99_s, interruptions, starts_per_service_day;
    double training_work;
    double decision_p50_s, decision_p99_s;    // wall times, as the next two
    double repricing_s;                       // of all repricings
    double wall_s;
    double rss_bytes;    // the most memory that the run had

    int n_types;
    struct study_type *types;    // in the cluster's order
    int n_slices;
    struct study_slice *slices;

    /* The middle hours of the arrival period; only where study_run_keeps_intervals. */
    double intervals_from_s, intervals_to_s;
    int n_intervals;
    struct study_interval *intervals;    // by GPU, then time
};

/* What a second of a usual job's time is worth to planners there: as the cluster says, or by the
 * mean power cap of its GPUs.
 */
double study_delay_w(const struct cluster *cl);

/* Figures that follow from others. */
void study_result_derive(const char *policy, struct study_result *r);

/* Who was where is kept of clusters of at most 64 GPUs. */
bool study_run_keeps_intervals(const struct study_run *k, const struct study_inputs *s);

/* Simulate, or, for the policy "bound", solve (bound.h): then there are energy per
 * work, the least energy to completion, allocation efficiency and types, and nothing else. 'data'
 * as for scenario_open.
 */
int study_run_do(struct arena *a, const struct study_run *k, const char *data,
                 struct study_result *out, struct err *e);

/* How long it takes, in some unit; so that the long ones are begun first. */
double study_run_cost(const struct study_run *k);

#endif
