/* The GPUs' side of the certificate: which slots there are, and what a GPU can earn. */
#include "optimize/prices/certificate_inner.h"

#include <assert.h>
#include <math.h>

#include "base/arena.h"
#include "optimize/model/again.h"
#include "optimize/prices/prices.h"
#include "optimize/model/problem.h"

#define STARTS 32    // for each ladder
#define BLOCK 16     // kinds whose cells share a line of the cache

/* Combinations of three and more are looked at one by one up to this many (200 ns each with
 * three settings, measured); beyond, they are bounded by what pairs can earn.
 */
#define CROWDS_MOST 4e6

/* ---- ladders ---- */

int ladder_of(const struct market *m, int kind, int size)
{
    if (size <= SLOT_ALONE)
        return m->first[kind] + size;
    uint64_t below = (UINT64_C(1) << (size - 1)) - 1;
    return m->first[kind] + 2 + __builtin_popcountll(m->sizes[kind] & below);
}

static inline int ladder_start(const struct ladder *l, double low)
{
    double at = low * l->scale;

    return at >= STARTS - 1 ? STARTS - 1 : at > 0 ? (int)at : 0;
}

/* start[i]: how many steps begin in the parts of the ladder before the i-th. */
static void ladder_index(struct arena *a, struct ladder *l)
{
    double last = l->n > 1 ? l->from[l->n - 2] : 0;

    l->scale = last > 1e-300 ? (STARTS - 1) / last : 0;
    l->start = ARENA_ARRAY(a, int, STARTS);
    for (int i = 0; i < l->n - 1; i++) {
        int part = ladder_start(l, l->from[i]);
        if (part + 1 < STARTS)
            l->start[part + 1]++;
    }
    for (int i = 1; i < STARTS; i++)
        l->start[i] += l->start[i - 1];
}

static void ladder_make(struct arena *a, struct market *m, int kind, int size)
{
    struct ladder *l = &m->ladders[ladder_of(m, kind, size)];
    const struct slot_class *c = NULL;

    for (int i = m->u->first[kind]; i < m->u->first[kind + 1]; i++)
        if (m->u->classes[i].size == size)
            c = &m->u->classes[i];
    l->n = c ? c->n_steps + 1 : 1;
    l->from = c ? c->from : NULL;
    l->price = ARENA_ARRAY(a, double, (size_t)l->n);
    if (l->n > 1)
        l->price[0] = most(least(c->price[0], 0), -PRICE_MOST);
    for (int i = 1; i < l->n; i++) {
        assert(i < 2 || c->from[i - 1] >= c->from[i - 2]);
        l->price[i] = fmin(fmax(c->price[i - 1], l->price[i - 1]), PRICE_MOST);
    }
    ladder_index(a, l);
    l->at = m->n_tops;
    m->n_tops += (long)l->n * m->p->n_types;
}

void ladders_make(struct arena *a, struct market *m)
{
    const struct problem *p = m->p;
    int n = 0;

    m->first = ARENA_ARRAY(a, int, (size_t)p->n_kinds);
    for (int k = 0; k < p->n_kinds; k++) {
        m->first[k] = n;
        n += 2 + __builtin_popcountll(m->sizes[k]);
    }
    m->ladders = ARENA_ARRAY(a, struct ladder, (size_t)n);
    for (int k = 0; k < p->n_kinds; k++) {
        ladder_make(a, m, k, SLOT_SHARED);
        ladder_make(a, m, k, SLOT_ALONE);
        for (int size = 2; size <= GANG_MAX; size++)
            if (m->sizes[k] >> (size - 1) & 1)
                ladder_make(a, m, k, size);
    }
    for (int s = 0; s < m->threads; s++) {
        m->stalls[s].top = ARENA_ARRAY(a, double, (size_t)m->n_tops);
        m->stalls[s].earn_w = ARENA_ARRAY(a, double, (size_t)p->n_types);
        m->stalls[s].pair_w = ARENA_ARRAY(a, double, (size_t)p->n_types);
        for (long i = 0; i < m->n_tops; i++)
            m->stalls[s].top[i] = NO_SLOT;
    }
}

/* The step of a slot that holds 'low'. Both sides of the bound meet a slot here, once, so a
 * hair of tolerance (see price_of) does no harm.
 */
static inline int ladder_step(const struct ladder *l, double low)
{
    double reach = low * (1 + AGAIN_SAME);
    int step = l->start[ladder_start(l, reach)];

    while (step < l->n - 1 && l->from[step] <= reach)
        step++;
    return step;
}

/* A slot exists: remember it, and give its price. */
static inline double slot_offer(const struct market *m, struct stall *s, int ladder, int type,
                                double low)
{
    const struct ladder *l = &m->ladders[ladder];
    int step = ladder_step(l, low);
    double *top = &s->top[l->at + (long)type * l->n + step];

    *top = low > *top ? low : *top;
    return l->price[step];
}

