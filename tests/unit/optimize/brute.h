/* brute.h - the true optimum of a tiny problem, by trying everything.
 *
 * An oracle for tests. Tries every set of GPUs for every job and every setting; leaves out what
 * cannot be cheaper than the best answer so far, and sets that differ only in GPUs that are alike.
 */
#ifndef TESTS_UNIT_OPTIMIZE_BRUTE_H
#define TESTS_UNIT_OPTIMIZE_BRUTE_H

#include <stdbool.h>

struct arena;
struct plan;
struct problem;

#define BRUTE_JOBS 8
#define BRUTE_GPUS 6
#define BRUTE_KINDS 4

/* The best answer, priced, every waiting job for WAIT_CAPACITY. False: more than 'nodes' steps
 * would be needed; 'out' is then the best so far.
 */
bool brute_solve(struct arena *a, const struct problem *p, long nodes, struct plan *out);

#endif
