#include "sim/hindsight.h"

#include <errno.h>
#include <math.h>

#include "base/arena.h"
#include "base/err.h"
#include "catalog/catalog.h"
#include "catalog/cluster/cluster.h"
#include "catalog/cluster/state.h"
#include "sim/sim.h"
#include "sim/trace/trace.h"
#include "sim/world/truth.h"

/* One world for every question about a period: its noise is the same whoever asks. */
#define HINDSIGHT_SEED 1

/* ---- the nodes ---- */

/* What is down does no work and draws nothing, so it did not then either: as far as is known. */
static bool is_there(const struct state *s, int node)
{
    return s->nodes[node].state != NODE_DOWN;
}

/* The types that nodes use, with the catalog's figures; 'index' (n_types of the catalog) gets where
 * each stands, -1: nowhere.
 */
static int use_types(struct arena *a, const struct state *s, const struct catalog *c,
                     struct cluster *out, int *index, struct err *e)
{
    out->types = ARENA_ARRAY(a, struct gpu_type, (size_t)c->n_types);
    out->is_described = ARENA_ARRAY(a, bool, (size_t)c->n_types);
    for (int t = 0; t < c->n_types; t++)
        index[t] = -1;
    for (int g = 0; g < s->n_gpus; g++) {
        int type = s->gpus[g].type;

        if (index[type] >= 0 || !is_there(s, s->gpus[g].node))
            continue;
        int rc = gpu_type_check(&c->types[type], e);
        if (rc < 0)
            return rc;
        index[type] = out->n_types;
        out->types[out->n_types++] = c->types[type];
    }
    return 0;
}

int hindsight_cluster(struct arena *a, const struct state *s, const struct catalog *c,
                      const struct cluster_settings *set, struct cluster *out, struct err *e)
{
    int *index = ARENA_ARRAY(a, int, (size_t)c->n_types), rc;

    *out = (struct cluster){ .settings = *set };
    rc = use_types(a, s, c, out, index, e);
    if (rc < 0)
        return rc;
    out->nodes = ARENA_ARRAY(a, struct cluster_node, (size_t)s->n_nodes);
    for (int i = 0; i < s->n_nodes; i++) {
        const struct node *n = &s->nodes[i];
        int *types = ARENA_ARRAY(a, int, (size_t)n->n_gpus);

        if (!is_there(s, i))
            continue;
        for (int k = 0; k < n->n_gpus; k++)
            types[k] = index[s->gpus[n->first_gpu + k].type];
        out->n_gpus += n->n_gpus;
        out->nodes[out->n_nodes++] =
            (struct cluster_node){ .name = n->name, .n_gpus = n->n_gpus, .types = types };
    }
    return 0;
}

/* ---- the jobs ---- */

/* Steps that it did, or that it will have done; 0: nobody knows of any. */
static double steps_of(const struct job *j)
{
    bool is_done = j->state == JOB_FINISHED && !j->spec.is_guess;    // whatever was heard of it

    if (is_done || (!job_is_over(j) && !j->spec.is_guess))
        return j->spec.steps;
    return fmax(j->steps_done, 0);
}

/* Seconds that a server ran, or was asked to; 0: it never did. */
static double served_s(const struct job *j)
{
    if (!job_is_over(j))
        return j->spec.duration_s;
    return isnan(j->started_s) ? 0 : fmax(j->changed_s - j->started_s, 0);
}

/* "v100,a100" of those that nodes have; NULL: any. */
static const char *types_of(struct arena *a, const struct job_spec *spec, const struct catalog *c,
                            const struct cluster *cl, bool *is_none)
{
    const char *names = NULL;

    for (int t = 0; t < cl->n_types && spec->allowed_types; t++) {
        int type = catalog_find_type(c, cl->types[t].name);

        if (job_allows(spec, type))
            names = names ? arena_printf(a, "%s,%s", names, cl->types[t].name) : cl->types[t].name;
    }
    *is_none = spec->allowed_types && !names;
    return names;
}

/* The job once more; false: it did nothing that could be done again, or not on these nodes. A part
 * of the steps has that part of the time to its deadline: the promise is as steep as it was.
 */
