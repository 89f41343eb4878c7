/* bench_events.c - the standing plan at 10,000 GPUs: what an arrival costs, and how it keeps. */
#include "cli/bench_optimize.h"

#include <errno.h>
#include <malloc.h>
#include <math.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/rng.h"
#include "base/stats.h"
#include "cli/bench.h"
#include "optimize/model/plan.h"
#include "optimize/optimize.h"
#include "optimize/search/planner.h"
#include "optimize/prices/prices.h"
#include "optimize/model/problem.h"
#include "optimize/files/problem_make.h"

enum {
    N_GPUS = 10000,
    N_JOBS = 12500,     // at all times
    N_EVENTS = 5000,    // every second one an arrival
    N_EARLY = 1000,     // the first look at how the plan has kept
    LOOK_EVERY = 50,    // events between two looks at whether prices still fit
    N_CERTIFICATES = 9,
};

#define IMPROVE_NODES 200    // steps of improvement after each event

/* What one run over all events gives. */
struct run_found {
    double arrival_p50_us, arrival_p99_us;
    double event_ms, event_p99_ms, event_worst_ms;    // arrival or departure, and improvement
    double moves;                                     // an event
    double gap[3];    // percent above a fresh bound: at the start, early, and at the end
    double certificate_ms;
    double reprices, reprice_ms;
};

struct stage {
    const struct problem *p;    // N_JOBS, and behind them those that come
    int nodes;                  // of improvement an event; 0: places only
    struct arena arena;
    struct planner *planner;
    struct rng rng;
    int *here;    // (N_JOBS) numbers of those that are there
    int n_come;
    struct samples arrivals_us, events_ms, reprices_ms;
    double n_moves;
};

/* A plan from scratch, and its prices. 'nodes' of search: 0 as suits the size, 1 for the prices. */
static int plan_full(struct arena *a, const struct problem *p, long nodes, struct plan *x,
                     struct prices *u, struct optimize_report *report, struct err *e)
{
    struct optimize_options how = optimize_defaults;

    how.method = METHOD_FAST;
    how.nodes = nodes;
    return optimize_run(a, p, &how, x, u, report, e);
}

/* How far the standing plan, judged, is above what nothing can beat now. */
static int look(struct stage *s, double *gap, struct err *e)
{
    const struct problem *now = planner_problem(s->planner);
    struct optimize_report report;
    struct plan fresh, ours;
    struct prices u;
    struct arena a;

    arena_init(&a);
    int rc = plan_full(&a, now, 1, &fresh, &u, &report, e);
    planner_plan(s->planner, &a, &ours);
    if (rc == 0)
        rc = plan_check(&a, now, &ours, e);
    *gap = bench_above(ours.cost_w - ours.move_w + problem_base_w(now), report.bound_w);
    arena_release(&a);
    return rc;
}

/* New prices where the old ones no longer fit: what a daemon does in the background. */
static int reprice(struct stage *s, struct err *e)
{
    double began_s = clock_stopwatch_s();
    struct optimize_report report;
    struct plan ignored;
    struct prices u;
    struct arena a;

    if (s->nodes == 0 || !planner_wants_prices(s->planner))
        return 0;
    arena_init(&a);
    int rc = plan_full(&a, planner_problem(s->planner), 1, &ignored, &u, &report, e);
    if (rc == 0)
        planner_adopt(s->planner, &u);
    arena_release(&a);
    samples_add(&s->reprices_ms, 1e3 * (clock_stopwatch_s() - began_s));
    return rc;
}

static double time_certificate(const struct problem *p, const struct prices *u)
{
    struct samples ms;
    struct arena a;

    samples_init(&ms);
    for (int i = 0; i < N_CERTIFICATES; i++) {
        arena_init(&a);
        double began_s = clock_stopwatch_s();
        certificate_bound(&a, p, u, 2, NULL);
        samples_add(&ms, 1e3 * (clock_stopwatch_s() - began_s));
        arena_release(&a);
    }
    double median = samples_quantile(&ms, 0.5);
    samples_release(&ms);
    return median;
}

static int stage_open(struct stage *s, struct run_found *out, struct err *e)
{
    struct optimize_report report;
    struct plan x;
    struct prices u;

    arena_init(&s->arena);
    samples_init(&s->arrivals_us);
    samples_init(&s->events_ms);
    samples_init(&s->reprices_ms);
    rng_init(&s->rng, 1, "bench-events");
    int rc = plan_full(&s->arena, s->p, 0, &x, &u, &report, e);
    if (rc < 0)
        return rc;
    s->planner = planner_create(s->p, &x, 1);
    planner_adopt(s->planner, &u);
    s->here = ARENA_ARRAY(&s->arena, int, N_JOBS);
    for (int j = 0; j < N_JOBS; j++)
        s->here[j] = j;
    out->certificate_ms = time_certificate(s->p, &u);
    return 0;
}

