#include <math.h>
#include <stdlib.h>

#include "base/grow.h"
#include "optimize/prices/master_inner.h"

/* Needs of a group's jobs differ by less than this factor. */
#define GROUP_STEP 1.03

/* Steps of price that get a row of their own at first, as a part of what a GPU costs; rows added to
 * a class in a round, for at least this lack of slots.
 */
#define JUMP_FIRST 0.0025
#define ROWS_LATER 6
#define LACK_LEAST 0.2

/* ---- groups ---- */

static bool is_single(const struct columns *c, int job)
{
    const struct problem_job *j = &c->p->jobs[job];

    return c->class_of[job] >= 0 && (j->form == FORM_SPREAD ? j->n_max == 1 : j->n_max <= 1) &&
           c->first_gang[job] == c->first_gang[job + 1];
}

static int compare(double x, double y)
{
    return (x > y) - (x < y);
}

static double need_step(double need)
{
    return need > 0 ? floor(log(need) / log(GROUP_STEP)) : -1e9;
}

/* What must be equal in a group, then the need. */
static int by_group(const void *a, const void *b, void *self)
{
    const struct columns *c = self;
    int i = *(const int *)a, k = *(const int *)b, d;
    const struct problem_job *x = &c->p->jobs[i], *y = &c->p->jobs[k];

    if ((d = x->kind - y->kind) || (d = c->class_of[i] - c->class_of[k]) ||
        (d = (int)x->form - (int)y->form) || (d = x->n_min - y->n_min) ||
        (d = x->n_max - y->n_max) || (d = x->n_nodes - y->n_nodes) ||
        (d = x->is_exclusive - y->is_exclusive) ||
        (d = compare((double)x->allowed_types, (double)y->allowed_types)) ||
        (d = compare(need_step(x->need), need_step(y->need))))
        return d;
    return 0;
}

static int by_group_and_need(const void *a, const void *b, void *self)
{
    const struct columns *c = self;
    int i = *(const int *)a, k = *(const int *)b, d = by_group(a, b, self);

    d = d ? d : compare(c->p->jobs[i].need, c->p->jobs[k].need);
    return d ? d : i - k;
}

void master_groups(struct master_inner *in)
{
    const struct columns *c = in->m.c;
    struct master *m = &in->m;
    int n = 0;

    m->group_of = ARENA_ARRAY(&in->arena, int, (size_t)c->p->n_jobs);
    m->group_jobs = ARENA_ARRAY(&in->arena, int, (size_t)c->p->n_jobs);
    for (int j = 0; j < c->p->n_jobs; j++) {
        m->group_of[j] = -1;
        if (c->p->jobs[j].name && !c->p->jobs[j].is_fixed && !is_single(c, j))
            m->group_jobs[n++] = j;
    }
    qsort_r(m->group_jobs, (size_t)n, sizeof *m->group_jobs, by_group_and_need, (void *)c);
    m->groups = ARENA_ARRAY(&in->arena, struct job_group, (size_t)n);
    for (int i = 0; i < n; i++) {
        if (i == 0 || by_group(&m->group_jobs[i - 1], &m->group_jobs[i], (void *)c) != 0)
            m->groups[m->n_groups++] =
                (struct job_group){ .first = i, .base = -1, .row = -1, .last_column = -1 };
        m->groups[m->n_groups - 1].n_jobs++;
        m->group_of[m->group_jobs[i]] = m->n_groups - 1;
    }
}

/* ---- rows ---- */

int master_bin(const struct master_inner *in, int job)
{
    const struct job_class *k = &in->m.c->classes[in->m.c->class_of[job]];
    int b = columns_bin_for(k, in->m.c->p->jobs[job].need);

    return k->first_bin + (b < k->n_bins ? b : k->n_bins - 1);
}

void master_demand(struct master_inner *in)
{
    const struct columns *c = in->m.c;

    master_add_choices(in);    // the first ones are the bases
    for (int i = 0; i < in->m.n_columns; i++) {
        const struct master_column *x = &in->m.columns[i];
        for (int s = 0; s < x->n_takes; s++)
            in->demand[x->takes[s]] += in->m.groups[x->group].n_jobs;
    }
    for (int j = 0; j < c->p->n_jobs; j++)
        if (c->class_of[j] >= 0 && in->m.group_of[j] < 0)
            in->demand[master_bin(in, j)]++;
    for (int k = 0; k < c->n_classes; k++)
        for (int b = c->classes[k].n_bins - 2; b >= 0; b--)
            in->demand[c->classes[k].first_bin + b] += in->demand[c->classes[k].first_bin + b + 1];
}

static void rows_insert(struct class_rows *r, int bin, int row)
{
    int at = r->n;

    GROW_BESIDE(r->bin, r->n, r->cap);
    GROW(r->row, r->n, r->cap);
    for (; at > 0 && r->bin[at - 1] > bin; at--) {
        r->bin[at] = r->bin[at - 1];
        r->row[at] = r->row[at - 1];
    }
    r->bin[at] = bin;
    r->row[at] = row;
    r->n++;
}

