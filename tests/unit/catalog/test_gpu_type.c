/* The built-in GPU types, their names, and the figures users set. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "catalog/gpu_type.h"
#include "unit/suite.h"

TEST(every_builtin_type_is_whole_sourced_and_found_by_its_name)
{
    struct err e;
    int n;
    const struct gpu_type *all = gpu_type_builtin_all(&n);

    for (int i = 0; i < n; i++) {
        e.text[0] = '\0';
        ck_assert_msg(gpu_type_check(&all[i], &e) == 0, "%s", e.text);
        ck_assert_ptr_eq(gpu_type_builtin(all[i].name), &all[i]);
        ck_assert(strlen(all[i].title) > 0);
        ck_assert_msg(strstr(all[i].source, "idle"), "%s: whence idle?", all[i].name);
        ck_assert_msg(strstr(all[i].source, "NVIDIA") || strstr(all[i].source, "AMD"),
                      "%s: whose document?", all[i].name);
        ck_assert(i == 0 || all[i - 1].year <= all[i].year);
    }
}

/* The list a reader is promised, with one figure of each to see that rows are not swapped. */
static const struct {
    const char *name;
    double peak_fp32_tflops, peak_fp16_tflops, bandwidth_gb_s, mem_gib, cap_w;
} promised[] = {
    { "k80", 4.37, 4.37, 240, 12, 149 },
    { "p4", 5.5, 5.5, 192, 8, 75 },
    { "p40", 11.76, 11.76, 346, 24, 250 },
    { "p100", 9.3, 18.7, 732, 16, 250 },
    { "v100-16", 14, 112, 900, 16, 250 },
    { "v100-32", 14, 112, 900, 32, 250 },
    { "t4", 8.1, 65, 320, 16, 70 },
    { "rtx2080ti", 13.4, 53.8, 616, 11, 250 },
    { "rtx3090", 35.6, 71.2, 936, 24, 350 },
    { "rtx6000", 16.3, 130.5, 672, 24, 260 },
    { "a10", 31.2, 125, 600, 24, 150 },
    { "a40", 37.4, 149.7, 696, 48, 300 },
    { "a100-40", 19.5, 312, 1555, 40, 400 },
    { "a100-80", 19.5, 312, 2039, 80, 400 },
    { "l4", 30.3, 121, 300, 24, 72 },
    { "l40s", 91.6, 362, 864, 48, 350 },
    { "h100", 66.9, 989.4, 3350, 80, 700 },
    { "h100-pcie", 51.2, 756, 2039, 80, 350 },
    { "h200", 66.9, 989.4, 4800, 141, 700 },
    { "b200", 80, 2250, 8000, 180, 1000 },
    { "mi100", 23.1, 184.6, 1229, 32, 300 },
    { "mi250x", 23.9, 191.5, 1638, 64, 250 },
    { "mi300x", 163.4, 1307.4, 5300, 192, 750 },
};

EACH(the_promised_types_have_their_figures, promised)
{
    const struct gpu_type *t = gpu_type_builtin(promised[_i].name);

    ck_assert_ptr_nonnull(t);
    ck_assert_str_eq(t->name, promised[_i].name);
    ck_assert_double_eq_tol(t->peak_fp32_flops, promised[_i].peak_fp32_tflops * 1e12, 1e6);
    ck_assert_double_eq_tol(t->peak_fp16_flops, promised[_i].peak_fp16_tflops * 1e12, 1e6);
    ck_assert_double_eq_tol(t->bandwidth_bytes_s, promised[_i].bandwidth_gb_s * 1e9, 1);
    ck_assert_double_eq(t->mem_bytes, promised[_i].mem_gib * (1 << 30));
    ck_assert_double_eq(t->cap_w, promised[_i].cap_w);
}

/* The rate that a program is given: its own, or that of the next wider numbers. */
static const struct {
    const char *name;
    int capability;
    double fp32, tf32, fp16, fp8, int8;    // TFLOP/s
} rates[] = {
    { "k80", 37, 4.37, 4.37, 4.37, 4.37, 4.37 },
    { "p40", 61, 11.76, 11.76, 11.76, 11.76, 47 },
    { "p100", 60, 9.3, 9.3, 18.7, 18.7, 18.7 },
    { "v100", 70, 14, 14, 112, 112, 112 },
    { "t4", 75, 8.1, 8.1, 65, 65, 130 },
    { "rtx3090", 86, 35.6, 35.6, 71.2, 71.2, 284.7 },
    { "a100", 80, 19.5, 156, 312, 312, 624 },
    { "a10", 86, 31.2, 62.5, 125, 125, 250 },
    { "l4", 89, 30.3, 60, 121, 242.5, 242.5 },
    { "h100", 90, 66.9, 494.7, 989.4, 1978.9, 1978.9 },
    { "b200", 100, 80, 1125, 2250, 4500, 4500 },
    { "mi210", 0, 22.6, 45.3, 181, 181, 181 },
    { "mi300x", 0, 163.4, 653.7, 1307.4, 2614.9, 2614.9 },
};

