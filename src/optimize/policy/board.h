/* board.h - the table a solver moves jobs around on: who would be where.
 *
 * Scratch of one solve, in the cycle arena. Begins as the present allocation; becomes a
 * plan with board_plan. Free GPUs are on a list per type, lowest index first and those that sleep
 * last, and half-full
 * ones on a list per type and workload of their newest resident, so that looking for a place
 * does not mean looking at every GPU.
 */
#ifndef OPTIMIZE_POLICY_BOARD_H
#define OPTIMIZE_POLICY_BOARD_H

#include <stdbool.h>

#include "catalog/snapshot.h"
#include "estimate/limits.h"
#include "optimize/model/plan.h"

struct arena;
struct estimator;

struct board_gpu {
    int n_jobs;
    int jobs[THETA_MAX];    // indices into snapshot.jobs
    int next, prev;         // its list's links, -1 at the ends
    int list;               // which list it is on, -1: none
};

struct board {
    struct arena *arena;
    const struct snapshot *snapshot;
    const struct estimator *est;
    struct board_gpu *gpus;    // (snapshot.n_gpus)
    struct plan_job *jobs;     // (snapshot.n_jobs) where each one is
    int n_types, n_workloads;
    int *lists;             // heads: (n_types) free, then (n_types, n_workloads) half-full
    int *tails;             // (n_types) ends of the free ones
    int *n_free;            // (n_types)
    int *no_node;           // (n_types) no node has this many free ones; INT_MAX: not known
    int *n_all, *n_node;    // (n_types) GPUs there are: in all, and on the node with most
};

/* The present allocation. */
void board_init(struct board *b, struct arena *a, const struct snapshot *s,
                const struct estimator *est);

/* What a plan says instead; for pricing it. No lists are kept. */
void board_lay(struct board *b, struct arena *a, const struct snapshot *s,
               const struct estimator *est, const struct plan *p);

/* Put a job on GPUs, at the limit they have; take it off again. 'gpus' must live in the arena. */
void board_put(struct board *b, int job, const int *gpus, int n);
void board_take(struct board *b, int job);

/* The first free GPU of a type, -1 for none; go on with gpus[g].next. */
int board_free(const struct board *b, int type);

/* The first GPU of a type whose newest resident runs 'workload', with room for one that may
 * share.
 */
int board_half(const struct board *b, int type, int workload);

/* Predicted speed of a placed job beside its present neighbours; 'low' may be NULL. */
double board_speed(const struct board *b, int job, double *low);

/* Predicted speed of 'job' if 'extra' (an index into snapshot.jobs, -1: nobody) came to its
 * one GPU.
 */
double board_speed_with(const struct board *b, int job, int extra, double *low);

/* What a GPU's power limit does to it and everybody on it, 'extra' (-1: nobody) included. */
struct limited board_limited(const struct board *b, int gpu, int extra);

/* Predicted watts of a GPU as it stands, and with one more job. */
double board_watts(const struct board *b, int gpu);
double board_watts_with(const struct board *b, int gpu, int extra);

/* The same for a power cap, which must hold before empty GPUs have fallen asleep. */
double board_drawn_w(const struct board *b, int gpu);

/* True when all jobs of GPU 'gpu' would probably fit with 'extra', and so many may share it. */
bool board_fits(const struct board *b, int gpu, int extra, double unfit_max);

/* True when the job's GPUs stand on more than one node. */
bool board_is_spread(const struct board *b, const int *gpus, int n);

/* GPUs of a type that a gang could stand on, whoever is on them now: all there are, or as many as
 * one node or (in equal parts) several have, where it asks for that.
 */
int board_seats(const struct board *b, const struct job_spec *spec, int type);

/* Could 'n' GPUs of the type only stand on several nodes, for such a gang? */
static inline bool board_is_far(const struct board *b, const struct job_spec *spec, int type, int n)
{
    return spec->n_nodes > 1 || n > b->n_node[type];
}

/* The plan that the board shows; unpriced. 'made_by' is borrowed. */
void board_plan(const struct board *b, const char *made_by, struct plan *out);

#endif
