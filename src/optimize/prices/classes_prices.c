#include "optimize/prices/classes_inner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Share of the best prices in those that columns are looked for at. */
#define BLEND 0.6

/* Dishes added for each cluster on each type in one round. */
#define PICKS 2

/* Other ways for groups added in one round: those that save most. */
#define WAYS_AT_ONCE 400

/* ---- pricing ---- */

static double *realloc_copy(double *to, const double *from, int n)
{
    to = realloc(to, ((size_t)n + 1) * sizeof *to);
    if (!to)
        abort();
    if (n)
        memcpy(to, from, (size_t)n * sizeof *to);
    return to;
}

void program_read_solution(struct program *g)
{
    g->dual = realloc_copy(g->dual, lp_duals(g->lp), lp_n_rows(g->lp));
    g->n_x = lp_n_columns(g->lp);
    g->x = realloc_copy(g->x, lp_values(g->lp), g->n_x);
}

static double blend(double share, double best, double now)
{
    return share * best + (1 - share) * now;
}

/* Prices between the best so far and the solution's: those of a program that lacks columns
 * jump about, and what looks good half-way is good more often.
 */
static void set_prices(struct program *g, double share)
{
    for (int t = 0; t < g->p->n_types; t++)
        g->type_w[t] = blend(share, g->best_type_w[t], fmax(-g->dual[t], 0));
    double cap_price = g->cap_row >= 0 ? fmax(-g->dual[g->cap_row], 0) : 0;
    g->tariff.cap_price = blend(share, g->best_cap_price, cap_price);
    for (int cluster = 0; cluster < g->c->kinds.n; cluster++) {
        struct room *r = &g->rooms[cluster];
        double price = 0;
        for (int i = 0; i < r->n_rows; i++) {
            double dual = g->dual[r->row[i]];
            price += i ? fmax(dual, 0) : dual;
            r->price[i] = blend(share, r->best[i], price);
        }
        g->tariff_n[cluster] = r->n_rows;
        g->tariff_from[cluster] = r->from;
        g->tariff_price[cluster] = r->price;
    }
}

static double earns(const struct program *g, const struct dish *d)
{
    double w = -tariff_dish(&g->tariff, d);

    for (int i = 0; i < d->n_slots; i++)
        w += tariff_slot(&g->tariff, d->cluster[i], d->low[i]);
    return w;
}

struct pick {
    double w;
    int dish;
};

/* Put a dish among the best ones of its cluster and type. */
static void pick_dish(struct pick *best, double w, int dish)
{
    int i = PICKS - 1;

    if (w <= best[i].w)
        return;
    for (; i > 0 && best[i - 1].w < w; i--)
        best[i] = best[i - 1];
    best[i] = (struct pick){ w, dish };
}

int program_add_dishes(struct program *g, double least_w)
{
    const struct menu *m = &g->c->menu;
    int n_best = g->p->n_types * g->c->kinds.n * PICKS, n = 0;
    struct pick *best = calloc((size_t)n_best + 1, sizeof *best);

    if (!best)
        abort();
    memset(g->most_w, 0, (size_t)g->p->n_types * sizeof *g->most_w);
    for (int i = 0; i < n_best; i++)
        best[i] = (struct pick){ least_w, -1 };
    for (int i = 0; i < m->n_dishes; i++) {
        const struct dish *d = &m->dishes[i];
        double w = earns(g, d);
        g->most_w[d->type] = fmax(g->most_w[d->type], w);
        for (int s = 0; s < d->n_slots && !g->is_in[i]; s++)
            pick_dish(best + (d->type * g->c->kinds.n + d->cluster[s]) * PICKS, w, i);
    }
    for (int i = 0; i < n_best; i++)
        if (best[i].dish >= 0 && !g->is_in[best[i].dish]) {
            program_add_dish(g, best[i].dish);
            n++;
        }
    program_lines_add(g, lp_add_columns);
    free(best);
    return n;
}

struct offer {
    double saves_w;    // all jobs of the group together
    int group;
    struct way way;
};

static int by_savings(const void *x, const void *y)
{
    const struct offer *a = x, *b = y;

    if (a->saves_w != b->saves_w)
        return a->saves_w > b->saves_w ? -1 : 1;
    return a->group - b->group;
}

/* Ways that are cheaper than the base and that the program does not have. On the way: what the
 * prices prove, each job at its cheapest, less what GPUs and the cap are worth at most.
 */
