/* fork_join.h - the same work in one thread or two, with the same result.
 *
 * Called by: whoever has independent parts. 'work' is called for part 0 and for part 1 of two, at
 * the same time or, with one thread, one after the other.
 */
#ifndef OPTIMIZE_PRICES_FORK_JOIN_H
#define OPTIMIZE_PRICES_FORK_JOIN_H

typedef void part_f(void *self, int part, int n_parts);

void fork_join(int threads, part_f *work, void *self);

#endif
