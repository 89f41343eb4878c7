#include "estimate/p1/memory.h"

#include <errno.h>
#include <string.h>

#include "base/text/buf.h"
#include "base/err.h"
#include "estimate/p1/examples.h"
#include "nn/weights.h"
#include "unit/estimate/synthetic.h"
#include "unit/estimate/p1/spoil.h"
#include "unit/suite.h"

static struct arena arena;
static struct examples examples;
static bool is_held[WORKLOADS];
static bool is_held_type[TYPES];
static struct holdout view;
static struct memory memory;

static void set_up(void)
{
    arena_init(&arena);
    synthetic_examples(&arena, 1, &examples);
    memset(is_held, 0, sizeof is_held);
    memset(is_held_type, 0, sizeof is_held_type);
    view = (struct holdout){ is_held, is_held_type };
    memory_make(&arena, &examples, &view, &memory);
}

static void tear_down(void)
{
    arena_release(&arena);
}

FIXTURE(set_up, tear_down)

TEST(it_remembers_what_is_shown_by_type)
{
    ck_assert_int_eq(memory.n, WORKLOADS * TYPES);
    ck_assert_int_eq(memory.n_types, TYPES);
    ck_assert_int_eq(memory.first[1], WORKLOADS);
    ck_assert(memory.scale == 0.5 || memory.scale == 1 || memory.scale == 2);
    double sum = 0;
    for (int i = memory.first[0]; i < memory.first[1]; i++) {
        ck_assert(memory.items[i].who.name == examples.who[i].name);
        ck_assert(memory.items[i].value[REMEMBERED_ALONE] == examples.alone[i * TYPES].value);
        sum += (double)memory.items[i].value[REMEMBERED_AS_JOB];
    }
    ck_assert_double_eq_tol(sum, 0, 1e-4);
    ck_assert_double_eq(memory_mean_s(&memory, examples_at(&examples, 3, 1)),
                        (double)memory.mean_s[1]);
}

TEST(nothing_of_a_held_out_workload_or_type_is_remembered)
{
    is_held[2] = is_held_type[1] = true;
    memory_make(&arena, &examples, &view, &memory);
    ck_assert_int_eq(memory.n, WORKLOADS - 1);
    ck_assert_int_eq(memory.n_types, 1);
    struct memory before = memory;

    for (int i = 0; i < examples.n_pairs; i++)
        if (examples.pairs[i].workload == 2 || examples.pairs[i].neighbour == 2)
            examples.pairs[i].value = NAN;
    memory_make(&arena, &examples, &view, &memory);
    for (int i = 0; i < memory.n; i++) {
        ck_assert(memory.items[i].who.name != examples.who[2].name);
        ck_assert(memory.items[i].value[REMEMBERED_AS_JOB] ==
                  before.items[i].value[REMEMBERED_AS_JOB]);
        ck_assert(memory.items[i].value[REMEMBERED_AS_NEIGHBOUR] ==
                  before.items[i].value[REMEMBERED_AS_NEIGHBOUR]);
    }
}

TEST(the_nearest_are_others_best_first_and_no_kin_where_asked)
{
    for (int no_kin = 0; no_kin < 2; no_kin++)
        for (int w = 0; w < WORKLOADS; w++) {
            const struct features *on = examples_at(&examples, w, 1);
            struct similar best[5];
            int n = memory_nearest(
                &memory, &(struct memory_query){ &examples.who[w], on, no_kin, REMEMBERED_ALONE },
                5, best);

            ck_assert_int_eq(n, 5);
            for (int i = 0; i < n; i++) {
                const struct remembered *it = &memory.items[best[i].item];
                ck_assert(it->who.name != examples.who[w].name);
                ck_assert(!no_kin || it->who.family != examples.who[w].family);
                ck_assert(it->on.figure[0] == on->figure[0]);
                ck_assert(i == 0 || best[i].similarity <= best[i - 1].similarity);
            }
            if (!no_kin)
                ck_assert(memory.items[best[0].item].who.family == examples.who[w].family);
        }
}

TEST(on_an_unknown_type_the_most_alike_one_speaks)
{
    struct features on = *examples_at(&examples, 4, 1);
    struct similar best[3];

    on.figure[0] -= 0.1f;
    ck_assert_int_eq(
        memory_nearest(&memory,
                       &(struct memory_query){ &examples.who[4], &on, false, REMEMBERED_ANYTHING },
                       3, best),
        3);
    for (int i = 0; i < 3; i++)
        ck_assert_int_ge(best[i].item, memory.first[1]);
    ck_assert_double_eq_tol(memory_mean_s(&memory, &on), (double)memory.mean_s[1], 0.01);
}

