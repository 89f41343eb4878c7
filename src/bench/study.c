/* study.c - how long the simulator takes with the policy gogh: `gogh bench study`.
 */
#include "bench/bench.h"

#include <assert.h>
#include <errno.h>

#include "base/arena.h"
#include "study/run.h"
#include "study/scenario.h"

static int time_run(const struct study_run *k, struct bench_figures *out, struct err *e)
{
    struct study_result r = { 0 };
    struct arena a;

    arena_init(&a);
    int rc = study_run_do(&a, k, bench_data_dir(), &r, e);
    out->value = r.wall_s;
    out->detail[0] = (double)r.decisions;
    out->detail[1] = r.decision_p99_s;
    arena_release(&a);
    return rc;
}

static int has_data(const char *name, struct err *e)
{
    const struct scenario *s = scenario_by_name(name);

    assert(s);
    return scenario_has_data(s, bench_data_dir(), e) ? 0 : -ENOENT;
}

int bench_study_data(const char *scratch, struct bench_figures *out, struct err *e)
{
    (void)scratch;
    (void)out;
    return has_data("large", e);
}

int bench_study_large(const char *scratch, struct bench_figures *out, struct err *e)
{
    struct study_run k = { .scenario = scenario_by_name("large"),
                           .load = 0.9,
                           .policy = "gogh",
                           .seed = 11,
                           .has_sleep = true,
                           .has_limits = true,
                           .without = "" };

    (void)scratch;
    return time_run(&k, out, e);
}

int bench_alibaba_data(const char *scratch, struct bench_figures *out, struct err *e)
{
    (void)scratch;
    (void)out;
    return has_data("alibaba", e);
}

int bench_study_alibaba(const char *scratch, struct bench_figures *out, struct err *e)
{
    struct study_run k = { .scenario = scenario_by_name("alibaba"),
                           .policy = "gogh",
                           .seed = 11,
                           .has_sleep = true,
                           .without = "" };

    (void)scratch;
    return time_run(&k, out, e);
}
