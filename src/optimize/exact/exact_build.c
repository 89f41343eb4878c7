/* The rows of the exact program, and who may sit where. */
#include "optimize/exact/exact_inner.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

/* What just meets a cap must not be lost to rounding; the judge allows 1e-9. */
#define CAP_SLACK 5e-10

static int row_add(struct exact *x, double low, double high)
{
    if (x->n_rows == x->cap_rows) {
        int cap = x->cap_rows ? 2 * x->cap_rows : 256;
        double *bounds = ARENA_ARRAY(x->arena, double, 3 * (size_t)cap);
        if (x->n_rows) {
            memcpy(bounds, x->row_low, (size_t)x->n_rows * sizeof(double));
            memcpy(bounds + cap, x->row_high, (size_t)x->n_rows * sizeof(double));
            memcpy(bounds + 2 * (size_t)cap, x->dual, (size_t)x->n_rows * sizeof(double));
        }
        x->row_low = bounds;
        x->row_high = bounds + cap;
        x->dual = bounds + 2 * (size_t)cap;
        x->cap_rows = cap;
    }
    x->row_low[x->n_rows] = low;
    x->row_high[x->n_rows] = high;
    x->dual[x->n_rows] = 0;
    return x->n_rows++;
}

static int row_at_most(struct exact *x, double high)
{
    return row_add(x, -INFINITY, high);
}

/* ---- places ---- */

static int place_add(struct exact *x, struct place place)
{
    x->places[x->n_places] = place;
    return x->n_places++;
}

/* The place this GPU is one of. */
static int group_find(struct exact *x, int gpu)
{
    const struct problem_gpu *g = &x->p->gpus[gpu];
    int rack = x->has_racks ? g->rack : -1;

    for (int i = 0; i < x->n_places; i++)
        if (x->places[i].type == g->type && x->places[i].rack == rack &&
            !(x->places[i].wake_s < g->wake_s || x->places[i].wake_s > g->wake_s))
            return i;
    return place_add(
        x, (struct place){
               .type = g->type, .rack = rack, .gpu = -1, .may_start = true, .wake_s = g->wake_s });
}

static void build_groups(struct exact *x)
{
    for (int g = 0; g < x->p->n_gpus; g++) {
        x->group_of[g] = x->place_of[g] = -1;
        if (!x->p->gpus[g].may_start)
            continue;
        x->group_of[g] = group_find(x, g);
        x->places[x->group_of[g]].n++;
    }
    for (int i = 0; i < x->n_places; i++) {
        x->places[i].row[0] = row_at_most(x, x->places[i].n);
        x->places[i].n_rows = 1;
    }
}

/* A gang that is better off, or must be, on one node or so many: then nodes have rows. */
static bool minds_nodes(const struct problem *p, const struct problem_job *j)
{
    bool minds = j->n_nodes > 0;

    if (!j->name || j->form != FORM_GANG || j->is_fixed)
        return false;
    for (int m = j->n_min > 2 ? j->n_min : 2; m <= j->n_max; m++)
        minds |= p->gang_near[m] != p->gang_far[m];
    return minds && j->n_max > 1;
}

static int node_find(struct exact *x, int gpu)
{
    const struct problem_gpu *g = &x->p->gpus[gpu];

    for (int i = 0; i < x->n_nodes; i++)
        if (x->nodes[i].node == g->node && x->nodes[i].type == g->type)
            return i;
    return -1;
}

static void build_nodes(struct exact *x)
{
    bool minds = false;

    for (int j = 0; j < x->p->n_jobs; j++)
        minds |= minds_nodes(x->p, &x->p->jobs[j]);
    x->nodes = ARENA_ARRAY(x->arena, struct node_room, (size_t)x->p->n_gpus);
    for (int g = 0; g < x->p->n_gpus && minds; g++) {
        if (!x->p->gpus[g].may_start)
            continue;
        int i = node_find(x, g);
        if (i < 0) {
            i = x->n_nodes++;
            x->nodes[i] = (struct node_room){
                .node = x->p->gpus[g].node,
                .type = x->p->gpus[g].type,
                .place = x->group_of[g],
            };
        }
        x->nodes[i].n++;
    }
    for (int i = 0; i < x->n_nodes; i++)
        x->nodes[i].row = row_at_most(x, x->nodes[i].n);
}

