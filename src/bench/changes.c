#include "bench/changes.h"

#include <assert.h>
#include <string.h>

#include "optimize/files/problem_make.h"
#include "optimize/model/plan.h"

#define ESTIMATE_MOST 0.05    // a changed speed, as a part of what was believed
#define MOVE_TIMES 10    // what a move costs in the daemon, against what the generator makes it

void changes_init(struct changes *c, const struct make_options *o, int n_coming)
{
    struct make_options more = *o;
    struct problem *p = &c->p;

    *c = (struct changes){ .n_coming = n_coming };
    arena_init(&c->made);
    arena_init(&c->stands[0]);
    arena_init(&c->stands[1]);
    rng_init(&c->rng, o->seed, "bench changes");
    more.n_jobs += n_coming;
    more.standing *= (double)o->n_jobs / more.n_jobs;
    problem_make(&c->made, &more, p);
    p->n_jobs = o->n_jobs;
    c->coming = ARENA_ARRAY(&c->made, struct problem_job, (size_t)n_coming);
    memcpy(c->coming, p->jobs + p->n_jobs, (size_t)n_coming * sizeof *c->coming);
    c->ended = ARENA_ARRAY(&c->made, int, (size_t)more.n_jobs);
    c->lost = ARENA_ARRAY(&c->made, int, (size_t)p->n_gpus);
    c->may_start = ARENA_ARRAY(&c->made, bool, (size_t)p->n_gpus);
    for (int g = 0; g < p->n_gpus; g++)
        c->may_start[g] = p->gpus[g].may_start;
}

void changes_release(struct changes *c)
{
    arena_release(&c->made);
    arena_release(&c->stands[0]);
    arena_release(&c->stands[1]);
}

/* ---- where they stand ---- */

struct arena *changes_arena(struct changes *c)
{
    struct arena *next = &c->stands[!c->turn];

    arena_reset(next);
    return next;
}

static bool has_one_setting(const struct plan *x, const struct plan_job *at)
{
    for (int i = 1; i < at->n_gpus; i++)
        if (x->limit[at->gpus[i]] != x->limit[at->gpus[0]])
            return false;
    return at->n_gpus > 0;
}

static void stop(struct problem_job *job)
{
    job->n_present = 0;
    job->present = NULL;
    job->present_limit = 0;
    job->is_fixed = false;
}

void changes_settle(struct changes *c, const struct plan *x)
{
    for (int j = 0; j < c->p.n_jobs; j++) {
        struct problem_job *job = &c->p.jobs[j];
        const struct plan_job *at = &x->jobs[j];

        if (!job->name || !has_one_setting(x, at)) {
            stop(job);
            continue;
        }
        job->n_present = at->n_gpus;
        job->present = at->gpus;
        job->present_limit = x->limit[at->gpus[0]];
    }
    c->turn = !c->turn;
}

static void serve(struct problem_job *jobs, int n)
{
    for (int j = 0; j < n; j++) {
        bool is_spread = jobs[j].form == FORM_SPREAD;
        jobs[j].form = FORM_GANG;
        jobs[j].move_w *= MOVE_TIMES;
        if (is_spread)    // it may stand where no gang can
            stop(&jobs[j]);
    }
}

void changes_as_served(struct changes *c)
{
    serve(c->p.jobs, c->p.n_jobs);
    serve(c->coming, c->n_coming);
}

/* ---- what happens ---- */

void changes_end(struct changes *c)
{
    int j;

    assert(c->n_ended < c->p.n_jobs);
    do
        j = (int)rng_below(&c->rng, (uint64_t)c->p.n_jobs);
    while (!c->p.jobs[j].name);
    stop(&c->p.jobs[j]);
    c->p.jobs[j].name = NULL;
    c->ended[c->n_ended++] = j;
}

int changes_arrive(struct changes *c)
{
    int j = c->n_ended > 0 ? c->ended[--c->n_ended] : c->p.n_jobs++;

    assert(c->n_arrived < c->n_coming);
    c->p.jobs[j] = c->coming[c->n_arrived++];
    stop(&c->p.jobs[j]);
    return j;
}

void changes_estimate(struct changes *c)
{
    struct problem *p = &c->p;
    int type = (int)rng_below(&c->rng, (uint64_t)p->n_types);
    int kind = (int)rng_below(&c->rng, (uint64_t)p->n_kinds);
    float times = (float)(1 + rng_between(&c->rng, -ESTIMATE_MOST, ESTIMATE_MOST));

    for (int beside = -1; beside < p->n_kinds; beside++) {
        long cell = problem_cell(p, type, kind, beside);
        p->speed[cell] *= times;
        p->held[cell] *= times;
    }
    if (p->kinds[kind].value_j > 0)
        p->kinds[kind].value_j = problem_best_joules(p, kind);
}

static bool is_lost(const struct changes *c, int node)
{
    for (int i = 0; i < c->n_lost; i++)
        if (c->lost[i] == node)
            return true;
    return false;
}

void changes_lose(struct changes *c)
{
    struct problem *p = &c->p;
    int node;

    do
        node = p->gpus[rng_below(&c->rng, (uint64_t)p->n_gpus)].node;
    while (is_lost(c, node));
    c->lost[c->n_lost++] = node;
    for (int g = 0; g < p->n_gpus; g++)
        p->gpus[g].may_start = p->gpus[g].may_start && p->gpus[g].node != node;
    for (int j = 0; j < p->n_jobs; j++)
        for (int i = 0; i < p->jobs[j].n_present; i++)
            if (p->gpus[p->jobs[j].present[i]].node == node)
                stop(&p->jobs[j]);
}

void changes_restore(struct changes *c)
{
    assert(c->n_lost > 0);
    int node = c->lost[0];
    memmove(c->lost, c->lost + 1, (size_t)--c->n_lost * sizeof *c->lost);
    for (int g = 0; g < c->p.n_gpus; g++)
        if (c->p.gpus[g].node == node)
            c->p.gpus[g].may_start = c->may_start[g];
}
