/* daemon.c - the daemon itself: status, events, health, description, metrics. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/text.h"
#include "catalog/cluster/job.h"
#include "daemon/config/version.h"
#include "daemon/api/api.h"
#include "daemon/service/feed.h"
#include "daemon/http/route.h"
#include "daemon/service/service.h"
#include "monitor/energy.h"
#include "monitor/watch.h"

/* ---- status ---- */

static void put_counts(struct api_text *t, const struct state *st)
{
    long n[JOB_CANCELLED + 1] = { 0 };

    for (int i = 0; i < st->n_jobs; i++)
        n[st->jobs[i]->state]++;
    api_put_open(t, "jobs", '{');
    for (int i = 0; i <= JOB_CANCELLED; i++)
        api_put_whole(t, job_state_name((enum job_state)i), n[i]);
    api_put_close(t, '}');
}

static void put_work(struct api_text *t, const struct service *s)
{
    const struct metrics *m = &s->metrics;
    double n = (double)m->n_measurements;

    api_put_whole(t, "decisions", (long long)m->n_decisions);
    api_put_whole(t, "fallbacks", (long long)m->n_fallbacks);
    api_put_whole(t, "certified", (long long)m->n_certified);
    api_put_number(t, "decision_s", m->last_s);
    api_put_number(t, "gap_w", m->gap.watts);
    api_put_number(t, "gap_ratio", m->gap.ratio);
    api_put_number(t, "gap_varying_ratio", m->gap.varying_ratio);
    api_put_whole(t, "moves", (long long)m->n_moves);
    api_put_time(t, "last_decision_s", s->last_decision_s);
    api_put_whole(t, "measurements", (long long)m->n_measurements);
    api_put_number(t, "error", m->sum_abs_error / n);
    api_put_number(t, "coverage", (double)m->n_covered / n);
    api_put_number(t, "acting_w", s->acting_w);
    api_put_number(t, "shadow_w", s->shadow_w);
    api_put_flag(t, "store_ok", !s->broken);
}

static void put_fact(struct api_text *t, const struct engine_fact *f)
{
    switch (f->kind) {
    case FACT_FLAG:
        api_put_flag(t, f->key, f->number != 0);
        break;
    case FACT_TEXT:
        api_put_text(t, f->key, f->text);
        break;
    case FACT_TIME:
        api_put_time(t, f->key, f->number);
        break;
    case FACT_COUNT:
    case FACT_GAUGE:
        api_put_whole(t, f->key, (long long)f->number);
    }
}

/* What the engine says of itself; this box says nothing. */
static void put_engine(struct api_text *t, const struct service *s)
{
    struct engine_fact facts[ENGINE_FACTS_MAX];
    const int n = executor_facts(&s->cycle.executor, facts);

    if (n == 0) {
        api_put_null(t, "slurm");
        return;
    }
    api_put_open(t, "slurm", '{');
    for (int i = 0; i < n; i++)
        if (facts[i].key)
            put_fact(t, &facts[i]);
    api_put_close(t, '}');
}

void api_status(struct request *r)
{
    const struct service *s = api_service(r);
    const struct state *st = &s->base.ledger.state;
    struct api_text t = { 0 };

    api_put_open(&t, NULL, '{');
    api_put_text(&t, "version", gogh_version);
    api_put_whole(&t, "pid", getpid());
    api_put_time(&t, "began_s", s->began_s);
    api_put_time(&t, "now_s", api_now_s(r));
    api_put_flag(&t, "ready", s->is_ready && !s->broken && !s->is_stopping);
    api_put_text(&t, "mode", config_modes[s->config.mode]);
    api_put_text(&t, "policy", s->config.policy);
    put_counts(&t, st);
    api_put_whole(&t, "nodes", st->n_nodes);
    api_put_whole(&t, "gpus", st->n_gpus);
    api_put_number(&t, "watts", s->watch ? service_watts(s) : (double)NAN);
    api_put_number(&t, "joules", s->energy ? energy_total_j(s->energy) : (double)NAN);
    api_put_number(&t, "delay_w", service_delay_w(s));
    put_work(&t, s);
    put_engine(&t, s);
    api_put_close(&t, '}');
    api_reply(r, 200, &t);
}

/* ---- events ---- */

/* What a listener that comes back has seen: its parameter, or what browsers send by themselves. */
void api_events(struct request *r)
{
    const char *seen = request_header(r, "Last-Event-ID");
    double after = request_number(r, "after", -1);
    const struct job *j = NULL;
    long seq;

    if (after < 0 && seen && text_to_long(slice_of(seen), 0, INT64_MAX, &seq) == 0)
        after = (double)seq;
    if (request_text(r, "job")) {
        j = api_find_job(r, "job");
        if (!j)
            return;
    }
    feed_open(api_service(r)->feed, r, (int64_t)after, j ? j->id : -1);
}

/* ---- is it well? ---- */

void api_health(struct request *r)
{
    reply_json(r, 200, json_pack("{s:b}", "ok", 1));
}

void api_ready(struct request *r)
{
    const struct service *s = api_service(r);

    if (s->is_stopping)
        reply_error(r, 503, "the daemon is stopping");
    else if (s->broken)
        reply_error(r, 503, "the store cannot be written: %s", s->broken->text);
    else if (!s->is_ready)
        reply_error(r, 503, "the daemon is starting");
    else
        reply_json(r, 200, json_pack("{s:b}", "ready", 1));
}

/* ---- what it can do, and what it did ---- */

/* Made once: the table does not change while the process lives. */
void api_openapi(struct request *r)
{
    static char *text;

    if (!text) {
        json_t *o = route_openapi(routes, n_routes);
        text = json_dumps(o, JSON_INDENT(2));
        json_decref(o);
    }
    reply_take(r, 200, "application/json", strdup(text), strlen(text));
}

void api_metrics(struct request *r)
{
    struct buf out;

    buf_init(&out, API_TEXT_MAX);
    metrics_print(api_service(r), &out);
    reply_take(r, 200, "text/plain; version=0.0.4; charset=utf-8", out.data, out.len);
}
