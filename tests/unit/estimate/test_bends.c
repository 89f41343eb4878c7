/* What is learned of limits from speeds under several of them. */
#include <math.h>

#include "base/rng.h"
#include "catalog/catalog.h"
#include "estimate/bends.h"
#include "unit/suite.h"

enum { TYPES = 2, KIN = 1, STRANGER = 2, LONER = 3, LAST = 100 };

static struct catalog c;
static struct bends b;

/* Workloads 0 and 1 are a family, 2 is one of its own, and all others are of none. */
static void set_up(void)
{
    int index;

    catalog_init(&c);
    ck_assert_int_eq(catalog_add_type(&c, gpu_type_builtin("v100"), &index, NULL), 0);
    ck_assert_int_eq(catalog_add_type(&c, gpu_type_builtin("k80"), &index, NULL), 0);
    for (int i = 0; i <= LAST; i++) {
        struct workload w;
        char name[16];

        snprintf(name, sizeof name, "w%d", i);
        workload_init(&w, name);
        w.family = i < STRANGER ? "kin" : i == STRANGER ? "strange" : NULL;
        ck_assert_int_eq(catalog_add_workload(&c, &w, &index, NULL), 0);
    }
}

static void tear_down(void)
{
    bends_release(&b);
    catalog_release(&c);
}

FIXTURE(set_up, tear_down)

static void see(int workload, int type, double ln_pace, struct limit_reading seen)
{
    struct measurement m = {
        .key = { .workload = workload, .gpu_type = type, .neighbour = -1, .n_gpus = 1 },
        .fits = true,
        .throughput = exp(seen.ln_speed),
        .watts = NAN,
        .noise = NAN,
        .ln_pace = ln_pace,
        .seen = seen
    };

    ck_assert_int_eq(catalog_record(&c, &m, 0, NULL), 0);
    bends_meet(&b, &c);
}

static void see_speed(int workload, int type, double ln_pace, double ln_speed, double noise)
{
    see(workload, type, ln_pace, (struct limit_reading){ .ln_speed = ln_speed, .noise = noise });
}

static void see_watts(double ln_law_w, double ln_watts)
{
    see(0, 0, 0,
        (struct limit_reading){ .ln_law_w = ln_law_w, .ln_watts = ln_watts, .watts_noise = 0.05 });
}

static const double deep = -0.5;    // ln factor of a deep limit, by the law

/* 'n' speeds without a limit, and as many under a deep one, which takes 'loss' times what it says.
 */
static void see_both(int workload, int type, double loss, int n)
{
    for (int i = 0; i < n; i++) {
        see_speed(workload, type, 0, 2, 0.05);
        see_speed(workload, type, deep, 2 + loss * deep, 0.05);
    }
}

static void assert_law(struct limit_bend is)
{
    ck_assert_double_eq(is.loss, 1);
    ck_assert_double_eq(is.draw, 1);
    ck_assert_double_eq_tol(is.loss_sd, LIMITS_LOSS_SD, 1e-12);
    ck_assert_double_eq(is.at, 0);
}

TEST(of_whom_nothing_was_seen_the_law_is_believed)
{
    assert_law(bends_of(&b, &c, 0, 0));
    see_both(0, 0, 1.8, 5);
    assert_law(bends_of(&b, &c, 0, 1));           // on another type
    assert_law(bends_of(&b, &c, STRANGER, 0));    // of another family
    assert_law(bends_of(&b, &c, LONER, 0));       // of none
    assert_law(bends_of(&b, &c, LAST, 0));        // who came later
}

TEST(who_has_no_family_has_nobody_s_bends)
{
    see_both(LONER, 0, 1.8, 5);
    assert_law(bends_of(&b, &c, LONER + 1, 0));
    assert_law(bends_of(&b, &c, 0, 0));
}

