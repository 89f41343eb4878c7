#include "optimize/files/problem_make.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/rng.h"
#include "optimize/model/plan.h"
#include "optimize/optimize.h"
#include "optimize/model/problem.h"

#define N_TIERS 4
#define CURVE_POINTS 16
#define NODE_MAX 8
#define RACK_GPUS 32
#define CAP_ROOM 1.6        // the cap's room above all idle, in draws of the standing allocation;
#define CAP_ROOM_FEW 2.0    // on fewer than a hundred GPUs, where chance counts for more
#define NEED_LEAST 0.15     // promises: log-uniform from this part of what a type holds ...
#define NEED_MOST 0.85      // ... to this

const struct make_options make_defaults = {
    .n_jobs = 140,
    .n_gpus = 100,
    .n_types = 6,
    .seed = 1,
    .theta = 2,
    .overload = 1,
    .standing = 0.6,
    .joules = true,
};

struct problem_maker {
    struct arena *a;
    const struct make_options *o;
    struct problem *p;
    struct rng types, kinds, cells, jobs, gpus;
    int *tier;        // (n_types)
    double *pace;     // (n_types) against the slowest
    double *heavy;    // (n_kinds) 0..1: how much of a fast GPU it can use
};

/* ---- numbers of few digits ---- */

/* To 'digits' decimals: the double that the printed number is read as. */
static double decimals(double x, int digits)
{
    double one = pow(10, digits);

    return round(x * one) / one;
}

/* To four significant digits. */
static double significant(double x)
{
    if (!(x > 0))
        return 0;
    int digits = 3 - (int)floor(log10(x));
    return digits >= 0 ? decimals(x, digits) : round(x / pow(10, -digits)) * pow(10, -digits);
}

static double clip(double x, double low, double high)
{
    return fmin(fmax(x, low), high);
}

static double log_between(struct rng *r, double low, double high)
{
    return exp(rng_between(r, log(low), log(high)));
}

/* ---- types ---- */

static double softplus(double z, double c)
{
    return c * log1p(exp(z / c));
}

/* What a power limit does, as fitted to the Zeus traces (V100, 100 to 300 W): ln watts and ln speed
 * leave their unlimited values softly as the draw passes the limit.
 */
static void make_curve(struct arena *a, const struct problem_type *t, int limit_w,
                       struct limit_curve *out)
{
    double *speed = ARENA_ARRAY(a, double, CURVE_POINTS);
    double *watts = ARENA_ARRAY(a, double, CURVE_POINTS);

    for (int i = 0; i < CURVE_POINTS; i++) {
        double w0 = t->idle_w + (t->cap_w - t->idle_w) * i / (CURVE_POINTS - 1);
        double busy = (limit_w - t->idle_w) / fmax(w0 - t->idle_w, 1);
        watts[i] = decimals(w0 * exp(-softplus(0.016 - log(limit_w / w0), 0.185)), 1);
        speed[i] = clip(decimals(exp(-0.83 * softplus(-0.344 - log(busy), 0.182)), 4), 1e-4, 1);
    }
    *out = (struct limit_curve){ limit_w, CURVE_POINTS, speed, watts };
}

static void make_type(struct problem_maker *m, int i)
{
    static const double cap_w[N_TIERS] = { 150, 250, 300, 390 };
    static const int mem_gib[N_TIERS][2] = { { 12, 16 }, { 16, 24 }, { 32, 40 }, { 48, 80 } };
    struct problem_type *t = &m->p->types[i];
    int tier = m->tier[i] = m->o->n_types == 1 ? 2 : i * N_TIERS / m->o->n_types;

    m->pace[i] = (1 << tier) * exp(0.12 * rng_normal(&m->types));
    t->name = arena_printf(m->a, "%c%d", 'a' + tier, i);
    t->cap_w = round(fmin(cap_w[tier] * rng_between(&m->types, 0.9, 1.1), 400) / 5) * 5;
    t->idle_w = round(t->cap_w * rng_between(&m->types, 0.10, 0.15));
    t->sleep_w = decimals(rng_between(&m->types, 2, 6), 1);
    t->mem_gib = mem_gib[tier][rng_below(&m->types, 2)];
    t->n_limits = i % 2 == 1 || m->o->n_types == 1 ? 3 : 1;
    for (int l = 1; l < t->n_limits; l++)
        make_curve(m->a, t, (int)(round(t->cap_w * (l == 1 ? 0.8 : 0.6) / 5) * 5), &t->limits[l]);
}

