/* The daemon on a third engine, which it knows nothing of: what is asked at the executor's door, in which
 * order, and what becomes of refusals, deaths, lost nodes and turns that the disk refuses.
 */
#include <sqlite3.h>
#include <stdlib.h>

#include "base/log.h"
#include "catalog/cluster/cluster.h"
#include "daemon/service/inner.h"
#include "monitor/watch.h"
#include "unit/act/memory_engine.h"
#include "unit/daemon/box.h"
#include "unit/suite.h"
#include "unit/support.h"

static struct service s;
static struct memory_engine engine;
static struct box box;    // of the service's own HTTP
static const char *only_watches;
static const char *said;
static struct err e;

/* ---- life ---- */

static void node_is(void *owner, int node, enum node_state is)
{
    struct service *to = owner;

    watch_tell(to->watch, &(struct observation){
                              .kind = is == NODE_UP ? OBS_NODE_UP : OBS_NODE_DOWN,
                              .time_s = clock_now_s(&to->clock),
                              .node = node,
                          });
}

static int open_memory(struct service *to, const char *program, struct executor *out,
                       struct err *why)
{
    ck_assert_str_eq(program, "memory");
    if (getenv("NO_MEMORY"))
        return err_set(why, ENOENT, "there is no memory");
    engine.owner = to;
    engine.node_is = node_is;
    memory_open(&engine, to->loop, &to->clock, &to->base.ledger.state);
    *out = memory_executor(&engine);
    out->only_watches = only_watches;
    return service_install(to, &to->config.cluster, why);
}

static void open_service(void)
{
    const struct engine how = { open_memory, "memory" };
    const char *text = arena_printf(
        &box.arena,
        "store %s/db\nrun_dir %s/runs\nsocket %s/s\nreports %s/r\ngpus declared\npower model\n"
        "model none\nlearn no\npolicy greedy\ndecide_s 0.01\nlog error\nsolve_s 300\ngrace_s 7\n"
        "node a v100:1\nnode b v100:1\n",
        box.dir, box.dir, box.dir, box.dir);

    ck_assert_msg(config_parse(&box.arena, "test", text, strlen(text), &box.config, &e) == 0, "%s",
                  e.text);
    ck_assert_msg(service_open(&s, &box.config, &how, &e) == 0, "%s", e.text);
    box.loop = s.loop;
    box.http = s.http;
    loop_settle(s.loop, 1e9);    // AddressSanitizer does not survive a fork beside a busy thread
}

static void setup(void)
{
    char *dir = scratch_make();

    engine = (struct memory_engine){ 0 };
    box = (struct box){ 0 };
    only_watches = NULL;
    arena_init(&box.arena);
    snprintf(box.dir, sizeof box.dir, "%s", dir);
    snprintf(box.sock, sizeof box.sock, "%s/s", dir);
    free(dir);
    log_set_level(LOG_ERROR);
    open_service();
}

static void teardown(void)
{
    service_close(&s);
    ck_assert(engine.is_closed);
    ck_assert_int_eq(system(arena_printf(&box.arena, "rm -r %s", box.dir)), 0);
    arena_release(&box.arena);
}

FIXTURE(setup, teardown)

/* ---- asking ---- */

/* The answer's status; its body is in 'said'. */
static int ask(const char *line, const char *body)
{
    struct client c = client_unix(&box);
    const struct answer a =
        client_ask(&c, request_of(&box, line, "Content-Type: application/json\r\n", body));

    client_close(&c);
    said = a.body ? a.body : "";
    return a.status;
}

static int submit(const char *name)
{
    return ask("POST /v1/jobs",
               arena_printf(&box.arena,
                            "{\"name\":\"%s\",\"workload\":\"resnet50\",\"batch\":64,"
                            "\"steps\":1e7,\"argv\":[\"true\"],\"exclusive\":true}",
                            name));
}

static int change(const char *name, const char *how)
{
    return ask(arena_printf(&box.arena, "POST /v1/jobs/%s/%s", name, how), "");
}

static enum job_state state_of(const char *name)
{
    const struct state *st = &s.base.ledger.state;
    const int job = state_find_job(st, name);

    ck_assert_msg(job >= 0, "there is no job %s", name);
    return st->jobs[job]->state;
}

