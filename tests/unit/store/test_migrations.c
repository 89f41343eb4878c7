#include "store/store.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "store/inner.h"
#include "unit/store/own_store.h"
#include "unit/support.h"
#include "unit/suite.h"

FIXTURE(set_up, tear_down)

/* Files as earlier versions left them. */

TEST(each_migration_runs_once_and_failures_undo_it)
{
    static const char *const steps[] = {
        NULL,    // versions 1 to 11 are what open made
        NULL,
        NULL,
        NULL,
        NULL,
        NULL,
        NULL,
        NULL,
        NULL,
        NULL,
        NULL,
        "CREATE TABLE extra (x INTEGER) STRICT",
        "INSERT INTO extra VALUES (1); CREATE TABLE extra (x)",
    };
    struct store *s = open_store(STORE_CREATE);
    struct err e = { 0 };
    sqlite3_stmt *q;

    ck_assert_int_eq(store_n_migrations, 11);
    ck_assert_int_eq(store_migrate(s, steps, 12, &e), 0);
    ck_assert_int_eq(store_migrate(s, steps, 12, &e), 0);
    ck_assert_int_lt(store_migrate(s, steps, 13, &e), 0);
    ck_assert_int_eq(sqlite3_prepare_v2(s->db, "SELECT count(*) FROM extra", -1, &q, NULL), 0);
    ck_assert_int_eq(sqlite3_step(q), SQLITE_ROW);
    ck_assert_int_eq(sqlite3_column_int(q, 0), 0);
    sqlite3_finalize(q);
    store_close(s);
}

TEST(an_older_store_is_not_read_but_migrated_by_a_writer)
{
    struct store *s;
    struct err e = { 0 };

    run_sql("PRAGMA application_id = 1196377928");    // version 0 of ours
    ck_assert_int_eq(store_open(path, STORE_READ, &s, &e), -EINVAL);
    ck_assert_ptr_nonnull(strstr(e.text, "older"));
    s = open_store(STORE_WRITE);
    ck_assert_int_eq(count_rows(s, "measurements"), 0);
    store_close(s);
}

/* A store as version 1 left it: a node and a job in rows, and the journal that they are from. */
static void make_version_1(void)
{
    run_sql(store_migrations[0]);
    run_sql("PRAGMA user_version = 1;"
            "INSERT INTO events (time_s, kind, body) VALUES (1, 'node_added', '{}'),"
            " (2, 'job_submitted', '{}');"
            "INSERT INTO nodes (id, name, body) VALUES (1, 'n', '{}');"
            "INSERT INTO gpus (id, node, slot, type, body) VALUES (1, 1, 0, 'v100', '{}');"
            "INSERT INTO jobs (id, state, owner, body) VALUES (1, 'waiting', NULL, '{}');"
            "INSERT INTO meta (key, value) VALUES ('applied_seq', 2)");
}

TEST(the_rows_of_version_1_are_left_for_the_journal_to_make_anew)
{
    struct store *s;
    struct err e = { 0 };
    int64_t seq = -1;

    make_version_1();
    ck_assert_int_eq(store_open(path, STORE_READ, &s, &e), -EINVAL);
    ck_assert_ptr_nonnull(strstr(e.text, "older"));
    s = open_store(STORE_WRITE);
    ck_assert_int_eq(count_rows(s, "events"), 2);
    ck_assert_int_eq(count_rows(s, "nodes") + count_rows(s, "gpus") + count_rows(s, "jobs"), 0);
    ck_assert_int_eq(store_applied_seq(s, &seq, NULL), 0);
    ck_assert_int_eq(seq, 0);
    put_state(s);
    store_close(s);
    store_close(open_store(STORE_READ));
}

/* A store as version 2 left it: a type, and jobs that ask for one node or for none. */
static void make_version_2(void)
{
    run_sql(store_migrations[0]);
    run_sql(store_migrations[1]);
    run_sql("PRAGMA user_version = 2;"
            "INSERT INTO gpu_types (name, cap_w, year) VALUES ('v100', 250, 2017);"
            "INSERT INTO jobs (id, name, workload, is_inference, submit_s, steps, is_guess, rate,"
            " duration_s, min_throughput, n_gpus, max_gpus, priority, is_exclusive, needs_one_node)"
            " VALUES (1, 'a', 'w', 0, 0, 1, 0, 0, 0, 0, 2, 4, 0, 0, 1),"
            " (2, 'b', 'w', 0, 0, 1, 0, 0, 0, 0, 2, 4, 0, 0, 0);"
            "INSERT INTO job_states (id, state, steps_done, heard_s, pace, changed_s, n_moves,"
            " limit_w) VALUES (1, 'waiting', 0, 0, 0, 0, 0, 0), (2, 'waiting', 0, 0, 0, 0, 0, 0);"
            "INSERT INTO meta (key, value) VALUES ('applied_seq', 2)");
}

static int note_nodes(void *self, const struct row_job *r, const struct row_job_state *at)
{
    int *n_nodes = self;

    ck_assert_int_eq(r->id, at->id);
    ck_assert_double_eq(r->urgency, 1);    // which is of version 8
    n_nodes[r->id] = r->n_nodes;
    return 0;
}

