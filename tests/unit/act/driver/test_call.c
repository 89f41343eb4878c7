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

static char *const no_env[] = { "ONLY=this", NULL };

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

START_TEST(a_command_gets_what_it_is_given_and_ends_as_it_does)
{
    char *argv[] = { "sh", "-c", (char *)cases[_i].script, NULL };
    struct call_order o = { .program = "sh",
                            .path = "/nowhere::/usr/bin:/bin",
                            .argv = argv,
                            .env = no_env,
                            .input = "input",
                            .input_len = 5,
                            .extra = "extra",
                            .extra_len = 5,
                            .limit_s = 20,
                            .output_max = 1000 };
    struct call_result r = { 0 };
    struct slurm_call *c = finish(&o, &r);

    ck_assert_msg(r.end == cases[_i].end && r.status == cases[_i].status, "%s: %d %d %s",
                  cases[_i].name, (int)r.end, r.status, r.errors);
    ck_assert_msg(strcmp(r.out, cases[_i].out) == 0, "%s: %s", cases[_i].name, r.out);
    ck_assert_msg(strcmp(r.errors, cases[_i].errors) == 0, "%s: %s", cases[_i].name, r.errors);
    call_destroy(c);
}
END_TEST

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

START_TEST(what_exceeds_its_limit_is_ended)
{
    char *argv[] = { "sh", "-c", (char *)bounds[_i].script, NULL };
    struct call_order o = { .program = "/bin/sh",
                            .argv = argv,
                            .env = (char *const[]){ "PATH=/usr/bin:/bin", NULL },
                            .limit_s = bounds[_i].limit_s,
                            .output_max = 100000 };
    struct call_result r = { 0 };
    struct slurm_call *c = finish(&o, &r);

    ck_assert_msg(r.end == bounds[_i].end, "%s: %d", bounds[_i].name, (int)r.end);
    ck_assert(r.out_len <= 100000);
    call_destroy(c);
}
END_TEST

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

START_TEST(what_a_command_leaves_behind_is_killed)
{
    char *argv[] = { "sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!", NULL };
    struct call_order o = { .program = "/bin/sh",
                            .argv = argv,
                            .env = (char *const[]){ "PATH=/usr/bin:/bin", NULL },
                            .limit_s = 10,
                            .output_max = 1000 };
    struct call_result r = { 0 };
    struct slurm_call *c = finish(&o, &r);
    const long pid = strtol(r.out, NULL, 10);

    ck_assert_int_gt(pid, 1);
    for (int i = 0; i < 200 && is_alive(pid); i++)
        poll(NULL, 0, 10);
    ck_assert(!is_alive(pid));
    call_destroy(c);
}
END_TEST

START_TEST(a_command_that_is_not_there_is_told)
{
    char *argv[] = { "nosuch", NULL };
    struct call_order o = { .program = "nosuch",
                            .path = "/bin",
                            .argv = argv,
                            .env = no_env,
                            .limit_s = 5,
                            .output_max = 1000 };
    struct call_result r = { 0 };
    struct slurm_call *c = finish(&o, &r);

    ck_assert_int_eq(r.end, CALL_NOT_BEGUN);
    ck_assert(strstr(r.errors, "cannot run 'nosuch'"));
    call_destroy(c);
}
END_TEST

/* As a login has it, but for what is there already; nobody is looked up in this process. */
START_TEST(a_command_of_a_user_gets_his_home_and_login)
{
    const struct passwd *user = getpwuid(geteuid());
    char *argv[] = { "sh", "-c", "echo \"$1\"; tr '\\0' '\\n' <&3", "sh", NULL }, want[3000];
    struct call_order o = { .program = "/bin/sh",
                            .argv = argv,
                            .env = (char *const[]){ "PATH=/usr/bin:/bin", NULL },
                            .extra = "A=b\0SHELL=/x",
                            .extra_len = sizeof "A=b\0SHELL=/x",
                            .as_user = true,
                            .uid = geteuid(),
                            .gid = getegid(),
                            .has_login = true,
                            .home_option = "--chdir=",
                            .limit_s = 10,
                            .output_max = 10000 };
    struct call_result r = { 0 };
    struct slurm_call *c;

    ck_assert(user);
    snprintf(want, sizeof want,
             "--chdir=%s\nA=b\nSHELL=/x\nPATH=/usr/local/bin:/usr/bin:/bin\nHOME=%s\n"
             "USER=%s\nLOGNAME=%s\n",
             user->pw_dir, user->pw_dir, user->pw_name, user->pw_name);
    c = finish(&o, &r);
    ck_assert_msg(r.end == CALL_EXITED && r.status == 0, "%s", r.errors);
    ck_assert_str_eq(r.out, want);
    call_destroy(c);
}
END_TEST

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

START_TEST(a_directory_of_users_that_hangs_holds_nobody_up)
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
END_TEST

START_TEST(a_command_without_hope_is_ended)
{
    char *argv[] = { "sh", "-c", "echo 'x: no room, retrying' >&2; sleep 1000", NULL };
    struct call_order o = { .program = "/bin/sh",
                            .argv = argv,
                            .env = (char *const[]){ "PATH=/usr/bin:/bin", NULL },
                            .last_words = (const char *const[]){ "never", "no room", NULL },
                            .limit_s = 1000,
                            .output_max = 1000 };
    struct call_result r = { 0 };
    struct slurm_call *c = finish(&o, &r);

    ck_assert_int_eq(r.end, CALL_HOPELESS);
    ck_assert_str_eq(r.errors, "x: no room, retrying\n");
    call_destroy(c);
}
END_TEST

/* Nobody's groups, and no way back. Needs root: without, it must be refused. */
START_TEST(a_command_of_another_user_has_his_rights_alone)
{
    char *argv[] = { "sh", "-c", "id -u; id -g; id -G; grep CapEff /proc/self/status", NULL };
    struct call_order o = { .program = "/bin/sh",
                            .argv = argv,
                            .env = (char *const[]){ "PATH=/usr/bin:/bin", NULL },
                            .as_user = true,
                            .uid = 65534,
                            .gid = 65533,
                            .limit_s = 10,
                            .output_max = 1000 };
    struct call_result r = { 0 };
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
END_TEST

int main(void)
{
    Suite *s = suite_create("act/slurm_call");
    TCase *t = tcase_create("calls");

    (void)signal(SIGPIPE, SIG_IGN);    // as the driver does
    tcase_add_loop_test(t, a_command_gets_what_it_is_given_and_ends_as_it_does, 0,
                        (int)(sizeof cases / sizeof *cases));
    tcase_add_loop_test(t, what_exceeds_its_limit_is_ended, 0,
                        (int)(sizeof bounds / sizeof *bounds));
    tcase_add_test(t, what_a_command_leaves_behind_is_killed);
    tcase_add_test(t, a_command_that_is_not_there_is_told);
    tcase_add_test(t, a_command_of_a_user_gets_his_home_and_login);
    tcase_add_test(t, a_directory_of_users_that_hangs_holds_nobody_up);
    tcase_add_test(t, a_command_without_hope_is_ended);
    tcase_add_test(t, a_command_of_another_user_has_his_rights_alone);
    suite_add_tcase(s, t);
    return suite_run(s);
}
