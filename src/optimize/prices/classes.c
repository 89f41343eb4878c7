#include "optimize/prices/classes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "optimize/prices/classes_inner.h"
#include "optimize/prices/mend.h"
#include "optimize/prices/prices.h"

/* A column must promise to save this share of a typical GPU's cost, and a row to be broken by this
 * many slots (or this share of all jobs), to be worth adding.
 */
#define WORTH 1e-4
#define BROKEN 0.05
#define BROKEN_SHARE 5e-5

/* A column that loses this share of a typical GPU's cost is forgotten when there are many. */
#define IDLE 0.3

/* Rounds before other ways than the bases are looked at: prices mean little until then. */
#define ROUNDS_OF_DISHES 3

/* No program goes on for longer; nor for longer than this while its bound does not rise. */
#define ROUNDS_MOST 60
#define ROUNDS_IDLE 4

/* A rise of the bound, as a share of what all GPUs would cost, that is worth another round. */
#define FINELY 2e-4

/* What a row that nothing covers costs: more than waiting ever does. */
#define SLACK_FACTOR 4.0

/* ---- the beginning ---- */

static int by_falling(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;

    return a > b ? -1 : a < b;
}

static void collect_wants(struct program *g)
{
    const struct demand *d = g->demand;

    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < d->n_groups; i++) {
            const struct group *of = &d->groups[i];
            struct room *r = &g->rooms[of->cluster];
            if (pass == 0)
                r->n_wants += of->n * of->base.n_slots;
            for (int k = of->first; k < of->first + of->n && pass == 1; k++)
                for (int s = 0; s < of->base.n_slots; s++)
                    r->wants[r->n_wants++] = of->base.n_slots > 1 || of->base.cost_w > 0
                                                 ? of->base.level[s]
                                                 : demand_level(&g->c->menu, d, of, k);
        }
        for (int c = 0; c < g->c->kinds.n; c++) {
            struct room *r = &g->rooms[c];
            if (pass == 0) {
                r->wants = ARENA_ARRAY(g->arena, double, (size_t)r->n_wants);
                r->n_wants = 0;
            } else {
                qsort(r->wants, (size_t)r->n_wants, sizeof *r->wants, by_falling);
            }
        }
    }
}

/* Those that take somebody new, or have somebody who may stay. */
static bool *usable_gpus(const struct program *g)
{
    const struct problem *p = g->p;
    bool *is_usable = ARENA_ARRAY(g->arena, bool, (size_t)p->n_gpus);

    for (int i = 0; i < p->n_gpus; i++)
        is_usable[i] = p->gpus[i].may_start;
    for (int j = 0; j < p->n_jobs; j++)
        for (int i = 0; i < p->jobs[j].n_present && p->jobs[j].name; i++)
            is_usable[p->jobs[j].present[i]] = true;
    return is_usable;
}

static void count_supply(struct program *g)
{
    const struct problem *p = g->p;
    bool *is_usable = usable_gpus(g);

    g->n_usable = ARENA_ARRAY(g->arena, double, (size_t)p->n_types);
    g->most_w = ARENA_ARRAY(g->arena, double, (size_t)p->n_types);
    g->room_w = p->power_cap_w;
    for (int i = 0; i < p->n_gpus; i++) {
        g->n_usable[p->gpus[i].type] += is_usable[i];
        g->room_w -= p->types[p->gpus[i].type].idle_w * p->watts_margin;
    }
}

/* GPUs and watts that are left when all those whose base is a solo have theirs: less than nothing
 * perhaps, until other ways are found.
 */
static void add_supply_rows(struct program *g)
{
    const struct demand *d = g->demand;
    double *left = ARENA_ARRAY(g->arena, double, (size_t)g->p->n_types);
    double room_w = g->room_w;

    memcpy(left, g->n_usable, (size_t)g->p->n_types * sizeof *left);
    for (int i = 0; i < d->n_groups; i++) {
        const struct group *of = &d->groups[i];
        if (of->base.solo < 0)
            continue;
        const struct dish *s = &g->c->menu.solos[of->base.solo];
        left[s->type] -= of->n * of->base.n_solo * s->n_gpus;
        room_w -= of->n * of->base.n_solo * s->draw_w;
    }
    for (int t = 0; t < g->p->n_types; t++)
        program_line_begin(g, -INFINITY, left[t], 0);
    g->cap_row = g->p->power_cap_w > 0 ? g->p->n_types : -1;
    if (g->cap_row >= 0)
        program_line_begin(g, -INFINITY, room_w, 0);
    program_lines_add(g, lp_add_rows);
    program_add_slacks(g, 0, lp_n_rows(g->lp), -1);
}

