/* Which places there are: GPUs by type and node, and shared ones by who is on them. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "catalog/catalog.h"
#include "optimize/explain/explain_inner.h"

/* ---- the plan without the job ---- */

/* What a GPU draws as the plan without the job has it, as a cap counts it. */
static double drawn_w(const struct explain_asking *q, int gpu)
{
    const struct explain_gpu *g = &q->gpus[gpu];
    int kinds[THETA_MAX];
    struct yield y;

    for (int i = 0; i < g->n_jobs; i++)
        kinds[i] = q->p->jobs[g->jobs[i]].kind;
    if (g->n_jobs == 0 || q->p->gpus[gpu].held_w > 0 ||
        !problem_yield(q->p, q->p->gpus[gpu].type, g->limit, kinds, g->n_jobs, &y))
        return q->p->types[q->p->gpus[gpu].type].idle_w;
    return y.watts;
}

void explain_lay(struct explain_asking *q)
{
    q->gpus = ARENA_ARRAY(q->arena, struct explain_gpu, (size_t)q->p->n_gpus);
    for (int g = 0; g < q->p->n_gpus; g++)
        q->gpus[g].limit = q->plan->limit[g];
    for (int j = 0; j < q->p->n_jobs; j++)
        for (int i = 0; i < q->plan->jobs[j].n_gpus && j != q->job; i++) {
            struct explain_gpu *g = &q->gpus[q->plan->jobs[j].gpus[i]];
            g->jobs[g->n_jobs++] = j;
        }
    for (int i = 0; i < q->placed->n_gpus && !q->j->frozen; i++)
        q->gpus[q->placed->gpus[i]].limit = explain_best_limit(q, q->placed->gpus[i]);
    q->room_w = q->p->power_cap_w > 0 ? q->p->power_cap_w : (double)INFINITY;
    for (int g = 0; g < q->p->n_gpus && q->p->power_cap_w > 0; g++)
        q->room_w -= drawn_w(q, g) * q->p->watts_margin;
}

/* ---- empty GPUs ---- */

/* GPUs of a type on a node, in one pass: a snapshot's nodes stand together. */
void explain_find_runs(struct explain_asking *q)
{
    const struct problem *p = q->p;
    int *at = ARENA_ARRAY(q->arena, int, (size_t)p->n_types);    // the type's newest run, + 1

    q->runs = ARENA_ARRAY(q->arena, struct explain_run, (size_t)p->n_gpus);
    for (int g = 0; g < p->n_gpus; g++) {
        const struct problem_gpu *gpu = &p->gpus[g];
        int i = at[gpu->type] - 1;
        if (i < 0 || q->runs[i].node != gpu->node) {
            i = q->n_runs++;
            at[gpu->type] = i + 1;
            q->runs[i] = (struct explain_run){
                .type = gpu->type, .node = gpu->node, .first = g, .sleeps = gpu->wake_s > 0
            };
        }
        q->runs[i].n_all++;
        q->runs[i].n_up += gpu->may_start;
        q->runs[i].n_free += gpu->may_start && q->gpus[g].n_jobs == 0;
    }
}

/* Up to n free GPUs of a run; returns how many. */
static int take_free(const struct explain_asking *q, const struct explain_run *r, int n, int *gpus)
{
    int got = 0;

    for (int g = r->first; g < q->p->n_gpus && got < n && q->p->gpus[g].node == r->node; g++)
        if (q->p->gpus[g].type == r->type && q->p->gpus[g].may_start && q->gpus[g].n_jobs == 0)
            gpus[got++] = g;
    return got;
}

/* The node with the fewest to spare; NULL: none has so many. */
static const struct explain_run *tightest(const struct explain_asking *q, int type, int n)
{
    const struct explain_run *best = NULL;

    for (int i = 0; i < q->n_runs; i++) {
        const struct explain_run *r = &q->runs[i];
        if (r->type == type && r->n_free >= n &&
            (!best || r->sleeps < best->sleeps ||
             (r->sleeps == best->sleeps && r->n_free < best->n_free)))
            best = r;
    }
    return best;
}

/* Over several nodes: 'n_here' of each that has them, or as many as there are (0). */
static bool spread(const struct explain_asking *q, int type, int n, int n_here, int *gpus)
{
    int got = 0;

    for (int asleep = 0; asleep < 2; asleep++)
        for (int i = 0; i < q->n_runs && got < n; i++) {
            const struct explain_run *r = &q->runs[i];
            if (r->type == type && r->sleeps == asleep && r->n_free >= n_here)
                got += take_free(q, r, n_here ? n_here : n - got, gpus + got);
        }
    return got == n;
}

