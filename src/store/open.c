/* open.c - opening, checking whose file it is, migrations, transactions, errors. */
#include "store/store.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/grow.h"
#include "store/inner.h"

/* ---- errors ---- */

static int fail_full(const struct store *s, const char *what, struct err *e)
{
    return err_set(e, ENOSPC,
                   "%s: %s: the disk is full; make room and try again, the last "
                   "transaction was not written",
                   s->path, what);
}

static int fail_read_only(const struct store *s, const char *what, const char *why, struct err *e)
{
    return err_set(e, EROFS,
                   "%s: %s: %s; the file was writable and is no more: mount its disk for writing, "
                   "or put the file back, and try again",
                   s->path, what, why);
}

/* SQLite names the operation that failed, the system the reason: an errno, 0 where it is not
 * known. What is written goes to the log, which remembers why it could not.
 */
static int reason_of(struct store *s, int rc)
{
    sqlite3_file *log = NULL;
    int reason = 0;

    if ((rc & 0xff) != SQLITE_IOERR && (rc & 0xff) != SQLITE_CANTOPEN)
        return 0;
    if ((rc == SQLITE_IOERR_WRITE || rc == SQLITE_IOERR_FSYNC) &&
        sqlite3_file_control(s->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK &&
        log != NULL && log->pMethods != NULL)
        log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &reason);
    return reason != 0 ? reason : sqlite3_system_errno(s->db);
}

static int fail_io(struct store *s, int rc, const char *what, const char *why, struct err *e)
{
    int reason = reason_of(s, rc);

    if (reason == ENOSPC || reason == EDQUOT || reason == EFBIG)
        return fail_full(s, what, e);
    if (reason == EROFS)
        return fail_read_only(s, what, strerror(reason), e);
    return err_set(e, EIO,
                   "%s: %s: %s%s%s; check the disk and its file system, then try again or "
                   "restore a copy",
                   s->path, what, why, reason != 0 ? ": " : "",
                   reason != 0 ? strerror(reason) : "");
}

int store_fail(struct store *s, int rc, const char *what, struct err *e)
{
    const char *why = sqlite3_errmsg(s->db);

    switch (rc & 0xff) {
    case SQLITE_NOTADB:
        return err_set(e, EINVAL, "%s: not a GOGH store; give the path of a store, or a new name",
                       s->path);
    case SQLITE_CORRUPT:
        return err_set(e, EIO,
                       "%s: %s: the file is damaged or cut short (%s); restore a copy, or save "
                       "what is left with 'sqlite3 FILE .recover'",
                       s->path, what, why);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return err_set(e, EBUSY, "%s: %s: another process is writing; try again when it is done",
                       s->path, what);
    case SQLITE_FULL:
        return fail_full(s, what, e);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
        if (s->is_writable && (rc & 0xff) == SQLITE_CANTOPEN)
            return fail_io(s, rc, what, why, e);
        if (s->is_writable)
            return fail_read_only(s, what, why, e);
        return err_set(e, EACCES,
                       "%s: %s: %s; the file and its directory must be writable for the "
                       "user who runs this",
                       s->path, what, why);
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
        return err_set(e, EINVAL, "%s: %s: %s", s->path, what, why);
    case SQLITE_TOOBIG:
        return err_set(e, EFBIG, "%s: %s: a text or blob over SQLite's limit", s->path, what);
    default:
        return fail_io(s, rc, what, why, e);
    }
}

/* ---- statements ---- */

static int run_sql(struct store *s, const char *sql, const char *what, struct err *e)
{
    int rc = sqlite3_exec(s->db, sql, NULL, NULL, NULL);

    return rc == SQLITE_OK ? 0 : store_fail(s, rc, what, e);
}

/* The first column of the first row of 'sql'; an SQLite code. */
static int query_int(struct store *s, const char *sql, int64_t *out)
{
    sqlite3_stmt *q = NULL;
    int rc = sqlite3_prepare_v2(s->db, sql, -1, &q, NULL);

    if (rc == SQLITE_OK)
        rc = sqlite3_step(q);
    if (rc == SQLITE_ROW) {
        *out = sqlite3_column_int64(q, 0);
        rc = SQLITE_OK;
    }
    int finalized = sqlite3_finalize(q);
    return rc == SQLITE_OK ? finalized : rc;
}

