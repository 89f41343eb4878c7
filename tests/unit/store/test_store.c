#include "store/store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "store/inner.h"
#include "unit/store/own_store.h"
#include "unit/support.h"
#include "unit/suite.h"

FIXTURE(set_up, tear_down)

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

TEST(a_store_in_memory_works_and_leaves_nothing)
{
    struct store *s;

    ck_assert_int_eq(store_open(":memory:", STORE_CREATE, &s, NULL), 0);
    fill(s, 7);
    ck_assert_int_eq(count_rows(s, "measurements"), 7);
    store_close(s);
    store_close(NULL);
}
