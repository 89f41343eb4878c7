/* A whole walk with doors of our own: a job from submission to finished, and what happens
 * when a solver is of no use.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "act/act.h"
#include "base/err.h"
#include "base/log.h"
#include "catalog/cluster/engine.h"
#include "catalog/cluster/snapshot.h"
#include "cycle/cycle.h"
#include "cycle/services.h"
#include "cycle/table.h"
#include "optimize/model/plan.h"
#include "optimize/model/problem.h"
#include "estimate/model/model.h"
#include "monitor/sensor.h"
#include "refine/trainer.h"
#include "serve/capacity.h"
#include "store/store.h"
#include "unit/refine/small_catalog.h"
#include "unit/support.h"
#include "unit/suite.h"

/* A world behind the doors: whatever is ordered happens at once and is seen at the next poll. */
static struct stage {
    struct observation queue[32];
    int gpus[32][4];
    int n, next;
    bool refuses;
    int n_starts;    // that start_but_on_0 was asked for
    struct clock_manual clock;
} stage;

static struct world world;    // where nothing is yet when a test begins
static struct cycle cycle;    // of that world, by the doors of that stage

static struct observation *see(enum observation_kind kind, int job)
{
    ck_assert_int_lt(stage.n, 32);
    stage.queue[stage.n] =
        (struct observation){ .kind = kind, .time_s = stage.clock.t_s, .job = job, .watts = NAN };
    return &stage.queue[stage.n++];
}

static int stage_start(void *self, const struct placement *p, struct err *e)
{
    (void)self;
    if (stage.refuses)
        return err_set(e, EBUSY, "not today");
    struct observation *o = see(OBS_STARTED, p->job);
    memcpy(stage.gpus[stage.n - 1], p->gpus, (size_t)p->n_gpus * sizeof *p->gpus);
    o->gpus = stage.gpus[stage.n - 1];
    o->n_gpus = p->n_gpus;
    return 0;
}

static int stage_stop(void *self, int job, struct err *e)
{
    (void)self, (void)e;
    see(OBS_STOPPED, job);
    return 0;
}

static int stage_next(void *self, struct observation *out)
{
    (void)self;
    if (stage.next == stage.n)
        return stage.n = stage.next = 0;
    *out = stage.queue[stage.next];
    return 1;
}

static void stage_done(void *self)
{
    (void)self;
    stage.next++;
}

static void open_cycle(struct cycle *c, struct ledger *ledger, struct catalog *catalog)
{
    *c = (struct cycle){
        .clock = clock_manual(&stage.clock),
        .solver = solver_greedy,
        .executor = { .start = stage_start, .stop = stage_stop, .move = stage_start },
        .sensor = { .next = stage_next, .done = stage_done },
        .ledger = ledger,
        .catalog = catalog,
        .options = solve_defaults,
        .theta = 2,
    };
    cycle_init(c);
}

static void set_up(void)
{
    log_set_level(LOG_ERROR);
    stage = (struct stage){ 0 };
    world_init(&world, "");
    open_cycle(&cycle, &world.ledger, &world.catalog);
}

static void tear_down(void)
{
    cycle_release(&cycle);
    world_release(&world);
}

FIXTURE(set_up, tear_down)

static void run(int want)
{
    struct err e = { 0 };
    int rc = cycle_run(&cycle, &e);

    ck_assert_msg(rc == want, "%d observations: %s", rc, e.text);
}

#define SMALL "type v100\ntype k80\nworkload w\nnode n v100 k80\n"

static double stage_wake_s(void *self, int gpu)
{
    (void)self;
    return gpu == 1 ? 45 : 0;
}

