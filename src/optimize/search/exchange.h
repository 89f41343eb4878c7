/* exchange.h - bring jobs back to where they stand, where that changes nothing else.
 *
 * Two GPUs of a type may exchange all they hold, and two jobs of a kind their places, at no cost
 * but their moves. A job that is to move therefore tries both with the GPU on which it stands now;
 * what makes the whole cheaper is kept.
 *
 * Called by: the planner, after rounding and after the search.
 */
#ifndef OPTIMIZE_SEARCH_EXCHANGE_H
#define OPTIMIZE_SEARCH_EXCHANGE_H

struct assignment;

/* Returns the watts saved. */
double exchange_homes(struct assignment *d);

#endif
