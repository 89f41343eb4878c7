/* truth.h - what is really so in a simulated world.
 *
 * Three makers: a catalog of measurements taken as ground truth, the built-in tables with a
 * documented analytic interference model (docs/experiments.md), or all that is believed by
 * now. Policies never see this; they see what the world lets happen.
 */
#ifndef SIM_WORLD_TRUTH_H
#define SIM_WORLD_TRUTH_H

#include <stdint.h>

#include "catalog/cluster/cluster.h"
#include "catalog/cluster/state.h"    // THETA_MAX
#include "estimate/prior/limits.h"

struct catalog;
struct err;
struct estimator;

/* Workloads and types are indices of 'catalog': the truth's own, not the policy's. */
struct truth {
    const struct catalog *catalog;
    int n_types, n_workloads;
    double *speed;              // (n_workloads, n_types) steps/s alone; 0: does not fit
    double *watts;              // (n_workloads, n_types) of the GPU with it alone
    float *slowdown;            // (n_workloads, n_types, n_workloads) r; 0: the pair does not fit
    struct limit_bend *bend;    // (n_workloads, n_types) how it differs from the law of limits
    uint64_t seed;              // of what is hidden
    double hides;               // how much of that there is; 0: nothing
};

/* From measurements. What was not measured is filled from the analytic model, scaled
 * to what was; counted in '*n_filled'. A slowdown measured above 1 (noise) counts as 1.
 * What power limits do is nobody's measurement here: each workload on each type differs from the
 * law as much as Zeus's do (LIMITS_LOSS_SD, LIMITS_DRAW_SD), by factors that belong to the names.
 * -EINVAL: a type or workload with no speed at all and no descriptor to derive one from.
 */
int truth_from_catalog(struct truth *t, const struct catalog *c, int *n_filled, struct err *e);

/* From descriptors alone. Each workload on each type is off from the analytic model by
 * a log-normal factor drawn from 'seed' (sd 'spread'), so that estimators have something
 * to learn: 0.8 of it is shared by the workload's family on that type, 0.6 is its own.
 * Slowdowns (in their logarithm) and dynamic watts are off by half that much. What limits do is
 * as far from the law as above, drawn from 'seed'; a spread of 0 is the law itself. The factors
 * depend on names and seed only, not on what else is in the catalog.
 */
int truth_analytic(struct truth *t, const struct catalog *c, uint64_t seed, double spread,
                   struct err *e);

/* From all that is believed by now: what was measured as it was measured, the estimates elsewhere.
 * What more probably does not fit than does, does not. 'est' is of 'c' and up to date.
 */
int truth_from_beliefs(struct truth *t, const struct catalog *c, const struct estimator *est,
                       struct err *e);

void truth_release(struct truth *t);

/* A normal number that belongs to the names of these (neighbour -1: none), 'what' and the truth's
 * seed; 0 where nothing is hidden.
 */
double truth_hidden(const struct truth *t, const char *what, int workload, int type, int neighbour);

/* Indices in the truth's catalog by name or a name alike, a type also by another name of
 * the same built-in one; -1: not there.
 */
int truth_find_type(const struct truth *t, const char *name);
int truth_find_workload(const struct truth *t, const char *name);

/* The GPU type that work is counted in: 'name', or where that is NULL p100, or the first type if it
 * is not there; -1: there is none of that name.
 */
int truth_reference(const struct truth *t, const char *name);

/* Where a workload's work is counted: on the reference, else on the first type where it fits; -1:
 * it fits nowhere.
 */
int truth_counted_on(const struct truth *t, int workload, int reference);

/* Jobs that step on one GPU, each with the share of its speed alone that it has there. */
struct truth_residents {
    int n;
    int workload[THETA_MAX];
    double share[THETA_MAX];
};

/* What a GPU of 'type', whose figures are 'g', draws with them on it under 'limit_w' (0: none), and
 * how much slower they go for that.
 */
struct limited truth_drawn(const struct truth *t, enum power_model model, const struct gpu_type *g,
                           int type, const struct truth_residents *on, int limit_w);

/* Speed of a gang of 'n' GPUs of one type, steps/s. */
double truth_gang_speed(const struct truth *t, int workload, int type, int n, int is_spread);

static inline double truth_speed(const struct truth *t, int workload, int type)
{
    return t->speed[(long)workload * t->n_types + type];
}

static inline double truth_watts(const struct truth *t, int workload, int type)
{
    return t->watts[(long)workload * t->n_types + type];
}

static inline struct limit_bend truth_bend(const struct truth *t, int workload, int type)
{
    return t->bend[(long)workload * t->n_types + type];
}

/* How fast 'workload' runs beside 'neighbour', relative to alone. */
static inline double truth_slowdown(const struct truth *t, int workload, int type, int neighbour)
{
    return (double)t->slowdown[((long)workload * t->n_types + type) * t->n_workloads + neighbour];
}

#endif
