#include "catalog/cluster/event.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "catalog/catalog.h"
#include "catalog/cluster/event_json.h"
#include "catalog/cluster/state.h"
#include "catalog/cluster/terms.h"
#include "store/store.h"

static const char *const kind_names[EVENT_KINDS] = {
    [EVENT_NODE_ADDED] = "node_added",         [EVENT_NODE_CHANGED] = "node_changed",
    [EVENT_JOB_SUBMITTED] = "job_submitted",   [EVENT_JOB_STARTED] = "job_started",
    [EVENT_JOB_PROGRESSED] = "job_progressed", [EVENT_JOB_STOPPED] = "job_stopped",
    [EVENT_JOB_FINISHED] = "job_finished",     [EVENT_JOB_FAILED] = "job_failed",
    [EVENT_JOB_CANCELLED] = "job_cancelled",   [EVENT_JOB_HELD] = "job_held",
    [EVENT_JOB_RELEASED] = "job_released",     [EVENT_SERVICE_SCALED] = "service_scaled",
    [EVENT_REPLICA_READY] = "replica_ready",   [EVENT_REPLICA_DRAINING] = "replica_draining",
};

static const char *const node_state_names[] = {
    [NODE_UP] = "up",
    [NODE_DRAINED] = "drained",
    [NODE_DOWN] = "down",
};

const char *event_kind_name(enum event_kind k)
{
    return kind_names[k];
}

int event_kind_parse(const char *name)
{
    return text_find(kind_names, EVENT_KINDS, name);
}

/* ---- encode ---- */

static json_t *types_to_json(uint64_t allowed, const struct catalog *c)
{
    json_t *list = json_array();

    for (int t = 0; t < c->n_types && t < 64; t++)
        if (allowed >> t & 1)
            json_array_append_new(list, json_string(c->types[t].name));
    return list;
}

/* A command as an object; NULL: it is none. */
static json_t *command_load(const char *text)
{
    json_t *o = json_loads(text, JSON_REJECT_DUPLICATES, NULL);

    if (json_is_object(o))
        return o;
    json_decref(o);
    return NULL;
}

const char *event_text(struct arena *a, json_t *o)
{
    char *text = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(17));
    const char *copy = arena_strdup(a, text);

    free(text);
    json_decref(o);
    return copy;
}

const char *event_compact(struct arena *a, const char *command)
{
    return event_text(a, command_load(command));
}

/* Fields that stand at their default are left out. NULL: a text is not UTF-8, or the command
 * is not an object.
 */
static json_t *spec_to_json(const struct job_spec *s, const struct catalog *c)
{
    json_t *o = json_pack("{s:s, s:s, s:f, s:i, s:i}", "name", s->name, "workload",
                          c->workloads[s->workload].name, "submit_s", s->submit_s, "n_gpus",
                          s->n_gpus, "max_gpus", s->max_gpus);
    int rc = 0;

    if (s->owner)
        json_object_set_new(o, "owner", json_string(s->owner));
    if (s->kind == JOB_TRAINING)
        json_object_set_new(o, "steps", json_real(s->steps));
    else if (s->terms)
        json_object_update_new(
            o, json_pack("{s:f, s:o}", "rate", s->rate, "service", terms_to_json(s)));
    else
        json_object_update_new(
            o, json_pack("{s:f, s:f}", "rate", s->rate, "duration_s", s->duration_s));
    if (s->min_throughput > 0)
        json_object_set_new(o, "min_throughput", json_real(s->min_throughput));
    if (!isnan(s->deadline_s))
        json_object_set_new(o, "deadline_s", json_real(s->deadline_s));
    if (s->priority)
        json_object_set_new(o, "priority", json_integer(s->priority));
    if (job_urgency(s) != 1)
        json_object_set_new(o, "urgency", json_real(s->urgency));
    if (s->is_exclusive)
        json_object_set_new(o, "exclusive", json_true());
    if (s->n_nodes == 1)
        json_object_set_new(o, "one_node", json_true());
    if (s->n_nodes > 1)
        json_object_set_new(o, "n_nodes", json_integer(s->n_nodes));
    if (s->allowed_types)
        json_object_set_new(o, "types", types_to_json(s->allowed_types, c));
    if (s->is_guess)
        json_object_set_new(o, "guess", json_true());
    if (s->key)
        rc |= json_object_set_new(o, "key", json_string(s->key));
    if (s->digest)
        rc |= json_object_set_new(o, "digest", json_string(s->digest));
    if (s->command)
        rc |= json_object_set_new(o, "command", command_load(s->command));
    if (rc == 0)
        return o;
    json_decref(o);
    return NULL;
}

