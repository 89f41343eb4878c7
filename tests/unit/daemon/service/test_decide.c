/* Questions that children answer: a plan, a computation, and all the ways they fail. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "daemon/engine/engine.h"
#include "daemon/service/decide.h"
#include "daemon/service/inner.h"
#include "optimize/prices/kept.h"
#include "unit/suite.h"
#include "unit/support.h"

static struct service s;
static struct arena arena;
static char dir[] = "/tmp/gogh-decide-XXXXXX";
static struct err e;

static void open_box(int n_v100)
{
    struct config c;
    char *text;

    arena_init(&arena);
    ck_assert_ptr_nonnull(mkdtemp(dir));
    text = arena_printf(&arena,
                        "store %s/db\nrun_dir %s/runs\nsocket %s/s\nreports %s/r\ngpus declared\n"
                        "power model\nmodel none\nlearn no\nlog error\nsolve_s 300\n"
                        "node box k80:1 v100:%d\n",
                        dir, dir, dir, dir, n_v100);
    ck_assert_msg(config_parse(&arena, "test", text, strlen(text), &c, &e) == 0, "%s", e.text);
    ck_assert_msg(service_open(&s, &c, &(struct engine){ engine_open_local, "/bin/true" }, &e) == 0,
                  "%s", e.text);
    /* glibc's allocator survives a fork beside a busy thread, AddressSanitizer's does not. */
    loop_settle(s.loop, 1e9);
}

static void setup(void)
{
    open_box(1);
}

static void teardown(void)
{
    service_close(&s);
    char *clean = arena_printf(&arena, "rm -r %s", dir);
    ck_assert_int_eq(system(clean), 0);
    arena_release(&arena);
}

FIXTURE(setup, teardown)

struct outcome {
    bool is_there;
    int code;
    char text[512];
    json_t *result;
    int n_placed, n_jobs;
    bool is_fallback;
};

static void worked(void *self, json_t *result, const struct buf *raw, const struct err *failed)
{
    struct outcome *o = self;

    (void)raw;
    ck_assert(!o->is_there);
    o->is_there = true;
    o->result = json_incref(result);
    o->code = failed ? failed->code : 0;
    snprintf(o->text, sizeof o->text, "%s", failed ? failed->text : "");
}

static void wait_for(const struct outcome *o)
{
    double end_s = clock_stopwatch_s() + 600;

    while (!o->is_there) {
        ck_assert_msg(clock_stopwatch_s() < end_s, "no outcome");
        ck_assert_int_eq(loop_turn(s.loop, 0.05, &e), 0);
    }
}

/* ---- work ---- */

static json_t *count_gpus(void *self, struct service *there, struct buf *raw, struct err *why)
{
    (void)self, (void)raw, (void)why;
    return json_pack("{s:i, s:b}", "gpus", there->base.ledger.state.n_gpus, "is_child",
                     getppid() != 1);
}

static json_t *long_answer(void *self, struct service *there, struct buf *raw, struct err *why)
{
    json_t *list = json_array();

    (void)self, (void)there, (void)raw, (void)why;
    for (int i = 0; i < 40000; i++)
        json_array_append_new(list, json_integer(i));
    return list;
}

static json_t *refuse(void *self, struct service *there, struct buf *raw, struct err *why)
{
    (void)self, (void)there, (void)raw;
    err_set(why, ENOENT, "there is nothing to look at");
    return NULL;
}

static json_t *die(void *self, struct service *there, struct buf *raw, struct err *why)
{
    (void)self, (void)there, (void)raw, (void)why;
    raise(SIGKILL);
    return NULL;
}

static json_t *hang(void *self, struct service *there, struct buf *raw, struct err *why)
{
    (void)self, (void)there, (void)raw, (void)why;
    for (;;)
        pause();
    return NULL;
}

/* The parent's sockets must not live on in a child that outlasts it. */
static json_t *count_descriptors(void *self, struct service *there, struct buf *raw,
                                 struct err *why)
{
    int n = 0;

    (void)self, (void)there, (void)raw, (void)why;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return json_integer(n);
}

static const struct {
    const char *name;
    decide_work_f *work;
    double limit_s;
    int code;
    const char *says;
} cases[] = {
    { "an answer comes back as it was made", count_gpus, 100, 0, "" },
    { "an answer longer than a pipe holds comes back whole", long_answer, 100, 0, "" },
    { "a refusal comes back with its sentence", refuse, 100, ENOENT, "nothing to look at" },
    { "a child that dies is a failure that says of what", die, 100, EIO, "signal 9" },
    { "a child that hangs is ended", hang, 0.2, ETIMEDOUT, "within 0.2 s" },
};

EACH(work, cases)
{
    struct outcome o = { 0 };

    ck_assert_int_eq(decider_work(s.decider, cases[_i].limit_s, cases[_i].work, worked, &o, &e), 0);
    wait_for(&o);
    ck_assert_msg(o.code == cases[_i].code, "%s: %d %s", cases[_i].name, o.code, o.text);
    ck_assert_ptr_nonnull(strstr(o.text, cases[_i].says));
    ck_assert_int_eq(o.code == 0, o.result != NULL);
    if (_i == 0)
        ck_assert_int_eq(json_integer_value(json_object_get(o.result, "gpus")), 2);
    if (_i == 1)
        ck_assert_int_eq((int)json_array_size(o.result), 40000);
    json_decref(o.result);
    while (decider_n_busy(s.decider) > 0)
        ck_assert_int_eq(loop_turn(s.loop, 0.05, &e), 0);
}

