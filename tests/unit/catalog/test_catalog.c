#include "catalog/catalog.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/buf.h"
#include "base/err.h"
#include "catalog/import/import.h"
#include "store/store.h"
#include "unit/catalog/stored.h"
#include "unit/suite.h"

FIXTURE(set_up, tear_down)

static int add_type(const char *name, double cap_w)
{
    struct gpu_type t = { .name = name, .cap_w = cap_w };
    int i;

    ck_assert_int_eq(catalog_add_type(&c, &t, &i, NULL), 0);
    return i;
}

static int add_workload(const char *name, double params)
{
    struct workload w;
    int i;

    workload_init(&w, name);
    w.params = params;
    ck_assert_int_eq(catalog_add_workload(&c, &w, &i, NULL), 0);
    return i;
}

static int add_campaign(const char *name)
{
    int index = -1;

    ck_assert_int_eq(catalog_add_campaign(&c, name, SHARING_UNKNOWN, &index, NULL), 0);
    return index;
}

static struct measurement speed(struct cell_key key, double steps_s, double noise)
{
    return (struct measurement){ .key = key,
                                 .fits = true,
                                 .throughput = steps_s,
                                 .watts = NAN,
                                 .duration_s = NAN,
                                 .noise = noise };
}

static void record(struct measurement m)
{
    struct err e = { 0 };

    ck_assert_msg(catalog_record(&c, &m, 0, &e) == 0, "%s", e.text);
}

TEST(unknown_figures_are_filled_in_and_known_ones_stay)
{
    ck_assert_int_eq(add_type("v100", NAN), 0);
    ck_assert_int_eq(add_type("k80", 149), 1);
    ck_assert_int_eq(add_type("v100", 250), 0);
    ck_assert_int_eq(add_type("v100", 999), 0);
    ck_assert_double_eq(c.types[0].cap_w, 250);
    ck_assert_int_eq(add_workload("a", NAN), 0);
    ck_assert_int_eq(add_workload("a", 7), 0);
    ck_assert_int_eq(add_workload("a", 8), 0);
    ck_assert_double_eq(c.workloads[0].params, 7);
    ck_assert_int_eq(catalog_find_workload(&c, "a"), 0);
    ck_assert_int_eq(catalog_find_workload(&c, "b"), -1);
    ck_assert_int_eq(catalog_find_type(&c, "k80"), 1);
    check_reload();
}

TEST(precision_and_profile_are_filled_in_stored_and_exported)
{
    struct workload w;
    struct catalog again;
    struct buf out;
    int i;

    add_workload("a", 7);
    workload_init(&w, "a");
    w.precision = PRECISION_FP16;
    w.needs_capability = 80;
    w.gpu_activity = 0.5;
    w.mem_used_bytes = 4e9;
    ck_assert_int_eq(catalog_add_workload(&c, &w, &i, NULL), 0);
    w.precision = PRECISION_INT8;
    w.needs_capability = 90;
    w.solo_watts = 200;
    ck_assert_int_eq(catalog_add_workload(&c, &w, &i, NULL), 0);
    ck_assert_int_eq(store_commit(s, NULL), 0);
    catalog_init(&again);
    ck_assert_int_eq(catalog_load(&again, s, NULL), 0);
    for (const struct catalog *of = &c; of != NULL; of = of == &c ? &again : NULL) {
        const struct workload *is = &of->workloads[0];

        ck_assert(is->precision == PRECISION_FP16 && is->needs_capability == 80);
        ck_assert(is->gpu_activity == 0.5 && is->mem_used_bytes == 4e9 && is->solo_watts == 200);
        ck_assert_double_nan(is->mem_activity);
    }
    buf_init(&out, 1 << 16);
    ck_assert_int_eq(catalog_export_workloads(s, &out, NULL), 0);
    ck_assert_ptr_nonnull(strstr(buf_text(&out), ",0.5,,200,4000000000,fp16,80"));
    buf_release(&out);
    catalog_release(&again);
    ck_assert_int_eq(store_begin(s, NULL), 0);
}

