/* The built-in models, what a step of them costs, and the features users set. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "catalog/workload.h"
#include "unit/suite.h"

static struct arena arena;

static void setup(void)
{
    arena_init(&arena);
}

static void teardown(void)
{
    arena_release(&arena);
}

FIXTURE(setup, teardown)

static void assert_near(double got, double want)
{
    ck_assert_msg(fabs(got - want) <= 1e-12 * fabs(want), "%.17g is not %.17g", got, want);
}

TEST(every_builtin_model_is_whole_and_found_by_its_own_name)
{
    int n;
    const struct workload *all = workload_builtin_all(&n);

    ck_assert_int_ge(n, 30);
    for (int i = 0; i < n; i++) {
        const struct workload *w = &all[i];
        struct workload found;

        ck_assert_str_eq(w->name, workload_name(&arena, w->family, w->batch));
        ck_assert_ptr_nonnull(w->task);
        ck_assert_ptr_nonnull(w->dataset);
        for (int k = 0; k < WORKLOAD_NUMBERS; k++)
            ck_assert(isfinite(workload_number(w, k)) && workload_number(w, k) >= 0);
        ck_assert(w->flop_per_sample > 0 && w->bytes_per_sample > 0);
        if (strcmp(w->task, "benchmark") != 0) {    // some have no weights and no such kernels
            ck_assert_double_ge(w->conv + w->gemm + w->rnn + w->sparse, 1);
            ck_assert_double_gt(w->params, 0);
        }
        ck_assert_int_eq(workload_builtin(&arena, w->family, NAN, &found, NULL), 0);
        ck_assert_ptr_eq(found.name, w->name);
        ck_assert_ptr_eq(found.family, w->family);
    }
}

TEST(the_usual_models_come_first_and_are_fewer)
{
    int n, n_all;
    const struct workload *usual = workload_builtin_usual(&n);

    ck_assert_ptr_eq(usual, workload_builtin_all(&n_all));
    ck_assert_int_lt(n, n_all);
    ck_assert_str_eq(usual[n - 1].family, "stable-diffusion");
    ck_assert_str_eq(usual[n].family, "densenet161");
}

/* What a reader is promised, and the names that traces use. */
static const struct {
    const char *said, *want;
} names[] = {
    { "ResNet-18", "ResNet-18" },
    { "resnet18", "ResNet-18" },
    { "resnet18-imagenet", "resnet18-imagenet" },
    { "resnet50", "ResNet-50" },
    { "Transformer", "Transformer" },
    { "A3C", "A3C" },
    { "LM", "LM" },
    { "Recommendation", "Recommendation" },
    { "CycleGAN", "CycleGAN" },
    { "shufflenetv2", "shufflenetv2" },
    { "deepspeech2", "deepspeech2" },
    { "ncf", "ncf" },
    { "bert_base_uncased", "bert-base" },
    { "BERT base", "bert-base" },
    { "bert-large", "bert-large" },
    { "gpt2", "gpt2" },
    { "GPT-2", "gpt2" },
    { "gpt2-xl", "gpt2-xl" },
    { "vit-base", "vit-base" },
    { "t5-base", "t5-base" },
    { "whisper", "whisper-small" },
    { "whisper-large", "whisper-large" },
    { "stable-diffusion", "stable-diffusion" },
    { "dlrm", "dlrm" },
    { "lstm-lm", "lstm-lm" },
    { "Llama 2 7B", "llama-7b" },
    { "llama-13b", "llama-13b" },
    { "llama-70b", "llama-70b" },
    { "resnet50-infer", "resnet50-infer" },
    { "bert-base-infer", "bert-base-infer" },
};

EACH(models_are_found_as_people_write_them, names)
{
    struct workload w;
    struct err e = { 0 };

    ck_assert_msg(workload_builtin(&arena, names[_i].said, 32, &w, &e) == 0, "%s", e.text);
    ck_assert_str_eq(w.family, names[_i].want);
    ck_assert_str_eq(w.name, workload_name(&arena, names[_i].want, 32));
    ck_assert_double_eq(w.batch, 32);
}

