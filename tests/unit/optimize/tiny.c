#include "unit/optimize/tiny.h"

#include <limits.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/rng.h"
#include "optimize/model/problem.h"

#define PICK(r, ...)    \
    (((const double[]){ \
        __VA_ARGS__ })[rng_below((r), sizeof((const double[]){ __VA_ARGS__ }) / sizeof(double))])

static bool chance(struct rng *r, double p)
{
    return rng_uniform(r) < p;
}

static int between(struct rng *r, int low, int high)
{
    return low + (int)rng_below(r, (uint64_t)(high - low + 1));
}

/* ---- types and kinds ---- */

static void make_curve(struct arena *a, struct rng *r, const struct problem_type *t, int limit,
                       struct limit_curve *out)
{
    int n = between(r, 2, 3);
    double *speed = ARENA_ARRAY(a, double, (size_t)n), *watts = ARENA_ARRAY(a, double, (size_t)n);

    out->limit_w = 100 + 10 * limit;
    out->n_points = n;
    for (int i = 0; i < n; i++) {
        double w0 = t->idle_w + (t->cap_w - t->idle_w) * i / (n - 1);
        speed[i] = i == 0 ? 1 : PICK(r, 0.5, 0.75, 0.875, 1);
        watts[i] = i == 0 ? w0 : w0 * PICK(r, 0.5, 0.625, 0.75);
    }
    out->speed = speed;
    out->watts = watts;
}

static void make_type(struct arena *a, struct rng *r, struct problem_type *t)
{
    t->name = "type";
    t->sleep_w = PICK(r, 0, 0, 5);
    t->idle_w = t->sleep_w + PICK(r, 0, 20, 20, 40);
    t->cap_w = t->idle_w + PICK(r, 100, 150, 200);
    t->mem_gib = PICK(r, 16, 24, 32);
    t->n_limits = chance(r, 0.5) ? 1 : between(r, 2, 3);
    for (int l = 1; l < t->n_limits; l++)
        make_curve(a, r, t, l, &t->limits[l]);
}

static void make_cells(struct rng *r, struct problem *p, int type, int kind)
{
    double alone = PICK(r, 1, 2, 2, 3, 4), held = PICK(r, 1, 1, 0.75, 0.5);
    bool is_never = chance(r, 0.05);

    for (int n = -1; n < p->n_kinds; n++) {
        double slow = n < 0 ? 1 : PICK(r, 1, 1, 0.75, 0.75, 0.75, 0.5, 0.5, 0.25, 0);
        long cell = problem_cell(p, type, kind, n);
        p->speed[cell] = is_never ? 0 : (float)(alone * slow);
        p->held[cell] = (float)((double)p->speed[cell] * held * (n < 0 ? 1 : PICK(r, 1, 0.5)));
    }
    p->watts[type * p->n_kinds + kind] = (float)PICK(r, 10, 40, 60, 100, 150, 250);
}

static void make_tables(struct arena *a, struct rng *r, struct problem *p, bool in_joules)
{
    size_t cells = (size_t)(p->n_types * p->n_kinds * (p->n_kinds + 1));

    p->types = ARENA_ARRAY(a, struct problem_type, (size_t)p->n_types);
    p->kinds = ARENA_ARRAY(a, struct problem_kind, (size_t)p->n_kinds);
    p->speed = ARENA_ARRAY(a, float, cells);
    p->held = ARENA_ARRAY(a, float, cells);
    p->watts = ARENA_ARRAY(a, float, (size_t)(p->n_types * p->n_kinds));
    for (int k = 0; k < p->n_kinds; k++) {
        p->kinds[k].name = "kind";
        p->kinds[k].mem_gib = PICK(r, 2, 4, 4, 6, 10, 20);
        p->kinds[k].value_j = in_joules ? PICK(r, 0, 20, 50, 100) : 0;
        p->kinds[k].rate = chance(r, 0.8) ? 0 : PICK(r, 0.5, 1, 2.5);
    }
    for (int t = 0; t < p->n_types; t++) {
        make_type(a, r, &p->types[t]);
        for (int k = 0; k < p->n_kinds; k++)
            make_cells(r, p, t, k);
    }
}