/* ---- kinds and their cells ---- */

/* The last few kinds have one job each. */
static int n_unique(const struct problem_maker *m)
{
    int n = m->o->n_jobs / 50;

    n = n < 1 ? 1 : n > 5 ? 5 : n;
    return n < m->p->n_kinds && n < m->o->n_jobs ? n : 0;
}

static void make_kind(struct problem_maker *m, int i)
{
    struct problem_kind *k = &m->p->kinds[i];
    double heavy = m->heavy[i] = rng_uniform(&m->kinds);
    bool is_unique = i >= m->p->n_kinds - n_unique(m);

    k->name = arena_printf(m->a, "%s-%d", is_unique ? "unique" : "class", i);
    k->mem_gib =
        decimals(clip(exp(log(24) * (0.55 * heavy + 0.45 * rng_uniform(&m->kinds))), 1, 24), 1);
}

/* How busy a kind keeps a GPU of the tier, 0..1: light ones cannot fill a fast one. */
static double busy(const struct problem_maker *m, int type, int kind)
{
    return clip(0.3 + 0.65 * m->heavy[kind] - 0.09 * m->tier[type] * (1 - m->heavy[kind]), 0.1, 1);
}

static void make_alone(struct problem_maker *m, int kind, double base)
{
    struct problem *p = m->p;

    for (int t = 0; t < p->n_types; t++) {
        const struct problem_type *g = &p->types[t];
        double noise = exp(0.18 * rng_normal(&m->cells));
        double watts = g->idle_w + (g->cap_w - g->idle_w) * busy(m, t, kind) * noise;
        double pace = pow(m->pace[t], 0.55 + 0.5 * m->heavy[kind]);
        double speed = significant(base * pace * exp(0.2 * rng_normal(&m->cells)));
        p->watts[t * p->n_kinds + kind] = (float)decimals(clip(watts, 60, g->cap_w), 1);
        p->speed[problem_cell(p, t, kind, -1)] =
            p->kinds[kind].mem_gib <= g->mem_gib ? (float)speed : 0;
    }
}

/* A kind beside every other on one type, and what is held with confidence. */
static void make_row(struct problem_maker *m, int type, int kind)
{
    struct problem *p = m->p;
    const float *alone = &p->speed[problem_cell(p, type, kind, -1)];
    double sd = decimals(rng_between(&m->cells, 0.03, 0.07), 3);
    double held_alone = exp(-p->z * sd), held = exp(-p->z * decimals(sd + 0.03, 3));
    double hurt = (0.85 - 0.08 * m->tier[type]) * (0.4 + 0.6 * m->heavy[kind]);

    p->held[problem_cell(p, type, kind, -1)] = (float)((double)*alone * held_alone);
    for (int n = 0; n < p->n_kinds; n++) {
        long cell = problem_cell(p, type, kind, n);
        double chance = rng_uniform(&m->cells);
        bool is_never = (uint64_t)(kind < n ? kind * 31 + n * 17 : n * 31 + kind * 17) % 101 == 100;
        double r = 0.98 - hurt * busy(m, type, n) + 0.12 * (chance - 0.5);
        bool fits = p->kinds[kind].mem_gib + p->kinds[n].mem_gib <= p->types[type].mem_gib;
        double speed = (double)*alone * (is_never || !fits ? 0 : decimals(clip(r, 0.3, 1), 3));
        p->speed[cell] = (float)speed;
        p->held[cell] = (float)((double)p->speed[cell] * held);
    }
}

static void make_kinds(struct problem_maker *m)
{
    struct problem *p = m->p;

    for (int k = 0; k < p->n_kinds; k++)
        make_kind(m, k);
    for (int k = 0; k < p->n_kinds; k++)
        make_alone(m, k, log_between(&m->kinds, 1, 50));
    for (int t = 0; t < p->n_types; t++)
        for (int k = 0; k < p->n_kinds; k++)
            make_row(m, t, k);
    for (int k = 0; k < p->n_kinds; k++) {
        double most = 0;
        for (int t = 0; t < p->n_types; t++)
            most = fmax(most, (double)p->speed[problem_cell(p, t, k, -1)]);
        if (rng_uniform(&m->kinds) < 0.1)    // it serves requests: it cannot do more than arrive
            p->kinds[k].rate = significant(most * rng_between(&m->kinds, 0.4, 0.8));
        p->kinds[k].value_j = m->o->joules ? problem_best_joules(p, k) : 0;
    }
}

