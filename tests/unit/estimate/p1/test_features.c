/* A workload on a GPU type as numbers: finite whatever is known, and alike where things are. */
#include <stdlib.h>

#include "catalog/gpu_type.h"
#include "catalog/workload.h"
#include "unit/estimate/p1/lab.h"

/* ---- one workload ---- */

static const struct {
    const char *name, *keys;    // key=value, apart by spaces
} known[] = {
    { "nothing is known", "" },
    { "a batch alone", "batch=64" },
    { "parameters alone", "params=1e9" },
    { "no parameters at all", "params=0" },
    { "all of it compute", "flop_per_sample=1e12 bytes_per_sample=1 params=0 kernels_per_step=1 "
                           "cpu_ms_per_sample=0 cpu_ms_per_step=0" },
    { "all of it the host's", "flop_per_sample=1 bytes_per_sample=1 params=0 kernels_per_step=1 "
                              "cpu_ms_per_sample=0 cpu_ms_per_step=50" },
    { "every kind at its most", "conv=1 gemm=1 rnn=1 sparse=1" },
    { "one kind, the rest unknown", "rnn=0.5" },
    { "inference", "inference=1 batch=8 params=7e9" },
};

static void features_finite(const struct features *f, const char *name)
{
    const float rest[] = { f->ln_batch,  f->ln_step_s, f->ln_kernel_s, f->ln_params,
                           f->mem_share, f->busy,      f->known,       f->figures_known };
    double kinds = 0;

    ck_assert_msg(isfinite(f->ln_roofline) && isfinite(f->ln_watts), "%s: roofline", name);
    for (int i = 0; i < FEATURE_KINDS; i++) {
        ck_assert_msg(f->kind[i] >= 0, "%s: kind %d", name, i);
        kinds += (double)f->kind[i];
    }
    ck_assert_msg(kinds <= 1 + 1e-6, "%s: kinds add up to %g", name, kinds);
    for (int i = 0; i < FEATURE_FIGURES; i++)
        ck_assert_msg(isfinite(f->figure[i]), "%s: figure %d", name, i);
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        ck_assert_msg(isfinite(rest[i]), "%s: number %zu", name, i);
    ck_assert_msg(f->known >= 0 && f->known <= 1 && f->busy >= 0 && f->busy <= 1, "%s", name);
}

EACH(shares_add_up_to_one_and_nothing_is_nan, known)
{
    struct world w;
    struct features f;
    struct gpu_type unknown = { .name = "whatever" };
    char line[256];

    snprintf(line, sizeof line, "type v100\ntype k80\nworkload w %s\n", known[_i].keys);
    world_init(&w, line);
    unknown.peak_fp32_flops = unknown.bandwidth_bytes_s = unknown.mem_bytes = NAN;
    for (int g = 0; g < 3; g++) {
        double sum = 0;
        features_of(&w.catalog.workloads[0], g < 2 ? &w.catalog.types[g] : &unknown, &f);
        features_finite(&f, known[_i].name);
        for (int i = 0; i < FEATURE_SHARES; i++) {
            ck_assert_msg(f.share[i] >= 0 && f.share[i] <= 1, "%s: share %d", known[_i].name, i);
            sum += (double)f.share[i];
        }
        ck_assert_msg(fabs(sum - 1) < 1e-5, "%s: shares add up to %g", known[_i].name, sum);
    }
    world_release(&w);
}

TEST(what_costs_next_to_nothing_is_finite_too)
{
    struct world w;
    struct features f;

    world_init(&w, "type v100\nworkload w params=0 flop_per_sample=1 bytes_per_sample=1 "
                   "kernels_per_step=1 cpu_ms_per_sample=0 cpu_ms_per_step=0\n");
    features_of(&w.catalog.workloads[0], &w.catalog.types[0], &f);
    features_finite(&f, "nothing");
    world_release(&w);
}

