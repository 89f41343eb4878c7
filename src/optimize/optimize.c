#include "optimize/optimize.h"

#include <errno.h>
#include <math.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "optimize/model/plan.h"
#include "optimize/prices/classes.h"
#include "optimize/search/desk.h"
#include "optimize/exact/exact.h"
#include "optimize/prices/mend.h"
#include "optimize/prices/prices.h"
#include "optimize/model/problem.h"
#include "optimize/search/round.h"
#include "optimize/search/search.h"

/* Clusters of kinds that the class program takes; beyond, kinds that are alike come together. */
#define CLUSTERS_MOST 160

/* Cells of a cluster that differ by this factor less one make its prices rough. */
#define MEND_FROM 1e-6

/* Needs within this factor of each other are planned as one by the class program. */
#define ALIKE 0.97

/* Problems that are solved to proven optimality when there is time. */
#define EXACT_JOBS_MOST 150

/* An exact search that was given no time ends after this long. */
#define EXACT_S 300.0
#define EXACT_AUTO_S 10.0    // where nobody asked for it

/* The class program ends when it has taken this many times all time, and the search begins whatever
 * the time is: a plan that is only rounded is worth little.
 */
#define CLASSES_SHARE 3
#define SEARCH_LEAST 0.25

/* Of the time that search and exact search have together. */
#define SEARCH_SHARE 0.4

/* A bound this close to the cost, as a share of it, is a proof. */
#define PROVEN 1e-6

const struct optimize_options optimize_defaults = { .method = METHOD_AUTO, .seed = 1 };

struct run {
    struct arena *arena;
    const struct problem *p;
    const struct optimize_options *o;
    struct optimize_report *report;
    struct clock clock;
    double start_s;
    int threads;
    bool is_clustered;    // kinds that differ were planned as one
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

/* The class program saw less than there is: clusters for kinds, or pairs where three may share. */
static bool is_rough(const struct run *r, const struct classes *c)
{
    return c->kinds.spread > MEND_FROM || r->p->theta > DISH_MAX;
}

static void keep_better(struct run *r, struct prices *u, const struct prices *other)
{
    double w = certificate_bound(r->arena, r->p, other, r->threads, NULL);

    if (w <= r->report->lp_bound_w)
        return;
    r->report->lp_bound_w = w;
    *u = *other;
}

/* Prices that hold for single kinds and all combinations: new ones, with GPUs worth less and less;
 * whatever proves most.
 */
static void mend(struct run *r, struct prices *u)
{
    static const double shares[] = { 1, 0.5, 0.2, 0 };
    struct prices first = *u;

    for (int i = 0; i < 4 && (r->o->time_s <= 0 || now_s(r) < r->o->time_s); i++) {
        struct prices anew;
        prices_share(r->arena, r->p, &first, shares[i], &anew);
        prices_mend(r->arena, r->p, &anew, 1);
        keep_better(r, u, &anew);
    }
}

static void solve_classes(struct run *r, struct classes *c, struct prices *u)
{
    struct classes_options o = { .tolerance = r->o->tolerance,
                                 .clusters_most = CLUSTERS_MOST,
                                 .alike = ALIKE };
    if (r->o->time_s > 0) {
        o.clock = &r->clock;
        o.until_s = r->start_s + CLASSES_SHARE * r->o->time_s;
    }
    double t_s = clock_stopwatch_s();

    classes_solve(r->arena, r->p, &o, c, u);
    r->report->lp_s = clock_stopwatch_s() - t_s;
    r->report->lp_rows = c->n_rows;
    r->report->lp_columns = c->n_columns;
    r->report->lp_rounds = c->n_rounds;
    r->report->n_clusters = c->kinds.n;
    r->is_clustered = c->kinds.spread > 0;
    t_s = clock_stopwatch_s();
    r->report->lp_bound_w = certificate_bound(r->arena, r->p, u, r->threads, NULL);
    r->report->certificate_s = clock_stopwatch_s() - t_s;
    if (is_rough(r, c))
        mend(r, u);
}

static bool wants_exact(const struct run *r)
{
    if (!r->o->exact)
        return false;
    if (r->o->method != METHOD_AUTO)
        return r->o->method == METHOD_EXACT;
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
    o.nodes = r->o->nodes;
    if (o.nodes <= 0 && (!is_timed || (r->o->method == METHOD_EXACT && is_proof_likely)))
        o.nodes = suitable_nodes(r->p);
    if (is_timed) {
        double share = wants_exact(r) ? SEARCH_SHARE : 1;
        o.clock = &r->clock;
        o.until_s = r->start_s + fmax(share * r->o->time_s, now_s(r) + SEARCH_LEAST * r->o->time_s);
    }
    o.chains = r->o->method == METHOD_QUICK ? 1 : 0;
    search_run(d, u, &o, &done);
    r->report->nodes = done.nodes;
    r->report->search_s = clock_stopwatch_s() - t_s;
}

/* Everybody where he is, newcomers one by one where they cost least. */
static struct desk *insert_all(const struct problem *p)
{
    struct desk *d = desk_create(p);