TEST(an_unknown_model_or_batch_is_refused_with_its_cure)
{
    static const struct {
        const char *model;
        double batch;
        int rc;
        const char *cure;
    } cases[] = {
        { "resnet-51", NAN, -ENOENT, "bert-base" },
        { "", NAN, -ENOENT, "ResNet-50" },
        { "gpt2", 0, -EINVAL, "whole number from 1 to" },
        { "gpt2", -4, -EINVAL, "whole number from 1 to" },
        { "gpt2", 2.5, -EINVAL, "whole number from 1 to" },
        { "gpt2", INFINITY, -EINVAL, "whole number from 1 to" },
        { "gpt2", 1e8, -EINVAL, "whole number from 1 to" },
    };
    struct workload w;

    for (int i = 0; i < (int)N_ROWS(cases); i++) {
        struct err e = { 0 };
        ck_assert_int_eq(workload_builtin(&arena, cases[i].model, cases[i].batch, &w, &e),
                         cases[i].rc);
        ck_assert_msg(strstr(e.text, cases[i].cure), "'%s'", e.text);
    }
}

TEST(the_usual_batch_of_a_model_without_batches_is_none)
{
    struct workload w;

    ck_assert_int_eq(workload_builtin(&arena, "a3c", NAN, &w, NULL), 0);
    ck_assert_str_eq(w.name, "A3C");
    ck_assert(isnan(w.batch));
}

/* By hand: ResNet-18 at 16 moves 16 * 20e6 + 24 * 11.2e6 bytes and holds 16 * 20e6 / 3 +
 * 16 * 11.2e6; the host works 16 * 0.15 + 1 ms. Llama 7B at 8 reads 8 * 537e6 of cache
 * and 2 * 6.74e9 of weights, all of which stays.
 */
static const struct {
    const char *name, *model;
    double batch;
    struct workload_step want;
} steps[] = {
    { "training", "ResNet-18", 16, { 53.44e9, 588.8e6, 500, 3.4e-3, 320e6 / 3 + 179.2e6 } },
    { "training without a batch",
      "CycleGAN",
      NAN,
      { 1.9e12, 5.6792e9, 4000, 22e-3, 5e9 / 3 + 452.8e6 } },
    { "inference", "llama-7b", 8, { 108e9, 17.776e9, 390, 2.16e-3, 17.776e9 } },
};

EACH(a_step_costs_what_the_formulas_say, steps)
{
    struct workload w;
    struct workload_step got;

    ck_assert_int_eq(workload_builtin(&arena, steps[_i].model, steps[_i].batch, &w, NULL), 0);
    got = workload_step(&w);
    assert_near(got.flop, steps[_i].want.flop);
    assert_near(got.bytes, steps[_i].want.bytes);
    assert_near(got.kernels, steps[_i].want.kernels);
    assert_near(got.host_s, steps[_i].want.host_s);
    assert_near(got.mem_bytes, steps[_i].want.mem_bytes);
}

TEST(seventy_billion_parameters_do_not_fit_eighty_gib)
{
    struct workload w;

    ck_assert_int_eq(workload_builtin(&arena, "llama-70b", 1, &w, NULL), 0);
    ck_assert_double_gt(workload_step(&w).mem_bytes, 80.0 * (1 << 30));
    ck_assert_int_eq(workload_builtin(&arena, "llama-13b", 1, &w, NULL), 0);
    ck_assert_double_lt(workload_step(&w).mem_bytes, 40.0 * (1 << 30));
}

/* An unknown feature spoils what needs it and nothing else. */
static const struct {
    const char *feature;
    bool flop, bytes, kernels, host, mem;    // spoilt
} unknowns[] = {
    { "params", false, true, false, false, true },
    { "flop_per_sample", true, false, false, false, false },
    { "bytes_per_sample", false, true, false, false, true },
    { "kernels_per_step", false, false, true, false, false },
    { "cpu_ms_per_sample", false, false, false, true, false },
    { "cpu_ms_per_step", false, false, false, true, false },
    { "conv", false, false, false, false, false },
    { "gemm", false, false, false, false, false },
    { "rnn", false, false, false, false, false },
    { "sparse", false, false, false, false, false },
    { "batch", false, false, false, false, false },
    { "family", false, false, false, false, false },
    { "task", false, false, false, false, false },
    { "dataset", false, false, false, false, false },
};

