/* Files of requests: what they say, where they are looked for, and what is wrong with them. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text/buf.h"
#include "base/text/file.h"
#include "serve/continuous.h"
#include "sim/trace/arrivals.h"
#include "sim/trace/trace.h"
#include "unit/suite.h"
#include "unit/texts.h"

#define WRONG                                                                           \
    "want a time in seconds, not before the one above it, alone or with the tokens of " \
    "prompt and answer: '12.5 900 120'"

static const struct {
    const char *name, *given;
    double end_s;
    const char *want;
} files[] = {
    { "times alone", "0\n0.5\n\n2e1\n", NAN, "10:2048/256 10.5:2048/256 30:2048/256 until 30" },
    { "lengths of prompts and answers", "1 900 120\n3 1 1", NAN, "11:900/120 13:1/1 until 13" },
    { "the line's end comes before", "1 9 9\n3\n", 12.5, "11:9/9 until 12.5" },
    { "the line's end comes after", "1 9 9\n", 99, "11:9/9 until 11" },
    { "nothing", "", NAN, "until 10" },
    { "half of the lengths", "1\n2 9\n", NAN, "! 2: " WRONG },
    { "an answer without a token", "1 9 0\n", NAN, "! 1: " WRONG },
    { "too many words", "1 9 9 9\n", NAN, "! 1: " WRONG },
    { "back in time", "5\n4\n", NAN, "! 2: " WRONG },
    { "no time", "soon 1 2\n", NAN, "! 1: " WRONG },
};

EACH(requests_of_a_file, files)
{
    char dir[] = "/tmp/gogh-arrivals.XXXXXX";
    struct trace_service s = { .at_s = 10, .end_s = files[_i].end_s, .arrivals = "requests" };
    struct service_arrivals *r;
    struct llm_request q[2];
    struct arena a;
    struct buf b;
    struct err e;

    arena_init(&a);
    buf_init(&b, 4096);
    ck_assert_ptr_nonnull(mkdtemp(dir));
    const char *path = arena_printf(&a, "%s/requests", dir);
    ck_assert_int_eq(file_write(path, files[_i].given, strlen(files[_i].given), &e), 0);
    if (service_arrivals_open(&a, arena_printf(&a, "%s/t.trace", dir), &s, &r, &e) < 0) {
        ck_assert_int_eq(strncmp(e.text, path, strlen(path)), 0);
        buf_printf(&b, "! %s", e.text + strlen(path) + 1);
    } else {
        for (int n; (n = service_arrivals_next(r, q, 2)) > 0;)
            for (int i = 0; i < n; i++)
                buf_printf(&b, "%g:%d/%d ", q[i].at_s, q[i].prompt, q[i].output);
        buf_printf(&b, "until %g", service_arrivals_end_s(r));
    }
    unlink(path);
    rmdir(dir);
    const char *got = text_taken(&a, &b);
    ck_assert_msg(strcmp(got, files[_i].want) == 0, "%s: got %s", files[_i].name, got);
    arena_release(&a);
}

TEST(a_path_in_full_is_taken_as_it_is)
{
    struct trace_service s = { .end_s = NAN, .arrivals = "/nowhere/requests" };
    struct service_arrivals *r;
    struct arena a;
    struct err e;

    arena_init(&a);
    ck_assert_int_lt(service_arrivals_open(&a, "/some/t.trace", &s, &r, &e), 0);
    ck_assert_ptr_nonnull(strstr(e.text, "/nowhere/requests"));
    arena_release(&a);
}
