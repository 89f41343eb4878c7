/* Whole simulations, from files to figures. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "catalog/catalog.h"
#include "catalog/cluster/cluster.h"
#include "catalog/cluster/state.h"
#include "estimate/estimate.h"
#include "optimize/policy/solver.h"
#include "sim/ground.h"
#include "sim/sim.h"
#include "sim/world/world.h"
#include "unit/sim/small_truth.h"
#include "unit/suite.h"

#define TYPES                                           \
    "gputype slow like=v100 idle=50 sleep=10 cap=300\n" \
    "gputype fast like=v100 idle=50 sleep=10 cap=300\n"

/* Run to the end, or to 'o->until_s'. */
static int simulate(const struct sim_options *o, struct sim_result *r, struct err *e)
{
    struct sim *s = NULL;
    int rc = sim_create(o, &s, e);

    if (rc == 0)
        rc = sim_advance(s, INFINITY, e);
    if (rc == 0) {
        sim_result(s, r);
        state_assert(sim_state(s));
    }
    sim_destroy(s);
    return rc;
}

static struct arena arena;
static struct small_truth small;
static struct cluster cluster;
static struct trace trace;

static void set_up(void)
{
    arena_init(&arena);
    small_truth_init(&small);
}

static void tear_down(void)
{
    small_truth_release(&small);
    arena_release(&arena);
}

FIXTURE(set_up, tear_down)

static void read_both(const char *nodes, const char *jobs)
{
    struct err e = { 0 };

    ck_assert_msg(cluster_parse(&arena, "c", nodes, strlen(nodes), &cluster, &e) == 0, "%s",
                  e.text);
    ck_assert_msg(trace_parse(&arena, "t", jobs, strlen(jobs), &trace, &e) == 0, "%s", e.text);
}

/* These jobs on these nodes, as the small truth has them. */
static struct sim_options small_run(const char *nodes, const char *jobs, const char *policy)
{
    read_both(nodes, jobs);
    return (struct sim_options){ .cluster = &cluster,
                                 .trace = &trace,
                                 .truth = &small.truth,
                                 .policy = policy,
                                 .reference = "slow",
                                 .seed = 1 };
}

static struct sim_result run(struct sim_options o)
{
    struct sim_result r;
    struct err e = { 0 };

    ck_assert_msg(simulate(&o, &r, &e) == 0, "%s", e.text);
    return r;
}

static struct sim *begin(struct sim_options o)
{
    struct sim *s;
    struct err e = { 0 };

    ck_assert_msg(sim_create(&o, &s, &e) == 0, "%s", e.text);
    return s;
}

#define NEAR(got, want) ck_assert_double_eq_tol((got), (want), 1e-6 * (1 + fabs((double)(want))))

TEST(one_job_after_another_by_hand)
{
    /* The second waits for the first's end at 110, then needs 50 s. */
    const struct sim_result r = run(small_run("node a slow:1\n" TYPES,
                                              "job a at=10 workload=big steps=1000 min=5\n"
                                              "job b at=20 workload=small steps=200 min=2\n",
                                              "fifo-first"));

    ck_assert_int_eq(r.n_finished, 2);
    NEAR(r.energy_j, 10 * 50.0 + 100 * 200.0 + 50 * 100.0);
    NEAR(r.makespan_s, 150);
    NEAR(r.mean_jct_s, (100 + 140) / 2.0);
    NEAR(r.promise_attainment, (100 + 50) / (100 + 140.0));
    NEAR(r.work_s, 100 + 50);
    NEAR(r.gpu_s, 150);
    NEAR(r.allocation_efficiency, 1);
}

TEST(the_clock_stops_where_it_is_told_to)
{
    struct sim_options o = small_run("node a slow:1\n" TYPES,
                                     "job a at=10 workload=big steps=1000 min=5\n", "fifo-first");

    o.until_s = 60;
    const struct sim_result r = run(o);
    ck_assert_int_eq(r.n_finished, 0);
    NEAR(r.energy_j, 10 * 50.0 + 50 * 200.0);
    NEAR(r.work_s, 50);
    NEAR(r.promise_attainment, 1);
    ck_assert(isnan(r.mean_jct_s) && isnan(r.makespan_s));
}

