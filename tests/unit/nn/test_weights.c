/* The weight file: what goes in comes out; whatever is not whole is refused. */
#include <errno.h>
#include <math.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "nn/weights.h"
#include "unit/suite.h"

static struct arena arena;
static struct buf bytes;

static void setup(void)
{
    arena_init(&arena);
    buf_init(&bytes, WEIGHTS_BYTES_MAX);
}

static void teardown(void)
{
    buf_release(&bytes);
    arena_release(&arena);
}

FIXTURE(setup, teardown)

static const float floats[] = { 0, -0.0f, 1, 1e-45f, -3.4e38f, 0.1f };
static const double doubles[] = { 1.0 / 3, -1e300 };

static void bag_fill(struct weights *w)
{
    weights_init(w, &arena);
    weights_put_text(w, "about", "three layers, \xc3\xbc");
    weights_put(w, "p1/dense", 2, 3, floats);
    weights_put_doubles(w, "sd", 1, 2, doubles);
    weights_put(w, "nothing", 0, 4, NULL);
    weights_put_text(w, "empty", "");
}

TEST(what_goes_in_comes_out)
{
    struct weights w, back;
    struct err e = { 0 };

    bag_fill(&w);
    ck_assert_int_eq(weights_encode(&w, &bytes, &e), 0);
    int rc = weights_decode(&arena, bytes.data, bytes.len, &back, &e);
    ck_assert_msg(rc == 0, "%s", e.text);
    ck_assert_int_eq(back.n, 5);
    struct weights_reader in = { &back, &e, 0 };
    ck_assert_mem_eq(weights_floats(&in, "p1/dense", 2, 3), floats, sizeof floats);
    ck_assert_mem_eq(weights_doubles(&in, "sd", -1, 2), doubles, sizeof doubles);
    ck_assert_str_eq(weights_text(&in, "about"), "three layers, \xc3\xbc");
    ck_assert_str_eq(weights_text(&in, "empty"), "");
    ck_assert_ptr_nonnull(weights_floats(&in, "nothing", -1, -1));
    ck_assert_int_eq(in.rc, 0);
    const struct weights_array *nothing = weights_find(&back, "nothing");
    ck_assert(nothing->rows == 0 && nothing->cols == 4);
    ck_assert_ptr_null(weights_find(&back, "nowhere"));
}

TEST(the_same_bag_gives_the_same_bytes_also_after_a_journey)
{
    struct weights w, again, back;
    struct buf second;

    buf_init(&second, WEIGHTS_BYTES_MAX);
    bag_fill(&w);
    bag_fill(&again);
    ck_assert_int_eq(weights_encode(&w, &bytes, NULL), 0);
    ck_assert_int_eq(weights_encode(&again, &second, NULL), 0);
    ck_assert_uint_eq(bytes.len, second.len);
    ck_assert_mem_eq(bytes.data, second.data, bytes.len);
    ck_assert_int_eq(weights_decode(&arena, bytes.data, bytes.len, &back, NULL), 0);
    ck_assert_int_eq(weights_encode(&back, &second, NULL), 0);    // replaces, does not append
    ck_assert_uint_eq(bytes.len, second.len);
    ck_assert_mem_eq(bytes.data, second.data, bytes.len);
    buf_release(&second);
}

TEST(the_bytes_are_those_of_the_document)
{
    static const unsigned char want[] = {
        0x89, 'G', 'O', 'G', 'H', 'N', 'N', '\n',    //
        1,    0,   0,   0,                           // version
        2,    0,   0,   0,                           // arrays
        1,    0,   1,   0,   1,   0,   0,   0,       // one letter, floats, 1 row
        2,    0,   0,   0,   'w',                    // 2 columns
        0,    0,   128, 63,  0,   0,   0,   192,     // 1, -2
        1,    0,   3,   0,   1,   0,   0,   0,       // one letter, text
        2,    0,   0,   0,   't', 'h', 'i',          // 2 bytes
    };
    struct weights w;

    weights_init(&w, &arena);
    weights_put(&w, "w", 1, 2, (const float[]){ 1, -2 });
    weights_put_text(&w, "t", "hi");
    ck_assert_int_eq(weights_encode(&w, &bytes, NULL), 0);
    ck_assert_uint_eq(bytes.len, sizeof want + 32);
    ck_assert_mem_eq(bytes.data, want, sizeof want);
}

