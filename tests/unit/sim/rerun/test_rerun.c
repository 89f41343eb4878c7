/* A run is recorded and gone through again: the same plans and joules; and records that lie. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "act/act.h"
#include "base/err.h"
#include "base/text/file.h"
#include "catalog/cluster/ledger.h"
#include "catalog/cluster/snapshot.h"
#include "cycle/cycle.h"
#include "daemon/config/config.h"
#include "daemon/service/decide.h"
#include "daemon/service/record.h"
#include "monitor/energy.h"
#include "monitor/monitor.h"
#include "optimize/prices/kept.h"
#include "estimate/model/model.h"
#include "sim/ground.h"
#include "sim/rerun/rerun.h"
#include "sim/rerun/read.h"
#include "sim/world/world.h"
#include "store/store.h"
#include "unit/suite.h"

#define SETTINGS                                       \
    "set move_s 5\nset restart_s 1\nset report_s 20\n" \
    "set settle_s 30\nset noise 0.03\nset sleep_after_s 1e9\n"

/* The second is large enough for prices to be kept; the third shares by turns. */
static const char *const clusters[] = {
    "node a k80:2\nnode b v100:2\n" SETTINGS,
    "node a-[1-19] k80:8\nnode b-[1-19] v100:8\n" SETTINGS,
    "gputype v100 sharing=timeslice\nnode a k80:2\nnode b v100:2\n" SETTINGS,
};
#define GPUS_MAX 304

/* A daemon whose box is the simulated world. */
struct run {
    struct arena arena;
    char *dir;
    const char *record_path, *truth_path;
    struct cluster cluster;
    struct config config;
    struct ground ground;
    struct store *store;
    struct catalog catalog;
    struct ledger ledger;
    struct clock_manual clock;
    struct cycle cycle;
    struct world *world;
    struct sensor world_sensor;
    struct record *record;
    struct energy *energy;
    struct model *model;           // that came into use on the way
    struct kept_prices *priced;    // that were found beside, and are not in use yet
    int n_undone;
    int n_decided;
};

static struct err e;

static char *scratch_make(struct arena *a)
{
    const char *tmp = getenv("TMPDIR");
    char *dir = arena_printf(a, "%s/gogh-rerun-XXXXXX", tmp ? tmp : "/tmp");

    ck_assert_ptr_nonnull(mkdtemp(dir));
    return dir;
}

static struct job_spec spec_of(const char *name, int workload)
{
    return (struct job_spec){ .name = name,
                              .owner = "ann",
                              .workload = workload,
                              .steps = 100,
                              .deadline_s = NAN,
                              .n_gpus = 1,
                              .max_gpus = 1 };
}

#define OK(call) ck_assert_msg((call) >= 0, "%s", e.text)

/* ---- what is true ---- */

static void measure(struct catalog *c, int workload, int type, int neighbour, double speed,
                    double watts)
{
    struct measurement m = { .key = { workload, type, neighbour, 1, false, 0 },
                             .fits = true,
                             .throughput = speed,
                             .watts = watts,
                             .duration_s = NAN,
                             .noise = 1e-4 };

    OK(catalog_record(c, &m, 0, &e));
}

