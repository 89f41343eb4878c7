/* bench_study.c - how long the simulator takes with the policy gogh: `gogh bench study`.
 */
#include "cli/bench.h"

#include <assert.h>
#include <errno.h>

#include "base/arena.h"
#include "study/run.h"
#include "study/scenario.h"

static int run_key_do(const struct run_key *k, struct reading *out, struct err *e)
{
    struct run_result r = { 0 };
    struct arena a;

    arena_init(&a);
    int rc = run_do(&a, k, bench_data_dir(), &r, e);
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

int bench_study_data(const char *scratch, struct reading *out, struct err *e)
{
    (void)scratch;
    (void)out;
    return has_data("large", e);
}

int bench_study_large(const char *scratch, struct reading *out, struct err *e)
{
    struct run_key k = { .scenario = scenario_by_name("large"),
                         .load = 0.9,
                         .policy = "gogh",
                         .seed = 11,
                         .has_sleep = true,
                         .has_limits = true,
                         .without = "" };

    (void)scratch;
    return run_key_do(&k, out, e);
}

int bench_alibaba_data(const char *scratch, struct reading *out, struct err *e)
{
    (void)scratch;
    (void)out;
    return has_data("alibaba", e);
}

int bench_study_alibaba(const char *scratch, struct reading *out, struct err *e)
{
    struct run_key k = { .scenario = scenario_by_name("alibaba"),
                         .policy = "gogh",
                         .seed = 11,
                         .has_sleep = true,
                         .without = "" };

    (void)scratch;
    return run_key_do(&k, out, e);
}
