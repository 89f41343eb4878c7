#include "study/run.h"

#include <assert.h>
#include <math.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/err.h"
#include "catalog/cluster/state.h"
#include "nn/gp.h"
#include "optimize/policy/solver.h"
#include "sim/sim.h"
#include "sim/world/world.h"
#include "study/bound.h"
#include "study/occupancy.h"
#include "study/results_inner.h"

#define SLICES 100                  // of the arrival period
#define SLICES_MAX 400              // with those after it; the last one takes all that is left
#define WINDOW_FROM 20              // slices before the steady window
#define AT_ONCE_SLICE_S 3600        // of a trace whose jobs all come at once
#define UPDATE_S 60                 // between two looks at who is where
#define INTERVALS_S (6 * 3600.0)    // how long that is looked at
#define INTERVALS_GPUS_MAX 64       // more rows are no picture
#define FIRST_JOBS 100

/* What has added up at some time. */
struct totals {
    double time_s, energy_j, work_s, gpu_s, sum_error;
    long n_measured;
};

/* A run on its way. */
struct run_progress {
    const struct study_inputs *inputs;
    struct sim *sim;
    struct study_result *out;
    struct totals last;    // where the slice began
    struct occupancy intervals;
    double update_s;    // when to update next; INFINITY: never
};

static bool is_bound(const struct study_run *k)
{
    return strcmp(k->policy, "bound") == 0;
}

bool study_run_keeps_intervals(const struct study_run *k, const struct study_inputs *s)
{
    return s->cluster.n_gpus <= INTERVALS_GPUS_MAX && !is_bound(k);
}

/* ---- slice by slice ---- */

static struct totals totals_now(const struct sim *s)
{
    struct totals m = {
        .time_s = sim_now_s(s),
        .energy_j = world_energy_j(sim_world(s)),
        .work_s = world_work_s(sim_world(s)),
        .gpu_s = world_gpu_s(sim_world(s)),
    };

    sim_learning(s, &m.sum_error, &m.n_measured);
    return m;
}

/* a / b, where there is a b. */
static double ratio(double a, double b)
{
    return b > 0 ? a / b : (double)NAN;
}

static void close_slice(struct run_progress *w)
{
    struct totals now = totals_now(w->sim);
    const double took_s = now.time_s - w->last.time_s;

    w->out->slices[w->out->n_slices++] = (struct study_slice){
        .time_s = now.time_s,
        .watts = ratio(now.energy_j - w->last.energy_j, took_s),
        .work_per_s = ratio(now.work_s - w->last.work_s, took_s),
        .error =
            ratio(now.sum_error - w->last.sum_error, (double)(now.n_measured - w->last.n_measured)),
        .measurements = now.n_measured,
        .attainment = NAN,    // known at the end
        .waiting = sim_state(w->sim)->n_waiting,
    };
    w->last = now;
}

/* As sim_advance, looking on the way at who is where. */
static int advance(struct run_progress *w, double to_s, struct err *e)
{
    int rc = 1;

    while (rc > 0 && w->update_s <= to_s) {
        rc = sim_advance(w->sim, w->update_s, e);
        if (rc >= 0)
            occupancy_update(&w->intervals, sim_state(w->sim), sim_now_s(w->sim));
        w->update_s += UPDATE_S;
        if (w->update_s > w->out->intervals_to_s)
            w->update_s = INFINITY;
    }
    return rc > 0 ? sim_advance(w->sim, to_s, e) : rc;
}

/* Where slice 'i' ends. That of the arrival period's last one is exact. */
static double slice_end_s(const struct run_progress *w, int i)
{
    const double arrivals_s = w->inputs->arrivals_s;

    if (i + 1 == SLICES_MAX)
        return INFINITY;
    if (!(arrivals_s > 0))
        return (i + 1.0) * AT_ONCE_SLICE_S;
    return i + 1 == SLICES ? arrivals_s : arrivals_s * (i + 1.0) / SLICES;
}

/* From the first arrival to the last end, slice by slice. */
static int run_through(struct run_progress *w, struct err *e)
{
    const bool has_window = w->inputs->arrivals_s > 0;
    struct totals from = { 0 }, to = { 0 };
    int rc = 1;

    for (int i = 0; i < SLICES_MAX && rc > 0; i++) {
        rc = advance(w, slice_end_s(w, i), e);
        if (rc < 0)
            return rc;
        close_slice(w);
        if (has_window && i + 1 == WINDOW_FROM)
            from = w->last;
        if (i < SLICES || !has_window)
            to = w->last;
    }
    assert(rc == 0);
    w->out->energy_j_per_work = ratio(to.energy_j - from.energy_j, to.work_s - from.work_s);
    w->out->allocation_efficiency = ratio(to.work_s - from.work_s, to.gpu_s - from.gpu_s);
    return 0;
}

