/* The fold over events: which arrows exist, and that nothing else changes anything. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/rng.h"
#include "unit/support.h"
#include "unit/suite.h"

static const char small[] = "type v100\n"
                            "workload w\n"
                            "node n1 v100 v100 v100 v100\n"
                            "node n2 v100 v100\n";

/* ---- the arrows ---- */

static const char *const road_to[] = {
    [JOB_WAITING] = "",
    [JOB_HELD] = "hold a",
    [JOB_RUNNING] = "start a 0",
    [JOB_FINISHED] = "start a 0\nfinish a",
    [JOB_FAILED] = "start a 0\nfail a",
    [JOB_CANCELLED] = "cancel a",
};

/* job.h's picture, by event and state; -1: no such arrow. */
static const int arrows[EVENT_KINDS][6] = {
    [EVENT_JOB_STARTED] = { JOB_RUNNING, -1, JOB_RUNNING, -1, -1, -1 },
    [EVENT_JOB_PROGRESSED] = { -1, -1, JOB_RUNNING, -1, -1, -1 },
    [EVENT_JOB_STOPPED] = { -1, -1, JOB_WAITING, -1, -1, -1 },
    [EVENT_JOB_FINISHED] = { -1, -1, JOB_FINISHED, -1, -1, -1 },
    [EVENT_JOB_FAILED] = { -1, -1, JOB_FAILED, -1, -1, -1 },
    [EVENT_JOB_CANCELLED] = { JOB_CANCELLED, JOB_CANCELLED, JOB_CANCELLED, -1, -1, -1 },
    [EVENT_JOB_HELD] = { JOB_HELD, -1, -1, -1, -1, -1 },
    [EVENT_JOB_RELEASED] = { -1, JOB_WAITING, -1, -1, -1, -1 },
    [EVENT_SERVICE_SCALED] = { -1, -1, -1, -1, -1, -1 },    // those are not for it
    [EVENT_REPLICA_READY] = { -1, -1, -1, -1, -1, -1 },
    [EVENT_REPLICA_DRAINING] = { -1, -1, -1, -1, -1, -1 },
};

/* Two worlds in the same state: one gets the event, the other stays for comparison. */
static void try_arrow(enum event_kind kind, enum job_state from)
{
    static const int gpus[] = { 1 };
    struct event ev = { .kind = kind, .time_s = 50, .gpus = gpus, .n_gpus = 1, .steps_done = 7 };
    struct world w, other;
    struct err e = { 0 };

    world_init(&w, small);
    world_init(&other, small);
    for (int i = 0; i < 2; i++) {
        world_add(i ? &other : &w, "job b w\njob a w\njob c w\nstart b 5\nat 10\n");
        world_add(i ? &other : &w, road_to[from]);
    }
    ev.job = world_job(&w, "a");
    struct job *a = w.ledger.state.jobs[ev.job];
    ck_assert_int_eq(a->state, from);
    uint64_t version = w.ledger.state.version;
    int want = arrows[kind][from];
    ck_assert_int_eq(state_expects(&w.ledger.state, kind, ev.job), want >= 0);
    int rc = state_apply(&w.ledger.state, &ev, &e);
    ck_assert_msg(rc == (want < 0 ? -EINVAL : 0), "%s from %s gives %d (%s)", event_kind_name(kind),
                  job_state_name(from), rc, e.text);
    state_assert(&w.ledger.state);
    if (want < 0) {
        const char *what = state_differs(&w.ledger.state, &other.ledger.state);
        ck_assert_msg(!what, "refused %s from %s changed %s", event_kind_name(kind),
                      job_state_name(from), what);
        ck_assert_uint_eq(w.ledger.state.version, version);
        ck_assert_ptr_nonnull(strstr(e.text, job_state_name(from)));
    } else {
        ck_assert_int_eq((int)a->state, want);
        ck_assert_double_eq(a->steps_done, 7);
        ck_assert_uint_eq(w.ledger.state.version, version + (kind != EVENT_JOB_PROGRESSED));
        bool is_change = want != (int)from || kind == EVENT_JOB_STARTED;
        ck_assert_double_eq(a->changed_s, is_change ? 50 : 10);
        ck_assert_int_eq(a->n_held, want == JOB_RUNNING ? 1 : 0);
    }
    world_release(&w);
    world_release(&other);
}

