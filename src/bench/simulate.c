/* simulate.c - how fast the simulator is: with a trivial policy, with greedy, and, as a study runs
 * it, with the policy gogh.
 */
#include "bench/bench.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "catalog/cluster/cluster.h"
#include "sim/ground.h"
#include "sim/sim.h"
#include "sim/trace/generate.h"
#include "study/run.h"
#include "study/scenario/scenario.h"

/* A run of the simulator. */
struct sim_bench {
    const char *cluster, *policy;
    int n_jobs;
    double seconds;    // that it took
    struct sim_result result;
};

/* In a process that ends afterwards: nothing is tidied up. */
static int run_sim(struct arena *a, struct sim_bench *b, struct err *e)
{
    struct cluster cluster;
    struct ground ground;
    struct trace trace;
    struct trace_draw draw;
    struct sim *sim;
    struct trace_generate how = { .n_jobs = b->n_jobs, .load = 0.7, .seed = 1 };
    struct sim_options o = {
        .cluster = &cluster, .trace = &trace, .truth = &ground.truth, .policy = b->policy, .seed = 1
    };

    int rc = cluster_parse(a, "bench cluster", b->cluster, strlen(b->cluster), &cluster, e);
    if (rc == 0)
        rc = ground_builtin(&ground, &cluster, NULL, "p100", 1, e);
    if (rc == 0)
        rc = trace_draw_init(&draw, a, &ground.truth, &cluster, "p100", 1, e);
    if (rc == 0)
        rc = trace_generate(a, &how, &draw, &cluster, &trace, e);
    if (rc == 0)
        rc = sim_create(&o, &sim, e);
    double began_s = clock_stopwatch_s();
    if (rc == 0)
        rc = sim_advance(sim, INFINITY, e);
    b->seconds = clock_stopwatch_s() - began_s;
    if (rc == 0)
        sim_result(sim, &b->result);
    return rc;
}

int bench_sim_events(struct arena *a, const char *scratch, struct bench_figures *out, struct err *e)
{
    struct sim_bench b = { .cluster = "node n[1-16] k80:1 p100:1 v100:1 a100:1\nset decide_s 3600\n"
                                      "set report_s 1e9\n",
                           .policy = "fifo-first",
                           .n_jobs = 400000 };

    (void)scratch;
    int rc = run_sim(a, &b, e);
    out->value = (double)b.result.n_events / b.seconds;
    out->detail[0] = (double)b.result.n_events;
    out->detail[1] = b.seconds;
    return rc;
}

int bench_sim_greedy(struct arena *a, const char *scratch, struct bench_figures *out, struct err *e)
{
    struct sim_bench b = { .cluster = "node n[1-250] k80:1 p100:1 v100:1 a100:1\n",
                           .policy = "greedy",
                           .n_jobs = 100000 };

    (void)scratch;
    int rc = run_sim(a, &b, e);
    out->value = b.seconds;
    out->detail[0] = (double)b.result.n_decisions;
    out->detail[1] = b.result.decision_p99_s;
    return rc;
}

/* ---- runs of a study ---- */

static int time_run(struct arena *a, const struct study_run *k, struct bench_figures *out,
                    struct err *e)
{
    struct study_result r = { 0 };
    int rc = study_run_do(a, k, bench_data_dir(), &r, e);

    out->value = r.wall_s;
    out->detail[0] = (double)r.decisions;
    out->detail[1] = r.decision_p99_s;
    return rc;
}

int bench_study_large(struct arena *a, const char *scratch, struct bench_figures *out,
                      struct err *e)
{
    const struct study_run k = { .scenario = scenario_by_name("large"),
                                 .load = 0.9,
                                 .policy = "gogh",
                                 .seed = 11,
                                 .has_sleep = true,
                                 .has_limits = true,
                                 .without = "" };

    (void)scratch;
    return time_run(a, &k, out, e);
}

int bench_study_alibaba(struct arena *a, const char *scratch, struct bench_figures *out,
                        struct err *e)
{
    const struct study_run k = { .scenario = scenario_by_name("alibaba"),
                                 .policy = "gogh",
                                 .seed = 11,
                                 .has_sleep = true,
                                 .without = "" };

    (void)scratch;
    return time_run(a, &k, out, e);
}
