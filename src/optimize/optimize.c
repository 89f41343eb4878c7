#include "optimize/optimize.h"

#include <errno.h>
#include <math.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "optimize/model/plan.h"
#include "optimize/model/problem.h"
#include "optimize/prices/columns.h"
#include "optimize/prices/kept.h"
#include "optimize/prices/master.h"
#include "optimize/prices/prices.h"
#include "optimize/search/assignment.h"
#include "optimize/search/search.h"

/* Problems that are solved to proven optimality when there is time. */
#define EXACT_JOBS_MOST 150

/* Less time for each pair of jobs, in seconds, and search makes more of it: 50 jobs want 0.4 s, 140
 * want 3.
 */
#define EXACT_PAIR_S 1.6e-4

/* An exact search that was given no time ends after this long. */
#define EXACT_S 300.0
#define EXACT_AUTO_S 10.0    // where nobody asked for it

/* Parts of the time: until the first ascent must end, until those on more bins must, until the
 * class program must; and of what search and exact search have together.
 */
#define ASCENT_SHARE 0.45
#define REFINE_SHARE 0.30
#define PRICES_SHARE 0.8
#define SEARCH_SHARE 0.6
#define ROUND_SHARE 0.9           // after that rounding is not tried in another way
#define PROOF_SEARCH_SHARE 0.1    // where a proof was asked for, and is likely

/* Patterns are listed if that takes no more than this part of the time, at so long each. */
#define LISTING_SHARE 0.25
#define PATTERN_S 3e-7
#define CLASSES_A_KIND 1.6    // some jobs are restricted or exclusive
#define FOUR_FOR_THREE 2.5    // patterns of four that fit, for one of three

/* A job goes elsewhere for more than this. */
#define SETTLED_W 1e-6

/* A bound this close to the cost, as a share of it, is a proof. */
#define PROVEN 1e-6

const struct optimize_options optimize_defaults = { .method = METHOD_AUTO, .seed = 1 };

struct pipeline {
    struct arena *arena;
    const struct problem *p;
    const struct optimize_options *o;
    struct optimize_report *report;
    struct clock clock;
    double start_s;
    int threads;
    struct assignment *spare;    // an assignment that is not the best, or NULL
};

static double now_s(const struct pipeline *r)
{
    return clock_now_s(&r->clock) - r->start_s;
}

/* Search steps that suit the size: where more of them stop paying. */
static long suitable_nodes(const struct problem *p)
{
    return 60000 + 12L * p->n_jobs;
}

static struct prices *find_prices(struct pipeline *r)
{
    struct prices_options o = { .wants_vertex = true, .threads = r->threads };
    double t_s = clock_stopwatch_s();

    if (r->o->time_s > 0) {
        o.clock = &r->clock;
        o.ascent_until_s = r->start_s + ASCENT_SHARE * r->o->time_s;
        o.refine_until_s = r->start_s + REFINE_SHARE * r->o->time_s;
        o.until_s = r->start_s + PRICES_SHARE * r->o->time_s;
    }
    struct prices *u = prices_find(r->p, &o);
    r->report->lp_bound_w = u->bound_w;
    r->report->lp_s = clock_stopwatch_s() - t_s;
    if (u->master) {
        r->report->lp_rows = u->master->n_rows;
        r->report->lp_columns = u->master->n_columns;
        r->report->lp_rounds = u->master->n_rounds;
    }
    return u;
}

static bool wants_exact(const struct pipeline *r)
{
    if (!r->o->exact || problem_has_rules(r->p) || problem_has_doubt(r->p))
        return false;    // its columns know neither
    if (r->o->method != METHOD_AUTO)
        return r->o->method == METHOD_EXACT;
    double least_s = EXACT_PAIR_S * r->p->n_jobs * r->p->n_jobs;
    return r->p->n_jobs <= EXACT_JOBS_MOST && r->o->nodes == 0 &&
           (r->o->time_s <= 0 || (r->o->time_s >= least_s && now_s(r) < r->o->time_s));
}

static double search_share(const struct pipeline *r)
{
    if (!wants_exact(r))
        return 1;
    return r->o->method == METHOD_EXACT && r->p->n_jobs <= EXACT_JOBS_MOST ? PROOF_SEARCH_SHARE
                                                                           : SEARCH_SHARE;
}

