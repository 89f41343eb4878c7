/* Lines of words and key=value, well and badly formed. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/words.h"
#include "unit/suite.h"
#include "unit/texts.h"

/* Everything that was read, as "line:[word][key=value]", or the error. */
static const char *digest(struct arena *a, const char *text, size_t len)
{
    struct err e = { 0 };
    struct words w;
    struct buf b;
    int rc;

    buf_init(&b, 65536);
    words_open(&w, a, "f", text, len);
    while ((rc = words_next(&w, &e)) > 0) {
        buf_printf(&b, "%d:", w.line);
        for (int i = 0; i < w.n; i++) {
            const struct word *x = &w.word[i];

            if (x->key.at != NULL)
                buf_printf(&b, "[%.*s=%.*s]", (int)x->key.len, x->key.at, (int)x->value.len,
                           x->value.at);
            else
                buf_printf(&b, "[%.*s]", (int)x->value.len, x->value.at);
        }
    }
    if (rc < 0)
        buf_printf(&b, "! %s", e.text);
    return text_taken(a, &b);
}

static const struct text_row cases[] = {
    { "blanks part words", "a b\tc\n", "1:[a][b][c]" },
    { "comments and empty lines are skipped and counted", "# x\n\n  a # b\nc", "3:[a]4:[c]" },
    { "a hash inside a word is data", "a#b c=#d\n", "1:[a#b][c=#d]" },
    { "a key ends at the first '='", "k=v=w\n", "1:[k=v=w]" },
    { "a value may be empty", "k= x\n", "1:[k=][x]" },
    { "a word that begins with '=' has no key", "=x\n", "1:[=x]" },
    { "quotes keep blanks, '=' and '#'", "k=\"a b\" \"c=d # e\"\n", "1:[k=a b][c=d # e]" },
    { "quotes and backslashes are escaped", "\"a\\\"b\\\\c\\d\"\n", "1:[a\"b\\c\\d]" },
    { "CRLF is a line end", "a\r\nb\r\n", "1:[a]2:[b]" },
    { "an open quote is an error", "a\n\"b\n",
      "1:[a]! f:2: a quote is opened and not closed: add '\"'" },
    { "a quote does not span lines", "k=\"a\nb\"\n",
      "! f:1: a quote is opened and not closed: add '\"'" },
    { "text behind a quote is an error", "\"a\"b\n",
      "! f:1: text follows a closing quote: put a blank between" },
};

EACH(reading, cases)
{
    struct arena a;

    arena_init(&a);
    text_row_check(&cases[_i], digest(&a, cases[_i].given, strlen(cases[_i].given)));
    arena_release(&a);
}

TEST(too_many_words_are_an_error)
{
    char line[WORDS_MAX * 2 + 3];
    struct arena a;

    arena_init(&a);
    for (int i = 0; i <= WORDS_MAX; i++)
        memcpy(line + 2 * i, "a ", 2);
    ck_assert(strstr(digest(&a, line, 2 * WORDS_MAX), "!") == NULL);
    ck_assert(strstr(digest(&a, line, 2 * WORDS_MAX + 2), "more than 64 words") != NULL);
    arena_release(&a);
}

TEST(what_is_put_is_read_back)
{
    static const char *const values[] = { "a",  "a b",        "",      "a=b",
                                          "#a", "say \"hi\"", "c:\\d", "\xc3\xa9" };
    struct arena a;
    struct err e;

    arena_init(&a);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct words w;
        struct buf b;

        buf_init(&b, 1000);
        ck_assert_int_eq(words_put(&b, values[i]), 0);
        words_open(&w, &a, "f", buf_text(&b), b.len);
        ck_assert_int_eq(words_next(&w, &e), 1);
        ck_assert_int_eq(w.n, 1);
        ck_assert_ptr_null(w.word[0].key.at);
        ck_assert_msg(slice_is(w.word[0].value, values[i]), "%s", values[i]);
        buf_release(&b);
    }
    arena_release(&a);
}

TEST(numbers_read_back_in_few_digits)
{
    static const double numbers[] = { 0, 1, 0.1, 1e300, 1.0 / 3, 60.5, 123456789.123, 5e-324 };
    struct buf b;

    buf_init(&b, 100);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        buf_clear(&b);
        words_put_number(&b, numbers[i]);
        ck_assert(strtod(buf_text(&b), NULL) == numbers[i]);
    }
    buf_clear(&b);
    words_put_number(&b, 0.1);
    ck_assert_str_eq(buf_text(&b), "0.1");
    buf_clear(&b);
    words_put_number(&b, 10024890);
    ck_assert_str_eq(buf_text(&b), "10024890");
    buf_release(&b);
}

TEST(a_quoted_word_takes_no_more_memory_than_it_has_letters)
{
    struct arena a;
    struct err e = { 0 };
    struct words w;
    size_t len = 1 << 20;
    char *text = malloc(len);

    ck_assert_ptr_nonnull(text);
    memset(text, ' ', len);
    for (int i = 0; i < 60; i++)
        memcpy(text + 4 * i, "\"a\"", 3);
    arena_init(&a);
    words_open(&w, &a, "f", text, len);
    ck_assert_int_eq(words_next(&w, &e), 1);
    ck_assert_int_eq(w.n, 60);
    ck_assert_uint_lt(a.used, 4096);
    arena_release(&a);
    free(text);
}
