/* serving_line.h - t0 and a of a server from step times at a few batches.
 *
 * Pure functions; serving.c is the only caller.
 */
#ifndef ESTIMATE_SERVING_LINE_H
#define ESTIMATE_SERVING_LINE_H

struct serving_estimate;

/* Fill in t0 and a, how sure they are and their correlation, from the points of 'is'. */
void serving_line_of(struct serving_estimate *is);

#endif
