#include "optimize/exact/exact.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/grow.h"
#include "optimize/model/plan.h"
#include "optimize/exact/exact_inner.h"
#include "optimize/exact/mip.h"

/* CBC with more columns than this takes longer than anybody waits. */
#define COLUMNS_MOST 200000

/* The first integer program has so many, or up to twice as many. */
#define FIRST_COLUMNS 1500
#define FIRST_TIME 0.3      // of all; what it finds makes the next one smaller
#define FIRST_REACH 1e-6    // of the watts that are added up: where it begins to look for them

/* Costs that differ by less are the same: relative, as optimize.h has it. */
#define SAME 1e-6

/* CBC's objective and bound are right up to this much of the watts that are added up. */
#define CBC_TOLERANCE 1e-9

struct run {
    struct exact x;
    double until_s;
    const struct plan *start;
    struct plan *out;    // the best so far
    double lp_w;         // the relaxation's bound
    double bound_w;      // the best so far
    double done_w;       // columns within this have been searched to the end
    bool needs_racks;    // an optimum without racks' caps broke one
    struct pool pool;
    struct arena *arena;
};

/* ---- the integer program ---- */

static void keep(void *self, const struct column *c, double reduced_w)
{
    pool_add(self, c, reduced_w);
}

/* What the kept seats of each spread job's family may hold: no pattern needs anything else. */
static void gather_lows(struct exact *x, const struct pool *pool)
{
    int *cap = ARENA_ARRAY(x->arena, int, (size_t)x->n_families);

    for (int i = 0; i < x->n_families; i++) {
        x->families[i].n_lows = 0;
        x->families[i].low = NULL;
    }
    for (int i = 0; i < pool->n; i++)
        for (int k = 0; pool->columns[i].form == COLUMN_SEATS && k < pool->columns[i].n; k++) {
            const struct seat_item *item = &pool->columns[i].items[k];
            if (item->family < 0 || x->families[item->family].job < 0)
                continue;
            struct family *f = &x->families[item->family];
            GROW(f->low, f->n_lows, cap[item->family]);
            f->low[f->n_lows++] = item->low;
        }
}

static int rising(const void *a, const void *b)
{
    double l = *(const double *)a, r = *(const double *)b;

    return (l > r) - (l < r);
}

static void sort_lows(struct exact *x)
{
    for (int i = 0; i < x->n_families; i++) {
        struct family *f = &x->families[i];
        double *low = ARENA_ARRAY(x->arena, double, (size_t)f->n_lows);
        int n = 0;
        if (f->n_lows)
            qsort(f->low, (size_t)f->n_lows, sizeof *f->low, rising);
        for (int k = 0; k < f->n_lows; k++)
            if (n == 0 || f->low[k] > low[n - 1])
                low[n++] = f->low[k];
        free(f->low);
        f->low = low;
        f->n_lows = n;
    }
}

/* A column of the best answer: see that it is there, so that the program has a solution. */
static void begin_with(struct run *r, const struct column *c)
{
    struct pool *pool = &r->pool;
    bool is_pattern = c->form == COLUMN_PATTERN;

    if ((is_pattern && r->x.is_loose[pattern_family(&r->x, c, 0)]) || pool_find(pool, c) >= 0)
        return;
    pool->most++;    // even when the pool is full
    pool_add(pool, c, 0);
    pool->most--;
}

/* All columns within 'most_w', and those of the best answer. */
static void gather(struct run *r, double most_w)
{
    struct exact *x = &r->x;
    struct pool *pool = &r->pool, begin = { .arena = x->arena };
    struct column_wish w = { most_w, false, keep, pool };

    pool->n = 0;
    pool->is_full = false;
    exact_seats(x, &w);
    exact_gangs(x, &w);
    exact_choices(x, &w);
    gather_lows(x, pool);
    sort_lows(x);
    exact_patterns(x, &w);
    exact_from_plan(x, r->out, &begin);
    for (int i = 0; i < begin.n; i++)
        begin_with(r, &begin.columns[i]);
    pool->is_full |= x->is_cut_short;
    x->is_cut_short = false;
    free(begin.columns);
}

static double column_upper(const struct exact *x, const struct column *c)
{
    return c->form == COLUMN_SEATS ? x->places[c->place].n : 1;
}

