#include "study/scenario/resample.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
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

/* Forty jobs, 100 s apart, whose steps tell their number: blocks of five. */
static struct trace made(int n)
{
    struct trace t = { .name = "made",
                       .n_jobs = n,
                       .jobs = ARENA_ARRAY(&arena, struct trace_job, (size_t)n) };

    for (int i = 0; i < n; i++)
        t.jobs[i] = (struct trace_job){
            .name = "j", .at_s = 100.0 * i, .steps = i, .duration_s = i == 7 ? 1e9 : 0
        };
    return t;
}

static const int counts[] = { 1, 3, 40, 41, 1000 };

EACH(there_are_as_many_as_asked_for_in_blocks_that_stay_together, counts)
{
    const struct trace t = made(40);
    struct map names = { 0 };
    struct trace got;
    int n_first = 0;

    resample_count(&arena, &t, 12, counts[_i], &got);
    ck_assert_int_eq(got.n_jobs, counts[_i]);
    for (int i = 0; i < got.n_jobs; i++) {
        const int was = (int)got.jobs[i].steps;

        ck_assert_int_lt(map_get(&names, got.jobs[i].name), 0);
        map_set(&names, got.jobs[i].name, i);
        ck_assert_double_eq_tol(got.jobs[i].at_s, 100.0 * i, 0.01);
        ck_assert_int_eq(was % 5, i % 5);
        ck_assert_int_eq(was / 5, (int)got.jobs[i - i % 5].steps / 5);
        ck_assert(was != 7 || got.jobs[i].duration_s == 1e9);
        n_first += was == 0;
    }
    ck_assert_msg(counts[_i] < 1000 || (n_first > 10 && n_first < 40), "%d", n_first);
    map_release(&names);
}

TEST(seeds_draw_other_blocks_and_the_same_again)
{
    const struct trace t = made(200);
    struct trace one, same, other;
    int n_other = 0;

    resample_count(&arena, &t, 12, 200, &one);
    resample_count(&arena, &t, 12, 200, &same);
    resample_count(&arena, &t, 13, 200, &other);
    for (int i = 0; i < 200; i++) {
        ck_assert_double_eq(one.jobs[i].steps, same.jobs[i].steps);
        n_other += one.jobs[i].steps != other.jobs[i].steps;
    }
    ck_assert_int_gt(n_other, 100);
}

TEST(jobs_that_all_come_at_once_do_so_again)
{
    struct trace t = made(10), got;

    for (int i = 0; i < 10; i++)
        t.jobs[i].at_s = 0;
    resample_count(&arena, &t, 12, 30, &got);
    ck_assert_int_eq(got.n_jobs, 30);
    ck_assert_double_lt(got.jobs[9].at_s, 60);
}
