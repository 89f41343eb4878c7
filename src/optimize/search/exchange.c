#include "optimize/search/exchange.h"

#include <string.h>

#include "optimize/search/assignment_inner.h"

#define PASSES 3

/* Does the job hold one GPU, and could it hold another? */
static bool is_lone(const struct assignment *d, int job)
{
    return d->jobs[job].n_gpus == 1 && !d->problem->jobs[job].is_fixed;
}

/* May all that is on a GPU go elsewhere? */
static bool is_movable(const struct assignment *d, int gpu)
{
    for (int i = 0; i < d->gpus[gpu].n_jobs; i++)
        if (!is_lone(d, d->gpus[gpu].jobs[i]))
            return false;
    return d->problem->gpus[gpu].may_start;
}

static bool take_all(struct assignment *d, const int *jobs, int n)
{
    for (int i = 0; i < n; i++)
        if (!assignment_take(d, jobs[i]))
            return false;
    return true;
}

static bool put_all(struct assignment *d, const int *jobs, int n, int gpu)
{
    for (int i = 0; i < n; i++)
        if (!assignment_put(d, jobs[i], &gpu, 1, -1))
            return false;
    return true;
}

/* Keep what was done since the mark if it makes the whole cheaper. */
static bool settle(struct assignment *d, bool is_done, double before_w)
{
    bool pays = is_done && d->cost_w < before_w - 1e-9;

    if (pays)
        assignment_keep(d);
    else
        assignment_undo(d);
    return pays;
}

/* All that two GPUs of one type hold. */
static bool exchange_contents(struct assignment *d, int a, int b)
{
    int of_a[THETA_MAX], of_b[THETA_MAX], n_a = d->gpus[a].n_jobs, n_b = d->gpus[b].n_jobs;
    double before_w = d->cost_w;

    if (a == b || d->problem->gpus[a].type != d->problem->gpus[b].type || !is_movable(d, a) ||
        !is_movable(d, b))
        return false;
    memcpy(of_a, d->gpus[a].jobs, sizeof of_a);
    memcpy(of_b, d->gpus[b].jobs, sizeof of_b);
    assignment_mark(d);
    bool is_done = take_all(d, of_a, n_a) && take_all(d, of_b, n_b) && put_all(d, of_a, n_a, b) &&
                   put_all(d, of_b, n_b, a);
    return settle(d, is_done, before_w);
}

/* Two jobs, each to the other's GPU. */
static bool exchange_jobs(struct assignment *d, int x, int y)
{
    int a = assignment_gpus(d, x)[0], b = assignment_gpus(d, y)[0];
    double before_w = d->cost_w;

    assignment_mark(d);
    bool is_done = assignment_take(d, x) && assignment_take(d, y) &&
                   assignment_put(d, x, &b, 1, -1) && assignment_put(d, y, &a, 1, -1);
    return settle(d, is_done, before_w);
}

/* A job to the GPU where it stands, if there is room. */
static bool go_home(struct assignment *d, int job, int home)
{
    double before_w = d->cost_w;

    if (!assignment_may_join(d, job, home))
        return false;
    assignment_mark(d);
    bool is_done = assignment_take(d, job) && assignment_put(d, job, &home, 1, -1);
    return settle(d, is_done, before_w);
}

static bool bring_home(struct assignment *d, int job)
{
    const struct problem_job *j = &d->problem->jobs[job];
    int home = j->present[0];

    if (exchange_contents(d, assignment_gpus(d, job)[0], home) || go_home(d, job, home))
        return true;
    for (int i = 0; i < d->gpus[home].n_jobs; i++) {
        int other = d->gpus[home].jobs[i];
        if (is_lone(d, other) && d->problem->jobs[other].kind == j->kind &&
            exchange_jobs(d, job, other))
            return true;
    }
    return false;
}

double exchange_homes(struct assignment *d)
{
    const struct problem *p = d->problem;
    double before_w = d->cost_w;
    int n_done = 1;

    for (int pass = 0; pass < PASSES && n_done > 0; pass++) {
        n_done = 0;
        for (int j = 0; j < p->n_jobs; j++)
            if (p->jobs[j].name && p->jobs[j].n_present == 1 && is_lone(d, j) &&
                assignment_gpus(d, j)[0] != p->jobs[j].present[0])
                n_done += bring_home(d, j);
    }
    return before_w - d->cost_w;
}