/* Once the others are whole, who takes which slot is a matching: whole by itself. So would waiting
 * be, but to branch on who waits is what raises the bound most.
 */
static bool is_whole(const struct column *c)
{
    return c->form != COLUMN_TAKE && c->form != COLUMN_SHORT;
}

/* Levels for what the patterns want, then all columns as arrays. */
static void mip_make(const struct exact *x, const struct pool *pool, struct mip *out)
{
    struct arena *a = x->arena;
    size_t n = (size_t)pool->n;
    double *cost = ARENA_ARRAY(a, double, n), *upper = ARENA_ARRAY(a, double, n);
    bool *is_integer = ARENA_ARRAY(a, bool, n);
    int *start = ARENA_ARRAY(a, int, n + 1), *row = NULL, n_entries = 0, cap = 0;
    double *value = NULL;
    struct entries entries = { 0 };
    struct exact y;

    exact_drop_levels(x, &y);
    for (int i = 0; i < pool->n; i++)
        if (pool->columns[i].form == COLUMN_LOOSE)
            exact_add_held(&y, &pool->columns[i]);
    for (int i = 0; i < pool->n; i++)
        for (int k = 0; pool->columns[i].form == COLUMN_PATTERN && k < pool->columns[i].n; k++)
            exact_add_level(&y, pattern_family(&y, &pool->columns[i], k), pool->columns[i].lows[k]);
    for (int i = 0; i < pool->n; i++) {
        const struct column *c = &pool->columns[i];
        exact_entries(&y, c, &entries);
        for (int k = 0; k < entries.n; k++) {
            GROW_BESIDE(row, n_entries, cap);
            GROW(value, n_entries, cap);
            row[n_entries] = entries.at[k].row;
            value[n_entries++] = entries.at[k].value;
        }
        start[i + 1] = n_entries;
        cost[i] = c->cost_w;
        upper[i] = column_upper(&y, c);
        is_integer[i] = is_whole(c);
    }
    free(entries.at);
    *out = (struct mip){ y.n_rows, pool->n, start,      row,       value,
                         cost,     upper,   is_integer, y.row_low, y.row_high };
}

static void mip_release(struct mip *m)
{
    free((int *)m->row);
    free((double *)m->value);
}

/* ---- what comes of it ---- */

/* Is what CBC found an answer, and cheaper? Only then it is taken. False: it is none. */
static bool adopt(struct run *r, const double *value)
{
    const struct problem *p = r->x.p;
    struct plan *found = ARENA_NEW(r->x.arena, struct plan);

    if (!exact_to_plan(&r->x, &r->pool, value, r->start, found))
        return false;
    plan_price(r->x.arena, p, found);
    if (plan_check(r->x.arena, p, found, NULL) < 0)
        return false;
    if (found->cost_w < r->out->cost_w)
        r->out = found;
    return true;
}

/* Watts that are added up: what rounding is measured by. */
static double scale_of(const struct plan *x)
{
    return fmax(fabs(x->cost_w) + x->watts + x->short_w + x->wait_w + x->move_w, 1);
}

/* The integer program of what was gathered, in a share of the time that is left. False: no use
 * in going on.
 */
static bool solve_within(struct run *r, double most_w, double share, struct err *e, int *rc)
{
    struct mip m;
    struct mip_result result;
    struct mip_options o = { .time_s = share * (r->until_s - clock_stopwatch_s()) };

    if (r->pool.is_full || o.time_s <= 0)
        return false;
    mip_make(&r->x, &r->pool, &m);
    *rc = mip_solve(r->x.arena, &m, &o, &result, e);
    mip_release(&m);
    if (*rc < 0 || result.status == MIP_NONE)
        return *rc == 0 && share < 1;
    double within_w = result.status == MIP_OPTIMAL ? result.objective : result.bound;
    bool may_be_true = within_w <= r->out->cost_w + SAME * scale_of(r->out);
    bool is_answer = adopt(r, result.x);
    if (!is_answer)
        r->needs_racks = !r->x.has_racks && r->x.p->rack_cap_w;
    /* The best answer was among its choices: an optimum or a bound that is dearer is none. */
    if (!may_be_true)
        return false;
    /* Whoever uses another column costs more than the relaxation by as much as that column. */
    within_w = fmin(within_w, r->lp_w + most_w) - CBC_TOLERANCE * scale_of(r->out);
    r->bound_w = fmax(r->bound_w, within_w);
    if (result.status == MIP_OPTIMAL)
        r->done_w = most_w;
    return is_answer && (share < 1 || result.status == MIP_OPTIMAL);
}

