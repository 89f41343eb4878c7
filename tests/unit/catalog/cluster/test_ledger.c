/* The state and its journal: what was acknowledged is there after a restart, as it was. */
#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/rng.h"
#include "daemon/service/recover.h"
#include "store/store.h"
#include "unit/support.h"
#include "unit/suite.h"

/* A ledger on a store in a directory of its own. */
static struct desk {
    char *dir;
    char path[300];
    struct store *store;
    struct catalog catalog;
    struct ledger ledger;
} d;    // of the test

static void desk_open(void)
{
    struct err e = { 0 };

    ck_assert_msg(store_open(d.path, STORE_CREATE, &d.store, &e) == 0, "%s", e.text);
    catalog_init(&d.catalog);
    ck_assert_msg(catalog_load(&d.catalog, d.store, &e) == 0, "%s", e.text);
    ck_assert_msg(ledger_open(&d.ledger, &d.catalog, d.store, &e) == 0, "%s", e.text);
}

static void desk_close(void)
{
    ledger_close(&d.ledger);
    catalog_release(&d.catalog);
    store_close(d.store);
}

static void desk_init(void)
{
    static const int types[] = { 0, 1, 0, 0 };
    struct workload w;
    struct event nodes[] = {
        { .kind = EVENT_NODE_ADDED, .time_s = 1, .node = "n1", .gpu_types = types, .n_gpus = 4 },
        { .kind = EVENT_NODE_ADDED, .time_s = 1, .node = "n2", .gpu_types = types, .n_gpus = 2 },
    };
    struct err e = { 0 };
    int index;

    d.dir = scratch_make();
    snprintf(d.path, sizeof d.path, "%s/store.db", d.dir);
    desk_open();
    workload_init(&w, "w");
    ck_assert_int_eq(store_begin(d.store, &e), 0);
    ck_assert_int_eq(catalog_add_type(&d.catalog, gpu_type_builtin("v100"), &index, &e), 0);
    ck_assert_int_eq(catalog_add_type(&d.catalog, gpu_type_builtin("k80"), &index, &e), 0);
    ck_assert_int_eq(catalog_add_workload(&d.catalog, &w, &index, &e), 0);
    ck_assert_int_eq(store_commit(d.store, &e), 0);
    ck_assert_msg(ledger_append(&d.ledger, nodes, 2, &e) == 0, "%s", e.text);
}

static void desk_release(void)
{
    desk_close();
    scratch_remove(d.dir);
}

FIXTURE(desk_init, desk_release)

static int64_t n_events(void)
{
    return count_rows(d.store, "events");
}

/* ---- random lives ---- */

struct draw {
    struct event ev;
    struct job_spec spec;
    char name[16], key[16];
    int gpus[3];
};

/* A service, or a replica of one of the first ten jobs, if that is one. */
static void draw_service(struct rng *r, struct draw *out)
{
    static const struct service_terms terms[] = {
        { .latency_s = 0.2, .max_batch = 8, .probe = "/healthz", .metrics = "/metrics" },
        { .ttft_s = 0.5, .tpot_s = 1.0 / 30, .load_s = 60, .is_unmoved = true },
    };

    out->spec.kind = rng_below(r, 3) ? JOB_REPLICA : JOB_SERVICE;
    out->spec.rate = 100.0 / 3;
    out->spec.duration_s = 0;
    out->spec.terms = &terms[rng_below(r, 2)];
    out->spec.n_gpus = 1;
    out->spec.n_nodes = 0;
    out->spec.max_gpus = out->spec.kind == JOB_REPLICA ? 1 : 4;
    out->spec.service = (int)rng_below(r, 10);
    out->spec.replica = (int)rng_below(r, 5);
    out->spec.port = (int)rng_below(r, 65536);
    out->spec.gpu = (int)rng_below(r, 6);
}

