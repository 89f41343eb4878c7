/* account.c - what was used, and why jobs were placed as they were: for reports. */
#include "store/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "store/inner.h"

int store_add_usage(struct store *s, const struct row_usage *r, struct err *e)
{
    static const char sql[] =
        "INSERT INTO usage (hour_s, job, gpu_type, active_j, idle_j, gpu_s, steps, promised_s,"
        " kept_s, n_measured, abs_error, n_covered)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (hour_s, job, gpu_type) DO UPDATE SET"
        " active_j = active_j + excluded.active_j,"
        " idle_j = idle_j + excluded.idle_j,"
        " gpu_s = gpu_s + excluded.gpu_s,"
        " steps = steps + excluded.steps,"
        " promised_s = promised_s + excluded.promised_s,"
        " kept_s = kept_s + excluded.kept_s,"
        " n_measured = n_measured + excluded.n_measured,"
        " abs_error = abs_error + excluded.abs_error,"
        " n_covered = n_covered + excluded.n_covered";
    const double sums[] = { r->active_j, r->idle_j,     r->gpu_s,     r->steps,    r->promised_s,
                            r->kept_s,   r->n_measured, r->abs_error, r->n_covered };
    struct binder b = { 0 };
    int rc = store_may_write(s, e);

    if (rc == 0)
        rc = store_stmt(s, STMT_ADD_USAGE, sql, &b.q, e);
    if (rc < 0)
        return rc;
    bind_int(&b, r->hour_s);
    bind_int(&b, r->job);
    bind_int(&b, r->gpu_type);
    for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
        bind_real(&b, sums[i]);
    return store_run(s, b.q, b.rc, "writing what was used", e);
}

/* Those beyond the newest STORE_DECISIONS_MAX of a job go. Newest is what was written last, whatever
 * a clock that was set back says.
 */
static int drop_old_decisions(struct store *s, int64_t job, struct err *e)
{
    struct binder b = { 0 };
    int rc = store_stmt(s, STMT_DROP_DECISIONS,
                        "DELETE FROM decisions WHERE id IN (SELECT id FROM decisions"
                        " WHERE job = ? ORDER BY id DESC LIMIT -1 OFFSET ?)",
                        &b.q, e);

    if (rc < 0)
        return rc;
    bind_int(&b, job);
    bind_int(&b, STORE_DECISIONS_MAX);
    return store_run(s, b.q, b.rc, "forgetting old decisions", e);
}

int store_put_decision(struct store *s, int64_t job, double time_s, const char *body, struct err *e)
{
    struct binder b = { 0 };
    int rc = store_may_write(s, e);

    if (rc == 0)
        rc = store_stmt(s, STMT_PUT_DECISION,
                        "INSERT INTO decisions (job, time_s, body) VALUES (?, ?, ?)", &b.q, e);
    if (rc < 0)
        return rc;
    bind_int(&b, job);
    bind_real(&b, time_s);
    bind_text(&b, body);
    rc = store_run(s, b.q, b.rc, "writing a decision", e);
    return rc < 0 ? rc : drop_old_decisions(s, job, e);
}

int store_get_decision(struct store *s, int64_t job, double time_s, char **body, struct err *e)
{
    struct binder b = { 0 };
    int rc = store_stmt(s, STMT_GET_DECISION,
                        "SELECT body FROM decisions WHERE job = ? AND time_s <= ?"
                        " ORDER BY id DESC LIMIT 1",
                        &b.q, e);

    *body = NULL;
    if (rc < 0)
        return rc;
    bind_int(&b, job);
    bind_real(&b, time_s);
    rc = b.rc == SQLITE_OK ? sqlite3_step(b.q) : b.rc;
    if (rc == SQLITE_ROW) {
        *body = strdup(take_text(b.q, 0));
        if (*body == NULL)
            abort();
        rc = 0;
    } else if (rc == SQLITE_DONE) {
        rc = err_set(e, ENOENT, "%s: no decision about job %lld is kept", s->path, (long long)job);
    } else {
        rc = store_fail(s, rc, "reading a decision", e);
    }
    sqlite3_reset(b.q);
    return rc;
}
