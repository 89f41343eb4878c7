/* bends.h - what power limits do to a workload on a type, beyond the law over all of them.
 *
 * From its speeds alone under different limits, as cells sum them up: ln speed over the law's ln
 * factor is a line, and its slope is how much more than the law a limit takes. The same of its
 * watts, over those that it draws without a limit. What a family's other workloads have shown
 * stands in for what one has not. Owned by the estimator, and no more than a way to the cells.
 */
#ifndef ESTIMATE_BENDS_H
#define ESTIMATE_BENDS_H

#include "estimate/prior/limits.h"

struct catalog;

struct bends {
    int *cell;    // (n, n_types) of a workload alone on a type; -1: none
    int n, n_types;
    int n_cells;    // looked at so far
};

void bends_release(struct bends *b);

/* Look at the catalog's new cells; all of them where a type is new. */
void bends_meet(struct bends *b, const struct catalog *c);

/* What a limit is believed to take from it, in parts of what the law says. */
struct limit_bend bends_of(const struct bends *b, const struct catalog *c, int workload, int type);

#endif
