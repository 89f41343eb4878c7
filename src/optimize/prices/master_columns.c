#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "optimize/prices/master_inner.h"

/* All as parts of what a GPU costs: GPUs as they stand and neighbours of fixed jobs come in when
 * they are this near the best; a job waits or falls short in the program when that costs less than
 * this more than its slot.
 */
#define KEPT_NEAR 0.003
#define FIXED_NEAR 0.01
#define SHORT_NEAR 0.01

/* How far a price may go in one round at first, in the same unit; and by how many times that after
 * each.
 */
#define BOX 0.03
#define BOX_GROWS 1.0

/* ---- columns ---- */

static void entry(struct master_inner *in, int row, double value)
{
    struct lp_batch *b = &in->batch;

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

/* What a column uses of a row besides slots; row -1: of none. */
struct row_use {
    int row;
    double value;
};

/* Two of them: watts above idle on GPUs of a type. */
#define DRAWS(in, type, draw_w)      \
    { (in)->cap_row, draw_w },       \
    {                                \
        (in)->rack_row[type], draw_w \
    }

/* A column: its slots, what else it uses, and its group. Entries that add up to 0 go. */
static void column_add(struct master_inner *in, const struct master_column *x,
                       const struct row_use *uses, int n_uses)
{
    struct master *m = &in->m;
    struct lp_batch *b = &in->batch;
    int n = b->n_entries;

    GROW_BESIDE(b->start, b->n + 1, b->cap);
    GROW_BESIDE(b->upper, b->n + 1, b->cap);
    GROW(b->cost, b->n + 1, b->cap);
    GROW(m->columns, m->n_columns, in->cap_columns);
    m->columns[m->n_columns++] = *x;
    b->start[b->n] = n;
    b->upper[b->n] = x->most;
    b->cost[b->n] = x->cost_w;
    if (x->group >= 0 && m->groups[x->group].row >= 0)
        entry(in, m->groups[x->group].row, 1);
    for (int i = 0; i < n_uses; i++)
        if (uses[i].row >= 0)
            entry(in, uses[i].row, uses[i].value);
    for (int i = 0; i < x->n_gives; i++)
        slot_entries(in, x->gives[i], 1);
    for (int i = 0; i < x->n_takes; i++)
        slot_entries(in, x->takes[i], -1);
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
    struct lp_batch *b = &in->batch;

    lp_add_columns(
        in->lp, &(struct lp_lines){ b->n, NULL, b->upper, b->cost, b->start, b->index, b->value });
    b->n = b->n_entries = 0;
}

static void add_pattern(struct master_inner *in, int type, long i)
{
    const struct patterns *x = &in->m.c->patterns[type];
    struct master_column new = { .kind = COLUMN_PATTERN,
                                 .type = type,
                                 .which = i,
                                 .group = -1,
                                 .gives = x->bin + i * x->theta,
                                 .cost_w = x->cost_w[i],
                                 .most = HUGE_VAL };

    while (new.n_gives < x->theta &&new.gives[new.n_gives])
        new.n_gives++;
    in->is_in[type][i] = true;
    double draw_w = x->draw_w ? (double)x->draw_w[i] : 0;
    column_add(in, &new, (struct row_use[]){ { type, 1 }, DRAWS(in, type, draw_w) }, 3);
}

/* ---- groups ---- */

/* What a group could do. */
static struct master_column choice_column(struct master_inner *in, int group,
                                          const struct job_choice *x)
{
    const struct columns *c = in->m.c;
    const struct problem_job *j = &c->p->jobs[master_representative(&in->m, group)];
    struct master_column new = { .kind = COLUMN_WAIT, .group = group, .cost_w = j->wait_w };
    double low = 0;

    if (x->gang >= 0) {
        new.kind = COLUMN_GANG;
        new.type = c->gangs[x->gang].type;
        new.which = x->gang;
        new.cost_w = c->gangs[x->gang].cost_w;
    } else if (x->n_slots > 0) {
        int *bins = ARENA_ARRAY(&in->arena, int, (size_t)x->n_slots);
        for (int i = 0; i < x->n_slots; i++) {
            const struct job_class *k = &c->classes[c->class_of_bin[x->bins[i]]];
            bins[i] = x->bins[i];
            low += k->top[bins[i] - k->first_bin];
        }
        new.kind = COLUMN_SLOTS;
        new.takes = bins;
        new.n_takes = x->n_slots;
        new.cost_w = problem_least_short_w(j, low);
    }
    return new;
}

static bool is_same(const struct master_column *x, const struct master_column *y)
{
    return x->kind == y->kind && x->which == y->which && x->n_takes == y->n_takes &&
           (x->n_takes == 0 || !memcmp(x->takes, y->takes, (size_t)x->n_takes * sizeof *x->takes));
}

/* GPUs and watts that a column's gangs use, so many times. */
static int gang_uses(const struct master_inner *in, const struct master_column *x, double n,
                     struct row_use uses[3])
{
    if (x->kind != COLUMN_GANG)
        return 0;
    const struct gang_option *w = &in->m.c->gangs[x->which];
    double draw_w = n * (double)w->draw_w;
    memcpy(
        uses,
        (struct row_use[3]){ { x->type, n * (w->m - w->n_drained) }, DRAWS(in, x->type, draw_w) },
        sizeof(struct row_use[3]));
    return 3;
}

/* The first of a group: it is in the right-hand sides. */
static void add_base(struct master_inner *in, struct job_group *g, struct master_column *new)
{
    struct row_use uses[3] = { 0 };

    if (gang_uses(in, new, g->n_jobs, uses)) {
        in->base_gpus[new->type] += uses[0].value;
        in->base_draw_w[new->type] += uses[1].value;
    }
    g->base = in->m.n_columns;
    in->base_w[new->group] = new->cost_w;
    new->cost_w = 0;
    column_add(in, new, NULL, 0);
}

/* A group's columns hang on a list, the newest first. All but the base exchange it for something
 * else.
 */
static void add_choice(struct master_inner *in, int group, const struct job_choice *x)
{
    struct job_group *g = &in->m.groups[group];
    struct master_column new = choice_column(in, group, x);
    struct row_use uses[6];

    for (int i = g->last_column; i >= 0; i = in->m.columns[i].next)
        if (is_same(&in->m.columns[i], &new))
            return;
    new.next = g->last_column;
    g->last_column = in->m.n_columns;
    if (g->base < 0) {
        add_base(in, g, &new);
        return;
    }
    const struct master_column *base = &in->m.columns[g->base];
    int n = gang_uses(in, &new, 1, uses);
    n += gang_uses(in, base, -1, uses + n);
    new.gives = base->takes;
    new.n_gives = base->n_takes;
    new.cost_w -= in->base_w[group];
    new.most = g->n_jobs;
    column_add(in, &new, uses, n);
}

void master_add_choices(struct master_inner *in)
{
    for (int g = 0; g < in->m.n_groups; g++) {
        const struct job_choice *x = &in->choices[master_representative(&in->m, g)];
        double wait_w = in->m.c->p->jobs[master_representative(&in->m, g)].wait_w;
        bool has_base = in->m.groups[g].base >= 0;
        add_choice(in, g, x);
        if (has_base && wait_w < x->cost_w + SHORT_NEAR * in->m.c->unit_w)
            add_choice(in, g, &(struct job_choice){ .gang = -1 });
    }
}

/* ---- GPUs as they stand ---- */

/* Those who stand on a GPU stay there: their moves are saved. */
static void add_kept(struct master_inner *in, int gpu)
{
    const struct columns *c = in->m.c;
    const struct problem *p = c->p;
    const int *on = c->residents[gpu].jobs, n = c->residents[gpu].n;
    int type = p->gpus[gpu].type, bins[THETA_MAX], at = -1;
    double saved_w = 0, best = HUGE_VAL, draw_w = 0, worth_w = 0;

    for (int i = 0; i < n; i++) {
        if (in->m.group_of[on[i]] >= 0 || c->class_of[on[i]] < 0)
            return;
        bins[i] = master_bin(in, on[i]);
        worth_w += in->now.slot_w[bins[i]];
        saved_w += p->jobs[on[i]].move_w;
    }
    for (int limit = 0; limit < p->types[type].n_limits && n > 0; limit++) {
        struct yield y;
        if (!problem_yield_of(p, type, limit, on, n, &y))
            break;
        for (int i = 0; i < n; i++)
            y.cost_w += problem_short_w(p, &p->jobs[on[i]], y.held[i]);
        if (y.cost_w < best) {
            best = y.cost_w, at = limit;
            draw_w = (y.watts - p->types[type].idle_w) * p->watts_margin;
        }
    }
    if (at < 0 || worth_w - best + saved_w - dual_watt_price(&in->now, type) * draw_w <
                      in->now.type_w[type] - KEPT_NEAR * in->m.c->unit_w)
        return;
    int *kept = ARENA_ARRAY(&in->arena, int, (size_t)n);
    memcpy(kept, bins, (size_t)n * sizeof *kept);
    struct master_column new = { .kind = COLUMN_KEPT,
                                 .type = type,
                                 .which = gpu,
                                 .group = -1,
                                 .n_gives = n,
                                 .gives = kept,
                                 .cost_w = best - saved_w,
                                 .most = 1 };
    column_add(in, &new, (struct row_use[]){ { type, 1 }, DRAWS(in, type, draw_w) }, 3);
}

void master_add_kept(struct master_inner *in)
{
    const struct problem *p = in->m.c->p;

    for (int g = 0; g < p->n_gpus; g++)
        if (p->gpus[g].may_start && !in->m.c->is_held[g])
            add_kept(in, g);
}

/* Neighbours for the fixed jobs of a GPU, near the best at the present prices: once each. */
void master_add_fixed(struct master_inner *in)
{
    const struct columns *c = in->m.c;

    for (int i = 0, end; i < c->n_fixed; i = end) {
        double best = -HUGE_VAL;
        for (end = i; end < c->n_fixed && c->fixed[end].gpu == c->fixed[i].gpu; end++)
            best = fmax(best, in->now.slot_w[c->fixed[end].bin] - c->fixed[end].cost_w);
        for (int k = i; k < end; k++) {
            const struct fixed_pattern *x = &c->fixed[k];
            double w = in->now.slot_w[x->bin] - x->cost_w;
            if (in->is_fixed_in[k] || w < best - FIXED_NEAR * in->m.c->unit_w)
                continue;
            in->is_fixed_in[k] = true;
            struct master_column new = { .kind = COLUMN_FIXED,
                                         .which = k,
                                         .group = -1,
                                         .n_gives = 1,
                                         .gives = &x->bin,
                                         .cost_w = x->cost_w - c->held_w[x->gpu],
                                         .most = 1 };
            int type = c->p->gpus[x->gpu].type;
            struct row_use uses[] = { { in->held_row[x->gpu], 1 },
                                      DRAWS(in, type, (double)x->draw_w) };
            column_add(in, &new, uses, 3);
        }
    }
}

/* ---- single jobs that may wait or fall short ---- */

/* A job takes a slot of 'lower' (-1: none, it waits) and leaves its own to others. */
static void add_short(struct master_inner *in, int job, int lower, double cost_w)
{
    int *bins = ARENA_ARRAY(&in->arena, int, 2);

    bins[0] = master_bin(in, job);
    bins[1] = lower;
    column_add(in,
               &(struct master_column){ .kind = lower < 0 ? COLUMN_WAIT : COLUMN_SHORT,
                                        .group = -1,
                                        .n_gives = 1,
                                        .gives = bins,
                                        .n_takes = lower >= 0,
                                        .takes = bins + 1,
                                        .cost_w = cost_w,
                                        .most = 1 },
               NULL, 0);
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
        double w = price[i] + problem_least_short_w(j, k->top[i]);
        if (w < best)
            best = w, at = i;
        if (w - price[i] + price[0] > fmin(best, pays_w) + SHORT_NEAR * in->m.c->unit_w)
            break;
    }
    double near_w = fmin(pays_w, best) + SHORT_NEAR * in->m.c->unit_w;
    if (at >= 0 && best < near_w && best < pays_w + SHORT_NEAR * in->m.c->unit_w)
        add_short(in, job, k->first_bin + at, best - price[at]);
    if (j->wait_w < near_w || (at < 0 && b >= k->n_bins))
        add_short(in, job, -1, j->wait_w);
    in->is_short_in[job] = (at >= 0 && best < near_w) || j->wait_w < near_w || b >= k->n_bins;
}

