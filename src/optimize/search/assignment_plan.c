#include "optimize/search/assignment_inner.h"

#include <math.h>

#include "base/arena.h"
#include "optimize/model/plan.h"

/* ---- why a job waits ---- */

/* As assignment_capacity_for, with the engine's rules or without. */
static int stock_for(const struct assignment *d, int job, int type, bool has_rules)
{
    const struct problem_job *j = &d->problem->jobs[job];
    int sum = 0, most = 0, part = j->n_nodes > 0 ? j->n_min / j->n_nodes : 0;

    if (j->n_nodes < 2 && !has_rules)
        return j->n_nodes == 1 ? d->most_on_node[type] : d->n_of_type[type];
    for (int i = 0; i < d->lists->n_groups; i++) {
        const struct group *g = &d->lists->groups[i];
        if (g->bucket % d->problem->n_types != type)
            continue;
        int n = has_rules ? rules_stock(d, job, i) : g->n;
        most = n > most ? n : most;
        sum += j->n_nodes < 2 ? n : n >= part ? part : 0;
    }
    return j->n_nodes == 1 ? most : sum;
}

int assignment_capacity_for(const struct assignment *d, int job, int type)
{
    return stock_for(d, job, type, d->has_rules);
}

/* The most that a job can hold on a type with as many GPUs as it may have; 0: nothing. */
static double most_low(const struct assignment *d, const struct problem_job *j, int type, int n)
{
    double low = held_low(tables_alone(d->tables, type, j->kind, 0)->held);

    if (j->form == FORM_SPREAD)
        return low * j->n_max;
    double best = 0;
    for (int m = j->n_min; m <= j->n_max && m <= n; m++)
        best = fmax(best, low * (m == 1           ? 1
                                 : j->n_nodes > 1 ? d->problem->gang_far[m]
                                                  : d->problem->gang_near[m]));
    return best;
}

static bool blocked_by_power(struct assignment *d, int job)
{
    double room_w = d->room_w, *racks = d->rack_room_w;
    bool has_caps = d->has_caps;

    if (!has_caps)
        return false;
    d->has_caps = false;
    d->rack_room_w = NULL;
    d->room_w = HUGE_VAL;
    assignment_mark(d);
    bool fits = assignment_insert(d, job);
    assignment_undo(d);
    d->has_caps = true;
    d->rack_room_w = racks;
    d->room_w = room_w;
    return fits;
}

/* Could the job run on the type alone? */
static bool runs_on(const struct assignment *d, const struct problem_job *j, int type)
{
    return problem_allows(j, type) && d->n_of_type[type] > 0 &&
           tables_alone(d->tables, type, j->kind, 0)->cost_w < HUGE_VAL;
}

enum wait_reason assignment_never(const struct assignment *d, int job)
{
    const struct problem_job *j = &d->problem->jobs[job];
    enum wait_reason never = WAIT_TYPE;

    for (int type = 0; type < d->problem->n_types; type++) {
        if (!problem_allows(j, type) || d->n_of_type[type] == 0)
            continue;
        if (assignment_capacity_for(d, job, type) < j->n_min)
            never = stock_for(d, job, type, false) >= j->n_min ? WAIT_ENGINE
                    : never == WAIT_TYPE                       ? WAIT_GANG
                                                               : never;
        else if (runs_on(d, j, type))
            return WAIT_NOT;
        else
            never = WAIT_MEMORY;
    }
    return never;
}

static enum wait_reason why(struct assignment *d, int job)
{
    const struct problem_job *j = &d->problem->jobs[job];
    enum wait_reason never = assignment_never(d, job);
    bool has_promise = false;

    if (never != WAIT_NOT)
        return never;
    for (int type = 0; type < d->problem->n_types; type++)
        if (runs_on(d, j, type))
            has_promise |= most_low(d, j, type, assignment_capacity_for(d, job, type)) >= j->need;
    if (!has_promise)
        return WAIT_PROMISE;
    return blocked_by_power(d, job) ? WAIT_POWER : WAIT_CAPACITY;
}

/* ---- the answer ---- */

void assignment_plan(struct assignment *d, struct arena *a, struct plan *out)
{
    const struct problem *p = d->problem;

    *out = (struct plan){ .n_jobs = p->n_jobs, .n_gpus = p->n_gpus };
    out->jobs = ARENA_ARRAY(a, struct plan_job, (size_t)p->n_jobs);
    out->limit = ARENA_ARRAY(a, unsigned char, (size_t)p->n_gpus);
    for (int j = 0; j < p->n_jobs; j++) {
        int n = d->jobs[j].n_gpus;
        int *gpus = ARENA_ARRAY(a, int, (size_t)n);
        for (int i = 0; i < n; i++)
            gpus[i] = d->job_gpus[d->jobs[j].first + i];
        plan_sort_gpus(gpus, n);
        out->jobs[j].n_gpus = n;
        out->jobs[j].gpus = gpus;
        if (n == 0 && p->jobs[j].name)
            out->jobs[j].reason = why(d, j);
    }
    for (int g = 0; g < p->n_gpus; g++)
        out->limit[g] = d->gpus[g].limit;
    plan_price(a, p, out);
}
