/* From columns to a plan. */
#include "optimize/exact/program.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "optimize/model/plan.h"

/* A slot of a family, and its GPU; or a taker, and the job. */
struct slot {
    int family;
    double low;
    int which;
};

struct slots {
    int n;
    struct slot *at;
};

struct laying {
    const struct program *x;
    struct plan *out;
    bool *is_used;    // (n_gpus)
    int **gpus;       // (n_jobs) the plan's, on the way
    struct slots slots, takers;
};

static bool lay_job(struct laying *l, int job, int gpu)
{
    struct plan_job *to = &l->out->jobs[job];

    if (to->n_gpus >= l->x->p->jobs[job].n_max)
        return false;
    l->gpus[job][to->n_gpus++] = gpu;
    return true;
}

/* A column's jobs on a free GPU of a place; false: there is none. */
static bool lay_gpu(struct laying *l, const struct column *c, int at)
{
    const int *place_of = l->x->place_of[l->x->places[at].level], n_gpus = l->x->p->n_gpus;
    int gpu = 0;

    while (gpu < n_gpus && (l->is_used[gpu] || place_of[gpu] != at))
        gpu++;
    if (gpu == n_gpus)
        return false;
    l->is_used[gpu] = true;
    l->out->limit[gpu] = (unsigned char)c->limit;
    if (c->form == COLUMN_GANG)
        return lay_job(l, c->job, gpu);
    for (int i = 0; i < c->n; i++) {
        const struct item *item = &c->items[i];
        if (item->family >= 0)
            l->slots.at[l->slots.n++] = (struct slot){ item->family, c->low[i], gpu };
        else if (!lay_job(l, item->job, gpu))
            return false;
    }
    return true;
}

/* What of it is on places of this level. */
static bool lay_column(struct laying *l, const struct column *c, enum place_level level)
{
    const struct program *x = l->x;
    bool is_laid = true;

    for (int i = 0; c->form == COLUMN_GANG && c->stays && level == PLACE_GPU && i < c->n; i++)
        is_laid &= lay_gpu(l, c, x->place_of[PLACE_GPU][x->p->jobs[c->job].present[i]]);
    for (int i = 0; i < c->n_shares; i++)
        for (int k = 0; x->places[c->shares[i].place].level == level && k < c->shares[i].n; k++)
            is_laid &= lay_gpu(l, c, c->shares[i].place);
    return is_laid;
}

/* Those bound to GPUs first, then those bound to nodes, then the others. */
static bool lay_columns(struct laying *l, const struct pool *pool, const double *value)
{
    for (int level = 0; level < PLACE_LEVELS; level++)
        for (int i = 0; i < pool->n; i++)
            for (long k = lround(value[i]); k > 0; k--)
                if (!lay_column(l, &pool->columns[i], level))
                    return false;
    return true;
}

static int best_first(const void *a, const void *b)
{
    const struct slot *l = a, *r = b;

    if (l->family != r->family)
        return l->family - r->family;
    return l->low != r->low ? (l->low < r->low) - (l->low > r->low) : l->which - r->which;
}

/* The neediest takers get the best slots of their family. */
static bool lay_takers(struct laying *l, const struct pool *pool, const double *value)
{
    const struct slot *slot = l->slots.at, *taker = l->takers.at;

    for (int i = 0; i < pool->n; i++) {
        int job = pool->columns[i].job;
        if (pool->columns[i].form == COLUMN_TAKE && lround(value[i]) > 0)
            l->takers.at[l->takers.n++] =
                (struct slot){ l->x->family_of[job], l->x->p->jobs[job].need, job };
    }
    qsort(l->slots.at, (size_t)l->slots.n, sizeof *slot, best_first);
    qsort(l->takers.at, (size_t)l->takers.n, sizeof *taker, best_first);
    bool is_laid = l->slots.n == l->takers.n;
    for (int i = 0; i < l->takers.n && is_laid; i++)
        is_laid = taker[i].family == slot[i].family && taker[i].low <= slot[i].low &&
                  lay_job(l, taker[i].which, slot[i].which);
    return is_laid;
}

static void laying_init(struct laying *l, struct arena *a, const struct program *x,
                        struct plan *out)
{
    const struct problem *p = x->p;

    *out = (struct plan){ .n_jobs = p->n_jobs, .n_gpus = p->n_gpus };
    out->jobs = ARENA_ARRAY(a, struct plan_job, (size_t)p->n_jobs);
    out->limit = ARENA_ARRAY(a, unsigned char, (size_t)p->n_gpus);
    *l = (struct laying){ .x = x, .out = out };
    l->is_used = ARENA_ARRAY(x->arena, bool, (size_t)p->n_gpus);
    l->slots.at = ARENA_ARRAY(x->arena, struct slot, (size_t)p->n_gpus * THETA_MAX);
    l->takers.at = ARENA_ARRAY(x->arena, struct slot, (size_t)p->n_jobs);
    l->gpus = ARENA_ARRAY(x->arena, int *, (size_t)p->n_jobs);
    for (int j = 0; j < p->n_jobs; j++)
        out->jobs[j].gpus = l->gpus[j] = ARENA_ARRAY(a, int, (size_t)p->jobs[j].n_max);
}

bool program_answer(struct arena *a, const struct program *x, const struct pool *pool,
                    const double *value, const struct plan *start, struct plan *out)
{
    struct laying l;

    laying_init(&l, a, x, out);
    bool is_laid = lay_columns(&l, pool, value) && lay_takers(&l, pool, value);
    for (int j = 0; j < x->p->n_jobs && is_laid; j++) {
        struct plan_job *to = &out->jobs[j];
        if (to->n_gpus)
            plan_sort_gpus(l.gpus[j], to->n_gpus);
        else if (x->p->jobs[j].name)
            to->reason = start->jobs[j].n_gpus ? WAIT_CAPACITY : start->jobs[j].reason;
    }
    return is_laid;
}
