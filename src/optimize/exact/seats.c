/* Columns of the exact program on one GPU: who shares it, and under which setting. */
#include "optimize/exact/program.h"

#include <math.h>

#include "base/clock.h"

struct seating {
    struct program *x;
    struct wish *w;
    const struct place *place;
    struct column column;
    int kinds[THETA_MAX];
    int n_own;    // of those chosen; the others come
};

/* What an item pays by itself on a GPU of a place: waking it; and what it misses and its move, for
 * which families and spread jobs have columns of their own.
 */
static double item_w(const struct program *x, const struct place *place, const struct item *item,
                     double low)
{
    const struct problem_job *j = &x->p->jobs[item->job];
    double w = item->stays ? 0 : problem_wake_w(x->p, j, place->gpu);

    if (item->family >= 0 || is_spread(j))
        return w;
    return w + problem_short_w(j, low) + (item->stays ? 0 : job_fee_w(j));
}

/* What it brings there at the present duals, less that; -HUGE_VAL: it is not there. */
static double item_worth(const struct program *x, const struct place *place,
                         const struct item *item, double low)
{
    double w = -item_w(x, place, item, low), need = x->p->jobs[item->job].need;
    const struct helds *h = &x->helds[item->job];

    if (item->family >= 0) {
        int n = family_levels(&x->families[item->family], low);
        return n > 0 ? w + x->families[item->family].worth[n - 1] : -HUGE_VAL;
    }
    if (item->is_short && low >= need)
        return -HUGE_VAL;
    for (int i = 0; i < h->n; i++)
        w += x->dual[h->at[i].row] * held_of(&h->at[i], low, need);
    return w + x->dual[item->row];
}

static bool has_job(const struct column *c, int n, int job)
{
    for (int i = 0; i < n; i++)
        if (c->items[i].family < 0 && c->items[i].job == job)
            return true;
    return false;
}

/* May the item be the i-th, of n? No job is there twice. */
static bool may_sit(const struct seating *s, const struct item *item, int i, int n)
{
    const struct problem_job *j = &s->x->p->jobs[item->job];
    int same = 0;

    if ((j->is_exclusive && n > 1) || !problem_allows(j, s->place->type))
        return false;
    if (item->family < 0)
        return !has_job(&s->column, i, item->job);
    for (int k = 0; k < i; k++)
        same += s->column.items[k].family == item->family;
    return same < s->x->families[item->family].n;
}

static bool is_alone(const struct seating *s, int i)
{
    return s->x->p->jobs[s->column.items[i].job].is_exclusive;
}

static void seats_show(struct seating *s, const struct yield *y, int n, double reduced_w)
{
    struct column *c = &s->column;

    c->n = n;
    c->cost_w = y->cost_w;
    c->over_w = (y->watts - s->x->p->types[s->place->type].idle_w) * s->x->p->watts_margin;
    for (int i = 0; i < n; i++) {
        c->low[i] = y->low[i];
        c->cost_w += item_w(s->x, s->place, &c->items[i], y->low[i]);
    }
    wish_show(s->w, c, reduced_w);
}

/* Fill the seats from the i-th on; best[i] is the most that those from i on can bring. */
static void seats_fill(struct seating *s, const struct yield *y, int i, int n, int from,
                       double reduced_w, const double *best)
{
    const struct program *x = s->x;

    if (i == n) {
        seats_show(s, y, n, reduced_w);
        return;
    }
    if (i == s->n_own || s->kinds[i] != s->kinds[i - 1])
        from = x->first_item[s->kinds[i]];
    for (int k = from; k < x->first_item[s->kinds[i] + 1]; k++) {
        double rest_w = reduced_w - item_worth(x, s->place, &x->items[k], y->low[i]);
        if (rest_w - best[i + 1] > s->w->most_w || !may_sit(s, &x->items[k], i, n))
            continue;
        s->column.items[i] = x->items[k];
        seats_fill(s, y, i + 1, n, k, rest_w, best);
    }
}

/* The most that anybody of the kind can bring. */
static double kind_worth(const struct seating *s, int kind, double low)
{
    const struct program *x = s->x;
    double most = -HUGE_VAL;

    for (int k = x->first_item[kind]; k < x->first_item[kind + 1]; k++)
        most = fmax(most, item_worth(x, s->place, &x->items[k], low));
    return most;
}

/* These kinds, whoever they are. */
static void seats_of_kinds(struct seating *s, const struct yield *y, int n)
{
    double best[THETA_MAX + 1] = { 0 };
    double over_w = (y->watts - s->x->p->types[s->place->type].idle_w) * s->x->p->watts_margin;
    double reduced_w = y->cost_w + s->place->gpu_w + s->place->watt_w * over_w;

    for (int i = 0; i < s->n_own; i++)
        reduced_w -= item_worth(s->x, s->place, &s->column.items[i], y->low[i]);
    for (int i = n - 1; i >= s->n_own; i--)
        best[i] = best[i + 1] + kind_worth(s, s->kinds[i], y->low[i]);
    if (reduced_w - best[s->n_own] <= s->w->most_w)
        seats_fill(s, y, s->n_own, n, 0, reduced_w, best);
}

/* With n kinds so far, and any more from 'from' on. What must not run together must not do so with
 * another beside it.
 */
static void seats_with(struct seating *s, int n, int from)
{
    struct program *x = s->x;
    struct yield y;

    if (n > 0 && !problem_yield(x->p, s->place->type, s->column.limit, s->kinds, n, &y))
        return;
    if (n > 0)
        seats_of_kinds(s, &y, n);
    if (n >= x->p->theta || !x->p->gpus[s->place->gpu].may_start || (s->n_own && is_alone(s, 0)))
        return;
    x->is_cut_short |= clock_stopwatch_s() > x->until_s;
    for (int k = from; k < x->p->n_kinds && !x->is_cut_short; k++) {
        if (x->first_item[k] == x->first_item[k + 1])
            continue;
        s->kinds[n] = k;
        seats_with(s, n + 1, k);
    }
}

/* Some of those who may be here only because they are now; false: they must not be together. */
static bool seat_own(struct seating *s, unsigned mask)
{
    bool is_any_alone = false;

    s->n_own = 0;
    for (int i = 0; i < s->place->n_own; i++) {
        const struct item *own = &s->place->own[i];
        if (!(mask >> i & 1))
            continue;
        if (s->n_own == s->x->p->theta || has_job(&s->column, s->n_own, own->job))
            return false;
        s->column.items[s->n_own] = *own;
        s->kinds[s->n_own] = s->x->p->jobs[own->job].kind;
        is_any_alone |= is_alone(s, s->n_own++);
    }
    return s->n_own < 2 || !is_any_alone;
}

void program_seats(struct program *x, int place, struct wish *w)
{
    struct seating s = { .x = x, .w = w, .place = &x->places[place] };

    if (s.place->level == PLACE_ROOM)
        return;    // only gangs
    s.column = (struct column){ .form = COLUMN_SEATS, .job = -1, .n_shares = 1 };
    s.column.shares[0].place = place;
    s.column.shares[0].n = 1;
    for (int limit = 0; limit < x->p->types[s.place->type].n_limits; limit++) {
        s.column.limit = limit;
        for (unsigned mask = s.place->level == PLACE_GPU; mask < 1U << s.place->n_own; mask++)
            if (seat_own(&s, mask))
                seats_with(&s, s.n_own, 0);
    }
}
