/* Which GPU is read, and what readings add up to. */
#include <math.h>

#include "act/gpu/devices.h"
#include "probe/pair/gauge.h"
#include "unit/suite.h"

#define UUID_0 "GPU-01234567-89ab-cdef-0123-456789abcdef"
#define UUID_1 "GPU-fedcba98-7654-3210-fedc-ba9876543210"
#define UUID_2 "GPU-00112233"

static const struct device box[] = {
    { .maker = DEVICE_NVIDIA, .index = 0, .uuid = UUID_0, .title = "T4" },
    { .maker = DEVICE_NVIDIA, .index = 1, .uuid = UUID_1, .title = "T4" },
    { .maker = DEVICE_AMD, .index = 0, .uuid = UUID_2, .title = "MI210" },
};

static const struct {
    const char *name;
    int n;
    const char *cuda, *rocr;
    int want;
} picks[] = {
    { "by its UUID", 3, UUID_1, NULL, 1 },
    { "by the beginning of one", 3, "GPU-fedc", NULL, 1 },
    { "the first of several", 3, UUID_1 "," UUID_0, NULL, 1 },
    { "by its number", 3, "1", NULL, 1 },
    { "AMD's", 3, NULL, UUID_2, 2 },
    { "AMD's by its number", 3, NULL, "0", 2 },
    { "a beginning that says nothing", 3, "GPU-", NULL, -1 },
    { "one that is not there", 3, "7", NULL, -1 },
    { "a part of one", 3, "MIG-01234567", NULL, -1 },
    { "none is visible", 3, "", NULL, -1 },
    { "nobody says which, and there is one", 1, NULL, NULL, 0 },
    { "nobody says which, and there are several", 3, NULL, NULL, -1 },
    { "no GPUs at all", 0, "0", "0", -1 },
};

EACH(the_gpu_is_the_one_that_the_job_has, picks)
{
    const struct gauge_names names = { .cuda = picks[_i].cuda, .rocr = picks[_i].rocr };
    const int got = gauge_pick(box, picks[_i].n, &names);

    ck_assert_msg(got == picks[_i].want, "%s: %d", picks[_i].name, got);
}

static const struct {
    const char *name, *cuda, *order;
    int want;
} mixed[] = {
    { "CUDA may count the faster one first", "0", NULL, -1 },
    { "and says so", "1", "FASTEST_FIRST", -1 },
    { "or as the driver does", "1", "PCI_BUS_ID", 1 },
    { "a UUID is no number", UUID_1, NULL, 1 },
};

EACH(a_number_says_little_where_models_differ, mixed)
{
    const struct device two[] = {
        { .maker = DEVICE_NVIDIA, .index = 0, .uuid = UUID_0, .title = "T4" },
        { .maker = DEVICE_NVIDIA, .index = 1, .uuid = UUID_1, .title = "A100" },
    };
    const struct gauge_names names = { .cuda = mixed[_i].cuda, .order = mixed[_i].order };
    const int got = gauge_pick(two, 2, &names);

    ck_assert_msg(got == mixed[_i].want, "%s: %d", mixed[_i].name, got);
}

TEST(nothing_read_is_nothing_known)
{
    struct pair_gauge g;

    gauge_begin(&g, 10);
    ck_assert(isnan(gauge_watts(&g)) && isnan(gauge_gpu(&g)) && isnan(gauge_mem(&g)));
    ck_assert(isnan(g.mem_bytes));
}

TEST(only_what_was_read_since_counts)
{
    const struct gauge_reading early = { 9, 900, NAN, 1, 1, 9e9 };
    const struct gauge_reading some[] = { { 10, 100, NAN, 0.5, NAN, 1e9 },
                                          { 11, 200, NAN, 0.7, 0.2, 3e9 },
                                          { 12, NAN, NAN, NAN, 0.4, 2e9 } };
    struct pair_gauge g;

    gauge_begin(&g, 10);
    gauge_add(&g, &early);
    for (int i = 0; i < 3; i++)
        gauge_add(&g, &some[i]);
    ck_assert_double_eq(gauge_watts(&g), 150);
    ck_assert_double_eq_tol(gauge_gpu(&g), 0.6, 1e-12);
    ck_assert_double_eq_tol(gauge_mem(&g), 0.3, 1e-12);
    ck_assert_double_eq(g.mem_bytes, 3e9);
    gauge_begin(&g, INFINITY);
    gauge_add(&g, &some[0]);
    ck_assert(isnan(gauge_watts(&g)));
}

TEST(a_count_of_joules_is_better_than_moments)
{
    struct pair_gauge g;

    gauge_begin(&g, 0);
    gauge_add(&g, &(struct gauge_reading){ 0, 100, 5000, NAN, NAN, NAN });
    ck_assert_double_eq(gauge_watts(&g), 100);
    gauge_add(&g, &(struct gauge_reading){ 0.5, 100, 5200, NAN, NAN, NAN });
    ck_assert_double_eq(gauge_watts(&g), 100);    // too short to count by
    gauge_add(&g, &(struct gauge_reading){ 4, 100, 6000, NAN, NAN, NAN });
    ck_assert_double_eq(gauge_watts(&g), 250);
    gauge_add(&g, &(struct gauge_reading){ 5, 100, 1, NAN, NAN, NAN });    // it began anew
    ck_assert_double_eq(gauge_watts(&g), 100);
}
