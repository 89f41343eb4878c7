#include <math.h>

#include "sim/world/inner.h"

double world_now_s(const struct world *w)
{
    return w->now_s;
}

struct world_counts world_counts(const struct world *w)
{
    return w->counts;
}

struct world_gpu_figures world_gpu_now(const struct world *w, int gpu)
{
    const struct world_gpu *g = &w->gpus[gpu];

    return (struct world_gpu_figures){
        .watts = g->watts,
        .energy_j = g->energy_j + g->watts * (w->now_s - g->since_s),
        .held_s = g->held_s + (g->n_jobs > 0 ? w->now_s - g->held_since_s : 0),
        .is_asleep = g->is_asleep,
    };
}

double world_energy_j(const struct world *w)
{
    return w->energy_j + w->watts * (w->now_s - w->watts_since_s);
}

double world_gpu_s(const struct world *w)
{
    return w->held_s + w->n_held * (w->now_s - w->held_since_s);
}

/* What a job does between its since_s and now is in no sum yet; only who holds a GPU does. */
double world_work_s(const struct world *w)
{
    double work_s = w->work_s;

    for (int g = 0; g < w->n_gpus; g++) {
        for (int i = 0; i < w->gpus[g].n_jobs; i++) {
            const struct world_job *j = &w->jobs[w->gpus[g].jobs[i]];
            double steps = j->speed * (w->now_s - j->since_s);

            if (!j->ask.is_inference)
                steps = fmin(steps, j->ask.steps - j->done);
            if (j->gpus[0] == g)    // a gang counts once
                work_s += steps / j->ask.reference_speed;
        }
    }
    return work_s;
}

double world_watts(const struct world *w)
{
    return w->watts;
}

void world_job_outcome(const struct world *w, int job, struct world_outcome *out)
{
    const struct world_job *j = &w->jobs[job];
    const double dt = isnan(j->end_s) ? w->now_s - j->since_s : 0;
    double done = j->done + j->speed * dt;

    if (!j->ask.is_inference)
        done = fmin(done, j->ask.steps);
    *out = (struct world_outcome){
        .submit_s = j->submit_s,
        .first_s = j->first_s,
        .end_s = j->end_s,
        .is_finished = j->phase == ENDED && !j->has_failed,
        .steps_done = done,
        .speed = j->speed,
        .kept_s = j->kept_s,
        .work_s = done / j->ask.reference_speed,
        .has_promise = j->ask.promise > 0,
        .is_inference = j->ask.is_inference,
        .is_serving = j->served_by >= 0,
    };
    if (j->phase == RUNNING && j->speed >= j->ask.promise * (1 - 1e-9))
        out->kept_s += dt;
}