TEST(a_profile_is_the_mean_of_what_was_seen_where_nobody_told_it)
{
    struct workload w;
    struct catalog again;
    int i;

    workload_init(&w, "a");
    w.params = 7;
    w.mem_used_bytes = 5e9;
    ck_assert_int_eq(catalog_add_workload(&c, &w, &i, NULL), 0);
    for (int k = 0; k < PROFILE_WINDOWS + 3; k++) {
        struct solo_profile seen = { .gpu_activity = k < PROFILE_WINDOWS ? 0.1 * k : 1,
                                     .mem_activity = NAN,
                                     .watts = 200,
                                     .mem_used_bytes = 1e9 };
        ck_assert_int_eq(catalog_take_profile(&c, i, &seen, NULL), 0);
    }
    ck_assert_int_eq(store_commit(s, NULL), 0);
    catalog_init(&again);
    ck_assert_int_eq(catalog_load(&again, s, NULL), 0);
    for (const struct catalog *of = &c; of != NULL; of = of == &c ? &again : NULL) {
        const struct workload *is = &of->workloads[0];

        ck_assert_double_eq_tol(is->gpu_activity, 0.1 * (PROFILE_WINDOWS - 1) / 2, 1e-12);
        ck_assert(is->solo_watts == 200 && is->mem_used_bytes == 5e9 && is->params == 7);
        ck_assert_double_nan(is->mem_activity);
    }
    catalog_release(&again);
    ck_assert_int_eq(store_begin(s, NULL), 0);
}

/* Estimates of what neighbours cost rest on activities. */
TEST(an_activity_that_is_first_seen_or_moves_is_another_description)
{
    static const struct {
        const char *name;
        double gpu, mem, watts;
        bool is_news;
    } seen[] = {
        { "watts are no activity", NAN, NAN, 200, false },
        { "the first activity of the device", 0.5, NAN, 200, true },
        { "the same again, and other watts", 0.5, NAN, 300, false },
        { "the first activity of the memory", 0.5, 0.2, NAN, true },
        { "a little more of both", 0.54, 0.24, 1, false },
        { "one that moves the mean of the device's", 0.95, 0.2, NAN, true },
        { "watts alone after that", NAN, NAN, 90, false },
        { "one that is as the mean is by now", 0.59, 0.22, NAN, false },
    };
    int i = add_workload("a", NAN);

    for (size_t k = 0; k < N_ROWS(seen); k++) {
        struct solo_profile p = { seen[k].gpu, seen[k].mem, seen[k].watts, NAN };
        uint32_t before = c.descriptions;
        ck_assert_int_eq(catalog_take_profile(&c, i, &p, NULL), 0);
        ck_assert_msg((c.descriptions != before) == seen[k].is_news, "%s", seen[k].name);
    }
    struct workload told = c.workloads[i];
    told.gpu_activity = 0.1;
    ck_assert_int_eq(catalog_set_workload(&c, &told, &i, NULL), 0);
    uint32_t before = c.descriptions;
    ck_assert_int_eq(catalog_take_profile(&c, i, &(struct solo_profile){ 1, 1, NAN, NAN }, NULL),
                     0);
    ck_assert(c.descriptions == before && c.workloads[i].gpu_activity == 0.1);
}

/* What an older version wrote: no rates but two, and features that nobody believes. */
TEST(an_old_row_is_completed_from_the_table_or_doubted)
{
    struct row_gpu_type type = { .name = "h100",
                                 .peak_tf32_flops = 0,    // somebody said so
                                 .peak_fp8_flops = NAN,
                                 .peak_int8_flops = NAN };
    struct row_workload row = { .name = "w", .batch = NAN };
    struct catalog again;

    row.number[0] = 5;    // and no FLOP, no bytes, no kernels
    ck_assert_int_eq(store_put_gpu_type(s, &type, NULL, NULL), 0);
    ck_assert_int_eq(store_put_workload(s, &row, NULL, NULL), 0);
    catalog_init(&again);
    ck_assert_int_eq(catalog_load(&again, s, NULL), 0);
    ck_assert(again.types[0].peak_tf32_flops == 0 && again.types[0].peak_fp8_flops == 1978.9e12);
    ck_assert_int_eq(again.types[0].capability, 90);
    ck_assert(again.workloads[0].params == 5 && isnan(again.workloads[0].flop_per_sample));
    ck_assert(isnan(again.workloads[0].kernels_per_step) && again.workloads[0].conv == 0);
    catalog_release(&again);
}