EACH(an_unknown_feature_spoils_only_what_needs_it, unknowns)
{
    struct workload w;
    struct workload_step step;

    for (int inference = 0; inference < 2; inference++) {
        const char *model = inference ? "llama-7b" : "bert-base";
        ck_assert_int_eq(workload_builtin(&arena, model, 4, &w, NULL), 0);
        ck_assert_int_eq(
            workload_set(&arena, &w, slice_of(unknowns[_i].feature), slice_of(""), NULL), 0);
        step = workload_step(&w);
        ck_assert_int_eq(isnan(step.flop) != 0, unknowns[_i].flop);
        ck_assert_int_eq(isnan(step.bytes) != 0, unknowns[_i].bytes);
        ck_assert_int_eq(isnan(step.kernels) != 0, unknowns[_i].kernels);
        ck_assert_int_eq(isnan(step.host_s) != 0, unknowns[_i].host);
        ck_assert_int_eq(isnan(step.mem_bytes) != 0, unknowns[_i].mem);
    }
}

TEST(a_fresh_workload_knows_nothing)
{
    struct workload w;

    workload_init(&w, "new");
    ck_assert_str_eq(w.name, "new");
    ck_assert(isnan(w.batch) && !w.is_inference && !w.family && !w.task && !w.dataset);
    for (int i = 0; i < WORKLOAD_NUMBERS; i++) {
        ck_assert(isnan(workload_number(&w, i)));
        workload_set_number(&w, i, i);
    }
    ck_assert_double_eq(w.params, 0);
    ck_assert_double_eq(w.cpu_ms_per_step, 5);
    ck_assert_double_eq(w.sparse, 9);
}

TEST(names_and_batches_join_and_split)
{
    static const double batches[] = { 1, 16, 8192, 1048576, WORKLOAD_BATCH_MAX };
    static const char *const models[] = { "ResNet-18", "x", "a (b)", "LM (batch size" };
    double batch;

    for (int m = 0; m < (int)N_ROWS(models); m++) {
        for (int i = 0; i < (int)N_ROWS(batches); i++) {
            const char *name = workload_name(&arena, models[m], batches[i]);
            struct slice model = workload_name_split(name, &batch);

            ck_assert(slice_is(model, models[m]));
            ck_assert_double_eq(batch, batches[i]);
        }
        ck_assert_str_eq(workload_name(&arena, models[m], NAN), models[m]);
        ck_assert(slice_is(workload_name_split(models[m], &batch), models[m]));
        ck_assert(isnan(batch));
    }
    ck_assert_str_eq(workload_name(&arena, "ResNet-18", 16), "ResNet-18 (batch size 16)");
}

TEST(what_only_looks_like_a_batch_stays_in_the_name)
{
    static const char *const whole[] = {
        "",
        ")",
        "A3C",
        "X (batch size )",
        "X (batch size 16",
        "X (batch size sixteen)",
        "X (batch size 0)",
        "X (batch size -1)",
        "X (batch size 1e999)",
        "X (batch size 16) ",
        " (batch size 16)",
        "X(batch size 16)",
    };
    double batch;

    for (int i = 0; i < (int)N_ROWS(whole); i++) {
        ck_assert_msg(slice_is(workload_name_split(whole[i], &batch), whole[i]), "%s", whole[i]);
        ck_assert_msg(isnan(batch), "%s", whole[i]);
    }
}

