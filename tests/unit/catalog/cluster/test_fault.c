/* A ledger whose store refuses: nothing is half there, and it works again when the fault is gone. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "daemon/service/recover.h"
#include "unit/support.h"
#include "unit/suite.h"

/* ---- faults: what the system answers to whoever writes ---- */

static int write_fault, sync_fault;    // an errno; 0: all is well

static ssize_t write_or_fail(int fd, const void *bytes, size_t n, off_t at)
{
    if (write_fault == 0)
        return pwrite(fd, bytes, n, at);
    errno = write_fault;
    return -1;
}

/* These take the place of the C library's, for SQLite as well. */
static int sync_or_fail(long number, int fd)
{
    if (sync_fault == 0)
        return (int)syscall(number, fd);
    errno = sync_fault;
    return -1;
}

int fdatasync(int fd)
{
    return sync_or_fail(SYS_fdatasync, fd);
}

int fsync(int fd)
{
    return sync_or_fail(SYS_fsync, fd);
}

static void take_over_writing(void)
{
    static const char *const names[] = { "pwrite", "pwrite64" };
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);

    sqlite3_initialize();
    for (int i = 0; i < 2; i++)
        if (vfs->xGetSystemCall(vfs, names[i]))
            ck_assert_int_eq(vfs->xSetSystemCall(vfs, names[i], (sqlite3_syscall_ptr)write_or_fail),
                             SQLITE_OK);
}

/* ---- a ledger to try ---- */

static struct desk {
    char *dir;
    char path[300];
    struct recovered r;
} d;    // of the test

static void desk_open(void)
{
    struct err e = { 0 };

    ck_assert_msg(recover_open(&d.r, d.path, STORE_WRITE, &e) == 0, "%s", e.text);
    store_set_patience(d.r.store, 0.001);
}

static void submit(struct ledger *l, const char *name, int workload, const char *command, int want)
{
    struct job_spec spec = spec_of(name, workload);
    struct event ev = { .kind = EVENT_JOB_SUBMITTED, .time_s = 1, .spec = &spec };
    struct err e = { 0 };

    spec.command = command;
    int rc = ledger_add(l, &ev, &e);
    ck_assert_msg(rc == want, "%s: %d %s", name, rc, e.text);
}

/* Two types, a workload, a node and a job, all on disk. */
static void desk_init(void)
{
    static const int types[] = { 0, 1 };
    struct event node = { .kind = EVENT_NODE_ADDED, .node = "n", .gpu_types = types, .n_gpus = 2 };
    struct store *s;
    struct workload w;
    int index;

    take_over_writing();
    d.dir = scratch_make();
    snprintf(d.path, sizeof d.path, "%s/store.db", d.dir);
    ck_assert_int_eq(store_open(d.path, STORE_CREATE, &s, NULL), 0);
    store_close(s);
    desk_open();
    struct catalog *c = &d.r.catalog;
    workload_init(&w, "w");
    ck_assert_int_eq(ledger_begin(&d.r.ledger, NULL), 0);
    ck_assert_int_eq(catalog_add_type(c, gpu_type_builtin("v100"), &index, NULL), 0);
    ck_assert_int_eq(catalog_add_type(c, gpu_type_builtin("k80"), &index, NULL), 0);
    ck_assert_int_eq(catalog_add_workload(c, &w, &index, NULL), 0);
    ck_assert_int_eq(ledger_add(&d.r.ledger, &node, NULL), 0);
    submit(&d.r.ledger, "a", 0, NULL, 0);
    ck_assert_int_eq(ledger_commit(&d.r.ledger, NULL), 0);
}

static void desk_release(void)
{
    recover_close(&d.r);
    scratch_remove(d.dir);
}

FIXTURE(desk_init, desk_release)

/* What a restart finds is what is in memory. */
static void check_restart(void)
{
    struct ledger again;
    struct err e = { 0 };

    ck_assert_msg(ledger_open(&again, &d.r.catalog, d.r.store, &e) == 0, "%s", e.text);
    const char *what = state_differs(&d.r.ledger.state, &again.state);
    ck_assert_msg(!what, "a restart changes %s", what);
    ck_assert_int_eq(again.last_seq, d.r.ledger.last_seq);
    ledger_close(&again);
}

/* A group with everything in it: a workload that is new, a measurement of it, a job that asks
 * for it, and news of the one that was there. 0, or the first failure.
 */