static json_t *gpus_to_json(const struct event *ev, const struct state *s)
{
    json_t *list = json_array();

    for (int i = 0; i < ev->n_gpus; i++) {
        const struct gpu *g = &s->gpus[ev->gpus[i]];
        json_array_append_new(list, json_pack("[s, i]", s->nodes[g->node].name, g->slot));
    }
    return list;
}

static json_t *node_types_to_json(const struct event *ev, const struct catalog *c)
{
    json_t *list = json_array();

    for (int i = 0; i < ev->n_gpus; i++)
        json_array_append_new(list, json_string(c->types[ev->gpu_types[i]].name));
    return list;
}

json_t *event_to_json(const struct event *ev, const struct state *s, const struct catalog *c)
{
    switch (ev->kind) {
    case EVENT_NODE_ADDED:
        return json_pack("{s:s, s:o}", "node", ev->node, "gpus", node_types_to_json(ev, c));
    case EVENT_NODE_CHANGED:
        return json_pack("{s:s, s:s}", "node", ev->node, "state", node_state_names[ev->node_state]);
    case EVENT_JOB_SUBMITTED:
        return spec_to_json(ev->spec, c);
    case EVENT_JOB_STARTED:
        return json_pack("{s:i, s:o, s:i, s:f}", "job", ev->job, "gpus", gpus_to_json(ev, s),
                         "limit_w", ev->limit_w, "steps_done", ev->steps_done);
    case EVENT_SERVICE_SCALED:
        return json_pack("{s:i, s:f, s:f, s:i, s:s*}", "job", ev->job, "steps_done", ev->steps_done,
                         "rate", ev->rate, "max_gpus", ev->max_gpus, "reason", ev->reason);
    default:
        return json_pack("{s:i, s:f, s:s*}", "job", ev->job, "steps_done", ev->steps_done, "reason",
                         ev->reason);
    }
}

const char *event_encode(struct arena *a, const struct event *ev, const struct state *s,
                         const struct catalog *c)
{
    return event_text(a, event_to_json(ev, s, c));
}

/* ---- decode ---- */

static int wrong(const char *what, struct err *e)
{
    return err_set(e, EINVAL, "%s is missing or of the wrong kind", what);
}

static bool is_int(json_int_t n)
{
    return n >= INT_MIN && n <= INT_MAX;
}

static int types_from_json(json_t *list, const struct catalog *c, uint64_t *out, struct err *e)
{
    if (list && !json_is_array(list))
        return wrong("types", e);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        int t = name ? catalog_find_type(c, name) : -1;
        if (t < 0 || t >= 64)
            return err_set(e, EINVAL, "types: no GPU type %s here", name ? name : "(not a string)");
        *out |= UINT64_C(1) << t;
    }
    return 0;
}

static int spec_from_json(struct arena *a, json_t *o, const struct catalog *c, struct job_spec *s,
                          struct err *e)
{
    const char *name = NULL, *owner = NULL, *workload = NULL, *key = NULL, *digest = NULL;
    int exclusive = 0, one_node = 0, guess = 0;
    json_int_t n_gpus = 0, max_gpus = 0, n_nodes = 0, priority = 0;
    json_t *types = NULL, *command = NULL, *terms = NULL;

    *s = (struct job_spec){ .deadline_s = NAN, .urgency = 1 };
    if (json_unpack(o,
                    "{s:s, s?s, s:s, s:F, s:I, s:I, s?F, s?F, s?F, s?F, s?F, s?I, s?b, s?b, s?o,"
                    " s?b, s?s, s?s, s?o, s?I, s?F, s?o}",
                    "name", &name, "owner", &owner, "workload", &workload, "submit_s", &s->submit_s,
                    "n_gpus", &n_gpus, "max_gpus", &max_gpus, "steps", &s->steps, "rate", &s->rate,
                    "duration_s", &s->duration_s, "min_throughput", &s->min_throughput,
                    "deadline_s", &s->deadline_s, "priority", &priority, "exclusive", &exclusive,
                    "one_node", &one_node, "types", &types, "guess", &guess, "key", &key, "digest",
                    &digest, "command", &command, "n_nodes", &n_nodes, "urgency", &s->urgency,
                    "service", &terms) < 0 ||
        (command && !json_is_object(command)) || !is_int(n_gpus) || !is_int(max_gpus) ||
        !is_int(priority) || !is_int(n_nodes))
        return wrong("a field of the submission", e);
    s->n_gpus = (int)n_gpus;
    s->max_gpus = (int)max_gpus;
    s->priority = (int)priority;
    s->name = arena_strdup(a, name);
    s->owner = arena_strdup(a, owner);
    s->kind = s->rate > 0 ? JOB_INFERENCE : JOB_TRAINING;
    s->is_exclusive = exclusive;
    s->n_nodes = one_node ? 1 : (int)n_nodes;
    s->is_guess = guess;
    s->key = arena_strdup(a, key);
    s->digest = arena_strdup(a, digest);
    s->command = event_text(a, json_incref(command));
    s->workload = catalog_find_workload(c, workload);
    if (s->workload < 0)
        return err_set(e, EINVAL, "no workload %s in the catalog", workload);
    if (terms_from_json(a, terms, s, e) < 0)
        return -EINVAL;
    return types_from_json(types, c, &s->allowed_types, e);
}