TEST(the_mean_is_of_logarithms_and_weighted_by_precision)
{
    int w = add_workload("a", NAN), t = add_type("v100", 250);
    struct cell_key key = { .workload = w, .gpu_type = t, .neighbour = -1, .n_gpus = 1 };
    const struct cell *cell;

    record(speed(key, 10, 0.1));
    record(speed(key, 20, 0.2));
    cell = catalog_cell(&c, key);
    ck_assert_int_eq(cell->n_speed, 2);
    ck_assert_double_eq_tol(cell->speed_weight, 125, 1e-9);
    ck_assert_double_eq_tol(cell->ln_speed, (100 * log(10) + 25 * log(20)) / 125, 1e-12);
    record(speed(key, 10, NAN));    // CATALOG_NOISE
    ck_assert_double_eq_tol(catalog_cell(&c, key)->speed_weight, 125 + 400, 1e-9);
    check_reload();
}

TEST(measurements_that_contradict_each_other_are_trusted_less)
{
    int w = add_workload("a", NAN), t = add_type("v100", 250);
    struct cell_key key = { .workload = w, .gpu_type = t, .neighbour = -1, .n_gpus = 1 };
    struct cell_key far = { .workload = w, .gpu_type = t, .neighbour = w, .n_gpus = 1 };
    double half = log(4e6 / 3) / 2;

    record(speed(key, 3, NAN));
    ck_assert_double_eq_tol(cell_variance(catalog_cell(&c, key)), 0.0025, 1e-12);
    record(speed(key, 3 * 1.01, NAN));    // well within its noise
    ck_assert_double_eq_tol(cell_variance(catalog_cell(&c, key)), 0.0025 / 2, 1e-12);
    record(speed(far, 3, NAN));
    record(speed(far, 4e6, NAN));
    ck_assert_double_eq_tol(catalog_cell(&c, far)->ln_speed, log(3) + half, 1e-9);
    ck_assert_double_eq_tol(cell_variance(catalog_cell(&c, far)), half * half, 1e-6);
    check_reload();
}

TEST(noise_too_good_to_be_true_counts_as_the_least)
{
    int w = add_workload("a", NAN), t = add_type("v100", 250);
    struct cell_key key = { .workload = w, .gpu_type = t, .neighbour = -1, .n_gpus = 1 };

    record(speed(key, 3, 1e-200));
    ck_assert_double_eq_tol(catalog_cell(&c, key)->speed_weight, 1e8, 1);
    ck_assert(isfinite(catalog_cell(&c, key)->ln_speed));
    check_reload();
}

TEST(what_is_set_replaces_what_was_known)
{
    struct gpu_type v100 = *gpu_type_builtin("v100");
    struct workload w;
    uint32_t before;
    int i;

    v100.name = "v100";
    add_type("v100", 250);
    workload_init(&w, "a");
    w.task = "old";
    w.params = 7;
    w.conv = 1;
    ck_assert_int_eq(catalog_add_workload(&c, &w, &i, NULL), 0);
    before = c.descriptions;
    v100.cap_w = 300;
    ck_assert_int_eq(catalog_set_type(&c, &v100, &i, NULL), 0);
    ck_assert(i == 0 && c.types[0].cap_w == 300 && c.types[0].idle_w == v100.idle_w);
    workload_init(&w, "a");
    w.params = 9;
    w.task = "new";
    ck_assert_int_eq(catalog_set_workload(&c, &w, &i, NULL), 0);
    ck_assert(i == 0 && c.workloads[0].params == 9 && c.workloads[0].conv == 1);
    ck_assert_str_eq(c.workloads[0].task, "new");
    ck_assert_uint_eq(c.descriptions, before + 2);
    check_reload();
}