static int list_ways(struct program *g, struct offer *out)
{
    const struct demand *d = g->demand;
    int n = 0;

    g->bound_w = -g->tariff.cap_price * g->room_w;
    for (int t = 0; t < g->p->n_types; t++)
        g->bound_w -= g->n_usable[t] * (g->type_w[t] + g->most_w[t]);
    for (int i = 0; i < d->n_groups; i++) {
        const struct group *of = &d->groups[i];
        struct way w;
        double base_w = tariff_way(&g->tariff, &g->c->menu, of->cluster, &of->base);
        double price_w = g->group_row[i] >= 0 ? fmax(-g->dual[g->group_row[i]], 0) : 0;
        double way_w = demand_cheapest(&g->c->menu, of, &g->tariff, &w);
        g->bound_w += of->n * way_w;
        if (way_w + price_w < base_w - g->worth_w && !program_has_way(g, i, &w))
            out[n++] = (struct offer){ of->n * (base_w - way_w - price_w), i, w };
    }
    return n;
}

static int add_ways(struct program *g, bool is_for_bound)
{
    struct offer *offers = malloc(((size_t)g->demand->n_groups + 1) * sizeof *offers);

    if (!offers)
        abort();
    int n = list_ways(g, offers);
    qsort(offers, (size_t)n, sizeof *offers, by_savings);
    n = is_for_bound ? 0 : n < WAYS_AT_ONCE ? n : WAYS_AT_ONCE;
    for (int i = 0; i < n; i++)
        program_add_way(g, offers[i].group, &offers[i].way);
    program_lines_add(g, lp_add_columns);
    free(offers);
    return n;
}

static void keep_prices(struct program *g)
{
    g->best_w = g->bound_w;
    for (int c = 0; c < g->c->kinds.n; c++)
        for (int i = 0; i < g->rooms[c].n_rows; i++)
            g->rooms[c].best[i] = g->rooms[c].price[i];
    memcpy(g->best_type_w, g->type_w, (size_t)g->p->n_types * sizeof *g->best_type_w);
    g->best_cap_price = g->tariff.cap_price;
}

/* The same at prices of which 'share' is the best ones'. */
static int add_columns_at(struct program *g, double share, bool is_early)
{
    set_prices(g, share);
    int n = program_add_dishes(g, g->worth_w) + add_ways(g, is_early);
    if (g->bound_w > g->best_w + g->fine_w)
        g->n_idle = -1;
    if (g->bound_w > g->best_w)
        keep_prices(g);
    return n;
}

int program_add_columns(struct program *g, bool is_early)
{
    int n = isfinite(g->best_w) ? add_columns_at(g, BLEND, is_early) : 0;

    return n ? n : add_columns_at(g, 0, is_early);
}

/* ---- thinning out ---- */

/* A column that the solution does not have, and that at these prices loses a lot. */
static bool is_idle(const struct program *g, int i)
{
    const struct column *c = &g->columns[i];

    if (c->kind == COLUMN_SLACK || i >= g->n_x || g->x[i] > 0)
        return false;
    if (c->kind == COLUMN_DISH)
        return g->c->menu.dishes[c->what].n_slots > 1 &&
               earns(g, &g->c->menu.dishes[c->what]) < -g->idle_w;
    const struct group *of = &g->demand->groups[c->what];
    return tariff_way(&g->tariff, &g->c->menu, of->cluster, &c->way) >
           tariff_way(&g->tariff, &g->c->menu, of->cluster, &of->base) + g->idle_w;
}

static void relink_ways(struct program *g)
{
    memset(g->group_way, -1, (size_t)g->demand->n_groups * sizeof *g->group_way);
    for (int i = 0; i < g->n_columns; i++)
        if (g->columns[i].kind == COLUMN_WAY) {
            g->columns[i].before = g->group_way[g->columns[i].what];
            g->group_way[g->columns[i].what] = i;
        }
}

void program_drop_idle(struct program *g)
{
    int *to = calloc((size_t)g->n_columns + 1, sizeof *to);
    int *gone = calloc((size_t)g->n_columns + 1, sizeof *gone);
    int n = 0, n_gone = 0, n_x = 0;

    if (!to || !gone)
        abort();
    for (int i = 0; i < g->n_columns; i++) {
        if (is_idle(g, i)) {
            if (g->columns[i].kind == COLUMN_DISH)
                g->is_in[g->columns[i].what] = false;
            gone[n_gone++] = i;
            to[i] = -1;
            continue;
        }
        g->columns[n] = g->columns[i];
        if (i < g->n_x)
            g->x[n_x++] = g->x[i];
        to[i] = n++;
    }
    g->n_x = n_x;
    g->n_columns = n;
    relink_ways(g);
    for (int c = 0; c < g->c->kinds.n; c++) {
        struct room *r = &g->rooms[c];
        int kept = 0;
        for (int i = 0; i < r->n_columns; i++)
            if (to[r->columns[i]] >= 0)
                r->columns[kept++] = to[r->columns[i]];
        r->n_columns = kept;
    }
    lp_drop_columns(g->lp, n_gone, gone);
    free(to);
    free(gone);
}
