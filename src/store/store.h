/* store.h - the only place with SQL: one SQLite file in WAL mode.
 *
 * Rows in, rows out; the meaning of a row belongs to the catalog. A store is used
 * by one thread. Every write happens inside a transaction (store_begin ..
 * store_commit) and a commit returns only when the data is on disk. The schema has
 * a version; opening an older file migrates it, a newer one is refused.
 * docs/formats/store.md describes the tables.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct store;

enum store_mode {
    STORE_READ,      // must exist; its content stays as it is, and no schema is migrated
    STORE_WRITE,     // must exist
    STORE_CREATE,    // made where absent
};

/* Open 'path' (":memory:" for one that dies with the process). -ENOENT, -EINVAL (not
 * a GOGH store, from a newer version, or damaged), -EACCES, -EBUSY, -EIO, with the cure.
 *
 * Opening for reading changes no row, but it is a full reader of a WAL store: it makes
 * '-wal' and '-shm' beside the file, and the last one to close brings what a writer left
 * in the log into the file. Where it may not write, it reads the file alone.
 */
int store_open(const char *path, enum store_mode mode, struct store **out, struct err *e);
void store_close(struct store *s);    // undoes an open transaction; NULL is fine
bool store_is_writable(const struct store *s);

/* Put the store's path in front of an error about what is in it, unless it is one of the
 * store's own, which have it.
 */
void store_blame(const struct store *s, struct err *e);

/* One transaction at a time. A failed commit undoes it; a failed write leaves the
 * undoing (store_rollback, which does nothing outside a transaction) to the caller.
 */
/* One view of the file for several reads: what other processes commit in between does not
 * show. Holds may nest; none may be open at store_begin.
 */
int store_hold(struct store *s, struct err *e);
void store_let_go(struct store *s);

int store_begin(struct store *s, struct err *e);
int store_commit(struct store *s, struct err *e);
void store_rollback(struct store *s);

/* ---- rows ----------------------------------------------------------------
 *
 * Numbers that are unknown are NaN, texts NULL; the store keeps them as NULL.
 * Ids are positive; 0 stands for none. Texts handed to a callback are borrowed for
 * that call. A callback returns 0 to go on, anything else to stop: that value is
 * what the store_each_* call returns.
 */

struct row_gpu_type {
    int64_t id;
    const char *name, *title, *source;
    double peak_fp32_flops, peak_fp16_flops, bandwidth_bytes_s, mem_bytes, launch_s;
    double idle_w, sleep_w, cap_w;
    int year;
};

struct row_workload {
    int64_t id;
    const char *name;
    double batch;
    bool is_inference;
    const char *family, *task, *dataset;
    double number[10];    // as workload_number_names
};

struct row_measurement {
    int64_t id;
    int64_t workload, gpu_type;
    int64_t neighbour;    // 0: alone
    int n_gpus;           // gang size, 1 for most
    bool is_spread;       // a gang over several nodes
    bool fits;            // false: out of memory; then no throughput
    double limit_w;       // power limit in force; NaN: the type's default
    double throughput;    // steps/s; NaN: not measured
    double watts;         // of the whole GPU; NaN: not measured
    double time_s;        // when, since 1970; 0 for imported data without a time
    double duration_s;    // over how long; NaN: not known
    double noise;         // sd of ln throughput; NaN: not known
    int64_t origin;       // the import it came from; 0: measured here
};

struct row_estimate {
    int64_t workload, gpu_type, neighbour;
    double ln_speed, ln_speed_sd;    // of the throughput in this cell
    double ln_watts, ln_watts_sd;    // of the job's own draw, alone; NaN beside a neighbour
    double unfit;                    // chance that it does not fit
    double time_s;
};

struct row_event {
    int64_t seq;    // given out by the store, without gaps
    double time_s;
    const char *kind;    // "job_submitted", ...
    const char *body;    // a JSON object
};

/* Jobs, nodes and gpus as they were after event meta 'applied_seq': a checkpoint of
 * the fold over the journal, so that restart replays only what came after.
 */
struct row_node {
    int64_t id;
    const char *name;
    const char *body;    // JSON: everything else
};

struct row_gpu {
    int64_t id, node;
    int slot;    // index on its node
    const char *type;
    const char *body;
};