static int gpus_from_json(struct arena *a, json_t *list, const struct state *s, struct event *out,
                          struct err *e)
{
    int *gpus = ARENA_ARRAY(a, int, json_array_size(list));

    if (!json_is_array(list))
        return wrong("gpus", e);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *node = NULL;
        json_int_t slot = -1;
        if (json_unpack(json_array_get(list, i), "[s, I!]", &node, &slot) < 0 || !is_int(slot))
            return wrong("gpus", e);
        gpus[i] = state_find_gpu(s, node, (int)slot);
        if (gpus[i] < 0)
            return err_set(e, EINVAL, "no GPU %d on node %s", (int)slot, node);
    }
    out->gpus = gpus;
    out->n_gpus = (int)json_array_size(list);
    return 0;
}

static int node_types_from_json(struct arena *a, json_t *list, const struct catalog *c,
                                struct event *out, struct err *e)
{
    int *types = ARENA_ARRAY(a, int, json_array_size(list));

    if (!json_is_array(list))
        return wrong("gpus", e);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        types[i] = name ? catalog_find_type(c, name) : -1;
        if (types[i] < 0)
            return err_set(e, EINVAL, "no GPU type %s here", name ? name : "(not a string)");
    }
    out->gpu_types = types;
    out->n_gpus = (int)json_array_size(list);
    return 0;
}

static int node_from_json(struct arena *a, json_t *o, const struct catalog *c, struct event *out,
                          struct err *e)
{
    const char *node = json_string_value(json_object_get(o, "node"));
    const char *state = json_string_value(json_object_get(o, "state"));

    if (!node)
        return wrong("node", e);
    out->node = arena_strdup(a, node);
    if (out->kind == EVENT_NODE_ADDED)
        return node_types_from_json(a, json_object_get(o, "gpus"), c, out, e);
    int index = state ? text_find(node_state_names, 3, state) : -1;
    if (index < 0)
        return wrong("state", e);
    out->node_state = (enum node_state)index;
    return 0;
}

static int job_from_json(struct arena *a, json_t *o, const struct state *s, struct event *out,
                         struct err *e)
{
    const char *reason = NULL;
    json_int_t job = -1, limit_w = 0, max_gpus = 0;

    if (json_unpack(o, "{s:I, s?F, s?I, s?s, s?F, s?I}", "job", &job, "steps_done",
                    &out->steps_done, "limit_w", &limit_w, "reason", &reason, "rate", &out->rate,
                    "max_gpus", &max_gpus) < 0 ||
        !is_int(job) || !is_int(limit_w) || !is_int(max_gpus))
        return wrong("job", e);
    out->job = (int)job;
    out->max_gpus = (int)max_gpus;
    out->limit_w = (int)limit_w;
    out->reason = arena_strdup(a, reason);
    if (out->kind == EVENT_JOB_STARTED)
        return gpus_from_json(a, json_object_get(o, "gpus"), s, out, e);
    return 0;
}

int event_from_json(struct arena *a, json_t *o, const struct state *s, const struct catalog *c,
                    struct event *out, struct err *e)
{
    if (out->kind == EVENT_NODE_ADDED || out->kind == EVENT_NODE_CHANGED)
        return node_from_json(a, o, c, out, e);
    if (out->kind != EVENT_JOB_SUBMITTED)
        return job_from_json(a, o, s, out, e);
    struct job_spec *spec = ARENA_NEW(a, struct job_spec);
    out->spec = spec;
    return spec_from_json(a, o, c, spec, e);
}

int event_decode(struct arena *a, const struct row_event *row, const struct state *s,
                 const struct catalog *c, struct event *out, struct err *e)
{
    const char *kind = row->kind;
    int k = event_kind_parse(kind);
    json_error_t where;

    if (k < 0)
        return err_set(e, EINVAL, "unknown kind of event '%s'", kind);
    *out = (struct event){ .kind = (enum event_kind)k, .time_s = row->time_s };
    json_t *o = json_loads(row->body, JSON_REJECT_DUPLICATES, &where);
    if (!o)
        return err_set(e, EINVAL, "%s: column %d: %s", kind, where.column, where.text);
    int rc = event_from_json(a, o, s, c, out, e);
    json_decref(o);
    return rc < 0 ? err_prefix(e, "%s", kind) : 0;
}
