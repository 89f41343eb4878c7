#include "optimize/optimize.h"

#include <errno.h>
#include <math.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "optimize/exact/exact.h"
#include "optimize/model/plan.h"
#include "optimize/model/problem.h"
#include "optimize/prices/columns.h"
#include "optimize/prices/kept.h"
#include "optimize/prices/master.h"
#include "optimize/prices/prices.h"
#include "optimize/search/desk.h"
#include "optimize/search/exchange.h"
#include "optimize/search/round.h"
#include "optimize/search/search.h"

/* Problems that are solved to proven optimality when there is time. */
#define EXACT_JOBS_MOST 150

/* An exact search that was given no time ends after this long. */
#define EXACT_S 300.0
#define EXACT_AUTO_S 10.0    // where nobody asked for it

/* Parts of the time: until the ascent ends, until the class program does; and of what search and
 * exact search have together.
 */
#define ASCENT_SHARE 0.35
#define PRICES_SHARE 0.8
#define SEARCH_SHARE 0.4

/* A bound this close to the cost, as a share of it, is a proof. */
#define PROVEN 1e-6

/* Kept prices serve for so many decisions at most, and while the gap is no larger than this part of
 * the cost, or than so many times what it was when they were found.
 */
#define KEPT_AGE_MOST 256
#define KEPT_GAP 0.006
#define KEPT_GAP_GROWS 2.0

const struct optimize_options optimize_defaults = { .method = METHOD_AUTO, .seed = 1 };

struct run {
    struct arena *arena;
    const struct problem *p;
    const struct optimize_options *o;
    struct optimize_report *report;
    struct clock clock;
    double start_s;
    int threads;
};

static double now_s(const struct run *r)
{
    return clock_now_s(&r->clock) - r->start_s;
}

/* Search steps that suit the size: where more of them stop paying. */
static long suitable_nodes(const struct problem *p)
{
    return 60000 + 12L * p->n_jobs;
}

static struct prices *find_prices(struct run *r)
{
    struct prices_options o = { .wants_vertex = true, .threads = r->threads };
    double t_s = clock_stopwatch_s();

