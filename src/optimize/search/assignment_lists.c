#include "optimize/search/assignment_inner.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "optimize/prices/columns.h"

/* ---- groups, by how many free GPUs they have ---- */

static int level_of(const struct group *g)
{
    return g->n_free < FREE_MAX ? g->n_free : FREE_MAX;
}

static int *free_head(const struct assignment_lists *l, const struct group *g)
{
    return &l->by_free[g->bucket * (FREE_MAX + 1) + level_of(g)];
}

static void group_leave(struct assignment_lists *l, int group)
{
    struct group *g = &l->groups[group];
    int *head = free_head(l, g);

    if (g->prev < 0)
        *head = g->next;
    else
        l->groups[g->prev].next = g->next;
    if (g->next >= 0)
        l->groups[g->next].prev = g->prev;
    if (*head < 0 && g->n_free > 0)
        l->has_free[g->bucket] &= ~((uint64_t)1 << (level_of(g) - 1));
}

static void group_join(struct assignment_lists *l, int group)
{
    struct group *g = &l->groups[group];
    int *head = free_head(l, g);

    g->prev = -1;
    g->next = *head;
    if (g->next >= 0)
        l->groups[g->next].prev = group;
    *head = group;
    if (g->n_free > 0)
        l->has_free[g->bucket] |= (uint64_t)1 << (level_of(g) - 1);
}

static void group_count(struct assignment_lists *l, int group, int more)
{
    group_leave(l, group);
    l->groups[group].n_free += more;
    l->n_free[l->groups[group].bucket] += more;
    group_join(l, group);
}

/* One for each node and type, in the order in which they first appear. */
static void find_groups(struct assignment_lists *l, const struct problem *p)
{
    struct map_u64 known = { 0 };

    for (int g = 0; g < p->n_gpus; g++) {
        const struct problem_gpu *gpu = &p->gpus[g];
        uint64_t key = (uint64_t)gpu->node << 8 | (uint64_t)gpu->type;
        int group = map_u64_get(&known, key);
        if (group < 0) {
            group = l->n_groups++;
            l->groups[group].bucket = gpu->type + (gpu->wake_s > 0 ? p->n_types : 0);
            map_u64_set(&known, key, group);
        }
        l->group_of[g] = group;
        l->groups[group].n++;
    }
    map_u64_release(&known);
}

static void make_groups(struct arena *a, struct assignment_lists *l, const struct problem *p)
{
    l->group_of = ARENA_ARRAY(a, int, (size_t)p->n_gpus);
    l->groups = ARENA_ARRAY(a, struct group, (size_t)p->n_gpus);
    find_groups(l, p);
    struct key_index members = key_index_make(a, l->group_of, p->n_gpus, l->n_groups);
    l->members = members.items;
    for (int i = 0; i < l->n_groups; i++)
        l->groups[i].first = members.first[i];
    l->by_free = ARENA_ARRAY(a, int, 2 * (size_t)p->n_types * (FREE_MAX + 1));
    for (int i = 0; i < 2 * p->n_types * (FREE_MAX + 1); i++)
        l->by_free[i] = -1;
    l->has_free = ARENA_ARRAY(a, uint64_t, 2 * (size_t)p->n_types);
    l->n_free = ARENA_ARRAY(a, int, 2 * (size_t)p->n_types);
    for (int i = l->n_groups; i-- > 0;)
        group_join(l, i);
}

/* ---- GPUs, by who is there ---- */

struct assignment_lists *lists_create(struct arena *a, const struct problem *p)
{
    struct assignment_lists *l = ARENA_NEW(a, struct assignment_lists);

    make_groups(a, l, p);
    l->n_levels = p->theta - 1;
    size_t n_rows = (size_t)l->n_levels * (size_t)p->n_types * (size_t)p->n_kinds;
    size_t n_heads = (size_t)l->n_groups + n_rows * NEED_STEPS;
    l->heads = ARENA_ARRAY(a, int, n_heads);
    for (size_t i = 0; i < n_heads; i++)
        l->heads[i] = -1;
    l->masks = ARENA_ARRAY(a, uint16_t, n_rows);
    return l;
}

/* How much of its speed alone a resident needs from this GPU, in steps of 1/NEED_STEPS. */
static int need_step(const struct assignment *d, int gpu, int slot)
{
    const struct assignment_gpu *g = &d->gpus[gpu];
    int job = g->jobs[slot];
    const struct problem_job *j = &d->problem->jobs[job];
    double rest = j->need - (d->jobs[job].held.mean - g->held[slot].mean);
    double alone = tables_alone(d->tables, d->problem->gpus[gpu].type, j->kind, 0)->held.mean;

    if (!(rest > 0) || !(alone > 0))
        return 0;
    double step = rest / alone * NEED_STEPS;
    return step < NEED_STEPS - 1 ? (int)step : NEED_STEPS - 1;
}