static void make_truth(struct run *r)
{
    static const double speed[3][2] = { { 4, 10 }, { 6, 8 }, { 3, 12 } };
    static const double watts[3][2] = { { 90, 160 }, { 100, 140 }, { 110, 200 } };
    static const char *const names[] = { "left", "right", "third" };
    struct store *s;
    struct catalog c;
    int index;

    OK(store_open(r->truth_path, STORE_CREATE, &s, &e));
    catalog_init(&c);
    OK(catalog_load(&c, s, &e));
    OK(catalog_begin(&c, &e));
    OK(catalog_add_type(&c, gpu_type_builtin("k80"), &index, &e));
    OK(catalog_add_type(&c, gpu_type_builtin("v100"), &index, &e));
    for (int w = 0; w < 3; w++) {
        struct workload described;

        workload_init(&described, names[w]);
        described.params = 1e6 * (w + 1);
        described.flop_per_sample = 1e10 * (w + 1);
        described.bytes_per_sample = 1e7;
        OK(catalog_add_workload(&c, &described, &index, &e));
    }
    for (int w = 0; w < 3; w++) {
        for (int t = 0; t < 2; t++) {
            measure(&c, w, t, -1, speed[w][t], watts[w][t]);
            for (int n = 0; n < 3; n++)
                measure(&c, w, t, n, speed[w][t] * (0.6 + 0.1 * ((w + 2 * n) % 4)), NAN);
        }
    }
    OK(catalog_end(&c, 0, &e));
    catalog_release(&c);
    store_close(s);
    OK(ground_open(&r->ground, r->truth_path, NULL, NULL, &e));
}

/* ---- the daemon ---- */

static int append(void *self, const struct event *ev, struct err *why)
{
    struct run *r = self;
    int rc = ledger_begin(&r->ledger, why);

    if (rc == 0)
        rc = ledger_add(&r->ledger, ev, why);
    if (rc == 0)
        record_event(r->record, ev);
    return rc;
}

static void on_finding(void *self, const struct finding *f, double abs_error, bool is_covered)
{
    struct run *r = self;

    (void)abs_error;
    (void)is_covered;
    if (f->has_measurement)
        record_measure(r->record, &f->measurement);
    if (f->has_profile)
        record_profile(r->record, f->measurement.key.workload, &f->profile, f->event.time_s);
}

/* The world's, and a driver that tells how busy a GPU is with a job alone. */
static int next_seen(void *self, struct observation *out)
{
    const struct run *r = self;
    int rc = r->world_sensor.next(r->world_sensor.self, out);

    if (rc > 0 && out->kind == OBS_WINDOW && out->n_neighbours == 0) {
        int workload = r->ledger.state.jobs[out->job]->spec.workload;
        out->n_uses = 3;
        out->use = (struct device_use){ 0.875 - 0.25 * workload, NAN, 4e9 };
    }
    return rc;
}

static void done_seen(void *self)
{
    const struct run *r = self;

    r->world_sensor.done(r->world_sensor.self);
}

static void make_world(struct run *r)
{
    const struct state *s = &r->ledger.state;
    static int types[GPUS_MAX], nodes[GPUS_MAX];
    static const struct gpu_type *figures[GPUS_MAX];

    for (int g = 0; g < s->n_gpus; g++) {
        figures[g] = &r->cluster.types[s->gpus[g].type];
        ck_assert_str_eq(figures[g]->name, r->catalog.types[s->gpus[g].type].name);
        types[g] = truth_find_type(&r->ground.truth, figures[g]->name);
        nodes[g] = s->gpus[g].node;
    }
    r->world = world_create(&(struct world_setup){ .truth = &r->ground.truth,
                                                   .settings = &r->cluster.settings,
                                                   .n_gpus = s->n_gpus,
                                                   .types = types,
                                                   .figures = figures,
                                                   .nodes = nodes,
                                                   .seed = 7,
                                                   .is_always_on = true });
}

static void open_cycle(struct run *r)
{
    struct cycle *c = &r->cycle;
    struct snapshot unused;

    OK(solver_by_name("gogh", 7, &c->solver, &e));
    c->clock = clock_manual(&r->clock);
    c->ledger = &r->ledger;
    c->catalog = &r->catalog;
    c->append = append;
    c->on_finding = on_finding;
    c->owner = r;
    c->options = solve_defaults;
    c->options.settle_s = r->cluster.settings.settle_s;
    c->options.move_s = 6;
    c->theta = r->cluster.settings.theta;
    cycle_init(c);
    OK(cycle_look(c, &c->arena, &unused, &e));
    arena_reset(&c->arena);
    OK(record_open(r->record_path, &r->config, c, false, &r->record, &e));
    c->executor = world_executor(r->world);
    record_orders(r->record, &c->executor);
    r->world_sensor = world_sensor(r->world);
    c->sensor = (struct sensor){ r, next_seen, done_seen };
}

