/* The linear relaxation of the exact program, by column generation: its duals and its bound. */
#include "optimize/exact/exact_inner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/grow.h"
#include "optimize/prices/lp.h"
#include "optimize/prices/prices.h"

/* A column is missing when its reduced cost is below minus this, watts. */
#define MISSING_W 1e-6

/* Missing columns taken in one round: on a place of many GPUs, on one GPU. */
#define ROUND_GROUP 80
#define ROUND_GPU 4

struct relaxation {
    struct exact *x;
    struct lp *lp;
    struct pool pool;     // columns of the program, in its order
    struct pool round;    // columns found missing
    struct entries scratch;
    double *best_dual;    // those of the best bound
    int n_best;
};

/* ---- growing the program ---- */

/* Sparse lines in the making. */
struct lines {
    int n, n_entries, cap_start, cap_entries;
    int *start, *index;
    double *value, *lower, *upper, *cost;
};

static void lines_init(struct lines *l, int n)
{
    size_t room = (size_t)n + 1;

    *l = (struct lines){ .start = calloc(room, sizeof(int)),
                         .lower = calloc(room, sizeof(double)),
                         .upper = calloc(room, sizeof(double)),
                         .cost = calloc(room, sizeof(double)) };
    if (!l->start || !l->lower || !l->upper || !l->cost)
        abort();
}

static void lines_entry(struct lines *l, int index, double value)
{
    GROW_BESIDE(l->index, l->n_entries, l->cap_entries);
    GROW(l->value, l->n_entries, l->cap_entries);
    l->index[l->n_entries] = index;
    l->value[l->n_entries++] = value;
}

static void lines_end(struct lines *l, double lower, double upper, double cost)
{
    l->lower[l->n] = lower;
    l->upper[l->n] = upper;
    l->cost[l->n++] = cost;
    l->start[l->n] = l->n_entries;
}

static struct lp_lines lines_view(const struct lines *l)
{
    return (struct lp_lines){ l->n, l->lower, l->upper, l->cost, l->start, l->index, l->value };
}

static void lines_release(struct lines *l)
{
    free(l->start);
    free(l->index);
    free(l->value);
    free(l->lower);
    free(l->upper);
    free(l->cost);
}

/* Rows that the program does not have yet, with the columns it has. */
static void relaxation_add_rows(struct relaxation *m)
{
    struct exact *x = m->x;
    int first = lp_n_rows(m->lp), n = x->n_rows - first;
    struct lines l;

    if (n == 0)
        return;
    lines_init(&l, n);
    for (int r = first; r < x->n_rows; r++) {
        for (int i = 0; i < lp_n_columns(m->lp); i++) {
            exact_entries(x, &m->pool.columns[i], &m->scratch);
            for (int k = 0; k < m->scratch.n; k++)
                if (m->scratch.at[k].row == r)
                    lines_entry(&l, i, m->scratch.at[k].value);
        }
        lines_end(&l, x->row_low[r], x->row_high[r], 0);
    }
    struct lp_lines view = lines_view(&l);
    lp_add_rows(m->lp, &view);
    lines_release(&l);
}

/* Columns of the pool that the program does not have yet. */
static void relaxation_add_columns(struct relaxation *m)
{
    int first = lp_n_columns(m->lp);
    struct lines l;

    lines_init(&l, m->pool.n - first);
    for (int i = first; i < m->pool.n; i++) {
        const struct column *c = &m->pool.columns[i];
        exact_entries(m->x, c, &m->scratch);
        for (int k = 0; k < m->scratch.n; k++)
            lines_entry(&l, m->scratch.at[k].row, m->scratch.at[k].value);
        lines_end(&l, 0, INFINITY, c->cost_w);
    }
    struct lp_lines view = lines_view(&l);
    lp_add_columns(m->lp, &view);
    lines_release(&l);
}

/* ---- a round of pricing ---- */

static void found(void *self, const struct column *c, double reduced_w)
{
    pool_add(self, c, reduced_w);
}

/* A row for the low that a part wants, and one halfway to the level below: else the next round
 * would ask for the next lower one.
 */
static void refine(struct exact *x, int family, double low)
{
    const struct family *f = &x->families[family];
    double below = 0;
    int n = 0;

    for (int k = 0; k < f->n_levels && f->level[k] <= low; k++)
        below = f->level[k];
    if (below == low)
        return;
    for (int i = 0; i < f->n_lows; i++)
        n += f->low[i] > below && f->low[i] < low;
    for (int i = 0, k = 0; i < f->n_lows && n > 0; i++)
        if (f->low[i] > below && f->low[i] < low && k++ == n / 2) {
            exact_add_level(x, family, f->low[i]);
            break;
        }
    exact_add_level(x, family, low);
}

static void refine_pattern(struct exact *x, const struct column *c)
{
    for (int i = 0; i < c->n; i++)
        refine(x, pattern_family(x, c, i), c->lows[i]);
}

static int least_first(const void *a, const void *b)
{
    const struct column *l = a, *r = b;

    return (l->reduced_w > r->reduced_w) - (l->reduced_w < r->reduced_w);
}

