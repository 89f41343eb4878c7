/* The bound: by hand on round numbers, against a program of single jobs, and below simulations. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/rng.h"
#include "estimate/prior/limits.h"
#include "optimize/prices/lp.h"
#include "sim/sim.h"
#include "study/bound.h"
#include "unit/sim/small_truth.h"
#include "unit/suite.h"

#define TYPES                                           \
    "gputype slow like=v100 idle=50 sleep=10 cap=300\n" \
    "gputype fast like=v100 idle=50 sleep=10 cap=300\n"

struct setting {
    struct small_truth small;
    struct arena arena;
    struct study_inputs inputs;
};

static void setting_open(struct setting *s, const char *cluster, const char *trace, double period_s)
{
    struct err e = { 0 };
    const char *text;

    small_truth_init(&s->small);
    arena_init(&s->arena);
    text = arena_printf(&s->arena, TYPES "%s", cluster);
    s->inputs = (struct study_inputs){ .ground.truth = s->small.truth, .arrivals_s = period_s };
    ck_assert_msg(cluster_parse(&s->arena, "c", text, strlen(text), &s->inputs.cluster, &e) == 0,
                  "%s", e.text);
    ck_assert_msg(trace_parse(&s->arena, "t", trace, strlen(trace), &s->inputs.trace, &e) == 0,
                  "%s", e.text);
}

static void setting_close(struct setting *s)
{
    arena_release(&s->arena);
    small_truth_release(&s->small);
}

/* Joules by hand: one slow GPU does 10 steps of big a second for 200 W, one fast 20 for 250 W;
 * beside each other on slow, big and small do 5 and 3.2 for 50 + 150 * 0.5 + 50 * 0.8 = 165 W.
 */
static const struct {
    const char *name;
    const char *cluster, *trace;
    double period_s;
    bool is_awake;
    double energy_j, least_j, horizon_s, work_s, gpu_s;
} cases[] = {
    { "a job alone draws its watts and sleeps for the rest", "node a slow:1\nset theta 1\n",
      "job j at=0 workload=big steps=1000\n", 1000, false, 29000, 29000, 1000, 100, 100 },
    { "where nobody sleeps the rest is idle", "node a slow:1\nset theta 1\n",
      "job j at=0 workload=big steps=1000\n", 1000, true, 65000, 65000, 1000, 100, 100 },
    { "the type of fewer joules does the work", "node a slow:1 fast:1\nset theta 1\n",
      "job j at=0 workload=big steps=1000\n", 1000, false, 32000, 32000, 1000, 100, 50 },
    { "a pair shares the idle watts", "node a slow:1\n",
      "job j at=0 workload=big steps=500\njob k at=0 workload=small steps=320\n", 1000, false,
      25500, 25500, 1000, 130, 100 },
    { "unless nothing is shared", "node a slow:1\nset theta 1\n",
      "job j at=0 workload=big steps=500\njob k at=0 workload=small steps=320\n", 1000, false,
      26700, 26700, 1000, 130, 130 },
    { "what the better type has no time for goes to the other, or waits",
      "node a slow:1 fast:1\nset theta 1\n", "job j at=0 workload=big steps=1000\n", 40, false,
      14200, 13000, 40, 100, 60 },
    { "too much for the period takes as long as it takes", "node a slow:1\nset theta 1\n",
      "job j at=0 workload=big steps=1000\n", 10, false, 20000, 20000, 100, 100, 100 },
    { "two of a kind share, whatever was promised", "node a fast:1\n",
      "job j at=0 workload=small steps=480 min=7\n", 1000, false, 18000, 18000, 1000, 120, 50 },
    { "served work counts as work", "node a slow:1\nset theta 1\n",
      "job j at=0 workload=big rate=5 duration=200\n", 1000, false, 29000, 29000, 1000, 100, 100 },
};

EACH(by_hand, cases)
{
    struct setting s;
    struct bound b;
    struct err e = { 0 };

    setting_open(&s, cases[_i].cluster, cases[_i].trace, cases[_i].period_s);
    ck_assert_msg(bound_solve(&s.arena, &s.inputs, false, !cases[_i].is_awake, &b, &e) == 0,
                  "%s: %s", cases[_i].name, e.text);
    ck_assert_msg(fabs(b.energy_j - cases[_i].energy_j) < 0.01, "%s: %g J", cases[_i].name,
                  b.energy_j);
    ck_assert_msg(fabs(b.least_j - cases[_i].least_j) < 0.01, "%s: at least %g J", cases[_i].name,
                  b.least_j);
    ck_assert_msg(fabs(b.horizon_s - cases[_i].horizon_s) < 0.01, "%s: %g s", cases[_i].name,
                  b.horizon_s);
    ck_assert_double_eq_tol(b.work_s, cases[_i].work_s, 1e-9);
    ck_assert_msg(fabs(b.gpu_s - cases[_i].gpu_s) < 0.01, "%s: %g GPU-seconds", cases[_i].name,
                  b.gpu_s);
    ck_assert_double_eq_tol(b.type_gpu_s[SLOW] + b.type_gpu_s[FAST], b.gpu_s, 1e-6);
    ck_assert_double_eq_tol(b.type_j[SLOW] + b.type_j[FAST], b.energy_j, 1e-3);
    setting_close(&s);
}

