#include "optimize/exact/program.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"

/* What just meets a cap must not be lost to rounding; the judge allows 1e-9. */
#define CAP_SLACK 5e-10

/* A unit with less rest is of no use: its row would have the inverse of that in it. */
#define REST_LEAST 0.02

static int row_add(struct program *x, double low, double high)
{
    assert(x->n_rows < x->cap_rows);
    x->row_low[x->n_rows] = low;
    x->row_high[x->n_rows] = high;
    return x->n_rows++;
}

/* Room for all rows there can be. */
static void build_rows(struct program *x)
{
    const struct problem *p = x->p;
    int n = 2 * p->n_jobs + 3 * p->n_gpus + p->n_racks + 1;

    for (int j = 0; j < p->n_jobs; j++)
        n += is_spread(&p->jobs[j]) ? 1 + p->jobs[j].n_present + HELD_MOST : 0;
    x->cap_rows = n;
    x->row_low = ARENA_ARRAY(x->arena, double, (size_t)n);
    x->row_high = ARENA_ARRAY(x->arena, double, (size_t)n);
    x->dual = ARENA_ARRAY(x->arena, double, (size_t)n);
}

static int row_at_most(struct program *x, double high)
{
    return row_add(x, -INFINITY, high);
}

/* ---- places ---- */

/* The place of GPUs like this one, on its node only or anywhere (node -1), or of it alone ('own');
 * with one GPU more. A GPU there counts in the rows of 'in', the place that it is part of, too.
 */
static int place_with(struct program *x, int gpu, int node, int own, int in)
{
    const struct problem_gpu *g = &x->p->gpus[gpu];
    int rack = x->has_racks ? g->rack : -1, i = 0;

    for (; i < x->n_places; i++) {
        const struct place *at = &x->places[i];
        if (at->type == g->type && at->rack == rack && at->node == node && at->gpu == own &&
            !(at->wake_s < g->wake_s || at->wake_s > g->wake_s))
            break;
    }
    struct place *place = &x->places[i];
    if (i == x->n_places) {
        *place = (struct place){ .type = g->type,
                                 .rack = rack,
                                 .node = node,
                                 .gpu = own,
                                 .may_start = g->may_start,
                                 .wake_s = g->wake_s };
        place->row[place->n_rows++] = row_at_most(x, 0);
        for (int r = 0; in >= 0 && r < x->places[in].n_rows; r++)
            place->row[place->n_rows++] = x->places[in].row[r];
        x->n_places++;
    }
    place->n++;
    x->row_high[place->row[0]]++;
    return i;
}

static void build_places(struct program *x)
{
    size_t n_gpus = (size_t)x->p->n_gpus;

    x->places = ARENA_ARRAY(x->arena, struct place, 3 * n_gpus);
    x->group_of = ARENA_ARRAY(x->arena, int, n_gpus);
    x->room_of = ARENA_ARRAY(x->arena, int, n_gpus);
    x->place_of = ARENA_ARRAY(x->arena, int, n_gpus);
    for (int g = 0; g < x->p->n_gpus; g++) {
        bool is_open = x->p->gpus[g].may_start;
        x->group_of[g] = is_open ? place_with(x, g, -1, -1, -1) : -1;
        x->room_of[g] = is_open ? place_with(x, g, x->p->gpus[g].node, -1, x->group_of[g]) : -1;
        x->place_of[g] = -1;
    }
    for (int j = 0; j < x->p->n_jobs; j++)
        for (int i = 0; x->p->jobs[j].name && i < x->p->jobs[j].n_present; i++) {
            int g = x->p->jobs[j].present[i];
            if (x->place_of[g] < 0)
                x->place_of[g] = place_with(x, g, x->p->gpus[g].node, g, x->room_of[g]);
        }
}

/* ---- caps ---- */

/* What the present allocation draws on each GPU; nobody there: awake. */
static void present_watts(const struct program *x, double *drawn_w)
{
    const struct problem *p = x->p;
    int(*kinds)[THETA_MAX] = arena_array(x->arena, (size_t)p->n_gpus, sizeof *kinds);
    int *n = ARENA_ARRAY(x->arena, int, (size_t)p->n_gpus);
    int *limit = ARENA_ARRAY(x->arena, int, (size_t)p->n_gpus);

    for (int j = 0; j < p->n_jobs; j++)
        for (int i = 0; p->jobs[j].name && i < p->jobs[j].n_present; i++) {
            int g = p->jobs[j].present[i];
            kinds[g][n[g]++] = p->jobs[j].kind;
            limit[g] = p->jobs[j].present_limit;
        }
    for (int g = 0; g < p->n_gpus; g++) {
        struct yield y = { .watts = p->types[p->gpus[g].type].idle_w };
        if (n[g] > 0)
            problem_yield(p, p->gpus[g].type, limit[g], kinds[g], n[g], &y);
        drawn_w[g] = y.watts;
    }
}

