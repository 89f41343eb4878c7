#include "optimize/prices/master.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "optimize/prices/master_inner.h"
#include "optimize/prices/prices.h"

/* Patterns within this of the best of their type come in at first, as a part of what a GPU costs,
 * at most so many of a type; later those that are better than it, the best first.
 */
#define NEAR_FIRST 0.004
#define MOST_FIRST 4000
#define MOST_LATER 400
#define BETTER 1e-4

/* The program is done when it lacks no more than one column, and one row, in so many, and its
 * prices are better than those it began with: what lacks may be little and cost much.
 */
#define NEW_ENOUGH 200

/* Prices of the program's solution. */
static void take_prices(struct master_inner *in)
{
    const struct columns *c = in->m.c;
    const double *d = lp_duals(in->lp), *x = lp_values(in->lp);

    for (int t = 0; t < c->p->n_types; t++) {
        in->now.type_w[t] = fmax(-d[t], 0);
        in->now.rack_price[t] = in->rack_row[t] >= 0 ? fmax(-d[in->rack_row[t]], 0) : 0;
    }
    in->now.cap_price = in->cap_row >= 0 ? fmax(-d[in->cap_row], 0) : 0;
    for (int k = 0; k < c->n_classes; k++) {
        double price = 0;
        for (int b = 0, r = 0; b < c->classes[k].n_bins; b++) {
            for (; r < in->rows[k].n && in->rows[k].bin[r] <= b; r++)
                price += r ? fmax(d[in->rows[k].row[r]], 0) : d[in->rows[k].row[r]];
            in->now.slot_w[c->classes[k].first_bin + b] = price;
        }
    }
    for (int i = 0; i < in->m.n_columns; i++)
        in->m.columns[i].x = x[i];
}

/* The bound of the present prices; the best are kept. Choices are made on the way. */
static double certify(struct master_inner *in)
{
    const struct columns *c = in->m.c;

    arena_reset(&in->scratch[0]);
    arena_reset(&in->scratch[1]);
    double w = certificate_bound(in->scratch, c, &in->now, in->o->threads, in->choices);
    if (w > in->m.bound_w) {
        in->m.bound_w = w;
        dual_copy(c, &in->now, in->best);
    }
    return w;
}

/* The program of the first round: near the prices to begin with. */
static void begin(struct master_inner *in)
{
    const struct columns *c = in->m.c;

    in->first_w = certify(in);
    master_demand(in);
    master_first_rows(in);
    for (int t = 0; t < c->p->n_types; t++)
        if (c->n_open[t] > 0)
            master_add_near(in, t, in->now.type_w[t] - NEAR_FIRST * in->m.c->unit_w, MOST_FIRST);
    master_add_cover(in);
    master_add_kept(in);
    master_add_fixed(in);
    master_add_choices(in);
    master_add_shorts(in);
    master_add_type_slack(in);
    for (int k = 0; k < c->n_classes; k++)
        for (int r = 0; r < in->rows[k].n; r++)
            master_add_slack(in, k, in->rows[k].bin[r]);
    master_flush(in);
}

/* One solution, and what it lacks. False: it was not reached, or lacks nothing. */
static bool improve(struct master_inner *in)
{
    const struct columns *c = in->m.c;
    double type_w[64];
    int n_before = in->m.n_columns;

    if (in->o->clock)
        lp_limit(in->lp, fmax(in->o->until_s - clock_now_s(in->o->clock), 0.01));
    if (!lp_solve(in->lp, in->m.n_rounds == 0 ? LP_DUAL : LP_PRIMAL))
        return false;
    in->m.n_rounds++;
    take_prices(in);
    memcpy(type_w, in->now.type_w, (size_t)c->p->n_types * sizeof *type_w);
    certify(in);
    for (int t = 0; t < c->p->n_types; t++)
        master_add_near(in, t, type_w[t] + BETTER * in->m.c->unit_w, MOST_LATER);
    int n_rows = master_group_rows(in);
    master_add_fixed(in);
    master_add_choices(in);
    master_add_shorts(in);
    master_flush(in);
    int n_new = in->m.n_columns - n_before, n_slack = master_loosen(in);
    n_rows += master_lacking_rows(in);
    bool is_new_enough =
        n_new <= n_before / NEW_ENOUGH && n_rows <= in->n_rows / NEW_ENOUGH && n_slack == 0;
    in->m.is_done = is_new_enough && (in->m.bound_w > in->first_w || n_new + n_rows == 0);
    return !in->m.is_done;
}

static bool is_late(const struct master_inner *in)
{
    return in->o->clock && clock_now_s(in->o->clock) >= in->o->until_s;
}

struct master *master_solve(const struct columns *c, const struct prices_options *o,
                            int rounds_most, struct dual *u)
{
    struct master_inner *in = heap_array(1, sizeof *in);

    in->m = (struct master){ .c = c, .bound_w = -HUGE_VAL, .inner = in };
    in->o = o;
    arena_init(&in->arena);
    arena_init(&in->scratch[0]);
    arena_init(&in->scratch[1]);
    in->best = u;
    in->lp = lp_create();
    in->rows = ARENA_ARRAY(&in->arena, struct class_rows, (size_t)c->n_classes);
    in->is_in = ARENA_ARRAY(&in->arena, bool *, (size_t)c->p->n_types);
    for (int t = 0; t < c->p->n_types; t++)
        in->is_in[t] = ARENA_ARRAY(&in->arena, bool, (size_t)c->patterns[t].n);
    in->is_short_in = ARENA_ARRAY(&in->arena, bool, (size_t)c->p->n_jobs);
    in->choices = ARENA_ARRAY(&in->arena, struct job_choice, (size_t)c->p->n_jobs);
    in->is_fixed_in = ARENA_ARRAY(&in->arena, bool, (size_t)c->n_fixed);
    in->held_row = ARENA_ARRAY(&in->arena, int, (size_t)c->p->n_gpus);
    dual_init(&in->arena, c, &in->now);
    dual_copy(c, u, &in->now);
    master_groups(in);
    in->demand = ARENA_ARRAY(&in->arena, double, (size_t)c->n_bins);
    in->base_gpus = ARENA_ARRAY(&in->arena, double, (size_t)c->p->n_types);
    in->base_draw_w = ARENA_ARRAY(&in->arena, double, (size_t)c->p->n_types);
    in->rack_row = ARENA_ARRAY(&in->arena, int, (size_t)c->p->n_types);
    in->base_w = ARENA_ARRAY(&in->arena, double, (size_t)in->m.n_groups);
    begin(in);
    while (in->m.n_rounds < rounds_most && !is_late(in) && improve(in))
        continue;
    in->m.n_rows = in->n_rows;
    if (in->m.n_rounds > 0)
        return &in->m;
    master_destroy(&in->m);
    return NULL;
}

void master_destroy(struct master *m)
{
    struct master_inner *in = m ? m->inner : NULL;

    if (!in)
        return;
    lp_destroy(in->lp);
    for (int k = 0; k < m->c->n_classes; k++) {
        free(in->rows[k].bin);
        free(in->rows[k].row);
    }
    free(m->columns);
    free(in->batch.index);
    free(in->batch.start);
    free(in->batch.value);
    free(in->batch.upper);
    free(in->batch.cost);
    arena_release(&in->arena);
    arena_release(&in->scratch[0]);
    arena_release(&in->scratch[1]);
    free(in);
}
