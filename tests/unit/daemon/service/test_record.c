/* What is written down of a run, when, and for whose eyes. */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text/file.h"
#include "catalog/catalog.h"
#include "catalog/cluster/cluster.h"
#include "catalog/cluster/engine.h"
#include "catalog/cluster/ledger.h"
#include "cycle/cycle.h"
#include "daemon/config/config.h"
#include "daemon/service/decide.h"
#include "daemon/service/record.h"
#include "store/store.h"
#include "unit/suite.h"
#include "unit/support.h"

static struct err e;

#define OK(call) ck_assert_msg((call) >= 0, "%s", e.text)

/* All that a record is of: a store, a state, a cycle. */
static struct desk {
    struct arena arena;
    char *dir;
    const char *path;
    struct config config;
    struct store *store;
    struct catalog catalog;
    struct ledger ledger;
    struct clock_manual clock;
    struct cycle cycle;
    struct record *record;
    int refuses;    // errno that orders get
} d;                // of the test

static void desk_open(void)
{
    static const char text[] = "node a k80:1 v100:1\nset move_s 7\n";
    int index;
    struct workload w;

    d = (struct desk){ .dir = scratch_make(), .clock = { .t_s = 100 } };
    arena_init(&d.arena);
    d.path = arena_printf(&d.arena, "%s/record", d.dir);
    config_defaults(&d.config);
    OK(cluster_parse(&d.arena, "test", text, sizeof text - 1, &d.config.cluster, &e));
    OK(store_open(arena_printf(&d.arena, "%s/db", d.dir), STORE_CREATE, &d.store, &e));
    catalog_init(&d.catalog);
    OK(catalog_load(&d.catalog, d.store, &e));
    OK(ledger_open(&d.ledger, &d.catalog, d.store, &e));
    OK(cluster_install(&d.config.cluster, &d.catalog, &d.ledger, 1, &e));
    OK(catalog_begin(&d.catalog, &e));
    workload_init(&w, "w");
    OK(catalog_add_workload(&d.catalog, &w, &index, &e));
    OK(catalog_end(&d.catalog, 0, &e));
    d.cycle.clock = clock_manual(&d.clock);
    d.cycle.ledger = &d.ledger;
    d.cycle.catalog = &d.catalog;
    d.cycle.options = solve_defaults;
    OK(record_open(d.path, &d.config, &d.cycle, false, &d.record, &e));
}

static void desk_close(void)
{
    record_close(d.record);
    ledger_close(&d.ledger);
    catalog_release(&d.catalog);
    store_close(d.store);
    scratch_remove(d.dir);
    arena_release(&d.arena);
}

FIXTURE(desk_open, desk_close)

/* The 'what' of all lines, with blanks between; each line is an object of its own. */
static const char *whats(void)
{
    const char *text, *all = "";
    size_t len;

    OK(file_read(&d.arena, d.path, NULL, 1 << 20, &text, &len, &e));
    while (*text) {
        size_t n = strcspn(text, "\n");
        json_t *o = json_loadb(text, n, 0, NULL);

        ck_assert_ptr_nonnull(o);
        all = arena_printf(&d.arena, "%s%s%s", all, *all ? " " : "",
                           json_string_value(json_object_get(o, "what")));
        json_decref(o);
        text += n + 1;
    }
    return all;
}

/* The last line. Yours. */
static json_t *last_line(void)
{
    const char *text;
    size_t len;

    OK(file_read(&d.arena, d.path, NULL, 1 << 20, &text, &len, &e));
    ck_assert(len > 1 && text[len - 1] == '\n');
    const char *at = text + len - 1;
    while (at > text && at[-1] != '\n')
        at--;
    return json_loads(at, 0, NULL);
}

static void submit(const char *name)
{
    struct job_spec spec = spec_of(name, 0);
    struct event ev = { .kind = EVENT_JOB_SUBMITTED, .time_s = 101, .spec = &spec };

    spec.command = "{\"argv\":[\"/bin/true\"],\"env\":{\"TOKEN\":\"secret\"}}";
    OK(ledger_begin(&d.ledger, &e));
    OK(ledger_add(&d.ledger, &ev, &e));
    record_event(d.record, &ev);
}

static void measure(void)
{
    struct measurement m = { .key = { .neighbour = -1, .n_gpus = 1 },
                             .fits = true,
                             .throughput = 0.1,
                             .watts = NAN,
                             .time_s = 102,
                             .noise = NAN };

    record_measure(d.record, &m);
}

