/* inner.h - a driver's library, for devices.c; made by nvml.c and rocm.c. */
#ifndef ACT_GPU_INNER_H
#define ACT_GPU_INNER_H

#include <stddef.h>

struct arena;
struct device;
struct device_power;
struct err;

/* Devices by the driver's own numbers; watts 0 in 'limit' is the default. */
struct gpu_library {
    void *self;    // NULL: not there
    int n_devices;
    int (*describe)(void *self, int index, struct arena *a, struct device *out, struct err *e);
    int (*power)(void *self, int index, struct device_power *out, struct err *e);
    int (*limit)(void *self, int index, int watts, struct err *e);
    void (*close)(void *self);
};

/* -ENOENT: no such library; -EIO: it is there and fails. */
int nvml_open(struct gpu_library *out, struct err *e);
int rocm_open(struct gpu_library *out, struct err *e);

/* One function of a library, and where its address goes. */
struct symbol {
    const char *name;
    void **to;
    int is_optional;    // stays NULL where it is missing
};

/* Open 'override' (an environment variable that names a library), or the first of 'names' (ended by
 * NULL) that is there, and look up all symbols. -ENOENT: none is there; -EIO: a symbol is missing.
 */
int library_open(const char *override, const char *const *names, const struct symbol *symbols,
                 size_t n, void **out, struct err *e);

#endif
