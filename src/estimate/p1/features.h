/* features.h - a workload on a GPU type, as numbers that can be learned from.
 *
 * Pure functions of a descriptor and a GPU's figures. Made by whoever learns or predicts;
 * read by the members of P1. Unknown features stand as those of a typical workload (see
 * roofline.h), and how many were known is a feature itself.
 */
#ifndef ESTIMATE_P1_FEATURES_H
#define ESTIMATE_P1_FEATURES_H

#include <stdbool.h>
#include <stdint.h>

struct gpu_type;
struct workload;

/* Who a workload is, without its numbers: digests of its texts, 0 for one that is unknown. A
 * model remembers workloads by these, so that it may travel between catalogs.
 */
struct identity {
    uint64_t name, family, dataset;
};

struct identity identity_of(const struct workload *w);

/* How closely two are related: 1 for one family on one dataset (they differ in their batch), a
 * half for one family on unlike data or on data that nobody named, 0 for strangers.
 */
double identity_kin(const struct identity *a, const struct identity *b);

enum { FEATURE_SHARES = 4, FEATURE_KINDS = 4, FEATURE_FIGURES = 5 };

struct features {
    double ln_roofline;               // ln steps/s that the roofline gives, alone
    double ln_watts;                  // ln watts that it gives, alone
    float share[FEATURE_SHARES];      // of the roofline's step: compute, memory, launch, host
    float kind[FEATURE_KINDS];        // conv, gemm, rnn, sparse; together at most 1
    float figure[FEATURE_FIGURES];    // of the GPU: ln peak, bandwidth, memory, launch; age
    float ln_batch;
    float ln_step_s;      // the roofline's step
    float ln_kernel_s;    // mean time of one kernel on the device
    float ln_params;
    float mem_share;        // of the device's memory
    float busy;             // share of the step during which the device has work
    float known;            // share of the workload's numbers that were known
    float figures_known;    // share of the GPU's figures that were known
};

/* No feature is beyond this, either way: shares, logarithms and thirds of years. */
#define FEATURE_MAX 1e3

void features_of(const struct workload *w, const struct gpu_type *g, struct features *out);

/* All of its numbers in a row, as they stand above, for files; and back. */
enum { FEATURE_NUMBERS = 2 + FEATURE_SHARES + FEATURE_KINDS + FEATURE_FIGURES + 8 };
void features_write(const struct features *f, double *row);
void features_read(const double *row, struct features *f);

/* Are these of one GPU type, figure for figure? */
bool features_are_of_one_type(const struct features *a, const struct features *b);

/* How alike two GPU types are, by their figures: 1 for the same, 0.1 for P100 and V100, near 0
 * for a K80 and a V100. A figure that is unknown counts as a V100's: see figures_known.
 */
double features_same_type(const struct features *a, const struct features *b);

#endif
