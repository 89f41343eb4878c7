/* The state and its journal: what was acknowledged is there after a restart, as it was. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/rng.h"
#include "store/store.h"
#include "unit/support.h"
#include "unit/suite.h"

/* A ledger on a store in a directory of its own. */
struct desk {
    char *dir;
    char path[300];
    struct store *store;
    struct catalog catalog;
    struct ledger ledger;
};

static void desk_open(struct desk *d)
{
    struct err e = { 0 };

    ck_assert_msg(store_open(d->path, STORE_CREATE, &d->store, &e) == 0, "%s", e.text);
    catalog_init(&d->catalog);
    ck_assert_msg(catalog_load(&d->catalog, d->store, &e) == 0, "%s", e.text);
    ck_assert_msg(ledger_open(&d->ledger, &d->catalog, d->store, &e) == 0, "%s", e.text);
}

static void desk_close(struct desk *d)
{
    ledger_close(&d->ledger);
    catalog_release(&d->catalog);
    store_close(d->store);
}

static void desk_init(struct desk *d)
{
    static const int types[] = { 0, 1, 0, 0 };
    struct workload w;
    struct event nodes[] = {
        { .kind = EVENT_NODE_ADDED, .time_s = 1, .node = "n1", .gpu_types = types, .n_gpus = 4 },
        { .kind = EVENT_NODE_ADDED, .time_s = 1, .node = "n2", .gpu_types = types, .n_gpus = 2 },
    };
    struct err e = { 0 };
    int index;

    d->dir = scratch_make();
    snprintf(d->path, sizeof d->path, "%s/store.db", d->dir);
    desk_open(d);
    workload_init(&w, "w");
    ck_assert_int_eq(store_begin(d->store, &e), 0);
    ck_assert_int_eq(catalog_add_type(&d->catalog, gpu_type_builtin("v100"), &index, &e), 0);
    ck_assert_int_eq(catalog_add_type(&d->catalog, gpu_type_builtin("k80"), &index, &e), 0);
    ck_assert_int_eq(catalog_add_workload(&d->catalog, &w, &index, &e), 0);
    ck_assert_int_eq(store_commit(d->store, &e), 0);
    ck_assert_msg(ledger_append(&d->ledger, nodes, 2, &e) == 0, "%s", e.text);
}

static void desk_release(struct desk *d)
{
    desk_close(d);
    scratch_remove(d->dir);
}

static int64_t n_events(struct desk *d)
{
    int64_t n = -1;

    ck_assert_int_eq(store_count(d->store, "events", &n, NULL), 0);
    return n;
}

/* ---- random lives ---- */

struct draw {
    struct event ev;
    struct job_spec spec;
    char name[16];
    int gpus[3];
};

static void draw_spec(struct rng *r, struct draw *d)
{
    snprintf(d->name, sizeof d->name, "j%d", (int)rng_below(r, 30));
    d->spec = spec_of(d->name, 0);
    d->spec.owner = rng_below(r, 2) ? "eve" : NULL;
    d->spec.submit_s = rng_uniform(r) / 3;
    d->spec.deadline_s = rng_below(r, 2) ? 1e6 / 7 : (double)NAN;
    d->spec.n_gpus = 1 + (int)rng_below(r, 2);
    d->spec.max_gpus = d->spec.n_gpus + 1;
    d->spec.priority = (int)rng_below(r, 3) - 1;
    d->spec.is_exclusive = rng_below(r, 2);
    d->spec.needs_one_node = rng_below(r, 2);
    d->spec.allowed_types = rng_below(r, 4);
    if (rng_below(r, 3) == 0) {
        d->spec.kind = JOB_INFERENCE;
        d->spec.rate = 1.0 / 3;
        d->spec.duration_s = 100;
    }
}

/* Mostly of the living, so that most are accepted. */
static void draw_event(struct rng *r, const struct state *s, struct draw *d)
{
    static const enum event_kind kinds[] = {
        EVENT_JOB_SUBMITTED, EVENT_JOB_SUBMITTED,  EVENT_JOB_STARTED, EVENT_JOB_STARTED,
        EVENT_JOB_STARTED,   EVENT_JOB_PROGRESSED, EVENT_JOB_STOPPED, EVENT_JOB_FINISHED,
        EVENT_JOB_FAILED,    EVENT_JOB_CANCELLED,  EVENT_JOB_HELD,    EVENT_JOB_RELEASED,
        EVENT_NODE_CHANGED,
    };
    int n_jobs = s->n_jobs ? s->n_jobs : 1;
    int recent = n_jobs > 10 ? n_jobs - 10 : 0;

    draw_spec(r, d);
    d->ev = (struct event){ .kind = kinds[rng_below(r, sizeof kinds / sizeof *kinds)],
                            .time_s = rng_uniform(r) * 1e9,
                            .job = recent + (int)rng_below(r, (uint64_t)(n_jobs - recent)),
                            .spec = &d->spec,
                            .gpus = d->gpus,
                            .n_gpus = 1 + (int)rng_below(r, 3),
                            .limit_w = rng_below(r, 2) ? 150 : 0,
                            .steps_done = rng_uniform(r) * 1000,
                            .reason = rng_below(r, 2) ? "bad luck" : NULL,
                            .node = rng_below(r, 2) ? "n1" : "n2",
                            .node_state = (enum node_state)rng_below(r, 3) };
    for (int i = 0; i < 3; i++)
        d->gpus[i] = (int)rng_below(r, 7);    // 6 does not exist
}

