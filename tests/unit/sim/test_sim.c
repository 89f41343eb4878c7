/* Whole simulations, from files to figures. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
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

static int run_without(const char *cluster, const char *trace, const char *policy, double until_s,
                       unsigned without, struct sim_result *r, struct err *e)
{
    struct small_truth small;
    struct cluster cl;
    struct trace t;
    struct arena a;
    int rc;

    arena_init(&a);
    small_truth_init(&small);
    ck_assert_msg(cluster_parse(&a, "c", cluster, strlen(cluster), &cl, e) == 0, "%s", e->text);
    ck_assert_msg(trace_parse(&a, "t", trace, strlen(trace), &t, e) == 0, "%s", e->text);
    rc = simulate(&(struct sim_options){ .cluster = &cl,
                                         .trace = &t,
                                         .truth = &small.truth,
                                         .policy = policy,
                                         .reference = "slow",
                                         .seed = 1,
                                         .until_s = until_s,
                                         .without = without },
                  r, e);
    small_truth_release(&small);
    arena_release(&a);
    return rc;
}

static int run(const char *cluster, const char *trace, const char *policy, double until_s,
               struct sim_result *r, struct err *e)
{
    return run_without(cluster, trace, policy, until_s, 0, r, e);
}

#define NEAR(got, want) ck_assert_double_eq_tol((got), (want), 1e-6 * (1 + fabs((double)(want))))

START_TEST(one_job_after_another_by_hand)
{
    struct sim_result r;
    struct err e = { 0 };

    /* The second waits for the first's end at 110, then needs 50 s. */
    ck_assert_int_eq(run("node a slow:1\n" TYPES,
                         "job a at=10 workload=big steps=1000 min=5\n"
                         "job b at=20 workload=small steps=200 min=2\n",
                         "fifo-first", 0, &r, &e),
                     0);
    ck_assert_int_eq(r.n_finished, 2);
    NEAR(r.energy_j, 10 * 50.0 + 100 * 200.0 + 50 * 100.0);
    NEAR(r.makespan_s, 150);
    NEAR(r.mean_jct_s, (100 + 140) / 2.0);
    NEAR(r.promise_attainment, (100 + 50) / (100 + 140.0));
    NEAR(r.work_s, 100 + 50);
    NEAR(r.gpu_s, 150);
    NEAR(r.allocation_efficiency, 1);
}
END_TEST

START_TEST(the_clock_stops_where_it_is_told_to)
{
    struct sim_result r;
    struct err e = { 0 };

    ck_assert_int_eq(run("node a slow:1\n" TYPES, "job a at=10 workload=big steps=1000 min=5\n",
                         "fifo-first", 60, &r, &e),
                     0);
    ck_assert_int_eq(r.n_finished, 0);
    NEAR(r.energy_j, 10 * 50.0 + 50 * 200.0);
    NEAR(r.work_s, 50);
    NEAR(r.promise_attainment, 1);
    ck_assert(isnan(r.mean_jct_s) && isnan(r.makespan_s));
}
END_TEST

START_TEST(a_job_that_can_never_run_does_not_keep_the_clock_going)
{
    struct sim_result r;
    struct err e = { 0 };

    ck_assert_int_eq(run("node a slow:1\n" TYPES,
                         "job a at=0 workload=big steps=1000\n"
                         "job b at=0 workload=small steps=100 gpus=2\n",
                         "fifo-fastest", 0, &r, &e),
                     0);
    ck_assert_int_le(r.n_finished, 1);
}
END_TEST

START_TEST(decisions_keep_their_distance)
{
    struct sim_result r;
    struct err e = { 0 };

    ck_assert_int_eq(run("node a slow:2\nset decide_s 50\n" TYPES,
                         "job a at=0 workload=big steps=100\n"
                         "job b at=10 workload=big steps=100\n",
                         "fifo-first", 0, &r, &e),
                     0);
    NEAR(r.makespan_s, 60);    // the second starts at 50
}
END_TEST

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

START_TEST(what_cannot_be_simulated_is_refused)
{
    struct sim_result r;
    struct err e = { 0 };

    ck_assert_int_lt(run(refused[_i].cluster, refused[_i].trace, refused[_i].policy, 0, &r, &e), 0);
    ck_assert_msg(strstr(e.text, refused[_i].want) != NULL, "%s: got %s", refused[_i].name, e.text);
}
END_TEST