static const struct {
    const char *name, *array;
    enum weights_kind kind;
    int rows, cols, want;
    const char *says;
} asks[] = {
    { "any shape", "p1/dense", WEIGHTS_FLOATS, -1, -1, 0, "" },
    { "any rows", "p1/dense", WEIGHTS_FLOATS, -1, 3, 0, "" },
    { "other rows", "p1/dense", WEIGHTS_FLOATS, 3, -1, -EINVAL,
      "'p1/dense' is 2 x 3, want 3 x -1" },
    { "other columns", "p1/dense", WEIGHTS_FLOATS, 2, 2, -EINVAL, "is 2 x 3, want 2 x 2" },
    { "turned on its side", "p1/dense", WEIGHTS_FLOATS, 3, 2, -EINVAL, "is 2 x 3, want 3 x 2" },
    { "no such name", "p1", WEIGHTS_FLOATS, -1, -1, -ENOENT, "no array 'p1'" },
    { "floats that are doubles", "sd", WEIGHTS_FLOATS, 1, 2, -EINVAL,
      "'sd' is doubles, want floats" },
    { "doubles that are floats", "p1/dense", WEIGHTS_DOUBLES, 2, 3, -EINVAL,
      "is floats, want doubles" },
    { "text that is floats", "p1/dense", WEIGHTS_TEXT, 2, 3, -EINVAL, "is floats, want text" },
};

EACH(asking_for_what_is_not_there_says_what_is, asks)
{
    struct err e = { 0 };
    struct weights w;
    struct weights_reader in = { &w, &e, 0 };

    bag_fill(&w);
    if (asks[_i].kind == WEIGHTS_FLOATS)
        weights_floats(&in, asks[_i].array, asks[_i].rows, asks[_i].cols);
    else if (asks[_i].kind == WEIGHTS_DOUBLES)
        weights_doubles(&in, asks[_i].array, asks[_i].rows, asks[_i].cols);
    else
        weights_text(&in, asks[_i].array);
    ck_assert_msg(in.rc == asks[_i].want, "%s: %d", asks[_i].name, in.rc);
    ck_assert_msg((weights_floats(&in, "p1/dense", 2, 3) == NULL) == (in.rc < 0),
                  "%s: what fails once has failed", asks[_i].name);
    ck_assert_msg(strstr(e.text, asks[_i].says) != NULL, "%s: %s", asks[_i].name, e.text);
}

/* Decode a copy of its exact size, so that the sanitizer sees a read past the end. */
static int decode_exactly(const char *data, size_t len, struct err *e)
{
    char *copy = malloc(len > 0 ? len : 1);
    struct weights back;

    memcpy(copy, data, len);
    int rc = weights_decode(&arena, copy, len, &back, e);
    free(copy);
    return rc;
}

TEST(a_change_of_any_bit_is_refused)
{
    struct weights w;

    bag_fill(&w);
    ck_assert_int_eq(weights_encode(&w, &bytes, NULL), 0);
    for (size_t i = 0; i < bytes.len * 8; i++) {
        struct err e = { 0 };

        bytes.data[i / 8] = (char)(bytes.data[i / 8] ^ (1 << i % 8));
        ck_assert_int_lt(decode_exactly(bytes.data, bytes.len, &e), 0);
        ck_assert_int_gt(e.code, 0);
        bytes.data[i / 8] = (char)(bytes.data[i / 8] ^ (1 << i % 8));
    }
    ck_assert_int_eq(decode_exactly(bytes.data, bytes.len, NULL), 0);
}

