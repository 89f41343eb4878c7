#include "act/gpu/devices.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "act/gpu/inner.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/log.h"

enum { MAKERS = DEVICE_AMD + 1 };

struct devices {
    struct arena arena;    // names
    struct gpu_library libraries[MAKERS];
    struct device *list;
    int n, cap;
};

static int add_all(struct devices *d, enum device_maker maker, struct err *e)
{
    const struct gpu_library *library = &d->libraries[maker];

    for (int i = 0; i < library->n_devices; i++) {
        struct device device = { .maker = maker, .index = i };
        int rc;

        device.limit_low_w = device.limit_w = device.limit_high_w = (double)NAN;
        rc = library->describe(library->self, i, &d->arena, &device, e);
        if (rc < 0)
            return rc;
        GROW(d->list, d->n, d->cap);
        d->list[d->n++] = device;
    }
    return 0;
}

/* Without being asked for by name, what is not there or does not work is done without. */
static int look_for(struct devices *d, enum device_maker maker, bool is_asked, struct err *e)
{
    struct gpu_library *library = &d->libraries[maker];
    struct err why = { 0 };
    const int n_before = d->n;
    int rc = maker == DEVICE_NVIDIA ? nvml_open(library, &why) : rocm_open(library, &why);

    if (rc == 0)
        rc = add_all(d, maker, &why);
    if (rc == 0 && library->n_devices == 0 && is_asked)
        rc = err_set(&why, ENODEV, "%s sees no GPU", maker == DEVICE_NVIDIA ? "NVML" : "ROCm SMI");
    if (rc == 0)
        return 0;
    d->n = n_before;
    if (is_asked)
        return err_set(e, -rc, "%s", why.text);
    if (rc != -ENOENT)
        log_warn("%s; going on without", why.text);
    return 0;
}

int devices_open(bool may_nvidia, bool may_amd, bool is_asked, struct devices **out, struct err *e)
{
    struct devices *d = heap_array(1, sizeof *d);
    int rc = 0;

    *out = NULL;
    arena_init(&d->arena);
    if (may_nvidia)
        rc = look_for(d, DEVICE_NVIDIA, is_asked, e);
    if (rc == 0 && may_amd)
        rc = look_for(d, DEVICE_AMD, is_asked, e);
    if (rc < 0) {
        devices_close(d);
        return rc;
    }
    *out = d;
    return 0;
}

void devices_close(struct devices *d)
{
    if (!d)
        return;
    for (int i = 0; i < MAKERS; i++)
        if (d->libraries[i].self)
            d->libraries[i].close(d->libraries[i].self);
    arena_release(&d->arena);
    free(d->list);
    free(d);
}

int devices_n(const struct devices *d)
{
    return d->n;
}

const struct device *devices_get(const struct devices *d, int i)
{
    assert(i >= 0 && i < d->n);
    return &d->list[i];
}

int devices_power(const struct devices *d, int i, struct device_power *out, struct err *e)
{
    const struct device *device = devices_get(d, i);
    const struct gpu_library *library = &d->libraries[device->maker];

    *out = (struct device_power){ (double)NAN,
                                  (double)NAN,
                                  { (double)NAN, (double)NAN, (double)NAN } };
    return library->power(library->self, device->index, out, e);
}

int devices_limit(const struct devices *d, int i, int watts, struct err *e)
{
    const struct device *device = devices_get(d, i);
    const struct gpu_library *library = &d->libraries[device->maker];

    if (isnan(device->limit_low_w))
        return err_set(e, ENOTSUP, "%s takes no power limit", device->title);
    if (watts != 0 && (watts < device->limit_low_w || watts > device->limit_high_w))
        return err_set(e, EINVAL, "%s: %d W is not within its limits of %.0f to %.0f W",
                       device->title, watts, device->limit_low_w, device->limit_high_w);
    return library->limit(library->self, device->index, watts, e);
}
