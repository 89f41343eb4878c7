#include "estimate/prior/roofline.h"

#include <math.h>

#include "catalog/gpu_type.h"
#include "catalog/workload.h"

/* What frameworks commonly reach of the peak rates: round numbers that were not fitted, so that
 * errors on held-out measurements are honest. On the isolated speeds of Gavel's 26 workloads on
 * three GPU types the logarithm then has a bias of -0.13 and an sd of 0.52; docs/experiments.md
 * has the command that measures this.
 */
#define COMPUTE_REACHED 0.40
#define MEMORY_REACHED 0.40
#define SPEED_SD 0.52

/* Each feature that had to be assumed makes the estimate this much less sure. */
#define UNKNOWN_SD 0.25

/* Slowdown of two jobs: the device is shared in time, so busy shares collide; a part of
 * the loss is there whatever the shares. Two round numbers, fitted to Gavel's 1,881 pairs:
 * mean error 0.14; of the log, bias -0.03 and sd 0.34.
 */
#define CLASH_ALWAYS 0.40
#define CLASH_BUSY 0.50

/* A median model, for features nobody told us: ResNet-50-like. */
static const struct workload_step typical = {
    .flop = 1e12, .bytes = 10e9, .kernels = 1000, .host_s = 0.02, .mem_bytes = 4e9
};

/* And a middling GPU, for types that an import named and nobody described: V100-like. */
static const struct gpu_type typical_gpu = {
    .peak_fp32_flops = 14e12,
    .peak_fp16_flops = 100e12,
    .bandwidth_bytes_s = 800e9,
    .launch_s = 5e-6,
    .idle_w = 30,
    .cap_w = 250,
};

static double known_or(double value, double assumed, int *n_unknown)
{
    if (!isnan(value))
        return value;
    ++*n_unknown;
    return assumed;
}

/* Figures of a GPU type are positive where they are known. */
static double figure_or(double value, double assumed, int *n_unknown)
{
    return known_or(value > 0 ? value : (double)NAN, assumed, n_unknown);
}

/* Tensor cores multiply, and what lies between products runs outside of them: programs of reduced
 * precision reach about the geometric mean of both rates. (Half over full precision is 1.4 to 2.6
 * times as fast on TITAN V, TITAN RTX and RTX 2080 Ti in pytorch_gpu_benchmark, alike in training
 * and inference; the mean says 2.0 to 2.8, tensor cores alone 4 to 8.) Of whom nobody said a
 * precision: training is between FP32 and TF32, which is what frameworks choose where there is
 * TF32; what serves is tuned for FP16, all of it.
 */
static double peak_of(const struct workload *w, const struct gpu_type *g)
{
    enum precision p = w->precision;

    if (p == PRECISION_UNKNOWN && w->is_inference)
        return gpu_type_peak(g, PRECISION_FP16);
    if (p == PRECISION_UNKNOWN)
        p = PRECISION_TF32;
    double narrow = gpu_type_peak(g, p), wide = gpu_type_peak(g, PRECISION_FP32);
    return narrow == wide ? wide : sqrt(narrow * wide);    // exactly the rate where it is one
}

void roofline(const struct workload *w, const struct gpu_type *g, struct roofline *out)
{
    struct workload_step step = workload_step(w);
    const struct gpu_type *t = &typical_gpu;
    int unknown = 0;
    double peak = figure_or(peak_of(w, g), peak_of(w, t), &unknown);
    double bandwidth = figure_or(g->bandwidth_bytes_s, t->bandwidth_bytes_s, &unknown);
    double launch_s = figure_or(g->launch_s, t->launch_s, &unknown);

    *out = (struct roofline){
        .compute_s = known_or(step.flop, typical.flop, &unknown) / (COMPUTE_REACHED * peak),
        .memory_s = known_or(step.bytes, typical.bytes, &unknown) / (MEMORY_REACHED * bandwidth),
        .launch_s = known_or(step.kernels, typical.kernels, &unknown) * launch_s,
        .host_s = known_or(step.host_s, typical.host_s, &unknown),
        .mem_bytes = known_or(step.mem_bytes, typical.mem_bytes, &unknown),
    };
    out->n_unknown = unknown;
    out->step_s = fmax(out->compute_s + out->memory_s + out->launch_s + out->host_s, 1e-9);
}

/* Share of the step during which the device has something to do. */
static double busy_share(const struct roofline *r)
{
    return 1 - r->host_s / r->step_s;
}

double roofline_slowdown(const struct roofline *w, const struct roofline *neighbour)
{
    return 1 / (1 + CLASH_ALWAYS + CLASH_BUSY * busy_share(w) * busy_share(neighbour));
}

double roofline_watts(const struct roofline *w, const struct gpu_type *g)
{
    double compute = w->compute_s / w->step_s;
    double memory = w->memory_s / w->step_s;

    /* Zeus's averages at full limit are 42-64 % of it; launch-bound work draws little. */
    double busy = 0.15 + 0.65 * compute + 0.45 * memory;
    const struct gpu_type *from = g->idle_w > 0 && g->cap_w > 0 ? g : &typical_gpu;
    return from->idle_w + (from->cap_w - from->idle_w) * fmin(busy, 1);
}

double roofline_gang(int n, int is_spread)
{
    /* Gavel's gangs of 2, 4 and 8: the median speed-up gives 0.88, 0.82 and 0.89 per
     * doubling on one node, 0.58, 0.67 and 0.72 over several.
     */
    return n * pow(is_spread ? 0.66 : 0.87, log2(n));
}

double roofline_speed_sd(const struct roofline *w)
{
    return sqrt(SPEED_SD * SPEED_SD + w->n_unknown * UNKNOWN_SD * UNKNOWN_SD);
}