TEST(a_gang_is_so_many_gpus_with_their_parts_of_its_speed)
{
    struct setting s;
    struct bound b;
    struct err e = { 0 };

    setting_open(&s, "node a slow:4\nset theta 1\n", "job j at=0 workload=big steps=1000 gpus=2\n",
                 1000);
    const double took_s = 1000 / truth_gang_speed(&s.small.truth, BIG, SLOW, 2, 0);
    ck_assert_int_eq(bound_solve(&s.arena, &s.inputs, false, true, &b, &e), 0);
    ck_assert_double_eq_tol(b.energy_j, 4 * 10 * 1000 + 2 * 190 * took_s, 0.01);
    ck_assert_double_eq_tol(b.gpu_s, 2 * took_s, 0.01);
    setting_close(&s);
}

TEST(what_fits_nowhere_is_named)
{
    struct setting s;
    struct bound b;
    struct err e = { 0 };

    setting_open(&s, "node a slow:1\n", "job j at=0 workload=huge steps=10\n", 10);
    ck_assert_int_lt(bound_solve(&s.arena, &s.inputs, false, true, &b, &e), 0);
    ck_assert_ptr_nonnull(strstr(e.text, "huge"));
    setting_close(&s);
}

/* ---- the same, job by job ---- */

/* The plainest program: seconds of a type, a limit, and one job or two of them. Rates over the
 * period, as the bound's.
 */
struct plain {
    const struct study_inputs *inputs;
    bool has_limits;
    struct lp *lp;
    double base_w;
};

static void plain_rows(struct plain *p)
{
    const struct trace *t = &p->inputs->trace;
    double low[32], high[32], cost = p->base_w, one = 1, value[2] = { -1, -1 };
    int start[33] = { 0 }, column[2] = { 0, 2 }, row[2] = { 0, 1 };

    low[0] = low[1] = -INFINITY;
    high[0] = high[1] = 0;
    for (int i = 0; i < t->n_jobs; i++) {
        low[2 + i] = t->jobs[i].steps / p->inputs->arrivals_s;
        high[2 + i] = INFINITY;
    }
    lp_add_rows(p->lp, &(struct lp_lines){ 2 + t->n_jobs, low, high, NULL, start, row, value });
    lp_add_columns(p->lp, &(struct lp_lines){ 1, &one, &one, &cost, column, row, value });
}

static void plain_place(struct plain *p, int type, int limit_w, const int *jobs, int n)
{
    const struct truth *t = &p->inputs->ground.truth;
    const struct gpu_type *g = &p->inputs->cluster.types[type];
    double speed[2], watts = g->idle_w, low = 0, high = INFINITY, value[3] = { 1 };
    int row[3] = { type }, start[2] = { 0, 1 + n };
    struct limited l;

    for (int i = 0; i < n; i++) {
        const int w = truth_find_workload(t, p->inputs->trace.jobs[jobs[i]].workload);
        const int beside =
            n == 1 ? -1 : truth_find_workload(t, p->inputs->trace.jobs[jobs[1 - i]].workload);
        const double r = n == 1 ? 1 : truth_slowdown(t, w, type, beside);

        speed[i] = truth_speed(t, w, type) * r;
        watts += (truth_watts(t, w, type) - g->idle_w) * r;
    }
    ck_assert_double_le(watts, g->cap_w);    // no clock falls among big and small
    l = limits_apply(g, limit_w, watts);
    for (int i = 0; i < n; i++) {
        row[1 + i] = 2 + jobs[i];
        value[1 + i] = speed[i] * l.speed;
    }
    l.watts -= g->sleep_w;
    lp_add_columns(p->lp, &(struct lp_lines){ 1, &low, &high, &l.watts, start, row, value });
}

static void plain_type(struct plain *p, int type, int limit_w)
{
    for (int i = 0; i < p->inputs->trace.n_jobs; i++) {
        plain_place(p, type, limit_w, &i, 1);
        for (int k = 0; k < i; k++)
            plain_place(p, type, limit_w, (const int[]){ i, k }, 2);
    }
}

static double plain_energy(const struct study_inputs *s, bool has_limits)
{
    struct plain p = { s, has_limits, lp_create(), 20 };
    double energy_j;

    plain_rows(&p);
    for (int type = 0; type < 2; type++) {
        int limits[LIMITS_OFFERED];
        int n = has_limits ? limits_offer(&s->cluster.types[type], limits) : 0;

        plain_type(&p, type, 0);
        for (int i = 0; i < n; i++)
            plain_type(&p, type, limits[i]);
    }
    ck_assert(lp_solve(p.lp, LP_PRIMAL));
    energy_j = lp_cost(p.lp) * s->arrivals_s;
    lp_destroy(p.lp);
    return energy_j;
}

