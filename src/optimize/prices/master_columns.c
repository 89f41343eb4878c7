#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "optimize/prices/master_inner.h"

/* All as parts of what a GPU costs: GPUs as they stand and company of fixed jobs come in when they
 * are this near the best; a job waits or falls short in the program when that costs less than this
 * more than its slot.
 */
#define KEPT_NEAR 0.003
#define COMPANY_NEAR 0.01
#define SHORT_NEAR 0.05

/* How far a price may go in one round at first, in the same unit; and by how many times that after
 * each.
 */
#define BOX 0.03
#define BOX_GROWS 1.0

/* ---- columns ---- */

static void entry(struct master_inner *in, int row, double value)
{
    struct batch *b = &in->batch;

    for (int i = b->start[b->n]; i < b->n_entries; i++)
        if (b->index[i] == row) {
            b->value[i] += value;
            return;
        }
    GROW_BESIDE(b->index, b->n_entries, b->cap_entries);
    GROW(b->value, b->n_entries, b->cap_entries);
    b->index[b->n_entries] = row;
    b->value[b->n_entries++] = value;
}

/* One slot more in a bin: for all rows up to it. */
static void slot_entries(struct master_inner *in, int bin, double value)
{
    int k = in->m.c->class_of_bin[bin];
    const struct class_rows *r = &in->rows[k];

    for (int i = 0; i < r->n && in->m.c->classes[k].first_bin + r->bin[i] <= bin; i++)
        entry(in, r->row[i], value);
}

/* Begin a column; entries follow, then column_end. */
static void column_begin(struct master_inner *in, const struct master_column *x)
{
    struct master *m = &in->m;
    struct batch *b = &in->batch;

    GROW_BESIDE(b->start, b->n + 1, b->cap);
    GROW_BESIDE(b->upper, b->n + 1, b->cap);
    GROW(b->cost, b->n + 1, b->cap);
    GROW(m->columns, m->n_columns, in->cap_columns);
    m->columns[m->n_columns++] = *x;
    b->start[b->n] = b->n_entries;
    b->upper[b->n] = x->most;
    b->cost[b->n] = x->cost_w;
    if (x->group >= 0)
        entry(in, m->groups[x->group].row, 1);
}

/* Entries that have become 0 go. */
static void column_end(struct master_inner *in)
{
    struct batch *b = &in->batch;
    int n = b->start[b->n];

    for (int i = n; i < b->n_entries; i++)
        if (b->value[i] != 0) {
            b->index[n] = b->index[i];
            b->value[n++] = b->value[i];
        }
    b->n_entries = n;
    b->start[++b->n] = n;
}

void master_flush(struct master_inner *in)
{
    struct batch *b = &in->batch;
    double *lower = heap_array((size_t)b->n, sizeof *lower);

    lp_add_columns(
        in->lp, &(struct lp_lines){ b->n, lower, b->upper, b->cost, b->start, b->index, b->value });
    b->n = b->n_entries = 0;
    free(lower);
}

static void add_pattern(struct master_inner *in, int type, long i)
{
    const struct patterns *x = &in->m.c->patterns[type];
    const int *bins = x->bin + i * x->theta;
    int n = 0;

    while (n < x->theta && bins[n])
        n++;
    in->is_in[type][i] = true;
    column_begin(in, &(struct master_column){ COLUMN_PATTERN, type, i, -1, -1, n, bins,
                                              x->cost_w[i], HUGE_VAL, 0, -1 });
    entry(in, type, 1);
    for (int s = 0; s < n; s++)
        slot_entries(in, bins[s], 1);
    if (in->cap_row >= 0 && x->draw_w)
        entry(in, in->cap_row, (double)x->draw_w[i]);
    column_end(in);
}

