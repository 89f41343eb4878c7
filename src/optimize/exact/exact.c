#include "optimize/exact/exact.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "optimize/exact/mip.h"
#include "optimize/exact/program.h"
#include "optimize/model/plan.h"

/* CBC with more columns than this takes longer than anybody waits. */
#define COLUMNS_MOST 200000

/* The first integer program has so many, or up to about twice as many. */
#define FIRST_COLUMNS 1500
#define FIRST_TIME 0.3      // of all; what it finds makes the next one smaller
#define FIRST_REACH 1e-6    // of the watts that are added up: where it begins to look for them

/* Costs that differ by less are the same: relative, as optimize.h has it. */
#define SAME 1e-6

/* CBC's objective and bound are right up to this much of the watts that are added up. */
#define CBC_TOLERANCE 1e-9

struct exact_search {
    struct arena *arena;    // the caller's, for answers
    struct exact_program x;
    struct column_list pool;
    struct plan *out;    // the best so far
    double lp_w;         // the relaxation's bound
    double bound_w;      // the best so far
    double done_w;       // columns within this have been searched to the end
    bool needs_racks;    // an optimum without racks' caps broke one
};

/* Watts that are added up: what rounding is measured by. */
static double scale_of(const struct plan *x)
{
    return fmax(fabs(x->cost_w) + x->watts + x->short_w + x->wait_w + x->move_w, 1);
}

static double gap_w(const struct exact_search *r)
{
    return fmax(r->out->cost_w - r->lp_w, 0);
}

static bool is_met(const struct exact_search *r)
{
    double same_w = SAME * fmax(fabs(r->out->cost_w), 1);

    return r->bound_w >= r->out->cost_w - fmax(same_w, 2 * CBC_TOLERANCE * scale_of(r->out));
}

/* ---- columns ---- */

/* All columns within 'most_w'. */
static void gather(struct exact_search *r, double most_w)
{
    struct column_filter w = { .most_w = most_w, .pool = &r->pool, .room = COLUMNS_MOST };

    r->pool.n = 0;
    for (int i = 0; i < r->x.n_groups; i++)
        program_single(&r->x, i, &w);
    for (int j = 0; j < r->x.p->n_jobs; j++)
        program_gang(&r->x, j, &w);
    program_choices(&r->x, 0, &r->pool);
}

/* Gather only as far as there are some columns to choose from: a good answer among those makes
 * the gap, and the next program, smaller.
 */
static double reach_near(struct exact_search *r)
{
    double most_w = fmin(gap_w(r), FIRST_REACH * scale_of(r->out));

    gather(r, most_w);
    while (r->pool.n < FIRST_COLUMNS && most_w < gap_w(r)) {
        most_w = fmin(2 * most_w, gap_w(r));
        gather(r, most_w);
    }
    return most_w;
}

/* ---- the integer program ---- */

/* Is what CBC found an answer, and cheaper? Only then it is taken. False: it is none. */
static bool adopt(struct exact_search *r, const double *value)
{
    const struct problem *p = r->x.p;
    struct plan *found = ARENA_NEW(r->arena, struct plan);

    if (!program_answer(r->arena, &r->x, &r->pool, value, r->out, found))
        return false;
    plan_price(r->arena, p, found);
    if (plan_check(r->arena, p, found, NULL) < 0)
        return false;
    if (found->cost_w < r->out->cost_w)
        r->out = found;
    return true;
}

/* The integer program of what was gathered, in a share of the time that is left. False: no use
 * in going on.
 */
static bool solve_within(struct exact_search *r, double most_w, double share, struct err *e,
                         int *rc)
{
    struct mip m;
    struct mip_result result;
    double most = r->out->cost_w + 2 * SAME * scale_of(r->out);
    struct mip_options o = { .time_s = share * (r->x.until_s - clock_stopwatch_s()),
                             .most = &most,
                             .is_proof = share >= 1 };

    if (r->pool.n >= COLUMNS_MOST || r->x.is_cut_short || o.time_s <= 0)
        return false;
    program_matrix(&r->x, &r->pool, 0, &m);
    *rc = mip_solve(r->x.arena, &m, &o, &result, e);
    if (*rc < 0 || result.status == MIP_NONE)
        return *rc == 0 && share < 1;
    double within_w = result.status == MIP_OPTIMAL ? result.objective : result.bound;
    bool may_be_true = within_w <= r->out->cost_w + SAME * scale_of(r->out);
    bool is_answer = adopt(r, result.x);
    r->needs_racks |= !is_answer && !r->x.has_racks && r->x.p->rack_cap_w;
    if (!may_be_true)
        return false;    // an optimum or a bound that is dearer than the best answer is none
    /* Whoever uses another column costs more than the relaxation by as much as that column. */
    within_w = fmin(within_w, r->lp_w + most_w) - CBC_TOLERANCE * scale_of(r->out);
    r->bound_w = fmax(r->bound_w, within_w);
    if (result.status == MIP_OPTIMAL)
        r->done_w = most_w;
    return is_answer && (share < 1 || result.status == MIP_OPTIMAL);
}

/* ---- the whole ---- */

static int run_with(struct exact_search *r, const struct problem *p, bool has_racks, double until_s,
                    struct err *e)
{
    struct arena scratch;
    int rc = 0;

    arena_init(&scratch);
    program_build(&scratch, p, has_racks, until_s, &r->x);
    r->lp_w = program_relax(&r->x, scale_of(r->out));
    r->bound_w = fmax(r->bound_w, r->lp_w);
    r->done_w = -1;
    if (!r->x.is_cut_short && !isinf(r->lp_w)) {
        double most_w = reach_near(r), share = most_w < gap_w(r) ? FIRST_TIME : 1;
        while (most_w > r->done_w && !is_met(r) && solve_within(r, most_w, share, e, &rc)) {
            most_w = gap_w(r);
            gather(r, most_w);
            share = 1;
        }
    }
    arena_release(&scratch);
    return rc;
}

int exact_run(struct arena *a, const struct problem *p, const struct plan *start, double time_s,
              struct plan *out, struct err *e)
{
    double until_s = clock_stopwatch_s() + time_s;
    struct plan best = *start;
    struct exact_search r = { .arena = a, .out = &best, .bound_w = start->bound_w };
    int rc = 0;

    if (start->bound_w > start->cost_w + SAME * scale_of(start))
        r.bound_w = -INFINITY;    // the start says that it does not hold: no proof can rest on it
    if (!is_met(&r) && p->n_jobs + p->n_gpus <= SIZE_MOST)
        rc = run_with(&r, p, false, until_s, e);
    if (rc == 0 && r.needs_racks && !is_met(&r))
        rc = run_with(&r, p, true, until_s, e);
    *out = *r.out;
    out->bound_w = fmin(r.bound_w, out->cost_w);
    free(r.pool.columns);
    return rc < 0 ? rc : is_met(&r);
}
