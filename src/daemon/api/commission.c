/* commission.c - which measurements would teach the site most. */
#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/grow.h"
#include "catalog/cluster/job.h"
#include "daemon/api/api.h"
#include "daemon/service/decide.h"
#include "daemon/service/service.h"
#include "daemon/submit/commission.h"

/* 50 measurements of a site with 1,000 readings, the longest, take 80 s (estimate/commission.c). */
#define LIMIT_S 150.0

/* Jobs that are looked through for what the site runs, and workloads of them that count. */
enum { JOBS_MOST = 5000, RECENT_MOST = 64 };

/* On the heap: it may outlive its request when the daemon stops. */
struct commission_asked {
    struct request *request;
    json_t *body;
};

/* ---- in the child ---- */

static int find_recent(const struct state *s, int *out)
{
    int n = 0;

    for (int i = s->n_jobs - 1; i >= 0 && i >= s->n_jobs - JOBS_MOST && n < RECENT_MOST; i--) {
        int w = s->jobs[i]->spec.workload, k = 0;

        while (k < n && out[k] != w)
            k++;
        if (k == n)
            out[n++] = w;
    }
    return n;
}

static void find_types(const struct state *s, bool *is_there)
{
    for (int g = 0; g < s->n_gpus; g++)
        if (s->nodes[s->gpus[g].node].state == NODE_UP)
            is_there[s->gpus[g].type] = true;
}

/* The catalog is the child's own: what it is told here nobody keeps. */
static json_t *work(void *self, struct service *s, struct buf *raw, struct err *e)
{
    const struct commission_asked *q = self;
    const struct state *st = &s->base.ledger.state;
    int recent[RECENT_MOST];
    struct arena a;

    (void)raw;
    arena_init(&a);
    s->base.catalog.store = NULL;
    bool *is_there = ARENA_ARRAY(&a, bool, (size_t)s->base.catalog.n_types);
    find_types(st, is_there);
    json_t *o =
        commission_answer(&a,
                          &(struct commission_site){ .catalog = &s->base.catalog,
                                                     .estimator = &s->cycle.estimator,
                                                     .recent = recent,
                                                     .n_recent = find_recent(st, recent),
                                                     .is_there = is_there,
                                                     .theta = s->config.cluster.settings.theta },
                          q->body, e);
    arena_release(&a);
    return o;
}

/* ---- on the loop's thread ---- */

static void on_worked(void *self, json_t *result, const struct buf *raw, const struct err *failed)
{
    struct commission_asked *q = self;

    (void)raw;
    if (result)
        reply_json(q->request, 200, json_incref(result));
    else
        reply_err(q->request, failed);
    json_decref(q->body);
    free(q);
}

void api_commission(struct request *r)
{
    struct commission_asked *q = heap_array(1, sizeof *q);
    struct err e = { 0 };

    q->request = r;
    q->body = json_incref(r->body);
    int rc = decider_work(api_service(r)->decider, LIMIT_S, work, on_worked, q, &e);
    if (rc == 0)
        return;
    if (rc == -EAGAIN)
        reply_error(r, 429, "%s", e.text);
    else
        reply_err(r, &e);
    json_decref(q->body);
    free(q);
}
