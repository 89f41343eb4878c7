/* fit.h - the chance that jobs do not fit together: memory first, then what was seen.
 *
 * A logistic curve in the logarithm of the memory asked for over the memory there is. Descriptors
 * are rough, so every family and every workload has a factor on its memory, learned from pairs
 * that did and did not fit (as what is most likely, with factors of 1 the belief before). Part of
 * P1; lives in the arena it was made in.
 */
#ifndef ESTIMATE_P1_FIT_H
#define ESTIMATE_P1_FIT_H

#include "estimate/p1/examples.h"

struct arena;
struct err;
struct weights;

/* What was learned of one workload's memory. */
struct fit_factor {
    struct identity who;
    double of_family;      // ln factor that the family has
    double of_workload;    // and on top of it the workload
};

struct fit {
    double steepness;
    double doubtful;               // ln of the share of memory at which the chance is a half
    double overhead;               // of each process, as a share of 16 GB
    struct fit_factor *factors;    // (n) workloads it learned from
    int n;
};

/* Learn from what 'v' shows. */
void fit_learn(struct arena *a, const struct examples *x, const struct holdout *v, struct fit *out);

/* Share of the device's memory that a workload is believed to take, its overhead included. */
double fit_share(const struct fit *f, const struct identity *who, const struct features *on);

/* The chance that jobs with these shares together do not fit. */
double fit_unfit(const struct fit *f, double shares);

/* The shares at which that chance is 'unfit_max'. */
double fit_share_max(const struct fit *f, double unfit_max);

void fit_save(const struct fit *f, struct weights *to);
int fit_load(struct arena *a, const struct weights *from, struct fit *out, struct err *e);

#endif