/* The first rows of a cluster: all its jobs, and some quantiles of what they need. */
static void add_first_rows(struct program *g)
{
    static const double at[] = { 0.8, 0.5, 0.25, 0.1 };
    int from = lp_n_rows(g->lp), n = 0;

    for (int c = 0; c < g->c->kinds.n; c++) {
        struct room *r = &g->rooms[c];
        if (!g->c->menu.slots[c].is_asked)
            continue;
        program_queue_row(g, c, 0, from + n++);
        for (int i = 0; i < 4 && r->n_wants; i++) {
            int rank = (int)(at[i] * r->n_wants);
            double level = r->wants[rank > 0 ? rank - 1 : 0];
            if (!program_has_row(r, level))
                program_queue_row(g, c, level, from + n++);
        }
    }
    program_lines_add(g, lp_add_rows);
    program_add_slacks(g, from, from + n, 1);
}

/* Guess prices: what a slot of each level costs alone, times 'share'. */
static void guess_prices(struct program *g, double share)
{
    const struct menu *m = &g->c->menu;

    for (int c = 0; c < g->c->kinds.n; c++)
        for (int i = 0; i < g->rooms[c].n_rows; i++)
            g->rooms[c].price[i] = INFINITY;
    for (int i = 0; i < m->n_dishes; i++) {
        const struct dish *d = &m->dishes[i];
        struct room *r = &g->rooms[d->cluster[0]];
        for (int k = 0; k < r->n_rows && d->n_slots == 1; k++)
            if (d->low[0] >= r->from[k])
                r->price[k] = fmin(r->price[k], share * (d->cost_w + g->guess_w));
    }
    for (int c = 0; c < g->c->kinds.n; c++) {
        struct room *r = &g->rooms[c];
        for (int k = 0; k < r->n_rows; k++)
            if (isinf(r->price[k]))
                r->price[k] = k ? r->price[k - 1] : 0;
        g->tariff_n[c] = r->n_rows;
        g->tariff_from[c] = r->from;
        g->tariff_price[c] = r->price;
    }
}

/* Everybody alone, and whatever looks good at guessed prices. */
static void add_first_dishes(struct program *g)
{
    static const double shares[] = { 1, 0.8, 0.65, 0.5 };

    for (int i = 0; i < g->c->menu.n_dishes; i++)
        if (g->c->menu.dishes[i].n_slots == 1)
            program_add_dish(g, i);
    program_lines_add(g, lp_add_columns);
    for (int i = 0; i < 4; i++) {
        guess_prices(g, shares[i]);
        program_add_dishes(g, -INFINITY);
    }
}

static void scales(struct program *g)
{
    const struct menu *m = &g->c->menu;
    double sum_w = 0;
    int n = 0;

    for (int i = 0; i < g->demand->n_groups; i++)
        g->slack_w = fmax(g->slack_w, g->demand->groups[i].wait_w);
    g->slack_w = SLACK_FACTOR * g->slack_w + 1;
    for (int i = 0; i < m->n_dishes; i++)
        if (m->dishes[i].n_slots == 1) {
            sum_w += fabs(m->dishes[i].cost_w);
            n++;
        }
    g->guess_w = n ? sum_w / n : 0;
    g->worth_w = fmax(WORTH * g->guess_w, 1e-9);
    g->idle_w = IDLE * g->guess_w;
    g->fine_w = FINELY * g->guess_w * g->p->n_gpus;
    g->broken = fmax(BROKEN, BROKEN_SHARE * g->p->n_jobs);
}

