/* commission.h - which few measurements would teach a site most.
 *
 * A measurement is a run of two programs on one GPU, each alone and then both together, or of one
 * alone where nobody may share. What is to be known (targets) are speeds alone and slowdowns of the
 * workloads that decisions will be about. Asked by whoever commissions a site, of the posterior of
 * its estimator, which knows what it knew afterwards; the same arguments give the same answer.
 */
#ifndef ESTIMATE_COMMISSION_H
#define ESTIMATE_COMMISSION_H

#include <stdbool.h>
#include <stdint.h>

#include "estimate/site/site.h"

struct arena;
struct cell_belief;
struct estimator;

/* Measurements that are chosen at most: four readings each, and a posterior that was just made has
 * room for 256.
 */
enum { COMMISSION_MOST = 50 };

/* GPUs of the site. */
struct commission_types {
    const int *types;    // (n) those that there are
    int n;
    int theta;    // jobs that may share a GPU, where its type does not say less
};

/* What is to be known of 'workloads' on these types: alone and, where they may share, beside each
 * other; what hardly fits is left out, and of many cells some by chance. READ_ALONE and
 * READ_SLOWDOWN. Returns how many.
 */
int commission_targets(struct arena *a, const struct estimator *e,
                       const struct commission_types *there, const int *workloads, int n_workloads,
                       uint64_t seed, struct reading **out);

/* What decisions believe of such a target: ln steps/s, or ln slowdown. */
struct cell_belief commission_belief(const struct estimator *e, const struct reading *target);

/* How sure the targets are: mean standard deviations of the logarithms, of all of them and of each
 * kind; 0 of none.
 */
struct commission_doubt {
    double all, alone, beside;
    int n_alone, n_beside;
};

/* Of those on 'type'; -1: on any. */
struct commission_doubt commission_doubt(const struct estimator *e, const struct reading *targets,
                                         int n, int type);

/* One measurement. */
struct commission_pick {
    int type, a, b;           // workloads; b -1: alone
    double gain;              // by how much the mean sd of all targets falls, after those before it
    int n_alone, n_beside;    // cells of the type that were measured, and pairs, before any of this
    int n_earlier;            // measurements of the same type that were chosen before it
    struct commission_doubt before, after;    // of the targets on this type
};

/* With what may be measured, and for what. */
struct commission_means {
    struct commission_types there;
    const int *programs;    // (n_programs) workloads whose programs are at hand
    int n_programs;
    const struct reading *targets;    // (n_targets)
    int n_targets;
    uint64_t seed;    // of more candidates than can be tried, some by chance
};

/* Up to 'n_most' measurements, each the one that makes the mean standard deviation of targets fall
 * most after those before it; of equals the first. Returns how many: fewer where nothing is left
 * that teaches anything, COMMISSION_MOST at most.
 */
int commission_choose(struct arena *a, const struct estimator *e,
                      const struct commission_means *with, int n_most, struct commission_pick *out);

/* Why this one, as a sentence without a full stop. */
const char *commission_why(struct arena *a, const struct estimator *e,
                           const struct commission_pick *pick);

#endif
