/* The likelihood's slopes, and that fits go where the readings were drawn from. */
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "estimate/hierarchical/fit.h"
#include "nn/gp.h"
#include "unit/estimate/hierarchical/small.h"
#include "unit/suite.h"

enum { WORKLOADS = 12, MOST = 160 };

static struct small small;
static struct reading list[MOST];
static double factor[MOST * MOST];
static struct err e;

static void set_up(void)
{
    nn_init();
    small_init(&small, 7, WORKLOADS);
}

static void tear_down(void)
{
    site_release(&small.site);
}

FIXTURE(set_up, tear_down)

static struct campaign_readings readings(int n)
{
    return (struct campaign_readings){ &small.site, list, n };
}

/* Readings of cells by chance, with values as the model with these hyper-parameters has them. */
static void simulate(const struct hyper *h, int n, float noise)
{
    double z[MOST];

    for (int i = 0; i < n; i++) {
        list[i] = small_reading(&small);
        list[i].noise = noise;
        z[i] = rng_normal(&small.chance);
    }
    ck_assert(small_factor(&small, h, list, n, factor));
    for (int i = 0; i < n; i++) {
        struct effects at = effects_of(&small.site, &list[i]);
        double value = effects_mean(h, &at);
        for (int j = 0; j <= i; j++)
            value += factor[i * n + j] * z[j];
        list[i].value = (float)value;
    }
}

static double loss_at(const struct hyper *h, int n, double *slope)
{
    struct effects at[MOST];
    double value[MOST], noise[MOST], mine[HYPERS] = { 0 }, loss;
    struct arena a;

    arena_init(&a);
    for (int i = 0; i < n; i++) {
        at[i] = effects_of(&small.site, &list[i]);
        value[i] = (double)list[i].value;
        noise[i] = (double)list[i].noise;
    }
    ck_assert(hyper_loss(&a, h, at, value, noise, n, &loss, slope ? slope : mine, &e) == 0);
    arena_release(&a);
    return loss;
}

/* ln of the root of the determinant, and half the square of what L^-1 makes of the rest. */
static double brute_loss(const struct hyper *h, int n)
{
    double left[MOST], sum = 0;

    ck_assert(small_factor(&small, h, list, n, factor));
    for (int i = 0; i < n; i++) {
        struct effects at = effects_of(&small.site, &list[i]);
        left[i] = (double)list[i].value - effects_mean(h, &at);
    }
    small_solve(factor, n, left);
    for (int i = 0; i < n; i++)
        sum += log(factor[i * n + i]) + left[i] * left[i] / 2;
    return sum;
}

/* Also where each type is shared in another way. */
TIMES(the_loss_is_that_of_brute_force_and_its_slopes_those_of_differences, 2)
{
    enum { N = 40 };
    const double by = 1e-4;
    struct hyper h = small_hyper(&small);
    double slope[HYPERS] = { 0 };

    for (int t = 0; t < SMALL_TYPES && _i == 1; t++)
        small.site.sharing[t] = (enum sharing)(SHARING_TIMESLICE + t);
    simulate(&h, N, 0.05f);
    h = small_hyper(&small);    // not at its least
    ck_assert_double_eq_tol(loss_at(&h, N, slope), brute_loss(&h, N), 1e-8);
    for (int p = 0; p < HYPERS; p++) {
        struct hyper less = h, more = h;
        less.at[p] -= by;
        more.at[p] += by;
        double want = (loss_at(&more, N, NULL) - loss_at(&less, N, NULL)) / (2 * by);
        ck_assert_msg(fabs(slope[p] - want) < 1e-5 * fmax(1, fabs(want)), "%d: %g, differences %g",
                      p, slope[p], want);
    }
}

TEST(a_fit_lowers_the_loss_and_is_the_same_by_the_same_seed)
{
    const struct hyper start = hyper_start();
    struct hyper truth = start, one, same, other;
    struct fit_options quick = { .seed = 1, .n_steps = 25, .n_alone = 20, .n_beside = 30 };

    truth.at[ALONE_MEAN] = 0.8;
    truth.at[BESIDE_MEAN] = -0.6;
    truth.at[ALONE_CELL] += 1.5;
    simulate(&truth, 100, 0.03f);
    struct campaign_readings all[2] = { readings(50), { &small.site, list + 50, 50 } };
    ck_assert_int_eq(hyper_fit(all, 2, &quick, &one, &e), 0);
    ck_assert_int_eq(hyper_fit(all, 2, &quick, &same, &e), 0);
    quick.seed = 2;
    ck_assert_int_eq(hyper_fit(all, 2, &quick, &other, &e), 0);
    ck_assert_mem_eq(&one, &same, sizeof one);
    ck_assert_mem_ne(&one, &other, sizeof one);
    ck_assert_double_lt(loss_at(&one, 100, NULL), loss_at(&start, 100, NULL) - 1);
    ck_assert(one.at[ALONE_MEAN] > 0.2 && one.at[BESIDE_MEAN] < -0.2);
}

