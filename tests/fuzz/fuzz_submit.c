/* Any body of a submission is a job that the state takes, or an error that says why. The first line
 * is the idempotency key (empty: none), the rest the body.
 */
#include <assert.h>
#include <jansson.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "catalog/catalog.h"
#include "catalog/cluster/event.h"
#include "catalog/cluster/state.h"
#include "daemon/http/shapes.h"
#include "daemon/config/auth.h"
#include "daemon/submit/submit.h"
#include "store/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct catalog catalog;

static void add_workload(const char *name, double batch)
{
    struct workload w;
    int index;

    workload_init(&w, name);
    w.batch = batch;
    w.params = 1e6;
    catalog_add_workload(&catalog, &w, &index, NULL);
}

static void catalog_once(void)
{
    int index;

    if (catalog.n_types)
        return;
    catalog_init(&catalog);
    catalog_add_type(&catalog, gpu_type_builtin("v100"), &index, NULL);
    catalog_add_type(&catalog, gpu_type_builtin("k80"), &index, NULL);
    add_workload("net (batch size 8)", 8);
    add_workload("net (batch size 16)", 16);
    add_workload("plain (batch size 1)", 1);
}

static bool find_account(const char *name, uid_t *uid, gid_t *gid)
{
    *uid = *gid = 7;
    return strcmp(name, "bob") == 0;
}

/* What was accepted is taken by the state, reads back from the journal, and is found by its key. */
static void take(struct arena *a, struct state *s, const struct submit *want, const char *key)
{
    struct job_spec spec = want->spec;
    struct event ev = { .kind = EVENT_JOB_SUBMITTED, .time_s = 1000, .spec = &spec }, again;
    struct err e = { 0 };

    if (want->is_new_workload)
        spec.workload = 0;    // its index is the catalog's to give
    assert(spec.workload >= 0 && spec.workload < catalog.n_workloads);
    const char *body = event_encode(a, &ev, s, &catalog);
    assert(body);
    const struct row_event row = { 0, 1000, "job_submitted", body };
    int rc = event_decode(a, &row, s, &catalog, &again, &e);
    assert(rc == 0);
    rc = state_apply(s, &again, &e);
    assert(rc == 0);
    assert(!key || state_find_key(s, spec.key) == s->n_jobs - 1);
}

static void submit(struct arena *a, struct state *s, json_t *body, const char *key)
{
    struct caller who = { .scope = SCOPE_OPERATE, .owner = "ada", .uid = 5, .gid = 5 };
    struct submit_context context = {
        .caller = &who, .catalog = &catalog, .state = s, .now_s = 1000, .account = find_account
    };
    struct submit want;
    struct err e = { 0 };

    int rc = schema_check(&schema_submit, body, &e);
    if (rc == 0)
        rc = submit_read(a, &context, body, key, &want, &e);
    if (rc < 0) {
        assert(e.code == -rc && strlen(e.text) > 0);
        return;
    }
    if (want.again < 0)
        take(a, s, &want, key);
    if (!key)
        return;
    rc = submit_read(a, &context, body, key, &want, &e);
    assert(rc == 0 && want.again == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    struct state s;

    catalog_once();
    arena_init(&a);
    state_init(&s);
    char *key = arena_strndup(&a, (const char *)data, size);
    char *text = strchr(key, '\n');
    if (text)
        *text++ = '\0';
    json_t *body = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
    if (body)
        submit(&a, &s, body, key[0] ? key : NULL);
    json_decref(body);
    state_release(&s);
    arena_release(&a);
    return 0;
}
