#include "cycle/services.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* A replica that is to go stays this long without a weight, so that whoever reads the endpoints has
 * seen it, and what is under way comes to its end.
 */
#define DRAIN_S 10.0

/* A start is paid back in so many times the time it takes: for so long a replica stays, and for
 * half an hour at the least.
 */
#define HOLD_LOADS 10.0
#define HOLD_LEAST_S 1800.0

/* Nobody is put elsewhere to save energy sooner than this after the service's last start. */
#define MOVE_EVERY_S 14400.0

/* After a failure the next start waits: a second, then twice as long each time, up to five minutes.
 * Who served this long has not failed to start; being ready is not enough, nor that others are.
 */
#define BACK_OFF_MOST_S 300.0
#define BACK_OFF_FORGET_S 600.0

/* Of a replica that loads for more than twice as long as it should, and a minute. */
#define NOT_READY "it did not become ready in time"

/* The guard's word holds for this long; the forecast remembers what it saw for longer. A late minute
 * is not waited for to its end; of less than this, the rate says little.
 */
#define GUARD_S 1800.0
#define GUARD_LEAST_S 10.0

/* Step times are believed to be at most so long, by as many standard deviations: nine times in ten.
 */
#define SERVICE_Z 1.28

/* What others do. */
#define PEAK_MARGIN 1.1
#define AUTOSCALE_BUSY 0.6

/* A decision is due when a demand has changed by this part of it. Looked at this often. */
#define DEMAND_STEP 0.05
#define TICK_S 10.0

/* What one replica says wrong is shown for so long, although others speak meanwhile. */
#define SHOWN_S 60.0

/* And so often while an engine has a replica that it may not be told to start yet. */
#define AWAIT_S 1.0

/* Weights are told anew when one has changed by more than this part of all. */
#define WEIGHT_STEP 0.02

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

static struct serving serving_of(const struct job_spec *s)
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
    struct serving spec = serving_of(&j->spec);

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

static double load_s_of(const struct cycle *c, const struct service_record *r)
{
    double said_s = c->ledger->state.jobs[r->id]->spec.terms->load_s;

    return r->load_s > 0 ? r->load_s : said_s > 0 ? said_s : SERVICE_LOAD_S;
}

/* ---- what is needed ---- */

static double hold_s_of(const struct cycle *c, const struct service_record *r)
{
    return fmax(HOLD_LOADS * load_s_of(c, r), HOLD_LEAST_S);
}

static double demand_of(const struct cycle *c, const struct service_record *r, double now_s)
{
    const struct job *j = c->ledger->state.jobs[r->id];
    double horizon_s = load_s_of(c, r) + hold_s_of(c, r);

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
        .demand = demand_of(c, r, clock_now_s(&c->clock)),
        .max_gpus = c->ledger->state.jobs[r->id]->spec.max_gpus,
        .load_s = load_s_of(c, r),
        .hold_s = hold_s_of(c, r),
        .may_move = !c->ledger->state.jobs[r->id]->spec.terms->is_unmoved &&
                    clock_now_s(&c->clock) >= r->started_s + MOVE_EVERY_S,
        .capacity = &r->capacity,
        .z = c->solver.services == SERVICE_AUTOSCALE ? 0 : SERVICE_Z,    // that one measures
        .busy_most = c->solver.services == SERVICE_AUTOSCALE ? AUTOSCALE_BUSY : 0,
    };
}

/* After a restart and with a new model the estimator has met nobody until it is refreshed. */
static void refresh_estimator(struct cycle *c)
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

/* What a replica holds where it is, beside whom it is; 0 where that is not known yet. */
static double held_by(const struct cycle *c, const struct service_record *r, int job)
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
            v->coming += held_by(c, r, r->replicas[i]);
            v->n_coming++;
        }
}

