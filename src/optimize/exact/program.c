#include "optimize/exact/program.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"

/* What just meets a cap must not be lost to rounding; the judge allows 1e-9. */
#define CAP_SLACK 5e-10

static int row_add(struct exact_program *x, double low, double high)
{
    assert(x->n_rows < x->cap_rows);
    x->row_low[x->n_rows] = low;
    x->row_high[x->n_rows] = high;
    return x->n_rows++;
}

/* Room for all rows there can be. */
static void build_rows(struct exact_program *x)
{
    const struct problem *p = x->p;
    int n = 2 * p->n_jobs + 3 * p->n_gpus + p->n_racks + 1;

    for (int j = 0; j < p->n_jobs; j++)
        n += is_spread(&p->jobs[j]) ? 1 + p->jobs[j].n_present + PROMISE_ROWS_MAX : 0;
    x->cap_rows = n;
    x->row_low = ARENA_ARRAY(x->arena, double, (size_t)n);
    x->row_high = ARENA_ARRAY(x->arena, double, (size_t)n);
    x->dual = ARENA_ARRAY(x->arena, double, (size_t)n);
    x->entry_row = ARENA_ARRAY(x->arena, int, (size_t)n);
    x->entry = ARENA_ARRAY(x->arena, double, (size_t)n);
    x->entry_sum = ARENA_ARRAY(x->arena, double, (size_t)n);
}

/* ---- caps ---- */

static void build_caps(struct exact_program *x, const struct residents *residents)
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

/* ---- groups of GPUs ---- */

/* Its rows: of its own, of the groups that it is part of, and of caps. */
static void group_rows(struct exact_program *x, struct gpu_group *at)
{
    int rack = x->p->gpus[at->gpu].rack;

    at->row[at->n_rows++] = row_add(x, -INFINITY, 0);
    for (int l = at->level + 1; l < GROUP_LEVELS; l++)
        if (x->group_of[l][at->gpu] >= 0)
            at->row[at->n_rows++] = x->groups[x->group_of[l][at->gpu]].row[0];
    if (x->cap_row[0] >= 0)
        at->cap[at->n_caps++] = x->cap_row[0];
    if (x->has_racks && x->cap_row[1 + rack] >= 0)
        at->cap[at->n_caps++] = x->cap_row[1 + rack];
}

static bool is_group_of(const struct exact_program *x, const struct gpu_group *at, int gpu,
                        enum group_level level)
{
    const struct problem_gpu *a = &x->p->gpus[at->gpu], *b = &x->p->gpus[gpu];

    return at->level == level && a->type == b->type && a->wake_s == b->wake_s &&
           (!x->has_racks || a->rack == b->rack) && (level == GROUP_TYPE || a->node == b->node) &&
           (level != GROUP_GPU || at->gpu == gpu);
}

/* The group of GPUs like this one, with one GPU more. */
static void group_join(struct exact_program *x, int gpu, enum group_level level)
{
    struct gpu_group *at = x->groups;

    while (at < x->groups + x->n_groups && !is_group_of(x, at, gpu, level))
        at++;
    if (at == x->groups + x->n_groups) {
        *at = (struct gpu_group){ level, .gpu = gpu };
        at->type = x->p->gpus[gpu].type;
        at->node = x->p->gpus[gpu].node;
        group_rows(x, at);
        x->n_groups++;
    }
    x->group_of[level][gpu] = (int)(at - x->groups);
    x->row_high[at->row[0]] = ++at->n;
}

static void build_groups(struct exact_program *x, const struct residents *residents)
{
    size_t n_gpus = (size_t)x->p->n_gpus;

    x->groups = ARENA_ARRAY(x->arena, struct gpu_group, GROUP_LEVELS * n_gpus);
    for (int l = 0; l < GROUP_LEVELS; l++)
        x->group_of[l] = ARENA_ARRAY(x->arena, int, n_gpus);
    for (int l = GROUP_LEVELS - 1; l >= 0; l--)
        for (int g = 0; g < x->p->n_gpus; g++) {
            x->group_of[l][g] = -1;
            if (l == GROUP_GPU ? residents[g].n > 0 : x->p->gpus[g].may_start)
                group_join(x, g, l);
        }
}