/* Somebody leaves, or somebody comes in his place; then improve. */
static void stage_event(struct stage *s, int event)
{
    int *who = &s->here[event % 2 == 0 ? rng_below(&s->rng, N_JOBS - 1) : N_JOBS - 1];
    double began_s = clock_stopwatch_s();

    if (event % 2 == 0) {
        planner_leave(s->planner, *who);
        *who = s->here[N_JOBS - 1];
    } else {
        *who = planner_arrive(s->planner, &s->p->jobs[N_JOBS + s->n_come++]);
        samples_add(&s->arrivals_us, 1e6 * (clock_stopwatch_s() - began_s));
    }
    if (s->nodes > 0)
        s->n_moves += planner_improve(s->planner, s->nodes);
    samples_add(&s->events_ms, 1e3 * (clock_stopwatch_s() - began_s));
}

static void sum_up(struct stage *s, struct run_found *out)
{
    out->arrival_p50_us = samples_quantile(&s->arrivals_us, 0.5);
    out->arrival_p99_us = samples_quantile(&s->arrivals_us, 0.99);
    out->event_ms = samples_mean(&s->events_ms);
    out->event_p99_ms = samples_quantile(&s->events_ms, 0.99);
    out->event_worst_ms = samples_quantile(&s->events_ms, 1);
    out->moves = s->n_moves / N_EVENTS;
    out->reprices = (double)s->reprices_ms.n;
    out->reprice_ms = s->reprices_ms.n > 0 ? samples_mean(&s->reprices_ms) : 0;
}

static int run_events(const void *self, void *to, struct err *e)
{
    struct stage s = *(const struct stage *)self;
    struct run_found *out = to;

    *out = (struct run_found){ 0 };
    int rc = stage_open(&s, out, e);
    if (rc == 0)
        rc = look(&s, &out->gap[0], e);
    for (int i = 0; i < N_EVENTS && rc == 0; i++) {
        stage_event(&s, i);
        if (i % LOOK_EVERY == 0)
            rc = reprice(&s, e);
        if (rc == 0 && (i + 1 == N_EARLY || i + 1 == N_EVENTS))
            rc = look(&s, &out->gap[i + 1 == N_EARLY ? 1 : 2], e);
    }
    if (rc == 0)
        sum_up(&s, out);
    return rc;    // the child ends here; there is nothing to tidy
}

static json_t *tell(const struct run_found *plain, const struct run_found *better)
{
    const struct {
        const char *key;
        double value;
    } figures[] = {
        { "arrival_p50_us", plain->arrival_p50_us },
        { "arrival_p99_us", plain->arrival_p99_us },
        { "plain_gap_start_percent", plain->gap[0] },
        { "plain_gap_1000_percent", plain->gap[1] },
        { "plain_gap_5000_percent", plain->gap[2] },
        { "improve_mean_ms", better->event_ms },
        { "improve_p99_ms", better->event_p99_ms },
        { "improve_worst_ms", better->event_worst_ms },
        { "moves_per_event", better->moves },
        { "gap_start_percent", better->gap[0] },
        { "gap_1000_percent", better->gap[1] },
        { "gap_5000_percent", better->gap[2] },
        { "drift_1000_percent", better->gap[1] - better->gap[0] },
        { "drift_5000_percent", better->gap[2] - better->gap[0] },
        { "reprices", better->reprices },
        { "reprice_mean_ms", better->reprice_ms },
        { "certificate_ms", better->certificate_ms },
    };
    json_t *o = json_pack("{s:i, s:i, s:i, s:i}", "jobs", N_JOBS, "gpus", N_GPUS, "events",
                          N_EVENTS, "improve_nodes", IMPROVE_NODES);

    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        json_object_set_new(o, figures[i].key, bench_number(figures[i].value));
    return o;
}

json_t *bench_events(struct err *e)
{
    struct make_options make = make_defaults;
    struct stage plain = { 0 }, better = { .nodes = IMPROVE_NODES };
    struct run_found found[2];
    struct problem p;
    struct arena a;
    double ignored;

    make.n_jobs = N_JOBS + N_EVENTS / 2;
    make.n_gpus = N_GPUS;
    make.n_kinds = 50;
    make.standing = make_defaults.standing * N_JOBS / make.n_jobs;
    arena_init(&a);
    bench_tell("events: making the instance");
    problem_make(&a, &make, &p);
    p.n_jobs = N_JOBS;
    plain.p = better.p = &p;
    malloc_trim(0);
    bench_tell("events: arrivals and departures, nobody moves");
    int rc = bench_child(run_events, &plain, 0, &found[0], sizeof found[0], &ignored, e);
    bench_tell("events: the same with improvement");
    if (rc == 0)
        rc = bench_child(run_events, &better, 0, &found[1], sizeof found[1], &ignored, e);
    arena_release(&a);
    return rc == 0 ? tell(&found[0], &found[1]) : NULL;
}
