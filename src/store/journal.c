/* journal.c - what happened, in order; the state that it adds up to; model weights. */
#include "store/store.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "store/inner.h"

int store_append_event(struct store *s, double time_s, const char *kind, const char *body,
                       int64_t *seq, struct err *e)
{
    struct binder b = { 0 };
    int rc = store_may_write(s, e);

    /* Nothing is ever deleted here, so SQLite's choice (the largest + 1) has no gaps. */
    if (rc == 0)
        rc = store_stmt(s, STMT_APPEND_EVENT,
                        "INSERT INTO events (time_s, kind, body) VALUES (?, ?, ?)", &b.q, e);
    if (rc < 0)
        return rc;
    bind_real(&b, time_s);
    bind_text(&b, kind);
    bind_text(&b, body);
    rc = store_run(s, b.q, b.rc, "writing to the journal", e);
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
    struct binder b = { 0 };
    int rc = store_may_write(s, e);

    if (rc == 0)
        rc = store_stmt(s, STMT_PUT_NODE,
                        "INSERT INTO nodes (id, name, body) VALUES (?1, ?2, ?3)"
                        " ON CONFLICT (id) DO UPDATE SET name = ?2, body = ?3",
                        &b.q, e);
    if (rc < 0)
        return rc;
    bind_int(&b, r->id);
    bind_text(&b, r->name);
    bind_text(&b, r->body);
    return store_run(s, b.q, b.rc, "writing a node", e);
}

int store_put_gpu(struct store *s, const struct row_gpu *r, struct err *e)
{
    struct binder b = { 0 };
    int rc = store_may_write(s, e);

    if (rc == 0)
        rc = store_stmt(s, STMT_PUT_GPU,
                        "INSERT INTO gpus (id, node, slot, type, body)"
                        " VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (id) DO UPDATE"
                        " SET node = ?2, slot = ?3, type = ?4, body = ?5",
                        &b.q, e);
    if (rc < 0)
        return rc;
    bind_int(&b, r->id);
    bind_int(&b, r->node);
    bind_int(&b, r->slot);
    bind_text(&b, r->type);
    bind_text(&b, r->body);
    return store_run(s, b.q, b.rc, "writing a GPU", e);
}

int store_put_job(struct store *s, const struct row_job *r, struct err *e)
{
    static const char sql[] =
        "INSERT INTO jobs (id, name, owner, workload, is_inference, submit_s, steps, is_guess,"
        " rate, duration_s, min_throughput, deadline_s, n_gpus, max_gpus, priority,"
        " is_exclusive, n_nodes, types, command, key, digest)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    struct binder b = { 0 };
    int rc = store_may_write(s, e);

    if (rc == 0)
        rc = store_stmt(s, STMT_PUT_JOB, sql, &b.q, e);
    if (rc < 0)
        return rc;
    bind_int(&b, r->id);
    bind_text(&b, r->name);
    bind_text(&b, r->owner);
    bind_text(&b, r->workload);
    bind_int(&b, r->is_inference);
    bind_real(&b, r->submit_s);
    bind_real(&b, r->steps);
    bind_int(&b, r->is_guess);
    bind_real(&b, r->rate);
    bind_real(&b, r->duration_s);
    bind_real(&b, r->min_throughput);
    bind_real(&b, r->deadline_s);
    bind_int(&b, r->n_gpus);
    bind_int(&b, r->max_gpus);
    bind_int(&b, r->priority);
    bind_int(&b, r->is_exclusive);
    bind_int(&b, r->n_nodes);
    bind_text(&b, r->types);
    bind_text(&b, r->command);
    bind_text(&b, r->key);
    bind_text(&b, r->digest);
    return store_run(s, b.q, b.rc, "writing a job", e);
}

static int write_job_state(struct store *s, enum stmt_id which, const char *sql,
                           const struct row_job_state *r, struct err *e)
{
    struct binder b = { 0 };
    int rc = store_stmt(s, which, sql, &b.q, e);

    if (rc < 0)
        return rc;
    bind_int(&b, r->id);
    bind_text(&b, r->state);
    bind_real(&b, r->steps_done);
    bind_real(&b, r->heard_s);
    bind_real(&b, r->pace);
    bind_real(&b, r->changed_s);
    bind_real(&b, r->started_s);
    bind_int(&b, r->n_moves);
    bind_int(&b, r->limit_w);
    bind_text(&b, r->gpus);
    bind_text(&b, r->reason);
    return store_run(s, b.q, b.rc, "writing where a job stands", e);
}

