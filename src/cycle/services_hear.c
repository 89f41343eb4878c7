/* What replicas say: what arrived, whether it was late, and step times that batches teach. */
#include <math.h>
#include <string.h>

#include "base/grow.h"
#include "catalog/catalog.h"
#include "catalog/cluster/ledger.h"
#include "cycle/inner.h"
#include "cycle/services_inner.h"
#include "estimate/estimate.h"
#include "monitor/sensor.h"

/* The guard's word holds for this long; the forecast remembers what it saw for longer. Of a late
 * minute the end is not waited for; of less than this, the rate says little.
 */
#define GUARD_S 1800.0
#define GUARD_LEAST_S 10.0

/* The first window of a place is a minute, each further one twice as long, up to an hour: what is
 * new is learned at once, what is known costs next to nothing.
 */
#define WINDOW_S 60.0
#define WINDOW_MOST_S 3600.0

/* Fewer requests say nothing of their hundredth; the standard deviation of ln of a tail. */
#define TAIL_REQUESTS 500
#define TAIL_NOISE 0.2
#define TAIL_BUSY 0.5

/* ---- learning ---- */

static struct served_window *window_of(struct service_record *r, int job)
{
    for (int i = 0; i < r->n_windows; i++)
        if (r->windows[i].job == job)
            return &r->windows[i];
    return NULL;
}

/* One for the job, in the room of one whose replica is over where there is any. */
static struct served_window *window_add(struct cycle *c, struct service_record *r, int job)
{
    const struct state *st = &c->ledger->state;
    int i = 0;

    while (i < r->n_windows && r->windows[i].job < st->n_jobs &&
           !job_is_over(st->jobs[r->windows[i].job]))
        i++;
    if (i == r->n_windows) {
        GROW(r->windows, r->n_windows, r->cap_windows);
        r->n_windows++;
    }
    r->windows[i] = (struct served_window){ .job = job, .beside = -2, .least_s = WINDOW_S };
    return &r->windows[i];
}

/* The one job beside it, -1: none; -2: there are more, which no cell describes. */
static int neighbour_of(const struct state *st, const struct job *j)
{
    const struct gpu *g = &st->gpus[j->gpus[0]];
    int beside = -1;

    for (int i = 0; i < g->n_jobs; i++)
        if (g->jobs[i] != j->id)
            beside = beside == -1 ? g->jobs[i] : -2;
    return beside;
}

/* The part of the time that the neighbour was at work; 0: not known. */
static double busy_of(const struct cycle *c, int job)
{
    const struct job *j = c->ledger->state.jobs[job];

    if (j->spec.kind != JOB_REPLICA)
        return j->spec.kind == JOB_TRAINING;
    struct service_record *r = services_record(c, j->spec.service);
    const struct served_window *w = r ? window_of(r, job) : NULL;
    if (!w || w->to_s - w->from_s < WINDOW_S / 2)
        return 0;
    return w->sum.busy_s / (w->to_s - w->from_s);
}

static void begin(struct served_window *w, int beside, int limit_w, double now_s)
{
    w->least_s = w->beside == beside && w->limit_w == limit_w ? fmin(2 * w->least_s, WINDOW_MOST_S)
                                                              : WINDOW_S;
    w->beside = beside;
    w->limit_w = limit_w;
    w->from_s = w->to_s = now_s;
    w->late = 0;
    w->sum = (struct serving_seen){ 0 };
    memset(w->by_batch, 0, sizeof w->by_batch);
}

static void add(struct serving_seen *sum, const struct served *seen)
{
    sum->n_requests += seen->n_requests;
    sum->n_batches += seen->n_batches;
    sum->busy_s += seen->busy_s;
}

/* Bursts make larger batches than calm minutes do: apart they tell what a request more takes, which
 * their mean does not.
 */
static void add_by_batch(struct served_window *w, const struct served *seen)
{
    double batch = seen->n_requests / seen->n_batches;

    if (!(seen->n_batches > 0 && batch >= 1))
        return;
    int i = (int)lround(log2(batch));
    add(&w->by_batch[i < WINDOW_BATCHES ? i : WINDOW_BATCHES - 1], seen);
}

/* Of batches of a like size, those of which most were made; NULL: there are too few of each. */
static struct serving_seen *most_made(struct served_window *w)
{
    struct serving_seen *most = NULL;

    for (int i = 0; i < WINDOW_BATCHES; i++)
        if (w->by_batch[i].n_batches >= (most ? most->n_batches : SERVING_BATCHES_LEAST))
            most = &w->by_batch[i];
    return most;
}

/* Beside one that trains more than 1 % were late, although it was idle for most of the time: p99 is
 * longer than its steps say, at the least by what was promised.
 */
static void learn_tail(struct cycle *c, const struct job *j, const struct served_window *w)
{
    const struct state *st = &c->ledger->state;
    double busy = w->sum.busy_s / (w->to_s - w->from_s);

    if (w->beside < 0 || st->jobs[w->beside]->spec.kind != JOB_TRAINING ||
        w->sum.n_requests < TAIL_REQUESTS || !(w->late > 0.01 * w->sum.n_requests) ||
        busy > TAIL_BUSY)
        return;
    int type = st->gpus[j->gpus[0]].type, beside = st->jobs[w->beside]->spec.workload;
    struct serving_estimate is = estimate_serving(&c->estimator, j->spec.workload, type, beside);
    double factor = service_latency_s(j->spec.terms) / serving_two_steps_s(&is);
    if (factor > is.tail)
        serving_note_tail(&c->estimator, j->spec.workload, type, beside, factor, TAIL_NOISE);
}

