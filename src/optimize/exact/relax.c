/* The linear relaxation of the exact program, by column generation: its duals and its bound. */
#include "optimize/exact/program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "optimize/exact/mip.h"
#include "optimize/prices/lp.h"

/* A column is missing when its reduced cost is below minus this, watts. */
#define MISSING_W 1e-6

/* Missing columns taken in one round: on a group of many GPUs; on one GPU, or of a gang. */
#define ROUND_TYPE 80
#define ROUND_ONE 4

/* Who is fixed does not wait: it would cost so many times all watts. */
#define FIXED_TIMES 10

/* Columns count as used from here on, and a row is worth adding when it lacks this much. */
#define USED 1e-6
#define LACK_LEAST 0.01

/* A unit with less rest is of no use: its row would have the inverse of that in it. */
#define REST_LEAST 0.02

/* Units that are tried: what a part holds, by 1 .. this. */
#define UNIT_PARTS 6

struct relaxation {
    struct exact_program *x;
    struct lp *lp;
    struct column_list pool;    // columns of the program, in its order
    int n_choices;              // the first of them, which are there from the start
    double *best_dual;          // (n_rows) those of the best bound
};

/* A linear program with the present rows, and no columns yet. */
static void open_lp(struct relaxation *m)
{
    const struct exact_program *x = m->x;

    m->lp = lp_create();
    lp_add_rows(m->lp,
                &(struct lp_lines){ .n = x->n_rows, .lower = x->row_low, .upper = x->row_high });
}

/* Columns of the pool that the program does not have yet. */
static void add_columns(struct relaxation *m)
{
    struct mip a;

    program_matrix(m->x, &m->pool, lp_n_columns(m->lp), &a);
    lp_add_columns(m->lp, &(struct lp_lines){ a.n_columns, NULL, NULL, a.cost, a.start, a.row,
                                              a.value });    // rows say how many at most
}

static struct column_filter filter_best(struct relaxation *m, int best)
{
    return (struct column_filter){ -MISSING_W, 0, &m->pool, m->pool.n, best, 8 * best };
}

/* Sum of dual * right hand side. */
static double dual_w(const struct exact_program *x)
{
    double sum = 0;

    for (int r = 0; r < x->n_rows; r++)
        if (x->dual[r] != 0)
            sum += x->dual[r] * (x->dual[r] > 0 ? x->row_low[r] : x->row_high[r]);
    return sum;
}

/* What choices' reduced costs take off the bound; 0 at an optimum. */
static double price_choices(const struct relaxation *m)
{
    double sum = 0;

    for (int i = 0; i < m->n_choices; i++) {
        double reduced_w = m->pool.columns[i].cost_w;
        int n = program_entries(m->x, &m->pool.columns[i]);
        for (int k = 0; k < n; k++)
            reduced_w -= m->x->dual[m->x->entry_row[k]] * m->x->entry[k];
        sum += fmin(reduced_w, 0);
    }
    return sum;
}

/* Add what is missing at the present duals; returns the bound that these give. */
static double price(struct relaxation *m)
{
    struct exact_program *x = m->x;
    double bound_w = dual_w(x) + price_choices(m);

    for (int i = 0; i < x->n_groups; i++) {
        struct column_filter w =
            filter_best(m, x->groups[i].level == GROUP_GPU ? ROUND_ONE : ROUND_TYPE);
        program_single(x, i, &w);
        bound_w += x->groups[i].n * w.least_w;
        filter_crop(&w);
    }
    for (int j = 0; j < x->p->n_jobs; j++) {
        struct column_filter w = filter_best(m, ROUND_ONE);
        program_gang(x, j, &w);
        bound_w += w.least_w;
        filter_crop(&w);
    }
    return bound_w - MISSING_W * (x->p->n_gpus + 2 * x->p->n_jobs);
}

/* ---- rounding what spread jobs hold ---- */

