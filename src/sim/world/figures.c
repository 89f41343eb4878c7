#include <math.h>

#include "sim/world/inner.h"

double world_now_s(const struct world *w)
{
    return w->now_s;
}

long world_n_events(const struct world *w)
{
    return w->n_events;
}

int world_n_placed(const struct world *w)
{
    return w->n_placed;
}

int world_n_jobs(const struct world *w)
{
    return w->n_jobs;
}

int world_n_ended(const struct world *w)
{
    return w->n_ended;
}

double world_gpu_energy_j(const struct world *w, int gpu)
{
    const struct world_gpu *g = &w->gpus[gpu];

    return g->energy_j + g->watts * (w->now_s - g->since_s);
}

double world_energy_j(const struct world *w)
{
    return w->energy_j + w->watts * (w->now_s - w->watts_since_s);
}

double world_gpu_s(const struct world *w)
{
    return w->held_s + w->n_held * (w->now_s - w->held_since_s);
}

double world_gpu_held_s(const struct world *w, int gpu)
{
    const struct world_gpu *g = &w->gpus[gpu];

    return g->held_s + (g->n_jobs > 0 ? w->now_s - g->held_since_s : 0);
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

double world_gpu_watts(const struct world *w, int gpu)
{
    return w->gpus[gpu].watts;
}

bool world_gpu_is_asleep(const struct world *w, int gpu)
{
    return w->gpus[gpu].is_asleep;
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
    };
    if (j->phase == RUNNING && j->speed >= j->ask.promise * (1 - 1e-9))
        out->kept_s += dt;
}