TEST(features_are_set_by_their_csv_names)
{
    struct workload w;

    workload_init(&w, "mine");
    for (int i = 0; i < WORKLOAD_FIGURES; i++) {
        bool is_share = i >= WORKLOAD_NUMBERS - 4 && i < WORKLOAD_NUMBERS + 2;
        const char *value = is_share ? "0.25" : "1e6";
        if (strcmp(workload_number_names[i], "solo_watts") == 0)
            value = "250";
        ck_assert_int_eq(
            workload_set(&arena, &w, slice_of(workload_number_names[i]), slice_of(value), NULL), 0);
        ck_assert_double_eq(workload_number(&w, i), strtod(value, NULL));
    }
    ck_assert(w.mem_activity == 0.25 && w.solo_watts == 250 && w.mem_used_bytes == 1e6);
    ck_assert_int_eq(workload_set(&arena, &w, slice_of("params"), slice_of("7e9"), NULL), 0);
    ck_assert_double_eq(w.params, 7e9);
    ck_assert_int_eq(workload_set(&arena, &w, slice_of("family"), slice_of("Mine"), NULL), 0);
    ck_assert_int_eq(workload_set(&arena, &w, slice_of("task"), slice_of("t"), NULL), 0);
    ck_assert_int_eq(workload_set(&arena, &w, slice_of("dataset"), slice_of("d e"), NULL), 0);
    ck_assert_str_eq(w.family, "Mine");
    ck_assert_str_eq(w.task, "t");
    ck_assert_str_eq(w.dataset, "d e");
    ck_assert_int_eq(workload_set(&arena, &w, slice_of("inference"), slice_of("1"), NULL), 0);
    ck_assert(w.is_inference);
    ck_assert_int_eq(workload_set(&arena, &w, slice_of("inference"), slice_of("0"), NULL), 0);
    ck_assert(!w.is_inference);
    ck_assert_int_eq(workload_set(&arena, &w, slice_of("needs_capability"), slice_of("8.0"), NULL),
                     0);
    ck_assert_int_eq(w.needs_capability, 80);
}

static const struct {
    const char *said;
    enum precision want;
} precisions[] = {
    { "fp32", PRECISION_FP32 },  { "float", PRECISION_FP32 }, { "tf32", PRECISION_TF32 },
    { "fp16", PRECISION_FP16 },  { "bf16", PRECISION_FP16 },  { "half", PRECISION_FP16 },
    { "mixed", PRECISION_FP16 }, { "AMP", PRECISION_FP16 },   { "bfloat16", PRECISION_FP16 },
    { "fp8", PRECISION_FP8 },    { "int8", PRECISION_INT8 },  { "INT-8", PRECISION_INT8 },
    { "", PRECISION_UNKNOWN },
};

EACH(a_precision_is_found_as_people_write_it, precisions)
{
    struct workload w;

    workload_init(&w, "mine");
    ck_assert_int_eq(w.precision, PRECISION_UNKNOWN);
    w.precision = PRECISION_FP8;
    ck_assert_int_eq(
        workload_set(&arena, &w, slice_of("precision"), slice_of(precisions[_i].said), NULL), 0);
    ck_assert_int_eq(w.precision, precisions[_i].want);
}

TEST(what_was_believed_before_it_was_refused_is_unknown)
{
    struct workload w;

    ck_assert_int_eq(workload_builtin(&arena, "bert-base", 8, &w, NULL), 0);
    double params = w.params, host_ms = w.cpu_ms_per_step = 0;
    w.flop_per_sample = 0;
    w.bytes_per_sample = -1;
    w.kernels_per_step = 1e12;
    w.gpu_activity = 87;
    workload_doubt(&w);
    ck_assert(isnan(w.flop_per_sample) && isnan(w.bytes_per_sample));
    ck_assert(isnan(w.kernels_per_step) && isnan(w.gpu_activity));
    ck_assert(w.params == params && w.cpu_ms_per_step == host_ms && w.gemm == 1);
}