START_TEST(a_restart_at_any_point_gives_the_same_state_with_and_without_checkpoint)
{
    struct rng r;
    struct desk d;
    int n_refused = 0, n_restarts = 0;

    rng_init(&r, (uint64_t)_i, "ledger");
    desk_init(&d);
    for (int i = 0; i < 250; i++) {
        struct draw draw;
        struct err e = { 0 };
        draw_event(&r, &d.ledger.state, &draw);
        int rc = ledger_append(&d.ledger, &draw.ev, 1, &e);
        ck_assert_msg(rc == 0 || rc == -EINVAL, "%s", e.text);
        n_refused += rc < 0;
        if (rng_below(&r, 20) == 0)
            ck_assert_msg(ledger_checkpoint(&d.ledger, &e) == 0, "%s", e.text);
        if (rng_below(&r, 12) > 0)
            continue;
        struct ledger again;
        struct ledger fresh = d.ledger;
        ck_assert_msg(ledger_open(&again, &d.catalog, d.store, &e) == 0, "%s", e.text);
        const char *what = state_differs(&fresh.state, &again.state);
        ck_assert_msg(!what, "after %d events a restart changes %s", i, what);
        ck_assert_int_eq(again.last_seq, d.ledger.last_seq);
        ck_assert_int_eq(again.n_since_checkpoint, d.ledger.n_since_checkpoint);
        ledger_close(&again);
        n_restarts++;
    }
    ck_assert_int_eq(d.ledger.last_seq, n_events(&d));
    ck_assert_int_gt(n_refused, 20);
    ck_assert_int_gt(n_restarts, 3);
    desk_release(&d);
}
END_TEST

START_TEST(a_refused_event_leaves_nothing_of_its_batch)
{
    static const int first[] = { 0 }, missing[] = { 99 }, below[] = { -7 };
    struct desk d;
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

    desk_init(&d);
    int64_t before = n_events(&d), last = d.ledger.last_seq;
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
        ck_assert_int_eq(n_events(&d), before);
    }
    /* And the next batch finds everything in order. */
    struct event good = { .kind = EVENT_JOB_SUBMITTED, .spec = &a };
    ck_assert_int_eq(ledger_append(&d.ledger, &good, 1, NULL), 0);
    ck_assert_int_eq(d.ledger.last_seq, last + 1);
    desk_release(&d);
}
END_TEST

START_TEST(without_a_store_events_are_applied_and_nothing_is_kept)
{
    struct world w;
    struct job_spec a = spec_of("a", 0);
    struct event batch[] = { { .kind = EVENT_JOB_SUBMITTED, .spec = &a },
                             { .kind = EVENT_JOB_HELD, .job = 0 },
                             { .kind = EVENT_JOB_HELD, .job = 0 } };

    world_init(&w, "workload w\n");
    ck_assert_int_eq(ledger_append(&w.ledger, batch, 3, NULL), -EINVAL);
    ck_assert_int_eq(w.ledger.state.jobs[0]->state, JOB_HELD);
    world_release(&w);
}
END_TEST

START_TEST(a_journal_that_makes_no_sense_names_its_event)
{
    static const struct {
        const char *kind, *body, *want;
    } rows[] = {
        { "job_held", "{\"job\":5}", "journal: event 3: job_held: there is no job 5" },
        { "job_held", "not json", "journal: event 3: job_held: column" },
        { "job_eaten", "{}", "journal: event 3: unknown kind of event" },
    };
    struct desk d;
    struct ledger again;
    struct err e = { 0 };

    desk_init(&d);
    ck_assert_int_eq(store_begin(d.store, &e), 0);
    ck_assert_int_eq(store_append_event(d.store, 0, rows[_i].kind, rows[_i].body, NULL, &e), 0);
    ck_assert_int_eq(store_commit(d.store, &e), 0);
    ck_assert_int_eq(ledger_open(&again, &d.catalog, d.store, &e), -EINVAL);
    ck_assert_msg(strstr(e.text, rows[_i].want) == e.text, "%s", e.text);
    desk_release(&d);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ledger");
    TCase *t = tcase_create("ledger");

    tcase_add_loop_test(t, a_restart_at_any_point_gives_the_same_state_with_and_without_checkpoint,
                        0, 8);
    tcase_add_test(t, a_refused_event_leaves_nothing_of_its_batch);
    tcase_add_test(t, without_a_store_events_are_applied_and_nothing_is_kept);
    tcase_add_loop_test(t, a_journal_that_makes_no_sense_names_its_event, 0, 3);
    suite_add_tcase(s, t);
    return suite_run(s);
}
