/* problem_make.h - a realistic problem from a seed, for benches, tests and whoever wants to try.
 *
 * Called by: `gogh optimize --generate`, `gogh bench optimize`, tests. The same options give the
 * same problem; every number is rounded to few digits, so that problem_write and problem_read
 * give it back exactly.
 *
 * GPU types are 1:2:4:8 as fast (tiers), 60 to 400 W a job, 12 to 80 GiB; kinds differ in how
 * much of a fast GPU they can use, so that the most efficient type depends on the kind. Slowdowns
 * are 0.3 to 1, worse between heavy kinds and on small GPUs; one pair in a hundred must never
 * share. Every second type has two power limits. A handful of kinds has one job, the others many.
 * 75 % of the jobs take one GPU, 15 % up to two, 10 % up to four; of those two thirds are spread
 * and one third gangs. One in twenty has no promise. All jobs of 8 % of the kinds, and a few single
 * ones, may use certain types only. A GPU in use costs 50 W, a move 0.1 to 1 W.
 *
 * About 60 % of the jobs run already: where a plan for the first 75 % had put them, a fifth of whom
 * have ended since. (Making a problem therefore plans one; 'standing' 0 does not.)
 *
 * At 1.4 jobs a GPU nearly all promises can hold, and some GPUs sleep; at 2 they cannot. The cap is
 * what all GPUs draw when idle, and 1.6 times what the standing allocation adds to that (2 times on
 * fewer than 100 GPUs), with the margin; racks may draw 0.9 of their GPUs' caps.
 */
#ifndef OPTIMIZE_FILES_PROBLEM_MAKE_H
#define OPTIMIZE_FILES_PROBLEM_MAKE_H

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct problem;

struct make_options {
    int n_jobs, n_gpus;    // at least 0
    int n_types;           // 1..64
    int n_kinds;           // 0: as suits n_jobs, 8 to 50
    uint64_t seed;
    int theta;          // 1..THETA_MAX
    double overload;    // 1: all promises can hold; every promise is multiplied by this
    double standing;    // share of the jobs that run already, 0..1
    bool joules;        // minimise joules to finish; false: watts
};

/* 140 jobs, 100 GPUs, 6 types, theta 2, joules, seed 1. */
extern const struct make_options make_defaults;

void problem_make(struct arena *a, const struct make_options *o, struct problem *out);

#endif