static void draw_spec(struct rng *r, struct draw *out)
{
    snprintf(out->name, sizeof out->name, "j%out", (int)rng_below(r, 30));
    out->spec = spec_of(out->name, 0);
    out->spec.owner = rng_below(r, 2) ? "eve" : NULL;
    out->spec.submit_s = rng_uniform(r) / 3;
    out->spec.deadline_s = rng_below(r, 2) ? 1e6 / 7 : (double)NAN;
    out->spec.n_gpus = 1 + (int)rng_below(r, 2);
    out->spec.max_gpus = out->spec.n_gpus + 1;
    out->spec.priority = (int)rng_below(r, 3) - 1;
    out->spec.urgency = (double)rng_below(r, 4) / 3;
    out->spec.is_exclusive = rng_below(r, 2);
    out->spec.n_nodes = (int)rng_below(r, 3);
    if (out->spec.n_nodes == 2)
        out->spec.n_gpus = out->spec.max_gpus = 2;
    out->spec.allowed_types = rng_below(r, 4);
    out->spec.is_guess = isnan(out->spec.deadline_s) && rng_below(r, 2);
    out->spec.command = rng_below(r, 2) ? "{ \"argv\": [\"true\"], \"grace_s\": 0.1 }" : NULL;
    snprintf(out->key, sizeof out->key, "k%out", (int)rng_below(r, 100));
    out->spec.key = rng_below(r, 2) ? out->key : NULL;
    out->spec.digest = out->spec.key ? "00ff" : NULL;
    if (rng_below(r, 3) == 0) {
        out->spec.kind = JOB_INFERENCE;
        out->spec.rate = 1.0 / 3;
        out->spec.duration_s = 100;
    }
    if (rng_below(r, 3) == 0)
        draw_service(r, out);
}

/* Mostly of the living, so that most are accepted. */
static void draw_event(struct rng *r, const struct state *s, struct draw *out)
{
    static const enum event_kind kinds[] = {
        EVENT_JOB_SUBMITTED, EVENT_JOB_SUBMITTED,  EVENT_JOB_STARTED,   EVENT_JOB_STARTED,
        EVENT_JOB_STARTED,   EVENT_JOB_PROGRESSED, EVENT_JOB_STOPPED,   EVENT_JOB_FINISHED,
        EVENT_JOB_FAILED,    EVENT_JOB_CANCELLED,  EVENT_JOB_HELD,      EVENT_JOB_RELEASED,
        EVENT_NODE_CHANGED,  EVENT_SERVICE_SCALED, EVENT_REPLICA_READY, EVENT_REPLICA_DRAINING,
    };
    int n_jobs = s->n_jobs ? s->n_jobs : 1;
    int recent = n_jobs > 10 ? n_jobs - 10 : 0;

    draw_spec(r, out);
    out->ev = (struct event){ .kind = kinds[rng_below(r, sizeof kinds / sizeof *kinds)],
                              .time_s = rng_uniform(r) * 1e9,
                              .job = recent + (int)rng_below(r, (uint64_t)(n_jobs - recent)),
                              .spec = &out->spec,
                              .gpus = out->gpus,
                              .n_gpus = 1 + (int)rng_below(r, 3),
                              .limit_w = rng_below(r, 2) ? 150 : 0,
                              .rate = rng_uniform(r) * 100,
                              .max_gpus = (int)rng_below(r, 5),
                              .steps_done = rng_uniform(r) * 1000,
                              .reason = rng_below(r, 2) ? "bad luck" : NULL,
                              .node = rng_below(r, 2) ? "n1" : "n2",
                              .node_state = (enum node_state)rng_below(r, 3) };
    for (int i = 0; i < 3; i++)
        out->gpus[i] = (int)rng_below(r, 7);    // 6 does not exist
}

/* What a restart would find, against what is in memory. */
static void check_restart(bool is_behind, const char *when)
{
    struct ledger again;
    struct err e = { 0 };

    ck_assert_msg(ledger_open(&again, &d.catalog, d.store, &e) == 0, "%s: %s", when, e.text);
    const char *what = state_differs(&d.ledger.state, &again.state);
    ck_assert_msg(!what, "%s a restart changes %s", when, what);
    ck_assert_int_eq(again.last_seq, d.ledger.last_seq);
    ck_assert_int_eq(again.is_behind, is_behind);
    ledger_close(&again);
}

