#include "optimize/exact/program.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"

/* What just meets a cap must not be lost to rounding; the judge allows 1e-9. */
#define CAP_SLACK 5e-10

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
    x->entries = ARENA_NEW(x->arena, struct entries);
    x->entries->row = ARENA_ARRAY(x->arena, int, (size_t)n);
    x->entries->value = ARENA_ARRAY(x->arena, double, (size_t)n);
    x->entries->sum = ARENA_ARRAY(x->arena, double, (size_t)n);
}

/* ---- caps ---- */

static void build_caps(struct program *x, const int *residents)
{
    const struct problem *p = x->p;
    const double *room_w = caps_room_w(x->arena, p, residents);

    x->cap_row = ARENA_ARRAY(x->arena, int, 1 + (size_t)p->n_racks);
    for (int r = -1; r < p->n_racks; r++) {
        double cap_w = r < 0 ? p->power_cap_w : x->has_racks ? p->rack_cap_w[r] : 0;
        double most_w = room_w[1 + r] * p->watts_margin + CAP_SLACK * cap_w;
        x->cap_row[1 + r] = cap_w > 0 ? row_add(x, -INFINITY, most_w / CAP_UNIT_W) : -1;
    }
}

/* ---- places ---- */

/* Its rows: of its own, of the places that it is part of, and of caps. */
static void place_rows(struct program *x, struct place *at)
{
    int rack = x->p->gpus[at->gpu].rack;

    at->row[at->n_rows++] = row_add(x, -INFINITY, 0);
    for (int l = at->level + 1; l < PLACE_LEVELS; l++)
        if (x->place_of[l][at->gpu] >= 0)
            at->row[at->n_rows++] = x->places[x->place_of[l][at->gpu]].row[0];
    if (x->cap_row[0] >= 0)
        at->cap[at->n_caps++] = x->cap_row[0];
    if (x->has_racks && x->cap_row[1 + rack] >= 0)
        at->cap[at->n_caps++] = x->cap_row[1 + rack];
}

static bool is_place_of(const struct program *x, const struct place *at, int gpu,
                        enum place_level level)
{
    const struct problem_gpu *a = &x->p->gpus[at->gpu], *b = &x->p->gpus[gpu];

    return at->level == level && a->type == b->type && a->wake_s == b->wake_s &&
           (!x->has_racks || a->rack == b->rack) && (level == PLACE_GROUP || a->node == b->node) &&
           (level != PLACE_GPU || at->gpu == gpu);
}

/* The place of GPUs like this one, with one GPU more. */
static void place_join(struct program *x, int gpu, enum place_level level)
{
    struct place *at = x->places;

    while (at < x->places + x->n_places && !is_place_of(x, at, gpu, level))
        at++;
    if (at == x->places + x->n_places) {
        *at = (struct place){ level, .gpu = gpu };
        at->type = x->p->gpus[gpu].type;
        at->node = x->p->gpus[gpu].node;
        place_rows(x, at);
        x->n_places++;
    }
    x->place_of[level][gpu] = (int)(at - x->places);
    x->row_high[at->row[0]] = ++at->n;
}

static void build_places(struct program *x, const int *residents)
{
    size_t n_gpus = (size_t)x->p->n_gpus;

    x->places = ARENA_ARRAY(x->arena, struct place, PLACE_LEVELS * n_gpus);
    for (int l = 0; l < PLACE_LEVELS; l++)
        x->place_of[l] = ARENA_ARRAY(x->arena, int, n_gpus);
    for (int l = PLACE_LEVELS - 1; l >= 0; l--)
        for (int g = 0; g < x->p->n_gpus; g++) {
            x->place_of[l][g] = -1;
            if (l == PLACE_GPU ? residents[g * THETA_MAX] >= 0 : x->p->gpus[g].may_start)
                place_join(x, g, l);
        }
}

/* ---- families ---- */

/* Jobs by family: 0 are those that choose single GPUs alike. */
static int family_order(const struct problem_job *l, const struct problem_job *r)
{
    if (l->kind != r->kind)
        return l->kind - r->kind;
    if (l->allowed_types != r->allowed_types)
        return l->allowed_types < r->allowed_types ? -1 : 1;
    if (l->is_exclusive != r->is_exclusive)
        return l->is_exclusive - r->is_exclusive;
    if (l->wake_rate != r->wake_rate)
        return l->wake_rate < r->wake_rate ? -1 : 1;
    return (l->late_w > r->late_w) - (l->late_w < r->late_w);
}

static int by_family(const void *a, const void *b, void *self)
{
    const struct problem_job *jobs = self, *l = &jobs[*(const int *)a], *r = &jobs[*(const int *)b];
    int order = family_order(l, r);

    return order ? order : (l->need > r->need) - (l->need < r->need);
}

/* Families are neighbours in a list of all who may be of one; levels are parts of one array. */
static void build_families(struct program *x)
{
    size_t n_jobs = (size_t)x->p->n_jobs;
    int *jobs = ARENA_ARRAY(x->arena, int, n_jobs), *row = ARENA_ARRAY(x->arena, int, n_jobs);
    double *level = ARENA_ARRAY(x->arena, double, 2 * n_jobs), *worth = level + n_jobs;
    struct family *f = x->families = ARENA_ARRAY(x->arena, struct family, n_jobs);
    int n = 0;

    x->family_of = ARENA_ARRAY(x->arena, int, n_jobs);
    for (int i = 0; i < x->p->n_jobs; i++) {
        const struct problem_job *j = &x->p->jobs[i];
        x->family_of[i] = -1;
        if (j->name && !j->is_fixed && job_takes_slots(j) && !is_spread(j))
            jobs[n++] = i;
    }
    qsort_r(jobs, (size_t)n, sizeof *jobs, by_family, x->p->jobs);
    for (int i = 0; i < n; i++) {
        const struct problem_job *j = &x->p->jobs[jobs[i]];
        bool is_first = i == 0 || family_order(j, &x->p->jobs[jobs[i - 1]]) != 0;
        if (is_first) {
            f = &x->families[x->n_families++];
            *f = (struct family){ jobs[i], 0, 0, level + i, row + i, worth + i };
        }
        x->family_of[jobs[i]] = x->n_families - 1;
        f->n++;
        if (is_first || j->need > f->level[f->n_levels - 1]) {
            f->level[f->n_levels] = j->need;
            f->row[f->n_levels++] = row_add(x, 0, is_first ? 0 : INFINITY);
        }
    }
}

int family_levels(const struct family *f, double low)
{
    int n = 0;

    while (n < f->n_levels && f->level[n] <= low)
        n++;
    return n;
}

/* ---- spread jobs ---- */

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
    return (
        struct item){ .family = -1, .job = job, .row = x->parts[job] >= 0 ? x->parts[job] : job };
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

    for (int i = 0; i < j->n_present && job_takes_slots(j); i++) {
        struct place *place = &x->places[x->place_of[PLACE_GPU][j->present[i]]];
        struct item here = item_of(x, job);
        if (!x->p->gpus[place->gpu].may_start && !j->is_fixed)
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
    for (int j = 0; j < p->n_jobs; j++)
        row_add(x, p->jobs[j].name != NULL, p->jobs[j].name != NULL);
    const int *residents = residents_list(a, p);
    build_caps(x, residents);
    build_places(x, residents);
    build_families(x);
    build_spread(x);
    build_items(x);
    for (int j = 0; j < p->n_jobs; j++)
        if (p->jobs[j].name)
            build_own(x, j);
    x->sources = ARENA_ARRAY(a, int, (size_t)x->n_places);
}
