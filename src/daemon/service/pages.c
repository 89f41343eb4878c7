/* What replicas that have a Prometheus page serve: told as if they had reported it. Those that also
 * report are not counted twice (watch_served).
 */
#include <math.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/grow.h"
#include "base/log.h"
#include "daemon/service/inner.h"
#include "daemon/service/upkeep.h"
#include "monitor/servers/scraper.h"
#include "monitor/watch.h"

#define EVERY_S 10.0    // as often as what is served is judged (cycle/services.c)

struct page_owner {
    int job;
    bool is_warned;    // that its page is of no use
};

struct pages {
    struct service *service;
    struct scrape_table table;
    struct scraper *scraper;
    struct page_owner *owners;    // (n) replicas that are asked
    int n, cap;
};

static bool is_owner(const struct state *st, int job)
{
    const struct job *j = job < st->n_jobs ? st->jobs[job] : NULL;

    return j && j->spec.kind == JOB_REPLICA && j->state == JOB_RUNNING && j->spec.terms->metrics;
}

static struct page_owner *find(const struct pages *p, int job)
{
    for (int i = 0; i < p->n; i++)
        if (p->owners[i].job == job)
            return &p->owners[i];
    return NULL;
}

/* While it loads there may be no page yet. */
static void warn(struct page_owner *o, const struct job *j, const struct err *why)
{
    if (!o->is_warned && !isnan(j->ready_s))
        log_warn("replica %s: %s", j->spec.name, why->text);
    o->is_warned |= !isnan(j->ready_s);
}

static bool on_page(void *self, int job, const struct served *served, const struct err *why)
{
    struct pages *p = self;
    const struct state *st = &p->service->base.ledger.state;
    struct page_owner *o = find(p, job);

    if (!o || !is_owner(st, job))
        return false;
    if (!served) {
        warn(o, st->jobs[job], why);
        return false;
    }
    struct served told = *served;
    told.is_ready = !st->jobs[job]->spec.terms->probe;    // else that says when it is
    o->is_warned = false;
    return watch_served(p->service->watch, job, &told);
}

static void leave_ended(struct pages *p)
{
    for (int i = p->n - 1; i >= 0; i--) {
        if (is_owner(&p->service->base.ledger.state, p->owners[i].job))
            continue;
        scraper_leave(p->scraper, p->owners[i].job);
        p->owners[i] = p->owners[--p->n];
    }
}

static void begin(struct pages *p, const struct job *j)
{
    const struct service_terms *t = j->spec.terms;
    char *url = endpoints_url(p->service, j, t->metrics);

    if (!url)
        return;
    scraper_watch(p->scraper, j->id, url,
                  &(struct scrape_promise){ t->latency_s, t->ttft_s, t->tpot_s });
    GROW(p->owners, p->n, p->cap);
    p->owners[p->n++] = (struct page_owner){ .job = j->id };
    free(url);
}

void pages_is_safe(struct pages *p)
{
    const struct state *st = &p->service->base.ledger.state;

    leave_ended(p);
    for (int i = 0; i < st->n_running; i++)
        if (is_owner(st, st->running[i]) && !find(p, st->running[i]))
            begin(p, st->jobs[st->running[i]]);
}

int pages_create(struct service *s, struct pages **out, struct err *e)
{
    struct pages *p = heap_array(1, sizeof *p);

    p->service = s;
    *out = p;
    int rc = scrape_table_load(s->config.scrape_table, &p->table, e);
    return rc < 0 ? rc : scraper_create(s->loop, &p->table, EVERY_S, on_page, p, &p->scraper, e);
}

void pages_destroy(struct pages *p)
{
    scraper_destroy(p->scraper);
    free(p->owners);
    free(p);
}
