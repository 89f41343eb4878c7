#include "store/store.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "store/inner.h"
#include "unit/store/own_store.h"
#include "unit/support.h"
#include "unit/suite.h"

FIXTURE(set_up, tear_down)

/* ---- rows ---- */

struct seen {
    int n;
    double sum;
};

static int see_measurement(void *self, const struct row_measurement *r)
{
    struct seen *seen = self;

    ck_assert_int_eq(r->id, seen->n + 1);
    ck_assert(isnan(r->limit_w) && isnan(r->watts) && isnan(r->noise));
    ck_assert_double_eq(r->duration_s, 60);
    ck_assert_int_eq(r->neighbour, seen->n % 2 == 1 ? 2 : 0);
    ck_assert(r->fits && !r->is_spread && r->origin == 0);
    seen->sum += r->throughput;
    seen->n++;
    return 0;
}

static int see_workload(void *self, const struct row_workload *r)
{
    int *n = self;

    if (*n == 0) {
        ck_assert_str_eq(r->name, "one");
        ck_assert_double_eq(r->batch, 16);
        ck_assert_str_eq(r->family, "f");
    } else {
        ck_assert(isnan(r->batch) && r->is_inference && r->family == NULL);
    }
    ++*n;
    return 0;
}

TEST(rows_come_back_as_they_went_in)
{
    struct store *s = open_store(STORE_CREATE);
    struct seen seen = { 0 };
    int n = 0;

    fill(s, 10);
    store_close(s);
    s = open_store(STORE_READ);
    ck_assert_int_eq(store_each_measurement(s, 0, see_measurement, &seen, NULL), 0);
    ck_assert_int_eq(seen.n, 10);
    ck_assert_double_eq(seen.sum, 55);
    ck_assert_int_eq(store_each_workload(s, see_workload, &n, NULL), 0);
    ck_assert_int_eq(n, 2);
    store_close(s);
}

static int stop_at_two(void *self, const struct row_measurement *r)
{
    ++*(int *)self;
    return r->id == 2 ? 42 : 0;
}

TEST(a_callback_stops_a_scan_with_its_own_answer)
{
    struct store *s = open_store(STORE_CREATE);
    int n = 0;

    fill(s, 5);
    ck_assert_int_eq(store_each_measurement(s, 0, stop_at_two, &n, NULL), 42);
    ck_assert_int_eq(n, 2);
    store_close(s);
}

TEST(putting_the_same_name_again_keeps_its_id)
{
    struct store *s = open_store(STORE_CREATE);
    struct row_workload r = { .name = "one", .batch = 16, .family = "g" };
    int64_t id = 0;

    fill(s, 1);
    ck_assert_int_eq(store_begin(s, NULL), 0);
    ck_assert_int_eq(store_put_workload(s, &r, &id, NULL), 0);
    ck_assert_int_eq(store_commit(s, NULL), 0);
    ck_assert_int_eq(id, 1);
    ck_assert_int_eq(count_rows(s, "workloads"), 2);
    store_close(s);
}

TEST(filling_keeps_what_is_known_and_putting_replaces_it)
{
    struct store *s = open_store(STORE_CREATE);
    struct row_gpu_type type = {
        .name = "v100", .cap_w = 300, .idle_w = 25, .sleep_w = NAN, .mem_bytes = NAN, .year = 2017
    };
    struct row_workload one = { .name = "one", .batch = 99, .family = "g", .task = "t" };
    struct row_gpu_type t;
    struct row_workload w;

    fill(s, 1);    // cap_w 250, family "f"
    ck_assert_int_eq(store_begin(s, NULL), 0);
    ck_assert_int_eq(store_fill_gpu_type(s, &type, NULL, NULL), 0);
    ck_assert_int_eq(store_fill_workload(s, &one, NULL, NULL), 0);
    ck_assert_int_eq(store_each_gpu_type(s, note_type, &t, NULL), 0);
    ck_assert_int_eq(store_each_workload(s, note_workload, &w, NULL), 0);
    ck_assert(t.cap_w == 250 && t.idle_w == 25 && t.year == 2017);
    ck_assert(w.batch == 16);
    type.idle_w = NAN;
    type.year = 0;
    one.task = NULL;
    ck_assert_int_eq(store_put_gpu_type(s, &type, NULL, NULL), 0);
    ck_assert_int_eq(store_put_workload(s, &one, NULL, NULL), 0);
    ck_assert_int_eq(store_each_gpu_type(s, note_type, &t, NULL), 0);
    ck_assert_int_eq(store_each_workload(s, note_workload, &w, NULL), 0);
    ck_assert(t.cap_w == 300 && t.idle_w == 25 && t.year == 2017);
    ck_assert(w.batch == 99);
    store_close(s);
}