/* ---- GPUs ---- */

/* How many GPUs each type has: unequal shares, every one at least one while there are enough. */
static void make_counts(struct problem_maker *m, int *counts)
{
    double share[64], sum = 0;
    int left = m->o->n_gpus;

    for (int t = 0; t < m->p->n_types; t++)
        sum += share[t] = rng_between(&m->gpus, 0.7, 1.3);
    for (int t = 0; t < m->p->n_types; t++) {
        counts[t] = (int)(m->o->n_gpus * share[t] / sum);
        counts[t] -= counts[t] % 4;
        left -= counts[t];
    }
    for (int t = 0; left > 0; t = (t + 1) % m->p->n_types) {
        int n = left < 4 ? left : 4;
        counts[t] += n;
        left -= n;
    }
}

/* Nodes of four or eight GPUs of one type, one after the other; racks of whole nodes. */
static void make_gpus(struct problem_maker *m)
{
    struct problem *p = m->p;
    int counts[64] = { 0 }, i = 0, node = 0, rack = 0, in_rack = 0;

    make_counts(m, counts);
    for (int t = 0; t < p->n_types; t++)
        for (int left = counts[t], n; left > 0; left -= n, node++) {
            n = rng_below(&m->gpus, 2) == 0 ? 4 : NODE_MAX;
            n = n < left ? n : left;
            bool is_full = in_rack > 0 && in_rack + n > RACK_GPUS;
            rack += is_full;
            in_rack = is_full ? n : in_rack + n;
            for (int k = 0; k < n; k++)
                p->gpus[i++] = (struct problem_gpu){ .type = t,
                                                     .node = node,
                                                     .rack = rack,
                                                     .may_start = rng_uniform(&m->gpus) >= 0.02 };
        }
    p->n_racks = p->n_gpus > 0 ? rack + 1 : 0;
    double *cap_w = ARENA_ARRAY(m->a, double, (size_t)p->n_racks);
    for (int g = 0; g < p->n_gpus; g++)
        cap_w[p->gpus[g].rack] += 0.9 * p->types[p->gpus[g].type].cap_w;
    for (int r = 0; r < p->n_racks; r++)
        cap_w[r] = round(cap_w[r]);
    p->rack_cap_w = cap_w;
}

/* ---- jobs ---- */

/* Repeated kinds, the first ones oftener; each of the last few once. */
static void make_job_kinds(struct problem_maker *m)
{
    struct problem *p = m->p;
    int unique = n_unique(m), n = p->n_kinds - unique;
    double *upto = ARENA_ARRAY(m->a, double, (size_t)p->n_kinds);

    for (int k = 0; k < n; k++)
        upto[k] = (k > 0 ? upto[k - 1] : 0) + 1 / sqrt(k + 1);
    for (int j = 0; j < p->n_jobs; j++) {
        double x = rng_uniform(&m->jobs) * upto[n - 1];
        while (p->jobs[j].kind < n - 1 && upto[p->jobs[j].kind] <= x)
            p->jobs[j].kind++;
    }
    for (int u = 0; u < unique; u++)
        p->jobs[(long)p->n_jobs * (2 * u + 1) / (2 * unique)].kind = n + u;
}

static void make_form(struct problem_maker *m, struct problem_job *j)
{
    double chance = rng_uniform(&m->jobs);
    int most = chance < 0.75 ? 1 : chance < 0.90 ? 2 : 4;

    j->n_min = 1;
    j->is_exclusive = rng_uniform(&m->jobs) < 0.04;
    j->n_max = most;
    if (most > 1 && rng_uniform(&m->jobs) < 2. / 3) {
        j->form = FORM_SPREAD;
    } else if (most > 1) {
        j->n_min = rng_uniform(&m->jobs) < 0.4 ? most : 1;
        j->n_nodes = rng_uniform(&m->jobs) < 1. / 3;
    }
}