/* A busy hour of everything at once, under the built-in truth. */
static void run_jobs(const char *cluster, const struct sim_options *how, struct sim_result *r)
{
    struct sim_options o = *how;
    char trace[20000] = "";
    struct err e = { 0 };
    struct ground g;
    struct cluster cl;
    struct trace t;
    struct arena a;
    size_t len = 0;

    for (int i = 0; i < 60; i++)
        len +=
            (size_t)snprintf(trace + len, sizeof trace - len,
                             i % 7 == 3 ? "job j%d at=%d workload=whisper-small batch=%d rate=0.5 "
                                          "duration=900\n"
                                        : "job j%d at=%d workload=resnet50 batch=%d steps=900 "
                                          "min=0.5\n",
                             i, i * 60, 4 << (i % 3));
    arena_init(&a);
    ck_assert_int_eq(cluster_parse(&a, "c", cluster, strlen(cluster), &cl, &e), 0);
    ck_assert_msg(trace_parse(&a, "t", trace, len, &t, &e) == 0, "%s", e.text);
    ck_assert_msg(ground_builtin(&g, &cl, &t, "p100", 1, &e) == 0, "%s", e.text);
    o.cluster = &cl;
    o.trace = &t;
    o.truth = &g.truth;
    ck_assert_msg(simulate(&o, r, &e) == 0, "%s", e.text);
    ground_close(&g);
    arena_release(&a);
}

static void run_busy(const char *policy, struct sim_result *r)
{
    run_jobs("node a-[1-2] k80:2 p100:1\nnode b v100:2\nset report_s 60\n",
             &(struct sim_options){ .policy = policy, .seed = 1 }, r);
}

static const char *const policies[] = { "gogh",         "gogh-oracle", "greedy",
                                        "fifo-fastest", "fifo-random", "fifo-first" };

START_TEST(every_policy_ends_and_repeats_itself)
{
    struct sim_result a, b;

    run_busy(policies[_i], &a);
    run_busy(policies[_i], &b);
    ck_assert_int_eq(a.n_finished, 60);
    ck_assert(a.energy_j == b.energy_j && a.mean_jct_s == b.mean_jct_s &&
              a.promise_attainment == b.promise_attainment && a.n_events == b.n_events &&
              a.n_decisions == b.n_decisions && a.n_moves == b.n_moves && a.gpu_s == b.gpu_s);
    ck_assert(a.promise_attainment >= 0 && a.promise_attainment <= 1);
    ck_assert_int_eq(a.n_fallbacks, 0);
}
END_TEST

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

START_TEST(every_plan_of_gogh_knows_its_gap_at_every_size)
{
    struct sim_options o = { .policy = sizes[_i].policy, .seed = 1, .on_plan = count_known };
    long n_known = 0;
    struct sim_result r;

    o.owner = &n_known;
    run_jobs(sizes[_i].cluster, &o, &r);
    ck_assert_int_gt(r.n_decisions, 60);
    ck_assert_int_eq(n_known, sizes[_i].has_bound ? r.n_decisions : 0);
    ck_assert_int_eq(isfinite(r.gap_mean.watts) && isfinite(r.gap_worst.varying_ratio),
                     sizes[_i].has_bound);
    ck_assert_int_eq(isnan(r.gap_mean.watts), !sizes[_i].has_bound);
    ck_assert(!(r.gap_worst.ratio < r.gap_mean.ratio));
}
END_TEST

START_TEST(a_described_workload_may_have_another_batch)
{
    static const char cluster[] = "node a v100:1\nworkload mine like=resnet50 params=9e6\n";
    static const char trace[] = "job a at=0 workload=mine batch=8 steps=10\n"
                                "job b at=0 workload=mine steps=10\n";
    struct err e = { 0 };
    struct ground g;
    struct cluster cl;
    struct trace t;
    struct arena a;

    arena_init(&a);
    ck_assert_int_eq(cluster_parse(&a, "c", cluster, strlen(cluster), &cl, &e), 0);
    ck_assert_int_eq(trace_parse(&a, "t", trace, strlen(trace), &t, &e), 0);
    ck_assert_msg(ground_builtin(&g, &cl, &t, NULL, 1, &e) == 0, "%s", e.text);
    ck_assert_int_eq(g.truth.n_workloads, 2);
    ck_assert(g.catalog.workloads[1].batch == 8 && g.catalog.workloads[1].params == 9e6);
    ground_close(&g);
    arena_release(&a);
}
END_TEST

