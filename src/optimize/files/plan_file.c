#include "optimize/files/plan_file.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "base/map.h"
#include "base/words.h"
#include "optimize/model/plan.h"
#include "optimize/model/problem.h"
#include "optimize/files/doc.h"

#define PLAN_BYTES_MAX ((size_t)1 << 30)

/* ---- writing ---- */

/* The watts by which a GPU's setting is known. */
static int limit_w(const struct problem *p, const struct plan *x, int gpu)
{
    return p->types[p->gpus[gpu].type].limits[x->limit[gpu]].limit_w;
}

/* One number for all GPUs of the job, or one for each; nothing where all have the default. */
static int put_limits(struct buf *out, const struct problem *p, const struct plan *x,
                      const struct plan_job *j)
{
    bool is_same = true, is_default = true;
    int rc;

    for (int i = 0; i < j->n_gpus; i++) {
        is_same &= limit_w(p, x, j->gpus[i]) == limit_w(p, x, j->gpus[0]);
        is_default &= x->limit[j->gpus[i]] == 0;
    }
    if (is_default)
        return 0;
    if (is_same)
        return buf_printf(out, ", \"limit_w\": %d", limit_w(p, x, j->gpus[0]));
    rc = buf_puts(out, ", \"limit_w\": ");
    for (int i = 0; i < j->n_gpus && rc == 0; i++)
        rc = buf_printf(out, "%s%d", i > 0 ? ", " : "[", limit_w(p, x, j->gpus[i]));
    return rc < 0 ? rc : buf_puts(out, "]");
}

static int put_pair(struct buf *out, const char *key, double x)
{
    int rc = buf_printf(out, ", \"%s\": ", key);

    return rc < 0 ? rc : words_put_number(out, x);
}

static int put_placed(struct buf *out, const struct problem *p, const struct plan *x, int job)
{
    const struct plan_job *j = &x->jobs[job];
    double need = p->jobs[job].need;
    int rc = buf_puts(out, ", \"gpus\": ");

    for (int i = 0; i < j->n_gpus && rc == 0; i++)
        rc = buf_printf(out, "%s%d", i > 0 ? ", " : "[", j->gpus[i]);
    if (rc == 0)
        rc = buf_puts(out, "]");
    if (rc == 0)
        rc = put_limits(out, p, x, j);
    if (rc == 0)
        rc = put_pair(out, "speed", j->speed);
    if (rc == 0)
        rc = put_pair(out, "low", j->low);
    if (rc == 0 && j->is_short)
        rc = put_pair(out, "shortfall", 1 - j->low / need);
    return rc;
}

static int put_job(struct buf *out, const struct problem *p, const struct plan *x, int job)
{
    const struct plan_job *j = &x->jobs[job];
    int rc = buf_puts(out, "  {\"job\": ");

    if (rc == 0)
        rc = doc_put_text(out, p->jobs[job].name);
    if (rc == 0 && j->n_gpus > 0)
        rc = put_placed(out, p, x, job);
    else if (rc == 0)
        rc = buf_printf(out, ", \"waits\": \"%s\"", wait_reason_name(j->reason));
    return rc < 0 ? rc : buf_puts(out, "}");
}

static int put_claims(struct buf *out, const struct problem *p, const struct plan *x,
                      const struct plan_claims *c)
{
    int rc = buf_puts(out, "{\"version\": 1, \"made_by\": ");

    if (rc == 0)
        rc = doc_put_text(out, c->made_by != NULL ? c->made_by : "?");
    if (rc == 0 && c->status != NULL)
        rc = buf_printf(out, ", \"status\": \"%s\"", c->status);
    if (rc == 0)
        rc = put_pair(out, "objective", x->cost_w + problem_base_w(p));
    if (rc == 0 && isfinite(c->bound_w))
        rc = put_pair(out, "bound", c->bound_w);
    return rc < 0 ? rc : put_pair(out, "watts", x->watts);
}

int plan_write(const struct problem *p, const struct plan *x, const struct plan_claims *c,
               struct buf *out, struct err *e)
{
    int rc = put_claims(out, p, x, c), n = 0;

