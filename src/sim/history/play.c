/* play.c - the history in a world, as it was and as it would have been. */
#include "sim/history/history.h"

#include <assert.h>
#include <math.h>

#include "base/arena.h"
#include "base/stats.h"
#include "catalog/cluster/cluster.h"
#include "catalog/cluster/state.h"
#include "optimize/policy/solver.h"
#include "sim/history/sacct.h"
#include "sim/sim.h"
#include "sim/world/truth.h"
#include "sim/world/world.h"

/* ---- as it was ---- */

/* The world's clock is never asked for a report. */
#define NEVER_S 1e12

static struct world *make_world(struct arena *a, const struct history *h, const struct truth *t,
                                const struct cluster_settings *set, bool is_asleep)
{
    const struct cluster *cl = h->cluster;
    const struct gpu_type **figures = ARENA_ARRAY(a, const struct gpu_type *, (size_t)cl->n_gpus);

    for (int g = 0; g < cl->n_gpus; g++)
        figures[g] = &cl->types[h->type_of[g]];
    return world_create(&(struct world_setup){
        .truth = t,
        .settings = set,
        .n_gpus = cl->n_gpus,
        .types = history_true_types(a, h, t),
        .figures = figures,
        .nodes = h->node_of,
        .is_always_on = !is_asleep,
    });
}

/* What the world tells is what the accounting says. */
static void forget_news(struct world *w)
{
    struct sensor s = world_sensor(w);
    struct observation o;

    while (s.next(s.self, &o) > 0)
        s.done(s.self);
}

static int start(struct world *w, const struct history *h, const struct truth *t, int job)
{
    const struct history_job *j = &h->jobs[job];
    const struct trace_job *is = &h->trace.jobs[job];
    struct executor x = world_executor(w);
    int id = world_submit(w, &(struct world_job_spec){
                                 .workload = truth_find_workload(t, is->workload),
                                 .is_inference = is->is_inference,
                                 .steps = INFINITY,
                                 .rate = is->rate,
                                 .duration_s = INFINITY,
                                 .reference_speed = 1,
                                 .max_gpus = j->n_gpus,
                             });
    int rc = x.start(x.self, &(struct placement){ .job = id, .n_gpus = j->n_gpus, .gpus = j->gpus },
                     NULL);

    assert(rc == 0);    // history_make found it room
    return id;
}

/* Every start and end in order, ends first; 'ids' (n_jobs) gets the jobs' in the world. */
static void play(struct arena *a, struct world *w, const struct history *h, const struct truth *t,
                 int *ids)
{
    struct trace_moment *starts = history_moments(a, h, false), *ends = history_moments(a, h, true);
    struct executor x = world_executor(w);
    int next = 0;

    for (int i = 0; i < h->n_jobs; i++) {
        while (next < h->n_jobs && starts[next].at_s < ends[i].at_s) {
            world_advance(w, starts[next].at_s);
            ids[starts[next].job] = start(w, h, t, starts[next].job);
            next++;
        }
        world_advance(w, ends[i].at_s);
        int rc = x.stop(x.self, ids[ends[i].job], NULL);
        assert(rc == 0);
        forget_news(w);
    }
}

/* The job's work is what it did; its promise what it was asked, or a little less than it had. */
static void fill_in(const struct history_job *j, struct trace_job *is, double steps,
                    double tolerance)
{
    const double ran_s = j->end_s - j->start_s, asked = j->ran->min_throughput;

    is->steps = is->is_inference ? 0 : steps;
    is->min_throughput = asked > 0 ? asked : steps / ran_s / tolerance;
    if (is->is_inference)
        is->min_throughput = fmin(is->min_throughput, is->rate);
}

static double idle_joules(const struct history *h, const struct world *w)
{
    const struct cluster *cl = h->cluster;
    double sum = 0;

    for (int g = 0; g < cl->n_gpus; g++)
        sum += cl->types[h->type_of[g]].idle_w * (world_now_s(w) - world_gpu_now(w, g).held_s);
    return sum;
}

static void measure(struct history *h, const struct world *w, const int *ids, double tolerance,
                    struct history_figures *out)
{
    struct samples waits = { 0 };
    double kept_s = 0, all_s = 0, jct_s = 0;