const struct service_view *services_views(struct cycle *c, struct arena *a)
{
    services_meet(c);
    struct services *s = c->services;
    if (s->n == 0)
        return NULL;
    refresh_estimator(c);
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

/* By those that take requests, but for one (-1: by all). */
static double held_without(const struct cycle *c, const struct service_record *r, int but)
{
    const struct state *st = &c->ledger->state;
    double sum = 0;

    for (int i = 0; i < r->n_replicas; i++)
        if (r->replicas[i] != but && is_staying(st, st->jobs[r->replicas[i]]))
            sum += held_by(c, r, r->replicas[i]);
    return sum;
}

static bool is_live(const struct job *j)
{
    return !job_is_over(j) && isnan(j->drain_s);
}

/* Replicas that serve or will. */
static int count_live(const struct cycle *c, const struct service_record *r)
{
    int n = 0;

    for (int i = 0; i < r->n_replicas; i++)
        n += is_live(c->ledger->state.jobs[r->replicas[i]]);
    return n;
}

/* Is there one that does not serve yet? */
static bool is_coming(const struct cycle *c, const struct service_record *r)
{
    for (int i = 0; i < r->n_replicas; i++) {
        const struct job *j = c->ledger->state.jobs[r->replicas[i]];
        if (is_live(j) && !job_serves_now(j))
            return true;
    }
    return false;
}

/* ---- hearing ---- */

/* Would the last minutes have been late where its replicas are, by cautious step times? Asked once
 * for each such time.
 */
static bool is_short(struct cycle *c, struct service_record *r, double now_s)
{
    const struct state *st = &c->ledger->state;
    const struct serving spec = serving_of(&st->jobs[r->id]->spec);
    struct guard_place at[SERVICE_GPUS_MOST];
    int n = 0;

    if (spec.is_llm || now_s < r->replayed_s + GUARD_RECENT_S)
        return false;
    r->replayed_s = now_s;
    for (int i = 0; i < r->n_routes && n < SERVICE_GPUS_MOST; i++) {
        const struct job *j = st->jobs[r->routes[i].job];
        if (!job_serves_now(j) || j->spec.workload >= c->estimator.n_workloads)
            continue;
        struct serving_estimate is = estimate_serving(&c->estimator, j->spec.workload,
                                                      st->gpus[j->gpus[0]].type, -1);
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
    if (c->solver.services == SERVICE_REPLAY && !is_coming(c, r) &&
        (is_late || is_short(c, r, now_s))) {
        double recent = r->requests / length_s;
        double want = guard_rate(held_without(c, r, -1), recent);
        r->guard = now_s < r->guard_until_s ? fmax(r->guard, want) : want;
        r->guard_until_s = now_s + GUARD_S;
    }
    r->minute_s = now_s;
    r->requests = r->late = 0;
}

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
    return services_learn(c, r, job, seen, out);
}

/* ---- acting ---- */

static int say(struct cycle *c, enum event_kind kind, int job, const char *reason, struct err *e)
{
    const struct event ev = { .kind = kind,
                              .time_s = clock_now_s(&c->clock),
                              .job = job,
                              .steps_done = c->ledger->state.jobs[job]->steps_done,
                              .reason = reason };

    return cycle_append(c, &ev, e);
}

static int add_replica(struct cycle *c, struct service_record *r, int gpu, struct err *e)
{
    const struct job *j = c->ledger->state.jobs[r->id];
    struct job_spec spec = j->spec;

    spec.kind = JOB_REPLICA;
    spec.service = r->id;
    spec.replica = r->next_replica++;
    spec.gpu = gpu;
    spec.n_gpus = spec.max_gpus = 1;
    spec.submit_s = clock_now_s(&c->clock);
    spec.key = spec.digest = NULL;
    spec.name = arena_printf(&c->arena, "%s.%d", j->spec.name, spec.replica);
    spec.port = c->choose_port ? c->choose_port(c->owner, gpu) : 0;
    const struct event ev = { .kind = EVENT_JOB_SUBMITTED, .time_s = spec.submit_s, .spec = &spec };
    int rc = cycle_append(c, &ev, e);
    services_meet(c);
    return rc;
}

static int drain(struct cycle *c, int job, const char *reason, struct err *e)
{
    return say(c, EVENT_REPLICA_DRAINING, job, reason, e);
}

/* Is somebody there whom the plan has elsewhere? It goes first, a replica when it has drained. */
static bool is_held_up(const struct snapshot *s, const struct plan *p, int gpu)
{
    const struct snapshot_gpu *g = &s->gpus[gpu];

    for (int i = 0; i < g->n_jobs; i++) {
        const struct plan_job *pj = &p->jobs[g->jobs[i]];
        if (!gpus_have(pj->gpus, pj->n_gpus, gpu))
            return true;
    }
    return false;
}

/* GPUs that the plan adds get a replica: as many as there may be, and one more at a time where
 * others are left for them.
 */
static int add_replicas(struct cycle *c, const struct snapshot *s, const struct plan *p, int job,
                        struct err *e)
{
    const struct snapshot_job *sj = &s->jobs[job];
    const struct plan_job *pj = &p->jobs[job];
    struct service_record *r = services_record(c, sj->id);
    int room = sj->spec->max_gpus + 1 - count_live(c, r), rc = 0;

    for (int i = 0; i < pj->n_gpus && rc == 0 && room > 0; i++) {
        if (gpus_have(sj->gpus, sj->n_held, pj->gpus[i]) || is_held_up(s, p, pj->gpus[i]))
            continue;
        rc = add_replica(c, r, pj->gpus[i], e);
        room--;
    }
    return rc;
}

/* The one that holds least of those that the plan may let go, and does (or any, where there are
 * more than may be); -1: there is none.
 */
static int least_of(const struct cycle *c, const struct service_record *r,
                    const struct snapshot_job *sj, const struct plan_job *pj, bool is_any)
{
    double least = INFINITY;
    int found = -1;

    for (int i = 0; i < sj->n_held; i++) {
        if (!job_serves_now(c->ledger->state.jobs[sj->replicas[i]]) ||
            (!is_any && gpus_have(pj->gpus, pj->n_gpus, sj->gpus[i])))
            continue;
        double held = held_by(c, r, sj->replicas[i]);
        if (held < least) {
            least = held;
            found = sj->replicas[i];
        }
    }
    return found;
}

/* A replica whose GPU the plan leaves goes once the others hold the demand; or, where not all of
 * them do, and there are more than may be, the least of them when all are ready.
 */
static int act_on(struct cycle *c, const struct snapshot *s, const struct plan *p, int service,
                  struct err *e)
{
    const struct snapshot_job *sj = &s->jobs[service];
    const struct plan_job *pj = &p->jobs[service];
    struct service_record *r = services_record(c, sj->id);
    int rc = 0;

    if (clock_now_s(&c->clock) >= r->retry_s)
        rc = add_replicas(c, s, p, service, e);
    for (int n = sj->n_held; n > 0 && rc == 0; n--) {
        bool is_over = count_live(c, r) > sj->spec->max_gpus && !is_coming(c, r);
        int job = least_of(c, r, sj, pj, is_over);
        if (job < 0 || (!is_over && held_without(c, r, job) < sj->service->demand))
            break;
        rc = drain(c, job, "not needed there any more", e);
    }
    return rc;
}

int services_act(struct cycle *c, const struct snapshot *s, const struct plan *p, struct err *e)
{
    int rc = 0;

    for (int j = 0; j < s->n_jobs && rc == 0; j++)
        if (s->jobs[j].service && s->jobs[j].spec->kind == JOB_SERVICE)
            rc = act_on(c, s, p, j, e);
    return rc < 0 ? rc : services_tick(c, e);
}

/* ---- what time asks for ---- */

static void note_failure(struct service_record *r, const struct job *j, double now_s)
{
    bool has_served = !isnan(j->ready_s) && now_s - j->ready_s > BACK_OFF_FORGET_S;

    r->n_failures = has_served ? 1 : r->n_failures + 1;
    r->retry_s = now_s + fmin(exp2(r->n_failures - 1), BACK_OFF_MOST_S);
}

/* A replica that is on disk and waits: start it, or let it go where that cannot be. */
static int start_waiting(struct cycle *c, struct service_record *r, const struct job *j,
                         struct err *e)
{
    int gpu = j->spec.gpu;
    const struct placement at = { .job = j->id, .n_gpus = 1, .gpus = &gpu };
    const struct state *st = &c->ledger->state;
    struct err why = { 0 };

    c->services->is_awaited |= executor_job_is_busy(&c->executor, j->id);
    if (executor_job_is_busy(&c->executor, j->id) || c->ledger->is_begun)
        return 0;
    if (!isnan(j->started_s)) {
        note_failure(r, j, clock_now_s(&c->clock));
        return say(c, EVENT_JOB_CANCELLED, j->id, j->reason, e);
    }
    if (st->jobs[r->id]->state != JOB_WAITING)
        return say(c, EVENT_JOB_CANCELLED, j->id, "its service has ended or is held", e);
    if (st->nodes[st->gpus[gpu].node].state != NODE_UP)
        return say(c, EVENT_JOB_CANCELLED, j->id, "its node is not up any more", e);
    int rc = executor_give(&c->executor, ORDER_START, &at, &why);
    if (rc == 0 || rc == -EAGAIN)    // an engine that does not answer, or is not ready for it
        return 0;
    log_warn("replica %s: %s", j->spec.name, why.text);
    note_failure(r, j, clock_now_s(&c->clock));
    return say(c, EVENT_JOB_CANCELLED, j->id,
               arena_printf(&c->arena, "it could not be started: %s", why.text), e);
}

/* When a replica that is not ready is given up. */
static double late_s(const struct cycle *c, const struct service_record *r, const struct job *j)
{
    return j->changed_s + 2 * fmax(load_s_of(c, r), SERVICE_LOAD_S) + 60;
}

/* One whose service has ended or is held, whose node is to be left, or that does not get ready. */
static int leave(struct cycle *c, const struct service_record *r, const struct job *j,
                 double demand, struct err *e)
{
    const struct state *st = &c->ledger->state;
    const struct job *of = st->jobs[r->id];
    bool is_up = st->nodes[st->gpus[j->gpus[0]].node].state == NODE_UP;

    if (job_is_over(of))
        return drain(c, j->id, "its service has ended", e);
    if (of->state == JOB_HELD)
        return drain(c, j->id, "its service is held", e);
    if (isnan(j->ready_s) && clock_now_s(&c->clock) >= late_s(c, r, j))
        return drain(c, j->id, NOT_READY, e);
    if (!is_up && held_without(c, r, j->id) >= demand)
        return drain(c, j->id, "its node is drained", e);
    return 0;
}

static int tick_replica(struct cycle *c, struct service_record *r, int job, double demand,
                        struct err *e)
{
    const struct job *j = c->ledger->state.jobs[job];
    double now_s = clock_now_s(&c->clock);

    if (j->state == JOB_WAITING)
        return start_waiting(c, r, j, e);
    if (j->state == JOB_HELD) {    // by the engine's own commands: nobody would release it
        note_failure(r, j, now_s);
        return say(c, EVENT_JOB_CANCELLED, job, j->reason ? j->reason : "held", e);
    }
    if (j->state != JOB_RUNNING)
        return 0;
    if (isnan(j->drain_s))
        return leave(c, r, j, demand, e);
    if (now_s < j->drain_s + (isnan(j->ready_s) ? 0 : DRAIN_S))
        return 0;
    if (isnan(j->ready_s) && c->ledger->state.jobs[r->id]->state == JOB_WAITING)
        note_failure(r, j, now_s);
    return say(c, EVENT_JOB_CANCELLED, job, j->reason ? j->reason : "drained", e);
}

/* Those that are over leave the list; how they ended is remembered. */
static void forget_ended(struct cycle *c, struct service_record *r)
{
    const struct state *st = &c->ledger->state;
    int n = 0;

    for (int i = 0; i < r->n_replicas; i++) {
        const struct job *j = r->replicas[i] < st->n_jobs ? st->jobs[r->replicas[i]] : NULL;
        bool is_one = j && j->spec.kind == JOB_REPLICA && j->spec.service == r->id;
        if (is_one && (j->state == JOB_FAILED || j->state == JOB_FINISHED))
            note_failure(r, j, j->changed_s);
        if (is_one && !isnan(j->ready_s) && !job_is_over(j)) {
            r->load_s = fmax(j->ready_s - j->changed_s, 1e-3);
            if (clock_now_s(&c->clock) - fmax(j->ready_s, r->retry_s) > BACK_OFF_FORGET_S)
                r->n_failures = 0;
        }
        if (is_one && !job_is_over(j))
            r->replicas[n++] = r->replicas[i];
    }
    r->n_replicas = n;
}

/* ---- weights ---- */

static bool routes_differ(const struct service_record *r, const struct service_route *now, int n)
{
    bool differ = n != r->n_routes;

    for (int i = 0; i < n && !differ; i++)
        differ = now[i].job != r->routes[i].job ||
                 fabs(now[i].weight - r->routes[i].weight) > WEIGHT_STEP;
    return differ;
}

/* By what each holds; who holds nothing for sure gets a small part where there is no other. */
static void tell_routes(struct cycle *c, struct service_record *r)
{
    const struct state *st = &c->ledger->state;
    struct service_route now[SERVICE_GPUS_MOST];
    double sum = 0;
    int n = 0;

    for (int i = 0; i < r->n_replicas && n < SERVICE_GPUS_MOST; i++)
        if (job_serves_now(st->jobs[r->replicas[i]])) {
            now[n] = (struct service_route){ .job = r->replicas[i],
                                             .capacity = held_by(c, r, r->replicas[i]) };
            sum += now[n++].capacity;
        }
    for (int i = 0; i < n; i++)
        now[i].weight = sum > 0 ? now[i].capacity / sum : 1.0 / n;
    if (!routes_differ(r, now, n))
        return;
    r->n_routes = 0;
    for (int i = 0; i < n; i++) {
        GROW(r->routes, r->n_routes, r->cap_routes);
        r->routes[r->n_routes++] = now[i];
    }
    if (c->on_routes)
        c->on_routes(c->owner, r->id, r->routes, r->n_routes);
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
    const struct serving_estimate s = estimate_serving(
        &c->estimator, j->spec.workload, c->ledger->state.gpus[j->gpus[0]].type, -1);
    m.rate *= r->n_routes * top->weight;
    m.t0_s = exp(s.ln_t0);
    m.a_s = exp(s.ln_a);
    m.c_s = isnan(s.ln_prefill) ? 0 : exp(s.ln_prefill);
    return m;
}

static void build_table(struct cycle *c, struct service_record *r, double now_s)
{
    struct serving spec = serving_of(&c->ledger->state.jobs[r->id]->spec);

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
            fabs(demand_of(c, r, now_s) - r->asked) > DEMAND_STEP * r->asked)
            return true;
    }
    return false;
}

