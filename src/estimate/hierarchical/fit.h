/* fit.h - learning the hyper-parameters: over campaigns, and then again on one site.
 *
 * By marginal likelihood, with Adam on its exact gradient. Over campaigns each step draws some
 * readings of every one; at a site the variances are estimated again around the campaigns', so that
 * a site that is unlike them says so itself. The same arguments give the same numbers, where
 * OpenBLAS does the same arithmetic.
 */
#ifndef ESTIMATE_HIERARCHICAL_FIT_H
#define ESTIMATE_HIERARCHICAL_FIT_H

#include <stdint.h>

#include "estimate/hierarchical/effects.h"

struct arena;
struct err;

/* What was read at one site. */
struct campaign_readings {
    const struct site *site;
    const struct reading *list;    // (n)
    int n;
};

struct fit_options {
    uint64_t seed;
    int n_steps;              // of Adam
    int n_alone, n_beside;    // readings of either kind drawn from each campaign in a step
};
extern const struct fit_options fit_defaults;

/* -EDOM: numbers that no covariance can take. */
int hyper_fit(const struct campaign_readings *campaigns, int n, const struct fit_options *o,
              struct hyper *out, struct err *e);

/* 'around' as estimated again from what was read at one site; the same where that is too little. */
int hyper_refit(const struct hyper *around, const struct campaign_readings *site, uint64_t seed,
                struct hyper *out, struct err *e);

/* Minus ln of the likelihood of 'n' readings, and its gradient, added to 'slope' (HYPERS). What
 * 'a' is needed for is left in it.
 */
int hyper_loss(struct arena *a, const struct hyper *h, const struct effects *at,
               const double *value, const double *noise, int n, double *loss, double *slope,
               struct err *e);

/* By what the posterior's standard deviations are too small here, of speeds alone and of
 * slowdowns, at least 1, 'known' of a workload's speeds alone once some were read, at least
 * 'alone'; and how wrong it is: from how readings of each family were foreseen by those of all
 * others. Of the families those whose index is even (half 0) or odd (1); -1: all.
 */
struct hyper_scale {
    double alone, beside, known;
    double error;    // mean |ln| of either kind, and of both the mean; NaN: of nothing
};
int hyper_calibrate(const struct hyper *h, const struct campaign_readings *site, int half,
                    struct hyper_scale *out, struct err *e);

#endif