TEST(the_arrows_of_the_picture_and_no_others)
{
    for (int kind = EVENT_JOB_STARTED; kind < EVENT_KINDS; kind++)
        for (int from = JOB_WAITING; from <= JOB_CANCELLED; from++)
            try_arrow((enum event_kind)kind, (enum job_state)from);
}

/* ---- services and their replicas ---- */

static const struct service_terms promised = { .latency_s = 0.2, .max_batch = 8 };

static int submit(struct world *w, struct job_spec spec, struct err *e)
{
    const struct event ev = { .kind = EVENT_JOB_SUBMITTED, .time_s = 1, .spec = &spec };

    return state_apply(&w->ledger.state, &ev, e);
}

static struct job_spec service_spec(const char *name)
{
    struct job_spec spec = spec_of(name, 0);

    spec.kind = JOB_SERVICE;
    spec.rate = 40;
    spec.max_gpus = 4;
    spec.terms = &promised;
    return spec;
}

static struct job_spec replica_spec(const char *name, int service, int gpu)
{
    struct job_spec spec = service_spec(name);

    spec.kind = JOB_REPLICA;
    spec.max_gpus = 1;
    spec.service = service;
    spec.gpu = gpu;
    return spec;
}

TEST(a_service_waits_in_no_queue_and_its_replicas_live_by_events)
{
    struct world w;
    struct err e = { 0 };
    struct state *s = &w.ledger.state;
    const int gpu = 2;
    struct event ev = { .time_s = 5, .job = 1, .gpus = &gpu, .n_gpus = 1 };

    world_init(&w, small);
    ck_assert_msg(submit(&w, service_spec("web"), &e) == 0, "%s", e.text);
    ck_assert_msg(submit(&w, replica_spec("web.0", 0, 2), &e) == 0, "%s", e.text);
    ck_assert_int_eq(s->n_waiting, 0);
    ck_assert_int_eq(s->n_services, 1);
    ev.kind = EVENT_REPLICA_READY;
    ck_assert_int_eq(state_apply(s, &ev, &e), -EINVAL);    // it does not run yet
    ev.kind = EVENT_JOB_STARTED;
    ck_assert_int_eq(state_apply(s, &ev, &e), 0);
    ck_assert(!job_serves_now(s->jobs[1]));
    ev.kind = EVENT_REPLICA_READY;
    ck_assert_int_eq(state_apply(s, &ev, &e), 0);
    ck_assert(job_serves_now(s->jobs[1]));
    ck_assert_int_eq(s->jobs[1]->n_held, 1);
    ev.kind = EVENT_REPLICA_DRAINING;
    ck_assert_int_eq(state_apply(s, &ev, &e), 0);
    ck_assert(!job_serves_now(s->jobs[1]));
    ev.kind = EVENT_JOB_STARTED;
    ev.job = 0;
    ck_assert_int_eq(state_apply(s, &ev, &e), -EINVAL);
    ck_assert_ptr_nonnull(strstr(e.text, "a service, which runs nowhere"));
    ev = (struct event){ .kind = EVENT_SERVICE_SCALED, .time_s = 6, .rate = 80 };
    ck_assert_int_eq(state_apply(s, &ev, &e), 0);
    ck_assert_double_eq(s->jobs[0]->spec.rate, 80);
    ck_assert_int_eq(s->jobs[0]->spec.max_gpus, 4);
    state_assert(s);
    world_release(&w);
}