struct new_rows {
    int n;
    double *lower, *upper;
};

static int row_add(struct new_rows *to, double lower, double upper)
{
    to->lower[to->n] = lower;
    to->upper[to->n] = upper;
    return to->n++;
}

static void class_rows(struct master_inner *in, int k, struct new_rows *to)
{
    const struct job_class *class = &in->m.c->classes[k];
    const double *price = in->now.slot_w + class->first_bin;
    double last = 0;

    for (int b = 0; b < class->n_bins; b++) {
        if (b > 0 && price[b] - last <= JUMP_FIRST * in->m.c->unit_w)
            continue;
        last = price[b];
        double need = in->demand[class->first_bin + b];
        rows_insert(&in->rows[k], b, row_add(to, need, b ? HUGE_VAL : need));
    }
}

/* Watts above idle of some types, of which groups use some already. */
static int watts_row(const struct columns *c, struct new_rows *to, double room_w,
                     const double *base_draw_w, int n_types)
{
    double left_w = room_w * c->p->watts_margin;

    for (int t = 0; t < n_types; t++)
        left_w -= base_draw_w[t];
    return row_add(to, -HUGE_VAL, left_w);
}

void master_first_rows(struct master_inner *in)
{
    const struct columns *c = in->m.c;
    size_t most = 2 * (size_t)c->p->n_types + 1 + (size_t)c->n_bins;
    most += (size_t)c->p->n_gpus;
    struct new_rows to = { 0, heap_array(most, sizeof(double)), heap_array(most, sizeof(double)) };

    for (int t = 0; t < c->p->n_types; t++)
        row_add(&to, -HUGE_VAL, c->n_open[t] - in->base_gpus[t]);
    in->cap_row = -1;
    if (c->room_w < HUGE_VAL)
        in->cap_row = watts_row(c, &to, c->room_w, in->base_draw_w, c->p->n_types);
    for (int t = 0; t < c->p->n_types; t++)
        in->rack_row[t] = c->rack_room_w[t] < HUGE_VAL
                              ? watts_row(c, &to, c->rack_room_w[t], &in->base_draw_w[t], 1)
                              : -1;
    for (int i = 0; i < c->n_fixed; i++)
        if (i == 0 || c->fixed[i].gpu != c->fixed[i - 1].gpu)
            in->held_row[c->fixed[i].gpu] = row_add(&to, -HUGE_VAL, 1);
    for (int k = 0; k < c->n_classes; k++)
        class_rows(in, k, &to);
    lp_add_rows(in->lp, &(struct lp_lines){ to.n, to.lower, to.upper, NULL, NULL, NULL, NULL });
    in->n_rows = to.n;
    free(to.lower);
    free(to.upper);
}

/* ---- rows that lack ---- */

/* Slots of the solution by bin, less what columns take. */
static void count_slots(const struct master_inner *in, double *slots)
{
    const struct columns *c = in->m.c;

    for (int i = 0; i < in->m.n_columns; i++) {
        const struct master_column *x = &in->m.columns[i];
        if (x->most == 0)
            continue;    // a base
        for (int s = 0; s < x->n_gives; s++)
            slots[x->gives[s]] += x->x;
        for (int s = 0; s < x->n_takes; s++)
            slots[x->takes[s]] -= x->x;
    }
    for (int k = 0; k < c->n_classes; k++)
        for (int b = c->classes[k].n_bins - 2; b >= 0; b--)
            slots[c->classes[k].first_bin + b] += slots[c->classes[k].first_bin + b + 1];
}

static bool is_near_row(const struct class_rows *r, int bin, int apart)
{
    for (int i = 0; i < r->n; i++)
        if (abs(r->bin[i] - bin) < apart)
            return true;
    return false;
}

/* The bin of a class that lacks most and has no row within 'apart' bins; -1: none. */
static int most_lacking(const struct master_inner *in, int k, const double *slots, int apart)
{
    const struct job_class *class = &in->m.c->classes[k];
    double worst = LACK_LEAST;
    int at = -1;

    for (int b = 1; b < class->n_bins; b++) {
        double lack = in->demand[class->first_bin + b] - slots[class->first_bin + b];
        if (lack <= worst || is_near_row(&in->rows[k], b, apart))
            continue;
        worst = lack;
        at = b;
    }
    return at;
}

/* Entries of new rows, as they are met column by column. */
struct row_entries {
    int first;    // of the rows
    int n, cap;
    int *row, *column;    // (n) rows are counted from the first
    double *value;
};

/* One slot more or less of a column, for all new rows that it counts in. */
static void slot_entries(const struct master_inner *in, int column, int bin, double value,
                         struct row_entries *to)
{
    int k = in->m.c->class_of_bin[bin];
    const struct class_rows *r = &in->rows[k];

