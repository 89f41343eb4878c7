/* Jobs as processes of this box: how they start, end, move and come back. Real processes. */
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <sys/fanotify.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "unit/act/local/stage.h"

TEST(who_is_not_root_runs_only_as_himself)
{
    struct err e = { 0 };

    ck_assert_int_eq(local_may_run_as(geteuid(), &e), 0);
    if (geteuid() == 0) {
        ck_assert_int_eq(local_may_run_as(12345, &e), 0);
        ck_assert_int_eq(setresuid(65534, 65534, 65534), 0);    // a process of its own
    }
    ck_assert_int_eq(local_may_run_as(geteuid(), &e), 0);
    ck_assert_int_eq(local_may_run_as(12345, &e), -EPERM);
    ck_assert_ptr_nonnull(strstr(e.text, "SETUID"));
}

static struct stage s;    // of each test from here on

static void open_stage(void)
{
    stage_open(&s);
}

static void close_stage(void)
{
    stage_close(&s);
}

FIXTURE(open_stage, close_stage)

static void touch(const char *name)
{
    char path[400];
    int fd;

    snprintf(path, sizeof path, "%s/%s", s.dir, name);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

/* ---- how a run ends ---- */

#define RUNNING_ON "started 0.0 on 0\n"

static const struct {
    const char *name, *script, *more, *want;
} ends[] = {
    { "exit 0 is finished", "exit 0", "", RUNNING_ON "finished 0.0\n" },
    { "another exit is a failure", "exit 3", "", RUNNING_ON "failed 0.0: exit 3\n" },
    { "so is a signal", "kill -SEGV $$", "",
      RUNNING_ON "failed 0.0: signal 11 (Segmentation fault)\n" },
    { "and taking too long", "sleep 600", ",\"timeout_s\":0.2",
      RUNNING_ON "failed 0.0: timed out after 0.2 s\n" },
    { "one that does not listen is killed after its grace",
      "trap '' TERM; while :; do sleep 0.01; done", ",\"timeout_s\":0.2,\"grace_s\":0.1",
      RUNNING_ON "failed 0.0: timed out after 0.2 s\n" },
    { "ending well in the grace of a timeout is still a failure",
      "trap 'exit 0' TERM; while :; do sleep 0.01; done", ",\"timeout_s\":0.2",
      RUNNING_ON "failed 0.0: timed out after 0.2 s\n" },
    { "children that stay behind are killed", "sleep 600 & exit 0", "",
      RUNNING_ON "finished 0.0\n" },
    { "also those that went into a session of their own", "setsid sleep 600 & sleep 0.1; exit 0",
      "", RUNNING_ON "finished 0.0\n" },
    { "and their children", "setsid sh -c 'sleep 600 & sleep 601' & sleep 0.1; exit 5", "",
      RUNNING_ON "failed 0.0: exit 5\n" },
    { "a working directory that is not there", "exit 0", ",\"cwd\":\"/nonesuch\"",
      RUNNING_ON "failed 0.0: cannot enter '/nonesuch': No such file or directory\n" },
    { "a log that cannot be opened", "exit 0", ",\"stdout\":\"/nonesuch/x\"",
      RUNNING_ON "failed 0.0: cannot open '/nonesuch/x': No such file or directory\n" },
    { "not built for this GPU is no failure",
      "echo CUDA error: no kernel image is available for execution on the device >&2; exit 1", "",
      RUNNING_ON "incapable 0.0: not built for this GPU: no kernel image is available for "
                 "execution on the device\n" },
    { "unless it ends well", "echo hipErrorNoBinaryForGpu >&2", "", RUNNING_ON "finished 0.0\n" },
    { "or is only said to the user", "echo hipErrorNoBinaryForGpu; exit 3", "",
      RUNNING_ON "failed 0.0: exit 3\n" },
    { "a failure with a retry left is tried again", "exit 3", ",\"retries\":1",
      RUNNING_ON "stopped 0.0: exit 3; try 2 of 2\n" },
};

EACH(a_run_ends_as_it_should, ends)
{
    set_script(&s, 0, ends[_i].script, ends[_i].more);
    start(&s, 0, 0);
    ck_assert_int_eq(local_n_under_way(s.local), 1);
    until_heard(&s, strchr(ends[_i].want, '\n') + 1);
    ck_assert_msg(strcmp(s.heard, ends[_i].want) == 0, "%s: %s", ends[_i].name, s.heard);
}

TEST(what_an_earlier_run_said_of_its_gpu_does_not_count)
{
    set_script(&s, 0,
               "[ $GOGH_RESTART = 1 ] || echo hipErrorNoBinaryForGpu >&2; echo again >&2; exit 3",
               ",\"stderr\":\"errors.log\"");
    start(&s, 0, 0);
    until_heard(&s, "incapable 0.0: not built for this GPU: hipErrorNoBinaryForGpu\n");
    ck_assert_int_eq(s.w.ledger.state.jobs[0]->state, JOB_WAITING);
    start(&s, 0, 1);
    until_heard(&s, "failed 0.1: exit 3\n");
    ck_assert_str_eq(content(&s, "errors.log"), "hipErrorNoBinaryForGpu\nagain\nagain\n");
}

#define SAYS_SO "echo hipErrorNoBinaryForGpu >&2; "
#define WAITS_FOR_GO "echo up > up; while ! [ -e go ]; do sleep 0.01; done; exit 3"

TEST(what_somebody_put_where_its_errors_were_does_not_count)
{
    set_script(&s, 0, "echo hipErrorNoBinaryForGpu > old; mv old errors.log; exit 3",
               ",\"stderr\":\"errors.log\"");
    start(&s, 0, 0);
    until_heard(&s, "failed 0.0: exit 3\n");
}

TEST(errors_in_a_pipe_are_not_read)
{
    char path[300];
    int fd;

    snprintf(path, sizeof path, "%s/pipe", s.dir);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    set_script(&s, 0, SAYS_SO "exit 3", ",\"stderr\":\"pipe\"");
    start(&s, 0, 0);
    until_heard(&s, "failed 0.0: exit 3\n");
    close(fd);
}

/* A job that has said so and closed its errors, and waits for "go"; they are open here now. */
static int open_errors(void)
{
    char path[300];
    int fd;

    set_script(&s, 0, SAYS_SO "exec 2>/dev/null; " WAITS_FOR_GO, ",\"stderr\":\"errors.log\"");
    start(&s, 0, 0);
    until_written(&s, "up up");
    snprintf(path, sizeof path, "%s/errors.log", s.dir);
    fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    return fd;
}

/* One who opens the file would wait until the lease is broken, 45 s, and then read it. */
TEST(nobody_waits_for_errors_under_a_lease)
{
    const int fd = open_errors();

    (void)signal(SIGIO, SIG_IGN);    // which tells of somebody who wants it
    if (fcntl(fd, F_SETLEASE, F_WRLCK) == 0) {
        touch("go");
        until_heard(&s, "failed 0.0: exit 3\n");
    } else {
        fprintf(stderr, "skipped: no leases here: %s\n", strerror(errno));
    }
    close(fd);
}

/* As on a file server that does not answer: who opens the file waits for a word of this test. */
TEST(a_run_has_ended_though_its_errors_cannot_be_read)
{
    const int fd = open_errors();
    const int gate = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY);
    char path[300];

    snprintf(path, sizeof path, "%s/errors.log", s.dir);
    if (gate >= 0 && fanotify_mark(gate, FAN_MARK_ADD, FAN_OPEN_PERM, AT_FDCWD, path) == 0) {
        touch("go");
        until_heard(&s, "failed 0.0: exit 3\n");
    } else {
        fprintf(stderr, "skipped: only root may keep others from a file: %s\n", strerror(errno));
    }
    if (gate >= 0)
        close(gate);
    close(fd);
}

