/* references.c - what others do, on the same instances: the per-GPU integer program, Gavel's
 * linear program with sharing, POP's partition, and greedy insertion.
 */
#include "bench/optimize.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/rng.h"
#include "bench/bench.h"
#include "optimize/model/plan.h"
#include "optimize/search/assignment.h"
#include "optimize/prices/lp.h"
#include "optimize/exact/mip.h"
#include "optimize/exact/exact.h"
#include "optimize/optimize.h"
#include "optimize/model/problem.h"
#include "optimize/files/problem_make.h"

#define INTEGER_S 20.0    // for CBC on the per-GPU program
#define GAVEL_S 60.0      // for Clp on Gavel's; beyond, it is not tried larger

/* What a reference came to. */
struct reference {
    double objective_w;    // INFINITY: it found nothing
    double seconds;
    int n_columns;       // of its program; 0: it has none
    const char *note;    // NULL: nothing to say
};

/* ---- instances that everybody can express ---- */

static void make(struct arena *a, int n_jobs, int n_gpus, double standing, struct problem *out)
{
    struct make_options o = make_defaults;

    o.n_jobs = n_jobs;
    o.n_gpus = n_gpus;
    o.standing = standing;
    problem_make(a, &o, out);
}

/* Jobs on one GPU each, nobody running, no caps, no power limits, every GPU free. */
static void make_plain(struct arena *a, int n_jobs, int n_gpus, struct problem *out)
{
    int n = 0;

    make(a, n_jobs * 3 / 2, n_gpus, 0, out);    // three in four take one GPU
    for (int j = 0; j < out->n_jobs && n < n_jobs; j++)
        if (out->jobs[j].n_max == 1)
            out->jobs[n++] = out->jobs[j];
    out->n_jobs = n;
    for (int t = 0; t < out->n_types; t++)
        out->types[t].n_limits = 1;
    for (int k = 0; k < out->n_kinds; k++)    // steps are worth what they cost at the default
        out->kinds[k].value_j = problem_best_joules(out, k);
    for (int g = 0; g < out->n_gpus; g++)
        out->gpus[g].may_start = true;
    out->power_cap_w = 0;
    out->rack_cap_w = NULL;
}

/* One or two jobs on one GPU of a type; false: they must not. */
static bool pair_yield(const struct problem *p, int type, int one, int two, struct yield *out)
{
    const struct problem_job *a = &p->jobs[one], *b = &p->jobs[two];
    int kinds[2] = { a->kind, b->kind };

    if (!problem_allows(a, type) || !problem_allows(b, type))
        return false;
    if (one != two && (a->is_exclusive || b->is_exclusive))
        return false;
    return problem_yield(p, type, 0, kinds, one == two ? 1 : 2, out);
}

/* ---- programs, column by column ---- */

struct program {
    double *cost, *value;
    int *start, *row;
    int n, n_values;
    int cap_cost, cap_start, cap_row, cap_value;
    int n_rows;
    double *low, *high;    // (n_rows)
};

static void program_entry(struct program *g, int row, double value)
{
    int n = g->n_values;

    GROW(g->row, g->n_values, g->cap_row);
    GROW(g->value, g->n_values, g->cap_value);
    g->row[n] = row;
    g->value[n] = value;
    g->n_values++;
}

static void program_column(struct program *g, double cost)
{
    GROW(g->cost, g->n, g->cap_cost);
    GROW(g->start, g->n + 1, g->cap_start);
    g->start[g->n] = g->n_values;
    g->cost[g->n++] = cost;
}

static void program_release(struct program *g)
{
    free(g->cost);
    free(g->value);
    free(g->start);
    free(g->row);
}

/* Rows of both programs: for each job, 2 j: it is somewhere or waits (= 1); 2 j + 1: what it holds
 * over its need, and what it misses (>= 1); then one for each GPU, or each type.
 */
static void add_job_entries(struct program *g, const struct problem *p, int job, double low)
{
    program_entry(g, 2 * job, 1);
    if (p->jobs[job].need > 0)
        program_entry(g, 2 * job + 1, low / p->jobs[job].need);
}

static void add_combination(struct program *g, const struct problem *p, int one, int two,
                            const struct yield *y, int place)
{
    program_column(g, y->cost_w);
    add_job_entries(g, p, one, y->held[0].mean);
    if (two != one)
        add_job_entries(g, p, two, y->held[1].mean);
    program_entry(g, 2 * p->n_jobs + place, 1);
}

