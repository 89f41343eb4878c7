/* Failures with a code and a sentence. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "unit/suite.h"

TEST(an_error_carries_its_code_and_its_sentence)
{
    struct err e = { 0 };

    ck_assert_int_eq(err_set(&e, EINVAL, "line %d: want a number", 3), -EINVAL);
    ck_assert_int_eq(e.code, EINVAL);
    ck_assert_str_eq(e.text, "line 3: want a number");
}

TEST(nobody_has_to_listen)
{
    ck_assert_int_eq(err_set(NULL, ENOENT, "gone"), -ENOENT);
}

TEST(context_goes_in_front_and_the_code_stays)
{
    struct err e;

    err_set(&e, EFBIG, "too big");
    ck_assert_int_eq(err_prefix(&e, "file %s", "a"), -EFBIG);
    ck_assert_int_eq(err_prefix(&e, "import"), -EFBIG);
    ck_assert_str_eq(e.text, "import: file a: too big");
}

TEST(a_long_text_loses_its_tail_and_never_the_context)
{
    char lots[2000];
    struct err e;

    memset(lots, 'x', sizeof lots - 1);
    lots[sizeof lots - 1] = '\0';
    err_set(&e, EINVAL, "%s", lots);
    ck_assert_uint_eq(strlen(e.text), sizeof e.text - 1);
    err_prefix(&e, "here");
    ck_assert_uint_eq(strlen(e.text), sizeof e.text - 1);
    ck_assert_int_eq(strncmp(e.text, "here: xxx", 9), 0);
    err_prefix(&e, "%s", lots);
    ck_assert_uint_eq(strlen(e.text), sizeof e.text - 1);
    ck_assert_int_eq(e.text[0], 'x');
}