/* Any of some types, at least one of which the kind fits; 0: it fits none of them. */
static uint64_t any_of(struct problem_maker *m, int kind)
{
    const struct problem *p = m->p;
    uint64_t mask = 0;
    bool fits = false;

    for (int t = 0; t < p->n_types; t++)
        if (rng_uniform(&m->jobs) < 0.5) {
            mask |= UINT64_C(1) << t;
            fits = fits || p->speed[problem_cell(p, t, kind, -1)] > 0;
        }
    return fits ? mask : 0;
}

/* Some programs were built for certain types only, and all jobs of their kind say so; now and
 * then a user says so of a single job.
 */
static void make_allowed(struct problem_maker *m)
{
    struct problem *p = m->p;
    uint64_t *of_kind = ARENA_ARRAY(m->a, uint64_t, (size_t)p->n_kinds);

    if (p->n_types == 1)
        return;
    for (int k = 0; k < p->n_kinds; k++)
        if (rng_uniform(&m->jobs) < 0.08)
            of_kind[k] = any_of(m, k);
    for (int i = 0; i < p->n_jobs; i++) {
        struct problem_job *j = &p->jobs[i];
        j->allowed_types = of_kind[j->kind];
        if (j->allowed_types == 0 && rng_uniform(&m->jobs) < 0.003)
            j->allowed_types = any_of(m, j->kind);
    }
}

/* A part of what the job would hold on some type it may use, and on some number of GPUs. */
static void make_need(struct problem_maker *m, struct problem_job *j)
{
    const struct problem *p = m->p;
    int fit[64], n = 0;
    double part = log_between(&m->jobs, NEED_LEAST, NEED_MOST);
    double upto = rng_between(&m->jobs, 1, j->n_max);
    int size = j->n_min + (int)rng_below(&m->jobs, (uint64_t)j->n_max - (uint64_t)j->n_min + 1);
    uint64_t pick = rng_u64(&m->jobs);
    bool has_promise = rng_uniform(&m->jobs) >= 0.05;

    for (int t = 0; t < p->n_types; t++)
        if (problem_allows(j, t) && p->speed[problem_cell(p, t, j->kind, -1)] > 0)
            fit[n++] = t;
    if (n == 0 || !has_promise)
        return;
    double low = (double)p->held[problem_cell(p, fit[pick % (uint64_t)n], j->kind, -1)];
    low *= j->form == FORM_SPREAD ? upto : p->gang_far[size];
    if (p->kinds[j->kind].rate > 0)
        low = fmin(low, p->kinds[j->kind].rate);
    j->need = significant(low * part * m->o->overload);
}

static void make_jobs(struct problem_maker *m)
{
    struct problem *p = m->p;

    if (p->n_jobs > 0)
        make_job_kinds(m);
    for (int i = 0; i < p->n_jobs; i++) {
        struct problem_job *j = &p->jobs[i];
        double chance = rng_uniform(&m->jobs);
        j->name = arena_printf(m->a, "job-%d", i);
        j->short_w = j->wait_w = chance < 0.7 ? 1000 : chance < 0.9 ? 2000 : 4000;
        j->move_w = decimals(log_between(&m->jobs, 0.1, 1), 3);
        make_form(m, j);
    }
    make_allowed(m);
    for (int i = 0; i < p->n_jobs; i++)
        make_need(m, &p->jobs[i]);
}

/* ---- who runs already ---- */

/* Take over where the plan has a job. One whose parts stand under different settings counts as
 * new, so that each GPU has one setting.
 */
static void settle(struct problem_job *j, const struct plan_job *at, const unsigned char *limit)
{
    for (int i = 1; i < at->n_gpus; i++)
        if (limit[at->gpus[i]] != limit[at->gpus[0]])
            return;
    j->n_present = at->n_gpus;
    j->present = at->gpus;
    j->present_limit = at->n_gpus ? limit[at->gpus[0]] : 0;
}

/* Some time ago there was a plan for the first jobs; since then some of them have ended, whose
 * places are empty now and who are counted among the new ones.
 */
static void stand(struct arena *a, struct problem *p, int n_planned, int n_standing)
{
    struct problem then = *p;
    struct optimize_options o = optimize_defaults;
    struct optimize_report report;
    struct plan x;
    struct err e = { 0 };

    then.n_jobs = n_planned;
    o.method = METHOD_FAST;
    o.nodes = 1000 + n_planned;
    if (n_standing == 0 || optimize_run(a, &then, &o, &x, &report, &e) < 0)
        return;
    for (int i = 0; i < n_planned; i++)
        if ((long)(i + 1) * n_standing / n_planned > (long)i * n_standing / n_planned)
            settle(&p->jobs[i], &x.jobs[i], x.limit);
}