TEST(kin_is_known_only_from_others)
{
    ck_assert(memory_has_kin(&memory, &examples.who[0]));
    is_held[1] = is_held[2] = true;
    memory_make(&arena, &examples, &view, &memory);
    ck_assert(!memory_has_kin(&memory, &examples.who[0]));
    ck_assert(memory_has_kin(&memory, &examples.who[1]));
    ck_assert(memory_knows(&memory, &examples.who[0]));
    ck_assert(!memory_knows(&memory, &examples.who[1]));
}

TEST(an_empty_memory_answers)
{
    struct similar best[3];

    memset(is_held, 1, sizeof is_held);
    memory_make(&arena, &examples, &view, &memory);
    ck_assert_int_eq(memory.n, 0);
    ck_assert_int_eq(memory_nearest(&memory,
                                    &(struct memory_query){ &examples.who[0], &examples.at[0],
                                                            false, REMEMBERED_ANYTHING },
                                    3, best),
                     0);
    ck_assert_double_eq(memory_mean_s(&memory, &examples.at[0]), MEMORY_S_UNKNOWN);
}

TEST(it_travels_through_bytes_unchanged)
{
    struct weights sent, got;
    struct memory back;
    struct buf bytes;
    struct err e;

    memory.items[5].value[REMEMBERED_WATTS] = NAN;
    memory.items[7].value[REMEMBERED_AS_JOB] = NAN;
    weights_init(&sent, &arena);
    memory_save(&memory, &sent);
    buf_init(&bytes, WEIGHTS_BYTES_MAX);
    ck_assert_int_eq(weights_encode(&sent, &bytes, &e), 0);
    ck_assert_int_eq(weights_decode(&arena, bytes.data, bytes.len, &got, &e), 0);
    ck_assert_int_eq(memory_load(&arena, &got, &back, &e), 0);
    ck_assert_int_eq(back.n, memory.n);
    ck_assert_mem_eq(back.items, memory.items, (size_t)memory.n * sizeof *memory.items);
    ck_assert_mem_eq(back.first, memory.first, (TYPES + 1) * sizeof *memory.first);
    ck_assert_mem_eq(back.mean_s, memory.mean_s, TYPES * sizeof *memory.mean_s);
    ck_assert_double_eq(back.scale, memory.scale);
    buf_release(&bytes);
}

/* Arrays as they might come from elsewhere; each spoils one thing. */
static const struct spoiled_row spoiled[] = {
    { "a digest that is no whole number is refused", "memory.who", 0, 0.5 },
    { "a type that begins in the middle is refused", "memory.first", 0, 3 },
    { "a scale of nothing is refused", "memory.scale", 0, 0 },
    { "a scale beyond all distances is refused", "memory.scale", 0, 1e6 },
    { "a feature beyond all logarithms is refused", "memory.features", 0, 1e30 },
};

EACH(a_spoiled_memory_is_refused, spoiled)
{
    struct weights w;
    struct memory back;
    struct err e;

    weights_init(&w, &arena);
    memory_save(&memory, &w);
    spoil(&arena, &w, &spoiled[_i]);
    ck_assert_msg(memory_load(&arena, &w, &back, &e) == -EINVAL, "%s", spoiled[_i].name);
}

/* Rows without columns take no bytes in a file, and must take no room either. */
static const struct {
    const char *name, *array;
    int rows, cols;
} misshapen[] = {
    { "a billion workloads of no digests", "memory.who", 1 << 30, 0 },
    { "a billion types in no rows", "memory.first", 0, 1 << 30 },
    { "not even where the items end", "memory.first", 1, 0 },
    { "features of fewer workloads", "memory.features", 1, 1 },
};

EACH(a_misshapen_memory_is_refused, misshapen)
{
    struct weights w;
    struct memory back;
    struct err e;

    weights_init(&w, &arena);
    memory_save(&memory, &w);
    for (int i = 0; i < w.n; i++)
        if (strcmp(w.arrays[i].name, misshapen[_i].array) == 0) {
            w.arrays[i].rows = misshapen[_i].rows;
            w.arrays[i].cols = misshapen[_i].cols;
        }
    ck_assert_msg(memory_load(&arena, &w, &back, &e) == -EINVAL, "%s", misshapen[_i].name);
}

TEST(a_value_that_nothing_measured_is_refused)
{
    struct weights w;
    struct memory back;
    struct err e;

    memory.items[3].value[REMEMBERED_ALONE] = 1e30f;
    weights_init(&w, &arena);
    memory_save(&memory, &w);
    ck_assert_int_eq(memory_load(&arena, &w, &back, &e), -EINVAL);
}
