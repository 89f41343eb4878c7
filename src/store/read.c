/* read.c - rows out, each reader one ordered scan with a callback. */
#include "store/store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "store/inner.h"

/* A scan under way. Readers prepare their own statements, so that they nest. */
struct scan {
    struct store *s;
    sqlite3_stmt *q;
    const char *what;
    int rc;    // of SQLite
};

static void scan_begin(struct scan *c, struct store *s, const char *sql, int64_t after,
                       const char *what)
{
    *c = (struct scan){ .s = s, .what = what };
    c->rc = sqlite3_prepare_v2(s->db, sql, -1, &c->q, NULL);
    if (c->rc == SQLITE_OK && sqlite3_bind_parameter_count(c->q) > 0)
        c->rc = sqlite3_bind_int64(c->q, 1, after);
}

static bool scan_next(struct scan *c)
{
    if (c->rc == SQLITE_OK || c->rc == SQLITE_ROW)
        c->rc = sqlite3_step(c->q);
    return c->rc == SQLITE_ROW;
}

/* 'stopped' is what the callback said, 0 when it never stopped the scan. */
static int scan_end(struct scan *c, int stopped, struct err *e)
{
    int rc = stopped;

    if (rc == 0 && c->rc != SQLITE_DONE)
        rc = store_fail(c->s, c->rc, c->what, e);
    sqlite3_finalize(c->q);
    return rc;
}

int store_each_gpu_type(struct store *s, store_gpu_type_f *f, void *self, struct err *e)
{
    struct scan c;
    int stopped = 0;

    scan_begin(&c, s,
               "SELECT id, name, title, source, peak_fp32_flops, peak_fp16_flops,"
               " bandwidth_bytes_s, mem_bytes, launch_s, idle_w, sleep_w, cap_w, year, share_max"
               " FROM gpu_types ORDER BY id",
               0, "reading GPU types");
    while (stopped == 0 && scan_next(&c)) {
        struct row_gpu_type r = {
            .id = sqlite3_column_int64(c.q, 0),
            .name = take_text(c.q, 1),
            .title = take_text(c.q, 2),
            .source = take_text(c.q, 3),
            .peak_fp32_flops = take_real(c.q, 4),
            .peak_fp16_flops = take_real(c.q, 5),
            .bandwidth_bytes_s = take_real(c.q, 6),
            .mem_bytes = take_real(c.q, 7),
            .launch_s = take_real(c.q, 8),
            .idle_w = take_real(c.q, 9),
            .sleep_w = take_real(c.q, 10),
            .cap_w = take_real(c.q, 11),
            .year = sqlite3_column_int(c.q, 12),
            .share_max = sqlite3_column_int(c.q, 13),
        };
        stopped = f(self, &r);
    }
    return scan_end(&c, stopped, e);
}

int store_each_workload(struct store *s, store_workload_f *f, void *self, struct err *e)
{
    struct scan c;
    int stopped = 0;

    scan_begin(&c, s,
               "SELECT id, name, batch, is_inference, family, task, dataset, params,"
               " flop_per_sample, bytes_per_sample, kernels_per_step, cpu_ms_per_sample,"
               " cpu_ms_per_step, conv, gemm, rnn, sparse FROM workloads ORDER BY id",
               0, "reading workloads");
    while (stopped == 0 && scan_next(&c)) {
        struct row_workload r = {
            .id = sqlite3_column_int64(c.q, 0),
            .name = take_text(c.q, 1),
            .batch = take_real(c.q, 2),
            .is_inference = sqlite3_column_int(c.q, 3) != 0,
            .family = take_text(c.q, 4),
            .task = take_text(c.q, 5),
            .dataset = take_text(c.q, 6),
        };
        for (int i = 0; i < 10; i++)
            r.number[i] = take_real(c.q, 7 + i);
        stopped = f(self, &r);
    }
    return scan_end(&c, stopped, e);
}

/* What a catalog needs of a measurement; the columns that both readers below begin with. */
#define OBSERVATION                                                               \
    "SELECT id, workload, gpu_type, neighbour, n_gpus, is_spread, fits, limit_w," \
    " throughput, watts, time_s, noise"

static struct row_measurement take_observation(sqlite3_stmt *q)
{
    return (struct row_measurement){
        .id = sqlite3_column_int64(q, 0),
        .workload = sqlite3_column_int64(q, 1),
        .gpu_type = sqlite3_column_int64(q, 2),
        .neighbour = sqlite3_column_int64(q, 3),
        .n_gpus = sqlite3_column_int(q, 4),
        .is_spread = sqlite3_column_int(q, 5) != 0,
        .fits = sqlite3_column_int(q, 6) != 0,
        .limit_w = take_real(q, 7),
        .throughput = take_real(q, 8),
        .watts = take_real(q, 9),
        .time_s = take_real(q, 10),
        .noise = take_real(q, 11),
        .duration_s = NAN,
    };
}

