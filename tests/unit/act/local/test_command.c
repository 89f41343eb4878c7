/* Commands, launches and status lines: what is accepted, what is refused and how it is said. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <string.h>

#include "act/local/command.h"
#include "act/local/status.h"
#include "base/arena.h"
#include "base/err.h"
#include "unit/suite.h"

static const struct {
    const char *name, *json, *says;    // says NULL: accepted
} commands[] = {
    { "a program is enough", "{\"argv\":[\"true\"]}", NULL },
    { "everything",
      "{\"argv\":[\"a\",\"\"],\"cwd\":\"/x\",\"env\":{\"A\":\"\"},\"uid\":1,\"gid\":2,\"stdout\":"
      "\"o\",\"stderr\":\"e\",\"timeout_s\":1.5,\"retries\":3,\"checkpoint_signal\":\"USR1\","
      "\"grace_s\":0}",
      NULL },
    { "null is absent", "{\"argv\":[\"a\"],\"cwd\":null,\"env\":null,\"retries\":null}", NULL },
    { "not JSON", "{", "not JSON" },
    { "not an object", "[]", "JSON object" },
    { "no program", "{}", "'argv'" },
    { "an empty list", "{\"argv\":[]}", "'argv'" },
    { "an empty name", "{\"argv\":[\"\"]}", "program's name" },
    { "a shell's line", "{\"argv\":\"rm -rf /\"}", "'argv' must be a list" },
    { "a number as an argument", "{\"argv\":[\"a\",1]}", "'argv'" },
    { "a byte that ends texts", "{\"argv\":[\"a\\u0000b\"]}", "not JSON" },
    { "an unknown key", "{\"argv\":[\"a\"],\"shell\":true}", "no key is called 'shell'" },
    { "a key twice", "{\"argv\":[\"a\"],\"argv\":[\"b\"]}", "not JSON" },
    { "a variable with a sign", "{\"argv\":[\"a\"],\"env\":{\"A=B\":\"c\"}}", "without '='" },
    { "a variable without a name", "{\"argv\":[\"a\"],\"env\":{\"\":\"c\"}}", "'env'" },
    { "a variable that is a number", "{\"argv\":[\"a\"],\"env\":{\"A\":1}}", "'A'" },
    { "a directory from somewhere", "{\"argv\":[\"a\"],\"cwd\":\"x\"}", "beginning with '/'" },
    { "an empty log", "{\"argv\":[\"a\"],\"stdout\":\"\"}", "'stdout'" },
    { "a negative user", "{\"argv\":[\"a\"],\"uid\":-1}", "'uid'" },
    { "the user that means none", "{\"argv\":[\"a\"],\"uid\":4294967295}", "'uid'" },
    { "half a retry", "{\"argv\":[\"a\"],\"retries\":0.5}", "'retries'" },
    { "a negative time", "{\"argv\":[\"a\"],\"timeout_s\":-1}", "'timeout_s'" },
    { "more than an hour of grace", "{\"argv\":[\"a\"],\"grace_s\":3601}", "0 to 3600" },
    { "another signal", "{\"argv\":[\"a\"],\"checkpoint_signal\":\"KILL\"}", "'USR1' or 'none'" },
};

EACH(a_command_is_accepted_or_told_why_not, commands)
{
    struct err e = { 0 };
    int rc = command_check(commands[_i].json, &e);

    if (!commands[_i].says) {
        ck_assert_msg(rc == 0, "%s: %s", commands[_i].name, e.text);
        return;
    }
    ck_assert_msg(rc == -EINVAL, "%s", commands[_i].name);
    ck_assert_msg(strstr(e.text, commands[_i].says), "%s: %s", commands[_i].name, e.text);
}

TEST(an_order_reads_back_as_it_was_written)
{
    char *argv[] = { "a", "\x01\n\"", NULL }, *env[] = { "A=b=c", "B=", NULL };
    int gpus[] = { 3, 0 };
    struct launch o = { .job = 7,
                        .run = 2,
                        .submit_s = 1.7e9 + 0.123456789,
                        .secret = "s",
                        .gpus = gpus,
                        .n_gpus = 2,
                        .limit_w = 150,
                        .n_failures = 1,
                        .is_move = true,
                        .finish_after_s = 0.1 };
    struct err e = { 0 };
    struct arena a;
    struct launch got;

    o.command = (struct command){ .argv = argv,
                                  .env = env,
                                  .cwd = "/x",
                                  .out = "o",
                                  .uid = 1,
                                  .gid = 2,
                                  .timeout_s = 0.3,
                                  .retries = 4,
                                  .grace_s = 5,
                                  .checkpoint_signal = SIGUSR1 };
    arena_init(&a);
    const char *text = launch_encode(&a, &o);
    ck_assert_msg(launch_decode(&a, text, strlen(text), &got, &e) == 0, "%s", e.text);
    ck_assert(got.job == 7 && got.run == 2 && got.limit_w == 150 && got.n_failures == 1);
    ck_assert(got.is_move && got.submit_s == o.submit_s && got.finish_after_s == 0.1);
    ck_assert(got.n_gpus == 2 && got.gpus[0] == 3 && got.gpus[1] == 0);
    ck_assert(got.command.n_argv == 2 && got.command.n_env == 2);
    ck_assert_str_eq(got.command.argv[1], argv[1]);
    ck_assert_str_eq(got.command.env[0], env[0]);
    ck_assert_str_eq(launch_encode(&a, &got), text);
    ck_assert_int_eq(launch_decode(&a, text, strlen(text) / 2, &got, &e), -EINVAL);
    ck_assert_int_eq(launch_decode(&a, "{\"argv\":[\"a\"],\"gpus\":[0]}", 26, &got, &e), -EINVAL);
    arena_release(&a);
}

#define BOOT "01234567-89ab-cdef-0123-456789abcdef"
#define TAKEN "taken 10 20 " BOOT "\n"

static const struct {
    const char *name, *text;
    bool is_taken, is_started, is_stopping;
    enum ended ended;
    int code;
    const char *says;
} statuses[] = {
    { "nothing yet", "", 0, 0, 0, ENDED_NOT, 0, "" },
    { "taken", TAKEN, 1, 0, 0, ENDED_NOT, 0, "" },
    { "a torn line does not count", TAKEN "started 11 21 5.", 1, 0, 0, ENDED_NOT, 0, "" },
    { "running", TAKEN "started 11 21 5.5\n", 1, 1, 0, ENDED_NOT, 0, "" },
    { "leaving", TAKEN "started 11 21 5.5\nstopping 6\n", 1, 1, 1, ENDED_NOT, 0, "" },
    { "exit", TAKEN "started 11 21 5.5\nended 7 exit 3\n", 1, 1, 0, ENDED_EXIT, 3, "" },
    { "exit of a program for other GPUs", TAKEN "ended 7 exit 1 no kernel image\n", 1, 0, 0,
      ENDED_EXIT, 1, "no kernel image" },
    { "signal", TAKEN "ended 7 signal 9\n", 1, 0, 0, ENDED_SIGNAL, 9, "" },
    { "timeout", TAKEN "ended 7 timeout\n", 1, 0, 0, ENDED_TIMEOUT, 0, "" },
    { "stopped", TAKEN "ended 7 stopped\n", 1, 0, 0, ENDED_STOPPED, 0, "" },
    { "served", TAKEN "ended 7 served\n", 1, 0, 0, ENDED_SERVED, 0, "" },
    { "failed", TAKEN "ended 7 failed no way: at all\n", 1, 0, 0, ENDED_FAILED, 0,
      "no way: at all" },
    { "the last end counts: what comes before it was torn",
      TAKEN "ended 7 exit 1\nended 7 exit 13\n", 1, 0, 0, ENDED_EXIT, 13, "" },
    { "an end without a word is none",
      TAKEN "ended 7\nended x exit 0\nended 7 exit\n"
            "ended 7 exit 256\nended 7 slept\n",
      1, 0, 0, ENDED_NOT, 0, "" },
    { "nor is a taking without a boot", "taken 10 20\ntaken 0 20 " BOOT "\ntaken 1 -1 " BOOT "\n",
      0, 0, 0, ENDED_NOT, 0, "" },
    { "unknown lines are passed over", "\n\n \nhello\n" TAKEN, 1, 0, 0, ENDED_NOT, 0, "" },
};

static const struct {
    const char *name;
    struct status is;
    bool is_incapable, is_bad;
} judged[] = {
    { "it runs", { .ended = ENDED_NOT }, false, false },
    { "all is well", { .ended = ENDED_EXIT }, false, false },
    { "well in spite of what it said", { .ended = ENDED_EXIT, .text = "x" }, false, false },
    { "a failure", { .ended = ENDED_EXIT, .code = 1 }, false, true },
    { "a crash", { .ended = ENDED_SIGNAL, .code = 11 }, false, true },
    { "not built for it", { .ended = ENDED_EXIT, .code = 1, .text = "x" }, true, false },
    { "not built for it, by abort",
      { .ended = ENDED_SIGNAL, .code = 6, .text = "x" },
      true,
      false },
    { "could not be run", { .ended = ENDED_FAILED, .text = "x" }, false, true },
    { "too long", { .ended = ENDED_TIMEOUT }, false, true },
    { "stopped", { .ended = ENDED_STOPPED, .text = "x" }, false, false },
};

EACH(who_was_not_built_for_a_gpu_has_not_failed, judged)
{
    ck_assert_msg(status_is_incapable(&judged[_i].is) == judged[_i].is_incapable &&
                      status_is_bad(&judged[_i].is) == judged[_i].is_bad,
                  "%s", judged[_i].name);
}

static const struct {
    const char *said, *want;    // NULL: nothing
} words[] = {
    { "RuntimeError: CUDA error: no kernel image is available for execution on the device\nCUDA",
      "no kernel image" },
    { "UserWarning: Tesla K80 with CUDA capability sm_37 is not compatible with the current "
      "PyTorch installation.\nRuntimeError: shapes do not match",
      NULL },
    { "CUDA driver version is insufficient for CUDA runtime version", "driver version" },
    { "hipErrorNoBinaryForGpu: Unable to find code object", "hipErrorNoBinaryForGpu" },
    { "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB", NULL },
    { "Segmentation fault", NULL },
    { "", NULL },
};

EACH(a_program_says_that_it_was_not_built_for_a_gpu, words)
{
    const char *why = status_incapable_words(words[_i].said, strlen(words[_i].said));

    ck_assert_msg(words[_i].want ? why && strstr(why, words[_i].want) : !why, "%s", words[_i].said);
}

EACH(a_status_is_what_its_whole_lines_say, statuses)
{
    struct status s;

    status_parse(statuses[_i].text, strlen(statuses[_i].text), &s);
    ck_assert_msg(s.is_taken == statuses[_i].is_taken && s.is_started == statuses[_i].is_started &&
                      s.is_stopping == statuses[_i].is_stopping && s.ended == statuses[_i].ended &&
                      s.code == statuses[_i].code && strcmp(s.text, statuses[_i].says) == 0,
                  "%s", statuses[_i].name);
    if (s.is_taken)
        ck_assert(s.keeper_pid == 10 && s.keeper_start == 20 && strcmp(s.boot, BOOT) == 0);
    if (s.is_started)
        ck_assert(s.pid == 11 && s.start == 21 && s.started_s == 5.5);
}
