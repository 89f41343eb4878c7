/* shared.h - what GPUs draw that two jobs share, beyond the law of sums.
 *
 * The law (prior/power.h): idle, plus what each adds alone, scaled by its slowdown. What was
 * measured of pairs on a type says by what factor their watts above idle differ from it; a pair
 * that was measured itself knows better than its type. Owned by the estimator.
 */
#ifndef ESTIMATE_SHARED_H
#define ESTIMATE_SHARED_H

#include <stdbool.h>

struct estimator;

struct shared_watts {
    double *ln_type;    // (n_types) ln of the factor, of pairs that nobody has measured
    int n_types;
    bool is_known;    // anything was measured; otherwise all factors are 1
};

void shared_release(struct shared_watts *s);

/* Look at all that was measured. */
void shared_learn(const struct estimator *e, struct shared_watts *s);

/* The factor of the watts above idle of two workloads on a GPU of 'type'. */
double shared_factor(const struct estimator *e, int type, int workload, int neighbour);

#endif
