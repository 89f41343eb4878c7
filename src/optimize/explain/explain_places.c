/* Which places there are: GPUs by type and node, and shared ones by who is on them. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "catalog/catalog.h"
#include "optimize/explain/explain_inner.h"

/* GPUs of a type on a node, in one pass: a node's GPUs stand together. */
void explain_find_runs(struct explain_asking *q)
{
    const struct snapshot *s = q->snapshot;
    int *at = ARENA_ARRAY(q->arena, int, (size_t)q->est->n_types);    // the type's newest run, + 1

    q->runs = ARENA_ARRAY(q->arena, struct explain_run, (size_t)s->n_gpus);
    for (int g = 0; g < s->n_gpus; g++) {
        const struct snap_gpu *gpu = &s->gpus[g];
        int i = at[gpu->type] - 1;
        if (i < 0 || q->runs[i].node != gpu->node) {
            i = q->n_runs++;
            at[gpu->type] = i + 1;
            q->runs[i] = (struct explain_run){ .type = gpu->type, .node = gpu->node, .first = -1 };
        }
        struct explain_run *r = &q->runs[i];
        r->n_all++;
        r->n_up += gpu->may_start;
        if (!gpu->may_start || q->board.gpus[g].n_jobs)
            continue;
        r->n_free++;
        r->wake_s = fmax(r->wake_s, gpu->wake_s);
        r->first = r->first < 0 ? g : r->first;
    }
}

/* A GPU with room for one more, as a kind of its own. */
static struct explain_kind kind_of(const struct explain_asking *q, int gpu)
{
    const struct board_gpu *g = &q->board.gpus[gpu];
    const struct snap_gpu *at = &q->snapshot->gpus[gpu];
    struct explain_kind k = { .type = at->type,
                              .limit_w = q->board.jobs[g->jobs[0]].limit_w,
                              .n_jobs = g->n_jobs,
                              .may_start = at->may_start,
                              .may_join = true,
                              .gpu = gpu,
                              .n_gpus = 1 };

    for (int i = 0; i < g->n_jobs; i++) {
        const struct snap_job *j = &q->snapshot->jobs[g->jobs[i]];
        int at_i = i;
        for (; at_i > 0 && k.workloads[at_i - 1] > j->workload; at_i--)
            k.workloads[at_i] = k.workloads[at_i - 1];
        k.workloads[at_i] = j->workload;
        k.may_join &= !j->spec->is_exclusive && q->board.jobs[g->jobs[i]].n_gpus < 2;
        k.need = fmax(k.need, j->need);
    }
    return k;
}

static bool is_alike(const struct explain_kind *a, const struct explain_kind *b)
{
    return a->type == b->type && a->limit_w == b->limit_w && a->n_jobs == b->n_jobs &&
           a->may_start == b->may_start && a->may_join == b->may_join &&
           memcmp(a->workloads, b->workloads, sizeof a->workloads) == 0;
}

static uint32_t hash_of(const struct explain_kind *k)
{
    uint32_t h = (uint32_t)k->type * 31U + (uint32_t)k->limit_w * 2U + k->may_start;

    h = h * 2U + k->may_join;
    for (int i = 0; i < k->n_jobs; i++)
        h = (h ^ (uint32_t)k->workloads[i]) * 0x9E3779B1U;
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

void explain_find_kinds(struct explain_asking *q)
{
    const struct snapshot *s = q->snapshot;
    int n = 0;
    uint32_t size = 16;

    for (int g = 0; g < s->n_gpus; g++)
        n += q->board.gpus[g].n_jobs > 0;
    while (size < 2 * (uint32_t)n)
        size *= 2;
    int *slots = ARENA_ARRAY(q->arena, int, size);
    q->kinds = ARENA_ARRAY(q->arena, struct explain_kind, (size_t)n);
    for (int g = 0; g < s->n_gpus; g++) {
        int n_jobs = q->board.gpus[g].n_jobs;
        int most = gpu_type_theta(&s->catalog->types[s->gpus[g].type], s->theta);
        if (n_jobs == 0 || (n_jobs >= most && !explain_is_chosen(q, g)))
            continue;
        struct explain_kind k = kind_of(q, g);
        count_kind(q, &k, slots, size - 1);
    }
}
