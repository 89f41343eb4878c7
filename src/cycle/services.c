#include "cycle/services.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/log.h"
#include "catalog/catalog.h"
#include "catalog/cluster/ledger.h"
#include "catalog/cluster/snapshot.h"
#include "cycle/inner.h"
#include "cycle/services_inner.h"
#include "cycle/table.h"
#include "estimate/serving.h"
#include "optimize/model/place.h"

/* Tables are built anew this often: an hour more or less in 24 changes little. */
#define BUILD_S 600.0

/* An owner that builds them less often (cycle.table_s) does so all the same when there are so many
 * times as many hours.
 */
#define BUILD_GROWTH 1.5

/* A start is paid back in so many times the time it takes: for so long a replica stays. */
#define HOLD_LOADS 30.0

/* Nobody is put elsewhere to save energy sooner than this after the service's last start. */
#define MOVE_EVERY_S 14400.0

/* What others do. */
#define PEAK_MARGIN 1.1
#define AUTOSCALE_BUSY 0.6

/* A decision is due when a demand has changed by this part of it. */
#define DEMAND_STEP 0.05

/* What one replica says wrong is shown for so long, although others speak meanwhile. */
#define SHOWN_S 60.0

struct services *services_create(void)
{
    return heap_array(1, sizeof(struct services));
}

static void record_release(struct service_record *r)
{
    arrivals_destroy(r->arrivals);
    free(r->replicas);
    free(r->routes);
    free(r->windows);
}

void services_destroy(struct services *s)
{
    for (int i = 0; s && i < s->n; i++)
        record_release(&s->records[i]);
    if (s)
        free(s->records);
    free(s);
}

/* ---- records ---- */

struct serving service_serving(const struct job_spec *s)
{
    const struct service_terms *t = s->terms;

    return (struct serving){ .rate = s->rate,
                             .latency_s = service_latency_s(t),
                             .max_batch = service_batch(t),
                             .is_llm = t->ttft_s > 0,
                             .ttft_s = t->ttft_s,
                             .tpot_s = t->tpot_s,
                             .max_running = service_batch(t) };
}

struct service_record *services_record(const struct cycle *c, int service)
{
    struct services *s = c->services;

    for (int i = 0; i < s->n; i++)
        if (s->records[i].id == service)
            return &s->records[i];
    return NULL;
}

static void record_add(struct services *s, const struct job *j)
{
    struct serving spec = service_serving(&j->spec);

    GROW(s->records, s->n, s->cap);
    struct service_record *r = &s->records[s->n++];
    *r = (struct service_record){
        .id = j->id,
        .built_s = NAN,
        .heard_s = NAN,
        .minute_s = NAN,
        .saved_s = NAN,
        .false_s = NAN,
        .flooded_s = NAN,
    };
    r->arrivals = arrivals_create(arrivals_bin_s(spec.latency_s));
    capacity_build(&r->capacity, NULL, &spec);
}

void services_meet(struct cycle *c)
{
    const struct state *st = &c->ledger->state;
    struct services *s = c->services;

    for (; s->n_jobs < st->n_jobs; s->n_jobs++) {
        const struct job *j = st->jobs[s->n_jobs];
        if (j->spec.kind == JOB_SERVICE)
            record_add(s, j);
        struct service_record *r =
            j->spec.kind == JOB_REPLICA ? services_record(c, j->spec.service) : NULL;
        if (!r)
            continue;
        r->next_replica =
            j->spec.replica >= r->next_replica ? j->spec.replica + 1 : r->next_replica;
        r->started_s = fmax(r->started_s, j->spec.submit_s);
        if (job_is_over(j))
            continue;
        GROW(r->replicas, r->n_replicas, r->cap_replicas);
        r->replicas[r->n_replicas++] = j->id;
    }
    s->n_jobs = st->n_jobs;
}