    if (r->o->time_s > 0) {
        o.clock = &r->clock;
        o.ascent_until_s = r->start_s + ASCENT_SHARE * r->o->time_s;
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

static bool wants_exact(const struct run *r)
{
    if (!r->o->exact || r->o->method != METHOD_AUTO)
        return r->o->exact && r->o->method == METHOD_EXACT;
    return r->p->n_jobs <= EXACT_JOBS_MOST && r->o->nodes == 0 &&
           (r->o->time_s <= 0 || now_s(r) < r->o->time_s);
}

static void search(struct run *r, struct desk *d, const struct prices *u)
{
    struct search_options o = search_defaults;
    struct search_report done;
    double t_s = clock_stopwatch_s();

    o.seed = r->o->seed;
    o.threads = r->threads;
    bool is_timed = r->o->time_s > 0, is_proof_likely = r->p->n_jobs <= EXACT_JOBS_MOST;
    o.nodes = r->o->method == METHOD_STANDING ? suitable_nodes(r->p) : r->o->nodes;
    if (o.nodes <= 0 && (!is_timed || (r->o->method == METHOD_EXACT && is_proof_likely)))
        o.nodes = suitable_nodes(r->p);
    if (is_timed) {
        double share = wants_exact(r) ? SEARCH_SHARE : 1;
        o.clock = &r->clock;
        o.until_s = r->start_s + share * r->o->time_s;
    }
    o.chains = r->o->method == METHOD_QUICK ? 1 : 0;
    search_run(d, u, &o, &done);
    r->report->nodes = done.nodes;
    r->report->search_s = clock_stopwatch_s() - t_s;
}

/* Everybody where he is, newcomers one by one where they cost least: now, or by prices. */
static void insert_all(struct desk *d, const struct prices *u, const struct desk_guide *guide)
{
    desk_lay_present(d);
    d->guide = guide;
    d->dues_w = u ? u->job_w : NULL;
    for (int j = 0; j < d->problem->n_jobs; j++)
        desk_insert(d, j);
    d->guide = NULL;
    d->dues_w = NULL;
}

static struct desk *standing_desk(const struct problem *p)
{
    struct desk *d = desk_create(p);

    insert_all(d, NULL, NULL);
    return d;
}

static struct desk *cheaper(struct desk *a, struct desk *b)
{
    bool is_a = desk_cost(a) <= desk_cost(b);

    desk_destroy(is_a ? b : a);
    return is_a ? a : b;
}

/* The best of rounding (or, without a vertex, of inserting by prices) and of leaving everybody where
 * he is.
 */
static struct desk *begin(struct run *r, const struct prices *u)
{
    double t_s = clock_stopwatch_s();
    struct desk *standing = standing_desk(r->p), *d = desk_create(r->p);
    struct desk_guide *guide = desk_guide_create(standing, u);

    if (u->master)
        round_vertex(u, guide, d);
    else
        insert_all(d, u, guide);
    desk_guide_destroy(guide);
    d = cheaper(d, standing);
    r->report->rounded_w = desk_cost(d);
    r->report->round_s = clock_stopwatch_s() - t_s;
    return d;
}

/* Prices, rounding, search: an answer that has passed the judge. */
static int plan_fast(struct run *r, struct plan *out, struct prices *u, struct err *e)
{
    struct desk *d = begin(r, u);

    exchange_homes(d);
    search(r, d, u);
    exchange_homes(d);
    desk_plan(d, r->arena, out);
    desk_destroy(d);
    r->report->method = "fast";
    return plan_check(r->arena, r->p, out, e);
}

static double gap_of(const struct run *r, const struct plan *x, double bound_w)
{
    double all_w = fabs(x->cost_w + problem_base_w(r->p));

    return all_w > 0 ? fmax(x->cost_w - bound_w, 0) / all_w : 0;
}

/* Do the kept prices still serve? */
static bool may_stand(const struct run *r)
{
    const struct kept_prices *k = r->o->kept;

    return r->o->method == METHOD_STANDING && k && !isnan(kept_gap(k)) &&
           kept_age(k) < KEPT_AGE_MOST;
}

/* Newcomers by kept prices, then a few steps around them. */
static int plan_standing(struct run *r, struct plan *out, struct err *e)
{
    struct prices_options o = { .kept = r->o->kept, .threads = r->threads };
    struct prices *u = prices_find(r->p, &o);
    struct desk *d = desk_create(r->p);
    struct desk_guide *guide = desk_guide_create(d, u);

    insert_all(d, u, guide);
    desk_guide_destroy(guide);
    r->report->rounded_w = desk_cost(d);
    search_around(d, u, r->o->seed, (int)r->o->nodes);
    exchange_homes(d);
    desk_plan(d, r->arena, out);
    desk_destroy(d);
    r->report->method = "standing";
    r->report->lp_bound_w = u->bound_w;
    kept_count(r->o->kept,
               gap_of(r, out, u->bound_w) > fmax(KEPT_GAP, KEPT_GAP_GROWS * kept_gap(r->o->kept)));
    prices_destroy(u);
    return plan_check(r->arena, r->p, out, e);
}

/* Search alone, from where everybody stands. */
static int plan_quick(struct run *r, struct plan *out, struct err *e)
{
    struct desk *d = standing_desk(r->p);

    r->report->rounded_w = desk_cost(d);
    search(r, d, NULL);
    desk_plan(d, r->arena, out);
    desk_destroy(d);
    r->report->method = "quick";
    r->report->lp_bound_w = -INFINITY;
    return plan_check(r->arena, r->p, out, e);
}

/* What always exists. */
static int plan_greedy(struct run *r, struct plan *out, struct err *e)
{
    struct desk *d = standing_desk(r->p);

    desk_plan(d, r->arena, out);
    desk_destroy(d);
    r->report->method = "greedy";
    return plan_check(r->arena, r->p, out, e);
}

/* Go on from 'out' until it is proven or time is up. A child that cannot be had changes
 * nothing.
 */
static void plan_exact(struct run *r, const struct prices *u, struct plan *out)
{
    struct exact_options o = { .time_s = r->o->method == METHOD_EXACT ? EXACT_S : EXACT_AUTO_S };
    struct plan start = *out;
    double t_s = clock_stopwatch_s(), bound_w = r->report->bound_w;
    bool is_proven = false;
    struct err ignored = { 0 };

    if (r->o->time_s > 0)
        o.time_s = fmax(r->o->time_s - now_s(r), 0.05);
    if (r->o->exact(r->arena, r->p, u, bound_w, &start, &o, out, &bound_w, &is_proven, &ignored) <
        0)
        log_warn("no exact search: %s", ignored.text);
    else
        r->report->method = "exact";
    r->report->bound_w = bound_w;
    r->report->status = is_proven ? STATUS_OPTIMAL : STATUS_FEASIBLE;
    r->report->exact_s = clock_stopwatch_s() - t_s;
}

static int make_plan(struct run *r, struct plan *out, struct err *e)
{
    bool stands = may_stand(r);
    struct prices *u = stands || r->o->method == METHOD_QUICK ? NULL : find_prices(r);
    int rc = u        ? plan_fast(r, out, u, e)
             : stands ? plan_standing(r, out, e)
                      : plan_quick(r, out, e);

    if (rc == 0 && u && r->o->kept)
        kept_take(r->o->kept, u, gap_of(r, out, u->bound_w));
    if (rc < 0) {
        log_error("a plan did not pass its check: %s", e->text);
        rc = plan_greedy(r, out, e);
    }
    r->report->bound_w = r->report->lp_bound_w;
    if (rc == 0 && wants_exact(r))
        plan_exact(r, u, out);
    prices_destroy(u);
    return rc;
}

int optimize_run(struct arena *a, const struct problem *p, const struct optimize_options *o,
                 struct plan *out, struct optimize_report *report, struct err *e)
{
    struct run r = { .arena = a, .p = p, .o = o, .report = report, .threads = o->threads };
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
    report->rounded_w += base_w;
    report->seconds = clock_stopwatch_s() - t_s;
    return rc;
}
