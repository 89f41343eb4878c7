/* power.h - watts of a GPU that several jobs share.
 *
 * Nobody has published what co-located jobs draw, so there are two models (docs/experiments.md).
 * Plans begin with the additive one: idle, plus each job's dynamic part scaled by its slowdown, at
 * most the cap; what was measured corrects it (shared.h). The simulated world does what its cluster
 * file says (power_drawn).
 */
#ifndef ESTIMATE_PRIOR_POWER_H
#define ESTIMATE_PRIOR_POWER_H

#include "catalog/cluster/cluster.h"    // enum power_model
#include "estimate/prior/limits.h"

struct gpu_type;

/* 'alone_w[i]' is what the GPU draws with job i alone on it; 'share[i]' how fast job i
 * runs relative to that (its slowdown; for inference also times its load); 'factor' what the sum
 * above idle is multiplied by, where more is known than the law.
 */
double power_shared_w(const struct gpu_type *g, const double *alone_w, const double *share, int n,
                      double factor);

/* A job's part of that above idle. */
double power_dynamic_w(const struct gpu_type *g, double alone_w, double share);

/* What it draws without a power limit under model 'm', and the factor of every job's speed:
 * - additive: the same; where the sum exceeds the cap, it draws the cap and clocks fall: by the law
 *   of limits.h for a limit of the cap, relative to what that takes from one that draws just the
 *   cap, so that nothing jumps there.
 * - saturating: each job uses its part of what the others leave of the room above idle,
 *   idle + (cap - idle) * (1 - product of (1 - part_i)). It never exceeds the cap, no clock falls.
 * Alone, or with a cap that nobody knows, both are the same.
 */
struct limited power_drawn(enum power_model m, const struct gpu_type *g, const double *alone_w,
                           const double *share, int n);

#endif