int store_each_measurement(struct store *s, int64_t after_id, store_measurement_f *f, void *self,
                           struct err *e)
{
    struct scan c;
    int stopped = 0;

    scan_begin(&c, s, OBSERVATION ", duration_s, origin FROM measurements WHERE id > ? ORDER BY id",
               after_id, "reading measurements");
    while (stopped == 0 && scan_next(&c)) {
        struct row_measurement r = take_observation(c.q);

        r.duration_s = take_real(c.q, 12);
        r.origin = sqlite3_column_int64(c.q, 13);
        stopped = f(self, &r);
    }
    return scan_end(&c, stopped, e);
}

int store_each_observation(struct store *s, store_measurement_f *f, void *self, struct err *e)
{
    struct scan c;
    int stopped = 0;

    scan_begin(&c, s, OBSERVATION " FROM measurements ORDER BY id", 0, "reading measurements");
    while (stopped == 0 && scan_next(&c)) {
        struct row_measurement r = take_observation(c.q);

        stopped = f(self, &r);
    }
    return scan_end(&c, stopped, e);
}

int store_each_estimate(struct store *s, store_estimate_f *f, void *self, struct err *e)
{
    struct scan c;
    int stopped = 0;

    scan_begin(&c, s,
               "SELECT workload, gpu_type, neighbour, ln_speed, ln_speed_sd, ln_watts,"
               " ln_watts_sd, unfit, time_s FROM estimates"
               " ORDER BY workload, gpu_type, neighbour",
               0, "reading estimates");
    while (stopped == 0 && scan_next(&c)) {
        struct row_estimate r = {
            .workload = sqlite3_column_int64(c.q, 0),
            .gpu_type = sqlite3_column_int64(c.q, 1),
            .neighbour = sqlite3_column_int64(c.q, 2),
            .ln_speed = take_real(c.q, 3),
            .ln_speed_sd = take_real(c.q, 4),
            .ln_watts = take_real(c.q, 5),
            .ln_watts_sd = take_real(c.q, 6),
            .unfit = take_real(c.q, 7),
            .time_s = take_real(c.q, 8),
        };
        stopped = f(self, &r);
    }
    return scan_end(&c, stopped, e);
}

int store_each_event(struct store *s, int64_t after_seq, store_event_f *f, void *self,
                     struct err *e)
{
    struct scan c;
    int stopped = 0;

    scan_begin(&c, s, "SELECT seq, time_s, kind, body FROM events WHERE seq > ? ORDER BY seq",
               after_seq, "reading the journal");
    while (stopped == 0 && scan_next(&c)) {
        struct row_event r = {
            .seq = sqlite3_column_int64(c.q, 0),
            .time_s = take_real(c.q, 1),
            .kind = take_text(c.q, 2),
            .body = take_text(c.q, 3),
        };
        stopped = f(self, &r);
    }
    return scan_end(&c, stopped, e);
}

int store_each_node(struct store *s, store_node_f *f, void *self, struct err *e)
{
    struct scan c;
    int stopped = 0;

    scan_begin(&c, s, "SELECT id, name, body FROM nodes ORDER BY id", 0, "reading nodes");
    while (stopped == 0 && scan_next(&c)) {
        struct row_node r = {
            .id = sqlite3_column_int64(c.q, 0),
            .name = take_text(c.q, 1),
            .body = take_text(c.q, 2),
        };
        stopped = f(self, &r);
    }
    return scan_end(&c, stopped, e);
}

static struct row_job take_job(sqlite3_stmt *q)
{
    return (struct row_job){
        .id = sqlite3_column_int64(q, 0),
        .name = take_text(q, 1),
        .owner = take_text(q, 2),
        .workload = take_text(q, 3),
        .is_inference = sqlite3_column_int(q, 4) != 0,
        .submit_s = sqlite3_column_double(q, 5),
        .steps = sqlite3_column_double(q, 6),
        .is_guess = sqlite3_column_int(q, 7) != 0,
        .rate = sqlite3_column_double(q, 8),
        .duration_s = sqlite3_column_double(q, 9),
        .min_throughput = sqlite3_column_double(q, 10),
        .deadline_s = take_real(q, 11),
        .n_gpus = sqlite3_column_int(q, 12),
        .max_gpus = sqlite3_column_int(q, 13),
        .priority = sqlite3_column_int(q, 14),
        .is_exclusive = sqlite3_column_int(q, 15) != 0,
        .n_nodes = sqlite3_column_int(q, 16),
        .types = take_text(q, 17),
        .command = take_text(q, 18),
        .key = take_text(q, 19),
        .digest = take_text(q, 20),
    };
}

