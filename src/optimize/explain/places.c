/* Which places there are: GPUs by type and node, and shared ones by who is on them. */
#include <assert.h>
#include <math.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "catalog/catalog.h"
#include "optimize/explain/inner.h"

/* Of a kind of work in the key of a GPU: three of them, its type, setting and two flags are 64.
 * Whose tables have more kinds does not fit in memory.
 */
#define KIND_BITS 17

/* ---- the plan without the job ---- */

/* What a GPU draws as the plan without the job has it, as a cap counts it. */
static double drawn_w(const struct explain *q, int gpu)
{
    const struct explain_gpu *g = &q->gpus[gpu];
    int type = q->p->gpus[gpu].type;
    struct yield y;
    bool is_idle = g->n_jobs == 0 || q->p->gpus[gpu].held_w > 0 ||
                   !problem_yield_of(q->p, type, g->limit, g->jobs, g->n_jobs, &y);

    return is_idle ? q->p->types[type].idle_w : y.watts;
}

/* What the others leave of nodes. */
static void lay_nodes(struct explain *q)
{
    const struct problem *p = q->p;

    q->ruled = ARENA_ARRAY(q->arena, enum engine_rule, (size_t)p->n_types);
    q->left = problem_node_room(q->arena, p);
    for (int j = 0; j < p->n_jobs && q->left; j++)
        for (int i = 0; p->jobs[j].name && j != q->job && i < q->plan->jobs[j].n_gpus; i++)
            problem_use_node(p, j, q->plan->jobs[j].gpus[i], -1, q->left);
}

/* The rule that keeps the job from a GPU. None bars it from where it is already; but others may
 * have been given what it uses of the node.
 */
static enum engine_rule rule_at(const struct explain *q, int gpu)
{
    bool is_there = gpus_have(q->j->present, q->j->n_present, gpu);
    enum engine_rule why = is_there ? ENGINE_CAN : problem_bars(q->p, q->j, gpu), short_of;

    if (why == ENGINE_CAN && q->left &&
        problem_node_fits(&q->left[q->p->gpus[gpu].node], q->j, &short_of) < 1)
        why = short_of;
    return why;
}

static bool is_free(const struct explain *q, int gpu)
{
    return q->p->gpus[gpu].may_start && q->gpus[gpu].n_jobs == 0;
}

