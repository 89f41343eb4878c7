#include "sim/trace/generate.h"

#include <errno.h>
#include <math.h>

#include "base/arena.h"
#include "base/err.h"
#include "catalog/catalog.h"
#include "catalog/cluster/cluster.h"
#include "sim/world/serving.h"
#include "sim/world/truth.h"

static int find_types(struct trace_draw *d, struct arena *a, const struct cluster *cl,
                      struct err *e)
{
    d->n_types = cl != NULL ? cl->n_types : d->truth->n_types;
    d->types = ARENA_ARRAY(a, int, (size_t)d->n_types);
    for (int i = 0; i < d->n_types; i++) {
        d->types[i] = cl != NULL ? truth_find_type(d->truth, cl->types[i].name) : i;
        if (d->types[i] < 0)
            return err_set(e, EINVAL,
                           "the ground truth has no GPU type '%s' of the cluster: import "
                           "measurements of it, or work without --truth",
                           cl->types[i].name);
    }
    return 0;
}

static void find_workloads(struct trace_draw *d, struct arena *a)
{
    const struct truth *t = d->truth;

    d->training = ARENA_ARRAY(a, int, (size_t)t->n_workloads);
    d->inference = ARENA_ARRAY(a, int, (size_t)t->n_workloads);
    for (int w = 0; w < t->n_workloads; w++) {
        if (truth_speed(t, w, d->reference) <= 0)
            continue;
        if (t->catalog->workloads[w].is_inference)
            d->inference[d->n_inference++] = w;
        else
            d->training[d->n_training++] = w;
    }
    if (d->n_inference == 0) {
        d->inference = d->training;
        d->n_inference = d->n_training;
    }
}

/* The mean over training workloads of the speed on 'type' over that on the reference. */
static double relative_speed(const struct trace_draw *d, int type)
{
    double sum = 0;

    for (int i = 0; i < d->n_training; i++)
        sum += truth_speed(d->truth, d->training[i], type) /
               truth_speed(d->truth, d->training[i], d->reference);
    return sum / d->n_training;
}

int trace_draw_init(struct trace_draw *d, struct arena *a, const struct truth *truth,
                    const struct cluster *cl, const char *reference, uint64_t seed, struct err *e)
{
    double best = 0;

    *d = (struct trace_draw){
        .truth = truth,
        .reference = truth_reference(truth, reference),
        .fastest = -1,
        .promise_low = 0.3,
        .promise_high = 0.9,
    };
    if (d->reference < 0)
        return err_set(e, EINVAL,
                       "the ground truth has no GPU type '%s': choose another --reference",
                       reference);
    if (find_types(d, a, cl, e) < 0)
        return -EINVAL;
    find_workloads(d, a);
    if (d->n_training == 0)
        return err_set(e, EINVAL,
                       "no training workload of the ground truth fits on '%s': choose a "
                       "larger --reference",
                       truth->catalog->types[d->reference].name);
    for (int i = 0; i < d->n_types; i++) {
        double speed = relative_speed(d, d->types[i]);

        if (speed > best) {
            best = speed;
            d->fastest = d->types[i];
        }
    }
    rng_init(&d->workloads, seed, "trace workloads");
    rng_init(&d->promises, seed, "trace promises");
    rng_init(&d->work, seed, "trace work");
    rng_init(&d->rates, seed, "trace rates");
    return 0;
}

int draw_workload(struct trace_draw *d, int is_inference)
{
    const int n = is_inference ? d->n_inference : d->n_training;
    const int *of = is_inference ? d->inference : d->training;

    return of[rng_below(&d->workloads, (uint64_t)n)];
}

/* The fastest speed of 'w' on any type but 'd->fastest' and on the reference. */
static double next_best(const struct trace_draw *d, int w, int n)
{
    double best = 0;

    if (d->reference != d->fastest)
        best = truth_gang_speed(d->truth, w, d->reference, n, 0);
    for (int i = 0; i < d->n_types; i++) {
        if (d->types[i] != d->fastest)
            best = fmax(best, truth_gang_speed(d->truth, w, d->types[i], n, 0));
    }
    return best;
}

double draw_promise(struct trace_draw *d, int w, int n)
{
    /* All three are drawn for every job, so that one job's luck is not another's. */
    const double part = rng_between(&d->promises, d->promise_low, d->promise_high);
    const bool is_hard = rng_uniform(&d->promises) < 0.1;
    const double place = rng_between(&d->promises, 0.1, 0.9);
    const double ref = truth_gang_speed(d->truth, w, d->reference, n, 0);
    double fast, rest;

    if (is_hard && d->fastest >= 0) {
        fast = truth_gang_speed(d->truth, w, d->fastest, n, 0);
        rest = next_best(d, w, n);
        if (fast > 1.05 * ref && fast > rest && d->fastest != d->reference)
            return rest + place * (fast - rest);
    }
    return part * ref;
}

double trace_capacity(const struct trace_draw *d, const struct cluster *cl)
{
    double sum = 0;

    for (int i = 0; i < cl->n_nodes; i++) {
        for (int g = 0; g < cl->nodes[i].n_gpus; g++)
            sum += relative_speed(d, d->types[cl->nodes[i].types[g]]);
    }
    return sum;
}

/* The mean work of a job in reference GPU-seconds: of the log-uniform draw, less for
 * servers (their rate is 0.55 of a GPU on average), more for gangs (three GPUs).
 */