TEST(speeds_under_one_limit_say_where_they_were_measured_and_nothing_else)
{
    for (int i = 0; i < 20; i++)
        see_speed(0, 0, deep, i % 2, 0.05);
    struct limit_bend is = bends_of(&b, &c, 0, 0);
    ck_assert_double_eq(is.loss, 1);
    ck_assert_double_eq_tol(is.loss_sd, LIMITS_LOSS_SD, 1e-12);
    ck_assert_double_eq_tol(is.at, deep, 1e-12);
}

TEST(under_two_limits_the_slope_is_learned_and_surer_with_each)
{
    double sd = LIMITS_LOSS_SD, off = 1;

    for (int i = 0; i < 8; i++) {
        see_both(0, 0, 1.6, 1);
        struct limit_bend is = bends_of(&b, &c, 0, 0);
        ck_assert_double_lt(is.loss_sd, sd);
        ck_assert(is.loss < 1.6 && 1.6 - is.loss < off);
        ck_assert_double_eq_tol(is.at, deep / 2, 1e-12);
        sd = is.loss_sd;
        off = 1.6 - is.loss;
    }
    ck_assert_double_lt(off, 0.03);
    ck_assert_double_lt(sd, 0.06);
}

/* A line y = a + (1 + d) x with a free, d from N(0, LIMITS_LOSS_SD^2): by sums over all pairs of
 * points, sum of w_i w_j (x_i - x_j)(y_i - y_j) and of (x_i - x_j)^2, over the sum of weights.
 */
TIMES(without_kin_it_is_a_regression_with_a_prior, 10)
{
    enum { N = 12 };
    double x[N], y[N], weight[N], xx = 0, xy = 0, all = 0, at = 0;
    const double prior = LIMITS_LOSS_SD * LIMITS_LOSS_SD;
    struct rng r;

    rng_init(&r, (uint64_t)_i, "bends");
    for (int i = 0; i < N; i++) {
        double noise = rng_between(&r, 0.02, 0.2);
        x[i] = -rng_uniform(&r);
        y[i] = 3 + 1.3 * x[i] + noise * rng_normal(&r);
        weight[i] = 1 / (noise * noise);
        all += weight[i];
        at += weight[i] * x[i];
        see_speed(STRANGER, 1, x[i], y[i], noise);
    }
    for (int i = 0; i < N; i++)
        for (int k = 0; k < i; k++) {
            double w = weight[i] * weight[k] / all;
            xx += w * (x[i] - x[k]) * (x[i] - x[k]);
            xy += w * (x[i] - x[k]) * (y[i] - y[k] - (x[i] - x[k]));
        }
    struct limit_bend is = bends_of(&b, &c, STRANGER, 1);
    ck_assert_double_eq_tol(is.loss, 1 + xy / (xx + 1 / prior), 1e-9);
    ck_assert_double_eq_tol(is.loss_sd, sqrt(1 / (xx + 1 / prior)), 1e-9);
    ck_assert_double_eq_tol(is.at, at / all, 1e-9);
}

/* A line through 0 with a prior around the law; the family's part of it stands in for kin. */
TEST(watts_teach_how_deep_a_limit_takes_them)
{
    double weight = 0;

    for (int i = 1; i <= 6; i++) {
        double x = -0.15 * i;
        see_watts(x, 1.2 * x);
        weight += x * x / (0.05 * 0.05);
    }
    double prior = LIMITS_DRAW_SD * LIMITS_DRAW_SD;
    struct limit_bend own = bends_of(&b, &c, 0, 0), kin = bends_of(&b, &c, KIN, 0);
    ck_assert_double_eq_tol(own.draw, 1 + 0.2 * weight * prior / (weight * prior + 1), 1e-9);
    ck_assert(kin.draw > 1.05 && kin.draw < own.draw);
    ck_assert_double_eq(bends_of(&b, &c, STRANGER, 0).draw, 1);
    ck_assert(own.loss == 1 && own.at == 0);    // speeds are another matter
    for (int i = 0; i < 1000; i++)
        see_watts(-1, -9);
    ck_assert_double_eq(bends_of(&b, &c, 0, 0).draw, 2);    // as far as it goes
}