/* ---- what a GPU can earn ---- */

/* What using a GPU costs besides its jobs' value, the cap's price included. */
static double use_w(const struct market *m, int type, double watts)
{
    const struct problem_type *t = &m->p->types[type];

    return watts - t->sleep_w + m->p->price_w + m->cap_price * (watts - t->idle_w);
}

static void earn(struct stall *s, int type, double w)
{
    if (w > s->earn_w[type])
        s->earn_w[type] = w;
}

static bool is_offered(const struct market *m, int type, const int *kinds, int n)
{
    for (int i = 0; i < n; i++) {
        int same = 0;
        for (int k = 0; k < n; k++)
            same += kinds[k] == kinds[i];
        if (m->sharers[(long)kinds[i] * m->p->n_types + type] < same)
            return false;
    }
    return true;
}

/* These kinds, sharing a GPU of 'type' (or one alone who would share), under every setting.
 * False: they cannot, and neither can more of them.
 */
static bool offer_shared(const struct market *m, struct stall *s, int type, const int *kinds, int n)
{
    const struct problem *p = m->p;
    struct again base;

    if (!is_offered(m, type, kinds, n) || again_run(p, type, kinds, n, &base) != AGAIN_RUNS)
        return false;
    for (int limit = 0; limit < p->types[type].n_limits; limit++) {
        struct again r = base;
        if (!again_limit(p, type, limit, kinds, n, &r))
            continue;
        double w = 0;
        for (int i = 0; i < n; i++) {
            const struct problem_kind *k = &p->kinds[kinds[i]];
            w += slot_offer(m, s, m->first[kinds[i]] + SLOT_SHARED, type, r.low[i]) +
                 k->value_j * again_paced(k, r.speed[i]);
        }
        earn(s, type, w - use_w(m, type, r.watts));
        if (n == 2 && limit == 0 && w > s->pair_w[type])
            s->pair_w[type] = w;
    }
    return true;
}

/* A gang counts as near where some node has that many: its slot then holds no less and its
 * steps are worth no less than over several.
 */
static void offer_gang(const struct market *m, struct stall *s, int type, int kind, int size,
                       const struct again *r)
{
    const struct problem_kind *k = &m->p->kinds[kind];
    bool is_near = m->n_on_node[type] >= size;
    double factor = is_near ? m->p->gang_near[size] : m->p->gang_far[size];

    if (m->n_usable[type] < size || !(m->gang_types[kind] >> type & 1))
        return;
    double w = slot_offer(m, s, ladder_of(m, kind, size), type, r->low[0] * factor) +
               k->value_j * again_paced(k, r->speed[0] * factor);
    earn(s, type, w / size - use_w(m, type, r->watts));
}

/* A kind by itself: exclusive, and in gangs of every size that is asked for. */
static void offer_alone(const struct market *m, struct stall *s, int type, int kind)
{
    const struct problem *p = m->p;
    const struct problem_kind *k = &p->kinds[kind];
    struct again base;

    if (again_run(p, type, &kind, 1, &base) != AGAIN_RUNS)
        return;
    for (int limit = 0; limit < p->types[type].n_limits; limit++) {
        struct again r = base;
        if (!again_limit(p, type, limit, &kind, 1, &r))
            continue;
        if (m->loners[(long)kind * p->n_types + type])
            earn(s, type,
                 slot_offer(m, s, m->first[kind] + SLOT_ALONE, type, r.low[0]) +
                     k->value_j * again_paced(k, r.speed[0]) - use_w(m, type, r.watts));
        for (uint64_t left = m->sizes[kind]; left; left &= left - 1)
            offer_gang(m, s, type, kind, __builtin_ctzll(left) + 1, &r);
    }
}

/* Everything that begins with these n kinds and goes on with kinds not before 'from'. */
static void offer_more(const struct market *m, struct stall *s, int type, int *kinds, int n,
                       int from)
{
    for (int k = from; k < m->p->n_kinds && n < m->together; k++) {
        kinds[n] = k;
        if (offer_shared(m, s, type, kinds, n + 1))
            offer_more(m, s, type, kinds, n + 1, k);
    }
}

/* Everything whose first kind is in the block. Second kinds walk outside, so that the cells of
 * (second, first) are met line by line.
 */
static void offer_block(const struct market *m, struct stall *s, int type, int block)
{
    int end = block + BLOCK < m->p->n_kinds ? block + BLOCK : m->p->n_kinds;
    int kinds[THETA_MAX];

    for (int k = block; k < end; k++) {
        offer_alone(m, s, type, k);
        offer_shared(m, s, type, &k, 1);
    }
    for (int second = block; second < m->p->n_kinds && m->together > 1; second++)
        for (int k = block; k < end && k <= second; k++) {
            kinds[0] = k;
            kinds[1] = second;
            if (offer_shared(m, s, type, kinds, 2))
                offer_more(m, s, type, kinds, 2, second);
        }
}

