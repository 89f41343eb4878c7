#include "daemon/submit/submit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "act/local/command.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/text/file.h"
#include "base/text/json.h"
#include "catalog/catalog.h"
#include "catalog/cluster/state.h"
#include "daemon/config/auth.h"
#include "daemon/http/schema.h"
#include "daemon/submit/inner.h"
#include "estimate/estimate.h"

double reading_number(const struct submit_reading *r, const char *key, double otherwise)
{
    json_t *v = json_object_get(r->body, key);

    return json_is_number(v) ? json_number_value(v) : otherwise;
}

bool reading_flag(const struct submit_reading *r, const char *key)
{
    return json_is_true(json_object_get(r->body, key));
}

int reading_check_name(const char *what, const char *name, struct err *e)
{
    if (!text_is_name(slice_of(name)))
        return err_set(e, EINVAL,
                       "%s: want 1 to 200 printable bytes of UTF-8, without blanks at its ends",
                       what);
    return 0;
}

/* ---- who ---- */

static int read_owner(struct submit_reading *r, struct err *e)
{
    const char *owner = json_text_of(r->body, "owner");
    const char *self = r->context->caller->owner;

    r->uid = r->context->caller->uid;
    r->gid = r->context->caller->gid;
    if (owner && (!self || strcmp(owner, self) != 0)) {
        if (r->context->caller->scope < SCOPE_OPERATE)
            return err_set(e, EACCES, "owner: submitting for others takes the scope 'operate'");
        if (reading_check_name("owner", owner, e) < 0)
            return -EINVAL;
        if (!r->context->account || !r->context->account(owner, &r->uid, &r->gid))
            return err_set(e, EINVAL, "owner: there is no account '%.60s' on this machine", owner);
        if (r->uid == 0 && r->context->caller->uid != 0 && r->context->caller->scope < SCOPE_ADMIN)
            return err_set(e, EACCES,
                           "owner: running things as '%.60s' takes the scope 'admin', or being it",
                           owner);
        self = owner;
    }
    if (!self)
        return err_set(e, EACCES,
                       "a job needs an owner: this token has none; make one with "
                       "'gogh token new --owner ACCOUNT'");
    if (r->uid == (uid_t)-1)
        return err_set(e, EACCES,
                       "there is no account '%.60s' on this machine to run jobs as; make one, or "
                       "use a token of an owner who has one",
                       self);
    if (reading_check_name("owner", self, e) < 0)
        return -EINVAL;
    r->out->spec.owner = arena_strdup(r->arena, self);
    if (r->context->may_run_as && r->context->may_run_as(r->uid, e) < 0) {
        e->code = EACCES;
        return -EACCES;
    }
    return 0;
}

/* ---- asked before? ---- */

static const char *digest_of(struct arena *a, const void *bytes, size_t len, size_t n_digits)
{
    char hex[65];

    file_digest(bytes, len, hex);
    return arena_strndup(a, hex, n_digits);
}

static int read_key(struct submit_reading *r, const char *key, struct err *e)
{
    struct job_spec *p = &r->out->spec;

    if (!key)
        return 0;
    if (reading_check_name("Idempotency-Key", key, e) < 0)
        return -EINVAL;
    const char *both = arena_printf(r->arena, "%s%c%s", p->owner, '\0', key);    // parted by a NUL
    p->key = digest_of(r->arena, both, strlen(p->owner) + 1 + strlen(key), 32);
    char *dump = json_dumps(r->body, JSON_COMPACT | JSON_SORT_KEYS);
    p->digest = digest_of(r->arena, dump, strlen(dump), 16);
    free(dump);
    int known = state_find_key(r->context->state, p->key);
    if (known < 0)
        return 0;
    const struct job *j = r->context->state->jobs[known];
    if (!j->spec.digest || strcmp(j->spec.digest, p->digest) != 0)
        return err_set(e, ENOTUNIQ,
                       "Idempotency-Key: it was used for another submission (job %d, '%.60s'); "
                       "use a new key for a new job",
                       known, j->spec.name);
    r->out->again = known;
    return 0;
}

