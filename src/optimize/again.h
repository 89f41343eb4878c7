/* again.h - the arithmetic of problem.h, done again from the raw tables.
 *
 * For the judge (answer_check.c) and the certificate only: they share nothing with those whom
 * they check, so problem_yield is not called here and this is not called elsewhere.
 */
#ifndef OPTIMIZE_AGAIN_H
#define OPTIMIZE_AGAIN_H

#include <stdbool.h>

#include "optimize/problem.h"

/* Two ways to the same number may differ by this factor. */
#define AGAIN_SAME 1e-9

enum again_why {
    AGAIN_RUNS,
    AGAIN_MEMORY,
    AGAIN_NEVER,    // the tables say so
};

/* What runs on a GPU: its watts, and each job's speed and low. */
struct again {
    double watts;
    double speed[THETA_MAX], low[THETA_MAX];
};

/* fmin is a call, for the sake of NaN; this is met too often. */
static inline double again_least(double a, double b)
{
    return a < b ? a : b;
}

static inline double again_cell(const struct problem *p, const float *table, int type, int kind,
                                int beside)
{
    long row = (long)type * p->n_kinds + kind;

    return (double)table[row * (p->n_kinds + 1) + beside + 1];
}

/* What a kind does in a second of its 'speed'. */
static inline double again_paced(const struct problem_kind *k, double speed)
{
    return k->rate > 0 && speed > k->rate ? k->rate : speed;
}

/* The i-th of n kinds beside the others: from the table for two, by the product of what each
 * leaves for more.
 */
static inline bool again_one(const struct problem *p, int type, const int *kinds, int n, int i,
                             double alone, struct again *r)
{
    double speed = alone, low = n == 1 ? again_cell(p, p->low, type, kinds[i], -1) : alone;
    bool may_run = alone > 0;

    for (int k = 0; k < n; k++) {
        if (k == i)
            continue;
        double with = again_cell(p, p->speed, type, kinds[i], kinds[k]);
        double held = again_cell(p, p->low, type, kinds[i], kinds[k]);
        may_run &= with > 0;
        speed = n == 2 ? with : speed * again_least(with / alone, 1);
        low = n == 2 ? held : low * again_least(held / alone, 1);
    }
    r->speed[i] = speed;
    r->low[i] = low;
    return may_run && speed > 0;
}

/* These kinds on a GPU of 'type' at its default setting. */
static inline enum again_why again_run(const struct problem *p, int type, const int *kinds, int n,
                                       struct again *r)
{
    const struct problem_type *t = &p->types[type];
    double mem_gib = 0, watts = t->idle_w;

    for (int i = 0; i < n; i++)
        mem_gib += p->kinds[kinds[i]].mem_gib;
    if (mem_gib > t->mem_gib * (1 + AGAIN_SAME))
        return AGAIN_MEMORY;
    for (int i = 0; i < n; i++) {
        double alone = again_cell(p, p->speed, type, kinds[i], -1);
        double own_w = (double)p->watts[type * p->n_kinds + kinds[i]] - t->idle_w;
        if (!again_one(p, type, kinds, n, i, alone, r))
            return AGAIN_NEVER;
        double share = again_paced(&p->kinds[kinds[i]], r->speed[i]) / alone;
        watts += own_w > 0 ? own_w * again_least(share, 1) : 0;
    }
    r->watts = again_least(watts, t->cap_w);
    return AGAIN_RUNS;
}

/* The same under another setting: fewer watts, all speeds by a factor. */
static inline void again_limit(const struct problem_type *t, int limit, int n, struct again *r)
{
    const struct limit_curve *c = &t->limits[limit];
    int last = c->n_points - 2, i = 0;

    if (limit == 0)
        return;
    double at = (r->watts - t->idle_w) * (c->n_points - 1) / (t->cap_w - t->idle_w);
    while (i < last && at >= i + 1)
        i++;
    double rest = at - i > 0 ? again_least(at - i, 1) : 0;
    double factor = (1 - rest) * c->speed[i] + rest * c->speed[i + 1];
    r->watts = (1 - rest) * c->watts[i] + rest * c->watts[i + 1];
    for (int k = 0; k < n; k++) {
        r->speed[k] *= factor;
        r->low[k] *= factor;
    }
}

#endif