/* The promise of a spread job counted in this unit; false: that is of no use. */
static bool promise_make(double unit, struct promise_row *out)
{
    double rest = 1 / unit - floor(1 / unit);

    *out = (struct promise_row){ -1, unit, rest, ceil(1 / unit), 1 / (unit * rest) };
    return rest >= REST_LEAST;
}

/* By how much the solution lacks what a row for the job's promise asks for. */
static double lack_of(const struct relaxation *m, int job, const struct promise_row *h)
{
    const double *value = lp_values(m->lp), need = m->x->p->jobs[job].need;
    double lack = 0;

    for (int i = 0; i < lp_n_columns(m->lp); i++) {
        const struct exact_column *c = &m->pool.columns[i];
        if (value[i] < USED)
            continue;
        for (int k = 0; c->form == COLUMN_SINGLE && k < c->n; k++)
            if (c->residents[k].job == job)    // never a class's
                lack -= value[i] * promise_part(h, c->low[k], need);
        if (c->job == job && c->form == COLUMN_PARTS)
            lack += value[i] * h->all;
        if (c->job == job && c->form == COLUMN_SHORT)
            lack -= value[i] * h->missed;
    }
    return lack;
}

/* The unit that the solution lacks most by, of those that its parts hold, and of parts of these. */
static bool round_job(struct relaxation *m, int job)
{
    const double *value = lp_values(m->lp), need = m->x->p->jobs[job].need;
    struct promise_row best = { 0 };
    double most = LACK_LEAST;

    for (int i = 0; i < lp_n_columns(m->lp); i++) {
        const struct exact_column *c = &m->pool.columns[i];
        for (int k = 0; c->form == COLUMN_SINGLE && value[i] > USED && k < c->n; k++)
            for (int part = 1; c->residents[k].job == job && part <= UNIT_PARTS; part++) {
                struct promise_row h;
                if (c->low[k] >= need || !promise_make(c->low[k] / need / part, &h))
                    continue;
                double lack = lack_of(m, job, &h);
                if (lack > most) {
                    most = lack;
                    best = h;
                }
            }
    }
    if (best.unit > 0)
        program_add_promise(m->x, job, best);
    return best.unit > 0;
}

/* Rows that cut the solution off; then all columns again. False: there are none. */
static bool round_all(struct relaxation *m)
{
    bool is_any = false;

    for (int j = 0; j < m->x->p->n_jobs; j++)
        if (m->x->n_promises[j] > 0 && m->x->n_promises[j] < PROMISE_ROWS_MAX)
            is_any |= round_job(m, j);
    if (!is_any)
        return false;
    lp_destroy(m->lp);
    open_lp(m);
    return true;
}

/* ---- the whole ---- */

/* Go round until no column is missing. */
static bool generate(struct relaxation *m, double *bound_w)
{
    struct exact_program *x = m->x;

    while (!x->is_cut_short) {
        int n = m->pool.n;
        add_columns(m);
        lp_limit(m->lp, fmax(x->until_s - clock_stopwatch_s(), 0.001));
        if (!lp_solve(m->lp, LP_PRIMAL))
            return false;
        program_take_duals(x, lp_duals(m->lp));
        double w = price(m);
        if (w > *bound_w && !x->is_cut_short) {
            *bound_w = w;
            memcpy(m->best_dual, x->dual, (size_t)x->n_rows * sizeof(double));
        }
        if (m->pool.n == n)
            return true;
    }
    return false;
}

double program_relax(struct exact_program *x, double scale_w)
{
    struct relaxation m = { .x = x };
    double bound_w = -INFINITY;

    m.best_dual = ARENA_ARRAY(x->arena, double, (size_t)x->cap_rows);
    program_choices(x, FIXED_TIMES * scale_w, &m.pool);
    m.n_choices = m.pool.n;
    open_lp(&m);
    while (generate(&m, &bound_w) && round_all(&m))
        continue;
    program_take_duals(x, m.best_dual);
    lp_destroy(m.lp);
    free(m.pool.columns);
    return bound_w;
}