/* ---- transactions ---- */

int store_hold(struct store *s, struct err *e)
{
    int rc = 0;

    if (s->n_holds == 0 && !s->is_transaction)
        rc = run_sql(s, "BEGIN", "beginning to read", e);
    s->n_holds += rc == 0;
    return rc;
}

void store_let_go(struct store *s)
{
    assert(s->n_holds > 0);
    if (--s->n_holds == 0 && !s->is_transaction)
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);    // nothing was written
}

static int run_kept(struct store *s, enum stmt_id id, struct err *e)
{
    struct binder b = store_stmt(s, id, e);

    return store_run(&b, NULL);
}

int store_begin(struct store *s, struct err *e)
{
    int rc;

    assert(!s->is_transaction && s->n_holds == 0);
    if (!s->is_writable)
        return err_set(e, EROFS, "%s: opened for reading only", s->path);
    rc = run_kept(s, STMT_BEGIN, e);
    s->is_transaction = rc == 0;
    return rc;
}

int store_commit(struct store *s, struct err *e)
{
    int rc = store_may_write(s, e);

    if (rc == 0)
        rc = run_kept(s, STMT_COMMIT, e);
    if (rc < 0)
        store_rollback(s);
    s->is_transaction = false;
    return rc;
}

void store_rollback(struct store *s)
{
    /* SQLite undoes by itself after a full disk or an I/O error. */
    if (s->is_transaction && !sqlite3_get_autocommit(s->db))
        run_kept(s, STMT_ROLLBACK, NULL);
    s->is_transaction = false;
}

bool store_is_begun(const struct store *s)
{
    return s->is_transaction;
}

int store_may_write(struct store *s, struct err *e)
{
    assert(s->is_transaction);
    if (sqlite3_get_autocommit(s->db))
        return err_set(e, ECANCELED, "%s: the transaction was undone by an earlier error", s->path);
    return 0;
}

/* ---- the schema ---- */

static int damaged_version(const struct store *s, int64_t version, struct err *e)
{
    return err_set(e, EINVAL,
                   "%s: schema version %d makes no sense: the file is damaged; restore a copy",
                   s->path, (int)version);
}

int store_migrate(struct store *s, const char *const *migrations, int n, struct err *e)
{
    for (;;) {
        int64_t version = 0;
        char mark[48];
        int rc = store_begin(s, e);

        if (rc < 0)
            return rc;
        /* Read again under the lock: another process may have been quicker. */
        rc = query_int(s, "PRAGMA user_version", &version);
        if (rc != SQLITE_OK) {
            rc = store_fail(s, rc, "reading the schema version", e);
        } else if (version < 0) {
            rc = damaged_version(s, version, e);
        } else if (version >= n) {
            store_rollback(s);
            return 0;
        } else {
            assert(version >= 0 && version < n);
            snprintf(mark, sizeof(mark), "PRAGMA user_version = %d", (int)version + 1);
            rc = run_sql(s, migrations[version], "migrating the schema", e);
            if (rc == 0)
                rc = run_sql(s, mark, "migrating the schema", e);
        }
        if (rc < 0)
            store_rollback(s);
        else
            rc = store_commit(s, e);
        if (rc < 0)
            return rc;
    }
}

/* All from one moment: another process may be making this very store. */
static int read_identity(struct store *s, int64_t *n_tables, int64_t *id, int64_t *version,
                         struct err *e)
{
    int rc = store_hold(s, e);

    if (rc < 0)
        return rc;
    *n_tables = *id = *version = 0;
    rc = query_int(s, "SELECT count(*) FROM sqlite_schema", n_tables);
    if (rc == SQLITE_OK)
        rc = query_int(s, "PRAGMA application_id", id);
    if (rc == SQLITE_OK)
        rc = query_int(s, "PRAGMA user_version", version);
    rc = rc == SQLITE_OK ? 0 : store_fail(s, rc, "opening", e);
    store_let_go(s);
    return rc;
}

