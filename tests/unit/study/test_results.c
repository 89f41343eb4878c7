/* What a study keeps on disk: whole, recognised, and the same bytes each time. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/file.h"
#include "study/results.h"
#include "unit/suite.h"
#include "unit/support.h"

static const struct scenario small = {
    .name = "small",
    .title = "made up",
    .n_jobs = 10,
};

static struct study_run key_of(const char *policy, int seed)
{
    return (struct study_run){ .scenario = &small,
                               .load = 0.9,
                               .policy = policy,
                               .seed = seed,
                               .has_sleep = true,
                               .without = "" };
}

static struct study_result result_of(double energy_kwh)
{
    static struct study_type types[] = { { "k80", 4, 1.5, 0.25 }, { "v100", 2, 0.1, (double)NAN } };
    static struct study_slice slices[] = { { 60, 120.5, 1.0 / 3, (double)NAN, 0, 1, 2 },
                                           { 120, 99, 0.5, 0.125, 7, (double)NAN, 0 } };
    static struct study_interval intervals[] = { { 0, 3, 0, 10, 70 }, { 1, 4, 150, 10, 130 } };

    return (struct study_result){ .energy_j_per_work = 1.0 / 3,
                                  .energy_kwh = energy_kwh,
                                  .promise_attainment = 0.97,
                                  .mean_jct_s = NAN,
                                  .moves = 5,
                                  .jobs = 10,
                                  .wall_s = 0.5,
                                  .n_types = 2,
                                  .types = types,
                                  .n_slices = 2,
                                  .slices = slices,
                                  .intervals_from_s = 10,
                                  .intervals_to_s = 130,
                                  .n_intervals = 2,
                                  .intervals = intervals };
}

static const struct results_data data_d = { &small, "d" }, data_e = { &small, "e" };

static struct results book_in(const char *dir)
{
    return (
        struct results){ .dir = dir, .version = "1", .build = "b", .n_data = 1, .data = &data_d };
}

/* A results of its own in a directory of its own, taken. */
static struct fixture {
    struct arena arena;
    struct results results;
    char *dir;
} f;    // of the test

static void fixture_init(void)
{
    struct err e = { 0 };

    arena_init(&f.arena);
    f.dir = scratch_make();
    f.results = book_in(f.dir);
    ck_assert_msg(results_lock(&f.results, &e) == 0, "%s", e.text);
}

static void fixture_release(void)
{
    results_unlock(&f.results);
    scratch_remove(f.dir);
    arena_release(&f.arena);
}

FIXTURE(fixture_init, fixture_release)

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

TEST(a_run_comes_back_as_it_was_kept)
{
    struct study_result want = result_of(0.1 + 0.2), got;
    struct study_run k = key_of("gogh", 11);
    struct err e = { 0 };

    ck_assert(!results_has(&f.arena, &f.results, &k, &got));
    ck_assert_msg(results_keep(&f.results, &k, &want, &e) == 0, "%s", e.text);
    ck_assert(results_has(&f.arena, &f.results, &k, &got));
    ck_assert(got.energy_kwh == want.energy_kwh && got.moves == 5 && got.jobs == 10);
    ck_assert(isnan(got.mean_jct_s) && got.wall_s == 0.5);
    ck_assert_int_eq(got.n_types, 2);
    ck_assert_str_eq(got.types[1].name, "v100");
    ck_assert(got.types[0].gpu_hours == 1.5 && isnan(got.types[1].energy_kwh));
    ck_assert_int_eq(got.n_slices, 2);
    for (int i = 0; i < 2; i++) {
        const struct study_slice *a = &got.slices[i], *b = &want.slices[i];

        ck_assert(a->time_s == b->time_s && a->watts == b->watts &&
                  a->work_per_s == b->work_per_s && same(a->error, b->error) &&
                  a->measurements == b->measurements && same(a->attainment, b->attainment) &&
                  a->waiting == b->waiting);
    }
    ck_assert_int_eq(got.n_intervals, 2);
    ck_assert(memcmp(got.intervals, want.intervals, 2 * sizeof *got.intervals) == 0);
    ck_assert(got.intervals_from_s == 10 && got.intervals_to_s == 130);
}

