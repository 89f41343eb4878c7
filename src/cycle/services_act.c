/* Replicas come and go: as a plan has it, and as time asks for it; and where requests go. */
#include <errno.h>
#include <math.h>

#include "act/executor.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/log.h"
#include "catalog/catalog.h"
#include "catalog/cluster/ledger.h"
#include "catalog/cluster/snapshot.h"
#include "cycle/inner.h"
#include "cycle/services_inner.h"

/* A replica that is to go stays this long without a weight, so that whoever reads the endpoints has
 * seen it, and what is under way comes to its end.
 */
#define DRAIN_S 10.0

/* After a failure the next start waits: a second, then twice as long each time, up to five minutes.
 * Who served this long has not failed to start; being ready is not enough, nor that others are.
 */
#define BACK_OFF_MOST_S 300.0
#define BACK_OFF_FORGET_S 600.0

/* Of a replica that loads for more than twice as long as it should, and a minute. */
#define NOT_READY "it did not become ready in time"

/* Looked at this often, and so often while an engine has a replica that it may not be told to start
 * yet.
 */
#define TICK_S 10.0
#define AWAIT_S 1.0

/* Weights are told anew when one has changed by more than this part of all. */
#define WEIGHT_STEP 0.02

/* ---- as a plan has it ---- */

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
    int room = sj->spec->max_gpus + 1 - service_n_live(c, r), rc = 0;

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
        double held = service_held_by(c, r, sj->replicas[i]);
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
        bool is_over = service_n_live(c, r) > sj->spec->max_gpus && !service_is_coming(c, r);
        int job = least_of(c, r, sj, pj, is_over);
        if (job < 0 || (!is_over && service_held(c, r, job) < sj->service->demand))
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
    return j->changed_s + 2 * fmax(service_load_s(c, r), SERVICE_LOAD_S) + 60;
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
    if (!is_up && service_held(c, r, j->id) >= demand)
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
                                             .capacity = service_held_by(c, r, r->replicas[i]) };
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

int services_tick(struct cycle *c, struct err *e)
{
    struct services *s = c->services;
    double now_s = clock_now_s(&c->clock);
    int rc = 0;

    if (c->ledger->state.version == s->version && now_s < s->next_s)
        return 0;
    services_meet(c);
    if (s->n > 0)
        services_refresh(c);
    s->is_awaited = false;
    for (int i = 0; i < s->n && rc >= 0; i++) {
        struct service_record *r = &s->records[i];
        forget_ended(c, r);
        service_build_table(c, r, now_s);
        double demand = service_demand(c, r, now_s);
        for (int k = 0; k < r->n_replicas && rc >= 0; k++)
            rc = tick_replica(c, r, r->replicas[k], demand, e);
        tell_routes(c, r);
    }
    s->version = c->ledger->state.version - c->ledger->is_begun;    // what waits for the disk waits
    s->next_s = s->n > 0 ? now_s + (s->is_awaited ? AWAIT_S : TICK_S) : HUGE_VAL;
    return rc;
}