TEST(what_sleeps_is_asked_at_the_door)
{
    struct snapshot seen;
    struct err e = { 0 };

    world_add(&world, SMALL);
    for (int asks = 0; asks < 2; asks++) {
        cycle.executor.gpu_wake_s = asks ? stage_wake_s : NULL;
        ck_assert_int_eq(cycle_look(&cycle, &world.arena, &seen, &e), 0);
        ck_assert_double_eq(seen.gpus[0].wake_s, 0);
        ck_assert_double_eq(seen.gpus[1].wake_s, asks ? 45 : 0);
    }
}

/* ---- what tries may cost ---- */

/* A plan that hoped for 'hope_w' of 100 W was in force for so long, with a fiftieth for tries. */
static const struct {
    const char *name;
    double spent_j, all_j, hope_w, lasted_s;
    bool may_probe;
} budgets[] = {
    { "nothing was hoped for", 0, 0, 0, 1000, true },
    { "a fiftieth was", 0, 0, 1.9, 1000, true },
    { "more was", 0, 0, 2.1, 1000, false },
    { "what was saved before pays for it", 0, 1e5, 4, 1000, false },
    { "and more of it", 0, 2e5, 4, 1000, true },
    { "an overdraft is forgotten within days", 1e5, 1e5, 0, 4 * 86400.0, true },
    { "a clock that is set back changes nothing", 50, 1000, 9, -86400, false },
};

EACH(tries_end_where_their_part_of_all_energy_is_spent, budgets)
{
    stage.clock.t_s = 1e6;
    cycle.probe = (struct probe_budget){ .share = 0.02,
                                         .spent_j = budgets[_i].spent_j,
                                         .all_j = budgets[_i].all_j,
                                         .hope_w = budgets[_i].hope_w,
                                         .watts = 100,
                                         .since_s = 1e6 - budgets[_i].lasted_s };
    world_add(&world, SMALL "job a w steps=1000\n");
    run(1);
    const struct probe_budget *b = &cycle.probe;
    double fades = exp(-fmax(budgets[_i].lasted_s, 0) / 86400);
    double spent_j =
        budgets[_i].spent_j * fades + budgets[_i].hope_w * fmax(budgets[_i].lasted_s, 0);
    ck_assert_double_eq_tol(b->spent_j, spent_j, 1e-6 * (1 + spent_j));
    ck_assert_msg(cycle.options.may_probe == budgets[_i].may_probe, "%s: %g of %g J",
                  budgets[_i].name, b->spent_j, b->all_j);
    ck_assert(b->since_s == 1e6 && b->watts > 0);
}

/* ---- what the executor cannot do ---- */

#define TWO_NODES "type v100\nworkload w\nnode n0 v100\nnode n1 v100\n"

/* Of node 0 nobody may use anything; job 0 may not go to node 1, job 1 takes a CPU. */
static bool stage_rules(void *self, struct arena *a, const int *jobs, int n_jobs,
                        struct engine_rules *out)
{
    static const struct engine_node nodes[] = { { 0, LONG_MAX }, { LONG_MAX, LONG_MAX } };
    static const unsigned char barred[] = { ENGINE_CAN, ENGINE_FEATURE };
    struct engine_job *of = ARENA_ARRAY(a, struct engine_job, (size_t)n_jobs);

    (void)self;
    for (int i = 0; i < n_jobs; i++)
        of[i] = jobs[i] == 0 ? (struct engine_job){ .barred = barred }
                             : (struct engine_job){ .cpus = 1 };
    *out = (struct engine_rules){ .nodes = nodes, .jobs = of };
    return true;
}

TEST(what_the_executor_cannot_do_is_not_planned)
{
    world_add(&world, TWO_NODES "job a w exclusive=1\njob b w exclusive=1\njob c w exclusive=1\n");
    cycle.executor.rules = stage_rules;
    run(2);
    ck_assert_int_eq(world.ledger.state.jobs[0]->gpus[0], 0);
    ck_assert_int_eq(world.ledger.state.jobs[1]->gpus[0], 1);
    ck_assert_int_eq(cycle_why(&cycle, 2), WAIT_CAPACITY);
}

