/* fold.h - one fold of an evaluation: a part of a site that it has never seen.
 *
 * What is not of the part, or some of it, is revealed; the model that other campaigns taught is
 * refitted and calibrated on it, a newcomer's first measurements are added, and its other cells are
 * scored. Folds share an eval_site, which none of them changes, and each fills an eval_part of its
 * own: threads may run them side by side. eval.c makes both and merges the parts.
 */
#ifndef SIM_EVAL_FOLD_H
#define SIM_EVAL_FOLD_H

#include <stdbool.h>

#include "estimate/hierarchical/fit.h"
#include "sim/eval/known.h"
#include "sim/eval/score.h"

struct catalog;
struct err;
struct eval_cells;

/* A campaign. */
struct eval_site {
    const struct catalog *catalog;
    const struct eval_options *o;
    const struct site *site;
    int campaign, at;                          // 'at': of those that are evaluated the how-manieth
    struct campaign_readings read[LEARNED];    // of the campaign
    struct hyper hyper[LEARNED];               // as other campaigns taught them
    const struct eval_cells *cells;            // (n_workloads)
    const struct network *network;             // NULL: nobody asks it
};

/* What is held out: one of the three; the others are -1. */
struct eval_fold {
    const struct eval_site *site;
    int workload, family, type;
};

/* Owns heap memory. */
struct eval_part {
    struct eval_sum (*sums)[EVAL_METHODS];    // (n_n, n_k)
    struct eval_prediction *predictions;
    int n_predictions, cap_predictions;
};

void eval_part_init(struct eval_part *p, const struct eval_options *o);
void eval_part_release(struct eval_part *p);

int eval_fold_run(const struct eval_fold *fold, struct eval_part *out, struct err *e);

/* Is anything of workload 'w' scored in the fold? */
bool eval_fold_scores(const struct eval_fold *fold, int w);

/* Does the method have a row? */
bool eval_has(const struct eval_options *o, enum eval_method m);

#endif