static void run_open(struct run *r, const char *cluster_text)
{
    *r = (struct run){ 0 };
    arena_init(&r->arena);
    r->dir = scratch_make(&r->arena);
    r->record_path = arena_printf(&r->arena, "%s/record", r->dir);
    r->truth_path = arena_printf(&r->arena, "%s/truth.db", r->dir);
    OK(cluster_parse(&r->arena, "test", cluster_text, strlen(cluster_text), &r->cluster, &e));
    config_defaults(&r->config);
    r->config.seed = 7;
    r->config.model = "none";
    r->config.cluster = r->cluster;
    make_truth(r);
    OK(store_open(arena_printf(&r->arena, "%s/db", r->dir), STORE_CREATE, &r->store, &e));
    catalog_init(&r->catalog);
    OK(catalog_load(&r->catalog, r->store, &e));
    OK(ledger_open(&r->ledger, &r->catalog, r->store, &e));
    OK(cluster_install(&r->cluster, &r->catalog, &r->ledger, 0, &e));
    make_world(r);
    r->priced = kept_create();
    open_cycle(r);
    r->energy = energy_create(&r->ledger.state, &r->catalog);
}

static void commit(struct run *r)
{
    OK(ledger_commit(&r->ledger, &e));
    cycle_is_safe(&r->cycle);
    record_commit(r->record);
}

static void submit(struct run *r, const char *workload, double steps)
{
    int truth = truth_find_workload(&r->ground.truth, workload), index;
    struct job_spec spec;

    OK(ledger_begin(&r->ledger, &e));
    OK(catalog_add_workload(&r->catalog, &r->ground.catalog.workloads[truth], &index, &e));
    record_workload(r->record, &r->ground.catalog.workloads[truth]);
    spec = spec_of(arena_printf(&r->arena, "%s-%d", workload, r->ledger.state.n_jobs), index);
    spec.steps = steps;
    spec.submit_s = r->clock.t_s;
    OK(append(r,
              &(struct event){ .kind = EVENT_JOB_SUBMITTED, .time_s = r->clock.t_s, .spec = &spec },
              &e));
    world_submit(r->world, &(struct world_job_spec){ .workload = truth,
                                                     .steps = steps,
                                                     .reference_speed = 1,
                                                     .max_gpus = spec.max_gpus });
}

/* Prices of the third decision come into use after the fifth. */
static void price_beside(struct run *r, struct decision *d)
{
    record_plan(r->record, d, true, r->n_decided == 3);
    if (r->n_decided == 3)
        OK(cycle_price(&r->cycle, &d->arena, &d->snapshot, r->priced, &e));
    if (r->n_decided++ != 5)
        return;
    kept_destroy(r->cycle.kept);
    r->cycle.kept = r->priced;
    r->priced = NULL;
    record_prices(r->record);
}

static void decide(struct run *r)
{
    struct decision d = { .time_s = r->clock.t_s };
    struct act_report acted;
    struct err why = { 0 };

    arena_init(&d.arena);
    OK(cycle_look(&r->cycle, &d.arena, &d.snapshot, &e));
    record_look(r->record, &r->cycle.solver, &d.snapshot);
    OK(cycle_plan(&r->cycle, &d.arena, &r->cycle.solver, &d.snapshot, &d.asked, &d.plan,
                  &d.is_fallback, &why));
    price_beside(r, &d);
    cycle_act(&r->cycle, &d.snapshot, &d.plan, &acted);
    arena_reset(&r->cycle.arena);
    arena_release(&d.arena);
}