/* ---- how much of it, by when ---- */

static int read_kind(struct submit_reading *r, struct err *e)
{
    struct job_spec *p = &r->out->spec;
    const char *kind = json_text_of(r->body, "kind");
    bool has_rate = json_is_number(json_object_get(r->body, "rate"));

    if (reading_flag(r, "service"))
        return reading_service(r, e);
    if (reading_no_service(r, e) < 0)
        return -EINVAL;
    p->kind = has_rate ? JOB_INFERENCE : JOB_TRAINING;
    if (kind && strcmp(kind, "inference") == 0 && !has_rate)
        return err_set(e, EINVAL, "rate: how many steps/s are asked of it?");
    if (kind && strcmp(kind, "training") == 0 && has_rate)
        return err_set(e, EINVAL, "rate: training goes as fast as it can; say min_throughput");
    if (has_rate && json_is_number(json_object_get(r->body, "steps")))
        return err_set(e, EINVAL, "steps: inference has a rate and a duration_s instead");
    if (!has_rate && json_is_number(json_object_get(r->body, "duration_s")))
        return err_set(e, EINVAL, "duration_s: only inference has one; training has steps");
    p->rate = reading_number(r, "rate", 0);
    p->duration_s = has_rate ? reading_number(r, "duration_s", 1e9) : 0;
    return 0;
}

/* Nobody said how long it will take: an hour where it would be fastest, as a first guess. */
static double guess_steps(const struct submit_reading *r)
{
    const struct estimator *est = r->context->estimator;
    const struct job_spec *p = &r->out->spec;
    double best = 0;

    if (!est || r->out->is_new_workload || p->workload >= est->n_workloads)
        return 1e5;
    for (int t = 0; t < est->n_types; t++)
        if (job_allows(p, t))
            best = fmax(best, (double)estimate_cell(est, p->workload, t, -1).speed);
    return best > 0 ? fmin(fmax(ceil(3600 * best), 1), 1e14) : 1e5;
}

static int read_deadline(struct submit_reading *r, struct err *e)
{
    struct job_spec *p = &r->out->spec;
    json_t *deadline = json_object_get(r->body, "deadline");

    p->deadline_s = NAN;
    if (!deadline || json_is_null(deadline))
        return 0;
    p->deadline_s = schema_time_s(deadline);
    if (p->kind == JOB_INFERENCE)
        return err_set(e, EINVAL, "deadline: inference promises its rate; leave it out");
    if (p->is_guess)
        return err_set(e, EINVAL, "deadline: it needs steps, or nobody knows what must be done");
    if (p->deadline_s <= p->submit_s)
        return err_set(e, EINVAL, "deadline: that time has passed, %.0f s ago",
                       p->submit_s - p->deadline_s);
    return 0;
}

int submit_find_whole(struct arena *a, const struct catalog *c, const char *type)
{
    const struct gpu_type *builtin = gpu_type_builtin(type);
    int found = catalog_find_type_alike(c, arena_printf(a, "%s-whole", type));

    if (found < 0 && builtin)
        found = catalog_find_type_alike(c, arena_printf(a, "%s-whole", builtin->name));
    return found;
}

static int allow_type(struct submit_reading *r, const char *name, int type, struct err *e)
{
    if (type >= 64)
        return err_set(e, EINVAL, "types: '%.60s' is beyond the 64 that can be named", name);
    if (type >= 0)
        r->out->spec.allowed_types |= UINT64_C(1) << type;
    return 0;
}

/* Who asks for a v100 means those that are only had whole, too. */
static int read_types(struct submit_reading *r, struct err *e)
{
    const struct catalog *c = r->context->catalog;
    json_t *list = json_object_get(r->body, "types"), *one;
    size_t i;

    json_array_foreach(list, i, one)
    {
        const char *name = json_string_value(one);
        int t = catalog_find_type_alike(c, name), whole = submit_find_whole(r->arena, c, name);
        if (t < 0 && whole < 0)
            return err_set(e, EINVAL,
                           "types: there is no GPU type '%.60s' here; 'gogh nodes' lists them",
                           name);
        if (allow_type(r, name, t, e) < 0 || allow_type(r, name, whole, e) < 0)
            return -EINVAL;
    }
    return 0;
}

