/* device.h - the devices that OpenCL shows, and which of them is the job's.
 *
 * Drivers hide what CUDA_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES leave out; on a machine with GPUs
 * of several vendors the variable that is set also says whose is meant. Plain data.
 */
#ifndef PROBE_BURN_DEVICE_H
#define PROBE_BURN_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct opencl;

enum { DEVICES_MAX = 64 };    // the largest boxes have sixteen GPUs

struct opencl_device {
    void *id;
    char name[128], platform[128];    // UTF-8
    char uuid[48];                    // "GPU-..."; "": not told
    uint32_t vendor;                  // as of PCI
    bool is_gpu, is_cpu;
    double mem_bytes, alloc_max_bytes;    // 0: not told
};

/* All of all platforms, at most DEVICES_MAX; how many, 0 too. -EIO. */
int device_list(const struct opencl *cl, struct opencl_device *out, struct err *e);

/* The job's: a GPU that the two variables (NULL: not set) do not rule out; with 'may_any' any other
 * device where there is none. Its index, DEVICE_NONE, or DEVICE_UNCERTAIN where all platforms show
 * more of AMD's GPUs than ROCR_VISIBLE_DEVICES names: they do not heed it, and any GPU may be
 * another job's.
 */
enum { DEVICE_NONE = -1, DEVICE_UNCERTAIN = -2 };
int device_choose(const struct opencl_device *list, int n, const char *cuda, const char *rocr,
                  bool may_any);

#endif
