/* The roofline, the prior and the power of sharing: by hand, and what must always hold. */
#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "catalog/gpu_type.h"
#include "catalog/workload.h"
#include "estimate/prior/power.h"
#include "estimate/prior/prior.h"
#include "estimate/prior/roofline.h"
#include "unit/suite.h"

/* Round figures: 10 TFLOP/s, 100 GB/s, 10 us a launch. */
static const struct gpu_type plain = { .name = "plain",
                                       .peak_fp32_flops = 10e12,
                                       .peak_fp16_flops = 40e12,
                                       .bandwidth_bytes_s = 100e9,
                                       .mem_bytes = 10e9,
                                       .launch_s = 10e-6,
                                       .idle_w = 50,
                                       .sleep_w = 10,
                                       .cap_w = 250 };

static struct workload workload_of(double flop, double bytes, double kernels, double ms)
{
    struct workload w;

    workload_init(&w, "w");
    w.batch = 1;
    w.params = 0;
    w.flop_per_sample = flop;
    w.bytes_per_sample = bytes;
    w.kernels_per_step = kernels;
    w.cpu_ms_per_sample = 0;
    w.cpu_ms_per_step = ms;
    return w;
}

TEST(the_four_times_are_summed)
{
    struct workload w = workload_of(4e12, 40e9, 1000, 200);
    struct roofline r;

    roofline(&w, &plain, &r);
    ck_assert_double_eq_tol(r.compute_s, 1, 1e-12);    // 4e12 / (0.40 * 10e12)
    ck_assert_double_eq_tol(r.memory_s, 1, 1e-12);     // 40e9 / (0.40 * 100e9)
    ck_assert_double_eq_tol(r.launch_s, 0.01, 1e-12);
    ck_assert_double_eq_tol(r.host_s, 0.2, 1e-12);
    ck_assert_double_eq_tol(r.step_s, 2.21, 1e-12);
    ck_assert_int_eq(r.n_unknown, 0);
    w.is_inference = true;
    roofline(&w, &plain, &r);
    ck_assert_double_eq_tol(r.compute_s, 0.25, 1e-12);    // half precision
}

/* 4e12 FLOP at 0.40 of a rate: of 10, 90, 160, 250 and 640 TFLOP/s by precision. */
static const struct {
    const char *name;
    enum precision precision;
    bool is_inference;
    double want_s;
} rates[] = {
    { "fp32 stays outside of tensor cores", PRECISION_FP32, false, 1 },
    { "tf32 is between both", PRECISION_TF32, false, 10.0 / 30 },
    { "fp16 is between fp32 and fp16", PRECISION_FP16, false, 10.0 / 40 },
    { "fp8", PRECISION_FP8, false, 10.0 / 50 },
    { "int8", PRECISION_INT8, false, 10.0 / 80 },
    { "training that nobody said anything of is as tf32", PRECISION_UNKNOWN, false, 10.0 / 30 },
    { "what serves is tuned for fp16", PRECISION_UNKNOWN, true, 10.0 / 160 },
    { "what is said counts for inference too", PRECISION_FP32, true, 1 },
};

EACH(a_program_computes_at_the_rate_of_its_precision, rates)
{
    struct workload w = workload_of(4e12, 40e9, 1000, 200);
    struct gpu_type g = plain;
    struct roofline r;

    g.peak_tf32_flops = 90e12;
    g.peak_fp16_flops = 160e12;
    g.peak_fp8_flops = 250e12;
    g.peak_int8_flops = 640e12;
    w.precision = rates[_i].precision;
    w.is_inference = rates[_i].is_inference;
    roofline(&w, &g, &r);
    ck_assert_double_eq_tol(r.compute_s, rates[_i].want_s, 1e-12);
    ck_assert_int_eq(r.n_unknown, 0);
}

TEST(a_device_without_tensor_cores_computes_at_its_one_rate)
{
    static const char *const old[] = { "k80", "p40", "p100", "v100" };
    struct workload w = workload_of(4e12, 40e9, 1000, 200);
    struct roofline r;

    for (int i = 0; i < (int)N_ROWS(old); i++)
        for (int p = PRECISION_UNKNOWN; p <= PRECISION_TF32; p++) {
            const struct gpu_type *g = gpu_type_builtin(old[i]);
            w.precision = (enum precision)p;
            roofline(&w, g, &r);
            ck_assert_double_eq(r.compute_s, 4e12 / (0.40 * g->peak_fp32_flops));
        }
}

TEST(newer_and_larger_boards_are_faster_at_large_models)
{
    static const char *const rising[] = { "k80", "p100", "v100", "a10", "a100", "h100", "b200" };
    struct workload w = workload_of(6e12, 40e9, 4700, 47);
    struct roofline r;
    double last_s = INFINITY;

    for (int i = 0; i < (int)N_ROWS(rising); i++) {
        roofline(&w, gpu_type_builtin(rising[i]), &r);
        ck_assert_msg(r.step_s < last_s, "%s", rising[i]);
        last_s = r.step_s;
    }
}

