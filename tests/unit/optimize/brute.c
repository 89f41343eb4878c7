#include "unit/optimize/brute.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "optimize/model/plan.h"
#include "optimize/model/problem.h"

/* Multisets of kinds as one number: how many of each, in base THETA_MAX + 1. */
#define SETS 625
#define SLACK 1e-9    // the judge's, for caps

static const int set_one[BRUTE_KINDS] = { 1, 5, 25, 125 };

/* What a multiset of kinds on a type could still become. */
struct outlook {
    bool may_be;
    double least_w;                  // cost of the cheapest that contains it, empty included
    double most_low[BRUTE_KINDS];    // the most a job of the kind could hold in it
};

struct brute {
    const struct problem *p;
    struct outlook (*outlooks)[SETS];      // (n_types)
    int n_order, order[BRUTE_JOBS];        // live jobs, fixed ones first
    double least_job_w[BRUTE_JOBS + 1];    // by order: the least of all from there on
    unsigned present[BRUTE_JOBS];          // bit per GPU
    double cap_w;                          // with what is present, over the margin; INFINITY: none
    double *rack_cap_w;
    long nodes_left;

    /* the branch */
    unsigned place[BRUTE_JOBS];    // bit per GPU; 0: waits
    int set[BRUTE_GPUS];           // kinds on each GPU
    int n_on[BRUTE_GPUS];
    bool is_closed[BRUTE_GPUS];
    unsigned who[BRUTE_GPUS];    // bit per job
    double sunk_w;               // waiting and moves so far
    unsigned char limit[BRUTE_GPUS];
    double drawn_w[BRUTE_GPUS];

    double best_w;
    unsigned best_place[BRUTE_JOBS];
    unsigned char best_limit[BRUTE_GPUS];
};

static bool is_gang(const struct brute *b, int job)
{
    return b->p->jobs[job].form == FORM_GANG && __builtin_popcount(b->place[job]) > 1;
}

/* ---- outlooks ---- */

static int set_unpack(int set, int *kinds)
{
    int n = 0;

    for (int k = 0; k < BRUTE_KINDS; k++)
        for (int i = 0; i < set / set_one[k] % 5; i++, n++)
            if (n < THETA_MAX)
                kinds[n] = k;
    return n;
}

static bool set_contains(int set, int part)
{
    for (int k = 0; k < BRUTE_KINDS; k++)
        if (set / set_one[k] % 5 < part / set_one[k] % 5)
            return false;
    return true;
}

/* What one multiset does under its best setting: good for it and for all its parts. */
static void look_at(struct brute *b, int type, int set)
{
    int kinds[THETA_MAX], n = set_unpack(set, kinds);
    struct yield y;

    if (n < 1 || n > b->p->theta)
        return;
    for (int i = 0; i < n; i++)
        if (kinds[i] >= b->p->n_kinds)
            return;
    for (int limit = 0; limit < b->p->types[type].n_limits; limit++) {
        if (!problem_yield(b->p, type, limit, kinds, n, &y))
            return;
        for (int part = 0; part <= set; part++) {
            struct outlook *o = &b->outlooks[type][part];
            if (!set_contains(set, part))
                continue;
            o->may_be |= part == set;
            o->least_w = fmin(o->least_w, y.cost_w);
            for (int i = 0; i < n; i++)
                o->most_low[kinds[i]] = fmax(o->most_low[kinds[i]], yield_low(b->p, &y, i));
        }
    }
}

static void look_ahead(struct arena *a, struct brute *b)
{
    int n_types = b->p->n_types;

    b->outlooks = arena_array(a, (size_t)n_types, sizeof(*b->outlooks));
    for (int t = 0; t < n_types; t++) {
        for (int set = 0; set < SETS; set++)
            b->outlooks[t][set].least_w = set ? INFINITY : 0;
        for (int set = 1; set < SETS; set++)
            look_at(b, t, set);
    }
}

/* The least a job can add besides GPUs: waiting, or what it misses at the very best. */
static double least_of(const struct brute *b, int job)
{
    const struct problem_job *j = &b->p->jobs[job];
    double low = 0, wait_w = j->wait_w + (j->n_present ? j->move_w : 0), times = 1;

    for (int m = 2; m <= j->n_max; m++)
        times = fmax(times, j->form == FORM_GANG ? b->p->gang_near[m] : m);

    for (int t = 0; t < b->p->n_types; t++)
        low = fmax(low, b->outlooks[t][0].most_low[j->kind]);
    double short_w = problem_least_short_w(j, low * times);
    return j->is_fixed ? short_w : fmin(wait_w, short_w);
}

