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

bool work_yield(const struct work *w, int gpu, bool is_free, struct yield *out)
{
    const struct desk_gpu *g = &w->desk->gpus[gpu];
    int kinds[THETA_MAX], type = w->problem->gpus[gpu].type;

    for (int i = 0; i < g->n_jobs; i++)
        kinds[i] = w->problem->jobs[g->jobs[i]].kind;
    return g->n_jobs > 0 &&
           problem_yield(w->problem, type, is_free ? 0 : g->limit, kinds, g->n_jobs, out);
}

bool work_put(struct work *w, int job, const int *gpus, int n)
{
    if (w->desk->jobs[job].n_gpus > 0 && !desk_take(w->desk, job))
        return false;
    return desk_put(w->desk, job, gpus, n, -1);
}

static int n_short_on(const struct desk *d, int gpu)
{
    const struct desk_gpu *g = &d->gpus[gpu];
    int n = 0;

    for (int i = 0; i < g->n_jobs; i++)
        n += d->jobs[g->jobs[i]].low < d->problem->jobs[g->jobs[i]].need;
    return n;
}

/* A job stands on these GPUs: what is that like? A gang has them to itself. */
static void look(const struct work *w, int job, const int *gpus, int n, struct offer *out)
{
    const struct desk_gpu *g = &w->desk->gpus[gpus[0]];
    const struct problem *p = w->problem;
    struct yield free, y;

    work_yield(w, gpus[0], true, &free);
    work_yield(w, gpus[0], false, &y);
    *out = (struct offer){ .share = INFINITY, .keeps = n_short_on(w->desk, gpus[0]) == 0 };
    for (int i = 0; i < g->n_jobs; i++) {
        int kind = p->jobs[g->jobs[i]].kind;
        double alone = (double)p->speed[problem_cell(p, p->gpus[gpus[0]].type, kind, -1)];
        out->share = fmin(out->share, free.speed[i] / alone);
        if (g->jobs[i] == job)
            out->speed = y.speed[i] * (!g->is_whole                    ? 1
                                       : problem_stands(p, gpus, n, 1) ? p->gang_near[n]
                                                                       : p->gang_far[n]);
    }
}

bool work_weigh(struct work *w, int job, const int *gpus, int n, struct offer *out)
{
    double before_w = desk_cost(w->desk);
    bool waits = w->desk->jobs[job].n_gpus == 0;

    desk_mark(w->desk);
    bool may = work_put(w, job, gpus, n);
    if (may) {
        look(w, job, gpus, n, out);
        out->cost_w = desk_cost(w->desk) - before_w + (waits ? w->problem->jobs[job].wait_w : 0);
    }
    desk_undo(w->desk);
    return may;
}

/* Where residents have changed the best setting was taken with that. */
static void settle_limit(struct desk *d, int gpu)
{
    double before_w = desk_cost(d), watts = d->gpus[gpu].watts;
    int n_short = n_short_on(d, gpu);

    desk_mark(d);
    if (desk_relimit(d, gpu) &&
        (n_short_on(d, gpu) < n_short || desk_cost(d) < before_w - RELIMIT_GAIN * watts))
        desk_keep(d);
    else
        desk_undo(d);
}

void work_end(struct work *w, struct plan *out)
{
    for (int g = 0; g < w->problem->n_gpus; g++)
        if (w->desk->gpus[g].n_jobs > 0)
            settle_limit(w->desk, g);
    desk_plan(w->desk, w->arena, out);
    for (int j = 0; j < w->problem->n_jobs; j++)
        if (out->jobs[j].n_gpus == 0 && w->why[j] != WAIT_NOT)
            out->jobs[j].reason = w->why[j];
    desk_destroy(w->desk);
}
