/* inner.h - what the files of the cycle share and nobody else reads. */
#ifndef CYCLE_INNER_H
#define CYCLE_INNER_H

#include "cycle/cycle.h"

/* Remember why each job of a plan waits, and who cannot run here at all. */
void cycle_note_reasons(struct cycle *c, const struct snapshot *s, const struct plan *p);

/* An event into the journal, by the owner's way or straight. */
int cycle_append(struct cycle *c, const struct event *ev, struct err *e);

/* Is an order about the job being carried out, or is it about to end by itself? */
bool cycle_leaves_alone(const struct cycle *c, int job);

/* GPUs (by number) that orders are being carried out on, or whose jobs are left alone: nobody comes
 * there meanwhile. In 'a'.
 */
const bool *cycle_busy_gpus(const struct cycle *c, struct arena *a);

/* What the executor cannot do with the jobs of a snapshot, and where it has refused them; in 'a'.
 * NULL: everything can be realised.
 */
const struct engine_rules *cycle_rules(const struct cycle *c, struct arena *a,
                                       const struct snapshot *s);

/* The executor could not put a job on these GPUs: not there again for a while. */
void cycle_note_refusal(struct cycle *c, int job, const int *gpus, int n_gpus);

#endif
