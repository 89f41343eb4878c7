/* Any promise of an sbatch job is the body of a submission, or an error that says why; and any job
 * with such a comment and admin comment is a job that the state takes. The first line is the admin
 * comment, the rest the comment.
 */
#include <assert.h>
#include <jansson.h>
#include <stdint.h>
#include <string.h>

#include "act/slurm/view.h"
#include "base/arena.h"
#include "base/err.h"
#include "catalog/catalog.h"
#include "catalog/cluster/event.h"
#include "catalog/cluster/state.h"
#include "daemon/config/auth.h"
#include "daemon/http/shapes.h"
#include "daemon/submit/intake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct catalog catalog;
static struct accounts accounts;

static void once(void)
{
    struct workload w;
    int index;

    if (catalog.n_types)
        return;
    catalog_init(&catalog);
    catalog_add_type(&catalog, gpu_type_builtin("v100"), &index, NULL);
    catalog_add_type(&catalog, gpu_type_builtin("k80"), &index, NULL);
    workload_init(&w, "net (batch size 8)");
    w.batch = 8;
    catalog_add_workload(&catalog, &w, &index, NULL);
}

static void promise(struct arena *a, const char *text)
{
    struct err e = { 0 };
    json_t *body = NULL;
    int rc = intake_promise(a, text, 1000, &body, &e);

    if (rc < 0) {
        assert(e.code == -rc && strlen(e.text) > 0 && !body);
        return;
    }
    json_object_set_new(body, "argv", json_pack("[s]", "run"));
    rc = schema_check(&schema_submit, body, &e);
    assert(rc == 0);
    json_decref(body);
}

static void take(struct arena *a, const char *admin, const char *comment)
{
    const struct slurm_job j = { .id = 7,
                                 .array = -1,
                                 .task = -1,
                                 .submit_s = 900,
                                 .partition = "gogh",
                                 .gres = admin,
                                 .name = comment,
                                 .comment = comment,
                                 .admin = admin,
                                 .command = admin,
                                 .cwd = comment };
    struct state s;
    struct submit want;
    struct err e = { 0 };

    state_init(&s);
    const struct submit_context context = { .catalog = &catalog, .state = &s, .now_s = 1000 };
    int rc = intake_read(&accounts, a, &context, &j, &want, &e);
    if (rc == 0) {
        struct event ev = { .kind = EVENT_JOB_SUBMITTED, .time_s = 1000, .spec = &want.spec };
        if (want.is_new_workload)
            want.spec.workload = 0;    // its index is the catalog's to give
        assert(event_encode(a, &ev, &s, &catalog));
        rc = state_apply(&s, &ev, &e);
        assert(rc == 0 && state_find_key(&s, want.spec.key) == 0);
    } else {
        assert(e.code == -rc && strlen(e.text) > 0);
    }
    state_release(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;

    once();
    arena_init(&a);
    char *admin = arena_strndup(&a, (const char *)data, size);
    char *comment = strchr(admin, '\n');
    if (comment) {
        *comment++ = '\0';
        promise(&a, intake_promise_text(comment));
        promise(&a, comment);
        take(&a, admin, comment);
    }
    arena_release(&a);
    return 0;
}