/* It waits, parked, for a type that it fits on: until somebody has seen it run. */
TEST(what_fits_after_all_is_tried_again)
{
    struct measurement m = { .key = { .neighbour = -1, .n_gpus = 1 },
                             .throughput = NAN,
                             .watts = NAN };

    world_add(&world, "type v100\nworkload w\nnode n v100\n");
    ck_assert_int_eq(catalog_record(&world.catalog, &m, 0, NULL), 0);
    world_add(&world, "job a w\n");
    run(0);
    run(0);
    ck_assert_int_eq(world.ledger.state.jobs[0]->state, JOB_WAITING);
    m.fits = true;
    m.throughput = 1;
    ck_assert_int_eq(catalog_record(&world.catalog, &m, 0, NULL), 0);
    run(1);
    ck_assert_int_eq(world.ledger.state.jobs[0]->state, JOB_RUNNING);
}

/* Nothing starts on GPU 0, and no rule says so. */
static int start_but_on_0(void *self, const struct placement *p, struct err *e)
{
    stage.n_starts++;
    if (p->gpus[0] == 0)
        return err_set(e, ENODEV, "not there");
    return stage_start(self, p, e);
}

TEST(what_was_refused_for_good_is_not_tried_again)
{
    world_add(&world, TWO_NODES "job a w exclusive=1\n");
    cycle.executor.start = start_but_on_0;
    run(0);
    run(1);
    ck_assert_int_eq(stage.n_starts, 2);
    ck_assert_int_eq(world.ledger.state.jobs[0]->gpus[0], 1);
    world_add(&world, "job b w exclusive=1\n");
    for (int i = 0; i < 5; i++)
        run(0);
    ck_assert_int_eq(stage.n_starts, 3);
    ck_assert_int_eq(cycle_why(&cycle, 1), WAIT_CAPACITY);    // the other node would do
    world_add(&world, "node n2 v100\n");
    run(0);
    ck_assert_int_eq(stage.n_starts, 4);    // nodes have changed: it is tried once more
    run(1);
}

TEST(a_job_walks_from_submission_to_finished)
{
    struct err e = { 0 };

    world_add(&world, SMALL);
    run(0);
    world_add(&world, "job a w steps=1000\n");
    stage.refuses = true;
    run(0);
    const struct job *a = world.ledger.state.jobs[0];
    ck_assert_int_eq(a->state, JOB_WAITING);    // refused: it waits for the next cycle
    stage.refuses = false;
    stage.clock.t_s = 5;
    run(1);
    ck_assert_int_eq(a->state, JOB_RUNNING);
    ck_assert_double_eq(a->started_s, 5);
    run(0);    // nothing to change
    stage.clock.t_s = 105;
    struct observation *o = see(OBS_WINDOW, 0);
    o->gpus = a->gpus;
    o->n_gpus = 1;
    o->from_s = 5;
    o->steps = o->steps_done = 300;
    o->watts = 150;
    ck_assert_int_eq(cycle_listen(&cycle, INT_MAX, &e), 1);
    ck_assert_double_eq(a->steps_done, 300);
    ck_assert_int_eq(world.catalog.n_measurements, 1);
    run(0);    // the next cycle's estimates have learned from it
    int type = world.ledger.state.gpus[a->gpus[0]].type;
    ck_assert_double_eq_tol((double)estimate_cell(&cycle.estimator, 0, type, -1).speed, 3, 0.1);
    o = see(OBS_FINISHED, 0);
    o->steps_done = 1000;
    run(1);
    ck_assert_int_eq(a->state, JOB_FINISHED);
    ck_assert_double_eq(a->steps_done, 1000);
    ck_assert_int_eq(cycle.n_decisions, 6);
    ck_assert_int_eq(cycle.n_fallbacks, 0);
    ck_assert_int_eq((int)cycle.decision_s.n, 6);
    state_assert(&world.ledger.state);
}

