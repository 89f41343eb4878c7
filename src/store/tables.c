/* tables.c - which field of a row is which column, and the SQL of the statements that are kept. */
#include "store/inner.h"

#include <errno.h>
#include <limits.h>
#include <math.h>

#include "base/text/buf.h"
#include "store/store.h"

/* ---- columns ---- of struct ROW, which is defined anew for each table. */

/* clang-format off */
#define COLUMN(type, field) { #field, type, offsetof(struct ROW, field) }
#define C(field)                                   \
    COLUMN(_Generic(((struct ROW *)0)->field,      \
                    int64_t: COLUMN_ID,            \
                    int: COLUMN_INT,               \
                    bool: COLUMN_FLAG,             \
                    double: COLUMN_REAL,           \
                    const char *: COLUMN_TEXT),    \
           field)
#define N(name, i) { #name, COLUMN_REAL, offsetof(struct ROW, number[i]) }

#define ROW row_gpu_type
const struct store_table table_gpu_types = { "gpu_types", "GPU types", 1, {
    COLUMN(COLUMN_ROWID, id), C(name), C(title), C(source), C(peak_fp32_flops), C(peak_tf32_flops),
    C(peak_fp16_flops), C(peak_fp8_flops), C(peak_int8_flops), C(bandwidth_bytes_s),
    C(mem_bytes), C(launch_s), C(idle_w), C(sleep_w), C(cap_w), C(year), C(share_max),
    C(capability), C(sharing),
} };
#undef ROW
#define ROW row_workload
const struct store_table table_workloads = { "workloads", "workloads", 1, {
    COLUMN(COLUMN_ROWID, id), C(name), C(batch), C(is_inference), C(family), C(task), C(dataset),
    N(params, 0), N(flop_per_sample, 1), N(bytes_per_sample, 2), N(kernels_per_step, 3),
    N(cpu_ms_per_sample, 4), N(cpu_ms_per_step, 5), N(conv, 6), N(gemm, 7), N(rnn, 8), N(sparse, 9),
    N(gpu_activity, 10), N(mem_activity, 11), N(solo_watts, 12), N(mem_used_bytes, 13),
    C(precision), C(needs_capability),
} };
#undef ROW
#define ROW row_campaign
const struct store_table table_campaigns = { "campaigns", "campaigns", 1, {
    COLUMN(COLUMN_ROWID, id), C(name), C(sharing),
} };
#undef ROW
/* The last two are of no use to a catalog: see store_each_observation. */
#define ROW row_measurement
const struct store_table table_measurements = { "measurements", "measurements", 0, {
    COLUMN(COLUMN_ROWID, id), C(workload), C(gpu_type), COLUMN(COLUMN_REF, neighbour), C(n_gpus),
    C(is_spread), C(fits), C(limit_w), C(throughput), C(watts), C(time_s), C(noise),
    C(ln_pace), C(ln_undone), C(seen_ln_speed), C(seen_noise), C(law_ln_watts), C(seen_ln_watts),
    C(seen_watts_noise), COLUMN(COLUMN_REF, campaign), C(duration_s), COLUMN(COLUMN_REF, origin),
} };
#undef ROW
#define ROW row_event
const struct store_table table_events = { "events", "the journal", 0, {
    COLUMN(COLUMN_ROWID, seq), C(time_s), C(kind), C(body),
} };
#undef ROW
#define ROW row_node
const struct store_table table_nodes = { "nodes", "nodes", 1, { C(id), C(name), C(body) } };
#undef ROW
#define ROW row_gpu
const struct store_table table_gpus = { "gpus", "GPUs", 1, {
    C(id), C(node), C(slot), C(type), C(body),
} };
#undef ROW
#define ROW row_job
const struct store_table table_jobs = { "jobs", "jobs", 1, {
    C(id), C(name), C(owner), C(workload), C(is_inference), C(submit_s), C(steps), C(is_guess),
    C(rate), C(duration_s), C(min_throughput), C(deadline_s), C(n_gpus), C(max_gpus), C(priority),
    C(is_exclusive), C(n_nodes), C(types), C(command), C(key), C(digest),
    C(urgency), C(terms),
} };
#undef ROW
#define ROW row_job_state
const struct store_table table_job_states = { "job_states", "jobs", 1, {
    C(id), C(state), C(steps_done), C(heard_s), C(pace), C(changed_s), C(started_s), C(n_moves),
    C(limit_w), C(gpus), C(reason), C(ready_s), C(drain_s), C(rate), C(max_gpus),
} };
#undef ROW
#define ROW row_usage
const struct store_table table_usage = { "usage", "what was used", 3, {
    C(hour_s), C(job), C(gpu_type), C(active_j), C(idle_j), C(gpu_s), C(steps), C(promised_s),
    C(kept_s), C(n_measured), C(abs_error), C(n_covered), C(requests), C(late),
} };
#undef ROW
/* clang-format on */

