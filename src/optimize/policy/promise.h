/* promise.h - in order, to GPUs that keep promises: what "fifo-promise", "pack" and "eaco" share.
 *
 * A queue is scratch of one solve, in the cycle arena. Every job wants the types that keep its
 * promise; where none does, those where it is fastest. Who finds nothing free waits for these
 * types, and nobody behind it may take a free GPU of them; of other types, or beside others, they
 * may.
 */
#ifndef OPTIMIZE_POLICY_PROMISE_H
#define OPTIMIZE_POLICY_PROMISE_H

#include <stdbool.h>

#include "optimize/policy/board.h"

struct arena;
struct estimator;
struct plan;
struct snapshot;
struct solve_options;

/* How a policy shares GPUs. */
struct sharing {
    bool is_allowed;
    bool is_preferred;    // to a free GPU; else the one that costs fewer joules is taken
    double share_min;     // everybody there keeps this part of the speed alone
};

struct queue {
    struct board board;
    const struct solve_options *options;
    const struct sharing *sharing;
    int *n_usable;         // (n_types) GPUs that may start something
    int *n_wanted;         // (n_types) what the job at hand would take there; 0: not that type
    bool *is_awaited;      // (n_types) somebody further in front waits for a GPU of it
    double *no_company;    // (n_workloads) with this need, sharing was sought in vain
    bool is_out_of_watts;
};

/* The present allocation, and nobody waiting yet. */
void queue_init(struct queue *q, struct arena *a, const struct snapshot *s,
                const struct estimator *est, const struct solve_options *o,
                const struct sharing *sharing);

/* Start those that wait, in order, or say why not. */
void queue_serve(struct queue *q);

/* Which types does a job want, and how many GPUs there? Into n_wanted. False when none of them
 * keeps its promise.
 */
bool queue_want(struct queue *q, int job);

/* The free GPU with the fewest joules among the types that 'job', which holds one GPU, wants;
 * -1: none.
 */
int queue_free_gpu(struct queue *q, int job);

/* Power limits, and the plan. */
void queue_plan(struct queue *q, const char *made_by, struct plan *out);

#endif