TEST(a_job_that_can_never_run_does_not_keep_the_clock_going)
{
    const struct sim_result r = run(small_run("node a slow:1\n" TYPES,
                                              "job a at=0 workload=big steps=1000\n"
                                              "job b at=0 workload=small steps=100 gpus=2\n",
                                              "fifo-fastest"));

    ck_assert_int_le(r.n_finished, 1);
}

TEST(decisions_keep_their_distance)
{
    const struct sim_result r = run(small_run("node a slow:2\nset decide_s 50\n" TYPES,
                                              "job a at=0 workload=big steps=100\n"
                                              "job b at=10 workload=big steps=100\n",
                                              "fifo-first"));

    NEAR(r.makespan_s, 60);    // the second starts at 50
}

static const struct {
    const char *name, *cluster, *trace, *policy, *want;
} refused[] = {
    { "an unknown workload", "node a slow:1\n" TYPES, "job a at=0 workload=x steps=1\n", "greedy",
      "the ground truth knows no workload 'x'" },
    { "an unknown type", "node a k80:1\n", "job a at=0 workload=big steps=1\n", "greedy",
      "the ground truth has no GPU type 'k80'" },
    { "an unknown policy", "node a slow:1\n" TYPES, "job a at=0 workload=big steps=1\n", "wise",
      "wise" },
    { "types that are not there", "node a slow:1\n" TYPES,
      "job a at=0 workload=big steps=1 types=fast\n", "greedy", "may only run on 'fast'" },
};

EACH(what_cannot_be_simulated_is_refused, refused)
{
    struct sim_options o = small_run(refused[_i].cluster, refused[_i].trace, refused[_i].policy);
    struct sim_result r;
    struct err e = { 0 };

    ck_assert_int_lt(simulate(&o, &r, &e), 0);
    ck_assert_msg(strstr(e.text, refused[_i].want) != NULL, "%s: got %s", refused[_i].name, e.text);
}

/* A busy hour of everything at once, under the built-in truth. */
static struct sim_result run_jobs(const char *nodes, struct sim_options o)
{
    char jobs[20000] = "";
    struct err e = { 0 };
    struct ground g;
    size_t len = 0;

    for (int i = 0; i < 60; i++)
        len += (size_t)snprintf(jobs + len, sizeof jobs - len,
                                i % 7 == 3 ? "job j%d at=%d workload=whisper-small batch=%d "
                                             "rate=0.5 duration=900\n"
                                           : "job j%d at=%d workload=resnet50 batch=%d steps=900 "
                                             "min=0.5\n",
                                i, i * 60, 4 << (i % 3));
    read_both(nodes, jobs);
    ck_assert_msg(ground_builtin(&g, &cluster, &trace, "p100", 1, &e) == 0, "%s", e.text);
    o.cluster = &cluster;
    o.trace = &trace;
    o.truth = &g.truth;
    const struct sim_result r = run(o);
    ground_close(&g);
    return r;
}

static struct sim_result run_busy(const char *policy)
{
    return run_jobs("node a-[1-2] k80:2 p100:1\nnode b v100:2\nset report_s 60\n",
                    (struct sim_options){ .policy = policy, .seed = 1 });
}

static const char *const policies[] = { "gogh",         "gogh-oracle", "greedy",
                                        "fifo-fastest", "fifo-random", "fifo-first" };

EACH(every_policy_ends_and_repeats_itself, policies)
{
    const struct sim_result a = run_busy(policies[_i]), b = run_busy(policies[_i]);

    ck_assert_int_eq(a.n_finished, 60);
    ck_assert(a.energy_j == b.energy_j && a.mean_jct_s == b.mean_jct_s &&
              a.promise_attainment == b.promise_attainment && a.n_events == b.n_events &&
              a.n_decisions == b.n_decisions && a.n_moves == b.n_moves && a.gpu_s == b.gpu_s);
    ck_assert(a.promise_attainment >= 0 && a.promise_attainment <= 1);
    ck_assert_int_eq(a.n_fallbacks, 0);
}

/* ---- how good plans are ---- */

static const struct {
    const char *policy, *cluster;
    bool has_bound;
} sizes[] = {
    { "gogh", "node a v100:2 k80:2\n", true },
    { "gogh", "node a-[1-20] v100:8\nnode b-[1-20] k80:8\n", true },    // prices are kept
    { "watts", "node a-[1-20] v100:8\nnode b-[1-20] k80:8\n", true },
    { "gogh-oracle", "node a v100:2 k80:2\n", true },
    { "greedy", "node a v100:2 k80:2\n", false },
};

