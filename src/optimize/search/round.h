/* round.h - from how many GPUs should do what, to who does it where.
 *
 * Takes the class program's counts, in whole numbers where they are nearly that, to single
 * GPUs and single jobs: gangs first, then GPUs that may keep who is there, then the others; a
 * job gets the slot that holds least among those that hold enough. Whoever is left is inserted
 * where it is cheapest. The result is a feasible desk, close to the program's cost; the search makes it
 * closer.
 */
#ifndef OPTIMIZE_SEARCH_ROUND_H
#define OPTIMIZE_SEARCH_ROUND_H

struct arena;
struct classes;
struct desk;
struct prices;

/* 'd' is as desk_create left it. Scratch in 'a'. */
void round_classes(struct arena *a, const struct classes *c, const struct prices *u,
                   struct desk *d);

#endif
