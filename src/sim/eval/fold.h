/* fold.h - one fold of an evaluation: train without a part, then score that part.
 *
 * Folds share an eval_setting, which none of them changes, and each fills an eval_part of its
 * own: threads may run them side by side. eval.c makes both and merges the parts.
 */
#ifndef SIM_EVAL_FOLD_H
#define SIM_EVAL_FOLD_H

#include <stdbool.h>

#include "base/err.h"
#include "estimate/hierarchical/fit.h"
#include "estimate/p1/examples.h"
#include "estimate/p1/p1.h"
#include "refine/p2.h"
#include "sim/eval/score.h"

struct catalog;
struct eval_cells;

/* Members of P1, then ways of P2, then those that are neither. */
enum { EVAL_LOW_RANK = P1_MEMBERS + P2_WAYS, EVAL_HIERARCHICAL, EVAL_METHODS };
const char *eval_method_name(int method);

/* What the hierarchical model is of: speeds; and watts alone, as readings alone. */
enum { EVAL_SPEEDS, EVAL_WATTS_ALONE, EVAL_READS };

/* What is held out: one of the three; the others are -1. */
struct eval_fold {
    int workload, family, type;
};

struct eval_setting {
    const struct catalog *catalog;
    const struct eval_options *o;
    struct examples x;
    const struct eval_cells *cells;               // (n_workloads)
    struct site site;                             // all workloads on all types
    struct campaign_readings read[EVAL_READS];    // of the site's own campaign
    struct hyper hyper[EVAL_READS];               // as other campaigns of the store taught them
};

/* Owns heap memory. */
struct eval_part {
    struct eval_sum (*sums)[EVAL_METHODS];    // (n_k)
    struct eval_prediction *predictions;
    int n_predictions, cap_predictions;
    double *chance;    // (n_fits) that a pair does not fit
    bool *is_unfit;    // (n_fits) whether it was so
    int n_fits, cap_fits;
    int rc;
    struct err e;
};

void eval_part_init(struct eval_part *p, int n_k);
void eval_part_release(struct eval_part *p);

int eval_fold_run(const struct eval_setting *s, const struct eval_fold *fold, struct eval_part *out,
                  struct err *e);

/* Is anything of workload 'w' scored in the fold? */
bool eval_fold_scores(const struct eval_setting *s, const struct eval_fold *fold, int w);

#endif