static void count_known(void *self, const struct lowered *asked, const struct plan *p)
{
    struct plan_gap gap = plan_gap(p);
    long *n_known = self;

    (void)asked;
    *n_known += gap.watts >= 0 && gap.ratio >= 0 && gap.varying_ratio >= 0 && isfinite(gap.watts) &&
                isfinite(gap.ratio) && isfinite(gap.varying_ratio);
}

EACH(every_plan_of_gogh_knows_its_gap_at_every_size, sizes)
{
    struct sim_options o = { .policy = sizes[_i].policy, .seed = 1, .on_plan = count_known };
    long n_known = 0;

    o.owner = &n_known;
    const struct sim_result r = run_jobs(sizes[_i].cluster, o);
    ck_assert_int_gt(r.n_decisions, 60);
    ck_assert_int_eq(n_known, sizes[_i].has_bound ? r.n_decisions : 0);
    ck_assert_int_eq(isfinite(r.gap_mean.watts) && isfinite(r.gap_worst.varying_ratio),
                     sizes[_i].has_bound);
    ck_assert_int_eq(isnan(r.gap_mean.watts), !sizes[_i].has_bound);
    ck_assert(!(r.gap_worst.ratio < r.gap_mean.ratio));
}

TEST(a_described_workload_may_have_another_batch)
{
    struct err e = { 0 };
    struct ground g;

    read_both("node a v100:1\nworkload mine like=resnet50 params=9e6\n",
              "job a at=0 workload=mine batch=8 steps=10\njob b at=0 workload=mine steps=10\n");
    ck_assert_msg(ground_builtin(&g, &cluster, &trace, NULL, 1, &e) == 0, "%s", e.text);
    ck_assert_int_eq(g.truth.n_workloads, 2);
    ck_assert(g.catalog.workloads[1].batch == 8 && g.catalog.workloads[1].params == 9e6);
    ground_close(&g);
}

TEST(advancing_in_pieces_changes_nothing)
{
    const struct sim_options o = small_run("node a slow:2\nset noise 0\n" TYPES,
                                           "job a at=0 workload=big steps=1000\n"
                                           "job b at=7 workload=small steps=900\n"
                                           "job c at=9 workload=big steps=2000\n",
                                           "greedy");
    const struct sim_result whole = run(o);
    struct sim *s = begin(o);
    struct sim_result pieces;

    for (double at_s = 3; sim_advance(s, at_s, NULL) > 0; at_s += 3)
        ck_assert(sim_now_s(s) == at_s);
    sim_result(s, &pieces);
    ck_assert(pieces.energy_j == whole.energy_j && pieces.mean_jct_s == whole.mean_jct_s &&
              pieces.gpu_s == whole.gpu_s && pieces.n_events == whole.n_events);
    sim_destroy(s);
}

/* Whoever begins with what a run has measured knows what it knew: how surely, and what limits do. */
TEST(what_a_run_has_learned_is_handed_on)
{
    struct sim *s = begin(small_run("node a slow:2 fast:2\n" TYPES "set power_limits 1\n",
                                    "job a at=0 workload=big steps=20000\n"
                                    "job b at=0 workload=big steps=20000\n"
                                    "job c at=900 workload=big steps=20000\n",
                                    "gogh"));
    struct catalog next;
    struct err e = { 0 };
    int n_seen = 0;

    ck_assert_msg(sim_advance(s, INFINITY, &e) == 0, "%s", e.text);
    const struct catalog *was = sim_catalog(s);
    catalog_init(&next);
    ck_assert_msg(sim_adopt(&next, was, NULL, &e) == 0, "%s", e.text);
    for (int i = 0; i < next.n_cells; i++) {
        const struct cell *is = &next.cells[i], *of = catalog_cell(was, is->key);
        ck_assert(is->n_speed == of->n_speed && is->n_watts == of->n_watts);
        ck_assert(is->ln_speed == of->ln_speed && is->ln_pace == of->ln_pace);
        ck_assert_double_eq(cell_variance(is), cell_variance(of));
        ck_assert_mem_eq(&is->limits, &of->limits, sizeof is->limits);
        n_seen += is->limits.xx > 0;
    }
    ck_assert_int_gt(n_seen, 0);    // somebody was measured under a limit
    catalog_release(&next);
    sim_destroy(s);
}

