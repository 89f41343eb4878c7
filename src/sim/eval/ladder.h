/* ladder.h - step times of a server by its batch, as they were measured.
 *
 * Made from a campaign of the catalog by ladders_take, in the arena; the truth of eval/serving.h.
 */
#ifndef SIM_EVAL_LADDER_H
#define SIM_EVAL_LADDER_H

#include <stdbool.h>

#include "estimate/serving.h"

struct arena;
struct catalog;

/* Rung i is a batch of 2^i. */
struct ladder {
    int top;                         // the workload of the largest batch that there is of its model
    int type;                        // of the GPU
    int first, last, last_beside;    // rungs that were measured; -1: none beside
    int at[SERVING_RUNGS];           // its workloads; -1: there is none
    double alone[SERVING_RUNGS], beside[SERVING_RUNGS];    // s; NaN: not measured
};

/* Those of the campaign with three rungs and more on a type. Returns how many. */
int ladders_take(struct arena *a, const struct catalog *c, int campaign, const struct ladder **out);

/* The best line through measured step times. */
struct serving_estimate ladder_line(const double tau[SERVING_RUNGS]);

/* Would the server beside its copy, at so many requests/s, keep two steps within 'within_s'? Its
 * batches grow until they serve as many; between rungs steps are on a line.
 */
bool ladder_holds(const struct ladder *l, double rate, double within_s);

#endif
