/* serving.h - how long a server's batches truly take.
 *
 * A batch of b requests takes t0 + a*b seconds; a request is one sample. Both come from the truth's
 * speeds, so that at the workload's own batch the batch takes just one step: how much of a step is
 * there whatever the batch is the roofline's, tilted by a hidden factor of workload and type. A
 * token of a prompt takes what estimate/serving.h says, but for another such factor.
 *
 * Beside a neighbour the batch takes as much longer as the truth's slowdown says, nearly all of it
 * in 'a' (two factors; measured beside a busy copy on A100: t0 x 0.94, a x 1.94); prompts as 'a'.
 * Training beside it makes one batch in TAIL_EVERY longer still (published: p99 grows 2.2 to 11.8
 * times where the mean grows 1.5 to 4.1).
 */
#ifndef SIM_WORLD_SERVING_H
#define SIM_WORLD_SERVING_H

struct truth;

#define TAIL_EVERY 20    // a guess, so that the tail is in the p99 and hardly in the mean

/* Sd of the hidden part of t0 in a step, as a logit, and of the logarithm of tails. */
#define SERVING_TILT_SD 0.3
#define SERVING_PREFILL_SD 0.3    // of the logarithm; built-in models are dense, so like each other
#define SERVING_TAIL 3.0          // median
#define SERVING_TAIL_SD 0.35

struct batch_time {
    double t0_s, a_s;
    double c_s;     // for each token of a prompt; NaN: it writes no text
    double tail;    // one batch in TAIL_EVERY takes this many times longer; 1: none does
};

/* Alone on a GPU of 'type', where the workload fits. */
struct batch_time truth_serving(const struct truth *t, int workload, int type);

/* What 'neighbour' makes of 's', of 'workload': it is busy a share 'busy' of the time, and trains
 * or serves.
 */
void serving_beside(const struct truth *t, int workload, int type, int neighbour, double busy,
                    int is_training, struct batch_time *s);

#endif
