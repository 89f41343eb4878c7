/* limits.h - what a power limit does to a GPU: a law over all workloads and types, and how one
 * workload on one type differs from it.
 *
 * A GPU that would draw w0 watts draws less under a limit, and everything on it runs slower by one
 * factor. Pure functions of the watts: who draws near the limit is slowed, who idles is not.
 * Read by: plans and their judge, measurements taken under a limit, and the simulated world,
 * where workloads differ from the law. docs/experiments.md states it with its errors.
 */
#ifndef ESTIMATE_PRIOR_LIMITS_H
#define ESTIMATE_PRIOR_LIMITS_H

struct gpu_type;

struct limited {
    double watts;    // drawn
    double speed;    // factor of every job's speed, 0 < speed <= 1
    double low;      // the same, held with confidence (estimate_limited); elsewhere as 'speed'
};

/* A GPU of type 'g' that would draw 'w0' watts, under 'limit_w' (0: its default, which changes
 * nothing).
 */
struct limited limits_apply(const struct gpu_type *g, int limit_w, double w0);

/* How a workload on a type differs from the law: under every limit ln speed falls 'loss' times as
 * far, and ln watts 'draw' times. Several on one GPU differ by the mean of theirs, each weighted by
 * its dynamic watts: clocks fall for all of them.
 */
struct limit_bend {
    double loss, draw;    // 1 and 1: as the law says
    double loss_sd;       // of the belief in 'loss'
    double at;            // ln factor where speeds were measured: there 'loss' does not matter
};

/* By how much, as sd of ln loss and ln draw: what is left of Zeus's measurements under deep limits
 * (0.20 in ln speed where the law takes 0.67, 0.06 in ln watts where it takes 0.71).
 */
#define LIMITS_LOSS_SD 0.3
#define LIMITS_DRAW_SD 0.1

/* Of whom nothing is known: the law, as sure as that is. */
extern const struct limit_bend limit_law;

/* limits_apply for who differs by 'b'. A device keeps its limit: never above it, where the law is
 * not.
 */
struct limited limits_bent(const struct gpu_type *g, int limit_w, double w0, struct limit_bend b);
struct limit_bend limit_bend_mean(const struct limit_bend *b, const double *weights, int n);

/* How wrong the factor is, as a part of what it takes away: 5 % where speeds halve. */
#define LIMITS_ERROR 0.1

/* What it would draw without the limit, when it draws 'watts' under it and differs from the law by
 * 'b'.
 */
double limits_undo_bent(const struct gpu_type *g, int limit_w, double watts, struct limit_bend b);

enum { LIMITS_OFFERED = 7 };

/* The limits that plans choose from, falling, into 'out' (LIMITS_OFFERED); returns how many: from
 * the type's lowest limit or the deepest that pays, whichever is higher, in steps up. None for a
 * type that accepts no limit or whose figures are not known.
 */
int limits_offer(const struct gpu_type *g, int *out);

#endif