/* ---- what came of it ---- */

struct promise_time {
    double kept_s, promised_s;
};

static void promise_time_add(struct promise_time *k, const struct world_outcome *f, double end_s)
{
    k->kept_s += f->kept_s;
    k->promised_s += end_s - f->submit_s;
}

/* Jobs come in the order of the trace, so that slices follow each other. */
static void job_figures(const struct sim *s, struct study_result *out)
{
    const double now_s = sim_now_s(s);
    struct promise_time first = { 0 }, next = { 0 }, slice = { 0 };
    struct world_outcome f;
    double queue_s = 0;
    int at = 0, n = 0;

    for (; sim_job_outcome(s, n, &f); n++) {
        double end_s = isnan(f.end_s) ? now_s : f.end_s;

        queue_s += (isnan(f.first_s) ? end_s : f.first_s) - f.submit_s;
        while (at + 1 < out->n_slices && f.submit_s > out->slices[at].time_s) {
            out->slices[at++].attainment = ratio(slice.kept_s, slice.promised_s);
            slice = (struct promise_time){ 0 };
        }
        if (!f.has_promise)
            continue;
        promise_time_add(n < FIRST_JOBS ? &first : &next, &f, end_s);
        promise_time_add(&slice, &f, end_s);
    }
    if (out->n_slices > 0)
        out->slices[at].attainment = ratio(slice.kept_s, slice.promised_s);
    out->first_100_attainment = ratio(first.kept_s, first.promised_s);
    out->next_attainment = ratio(next.kept_s, next.promised_s);
    out->mean_queue_s = ratio(queue_s, n);
}

static void init_types(struct arena *a, const struct cluster *cl, struct study_result *out)
{
    out->n_types = cl->n_types;
    out->types = ARENA_ARRAY(a, struct study_type, (size_t)cl->n_types);
    for (int i = 0; i < cl->n_types; i++)
        out->types[i].name = arena_strdup(a, cl->types[i].name);
    for (int i = 0; i < cl->n_nodes; i++) {
        for (int k = 0; k < cl->nodes[i].n_gpus; k++)
            out->types[cl->nodes[i].types[k]].n_gpus++;
    }
}

/* GPUs are numbered node by node, as the cluster has them. */
static void type_figures(const struct sim *s, const struct cluster *cl, struct study_result *out)
{
    int gpu = 0;

    for (int i = 0; i < cl->n_nodes; i++) {
        for (int k = 0; k < cl->nodes[i].n_gpus; k++) {
            struct study_type *t = &out->types[cl->nodes[i].types[k]];

            t->gpu_hours += world_gpu_now(sim_world(s), gpu).held_s / 3600;
            t->energy_kwh += world_gpu_now(sim_world(s), gpu).energy_j / 3.6e6;
            gpu++;
        }
    }
}

static void whole_figures(struct sim *s, struct study_result *out)
{
    struct sim_result r;

    sim_result(s, &r);
    out->energy_kwh = r.energy_j / 3.6e6;
    out->promise_attainment = r.promise_attainment;
    out->mean_jct_s = r.mean_jct_s;
    out->p95_jct_s = r.p95_jct_s;
    out->makespan_s = r.makespan_s;
    out->work_s = r.work_s;
    out->moves = r.n_moves;
    out->decisions = r.n_decisions;
    out->fallbacks = r.n_fallbacks;
    out->repricings = r.n_repricings;
    out->gap_mean_w = r.gap_mean.watts;
    out->gap_worst_w = r.gap_worst.watts;
    out->gap_mean_ratio = r.gap_mean.ratio;
    out->gap_worst_ratio = r.gap_worst.ratio;
    out->gap_mean_varying_ratio = r.gap_mean.varying_ratio;
    out->gap_worst_varying_ratio = r.gap_worst.varying_ratio;
    out->measurements = r.n_measurements;
    out->service_hours_kept = r.service_hours_kept;
    out->late_share = r.late_share;
    out->p99_s = r.p99_s;
    out->interruptions = r.interruptions;
    out->starts_per_service_day = r.starts_per_service_day;
    out->training_work = r.training_work;
    out->jobs = r.n_jobs;
    out->finished = r.n_finished;
    out->failed = r.n_failed;
    out->prediction_error = r.prediction_error;
    out->coverage90 = r.coverage90;
    out->decision_p50_s = r.decision_p50_s;
    out->decision_p99_s = r.decision_p99_s;
    out->repricing_s = r.repricing_s;
}

double study_delay_w(const struct cluster *cl)
{
    int n;
    double caps_w = cluster_caps_w(cl, &n);

    return cl->settings.delay_w >= 0 ? cl->settings.delay_w : options_usual_delay_w(caps_w, n);
}