/* Ten jobs, each there twice, so that a job may be beside one like it. */
static const char *random_trace(struct arena *a, struct rng *r)
{
    const char *text = "";

    for (int i = 0; i < 10; i++) {
        const bool is_big = rng_uniform(r) < 0.5;
        const double steps = rng_between(r, 100, 1000);
        const double promise = rng_between(r, 0, is_big ? 20 : 8);

        text = arena_printf(a, "%sjob j%d at=0 workload=%s steps=%.0f min=%.3f\n", text, i,
                            is_big ? "big" : "small", steps, promise);
        text = arena_printf(a, "%sjob k%d at=0 workload=%s steps=%.0f min=%.3f\n", text, i,
                            is_big ? "big" : "small", steps, promise);
    }
    return text;
}

TIMES(classes_cost_what_single_jobs_cost, 12)
{
    const bool has_limits = _i % 2 == 1;
    struct setting s;
    struct arena a;
    struct bound b;
    struct err e = { 0 };
    struct rng r;

    arena_init(&a);
    rng_init(&r, (uint64_t)_i, "bound test");
    setting_open(&s, "node a slow:1 fast:1\n", random_trace(&a, &r), 2000);
    ck_assert_msg(bound_solve(&s.arena, &s.inputs, has_limits, true, &b, &e) == 0, "%s", e.text);
    ck_assert_double_eq_tol(b.horizon_s, 2000, 1e-6);
    ck_assert_double_eq_tol(b.energy_j / plain_energy(&s.inputs, has_limits), 1, 1e-6);
    setting_close(&s);
    arena_release(&a);
}

TEST(fewer_rules_never_cost_more)
{
    struct setting s;
    struct arena a;
    struct err e = { 0 };
    struct bound free_one, limited, awake;
    struct rng r;

    arena_init(&a);
    rng_init(&r, 7, "bound test");
    setting_open(&s, "node a slow:1 fast:1\n", random_trace(&a, &r), 2000);
    ck_assert_int_eq(bound_solve(&a, &s.inputs, false, true, &free_one, &e), 0);
    ck_assert_int_eq(bound_solve(&a, &s.inputs, true, true, &limited, &e), 0);
    ck_assert_int_eq(bound_solve(&a, &s.inputs, false, false, &awake, &e), 0);
    ck_assert_double_lt(limited.energy_j, free_one.energy_j);
    ck_assert_double_gt(awake.energy_j, free_one.energy_j);
    ck_assert_double_le(free_one.least_j, free_one.energy_j * (1 + 1e-9));
    setting_close(&s);
    arena_release(&a);
}

/* ---- simulations ---- */

static const struct {
    const char *policy;
    bool has_limits;
} policies[] = {
    { "fifo-fastest", false }, { "greedy", true },       { "gogh", false },
    { "gogh", true },          { "gogh-oracle", false }, { "gogh-oracle", true },
};

EACH(no_simulation_uses_less, policies)
{
    struct study_run k = {
        .scenario = scenario_by_name("builtin"),
        .load = 0.7,
        .policy = policies[_i].policy,
        .seed = 3,
        .has_sleep = true,
        .has_limits = policies[_i].has_limits,
        .without = "",
    };
    struct sim_result r;
    struct sim *sim;
    struct study_inputs s;
    struct arena a;
    struct bound b;
    struct err e = { 0 };

    arena_init(&a);
    ck_assert_msg(scenario_open(&a, &k, "/nowhere", &s, &e) == 0, "%s", e.text);
    s.trace.n_jobs = 60;
    s.arrivals_s = s.trace.jobs[59].at_s;
    ck_assert_int_eq(bound_solve(&a, &s, k.has_limits, true, &b, &e), 0);
    const struct sim_options o = {
        .cluster = &s.cluster,
        .trace = &s.trace,
        .truth = &s.ground.truth,
        .policy = k.policy,
        .seed = 3,
    };
    ck_assert_msg(sim_create(&o, &sim, &e) == 0, "%s", e.text);
    ck_assert_int_eq(sim_advance(sim, INFINITY, &e), 0);
    sim_result(sim, &r);
    ck_assert_int_eq(r.n_finished, s.trace.n_jobs);
    ck_assert_double_eq_tol(r.work_s / b.work_s, 1, 1e-6);
    ck_assert_msg(r.energy_j > b.least_j, "%s: %g J, and the bound is %g", k.policy, r.energy_j,
                  b.least_j);
    ck_assert_double_gt(b.least_j, r.energy_j / 3);    // nor is it for nothing
    sim_destroy(sim);
    scenario_close(&s);
    arena_release(&a);
}
