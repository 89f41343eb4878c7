/* A site's own jobs: as they were, and drawn anew in blocks; and a past that is learned from. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text/buf.h"
#include "base/text/file.h"
#include "catalog/catalog.h"
#include "study/scenario/site.h"
#include "study/scenario/text.h"
#include "unit/suite.h"
#include "unit/support.h"

static const char *put(struct arena *a, const char *dir, const char *name, const char *text)
{
    const char *path = arena_printf(a, "%s/%s", dir, name);
    struct err e = { 0 };

    ck_assert_msg(file_write(path, text, strlen(text), &e) == 0, "%s", e.text);
    return path;
}

static const struct scenario *read_site(struct arena *a, const char *dir, const char *more)
{
    const char *text = arena_printf(a, "node n v100:2 p100:2\njobs trace t\npolicy gogh\n%s", more);
    struct scenario *s = ARENA_NEW(a, struct scenario);
    struct err e = { 0 };
    struct buf b;

    buf_init(&b, 1 << 16);
    for (int i = 0; i < 40; i++)
        buf_printf(&b, "job j%d at=%d workload=%s steps=%d min=0.1\n", i,
                   1000000 + i * 100,    // which begins late
                   i % 2 == 0 ? "bert-base" : "ResNet-50", 500 + i);
    put(a, dir, "t", buf_text(&b));
    buf_release(&b);
    ck_assert_msg(scenario_read(a, put(a, dir, "s.scenario", text), s, &e) == 0, "%s", e.text);
    return s;
}

static struct study_inputs open_run(struct arena *a, const struct study_run *k)
{
    struct study_inputs in;
    struct err e = { 0 };

    ck_assert_msg(scenario_open(a, k, "/nowhere", &in, &e) == 0, "%s", e.text);
    return in;
}

TEST(the_first_seed_has_the_jobs_as_they_were)
{
    char *dir = scratch_make();
    struct arena a;

    arena_init(&a);
    struct study_run k = { .scenario = read_site(&a, dir, "first_seed 500\n"),
                           .policy = "gogh",
                           .seed = 500,
                           .has_sleep = true,
                           .without = "" };
    struct study_inputs first = open_run(&a, &k);
    k.seed = 501;
    struct study_inputs second = open_run(&a, &k);
    ck_assert_int_eq(first.trace.n_jobs, 40);
    ck_assert_int_eq(second.trace.n_jobs, 40);
    int n_moved = 0;
    for (int i = 0; i < 40; i++) {
        ck_assert_str_eq(first.trace.jobs[i].name, arena_printf(&a, "j%d", i));
        ck_assert_double_eq(first.trace.jobs[i].steps, 500 + i);
        n_moved += second.trace.jobs[i].steps != 500 + i;
    }
    ck_assert_int_gt(n_moved, 10);
    ck_assert_double_eq(first.trace.jobs[0].at_s, 0);
    ck_assert_double_lt(second.trace.jobs[39].at_s, 3 * 4000);
    scenario_close(&first);
    scenario_close(&second);
    scratch_remove(dir);
    arena_release(&a);
}

TEST(a_trace_can_be_brought_to_a_load)
{
    char *dir = scratch_make();
    struct arena a;

    arena_init(&a);
    struct study_run k = { .scenario = read_site(&a, dir, "load 0.5\n"),
                           .load = 0.5,
                           .policy = "gogh",
                           .seed = 11,
                           .has_sleep = true,
                           .without = "" };
    struct study_inputs in = open_run(&a, &k);
    ck_assert(in.trace.n_jobs > 1 && in.trace.n_jobs <= 40);
    scenario_close(&in);
    scratch_remove(dir);
    arena_release(&a);
}

TEST(a_past_leaves_measurements_and_no_more)
{
    static const char text[] = "node n v100:2 p100:2\njobs drawn 20\nload 0.5\npolicy gogh\n"
                               "history 30\n";
    struct scenario s;
    struct arena a;
    struct err e = { 0 };

    arena_init(&a);
    ck_assert_msg(scenario_parse(&a, "s", text, strlen(text), &s, &e) == 0, "%s", e.text);
    s.name = "s";
    struct study_run k = { .scenario = &s,
                           .load = 0.5,
                           .policy = "gogh",
                           .seed = 11,
                           .has_sleep = true,
                           .without = "",
                           .knows = KNOWS_HISTORY };
    struct study_inputs in = open_run(&a, &k);
    ck_assert_int_eq(in.trace.n_jobs, 20);
    ck_assert_ptr_nonnull(in.pretraining.catalog);
    ck_assert_ptr_null(in.pretraining.model);
    ck_assert_int_gt(in.pretraining.catalog->n_cells, 5);
    k.knows = KNOWS_NOTHING;
    struct study_inputs cold = open_run(&a, &k);
    ck_assert_ptr_null(cold.pretraining.catalog);
    for (int i = 0; i < 20; i++)
        ck_assert_double_eq(in.trace.jobs[i].at_s, cold.trace.jobs[i].at_s);
    scenario_close(&in);
    scenario_close(&cold);
    arena_release(&a);
}