TEST(it_begins_with_the_store_as_it_is_and_is_private)
{
    struct stat st;
    struct store *copy;

    json_t *o = last_line();
    ck_assert_str_eq(json_string_value(json_object_get(o, "what")), "begin");
    ck_assert_str_eq(json_string_value(json_object_get(o, "store")), "record.db");
    ck_assert_ptr_nonnull(
        strstr(json_string_value(json_object_get(o, "settings")), "set move_s 7\n"));
    ck_assert_ptr_nonnull(
        strstr(json_string_value(json_object_get(o, "settings")), "set noise 0.05\n"));
    ck_assert_int_eq((int)json_array_size(json_object_get(o, "gpus")), 2);
    ck_assert_double_eq(json_number_value(json_object_get(o, "time_s")), 100);
    json_decref(o);
    ck_assert_int_eq(stat(d.path, &st), 0);
    ck_assert_int_eq((int)(st.st_mode & 0777), 0600);
    const char *path = arena_printf(&d.arena, "%s.db", d.path);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq((int)(st.st_mode & 0777), 0600);
    OK(store_open(path, STORE_READ, &copy, &e));
    ck_assert_int_eq(count_rows(copy, "events"), 1);
    store_close(copy);
}

TEST(what_a_transaction_did_waits_for_its_commit)
{
    measure();
    ck_assert_str_eq(whats(), "begin measurement");    // nothing that might be undone before it
    submit("a");
    measure();
    ck_assert_str_eq(whats(), "begin measurement");
    OK(ledger_commit(&d.ledger, &e));
    record_commit(d.record);
    ck_assert_str_eq(whats(), "begin measurement event measurement");
}

TEST(events_that_were_undone_are_left_out_and_what_was_learned_is_not)
{
    submit("a");
    measure();
    submit("b");
    ledger_undo(&d.ledger);
    record_undo(d.record);
    ck_assert_str_eq(whats(), "begin measurement");
    submit("c");
    OK(ledger_commit(&d.ledger, &e));
    record_commit(d.record);
    json_t *o = last_line();
    json_t *body = json_object_get(o, "body");
    ck_assert_str_eq(json_string_value(json_object_get(body, "name")), "c");
    ck_assert_ptr_null(json_object_get(body, "command"));
    json_decref(o);
}

TEST(what_was_seen_of_a_workload_alone_is_told_as_it_was_seen)
{
    record_profile(d.record, 0, &(struct solo_profile){ 0.7, NAN, 150, 4e9 }, 103);
    json_t *o = last_line();
    ck_assert_str_eq(json_string_value(json_object_get(o, "what")), "profile");
    ck_assert_str_eq(json_string_value(json_object_get(o, "workload")),
                     d.catalog.workloads[0].name);
    ck_assert(json_number_value(json_object_get(o, "gpu_activity")) == 0.7);
    ck_assert(json_is_null(json_object_get(o, "mem_activity")));
    ck_assert(json_number_value(json_object_get(o, "time_s")) == 103);
    json_decref(o);
}

TEST(numbers_come_back_as_they_were)
{
    measure();
    json_t *o = last_line();
    ck_assert(json_real_value(json_object_get(o, "throughput")) == 0.1);
    ck_assert(json_is_null(json_object_get(o, "watts")));
    ck_assert(json_is_null(json_object_get(o, "neighbour")));
    json_decref(o);
}

/* ---- orders ---- */

static int order(struct err *why)
{
    return d.refuses ? err_set(why, d.refuses, "no") : 0;
}

static int order_placement(void *self, const struct placement *p, struct err *why)
{
    (void)self, (void)p;
    return order(why);
}

static int order_job(void *self, int job, struct err *why)
{
    (void)self, (void)job;
    return order(why);
}

TEST(orders_are_written_down_once_they_are_accepted)
{
    const struct placement p = { .job = 3, .n_gpus = 2, .gpus = (int[]){ 1, 0 }, .limit_w = 90 };

    struct executor x = { .self = &d,
                          .start = order_placement,
                          .stop = order_job,
                          .move = order_placement,
                          .cancel = order_job };
    record_orders(d.record, &x);
    d.refuses = EBUSY;
    ck_assert_int_eq(executor_give(&x, ORDER_START, &p, &e), -EBUSY);
    ck_assert_str_eq(e.text, "no");
    ck_assert_str_eq(whats(), "begin");
    d.refuses = 0;
    OK(executor_give(&x, ORDER_START, &p, &e));
    json_t *o = last_line();
    json_t *gpus = json_object_get(o, "gpus");
    ck_assert_int_eq((int)json_integer_value(json_object_get(o, "job")), 3);
    ck_assert_int_eq((int)json_integer_value(json_array_get(gpus, 0)), 1);
    ck_assert_int_eq((int)json_integer_value(json_array_get(gpus, 1)), 0);
    ck_assert_int_eq((int)json_integer_value(json_object_get(o, "limit_w")), 90);
    json_decref(o);
    OK(executor_give(&x, ORDER_MOVE, &p, &e));
    OK(executor_give(&x, ORDER_LIMIT, &p, &e));
    OK(executor_give(&x, ORDER_STOP, &(struct placement){ .job = 3 }, &e));
    OK(executor_give(&x, ORDER_CANCEL, &(struct placement){ .job = 3 }, &e));
    ck_assert_str_eq(whats(), "begin start move move stop cancel");
}