/* At the present prices, waiting or missing its promise is what a job chooses. */
static bool would_miss(const struct master_inner *in, int job)
{
    const struct job_choice *x = &in->choices[job];

    return x->n_slots == 0 || x->bins[0] < master_bin(in, job);
}

void master_add_shorts(struct master_inner *in)
{
    const struct columns *c = in->m.c;

    for (int k = 0; k < c->n_classes; k++)
        for (int i = c->first_job[k]; i < c->first_job[k + 1]; i++)
            if (in->m.group_of[c->jobs[i]] < 0 && !in->is_short_in[c->jobs[i]] &&
                (in->m.n_rounds == 0 || would_miss(in, c->jobs[i])))
                consider_short(in, c->jobs[i]);
}

/* ---- slack ---- */

static void add_slack(struct master_inner *in, int row, double value, double cost_w)
{
    struct master_column new = {
        .kind = COLUMN_SLACK, .which = row, .group = -1, .cost_w = cost_w, .most = HUGE_VAL
    };

    column_add(in, &new, &(struct row_use){ row, value }, 1);
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
    if (row > 0) {
        add_slack(in, r->row[row], 1, fmax(price - before, 0) + box_w);
        return;
    }
    add_slack(in, r->row[row], 1, price + box_w);
    add_slack(in, r->row[row], -1, box_w - price);
}

