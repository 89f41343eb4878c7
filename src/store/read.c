/* read.c - rows out, each reader one ordered scan with a callback; single facts by their key. */
#include "store/store.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/grow.h"
#include "store/inner.h"

/* A scan under way. Readers prepare their own statements, so that they nest. */
struct scan {
    struct store *s;
    const struct store_table *table;
    int n_columns;    // 0: all
    sqlite3_stmt *q;
    int rc;    // of SQLite
};

/* 'after' is the statement's first parameter, where it has one. */
static struct scan scan_begin(struct store *s, const struct store_table *t, int n_columns,
                              const char *tail, int64_t after)
{
    struct scan c = { .s = s, .table = t, .n_columns = n_columns };

    c.rc = store_select(s, t, n_columns, tail, &c.q);
    if (c.rc == SQLITE_OK && sqlite3_bind_parameter_count(c.q) > 0)
        c.rc = sqlite3_bind_int64(c.q, 1, after);
    return c;
}

/* The next row into 'row', a struct of the table. */
static bool scan_next(struct scan *c, void *row)
{
    if (c->rc == SQLITE_OK || c->rc == SQLITE_ROW)
        c->rc = sqlite3_step(c->q);
    if (c->rc != SQLITE_ROW)
        return false;
    store_take(c->q, c->table, c->n_columns, row);
    return true;
}

/* 'stopped' is what the callback said, 0 when it never stopped the scan. */
static int scan_end(struct scan *c, int stopped, struct err *e)
{
    char what[64];

    if (stopped == 0 && c->rc != SQLITE_DONE) {
        snprintf(what, sizeof(what), "reading %s", c->table->title);
        stopped = store_fail(c->s, c->rc, what, e);
    }
    sqlite3_finalize(c->q);
    return stopped;
}

int store_each_gpu_type(struct store *s, store_gpu_type_f *f, void *self, struct err *e)
{
    struct scan c = scan_begin(s, &table_gpu_types, 0, "ORDER BY id", 0);
    struct row_gpu_type r;
    int stopped = 0;

    while (stopped == 0 && scan_next(&c, &r))
        stopped = f(self, &r);
    return scan_end(&c, stopped, e);
}

int store_each_workload(struct store *s, store_workload_f *f, void *self, struct err *e)
{
    struct scan c = scan_begin(s, &table_workloads, 0, "ORDER BY id", 0);
    struct row_workload r;
    int stopped = 0;

    while (stopped == 0 && scan_next(&c, &r))
        stopped = f(self, &r);
    return scan_end(&c, stopped, e);
}

int store_each_campaign(struct store *s, store_campaign_f *f, void *self, struct err *e)
{
    struct scan c = scan_begin(s, &table_campaigns, 0, "ORDER BY id", 0);
    struct row_campaign r;
    int stopped = 0;

    while (stopped == 0 && scan_next(&c, &r))
        stopped = f(self, &r);
    return scan_end(&c, stopped, e);
}

/* 'n_columns' 0: all of them. */
static int each_measurement(struct store *s, int64_t after_id, int n_columns,
                            store_measurement_f *f, void *self, struct err *e)
{
    struct scan c =
        scan_begin(s, &table_measurements, n_columns, "WHERE id > ? ORDER BY id", after_id);
    struct row_measurement r = { .duration_s = NAN };
    int stopped = 0;

    while (stopped == 0 && scan_next(&c, &r))
        stopped = f(self, &r);
    return scan_end(&c, stopped, e);
}

int store_each_measurement(struct store *s, int64_t after_id, store_measurement_f *f, void *self,
                           struct err *e)
{
    return each_measurement(s, after_id, 0, f, self, e);
}

int store_each_observation(struct store *s, store_measurement_f *f, void *self, struct err *e)
{
    return each_measurement(s, 0, 20, f, self, e);
}

int store_each_event(struct store *s, int64_t after_seq, store_event_f *f, void *self,
                     struct err *e)
{
    struct scan c = scan_begin(s, &table_events, 0, "WHERE seq > ? ORDER BY seq", after_seq);
    struct row_event r;
    int stopped = 0;

    while (stopped == 0 && scan_next(&c, &r))
        stopped = f(self, &r);
    return scan_end(&c, stopped, e);
}

int store_each_node(struct store *s, store_node_f *f, void *self, struct err *e)
{
    struct scan c = scan_begin(s, &table_nodes, 0, "ORDER BY id", 0);
    struct row_node r;
    int stopped = 0;

    while (stopped == 0 && scan_next(&c, &r))
        stopped = f(self, &r);
    return scan_end(&c, stopped, e);
}

/* Two scans side by side in the order of both tables, where a join would search the second one
 * for each row of the first.
 */
