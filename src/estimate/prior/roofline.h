/* roofline.h - the estimate that always exists: what the hardware's limits allow.
 *
 * Pure functions of a descriptor and a GPU's figures. The standing fallback of every
 * estimator, the mean that learned ones correct, and (with hidden factors on top) the
 * truth of the embedded demo. docs/experiments.md states the model and its error.
 */
#ifndef ESTIMATE_PRIOR_ROOFLINE_H
#define ESTIMATE_PRIOR_ROOFLINE_H

struct gpu_type;
struct workload;

/* Where one step's time goes on one GPU alone, by the rate of the workload's precision. Unknown
 * features are replaced by the typical ones in roofline.c, and counted.
 */
struct roofline {
    double step_s;                                   // time of one step
    double compute_s, memory_s, launch_s, host_s;    // what each limit alone would take
    double mem_bytes;                                // resident; for the fit
    int n_unknown;                                   // features that had to be assumed
};

void roofline(const struct workload *w, const struct gpu_type *g, struct roofline *out);

/* Slowdown r (0..1] of 'w' beside 'neighbour' on the same GPU: shares of the device,
 * the memory and the launch queue that together exceed one are divided.
 */
double roofline_slowdown(const struct roofline *w, const struct roofline *neighbour);

/* Watts of the GPU with this workload alone: idle plus a part by how busy the compute
 * and memory sides are.
 */
double roofline_watts(const struct roofline *w, const struct gpu_type *g);

/* Speed of a gang of 'n' relative to one GPU: n times an efficiency per doubling. */
double roofline_gang(int n, int is_spread);

/* Standard deviations of the logarithms of these estimates. */
double roofline_speed_sd(const struct roofline *w);
#define ROOFLINE_SLOWDOWN_SD 0.35
#define ROOFLINE_WATTS_SD 0.25

#endif