static void turn(struct run *r, double t_s)
{
    r->clock.t_s = t_s;
    world_advance(r->world, t_s);
    OK(cycle_listen(&r->cycle, INT_MAX, &e));
    commit(r);
    decide(r);
    OK(cycle_listen(&r->cycle, INT_MAX, &e));    // what was started
    commit(r);
}

/* A group that fails on its way to the disk, as of a submission. */
static void fail_once(struct run *r)
{
    struct job_spec spec = spec_of("lost", 0);

    OK(append(r,
              &(struct event){ .kind = EVENT_JOB_SUBMITTED, .time_s = r->clock.t_s, .spec = &spec },
              &e));
    ledger_undo(&r->ledger);
    cycle_is_undone(&r->cycle);
    record_undo(r->record);
}

static void learn(struct run *r)
{
    OK(model_pretrained(&r->model, &e));
    cycle_use(&r->cycle, r->model);
    r->cycle.n_models++;
}

/* Eleven jobs come; time goes on from one thing that happens to the next. */
static void run_all(struct run *r)
{
    static const char *const names[] = { "left", "right", "third" };
    int n = 0;

    for (double t_s = 0; n < 11 || world_counts(r->world).n_ended < 11;
         t_s = world_next_s(r->world)) {
        r->clock.t_s = t_s = fmin(t_s, r->clock.t_s + 25);
        if (n < 11 && t_s >= 12 * n) {
            submit(r, names[n % 3], 150 + 20 * n);
            commit(r);
            n++;
        }
        if (n == 4 && !r->n_undone++)
            fail_once(r);
        if (n == 6 && !r->model)
            learn(r);
        turn(r, t_s);
        ck_assert(r->clock.t_s < 5000);
    }
}

/* Joules as the world has them, as if they had been drawn evenly. */
static void account(struct run *r)
{
    for (int g = 0; g < r->ledger.state.n_gpus; g++) {
        energy_draw(r->energy, g, 0, world_gpu_now(r->world, g).energy_j / r->clock.t_s, 0);
        energy_draw(r->energy, g, r->clock.t_s, 0, 0);
    }
    record_energy(r->record, r->clock.t_s, r->energy);
}

static void run_stop(struct run *r)
{
    record_close(r->record);
    energy_destroy(r->energy);
    cycle_release(&r->cycle);
    model_destroy(r->model);
    kept_destroy(r->priced);
    world_destroy(r->world);
    ledger_close(&r->ledger);
    catalog_release(&r->catalog);
    store_close(r->store);
    ground_close(&r->ground);
}

static void run_close(struct run *r)
{
    ck_assert_int_eq(system(arena_printf(&r->arena, "rm -r %s", r->dir)), 0);
    arena_release(&r->arena);
}

/* ---- the record again ---- */

static void again(struct run *r, const char *truth, struct rerun_result *out)
{
    struct rerun_options o = { .record = r->record_path, .truth = truth };

    OK(rerun(&r->arena, &o, out, &e));
}