    if (rc == 0)
        rc = buf_puts(out, ",\n \"jobs\": [");
    for (int j = 0; j < p->n_jobs && rc == 0; j++) {
        if (p->jobs[j].name == NULL)
            continue;
        rc = buf_puts(out, n++ > 0 ? ",\n" : "\n");
        if (rc == 0)
            rc = put_job(out, p, x, j);
    }
    if (rc == 0)
        rc = buf_puts(out, "]}\n");
    return rc < 0 ? err_set(e, -rc, "the plan takes more than %zu bytes", out->max) : 0;
}

/* ---- reading ---- */

struct reading {
    struct doc f;
    const struct problem *p;
    struct plan *x;
    struct map names;
    int *setter;    // (n_gpus) which job named the GPU's setting, plus 1
    int *n_on;      // (n_gpus) jobs so far
};

static int compare_ints(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;

    return (x > y) - (x < y);
}

/* One more job on a GPU, and the setting that it names. */
static int take_gpu(struct reading *r, const struct doc_at *at, int job, int gpu, json_t *watts)
{
    const struct problem_type *t = &r->p->types[r->p->gpus[gpu].type];
    int limit = 0;

    if (watts != NULL) {
        json_int_t want = json_is_integer(watts) ? json_integer_value(watts) : -1;
        while (limit < t->n_limits && t->limits[limit].limit_w != want)
            limit++;
    }
    if (limit == t->n_limits)
        return doc_wrong(&r->f, at, "limit_w", "GPU %d has no limit of %s W", gpu,
                         doc_looks(&r->f, watts));
    if (r->setter[gpu] > 0 && r->x->limit[gpu] != limit)
        return doc_wrong(&r->f, at, "limit_w", "'%.60s' says otherwise of GPU %d",
                         r->p->jobs[r->setter[gpu] - 1].name, gpu);
    if (++r->n_on[gpu] > r->p->theta)
        return doc_wrong(&r->f, at, "gpus", "GPU %d has more than %d jobs (theta)", gpu,
                         r->p->theta);
    r->setter[gpu] = job + 1;
    r->x->limit[gpu] = (unsigned char)limit;
    return 0;
}

static int read_gpus(struct reading *r, const struct doc_at *at, int job, json_t *list)
{
    struct plan_job *j = &r->x->jobs[job];
    json_t *limits = json_object_get(at->object, "limit_w"), *v;
    int *gpus = ARENA_ARRAY(r->f.arena, int, json_array_size(list));
    size_t i;

    if (json_array_size(list) > (size_t)r->p->jobs[job].n_max)
        return doc_wrong(&r->f, at, "gpus", "%zu GPUs, and the job may have %d",
                         json_array_size(list), r->p->jobs[job].n_max);
    if (json_is_array(limits) && json_array_size(limits) != json_array_size(list))
        return doc_wrong(&r->f, at, "limit_w", "want one number, or one for each GPU");
    json_array_foreach(list, i, v)
    {
        if (!json_is_integer(v) || json_integer_value(v) < 0 ||
            json_integer_value(v) >= r->p->n_gpus)
            return doc_wrong(&r->f, at, "gpus", "%s is none of the %d GPUs, from 0",
                             doc_looks(&r->f, v), r->p->n_gpus);
        gpus[i] = (int)json_integer_value(v);
        json_t *own = json_is_array(limits) ? json_array_get(limits, i) : limits;
        int rc = take_gpu(r, at, job, gpus[i], own);
        if (rc < 0)
            return rc;
    }
    j->n_gpus = (int)json_array_size(list);
    j->gpus = gpus;
    qsort(gpus, (size_t)j->n_gpus, sizeof *gpus, compare_ints);
    for (int k = 1; k < j->n_gpus; k++)
        if (gpus[k] == gpus[k - 1])
            return doc_wrong(&r->f, at, "gpus", "GPU %d is there twice", gpus[k]);
    return 0;
}

static int read_reason(struct reading *r, const struct doc_at *at, struct plan_job *j)
{
    json_t *v = json_object_get(at->object, "waits");
    const char *word = json_is_string(v) ? json_string_value(v) : "";

    for (int i = WAIT_NOT + 1; i < WAIT_REASONS; i++)
        if (strcmp(wait_reason_name((enum wait_reason)i), word) == 0)
            j->reason = (enum wait_reason)i;
    if (j->reason == WAIT_NOT)
        return doc_wrong(&r->f, at, NULL, "want \"gpus\": [...], or \"waits\": and why, as \"%s\"",
                         wait_reason_name(WAIT_CAPACITY));
    return 0;
}

