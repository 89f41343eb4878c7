/* The jobs of a period once more: whose work is repeated, in which world, and what comes of it. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "catalog/cluster/cluster.h"
#include "sim/hindsight.h"
#include "sim/world/truth.h"
#include "unit/suite.h"
#include "unit/support.h"

/* 'w' does 10 steps/s at 200 W on the fast type and 8 at 80 W on the frugal one. */
#define CLUSTER                                            \
    "type fast=v100 cap=250 idle=40 sleep=10\n"            \
    "type frugal=v100 cap=250 idle=20 sleep=5\n"           \
    "workload w params=1e6 bytes_per_sample=1e6 batch=1\n" \
    "speed w fast 10\nwatts w fast 200\nspeed w frugal 8\nwatts w frugal 80\n"

#define NODES "node n1 fast\nnode n2 frugal\n"

static struct world w;    // of the test; nothing is in it yet

static void set_up(void)
{
    world_init(&w, "");
}

static void tear_down(void)
{
    world_release(&w);
}

FIXTURE(set_up, tear_down)

static void measure(const char *type, double speed, double watts)
{
    struct err e = { 0 };
    const struct measurement m = { .key = { .workload = world_workload(&w, "w"),
                                            .gpu_type = world_type(&w, type),
                                            .neighbour = -1,
                                            .n_gpus = 1 },
                                   .fits = true,
                                   .throughput = speed,
                                   .watts = watts,
                                   .duration_s = NAN,
                                   .noise = NAN };

    ck_assert_msg(catalog_record(&w.catalog, &m, 0, &e) == 0, "%s", e.text);
}

/* What was measured is what is estimated; both policies know it. */
static void measure_both(void)
{
    measure("fast", 10, 200);
    measure("frugal", 8, 80);
}

static struct cluster_settings defaults(struct arena *a)
{
    const char *text = "node n1 v100:1\n";
    struct cluster cl;
    struct err e = { 0 };

    ck_assert_msg(cluster_parse(a, "c", text, strlen(text), &cl, &e) == 0, "%s", e.text);
    return cl.settings;
}

static int ask(double from_s, double to_s, int n_jobs_max, const char *const *policies, int n,
               struct hindsight_run *out, struct err *e)
{
    struct cluster_settings set;

    world_look(&w);
    set = defaults(&w.arena);
    return hindsight_run(&w.arena,
                         &(struct hindsight){ .state = &w.ledger.state,
                                              .catalog = &w.catalog,
                                              .est = &w.est,
                                              .settings = &set,
                                              .from_s = from_s,
                                              .to_s = to_s,
                                              .n_jobs_max = n_jobs_max,
                                              .policies = policies,
                                              .n_policies = n },
                         out, e);
}

/* Of all jobs until then. */
static void must_ask(double to_s, const char *const *policies, int n, struct hindsight_run *out)
{
    struct err e = { 0 };

    ck_assert_msg(ask(0, to_s, 99, policies, n, out, &e) == 0, "%s", e.text);
}

static const char *const both[] = { "gogh", "fifo-fastest" };

#define NEAR(got, want) ck_assert_double_eq_tol((got), (want), 1e-5 * (1 + fabs((double)(want))))

TEST(one_job_by_hand)
{
    struct hindsight_run r;

    /* 100 s alone on the fast GPU; the other idles for a minute and sleeps then. */
    world_add(&w, CLUSTER NODES "at 5000\njob a w steps=1000 min=5\n");
    measure_both();
    must_ask(1e9, &both[1], 1, &r);
    ck_assert_str_eq(r.policy, "fifo-fastest");
    ck_assert_int_eq(r.n_jobs, 1);
    ck_assert_int_eq(r.n_finished, 1);
    NEAR(r.energy_j, 100 * 200 + 60 * 20 + 40 * 5);
    NEAR(r.work_s, 100);    // 'fast' is the first type of the catalog
    NEAR(r.joules_per_work, r.energy_j / 100);
    NEAR(r.promise_attainment, 1);
    NEAR(r.mean_jct_s, 100);
}

TEST(nodes_that_are_down_do_not_draw_and_do_no_work)
{
    struct hindsight_run r;
    struct err e = { 0 };

    world_add(&w, CLUSTER "node n0 frugal\nnode n1 fast\nnode n2 frugal frugal\n"
                          "at 5000\njob a w steps=1000 min=5\ndown n0\ndrain n1\ndown n2\n");
    measure_both();
    must_ask(1e9, &both[1], 1, &r);
    NEAR(r.energy_j, 100 * 200);
    world_add(&w, "down n1\n");
    ck_assert_int_eq(ask(0, 1e9, 99, &both[1], 1, &r, &e), -ENOENT);
}