/* ---- caps ---- */

static double draw_of(const struct problem *p, int gpu, int set, int limit)
{
    int kinds[THETA_MAX], n = set_unpack(set, kinds);
    struct yield y;

    if (n == 0 || !problem_yield(p, p->gpus[gpu].type, limit, kinds, n, &y))
        return p->types[p->gpus[gpu].type].idle_w;
    return y.watts;
}

static void caps_make(struct arena *a, struct brute *b)
{
    const struct problem *p = b->p;
    double now_w = 0, *rack_w = ARENA_ARRAY(a, double, (size_t)p->n_racks);

    for (int g = 0; g < p->n_gpus; g++) {
        int set = 0, limit = 0;
        for (int j = 0; j < p->n_jobs; j++)
            if (p->jobs[j].name && b->present[j] >> g & 1) {
                set += set_one[p->jobs[j].kind];
                limit = p->jobs[j].present_limit;
            }
        double w = draw_of(p, g, set, limit);
        now_w += w;
        if (p->n_racks)
            rack_w[p->gpus[g].rack] += w;
    }
    b->cap_w = p->power_cap_w > 0 ? fmax(p->power_cap_w / p->watts_margin, now_w) : HUGE_VAL;
    b->rack_cap_w = ARENA_ARRAY(a, double, (size_t)p->n_racks);
    for (int r = 0; r < p->n_racks; r++) {
        double cap_w = p->rack_cap_w ? p->rack_cap_w[r] / p->watts_margin : 0;
        b->rack_cap_w[r] = cap_w > 0 ? fmax(cap_w, rack_w[r]) : HUGE_VAL;
    }
}

static bool is_under_caps(const struct brute *b)
{
    const struct problem *p = b->p;
    double all_w = 0, rack_w[BRUTE_GPUS] = { 0 };

    for (int g = 0; g < p->n_gpus; g++) {
        double w = b->set[g] ? b->drawn_w[g] : p->types[p->gpus[g].type].idle_w;
        all_w += w;
        rack_w[p->gpus[g].rack] += w;
    }
    for (int r = 0; r < p->n_racks; r++)
        if (rack_w[r] > b->rack_cap_w[r] * (1 + SLACK))
            return false;
    return all_w <= b->cap_w * (1 + SLACK);
}

/* ---- settings: everybody has a place ---- */

/* The best that a gang can still come to: its place is known, its setting is not. */
/* What jobs use of this GPU's node is there, or is used already. */
static bool node_has_room(const struct brute *b, int gpu)
{
    const struct problem *p = b->p;
    struct engine_node used = { 0 }, now = { 0 };

    for (int j = 0; j < p->n_jobs; j++)
        for (int g = 0; g < p->n_gpus && p->jobs[j].name; g++) {
            bool is_here = p->gpus[g].node == p->gpus[gpu].node;
            int n = is_here && (b->place[j] >> g & 1), n_now = is_here && (b->present[j] >> g & 1);
            used.cpus += n * p->jobs[j].engine.cpus;
            used.mem_mib += n * p->jobs[j].engine.mem_mib;
            now.cpus += n_now * p->jobs[j].engine.cpus;
            now.mem_mib += n_now * p->jobs[j].engine.mem_mib;
        }
    const struct engine_node *has = &p->nodes[p->gpus[gpu].node];
    return (used.cpus <= has->cpus || used.cpus <= now.cpus) &&
           (used.mem_mib <= has->mem_mib || used.mem_mib <= now.mem_mib);
}

static bool has_node_room(const struct brute *b)
{
    for (int g = 0; g < b->p->n_gpus && b->p->nodes; g++)
        if (!node_has_room(b, g))
            return false;
    return true;
}

static double gang_least_w(const struct brute *b, int job)
{
    const struct problem *p = b->p;
    int type = p->gpus[__builtin_ctz(b->place[job])].type;
    double least = INFINITY;
    struct yield y;

    for (int limit = 0; limit < p->types[type].n_limits; limit++)
        if (problem_gang_yield(p, type, limit, p->jobs[job].kind, __builtin_popcount(b->place[job]),
                               true, &y))
            least = fmin(least, y.cost_w + problem_short_w(p, &p->jobs[job], y.held[0]));
    return least;
}

/* The least that a GPU will cost; a gang's with its first one. */
static double least_here(const struct brute *b, int gpu)
{
    int job = b->who[gpu] ? __builtin_ctz(b->who[gpu]) : -1;

    if (job < 0 || !is_gang(b, job))
        return b->outlooks[b->p->gpus[gpu].type][b->set[gpu]].least_w;
    return __builtin_ctz(b->place[job]) == gpu ? gang_least_w(b, job) : 0;
}

