/* explain_inner.h - what the parts of explain.c share: one job, and the plan without it.
 *
 * explain_figures.c lays the plan out and says how the job would go somewhere, explain_places.c
 * finds the places, explain_start.c the time; explain.c puts them together. Scratch of one
 * explanation.
 */
#ifndef OPTIMIZE_EXPLAIN_EXPLAIN_INNER_H
#define OPTIMIZE_EXPLAIN_EXPLAIN_INNER_H

#include <stdbool.h>

#include "catalog/catalog.h"
#include "catalog/snapshot.h"
#include "estimate/estimate.h"
#include "optimize/policy/board.h"
#include "optimize/explain/explain.h"
#include "optimize/policy/solver.h"

/* GPUs that several may share and that are alike: what a candidate stands for. */
struct explain_kind {
    int type, limit_w, n_jobs;
    bool may_start, may_join;
    int workloads[THETA_MAX];    // ascending; up to here it is the key
    int gpu, n_gpus;
    double need;    // the most that somebody on 'gpu' asks for
};

/* The GPUs of one type on one node, as the plan without the job leaves them. */
struct explain_run {
    int type, node;
    int n_all, n_up, n_free;    // n_free: empty, and their node is up
    int first;                  // free one; -1: none
    double wake_s;              // of the free one that wakes last
};

struct explain_asking {
    struct arena *arena;
    const struct snapshot *snapshot;
    const struct estimator *est;
    const struct solve_options *options;
    const struct plan_job *placed;    // where the plan has the job
    int job;
    const struct snap_job *j;
    struct board board;    // the plan without the job
    double room_w;         // what the power cap leaves without it; INFINITY: there is none
    struct explain_run *runs;
    int n_runs;
    struct explain_kind *kinds;
    int n_kinds;
    struct candidate *list;
    int n_list;
};

/* ---- explain_figures.c ---- */

/* Lay out the plan, and take the job off. */
void explain_lay(struct explain_asking *q, const struct plan *p);

/* How long a job would take; a server takes its time whatever the speed. */
double explain_time_s(const struct snap_job *j, double speed);

/* Fill in the figures of a candidate, whose type and n_gpus are set and whose neighbour is -1. Alone
 * on whole GPUs: under the limit of those offered with the least cost.
 */
void explain_best_alone(const struct explain_asking *q, struct candidate *c, bool is_spread);

/* On these very GPUs, whoever is there. Leaves BREAKS_NEIGHBOUR as its verdict where that is so. */
void explain_there(struct explain_asking *q, struct candidate *c, const int *gpus, int limit_w);

/* ---- explain_places.c ---- */

void explain_find_runs(struct explain_asking *q);
void explain_find_kinds(struct explain_asking *q);    // GPUs with somebody on them, and room

/* The plan has the job on this one GPU, which then stands for its kind. */
bool explain_is_chosen(const struct explain_asking *q, int gpu);

/* ---- explain_start.c ---- */

/* When a job that waits may start, and whose end that is. */
void explain_find_start(struct explain_asking *q, const struct plan *p, struct explanation *out);

#endif
