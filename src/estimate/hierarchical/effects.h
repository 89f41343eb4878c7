/* effects.h - what readings of a site have in common: the hierarchical model's mean and covariance.
 *
 * ln speed alone over the reference is a line in the features of workload and type, plus random
 * effects of the site, the type, the family, the workload, their products, a smooth function of the
 * first features, and one of its batch for each family: relatives have the more in common the
 * nearer their batches are. ln slowdown is the same with effects of the job and of its neighbour,
 * over how much of the device both want. A packed job shows the sum of both. So a reading is a
 * Gaussian vector's element, and everything that is to be said of another cell follows from its
 * covariance.
 *
 * How a type is shared (catalog/sharing.h) decides where slowdowns begin. Campaigns with pairs are
 * all of MPS: what they taught stands for it, and for types of which nobody knows better. Others
 * begin at a law of their own, and effects are around that: see enum beside_law.
 *
 * 'hyper' is what was learned: variances of effects and of slopes (their logarithms), and the
 * slopes' means over campaigns. Made by fit.h, read by posterior.h. A value.
 */
#ifndef ESTIMATE_HIERARCHICAL_EFFECTS_H
#define ESTIMATE_HIERARCHICAL_EFFECTS_H

#include "estimate/site/site.h"

enum { ALONE_X = SITE_JOB + SITE_GPU, BESIDE_X = 8, SMOOTH_X = 8 };

/* ln variances, then means. Of an effect that is named twice, 'by' is the neighbour's. */
enum hyper_at {
    ALONE_SITE,
    ALONE_TYPE,
    ALONE_FAMILY,
    ALONE_WORKLOAD,
    ALONE_TYPE_FAMILY,
    ALONE_CELL,           // type and workload
    ALONE_BATCH,          // of a family, of batches that are alike
    ALONE_TYPE_BATCH,     // and of one type
    ALONE_BATCH_SCALE,    // the square of the length scale of both
    ALONE_SMOOTH,         // and the square of its length scale
    ALONE_SCALE,
    ALONE_SLOPES,
    BESIDE_SITE = ALONE_SLOPES + ALONE_X,
    BESIDE_TYPE,
    BESIDE_FAMILY,
    BESIDE_BY_FAMILY,
    BESIDE_WORKLOAD,
    BESIDE_BY_WORKLOAD,
    BESIDE_TYPE_FAMILY,    // from here on of one type
    BESIDE_TYPE_BY_FAMILY,
    BESIDE_TYPE_WORKLOAD,
    BESIDE_TYPE_BY_WORKLOAD,
    BESIDE_TYPE_BATCH,    // of a family, of batches that are alike
    BESIDE_TYPE_BY_BATCH,
    BESIDE_FAMILIES,     // of both families
    BESIDE_BATCHES,      // of both families, where both batches are alike
    BESIDE_CELL,         // of both workloads
    BESIDE_SMOOTH,       // of jobs that are alike
    BESIDE_BY_SMOOTH,    // of neighbours that are alike
    BESIDE_SCALE,        // the square of the length scale of both
    BESIDE_SLOPES,
    VARIANCES = BESIDE_SLOPES + BESIDE_X,
    ALONE_MEAN = VARIANCES,    // intercept, then slopes
    BESIDE_MEAN = ALONE_MEAN + 1 + ALONE_X,
    HYPERS = BESIDE_MEAN + 1 + BESIDE_X,
};

struct hyper {
    double at[HYPERS];
};

/* Before anything was learned: where a fit begins, and what it is shrunk to. */
struct hyper hyper_start(void);

/* A batch lies between two knots, and has a part of both; their squares add up to 1. Batches are
 * as much alike as they have parts of the same knots.
 */
struct batch_at {
    int knot;
    double part[2];    // of it, and of the next one
};
struct batch_at effects_batch(const struct site_on *on);

/* Where slowdowns begin: as learned over campaigns; where jobs take turns, each gets half of the
 * device while both want it, so the speed is 1 / (1 + busy of both multiplied), as surely as what
 * was learned; in slices nobody slows anybody, far more surely. What is read under one law says
 * nothing of slowdowns under another.
 */
enum beside_law { LAW_LEARNED, LAW_TURNS, LAW_SLICES, LAWS };
enum beside_law effects_law(enum sharing s);
extern const double effects_law_sd[LAWS];    // standard deviations over those learned

/* A reading's place in the model: who it is of, and the features of its two parts. */
struct effects {
    enum reading_of of;
    int type, job, neighbour, family, by_family;
    double alone[ALONE_X], beside[BESIDE_X], by[SMOOTH_X];
    struct batch_at batch, by_batch;
    double doubt;
    enum beside_law law;
};
struct effects effects_of(const struct site *s, const struct reading *r);

/* Features of a pair: two of the job, two of its neighbour, and from BESIDE_JOINT on of both. */
enum { BESIDE_JOINT = 4 };
void effects_beside(const struct site_on *job, const struct site_on *by, double *x);

double effects_mean(const struct hyper *h, const struct effects *a);
double effects_beside_mean(const struct hyper *h, enum beside_law law,
                           const double *x);    // of a pair's features

/* exp of the ln variances, worked out once for many covariances. */
struct variances {
    double at[VARIANCES];
};
struct variances hyper_variances(const struct hyper *h);

/* The covariance of two readings, without their noise; 'slope' (VARIANCES) gets its derivative by
 * each ln variance, which is also that effect's part of it. (But for the two scales, which have
 * none.)
 */
double effects_covariance(const struct variances *v, const struct effects *a,
                          const struct effects *b, double *slope);

/* What of a cell's covariance with a reading is its own: of the speed alone; of the slowdown, the
 * job's part and its neighbour's. What is left of a slowdown's is by features of both and crossed.
 */
enum effects_part { PART_ALONE, PART_JOB, PART_BY, PARTS };
double effects_part(const struct variances *v, enum effects_part part, const struct effects *cell,
                    const struct effects *reading);

/* Crossed effects of a pair, from its type, families and batches: that of both families, and of
 * both near each of four pairs of knots. Readings that have a key in common have the effect's
 * variance times both weights in common.
 */
struct crossed {
    enum hyper_at effect;
    uint64_t key;
    double weight;
};
enum { CROSSED = 5 };
void effects_crossed(const struct effects *e, struct crossed out[CROSSED]);

/* A slowdown's variance, before anything was read, for a pair's features. */
double effects_beside_variance(const struct variances *v, enum beside_law law, const double *x);

#endif