void explain_lay(struct explain *q)
{
    lay_nodes(q);
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
void explain_find_nodes(struct explain *q)
{
    const struct problem *p = q->p;
    int *at = ARENA_ARRAY(q->arena, int, (size_t)p->n_types);    // the type's newest run, + 1

    q->nodes = ARENA_ARRAY(q->arena, struct explain_node, (size_t)p->n_gpus);
    for (int g = 0; g < p->n_gpus; g++) {
        const struct problem_gpu *gpu = &p->gpus[g];
        int i = at[gpu->type] - 1;
        if (i < 0 || q->nodes[i].node != gpu->node) {
            i = q->n_nodes++;
            at[gpu->type] = i + 1;
            q->nodes[i] = (struct explain_node){
                .type = gpu->type, .node = gpu->node, .first = g, .sleeps = gpu->wake_s > 0
            };
        }
        q->nodes[i].n_all++;
        q->nodes[i].n_up += gpu->may_start;
        enum engine_rule rule = is_free(q, g) ? rule_at(q, g) : ENGINE_CAN;
        q->ruled[gpu->type] = rule != ENGINE_CAN ? rule : q->ruled[gpu->type];
        q->nodes[i].n_free += is_free(q, g) && rule == ENGINE_CAN;
    }
    for (int i = 0; i < q->n_nodes && q->left; i++) {
        struct explain_node *r = &q->nodes[i];
        enum engine_rule why;
        int fits = problem_node_fits(&q->left[r->node], q->j, &why);
        q->ruled[r->type] = fits < r->n_free ? why : q->ruled[r->type];
        r->n_free = fits < r->n_free ? fits : r->n_free;
    }
}

/* Up to n free GPUs of a run; returns how many. */
static int take_free(const struct explain *q, const struct explain_node *r, int n, int *gpus)
{
    int n_taken = 0;

    n = n < r->n_free ? n : r->n_free;
    for (int g = r->first; g < q->p->n_gpus && n_taken < n && q->p->gpus[g].node == r->node; g++)
        if (q->p->gpus[g].type == r->type && is_free(q, g) && rule_at(q, g) == ENGINE_CAN)
            gpus[n_taken++] = g;
    return n_taken;
}

/* The node with the fewest to spare; NULL: none has so many. */
static const struct explain_node *tightest(const struct explain *q, int type, int n)
{
    const struct explain_node *best = NULL;

    for (int i = 0; i < q->n_nodes; i++) {
        const struct explain_node *r = &q->nodes[i];
        if (r->type == type && r->n_free >= n &&
            (!best || r->sleeps < best->sleeps ||
             (r->sleeps == best->sleeps && r->n_free < best->n_free)))
            best = r;
    }
    return best;
}

/* Over several nodes: 'n_here' of each that has them, or as many as there are (0). */
static bool spread(const struct explain *q, int type, int n, int n_here, int *gpus)
{
    int n_taken = 0;

    for (int asleep = 0; asleep < 2; asleep++)
        for (int i = 0; i < q->n_nodes && n_taken < n; i++) {
            const struct explain_node *r = &q->nodes[i];
            if (r->type == type && r->sleeps == asleep && r->n_free >= n_here)
                n_taken += take_free(q, r, n_here ? n_here : n - n_taken, gpus + n_taken);
        }
    return n_taken == n;
}

bool explain_find_free(const struct explain *q, int type, int n, int *gpus)
{
    int n_nodes = n > 1 ? q->j->n_nodes : 1;
    const struct explain_node *near = n_nodes < 2 ? tightest(q, type, n) : NULL;

    if (near)
        return take_free(q, near, n, gpus) == n;
    if (n_nodes == 1 || !spread(q, type, n, n_nodes > 1 ? n / n_nodes : 0, gpus))
        return false;
    plan_sort_gpus(gpus, n);
    return true;
}

/* ---- shared ones ---- */

/* A GPU with room for one more, as a kind of its own, and what those have in common that are of it:
 * type, setting, who may come, and the kinds of work in rising order.
 */
static struct explain_shared shared_of(const struct explain *q, int gpu, uint64_t *key)
{
    const struct explain_gpu *g = &q->gpus[gpu];
    struct explain_shared k = { .may_start = q->p->gpus[gpu].may_start,
                                .may_join = true,
                                .rule = rule_at(q, gpu) };
    uint64_t sorted[THETA_MAX] = { 0 };

    k.gpu = gpu;
    k.n_gpus = 1;
    for (int i = 0; i < g->n_jobs; i++) {
        const struct problem_job *j = &q->p->jobs[g->jobs[i]];
        int at = i;
        for (; at > 0 && sorted[at - 1] > (uint64_t)j->kind; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = (uint64_t)j->kind;
        k.may_join &= !j->is_exclusive && q->plan->jobs[g->jobs[i]].n_gpus < 2;
        k.need = fmax(k.need, j->need);
    }
    *key = (uint64_t)(q->p->gpus[gpu].type * LIMITS_MAX + g->limit) << 2 | k.may_start << 1 |
           k.may_join;
    for (int i = 0; i < THETA_MAX - 1; i++)
        *key = *key << KIND_BITS | (i < g->n_jobs ? sorted[i] + 1 : 0);
    if (k.rule != ENGINE_CAN)    // where nobody may come it tells no third one apart
        *key = *key >> KIND_BITS << KIND_BITS | ((1u << KIND_BITS) - k.rule);
    return k;
}

static bool is_chosen(const struct explain *q, int gpu)
{
    return q->placed->n_gpus == 1 && q->placed->gpus[0] == gpu;
}

static void count_shared(struct explain *q, struct map_u64 *kinds, int gpu)
{
    uint64_t key;
    struct explain_shared k = shared_of(q, gpu, &key);
    int at = map_u64_get(kinds, key);

    if (at < 0) {
        at = q->n_shared++;
        map_u64_set(kinds, key, at);
        q->shared[at] = (struct explain_shared){ .need = INFINITY };
    }
    k.n_gpus += q->shared[at].n_gpus;
    if (is_chosen(q, gpu))
        q->chosen = at;
    if (is_chosen(q, gpu) || (k.need < q->shared[at].need && q->chosen != at))
        q->shared[at] = k;
    q->shared[at].n_gpus = k.n_gpus;
}

void explain_find_shared(struct explain *q)
{
    struct map_u64 kinds = { 0 };

    assert(q->p->n_kinds < 1 << KIND_BITS);
    q->chosen = -1;
    q->shared = ARENA_ARRAY(q->arena, struct explain_shared, (size_t)q->p->n_gpus);
    for (int g = 0; g < q->p->n_gpus; g++) {
        int n_jobs = q->gpus[g].n_jobs, type = q->asked->type_of[q->p->gpus[g].type];
        int most = gpu_type_theta(&q->asked->snapshot->catalog->types[type], q->p->theta);
        if (n_jobs > 0 && q->p->gpus[g].held_w <= 0 && (n_jobs < most || is_chosen(q, g)))
            count_shared(q, &kinds, g);
    }
    map_u64_release(&kinds);
}
