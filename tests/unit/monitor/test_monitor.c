/* What an observation means: an event, a measurement, both, or neither. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/monitor.h"
#include "monitor/sensor.h"
#include "unit/support.h"
#include "unit/suite.h"

/* Jobs: 0 trains on GPU 0 beside 1, which serves 10/s; 2 is a gang on GPUs 1 and 2; 3 waits;
 * 4 was cancelled; 5 is held.
 */
static const char busy[] = "type v100\ntype k80\nworkload w\nworkload x\n"
                           "node n1 v100 k80\nnode n2 k80\nnode n3 k80\nnode n4 k80\n"
                           "down n3\ndrain n4\n"
                           "job a w\njob b x rate=10\njob c w gpus=2\njob d x\njob e w\njob f w\n"
                           "start a 0\nstart b 0\nstart c 1,2\ncancel e\nhold f\n";

static const int gpu0[] = { 0 }, gpu12[] = { 1, 2 };

static const struct {
    const char *name;
    struct observation seen;
    int want_event;    // -1: none
} events[] = {
    { "a start", { .kind = OBS_STARTED, .job = 3, .gpus = gpu0, .n_gpus = 1 }, EVENT_JOB_STARTED },
    { "a move", { .kind = OBS_STARTED, .job = 0, .gpus = gpu0, .n_gpus = 1 }, EVENT_JOB_STARTED },
    { "a stop", { .kind = OBS_STOPPED, .job = 0 }, EVENT_JOB_STOPPED },
    { "a finish", { .kind = OBS_FINISHED, .job = 0 }, EVENT_JOB_FINISHED },
    { "a failure", { .kind = OBS_FAILED, .job = 0, .reason = "bad luck" }, EVENT_JOB_FAILED },
    { "a node up again", { .kind = OBS_NODE_UP, .node = 2 }, EVENT_NODE_CHANGED },
    { "a node that was up is no news", { .kind = OBS_NODE_UP, .node = 0 }, -1 },
    { "a drained node stays drained", { .kind = OBS_NODE_UP, .node = 3 }, -1 },
    { "a drain that its sensor told ends with it",
      { .kind = OBS_NODE_UP, .node = 3, .ends_drain = true },
      EVENT_NODE_CHANGED },
    { "a node drained", { .kind = OBS_NODE_DRAINED, .node = 0 }, EVENT_NODE_CHANGED },
    { "a node that was drained is no news", { .kind = OBS_NODE_DRAINED, .node = 3 }, -1 },
    { "a node that was down is no news", { .kind = OBS_NODE_DOWN, .node = 2 }, -1 },
    { "a node down", { .kind = OBS_NODE_DOWN, .node = 0 }, EVENT_NODE_CHANGED },
    { "a stop of a cancelled job is no news", { .kind = OBS_STOPPED, .job = 4 }, -1 },
    { "a finish of a cancelled job is no news", { .kind = OBS_FINISHED, .job = 4 }, -1 },
    { "a failure of a waiting job is no news", { .kind = OBS_FAILED, .job = 3 }, -1 },
    { "a start of a cancelled job is no news",
      { .kind = OBS_STARTED, .job = 4, .gpus = gpu0, .n_gpus = 1 },
      -1 },
};

EACH(observations_become_events, events)
{
    struct world w;
    struct finding f;
    struct observation seen = events[_i].seen;

    world_init(&w, busy);
    seen.time_s = 77;
    seen.steps_done = 5;
    monitor_read(&seen, &w.ledger.state, &f);
    ck_assert_msg(f.has_event == (events[_i].want_event >= 0), "%s", events[_i].name);
    ck_assert(!f.has_measurement);
    if (f.has_event) {
        ck_assert_int_eq((int)f.event.kind, events[_i].want_event);
        ck_assert_double_eq(f.event.time_s, 77);
        ck_assert_int_eq(f.event.job, seen.job);
        ck_assert_double_eq(f.event.steps_done, 5);
        ck_assert_pstr_eq(f.event.reason, seen.reason);
        world_apply(&w, &f.event);    // and the state takes it
        state_assert(&w.ledger.state);
    }
    if (seen.kind == OBS_NODE_DOWN)
        ck_assert_int_eq(w.ledger.state.nodes[seen.node].state, NODE_DOWN);
    world_release(&w);
}

#define WINDOW .kind = OBS_WINDOW, .from_s = 100, .time_s = 200, .watts = 180, .limit_w = 0
#define ON_0 .gpus = gpu0, .n_gpus = 1

