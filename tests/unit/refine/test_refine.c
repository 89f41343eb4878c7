/* One measurement corrects its whole workload, exactly as conditioning says. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/rng.h"
#include "estimate/prior/limits.h"
#include "estimate/p1/p1.h"
#include "estimate/prior/prior.h"
#include "estimate/prior/roofline.h"
#include "refine/p2.h"
#include "refine/refine.h"
#include "store/store.h"
#include "unit/support.h"
#include "unit/suite.h"

static const char three[] =
    "type v100\ntype k80\ntype a100\n"
    "workload a params=1e7 flop_per_sample=1e9 bytes_per_sample=1e7 batch=32\n"
    "workload b params=1e8 flop_per_sample=1e10 bytes_per_sample=1e7 batch=8\n"
    "workload c\n";

/* What p2_relations.c states: how far the roofline's errors agree between GPU types. */
#define OTHER_GPU 0.49

struct school {
    struct world w;
    struct refiner r;
};

static void school_open(struct school *s)
{
    world_init(&s->w, three);
    refiner_init(&s->r, &s->w.catalog, &s->w.est);
}

static void school_close(struct school *s)
{
    refiner_release(&s->r);
    world_release(&s->w);
}

static struct measurement speed_of(int w, int type, int beside, double speed)
{
    return (struct measurement){
        .key = { .workload = w, .gpu_type = type, .neighbour = beside, .n_gpus = 1 },
        .fits = true,
        .throughput = speed,
        .watts = NAN,
        .noise = NAN
    };
}

static void take(struct school *s, const struct measurement *m)
{
    struct err e = { 0 };

    ck_assert_msg(refine_take(&s->r, m, &e) == 0, "%s", e.text);
}

static void settle(struct school *s)
{
    struct err e = { 0 };

    ck_assert_msg(refine_settle(&s->r, &e) >= 0, "%s", e.text);
    estimate_refresh(&s->w.est);
}

static double sd_of(const struct school *s, int w, int type, int beside)
{
    return (double)estimate_cell(&s->w.est, w, type, beside)->sd;
}

/* The mean of ln speed. */
static double believed(const struct school *s, int w, int type, int beside)
{
    double sd = sd_of(s, w, type, beside);

    return log((double)estimate_cell(&s->w.est, w, type, beside)->speed) + sd * sd / 2;
}

/* What the roofline alone says. */
static double prior_mean(const struct school *s, int w, int type, int beside, struct prior *out)
{
    struct roofline on, other;

    roofline(&s->w.catalog.workloads[w], &s->w.catalog.types[type], &on);
    if (beside >= 0)
        roofline(&s->w.catalog.workloads[beside], &s->w.catalog.types[type], &other);
    prior_of(&on, beside < 0 ? NULL : &other, s->w.catalog.types[type].mem_bytes, out);
    return out->ln_speed;
}

TEST(a_measured_cell_is_believed_and_the_others_follow)
{
    struct school s;
    struct prior p;

    school_open(&s);
    double was[3][4], sd[3][4], bystander = believed(&s, 1, 0, 0);
    for (int t = 0; t < 3; t++)
        for (int n = -1; n < 3; n++) {
            was[t][n + 1] = believed(&s, 0, t, n);
            sd[t][n + 1] = sd_of(&s, 0, t, n);
        }
    double truth = prior_mean(&s, 0, 0, -1, &p) + 0.7;
    struct measurement m = speed_of(0, 0, -1, exp(truth));
    take(&s, &m);
    settle(&s);
    double trust = p.alone_sd * p.alone_sd / (p.alone_sd * p.alone_sd + 0.05 * 0.05 + 0.02 * 0.02);
    ck_assert_double_eq_tol(believed(&s, 0, 0, -1) - was[0][0], 0.7 * trust, 1e-4);
    ck_assert_double_eq_tol(believed(&s, 0, 0, -1), truth, 0.02);
    ck_assert_double_lt(sd_of(&s, 0, 0, -1), 0.06);
    for (int t = 1; t < 3; t++)    // other types, by the stated correlation (the sds are alike)
        ck_assert_double_eq_tol(believed(&s, 0, t, -1) - was[t][0], OTHER_GPU * 0.7 * trust, 1e-4);
    for (int t = 0; t < 3; t++)
        for (int n = -1; n < 3; n++)
            ck_assert_double_le(sd_of(&s, 0, t, n), sd[t][n + 1] + 1e-6);
    for (int n = 0; n < 3; n++)    // beside a neighbour the job's own speed counts in full
        ck_assert_double_eq_tol(believed(&s, 0, 0, n) - was[0][n + 1], 0.7 * trust, 1e-4);
    ck_assert_double_eq(believed(&s, 1, 0, 0), bystander);    // and other workloads stay
    school_close(&s);
}