    for (int i = 0; i < h->n_jobs; i++) {
        const struct history_job *j = &h->jobs[i];
        struct trace_job *is = &h->trace.jobs[i];
        const double ran_s = j->end_s - j->start_s;
        struct world_outcome f;

        world_job_outcome(w, ids[i], &f);
        fill_in(j, is, f.steps_done, tolerance);
        kept_s += f.steps_done / ran_s >= trace_job_promise(is) * (1 - 1e-9) ? ran_s : 0;
        all_s += j->end_s - j->at_s;
        jct_s += j->end_s - j->at_s;
        samples_add(&waits, j->start_s - j->at_s);
    }
    out->mean_jct_s = jct_s / h->n_jobs;
    out->promise_attainment = kept_s / all_s;
    out->mean_wait_s = samples_mean(&waits);
    out->p95_wait_s = samples_quantile(&waits, 0.95);
    samples_release(&waits);
}

void history_play(struct arena *a, struct history *h, const struct truth *t, double tolerance,
                  bool is_asleep, struct history_figures *out)
{
    struct cluster_settings set = h->cluster->settings;
    int *ids = ARENA_ARRAY(a, int, (size_t)h->n_jobs);
    struct world *w;

    set.wake_s = set.restart_s = set.move_s = 0;    // the accounting's times have all of that
    set.report_s = NEVER_S;
    w = make_world(a, h, t, &set, is_asleep);
    play(a, w, h, t, ids);
    *out = (struct history_figures){
        .energy_j = world_energy_j(w),
        .idle_j = is_asleep ? (double)NAN : idle_joules(h, w),
        .end_s = h->end_s,
        .n_finished = h->n_jobs,
    };
    measure(h, w, ids, tolerance, out);
    world_destroy(w);
}

/* ---- as it would have been ---- */

/* Nobody is left, but the history is not over: what the GPUs draw until then. */
static double rest_joules(const struct history *h, const struct sim *s, bool is_always_on)
{
    const struct cluster *cl = h->cluster;
    const double rest_s = fmax(h->end_s - sim_now_s(s), 0);
    double sum = 0;

    for (int g = 0; g < cl->n_gpus; g++) {
        const struct gpu_type *t = &cl->types[h->type_of[g]];
        double idle_s = rest_s;

        if (!is_always_on)
            idle_s = world_gpu_now(sim_world(s), g).is_asleep
                         ? 0
                         : fmin(rest_s, cl->settings.sleep_after_s);
        sum += t->idle_w * idle_s + t->sleep_w * (rest_s - idle_s);
    }
    return sum;
}

static void compare(const struct history *h, const struct sim *s, double tolerance,
                    struct history_figures *out)
{
    struct samples waits = { 0 };

    for (int i = 0; i < h->n_jobs; i++) {
        const struct history_job *j = &h->jobs[i];
        struct world_outcome f = { .first_s = NAN, .end_s = NAN };

        sim_job_outcome(s, i, &f);
        if (!isnan(f.first_s))
            samples_add(&waits, f.first_s - f.submit_s);
        out->n_later += f.is_finished && f.end_s - f.submit_s > (j->end_s - j->at_s) * tolerance;
    }
    out->mean_wait_s = samples_mean(&waits);
    out->p95_wait_s = samples_quantile(&waits, 0.95);
    samples_release(&waits);
}

/* Simulated time between two words on how far it has come. */
#define STEP_S 3600

static int run(struct sim *s, const struct history_simulate *how, struct err *e)
{
    int rc = 1;

    while (rc > 0) {
        rc = sim_advance(s, how->on_step != NULL ? sim_now_s(s) + STEP_S : (double)INFINITY, e);
        if (how->on_step != NULL)
            how->on_step(how->self, sim_state(s)->n_ended);
    }
    return rc;
}

int history_simulate(const struct history *h, const struct history_simulate *how,
                     struct history_figures *out, struct err *e)
{
    struct sim *s = NULL;
    struct sim_result r;
    int rc = sim_create(&(struct sim_options){ .cluster = h->cluster,
                                               .trace = &h->trace,
                                               .truth = how->truth,
                                               .policy = "gogh",
                                               .seed = how->seed,
                                               .without = how->without },
                        &s, e);

    if (rc == 0)
        rc = run(s, how, e);
    if (rc == 0) {
        sim_result(s, &r);
        *out = (struct history_figures){
            .energy_j = r.energy_j + rest_joules(h, s, (how->without >> LEVER_SLEEP & 1) != 0),
            .idle_j = NAN,
            .mean_jct_s = r.mean_jct_s,
            .promise_attainment = r.promise_attainment,
            .end_s = sim_now_s(s),
            .n_finished = r.n_finished,
            .n_moves = r.n_moves,
        };
        compare(h, s, how->tolerance, out);
    }
    sim_destroy(s);
    return rc;
}