TEST(inference_reads_weights_of_its_precision)
{
    static const struct {
        enum precision is;
        double bytes;
    } cases[] = { { PRECISION_UNKNOWN, 2 }, { PRECISION_FP32, 4 }, { PRECISION_TF32, 4 },
                  { PRECISION_FP16, 2 },    { PRECISION_FP8, 1 },  { PRECISION_INT8, 1 } };
    struct workload w;

    workload_init(&w, "mine");
    w.is_inference = true;
    w.params = 1e9;
    w.bytes_per_sample = 1e6;
    for (int i = 0; i < (int)N_ROWS(cases); i++) {
        w.precision = cases[i].is;
        assert_near(workload_step(&w).bytes, cases[i].bytes * 1e9 + 1e6);
    }
}

TEST(a_batch_renames_the_workload)
{
    struct workload w;

    workload_init(&w, "mine");
    ck_assert_int_eq(workload_set(&arena, &w, slice_of("batch"), slice_of("8"), NULL), 0);
    ck_assert_str_eq(w.name, "mine (batch size 8)");
    ck_assert_int_eq(workload_set(&arena, &w, slice_of("batch"), slice_of("64"), NULL), 0);
    ck_assert_str_eq(w.name, "mine (batch size 64)");
    ck_assert_double_eq(w.batch, 64);
    ck_assert_int_eq(workload_set(&arena, &w, slice_of("batch"), slice_of(""), NULL), 0);
    ck_assert_str_eq(w.name, "mine");
    ck_assert(isnan(w.batch));
}

static const struct {
    const char *name, *key, *value, *cure;
} refusals[] = {
    { "an unknown key lists the known ones", "flops", "1", "family, task, dataset, params" },
    { "all keys fit the text", "flops", "1", "batch, inference" },
    { "keys are exact", "Params", "1", "use one of" },
    { "a word is not a number", "params", "many", "0 to 1e+14" },
    { "a suffix is not part of the number", "params", "7B", "0 to 1e+14" },
    { "features are not negative", "flop_per_sample", "-1", "1 to 1e+18" },
    { "no step is without work", "flop_per_sample", "0", "1 to 1e+18, or nothing for unknown" },
    { "no step is without traffic", "bytes_per_sample", "0", "1 to 1e+15" },
    { "no step is without launches", "kernels_per_step", "0", "1 to 1e+07" },
    { "a million launches a microsecond", "kernels_per_step", "1e12", "1 to 1e+07" },
    { "an activity is a share, not percent", "gpu_activity", "87", "0 to 1" },
    { "watts are not milliwatts", "solo_watts", "250000", "1 to 5000" },
    { "bytes are not GiB", "mem_used_bytes", "16", "1e+06 to 1e+13" },
    { "a precision has a name", "precision", "16", "fp16 (also bf16, half, mixed, amp)" },
    { "a precision is not endless", "precision", "fp16fp16fp16fp16", "want fp32, tf32" },
    { "a capability is not a year", "needs_capability", "2020", "as 8.6 or 86" },
    { "a share is at most 1", "conv", "1.5", "0 to 1" },
    { "a batch is whole", "batch", "1.5", "whole number from 1" },
    { "a batch has samples", "batch", "0", "whole number from 1" },
    { "inference is yes or no", "inference", "true", "0 for training or 1 for inference" },
    { "inference is not unknown", "inference", "", "0 for training or 1 for inference" },
    { "a family is printable", "family", "a\nb", "printable" },
    { "a task is UTF-8", "task", "\xff", "UTF-8" },
    { "a dataset has no blank at its ends", "dataset", " x", "printable" },
};

EACH(a_bad_feature_is_refused_with_its_cure_and_changes_nothing, refusals)
{
    struct workload w, before;
    struct err e = { 0 };
    int rc;

    ck_assert_int_eq(workload_builtin(&arena, "bert-base", 8, &w, NULL), 0);
    before = w;
    rc = workload_set(&arena, &w, slice_of(refusals[_i].key), slice_of(refusals[_i].value), &e);
    ck_assert_msg(rc == -EINVAL, "%s", refusals[_i].name);
    ck_assert_msg(strstr(e.text, refusals[_i].cure), "%s: '%s'", refusals[_i].name, e.text);
    ck_assert_int_eq(memcmp(&w, &before, sizeof w), 0);
}