/* ---- services ---- */

/* Its first replica, which serves since now. */
static int serve(const struct service_terms *terms)
{
    static const struct served ready = { .is_ready = true, .n_requests = NAN, .n_late = NAN };
    const struct job_spec spec = { .name = "web",
                                   .owner = "ann",
                                   .kind = JOB_SERVICE,
                                   .rate = 1,
                                   .deadline_s = NAN,
                                   .n_gpus = 1,
                                   .max_gpus = 1,
                                   .terms = terms };

    world_add(&world, SMALL);
    world_apply(&world, &(struct event){ .kind = EVENT_JOB_SUBMITTED, .spec = &spec });
    run(1);
    see(OBS_SERVED, 1)->served = &ready;
    run(1);
    ck_assert(job_serves_now(world.ledger.state.jobs[1]));
    return 1;
}

/* In ten minutes, in which it tells of 'n' requests now and then. */
static struct service_now after_ten_minutes(int replica, double n, double late)
{
    struct measurement m;
    struct served s = { .is_ready = true, .n_requests = n, .n_late = late, .n_queued = NAN };
    struct service_now now;
    struct err e = { 0 };

    for (int i = 0; i < 61; i++) {
        s.from_s = stage.clock.t_s;
        s.to_s = stage.clock.t_s += 10;
        services_hear(&cycle, replica, &s, &m);
        ck_assert_int_eq(services_tick(&cycle, &e), 0);
    }
    ck_assert(services_now(&cycle, 0, &now));
    return now;
}

TEST(a_service_that_only_counts_has_a_table_by_its_metrics)
{
    static const struct service_terms terms = { .latency_s = 50, .max_batch = 8 };
    const int replica = serve(&terms);
    struct service_now now = after_ten_minutes(replica, NAN, NAN);

    ck_assert_int_eq(now.source, CAPACITY_CAREFUL);
    after_ten_minutes(replica, 5, 0);
    now = after_ten_minutes(replica, 5, 0);
    ck_assert_int_eq(now.source, CAPACITY_METRICS);
    ck_assert_double_eq(now.margin, 1.25);
    ck_assert_double_le(now.held, 1.4 * 0.5 * (1 + 1e-9));
    ck_assert_double_gt(now.held, 0.5);

    struct table_build *elsewhere = services_table_begin(&cycle, 0);
    table_build_run(elsewhere);
    ck_assert_int_eq(elsewhere->result.source, CAPACITY_METRICS);
    services_table_end(&cycle, elsewhere);
}

TEST(lengths_that_replicas_tell_are_there_for_the_next_table)
{
    struct measurement m;
    static const struct service_terms terms = { .latency_s = 50, .max_batch = 8 };
    const int replica = serve(&terms);
    struct served s = { .is_ready = true,
                        .from_s = 2900,
                        .to_s = 3500,
                        .bin_s = 600,
                        .n_bins = 1,
                        .counts = (const unsigned[]){ 3 },
                        .n_requests = 3,
                        .n_late = 0,
                        .has_lengths = true };
    struct arrivals *a = arrivals_create(arrivals_bin_s(50));
    struct err e = { 0 };

    for (int i = 0; i < 3; i++) {
        lengths_add(s.lengths.prompt, 900);
        lengths_add(s.lengths.output, 70);
    }
    services_hear(&cycle, replica, &s, &m);
    s.has_lengths = false;
    services_hear(&cycle, replica, &s, &m);
    stage.clock.t_s = 3700;
    ck_assert_int_eq(services_tick(&cycle, &e), 0);
    struct table_build *b = services_table_begin(&cycle, 0);
    ck_assert_int_eq(b->n_hours, 1);
    ck_assert_int_eq(arrivals_load(a, b->hours[0].data, b->hours[0].len, &e), 0);
    const struct arrivals_hour hour = arrivals_hour(a, 0);
    ck_assert_uint_eq(hour.n, 6);
    ck_assert_mem_eq(&hour.lengths, &s.lengths, sizeof s.lengths);
    table_build_destroy(b);
    arrivals_destroy(a);
}

