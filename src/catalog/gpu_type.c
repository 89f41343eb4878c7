#include "catalog/gpu_type.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/text/buf.h"
#include "base/text/words.h"

/* The figures as files write them. The ranges refuse slips of unit (GB for GiB are too
 * close to tell, but FLOP/s for TFLOP/s or mW for W are not) with room for years to come.
 */
static const struct figure {
    const char *key, *unit;
    size_t offset;       // of a double in struct gpu_type
    double scale;        // from the unit to the struct's
    double low, high;    // plausible, in the unit
    bool is_optional;    // unknown is as good as none
} figures[] = {
    { "peak_fp32", "TFLOP/s", offsetof(struct gpu_type, peak_fp32_flops), 1e12, 0.1, 1e4, false },
    { "peak_tf32", "TFLOP/s", offsetof(struct gpu_type, peak_tf32_flops), 1e12, 0, 1e5, true },
    { "peak_fp16", "TFLOP/s", offsetof(struct gpu_type, peak_fp16_flops), 1e12, 0.1, 1e5, false },
    { "peak_fp8", "TFLOP/s", offsetof(struct gpu_type, peak_fp8_flops), 1e12, 0, 1e6, true },
    { "peak_int8", "TFLOP/s", offsetof(struct gpu_type, peak_int8_flops), 1e12, 0, 1e6, true },
    { "bandwidth", "GB/s", offsetof(struct gpu_type, bandwidth_bytes_s), 1e9, 10, 1e5, false },
    { "memory", "GiB", offsetof(struct gpu_type, mem_bytes), 1073741824.0, 0.5, 4096, false },
    { "launch", "us", offsetof(struct gpu_type, launch_s), 1e-6, 0.1, 1000, false },
    { "idle", "W", offsetof(struct gpu_type, idle_w), 1, 0.1, 1000, false },
    { "sleep", "W", offsetof(struct gpu_type, sleep_w), 1, 0, 1000, false },
    { "cap", "W", offsetof(struct gpu_type, cap_w), 1, 5, 5000, false },
    { "limit_low", "W", offsetof(struct gpu_type, limit_low_w), 1, 0, 5000, false },
};

enum {
    N_FIGURES = sizeof figures / sizeof figures[0],
    YEAR_LOW = 2000,
    YEAR_HIGH = 2100,
    CAPABILITY_LOW = 20,    // the first that frameworks ever ran on
    CAPABILITY_HIGH = 999,
};

#define KEYS                                                                                  \
    "peak_fp32, peak_tf32, peak_fp16, peak_fp8, peak_int8, bandwidth, memory, launch, idle, " \
    "sleep, cap, limit_low, year, share_max, capability, sharing"

static double *figure_of(const struct gpu_type *t, const struct figure *f)
{
    return (double *)(void *)((char *)t + f->offset);
}

void gpu_type_init(struct gpu_type *t, const char *name)
{
    *t = (struct gpu_type){ .name = name };
    for (int i = 0; i < N_FIGURES; i++)
        *figure_of(t, &figures[i]) = NAN;
}

bool gpu_type_fill(struct gpu_type *t, const struct gpu_type *more)
{
    const enum sharing sharing = sharing_after(t->sharing, more->sharing);
    bool has_changed = (!t->year && more->year) || (!t->share_max && more->share_max) ||
                       (!t->capability && more->capability) || sharing != t->sharing;

    for (int i = 0; i < N_FIGURES; i++) {
        double *have = figure_of(t, &figures[i]), told = *figure_of(more, &figures[i]);

        if (*have > 0 || !(told > 0))
            continue;
        *have = told;
        has_changed = true;
    }
    t->year = t->year ? t->year : more->year;
    t->share_max = t->share_max ? t->share_max : more->share_max;
    t->capability = t->capability ? t->capability : more->capability;
    t->sharing = sharing;
    return has_changed;
}

double gpu_type_peak(const struct gpu_type *t, enum precision precision)
{
    if (precision == PRECISION_TF32 && t->peak_tf32_flops > 0)
        return t->peak_tf32_flops;
    if (precision <= PRECISION_TF32)
        return t->peak_fp32_flops;
    if (precision == PRECISION_FP8 && t->peak_fp8_flops > 0)
        return t->peak_fp8_flops;
    if (precision == PRECISION_INT8 && t->peak_int8_flops > 0)
        return t->peak_int8_flops;
    return t->peak_fp16_flops > 0 ? t->peak_fp16_flops : gpu_type_peak(t, PRECISION_TF32);
}

static const struct figure *figure_find(struct slice key)
{
    for (int i = 0; i < N_FIGURES; i++) {
        if (slice_is(key, figures[i].key))
            return &figures[i];
    }
    return NULL;
}

static int set_year(struct gpu_type *t, struct slice value, struct err *e)
{
    long year;

    if (text_to_long(value, YEAR_LOW, YEAR_HIGH, &year) < 0)
        return err_set(e, EINVAL, "year=%.*s: want a whole year from %d to %d", slice_shown(value),
                       value.at, YEAR_LOW, YEAR_HIGH);
    t->year = (int)year;
    return 0;
}

