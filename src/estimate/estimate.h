/* estimate.h - how fast and how costly: every cell, worked out when it is asked for.
 *
 * Made from the catalog and a model (beliefs.h); what was asked is kept until something is learned.
 * Flows in: measurements that 'refine' left in the catalog. Flows out: answers to optimize, and to
 * whoever explains a plan. Lives as long as the run; one thread at a time.
 */
#ifndef ESTIMATE_ESTIMATE_H
#define ESTIMATE_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "estimate/beliefs.h"
#include "estimate/prior/limits.h"
#include "estimate/shared.h"

/* With 'mean' and 'sd' those of ln throughput. Energy and completion times are linear in seconds
 * per step, so the speed that stands for the cell is the one with the expected seconds per step.
 */
struct cell_estimate {
    float mean, sd;    // of ln throughput
    float speed;       // 1 / (expected seconds per step): exp(mean - sd^2 / 2), steps/s
    float low;         // what is held with the stated confidence: exp(mean - z sd), or 'speed'
    float unfit;       // chance that it does not fit
    float watts, watts_sd;    // alone: of the GPU; sd of the logarithm
};

/* What somebody knows of a cell otherwise. */
struct told_cell {
    double ln_speed, sd;
    double ln_watts, watts_sd;    // alone; NaN: nobody knows
    struct limit_bend bend;       // alone; loss 0: nobody knows
};

struct estimator {
    const struct catalog *catalog;
    double z;    // confidence of 'low', in standard deviations
    int n_workloads, n_types;
    struct bends bends;             // what limits do to whom
    struct shared_watts *shared;    // what pairs draw; owned
    struct beliefs *beliefs;        // owned
    struct roofline *on;            // (n_on, n_types) of the workloads
    int n_on;                       // room
    uint32_t descriptions;          // the catalog's, when these were made
    struct cell_slot *slots;        // cells that were asked for, see estimate.c
    uint32_t age;                   // of what is kept there; older ones are out of date
    struct map_u64 told_by_key;     // cells that somebody knows, see estimate_tell
    struct told_cell *told;         // (n_told)
    int n_told, cap_told;
    struct serving_cache *serving;    // step times of servers, see serving.h; owned
};

void estimator_init(struct estimator *e, const struct catalog *c, double z);
void estimator_release(struct estimator *e);

/* From now on believe 'm' (NULL: one that has learned nothing), which need not live on, as 'kind'
 * says. Refresh before asking anything.
 */
void estimate_use(struct estimator *e, const struct model *m, enum estimator_kind kind);

/* This is known, and not estimated, from now on; the last word counts. For a simulation that knows
 * the truth.
 */
void estimate_tell(struct estimator *e, int workload, int type, int neighbour,
                   const struct told_cell *is);
const struct told_cell *estimate_told(const struct estimator *e, int workload, int type,
                                      int neighbour);    // NULL: nobody did

/* Get to know workloads and types that are new in the catalog, so that they may be asked about.
 * What the next refresh gives does not depend on it: whoever asks between two cycles changes
 * nothing.
 */
void estimate_meet(struct estimator *e);

/* The same, and take in all that was measured since. */
void estimate_refresh(struct estimator *e);

/* Work out now what questions about the workload, and about all pairs, have in common: before a
 * fork, whose child would work it out for itself and take it along to its grave.
 */
void estimate_warm(const struct estimator *e, int workload);
void estimate_warm_pairs(const struct estimator *e);

/* The cell of 'workload' on 'type' beside 'neighbour' (-1: alone). */
struct cell_estimate estimate_cell(const struct estimator *e, int workload, int type,
                                   int neighbour);

/* How what limits do to it differs from the law. */
struct limit_bend estimate_bend(const struct estimator *e, int workload, int type);

/* Speed of 'workload' beside the 'n' others: its cell for one of them; beside several the
 * slowdowns multiply, in whatever order they stand. 'low' (may be NULL) gets the speed held
 * with confidence.
 */
double estimate_speed(const struct estimator *e, int workload, int type, const int *others, int n,
                      double *low);

/* The same for a gang of 'n_gpus' whole GPUs of one type. */
double estimate_gang_speed(const struct estimator *e, int workload, int type, int n_gpus,
                           int is_spread, double *low);

/* The largest chance, over all of them, that one does not fit beside another; of three and
 * more, also that their memory does not add up.
 */
double estimate_unfit(const struct estimator *e, int type, const int *workloads, int n);

/* The part of the memory of a GPU of 'type' that a workload is believed to take; and how much of
 * it three and more may take together for estimate_unfit to stay at 'unfit_max', as far as memory
 * goes.
 */
double estimate_mem_share(const struct estimator *e, int workload, int type);
double estimate_mem_share_max(double unfit_max);

/* Watts of one GPU of 'type' that runs these together. 'n' of 0 is a sleeping GPU. 'rates'
 * (may be NULL) are what servers are asked for, steps/s: one that could do more draws less; 0:
 * as fast as it can.
 */
double estimate_watts(const struct estimator *e, int type, const int *workloads,
                      const double *rates, int n);

/* What the law of shared GPUs is multiplied by for these: by what was measured of pairs, 1 of any
 * other number.
 */
double estimate_shared(const struct estimator *e, int type, const int *workloads, int n);

/* The same GPU under a power limit (0: the default): what it draws, and the factors of every job's
 * speed and 'low' on it. Where something was learned of how these workloads differ from the law,
 * with that. What limits take is least sure far from where a workload was measured: 'low' is less
 * than 'speed' by z times that, also without a limit when all measurements were under one.
 */
struct limited estimate_limited(const struct estimator *e, int type, const int *workloads,
                                const double *rates, int n, int limit_w);

/* May plans limit a GPU with these on it? Only where what each of them draws without a limit is
 * known: under a deep limit everybody draws the limit, and whoever is never seen without one is
 * taken for what he was made to be. Of servers ('rates', may be NULL, above 0) the speed must be
 * known too: one that keeps up shows its load and not what it could do.
 */
int estimate_may_limit(const struct estimator *e, int type, const int *workloads,
                       const double *rates, int n);

#endif