static void search(struct pipeline *r, struct assignment *d, const struct prices *u)
{
    struct search_options o = search_defaults;
    double t_s = clock_stopwatch_s();

    o.seed = r->o->seed;
    o.threads = r->threads;
    bool is_timed = r->o->time_s > 0;
    o.nodes = r->o->method == METHOD_STANDING ? suitable_nodes(r->p) : r->o->nodes;
    if (o.nodes <= 0 && !is_timed)
        o.nodes = suitable_nodes(r->p);
    if (is_timed) {
        o.clock = &r->clock;
        o.until_s = r->start_s + search_share(r) * r->o->time_s;
    }
    r->report->nodes = search_run(d, u, &o);
    r->report->search_s = clock_stopwatch_s() - t_s;
}

/* Everybody where he is, newcomers one by one where they cost least. */
static struct assignment *standing_assignment(const struct problem *p)
{
    struct assignment *d = assignment_create(p);

    assignment_lay_present(d);
    for (int j = 0; j < p->n_jobs; j++)
        assignment_insert(d, j);
    return d;
}

/* A rounded vertex, or the tightest patterns; both where the vertex was not reached, and time is
 * left.
 */
static struct assignment *begin(struct pipeline *r, const struct prices *u)
{
    double t_s = clock_stopwatch_s();
    struct assignment *d = assignment_create(r->p);
    struct reduced_costs *reduced = reduced_costs_create(d, u);

    if (u->master)
        round_vertex(u, reduced, d);
    else
        tight_place(u, reduced, d);
    bool is_early = r->o->time_s <= 0 || now_s(r) < ROUND_SHARE * r->o->time_s;
    if (u->master && !u->master->is_done && is_early) {
        struct assignment *other = assignment_like(d);
        tight_place(u, reduced, other);
        bool is_better = assignment_cost(other) < assignment_cost(d);
        r->spare = is_better ? d : other;    // one of them owns the tables of both
        d = is_better ? other : d;
    }
    reduced_costs_destroy(reduced);
    r->report->round_s = clock_stopwatch_s() - t_s;
    return d;
}

/* Each job once more where it costs least, as long as there is time: chance may have passed
 * somebody over.
 */
static void settle_each(const struct pipeline *r, struct assignment *d)
{
    const struct problem *p = d->problem;

    for (int j = 0; j < p->n_jobs; j++) {
        double before_w = assignment_cost(d);
        if (r->o->time_s > 0 && now_s(r) >= r->o->time_s)
            return;
        if (!p->jobs[j].name || p->jobs[j].is_fixed)
            continue;
        assignment_mark(d);
        bool is_out = d->jobs[j].n_gpus == 0 || assignment_take(d, j);
        if (is_out && assignment_insert(d, j) && assignment_cost(d) < before_w - SETTLED_W)
            assignment_keep(d);
        else
            assignment_undo(d);
    }
}

/* The assignment as an answer, for the judge. */
static int answer(struct pipeline *r, const char *method, struct assignment *d, struct plan *out,
                  struct err *e)
{
    assignment_plan(d, r->arena, out);
    assignment_destroy(d);
    r->report->method = method;
    return plan_check(r->arena, r->p, out, e);
}

/* Prices, rounding, search. */
static int plan_fast(struct pipeline *r, struct plan *out, struct prices *u, struct err *e)
{
    struct assignment *d = begin(r, u);

    exchange_homes(d);
    search(r, d, u);
    exchange_homes(d);
    settle_each(r, d);
    int rc = answer(r, "fast", d, out, e);
    assignment_destroy(r->spare);
    return rc;
}

/* Is there time to list all patterns, and to use them? */
static bool has_time(const struct pipeline *r)
{
    double n_settings = 0, k = r->p->n_kinds;

    for (int t = 0; t < r->p->n_types; t++)
        n_settings += r->p->types[t].n_limits;
    double n = r->p->theta < 2 ? k : k * k / 2;
    if (r->p->theta > 2) {
        k *= CLASSES_A_KIND;
        n = k * k * k / 6 * (r->p->theta > 3 ? FOUR_FOR_THREE : 1);
    }
    return r->o->time_s <= 0 || n * n_settings * PATTERN_S < LISTING_SHARE * r->o->time_s;
}