TEST(two_catalogs_of_one_store_do_not_wipe_out_what_the_other_learnt)
{
    struct catalog other, again;
    struct gpu_type t = { .name = "v100", .idle_w = 40, .cap_w = NAN };
    struct workload w;
    int i;

    add_type("v100", NAN);
    add_workload("a", NAN);
    ck_assert_int_eq(store_commit(s, NULL), 0);
    catalog_init(&other);
    ck_assert_int_eq(catalog_load(&other, s, NULL), 0);
    ck_assert_int_eq(store_begin(s, NULL), 0);
    add_type("v100", 250);
    add_workload("a", 7);
    workload_init(&w, "a");    // 'other' knows nothing of this yet
    w.conv = 0.5;
    ck_assert_int_eq(catalog_add_type(&other, &t, &i, NULL), 0);
    ck_assert_int_eq(catalog_add_workload(&other, &w, &i, NULL), 0);
    catalog_init(&again);
    ck_assert_int_eq(catalog_load(&again, s, NULL), 0);
    ck_assert(again.types[0].cap_w == 250 && again.types[0].idle_w == 40);
    ck_assert(again.workloads[0].params == 7 && again.workloads[0].conv == 0.5);
    catalog_release(&again);
    catalog_release(&other);
}

/* Rows that only another program could have written. */
static const struct {
    const char *name;
    double limit_w;
    const char *workload, *want;
} odd_rows[] = {
    { "a limit out of range", 1e6, "a", ":memory:: measurement 1 has a power limit" },
    { "a negative limit", -1, "a", ":memory:: measurement 1 has a power limit" },
    { "a name with a newline", 100, "a\nb", ":memory:: workload 1 has no proper name" },
    { "a name of nothing", 100, "", ":memory:: workload 1 has no proper name" },
};

EACH(odd_rows_of_a_store_are_refused_with_its_path, odd_rows)
{
    struct row_gpu_type type = { .name = "v100" };
    struct row_workload workload = { .name = odd_rows[_i].workload };
    struct row_measurement m = {
        .n_gpus = 1, .fits = true, .throughput = 1, .watts = NAN, .limit_w = odd_rows[_i].limit_w
    };
    struct catalog again;
    struct err e = { 0 };

    ck_assert_int_eq(store_put_gpu_type(s, &type, &m.gpu_type, NULL), 0);
    ck_assert_int_eq(store_put_workload(s, &workload, &m.workload, NULL), 0);
    ck_assert_int_eq(store_add_measurement(s, &m, NULL), 0);
    catalog_init(&again);
    ck_assert_msg(catalog_load(&again, s, &e) == -EINVAL, "%s", odd_rows[_i].name);
    ck_assert_msg(strstr(e.text, odd_rows[_i].want) == e.text, "%s: %s", odd_rows[_i].name, e.text);
    catalog_release(&again);
}

/* A restart is no reason to learn them again. */
TEST(what_was_seen_of_limits_is_loaded_again)
{
    struct measurement m = speed((struct cell_key){ .workload = add_workload("a", NAN),
                                                    .gpu_type = add_type("v100", 250),
                                                    .neighbour = -1,
                                                    .n_gpus = 1 },
                                 5, 0.05);

    record(m);    // says nothing of them
    ck_assert_double_eq(c.cells[0].limits.weight, 0);
    for (int i = 0; i < 3; i++) {
        m.ln_pace = -0.2 * i;
        m.ln_undone = 0.1 * i;
        m.seen = (struct limit_reading){ .ln_speed = log(5) - 0.1 * i, .noise = 0.04 };
        if (i == 2) {
            m.seen.ln_law_w = -0.3;
            m.seen.ln_watts = -0.4;
            m.seen.watts_noise = 0.02;
        }
        record(m);
    }
    const struct limit_sums *sums = &c.cells[0].limits;
    ck_assert_double_eq_tol(sums->weight, 3 / (0.04 * 0.04), 1e-6);
    ck_assert_double_eq_tol(sums->x / sums->weight, -0.2, 1e-12);
    ck_assert_double_eq_tol(sums->watts_xy / sums->watts_xx, 4.0 / 3, 1e-12);
    check_reload();
}

TEST(rows_beyond_one_batch_are_all_loaded)
{
    int w = add_workload("a", NAN), t = add_type("v100", 250);

    for (int i = 0; i < 100; i++) {
        struct cell_key key = {
            .workload = w, .gpu_type = t, .neighbour = -1, .n_gpus = 1 + i % 37
        };
        record(speed(key, 1 + i, NAN));
    }
    check_reload();
}

