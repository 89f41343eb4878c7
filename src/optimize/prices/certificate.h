/* certificate.h - a lower bound on the cost of every plan, from prices.
 *
 *     sum over jobs of what their cheapest choice costs (choices.h)
 *   - sum over GPUs of the most that each can earn by running some pattern (0: asleep)
 *   - prices of watts * those of the cap, and of racks, above all GPUs awake
 *
 * Weak duality: whoever made the prices, and however badly, no plan costs less. A GPU on which
 * somebody stands earns what its staying saves too: so moves are in the bound. Waking is not.
 *
 * Called by: the planner, at every decision; benches; tests, which hold it against proven optima.
 */
#ifndef OPTIMIZE_PRICES_CERTIFICATE_H
#define OPTIMIZE_PRICES_CERTIFICATE_H

struct arena;
struct choice;
struct columns;
struct dual;

/* The bound; u->type_w is set on the way. 'choices' (n_jobs) gets what jobs choose, in the arenas.
 */
double certificate_bound(struct arena *arenas, const struct columns *c, struct dual *u, int threads,
                         struct choice *choices);

#endif
