/* resample.h - the jobs of a period once more, otherwise: blocks of them, drawn anew.
 *
 * Whoever asks what a year would cost has seen one period, and another would have had other jobs.
 * The period is cut into blocks of equal time; a resampled one consists of as many, drawn from
 * these, so that what comes together (a sweep, a morning) stays together. Over all draws of a call
 * every block is drawn equally often (the balanced bootstrap of Davison, Hinkley and Schechtman,
 * 1986): a mean over seeds does not depend on which of them had the long jobs.
 */
#ifndef STUDY_SCENARIO_RESAMPLE_H
#define STUDY_SCENARIO_RESAMPLE_H

#include <stdint.h>

#include "sim/trace/trace.h"

struct arena;

/* Blocks of a period: of a day, but at least RESAMPLE_BLOCKS of them. */
#define RESAMPLE_BLOCKS 8
int resample_n_blocks(double period_s);

/* 'n_draws' times 'n_blocks' of them: (n_draws, n_blocks), in 'a'. */
int *resample_draw(struct arena *a, uint64_t seed, int n_draws, int n_blocks);

/* The jobs of these blocks of 't', one after the other, in 'a'. Arrivals of 't' are in
 * [0, period_s). Names are made unique; a server serves for a period at most.
 */
void resample_jobs(struct arena *a, const struct trace *t, double period_s, const int *blocks,
                   int n_blocks, struct trace *out);

/* 'n_jobs' of 't', whose arrivals are its period: blocks of it in periods one after the other,
 * until there are as many. Servers serve as long as they did.
 */
void resample_count(struct arena *a, const struct trace *t, uint64_t seed, int n_jobs,
                    struct trace *out);

#endif