/* Nodes that have 'each' GPUs of 'type'; also those that are down? */
static int n_nodes_with(const struct state *s, int type, int each, bool may_be_down)
{
    int n = 0;

    for (int i = 0; i < s->n_nodes; i++) {
        const struct node *at = &s->nodes[i];
        int n_alike = 0;

        for (int k = 0; k < at->n_gpus; k++)
            n_alike += s->gpus[at->first_gpu + k].type == type;
        n += n_alike >= each && (may_be_down || at->state != NODE_DOWN);
    }
    return n;
}

/* Can its gang, which is of one type, stand on 'n' nodes in equal parts? */
static bool fits_nodes(const struct submit_context *sc, const struct job_spec *p, int n,
                       bool may_be_down)
{
    for (int t = 0; t < sc->catalog->n_types && p->n_gpus % n == 0; t++)
        if (job_allows(p, t) && n_nodes_with(sc->state, t, p->n_gpus / n, may_be_down) >= n)
            return true;
    return false;
}

/* The fewest such nodes; 0: none will do. */
static int fewest_nodes(const struct submit_context *sc, const struct job_spec *p, bool may_be_down)
{
    for (int n = 1; n <= p->n_gpus; n++)
        if (fits_nodes(sc, p, n, may_be_down))
            return n;
    return 0;
}

/* Where none can as it is, as if all nodes were up; where none could, each GPU has its own. */
static int nodes_for(const struct submit_context *sc, const struct job_spec *p)
{
    int n = fewest_nodes(sc, p, false);

    if (n == 0)
        n = fewest_nodes(sc, p, true);
    return n > 0 ? n : p->n_gpus;
}

static int read_nodes(struct submit_reading *r, struct err *e)
{
    const bool is_one = reading_flag(r, "one_node");
    const int n = (int)reading_number(r, "nodes", 0);
    struct job_spec *p = &r->out->spec;

    if (is_one && n > 1)
        return err_set(e, EINVAL, "one_node, and nodes: %d: keep one of the two", n);
    p->n_nodes = is_one ? 1 : n;
    if (r->context->wants_even && p->max_gpus > p->n_gpus)
        return err_set(e, EINVAL,
                       "max_gpus: a job under Slurm keeps the %d GPUs it asks for; leave it out",
                       p->n_gpus);
    if (p->n_nodes == 0 && p->n_gpus > 1 && r->context->wants_even)
        p->n_nodes = nodes_for(r->context, p);
    return 0;
}

static int read_promise(struct submit_reading *r, struct err *e)
{
    struct job_spec *p = &r->out->spec;

    p->submit_s = r->context->now_s;
    p->n_gpus = (int)reading_number(r, "gpus", 1);
    p->max_gpus = (int)reading_number(r, "max_gpus", p->terms ? SERVICE_GPUS : p->n_gpus);
    p->priority = (int)reading_number(r, "priority", 0);
    p->urgency = reading_number(r, "urgency", 1);
    p->is_exclusive = reading_flag(r, "exclusive");
    p->min_throughput = reading_number(r, "min_throughput", 0);
    if (read_types(r, e) < 0 || (!p->terms && read_nodes(r, e) < 0))
        return -EINVAL;
    p->steps = reading_number(r, "steps", NAN);
    p->is_guess = p->kind == JOB_TRAINING && isnan(p->steps);
    if (p->is_guess)
        p->steps = guess_steps(r);
    else if (p->kind != JOB_TRAINING)
        p->steps = 0;
    return read_deadline(r, e);
}

/* ---- its name ---- */

bool reading_is_taken(const struct state *s, const char *name)
{
    const int known = state_find_job(s, name);

    return known >= 0 && !job_is_over(s->jobs[known]);
}

