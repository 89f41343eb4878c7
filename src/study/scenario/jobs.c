#include "study/scenario/jobs.h"

#include <errno.h>
#include <math.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/rng.h"
#include "catalog/catalog.h"
#include "sim/trace/generate.h"
#include "sim/trace/import.h"
#include "study/scenario/data.h"
#include "study/scenario/site.h"

/* What all builders of jobs need. */
struct job_builder {
    struct arena *arena;
    const struct study_run *key;
    const char *data;
    const struct cluster *cluster;
    struct trace_draw draw;
};

/* ---- load ---- */

static int largest_node(const struct cluster *cl)
{
    int n = 0;

    for (int i = 0; i < cl->n_nodes; i++)
        n = cl->nodes[i].n_gpus > n ? cl->nodes[i].n_gpus : n;
    return n;
}

/* On the reference, else on the first type where it fits. */
static double offered_by(const struct trace_draw *d, int node_max, const struct trace_job *j)
{
    const int w = truth_find_workload(d->truth, j->workload);
    const int type = w >= 0 ? truth_counted_on(d->truth, w, d->reference) : -1;

    if (type < 0)
        return 0;
    if (j->is_inference)
        return j->rate * j->duration_s / truth_speed(d->truth, w, type);
    return j->n_gpus * j->steps /
           truth_gang_speed(d->truth, w, type, j->n_gpus, j->n_gpus > node_max);
}

double jobs_offered_s(const struct trace_draw *d, const struct cluster *cl, const struct trace *t)
{
    const int node_max = largest_node(cl);
    double sum = 0;

    for (int i = 0; i < t->n_jobs; i++)
        sum += offered_by(d, node_max, &t->jobs[i]);
    return sum;
}

double jobs_load(const struct trace_draw *d, const struct cluster *cl, const struct trace *t)
{
    const double period_s = t->n_jobs > 0 ? t->jobs[t->n_jobs - 1].at_s : 0;

    return jobs_offered_s(d, cl, t) / (trace_capacity(d, cl) * period_s);
}

/* ---- thinning ---- */

static void keep_some(struct arena *a, double chance, int seed, struct trace *t)
{
    struct trace_job *kept = ARENA_ARRAY(a, struct trace_job, (size_t)t->n_jobs);
    struct rng r;
    int n = 0;

    rng_init(&r, (uint64_t)seed, "jobs kept");
    for (int i = 0; i < t->n_jobs; i++)
        if (rng_uniform(&r) < chance)
            kept[n++] = t->jobs[i];
    t->jobs = kept;
    t->n_jobs = n;
}

static void keep_in_a_row(int n_jobs, int seed, struct trace *t)
{
    struct rng r;

    if (n_jobs <= 0 || t->n_jobs <= n_jobs)
        return;
    rng_init(&r, (uint64_t)seed, "jobs in a row");
    t->jobs += rng_below(&r, (uint64_t)t->n_jobs - (uint64_t)n_jobs + 1);
    t->n_jobs = n_jobs;
}

int jobs_thin(struct arena *a, const struct trace_draw *d, const struct cluster *cl, double load,
              int n_jobs, int seed, struct trace *t, struct err *e)
{
    double factor, first_s;

    keep_some(a, load / jobs_load(d, cl, t), seed, t);
    keep_in_a_row(n_jobs, seed, t);
    if (t->n_jobs < 2 || !(t->jobs[t->n_jobs - 1].at_s > t->jobs[0].at_s))
        return err_set(e, EINVAL, "%s: too few jobs are left at load %g: choose a larger one",
                       t->name != NULL ? t->name : "trace", load);
    first_s = t->jobs[0].at_s;
    for (int i = 0; i < t->n_jobs; i++)
        t->jobs[i].at_s -= first_s;
    factor = jobs_load(d, cl, t) / load;
    for (int i = 0; i < t->n_jobs; i++)
        t->jobs[i].at_s = round(t->jobs[i].at_s * factor * 1000) / 1000;
    return 0;
}

/* ---- published traces ---- */

/* Those of Gavel's MSR traces that have more than 500 jobs; each is there for five seeds. */
static const char *const msr_names[] = { "0e4a51", "103959", "11cb48", "2869ce", "6214e9", "6c71a0",
                                         "7f04ca", "b436b2", "e13805", "ed69ec", "ee9e8c" };
enum { MSR_NAMES = 11, MSR_SEEDS = 5 };

static int make_msr(struct job_builder *m, struct trace *out, struct err *e)
{
    struct trace_import in = { .draw = &m->draw, .gang_max = trace_gang_max(m->cluster) };
    struct rng r;
    int rc;

    rng_init(&r, (uint64_t)m->key->seed, "msr file");
    in.name = msr_names[rng_below(&r, MSR_NAMES)];
    in.name = arena_printf(m->arena, "traces/msr/seed=%d/%s.trace", (int)rng_below(&r, MSR_SEEDS),
                           in.name);
    rc = data_read(m->arena, m->data, DATA_GAVEL_TRACES, in.name, &in.text, &in.len, e);
    return rc < 0 ? rc : trace_import_gavel(m->arena, &in, out, e);
}