static void keep_best(struct brute *b, double cost_w)
{
    b->best_w = cost_w;
    memcpy(b->best_place, b->place, sizeof(b->place));
    memcpy(b->best_limit, b->limit, sizeof(b->limit));
}

/* The cost of a whole branch from here: GPUs are known, so is what is held. */
static double shortfalls(const struct brute *b, const struct held *held)
{
    double w = 0;

    for (int i = 0; i < b->n_order; i++)
        if (b->place[b->order[i]])
            w += problem_short_w(b->p, &b->p->jobs[b->order[i]], held[b->order[i]]);
    return w;
}

static void try_settings(struct brute *b, int gpu, double cost_w, const struct held *held);

/* The gang whose first GPU this is, all its GPUs at one setting. */
static void try_gang(struct brute *b, int gpu, int job, double cost_w, const struct held *held)
{
    const struct problem *p = b->p;
    int m = __builtin_popcount(b->place[job]), type = p->gpus[gpu].type;
    bool is_near = true;
    struct held all[BRUTE_JOBS];
    struct yield y;

    memcpy(all, held, sizeof(all));
    for (int g = 0; g < p->n_gpus; g++)
        if (b->place[job] >> g & 1)
            is_near &= p->gpus[g].node == p->gpus[gpu].node;
    for (int limit = 0; limit < p->types[type].n_limits; limit++) {
        if (!problem_gang_yield(p, type, limit, p->jobs[job].kind, m, is_near, &y))
            continue;
        for (int g = 0; g < p->n_gpus; g++)
            if (b->place[job] >> g & 1) {
                b->limit[g] = (unsigned char)limit;
                b->drawn_w[g] = y.watts / m;
            }
        all[job] = y.held[0];
        try_settings(b, gpu + 1, cost_w + y.cost_w, all);
    }
}

static void try_combination(struct brute *b, int gpu, double cost_w, const struct held *held)
{
    const struct problem *p = b->p;
    int kinds[THETA_MAX], jobs[THETA_MAX], n = 0;
    struct held all[BRUTE_JOBS];
    struct yield y;

    for (int j = 0; j < p->n_jobs; j++)
        if (b->who[gpu] >> j & 1) {
            jobs[n] = j;
            kinds[n++] = p->jobs[j].kind;
        }
    for (int limit = 0; limit < p->types[p->gpus[gpu].type].n_limits; limit++) {
        if (!problem_yield(p, p->gpus[gpu].type, limit, kinds, n, &y))
            return;
        memcpy(all, held, sizeof(all));
        for (int i = 0; i < n; i++)
            all[jobs[i]] = held_add(all[jobs[i]], y.held[i]);
        b->limit[gpu] = (unsigned char)limit;
        b->drawn_w[gpu] = y.watts;
        try_settings(b, gpu + 1, cost_w + y.cost_w, all);
    }
}

/* GPUs from 'gpu' on have no setting yet. */
static void try_settings(struct brute *b, int gpu, double cost_w, const struct held *held)
{
    double ahead_w = 0;

    if (b->nodes_left-- <= 0)
        return;
    if (gpu == b->p->n_gpus) {
        double all_w = cost_w + shortfalls(b, held);
        if (all_w < b->best_w && is_under_caps(b) && has_node_room(b))
            keep_best(b, all_w);
        return;
    }
    for (int g = gpu; g < b->p->n_gpus; g++)
        ahead_w += b->who[g] ? least_here(b, g) : 0;
    if (cost_w + ahead_w >= b->best_w)
        return;
    int first = b->who[gpu] ? __builtin_ctz(b->who[gpu]) : -1;
    if (first < 0) {
        b->limit[gpu] = 0;
        try_settings(b, gpu + 1, cost_w, held);
    } else if (!is_gang(b, first))
        try_combination(b, gpu, cost_w, held);
    else if (__builtin_ctz(b->place[first]) == gpu)
        try_gang(b, gpu, first, cost_w, held);
    else
        try_settings(b, gpu + 1, cost_w, held);
}

/* ---- places ---- */

/* GPUs that nobody can tell apart from here on. */
static bool are_alike(const struct brute *b, int g, int h)
{
    const struct problem_gpu *x = &b->p->gpus[g], *y = &b->p->gpus[h];

    if (x->type != y->type || x->node != y->node || x->rack != y->rack || x->device != y->device ||
        x->may_start != y->may_start || b->who[g] != b->who[h] || x->wake_s != y->wake_s)
        return false;
    for (int j = 0; j < b->p->n_jobs; j++)
        if ((b->present[j] >> g & 1) != (b->present[j] >> h & 1))
            return false;
    return true;
}