static int read_name(struct submit_reading *r, struct err *e)
{
    const struct state *s = r->context->state;
    struct job_spec *p = &r->out->spec;
    const char *name = json_text_of(r->body, "name");
    bool is_service = reading_flag(r, "service");

    if (!name) {
        const char *what = is_service ? "service" : "job";
        p->name = arena_printf(r->arena, "%s-%d", what, s->n_jobs);
        for (int i = 2; reading_is_taken(s, p->name); i++)
            p->name = arena_printf(r->arena, "%s-%d-%d", what, s->n_jobs, i);
        return 0;
    }
    if (reading_check_name("name", name, e) < 0 ||
        (is_service && reading_service_name(name, e) < 0))
        return -EINVAL;
    if (strspn(name, "0123456789") == strlen(name))
        return err_set(e, EINVAL, "name: '%.60s' would be taken for a job's number; add a letter",
                       name);
    if (reading_is_taken(s, name))
        return err_set(e, EEXIST, "name: job '%.60s' is %s; choose another name", name,
                       job_state_name(s->jobs[state_find_job(s, name)]->state));
    p->name = arena_strdup(r->arena, name);
    return 0;
}

/* ---- its command ---- */

static size_t command_bytes(json_t *argv, json_t *env)
{
    const char *key;
    size_t i, n = 0;
    json_t *v;

    json_array_foreach(argv, i, v)
    {
        n += json_string_length(v) + 1;
    }
    json_object_foreach(env, key, v)
    {
        n += strlen(key) + json_string_length(v) + 2;
    }
    return n;
}

static int read_command(struct submit_reading *r, struct err *e)
{
    static const char *const keys[] = {
        "argv",    "cwd",     "env",  "stdout",  "stderr",           "timeout_s",
        "retries", "grace_s", "cpus", "mem_mib", "checkpoint_signal"
    };
    const char *cwd = json_text_of(r->body, "cwd");
    const size_t n =
        command_bytes(json_object_get(r->body, "argv"), json_object_get(r->body, "env"));

    if (n > SUBMIT_COMMAND_MAX)
        return err_set(e, EINVAL, "argv and env take %zu bytes; the most is %d. Put it in a file",
                       n, SUBMIT_COMMAND_MAX);
    if (cwd && cwd[0] != '/')
        return err_set(e, EINVAL, "cwd: want a path from the root, as /home/ada/run; got '%.60s'",
                       cwd);
    json_t *o = json_object();
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *v = json_object_get(r->body, keys[i]);
        if (v && !json_is_null(v))
            json_object_set(o, keys[i], v);
    }
    json_object_set_new(o, "uid", json_integer((json_int_t)r->uid));
    json_object_set_new(o, "gid", json_integer((json_int_t)r->gid));
    char *dump = json_dumps(o, JSON_COMPACT);
    json_decref(o);
    r->out->spec.command = arena_strdup(r->arena, dump);
    free(dump);
    return command_check(r->out->spec.command, e);
}

static int read_new(struct submit_reading *r, struct err *e)
{
    int rc = read_name(r, e);

    if (rc == 0)
        rc = read_kind(r, e);
    if (rc == 0)
        rc = reading_workload(r, e);
    if (rc == 0 && r->out->spec.terms)
        rc = reading_service_workload(r, e);
    if (rc == 0)
        rc = read_promise(r, e);
    if (rc == 0)
        rc = read_command(r, e);
    if (rc == 0)
        rc = job_spec_check(&r->out->spec, e);
    r->out->is_held = reading_flag(r, "hold");
    return rc;
}

int submit_read(struct arena *a, const struct submit_context *context, json_t *body,
                const char *key, struct submit *out, struct err *e)
{
    struct submit_reading r = { .arena = a, .context = context, .body = body, .out = out };

    *out = (struct submit){ .again = -1 };
    int rc = read_owner(&r, e);
    if (rc == 0)
        rc = read_key(&r, key, e);
    if (rc == 0 && out->again < 0)
        rc = read_new(&r, e);
    return rc;
}
