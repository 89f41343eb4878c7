/* search.h - make an assignment's answer cheaper: take some of it away, insert it again, keep what
 * is better.
 *
 * A step is one of ruin and recreate: it takes the jobs of a few related GPUs away and inserts them
 * again in another order. Or it swaps two jobs; evicts those on some GPUs for one job; displaces
 * along a chain, each job taking the slot of a humbler one; or attracts to a GPU with room the job
 * that gains most by it. It is kept when the cost falls, and early on sometimes when it rises a
 * little. Where the price of slots is known, steps begin where most is lost: a GPU's reduced cost
 * and its jobs' slack add up to the gap between the cost and the bound.
 *
 * Small problems are walked several times from the same start, and the best walk counts. Large
 * ones are cut into shards that do not see each other, and cut differently after a while; with
 * prices, two rounds of three walk only two shards of the GPUs that lose most. Both ways
 * depend on the problem's size and the seed only; threads decide who walks where. So the same
 * assignment, seed and number of nodes give the same answer on any number of threads.
 */
#ifndef OPTIMIZE_SEARCH_SEARCH_H
#define OPTIMIZE_SEARCH_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct assignment;
struct clock;
struct plan;
struct plan_job;
struct prices;
struct problem;
struct reduced_costs;

struct search_options {
    uint64_t seed;
    long nodes;                   // steps in all; 0: until 'until_s'
    int threads;                  // 1 or 2
    const struct clock *clock;    // NULL: no end but the nodes
    double until_s;               // on that clock
};

extern const struct search_options search_defaults;

/* Improve 'd'. 'u' (may be NULL) are the prices. Never ends with a higher cost than it began with.
 * Returns the steps done.
 */
long search_run(struct assignment *d, const struct prices *u, const struct search_options *o);

/* The same with few steps on a plan that stands and is good: downhill, beginning where somebody is
 * new and where most is lost. What it takes depends little on the problem's size. 'reduced' is what
 * 'u' says of this assignment's places.
 */
void search_around(struct assignment *d, const struct prices *u,
                   const struct reduced_costs *reduced, uint64_t seed, int nodes);

/* ---- before and after it ---- */

/* round.c: the vertex of the class program as single GPUs and jobs, and who is left by prices; 'd'
 * is as assignment_create left it. tight.c: the same from prices alone.
 */
void round_vertex(const struct prices *u, const struct reduced_costs *reduced,
                  struct assignment *d);
void tight_place(const struct prices *u, const struct reduced_costs *reduced, struct assignment *d);

/* exchange.c: jobs back to where they stand, where that changes nothing else. Returns the watts
 * saved.
 */
double exchange_homes(struct assignment *d);

/* repair.c: as much of a plan as the rules allow by now, for the cycle, when something has changed
 * between a plan and the time to act on it. 'wanted' (n_jobs) are the places (n_gpus, gpus,
 * limit_w) that the problem's jobs should have; who cannot have its place stays as it is, with
 * whoever then cannot have it either, and 'wanted' says so. Those of 'is_left' (n_jobs) want what
 * they have, their power limit too. The plan is in 'a'; the judge has not seen it.
 */
void plan_repair(struct arena *a, const struct problem *p, struct plan_job *wanted,
                 const bool *is_left, struct plan *out);

#endif
