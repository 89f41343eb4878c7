/* gauge.h - what the GPU draws and how busy it is, while programs run on it.
 *
 * A process of its own asks the driver (act/gpu/devices.h) five times a second and sends what it is
 * told through a pipe: a driver may hang, and then it hangs alone and is left behind. Where nothing
 * can be read, nothing is known.
 */
#ifndef PROBE_PAIR_GAUGE_H
#define PROBE_PAIR_GAUGE_H

#include <sys/types.h>

struct device;

/* One reading, at 't_s' on the stopwatch; NaN: not told. Shares of time are 0..1. */
struct gauge_reading {
    double t_s;
    double watts, joules;
    double gpu, mem, mem_bytes;
};

/* The variables of a job that say which GPU is its; NULL: not set. */
struct gauge_names {
    const char *cuda;     // CUDA_VISIBLE_DEVICES
    const char *order;    // CUDA_DEVICE_ORDER
    const char *rocr;     // ROCR_VISIBLE_DEVICES
};

/* Which of the driver's GPUs is the one that they name first, by its UUID or the beginning of it,
 * or its number; without either, the only one there is. -1: none, a part of one, or not to be told:
 * CUDA gives faster models lower numbers unless the order is PCI_BUS_ID, which is the driver's.
 */
int gauge_pick(const struct device *list, int n, const struct gauge_names *names);

/* Start the process: a descriptor to read from that never waits, or -errno. */
int gauge_start(pid_t *pid);
void gauge_stop(pid_t pid, int fd);    // does not wait for it; without any is fine

/* Sums of readings from some moment on. */
struct pair_gauge {
    double from_s;
    int n_watts, n_gpu, n_mem;
    double watts, gpu, mem;                               // sums
    double first_s, first_joules, last_s, last_joules;    // NaN: none
    double mem_bytes;                                     // the most; NaN: not told
};
void gauge_begin(struct pair_gauge *g, double from_s);
void gauge_add(struct pair_gauge *g, const struct gauge_reading *r);

/* Means, NaN: nothing was read. Watts by the driver's count of joules where it has one. */
double gauge_watts(const struct pair_gauge *g);
double gauge_gpu(const struct pair_gauge *g);
double gauge_mem(const struct pair_gauge *g);

#endif