TEST(a_child_keeps_nothing_open_but_its_pipe)
{
    struct outcome o = { 0 };

    ck_assert_int_eq(decider_work(s.decider, 100, count_descriptors, worked, &o, &e), 0);
    wait_for(&o);
    ck_assert(json_is_integer(o.result));
    ck_assert_int_le(json_integer_value(o.result), 4);    // stdin, stdout, stderr, the pipe
    json_decref(o.result);
}

TEST(too_many_questions_at_once_are_refused)
{
    struct outcome o[16] = { { 0 } };
    int n = 0;

    while (n < 16 && decider_work(s.decider, 10, hang, worked, &o[n], &e) == 0)
        n++;
    ck_assert_int_gt(n, 1);
    ck_assert_int_lt(n, 16);
    ck_assert_int_eq(decider_work(s.decider, 10, hang, worked, &o[15], &e), -EAGAIN);
    decider_destroy(s.decider);    // and who waits is told
    s.decider = NULL;
    for (int i = 0; i < n; i++) {
        ck_assert(o[i].is_there);
        ck_assert_int_eq(o[i].code, ECANCELED);
    }
}

/* ---- decisions ---- */

static json_t *tell(void *self, struct service *there, const struct decision *d)
{
    (void)self, (void)there;
    return json_integer(d->plan.n_placed);
}

static void decided(void *self, struct decision *d, const struct err *failed)
{
    struct outcome *o = self;

    ck_assert_msg(d != NULL, "%s", failed ? failed->text : "");
    o->is_there = true;
    o->n_placed = d->plan.n_placed;
    o->n_jobs = d->plan.n_jobs;
    o->is_fallback = d->is_fallback;
    ck_assert_int_eq(json_integer_value(d->said), d->plan.n_placed);
    for (int j = 0; j < d->plan.n_jobs; j++)
        for (int i = 0; i < d->plan.jobs[j].n_gpus; i++)
            ck_assert(d->plan.jobs[j].gpus[i] >= 0 && d->plan.jobs[j].gpus[i] < 2);
}

static void add_job(const char *name)
{
    struct workload w;
    int index;

    workload_init(&w, "something");
    ck_assert_msg(service_add_workload(&s, &w, &index, &e) == 0, "%s", e.text);
    struct job_spec spec = { .name = name,
                             .workload = index,
                             .submit_s = 1,
                             .steps = 10,
                             .deadline_s = NAN,
                             .n_gpus = 1,
                             .max_gpus = 1 };
    struct event ev = { .kind = EVENT_JOB_SUBMITTED, .time_s = 1, .spec = &spec };
    ck_assert_msg(service_append(&s, &ev, &e) == 0, "%s", e.text);
}

TIMES(a_plan_comes_back_as_a_value, 3)
{
    static const char *const policies[] = { NULL, "greedy", "fifo-fastest" };
    struct outcome o = { 0 };

    add_job("a");
    add_job("b");
    ck_assert_int_eq(decider_ask(s.decider, policies[_i], tell, decided, &o, &e), 0);
    wait_for(&o);
    ck_assert_int_eq(o.n_jobs, 2);
    ck_assert_int_eq(o.n_placed, 2);
    ck_assert(!o.is_fallback);
    ck_assert_int_eq(s.base.ledger.state.n_running, 0);    // asking changes nothing
}

TEST(a_policy_that_is_none_is_refused)
{
    struct outcome o = { 0 };

    ck_assert_int_eq(decider_ask(s.decider, "luck", NULL, decided, &o, &e), -ENOENT);
    ck_assert_ptr_nonnull(strstr(e.text, "luck"));
    ck_assert_int_eq(decider_n_busy(s.decider), 0);
}

/* ---- prices ---- */

/* More jobs and GPUs than are planned as a whole each time: prices are kept. */
static void setup_large(void)
{
    open_box(300);
}

FIXTURE(setup_large, teardown)

static void priced(void *self, struct decision *d, const struct err *failed)
{
    struct outcome *o = self;

    ck_assert_msg(d != NULL, "%s", failed ? failed->text : "");
    ck_assert(isfinite(plan_gap(&d->plan).ratio));
    ck_assert(d->plan.n_jobs > 0 || plan_gap(&d->plan).watts == 0);
    o->is_there = true;
    service_reprice(&s, d);
}

static void decide(void)
{
    struct outcome o = { 0 };

    ck_assert_int_eq(decider_ask(s.decider, NULL, NULL, priced, &o, &e), 0);
    wait_for(&o);
}

static uint64_t n_repricings(void)
{
    uint64_t n = 0;

    for (int i = 0; i < METRIC_BUCKETS; i++)
        n += s.metrics.repricing_s.counts[i];
    return n;
}

/* The first decision's child hands its prices over; when these are old a child of its own finds
 * others, and decisions, ours and the daemon's, go on meanwhile.
 */
TEST(prices_are_found_anew_beside_decisions)
{
    decide();
    ck_assert(kept_is_empty(s.cycle.kept));    // there are no jobs yet
    add_job("a");
    add_job("b");
    decide();
    ck_assert(!kept_is_empty(s.cycle.kept));
    ck_assert(!s.inner->is_pricing);
    while (!kept_count(s.cycle.kept, 0)) {
    }
    decide();
    ck_assert(s.inner->is_pricing || n_repricings() == 1);
    decide();
    while (s.inner->is_pricing)
        ck_assert_int_eq(loop_turn(s.loop, 0.05, &e), 0);
    ck_assert_int_eq(n_repricings(), 1);
    ck_assert(!kept_count(s.cycle.kept, 0));    // they are new
}
