/* Services of a trace: they come, requests come to them as their traffic has it, and they end.
 *
 * The cycle makes replicas of them by events of its own; the world hears of each.
 */
#include <errno.h>
#include <math.h>

#include "base/err.h"
#include "estimate/serving.h"
#include "serve/continuous.h"
#include "sim/inner.h"
#include "sim/trace/arrivals.h"
#include "sim/trace/trace.h"
#include "sim/world/truth.h"
#include "sim/world/world.h"

#define PEAK_SLOT_S 300.0
#define PEAK_OF_S (7 * 86400.0)

struct sim_service {
    const struct trace_service *from;
    struct sim_workload *workload;
    struct service_arrivals *requests;
    int id;    // in state and world; -1: it has not come yet
    bool is_ended;
};

/* The busiest five minutes of its first week, in requests/s: what an owner says who has seen one.
 * Requests are drawn once for this, and once more as they come.
 */
static int peak_of(const struct sim *s, const struct sim_service *v, double *peak, struct err *e)
{
    struct service_arrivals *all;
    struct llm_request some[256];
    struct arena a;
    double slot = 0, n = 0, most = 0;

    arena_init(&a);
    int rc = service_arrivals_open(&a, s->options.trace->name, v->from, &all, e), got;
    while (rc == 0 && (got = service_arrivals_next(all, some, 256)) > 0) {
        for (int i = 0; i < got; i++) {
            double at = floor((some[i].at_s - v->from->at_s) / PEAK_SLOT_S);
            n = at == slot ? n + 1 : 1;
            slot = at;
            most = fmax(most, n);
        }
        if (slot * PEAK_SLOT_S >= PEAK_OF_S)
            break;
    }
    arena_release(&a);
    *peak = fmax(most / PEAK_SLOT_S, v->from->rate);
    return rc;
}

/* ---- coming and going ---- */

static int come(struct sim *s, struct sim_service *v, struct err *e)
{
    const struct trace_service *t = v->from;
    const struct service_terms terms = { .latency_s = t->latency_s,
                                         .ttft_s = t->ttft_s,
                                         .tpot_s = t->tpot_s,
                                         .max_batch = t->max_batch,
                                         .load_s = t->load_s };
    struct sim_workload *w = v->workload;
    double peak = 0;
    int rc = w->belief < 0 ? sim_meet_workload(s, w, e) : 0;

    if (rc == 0)
        rc = catalog_begin(&s->belief, e);
    if (rc == 0)
        rc = catalog_end(&s->belief, serving_meet(&s->belief, w->belief, e), e);
    if (rc == 0)
        rc = peak_of(s, v, &peak, e);
    const struct job_spec spec = { .name = t->name,
                                   .owner = t->owner ? t->owner : "trace",
                                   .kind = JOB_SERVICE,
                                   .workload = w->belief,
                                   .submit_s = s->clock.t_s,
                                   .rate = peak,
                                   .deadline_s = NAN,
                                   .n_gpus = 1,
                                   .max_gpus = t->max_gpus,
                                   .terms = &terms };
    const struct event ev = { .kind = EVENT_JOB_SUBMITTED, .time_s = s->clock.t_s, .spec = &spec };
    if (rc == 0)
        rc = ledger_append(&s->ledger, &ev, 1, e);
    if (rc < 0)
        return rc;
    v->id = s->ledger.state.n_jobs - 1;
    world_add_service(s->world,
                      &(struct world_service_spec){ .workload = w->truth,
                                                    .latency_s = service_latency_s(&terms),
                                                    .tpot_s = t->tpot_s,
                                                    .max_batch = t->max_batch,
                                                    .seed = (uint64_t)t->seed,
                                                    .traffic = v->requests,
                                                    .next = service_arrivals_next });
    return 0;
}

bool sim_services_live(const struct sim *s)
{
    for (int i = 0; i < s->options.trace->n_services; i++)
        if (!s->services[i].is_ended)
            return true;
    return false;
}

double sim_training_work(const struct sim *s)
{
    double sum = 0;

    if (!isnan(s->training_work))
        return s->training_work;
    for (int i = 0; i < s->next_arrival; i++) {
        struct world_outcome f;
        world_job_outcome(s->world, s->ids[i], &f);
        sum += f.is_inference ? 0 : f.work_s;
    }
    return sum;
}

static int go(struct sim *s, struct sim_service *v, struct err *e)
{
    const struct event ev = { .kind = EVENT_JOB_CANCELLED, .time_s = s->clock.t_s, .job = v->id };

    v->is_ended = true;
    if (!sim_services_live(s))
        s->training_work = sim_training_work(s);
    world_end_service(s->world, v->id);
    return ledger_append(&s->ledger, &ev, 1, e);
}