/* All combinations of one and two jobs on each place, which has the type 'type_of[place]'. */
static void add_combinations(struct program *g, const struct problem *p, const int *type_of,
                             int n_places)
{
    struct yield y;

    for (int one = 0; one < p->n_jobs; one++)
        for (int two = one; two < p->n_jobs; two++)
            for (int i = 0; i < n_places; i++)
                if (pair_yield(p, type_of[i], one, two, &y))
                    add_combination(g, p, one, two, &y, i);
}

/* Waiting, and missing a promise. */
static void add_misses(struct program *g, const struct problem *p)
{
    for (int j = 0; j < p->n_jobs; j++) {
        program_column(g, p->jobs[j].wait_w);
        add_job_entries(g, p, j, p->jobs[j].need);
        program_column(g, p->jobs[j].short_w);
        if (p->jobs[j].need > 0)
            program_entry(g, 2 * j + 1, 1);
    }
}

/* The program of places of which each has a type, and room for so many GPUs' worth of jobs; the
 * last 2 * n_jobs columns are misses.
 */
static void program_make(struct program *g, struct arena *a, const struct problem *p,
                         const int *type_of, const double *room, int n_places)
{
    *g = (struct program){ .n_rows = 2 * p->n_jobs + n_places };
    g->low = ARENA_ARRAY(a, double, (size_t)g->n_rows);
    g->high = ARENA_ARRAY(a, double, (size_t)g->n_rows);
    for (int j = 0; j < p->n_jobs; j++) {
        g->low[2 * j] = g->high[2 * j] = 1;
        g->low[2 * j + 1] = p->jobs[j].need > 0 ? 1 : 0;
        g->high[2 * j + 1] = INFINITY;
    }
    memcpy(g->high + 2 * p->n_jobs, room, (size_t)n_places * sizeof *room);
    add_combinations(g, p, type_of, n_places);
    add_misses(g, p);
    GROW(g->start, g->n + 1, g->cap_start);
    g->start[g->n] = g->n_values;
}

/* ---- a binary for each GPU and combination, as in the paper ---- */

/* CBC's word is a claim: do its rows hold? */
static bool holds(struct arena *a, const struct mip *m, const double *x)
{
    double *sum = ARENA_ARRAY(a, double, (size_t)m->n_rows);

    for (int c = 0; c < m->n_columns; c++) {
        if (x[c] < -1e-6 || (m->is_integer[c] && fabs(x[c] - round(x[c])) > 1e-5))
            return false;
        for (int i = m->start[c]; i < m->start[c + 1]; i++)
            sum[m->row[i]] += m->value[i] * x[c];
    }
    for (int r = 0; r < m->n_rows; r++)
        if (sum[r] < m->row_low[r] - 1e-5 || sum[r] > m->row_high[r] + 1e-5)
            return false;
    return true;
}

static const char *integer_note(struct arena *a, const struct mip *m, const struct mip_result *r)
{
    if (r->status == MIP_NONE)
        return "no plan in 20 s";
    if (!holds(a, m, r->x))
        return "its plan does not hold";
    return r->status == MIP_OPTIMAL ? "optimal, it says" : "not proven in 20 s";
}

static int solve_integer(const struct problem *p, struct reference *out, struct err *e)
{
    struct program g;
    struct mip_options o = { .time_s = INTEGER_S, .is_as_shipped = true };
    struct mip_result found;
    struct arena a;

    arena_init(&a);
    int *type_of = ARENA_ARRAY(&a, int, (size_t)p->n_gpus);
    double *room = ARENA_ARRAY(&a, double, (size_t)p->n_gpus);
    for (int i = 0; i < p->n_gpus; i++) {
        type_of[i] = p->gpus[i].type;
        room[i] = 1;
    }
    program_make(&g, &a, p, type_of, room, p->n_gpus);
    bool *is_integer = ARENA_ARRAY(&a, bool, (size_t)g.n);
    double *upper = ARENA_ARRAY(&a, double, (size_t)g.n);
    for (int c = 0; c < g.n; c++) {
        is_integer[c] = c < g.n - 2 * p->n_jobs;
        upper[c] = 1;
    }
    struct mip m = { g.n_rows, g.n,   g.start,    g.row, g.value,
                     g.cost,   upper, is_integer, g.low, g.high };
    int rc = mip_solve(&a, &m, &o, &found, e);
    *out = (struct reference){ .objective_w = found.objective + problem_base_w(p),
                               .seconds = found.seconds,
                               .n_columns = g.n,
                               .note = rc == 0 ? integer_note(&a, &m, &found) : NULL };
    program_release(&g);
    arena_release(&a);
    return rc;
}

