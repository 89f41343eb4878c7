#include "catalog/cluster/rows.h"
#include "catalog/cluster/terms.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "catalog/catalog.h"
#include "catalog/cluster/event_json.h"
#include "catalog/cluster/ledger.h"
#include "store/store.h"

/* ---- writing ---- */

static int write_node(struct ledger *l, int index, struct err *e)
{
    const struct state *s = &l->state;
    const struct node *node = &s->nodes[index];
    int *types = ARENA_ARRAY(&l->scratch, int, (size_t)node->n_gpus);

    for (int i = 0; i < node->n_gpus; i++)
        types[i] = s->gpus[node->first_gpu + i].type;
    struct event added = {
        .kind = EVENT_NODE_ADDED, .node = node->name, .gpu_types = types, .n_gpus = node->n_gpus
    };
    json_t *body = event_to_json(&added, s, l->catalog);
    json_object_set_new(body, "state", json_integer(node->state));
    struct row_node row = { .id = index + 1,
                            .name = node->name,
                            .body = event_text(&l->scratch, body) };
    assert(row.body);    // the state holds only finite numbers and well-formed texts
    return store_put_node(l->store, &row, e);
}

static int write_gpus(struct ledger *l, int node, struct err *e)
{
    const struct node *n = &l->state.nodes[node];
    int rc = 0;

    for (int i = 0; i < n->n_gpus && rc == 0; i++) {
        int type = l->state.gpus[n->first_gpu + i].type;
        struct row_gpu gpu = { .id = n->first_gpu + i + 1,
                               .node = node + 1,
                               .slot = i,
                               .type = l->catalog->types[type].name,
                               .body = "{}" };
        rc = store_put_gpu(l->store, &gpu, e);
    }
    return rc;
}

static const char *types_text(struct ledger *l, uint64_t allowed)
{
    const char *text = NULL;

    for (int t = 0; t < l->catalog->n_types && t < 64; t++)
        if (allowed >> t & 1)
            text = arena_printf(&l->scratch, "%s%s%s", text ? text : "", text ? "\n" : "",
                                l->catalog->types[t].name);
    return text;
}

static int write_job(struct ledger *l, const struct job *j, struct err *e)
{
    const struct job_spec *s = &j->spec;
    struct row_job row = { .id = j->id + 1,
                           .name = s->name,
                           .owner = s->owner,
                           .workload = l->catalog->workloads[s->workload].name,
                           .is_inference = s->kind == JOB_INFERENCE,
                           .is_guess = s->is_guess,
                           .is_exclusive = s->is_exclusive,
                           .n_nodes = s->n_nodes,
                           .submit_s = s->submit_s,
                           .steps = s->steps,
                           .rate = s->rate,
                           .duration_s = s->duration_s,
                           .min_throughput = s->min_throughput,
                           .deadline_s = s->deadline_s,
                           .n_gpus = s->n_gpus,
                           .max_gpus = s->max_gpus,
                           .priority = s->priority,
                           .urgency = job_urgency(s),
                           .types = types_text(l, s->allowed_types),
                           .command = s->command,
                           .terms = terms_text(&l->scratch, s),
                           .key = s->key,
                           .digest = s->digest };

    return store_put_job(l->store, &row, e);
}

