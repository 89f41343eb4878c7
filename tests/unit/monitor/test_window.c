/* Windows: what counts, what does not, and how sure it is. */
#include <math.h>

#include "base/rng.h"
#include "monitor/window.h"
#include "unit/suite.h"

#define NO NAN

/* A job as stretches of constant speed that says its whole steps every 'every_s'. Warm-up takes
 * 10 s, a window 60 s, and it is told at the end.
 */
struct stretch {
    double for_s, rate;
};

static const struct {
    const char *name;
    struct stretch path[8];
    double every_s;
    double jitter;    // sd of ln rate from one report to the next
    enum window_verdict want;
    double want_rate;    // within 3 %; NO: not asked
    int want_outliers;
    double noise_low, noise_high;    // 0, 0: not asked
} cases[] = {
    { "a steady job", { { 70, 40 } }, 1, 0, WINDOW_STEADY, 40, 0, .004, .006 },
    { "what happens in the warm-up does not count",
      { { 10, 1 }, { 60, 40 } },
      1,
      0,
      WINDOW_STEADY,
      40,
      0,
      .004,
      .006 },
    { "a job that says nothing", { { 70, 0 } }, 1, 0, WINDOW_SHORT, NO, 0, 0, 0 },
    { "a job that ends too soon", { { 19, 40 } }, 1, 0, WINDOW_SHORT, NO, 0, 0, 0 },
    { "jitter is noise", { { 70, 40 } }, 1, .1, WINDOW_STEADY, 40, 0, .005, .05 },
    { "a pause for a checkpoint does not count",
      { { 30, 40 }, { 12, 0 }, { 28, 40 } },
      1,
      0,
      WINDOW_STEADY,
      40,
      1,
      .004,
      .01 },
    { "nor does a burst of steps that were done before",
      { { 30, 40 }, { 5, 400 }, { 35, 40 } },
      1,
      0,
      WINDOW_STEADY,
      40,
      1,
      0,
      0 },
    { "a job that pauses most of the time has no pace",
      { { 16, 40 }, { 6, 4 }, { 10, 40 }, { 6, 4 }, { 6, 40 }, { 6, 4 }, { 10, 40 }, { 10, 4 } },
      1,
      0,
      WINDOW_UNSTABLE,
      NO,
      -1,
      0,
      0 },
    { "a third of its parts at a crawl are no outliers any more",
      { { 50, 40 }, { 20, 4 } },
      1,
      0,
      WINDOW_UNSTABLE,
      NO,
      -1,
      0,
      0 },
    { "a job that is still getting faster",
      { { 20, 20 }, { 10, 24 }, { 10, 28 }, { 10, 32 }, { 10, 36 }, { 10, 40 } },
      1,
      0,
      WINDOW_UNSTABLE,
      NO,
      -1,
      0,
      0 },
    { "a jump to another speed", { { 40, 20 }, { 30, 24 } }, 1, 0, WINDOW_UNSTABLE, NO, -1, 0, 0 },
    { "a wobble of two percent is none",
      { { 40, 100 }, { 30, 102 } },
      1,
      0,
      WINDOW_STEADY,
      101,
      0,
      .005,
      .02 },
    { "slow steps: the edges are steps, not reports",
      { { 70, 0.1 } },
      1,
      0,
      WINDOW_STEADY,
      0.1,
      0,
      .05,
      .2 },
    { "reports that come seldom", { { 70, 40 } }, 9, 0, WINDOW_STEADY, 40, 0, .004, .006 },
    { "reports that come often", { { 70, 40 } }, .05, 0, WINDOW_STEADY, 40, 0, .004, .006 },
};

/* The window at the end of the path. */
static void walk(int i, struct window *w)
{
    double t_s = 0, done = 0;
    struct rng r;

    rng_init(&r, 7, cases[i].name);
    window_begin(w, 0, 10, 60);
    for (const struct stretch *s = cases[i].path; s < cases[i].path + 8 && s->for_s > 0; s++) {
        for (double end_s = t_s + s->for_s; t_s < end_s - 1e-9; t_s += cases[i].every_s) {
            done += s->rate * cases[i].every_s * exp(cases[i].jitter * rng_normal(&r));
            if (done > 0)
                window_count(w, t_s + cases[i].every_s, floor(done + 1e-6));
        }
    }
}

EACH(windows_are_told, cases)
{
    struct window w;
    struct window_result t;

    walk(_i, &w);
    window_tell(&w, 10, &t);
    ck_assert_msg(t.verdict == cases[_i].want, "%s: verdict %d, outliers %d, noise %g",
                  cases[_i].name, (int)t.verdict, t.n_outliers, t.noise);
    if (cases[_i].want_outliers >= 0)
        ck_assert_msg(t.n_outliers == cases[_i].want_outliers, "%s: %d outliers", cases[_i].name,
                      t.n_outliers);
    if (!isnan(cases[_i].want_rate)) {
        ck_assert_double_eq_tol(t.steps / t.length_s / cases[_i].want_rate, 1, .03);
        ck_assert_double_eq_tol(t.length_s + t.outliers_s, t.to_s - t.from_s, 1e-9);
        ck_assert(t.from_s >= 10 && t.to_s <= 70 + cases[_i].every_s);
    }
    if (cases[_i].noise_high > 0)
        ck_assert_msg(t.noise >= cases[_i].noise_low && t.noise <= cases[_i].noise_high,
                      "%s: noise %g", cases[_i].name, t.noise);
}