/* A row for what may be drawn above all GPUs of a rack (-1: of the cluster) idle; -1: no cap. */
static int cap_add(struct program *x, const double *drawn_w, int rack, double cap_w)
{
    const struct problem *p = x->p;
    double now_w = 0, idle_w = 0;

    if (cap_w <= 0)
        return -1;
    for (int g = 0; g < p->n_gpus; g++)
        if (rack < 0 || p->gpus[g].rack == rack) {
            now_w += drawn_w[g];
            idle_w += p->types[p->gpus[g].type].idle_w;
        }
    double most_w = fmax(cap_w, now_w * p->watts_margin);
    return row_at_most(x, (most_w * (1 + CAP_SLACK) - idle_w * p->watts_margin) / CAP_UNIT_W);
}

static void build_caps(struct program *x)
{
    const struct problem *p = x->p;
    double *drawn_w = ARENA_ARRAY(x->arena, double, (size_t)p->n_gpus);

    present_watts(x, drawn_w);
    x->cap_row = cap_add(x, drawn_w, -1, p->power_cap_w);
    if (!x->has_racks)
        return;
    x->rack_row = ARENA_ARRAY(x->arena, int, (size_t)p->n_racks);
    for (int r = 0; r < p->n_racks; r++)
        x->rack_row[r] = cap_add(x, drawn_w, r, p->rack_cap_w[r]);
}

/* ---- families ---- */

/* Does the job choose single GPUs as those of the family do? */
static bool is_like(const struct problem_job *j, const struct problem_job *other)
{
    return j->kind == other->kind && j->allowed_types == other->allowed_types &&
           j->is_exclusive == other->is_exclusive && j->wake_rate == other->wake_rate &&
           j->late_w == other->late_w;
}

static bool takes_one(const struct problem_job *j)
{
    return j->form == FORM_SPREAD || j->n_min <= 1;
}

static void family_join(struct program *x, int job)
{
    const struct problem_job *j = &x->p->jobs[job];
    int f = 0;

    while (f < x->n_families && !is_like(j, &x->p->jobs[x->families[f].job]))
        f++;
    if (f == x->n_families)
        x->families[x->n_families++].job = job;
    x->families[f].n++;
    x->family_of[job] = f;
}

static int double_order(const void *a, const void *b)
{
    double l = *(const double *)a, r = *(const double *)b;

    return (l > r) - (l < r);
}

static void build_levels(struct program *x, int family)
{
    struct family *f = &x->families[family];
    int n = 0;

    f->level = ARENA_ARRAY(x->arena, double, (size_t)f->n);
    f->worth = ARENA_ARRAY(x->arena, double, (size_t)f->n);
    f->row = ARENA_ARRAY(x->arena, int, (size_t)f->n);
    for (int j = 0; j < x->p->n_jobs; j++)
        if (x->family_of[j] == family)
            f->level[n++] = x->p->jobs[j].need;
    qsort(f->level, (size_t)n, sizeof *f->level, double_order);
    for (int i = 0; i < n; i++)
        if (i == 0 || f->level[i] > f->level[f->n_levels - 1]) {
            f->level[f->n_levels] = f->level[i];
            f->row[f->n_levels++] = row_add(x, 0, i == 0 ? 0 : INFINITY);
        }
}

static void build_families(struct program *x)
{
    x->family_of = ARENA_ARRAY(x->arena, int, (size_t)x->p->n_jobs);
    x->families = ARENA_ARRAY(x->arena, struct family, (size_t)x->p->n_jobs);
    for (int i = 0; i < x->p->n_jobs; i++) {
        const struct problem_job *j = &x->p->jobs[i];
        x->family_of[i] = -1;
        if (j->name && !j->is_fixed && takes_one(j) && !is_spread(j))
            family_join(x, i);
    }
    for (int f = 0; f < x->n_families; f++)
        build_levels(x, f);
}

int family_levels(const struct family *f, double low)
{
    int n = 0;

    while (n < f->n_levels && f->level[n] <= low)
        n++;
    return n;
}

