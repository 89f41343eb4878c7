/* The lines between the daemon and the Slurm driver: written, read back, and what is refused. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "act/driver/wire.h"
#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "unit/suite.h"

TEST(a_message_reads_back_as_it_was_written)
{
    static const char *const values[] = {
        "", "plain", "a=b", "100%", "tab\tfeed\n\x1f\x7f", "\xc3\xa9\xff", "%41"
    };
    const int n = sizeof values / sizeof *values;
    struct wire_message m;
    struct err e = { 0 };
    struct arena a;
    struct buf b;

    arena_init(&a);
    buf_init(&b, WIRE_LINE_MAX);
    wire_begin(&b, 18446744073709551, "job");
    for (int i = 0; i < n; i++)
        wire_put(&b, "value", values[i]);
    wire_put(&b, "absent", NULL);
    wire_put_long(&b, "number", -7);
    wire_put(&b, "real", "0.1");
    wire_end(&b);
    ck_assert(memchr(b.data, '\n', b.len) == b.data + b.len - 1);
    ck_assert_int_eq(wire_read(&a, b.data, b.len - 1, &m, &e), 0);
    ck_assert_uint_eq(m.seq, 18446744073709551);
    ck_assert_str_eq(m.verb, "job");
    ck_assert_int_eq(m.n_pairs, n + 2);
    for (int i = 0; i < n; i++)
        ck_assert_str_eq(m.pairs[i].value, values[i]);
    ck_assert_int_eq(wire_get_long(&m, "number", 0), -7);
    ck_assert(wire_get_double(&m, "real") == 0.1);
    ck_assert(!wire_get(&m, "absent") && isnan(wire_get_double(&m, "none")));
    ck_assert_int_eq(wire_get_long(&m, "value", 5), 5);
    buf_release(&b);
    arena_release(&a);
}

static const struct {
    const char *name, *line, *says;    // says NULL: accepted
} lines[] = {
    { "a verb is enough", "1 done", NULL },
    { "a key without a value", "1 x\ta=", NULL },
    { "a value with a sign", "1 x\ta==", NULL },
    { "nothing", "", "number" },
    { "no number", "done", "number" },
    { "a negative number", "-1 done", "number" },
    { "a number that is too long", "18446744073709551616 done", "number" },
    { "no verb", "1 ", "second word" },
    { "a verb in capitals", "1 Done", "second word" },
    { "two blanks", "1  done", "second word" },
    { "no sign", "1 x\ta", "key=value" },
    { "no key", "1 x\t=a", "key=value" },
    { "a key in capitals", "1 x\tA=b", "key=value" },
    { "an empty pair", "1 x\t", "key=value" },
    { "a byte that is not escaped", "1 x\ta=\x1f", "%XX" },
    { "a carriage return", "1 x\ta=b\r", "%XX" },
    { "half an escape", "1 x\ta=%4", "%XX" },
    { "an escape in small letters", "1 x\ta=%1f", "%XX" },
    { "an escaped NUL", "1 x\ta=%00", "%XX" },
};

EACH(a_line_is_accepted_or_told_why_not, lines)
{
    struct wire_message m;
    struct err e = { 0 };
    struct arena a;
    char *line = strdup(lines[_i].line);
    int rc;

    arena_init(&a);
    rc = wire_read(&a, line, strlen(line), &m, &e);
    if (lines[_i].says)
        ck_assert_msg(rc == -EINVAL && strstr(e.text, lines[_i].says), "%s: %d %s", lines[_i].name,
                      rc, e.text);
    else
        ck_assert_msg(rc == 0, "%s: %s", lines[_i].name, e.text);
    free(line);
    arena_release(&a);
}

TEST(a_line_that_is_too_long_or_has_too_many_keys_is_refused)
{
    struct wire_message m;
    struct err e = { 0 };
    struct arena a;
    char *line = malloc(WIRE_LINE_MAX + 1);
    size_t n;

    arena_init(&a);
    memset(line, 'a', WIRE_LINE_MAX);
    memcpy(line, "1 x\ta=", 6);
    ck_assert_int_eq(wire_read(&a, line, WIRE_LINE_MAX, &m, &e), -EINVAL);
    ck_assert_int_eq(wire_read(&a, line, WIRE_LINE_MAX - 1, &m, &e), 0);
    for (n = 3; n < 3 + 3 * (WIRE_KEYS_MAX + 1); n += 3)
        memcpy(line + n, "\ta=", 3);
    memcpy(line, "1 x", 3);
    ck_assert_int_eq(wire_read(&a, line, n, &m, &e), -EINVAL);
    memcpy(line, "1 x", 3);
    ck_assert(strstr(e.text, "keys"));
    free(line);
    arena_release(&a);
}
