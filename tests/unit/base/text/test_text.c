/* Strict reading of small pieces of text. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"
#include "unit/suite.h"

TEST(a_double_is_a_whole_finite_decimal)
{
    static const struct {
        const char *given;
        int rc;
        double want;
    } cases[] = {
        { "0", 0, 0 },
        { "1e9", 0, 1e9 },
        { "-0.5", 0, -0.5 },
        { "+3", 0, 3 },
        { ".5", 0, 0.5 },
        { "5.", 0, 5 },
        { "1E-3", 0, 0.001 },
        { "0.1", 0, 0.1 },
        { "1.7976931348623157e308", 0, 1.7976931348623157e308 },
        { "1e-400", 0, 0 },
        { "1e309", -ERANGE, 0 },
        { "-1e309", -ERANGE, 0 },
        { "", -EINVAL, 0 },
        { "-", -EINVAL, 0 },
        { ".", -EINVAL, 0 },
        { "e5", -EINVAL, 0 },
        { "1e", -EINVAL, 0 },
        { "1e+", -EINVAL, 0 },
        { "1e5.0", -EINVAL, 0 },
        { "--1", -EINVAL, 0 },
        { " 1", -EINVAL, 0 },
        { "1 ", -EINVAL, 0 },
        { "1,5", -EINVAL, 0 },
        { "1_000", -EINVAL, 0 },
        { "0x10", -EINVAL, 0 },
        { "nan", -EINVAL, 0 },
        { "inf", -EINVAL, 0 },
        { "12V", -EINVAL, 0 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double got = 0;
        int rc = text_to_double(slice_of(cases[i].given), &got);

        ck_assert_msg(rc == cases[i].rc && got == cases[i].want, "'%s': rc %d, %g", cases[i].given,
                      rc, got);
    }
}

TEST(a_number_ends_where_its_slice_ends)
{
    char many[200];
    double v = 0;
    long n = 0;

    ck_assert_int_eq(text_to_double((struct slice){ "12345", 2 }, &v), 0);
    ck_assert_double_eq(v, 12);
    ck_assert_int_eq(text_to_long((struct slice){ "12345", 3 }, 0, 999, &n), 0);
    ck_assert_int_eq(n, 123);
    ck_assert_int_eq(text_to_double((struct slice){ "1\0002", 3 }, &v), -EINVAL);
    memset(many, '1', sizeof many);
    ck_assert_int_eq(text_to_double((struct slice){ many, sizeof many }, &v), -EINVAL);
    ck_assert_int_eq(text_to_long((struct slice){ many, sizeof many }, 0, 9, &n), -ERANGE);
}

TEST(a_long_is_a_whole_integer_within_bounds)
{
    static const struct {
        const char *given;
        long low, high;
        int rc;
        long want;
    } cases[] = {
        { "0", 0, 10, 0, 0 },
        { "10", 0, 10, 0, 10 },
        { "11", 0, 10, -ERANGE, 0 },
        { "-1", 0, 10, -ERANGE, 0 },
        { "-5", -5, 5, 0, -5 },
        { "+5", -5, 5, 0, 5 },
        { "007", 0, 10, 0, 7 },
        { "9223372036854775807", LONG_MIN, LONG_MAX, 0, LONG_MAX },
        { "9223372036854775808", LONG_MIN, LONG_MAX, -ERANGE, 0 },
        { "-9223372036854775808", LONG_MIN, LONG_MAX, 0, LONG_MIN },
        { "-9223372036854775809", LONG_MIN, LONG_MAX, -ERANGE, 0 },
        { "99999999999999999999999", LONG_MIN, LONG_MAX, -ERANGE, 0 },
        { "", 0, 10, -EINVAL, 0 },
        { "-", 0, 10, -EINVAL, 0 },
        { "1.0", 0, 10, -EINVAL, 0 },
        { "1e1", 0, 10, -EINVAL, 0 },
        { "0x1", 0, 10, -EINVAL, 0 },
        { " 1", 0, 10, -EINVAL, 0 },
        { "99999999999999999999x", 0, 10, -EINVAL, 0 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        long got = 0;
        int rc = text_to_long(slice_of(cases[i].given), cases[i].low, cases[i].high, &got);

        ck_assert_msg(rc == cases[i].rc && got == cases[i].want, "'%s': rc %d, %ld", cases[i].given,
                      rc, got);
    }
}

TEST(utf8_is_what_unicode_says)
{
    static const struct {
        const char *name, *given;
        size_t len;
        bool want;
        size_t bad;
    } cases[] = {
        { "nothing is fine", "", 0, true, 0 },
        { "ASCII is fine", "abc\t\n", 5, true, 0 },
        { "a NUL is not text", "ab\0c", 4, false, 2 },
        { "two bytes", "\xc3\xa9", 2, true, 0 },
        { "three bytes", "\xe2\x82\xac", 3, true, 0 },
        { "four bytes", "\xf0\x9f\x98\x80", 4, true, 0 },
        { "the last character", "\xf4\x8f\xbf\xbf", 4, true, 0 },
        { "past the last character", "\xf4\x90\x80\x80", 4, false, 0 },
        { "a lead byte that never occurs", "a\xf5\x80\x80\x80", 5, false, 1 },
        { "a lone continuation", "a\x80", 2, false, 1 },
        { "an overlong slash", "\xc0\xaf", 2, false, 0 },
        { "an overlong two-byte form", "\xc1\xbf", 2, false, 0 },
        { "an overlong three-byte form", "\xe0\x9f\xbf", 3, false, 0 },
        { "an overlong four-byte form", "\xf0\x8f\xbf\xbf", 4, false, 0 },
        { "the last before the surrogates", "\xed\x9f\xbf", 3, true, 0 },
        { "a surrogate", "\xed\xa0\x80", 3, false, 0 },
        { "the first after the surrogates", "\xee\x80\x80", 3, true, 0 },
        { "cut after the lead byte", "ab\xe2", 3, false, 2 },
        { "cut before the last byte", "ab\xe2\x82", 4, false, 2 },
        { "a sequence broken by ASCII", "\xe2\x82z", 3, false, 0 },
        { "Latin-1", "caf\xe9 au lait", 12, false, 3 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t bad = 0;
        char *exact = malloc(cases[i].len + 1);    // a read past the end is seen
        bool got;

        ck_assert_ptr_nonnull(exact);
        memcpy(exact + 1, cases[i].given, cases[i].len);
        got = text_is_utf8(exact + 1, cases[i].len, &bad);
        ck_assert_msg(got == cases[i].want && bad == cases[i].bad, "%s: %d at %zu", cases[i].name,
                      got, bad);
        ck_assert(text_is_utf8(exact + 1, cases[i].len, NULL) == cases[i].want);
        free(exact);
    }
}

TEST(a_name_is_short_printable_and_not_blank_at_its_ends)
{
    static const struct {
        const char *given;
        bool want;
    } cases[] = {
        { "a100-80", true },   { "RTX 2080 Ti", true }, { "\xc3\xa9tude", true },
        { "", false },         { " a", false },         { "a ", false },
        { "a\tb", false },     { "a\nb", false },       { "a\x7f", false },
        { "a\x1b[0m", false }, { "a\xc2\x85z", false }, { "a\xc2\xa0z", true },
        { "\xff", false },     { "a\xc2", false },
    };
    char longest[201];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_msg(text_is_name(slice_of(cases[i].given)) == cases[i].want, "case %zu '%s'", i,
                      cases[i].given);
    memset(longest, 'x', sizeof longest);
    ck_assert(text_is_name((struct slice){ longest, 200 }));
    ck_assert(!text_is_name((struct slice){ longest, 201 }));
}

TEST(names_are_alike_but_for_case_dashes_and_blanks)
{
    static const struct {
        const char *a, *b;
        bool want;
    } cases[] = {
        { "RTX 2080 Ti", "rtx-2080ti", true },
        { "", "", true },
        { "", " -_", true },
        { "v100", "V100", true },
        { "v100", "v1000", false },
        { "v100", "v10", false },
        { "a_b_c", "A-B C", true },
        { "a-", "a", true },
        { "a.b", "ab", false },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_msg(text_alike(cases[i].a, cases[i].b) == cases[i].want, "'%s' '%s'", cases[i].a,
                      cases[i].b);
        ck_assert(text_alike(cases[i].b, cases[i].a) == cases[i].want);
    }
}

TEST(slices_compare_and_trim)
{
    ck_assert(slice_is(slice_of("abc"), "abc"));
    ck_assert(!slice_is(slice_of("abc"), "ab"));
    ck_assert(!slice_is(slice_of("ab"), "abc"));
    ck_assert(slice_is((struct slice){ NULL, 0 }, ""));
    ck_assert(slice_is(slice_trim(slice_of(" \t a b\r\n")), "a b"));
    ck_assert(slice_is(slice_trim(slice_of(" \t ")), ""));
    ck_assert(slice_is(slice_trim(slice_of("")), ""));
}

static const struct {
    const char *a, *b;
    int want;
} distances[] = {
    { "", "", 0 },        { "v100", "V100", 0 }, { "v10O", "v100", 1 },
    { "", "k80", 3 },     { "k80", "", 3 },      { "p100", "v100", 1 },
    { "a40", "a400", 1 }, { "h100", "100", 1 },  { "kitten", "sitting", 3 },
};

EACH(the_distance_counts_letters_to_change, distances)
{
    ck_assert_int_eq(text_distance(distances[_i].a, distances[_i].b), distances[_i].want);
    ck_assert_int_eq(text_distance(distances[_i].b, distances[_i].a), distances[_i].want);
}