/* Every field of a key makes another cell. */
static const struct cell_key keys[] = {
    { .workload = 0, .gpu_type = 0, .neighbour = -1, .n_gpus = 1 },
    { .workload = 1, .gpu_type = 0, .neighbour = -1, .n_gpus = 1 },
    { .workload = 0, .gpu_type = 1, .neighbour = -1, .n_gpus = 1 },
    { .workload = 0, .gpu_type = 0, .neighbour = 0, .n_gpus = 1 },
    { .workload = 0, .gpu_type = 0, .neighbour = 1, .n_gpus = 1 },
    { .workload = 0, .gpu_type = 0, .neighbour = -1, .n_gpus = 2 },
    { .workload = 0, .gpu_type = 0, .neighbour = -1, .n_gpus = 2, .is_spread = true },
    { .workload = 0, .gpu_type = 0, .neighbour = -1, .n_gpus = CATALOG_GANG_MAX },
    { .workload = 0, .gpu_type = 0, .neighbour = -1, .n_gpus = 1, .limit_w = 100 },
    { .workload = 0, .gpu_type = 0, .neighbour = -1, .n_gpus = 1, .limit_w = 125 },
    { .workload = 0, .gpu_type = 0, .neighbour = -1, .n_gpus = 2, .limit_w = 125 },
    { .workload = 0, .gpu_type = 0, .neighbour = -1, .n_gpus = 1, .campaign = 1 },
    { .workload = 0, .gpu_type = 0, .neighbour = -1, .n_gpus = 1, .campaign = 2 },
};

TEST(every_field_of_a_key_makes_another_cell)
{
    const int n = sizeof(keys) / sizeof(keys[0]);
    int n_listed = 0;

    add_workload("a", NAN);
    add_workload("b", NAN);
    add_type("v100", 250);
    add_type("k80", 149);
    add_campaign("theirs");
    add_campaign("others");
    for (int i = 0; i < n; i++)
        ck_assert_ptr_null(catalog_cell(&c, keys[i]));
    for (int i = 0; i < n; i++)
        record(speed(keys[i], 1 + i, NAN));
    ck_assert_int_eq(c.n_cells, n);
    for (int i = 0; i < n; i++)
        ck_assert_double_eq_tol(catalog_cell(&c, keys[i])->ln_speed, log(1 + i), 1e-12);
    for (int i = c.first_cell[0]; i >= 0; i = c.next_cell[i])
        n_listed++;
    ck_assert_int_eq(n_listed, n - 3);    // one of another workload, two of other campaigns
    check_reload();
}

TEST(a_campaign_is_known_by_its_name_and_the_first_is_the_sites_own)
{
    int again;

    ck_assert_int_eq(catalog_find_campaign(&c, CATALOG_SITE_NAME), CATALOG_SITE);
    ck_assert_int_eq(catalog_find_campaign(&c, "theirs"), -1);
    ck_assert_int_eq(add_campaign("theirs"), 1);
    ck_assert_int_eq(add_campaign("theirs"), 1);
    ck_assert_int_eq(add_campaign(CATALOG_SITE_NAME), CATALOG_SITE);
    store_rollback(s);
    catalog_doubt(&c);
    ck_assert_int_eq(catalog_begin(&c, NULL), 0);    // written anew
    again = add_campaign("theirs");
    int w = add_workload("a", NAN), t = add_type("v100", 250);
    record(speed((struct cell_key){ w, t, -1, 1, .campaign = again }, 2, NAN));
    check_reload();
}

/* What others measured says nothing of this site: neither whether speeds changed for good here nor
 * that anything was measured of a workload.
 */
TEST(other_campaigns_do_not_make_a_site_drift)
{
    int w = add_workload("a", NAN), t = add_type("v100", 250), theirs = add_campaign("theirs");
    struct cell_key key = { w, t, -1, 1, .campaign = theirs };

    for (int i = 0; i < 40; i++)
        record(speed(key, i < 20 ? 1 : 5, NAN));
    ck_assert_int_eq(c.first_cell[w], -1);
    ck_assert_int_eq(c.workload_drift[w].n_seen + c.type_drift[t].n_seen, 0);
    ck_assert(!cell_key_is_plain(&key) && cell_key_is_default(&key));
    check_reload();
}