EACH(a_program_gets_the_rate_of_its_precision_or_the_next_wider_one, rates)
{
    const struct gpu_type *t = gpu_type_builtin(rates[_i].name);
    const double want[PRECISIONS] = { rates[_i].fp32, rates[_i].fp32, rates[_i].tf32,
                                      rates[_i].fp16, rates[_i].fp8,  rates[_i].int8 };

    ck_assert_int_eq(t->capability, rates[_i].capability);
    for (int p = 0; p < PRECISIONS; p++)
        ck_assert_double_eq_tol(gpu_type_peak(t, (enum precision)p), want[p] * 1e12, 1e6);
}

TEST(narrower_numbers_are_never_slower)
{
    int n;
    const struct gpu_type *all = gpu_type_builtin_all(&n);

    for (const struct gpu_type *t = all; t < all + n; t++) {
        double tf32 = gpu_type_peak(t, PRECISION_TF32), fp16 = gpu_type_peak(t, PRECISION_FP16);

        ck_assert_msg(tf32 >= t->peak_fp32_flops && fp16 >= tf32, "%s", t->name);
        ck_assert_msg(gpu_type_peak(t, PRECISION_FP8) >= fp16, "%s", t->name);
        ck_assert_msg(gpu_type_peak(t, PRECISION_INT8) >= fp16, "%s", t->name);
        ck_assert_msg(!t->capability == !strstr(t->title, "NVIDIA"), "%s", t->name);
    }
}

TEST(what_is_not_known_of_a_rate_is_taken_from_the_wider_numbers)
{
    struct gpu_type t;

    gpu_type_init(&t, "mine");
    t.peak_fp32_flops = 10;
    for (int p = 0; p < PRECISIONS; p++)
        ck_assert_double_eq(gpu_type_peak(&t, (enum precision)p), 10);
}

TEST(a_type_is_told_what_it_does_not_know)
{
    struct gpu_type t;

    gpu_type_init(&t, "mine");
    ck_assert(gpu_type_fill(&t, gpu_type_builtin("h100")));
    ck_assert(t.peak_fp8_flops == 1978.9e12 && t.capability == 90);
    ck_assert(!gpu_type_fill(&t, gpu_type_builtin("a100")));
    ck_assert_int_eq(t.capability, 90);
}

static const struct {
    const char *said;
    int want;    // -1: refused
} capabilities[] = {
    { "8.6", 86 }, { "86", 86 },   { "3.7", 37 },  { "10.0", 100 }, { "100", 100 }, { "12.1", 121 },
    { "", 0 },     { "9", 90 },    { "8.", -1 },   { ".6", -1 },    { "8.66", -1 }, { "-8.6", -1 },
    { "0", -1 },   { "sm86", -1 }, { "1000", -1 }, { "100.0", -1 },
};

EACH(a_capability_is_written_with_or_without_its_point, capabilities)
{
    struct gpu_type t = { .capability = 7 };
    struct err e = { 0 };
    int rc = gpu_type_set(&t, slice_of("capability"), slice_of(capabilities[_i].said), &e);

    ck_assert_msg((rc == 0) == (capabilities[_i].want >= 0), "%s", capabilities[_i].said);
    ck_assert_int_eq(t.capability, rc == 0 ? capabilities[_i].want : 7);
    ck_assert(rc == 0 || strstr(e.text, "from 2.0 to 99.9, as 8.6 or 86"));
}

TEST(the_types_of_our_studies_idle_and_sleep_as_the_studies_say)
{
    static const struct {
        const char *name;
        double idle_w;
    } cases[] = { { "k80", 30 }, { "p100", 30 }, { "v100", 40 } };

    for (int i = 0; i < (int)N_ROWS(cases); i++) {
        const struct gpu_type *t = gpu_type_builtin(cases[i].name);
        ck_assert_double_eq(t->idle_w, cases[i].idle_w);
        ck_assert_double_eq(t->sleep_w, 10);
    }
}

