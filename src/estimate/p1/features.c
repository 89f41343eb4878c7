#include "estimate/p1/features.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "catalog/gpu_type.h"
#include "catalog/workload.h"
#include "estimate/prior/roofline.h"

/* FNV-1a, 64 bits: a handful of names, no enemies. */
static uint64_t digest(const char *text)
{
    uint64_t h = 14695981039346656037u;

    for (; text && *text; text++)
        h = (h ^ (unsigned char)*text) * 1099511628211u;
    return text ? h : 0;
}

struct identity identity_of(const struct workload *w)
{
    return (struct identity){ digest(w->name), digest(w->family), digest(w->dataset) };
}

double identity_kin(const struct identity *a, const struct identity *b)
{
    if (a->name == b->name)
        return 1;
    if (!a->family || a->family != b->family)
        return 0;
    return a->dataset && a->dataset == b->dataset ? 1 : 0.5;
}

/* Figures are taken relative to a V100, so that a GPU without one stands in the middle. */
static float ln_figure(double value, double middle)
{
    return value > 0 ? (float)log(value / middle) : 0;
}

static void take_figures(const struct gpu_type *g, float *figure)
{
    figure[0] = ln_figure(g->peak_fp32_flops, 14e12);
    figure[1] = ln_figure(g->bandwidth_bytes_s, 900e9);
    figure[2] = ln_figure(g->mem_bytes, 16e9);
    figure[3] = ln_figure(g->launch_s, 6e-6);
    figure[4] = g->year > 0 ? (float)(g->year - 2017) / 3 : 0;
}

static float figures_known(const struct gpu_type *g)
{
    int n = (g->peak_fp32_flops > 0) + (g->bandwidth_bytes_s > 0) + (g->mem_bytes > 0) +
            (g->launch_s > 0) + (g->year > 0);

    return (float)n / FEATURE_FIGURES;
}

static void take_kinds(const struct workload *w, float *kind)
{
    const double given[FEATURE_KINDS] = { w->conv, w->gemm, w->rnn, w->sparse };
    double sum = 0;

    for (int i = 0; i < FEATURE_KINDS; i++)
        sum += isnan(given[i]) ? 0 : given[i];
    for (int i = 0; i < FEATURE_KINDS; i++)
        kind[i] = isnan(given[i]) ? 0 : (float)(given[i] / fmax(sum, 1));
}

static float known_share(const struct workload *w)
{
    int n = 0;

    for (int i = 0; i < WORKLOAD_NUMBERS; i++)
        n += !isnan(workload_number(w, i));
    return (float)n / WORKLOAD_NUMBERS;
}

void features_of(const struct workload *w, const struct gpu_type *g, struct features *out)
{
    struct workload_step step = workload_step(w);
    struct roofline r;

    roofline(w, g, &r);
    double on_device_s = r.compute_s + r.memory_s;
    *out = (struct features){
        .ln_roofline = -log(r.step_s),
        .ln_watts = log(roofline_watts(&r, g)),
        .share = { (float)(r.compute_s / r.step_s), (float)(r.memory_s / r.step_s),
                   (float)(r.launch_s / r.step_s), (float)(r.host_s / r.step_s) },
        .ln_batch = w->batch >= 1 ? (float)log(w->batch) : 0,
        .ln_step_s = (float)log(r.step_s),
        .ln_kernel_s = (float)log(fmax(on_device_s, 1e-7) /
                                  fmax(isnan(step.kernels) ? 1000 : step.kernels, 1)),
        .ln_params = w->params >= 1 ? (float)log(w->params / 1e7) : 0,
        .mem_share = g->mem_bytes > 0 ? (float)fmin(r.mem_bytes / g->mem_bytes, 4) : 0.5f,
        .busy = (float)(1 - r.host_s / r.step_s),
        .known = known_share(w),
        .figures_known = figures_known(g),
    };
    take_kinds(w, out->kind);
    take_figures(g, out->figure);
}

/* Two doubles, then floats. */
enum { FEATURE_FLOATS = FEATURE_NUMBERS - 2, FLOATS_AT = offsetof(struct features, share) };
static_assert(offsetof(struct features, figures_known) ==
                  FLOATS_AT + (FEATURE_FLOATS - 1) * sizeof(float),
              "side by side");

void features_write(const struct features *f, double *row)
{
    float floats[FEATURE_FLOATS];

    memcpy(floats, (const char *)f + FLOATS_AT, sizeof floats);
    *row++ = f->ln_roofline;
    *row++ = f->ln_watts;
    for (int i = 0; i < FEATURE_FLOATS; i++)
        *row++ = (double)floats[i];
}

void features_read(const double *row, struct features *f)
{
    float floats[FEATURE_FLOATS];

    f->ln_roofline = *row++;
    f->ln_watts = *row++;
    for (int i = 0; i < FEATURE_FLOATS; i++)
        floats[i] = (float)*row++;
    memcpy((char *)f + FLOATS_AT, floats, sizeof floats);
}

bool features_are_of_one_type(const struct features *a, const struct features *b)
{
    for (int i = 0; i < FEATURE_FIGURES; i++)
        if (a->figure[i] != b->figure[i])
            return false;
    return true;
}

double features_same_type(const struct features *a, const struct features *b)
{
    const double scale = 0.35;    // of a logarithm, or of three years
    double sum = 0;

    for (int i = 0; i < FEATURE_FIGURES; i++) {
        double d = (double)(a->figure[i] - b->figure[i]) / scale;
        sum += d * d;
    }
    return exp(-sum / 2);
}