TEST(replicas_are_of_a_service_that_lives)
{
    struct world w;
    struct err e = { 0 };
    const struct event end = { .kind = EVENT_JOB_CANCELLED, .time_s = 2, .job = 0 };

    world_init(&w, small);
    ck_assert_int_eq(submit(&w, replica_spec("web.0", 0, 2), &e), -EINVAL);
    ck_assert_int_eq(submit(&w, service_spec("web"), &e), 0);
    ck_assert_int_eq(submit(&w, replica_spec("web.0", 0, 99), &e), -EINVAL);
    ck_assert_ptr_nonnull(strstr(e.text, "no GPU 99"));
    ck_assert_int_eq(state_apply(&w.ledger.state, &end, &e), 0);
    ck_assert_int_eq(submit(&w, replica_spec("web.0", 0, 2), &e), -EINVAL);
    ck_assert_ptr_nonnull(strstr(e.text, "there is no service 0"));
    world_release(&w);
}

/* ---- what else is refused ---- */

static const int too_many[] = { 0, 1, 2 }, twice[] = { 1, 1 }, none[] = { 0, 99 },
                 below[] = { -1, 0 };

static const struct {
    const char *name;
    struct event ev;
    const char *want;
} refused[] = {
    { "a node again", { .kind = EVENT_NODE_ADDED, .node = "n1" }, "there already" },
    { "a node without a name", { .kind = EVENT_NODE_ADDED, .node = "" }, "names of nodes" },
    { "a node that is not UTF-8", { .kind = EVENT_NODE_ADDED, .node = "\xff" }, "names of nodes" },
    { "a change of no node", { .kind = EVENT_NODE_CHANGED, .node = "n9" }, "no node n9" },
    { "an event of no job", { .kind = EVENT_JOB_HELD, .job = 9 }, "no job 9" },
    { "an event of job -1", { .kind = EVENT_JOB_HELD, .job = -1 }, "no job -1" },
    { "a gang too small", { .kind = EVENT_JOB_STARTED, .gpus = too_many, .n_gpus = 1 }, "2 to 2" },
    { "a gang too large", { .kind = EVENT_JOB_STARTED, .gpus = too_many, .n_gpus = 3 }, "2 to 2" },
    { "a start on nothing", { .kind = EVENT_JOB_STARTED }, "2 to 2" },
    { "a GPU twice", { .kind = EVENT_JOB_STARTED, .gpus = twice, .n_gpus = 2 }, "twice" },
    { "a GPU that is not there",
      { .kind = EVENT_JOB_STARTED, .gpus = none, .n_gpus = 2 },
      "no GPU 99" },
    { "a GPU below zero", { .kind = EVENT_JOB_STARTED, .gpus = below, .n_gpus = 2 }, "no GPU -1" },
};

EACH(what_does_not_fit_is_refused_and_nothing_changes, refused)
{
    struct world w, other;
    struct err e = { 0 };

    world_init(&w, small);
    world_init(&other, small);
    world_add(&w, "job a w gpus=2");
    world_add(&other, "job a w gpus=2");
    ck_assert_int_eq(state_apply(&w.ledger.state, &refused[_i].ev, &e), -EINVAL);
    ck_assert_msg(strstr(e.text, refused[_i].want) != NULL, "%s: %s", refused[_i].name, e.text);
    const char *what = state_differs(&w.ledger.state, &other.ledger.state);
    ck_assert_msg(!what, "%s changed %s", refused[_i].name, what);
    state_assert(&w.ledger.state);
    world_release(&w);
    world_release(&other);
}

