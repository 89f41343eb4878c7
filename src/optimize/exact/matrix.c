/* Duals of the exact program's rows, what they make of a column, and columns as arrays. */
#include "optimize/exact/program.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/grow.h"
#include "optimize/exact/mip.h"

/* ---- duals ---- */

void program_take_duals(struct program *x, const double *dual)
{
    for (int r = 0; r < x->n_rows; r++)
        x->dual[r] = isinf(x->row_low[r])    ? fmin(dual[r], 0)
                     : isinf(x->row_high[r]) ? fmax(dual[r], 0)
                                             : dual[r];
    for (int i = 0; i < x->n_families; i++) {
        struct family *f = &x->families[i];
        for (int k = 0; k < f->n_levels; k++)
            f->worth[k] = (k > 0 ? f->worth[k - 1] : 0) + x->dual[f->row[k]];
    }
    for (int i = 0; i < x->n_places; i++) {
        struct place *at = &x->places[i];
        at->gpu_w = at->watt_w = 0;
        for (int k = 0; k < at->n_rows; k++)
            at->gpu_w -= x->dual[at->row[k]];
        for (int k = 0; k < at->n_caps; k++)
            at->watt_w -= x->dual[at->cap[k]] / CAP_UNIT_W;
    }
}

/* ---- columns ---- */

static void pool_add(struct pool *pool, const struct column *c)
{
    GROW(pool->columns, pool->n, pool->cap);
    pool->columns[pool->n++] = *c;
}

void wish_show(struct wish *w, struct column *c, double reduced_w)
{
    w->least_w = fmin(w->least_w, reduced_w);
    c->reduced_w = reduced_w;
    if (reduced_w > w->most_w)
        return;
    pool_add(w->pool, c);
    if (w->pool->n - w->first < w->room)
        return;
    w->most_w = -HUGE_VAL;
    if (w->best > 0)
        wish_crop(w);
}

static int least_first(const void *a, const void *b)
{
    const struct column *l = a, *r = b;

    return (l->reduced_w > r->reduced_w) - (l->reduced_w < r->reduced_w);
}

void wish_crop(struct wish *w)
{
    int n = w->pool->n - w->first;
    struct column *columns = w->pool->columns + w->first;

    if (n <= w->best)
        return;
    qsort(columns, (size_t)n, sizeof *columns, least_first);
    w->pool->n = w->first + w->best;
    w->most_w = columns[w->best - 1].reduced_w;
}

void program_choices(struct program *x, double fixed_w, struct pool *pool)
{
    for (int job = 0; job < x->p->n_jobs; job++) {
        const struct problem_job *j = &x->p->jobs[job];
        struct column c = { .form = COLUMN_WAIT, .job = job };
        if (!j->name)
            continue;
        c.cost_w = j->is_fixed ? fixed_w : j->wait_w + job_fee_w(j);
        if (!j->is_fixed || fixed_w > 0)
            pool_add(pool, &c);
        c.form = COLUMN_TAKE;
        c.cost_w = job_fee_w(j);
        if (x->family_of[job] >= 0)
            pool_add(pool, &c);
        c.form = COLUMN_PARTS;
        for (c.n = 1; is_spread(j) && !j->is_fixed && c.n <= j->n_max; c.n++)
            pool_add(pool, &c);
        c.stays = true;
        c.cost_w = 0;
        c.n = j->n_present;
        if (is_spread(j) && j->n_present > 0)
            pool_add(pool, &c);
        c.form = COLUMN_SHORT;
        c.cost_w = j->short_w;
        if (x->helds[job].n)
            pool_add(pool, &c);
    }
}

static void entry_add(struct entries *to, int row, double value)
{
    if (value == 0)
        return;
    if (to->sum[row] == 0)
        to->row[to->n++] = row;
    to->sum[row] += value;
}

static void place_entries(const struct program *x, int at, int n, double over_w)
{
    const struct place *place = &x->places[at];

    for (int i = 0; i < place->n_rows; i++)
        entry_add(x->entries, place->row[i], n);
    for (int i = 0; i < place->n_caps; i++)
        entry_add(x->entries, place->cap[i], n * over_w / CAP_UNIT_W);
}