double sim_services_next_s(const struct sim *s)
{
    double next_s = services_next_s(&s->cycle);

    for (int i = 0; i < s->options.trace->n_services; i++) {
        const struct sim_service *v = &s->services[i];
        if (!v->is_ended)
            next_s = fmin(next_s, v->id < 0 ? v->from->at_s : service_arrivals_end_s(v->requests));
    }
    return fmax(next_s, s->clock.t_s);
}

int sim_services_turn(struct sim *s, struct err *e)
{
    int rc = 0;

    if (s->options.trace->n_services == 0)
        return 0;
    for (int i = 0; i < s->options.trace->n_services && rc == 0; i++) {
        struct sim_service *v = &s->services[i];
        if (v->id < 0 && v->from->at_s <= s->clock.t_s)
            rc = come(s, v, e);
        else if (v->id >= 0 && !v->is_ended && service_arrivals_end_s(v->requests) <= s->clock.t_s)
            rc = go(s, v, e);
    }
    return rc < 0 ? rc : services_tick(&s->cycle, e);
}

/* ---- what the cycle does for them ---- */

static const struct sim_service *service_at(const struct sim *s, int id)
{
    int i = 0;

    while (s->services[i].id != id)
        i++;
    return &s->services[i];
}

/* A replica is there for the world too, from the event on. */
static void tell_world(struct sim *s, const struct event *ev)
{
    const struct job *j =
        s->ledger.state
            .jobs[ev->kind == EVENT_JOB_SUBMITTED ? s->ledger.state.n_jobs - 1 : ev->job];
    const struct placement at = { .job = j->id };
    struct err e = { 0 };

    if (j->spec.kind != JOB_REPLICA)
        return;
    const struct sim_service *v = service_at(s, j->spec.service);
    if (ev->kind == EVENT_JOB_SUBMITTED)
        world_submit(s->world, &(struct world_job_spec){ .workload = v->workload->truth,
                                                         .is_inference = true,
                                                         .reference_speed = 1,
                                                         .max_gpus = 1,
                                                         .is_replica = true,
                                                         .service = j->spec.service,
                                                         .replica = j->spec.replica,
                                                         .load_s = v->from->load_s });
    else if (ev->kind == EVENT_JOB_CANCELLED)
        (void)executor_give(&s->cycle.executor, ORDER_CANCEL, &at, &e);
}

static int append(void *self, const struct event *ev, struct err *e)
{
    struct sim *s = self;
    int rc = ledger_append(&s->ledger, ev, 1, e);

    if (rc == 0 && (ev->kind == EVENT_JOB_SUBMITTED || ev->kind == EVENT_JOB_CANCELLED))
        tell_world(s, ev);
    return rc;
}

static void on_routes(void *self, int service, const struct service_route *routes, int n)
{
    struct sim *s = self;
    int jobs[SERVICE_GPUS_MOST];
    double weights[SERVICE_GPUS_MOST];

    for (int i = 0; i < n; i++) {
        jobs[i] = routes[i].job;
        weights[i] = routes[i].weight;
    }
    world_set_weights(s->world, service, jobs, weights, n);
}

static void on_plan(void *self, const struct lowered *asked, const struct plan *p)
{
    struct sim *s = self;

    if (s->options.on_plan)
        s->options.on_plan(s->options.owner, asked, p);
}

/* Tables of weeks of twenty services would take longer than all that they serve. */
#define TABLE_S (12 * 3600.0)

/* A language model writes text; of another server nobody knows what a prompt costs. */
static int check_kind(const struct sim *s, const struct sim_service *v, struct err *e)
{
    const struct catalog *c = s->options.truth->catalog;
    const struct workload *w = &c->workloads[v->workload->truth];

    if (!(v->from->ttft_s > 0) || !isnan(serving_prefill_s(w, &c->types[0])))
        return 0;
    return err_set(e, EINVAL,
                   "%s:%d: service %s promises ttft= and tpot=, and '%s' writes no text: take a "
                   "language model, like llama-8b, or promise p99=",
                   s->options.trace->name, v->from->line, v->from->name, w->name);
}

int sim_services_open(struct sim *s, struct err *e)
{
    const struct trace *t = s->options.trace;
    int rc = 0;

    s->training_work = NAN;
    if (t->n_services == 0)
        return 0;
    s->services = ARENA_ARRAY(&s->arena, struct sim_service, (size_t)t->n_services);
    for (int i = 0; i < t->n_services && rc == 0; i++) {
        struct sim_service *v = &s->services[i];
        v->from = &t->services[i];
        v->workload = &s->workloads[s->service_workloads[i]];
        v->id = -1;
        rc = check_kind(s, v, e);
        if (rc == 0)
            rc = service_arrivals_open(&s->arena, t->name, v->from, &v->requests, e);
    }
    s->cycle.table_s = TABLE_S;
    s->cycle.append = append;
    s->cycle.on_routes = on_routes;
    s->cycle.on_plan = on_plan;
    s->cycle.owner = s;
    return rc;
}
