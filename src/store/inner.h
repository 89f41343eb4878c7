/* inner.h - what the files of this room share: the open database and its statements.
 *
 * Nobody outside src/store includes this, except the room's own tests.
 */
#ifndef STORE_INNER_H
#define STORE_INNER_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

/* Statements that are prepared once and kept; tables.c has their text. Readers (store_each_*) are
 * not among them: each call prepares its own, so that a callback may read as well.
 */
enum stmt_id {
    STMT_BEGIN,
    STMT_COMMIT,
    STMT_ROLLBACK,
    STMT_FIND_ORIGIN,
    STMT_GET_DECISION,
    STMT_GET_META,
    STMT_GET_MODEL,
    STMT_MODEL_TIME,
    STMT_PUT_GPU_TYPE,    // from here on they write, and need a transaction
    STMT_FILL_GPU_TYPE,
    STMT_PUT_WORKLOAD,
    STMT_FILL_WORKLOAD,
    STMT_KEEP_CAMPAIGN,
    STMT_ADD_MEASUREMENT,
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
    STMT_SET_META,
    STMT_KEEP_META,
    STMT_PUT_MODEL,
    STMT_PUT_ARRIVALS,
    STMT_DROP_ARRIVALS,
    STMT_END_ARRIVALS,
    STMT_COUNT
};

/* A table of the schema and the struct row_* that holds one of its rows. */
struct store_table {
    const char *name;
    const char *title;    // "reading TITLE" in messages
    int n_key;            // how many of the columns that are written, the first ones, are its key
    struct column {
        const char *name;    // NULL behind the last one
        enum column_type {
            COLUMN_ROWID,    // int64_t, given out by SQLite: read, never written
            COLUMN_ID,       // int64_t
            COLUMN_REF,      // int64_t, 0 stands for none
            COLUMN_INT,
            COLUMN_FLAG,
            COLUMN_REAL,    // NaN stands for unknown
            COLUMN_TEXT,    // NULL stands for none
        } type;
        size_t offset;
    } column[24];
};

extern const struct store_table table_gpu_types, table_workloads, table_campaigns,
    table_measurements, table_events, table_nodes, table_gpus, table_jobs, table_job_states,
    table_usage;

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

/* 0 when a transaction is open; -ECANCELED when SQLite had to undo it. Writing
 * outside of store_begin is our own mistake.
 */
int store_may_write(struct store *s, struct err *e);

/* A kept statement on its way: store_stmt, then binds from left to right, then store_run. The
 * first failure stays, and what follows does nothing.
 */
struct binder {
    struct store *s;
    enum stmt_id id;
    sqlite3_stmt *q;
    struct err *e;
    int at;
    int rc;    // of SQLite; negative: ours, and in 'e' already
};

struct binder store_stmt(struct store *s, enum stmt_id id, struct err *e);
void bind_int(struct binder *b, int64_t v);
void bind_real(struct binder *b, double v);
void bind_text(struct binder *b, const char *v);    // NULL binds NULL

/* Run it and reset it. Where it gives a row, the first column goes into '*id' (may be NULL). */
int store_run(struct binder *b, int64_t *id);

/* The three in one, with the columns of the statement's table from 'row', a struct row_*. */
int store_write(struct store *s, enum stmt_id id, const void *row, int64_t *out, struct err *e);

/* A statement that reads one row: 0 when it is there, until sqlite3_reset; else -ENOENT without
 * a message, or a failure.
 */
int store_step(struct binder *b);

/* "SELECT columns FROM table TAIL", the first 'n' of its columns or all (0), prepared into '*q';
 * an SQLite code.
 */
int store_select(struct store *s, const struct store_table *t, int n, const char *tail,
                 sqlite3_stmt **q);

/* The row at which 'q', of store_select with the same 'n', stands. */
void store_take(sqlite3_stmt *q, const struct store_table *t, int n, void *row);

#endif