/* ---- spread jobs ---- */

bool held_make(double unit, struct held *out)
{
    double rest = 1 / unit - floor(1 / unit);

    *out = (struct held){ -1, unit, rest, ceil(1 / unit), 1 / (unit * rest) };
    return rest >= REST_LEAST;
}

double held_of(const struct held *h, double low, double need)
{
    double a = low < need ? low / need : 1;    // more than the promise is no better

    if (!(h->unit > 0))
        return a;
    double whole = floor(a / h->unit);
    return whole + fmin(a / h->unit - whole, h->rest) / h->rest;
}

void program_hold(struct program *x, int job, struct held h)
{
    struct helds *to = &x->helds[job];

    h.row = row_add(x, 0, INFINITY);
    to->at[to->n++] = h;
}

static void build_spread(struct program *x)
{
    x->parts = ARENA_ARRAY(x->arena, int, (size_t)x->p->n_jobs);
    x->helds = ARENA_ARRAY(x->arena, struct helds, (size_t)x->p->n_jobs);
    for (int i = 0; i < x->p->n_jobs; i++) {
        const struct problem_job *j = &x->p->jobs[i];
        x->parts[i] = -1;
        if (!j->name || !is_spread(j))
            continue;
        x->parts[i] = row_add(x, 0, 0);
        for (int k = 0; k < j->n_present; k++)
            row_add(x, 0, 0);
        if (j->need > 0 && j->short_w > 0)
            program_hold(x, i, (struct held){ .all = 1, .missed = 1 });
    }
}

/* ---- who may be where ---- */

static struct item item_of(const struct program *x, int job)
{
    return (struct item){ .family = -1,
                          .job = job,
                          .row = x->parts[job] >= 0 ? x->parts[job] : x->cover[job] };
}

/* Who may come, by kind: families, and their jobs where they fall short; parts of spread ones. */
static void build_items(struct program *x)
{
    const struct problem *p = x->p;
    int n = 0;

    x->items = ARENA_ARRAY(x->arena, struct item, 2 * (size_t)p->n_jobs);
    x->first_item = ARENA_ARRAY(x->arena, int, (size_t)p->n_kinds + 1);
    for (int k = 0; k < p->n_kinds; k++) {
        for (int f = 0; f < x->n_families; f++)
            if (p->jobs[x->families[f].job].kind == k)
                x->items[n++] = (struct item){ .family = f, .job = x->families[f].job, .row = -1 };
        for (int j = 0; j < p->n_jobs; j++) {
            if (p->jobs[j].kind != k || (x->family_of[j] < 0 && x->parts[j] < 0))
                continue;
            x->items[n] = item_of(x, j);
            x->items[n].is_short = x->parts[j] < 0;
            n += !p->jobs[j].is_fixed && (x->parts[j] >= 0 || p->jobs[j].need > 0);
        }
        x->first_item[k + 1] = n;
    }
}

/* Who may be on a GPU because he is there now: he stays, or stays here and not elsewhere. */
static void build_own(struct program *x, int job)
{
    const struct problem_job *j = &x->p->jobs[job];

    for (int i = 0; i < j->n_present && takes_one(j); i++) {
        struct place *place = &x->places[x->place_of[j->present[i]]];
        struct item here = item_of(x, job);
        if (!place->may_start && !j->is_fixed)
            place->own[place->n_own++] = here;
        here.stays = true;
        here.row += x->parts[job] >= 0 ? 1 + i : 0;
        if (x->parts[job] >= 0 || j->n_present == 1)
            place->own[place->n_own++] = here;
    }
}

void program_build(struct arena *a, const struct problem *p, bool has_racks, double until_s,
                   struct program *x)
{
    *x = (struct program){ .p = p, .arena = a, .has_racks = has_racks, .until_s = until_s };
    build_rows(x);
    x->cover = ARENA_ARRAY(a, int, (size_t)p->n_jobs);
    for (int j = 0; j < p->n_jobs; j++)
        x->cover[j] = p->jobs[j].name ? row_add(x, 1, 1) : -1;
    build_places(x);
    build_caps(x);
    build_families(x);
    build_spread(x);
    build_items(x);
    for (int j = 0; j < p->n_jobs; j++)
        if (p->jobs[j].name)
            build_own(x, j);
    x->sources = ARENA_ARRAY(a, int, (size_t)x->n_places);
    x->source_w = ARENA_ARRAY(a, double, (size_t)x->n_places);
}
