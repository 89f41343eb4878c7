/* loss.h - how wrong a network is, and in which direction to go.
 *
 * Each loss looks at n rows of k outputs. Outputs and their gradients are columns of a
 * wider matrix: 'ld' floats lead from one row to the next (k, if they stand alone), so
 * that one output row may hold means, log-sds and logits of several heads. 'target' and
 * 'weight' are (n, k). A weight of 0 masks: the target there may be anything, also NaN.
 * weight NULL: all 1. Value and gradient are multiplied by 'scale', see loss_scale. The
 * gradient (of the k columns only) is overwritten; NULL: the value alone.
 */
#ifndef NN_LOSS_H
#define NN_LOSS_H

#include <stddef.h>

/* What makes the weighted sum over n numbers a weighted mean: 1 / sum of weights; 0 when
 * there are none. weight NULL: 1 / n.
 */
float loss_scale(size_t n, const float *weight);

/* Gaussian negative log likelihood, with its constant: means, and logarithms of standard
 * deviations, which stand in the same rows of the wider matrix.
 */
double loss_gauss(int n, int k, int ld, const float *mean, const float *log_sd, const float *target,
                  const float *weight, float scale, float *dmean, float *dlog_sd);

/* (x - target)^2 / 2. */
double loss_square(int n, int k, int ld, const float *x, const float *target, const float *weight,
                   float scale, float *dx);

/* Huber's: as the square within 'delta' > 0, from there on a line. */
double loss_huber(int n, int k, int ld, float delta, const float *x, const float *target,
                  const float *weight, float scale, float *dx);

/* Binary cross entropy of logits x; targets in [0, 1]. */
double loss_logistic(int n, int k, int ld, const float *x, const float *target, const float *weight,
                     float scale, float *dx);

#endif
