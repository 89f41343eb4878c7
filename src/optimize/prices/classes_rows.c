#include "optimize/prices/classes_inner.h"

#include <math.h>
#include <stdlib.h>

/* Rows added to one cluster in one round. */
#define ROWS_AT_ONCE 3

/* A group takes ways this often more than it has jobs: it must be told not to. */
#define TWICE 0.02

/* ---- where rows are broken ---- */

struct change {
    double level, amount;    // slots at this level that are offered (> 0) or asked for (< 0)
};

static int by_level(const void *x, const void *y)
{
    const struct change *a = x, *b = y;

    if (a->level != b->level)
        return a->level > b->level ? -1 : 1;
    return a->amount > b->amount ? -1 : a->amount < b->amount;
}

static int list_changes(const struct program *g, int cluster, const double *x, struct change *out)
{
    const struct room *r = &g->rooms[cluster];
    int n = 0;

    for (int i = 0; i < r->n_columns; i++) {
        const struct column *c = &g->columns[r->columns[i]];
        double v = r->columns[i] < g->n_x ? x[r->columns[i]] : 0;
        if (v < 1e-9)
            continue;
        if (c->kind == COLUMN_DISH) {
            const struct dish *d = &g->c->menu.dishes[c->what];
            for (int s = 0; s < d->n_slots; s++)
                if (d->cluster[s] == cluster)
                    out[n++] = (struct change){ d->low[s], v };
        } else {
            const struct way *base = &g->demand->groups[c->what].base;
            for (int s = 0; s < base->n_slots; s++)
                out[n++] = (struct change){ base->level[s], v };
            for (int s = 0; s < c->way.n_slots; s++)
                out[n++] = (struct change){ c->way.level[s], -v };
        }
    }
    qsort(out, (size_t)n, sizeof *out, by_level);
    return n;
}

/* Levels at which the cluster lacks slots: the worst of each stretch between two rows it has.
 * Returns how many, at most 'most'.
 */
static int broken_levels(const struct program *g, int cluster, const double *x,
                         struct change *scratch, double *out, int most)
{
    const struct room *r = &g->rooms[cluster];
    int n = list_changes(g, cluster, x, scratch), i = 0, w = 0, found = 0, below = r->n_rows - 1;
    double balance = 0, worst = -g->broken, level = -1;

    while (w < r->n_wants || i < n) {
        bool is_want = i == n || (w < r->n_wants && r->wants[w] > scratch[i].level);
        double at = is_want ? r->wants[w] : scratch[i].level;
        for (; below >= 0 && r->from[below] >= at; below--) {    // the next stretch begins
            if (level >= 0 && found < most)
                out[found++] = level;
            worst = -g->broken;
            level = -1;
        }
        balance += is_want ? -1 : scratch[i].amount;
        is_want ? w++ : i++;
        bool is_last = (w == r->n_wants || r->wants[w] < at) && (i == n || scratch[i].level < at);
        if (is_last && balance < worst && !program_has_row(r, at)) {
            worst = balance;
            level = at;
        }
    }
    if (level >= 0 && found < most)
        out[found++] = level;
    return found;
}

int program_add_broken_rows(struct program *g)
{
    const double *x = g->x;
    int from = lp_n_rows(g->lp), n = 0;

    for (int cluster = 0; cluster < g->c->kinds.n; cluster++) {
        double levels[ROWS_AT_ONCE];
        int room = (DISH_MAX + 2 * WAY_SLOTS) * (g->rooms[cluster].n_columns + 1);
        struct change *scratch = malloc((size_t)room * sizeof *scratch);
        if (!scratch)
            abort();
        int n_levels = broken_levels(g, cluster, x, scratch, levels, ROWS_AT_ONCE);
        for (int i = 0; i < n_levels; i++)
            program_queue_row(g, cluster, levels[i], from + n++);
        free(scratch);
    }
    program_lines_add(g, lp_add_rows);
    program_add_slacks(g, from, from + n, 1);
    return n;
}

/* A group may not take several ways instead of one base. */
int program_add_broken_groups(struct program *g)
{
    const double *x = g->x;
    const struct demand *d = g->demand;
    double *taken = calloc((size_t)d->n_groups + 1, sizeof *taken);
    int from = lp_n_rows(g->lp), n = 0;

    if (!taken)
        abort();
    for (int i = 0; i < g->n_x; i++)
        if (g->columns[i].kind == COLUMN_WAY)
            taken[g->columns[i].what] += x[i];
    for (int i = 0; i < d->n_groups; i++) {
        if (g->group_row[i] >= 0 || taken[i] < d->groups[i].n + TWICE)
            continue;
        g->group_row[i] = from + n++;
        program_line_begin(g, -INFINITY, d->groups[i].n, 0);
        for (int c = 0; c < g->n_columns; c++)
            if (g->columns[c].kind == COLUMN_WAY && g->columns[c].what == i)
                program_line_entry(g, c, 1);
    }
    program_lines_add(g, lp_add_rows);
    free(taken);
    return n;
}