TEST(who_is_not_built_for_any_gpu_fails_in_the_end)
{
    set_script(&s, 0, "echo device kernel image is invalid >&2; kill -ABRT $$", ",\"retries\":1");
    for (int i = 0; i < 8; i++) {
        char want[40];

        start(&s, 0, i % 2);
        snprintf(want, sizeof want, "incapable 0.%d: ", i);
        until_heard(&s, want);
    }
    start(&s, 0, 0);
    until_heard(&s, "stopped 0.8: signal 6 (Aborted); try 2 of 2\n");
    start(&s, 0, 1);
    until_heard(&s, "failed 0.9: signal 6 (Aborted)\n");
}

TEST(a_program_that_is_not_there_is_named)
{
    set_argv(&s, 0, "[\"none\\nsuch\"]", "");
    start(&s, 0, 0);
    until_heard(&s, "failed");
    ck_assert_str_eq(s.heard,
                     RUNNING_ON "failed 0.0: cannot run 'none?such': No such file or directory\n");
}

TEST(a_server_ends_when_its_time_is_served)
{
    s.w.ledger.state.jobs[3]->spec.duration_s = 0.3;
    set_script(&s, 3, "trap 'exit 9' TERM; while :; do sleep 0.01; done", "");
    start(&s, 3, 1);
    until_heard(&s, "finished");
    ck_assert_str_eq(s.heard, "started 3.0 on 1\nfinished 3.0\n");
}

TEST(failures_are_counted_over_restarts_until_no_try_is_left)
{
    struct run_info run;

    set_script(&s, 0, "echo $GOGH_RESTART; exit 3", ",\"retries\":2,\"stdout\":\"%n.%j.log\"");
    start(&s, 0, 0);
    until_heard(&s, "try 2 of 3");
    for (int i = 0; i < 2; i++) {    // known already, and not told again
        stage_sleep(&s);
        stage_wake(&s);
        stage_hear(&s);
    }
    ck_assert_str_eq(s.heard, RUNNING_ON "stopped 0.0: exit 3; try 2 of 3\n");
    start(&s, 0, 1);
    until_heard(&s, "try 3 of 3");
    stage_sleep(&s);
    stage_wake(&s);
    ck_assert(stage_find(&s, 0, &run) && run.run == 1 && run.n_failures == 2);
    start(&s, 0, 2);
    until_heard(&s, "failed 0.2: exit 3\n");
    ck_assert_str_eq(content(&s, "a.0.log"), "0\n1\n2\n");
}

/* ---- what a command gets ---- */