static const struct {
    const char *name;
    struct observation seen;
    double want_speed;    // 0: no measurement
    int want_neighbour;
    double want_watts;    // 0: not measured
} windows[] = {
    { "alone: speed and watts", { WINDOW, .job = 0, ON_0, .steps = 400 }, 4, -1, 180 },
    { "its parts agree so well",
      { WINDOW, .job = 0, ON_0, .steps = 400, .noise = 0.02 },
      4,
      -1,
      180 },
    { "nobody knows how well", { WINDOW, .job = 0, ON_0, .steps = 400, .noise = NAN }, 4, -1, 180 },
    { "beside a server: speed, and watts that its load gives",
      { WINDOW, .job = 0, ON_0, .steps = 400, .n_neighbours = 1, .neighbours = { 1 } },
      4,
      1,
      0 },
    { "beside one that trains: speed, and what both draw",
      { WINDOW, .job = 0, ON_0, .steps = 400, .n_neighbours = 1, .neighbours = { 3 } },
      4,
      1,
      180 },
    { "three on a GPU are no cell",
      { WINDOW, .job = 0, ON_0, .steps = 400, .n_neighbours = 2, .neighbours = { 1, 3 } },
      0,
      0,
      0 },
    { "too short a window",
      { .kind = OBS_WINDOW, .from_s = 100, .time_s = 109.9, .job = 0, ON_0, .steps = 400 },
      0,
      0,
      0 },
    { "just long enough",
      { .kind = OBS_WINDOW, .from_s = 100, .time_s = 110, .watts = 1, .job = 0, ON_0, .steps = 5 },
      0.5,
      -1,
      1 },
    { "a window of no length",
      { .kind = OBS_WINDOW, .from_s = 100, .time_s = 100, .job = 0, ON_0, .steps = 0 },
      0,
      0,
      0 },
    { "no steps done", { WINDOW, .job = 0, ON_0, .steps = 0 }, 0, 0, 0 },
    { "inference that serves all it is asked shows its load",
      { WINDOW, .job = 1, ON_0, .steps = 1000 },
      0,
      0,
      0 },
    { "inference just short of its rate still does",
      { WINDOW, .job = 1, ON_0, .steps = 985 },
      0,
      0,
      0 },
    { "inference that cannot keep up shows its speed",
      { WINDOW, .job = 1, ON_0, .steps = 700 },
      7,
      -1,
      180 },
    { "no GPUs told", { WINDOW, .job = 0, .steps = 400 }, 0, 0, 0 },
    { "watts not seen",
      { .kind = OBS_WINDOW,
        .from_s = 0,
        .time_s = 100,
        .watts = NAN,
        .job = 0,
        ON_0,
        .steps = 100 },
      1,
      -1,
      0 },
    { "a job cancelled meanwhile still measured something",
      { WINDOW, .job = 4, ON_0, .steps = 400 },
      4,
      -1,
      180 },
};

EACH(steady_windows_become_measurements, windows)
{
    struct world w;
    struct finding f;

    world_init(&w, busy);
    monitor_read(&windows[_i].seen, &w.ledger.state, &f);
    const struct measurement *m = &f.measurement;
    ck_assert_msg(f.has_measurement == (windows[_i].want_speed > 0), "%s", windows[_i].name);
    ck_assert_int_eq(f.has_event, windows[_i].seen.job != 4);
    ck_assert_int_eq(f.event.kind, EVENT_JOB_PROGRESSED);
    if (f.has_measurement) {
        ck_assert_double_eq(m->throughput, windows[_i].want_speed);
        ck_assert_int_eq(m->key.neighbour, windows[_i].want_neighbour);
        ck_assert_int_eq(m->key.n_gpus, 1);
        ck_assert_int_eq(m->key.gpu_type, world_type(&w, "v100"));
        ck_assert(m->fits);
        if (windows[_i].seen.noise > 0)
            ck_assert_double_eq(m->noise, windows[_i].seen.noise);
        else
            ck_assert(isnan(m->noise));    // not known: the catalog assumes its own
        ck_assert_double_eq(m->duration_s, windows[_i].seen.time_s - windows[_i].seen.from_s);
        ck_assert_double_eq(isnan(m->watts) ? 0 : m->watts, windows[_i].want_watts);
        ck_assert_int_eq(catalog_record(&w.catalog, m, 0, NULL), 0);
    }
    world_release(&w);
}

