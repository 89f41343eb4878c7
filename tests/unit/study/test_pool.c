/* Many runs in processes of their own: order, failures, interruption, resumption. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "study/pool.h"
#include "unit/suite.h"
#include "unit/support.h"

static const struct scenario small = { .name = "small", .title = "", .n_jobs = 10 };

static int lock_of_parent;

/* A run whose name says how it goes. */
static int pretend(struct arena *a, const struct study_run *k, const char *data,
                   struct study_result *out, struct err *e)
{
    (void)a;
    if (strcmp(k->policy, "fails") == 0)
        return err_set(e, EINVAL, "it said no");
    if (strcmp(k->policy, "crashes") == 0)
        kill(getpid(), SIGKILL);
    if (strcmp(k->policy, "leaves") == 0)
        _exit(3);
    if (strcmp(k->policy, "stops") == 0 || strcmp(k->policy, "ends") == 0) {
        kill(getppid(), strcmp(k->policy, "stops") == 0 ? SIGTERM : SIGINT);
        for (;;)
            pause();
    }
    if (strcmp(k->policy, "spoils") == 0 && rename(data, arena_printf(a, "%s-away", data)) < 0)
        return err_set(e, errno, "%s: %s", data, strerror(errno));
    if (strcmp(k->policy, "looks") == 0 && fcntl(lock_of_parent, F_GETFD) >= 0)
        return err_set(e, EBUSY, "the lock is open here too");
    *out = (struct study_result){ .energy_kwh = k->seed };
    return 0;
}

struct fixture {
    struct arena arena;
    struct results results;
    struct pool_options options;
    char *dir;
    struct study_run keys[8];
    int n_keys;
    struct pool_report report;
    struct err err;
};

static void fixture_init(struct fixture *f, const char *const *policies, int n)
{
    *f = (struct fixture){ .n_keys = n };
    arena_init(&f->arena);
    f->dir = scratch_make();
    f->results = (struct results){ .dir = f->dir, .version = "1", .build = "b" };
    ck_assert_int_eq(results_lock(&f->results, &f->err), 0);
    f->options = (struct pool_options){ .n_parallel = 2, .run = pretend, .is_quiet = true };
    for (int i = 0; i < n; i++)
        f->keys[i] = (struct study_run){
            .scenario = &small, .load = 0.5, .policy = policies[i], .seed = i, .without = ""
        };
}

static int fixture_run(struct fixture *f)
{
    return pool_run(&f->arena, &f->results, f->keys, f->n_keys, &f->options, &f->report, &f->err);
}

static void fixture_release(struct fixture *f)
{
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);    // no child is left
    ck_assert_int_eq(errno, ECHILD);
    results_unlock(&f->results);
    scratch_remove(f->dir);
    arena_release(&f->arena);
}

TIMES(rows_stand_in_the_order_of_the_keys, 4)
{
    static const char *const policies[] = { "a", "gogh", "b", "gavel", "c" };    // of unlike cost
    struct fixture f;

    fixture_init(&f, policies, 5);
    f.options.n_parallel = _i;
    ck_assert_msg(fixture_run(&f) == 0, "%s", f.err.text);
    ck_assert(f.report.n_done == 5 && f.report.n_kept == 0 && f.report.n_failed == 0);
    ck_assert_ptr_null(f.report.first_failure);
    ck_assert_int_eq(f.results.n_rows, 5);
    for (int i = 0; i < 5; i++) {
        ck_assert_str_eq(f.results.rows[i].key.policy, policies[i]);
        ck_assert(f.results.rows[i].result.energy_kwh == i);
    }
    fixture_release(&f);
}

TEST(what_is_there_is_not_done_again)
{
    static const char *const policies[] = { "a", "b" };
    struct fixture f;

    fixture_init(&f, policies, 2);
    f.n_keys = 1;
    ck_assert_int_eq(fixture_run(&f), 0);
    f.n_keys = 2;
    ck_assert_int_eq(fixture_run(&f), 0);
    ck_assert(f.report.n_done == 1 && f.report.n_kept == 1);
    ck_assert_int_eq(f.results.n_rows, 2);
    ck_assert_int_eq(fixture_run(&f), 0);
    ck_assert(f.report.n_done == 0 && f.report.n_kept == 2);
    fixture_release(&f);
}

static const struct {
    const char *policy, *want;
} failures[] = {
    { "fails", "run small-0.5-fails-awake-empty-s1: it said no" },
    { "crashes", "run small-0.5-crashes-awake-empty-s1: ended by signal 9" },
    { "leaves", "run small-0.5-leaves-awake-empty-s1: ended without a word" },
};

EACH(a_run_that_fails_is_named_and_the_others_are_kept, failures)
{
    const char *const policies[] = { "a", failures[_i].policy, "b" };
    struct fixture f;

    fixture_init(&f, policies, 3);
    ck_assert_msg(fixture_run(&f) == 0, "%s", f.err.text);
    ck_assert(f.report.n_done == 2 && f.report.n_failed == 1);
    ck_assert_msg(strstr(f.report.first_failure, failures[_i].want) != NULL, "%s",
                  f.report.first_failure);
    ck_assert_int_eq(f.results.n_rows, 2);
    ck_assert_str_eq(f.results.rows[1].key.policy, "b");
    fixture_release(&f);
}

static const char *const stops[] = { "stops", "ends" };

TIMES(an_interrupted_pool_ends_its_children_and_keeps_what_is_done, 2)
{
    const char *const policies[] = { "gogh", stops[_i], stops[_i] };    // gogh is begun first
    struct fixture f;

    fixture_init(&f, policies, 3);
    f.options.n_parallel = 1;
    ck_assert_int_eq(fixture_run(&f), -EINTR);
    ck_assert_msg(strstr(f.err.text, "1 of 3 runs are kept") != NULL, "%s", f.err.text);
    ck_assert_int_eq(f.results.n_rows, 1);
    f.keys[1].policy = "a";
    f.keys[2].policy = "b";
    ck_assert_int_eq(fixture_run(&f), 0);    // and goes on
    ck_assert(f.report.n_kept == 1 && f.report.n_done == 2);
    fixture_release(&f);
}

TEST(signals_are_as_they_were_afterwards)
{
    static const char *const policies[] = { "a" };
    sigset_t now;
    struct fixture f;

    fixture_init(&f, policies, 1);
    ck_assert_int_eq(fixture_run(&f), 0);
    sigprocmask(SIG_BLOCK, NULL, &now);
    ck_assert(!sigismember(&now, SIGINT) && !sigismember(&now, SIGTERM) &&
              !sigismember(&now, SIGCHLD));
    fixture_release(&f);
}

TEST(a_directory_that_cannot_be_written_stops_the_pool)
{
    static const char *const policies[] = { "spoils", "a", "b" };
    struct fixture f;

    fixture_init(&f, policies, 3);
    f.options.n_parallel = 1;
    f.options.data = arena_printf(&f.arena, "%s/runs", f.dir);
    ck_assert_int_eq(fixture_run(&f), -ENOENT);
    ck_assert_msg(strstr(f.err.text, "cannot write") != NULL, "%s", f.err.text);
    ck_assert_int_eq(f.report.n_done, 0);
    fixture_release(&f);
}

TEST(children_do_not_hold_the_directory)
{
    static const char *const policies[] = { "looks" };
    struct fixture f;

    fixture_init(&f, policies, 1);
    lock_of_parent = f.results.lock;
    ck_assert_msg(fixture_run(&f) == 0 && f.report.n_failed == 0, "%s", f.report.first_failure);
    fixture_release(&f);
}
