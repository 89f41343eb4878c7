/* posterior.h - what readings of a site say about every cell of it: mean and standard deviation.
 *
 * Exact Gaussian conditioning under the hierarchical model. P1 is its answer for a workload without
 * readings of its own, P2 its answer after one more: posterior_add costs a row, and every other
 * cell of the site is asked anew. Answers are worked out when they are asked for: what depends on
 * one workload on one type is kept, so that a cell of two workloads takes a scalar product or
 * three. Owns heap memory; one thread at a time.
 */
#ifndef ESTIMATE_HIERARCHICAL_POSTERIOR_H
#define ESTIMATE_HIERARCHICAL_POSTERIOR_H

#include "estimate/hierarchical/fit.h"

struct err;
struct posterior;

struct cell_belief {
    double mean, sd;    // of a reading's logarithm
};

/* Readings that are conditioned on at once: the cube of it is paid when one is made, its square for
 * each workload on a type. More bring little: effects of type and family are known by then.
 */
#define POSTERIOR_MOST 1280

/* 'site' is borrowed and may grow. Of more readings than POSTERIOR_MOST, less some room to add,
 * as many as there is room for are taken, those alone, which stand first, before others: of either
 * kind the newest, which stand last, and evenly some. -EDOM: the covariance is none.
 */
int posterior_create(const struct site *site, const struct hyper *h, struct hyper_scale scale,
                     const struct reading *list, int n, struct posterior **out, struct err *e);
void posterior_destroy(struct posterior *p);    // NULL is fine

/* One more reading. -ENOSPC: there are POSTERIOR_MOST; -EDOM: it follows from the others. */
int posterior_add(struct posterior *p, const struct reading *r, struct err *e);

int posterior_n(const struct posterior *p);

/* The reading that is of this cell, -1: none is; what it says; that it says another number now, as
 * sure as before.
 */
int posterior_find(const struct posterior *p, int type, int job, int neighbour);
double posterior_value(const struct posterior *p, int i);
void posterior_set(struct posterior *p, int i, double value);

/* Forget all but the first 'n' again. */
void posterior_truncate(struct posterior *p, int n);

/* Work out what pairs have in common now, and not when it is first asked for. */
void posterior_warm(struct posterior *p);

/* What is believed of a cell: 'neighbour' is read where 'of' is not READ_ALONE. */
struct cell_belief posterior_ask(struct posterior *p, enum reading_of of, int type, int job,
                                 int neighbour);

/* Of a pair at once: the speed of a packed job, and its slowdown; as asked one by one, but for
 * rounding.
 */
void posterior_ask_pair(struct posterior *p, int type, int job, int neighbour,
                        struct cell_belief *packed, struct cell_belief *slowdown);

#endif
