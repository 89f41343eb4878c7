/* tight.h - a plan from prices alone: GPUs take the patterns whose reduced cost is least.
 *
 * With a thousand kinds hardly a pattern is used twice, and a class program's vertex rounds to
 * nothing; told to hurry, there is none. So patterns are filled with jobs one GPU at a time, those
 * first that lose least against the prices: of each class the neediest whom the slot serves.
 *
 * Called by: optimize, on an empty assignment, with the prices and their reduced.
 */
#ifndef OPTIMIZE_SEARCH_TIGHT_H
#define OPTIMIZE_SEARCH_TIGHT_H

struct assignment;
struct reduced_costs;
struct prices;

void tight_place(const struct prices *u, const struct reduced_costs *reduced, struct assignment *d);

#endif