TEST(a_name_is_taken_while_its_job_lives_and_free_afterwards)
{
    struct world w;
    struct job_spec s = spec_of("a", 0);
    struct event again = { .kind = EVENT_JOB_SUBMITTED, .spec = &s };
    struct err e = { 0 };

    world_init(&w, small);
    world_add(&w, "job a w\nhold a");
    ck_assert_int_eq(state_apply(&w.ledger.state, &again, &e), -EINVAL);
    ck_assert_ptr_nonnull(strstr(e.text, "choose another name"));
    world_add(&w, "cancel a");
    ck_assert_int_eq(state_apply(&w.ledger.state, &again, &e), 0);
    ck_assert_int_eq(state_find_job(&w.ledger.state, "a"), 1);
    s.name = NULL;
    ck_assert_int_eq(state_apply(&w.ledger.state, &again, &e), -EINVAL);
    world_release(&w);
}

TEST(a_gpu_is_full_some_time_but_a_resident_may_start_there_again)
{
    struct world w;
    static const int first[] = { 0 };
    struct event ev = { .kind = EVENT_JOB_STARTED, .gpus = first, .n_gpus = 1 };
    struct err e = { 0 };

    world_init(&w, small);
    for (int i = 0; i <= GPU_JOBS_MAX; i++) {
        char line[40];

        snprintf(line, sizeof line, "job %c w\n%s %c 0\n", 'a' + i,
                 i < GPU_JOBS_MAX ? "start" : "#", 'a' + i);
        world_add(&w, line);
    }
    ev.job = GPU_JOBS_MAX;
    ck_assert_int_eq(state_apply(&w.ledger.state, &ev, &e), -EINVAL);
    ck_assert_ptr_nonnull(strstr(e.text, "full"));
    ev.job = world_job(&w, "d");
    ck_assert_int_eq(state_apply(&w.ledger.state, &ev, &e), 0);
    state_assert(&w.ledger.state);
    world_release(&w);
}

/* ---- moves, times, limits ---- */

TEST(another_limit_where_it_runs_is_no_move)
{
    struct world w;
    static const int same[] = { 1, 0 };

    world_init(&w, small);
    world_add(&w, "job a w gpus=2\nat 5\nstart a 0,1\n");
    const struct job *a = w.ledger.state.jobs[0];
    world_apply(
        &w,
        &(struct event){
            .kind = EVENT_JOB_STARTED, .time_s = 20, .gpus = same, .n_gpus = 2, .limit_w = 150 });
    ck_assert_int_eq(a->limit_w, 150);
    ck_assert_int_eq(a->n_moves, 0);
    ck_assert_double_eq(a->changed_s, 5);
    state_assert(&w.ledger.state);
    world_release(&w);
}

TEST(a_move_keeps_the_first_start_and_counts)
{
    struct world w;
    static const int two[] = { 1, 4 };

    world_init(&w, small);
    world_add(&w, "job a w gpus=2\nat 5\nstart a 0,1\n");
    const struct job *a = w.ledger.state.jobs[0];
    world_apply(&w, &(struct event){ .kind = EVENT_JOB_STARTED,
                                     .time_s = 20,
                                     .gpus = two,
                                     .n_gpus = 2,
                                     .limit_w = 150,
                                     .steps_done = 40 });
    ck_assert_double_eq(a->started_s, 5);
    ck_assert_double_eq(a->changed_s, 20);
    ck_assert_int_eq(a->n_moves, 1);
    ck_assert_int_eq(a->limit_w, 150);
    ck_assert_int_eq(w.ledger.state.gpus[0].n_jobs, 0);
    ck_assert_int_eq(w.ledger.state.gpus[1].n_jobs, 1);
    ck_assert_int_eq(w.ledger.state.gpus[4].n_jobs, 1);
    ck_assert_int_eq(w.ledger.state.n_running, 1);
    state_assert(&w.ledger.state);
    world_add(&w, "at 30\nstop a\n");
    ck_assert_int_eq(a->limit_w, 0);    // the limit was the placement's
    ck_assert_double_eq(a->started_s, 5);
    ck_assert_double_eq(a->steps_done, 40);
    world_apply(&w, &(struct event){
                        .kind = EVENT_JOB_STARTED, .gpus = two, .n_gpus = 2, .steps_done = 10 });
    ck_assert_double_eq(a->steps_done, 40);    // steps are never undone
    world_release(&w);
}