/* ---- solvers of no use ---- */

static int solve_fails(const struct solver *self, struct arena *a, const struct problem *p,
                       struct plan *out, struct err *e)
{
    (void)self, (void)a, (void)p, (void)out;
    return err_set(e, ETIMEDOUT, "out of time");
}

/* Puts everybody on a GPU that is not there. */
static int solve_lies(const struct solver *self, struct arena *a, const struct problem *p,
                      struct plan *out, struct err *e)
{
    static const int nowhere[] = { 77 };

    (void)self, (void)e;
    *out = (struct plan){ .n_jobs = p->n_jobs, .n_gpus = p->n_gpus };
    out->jobs = ARENA_ARRAY(a, struct plan_job, (size_t)p->n_jobs);
    out->limit = ARENA_ARRAY(a, unsigned char, (size_t)p->n_gpus);
    for (int j = 0; j < p->n_jobs; j++)
        out->jobs[j] = (struct plan_job){ .n_gpus = 1, .gpus = nowhere };
    return 0;
}

static const struct solver useless[] = {
    { .name = "failing", .solve = solve_fails },
    { .name = "lying", .solve = solve_lies },
};

TIMES(the_greedy_plan_stands_in_for_a_solver_of_no_use, 2)
{
    world_add(&world, SMALL "job a w\njob b w\n");
    cycle.solver = useless[_i];
    run(2);
    ck_assert_int_eq(world.ledger.state.n_running, 2);
    ck_assert_int_eq(cycle.n_fallbacks, 1);
    run(0);
    ck_assert_int_eq(cycle.n_fallbacks, 2);
    ck_assert_int_eq(cycle.n_decisions, 2);
}

TEST(news_of_a_job_that_was_cancelled_meanwhile_does_not_end_the_run)
{
    struct err e = { 0 };

    world_add(&world, SMALL "job a w\njob b w\n");
    run(2);
    world_add(&world, "cancel a\n");
    see(OBS_STOPPED, world_job(&world, "a"));
    see(OBS_FINISHED, world_job(&world, "a"));
    see(OBS_FINISHED, world_job(&world, "b"));
    ck_assert_msg(cycle_listen(&cycle, INT_MAX, &e) == 3, "%s", e.text);
    ck_assert_int_eq(world.ledger.state.jobs[0]->state, JOB_CANCELLED);
    ck_assert_int_eq(world.ledger.state.jobs[1]->state, JOB_FINISHED);
}

/* ---- plans made elsewhere, and groups that are undone ---- */

TEST(a_plan_leaves_alone_who_changed_since_it_was_begun)
{
    struct snapshot seen;
    struct lowered asked;
    struct plan plan;
    struct act_report acted;
    bool is_fallback;
    struct err e = { 0 };

    world_add(&world, "type v100\ntype k80\nworkload w\nnode n v100\nnode m k80\n");
    world_add(&world, "job a w exclusive=1\njob b w exclusive=1\njob c w\n");
    ck_assert_int_eq(cycle_look(&cycle, &cycle.arena, &seen, &e), 0);
    ck_assert_int_eq(
        cycle_plan(&cycle, &cycle.arena, &cycle.solver, &seen, &asked, &plan, &is_fallback, &e), 0);
    ck_assert_int_eq(plan.n_placed, 2);
    world_add(&world, "cancel a\n");
    world_add(&world,
              world.ledger.state.gpus[plan.jobs[1].gpus[0]].node == 0 ? "down n\n" : "down m\n");
    cycle_act(&cycle, &seen, &plan, &acted);
    ck_assert_int_eq(acted.n_started, 0);
    ck_assert_int_eq(acted.n_refused, 0);
    ck_assert_int_eq(stage.n, 0);
    ck_assert_int_eq(cycle_why(&cycle, 2), plan.jobs[2].reason);
}