static double mean_work(const struct trace_generate *o)
{
    double drawn = (WORK_HIGH_S - WORK_LOW_S) / log(WORK_HIGH_S / WORK_LOW_S);

    return drawn * ((1 - o->inference) * (1 + 2 * o->gangs) + o->inference * 0.55);
}

int trace_gang_max(const struct cluster *cl)
{
    int most = 0;

    for (int t = 0; t < cl->n_types; t++) {
        int n = 0;

        for (int i = 0; i < cl->n_nodes; i++) {
            for (int g = 0; g < cl->nodes[i].n_gpus; g++)
                n += cl->nodes[i].types[g] == t;
        }
        most = n > most ? n : most;
    }
    return most;
}

static void generate_job(struct trace_draw *d, const struct trace_generate *o, struct rng *kinds,
                         int gang_max, struct trace_job *j)
{
    /* Kind and gang are drawn for every job, for the same reason as promises. */
    const double kind = rng_uniform(kinds), gang = rng_uniform(kinds);
    const int size = rng_uniform(kinds) < 0.5 ? 2 : 4;
    const double work_s = WORK_LOW_S * exp(rng_uniform(&d->work) * log(WORK_HIGH_S / WORK_LOW_S));
    const double rate = rng_between(&d->rates, 0.3, 0.8);
    int w;

    j->is_inference = kind < o->inference;
    j->n_gpus = !j->is_inference && gang < o->gangs ? (size < gang_max ? size : gang_max) : 1;
    j->max_gpus = j->n_gpus;
    j->deadline_s = NAN;
    w = draw_workload(d, j->is_inference);
    j->workload = d->truth->catalog->workloads[w].name;
    if (j->is_inference) {
        j->rate = rate * truth_speed(d->truth, w, d->reference);
        j->duration_s = work_s;
        return;
    }
    j->steps = fmax(round(work_s * j->n_gpus * truth_speed(d->truth, w, d->reference)), 1);
    j->min_throughput = draw_promise(d, w, j->n_gpus);
}

int trace_generate(struct arena *a, const struct trace_generate *o, struct trace_draw *d,
                   const struct cluster *cl, struct trace *out, struct err *e)
{
    const double capacity = trace_capacity(d, cl);
    const double mean_gap_s =
        o->rate_per_h > 0 ? 3600 / o->rate_per_h : mean_work(o) / (o->load * capacity);
    const int gang_max = trace_gang_max(cl);
    struct rng arrivals, kinds;
    double at_s = 0;

    if (!(mean_gap_s > 0 && isfinite(mean_gap_s)))
        return err_set(e, EINVAL,
                       "no workload runs on any GPU of the cluster: nothing to generate");
    rng_init(&arrivals, o->seed, "trace arrivals");
    rng_init(&kinds, o->seed, "trace kinds");
    *out = (struct trace){ .n_jobs = o->n_jobs };
    out->jobs = ARENA_ARRAY(a, struct trace_job, (size_t)o->n_jobs);
    for (int i = 0; i < o->n_jobs; i++) {
        struct trace_job *j = &out->jobs[i];

        at_s += rng_exponential(&arrivals, mean_gap_s);
        j->name = arena_printf(a, "j%06d", i + 1);
        j->at_s = round(at_s * 1000) / 1000;
        generate_job(d, o, &kinds, gang_max, j);
    }
    return 0;
}

/* ---- services ---- */

enum { SERVICE_BATCH_MAX = 32, SERVICE_GPUS_MAX = 6 };

/* Of what a reference GPU answers in full batches all the time, what services ask for on average.
 */
#define FULL_LEAST 0.15
#define FULL_MOST 1.5

static void generate_service(struct trace_draw *d, const struct trace_generate_services *o,
                             struct rng *r, struct trace_service *s)
{
    const int w = draw_workload(d, 1);
    const struct batch_time alone = truth_serving(d->truth, w, d->reference);
    const double full = SERVICE_BATCH_MAX / (alone.t0_s + alone.a_s * SERVICE_BATCH_MAX);
    const double wanted = full * exp(rng_between(r, log(FULL_LEAST), log(FULL_MOST)));
    const double slack = 4 * exp(rng_uniform(r) * log(30.0 / 4));
    const double load_s = rng_between(r, 20, 100);

    s->workload = d->truth->catalog->workloads[w].name;
    s->rate = fmin(wanted, o->rate);
    s->latency_s = slack * (alone.t0_s + alone.a_s);
    s->max_batch = SERVICE_BATCH_MAX;
    s->max_gpus = SERVICE_GPUS_MAX;
    s->load_s = round(load_s);
    s->at_s = round(rng_between(r, 0, 300));
    s->end_s = o->end_s > s->at_s ? o->end_s : (double)NAN;
    s->traffic = "drawn";
    s->seed = (int)rng_below(r, 1000000000);
}

void trace_generate_services(struct arena *a, const struct trace_generate_services *o,
                             struct trace_draw *d, struct trace *t)
{
    struct rng r;

    rng_init(&r, o->seed, "trace services");
    t->n_services = o->n_services;
    t->services = ARENA_ARRAY(a, struct trace_service, (size_t)o->n_services);
    for (int i = 0; i < o->n_services; i++) {
        t->services[i] = (struct trace_service){ .name = arena_printf(a, "s%02d", i + 1) };
        generate_service(d, o, &r, &t->services[i]);
    }
    trace_sort(a, t);
}