TEST(slowdown_and_watts_by_hand)
{
    struct roofline busy = { .step_s = 1, .compute_s = 1 };
    struct roofline half = { .step_s = 1, .memory_s = 0.5, .host_s = 0.5 };
    struct roofline idle = { .step_s = 1, .host_s = 1 };

    ck_assert_double_eq_tol(roofline_slowdown(&busy, &busy), 1 / 1.9, 1e-12);
    ck_assert_double_eq_tol(roofline_slowdown(&busy, &half), 1 / (1.4 + 0.25), 1e-12);
    ck_assert_double_eq_tol(roofline_slowdown(&busy, &idle), 1 / 1.4, 1e-12);
    ck_assert_double_eq_tol(roofline_watts(&busy, &plain), 50 + 200 * 0.80, 1e-9);
    ck_assert_double_eq_tol(roofline_watts(&half, &plain), 50 + 200 * 0.375, 1e-9);
    ck_assert_double_eq_tol(roofline_watts(&idle, &plain), 50 + 200 * 0.15, 1e-9);
    ck_assert_double_eq_tol(roofline_gang(1, 0), 1, 1e-12);
    ck_assert_double_eq_tol(roofline_gang(4, 0), 4 * 0.87 * 0.87, 1e-12);
    ck_assert_double_eq_tol(roofline_gang(2, 1), 2 * 0.66, 1e-12);
}

static const struct {
    const char *name;
    double alone_w[3], share[3];
    int n;
    double want_w;
} shared[] = {
    { "nobody is idle", { 0 }, { 0 }, 0, 50 },
    { "one alone draws what it draws alone", { 180 }, { 1 }, 1, 180 },
    { "one at half speed draws half of its dynamic part", { 180 }, { 0.5 }, 1, 115 },
    { "two add their dynamic parts", { 150, 100 }, { 0.5, 0.8 }, 2, 50 + 50 + 40 },
    { "never above the cap", { 240, 240 }, { 0.9, 0.9 }, 2, 250 },
    { "a draw below idle counts as idle", { 20, 100 }, { 1, 1 }, 2, 100 },
    { "three add up too", { 60, 70, 80 }, { 1, 0.5, 0.1 }, 3, 50 + 10 + 10 + 3 },
};

EACH(power_is_shared_additively, shared)
{
    double w = power_shared_w(&plain, shared[_i].alone_w, shared[_i].share, shared[_i].n, 1);

    ck_assert_msg(fabs(w - shared[_i].want_w) < 1e-9, "%s: %g", shared[_i].name, w);
}

/* Idle 50 W, cap 250 W: room for 200. Clocks fall by the law at 250 W for what is wanted, over the
 * law there for 250 W; at 350 W that is 0.876 / 0.979.
 */
static const struct {
    const char *name;
    double alone_w[2], share[2];
    int n;
    struct {
        double watts, speed;
    } additive, saturating;
} drawn[] = {
    { "nobody", { 0 }, { 0 }, 0, { 50, 1 }, { 50, 1 } },
    { "one alone: both are the same", { 180 }, { 1 }, 1, { 180, 1 }, { 180, 1 } },
    { "two of a half: three quarters", { 150, 150 }, { 1, 1 }, 2, { 250, 1 }, { 200, 1 } },
    { "two that are slowed", { 150, 250 }, { 0.5, 0.5 }, 2, { 200, 1 }, { 175, 1 } },
    { "clocks fall above the cap", { 200, 200 }, { 1, 1 }, 2, { 250, 0.8948 }, { 237.5, 1 } },
    { "the whole room is taken", { 250, 250 }, { 1, 0.1 }, 2, { 250, 0.9870 }, { 250, 1 } },
};

EACH(what_is_drawn_together_depends_on_the_model, drawn)
{
    const double watts[] = { drawn[_i].additive.watts, drawn[_i].saturating.watts };
    const double speed[] = { drawn[_i].additive.speed, drawn[_i].saturating.speed };

    for (int m = 0; m < POWER_MODELS; m++) {
        struct limited got = power_drawn((enum power_model)m, &plain, drawn[_i].alone_w,
                                         drawn[_i].share, drawn[_i].n);
        ck_assert_msg(fabs(got.watts - watts[m]) < 1e-9 && fabs(got.speed - speed[m]) < 1e-3,
                      "%s, %s: %g W, %g", drawn[_i].name, power_model_name((enum power_model)m),
                      got.watts, got.speed);
    }
}

static double maybe(struct rng *r, double low, double high)
{
    return rng_below(r, 6) ? exp(rng_between(r, log(low), log(high))) : (double)NAN;
}

static struct workload random_workload(struct rng *r)
{
    struct workload w = workload_of(maybe(r, 1e8, 1e13), maybe(r, 1e6, 1e11), maybe(r, 1, 1e5),
                                    maybe(r, 1e-2, 1e3));