    desk_lay_present(d);
    for (int j = 0; j < p->n_jobs; j++)
        desk_insert(d, j);
    return d;
}

static struct desk *cheaper(struct desk *a, struct desk *b)
{
    bool is_a = desk_cost(a) <= desk_cost(b);

    desk_destroy(is_a ? b : a);
    return is_a ? a : b;
}

/* Class program, rounding, search: an answer that has passed the judge. */
static int plan_fast(struct run *r, struct plan *out, struct prices *u, struct err *e)
{
    struct classes c;

    solve_classes(r, &c, u);
    double t_s = clock_stopwatch_s();
    struct desk *d = desk_create(r->p);
    round_classes(r->arena, &c, u, d);
    d = cheaper(d, insert_all(r->p));    // never worse than leaving everybody where he is
    r->report->rounded_w = desk_cost(d);
    r->report->round_s = clock_stopwatch_s() - t_s;
    search(r, d, u);
    desk_plan(d, r->arena, out);
    desk_destroy(d);
    r->report->method = "fast";
    return plan_check(r->arena, r->p, out, e);
}

/* Search alone, from where everybody stands. */
static int plan_quick(struct run *r, struct plan *out, struct err *e)
{
    struct desk *d = insert_all(r->p);

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
    struct desk *d = insert_all(r->p);

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

int optimize_run(struct arena *a, const struct problem *p, const struct optimize_options *o,
                 struct plan *out, struct prices *prices, struct optimize_report *report,
                 struct err *e)
{
    struct prices own = { 0 };
    struct run r = { .arena = a, .p = p, .o = o, .report = report, .threads = o->threads };
    struct prices *u = prices ? prices : &own;
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
    bool is_quick = o->method == METHOD_QUICK;
    if ((is_quick ? plan_quick(&r, out, e) : plan_fast(&r, out, u, e)) < 0) {
        log_error("a plan did not pass its check: %s", e->text);
        rc = plan_greedy(&r, out, e);
    }
    report->bound_w = report->lp_bound_w;
    if (rc == 0 && wants_exact(&r))
        plan_exact(&r, u, out);
    double gap_w = out->cost_w - report->bound_w, same_w = PROVEN * fabs(out->cost_w + base_w);
    if (gap_w < -same_w)
        log_error("a bound of %g W is above the cost of %g W", report->bound_w, out->cost_w);
    else if (gap_w <= same_w)
        report->status = STATUS_OPTIMAL;
    if (r.is_clustered)
        report->cluster_loss_w = fmax(gap_w, 0);
    report->cost_w = out->cost_w + base_w;
    report->bound_w += base_w;
    report->lp_bound_w += base_w;
    report->rounded_w += base_w;
    report->seconds = clock_stopwatch_s() - t_s;
    return rc;
}
