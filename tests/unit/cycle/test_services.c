/* Services between decisions: what their replicas hold, and what is made of what they say. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "catalog/cluster/snapshot.h"
#include "cycle/cycle.h"
#include "cycle/services.h"
#include "estimate/serving.h"
#include "monitor/sensor.h"
#include "unit/support.h"
#include "unit/suite.h"

enum { SERVICE, REPLICA };    // ids

static struct world world;
static struct cycle cycle;
static struct clock_manual now;

/* A service, or one more replica of it. */
static void submit(enum job_kind kind)
{
    static const struct service_terms terms = { .latency_s = 1, .max_batch = 8, .load_s = 1 };
    static const char *const names[] = { "web", "web.0", "web.1", "web.2", "web.3", "web.4" };
    int n = world.ledger.state.n_jobs;
    struct job_spec spec = spec_of(names[n], 0);

    spec.kind = kind;
    spec.steps = 0;
    spec.rate = 10;
    spec.service = SERVICE;
    spec.replica = n - 1;
    spec.gpu = n % 2;    // the first one on the k80
    spec.terms = &terms;
    world_apply(&world, &(struct event){ .kind = EVENT_JOB_SUBMITTED, .spec = &spec });
}

static void happen_to(int job, enum event_kind kind)
{
    const int gpu = world.ledger.state.jobs[job]->spec.gpu;

    world_apply(&world, &(struct event){ .kind = kind,
                                         .time_s = now.t_s,
                                         .job = job,
                                         .gpus = &gpu,
                                         .n_gpus = 1,
                                         .reason = "so it goes" });
}

static void happen(enum event_kind kind)
{
    happen_to(REPLICA, kind);
}

/* As a daemon that begins: a replica is on disk, and nobody was asked about it. */
static void set_up(void)
{
    log_set_level(LOG_ERROR);
    now = (struct clock_manual){ .t_s = 1000 };
    world_init(&world, "type v100\ntype k80\nnode n v100 k80\n"
                       "workload w batch=8 params=25e6 flop_per_sample=4e9 bytes_per_sample=1e8\n");
    submit(JOB_SERVICE);
    submit(JOB_REPLICA);
    cycle = (struct cycle){ .clock = clock_manual(&now),
                            .solver = solver_greedy,
                            .ledger = &world.ledger,
                            .catalog = &world.catalog,
                            .options = solve_defaults,
                            .theta = 2 };
    cycle_init(&cycle);
}

static void tear_down(void)
{
    cycle_release(&cycle);
    world_release(&world);
}

FIXTURE(set_up, tear_down)

static struct service_now seen_now(void)
{
    struct service_now n;

    ck_assert(services_now(&cycle, SERVICE, &n));
    return n;
}

/* So many requests in the second that is over. */
static void hear(double n_requests, double n_late, bool is_false)
{
    struct measurement m;

    now.t_s += 1;
    services_hear(&cycle, REPLICA,
                  &(struct served){ .is_ready = true,
                                    .from_s = now.t_s - 1,
                                    .to_s = now.t_s,
                                    .n_requests = is_false ? (double)NAN : n_requests,
                                    .n_late = is_false ? (double)NAN : n_late,
                                    .n_batches = NAN,
                                    .busy_s = NAN,
                                    .n_queued = NAN,
                                    .is_false = is_false },
                  &m);
}

/* Ten batches of 'batch' a second, 50 ms each: for how many seconds until they are learned from; -1:
 * not within an hour.
 */
static int seconds_to_learn(double batch, struct measurement *m)
{
    for (int i = 1; i <= 3600; i++) {
        now.t_s += 1;
        if (services_hear(&cycle, REPLICA,
                          &(struct served){ .is_ready = true,
                                            .from_s = now.t_s - 1,
                                            .to_s = now.t_s,
                                            .n_requests = 10 * batch,
                                            .n_late = 0,
                                            .n_batches = 10,
                                            .busy_s = 0.5,
                                            .n_queued = NAN },
                          m))
            return i;
    }
    return -1;
}

static void serve(void)
{
    struct err e = { 0 };

    happen(EVENT_JOB_STARTED);
    happen(EVENT_REPLICA_READY);
    ck_assert_int_eq(services_tick(&cycle, &e), 0);
}

TEST(batches_are_learned_from_at_once_and_then_ever_later)
{
    struct measurement m;

    serve();
    ck_assert_int_eq(seconds_to_learn(8, &m), 61);    // the first second tells what was before
    ck_assert_double_eq_tol(m.throughput, 20, 1e-9);
    ck_assert(m.key.neighbour == -1 && m.key.workload == 0 && m.duration_s == 60);
    ck_assert_int_eq(seconds_to_learn(8, &m), 120);
    ck_assert_int_eq(seconds_to_learn(8, &m), 240);
}

/* Somebody trains where the replica is. */
static void train_beside(void)
{
    struct job_spec spec = spec_of("train", 0);
    const int gpu = world.ledger.state.jobs[REPLICA]->spec.gpu, job = world.ledger.state.n_jobs;

    world_apply(&world, &(struct event){ .kind = EVENT_JOB_SUBMITTED, .spec = &spec });
    world_apply(
        &world,
        &(struct event){
            .kind = EVENT_JOB_STARTED, .time_s = now.t_s, .job = job, .gpus = &gpu, .n_gpus = 1 });
}