/* A group of random events, committed or not; counts those that were refused. */
static int random_group(struct rng *r, bool is_kept)
{
    struct err e = { 0 };
    int n_refused = 0;

    ck_assert_msg(ledger_begin(&d.ledger, &e) == 0, "%s", e.text);
    for (int k = (int)rng_below(r, 6); k >= 0; k--) {
        struct draw draw;
        draw_event(r, &d.ledger.state, &draw);
        int rc = ledger_add(&d.ledger, &draw.ev, &e);
        ck_assert_msg(rc == 0 || rc == -EINVAL, "%s", e.text);
        n_refused += rc < 0;
    }
    if (is_kept)
        ck_assert_msg(ledger_commit(&d.ledger, &e) == 0, "%s", e.text);
    else
        ledger_undo(&d.ledger);
    return n_refused;
}

TIMES(a_restart_after_any_group_gives_the_same_state, 8)
{
    struct rng r;
    int n_refused = 0;

    rng_init(&r, (uint64_t)_i, "ledger");
    for (int i = 0; i < 120; i++) {
        n_refused += random_group(&r, rng_below(&r, 4) > 0);
        ck_assert_int_eq(d.ledger.last_seq, n_events());
        if (rng_below(&r, 6) == 0)
            check_restart(false, "after a group");
    }
    check_restart(false, "in the end");
    ck_assert_int_gt(n_refused, 20);
    ck_assert_int_gt(d.ledger.state.n_ended, 5);
}

