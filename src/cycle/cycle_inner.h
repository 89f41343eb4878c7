/* cycle_inner.h - what the files of the cycle share and nobody else reads. */
#ifndef CYCLE_CYCLE_INNER_H
#define CYCLE_CYCLE_INNER_H

#include "cycle/cycle.h"

/* Remember why each job of a plan waits, and who cannot run here at all. */
void cycle_note_reasons(struct cycle *c, const struct snapshot *s, const struct plan *p);

#endif
