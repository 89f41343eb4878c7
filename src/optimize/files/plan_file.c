#include "optimize/files/plan_file.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/file.h"
#include "base/map.h"
#include "optimize/model/plan.h"
#include "optimize/model/problem.h"
#include "optimize/files/doc.h"

#define PLAN_BYTES_MAX ((size_t)1 << 30)

/* ---- writing ---- */

/* One number for all GPUs of the job, or one for each; nothing where all have the default. */
static void put_limits(struct doc_out *o, const struct plan *x, const struct plan_job *j)
{
    int limit_w[GANG_MAX];
    bool is_same = true, is_default = true;

    for (int i = 0; i < j->n_gpus; i++) {
        int gpu = j->gpus[i];
        limit_w[i] = o->p->types[o->p->gpus[gpu].type].limits[x->limit[gpu]].limit_w;
        is_same &= limit_w[i] == limit_w[0];
        is_default &= x->limit[gpu] == 0;
    }
    if (is_same && !is_default)
        doc_put(o, ", \"limit_w\": %d", limit_w[0]);
    if (!is_same)
        doc_put_ints(o, "limit_w", limit_w, j->n_gpus);
}

static void put_job(struct doc_out *o, const struct plan *x, int job)
{
    const struct plan_job *j = &x->jobs[job];

    doc_put(o, "  {\"job\": ");
    doc_put_text(o, o->p->jobs[job].name);
    if (j->n_gpus == 0) {
        doc_put(o, ", \"waits\": \"%s\"}", wait_reason_name(j->reason));
        return;
    }
    doc_put_ints(o, "gpus", j->gpus, j->n_gpus);
    put_limits(o, x, j);
    doc_put_pair(o, "speed", j->speed);
    doc_put_pair(o, "low", j->low);
    if (j->is_short)
        doc_put_pair(o, "shortfall", 1 - j->low / o->p->jobs[job].need);
    doc_put(o, "}");
}

int plan_write(const struct problem *p, const struct plan *x, const struct plan_claims *c,
               struct buf *out, struct err *e)
{
    struct doc_out o = { .p = p, .buf = out, .e = e };
    int n = 0;

    doc_put(&o, "{\"version\": 1, \"made_by\": ");
    doc_put_text(&o, c->made_by != NULL ? c->made_by : "?");
    if (c->status != NULL)
        doc_put(&o, ", \"status\": \"%s\"", c->status);
    doc_put_pair(&o, "objective", x->cost_w + problem_base_w(p));
    if (isfinite(c->bound_w))
        doc_put_pair(&o, "bound", c->bound_w);
    doc_put_pair(&o, "watts", x->watts);
    doc_put(&o, ",\n \"jobs\": [");
    for (int j = 0; j < p->n_jobs; j++) {
        if (p->jobs[j].name == NULL)
            continue;
        doc_put(&o, n++ > 0 ? ",\n" : "\n");
        put_job(&o, x, j);
    }
    doc_put(&o, "]}\n");
    return o.rc < 0 ? err_set(e, -o.rc, "the plan takes more than %zu bytes", out->max) : 0;
}

/* ---- reading ---- */

struct plan_reader {
    struct doc doc;
    const struct problem *p;
    struct plan *x;
    struct map names;
    int *setter;    // (n_gpus) which job named the GPU's setting, plus 1
    int *n_on;      // (n_gpus) jobs so far
};

/* One more job on a GPU, and the setting that it names. */
static bool take_gpu(struct plan_reader *r, const struct doc_at *at, int job, int gpu,
                     json_t *watts)
{
    const struct problem_type *t = &r->p->types[r->p->gpus[gpu].type];
    json_int_t want = json_is_integer(watts) ? json_integer_value(watts) : -1;
    int limit = watts == NULL ? 0 : want > INT_MAX ? -1 : problem_setting(t, (int)want);

    if (limit < 0)
        return doc_wrong(at, "limit_w", "GPU %d has no limit of %s W", gpu, doc_looks(at, watts));
    if (r->setter[gpu] > 0 && r->x->limit[gpu] != limit)
        return doc_wrong(at, "limit_w", "'%.60s' says otherwise of GPU %d",
                         r->p->jobs[r->setter[gpu] - 1].name, gpu);
    if (++r->n_on[gpu] > r->p->theta)
        return doc_wrong(at, "gpus", "GPU %d has more than %d jobs (theta)", gpu, r->p->theta);
    r->setter[gpu] = job + 1;
    r->x->limit[gpu] = (unsigned char)limit;
    return true;
}

static bool read_gpus(struct plan_reader *r, const struct doc_at *at, int job, json_t *list, int n)
{
    json_t *limits = json_object_get(at->object, "limit_w");
    int *gpus = ARENA_ARRAY(r->doc.arena, int, (size_t)n);

    if (n > r->p->jobs[job].n_max)
        return doc_wrong(at, "gpus", "%d GPUs, and the job may have %d", n, r->p->jobs[job].n_max);
    if (json_is_array(limits) && json_array_size(limits) != (size_t)n)
        return doc_wrong(at, "limit_w", "want one number, or one for each GPU");
    for (int i = 0; i < n; i++) {
        json_t *own = json_is_array(limits) ? json_array_get(limits, (size_t)i) : limits;
        gpus[i] =
            doc_index(at, "gpus", json_array_get(list, (size_t)i), "the", r->p->n_gpus, "GPUs");
        if (gpus[i] < 0 || !take_gpu(r, at, job, gpus[i], own))
            return false;
    }
    plan_sort_gpus(gpus, n);
    for (int k = 1; k < n; k++)
        if (gpus[k] == gpus[k - 1])
            return doc_wrong(at, "gpus", "GPU %d is there twice", gpus[k]);
    r->x->jobs[job] = (struct plan_job){ .n_gpus = n, .gpus = gpus };
    return true;
}