TEST(a_neighbour_s_effect_carries_over_to_other_gpus_and_neighbours)
{
    struct school s;
    struct prior p;

    school_open(&s);
    struct measurement alone = speed_of(0, 0, -1, exp(prior_mean(&s, 0, 0, -1, &p)));
    take(&s, &alone);
    settle(&s);
    double other_gpu = believed(&s, 0, 1, 1), other_neighbour = believed(&s, 0, 0, 2);
    double lonely = believed(&s, 0, 0, -1);
    struct measurement m = speed_of(0, 0, 1, exp(prior_mean(&s, 0, 0, 1, &p) - 0.5));
    take(&s, &m);
    settle(&s);
    ck_assert_double_lt(believed(&s, 0, 1, 1), other_gpu - 0.1);
    ck_assert_double_lt(believed(&s, 0, 0, 2), other_neighbour - 0.1);
    ck_assert_double_eq_tol(believed(&s, 0, 0, -1), lonely, 0.02);    // known well already
    school_close(&s);
}

TEST(certainty_grows_while_measurements_agree)
{
    struct school s;
    struct rng r;
    double sd[3][4];

    rng_init(&r, 1, "refine");
    school_open(&s);
    for (int t = 0; t < 3; t++)
        for (int n = -1; n < 3; n++)
            sd[t][n + 1] = sd_of(&s, 0, t, n);
    for (int i = 0; i < 60; i++) {
        int type = (int)rng_below(&r, 3), beside = (int)rng_below(&r, 4) - 1;
        struct measurement m = speed_of(0, type, beside, exp(type - beside));
        take(&s, &m);
        settle(&s);
        for (int t = 0; t < 3; t++)
            for (int n = -1; n < 3; n++) {
                ck_assert_double_le(sd_of(&s, 0, t, n), sd[t][n + 1] + 1e-6);
                sd[t][n + 1] = sd_of(&s, 0, t, n);
            }
    }
    school_close(&s);
}

TEST(measurements_that_contradict_each_other_give_no_confident_mean)
{
    struct school s;

    school_open(&s);
    struct measurement slow = speed_of(0, 0, -1, 3), fast = speed_of(0, 0, -1, 4e6);
    take(&s, &slow);
    settle(&s);
    double sure = sd_of(&s, 0, 0, -1);
    take(&s, &fast);
    settle(&s);
    ck_assert_double_gt(sd_of(&s, 0, 0, -1), 5 * sure);
    school_close(&s);
}

TEST(an_interval_is_kept_on_both_sides_of_the_mean)
{
    static const struct {
        double at;    // in standard deviations of a measurement
        int is_covered;
    } table[] = { { 1.6, 1 }, { -1.6, 1 }, { 1.7, 0 }, { -1.7, 0 } };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct school s;
        school_open(&s);
        double sd = hypot(sd_of(&s, 0, 0, -1), 0.05);
        struct measurement m = speed_of(0, 0, -1, exp(believed(&s, 0, 0, -1) + table[i].at * sd));
        take(&s, &m);
        ck_assert_int_eq(s.r.n_covered, table[i].is_covered);
        school_close(&s);
    }
}

TEST(many_measurements_converge)
{
    struct school s;
    struct rng r;
    struct prior p;

    rng_init(&r, 2, "refine");
    school_open(&s);
    double truth = prior_mean(&s, 1, 2, 0, &p) + 1.2;
    for (int i = 0; i < 200; i++) {
        struct measurement m = speed_of(1, 2, 0, exp(truth + 0.05 * rng_normal(&r)));
        take(&s, &m);
        settle(&s);
    }
    ck_assert_double_eq_tol(believed(&s, 1, 2, 0), truth, 0.05);
    ck_assert_double_lt(sd_of(&s, 1, 2, 0), 0.04);
    ck_assert_int_eq(s.r.n_measurements, 200);
    ck_assert_double_lt(s.r.sum_abs_error / 200, 0.08);
    ck_assert_int_gt(s.r.n_covered, 150);
    school_close(&s);
}