/* Nearly always it stands somewhere already, so that is tried first. */
int store_put_job_state(struct store *s, const struct row_job_state *r, struct err *e)
{
    int rc = store_may_write(s, e);

    if (rc == 0)
        rc = write_job_state(s, STMT_SET_JOB_STATE,
                             "UPDATE job_states SET state = ?2, steps_done = ?3, heard_s = ?4,"
                             " pace = ?5, changed_s = ?6, started_s = ?7, n_moves = ?8,"
                             " limit_w = ?9, gpus = ?10, reason = ?11 WHERE id = ?1",
                             r, e);
    if (rc == 0 && sqlite3_changes(s->db) == 0)
        rc = write_job_state(s, STMT_ADD_JOB_STATE,
                             "INSERT INTO job_states (id, state, steps_done, heard_s, pace,"
                             " changed_s, started_s, n_moves, limit_w, gpus, reason)"
                             " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                             r, e);
    return rc;
}

int store_mark_applied(struct store *s, int64_t applied_seq, struct err *e)
{
    struct binder b = { 0 };
    int rc = store_may_write(s, e);

    if (rc == 0)
        rc = store_stmt(s, STMT_SET_META,
                        "INSERT INTO meta (key, value) VALUES ('applied_seq', ?1)"
                        " ON CONFLICT (key) DO UPDATE SET value = ?1",
                        &b.q, e);
    if (rc < 0)
        return rc;
    bind_int(&b, applied_seq);
    return store_run(s, b.q, b.rc, "marking how far the state is", e);
}

int store_applied_seq(struct store *s, int64_t *applied_seq, struct err *e)
{
    sqlite3_stmt *q = NULL;
    int rc =
        store_stmt(s, STMT_GET_META, "SELECT value FROM meta WHERE key = 'applied_seq'", &q, e);

    *applied_seq = 0;
    return rc < 0 ? rc : store_run_id(s, q, SQLITE_OK, "reading the state", applied_seq, e);
}

int store_put_model(struct store *s, const char *name, double time_s, const void *bytes, size_t len,
                    struct err *e)
{
    struct binder b = { 0 };
    int rc = store_may_write(s, e);

    if (rc == 0)
        rc = store_stmt(s, STMT_PUT_MODEL,
                        "INSERT INTO models (name, time_s, bytes) VALUES (?, ?, ?)", &b.q, e);
    if (rc < 0)
        return rc;
    bind_text(&b, name);
    bind_real(&b, time_s);
    if (b.rc == SQLITE_OK)
        b.rc = len == 0 ? sqlite3_bind_zeroblob(b.q, 3, 0)
                        : sqlite3_bind_blob64(b.q, 3, bytes, len, SQLITE_STATIC);
    return store_run(s, b.q, b.rc, "writing a model", e);
}

int store_get_model(struct store *s, const char *name, void **bytes, size_t *len, struct err *e)
{
    struct binder b = { 0 };
    int rc = store_stmt(s, STMT_GET_MODEL,
                        "SELECT bytes FROM models WHERE name = ?"
                        " ORDER BY id DESC LIMIT 1",
                        &b.q, e);

    *bytes = NULL;
    *len = 0;
    if (rc < 0)
        return rc;
    bind_text(&b, name);
    rc = b.rc == SQLITE_OK ? sqlite3_step(b.q) : b.rc;
    if (rc == SQLITE_ROW) {
        *len = (size_t)sqlite3_column_bytes(b.q, 0);
        *bytes = malloc(*len > 0 ? *len : 1);
        if (*bytes == NULL)
            abort();
        if (*len > 0)
            memcpy(*bytes, sqlite3_column_blob(b.q, 0), *len);
        rc = 0;
    } else if (rc == SQLITE_DONE) {
        rc = err_set(e, ENOENT, "%s: no model '%s' yet", s->path, name);
    } else {
        rc = store_fail(s, rc, "reading a model", e);
    }
    sqlite3_reset(b.q);
    return rc;
}

int store_model_time(struct store *s, const char *name, double *time_s, struct err *e)
{
    struct binder b = { 0 };
    int rc =
        store_stmt(s, STMT_MODEL_TIME,
                   "SELECT time_s FROM models WHERE name = ? ORDER BY id DESC LIMIT 1", &b.q, e);

    *time_s = 0;
    if (rc < 0)
        return rc;
    bind_text(&b, name);
    rc = b.rc == SQLITE_OK ? sqlite3_step(b.q) : b.rc;
    if (rc == SQLITE_ROW) {
        *time_s = sqlite3_column_double(b.q, 0);
        rc = 0;
    } else if (rc == SQLITE_DONE) {
        rc = err_set(e, ENOENT, "%s: no model '%s' yet", s->path, name);
    } else {
        rc = store_fail(s, rc, "reading a model", e);
    }
    sqlite3_reset(b.q);
    return rc;
}

int store_number(struct store *s, const char *key, int64_t otherwise, int64_t *out, struct err *e)
{
    struct binder b = { 0 };
    int rc = store_may_write(s, e);

    if (rc == 0)
        rc = store_stmt(s, STMT_KEEP_META,
                        "INSERT INTO meta (key, value) VALUES (?1, ?2)"
                        " ON CONFLICT (key) DO UPDATE SET value = value RETURNING value",
                        &b.q, e);
    if (rc < 0)
        return rc;
    bind_text(&b, key);
    bind_int(&b, otherwise);
    return store_run_id(s, b.q, b.rc, "keeping a number", out, e);
}
