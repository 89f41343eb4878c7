/* plan.c - why a job is where it is, and what would happen now. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "catalog/cluster/job.h"
#include "daemon/api/api.h"
#include "daemon/service/decide.h"
#include "daemon/service/service.h"
#include "optimize/explain/explain.h"

/* As it was recorded with the decision; nothing is computed here. */
void api_explain_job(struct request *r)
{
    const struct job *j = api_find_job(r, "id");
    char *body = NULL;
    struct err e = { 0 };

    if (!j)
        return;
    double at_s = request_number(r, "at", INFINITY);
    int rc = store_get_decision(api_service(r)->base.store, j->id, at_s, &body, &e);
    if (rc == -ENOENT)
        reply_error(r, 404, "no decision about job %d, '%.100s', is recorded%s", j->id,
                    j->spec.name, isinf(at_s) ? " yet" : " from before that time");
    else if (rc < 0)
        reply_error(r, 503, "the store: %s", e.text);
    else
        reply_take(r, 200, "application/json", body, strlen(body));
}

/* In the child. */
static json_t *tell_plan(void *self, struct service *s, const struct decision *d)
{
    json_t *o = plan_json(&d->plan, &d->asked);

    (void)self;
    json_object_set_new(o, "delay_w", json_real(service_delay_w(s)));
    return o;
}

static void on_plan(void *self, struct decision *d, const struct err *failed)
{
    struct request *r = self;

    if (!d || !d->said) {
        reply_error(r, 503, "no plan: %s", failed ? failed->text : "nothing came back");
        return;
    }
    json_t *o = json_incref(d->said);
    json_object_set_new(o, "time_s", json_real(d->time_s));
    json_object_set_new(o, "seconds", json_real(d->seconds));
    json_object_set_new(o, "fallback", json_boolean(d->is_fallback));
    json_object_set_new(o, "why", d->is_fallback ? json_string(d->why) : json_null());
    reply_json(r, 200, o);
}

void api_plan(struct request *r)
{
    struct err e = { 0 };
    int rc = decider_ask(api_service(r)->decider, NULL, tell_plan, on_plan, r, &e);

    if (rc == -EAGAIN)
        reply_error(r, 429, "%s", e.text);
    else if (rc < 0)
        reply_err(r, &e);
}