static void program_init(struct program *g, struct arena *a, const struct problem *p,
                         const struct classes *c)
{
    size_t n = (size_t)c->kinds.n, n_groups = (size_t)c->demand.n_groups;

    *g = (struct program){ .arena = a,
                           .p = p,
                           .c = c,
                           .demand = &c->demand,
                           .best_w = -INFINITY,
                           .lp = lp_create(),
                           .rooms = ARENA_ARRAY(a, struct room, n),
                           .is_in = ARENA_ARRAY(a, bool, (size_t)c->menu.n_dishes),
                           .group_row = ARENA_ARRAY(a, int, n_groups),
                           .group_way = ARENA_ARRAY(a, int, n_groups),
                           .tariff_n = ARENA_ARRAY(a, int, n),
                           .tariff_from = ARENA_ARRAY(a, double *, n),
                           .tariff_price = ARENA_ARRAY(a, double *, n),
                           .type_w = ARENA_ARRAY(a, double, (size_t)p->n_types) };
    g->tariff = (struct tariff){ g->tariff_n, g->tariff_from, g->tariff_price, g->type_w, 0 };
    g->best_type_w = ARENA_ARRAY(a, double, (size_t)p->n_types);
    memset(g->group_row, -1, n_groups * sizeof *g->group_row);
    memset(g->group_way, -1, n_groups * sizeof *g->group_way);
    scales(g);
    collect_wants(g);
    count_supply(g);
    add_supply_rows(g);
    add_first_rows(g);
    add_first_dishes(g);
}

static void program_release(struct program *g)
{
    for (int i = 0; i < g->c->kinds.n; i++) {
        free(g->rooms[i].from);
        free(g->rooms[i].price);
        free(g->rooms[i].best);
        free(g->rooms[i].row);
        free(g->rooms[i].columns);
    }
    free(g->columns);
    free(g->x);
    free(g->dual);
    free(g->lower);
    free(g->upper);
    free(g->cost);
    free(g->value);
    free(g->start);
    free(g->index);
    lp_destroy(g->lp);
}

/* ---- solving ---- */

static bool is_late(const struct program *g)
{
    const struct classes_options *o = g->options;

    return o->clock && g->n_rounds > ROUNDS_OF_DISHES && clock_now_s(o->clock) > o->until_s;
}

/* Until nothing is missing, or the bound has not risen by much for some rounds. */
static void program_solve(struct program *g)
{
    while (lp_solve(g->lp, LP_PRIMAL)) {
        bool is_early = g->n_rounds < ROUNDS_OF_DISHES;
        program_read_solution(g);
        int n_new = program_add_columns(g, is_early) + is_early;
        g->n_idle = is_early ? 0 : g->n_idle + 1;
        if (++g->n_rounds >= ROUNDS_MOST || g->n_idle >= ROUNDS_IDLE || is_late(g))
            break;
        if (g->n_rounds > 6 && g->n_columns > g->n_slim + g->n_slim / 2) {
            program_drop_idle(g);
            g->n_slim = g->n_columns;
        }
        n_new += program_add_broken_rows(g) + program_add_broken_groups(g);
        if (n_new == 0)
            break;
    }
}

/* ---- the end ---- */

struct step {
    double from, price;
};

static bool has_slot(const struct menu_slots *s, double from, double to)
{
    int low = 0, high = s->n;

    while (low < high) {
        int mid = (low + high) / 2;
        if (s->low[mid] < from)
            low = mid + 1;
        else
            high = mid;
    }
    return low < s->n && s->low[low] < to;
}

/* A step that no slot stands on has no price of its own, whatever the program says: it gets that
 * of the next.
 */
static int slot_steps(const struct tariff *t, const struct menu_slots *slots, int cluster,
                      struct step *out)
{
    int n = t->n[cluster];

    for (int i = n - 1; i >= 0; i--) {
        out[i] = (struct step){ t->from[cluster][i], t->price[cluster][i] };
        if (i < n - 1 && !has_slot(slots, out[i].from, out[i + 1].from))
            out[i].price = out[i + 1].price;
    }
    return n;
}

static void write_class(struct arena *a, struct prices *out, int kind, int size, double scale,
                        const struct step *steps, int n)
{
    double *from = ARENA_ARRAY(a, double, (size_t)n), *price = ARENA_ARRAY(a, double, (size_t)n);

    for (int i = 0; i < n; i++) {
        from[i] = steps[i].from * scale;
        price[i] = steps[i].price;
    }
    out->classes[out->n_classes++] = (struct slot_class){ kind, size, n, from, price };
}