TEST(boards_accept_the_limits_that_zeus_set_and_no_lower_ones)
{
    static const struct {
        const char *name;
        double low_w;
    } cases[] = { { "k80", 0 },       { "p100", 125 }, { "v100", 100 },
                  { "rtx6000", 100 }, { "a40", 100 },  { "h100", 200 } };
    struct gpu_type t = *gpu_type_builtin("v100");

    for (int i = 0; i < (int)N_ROWS(cases); i++)
        ck_assert_double_eq(gpu_type_builtin(cases[i].name)->limit_low_w, cases[i].low_w);
    ck_assert_int_eq(gpu_type_set(&t, slice_of("limit_low"), slice_of("150"), NULL), 0);
    ck_assert_double_eq(t.limit_low_w, 150);
    ck_assert_int_eq(gpu_type_set(&t, slice_of("limit_low"), slice_of("0"), NULL), 0);
    ck_assert_int_eq(gpu_type_check(&t, NULL), 0);
}

static const struct {
    const char *said, *want;
} names[] = {
    { "v100", "v100-16" },
    { "V100M16", "v100-16" },
    { "V100M32", "v100-32" },
    { "Tesla V100-PCIE-16GB", "v100-16" },
    { "Tesla V100-SXM2-16GB", "v100-sxm2-16" },
    { "Tesla K80", "k80" },
    { "Tesla P100-PCIE-16GB", "p100" },
    { "Tesla T4", "t4" },
    { "RTX 2080 Ti", "rtx2080ti" },
    { "rtx-2080ti", "rtx2080ti" },
    { "Quadro RTX 6000", "rtx6000" },
    { "NVIDIA GeForce RTX 3090", "rtx3090" },
    { "A100", "a100-40" },
    { "NVIDIA A100-SXM4-40GB", "a100-40" },
    { "NVIDIA A100-SXM4-80GB", "a100-80" },
    { "NVIDIA A100 80GB PCIe", "a100-80-pcie" },
    { "NVIDIA H100 80GB HBM3", "h100" },
    { "NVIDIA H100 PCIe", "h100-pcie" },
    { "AMD Instinct MI300X", "mi300x" },
    { "MI-250X", "mi250x" },
    { "GeForce GTX 1080 Ti", "gtx1080ti" },
    { "TITAN Xp", "titan-xp" },
    { "TITAN V", "titan-v" },
    { "TITAN RTX", "titan-rtx" },
    { "NVIDIA RTX A6000", "a6000" },
    { "AMD_Instinct_MI210", "mi210" },
    { "NVIDIA L40", "l40" },
    { "NVIDIA GeForce RTX 4090", "rtx4090" },
    { "v10", NULL },
    { "v1000", NULL },
    { "", NULL },
    { "--", NULL },
};

EACH(people_and_drivers_spell_names_differently, names)
{
    const struct gpu_type *t = gpu_type_builtin(names[_i].said);

    if (!names[_i].want) {
        ck_assert_msg(!t, "'%s' found %s", names[_i].said, t ? t->name : "");
        return;
    }
    ck_assert_msg(t != NULL, "'%s' not found", names[_i].said);
    ck_assert_str_eq(t->name, names[_i].want);
}

TEST(figures_are_set_in_the_units_of_files)
{
    static const char *const pairs[][2] = {
        { "peak_fp32", "4.5" }, { "peak_fp16", "90" }, { "bandwidth", "500" },
        { "memory", "24" },     { "launch", "5" },     { "idle", "20" },
        { "sleep", "0" },       { "cap", "300" },      { "year", "2030" },
    };
    struct gpu_type t = { .name = "mine" };
    struct err e = { 0 };

    for (int i = 0; i < (int)N_ROWS(pairs); i++) {
        ck_assert_int_eq(gpu_type_check(&t, &e), -EINVAL);
        ck_assert_int_eq(gpu_type_set(&t, slice_of(pairs[i][0]), slice_of(pairs[i][1]), &e), 0);
    }
    ck_assert_int_eq(gpu_type_check(&t, &e), 0);
    ck_assert_int_eq(gpu_type_set(&t, slice_of("peak_tf32"), slice_of("30"), &e), 0);
    ck_assert_int_eq(gpu_type_set(&t, slice_of("peak_fp8"), slice_of("200"), &e), 0);
    ck_assert_int_eq(gpu_type_set(&t, slice_of("peak_int8"), slice_of("0"), &e), 0);
    ck_assert_int_eq(gpu_type_check(&t, &e), 0);
    ck_assert(t.peak_tf32_flops == 30e12 && t.peak_fp8_flops == 200e12 && t.peak_int8_flops == 0);
    ck_assert_double_eq(t.peak_fp32_flops, 4.5e12);
    ck_assert_double_eq(t.peak_fp16_flops, 90e12);
    ck_assert_double_eq(t.bandwidth_bytes_s, 500e9);
    ck_assert_double_eq(t.mem_bytes, 24.0 * (1 << 30));
    ck_assert_double_eq_tol(t.launch_s, 5e-6, 1e-15);
    ck_assert_double_eq(t.idle_w, 20);
    ck_assert_double_eq(t.sleep_w, 0);
    ck_assert_double_eq(t.cap_w, 300);
    ck_assert_int_eq(t.year, 2030);
}