START_TEST(advancing_in_pieces_changes_nothing)
{
    static const char cluster[] = "node a slow:2\nset noise 0\n" TYPES;
    static const char trace[] = "job a at=0 workload=big steps=1000\n"
                                "job b at=7 workload=small steps=900\n"
                                "job c at=9 workload=big steps=2000\n";
    struct sim_result whole, pieces;
    struct small_truth small;
    struct err e = { 0 };
    struct cluster cl;
    struct sim *s;
    struct trace t;
    struct arena a;

    ck_assert_int_eq(run(cluster, trace, "greedy", 0, &whole, &e), 0);
    arena_init(&a);
    small_truth_init(&small);
    ck_assert_int_eq(cluster_parse(&a, "c", cluster, strlen(cluster), &cl, &e), 0);
    ck_assert_int_eq(trace_parse(&a, "t", trace, strlen(trace), &t, &e), 0);
    ck_assert_int_eq(sim_create(&(struct sim_options){ .cluster = &cl,
                                                       .trace = &t,
                                                       .truth = &small.truth,
                                                       .policy = "greedy",
                                                       .reference = "slow",
                                                       .seed = 1 },
                                &s, &e),
                     0);
    for (double at_s = 3; sim_advance(s, at_s, &e) > 0; at_s += 3)
        ck_assert(sim_now_s(s) == at_s);
    sim_result(s, &pieces);
    ck_assert(pieces.energy_j == whole.energy_j && pieces.mean_jct_s == whole.mean_jct_s &&
              pieces.gpu_s == whole.gpu_s && pieces.n_events == whole.n_events);
    sim_destroy(s);
    small_truth_release(&small);
    arena_release(&a);
}
END_TEST

START_TEST(a_run_does_without_the_levers_that_are_taken_away)
{
    static const char cluster[] = "node a slow:2\nset noise 0\n" TYPES;
    static const char trace[] = "job a at=100 workload=small steps=400\n"
                                "job b at=100 workload=small steps=400\n";
    struct sim_result all, no_sleep, no_sharing;
    struct err e = { 0 };

    /* Both begin 5 s late, on GPUs that slept from 60 to 100 s, or at once. */
    ck_assert_int_eq(run(cluster, trace, "fifo-first", 0, &all, &e), 0);
    NEAR(all.energy_j, 2 * (60 * 50.0 + 40 * 10 + 5 * 50 + 100 * 100));
    ck_assert_int_eq(run_without(cluster, trace, "fifo-first", 0, 1U << LEVER_SLEEP, &no_sleep, &e),
                     0);
    NEAR(no_sleep.energy_j, 2 * (100 * 50.0 + 100 * 100));

    /* On one GPU, they wait for each other or share it. */
    ck_assert_int_eq(run("node a slow:1\nset noise 0\n" TYPES, trace, "gogh-oracle", 0, &all, &e),
                     0);
    NEAR(all.gpu_s, 5 + 100 / 0.6);
    ck_assert_int_eq(run_without("node a slow:1\nset noise 0\n" TYPES, trace, "gogh-oracle", 0,
                                 1U << LEVER_SHARING, &no_sharing, &e),
                     0);
    NEAR(no_sharing.gpu_s, 5 + 200);
}
END_TEST

/* Every cell of the policy's own estimates against the small truth. */
static void check_oracle(const struct sim *s, const struct truth *t)
{
    struct estimator est;

    estimator_init(&est, sim_catalog(s), 1);
    estimate_refresh(&est);
    for (int w = 0; w < est.n_workloads; w++) {
        int is = truth_find_workload(t, sim_catalog(s)->workloads[w].name);

        for (int i = 0; i < est.n_types * (1 + est.n_workloads); i++) {
            int a = i % est.n_types, n = i / est.n_types - 1;
            int beside = n < 0 ? -1 : truth_find_workload(t, sim_catalog(s)->workloads[n].name);
            const struct cell_estimate *c = estimate_cell(&est, w, a, n);
            double r = n < 0 ? 1 : truth_slowdown(t, is, a, beside);
            double speed = truth_speed(t, is, a) * r;

            ck_assert(c->unfit == (speed > 0 ? 0 : 1));
            if (speed > 0) {
                ck_assert_double_eq_tol((double)c->speed, speed, 1e-3 * speed);
                ck_assert_double_eq_tol((double)c->low, speed, 1e-3 * speed);
                ck_assert_double_eq_tol(est.alone_w[w * est.n_types + a], truth_watts(t, is, a),
                                        0.1);
            }
        }
    }
    estimator_release(&est);
}

