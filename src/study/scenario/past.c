#include "study/scenario/past.h"

#include <math.h>
#include <stdlib.h>

#include "base/grow.h"
#include "catalog/catalog.h"
#include "sim/sim.h"
#include "study/scenario/jobs.h"

/* From a run's seed to that of its past: no study has as many seeds. */
#define PAST_SEED 1000000

/* What the policy had measured at the end of these jobs. */
static int live_through(const struct study_run *k, const struct study_inputs *in,
                        const struct trace *jobs, struct catalog *out, struct err *e)
{
    const struct sim_options o = {
        .cluster = &in->cluster,
        .trace = jobs,
        .truth = &in->ground.truth,
        .policy = k->policy,
        .reference = in->reference,
        .seed = (uint64_t)k->seed,
        .without = study_run_without(k),
    };
    struct sim *s = NULL;
    int rc = sim_create(&o, &s, e);

    if (rc == 0)
        rc = sim_advance(s, INFINITY, e);
    if (rc == 0)
        rc = sim_adopt(out, sim_catalog(s), NULL, e);
    sim_destroy(s);
    return rc;
}

int past_live(const struct study_run *k, const char *data, const struct study_inputs *in,
              struct pretraining *out, struct err *e)
{
    struct scenario lived = *k->scenario;
    struct study_run past = *k;
    struct trace jobs;
    struct arena a;

    lived.n_jobs = lived.history_jobs;
    past.scenario = &lived;
    past.seed = k->seed + PAST_SEED;
    arena_init(&a);
    out->catalog = heap_array(1, sizeof *out->catalog);
    catalog_init(out->catalog);
    int rc = jobs_make(&a, &past, data, &in->cluster, &in->ground.truth, &jobs, e);
    if (rc == 0)
        rc = live_through(&past, in, &jobs, out->catalog, e);
    if (rc < 0)
        pretraining_release(out);
    arena_release(&a);
    return rc;
}