void services_undone(struct cycle *c)
{
    const int n_jobs = c->ledger->state.n_jobs;
    struct services *s = c->services;

    for (int i = 0; i < s->n; i++) {
        struct service_record *r = &s->records[i];
        int n = 0;
        for (int k = 0; k < r->n_replicas; k++)
            if (r->replicas[k] < n_jobs)
                r->replicas[n++] = r->replicas[k];
        r->n_replicas = n;
        r->saved_s = NAN;
        r->saved_hour_s = 0;
    }
    while (s->n > 0 && s->records[s->n - 1].id >= n_jobs)
        record_release(&s->records[--s->n]);
    s->n_jobs = s->n_jobs < n_jobs ? s->n_jobs : n_jobs;
}

double service_load_s(const struct cycle *c, const struct service_record *r)
{
    double said_s = c->ledger->state.jobs[r->id]->spec.terms->load_s;

    return r->load_s > 0 ? r->load_s : said_s > 0 ? said_s : SERVICE_LOAD_S;
}

/* ---- what is needed ---- */

static double hold_s_of(const struct cycle *c, const struct service_record *r)
{
    return HOLD_LOADS * service_load_s(c, r);
}

double service_demand(const struct cycle *c, const struct service_record *r, double now_s)
{
    const struct job *j = c->ledger->state.jobs[r->id];
    double horizon_s = service_load_s(c, r) + hold_s_of(c, r);

    if (c->solver.services == SERVICE_PEAK)
        return PEAK_MARGIN * j->spec.rate;
    if (c->solver.services == SERVICE_AUTOSCALE) {
        double rate = demand_now(&r->demand, now_s);
        return isnan(rate) ? j->spec.rate : fmax(rate, 1e-3 * j->spec.rate);
    }
    double rate = demand_rate(&r->demand, now_s, horizon_s, j->spec.rate);
    if (now_s < r->guard_until_s)
        rate = fmax(rate, r->guard);
    return fmax(rate, 1e-3 * j->spec.rate);
}

static struct service_view view_of(const struct cycle *c, const struct service_record *r)
{
    return (struct service_view){
        .demand = service_demand(c, r, clock_now_s(&c->clock)),
        .max_gpus = c->ledger->state.jobs[r->id]->spec.max_gpus,
        .load_s = service_load_s(c, r),
        .hold_s = hold_s_of(c, r),
        .may_move = !c->ledger->state.jobs[r->id]->spec.terms->is_unmoved &&
                    clock_now_s(&c->clock) >= r->started_s + MOVE_EVERY_S,
        .capacity = &r->capacity,
        .z = c->solver.services == SERVICE_AUTOSCALE ? 0 : SERVICE_Z,    // that one measures
        .busy_most = c->solver.services == SERVICE_AUTOSCALE ? AUTOSCALE_BUSY : 0,
    };
}

void services_refresh(struct cycle *c)
{
    if (c->estimator.n_workloads < c->catalog->n_workloads ||
        c->estimator.n_types < c->catalog->n_types)
        estimate_refresh(&c->estimator);
}

/* NaN: the estimator has not met somebody yet. */
static double held_at(const struct cycle *c, const struct service_view *v, int workload, int type,
                      int beside)
{
    const struct estimator *est = &c->estimator;

    if (workload >= est->n_workloads || beside >= est->n_workloads || type >= est->n_types)
        return NAN;
    return place_capacity(est, v, workload, type, beside);
}

double service_held_by(const struct cycle *c, const struct service_record *r, int job)
{
    const struct state *st = &c->ledger->state;
    const struct job *j = st->jobs[job];
    const struct gpu *g = &st->gpus[j->n_held ? j->gpus[0] : j->spec.gpu];
    const struct service_view v = view_of(c, r);
    double least = held_at(c, &v, j->spec.workload, g->type, -1);

    for (int i = 0; i < g->n_jobs; i++)
        if (g->jobs[i] != job)
            least = fmin(least, held_at(c, &v, j->spec.workload, g->type,
                                        st->jobs[g->jobs[i]]->spec.workload));
    return isnan(least) ? 0 : least;
}

