/* From columns to a plan. */
#include "optimize/exact/program.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/grow.h"
#include "optimize/model/plan.h"

/* Slots of a family, and the GPU of each; or takers, and the job of each. */
struct slot {
    double low;
    int which;
};

struct slots {
    int n, cap;
    struct slot *at;    // heap
};

struct laying {
    const struct program *x;
    struct plan *out;
    bool *is_used;                   // (n_gpus)
    int **gpus;                      // (n_jobs) the plan's, on the way
    struct slots *slots, *takers;    // (n_families)
};

static void slot_add(struct slots *to, double low, int which)
{
    GROW(to->at, to->n, to->cap);
    to->at[to->n++] = (struct slot){ low, which };
}

static bool lay_job(struct laying *l, int job, int gpu)
{
    struct plan_job *to = &l->out->jobs[job];

    if (to->n_gpus >= l->x->p->jobs[job].n_max)
        return false;
    l->gpus[job][to->n_gpus++] = gpu;
    return true;
}

/* A free GPU of a place for a column; -1: there is none. */
static int lay_gpu(struct laying *l, const struct column *c, int at)
{
    const struct program *x = l->x;
    const struct place *place = &x->places[at];
    int gpu = place->gpu >= 0 ? place->gpu : 0;

    while (place->gpu < 0 && gpu < x->p->n_gpus &&
           (l->is_used[gpu] || (place->node < 0 ? x->group_of : x->room_of)[gpu] != at))
        gpu++;
    if (gpu == x->p->n_gpus || l->is_used[gpu])
        return -1;
    l->is_used[gpu] = true;
    l->out->limit[gpu] = (unsigned char)c->limit;
    return gpu;
}

static bool lay_seats(struct laying *l, const struct column *c)
{
    int gpu = lay_gpu(l, c, c->place);

    for (int i = 0; i < c->n && gpu >= 0; i++)
        if (c->items[i].family >= 0)
            slot_add(&l->slots[c->items[i].family], c->low[i], gpu);
        else if (!lay_job(l, c->items[i].job, gpu))
            return false;
    return gpu >= 0;
}

static bool lay_gang(struct laying *l, const struct column *c)
{
    const struct program *x = l->x;
    const struct problem_job *j = &x->p->jobs[c->job];

    for (int i = 0; i < j->n_present && c->stays; i++)
        if (lay_gpu(l, c, x->place_of[j->present[i]]) < 0 || !lay_job(l, c->job, j->present[i]))
            return false;
    for (int i = 0; i < c->n_shares; i++)
        for (int k = 0; k < c->shares[i].n; k++) {
            int gpu = lay_gpu(l, c, c->shares[i].place);
            if (gpu < 0 || !lay_job(l, c->job, gpu))
                return false;
        }
    return true;
}

/* Those bound to GPUs first, then those bound to nodes, then the others. */
static int turn_of(const struct program *x, const struct column *c)
{
    int turn = 0;

    if (c->form == COLUMN_SEATS)
        return x->places[c->place].gpu >= 0 ? 0 : 2;
    for (int i = 0; i < c->n_shares; i++) {
        const struct place *place = &x->places[c->shares[i].place];
        int own = place->gpu >= 0 ? 0 : place->node >= 0 ? 1 : 2;
        turn = own > turn ? own : turn;
    }
    return turn;
}

static bool lay_column(struct laying *l, const struct column *c, int turn)
{
    if (c->form == COLUMN_TAKE && turn == 0)
        slot_add(&l->takers[l->x->family_of[c->job]], l->x->p->jobs[c->job].need, c->job);
    if ((c->form != COLUMN_SEATS && c->form != COLUMN_GANG) || turn_of(l->x, c) != turn)
        return true;
    return c->form == COLUMN_GANG ? lay_gang(l, c) : lay_seats(l, c);
}

static bool lay_columns(struct laying *l, const struct pool *pool, const double *value)
{
    for (int turn = 0; turn < 3; turn++)
        for (int i = 0; i < pool->n; i++)
            for (long k = lround(value[i]); k > 0; k--)
                if (!lay_column(l, &pool->columns[i], turn))
                    return false;
    return true;
}

static int falling(const void *a, const void *b)
{
    const struct slot *l = a, *r = b;

    return l->low != r->low ? (l->low < r->low) - (l->low > r->low) : l->which - r->which;
}

/* The neediest takers get the best slots of their family. */
static bool lay_takers(struct laying *l, int family)
{
    struct slots *slots = &l->slots[family], *takers = &l->takers[family];
    bool is_laid = slots->n == takers->n;

    if (slots->n)
        qsort(slots->at, (size_t)slots->n, sizeof *slots->at, falling);
    if (takers->n)
        qsort(takers->at, (size_t)takers->n, sizeof *takers->at, falling);
    for (int i = 0; i < takers->n && is_laid; i++)
        is_laid = takers->at[i].low <= slots->at[i].low &&
                  lay_job(l, takers->at[i].which, slots->at[i].which);
    free(slots->at);
    free(takers->at);
    return is_laid;
}

static int rising(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
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
    l->slots = ARENA_ARRAY(x->arena, struct slots, (size_t)x->n_families);
    l->takers = ARENA_ARRAY(x->arena, struct slots, (size_t)x->n_families);
    l->gpus = ARENA_ARRAY(x->arena, int *, (size_t)p->n_jobs);
    for (int j = 0; j < p->n_jobs; j++)
        out->jobs[j].gpus = l->gpus[j] = ARENA_ARRAY(a, int, (size_t)p->jobs[j].n_max);
}

bool program_answer(struct arena *a, const struct program *x, const struct pool *pool,
                    const double *value, const struct plan *start, struct plan *out)
{
    struct laying l;

    laying_init(&l, a, x, out);
    bool is_laid = lay_columns(&l, pool, value);
    for (int f = 0; f < x->n_families; f++)
        is_laid &= lay_takers(&l, f);
    for (int j = 0; j < x->p->n_jobs && is_laid; j++) {
        struct plan_job *to = &out->jobs[j];
        if (to->n_gpus)
            qsort(l.gpus[j], (size_t)to->n_gpus, sizeof *l.gpus[j], rising);
        else if (x->p->jobs[j].name)
            to->reason = start->jobs[j].n_gpus ? WAIT_CAPACITY : start->jobs[j].reason;
    }
    return is_laid;
}