/* 'a' moves to the second GPU, and 'b' gets the first. */
static int solve_shifts(const struct solver *self, struct arena *a, const struct problem *p,
                        struct plan *out, struct err *e)
{
    static const int first[] = { 0 }, second[] = { 1 };

    (void)self, (void)e;
    *out = (struct plan){ .n_jobs = p->n_jobs, .n_gpus = p->n_gpus };
    out->jobs = ARENA_ARRAY(a, struct plan_job, (size_t)p->n_jobs);
    out->limit = ARENA_ARRAY(a, unsigned char, (size_t)p->n_gpus);
    out->jobs[0] = (struct plan_job){ .n_gpus = 1, .gpus = second };
    out->jobs[1] = (struct plan_job){ .n_gpus = 1, .gpus = first };
    plan_price(a, p, out);
    return 0;
}

static const struct {
    const char *name, *meanwhile;
    int n_moved, n_started;
} shifts[] = {
    { "nothing happens, and both go", "", 1, 1 },
    { "the GPU to move to goes away: one stays, and the other does not come", "down m\n", 0, 0 },
    { "who should move has ended: the other may come", "finish a\n", 0, 1 },
    { "who should come is cancelled: the move is made", "cancel b\n", 1, 0 },
};

EACH(who_stays_keeps_others_away, shifts)
{
    static const struct solver shifting = { .name = "shifting", .solve = solve_shifts };
    struct snapshot seen;
    struct lowered asked;
    struct plan plan;
    struct act_report acted;
    bool is_fallback;
    struct err e = { 0 };

    world_add(&world, "type v100\nworkload w\nnode n v100\nnode m v100\n"
                      "job a w exclusive=1\njob b w exclusive=1\nstart a 0\n");
    stage.clock.t_s = 1000;
    ck_assert_int_eq(cycle_look(&cycle, &cycle.arena, &seen, &e), 0);
    ck_assert_int_eq(
        cycle_plan(&cycle, &cycle.arena, &shifting, &seen, &asked, &plan, &is_fallback, &e), 0);
    ck_assert_msg(!is_fallback, "%s", e.text);
    world_add(&world, shifts[_i].meanwhile);
    cycle_act(&cycle, &seen, &plan, &acted);
    ck_assert_msg(acted.n_moved == shifts[_i].n_moved && acted.n_started == shifts[_i].n_started,
                  "%s: %d moved, %d started", shifts[_i].name, acted.n_moved, acted.n_started);
}

struct group {
    struct ledger *ledger;
    int n;
    bool refuses;
};

static int group_append(void *self, const struct event *ev, struct err *e)
{
    struct group *g = self;

    if (g->refuses)
        return err_set(e, ENOSPC, "the disk is full");
    g->n++;
    return ledger_append(g->ledger, ev, 1, e);
}

/* What the journal lost is told again, once; the sensor is not asked for it a second time. */
TEST(starts_and_ends_that_were_undone_are_taken_in_again)
{
    struct err e = { 0 };

    world_add(&world, SMALL "job a w\njob b w\n");
    struct group g = { .ledger = &world.ledger };
    cycle.append = group_append;
    cycle.owner = &g;
    g.refuses = true;
    ck_assert_int_eq(cycle_run(&cycle, &e),
                     -ENOSPC);    // the orders went out, their starts are unheard
    g.refuses = false;
    ck_assert_int_eq(cycle_listen(&cycle, 1, &e), 1);
    ck_assert_int_eq(cycle_listen(&cycle, INT_MAX, &e), 1);
    ck_assert_int_eq(world.ledger.state.n_running, 2);

    /* The commit fails: as if the two starts had never been. */
    world_add(&world, "stop a\nstop b\n");
    cycle_is_undone(&cycle);
    ck_assert_int_eq(cycle_listen(&cycle, INT_MAX, &e), 2);
    ck_assert_int_eq(world.ledger.state.n_running, 2);
    ck_assert_int_eq(g.n, 4);
    cycle_is_safe(&cycle);
    ck_assert_int_eq(cycle_listen(&cycle, INT_MAX, &e), 0);
    ck_assert_int_eq(g.n, 4);
    state_assert(&world.ledger.state);
}

