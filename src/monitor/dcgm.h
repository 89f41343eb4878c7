/* dcgm.h - a dcgm-exporter's page: what each GPU draws, and how busy it is.
 *
 * Five metrics of the Prometheus text are read, others are passed over:
 *
 *     DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-6fd4...",...} 61.2               W
 *     DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="0",UUID="GPU-6fd4...",...} 812   mJ since boot
 *     DCGM_FI_DEV_GPU_UTIL{gpu="0",...} 97                                       %
 *     DCGM_FI_DEV_MEM_COPY_UTIL{gpu="0",...} 41                                  %
 *     DCGM_FI_DEV_FB_USED{gpu="0",...} 8123                                      MiB
 *
 * Pure: the page was fetched elsewhere (meter.h).
 */
#ifndef MONITOR_DCGM_H
#define MONITOR_DCGM_H

#include <stddef.h>

#include "act/gpu/devices.h"

#define DCGM_UUID_BYTES 64
#define DCGM_HOST_BYTES 128

struct dcgm_gpu {
    int index;                     // the driver's, label "gpu"; -1: not told
    char uuid[DCGM_UUID_BYTES];    // "": not told, or too long to be one
    double watts, joules;          // NaN: not told
    char host[DCGM_HOST_BYTES];    // label "Hostname", likewise
    struct device_use use;
};

/* At most 'max' GPUs into 'out', in the order in which they are met; how many. Lines that are
 * not of the form, of no GPU in particular, or not of a finite number >= 0 are passed over. Of
 * several lines about one GPU (its instances) the first counts.
 */
int dcgm_parse(const char *text, size_t len, struct dcgm_gpu *out, int max);

#endif