TEST(how_gpus_are_shared_is_kept_with_types_and_campaigns)
{
    struct gpu_type t = *gpu_type_builtin("v100");
    int index, theirs = add_campaign("theirs");

    t.sharing = SHARING_TIMESLICE;
    ck_assert_int_eq(catalog_add_type(&c, &t, &index, NULL), 0);
    ck_assert_int_eq(catalog_add_campaign(&c, "theirs", SHARING_MPS, &index, NULL), 0);
    ck_assert_int_eq(index, theirs);
    check_reload();
    uint32_t before = c.descriptions;
    t.sharing = SHARING_MPS;    // the site has changed its mind
    ck_assert_int_eq(catalog_add_type(&c, &t, &index, NULL), 0);
    ck_assert(c.types[index].sharing == SHARING_MPS && c.descriptions != before);
    ck_assert_int_eq(add_campaign("theirs"), theirs);    // says nothing of it
    ck_assert_int_eq(c.campaign_sharing[theirs], SHARING_MPS);
    check_reload();
    t.sharing = SHARING_UNKNOWN;    // as a file without a word on it has it
    ck_assert_int_eq(catalog_set_type(&c, &t, &index, NULL), 0);
    ck_assert_int_eq(c.types[index].sharing, SHARING_MPS);    // as was found
    check_reload();
    t.sharing = SHARING_MIG;
    ck_assert_int_eq(catalog_set_type(&c, &t, &index, NULL), 0);
    ck_assert_int_eq(c.types[index].sharing, SHARING_MIG);
    check_reload();
}

TEST(what_was_said_of_sharing_can_be_taken_back)
{
    struct gpu_type t = *gpu_type_builtin("v100");
    int index, theirs;

    for (int sets = 0; sets < 2; sets++) {
        int (*say)(struct catalog *, const struct gpu_type *, int *, struct err *) =
            sets ? catalog_set_type : catalog_add_type;
        t.name = sets ? "set" : "added";
        for (int i = 0; i < 4; i++) {    // of a new one, too
            t.sharing = i % 2 ? SHARING_EXCLUSIVE : SHARING_TAKEN_BACK;
            ck_assert_int_eq(say(&c, &t, &index, NULL), 0);
            ck_assert_int_eq(c.types[index].sharing, i % 2 ? SHARING_EXCLUSIVE : SHARING_UNKNOWN);
            check_reload();
        }
        t.sharing = SHARING_TAKEN_BACK;
        ck_assert_int_eq(say(&c, &t, &index, NULL), 0);
        ck_assert_int_eq(gpu_type_theta(&c.types[index], 2), 2);
        check_reload();
    }
    ck_assert_int_eq(catalog_add_campaign(&c, "theirs", SHARING_MPS, &theirs, NULL), 0);
    ck_assert_int_eq(catalog_add_campaign(&c, "theirs", SHARING_TAKEN_BACK, &index, NULL), 0);
    ck_assert(index == theirs && c.campaign_sharing[theirs] == SHARING_UNKNOWN);
    check_reload();
}

TEST(a_catalog_takes_so_many_campaigns)
{
    struct err e = { 0 };
    char name[32];
    int index;

    for (int i = 1; i < CATALOG_CAMPAIGNS_MAX; i++) {
        snprintf(name, sizeof name, "c%d", i);
        ck_assert_int_eq(add_campaign(name), i);
    }
    ck_assert_int_eq(catalog_add_campaign(&c, "one more", SHARING_MPS, &index, &e), -EOVERFLOW);
    ck_assert_ptr_nonnull(strstr(e.text, "one campaign too many"));
}

static const struct {
    const char *name;
    struct measurement m;
} refused[] = {
    { "a speed of zero", { .key = { .neighbour = -1, .n_gpus = 1 }, .fits = true, .watts = NAN } },
    { "an infinite speed",
      { .key = { .neighbour = -1, .n_gpus = 1 },
        .fits = true,
        .throughput = INFINITY,
        .watts = NAN } },
    { "negative watts",
      { .key = { .neighbour = -1, .n_gpus = 1 }, .fits = true, .throughput = NAN, .watts = -1 } },
    { "no GPU at all",
      { .key = { .neighbour = -1 }, .fits = true, .throughput = 1, .watts = NAN } },
    { "a negative limit",
      { .key = { .neighbour = -1, .n_gpus = 1, .limit_w = -5 },
        .fits = true,
        .throughput = 1,
        .watts = NAN } },
    { "a speed where it does not fit",
      { .key = { .neighbour = -1, .n_gpus = 1 }, .throughput = 1, .watts = NAN } },
};

