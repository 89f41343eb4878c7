/* services.c - services: list, show, endpoints, scale. They are submitted, held, released and ended
 * as jobs are (jobs.c).
 */
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "catalog/cluster/job.h"
#include "daemon/api/api.h"
#include "daemon/http/shapes.h"
#include "daemon/service/service.h"
#include "daemon/service/upkeep.h"
#include "daemon/service/replicas_json.h"

static const struct state *state_of(const struct request *r)
{
    return &api_service(r)->base.ledger.state;
}

/* The service that is asked about by id or name; NULL: there is none, and the answer is given. */
static const struct job *find(struct request *r)
{
    const struct job *j = api_find_job(r, "id");

    if (j && j->spec.kind == JOB_REPLICA)
        reply_error(r, 404, "job %d, '%.100s', is a replica of service %d; ask for that", j->id,
                    j->spec.name, j->spec.service);
    else if (j && j->spec.kind != JOB_SERVICE)
        reply_error(r, 404, "job %d, '%.100s', is no service; 'gogh services' lists them", j->id,
                    j->spec.name);
    return j && j->spec.kind == JOB_SERVICE ? j : NULL;
}

static void reply_service(struct request *r, const struct job *j)
{
    struct service *s = api_service(r);
    struct replicas all = replicas_gather(&r->arena, s);
    struct api_text t = { 0 };

    service_put(&t, NULL, s, j, &all, true, api_now_s(r));
    api_reply(r, 200, &t);
}

void api_list_services(struct request *r)
{
    struct service *s = api_service(r);
    const struct state *st = state_of(r);
    struct replicas all = replicas_gather(&r->arena, s);
    bool has_ended = json_is_true(json_object_get(r->args, "ended"));
    long after = (long)request_number(r, "after", -1);
    long limit = (long)request_number(r, "limit", PAGE_DEFAULT);
    long total = 0, n = 0, last = -1;
    bool is_more = false;
    struct api_text t = { 0 };

    api_put_open(&t, NULL, '{');
    api_put_open(&t, "services", '[');
    for (int i = 0; i < st->n_services; i++) {
        const struct job *j = st->jobs[st->services[i]];
        if (job_is_over(j) && !has_ended)
            continue;
        total++;
        is_more |= j->id > after && n == limit;
        if (j->id <= after || n == limit)
            continue;
        service_put(&t, NULL, s, j, &all, false, api_now_s(r));
        last = j->id;
        n++;
    }
    api_end_page(&t, total, is_more ? last : -1);
    api_reply(r, 200, &t);
}

void api_show_service(struct request *r)
{
    const struct job *j = find(r);

    if (j)
        reply_service(r, j);
}

void api_list_endpoints(struct request *r)
{
    const struct job *j = find(r);
    struct api_text t = { 0 };

    if (!j)
        return;
    const char *text = service_endpoints(api_service(r), j->id);
    if (text) {    // as its file has them
        reply_take(r, 200, "application/json", strdup(text), strlen(text));
        return;
    }
    struct replicas all = replicas_gather(&r->arena, api_service(r));
    service_put_endpoints(&t, api_service(r), j, &all);
    api_reply(r, 200, &t);
}

void api_scale_service(struct request *r)
{
    const struct job *j = api_only_watches(r) ? NULL : find(r);
    struct event ev = { .kind = EVENT_SERVICE_SCALED, .time_s = api_now_s(r) };
    struct err e = { 0 };

    if (!j || !api_may_change(r, j, EVENT_SERVICE_SCALED, "it has ended already"))
        return;
    ev.job = j->id;
    ev.rate = request_number(r, "rate", 0);
    ev.max_gpus = (int)request_number(r, "max_gpus", 0);
    if (!(ev.rate > 0) && ev.max_gpus == 0)
        reply_error(r, 400, "scale to what? give rate (requests/s), max_gpus, or both");
    else if (service_append(api_service(r), &ev, &e) < 0)
        reply_err(r, &e);
    else
        reply_service(r, state_of(r)->jobs[ev.job]);
}
