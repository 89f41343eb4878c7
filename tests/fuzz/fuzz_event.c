/* Any kind and any body are an event or an error that says why; applying whatever came out
 * leaves a consistent state. The first line is the kind, the rest the body.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "catalog/catalog.h"
#include "catalog/cluster/event.h"
#include "catalog/cluster/state.h"
#include "store/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct catalog catalog;

static void catalog_once(void)
{
    struct workload w;
    int index;

    if (catalog.n_types)
        return;
    catalog_init(&catalog);
    workload_init(&w, "w");
    for (int i = 0; i < 2; i++) {
        struct gpu_type t = *gpu_type_builtin("v100");
        t.name = i ? "k80" : "v100";
        catalog_add_type(&catalog, &t, &index, NULL);
    }
    catalog_add_workload(&catalog, &w, &index, NULL);
}

/* Two nodes, one job that runs and one that waits. */
static void state_make(struct state *s, struct arena *a)
{
    static const char *const rows[][2] = {
        { "node_added", "{\"node\":\"n1\",\"gpus\":[\"v100\",\"k80\"]}" },
        { "node_added", "{\"node\":\"n2\",\"gpus\":[\"v100\"]}" },
        { "job_submitted", "{\"name\":\"a\",\"workload\":\"w\",\"submit_s\":0,\"n_gpus\":1,"
                           "\"max_gpus\":2,\"steps\":10}" },
        { "job_submitted", "{\"name\":\"b\",\"workload\":\"w\",\"submit_s\":0,\"n_gpus\":1,"
                           "\"max_gpus\":1,\"rate\":1,\"duration_s\":10}" },
        { "job_started", "{\"job\":0,\"gpus\":[[\"n1\",0]]}" },
    };
    struct event ev;

    state_init(s);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row_event row = { .kind = rows[i][0], .body = rows[i][1] };
        int rc = event_decode(a, &row, s, &catalog, &ev, NULL);
        assert(rc == 0);
        rc = state_apply(s, &ev, NULL);
        assert(rc == 0);
    }
}

/* What was accepted can be written down, and reads back as itself. */
static void encode_again(struct arena *a, const struct event *ev, const struct state *s)
{
    struct event again;
    const char *body = event_encode(a, ev, s, &catalog);

    assert(body);
    const struct row_event row = { 0, 1, event_kind_name(ev->kind), body };
    int rc = event_decode(a, &row, s, &catalog, &again, NULL);
    assert(rc == 0);
    const char *twice = event_encode(a, &again, s, &catalog);
    assert(strcmp(body, twice) == 0);
}

/* Once to be taken back, once for good: both times with the same answer. */
static int apply_twice(struct state *s, const struct event *ev, struct err *e)
{
    state_mark(s);
    int rc = state_apply(s, ev, e);
    state_undo(s);
    state_assert(s);
    int again = state_apply(s, ev, e);
    assert(rc == again);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    struct state s;
    struct event ev;
    struct err e = { 0 };

    catalog_once();
    arena_init(&a);
    state_make(&s, &a);
    char *kind = arena_strndup(&a, (const char *)data, size);
    char *body = strchr(kind, '\n');
    if (body)
        *body++ = '\0';
    const struct row_event row = { 0, 1, kind, body ? body : "" };
    int rc = event_decode(&a, &row, &s, &catalog, &ev, &e);
    if (rc == 0)
        rc = apply_twice(&s, &ev, &e);
    if (rc == 0)
        encode_again(&a, &ev, &s);
    else
        assert(e.code > 0 && strlen(e.text) > 0);
    state_assert(&s);
    state_release(&s);
    arena_release(&a);
    return 0;
}
