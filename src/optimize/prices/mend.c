#include "optimize/prices/mend.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "optimize/prices/prices.h"
#include "optimize/model/problem.h"

/* ---- by itself ---- */

struct step {
    double from, price;
};

static int by_from(const void *x, const void *y)
{
    const struct step *a = x, *b = y;

    return a->from < b->from ? -1 : a->from > b->from;
}

struct slot_class prices_solo(struct arena *a, const struct problem *p, const struct prices *u,
                              int kind, int size)
{
    struct step *steps = ARENA_ARRAY(a, struct step, (size_t)p->n_types * LIMITS_MAX);
    int n = 0;

    for (int type = 0; type < p->n_types; type++)
        for (int limit = 0; limit < p->types[type].n_limits; limit++) {
            struct yield y;
            if (size > 1 ? !problem_gang_yield(p, type, limit, kind, size, true, &y)
                         : !problem_yield(p, type, limit, &kind, 1, &y))
                break;
            double draw_w = (y.watts - size * p->types[type].idle_w) * p->watts_margin;
            steps[n++] = (struct step){ y.low[0],
                                        y.cost_w + size * u->type_w[type] + u->cap_price * draw_w };
        }
    qsort(steps, (size_t)n, sizeof *steps, by_from);
    double *from = ARENA_ARRAY(a, double, (size_t)n), *price = ARENA_ARRAY(a, double, (size_t)n);
    for (int i = n - 1; i >= 0; i--) {
        from[i] = steps[i].from;
        price[i] = i < n - 1 ? fmin(steps[i].price, price[i + 1]) : steps[i].price;
    }
    return (struct slot_class){ kind, size, n, from, price };
}

/* ---- together ---- */

#define TOGETHER 3    // jobs on a GPU that are looked at

/* With more combinations of three than this, only pairs are looked at. */
#define CROWDS_MOST 3e5

struct mending {
    const struct problem *p;
    const struct prices *u;
    int n_live;
    int *live;          // (n_live) kinds that have shared slots
    double *over_w;     // (n_kinds) the most that a combination with it earns too much, a job
    uint64_t *types;    // (n_kinds) where some job of it may be
};

#define STEPS 24    // of a price that is made anew, at equal ratios

/* A kind's price in the making: steps from 'least' on. */
struct stairs {
    double least, ratio;    // lows; ln of the distance between two steps
    double price[STEPS];
};

/* How many jobs on one GPU are looked at. */
static int together(const struct mending *m)
{
    double n = m->n_live, crowds = n * (n + 1) * (n + 2) / 6 * m->p->n_types;
    int most = crowds > CROWDS_MOST ? 2 : TOGETHER;

    return m->p->theta < most ? m->p->theta : most;
}

/* What a combination earns beyond its GPU's worth, under its best setting, for each of its n jobs;
 * -INFINITY: it must not run.
 */
static double excess_w(const struct mending *m, int type, const int *kinds, int n)
{
    const struct problem_type *t = &m->p->types[type];
    double most = -INFINITY;

    for (int limit = 0; limit < t->n_limits; limit++) {
        struct yield y;
        if (!problem_yield(m->p, type, limit, kinds, n, &y))
            break;
        double draw_w = (y.watts - t->idle_w) * m->p->watts_margin;
        double w = -y.cost_w - m->u->type_w[type] - m->u->cap_price * draw_w;
        for (int i = 0; i < n; i++)
            w += price_of(m->u, kinds[i], SLOT_SHARED, y.low[i]);
        most = fmax(most, w);
    }
    return most / n;
}

static bool look(struct mending *m, int type, const int *kinds, int n)
{
    if (!(m->types[kinds[n - 1]] >> type & 1))
        return false;
    double w = excess_w(m, type, kinds, n);
    for (int i = 0; i < n; i++)
        m->over_w[kinds[i]] = fmax(m->over_w[kinds[i]], w);
    return isfinite(w);
}

/* Everything that begins with these n kinds and goes on with kinds not before 'from'. */
static void look_further(struct mending *m, int type, int *kinds, int n, int from)
{
    int most = together(m);

    for (int i = from; i < m->n_live && n < most; i++) {
        kinds[n] = m->live[i];
        if (look(m, type, kinds, n + 1))
            look_further(m, type, kinds, n + 1, i);
    }
}

static void list_kinds(struct arena *a, struct mending *m)
{
    const struct problem *p = m->p;

    m->live = ARENA_ARRAY(a, int, (size_t)p->n_kinds);
    m->over_w = ARENA_ARRAY(a, double, (size_t)p->n_kinds);
    m->types = ARENA_ARRAY(a, uint64_t, (size_t)p->n_kinds);
    for (int j = 0; j < p->n_jobs; j++) {
        const struct problem_job *job = &p->jobs[j];
        if (job->name && !job->is_exclusive && (job->form == FORM_SPREAD || job->n_min <= 1))
            m->types[job->kind] |= job->allowed_types ? job->allowed_types : ~UINT64_C(0);
    }
    for (int k = 0; k < p->n_kinds; k++)
        if (m->types[k])
            m->live[m->n_live++] = k;
}

