/* write.c - rows of the catalog in: types, workloads, origins, measurements, estimates. */
#include "store/store.h"

#include "base/err.h"
#include "store/inner.h"

/* In the upserts a bare column is what the store has, 'excluded' what is written. 'put'
 * takes the new value where there is one, 'fill' keeps the old one where there is one.
 */
#define INSERT_GPU_TYPE                                                             \
    "INSERT INTO gpu_types (name, title, source, peak_fp32_flops, peak_fp16_flops," \
    " bandwidth_bytes_s, mem_bytes, launch_s, idle_w, sleep_w, cap_w, year,"        \
    " share_max)"                                                                   \
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET"

static int write_gpu_type(struct store *s, enum stmt_id which, const char *sql,
                          const struct row_gpu_type *r, int64_t *id, struct err *e)
{
    struct binder b = { 0 };
    int rc = store_may_write(s, e);

    if (rc == 0)
        rc = store_stmt(s, which, sql, &b.q, e);
    if (rc < 0)
        return rc;
    bind_text(&b, r->name);
    bind_text(&b, r->title);
    bind_text(&b, r->source);
    bind_real(&b, r->peak_fp32_flops);
    bind_real(&b, r->peak_fp16_flops);
    bind_real(&b, r->bandwidth_bytes_s);
    bind_real(&b, r->mem_bytes);
    bind_real(&b, r->launch_s);
    bind_real(&b, r->idle_w);
    bind_real(&b, r->sleep_w);
    bind_real(&b, r->cap_w);
    bind_int(&b, r->year);
    bind_int(&b, r->share_max);
    return store_run_id(s, b.q, b.rc, "writing a GPU type", id, e);
}

int store_put_gpu_type(struct store *s, const struct row_gpu_type *r, int64_t *id, struct err *e)
{
    static const char sql[] = INSERT_GPU_TYPE
        " title = coalesce(excluded.title, title),"
        " source = coalesce(excluded.source, source),"
        " peak_fp32_flops = coalesce(excluded.peak_fp32_flops, peak_fp32_flops),"
        " peak_fp16_flops = coalesce(excluded.peak_fp16_flops, peak_fp16_flops),"
        " bandwidth_bytes_s = coalesce(excluded.bandwidth_bytes_s, bandwidth_bytes_s),"
        " mem_bytes = coalesce(excluded.mem_bytes, mem_bytes),"
        " launch_s = coalesce(excluded.launch_s, launch_s),"
        " idle_w = coalesce(excluded.idle_w, idle_w),"
        " sleep_w = coalesce(excluded.sleep_w, sleep_w),"
        " cap_w = coalesce(excluded.cap_w, cap_w),"
        " year = iif(excluded.year = 0, year, excluded.year),"
        " share_max = excluded.share_max RETURNING id";

    return write_gpu_type(s, STMT_PUT_GPU_TYPE, sql, r, id, e);
}

/* Figures of a type are positive; anything else is unknown, as is year 0. */
int store_fill_gpu_type(struct store *s, const struct row_gpu_type *r, int64_t *id, struct err *e)
{
    static const char sql[] = INSERT_GPU_TYPE
        " title = coalesce(title, excluded.title),"
        " source = coalesce(source, excluded.source),"
        " peak_fp32_flops = coalesce(nullif(peak_fp32_flops, 0),"
        " excluded.peak_fp32_flops, peak_fp32_flops),"
        " peak_fp16_flops = coalesce(nullif(peak_fp16_flops, 0),"
        " excluded.peak_fp16_flops, peak_fp16_flops),"
        " bandwidth_bytes_s = coalesce(nullif(bandwidth_bytes_s, 0),"
        " excluded.bandwidth_bytes_s, bandwidth_bytes_s),"
        " mem_bytes = coalesce(nullif(mem_bytes, 0), excluded.mem_bytes, mem_bytes),"
        " launch_s = coalesce(nullif(launch_s, 0), excluded.launch_s, launch_s),"
        " idle_w = coalesce(nullif(idle_w, 0), excluded.idle_w, idle_w),"
        " sleep_w = coalesce(nullif(sleep_w, 0), excluded.sleep_w, sleep_w),"
        " cap_w = coalesce(nullif(cap_w, 0), excluded.cap_w, cap_w),"
        " year = iif(year = 0, excluded.year, year),"
        " share_max = iif(share_max = 0, excluded.share_max, share_max) RETURNING id";

    return write_gpu_type(s, STMT_FILL_GPU_TYPE, sql, r, id, e);
}

