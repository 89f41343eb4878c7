/* round.h - from how many GPUs should run which pattern, to who runs where.
 *
 * Takes the vertex of the class program to single GPUs and jobs: whole contents that stay where
 * they stand; gangs; patterns in whole numbers, each on a GPU where some of its jobs stand already
 * if there is one; then jobs to slots, the one that needs most of those that a slot holds. A job is
 * kept only where those who need more still find slots (Hall's condition, counted by bins). Who is
 * left is inserted by prices. The result is feasible, close to the program's cost; the search makes
 * it closer.
 *
 * Called by: the planner. 'd' is as assignment_create left it, and prices have a vertex.
 */
#ifndef OPTIMIZE_SEARCH_ROUND_H
#define OPTIMIZE_SEARCH_ROUND_H

struct assignment;
struct reduced_costs;
struct prices;

void round_vertex(const struct prices *u, const struct reduced_costs *reduced,
                  struct assignment *d);

#endif
