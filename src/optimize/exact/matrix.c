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

void program_take_duals(struct exact_program *x, const double *dual)
{
    for (int r = 0; r < x->n_rows; r++)
        x->dual[r] = isinf(x->row_low[r])    ? fmin(dual[r], 0)
                     : isinf(x->row_high[r]) ? fmax(dual[r], 0)
                                             : dual[r];
    for (int i = 0; i < x->n_classes; i++) {
        struct exact_class *f = &x->classes[i];
        for (int k = 0; k < f->n_levels; k++)
            f->worth[k] = (k > 0 ? f->worth[k - 1] : 0) + x->dual[f->row[k]];
    }
    for (int i = 0; i < x->n_groups; i++) {
        struct gpu_group *at = &x->groups[i];
        at->gpu_w = at->watt_w = 0;
        for (int k = 0; k < at->n_rows; k++)
            at->gpu_w -= x->dual[at->row[k]];
        for (int k = 0; k < at->n_caps; k++)
            at->watt_w -= x->dual[at->cap[k]] / CAP_UNIT_W;
    }
}

/* ---- columns ---- */

static void columns_add(struct column_list *pool, const struct exact_column *c)
{
    GROW(pool->columns, pool->n, pool->cap);
    pool->columns[pool->n++] = *c;
}

void filter_offer(struct column_filter *w, struct exact_column *c, double reduced_w)
{
    w->least_w = fmin(w->least_w, reduced_w);
    c->reduced_w = reduced_w;
    if (reduced_w > w->most_w)
        return;
    columns_add(w->pool, c);
    if (w->pool->n - w->first < w->room)
        return;
    w->most_w = -HUGE_VAL;
    if (w->best > 0)
        filter_crop(w);
}

static int least_first(const void *a, const void *b)
{
    const struct exact_column *l = a, *r = b;

    return (l->reduced_w > r->reduced_w) - (l->reduced_w < r->reduced_w);
}

void filter_crop(struct column_filter *w)
{
    int n = w->pool->n - w->first;
    struct exact_column *columns = w->pool->columns + w->first;

    if (n <= w->best)
        return;
    qsort(columns, (size_t)n, sizeof *columns, least_first);
    w->pool->n = w->first + w->best;
    w->most_w = columns[w->best - 1].reduced_w;
}

void program_choices(struct exact_program *x, double fixed_w, struct column_list *pool)
{
    for (int job = 0; job < x->p->n_jobs; job++) {
        const struct problem_job *j = &x->p->jobs[job];
        struct exact_column c = { .form = COLUMN_WAIT, .job = job };
        if (!j->name)
            continue;
        c.cost_w = j->is_fixed ? fixed_w : j->wait_w + job_fee_w(j);
        if (!j->is_fixed || fixed_w > 0)
            columns_add(pool, &c);
        c.form = COLUMN_TAKE;
        c.cost_w = job_fee_w(j);
        if (x->class_of[job] >= 0)
            columns_add(pool, &c);
        c.form = COLUMN_PARTS;
        for (c.n = 1; is_spread(j) && !j->is_fixed && c.n <= j->n_max; c.n++)
            columns_add(pool, &c);
        c.stays = true;
        c.cost_w = 0;
        c.n = j->n_present;
        if (is_spread(j) && j->n_present > 0)
            columns_add(pool, &c);
        c.form = COLUMN_SHORT;
        c.cost_w = j->short_w;
        if (x->n_promises[job])
            columns_add(pool, &c);
    }
}

static void entry_add(struct exact_program *x, int row, double value)
{
    if (value == 0)
        return;
    if (x->entry_sum[row] == 0)
        x->entry_row[x->n_entries++] = row;
    x->entry_sum[row] += value;
}

static void group_entries(struct exact_program *x, int at, int n, double over_w)
{
    const struct gpu_group *group = &x->groups[at];

    for (int i = 0; i < group->n_rows; i++)
        entry_add(x, group->row[i], n);
    for (int i = 0; i < group->n_caps; i++)
        entry_add(x, group->cap[i], n * over_w / CAP_UNIT_W);
}