TEST(what_is_known_is_counted)
{
    struct world w;
    struct features f;

    world_init(&w, "type v100\nworkload none\nworkload two params=1e6 conv=1 batch=4\n");
    features_of(&w.catalog.workloads[0], &w.catalog.types[0], &f);
    ck_assert_double_eq((double)f.known, 0);
    features_of(&w.catalog.workloads[1], &w.catalog.types[0], &f);
    ck_assert_double_eq_tol((double)f.known, 2.0 / WORKLOAD_NUMBERS, 1e-6);
    ck_assert_double_eq_tol((double)f.ln_batch, log(4), 1e-6);
    ck_assert_double_eq_tol((double)f.ln_params, log(0.1), 1e-6);
    ck_assert_double_eq_tol(f.ln_roofline, -(double)f.ln_step_s, 1e-5);
    world_release(&w);
}

/* ---- types ---- */

static const struct {
    const char *name, *a, *b;
    double low, high;
} pairs[] = {
    { "a type is the same as itself", "v100", "v100", 1, 1 },
    { "a P100 is a little like a V100", "p100", "v100", 0.05, 0.5 },
    { "a K80 is nothing like a V100", "k80", "v100", 0, 0.01 },
    { "a K80 is nothing like an A100", "k80", "a100", 0, 0.001 },
};

EACH(types_are_as_alike_as_their_figures, pairs)
{
    struct workload w;
    struct features a, b;

    workload_init(&w, "w");
    features_of(&w, gpu_type_builtin(pairs[_i].a), &a);
    features_of(&w, gpu_type_builtin(pairs[_i].b), &b);
    double same = features_same_type(&a, &b);
    ck_assert_msg(same >= pairs[_i].low && same <= pairs[_i].high, "%s: %g", pairs[_i].name, same);
    ck_assert_double_eq(same, features_same_type(&b, &a));
}

TEST(figures_that_are_known_are_counted)
{
    struct gpu_type half = { .name = "half", .mem_bytes = 16e9, .year = 2017 };
    struct workload w;
    struct features f;

    half.peak_fp32_flops = half.bandwidth_bytes_s = half.launch_s = NAN;
    workload_init(&w, "w");
    features_of(&w, gpu_type_builtin("v100"), &f);
    ck_assert_double_eq((double)f.figures_known, 1);
    features_of(&w, &half, &f);
    ck_assert_double_eq_tol((double)f.figures_known, 2.0 / FEATURE_FIGURES, 1e-6);
}

/* ---- kin ---- */

static const struct {
    const char *name;
    const char *a[3], *b[3];    // name, family, dataset; NULL: unknown
    double kin;
} kin[] = {
    { "oneself", { "w", "F", "d" }, { "w", "F", "d" }, 1 },
    { "oneself without a family", { "w", NULL, NULL }, { "w", NULL, NULL }, 1 },
    { "another batch", { "w", "F", "d" }, { "x", "F", "d" }, 1 },
    { "another dataset", { "w", "F", "d" }, { "x", "F", "e" }, 0.5 },
    { "a dataset that is not known", { "w", "F", "d" }, { "x", "F", NULL }, 0.5 },
    { "two datasets that are not known", { "w", "F", NULL }, { "x", "F", NULL }, 0.5 },
    { "another family on the same data", { "w", "F", "d" }, { "x", "G", "d" }, 0 },
    { "two of no known family are strangers", { "w", NULL, "d" }, { "x", NULL, "d" }, 0 },
    { "one of no known family", { "w", "F", "d" }, { "x", NULL, "d" }, 0 },
    { "an empty text is a text", { "w", "", "d" }, { "x", "", "d" }, 1 },
};

static struct identity subject_from(const char *const text[3])
{
    struct workload w;

    workload_init(&w, text[0]);
    w.family = text[1];
    w.dataset = text[2];
    return identity_of(&w);
}

EACH(kin_is_by_family_and_dataset, kin)
{
    struct identity a = subject_from(kin[_i].a), b = subject_from(kin[_i].b);

    ck_assert_msg(identity_kin(&a, &b) == kin[_i].kin, "%s: %g", kin[_i].name,
                  identity_kin(&a, &b));
    ck_assert_msg(identity_kin(&b, &a) == kin[_i].kin, "%s, the other way", kin[_i].name);
    ck_assert_int_eq(a.family == 0, kin[_i].a[1] == NULL);
}