void study_result_derive(const char *policy, struct study_result *r)
{
    r->moves_per_job =
        r->jobs > 0 && strcmp(policy, "bound") != 0 ? (double)r->moves / r->jobs : (double)NAN;
}

/* ---- a run ---- */

static void plan_updates(struct run_progress *w, const struct study_run *k)
{
    const double middle_s = w->inputs->arrivals_s / 2;

    w->update_s = INFINITY;
    if (!study_run_keeps_intervals(k, w->inputs))
        return;
    w->out->intervals_from_s = fmax(middle_s - INTERVALS_S / 2, 0);
    w->out->intervals_to_s = fmin(middle_s + INTERVALS_S / 2, w->inputs->arrivals_s);
    w->update_s = w->out->intervals_from_s;
}

static int simulate(struct arena *a, const struct study_run *k, const struct study_inputs *s,
                    struct study_result *out, struct err *e)
{
    struct run_progress w = { .inputs = s, .out = out, .intervals = { .arena = a } };
    const struct sim_options o = {
        .cluster = &s->cluster,
        .trace = &s->trace,
        .truth = &s->ground.truth,
        .policy = k->policy,
        .known = s->pretraining.catalog,
        .model = s->pretraining.model,
        .reference = s->reference,
        .seed = (uint64_t)k->seed,
        .without = study_run_without(k),
    };
    int rc = sim_create(&o, &w.sim, e);

    if (rc < 0)
        return rc;
    out->slices = ARENA_ARRAY(a, struct study_slice, SLICES_MAX);
    plan_updates(&w, k);
    rc = run_through(&w, e);
    if (rc == 0) {
        occupancy_end(&w.intervals, out->intervals_to_s, out);
        whole_figures(w.sim, out);
        out->effective_delay_w = study_delay_w(&s->cluster);
        type_figures(w.sim, &s->cluster, out);
        job_figures(w.sim, out);
    }
    sim_destroy(w.sim);
    return rc;
}

/* Without a schedule there are no promises, times and slices. */
static int solve_bound(struct arena *a, const struct study_run *k, const struct study_inputs *s,
                       struct study_result *out, struct err *e)
{
    struct bound b = { 0 };
    int rc = bound_solve(a, s, k->has_limits, k->has_sleep, &b, e);

    if (rc < 0)
        return rc;
    for (int i = 0; i < n_results_figures; i++)
        if (results_figures[i].kind == FIGURE_REAL)
            *(double *)(void *)((char *)out + results_figures[i].at) = NAN;
    out->energy_j_per_work = ratio(b.energy_j, b.work_s);
    out->allocation_efficiency = ratio(b.work_s, b.gpu_s);
    out->energy_kwh = b.least_j / 3.6e6;
    out->work_s = b.work_s;
    out->jobs = s->trace.n_jobs;
    for (int i = 0; i < out->n_types; i++) {
        int type = truth_find_type(&s->ground.truth, out->types[i].name);

        assert(type >= 0);
        out->types[i].gpu_hours = b.type_gpu_s[type] / 3600;
        out->types[i].energy_kwh = b.type_j[type] / 3.6e6;
    }
    return 0;
}

int study_run_do(struct arena *a, const struct study_run *k, const char *data,
                 struct study_result *out, struct err *e)
{
    const double began_s = clock_stopwatch_s();
    struct study_inputs s;
    struct rusage use;

    nn_init();    // before a model learns
    int rc = scenario_open(a, k, data, &s, e);
    if (rc < 0)
        return rc;
    *out = (struct study_result){ 0 };
    init_types(a, &s.cluster, out);
    rc = is_bound(k) ? solve_bound(a, k, &s, out, e) : simulate(a, k, &s, out, e);
    scenario_close(&s);
    study_result_derive(k->policy, out);
    out->wall_s = clock_stopwatch_s() - began_s;
    getrusage(RUSAGE_SELF, &use);
    out->rss_bytes = 1024.0 * (double)use.ru_maxrss;
    return rc;
}

double study_run_cost(const struct study_run *k)
{
    /* Seconds for a thousand jobs of the reference scenario, about; twice that with limits. */
    static const struct {
        const char *policy;
        double s;
    } planners[] = { { "gogh", 5 }, { "gogh-oracle", 6 }, { "watts", 5 }, { "gavel", 2 } };
    const double jobs = k->scenario->n_jobs > 0 ? k->scenario->n_jobs : 10000;
    double s = 0.3;

    for (size_t i = 0; i < sizeof planners / sizeof *planners; i++) {
        if (strcmp(planners[i].policy, k->policy) == 0)
            s = planners[i].s * (k->has_limits ? 2 : 1);
    }
    return s * (jobs + study_run_history(k)) / 1000;
}