#define INSERT_WORKLOAD                                                                \
    "INSERT INTO workloads (name, batch, is_inference, family, task, dataset, params," \
    " flop_per_sample, bytes_per_sample, kernels_per_step, cpu_ms_per_sample,"         \
    " cpu_ms_per_step, conv, gemm, rnn, sparse)"                                       \
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"                         \
    " ON CONFLICT (name) DO UPDATE SET"

static int write_workload(struct store *s, enum stmt_id which, const char *sql,
                          const struct row_workload *r, int64_t *id, struct err *e)
{
    struct binder b = { 0 };
    int rc = store_may_write(s, e);

    if (rc == 0)
        rc = store_stmt(s, which, sql, &b.q, e);
    if (rc < 0)
        return rc;
    bind_text(&b, r->name);
    bind_real(&b, r->batch);
    bind_int(&b, r->is_inference);
    bind_text(&b, r->family);
    bind_text(&b, r->task);
    bind_text(&b, r->dataset);
    for (int i = 0; i < 10; i++)
        bind_real(&b, r->number[i]);
    return store_run_id(s, b.q, b.rc, "writing a workload", id, e);
}

int store_put_workload(struct store *s, const struct row_workload *r, int64_t *id, struct err *e)
{
    static const char sql[] = INSERT_WORKLOAD
        " batch = coalesce(excluded.batch, batch),"
        " family = coalesce(excluded.family, family),"
        " task = coalesce(excluded.task, task),"
        " dataset = coalesce(excluded.dataset, dataset),"
        " params = coalesce(excluded.params, params),"
        " flop_per_sample = coalesce(excluded.flop_per_sample, flop_per_sample),"
        " bytes_per_sample = coalesce(excluded.bytes_per_sample, bytes_per_sample),"
        " kernels_per_step = coalesce(excluded.kernels_per_step, kernels_per_step),"
        " cpu_ms_per_sample = coalesce(excluded.cpu_ms_per_sample, cpu_ms_per_sample),"
        " cpu_ms_per_step = coalesce(excluded.cpu_ms_per_step, cpu_ms_per_step),"
        " conv = coalesce(excluded.conv, conv),"
        " gemm = coalesce(excluded.gemm, gemm),"
        " rnn = coalesce(excluded.rnn, rnn),"
        " sparse = coalesce(excluded.sparse, sparse),"
        " is_inference = excluded.is_inference RETURNING id";

    return write_workload(s, STMT_PUT_WORKLOAD, sql, r, id, e);
}

/* Training or inference is never unknown, so it stays. */
int store_fill_workload(struct store *s, const struct row_workload *r, int64_t *id, struct err *e)
{
    static const char sql[] = INSERT_WORKLOAD
        " batch = coalesce(batch, excluded.batch),"
        " family = coalesce(family, excluded.family),"
        " task = coalesce(task, excluded.task),"
        " dataset = coalesce(dataset, excluded.dataset),"
        " params = coalesce(params, excluded.params),"
        " flop_per_sample = coalesce(flop_per_sample, excluded.flop_per_sample),"
        " bytes_per_sample = coalesce(bytes_per_sample, excluded.bytes_per_sample),"
        " kernels_per_step = coalesce(kernels_per_step, excluded.kernels_per_step),"
        " cpu_ms_per_sample = coalesce(cpu_ms_per_sample, excluded.cpu_ms_per_sample),"
        " cpu_ms_per_step = coalesce(cpu_ms_per_step, excluded.cpu_ms_per_step),"
        " conv = coalesce(conv, excluded.conv),"
        " gemm = coalesce(gemm, excluded.gemm),"
        " rnn = coalesce(rnn, excluded.rnn),"
        " sparse = coalesce(sparse, excluded.sparse) RETURNING id";

    return write_workload(s, STMT_FILL_WORKLOAD, sql, r, id, e);
}