EACH(what_is_no_measurement_is_refused, refused)
{
    struct err e = { 0 };

    add_workload("a", NAN);
    add_type("v100", 250);
    ck_assert_msg(catalog_record(&c, &refused[_i].m, 0, &e) == -EINVAL, "%s", refused[_i].name);
    ck_assert_int_eq(c.n_cells, 0);
    ck_assert_int_eq(c.n_measurements, 0);
}

TEST(the_summary_counts_unordered_pairs_that_do_not_fit)
{
    struct catalog_summary sum;
    struct measurement unfit = { .key = { .neighbour = 1, .n_gpus = 1 },
                                 .throughput = NAN,
                                 .watts = NAN };

    add_workload("a", NAN);
    add_workload("b", NAN);
    add_type("v100", 250);
    add_type("k80", 149);
    record(unfit);    // a beside b on v100 ...
    unfit.key.workload = 1;
    unfit.key.neighbour = 0;
    record(unfit);    // ... and b beside a: the same pair
    unfit.key.gpu_type = 1;
    record(unfit);    // only stated from the larger side
    unfit.key.neighbour = 1;
    record(unfit);    // beside itself
    unfit.key.neighbour = -1;
    record(unfit);    // alone
    catalog_summarise(&c, &sum);
    ck_assert_int_eq(sum.n_unfit_pairs, 3);
    ck_assert_int_eq(sum.n_unfit_isolated, 1);
    ck_assert_int_eq(sum.n_pairs, 0);
    check_reload();
}

TEST(a_catalog_without_a_store_keeps_everything_in_memory)
{
    struct catalog alone;
    struct workload w;
    struct gpu_type t = { .name = "v100" };
    int wi, ti;

    catalog_init(&alone);
    workload_init(&w, "a");
    ck_assert_int_eq(catalog_add_workload(&alone, &w, &wi, NULL), 0);
    ck_assert_int_eq(catalog_add_type(&alone, &t, &ti, NULL), 0);
    struct cell_key key = { .workload = wi, .gpu_type = ti, .neighbour = -1, .n_gpus = 1 };
    struct measurement m = speed(key, 3, NAN);
    ck_assert_int_eq(catalog_record(&alone, &m, 0, NULL), 0);
    ck_assert_int_eq(alone.n_cells, 1);
    catalog_release(&alone);
}

TEST(one_type_more_than_fits_the_key_is_refused)
{
    struct gpu_type t = { 0 };
    struct err e = { 0 };
    char name[16];
    int i, rc = 0;

    for (int n = 0; n <= CATALOG_TYPES_MAX && rc == 0; n++) {
        snprintf(name, sizeof(name), "t%d", n);
        t.name = name;
        rc = catalog_add_type(&c, &t, &i, &e);
    }
    ck_assert_int_eq(rc, -EOVERFLOW);
    ck_assert_int_eq(c.n_types, CATALOG_TYPES_MAX);
}

TEST(an_export_quotes_what_needs_it_and_keeps_every_digit)
{
    struct buf out;
    int w = add_workload("# a, \"b\"", NAN), t = add_type("v100", 250);
    struct cell_key key = {
        .workload = w, .gpu_type = t, .neighbour = -1, .n_gpus = 1, .limit_w = 150
    };
    struct measurement m = speed(key, 0.1 + 0.2, 0.05);

    m.watts = 100;
    record(m);
    buf_init(&out, 10000);
    ck_assert_int_eq(catalog_export(s, &out, NULL), 0);
    ck_assert_str_eq(buf_text(&out),
                     "workload,gpu,neighbour,n_gpus,spread,limit_w,throughput,watts,fits,time,"
                     "duration_s,noise\n"
                     "\"# a, \"\"b\"\"\",v100,,1,0,150,0.30000000000000004,100,1,,,0.05\n");
    buf_release(&out);
    buf_init(&out, 20);
    ck_assert_int_eq(catalog_export(s, &out, NULL), -EFBIG);
    buf_release(&out);
}
