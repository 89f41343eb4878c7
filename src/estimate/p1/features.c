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
static void take_figures(const struct gpu_type *g, struct features *out)
{
    const struct {
        double value, middle;
    } figures[] = { { g->peak_fp32_flops, 14e12 },
                    { g->bandwidth_bytes_s, 900e9 },
                    { g->mem_bytes, 16e9 },
                    { g->launch_s, 6e-6 } };
    int n_known = g->year > 0;

    for (int i = 0; i < FEATURE_FIGURES - 1; i++) {
        bool is_known = figures[i].value > 0;
        out->figure[i] = is_known ? (float)log(figures[i].value / figures[i].middle) : 0;
        n_known += is_known;
    }
    out->figure[FEATURE_FIGURES - 1] = g->year > 0 ? (float)(g->year - 2017) / 3 : 0;
    out->figures_known = (float)n_known / FEATURE_FIGURES;
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
    };
    take_kinds(w, out->kind);
    take_figures(g, out);
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
