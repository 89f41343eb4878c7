#include "optimize/prices/classes_inner.h"

#include <math.h>

#include "base/grow.h"

/* Clp stops the process at 1e25. What is dearer is never chosen either way, and the bound is not
 * the program's.
 */
#define COST_MOST 1e20

/* ---- adding lines ---- */

/* Room for one line more, and for the end of the last one. */
static void line_room(struct program *g)
{
    GROW_BESIDE(g->lower, g->n_lines, g->cap_lines);
    GROW_BESIDE(g->upper, g->n_lines, g->cap_lines);
    GROW_BESIDE(g->cost, g->n_lines, g->cap_lines);
    GROW(g->start, g->n_lines, g->cap_lines);
}

void program_line_begin(struct program *g, double lower, double upper, double cost)
{
    line_room(g);
    g->lower[g->n_lines] = lower;
    g->upper[g->n_lines] = upper;
    g->cost[g->n_lines] = fmax(fmin(cost, COST_MOST), -COST_MOST);
    g->start[g->n_lines++] = g->n_entries;
}

void program_line_entry(struct program *g, int index, double value)
{
    GROW_BESIDE(g->index, g->n_entries, g->cap_entries);
    GROW(g->value, g->n_entries, g->cap_entries);
    g->index[g->n_entries] = index;
    g->value[g->n_entries++] = value;
}

void program_lines_add(struct program *g, void (*add)(struct lp *, const struct lp_lines *))
{
    line_room(g);
    g->start[g->n_lines] = g->n_entries;
    struct lp_lines lines = { .n = g->n_lines,
                              .lower = g->lower,
                              .upper = g->upper,
                              .cost = g->cost,
                              .start = g->start,
                              .index = g->index,
                              .value = g->value };
    add(g->lp, &lines);
    g->n_lines = g->n_entries = 0;
}

/* ---- what a column does to a row ---- */

static int reaches(const double *levels, int n, double level)
{
    int count = 0;

    for (int i = 0; i < n; i++)
        count += levels[i] >= level;
    return count;
}

/* Slots of the cluster that hold the level: offered by a dish, or no longer asked for. */
static int entry(const struct program *g, const struct column *c, int cluster, double level)
{
    if (c->kind == COLUMN_SLACK)
        return 0;
    if (c->kind == COLUMN_WAY) {
        const struct way *base = &g->demand->groups[c->what].base;
        return reaches(base->level, base->n_slots, level) -
               reaches(c->way.level, c->way.n_slots, level);
    }
    const struct dish *d = &g->c->menu.dishes[c->what];
    int count = 0;
    for (int i = 0; i < d->n_slots; i++)
        count += d->cluster[i] == cluster && d->low[i] >= level;
    return count;
}

/* Enter the column's part in the rows of a cluster. */
static void enter_rows(struct program *g, int column, int cluster)
{
    struct room *r = &g->rooms[cluster];

    if (r->n_columns && r->columns[r->n_columns - 1] == column)
        return;    // a dish of two of the same
    GROW(r->columns, r->n_columns, r->cap_columns);
    r->columns[r->n_columns++] = column;
    for (int k = 0; k < r->n_rows; k++) {
        int v = entry(g, &g->columns[column], cluster, r->from[k]);
        if (v)
            program_line_entry(g, r->row[k], v);
    }
}

static int column_new(struct program *g, struct column c)
{
    GROW(g->columns, g->n_columns, g->cap_columns);
    g->columns[g->n_columns] = c;
    return g->n_columns++;
}

void program_add_dish(struct program *g, int which)
{
    const struct dish *d = &g->c->menu.dishes[which];
    int column = column_new(g, (struct column){ .kind = COLUMN_DISH, .what = which });

    g->is_in[which] = true;
    program_line_begin(g, 0, INFINITY, d->cost_w);
    program_line_entry(g, d->type, 1);
    if (g->cap_row >= 0)
        program_line_entry(g, g->cap_row, d->draw_w);
    for (int i = 0; i < d->n_slots; i++)
        enter_rows(g, column, d->cluster[i]);
}

static bool is_same_way(const struct way *x, const struct way *y)
{
    if (x->n_slots != y->n_slots || x->solo != y->solo || x->n_solo != y->n_solo)
        return false;
    for (int i = 0; i < x->n_slots; i++)
        if (x->level[i] < y->level[i] || x->level[i] > y->level[i])
            return false;
    return true;
}

