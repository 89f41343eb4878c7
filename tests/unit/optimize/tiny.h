/* tiny.h - small random problems with every feature on, for tests against brute force.
 *
 * Numbers come from small sets, so that ties and exact fits occur. The same seed gives the same
 * problem. Everything lives in the arena.
 */
#ifndef TESTS_UNIT_OPTIMIZE_TINY_H
#define TESTS_UNIT_OPTIMIZE_TINY_H

#include <stdint.h>

struct arena;
struct problem;

/* At most this many jobs (0..) and GPUs (0..), theta 1 to 3, in half of them bends, passing
 * problem_check.
 */
void tiny_make(struct arena *a, uint64_t seed, int jobs_most, int gpus_most, struct problem *out);

/* The same with rules of an engine: nodes with few CPUs and little memory, nodes that some jobs are
 * kept from, devices that have names.
 */
void tiny_rules(struct arena *a, uint64_t seed, struct problem *p);

/* Speeds in doubt, and hopes of types and pairs: what problems of files have not. */
void tiny_doubts(struct arena *a, uint64_t seed, struct problem *p);

/* tiny_make, with tiny_rules for every other seed, and tiny_doubts for every third. */
void tiny_any(struct arena *a, uint64_t seed, int jobs_most, int gpus_most, struct problem *out);

#endif
