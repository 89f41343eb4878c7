/* inner.h - what the files of this room share: the open database and its statements.
 *
 * Nobody outside src/store includes this, except the room's own tests.
 */
#ifndef STORE_INNER_H
#define STORE_INNER_H

#include <math.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

struct err;

/* Statements that are prepared once and kept. Readers (store_each_*) are not among
 * them: each call prepares its own, so that a callback may read as well.
 */
enum stmt_id {
    STMT_BEGIN,
    STMT_COMMIT,
    STMT_ROLLBACK,
    STMT_PUT_GPU_TYPE,
    STMT_FILL_GPU_TYPE,
    STMT_PUT_WORKLOAD,
    STMT_FILL_WORKLOAD,
    STMT_ADD_MEASUREMENT,
    STMT_PUT_ESTIMATE,
    STMT_FIND_ORIGIN,
    STMT_ADD_ORIGIN,
    STMT_APPEND_EVENT,
    STMT_PUT_NODE,
    STMT_PUT_GPU,
    STMT_PUT_JOB,
    STMT_SET_JOB_STATE,
    STMT_ADD_JOB_STATE,
    STMT_ADD_USAGE,
    STMT_PUT_DECISION,
    STMT_DROP_DECISIONS,
    STMT_GET_DECISION,
    STMT_SET_META,
    STMT_GET_META,
    STMT_KEEP_META,
    STMT_PUT_MODEL,
    STMT_GET_MODEL,
    STMT_MODEL_TIME,
    STMT_COUNT
};

struct store {
    sqlite3 *db;
    char *path;    // for messages
    bool is_writable;
    bool is_transaction;    // between store_begin and store_commit or _rollback
    int n_holds;            // store_hold without its store_let_go yet
    sqlite3_stmt *stmt[STMT_COUNT];
};

/* "GOGH" in ASCII, at offset 68 of the file: whose database this is. */
#define STORE_APPLICATION_ID 0x474f4748

/* How long a writer waits for another one before it gives up. A daemon's commits take
 * milliseconds, but an import of a million rows holds the lock for some five seconds,
 * and nobody should fail because of one: twice that.
 */
#define STORE_BUSY_MS 10000

/* migrations[n] brings a file from version n to n + 1. Never edited once released:
 * a change of the schema is a new entry.
 */
extern const char *const store_migrations[];
extern const int store_n_migrations;

/* Run migrations[version of the file ..] up to 'n', each in its own transaction. */
int store_migrate(struct store *s, const char *const *migrations, int n, struct err *e);

/* Turn an SQLite result into our error: what failed, why, and the cure. */
int store_fail(struct store *s, int rc, const char *what, struct err *e);

/* The kept statement 'id', reset and ready to bind; prepared at first use. */
int store_stmt(struct store *s, enum stmt_id id, const char *sql, sqlite3_stmt **out,
               struct err *e);

/* Run a bound statement that gives no rows, and reset it. */
int store_run(struct store *s, sqlite3_stmt *q, int bind_rc, const char *what, struct err *e);

/* Like store_run for a statement with RETURNING: its first column into '*id'. */
int store_run_id(struct store *s, sqlite3_stmt *q, int bind_rc, const char *what, int64_t *id,
                 struct err *e);

/* 0 when a transaction is open; -ECANCELED when SQLite had to undo it. Writing
 * outside of store_begin is our own mistake.
 */
int store_may_write(struct store *s, struct err *e);

/* ---- binding, left to right; the first failure stays in 'rc' ---- */
struct binder {
    sqlite3_stmt *q;
    int at;
    int rc;
};

static inline void bind_int(struct binder *b, int64_t v)
{
    if (b->rc == SQLITE_OK)
        b->rc = sqlite3_bind_int64(b->q, ++b->at, v);
}

/* 0 stands for none. */
static inline void bind_ref(struct binder *b, int64_t id)
{
    if (b->rc == SQLITE_OK)
        b->rc = id != 0 ? sqlite3_bind_int64(b->q, ++b->at, id) : sqlite3_bind_null(b->q, ++b->at);
}

static inline void bind_real(struct binder *b, double v)
{
    if (b->rc == SQLITE_OK)
        b->rc = isnan(v) ? sqlite3_bind_null(b->q, ++b->at) : sqlite3_bind_double(b->q, ++b->at, v);
}

static inline void bind_text(struct binder *b, const char *v)
{
    if (b->rc == SQLITE_OK)
        b->rc = sqlite3_bind_text(b->q, ++b->at, v, -1, SQLITE_STATIC);    // NULL binds NULL
}

static inline double take_real(sqlite3_stmt *q, int column)
{
    double v = sqlite3_column_double(q, column);

    if (v == 0 && sqlite3_column_type(q, column) == SQLITE_NULL)    // NULL reads as 0
        return (double)NAN;
    return v;
}

static inline const char *take_text(sqlite3_stmt *q, int column)
{
    return (const char *)sqlite3_column_text(q, column);
}

#endif
