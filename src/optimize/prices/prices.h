/* prices.h - what slots and GPUs are worth in a problem, found step by step, and the bound that
 * follows.
 *
 *     a guess, or prices kept from an earlier problem
 *       -> ascent on few bins, then on more (dual.h)      near the best bound
 *       -> the class program (master.h), where a vertex is wanted to round
 *
 * Made by: prices_find. Read by: rounding, the search (a GPU's reduced cost says how inefficient it
 * is), the exact method, and whoever explains a plan. Owned; the problem is borrowed.
 */
#ifndef OPTIMIZE_PRICES_PRICES_H
#define OPTIMIZE_PRICES_PRICES_H

#include <stdbool.h>

#include "base/arena.h"
#include "optimize/prices/dual.h"

struct clock;
struct columns;
struct kept_prices;
struct master;
struct problem;

struct prices {
    struct arena arena;
    struct columns *columns;
    struct dual u;
    double *job_w;         // (n_jobs) what each job's cheapest choice costs: its part of the bound
    double bound_w;        // no plan costs less
    int *class_of_kind;    // (n_kinds) the class that most jobs of a kind are of; -1: none
    struct master *master;    // NULL: not asked for, or no time
};

struct prices_options {
    const struct kept_prices *kept;    // begin with these, and look no further; NULL: find them
    bool wants_vertex;                 // the class program too
    int threads;
    const struct clock *clock;    // NULL: no end but what suits
    double ascent_until_s, refine_until_s, until_s;
};

struct prices *prices_find(const struct problem *p, const struct prices_options *o);
void prices_destroy(struct prices *u);

/* The price of a slot for a usual job of the kind that holds 'low'; 0: no job of it takes slots. */
double prices_slot_w(const struct prices *u, int kind, double low);

#endif
