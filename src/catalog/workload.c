#include "catalog/workload.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "catalog/gpu_type.h"

/* The numeric features in CSV order and the profile, with ranges that refuse slips of unit, and
 * zeros where a zero says "not measured": no step is without work, traffic and launches. The
 * largest models of today are within a hundredth of the upper ends.
 */
static const struct number {
    size_t offset;    // of a double in struct workload
    double low, high;
} numbers[WORKLOAD_FIGURES] = {
    { offsetof(struct workload, params), 0, 1e14 },
    { offsetof(struct workload, flop_per_sample), 1, 1e18 },
    { offsetof(struct workload, bytes_per_sample), 1, 1e15 },
    { offsetof(struct workload, kernels_per_step), 1, 1e7 },
    { offsetof(struct workload, cpu_ms_per_sample), 0, 1e6 },
    { offsetof(struct workload, cpu_ms_per_step), 0, 1e7 },
    { offsetof(struct workload, conv), 0, 1 },
    { offsetof(struct workload, gemm), 0, 1 },
    { offsetof(struct workload, rnn), 0, 1 },
    { offsetof(struct workload, sparse), 0, 1 },
    { offsetof(struct workload, gpu_activity), 0, 1 },
    { offsetof(struct workload, mem_activity), 0, 1 },
    { offsetof(struct workload, solo_watts), 1, 5000 },
    { offsetof(struct workload, mem_used_bytes), 1e6, 1e13 },
};

const char *const workload_number_names[WORKLOAD_FIGURES] = {
    "params",
    "flop_per_sample",
    "bytes_per_sample",
    "kernels_per_step",
    "cpu_ms_per_sample",
    "cpu_ms_per_step",
    "conv",
    "gemm",
    "rnn",
    "sparse",
    "gpu_activity",
    "mem_activity",
    "solo_watts",
    "mem_used_bytes",
};

#define KEYS                                                                               \
    "family, task, dataset, params, flop_per_sample, bytes_per_sample, kernels_per_step, " \
    "cpu_ms_per_sample, cpu_ms_per_step, conv, gemm, rnn, sparse, gpu_activity, "          \
    "mem_activity, solo_watts, mem_used_bytes, precision, needs_capability, batch, inference"

double workload_number(const struct workload *w, int i)
{
    double value;

    assert(i >= 0 && i < WORKLOAD_FIGURES);
    memcpy(&value, (const char *)w + numbers[i].offset, sizeof value);
    return value;
}

void workload_set_number(struct workload *w, int i, double value)
{
    assert(i >= 0 && i < WORKLOAD_FIGURES);
    memcpy((char *)w + numbers[i].offset, &value, sizeof value);
}

void workload_init(struct workload *w, const char *name)
{
    *w = (struct workload){ .name = name, .batch = NAN };
    for (int i = 0; i < WORKLOAD_FIGURES; i++)
        workload_set_number(w, i, NAN);
}

static bool is_plausible(int i, double value)
{
    return value >= numbers[i].low && value <= numbers[i].high;
}

void workload_doubt(struct workload *w)
{
    for (int i = 0; i < WORKLOAD_FIGURES; i++)
        if (!is_plausible(i, workload_number(w, i)))
            workload_set_number(w, i, NAN);
}

bool workload_may_run(const struct workload *w, const struct gpu_type *t)
{
    return w->needs_capability <= 0 || t->capability <= 0 || t->capability >= w->needs_capability;
}

/* Bytes of a weight that inference reads. */
static double weight_bytes(enum precision p)
{
    if (p == PRECISION_FP32 || p == PRECISION_TF32)
        return 4;
    return p == PRECISION_FP8 || p == PRECISION_INT8 ? 1 : 2;
}

struct workload_step workload_step(const struct workload *w)
{
    double batch = isnan(w->batch) ? 1 : w->batch;
    double moved = w->bytes_per_sample * batch;
    struct workload_step step = {
        .flop = w->flop_per_sample * batch,
        .kernels = w->kernels_per_step,
        .host_s = (w->cpu_ms_per_sample * batch + w->cpu_ms_per_step) / 1000,
    };

    if (w->is_inference) {
        step.bytes = moved + weight_bytes(w->precision) * w->params;
        step.mem_bytes = step.bytes;
    } else {
        step.bytes = moved + 24 * w->params;
        step.mem_bytes = moved / 3 + 16 * w->params;
    }
    return step;
}

/* 15 digits write every whole batch, and every fraction a person would type, exactly. */
const char *workload_name(struct arena *a, const char *model, double batch)
{
    if (isnan(batch))
        return arena_strdup(a, model);
    return arena_printf(a, "%s (batch size %.15g)", model, batch);
}

struct slice workload_name_split(const char *name, double *batch)
{
    static const char mark[] = " (batch size ";
    const size_t n_mark = sizeof mark - 1;
    struct slice all = slice_of(name);
    double number;