/* The prices of each kind: its cluster's, at its own scale. */
static void write_prices(const struct program *g, struct prices *out)
{
    const struct classes *c = g->c;
    struct arena *a = g->arena;
    int n_most = g->p->n_types * LIMITS_MAX;

    for (int i = 0; i < c->kinds.n; i++)
        n_most = n_most > g->rooms[i].n_rows ? n_most : g->rooms[i].n_rows;
    struct step *steps = ARENA_ARRAY(a, struct step, (size_t)n_most);
    *out = (struct prices){ .first = ARENA_ARRAY(a, int, (size_t)g->p->n_kinds + 1),
                            .cap_price = g->best_cap_price,
                            .type_w = g->best_type_w };
    out->classes =
        ARENA_ARRAY(a, struct slot_class, (size_t)g->p->n_kinds * (size_t)(2 + g->gang_most));
    for (int kind = 0; kind < g->p->n_kinds; kind++) {
        int cluster = c->kinds.of[kind];
        double scale = c->kinds.scale[kind];
        out->first[kind] = out->n_classes;
        if (cluster >= 0 && c->menu.slots[cluster].is_asked)
            write_class(a, out, kind, SLOT_SHARED, scale, steps,
                        slot_steps(&g->tariff, &c->menu.slots[cluster], cluster, steps));
        for (int size = 1; size <= g->gang_most && cluster >= 0; size++) {
            if (menu_solo(&c->menu, cluster, size)->n)
                out->classes[out->n_classes++] = prices_solo(a, g->p, out, kind, size);
        }
    }
    out->first[g->p->n_kinds] = out->n_classes;
}

static void write_columns(const struct program *g, struct classes *out)
{
    const double *x = g->x;

    out->dishes = ARENA_ARRAY(g->arena, struct class_dish, (size_t)g->n_columns);
    out->ways = ARENA_ARRAY(g->arena, struct class_way, (size_t)g->n_columns);
    for (int i = 0; i < g->n_x; i++) {
        const struct column *c = &g->columns[i];
        if (x[i] < 1e-7)
            continue;
        if (c->kind == COLUMN_DISH)
            out->dishes[out->n_dishes++] = (struct class_dish){ &out->menu.dishes[c->what], x[i] };
        else if (c->kind == COLUMN_WAY)
            out->ways[out->n_ways++] = (struct class_way){ c->what, c->way, x[i] };
    }
}

/* The tariff becomes that of the best prices. */
static void program_tariff(struct program *g)
{
    for (int c = 0; c < g->c->kinds.n; c++) {
        g->tariff_n[c] = g->rooms[c].n_rows;
        g->tariff_from[c] = g->rooms[c].from;
        g->tariff_price[c] = g->rooms[c].best;
    }
    memcpy(g->type_w, g->best_type_w, (size_t)g->p->n_types * sizeof *g->type_w);
    g->tariff.cap_price = g->best_cap_price;
}

void classes_solve(struct arena *a, const struct problem *p, const struct classes_options *o,
                   struct classes *out, struct prices *prices)
{
    struct program g;

    *out = (struct classes){ 0 };
    kinds_cluster(a, p, o->tolerance, o->clusters_most, &out->kinds);
    menu_make(a, p, &out->kinds, &out->menu);
    demand_make(a, p, &out->kinds, &out->menu, o->alike, &out->demand);
    if (out->demand.n_jobs == 0 || p->n_types == 0) {    // Clp minds a program without rows
        *prices = (struct prices){ .first = ARENA_ARRAY(a, int, (size_t)p->n_kinds + 1),
                                   .type_w = ARENA_ARRAY(a, double, (size_t)p->n_types) };
        return;
    }
    program_init(&g, a, p, out);
    g.options = o;
    program_solve(&g);
    out->cost_w = lp_cost(g.lp);
    for (int i = 0; i < out->demand.n_groups; i++)
        out->cost_w += out->demand.groups[i].n * out->demand.groups[i].base.cost_w;
    out->n_rows = lp_n_rows(g.lp);
    out->n_columns = lp_n_columns(g.lp);
    out->n_rounds = g.n_rounds;
    for (int j = 0; j < p->n_jobs; j++)
        g.gang_most = g.gang_most > p->jobs[j].n_max ? g.gang_most : p->jobs[j].n_max;
    program_tariff(&g);
    write_prices(&g, prices);
    write_columns(&g, out);
    program_release(&g);
}