static bool repeat(struct arena *a, const struct job *j, const struct catalog *c,
                   const struct cluster *cl, struct trace_job *out)
{
    const struct job_spec *spec = &j->spec;
    bool is_inference = spec->kind == JOB_INFERENCE, is_none;
    double steps = is_inference ? 0 : steps_of(j), serves_s = is_inference ? served_s(j) : 0;

    *out = (struct trace_job){
        .name = arena_printf(a, "%d", j->id),    // names may be used again, ids are not
        .owner = spec->owner,
        .at_s = spec->submit_s,
        .workload = c->workloads[spec->workload].name,
        .is_inference = is_inference,
        .steps = steps,
        .rate = spec->rate,
        .duration_s = serves_s,
        .min_throughput = spec->min_throughput,
        .deadline_s = is_inference ? spec->deadline_s - spec->submit_s
                                   : (spec->deadline_s - spec->submit_s) * steps / spec->steps,
        .n_gpus = spec->n_gpus,
        .max_gpus = spec->max_gpus,
        .priority = spec->priority,
        .urgency = spec->urgency,
        .is_exclusive = spec->is_exclusive,
        .n_nodes = spec->n_nodes,
        .types = types_of(a, spec, c, cl, &is_none),
    };
    return (is_inference ? serves_s > 0 : steps > 0) && !is_none;
}

int hindsight_trace(struct arena *a, const struct hindsight *h, const struct cluster *cl,
                    struct trace *out, struct err *e)
{
    const struct state *s = h->state;
    int n_here = 0;

    *out = (struct trace){ .name = "hindsight" };
    for (int i = 0; i < s->n_jobs; i++)
        n_here += s->jobs[i]->spec.submit_s >= h->from_s && s->jobs[i]->spec.submit_s < h->to_s;
    struct trace_job *end = ARENA_ARRAY(a, struct trace_job, (size_t)n_here) + n_here;
    for (int i = s->n_jobs - 1; i >= 0 && out->n_jobs < h->n_jobs_max; i--) {
        const struct job *j = s->jobs[i];

        if (j->spec.submit_s >= h->from_s && j->spec.submit_s < h->to_s)
            out->n_jobs += repeat(a, j, h->catalog, cl, end - out->n_jobs - 1);
    }
    if (out->n_jobs == 0 || cl->n_gpus == 0)
        return err_set(e, ENOENT,
                       "of %d jobs submitted in this period none did work that is known, or "
                       "there are no GPUs",
                       n_here);
    out->jobs = end - out->n_jobs;    // equal times in the order of submission
    trace_sort(a, out);
    trace_begin_at_first(out);
    return 0;
}

/* ---- the runs ---- */

static int run(const struct sim_options *o, struct hindsight_run *out, struct err *e)
{
    struct sim *s = NULL;
    struct sim_result r;
    int rc = sim_create(o, &s, e);

    if (rc == 0)
        rc = sim_advance(s, INFINITY, e);
    if (rc == 0) {
        sim_result(s, &r);
        *out = (struct hindsight_run){
            .policy = o->policy,
            .n_jobs = r.n_jobs,
            .n_finished = r.n_finished,
            .energy_j = r.energy_j,
            .work_s = r.work_s,
            .joules_per_work = r.work_s > 0 ? r.energy_j / r.work_s : (double)NAN,
            .promise_attainment = r.promise_attainment,
            .mean_jct_s = r.mean_jct_s,
        };
    }
    sim_destroy(s);
    return rc;
}

int hindsight_run(struct arena *a, const struct hindsight *h, struct hindsight_run *out,
                  struct err *e)
{
    struct cluster cl;
    struct trace trace;
    struct truth truth;
    int rc = hindsight_cluster(a, h->state, h->catalog, h->settings, &cl, e);

    if (rc == 0)
        rc = hindsight_trace(a, h, &cl, &trace, e);
    if (rc == 0)
        rc = truth_from_beliefs(&truth, h->catalog, h->est, e);
    if (rc < 0)
        return rc;
    for (int i = 0; i < h->n_policies && rc == 0; i++)
        rc = run(&(struct sim_options){ .cluster = &cl,
                                        .trace = &trace,
                                        .truth = &truth,
                                        .policy = h->policies[i],
                                        .known = h->catalog,
                                        .seed = HINDSIGHT_SEED },
                 &out[i], e);
    truth_release(&truth);
    return rc;
}
