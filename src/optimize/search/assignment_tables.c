#include "optimize/search/assignment_inner.h"

#include <math.h>
#include <stdlib.h>

/* Pairs are tabled up to this many entries (32 bytes each): 50 kinds on 6 types with 3 settings
 * are 45,000. Beyond, a pair is computed when it is needed, which takes about 40 ns.
 */
#define PAIRS_MAX 500000

/* Triples are tabled where there are no more than so many entries for a job. */
#define TRIPLES_OF_JOB 40

/* Positions kept for each kind where there are many kinds. Only the cheapest are ever looked at:
 * an insertion stops where the least possible cost exceeds the best found.
 */
#define POSITIONS_MAX 512

/* ---- yields ---- */

/* As problem_yield; cost_w is HUGE_VAL where they must not run so. */
static struct yield yield_of(const struct problem *p, int type, int limit, const int *kinds, int n)
{
    struct yield y;

    if (limit < p->types[type].n_limits && problem_yield(p, type, limit, kinds, n, &y))
        return y;
    return (struct yield){ .cost_w = HUGE_VAL };
}

static void fill_alone(struct arena *a, struct assignment_tables *t, const struct problem *p)
{
    int n = t->n_types * t->n_kinds * t->n_limits;

    t->alone = ARENA_ARRAY(a, struct alone_cell, (size_t)n);
    for (int i = 0; i < n; i++) {
        int kind = i / t->n_limits % t->n_kinds, type = i / t->n_limits / t->n_kinds;
        struct yield y = yield_of(p, type, i % t->n_limits, &kind, 1);
        t->alone[i] =
            (struct alone_cell){ y.cost_w, y.watts, y.speed[0], yield_low(p, &y, 0), y.held[0] };
    }
}

static long pair_at(const struct assignment_tables *t, int type, int kind, int other)
{
    return (((long)type * t->n_kinds + kind) * t->n_kinds + other) * t->n_limits;
}

static void fill_pair(struct assignment_tables *t, const struct problem *p, int type, int kind,
                      int other)
{
    struct pair_cell *c = &t->pairs[pair_at(t, type, kind, other)];
    struct pair_cell *mirror = &t->pairs[pair_at(t, type, other, kind)];

    for (int limit = 0; limit < t->n_limits; limit++) {
        struct yield y = yield_of(p, type, limit, (int[]){ kind, other }, 2);
        c[limit] = (struct pair_cell){ y.cost_w, y.watts, y.held[0], y.held[1] };
        mirror[limit] = (struct pair_cell){ y.cost_w, y.watts, y.held[1], y.held[0] };
    }
}

static void fill_pairs(struct arena *a, struct assignment_tables *t, const struct problem *p)
{
    long n = pair_at(t, t->n_types, 0, 0);

    if (p->theta < 2 || n > PAIRS_MAX)
        return;
    t->pairs = ARENA_ARRAY(a, struct pair_cell, (size_t)n);
    for (int type = 0; type < t->n_types; type++)
        for (int kind = 0; kind < t->n_kinds; kind++)
            for (int other = 0; other <= kind; other++)
                fill_pair(t, p, type, kind, other);
}

/* ---- three together ---- */

/* Where kinds a <= b <= c are. */
static long triple_at(const struct assignment_tables *t, int type, const int *kinds)
{
    long a = kinds[0], b = kinds[1], c = kinds[2], n = t->n_kinds;

    return (type * (n * (n + 1) * (n + 2) / 6) + c * (c + 1) * (c + 2) / 6 + b * (b + 1) / 2 + a) *
           t->n_limits;
}

static void fill_triple(struct assignment_tables *t, const struct problem *p, int type,
                        const int *kinds)
{
    struct triple_cell *cell = &t->triples[triple_at(t, type, kinds)];

    for (int limit = 0; limit < t->n_limits; limit++) {
        struct yield y = yield_of(p, type, limit, kinds, 3);
        cell[limit] =
            (struct triple_cell){ y.cost_w, y.watts, { y.held[0], y.held[1], y.held[2] } };
    }
}