/* ---- shares of time for each job, pair and type, as Gavel ---- */

static int solve_gavel(const void *self, void *to, struct err *e)
{
    const struct problem *p = self;
    struct reference *out = to;
    struct program g;
    struct arena a;
    int type_of[64];
    double room[64] = { 0 };

    arena_init(&a);
    double began_s = clock_stopwatch_s();
    for (int t = 0; t < p->n_types; t++)
        type_of[t] = t;
    for (int i = 0; i < p->n_gpus; i++)
        room[p->gpus[i].type]++;
    program_make(&g, &a, p, type_of, room, p->n_types);
    struct lp *lp = lp_create();
    int *empty = ARENA_ARRAY(&a, int, (size_t)g.n_rows + 1);
    lp_add_rows(lp, &(struct lp_lines){ g.n_rows, g.low, g.high, NULL, empty, empty, g.low });
    double *least = ARENA_ARRAY(&a, double, (size_t)g.n);
    double *most = ARENA_ARRAY(&a, double, (size_t)g.n);
    for (int c = 0; c < g.n; c++)
        most[c] = INFINITY;
    lp_add_columns(lp, &(struct lp_lines){ g.n, least, most, g.cost, g.start, g.row, g.value });
    bool is_solved = lp_solve(lp, LP_PRIMAL);
    *out = (struct reference){ .objective_w = lp_cost(lp) + problem_base_w(p),
                               .seconds = clock_stopwatch_s() - began_s,
                               .n_columns = g.n };
    return is_solved ? 0 : err_set(e, EDOM, "Clp did not solve Gavel's program");
}

/* ---- POP: cut at random, plan the parts ---- */

enum { N_PARTS = 8 };

/* GPUs by whole racks, so that caps and nodes stay what they are; jobs one by one. */
static void cut(struct arena *a, const struct problem *p, struct problem *parts)
{
    struct rng rng;
    int *part_of = ARENA_ARRAY(a, int, (size_t)p->n_racks);

    rng_init(&rng, 1, "bench-pop");
    for (int i = 0; i < N_PARTS; i++) {
        parts[i] = *p;
        parts[i].gpus = ARENA_ARRAY(a, struct problem_gpu, (size_t)p->n_gpus);
        parts[i].jobs = ARENA_ARRAY(a, struct problem_job, (size_t)p->n_jobs);
        parts[i].n_gpus = parts[i].n_jobs = 0;
    }
    for (int r = 0; r < p->n_racks; r++) {    // as many to each part, in a random order
        int other = (int)rng_below(&rng, (uint64_t)r + 1);
        part_of[r] = part_of[other];
        part_of[other] = r % N_PARTS;
    }
    for (int g = 0; g < p->n_gpus; g++) {
        struct problem *q = &parts[part_of[p->gpus[g].rack]];
        q->gpus[q->n_gpus++] = p->gpus[g];
    }
    for (int j = 0; j < p->n_jobs; j++) {
        struct problem *q = &parts[rng_below(&rng, N_PARTS)];
        q->jobs[q->n_jobs++] = p->jobs[j];
    }
}

static int solve_pop(const struct problem *p, struct reference *out, struct err *e)
{
    struct optimize_options how = optimize_defaults;
    struct problem parts[N_PARTS];
    struct bench_plan found;
    struct arena a;
    int rc = 0;

    arena_init(&a);
    cut(&a, p, parts);
    *out = (struct reference){ .note = "8 parts, one after the other" };
    how.exact = exact_run;
    how.method = METHOD_FAST;
    how.time_s = 1.0 / N_PARTS;
    for (int i = 0; i < N_PARTS && rc == 0; i++) {
        rc = bench_plan(&parts[i], &how, &found, e);
        out->objective_w += found.cost_w;
        out->seconds += found.seconds;
    }
    arena_release(&a);
    return rc;
}

/* ---- greedy: everybody stays, newcomers one by one where they cost least ---- */

static int solve_greedy(const void *self, void *to, struct err *e)
{
    const struct problem *p = self;
    struct reference *out = to;
    struct plan x;
    struct arena a;

    arena_init(&a);
    double began_s = clock_stopwatch_s();
    struct assignment *d = assignment_create(p);
    assignment_lay_present(d);
    for (int j = 0; j < p->n_jobs; j++)
        assignment_insert(d, j);
    double seconds = clock_stopwatch_s() - began_s;
    assignment_plan(d, &a, &x);
    *out = (struct reference){ .objective_w = x.cost_w + problem_base_w(p), .seconds = seconds };
    return plan_check(&a, p, &x, e);
}

