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
           c->first_way[job] == c->first_way[job + 1];
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
        (d = compare(x->short_w, y->short_w)) ||
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
            m->groups[m->n_groups++] = (struct job_group){ .first = i, .last_column = -1 };
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

    in->demand = ARENA_ARRAY(&in->arena, double, (size_t)c->n_bins);
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

void master_first_rows(struct master_inner *in)
{
    const struct columns *c = in->m.c;
    struct master *m = &in->m;
    size_t most = (size_t)c->p->n_types + 1 + (size_t)m->n_groups + (size_t)c->n_bins;
    most += (size_t)c->p->n_gpus;
    struct new_rows to = { 0, heap_array(most, sizeof(double)), heap_array(most, sizeof(double)) };
    int *start = heap_array(most + 1, sizeof *start);

    for (int t = 0; t < c->p->n_types; t++)
        row_add(&to, -HUGE_VAL, c->n_open[t]);
    in->cap_row =
        c->room_w < HUGE_VAL ? row_add(&to, -HUGE_VAL, c->room_w * c->p->watts_margin) : -1;
    for (int g = 0; g < m->n_groups; g++)
        m->groups[g].row = row_add(&to, m->groups[g].n_jobs, m->groups[g].n_jobs);
    for (int i = 0; i < c->n_company; i++)
        if (i == 0 || c->company[i].gpu != c->company[i - 1].gpu)
            in->held_row[c->company[i].gpu] = row_add(&to, -HUGE_VAL, 1);
    for (int k = 0; k < c->n_classes; k++)
        class_rows(in, k, &to);
    lp_add_rows(in->lp, &(struct lp_lines){ to.n, to.lower, to.upper, NULL, start, NULL, NULL });
    in->n_rows = to.n;
    free(to.lower);
    free(to.upper);
    free(start);
}

/* ---- rows that lack ---- */

/* Slots of the solution by bin, less what groups and those who fall short take. */
static void count_slots(const struct master_inner *in, double *slots)
{
    const struct columns *c = in->m.c;

    for (int i = 0; i < in->m.n_columns; i++) {
        const struct master_column *x = &in->m.columns[i];
        double sign = x->group >= 0 || x->job >= 0 ? -1 : 1;
        for (int s = 0; s < x->n_slots; s++)
            slots[x->bins[s]] += sign * x->x;
        if (x->job >= 0)
            slots[master_bin(in, x->job)] += x->x;
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

/* What a column gives to the row of a bin. */
static double given(const struct master_inner *in, const struct master_column *x, int class,
                    int bin)
{
    const struct columns *c = in->m.c;
    double sign = x->group >= 0 || x->job >= 0 ? -1 : 1, v = 0;

    for (int s = 0; s < x->n_slots; s++)
        v += c->class_of_bin[x->bins[s]] == class && x->bins[s] >= bin ? sign : 0;
    if (x->job >= 0 && c->class_of[x->job] == class)
        v += master_bin(in, x->job) >= bin;
    return v;
}

static void write_row(struct master_inner *in, int k, int r)
{
    int bin = in->m.c->classes[k].first_bin + in->rows[k].bin[r], n = 0;
    int *index = heap_array((size_t)in->m.n_columns, sizeof *index);
    double *value = heap_array((size_t)in->m.n_columns, sizeof *value);

    for (int i = 0; i < in->m.n_columns; i++) {
        double v = given(in, &in->m.columns[i], k, bin);
        if (v == 0)
            continue;
        index[n] = i;
        value[n++] = v;
    }
    lp_add_rows(in->lp, &(struct lp_lines){ 1, &in->demand[bin], (double[]){ HUGE_VAL }, NULL,
                                            (int[]){ 0, n }, index, value });
    in->rows[k].row[r] = in->n_rows++;
    free(index);
    free(value);
}

int master_lacking_rows(struct master_inner *in)
{
    const struct columns *c = in->m.c;
    double *slots = heap_array((size_t)c->n_bins, sizeof *slots);
    int n = 0;

    count_slots(in, slots);
    for (int k = 0; k < c->n_classes; k++) {
        int far = c->classes[k].n_bins / 40 > 2 ? c->classes[k].n_bins / 40 : 2, at;
        for (int i = 0; i < ROWS_LATER && (at = most_lacking(in, k, slots, i ? far : 1)) >= 0;
             i++, n++)
            rows_insert(&in->rows[k], at, -1);
    }
    for (int k = 0; k < c->n_classes; k++)
        for (int r = 0; r < in->rows[k].n; r++)
            if (in->rows[k].row[r] < 0) {
                write_row(in, k, r);
                master_add_slack(in, k, in->rows[k].bin[r]);
            }
    master_flush(in);
    free(slots);
    return n;
}