/* The cap: all idle, and so much room above that for what the GPUs draw now. */
static void make_cap(struct problem_maker *m)
{
    struct problem *p = m->p;
    const struct residents *on = problem_residents(m->a, p);
    double idle_w = 0, more_w = 0, room = p->n_gpus < 100 ? CAP_ROOM_FEW : CAP_ROOM;

    for (int g = 0; g < p->n_gpus; g++) {
        struct yield y;
        int type = p->gpus[g].type, limit = on[g].n > 0 ? p->jobs[on[g].jobs[0]].present_limit : 0;
        double own_w = p->types[type].idle_w;
        idle_w += own_w;
        if (on[g].n > 0 && problem_yield_of(p, type, limit, on[g].jobs, on[g].n, &y))
            more_w += y.watts - own_w;
    }
    p->power_cap_w = round(p->watts_margin * (idle_w + room * more_w));
}

/* ---- the whole ---- */

static void make_tables(struct problem_maker *m)
{
    struct problem *p = m->p;
    size_t cells = (size_t)p->n_types * (size_t)p->n_kinds;

    p->types = ARENA_ARRAY(m->a, struct problem_type, (size_t)p->n_types);
    p->kinds = ARENA_ARRAY(m->a, struct problem_kind, (size_t)p->n_kinds);
    p->gpus = ARENA_ARRAY(m->a, struct problem_gpu, (size_t)p->n_gpus);
    p->jobs = ARENA_ARRAY(m->a, struct problem_job, (size_t)p->n_jobs);
    p->watts = ARENA_ARRAY(m->a, float, cells);
    p->speed = ARENA_ARRAY(m->a, float, cells *(size_t)(p->n_kinds + 1));
    p->held = ARENA_ARRAY(m->a, float, cells *(size_t)(p->n_kinds + 1));
    m->tier = ARENA_ARRAY(m->a, int, (size_t)p->n_types);
    m->pace = ARENA_ARRAY(m->a, double, (size_t)p->n_types);
    m->heavy = ARENA_ARRAY(m->a, double, (size_t)p->n_kinds);
}

void problem_make(struct arena *a, const struct make_options *o, struct problem *out)
{
    struct problem_maker m = { .a = a, .o = o, .p = out };
    int n_standing = (int)(o->n_jobs * o->standing);
    int n_planned = (int)fmin(o->n_jobs, n_standing * 1.25);

    assert(o->n_jobs >= 0 && o->n_gpus >= 0 && o->n_types >= 1 && o->n_types <= 64);
    assert(o->theta >= 1 && o->theta <= THETA_MAX && o->n_kinds >= 0 && o->overload > 0);
    rng_init(&m.types, o->seed, "problem types");
    rng_init(&m.kinds, o->seed, "problem kinds");
    rng_init(&m.cells, o->seed, "problem cells");
    rng_init(&m.jobs, o->seed, "problem jobs");
    rng_init(&m.gpus, o->seed, "problem gpus");
    *out = (struct problem){ .theta = o->theta,
                             .z = 1,
                             .price_w = 50,
                             .watts_margin = 1.03,
                             .n_types = o->n_types,
                             .n_kinds = o->n_kinds,
                             .n_gpus = o->n_gpus,
                             .n_jobs = o->n_jobs };
    if (o->n_kinds == 0)
        out->n_kinds = o->n_jobs < 40 ? 8 : o->n_jobs > 250 ? 50 : o->n_jobs / 5;
    make_tables(&m);
    for (int n = 1; n <= GANG_MAX; n++) {
        out->gang_near[n] = decimals(pow(n, 0.95), 3);
        out->gang_far[n] = decimals(pow(n, 0.85), 3);
    }
    for (int t = 0; t < out->n_types; t++)
        make_type(&m, t);
    make_kinds(&m);
    make_gpus(&m);
    make_jobs(&m);
    stand(a, out, n_planned, n_standing);
    for (int j = 0; j < out->n_jobs; j++)
        if (out->jobs[j].n_present > 0)    // one running job in a hundred must stay
            out->jobs[j].is_fixed = rng_uniform(&m.jobs) < 0.01;
    if (n_standing > 0)
        make_cap(&m);
}