/* What a group could do, in words of the program. */
static struct master_column choice_column(struct master_inner *in, int group,
                                          const struct choice *x)
{
    const struct columns *c = in->m.c;
    const struct problem_job *j = &c->p->jobs[master_speaker(&in->m, group)];
    struct master_column wait = { COLUMN_WAIT, -1,        -1,       group, -1, 0,
                                  NULL,        j->wait_w, HUGE_VAL, 0,     -1 };

    if (x->way >= 0)
        return (struct master_column){ COLUMN_WAY, c->ways[x->way].type,   x->way,   group, -1, 0,
                                       NULL,       c->ways[x->way].cost_w, HUGE_VAL, 0,     -1 };
    if (x->n_slots == 0)
        return wait;
    int *bins = ARENA_ARRAY(&in->arena, int, (size_t)x->n_slots);
    double low = 0;
    for (int i = 0; i < x->n_slots; i++) {
        const struct job_class *k = &c->classes[c->class_of_bin[x->bins[i]]];
        bins[i] = x->bins[i];
        low += k->top[bins[i] - k->first_bin];
    }
    return (struct master_column){ COLUMN_SLOTS, -1,         -1,   group,
                                   -1,           x->n_slots, bins, problem_short_w(j, low),
                                   HUGE_VAL,     0,          -1 };
}

static bool is_same(const struct master_column *x, const struct master_column *y)
{
    return x->kind == y->kind && x->which == y->which && x->n_slots == y->n_slots &&
           (x->n_slots == 0 || !memcmp(x->bins, y->bins, (size_t)x->n_slots * sizeof *x->bins));
}

/* A group's columns hang on a list, the newest first. */
static void add_choice(struct master_inner *in, int group, const struct choice *x)
{
    const struct columns *c = in->m.c;
    struct job_group *g = &in->m.groups[group];
    struct master_column new = choice_column(in, group, x);

    for (int i = g->last_column; i >= 0; i = in->m.columns[i].next)
        if (is_same(&in->m.columns[i], &new))
            return;
    new.next = g->last_column;
    g->last_column = in->m.n_columns;
    column_begin(in, &new);
    if (new.kind == COLUMN_WAY) {
        entry(in, new.type, c->ways[new.which].m - c->ways[new.which].n_drained);
        if (in->cap_row >= 0)
            entry(in, in->cap_row, (double)c->ways[new.which].draw_w);
    }
    for (int i = 0; i < new.n_slots; i++)
        slot_entries(in, new.bins[i], -1);
    column_end(in);
}

void master_add_choices(struct master_inner *in)
{
    for (int g = 0; g < in->m.n_groups; g++)
        add_choice(in, g, &in->choices[master_speaker(&in->m, g)]);
}

void master_add_waits(struct master_inner *in)
{
    for (int g = 0; g < in->m.n_groups; g++)
        add_choice(in, g, &(struct choice){ .way = -1 });
}

/* ---- GPUs as they stand ---- */

/* Those who stand on a GPU stay there: their moves are saved. */
static void add_kept(struct master_inner *in, int gpu)
{
    const struct columns *c = in->m.c;
    const struct problem *p = c->p;
    const int *on = &c->residents[gpu * THETA_MAX];
    int type = p->gpus[gpu].type, kinds[THETA_MAX], bins[THETA_MAX], n = 0, at = -1;
    double saved_w = 0, best = HUGE_VAL, draw_w = 0, worth_w = 0;

    for (; n < THETA_MAX && on[n] >= 0; n++) {
        const struct problem_job *j = &p->jobs[on[n]];
        if (in->m.group_of[on[n]] >= 0 || c->class_of[on[n]] < 0)
            return;
        kinds[n] = j->kind;
        bins[n] = master_bin(in, on[n]);
        worth_w += in->now.slot_w[bins[n]];
        saved_w += j->move_w;
    }
    for (int limit = 0; limit < p->types[type].n_limits && n > 0; limit++) {
        struct yield y;
        if (!problem_yield(p, type, limit, kinds, n, &y))
            break;
        for (int i = 0; i < n; i++)
            y.cost_w += problem_short_w(&p->jobs[on[i]], y.low[i]);
        if (y.cost_w < best) {
            best = y.cost_w, at = limit;
            draw_w = (y.watts - p->types[type].idle_w) * p->watts_margin;
        }
    }
    if (at < 0 || worth_w - best + saved_w - in->now.cap_price * draw_w <
                      in->now.type_w[type] - KEPT_NEAR * in->m.c->unit_w)
        return;
    int *kept = ARENA_ARRAY(&in->arena, int, (size_t)n);
    memcpy(kept, bins, (size_t)n * sizeof *kept);
    column_begin(in, &(struct master_column){ COLUMN_KEPT, type, gpu, -1, -1, n, kept,
                                              best - saved_w, 1, 0, -1 });
    entry(in, type, 1);
    for (int i = 0; i < n; i++)
        slot_entries(in, bins[i], 1);
    if (in->cap_row >= 0)
        entry(in, in->cap_row, draw_w);
    column_end(in);
}