/* ---- classes ---- */

/* Jobs by class: 0 are those that choose single GPUs alike. */
static int class_order(const struct problem_job *l, const struct problem_job *r)
{
    if (l->kind != r->kind)
        return l->kind - r->kind;
    if (l->allowed_types != r->allowed_types)
        return l->allowed_types < r->allowed_types ? -1 : 1;
    if (l->is_exclusive != r->is_exclusive)
        return l->is_exclusive - r->is_exclusive;
    if (l->wake_rate != r->wake_rate)
        return l->wake_rate < r->wake_rate ? -1 : 1;
    if (l->late_w != r->late_w)
        return l->late_w < r->late_w ? -1 : 1;
    return (l->start_w > r->start_w) - (l->start_w < r->start_w);
}

static int by_class(const void *a, const void *b, void *self)
{
    const struct problem_job *jobs = self, *l = &jobs[*(const int *)a], *r = &jobs[*(const int *)b];
    int order = class_order(l, r);

    return order ? order : (l->need > r->need) - (l->need < r->need);
}

/* Classes are neighbours in a list of all who may be of one; levels are parts of one array. */
static void build_classes(struct exact_program *x)
{
    size_t n_jobs = (size_t)x->p->n_jobs;
    int *jobs = ARENA_ARRAY(x->arena, int, n_jobs), *row = ARENA_ARRAY(x->arena, int, n_jobs);
    double *level = ARENA_ARRAY(x->arena, double, 2 * n_jobs), *worth = level + n_jobs;
    struct exact_class *f = x->classes = ARENA_ARRAY(x->arena, struct exact_class, n_jobs);
    int n = 0;

    x->class_of = ARENA_ARRAY(x->arena, int, n_jobs);
    for (int i = 0; i < x->p->n_jobs; i++) {
        const struct problem_job *j = &x->p->jobs[i];
        x->class_of[i] = -1;
        if (j->name && !j->is_fixed && job_takes_slots(j) && !is_spread(j))
            jobs[n++] = i;
    }
    qsort_r(jobs, (size_t)n, sizeof *jobs, by_class, x->p->jobs);
    for (int i = 0; i < n; i++) {
        const struct problem_job *j = &x->p->jobs[jobs[i]];
        bool is_first = i == 0 || class_order(j, &x->p->jobs[jobs[i - 1]]) != 0;
        if (is_first) {
            f = &x->classes[x->n_classes++];
            *f = (struct exact_class){ jobs[i], 0, 0, level + i, row + i, worth + i };
        }
        x->class_of[jobs[i]] = x->n_classes - 1;
        f->n++;
        if (is_first || j->need > f->level[f->n_levels - 1]) {
            f->level[f->n_levels] = j->need;
            f->row[f->n_levels++] = row_add(x, 0, is_first ? 0 : INFINITY);
        }
    }
}

int class_levels(const struct exact_class *f, double low)
{
    int n = 0;

    while (n < f->n_levels && f->level[n] <= low)
        n++;
    return n;
}

/* ---- spread jobs ---- */

double promise_part(const struct promise_row *h, double low, double need)
{
    double a = low < need ? low / need : 1;    // more than the promise is no better

    if (!(h->unit > 0))
        return a;
    double whole = floor(a / h->unit);
    return whole + fmin(a / h->unit - whole, h->rest) / h->rest;
}

void program_add_promise(struct exact_program *x, int job, struct promise_row h)
{
    h.row = row_add(x, 0, INFINITY);
    program_promises(x, job)[x->n_promises[job]++] = h;
}