/* ---- the queue ---- */

static const struct {
    const char *name, *given, *want;
} queues[] = {
    { "the older goes first", "job a w\njob b w\njob c w", "a b c" },
    { "the higher priority goes first", "job a w\njob b w prio=2\njob c w prio=1", "b c a" },
    { "within a priority the older goes first", "job a w prio=1\njob b w\njob c w prio=1\njob d w",
      "a c b d" },
    { "a stopped job comes back to its old place",
      "job a w\njob b w\njob c w\nstart b 0\njob d w\nstop b", "a b c d" },
    { "a stopped first job is first again", "job a w\njob b w\nstart a 0\nstop a", "a b" },
    { "a stopped last job is last again", "job a w\njob b w\nstart b 0\nstop b", "a b" },
    { "a job held and released comes back to its old place",
      "job a w\njob b w\njob c w\nhold b\nrelease b", "a b c" },
    { "a held job is not in the queue", "job a w\njob b w\nhold a", "b" },
    { "a cancelled one leaves it", "job a w\njob b w\njob c w\ncancel b", "a c" },
    { "a returning job of high priority passes all",
      "job a w prio=5\nstart a 0\njob b w prio=4\njob c w\nstop a", "a b c" },
    { "negative priorities wait behind everybody", "job a w prio=-1\njob b w\njob c w prio=-2",
      "b a c" },
    { "an empty queue is empty", "job a w\nstart a 0", "" },
};

static const struct {
    const char *name;
    enum event_kind kind;
    double start_s, steps[2];    // one second after the other; NaN: nothing
    double want;
} said[] = {
    { "the first count of a run is what it is", EVENT_JOB_PROGRESSED, 20, { 60, NAN }, 60 },
    { "later ones do not fall", EVENT_JOB_PROGRESSED, 20, { 60, 50 }, 60 },
    { "they rise", EVENT_JOB_PROGRESSED, 20, { 60, 70 }, 70 },
    { "a run may end with its first", EVENT_JOB_STOPPED, 20, { 60, NAN }, 60 },
    { "or be done", EVENT_JOB_FINISHED, 20, { 60, NAN }, 60 },
    { "without a new run they do not fall", EVENT_JOB_PROGRESSED, NAN, { 60, NAN }, 100 },
};

EACH(a_run_may_go_on_from_an_older_checkpoint, said)
{
    struct world w;
    struct event ev = { .kind = EVENT_JOB_PROGRESSED, .time_s = 10, .steps_done = 100 };
    const struct job *j;

    world_init(&w, "type v100\nworkload a\nnode n v100 v100\njob a a\nstart a 0\n");
    j = w.ledger.state.jobs[0];
    world_apply(&w, &ev);
    if (!isnan(said[_i].start_s)) {
        const int gpu = 1;
        world_apply(&w, &(struct event){ .kind = EVENT_JOB_STARTED,
                                         .time_s = said[_i].start_s,
                                         .gpus = &gpu,
                                         .n_gpus = 1,
                                         .steps_done = 100 });
        ck_assert_double_eq(j->steps_done, 100);
    }
    ev.kind = said[_i].kind;
    for (int i = 0; i < 2 && !isnan(said[_i].steps[i]); i++) {
        ev.time_s = 30 + i;
        ev.steps_done = said[_i].steps[i];
        world_apply(&w, &ev);
    }
    ck_assert_msg(j->steps_done == said[_i].want, "%s: %g", said[_i].name, j->steps_done);
    ck_assert_double_ge(j->pace, 0);
    world_release(&w);
}