TEST(kin_stand_in_for_what_one_has_not_shown_and_less_surely)
{
    see_both(0, 0, 1.5, 50);
    struct limit_bend own = bends_of(&b, &c, 0, 0), kin = bends_of(&b, &c, KIN, 0);
    ck_assert(kin.loss > 1.2 && kin.loss < own.loss);
    ck_assert(kin.loss_sd < LIMITS_LOSS_SD && kin.loss_sd > 2 * own.loss_sd);
    ck_assert_double_eq(kin.at, 0);    // it was never measured itself
    see_both(KIN, 0, 0.8, 50);
    ck_assert_double_eq_tol(bends_of(&b, &c, KIN, 0).loss, 0.8, 0.02);
    ck_assert_double_lt(bends_of(&b, &c, 0, 0).loss, own.loss);    // and it tells of the other
    ck_assert_double_eq_tol(bends_of(&b, &c, 0, 0).loss, 1.5, 0.02);
}

static const struct {
    double slope, want;
} extremes[] = { { 9, 3 }, { -9, 1.0 / 3 } };

EACH(no_bend_is_believed_beyond_a_third_and_three_times_the_law, extremes)
{
    see_both(0, 0, extremes[_i].slope, 500);
    ck_assert_double_eq_tol(bends_of(&b, &c, 0, 0).loss, extremes[_i].want, 1e-12);
}

TEST(workloads_may_come_in_any_order)
{
    see_both(0, 0, 1.5, 3);
    struct limit_bend was = bends_of(&b, &c, 0, 0);
    see_both(LAST, 1, 0.7, 50);
    ck_assert_double_eq_tol(bends_of(&b, &c, LAST, 1).loss, 0.7, 0.02);
    see_both(70, 1, 1.4, 50);
    ck_assert_double_eq_tol(bends_of(&b, &c, 70, 1).loss, 1.4, 0.02);
    ck_assert_double_eq(bends_of(&b, &c, 0, 0).loss, was.loss);
    assert_law(bends_of(&b, &c, 69, 1));
}

TEST(a_new_type_makes_nobody_forget)
{
    int index;

    see_both(0, 0, 1.5, 5);
    see_both(LAST, 1, 1.5, 5);
    struct limit_bend first = bends_of(&b, &c, 0, 0), last = bends_of(&b, &c, LAST, 1);
    ck_assert_int_eq(catalog_add_type(&c, gpu_type_builtin("p100"), &index, NULL), 0);
    assert_law(bends_of(&b, &c, 0, index));    // before anybody has looked, too
    see_speed(LONER, index, deep, 1, 0.05);
    ck_assert_double_eq(bends_of(&b, &c, 0, 0).loss, first.loss);
    ck_assert_double_eq(bends_of(&b, &c, LAST, 1).loss, last.loss);
    assert_law(bends_of(&b, &c, LAST, index));
    ck_assert_double_eq_tol(bends_of(&b, &c, LONER, index).at, deep, 1e-12);
}

/* Beside another, in a gang, of another site: nothing of that is about limits alone. */
TEST(only_cells_of_one_alone_are_looked_at)
{
    const struct cell_key others[] = { { .neighbour = 1, .n_gpus = 1 },
                                       { .neighbour = -1, .n_gpus = 2 } };

    for (int i = 0; i < 2; i++) {
        struct measurement m = { .key = others[i],
                                 .fits = true,
                                 .throughput = 2,
                                 .watts = NAN,
                                 .noise = NAN,
                                 .ln_pace = deep,
                                 .seen = { .ln_speed = 1, .noise = 0.05 } };
        ck_assert_int_eq(catalog_record(&c, &m, 0, NULL), 0);
    }
    bends_meet(&b, &c);
    assert_law(bends_of(&b, &c, 0, 0));
}
