/* devices.h - the GPUs of this box: what they are, what they draw, what may be set.
 *
 * NVML and ROCm SMI are opened at run time, by declarations of our own ($GOGH_NVML_LIB and
 * $GOGH_ROCM_LIB name another library); where there is neither, GPUs are what the
 * configuration declares, and have nothing to read. Made at start, lives as long as the daemon.
 * Calls into a driver may hang: those that read or set run on a worker (see watch.h), never on
 * the loop's thread, except devices_open.
 */
#ifndef ACT_GPU_DEVICES_H
#define ACT_GPU_DEVICES_H

#include <stdbool.h>

#include "catalog/sharing.h"

struct devices;
struct err;

enum device_maker { DEVICE_DECLARED, DEVICE_NVIDIA, DEVICE_AMD };

struct device {
    enum device_maker maker;
    int index;            // the driver's
    const char *uuid;     // "GPU-..."; NULL: declared
    const char *title;    // as the driver says: "Tesla V100-SXM2-16GB"
    double mem_bytes;
    double limit_low_w, limit_w, limit_high_w;    // NaN: unknown, or cannot be set
    enum sharing sharing;                         // as the driver is set up: not MPS
};

/* Look for GPUs: 'may_nvidia', 'may_amd'. 0 devices is no error; a library that is there and fails
 * is one, named, unless neither was asked for by name ('is_asked').
 */
int devices_open(bool may_nvidia, bool may_amd, bool is_asked, struct devices **out, struct err *e);
void devices_close(struct devices *d);    // NULL is fine

int devices_n(const struct devices *d);
const struct device *devices_get(const struct devices *d, int i);

/* How busy a GPU is: shares of the time, about the last second's, in which kernels ran and in which
 * its memory was read or written, and its memory in use. NaN: not told.
 */
struct device_use {
    double gpu, mem;
    double mem_bytes;
};

/* On a worker: present draw in watts, joules since some beginning where the driver counts them
 * (NaN: it does not), and use. -EIO, -ENODEV: it fell off the bus.
 */
struct device_power {
    double watts;
    double joules;
    struct device_use use;
};
int devices_power(const struct devices *d, int i, struct device_power *out, struct err *e);

/* On a worker: set a power limit; 0 W: back to the default. -EPERM, -ENOTSUP. */
int devices_limit(const struct devices *d, int i, int watts, struct err *e);

#endif
