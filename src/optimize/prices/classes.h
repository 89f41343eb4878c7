/* classes.h - the class program: how many GPUs of each type should be doing what.
 *
 * Minimise the cost of dishes and of shortfalls so that for every slot class and every level
 * there are as many slots that hold it as jobs that need it. Because a job takes any slot at or
 * above its need, one row for each (class, level) says it all, however many different promises
 * there are; all coefficients are small integers. Rows (levels) and columns (dishes, other ways
 * for a group) are added as they turn out to matter. The relaxation leaves out nodes, racks,
 * moves and any-of lists beyond what they do to levels; its bound is never taken from the solver, but
 * from the prices by the certificate.
 *
 * Made and owned by: whoever plans. Read by: rounding (columns and their values), the
 * certificate and the search (prices).
 */
#ifndef OPTIMIZE_PRICES_CLASSES_H
#define OPTIMIZE_PRICES_CLASSES_H

#include "optimize/prices/demand.h"
#include "optimize/prices/kinds.h"
#include "optimize/prices/menu.h"

struct arena;
struct clock;
struct prices;
struct problem;

struct class_dish {
    const struct dish *dish;
    double count;    // GPUs (gangs) that should do so; a fraction where the vertex has one
};

struct class_way {
    int group;
    struct way way;
    double count;    // jobs of the group that take this instead of the base
};

struct classes {
    struct kinds kinds;
    struct menu menu;
    struct demand demand;
    int n_dishes;
    struct class_dish *dishes;    // those with a count above 0
    int n_ways;
    struct class_way *ways;
    double cost_w;    // the program's, for people
    int n_rows, n_columns, n_rounds;
};

struct classes_options {
    double tolerance;    // for kinds_cluster
    int clusters_most;
    double alike;                 // needs within this factor are taken together
    const struct clock *clock;    // NULL: it takes the time it takes
    double until_s;               // on that clock; prices are rougher then, and bounds lower
};

/* Solve; everything in 'a'. */
void classes_solve(struct arena *a, const struct problem *p, const struct classes_options *o,
                   struct classes *out, struct prices *prices);

#endif
