/* events.c - the row "events" of `gogh bench optimize`: decisions one after the other.
 *
 * A cluster in which jobs arrive and end, estimates change, and nodes are lost and return. Each
 * event is followed by a decision as the daemon's child makes it: the policy "gogh" behind the
 * solver's door, with its judge and its kept prices, which are found anew between decisions when
 * the gap says so.
 */
#include <math.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/stats.h"
#include "bench/bench.h"
#include "bench/changes.h"
#include "bench/optimize.h"
#include "optimize/files/problem_make.h"
#include "optimize/model/lower.h"
#include "optimize/model/plan.h"
#include "optimize/optimize.h"
#include "optimize/policy/solver.h"
#include "optimize/prices/kept.h"
#include "optimize/prices/prices.h"
#include "optimize/search/assignment.h"

#define N_EVENTS 5000
#define N_JOBS 14000
#define N_GPUS 10000
#define N_KINDS 50
#define N_TYPES 6
#define N_BOUNDS 20    // a bound takes seconds: one every 250 events

/* Goals: percent above a fresh bound at worst, seconds of one decision in a hundred, of placing one
 * arrival in a hundred, and moves an event.
 */
static const struct goal {
    double percent, decision_s, arrival_s, moves;
} must = { 1.5, 0.1, 50e-6, 6 }, aim = { 0.7, 0.1, 20e-6, 6 };

struct event_run {
    int n_events;
    struct changes c;
    struct solver solver;
    struct samples decisions_s, arrivals_s, pricings_s, moves;
    struct samples gaps, own_gaps;    // in percent: to a fresh bound; to the plan's own
};

/* What comes out of the process that all of it happens in: figures in the order of their table. */
enum { GAP_WORST = 1, P99_S = 4, ARRIVAL_P99 = 7, MOVES = 8, N_FIGURES = 11 };
struct event_figures {
    double v[N_FIGURES];
};

#define AT(samples) offsetof(struct event_run, samples)
#define MEAN (-1.0)
#define COUNT (-2.0)

/* By key: a quantile of which samples, or their mean or count, and its unit. Of several seeds,
 * means are taken of means, sums of counts, and the worst of all else.
 */
static const struct {
    const char *key;
    size_t samples;
    double of, by;
} figures[N_FIGURES] = {
    { "gap_mean_percent", AT(gaps), MEAN, 1 },
    [GAP_WORST] = { "gap_worst_percent", AT(gaps), 1, 1 },
    { "own_gap_worst_percent", AT(own_gaps), 1, 1 },
    { "seconds_mean", AT(decisions_s), MEAN, 1 },
    [P99_S] = { "seconds_p99", AT(decisions_s), 0.99, 1 },
    { "seconds_worst", AT(decisions_s), 1, 1 },
    { "arrival_p50_us", AT(arrivals_s), 0.5, 1e6 },
    [ARRIVAL_P99] = { "arrival_p99_us", AT(arrivals_s), 0.99, 1e6 },
    [MOVES] = { "moves_per_event", AT(moves), MEAN, 1 },
    { "pricings", AT(pricings_s), COUNT, 1 },
    { "pricing_seconds_mean", AT(pricings_s), MEAN, 1 },
};

struct event_task {
    int scale;
    uint64_t seed;
};

static void event_run_init(struct event_run *r, const struct event_task *t)
{
    struct make_options o = make_defaults;

    *r = (struct event_run){ .n_events = N_EVENTS / t->scale, .solver = solver_gogh };
    o.n_jobs = N_JOBS / t->scale;
    o.n_gpus = N_GPUS / t->scale;
    o.n_types = N_TYPES;
    o.n_kinds = N_KINDS;
    o.seed = t->seed;
    changes_init(&r->c, &o, r->n_events);
    changes_as_served(&r->c);
    r->solver.seed = 1;
    r->solver.kept = kept_create();
}

/* How long a newcomer takes to find its place by kept prices, on an assignment where everybody else
 * stands. */
static double place_s(const struct event_run *r, int job)
{
    struct prices_options o = { .kept = r->solver.kept, .threads = 1 };
    struct prices *u = prices_find(&r->c.p, &o);
    struct assignment *d = assignment_create(&r->c.p);
    struct reduced_costs *reduced = reduced_costs_create(d, u);

    assignment_lay_present(d);
    d->reduced = reduced;
    d->job_price_w = u->job_w;
    double began_s = clock_stopwatch_s();
    assignment_insert(d, job);
    double took_s = clock_stopwatch_s() - began_s;
    reduced_costs_destroy(reduced);
    assignment_destroy(d);
    prices_destroy(u);
    return took_s;
}

/* Of a hundred events 42 are arrivals, 42 ends, 12 changed estimates, 2 lost nodes, and 2 nodes
 * come back.
 */
static void happen(struct event_run *r)
{
    uint64_t chance = rng_below(&r->c.rng, 100);

    if (chance < 42)
        samples_add(&r->arrivals_s, place_s(r, changes_arrive(&r->c)));
    else if (chance < 84)
        changes_end(&r->c);
    else if (chance < 96)
        changes_estimate(&r->c);
    else if (chance < 98 || r->c.n_lost == 0)
        changes_lose(&r->c);
    else
        changes_restore(&r->c);
}