static int try_group(struct err *e)
{
    static const int first[] = { 0 };
    struct catalog *c = &d.r.catalog;
    struct ledger *l = &d.r.ledger;
    struct measurement m = { .key = { .gpu_type = 1, .neighbour = -1, .n_gpus = 1 },
                             .fits = true,
                             .throughput = 2,
                             .watts = NAN,
                             .noise = NAN };
    struct event start = {
        .kind = EVENT_JOB_STARTED, .time_s = 2, .job = 0, .gpus = first, .n_gpus = 1
    };
    struct workload w;
    int rc = ledger_begin(l, e);

    workload_init(&w, "fresh");
    if (rc == 0)
        rc = catalog_begin(c, e);
    if (rc == 0)
        rc = catalog_add_workload(c, &w, &m.key.workload, e);
    if (rc == 0)
        rc = catalog_end(c, catalog_record(c, &m, 0, e), e);
    struct job_spec spec = spec_of("b", m.key.workload);
    struct event ev = { .kind = EVENT_JOB_SUBMITTED, .time_s = 2, .spec = &spec };
    if (rc == 0)
        rc = ledger_add(l, &start, e);
    if (rc == 0)
        rc = ledger_add(l, &ev, e);
    if (rc == 0)
        return ledger_commit(l, e);
    ledger_undo(l);
    return rc;
}

/* The fault is gone: the same again, and a restart of everything knows it all. */
static void check_recovery(void)
{
    struct err e = { 0 };

    ck_assert_int_eq(d.r.ledger.state.n_jobs, 1);
    ck_assert_int_eq(d.r.ledger.state.jobs[0]->state, JOB_WAITING);
    ck_assert_int_eq(count_rows(d.r.store, "events"), 2);
    ck_assert_int_eq(count_rows(d.r.store, "workloads"), 1);
    check_restart();
    ck_assert_msg(try_group(&e) == 0, "%s", e.text);
    ck_assert_int_eq(count_rows(d.r.store, "measurements"), 1);
    check_restart();
    recover_close(&d.r);
    desk_open();
    const struct state *s = &d.r.ledger.state;
    ck_assert_int_eq(s->n_jobs, 2);
    ck_assert_int_eq(s->jobs[0]->state, JOB_RUNNING);
    ck_assert_str_eq(d.r.catalog.workloads[s->jobs[1]->spec.workload].name, "fresh");
    ck_assert_int_eq(d.r.catalog.n_measurements, 1);
}

static const struct {
    const char *name;
    int write_fault, sync_fault;
    int rc;
    const char *cure;
} faults[] = {
    { "a full disk", ENOSPC, 0, -ENOSPC, "make room" },
    { "a quota that is used up", EDQUOT, 0, -ENOSPC, "make room" },
    { "a limit on the size of files", EFBIG, 0, -ENOSPC, "make room" },
    { "a disk that became read-only", EROFS, 0, -EROFS, "mount its disk for writing" },
    { "a disk that fails", EIO, 0, -EIO, "check the disk" },
    { "a disk that takes data and loses it", 0, EIO, -EIO, "check the disk" },
};

EACH(a_group_that_cannot_be_committed_never_was, faults)
{
    write_fault = faults[_i].write_fault;
    sync_fault = faults[_i].sync_fault;
    for (int round = 0; round < 3; round++) {
        struct err e = { 0 };
        int rc = try_group(&e);
        ck_assert_msg(rc == faults[_i].rc, "%s: %d %s", faults[_i].name, rc, e.text);
        ck_assert_msg(strstr(e.text, d.path) == e.text, "%s: %s", faults[_i].name, e.text);
        ck_assert_msg(strstr(e.text, faults[_i].cure), "%s: %s", faults[_i].name, e.text);
        ck_assert(!d.r.ledger.is_begun);
    }
    write_fault = sync_fault = 0;
    check_recovery();
}

/* More than SQLite keeps in memory: the disk is met before the commit. */
EACH(a_group_that_outgrows_memory_fails_where_it_is_and_never_was, faults)
{
    enum { LONG = 20000, MANY = 1000 };
    static char x[LONG];
    struct arena arena;
    int rc = 0, n = 0;

    arena_init(&arena);
    memset(x, 'x', LONG - 1);
    const char *command = arena_printf(&arena, "{\"x\":\"%s\"}", x);
    ck_assert_int_eq(ledger_begin(&d.r.ledger, NULL), 0);
    write_fault = faults[_i].write_fault ? faults[_i].write_fault : EIO;
    for (; n < MANY && rc == 0; n++) {
        char name[32];
        struct job_spec spec = spec_of(name, 0);
        struct event ev = { .kind = EVENT_JOB_SUBMITTED, .time_s = 1, .spec = &spec };
        snprintf(name, sizeof name, "j%d", n);
        spec.command = command;
        rc = ledger_add(&d.r.ledger, &ev, NULL);
    }
    ck_assert_msg(rc == faults[_i].rc, "%s: %d after %d", faults[_i].name, rc, n);
    ck_assert_int_gt(n, 10);
    ck_assert(!d.r.ledger.is_begun);
    ck_assert_int_eq(ledger_commit(&d.r.ledger, NULL), 0);    // nothing is left of it
    write_fault = 0;
    check_recovery();
    arena_release(&arena);
}

