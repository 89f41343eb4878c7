/* Memory with one lifetime. */
#include <signal.h>
#include <stdbool.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "unit/suite.h"

static bool is_all(const char *p, size_t n, int value)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] != value)
            return false;
    }
    return true;
}

TEST(every_size_is_aligned_zeroed_and_apart)
{
    static const size_t sizes[] = { 0, 1, 15, 16, 17, 4096, 16384, 16385, 1 << 20, 3, 0 };
    const size_t n = sizeof sizes / sizeof sizes[0];
    char *got[sizeof sizes / sizeof sizes[0]];
    struct arena a;

    arena_init(&a);
    for (size_t i = 0; i < n; i++) {
        got[i] = arena_alloc(&a, sizes[i]);
        ck_assert_ptr_nonnull(got[i]);
        ck_assert_uint_eq((uintptr_t)got[i] % alignof(max_align_t), 0);
        ck_assert(is_all(got[i], sizes[i], 0));
        memset(got[i], (int)i + 1, sizes[i]);
    }
    for (size_t i = 0; i < n; i++)
        ck_assert(is_all(got[i], sizes[i], (int)i + 1));
    arena_release(&a);
}

TEST(reset_forgets_keeps_the_largest_block_and_zeroes_again)
{
    struct arena a;
    char *first;

    arena_init(&a);
    arena_alloc(&a, 100);
    first = arena_alloc(&a, 1 << 20);
    memset(first, 7, 1 << 20);
    arena_alloc(&a, 1 << 18);
    ck_assert_uint_ge(a.used, (1 << 20) + (1 << 18));
    arena_reset(&a);
    ck_assert_uint_eq(a.used, 0);
    ck_assert_ptr_nonnull(a.head);
    ck_assert(is_all(arena_alloc(&a, 1 << 20), 1 << 20, 0));
    arena_reset(&a);
    arena_reset(&a);
    arena_release(&a);
    ck_assert_ptr_null(a.head);
    arena_release(&a);
    arena_reset(&a);
    ck_assert_ptr_nonnull(arena_alloc(&a, 1));
    arena_release(&a);
}

TEST(strings_are_copies_and_terminated)
{
    static const struct {
        const char *name, *given;
        size_t n;
        const char *want;
    } cases[] = {
        { "an empty string stays empty", "", 0, "" },
        { "a count cuts", "abcdef", 3, "abc" },
        { "a count past the end does not", "abc", 100, "abc" },
        { "no bytes of a string are an empty string", "abc", 0, "" },
    };
    struct arena a;
    char one[1] = { 'x' };    // nothing behind it may be read

    arena_init(&a);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_msg(strcmp(arena_strndup(&a, cases[i].given, cases[i].n), cases[i].want) == 0,
                      "%s", cases[i].name);
    ck_assert_str_eq(arena_strndup(&a, one, 1), "x");
    ck_assert_str_eq(arena_strdup(&a, "hello"), "hello");
    ck_assert_str_eq(arena_printf(&a, "%s-%d", "gpu", 7), "gpu-7");
    ck_assert_uint_eq(strlen(arena_printf(&a, "%70000d", 1)), 70000);
    arena_release(&a);
}

TEST(an_array_holds_its_elements)
{
    struct arena a;
    double *v;

    arena_init(&a);
    v = ARENA_ARRAY(&a, double, 1000);
    ck_assert(is_all((const char *)v, 1000 * sizeof *v, 0));
    ck_assert_ptr_nonnull(ARENA_ARRAY(&a, double, 0));
    ck_assert_ptr_nonnull(ARENA_NEW(&a, struct arena));
    arena_release(&a);
}

ABORT(an_array_that_overflows_stops_the_process)
{
    struct arena a;

    arena_init(&a);
    arena_array(&a, SIZE_MAX / 2, 3);
}

ABORT(a_size_nobody_has_stops_the_process)
{
    struct arena a;

    arena_init(&a);
    arena_alloc(&a, SIZE_MAX - 3);
}
