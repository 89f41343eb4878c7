/* bound.h - what a trace's work costs at the least: a linear program over GPU-seconds.
 *
 * Its variables are the seconds that GPUs of a type spend on a workload alone or on a pair of
 * them, under a power limit or none, at true speeds and watts; and the horizon. All work is done;
 * no type gives more GPU-seconds than it has; for the rest GPUs sleep (or idle, where nobody
 * sleeps). Order, arrivals, moves, wake-ups, whole GPUs, and who may run where are left out, and
 * two jobs may share a GPU for any part of their time: all of which can only make it lower.
 *
 * Two figures come of it:
 *
 * - 'energy_j', with the horizon at the arrival period: the work done as fast as it comes, on
 *   average. Divided by 'work_s' it stands beside what runs use per unit of work in their steady
 *   window. A run whose window has cheaper work than the whole trace, or more of it to share the
 *   sleeping GPUs' watts, may come below by so much: a percent or two of 1,000 jobs.
 * - 'least_j', with any horizon from the arrival period on: no run that does all of the work uses
 *   less from 0 to its end, whatever its policy. (Proven for training on single GPUs. Work that is
 *   served counts as work that may be done at any time at full speed, a gang as so many GPUs
 *   with their parts of its speed.)
 */
#ifndef STUDY_BOUND_H
#define STUDY_BOUND_H

#include <stdbool.h>

#include "study/scenario/scenario.h"

struct err;

struct bound {
    double energy_j;       // of the whole cluster over 'horizon_s'
    double horizon_s;      // the arrival period; longer, where not even all GPUs do the work in it:
                           // as long as it takes them
    double work_s;         // in seconds alone on the reference GPU
    double gpu_s;          // held
    double *type_gpu_s;    // (truth types) held
    double *type_j;        // (truth types) of the type's GPUs, also asleep
    double least_j;        // over the horizon that costs least
};

/* Solve it for the trace of 's', whose promises are left aside. 'has_limits' and 'has_sleep' as in
 * the run. -EINVAL: a workload fits nowhere, or the cluster lets more than two jobs share a GPU.
 */
int bound_solve(struct arena *a, const struct study_inputs *s, bool has_limits, bool has_sleep,
                struct bound *out, struct err *e);

#endif