/* Every combination's share falls on all its jobs alike: if each kind gives way by the largest
 * share it has in any, no combination earns too much any more.
 */
static void shift(struct mending *m, struct prices *u)
{
    for (int i = 0; i < u->n_classes; i++) {
        struct slot_class *c = &u->classes[i];
        double w = m->over_w[c->kind];
        for (int k = 0; k < c->n_steps && c->size == SLOT_SHARED && isfinite(w); k++)
            c->price[k] -= w;
    }
}

void prices_mend(struct arena *a, const struct problem *p, struct prices *u, int passes)
{
    struct mending m = { .p = p, .u = u };
    int kinds[THETA_MAX];

    list_kinds(a, &m);
    for (int pass = 0; pass < passes; pass++) {
        for (int k = 0; k < p->n_kinds; k++)
            m.over_w[k] = -INFINITY;
        for (int type = 0; type < p->n_types; type++)
            look_further(&m, type, kinds, 0, 0);
        shift(&m, u);
    }
}

/* ---- shares ---- */

static void stairs_begin(const struct mending *m, int kind, struct stairs *s)
{
    double most = 0;

    for (int type = 0; type < m->p->n_types; type++)
        most = fmax(most, (double)m->p->low[problem_cell(m->p, type, kind, -1)]);
    s->least = most / 1000;
    s->ratio = log(1000) / (STEPS - 1);
    for (int i = 0; i < STEPS; i++)
        s->price[i] = INFINITY;
}

/* A slot that holds 'low' is had for 'w'; it stands on one step, and is enough for those below. */
static void stairs_offer(struct stairs *s, double low, double w)
{
    int step = low > s->least ? (int)(log(low / s->least) / s->ratio) : 0;

    step = step < STEPS ? step : STEPS - 1;
    s->price[step] = fmin(s->price[step], w);
}

static bool share_among(struct mending *m, struct stairs *stairs, int type, const int *kinds, int n)
{
    const struct problem_type *t = &m->p->types[type];
    struct yield y;

    if (!(m->types[kinds[n - 1]] >> type & 1))
        return false;
    for (int limit = 0; limit < t->n_limits; limit++) {
        if (!problem_yield(m->p, type, limit, kinds, n, &y))
            return limit > 0;
        double draw_w = (y.watts - t->idle_w) * m->p->watts_margin;
        double w = y.cost_w + m->u->type_w[type] + m->u->cap_price * draw_w;
        for (int i = 0; i < n; i++)
            stairs_offer(&stairs[kinds[i]], y.low[i], w / n);
    }
    return true;
}

static void share_further(struct mending *m, struct stairs *stairs, int type, int *kinds, int n,
                          int from)
{
    int most = together(m);

    for (int i = from; i < m->n_live && n < most; i++) {
        kinds[n] = m->live[i];
        if (share_among(m, stairs, type, kinds, n + 1))
            share_further(m, stairs, type, kinds, n + 1, i);
    }
}

static void stairs_end(struct arena *a, struct stairs *s, struct slot_class *c)
{
    double *from = ARENA_ARRAY(a, double, STEPS);

    c->price = ARENA_ARRAY(a, double, STEPS);
    c->n_steps = STEPS;
    c->from = from;
    for (int i = STEPS - 1; i >= 0; i--) {
        from[i] = i ? s->least * exp(i * s->ratio) : 0;
        c->price[i] = i < STEPS - 1 ? fmin(s->price[i], c->price[i + 1]) : s->price[i];
    }
    for (int i = STEPS - 1; i > 0 && isinf(c->price[i]); i--)
        c->n_steps = i;    // nothing holds so much
}

void prices_share(struct arena *a, const struct problem *p, const struct prices *u, double share,
                  struct prices *out)
{
    struct mending m = { .p = p, .u = out };
    struct stairs *stairs = ARENA_ARRAY(a, struct stairs, (size_t)p->n_kinds);
    int kinds[THETA_MAX];

    *out = *u;
    out->type_w = ARENA_ARRAY(a, double, (size_t)p->n_types);
    for (int type = 0; type < p->n_types; type++)
        out->type_w[type] = share * u->type_w[type];
    list_kinds(a, &m);
    for (int k = 0; k < p->n_kinds; k++)
        stairs_begin(&m, k, &stairs[k]);
    for (int type = 0; type < p->n_types; type++)
        share_further(&m, stairs, type, kinds, 0, 0);
    out->classes = ARENA_ARRAY(a, struct slot_class, (size_t)u->n_classes);
    for (int i = 0; i < u->n_classes; i++) {
        out->classes[i] = u->classes[i];
        if (u->classes[i].size == SLOT_SHARED)
            stairs_end(a, &stairs[u->classes[i].kind], &out->classes[i]);
        else
            out->classes[i] = prices_solo(a, p, out, u->classes[i].kind, u->classes[i].size);
    }
}