int store_add_measurement(struct store *s, const struct row_measurement *r, struct err *e)
{
    static const char sql[] =
        "INSERT INTO measurements (workload, gpu_type, neighbour, n_gpus, is_spread, fits, limit_w,"
        " throughput, watts, time_s, duration_s, noise, origin)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    struct binder b = { 0 };
    int rc = store_may_write(s, e);

    if (rc == 0)
        rc = store_stmt(s, STMT_ADD_MEASUREMENT, sql, &b.q, e);
    if (rc < 0)
        return rc;
    bind_int(&b, r->workload);
    bind_int(&b, r->gpu_type);
    bind_ref(&b, r->neighbour);
    bind_int(&b, r->n_gpus);
    bind_int(&b, r->is_spread);
    bind_int(&b, r->fits);
    bind_real(&b, r->limit_w);
    bind_real(&b, r->throughput);
    bind_real(&b, r->watts);
    bind_real(&b, r->time_s);
    bind_real(&b, r->duration_s);
    bind_real(&b, r->noise);
    bind_ref(&b, r->origin);
    return store_run(s, b.q, b.rc, "writing a measurement", e);
}

int store_put_estimate(struct store *s, const struct row_estimate *r, struct err *e)
{
    static const char sql[] =
        "INSERT INTO estimates (workload, gpu_type, neighbour, ln_speed, ln_speed_sd, ln_watts,"
        " ln_watts_sd, unfit, time_s) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
        " ON CONFLICT (workload, gpu_type, neighbour) DO UPDATE SET ln_speed = ?4,"
        " ln_speed_sd = ?5, ln_watts = ?6, ln_watts_sd = ?7, unfit = ?8, time_s = ?9";
    struct binder b = { 0 };
    int rc = store_may_write(s, e);

    if (rc == 0)
        rc = store_stmt(s, STMT_PUT_ESTIMATE, sql, &b.q, e);
    if (rc < 0)
        return rc;
    bind_int(&b, r->workload);
    bind_int(&b, r->gpu_type);
    bind_int(&b, r->neighbour);
    bind_real(&b, r->ln_speed);
    bind_real(&b, r->ln_speed_sd);
    bind_real(&b, r->ln_watts);
    bind_real(&b, r->ln_watts_sd);
    bind_real(&b, r->unfit);
    bind_real(&b, r->time_s);
    return store_run(s, b.q, b.rc, "writing an estimate", e);
}

int store_find_origin(struct store *s, const char *kind, const char *digest, int64_t *id,
                      struct err *e)
{
    struct binder b = { 0 };
    int rc = store_stmt(s, STMT_FIND_ORIGIN, "SELECT id FROM origins WHERE kind = ? AND digest = ?",
                        &b.q, e);

    *id = 0;
    if (rc < 0)
        return rc;
    bind_text(&b, kind);
    bind_text(&b, digest);
    return store_run_id(s, b.q, b.rc, "looking for an origin", id, e);
}

int store_add_origin(struct store *s, const char *kind, const char *name, const char *digest,
                     double time_s, int64_t *id, struct err *e)
{
    struct binder b = { 0 };
    int rc = store_may_write(s, e);

    if (rc == 0)
        rc = store_stmt(s, STMT_ADD_ORIGIN,
                        "INSERT INTO origins (kind, name, digest, time_s)"
                        " VALUES (?, ?, ?, ?) RETURNING id",
                        &b.q, e);
    if (rc < 0)
        return rc;
    bind_text(&b, kind);
    bind_text(&b, name);
    bind_text(&b, digest);
    bind_real(&b, time_s);
    return store_run_id(s, b.q, b.rc, "writing an origin", id, e);
}