/* Replicas that have their GPU and wait to be started there. */
static void count_coming(const struct cycle *c, const struct service_record *r,
                         struct service_view *v)
{
    const struct state *st = &c->ledger->state;

    for (int i = 0; i < r->n_replicas; i++)
        if (st->jobs[r->replicas[i]]->state == JOB_WAITING) {
            v->coming += service_held_by(c, r, r->replicas[i]);
            v->n_coming++;
        }
}

const struct service_view *services_views(struct cycle *c, struct arena *a)
{
    services_meet(c);
    struct services *s = c->services;
    if (s->n == 0)
        return NULL;
    services_refresh(c);
    struct service_view *views = ARENA_ARRAY(a, struct service_view, (size_t)s->n);
    for (int i = 0; i < s->n; i++) {
        views[i] = view_of(c, &s->records[i]);
        count_coming(c, &s->records[i], &views[i]);
        s->records[i].asked = views[i].demand;
    }
    return views;
}

static bool is_staying(const struct state *st, const struct job *j)
{
    return job_serves_now(j) && st->nodes[st->gpus[j->gpus[0]].node].state == NODE_UP;
}

double service_held(const struct cycle *c, const struct service_record *r, int but)
{
    const struct state *st = &c->ledger->state;
    double sum = 0;

    for (int i = 0; i < r->n_replicas; i++)
        if (r->replicas[i] != but && is_staying(st, st->jobs[r->replicas[i]]))
            sum += service_held_by(c, r, r->replicas[i]);
    return sum;
}

static bool is_live(const struct job *j)
{
    return !job_is_over(j) && isnan(j->drain_s);
}

int service_n_live(const struct cycle *c, const struct service_record *r)
{
    int n = 0;

    for (int i = 0; i < r->n_replicas; i++)
        n += is_live(c->ledger->state.jobs[r->replicas[i]]);
    return n;
}

bool service_is_coming(const struct cycle *c, const struct service_record *r)
{
    for (int i = 0; i < r->n_replicas; i++) {
        const struct job *j = c->ledger->state.jobs[r->replicas[i]];
        if (is_live(j) && !job_serves_now(j))
            return true;
    }
    return false;
}

/* What replicas that tell no bins have shown, as it was where most requests go. */
static struct serving_metrics metrics_of(const struct cycle *c, const struct service_record *r)
{
    const struct service_route *top = NULL;
    struct serving_metrics m;

    for (int i = 0; i < r->n_routes; i++)
        if (!top || r->routes[i].weight > top->weight)
            top = &r->routes[i];
    const struct job *j = top ? c->ledger->state.jobs[top->job] : NULL;
    if (!j || j->n_held == 0 || j->spec.workload >= c->estimator.n_workloads ||
        !counted_metrics(&r->counted, &m))
        return (struct serving_metrics){ .rate = 0 };
    const struct serving_estimate s = estimate_serving(&c->estimator, j->spec.workload,
                                                       c->ledger->state.gpus[j->gpus[0]].type, -1);
    m.rate *= r->n_routes * top->weight;
    m.t0_s = exp(s.ln_t0);
    m.a_s = exp(s.ln_a);
    m.c_s = isnan(s.ln_prefill) ? 0 : exp(s.ln_prefill);
    return m;
}

void service_build_table(struct cycle *c, struct service_record *r, double now_s)
{
    struct serving spec = service_serving(&c->ledger->state.jobs[r->id]->spec);

    if (now_s < r->built_s + BUILD_S)
        return;
    arrivals_advance(r->arrivals, now_s);
    int n_hours = arrivals_n_hours(r->arrivals);
    if (now_s < r->built_s + c->table_s && n_hours < BUILD_GROWTH * r->capacity.n_hours)
        return;
    const struct serving_metrics m = metrics_of(c, r);
    bool is_due = (n_hours > 0 || m.rate > 0) && c->solver.services != SERVICE_AUTOSCALE &&
                  !job_is_over(c->ledger->state.jobs[r->id]);
    if (is_due && c->on_table_due)
        c->on_table_due(c->owner, r->id);
    else if (is_due)
        table_make(&r->capacity, r->arrivals, &spec, &m);
    r->built_s = now_s;
}

