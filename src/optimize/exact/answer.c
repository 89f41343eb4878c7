/* From columns to a plan. */
#include "optimize/exact/program.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "optimize/model/plan.h"

/* A slot of a class, and its GPU; or a taker, and the job. */
struct answer_slot {
    int class;
    double low;
    int which;
};

struct answer {
    const struct exact_program *x;
    struct plan *out;
    bool *is_used;    // (n_gpus)
    int **gpus;       // (n_jobs) the plan's, on the way
    int n_slots, n_takers;
    struct answer_slot *slots, *takers;
};

static bool put_job(struct answer *l, int job, int gpu)
{
    struct plan_job *to = &l->out->jobs[job];

    if (to->n_gpus >= l->x->p->jobs[job].n_max)
        return false;
    l->gpus[job][to->n_gpus++] = gpu;
    return true;
}

/* A column's jobs on a free GPU of a group; false: there is none. */
static bool put_gpu(struct answer *l, const struct exact_column *c, int at)
{
    const int *group_of = l->x->group_of[l->x->groups[at].level], n_gpus = l->x->p->n_gpus;
    int gpu = 0;

    while (gpu < n_gpus && (l->is_used[gpu] || group_of[gpu] != at))
        gpu++;
    if (gpu == n_gpus)
        return false;
    l->is_used[gpu] = true;
    l->out->limit[gpu] = (unsigned char)c->limit;
    if (c->form == COLUMN_GANG)
        return put_job(l, c->job, gpu);
    for (int i = 0; i < c->n; i++) {
        const struct resident *resident = &c->residents[i];
        if (resident->class >= 0)
            l->slots[l->n_slots++] = (struct answer_slot){ resident->class, c->low[i], gpu };
        else if (!put_job(l, resident->job, gpu))
            return false;
    }
    return true;
}

/* What of it is on groups of this level. */
static bool put_column(struct answer *l, const struct exact_column *c, enum group_level level)
{
    const struct exact_program *x = l->x;
    bool is_put = true;

    for (int i = 0; c->form == COLUMN_GANG && c->stays && level == GROUP_GPU && i < c->n; i++)
        is_put &= put_gpu(l, c, x->group_of[GROUP_GPU][x->p->jobs[c->job].present[i]]);
    for (int i = 0; i < c->n_shares; i++)
        for (int k = 0; x->groups[c->shares[i].group].level == level && k < c->shares[i].n; k++)
            is_put &= put_gpu(l, c, c->shares[i].group);
    return is_put;
}

/* Those bound to GPUs first, then those bound to nodes, then the others. */
static bool put_columns(struct answer *l, const struct column_list *pool, const double *value)
{
    for (int level = 0; level < GROUP_LEVELS; level++)
        for (int i = 0; i < pool->n; i++)
            for (long k = lround(value[i]); k > 0; k--)
                if (!put_column(l, &pool->columns[i], level))
                    return false;
    return true;
}

static int best_first(const void *a, const void *b)
{
    const struct answer_slot *l = a, *r = b;

    if (l->class != r->class)
        return l->class - r->class;
    return l->low != r->low ? (l->low < r->low) - (l->low > r->low) : l->which - r->which;
}

/* The neediest takers get the best slots of their class. */
static bool put_takers(struct answer *l, const struct column_list *pool, const double *value)
{
    const struct answer_slot *slot = l->slots, *taker = l->takers;

    for (int i = 0; i < pool->n; i++) {
        int job = pool->columns[i].job;
        if (pool->columns[i].form == COLUMN_TAKE && lround(value[i]) > 0)
            l->takers[l->n_takers++] =
                (struct answer_slot){ l->x->class_of[job], l->x->p->jobs[job].need, job };
    }
    qsort(l->slots, (size_t)l->n_slots, sizeof *slot, best_first);
    qsort(l->takers, (size_t)l->n_takers, sizeof *taker, best_first);
    bool is_put = l->n_slots == l->n_takers;
    for (int i = 0; i < l->n_takers && is_put; i++)
        is_put = taker[i].class == slot[i].class && taker[i].low <= slot[i].low &&
                 put_job(l, taker[i].which, slot[i].which);
    return is_put;
}

static void answer_init(struct answer *l, struct arena *a, const struct exact_program *x,
                        struct plan *out)
{
    const struct problem *p = x->p;

    *out = (struct plan){ .n_jobs = p->n_jobs, .n_gpus = p->n_gpus };
    out->jobs = ARENA_ARRAY(a, struct plan_job, (size_t)p->n_jobs);
    out->limit = ARENA_ARRAY(a, unsigned char, (size_t)p->n_gpus);
    *l = (struct answer){ .x = x, .out = out };
    l->is_used = ARENA_ARRAY(x->arena, bool, (size_t)p->n_gpus);
    l->slots = ARENA_ARRAY(x->arena, struct answer_slot, (size_t)p->n_gpus * THETA_MAX);
    l->takers = ARENA_ARRAY(x->arena, struct answer_slot, (size_t)p->n_jobs);
    l->gpus = ARENA_ARRAY(x->arena, int *, (size_t)p->n_jobs);
    for (int j = 0; j < p->n_jobs; j++)
        out->jobs[j].gpus = l->gpus[j] = ARENA_ARRAY(a, int, (size_t)p->jobs[j].n_max);
}

bool program_answer(struct arena *a, const struct exact_program *x, const struct column_list *pool,
                    const double *value, const struct plan *start, struct plan *out)
{
    struct answer l;

    answer_init(&l, a, x, out);
    bool is_put = put_columns(&l, pool, value) && put_takers(&l, pool, value);
    for (int j = 0; j < x->p->n_jobs && is_put; j++) {
        struct plan_job *to = &out->jobs[j];
        if (to->n_gpus)
            plan_sort_gpus(l.gpus[j], to->n_gpus);
        else if (x->p->jobs[j].name)
            to->reason = start->jobs[j].n_gpus ? WAIT_CAPACITY : start->jobs[j].reason;
    }
    return is_put;
}