TEST(arguments_arrive_as_they_are)
{
    struct run_info run;

    set_argv(&s, 0,
             "[\"printf\",\"<%s>\",\"a b\",\"$(id)\",\"'\\\"\",\"\",\"*\",\"\\u00e9\\n\\\\;\"]",
             "");
    start(&s, 0, 0);
    until_heard(&s, "finished");
    ck_assert(stage_find(&s, 0, &run));
    ck_assert_str_eq(content(&s, run.out), "<a b><$(id)><'\"><><*><\xc3\xa9\n\\;>");
    ck_assert_str_eq(content(&s, run.err), "");
    ck_assert_int_eq(run.pid, 0);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names, sorted, of the lines "NAME=value" in 'text'. */
static void names_of(const char *text, char *out, size_t size)
{
    char *names[64], copy[8192], *at = NULL;
    int n = 0;

    snprintf(copy, sizeof copy, "%s", text);
    for (char *line = strtok_r(copy, "\n", &at); line && n < 64; line = strtok_r(NULL, "\n", &at)) {
        line[strcspn(line, "=")] = '\0';
        names[n++] = line;
    }
    qsort(names, (size_t)n, sizeof *names, by_text);
    *out = '\0';
    for (int i = 0; i < n; i++) {
        const size_t len = strlen(out);
        snprintf(out + len, size - len, "%s ", names[i]);
    }
}

TEST(the_environment_is_what_was_given_and_what_gogh_sets)
{
    struct run_info run;
    char names[2000];

    setenv("LEAKED", "1", 1);
    set_argv(&s, 2, "[\"env\"]", "");
    start(&s, 2, 1);
    until_heard(&s, "finished");
    ck_assert(stage_find(&s, 2, &run));
    names_of(content(&s, run.out), names, sizeof names);
    ck_assert_str_eq(names,
                     "CUDA_VISIBLE_DEVICES GOGH_BATCH GOGH_DIR GOGH_GPUS GOGH_GPU_TYPE GOGH_JOB "
                     "GOGH_NAME GOGH_REPORTS GOGH_RESTART GOGH_RUN GOGH_SECRET GOGH_SLOTS "
                     "GOGH_STEPS_DONE GOGH_WORKLOAD PATH ROCR_VISIBLE_DEVICES ");
    const char *env = content(&s, run.out);
    ck_assert_ptr_nonnull(strstr(env, "CUDA_VISIBLE_DEVICES=1,2\n"));
    ck_assert_ptr_nonnull(strstr(env, "GOGH_GPUS=2\n"));
    ck_assert_ptr_nonnull(strstr(env, "GOGH_JOB=2\n"));
    ck_assert_ptr_nonnull(strstr(env, "GOGH_WORKLOAD=w\n"));
    ck_assert_ptr_nonnull(strstr(env, "GOGH_BATCH=8\n"));
    ck_assert_ptr_nonnull(strstr(env, "GOGH_GPU_TYPE=v100\n"));
    ck_assert_uint_eq(strlen(run.secret), 32);
    ck_assert_ptr_nonnull(strstr(env, run.secret));
}

TEST(a_command_has_no_descriptors_of_ours_and_leads_its_group)
{
    struct run_info run;
    int leak;

    leak = open("/dev/null", O_RDONLY);    // without O_CLOEXEC
    ck_assert_int_ge(leak, 3);
    set_script(&s, 0,
               "ls /proc/self/fd | wc -l; cut -d' ' -f1,5 /proc/$$/stat; ls -l /proc/$$/fd/0", "");
    start(&s, 0, 0);
    until_heard(&s, "finished");
    ck_assert(stage_find(&s, 0, &run));
    int n = 0, pid = 0, group = 0;
    ck_assert_int_eq(sscanf(content(&s, run.out), "%d %d %d", &n, &pid, &group), 3);
    ck_assert_int_eq(n, 4);    // and the directory that ls reads
    ck_assert_int_eq(pid, group);
    ck_assert_ptr_nonnull(strstr(content(&s, run.out), "/dev/null"));
    close(leak);
}

TEST(a_job_of_another_user_has_that_users_rights_and_no_more)
{
    const struct passwd *nobody = getpwnam("nobody");
    char want[4000], more[400];
    struct run_info run;
    gid_t groups[100];
    int n = 100;

    if (geteuid() != 0 || !nobody) {
        fprintf(stderr, "skipped: only root may start processes of others\n");
        return;
    }
    ck_assert_int_eq(setgroups(2, (gid_t[]){ 0, 4 }), 0);    // none of which it may keep
    snprintf(more, sizeof more, ",\"cwd\":\"/\"");
    set_script(&s, 0,
               "id -u; id -g; id -G; grep -E 'Cap(Eff|Prm|Amb)' /proc/self/status | grep -vc "
               "0000000000000000; grep Uid: /proc/$PPID/status; touch $GOGH_DIR/x && echo wrote; "
               "cat $GOGH_DIR/order && echo read; echo >> $GOGH_DIR/status && echo changed; exit 0",
               more);
    char *c = strdup(s.w.ledger.state.jobs[0]->spec.command);
    char *uid = strstr(c, "\"uid\":");
    snprintf(want, sizeof want, "%.*s\"uid\":%u,\"gid\":%u%s", (int)(uid - c), c,
             (unsigned)nobody->pw_uid, (unsigned)nobody->pw_gid, more);
    snprintf(want + strlen(want), 2, "}");
    s.w.ledger.state.jobs[0]->spec.command = want;
    start(&s, 0, 0);
    until_heard(&s, "finished");
    ck_assert(stage_find(&s, 0, &run));
    free(c);
    ck_assert_int_ge(getgrouplist("nobody", nobody->pw_gid, groups, &n), 1);
    char expect[2000];
    int at = snprintf(expect, sizeof expect, "%u\n%u\n", nobody->pw_uid, nobody->pw_gid);
    for (int i = 0; i < n; i++)
        at += snprintf(expect + at, sizeof expect - (size_t)at, "%s%u", i ? " " : "", groups[i]);
    snprintf(expect + at, sizeof expect - (size_t)at, "\n0\nUid:\t%u\t%u\t%u\t%u\n", nobody->pw_uid,
             nobody->pw_uid, nobody->pw_uid, nobody->pw_uid);
    ck_assert_str_eq(content(&s, run.out), expect);
    struct stat st;
    ck_assert_int_eq(stat(run.out, &st), 0);
    ck_assert_uint_eq(st.st_uid, nobody->pw_uid);    // who may read it
    s.w.ledger.state.jobs[0]->spec.command = NULL;
}

/* ---- stop, cancel, move ---- */

#define LOOPS "echo up > up; while :; do sleep 0.01; done"

static const struct {
    const char *name, *script, *more;
    bool is_cancel;
    const char *want, *saved;
} leaves[] = {
    { "a stop is told by TERM", "trap 'echo saved > f; exit 0' TERM; " LOOPS, "", false,
      "stopped 0.0: stopped as planned\n", "saved\n" },
    { "or by USR1, with time to save",
      "trap 'sleep 0.2; echo saved > f; exit 0' USR1; trap 'echo term > f; exit 1' TERM; " LOOPS,
      ",\"checkpoint_signal\":\"USR1\"", false, "stopped 0.0: stopped as planned\n", "saved\n" },
    { "or not at all", "trap 'echo saved > f; exit 0' TERM; " LOOPS,
      ",\"checkpoint_signal\":\"none\"", false, "stopped 0.0: stopped as planned\n", "" },
    { "who does not listen is killed", "trap '' TERM; " LOOPS, ",\"grace_s\":0.1", false,
      "stopped 0.0: stopped as planned\n", "" },
    { "a shell that dies at once does not cost its child the grace",
      "sh -c 'trap \\\"sleep 0.3; echo saved > f; exit 0\\\" TERM; echo up > up; while :; do sleep "
      "0.01; done' & wait",
      "", false, "stopped 0.0: stopped as planned\n", "saved\n" },
    { "one that is halted is told too",
      "trap 'echo saved > f; exit 0' TERM; echo up > up; kill "
      "-STOP $$; while :; do sleep 0.01; done",
      "", false, "stopped 0.0: stopped as planned\n", "saved\n" },
    { "a cancelled job is told by TERM, whatever its checkpoint",
      "trap 'echo saved > f; exit 0' TERM; trap '' USR1; " LOOPS, ",\"checkpoint_signal\":\"USR1\"",
      true, "", "saved\n" },
};

EACH(a_job_is_asked_to_leave_then_made_to, leaves)
{
    char want[200];

    set_script(&s, 0, leaves[_i].script, leaves[_i].more);
    start(&s, 0, 0);
    until_heard(&s, "started");
    until_written(&s, "up up");
    if (leaves[_i].is_cancel)
        world_add(&s.w, "cancel a\n");
    for (int i = 0; i < 2; i++)    // asking twice is asking once
        ck_assert_int_eq((leaves[_i].is_cancel ? s.x.cancel : s.x.stop)(s.x.self, 0, NULL), 0);
    ck_assert_int_eq(local_n_under_way(s.local), 1);
    ck_assert_int_eq(start_at(&s, 0, 1, 0, NULL), -EBUSY);
    stage_until(&s, is_idle, leaves[_i].name);
    stage_hear(&s);
    snprintf(want, sizeof want, RUNNING_ON "%s", leaves[_i].want);
    ck_assert_msg(strcmp(s.heard, want) == 0, "%s: %s", leaves[_i].name, s.heard);
    ck_assert_msg(strcmp(content(&s, "f"), leaves[_i].saved) == 0, "%s", leaves[_i].name);
    ck_assert_int_eq(s.x.stop(s.x.self, 0, NULL), 0);    // of one that has ended
    ck_assert_int_eq(s.x.cancel(s.x.self, 0, NULL), 0);
}

TEST(a_stop_before_the_start_leaves_nothing_behind)
{
    set_script(&s, 0, LOOPS, "");
    start(&s, 0, 0);
    ck_assert_int_eq(s.x.stop(s.x.self, 0, NULL), 0);    // no turn was taken since
    stage_until(&s, is_idle, "idle");
    ck_assert_str_eq(s.heard, "");
    start(&s, 0, 1);
    until_heard(&s, "started 0.1 on 1\n");
}

TEST(a_move_stops_and_starts_elsewhere_as_one)
{
    set_script(&s, 0,
               "echo $GOGH_RESTART:$CUDA_VISIBLE_DEVICES >> f; trap 'exit 0' TERM; while :; do "
               "sleep 0.01; done",
               "");
    ck_assert_int_eq(move_to(&s, 0, 2, 0), -EBUSY);
    start(&s, 0, 0);
    until_written(&s, "f 0:0");
    until_heard(&s, "started");
    ck_assert_int_eq(move_to(&s, 0, 3, 0), 0);
    ck_assert_int_eq(move_to(&s, 0, 2, 0), 0);    // on second thoughts
    until_heard(&s, "moved");
    until_written(&s, "f 1:2");
    ck_assert_str_eq(s.heard, "started 0.0 on 0\nstarted 0.1 on 2 moved\n");
    ck_assert_int_eq(start_at(&s, 0, 2, 0, NULL), 0);    // there already
    ck_assert_int_eq(start_at(&s, 0, 1, 0, NULL), -EBUSY);
}

/* Two jobs change places: each holds a directory as its GPU, slowly. */
TEST(nobody_starts_on_a_gpu_before_the_one_who_leaves_it_has_left)
{
    static const char *const script =
        "mkdir gpu$GOGH_SLOTS || echo clash > clash; trap 'sleep 0.2; rmdir gpu'$GOGH_SLOTS'; exit "
        "0' TERM; echo up > up$GOGH_JOB.$GOGH_RUN; while :; do sleep 0.01; done";

    set_script(&s, 0, script, "");
    set_script(&s, 1, script, "");
    set_script(&s, 2, "test -d gpu2 && echo clash > clash; exit 0", "");
    start(&s, 0, 0);
    start(&s, 1, 1);
    until_written(&s, "up0.0 up");
    until_written(&s, "up1.0 up");
    until_heard(&s, "started 0.0");
    until_heard(&s, "started 1.0");
    ck_assert_int_eq(move_to(&s, 0, 1, 0), 0);
    ck_assert_int_eq(move_to(&s, 1, 0, 0), 0);
    until_heard(&s, "started 0.1 on 1 moved");
    until_heard(&s, "started 1.1 on 0 moved");
    until_written(&s, "up0.1 up");
    ck_assert_int_eq(move_to(&s, 0, 2, 0), 0);
    until_heard(&s, "started 0.2 on 2 moved");
    until_written(&s, "up0.2 up");
    ck_assert_int_eq(s.x.stop(s.x.self, 0, NULL), 0);
    start(&s, 2, 2);    // while job 0 still cleans up
    until_heard(&s, "finished 2.0");
    ck_assert_str_eq(content(&s, "clash"), "");
}

TEST(who_leaves_or_comes_is_busy_and_nobody_else)
{
    set_script(&s, 0, "trap '' TERM; echo up > up; while ! test -e go; do sleep 0.01; done", "");
    set_script(&s, 1, LOOPS, "");
    ck_assert(!s.x.job_is_busy(s.x.self, 0) && !s.x.gpu_is_busy(s.x.self, 0));
    start(&s, 0, 0);
    ck_assert(s.x.job_is_busy(s.x.self, 0) && s.x.gpu_is_busy(s.x.self, 0));
    until_heard(&s, "started 0.0");
    until_written(&s, "up up");
    ck_assert(!s.x.job_is_busy(s.x.self, 0) && !s.x.gpu_is_busy(s.x.self, 0));
    ck_assert_int_eq(move_to(&s, 0, 3, 0), 0);
    ck_assert(s.x.job_is_busy(s.x.self, 0) && s.x.gpu_is_busy(s.x.self, 0));
    ck_assert(s.x.gpu_is_busy(s.x.self, 3) && !s.x.gpu_is_busy(s.x.self, 1));
    world_add(&s.w, "cancel a\n");
    ck_assert_int_eq(s.x.cancel(s.x.self, 0, NULL), 0);    // takes its time
    ck_assert(s.x.gpu_is_busy(s.x.self, 0) && !s.x.gpu_is_busy(s.x.self, 3));
    start(&s, 1, 1);
    until_heard(&s, "started 1.0 on 1\n");
    ck_assert(s.x.job_is_busy(s.x.self, 0) && !s.x.job_is_busy(s.x.self, 1));
    touch("go");
    stage_until(&s, is_idle, "idle");
    ck_assert(!s.x.gpu_is_busy(s.x.self, 0));
}

static int n_runs(void)
{
    DIR *d = opendir(s.runs);
    struct dirent *entry;
    int n = 0;

    while ((entry = readdir(d)) != NULL)
        n += entry->d_name[0] >= '0' && entry->d_name[0] <= '9';
    closedir(d);
    return n;
}

static bool has_process(struct stage *at)
{
    struct run_info found;

    return stage_find(at, 0, &found) && found.is_there;
}

TEST(who_has_begun_is_busy_until_that_is_heard)
{
    set_script(&s, 0, LOOPS, "");
    s.is_deaf = true;
    start(&s, 0, 0);
    stage_until(&s, has_process, "its process");
    ck_assert_int_eq(local_n_under_way(s.local), 0);
    ck_assert(s.x.job_is_busy(s.x.self, 0) && s.x.gpu_is_busy(s.x.self, 0));
    ck_assert(!s.x.gpu_is_busy(s.x.self, 1));
    s.is_deaf = false;
    stage_hear(&s);
    ck_assert(!s.x.job_is_busy(s.x.self, 0) && !s.x.gpu_is_busy(s.x.self, 0));
}

TEST(without_a_keeper_to_start_a_job_waits)
{
    struct err e = { 0 };
    char keeper[300];

    stage_sleep(&s);
    snprintf(keeper, sizeof keeper, "%s/keeper", s.dir);
    ck_assert_int_eq(symlink(s.keeper, keeper), 0);
    s.keeper = keeper;
    stage_wake(&s);
    set_script(&s, 0, "exit 0", "");
    ck_assert_int_eq(unlink(keeper), 0);
    start(&s, 0, 0);
    stage_until(&s, is_idle, "idle");
    ck_assert_str_eq(s.heard, "");
    ck_assert_int_eq(n_runs(), 0);
    ck_assert(!s.x.job_is_busy(s.x.self, 0) && !s.x.gpu_is_busy(s.x.self, 0));
    ck_assert_int_eq(start_at(&s, 0, 0, 0, &e), -EAGAIN);    // not at once
}

/* Job 1 is told to start where job 0 has been told to leave, and takes its time. */
static void start_behind(void)
{
    set_script(&s, 0, "trap 'sleep 0.2; exit 0' TERM; " LOOPS, "");
    set_script(&s, 1, "exit 0", "");
    start(&s, 0, 0);
    until_heard(&s, "started");
    until_written(&s, "up up");
    s.x.stop(s.x.self, 0, NULL);
    start(&s, 1, 0);
}

TEST(a_start_that_waits_ends_when_its_job_is_held)
{
    start_behind();
    world_add(&s.w, "hold b\n");
    stage_until(&s, is_idle, "idle");
    stage_hear(&s);
    ck_assert_ptr_null(strstr(s.heard, "1.0"));
    ck_assert_str_eq(content(&s, "runs/1.0/order"), "");
}

TEST(a_start_that_waits_can_be_taken_back)
{
    start_behind();
    ck_assert_int_eq(local_n_under_way(s.local), 2);
    ck_assert_int_eq(s.x.stop(s.x.self, 1, NULL), 0);
    stage_until(&s, is_idle, "idle");
    stage_hear(&s);
    ck_assert_ptr_null(strstr(s.heard, "1.0"));
}

/* ---- the daemon goes and comes back ---- */

#define WAITS "trap 'exit 0' TERM; echo up > up; while ! test -e go; do sleep 0.01; done; exit 0"

static void run_a(const char *more)
{
    set_script(&s, 0, WAITS, more);
    start(&s, 0, 0);
    until_heard(&s, "started");
    until_written(&s, "up up");
}

TEST(a_job_that_runs_is_found_again_and_only_its_end_is_news)
{
    struct run_info before, after;

    run_a("");
    ck_assert(stage_find(&s, 0, &before) && before.pid > 0);
    const pid_t pid = before.pid;
    char secret[40];
    snprintf(secret, sizeof secret, "%s", before.secret);
    stage_sleep(&s);
    stage_wake(&s);
    ck_assert(stage_find(&s, 0, &after));
    ck_assert_int_eq(after.pid, pid);
    ck_assert_str_eq(after.secret, secret);
    ck_assert_int_eq(local_n_under_way(s.local), 0);
    touch("go");
    until_heard(&s, "finished");
    ck_assert_str_eq(s.heard, RUNNING_ON "finished 0.0\n");
}

TEST(what_ended_meanwhile_is_told)
{
    run_a("");
    stage_sleep(&s);
    touch("go");
    until_written(&s, "runs/0.0/status ended");
    stage_wake(&s);
    until_heard(&s, "finished");
    ck_assert_str_eq(s.heard, RUNNING_ON "finished 0.0\n");
    stage_sleep(&s);
    stage_wake(&s);    // and told once
    stage_hear(&s);
    ck_assert_str_eq(s.heard, RUNNING_ON "finished 0.0\n");
}

TIMES(a_start_and_an_end_that_nobody_heard_of_are_told, 2)
{
    set_script(&s, 0, WAITS, "");
    start(&s, 0, 0);
    stage_sleep(&s);    // at once
    until_written(&s, "runs/0.0/status started");
    if (_i == 1) {
        touch("go");
        until_written(&s, "runs/0.0/status ended");
    }
    stage_wake(&s);
    until_heard(&s, RUNNING_ON);
    touch("go");
    until_heard(&s, "finished");
    ck_assert_str_eq(s.heard, RUNNING_ON "finished 0.0\n");
}

static const char *status_of(void)
{
    return content(&s, "runs/0.0/status");
}

static pid_t keeper_pid(void)
{
    int pid = 0;

    ck_assert_int_eq(sscanf(status_of(), "taken %d", &pid), 1);
    return pid;
}

TIMES(a_killed_keeper_takes_its_command_along, 4)
{
    struct run_info run;

    run_a(_i & 1 ? ",\"retries\":1" : "");
    ck_assert(stage_find(&s, 0, &run));
    const pid_t pid = run.pid;
    if (_i & 2)
        stage_sleep(&s);
    ck_assert_int_eq(kill(keeper_pid(), SIGKILL), 0);
    if (_i & 2) {
        siginfo_t i;
        ck_assert_int_eq(waitid(P_ALL, 0, &i, WEXITED | WNOWAIT), 0);
        stage_wake(&s);
    }
    until_heard(&s, _i & 1 ? RUNNING_ON "stopped 0.0: its keeper was killed; try 2 of 2\n"
                           : RUNNING_ON "failed 0.0: its keeper was killed\n");
    struct proc p = { .state = 'X' };
    ck_assert(proc_read(pid, &p) < 0 || p.state == 'Z');
    ck_assert_ptr_nonnull(strstr(status_of(), " failed its keeper was killed\n"));
}

TIMES(a_run_that_no_keeper_took_has_not_begun, 2)
{
    stage_sleep(&s);
    s.keeper = "/bin/true";
    stage_wake(&s);
    set_script(&s, 0, "exit 0", "");
    start(&s, 0, 0);
    if (_i == 0) {    // the daemon dies before it sees that
        stage_sleep(&s);
        s.keeper = getenv("GOGH_KEEPER");
        stage_wake(&s);
        ck_assert_int_eq(local_n_under_way(s.local), 0);
    } else {
        struct err e = { 0 };

        stage_until(&s, is_idle, "idle");
        ck_assert_int_eq(start_at(&s, 0, 0, 0, &e), -EAGAIN);    // not again and again
        stage_sleep(&s);
        s.keeper = getenv("GOGH_KEEPER");
        stage_wake(&s);
    }
    ck_assert_str_eq(s.heard, "");
    start(&s, 0, 1);
    until_heard(&s, "finished");
    ck_assert_str_eq(s.heard, "started 0.0 on 1\nfinished 0.0\n");    // and does not count
}

static void run_keeper(void)
{
    pid_t pid = fork();
    int code;

    if (pid == 0) {
        char dir[300];
        snprintf(dir, sizeof dir, "%s/0.0", s.runs);
        execl(s.keeper, s.keeper, dir, NULL);
        _exit(9);
    }
    ck_assert_int_eq(waitpid(pid, &code, 0), pid);
    ck_assert_int_eq(code, 0);
}

TEST(a_second_keeper_does_nothing)
{
    run_a("");
    char before[1000];
    snprintf(before, sizeof before, "%s", status_of());
    run_keeper();    // while it runs
    ck_assert_str_eq(status_of(), before);
    touch("go");
    until_heard(&s, "finished");
    stage_until(&s, has_no_children, "the keeper's end");
    snprintf(before, sizeof before, "%s", status_of());
    run_keeper();    // and when nobody has the lock
    ck_assert_str_eq(status_of(), before);
}

TEST(a_job_cancelled_while_the_daemon_was_away_is_ended)
{
    run_a("");
    stage_sleep(&s);
    world_add(&s.w, "cancel a\n");
    stage_wake(&s);
    stage_until(&s, is_idle, "idle");
    stage_until(&s, is_nobody_left, "nobody left");
    ck_assert_str_eq(s.heard, RUNNING_ON);
}

TEST(a_job_held_before_its_start_was_heard_is_stopped)
{
    set_script(&s, 0, WAITS, "");
    s.is_deaf = true;
    start(&s, 0, 0);
    stage_until(&s, is_idle, "idle");
    world_add(&s.w, "hold a\n");
    s.is_deaf = false;
    stage_hear(&s);
    stage_until(&s, is_idle, "idle");
    stage_hear(&s);
    stage_until(&s, is_nobody_left, "nobody left");
    ck_assert_str_eq(s.heard, "");
    world_add(&s.w, "release a\n");
    start(&s, 0, 1);
    until_heard(&s, "started 0.1 on 1");
}

TEST(a_job_whose_run_is_gone_waits_again)
{
    stage_sleep(&s);
    world_add(&s.w, "start b 1\n");
    stage_wake(&s);
    until_heard(&s, "stopped 1.-1: its run is gone\n");
}

TEST(a_move_cut_in_two_leaves_the_job_waiting)
{
    run_a("");
    ck_assert_int_eq(move_to(&s, 0, 1, 0), 0);
    stage_sleep(&s);    // before its first half is done
    until_written(&s, "runs/0.0/status stopped");
    stage_wake(&s);
    until_heard(&s, "stopped 0.0: ");
    start(&s, 0, 1);
    until_heard(&s, "started 0.1 on 1\n");
}

TEST(a_run_of_another_boot_is_stopped_and_is_no_failure)
{
    struct run_info run;

    run_a("");
    stage_sleep(&s);
    ck_assert_int_eq(kill(keeper_pid(), SIGTERM), 0);
    until_written(&s, "runs/0.0/status stopped");
    char path[400];
    snprintf(path, sizeof path, "%s/0.0/status", s.runs);
    FILE *f = fopen(path, "we");    // as the power cut left it
    fprintf(f, "taken 1 2 00000000-0000-0000-0000-000000000000\nstarted %d 7 1.5\nended 2 ex",
            (int)getpid());
    fclose(f);
    stage_wake(&s);
    until_heard(&s, "stopped 0.0: the machine was restarted\n");
    ck_assert(stage_find(&s, 0, &run));
    ck_assert_int_eq(run.n_failures, 0);
}

TEST(an_end_that_the_disk_has_not_is_told_again)
{
    set_script(&s, 0, "exit 0", "");
    s.is_lossy = true;
    start(&s, 0, 0);
    until_heard(&s, "finished");
    stage_sleep(&s);    // killed before its commit
    s.is_lossy = false;
    s.heard[0] = '\0';
    stage_wake(&s);
    until_heard(&s, RUNNING_ON "finished 0.0\n");
    ck_assert_int_eq(s.w.ledger.state.jobs[0]->state, JOB_FINISHED);
}

static const struct {
    const char *name, *script, *more, *ends;
} known[] = {
    { "finished", "exit 0", "", "finished" },
    { "failed", "exit 3", "", "failed" },
    { "to be tried again", "exit 3", ",\"retries\":2", "stopped" },
};

EACH(an_end_that_the_disk_has_is_not_told_again_though_it_bears_no_mark, known)
{
    struct run_info run;
    char heard[sizeof s.heard];

    s.is_unsafe = true;
    set_script(&s, 0, known[_i].script, known[_i].more);
    start(&s, 0, 0);
    until_heard(&s, known[_i].ends);
    snprintf(heard, sizeof heard, "%s", s.heard);
    stage_sleep(&s);
    stage_wake(&s);
    stage_hear(&s);
    ck_assert_msg(strcmp(s.heard, heard) == 0, "%s: %s", known[_i].name, s.heard);
    ck_assert(stage_find(&s, 0, &run));
    ck_assert_int_eq(run.n_failures, _i > 0);
    s.is_unsafe = false;
}

/* Write over what the keeper of run 0.0 said of itself. */
static void disguise(int pid)
{
    char path[400], boot[BOOT_ID_SIZE], rest[1000];
    FILE *f;

    snprintf(path, sizeof path, "%s/0.0/status", s.runs);
    snprintf(rest, sizeof rest, "%s", strchr(status_of(), '\n') + 1);
    proc_boot_id(boot);
    f = fopen(path, "r+e");
    ck_assert_int_eq(ftruncate(fileno(f), 0), 0);
    fprintf(f, "taken %d 7 %s\n%s", pid, boot, rest);
    fclose(f);
}

TIMES(a_keeper_that_cannot_be_seen_lives_as_long_as_it_has_its_lock, 2)
{
    struct run_info run;

    run_a("");
    const pid_t pid = keeper_pid();
    stage_sleep(&s);
    disguise(_i ? (int)pid : 999999999);
    stage_wake(&s);
    ck_assert(stage_find(&s, 0, &run) && run.pid > 0);
    ck_assert_int_eq(local_n_under_way(s.local), 0);
    ck_assert_ptr_null(strstr(status_of(), "ended"));
    touch("go");
    until_heard(&s, "finished");
    ck_assert_str_eq(s.heard, RUNNING_ON "finished 0.0\n");
}

TEST(a_keeper_that_is_hidden_can_be_stopped)
{
    char path[64];

    run_a("");
    snprintf(path, sizeof path, "/proc/%d", (int)keeper_pid());
    stage_sleep(&s);
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", path, "tmpfs", 0, NULL) != 0)
        fprintf(stderr, "not hidden: only root may mount\n");
    stage_wake(&s);
    ck_assert_int_eq(local_n_under_way(s.local), 0);
    ck_assert_int_eq(s.x.stop(s.x.self, 0, NULL), 0);
    until_heard(&s, "stopped 0.0: stopped as planned\n");
    (void)umount2(path, MNT_DETACH);
}

TEST(the_end_of_a_cancelled_job_is_told_if_its_cancelling_was_lost)
{
    run_a("");
    ck_assert_int_eq(s.x.cancel(s.x.self, 0, NULL), 0);    // the state has it running
    until_heard(&s, "stopped 0.0: it was told to end\n");
}

TEST(what_ended_before_it_was_asked_to_ended_by_itself)
{
    struct run_info run;

    run_a("");
    const pid_t keeper = keeper_pid();
    ck_assert(stage_find(&s, 0, &run));
    ck_assert_int_eq(kill(keeper, SIGSTOP), 0);
    touch("go");
    for (struct proc p = { 0 }; proc_read(run.pid, &p) == 0 && p.state != 'Z';)
        usleep(1000);
    ck_assert_int_eq(s.x.stop(s.x.self, 0, NULL), 0);
    ck_assert_int_eq(kill(keeper, SIGCONT), 0);
    until_heard(&s, "finished 0.0\n");
}

TEST(offspring_in_a_session_of_its_own_dies_with_a_killed_keeper)
{
    set_script(&s, 0, "setsid setsid sleep 600 & sleep 0.1; " LOOPS, "");
    start(&s, 0, 0);
    until_heard(&s, "started");
    until_written(&s, "up up");
    ck_assert_int_eq(kill(keeper_pid(), SIGKILL), 0);
    until_heard(&s, "failed 0.0: its keeper was killed\n");
    stage_until(&s, is_nobody_left, "nobody left");
}

TIMES(a_job_that_finished_while_it_was_held_is_not_run_again, 2)
{
    set_script(&s, 0, "echo ran >> f; exit 0", "");
    s.is_deaf = true;
    start(&s, 0, 0);
    stage_until(&s, is_idle, "idle");
    until_written(&s, "runs/0.0/status ended");
    stage_until(&s, has_no_children, "its end");
    world_add(&s.w, "hold a\n");
    s.is_deaf = false;
    stage_hear(&s);
    ck_assert_str_eq(s.heard, "");
    if (_i) {
        stage_sleep(&s);
        stage_wake(&s);
    }
    world_add(&s.w, "release a\n");
    start(&s, 0, 1);
    until_heard(&s, "finished");
    ck_assert_str_eq(s.heard, "started 0.0 on 1\nfinished 0.0\n");
    ck_assert_str_eq(content(&s, "f"), "ran\n");
}

/* ---- a box in trouble ---- */

TIMES(a_run_that_cannot_be_read_keeps_the_daemon_from_starting, 2)
{
    char path[400];
    struct err e = { 0 };

    run_a("");
    stage_sleep(&s);
    snprintf(path, sizeof path, "%s/0.0/order", s.runs);
    char away[500];
    snprintf(away, sizeof away, "%s.away", path);
    ck_assert_int_eq(rename(path, away), 0);
    ck_assert(_i || mkdir(path, 0700) == 0);    // reads as EISDIR, or is not there
    ck_assert_int_lt(stage_try(&s, &e), 0);
    ck_assert_ptr_nonnull(strstr(e.text, "/0.0: order: cannot read"));
    ck_assert(_i || rmdir(path) == 0);
    ck_assert_int_eq(rename(away, path), 0);
}

TEST(failures_are_counted_though_the_last_folder_is_empty)
{
    char path[400];
    struct run_info run;

    set_script(&s, 0, "exit 3", ",\"retries\":2");
    start(&s, 0, 0);
    until_heard(&s, "try 2 of 3");
    stage_sleep(&s);
    snprintf(path, sizeof path, "%s/0.1", s.runs);    // the daemon died as it made it
    ck_assert_int_eq(mkdir(path, 0711), 0);
    stage_wake(&s);
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert(stage_find(&s, 0, &run) && run.run == 0 && run.n_failures == 1);
}

TIMES(without_descriptors_or_disk_a_start_is_refused_and_works_later, 2)
{
    static const int limits[] = { RLIMIT_NOFILE, RLIMIT_FSIZE };
    struct rlimit was, none;
    struct err e = { 0 };

    signal(SIGXFSZ, SIG_IGN);
    set_script(&s, 0, "exit 0", "");
    ck_assert_int_eq(getrlimit(limits[_i], &was), 0);
    none = (struct rlimit){ 0, was.rlim_max };
    ck_assert_int_eq(setrlimit(limits[_i], &none), 0);
    ck_assert_int_lt(start_at(&s, 0, 0, 0, &e), 0);
    ck_assert_int_eq(setrlimit(limits[_i], &was), 0);
    ck_assert_ptr_nonnull(strstr(e.text, "cannot write"));
    ck_assert_int_eq(n_runs(), 0);
    ck_assert_int_eq(local_n_under_way(s.local), 0);
    start(&s, 0, 0);
    until_heard(&s, "finished");
}

TEST(orders_that_make_no_sense_are_refused)
{
    struct err e = { 0 };
    const int far = 9;

    stage_sleep(&s);
    s.node = 1;    // and its GPUs are those of node 0
    stage_wake(&s);
    ck_assert_int_eq(start_at(&s, 0, 0, 0, &e), -ENODEV);
    ck_assert_ptr_nonnull(strstr(e.text, "another machine"));
    stage_sleep(&s);
    s.node = 0;
    stage_wake(&s);
    ck_assert_int_eq(start_at(&s, 0, 0, 0, &e), -EINVAL);    // nothing to run
    ck_assert_ptr_nonnull(strstr(e.text, "no command"));
    set_script(&s, 0, "exit 0", ",\"retries\":-1");
    ck_assert_int_eq(start_at(&s, 0, 0, 0, &e), -EINVAL);
    ck_assert_int_eq(s.x.start(s.x.self, &(struct placement){ 0, 1, &far, 0 }, &e), -ENODEV);
    ck_assert_int_eq(s.x.start(s.x.self, &(struct placement){ 77, 1, &far, 0 }, &e), -ENODEV);
    ck_assert_int_eq(s.x.stop(s.x.self, 77, &e), -ENODEV);
    ck_assert_int_eq(s.x.cancel(s.x.self, -1, &e), -ENODEV);
    ck_assert_int_eq(n_runs(), 0);
}

TEST(two_jobs_share_a_gpu_as_asked)
{
    set_script(&s, 0, "echo $CUDA_VISIBLE_DEVICES > f0; " WAITS, "");
    set_script(&s, 1, "echo $CUDA_VISIBLE_DEVICES > f1; " WAITS, "");
    start(&s, 0, 3);
    start(&s, 1, 3);
    until_written(&s, "f0 3\n");
    until_written(&s, "f1 3\n");
}