EACH(the_queue_is_by_priority_then_age, queues)
{
    struct world w;
    char got[200] = "";
    int last = -1;

    world_init(&w, small);
    world_add(&w, queues[_i].given);
    const struct state *s = &w.ledger.state;
    for (int i = s->first_waiting; i >= 0; i = s->jobs[i]->next_waiting) {
        size_t at = strlen(got);
        snprintf(got + at, sizeof got - at, "%s%s", at ? " " : "", s->jobs[i]->spec.name);
        ck_assert_int_eq(s->jobs[i]->prev_waiting, last);
        last = i;
    }
    ck_assert_int_eq(s->last_waiting, last);
    ck_assert_msg(strcmp(got, queues[_i].want) == 0, "%s: %s", queues[_i].name, got);
    state_assert(s);
    world_release(&w);
}

TEST(nodes_go_up_and_down_without_touching_their_jobs)
{
    struct world w;

    world_init(&w, small);
    world_add(&w, "job a w\nstart a 4\ndrain n2");
    const struct state *s = &w.ledger.state;
    ck_assert_int_eq(s->nodes[1].state, NODE_DRAINED);
    world_add(&w, "down n2");
    ck_assert_int_eq(s->nodes[1].state, NODE_DOWN);
    ck_assert_int_eq(s->jobs[0]->state, JOB_RUNNING);
    world_add(&w, "up n2");
    ck_assert_int_eq(s->nodes[1].state, NODE_UP);
    ck_assert_int_eq(s->nodes[0].state, NODE_UP);
    ck_assert_int_eq(state_find_gpu(s, "n2", 1), 5);
    ck_assert_int_eq(state_find_gpu(s, "n2", 2), -1);
    ck_assert_int_eq(state_find_gpu(s, "n2", -1), -1);
    ck_assert_int_eq(state_find_gpu(s, "n3", 0), -1);
    world_release(&w);
}

/* ---- anything, in any order ---- */

static void random_event(struct rng *r, const struct state *s, struct event *ev,
                         struct job_spec *spec, char *name, int *gpus)
{
    *ev = (struct event){ .kind = (enum event_kind)rng_below(r, EVENT_SERVICE_SCALED),
                          .time_s = (double)s->version,
                          .job = (int)rng_below(r, (uint64_t)s->n_jobs + 2) - 1,
                          .n_gpus = (int)rng_below(r, 4),
                          .gpus = gpus,
                          .gpu_types = gpus,
                          .spec = spec,
                          .node = rng_below(r, 4) ? "n1" : "n2",
                          .steps_done = (double)rng_below(r, 1000),
                          .node_state = (enum node_state)rng_below(r, 3) };
    for (int i = 0; i < 4; i++)
        gpus[i] = ev->kind == EVENT_NODE_ADDED ? 0 : (int)rng_below(r, 8) - 1;
    snprintf(name, 16, "j%d", (int)rng_below(r, 40));
    *spec = spec_of(name, 0);
    spec->n_gpus = 1 + (int)rng_below(r, 2);
    spec->max_gpus = spec->n_gpus + (int)rng_below(r, 2);
    spec->priority = (int)rng_below(r, 3);
    if (rng_below(r, 4) > 0)    // mostly starts, so that many run at once
        ev->kind = EVENT_JOB_STARTED;
    if (rng_below(r, 3) > 0)    // news mostly of the living
        ev->job = s->n_running && rng_below(r, 2) ? s->running[rng_below(r, (uint64_t)s->n_running)]
                                                  : s->first_waiting;
}

