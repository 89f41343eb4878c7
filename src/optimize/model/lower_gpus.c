/* Types with their limits, and the GPUs that are worth a look. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "catalog/catalog.h"
#include "estimate/limits.h"
#include "optimize/model/lower_inner.h"

/* Limits are curves of so many points. */
#define CURVE_POINTS 65

static double known(double figure)
{
    return figure > 0 ? figure : 0;
}

int lower_types(struct lowering *l, struct err *e)
{
    const struct snapshot *s = l->snapshot;
    struct problem *p = l->problem;
    int n = l->est->n_types;

    l->type_of = ARENA_ARRAY(l->arena, int, (size_t)n);
    l->type_at = ARENA_ARRAY(l->arena, int, (size_t)n);
    for (int t = 0; t < n; t++)
        l->type_at[t] = -1;
    for (int g = 0; g < s->n_gpus; g++)
        l->type_at[s->gpus[g].type] = 0;
    for (int t = 0; t < n; t++)
        if (l->type_at[t] == 0) {
            l->type_at[t] = p->n_types;
            l->type_of[p->n_types++] = t;
        }
    if (p->n_types > 64)
        return err_set(e, EINVAL, "%d GPU types in one cluster; 64 can be planned", p->n_types);
    p->types = ARENA_ARRAY(l->arena, struct problem_type, (size_t)p->n_types);
    for (int t = 0; t < p->n_types; t++) {
        const struct gpu_type *from = &s->catalog->types[l->type_of[t]];
        p->types[t] = (struct problem_type){
            .name = from->name,
            .sleep_w = known(l->options->may_sleep ? from->sleep_w : from->idle_w),
            .idle_w = known(from->idle_w),
            .cap_w = known(from->cap_w),
            .mem_gib = from->mem_bytes > 0 ? from->mem_bytes / 0x1p30 : 1,
            .n_limits = 1,
        };
    }
    return 0;
}

/* A type whose cap nobody knows has none: more than any of its combinations draws. */
void lower_caps(struct lowering *l)
{
    struct problem *p = l->problem;

    for (int t = 0; t < p->n_types; t++) {
        struct problem_type *type = &p->types[t];
        double most_w = 0;
        for (int k = 0; k < p->n_kinds; k++)
            most_w = fmax(most_w, (double)p->watts[t * p->n_kinds + k] - type->idle_w);
        if (!(type->cap_w > type->idle_w))
            type->cap_w = type->idle_w + 1 + p->theta * most_w;
    }
}

static void lower_curve(struct lowering *l, int type, int limit_w)
{
    const struct gpu_type *from = &l->snapshot->catalog->types[l->type_of[type]];
    struct problem_type *t = &l->problem->types[type];
    double *speed = ARENA_ARRAY(l->arena, double, CURVE_POINTS);
    double *watts = ARENA_ARRAY(l->arena, double, CURVE_POINTS);

    for (int i = 0; i < CURVE_POINTS; i++) {
        double w0 = t->idle_w + (t->cap_w - t->idle_w) * i / (CURVE_POINTS - 1);
        struct limited at = limits_apply(from, limit_w, w0);
        speed[i] = at.speed;
        watts[i] = at.watts;
    }
    t->limits[t->n_limits++] = (struct limit_curve){
        .limit_w = limit_w, .n_points = CURVE_POINTS, .speed = speed, .watts = watts
    };
}

void lower_limits(struct lowering *l)
{
    const struct snapshot *s = l->snapshot;
    struct problem *p = l->problem;

    for (int t = 0; t < p->n_types; t++) {
        int offered[LIMITS_OFFERED];
        int n = limits_offer(&s->catalog->types[l->type_of[t]], offered);
        for (int i = 0; i < n && l->options->may_limit; i++)
            lower_curve(l, t, offered[i]);
    }
}

int lower_setting(const struct problem_type *t, int limit_w)
{
    for (int i = 0; i < t->n_limits; i++)
        if (t->limits[i].limit_w == limit_w)
            return i;
    return -1;
}

/* GPUs that all jobs together could ask for. */
static long gpus_wanted(const struct snapshot *s)
{
    long n = 0;

    for (int j = 0; j < s->n_jobs; j++)
        n += s->jobs[j].spec->max_gpus;
    return n;
}

long lower_size(const struct snapshot *s)
{
    long wanted = gpus_wanted(s), most = (wanted + 1) * s->catalog->n_types;

    return s->n_jobs + (most < s->n_gpus ? most : s->n_gpus);
}

/* Nodes that jobs which could stand on several GPUs of one could ask for. */
static long gangs_wanted(const struct snapshot *s)
{
    long n = 0;

    for (int j = 0; j < s->n_jobs; j++)
        n +=
            s->jobs[j].spec->n_nodes > 1 ? s->jobs[j].spec->n_nodes : s->jobs[j].spec->max_gpus > 1;
    return n;
}

/* GPUs of one type on one node that are empty and may be used. */
struct shelf {
    int type, node, first;    // and the snapshot's first GPU of the node
    int n_empty;
    bool has_gang;    // somebody there could grow
    bool sleeps;
};