START_TEST(an_oracle_knows_everything_and_keeps_to_it)
{
    static const char cluster[] = "node a slow:1 fast:1\nset report_s 20\n" TYPES;
    static const char trace[] = "job a at=0 workload=big steps=1000\n"
                                "job b at=7 workload=small steps=900\n"
                                "job c at=9 workload=huge steps=500\n";
    struct small_truth small;
    struct err e = { 0 };
    struct cluster cl;
    struct sim *s;
    struct trace t;
    struct arena a;
    double sum = 0;
    long n = 0;

    arena_init(&a);
    small_truth_init(&small);
    ck_assert_int_eq(cluster_parse(&a, "c", cluster, strlen(cluster), &cl, &e), 0);
    cl.settings.noise = _i == 0 ? 0 : 0.05;
    ck_assert_int_eq(trace_parse(&a, "t", trace, strlen(trace), &t, &e), 0);
    ck_assert_int_eq(sim_create(&(struct sim_options){ .cluster = &cl,
                                                       .trace = &t,
                                                       .truth = &small.truth,
                                                       .policy = "gogh-oracle",
                                                       .reference = "slow",
                                                       .seed = 1 },
                                &s, &e),
                     0);
    check_oracle(s, &small.truth);
    ck_assert_int_eq(sim_advance(s, INFINITY, &e), 0);
    check_oracle(s, &small.truth);
    sim_learning(s, &sum, &n);
    ck_assert_int_gt(n, 5);
    ck_assert_double_lt(sum / (double)n, _i == 0 ? 1e-3 : 0.1);
    sim_destroy(s);
    small_truth_release(&small);
    arena_release(&a);
}
END_TEST

START_TEST(figures_so_far_are_those_of_the_result)
{
    static const char cluster[] = "node a slow:2 fast:1\nset noise 0\n" TYPES;
    static const char trace[] = "job a at=0 workload=big steps=1000\n"
                                "job b at=7 workload=small steps=900\n"
                                "job c at=9 workload=big steps=2000 gpus=1 max_gpus=2\n";
    struct small_truth small;
    struct sim_result r;
    struct err e = { 0 };
    struct cluster cl;
    struct sim *s;
    struct trace t;
    struct arena a;
    double energy_j = 0, held_s = 0;

    arena_init(&a);
    small_truth_init(&small);
    ck_assert_int_eq(cluster_parse(&a, "c", cluster, strlen(cluster), &cl, &e), 0);
    ck_assert_msg(trace_parse(&a, "t", trace, strlen(trace), &t, &e) == 0, "%s", e.text);
    ck_assert_int_eq(sim_create(&(struct sim_options){ .cluster = &cl,
                                                       .trace = &t,
                                                       .truth = &small.truth,
                                                       .policy = "greedy",
                                                       .reference = "slow",
                                                       .seed = 1 },
                                &s, &e),
                     0);
    sim_advance(s, 55 + 400 * _i, &e);
    sim_result(s, &r);
    NEAR(world_energy_j(sim_world(s)), r.energy_j);
    NEAR(world_work_s(sim_world(s)), r.work_s);
    NEAR(world_gpu_s(sim_world(s)), r.gpu_s);
    for (int i = 0; i < sim_state(s)->n_gpus; i++) {
        energy_j += world_gpu_energy_j(sim_world(s), i);
        held_s += world_gpu_held_s(sim_world(s), i);
    }
    NEAR(energy_j, r.energy_j);
    NEAR(held_s, r.gpu_s);
    ck_assert_double_gt(r.work_s, 0);
    sim_destroy(s);
    small_truth_release(&small);
    arena_release(&a);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sim");
    TCase *t = tcase_create("sim");

    suite_add_tcase(s, t);
    tcase_add_test(t, one_job_after_another_by_hand);
    tcase_add_test(t, the_clock_stops_where_it_is_told_to);
    tcase_add_test(t, a_job_that_can_never_run_does_not_keep_the_clock_going);
    tcase_add_test(t, decisions_keep_their_distance);
    tcase_add_loop_test(t, what_cannot_be_simulated_is_refused, 0,
                        sizeof refused / sizeof refused[0]);
    tcase_add_loop_test(t, every_policy_ends_and_repeats_itself, 0,
                        sizeof policies / sizeof policies[0]);
    tcase_add_loop_test(t, every_plan_of_gogh_knows_its_gap_at_every_size, 0,
                        (int)(sizeof sizes / sizeof *sizes));
    tcase_add_test(t, a_described_workload_may_have_another_batch);
    tcase_add_test(t, advancing_in_pieces_changes_nothing);
    tcase_add_test(t, a_run_does_without_the_levers_that_are_taken_away);
    tcase_add_loop_test(t, an_oracle_knows_everything_and_keeps_to_it, 0, 2);
    tcase_add_loop_test(t, figures_so_far_are_those_of_the_result, 0, 2);
    return suite_run(s);
}