/* ---- against conditioning written out again ---- */

struct cell_at {
    int type, beside;
    double mean, a, b;
};

static double cov(const struct cell_at *p, const struct cell_at *q)
{
    double own = p->a * q->a * (p->type == q->type ? 1.0 : OTHER_GPU), share;

    if (p->beside < 0 || q->beside < 0)
        return own;
    if (p->type == q->type)
        share = p->beside == q->beside ? 1.0 : 0.6;
    else
        share = p->beside == q->beside ? 0.5 : 0.3;
    return own + p->b * q->b * share;
}

static struct cell_at at(const struct school *s, int w, int type, int beside)
{
    struct prior p;
    double mean = prior_mean(s, w, type, beside, &p);

    return (struct cell_at){ type, beside, mean, p.alone_sd, p.beside_sd };
}

enum { SEEN_MAX = 12 };

/* Solve k x = b in place, by Gauss-Jordan; k is positive definite. */
static void solve(int n, double k[SEEN_MAX][SEEN_MAX], double *b)
{
    for (int c = 0; c < n; c++)
        for (int r = 0; r < n; r++) {
            double f = r == c ? 0 : k[r][c] / k[c][c];
            for (int j = 0; j < n && f != 0; j++)
                k[r][j] -= f * k[c][j];
            b[r] -= f * b[c];
        }
    for (int c = 0; c < n; c++)
        b[c] /= k[c][c];
}