/* ---- statements ---- */

/* How a row is written. Those but the first two change a row with the same key: each column that
 * may be unknown (a text or a number with a point) by the rule, the others as 'sql' says.
 */
enum rule {
    AS_IT_STANDS,     // 'sql' is the whole statement
    INSERT,           // there is no such row yet
    REPLACE,          // every column
    ADD,              // new to old
    PUT,              // the new value where there is one
    FILL,             // the old value where there is one
    FILL_POSITIVE,    // the same of figures, of which 0 is none
};

/* Whole numbers of which 0 is unknown: keep what is there where nothing is said; or fill it in. */
#define KEEP_0(c) ", " #c " = iif(excluded." #c " = 0, " #c ", excluded." #c ")"
#define FILL_0(c) ", " #c " = iif(" #c " = 0, excluded." #c ", " #c ")"
/* The last word on how GPUs are shared: 0 says nothing, and below it that it is not known. */
#define KEEP_SHARING ", sharing = iif(excluded.sharing = 0, sharing, max(excluded.sharing, 0))"
#define ID " RETURNING id"

static const struct statement {
    const char *what;                   // in messages
    const char *sql;                    // at the end of it
    const struct store_table *table;    // of the row that store_write binds
    enum rule rule;
} statements[STMT_COUNT] = {
    /* IMMEDIATE: a writer that must wait does so here, before any work is done. */
    [STMT_BEGIN] = { .what = "beginning a transaction", .sql = "BEGIN IMMEDIATE" },
    [STMT_COMMIT] = { .what = "committing", .sql = "COMMIT" },
    [STMT_ROLLBACK] = { .what = "undoing", .sql = "ROLLBACK" },
    [STMT_FIND_ORIGIN] = { .what = "looking for an origin",
                           .sql = "SELECT id FROM origins WHERE kind = ? AND digest = ?" },
    [STMT_GET_DECISION] = { .what = "reading a decision",
                            .sql = "SELECT body FROM decisions WHERE job = ? AND time_s <= ?"
                                   " ORDER BY id DESC LIMIT 1" },
    [STMT_GET_META] = { .what = "reading the state",
                        .sql = "SELECT value FROM meta WHERE key = 'applied_seq'" },
    [STMT_GET_MODEL] = { .what = "reading a model",
                         .sql =
                             "SELECT bytes FROM models WHERE name = ? ORDER BY id DESC LIMIT 1" },
    [STMT_MODEL_TIME] = { .what = "reading a model",
                          .sql =
                              "SELECT time_s FROM models WHERE name = ? ORDER BY id DESC LIMIT 1" },
    [STMT_PUT_GPU_TYPE] = { "writing a GPU type",
                            ", share_max = excluded.share_max" KEEP_0(year) KEEP_0(capability)
                                KEEP_SHARING ID,
                            &table_gpu_types, PUT },
    /* Figures of a type are positive; anything else is unknown, as is year 0. How it is shared is a
     * setting of today, not a figure: the last word counts.
     */
    [STMT_FILL_GPU_TYPE] = { "writing a GPU type",
                             FILL_0(year) FILL_0(share_max) FILL_0(capability) KEEP_SHARING ID,
                             &table_gpu_types, FILL_POSITIVE },
    [STMT_PUT_WORKLOAD] = { "writing a workload",
                            ", is_inference = excluded.is_inference" KEEP_0(needs_capability) ID,
                            &table_workloads, PUT },
    /* Training or inference is never unknown, so it stays. */
    [STMT_FILL_WORKLOAD] = { "writing a workload", FILL_0(needs_capability) ID, &table_workloads,
                             FILL },
    /* Setting something is what returns the id of a row that is there. */
    [STMT_KEEP_CAMPAIGN] = { .what = "writing a campaign",
                             .sql = "INSERT INTO campaigns (name, sharing) VALUES (?1, ?2)"
                                    " ON CONFLICT (name) DO UPDATE"
                                    " SET name = name" KEEP_SHARING ID },
    [STMT_ADD_MEASUREMENT] = { "writing a measurement", "", &table_measurements, INSERT },
    [STMT_ADD_ORIGIN] = { .what = "writing an origin",
                          .sql = "INSERT INTO origins (kind, name, digest, time_s)"
                                 " VALUES (?, ?, ?, ?) RETURNING id" },
    /* Nothing is ever deleted here, so SQLite's choice (the largest + 1) has no gaps. */
    [STMT_APPEND_EVENT] = { "writing to the journal", "", &table_events, INSERT },
    [STMT_PUT_NODE] = { "writing a node", "", &table_nodes, REPLACE },
    [STMT_PUT_GPU] = { "writing a GPU", "", &table_gpus, REPLACE },
    [STMT_PUT_JOB] = { "writing a job", "", &table_jobs, INSERT },
    [STMT_SET_JOB_STATE] = { "writing where a job stands",
                             "UPDATE job_states SET state = ?2, steps_done = ?3, heard_s = ?4,"
                             " pace = ?5, changed_s = ?6, started_s = ?7, n_moves = ?8,"
                             " limit_w = ?9, gpus = ?10, reason = ?11, ready_s = ?12,"
                             " drain_s = ?13, rate = ?14, max_gpus = ?15 WHERE id = ?1",
                             &table_job_states, AS_IT_STANDS },
    [STMT_ADD_JOB_STATE] = { "writing where a job stands", "", &table_job_states, INSERT },
    [STMT_ADD_USAGE] = { "writing what was used", "", &table_usage, ADD },
    [STMT_PUT_DECISION] = { .what = "writing a decision",
                            .sql = "INSERT INTO decisions (job, time_s, body) VALUES (?, ?, ?)" },
    [STMT_DROP_DECISIONS] = { .what = "forgetting old decisions",
                              .sql = "DELETE FROM decisions WHERE id IN (SELECT id FROM decisions"
                                     " WHERE job = ? ORDER BY id DESC LIMIT -1 OFFSET ?)" },
    [STMT_SET_META] = { .what = "marking how far the state is",
                        .sql = "INSERT INTO meta (key, value) VALUES ('applied_seq', ?1)"
                               " ON CONFLICT (key) DO UPDATE SET value = ?1" },
    [STMT_KEEP_META] = { .what = "keeping a number",
                         .sql = "INSERT INTO meta (key, value) VALUES (?1, ?2)"
                                " ON CONFLICT (key) DO UPDATE SET value = value RETURNING value" },
    [STMT_PUT_MODEL] = { .what = "writing a model",
                         .sql = "INSERT INTO models (name, time_s, bytes) VALUES (?, ?, ?)" },
    [STMT_PUT_ARRIVALS] = { .what = "writing what arrived at a service",
                            .sql = "INSERT INTO arrivals (service, hour_s, bytes)"
                                   " VALUES (?1, ?2, ?3)"
                                   " ON CONFLICT (service, hour_s) DO UPDATE SET bytes = ?3" },
    [STMT_DROP_ARRIVALS] = { .what = "forgetting what arrived long ago",
                             .sql = "DELETE FROM arrivals WHERE service = ?1 AND hour_s >= 0"
                                    " AND hour_s < ?2" },
    [STMT_END_ARRIVALS] = { .what = "forgetting what arrived at a service that has ended",
                            .sql = "DELETE FROM arrivals WHERE service = ?1" },
};

