#include "catalog/cluster/terms.h"

#include <errno.h>
#include <limits.h>

#include "base/arena.h"
#include "base/err.h"
#include "catalog/cluster/event_json.h"
#include "catalog/cluster/job.h"

static void put_positive(json_t *o, const char *key, double v)
{
    if (v > 0)
        json_object_set_new(o, key, json_real(v));
}

/* What stands at its default is left out. */
json_t *terms_to_json(const struct job_spec *s)
{
    const struct service_terms *t = s->terms;

    if (!t)
        return NULL;
    json_t *o = json_object();
    put_positive(o, "p99_s", t->latency_s);
    put_positive(o, "ttft_s", t->ttft_s);
    put_positive(o, "tpot_s", t->tpot_s);
    put_positive(o, "load_s", t->load_s);
    if (t->max_batch)
        json_object_set_new(o, "max_batch", json_integer(t->max_batch));
    if (t->is_unmoved)
        json_object_set_new(o, "no_move", json_true());
    if (t->probe)
        json_object_set_new(o, "probe", json_string(t->probe));
    if (t->metrics)
        json_object_set_new(o, "metrics", json_string(t->metrics));
    if (s->kind == JOB_REPLICA)
        json_object_update_new(o, json_pack("{s:i, s:i, s:i, s:i}", "of", s->service, "replica",
                                            s->replica, "port", s->port, "gpu", s->gpu));
    return o;
}

const char *terms_text(struct arena *a, const struct job_spec *s)
{
    return event_text(a, terms_to_json(s));
}

static bool is_count(json_int_t n)
{
    return n >= 0 && n <= INT_MAX;
}

int terms_from_json(struct arena *a, json_t *o, struct job_spec *out, struct err *e)
{
    json_int_t max_batch = 0, of = -1, replica = 0, port = 0, gpu = 0;
    const char *probe = NULL, *metrics = NULL;
    int no_move = 0;

    if (!o)
        return 0;
    struct service_terms *t = ARENA_NEW(a, struct service_terms);
    *t = (struct service_terms){ 0 };
    if (json_unpack(o, "{s?F, s?F, s?F, s?F, s?I, s?b, s?s, s?s, s?I, s?I, s?I, s?I}", "p99_s",
                    &t->latency_s, "ttft_s", &t->ttft_s, "tpot_s", &t->tpot_s, "load_s", &t->load_s,
                    "max_batch", &max_batch, "no_move", &no_move, "probe", &probe, "metrics",
                    &metrics, "of", &of, "replica", &replica, "port", &port, "gpu", &gpu) < 0 ||
        !is_count(max_batch) || !is_count(of + 1) || !is_count(replica) || !is_count(port) ||
        !is_count(gpu))
        return err_set(e, EINVAL, "service is missing or of the wrong kind");
    t->max_batch = (int)max_batch;
    t->is_unmoved = no_move;
    t->probe = arena_strdup(a, probe);
    t->metrics = arena_strdup(a, metrics);
    out->terms = t;
    out->kind = of < 0 ? JOB_SERVICE : JOB_REPLICA;
    out->service = (int)of;
    out->replica = (int)replica;
    out->port = (int)port;
    out->gpu = (int)gpu;
    return 0;
}

int terms_parse(struct arena *a, const char *text, struct job_spec *out, struct err *e)
{
    if (!text)
        return 0;
    json_t *o = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    int rc = o ? terms_from_json(a, o, out, e)
               : err_set(e, EINVAL, "its terms as a service are not JSON");
    json_decref(o);
    return rc;
}

const struct service_terms *terms_copy(struct arena *a, const struct service_terms *t)
{
    if (!t)
        return NULL;
    struct service_terms *copy = ARENA_NEW(a, struct service_terms);
    *copy = *t;
    copy->probe = arena_strdup(a, t->probe);
    copy->metrics = arena_strdup(a, t->metrics);
    return copy;
}