static const struct {
    const char *name, *key, *value, *cure;
} refusals[] = {
    { "an unknown key lists the known ones", "tdp", "250", "peak_fp8, peak_int8, bandwidth" },
    { "keys are exact", "Idle", "30", "use one of" },
    { "an empty key is no key", "", "30", "use one of" },
    { "a word is not a number", "idle", "low", "in W from 0.1 to 1000" },
    { "a unit is not part of the number", "memory", "16GiB", "memory in GiB" },
    { "nothing is not a number", "cap", "", "cap in W" },
    { "nan is not a number", "cap", "nan", "cap in W" },
    { "FLOP/s are not TFLOP/s", "peak_fp32", "14e12", "0.1 to 10000 TFLOP/s" },
    { "bytes are not GiB", "memory", "17179869184", "0.5 to 4096 GiB" },
    { "seconds are not microseconds", "launch", "5e-6", "0.1 to 1000 us" },
    { "watts are not negative", "sleep", "-1", "0 to 1000 W" },
    { "a limit is in watts", "limit_low", "100W", "limit_low in W" },
    { "a type is shared as others are or not at all", "share_max", "2", "want 1 (nobody" },
    { "sharing is a number", "share_max", "no", "want 1 (nobody" },
    { "there are so many ways to share", "sharing", "both", "exclusive, timeslice, mps or mig" },
    { "no power is no cap", "cap", "0", "5 to 5000 W" },
    { "a year is whole", "year", "2017.5", "2000 to 2100" },
    { "a year is of this age", "year", "17", "2000 to 2100" },
};

EACH(a_bad_figure_is_refused_with_its_cure_and_changes_nothing, refusals)
{
    const struct gpu_type before = *gpu_type_builtin("v100");
    struct gpu_type t = before;
    struct err e = { 0 };
    int rc = gpu_type_set(&t, slice_of(refusals[_i].key), slice_of(refusals[_i].value), &e);

    ck_assert_msg(rc == -EINVAL, "%s", refusals[_i].name);
    ck_assert_msg(strstr(e.text, refusals[_i].cure), "%s: '%s'", refusals[_i].name, e.text);
    ck_assert_int_eq(memcmp(&t, &before, sizeof t), 0);
}

/* One figure of a good type, made bad. */
static const struct {
    const char *name;
    size_t offset;
    double bad;
    const char *says;    // NULL: it is fine
} checks[] = {
    { "a peak that is no number", offsetof(struct gpu_type, peak_fp16_flops), NAN, "peak_fp16" },
    { "a negative rate", offsetof(struct gpu_type, peak_fp8_flops), -1, "peak_fp8" },
    { "a rate that nobody told is fine", offsetof(struct gpu_type, peak_tf32_flops), NAN, NULL },
    { "a bandwidth without end", offsetof(struct gpu_type, bandwidth_bytes_s), INFINITY,
      "bandwidth" },
    { "no memory", offsetof(struct gpu_type, mem_bytes), 0, "memory" },
    { "a launch before its time", offsetof(struct gpu_type, launch_s), -1, "launch" },
    { "a sleep that draws more than idling", offsetof(struct gpu_type, sleep_w), 41,
      "lower sleep" },
    { "an idle above the cap", offsetof(struct gpu_type, idle_w), 251, "raise cap" },
    { "a sleep that draws nothing is fine", offsetof(struct gpu_type, sleep_w), 0, NULL },
};

EACH(check_names_the_figure_that_is_wrong, checks)
{
    struct gpu_type t = *gpu_type_builtin("v100");
    struct err e = { 0 };
    int rc;

    memcpy((char *)&t + checks[_i].offset, &checks[_i].bad, sizeof(double));
    rc = gpu_type_check(&t, &e);
    if (!checks[_i].says) {
        ck_assert_msg(rc == 0, "%s: %s", checks[_i].name, e.text);
        return;
    }
    ck_assert_msg(rc == -EINVAL, "%s", checks[_i].name);
    ck_assert_msg(strstr(e.text, checks[_i].says), "%s: '%s'", checks[_i].name, e.text);
}

TEST(check_wants_a_name_and_a_year)
{
    struct gpu_type nameless = *gpu_type_builtin("v100"), ageless = nameless;
    struct err e = { 0 };

    nameless.name = NULL;
    ck_assert_int_eq(gpu_type_check(&nameless, &e), -EINVAL);
    ck_assert_ptr_nonnull(strstr(e.text, "name"));
    ageless.year = 0;
    ck_assert_int_eq(gpu_type_check(&ageless, &e), -EINVAL);
    ck_assert_ptr_nonnull(strstr(e.text, "year"));
}