TEST(the_rows_of_version_2_stay_and_mean_what_they_meant)
{
    struct row_gpu_type t = { 0 };
    struct err e = { 0 };
    int64_t seq = -1;
    int n_nodes[3] = { -1, -1, -1 };

    make_version_2();
    struct store *s = open_store(STORE_WRITE);
    ck_assert_int_eq(store_each_job(s, note_nodes, n_nodes, &e), 0);
    ck_assert_int_eq(n_nodes[1], 1);
    ck_assert_int_eq(n_nodes[2], 0);
    ck_assert_int_eq(store_each_gpu_type(s, note_type, &t, &e), 0);
    ck_assert(t.cap_w == 250 && t.share_max == 0);
    ck_assert_int_eq(store_applied_seq(s, &seq, NULL), 0);
    ck_assert_int_eq(seq, 2);
    store_close(s);
}

/* A store as version 3 left it knows rates of two precisions, and no profile. */
TEST(the_rows_of_version_3_do_not_know_what_version_4_asks)
{
    struct row_gpu_type t = { 0 };
    struct row_workload w = { 0 };

    for (int i = 0; i < 3; i++)
        run_sql(store_migrations[i]);
    run_sql("PRAGMA user_version = 3;"
            "INSERT INTO gpu_types (name, peak_fp16_flops, year) VALUES ('h100', 9e14, 2022);"
            "INSERT INTO workloads (name, is_inference, sparse) VALUES ('w', 1, 0.5)");
    struct store *s = open_store(STORE_WRITE);
    ck_assert_int_eq(store_each_gpu_type(s, note_type, &t, NULL), 0);
    ck_assert(t.peak_fp16_flops == 9e14 && t.capability == 0);
    ck_assert(isnan(t.peak_tf32_flops) && isnan(t.peak_fp8_flops) && isnan(t.peak_int8_flops));
    ck_assert_int_eq(store_each_workload(s, note_workload, &w, NULL), 0);
    ck_assert(w.number[9] == 0.5 && isnan(w.number[10]) && isnan(w.number[13]));
    ck_assert(w.precision == NULL && w.needs_capability == 0);
    store_close(s);
}

/* A store as version 4 left it, with a measurement. */
static void make_version_4(void)
{
    for (int i = 0; i < 4; i++)
        run_sql(store_migrations[i]);
    run_sql("PRAGMA user_version = 4;"
            "INSERT INTO gpu_types (name, year) VALUES ('v100', 2017);"
            "INSERT INTO workloads (name, is_inference) VALUES ('w', 0);"
            "INSERT INTO measurements (workload, gpu_type, n_gpus, is_spread, fits, throughput,"
            " time_s) VALUES (1, 1, 1, 0, 1, 7, 0)");
}

static int note_campaign(void *self, const struct row_measurement *r)
{
    int64_t *campaign = self;

    campaign[r->id] = r->campaign;
    return 0;
}

TEST(the_measurements_of_version_4_are_the_sites_own)
{
    struct row_measurement m = { .workload = 1, .gpu_type = 1, .n_gpus = 1, .fits = true };
    int64_t campaign[3] = { -1, -1, -1 }, id = 0;

    make_version_4();
    struct store *s = open_store(STORE_WRITE);
    ck_assert_int_eq(store_begin(s, NULL), 0);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(store_keep_campaign(s, "theirs", 3, &id, NULL), 0);
    ck_assert_int_eq(id, 1);
    m.campaign = id;
    ck_assert_int_eq(store_add_measurement(s, &m, NULL), 0);
    ck_assert_int_eq(store_commit(s, NULL), 0);
    ck_assert_int_eq(store_each_observation(s, note_campaign, campaign, NULL), 0);
    ck_assert(campaign[1] == 0 && campaign[2] == 1);
    store_close(s);
}

/* Estimates were rows; they follow from measurements. */
TEST(the_estimates_of_version_5_are_let_go_of)
{
    int64_t campaign[2] = { -1, -1 };

    make_version_4();
    run_sql(store_migrations[4]);
    run_sql("PRAGMA user_version = 5;"
            "INSERT INTO estimates (workload, gpu_type, neighbour, time_s) VALUES (1, 1, 0, 0)");
    struct store *s = open_store(STORE_WRITE);
    ck_assert_int_eq(store_each_observation(s, note_campaign, campaign, NULL), 0);
    ck_assert_int_eq(campaign[1], 0);
    store_close(s);
    run_sql("CREATE TABLE estimates (id)");    // there is none
}

static int note_sharing(void *self, const struct row_campaign *r)
{
    *(int *)self = r->sharing;
    return 0;
}

TEST(how_the_types_and_campaigns_of_version_6_were_shared_is_not_known)
{
    struct row_gpu_type t = { .sharing = -1 };
    int64_t id = 0;
    int sharing = -1;

    make_version_4();
    run_sql(store_migrations[4]);
    run_sql(store_migrations[5]);
    run_sql("PRAGMA user_version = 6; INSERT INTO campaigns (name) VALUES ('theirs')");
    struct store *s = open_store(STORE_WRITE);
    ck_assert_int_eq(store_each_gpu_type(s, note_type, &t, NULL), 0);
    ck_assert_int_eq(store_each_campaign(s, note_sharing, &sharing, NULL), 0);
    ck_assert(t.sharing == 0 && sharing == 0);
    ck_assert_int_eq(store_begin(s, NULL), 0);
    for (int told = 3; told >= 0; told -= 3) {    // and then nothing: what was known stays
        ck_assert_int_eq(store_keep_campaign(s, "theirs", told, &id, NULL), 0);
        ck_assert_int_eq(store_each_campaign(s, note_sharing, &sharing, NULL), 0);
        ck_assert(id == 1 && sharing == 3);
    }
    store_close(s);
}
