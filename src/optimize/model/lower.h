/* lower.h - from a snapshot and its estimates to a problem.
 *
 * Called by: the cycle, and whoever wants to see what was asked. What is not allowed (any more) and
 * is so all the same (theta was lowered, sharing was switched off, an estimate says that those on a
 * GPU do not fit) is frozen: it stays as it is, with everybody on those GPUs. A limit on somebody
 * who must not be limited (any more) is seen as lifted, as far as a power cap leaves the watts for
 * that; else it is frozen too. Lives in the arena it was made in.
 */
#ifndef OPTIMIZE_MODEL_LOWER_H
#define OPTIMIZE_MODEL_LOWER_H

#include "optimize/model/problem.h"

struct arena;
struct err;
struct estimator;
struct snapshot;
struct solve_options;

struct lowered {
    const struct snapshot *snapshot;    // what it was made of
    struct problem problem;    // GPUs and jobs in the snapshot's order; frozen jobs are gone
    const int *type_of;        // (n_types) the catalog's index of each of its types
    const int *workload_of;    // (n_kinds)
};

/* 0, or -EINVAL: not a problem (more than 64 types, say), with what is wrong in 'e'. */
int lower_problem(struct arena *a, const struct snapshot *s, const struct estimator *est,
                  const struct solve_options *o, struct lowered *out, struct err *e);

#endif