static const struct {
    const char *name;
    double steps[4];    // of parts of 10 s; 0: no more
    enum window_verdict want;
    double noise_low, noise_high;    // 0, 0: not known
} few[] = {
    { "two parts that contradict each other", { 200, 100 }, WINDOW_UNSTABLE, 0, 9 },
    { "two that agree", { 200, 201 }, WINDOW_STEADY, 0, 0 },
    { "two that differ a little", { 200, 230 }, WINDOW_STEADY, .098, .11 },
    { "two of few steps are off by one of them", { 2, 3 }, WINDOW_STEADY, .28, .4 },
    { "three, and one of them is off", { 200, 200, 300 }, WINDOW_UNSTABLE, 0, 9 },
    { "three that scatter", { 200, 220, 230 }, WINDOW_STEADY, .07, .08 },
    { "one", { 200 }, WINDOW_STEADY, 0, 0 },
};

EACH(few_parts_are_not_believed_blindly, few)
{
    struct window w;
    struct window_result t;
    double done = 1;

    window_begin(&w, 0, 0, 60);
    window_count(&w, 0, done);
    for (int i = 0; i < 4 && few[_i].steps[i] > 0; i++)
        window_count(&w, 10 * (i + 1), done += few[_i].steps[i]);
    window_tell(&w, 10, &t);
    ck_assert_msg(t.verdict == few[_i].want, "%s: verdict %d", few[_i].name, (int)t.verdict);
    ck_assert_msg(few[_i].noise_high > 0
                      ? few[_i].want == WINDOW_UNSTABLE ||
                            (t.noise >= few[_i].noise_low && t.noise <= few[_i].noise_high)
                      : isnan(t.noise),
                  "%s: noise %g", few[_i].name, t.noise);
}

/* Seeds of chance: 200 windows of one jittery job; the error of its speed is as large as told. */
TEST(noise_is_what_it_says)
{
    double squares = 0, told = 0;
    int n = 0;
    struct rng r;

    rng_init(&r, 3, "noise");
    for (int k = 0; k < 200; k++) {
        struct window w;
        struct window_result t;
        double done = 1;

        window_begin(&w, 0, 0, 60);
        for (int i = 0; i <= 60; i++) {
            window_count(&w, i, done);
            done += 1000 * exp(.3 * rng_normal(&r));
        }
        window_tell(&w, 10, &t);
        if (t.verdict != WINDOW_STEADY)
            continue;
        n++;
        squares += pow(log(t.steps / t.length_s / (1000 * exp(.045))), 2);
        told += t.noise * t.noise;
    }
    ck_assert_int_gt(n, 180);
    ck_assert_msg(squares / told > .6 && squares / told < 1.7, "ratio %g", squares / told);
}

TEST(a_change_ends_the_window_and_begins_a_warm_up)
{
    struct window w;
    struct window_result t;

    window_begin(&w, 0, 10, 60);
    for (int i = 0; i <= 40; i++)
        window_count(&w, i, 5 * i + 1);
    window_change(&w, 40, 10);
    window_tell(&w, 10, &t);
    ck_assert_int_eq((int)t.verdict, WINDOW_SHORT);
    for (int i = 41; i < 50; i++)
        ck_assert(!window_count(&w, i, 5 * i + 1));
    ck_assert(isnan(w.from_s));
    ck_assert(window_count(&w, 50, 251));
    ck_assert_double_eq(w.from_s, 50);
}

TEST(windows_follow_each_other_without_a_gap)
{
    struct window w;
    struct window_result first, second;

    window_begin(&w, 0, 0, 60);
    for (int i = 0; i <= 33; i++)
        window_count(&w, i, 7 * i + 1);
    window_tell(&w, 10, &first);
    window_go_on(&w);
    for (int i = 34; i <= 60; i++)
        window_count(&w, i, 7 * i + 1);
    window_tell(&w, 10, &second);
    ck_assert_double_eq(first.to_s, second.from_s);
    ck_assert_double_eq(first.steps + second.steps, 7 * (second.to_s - first.from_s));
}

TEST(counts_and_times_that_fall_are_ignored)
{
    struct window w;

    window_begin(&w, 0, 0, 60);
    ck_assert(window_count(&w, 5, 100));
    ck_assert(!window_count(&w, 6, 99));
    ck_assert(!window_count(&w, 4, 200));
    ck_assert(!window_count(&w, 7, 100));
    ck_assert_double_eq(w.last_s, 5);
    ck_assert_double_eq(w.last_steps, 100);
}

TEST(the_speed_to_show_is_of_the_last_half_minute)
{
    struct window w;

    window_begin(&w, 0, 10, 60);
    ck_assert(isnan(window_speed(&w, 0)));
    window_count(&w, 0, 1);
    ck_assert(isnan(window_speed(&w, 0)));
    for (int i = 1; i <= 100; i++)
        window_count(&w, i, 1 + 10 * i);
    ck_assert_double_eq_tol(window_speed(&w, 100), 10, 1e-9);
    for (int i = 101; i <= 140; i++)
        window_count(&w, i, 1001 + 20 * (i - 100));
    ck_assert_double_eq_tol(window_speed(&w, 140), 20, 1e-9);
    ck_assert_double_lt(window_speed(&w, 300), 5);    // it has fallen silent
}
