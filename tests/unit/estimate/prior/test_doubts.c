/* Imported speeds against the roofline: what is told, and what is not. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "catalog/catalog.h"
#include "estimate/prior/doubts.h"
#include "estimate/prior/roofline.h"
#include "unit/suite.h"

static struct arena arena;

static void set_up(void)
{
    arena_init(&arena);
}

static void tear_down(void)
{
    arena_release(&arena);
}

FIXTURE(set_up, tear_down)

enum { N = 6 };

static const struct {
    const char *name;
    double batch;
    double times[N];    // of the roofline: half of the rows on one type, half on another
    bool by_batch;      // times the batch as well
    int neighbour, limit_w;
    int n_want;
    const char *want;
} cases[] = {
    { "as the roofline has it", 32, { 1, 1, 1, 1, 1, 1 }, false, -1, 0, 0, NULL },
    { "seven times off is nothing unusual", 32, { 7, 7, 7, 7, 7, 7 }, false, -1, 0, 0, NULL },
    { "nine times off, on one type",
      2,
      { 9, 9, 9, 1, 1, 1 },
      false,
      -1,
      0,
      1,
      "'bert-base' on v100: the median of 3 speeds is 9 times faster" },
    { "nine times slower, on the other",
      32,
      { 1, 1, 1, 1. / 9, 1. / 9, 1. / 9 },
      false,
      -1,
      0,
      1,
      "'bert-base' on t4: the median of 3 speeds is 9 times slower" },
    { "one of three does not move the median", 32, { 90, 1, 1, 1, 1, 90 }, false, -1, 0, 0, NULL },
    { "samples/s", 32, { 1, 1.5, 0.7, 1, 0.6, 1.2 }, true, -1, 0, 1, "are these samples/s" },
    { "a batch of two cannot tell", 2, { 1, 1, 1, 1, 1, 1 }, true, -1, 0, 0, NULL },
    { "beside a neighbour nobody knows", 32, { 99, 99, 99, 99, 99, 99 }, false, 0, 0, 0, NULL },
    { "nor under a power limit", 32, { 99, 99, 99, 99, 99, 99 }, false, -1, 100, 0, NULL },
};

EACH(what_is_far_from_the_roofline_is_told, cases)
{
    const struct gpu_type types[2] = { *gpu_type_builtin("v100"), *gpu_type_builtin("t4") };
    struct measurement rows[N];
    struct workload w;
    const char **out;

    ck_assert_int_eq(workload_builtin(&arena, "bert-base", cases[_i].batch, &w, NULL), 0);
    for (int i = 0; i < N; i++) {
        struct roofline line;

        roofline(&w, &types[i / 3], &line);
        rows[i] = (struct measurement){
            .key = { 0, i / 3, cases[_i].neighbour, 1, .limit_w = cases[_i].limit_w },
            .fits = true,
            .throughput = cases[_i].times[i] * (cases[_i].by_batch ? w.batch : 1) / line.step_s,
        };
    }
    struct gpu_type named[2] = { types[0], types[1] };
    named[0].name = "v100";
    struct doubts_of of = { &w, 1, named, rows, N };
    ck_assert_msg(doubts_find(&arena, &of, &out) == cases[_i].n_want, "%s: %s", cases[_i].name,
                  out[0] ? out[0] : "nothing");
    if (cases[_i].n_want > 0)
        ck_assert_msg(strstr(out[0], cases[_i].want) != NULL, "%s: %s", cases[_i].name, out[0]);
}

TEST(of_what_nobody_described_nothing_is_told)
{
    const struct gpu_type type = *gpu_type_builtin("v100");
    struct workload w;
    struct measurement row = { .key = { .neighbour = -1, .n_gpus = 1 },
                               .fits = true,
                               .throughput = 1e6 };
    struct doubts_of of = { &w, 1, &type, &row, 1 };
    const char **out;

    workload_init(&w, "w");
    ck_assert_int_eq(doubts_find(&arena, &of, &out), 0);
}