static void run_sql(const char *sql)
{
    sqlite3 *db;

    ck_assert_int_eq(sqlite3_open(d.path, &db), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    sqlite3_close(db);
}

/* As a store of version 1 is after its migration. */
TIMES(rows_are_what_the_journal_adds_up_to_and_are_made_anew_where_missing, 4)
{
    struct rng r;

    rng_init(&r, (uint64_t)_i, "rows");
    for (int i = 0; i < 40; i++)
        random_group(&r, true);
    run_sql("DELETE FROM job_states; DELETE FROM jobs; DELETE FROM gpus; DELETE FROM nodes;"
            "DELETE FROM meta");
    check_restart(true, "from the journal alone");
    ledger_close(&d.ledger);
    ck_assert_int_eq(ledger_open(&d.ledger, &d.catalog, d.store, NULL), 0);
    random_group(&r, false);
    check_restart(true, "after a group that was undone");
    random_group(&r, true);
    check_restart(false, "with the first group");
    ck_assert(!d.ledger.is_behind);
}

static const struct {
    const char *sql, *want;
} odd_rows[] = {
    { "UPDATE job_states SET state = 'asleep'", "job row 1: no job is 'asleep'" },
    { "UPDATE job_states SET gpus = '1 x'", "job row 1: its GPUs are not a list" },
    { "UPDATE job_states SET gpus = '0'", "job row 1: its GPUs are not a list" },
    { "UPDATE job_states SET gpus = '99'", "job row 1: job a: there is no GPU 98" },
    { "UPDATE job_states SET gpus = '1 2'", "job row 1: job a asked for 1 to 1 GPUs" },
    { "UPDATE job_states SET gpus = NULL", "job row 1: job a asked for 1 to 1 GPUs" },
    { "UPDATE job_states SET state = 'held'", "job row 1: job a holds GPUs and does not run" },
    { "UPDATE jobs SET workload = 'q'", "job row 1: no workload q" },
    { "UPDATE jobs SET types = 'abacus'", "job row 1: no GPU type abacus here" },
    { "UPDATE jobs SET n_gpus = 0", "job row 1: job a: want 1 <= gpus" },
    { "UPDATE nodes SET body = 'x'", "node row n1: not JSON" },
    { "PRAGMA foreign_keys = OFF; UPDATE jobs SET id = 7; UPDATE job_states SET id = 7",
      "job row 7: job a has id 6 where 0 is next" },
};

EACH(rows_that_make_no_sense_are_named, odd_rows)
{
    static const int first[] = { 0 };
    struct job_spec a = spec_of("a", 0);
    struct event batch[] = { { .kind = EVENT_JOB_SUBMITTED, .spec = &a },
                             { .kind = EVENT_JOB_STARTED, .job = 0, .gpus = first, .n_gpus = 1 } };
    struct ledger again;
    struct err e = { 0 };

    ck_assert_int_eq(ledger_append(&d.ledger, batch, 2, &e), 0);
    run_sql(odd_rows[_i].sql);
    ck_assert_int_eq(ledger_open(&again, &d.catalog, d.store, &e), -EINVAL);
    ck_assert_msg(strstr(e.text, odd_rows[_i].want) == e.text, "%s: %s", odd_rows[_i].sql, e.text);
}

TEST(a_refused_event_spoils_nothing_of_its_group)
{
    static const int first[] = { 0 }, missing[] = { 99 };
    struct job_spec a = spec_of("a", 0), b = spec_of("b", 0), c = spec_of("c", 0);
    const struct event good[] = {
        { .kind = EVENT_JOB_SUBMITTED, .spec = &a },
        { .kind = EVENT_JOB_STARTED, .job = 0, .gpus = first, .n_gpus = 1 },
        { .kind = EVENT_JOB_SUBMITTED, .spec = &b },
    };
    const struct event bad[] = {
        { .kind = EVENT_JOB_STARTED, .job = 0, .gpus = missing, .n_gpus = 1 },
        { .kind = EVENT_JOB_HELD, .job = 0 },
        { .kind = EVENT_JOB_FAILED, .job = 0, .reason = "\xff not UTF-8" },
        { .kind = EVENT_JOB_PROGRESSED, .job = 0, .steps_done = NAN },
        { .kind = EVENT_JOB_SUBMITTED, .spec = &c },
        { .kind = EVENT_NODE_ADDED, .node = "n1" },
    };
    struct err e = { 0 };

    c.command = "[\"not\", \"an object\"]";
    ck_assert_int_eq(ledger_begin(&d.ledger, &e), 0);
    ck_assert_int_eq(ledger_begin(&d.ledger, &e), 0);
    ck_assert_int_eq(ledger_add(&d.ledger, &good[0], &e), 0);
    ck_assert_int_eq(ledger_add(&d.ledger, &good[1], &e), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_int_eq(ledger_add(&d.ledger, &bad[i], &e), -EINVAL);
        ck_assert_str_ne(e.text, "");
    }
    ck_assert_int_eq(ledger_append(&d.ledger, &good[2], 1, &e), 0);    // joins
    ck_assert_int_eq(d.ledger.is_begun, true);
    ck_assert_int_eq(ledger_commit(&d.ledger, &e), 0);
    ck_assert_int_eq(ledger_commit(&d.ledger, &e), 0);    // nothing was begun
    ck_assert_int_eq(n_events(), 2 + 3);
    check_restart(false, "after refusals");
}

TEST(an_undone_group_leaves_jobs_where_they_are_in_memory)
{
    static const int first[] = { 0 };
    struct job_spec a = spec_of("a", 0), b = spec_of("b", 0);
    struct event submit = { .kind = EVENT_JOB_SUBMITTED, .spec = &a };
    struct event more[] = { { .kind = EVENT_JOB_STARTED, .gpus = first, .n_gpus = 1 },
                            { .kind = EVENT_JOB_SUBMITTED, .spec = &b } };

    ck_assert_int_eq(ledger_append(&d.ledger, &submit, 1, NULL), 0);
    const struct job *was = d.ledger.state.jobs[0];
    ck_assert_int_eq(ledger_begin(&d.ledger, NULL), 0);
    ck_assert_int_eq(ledger_append(&d.ledger, more, 2, NULL), 0);
    ck_assert_int_eq(was->state, JOB_RUNNING);
    ledger_undo(&d.ledger);
    ledger_undo(&d.ledger);    // nothing is left to undo
    ck_assert_ptr_eq(d.ledger.state.jobs[0], was);
    ck_assert_int_eq(was->state, JOB_WAITING);
    ck_assert_int_eq(state_find_job(&d.ledger.state, "b"), -1);
    check_restart(false, "after an undone group");
}

TEST(a_reader_sees_a_group_when_it_is_committed)
{
    struct job_spec a = spec_of("a", 0);
    struct event submit = { .kind = EVENT_JOB_SUBMITTED, .spec = &a };
    struct err e = { 0 };

    for (int is_committed = 0; is_committed < 2; is_committed++) {
        struct recovered r;
        if (is_committed)
            ck_assert_int_eq(ledger_commit(&d.ledger, &e), 0);
        else
            ck_assert_int_eq(ledger_begin(&d.ledger, &e), 0);
        if (!is_committed)
            ck_assert_int_eq(ledger_add(&d.ledger, &submit, &e), 0);
        ck_assert_msg(recover_open(&r, d.path, STORE_READ, &e) == 0, "%s", e.text);
        ck_assert_int_eq(r.ledger.state.n_jobs, is_committed);
        ck_assert_int_eq(ledger_begin(&r.ledger, &e), -EROFS);
        recover_close(&r);
    }
}

TEST(a_refused_event_leaves_nothing_of_its_batch)
{
    static const int first[] = { 0 }, missing[] = { 99 }, below[] = { -7 };
    struct job_spec a = spec_of("a", 0), b = spec_of("b", 0);
    const struct event bad[] = {
        { .kind = EVENT_JOB_STARTED, .job = 0, .gpus = missing, .n_gpus = 1 },
        { .kind = EVENT_JOB_STARTED, .job = 0, .gpus = below, .n_gpus = 1 },
        { .kind = EVENT_JOB_STARTED, .job = 99, .gpus = first, .n_gpus = 1 },
        { .kind = EVENT_JOB_SUBMITTED, .spec = &b },
        { .kind = EVENT_JOB_FAILED, .job = 1, .reason = "\xff not UTF-8" },
        { .kind = EVENT_JOB_PROGRESSED, .job = 1, .steps_done = NAN },
        { .kind = EVENT_NODE_CHANGED, .node = "nobody" },
    };

    int64_t before = n_events(), last = d.ledger.last_seq;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct event batch[] = {
            { .kind = EVENT_JOB_SUBMITTED, .spec = &a },
            { .kind = EVENT_JOB_SUBMITTED, .spec = &b },
            { .kind = EVENT_JOB_STARTED, .job = 1, .gpus = first, .n_gpus = 1 },
            bad[i],
        };
        struct err e = { 0 };
        ck_assert_int_eq(ledger_append(&d.ledger, batch, 4, &e), -EINVAL);
        ck_assert_str_ne(e.text, "");
        ck_assert_int_eq(d.ledger.state.n_jobs, 0);
        ck_assert_int_eq(d.ledger.state.n_nodes, 2);
        ck_assert_int_eq(d.ledger.last_seq, last);
        ck_assert_int_eq(n_events(), before);
    }
    /* And the next batch finds everything in order. */
    struct event good = { .kind = EVENT_JOB_SUBMITTED, .spec = &a };
    ck_assert_int_eq(ledger_append(&d.ledger, &good, 1, NULL), 0);
    ck_assert_int_eq(d.ledger.last_seq, last + 1);
}