/* A GPU that somebody is on. */
static void build_place_of(struct exact *x, int gpu)
{
    const struct problem_gpu *g = &x->p->gpus[gpu];
    struct place place = {
        .type = g->type,
        .rack = g->rack,
        .gpu = gpu,
        .n = 1,
        .may_start = g->may_start,
        .wake_s = g->wake_s,
    };

    if (x->place_of[gpu] >= 0)
        return;
    place.row[place.n_rows++] = row_at_most(x, 1);
    if (g->may_start) {
        int node = node_find(x, gpu);
        place.row[place.n_rows++] = x->places[x->group_of[gpu]].row[0];
        if (node >= 0)
            place.row[place.n_rows++] = x->nodes[node].row;
    }
    x->place_of[gpu] = place_add(x, place);
}

static void build_places(struct exact *x)
{
    size_t n_gpus = (size_t)x->p->n_gpus;

    x->places = ARENA_ARRAY(x->arena, struct place, 2 * n_gpus);
    x->group_of = ARENA_ARRAY(x->arena, int, n_gpus);
    x->place_of = ARENA_ARRAY(x->arena, int, n_gpus);
    build_groups(x);
    build_nodes(x);
    for (int j = 0; j < x->p->n_jobs; j++)
        for (int i = 0; x->p->jobs[j].name && i < x->p->jobs[j].n_present; i++)
            build_place_of(x, x->p->jobs[j].present[i]);
}

/* ---- caps ---- */

/* What the present allocation draws on a GPU; nobody there: awake. */
static double present_w(const struct exact *x, int gpu, int *kinds, int n, int limit)
{
    int type = x->p->gpus[gpu].type;
    struct yield y;

    if (n == 0 || !problem_yield(x->p, type, limit, kinds, n, &y))
        return x->p->types[type].idle_w;
    return y.watts;
}

static void present_watts(const struct exact *x, double *drawn_w)
{
    const struct problem *p = x->p;

    for (int g = 0; g < p->n_gpus; g++) {
        int kinds[THETA_MAX], n = 0, limit = 0;
        for (int j = 0; j < p->n_jobs && x->place_of[g] >= 0; j++)
            for (int i = 0; p->jobs[j].name && i < p->jobs[j].n_present; i++)
                if (p->jobs[j].present[i] == g && n < THETA_MAX) {
                    limit = p->jobs[j].present_limit;
                    kinds[n++] = p->jobs[j].kind;
                }
        drawn_w[g] = present_w(x, g, kinds, n, limit);
    }
}

/* Watts with margin that may be drawn above all GPUs of a rack (-1: of the cluster) idle. */
static double room_w(const struct exact *x, const double *drawn_w, int rack, double cap_w)
{
    const struct problem *p = x->p;
    double now_w = 0, idle_w = 0;

    for (int g = 0; g < p->n_gpus; g++)
        if (rack < 0 || p->gpus[g].rack == rack) {
            now_w += drawn_w[g];
            idle_w += p->types[p->gpus[g].type].idle_w;
        }
    double most_w = fmax(cap_w, now_w * p->watts_margin);
    return most_w * (1 + CAP_SLACK) - idle_w * p->watts_margin;
}

static void build_caps(struct exact *x)
{
    const struct problem *p = x->p;
    double *drawn_w = ARENA_ARRAY(x->arena, double, (size_t)p->n_gpus);

    x->cap_row = -1;
    if (p->power_cap_w <= 0 && !x->has_racks)
        return;
    present_watts(x, drawn_w);
    if (p->power_cap_w > 0)
        x->cap_row = row_at_most(x, room_w(x, drawn_w, -1, p->power_cap_w) / CAP_UNIT_W);
    if (!x->has_racks)
        return;
    x->rack_row = ARENA_ARRAY(x->arena, int, (size_t)p->n_racks);
    for (int r = 0; r < p->n_racks; r++)
        x->rack_row[r] = p->rack_cap_w[r] > 0
                             ? row_at_most(x, room_w(x, drawn_w, r, p->rack_cap_w[r]) / CAP_UNIT_W)
                             : -1;
}

/* ---- families ---- */

static int double_order(const void *a, const void *b)
{
    double l = *(const double *)a, r = *(const double *)b;

    return (l > r) - (l < r);
}

static int double_unique(double *values, int n)
{
    int m = 0;

    if (n > 0)
        qsort(values, (size_t)n, sizeof *values, double_order);
    for (int i = 0; i < n; i++)
        if (m == 0 || values[i] > values[m - 1])
            values[m++] = values[i];
    return m;
}