struct table_build *services_table_begin(const struct cycle *c, int service)
{
    const struct service_record *r = services_record(c, service);
    const struct job_spec *spec = &c->ledger->state.jobs[service]->spec;
    const struct serving promise = serving_of(spec);

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

int services_tick(struct cycle *c, struct err *e)
{
    struct services *s = c->services;
    double now_s = clock_now_s(&c->clock);
    int rc = 0;

    if (c->ledger->state.version == s->version && now_s < s->next_s)
        return 0;
    services_meet(c);
    if (s->n > 0)
        refresh_estimator(c);
    s->is_awaited = false;
    for (int i = 0; i < s->n && rc >= 0; i++) {
        struct service_record *r = &s->records[i];
        forget_ended(c, r);
        build_table(c, r, now_s);
        double demand = demand_of(c, r, now_s);
        for (int k = 0; k < r->n_replicas && rc >= 0; k++)
            rc = tick_replica(c, r, r->replicas[k], demand, e);
        tell_routes(c, r);
    }
    s->version = c->ledger->state.version - c->ledger->is_begun;    // what waits for the disk waits
    s->next_s = s->n > 0 ? now_s + (s->is_awaited ? AWAIT_S : TICK_S) : HUGE_VAL;
    return rc;
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
                                 .demand = demand_of(c, r, now_s),
                                 .held = held_without(c, r, -1),
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
                                 .load_s = load_s_of(c, r),
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