struct row_job {
    int64_t id;
    const char *state;    // "waiting", "running", ...
    const char *owner;
    const char *body;
};

/* ---- writing ---- insert, or replace what has the same key; '*id' may be NULL.
 *
 * What is unknown in a type or workload never wipes out what the store knows: 'put' takes
 * the rest, 'fill' only what the store did not know. So two processes that learn different
 * things of one workload both keep theirs.
 */
int store_put_gpu_type(struct store *s, const struct row_gpu_type *r, int64_t *id, struct err *e);
int store_fill_gpu_type(struct store *s, const struct row_gpu_type *r, int64_t *id, struct err *e);
int store_put_workload(struct store *s, const struct row_workload *r, int64_t *id, struct err *e);
int store_fill_workload(struct store *s, const struct row_workload *r, int64_t *id, struct err *e);
int store_add_measurement(struct store *s, const struct row_measurement *r, struct err *e);
int store_put_estimate(struct store *s, const struct row_estimate *r, struct err *e);
int store_append_event(struct store *s, double time_s, const char *kind, const char *body,
                       int64_t *seq, struct err *e);

/* Replace the checkpoint: clear, then put rows, then mark; all in the caller's
 * transaction. 'applied_seq' is the last event that the rows reflect.
 */
int store_clear_checkpoint(struct store *s, struct err *e);
int store_put_node(struct store *s, const struct row_node *r, struct err *e);
int store_put_gpu(struct store *s, const struct row_gpu *r, struct err *e);
int store_put_job(struct store *s, const struct row_job *r, struct err *e);
int store_mark_checkpoint(struct store *s, int64_t applied_seq, struct err *e);

/* A named blob with a version: model weights. The newest is what store_get_model
 * finds; older ones stay for comparison. 'bytes' from get is malloc'ed: free it.
 */
int store_put_model(struct store *s, const char *name, double time_s, const void *bytes, size_t len,
                    struct err *e);
int store_get_model(struct store *s, const char *name, void **bytes, size_t *len, struct err *e);
int store_model_time(struct store *s, const char *name, double *time_s,
                     struct err *e);    // -ENOENT

/* Origins make imports idempotent: a file is known by what it is for ("gavel", ...)
 * and the digest of its content. store_find_origin gives 0 in '*id' when unknown.
 */
int store_find_origin(struct store *s, const char *kind, const char *digest, int64_t *id,
                      struct err *e);
int store_add_origin(struct store *s, const char *kind, const char *name, const char *digest,
                     double time_s, int64_t *id, struct err *e);

/* ---- reading ---- in order of id (events: of seq). */
typedef int store_gpu_type_f(void *self, const struct row_gpu_type *r);
typedef int store_workload_f(void *self, const struct row_workload *r);
typedef int store_measurement_f(void *self, const struct row_measurement *r);
typedef int store_estimate_f(void *self, const struct row_estimate *r);
typedef int store_event_f(void *self, const struct row_event *r);
typedef int store_node_f(void *self, const struct row_node *r);
typedef int store_job_f(void *self, const struct row_job *r);

int store_each_gpu_type(struct store *s, store_gpu_type_f *f, void *self, struct err *e);
int store_each_workload(struct store *s, store_workload_f *f, void *self, struct err *e);
int store_each_measurement(struct store *s, int64_t after_id, store_measurement_f *f, void *self,
                           struct err *e);
/* All of them for the catalog, which has no use for duration_s and origin: these are left
 * out (NaN and 0), and a million rows are read a good deal faster.
 */
int store_each_observation(struct store *s, store_measurement_f *f, void *self, struct err *e);
int store_each_estimate(struct store *s, store_estimate_f *f, void *self, struct err *e);
int store_each_event(struct store *s, int64_t after_seq, store_event_f *f, void *self,
                     struct err *e);
int store_each_node(struct store *s, store_node_f *f, void *self, struct err *e);
int store_each_job(struct store *s, store_job_f *f, void *self, struct err *e);
int store_checkpoint_seq(struct store *s, int64_t *applied_seq, struct err *e);

/* How many rows a table has ("measurements", "events", ...): for reports and tests. */
int store_count(struct store *s, const char *table, int64_t *n, struct err *e);

#endif