TEST(a_newcomer_s_neighbours_are_estimated_before_it_is_placed)
{
    world_add(&world, SMALL "job a w\n");
    run(1);
    struct observation *o = see(OBS_WINDOW, 0);
    o->gpus = world.ledger.state.jobs[0]->gpus;
    o->n_gpus = 1;
    o->from_s = -100;
    o->steps = 1e5;
    run(1);
    for (int i = 0; i < 40; i++) {
        char line[64];
        snprintf(line, sizeof line, "workload x%d\njob b%d x%d\n", i, i, i);
        world_add(&world, line);
    }
    struct err e = { 0 };
    ck_assert_msg(cycle_run(&cycle, &e) >= 1, "%s", e.text);
    ck_assert_int_eq(cycle.estimator.n_workloads, 41);
    int type = world.ledger.state.gpus[world.ledger.state.jobs[0]->gpus[0]].type;
    double alone = (double)estimate_cell(&cycle.estimator, 0, type, -1).speed;
    ck_assert_double_eq_tol(alone, 1000, 50);
    ck_assert_double_gt((double)estimate_cell(&cycle.estimator, 0, type, 40).speed, alone / 3);
}

TEST(with_a_store_a_restart_finds_events_and_measurements)
{
    struct cycle c;
    struct store *store;
    struct catalog catalog;
    struct ledger ledger, again;
    struct err e = { 0 };
    struct workload work;
    struct job_spec spec = spec_of("a", 0);
    static const int types[] = { 0 };
    struct event begin[] = {
        { .kind = EVENT_NODE_ADDED, .node = "n", .gpu_types = types, .n_gpus = 1 },
        { .kind = EVENT_JOB_SUBMITTED, .spec = &spec },
    };
    int index;

    ck_assert_int_eq(store_open(":memory:", STORE_CREATE, &store, &e), 0);
    catalog_init(&catalog);
    ck_assert_int_eq(catalog_load(&catalog, store, &e), 0);
    workload_init(&work, "w");
    ck_assert_int_eq(store_begin(store, &e), 0);
    ck_assert_int_eq(catalog_add_type(&catalog, gpu_type_builtin("v100"), &index, &e), 0);
    ck_assert_int_eq(catalog_add_workload(&catalog, &work, &index, &e), 0);
    ck_assert_int_eq(store_commit(store, &e), 0);
    ck_assert_int_eq(ledger_open(&ledger, &catalog, store, &e), 0);
    ck_assert_int_eq(ledger_append(&ledger, begin, 2, &e), 0);
    open_cycle(&c, &ledger, &catalog);
    ck_assert_int_eq(cycle_run(&c, &e), 1);
    struct observation *o = see(OBS_WINDOW, 0);
    o->gpus = ledger.state.jobs[0]->gpus;
    o->n_gpus = 1;
    o->from_s = -100;
    o->steps = o->steps_done = 50;
    ck_assert_int_eq(cycle_run(&c, &e), 1);
    ck_assert_int_eq(count_rows(store, "measurements"), 1);
    ck_assert_int_eq(ledger_open(&again, &catalog, store, &e), 0);
    const char *what = state_differs(&ledger.state, &again.state);
    ck_assert_msg(!what, "a restart changes %s", what);
    ledger_close(&again);
    cycle_release(&c);
    ledger_close(&ledger);
    catalog_release(&catalog);
    store_close(store);
}