bool program_has_way(const struct program *g, int group, const struct way *w)
{
    if (is_same_way(&g->demand->groups[group].base, w))
        return true;
    for (int i = g->group_way[group]; i >= 0; i = g->columns[i].before)
        if (is_same_way(&g->columns[i].way, w))
            return true;
    return false;
}

/* GPUs and watts that the way takes more than the base. */
static void enter_supply(struct program *g, const struct way *w, const struct way *base)
{
    const struct dish *solos = g->c->menu.solos;
    double draw_w = 0;
    int type = w->solo >= 0 ? solos[w->solo].type : -1;
    int from = base->solo >= 0 ? solos[base->solo].type : -1;
    int n = w->solo >= 0 ? w->n_solo * solos[w->solo].n_gpus : 0;
    int n_from = base->solo >= 0 ? base->n_solo * solos[base->solo].n_gpus : 0;

    if (w->solo >= 0)
        draw_w += w->n_solo * solos[w->solo].draw_w;
    if (base->solo >= 0)
        draw_w -= base->n_solo * solos[base->solo].draw_w;
    if (type >= 0 && (type != from || n != n_from))
        program_line_entry(g, type, type == from ? n - n_from : n);
    if (from >= 0 && type != from)
        program_line_entry(g, from, -n_from);
    if (g->cap_row >= 0 && fabs(draw_w) > 0)
        program_line_entry(g, g->cap_row, draw_w);
}

void program_add_way(struct program *g, int group, const struct way *w)
{
    const struct group *of = &g->demand->groups[group];
    int column = column_new(
        g, (struct column){
               .kind = COLUMN_WAY, .what = group, .way = *w, .before = g->group_way[group] });

    g->group_way[group] = column;
    program_line_begin(g, 0, of->n, w->cost_w - of->base.cost_w);
    if (g->group_row[group] >= 0)
        program_line_entry(g, g->group_row[group], 1);
    enter_supply(g, w, &of->base);
    if (w->n_slots || of->base.n_slots)
        enter_rows(g, column, of->cluster);
}

/* ---- rows ---- */

/* Jobs whose base asks for the level. */
static int n_wanting(const struct room *r, double level)
{
    int from = 0, to = r->n_wants;

    while (from < to) {
        int mid = (from + to) / 2;
        if (r->wants[mid] >= level)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

static void row_slot(struct room *r, double level, int row)
{
    int i = r->n_rows;

    GROW_BESIDE(r->from, r->n_rows, r->cap_rows);
    GROW_BESIDE(r->price, r->n_rows, r->cap_rows);
    GROW_BESIDE(r->best, r->n_rows, r->cap_rows);
    GROW(r->row, r->n_rows, r->cap_rows);
    for (; i > 0 && r->from[i - 1] > level; i--) {
        r->from[i] = r->from[i - 1];
        r->best[i] = r->best[i - 1];
        r->row[i] = r->row[i - 1];
    }
    r->from[i] = level;
    r->best[i] = i ? r->best[i - 1] : 0;    // the same steps as before
    r->row[i] = row;
    r->n_rows++;
}

bool program_has_row(const struct room *r, double level)
{
    for (int i = 0; i < r->n_rows; i++)
        if (r->from[i] == level)
            return true;
    return false;
}

void program_queue_row(struct program *g, int cluster, double level, int at)
{
    struct room *r = &g->rooms[cluster];
    int wanted = n_wanting(r, level);

    program_line_begin(g, wanted, level > 0 ? INFINITY : wanted, 0);
    for (int i = 0; i < r->n_columns; i++) {
        int v = entry(g, &g->columns[r->columns[i]], cluster, level);
        if (v)
            program_line_entry(g, r->columns[i], v);
    }
    row_slot(r, level, at);
}

void program_add_slacks(struct program *g, int from, int to, double sign)
{
    for (int row = from; row < to; row++) {
        column_new(g, (struct column){ .kind = COLUMN_SLACK, .what = row });
        program_line_begin(g, 0, INFINITY, g->slack_w);
        program_line_entry(g, row, sign);
    }
    program_lines_add(g, lp_add_columns);
}