TEST(a_run_does_without_the_levers_that_are_taken_away)
{
    static const char jobs[] = "job a at=100 workload=small steps=400\n"
                               "job b at=100 workload=small steps=400\n";
    struct sim_options o = small_run("node a slow:2\nset noise 0\n" TYPES, jobs, "fifo-first");

    /* Both begin 5 s late, on GPUs that slept from 60 to 100 s, or at once. */
    NEAR(run(o).energy_j, 2 * (60 * 50.0 + 40 * 10 + 5 * 50 + 100 * 100));
    o.without = 1U << LEVER_SLEEP;
    NEAR(run(o).energy_j, 2 * (100 * 50.0 + 100 * 100));

    /* On one GPU, they wait for each other or share it. */
    o = small_run("node a slow:1\nset noise 0\n" TYPES, jobs, "gogh-oracle");
    NEAR(run(o).gpu_s, 5 + 100 / 0.6);
    o.without = 1U << LEVER_SHARING;
    NEAR(run(o).gpu_s, 5 + 200);
}

/* Every cell of the policy's own estimates against the small truth. */
static void check_oracle(const struct sim *s, const struct truth *t)
{
    const struct estimator *est = sim_estimator(s);

    for (int w = 0; w < est->n_workloads; w++) {
        int is = truth_find_workload(t, sim_catalog(s)->workloads[w].name);

        for (int i = 0; i < est->n_types * (1 + est->n_workloads); i++) {
            int a = i % est->n_types, n = i / est->n_types - 1;
            int beside = n < 0 ? -1 : truth_find_workload(t, sim_catalog(s)->workloads[n].name);
            struct cell_estimate c = estimate_cell(est, w, a, n);
            double r = n < 0 ? 1 : truth_slowdown(t, is, a, beside);
            double speed = truth_speed(t, is, a) * r;

            ck_assert(c.unfit == (speed > 0 ? 0 : 1));
            if (speed > 0) {
                ck_assert_double_eq_tol((double)c.speed, speed, 1e-3 * speed);
                ck_assert_double_eq_tol((double)c.low, speed, 1e-3 * speed);
                ck_assert_double_eq_tol((double)estimate_cell(est, w, a, -1).watts,
                                        truth_watts(t, is, a), 0.1);
            }
        }
    }
}

TIMES(an_oracle_knows_everything_and_keeps_to_it, 2)
{
    const struct sim_options o = small_run("node a slow:1 fast:1\nset report_s 20\n" TYPES,
                                           "job a at=0 workload=big steps=1000\n"
                                           "job b at=7 workload=small steps=900\n"
                                           "job c at=9 workload=huge steps=500\n",
                                           "gogh-oracle");
    struct err e = { 0 };
    double sum = 0;
    long n = 0;

    cluster.settings.noise = _i == 0 ? 0 : 0.05;
    struct sim *s = begin(o);
    check_oracle(s, &small.truth);
    ck_assert_int_eq(sim_advance(s, INFINITY, &e), 0);
    check_oracle(s, &small.truth);
    sim_learning(s, &sum, &n);
    ck_assert_int_gt(n, 5);
    ck_assert_double_lt(sum / (double)n, _i == 0 ? 1e-3 : 0.1);
    sim_destroy(s);
}

TIMES(figures_so_far_are_those_of_the_result, 2)
{
    struct sim *s = begin(small_run("node a slow:2 fast:1\nset noise 0\n" TYPES,
                                    "job a at=0 workload=big steps=1000\n"
                                    "job b at=7 workload=small steps=900\n"
                                    "job c at=9 workload=big steps=2000 gpus=1 max_gpus=2\n",
                                    "greedy"));
    struct sim_result r;
    struct err e = { 0 };
    double energy_j = 0, held_s = 0;

    sim_advance(s, 55 + 400 * _i, &e);
    sim_result(s, &r);
    NEAR(world_energy_j(sim_world(s)), r.energy_j);
    NEAR(world_work_s(sim_world(s)), r.work_s);
    NEAR(world_gpu_s(sim_world(s)), r.gpu_s);
    for (int i = 0; i < sim_state(s)->n_gpus; i++) {
        energy_j += world_gpu_now(sim_world(s), i).energy_j;
        held_s += world_gpu_now(sim_world(s), i).held_s;
    }
    NEAR(energy_j, r.energy_j);
    NEAR(held_s, r.gpu_s);
    ck_assert_double_gt(r.work_s, 0);
    sim_destroy(s);
}