TEST(what_is_rolled_back_was_never_there)
{
    struct store *s = open_store(STORE_CREATE);
    struct row_measurement m = { .workload = 1, .gpu_type = 1, .n_gpus = 1, .fits = true };

    fill(s, 3);
    ck_assert_int_eq(store_begin(s, NULL), 0);
    ck_assert_int_eq(store_add_measurement(s, &m, NULL), 0);
    store_rollback(s);
    ck_assert_int_eq(count_rows(s, "measurements"), 3);
    ck_assert_int_eq(store_begin(s, NULL), 0);
    ck_assert_int_eq(store_add_measurement(s, &m, NULL), 0);
    store_close(s);    // closing without a commit undoes as well
    s = open_store(STORE_READ);
    ck_assert_int_eq(count_rows(s, "measurements"), 3);
    store_close(s);
}

TEST(a_row_that_refers_to_nothing_is_refused)
{
    struct store *s = open_store(STORE_CREATE);
    struct row_measurement m = { .workload = 77, .gpu_type = 1, .n_gpus = 1, .fits = true };
    struct err e = { 0 };

    fill(s, 1);
    ck_assert_int_eq(store_begin(s, NULL), 0);
    ck_assert_int_eq(store_add_measurement(s, &m, &e), -EINVAL);
    store_rollback(s);
    store_close(s);
}

static const char *const changes[] = {
    "UPDATE measurements SET throughput = 1",
    "DELETE FROM measurements",
    "UPDATE events SET kind = 'x'",
    "DELETE FROM events",
    "INSERT OR REPLACE INTO measurements (id, workload, gpu_type, n_gpus, is_spread, fits, time_s)"
    " VALUES (1, 1, 1, 1, 0, 1, 0)",
    "INSERT OR REPLACE INTO events VALUES (1, 2, 'x', '{}')",
};

EACH(measurements_and_events_cannot_be_changed, changes)
{
    struct store *s = open_store(STORE_CREATE);

    fill(s, 2);
    ck_assert_int_eq(store_begin(s, NULL), 0);
    ck_assert_int_eq(store_append_event(s, 1, "k", "{}", NULL, NULL), 0);
    ck_assert_int_eq(store_commit(s, NULL), 0);
    ck_assert_int_ne(sqlite3_exec(s->db, changes[_i], NULL, NULL, NULL), SQLITE_OK);
    ck_assert_ptr_nonnull(strstr(sqlite3_errmsg(s->db), "append-only"));
    store_close(s);
}

TEST(an_origin_is_known_by_kind_and_digest)
{
    struct store *s = open_store(STORE_CREATE);
    int64_t id = 5, made;

    ck_assert_int_eq(store_find_origin(s, "gavel", "abc", &id, NULL), 0);
    ck_assert_int_eq(id, 0);
    ck_assert_int_eq(store_begin(s, NULL), 0);
    ck_assert_int_eq(store_add_origin(s, "gavel", "f.json", "abc", 1, &made, NULL), 0);
    ck_assert_int_eq(store_commit(s, NULL), 0);
    ck_assert_int_eq(store_find_origin(s, "gavel", "abc", &id, NULL), 0);
    ck_assert_int_eq(id, made);
    ck_assert_int_eq(store_find_origin(s, "csv", "abc", &id, NULL), 0);
    ck_assert_int_eq(id, 0);
    store_close(s);
}

/* ---- journal, state, models ---- */

static int see_event(void *self, const struct row_event *r)
{
    int64_t *last = self;

    ck_assert_int_eq(r->seq, *last + 1);
    ck_assert_str_eq(r->kind, "tick");
    *last = r->seq;
    return 0;
}

