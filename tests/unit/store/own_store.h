/* own_store.h - a store in a directory of its own, for each test of the store.
 *
 * Whoever includes it has FIXTURE(set_up, tear_down): 'path' is where the store is, or shall be; what
 * is there is removed after each test.
 */
#ifndef UNIT_STORE_OWN_STORE_H
#define UNIT_STORE_OWN_STORE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "store/inner.h"
#include "store/store.h"
#include "unit/suite.h"

static char dir[256], path[300];

static inline void set_up(void)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(dir, sizeof(dir), "%s/gogh-store-XXXXXX", tmp != NULL ? tmp : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/a.db", dir);
}

static inline void remove_file(const char *suffix)
{
    char name[320];

    snprintf(name, sizeof(name), "%s%s", path, suffix);
    unlink(name);
}

static inline void tear_down(void)
{
    chmod(dir, 0700);
    remove_file("");
    remove_file("-wal");
    remove_file("-shm");
    rmdir(dir);
}

static inline struct store *open_store(enum store_mode mode)
{
    struct store *s;
    struct err e = { 0 };

    ck_assert_msg(store_open(path, mode, &s, &e) == 0, "%s", e.text);
    return s;
}

static inline void run_sql(const char *sql)
{
    sqlite3 *db;

    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    sqlite3_close(db);
}

/* One type, two workloads and 'n' measurements, committed. */
static inline void fill(struct store *s, int n)
{
    struct row_gpu_type type = { .name = "v100", .title = "V", .cap_w = 250, .idle_w = NAN };
    struct row_workload one = { .name = "one", .batch = 16, .family = "f" };
    struct row_workload two = { .name = "two", .batch = NAN, .is_inference = true };
    int64_t t, a, b;

    ck_assert_int_eq(store_begin(s, NULL), 0);
    ck_assert_int_eq(store_put_gpu_type(s, &type, &t, NULL), 0);
    ck_assert_int_eq(store_put_workload(s, &one, &a, NULL), 0);
    ck_assert_int_eq(store_put_workload(s, &two, &b, NULL), 0);
    for (int i = 0; i < n; i++) {
        struct row_measurement m = {
            .workload = a,
            .gpu_type = t,
            .neighbour = i % 2 == 1 ? b : 0,
            .n_gpus = 1,
            .fits = true,
            .limit_w = NAN,
            .throughput = 1 + i,
            .watts = NAN,
            .time_s = i,
            .duration_s = 60,
            .noise = NAN,
        };
        ck_assert_int_eq(store_add_measurement(s, &m, NULL), 0);
    }
    ck_assert_int_eq(store_commit(s, NULL), 0);
}

static inline int note_type(void *self, const struct row_gpu_type *r)
{
    *(struct row_gpu_type *)self = *r;
    return 0;
}

static inline int note_workload(void *self, const struct row_workload *r)
{
    if (r->id == 1)
        *(struct row_workload *)self = *r;
    return 0;
}

/* Rows of the state with job 1 and 2, of which the first ran somewhere else before. */
static inline void put_state(struct store *s)
{
    struct row_node node = { .id = 1, .name = "n", .body = "{}" };
    struct row_gpu gpu = { .id = 1, .node = 1, .type = "v100", .body = "{}" };

    ck_assert_int_eq(store_begin(s, NULL), 0);
    ck_assert_int_eq(store_clear_state(s, NULL), 0);
    ck_assert_int_eq(store_put_node(s, &node, NULL), 0);
    ck_assert_int_eq(store_put_gpu(s, &gpu, NULL), 0);
    for (int id = 1; id <= 2; id++) {
        struct row_job job = { .id = id,
                               .name = "j",
                               .workload = "w",
                               .steps = 1.0 / 3,
                               .deadline_s = NAN,
                               .n_gpus = 1,
                               .max_gpus = 4,
                               .urgency = 2.5,
                               .is_guess = true,
                               .command = "{}" };
        struct row_job_state at = { .id = id, .state = "held", .started_s = NAN };

        ck_assert_int_eq(store_put_job(s, &job, NULL), 0);
        ck_assert_int_eq(store_put_job_state(s, &at, NULL), 0);
    }
    struct row_job_state at = {
        .id = 1, .state = "running", .pace = 0.1, .started_s = NAN, .gpus = "1 2"
    };
    ck_assert_int_eq(store_put_job_state(s, &at, NULL), 0);
    ck_assert_int_eq(store_mark_applied(s, 10, NULL), 0);
    ck_assert_int_eq(store_commit(s, NULL), 0);
}

#endif