static const struct {
    const char *name;
    struct results as;
    const char *policy;
} strangers[] = {
    { "of another version",
      { .version = "2", .build = "b", .n_data = 1, .data = &data_d },
      "gogh" },
    { "of another build", { .version = "1", .build = "c", .n_data = 1, .data = &data_d }, "gogh" },
    { "of other data", { .version = "1", .build = "b", .n_data = 1, .data = &data_e }, "gogh" },
    { "of no data", { .version = "1", .build = "b" }, "gogh" },
    { "of another policy", { .version = "1", .build = "b", .n_data = 1, .data = &data_d }, "pack" },
};

EACH(somebody_elses_run_is_not_there, strangers)
{
    struct study_result r = result_of(1);
    struct study_run k = key_of("gogh", 11), other = key_of(strangers[_i].policy, 11);
    struct study_run absent = key_of("pack", 11);
    struct results as = strangers[_i].as;
    struct err e = { 0 };

    as.dir = f.dir;
    ck_assert_int_eq(results_keep(&f.results, &k, &r, &e), 0);
    ck_assert_msg(!results_has(&f.arena, &as, &other, &r), "%s", strangers[_i].name);
    as.takes_any = true;
    ck_assert(results_has(&f.arena, &as, &k, &r));
    ck_assert(!results_has(&f.arena, &as, &absent, &r));
}

TEST(rows_are_those_that_are_there_in_the_order_asked_for)
{
    struct study_run asked[] = { key_of("c", 11), key_of("b", 11), key_of("a", 11) };
    struct study_result r = result_of(1);
    struct err e = { 0 };

    ck_assert_int_eq(results_keep(&f.results, &asked[2], &r, &e), 0);
    ck_assert_int_eq(results_keep(&f.results, &asked[0], &r, &e), 0);
    results_fill(&f.arena, &f.results, asked, 3);
    ck_assert_int_eq(f.results.n_rows, 2);
    ck_assert_str_eq(f.results.rows[0].key.policy, "c");
    ck_assert_str_eq(f.results.rows[1].key.policy, "a");
    ck_assert(f.results.rows[1].result.energy_kwh == 1);
}

TEST(a_book_names_the_data_of_its_rows_and_no_other)
{
    static const struct scenario other = { .name = "other", .title = "" };
    static const struct scenario bare = {
        .name = "bare", .title = "", .cluster = "", .truth = TRUTH_BUILTIN, .is_builtin = true
    };
    static const struct results_data data[] = { { &small, "d" }, { &other, "e" }, { &bare, "f" } };
    struct study_run keys[] = { key_of("a", 11), key_of("b", 11), key_of("a", 11),
                                key_of("a", 11) };
    static const struct {
        int from, n;
        const char *digest;
    } parts[] = {
        { 0, 2, "d" }, { 1, 2, "d, e" }, { 2, 2, "e" }, { 3, 1, "none" }, { 0, 0, "none" }
    };
    struct study_result r = result_of(1);
    struct err e = { 0 };

    f.results.data = data;
    f.results.n_data = 3;    // the last as older files have it: nobody reads that
    keys[2].scenario = &other;
    keys[3].scenario = &bare;
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(results_keep(&f.results, &keys[i], &r, &e), 0);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        results_fill(&f.arena, &f.results, keys + parts[i].from, parts[i].n);
        ck_assert_int_eq(f.results.n_rows, parts[i].n);
        ck_assert_str_eq(f.results.digest, parts[i].digest);
    }
}

static const char *path_of(const struct study_run *k)
{
    return arena_printf(&f.arena, "%s/runs/%s.json", f.dir, study_run_name(&f.arena, k));
}