static int make_philly(struct job_builder *m, struct trace *out, struct err *e)
{
    struct trace_import in = {
        .name = "philly",
        .draw = &m->draw,
        .gang_max = trace_gang_max(m->cluster),
    };
    int rc = data_read(m->arena, m->data, DATA_PHILLY, NULL, &in.text, &in.len, e);

    return rc < 0 ? rc : trace_import_philly(m->arena, &in, out, e);
}

static int make_alibaba(struct job_builder *m, struct trace *out, struct err *e)
{
    struct trace_import in = { .name = "openb pods", .draw = &m->draw };
    int rc = data_read(m->arena, m->data, DATA_OPENB_PODS, NULL, &in.text, &in.len, e);

    return rc < 0 ? rc : trace_import_alibaba(m->arena, &in, out, e);
}

/* ---- services ---- */

#define HOUR_S 3600.0

/* Asked most at 'peak_h' of the day, 'peak' times what one reference GPU serves; least half a
 * day later, by 'depth' less; a cosine between.
 */
struct study_service {
    int workload;
    double peak, depth, peak_h, first_s;
};

static struct study_service draw_service(struct trace_draw *d, struct rng *r)
{
    return (struct study_service){
        .workload = draw_workload(d, 1),
        .peak = rng_between(r, 0.4, 0.8),
        .depth = rng_between(r, 0.5, 0.9),
        .peak_h = rng_between(r, 0, 24),
        .first_s = round(rng_between(r, 0, HOUR_S)),
    };
}

static double mean_rate(const struct study_service *s)
{
    return s->peak * (1 - s->depth / 2);
}

static double rate_at(const struct study_service *s, double time_s)
{
    const double turn = 2 * M_PI * (time_s / HOUR_S - s->peak_h) / 24;

    return s->peak * (1 - s->depth * (1 - cos(turn)) / 2);
}

/* As many services as take 'demand' reference GPUs on average over the day, and exactly that. */
static struct study_service *draw_services(struct job_builder *m, double demand, int *n)
{
    const int most = 2 + (int)(demand / (0.4 * (1 - 0.9 / 2)));
    struct study_service *all = ARENA_ARRAY(m->arena, struct study_service, (size_t)most);
    double sum = 0;
    struct rng r;

    rng_init(&r, (uint64_t)m->key->seed, "services");
    *n = 0;
    while (sum < demand) {
        all[*n] = draw_service(&m->draw, &r);
        sum += mean_rate(&all[(*n)++]);
    }
    for (int i = 0; i < *n; i++)
        all[i].peak *= demand / sum;
    return all;
}

/* One job for each hour, from the service's first one until 'until_s'. */
static int serve(struct arena *a, const struct trace_draw *d, const struct study_service *s,
                 int index, double until_s, struct trace_job *out)
{
    const int n = (int)fmax(ceil((until_s - s->first_s) / HOUR_S), 0);

    for (int h = 0; h < n; h++) {
        const double at_s = s->first_s + h * HOUR_S;

        out[h] = (struct trace_job){
            .name = arena_printf(a, "s%03d-h%03d", index, h),
            .owner = arena_printf(a, "service-%03d", index),
            .at_s = at_s,
            .workload = d->truth->catalog->workloads[s->workload].name,
            .is_inference = true,
            .rate =
                rate_at(s, at_s + HOUR_S / 2) * truth_speed(d->truth, s->workload, d->reference),
            .duration_s = HOUR_S,
            .deadline_s = NAN,
            .n_gpus = 1,
            .max_gpus = 1,
        };
    }
    return n;
}

static int make_served(struct job_builder *m, struct trace *out, struct err *e)
{
    const struct trace_generate how = {
        .n_jobs = m->key->scenario->n_jobs,
        .load = m->key->load * (1 - m->key->scenario->served),
        .seed = (uint64_t)m->key->seed,
    };
    const double demand =
        m->key->load * m->key->scenario->served * trace_capacity(&m->draw, m->cluster);
    struct study_service *services;
    struct trace training;
    double until_s;
    int n_services;

    if (trace_generate(m->arena, &how, &m->draw, m->cluster, &training, e) < 0)
        return -EINVAL;
    until_s = training.jobs[training.n_jobs - 1].at_s;
    services = draw_services(m, demand, &n_services);
    *out = (struct trace){
        .jobs = ARENA_ARRAY(m->arena, struct trace_job,
                            (size_t)training.n_jobs +
                                (size_t)n_services * ((size_t)(until_s / HOUR_S) + 1)),
    };
    for (int i = 0; i < training.n_jobs; i++)
        out->jobs[out->n_jobs++] = training.jobs[i];
    for (int i = 0; i < n_services; i++)
        out->n_jobs +=
            serve(m->arena, &m->draw, &services[i], i + 1, until_s, &out->jobs[out->n_jobs]);
    trace_sort(m->arena, out);
    return 0;
}

/* ---- all of them ---- */