TEST(a_replica_shows_its_part_of_a_load)
{
    struct world w;
    struct finding f;
    struct observation seen = { WINDOW, .job = 1, ON_0, .steps = 700 };

    world_init(&w, busy);
    w.ledger.state.jobs[1]->spec.kind = JOB_REPLICA;
    monitor_read(&seen, &w.ledger.state, &f);
    ck_assert(f.has_event && !f.has_measurement);
    world_release(&w);
}

TEST(a_gang_is_a_cell_of_its_own)
{
    struct world w;
    struct finding f;
    struct observation seen = { WINDOW, .job = 2, .gpus = gpu12, .n_gpus = 2, .steps = 900 };

    world_init(&w, busy);
    seen.limit_w = 120;
    monitor_read(&seen, &w.ledger.state, &f);
    ck_assert(f.has_measurement);
    ck_assert_int_eq(f.measurement.key.n_gpus, 2);
    ck_assert(f.measurement.key.is_spread);
    ck_assert_int_eq(f.measurement.key.gpu_type, world_type(&w, "k80"));
    ck_assert_int_eq(f.measurement.key.limit_w, 120);
    world_release(&w);
}

static const struct {
    const char *name;
    int n_uses, n_gpus, n_neighbours, limit_w;
    bool want;
} alone[] = {
    { "alone on a GPU", 3, 1, 0, 0, true },   { "nobody looked", 0, 1, 0, 0, false },
    { "a neighbour", 3, 1, 1, 0, false },     { "a gang", 3, 2, 0, 0, false },
    { "a power limit", 3, 1, 0, 175, false },
};

EACH(what_is_alone_shows_its_profile, alone)
{
    static const int gpus[] = { 0, 1 };
    struct world w;
    struct finding f;
    struct observation seen = { .kind = OBS_WINDOW,
                                .time_s = 100,
                                .from_s = 40,
                                .steps = 60,
                                .watts = 180,
                                .use = { 0.75, 0.5, 8e9 },
                                .n_uses = alone[_i].n_uses,
                                .gpus = gpus,
                                .n_gpus = alone[_i].n_gpus,
                                .n_neighbours = alone[_i].n_neighbours,
                                .neighbours = { 1 },
                                .limit_w = alone[_i].limit_w };

    world_init(&w, busy);
    monitor_read(&seen, &w.ledger.state, &f);
    ck_assert_msg(f.has_profile == alone[_i].want && f.has_measurement, "%s", alone[_i].name);
    if (f.has_profile)
        ck_assert(f.profile.gpu_activity == 0.75 && f.profile.mem_activity == 0.5 &&
                  f.profile.watts == 180 && f.profile.mem_used_bytes == 8e9);
    world_release(&w);
}

TEST(what_did_not_fit_is_remembered_and_waits_again)
{
    struct world w;
    struct finding f;
    struct observation seen = {
        .kind = OBS_UNFIT, .time_s = 9, .job = 0, ON_0, .n_neighbours = 1, .neighbours = { 1 }
    };

    world_init(&w, busy);
    seen.limit_w = 175;
    monitor_read(&seen, &w.ledger.state, &f);
    ck_assert(f.has_event && f.has_measurement);
    ck_assert_int_eq(f.measurement.key.limit_w, 0);    // no limit makes memory larger
    ck_assert_int_eq(f.event.kind, EVENT_JOB_STOPPED);
    ck_assert_str_eq(f.event.reason, "did not fit");
    ck_assert(!f.measurement.fits && isnan(f.measurement.throughput));
    ck_assert_int_eq(f.measurement.key.neighbour, world_workload(&w, "x"));
    ck_assert_int_eq(catalog_record(&w.catalog, &f.measurement, 0, NULL), 0);
    seen.kind = OBS_INCAPABLE;
    seen.n_neighbours = 0;
    seen.reason = "not built for it";
    monitor_read(&seen, &w.ledger.state, &f);
    ck_assert(f.has_event && f.has_measurement && !f.measurement.fits);
    ck_assert_int_eq(f.measurement.key.neighbour, -1);
    ck_assert_int_eq(f.event.kind, EVENT_JOB_STOPPED);
    ck_assert_str_eq(f.event.reason, "not built for it");
    seen.job = 3;    // it never got as far as running: only the measurement
    monitor_read(&seen, &w.ledger.state, &f);
    ck_assert(!f.has_event && f.has_measurement);
    seen.gpus = NULL;
    seen.n_gpus = 0;
    monitor_read(&seen, &w.ledger.state, &f);
    ck_assert(!f.has_measurement);
    world_release(&w);
}