static void condition(const struct school *s, int w, const struct cell_at *target, double *mean,
                      double *sd)
{
    struct cell_at seen[SEEN_MAX];
    double k[2][SEEN_MAX][SEEN_MAX], y[SEEN_MAX], z[SEEN_MAX], drop = 0;
    int n = 0;

    for (int i = 0; i < s->w.catalog.n_cells; i++) {
        const struct cell *c = &s->w.catalog.cells[i];
        if (c->key.workload != w || !c->n_speed)
            continue;
        seen[n] = at(s, w, c->key.gpu_type, c->key.neighbour);
        y[n] = c->ln_speed - seen[n].mean;
        z[n] = cov(target, &seen[n]);
        k[0][n][n] = cell_variance(c) + 0.02 * 0.02;
        n++;
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            k[1][i][j] = k[0][i][j] = cov(&seen[i], &seen[j]) + (i == j ? k[0][i][i] : 0);
    solve(n, k[0], y);
    *mean = target->mean;
    for (int i = 0; i < n; i++)
        *mean += cov(target, &seen[i]) * y[i];
    solve(n, k[1], z);
    for (int i = 0; i < n; i++)
        drop += cov(target, &seen[i]) * z[i];
    *sd = sqrt(fmax(cov(target, target) - drop, 0));
}

TIMES(settling_equals_dense_conditioning, 4)
{
    struct rng r;

    rng_init(&r, (uint64_t)_i, "dense");
    for (int round = 0; round < 20; round++) {
        struct school s;
        school_open(&s);
        for (int i = 1 + (int)rng_below(&r, 12); i > 0; i--) {
            struct measurement m = speed_of((int)rng_below(&r, 3), (int)rng_below(&r, 3),
                                            (int)rng_below(&r, 4) - 1, exp(2 * rng_normal(&r)));
            take(&s, &m);
            if (rng_below(&r, 3) == 0)
                settle(&s);    // how often one settles must not matter
        }
        settle(&s);
        for (int w = 0; w < 3; w++)
            for (int t = 0; t < 3; t++)
                for (int n = -1; n < 3; n++) {
                    struct cell_at target = at(&s, w, t, n);
                    double mean, sd;
                    condition(&s, w, &target, &mean, &sd);
                    ck_assert_double_eq_tol(believed(&s, w, t, n), mean, 1e-4);
                    ck_assert_double_eq_tol(sd_of(&s, w, t, n), sd, 1e-4);
                }
        school_close(&s);
    }
}

TEST(a_newcomer_is_met_with_what_is_known)
{
    struct school s;
    struct prior p;

    school_open(&s);
    struct measurement m = speed_of(0, 0, -1, exp(prior_mean(&s, 0, 0, -1, &p) + 0.9));
    take(&s, &m);
    settle(&s);
    world_add(&s.w, "workload d params=1e7 flop_per_sample=1e9 batch=4\n");
    estimate_refresh(&s.w.est);
    settle(&s);
    double raw = prior_mean(&s, 0, 0, 3, &p);
    ck_assert_double_gt(believed(&s, 0, 0, 3), raw + 0.8);
    ck_assert_double_lt(sd_of(&s, 0, 0, 3), hypot(p.alone_sd, p.beside_sd) - 0.1);
    ck_assert_int_eq(refine_settle(&s.r, NULL), 0);    // and only once
    school_close(&s);
}

/* ---- with a model ---- */

/* A P1 that has seen what is in the catalog. */
static struct p1 *model_of(struct school *s, struct arena *a)
{
    static const bool is_held[8];
    struct holdout v = { .is_held = is_held };
    struct p1_options o = { .seed = 1, .n_nets = 1 };
    struct examples x;
    struct p1 *p1 = NULL;
    struct err e = { 0 };

    examples_take(a, &s->w.catalog, EXAMPLES_PAIRS_MAX, 1, &x);
    ck_assert_msg(p1_train(&x, &v, &o, &p1, &e) == 0, "%s", e.text);
    return p1;
}

/* From here on it is estimated by a model of what has been measured. */
static struct p1 *use_model(struct school *s, struct arena *a)
{
    settle(s);
    struct p1 *p1 = model_of(s, a);
    estimate_use(&s->w.est, p1);
    refine_use(&s->r, NULL);
    estimate_refresh(&s->w.est);
    return p1;
}

/* What P2 makes of the observations of workload 0 says the table. */
static void assert_refined(const struct school *s, struct arena *a, int n,
                           const struct p2_observation *seen)
{
    const struct p1_context *context = s->w.est.context;
    struct p2_estimates b;
    struct err e = { 0 };

    p2_estimates_make(a, s->w.est.n_types, s->w.est.n_workloads, false, &b);
    p2_estimates_from_p1(context, 0, &b);
    ck_assert_msg(p2_refine(a, NULL, P2_CHAMPION, &(struct p2_sightings){ n, seen }, &b, &e) == 0,
                  "%s", e.text);
    for (int g = 0; g < b.n_types; g++) {
        ck_assert_double_eq_tol(believed(s, 0, g, -1), (double)b.alone[g], 1e-4);
        ck_assert_double_eq_tol(sd_of(s, 0, g, -1), (double)b.alone_sd[g], 1e-4);
        for (int j = 0; j < b.n_neighbours; j++) {
            int at = g * b.n_neighbours + j;
            ck_assert_double_eq_tol(believed(s, 0, g, j), (double)(b.alone[g] + b.own[at]), 1e-4);
            ck_assert_double_eq_tol(sd_of(s, 0, g, j), (double)b.pair_sd[at], 1e-4);
        }
    }
}

TEST(with_a_model_its_beliefs_are_corrected)
{
    struct school s;
    struct arena a;
    struct p2_observation seen[2] = {
        { 0, -1, 2.0, 0.05 * 0.05, (double)NAN, 0, (double)NAN },
        { 1, 1, -0.5, 0.05 * 0.05, (double)NAN, 0, (double)NAN },
    };

    arena_init(&a);
    school_open(&s);
    for (int i = 0; i < 2; i++) {    // still by the roofline
        struct measurement m = speed_of(0, seen[i].type, seen[i].neighbour, exp(seen[i].ln_speed));
        take(&s, &m);
    }
    struct p1 *p1 = use_model(&s, &a);
    settle(&s);    // what was believed of measured workloads is made anew
    assert_refined(&s, &a, 2, seen);
    world_add(&s.w, "workload d params=1e7 flop_per_sample=1e9 batch=4\n");
    estimate_refresh(&s.w.est);
    settle(&s);    // and a newcomer is met as if it had always been there
    assert_refined(&s, &a, 2, seen);
    school_close(&s);
    p1_destroy(p1);
    arena_release(&a);
}

/* Workload c is new to the model. What it does to a says something of what it does to b, which
 * was measured alone only, and nothing of what a does to b.
 */
TEST(what_a_newcomer_does_to_one_is_believed_of_others)
{
    struct school s;
    struct arena a;
    struct measurement alone[] = { speed_of(0, 0, -1, 8), speed_of(1, 0, -1, 3) };
    struct measurement beside = speed_of(0, 0, 2, 8 * 0.2);    // c slows a down by much

    arena_init(&a);
    school_open(&s);
    take(&s, &alone[0]);
    take(&s, &alone[1]);
    struct p1 *p1 = use_model(&s, &a);
    settle(&s);
    double b_beside_c = believed(&s, 1, 0, 2), b_beside_a = believed(&s, 1, 0, 0);
    double sd = sd_of(&s, 1, 0, 2), was = believed(&s, 1, 0, -1);
    take(&s, &beside);
    settle(&s);
    ck_assert_double_lt(believed(&s, 1, 0, 2), b_beside_c - 0.05);
    ck_assert_double_lt(sd_of(&s, 1, 0, 2), sd);
    ck_assert_double_eq_tol(believed(&s, 1, 0, 0), b_beside_a, 1e-5);
    ck_assert_double_eq_tol(believed(&s, 1, 0, -1), was, 1e-5);
    double learned = believed(&s, 1, 0, 2);
    take(&s, &alone[1]);    // a row with news of its own keeps what the column said
    settle(&s);
    ck_assert_double_eq_tol(believed(&s, 1, 0, 2), learned, 0.05);
    school_close(&s);
    p1_destroy(p1);
    arena_release(&a);
}

/* ---- what is believed live is what is believed after a restart ---- */

/* A refiner that finds the catalog as it is now, and its measurements, believes the same. */
static void assert_as_loaded(const struct school *s, const struct p1 *p1, double tolerance)
{
    struct school again = { 0 };
    double mean[8][4][9], sd[8][4][9];
    int n = s->w.est.n_workloads, n_types = s->w.est.n_types;

    for (int i = 0; i < n * n_types * (n + 1); i++) {
        int w = i % n, g = i / n % n_types, beside = i / n / n_types - 1;
        mean[w][g][beside + 1] = believed(s, w, g, beside);
        sd[w][g][beside + 1] = sd_of(s, w, g, beside);
    }
    estimator_init(&again.w.est, s->r.catalog, 1);
    refiner_init(&again.r, s->r.catalog, &again.w.est);
    estimate_use(&again.w.est, p1);
    estimate_meet(&again.w.est);
    settle(&again);
    for (int i = 0; i < n * n_types * (n + 1); i++) {
        int w = i % n, g = i / n % n_types, beside = i / n / n_types - 1;
        double was = mean[w][g][beside + 1], is = believed(&again, w, g, beside);
        ck_assert_msg(fabs(was - is) < tolerance &&
                          fabs(sd[w][g][beside + 1] - sd_of(&again, w, g, beside)) < tolerance,
                      "%d on %d beside %d: live %g +- %g, loaded %g +- %g", w, g, beside, was,
                      sd[w][g][beside + 1], is, sd_of(&again, w, g, beside));
    }
    refiner_release(&again.r);
    estimator_release(&again.w.est);
}

/* All of a type becomes faster or slower; nobody runs the last workload by then. */
TIMES(live_equals_loaded_after_a_drift, 3)
{
    static const double factors[] = { 1.15, 1.4, 0.7 };
    struct school s;
    struct rng chance;

    rng_init(&chance, (uint64_t)_i, "refine");
    school_open(&s);
    world_add(&s.w, "workload d params=1e7 flop_per_sample=1e9 batch=4\n");
    estimate_refresh(&s.w.est);
    struct measurement once[] = { speed_of(3, 0, -1, 7), speed_of(0, 1, -1, 5) };
    take(&s, &once[0]);
    take(&s, &once[1]);
    for (int round = 0; round < 48; round++) {
        for (int w = 0; w < 3; w++) {
            double factor = round < 30 ? 1 : factors[_i];
            struct measurement m =
                speed_of(w, 0, -1, 10 * factor * exp(0.03 * rng_normal(&chance)));
            m.noise = 0.03;
            m.time_s = round;
            take(&s, &m);
        }
        settle(&s);
    }
    ck_assert_int_eq(s.w.catalog.type_drift[0].n_drifts, 1);
    assert_as_loaded(&s, NULL, 0.012);
    school_close(&s);
}

TEST(a_new_type_is_met_with_what_is_known)
{
    struct school s;
    struct arena a;
    struct measurement m[] = { speed_of(0, 0, -1, 8), speed_of(1, 0, -1, 3) };
    struct measurement beside = speed_of(0, 0, 2, 4);
    int type;

    arena_init(&a);
    school_open(&s);
    take(&s, &m[0]);
    take(&s, &m[1]);
    struct p1 *p1 = use_model(&s, &a);
    take(&s, &beside);
    settle(&s);
    ck_assert_int_eq(catalog_add_type(&s.w.catalog, gpu_type_builtin("p100"), &type, NULL), 0);
    estimate_meet(&s.w.est);
    settle(&s);
    assert_as_loaded(&s, p1, 1e-4);
    school_close(&s);
    p1_destroy(p1);
    arena_release(&a);
}

/* What c, new to the model, does to a, then to b; d never meets it. */
static const double effects[][2] = { { 0.2, 0.3 }, { 0.99, 0.2 }, { 0.99, 0.98 }, { 0.3, 0.9 } };

EACH(what_a_newcomer_does_is_what_p2_says_of_partners_live_and_loaded, effects)
{
    struct school s;
    struct arena a;
    struct p2_estimates before, after;
    struct err e = { 0 };

    arena_init(&a);
    school_open(&s);
    world_add(&s.w, "workload d params=1e7 flop_per_sample=1e9 batch=4\n");
    estimate_refresh(&s.w.est);
    struct measurement alone[] = { speed_of(0, 0, -1, 8), speed_of(1, 0, -1, 3),
                                   speed_of(3, 0, -1, 5) };
    for (int i = 0; i < 3; i++)
        take(&s, &alone[i]);
    struct p1 *p1 = use_model(&s, &a);
    settle(&s);
    double was[3], lonely[3];
    for (int g = 0; g < 3; g++) {
        was[g] = believed(&s, 3, g, 2);
        lonely[g] = believed(&s, 3, g, -1);
    }
    struct measurement m = speed_of(0, 0, 2, 8 * effects[_i][0]);
    take(&s, &m);
    settle(&s);
    struct p2_observation seen = {
        0, 0, (double)NAN, 0, log(effects[_i][0]), 2 * 0.05 * 0.05, (double)NAN
    };
    p2_estimates_make(&a, 3, 4, true, &before);
    p2_estimates_make(&a, 3, 4, true, &after);
    p2_estimates_from_p1(s.w.est.context, 2, &before);
    p2_estimates_from_p1(s.w.est.context, 2, &after);
    ck_assert_int_eq(
        p2_refine(&a, NULL, P2_CHAMPION, &(struct p2_sightings){ 1, &seen }, &after, &e), 0);
    for (int g = 0; g < 3; g++) {
        double shift = (double)(after.partner[g * 4 + 3] - before.partner[g * 4 + 3]);
        ck_assert_double_eq_tol(believed(&s, 3, g, 2), fmin(was[g] + shift, lonely[g]), 1e-4);
    }
    assert_as_loaded(&s, p1, 1e-4);
    m = speed_of(1, 0, 2, 3 * effects[_i][1]);
    take(&s, &m);
    settle(&s);
    assert_as_loaded(&s, p1, 1e-4);
    m = speed_of(0, 0, -1, 9);    // what it did to a was something else, then
    take(&s, &m);
    settle(&s);
    assert_as_loaded(&s, p1, 1e-4);
    school_close(&s);
    p1_destroy(p1);
    arena_release(&a);
}

TEST(watts_are_corrected_on_all_types)
{
    struct school s;
    struct roofline on;

    school_open(&s);
    roofline(&s.w.catalog.workloads[0], &s.w.catalog.types[0], &on);
    double prior = roofline_watts(&on, &s.w.catalog.types[0]);
    double k80 = s.w.est.alone_w[1];
    struct measurement m = speed_of(0, 0, -1, 10);
    m.watts = prior * 1.2;
    take(&s, &m);
    settle(&s);
    double trust = 0.25 * 0.25 / (0.25 * 0.25 + 0.05 * 0.05);
    ck_assert_double_eq_tol(s.w.est.alone_w[0], prior * pow(1.2, trust), 1e-2);
    ck_assert_double_eq_tol(s.w.est.alone_w[1], k80 * pow(1.2, 0.5 * trust), 1e-2);
    school_close(&s);
}

TEST(gangs_and_misfits_correct_nothing)
{
    struct school s;

    school_open(&s);
    double was = believed(&s, 0, 0, -1);
    struct measurement m[] = { speed_of(0, 0, -1, 1e-3), speed_of(0, 0, -1, NAN) };
    m[0].key.n_gpus = 4;
    m[1].fits = false;
    for (int i = 0; i < 2; i++)
        take(&s, &m[i]);
    settle(&s);
    ck_assert_double_eq_tol(believed(&s, 0, 0, -1), was, 1e-5);
    ck_assert_int_eq(s.r.n_measurements, 0);
    m[0].throughput = -1;
    ck_assert_int_eq(refine_take(&s.r, &m[0], NULL), -EINVAL);
    school_close(&s);
}

TEST(what_a_limit_shows_counts_as_without_it)
{
    struct school s;
    struct cell_key key = { .n_gpus = 1, .neighbour = -1 };

    school_open(&s);
    const struct gpu_type *type = &s.w.catalog.types[0];
    double w0 = 0.8 * type->cap_w;
    int limit_w = (int)w0;    // the law takes peaks only, and watts tell
    struct limited at = limits_apply(type, limit_w, w0);
    struct measurement m = speed_of(0, 0, -1, 10 * at.speed);
    m.watts = at.watts;
    m.key.limit_w = limit_w;
    take(&s, &m);
    const struct cell *seen = catalog_cell(&s.w.catalog, key);
    ck_assert_double_eq_tol(exp(seen->ln_speed), 10, 1e-3);
    ck_assert_double_eq_tol(exp(seen->ln_watts), w0, 1e-3 * w0);
    ck_assert_int_eq(s.r.n_measurements, 1);
    school_close(&s);
}

/* A speed alone of 10 steps/s and 200 W without a limit, under one of 'limit_w' (0: none), for who
 * loses 'loss' times what the law says.
 */
static struct measurement under(const struct school *s, int limit_w, double loss)
{
    const struct gpu_type *type = &s->w.catalog.types[0];
    struct limited at =
        limits_bent(type, limit_w, 200, (struct limit_bend){ .loss = loss, .draw = 1 });
    struct measurement m = speed_of(0, 0, -1, 10 * at.speed);

    m.watts = at.watts;
    m.key.limit_w = limit_w;
    return m;
}

static double pace_at(const struct school *s, int limit_w)
{
    return estimate_limited(&s->w.est, 0, (int[]){ 0 }, NULL, 1, limit_w).speed;
}

TEST(what_limits_take_is_learned_from_speeds_under_two_of_them)
{
    struct school s;
    const double law = 0.634;    // of 200 W at 105, cf. test_limits.c

    school_open(&s);
    for (int i = 0; i < 8; i++) {    // one limit tells nothing of limits
        struct measurement m = under(&s, i == 0 ? 0 : 105, 1.6);
        m.noise = i == 0 ? 1 : m.noise;    // but that it draws 200 W
        take(&s, &m);
        settle(&s);
    }
    ck_assert_double_eq_tol(pace_at(&s, 105), law, 0.03);
    ck_assert_double_eq_tol(believed(&s, 0, 0, -1) + log(pace_at(&s, 105)),
                            log(10) + 1.6 * log(law), 0.02);
    for (int i = 0; i < 8; i++) {
        struct measurement m = under(&s, 0, 1.6);
        take(&s, &m);
        settle(&s);
    }
    ck_assert_double_eq_tol(log(pace_at(&s, 105)), 1.58 * log(law), 0.02);
    ck_assert_double_eq_tol(believed(&s, 0, 0, -1), log(10), 0.02);
    ck_assert_double_eq_tol(s.w.est.bend[1 * s.w.est.n_types].loss, 1, 1e-6);    // another family
    school_close(&s);
}

TEST(under_a_deep_limit_watts_say_nothing_about_other_ones)
{
    struct school s;
    struct cell_key key = { .n_gpus = 1, .neighbour = -1 };

    school_open(&s);
    struct measurement m = under(&s, 105, 1);
    m.watts = 105;    // a little more than the law allows to anybody
    take(&s, &m);
    const struct cell *seen = catalog_cell(&s.w.catalog, key);
    ck_assert_int_eq(seen->n_watts, 0);
    double w0 = estimate_watts(&s.w.est, 0, (int[]){ 0 }, NULL, 1);
    double pace = limits_apply(&s.w.catalog.types[0], 105, w0).speed;
    ck_assert_double_eq_tol(exp(seen->ln_speed), m.throughput / pace, 1e-6);
    school_close(&s);
}

TEST(who_is_frozen_keeps_its_mind_and_counts_its_errors)
{
    struct school s;

    school_open(&s);
    s.r.is_frozen = true;
    double was = believed(&s, 0, 0, -1);
    struct measurement m = speed_of(0, 0, -1, 2 * exp(was));
    take(&s, &m);
    settle(&s);
    ck_assert_double_eq(believed(&s, 0, 0, -1), was);
    ck_assert_int_eq(s.r.n_measurements, 1);
    school_close(&s);
}

TEST(a_type_that_nobody_described_spoils_no_other)
{
    struct school s;
    struct gpu_type mystery = { .name = "mystery" };
    struct prior p;
    int type;

    school_open(&s);
    ck_assert_int_eq(catalog_add_type(&s.w.catalog, &mystery, &type, NULL), 0);
    estimate_refresh(&s.w.est);
    struct measurement m[] = { speed_of(0, type, -1, 25), speed_of(0, 0, -1, 10) };
    m[0].watts = 120;
    take(&s, &m[0]);
    take(&s, &m[1]);
    settle(&s);
    ck_assert_double_eq_tol(believed(&s, 0, 0, -1), log(10), 0.05);
    ck_assert_double_eq_tol(believed(&s, 0, type, -1), log(25), 0.05);
    for (int t = 0; t < 4; t++)
        ck_assert(isfinite(s.w.est.alone_w[t]) && s.w.est.alone_w[t] > 0);
    ck_assert(isfinite(prior_mean(&s, 0, type, -1, &p)));
    school_close(&s);
}

TEST(every_measured_cell_is_believed_however_many_there_are)
{
    struct school s;
    struct prior p;
    char line[64];
    int n = 0;

    school_open(&s);
    for (int i = 0; i < 40; i++) {
        snprintf(line, sizeof line, "workload more%d params=1e7\n", i);
        world_add(&s.w, line);
    }
    estimate_refresh(&s.w.est);
    for (int t = 0; t < 3; t++)    // as an import does: all at the same time
        for (int beside = -1; beside < 43; beside++, n++) {
            double shift = n % 2 ? 0.3 : -0.3;
            struct measurement m =
                speed_of(0, t, beside, exp(prior_mean(&s, 0, t, beside, &p) + shift));
            take(&s, &m);
        }
    settle(&s);
    n = 0;
    for (int t = 0; t < 3; t++)
        for (int beside = -1; beside < 43; beside++, n++)
            ck_assert_msg(fabs(believed(&s, 0, t, beside) - prior_mean(&s, 0, t, beside, &p) -
                               (n % 2 ? 0.3 : -0.3)) < 0.1,
                          "type %d beside %d is off by %g", t, beside,
                          believed(&s, 0, t, beside) - prior_mean(&s, 0, t, beside, &p) -
                              (n % 2 ? 0.3 : -0.3));
    school_close(&s);
}

TEST(with_a_store_a_measurement_is_on_disk)
{
    struct catalog c;
    struct estimator est;
    struct refiner r;
    struct store *store;
    struct workload w;
    struct err e = { 0 };
    int index;

    ck_assert_int_eq(store_open(":memory:", STORE_CREATE, &store, &e), 0);
    catalog_init(&c);
    ck_assert_int_eq(catalog_load(&c, store, &e), 0);
    workload_init(&w, "w");
    ck_assert_int_eq(store_begin(store, &e), 0);
    ck_assert_int_eq(catalog_add_type(&c, gpu_type_builtin("v100"), &index, &e), 0);
    ck_assert_int_eq(catalog_add_workload(&c, &w, &index, &e), 0);
    ck_assert_int_eq(store_commit(store, &e), 0);
    estimator_init(&est, &c, 1);
    estimate_refresh(&est);
    refiner_init(&r, &c, &est);
    struct measurement m = speed_of(0, 0, -1, 3);
    ck_assert_msg(refine_take(&r, &m, &e) == 0, "%s", e.text);
    ck_assert_int_eq(count_rows(store, "measurements"), 1);
    refiner_release(&r);
    estimator_release(&est);
    catalog_release(&c);
    store_close(store);
}
