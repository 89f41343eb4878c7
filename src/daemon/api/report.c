/* report.c - what a period cost, and what another policy would have cost.
 *
 *     handler --> worker: usage rows --> loop --> child: names, hindsight --> loop: answer
 *
 * A worker reads with a connection of its own: years of hours take long, and a store's connection
 * does not live through a fork, so the child that simulates touches none.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/grow.h"
#include "base/text/json.h"
#include "daemon/api/api.h"
#include "daemon/service/decide.h"
#include "daemon/api/usage.h"
#include "daemon/service/service.h"
#include "sim/hindsight.h"

#define PERIOD_S (30 * 86400.0)
#define FLUSH_S 1.0    // a report is at most this far behind

/* Jobs that are run through once more, the newest of a period; of a report with more nothing is
 * told. (`gogh bench study`: 1,000 jobs on 108 GPUs take 12 s under 'gogh'.)
 */
enum { HINDSIGHT_JOBS = 2000 };
#define HINDSIGHT_LIMIT_S 120.0
#define PARTS_AT_ONCE 10000    // of usage, that are added up on the loop: some milliseconds

/* One question on its way. On the heap: it may outlive its request when the daemon stops. */
struct asked {
    struct service *service;
    struct request *request;
    double from_s, to_s;
    enum usage_by by;
    bool is_hindsight;    // the whole answer is the hindsight
    bool is_worth_it;     // to look back
    char *path;           // of the store
    int rc;
    struct err err;
    struct usage usage;
    json_t *report;    // so far
};

static void asked_free(struct asked *q)
{
    usage_release(&q->usage);
    json_decref(q->report);
    free(q->path);
    free(q);
}

/* ---- in the child, or without one ---- */

static json_t *run_json(const struct hindsight_run *h)
{
    return json_pack("{s:s, s:i, s:f, s:f, s:o, s:o, s:o}", "policy", h->policy, "finished",
                     h->n_finished, "energy_j", h->energy_j, "work_s", h->work_s, "joules_per_work",
                     json_number_or_null(h->joules_per_work), "promise_attainment",
                     json_number_or_null(h->promise_attainment), "mean_jct_s",
                     json_number_or_null(h->mean_jct_s));
}

/* The policies are those of the configuration: ours, and what the site does without us. */
static json_t *look_back(const struct asked *q, struct service *s, struct err *e)
{
    const char *policies[] = { s->config.policy, s->config.shadow_policy };
    struct hindsight_run runs[2];
    struct arena a;
    json_t *o = NULL;

    arena_init(&a);
    estimate_refresh(&s->cycle.estimator);    // the child's own: workloads may be newer than it
    int rc = hindsight_run(&a,
                           &(struct hindsight){ .state = &s->base.ledger.state,
                                                .catalog = &s->base.catalog,
                                                .est = &s->cycle.estimator,
                                                .settings = &s->config.cluster.settings,
                                                .from_s = q->from_s,
                                                .to_s = q->to_s,
                                                .n_jobs_max = HINDSIGHT_JOBS,
                                                .policies = policies,
                                                .n_policies = 2 },
                           runs, e);
    if (rc == 0)
        o = json_pack("{s:f, s:f, s:i, s:[o, o], s:o, s:f}", "from_s", q->from_s, "to_s", q->to_s,
                      "jobs", runs[0].n_jobs, "runs", run_json(&runs[0]), run_json(&runs[1]),
                      "saved",
                      json_number_or_null(1 - runs[0].joules_per_work / runs[1].joules_per_work),
                      "measured_j", usage_joules(&q->usage.total));
    arena_release(&a);
    return o;
}

static void begin_report(struct asked *q, const struct service *s)
{
    q->report = usage_json(&q->usage, q->by, &s->base.ledger.state, &s->base.catalog);
    json_object_set_new(q->report, "from_s", json_real(q->from_s));
    json_object_set_new(q->report, "to_s", json_real(q->to_s));
    json_object_set_new(q->report, "services",
                        usage_services_json(&q->usage, &s->base.ledger.state, q->from_s, q->to_s));
    json_object_set_new(q->report, "by", json_string(usage_by_names[q->by]));
}

static json_t *work(void *self, struct service *s, struct buf *raw, struct err *e)
{
    struct asked *q = self;
    struct err none = { 0 };
    json_t *saved;

    (void)raw;
    if (q->is_hindsight)
        return look_back(q, s, e);
    begin_report(q, s);
    saved = q->is_worth_it ? look_back(q, s, &none) : NULL;
    json_object_set_new(q->report, "saved", saved ? saved : json_null());
    return json_incref(q->report);
}

/* ---- on the loop's thread ---- */

static void on_worked(void *self, json_t *result, const struct buf *raw, const struct err *failed)
{
    struct asked *q = self;

    (void)raw;
    if (result) {
        reply_json(q->request, 200, json_incref(result));
    } else if (q->is_hindsight) {
        reply_err(q->request, failed);
    } else {    // a report there is in any case
        begin_report(q, q->service);
        json_object_set_new(q->report, "saved", json_null());
        reply_json(q->request, 200, json_incref(q->report));
    }
    asked_free(q);
}

static int count_jobs(const struct asked *q)
{
    const struct state *st = &q->service->base.ledger.state;
    int n = 0;

    for (int i = 0; i < st->n_jobs; i++)
        n += st->jobs[i]->spec.submit_s >= q->from_s && st->jobs[i]->spec.submit_s < q->to_s;
    return n;
}

static void on_read(void *self)
{
    struct asked *q = self;
    int n = count_jobs(q);
    struct err e = { 0 };

    if (q->service->is_stopping) {    // its request was answered with that
        asked_free(q);
        return;
    }
    if (q->rc < 0) {
        reply_error(q->request, 503, "the store: %s", q->err.text);
        asked_free(q);
        return;
    }
    q->is_worth_it = q->is_hindsight || (n > 0 && n <= HINDSIGHT_JOBS);
    int rc = q->is_worth_it || q->usage.n_parts > PARTS_AT_ONCE
                 ? decider_work(q->service->decider, HINDSIGHT_LIMIT_S, work, on_worked, q, &e)
                 : -EAGAIN;
    if (rc == -EAGAIN && q->is_hindsight) {
        reply_error(q->request, 429, "%s", e.text);
        asked_free(q);
    } else if (rc < 0) {
        on_worked(q, NULL, NULL, &e);
    }
}

/* ---- on a worker ---- */

static void read_usage(void *self)
{
    struct asked *q = self;

    q->rc = usage_read(&q->usage, q->path, q->from_s, q->to_s, &q->err);
}

static void ask(struct request *r, bool is_hindsight)
{
    struct service *s = api_service(r);
    double to_s = request_number(r, "to", api_now_s(r));
    double from_s = request_number(r, "from", to_s - PERIOD_S);
    const char *by = request_text(r, "by");

    if (!(from_s < to_s)) {
        reply_error(r, 400, "from: want a time before the period's end");
        return;
    }
    struct asked *q = heap_array(1, sizeof *q);
    q->service = s;
    q->request = r;
    q->from_s = from_s;
    q->to_s = to_s;
    q->by = by ? (enum usage_by)usage_by_name(by) : BY_OWNER;
    q->is_hindsight = is_hindsight;
    q->path = strdup(s->config.store);
    usage_init(&q->usage);
    if (!(api_now_s(r) - s->flushed_s < FLUSH_S))    // or never was
        service_flush(s);
    loop_work(s->loop, "usage of a period", read_usage, on_read, q);
}

void api_report(struct request *r)
{
    ask(r, false);
}

void api_shadow(struct request *r)
{
    ask(r, true);
}
