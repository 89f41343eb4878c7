/* limits.h - what a power limit does to a GPU, as a law over all workloads and types.
 *
 * A GPU that would draw w0 watts draws less under a limit, and everything on it runs slower by one
 * factor. Pure functions of the watts: who draws near the limit is slowed, who idles is not.
 * Read by: plans and their judge, measurements taken under a limit, and the simulated world,
 * where the law is the truth. docs/experiments.md states it with its errors.
 */
#ifndef ESTIMATE_LIMITS_H
#define ESTIMATE_LIMITS_H

struct gpu_type;

struct limited {
    double watts;    // drawn
    double speed;    // factor of every job's speed, 0 < speed <= 1
};

/* A GPU of type 'g' that would draw 'w0' watts, under 'limit_w' (0: its default, which changes
 * nothing).
 */
struct limited limits_apply(const struct gpu_type *g, int limit_w, double w0);

/* How wrong the factor is, as a part of what it takes away: 5 % where speeds halve. */
#define LIMITS_ERROR 0.1

/* What it would draw without the limit, when it draws 'watts' under it. */
double limits_undo(const struct gpu_type *g, int limit_w, double watts);

enum { LIMITS_OFFERED = 3 };

/* The limits that plans choose from, falling, into 'out' (LIMITS_OFFERED); returns how many. None
 * when the type's figures are not known.
 */
int limits_offer(const struct gpu_type *g, int *out);

#endif
