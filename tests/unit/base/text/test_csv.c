/* Comma-separated values, well and badly formed. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/text/csv.h"
#include "base/err.h"
#include "unit/suite.h"
#include "unit/texts.h"

/* Everything that was read, as "[field|field]@line", or the error. */
static const char *digest(struct arena *a, const char *text, size_t len)
{
    struct err e = { 0 };
    struct buf b;
    struct csv c;
    int rc;

    buf_init(&b, 4096);
    rc = csv_open(&c, a, "f.csv", text, len, &e);
    while (rc == 0 && (rc = csv_next(&c, &e)) == 1) {
        for (int i = 0; i < c.n_columns; i++)
            buf_printf(&b, "%c%.*s", i == 0 ? '[' : '|', (int)c.field[i].len, c.field[i].at);
        buf_printf(&b, "]@%d ", c.line);
        rc = 0;
    }
    if (rc < 0) {
        ck_assert_int_eq(rc, -EINVAL);
        buf_printf(&b, "! %s", e.text);
    }
    return text_taken(a, &b);
}

static const struct text_row cases[] = {
    { "a record is read by line", "a,b\n1,2\n3,4\n", "[1|2]@2 [3|4]@3 " },
    { "the last line needs no end", "a,b\n1,2", "[1|2]@2 " },
    { "CRLF is a line end", "a,b\r\n1,2\r\n", "[1|2]@2 " },
    { "CR at the very end is one too", "a,b\r\n1,2\r", "[1|2]@2 " },
    { "a header alone has no records", "a,b\n", "" },
    { "comments and blank lines are skipped and counted",
      "# top\n\na,b\n # no comment,x\n#c\n  \t \n\r\n1,2\n#end", "[# no comment|x]@4 [1|2]@8 " },
    { "a hash inside a field is data", "a,b\n1,#2\n", "[1|#2]@2 " },
    { "a quoted hash begins a record", "a,b\n\"#1\",2\n", "[#1|2]@2 " },
    { "quotes hide commas", "a,b\n\"1,5\",2\n", "[1,5|2]@2 " },
    { "doubled quotes are one", "a,b\n\"say \"\"hi\"\"\",\"\"\"\"\n", "[say \"hi\"|\"]@2 " },
    { "quoted line ends are data and counted", "a,b\n\"x\ny\",2\n3,4\n", "[x\ny|2]@2 [3|4]@4 " },
    { "blanks around plain fields are dropped", "a , b\n 1\t, 2 3 \n", "[1|2 3]@2 " },
    { "blanks inside quotes stay, outside go", "a,b\n \" 1 \" ,2\n", "[ 1 |2]@2 " },
    { "fields may be empty", "a,b\n,\n\"\",\n", "[|]@2 [|]@3 " },
    { "a single column may be quoted empty", "a\n\"\"\nx\n", "[]@2 [x]@3 " },
    { "a quote may close at the very end", "a,b\n1,\"2\"", "[1|2]@2 " },
    { "no header", "", "! f.csv: empty; the first line must name the columns" },
    { "no header but comments", "# x\n\n", "! f.csv: empty; the first line must name the columns" },
    { "a column twice", "a,b,a\n", "! f.csv:1: column 'a' is there twice; remove one" },
    { "a column without a name", "a,,b\n",
      "! f.csv:1: column 2 has no name; name it or remove it" },
    { "too few fields", "a,b\n1,2\n3\n",
      "[1|2]@2 ! f.csv:3: 1 fields, and the header names 2; quote commas in text" },
    { "too many fields", "a,b\n1,2,\n",
      "! f.csv:2: 3 fields, and the header names 2; quote commas in text" },
    { "an unclosed quote names the line it began on", "a,b\n1,\"2\n3,4\n",
      "! f.csv:2: a quote is never closed; end the field with '\"'" },
    { "an unclosed quote after a doubled one", "a\n\"x\"\"",
      "! f.csv:2: a quote is never closed; end the field with '\"'" },
    { "text after a closing quote", "a,b\n\"1\"x,2\n",
      "! f.csv:2: text after a closing quote; inside a field write a quote as '\"\"'" },
    { "a quote in a plain field", "a,b\n1\"x,2\n",
      "! f.csv:2: a quote inside a field; put the whole field in quotes" },
};

