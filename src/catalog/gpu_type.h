/* gpu_type.h - what a kind of GPU can do and what it draws.
 *
 * Made from the built-in table (gpu_type_table.c, public figures with sources),
 * from 'gputype' lines of a configuration or cluster file, or from the store.
 * Read by every room to the right. Never changed once a run has begun.
 */
#ifndef CATALOG_GPU_TYPE_H
#define CATALOG_GPU_TYPE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text/text.h"
#include "catalog/precision.h"
#include "catalog/sharing.h"

struct buf;
struct err;

/* Figures are per device that a job can be given: a K80 is one of its two dies,
 * an MI250X one of its two. Dense rates, never with sparsity.
 */
struct gpu_type {
    const char *name;            // e.g. "v100-16"
    const char *title;           // e.g. "NVIDIA Tesla V100 PCIe 16 GB"
    double peak_fp32_flops;      // FLOP/s outside tensor cores
    double peak_tf32_flops;      // FLOP/s of matrices of FP32 numbers; 0: has nothing for them
    double peak_fp16_flops;      // FLOP/s, FP32 accumulation, tensor or matrix cores if any
    double peak_fp8_flops;       // FLOP/s; 0: it has no FP8
    double peak_int8_flops;      // OP/s; 0: it has no INT8
    double bandwidth_bytes_s;    // device memory, bytes/s
    double mem_bytes;            // device memory, bytes
    double launch_s;             // one kernel launch as the device sees it
    double idle_w;               // powered, no job
    double sleep_w;              // deepest state that wakes in seconds
    double cap_w;                // default power limit (TDP)
    double limit_low_w;          // lowest power limit it accepts; 0 or NaN: it has no other
    int share_max;               // 1: nobody shares one; 0: as the cluster's theta says
    enum sharing sharing;        // as this site has set them up, or is said to have
    int year;                    // of introduction
    int capability;              // CUDA's, times ten (8.6 is 86); 0: not CUDA, or not known
    const char *source;          // where the figures are from
};

/* The built-in type called 'name' or one of its aliases ("v100" is "v100-16"), by
 * text_alike; NULL when there is none.
 */
const struct gpu_type *gpu_type_builtin(const char *name);

/* All built-in types, oldest first. */
const struct gpu_type *gpu_type_builtin_all(int *n);

/* All figures unknown. */
void gpu_type_init(struct gpu_type *t, const char *name);

/* Take figures from 'more' that are unknown of 't': not above 0; and how such GPUs are shared,
 * where it says so (sharing_after): that is a setting of today. False: there were none.
 */
bool gpu_type_fill(struct gpu_type *t, const struct gpu_type *more);

/* Set one figure of 't' by its key as written in configuration files: peak_fp32, peak_tf32,
 * peak_fp16, peak_fp8, peak_int8 (TFLOP/s), bandwidth (GB/s), memory (GiB), launch (us), idle,
 * sleep, cap, limit_low (W), year, share_max, capability (8.6 or 86), sharing (sharing.h). -EINVAL:
 * no such key (the text lists them), not a number, or out of its plausible range (the text gives
 * the range).
 */
int gpu_type_set(struct gpu_type *t, struct slice key, struct slice value, struct err *e);

/* Append every figure that is known as ' key=value', as gpu_type_set reads them. */
int gpu_type_put(const struct gpu_type *t, struct buf *out);

/* Jobs that may share a GPU of this type where the cluster lets 'theta' share. */
static inline int gpu_type_theta(const struct gpu_type *t, int theta)
{
    int most = t->sharing == SHARING_EXCLUSIVE ? 1 : t->share_max;

    return most > 0 && most < theta ? most : theta;
}

/* The rate that a program of this precision is given: its own, or that of the next wider numbers
 * where the device has none for it. FP32 for an unknown one; not above 0 where that is not known.
 */
double gpu_type_peak(const struct gpu_type *t, enum precision precision);

/* A compute capability as people write it, "8.6" or "86", times ten; nothing is 0, unknown.
 * -EINVAL: neither of these, or out of its range.
 */
int gpu_capability_read(struct slice key, struct slice value, int *out, struct err *e);

/* 0 when every figure is present and sane (finite, positive, sleep <= idle <= cap; only
 * sleep, limit_low and the peaks of TF32, FP8 and INT8 may be 0); -EINVAL names the figure
 * that is not and how to give it.
 */
int gpu_type_check(const struct gpu_type *t, struct err *e);

#endif