TEST(a_number_of_its_own_stays)
{
    struct store *s = open_store(STORE_CREATE);
    struct err e = { 0 };
    int64_t n = 0;

    ck_assert_int_eq(store_begin(s, &e), 0);
    ck_assert_int_eq(store_number(s, "site", -42, &n, &e), 0);
    ck_assert_int_eq(n, -42);
    ck_assert_int_eq(store_number(s, "site", 7, &n, &e), 0);
    ck_assert_int_eq(n, -42);
    ck_assert_int_eq(store_number(s, "other", 7, &n, &e), 0);
    ck_assert_int_eq(n, 7);
    ck_assert_int_eq(store_commit(s, &e), 0);
    store_close(s);
}

TEST(events_are_numbered_without_gaps)
{
    struct store *s = open_store(STORE_CREATE);
    int64_t seq, last = 1;

    for (int round = 0; round < 3; round++) {
        ck_assert_int_eq(store_begin(s, NULL), 0);
        ck_assert_int_eq(store_append_event(s, round, "tick", "{}", &seq, NULL), 0);
        if (round == 1)
            store_rollback(s);
        else
            ck_assert_int_eq(store_commit(s, NULL), 0);
    }
    ck_assert_int_eq(seq, 2);
    ck_assert_int_eq(store_each_event(s, 1, see_event, &last, NULL), 0);
    ck_assert_int_eq(last, 2);
    store_close(s);
}

static int see_job(void *self, const struct row_job *r, const struct row_job_state *at)
{
    ck_assert_str_eq(r->name, "j");
    ck_assert_ptr_null(r->owner);
    ck_assert_ptr_null(r->types);
    ck_assert_str_eq(r->command, "{}");
    ck_assert(isnan(r->deadline_s) && r->is_guess && !r->is_inference);
    ck_assert_double_eq(r->steps, 1.0 / 3);
    ck_assert_int_eq(r->max_gpus, 4);
    ck_assert_double_eq(r->urgency, 2.5);
    ck_assert_str_eq(at->state, *(int *)self == 0 ? "running" : "held");
    ck_assert_double_eq(at->pace, *(int *)self == 0 ? 0.1 : 0);
    ck_assert(isnan(at->started_s));
    ck_assert_msg(*(int *)self == 0 ? strcmp(at->gpus, "1 2") == 0 : at->gpus == NULL, "gpus");
    ++*(int *)self;
    return 0;
}

TEST(the_state_is_kept_as_rows_that_can_be_written_anew)
{
    struct store *s = open_store(STORE_CREATE);
    int64_t seq = -1;

    ck_assert_int_eq(store_applied_seq(s, &seq, NULL), 0);
    ck_assert_int_eq(seq, 0);
    for (int round = 1; round <= 2; round++) {
        int n = 0;

        put_state(s);
        ck_assert_int_eq(store_applied_seq(s, &seq, NULL), 0);
        ck_assert_int_eq(seq, 10);
        ck_assert_int_eq(store_each_job(s, see_job, &n, NULL), 0);
        ck_assert_int_eq(n, 2);
        ck_assert_int_eq(count_rows(s, "gpus"), 1);
    }
    store_close(s);
}

static const char *const tears[] = {
    "DELETE FROM job_states WHERE id = 1",
    "DELETE FROM job_states WHERE id = 2",
    "DELETE FROM job_states",
};