/* By chance of its own, so that the rest of a seed's problem is the same with and without. */
static void make_bends(struct arena *a, uint64_t seed, struct problem *p)
{
    int n = p->n_types * p->n_kinds;
    struct rng r;

    rng_init(&r, seed, "tiny bends");
    if (chance(&r, 0.5))
        return;
    p->bends = ARENA_ARRAY(a, struct problem_bend, (size_t)n);
    for (int i = 0; i < n; i++)
        p->bends[i] = (struct problem_bend){ .loss = (float)PICK(&r, 0, 0.5, 1, 1, 2),
                                             .draw = (float)PICK(&r, 0, 0.5, 1, 1, 1.5),
                                             .at = (float)PICK(&r, 0, 0, -0.25, 0.125),
                                             .is_free = chance(&r, 0.15) };
}

/* ---- GPUs and jobs ---- */

static void make_gpus(struct arena *a, struct rng *r, struct problem *p)
{
    int node = 0, rack = 0, type = 0;

    p->gpus = ARENA_ARRAY(a, struct problem_gpu, (size_t)p->n_gpus);
    p->n_racks = between(r, 1, 2);
    for (int g = 0; g < p->n_gpus; g++) {
        if (g > 0 && chance(r, 0.5)) {
            node++;
            rack = between(r, 0, p->n_racks - 1);
        }
        if (g == 0 || node != p->gpus[g - 1].node)
            type = between(r, 0, p->n_types - 1);
        p->gpus[g] = (struct problem_gpu){
            .type = type, .node = node, .rack = rack, .may_start = !chance(r, 0.2)
        };
    }
}

/* Nodes with several types, listed in any order; by chance of its own. */
static void mix_gpus(uint64_t seed, struct problem *p)
{
    struct rng r;

    rng_init(&r, seed, "tiny mix");
    for (int g = p->n_gpus - 1; g > 0 && seed % 4 == 2; g--) {
        int other = between(&r, 0, g);
        struct problem_gpu was = p->gpus[g];
        p->gpus[g] = p->gpus[other];
        p->gpus[other] = was;
        if (chance(&r, 0.3))
            p->gpus[g].type = between(&r, 0, p->n_types - 1);
    }
}

static void make_job(struct arena *a, struct rng *r, const struct problem *p, struct problem_job *j)
{
    j->name = chance(r, 0.05) ? NULL : arena_printf(a, "job-%d", (int)(j - p->jobs));
    j->kind = between(r, 0, p->n_kinds - 1);
    j->form = chance(r, 0.5) ? FORM_GANG : FORM_SPREAD;
    j->n_min = j->form == FORM_SPREAD || chance(r, 0.8) ? 1 : between(r, 2, 3);
    j->n_max = chance(r, 0.5) ? j->n_min : j->n_min + between(r, 1, 2);
    j->need = PICK(r, 0, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 4, 6);
    j->short_w = PICK(r, 0, 50, 200, 500, 1000);
    j->wait_w = PICK(r, 0, 200, 500, 2000, 2000);
    j->move_w = PICK(r, 0, 5, 50, 300);
    j->allowed_types = chance(r, 0.7) ? 0 : 1 + rng_below(r, (UINT64_C(1) << p->n_types) - 1);
    j->is_exclusive = chance(r, 0.15);
    j->n_nodes = j->form == FORM_GANG && chance(r, 0.3);
}

/* Gangs over two nodes, by chance of their own as well. */
static void make_nodes(uint64_t seed, int job, struct problem_job *j)
{
    struct rng r;

    rng_init(&r, seed * 64 + (uint64_t)job, "tiny nodes");
    if (j->form != FORM_GANG || seed % 4 != 3 || chance(&r, 0.4))
        return;
    j->n_nodes = 2;
    j->n_min = j->n_max = chance(&r, 0.7) ? 2 : 4;
}

/* Nodes that sleep, and what waking them is to the jobs; by chance of its own as well. */
static void make_sleepers(uint64_t seed, struct problem *p)
{
    struct rng r;

    rng_init(&r, seed, "tiny sleepers");
    if (seed % 3 != 1)
        return;
    for (int g = 0; g < p->n_gpus; g++) {
        int first = 0;
        while (p->gpus[first].node != p->gpus[g].node)
            first++;
        p->gpus[g].wake_s = first < g ? p->gpus[first].wake_s : PICK(&r, 0, 0, 10, 60);
    }
    for (int j = 0; j < p->n_jobs; j++) {
        p->jobs[j].wake_rate = PICK(&r, 0, 0.001, 0.01, 0.01);
        p->jobs[j].late_w = PICK(&r, 0, 0, 0.5, 2);
    }
}