TEST(gogh_would_have_saved_where_the_fastest_wastes)
{
    struct hindsight_run r[2];

    world_add(&w, CLUSTER NODES);
    measure_both();
    for (int i = 0; i < 8; i++) {
        char line[80];

        snprintf(line, sizeof line, "at %d\njob j%d w steps=2000 min=7\n", 400 * i, i);
        world_add(&w, line);
    }
    must_ask(1e9, both, 2, r);
    ck_assert_int_eq(r[0].n_finished, 8);
    ck_assert_int_eq(r[1].n_finished, 8);
    NEAR(r[0].work_s, r[1].work_s);
    ck_assert_double_lt(r[0].joules_per_work, 0.7 * r[1].joules_per_work);
    ck_assert_double_gt(r[0].promise_attainment, 0.95);    // but for waking up
}

TEST(policies_know_what_was_measured)
{
    struct hindsight_run r;

    /* Alike by their figures, but for idle watts, which speak for the wrong one. */
    world_add(&w,
              "type fast=v100 cap=250 idle=20 sleep=5\n"
              "type frugal=v100 cap=250 idle=40 sleep=10\n"
              "workload w params=1e6 bytes_per_sample=1e6 batch=1\n" NODES "job a w steps=1000\n");
    measure_both();
    must_ask(1e9, both, 1, &r);
    NEAR(r.energy_j, 125 * 80 + 60 * 20 + 65 * 5);
}

TEST(what_was_not_measured_is_as_estimated)
{
    struct hindsight_run r;

    world_add(&w, CLUSTER "node n1 fast\njob a w steps=1000\n");
    must_ask(1e9, &both[1], 1, &r);
    NEAR(r.energy_j, 100 * 200);
    measure("fast", 5, 150);
    must_ask(1e9, &both[1], 1, &r);
    NEAR(r.energy_j, 200 * 150);
}

/* ---- whose work ---- */

static const struct {
    const char *name, *given;
    int n_jobs;       // 0: -ENOENT
    double work_s;    // on the fast type
} cases[] = {
    { "one that waits does what was asked", "job a w steps=1000\n", 1, 100 },
    { "one that runs too", "job a w steps=1000\nstart a 0\n", 1, 100 },
    { "one that has finished", "job a w steps=1000\nstart a 0\nat 100\nfinish a\n", 1, 100 },
    { "one that was cancelled in the middle does what it did",
      "job a w steps=1000\nstart a 0\ndone a 400\nat 100\ncancel a\n", 1, 40 },
    { "one that failed too", "job a w steps=1000\nstart a 0\ndone a 300\nat 100\nfail a\n", 1, 30 },
    { "one that was cancelled before it started is left out", "job a w steps=1000\ncancel a\n", 0,
      0 },
    { "a server serves as long as it did",
      "job a w rate=5 duration=1000\nstart a 0\nat 200\ncancel a\n", 1, 200 * 5 / 10.0 },
    { "and one that runs as long as was asked", "job a w rate=5 duration=1000\nstart a 0\n", 1,
      1000 * 5 / 10.0 },
    { "one that allows no type that is here is left out",
      "type t4\njob a w types=t4\njob b w steps=100\n", 1, 10 },
    { "jobs of the period alone",
      "job a w steps=1000\nat 4999\njob b w steps=300\nat 5000\njob c w steps=500\n", 2, 130 },
    { "a name that was used again is another job now",
      "job a w steps=1000\nstart a 0\nat 10\nfinish a\njob a w steps=500\n", 2, 150 },
    { "no jobs at all", "", 0, 0 },
};

/* The lines of a world, and "done JOB STEPS". */
static void tell(const char *text)
{
    char copy[400], *rest = copy, *line;
    struct err e = { 0 };

    snprintf(copy, sizeof copy, "%s", text);
    while ((line = strsep(&rest, "\n"))) {
        char name[20];
        double steps;

        if (sscanf(line, "done %19s %lf", name, &steps) == 2) {
            const struct event ev = { .kind = EVENT_JOB_PROGRESSED,
                                      .time_s = w.now_s,
                                      .job = world_job(&w, name),
                                      .steps_done = steps };

            ck_assert_msg(state_apply(&w.ledger.state, &ev, &e) == 0, "%s", e.text);
        } else {
            world_add(&w, line);
        }
    }
}

EACH(work_is_repeated, cases)
{
    struct hindsight_run r;
    struct err e = { 0 };

    world_add(&w, CLUSTER "node n1 fast fast\n");
    measure_both();
    tell(cases[_i].given);
    int rc = ask(0, 5000, 99, &both[1], 1, &r, &e);
    if (cases[_i].n_jobs == 0) {
        ck_assert_msg(rc == -ENOENT, "%s: %d", cases[_i].name, rc);
    } else {
        ck_assert_msg(rc == 0, "%s: %s", cases[_i].name, e.text);
        ck_assert_msg(r.n_jobs == cases[_i].n_jobs && r.n_finished == r.n_jobs, "%s: %d of %d",
                      cases[_i].name, r.n_finished, r.n_jobs);
        ck_assert_msg(fabs(r.work_s - cases[_i].work_s) < 1e-3, "%s: %g", cases[_i].name, r.work_s);
    }
}

