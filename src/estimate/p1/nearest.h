/* nearest.h - what the most similar remembered workloads say of a newcomer.
 *
 * Pure functions over a memory; members of P1, and what the networks start from. A slowdown is a
 * sum, sqrt(r) = the type's mean + the job's part + the neighbour's part, so that a table over
 * all pairs costs no more than one over workloads.
 */
#ifndef ESTIMATE_P1_NEAREST_H
#define ESTIMATE_P1_NEAREST_H

#include <stdbool.h>

struct features;
struct memory;
struct identity;

/* ln residual of the speed alone: the mean over the 'k' nearest of which it is
 * known, by similarity; where there are none, the mean over all that is known (0: nothing).
 * With 'no_kin' as if nobody of the family were known.
 */
float nearest_alone(const struct memory *m, const struct identity *who, const struct features *on,
                    bool no_kin, int k);

/* Likeness (the sum over those asked) at which half of a deviation from the type's mean is
 * believed: one workload whose descriptor stands near, without kin, has 0.4. Networks start from
 * the same belief.
 */
#define NEAREST_HALF_BELIEVED 0.15

/* The two parts of sqrt(r), each less the type's mean (memory_mean_s); 0 where nothing is known.
 * The parts of unlike workloads are shrunk towards 0. What was seen of the neighbour itself on this
 * very type stands alone: it is known, and only the job is new.
 */
float nearest_as_job(const struct memory *m, const struct identity *who, const struct features *on,
                     int k);
float nearest_as_neighbour(const struct memory *m, const struct identity *who,
                           const struct features *on, int k);

#endif