/* ---- who runs now ---- */

struct used_gpu {
    int n, limit;
    int kinds[THETA_MAX];
    bool is_closed;    // its job shares with nobody
};

static bool may_join(const struct problem *p, const struct problem_job *j, const struct used_gpu *s,
                     int gpu, int limit, bool is_alone)
{
    int kinds[THETA_MAX];
    struct yield y;

    if (s->n >= p->theta || s->is_closed || (s->n && is_alone) ||
        !problem_allows(j, p->gpus[gpu].type))
        return false;
    for (int i = 0; i < s->n; i++)
        kinds[i] = s->kinds[i];
    kinds[s->n] = j->kind;
    return problem_yield(p, p->gpus[gpu].type, limit, kinds, s->n + 1, &y);
}

/* On 'n' GPUs from a random one on, where they suit. */
static void make_present(struct arena *a, struct rng *r, struct problem *p, struct problem_job *j,
                         struct used_gpu *used)
{
    int want = between(r, j->n_min, j->n_max), n = 0, from = between(r, 0, p->n_gpus - 1);
    int limit = between(r, 0, 1) ? 0 : between(r, 0, 2);
    bool is_alone = j->is_exclusive || (j->form == FORM_GANG && want > 1);
    int *gpus = ARENA_ARRAY(a, int, (size_t)want);

    for (int g = from; g < p->n_gpus && n < want; g++) {
        const struct problem_gpu *first = &p->gpus[n ? gpus[0] : g], *gpu = &p->gpus[g];
        bool is_one = j->form == FORM_SPREAD || gpu->type == first->type;
        int n_here = 0;
        for (int i = 0; i < n; i++)
            n_here += p->gpus[gpus[i]].node == gpu->node;
        bool is_near = j->n_nodes == 0 ||
                       (j->n_nodes == 1 ? gpu->node == first->node : n_here < want / j->n_nodes);
        bool has_limit = limit < p->types[gpu->type].n_limits;
        bool agrees = used[g].n == 0 || used[g].limit == limit;
        if (is_one && is_near && has_limit && agrees &&
            may_join(p, j, &used[g], g, limit, is_alone))
            gpus[n++] = g;
    }
    if (n < j->n_min || !problem_stands(p, gpus, n, j->n_nodes))
        return;
    for (int i = 0; i < n; i++) {
        struct used_gpu *s = &used[gpus[i]];
        s->kinds[s->n++] = j->kind;
        s->limit = limit;
        s->is_closed |= is_alone;
    }
    j->n_present = n;
    j->present = gpus;
    j->present_limit = limit;
    j->is_fixed = chance(r, 0.25);
}

static void make_jobs(struct arena *a, uint64_t seed, struct rng *r, struct problem *p)
{
    struct used_gpu *used = ARENA_ARRAY(a, struct used_gpu, (size_t)p->n_gpus);

    p->jobs = ARENA_ARRAY(a, struct problem_job, (size_t)p->n_jobs);
    for (int j = 0; j < p->n_jobs; j++) {
        make_job(a, r, p, &p->jobs[j]);
        make_nodes(seed, j, &p->jobs[j]);
        if (p->jobs[j].name && p->n_gpus && chance(r, 0.4))
            make_present(a, r, p, &p->jobs[j], used);
    }
}

static void make_caps(struct arena *a, struct rng *r, struct problem *p)
{
    double idle_w = 0;
    double *racks = ARENA_ARRAY(a, double, (size_t)p->n_racks);

    p->watts_margin = PICK(r, 1, 1, 1.25);
    for (int g = 0; g < p->n_gpus; g++)
        idle_w += p->types[p->gpus[g].type].idle_w;
    if (chance(r, 0.4))
        p->power_cap_w = (idle_w + PICK(r, 50, 150, 300, 500)) * p->watts_margin;
    if (!chance(r, 0.3))
        return;
    for (int k = 0; k < p->n_racks; k++)
        racks[k] = PICK(r, 0, 100, 250, 400);
    p->rack_cap_w = racks;
}

