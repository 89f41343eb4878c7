/* score.h - figures of how right predictions were. Pure functions. */
#ifndef SIM_EVAL_SCORE_H
#define SIM_EVAL_SCORE_H

#include <stdbool.h>

#include "sim/eval/eval.h"

struct arena;

/* The figures of 'n' predictions of one workload, sequence, k and method; NaN where there is
 * nothing to tell. EVAL_FIT_AUC is not theirs: NaN. 'a' is for scratch.
 */
void eval_score(struct arena *a, const struct eval_prediction *p, int n,
                double figure[EVAL_FIGURES]);

struct eval_sum {
    double sum[EVAL_FIGURES];
    int n[EVAL_FIGURES];
};

/* Add figures, those that there are; add another sum; the means, NaN where there is nothing. */
void eval_sum_add(struct eval_sum *sum, const double figure[EVAL_FIGURES]);
void eval_sum_merge(struct eval_sum *sum, const struct eval_sum *other);
void eval_sum_means(const struct eval_sum *sum, double figure[EVAL_FIGURES]);

/* Rank correlation of two lists (n); equal numbers share the mean of their ranks. NaN: fewer
 * than two, or all of one list are equal.
 */
double eval_spearman(struct arena *a, const double *x, const double *y, int n);

/* Area under the ROC of 'score' (n) as a test for 'is_hit': the chance that a hit scores above
 * a miss, ties counting half. NaN: there is only one class.
 */
double eval_auc(struct arena *a, const double *score, const bool *is_hit, int n);

#endif