static int read_job(struct reading *r, const struct doc_at *at, bool *is_known)
{
    static const char *const known[] = { "job", "gpus",      "limit_w", "speed",
                                         "low", "shortfall", "waits",   NULL };
    const char *name = "";
    json_t *list = NULL;
    int rc = doc_keys(&r->f, at, known);

    if (rc == 0)
        rc = doc_name(&r->f, at, "job", &name);
    if (rc == 0)
        rc = doc_list(&r->f, at, "gpus", &list);
    if (rc < 0)
        return rc;
    int job = map_get(&r->names, name);
    if (job < 0)
        return doc_wrong(&r->f, at, "job", "the problem has no job '%.80s'", name);
    if (is_known[job])
        return doc_wrong(&r->f, at, "job", "'%.80s' is there twice", name);
    is_known[job] = true;
    if (json_array_size(list) == 0)
        return read_reason(r, at, &r->x->jobs[job]);
    return read_gpus(r, at, job, list);
}

static int read_claims(struct reading *r, const struct doc_at *top, struct plan_claims *c)
{
    static const char *const known[] = { "version", "made_by", "status", "objective",
                                         "bound",   "watts",   "jobs",   NULL };
    int version = 1, rc = doc_keys(&r->f, top, known);

    *c = (struct plan_claims){ .objective_w = NAN, .bound_w = NAN };
    if (rc == 0)
        rc = doc_whole(&r->f, top, "version", 1, 1, &version);
    if (rc == 0 && json_object_get(top->object, "made_by") != NULL)
        rc = doc_name(&r->f, top, "made_by", &c->made_by);
    if (rc == 0 && json_object_get(top->object, "status") != NULL)
        rc = doc_name(&r->f, top, "status", &c->status);
    if (rc == 0)
        rc = doc_number(&r->f, top, "objective", &c->objective_w);
    return rc < 0 ? rc : doc_number(&r->f, top, "bound", &c->bound_w);
}

static int read_jobs(struct reading *r, const struct doc_at *top)
{
    const struct problem *p = r->p;
    bool *is_known = ARENA_ARRAY(r->f.arena, bool, (size_t)p->n_jobs);
    json_t *list;
    int rc = doc_list(&r->f, top, "jobs", &list);

    for (int j = 0; j < p->n_jobs; j++)
        if (p->jobs[j].name != NULL)
            map_set(&r->names, p->jobs[j].name, j);
    for (size_t i = 0; i < json_array_size(list) && rc == 0; i++) {
        const struct doc_at at = { json_array_get(list, i), "jobs", (int)i };
        rc = read_job(r, &at, is_known);
    }
    for (int j = 0; j < p->n_jobs && rc == 0; j++)
        if (p->jobs[j].name != NULL && !is_known[j])
            rc = doc_wrong(&r->f, top, "jobs",
                           "'%.80s' is missing; say where it runs, or why it waits",
                           p->jobs[j].name);
    return rc;
}

int plan_parse(struct arena *a, const struct problem *p, const char *name, const char *text,
               size_t len, struct plan *out, struct plan_claims *c, struct err *e)
{
    struct reading r = { .f = { a, name, e }, .p = p, .x = out };
    json_t *root = doc_open(&r.f, text, len);

    if (root == NULL)
        return -EINVAL;
    const struct doc_at top = { root, NULL, -1 };
    *out = (struct plan){ .n_jobs = p->n_jobs, .n_gpus = p->n_gpus };
    out->jobs = ARENA_ARRAY(a, struct plan_job, (size_t)p->n_jobs);
    out->limit = ARENA_ARRAY(a, unsigned char, (size_t)p->n_gpus);
    r.setter = ARENA_ARRAY(a, int, (size_t)p->n_gpus);
    r.n_on = ARENA_ARRAY(a, int, (size_t)p->n_gpus);
    map_init(&r.names);
    int rc = read_claims(&r, &top, c);
    if (rc == 0)
        rc = read_jobs(&r, &top);
    if (rc == 0)
        plan_price(a, p, out);
    map_release(&r.names);
    json_decref(root);
    return rc;
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
