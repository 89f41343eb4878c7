/* inner.h - a driver's library, for devices.c; made by nvml.c and rocm.c. */
#ifndef ACT_GPU_INNER_H
#define ACT_GPU_INNER_H

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

#endif