/* The worst of what is missing, some on every place. */
static void relaxation_adopt(struct relaxation *m)
{
    struct exact *x = m->x;
    int *n_taken = ARENA_ARRAY(x->arena, int, (size_t)x->n_places);

    if (m->round.n > 1)    // none: there is no array
        qsort(m->round.columns, (size_t)m->round.n, sizeof *m->round.columns, least_first);
    for (int i = 0; i < m->round.n; i++) {
        const struct column *c = &m->round.columns[i];
        if (c->form == COLUMN_SEATS) {
            int most = x->places[c->place].gpu < 0 ? ROUND_GROUP : ROUND_GPU;
            if (n_taken[c->place]++ >= most)
                continue;
        }
        if (c->form == COLUMN_PATTERN)
            refine_pattern(x, c);
        pool_add(&m->pool, c, c->reduced_w);
    }
}

static double relaxation_price(struct relaxation *m)
{
    struct column_wish w = { -MISSING_W, true, found, &m->round };
    struct exact *x = m->x;

    m->round.n = 0;
    double bound_w = exact_dual_w(x);
    bound_w += exact_seats(x, &w);
    bound_w += exact_gangs(x, &w);
    bound_w += exact_choices(x, &w);
    bound_w += exact_patterns(x, &w);
    return bound_w - MISSING_W * (x->p->n_gpus + 2 * x->p->n_jobs);
}

static void keep_duals(struct relaxation *m)
{
    m->n_best = m->x->n_rows;
    m->best_dual = realloc(m->best_dual, ((size_t)m->n_best + 1) * sizeof(double));
    if (!m->best_dual)
        abort();
    memcpy(m->best_dual, m->x->dual, (size_t)m->n_best * sizeof(double));
}

/* Rows that came later are worth nothing at the best duals. */
static void restore_duals(struct relaxation *m)
{
    double *dual = ARENA_ARRAY(m->x->arena, double, (size_t)m->x->n_rows);

    if (m->n_best)
        memcpy(dual, m->best_dual, (size_t)m->n_best * sizeof(double));
    exact_take_duals(m->x, dual);
}

static double relaxation_run(struct relaxation *m, double until_s)
{
    double bound_w = -INFINITY;

    while (clock_stopwatch_s() < until_s && !m->x->is_cut_short) {
        int n_rows = m->x->n_rows;
        if (!lp_solve(m->lp, LP_PRIMAL))
            break;
        exact_take_duals(m->x, lp_duals(m->lp));
        double w = relaxation_price(m);
        if (w > bound_w && !m->x->is_cut_short) {
            bound_w = w;
            keep_duals(m);
        }
        if (m->round.n == 0)
            break;
        relaxation_adopt(m);
        if (m->x->n_rows > n_rows)
            relaxation_add_rows(m);
        relaxation_add_columns(m);
    }
    return bound_w;
}

static void begin_with(void *self, const struct column *c, double reduced_w)
{
    struct relaxation *m = self;

    if (pool_find(&m->pool, c) < 0)
        pool_add(&m->pool, c, reduced_w);
}

/* Prices of kinds and types as duals: what they call missing is a good beginning. */
static void begin_at(struct relaxation *m, const struct prices *u)
{
    struct exact *x = m->x;
    double *dual = ARENA_ARRAY(x->arena, double, (size_t)x->n_rows);

    for (int j = 0; j < x->p->n_jobs; j++)
        if (x->cover[j] >= 0)
            dual[x->cover[j]] = u->job_w[j];
    for (int i = 0; i < x->n_places; i++)
        if (x->places[i].gpu < 0)
            dual[x->places[i].row[0]] = -u->u.type_w[x->places[i].type];
    for (int i = 0; i < x->n_families; i++) {
        const struct family *f = &x->families[i];
        double below = 0;
        for (int k = 0; k < f->n_levels; k++) {
            double price = prices_slot_w(u, f->kind, f->level[k]);
            dual[f->row[k]] = price - below;
            below = price;
        }
    }
    exact_take_duals(x, dual);
    relaxation_price(m);
    relaxation_adopt(m);
}

double exact_relax(struct exact *x, const struct prices *u, const struct plan *start,
                   double until_s)
{
    struct relaxation m = { .x = x, .lp = lp_create() };
    struct column_wish every = { HUGE_VAL, false, begin_with, &m };

    m.pool.arena = m.round.arena = x->arena;
    exact_from_plan(x, start, &m.pool);
    exact_choices(x, &every);
    for (int i = 0; i < m.pool.n; i++)
        if (m.pool.columns[i].form == COLUMN_PATTERN)
            refine_pattern(x, &m.pool.columns[i]);
    if (u)
        begin_at(&m, u);
    relaxation_add_rows(&m);
    relaxation_add_columns(&m);
    double bound_w = relaxation_run(&m, until_s);
    restore_duals(&m);
    lp_destroy(m.lp);
    free(m.pool.columns);
    free(m.round.columns);
    free(m.scratch.at);
    free(m.best_dual);
    return bound_w;
}
