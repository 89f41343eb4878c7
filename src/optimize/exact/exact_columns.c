/* What can be a column of the exact program, its rows and its reduced cost. */
#include "optimize/exact/exact_inner.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/grow.h"

/* ---- duals ---- */

void exact_take_duals(struct exact *x, const double *dual)
{
    for (int r = 0; r < x->n_rows; r++) {
        double d = dual[r];
        if (isinf(x->row_low[r]))
            d = fmin(d, 0);
        else if (isinf(x->row_high[r]))
            d = fmax(d, 0);
        x->dual[r] = d;
    }
    for (int i = 0; i < x->n_families; i++) {
        struct family *f = &x->families[i];
        double worth = 0;
        for (int k = 0; k < f->n_levels; k++)
            f->worth[k] = worth += x->dual[f->row[k]];
    }
}

double exact_dual_w(const struct exact *x)
{
    double sum = 0;

    for (int r = 0; r < x->n_rows; r++)
        if (x->dual[r] != 0)
            sum += x->dual[r] * (x->dual[r] > 0 ? x->row_low[r] : x->row_high[r]);
    return sum;
}

/* Levels at or below 'low'. */
static int levels_held(const struct family *f, double low)
{
    int from = 0, to = f->n_levels;

    while (from < to) {
        int mid = (from + to) / 2;
        if (f->level[mid] <= low)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

/* What an item brings where it holds 'low'; -INFINITY: it is not there. */
static double item_worth(const struct exact *x, const struct item *item, double low)
{
    if (item->family >= 0) {
        const struct family *f = &x->families[item->family];
        int n = levels_held(f, low);
        return n > 0 ? f->worth[n - 1] : -HUGE_VAL;
    }
    const struct problem_job *j = &x->p->jobs[item->job];
    if (item->is_short && low >= j->need)
        return -HUGE_VAL;
    return x->dual[x->cover[item->job]] - problem_short_w(j, low) - item->move_w;
}

static double item_cost_w(const struct exact *x, const struct item *item, double low)
{
    return item->family >= 0 ? 0 : problem_short_w(&x->p->jobs[item->job], low) + item->move_w;
}

static double place_price(const struct exact *x, const struct place *place)
{
    double sum = 0;

    for (int i = 0; i < place->n_rows; i++)
        sum -= x->dual[place->row[i]];
    return sum;
}

/* Of a watt with margin above idle, in a rack. */
static double watt_price(const struct exact *x, int rack)
{
    double price = x->cap_row >= 0 ? -x->dual[x->cap_row] : 0;

    if (x->rack_row && rack >= 0 && x->rack_row[rack] >= 0)
        price -= x->dual[x->rack_row[rack]];
    return price / CAP_UNIT_W;
}

static double over_w(const struct exact *x, int type, int n_gpus, double watts)
{
    return (watts - n_gpus * x->p->types[type].idle_w) * x->p->watts_margin;
}

/* ---- seats: who is on one GPU ---- */

struct seating {
    struct exact *x;
    const struct column_wish *w;
    struct column column;
    const struct place *place;
    struct item chosen[THETA_MAX];
    int kinds[THETA_MAX];
    int n_own;    // of those chosen; the others come
    double price, watt_price;
    double least_w;    // reduced cost met at this place
    double best_w;     // within one sort
    struct column best;
};

static bool has_job(const struct seating *s, int n, int job)
{
    for (int i = 0; i < n; i++)
        if (s->chosen[i].job == job && job >= 0)
            return true;
    return false;
}

/* May the item be the i-th, of n? One job is never there twice. */
static bool may_sit(const struct seating *s, const struct item *item, int i, int n)
{
    if (item->is_alone && n > 1)
        return false;
    if (item->allowed != 0 && !(item->allowed >> s->place->type & 1))
        return false;
    if (item->job >= 0)
        return !has_job(s, i, item->job);
    int same = 1;
    for (int k = 0; k < i; k++)
        same += s->chosen[k].family == item->family;
    return same <= s->x->families[item->family].n_members;
}

static void seats_show(struct seating *s, const struct yield *y, int n, double reduced_w)
{
    struct column *c = &s->column;

    s->least_w = fmin(s->least_w, reduced_w);
    if (reduced_w > s->w->most_w || (s->w->is_best_only && reduced_w >= s->best_w))
        return;
    c->n = n;
    c->cost_w = y->cost_w;
    c->over_w = over_w(s->x, s->place->type, 1, y->watts);
    for (int i = 0; i < n; i++) {
        c->items[i] = (struct seat_item){ s->chosen[i].family, s->chosen[i].job, y->low[i] };
        c->cost_w += item_cost_w(s->x, &s->chosen[i], y->low[i]) +
                     exact_wake_w(s->x, &s->chosen[i], s->place);
    }
    if (s->w->is_best_only) {
        s->best_w = reduced_w;
        s->best = *c;
    } else {
        s->w->show(s->w->self, c, reduced_w);
    }
}

/* Fill the seats from the i-th on; best[i] is the most that those from i on can bring. */
static void seats_fill(struct seating *s, const struct yield *y, int i, int n, int from,
                       double reduced_w, const double *best)
{
    struct exact *x = s->x;

    if (i == n) {
        seats_show(s, y, n, reduced_w);
        return;
    }
    if (i == s->n_own || s->kinds[i] != s->kinds[i - 1])
        from = x->first_item[s->kinds[i]];
    for (int k = from; k < x->first_item[s->kinds[i] + 1]; k++) {
        double worth =
            item_worth(x, &x->items[k], y->low[i]) - exact_wake_w(x, &x->items[k], s->place);
        double most_w = s->w->is_best_only ? fmin(s->w->most_w, s->best_w) : s->w->most_w;
        if (reduced_w - worth - best[i + 1] > most_w || !may_sit(s, &x->items[k], i, n))
            continue;
        s->chosen[i] = x->items[k];
        seats_fill(s, y, i + 1, n, k, reduced_w - worth, best);
    }
}

/* The most that anybody of the kind can bring. */
static double kind_worth(const struct exact *x, int kind, double low)
{
    double most = -HUGE_VAL;

    for (int k = x->first_item[kind]; k < x->first_item[kind + 1]; k++)
        most = fmax(most, item_worth(x, &x->items[k], low));
    return most;
}

/* These kinds, whoever they are. */
static void seats_of_kinds(struct seating *s, const struct yield *y, int n)
{
    double best[THETA_MAX + 1] = { 0 };
    double reduced_w =
        y->cost_w + s->price + s->watt_price * over_w(s->x, s->place->type, 1, y->watts);

    for (int i = 0; i < s->n_own; i++)
        reduced_w -= item_worth(s->x, &s->chosen[i], y->low[i]) -
                     exact_wake_w(s->x, &s->chosen[i], s->place);
    for (int i = n - 1; i >= s->n_own; i--)
        best[i] = best[i + 1] + kind_worth(s->x, s->kinds[i], y->low[i]);
    if (isinf(reduced_w) || isinf(best[s->n_own]) ||
        reduced_w - best[s->n_own] > fmax(s->w->most_w, 0))
        return;
    s->best_w = HUGE_VAL;
    seats_fill(s, y, s->n_own, n, 0, reduced_w, best);
    if (s->w->is_best_only && s->best_w <= s->w->most_w)
        s->w->show(s->w->self, &s->best, s->best_w);
}

/* With n kinds so far, and any more from 'from' on. What must not run together must not do so with
 * another beside it.
 */
static void seats_with(struct seating *s, int n, int from)
{
    struct exact *x = s->x;
    struct yield y;

    if (n > 0 && !problem_yield(x->p, s->place->type, s->column.limit, s->kinds, n, &y))
        return;
    if (n > 0)
        seats_of_kinds(s, &y, n);
    if (n >= x->p->theta || n >= THETA_MAX || !s->place->may_start ||
        (n == 1 && s->n_own && s->chosen[0].is_alone))
        return;
    for (int k = from; k < x->p->n_kinds; k++) {
        if (x->first_item[k] == x->first_item[k + 1])
            continue;
        s->kinds[n] = k;
        seats_with(s, n + 1, k);
    }
}

/* Every set of those who may stay, from the i-th on; then whoever may come. */
static void seats_own(struct seating *s, int i, int n)
{
    const struct place *place = s->place;

    if (i == place->n_own) {
        s->n_own = n;
        if (n > 0)
            seats_with(s, n, 0);
        return;
    }
    seats_own(s, i + 1, n);
    if (n >= s->x->p->theta || n >= THETA_MAX || has_job(s, n, place->own[i].job) ||
        (n > 0 && (place->own[i].is_alone || s->chosen[0].is_alone)))
        return;
    s->chosen[n] = place->own[i];
    s->kinds[n] = place->own[i].kind;
    seats_own(s, i + 1, n + 1);
}

double exact_seats(struct exact *x, const struct column_wish *w)
{
    double sum = 0;

    for (int i = 0; i < x->n_places; i++) {
        struct seating s = { .x = x, .w = w, .place = &x->places[i] };
        s.column = (struct column){ .form = COLUMN_SEATS, .job = -1, .place = i, .node = -1 };
        s.price = place_price(x, s.place);
        s.watt_price = watt_price(x, s.place->rack);
        for (int limit = 0; limit < x->p->types[s.place->type].n_limits; limit++) {
            s.column.limit = limit;
            if (s.place->gpu < 0)
                seats_with(&s, 0, 0);
            else
                seats_own(&s, 0, 0);
        }
        sum += s.place->n * s.least_w;
    }
    return sum;
}

/* ---- gangs ---- */

struct mustering {
    struct exact *x;
    const struct column_wish *w;
    struct column column;
    double reduced_w;     // but for what its places cost
    double gpu_over_w;    // of one GPU
    double base_w;        // cost but for what is woken
    int type;
    double least_w;    // of this job
    long n_seen;
    double best_w;
    struct column best;
};

/* Ways to take a gang's GPUs from places; more than this, and nothing is proven. */
#define MUSTER_MOST 1000000

/* What the gang pays for waking its GPUs. */
static double gang_wake_w(const struct mustering *s)
{
    const struct exact *x = s->x;
    const struct column *c = &s->column;
    const struct problem_job *j = &x->p->jobs[c->job];
    struct item item = { .wake_rate = j->wake_rate, .late_w = j->late_w };
    double w = 0;

    if (!x->has_sleepers || c->is_stay)
        return 0;
    for (int i = 0; i < j->n_present; i++)
        if (c->held >> i & 1)
            w += problem_wake_w(x->p, j, j->present[i]);
    for (int i = 0; i < c->n_shares; i++)
        w += c->shares[i].n * exact_wake_w(x, &item, &x->places[c->shares[i].place]);
    return w;
}

static void gang_show(struct mustering *s, double reduced_w)
{
    double wake_w = gang_wake_w(s);

    s->column.cost_w = s->base_w + wake_w;
    reduced_w += wake_w;
    s->least_w = fmin(s->least_w, reduced_w);
    if (reduced_w > s->w->most_w || (s->w->is_best_only && reduced_w >= s->best_w))
        return;
    if (s->w->is_best_only) {
        s->best_w = reduced_w;
        s->best = s->column;
    } else {
        s->w->show(s->w->self, &s->column, reduced_w);
    }
}

/* 'n' more GPUs from places from 'from' on. */
static void gang_share(struct mustering *s, int from, int n, double reduced_w)
{
    struct exact *x = s->x;
    struct column *c = &s->column;

    if (++s->n_seen > MUSTER_MOST)
        x->is_cut_short = true;
    if (n == 0)
        gang_show(s, reduced_w);
    for (int i = from; i < x->n_places && n > 0 && !x->is_cut_short; i++) {
        const struct place *place = &x->places[i];
        if (place->gpu >= 0 || place->type != s->type)
            continue;
        double price = place_price(x, place) + watt_price(x, place->rack) * s->gpu_over_w;
        if (c->n_shares == SHARE_MAX) {
            x->is_cut_short = true;
            return;
        }
        int at = c->n_shares++;
        for (int m = 1; m <= n && m <= place->n; m++) {
            c->shares[at].place = i;
            c->shares[at].n = m;
            c->shares[at].node = -1;
            gang_share(s, i + 1, n - m, reduced_w + m * price);
        }
        c->n_shares--;
    }
}

/* The GPUs it is on by name: what they cost; false when one is not of the type. */
static bool gang_held_price(const struct mustering *s, double *price)
{
    const struct exact *x = s->x;
    const struct problem_job *j = &x->p->jobs[s->column.job];

    *price = 0;
    for (int i = 0; i < j->n_present; i++) {
        if (!(s->column.held >> i & 1))
            continue;
        const struct place *place = &x->places[x->place_of[j->present[i]]];
        if (place->type != s->type)
            return false;
        *price +=
            place_price(x, place) + watt_price(x, x->p->gpus[place->gpu].rack) * s->gpu_over_w;
    }
    return true;
}

/* On one node: its GPUs there, beside those it holds there. */
static void gang_near(struct mustering *s, double held_price)
{
    const struct exact *x = s->x;
    const struct problem_job *j = &x->p->jobs[s->column.job];
    struct column *c = &s->column;
    int rest = c->n - __builtin_popcountll(c->held), at = -1;

    for (int i = 0; i < j->n_present; i++)
        if (c->held >> i & 1) {
            int node = x->p->gpus[j->present[i]].node;
            if (at >= 0 && node != at)
                return;
            at = node;
        }
    if (rest == 0) {
        gang_show(s, s->reduced_w + held_price);
        return;
    }
    for (c->node = 0; c->node < x->n_nodes; c->node++) {
        const struct node_room *room = &x->nodes[c->node];
        const struct place *place = &x->places[room->place];
        if (room->type != s->type || room->n < rest || (at >= 0 && at != room->node))
            continue;
        c->n_shares = 1;
        c->shares[0].place = room->place;
        c->shares[0].n = rest;
        c->shares[0].node = -1;
        double price =
            place_price(x, place) - x->dual[room->row] + watt_price(x, place->rack) * s->gpu_over_w;
        gang_show(s, s->reduced_w + held_price + rest * price);
    }
    c->node = -1;
    c->n_shares = 0;
}

/* How many of its GPUs by name stand on a node. */
static int n_held_on(const struct mustering *s, int node)
{
    const struct problem_job *j = &s->x->p->jobs[s->column.job];
    int n = 0;

    for (int i = 0; i < j->n_present; i++)
        n += (s->column.held >> i & 1) && s->x->p->gpus[j->present[i]].node == node;
    return n;
}

/* Over several nodes in equal parts: 'n_nodes' more from the rooms from 'from' on. The nodes where
 * it holds GPUs by name must be among them; 'left' of these are not yet.
 */
static void gang_even(struct mustering *s, int from, int n_nodes, int left, double reduced_w)
{
    struct exact *x = s->x;
    struct column *c = &s->column;
    int n_here = c->n / x->p->jobs[c->job].n_nodes;

    if (++s->n_seen > MUSTER_MOST)
        x->is_cut_short = true;
    if (n_nodes == 0 && left == 0)
        gang_show(s, reduced_w);
    for (int i = from; i < x->n_nodes && n_nodes > 0 && !x->is_cut_short; i++) {
        const struct node_room *room = &x->nodes[i];
        const struct place *place = &x->places[room->place];
        int n_held = n_held_on(s, room->node), rest = n_here - n_held;
        if (room->type != s->type || rest <= 0 || room->n < rest)
            continue;
        if (c->n_shares == SHARE_MAX) {
            x->is_cut_short = true;
            return;
        }
        int at = c->n_shares++;
        c->shares[at].place = room->place;
        c->shares[at].n = rest;
        c->shares[at].node = i;
        double price =
            place_price(x, place) - x->dual[room->row] + watt_price(x, place->rack) * s->gpu_over_w;
        gang_even(s, i + 1, n_nodes - 1, left - n_held, reduced_w + rest * price);
        c->n_shares--;
    }
}

/* All of its nodes; those that it holds whole by name are taken already. */
static void gang_evenly(struct mustering *s, double reduced_w)
{
    const struct problem_job *j = &s->x->p->jobs[s->column.job];
    int n_here = s->column.n / j->n_nodes, n_nodes = j->n_nodes, left = 0;

    for (int i = 0; i < j->n_present; i++) {
        if (!(s->column.held >> i & 1))
            continue;
        int n = n_held_on(s, s->x->p->gpus[j->present[i]].node);
        bool is_first = true;
        for (int k = 0; k < i; k++)
            is_first &= !(s->column.held >> k & 1) ||
                        s->x->p->gpus[j->present[k]].node != s->x->p->gpus[j->present[i]].node;
        if (n > n_here)
            return;
        left += n < n_here;
        n_nodes -= n == n_here && is_first;
    }
    if (n_nodes >= 0)
        gang_even(s, 0, n_nodes, left, reduced_w);
}

/* What the gang costs so; its places come on top. */
static bool gang_begin(struct mustering *s, bool is_near, double move_w)
{
    const struct exact *x = s->x;
    struct column *c = &s->column;
    const struct problem_job *j = &x->p->jobs[c->job];
    struct yield y;

    if (!problem_gang_yield(x->p, s->type, c->limit, j->kind, c->n, is_near, &y))
        return false;
    c->cost_w = s->base_w = y.cost_w + problem_short_w(j, y.low[0]) + move_w;
    c->over_w = over_w(x, s->type, c->n, y.watts);
    s->gpu_over_w = c->over_w / c->n;
    s->reduced_w = c->cost_w - x->dual[x->cover[c->job]];
    return true;
}

/* Any GPUs of the type, and those it holds that take nobody new. */
static void gang_anywhere(struct mustering *s)
{
    const struct exact *x = s->x;
    struct column *c = &s->column;
    const struct problem_job *j = &x->p->jobs[c->job];
    bool minds =
        j->n_nodes == 1 || (j->n_nodes == 0 && x->p->gang_near[c->n] != x->p->gang_far[c->n]);
    double held_price;

    c->is_stay = false;
    if (__builtin_popcountll(c->held) > c->n || !gang_held_price(s, &held_price))
        return;
    if (minds && gang_begin(s, true, exact_move_w(j)) && gang_held_price(s, &held_price))
        gang_near(s, held_price);
    if (j->n_nodes > 1 && gang_begin(s, false, exact_move_w(j)) && gang_held_price(s, &held_price))
        gang_evenly(s, s->reduced_w + held_price);
    if (j->n_nodes == 0 && gang_begin(s, false, exact_move_w(j)) && gang_held_price(s, &held_price))
        gang_share(s, 0, c->n - __builtin_popcountll(c->held), s->reduced_w + held_price);
}

static bool is_on_one_node(const struct problem *p, const int *gpus, int n)
{
    for (int i = 1; i < n; i++)
        if (p->gpus[gpus[i]].node != p->gpus[gpus[0]].node)
            return false;
    return true;
}

static void gang_stay(struct mustering *s)
{
    const struct exact *x = s->x;
    struct column *c = &s->column;
    const struct problem_job *j = &x->p->jobs[c->job];
    bool is_near = is_on_one_node(x->p, j->present, j->n_present);
    double price;

    if (j->n_present < 2 || !exact_may_stay(j) || x->p->gpus[j->present[0]].type != s->type)
        return;
    c->n = j->n_present;
    c->held = c->n == 64 ? ~0ULL : (1ULL << c->n) - 1;
    c->is_stay = true;
    if (gang_begin(s, is_near, 0) && gang_held_price(s, &price))
        gang_show(s, s->reduced_w + price);
    c->held = 0;
}

/* Its present GPUs that take nobody new, as a mask. */
static uint64_t held_mask(const struct exact *x, const struct problem_job *j)
{
    uint64_t mask = 0;

    for (int i = 0; i < j->n_present; i++)
        if (!x->p->gpus[j->present[i]].may_start)
            mask |= 1ULL << i;
    return mask;
}

/* One type, one setting: it stays, or takes any size, with any of those it may keep. */
static void gang_on(struct mustering *s)
{
    struct exact *x = s->x;
    struct column *c = &s->column;
    const struct problem_job *j = &x->p->jobs[c->job];
    uint64_t mask = held_mask(x, j);

    s->best_w = HUGE_VAL;
    gang_stay(s);
    for (c->n = j->n_min > 2 ? j->n_min : 2; c->n <= j->n_max && !j->is_fixed; c->n++)
        for (uint64_t held = mask;;
             held = (held - 1) & mask) {    // all subsets, the empty one last
            c->held = held;
            if (++s->n_seen > MUSTER_MOST)
                x->is_cut_short = true;
            else
                gang_anywhere(s);
            if (held == 0 || x->is_cut_short)
                break;
        }
    c->held = 0;
    if (s->w->is_best_only && s->best_w <= s->w->most_w)
        s->w->show(s->w->self, &s->best, s->best_w);
}

double exact_gangs(struct exact *x, const struct column_wish *w)
{
    double sum = 0;

    for (int job = 0; job < x->p->n_jobs; job++) {
        const struct problem_job *j = &x->p->jobs[job];
        struct mustering s = { .x = x, .w = w };
        if (!j->name || j->form != FORM_GANG || j->n_max < 2)
            continue;
        for (s.type = 0; s.type < x->p->n_types; s.type++)
            for (int limit = 0; limit < x->p->types[s.type].n_limits; limit++) {
                if (!problem_allows(j, s.type))
                    continue;
                s.column = (struct column){
                    .form = COLUMN_GANG, .job = job, .limit = limit, .place = -1, .node = -1
                };
                gang_on(&s);
            }
        sum += s.least_w;
    }
    return sum;
}

/* ---- taking a slot, and waiting ---- */

static double show_one(const struct column_wish *w, const struct column *c, double reduced_w)
{
    if (reduced_w <= w->most_w)
        w->show(w->self, c, reduced_w);
    return fmin(reduced_w, 0);
}

double exact_choices(struct exact *x, const struct column_wish *w)
{
    double sum = 0;

    for (int job = 0; job < x->p->n_jobs; job++) {
        const struct problem_job *j = &x->p->jobs[job];
        struct column c = { .form = COLUMN_WAIT, .job = job, .place = -1, .node = -1 };
        if (!j->name || j->is_fixed)
            continue;
        double pi = x->dual[x->cover[job]];
        c.cost_w = j->wait_w + exact_move_w(j);
        sum += show_one(w, &c, c.cost_w - pi);
        if (x->family_of[job] < 0 || exact_is_spread(j))
            continue;
        const struct family *f = &x->families[x->family_of[job]];
        c.form = COLUMN_TAKE;
        c.cost_w = exact_move_w(j);
        sum += show_one(w, &c, c.cost_w + f->worth[levels_held(f, j->need) - 1] - pi);
    }
    return sum;
}

/* ---- rows ---- */

static void entry_add(struct entries *out, int row, double value)
{
    for (int i = 0; i < out->n; i++)
        if (out->at[i].row == row) {
            out->at[i].value += value;
            return;
        }
    GROW(out->at, out->n, out->cap);
    out->at[out->n++] = (struct entry){ row, value };
}

static void entry_slot(const struct exact *x, int family, double low, double sign,
                       struct entries *out)
{
    const struct family *f = &x->families[family];

    for (int k = levels_held(f, low) - 1; k >= 0; k--)
        entry_add(out, f->row[k], sign);
    if (x->held_row[family] < 0)
        return;
    double need = x->p->jobs[f->job].need;    // more than that is no better
    entry_add(out, x->held_row[family], low < need ? low / need : 1);
}

static void entry_place(const struct exact *x, const struct place *place, double n, double over,
                        struct entries *out)
{
    for (int i = 0; i < place->n_rows; i++)
        entry_add(out, place->row[i], n);
    int rack = place->rack;
    if (x->rack_row && rack >= 0 && x->rack_row[rack] >= 0)
        entry_add(out, x->rack_row[rack], over / CAP_UNIT_W);
}

static void gang_entries(const struct exact *x, const struct column *c, struct entries *out)
{
    const struct problem_job *j = &x->p->jobs[c->job];
    double gpu_over_w = c->over_w / c->n;

    for (int i = 0; i < j->n_present; i++)
        if (c->held >> i & 1)
            entry_place(x, &x->places[x->place_of[j->present[i]]], 1, gpu_over_w, out);
    for (int i = 0; i < c->n_shares; i++) {
        int n = c->shares[i].n;
        entry_place(x, &x->places[c->shares[i].place], n, n * gpu_over_w, out);
        int node = c->node >= 0 ? c->node : c->shares[i].node;
        if (node >= 0)
            entry_add(out, x->nodes[node].row, n);
    }
}

static void pattern_entries(const struct exact *x, const struct column *c, struct entries *out)
{
    for (int i = 0; i < c->n; i++)
        entry_slot(x, pattern_family(x, c, i), c->lows[i], -1, out);
}

/* Of n slots, whatever they hold, something; or, SHORT, what is missed. */
static void loose_entries(const struct exact *x, const struct column *c, struct entries *out)
{
    if (c->form == COLUMN_LOOSE) {
        entry_add(out, x->cover[c->job], 1);
        for (int i = 0; i < c->n; i++)
            entry_add(out, x->families[pattern_family(x, c, i)].row[0], -1);
    }
    entry_add(out, x->held_row[pattern_family(x, c, 0)], c->form == COLUMN_SHORT ? 1 : -1);
}

void exact_entries(const struct exact *x, const struct column *c, struct entries *out)
{
    out->n = 0;
    if (c->form == COLUMN_LOOSE || c->form == COLUMN_SHORT) {
        loose_entries(x, c, out);
        return;
    }
    if (c->form != COLUMN_SEATS)
        entry_add(out, x->cover[c->job], 1);
    if (x->cap_row >= 0 && c->over_w != 0)
        entry_add(out, x->cap_row, c->over_w / CAP_UNIT_W);
    if (c->form == COLUMN_SEATS)
        entry_place(x, &x->places[c->place], 1, c->over_w, out);
    for (int i = 0; c->form == COLUMN_SEATS && i < c->n; i++) {
        if (c->items[i].family < 0)
            entry_add(out, x->cover[c->items[i].job], 1);
        else
            entry_slot(x, c->items[i].family, c->items[i].low, 1, out);
    }
    if (c->form == COLUMN_GANG)
        gang_entries(x, c, out);
    if (c->form == COLUMN_TAKE)
        entry_slot(x, x->family_of[c->job], x->p->jobs[c->job].need, -1, out);
    if (c->form == COLUMN_PATTERN)
        pattern_entries(x, c, out);
}

/* ---- the pool ---- */

void pool_add(struct pool *pool, const struct column *c, double reduced_w)
{
    if (pool->most && pool->n >= pool->most) {
        pool->is_full = true;
        return;
    }
    GROW(pool->columns, pool->n, pool->cap);
    struct column *to = &pool->columns[pool->n++];
    *to = *c;
    to->reduced_w = reduced_w;
    if (c->form != COLUMN_PATTERN)
        return;
    double *lows = ARENA_ARRAY(pool->arena, double, (size_t)c->n);
    memcpy(lows, c->lows, (size_t)c->n * sizeof *lows);
    to->lows = lows;
}

static bool is_same_seats(const struct column *a, const struct column *b)
{
    unsigned met = 0;

    for (int i = 0; i < a->n; i++) {
        int k = 0;
        while (k < b->n && ((met >> k & 1) || a->items[i].family != b->items[k].family ||
                            a->items[i].job != b->items[k].job))
            k++;
        if (k == b->n)
            return false;
        met |= 1U << k;
    }
    return true;
}

static bool is_same_gang(const struct column *a, const struct column *b)
{
    if (a->node != b->node || a->held != b->held || a->n_shares != b->n_shares)
        return false;
    for (int i = 0; i < a->n_shares; i++)
        if (a->shares[i].place != b->shares[i].place || a->shares[i].n != b->shares[i].n ||
            a->shares[i].node != b->shares[i].node)
            return false;
    return true;
}

static bool is_same(const struct column *a, const struct column *b)
{
    if (a->form != b->form || a->job != b->job || a->place != b->place || a->limit != b->limit ||
        a->n != b->n || a->is_stay != b->is_stay)
        return false;
    if (a->form == COLUMN_SEATS)
        return is_same_seats(a, b);
    if (a->form == COLUMN_GANG)
        return is_same_gang(a, b);
    return a->form != COLUMN_PATTERN ||
           memcmp(a->lows, b->lows, (size_t)a->n * sizeof(double)) == 0;
}

int pool_find(const struct pool *pool, const struct column *c)
{
    for (int i = 0; i < pool->n; i++)
        if (is_same(&pool->columns[i], c))
            return i;
    return -1;
}
