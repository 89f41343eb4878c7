#include "study/whatif/resample.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
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

static const struct {
    double period_s;
    int want;
} lengths[] = { { 600, 8 }, { 86400, 8 }, { 8.5 * 86400, 8 }, { 30 * 86400, 30 }, { 1e9, 1000 } };

EACH(a_block_is_a_day_but_there_are_some_of_them, lengths)
{
    ck_assert_int_eq(resample_n_blocks(lengths[_i].period_s), lengths[_i].want);
}

TEST(every_block_is_drawn_equally_often_and_not_in_order)
{
    enum { DRAWS = 7, BLOCKS = 9 };
    int n[BLOCKS] = { 0 }, n_same = 0, n_repeated = 0;
    const int *one = resample_draw(&arena, 1, DRAWS, BLOCKS);
    const int *again = resample_draw(&arena, 1, DRAWS, BLOCKS);
    const int *other = resample_draw(&arena, 2, DRAWS, BLOCKS);

    for (int i = 0; i < DRAWS * BLOCKS; i++) {
        n[one[i]]++;
        n_same += one[i] == other[i];
        n_repeated += i % BLOCKS > 0 && one[i] == one[i - 1];
        ck_assert_int_eq(one[i], again[i]);
    }
    for (int b = 0; b < BLOCKS; b++)
        ck_assert_int_eq(n[b], DRAWS);
    ck_assert_int_lt(n_same, DRAWS * BLOCKS / 2);
    ck_assert_int_gt(n_repeated, 0);    // with replacement
}

/* Eight blocks of 100 s; jobs at 10, 110, 120, 790. */
TEST(jobs_go_with_their_block)
{
    static const double at_s[] = { 10, 110, 120, 790 };
    static const int blocks[] = { 1, 0, 7, 1, 2, 2, 2, 2 };
    static const struct {
        double at_s, steps;
    } want[] = { { 10, 1 }, { 20, 2 }, { 110, 0 }, { 290, 3 }, { 310, 1 }, { 320, 2 } };
    struct trace_job jobs[4] = { 0 };
    struct trace t = { .name = "t", .n_jobs = 4, .jobs = jobs }, got;

    for (int i = 0; i < 4; i++)
        jobs[i] = (struct trace_job){
            .name = "j", .at_s = at_s[i], .steps = i, .duration_s = i == 3 ? 1e9 : 0
        };
    resample_jobs(&arena, &t, 800, blocks, 8, &got);
    ck_assert_int_eq(got.n_jobs, 6);
    for (int i = 0; i < 6; i++) {
        ck_assert_double_eq_tol(got.jobs[i].at_s, want[i].at_s, 1e-9);
        ck_assert_double_eq(got.jobs[i].steps, want[i].steps);
        for (int k = 0; k < i; k++)
            ck_assert_str_ne(got.jobs[i].name, got.jobs[k].name);
    }
    ck_assert_double_eq(got.jobs[3].duration_s, 800);    // nobody serves longer than the period
}