static bool may_join(const struct brute *b, int job, int gpu, bool is_alone)
{
    const struct problem_job *j = &b->p->jobs[job];
    const struct problem_gpu *g = &b->p->gpus[gpu];

    bool is_barred = (j->engine.barred && j->engine.barred[g->node] != ENGINE_CAN) ||
                     (j->engine.device && j->engine.device != g->device);

    if (!problem_allows(j, g->type) ||
        ((!g->may_start || is_barred) && !(b->present[job] >> gpu & 1)))
        return false;
    if (b->is_closed[gpu] || b->n_on[gpu] >= b->p->theta || (is_alone && b->n_on[gpu]))
        return false;
    return b->outlooks[g->type][b->set[gpu] + set_one[j->kind]].may_be;
}

/* Does the gang have its equal part of the nodes where this GPU stands? */
static bool has_part(const struct brute *b, unsigned place, int gpu, int n_nodes)
{
    int n_here = 0;

    for (int g = 0; g < b->p->n_gpus; g++)
        n_here += (place >> g & 1) && b->p->gpus[g].node == b->p->gpus[gpu].node;
    return n_nodes == 0 || n_here * n_nodes == __builtin_popcount(place);
}

/* As many of this GPU's device on each of the gang's nodes? */
static bool is_same_everywhere(const struct brute *b, unsigned place, int gpu)
{
    const struct problem_gpu *gpus = b->p->gpus;
    int n_here[BRUTE_GPUS] = { 0 }, device = gpus[gpu].device;

    for (int g = 0; g < b->p->n_gpus; g++)
        for (int h = 0; h < b->p->n_gpus; h++)
            n_here[g] += (place >> g & 1) && (place >> h & 1) && gpus[h].node == gpus[g].node &&
                         gpus[h].device == device;
    for (int g = 0; g < b->p->n_gpus && device; g++)
        if ((place >> g & 1) && n_here[g] != n_here[gpu])
            return false;
    return true;
}

/* May the job take this set of GPUs, and is it the first of those like it? */
static bool may_take(const struct brute *b, int job, unsigned place)
{
    const struct problem_job *j = &b->p->jobs[job];
    int n = __builtin_popcount(place), first = __builtin_ctz(place);
    bool is_alone = j->is_exclusive || (j->form == FORM_GANG && n > 1);

    if (n > j->n_max || (j->form == FORM_GANG && n < j->n_min))
        return false;
    if (j->is_fixed && place != b->present[job])
        return false;
    for (int g = 0; g < b->p->n_gpus; g++) {
        const struct problem_gpu *gpu = &b->p->gpus[g], *one = &b->p->gpus[first];
        if (!(place >> g & 1))
            continue;
        if (!may_join(b, job, g, is_alone))
            return false;
        if (j->form == FORM_GANG && (gpu->type != one->type || !has_part(b, place, g, j->n_nodes)))
            return false;
        if (j->form == FORM_GANG && place != b->present[job] && !is_same_everywhere(b, place, g))
            return false;
        for (int h = 0; h < g; h++)
            if (!(place >> h & 1) && are_alike(b, g, h))
                return false;
    }
    return true;
}

static double wake_w(const struct brute *b, const struct problem_job *j, int gpu)
{
    const struct problem_gpu *g = &b->p->gpus[gpu];

    return g->wake_s * j->late_w +
           g->wake_s * (b->p->types[g->type].idle_w + b->p->price_w) * j->wake_rate;
}

static void take(struct brute *b, int job, unsigned place, int sign)
{
    const struct problem_job *j = &b->p->jobs[job];
    bool is_alone = j->is_exclusive || (j->form == FORM_GANG && __builtin_popcount(place) > 1);

    b->place[job] = sign > 0 ? place : 0;
    for (int g = 0; g < b->p->n_gpus; g++) {
        if (!(place >> g & 1))
            continue;
        b->set[g] += sign * set_one[j->kind];
        b->n_on[g] += sign;
        b->who[g] ^= 1u << job;
        b->is_closed[g] = sign > 0 && is_alone;
    }
    b->sunk_w += place ? 0 : sign * j->wait_w;
    b->sunk_w += j->n_present && place != b->present[job] ? sign * j->move_w : 0;
    for (int g = 0; g < b->p->n_gpus; g++)
        if ((place >> g & 1) && place != b->present[job])
            b->sunk_w += sign * wake_w(b, j, g);
}