EACH(a_job_that_stands_nowhere_is_damage, tears)
{
    struct store *s = open_store(STORE_CREATE);
    struct err e = { 0 };
    int n = 0;

    put_state(s);
    ck_assert_int_eq(sqlite3_exec(s->db, tears[_i], NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(store_each_job(s, see_job, &n, &e), -EIO);
    ck_assert_ptr_nonnull(strstr(e.text, "missing; restore a copy"));
    store_close(s);
}

/* ---- what was used, and why ---- */

static int see_usage(void *self, const struct row_usage *r)
{
    struct row_usage *sum = self;

    ck_assert_int_ge(r->hour_s, sum->hour_s);
    sum->hour_s = r->hour_s;
    sum->job += r->job;
    sum->active_j += r->active_j;
    sum->n_covered += r->n_covered;
    sum->gpu_s++;    // rows
    return 0;
}

TEST(usage_of_the_same_hour_job_and_type_adds_up)
{
    static const struct row_usage rows[] = {
        { .hour_s = 7200, .job = 1, .gpu_type = 1, .active_j = 1, .n_covered = 1 },
        { .hour_s = 3600, .job = 1, .gpu_type = 1, .active_j = 2 },
        { .hour_s = 3600, .job = 1, .gpu_type = 1, .active_j = 4, .n_covered = 3 },
        { .hour_s = 3600, .job = 1, .gpu_type = 0, .active_j = 8 },
        { .hour_s = 3600, .job = -1, .gpu_type = 1, .active_j = 16 },
        { .hour_s = 0, .job = 1, .gpu_type = 1, .active_j = 32 },
    };
    struct store *s = open_store(STORE_CREATE);
    struct row_usage sum = { 0 }, all = { 0 };

    ck_assert_int_eq(store_begin(s, NULL), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ck_assert_int_eq(store_add_usage(s, &rows[i], NULL), 0);
    ck_assert_int_eq(store_commit(s, NULL), 0);
    ck_assert_int_eq(store_each_usage(s, 3600, 7200, see_usage, &sum, NULL), 0);
    ck_assert_double_eq(sum.gpu_s, 3);
    ck_assert_double_eq(sum.active_j, 2 + 4 + 8 + 16);
    ck_assert_double_eq(sum.n_covered, 3);
    ck_assert_int_eq(store_each_usage(s, 0, 1 << 20, see_usage, &all, NULL), 0);
    ck_assert_double_eq(all.active_j, 63);
    store_close(s);
}

static void decide(struct store *s, int64_t job, double time_s, const char *body)
{
    ck_assert_int_eq(store_begin(s, NULL), 0);
    ck_assert_int_eq(store_put_decision(s, job, time_s, body, NULL), 0);
    ck_assert_int_eq(store_commit(s, NULL), 0);
}

static void check_decision(struct store *s, int64_t job, double time_s, const char *want)
{
    char *body = NULL;
    struct err e = { 0 };
    int rc = store_get_decision(s, job, time_s, &body, &e);

    ck_assert_int_eq(rc, want != NULL ? 0 : -ENOENT);
    ck_assert_msg(want == NULL || strcmp(body, want) == 0, "%s", body);
    free(body);
}

TEST(the_newest_decisions_of_a_job_are_kept_and_found_by_time)
{
    struct store *s = open_store(STORE_CREATE);
    char body[32];

    check_decision(s, 1, INFINITY, NULL);
    decide(s, 2, 5, "other");
    for (int i = 0; i < STORE_DECISIONS_MAX + 3; i++) {
        snprintf(body, sizeof(body), "{\"n\":%d}", i);
        decide(s, 1, i, body);
    }
    ck_assert_int_eq(count_rows(s, "decisions"), STORE_DECISIONS_MAX + 1);
    check_decision(s, 1, INFINITY, "{\"n\":18}");
    check_decision(s, 1, 7.5, "{\"n\":7}");
    check_decision(s, 1, 3, "{\"n\":3}");
    check_decision(s, 1, 2.9, NULL);    // forgotten
    check_decision(s, 2, INFINITY, "other");
    decide(s, 2, 5, "again");    // at the same moment: the later one
    check_decision(s, 2, 5, "again");
    for (int i = 0; i < STORE_DECISIONS_MAX; i++)    // a clock that was set back
        decide(s, 1, 1, "back");
    check_decision(s, 1, INFINITY, "back");
    check_decision(s, 1, 2.9, "back");
    ck_assert_int_eq(count_rows(s, "decisions"), STORE_DECISIONS_MAX + 2);
    decide(s, 2, 1, "back");    // others are not forgotten yet, and are of the past all the same
    check_decision(s, 2, INFINITY, "back");
    check_decision(s, 2, 9, "back");
    store_close(s);
}

TEST(the_newest_model_of_a_name_is_found)
{
    struct store *s = open_store(STORE_CREATE);
    void *bytes;
    size_t len;
    double time_s;

    ck_assert_int_eq(store_get_model(s, "p1", &bytes, &len, NULL), -ENOENT);
    ck_assert_int_eq(store_begin(s, NULL), 0);
    ck_assert_int_eq(store_put_model(s, "p1", 1, "old", 3, NULL), 0);
    ck_assert_int_eq(store_put_model(s, "p1", 2, "newer", 5, NULL), 0);
    ck_assert_int_eq(store_put_model(s, "p2", 3, "", 0, NULL), 0);
    ck_assert_int_eq(store_commit(s, NULL), 0);
    ck_assert_int_eq(store_get_model(s, "p1", &bytes, &len, NULL), 0);
    ck_assert_uint_eq(len, 5);
    ck_assert_mem_eq(bytes, "newer", 5);
    free(bytes);
    ck_assert_int_eq(store_get_model(s, "p2", &bytes, &len, NULL), 0);
    ck_assert_uint_eq(len, 0);
    free(bytes);
    ck_assert_int_eq(store_model_time(s, "p1", &time_s, NULL), 0);
    ck_assert_double_eq(time_s, 2);
    ck_assert_int_eq(store_model_time(s, "p3", &time_s, NULL), -ENOENT);
    store_close(s);
}

/* ---- columns that say nothing at 0 ---- */

TEST(a_capability_is_filled_in_once_and_put_where_it_is_said)
{
    static const struct {
        int capability;
        bool puts;
        int want;
    } steps[] = { { 0, false, 0 },  { 70, false, 70 }, { 80, false, 70 },
                  { 80, true, 80 }, { 0, true, 80 },   { 0, false, 80 } };
    struct store *s = open_store(STORE_CREATE);

    ck_assert_int_eq(store_begin(s, NULL), 0);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct row_gpu_type r = { .name = "v100", .capability = steps[i].capability }, t = { 0 };
        struct row_workload v = { .name = "w", .needs_capability = steps[i].capability }, w = { 0 };
        bool puts = steps[i].puts;
        ck_assert_int_eq((puts ? store_put_gpu_type : store_fill_gpu_type)(s, &r, NULL, NULL), 0);
        ck_assert_int_eq((puts ? store_put_workload : store_fill_workload)(s, &v, NULL, NULL), 0);
        ck_assert_int_eq(store_each_gpu_type(s, note_type, &t, NULL), 0);
        ck_assert_int_eq(store_each_workload(s, note_workload, &w, NULL), 0);
        ck_assert_int_eq(t.capability, steps[i].want);
        ck_assert_int_eq(w.needs_capability, steps[i].want);
    }
    store_close(s);
}

TEST(the_last_word_on_sharing_stays_until_there_is_another)
{
    static const struct {
        int sharing;
        bool puts;
        int want;
    } steps[] = { { 0, false, 0 }, { 2, false, 2 }, { 3, false, 3 },
                  { 0, false, 3 }, { 0, true, 3 },  { 4, true, 4 },
                  { -1, true, 0 }, { 2, true, 2 },  { -1, false, 0 } };
    struct store *s = open_store(STORE_CREATE);

    ck_assert_int_eq(store_begin(s, NULL), 0);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct row_gpu_type r = { .name = "v100", .sharing = steps[i].sharing }, t = { 0 };
        ck_assert_int_eq(
            (steps[i].puts ? store_put_gpu_type : store_fill_gpu_type)(s, &r, NULL, NULL), 0);
        ck_assert_int_eq(store_each_gpu_type(s, note_type, &t, NULL), 0);
        ck_assert_int_eq(t.sharing, steps[i].want);
    }
    store_close(s);
}

TEST(whether_a_type_may_be_shared_is_filled_in_once_and_put_as_it_is_said)
{
    static const struct {
        int share_max;
        bool puts;
        int want;
    } steps[] = { { 0, false, 0 }, { 1, false, 1 }, { 0, false, 1 },
                  { 0, true, 0 },  { 1, true, 1 },  { 0, false, 1 } };
    struct store *s = open_store(STORE_CREATE);

    ck_assert_int_eq(store_begin(s, NULL), 0);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct row_gpu_type r = { .name = "v100", .share_max = steps[i].share_max }, t = { 0 };
        ck_assert_int_eq(
            (steps[i].puts ? store_put_gpu_type : store_fill_gpu_type)(s, &r, NULL, NULL), 0);
        ck_assert_int_eq(store_each_gpu_type(s, note_type, &t, NULL), 0);
        ck_assert_int_eq(t.share_max, steps[i].want);
    }
    store_close(s);
}