/* Is this file ours, and of a version that we can use? '*is_new' when it has nothing
 * in it yet. The first query also finds out whether the file can be read at all.
 */
static int check_identity(struct store *s, enum store_mode mode, bool *is_new, struct err *e)
{
    int64_t n_tables, id, version;
    int rc = read_identity(s, &n_tables, &id, &version, e);

    if (rc < 0)
        return rc;
    *is_new = n_tables == 0 && id == 0 && version == 0;
    if (*is_new && mode == STORE_CREATE)
        return 0;
    if (*is_new)
        return err_set(e, EINVAL, "%s: an empty file, not a GOGH store; 'gogh import' makes one",
                       s->path);
    if (id != STORE_APPLICATION_ID)
        return err_set(e, EINVAL,
                       "%s: an SQLite file of another program, not a GOGH store; give another path",
                       s->path);
    if (version < 0)
        return damaged_version(s, version, e);
    if (version > store_n_migrations)
        return err_set(e, EINVAL,
                       "%s: made by a newer GOGH (schema %d, this one knows %d); upgrade GOGH",
                       s->path, (int)version, store_n_migrations);
    if (version < store_n_migrations && mode == STORE_READ)
        return err_set(e, EINVAL,
                       "%s: made by an older GOGH (schema %d); open it once for writing, for "
                       "example with 'gogh import', to bring it up to date",
                       s->path, (int)version);
    return 0;
}

/* ---- opening ---- */

static int open_handle(struct store *s, const char *name, int flags, struct err *e)
{
    int rc = sqlite3_open_v2(name, &s->db, flags | SQLITE_OPEN_NOMUTEX, NULL);

    if (rc != SQLITE_OK)
        return store_fail(s, rc, "opening", e);
    sqlite3_extended_result_codes(s->db, 1);
    sqlite3_busy_timeout(s->db, STORE_BUSY_MS);
    return 0;
}

/* A store in a directory where SQLite may not make its '-shm' file cannot be shared,
 * so nobody is writing; without a log beside it, the file alone is the truth.
 */
static int open_immutable(struct store *s, struct err *e)
{
    struct buf uri;
    struct stat st;
    char *log_path;
    int rc;

    if (asprintf(&log_path, "%s-wal", s->path) < 0)
        abort();
    rc = stat(log_path, &st);
    free(log_path);
    if (rc == 0 && st.st_size > 0)
        return err_set(e, EACCES,
                       "%s: the last writer left '%s-wal' behind and this directory is not "
                       "writable; open the store once as a user who may write here",
                       s->path, s->path);

    buf_init(&uri, 64 * 1024);
    rc = buf_puts(&uri, s->path[0] == '/' ? "file://" : "file:");    // "//x" names no host
    for (const char *p = s->path; *p != '\0' && rc == 0; p++)
        rc = strchr("%?#", *p) != NULL ? buf_printf(&uri, "%%%02X", *p) : buf_append(&uri, p, 1);
    if (rc == 0)
        rc = buf_puts(&uri, "?immutable=1");
    sqlite3_close(s->db);
    s->db = NULL;
    rc = rc == 0 ? open_handle(s, buf_text(&uri), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, e)
                 : err_set(e, ENAMETOOLONG, "the path of the store is too long");
    buf_release(&uri);
    return rc;
}

static int check_path(const char *path, enum store_mode mode, struct err *e)
{
    struct stat st;

    if (strcmp(path, ":memory:") == 0)
        return 0;
    if (path[0] == '\0')
        return err_set(e, EINVAL, "the path of the store is empty");
    if (stat(path, &st) == 0) {
        if (!S_ISREG(st.st_mode))
            return err_set(e, EINVAL, "%s: not a file; give the path of a store", path);
        return 0;
    }
    if (errno == ENOENT && mode == STORE_CREATE)
        return 0;
    if (errno == ENOENT)
        return err_set(e, ENOENT, "%s: there is no such store; 'gogh import' makes one", path);
    return err_set(e, errno, "%s: %s", path, strerror(errno));
}