/* No answer that goes on from here, with order[at..] open, costs less. */
static double least_from(const struct brute *b, int at)
{
    const struct problem *p = b->p;
    double w = b->sunk_w + b->least_job_w[at];

    for (int g = 0; g < p->n_gpus; g++)
        w += least_here(b, g);
    for (int i = 0; i < at; i++) {
        int job = b->order[i];
        double low = 0;
        if (!b->place[job] || is_gang(b, job))
            continue;    // its part is known, or with its GPUs
        for (int g = 0; g < p->n_gpus; g++)
            if (b->place[job] >> g & 1)
                low += b->outlooks[p->gpus[g].type][b->set[g]].most_low[p->jobs[job].kind];
        w += problem_least_short_w(&p->jobs[job], low);
    }
    return w;
}

struct option {
    unsigned place;
    double least_w;
};

static void try_places(struct brute *b, int at)
{
    static const struct held nothing[BRUTE_JOBS];
    struct option options[1 << BRUTE_GPUS];
    int n = 0;

    if (b->nodes_left-- <= 0)
        return;
    if (at == b->n_order) {
        try_settings(b, 0, b->sunk_w, nothing);
        return;
    }
    int job = b->order[at];
    for (unsigned place = 0; place < 1u << b->p->n_gpus; place++) {
        if (place ? !may_take(b, job, place) : b->p->jobs[job].is_fixed)
            continue;
        double sunk_w = b->sunk_w;
        take(b, job, place, 1);
        struct option o = { place, least_from(b, at + 1) };
        take(b, job, place, -1);
        b->sunk_w = sunk_w;
        int i = n++;
        for (; i > 0 && options[i - 1].least_w > o.least_w; i--)
            options[i] = options[i - 1];
        options[i] = o;
    }
    for (int i = 0; i < n && options[i].least_w < b->best_w; i++) {
        double sunk_w = b->sunk_w;
        take(b, job, options[i].place, 1);
        try_places(b, at + 1);
        take(b, job, options[i].place, -1);
        b->sunk_w = sunk_w;
    }
}

/* ---- the answer ---- */

static void answer_make(struct arena *a, const struct brute *b, struct plan *out)
{
    const struct problem *p = b->p;

    *out = (struct plan){ .n_jobs = p->n_jobs, .n_gpus = p->n_gpus };
    out->jobs = ARENA_ARRAY(a, struct plan_job, (size_t)p->n_jobs);
    out->limit = ARENA_ARRAY(a, unsigned char, (size_t)p->n_gpus);
    memcpy(out->limit, b->best_limit, (size_t)p->n_gpus);
    for (int j = 0; j < p->n_jobs; j++) {
        int *gpus = ARENA_ARRAY(a, int, (size_t)p->n_gpus);
        struct plan_job *to = &out->jobs[j];
        to->gpus = gpus;
        for (int g = 0; g < p->n_gpus; g++)
            if (b->best_place[j] >> g & 1)
                gpus[to->n_gpus++] = g;
        to->reason = to->n_gpus || !p->jobs[j].name ? WAIT_NOT : WAIT_CAPACITY;
    }
    plan_price(a, p, out);
}

static void brute_init(struct arena *a, const struct problem *p, long nodes, struct brute *b)
{
    *b = (struct brute){ .p = p, .nodes_left = nodes, .best_w = INFINITY };
    look_ahead(a, b);
    for (int is_fixed = 1; is_fixed >= 0; is_fixed--)
        for (int j = 0; j < p->n_jobs; j++)
            if (p->jobs[j].name && p->jobs[j].is_fixed == (is_fixed == 1))
                b->order[b->n_order++] = j;
    for (int i = b->n_order - 1; i >= 0; i--)
        b->least_job_w[i] = b->least_job_w[i + 1] + least_of(b, b->order[i]);
    for (int j = 0; j < p->n_jobs; j++)
        for (int i = 0; i < p->jobs[j].n_present; i++)
            b->present[j] |= 1u << p->jobs[j].present[i];
    caps_make(a, b);
}

bool brute_solve(struct arena *a, const struct problem *p, long nodes, struct plan *out)
{
    struct brute b;

    assert(p->n_jobs <= BRUTE_JOBS && p->n_gpus <= BRUTE_GPUS && p->n_kinds <= BRUTE_KINDS);
    assert(p->n_racks <= BRUTE_GPUS);
    brute_init(a, p, nodes, &b);
    try_places(&b, 0);
    answer_make(a, &b, out);
    return b.nodes_left > 0;
}