TEST(without_a_store_events_are_applied_and_nothing_is_kept)
{
    struct world w;
    struct job_spec a = spec_of("a", 0);
    struct event batch[] = { { .kind = EVENT_JOB_SUBMITTED, .spec = &a },
                             { .kind = EVENT_JOB_HELD, .job = 0 },
                             { .kind = EVENT_JOB_HELD, .job = 0 } };

    world_init(&w, "workload w\n");
    ck_assert_int_eq(ledger_begin(&w.ledger, NULL), 0);
    ck_assert_int_eq(ledger_append(&w.ledger, batch, 2, NULL), 0);
    ledger_undo(&w.ledger);
    ck_assert_int_eq(w.ledger.state.n_jobs, 0);
    ck_assert_int_eq(ledger_append(&w.ledger, batch, 3, NULL), -EINVAL);
    ck_assert_int_eq(w.ledger.state.jobs[0]->state, JOB_HELD);
    world_release(&w);
}

TIMES(a_journal_that_makes_no_sense_names_its_event, 3)
{
    static const struct {
        const char *kind, *body, *want;
    } rows[] = {
        { "job_held", "{\"job\":5}", "journal: event 3: job_held: there is no job 5" },
        { "job_held", "not json", "journal: event 3: job_held: column" },
        { "job_eaten", "{}", "journal: event 3: unknown kind of event" },
    };
    struct ledger again;
    struct err e = { 0 };

    ck_assert_int_eq(store_begin(d.store, &e), 0);
    ck_assert_int_eq(store_append_event(d.store, 0, rows[_i].kind, rows[_i].body, NULL, &e), 0);
    ck_assert_int_eq(store_commit(d.store, &e), 0);
    ck_assert_int_eq(ledger_open(&again, &d.catalog, d.store, &e), -EINVAL);
    ck_assert_msg(strstr(e.text, rows[_i].want) == e.text, "%s", e.text);
}
