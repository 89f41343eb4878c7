/* Names and numbers to small integers. */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/map.h"
#include "unit/suite.h"

TEST(an_empty_map_knows_nothing)
{
    struct map m = { 0 };

    ck_assert_int_eq(map_get(&m, "a"), -1);
    map_release(&m);
}

TEST(an_empty_map_of_numbers_knows_nothing)
{
    struct map_u64 m = { 0 };

    map_u64_prefetch(&m, 7);
    ck_assert_int_eq(map_u64_get(&m, 0), -1);
    map_u64_set(&m, 0, 3);
    map_u64_set(&m, 0, 4);
    ck_assert_int_eq(map_u64_get(&m, 0), 4);
    ck_assert_uint_eq(m.n_used, 1);
    map_u64_release(&m);
}

TEST(names_are_found_by_content_and_can_be_set_again)
{
    struct map m = { 0 };
    char again[] = "v100";

    map_set(&m, "v100", 3);
    map_set(&m, "", 0);
    ck_assert_int_eq(map_get(&m, again), 3);
    ck_assert_int_eq(map_get(&m, ""), 0);
    ck_assert_int_eq(map_get(&m, "v10"), -1);
    map_set(&m, "v100", 4);
    ck_assert_int_eq(map_get(&m, "v100"), 4);
    ck_assert_int_eq(m.n, 2);
    map_release(&m);
}

TEST(many_names_survive_growth)
{
    bool is_found = true;
    struct arena a;
    struct map m = { 0 };

    arena_init(&a);
    for (int i = 0; i < 20000; i++)
        map_set(&m, arena_printf(&a, "job-%d", i), i);
    for (int i = 0; i < 20000; i++)
        is_found &= map_get(&m, arena_printf(&a, "job-%d", i)) == i;
    ck_assert(is_found);
    ck_assert_int_eq(map_get(&m, "job-20000"), -1);
    ck_assert_int_eq(m.n, 20000);
    map_release(&m);
    arena_release(&a);
}

TEST(many_numbers_survive_growth_whatever_their_pattern)
{
    static const uint64_t strides[] = {
        1, 2, 4096, (uint64_t)1 << 32, (uint64_t)1 << 48, 0x9e3779b97f4a7c15u
    };

    for (size_t k = 0; k < sizeof strides / sizeof strides[0]; k++) {
        bool is_found = true;
        struct map_u64 m = { 0 };

        for (int i = 0; i < 20000; i++)
            map_u64_set(&m, (uint64_t)i * strides[k], i % 7);
        for (int i = 0; i < 20000; i++)
            is_found &= map_u64_get(&m, (uint64_t)i * strides[k]) == i % 7;
        ck_assert_msg(is_found, "stride %#lx", (unsigned long)strides[k]);
        ck_assert_uint_eq(m.n_used, 20000);
        ck_assert_int_eq(map_u64_get(&m, UINT64_MAX), -1);
        map_u64_release(&m);
    }
}

ABORT(a_negative_value_stops_the_process)
{
    struct map m = { 0 };

    map_set(&m, "a", -1);
}
