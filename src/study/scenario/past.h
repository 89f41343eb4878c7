/* past.h - a run's past: jobs that its policy has lived through before, and what it learned.
 *
 * As many jobs of the same cluster and load, drawn with another seed, are simulated under the run's
 * own policy and settings; what it measured is what the run begins with. Made for scenario_open.
 */
#ifndef STUDY_PAST_H
#define STUDY_PAST_H

#include "study/scenario/scenario.h"

struct err;

/* Live through 'history_jobs' jobs of the run's scenario, in the world of 'in'. The measurements
 * are released with 'out'.
 */
int past_live(const struct study_run *k, const char *data, const struct study_inputs *in,
              struct pretraining *out, struct err *e);

#endif