bool services_want(const struct cycle *c)
{
    const struct state *st = &c->ledger->state;
    double now_s = clock_now_s(&c->clock);

    for (int i = 0; i < c->services->n; i++) {
        const struct service_record *r = &c->services->records[i];
        if (st->jobs[r->id]->state == JOB_WAITING &&
            fabs(service_demand(c, r, now_s) - r->asked) > DEMAND_STEP * r->asked)
            return true;
    }
    return false;
}

struct table_build *services_table_begin(const struct cycle *c, int service)
{
    const struct service_record *r = services_record(c, service);
    const struct job_spec *spec = &c->ledger->state.jobs[service]->spec;
    const struct serving promise = service_serving(spec);

    assert(r);    // of whom a table is due
    const struct serving_metrics m = metrics_of(c, r);
    return table_build_create(service, r->arrivals, arrivals_bin_s(promise.latency_s), &promise,
                              &m);
}

void services_table_end(struct cycle *c, struct table_build *b)
{
    struct service_record *r = services_record(c, b->service);

    if (r)
        r->capacity = b->result;
    table_build_destroy(b);
}

double services_next_s(const struct cycle *c)
{
    return c->services->n > 0 ? c->services->next_s : HUGE_VAL;
}

void services_reserve(const struct cycle *c, bool *is_busy)
{
    const struct state *st = &c->ledger->state;

    for (int i = 0; i < c->services->n; i++) {
        const struct service_record *r = &c->services->records[i];
        for (int k = 0; k < r->n_replicas; k++) {
            const struct job *j = st->jobs[r->replicas[k]];
            if (j->state == JOB_WAITING || (j->state == JOB_RUNNING && !isnan(j->drain_s)))
                is_busy[j->spec.gpu] = true;
        }
    }
}

bool services_now(const struct cycle *c, int service, struct service_now *out)
{
    const struct service_record *r = services_record(c, service);
    const struct state *st = &c->ledger->state;
    double now_s = clock_now_s(&c->clock);

    if (!r)
        return false;
    *out = (struct service_now){ .rate = demand_now(&r->demand, now_s),
                                 .demand = service_demand(c, r, now_s),
                                 .held = service_held(c, r, -1),
                                 .n_requests = r->sum_requests,
                                 .n_late = r->sum_late,
                                 .is_false = now_s - r->false_s < SHOWN_S,
                                 .heard_s = r->heard_s,
                                 .n_failures = r->n_failures,
                                 .retry_s = r->retry_s,
                                 .is_silent = isnan(r->heard_s),
                                 .is_careful = r->capacity.source == CAPACITY_CAREFUL,
                                 .is_flooding = now_s - r->flooded_s < SHOWN_S,
                                 .source = r->capacity.source,
                                 .n_hours = r->capacity.n_hours,
                                 .margin = r->capacity.margin,
                                 .load_s = service_load_s(c, r),
                                 .guard_until_s = r->guard_until_s };
    for (int i = 0; i < r->n_replicas; i++) {
        const struct job *j = st->jobs[r->replicas[i]];
        out->n_draining += !isnan(j->drain_s);
        out->n_ready += job_serves_now(j);
        out->n_starting += !job_is_over(j) && isnan(j->drain_s) && isnan(j->ready_s);
    }
    out->is_silent &= out->n_ready > 0;
    return true;
}

const struct service_route *services_routes(const struct cycle *c, int service, int *n)
{
    const struct service_record *r = services_record(c, service);

    *n = r ? r->n_routes : 0;
    return r ? r->routes : NULL;
}

double services_capacity(const struct cycle *c, int service, int type, int beside)
{
    const struct service_record *r = services_record(c, service);

    if (!r)
        return NAN;
    const struct service_view v = view_of(c, r);
    return held_at(c, &v, c->ledger->state.jobs[service]->spec.workload, type, beside);
}
