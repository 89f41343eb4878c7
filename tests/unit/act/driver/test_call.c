/* One run of one command: what it gets, what it may take, and how it ends. */
#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "act/driver/call.h"
#include "base/clock.h"
#include "base/err.h"
#include "unit/suite.h"

#define PATIENCE_S 300.0    // nothing here takes a second; a busy machine may

static char *const no_env[] = { "ONLY=this", NULL };

/* A script of the shell's, which has all the time it wants. */
static struct call_order sh(const char *script)
{
    static char *argv[] = { "sh", "-c", NULL, NULL };
    static char *const env[] = { "PATH=/usr/bin:/bin", NULL };

    argv[2] = (char *)script;
    return (struct call_order){
        .program = "/bin/sh", .argv = argv, .env = env, .limit_s = PATIENCE_S, .output_max = 1000
    };
}

static void ignore_pipes(void)
{
    (void)signal(SIGPIPE, SIG_IGN);    // as the driver does
}

FIXTURE(ignore_pipes, NULL)

/* Drive a call to its end, as the driver's loop does. */
static struct slurm_call *finish(const struct call_order *o, struct call_result *r)
{
    struct slurm_call *c = NULL;
    struct err e = { 0 };
    bool is_over = false;

    ck_assert_msg(call_begin(o, clock_stopwatch_s(), &c, &e) == 0, "%s", e.text);
    while (!is_over) {
        struct pollfd fds[CALL_FDS];
        const int n = call_fds(c, fds);
        const double left_s = call_wake_s(c) - clock_stopwatch_s();

        poll(fds, (nfds_t)n, left_s > 0 ? (int)(left_s * 1e3) + 1 : 0);
        is_over = call_go_on(c, clock_stopwatch_s(), r);
    }
    return c;
}

static const struct {
    const char *name, *script;
    enum call_end end;
    int status;
    const char *out, *errors;
} cases[] = {
    { "its exit status and its words", "echo a; echo b >&2; exit 3", CALL_EXITED, 3, "a\n", "b\n" },
    { "a signal that is not ours", "kill -9 $$", CALL_KILLED, SIGKILL, "", "" },
    { "what it says last", "echo first; sleep 0.1; echo last", CALL_EXITED, 0, "first\nlast\n",
      "" },
    { "its input", "cat", CALL_EXITED, 0, "input", "" },
    { "input that it does not read", "exec <&-; exit 0", CALL_EXITED, 0, "", "" },
    { "its environment, and nothing of ours", "env | grep -v '^_=\\|^PWD=\\|^SHLVL='", CALL_EXITED,
      0, "ONLY=this\n", "" },
    { "what is extra is descriptor 3", "cat <&3", CALL_EXITED, 0, "extra", "" },
    { "a child that it leaves behind does not keep it", "sleep 100 & echo done", CALL_EXITED, 0,
      "done\n", "" },
    { "it runs in a group of its own, in the root directory", "[ $(ps -o pgid= $$) = $$ ] && pwd",
      CALL_EXITED, 0, "/\n", "" },
};

EACH(a_command_gets_what_it_is_given_and_ends_as_it_does, cases)
{
    struct call_order o = sh(cases[_i].script);
    struct call_result r = { 0 };

    o.program = "sh";
    o.path = "/nowhere::/usr/bin:/bin";
    o.env = no_env;
    o.input = "input";
    o.input_len = 5;
    o.extra = "extra";
    o.extra_len = 5;
    struct slurm_call *c = finish(&o, &r);
    ck_assert_msg(r.end == cases[_i].end && r.status == cases[_i].status, "%s: %d %d %s",
                  cases[_i].name, (int)r.end, r.status, r.errors);
    ck_assert_msg(strcmp(r.out, cases[_i].out) == 0, "%s: %s", cases[_i].name, r.out);
    ck_assert_msg(strcmp(r.errors, cases[_i].errors) == 0, "%s: %s", cases[_i].name, r.errors);
    call_destroy(c);
}

static const struct {
    const char *name, *script;
    double limit_s;
    enum call_end end;
} bounds[] = {
    { "one that sleeps is ended at its limit", "exec sleep 100", 0.2, CALL_LATE },
    { "one that ignores SIGTERM is killed", "trap '' TERM; while :; do sleep 1; done", 0.2,
      CALL_LATE },
    { "its children end with it", "sleep 100 & sleep 100; wait", 0.2, CALL_LATE },
    { "one that is halted is ended too", "kill -STOP $$", 0.2, CALL_LATE },
    { "one that says too much is ended", "yes", 1000, CALL_FLOODED },
};

EACH(what_exceeds_its_limit_is_ended, bounds)
{
    struct call_order o = sh(bounds[_i].script);
    struct call_result r = { 0 };

    o.limit_s = bounds[_i].limit_s;
    o.output_max = 100000;
    struct slurm_call *c = finish(&o, &r);
    ck_assert_msg(r.end == bounds[_i].end, "%s: %d", bounds[_i].name, (int)r.end);
    ck_assert(r.out_len <= 100000);
    call_destroy(c);
}

static bool is_alive(long pid)
{
    char path[40], state = 'Z';
    FILE *f;

    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    f = fopen(path, "re");
    if (!f)
        return false;
    if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
        state = 'Z';
    fclose(f);
    return state != 'Z' && state != 'X';
}