/* Longer than any statement here. */
#define SQL_MAX 4096

/* "a, b, c": the columns from 'c' on that are written, at most 'n' of them; how many they are. */
static int put_names(struct buf *sql, const struct column *c, int n)
{
    int n_put = 0;

    for (; c->name != NULL && n_put < n; c++)
        if (c->type != COLUMN_ROWID)
            buf_printf(sql, "%s%s", n_put++ > 0 ? ", " : "", c->name);
    return n_put;
}

/* "c = ...": a bare column is what the store has, 'excluded' what is written. */
static void put_change(struct buf *sql, enum rule rule, const struct column *c)
{
    const char *name = c->name;

    if (rule == REPLACE)
        buf_printf(sql, "%s = excluded.%s", name, name);
    else if (rule == ADD)
        buf_printf(sql, "%s = %s + excluded.%s", name, name, name);
    else if (rule == PUT)
        buf_printf(sql, "%s = coalesce(excluded.%s, %s)", name, name, name);
    else if (rule == FILL_POSITIVE && c->type == COLUMN_REAL)
        buf_printf(sql, "%s = coalesce(nullif(%s, 0), excluded.%s, %s)", name, name, name, name);
    else
        buf_printf(sql, "%s = coalesce(%s, excluded.%s)", name, name, name);
}

