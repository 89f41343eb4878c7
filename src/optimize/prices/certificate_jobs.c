/* The jobs' side of the certificate: the cheapest choice of each at the prices of its slots. */
#include "optimize/prices/certificate_inner.h"

#include <math.h>

#include "base/arena.h"
#include "optimize/prices/prices.h"
#include "optimize/model/problem.h"

#define CELLS 2048    // sums of parts are kept this fine
#define FRONTS 32     // remembered for each kind

/* ---- fronts ---- */

/* Slots (or sums of slots) that are worth a look: each holds more than the one before, and costs
 * more.
 */
struct front {
    int n;
    double *low, *price;
};

/* What jobs of one kind with the same types choose from. A spread job takes one of 'big' and
 * one, or nothing, of 'small'.
 */
struct choice {
    int size, parts;    // slot class; at most this many of them
    uint64_t types;
    struct front big, small;
    double *best;    // (small.n) scratch
};

struct clerk {
    const struct market *m;
    const double *top;
    struct arena arena;               // reset with every kind
    double *cell_low, *cell_price;    // (CELLS) scratch
    int kind, n_choices;
    struct choice choices[FRONTS];
};

static struct front front_new(struct arena *a, int n)
{
    return (struct front){ 0, ARENA_ARRAY(a, double, (size_t)n),
                           ARENA_ARRAY(a, double, (size_t)n) };
}

static void front_add(struct front *f, double low, double price)
{
    f->low[f->n] = low;
    f->price[f->n++] = price;
}

/* One slot on one of these types. */
static struct front front_slots(struct clerk *c, int size, uint64_t types)
{
    const struct ladder *l = &c->m->ladders[ladder_of(c->m, c->kind, size)];
    const double *top = c->top + l->at;
    struct front f = front_new(&c->arena, l->n);
    double held = NO_SLOT;

    for (int step = 0; step < l->n; step++) {
        double low = NO_SLOT;
        for (uint64_t left = types; left; left &= left - 1)
            low = most(low, top[(long)__builtin_ctzll(left) * l->n + step]);
        if (low <= held)
            continue;
        if (f.n && f.price[f.n - 1] >= l->price[step])
            f.n--;    // the same price for less
        front_add(&f, low, l->price[step]);
        held = low;
    }
    return f;
}

static struct front front_or_nothing(struct arena *a, const struct front *f)
{
    struct front to = front_new(a, f->n + 1);

    if (f->n && f->price[0] <= 0)    // nothing would hold less and cost more
        return *f;
    front_add(&to, 0, 0);
    for (int i = f->n && f->low[0] <= 0; i < f->n; i++)
        front_add(&to, f->low[i], f->price[i]);
    return to;
}

/* One of 'a' and one of 'b'. Sums are kept by cells of low: within a cell the least price and
 * the most throughput count, which is optimistic by no more than the cell is wide.
 */
static struct front front_join(struct clerk *c, const struct front *a, const struct front *b)
{
    double all = a->n ? a->low[a->n - 1] + b->low[b->n - 1] : 0, best = HUGE_VAL;
    double scale = all > 0 ? (CELLS - 1) / all : 0;
    struct front to;
    int n = 0;

    for (int i = 0; i < CELLS; i++) {
        c->cell_price[i] = HUGE_VAL;
        c->cell_low[i] = 0;
    }
    for (int i = 0; i < a->n; i++)
        for (int k = 0; k < b->n; k++) {
            double low = a->low[i] + b->low[k];
            int cell = (int)(low * scale);
            c->cell_low[cell] = most(c->cell_low[cell], low);
            c->cell_price[cell] = least(c->cell_price[cell], a->price[i] + b->price[k]);
        }
    for (int i = CELLS - 1; i >= 0; i--) {    // from the most: who is cheaper than all above?
        bool is_cheaper = c->cell_price[i] < best;
        best = is_cheaper ? c->cell_price[i] : best;
        c->cell_price[i] = is_cheaper ? best : HUGE_VAL;
        n += is_cheaper;
    }
    to = front_new(&c->arena, n);
    for (int i = 0; i < CELLS; i++)
        if (c->cell_price[i] < HUGE_VAL)
            front_add(&to, c->cell_low[i], c->cell_price[i]);
    return to;
}

/* At least one and at most n of 'one'. */
static struct front front_parts(struct clerk *c, const struct front *one, int n)
{
    if (n <= 1)
        return *one;
    struct front big = front_parts(c, one, (n + 1) / 2);
    struct front small = n % 2 ? front_parts(c, one, n / 2) : big;
    small = front_or_nothing(&c->arena, &small);
    return front_join(c, &big, &small);
}

static void choice_make(struct clerk *c, struct choice *to, int size, int parts, uint64_t types)
{
    struct front one = front_slots(c, size, types);

    *to = (struct choice){ .size = size, .parts = parts, .types = types };
    to->big = front_parts(c, &one, (parts + 1) / 2);
    if (parts > 1) {
        to->small = parts % 2 ? front_parts(c, &one, parts / 2) : to->big;
        to->small = front_or_nothing(&c->arena, &to->small);
        to->best = ARENA_ARRAY(&c->arena, double, (size_t)to->small.n);
    }
}

static struct choice *choice_of(struct clerk *c, int size, int parts, uint64_t types)
{
    for (int i = 0; i < c->n_choices; i++) {
        struct choice *known = &c->choices[i];
        if (known->size == size && known->parts == parts && known->types == types)
            return known;
    }
    if (c->n_choices == FRONTS) {    // more kinds of wishes than usual: begin anew
        arena_reset(&c->arena);
        c->n_choices = 0;
    }
    choice_make(c, &c->choices[c->n_choices], size, parts, types);
    return &c->choices[c->n_choices++];
}