static void level_put(struct exact *x, struct family *f, double level, int row)
{
    if (f->n_levels == f->cap_levels) {
        int cap = f->cap_levels ? 2 * f->cap_levels : 8;
        double *levels = ARENA_ARRAY(x->arena, double, 2 * (size_t)cap);
        int *rows = ARENA_ARRAY(x->arena, int, (size_t)cap);
        for (int i = 0; i < f->n_levels; i++) {
            levels[i] = f->level[i];
            levels[cap + i] = f->worth[i];
            rows[i] = f->row[i];
        }
        f->level = levels;
        f->worth = levels + cap;
        f->row = rows;
        f->cap_levels = cap;
    }
    int at = f->n_levels++;
    for (; at > 0 && f->level[at - 1] > level; at--) {
        f->level[at] = f->level[at - 1];
        f->row[at] = f->row[at - 1];
        f->worth[at] = f->worth[at - 1];
    }
    f->level[at] = level;
    f->row[at] = row;
    f->worth[at] = at > 0 ? f->worth[at - 1] : 0;
}

bool exact_add_level(struct exact *x, int family, double low)
{
    struct family *f = &x->families[family];

    for (int i = 0; i < f->n_levels; i++)
        if (f->level[i] == low)
            return false;
    level_put(x, f, low, row_add(x, 0, INFINITY));
    return true;
}

static bool in_family(const struct problem_job *j)
{
    return j->name && exact_is_single(j) && !j->is_exclusive && !j->is_fixed;
}

static int family_add(struct exact *x, struct family f)
{
    x->families[x->n_families] = f;
    return x->n_families++;
}

/* Does waking cost a job what it costs the family's members? */
static bool wakes_alike(const struct exact *x, const struct family *f, const struct problem_job *j)
{
    return !x->has_sleepers || (f->wake_rate == j->wake_rate && f->late_w == j->late_w);
}

/* The single jobs of one kind that allow the same types. */
static void build_single(struct exact *x, int job)
{
    const struct problem_job *j = &x->p->jobs[job];

    for (int f = 0; f < x->n_families && x->family_of[job] < 0; f++)
        if (x->families[f].job < 0 && x->families[f].kind == j->kind &&
            x->families[f].allowed == j->allowed_types && wakes_alike(x, &x->families[f], j))
            x->family_of[job] = f;
    if (x->family_of[job] < 0)
        x->family_of[job] = family_add(x, (struct family){ .kind = j->kind,
                                                           .allowed = j->allowed_types,
                                                           .job = -1,
                                                           .wake_rate = j->wake_rate,
                                                           .late_w = j->late_w });
    x->families[x->family_of[job]].n_members++;
}

/* Its levels are its members' needs: between them slots are as good as each other. */
static void build_single_levels(struct exact *x, int family)
{
    struct family *f = &x->families[family];
    double *needs = ARENA_ARRAY(x->arena, double, (size_t)f->n_members);
    int n = 0;

    for (int j = 0; j < x->p->n_jobs; j++)
        if (x->family_of[j] == family)
            needs[n++] = x->p->jobs[j].need;
    n = double_unique(needs, n);
    for (int i = 0; i < n; i++)
        level_put(x, f, needs[i], row_add(x, 0, i == 0 ? 0 : INFINITY));
}

/* ---- what the parts of a spread job may hold ---- */

struct lows {
    const struct problem *p;
    const bool *shares;    // (n_kinds) somebody of the kind may share
    int type, limit, n, cap;
    double *at;
    int kinds[THETA_MAX];
};

static void lows_put(struct lows *l, double low)
{
    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 256;
        l->at = realloc(l->at, (size_t)l->cap * sizeof *l->at);
        assert(l->at);
    }
    l->at[l->n++] = low;
}

/* The job is kinds[0]; the others rise from 'from'. */
static void lows_beside(struct lows *l, int n, int from, int n_most)
{
    struct yield y;

    if (!problem_yield(l->p, l->type, l->limit, l->kinds, n, &y))
        return;
    lows_put(l, y.low[0]);
    for (int k = from; k < l->p->n_kinds && n < n_most && n < THETA_MAX; k++) {
        if (!l->shares[k])
            continue;
        l->kinds[n] = k;
        lows_beside(l, n + 1, k, n_most);
    }
}