TEST(the_table_is_the_format)
{
    struct arena a;

    arena_init(&a);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const size_t len = strlen(cases[i].given);
        char *exact = malloc(len > 0 ? len : 1);    // unterminated: a read past the end is seen
        const char *got;

        ck_assert_ptr_nonnull(exact);
        memcpy(exact, cases[i].given, len);
        got = digest(&a, exact, len);
        free(exact);
        text_row_check(&cases[i], got);
    }
    arena_release(&a);
}

TEST(a_table_may_be_64_columns_wide_and_no_wider)
{
    struct arena a;
    struct buf b;
    struct csv c;
    struct err e;

    arena_init(&a);
    buf_init(&b, 4096);
    for (int i = 0; i < CSV_COLUMNS_MAX; i++)
        buf_printf(&b, "%sc%d", i > 0 ? "," : "", i);
    ck_assert_int_eq(csv_open(&c, &a, "f", b.data, b.len, &e), 0);
    ck_assert_int_eq(c.n_columns, CSV_COLUMNS_MAX);
    ck_assert_int_eq(csv_column(&c, "c63"), 63);
    buf_puts(&b, ",one");
    ck_assert_int_eq(csv_open(&c, &a, "f", b.data, b.len, &e), -EINVAL);
    ck_assert_str_eq(e.text, "f:1: 65 columns; at most 64 are read");
    buf_release(&b);
    arena_release(&a);
}

TEST(columns_are_found_by_name)
{
    static const char text[] = "gpu,\"watts\"\n";
    struct arena a;
    struct csv c;
    struct err e;
    int column;

    arena_init(&a);
    ck_assert_int_eq(csv_open(&c, &a, "p.csv", text, sizeof text - 1, &e), 0);
    ck_assert_int_eq(csv_column(&c, "watts"), 1);
    ck_assert_int_eq(csv_column(&c, "Watts"), -1);
    ck_assert_int_eq(csv_require(&c, "gpu", &column, &e), 0);
    ck_assert_int_eq(column, 0);
    ck_assert_int_eq(csv_require(&c, "batch", &column, &e), -EINVAL);
    ck_assert_str_eq(e.text, "p.csv: no column 'batch'; add it to the header");
    arena_release(&a);
}

TEST(numbers_are_whole_and_finite_or_named)
{
    static const char text[] = "gpu,watts\nv100,2.5e2\nv100,\nv100,fast\nv100,1e999\n";
    struct arena a;
    struct csv c;
    struct err e;
    double v = 0;

    arena_init(&a);
    ck_assert_int_eq(csv_open(&c, &a, "p.csv", text, sizeof text - 1, &e), 0);
    ck_assert_int_eq(csv_next(&c, &e), 1);
    ck_assert_int_eq(csv_number(&c, 1, false, &v, &e), 0);
    ck_assert_double_eq(v, 250);
    ck_assert_int_eq(csv_next(&c, &e), 1);
    ck_assert_int_eq(csv_number(&c, 1, true, &v, &e), 0);
    ck_assert(isnan(v));
    ck_assert_int_eq(csv_number(&c, 1, false, &v, &e), -EINVAL);
    ck_assert_str_eq(e.text, "p.csv:3: column 'watts': want a number, got ''");
    ck_assert_int_eq(csv_next(&c, &e), 1);
    ck_assert_int_eq(csv_number(&c, 1, true, &v, &e), -EINVAL);
    ck_assert_str_eq(e.text, "p.csv:4: column 'watts': want a number, got 'fast'");
    ck_assert_int_eq(csv_next(&c, &e), 1);
    ck_assert_int_eq(csv_number(&c, 1, true, &v, &e), -EINVAL);
    ck_assert_str_eq(e.text, "p.csv:5: column 'watts': '1e999' is too large a number");
    ck_assert_int_eq(csv_next(&c, &e), 0);
    ck_assert_int_eq(csv_next(&c, &e), 0);
    arena_release(&a);
}