void tiny_make(struct arena *a, uint64_t seed, int jobs_most, int gpus_most, struct problem *out)
{
    struct rng r;

    rng_init(&r, seed, "tiny");
    *out = (struct problem){ .z = 1 };
    out->theta = (int)PICK(&r, 1, 2, 2, 3, 3);
    out->price_w = PICK(&r, 0, 0, 10);
    out->n_types = (int)PICK(&r, 1, 1, 2, 2, 3);
    out->n_kinds = between(&r, 1, 4);
    out->n_jobs = between(&r, jobs_most / 2, jobs_most);
    out->n_gpus = between(&r, gpus_most / 2, gpus_most);
    for (int m = 0; m <= GANG_MAX; m++) {
        out->gang_near[m] = m < 2 ? m : m * 0.875;
        out->gang_far[m] = m < 2 ? m : m * 0.625;
    }
    make_tables(a, &r, out, chance(&r, 0.5));
    make_bends(a, seed, out);
    make_gpus(a, &r, out);
    mix_gpus(seed, out);
    make_jobs(a, seed, &r, out);
    make_caps(a, &r, out);
    make_sleepers(seed, out);
}

static const unsigned char *make_bars(struct arena *a, struct rng *r, int n_nodes)
{
    unsigned char *barred = ARENA_ARRAY(a, unsigned char, (size_t)n_nodes);

    for (int n = 0; n < n_nodes; n++)
        barred[n] = chance(r, 0.4) ? ENGINE_FEATURE : ENGINE_CAN;
    return barred;
}

void tiny_rules(struct arena *a, uint64_t seed, struct problem *p)
{
    bool has_devices;
    struct rng r;

    rng_init(&r, seed, "rules");
    for (int g = 0; g < p->n_gpus; g++)
        p->n_nodes = p->gpus[g].node >= p->n_nodes ? p->gpus[g].node + 1 : p->n_nodes;
    struct engine_node *nodes = ARENA_ARRAY(a, struct engine_node, (size_t)p->n_nodes);
    for (int n = 0; n < p->n_nodes; n++)
        nodes[n] = (struct engine_node){ chance(&r, 0.2) ? LONG_MAX : between(&r, 0, 4),
                                         (long)PICK(&r, 100, 300, 1000) };
    p->nodes = p->n_nodes > 0 && chance(&r, 0.7) ? nodes : NULL;
    has_devices = chance(&r, 0.5);
    for (int g = 0; g < p->n_gpus && has_devices; g++)
        p->gpus[g].device = (int)PICK(&r, 0, 1, 2);
    for (int j = 0; j < p->n_jobs; j++)
        p->jobs[j].engine = (struct engine_job){
            .cpus = (int)PICK(&r, 0, 1, 1, 2),
            .mem_mib = (int)PICK(&r, 0, 100, 200),
            .device = has_devices && chance(&r, 0.2) ? between(&r, 1, 2) : 0,
            .barred = chance(&r, 0.3) ? make_bars(a, &r, p->n_nodes) : NULL,
        };
}

void tiny_doubts(struct arena *a, uint64_t seed, struct problem *p)
{
    long n = problem_cell(p, p->n_types, 0, -1);
    struct rng r;

    rng_init(&r, seed, "tiny doubts");
    p->miss = PROMISE_MISS;
    p->lasting = PICK(&r, 1, PROMISE_LASTING, 0);
    p->doubt = ARENA_ARRAY(a, float, (size_t)n);
    for (long i = 0; i < n; i++)
        p->doubt[i] = (float)PICK(&r, 0, 0.05, 0.1, 0.25, 0.5, 1.5);
    for (int i = 0; p->bends && i < p->n_types * p->n_kinds; i++)
        p->bends[i].doubt = (float)PICK(&r, 0, 0, 0.25, 1);
    if (p->theta != 2)
        return;
    p->hope = ARENA_ARRAY(a, float, (size_t)n);
    for (long i = 0; i < n; i++) {
        p->hope[i] = (float)PICK(&r, 1, 1, 1.25, 1.5);
        p->speed[i] *= p->hope[i];
    }
}

void tiny_any(struct arena *a, uint64_t seed, int jobs_most, int gpus_most, struct problem *out)
{
    tiny_make(a, seed, jobs_most, gpus_most, out);
    if (seed % 2)
        tiny_rules(a, seed, out);
    if (seed % 3 == 0)
        tiny_doubts(a, seed, out);
}