#define UNTIL(claim) BOX_UNTIL(&box, claim)
#define ASKED(what) memory_was_asked(&engine, what)

/* One that runs. */
static int running(const char *name)
{
    ck_assert_int_eq(submit(name), 201);
    UNTIL(state_of(name) == JOB_RUNNING);
    return state_find_job(&s.base.ledger.state, name);
}

/* ---- a job's life ---- */

TEST(a_job_is_told_of_once_it_is_on_disk_then_started_and_its_end_journaled)
{
    ck_assert_double_eq(engine.grace_s, 7);
    const int job = running("one");
    const char *committed = strstr(engine.asked, "committed;new one;");

    ck_assert_ptr_nonnull(committed);
    ck_assert_ptr_nonnull(strstr(committed, "start one;"));
    memory_end(&engine, job, NOTICE_FINISHED, NULL);
    UNTIL(state_of("one") == JOB_FINISHED);
    running("two");
    memory_end(&engine, 1, NOTICE_FAILED, "exit 3");
    UNTIL(state_of("two") == JOB_FAILED);
    ck_assert_str_eq(s.base.ledger.state.jobs[1]->reason, "exit 3");
    ck_assert_int_eq(ask("GET /v1/jobs/s101", ""), 200);    // its own number
    ck_assert_ptr_nonnull(strstr(said, "\"two\""));
    ck_assert_int_eq(ask("GET /v1/jobs/s102", ""), 404);
}

TEST(holds_releases_and_cancels_reach_it_in_their_order)
{
    engine.script = "start one slow\n";
    ck_assert_int_eq(submit("one"), 201);
    UNTIL(ASKED("start one"));
    memory_forget(&engine);
    ck_assert_int_eq(change("one", "hold"), 200);
    UNTIL(ASKED("held one"));
    ck_assert_ptr_nonnull(strstr(engine.asked, "stop one;"));    // a start was under way
    ck_assert(state_of("one") == JOB_HELD);
    memory_forget(&engine);
    ck_assert_int_eq(change("one", "release"), 200);
    UNTIL(ASKED("released one"));
    UNTIL(state_of("one") == JOB_RUNNING);
    memory_forget(&engine);
    ck_assert_int_eq(change("one", "cancel"), 200);
    UNTIL(ASKED("cancel one"));
    ck_assert_ptr_nonnull(strstr(engine.asked, "committed;cancel one;"));
    ck_assert(!engine.runs[0].is_there);
    ck_assert_int_eq(change("one", "hold"), 409);
}

TEST(what_its_users_do_is_journaled)
{
    running("one");
    running("two");
    ck_assert_int_eq(submit("three"), 201);
    UNTIL(ASKED("new three"));
    memory_user(&engine, 2, JOB_IS_HELD);
    UNTIL(state_of("three") == JOB_HELD);
    UNTIL(ASKED("held three"));
    memory_user(&engine, 2, JOB_IS_HELD);    // known already
    memory_user(&engine, 2, JOB_IS_RELEASED);
    UNTIL(state_of("three") == JOB_WAITING);
    memory_user(&engine, 2, JOB_IS_CANCELLED);
    UNTIL(state_of("three") == JOB_CANCELLED);
    ck_assert_str_eq(s.base.ledger.state.jobs[2]->reason, "by memory's commands");
    ck_assert(!ASKED("cancel three"));    // it knows
}

/* ---- faults ---- */

TEST(an_order_that_is_refused_is_given_again)
{
    engine.script = "start one refuse\n";
    ck_assert_int_eq(submit("one"), 201);
    UNTIL(ASKED("start one"));
    ck_assert(state_of("one") == JOB_WAITING);
    service_wake(&s);    // sooner than by itself
    UNTIL(state_of("one") == JOB_RUNNING);
}

TEST(where_it_cannot_put_a_job_that_is_not_tried_again)
{
    engine.script = "start one cannot\n";
    ck_assert_int_eq(submit("one"), 201);
    UNTIL(ASKED("start one"));
    service_wake(&s);
    UNTIL(state_of("one") == JOB_RUNNING);
    const int node = s.base.ledger.state.gpus[engine.runs[0].gpus[0]].node;
    ck_assert_int_eq(s.cycle.n_refusals, 1);
    ck_assert_int_ne(s.cycle.refusals[0].node, node);
}