/* Gather as far as the gap, or half, a quarter as far, until there are no more columns than fit. */
static double reach_far(struct run *r)
{
    double most_w = fmax(r->out->cost_w - r->lp_w, 0);

    gather(r, most_w);
    while (r->pool.is_full && most_w > SAME) {
        most_w /= 2;
        gather(r, most_w);
    }
    return most_w;
}

/* Gather only as far as there are some columns to choose from: a good answer among those makes
 * the gap, and the next program, smaller.
 */
static double reach_near(struct run *r)
{
    double gap_w = fmax(r->out->cost_w - r->lp_w, 0);
    double most_w = fmin(gap_w, FIRST_REACH * scale_of(r->out));

    gather(r, most_w);
    while (r->pool.n < FIRST_COLUMNS && most_w < gap_w) {
        most_w = 8 * most_w < gap_w ? 2 * most_w : gap_w;
        gather(r, most_w);
    }
    return most_w;
}

static bool is_met(const struct run *r)
{
    return r->bound_w >= r->out->cost_w - SAME * fmax(fabs(r->out->cost_w), 1);
}

static int run_with(struct run *r, bool has_racks, const struct prices *u, struct err *e)
{
    int rc = 0;

    exact_build(r->arena, r->x.p, has_racks, &r->x);
    r->needs_racks = false;
    r->lp_w = exact_relax(&r->x, u, r->out, r->until_s);
    r->bound_w = fmax(r->bound_w, r->lp_w);
    if (r->x.is_cut_short || isinf(r->lp_w))
        return 0;
    double most_w = reach_near(r), share = FIRST_TIME;
    r->done_w = -1;
    while (most_w > r->done_w && !is_met(r) && solve_within(r, most_w, share, e, &rc)) {
        most_w = reach_far(r);
        share = 1;
    }
    return rc;
}

/* ---- the whole ---- */

static void answer_copy(struct arena *a, const struct plan *from, struct plan *to)
{
    size_t n_jobs = (size_t)from->n_jobs, n_gpus = (size_t)from->n_gpus;
    struct plan_job *jobs = ARENA_ARRAY(a, struct plan_job, n_jobs);
    unsigned char *limit = ARENA_ARRAY(a, unsigned char, n_gpus);

    for (size_t j = 0; j < n_jobs; j++) {
        size_t n = (size_t)from->jobs[j].n_gpus;
        int *gpus = ARENA_ARRAY(a, int, n);
        if (n)
            memcpy(gpus, from->jobs[j].gpus, n * sizeof *gpus);
        jobs[j] = from->jobs[j];
        jobs[j].gpus = gpus;
    }
    if (n_gpus)
        memcpy(limit, from->limit, n_gpus);
    *to = *from;
    to->jobs = jobs;
    to->limit = limit;
}

int exact_run(struct arena *a, const struct problem *p, const struct prices *u, double bound_w,
              const struct plan *start, const struct exact_options *o, struct plan *out,
              double *bound_w_out, bool *is_proven, struct err *e)
{
    struct arena scratch;
    struct plan best = *start;
    struct run r = {
        .arena = &scratch,
        .start = start,
        .out = &best,
        .bound_w = bound_w,
        .until_s = clock_stopwatch_s() + o->time_s,
        .pool = { .arena = &scratch, .most = o->columns_most ? o->columns_most : COLUMNS_MOST },
    };

    arena_init(&scratch);
    r.x.p = p;
    if (bound_w > start->cost_w + SAME * scale_of(start))
        r.bound_w = -INFINITY;    // the start says that it does not hold: no proof can rest on it
    int rc = is_met(&r) ? 0 : run_with(&r, false, u, e);
    if (rc == 0 && r.needs_racks && !is_met(&r))
        rc = run_with(&r, true, u, e);
    answer_copy(a, r.out, out);
    *is_proven = is_met(&r);
    *bound_w_out = fmin(r.bound_w, out->cost_w);
    free(r.pool.columns);
    arena_release(&scratch);
    return rc;
}
