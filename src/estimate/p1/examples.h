/* examples.h - what was measured, as examples to learn from.
 *
 * Made by examples_take from the catalog; read by the members of P1, by P2's training and by
 * `gogh eval`. A value: it borrows nothing, so that a worker thread may learn from it while
 * the catalog grows. Lives in the arena it was made in.
 *
 * Logarithms throughout: a job's own speed as the residual over its roofline, a neighbour's
 * effect as ln r (at most 0), watts as the residual over the roofline's.
 */
#ifndef ESTIMATE_P1_EXAMPLES_H
#define ESTIMATE_P1_EXAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include "estimate/p1/features.h"

struct arena;
struct catalog;

struct example {
    int workload, gpu_type;
    int neighbour;    // -1: alone
    float value;      // ln residual of the speed alone; beside a neighbour ln r
    float noise;      // its standard deviation
};

struct fit_example {
    int workload, gpu_type, neighbour;    // neighbour -1: alone
    bool is_unfit;
};

struct examples {
    int n_workloads, n_types;
    int n_families;
    int *family;              // (n_workloads) a small number for each family
    struct identity *who;     // (n_workloads)
    struct features *at;      // (n_workloads, n_types)
    struct example *alone;    // (n_alone) ordered by workload
    struct example *pairs;    // (n_pairs) ordered by workload
    struct example *watts;    // (n_watts) alone
    struct fit_example *fits;
    int n_alone, n_pairs, n_watts, n_fits;
};

/* Cells beside neighbours that are learned from at once. More are thinned out family by family
 * (the replay buffer): the cube of this bounds a training. 2,048 take about a second on one
 * core.
 */
#define EXAMPLES_PAIRS_MAX 2048

/* Everything in 'c' that can be learned from (one GPU, default limit). Where pairs are more
 * than 'max_pairs', every (family, neighbour's family) keeps its fair part, drawn by 'seed'.
 */
void examples_take(struct arena *a, const struct catalog *c, int max_pairs, uint64_t seed,
                   struct examples *out);

static inline const struct features *examples_at(const struct examples *x, int workload, int type)
{
    return &x->at[workload * x->n_types + type];
}

/* Which workloads and types a training may look at; the rest is held out, in whatever role. */
struct holdout {
    const bool *is_held;         // (n_workloads)
    const bool *is_held_type;    // (n_types); NULL: none
};

static inline bool holdout_shows(const struct holdout *v, int workload, int type, int neighbour)
{
    return !v->is_held[workload] && (neighbour < 0 || !v->is_held[neighbour]) &&
           !(v->is_held_type && v->is_held_type[type]);
}

#endif