/* ---- GPUs that take nobody new ---- */

/* What some of those on a GPU would earn there, under its best setting. */
static double stayers_w(const struct market *m, int type, const int *kinds, int n, int size)
{
    const struct problem *p = m->p;
    double best = 0;
    struct again base;

    if (again_run(p, type, kinds, n, &base) != AGAIN_RUNS)
        return 0;
    for (int limit = 0; limit < p->types[type].n_limits; limit++) {
        struct again r = base;
        double w = 0;
        if (!again_limit(p, type, limit, kinds, n, &r))
            continue;
        for (int i = 0; i < n; i++) {
            const struct problem_kind *k = &p->kinds[kinds[i]];
            const struct ladder *l = &m->ladders[m->first[kinds[i]] + size];
            w += l->price[ladder_step(l, r.low[i])] + k->value_j * again_paced(k, r.speed[i]);
        }
        best = most(best, w - use_w(m, type, r.watts));
    }
    return best;
}

double offer_drained(const struct market *m, int type, const int *kinds, int n, bool is_exclusive)
{
    double best = 0;

    for (unsigned some = 1; some < 1U << n; some++) {
        int stay[THETA_MAX], n_stay = 0;
        for (int i = 0; i < n; i++)
            if (some >> i & 1)
                stay[n_stay++] = kinds[i];
        best =
            most(best, stayers_w(m, type, stay, n_stay, is_exclusive ? SLOT_ALONE : SLOT_SHARED));
    }
    return best;
}

/* ---- more combinations than can be looked at ---- */

/* A job among n is no faster, and its slot holds no more, than in the pair with any one of the
 * others at the default setting; so n of them bring at most n / 2 times what the best pair
 * does. And such slots may hold anything below what pairs hold.
 */
static void bound_crowds(const struct market *m, struct stall *s, int type)
{
    const struct problem *p = m->p;
    const struct problem_type *t = &p->types[type];
    double least_w = t->idle_w;

    for (int limit = 1; limit < t->n_limits; limit++)
        for (int i = 0; i < t->limits[limit].n_points; i++)
            least_w = least(least_w, t->limits[limit].watts[i]);
    earn(s, type, s->pair_w[type] * p->theta / 2 - use_w(m, type, least_w));
    for (int k = 0; k < p->n_kinds; k++) {
        const struct ladder *l = &m->ladders[m->first[k] + SLOT_SHARED];
        double *top = &s->top[l->at + (long)type * l->n];
        int step = l->n - 1;
        while (step >= 0 && top[step] < 0)
            step--;
        while (--step >= 0)
            top[step] = l->from[step];
    }
}

/* All kinds in multisets of 3 to theta, on all types. */
static double n_crowds(const struct problem *p)
{
    double n = p->n_kinds * (p->n_kinds + 1.0) / 2, sum = 0;

    for (int size = 3; size <= p->theta; size++) {
        n *= (p->n_kinds + size - 1.0) / size;
        sum += n;
    }
    return sum * p->n_types;
}

int offer_together(const struct problem *p)
{
    return p->theta > 2 && n_crowds(p) > CROWDS_MOST ? 2 : p->theta;
}

void offer_kind(const struct market *m, int type, int kind)
{
    struct stall s = m->stalls[0];
    int kinds[THETA_MAX] = { kind };

    offer_alone(m, &s, type, kind);
    if (offer_shared(m, &s, type, kinds, 1))
        offer_more(m, &s, type, kinds, 1, 0);
    if (m->together < m->p->theta)
        bound_crowds(m, &s, type);
}

/* ---- all of it ---- */

int offer_n_units(const struct problem *p)
{
    return (p->n_kinds + BLOCK - 1) / BLOCK * p->n_types;
}

/* Whoever takes which unit, tops and earnings are maxima: the same in any order. */
void *offer_units(void *arg)
{
    const struct hand *h = arg;
    struct market *m = h->m;
    int n_types = m->p->n_types;

    for (int unit = next_unit(m); unit < m->n_units; unit = next_unit(m))
        if (m->n_usable[unit % n_types])
            offer_block(m, &m->stalls[h->index], unit % n_types, unit / n_types * BLOCK);
    return NULL;
}

void offer_end(struct market *m)
{
    const struct problem *p = m->p;
    struct stall *s = &m->stalls[0], *other = &m->stalls[1];

    for (long i = 0; i < m->n_tops && m->threads > 1; i++)
        s->top[i] = most(s->top[i], other->top[i]);
    for (int t = 0; t < p->n_types; t++) {
        if (m->threads > 1) {
            earn(s, t, other->earn_w[t]);
            s->pair_w[t] = most(s->pair_w[t], other->pair_w[t]);
        }
        if (m->together < p->theta && m->n_usable[t])
            bound_crowds(m, s, t);
    }
}
