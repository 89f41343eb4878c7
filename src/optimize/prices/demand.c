#include "optimize/prices/demand.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "optimize/prices/kinds.h"
#include "optimize/prices/menu.h"

/* Jobs of one slot count with their own needs as long as they take their base, so that more
 * of them may be alike.
 */
#define ALIKE_SINGLE 0.85

/* ---- levels ---- */

static bool allows(uint64_t types, int type)
{
    return types == 0 || (types >> type & 1);
}

/* How many of the cluster's slots are below 'x'. */
static int n_below(const struct menu_slots *c, double x)
{
    int from = 0, to = c->n;

    while (from < to) {
        int mid = (from + to) / 2;
        if (c->low[mid] < x)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

/* The least that a slot on these types which reaches 'need' holds; -1: there is none. */
static double level_above(const struct menu_slots *c, double need, uint64_t types)
{
    for (int i = n_below(c, need); i < c->n; i++)
        if (allows(types, c->type[i]))
            return types ? c->low[i] : need;
    return -1;
}

/* The most that a slot on these types below 'x' holds; -1: there is none. */
static double level_below(const struct menu_slots *c, double x, uint64_t types)
{
    for (int i = n_below(c, x) - 1; i >= 0; i--)
        if (allows(types, c->type[i]))
            return c->low[i];
    return -1;
}

static double short_w(const struct group *g, double low)
{
    return low >= g->need ? 0 : g->short_w * (1 - low / g->need);
}

/* ---- bases ---- */

static int least_size(const struct group *g)
{
    if (g->form == FORM_SPREAD || g->n_min < 2)
        return g->is_exclusive ? 1 : 2;    // one that may share takes a slot instead of one GPU
    return g->n_min;
}

static int most_parts(const struct group *g)
{
    int n = g->form == FORM_SPREAD ? g->n_max : g->n_min <= 1;

    return g->is_exclusive ? 0 : n < WAY_SLOTS ? n : WAY_SLOTS;
}

/* The fewest equal parts that keep the promise, or as many as there may be of the largest. */
static void base_slots(const struct menu *m, const struct group *g, struct way *out)
{
    const struct menu_slots *c = &m->slots[g->cluster];
    int n = 0, most = most_parts(g);
    double level = -1;

    while (level < 0 && n < most)
        level = level_above(c, g->need / ++n, g->allowed_types);
    if (level < 0 && n > 0)
        level = level_below(c, INFINITY, g->allowed_types);
    if (level < 0)
        return;
    *out = (struct way){ .n_slots = n, .solo = -1, .cost_w = short_w(g, n * level) };
    for (int i = 0; i < n; i++)
        out->level[i] = level;
}

/* Every solo a group may take, to 'visit'; of an exclusive spread job, one part. */
static void each_solo(const struct menu *m, const struct group *g,
                      void (*visit)(void *self, int solo, const struct dish *d), void *self)
{
    int most = g->form == FORM_SPREAD ? 1 : g->n_max;

    for (int size = least_size(g); size <= most; size++) {
        const struct menu_solos *s = menu_solo(m, g->cluster, size);
        for (int i = 0; i < s->n; i++)
            if (allows(g->allowed_types, m->solos[s->dish[i]].type))
                visit(self, s->dish[i], &m->solos[s->dish[i]]);
    }
}

struct pick {
    const struct group *group;
    const struct tariff *tariff;    // NULL: costs as they are
    struct way *best;
    double best_w;
};

static void pick_solo(void *self, int solo, const struct dish *d)
{
    struct pick *p = self;
    int most = p->group->form == FORM_SPREAD ? p->group->n_max : 1;

    for (int n = 1; n <= most; n++) {
        double own_w = n * d->cost_w + short_w(p->group, n * d->low[0]);
        double all_w = own_w + (p->tariff ? n * (tariff_dish(p->tariff, d) - d->cost_w) : 0);
        if (all_w >= p->best_w)
            continue;
        p->best_w = all_w;
        *p->best = (struct way){ .solo = solo, .n_solo = n, .cost_w = own_w };
    }
}

static void base_make(const struct menu *m, const struct group *g, struct way *out)
{
    *out = (struct way){ .solo = -1, .cost_w = g->wait_w };
    base_slots(m, g, out);
    if (out->n_slots && out->cost_w < g->wait_w)
        return;
    *out = (struct way){ .solo = -1, .cost_w = g->wait_w };
    struct pick p = { .group = g, .best = out, .best_w = INFINITY };
    each_solo(m, g, pick_solo, &p);
}

/* ---- groups ---- */

struct wish {
    struct group as;    // a group of this one job
    int job;
};

#define ORDER(x, y) \
    if ((x) != (y)) \
    return (x) < (y) ? -1 : 1

/* What must agree for two jobs to be in one group. */
static int by_class(const struct group *x, const struct group *y)
{
    ORDER(x->cluster, y->cluster);
    ORDER(x->form, y->form);
    ORDER(x->n_min, y->n_min);
    ORDER(x->n_max, y->n_max);
    ORDER(x->is_exclusive, y->is_exclusive);
    ORDER(x->allowed_types, y->allowed_types);
    ORDER(x->short_w, y->short_w);
    ORDER(x->weight, y->weight);
    return 0;
}

static int by_need(const void *a, const void *b)
{
    const struct wish *x = a, *y = b;
    int order = by_class(&x->as, &y->as);

    if (order)
        return order;
    ORDER(y->as.need, x->as.need);    // the most demanding first
    ORDER(x->job, y->job);
    return 0;
}

static struct wish *wishes(struct arena *a, const struct problem *p, const struct kinds *k, int *n)
{
    struct wish *all = ARENA_ARRAY(a, struct wish, (size_t)p->n_jobs);

    *n = 0;
    for (int i = 0; i < p->n_jobs; i++) {
        const struct problem_job *j = &p->jobs[i];
        if (!j->name)
            continue;
        double wait_w = j->wait_w + (j->n_present ? j->move_w : 0);
        all[(*n)++] = (struct wish){ .job = i,
                                     .as = { .cluster = k->of[j->kind],
                                             .form = j->n_max > 1 ? j->form : FORM_GANG,
                                             .n_min = j->n_min,
                                             .n_max = j->n_max,
                                             .is_exclusive = j->is_exclusive,
                                             .allowed_types = j->allowed_types,
                                             .need = j->need / k->scale[j->kind],
                                             .short_w = j->short_w,
                                             .wait_w = wait_w,
                                             .weight = ilogb(wait_w),
                                             .n = 1 } };
    }
    qsort(all, (size_t)*n, sizeof *all, by_need);
    return all;
}

void demand_make(struct arena *a, const struct problem *p, const struct kinds *k,
                 const struct menu *m, double alike, struct demand *out)
{
    int n;
    struct wish *all = wishes(a, p, k, &n);

    *out = (struct demand){ .groups = ARENA_ARRAY(a, struct group, (size_t)n),
                            .n_jobs = n,
                            .jobs = ARENA_ARRAY(a, int, (size_t)n),
                            .needs = ARENA_ARRAY(a, double, (size_t)n) };
    for (int i = 0; i < n; i++) {
        struct group *g = i ? &out->groups[out->n_groups - 1] : NULL;
        out->jobs[i] = all[i].job;
        out->needs[i] = all[i].as.need;
        double near = all[i].as.n_max > 1 ? alike : ALIKE_SINGLE;
        if (g && by_class(&all[i].as, g) == 0 && all[i].as.need >= near * out->needs[g->first]) {
            g->n++;
            continue;
        }
        all[i].as.first = i;
        out->groups[out->n_groups++] = all[i].as;
    }
    for (int i = 0; i < out->n_groups; i++) {
        struct group *g = &out->groups[i];
        g->need = out->needs[g->first + g->n / 2];
        base_make(m, g, &g->base);
        double below = level_below(&m->slots[g->cluster], g->need, g->allowed_types);
        g->least_short_w = below > 0 ? short_w(g, below) : g->wait_w;
    }
}

double demand_level(const struct menu *m, const struct demand *d, const struct group *g, int job)
{
    double level = level_above(&m->slots[g->cluster], d->needs[job], g->allowed_types);

    return g->base.level[0] < g->need || level < 0 ? g->base.level[0] : level;
}

/* ---- the cheapest way ---- */

double tariff_slot(const struct tariff *t, int cluster, double low)
{
    int i = t->n[cluster];

    while (i > 0 && t->from[cluster][i - 1] > low)
        i--;
    return i > 0 ? t->price[cluster][i - 1] : 0;
}

double tariff_dish(const struct tariff *t, const struct dish *d)
{
    return d->cost_w + d->n_gpus * t->type_w[d->type] + t->cap_price * d->draw_w;
}

double tariff_way(const struct tariff *t, const struct menu *m, int cluster, const struct way *w)
{
    double cost_w = w->cost_w;

    for (int i = 0; i < w->n_slots; i++)
        cost_w += tariff_slot(t, cluster, w->level[i]);
    if (w->solo >= 0)
        cost_w += w->n_solo * (tariff_dish(t, &m->solos[w->solo]) - m->solos[w->solo].cost_w);
    return cost_w;
}

/* One search for slots: the best levels of the price's steps. */
#define TOPS_MAX 200

struct hunt {
    const struct group *group;
    const struct tariff *tariff;
    const struct menu_slots *in;
    int n_tops;
    double top[TOPS_MAX], top_w[TOPS_MAX];    // the most a slot of each step holds, and its price
    struct way way, *best;
    double best_w;
};

/* The way as it is, and with all the slots it may still take if those cost less than nothing:
 * when whoever fills them is scarce, more parts pay.
 */
static void offer(struct hunt *h, double slots_w, double low)
{
    int n_more = h->n_tops && h->top_w[0] < 0 ? most_parts(h->group) - h->way.n_slots : 0;
    double all_low = low + (n_more ? n_more * h->top[0] : 0);
    double cost_w = slots_w + (n_more ? n_more * h->top_w[0] : 0) + short_w(h->group, all_low);

    if (cost_w >= h->best_w)
        return;
    h->best_w = cost_w;
    *h->best = h->way;
    h->best->cost_w = short_w(h->group, all_low);
    for (int i = 0; i < n_more; i++)
        h->best->level[h->best->n_slots++] = h->top[0];
}

static void list_tops(struct hunt *h)
{
    const double *from = h->tariff->from[h->group->cluster];
    const double *price = h->tariff->price[h->group->cluster];
    int n = h->tariff->n[h->group->cluster];
    double last = -1;

    for (int i = 0; i <= n && h->n_tops < TOPS_MAX; i++) {
        double level =
            level_below(h->in, i < n ? from[i] : (double)INFINITY, h->group->allowed_types);
        if (level < 0 || level == last)
            continue;
        last = level;
        h->top[h->n_tops] = level;
        h->top_w[h->n_tops++] = i > 0 ? price[i - 1] : 0;
    }
}

/* Add one more slot to the way, none larger than the last one's; then stop, or go on. */
static void add_slot(struct hunt *h, int largest, int n_left, double slots_w, double low)
{
    struct way *w = &h->way;
    int at = w->n_slots++;
    double level = level_above(h->in, h->group->need - low, h->group->allowed_types);

    if (level >= 0) {    // exactly what completes the promise
        w->level[at] = level;
        offer(h, slots_w + tariff_slot(h->tariff, h->group->cluster, level), low + level);
    }
    for (int i = 0; i <= largest; i++) {
        double now_w = slots_w + h->top_w[i];
        if (now_w + (n_left - 1) * fmin(h->top_w[0], 0) >= h->best_w)
            break;
        w->level[at] = h->top[i];
        offer(h, now_w, low + h->top[i]);
        if (n_left > 1 && low + h->top[i] < h->group->need)
            add_slot(h, i, n_left - 1, now_w, low + h->top[i]);
    }
    w->n_slots = at;
}

/* One slot that keeps the promise, and what others save is less than any shortfall costs. */
static bool is_settled(const struct group *g, const struct tariff *t, double base_w)
{
    return g->n_max == 1 && g->base.n_slots == 1 && g->base.level[0] >= g->need &&
           base_w <= g->wait_w && base_w - fmin(t->price[g->cluster][0], 0) <= g->least_short_w;
}

double demand_cheapest(const struct menu *m, const struct group *g, const struct tariff *t,
                       struct way *out)
{
    double base_w = tariff_way(t, m, g->cluster, &g->base);
    if (is_settled(g, t, base_w)) {
        *out = g->base;
        return base_w;
    }
    struct hunt h = { .group = g, .tariff = t, .best = out, .best_w = g->wait_w };

    *out = (struct way){ .solo = -1, .cost_w = g->wait_w };
    h.in = &m->slots[g->cluster];
    h.way.solo = -1;
    if (most_parts(g)) {
        list_tops(&h);
        add_slot(&h, h.n_tops - 1, most_parts(g), 0, 0);
    }
    struct pick p = { .group = g, .tariff = t, .best = out, .best_w = h.best_w };
    each_solo(m, g, pick_solo, &p);
    return p.best_w;
}