TEST(thousands_of_random_events_leave_a_consistent_state)
{
    struct rng r;
    struct world w;
    int n_refused = 0, n_moves = 0, most_running = 0;

    rng_init(&r, 7, "state");
    world_init(&w, small);
    for (int i = 0; i < 6000; i++) {
        struct event ev;
        struct job_spec spec;
        char name[16];
        int gpus[4];
        struct err e = { 0 };
        random_event(&r, &w.ledger.state, &ev, &spec, name, gpus);
        uint64_t before = w.ledger.state.version;
        int rc = state_apply(&w.ledger.state, &ev, &e);
        ck_assert(rc == 0 || (rc == -EINVAL && e.text[0]));
        bool counts = rc == 0 && ev.kind != EVENT_JOB_PROGRESSED;
        ck_assert_uint_eq(w.ledger.state.version, before + counts);
        n_refused += rc < 0;
        if (w.ledger.state.n_running > most_running)
            most_running = w.ledger.state.n_running;
        state_assert(&w.ledger.state);
    }
    for (int i = 0; i < w.ledger.state.n_jobs; i++)
        n_moves += w.ledger.state.jobs[i]->n_moves;
    ck_assert_int_gt(n_refused, 500);
    ck_assert_int_gt(n_moves, 100);
    ck_assert_int_gt(most_running, 4);
    ck_assert_int_gt(w.ledger.state.n_ended, 100);
    world_release(&w);
}

TEST(a_key_is_used_once_and_finds_its_job)
{
    struct world w;
    struct job_spec s = spec_of("a", 0);
    struct event submit = { .kind = EVENT_JOB_SUBMITTED, .spec = &s };
    struct err e = { 0 };

    world_init(&w, small);
    ck_assert_int_eq(state_find_key(&w.ledger.state, "k"), -1);
    s.key = "k";
    ck_assert_int_eq(state_apply(&w.ledger.state, &submit, &e), 0);
    ck_assert_int_eq(state_find_key(&w.ledger.state, "k"), 0);
    world_add(&w, "cancel a");
    ck_assert_int_eq(state_apply(&w.ledger.state, &submit, &e), -EINVAL);    // even when it is over
    ck_assert_ptr_nonnull(strstr(e.text, "same key"));
    s.key = NULL;
    ck_assert_int_eq(state_apply(&w.ledger.state, &submit, &e), 0);
    ck_assert_int_eq(state_find_key(&w.ledger.state, "k"), 0);
    world_release(&w);
}

/* The same events in two worlds; in the second nothing is ever taken back. */
TIMES(what_is_undone_never_was, 6)
{
    struct rng r;
    struct world w, other;
    int n_undone = 0;

    rng_init(&r, (uint64_t)_i, "undo");
    world_init(&w, small);
    world_init(&other, small);
    for (int round = 0; round < 400; round++) {
        bool is_kept = rng_below(&r, 2);
        uint64_t before = w.ledger.state.version;

        state_mark(&w.ledger.state);
        for (int k = (int)rng_below(&r, 8); k >= 0; k--) {
            struct event ev;
            struct job_spec spec;
            char name[16], node[16], key[32];
            int gpus[4];
            random_event(&r, &w.ledger.state, &ev, &spec, name, gpus);
            snprintf(node, sizeof node, "m%d", (int)rng_below(&r, 20));
            snprintf(key, sizeof key, "k%d", (int)rng_below(&r, 200));
            spec.key = key;
            if (ev.kind == EVENT_NODE_ADDED)
                ev.node = node;
            int rc = state_apply(&w.ledger.state, &ev, NULL);
            ck_assert_int_eq(is_kept ? state_apply(&other.ledger.state, &ev, NULL) : rc, rc);
            n_undone += rc == 0 && !is_kept;
        }
        if (is_kept)
            state_keep(&w.ledger.state);
        else
            state_undo(&w.ledger.state);
        ck_assert(is_kept || w.ledger.state.version > before);
        state_assert(&w.ledger.state);
        const char *what = state_differs(&w.ledger.state, &other.ledger.state);
        ck_assert_msg(!what, "round %d changed %s", round, what);
        for (int k = 0; k < 200; k++) {
            char key[32];
            snprintf(key, sizeof key, "k%d", k);
            ck_assert_int_eq(state_find_key(&w.ledger.state, key),
                             state_find_key(&other.ledger.state, key));
        }
    }
    ck_assert_int_gt(n_undone, 100);
    world_release(&w);
    world_release(&other);
}
