/* generate.h - traces by chance: Poisson arrivals, drawn workloads, drawn promises.
 *
 * Also lends its draws to the importers, whose files name no models. Same options and
 * seed, same trace.
 */
#ifndef SIM_TRACE_GENERATE_H
#define SIM_TRACE_GENERATE_H

#include <stdint.h>

#include "base/rng.h"
#include "sim/trace/trace.h"

struct arena;
struct cluster;
struct err;
struct truth;

/* Work is drawn log-uniform between these, in seconds alone on the reference GPU. */
#define WORK_LOW_S (0.5 * 3600)
#define WORK_HIGH_S (10.0 * 3600)

/* What jobs are drawn from. One generator of chance per purpose, so that another option
 * does not change what the rest draws.
 */
struct trace_draw {
    const struct truth *truth;
    int reference;    // its index in the truth
    int n_training, n_inference;
    int *training;     // workloads that run alone on one reference GPU
    int *inference;    // forward-only ones, or all of 'training' when there are none
    int n_types;
    int *types;     // the truth's indices of the types that promises may be about
    int fastest;    // the fastest of them over all workloads; -1: none
    double promise_low, promise_high;    // of the speed on the reference; 0.3 and 0.9
    struct rng workloads, promises, work, rates;
};

/* Get ready to draw from 'truth'. 'cl' says which types there are; NULL: all of the truth.
 * 'reference' NULL: p100, or the truth's first type. -EINVAL: the truth lacks a type of the
 * cluster or the reference, or nothing fits on it.
 */
int trace_draw_init(struct trace_draw *d, struct arena *a, const struct truth *truth,
                    const struct cluster *cl, const char *reference, uint64_t seed, struct err *e);

/* A workload, uniformly. */
int draw_workload(struct trace_draw *d, int is_inference);

/* A promise in steps/s for a job of 'workload' on 'n_gpus': uniform between promise_low and
 * promise_high of its speed on the reference; for one in ten of those that the fastest type
 * runs more than 5 % faster than the reference, one that only that type keeps.
 */
double draw_promise(struct trace_draw *d, int workload, int n_gpus);

struct trace_generate {
    int n_jobs;
    double load;          // offered work over the capacity; 0: see rate
    double rate_per_h;    // jobs per hour; 0: see load
    double inference;     // share of jobs that serve
    double gangs;         // share of jobs that want 2 or 4 GPUs
    uint64_t seed;
};

/* Reference GPU-seconds of work that the cluster does in a second with every GPU busy
 * alone: for each GPU the mean over training workloads of its speed over the reference's.
 */
double trace_capacity(const struct trace_draw *d, const struct cluster *cl);

/* GPUs of the type that the cluster has most of: the largest gang that can run. */
int trace_gang_max(const struct cluster *cl);

/* Jobs "j000001", ... by arrival. */
int trace_generate(struct arena *a, const struct trace_generate *o, struct trace_draw *d,
                   const struct cluster *cl, struct trace *out, struct err *e);

/* What services are drawn by, beside 'seed'. */
struct trace_generate_services {
    int n_services;
    double rate;     // requests/s of each on average, at the most
    double end_s;    // of all; they begin within the first minutes
    uint64_t seed;
};

/* Put services "s01", ... into a trace: inference workloads of the draw, traffic of chance with a
 * seed of its own each, a promise of 4 to 30 times what a request alone takes on the reference GPU,
 * and mean rates of 0.15 to 1.5 times what that answers in full batches.
 */
void trace_generate_services(struct arena *a, const struct trace_generate_services *o,
                             struct trace_draw *d, struct trace *t);

#endif