/* ---- looks ---- */

TEST(a_look_tells_of_busy_and_sleeping_gpus_and_of_options_that_changed)
{
    struct snapshot_gpu gpus[] = { { .node = 0, .may_start = false },
                                   { .node = 0, .may_start = true, .wake_s = 12.5 } };
    struct snapshot s = { .now_s = 103, .n_gpus = 2, .gpus = gpus };

    s.nodes = d.ledger.state.nodes;
    record_look(d.record, &solver_greedy, &s);
    json_t *o = last_line();
    ck_assert_int_eq((int)json_array_size(json_object_get(o, "busy")), 1);
    json_t *wake = json_array_get(json_object_get(o, "wake"), 0);
    ck_assert_double_eq(json_number_value(json_array_get(wake, 1)), 12.5);
    ck_assert(json_is_object(json_object_get(o, "options")));
    json_decref(o);
    record_look(d.record, &solver_greedy, &s);
    o = last_line();
    ck_assert_ptr_null(json_object_get(o, "options"));
    json_decref(o);
    d.cycle.options.may_share = false;
    record_look(d.record, &solver_greedy, &s);
    o = last_line();
    ck_assert(json_is_false(json_object_get(json_object_get(o, "options"), "may_share")));
    json_decref(o);
}

TEST(a_look_tells_what_the_executor_cannot_do)
{
    static const struct engine_node nodes[] = { { 4, LONG_MAX } };
    static const unsigned char barred[] = { ENGINE_FEATURE };
    static const struct engine_job of[] = { { .cpus = 2, .barred = barred }, { .is_bound = true } };
    static const bool unlimited[] = { true };
    const struct engine_rules rules = { .nodes = nodes, .unlimited = unlimited, .jobs = of };
    const struct snapshot_job jobs[] = { { .id = 7 }, { .id = 9 } };
    const struct snapshot_gpu gpus[] = { { .node = 0, .may_start = true } };
    struct snapshot s = { .now_s = 103,
                          .n_gpus = 1,
                          .gpus = gpus,
                          .n_nodes = 1,
                          .n_jobs = 2,
                          .jobs = jobs,
                          .engine = &rules };

    s.nodes = d.ledger.state.nodes;
    record_look(d.record, &solver_greedy, &s);
    json_t *o = last_line();
    char *ruled = json_dumps(json_object_get(o, "ruled"), JSON_COMPACT);
    char *has = json_dumps(json_object_get(o, "nodes"), JSON_COMPACT);
    ck_assert_str_eq(ruled, "[[7,2,0,0,0,4],[9,0,0,0,1]]");
    ck_assert_str_eq(has, "[4,2147483647]");
    ck_assert(json_integer_value(json_array_get(json_object_get(o, "unlimited"), 0)) == 1);
    free(ruled);
    free(has);
    json_decref(o);
    s.engine = NULL;
    record_look(d.record, &solver_greedy, &s);
    o = last_line();
    ck_assert_ptr_null(json_object_get(o, "ruled"));
    json_decref(o);
}

TEST(a_second_start_appends_and_copies_anew)
{
    record_close(d.record);
    OK(record_open(d.path, &d.config, &d.cycle, true, &d.record, &e));
    ck_assert_str_eq(whats(), "begin begin");
    json_t *o = last_line();
    ck_assert_str_eq(json_string_value(json_object_get(o, "store")), "record.2.db");
    ck_assert(json_is_true(json_object_get(o, "sleeps")));
    json_decref(o);
}

TEST(nothing_is_recorded_where_nobody_asks)
{
    struct record *none = NULL;
    struct executor x = { .self = &d };

    OK(record_open(NULL, &d.config, &d.cycle, false, &none, &e));
    ck_assert_ptr_null(none);
    record_orders(NULL, &x);
    ck_assert_ptr_null((void *)x.order_to);
    record_commit(NULL);
    record_undo(NULL);
    record_measure(NULL, NULL);
    record_event(NULL, NULL);
    record_look(NULL, NULL, NULL);
    record_plan(NULL, NULL, true, false);
    record_prices(NULL);
    record_cut(NULL, "");
    record_energy(NULL, 0, NULL);
    record_close(NULL);
    ck_assert_int_lt(record_open("/nowhere/at/all", &d.config, &d.cycle, false, &none, &e), 0);
    ck_assert_ptr_nonnull(strstr(e.text, "/nowhere/at/all"));
}