static int set_share_max(struct gpu_type *t, struct slice value, struct err *e)
{
    long n;

    if (text_to_long(value, 0, 1, &n) < 0)
        return err_set(e, EINVAL,
                       "share_max=%.*s: want 1 (nobody shares such a GPU) or 0 (as theta says)",
                       slice_shown(value), value.at);
    t->share_max = (int)n;
    return 0;
}

int gpu_capability_read(struct slice key, struct slice value, int *out, struct err *e)
{
    const char *dot = value.len > 0 ? memchr(value.at, '.', value.len) : NULL;
    struct slice major = { value.at, dot ? (size_t)(dot - value.at) : value.len };
    long first = 0, minor = 0;
    int rc = 0;

    if (value.len > 0)
        rc = text_to_long(major, 0, CAPABILITY_HIGH, &first);
    if (rc == 0 && dot != NULL) {
        rc = text_to_long((struct slice){ dot + 1, value.len - major.len - 1 }, 0, 9, &minor);
        first *= 10;
    }
    if (dot == NULL && first < CAPABILITY_LOW)    // 9 is 9.0
        first *= 10;
    if (rc < 0 || (value.len > 0 && (first < CAPABILITY_LOW || first > CAPABILITY_HIGH)))
        return err_set(e, EINVAL,
                       "%.*s=%.*s: want a compute capability from %d.0 to %d.9, as 8.6 or 86, or "
                       "nothing if unknown",
                       slice_shown(key), key.at, slice_shown(value), value.at, CAPABILITY_LOW / 10,
                       CAPABILITY_HIGH / 10);
    *out = (int)(first + minor);
    return 0;
}

int gpu_type_set(struct gpu_type *t, struct slice key, struct slice value, struct err *e)
{
    const struct figure *f = figure_find(key);
    double number;

    if (slice_is(key, "year"))
        return set_year(t, value, e);
    if (slice_is(key, "share_max"))
        return set_share_max(t, value, e);
    if (slice_is(key, "capability"))
        return gpu_capability_read(key, value, &t->capability, e);
    if (slice_is(key, "sharing"))
        return sharing_read(value, &t->sharing, e);
    if (!f)
        return err_set(e, EINVAL, "no such GPU figure '%.*s': use one of " KEYS, slice_shown(key),
                       key.at);
    if (text_to_double(value, &number) < 0)
        return err_set(e, EINVAL, "%s=%.*s: not a number; write %s in %s from %g to %g", f->key,
                       slice_shown(value), value.at, f->key, f->unit, f->low, f->high);
    if (number < f->low || number > f->high)
        return err_set(e, EINVAL, "%s=%.*s is out of range: want %g to %g %s", f->key,
                       slice_shown(value), value.at, f->low, f->high, f->unit);
    *figure_of(t, f) = number * f->scale;
    return 0;
}

int gpu_type_put(const struct gpu_type *t, struct buf *out)
{
    for (int i = 0; i < N_FIGURES; i++) {
        const double value = *figure_of(t, &figures[i]);

        if (!isfinite(value))
            continue;
        buf_printf(out, " %s=", figures[i].key);
        words_put_number(out, value / figures[i].scale);
    }
    if (t->share_max > 0)
        buf_printf(out, " share_max=%d", t->share_max);
    if (t->capability > 0)
        buf_printf(out, " capability=%d", t->capability);
    if (t->sharing != SHARING_UNKNOWN)
        buf_printf(out, " sharing=%s", sharing_name(t->sharing));
    return buf_printf(out, " year=%d", t->year);
}

static int figure_check(const struct gpu_type *t, const struct figure *f, struct err *e)
{
    double value = *figure_of(t, f);

    if (f->is_optional && isnan(value))
        return 0;
    if (isfinite(value) && (value > 0 || (value == 0 && f->low == 0)))
        return 0;
    return err_set(e, EINVAL, "GPU type '%s' has no usable %s: add %s=NUMBER in %s, or like=TYPE",
                   t->name, f->key, f->key, f->unit);
}

int gpu_type_check(const struct gpu_type *t, struct err *e)
{
    if (!t->name || !text_is_name(slice_of(t->name)))
        return err_set(e, EINVAL, "a GPU type has no proper name: write 1 to 200 printable bytes");
    for (int i = 0; i < N_FIGURES; i++) {
        int rc = figure_check(t, &figures[i], e);
        if (rc < 0)
            return rc;
    }
    if (t->sleep_w > t->idle_w)
        return err_set(e, EINVAL, "GPU type '%s' sleeps at %g W but idles at %g W: lower sleep",
                       t->name, t->sleep_w, t->idle_w);
    if (t->idle_w > t->cap_w)
        return err_set(e, EINVAL, "GPU type '%s' idles at %g W above its cap of %g W: raise cap",
                       t->name, t->idle_w, t->cap_w);
    if (t->year < YEAR_LOW || t->year > YEAR_HIGH)
        return err_set(e, EINVAL, "GPU type '%s' has no usable year: add year=%d to %d", t->name,
                       YEAR_LOW, YEAR_HIGH);
    return 0;
}