/* Keep a run, and change its file: 'to' instead of 'from'. */
static void keep_changed(const struct study_run *k, const char *from, const char *to)
{
    const struct study_result r = result_of(1);
    struct err e = { 0 };
    const char *text, *at;
    size_t len;

    ck_assert_int_eq(results_keep(&f.results, k, &r, &e), 0);
    ck_assert_int_eq(file_read(&f.arena, path_of(k), NULL, 1 << 20, &text, &len, &e), 0);
    at = strstr(text, from);
    ck_assert_msg(at != NULL, "%s is not in %s", from, text);
    text = arena_printf(&f.arena, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    ck_assert_int_eq(file_write(path_of(k), text, strlen(text), &e), 0);
}

TEST(a_file_that_is_no_run_is_named)
{
    struct study_run keys[] = { key_of("a", 11), key_of("b", 11), key_of("c", 11) };
    struct study_result r = result_of(1);
    struct err e = { 0 };
    const char *path;

    ck_assert_int_eq(results_keep(&f.results, &keys[0], &r, &e), 0);
    ck_assert_int_eq(results_keep(&f.results, &keys[2], &r, &e), 0);
    results_fill(&f.arena, &f.results, keys, 3);
    ck_assert_ptr_null(f.results.broken);    // one is missing, none is garbage
    path = path_of(&keys[2]);
    ck_assert_int_eq(file_write(path, "{\"run\":", 7, &e), 0);
    results_fill(&f.arena, &f.results, keys, 3);
    ck_assert_int_eq(f.results.n_rows, 1);
    ck_assert_str_eq(f.results.broken, path);
}

TEST(a_run_that_is_cut_off_anywhere_is_not_there)
{
    struct study_result r = result_of(1);
    struct study_run k = key_of("gogh", 11);
    struct err e = { 0 };
    const char *text, *path;
    size_t len;

    ck_assert_int_eq(results_keep(&f.results, &k, &r, &e), 0);
    path = path_of(&k);
    ck_assert_int_eq(file_read(&f.arena, path, NULL, 1 << 20, &text, &len, &e), 0);
    for (size_t n = 0; n < len; n += 37) {
        ck_assert_int_eq(file_write(path, text, n, &e), 0);
        ck_assert_msg(!results_has(&f.arena, &f.results, &k, &r), "with %zu of %zu bytes", n, len);
    }
    ck_assert_int_eq(file_write(path, text, len, &e), 0);
    ck_assert(results_has(&f.arena, &f.results, &k, &r));
}

static const struct {
    const char *from, *to;
} damages[] = {
    { "\"moves\":5", "\"moves\":\"5\"" },
    { "\"moves\":5", "\"moves\":5.5" },
    { "\"moves\":5", "\"moves\":null" },
    { "\"wall_s\":", "\"well_s\":" },
    { "\"details\":{", "\"detail\":{" },
    { "[\"k80\",4,", "[\"k80\",\"4\"," },
    { "[\"k80\",4,", "[null,4," },
    { "\"slices\":[[60.0", "\"slices\":[[" },
    { "\"stays\":[[0,3", "\"stays\":[[0,9999999999" },
    { "\"stays\":[[0,3", "\"stays\":[[-5,3" },
    { "\"stays\":[[0,3", "\"stays\":[[2000000000,3" },
    { "\"energy_kwh\":", "\"energy_kwh\":[]+" },
};

EACH(a_run_that_somebody_changed_is_not_there, damages)
{
    struct study_result r;
    struct study_run k = key_of("gogh", 11);

    keep_changed(&k, damages[_i].from, damages[_i].to);
    ck_assert_msg(!results_has(&f.arena, &f.results, &k, &r), "%s", damages[_i].to);
}

TEST(one_study_at_a_time_has_the_directory)
{
    struct err e = { 0 };
    struct results second;

    second = book_in(f.dir);
    ck_assert_int_eq(results_lock(&second, &e), -EBUSY);
    ck_assert_msg(strstr(e.text, "another study") != NULL, "%s", e.text);
    results_unlock(&f.results);
    ck_assert_int_eq(results_lock(&second, &e), 0);
    results_unlock(&second);
}

static void touch(const char *path)
{
    FILE *file = fopen(path, "we");

    ck_assert_ptr_nonnull(file);
    fclose(file);
}

TEST(taking_it_clears_away_what_was_half_written_and_nothing_else)
{
    static const struct {
        const char *name;
        bool is_left;
    } files[] = {
        { "runs/a.json.77-0.tmp", false },
        { "report.html.9-1.tmp", false },
        { "runs/mine.tmp", true },
        { "notes.json", true },
    };
    struct err e = { 0 };

    results_unlock(&f.results);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        touch(arena_printf(&f.arena, "%s/%s", f.dir, files[i].name));
    ck_assert_int_eq(results_lock(&f.results, &e), 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        ck_assert_msg((access(arena_printf(&f.arena, "%s/%s", f.dir, files[i].name), F_OK) == 0) ==
                          files[i].is_left,
                      "%s", files[i].name);
}

TEST(a_file_in_the_directorys_place_is_told)
{
    struct err e = { 0 };
    struct results b;

    b = book_in(arena_printf(&f.arena, "%s/file", f.dir));
    touch(b.dir);
    ck_assert_int_eq(results_lock(&b, &e), -ENOTDIR);
    ck_assert_msg(strstr(e.text, "wants a directory") != NULL, "%s", e.text);
    b = book_in(arena_printf(&f.arena, "%s/no/such/place", f.dir));
    ck_assert_int_eq(results_lock(&b, &e), -ENOENT);
    ck_assert_msg(strstr(e.text, b.dir) != NULL, "%s", e.text);
}

static const char *content(const char *name)
{
    struct err e = { 0 };
    const char *text;
    size_t len;

    ck_assert_msg(file_read(&f.arena, arena_printf(&f.arena, "%s/%s", f.dir, name), NULL, 1 << 20,
                            &text, &len, &e) == 0,
                  "%s", e.text);
    return text;
}

static int n_lines(const char *text)
{
    int n = 0;

    for (; *text != '\0'; text++)
        n += *text == '\n';
    return n;
}

static void write_two_rows(void)
{
    struct err e = { 0 };

    f.results.n_rows = 2;
    f.results.rows = ARENA_ARRAY(&f.arena, struct results_row, 2);
    for (int i = 0; i < 2; i++)
        f.results.rows[i] =
            (struct results_row){ .key = key_of("gogh", 11 + i), .result = result_of(i + 1) };
    ck_assert_msg(results_write(&f.results, &e) == 0, "%s", e.text);
}

TEST(results_json_has_a_row_a_run_with_all_its_keys)
{
    static const char *const keys[] = {
        "scenario",
        "load",
        "policy",
        "seed",
        "sleep",
        "power_limit",
        "energy_j_per_work",
        "energy_kwh",
        "promise_attainment",
        "mean_jct_s",
        "moves",
        "moves_per_job",
        "p95_jct_s",
        "delay_w",
        "effective_delay_w",
        "service_hours_kept",
        "late_share",
        "p99_s",
        "interruptions",
        "starts_per_service_day",
        "training_work",
        "promise_w",
        "history_jobs",
        "allocation_efficiency",
    };

    write_two_rows();
    json_t *list = json_loads(content("results.json"), 0, NULL);
    ck_assert_int_eq(json_array_size(list), 2);
    const json_t *row = json_array_get(list, 1);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        ck_assert_msg(json_object_get(row, keys[i]) != NULL, "%s", keys[i]);
    ck_assert(json_is_true(json_object_get(row, "sleep")));
    ck_assert(json_is_false(json_object_get(row, "power_limit")));
    ck_assert(json_is_null(json_object_get(row, "mean_jct_s")));
    ck_assert(json_is_null(json_object_get(row, "without")));
    ck_assert_int_eq(json_integer_value(json_object_get(row, "seed")), 12);
    ck_assert(json_real_value(json_object_get(row, "energy_kwh")) == 2);
    ck_assert(json_real_value(json_object_get(json_object_get(row, "gpu_hours"), "k80")) == 1.5);
    ck_assert(json_object_get(row, "wall_s") == NULL);
    ck_assert_ptr_nonnull(strstr(content("results.json"), "0.333333333333333,"));
    json_decref(list);
}

static const struct {
    const char *file;
    int n_lines;
    const char *has;
} tables[] = {
    { "runs.csv", 3, "small,0.9,gogh,12,1,0,,empty,additive,,,0,0.333333333333333,2,0.97,,0," },
    { "slices.csv", 5, ",60,120.5,0.333333333333333,,0,1,2\n" },
    { "types.csv", 5, ",v100,2,0.1,\n" },
    { "stays.csv", 3, ",1,4,150,10,130\n" },
    { "timing.csv", 3, "wall_s,rss_bytes\n" },
};

EACH(tables_have_the_same_figures, tables)
{
    write_two_rows();
    const char *text = content(tables[_i].file);
    ck_assert_msg(n_lines(text) == tables[_i].n_lines, "%s:\n%s", tables[_i].file, text);
    ck_assert_msg(strstr(text, tables[_i].has) != NULL, "%s:\n%s", tables[_i].file, text);
}

TEST(wall_times_are_in_timing_csv_alone)
{
    static const char *const files[] = { "results.json", "runs.csv", "slices.csv", "types.csv",
                                         "stays.csv" };
    const char *before[5], *timing;
    struct err e = { 0 };

    write_two_rows();
    timing = content("timing.csv");
    for (int i = 0; i < 5; i++)
        before[i] = content(files[i]);
    f.results.rows[0].result.wall_s = f.results.rows[0].result.decision_p50_s = 77;
    f.results.rows[0].result.rss_bytes = f.results.rows[0].result.decision_p99_s = 88;
    ck_assert_int_eq(results_write(&f.results, &e), 0);
    for (int i = 0; i < 5; i++)
        ck_assert_str_eq(content(files[i]), before[i]);
    ck_assert_str_ne(content("timing.csv"), timing);
}

TEST(a_bound_counts_its_jobs_and_nothing_else)
{
    static const char *const counts[] = { "finished",  "failed",     "moves",       "decisions",
                                          "fallbacks", "repricings", "measurements" };
    struct study_run k = key_of("bound", 11);
    struct study_result r = result_of(1), got;
    struct err e = { 0 };

    ck_assert_int_eq(results_keep(&f.results, &k, &r, &e), 0);
    ck_assert(results_has(&f.arena, &f.results, &k, &got));
    ck_assert(got.jobs == 10 && got.moves == 0);
    results_fill(&f.arena, &f.results, &k, 1);
    ck_assert_msg(results_write(&f.results, &e) == 0, "%s", e.text);
    json_t *list = json_loads(content("results.json"), 0, NULL);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        ck_assert_msg(json_is_null(json_object_get(json_array_get(list, 0), counts[i])), "%s",
                      counts[i]);
    ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(list, 0), "jobs")), 10);
    ck_assert_ptr_nonnull(strstr(content("runs.csv"), ",,,,,10,,,"));
    json_decref(list);
}

TEST(a_bounds_counts_in_an_older_file_are_no_harm)
{
    struct study_run k = key_of("bound", 11);
    struct study_result r;

    keep_changed(&k, "\"moves\":null", "\"moves\":0");
    ck_assert(results_has(&f.arena, &f.results, &k, &r));
}

TEST(the_build_is_a_digest_of_the_program)
{
    struct arena a;

    arena_init(&a);
    ck_assert_uint_eq(strlen(results_build(&a)), 64);
    ck_assert_str_eq(results_build(&a), results_build(&a));
    arena_release(&a);
}