TEST(a_file_that_is_cut_short_or_too_long_is_refused)
{
    struct weights w;

    bag_fill(&w);
    ck_assert_int_eq(weights_encode(&w, &bytes, NULL), 0);
    for (size_t len = 0; len < bytes.len; len++) {
        struct err e = { 0 };

        ck_assert_int_eq(decode_exactly(bytes.data, len, &e), -EINVAL);
        ck_assert_str_ne(e.text, "");
    }
    ck_assert_int_eq(buf_append(&bytes, "", 1), 0);
    ck_assert_int_eq(decode_exactly(bytes.data, bytes.len, NULL), -EINVAL);
}

/* Bytes with a right checksum and wrong content: "HEAD" stands for magic and version. */
#define HEAD "\x89GOGHNN\n\1\0\0\0"
#define ONE HEAD "\1\0\0\0"
#define GOOD "\1\0\1\0\1\0\0\0\1\0\0\0w\0\0\200\77"
#define CASE(text) text, sizeof(text) - 1

static const struct {
    const char *name, *text;
    size_t len;
    int want;
    const char *says;
} forgeries[] = {
    { "nothing wrong", CASE(ONE GOOD), 0, "" },
    { "another program's file", CASE("\x89PNG\r\n\032\n\1\0\0\0\0\0\0\0"), -EINVAL,
      "no weight file" },
    { "a newer version", CASE("\x89GOGHNN\n\2\0\0\0\0\0\0\0"), -ENOTSUP, "version 2 is newer" },
    { "version 0", CASE("\x89GOGHNN\n\0\0\0\0\0\0\0\0"), -EINVAL, "never was a version 0" },
    { "fewer arrays than promised", CASE(HEAD "\2\0\0\0" GOOD), -EINVAL, "array 1: cut short" },
    { "more arrays than promised", CASE(HEAD "\0\0\0\0" GOOD), -EINVAL, "17 bytes too many" },
    { "four billion arrays", CASE(HEAD "\377\377\377\377" GOOD), -EINVAL, "at most 1024" },
    { "one array more than are read", CASE(HEAD "\1\4\0\0" GOOD), -EINVAL, "at most 1024" },
    { "rows that no int holds, of nothing", CASE(ONE "\1\0\1\0\0\0\0\200\0\0\0\0w"), -EINVAL,
      "too large" },
    { "columns that no int holds, of nothing", CASE(ONE "\1\0\1\0\0\0\0\0\0\0\0\200w"), -EINVAL,
      "too large" },
    { "a kind that does not exist", CASE(ONE "\1\0\4\0\1\0\0\0\1\0\0\0w\0\0\200\77"), -EINVAL,
      "no kind 4" },
    { "kind 0", CASE(ONE "\1\0\0\0\1\0\0\0\1\0\0\0w\0\0\200\77"), -EINVAL, "no kind 0" },
    { "more numbers than bytes", CASE(ONE "\1\0\1\0\1\0\0\0\2\0\0\0w\0\0\200\77"), -EINVAL,
      "cut short" },
    { "a shape whose product overflows", CASE(ONE "\1\0\2\0\0\0\0\200\0\0\0\200w\0\0\200\77"),
      -EINVAL, "too large" },
    { "a large shape", CASE(ONE "\1\0\2\0\0\0\0\4\0\0\0\4w\0\0\200\77"), -EINVAL, "cut short" },
    { "a name longer than the file", CASE(ONE "\377\377\1\0\1\0\0\0\1\0\0\0w\0\0\200\77"), -EINVAL,
      "cut short" },
    { "no name", CASE(ONE "\0\0\1\0\1\0\0\0\1\0\0\0\0\0\200\77"), -EINVAL, "no name" },
    { "a name with a NUL in it", CASE(ONE "\2\0\1\0\1\0\0\0\1\0\0\0w\0\0\0\200\77"), -EINVAL,
      "no name" },
    { "the same name twice", CASE(HEAD "\2\0\0\0" GOOD GOOD), -EINVAL, "'w' is there twice" },
    { "an infinite number", CASE(ONE "\1\0\1\0\1\0\0\0\1\0\0\0w\0\0\200\177"), -EDOM,
      "not finite" },
    { "a double that is no number", CASE(ONE "\1\0\2\0\1\0\0\0\1\0\0\0w\0\0\0\0\0\0\370\177"),
      -EDOM, "number 0 of 'w'" },
    { "a text of two rows", CASE(ONE "\1\0\3\0\2\0\0\0\1\0\0\0whi"), -EINVAL, "one row" },
    { "a text that is not UTF-8", CASE(ONE "\1\0\3\0\1\0\0\0\2\0\0\0wh\377"), -EILSEQ,
      "at byte 1" },
    { "a text with a NUL in it", CASE(ONE "\1\0\3\0\1\0\0\0\2\0\0\0w\0i"), -EILSEQ, "at byte 0" },
};