/* A slot has all levels up to what it holds. */
static void slot_entries(const struct program *x, int family, double low, double value)
{
    const struct family *f = &x->families[family];

    for (int k = family_levels(f, low) - 1; k >= 0; k--)
        entry_add(x->entries, f->row[k], value);
}

static void seats_entries(const struct program *x, const struct column *c)
{
    for (int i = 0; i < c->n; i++) {
        const struct item *item = &c->items[i];
        const struct helds *h = &x->helds[item->job];
        if (item->family >= 0)
            slot_entries(x, item->family, c->low[i], 1);
        else
            entry_add(x->entries, item->row, 1);
        for (int k = 0; k < h->n; k++)
            entry_add(x->entries, h->at[k].row,
                      held_of(&h->at[k], c->low[i], x->p->jobs[item->job].need));
    }
}

/* So many parts, that hold enough; or SHORT, what is missed. */
static void parts_entries(const struct program *x, const struct column *c)
{
    const struct helds *h = &x->helds[c->job];
    bool is_parts = c->form == COLUMN_PARTS;

    for (int i = 0; i < c->n && is_parts; i++)
        entry_add(x->entries, c->stays ? x->parts[c->job] + 1 + i : x->parts[c->job], -1);
    for (int i = 0; i < h->n; i++)
        entry_add(x->entries, h->at[i].row, is_parts ? -h->at[i].all : h->at[i].missed);
}

const struct entries *program_entries(const struct program *x, const struct column *c)
{
    struct entries *e = x->entries;

    e->n = 0;
    if (c->form != COLUMN_SEATS && c->form != COLUMN_SHORT)
        entry_add(e, c->job, 1);
    for (int i = 0; i < c->n_shares; i++)
        place_entries(x, c->shares[i].place, c->shares[i].n, c->over_w);
    for (int i = 0; c->form == COLUMN_GANG && c->stays && i < c->n; i++)
        place_entries(x, x->place_of[PLACE_GPU][x->p->jobs[c->job].present[i]], 1, c->over_w);
    if (c->form == COLUMN_SEATS)
        seats_entries(x, c);
    else if (c->form == COLUMN_PARTS || c->form == COLUMN_SHORT)
        parts_entries(x, c);
    else if (c->form == COLUMN_TAKE)
        slot_entries(x, x->family_of[c->job], x->p->jobs[c->job].need, -1);
    for (int i = 0; i < e->n; i++) {
        e->value[i] = e->sum[e->row[i]];
        e->sum[e->row[i]] = 0;
    }
    return e;
}

void program_matrix(const struct program *x, const struct pool *pool, int first, struct mip *out)
{
    size_t n = (size_t)(pool->n - first), n_entries = 0;
    int *start = ARENA_ARRAY(x->arena, int, n + 1);
    double *cost = ARENA_ARRAY(x->arena, double, n), *upper = ARENA_ARRAY(x->arena, double, n);
    bool *is_integer = ARENA_ARRAY(x->arena, bool, n);

    for (int i = first; i < pool->n; i++)
        n_entries += (size_t)program_entries(x, &pool->columns[i])->n;
    int *row = ARENA_ARRAY(x->arena, int, n_entries);
    double *value = ARENA_ARRAY(x->arena, double, n_entries);
    for (int i = 0; i < (int)n; i++) {
        const struct column *c = &pool->columns[first + i];
        const struct entries *e = program_entries(x, c);
        memcpy(row + start[i], e->row, (size_t)e->n * sizeof *row);
        memcpy(value + start[i], e->value, (size_t)e->n * sizeof *value);
        start[i + 1] = start[i] + e->n;
        cost[i] = c->cost_w;
        upper[i] = c->form == COLUMN_SEATS ? x->places[c->shares[0].place].n : 1;
        /* Who takes which slot is a matching, whole by itself once the others are. */
        is_integer[i] = c->form != COLUMN_SHORT && c->form != COLUMN_TAKE;
    }
    *out = (struct mip){ x->n_rows, (int)n, start,      row,        value,
                         cost,      upper,  is_integer, x->row_low, x->row_high };
}