static bool is_shared(const struct assignment *d, const struct assignment_gpu *g)
{
    if (g->is_whole || g->n_jobs >= d->problem->theta)
        return false;
    for (int i = 0; i < g->n_jobs; i++)
        if (d->problem->jobs[g->jobs[i]].is_exclusive)
            return false;
    return true;
}

void lists_join(struct assignment *d, int gpu)
{
    struct assignment_lists *l = d->lists;
    struct assignment_gpu *g = &d->gpus[gpu];
    const struct problem_gpu *pg = &d->problem->gpus[gpu];

    g->list = -1;
    if (!pg->may_start || !is_shared(d, g))
        return;
    if (g->n_jobs == 0) {
        g->list = l->group_of[gpu];
        group_count(l, g->list, 1);
    } else {
        long row =
            lists_row(d, g->n_jobs - 1, pg->type, d->problem->jobs[g->jobs[g->n_jobs - 1]].kind);
        int step = need_step(d, gpu, g->n_jobs - 1);
        g->list = (int)(l->n_groups + row * NEED_STEPS + step);
        l->masks[row] |= (uint16_t)(1u << step);
    }
    g->prev = -1;
    g->next = l->heads[g->list];
    if (g->next >= 0)
        d->gpus[g->next].prev = gpu;
    l->heads[g->list] = gpu;
}

void lists_leave(struct assignment *d, int gpu)
{
    struct assignment_lists *l = d->lists;
    struct assignment_gpu *g = &d->gpus[gpu];

    if (g->list < 0)
        return;
    if (g->prev < 0)
        l->heads[g->list] = g->next;
    else
        d->gpus[g->prev].next = g->next;
    if (g->next >= 0)
        d->gpus[g->next].prev = g->prev;
    if (g->list < l->n_groups) {
        group_count(l, g->list, -1);
    } else if (l->heads[g->list] < 0) {
        int at = g->list - l->n_groups;
        l->masks[at / NEED_STEPS] &= (uint16_t) ~(1u << at % NEED_STEPS);
    }
    g->list = -1;
}

/* ---- looking ---- */

int lists_free(const struct assignment *d, int type, int n)
{
    const struct assignment_lists *l = d->lists;

    for (int bucket = type; bucket < 2 * d->problem->n_types; bucket += d->problem->n_types) {
        uint64_t fit = l->has_free[bucket] & ~(uint64_t)0 << (n - 1);
        if (fit)
            return l->heads[l->by_free[bucket * (FREE_MAX + 1) + __builtin_ctzll(fit) + 1]];
    }
    return -1;
}

bool lists_collect(const struct assignment *d, int type, int n, int n_here, int *gpus)
{
    const struct assignment_lists *l = d->lists;
    int n_taken = 0, least = n_here ? n_here : 1;

    if (assignment_n_free(d, type) < n)
        return false;
    for (int bucket = type; bucket < 2 * d->problem->n_types; bucket += d->problem->n_types)
        for (int k = least; k <= FREE_MAX && n_taken < n; k++) {
            int n_free = n_here ? k : FREE_MAX + least - k;
            int i = l->by_free[bucket * (FREE_MAX + 1) + n_free];
            for (; i >= 0 && n_taken < n; i = l->groups[i].next) {
                int end = n_here ? n_taken + n_here : n;
                for (int g = l->heads[i]; g >= 0 && n_taken < end; g = d->gpus[g].next)
                    gpus[n_taken++] = g;
            }
        }
    return n_taken == n;
}

int assignment_n_free(const struct assignment *d, int type)
{
    return d->lists->n_free[type] + d->lists->n_free[d->problem->n_types + type];
}

int assignment_beside(const struct assignment *d, int type, int kind, int most, int *gpus)
{
    const struct assignment_lists *l = d->lists;
    int n = 0;

    for (int level = 0; level < l->n_levels; level++) {
        long row = lists_row(d, level, type, kind);
        for (unsigned left = l->masks[row]; left && n < most; left &= left - 1) {
            int g = l->heads[l->n_groups + row * NEED_STEPS + __builtin_ctz(left)];
            for (; g >= 0 && n < most; g = d->gpus[g].next)
                gpus[n++] = g;
        }
    }
    return n;
}

bool assignment_free(const struct assignment *d, int job, int type, int n, int *gpus)
{
    int n_nodes = n > 1 ? d->problem->jobs[job].n_nodes : 0;

    if (d->has_rules)
        return rules_gang(d, job, type, n, gpus);
    if (n_nodes > 1)
        return lists_collect(d, type, n, n / n_nodes, gpus);
    int near = lists_free(d, type, n), n_taken = 0;
    if (near < 0)
        return n_nodes == 0 && lists_collect(d, type, n, 0, gpus);
    for (int g = near; n_taken < n; g = d->gpus[g].next)
        gpus[n_taken++] = g;
    return true;
}