/* How far the plan is above the better of its own bound and one that is found from nothing. */
static int add_gap(struct event_run *r, int i, const struct plan *x, struct err *e)
{
    struct optimize_options how = optimize_defaults;
    struct bench_plan fresh;

    how.method = METHOD_FAST;
    how.nodes = 1;
    int rc = bench_plan(&r->c.p, &how, &fresh, e);
    if (rc < 0)
        return rc;
    double bound_w = fmax(fresh.bound_w, x->bound_w + x->base_w);
    double percent = bench_above(x->cost_w + x->base_w, bound_w);
    samples_add(&r->gaps, percent);
    bench_tell("events: %d: %.3f %% above the bound, %.1f moves an event, %.0f ms a decision", i,
               percent, samples_mean(&r->moves), 1e3 * samples_mean(&r->decisions_s));
    return 0;
}

static void look_at_prices(struct event_run *r, const struct plan *x)
{
    double ratio = plan_gap(x).ratio, began_s = clock_stopwatch_s();

    samples_add(&r->own_gaps, 100 * ratio);
    if (!kept_count(r->solver.kept, ratio))
        return;
    kept_find(r->solver.kept, &r->c.p);
    samples_add(&r->pricings_s, clock_stopwatch_s() - began_s);
}

static int decide(struct event_run *r, struct plan *x, struct err *e)
{
    struct lowered asked = { .problem = r->c.p };
    double began_s = clock_stopwatch_s();
    int rc = solver_plan(&r->solver, changes_arena(&r->c), &asked, x, e);

    samples_add(&r->decisions_s, clock_stopwatch_s() - began_s);
    return rc;
}

static int next_event(struct event_run *r, int i, struct err *e)
{
    struct plan x;

    happen(r);
    int rc = decide(r, &x, e);
    if (rc == 0 && i % ((r->n_events + N_BOUNDS - 1) / N_BOUNDS) == 0)
        rc = add_gap(r, i, &x, e);
    if (rc < 0)
        return rc;
    samples_add(&r->moves, x.n_moves);
    look_at_prices(r, &x);
    changes_settle(&r->c, &x);
    return 0;
}

static void sum_up(struct event_run *r, struct event_figures *out)
{
    for (int i = 0; i < N_FIGURES; i++) {
        struct samples *s = (struct samples *)((char *)r + figures[i].samples);

        if (figures[i].of == COUNT)
            out->v[i] = s->n;
        else
            out->v[i] =
                figures[i].of == MEAN ? samples_mean(s) : samples_quantile(s, figures[i].of);
    }
}

/* In a process of its own, which ends afterwards: nothing is tidied up. */
static int run_events(const void *self, void *out, struct err *e)
{
    const struct event_task *t = self;
    struct event_run r;
    struct plan x;

    event_run_init(&r, t);
    int rc =
        decide(&r, &x, e);    // the first one has no prices yet, and is none of those that count
    if (rc < 0)
        return rc;
    r.decisions_s.n = 0;
    changes_settle(&r.c, &x);
    for (int i = 1; i <= r.n_events && rc == 0; i++)
        rc = next_event(&r, i, e);
    sum_up(&r, out);
    return rc;
}

/* ---- JSON ---- */

static bool is_met(const struct event_figures *f, const struct goal *g)
{
    return f->v[GAP_WORST] <= g->percent && f->v[P99_S] <= g->decision_s &&
           f->v[ARRIVAL_P99] <= g->arrival_s && f->v[MOVES] <= g->moves;
}

static json_t *goals_json(const struct event_figures *f)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:b, s:f, s:f, s:f, s:f, s:b}", "must_percent",
                     must.percent, "must_s", must.decision_s, "must_arrival_us",
                     1e6 * must.arrival_s, "must_moves", must.moves, "must_met", is_met(f, &must),
                     "aim_percent", aim.percent, "aim_s", aim.decision_s, "aim_arrival_us",
                     1e6 * aim.arrival_s, "aim_moves", aim.moves, "aim_met", is_met(f, &aim));
}

static json_t *events_json(const struct event_task *t, int seeds, const struct event_figures *f,
                           double bytes)
{
    json_t *o = json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:s}", "name", "events", "jobs",
                          N_JOBS / t->scale, "gpus", N_GPUS / t->scale, "kinds", N_KINDS, "theta",
                          make_defaults.theta, "seeds", seeds, "events", N_EVENTS / t->scale,
                          "against", "bound");

    for (int i = 0; i < N_FIGURES; i++)
        json_object_set_new(o, figures[i].key,
                            figures[i].of == COUNT ? json_integer((json_int_t)f->v[i])
                                                   : json_number_or_null(figures[i].by * f->v[i]));
    json_object_set_new(o, "rss_bytes", json_integer((json_int_t)bytes));
    json_object_update_new(o, goals_json(f));
    return o;
}

static void merge(struct event_figures *all, const struct event_figures *one, int n)
{
    for (int i = 0; i < N_FIGURES; i++) {
        double *v = &all->v[i];

        if (figures[i].of == MEAN)
            *v += (one->v[i] - *v) / n;
        else
            *v = figures[i].of == COUNT ? *v + one->v[i] : fmax(*v, one->v[i]);
    }
}

int bench_events(int seeds, int scale, json_t *list, struct err *e)
{
    struct event_task t = { .scale = scale };
    struct event_figures all = { 0 }, one;
    double most_bytes = 0, bytes;
    int rc = 0;

    for (t.seed = 1; t.seed <= (uint64_t)seeds && rc == 0; t.seed++) {
        bench_tell("events: %d at %d GPUs, seed %d of %d", N_EVENTS / scale, N_GPUS / scale,
                   (int)t.seed, seeds);
        rc = bench_child(run_events, &t, 0, &one, sizeof one, &bytes, e);
        merge(&all, &one, (int)t.seed);
        most_bytes = fmax(most_bytes, bytes);
    }
    if (rc == 0)
        json_array_append_new(list, events_json(&t, seeds, &all, most_bytes));
    return rc;
}