/* GPUs and watts beyond those there are. */
void master_add_type_slack(struct master_inner *in)
{
    for (int t = 0; t < in->m.c->p->n_types; t++) {
        add_slack(in, t, -1, in->best->type_w[t] + BOX * in->m.c->unit_w);
        if (in->rack_row[t] >= 0)
            add_slack(in, in->rack_row[t], -1, in->best->rack_price[t] + 1);
    }
    if (in->cap_row >= 0)
        add_slack(in, in->cap_row, -1, in->best->cap_price + 1);
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

/* What a GPU earns by a pattern at the present prices. */
static double earned_w(const struct master_inner *in, int type, long i)
{
    return pattern_w(&in->m.c->patterns[type], i, in->now.slot_w, dual_watt_price(&in->now, type));
}

/* The pattern with a slot in each bin that loses least. */
struct cover {
    double loss_w;
    int type;
    long which;
};

/* Every row gets a pattern that serves it, however dear: prices of rows that nothing serves would
 * be those of slack, and wrong.
 */
void master_add_cover(struct master_inner *in)
{
    const struct columns *c = in->m.c;
    struct cover *best = heap_array((size_t)c->n_bins, sizeof *best);

    for (int b = 0; b < c->n_bins; b++)
        best[b].loss_w = HUGE_VAL;
    for (int t = 0; t < c->p->n_types; t++)
        for (long i = 0; c->n_open[t] > 0 && i < c->patterns[t].n; i++) {
            const int *bin = c->patterns[t].bin + i * c->patterns[t].theta;
            double w = in->now.type_w[t] - earned_w(in, t, i);
            for (int s = 0; s < c->patterns[t].theta && bin[s]; s++)
                if (w < best[bin[s]].loss_w)
                    best[bin[s]] = (struct cover){ w, t, i };
        }
    for (int k = 0; k < c->n_classes; k++)
        for (int r = 0; r < in->rows[k].n; r++) {
            int end = r + 1 < in->rows[k].n ? in->rows[k].bin[r + 1] : c->classes[k].n_bins;
            const struct cover *least = &best[c->classes[k].first_bin + in->rows[k].bin[r]];
            for (int b = in->rows[k].bin[r] + 1; b < end; b++)
                if (best[c->classes[k].first_bin + b].loss_w < least->loss_w)
                    least = &best[c->classes[k].first_bin + b];
            if (least->loss_w < HUGE_VAL && !in->is_in[least->type][least->which])
                add_pattern(in, least->type, least->which);
        }
    free(best);
}

/* Those of a type that are worth more than 'from_w' at the present prices, the best ones first. */
int master_add_near(struct master_inner *in, int type, double from_w, int most)
{
    const struct patterns *x = &in->m.c->patterns[type];
    struct ranked_index *found = NULL;
    int n = 0, cap = 0;

    for (long i = 0; i < x->n; i++) {
        if (in->is_in[type][i])
            continue;
        double w = earned_w(in, type, i);
        if (w <= from_w)
            continue;
        GROW(found, n, cap);
        found[n++] = (struct ranked_index){ w, i };
    }
    if (found && n > most) {
        qsort(found, (size_t)n, sizeof *found, ranked_most_first);
        n = most;
    }
    for (int i = 0; i < n; i++)
        add_pattern(in, type, found[i].which);
    free(found);
    return n;
}
