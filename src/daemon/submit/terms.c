/* terms.c - a submission that is a service: what it promises of each request, how it is run. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text/json.h"
#include "catalog/catalog.h"
#include "daemon/submit/inner.h"

static bool has(const struct submit_reading *r, const char *key)
{
    json_t *v = json_object_get(r->body, key);

    return v && !json_is_null(v) && !json_is_false(v);
}

/* ---- what does not go together ---- */

/* Fields that only a service has. */
static const char *const own[] = { "p99_s",       "ttft_s",  "tpot_s", "max_batch",
                                   "load_time_s", "no_move", "probe",  "metrics" };

/* Fields that a service has not, and what is said instead. */
static const struct {
    const char *key, *instead;
} foreign[] = {
    { "steps", "a service goes on until 'gogh cancel' ends it; leave it out" },
    { "duration_s", "a service goes on until 'gogh cancel' ends it; leave it out" },
    { "deadline", "a service promises a latency (p99_s), not an end; leave it out" },
    { "min_throughput", "a service promises a latency (p99_s) at its rate; leave it out" },
    { "gpus", "each replica has one GPU; say max_gpus for how many replicas there may be" },
    { "nodes", "each replica has one GPU, wherever it is; leave it out" },
    { "one_node", "each replica has one GPU, wherever it is; leave it out" },
    { "timeout_s", "a replica runs as long as it is needed; leave it out" },
    { "retries", "a replica that ends by itself is replaced anyway; leave it out" },
};

int reading_no_service(const struct submit_reading *r, struct err *e)
{
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (has(r, own[i]))
            return err_set(e, EINVAL, "%s: only a service has one; say \"service\": true, too",
                           own[i]);
    return 0;
}

static int refuse_foreign(const struct submit_reading *r, struct err *e)
{
    const char *kind = json_text_of(r->body, "kind");

    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (has(r, foreign[i].key))
            return err_set(e, EINVAL, "%s: %s", foreign[i].key, foreign[i].instead);
    if (kind && strcmp(kind, "inference") != 0)
        return err_set(e, EINVAL, "kind: a service is inference; leave it out");
    if (!has(r, "rate"))
        return err_set(e, EINVAL, "rate: how many requests/s shall the service be ready for?");
    return 0;
}

/* ---- the promise ---- */

static int read_latency(const struct submit_reading *r, struct service_terms *t, struct err *e)
{
    t->latency_s = reading_number(r, "p99_s", 0);
    t->ttft_s = reading_number(r, "ttft_s", 0);
    t->tpot_s = reading_number(r, "tpot_s", 0);
    if (t->latency_s > 0 && (t->ttft_s > 0 || t->tpot_s > 0))
        return err_set(e, EINVAL,
                       "p99_s: a service promises this, or ttft_s and tpot_s of a language model; "
                       "keep one");
    if (t->ttft_s > 0 && !(t->tpot_s > 0))
        return err_set(e, EINVAL, "tpot_s: and how long may each further token take?");
    if (t->tpot_s > 0 && !(t->ttft_s > 0))
        return err_set(e, EINVAL, "ttft_s: and within what time comes the first token?");
    if (!(t->latency_s > 0) && !(t->ttft_s > 0))
        return err_set(e, EINVAL,
                       "p99_s: within how many seconds are 99 of 100 requests answered? Of a "
                       "language model say ttft_s and tpot_s");
    return 0;
}

static int read_path(const struct submit_reading *r, const char *key, const char **out,
                     struct err *e)
{
    const char *path = json_text_of(r->body, key);

    if (path && (path[0] != '/' || strpbrk(path, " \t\r\n")))
        return err_set(e, EINVAL, "%s: want a path of its HTTP server, as /healthz; got '%.60s'",
                       key, path);
    *out = path ? arena_strdup(r->arena, path) : NULL;
    return 0;
}

/* Replicas are called by it, and so is the file of its endpoints. */
int reading_service_name(const char *name, struct err *e)
{
    const char *good = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

    if (strlen(name) > SERVICE_NAME_MAX || strspn(name, good) != strlen(name) || name[0] == '.')
        return err_set(e, EINVAL,
                       "name: a service's is a file's, too: 1 to %d of letters, digits, '.', '_' "
                       "and '-', and no '.' first",
                       SERVICE_NAME_MAX);
    return 0;
}

int reading_service(struct submit_reading *r, struct err *e)
{
    struct job_spec *p = &r->out->spec;
    struct service_terms *t = ARENA_NEW(r->arena, struct service_terms);

    *t = (struct service_terms){ .max_batch = (int)reading_number(r, "max_batch", 0),
                                 .load_s = reading_number(r, "load_time_s", 0),
                                 .is_unmoved = reading_flag(r, "no_move") };
    if (refuse_foreign(r, e) < 0 || read_latency(r, t, e) < 0 ||
        read_path(r, "probe", &t->probe, e) < 0 || read_path(r, "metrics", &t->metrics, e) < 0)
        return -EINVAL;
    p->kind = JOB_SERVICE;
    p->terms = t;
    p->rate = reading_number(r, "rate", 0);
    p->service = -1;
    return 0;
}

/* ---- what it runs ---- */

/* A step of training is another thing, and so is its memory. */
int reading_service_workload(const struct submit_reading *r, struct err *e)
{
    const struct submit *out = r->out;
    const struct workload *w =
        out->is_new_workload ? &out->workload : &r->context->catalog->workloads[out->spec.workload];

    if (!w->is_inference)
        return err_set(e, EINVAL,
                       "workload: '%.60s' is known as training; name an inference workload "
                       "('gogh catalog models'), or another name for this one",
                       w->name);
    return 0;
}
