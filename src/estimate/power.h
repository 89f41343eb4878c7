/* power.h - watts of a GPU that several jobs share.
 *
 * The additive model (docs/experiments.md): idle, plus each job's dynamic part scaled
 * by its slowdown, at most the cap.
 */
#ifndef ESTIMATE_POWER_H
#define ESTIMATE_POWER_H

struct gpu_type;

/* 'alone_w[i]' is what the GPU draws with job i alone on it; 'share[i]' how fast job i
 * runs relative to that (its slowdown; for inference also times its load).
 */
double power_shared_w(const struct gpu_type *g, const double *alone_w, const double *share, int n);

#endif
