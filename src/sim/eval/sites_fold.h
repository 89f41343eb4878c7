/* sites_fold.h - one fold of a campaign that is held out: a family that its site has never seen.
 *
 * Some cells of other families are revealed, the model that other campaigns taught is refitted and
 * calibrated on these, a newcomer's first measurements are added, and its other cells are scored.
 * Folds share an eval_site, which none of them changes, and each fills an eval_site_part of its
 * own: threads may run them side by side. sites.c makes both and merges the parts.
 */
#ifndef SIM_EVAL_SITES_FOLD_H
#define SIM_EVAL_SITES_FOLD_H

#include "base/err.h"
#include "sim/eval/eval.h"
#include "sim/eval/fold.h"

struct catalog;
struct eval_cells;

enum eval_site_method {
    SITES_ROOFLINE,
    SITES_NONE,    // nobody slows anybody
    SITES_MEAN,
    SITES_RIDGE,
    SITES_HIERARCHICAL,
    SITES_GOGH,
    SITES_METHODS
};
extern const char *const eval_site_method_names[SITES_METHODS];

struct eval_site {
    const struct catalog *catalog;
    const struct eval_options *o;
    const struct site *site;
    int campaign, at;    // 'at': of those that are held out the how-manieth
    struct campaign_readings read[EVAL_READS];    // of the campaign
    struct hyper hyper[EVAL_READS];               // as other campaigns taught them
    const struct eval_cells *cells;               // (n_workloads)
};

/* Owns heap memory. */
struct eval_site_part {
    struct eval_sum (*sums)[SITES_METHODS];    // (n_n, n_k)
    struct eval_prediction *predictions;
    int n_predictions, cap_predictions;
    int rc;
    struct err e;
};

void eval_site_part_init(struct eval_site_part *p, const struct eval_options *o);
void eval_site_part_release(struct eval_site_part *p);

int eval_site_fold_run(const struct eval_site *s, int family, struct eval_site_part *out,
                       struct err *e);

/* Is anything of workload 'w' scored when its family is held out? */
bool eval_site_scores(const struct eval_site *s, int w);

#endif