static const struct {
    const char *name;
    int at;
    double by;    // of its ln variance, from where the refit begins to where readings are from
} moved[] = {
    { "cells alone differ more", ALONE_CELL, 3 },
    { "cells alone differ less", ALONE_CELL, -3 },
    { "families on a type differ more", ALONE_TYPE_FAMILY, 4 },
    { "cells beside others differ more", BESIDE_CELL, 4 },
    { "neighbours differ more", BESIDE_BY_WORKLOAD, 4 },
};

EACH(a_refit_moves_variances_to_where_readings_are_from, moved)
{
    const struct hyper around = hyper_start();
    struct hyper truth = around, out;
    int at = moved[_i].at;

    truth.at[at] += moved[_i].by;
    simulate(&truth, 120, 0.02f);
    struct campaign_readings site = readings(120);
    ck_assert_int_eq(hyper_refit(&around, &site, 1, &out, &e), 0);
    double by = out.at[at] - around.at[at];
    ck_assert_msg(by * moved[_i].by > 0 && fabs(by) > 0.3 && fabs(by) < 1.5 * fabs(moved[_i].by),
                  "%s: by %g of %g", moved[_i].name, by, moved[_i].by);
    ck_assert_double_lt(loss_at(&out, 120, NULL), loss_at(&around, 120, NULL));
    ck_assert_mem_eq(out.at + VARIANCES, around.at + VARIANCES,
                     (HYPERS - VARIANCES) * sizeof *out.at);
}

TEST(fewer_than_eight_readings_say_nothing_about_variances)
{
    struct hyper around = small_hyper(&small), out = { { 0 } };

    simulate(&around, 8, 0.05f);
    for (int n = 0; n <= 8; n++) {
        struct campaign_readings site = readings(n);
        ck_assert_int_eq(hyper_refit(&around, &site, 1, &out, &e), 0);
        ck_assert_int_eq(memcmp(&out, &around, sizeof out) == 0, n < 8);
    }
}

/* Of no readings, and of such with values times 1, 3, 9 and 27; means are 0. */
TEST(readings_further_off_than_the_model_says_widen_it)
{
    enum { N = 80 };
    const struct hyper h = hyper_start();
    struct hyper_scale last, s;

    simulate(&h, N, 0.03f);
    struct campaign_readings none = readings(0), site = readings(N);
    ck_assert_int_eq(hyper_calibrate(&h, &none, -1, &last, &e), 0);
    ck_assert(last.alone == 1 && last.beside == 1 && last.known == 1);
    for (int times = 0; times < 4; times++, last = s) {
        ck_assert_int_eq(hyper_calibrate(&h, &site, -1, &s, &e), 0);
        ck_assert_msg(times ? s.alone > last.alone && s.beside > last.beside
                            : s.alone >= 1 && s.beside >= 1 && s.alone < 2 && s.beside < 2,
                      "%g %g at %d", s.alone, s.beside, times);
        for (int i = 0; i < N; i++)
            list[i].value *= 3;
    }
}

/* Each workload fast on one type and slow on the next: its mean is as foreseen, its types are not.
 */
TEST(types_that_disagree_widen_what_is_known)
{
    const struct hyper h = hyper_start();
    int n_workloads = small.site.n_workloads, n = 2 * n_workloads;
    struct hyper_scale s;

    for (int i = 0; i < n; i++)
        list[i] = (struct reading){ READ_ALONE, i % 2, i / 2, -1, i / 2 % 2 == i % 2 ? 0.5f : -0.5f,
                                    0.03f };
    struct campaign_readings site = readings(n);
    ck_assert_int_eq(hyper_calibrate(&h, &site, -1, &s, &e), 0);
    ck_assert_msg(s.known > 1.3 * s.alone, "%g %g", s.alone, s.known);
}
