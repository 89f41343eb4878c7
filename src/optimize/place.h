/* place.h - what solvers ask of a job and a GPU type before they look for a place. */
#ifndef OPTIMIZE_PLACE_H
#define OPTIMIZE_PLACE_H

#include <stdbool.h>

#include "optimize/board.h"
#include "optimize/plan.h"

/* The job may run on this type and, alone, fits its memory well enough. */
bool place_suits(const struct board *b, int job, int type, double unfit_max);

/* Free GPUs of 'type' for a gang of 'n', into 'out': on one node where possible (the node
 * with the fewest to spare), else, unless the job asks for one node, the first ones.
 * Returns whether they were found.
 */
bool place_gang(const struct board *b, int job, int type, int n, int *out);

/* Why a job for which no place was found has to wait. */
enum wait_reason place_reason(const struct board *b, int job, double unfit_max);

#endif