EACH(a_forgery_with_a_right_checksum_is_refused, forgeries)
{
    char signed_bytes[256];
    struct err e = { 0 };
    SHA2_CTX ctx;

    memcpy(signed_bytes, forgeries[_i].text, forgeries[_i].len);
    SHA256Init(&ctx);
    SHA256Update(&ctx, (const uint8_t *)forgeries[_i].text, forgeries[_i].len);
    SHA256Final((uint8_t *)signed_bytes + forgeries[_i].len, &ctx);
    int rc = decode_exactly(signed_bytes, forgeries[_i].len + 32, &e);
    ck_assert_msg(rc == forgeries[_i].want, "%s: %d %s", forgeries[_i].name, rc, e.text);
    ck_assert_msg(strstr(e.text, forgeries[_i].says) != NULL, "%s: %s", forgeries[_i].name, e.text);
}

TEST(what_could_not_be_read_back_is_not_written)
{
    const float bad_float = NAN;
    const double bad_double = (double)-INFINITY;
    struct err e = { 0 };
    struct weights w;
    struct buf small;

    weights_init(&w, &arena);
    weights_put(&w, "w", 1, 1, &bad_float);
    ck_assert_int_eq(weights_encode(&w, &bytes, &e), -EDOM);
    ck_assert_msg(strstr(e.text, "'w'") != NULL, "%s", e.text);
    weights_init(&w, &arena);
    weights_put_doubles(&w, "w", 1, 1, &bad_double);
    ck_assert_int_eq(weights_encode(&w, &bytes, &e), -EDOM);
    weights_init(&w, &arena);
    weights_put_text(&w, "w", "\xff");
    ck_assert_int_eq(weights_encode(&w, &bytes, &e), -EILSEQ);
    buf_init(&small, 60);
    bag_fill(&w);
    ck_assert_int_eq(weights_encode(&w, &small, &e), -EFBIG);
    buf_release(&small);
}

TEST(a_bag_of_the_largest_number_of_arrays_makes_the_journey)
{
    struct weights w, back;
    char name[16];

    weights_init(&w, &arena);
    for (int i = 0; i < WEIGHTS_ARRAYS_MAX; i++) {
        const float v = (float)i;

        snprintf(name, sizeof name, "w%d", i);
        weights_put(&w, name, 1, 1, &v);
    }
    ck_assert_int_eq(weights_encode(&w, &bytes, NULL), 0);
    ck_assert_int_eq(weights_decode(&arena, bytes.data, bytes.len, &back, NULL), 0);
    struct weights_reader in = { .from = &back };
    ck_assert(*weights_floats(&in, "w1023", 1, 1) == 1023);
}

TEST(numbers_are_within_what_bounds_them)
{
    const float few[] = { 1, -2, 3 };
    const double more[] = { 1, -4, 3 };
    const double none[] = { NAN };

    ck_assert(weights_within(few, 3, 3) && !weights_within(few, 3, 2.5f));
    ck_assert(weights_within_doubles(more, 3, 4) && !weights_within_doubles(more, 3, 3));
    ck_assert(!weights_within_doubles(none, 1, 1e9) && weights_within_doubles(none, 0, 1));
}
