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

/* How long to wait for another process that is writing before -EBUSY: ten seconds unless told
 * otherwise. A daemon has less patience and tries again.
 */
void store_set_patience(struct store *s, double wait_s);

/* Put the store's path in front of an error about what is in it, unless it is one of the
 * store's own, which have it.
 */
void store_blame(const struct store *s, struct err *e);

/* One view of the file for several reads: what other processes commit in between does not
 * show. Holds may nest; none may be open at store_begin.
 */
int store_hold(struct store *s, struct err *e);
void store_let_go(struct store *s);

/* One transaction at a time. A failed commit undoes it; a failed write leaves the
 * undoing (store_rollback, which does nothing outside a transaction) to the caller.
 * -ENOSPC, -EROFS, -EIO and -EBUSY come with the file's name and the cure; when the fault is
 * gone, the next transaction works.
 */
int store_begin(struct store *s, struct err *e);
int store_commit(struct store *s, struct err *e);
void store_rollback(struct store *s);
bool store_is_begun(const struct store *s);    // between store_begin and one of the other two

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
    double peak_fp32_flops, peak_tf32_flops, peak_fp16_flops, peak_fp8_flops, peak_int8_flops;
    double bandwidth_bytes_s, mem_bytes, launch_s;
    double idle_w, sleep_w, cap_w;
    int year;
    int share_max;     // jobs that may share one; 0: nothing is said
    int capability;    // 0: not known
    int sharing;    // as enum sharing of the catalog; 0: not known; written: 0 not said, -1 unknown
};

struct row_workload {
    int64_t id;
    const char *name;
    double batch;
    bool is_inference;
    const char *family, *task, *dataset;
    double number[14];    // as workload_number_names
    const char *precision;
    int needs_capability;    // 0: not known
};

/* Whose measurements: a data set, another site. */
struct row_campaign {
    int64_t id;
    const char *name;
    int sharing;    // as that of a GPU type
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

    /* Of one under a power limit that is told as without it (struct measurement); NaN: not known */
    double ln_pace, ln_undone;
    double seen_ln_speed, seen_noise;
    double law_ln_watts, seen_ln_watts, seen_watts_noise;

    int64_t campaign;    // 0: the site's own
    int64_t origin;      // the import it came from; 0: measured here
};

struct row_event {
    int64_t seq;    // given out by the store, without gaps
    double time_s;
    const char *kind;    // "job_submitted", ...
    const char *body;    // a JSON object
};

/* Nodes, gpus and jobs as they are after event meta 'applied_seq': the fold over the journal,
 * written together with its events, so that a restart reads rows and replays nothing.
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

/* What was asked; never changes. */
struct row_job {
    int64_t id;
    const char *name, *owner, *workload;
    bool is_inference, is_guess, is_exclusive;
    double submit_s, steps, rate, duration_s, min_throughput;
    double deadline_s;    // NaN: none
    int n_gpus, max_gpus, n_nodes, priority;
    double urgency;
    const char *types;    // names of those allowed, one a line; NULL: any
    const char *command, *key, *digest;
    const char *terms;    // of a service or a replica, a JSON object; NULL: it is neither
};

/* Where it stands. */
struct row_job_state {
    int64_t id;
    const char *state;    // "waiting", "running", ...
    double steps_done, heard_s, pace, changed_s;
    double started_s;    // NaN: not yet
    int n_moves, limit_w;
    const char *gpus;           // ids of those it holds, a blank between them; NULL: none
    const char *reason;         // of its last stop or its failure; NULL: none
    double ready_s, drain_s;    // of a replica; NaN: not yet
    double rate;                // of a service, as it was last scaled
    int max_gpus;               // likewise; 0: as it was submitted
};