/* On one type; with levels for what it holds alone there. */
static void lows_on(struct exact *x, struct lows *l, int family, int type)
{
    const struct family *f = &x->families[family];

    l->type = type;
    l->kinds[0] = f->kind;
    for (l->limit = 0; l->limit < x->p->types[type].n_limits; l->limit++) {
        int first = l->n;
        lows_beside(l, 1, 0, f->is_alone ? 1 : x->p->theta);
        if (l->n > first)
            exact_add_level(x, family, l->at[first]);
    }
}

static void build_spread_family(struct exact *x, const bool *shares, int job, int gpu)
{
    const struct problem_job *j = &x->p->jobs[job];
    struct lows l = { .p = x->p, .shares = shares };
    int family = family_add(x, (struct family){
                                   .kind = j->kind,
                                   .allowed = j->allowed_types,
                                   .is_alone = j->is_exclusive,
                                   .job = job,
                                   .n_members = 1,
                                   .wake_rate = gpu < 0 ? j->wake_rate : 0,
                                   .late_w = gpu < 0 ? j->late_w : 0,
                               });

    level_put(x, &x->families[family], 0, row_add(x, 0, 0));
    for (int t = 0; t < x->p->n_types; t++)
        if (problem_allows(j, t) && (gpu < 0 || x->p->gpus[gpu].type == t))
            lows_on(x, &l, family, t);
    struct family *f = &x->families[family];
    f->n_lows = double_unique(l.at, l.n);
    f->low = ARENA_ARRAY(x->arena, double, (size_t)f->n_lows);
    if (l.at)
        memcpy(f->low, l.at, (size_t)f->n_lows * sizeof *f->low);
    free(l.at);
}

/* One family for parts anywhere, one for each GPU of the place it holds. */
static void build_spread(struct exact *x, const bool *shares, int job)
{
    const struct problem_job *j = &x->p->jobs[job];

    if (!j->is_fixed) {
        x->family_of[job] = x->n_families;
        build_spread_family(x, shares, job, -1);
    }
    if (!exact_may_stay(j))
        return;
    x->stay_first[job] = x->n_families;
    for (int i = 0; i < j->n_present; i++)
        build_spread_family(x, shares, job, j->present[i]);
}

static void build_families(struct exact *x)
{
    const struct problem *p = x->p;
    bool *shares = ARENA_ARRAY(x->arena, bool, (size_t)p->n_kinds);
    int most = p->n_jobs;

    for (int j = 0; j < p->n_jobs; j++) {
        const struct problem_job *job = &p->jobs[j];
        x->family_of[j] = x->stay_first[j] = -1;
        most += job->n_present + 1;
        if (job->name && !job->is_exclusive && (exact_is_single(job) || exact_is_spread(job)))
            shares[job->kind] = true;
    }
    x->families = ARENA_ARRAY(x->arena, struct family, (size_t)most);
    for (int j = 0; j < p->n_jobs; j++)
        if (in_family(&p->jobs[j]))
            build_single(x, j);
    for (int f = 0; f < x->n_families; f++)
        build_single_levels(x, f);
    for (int j = 0; j < p->n_jobs; j++)
        if (p->jobs[j].name && exact_is_spread(&p->jobs[j]))
            build_spread(x, shares, j);
    x->is_loose = ARENA_ARRAY(x->arena, bool, (size_t)x->n_families);
    x->held_row = ARENA_ARRAY(x->arena, int, (size_t)x->n_families);
    for (int f = 0; f < x->n_families; f++)
        x->held_row[f] = -1;
}

void exact_add_held(struct exact *x, const struct column *c)
{
    int first = pattern_family(x, c, 0);

    if (x->held_row[first] >= 0)
        return;
    int row = row_add(x, 0, INFINITY);
    for (int i = 0; i < (c->is_stay ? c->n : 1); i++)
        x->held_row[first + i] = row;
}

void exact_drop_levels(const struct exact *x, struct exact *out)
{
    int n = x->n_rows;

    for (int i = 0; i < x->n_families; i++)
        if (x->families[i].job >= 0 && x->families[i].row[0] < n)
            n = x->families[i].row[0];    // rows of spread jobs' families come last
    *out = *x;
    out->n_rows = out->cap_rows = 0;
    for (int r = 0; r < n; r++)
        row_add(out, x->row_low[r], x->row_high[r]);
    out->families = ARENA_ARRAY(x->arena, struct family, (size_t)x->n_families);
    out->held_row = ARENA_ARRAY(x->arena, int, (size_t)x->n_families);
    for (int i = 0; i < x->n_families; i++) {
        struct family *f = &out->families[i];
        out->held_row[i] = -1;
        *f = x->families[i];
        if (f->job < 0)
            continue;
        f->n_levels = f->cap_levels = 0;
        level_put(out, f, 0, row_add(out, 0, 0));
    }
}

