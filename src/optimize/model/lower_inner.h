/* lower_inner.h - what the parts of lower.c share: a problem in the making.
 *
 * lower.c makes types and GPUs, lower_kinds.c what kinds of work do on them, lower_jobs.c the jobs,
 * lower_services.c services, lower_frozen.c what is left as it is. Scratch of one lowering.
 */
#ifndef OPTIMIZE_MODEL_LOWER_INNER_H
#define OPTIMIZE_MODEL_LOWER_INNER_H

#include <math.h>
#include <stdbool.h>

#include "catalog/cluster/snapshot.h"
#include "estimate/estimate.h"
#include "optimize/model/lower.h"
#include "optimize/model/options.h"

struct lowering {
    struct arena *arena;
    const struct snapshot *snapshot;
    const struct estimator *est;
    const struct solve_options *options;
    struct problem *problem;
    double delay_w;                         // what a second of a usual job's time is worth
    int *type_of, *type_at;                 // problem to catalog, and back (-1: no such GPU)
    int *workload_of, *kind_at;             // kind to workload; snapshot's job to kind
    const struct service_view **view_of;    // (n_kinds) the service it is of; NULL: none
    double *missed;                         // (n_kinds) steps/s needed that no type holds; 0: none
    double *doubt;     // (n_kinds) how much its speeds are in doubt, over all places
    double *wake_s;    // (n_types) the longest that a GPU takes to wake; NULL: all are awake
};

/* Each step of priority doubles a job's weight in all that it costs to keep it waiting, up to this
 * many steps.
 */
#define PRIORITY_STEPS 5

static inline double lower_weight(const struct job_spec *s)
{
    return exp2(fmin(fmax(s->priority, -PRIORITY_STEPS), PRIORITY_STEPS));
}

/* So many standard deviations of a speed that nobody has measured yet are always counted on: who
 * never tries a type never learns that it is the better one, and whole families stay where their
 * first job happened to go. What a try is worth beyond that is lower_probes' matter.
 */
#define CURIOSITY 0.5

/* Is it too likely that a kind does not fit on a type, beside another (-1: alone)? */
bool lower_is_unfit(const struct lowering *l, int type, int kind, int beside);

void lower_kinds(struct lowering *l);     // what kinds of work do on every type
void lower_probes(struct lowering *l);    // types and pairs to be tried on purpose
double lower_hope_z(double uses);         // standard deviations that a try is worth
void lower_values(struct lowering *l);    // what a step is worth: after the power limits
void lower_jobs(struct lowering *l);      // all but what is frozen
void lower_service_row(struct lowering *l, int type, int kind);    // its row of lower_kinds
void lower_services(struct lowering *l);    // what services need: after the jobs
void lower_hopes(struct lowering *l);       // count on the former in speeds: after values and jobs
void lower_misfits(struct lowering *l);     // what the problem cannot say is frozen
void lower_power(struct lowering *l);       // caps, and limits that must be lifted

#endif