static struct row_job_state take_job_state(sqlite3_stmt *q)
{
    return (struct row_job_state){
        .id = sqlite3_column_int64(q, 0),
        .state = take_text(q, 1),
        .steps_done = sqlite3_column_double(q, 2),
        .heard_s = sqlite3_column_double(q, 3),
        .pace = sqlite3_column_double(q, 4),
        .changed_s = sqlite3_column_double(q, 5),
        .started_s = take_real(q, 6),
        .n_moves = sqlite3_column_int(q, 7),
        .limit_w = sqlite3_column_int(q, 8),
        .gpus = take_text(q, 9),
        .reason = take_text(q, 10),
    };
}

/* Two scans side by side in the order of both tables, where a join would search the second one
 * for each row of the first.
 */
int store_each_job(struct store *s, store_job_f *f, void *self, struct err *e)
{
    struct scan c, d;
    int stopped = 0;

    scan_begin(&c, s,
               "SELECT id, name, owner, workload, is_inference, submit_s, steps, is_guess, rate,"
               " duration_s, min_throughput, deadline_s, n_gpus, max_gpus, priority,"
               " is_exclusive, n_nodes, types, command, key, digest FROM jobs ORDER BY id",
               0, "reading jobs");
    scan_begin(&d, s,
               "SELECT id, state, steps_done, heard_s, pace, changed_s, started_s, n_moves,"
               " limit_w, gpus, reason FROM job_states ORDER BY id",
               0, "reading jobs");
    while (stopped == 0 && scan_next(&c) && scan_next(&d)) {
        struct row_job r = take_job(c.q);
        struct row_job_state at = take_job_state(d.q);

        stopped = r.id == at.id
                      ? f(self, &r, &at)
                      : err_set(e, EIO, "%s: where job row %lld stands is missing; restore a copy",
                                s->path, (long long)r.id);
    }
    if (stopped == 0 && c.rc == SQLITE_ROW)
        stopped = d.rc == SQLITE_DONE
                      ? err_set(e, EIO, "%s: where the last jobs stand is missing; restore a copy",
                                s->path)
                      : store_fail(s, d.rc, d.what, e);
    sqlite3_finalize(d.q);
    return scan_end(&c, stopped, e);
}

int store_each_usage(struct store *s, int64_t from_s, int64_t to_s, store_usage_f *f, void *self,
                     struct err *e)
{
    struct scan c;
    int stopped = 0;

    scan_begin(&c, s,
               "SELECT hour_s, job, gpu_type, active_j, idle_j, gpu_s, steps, promised_s, kept_s,"
               " n_measured, abs_error, n_covered FROM usage WHERE hour_s >= ?1 AND hour_s < ?2"
               " ORDER BY hour_s, job, gpu_type",
               from_s, "reading what was used");
    if (c.rc == SQLITE_OK)
        c.rc = sqlite3_bind_int64(c.q, 2, to_s);
    while (stopped == 0 && scan_next(&c)) {
        struct row_usage r = {
            .hour_s = sqlite3_column_int64(c.q, 0),
            .job = sqlite3_column_int64(c.q, 1),
            .gpu_type = sqlite3_column_int64(c.q, 2),
            .active_j = sqlite3_column_double(c.q, 3),
            .idle_j = sqlite3_column_double(c.q, 4),
            .gpu_s = sqlite3_column_double(c.q, 5),
            .steps = sqlite3_column_double(c.q, 6),
            .promised_s = sqlite3_column_double(c.q, 7),
            .kept_s = sqlite3_column_double(c.q, 8),
            .n_measured = sqlite3_column_double(c.q, 9),
            .abs_error = sqlite3_column_double(c.q, 10),
            .n_covered = sqlite3_column_double(c.q, 11),
        };
        stopped = f(self, &r);
    }
    return scan_end(&c, stopped, e);
}

int store_count(struct store *s, const char *table, int64_t *n, struct err *e)
{
    static const char *const tables[] = {
        "gpu_types", "workloads", "origins",    "measurements", "estimates", "events", "nodes",
        "gpus",      "jobs",      "job_states", "models",       "meta",      "usage",  "decisions",
    };

    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        struct scan c;
        char sql[64];

        if (strcmp(table, tables[i]) != 0)
            continue;
        snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", tables[i]);
        scan_begin(&c, s, sql, 0, "counting rows");
        *n = 0;
        while (scan_next(&c))
            *n = sqlite3_column_int64(c.q, 0);
        return scan_end(&c, 0, e);
    }
    return err_set(e, EINVAL, "the store has no table '%s'", table);
}
