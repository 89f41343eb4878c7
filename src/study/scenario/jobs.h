/* jobs.h - the jobs of a scenario: drawn, serving over the day, or other people's, thinned.
 *
 * Made for scenario_open; the trace lives in the caller's arena. Draws depend on the run's
 * scenario, load and seed alone, so that every policy gets the same jobs.
 */
#ifndef STUDY_JOBS_H
#define STUDY_JOBS_H

#include "sim/trace/trace.h"
#include "study/scenario/scenario.h"

struct arena;
struct err;
struct trace_draw;
struct truth;

/* The jobs of 'k' for cluster 'cl'. Jobs of published traces keep their order, lengths and gang
 * sizes (a gang larger than any type of the cluster is cut down to the largest); see jobs_thin.
 */
int jobs_make(struct arena *a, const struct study_run *k, const char *data,
              const struct cluster *cl, const struct truth *t, struct trace *out, struct err *e);

/* What a trace offers, in GPU-seconds alone on reference GPUs: its work, and for gangs also what
 * they lose by being gangs (spread over nodes, where no node has as many GPUs), which keeps GPUs
 * busy too. And what load that is: over what the cluster does from 0 to the last arrival with
 * every GPU busy alone (trace_capacity).
 */
double jobs_offered_s(const struct trace_draw *d, const struct cluster *cl, const struct trace *t);
double jobs_load(const struct trace_draw *d, const struct cluster *cl, const struct trace *t);

/* Bring a trace to 'load': each job is kept by the same chance, 'load' over the trace's own
 * load (all of them where that is less); of these 'n_jobs' in a row from a drawn one on; then
 * time is stretched by one factor, so that the load is met exactly. Lengths interval as they are.
 */
int jobs_thin(struct arena *a, const struct trace_draw *d, const struct cluster *cl, double load,
              int n_jobs, int seed, struct trace *t, struct err *e);

#endif
