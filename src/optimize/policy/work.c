#include "optimize/policy/work.h"

#include <math.h>

#include "base/arena.h"
#include "optimize/model/plan.h"

/* A limit is changed under residents that stay when that saves this part of what the GPU draws;
 * estimates move with every measurement, and limits shall not flutter with them.
 */
#define RELIMIT_GAIN 0.03

void work_begin(struct work *w, struct arena *a, const struct problem *p)
{
    *w = (struct work){ .arena = a, .problem = p, .desk = desk_create(p) };
    desk_lay_present(w->desk);
    w->desk->is_keeping = true;
    desk_count(w->desk, a, &w->stock);
    w->why = ARENA_ARRAY(a, enum wait_reason, (size_t)p->n_jobs);
}

bool work_is_waiting(const struct work *w, int job)
{
    const struct problem_job *j = &w->problem->jobs[job];

    return j->name && j->n_present == 0 && w->desk->jobs[job].n_gpus == 0;
}

bool work_suits(const struct work *w, int job, int type, struct yield *alone)
{
    const struct problem_job *j = &w->problem->jobs[job];

    return problem_allows(j, type) && problem_yield(w->problem, type, 0, &j->kind, 1, alone);
}

bool work_put(struct work *w, int job, const int *gpus, int n)
{
    if (w->desk->jobs[job].n_gpus > 0 && !desk_take(w->desk, job))
        return false;
    return desk_put(w->desk, job, gpus, n, -1);
}

int work_n_short(const struct work *w, int gpu)
{
    const struct desk *d = w->desk;
    const struct desk_gpu *g = &d->gpus[gpu];
    int n = 0;

    for (int i = 0; i < g->n_jobs; i++) {
        const struct problem_job *j = &d->problem->jobs[g->jobs[i]];
        struct problem_trust hope =
            problem_trust(d->problem, d->problem->gpus[gpu].type, j->kind, g->n_jobs);
        n += d->jobs[g->jobs[i]].low / (double)hope.low < j->need;
    }
    return n;
}

double work_least_share(const struct work *w, int gpu)
{
    const struct desk_gpu *g = &w->desk->gpus[gpu];
    const struct problem *p = w->problem;
    int kinds[THETA_MAX], type = p->gpus[gpu].type;
    double least = INFINITY;
    struct yield y;

    for (int i = 0; i < g->n_jobs; i++)
        kinds[i] = p->jobs[g->jobs[i]].kind;
    if (g->n_jobs == 0 || !problem_yield(p, type, 0, kinds, g->n_jobs, &y))
        return least;
    for (int i = 0; i < g->n_jobs; i++)
        least = fmin(least, y.speed[i] / (double)p->speed[problem_cell(p, type, kinds[i], -1)]);
    return least;
}

bool work_weigh(struct work *w, int job, const int *gpus, int n, struct offer *out)
{
    double before_w = desk_cost(w->desk);
    bool waits = w->desk->jobs[job].n_gpus == 0;

    desk_mark(w->desk);
    bool may = work_put(w, job, gpus, n);
    if (may)
        *out = (struct offer){
            .cost_w = desk_cost(w->desk) - before_w + (waits ? w->problem->jobs[job].wait_w : 0),
            .share = work_least_share(w, gpus[0]),
            .keeps = work_n_short(w, gpus[0]) == 0,
        };
    desk_undo(w->desk);
    return may;
}

/* Where residents have changed the best setting was taken with that. */
static void settle_limit(struct work *w, int gpu)
{
    struct desk *d = w->desk;
    double before_w = desk_cost(d), watts = d->gpus[gpu].watts;
    int n_short = work_n_short(w, gpu);

    desk_mark(d);
    if (desk_relimit(d, gpu) &&
        (work_n_short(w, gpu) < n_short || desk_cost(d) < before_w - RELIMIT_GAIN * watts))
        desk_keep(d);
    else
        desk_undo(d);
}

void work_end(struct work *w, struct plan *out)
{
    for (int g = 0; g < w->problem->n_gpus; g++)
        if (w->desk->gpus[g].n_jobs > 0)
            settle_limit(w, g);
    desk_plan(w->desk, w->arena, out);
    for (int j = 0; j < w->problem->n_jobs; j++)
        if (out->jobs[j].n_gpus == 0 && w->why[j] != WAIT_NOT)
            out->jobs[j].reason = w->why[j];
    desk_destroy(w->desk);
}