static void build_spread(struct exact_program *x)
{
    x->parts = ARENA_ARRAY(x->arena, int, (size_t)x->p->n_jobs);
    x->n_promises = ARENA_ARRAY(x->arena, int, (size_t)x->p->n_jobs);
    x->promises =
        ARENA_ARRAY(x->arena, struct promise_row, (size_t)x->p->n_jobs * PROMISE_ROWS_MAX);
    for (int i = 0; i < x->p->n_jobs; i++) {
        const struct problem_job *j = &x->p->jobs[i];
        x->parts[i] = -1;
        if (!j->name || !is_spread(j))
            continue;
        x->parts[i] = row_add(x, 0, 0);
        for (int k = 0; k < j->n_present; k++)
            row_add(x, 0, 0);
        if (j->need > 0 && j->short_w > 0)
            program_add_promise(x, i, (struct promise_row){ .all = 1, .missed = 1 });
    }
}

/* ---- who may be where ---- */

static struct resident resident_of(const struct exact_program *x, int job)
{
    return (struct resident){ .class = -1,
                              .job = job,
                              .row = x->parts[job] >= 0 ? x->parts[job] : job };
}

/* Who may come, by kind: classes, and their jobs where they fall short; parts of spread ones. */
static void build_residents(struct exact_program *x)
{
    const struct problem *p = x->p;
    int n = 0;

    x->residents = ARENA_ARRAY(x->arena, struct resident, 2 * (size_t)p->n_jobs);
    x->first_resident = ARENA_ARRAY(x->arena, int, (size_t)p->n_kinds + 1);
    for (int k = 0; k < p->n_kinds; k++) {
        for (int f = 0; f < x->n_classes; f++)
            if (p->jobs[x->classes[f].job].kind == k)
                x->residents[n++] =
                    (struct resident){ .class = f, .job = x->classes[f].job, .row = -1 };
        for (int j = 0; j < p->n_jobs; j++) {
            if (p->jobs[j].kind != k || (x->class_of[j] < 0 && x->parts[j] < 0))
                continue;
            x->residents[n] = resident_of(x, j);
            x->residents[n].is_short = x->parts[j] < 0;
            n += !p->jobs[j].is_fixed && (x->parts[j] >= 0 || p->jobs[j].need > 0);
        }
        x->first_resident[k + 1] = n;
    }
}

/* Who may be on a GPU because he is there now: he stays, or stays here and not elsewhere. */
static void build_own(struct exact_program *x, int job)
{
    const struct problem_job *j = &x->p->jobs[job];

    for (int i = 0; i < j->n_present && job_takes_slots(j); i++) {
        struct gpu_group *group = &x->groups[x->group_of[GROUP_GPU][j->present[i]]];
        struct resident here = resident_of(x, job);
        if (!x->p->gpus[group->gpu].may_start && !j->is_fixed)
            group->own[group->n_own++] = here;
        here.stays = true;
        here.row += x->parts[job] >= 0 ? 1 + i : 0;
        if (x->parts[job] >= 0 || j->n_present == 1)
            group->own[group->n_own++] = here;
    }
}

void program_build(struct arena *a, const struct problem *p, bool has_racks, double until_s,
                   struct exact_program *x)
{
    *x = (struct exact_program){ .p = p, .arena = a, .has_racks = has_racks, .until_s = until_s };
    build_rows(x);
    for (int j = 0; j < p->n_jobs; j++)
        row_add(x, p->jobs[j].name != NULL, p->jobs[j].name != NULL);
    const struct residents *residents = problem_residents(a, p);
    build_caps(x, residents);
    build_groups(x, residents);
    build_classes(x);
    build_spread(x);
    build_residents(x);
    for (int j = 0; j < p->n_jobs; j++)
        if (p->jobs[j].name)
            build_own(x, j);
    x->sources = ARENA_ARRAY(a, int, (size_t)x->n_groups);
}