static bool measure(struct cycle *c, const struct job *j, const struct served_window *w,
                    struct serving_seen *made, struct measurement *out)
{
    const struct state *st = &c->ledger->state;
    int beside = w->beside < 0 ? -1 : st->jobs[w->beside]->spec.workload;

    made->beside_busy = w->beside < 0 ? 1 : busy_of(c, w->beside);
    if (made->n_requests > made->n_batches * service_batch(j->spec.terms) ||
        !serving_measure(&c->estimator, j->spec.workload, st->gpus[j->gpus[0]].type, beside, made,
                         out))
        return false;
    out->key.limit_w = j->limit_w;
    out->time_s = w->to_s;
    out->duration_s = w->to_s - w->from_s;
    return true;
}

static bool learn(struct cycle *c, struct service_record *r, int job, const struct served *seen,
                  struct measurement *out)
{
    const struct state *st = &c->ledger->state;
    const struct job *j = st->jobs[job];
    struct served_window *w = window_of(r, job);

    if (j->n_held != 1 || isnan(seen->n_requests + seen->n_batches + seen->busy_s))
        return false;
    w = w ? w : window_add(c, r, job);
    int beside = neighbour_of(st, j);
    if (beside != w->beside || j->limit_w != w->limit_w) {
        begin(w, beside, j->limit_w, seen->to_s);    // it changed within what is told now
        return false;
    }
    add(&w->sum, seen);
    add_by_batch(w, seen);
    w->late += isnan(seen->n_late) ? 0 : seen->n_late;
    w->to_s = seen->to_s;
    if (w->to_s - w->from_s < w->least_s || beside < -1)
        return false;
    struct serving_seen *made = most_made(w);
    bool is_one = made && measure(c, j, w, made, out);
    if (made)
        *made = (struct serving_seen){ 0 };
    if (!most_made(w)) {
        learn_tail(c, j, w);
        begin(w, beside, j->limit_w, w->to_s);
    }
    return is_one;
}

/* ---- the guard ---- */

/* Would the last minutes have been late where its replicas are, by cautious step times? Asked once
 * for each such time.
 */
static bool is_short(struct cycle *c, struct service_record *r, double now_s)
{
    const struct state *st = &c->ledger->state;
    const struct serving spec = service_serving(&st->jobs[r->id]->spec);
    struct guard_place at[SERVICE_GPUS_MOST];
    int n = 0;

    if (spec.is_llm || now_s < r->replayed_s + GUARD_RECENT_S)
        return false;
    r->replayed_s = now_s;
    for (int i = 0; i < r->n_routes && n < SERVICE_GPUS_MOST; i++) {
        const struct job *j = st->jobs[r->routes[i].job];
        if (!job_serves_now(j) || j->spec.workload >= c->estimator.n_workloads)
            continue;
        struct serving_estimate is =
            estimate_serving(&c->estimator, j->spec.workload, st->gpus[j->gpus[0]].type, -1);
        at[n].weight = r->routes[i].weight;
        serving_cautious(&is, SERVICE_Z, &at[n].t0_s, &at[n].a_s);
        n++;
    }
    return n > 0 && guard_is_short(r->arrivals, now_s, at, n, spec.max_batch, spec.latency_s,
                                   (unsigned long)r->id);
}

static void guard(struct cycle *c, struct service_record *r, double now_s)
{
    bool is_late = guard_minute_is_late(r->requests, r->late);
    double length_s = now_s - r->minute_s;

    if (isnan(length_s) || length_s < (is_late ? GUARD_LEAST_S : 60))
        return;
    if (c->solver.services == SERVICE_REPLAY && !service_is_coming(c, r) &&
        (is_late || is_short(c, r, now_s))) {
        double recent = r->requests / length_s;
        double want = guard_rate(service_held(c, r, -1), recent);
        r->guard = now_s < r->guard_until_s ? fmax(r->guard, want) : want;
        r->guard_until_s = now_s + GUARD_S;
    }
    r->minute_s = now_s;
    r->requests = r->late = 0;
}

/* ---- hearing ---- */

bool services_hear(struct cycle *c, int job, const struct served *seen, struct measurement *out)
{
    const struct job *j = c->ledger->state.jobs[job];

    services_meet(c);
    struct service_record *r =
        j->spec.kind == JOB_REPLICA ? services_record(c, j->spec.service) : NULL;
    if (!r)
        return false;
    bool says_something = seen->n_bins > 0 || !isnan(seen->n_requests);
    if (says_something || seen->is_false)
        r->heard_s = seen->to_s;
    if (seen->is_false)
        r->false_s = clock_now_s(&c->clock);
    if (seen->is_flooding)
        r->flooded_s = clock_now_s(&c->clock);
    if (seen->is_false || !says_something)
        return false;
    if (isnan(r->minute_s))
        r->minute_s = seen->from_s;
    double n = isnan(seen->n_requests) ? 0 : seen->n_requests;
    if (seen->n_bins > 0)
        arrivals_add(r->arrivals, seen->to_s, seen->from_s, seen->bin_s, seen->n_bins,
                     seen->counts);
    else
        counted_add(&r->counted, seen->from_s, seen->to_s, n, seen->n_late, seen->n_queued,
                    seen->has_lengths ? &seen->lengths : NULL);
    if (seen->has_lengths)
        arrivals_add_lengths(r->arrivals, seen->to_s, &seen->lengths);
    if (!isnan(seen->n_requests))
        demand_add(&r->demand, seen->from_s, seen->to_s, n);
    r->requests += n;
    r->sum_requests += n;
    if (!isnan(seen->n_late)) {
        r->late += seen->n_late;
        r->sum_late += seen->n_late;
    }
    guard(c, r, seen->to_s);
    return learn(c, r, job, seen, out);
}