/* Search alone, from where everybody stands: without prices, and without a bound. */
static int plan_hurried(struct pipeline *r, struct plan *out, struct err *e)
{
    struct assignment *d = standing_assignment(r->p);

    search(r, d, NULL);
    r->report->lp_bound_w = -INFINITY;
    return answer(r, "hurried", d, out, e);
}

static bool may_stand(const struct pipeline *r)
{
    return r->o->method == METHOD_STANDING && r->o->kept && !kept_is_empty(r->o->kept);
}

/* Newcomers by kept prices, then a few steps around them, or a search as long as there is time. */
static int plan_standing(struct pipeline *r, struct plan *out, struct err *e)
{
    struct prices_options o = { .kept = r->o->kept, .threads = r->threads };
    struct prices *u = prices_find(r->p, &o);
    struct assignment *d = assignment_create(r->p);
    struct reduced_costs *reduced = reduced_costs_create(d, u);

    assignment_lay_present(d);
    assignment_insert_rest(d, u, reduced, NULL);
    if (r->o->time_s > 0)
        search(r, d, u);
    else
        search_around(d, u, reduced, r->o->seed, (int)r->o->nodes);
    reduced_costs_destroy(reduced);
    exchange_homes(d);
    r->report->lp_bound_w = u->bound_w;
    prices_destroy(u);
    return answer(r, "standing", d, out, e);
}

/* Go on from 'out' until it is proven or time is up. A child that cannot be had changes
 * nothing.
 */
static void plan_exact(struct pipeline *r, struct plan *out)
{
    double time_s = r->o->method == METHOD_EXACT ? EXACT_S : EXACT_AUTO_S;
    struct plan start = *out;
    double t_s = clock_stopwatch_s();
    struct err ignored = { 0 };

    start.bound_w = r->report->bound_w;
    if (r->o->time_s > 0)
        time_s = fmax(r->o->time_s - now_s(r), 0.05);
    int proven = r->o->exact(r->arena, r->p, &start, time_s, out, &ignored);
    if (proven < 0)
        log_warn("no exact search: %s", ignored.text);
    else
        r->report->method = "exact";
    r->report->bound_w = out->bound_w;
    r->report->status = proven > 0 ? STATUS_OPTIMAL : STATUS_FEASIBLE;
    r->report->exact_s = clock_stopwatch_s() - t_s;
}

static int make_plan(struct pipeline *r, struct plan *out, struct err *e)
{
    bool stands = may_stand(r);
    struct prices *u = stands || !has_time(r) ? NULL : find_prices(r);
    int rc = u        ? plan_fast(r, out, u, e)
             : stands ? plan_standing(r, out, e)
                      : plan_hurried(r, out, e);

    if (rc == 0 && u && r->o->kept)
        kept_take(r->o->kept, u);
    if (rc < 0) {
        log_error("a plan did not pass its check: %s", e->text);
        rc = answer(r, "greedy", standing_assignment(r->p), out, e);    // what always exists
    }
    r->report->bound_w = r->report->lp_bound_w;
    if (rc == 0 && u && wants_exact(r))
        plan_exact(r, out);
    prices_destroy(u);
    return rc;
}

int optimize_run(struct arena *a, const struct problem *p, const struct optimize_options *o,
                 struct plan *out, struct optimize_report *report, struct err *e)
{
    struct pipeline r = { .arena = a, .p = p, .o = o, .report = report, .threads = o->threads };
    double t_s = clock_stopwatch_s();

    int rc = problem_check(p, e);
    if (rc < 0)
        return rc;
    double base_w = problem_base_w(p);
    *report = (struct optimize_report){ 0 };
    r.clock = o->clock ? *o->clock : clock_real();
    r.start_s = clock_now_s(&r.clock);
    if (r.threads <= 0)
        r.threads = 2;
    rc = make_plan(&r, out, e);
    double gap_w = out->cost_w - report->bound_w, same_w = PROVEN * fabs(out->cost_w + base_w);
    if (gap_w < -same_w)
        log_error("a bound of %g W is above the cost of %g W", report->bound_w, out->cost_w);
    else if (gap_w <= same_w)
        report->status = STATUS_OPTIMAL;
    out->bound_w = report->bound_w;
    report->cost_w = out->cost_w + base_w;
    report->bound_w += base_w;
    report->lp_bound_w += base_w;
    report->seconds = clock_stopwatch_s() - t_s;
    return rc;
}