void master_add_kept(struct master_inner *in)
{
    const struct problem *p = in->m.c->p;

    for (int g = 0; g < p->n_gpus; g++)
        if (p->gpus[g].may_start && !in->m.c->is_held[g])
            add_kept(in, g);
}

/* Company for the fixed jobs of a GPU, near the best at the present prices: once each. */
void master_add_company(struct master_inner *in)
{
    const struct columns *c = in->m.c;

    for (int i = 0, end; i < c->n_company; i = end) {
        double best = -HUGE_VAL;
        for (end = i; end < c->n_company && c->company[end].gpu == c->company[i].gpu; end++)
            best = fmax(best, in->now.slot_w[c->company[end].bin] - c->company[end].cost_w);
        for (int k = i; k < end; k++) {
            const struct company *x = &c->company[k];
            double w = in->now.slot_w[x->bin] - x->cost_w;
            if (in->is_company_in[k] || w < best - COMPANY_NEAR * in->m.c->unit_w)
                continue;
            in->is_company_in[k] = true;
            column_begin(in, &(struct master_column){ COLUMN_COMPANY, -1, k, -1, -1, 1,
                                                      &c->company[k].bin,
                                                      x->cost_w - c->held_w[x->gpu], 1, 0, -1 });
            entry(in, in->held_row[x->gpu], 1);
            slot_entries(in, x->bin, 1);
            if (in->cap_row >= 0)
                entry(in, in->cap_row, (double)x->draw_w);
            column_end(in);
        }
    }
}

/* ---- single jobs that may wait or fall short ---- */

static void add_wait(struct master_inner *in, int job, int bin)
{
    const struct problem_job *j = &in->m.c->p->jobs[job];

    column_begin(
        in, &(struct master_column){ COLUMN_WAIT, -1, -1, -1, job, 0, NULL, j->wait_w, 1, 0, -1 });
    slot_entries(in, bin, 1);
    column_end(in);
}

static void add_short(struct master_inner *in, int job, int bin, int lower_bin, double short_w)
{
    int *bins = ARENA_NEW(&in->arena, int);

    *bins = lower_bin;
    column_begin(
        in, &(struct master_column){ COLUMN_SHORT, -1, -1, -1, job, 1, bins, short_w, 1, 0, -1 });
    slot_entries(in, bin, 1);
    slot_entries(in, lower_bin, -1);
    column_end(in);
}

/* Columns for a job where its promise costs nearly as much as missing it. */
static void consider_short(struct master_inner *in, int job)
{
    const struct columns *c = in->m.c;
    const struct job_class *k = &c->classes[c->class_of[job]];
    const struct problem_job *j = &c->p->jobs[job];
    const double *price = in->now.slot_w + k->first_bin;
    int b = columns_bin_for(k, j->need), at = -1;
    double pays_w = b < k->n_bins ? price[b] : HUGE_VAL, best = HUGE_VAL;

    for (int i = b - 1; i >= 0 && j->need > 0; i--) {
        if (k->top[i] < 0)
            continue;
        double w = price[i] + problem_short_w(j, k->top[i]);
        if (w < best)
            best = w, at = i;
        if (w - price[i] + price[0] > fmin(best, pays_w) + SHORT_NEAR * in->m.c->unit_w)
            break;
    }
    double near_w = fmin(pays_w, best) + SHORT_NEAR * in->m.c->unit_w;
    int bin = master_bin(in, job);
    if (at >= 0 && best < near_w && best < pays_w + SHORT_NEAR * in->m.c->unit_w)
        add_short(in, job, bin, k->first_bin + at, best - price[at]);
    if (j->wait_w < near_w || (at < 0 && b >= k->n_bins))
        add_wait(in, job, bin);
    in->is_short_in[job] = (at >= 0 && best < near_w) || j->wait_w < near_w || b >= k->n_bins;
}