static void fill_triples(struct arena *a, struct assignment_tables *t, const struct problem *p)
{
    double n = t->n_kinds, all = t->n_types * n * (n + 1) * (n + 2) / 6 * t->n_limits;

    if (p->theta < 3 || all > TRIPLES_OF_JOB * (double)p->n_jobs)
        return;
    t->triples = ARENA_ARRAY(a, struct triple_cell, (size_t)all);
    for (int type = 0; type < t->n_types; type++)
        for (int high = 0; high < t->n_kinds; high++)
            for (int mid = 0; mid <= high; mid++)
                for (int low = 0; low <= mid; low++)
                    fill_triple(t, p, type, (int[]){ low, mid, high });
}

static bool triple_yield(const struct assignment_tables *t, int type, int limit, const int *kinds,
                         struct yield *out)
{
    int order[] = { 0, 1, 2 };

    for (int i = 1; i < 3; i++)
        for (int k = i; k > 0 && kinds[order[k - 1]] > kinds[order[k]]; k--) {
            int was = order[k];
            order[k] = order[k - 1];
            order[k - 1] = was;
        }
    int sorted[] = { kinds[order[0]], kinds[order[1]], kinds[order[2]] };
    const struct triple_cell *c = &t->triples[triple_at(t, type, sorted) + limit];
    out->watts = c->watts;
    out->cost_w = c->cost_w;
    for (int i = 0; i < 3; i++)
        out->held[order[i]] = c->held[i];
    return c->cost_w < HUGE_VAL;
}

bool tables_yield(const struct assignment *d, int type, int limit, const int *kinds, int n,
                  struct yield *out)
{
    const struct assignment_tables *t = d->tables;

    if (n == 1) {
        const struct alone_cell *c = tables_alone(t, type, kinds[0], limit);
        out->watts = c->watts;
        out->cost_w = c->cost_w;
        out->speed[0] = c->speed;
        out->held[0] = c->held;
        return c->cost_w < HUGE_VAL;
    }
    if (n == 3 && t->triples)
        return triple_yield(t, type, limit, kinds, out);
    if (n > 2 || !t->pairs)
        return problem_yield(d->problem, type, limit, kinds, n, out);
    const struct pair_cell *c = &t->pairs[pair_at(t, type, kinds[0], kinds[1]) + limit];
    out->watts = c->watts;
    out->cost_w = c->cost_w;
    out->held[0] = c->held;
    out->held[1] = c->other;
    return c->cost_w < HUGE_VAL;
}

/* ---- positions ---- */

/* The least cost of a pair; without a table of pairs under the default setting only, which is near
 * enough to know whom to look at.
 */
static double pair_w(const struct assignment_tables *t, const struct problem *p, int type, int kind,
                     int other)
{
    int n_limits = t->pairs ? p->types[type].n_limits : 1;
    double best = HUGE_VAL;

    for (int limit = 0; limit < n_limits; limit++) {
        struct yield y;
        if (t->pairs)
            best = fmin(best, t->pairs[pair_at(t, type, kind, other) + limit].cost_w);
        else if (problem_yield(p, type, limit, (int[]){ kind, other }, 2, &y))
            best = fmin(best, y.cost_w);
    }
    return best;
}

const struct position position_end = { (float)HUGE_VAL, 0, -1, -1, -1, 0 };

int position_order(const void *a, const void *b)
{
    const struct position *x = a, *y = b;

    if (x->least_w != y->least_w)
        return x->least_w < y->least_w ? -1 : 1;
    return x->type != y->type ? x->type - y->type : x->beside - y->beside;
}