/* What a job used on a GPU type within an hour. Numbers are added to what the row has. */
struct row_usage {
    int64_t hour_s;      // its beginning, since 1970
    int64_t job;         // -1: nobody (empty GPUs)
    int64_t gpu_type;    // 0: none (time spent waiting)
    double active_j, idle_j;
    double gpu_s;    // GPU-seconds held; shared ones in parts
    double steps;
    double promised_s, kept_s;    // time with a promise, and time in which it was kept
    double n_measured, abs_error, n_covered;    // speeds measured; |measured / believed - 1|
    double requests, late;    // of a replica: answered, and of these after the promised time
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
int store_keep_campaign(struct store *s, const char *name, int sharing, int64_t *id, struct err *e);
int store_add_measurement(struct store *s, const struct row_measurement *r, struct err *e);
int store_append_event(struct store *s, double time_s, const char *kind, const char *body,
                       int64_t *seq, struct err *e);

int store_add_usage(struct store *s, const struct row_usage *r, struct err *e);

/* Why a job was placed, or left waiting, as it was recorded: a JSON object. Of each job the
 * STORE_DECISIONS_MAX newest stay. store_get_decision: the newest one no later than 'time_s'
 * (INFINITY: the newest), in 'body', malloc'ed: free it. -ENOENT.
 */
#define STORE_DECISIONS_MAX 16
int store_put_decision(struct store *s, int64_t job, double time_s, const char *body,
                       struct err *e);
int store_get_decision(struct store *s, int64_t job, double time_s, char **body, struct err *e);

/* The rows of the state, in the transaction of the events that changed it. 'applied_seq' is
 * the last event that they reflect. Clear takes all of them away, to be written anew.
 */
int store_clear_state(struct store *s, struct err *e);
int store_put_node(struct store *s, const struct row_node *r, struct err *e);
int store_put_gpu(struct store *s, const struct row_gpu *r, struct err *e);
int store_put_job(struct store *s, const struct row_job *r, struct err *e);
int store_put_job_state(struct store *s, const struct row_job_state *r, struct err *e);
int store_mark_applied(struct store *s, int64_t applied_seq, struct err *e);

/* A named blob with a version: model weights. The newest is what store_get_model
 * finds; older ones stay for comparison. 'bytes' from get is malloc'ed: free it.
 */
int store_put_model(struct store *s, const char *name, double time_s, const void *bytes, size_t len,
                    struct err *e);
int store_get_model(struct store *s, const char *name, void **bytes, size_t *len, struct err *e);
int store_model_time(struct store *s, const char *name, double *time_s,
                     struct err *e);    // -ENOENT

/* What arrived at a service within an hour (docs/formats/arrivals.md): replaces what the hour had.
 * Hour STORE_WEEK has the service's week of counts. Drop takes hours that begin before 'before_s'
 * away, and below 0 all that is kept of the service.
 */
#define STORE_WEEK (-1)
struct row_arrivals {
    int64_t service, hour_s;
    const void *bytes;
    size_t len;
};
int store_put_arrivals(struct store *s, const struct row_arrivals *r, struct err *e);
int store_drop_arrivals(struct store *s, int64_t service, int64_t before_s, struct err *e);

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
typedef int store_campaign_f(void *self, const struct row_campaign *r);
typedef int store_measurement_f(void *self, const struct row_measurement *r);
typedef int store_event_f(void *self, const struct row_event *r);
typedef int store_node_f(void *self, const struct row_node *r);
typedef int store_job_f(void *self, const struct row_job *r, const struct row_job_state *at);

int store_each_gpu_type(struct store *s, store_gpu_type_f *f, void *self, struct err *e);
int store_each_workload(struct store *s, store_workload_f *f, void *self, struct err *e);
int store_each_campaign(struct store *s, store_campaign_f *f, void *self, struct err *e);
int store_each_measurement(struct store *s, int64_t after_id, store_measurement_f *f, void *self,
                           struct err *e);
/* All of them for the catalog, which has no use for duration_s and origin: these are left
 * out (NaN and 0), and a million rows are read a good deal faster.
 */
int store_each_observation(struct store *s, store_measurement_f *f, void *self, struct err *e);
int store_each_event(struct store *s, int64_t after_seq, store_event_f *f, void *self,
                     struct err *e);
int store_each_node(struct store *s, store_node_f *f, void *self, struct err *e);
int store_each_job(struct store *s, store_job_f *f, void *self, struct err *e);

/* Hours that begin in [from_s, to_s), in their order. */
typedef int store_usage_f(void *self, const struct row_usage *r);
int store_each_usage(struct store *s, int64_t from_s, int64_t to_s, store_usage_f *f, void *self,
                     struct err *e);
/* All that arrived, by service and hour. */
typedef int store_arrivals_f(void *self, const struct row_arrivals *r);
int store_each_arrivals(struct store *s, store_arrivals_f *f, void *self, struct err *e);
int store_applied_seq(struct store *s, int64_t *applied_seq, struct err *e);

/* A number that this store has for good: 'otherwise' the first time it is asked for. */
int store_number(struct store *s, const char *key, int64_t otherwise, int64_t *out, struct err *e);

/* Copy what 's' has, outside of a transaction, to 'path', which must not exist; it is for its
 * owner's eyes only, since jobs' commands are in it. The copy is a store like any other; it keeps
 * no log beside it until somebody writes to it. Takes as long as writing the file does. On an error
 * nothing is left there. -EEXIST, -ENOSPC, -EIO, ...
 */
int store_copy(struct store *s, const char *path, struct err *e);

#endif
