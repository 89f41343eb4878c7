#include "optimize/policy/work.h"

#include <math.h>
#include <string.h>

/* A limit is changed under residents that stay when that saves this part of what the GPU draws;
 * estimates move with every measurement, and limits shall not flutter with them.
 */
#define RELIMIT_GAIN 0.03

/* Services get what they lack before anybody is asked whose turn it is. */
static void provide_services(struct assignment *d)
{
    for (int j = 0; j < d->problem->n_jobs; j++) {
        const struct problem_job *job = &d->problem->jobs[j];
        if (job->name && job->form == FORM_SPREAD && d->jobs[j].n_gpus > 0)
            assignment_extend(d, j);
        else if (job->name && job->form == FORM_SPREAD)
            assignment_insert(d, j);
    }
}

void work_begin(struct policy_work *w, struct arena *a, const struct problem *p)
{
    *w = (struct policy_work){ .arena = a, .problem = p, .assignment = assignment_create(p) };
    assignment_lay_present(w->assignment);
    w->assignment->is_keeping = true;
    provide_services(w->assignment);
    w->why = ARENA_ARRAY(a, enum wait_reason, (size_t)p->n_jobs);
}

bool work_is_waiting(const struct policy_work *w, int job)
{
    const struct problem_job *j = &w->problem->jobs[job];

    return j->name && j->n_present == 0 && w->assignment->jobs[job].n_gpus == 0;
}

bool work_suits(const struct policy_work *w, int job, int type, struct yield *alone)
{
    const struct problem_job *j = &w->problem->jobs[job];

    return problem_allows(j, type) &&
           assignment_capacity_for(w->assignment, job, type) >= j->n_min &&
           problem_yield(w->problem, type, 0, &j->kind, 1, alone);
}

double work_gang_factor(const struct policy_work *w, int job, int type, int n)
{
    bool is_far = w->problem->jobs[job].n_nodes > 1 || n > w->assignment->most_on_node[type];

    return (is_far ? w->problem->gang_far : w->problem->gang_near)[n];
}

static bool put(struct policy_work *w, int job, const int *gpus, int n)
{
    if (w->assignment->jobs[job].n_gpus > 0 && !assignment_take(w->assignment, job))
        return false;
    return assignment_put(w->assignment, job, gpus, n, -1);
}

bool work_put(struct policy_work *w, int job, const struct destination *to)
{
    return to->n_gpus > 0 && put(w, job, to->gpus, to->n_gpus);
}

void work_prefer(struct destination *best, double cost, const int *gpus, int n)
{
    if (best->n_gpus > 0 && cost >= best->cost)
        return;
    *best = (struct destination){ .cost = cost, .n_gpus = n };
    memcpy(best->gpus, gpus, (size_t)n * sizeof *gpus);
}

int work_n_short(const struct policy_work *w, int gpu)
{
    const struct assignment *d = w->assignment;
    const struct assignment_gpu *g = &d->gpus[gpu];
    int kinds[THETA_MAX] = { 0 }, n = 0;

    for (int i = 0; i < g->n_jobs; i++)
        kinds[i] = d->problem->jobs[g->jobs[i]].kind;
    for (int i = 0; i < g->n_jobs; i++) {
        const struct problem_job *j = &d->problem->jobs[g->jobs[i]];
        struct counted_on x =
            problem_counted_on(d->problem, d->problem->gpus[gpu].type, kinds, g->n_jobs, i);
        n += held_low(d->jobs[g->jobs[i]].held) / x.held < j->need;
    }
    return n;
}

double work_least_share(const struct policy_work *w, int gpu)
{
    const struct assignment_gpu *g = &w->assignment->gpus[gpu];
    const struct problem *p = w->problem;
    int type = p->gpus[gpu].type;
    double least = INFINITY;
    struct yield y;

    if (g->n_jobs == 0 || !problem_yield_of(p, type, 0, g->jobs, g->n_jobs, &y))
        return least;
    for (int i = 0; i < g->n_jobs; i++) {
        long alone = problem_cell(p, type, p->jobs[g->jobs[i]].kind, -1);
        least = fmin(least, y.speed[i] / (double)p->speed[alone]);
    }
    return least;
}

bool work_weigh(struct policy_work *w, int job, const int *gpus, int n, struct offer *out)
{
    double before_w = assignment_cost(w->assignment);
    bool waits = w->assignment->jobs[job].n_gpus == 0;

    assignment_mark(w->assignment);
    bool may = put(w, job, gpus, n);
    if (may)
        *out = (struct offer){
            .cost_w = assignment_cost(w->assignment) - before_w +
                      (waits ? w->problem->jobs[job].wait_w : 0),
            .share = work_least_share(w, gpus[0]),
            .keeps = work_n_short(w, gpus[0]) == 0,
        };
    assignment_undo(w->assignment);
    return may;
}

/* Where residents have changed the best setting was taken with that. */
static void settle_limit(struct policy_work *w, int gpu)
{
    struct assignment *d = w->assignment;
    double before_w = assignment_cost(d), watts = d->gpus[gpu].watts;
    int n_short = work_n_short(w, gpu);

    assignment_mark(d);
    if (assignment_relimit(d, gpu) &&
        (work_n_short(w, gpu) < n_short || assignment_cost(d) < before_w - RELIMIT_GAIN * watts))
        assignment_keep(d);
    else
        assignment_undo(d);
}

void work_end(struct policy_work *w, struct plan *out)
{
    for (int g = 0; g < w->problem->n_gpus; g++)
        if (w->assignment->gpus[g].n_jobs > 0)
            settle_limit(w, g);
    assignment_plan(w->assignment, w->arena, out);
    for (int j = 0; j < w->problem->n_jobs; j++)
        if (out->jobs[j].n_gpus == 0 && w->why[j] != WAIT_NOT)
            out->jobs[j].reason = w->why[j];
    assignment_destroy(w->assignment);
}