/* ---- beside ours ---- */

static json_t *tell(const char *name, const struct problem *p, const struct reference *o,
                    const struct bench_plan *ours)
{
    return json_pack("{s:s, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", name,
                     "jobs", p->n_jobs, "gpus", p->n_gpus, "columns",
                     o->n_columns > 0 ? json_integer(o->n_columns) : json_null(), "seconds",
                     json_number_or_null(o->seconds), "objective",
                     json_number_or_null(o->objective_w), "gap_percent",
                     json_number_or_null(bench_above(o->objective_w, ours->bound_w)),
                     "ours_seconds", json_number_or_null(ours->seconds), "ours_objective",
                     json_number_or_null(ours->cost_w), "ours_gap_percent",
                     json_number_or_null(bench_above(ours->cost_w, ours->bound_w)), "bound",
                     json_number_or_null(ours->bound_w), "note", json_text_or_null(o->note));
}

static int in_child(bench_child_f *f, const struct problem *p, double limit_s,
                    struct reference *out, struct err *e)
{
    double ignored;

    return bench_child(f, p, limit_s, out, sizeof *out, &ignored, e);
}

static int run_gavel(const struct problem *p, struct reference *out, struct err *e)
{
    int rc = in_child(solve_gavel, p, GAVEL_S, out, e);

    if (rc == -ETIMEDOUT) {
        *out = (struct reference){ .objective_w = INFINITY, .seconds = INFINITY, .note = e->text };
        return 0;
    }
    return rc;
}

static int run_greedy(const struct problem *p, struct reference *out, struct err *e)
{
    return in_child(solve_greedy, p, 0, out, e);
}

/* Who plans which instance, and what we have for it. */
static const struct contest {
    const char *name, *title;
    int n_jobs, n_gpus;
    bool is_plain;      // jobs that everybody can express
    double standing;    // share of the jobs that run
    enum optimize_method ours;
    double ours_s;
    int (*run)(const struct problem *p, struct reference *out, struct err *e);
} contests[] = {
    { "per-gpu", "the per-GPU integer program", 50, 30, true, 0, METHOD_AUTO, 0.5, solve_integer },
    { "gavel", "Gavel's linear program, 256 jobs", 256, 182, true, 0, METHOD_FAST, 1, run_gavel },
    { "gavel", "Gavel's linear program, 512 jobs", 512, 365, true, 0, METHOD_FAST, 1, run_gavel },
    { "gavel", "Gavel's linear program, 1024 jobs", 1024, 731, true, 0, METHOD_FAST, 1, run_gavel },
    { "pop", "POP's partition", 14000, 10000, false, 0, METHOD_FAST, 1, solve_pop },
    { "greedy", "greedy insertion", 14000, 10000, false, 0.6, METHOD_FAST, 1, run_greedy },
};

enum { N_CONTESTS = sizeof contests / sizeof *contests };

bool bench_references_know(struct slice name)
{
    bool is_known = slice_is(name, "references");

    for (int i = 0; i < N_CONTESTS && !is_known; i++)
        is_known = slice_is(name, contests[i].name);
    return is_known;
}

static int run_contest(const struct contest *c, struct reference *o, json_t *list, struct err *e)
{
    struct optimize_options how = optimize_defaults;
    struct bench_plan ours;
    struct problem p;
    struct arena a;

    bench_tell("references: %s", c->title);
    arena_init(&a);
    if (c->is_plain)
        make_plain(&a, c->n_jobs, c->n_gpus, &p);
    else
        make(&a, c->n_jobs, c->n_gpus, c->standing, &p);
    how.exact = exact_run;
    how.method = c->ours;
    how.time_s = c->ours_s;
    int rc = bench_plan(&p, &how, &ours, e);
    if (rc == 0)
        rc = c->run(&p, o, e);
    if (rc == 0)
        json_array_append_new(list, tell(c->name, &p, o, &ours));
    arena_release(&a);
    return rc;
}

/* Who took too long is not tried on a larger instance. */
int bench_references(const char *rows, json_t *list, struct err *e)
{
    const char *late = "";
    int rc = 0;

    for (int i = 0; i < N_CONTESTS && rc == 0; i++) {
        const struct contest *c = &contests[i];
        struct reference o = { 0 };

        if ((!bench_wants(rows, "references") && !bench_wants(rows, c->name)) ||
            strcmp(c->name, late) == 0)
            continue;
        rc = run_contest(c, &o, list, e);
        late = isinf(o.seconds) ? c->name : late;
    }
    return rc;
}