static const struct {
    const char *name;
    double late;    // of ten a second, whose steps are short
    bool grows;
} tails[] = {
    { "nobody is late", 0, false },
    { "half of them are, though it is idle", 5, true },
};

EACH(a_tail_that_breaks_the_promise_is_remembered, tails)
{
    struct measurement m;

    serve();
    train_beside();
    double before = estimate_serving(&cycle.estimator, 0, 1, 0).tail;
    for (int i = 0; i < 70; i++) {
        now.t_s += 1;
        services_hear(&cycle, REPLICA,
                      &(struct served){ .is_ready = true,
                                        .from_s = now.t_s - 1,
                                        .to_s = now.t_s,
                                        .n_requests = 10,
                                        .n_late = tails[_i].late,
                                        .n_batches = 10,
                                        .busy_s = 0.1,
                                        .n_queued = NAN },
                      &m);
    }
    double after = estimate_serving(&cycle.estimator, 0, 1, 0).tail;
    ck_assert_msg((after > 1.2 * before) == tails[_i].grows, "%s: %g, then %g", tails[_i].name,
                  before, after);
}

TEST(larger_batches_than_it_makes_teach_nothing)
{
    struct measurement m;

    serve();
    ck_assert_int_eq(seconds_to_learn(9, &m), -1);
}

TEST(a_neighbour_begins_another_window)
{
    struct measurement m;

    serve();
    ck_assert_int_eq(seconds_to_learn(8, &m), 61);
    submit(JOB_REPLICA);
    world.ledger.state.jobs[REPLICA + 1]->spec.gpu = world.ledger.state.jobs[REPLICA]->spec.gpu;
    happen_to(REPLICA + 1, EVENT_JOB_STARTED);
    ck_assert_int_eq(seconds_to_learn(8, &m), -1);    // which says nothing of how busy it is
}

TEST(a_restart_reckons_with_a_replica_that_waits)
{
    const struct service_view *v = services_views(&cycle, &cycle.arena);

    ck_assert(v && v->n_coming == 1 && v->coming > 0);
}

TEST(with_a_new_model_nothing_is_known_until_the_next_look)
{
    struct err e = { 0 };

    happen(EVENT_JOB_STARTED);
    happen(EVENT_REPLICA_READY);
    ck_assert_int_eq(services_tick(&cycle, &e), 0);
    ck_assert(seen_now().held > 0);
    cycle_use(&cycle, NULL);
    ck_assert(seen_now().held == 0);
    now.t_s += 60;
    ck_assert_int_eq(services_tick(&cycle, &e), 0);
    ck_assert(seen_now().held > 0);
}

static const struct {
    const char *name;
    int n_s;
    double late;    // of ten a second
    bool want;
} minutes[] = {
    { "late in every second", 15, 5, true },
    { "too few seconds to say", 5, 5, false },
    { "in time", 120, 0, false },
};

EACH(the_guard_speaks_however_often_replicas_do, minutes)
{
    happen(EVENT_JOB_STARTED);
    happen(EVENT_REPLICA_READY);
    for (int i = 0; i < minutes[_i].n_s; i++)
        hear(10, minutes[_i].late, false);
    ck_assert_msg((seen_now().guard_until_s > now.t_s) == minutes[_i].want, "%s", minutes[_i].name);
}

TEST(what_one_said_wrong_is_shown_for_a_minute)
{
    happen(EVENT_JOB_STARTED);
    hear(0, 0, true);
    ck_assert(seen_now().is_false && seen_now().n_requests == 0);
    hear(10, 0, false);    // another replica, say
    ck_assert(seen_now().is_false && seen_now().n_requests == 10);
    now.t_s += 60;
    hear(10, 0, false);
    ck_assert(!seen_now().is_false);
}

static const struct {
    const char *name;
    bool is_beside;    // another one, that is well
    bool is_ready;     // before it fails
    double lives_s;
    int want[3];    // failures in a row after each of three
} failures[] = {
    { "never ready", false, false, 1, { 1, 2, 3 } },
    { "never ready, beside one that is well", true, false, 1, { 1, 2, 3 } },
    { "ready, and at its end with the first request", false, true, 1, { 1, 2, 3 } },
    { "after an hour of service each", false, true, 3600, { 1, 1, 1 } },
};

EACH(who_fails_is_started_ever_later, failures)
{
    struct err e = { 0 };
    struct service_now n;

    happen(EVENT_JOB_STARTED);
    happen(failures[_i].is_beside ? EVENT_REPLICA_READY : EVENT_JOB_CANCELLED);
    for (int i = 0; i < 3; i++) {
        int job = world.ledger.state.n_jobs;
        submit(JOB_REPLICA);
        happen_to(job, EVENT_JOB_STARTED);
        if (failures[_i].is_ready)
            happen_to(job, EVENT_REPLICA_READY);
        ck_assert_int_eq(services_tick(&cycle, &e), 0);
        now.t_s += failures[_i].lives_s;
        happen_to(job, EVENT_JOB_FAILED);
        ck_assert_int_eq(services_tick(&cycle, &e), 0);
        n = seen_now();
        ck_assert_msg(n.n_failures == failures[_i].want[i], "%s: %d", failures[_i].name,
                      n.n_failures);
        ck_assert_double_eq(n.retry_s, now.t_s + exp2(n.n_failures - 1));
        now.t_s = n.retry_s;
        ck_assert_int_eq(services_tick(&cycle, &e), 0);
    }
}
