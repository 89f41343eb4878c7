/* executor.h - the third door: making a plan happen.
 *
 * Sides: the simulator's world (sim), processes of this box (local), Slurm. Orders
 * are idempotent: asking again for what is already so is 0. An order that returns 0
 * is accepted, not done; what came of it is told by the sensor door.
 */
#ifndef ACT_EXECUTOR_H
#define ACT_EXECUTOR_H

#include <stdbool.h>

struct arena;
struct engine_rules;
struct err;

/* A job on its whole gang of GPUs (indices in the state). */
struct placement {
    int job;    // id in the state
    int n_gpus;
    const int *gpus;
    int limit_w;    // power limit; 0: the type's default
};

struct executor {
    void *self;

    /* Start the whole gang or nothing. -ENODEV, -EINVAL, -ENOTSUP: this cannot be realised at all,
     * which 'rules' should have said; another error: not now.
     */
    int (*start)(void *self, const struct placement *p, struct err *e);

    /* Ask the job to checkpoint, then stop it; it will wait again. */
    int (*stop)(void *self, int job, struct err *e);

    /* Checkpoint, stop, start on other GPUs, as one order. */
    int (*move)(void *self, const struct placement *p, struct err *e);

    /* End the job for good; it will not come back. One that does not run is 0. */
    int (*cancel)(void *self, int job, struct err *e);

    /* Is an order about this job still being carried out? Is somebody still leaving this GPU, or on
     * the way to it? Plans leave both alone meanwhile. NULL: orders take no time.
     */
    bool (*job_is_busy)(void *self, int job);
    bool (*gpu_is_busy)(void *self, int gpu);

    /* Seconds until a job that is placed there could begin, since the GPU sleeps; 0: it is awake.
     * NULL: all are.
     */
    double (*gpu_wake_s)(void *self, int gpu);

    /* What cannot be done with these jobs (ids in the state), in 'a' (catalog/engine.h). False:
     * every place can be had. NULL: always.
     */
    bool (*rules)(void *self, struct arena *a, const int *jobs, int n_jobs,
                  struct engine_rules *out);
};

#endif