/* A row for every (node, type); returns how many there are. */
static int find_shelves(const struct lowering *l, struct shelf *out)
{
    const struct snapshot *s = l->snapshot;
    int n = 0, *at = ARENA_ARRAY(l->arena, int, (size_t)l->est->n_types);

    for (int g = 0, first = 0; g < s->n_gpus; g++) {
        const struct snap_gpu *from = &s->gpus[g];
        if (from->node != s->gpus[first].node)
            first = g;
        struct shelf *here = &out[at[from->type]];
        if (n == 0 || here->first != first || here->type != from->type) {
            at[from->type] = n;
            here = &out[n++];
            *here = (struct shelf){ .type = from->type, .node = from->node, .first = first };
        }
        here->n_empty += from->n_jobs == 0 && from->may_start;
        here->sleeps |= from->wake_s > 0;
        for (int i = 0; i < from->n_jobs; i++)
            here->has_gang |= s->jobs[from->jobs[i]].spec->max_gpus > 1;
    }
    return n;
}

static int by_room(const void *a, const void *b)
{
    const struct shelf *x = a, *y = b;

    if (x->has_gang != y->has_gang)
        return x->has_gang ? -1 : 1;
    return x->n_empty != y->n_empty ? (x->n_empty < y->n_empty) - (x->n_empty > y->n_empty)
                                    : (x->first > y->first) - (x->first < y->first);
}

/* Of a type's empty GPUs not many more than all jobs together could ask for are worth a look: by
 * whole nodes, those with most room first, and all that gangs stand on, so that each finds as good a
 * place as among all; and as many again of those that sleep.
 */
static void choose_empty(const struct lowering *l, bool *is_in)
{
    const struct snapshot *s = l->snapshot;
    int n_types = l->est->n_types;
    long *gpus = ARENA_ARRAY(l->arena, long, 2 * (size_t)n_types);    // awake, and asleep
    long *nodes = ARENA_ARRAY(l->arena, long, 2 * (size_t)n_types);
    long wanted = gpus_wanted(s), gangs = gangs_wanted(s);
    struct shelf *shelves = ARENA_ARRAY(l->arena, struct shelf, (size_t)s->n_gpus);
    int n = find_shelves(l, shelves);

    if (n > 0)
        qsort(shelves, (size_t)n, sizeof *shelves, by_room);
    for (int i = 0; i < n; i++) {
        const struct shelf *x = &shelves[i];
        int at = x->type + (x->sleeps ? n_types : 0);
        if (gpus[at] >= wanted && nodes[at] >= gangs && !x->has_gang)
            continue;
        for (int g = x->first; g < s->n_gpus && s->gpus[g].node == x->node; g++)
            is_in[g] |= s->gpus[g].type == x->type && s->gpus[g].may_start;
        gpus[at] += x->n_empty;
        nodes[at] += !x->has_gang;
    }
}

/* Those in use, and such empty ones as matter. A power cap counts all. */
static const bool *choose_gpus(const struct lowering *l)
{
    const struct snapshot *s = l->snapshot;
    bool *is_in = ARENA_ARRAY(l->arena, bool, (size_t)s->n_gpus);

    for (int g = 0; g < s->n_gpus; g++)
        is_in[g] = s->gpus[g].n_jobs > 0 || l->options->power_cap_w > 0;
    if (l->options->power_cap_w <= 0)
        choose_empty(l, is_in);
    return is_in;
}

/* Until the first of a node's GPUs of this type is awake: then the node is. */
static double node_wake_s(const struct snapshot *s, int first, int end, int type)
{
    double wake_s = HUGE_VAL;

    for (int g = first; g < end; g++)
        if (s->gpus[g].type == type)
            wake_s = fmin(wake_s, s->gpus[g].wake_s);
    return wake_s;
}

/* By node, and there by type: a node of the snapshot may have them in any order. */
void lower_gpus(struct lowering *l)
{
    const struct snapshot *s = l->snapshot;
    struct problem *p = l->problem;
    const bool *is_in = choose_gpus(l);
    int n = 0;

    p->gpus = ARENA_ARRAY(l->arena, struct problem_gpu, (size_t)s->n_gpus);
    l->gpu_of = ARENA_ARRAY(l->arena, int, (size_t)s->n_gpus);
    l->gpu_at = ARENA_ARRAY(l->arena, int, (size_t)s->n_gpus);
    for (int first = 0, end; first < s->n_gpus; first = end) {
        for (end = first; end < s->n_gpus && s->gpus[end].node == s->gpus[first].node;)
            end++;
        for (int t = 0; t < p->n_types; t++)
            for (int g = first; g < end; g++) {
                const struct snap_gpu *from = &s->gpus[g];
                if (!is_in[g] || l->type_at[from->type] != t)
                    continue;
                l->gpu_at[g] = n;
                l->gpu_of[n] = g;
                p->gpus[n++] = (struct problem_gpu){
                    .type = t,
                    .node = from->node,
                    .may_start = from->may_start,
                    .wake_s = node_wake_s(s, first, end, from->type),
                };
            }
    }
    p->n_gpus = n;
    for (int g = 0; g < n; g++) {
        if (!(p->gpus[g].wake_s > 0))
            continue;
        if (!l->wake_s)
            l->wake_s = ARENA_ARRAY(l->arena, double, (size_t)p->n_types);
        l->wake_s[p->gpus[g].type] = fmax(l->wake_s[p->gpus[g].type], p->gpus[g].wake_s);
    }
}