static int by_number(const void *a, const void *b)
{
    const int *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

bool explain_find_free(const struct explain_asking *q, int type, int n, int *gpus)
{
    int n_nodes = n > 1 ? q->j->n_nodes : 1;
    const struct explain_run *near = n_nodes < 2 ? tightest(q, type, n) : NULL;

    if (near)
        return take_free(q, near, n, gpus) == n;
    if (n_nodes == 1 || !spread(q, type, n, n_nodes > 1 ? n / n_nodes : 0, gpus))
        return false;
    qsort(gpus, (size_t)n, sizeof *gpus, by_number);
    return true;
}

/* ---- shared ones ---- */

/* A GPU with room for one more, as a kind of its own. */
static struct explain_kind kind_of(const struct explain_asking *q, int gpu)
{
    const struct explain_gpu *g = &q->gpus[gpu];
    struct explain_kind k = { .type = q->p->gpus[gpu].type,
                              .limit = g->limit,
                              .n_jobs = g->n_jobs,
                              .may_start = q->p->gpus[gpu].may_start,
                              .may_join = true,
                              .gpu = gpu,
                              .n_gpus = 1 };

    for (int i = 0; i < g->n_jobs; i++) {
        const struct problem_job *j = &q->p->jobs[g->jobs[i]];
        int at_i = i;
        for (; at_i > 0 && k.kinds[at_i - 1] > j->kind; at_i--)
            k.kinds[at_i] = k.kinds[at_i - 1];
        k.kinds[at_i] = j->kind;
        k.may_join &= !j->is_exclusive && q->plan->jobs[g->jobs[i]].n_gpus < 2;
        k.need = fmax(k.need, j->need);
    }
    return k;
}

static bool is_alike(const struct explain_kind *a, const struct explain_kind *b)
{
    return a->type == b->type && a->limit == b->limit && a->n_jobs == b->n_jobs &&
           a->may_start == b->may_start && a->may_join == b->may_join &&
           memcmp(a->kinds, b->kinds, sizeof a->kinds) == 0;
}

static uint32_t hash_of(const struct explain_kind *k)
{
    uint32_t h = (uint32_t)k->type * 31U + (uint32_t)k->limit * 2U + k->may_start;

    h = h * 2U + k->may_join;
    for (int i = 0; i < k->n_jobs; i++)
        h = (h ^ (uint32_t)k->kinds[i]) * 0x9E3779B1U;
    return h ^ h >> 15;
}

bool explain_is_chosen(const struct explain_asking *q, int gpu)
{
    return q->placed->n_gpus == 1 && q->placed->gpus[0] == gpu;
}

static void count_kind(struct explain_asking *q, const struct explain_kind *k, int *slots,
                       uint32_t mask)
{
    uint32_t at = hash_of(k) & mask;

    while (slots[at] && !is_alike(&q->kinds[slots[at] - 1], k))
        at = (at + 1) & mask;
    if (!slots[at]) {
        q->kinds[q->n_kinds++] = *k;
        slots[at] = q->n_kinds;
        return;
    }
    struct explain_kind *known = &q->kinds[slots[at] - 1];
    known->n_gpus++;
    if (explain_is_chosen(q, k->gpu) ||
        (k->need < known->need && !explain_is_chosen(q, known->gpu))) {
        known->gpu = k->gpu;
        known->need = k->need;
    }
}

/* Jobs that may share a GPU of this type. */
static int theta_of(const struct explain_asking *q, int type)
{
    const struct catalog *c = q->asked->snapshot->catalog;

    return gpu_type_theta(&c->types[q->asked->type_of[type]], q->p->theta);
}

void explain_find_kinds(struct explain_asking *q)
{
    int n = 0;
    uint32_t size = 16;

    for (int g = 0; g < q->p->n_gpus; g++)
        n += q->gpus[g].n_jobs > 0;
    while (size < 2 * (uint32_t)n)
        size *= 2;
    int *slots = ARENA_ARRAY(q->arena, int, size);
    q->kinds = ARENA_ARRAY(q->arena, struct explain_kind, (size_t)n);
    for (int g = 0; g < q->p->n_gpus; g++) {
        int n_jobs = q->gpus[g].n_jobs, most = theta_of(q, q->p->gpus[g].type);
        if (n_jobs == 0 || q->p->gpus[g].held_w > 0 || (n_jobs >= most && !explain_is_chosen(q, g)))
            continue;
        struct explain_kind k = kind_of(q, g);
        count_kind(q, &k, slots, size - 1);
    }
}