int store_each_job(struct store *s, store_job_f *f, void *self, struct err *e)
{
    struct scan c = scan_begin(s, &table_jobs, 0, "ORDER BY id", 0);
    struct scan d = scan_begin(s, &table_job_states, 0, "ORDER BY id", 0);
    struct row_job r;
    struct row_job_state at;
    int stopped = 0;

    while (stopped == 0 && scan_next(&c, &r) && scan_next(&d, &at))
        stopped = r.id == at.id
                      ? f(self, &r, &at)
                      : err_set(e, EIO, "%s: where job row %lld stands is missing; restore a copy",
                                s->path, (long long)r.id);
    if (stopped == 0 && c.rc == SQLITE_ROW)
        stopped = d.rc == SQLITE_DONE
                      ? err_set(e, EIO, "%s: where the last jobs stand is missing; restore a copy",
                                s->path)
                      : store_fail(s, d.rc, "reading jobs", e);
    sqlite3_finalize(d.q);
    return scan_end(&c, stopped, e);
}

int store_each_usage(struct store *s, int64_t from_s, int64_t to_s, store_usage_f *f, void *self,
                     struct err *e)
{
    struct scan c =
        scan_begin(s, &table_usage, 0,
                   "WHERE hour_s >= ?1 AND hour_s < ?2 ORDER BY hour_s, job, gpu_type", from_s);
    struct row_usage r;
    int stopped = 0;

    if (c.rc == SQLITE_OK)
        c.rc = sqlite3_bind_int64(c.q, 2, to_s);
    while (stopped == 0 && scan_next(&c, &r))
        stopped = f(self, &r);
    return scan_end(&c, stopped, e);
}

int store_each_arrivals(struct store *s, store_arrivals_f *f, void *self, struct err *e)
{
    sqlite3_stmt *q = NULL;
    int stopped = 0;
    int rc = sqlite3_prepare_v2(
        s->db, "SELECT service, hour_s, bytes FROM arrivals ORDER BY service, hour_s", -1, &q,
        NULL);

    while (stopped == 0 && (rc == SQLITE_OK || rc == SQLITE_ROW)) {
        rc = sqlite3_step(q);
        if (rc != SQLITE_ROW)
            break;
        const struct row_arrivals r = { .service = sqlite3_column_int64(q, 0),
                                        .hour_s = sqlite3_column_int64(q, 1),
                                        .bytes = sqlite3_column_blob(q, 2),
                                        .len = (size_t)sqlite3_column_bytes(q, 2) };
        stopped = f(self, &r);
    }
    if (stopped == 0 && rc != SQLITE_DONE)
        stopped = store_fail(s, rc, "reading what arrived at services", e);
    sqlite3_finalize(q);
    return stopped;
}

int store_applied_seq(struct store *s, int64_t *applied_seq, struct err *e)
{
    struct binder b = store_stmt(s, STMT_GET_META, e);

    *applied_seq = 0;
    return store_run(&b, applied_seq);
}

int store_get_decision(struct store *s, int64_t job, double time_s, char **body, struct err *e)
{
    struct binder b = store_stmt(s, STMT_GET_DECISION, e);

    *body = NULL;
    bind_int(&b, job);
    bind_real(&b, time_s);
    int rc = store_step(&b);
    if (rc == -ENOENT)
        return err_set(e, ENOENT, "%s: no decision about job %lld is kept", s->path,
                       (long long)job);
    if (rc < 0)
        return rc;
    *body = strdup((const char *)sqlite3_column_text(b.q, 0));
    if (*body == NULL)
        abort();
    sqlite3_reset(b.q);
    return 0;
}

/* The newest model 'name', by a statement that reads one column of it; 0 until sqlite3_reset. */
static int find_model(struct binder *b, const char *name)
{
    bind_text(b, name);
    int rc = store_step(b);
    return rc == -ENOENT ? err_set(b->e, ENOENT, "%s: no model '%s' yet", b->s->path, name) : rc;
}

int store_get_model(struct store *s, const char *name, void **bytes, size_t *len, struct err *e)
{
    struct binder b = store_stmt(s, STMT_GET_MODEL, e);
    int rc = find_model(&b, name);

    *bytes = NULL;
    *len = 0;
    if (rc < 0)
        return rc;
    *len = (size_t)sqlite3_column_bytes(b.q, 0);
    *bytes = heap_array(*len, 1);
    if (*len > 0)
        memcpy(*bytes, sqlite3_column_blob(b.q, 0), *len);
    sqlite3_reset(b.q);
    return 0;
}

int store_model_time(struct store *s, const char *name, double *time_s, struct err *e)
{
    struct binder b = store_stmt(s, STMT_MODEL_TIME, e);
    int rc = find_model(&b, name);

    *time_s = 0;
    if (rc < 0)
        return rc;
    *time_s = sqlite3_column_double(b.q, 0);
    sqlite3_reset(b.q);
    return 0;
}
