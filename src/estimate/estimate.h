/* estimate.h - how fast and how costly: a table over all cells, kept up to date.
 *
 * Made by: estimate_refresh, from the catalog: what 'refine' left there where there is
 * something, the prior elsewhere. Read by: optimize, and whoever explains a plan.
 * Lives as long as the run; a refresh touches only rows whose workload has changed.
 */
#ifndef ESTIMATE_ESTIMATE_H
#define ESTIMATE_ESTIMATE_H

#include <stdint.h>

#include "estimate/prior/limits.h"

struct catalog;
struct p1;
struct p1_context;
struct prior;
struct roofline;

/* With 'mean' and 'sd' those of ln throughput. Energy and completion times are linear in seconds
 * per step, so the speed that stands for the cell is the one with the expected seconds per step.
 */
struct cell_estimate {
    float speed;    // 1 / (expected seconds per step): exp(mean - sd^2 / 2), steps/s
    float low;      // what is held with the stated confidence: exp(mean - z sd), or 'speed'
    float sd;       // of ln throughput
    float unfit;    // chance that it does not fit
};

struct estimator {
    const struct catalog *catalog;
    double z;    // confidence of 'low', in standard deviations
    int n_workloads, n_types;
    int n_filled;    // workloads that have rows and columns; fewer after estimate_meet
    int stride;      // neighbours a row has room for, the lonely one included
    struct cell_estimate *cells;    // (stride, n_types, stride); see estimate_cell
    double *alone_w;                // (stride, n_types) watts of the GPU with it alone
    struct limit_bend *bend;        // (stride, n_types) how it differs from the law of limits
    float *watts_sd;                // (stride, n_types) of ln alone_w
    struct roofline *on;            // (stride, n_types)
    const struct p1 *p1;            // borrowed; NULL: the roofline speaks
    struct p1_context *context;     // all workloads on all types as P1 sees them; NULL without
    uint32_t descriptions;          // the catalog's, when the table was last made anew
    uint32_t *seen;                 // (stride) the catalog's revision a row was made from
    uint32_t *column_seen;          // (stride) and its column_revision
};

void estimator_init(struct estimator *e, const struct catalog *c, double z);
void estimator_release(struct estimator *e);

/* From now on believe 'p1' (NULL: the roofline) where nothing was measured; it must live until
 * the next call of this or the end. Refresh before asking anything: the table is made anew.
 */
void estimate_use(struct estimator *e, const struct p1 *p1);

/* What is believed before anything was measured of 'workload': on 'type' beside the neighbours
 * from .. to-1, where -1 stands for alone. (to - from, at most 256) into 'out'.
 */
void estimate_prior(const struct estimator *e, int workload, int type, int from, int to,
                    struct prior *out);

/* ln watts of the GPU with 'workload' alone, before anything was measured; 'sd' may be NULL. */
double estimate_prior_watts(const struct estimator *e, int workload, int type, double *sd);

/* Get to know workloads and types that are new in the catalog, without estimates of them. */
void estimate_meet(struct estimator *e);

/* Bring the table up to date with the catalog. */
void estimate_refresh(struct estimator *e);

/* The cell of 'workload' on 'type' beside 'neighbour' (-1: alone). Borrowed until the
 * next refresh.
 */
static inline const struct cell_estimate *estimate_cell(const struct estimator *e, int workload,
                                                        int type, int neighbour)
{
    return &e->cells[((long)workload * e->n_types + type) * e->stride + neighbour + 1];
}

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
double estimate_mem_share_max(const struct estimator *e, double unfit_max);

/* Watts of one GPU of 'type' that runs these together. 'n' of 0 is a sleeping GPU. 'rates'
 * (may be NULL) are what servers are asked for, steps/s: one that could do more draws less; 0:
 * as fast as it can.
 */
double estimate_watts(const struct estimator *e, int type, const int *workloads,
                      const double *rates, int n);

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
