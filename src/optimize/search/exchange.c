/* Bring jobs back to where they stand, where that changes nothing else.
 *
 * Two GPUs of a type may exchange all they hold, and two jobs of a kind their places, at no cost
 * but their moves. A job that is to move therefore tries both with the GPU on which it stands now;
 * what makes the whole cheaper is kept.
 */
#include "optimize/search/search.h"

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

static bool put_all(struct assignment *d, const int *jobs, int n, int gpu)
{
    for (int i = 0; i < n; i++)
        if (!assignment_put(d, jobs[i], &gpu, 1, -1))
            return false;
    return true;
}

/* The first 'n_a' of 'jobs' go from 'a' to 'b', the others from 'b' to 'a', if that makes the whole
 * cheaper.
 */
static bool exchange(struct assignment *d, const int *jobs, int n_a, int n, int a, int b)
{
    double before_w = d->cost_w;
    bool pays = true;

    assignment_mark(d);
    for (int i = 0; i < n && pays; i++)
        pays = assignment_take(d, jobs[i]);
    pays = pays && put_all(d, jobs, n_a, b) && put_all(d, jobs + n_a, n - n_a, a) &&
           d->cost_w < before_w - 1e-9;
    if (pays)
        assignment_keep(d);
    else
        assignment_undo(d);
    return pays;
}

/* All that two GPUs of one type hold. */
static bool exchange_contents(struct assignment *d, int a, int b)
{
    int jobs[2 * THETA_MAX], n_a = d->gpus[a].n_jobs, n_b = d->gpus[b].n_jobs;

    if (a == b || d->problem->gpus[a].type != d->problem->gpus[b].type || !is_movable(d, a) ||
        !is_movable(d, b))
        return false;
    memcpy(jobs, d->gpus[a].jobs, (size_t)n_a * sizeof *jobs);
    memcpy(jobs + n_a, d->gpus[b].jobs, (size_t)n_b * sizeof *jobs);
    return exchange(d, jobs, n_a, n_a + n_b, a, b);
}

/* To the GPU where it stands: with all that is there, alone, or in place of one of its kind. */
static bool bring_home(struct assignment *d, int job)
{
    const struct problem_job *j = &d->problem->jobs[job];
    int home = j->present[0], at = assignment_gpus(d, job)[0];

    if (exchange_contents(d, at, home) ||
        (assignment_may_join(d, job, home) && exchange(d, &job, 1, 1, at, home)))
        return true;
    for (int i = 0; i < d->gpus[home].n_jobs; i++) {
        int other = d->gpus[home].jobs[i];
        if (is_lone(d, other) && d->problem->jobs[other].kind == j->kind &&
            exchange(d, (int[]){ job, other }, 1, 2, at, home))
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
