/* lower_inner.h - what the parts of lower.c share: a problem in the making.
 *
 * lower_gpus.c makes types and GPUs, lower_kinds.c what kinds of work do on them, lower_jobs.c the
 * jobs, lower_engine.c what the engine cannot do with them, lower_frozen.c what is left as it is; lower.c calls them in this order. Scratch of one
 * lowering.
 */
#ifndef OPTIMIZE_MODEL_LOWER_INNER_H
#define OPTIMIZE_MODEL_LOWER_INNER_H

#include <stdbool.h>

#include "catalog/snapshot.h"
#include "estimate/estimate.h"
#include "optimize/model/lower.h"
#include "optimize/policy/solver.h"

struct err;

struct lowering {
    struct arena *arena;
    const struct snapshot *snapshot;
    const struct estimator *est;
    const struct solve_options *options;
    struct problem *problem;
    int *type_of, *type_at;        // problem to catalog, and back (-1: no such GPU)
    int *workload_of, *kind_at;    // kind to workload; snapshot's job to kind
    double *missed;                // (n_kinds) steps/s needed that no type holds; 0: none
    double *wake_s;    // (n_types) the longest that a GPU takes to wake; NULL: all are awake
};

/* ---- lower_gpus.c ---- */

int lower_types(struct lowering *l, struct err *e);
void lower_gpus(struct lowering *l);
void lower_caps(struct lowering *l);      // after the cells: what is drawn at most
void lower_limits(struct lowering *l);    // after the caps

/* The setting of that many watts; -1: there is none. */
int lower_setting(const struct problem_type *t, int limit_w);

/* ---- lower_kinds.c ---- */

void lower_kinds(struct lowering *l);
void lower_cells(struct lowering *l);
void lower_bends(struct lowering *l);
void lower_memory(struct lowering *l);
void lower_values(struct lowering *l);    // last of these: what a step is worth follows from all
void lower_gangs(struct problem *p);

/* ---- lower_jobs.c ---- */

void lower_job(struct lowering *l, int job);

/* ---- lower_engine.c ---- */

void lower_engine(struct lowering *l);    // after the jobs
void lower_nodes(struct lowering *l);     // after the misfits: what frozen jobs leave of nodes

/* ---- lower_frozen.c ---- */

void lower_misfits(struct lowering *l);    // what the problem cannot say is frozen
void lower_power(struct lowering *l);      // caps, and limits that must be lifted

#endif