    w.params = maybe(r, 1e3, 1e10);
    w.cpu_ms_per_sample = maybe(r, 1e-3, 10);
    w.batch = rng_below(r, 5) ? 1 + (double)rng_below(r, 512) : (double)NAN;
    w.is_inference = rng_below(r, 2);
    return w;
}

TEST(whatever_the_features_the_estimate_is_sane)
{
    struct rng r;
    int n_types;
    const struct gpu_type *types = gpu_type_builtin_all(&n_types);

    rng_init(&r, 3, "roofline");
    for (int i = 0; i < 5000; i++) {
        struct workload w = random_workload(&r), v = random_workload(&r);
        const struct gpu_type *g = &types[rng_below(&r, (uint64_t)n_types)];
        struct roofline a, b, faster;
        struct prior p;
        roofline(&w, g, &a);
        roofline(&v, g, &b);
        ck_assert(a.step_s > 0 && isfinite(a.step_s));
        double slow = roofline_slowdown(&a, &b), watts = roofline_watts(&a, g);
        ck_assert_msg(slow > 0 && slow <= 1, "slowdown %g", slow);
        ck_assert_msg(watts >= g->idle_w && watts <= g->cap_w, "%g W on %s", watts, g->name);
        prior_of(&a, &b, g->mem_bytes, &p);
        ck_assert(isfinite(p.ln_speed) && p.unfit >= 0 && p.unfit <= 1);
        ck_assert_double_eq_tol(p.ln_speed, log(slow / a.step_s), 1e-9);
        ck_assert(p.alone_sd >= 0.1 && p.beside_sd > 0);
        struct gpu_type g2 = *g;    // a GPU that is better in every way is never slower
        g2.peak_fp32_flops *= 1 + rng_uniform(&r);
        g2.peak_fp16_flops *= 1 + rng_uniform(&r);
        g2.bandwidth_bytes_s *= 1 + rng_uniform(&r);
        g2.launch_s *= rng_between(&r, 0.5, 1);
        roofline(&w, &g2, &faster);
        ck_assert(faster.step_s <= a.step_s);
    }
}

TEST(each_unknown_feature_makes_the_estimate_less_sure)
{
    struct workload w = workload_of(1e12, 1e9, 100, 1);
    struct roofline known, fewer, none;

    roofline(&w, &plain, &known);
    w.kernels_per_step = NAN;
    roofline(&w, &plain, &fewer);
    ck_assert_int_eq(fewer.n_unknown, 1);
    ck_assert_double_eq(fewer.compute_s, known.compute_s);
    workload_init(&w, "nothing known");
    roofline(&w, &plain, &none);
    ck_assert_int_eq(none.n_unknown, 5);
    ck_assert_double_lt(roofline_speed_sd(&known), roofline_speed_sd(&fewer));
    ck_assert_double_lt(roofline_speed_sd(&fewer), roofline_speed_sd(&none));
}

TEST(a_gpu_type_that_nobody_described_still_has_an_estimate)
{
    static const double unknown[] = { 0, NAN };
    struct workload w = workload_of(1e12, 1e9, 100, 1);
    struct roofline known, r;
    struct prior p;

    roofline(&w, &plain, &known);
    for (int i = 0; i < 2; i++) {
        double u = unknown[i];
        struct gpu_type g = { .name = "?",
                              .peak_fp32_flops = u,
                              .peak_fp16_flops = u,
                              .bandwidth_bytes_s = u,
                              .mem_bytes = u,
                              .launch_s = u,
                              .idle_w = u,
                              .sleep_w = u,
                              .cap_w = u };
        roofline(&w, &g, &r);
        ck_assert(isfinite(r.step_s) && r.step_s > 0);
        ck_assert(isfinite(roofline_watts(&r, &g)) && roofline_watts(&r, &g) > 0);
        ck_assert_double_gt(roofline_speed_sd(&r), roofline_speed_sd(&known));
        prior_of(&r, &known, g.mem_bytes, &p);
        ck_assert(isfinite(p.ln_speed) && p.unfit == 0.5);
    }
}

TEST(more_memory_asked_for_fits_less_surely)
{
    struct roofline r = { .step_s = 1 };
    double before = -1;
    struct prior p;

    for (r.mem_bytes = 0; r.mem_bytes < 20e9; r.mem_bytes += 0.5e9) {
        prior_of(&r, NULL, plain.mem_bytes, &p);
        ck_assert_double_ge(p.unfit, before);
        ck_assert_double_eq(p.beside_sd, 0);
        before = p.unfit;
        struct prior pair;
        prior_of(&r, &r, plain.mem_bytes, &pair);
        ck_assert_double_ge(pair.unfit, p.unfit);    // two need more than one
    }
    ck_assert_double_gt(before, 0.99);
    r.mem_bytes = 1e9;
    prior_of(&r, NULL, plain.mem_bytes, &p);
    ck_assert_double_lt(p.unfit, 0.01);
}
