/* lab.h - what the tests of P1 and its parts share: a small world whose rule is known, its
 * measurements, and linear algebra that is slow and plain.
 */
#ifndef TESTS_UNIT_ESTIMATE_P1_LAB_H
#define TESTS_UNIT_ESTIMATE_P1_LAB_H

#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/rng.h"
#include "estimate/p1/examples.h"
#include "unit/support.h"
#include "unit/suite.h"

/* Eleven workloads of four families, three types. */
static const char lab_text[] =
    "type k80\ntype p100\ntype v100\n"
    "workload a16 family=A dataset=d batch=16 params=1e7 flop_per_sample=2e9 bytes_per_sample=3e7 "
    "kernels_per_step=300 cpu_ms_per_sample=0.2 cpu_ms_per_step=2 conv=1 gemm=0 rnn=0 sparse=0\n"
    "workload a32 family=A dataset=d batch=32 params=1e7 flop_per_sample=2e9 bytes_per_sample=3e7 "
    "kernels_per_step=300 cpu_ms_per_sample=0.2 cpu_ms_per_step=2 conv=1 gemm=0 rnn=0 sparse=0\n"
    "workload a64 family=A dataset=d batch=64 params=1e7 flop_per_sample=2e9 bytes_per_sample=3e7 "
    "kernels_per_step=300 cpu_ms_per_sample=0.2 cpu_ms_per_step=2 conv=1 gemm=0 rnn=0 sparse=0\n"
    "workload b8 family=B dataset=t batch=8 params=6e7 flop_per_sample=3e10 bytes_per_sample=2e8 "
    "kernels_per_step=900 cpu_ms_per_sample=0.1 cpu_ms_per_step=1 conv=0 gemm=1 rnn=0 sparse=0\n"
    "workload b16 family=B dataset=t batch=16 params=6e7 flop_per_sample=3e10 bytes_per_sample=2e8 "
    "kernels_per_step=900 cpu_ms_per_sample=0.1 cpu_ms_per_step=1 conv=0 gemm=1 rnn=0 sparse=0\n"
    "workload b32 family=B dataset=t batch=32 params=6e7 flop_per_sample=3e10 bytes_per_sample=2e8 "
    "kernels_per_step=900 cpu_ms_per_sample=0.1 cpu_ms_per_step=1 conv=0 gemm=1 rnn=0 sparse=0\n"
    "workload c20 family=C dataset=w batch=20 params=2e7 flop_per_sample=4e8 bytes_per_sample=1e7 "
    "kernels_per_step=4000 cpu_ms_per_sample=0.05 cpu_ms_per_step=1 conv=0 gemm=0.4 rnn=0.6 "
    "sparse=0\n"
    "workload c80 family=C dataset=w batch=80 params=2e7 flop_per_sample=4e8 bytes_per_sample=1e7 "
    "kernels_per_step=4000 cpu_ms_per_sample=0.05 cpu_ms_per_step=1 conv=0 gemm=0.4 rnn=0.6 "
    "sparse=0\n"
    "workload d512 family=D dataset=m batch=512 params=4e6 flop_per_sample=1e6 "
    "bytes_per_sample=1e5 kernels_per_step=80 cpu_ms_per_sample=0.02 cpu_ms_per_step=4 conv=0 "
    "gemm=0.3 rnn=0 sparse=0.7\n"
    "workload d1024 family=D dataset=m batch=1024 params=4e6 flop_per_sample=1e6 "
    "bytes_per_sample=1e5 kernels_per_step=80 cpu_ms_per_sample=0.02 cpu_ms_per_step=4 conv=0 "
    "gemm=0.3 rnn=0 sparse=0.7\n"
    "workload d2048 family=D dataset=m batch=2048 params=4e6 flop_per_sample=1e6 "
    "bytes_per_sample=1e5 kernels_per_step=80 cpu_ms_per_sample=0.02 cpu_ms_per_step=4 conv=0 "
    "gemm=0.3 rnn=0 sparse=0.7\n";

static inline void lab_record(struct world *w, int workload, int type, int neighbour,
                              double ln_speed, double watts)
{
    struct measurement m = {
        .key = { .workload = workload, .gpu_type = type, .neighbour = neighbour, .n_gpus = 1 },
        .fits = true,
        .throughput = exp(ln_speed),
        .watts = watts,
        .noise = 0.02
    };
    struct err e = { 0 };

    ck_assert_msg(catalog_record(&w->catalog, &m, 0, &e) == 0, "%s", e.text);
}

/* The rule: an efficiency of the family, less of it on compute; and neighbours that hurt by how
 * busy both are, those of family C more.
 */
static inline double lab_residual(const struct world *w, int workload, int type)
{
    static const double of_family[] = { 0.5, -0.3, 0.9, -0.6 };
    struct features f;

    features_of(&w->catalog.workloads[workload], &w->catalog.types[type], &f);
    return of_family[w->catalog.workloads[workload].family[0] - 'A'] - 0.4 * (double)f.share[0];
}

static inline double lab_ln_r(const struct world *w, int workload, int type, int neighbour)
{
    struct features f, g;

    features_of(&w->catalog.workloads[workload], &w->catalog.types[type], &f);
    features_of(&w->catalog.workloads[neighbour], &w->catalog.types[type], &g);
    double harm = w->catalog.workloads[neighbour].family[0] == 'C' ? 0.6 : 0.3;
    return -0.1 - harm * (0.3 + (double)f.busy) * (0.3 + (double)g.busy);
}

/* Measure everything of workloads first .. last-1 by the rule, on the first 'n_types' types. */
static inline void lab_measure(struct world *w, int first, int last, int n_types)
{
    for (int i = first; i < last; i++)
        for (int t = 0; t < n_types; t++) {
            struct features f;
            features_of(&w->catalog.workloads[i], &w->catalog.types[t], &f);
            double alone = f.ln_roofline + lab_residual(w, i, t);
            lab_record(w, i, t, -1, alone, exp(f.ln_watts + 0.1));
            for (int n = first; n < last; n++)
                lab_record(w, i, t, n, alone + lab_ln_r(w, i, t, n), NAN);
        }
}

/* x = k^-1 b for each of 'cols' columns of 'b' (n, cols), which becomes x. */
static inline void lab_solve(int n, double *k, int cols, double *b)
{
    for (int i = 0; i < n; i++)
        for (int r = 0; r < n; r++) {
            if (r == i)
                continue;
            double f = k[r * n + i] / k[i * n + i];
            for (int c = i; c < n; c++)
                k[r * n + c] -= f * k[i * n + c];
            for (int c = 0; c < cols; c++)
                b[r * cols + c] -= f * b[i * cols + c];
        }
    for (int i = 0; i < n; i++)
        for (int c = 0; c < cols; c++)
            b[i * cols + c] /= k[i * n + i];
}

#endif
