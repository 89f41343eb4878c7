/* accounts.c - promises kept and broken, and what was used: to the store and back. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/grow.h"
#include "base/log.h"
#include "daemon/service/job_json.h"
#include "daemon/service/record.h"
#include "daemon/service/inner.h"
#include "monitor/energy.h"
#include "monitor/watch.h"

/* ---- promises ---- */

static void account_job(struct service *s, const struct job *j, double from_s, double to_s)
{
    double need = job_need(j, to_s);
    struct watch_job w;

    if (need <= 0)
        return;
    if (j->state != JOB_RUNNING) {
        energy_promise(s->energy, j->id, from_s, to_s, false);
        return;
    }
    if (watch_job(s->watch, j->id, &w) && !isnan(w.speed))
        energy_promise(s->energy, j->id, from_s, to_s, w.speed >= (1 - PROMISE_SLACK) * need);
}

void service_account(struct service *s)
{
    const struct state *st = &s->base.ledger.state;
    double from_s = s->inner->accounted_s, now_s = watch_now_s(s->watch);

    s->inner->accounted_s = now_s;
    if (!(now_s > from_s) || now_s - from_s > 60)
        return;    // the clock was set, or we slept: nothing is known of that time
    for (int i = 0; i < st->n_running; i++)
        account_job(s, st->jobs[st->running[i]], from_s, now_s);
    for (int i = st->first_waiting; i >= 0; i = st->jobs[i]->next_waiting)
        account_job(s, st->jobs[i], from_s, now_s);
}

/* ---- usage ---- */

struct flush {
    struct service *service;
    struct err err;
};

static int put_usage(void *self, const struct row_usage *r)
{
    struct flush *f = self;

    return store_add_usage(f->service->base.store, r, &f->err);
}

void service_flush(struct service *s)
{
    struct flush f = { .service = s };

    if (s->broken || !s->has_earlier_usage || service_begin(s, &f.err) < 0)
        return;
    s->flushed_s = clock_now_s(&s->clock);
    int rc = energy_take(s->energy, watch_now_s(s->watch), put_usage, &f);
    record_energy(s->record, s->flushed_s, s->energy);
    if (rc < 0)
        service_undo(s, &f.err);
    else
        service_commit(s);
    if (rc == 0 && s->broken)
        energy_take_back(s->energy);
}

/* ---- what was used before this process began ---- */

/* On a worker with a connection of its own, since years of hours take long to add up. */
struct earlier_usage {
    struct service *service;
    char *path;
    double *job_j;    // (n_jobs)
    int n_jobs, cap;
    int rc;
    struct err err;
};

static int add_row(void *self, const struct row_usage *r)
{
    struct earlier_usage *p = self;

    if (r->job < 0 || r->job >= INT32_MAX)
        return 0;
    while (p->n_jobs <= r->job) {
        GROW(p->job_j, p->n_jobs, p->cap);
        p->job_j[p->n_jobs++] = 0;
    }
    p->job_j[r->job] += r->active_j + r->idle_j;
    return 0;
}

static void read_earlier(void *self)
{
    struct earlier_usage *p = self;
    struct store *store;

    p->rc = store_open(p->path, STORE_READ, &store, &p->err);
    if (p->rc < 0)
        return;
    p->rc = store_each_usage(store, 0, INT64_MAX, add_row, p, &p->err);
    store_close(store);
}

static void take_earlier(void *self)
{
    struct earlier_usage *p = self;

    if (p->rc < 0)
        log_warn("what jobs used before this start is not known: %s", p->err.text);
    for (int i = 0; i < p->n_jobs && p->rc == 0; i++)
        energy_add_past(p->service->energy, i, p->job_j[i]);
    p->service->has_earlier_usage = true;
    free(p->job_j);
    free(p->path);
    free(p);
}

/* Before this process writes any rows of its own: service_flush waits for it. */
void service_recall_usage(struct service *s)
{
    struct earlier_usage *p = heap_array(1, sizeof *p);

    p->service = s;
    p->path = strdup(s->config.store);
    loop_work(s->loop, "usage so far", read_earlier, take_earlier, p);
}
