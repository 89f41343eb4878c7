#include "catalog/gpu_type.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/err.h"

/* The figures as files write them. The ranges refuse slips of unit (GB for GiB are too
 * close to tell, but FLOP/s for TFLOP/s or mW for W are not) with room for years to come.
 */
static const struct figure {
    const char *key, *unit;
    size_t offset;       // of a double in struct gpu_type
    double scale;        // from the unit to the struct's
    double low, high;    // plausible, in the unit
} figures[] = {
    { "peak_fp32", "TFLOP/s", offsetof(struct gpu_type, peak_fp32_flops), 1e12, 0.1, 1e4 },
    { "peak_fp16", "TFLOP/s", offsetof(struct gpu_type, peak_fp16_flops), 1e12, 0.1, 1e5 },
    { "bandwidth", "GB/s", offsetof(struct gpu_type, bandwidth_bytes_s), 1e9, 10, 1e5 },
    { "memory", "GiB", offsetof(struct gpu_type, mem_bytes), 1073741824.0, 0.5, 4096 },
    { "launch", "us", offsetof(struct gpu_type, launch_s), 1e-6, 0.1, 1000 },
    { "idle", "W", offsetof(struct gpu_type, idle_w), 1, 0.1, 1000 },
    { "sleep", "W", offsetof(struct gpu_type, sleep_w), 1, 0, 1000 },
    { "cap", "W", offsetof(struct gpu_type, cap_w), 1, 5, 5000 },
    { "limit_low", "W", offsetof(struct gpu_type, limit_low_w), 1, 0, 5000 },
};

enum {
    N_FIGURES = sizeof figures / sizeof figures[0],
    YEAR_LOW = 2000,
    YEAR_HIGH = 2100,
};

#define KEYS                                                                               \
    "peak_fp32, peak_fp16, bandwidth, memory, launch, idle, sleep, cap, limit_low, year, " \
    "share_max"

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
    bool has_changed = (!t->year && more->year) || (!t->share_max && more->share_max);

    for (int i = 0; i < N_FIGURES; i++) {
        double *have = figure_of(t, &figures[i]), told = *figure_of(more, &figures[i]);

        if (*have > 0 || !(told > 0))
            continue;
        *have = told;
        has_changed = true;
    }
    t->year = t->year ? t->year : more->year;
    t->share_max = t->share_max ? t->share_max : more->share_max;
    return has_changed;
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

int gpu_type_set(struct gpu_type *t, struct slice key, struct slice value, struct err *e)
{
    const struct figure *f = figure_find(key);
    double number;

    if (slice_is(key, "year"))
        return set_year(t, value, e);
    if (slice_is(key, "share_max"))
        return set_share_max(t, value, e);
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

static int figure_check(const struct gpu_type *t, const struct figure *f, struct err *e)
{
    double value = *figure_of(t, f);

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