/* The cycle learns from a catalog that nobody runs jobs on. */
static void learn(double settle_s)
{
    static const struct trainer_options quick = {
        .seed = 1, .growth = 0.25, .n_cells_min = 8, .n_families_min = 3
    };

    small_names(&world.catalog);
    cycle_learn(&cycle, &quick, settle_s);
}

TEST(a_new_model_is_waited_for_when_its_time_has_come)
{
    learn(600);
    run(0);
    ck_assert(!trainer_is_busy(cycle.trainer));    // nothing to learn from yet
    small_measurements(&world.catalog, 3, 1);
    stage.clock.t_s = 100;
    run(0);
    ck_assert(trainer_is_busy(cycle.trainer));
    stage.clock.t_s = 699;
    run(0);
    ck_assert(trainer_is_busy(cycle.trainer) && cycle.model == NULL);    // however fast it was
    stage.clock.t_s = 700;
    run(0);
    ck_assert(cycle.model != NULL && cycle.model == cycle.trained);
    ck_assert_int_eq(cycle.model->n_measurements, world.catalog.n_measurements);
    ck_assert_int_eq(cycle.n_models, 1);
    ck_assert_mem_eq(cycle.estimator.beliefs->hyper, cycle.model->hyper, sizeof cycle.model->hyper);
}

TEST(winners_and_losers_are_kept_and_a_loser_changes_nothing)
{
    struct store *store;
    struct model *m = NULL;

    learn(0);
    ck_assert_int_eq(store_open(":memory:", STORE_CREATE, &store, NULL), 0);
    small_measurements(&world.catalog, 3, 1);
    world.catalog.store = store;
    run(0);
    run(0);    // waits: its time has come at once
    ck_assert_int_eq(model_fetch(store, MODEL_CHAMPION, &m, NULL), 0);
    ck_assert(m->comparison.is_won);
    model_destroy(m);
    const struct model *champion = cycle.model;
    world.catalog.store = NULL;
    small_measurements(&world.catalog, 4, 2);
    world.catalog.store = store;
    run(0);
    run(0);
    bool has_won = cycle.model != champion;
    ck_assert_int_eq(count_rows(store, "models"), 2);
    ck_assert_int_eq(model_fetch(store, MODEL_CHALLENGER, &m, NULL), has_won ? -ENOENT : 0);
    ck_assert_int_eq(cycle.n_models, has_won ? 2 : 1);
    model_destroy(m);
    world.catalog.store = NULL;
    store_close(store);
}

/* As on a full disk: the store refuses every model. */
static struct store *open_full_store(const char *path)
{
    struct store *store;
    sqlite3 *db;

    ck_assert_int_eq(store_open(path, STORE_CREATE, &store, NULL), 0);
    store_close(store);
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db,
                                  "CREATE TRIGGER full BEFORE INSERT ON models "
                                  "BEGIN SELECT RAISE(ABORT, 'the disk is full'); END",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    ck_assert_int_eq(store_open(path, STORE_WRITE, &store, NULL), 0);
    return store;
}

TEST(a_model_that_cannot_be_kept_is_used_all_the_same)
{
    char dir[] = "/tmp/gogh-cycle-XXXXXX", path[64];
    struct model *m = NULL;

    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/full.db", dir);
    struct store *store = open_full_store(path);
    learn(0);
    small_measurements(&world.catalog, 3, 1);
    world.catalog.store = store;
    run(0);
    run(0);
    ck_assert(cycle.model != NULL && cycle.model == cycle.trained);
    ck_assert_int_eq(model_fetch(store, MODEL_CHAMPION, &m, NULL), -ENOENT);
    world.catalog.store = NULL;
    store_close(store);
    unlink(path);
    rmdir(dir);
}

TEST(a_run_that_ends_in_the_middle_of_a_training_ends_cleanly)
{
    learn(NAN);
    small_measurements(&world.catalog, 3, 1);
    run(0);
    ck_assert(trainer_is_busy(cycle.trainer));
}