/* How much of its speed a resident keeps beside a newcomer. */
static short kept_step(const struct problem *p, int type, int resident, int kind)
{
    double beside = (double)p->held[problem_cell(p, type, resident, kind)];
    double alone = (double)p->held[problem_cell(p, type, resident, -1)];
    double step = alone > 0 ? beside / alone * NEED_STEPS : 0;

    return step < NEED_STEPS - 1 ? (short)step : NEED_STEPS - 1;
}

/* The yield_low of a kind in a cell, at most. */
static float cell_low(const struct problem *p, long cell)
{
    double mean = (double)p->held[cell], doubt = p->doubt ? (double)p->doubt[cell] : 0;

    return (float)problem_sure(p, (struct held){ mean, mean * doubt });
}

/* On each type where it may be alone: that, and beside each kind that it may be with. */
static int list_positions(const struct assignment_tables *t, const struct problem *p, int kind,
                          const double *alone_w, struct position *out)
{
    int n = 0;

    for (int type = 0; type < t->n_types; type++) {
        const double *w = alone_w + type * t->n_kinds;
        for (int other = -1; w[kind] < HUGE_VAL && other < (p->theta > 1 ? t->n_kinds : 0);
             other++) {
            double least_w = other < 0 ? w[kind] : pair_w(t, p, type, kind, other) - w[other];
            if (!(least_w < HUGE_VAL))
                continue;
            out[n++] = (struct position){ .least_w = (float)least_w,
                                          .low = cell_low(p, problem_cell(p, type, kind, other)),
                                          .type = (short)type,
                                          .beside = (short)other,
                                          .row = other < 0 ? -1 : type * t->n_kinds + other,
                                          .kept = other < 0 ? 0 : kept_step(p, type, other, kind) };
        }
    }
    qsort(out, (size_t)n, sizeof *out, position_order);
    return n;
}

/* The cheapest there is room for, and every empty GPU's. */
static void keep_positions(const struct assignment_tables *t, const struct position *all, int n,
                           struct position *row)
{
    int n_shared = 0, n_kept = 0, most = t->n_positions - 1 - t->n_types;

    for (int i = 0; i < n; i++)
        if (all[i].beside < 0 || n_shared++ < most)
            row[n_kept++] = all[i];
    for (; n_kept < t->n_positions; n_kept++)
        row[n_kept] = position_end;
}

static void fill_positions(struct arena *a, struct assignment_tables *t, const struct problem *p)
{
    int all = t->n_types * (1 + (p->theta > 1 ? t->n_kinds : 0));
    struct position *scratch = ARENA_ARRAY(a, struct position, (size_t)all);
    double *alone_w = ARENA_ARRAY(a, double, (size_t)t->n_types *(size_t)t->n_kinds);

    t->n_positions = (all < POSITIONS_MAX ? all : POSITIONS_MAX) + 1;
    t->positions = ARENA_ARRAY(a, struct position, (size_t)t->n_kinds * (size_t)t->n_positions);
    for (int i = 0; i < t->n_types * t->n_kinds; i++) {
        alone_w[i] = HUGE_VAL;    // under the setting where it is least
        for (int limit = 0; limit < t->n_limits; limit++)
            alone_w[i] = fmin(alone_w[i], t->alone[i * t->n_limits + limit].cost_w);
    }
    for (int kind = 0; kind < t->n_kinds; kind++) {
        int n = list_positions(t, p, kind, alone_w, scratch);
        keep_positions(t, scratch, n, t->positions + (long)kind * t->n_positions);
    }
}

struct assignment_tables *tables_create(struct arena *a, const struct problem *p)
{
    struct assignment_tables *t = ARENA_NEW(a, struct assignment_tables);

    t->n_types = p->n_types;
    t->n_kinds = p->n_kinds;
    t->n_limits = 1;
    for (int type = 0; type < p->n_types; type++)
        if (p->types[type].n_limits > t->n_limits)
            t->n_limits = p->types[type].n_limits;
    fill_alone(a, t, p);
    fill_pairs(a, t, p);
    fill_triples(a, t, p);
    fill_positions(a, t, p);
    return t;
}