/* ---- what a job pays ---- */

/* The cheapest of a front for a job, with what it misses. */
static double front_w(const struct front *f, double need, double short_w)
{
    int enough = 0, n = f->n;    // the first that holds enough

    while (n > 0) {
        int half = n / 2;
        bool is_less = f->low[enough + half] < need;
        enough += is_less ? half + 1 : 0;
        n = is_less ? n - half - 1 : half;
    }
    double best = enough < f->n ? f->price[enough] : HUGE_VAL;
    for (int i = enough - 1; i >= 0; i--) {
        double missed_w = short_w * (1 - f->low[i] / need);
        best = least(best, f->price[i] + missed_w);
        if (missed_w + f->price[0] >= best)
            break;    // below they miss more, and none is cheaper than the first
    }
    return best;
}

/* The same for one of 'big' and one of 'small'. As the first holds more the second may hold
 * less; below the need, shortfall is linear and each one's part of it its own.
 */
static double fronts_w(struct choice *c, double need, double short_w)
{
    const struct front *a = &c->big, *b = &c->small;
    double slope = need > 0 ? short_w / need : 0, best = HUGE_VAL;
    double all_w = short_w * (1 - 1e-14);    // rounding must not raise what is left of it
    int enough = b->n;    // the first of 'b' that holds enough with the i-th of 'a'

    for (int k = 0; k < b->n; k++) {
        double w = b->price[k] - slope * b->low[k];
        c->best[k] = k ? least(c->best[k - 1], w) : w;
    }
    for (int i = 0; i < a->n; i++) {
        while (enough > 0 && a->low[i] + b->low[enough - 1] >= need)
            enough--;
        if (enough < b->n)
            best = least(best, a->price[i] + b->price[enough]);
        if (enough > 0)
            best = least(best, a->price[i] + all_w - slope * a->low[i] + c->best[enough - 1]);
    }
    return best;
}

static uint64_t types_with(const struct market *m, const struct problem_job *j, int size)
{
    uint64_t types = 0;

    for (int t = 0; t < m->p->n_types; t++) {
        int n = j->n_nodes == 1 ? m->n_on_node[t] : m->n_usable[t];
        types |= n >= size ? UINT64_C(1) << t : 0;
    }
    return types;
}

/* Placed on n_min to n_max GPUs of these types: HUGE_VAL when there is no such slot. */
static double placed_w(struct clerk *c, const struct problem_job *j, int n_min, int n_max,
                       uint64_t types)
{
    int one = j->is_exclusive ? SLOT_ALONE : SLOT_SHARED;
    double best = HUGE_VAL;

    if (j->form == FORM_SPREAD && n_max > 1)
        return fronts_w(choice_of(c, one, n_max, types), j->need, j->short_w);
    if (j->form == FORM_SPREAD || n_min <= 1)
        best = front_w(&choice_of(c, one, 1, types)->big, j->need, j->short_w);
    for (int size = n_min > 2 ? n_min : 2; size <= n_max; size++) {
        struct choice *at = choice_of(c, size, 1, types & types_with(c->m, j, size));
        best = least(best, front_w(&at->big, j->need, j->short_w));
    }
    return best;
}

static double price_job(struct clerk *c, const struct problem_job *j)
{
    const struct problem *p = c->m->p;
    uint64_t allowed = certificate_types(p, j), here = 0;
    double anywhere_w = least(placed_w(c, j, j->n_min, j->n_max, allowed), j->wait_w);

    if (j->n_present == 0)
        return anywhere_w;
    for (int i = 0; i < j->n_present; i++)
        here |= UINT64_C(1) << p->gpus[j->present[i]].type;
    double stay_w =
        j->n_present > GANG_MAX ? 0 : placed_w(c, j, j->n_present, j->n_present, here & allowed);
    if (j->is_fixed && isfinite(stay_w))
        return stay_w;
    return least(stay_w, anywhere_w + j->move_w);
}

static void clerk_init(struct clerk *c, const struct market *m)
{
    c->m = m;
    c->top = m->stalls[0].top;
    c->n_choices = 0;
    arena_init(&c->arena);
}

static void clerk_begin(struct clerk *c, int kind)
{
    arena_reset(&c->arena);
    c->kind = kind;
    c->n_choices = 0;
}

/* A kind's jobs are one clerk's. */
void *price_units(void *arg)
{
    const struct hand *h = arg;
    struct market *m = h->m;
    double cell_low[CELLS], cell_price[CELLS];
    struct clerk c = { .cell_low = cell_low, .cell_price = cell_price };

    clerk_init(&c, m);
    for (int kind = next_unit(m); kind < m->n_units; kind = next_unit(m)) {
        clerk_begin(&c, kind);
        for (int i = m->kind_from[kind]; i < m->kind_from[kind + 1]; i++)
            m->job_w[m->by_kind[i]] = price_job(&c, &m->p->jobs[m->by_kind[i]]);
    }
    arena_release(&c.arena);
    return NULL;
}

double price_one(const struct market *m, const struct problem_job *j)
{
    double cell_low[CELLS], cell_price[CELLS];
    struct clerk c = { .cell_low = cell_low, .cell_price = cell_price };

    clerk_init(&c, m);
    clerk_begin(&c, j->kind);
    double w = price_job(&c, j);
    arena_release(&c.arena);
    return w;
}
