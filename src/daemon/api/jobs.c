/* jobs.c - jobs: list, submit, show, cancel, hold, release. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/text/text.h"
#include "catalog/cluster/job.h"
#include "daemon/api/api.h"
#include "daemon/http/shapes.h"
#include "daemon/service/job_json.h"
#include "daemon/service/service.h"
#include "daemon/submit/submit.h"

static const struct state *state_of(const struct request *r)
{
    return &api_service(r)->base.ledger.state;
}

static void reply_job(struct request *r, int status, int id)
{
    struct api_text t = { 0 };

    job_put_whole(&t, NULL, api_service(r), state_of(r)->jobs[id], api_now_s(r));
    api_reply(r, status, &t);
}

/* ---- list ---- */

struct filter {
    int state;            // -1: any
    const char *owner;    // NULL: any
};

static bool passes(const struct filter *f, const struct job *j)
{
    return (f->state < 0 || (int)j->state == f->state) &&
           (!f->owner || (j->spec.owner && strcmp(j->spec.owner, f->owner) == 0));
}

static struct filter filter_asked(const struct request *r)
{
    const char *state = request_text(r, "state");

    return (struct filter){ .state = state ? job_state_parse(state) : -1,
                            .owner = request_text(r, "owner") };
}

void api_list_jobs(struct request *r)
{
    const struct service *s = api_service(r);
    const struct state *st = state_of(r);
    struct filter f = filter_asked(r);
    long after = (long)request_number(r, "after", -1);
    long limit = (long)request_number(r, "limit", PAGE_DEFAULT);
    long total = 0, n = 0, last = -1;
    bool is_more = false;
    double now_s = api_now_s(r);
    struct api_text t = { 0 };

    api_put_open(&t, NULL, '{');
    api_put_open(&t, "jobs", '[');
    for (int i = 0; i < st->n_jobs; i++) {
        if (!passes(&f, st->jobs[i]))
            continue;
        total++;
        is_more |= i > after && n == limit;
        if (i <= after || n == limit)
            continue;
        job_put(&t, NULL, s, st->jobs[i], now_s);
        last = i;
        n++;
    }
    api_end_page(&t, total, is_more ? last : -1);
    api_reply(r, 200, &t);
}

void api_show_job(struct request *r)
{
    const struct job *j = api_find_job(r, "id");

    if (j)
        reply_job(r, 200, j->id);
}

/* ---- submit ---- */

bool api_only_watches(struct request *r)
{
    const char *why = api_service(r)->cycle.executor.only_watches;

    if (why)
        reply_error(r, 409, "%s", why);
    return why;
}

void api_submit_job(struct request *r)
{
    struct service *s = api_service(r);
    struct submit_context context = { .caller = &r->caller,
                                      .catalog = &s->base.catalog,
                                      .state = state_of(r),
                                      .estimator = &s->cycle.estimator,
                                      .now_s = api_now_s(r),
                                      .wants_even = s->cycle.executor.needs_even_gangs,
                                      .may_run_as = s->cycle.executor.may_run_as,
                                      .account = account_find };
    struct submit want;
    struct err e = { 0 };
    int id = -1;

    if (api_only_watches(r))
        return;
    int rc = submit_read(&r->arena, &context, r->body, r->key, &want, &e);

    if (rc == -ENOTUNIQ) {
        reply_error(r, 422, "%s", e.text);
        return;
    }
    if (rc == 0 && want.again >= 0) {
        reply_job(r, 200, want.again);
        return;
    }
    if (rc == 0)
        rc = service_submit(s, &want, &id, &e);
    if (rc < 0) {
        reply_err(r, &e);
        return;
    }
    reply_location(r, arena_printf(&r->arena, "/v1/jobs/%d", id));
    reply_job(r, 201, id);
}

/* ---- cancel, hold, release ---- */