static int make_drawn(struct job_builder *m, struct trace *out, struct err *e)
{
    const struct trace_generate how = {
        .n_jobs = m->key->scenario->n_jobs,
        .load = m->key->load,
        .seed = (uint64_t)m->key->seed,
    };

    return trace_generate(m->arena, &how, &m->draw, m->cluster, out, e);
}

static int make_site(struct job_builder *m, struct trace *out, struct err *e)
{
    return site_jobs(m->arena, m->key, m->cluster, m->draw.truth, out, e);
}

static bool is_of_model(const struct trace_draw *d, int workload, const char *model)
{
    double batch;

    return slice_is(workload_name_split(d->truth->catalog->workloads[workload].name, &batch),
                    model);
}

/* Of a list of workloads, those of the scenario's models are left; returns how many. */
static int keep_models(const struct scenario *s, const struct trace_draw *d, int *workloads, int n)
{
    int kept = 0;

    for (int i = 0; i < n; i++) {
        bool is_one = false;

        for (int k = 0; k < s->n_models && !is_one; k++)
            is_one = is_of_model(d, workloads[i], s->models[k]);
        if (is_one)
            workloads[kept++] = workloads[i];
    }
    return kept;
}

static bool has_model(const struct trace_draw *d, const char *model)
{
    bool has = false;

    for (int i = 0; i < d->n_training && !has; i++)
        has = is_of_model(d, d->training[i], model);
    for (int i = 0; i < d->n_inference && !has; i++)
        has = is_of_model(d, d->inference[i], model);
    return has;
}

/* Draw of the scenario's models alone; every one of them must be there to be drawn. */
static int choose_models(const struct scenario *s, struct trace_draw *d, struct err *e)
{
    const bool is_one_list = d->inference == d->training;

    for (int i = 0; i < s->n_models; i++)
        if (!has_model(d, s->models[i]))
            return err_set(e, EINVAL,
                           "scenario %s: models %s: the ground truth has none of that name that "
                           "runs alone on the reference GPU ('gogh catalog models' has names)",
                           s->name, s->models[i]);
    if (s->n_models == 0)
        return 0;
    d->n_training = keep_models(s, d, d->training, d->n_training);
    d->n_inference = is_one_list ? d->n_training : keep_models(s, d, d->inference, d->n_inference);
    if (d->n_training == 0 || (s->jobs == JOBS_SERVED && d->n_inference == 0))
        return err_set(e, EINVAL, "scenario %s: models: none of them %s: add one that does",
                       s->name, d->n_training == 0 ? "is trained" : "serves");
    return 0;
}

/* What jobs are drawn from; of a trace as it is, nothing is. */
static int init_draw(struct job_builder *m, const struct truth *t, struct err *e)
{
    const struct scenario *s = m->key->scenario;

    if (scenario_is_site(s) && !(m->key->load > 0)) {
        m->draw.truth = t;
        return 0;
    }
    int rc =
        trace_draw_init(&m->draw, m->arena, t, m->cluster, s->reference, (uint64_t)m->key->seed, e);
    if (rc == 0)
        rc = choose_models(s, &m->draw, e);
    if (rc == 0 && s->promise_high > 0) {
        m->draw.promise_low = s->promise_low;
        m->draw.promise_high = s->promise_high;
    }
    return rc;
}

/* Services beside the jobs, of which those are left out that come when all services have ended. */
static void add_services(struct job_builder *m, const struct scenario *s, struct trace *out)
{
    const double end_s = s->service_days * 24 * HOUR_S;

    trace_generate_services(m->arena,
                            &(struct trace_generate_services){ .n_services = s->n_services,
                                                               .rate = s->service_rate,
                                                               .end_s = end_s,
                                                               .seed = (uint64_t)m->key->seed },
                            &m->draw, out);
    while (out->n_jobs > 0 && out->jobs[out->n_jobs - 1].at_s >= end_s)
        out->n_jobs--;
}

int jobs_make(struct arena *a, const struct study_run *k, const char *data,
              const struct cluster *cl, const struct truth *t, struct trace *out, struct err *e)
{
    static int (*const makers[])(struct job_builder *, struct trace *, struct err *) = {
        [JOBS_DRAWN] = make_drawn,   [JOBS_SERVED] = make_served,   [JOBS_MSR] = make_msr,
        [JOBS_PHILLY] = make_philly, [JOBS_ALIBABA] = make_alibaba, [JOBS_TRACE] = make_site,
        [JOBS_SACCT] = make_site,
    };
    const struct scenario *s = k->scenario;
    struct job_builder m = { .arena = a, .key = k, .data = data, .cluster = cl };
    int rc = init_draw(&m, t, e);

    if (rc == 0)
        rc = makers[s->jobs](&m, out, e);
    if (rc < 0)
        return rc;
    out->name = s->name;
    if (s->n_services > 0)
        add_services(&m, s, out);
    if (k->load > 0 && s->jobs != JOBS_DRAWN && s->jobs != JOBS_SERVED)
        rc = jobs_thin(a, &m.draw, cl, k->load, s->n_jobs, k->seed, out, e);
    return rc;
}