TEST(a_guess_counts_for_what_was_done)
{
    struct hindsight_run r;
    struct err e = { 0 };

    world_add(&w, CLUSTER "node n1 fast\n");
    measure_both();
    struct job_spec s = spec_of("a", world_workload(&w, "w"));
    s.steps = 1e6;
    s.is_guess = true;
    world_apply(&w, &(struct event){ .kind = EVENT_JOB_SUBMITTED, .spec = &s });
    ck_assert_int_eq(ask(0, 5000, 99, &both[1], 1, &r, &e), -ENOENT);
    tell("start a 0\ndone a 700\n");
    must_ask(5000, &both[1], 1, &r);
    NEAR(r.work_s, 70);
}

TEST(a_part_of_the_steps_is_promised_as_steeply_as_the_whole)
{
    struct hindsight_run r;

    /* 12.5 steps/s were promised, which nothing here can do: of 400 steps too. */
    world_add(&w, CLUSTER "node n1 fast\n");
    measure_both();
    tell("job a w steps=1000 deadline=80\nstart a 0\ndone a 400\nat 90\ncancel a\n");
    must_ask(5000, &both[1], 1, &r);
    NEAR(r.work_s, 40);
    NEAR(r.promise_attainment, 0);
}

TEST(the_newest_are_taken)
{
    struct hindsight_run r;
    struct err e = { 0 };

    world_add(&w, CLUSTER "node n1 fast\njob a w steps=1000\nat 100\njob b w steps=300\n"
                          "at 200\njob c w steps=200\n");
    measure_both();
    ck_assert_msg(ask(0, 5000, 2, &both[1], 1, &r, &e) == 0, "%s", e.text);
    ck_assert_int_eq(r.n_jobs, 2);
    NEAR(r.work_s, 50);
    NEAR(r.mean_jct_s, (30 + 5 + 20) / 2.0);
    /* The clock begins with the first of them; between them the GPU falls asleep after a minute, and
     * waking takes 5 s.
     */
    NEAR(r.energy_j, 50 * 200 + 60 * 40 + 10 * 10 + 5 * 40);
}

TEST(the_same_call_gives_the_same_bytes)
{
    struct hindsight_run r[2][2];

    world_add(&w, CLUSTER NODES);
    measure("fast", 10, 200);
    for (int i = 0; i < 12; i++) {
        char line[80];

        snprintf(line, sizeof line, "at %d\njob j%d w steps=%d min=%d\n", 60 * i, i, 500 + 300 * i,
                 i % 5);
        world_add(&w, line);
    }
    memset(r, 0, sizeof r);
    must_ask(1e9, both, 2, r[0]);
    must_ask(1e9, both, 2, r[1]);
    ck_assert_mem_eq(r[0], r[1], sizeof r[0]);
    ck_assert(r[0][0].energy_j < r[0][1].energy_j || r[0][0].energy_j > r[0][1].energy_j);
}

TEST(a_policy_that_nobody_knows)
{
    const char *const policies[] = { "fifo-first", "none such" };
    struct hindsight_run r[2];
    struct err e = { 0 };

    world_add(&w, CLUSTER "node n1 fast\njob a w\n");
    ck_assert_int_lt(ask(0, 5000, 9, policies, 2, r, &e), 0);
    ck_assert_ptr_nonnull(strstr(e.text, "none such"));
}

TEST(beliefs_as_a_truth)
{
    struct truth t;
    struct err e = { 0 };

    world_add(&w, CLUSTER "workload x params=1e6 bytes_per_sample=1e6 batch=1\n"
                          "speed x fast 4\nspeed x frugal 4\nspeed w fast 6 beside=x\n"
                          "speed x fast 4.4 beside=w\nunfit x frugal\nunfit x fast beside=x\n");
    measure("fast", 12, 210);
    world_look(&w);
    int wl = world_workload(&w, "w"), x = world_workload(&w, "x");
    int fast = world_type(&w, "fast"), frugal = world_type(&w, "frugal");
    ck_assert_msg(truth_from_beliefs(&t, &w.catalog, &w.est, &e) == 0, "%s", e.text);
    NEAR(truth_speed(&t, wl, fast), 12);
    NEAR(truth_watts(&t, wl, fast), 210);
    NEAR(truth_speed(&t, wl, frugal), 8);
    NEAR(truth_watts(&t, wl, frugal), 80);
    ck_assert_double_eq(truth_speed(&t, x, frugal), 0);
    NEAR(truth_slowdown(&t, wl, fast, x), 0.6);    // an estimate beside one of its own kind
    NEAR(truth_slowdown(&t, x, fast, wl), 1);      // never faster than alone
    ck_assert_double_eq(truth_slowdown(&t, x, fast, x), 0);
    truth_release(&t);
}
