/* journal.c - what happened, in order; the checkpoint over it; model weights. */
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
                        "INSERT INTO events (time_s, kind, body) VALUES (?, ?, ?) RETURNING seq",
                        &b.q, e);
    if (rc < 0)
        return rc;
    bind_real(&b, time_s);
    bind_text(&b, kind);
    bind_text(&b, body);
    return store_run_id(s, b.q, b.rc, "writing to the journal", seq, e);
}

int store_clear_checkpoint(struct store *s, struct err *e)
{
    int rc = store_may_write(s, e);

    if (rc < 0)
        return rc;
    rc = sqlite3_exec(s->db, "DELETE FROM jobs; DELETE FROM gpus; DELETE FROM nodes", NULL, NULL,
                      NULL);
    return rc == SQLITE_OK ? 0 : store_fail(s, rc, "clearing the checkpoint", e);
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
    struct binder b = { 0 };
    int rc = store_may_write(s, e);

    if (rc == 0)
        rc = store_stmt(s, STMT_PUT_JOB,
                        "INSERT INTO jobs (id, state, owner, body)"
                        " VALUES (?1, ?2, ?3, ?4) ON CONFLICT (id) DO UPDATE"
                        " SET state = ?2, owner = ?3, body = ?4",
                        &b.q, e);
    if (rc < 0)
        return rc;
    bind_int(&b, r->id);
    bind_text(&b, r->state);
    bind_text(&b, r->owner);
    bind_text(&b, r->body);
    return store_run(s, b.q, b.rc, "writing a job", e);
}

int store_mark_checkpoint(struct store *s, int64_t applied_seq, struct err *e)
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
    return store_run(s, b.q, b.rc, "marking the checkpoint", e);
}

int store_checkpoint_seq(struct store *s, int64_t *applied_seq, struct err *e)
{
    sqlite3_stmt *q = NULL;
    int rc =
        store_stmt(s, STMT_GET_META, "SELECT value FROM meta WHERE key = 'applied_seq'", &q, e);

    *applied_seq = 0;
    return rc < 0 ? rc : store_run_id(s, q, SQLITE_OK, "reading the checkpoint", applied_seq, e);
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
