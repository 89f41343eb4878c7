/* doubts.h - measurements that may be in another unit than steps/s.
 *
 * Made from what an import has read, against the roofline; told to whoever imports, who knows
 * where the figures are from. Nothing is refused for it. Results live in the caller's arena.
 */
#ifndef ESTIMATE_PRIOR_DOUBTS_H
#define ESTIMATE_PRIOR_DOUBTS_H

struct arena;
struct gpu_type;
struct measurement;
struct workload;

/* A median further from the roofline than this is told. */
#define DOUBTS_TIMES 8

/* Measurements, and what their keys are indices of. */
struct doubts_of {
    const struct workload *workloads;
    int n_workloads;
    const struct gpu_type *types;
    const struct measurement *rows;
    int n_rows;
};

/* Sentences in '*out', and how many. Only of single GPUs at their default limit with one workload
 * on them, where every feature and figure is known:
 *
 *   - all of it, where speeds are about as many times the roofline as a batch has samples: they may
 *     be samples/s. Then nothing else is told;
 *   - a family on a type, where its median speed is more than DOUBTS_TIMES off.
 */
int doubts_find(struct arena *a, const struct doubts_of *of, const char ***out);

#endif
