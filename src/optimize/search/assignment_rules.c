/* Free GPUs for jobs that the engine cannot put everywhere. */
#include "optimize/search/assignment_inner.h"

#include "optimize/model/problem.h"

/* Nodes that a gang over several is begun on, where each must give the same devices. */
#define FIRST_TRIES 16

int rules_stock(const struct assignment *d, int job, int group)
{
    const struct problem *p = d->problem;
    const struct problem_job *j = &p->jobs[job];
    const int *members = d->lists->members + d->lists->groups[group].first;
    int n = d->lists->groups[group].n;
    int node = p->gpus[members[0]].node, could = j->engine.device ? 0 : n;

    if (j->engine.barred && j->engine.barred[node])
        return 0;
    for (int i = 0; i < n && j->engine.device; i++)
        could += problem_bars(p, j, members[i]) == ENGINE_CAN;
    int fits = nodes_fit(d, p->nodes, node, job);
    return could < fits ? could : fits;
}

struct pick {
    const struct assignment *d;
    int job;
    int *gpus;    // those that are picked
    int n;
};

static bool may_pick(const struct pick *x, int gpu)
{
    const struct problem *p = x->d->problem;

    return !gpus_have(x->gpus, x->n, gpu) && x->d->gpus[gpu].n_jobs == 0 &&
           p->gpus[gpu].may_start && problem_bars(p, &p->jobs[x->job], gpu) == ENGINE_CAN;
}

/* Up to 'most' of a group, as far as its node has room; returns how many. With 'like', the i-th is
 * the same device as like[i], or there is none.
 */
static int pick_from(struct pick *x, int group, int most, const int *like)
{
    const struct problem *p = x->d->problem;
    const struct group *g = &x->d->lists->groups[group];
    const int *members = x->d->lists->members + g->first;
    int was = x->n;
    int fits = nodes_fit(x->d, x->d->node_room, p->gpus[members[0]].node, x->job);

    most = most < fits ? most : fits;
    for (int i = 0; i < g->n && g->n_free > 0 && x->n - was < most; i++) {
        int device = like ? p->gpus[like[x->n - was]].device : 0;
        if (!may_pick(x, members[i]) || (device && p->gpus[members[i]].device != device))
            continue;
        x->gpus[x->n++] = members[i];
        i = like ? -1 : i;    // the next device may stand before this one
    }
    return x->n - was;
}

static bool is_of(const struct assignment *d, int group, int type, bool is_asleep)
{
    return d->lists->groups[group].bucket == type + (is_asleep ? d->problem->n_types : 0);
}

/* On the node that has the fewest to spare, of those that are awake if there is one. */
static bool pick_near(struct pick *x, int type, int n)
{
    int best = -1, least = INT_MAX, room[GANG_MAX] = { 0 };

    for (int asleep = 0; asleep < 2 && best < 0; asleep++)
        for (int i = 0; i < x->d->lists->n_groups; i++) {
            int n_free = x->d->lists->groups[i].n_free;
            struct pick trial = { x->d, x->job, room, 0 };
            if (is_of(x->d, i, type, asleep) && n_free >= n && n_free < least &&
                pick_from(&trial, i, n, NULL) == n) {
                best = i;
                least = n_free;
            }
        }
    return best >= 0 && pick_from(x, best, n, NULL) == n;
}

/* 'n_here' of each node, from group 'first' on; 0: as many as there are. */
static bool pick_far(struct pick *x, int first, int type, int n, int n_here)
{
    const struct assignment_lists *l = x->d->lists;

    x->n = 0;
    for (int asleep = 0; asleep < 2; asleep++)
        for (int i = 0; i < l->n_groups && x->n < n; i++) {
            int group = (first + i) % l->n_groups, was = x->n;
            int want = n_here ? n_here : n - x->n;
            if (!is_of(x->d, group, type, asleep))
                continue;
            int n_taken = pick_from(x, group, want, n_here && was ? x->gpus : NULL);
            x->n = n_here && n_taken < n_here ? was : x->n;
        }
    return x->n == n && problem_devices_match(x->d->problem, x->gpus, n);
}

bool rules_gang(const struct assignment *d, int job, int type, int n, int *gpus)
{
    int n_nodes = n > 1 ? d->problem->jobs[job].n_nodes : 1, n_tries = 0;
    struct pick x = { d, job, gpus, 0 };
    bool is_found = n_nodes < 2 && pick_near(&x, type, n), minds = true;

    for (int i = 0; i < d->lists->n_groups && !is_found && minds && n_nodes != 1; i++) {
        const struct group *g = &d->lists->groups[i];
        if (g->n_free == 0 || g->bucket % d->problem->n_types != type)
            continue;
        is_found = pick_far(&x, i, type, n, n_nodes ? n / n_nodes : 0);
        minds = d->problem->gpus[d->lists->members[g->first]].device && ++n_tries < FIRST_TRIES;
    }
    return is_found;
}