static bool read_reason(const struct doc_at *at, struct plan_job *j)
{
    json_t *v = json_object_get(at->object, "waits");
    const char *word = json_is_string(v) ? json_string_value(v) : "";

    for (int i = WAIT_NOT + 1; i < WAIT_REASONS; i++)
        if (strcmp(wait_reason_name((enum wait_reason)i), word) == 0)
            j->reason = (enum wait_reason)i;
    return j->reason != WAIT_NOT ||
           doc_wrong(at, NULL, "want \"gpus\": [...], or \"waits\": and why, as \"%s\"",
                     wait_reason_name(WAIT_CAPACITY));
}

static bool read_job(struct plan_reader *r, const struct doc_at *at)
{
    static const char *const known[] = { "job", "gpus",      "limit_w", "speed",
                                         "low", "shortfall", "waits",   NULL };
    const char *name;
    json_t *list;
    int n;

    if (!doc_keys(at, known) || !doc_name(at, "job", &name) ||
        !doc_list(at, "gpus", r->p->n_gpus, &list, &n))
        return false;
    int job = map_get(&r->names, name);
    if (job < 0)
        return doc_wrong(at, "job", "the problem has no job '%.80s'", name);
    if (r->x->jobs[job].n_gpus > 0 || r->x->jobs[job].reason != WAIT_NOT)
        return doc_wrong(at, "job", "'%.80s' is there twice", name);
    return n == 0 ? read_reason(at, &r->x->jobs[job]) : read_gpus(r, at, job, list, n);
}

static bool read_claims(const struct doc_at *top, struct plan_claims *c)
{
    static const char *const known[] = { "version", "made_by", "status", "objective",
                                         "bound",   "watts",   "jobs",   NULL };
    int version;

    *c = (struct plan_claims){ .objective_w = NAN, .bound_w = NAN };
    return doc_keys(top, known) && doc_whole(top, "version", 1, 1, &version) &&
           (!json_object_get(top->object, "made_by") || doc_name(top, "made_by", &c->made_by)) &&
           (!json_object_get(top->object, "status") || doc_name(top, "status", &c->status)) &&
           doc_number(top, "objective", &c->objective_w) && doc_number(top, "bound", &c->bound_w);
}

static bool read_jobs(struct plan_reader *r, const struct doc_at *top)
{
    const struct problem_job *jobs = r->p->jobs;
    json_t *list;
    int n;

    if (!doc_list(top, "jobs", INT_MAX, &list, &n))
        return false;
    for (int j = 0; j < r->p->n_jobs; j++)
        if (jobs[j].name != NULL)
            map_set(&r->names, jobs[j].name, j);
    for (int i = 0; i < n; i++) {
        const struct doc_at at = { &r->doc, json_array_get(list, (size_t)i), "jobs", i };
        if (!read_job(r, &at))
            return false;
    }
    for (int j = 0; j < r->p->n_jobs; j++)
        if (jobs[j].name != NULL && r->x->jobs[j].n_gpus == 0 && r->x->jobs[j].reason == WAIT_NOT)
            return doc_wrong(top, "jobs", "'%.80s' is missing; say where it runs, or why it waits",
                             jobs[j].name);
    return true;
}

int plan_parse(struct arena *a, const struct problem *p, const char *name, const char *text,
               size_t len, struct plan *out, struct plan_claims *c, struct err *e)
{
    struct plan_reader r = { .doc = { a, name, e }, .p = p, .x = out };
    json_t *root = doc_open(&r.doc, text, len);

    if (root == NULL)
        return -EINVAL;
    const struct doc_at top = { &r.doc, root, NULL, -1 };
    *out = (struct plan){ .n_jobs = p->n_jobs, .n_gpus = p->n_gpus };
    out->jobs = ARENA_ARRAY(a, struct plan_job, (size_t)p->n_jobs);
    out->limit = ARENA_ARRAY(a, unsigned char, (size_t)p->n_gpus);
    r.setter = ARENA_ARRAY(a, int, (size_t)p->n_gpus);
    r.n_on = ARENA_ARRAY(a, int, (size_t)p->n_gpus);
    bool is_read = read_claims(&top, c) && read_jobs(&r, &top);
    if (is_read)
        plan_price(a, p, out);
    map_release(&r.names);
    json_decref(root);
    return is_read ? 0 : -EINVAL;
}

int plan_read(struct arena *a, const struct problem *p, const char *path, struct plan *out,
              struct plan_claims *c, struct err *e)
{
    struct arena scratch;
    const char *text;
    size_t len;

    arena_init(&scratch);
    int rc = file_read(&scratch, path, NULL, PLAN_BYTES_MAX, &text, &len, e);
    if (rc == 0)
        rc = plan_parse(a, p, path, text, len, out, c, e);
    arena_release(&scratch);
    return rc;
}