/* The same by the system itself, without our hand in it. */
TEST(a_file_that_may_not_grow_is_a_full_disk)
{
    struct rlimit was, small;
    struct stat st;
    struct err e = { 0 };
    char log_path[320];

    snprintf(log_path, sizeof log_path, "%s-wal", d.path);
    ck_assert_int_eq(stat(log_path, &st), 0);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &was), 0);
    small = was;
    small.rlim_cur = (rlim_t)st.st_size + 5000;    // one page of several
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    int rc = try_group(&e);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &was), 0);
    ck_assert_msg(rc == -ENOSPC, "%d %s", rc, e.text);
    ck_assert_ptr_nonnull(strstr(e.text, "make room"));
    check_recovery();
}

TEST(a_store_that_another_process_is_writing_is_busy_and_then_is_not)
{
    struct store *other;
    struct err e = { 0 };

    ck_assert_int_eq(store_open(d.path, STORE_WRITE, &other, NULL), 0);
    ck_assert_int_eq(store_begin(other, NULL), 0);
    ck_assert_int_eq(try_group(&e), -EBUSY);
    ck_assert_ptr_nonnull(strstr(e.text, "try again"));
    store_close(other);
    check_recovery();
}

TEST(a_second_writer_of_the_journal_is_noticed)
{
    struct recovered other;
    struct err e = { 0 };

    ck_assert_int_eq(recover_open(&other, d.path, STORE_WRITE, &e), 0);
    ck_assert_int_eq(ledger_begin(&other.ledger, &e), 0);
    submit(&other.ledger, "theirs", 0, NULL, 0);
    ck_assert_int_eq(ledger_commit(&other.ledger, &e), 0);
    recover_close(&other);
    ck_assert_int_eq(ledger_begin(&d.r.ledger, &e), 0);
    submit(&d.r.ledger, "ours", 0, NULL, -EBUSY);
    ck_assert_int_eq(d.r.ledger.state.n_jobs, 1);
    ck_assert_int_eq(count_rows(d.r.store, "events"), 3);
}

TEST(a_store_opened_for_reading_takes_no_group)
{
    struct recovered r;
    struct err e = { 0 };

    ck_assert_int_eq(recover_open(&r, d.path, STORE_READ, &e), 0);
    ck_assert_int_eq(ledger_begin(&r.ledger, &e), -EROFS);
    ck_assert_ptr_nonnull(strstr(e.text, d.path));
    recover_close(&r);
}

/* Without a ledger: the catalog's own transactions. */
TEST(a_catalog_whose_transaction_failed_writes_its_rows_with_the_next)
{
    struct catalog *c = &d.r.catalog;
    struct workload w, other;
    struct err e = { 0 };
    int fresh, index;

    workload_init(&w, "fresh");
    workload_init(&other, "other");
    write_fault = ENOSPC;
    ck_assert_int_eq(catalog_begin(c, &e), 0);
    ck_assert_int_eq(catalog_end(c, catalog_add_workload(c, &w, &fresh, &e), &e), -ENOSPC);
    write_fault = 0;
    struct store *s;    // somebody else takes the row that was ours
    struct row_workload row = { .name = "theirs", .batch = 1 };
    ck_assert_int_eq(store_open(d.path, STORE_WRITE, &s, NULL), 0);
    ck_assert_int_eq(store_begin(s, NULL), 0);
    ck_assert_int_eq(store_put_workload(s, &row, NULL, NULL), 0);
    ck_assert_int_eq(store_commit(s, NULL), 0);
    store_close(s);
    struct measurement m = { .key = { .workload = fresh, .neighbour = -1, .n_gpus = 1 },
                             .fits = false,
                             .throughput = NAN,
                             .watts = NAN,
                             .noise = NAN };
    ck_assert_int_eq(catalog_begin(c, &e), 0);
    ck_assert_int_eq(catalog_add_workload(c, &other, &index, &e), 0);
    ck_assert_int_eq(catalog_end(c, catalog_record(c, &m, 0, &e), &e), 0);
    recover_close(&d.r);
    desk_open();
    struct cell_key key = m.key;
    key.workload = catalog_find_workload(c, "fresh");
    ck_assert_int_ge(key.workload, 0);
    ck_assert_ptr_nonnull(catalog_cell(c, key));
    ck_assert_int_ge(catalog_find_workload(c, "other"), 0);
    ck_assert_int_eq(c->n_workloads, 4);
}