    *batch = NAN;
    if (all.len == 0 || name[all.len - 1] != ')')
        return all;
    for (size_t at = all.len - 1; at-- > 0;) {
        if (strncmp(name + at, mark, n_mark) != 0)
            continue;
        struct slice digits = { name + at + n_mark, all.len - 1 - at - n_mark };
        if (at == 0 || text_to_double(digits, &number) < 0 || number <= 0)
            return all;
        *batch = number;
        return (struct slice){ name, at };
    }
    return all;
}

void workload_forget_profile(struct workload *w)
{
    w->gpu_activity = w->mem_activity = w->solo_watts = w->mem_used_bytes = NAN;
}

/* Bytes of an activation. Nobody having said it, training is counted in FP32 and inference in
 * FP16, as in the built-in table; narrower programs keep 16 bits between their products.
 */
static double activation_bytes(const struct workload *w)
{
    if (w->precision == PRECISION_UNKNOWN)
        return w->is_inference ? 2 : 4;
    return w->precision <= PRECISION_TF32 ? 4 : 2;
}

void workload_to_precision(struct arena *a, struct workload *w, enum precision p)
{
    double batch, before = activation_bytes(w);
    struct slice model = workload_name_split(w->name, &batch);
    const char *plain = arena_strndup(a, model.at, model.len);

    if (p == PRECISION_UNKNOWN || w->precision == p)
        return;
    if (w->family == NULL)
        w->family = plain;
    w->precision = p;
    w->bytes_per_sample *= activation_bytes(w) / before;
    w->name = workload_name(a, arena_printf(a, "%s-%s", plain, precision_name(p)), batch);
    workload_forget_profile(w);
}

static int set_text(struct arena *a, const char **field, struct slice key, struct slice value,
                    struct err *e)
{
    if (value.len > 0 && !text_is_name(value))
        return err_set(e, EINVAL,
                       "%.*s: want 1 to 200 printable bytes of UTF-8, or nothing if unknown",
                       slice_shown(key), key.at);
    *field = value.len > 0 ? arena_strndup(a, value.at, value.len) : NULL;
    return 0;
}

static int set_batch(struct arena *a, struct workload *w, struct slice value, struct err *e)
{
    double old, batch = NAN;
    long whole;

    if (value.len > 0) {
        if (text_to_long(value, 1, WORKLOAD_BATCH_MAX, &whole) < 0)
            return err_set(e, EINVAL, "batch=%.*s: want a whole number from 1 to %d",
                           slice_shown(value), value.at, WORKLOAD_BATCH_MAX);
        batch = (double)whole;
    }
    w->batch = batch;
    if (w->name) {
        struct slice model = workload_name_split(w->name, &old);
        w->name = workload_name(a, arena_strndup(a, model.at, model.len), batch);
    }
    return 0;
}

static int set_inference(struct workload *w, struct slice value, struct err *e)
{
    if (!slice_is(value, "0") && !slice_is(value, "1"))
        return err_set(e, EINVAL, "inference=%.*s: want 0 for training or 1 for inference",
                       slice_shown(value), value.at);
    w->is_inference = slice_is(value, "1");
    return 0;
}

static int set_number(struct workload *w, int i, struct slice value, struct err *e)
{
    const char *key = workload_number_names[i];
    double number = NAN;

    if (value.len > 0 && text_to_double(value, &number) < 0)
        return err_set(e, EINVAL, "%s=%.*s: not a number; want %g to %g, or nothing for unknown",
                       key, slice_shown(value), value.at, numbers[i].low, numbers[i].high);
    if (value.len > 0 && !is_plausible(i, number))
        return err_set(e, EINVAL, "%s=%.*s is out of range: want %g to %g, or nothing for unknown",
                       key, slice_shown(value), value.at, numbers[i].low, numbers[i].high);
    workload_set_number(w, i, number);
    return 0;
}

int workload_set(struct arena *a, struct workload *w, struct slice key, struct slice value,
                 struct err *e)
{
    if (slice_is(key, "family"))
        return set_text(a, &w->family, key, value, e);
    if (slice_is(key, "task"))
        return set_text(a, &w->task, key, value, e);
    if (slice_is(key, "dataset"))
        return set_text(a, &w->dataset, key, value, e);
    if (slice_is(key, "batch"))
        return set_batch(a, w, value, e);
    if (slice_is(key, "inference"))
        return set_inference(w, value, e);
    if (slice_is(key, "precision"))
        return precision_read(value, &w->precision, e);
    if (slice_is(key, "needs_capability"))
        return gpu_capability_read(key, value, &w->needs_capability, e);
    for (int i = 0; i < WORKLOAD_FIGURES; i++) {
        if (slice_is(key, workload_number_names[i]))
            return set_number(w, i, value, e);
    }
    return err_set(e, EINVAL, "no such workload feature '%.*s': use one of " KEYS, slice_shown(key),
                   key.at);
}
