#include "optimize/model/lower.h"

#include <errno.h>
#include <math.h>

#include "base/arena.h"
#include "base/err.h"
#include "catalog/catalog.h"
#include "catalog/cluster/engine.h"
#include "estimate/prior/limits.h"
#include "optimize/model/lower_inner.h"

/* Limits are curves of so many points. */
#define CURVE_POINTS 65

static int lower_types(struct lowering *l, struct err *e)
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
            .sleep_w = fmax(l->options->may_sleep ? from->sleep_w : from->idle_w, 0),
            .idle_w = fmax(from->idle_w, 0),
            .cap_w = fmax(from->cap_w, 0),
            .mem_gib = from->mem_bytes > 0 ? from->mem_bytes / 0x1p30 : 1,
            .n_limits = 1,
        };
    }
    return 0;
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

/* Settings are a type's: where one of its GPUs takes none, none of them has any. */
static bool takes_limits(const struct snapshot *s, int type)
{
    for (int g = 0; g < s->n_gpus && s->engine && s->engine->unlimited; g++)
        if (s->gpus[g].type == type && s->engine->unlimited[g])
            return false;
    return true;
}

/* A type whose cap nobody knows has none: more than any of its combinations draws. */
static void lower_limits(struct lowering *l)
{
    const struct snapshot *s = l->snapshot;
    struct problem *p = l->problem;

    for (int t = 0; t < p->n_types; t++) {
        struct problem_type *type = &p->types[t];
        double most_w = 0;
        int offered[LIMITS_OFFERED];
        int n = limits_offer(&s->catalog->types[l->type_of[t]], offered);
        for (int k = 0; k < p->n_kinds; k++)
            most_w = fmax(most_w, (double)p->watts[t * p->n_kinds + k] - type->idle_w);
        if (!(type->cap_w > type->idle_w))
            type->cap_w = type->idle_w + 1 + p->theta * most_w;
        for (int i = 0; i < n && l->options->may_limit && takes_limits(s, l->type_of[t]); i++)
            lower_curve(l, t, offered[i]);
    }
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

static void lower_gpu(struct lowering *l, int gpu, double wake_s)
{
    const struct snapshot_gpu *from = &l->snapshot->gpus[gpu];
    const struct engine_rules *engine = l->snapshot->engine;
    int type = l->type_at[from->type];

    l->problem->gpus[gpu] =
        (struct problem_gpu){ .type = type,
                              .node = from->node,
                              .may_start = from->may_start,
                              .wake_s = wake_s,
                              .device = engine && engine->devices ? engine->devices[gpu] : 0 };
    if (!(wake_s > 0))
        return;
    if (!l->wake_s)
        l->wake_s = ARENA_ARRAY(l->arena, double, (size_t)l->problem->n_types);
    l->wake_s[type] = fmax(l->wake_s[type], wake_s);
}

/* All of them, in the snapshot's order; there a node's stand together. */
static void lower_gpus(struct lowering *l)
{
    const struct snapshot *s = l->snapshot;

    l->problem->n_gpus = s->n_gpus;
    l->problem->gpus = ARENA_ARRAY(l->arena, struct problem_gpu, (size_t)s->n_gpus);
    for (int first = 0, end; first < s->n_gpus; first = end) {
        for (end = first; end < s->n_gpus && s->gpus[end].node == s->gpus[first].node;)
            end++;
        for (int g = first; g < end; g++)
            lower_gpu(l, g, node_wake_s(s, first, end, s->gpus[g].type));
    }
}

/* What frozen jobs leave of nodes. */
static void lower_nodes(struct lowering *l)
{
    const struct engine_rules *from = l->snapshot->engine;
    struct problem *p = l->problem;

    if (!from || !from->nodes)
        return;
    struct engine_node *nodes = ARENA_ARRAY(l->arena, struct engine_node, (size_t)p->n_nodes);
    for (int n = 0; n < p->n_nodes; n++)
        nodes[n] = from->nodes[n];
    for (int j = 0; j < p->n_jobs; j++)
        for (int i = 0; p->jobs[j].frozen && i < p->jobs[j].n_present; i++) {
            const struct engine_job *by = &p->jobs[j].engine;
            struct engine_node *of = &nodes[p->gpus[p->jobs[j].present[i]].node];
            of->cpus -= of->cpus < by->cpus ? of->cpus : by->cpus;
            of->mem_mib -= of->mem_mib < by->mem_mib ? of->mem_mib : by->mem_mib;
        }
    p->nodes = nodes;
}

/* What a second of a usual job's time is worth: as was said, or by the mean power cap of the GPUs
 * of which it is known: the knob between energy and time, in a unit that fits any hardware.
 */
static double usual_delay_w(const struct snapshot *s, const struct solve_options *o)
{
    double sum_w = 0;
    int n = 0;

    if (o->objective != OBJECTIVE_JOULES || o->delay_w >= 0)
        return o->objective == OBJECTIVE_JOULES ? o->delay_w : 0;
    for (int g = 0; g < s->n_gpus; g++) {
        double cap_w = s->catalog->types[s->gpus[g].type].cap_w;
        sum_w += cap_w > 0 ? cap_w : 0;
        n += cap_w > 0;
    }
    return options_usual_delay_w(sum_w, n);
}

int lower_problem(struct arena *a, const struct snapshot *s, const struct estimator *est,
                  const struct solve_options *o, struct lowered *out, struct err *e)
{
    struct problem *p = &out->problem;
    struct lowering l = { .arena = a,
                          .snapshot = s,
                          .est = est,
                          .options = o,
                          .problem = p,
                          .delay_w = usual_delay_w(s, o) };

    out->snapshot = s;
    *p = (struct problem){ .theta = o->may_share ? s->theta : 1,
                           .z = est->z,
                           .miss = PROMISE_MISS,
                           .lasting = PROMISE_LASTING,
                           .price_w = o->objective == OBJECTIVE_JOULES ? o->price_w : 0,
                           .n_jobs = s->n_jobs,
                           .n_racks = 1,
                           .n_nodes = s->engine ? s->n_nodes : 0,
                           .turn = (uint64_t)fabs(s->now_s * 1000) };
    if (lower_types(&l, e) < 0)
        return -EINVAL;
    lower_gpus(&l);
    lower_kinds(&l);
    lower_probes(&l);
    lower_limits(&l);
    lower_values(&l);
    lower_jobs(&l);
    lower_services(&l);
    lower_hopes(&l);
    lower_misfits(&l);
    lower_nodes(&l);
    lower_power(&l);
    out->type_of = l.type_of;
    out->workload_of = l.workload_of;
    return problem_check(p, e);
}