void master_add_shorts(struct master_inner *in)
{
    const struct columns *c = in->m.c;

    for (int k = 0; k < c->n_classes; k++)
        for (int i = c->first_job[k]; i < c->first_job[k + 1]; i++)
            if (in->m.group_of[c->jobs[i]] < 0 && !in->is_short_in[c->jobs[i]])
                consider_short(in, c->jobs[i]);
}

/* Slack keeps the program feasible, and its prices near those of the best bound: what lacks in a
 * row costs a little more than the step of price there, and on a class's first row, which is an
 * equation, what is too much a little less. Where slack is used, that is not enough, and it grows
 * (loosen).
 */
void master_add_slack(struct master_inner *in, int k, int b)
{
    int bin = in->m.c->classes[k].first_bin + b, row = 0;
    const struct class_rows *r = &in->rows[k];

    while (r->bin[row] != b)
        row++;
    double price = in->best->slot_w[bin], box_w = BOX * in->m.c->unit_w;
    double before = row > 0 ? in->best->slot_w[bin - b + r->bin[row] - 1] : 0;
    struct master_column lack = { COLUMN_SLACK, -1, r->row[row], -1,
                                  -1,           0,  NULL,        fmax(price - before, 0) + box_w,
                                  HUGE_VAL,     0,  -1 };

    if (row == 0)
        lack.cost_w = price + box_w;
    column_begin(in, &lack);
    entry(in, r->row[row], 1);
    column_end(in);
    if (row > 0)
        return;
    lack.cost_w = box_w - price;
    column_begin(in, &lack);
    entry(in, r->row[row], -1);
    column_end(in);
}

/* Returns how many slacks are in use. */
int master_loosen(struct master_inner *in)
{
    int n = 0;

    for (int i = 0; i < in->m.n_columns; i++) {
        struct master_column *x = &in->m.columns[i];
        if (x->kind != COLUMN_SLACK || x->x < 1e-6)
            continue;
        x->cost_w += BOX_GROWS * (fabs(x->cost_w) + BOX * in->m.c->unit_w);
        lp_set_cost(in->lp, i, x->cost_w);
        n++;
    }
    return n;
}

/* ---- patterns near the best ---- */

struct near {
    double value;
    long which;
};

static int by_near(const void *a, const void *b)
{
    const struct near *x = a, *y = b;

    return x->value != y->value ? (x->value < y->value ? 1 : -1)
                                : (x->which > y->which) - (x->which < y->which);
}

/* Those of a type that are worth more than 'from_w' at the present prices, the best ones first. */
int master_add_near(struct master_inner *in, int type, double from_w, int most)
{
    const struct patterns *x = &in->m.c->patterns[type];
    struct near *found = NULL;
    int n = 0, cap = 0;

    for (long i = 0; i < x->n; i++) {
        double w = -x->cost_w[i];
        if (in->is_in[type][i])
            continue;
        for (int s = 0; s < x->theta; s++)
            w += in->now.slot_w[x->bin[i * x->theta + s]];
        if (x->draw_w)
            w -= in->now.cap_price * (double)x->draw_w[i];
        if (w <= from_w)
            continue;
        GROW(found, n, cap);
        found[n++] = (struct near){ w, i };
    }
    if (found && n > most) {
        qsort(found, (size_t)n, sizeof *found, by_near);
        n = most;
    }
    for (int i = 0; i < n; i++)
        add_pattern(in, type, found[i].which);
    free(found);
    return n;
}