static void put_upsert(struct buf *sql, const struct store_table *t, enum rule rule)
{
    const struct column *c = t->column + (t->column[0].type == COLUMN_ROWID) + t->n_key;
    const char *comma = "";

    buf_puts(sql, " ON CONFLICT (");
    put_names(sql, t->column, t->n_key);
    buf_puts(sql, ") DO UPDATE SET ");
    for (; c->name != NULL; c++) {
        if (rule != REPLACE && c->type != COLUMN_REAL && c->type != COLUMN_TEXT)
            continue;
        buf_puts(sql, comma);
        put_change(sql, rule, c);
        comma = ", ";
    }
}

static int prepare(struct store *s, enum stmt_id id)
{
    const struct statement *of = &statements[id];
    struct buf sql;

    buf_init(&sql, SQL_MAX);
    if (of->rule != AS_IT_STANDS) {
        buf_printf(&sql, "INSERT INTO %s (", of->table->name);
        int n = put_names(&sql, of->table->column, INT_MAX);
        for (int i = 0; i < n; i++)
            buf_puts(&sql, i == 0 ? ") VALUES (?" : ", ?");
        buf_puts(&sql, ")");
        if (of->rule != INSERT)
            put_upsert(&sql, of->table, of->rule);
    }
    buf_puts(&sql, of->sql);
    int rc = sqlite3_prepare_v3(s->db, buf_text(&sql), -1, SQLITE_PREPARE_PERSISTENT, &s->stmt[id],
                                NULL);
    buf_release(&sql);
    return rc;
}

/* ---- writing a row ---- */

struct binder store_stmt(struct store *s, enum stmt_id id, struct err *e)
{
    struct binder b = { .s = s, .id = id, .e = e };

    if (id >= STMT_PUT_GPU_TYPE)
        b.rc = store_may_write(s, e);
    if (b.rc == 0 && s->stmt[id] == NULL) {
        int rc = prepare(s, id);

        if (rc != SQLITE_OK)
            b.rc = store_fail(s, rc, "preparing a statement", e);
    }
    b.q = s->stmt[id];
    return b;
}

void bind_int(struct binder *b, int64_t v)
{
    if (b->rc == SQLITE_OK)
        b->rc = sqlite3_bind_int64(b->q, ++b->at, v);
}

static void bind_null(struct binder *b)
{
    if (b->rc == SQLITE_OK)
        b->rc = sqlite3_bind_null(b->q, ++b->at);
}

void bind_real(struct binder *b, double v)
{
    if (isnan(v))
        bind_null(b);
    else if (b->rc == SQLITE_OK)
        b->rc = sqlite3_bind_double(b->q, ++b->at, v);
}