/* What becomes of the text of a record when something in it is another. */
static void change(struct run *r, const char *from, const char *to)
{
    const char *text;
    size_t len;

    OK(file_read(&r->arena, r->record_path, NULL, 1 << 24, &text, &len, &e));
    const char *at = strstr(text, from);
    ck_assert_msg(at != NULL, "no '%s' in the record", from);
    const char *now =
        arena_printf(&r->arena, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    OK(file_write(r->record_path, now, strlen(now), &e));
}

TIMES(the_same_plans_come_out_and_the_same_joules, 2)
{
    struct run r;
    struct rerun_result got;

    run_open(&r, clusters[_i]);
    run_all(&r);
    account(&r);
    run_stop(&r);
    again(&r, r.truth_path, &got);
    ck_assert_msg(got.differs == NULL, "%s", got.differs);
    ck_assert_int_gt(got.n_decisions, 20);
    ck_assert_int_eq(got.n_same, got.n_decisions);
    ck_assert_int_gt(got.n_measurements, 5);
    ck_assert_double_eq(got.watts_off, 0);
    ck_assert_int_eq(got.n_parts, 1);
    ck_assert_int_eq(got.n_finished, 11);
    ck_assert_int_eq(got.n_finished_sim, 11);
    ck_assert_double_eq_tol(got.jct_off, 0, 1e-9);
    ck_assert_double_eq_tol(got.difference, 0, 1e-9);
    ck_assert_int_eq(got.n_types, 2);
    ck_assert_int_eq(got.types[1].n_gpus, _i ? 152 : 2);
    ck_assert_double_eq_tol(got.types[0].sim_j + got.types[1].sim_j, got.sim_j, 1e-6);
    again(&r, NULL, &got);    // in a world of beliefs
    ck_assert_int_eq(got.n_same, got.n_decisions);
    ck_assert_double_gt(got.sim_j, 0);
    change(&r, "\"repriced\":true", "\"repriced\":false");
    ck_assert_int_eq(rerun(&r.arena, &(struct rerun_options){ .record = r.record_path }, &got, &e),
                     -EINVAL);
    ck_assert_ptr_nonnull(strstr(e.text, "nobody was finding any"));
    run_close(&r);
}

static int see_end(void *self, const struct rerun_site *is, struct err *why)
{
    const struct run *r = self;

    ck_assert_int_eq(is->state->n_jobs, r->ledger.state.n_jobs);
    ck_assert_int_eq(is->state->n_ended, r->ledger.state.n_ended);
    for (int i = 0; i < is->state->n_jobs; i++)
        ck_assert_double_eq(is->state->jobs[i]->steps_done, r->ledger.state.jobs[i]->steps_done);
    ck_assert_int_eq(is->catalog->n_cells, r->catalog.n_cells);
    ck_assert_double_eq(is->settings->move_s, 5);
    ck_assert_double_eq(is->settings->delay_w, r->cycle.options.delay_w);
    return err_set(why, EDOM, "seen");
}

TEST(the_end_of_a_record_is_as_it_was_and_nothing_is_planned)
{
    struct run r;

    run_open(&r, clusters[0]);
    run_all(&r);
    account(&r);
    record_close(r.record);
    r.record = NULL;
    ck_assert_int_eq(rerun_end(&r.arena, r.record_path, see_end, &r, &e), -EDOM);
    ck_assert_str_eq(e.text, "seen");
    run_stop(&r);
    run_close(&r);
}

/* What was seen of jobs alone counts in the next decision, there and here. */
TEST(profiles_are_decided_by_as_they_were_seen)
{
    struct run r;
    struct rerun_result got;

    run_open(&r, clusters[2]);
    run_all(&r);
    account(&r);
    int w = catalog_find_workload(&r.catalog, "left");
    ck_assert_double_eq(r.catalog.workloads[w].gpu_activity, 0.875);
    run_stop(&r);
    again(&r, r.truth_path, &got);
    ck_assert_int_eq(got.n_same, got.n_decisions);
    change(&r, "\"gpu_activity\":0.875", "\"gpu_activity\":0");
    again(&r, r.truth_path, &got);
    ck_assert(got.n_same < got.n_decisions || got.watts_off > 0);
    change(&r, "\"gpu_activity\":0,", "\"gpu_activity\":1.5,");
    ck_assert_int_eq(rerun(&r.arena, &(struct rerun_options){ .record = r.record_path }, &got, &e),
                     -EINVAL);
    ck_assert_ptr_nonnull(strstr(e.text, "'gpu_activity' is missing or wrong"));
    run_close(&r);
}

TEST(a_plan_that_was_another_is_found_and_followed)
{
    struct run r;
    struct rerun_result got;

    run_open(&r, clusters[0]);
    submit(&r, "left", 100);
    commit(&r);
    turn(&r, 1);
    submit(&r, "right", 100);
    commit(&r);
    turn(&r, 2);
    account(&r);
    run_stop(&r);
    again(&r, r.truth_path, &got);
    ck_assert_int_eq(got.n_same, 2);
    change(&r, "\"run\":[[0,0,", "\"run\":[[0,90,");
    again(&r, r.truth_path, &got);
    ck_assert_int_eq(got.n_decisions, 2);
    ck_assert_int_eq(got.n_same, 1);
    ck_assert_ptr_nonnull(strstr(got.differs, "job 0 was on GPU"));
    ck_assert_ptr_nonnull(strstr(got.differs, "at 90 W, now on GPU"));
    run_close(&r);
}

TEST(a_second_start_of_the_daemon_is_a_second_part)
{
    struct run r;
    struct rerun_result got;

    run_open(&r, clusters[0]);
    submit(&r, "left", 1000);
    commit(&r);
    turn(&r, 1);
    turn(&r, 50);
    account(&r);
    record_close(r.record);
    r.clock.t_s = 60;
    cycle_release(&r.cycle);
    r.cycle = (struct cycle){ 0 };
    ledger_close(&r.ledger);    // a restart is reading the store
    catalog_release(&r.catalog);
    catalog_init(&r.catalog);
    OK(catalog_load(&r.catalog, r.store, &e));
    OK(ledger_open(&r.ledger, &r.catalog, r.store, &e));
    open_cycle(&r);
    turn(&r, 70);
    submit(&r, "right", 100);
    commit(&r);
    turn(&r, 80);
    record_cut(r.record, "no answer within 10 s");
    run_stop(&r);
    again(&r, r.truth_path, &got);
    ck_assert_msg(got.differs == NULL, "%s", got.differs);
    ck_assert_int_eq(got.n_parts, 2);
    ck_assert_int_eq(got.n_decisions, 4);
    ck_assert_int_eq(got.n_same, 4);
    ck_assert_int_eq(got.n_cut, 1);
    ck_assert_double_eq_tol(got.difference, 0, 1e-9);    // of the first part: the second has none
    ck_assert_double_eq_tol(got.seconds, 50, 1e-9);
    run_close(&r);
}

/* ---- reading ---- */

#define BEGIN                                                                           \
    "{\"what\":\"begin\",\"time_s\":1,\"version\":2,\"store\":\"r.db\",\"model\":null," \
    "\"sleeps\":false,\"settings\":\"set theta 2\\n\"}\n"
#define LOOK \
    "{\"what\":\"look\",\"time_s\":2,\"policy\":\"gogh\",\"seed\":7,\"busy\":[1],\"wake\":[[2,30]],\"under_way\":[3]}\n"
#define PLAN                                                                                       \
    "{\"what\":\"plan\",\"time_s\":3,\"look_s\":2,\"watts\":60,\"fallback\":false,\"acted\":true," \
    "\"run\":[[4,0,1,2]],\"wait\":[[5,\"memory\"]]}\n"

static const struct {
    const char *name, *text, *wrong;
} texts[] = {
    { "a look and its plan", BEGIN LOOK PLAN, NULL },
    { "a last line that was cut off is left out", BEGIN LOOK "{\"what\":\"pl", NULL },
    { "an empty file", "", "test: nothing was recorded" },
    { "no beginning", LOOK, "test:1: a record starts with 'begin'" },
    { "not JSON", BEGIN "look\n", "test:2: " },
    { "something else", BEGIN "{\"what\":\"dance\",\"time_s\":2}\n", "test:2: what is 'dance'?" },
    { "no time", BEGIN "{\"what\":\"cut\"}\n", "test:2: cut: 'time_s' is missing or wrong" },
    { "a later version",
      "{\"what\":\"begin\",\"time_s\":1,\"version\":3,"
      "\"store\":\"r.db\",\"sleeps\":false,\"settings\":\"set theta 2\\n\"}\n",
      "test:1: begin: 'version' is 3, and this gogh reads 2: use the gogh that came with" },
    { "an earlier one", "{\"what\":\"begin\",\"time_s\":1,\"version\":1}\n",
      "test:1: begin: 'version' is 1, and this gogh reads 2: use the gogh that came with the goghd "
      "that wrote it, or move the record away, and goghd begins a new one at its next start" },
    { "a store elsewhere",
      "{\"what\":\"begin\",\"time_s\":1,\"version\":2,"
      "\"store\":\"../r.db\",\"sleeps\":false,\"settings\":\"set theta 2\\n\"}\n",
      "test:1: begin: 'store'" },
    { "settings that are none",
      "{\"what\":\"begin\",\"time_s\":1,\"version\":2,"
      "\"store\":\"r.db\",\"sleeps\":false,\"settings\":\"set x\"}\n",
      "test:1: begin: 'settings'" },
    { "a plan that nobody looked for", BEGIN PLAN, "test:2: plan: nobody looked" },
    { "a plan without GPUs",
      BEGIN LOOK "{\"what\":\"plan\",\"time_s\":3,\"look_s\":2,\"watts\":60,\"fallback\":false,"
                 "\"acted\":true,\"run\":[[4,0]],\"wait\":[]}\n",
      "test:3: plan: 'run'" },
    { "a reason that is none",
      BEGIN LOOK "{\"what\":\"plan\",\"time_s\":3,\"look_s\":2,\"watts\":60,\"fallback\":false,"
                 "\"acted\":true,\"run\":[],\"wait\":[[4,\"mood\"]]}\n",
      "test:3: plan: 'wait'" },
    { "a GPU below nothing",
      BEGIN "{\"what\":\"start\",\"time_s\":3,\"job\":1,\"gpus\":[-1],"
            "\"limit_w\":0}\n",
      "test:2: start: 'gpus'" },
    { "joules that are words", BEGIN "{\"what\":\"energy\",\"time_s\":3,\"joules\":[\"many\"]}\n",
      "test:2: energy: 'joules'" },
};

EACH(a_record_is_read_or_what_is_wrong_is_said, texts)
{
    struct arena a;
    struct rerun_entries got;

    arena_init(&a);
    int rc = rerun_read(&a, "test", texts[_i].text, strlen(texts[_i].text), &got, &e);
    if (texts[_i].wrong) {
        ck_assert_msg(rc < 0, "%s: was taken", texts[_i].name);
        ck_assert_msg(strncmp(e.text, texts[_i].wrong, strlen(texts[_i].wrong)) == 0, "%s: %s",
                      texts[_i].name, e.text);
    } else {
        ck_assert_msg(rc == 0, "%s: %s", texts[_i].name, e.text);
        ck_assert_int_eq(got.at[1].look->busy[0], 1);
        ck_assert_int_eq(got.at[1].look->under_way[0], 3);
        ck_assert_int_eq(got.at[1].look->asleep[0], 2);
        ck_assert_double_eq(got.at[1].look->wake_s[0], 30);
        ck_assert_int_eq(got.at[1].look->has_plan, got.n == 3);
    }
    arena_release(&a);
}

TEST(what_is_missing_is_named)
{
    struct run r;
    struct rerun_result got;
    struct rerun_options o;

    run_open(&r, clusters[0]);
    submit(&r, "left", 10);
    commit(&r);
    run_stop(&r);
    o = (struct rerun_options){ .record = arena_printf(&r.arena, "%s/none", r.dir) };
    ck_assert_int_lt(rerun(&r.arena, &o, &got, &e), 0);
    ck_assert_ptr_nonnull(strstr(e.text, "none"));
    o.record = r.record_path;
    remove(arena_printf(&r.arena, "%s/record.db", r.dir));
    ck_assert_int_lt(rerun(&r.arena, &o, &got, &e), 0);
    ck_assert_ptr_nonnull(strstr(e.text, "record.db"));
    run_close(&r);
}
