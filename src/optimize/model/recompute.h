/* recompute.h - the arithmetic of problem.h, done again from the raw tables.
 *
 * For the judge (plan_check.c) only: it shares nothing with those whom it checks, so problem_yield
 * is not called here and this is not called elsewhere.
 */
#ifndef OPTIMIZE_MODEL_RECOMPUTE_H
#define OPTIMIZE_MODEL_RECOMPUTE_H

#include <math.h>
#include <stdbool.h>

#include "optimize/model/problem.h"

/* Two ways to the same number may differ by this factor. */
#define RECOMPUTE_SAME 1e-9

enum recompute_why {
    RECOMPUTE_RUNS,
    RECOMPUTE_MEMORY,
    RECOMPUTE_NEVER,    // the tables say so
};

/* What runs on a GPU: its watts, and each job's speed and low. */
struct recomputed {
    double watts;
    double speed[THETA_MAX], low[THETA_MAX];
    double part_w[THETA_MAX];    // of the watts, at the default setting
};

/* fmin is a call, for the sake of NaN; this is met too often. */
static inline double recompute_least(double a, double b)
{
    return a < b ? a : b;
}

static inline double recompute_cell(const struct problem *p, const float *table, int type, int kind,
                                    int beside)
{
    long row = (long)type * p->n_kinds + kind;

    return (double)table[row * (p->n_kinds + 1) + beside + 1];
}

/* What a kind does in a second of its 'speed'. */
static inline double recompute_paced(const struct problem_kind *k, double speed)
{
    return k->rate > 0 && speed > k->rate ? k->rate : speed;
}

/* The i-th of n kinds beside the others: from the table for two, by the product of what each
 * leaves for more.
 */
static inline bool recompute_one(const struct problem *p, int type, const int *kinds, int n, int i,
                                 double alone, struct recomputed *r)
{
    double speed = alone, low = n == 1 ? recompute_cell(p, p->low, type, kinds[i], -1) : alone;
    bool may_run = alone > 0;

    for (int k = 0; k < n; k++) {
        if (k == i)
            continue;
        double with = recompute_cell(p, p->speed, type, kinds[i], kinds[k]);
        double held = recompute_cell(p, p->low, type, kinds[i], kinds[k]);
        may_run &= with > 0;
        speed = n == 2 ? with : speed * recompute_least(with / alone, 1);
        low = n == 2 ? held : low * recompute_least(held / alone, 1);
    }
    r->speed[i] = speed;
    r->low[i] = low;
    return may_run && speed > 0;
}

/* These kinds on a GPU of 'type' at its default setting. */
static inline enum recompute_why recompute_run(const struct problem *p, int type, const int *kinds,
                                               int n, struct recomputed *r)
{
    const struct problem_type *t = &p->types[type];
    double mem_gib = 0, watts = t->idle_w;

    for (int i = 0; i < n; i++)
        mem_gib += p->kinds[kinds[i]].mem_gib;
    if (mem_gib > t->mem_gib * (1 + RECOMPUTE_SAME))
        return RECOMPUTE_MEMORY;
    for (int i = 0; i < n; i++) {
        double alone = recompute_cell(p, p->speed, type, kinds[i], -1);
        double own_w = (double)p->watts[type * p->n_kinds + kinds[i]] - t->idle_w;
        if (!recompute_one(p, type, kinds, n, i, alone, r))
            return RECOMPUTE_NEVER;
        double share = recompute_paced(&p->kinds[kinds[i]], r->speed[i]) / alone;
        r->part_w[i] = own_w > 0 ? own_w * recompute_least(share, 1) : 0;
        watts += r->part_w[i];
    }
    r->watts = recompute_least(watts, t->cap_w);
    return RECOMPUTE_RUNS;
}

/* A type's curve: fewer watts; returns the factor of all speeds. */
static inline double recompute_curve(const struct problem_type *t, int limit, struct recomputed *r)
{
    const struct limit_curve *c = &t->limits[limit];
    int last = c->n_points - 2, i = 0;

    double at = (r->watts - t->idle_w) * (c->n_points - 1) / (t->cap_w - t->idle_w);
    while (i < last && at >= i + 1)
        i++;
    double rest = at - i > 0 ? recompute_least(at - i, 1) : 0;
    r->watts = (1 - rest) * c->watts[i] + rest * c->watts[i + 1];
    return (1 - rest) * c->speed[i] + rest * c->speed[i + 1];
}

/* How those on it differ from the curve, each as much as it adds to the watts 'w0'. Returns the
 * factor of what is held.
 */
static inline double recompute_bend(const struct problem *p, int type, int limit, const int *kinds,
                                    int n, double w0, double *factor, struct recomputed *r)
{
    double sum_w = 0, loss = 0, draw = 0, doubt = 0, from = 0, ln = log(*factor);

    for (int i = 0; i < n; i++) {
        const struct problem_bend *b = &p->bends[type * p->n_kinds + kinds[i]];
        sum_w += r->part_w[i];
        loss += r->part_w[i] * (double)b->loss;
        draw += r->part_w[i] * (double)b->draw;
        doubt += r->part_w[i] * (double)b->doubt;
        from += r->part_w[i] * (double)b->at;
    }
    if (!(sum_w > 0))
        return *factor;
    *factor = exp(loss / sum_w * ln);
    if (r->watts < w0) {
        double limit_w = p->types[type].limits[limit].limit_w, idle_w = p->types[type].idle_w;
        double bent_w = w0 * exp(draw / sum_w * log(r->watts / w0));
        bent_w = recompute_least(bent_w, r->watts > limit_w ? r->watts : limit_w);
        r->watts = bent_w > idle_w ? bent_w : idle_w;
    }
    return *factor * exp(-doubt / sum_w * fabs(ln - from / sum_w));
}

/* The same under another setting: fewer watts, all speeds by a factor. False: not allowed. */
static inline bool recompute_limit(const struct problem *p, int type, int limit, const int *kinds,
                                   int n, struct recomputed *r)
{
    const struct problem_type *t = &p->types[type];
    double w0 = r->watts, factor = limit == 0 ? 1 : recompute_curve(t, limit, r);
    for (int k = 0; k < n && limit > 0 && p->bends; k++)
        if (p->bends[type * p->n_kinds + kinds[k]].is_free)
            return false;
    double held = p->bends ? recompute_bend(p, type, limit, kinds, n, w0, &factor, r) : factor;

    for (int k = 0; k < n; k++) {
        r->speed[k] *= factor;
        r->low[k] *= held;
    }
    return true;
}

#endif