void bind_text(struct binder *b, const char *v)
{
    if (b->rc == SQLITE_OK)
        b->rc = sqlite3_bind_text(b->q, ++b->at, v, -1, SQLITE_STATIC);
}

int store_run(struct binder *b, int64_t *id)
{
    int rc = b->rc == SQLITE_OK ? sqlite3_step(b->q) : b->rc;

    if (rc < 0)
        return rc;
    if (rc == SQLITE_ROW) {
        if (id != NULL)
            *id = sqlite3_column_int64(b->q, 0);
        rc = sqlite3_step(b->q);
    }
    int result = rc == SQLITE_DONE ? 0 : store_fail(b->s, rc, statements[b->id].what, b->e);
    sqlite3_reset(b->q);
    return result;
}

int store_step(struct binder *b)
{
    int rc = b->rc == SQLITE_OK ? sqlite3_step(b->q) : b->rc;

    if (rc < 0 || rc == SQLITE_ROW)
        return rc < 0 ? rc : 0;
    rc = rc == SQLITE_DONE ? -ENOENT : store_fail(b->s, rc, statements[b->id].what, b->e);
    sqlite3_reset(b->q);
    return rc;
}

int store_write(struct store *s, enum stmt_id id, const void *row, int64_t *out, struct err *e)
{
    struct binder b = store_stmt(s, id, e);

    for (const struct column *c = statements[id].table->column; c->name != NULL; c++) {
        const void *field = (const char *)row + c->offset;

        switch (c->type) {
        case COLUMN_ROWID:
            break;
        case COLUMN_REF:
            if (*(const int64_t *)field == 0)
                bind_null(&b);
            else
                bind_int(&b, *(const int64_t *)field);
            break;
        case COLUMN_ID:
            bind_int(&b, *(const int64_t *)field);
            break;
        case COLUMN_INT:
            bind_int(&b, *(const int *)field);
            break;
        case COLUMN_FLAG:
            bind_int(&b, *(const bool *)field);
            break;
        case COLUMN_REAL:
            bind_real(&b, *(const double *)field);
            break;
        case COLUMN_TEXT:
            bind_text(&b, *(const char *const *)field);
            break;
        }
    }
    return store_run(&b, out);
}

/* ---- reading a row ---- */

int store_select(struct store *s, const struct store_table *t, int n, const char *tail,
                 sqlite3_stmt **q)
{
    struct buf sql;

    buf_init(&sql, SQL_MAX);
    for (int i = 0; t->column[i].name != NULL && (n == 0 || i < n); i++)
        buf_printf(&sql, "%s%s", i == 0 ? "SELECT " : ", ", t->column[i].name);
    buf_printf(&sql, " FROM %s %s", t->name, tail);
    int rc = sqlite3_prepare_v2(s->db, buf_text(&sql), -1, q, NULL);
    buf_release(&sql);
    return rc;
}

void store_take(sqlite3_stmt *q, const struct store_table *t, int n, void *row)
{
    for (int i = 0; t->column[i].name != NULL && (n == 0 || i < n); i++) {
        void *field = (char *)row + t->column[i].offset;

        switch (t->column[i].type) {
        case COLUMN_ROWID:
        case COLUMN_ID:
        case COLUMN_REF:
            *(int64_t *)field = sqlite3_column_int64(q, i);    // NULL reads as 0
            break;
        case COLUMN_INT:
            *(int *)field = sqlite3_column_int(q, i);
            break;
        case COLUMN_FLAG:
            *(bool *)field = sqlite3_column_int(q, i) != 0;
            break;
        case COLUMN_REAL: {
            double v = sqlite3_column_double(q, i);
            bool is_null = v == 0 && sqlite3_column_type(q, i) == SQLITE_NULL;

            *(double *)field = is_null ? (double)NAN : v;
            break;
        }
        case COLUMN_TEXT:
            *(const char **)field = (const char *)sqlite3_column_text(q, i);
            break;
        }
    }
}
