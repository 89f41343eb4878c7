/* site.h - a site's own jobs: a trace file, or what Slurm's accounting tells of.
 *
 * The first seed of a scenario has them as they were. Other seeds have blocks of them drawn anew
 * (resample.h), until there are as many, so that what differs between seeds tells how much the
 * figures hang on these very jobs. Made for scenario_open; lives in the caller's arena.
 */
#ifndef STUDY_SITE_H
#define STUDY_SITE_H

#include "sim/trace/trace.h"
#include "study/scenario/scenario.h"

struct arena;
struct err;
struct truth;

/* The jobs with the names of what they ran, and nothing else: for making a ground truth. */
int site_named(struct arena *a, const struct scenario *s, const struct cluster *cl,
               struct trace *out, struct err *e);

/* The jobs of a run: of accounting, with the work that by 'truth' they did. 'n_jobs' of the
 * scenario, where it is not 0, are drawn, whichever seed it is.
 */
int site_jobs(struct arena *a, const struct study_run *k, const struct cluster *cl,
              const struct truth *truth, struct trace *out, struct err *e);

#endif