/* A slot has all levels up to what it holds. */
static void slot_entries(struct exact_program *x, int class, double low, double value)
{
    const struct exact_class *f = &x->classes[class];

    for (int k = class_levels(f, low) - 1; k >= 0; k--)
        entry_add(x, f->row[k], value);
}

static void single_entries(struct exact_program *x, const struct exact_column *c)
{
    for (int i = 0; i < c->n; i++) {
        const struct resident *resident = &c->residents[i];
        const struct promise_row *h = program_promises(x, resident->job);
        if (resident->class >= 0)
            slot_entries(x, resident->class, c->low[i], 1);
        else
            entry_add(x, resident->row, 1);
        for (int k = 0; k < x->n_promises[resident->job]; k++)
            entry_add(x, h[k].row, promise_part(&h[k], c->low[i], x->p->jobs[resident->job].need));
    }
}

/* So many parts, that hold enough; or SHORT, what is missed. */
static void parts_entries(struct exact_program *x, const struct exact_column *c)
{
    const struct promise_row *h = program_promises(x, c->job);
    bool is_parts = c->form == COLUMN_PARTS;

    for (int i = 0; i < c->n && is_parts; i++)
        entry_add(x, c->stays ? x->parts[c->job] + 1 + i : x->parts[c->job], -1);
    for (int i = 0; i < x->n_promises[c->job]; i++)
        entry_add(x, h[i].row, is_parts ? -h[i].all : h[i].missed);
}

int program_entries(struct exact_program *x, const struct exact_column *c)
{
    x->n_entries = 0;
    if (c->form != COLUMN_SINGLE && c->form != COLUMN_SHORT)
        entry_add(x, c->job, 1);
    for (int i = 0; i < c->n_shares; i++)
        group_entries(x, c->shares[i].group, c->shares[i].n, c->over_w);
    for (int i = 0; c->form == COLUMN_GANG && c->stays && i < c->n; i++)
        group_entries(x, x->group_of[GROUP_GPU][x->p->jobs[c->job].present[i]], 1, c->over_w);
    if (c->form == COLUMN_SINGLE)
        single_entries(x, c);
    else if (c->form == COLUMN_PARTS || c->form == COLUMN_SHORT)
        parts_entries(x, c);
    else if (c->form == COLUMN_TAKE)
        slot_entries(x, x->class_of[c->job], x->p->jobs[c->job].need, -1);
    for (int i = 0; i < x->n_entries; i++) {
        x->entry[i] = x->entry_sum[x->entry_row[i]];
        x->entry_sum[x->entry_row[i]] = 0;
    }
    return x->n_entries;
}

void program_matrix(struct exact_program *x, const struct column_list *pool, int first,
                    struct mip *out)
{
    size_t n = (size_t)(pool->n - first), n_entries = 0;
    int *start = ARENA_ARRAY(x->arena, int, n + 1);
    double *cost = ARENA_ARRAY(x->arena, double, n), *upper = ARENA_ARRAY(x->arena, double, n);
    bool *is_integer = ARENA_ARRAY(x->arena, bool, n);

    for (int i = first; i < pool->n; i++)
        n_entries += (size_t)program_entries(x, &pool->columns[i]);
    int *row = ARENA_ARRAY(x->arena, int, n_entries);
    double *value = ARENA_ARRAY(x->arena, double, n_entries);
    for (int i = 0; i < (int)n; i++) {
        const struct exact_column *c = &pool->columns[first + i];
        size_t n_here = (size_t)program_entries(x, c);
        memcpy(row + start[i], x->entry_row, n_here * sizeof *row);
        memcpy(value + start[i], x->entry, n_here * sizeof *value);
        start[i + 1] = start[i] + (int)n_here;
        cost[i] = c->cost_w;
        upper[i] = c->form == COLUMN_SINGLE ? x->groups[c->shares[0].group].n : 1;
        /* Who takes which slot is a matching, whole by itself once the others are. */
        is_integer[i] = c->form != COLUMN_SHORT && c->form != COLUMN_TAKE;
    }
    *out = (struct mip){ x->n_rows, (int)n, start,      row,        value,
                         cost,      upper,  is_integer, x->row_low, x->row_high };
}