static const char *gpus_text(struct ledger *l, const struct job *j)
{
    enum { DIGITS = 12 };    // of an int, and the blank
    size_t size = (size_t)j->n_held * DIGITS + 1;
    char *text = ARENA_ARRAY(&l->scratch, char, size);
    size_t at = 0;

    for (int i = 0; i < j->n_held; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%d", i ? " " : "", j->gpus[i] + 1);
    return j->n_held ? text : NULL;
}

static int write_standing(struct ledger *l, const struct job *j, struct err *e)
{
    struct row_job_state row = { .id = j->id + 1,
                                 .state = job_state_name(j->state),
                                 .steps_done = j->steps_done,
                                 .heard_s = j->heard_s,
                                 .pace = j->pace,
                                 .changed_s = j->changed_s,
                                 .started_s = j->started_s,
                                 .n_moves = j->n_moves,
                                 .limit_w = j->limit_w,
                                 .gpus = gpus_text(l, j),
                                 .ready_s = j->ready_s,
                                 .drain_s = j->drain_s,
                                 .rate = j->spec.rate,
                                 .max_gpus = j->spec.max_gpus,
                                 .reason = j->reason };

    return store_put_job_state(l->store, &row, e);
}

int rows_write_event(struct ledger *l, const struct event *ev, struct err *e)
{
    const struct state *s = &l->state;
    int rc = 0;

    if (ev->kind == EVENT_NODE_ADDED || ev->kind == EVENT_NODE_CHANGED) {
        int node = state_find_node(s, ev->node);
        rc = write_node(l, node, e);
        if (rc == 0 && ev->kind == EVENT_NODE_ADDED)
            rc = write_gpus(l, node, e);
        return rc;
    }
    const struct job *j = s->jobs[ev->kind == EVENT_JOB_SUBMITTED ? s->n_jobs - 1 : ev->job];
    if (ev->kind == EVENT_JOB_SUBMITTED)
        rc = write_job(l, j, e);
    return rc < 0 ? rc : write_standing(l, j, e);
}

int rows_write_all(struct ledger *l, struct err *e)
{
    const struct state *s = &l->state;
    int rc = store_clear_state(l->store, e);

    for (int n = 0; n < s->n_nodes && rc == 0; n++) {
        rc = write_node(l, n, e);
        if (rc == 0)
            rc = write_gpus(l, n, e);
        arena_reset(&l->scratch);
    }
    for (int j = 0; j < s->n_jobs && rc == 0; j++) {
        rc = write_job(l, s->jobs[j], e);
        if (rc == 0)
            rc = write_standing(l, s->jobs[j], e);
        arena_reset(&l->scratch);
    }
    return rc;
}

/* ---- reading ---- */

static int read_node(void *self, const struct row_node *row)
{
    struct ledger_reader *r = self;
    struct ledger *l = r->ledger;
    struct event ev = { .kind = EVENT_NODE_ADDED };
    json_t *body = json_loads(row->body, 0, NULL);
    int state = (int)json_integer_value(json_object_get(body, "state"));

    if (!body)
        return err_set(r->e, EINVAL, "node row %s: not JSON", row->name);
    int rc = event_from_json(&l->scratch, body, &l->state, l->catalog, &ev, r->e);
    json_decref(body);
    if (rc == 0)
        rc = state_apply(&l->state, &ev, r->e);
    if (rc == 0 && state >= NODE_UP && state <= NODE_DOWN)
        l->state.nodes[l->state.n_nodes - 1].state = (enum node_state)state;
    arena_reset(&l->scratch);
    return rc < 0 ? err_prefix(r->e, "node row %s", row->name) : 0;
}

/* Names, one a line, to bits. */
static int read_types(struct ledger *l, const char *text, uint64_t *out, struct err *e)
{
    if (text && !*text)
        return err_set(e, EINVAL, "an empty list of GPU types");
    for (struct slice s; text && slice_next(&text, '\n', &s);) {
        const char *name = arena_strndup(&l->scratch, s.at, s.len);
        int t = catalog_find_type(l->catalog, name);
        if (t < 0 || t >= 64)
            return err_set(e, EINVAL, "no GPU type %s here", name);
        *out |= UINT64_C(1) << t;
    }
    return 0;
}

static int read_spec(struct ledger *l, const struct row_job *row, struct job_spec *out,
                     struct err *e)
{
    *out = (struct job_spec){ .name = row->name,
                              .owner = row->owner,
                              .kind = row->is_inference ? JOB_INFERENCE : JOB_TRAINING,
                              .workload = catalog_find_workload(l->catalog, row->workload),
                              .submit_s = row->submit_s,
                              .steps = row->steps,
                              .rate = row->rate,
                              .duration_s = row->duration_s,
                              .min_throughput = row->min_throughput,
                              .deadline_s = row->deadline_s,
                              .n_gpus = row->n_gpus,
                              .max_gpus = row->max_gpus,
                              .priority = row->priority,
                              .urgency = row->urgency,
                              .is_exclusive = row->is_exclusive,
                              .n_nodes = row->n_nodes,
                              .is_guess = row->is_guess,
                              .command = row->command,
                              .key = row->key,
                              .digest = row->digest };
    if (out->workload < 0)
        return err_set(e, EINVAL, "no workload %s in the catalog", row->workload);
    if (terms_parse(&l->scratch, row->terms, out, e) < 0)
        return -EINVAL;
    return read_types(l, row->types, &out->allowed_types, e);
}

/* "3 5" to the GPUs with these ids; whether they are there is for the state to say. */
static int read_gpus(struct ledger *l, const char *text, struct job *out, struct err *e)
{
    size_t n_most = text ? strlen(text) / 2 + 1 : 0;
    char *end = NULL;

    out->gpus = ARENA_ARRAY(&l->scratch, int, n_most);
    for (; text && *text; text = end) {
        long id = strtol(text, &end, 10);
        if (end == text || (*end != ' ' && *end != '\0') || id < 1 || id > INT_MAX)
            return err_set(e, EINVAL, "its GPUs are not a list of numbers");
        out->gpus[out->n_held++] = (int)id - 1;
    }
    return 0;
}

static int read_job(void *self, const struct row_job *row, const struct row_job_state *at)
{
    struct ledger_reader *r = self;
    struct ledger *l = r->ledger;
    int state = job_state_parse(at->state);
    struct job job = { .id = (int)row->id - 1,
                       .state = (enum job_state)state,
                       .steps_done = at->steps_done,
                       .heard_s = at->heard_s,
                       .pace = at->pace,
                       .changed_s = at->changed_s,
                       .started_s = at->started_s,
                       .n_moves = at->n_moves,
                       .limit_w = at->limit_w,
                       .ready_s = at->ready_s,
                       .drain_s = at->drain_s,
                       .reason = at->reason };
    int rc = state < 0 ? err_set(r->e, EINVAL, "no job is '%s'", at->state) : 0;

    if (rc == 0)
        rc = read_spec(l, row, &job.spec, r->e);
    if (rc == 0 && at->max_gpus > 0) {
        job.spec.rate = at->rate;
        job.spec.max_gpus = at->max_gpus;
    }
    if (rc == 0)
        rc = read_gpus(l, at->gpus, &job, r->e);
    if (rc == 0)
        rc = state_restore_job(&l->state, &job, r->e);
    if (l->scratch.used > 0)
        arena_reset(&l->scratch);
    return rc < 0 ? err_prefix(r->e, "job row %lld", (long long)row->id) : 0;
}

int rows_read(struct ledger *l, struct err *e)
{
    struct err unasked = { 0 };
    struct ledger_reader r = { .ledger = l, .e = e ? e : &unasked };
    int rc = store_applied_seq(l->store, &l->last_seq, r.e);

    if (rc == 0)
        rc = store_each_node(l->store, read_node, &r, r.e);
    if (rc == 0)
        rc = store_each_job(l->store, read_job, &r, r.e);
    state_line_up(&l->state);
    return rc;
}