TEST(what_a_command_leaves_behind_is_killed)
{
    struct call_order o = sh("sleep 1000 >/dev/null 2>&1 & echo $!");
    struct call_result r = { 0 };
    struct slurm_call *c = finish(&o, &r);
    const long pid = strtol(r.out, NULL, 10);
    const double until_s = clock_stopwatch_s() + PATIENCE_S;

    ck_assert_int_gt(pid, 1);
    while (is_alive(pid) && clock_stopwatch_s() < until_s)
        poll(NULL, 0, 10);
    ck_assert(!is_alive(pid));
    call_destroy(c);
}

TEST(a_command_that_is_not_there_is_told)
{
    char *argv[] = { "nosuch", NULL };
    struct call_order o = { .program = "nosuch",
                            .path = "/bin",
                            .argv = argv,
                            .env = no_env,
                            .limit_s = PATIENCE_S,
                            .output_max = 1000 };
    struct call_result r = { 0 };
    struct slurm_call *c = finish(&o, &r);

    ck_assert_int_eq(r.end, CALL_NOT_BEGUN);
    ck_assert(strstr(r.errors, "cannot run 'nosuch'"));
    call_destroy(c);
}

/* As a login has it, but for what is there already; nobody is looked up in this process. */
TEST(a_command_of_a_user_gets_his_home_and_login)
{
    const struct passwd *user = getpwuid(geteuid());
    char *argv[] = { "sh", "-c", "echo \"$1\"; tr '\\0' '\\n' <&3", "sh", NULL }, want[3000];
    struct call_order o = sh("");
    struct call_result r = { 0 };
    struct slurm_call *c;

    ck_assert(user);
    o.argv = argv;
    o.extra = "A=b\0SHELL=/x";
    o.extra_len = sizeof "A=b\0SHELL=/x";
    o.as_user = true;
    o.uid = geteuid();
    o.gid = getegid();
    o.has_login = true;
    o.home_option = "--chdir=";
    o.output_max = 10000;
    snprintf(want, sizeof want,
             "--chdir=%s\nA=b\nSHELL=/x\nPATH=/usr/local/bin:/usr/bin:/bin\nHOME=%s\n"
             "USER=%s\nLOGNAME=%s\n",
             user->pw_dir, user->pw_dir, user->pw_name, user->pw_name);
    c = finish(&o, &r);
    ck_assert_msg(r.end == CALL_EXITED && r.status == 0, "%s", r.errors);
    ck_assert_str_eq(r.out, want);
    call_destroy(c);
}

/* Takes the place of the C library's where a case wants it to. */
static bool is_directory_hung;

static struct passwd *look_up(uid_t uid)
{
    static struct passwd user = { .pw_name = "ann", .pw_dir = "/home/ann", .pw_shell = "/bin/sh" };

    user.pw_uid = uid;
    return &user;
}

struct passwd *getpwuid(uid_t uid)
{
    while (is_directory_hung)
        poll(NULL, 0, 1000);
    return look_up(uid);
}

TEST(a_directory_of_users_that_hangs_holds_nobody_up)
{
    char *argv[] = { "true", NULL };
    struct call_order o = { .program = "/bin/true",
                            .argv = argv,
                            .env = no_env,
                            .as_user = true,
                            .uid = geteuid(),
                            .gid = getegid(),
                            .limit_s = 0.2,
                            .output_max = 1000 };
    struct call_result r = { 0 };
    struct slurm_call *c;

    is_directory_hung = true;
    c = finish(&o, &r);
    ck_assert_int_eq(r.end, CALL_NOT_BEGUN);
    ck_assert_msg(strstr(r.errors, "cannot become the user"), "%s", r.errors);
    call_destroy(c);
}

TEST(a_command_without_hope_is_ended)
{
    static const char *const last_words[] = { "never", "no room", NULL };
    struct call_order o = sh("echo 'x: no room, retrying' >&2; sleep 1000");
    struct call_result r = { 0 };

    o.last_words = last_words;
    o.limit_s = 1000;
    struct slurm_call *c = finish(&o, &r);
    ck_assert_int_eq(r.end, CALL_HOPELESS);
    ck_assert_str_eq(r.errors, "x: no room, retrying\n");
    call_destroy(c);
}

/* Nobody's groups, and no way back. Needs root: without, it must be refused. */
TEST(a_command_of_another_user_has_his_rights_alone)
{
    struct call_order o = sh("id -u; id -g; id -G; grep CapEff /proc/self/status");
    struct call_result r = { 0 };

    o.as_user = true;
    o.uid = 65534;
    o.gid = 65533;
    struct slurm_call *c = finish(&o, &r);
    if (geteuid() != 0) {
        ck_assert_int_eq(r.end, CALL_NOT_BEGUN);
        ck_assert(strstr(r.errors, "cannot become the user"));
    } else {
        ck_assert_msg(r.end == CALL_EXITED && r.status == 0, "%s", r.errors);
        ck_assert_msg(strncmp(r.out, "65534\n65533\n65533", 17) == 0, "%s", r.out);
        ck_assert_msg(strstr(r.out, "CapEff:\t0000000000000000"), "%s", r.out);
    }
    call_destroy(c);
}