/* ---- items ---- */

static struct item item_of_family(const struct exact *x, int family)
{
    const struct family *f = &x->families[family];

    return (struct item){
        .family = family,
        .job = f->job,
        .kind = f->kind,
        .allowed = f->allowed,
        .is_alone = f->is_alone,
        .wake_rate = f->wake_rate,
        .late_w = f->late_w,
    };
}

static struct item item_of_job(const struct exact *x, int job, bool is_short, double move_w)
{
    const struct problem_job *j = &x->p->jobs[job];

    return (struct item){
        .family = -1,
        .job = job,
        .kind = j->kind,
        .allowed = j->allowed_types,
        .is_alone = j->is_exclusive,
        .is_short = is_short,
        .move_w = move_w,
        .wake_rate = j->wake_rate,
        .late_w = j->late_w,
    };
}

static int item_order(const void *a, const void *b)
{
    const struct item *l = a, *r = b;

    if (l->kind != r->kind)
        return l->kind - r->kind;
    return l->family != r->family ? l->family - r->family : l->job - r->job;
}

/* Who may come to a GPU: families; single jobs that fall short, or are exclusive. */
static void build_items(struct exact *x)
{
    const struct problem *p = x->p;

    x->items = ARENA_ARRAY(x->arena, struct item, (size_t)(x->n_families + p->n_jobs));
    for (int f = 0; f < x->n_families; f++)
        if (x->families[f].job < 0 || x->family_of[x->families[f].job] == f)
            x->items[x->n_items++] = item_of_family(x, f);
    for (int j = 0; j < p->n_jobs; j++) {
        const struct problem_job *job = &p->jobs[j];
        if (job->name && exact_is_single(job) && !job->is_fixed)
            x->items[x->n_items++] = item_of_job(x, j, !job->is_exclusive, exact_move_w(job));
    }
    qsort(x->items, (size_t)x->n_items, sizeof *x->items, item_order);
    x->first_item = ARENA_ARRAY(x->arena, int, (size_t)p->n_kinds + 1);
    for (int i = x->n_items - 1, k = p->n_kinds; k >= 0; k--) {
        while (i >= 0 && x->items[i].kind >= k)
            i--;
        x->first_item[k] = i + 1;
    }
}

static void own_add(struct place *place, struct item item)
{
    assert(place->n_own < 2 * THETA_MAX);
    place->own[place->n_own++] = item;
}

/* Who may be on a GPU because he is there now. */
static void build_own(struct exact *x, int job)
{
    const struct problem_job *j = &x->p->jobs[job];

    for (int i = 0; i < j->n_present; i++) {
        struct place *place = &x->places[x->place_of[j->present[i]]];
        if (exact_is_spread(j)) {
            if (x->stay_first[job] >= 0)
                own_add(place, item_of_family(x, x->stay_first[job] + i));
            if (!place->may_start && x->family_of[job] >= 0)
                own_add(place, item_of_family(x, x->family_of[job]));
        } else if (exact_is_single(j) && j->n_present == 1) {
            struct item stays = item_of_job(x, job, false, 0);
            stays.wake_rate = stays.late_w = 0;
            own_add(place, stays);
        } else if (exact_is_single(j) && !place->may_start && !j->is_fixed) {
            own_add(place, item_of_job(x, job, false, j->move_w));
        }
    }
}

void exact_build(struct arena *a, const struct problem *p, bool has_racks, struct exact *x)
{
    *x = (struct exact){
        .p = p, .arena = a, .has_racks = has_racks, .has_sleepers = problem_sleeps(p)
    };
    x->cover = ARENA_ARRAY(a, int, (size_t)p->n_jobs);
    x->family_of = ARENA_ARRAY(a, int, (size_t)p->n_jobs);
    x->stay_first = ARENA_ARRAY(a, int, (size_t)p->n_jobs);
    for (int j = 0; j < p->n_jobs; j++)
        x->cover[j] = p->jobs[j].name ? row_add(x, 1, 1) : -1;
    build_places(x);
    build_caps(x);
    build_families(x);
    build_items(x);
    for (int j = 0; j < p->n_jobs; j++)
        if (p->jobs[j].name)
            build_own(x, j);
}