/* Whether the journal is in 'mode' now; an SQLite code in '*rc'. */
static bool set_journal_mode(struct store *s, const char *mode, int *rc)
{
    sqlite3_stmt *q = NULL;
    bool is_set = false;

    *rc = sqlite3_prepare_v2(s->db, "PRAGMA journal_mode = WAL", -1, &q, NULL);
    if (*rc == SQLITE_OK)
        *rc = sqlite3_step(q);
    if (*rc == SQLITE_ROW) {
        is_set = strcmp((const char *)sqlite3_column_text(q, 0), mode) == 0;
        *rc = SQLITE_OK;
    }
    sqlite3_finalize(q);
    return is_set;
}

/* SQLite does not wait by itself while another process is making the same new store. */
static int begin_logging(struct store *s, struct err *e)
{
    const char *mode = strcmp(s->path, ":memory:") == 0 ? "memory" : "wal";
    double began_s = clock_stopwatch_s();
    int rc;

    for (;;) {
        if (set_journal_mode(s, mode, &rc))
            return 0;
        if ((rc & 0xff) != SQLITE_BUSY || clock_stopwatch_s() - began_s > STORE_BUSY_MS / 1e3)
            break;
        sqlite3_sleep(10);
    }
    if (rc != SQLITE_OK)
        return store_fail(s, rc, "setting up", e);
    return err_set(
        e, EIO, "%s: no write-ahead log is possible here; keep the store on a local disk", s->path);
}

/* Settings of a connection that writes. */
static int set_up_writing(struct store *s, struct err *e)
{
    int rc;

    /* A file that the system lets us only read opens all the same, but not for this. */
    if (sqlite3_db_readonly(s->db, "main") == 1)
        return err_set(e, EACCES, "%s: not writable for the user who runs this", s->path);
    rc = begin_logging(s, e);
    if (rc == 0)
        rc = run_sql(s, "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON", "setting up", e);
    if (rc < 0)
        return rc;
    s->is_writable = true;
    return store_migrate(s, store_migrations, store_n_migrations, e);
}

static int open_checked(struct store *s, enum store_mode mode, struct err *e)
{
    /* Also for reading: only a connection that could write tidies up the log when it
     * is the last to close. query_only keeps it from changing anything else.
     */
    int flags = SQLITE_OPEN_READWRITE | (mode == STORE_CREATE ? SQLITE_OPEN_CREATE : 0);
    bool is_new = false;
    int rc = open_handle(s, s->path, flags, e);

    if (rc == 0)
        rc = check_identity(s, mode, &is_new, e);
    if (rc == -EACCES && mode == STORE_READ && access(s->path, R_OK) == 0) {
        rc = open_immutable(s, e);
        if (rc == 0)
            rc = check_identity(s, mode, &is_new, e);
    }
    if (rc < 0)
        return rc;
    if (mode == STORE_READ)
        return run_sql(s, "PRAGMA query_only = ON", "setting up", e);
    return set_up_writing(s, e);
}

int store_open(const char *path, enum store_mode mode, struct store **out, struct err *e)
{
    struct store *s;
    int rc = check_path(path, mode, e);

    *out = NULL;
    if (rc < 0)
        return rc;
    s = heap_array(1, sizeof *s);
    s->path = strdup(path);
    assert(s->path);
    rc = open_checked(s, mode, e);
    if (rc < 0) {
        store_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

void store_close(struct store *s)
{
    if (s == NULL)
        return;
    if (s->is_transaction)
        store_rollback(s);
    for (int i = 0; i < STMT_COUNT; i++)
        sqlite3_finalize(s->stmt[i]);
    sqlite3_close(s->db);
    free(s->path);
    free(s);
}

void store_blame(const struct store *s, struct err *e)
{
    size_t len = strlen(s->path);

    if (strncmp(e->text, s->path, len) != 0 || e->text[len] != ':')
        err_prefix(e, "%s", s->path);
}

void store_set_patience(struct store *s, double wait_s)
{
    sqlite3_busy_timeout(s->db, (int)(wait_s * 1e3));
}

bool store_is_writable(const struct store *s)
{
    return s->is_writable;
}