    for (int i = 0; i < r->n && in->m.c->classes[k].first_bin + r->bin[i] <= bin; i++) {
        int at = to->n - 1, row = r->row[i] - to->first;
        if (row < 0)
            continue;
        while (at >= 0 && to->column[at] == column && to->row[at] != row)
            at--;
        if (at >= 0 && to->column[at] == column) {
            to->value[at] += value;
            continue;
        }
        GROW_BESIDE(to->row, to->n, to->cap);
        GROW_BESIDE(to->column, to->n, to->cap);
        GROW(to->value, to->n, to->cap);
        to->row[to->n] = row;
        to->column[to->n] = column;
        to->value[to->n++] = value;
    }
}

static void meet_columns(const struct master_inner *in, struct row_entries *to)
{
    for (int i = 0; i < in->m.n_columns; i++) {
        const struct master_column *x = &in->m.columns[i];
        if (x->most == 0)
            continue;    // a base
        for (int s = 0; s < x->n_gives; s++)
            slot_entries(in, i, x->gives[s], 1, to);
        for (int s = 0; s < x->n_takes; s++)
            slot_entries(in, i, x->takes[s], -1, to);
    }
}

/* Rows from 'first' on, with at least so much each, to the program. */
static void write_rows(struct master_inner *in, int first, const double *lower)
{
    int n = in->n_rows - first;
    struct row_entries e = { .first = first };
    struct arena scratch;

    arena_init(&scratch);
    meet_columns(in, &e);
    struct key_index of = key_index_make(&scratch, e.row, e.n, n);
    double *value = ARENA_ARRAY(&scratch, double, (size_t)e.n);
    int *index = ARENA_ARRAY(&scratch, int, (size_t)e.n);
    for (int i = 0; i < e.n; i++) {
        index[i] = e.column[of.items[i]];
        value[i] = e.value[of.items[i]];
    }
    lp_add_rows(in->lp, &(struct lp_lines){ n, lower, NULL, NULL, of.first, index, value });
    free(e.row);
    free(e.column);
    free(e.value);
    arena_release(&scratch);
}

int master_lacking_rows(struct master_inner *in)
{
    const struct columns *c = in->m.c;
    double *slots = heap_array((size_t)c->n_bins, sizeof *slots);
    double *lower = heap_array((size_t)c->n_classes * ROWS_LATER, sizeof *lower);
    int first = in->n_rows;

    count_slots(in, slots);
    for (int k = 0; k < c->n_classes; k++) {
        int far = c->classes[k].n_bins / 40 > 2 ? c->classes[k].n_bins / 40 : 2, at;
        for (int i = 0; i < ROWS_LATER && (at = most_lacking(in, k, slots, i ? far : 1)) >= 0;
             i++) {
            lower[in->n_rows - first] = in->demand[c->classes[k].first_bin + at];
            rows_insert(&in->rows[k], at, in->n_rows++);
        }
    }
    write_rows(in, first, lower);
    for (int k = 0; k < c->n_classes; k++)
        for (int r = 0; r < in->rows[k].n; r++)
            if (in->rows[k].row[r] >= first)
                master_add_slack(in, k, in->rows[k].bin[r]);
    master_flush(in);
    free(slots);
    free(lower);
    return in->n_rows - first;
}

/* ---- groups that exchange too much ---- */

/* Rows of groups from 'first' on. */
static void write_group_rows(struct master_inner *in, int first)
{
    int n = in->n_rows - first, at = 0;
    struct arena scratch;

    arena_init(&scratch);
    int *start = ARENA_ARRAY(&scratch, int, (size_t)n + 1);
    int *index = ARENA_ARRAY(&scratch, int, (size_t)in->m.n_columns);
    double *value = ARENA_ARRAY(&scratch, double, (size_t)in->m.n_columns);
    double *upper = ARENA_ARRAY(&scratch, double, (size_t)n);
    for (int k = 0; k < in->m.n_groups; k++) {
        const struct job_group *g = &in->m.groups[k];
        if (g->row < first)
            continue;
        for (int i = g->last_column; i >= 0; i = in->m.columns[i].next)
            if (i != g->base) {
                index[at] = i;
                value[at++] = 1;
            }
        start[g->row - first + 1] = at;
        upper[g->row - first] = g->n_jobs;
    }
    lp_add_rows(in->lp, &(struct lp_lines){ n, NULL, upper, NULL, start, index, value });
    arena_release(&scratch);
}

int master_group_rows(struct master_inner *in)
{
    int first = in->n_rows;

    for (int k = 0; k < in->m.n_groups; k++) {
        struct job_group *g = &in->m.groups[k];
        double others = 0;
        for (int i = g->last_column; i >= 0; i = in->m.columns[i].next)
            others += i != g->base ? in->m.columns[i].x : 0;
        in->m.columns[g->base].x = fmax(g->n_jobs - others, 0);
        if (others > g->n_jobs + 1e-6 && g->row < 0)
            g->row = in->n_rows++;
    }
    write_group_rows(in, first);
    return in->n_rows - first;
}