bool api_may_change(struct request *r, const struct job *j, enum event_kind kind, const char *what)
{
    bool is_own = r->caller.owner && j->spec.owner && strcmp(r->caller.owner, j->spec.owner) == 0;
    if (!is_own && r->caller.scope < SCOPE_OPERATE) {
        reply_error(r, 403, "job %d is of '%s'; changing others' jobs takes the scope 'operate'",
                    j->id, j->spec.owner ? j->spec.owner : "nobody");
        return false;
    }
    if (j->spec.kind == JOB_REPLICA) {
        reply_error(r, 409, "job %d, '%.100s', is a replica: it comes and goes with service %d",
                    j->id, j->spec.name, j->spec.service);
        return false;
    }
    if (!state_expects(state_of(r), kind, j->id)) {
        reply_error(r, 409, "job %d, '%.100s', is %s: %s", j->id, j->spec.name,
                    job_state_name(j->state), what);
        return false;
    }
    return true;
}

/* The job, where it may be changed so; NULL: the answer is given. */
static const struct job *job_to_change(struct request *r, enum event_kind kind, const char *what)
{
    const struct job *j = api_only_watches(r) ? NULL : api_find_job(r, "id");

    return j && api_may_change(r, j, kind, what) ? j : NULL;
}

void api_cancel_job(struct request *r)
{
    const struct job *j = job_to_change(r, EVENT_JOB_CANCELLED, "it has ended already");
    struct err e = { 0 };

    if (!j)
        return;
    int id = j->id;
    if (service_cancel(api_service(r), id, &e) < 0)
        reply_err(r, &e);
    else
        reply_job(r, 200, id);
}

/* The job that was changed; -1: none, and it is said. */
static int change(struct request *r, enum event_kind kind, const char *what)
{
    const struct job *j = job_to_change(r, kind, what);
    struct err e = { 0 };

    if (!j)
        return -1;
    struct event ev = {
        .kind = kind, .time_s = api_now_s(r), .job = j->id, .steps_done = j->steps_done
    };
    if (service_append(api_service(r), &ev, &e) < 0) {
        reply_err(r, &e);
        return -1;
    }
    reply_job(r, 200, ev.job);
    return ev.job;
}

/* A start of it may be under way: held now, it must not come to run. */
void api_hold_job(struct request *r)
{
    const struct executor *x = &api_service(r)->cycle.executor;
    struct placement p = { .job = change(r, EVENT_JOB_HELD, "only jobs that wait can be held") };
    struct err e = { 0 };

    if (p.job >= 0)
        (void)executor_give(x, ORDER_STOP, &p, &e);    // refused where nothing is under way
}

void api_release_job(struct request *r)
{
    change(r, EVENT_JOB_RELEASED, "only jobs that are held can be released");
}

/* ---- shared ---- */

struct service *api_service(const struct request *r)
{
    return r->service;
}

double api_now_s(const struct request *r)
{
    return clock_now_s(&api_service(r)->clock);
}

void api_end_page(struct api_text *t, long total, long next)
{
    api_put_close(t, ']');
    api_put_whole(t, "total", total);
    if (next >= 0)
        api_put_whole(t, "next", next);
    else
        api_put_null(t, "next");
    api_put_close(t, '}');
}

void api_reply(struct request *r, int status, struct api_text *t)
{
    reply_take(r, status, "application/json", t->data, t->len);
    *t = (struct api_text){ 0 };    // the answer has the text now
}

/* "s17" is the job that the engine calls 17. */
static int find_by_number(const struct service *s, const char *asked)
{
    long number;

    if (asked[0] != 's' || text_to_long(slice_of(asked + 1), 1, INT_MAX, &number) < 0)
        return -1;
    return executor_find_number(&s->cycle.executor, number);
}

const struct job *api_find_job(struct request *r, const char *name)
{
    const struct state *st = state_of(r);
    const char *asked = request_text(r, name);
    long id = -1;

    if (text_to_long(slice_of(asked), 0, st->n_jobs - 1, &id) < 0)
        id = find_by_number(api_service(r), asked);
    if (id < 0)
        id = state_find_job(st, asked);
    if (id < 0) {
        reply_error(r, 404, "there is no job '%.100s'; 'gogh jobs' lists them", asked);
        return NULL;
    }
    return st->jobs[id];
}
