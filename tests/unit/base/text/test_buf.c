/* Bytes with a ceiling. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/buf.h"
#include "unit/suite.h"

TEST(an_empty_buffer_reads_as_an_empty_string)
{
    struct buf b;

    buf_init(&b, 10);
    ck_assert_str_eq(buf_text(&b), "");
    buf_clear(&b);
    buf_release(&b);
    ck_assert_str_eq(buf_text(&b), "");
}

TEST(the_ceiling_holds_and_a_refusal_changes_nothing)
{
    struct buf b;

    buf_init(&b, 5);
    ck_assert_int_eq(buf_puts(&b, "abc"), 0);
    ck_assert_int_eq(buf_puts(&b, "def"), -ENOSPC);
    ck_assert_str_eq(buf_text(&b), "abc");
    ck_assert_int_eq(buf_printf(&b, "%d", 123), -ENOSPC);
    ck_assert_str_eq(buf_text(&b), "abc");
    ck_assert_int_eq(buf_printf(&b, "%d", 12), 0);
    ck_assert_str_eq(buf_text(&b), "abc12");
    ck_assert_int_eq(buf_append(&b, "x", 1), -ENOSPC);
    ck_assert_int_eq(buf_append(&b, "x", (size_t)-1), -ENOSPC);
    ck_assert_int_eq(buf_append(&b, NULL, 0), 0);
    ck_assert_uint_eq(b.len, 5);
    buf_release(&b);
}

TEST(nothing_fits_under_a_ceiling_of_zero)
{
    struct buf b;

    buf_init(&b, 0);
    ck_assert_int_eq(buf_puts(&b, ""), 0);
    ck_assert_int_eq(buf_puts(&b, "a"), -ENOSPC);
    ck_assert_str_eq(buf_text(&b), "");
    buf_release(&b);
}

TEST(it_grows_and_stays_terminated)
{
    bool is_good = true;
    struct buf b;

    buf_init(&b, 1 << 20);
    for (int i = 0; i < 100000; i++) {
        is_good &= (i % 2 ? buf_append(&b, "x", 1) : buf_printf(&b, "%c", 'y')) == 0;
        is_good &= b.data[b.len] == '\0';
    }
    ck_assert(is_good);
    ck_assert_uint_eq(b.len, 100000);
    ck_assert_int_eq(strncmp(buf_text(&b), "yxyx", 4), 0);
    buf_clear(&b);
    ck_assert_uint_eq(b.len, 0);
    ck_assert_str_eq(buf_text(&b), "");
    buf_release(&b);
}

TEST(bytes_may_be_any)
{
    struct buf b;

    buf_init(&b, 10);
    ck_assert_int_eq(buf_append(&b, "a\0b", 3), 0);
    ck_assert_uint_eq(b.len, 3);
    ck_assert_int_eq(memcmp(b.data, "a\0b", 4), 0);
    buf_release(&b);
}
