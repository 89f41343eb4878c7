#include "catalog/checkpoint.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "catalog/catalog.h"
#include "catalog/event_json.h"
#include "catalog/ledger.h"
#include "store/store.h"

static const char *body_text(struct ledger *l, json_t *o)
{
    char *text = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(17));

    assert(text);    // the state holds only finite numbers and well-formed texts
    const char *copy = arena_strdup(&l->scratch, text);

    free(text);
    json_decref(o);
    return copy;
}

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
    struct row_node row = { .id = index + 1, .name = node->name, .body = body_text(l, body) };
    int rc = store_put_node(l->store, &row, e);
    for (int i = 0; i < node->n_gpus && rc == 0; i++) {
        struct row_gpu gpu = { .id = node->first_gpu + i + 1,
                               .node = index + 1,
                               .slot = i,
                               .type = l->catalog->types[types[i]].name,
                               .body = "{}" };
        rc = store_put_gpu(l->store, &gpu, e);
    }
    return rc;
}

static int write_job(struct ledger *l, const struct job *j, struct err *e)
{
    struct event submitted = { .kind = EVENT_JOB_SUBMITTED, .spec = &j->spec };
    struct event started = { .kind = EVENT_JOB_STARTED,
                             .job = j->id,
                             .gpus = j->gpus,
                             .n_gpus = j->n_held,
                             .limit_w = j->limit_w };
    json_t *body = json_pack("{s:o, s:o, s:f, s:f, s:f, s:f, s:i}", "spec",
                             event_to_json(&submitted, &l->state, l->catalog), "place",
                             event_to_json(&started, &l->state, l->catalog), "steps_done",
                             j->steps_done, "heard_s", j->heard_s, "pace", j->pace, "changed_s",
                             j->changed_s, "n_moves", j->n_moves);

    if (!isnan(j->started_s))
        json_object_set_new(body, "started_s", json_real(j->started_s));
    struct row_job row = { .id = j->id + 1,
                           .state = job_state_name(j->state),
                           .owner = j->spec.owner,
                           .body = body_text(l, body) };
    return store_put_job(l->store, &row, e);
}

int checkpoint_write(struct ledger *l, struct err *e)
{
    int rc = store_clear_checkpoint(l->store, e);

    for (int n = 0; n < l->state.n_nodes && rc == 0; n++)
        rc = write_node(l, n, e);
    for (int j = 0; j < l->state.n_jobs && rc == 0; j++)
        rc = write_job(l, l->state.jobs[j], e);
    if (rc == 0)
        rc = store_mark_checkpoint(l->store, l->last_seq, e);
    arena_reset(&l->scratch);
    return rc;
}

/* ---- reading ---- */

struct reader {
    struct ledger *ledger;
    struct err *e;
};

static int read_node(void *self, const struct row_node *row)
{
    struct reader *r = self;
    struct ledger *l = r->ledger;
    struct event ev = { .kind = EVENT_NODE_ADDED };
    json_t *body = json_loads(row->body, 0, NULL);
    int state = (int)json_integer_value(json_object_get(body, "state"));

    if (!body)
        return err_set(r->e, EINVAL, "checkpoint: node %s: not JSON", row->name);
    int rc = event_from_json(&l->scratch, body, &l->state, l->catalog, &ev, r->e);
    json_decref(body);
    if (rc == 0)
        rc = state_apply(&l->state, &ev, r->e);
    if (rc == 0 && state >= NODE_UP && state <= NODE_DOWN)
        l->state.nodes[l->state.n_nodes - 1].state = (enum node_state)state;
    return rc < 0 ? err_prefix(r->e, "checkpoint: node %s", row->name) : 0;
}

static int state_by_name(const char *name)
{
    for (int s = JOB_WAITING; s <= JOB_CANCELLED; s++)
        if (strcmp(job_state_name((enum job_state)s), name) == 0)
            return s;
    return -1;
}

static int job_of_body(struct ledger *l, json_t *body, struct job *out, struct err *e)
{
    struct event submitted = { .kind = EVENT_JOB_SUBMITTED };
    struct event started = { .kind = EVENT_JOB_STARTED };
    json_t *spec = NULL, *place = NULL;

    out->started_s = NAN;
    if (json_unpack(body, "{s:o, s:o, s:F, s:F, s:F, s:F, s:i, s?F}", "spec", &spec, "place",
                    &place, "steps_done", &out->steps_done, "heard_s", &out->heard_s, "pace",
                    &out->pace, "changed_s", &out->changed_s, "n_moves", &out->n_moves, "started_s",
                    &out->started_s) < 0)
        return err_set(e, EINVAL, "a field is missing");
    int rc = event_from_json(&l->scratch, spec, &l->state, l->catalog, &submitted, e);
    if (rc == 0)
        rc = event_from_json(&l->scratch, place, &l->state, l->catalog, &started, e);
    if (rc < 0)
        return rc;
    out->spec = *submitted.spec;
    out->gpus = ARENA_ARRAY(&l->scratch, int, (size_t)started.n_gpus);
    out->n_held = started.n_gpus;
    out->limit_w = started.limit_w;
    for (int i = 0; i < started.n_gpus; i++)
        out->gpus[i] = started.gpus[i];
    return 0;
}

static int read_job(void *self, const struct row_job *row)
{
    struct reader *r = self;
    struct ledger *l = r->ledger;
    int state = state_by_name(row->state);
    struct job job = { .id = (int)row->id - 1, .state = (enum job_state)state };
    json_t *body = json_loads(row->body, 0, NULL);

    if (!body || state < 0) {
        json_decref(body);
        return err_set(r->e, EINVAL, "checkpoint: job row %d is damaged", (int)row->id);
    }
    int rc = job_of_body(l, body, &job, r->e);
    json_decref(body);
    if (rc == 0)
        rc = state_restore_job(&l->state, &job, r->e);
    arena_reset(&l->scratch);
    return rc < 0 ? err_prefix(r->e, "checkpoint: job row %d", (int)row->id) : 0;
}

int checkpoint_read(struct ledger *l, struct err *e)
{
    struct reader r = { .ledger = l, .e = e };
    int rc = store_checkpoint_seq(l->store, &l->last_seq, e);

    if (rc == 0)
        rc = store_each_node(l->store, read_node, &r, e);
    arena_reset(&l->scratch);
    if (rc == 0)
        rc = store_each_job(l->store, read_job, &r, e);
    return rc;
}
