/* write.c - rows in, and the small facts that are written without a struct of their own. */
#include "store/store.h"

#include "base/err.h"
#include "store/inner.h"

/* ---- the catalog ---- */

int store_put_gpu_type(struct store *s, const struct row_gpu_type *r, int64_t *id, struct err *e)
{
    return store_write(s, STMT_PUT_GPU_TYPE, r, id, e);
}

int store_fill_gpu_type(struct store *s, const struct row_gpu_type *r, int64_t *id, struct err *e)
{
    return store_write(s, STMT_FILL_GPU_TYPE, r, id, e);
}

int store_put_workload(struct store *s, const struct row_workload *r, int64_t *id, struct err *e)
{
    return store_write(s, STMT_PUT_WORKLOAD, r, id, e);
}

int store_fill_workload(struct store *s, const struct row_workload *r, int64_t *id, struct err *e)
{
    return store_write(s, STMT_FILL_WORKLOAD, r, id, e);
}

int store_keep_campaign(struct store *s, const char *name, int sharing, int64_t *id, struct err *e)
{
    struct binder b = store_stmt(s, STMT_KEEP_CAMPAIGN, e);

    bind_text(&b, name);
    bind_int(&b, sharing);
    return store_run(&b, id);
}

int store_add_measurement(struct store *s, const struct row_measurement *r, struct err *e)
{
    return store_write(s, STMT_ADD_MEASUREMENT, r, NULL, e);
}

int store_find_origin(struct store *s, const char *kind, const char *digest, int64_t *id,
                      struct err *e)
{
    struct binder b = store_stmt(s, STMT_FIND_ORIGIN, e);

    *id = 0;
    bind_text(&b, kind);
    bind_text(&b, digest);
    return store_run(&b, id);
}

int store_add_origin(struct store *s, const char *kind, const char *name, const char *digest,
                     double time_s, int64_t *id, struct err *e)
{
    struct binder b = store_stmt(s, STMT_ADD_ORIGIN, e);

    bind_text(&b, kind);
    bind_text(&b, name);
    bind_text(&b, digest);
    bind_real(&b, time_s);
    return store_run(&b, id);
}

/* ---- the journal and the state that it adds up to ---- */

int store_append_event(struct store *s, double time_s, const char *kind, const char *body,
                       int64_t *seq, struct err *e)
{
    struct row_event r = { .time_s = time_s, .kind = kind, .body = body };
    int rc = store_write(s, STMT_APPEND_EVENT, &r, NULL, e);

    if (rc == 0 && seq != NULL)
        *seq = sqlite3_last_insert_rowid(s->db);    // RETURNING takes a microsecond more
    return rc;
}

int store_clear_state(struct store *s, struct err *e)
{
    int rc = store_may_write(s, e);

    if (rc < 0)
        return rc;
    rc = sqlite3_exec(s->db,
                      "DELETE FROM job_states; DELETE FROM jobs; DELETE FROM gpus;"
                      " DELETE FROM nodes",
                      NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : store_fail(s, rc, "clearing the state", e);
}

int store_put_node(struct store *s, const struct row_node *r, struct err *e)
{
    return store_write(s, STMT_PUT_NODE, r, NULL, e);
}

int store_put_gpu(struct store *s, const struct row_gpu *r, struct err *e)
{
    return store_write(s, STMT_PUT_GPU, r, NULL, e);
}

int store_put_job(struct store *s, const struct row_job *r, struct err *e)
{
    return store_write(s, STMT_PUT_JOB, r, NULL, e);
}

/* Nearly always it stands somewhere already, so that is tried first. */
int store_put_job_state(struct store *s, const struct row_job_state *r, struct err *e)
{
    int rc = store_write(s, STMT_SET_JOB_STATE, r, NULL, e);

    if (rc == 0 && sqlite3_changes(s->db) == 0)
        rc = store_write(s, STMT_ADD_JOB_STATE, r, NULL, e);
    return rc;
}

int store_mark_applied(struct store *s, int64_t applied_seq, struct err *e)
{
    struct binder b = store_stmt(s, STMT_SET_META, e);

    bind_int(&b, applied_seq);
    return store_run(&b, NULL);
}

int store_number(struct store *s, const char *key, int64_t otherwise, int64_t *out, struct err *e)
{
    struct binder b = store_stmt(s, STMT_KEEP_META, e);

    bind_text(&b, key);
    bind_int(&b, otherwise);
    return store_run(&b, out);
}

/* ---- model weights, usage and decisions ---- */

int store_put_model(struct store *s, const char *name, double time_s, const void *bytes, size_t len,
                    struct err *e)
{
    struct binder b = store_stmt(s, STMT_PUT_MODEL, e);

    bind_text(&b, name);
    bind_real(&b, time_s);
    if (b.rc == SQLITE_OK)
        b.rc = len == 0 ? sqlite3_bind_zeroblob(b.q, 3, 0)
                        : sqlite3_bind_blob64(b.q, 3, bytes, len, SQLITE_STATIC);
    return store_run(&b, NULL);
}

int store_put_arrivals(struct store *s, const struct row_arrivals *r, struct err *e)
{
    struct binder b = store_stmt(s, STMT_PUT_ARRIVALS, e);

    bind_int(&b, r->service);
    bind_int(&b, r->hour_s);
    if (b.rc == SQLITE_OK)
        b.rc = sqlite3_bind_blob64(b.q, 3, r->len > 0 ? r->bytes : "", r->len, SQLITE_STATIC);
    return store_run(&b, NULL);
}

int store_drop_arrivals(struct store *s, int64_t service, int64_t before_s, struct err *e)
{
    struct binder b = store_stmt(s, before_s < 0 ? STMT_END_ARRIVALS : STMT_DROP_ARRIVALS, e);

    bind_int(&b, service);
    if (before_s >= 0)
        bind_int(&b, before_s);
    return store_run(&b, NULL);
}

int store_add_usage(struct store *s, const struct row_usage *r, struct err *e)
{
    return store_write(s, STMT_ADD_USAGE, r, NULL, e);
}

/* Those beyond the newest STORE_DECISIONS_MAX of a job go. Newest is what was written last,
 * whatever a clock that was set back says.
 */
static int drop_old_decisions(struct store *s, int64_t job, struct err *e)
{
    struct binder b = store_stmt(s, STMT_DROP_DECISIONS, e);

    bind_int(&b, job);
    bind_int(&b, STORE_DECISIONS_MAX);
    return store_run(&b, NULL);
}

int store_put_decision(struct store *s, int64_t job, double time_s, const char *body, struct err *e)
{
    struct binder b = store_stmt(s, STMT_PUT_DECISION, e);

    bind_int(&b, job);
    bind_real(&b, time_s);
    bind_text(&b, body);
    int rc = store_run(&b, NULL);
    return rc < 0 ? rc : drop_old_decisions(s, job, e);
}