TEST(an_engine_that_dies_is_said_to_be_down_and_serves_again)
{
    running("one");
    engine.script = "start two die\n";
    ck_assert_int_eq(submit("two"), 201);
    UNTIL(engine.is_dead);
    ck_assert_int_eq(ask("GET /v1/status", ""), 200);
    ck_assert_ptr_nonnull(strstr(said, "\"slurm\":{\"up\":false}"));
    ck_assert_int_eq(ask("GET /metrics", ""), 200);
    ck_assert_ptr_nonnull(strstr(said, "# TYPE gogh_memory_up gauge\ngogh_memory_up 0\n"));
    ck_assert_int_eq(submit("three"), 201);    // jobs can be handed in meanwhile
    ck_assert(state_of("one") == JOB_RUNNING);
    engine.is_dead = false;
    service_wake(&s);
    UNTIL(state_of("two") == JOB_RUNNING);
}

TEST(what_ran_when_the_daemon_went_is_told_again)
{
    running("one");
    service_close(&s);
    open_service();
    ck_assert(state_of("one") == JOB_RUNNING);
    memory_end(&engine, 0, NOTICE_FINISHED, NULL);
    UNTIL(state_of("one") == JOB_FINISHED);
}

TEST(a_node_that_goes_takes_no_jobs_until_it_is_back)
{
    const int job = running("one");
    const int gone = s.base.ledger.state.gpus[engine.runs[job].gpus[0]].node;

    memory_node(&engine, gone, NODE_DOWN);
    memory_end(&engine, job, NOTICE_STOPPED, "its node is gone");
    UNTIL(s.base.ledger.state.nodes[gone].state == NODE_DOWN);
    UNTIL(state_of("one") == JOB_RUNNING && engine.runs[job].run == 2);
    ck_assert_int_ne(s.base.ledger.state.gpus[engine.runs[job].gpus[0]].node, gone);
    ck_assert_int_eq(submit("two"), 201);
    UNTIL(ASKED("new two") && s.inner->is_deciding == false && s.metrics.n_decisions > 2);
    ck_assert(state_of("two") == JOB_WAITING);
    memory_node(&engine, gone, NODE_UP);
    UNTIL(state_of("two") == JOB_RUNNING);
}

TEST(a_turn_that_the_disk_refuses_is_undone_and_nothing_of_it_is_ordered)
{
    sqlite3 *other;

    running("one");
    memory_forget(&engine);
    ck_assert_int_eq(sqlite3_open(box.config.store, &other), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(submit("two"), 503);
    ck_assert(ASKED("undone") && !ASKED("committed") && !ASKED("new two"));
    ck_assert_int_eq(change("one", "cancel"), 503);
    ck_assert(state_of("one") == JOB_RUNNING && !ASKED("cancel one"));
    memory_end(&engine, 0, NOTICE_FINISHED, NULL);    // heard, and not lost
    for (int i = 0; i < 20; i++)
        box_turn(&box);
    ck_assert(state_of("one") == JOB_RUNNING);
    ck_assert_int_eq(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
    UNTIL(state_of("one") == JOB_FINISHED && ASKED("committed"));
    ck_assert_int_eq(s.base.ledger.state.n_jobs, 1);
    ck_assert_int_eq(submit("two"), 201);
    UNTIL(ASKED("new two"));
}

/* ---- what it cannot do at all ---- */

TEST(who_only_watches_is_given_no_orders)
{
    service_close(&s);
    only_watches = "memory only watches";
    open_service();
    ck_assert_int_eq(submit("one"), 409);
    ck_assert_ptr_nonnull(strstr(said, "memory only watches"));
    ck_assert_int_eq(change("one", "cancel"), 409);
}

TEST(an_engine_that_does_not_open_keeps_the_daemon_from_starting)
{
    const struct engine how = { open_memory, "memory" };

    service_close(&s);
    setenv("NO_MEMORY", "1", 1);
    ck_assert_int_eq(service_open(&s, &box.config, &how, &e), -ENOENT);
    ck_assert_str_eq(e.text, "there is no memory");
    unsetenv("NO_MEMORY");
    open_service();
}
