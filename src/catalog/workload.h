/* workload.h - what a job runs: 13 features, precision, a profile, any of which may be unknown.
 *
 * Made from the built-in table (workload_table.c), from a descriptor CSV, from
 * 'workload' lines of a configuration file, or from the store. Read by every room
 * to the right. A workload is a model at one batch size; the features are of the
 * model, and what one step costs is derived here and nowhere else.
 */
#ifndef CATALOG_WORKLOAD_H
#define CATALOG_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text/text.h"
#include "catalog/precision.h"

struct arena;
struct err;
struct gpu_type;

struct workload {
    const char *name;     // "ResNet-18 (batch size 16)": the model and its batch
    double batch;         // samples a step; NaN when the workload has none
    bool is_inference;    // forward only: other memory, other traffic

    /* The 13 features, in the order of the descriptor CSV. NULL or NaN: unknown. */
    const char *family;          // "ResNet-18": what generalises to an unseen batch size
    const char *task;            // "image-classification"
    const char *dataset;         // "CIFAR-10"
    double params;               // trainable parameters
    double flop_per_sample;      // forward + backward (inference: forward)
    double bytes_per_sample;     // device memory traffic
    double kernels_per_step;     // launches
    double cpu_ms_per_sample;    // host work
    double cpu_ms_per_step;
    double conv, gemm, rnn, sparse;    // which kinds of kernels dominate, 0..1 each

    /* Alone on a GPU, as a monitor saw it or somebody said; NaN: unknown. */
    double gpu_activity;      // share of the time in which kernels run, 0..1
    double mem_activity;      // share of the time in which memory is read or written, 0..1
    double solo_watts;        // of the GPU
    double mem_used_bytes;    // device memory in use

    enum precision precision;
    int needs_capability;    // lowest compute capability it runs on, times ten; 0: unknown
};

enum {
    WORKLOAD_NUMBERS = 10,    // the numeric features above, from params to sparse
    WORKLOAD_FIGURES = 14,    // with the profile
    WORKLOAD_FEATURES = 13,
    WORKLOAD_BATCH_MAX = 10000000,    // a recommender's largest is some 100,000
};

/* The numeric features by position, for tables and networks; behind them the profile. */
extern const char *const workload_number_names[WORKLOAD_FIGURES];
double workload_number(const struct workload *w, int i);
void workload_set_number(struct workload *w, int i, double value);

/* All features unknown. */
void workload_init(struct workload *w, const char *name);

/* Make unknown what workload_set would refuse: of a store or a recording from before it did. */
void workload_doubt(struct workload *w);

/* What was seen alone is unknown: it is of another batch or precision. */
void workload_forget_profile(struct workload *w);

/* False: the type's compute capability is known to be below the one that it needs. */
bool workload_may_run(const struct workload *w, const struct gpu_type *t);

/* What one step costs; NaN where a feature it needs is unknown. With batch NaN a step is
 * one sample.
 *
 *              training                                 inference
 *   flop       flop_per_sample * batch                  the same
 *   bytes      bytes_per_sample * batch + 24 * params   bytes_per_sample * batch + b * params
 *   mem_bytes  bytes_per_sample * batch/3 + 16 * params the same as bytes
 *   host_s     (cpu_ms_per_sample * batch + cpu_ms_per_step) / 1000
 *
 * Training in FP32 keeps weights, gradients and two moments (16 bytes a parameter), moves
 * them six times, and touches each kept activation three times. Inference reads its
 * weights once a step, b = 4 bytes each in FP32 and TF32, 1 in FP8 and INT8, else 2, and what it
 * reads a sample (a KV cache, mostly) stays resident.
 */
struct workload_step {
    double flop;
    double bytes;
    double kernels;
    double host_s;
    double mem_bytes;    // resident device memory
};
struct workload_step workload_step(const struct workload *w);

/* "ResNet-18" and 16 give "ResNet-18 (batch size 16)"; NaN gives the model alone. */
const char *workload_name(struct arena *a, const char *model, double batch);

/* The reverse: the model's part of a name, and the batch or NaN. A name that does not end
 * in " (batch size N)" with a number above 0 is all model. The slice points into 'name'.
 */
struct slice workload_name_split(const char *name, double *batch);

/* Make it the same model in another precision: "bert-base-fp16 (batch size 32)", of its family.
 * Activations are half as wide, or twice; the profile is unknown. Nothing changes where it is in
 * that precision already, or 'p' is unknown.
 */
void workload_to_precision(struct arena *a, struct workload *w, enum precision p);

/* The built-in model called 'model' or one of its aliases (by text_alike), at 'batch' or,
 * with NaN, at its usual batch. -ENOENT names some models that exist; -EINVAL: the batch
 * is not a whole number from 1 to WORKLOAD_BATCH_MAX.
 */
int workload_builtin(struct arena *a, const char *model, double batch, struct workload *out,
                     struct err *e);

/* The built-in models at their usual batch sizes, in table order; 'family' is the model's
 * own name.
 */
const struct workload *workload_builtin_all(int *n);

/* The first of them, which people usually run: generated traces are drawn from these. The others
 * are there because measurements of them are published, or because they ship (burn.h).
 */
const struct workload *workload_builtin_usual(int *n);

/* Set one feature by its CSV name ("params", "conv", ..., "family", "batch", "inference" as 0 or 1,
 * "precision", "needs_capability", "solo_watts" and others of the profile). An empty value makes
 * it unknown; a batch also renames the workload. -EINVAL lists the keys, or gives the range; then
 * 'w' is as before.
 */
int workload_set(struct arena *a, struct workload *w, struct slice key, struct slice value,
                 struct err *e);

#endif
