#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "store/inner.h"
#include "unit/support.h"
#include "unit/suite.h"

static char dir[256], path[300];

static void set_up(void)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(dir, sizeof(dir), "%s/gogh-store-XXXXXX", tmp != NULL ? tmp : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/a.db", dir);
}

static void remove_file(const char *suffix)
{
    char name[320];

    snprintf(name, sizeof(name), "%s%s", path, suffix);
    unlink(name);
}

static void tear_down(void)
{
    chmod(dir, 0700);
    remove_file("");
    remove_file("-wal");
    remove_file("-shm");
    rmdir(dir);
}

FIXTURE(set_up, tear_down)

static struct store *open_store(enum store_mode mode)
{
    struct store *s;
    struct err e = { 0 };

    ck_assert_msg(store_open(path, mode, &s, &e) == 0, "%s", e.text);
    return s;
}

static void run_sql(const char *sql)
{
    sqlite3 *db;

    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    sqlite3_close(db);
}

/* One type, two workloads and 'n' measurements, committed. */
static void fill(struct store *s, int n)
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

/* ---- whose file ---- */

static void write_bytes(const char *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");

    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static void make_nothing(void)
{
}
static void make_empty(void)
{
    write_bytes("", 0);
}
static void make_text(void)
{
    char text[4096];

    memset(text, 'x', sizeof(text));
    write_bytes(text, sizeof(text));
}
static void make_short_text(void)
{
    write_bytes("hello", 5);
}
static void make_foreign(void)
{
    run_sql("CREATE TABLE t (x); PRAGMA application_id = 7");
}
static void make_unmarked(void)
{
    run_sql("CREATE TABLE measurements (x)");
}
static void make_newer(void)
{
    store_close(open_store(STORE_CREATE));
    run_sql("PRAGMA user_version = 99");
}
static void make_negative(void)
{
    store_close(open_store(STORE_CREATE));
    run_sql("PRAGMA user_version = -1");
}
static void make_truncated(void)
{
    struct store *s = open_store(STORE_CREATE);

    fill(s, 2000);
    store_close(s);
    ck_assert_int_eq(truncate(path, 8192), 0);
}
static void make_directory(void)
{
    ck_assert_int_eq(mkdir(path, 0700), 0);
}

static const struct {
    const char *name;
    void (*make)(void);
    enum store_mode mode;
    int rc;
    const char *cure;
} refusals[] = {
    { "a store that is not there cannot be read", make_nothing, STORE_READ, -ENOENT, "import" },
    { "a store that is not there cannot be written", make_nothing, STORE_WRITE, -ENOENT, "import" },
    { "an empty file is no store to read", make_empty, STORE_READ, -EINVAL, "import" },
    { "a file of text is refused", make_text, STORE_CREATE, -EINVAL, "give the path" },
    { "a short file of text is refused", make_short_text, STORE_CREATE, -EINVAL, "give the path" },
    { "another program's database is refused", make_foreign, STORE_CREATE, -EINVAL, "another" },
    { "a database without our mark is refused", make_unmarked, STORE_CREATE, -EINVAL, "another" },
    { "a newer store is refused", make_newer, STORE_CREATE, -EINVAL, "upgrade" },
    { "a newer store is refused for reading", make_newer, STORE_READ, -EINVAL, "upgrade" },
    { "a negative version is refused", make_negative, STORE_CREATE, -EINVAL, "restore a copy" },
    { "a negative version is refused for reading", make_negative, STORE_READ, -EINVAL, "damaged" },
    { "a truncated store is refused", make_truncated, STORE_READ, -EIO, "restore" },
    { "a directory is refused", make_directory, STORE_CREATE, -EINVAL, "path of a store" },
};

EACH(a_file_that_is_not_ours_is_refused_with_a_cure, refusals)
{
    struct store *s = (struct store *)1;
    struct err e = { 0 };
    int rc;

    refusals[_i].make();
    rc = store_open(path, refusals[_i].mode, &s, &e);
    ck_assert_msg(rc == refusals[_i].rc, "%s: %d %s", refusals[_i].name, rc, e.text);
    ck_assert_ptr_null(s);
    ck_assert_msg(strstr(e.text, refusals[_i].cure) != NULL, "%s: %s", refusals[_i].name, e.text);
    ck_assert_msg(strstr(e.text, path) != NULL, "%s: %s", refusals[_i].name, e.text);
    if (refusals[_i].make == make_directory)
        rmdir(path);
}

TEST(a_refused_database_is_left_as_it_was)
{
    struct store *s;
    struct stat before, after;

    make_foreign();
    ck_assert_int_eq(stat(path, &before), 0);
    ck_assert_int_lt(store_open(path, STORE_CREATE, &s, NULL), 0);
    ck_assert_int_eq(stat(path, &after), 0);
    ck_assert_int_eq(before.st_size, after.st_size);
    ck_assert_int_eq(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
}

TEST(a_missing_directory_says_so)
{
    struct store *s;
    struct err e = { 0 };
    char deep[400];

    snprintf(deep, sizeof(deep), "%s/none/a.db", dir);
    ck_assert_int_lt(store_open(deep, STORE_CREATE, &s, &e), 0);
    ck_assert_ptr_nonnull(strstr(e.text, "directory"));
}

/* ---- rows ---- */

struct seen {
    int n;
    double sum;
};

static int see_measurement(void *self, const struct row_measurement *r)
{
    struct seen *seen = self;

    ck_assert_int_eq(r->id, seen->n + 1);
    ck_assert(isnan(r->limit_w) && isnan(r->watts) && isnan(r->noise));
    ck_assert_double_eq(r->duration_s, 60);
    ck_assert_int_eq(r->neighbour, seen->n % 2 == 1 ? 2 : 0);
    ck_assert(r->fits && !r->is_spread && r->origin == 0);
    seen->sum += r->throughput;
    seen->n++;
    return 0;
}

static int see_workload(void *self, const struct row_workload *r)
{
    int *n = self;

    if (*n == 0) {
        ck_assert_str_eq(r->name, "one");
        ck_assert_double_eq(r->batch, 16);
        ck_assert_str_eq(r->family, "f");
    } else {
        ck_assert(isnan(r->batch) && r->is_inference && r->family == NULL);
    }
    ++*n;
    return 0;
}

TEST(rows_come_back_as_they_went_in)
{
    struct store *s = open_store(STORE_CREATE);
    struct seen seen = { 0 };
    int n = 0;

    fill(s, 10);
    store_close(s);
    s = open_store(STORE_READ);
    ck_assert_int_eq(store_each_measurement(s, 0, see_measurement, &seen, NULL), 0);
    ck_assert_int_eq(seen.n, 10);
    ck_assert_double_eq(seen.sum, 55);
    ck_assert_int_eq(store_each_workload(s, see_workload, &n, NULL), 0);
    ck_assert_int_eq(n, 2);
    store_close(s);
}

static int stop_at_two(void *self, const struct row_measurement *r)
{
    ++*(int *)self;
    return r->id == 2 ? 42 : 0;
}

TEST(a_callback_stops_a_scan_with_its_own_answer)
{
    struct store *s = open_store(STORE_CREATE);
    int n = 0;

    fill(s, 5);
    ck_assert_int_eq(store_each_measurement(s, 0, stop_at_two, &n, NULL), 42);
    ck_assert_int_eq(n, 2);
    store_close(s);
}

TEST(putting_the_same_name_again_keeps_its_id)
{
    struct store *s = open_store(STORE_CREATE);
    struct row_workload r = { .name = "one", .batch = 16, .family = "g" };
    int64_t id = 0;

    fill(s, 1);
    ck_assert_int_eq(store_begin(s, NULL), 0);
    ck_assert_int_eq(store_put_workload(s, &r, &id, NULL), 0);
    ck_assert_int_eq(store_commit(s, NULL), 0);
    ck_assert_int_eq(id, 1);
    ck_assert_int_eq(count_rows(s, "workloads"), 2);
    store_close(s);
}

static int note_type(void *self, const struct row_gpu_type *r)
{
    *(struct row_gpu_type *)self = *r;
    return 0;
}

static int note_workload(void *self, const struct row_workload *r)
{
    if (r->id == 1)
        *(struct row_workload *)self = *r;
    return 0;
}

TEST(filling_keeps_what_is_known_and_putting_replaces_it)
{
    struct store *s = open_store(STORE_CREATE);
    struct row_gpu_type type = {
        .name = "v100", .cap_w = 300, .idle_w = 25, .sleep_w = NAN, .mem_bytes = NAN, .year = 2017
    };
    struct row_workload one = { .name = "one", .batch = 99, .family = "g", .task = "t" };
    struct row_gpu_type t;
    struct row_workload w;

    fill(s, 1);    // cap_w 250, family "f"
    ck_assert_int_eq(store_begin(s, NULL), 0);
    ck_assert_int_eq(store_fill_gpu_type(s, &type, NULL, NULL), 0);
    ck_assert_int_eq(store_fill_workload(s, &one, NULL, NULL), 0);
    ck_assert_int_eq(store_each_gpu_type(s, note_type, &t, NULL), 0);
    ck_assert_int_eq(store_each_workload(s, note_workload, &w, NULL), 0);
    ck_assert(t.cap_w == 250 && t.idle_w == 25 && t.year == 2017);
    ck_assert(w.batch == 16);
    type.idle_w = NAN;
    type.year = 0;
    one.task = NULL;
    ck_assert_int_eq(store_put_gpu_type(s, &type, NULL, NULL), 0);
    ck_assert_int_eq(store_put_workload(s, &one, NULL, NULL), 0);
    ck_assert_int_eq(store_each_gpu_type(s, note_type, &t, NULL), 0);
    ck_assert_int_eq(store_each_workload(s, note_workload, &w, NULL), 0);
    ck_assert(t.cap_w == 300 && t.idle_w == 25 && t.year == 2017);
    ck_assert(w.batch == 99);
    store_close(s);
}

TEST(what_is_rolled_back_was_never_there)
{
    struct store *s = open_store(STORE_CREATE);
    struct row_measurement m = { .workload = 1, .gpu_type = 1, .n_gpus = 1, .fits = true };

    fill(s, 3);
    ck_assert_int_eq(store_begin(s, NULL), 0);
    ck_assert_int_eq(store_add_measurement(s, &m, NULL), 0);
    store_rollback(s);
    ck_assert_int_eq(count_rows(s, "measurements"), 3);
    ck_assert_int_eq(store_begin(s, NULL), 0);
    ck_assert_int_eq(store_add_measurement(s, &m, NULL), 0);
    store_close(s);    // closing without a commit undoes as well
    s = open_store(STORE_READ);
    ck_assert_int_eq(count_rows(s, "measurements"), 3);
    store_close(s);
}

TEST(a_row_that_refers_to_nothing_is_refused)
{
    struct store *s = open_store(STORE_CREATE);
    struct row_measurement m = { .workload = 77, .gpu_type = 1, .n_gpus = 1, .fits = true };
    struct err e = { 0 };

    fill(s, 1);
    ck_assert_int_eq(store_begin(s, NULL), 0);
    ck_assert_int_eq(store_add_measurement(s, &m, &e), -EINVAL);
    store_rollback(s);
    store_close(s);
}

static const char *const changes[] = {
    "UPDATE measurements SET throughput = 1",
    "DELETE FROM measurements",
    "UPDATE events SET kind = 'x'",
    "DELETE FROM events",
    "INSERT OR REPLACE INTO measurements (id, workload, gpu_type, n_gpus, is_spread, fits, time_s)"
    " VALUES (1, 1, 1, 1, 0, 1, 0)",
    "INSERT OR REPLACE INTO events VALUES (1, 2, 'x', '{}')",
};

EACH(measurements_and_events_cannot_be_changed, changes)
{
    struct store *s = open_store(STORE_CREATE);

    fill(s, 2);
    ck_assert_int_eq(store_begin(s, NULL), 0);
    ck_assert_int_eq(store_append_event(s, 1, "k", "{}", NULL, NULL), 0);
    ck_assert_int_eq(store_commit(s, NULL), 0);
    ck_assert_int_ne(sqlite3_exec(s->db, changes[_i], NULL, NULL, NULL), SQLITE_OK);
    ck_assert_ptr_nonnull(strstr(sqlite3_errmsg(s->db), "append-only"));
    store_close(s);
}

TEST(an_origin_is_known_by_kind_and_digest)
{
    struct store *s = open_store(STORE_CREATE);
    int64_t id = 5, made;

    ck_assert_int_eq(store_find_origin(s, "gavel", "abc", &id, NULL), 0);
    ck_assert_int_eq(id, 0);
    ck_assert_int_eq(store_begin(s, NULL), 0);
    ck_assert_int_eq(store_add_origin(s, "gavel", "f.json", "abc", 1, &made, NULL), 0);
    ck_assert_int_eq(store_commit(s, NULL), 0);
    ck_assert_int_eq(store_find_origin(s, "gavel", "abc", &id, NULL), 0);
    ck_assert_int_eq(id, made);
    ck_assert_int_eq(store_find_origin(s, "csv", "abc", &id, NULL), 0);
    ck_assert_int_eq(id, 0);
    store_close(s);
}

/* ---- journal, state, models ---- */

static int see_event(void *self, const struct row_event *r)
{
    int64_t *last = self;

    ck_assert_int_eq(r->seq, *last + 1);
    ck_assert_str_eq(r->kind, "tick");
    *last = r->seq;
    return 0;
}

TEST(a_number_of_its_own_stays)
{
    struct store *s = open_store(STORE_CREATE);
    struct err e = { 0 };
    int64_t n = 0;

    ck_assert_int_eq(store_begin(s, &e), 0);
    ck_assert_int_eq(store_number(s, "site", -42, &n, &e), 0);
    ck_assert_int_eq(n, -42);
    ck_assert_int_eq(store_number(s, "site", 7, &n, &e), 0);
    ck_assert_int_eq(n, -42);
    ck_assert_int_eq(store_number(s, "other", 7, &n, &e), 0);
    ck_assert_int_eq(n, 7);
    ck_assert_int_eq(store_commit(s, &e), 0);
    store_close(s);
}

TEST(events_are_numbered_without_gaps)
{
    struct store *s = open_store(STORE_CREATE);
    int64_t seq, last = 1;

    for (int round = 0; round < 3; round++) {
        ck_assert_int_eq(store_begin(s, NULL), 0);
        ck_assert_int_eq(store_append_event(s, round, "tick", "{}", &seq, NULL), 0);
        if (round == 1)
            store_rollback(s);
        else
            ck_assert_int_eq(store_commit(s, NULL), 0);
    }
    ck_assert_int_eq(seq, 2);
    ck_assert_int_eq(store_each_event(s, 1, see_event, &last, NULL), 0);
    ck_assert_int_eq(last, 2);
    store_close(s);
}

static int see_job(void *self, const struct row_job *r, const struct row_job_state *at)
{
    ck_assert_str_eq(r->name, "j");
    ck_assert_ptr_null(r->owner);
    ck_assert_ptr_null(r->types);
    ck_assert_str_eq(r->command, "{}");
    ck_assert(isnan(r->deadline_s) && r->is_guess && !r->is_inference);
    ck_assert_double_eq(r->steps, 1.0 / 3);
    ck_assert_int_eq(r->max_gpus, 4);
    ck_assert_str_eq(at->state, *(int *)self == 0 ? "running" : "held");
    ck_assert_double_eq(at->pace, *(int *)self == 0 ? 0.1 : 0);
    ck_assert(isnan(at->started_s));
    ck_assert_msg(*(int *)self == 0 ? strcmp(at->gpus, "1 2") == 0 : at->gpus == NULL, "gpus");
    ++*(int *)self;
    return 0;
}

/* Rows of the state with job 1 and 2, of which the first ran somewhere else before. */
static void put_state(struct store *s)
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

TEST(the_state_is_kept_as_rows_that_can_be_written_anew)
{
    struct store *s = open_store(STORE_CREATE);
    int64_t seq = -1;

    ck_assert_int_eq(store_applied_seq(s, &seq, NULL), 0);
    ck_assert_int_eq(seq, 0);
    for (int round = 1; round <= 2; round++) {
        int n = 0;

        put_state(s);
        ck_assert_int_eq(store_applied_seq(s, &seq, NULL), 0);
        ck_assert_int_eq(seq, 10);
        ck_assert_int_eq(store_each_job(s, see_job, &n, NULL), 0);
        ck_assert_int_eq(n, 2);
        ck_assert_int_eq(count_rows(s, "gpus"), 1);
    }
    store_close(s);
}

static const char *const tears[] = {
    "DELETE FROM job_states WHERE id = 1",
    "DELETE FROM job_states WHERE id = 2",
    "DELETE FROM job_states",
};

EACH(a_job_that_stands_nowhere_is_damage, tears)
{
    struct store *s = open_store(STORE_CREATE);
    struct err e = { 0 };
    int n = 0;

    put_state(s);
    ck_assert_int_eq(sqlite3_exec(s->db, tears[_i], NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(store_each_job(s, see_job, &n, &e), -EIO);
    ck_assert_ptr_nonnull(strstr(e.text, "missing; restore a copy"));
    store_close(s);
}

/* ---- what was used, and why ---- */

static int see_usage(void *self, const struct row_usage *r)
{
    struct row_usage *sum = self;

    ck_assert_int_ge(r->hour_s, sum->hour_s);
    sum->hour_s = r->hour_s;
    sum->job += r->job;
    sum->active_j += r->active_j;
    sum->n_covered += r->n_covered;
    sum->gpu_s++;    // rows
    return 0;
}

TEST(usage_of_the_same_hour_job_and_type_adds_up)
{
    static const struct row_usage rows[] = {
        { .hour_s = 7200, .job = 1, .gpu_type = 1, .active_j = 1, .n_covered = 1 },
        { .hour_s = 3600, .job = 1, .gpu_type = 1, .active_j = 2 },
        { .hour_s = 3600, .job = 1, .gpu_type = 1, .active_j = 4, .n_covered = 3 },
        { .hour_s = 3600, .job = 1, .gpu_type = 0, .active_j = 8 },
        { .hour_s = 3600, .job = -1, .gpu_type = 1, .active_j = 16 },
        { .hour_s = 0, .job = 1, .gpu_type = 1, .active_j = 32 },
    };
    struct store *s = open_store(STORE_CREATE);
    struct row_usage sum = { 0 }, all = { 0 };

    ck_assert_int_eq(store_begin(s, NULL), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ck_assert_int_eq(store_add_usage(s, &rows[i], NULL), 0);
    ck_assert_int_eq(store_commit(s, NULL), 0);
    ck_assert_int_eq(store_each_usage(s, 3600, 7200, see_usage, &sum, NULL), 0);
    ck_assert_double_eq(sum.gpu_s, 3);
    ck_assert_double_eq(sum.active_j, 2 + 4 + 8 + 16);
    ck_assert_double_eq(sum.n_covered, 3);
    ck_assert_int_eq(store_each_usage(s, 0, 1 << 20, see_usage, &all, NULL), 0);
    ck_assert_double_eq(all.active_j, 63);
    store_close(s);
}

static void decide(struct store *s, int64_t job, double time_s, const char *body)
{
    ck_assert_int_eq(store_begin(s, NULL), 0);
    ck_assert_int_eq(store_put_decision(s, job, time_s, body, NULL), 0);
    ck_assert_int_eq(store_commit(s, NULL), 0);
}

static void check_decision(struct store *s, int64_t job, double time_s, const char *want)
{
    char *body = NULL;
    struct err e = { 0 };
    int rc = store_get_decision(s, job, time_s, &body, &e);

    ck_assert_int_eq(rc, want != NULL ? 0 : -ENOENT);
    ck_assert_msg(want == NULL || strcmp(body, want) == 0, "%s", body);
    free(body);
}

TEST(the_newest_decisions_of_a_job_are_kept_and_found_by_time)
{
    struct store *s = open_store(STORE_CREATE);
    char body[32];

    check_decision(s, 1, INFINITY, NULL);
    decide(s, 2, 5, "other");
    for (int i = 0; i < STORE_DECISIONS_MAX + 3; i++) {
        snprintf(body, sizeof(body), "{\"n\":%d}", i);
        decide(s, 1, i, body);
    }
    ck_assert_int_eq(count_rows(s, "decisions"), STORE_DECISIONS_MAX + 1);
    check_decision(s, 1, INFINITY, "{\"n\":18}");
    check_decision(s, 1, 7.5, "{\"n\":7}");
    check_decision(s, 1, 3, "{\"n\":3}");
    check_decision(s, 1, 2.9, NULL);    // forgotten
    check_decision(s, 2, INFINITY, "other");
    decide(s, 2, 5, "again");    // at the same moment: the later one
    check_decision(s, 2, 5, "again");
    for (int i = 0; i < STORE_DECISIONS_MAX; i++)    // a clock that was set back
        decide(s, 1, 1, "back");
    check_decision(s, 1, INFINITY, "back");
    check_decision(s, 1, 2.9, "back");
    ck_assert_int_eq(count_rows(s, "decisions"), STORE_DECISIONS_MAX + 2);
    decide(s, 2, 1, "back");    // others are not forgotten yet, and are of the past all the same
    check_decision(s, 2, INFINITY, "back");
    check_decision(s, 2, 9, "back");
    store_close(s);
}

TEST(the_newest_model_of_a_name_is_found)
{
    struct store *s = open_store(STORE_CREATE);
    void *bytes;
    size_t len;
    double time_s;

    ck_assert_int_eq(store_get_model(s, "p1", &bytes, &len, NULL), -ENOENT);
    ck_assert_int_eq(store_begin(s, NULL), 0);
    ck_assert_int_eq(store_put_model(s, "p1", 1, "old", 3, NULL), 0);
    ck_assert_int_eq(store_put_model(s, "p1", 2, "newer", 5, NULL), 0);
    ck_assert_int_eq(store_put_model(s, "p2", 3, "", 0, NULL), 0);
    ck_assert_int_eq(store_commit(s, NULL), 0);
    ck_assert_int_eq(store_get_model(s, "p1", &bytes, &len, NULL), 0);
    ck_assert_uint_eq(len, 5);
    ck_assert_mem_eq(bytes, "newer", 5);
    free(bytes);
    ck_assert_int_eq(store_get_model(s, "p2", &bytes, &len, NULL), 0);
    ck_assert_uint_eq(len, 0);
    free(bytes);
    ck_assert_int_eq(store_model_time(s, "p1", &time_s, NULL), 0);
    ck_assert_double_eq(time_s, 2);
    ck_assert_int_eq(store_model_time(s, "p3", &time_s, NULL), -ENOENT);
    store_close(s);
}

/* ---- the world fails ---- */

TEST(a_full_disk_is_an_error_and_nothing_is_half_written)
{
    struct store *s = open_store(STORE_CREATE);
    struct row_measurement m = { .workload = 1, .gpu_type = 1, .n_gpus = 1, .fits = true };
    struct err e = { 0 };
    int rc = 0;

    fill(s, 3);
    sqlite3_exec(s->db, "PRAGMA max_page_count = 40", NULL, NULL, NULL);
    ck_assert_int_eq(store_begin(s, NULL), 0);
    for (int i = 0; i < 100000 && rc == 0; i++)
        rc = store_add_measurement(s, &m, &e);
    ck_assert_int_eq(rc, -ENOSPC);
    ck_assert_ptr_nonnull(strstr(e.text, "disk is full"));
    store_rollback(s);
    store_close(s);
    s = open_store(STORE_READ);
    ck_assert_int_eq(count_rows(s, "measurements"), 3);
    store_close(s);
}

TEST(a_second_writer_hears_that_the_store_is_busy)
{
    struct store *first = open_store(STORE_CREATE), *second;
    struct err e = { 0 };

    fill(first, 3);
    second = open_store(STORE_WRITE);
    sqlite3_busy_timeout(second->db, 1);    // nobody will let go: do not wait
    ck_assert_int_eq(store_begin(first, NULL), 0);
    ck_assert_int_eq(store_begin(second, &e), -EBUSY);
    ck_assert_ptr_nonnull(strstr(e.text, "try again"));
    ck_assert_int_eq(count_rows(second, "measurements"), 3);    // reading goes on
    store_rollback(first);
    ck_assert_int_eq(store_begin(second, NULL), 0);
    store_rollback(second);
    store_close(second);
    store_close(first);
}

TEST(the_path_is_put_in_front_of_an_error_once)
{
    struct store *s = open_store(STORE_CREATE);
    char want[400];
    struct err e = { 0 };

    snprintf(want, sizeof(want), "%s: row 3 is odd", path);
    snprintf(e.text, sizeof(e.text), "row 3 is odd");
    store_blame(s, &e);
    ck_assert_str_eq(e.text, want);
    store_blame(s, &e);
    ck_assert_str_eq(e.text, want);
    store_close(s);
}

TEST(a_reader_sees_commits_of_a_live_writer)
{
    struct store *writer = open_store(STORE_CREATE), *reader;

    fill(writer, 3);
    reader = open_store(STORE_READ);
    ck_assert(!store_is_writable(reader));
    ck_assert_int_eq(count_rows(reader, "measurements"), 3);
    fill(writer, 2);
    ck_assert_int_eq(count_rows(reader, "measurements"), 5);
    ck_assert_int_eq(store_begin(reader, NULL), -EROFS);
    store_close(reader);
    store_close(writer);
}

TEST(a_reader_that_holds_sees_one_moment)
{
    struct store *writer = open_store(STORE_CREATE), *reader;

    fill(writer, 3);
    reader = open_store(STORE_READ);
    ck_assert_int_eq(store_hold(reader, NULL), 0);
    ck_assert_int_eq(store_hold(reader, NULL), 0);
    ck_assert_int_eq(count_rows(reader, "measurements"), 3);
    fill(writer, 2);
    ck_assert_int_eq(count_rows(reader, "measurements"), 3);
    store_let_go(reader);
    ck_assert_int_eq(count_rows(reader, "measurements"), 3);    // the outer hold still stands
    store_let_go(reader);
    ck_assert_int_eq(count_rows(reader, "measurements"), 5);
    store_close(reader);
    store_close(writer);
}

TEST(reading_leaves_no_files_behind)
{
    struct stat st;
    char log_path[320];

    store_close(open_store(STORE_CREATE));
    store_close(open_store(STORE_READ));
    snprintf(log_path, sizeof(log_path), "%s-wal", path);
    ck_assert_int_lt(stat(log_path, &st), 0);
}

/* Root may write anywhere; for other users this takes the immutable way in. */
TEST(a_store_in_a_read_only_directory_can_be_read)
{
    struct store *s = open_store(STORE_CREATE);
    struct err e = { 0 };
    char slashes[320];

    fill(s, 4);
    store_close(s);
    chmod(path, 0400);
    chmod(dir, 0500);
    s = open_store(STORE_READ);
    ck_assert_int_eq(count_rows(s, "measurements"), 4);
    store_close(s);
    snprintf(slashes, sizeof(slashes), "/%s", path);    // "//x": no name of a host
    ck_assert_msg(store_open(slashes, STORE_READ, &s, &e) == 0, "%s", e.text);
    store_close(s);
    if (geteuid() != 0) {
        ck_assert_int_eq(store_open(path, STORE_WRITE, &s, &e), -EACCES);
        ck_assert_ptr_nonnull(strstr(e.text, "writable"));
    }
}

/* ---- migrations ---- */

TEST(each_migration_runs_once_and_failures_undo_it)
{
    static const char *const steps[] = {
        NULL,    // versions 1 to 7 are what open made
        NULL,
        NULL,
        NULL,
        NULL,
        NULL,
        NULL,
        "CREATE TABLE extra (x INTEGER) STRICT",
        "INSERT INTO extra VALUES (1); CREATE TABLE extra (x)",
    };
    struct store *s = open_store(STORE_CREATE);
    struct err e = { 0 };
    sqlite3_stmt *q;

    ck_assert_int_eq(store_n_migrations, 7);
    ck_assert_int_eq(store_migrate(s, steps, 8, &e), 0);
    ck_assert_int_eq(store_migrate(s, steps, 8, &e), 0);
    ck_assert_int_lt(store_migrate(s, steps, 9, &e), 0);
    ck_assert_int_eq(sqlite3_prepare_v2(s->db, "SELECT count(*) FROM extra", -1, &q, NULL), 0);
    ck_assert_int_eq(sqlite3_step(q), SQLITE_ROW);
    ck_assert_int_eq(sqlite3_column_int(q, 0), 0);
    sqlite3_finalize(q);
    store_close(s);
}

TEST(an_older_store_is_not_read_but_migrated_by_a_writer)
{
    struct store *s;
    struct err e = { 0 };

    make_foreign();
    run_sql("DROP TABLE t; PRAGMA application_id = 1196377928");    // version 0 of ours
    ck_assert_int_eq(store_open(path, STORE_READ, &s, &e), -EINVAL);
    ck_assert_ptr_nonnull(strstr(e.text, "older"));
    s = open_store(STORE_WRITE);
    ck_assert_int_eq(count_rows(s, "measurements"), 0);
    store_close(s);
}

/* A store as version 1 left it: a node and a job in rows, and the journal that they are from. */
static void make_version_1(void)
{
    run_sql(store_migrations[0]);
    run_sql("PRAGMA user_version = 1;"
            "INSERT INTO events (time_s, kind, body) VALUES (1, 'node_added', '{}'),"
            " (2, 'job_submitted', '{}');"
            "INSERT INTO nodes (id, name, body) VALUES (1, 'n', '{}');"
            "INSERT INTO gpus (id, node, slot, type, body) VALUES (1, 1, 0, 'v100', '{}');"
            "INSERT INTO jobs (id, state, owner, body) VALUES (1, 'waiting', NULL, '{}');"
            "INSERT INTO meta (key, value) VALUES ('applied_seq', 2)");
}

TEST(the_rows_of_version_1_are_left_for_the_journal_to_make_anew)
{
    struct store *s;
    struct err e = { 0 };
    int64_t seq = -1;

    make_version_1();
    ck_assert_int_eq(store_open(path, STORE_READ, &s, &e), -EINVAL);
    ck_assert_ptr_nonnull(strstr(e.text, "older"));
    s = open_store(STORE_WRITE);
    ck_assert_int_eq(count_rows(s, "events"), 2);
    ck_assert_int_eq(count_rows(s, "nodes") + count_rows(s, "gpus") + count_rows(s, "jobs"), 0);
    ck_assert_int_eq(store_applied_seq(s, &seq, NULL), 0);
    ck_assert_int_eq(seq, 0);
    put_state(s);
    store_close(s);
    store_close(open_store(STORE_READ));
}

/* A store as version 2 left it: a type, and jobs that ask for one node or for none. */
static void make_version_2(void)
{
    run_sql(store_migrations[0]);
    run_sql(store_migrations[1]);
    run_sql("PRAGMA user_version = 2;"
            "INSERT INTO gpu_types (name, cap_w, year) VALUES ('v100', 250, 2017);"
            "INSERT INTO jobs (id, name, workload, is_inference, submit_s, steps, is_guess, rate,"
            " duration_s, min_throughput, n_gpus, max_gpus, priority, is_exclusive, needs_one_node)"
            " VALUES (1, 'a', 'w', 0, 0, 1, 0, 0, 0, 0, 2, 4, 0, 0, 1),"
            " (2, 'b', 'w', 0, 0, 1, 0, 0, 0, 0, 2, 4, 0, 0, 0);"
            "INSERT INTO job_states (id, state, steps_done, heard_s, pace, changed_s, n_moves,"
            " limit_w) VALUES (1, 'waiting', 0, 0, 0, 0, 0, 0), (2, 'waiting', 0, 0, 0, 0, 0, 0);"
            "INSERT INTO meta (key, value) VALUES ('applied_seq', 2)");
}

static int note_nodes(void *self, const struct row_job *r, const struct row_job_state *at)
{
    int *n_nodes = self;

    ck_assert_int_eq(r->id, at->id);
    n_nodes[r->id] = r->n_nodes;
    return 0;
}

TEST(the_rows_of_version_2_stay_and_mean_what_they_meant)
{
    struct row_gpu_type t = { 0 };
    struct err e = { 0 };
    int64_t seq = -1;
    int n_nodes[3] = { -1, -1, -1 };

    make_version_2();
    struct store *s = open_store(STORE_WRITE);
    ck_assert_int_eq(store_each_job(s, note_nodes, n_nodes, &e), 0);
    ck_assert_int_eq(n_nodes[1], 1);
    ck_assert_int_eq(n_nodes[2], 0);
    ck_assert_int_eq(store_each_gpu_type(s, note_type, &t, &e), 0);
    ck_assert(t.cap_w == 250 && t.share_max == 0);
    ck_assert_int_eq(store_applied_seq(s, &seq, NULL), 0);
    ck_assert_int_eq(seq, 2);
    store_close(s);
}

/* A store as version 3 left it knows rates of two precisions, and no profile. */
TEST(the_rows_of_version_3_do_not_know_what_version_4_asks)
{
    struct row_gpu_type t = { 0 };
    struct row_workload w = { 0 };

    for (int i = 0; i < 3; i++)
        run_sql(store_migrations[i]);
    run_sql("PRAGMA user_version = 3;"
            "INSERT INTO gpu_types (name, peak_fp16_flops, year) VALUES ('h100', 9e14, 2022);"
            "INSERT INTO workloads (name, is_inference, sparse) VALUES ('w', 1, 0.5)");
    struct store *s = open_store(STORE_WRITE);
    ck_assert_int_eq(store_each_gpu_type(s, note_type, &t, NULL), 0);
    ck_assert(t.peak_fp16_flops == 9e14 && t.capability == 0);
    ck_assert(isnan(t.peak_tf32_flops) && isnan(t.peak_fp8_flops) && isnan(t.peak_int8_flops));
    ck_assert_int_eq(store_each_workload(s, note_workload, &w, NULL), 0);
    ck_assert(w.number[9] == 0.5 && isnan(w.number[10]) && isnan(w.number[13]));
    ck_assert(w.precision == NULL && w.needs_capability == 0);
    store_close(s);
}

TEST(a_capability_is_filled_in_once_and_put_where_it_is_said)
{
    static const struct {
        int capability;
        bool puts;
        int want;
    } steps[] = { { 0, false, 0 },  { 70, false, 70 }, { 80, false, 70 },
                  { 80, true, 80 }, { 0, true, 80 },   { 0, false, 80 } };
    struct store *s = open_store(STORE_CREATE);

    ck_assert_int_eq(store_begin(s, NULL), 0);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct row_gpu_type r = { .name = "v100", .capability = steps[i].capability }, t = { 0 };
        struct row_workload v = { .name = "w", .needs_capability = steps[i].capability }, w = { 0 };
        bool puts = steps[i].puts;
        ck_assert_int_eq((puts ? store_put_gpu_type : store_fill_gpu_type)(s, &r, NULL, NULL), 0);
        ck_assert_int_eq((puts ? store_put_workload : store_fill_workload)(s, &v, NULL, NULL), 0);
        ck_assert_int_eq(store_each_gpu_type(s, note_type, &t, NULL), 0);
        ck_assert_int_eq(store_each_workload(s, note_workload, &w, NULL), 0);
        ck_assert_int_eq(t.capability, steps[i].want);
        ck_assert_int_eq(w.needs_capability, steps[i].want);
    }
    store_close(s);
}

/* A store as version 4 left it, with a measurement. */
static void make_version_4(void)
{
    for (int i = 0; i < 4; i++)
        run_sql(store_migrations[i]);
    run_sql("PRAGMA user_version = 4;"
            "INSERT INTO gpu_types (name, year) VALUES ('v100', 2017);"
            "INSERT INTO workloads (name, is_inference) VALUES ('w', 0);"
            "INSERT INTO measurements (workload, gpu_type, n_gpus, is_spread, fits, throughput,"
            " time_s) VALUES (1, 1, 1, 0, 1, 7, 0)");
}

static int note_campaign(void *self, const struct row_measurement *r)
{
    int64_t *campaign = self;

    campaign[r->id] = r->campaign;
    return 0;
}

TEST(the_measurements_of_version_4_are_the_sites_own)
{
    struct row_measurement m = { .workload = 1, .gpu_type = 1, .n_gpus = 1, .fits = true };
    int64_t campaign[3] = { -1, -1, -1 }, id = 0;

    make_version_4();
    struct store *s = open_store(STORE_WRITE);
    ck_assert_int_eq(store_begin(s, NULL), 0);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(store_keep_campaign(s, "theirs", 3, &id, NULL), 0);
    ck_assert_int_eq(id, 1);
    m.campaign = id;
    ck_assert_int_eq(store_add_measurement(s, &m, NULL), 0);
    ck_assert_int_eq(store_commit(s, NULL), 0);
    ck_assert_int_eq(store_each_observation(s, note_campaign, campaign, NULL), 0);
    ck_assert(campaign[1] == 0 && campaign[2] == 1);
    store_close(s);
}

/* Estimates were rows; they follow from measurements. */
TEST(the_estimates_of_version_5_are_let_go_of)
{
    int64_t campaign[2] = { -1, -1 };

    make_version_4();
    run_sql(store_migrations[4]);
    run_sql("PRAGMA user_version = 5;"
            "INSERT INTO estimates (workload, gpu_type, neighbour, time_s) VALUES (1, 1, 0, 0)");
    struct store *s = open_store(STORE_WRITE);
    ck_assert_int_eq(store_each_observation(s, note_campaign, campaign, NULL), 0);
    ck_assert_int_eq(campaign[1], 0);
    store_close(s);
    run_sql("CREATE TABLE estimates (id)");    // there is none
}

static int note_sharing(void *self, const struct row_campaign *r)
{
    *(int *)self = r->sharing;
    return 0;
}

TEST(how_the_types_and_campaigns_of_version_6_were_shared_is_not_known)
{
    struct row_gpu_type t = { .sharing = -1 };
    int64_t id = 0;
    int sharing = -1;

    make_version_4();
    run_sql(store_migrations[4]);
    run_sql(store_migrations[5]);
    run_sql("PRAGMA user_version = 6; INSERT INTO campaigns (name) VALUES ('theirs')");
    struct store *s = open_store(STORE_WRITE);
    ck_assert_int_eq(store_each_gpu_type(s, note_type, &t, NULL), 0);
    ck_assert_int_eq(store_each_campaign(s, note_sharing, &sharing, NULL), 0);
    ck_assert(t.sharing == 0 && sharing == 0);
    ck_assert_int_eq(store_begin(s, NULL), 0);
    for (int told = 3; told >= 0; told -= 3) {    // and then nothing: what was known stays
        ck_assert_int_eq(store_keep_campaign(s, "theirs", told, &id, NULL), 0);
        ck_assert_int_eq(store_each_campaign(s, note_sharing, &sharing, NULL), 0);
        ck_assert(id == 1 && sharing == 3);
    }
    store_close(s);
}

TEST(the_last_word_on_sharing_stays_until_there_is_another)
{
    static const struct {
        int sharing;
        bool puts;
        int want;
    } steps[] = { { 0, false, 0 }, { 2, false, 2 }, { 3, false, 3 },
                  { 0, false, 3 }, { 0, true, 3 },  { 4, true, 4 },
                  { -1, true, 0 }, { 2, true, 2 },  { -1, false, 0 } };
    struct store *s = open_store(STORE_CREATE);

    ck_assert_int_eq(store_begin(s, NULL), 0);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct row_gpu_type r = { .name = "v100", .sharing = steps[i].sharing }, t = { 0 };
        ck_assert_int_eq(
            (steps[i].puts ? store_put_gpu_type : store_fill_gpu_type)(s, &r, NULL, NULL), 0);
        ck_assert_int_eq(store_each_gpu_type(s, note_type, &t, NULL), 0);
        ck_assert_int_eq(t.sharing, steps[i].want);
    }
    store_close(s);
}

TEST(whether_a_type_may_be_shared_is_filled_in_once_and_put_as_it_is_said)
{
    static const struct {
        int share_max;
        bool puts;
        int want;
    } steps[] = { { 0, false, 0 }, { 1, false, 1 }, { 0, false, 1 },
                  { 0, true, 0 },  { 1, true, 1 },  { 0, false, 1 } };
    struct store *s = open_store(STORE_CREATE);

    ck_assert_int_eq(store_begin(s, NULL), 0);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct row_gpu_type r = { .name = "v100", .share_max = steps[i].share_max }, t = { 0 };
        ck_assert_int_eq(
            (steps[i].puts ? store_put_gpu_type : store_fill_gpu_type)(s, &r, NULL, NULL), 0);
        ck_assert_int_eq(store_each_gpu_type(s, note_type, &t, NULL), 0);
        ck_assert_int_eq(t.share_max, steps[i].want);
    }
    store_close(s);
}

TEST(a_store_in_memory_works_and_leaves_nothing)
{
    struct store *s;

    ck_assert_int_eq(store_open(":memory:", STORE_CREATE, &s, NULL), 0);
    fill(s, 7);
    ck_assert_int_eq(count_rows(s, "measurements"), 7);
    store_close(s);
    store_close(NULL);
}
