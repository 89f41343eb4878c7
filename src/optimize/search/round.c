/* From how many GPUs should run which pattern, to who runs where.
 *
 * Takes the vertex of the class program to single GPUs and jobs: whole contents that stay where
 * they stand; gangs; patterns in whole numbers, each on a GPU where some of its jobs stand already
 * if there is one; then jobs to slots, the one that needs most of those that a slot holds. A job is
 * kept only where those who need more still find slots (Hall's condition, counted by bins). Who is
 * left is inserted by prices. The result is feasible, close to the program's cost; the search makes
 * it closer.
 */
#include "optimize/search/search.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/grow.h"
#include "optimize/prices/columns.h"
#include "optimize/prices/master.h"
#include "optimize/prices/prices.h"
#include "optimize/search/assignment_inner.h"

#define KEPT_FROM 0.5    // of a whole content in the program, to stay
#define TRIES 24         // instances looked at for a GPU's residents

/* A pattern on one GPU. */
struct pattern_instance {
    int type, gpu;    // gpu -1: not yet
    int n;
    double draw_w;    // above idle
    int class[THETA_MAX];
    double low[THETA_MAX];
    int job[THETA_MAX];    // -1: free
};

struct rounding {
    struct arena arena;
    const struct problem *p;
    const struct columns *c;
    const struct master *m;
    const struct prices *u;
    struct assignment *d;
    struct pattern_instance *instances;
    int n_instances, cap_instances;
    struct key_index slots_of;    // by (type, class): slots, see instance_at
    int *slack;                   // (n_bins) slots less jobs from this bin up, in its class
    int *column_of;               // (n_jobs) column of its group's choice; -1: none
    int *parts;                   // (n_jobs) GPUs so far of one that takes several slots
    int **part_gpus;              // (n_jobs) which; NULL: it takes one slot
    bool *is_wanting;             // (n_jobs) single and without a place
    bool *is_taken;               // (n_gpus) by an instance
};

/* ---- what stays whole ---- */

static void keep_contents(struct rounding *r)
{
    for (int i = 0; i < r->m->n_columns; i++) {
        const struct master_column *x = &r->m->columns[i];
        if (x->kind != COLUMN_KEPT || x->x < KEPT_FROM)
            continue;
        int gpu = (int)x->which;
        const struct residents *on = &r->c->residents[gpu];
        for (int k = 0; k < on->n; k++)
            if (assignment_put(r->d, on->jobs[k], &gpu, 1, -1))
                r->is_wanting[on->jobs[k]] = false;
    }
}

/* ---- groups ---- */

static int by_part_x(const void *a, const void *b, void *self)
{
    const struct master_column *all = self;
    const struct master_column *x = &all[*(const int *)a], *y = &all[*(const int *)b];
    double fx = x->x - floor(x->x + 1e-6), fy = y->x - floor(y->x + 1e-6);

    if (fx != fy)
        return fx < fy ? 1 : -1;
    return *(const int *)a - *(const int *)b;
}

/* Whole numbers of each of a group's columns, that add up to its jobs: 'order' has 'n' columns, the
 * most fractional first.
 */
static void apportion(const struct rounding *r, int group, int *order, int n, int *counts)
{
    int left = r->m->groups[group].n_jobs;

    qsort_r(order, (size_t)n, sizeof *order, by_part_x, r->m->columns);
    for (int i = 0; i < n; i++) {
        counts[i] = (int)floor(r->m->columns[order[i]].x + 1e-6);
        counts[i] = counts[i] < left ? counts[i] : left;
        left -= counts[i];
    }
    for (int i = 0; left > 0; i = (i + 1) % n, left--)
        counts[i]++;
}

/* The jobs of a group get its columns, the neediest the one that serves most. */
static void choose_for_group(struct rounding *r, int group, int *order, int n)
{
    const struct job_group *g = &r->m->groups[group];
    int *counts = ARENA_ARRAY(&r->arena, int, (size_t)n), at = 0;

    if (n == 0)
        return;
    apportion(r, group, order, n, counts);
    for (int i = g->n_jobs - 1; i >= 0; i--) {
        while (counts[at] == 0)
            at++;
        r->column_of[r->m->group_jobs[g->first + i]] = order[at];
        counts[at]--;
    }
}

static void choose_columns(struct rounding *r)
{
    int *group = ARENA_ARRAY(&r->arena, int, (size_t)r->m->n_columns);

    for (int i = 0; i < r->m->n_columns; i++)
        group[i] = r->m->columns[i].x > 1e-6 ? r->m->columns[i].group : -1;
    struct key_index of = key_index_make(&r->arena, group, r->m->n_columns, r->m->n_groups);
    for (int g = 0; g < r->m->n_groups; g++)
        choose_for_group(r, g, of.items + of.first[g], of.first[g + 1] - of.first[g]);
}

/* What a gang costs at the prices. */
static double gang_w(const struct rounding *r, const struct gang_option *w)
{
    return w->cost_w + (w->m - w->n_drained) * r->u->u.type_w[w->type] +
           dual_watt_price(&r->u->u, w->type) * (double)w->draw_w;
}

static bool stays_home(struct rounding *r, int job)
{
    double home_w = HUGE_VAL, best = HUGE_VAL;

    for (int i = r->c->first_gang[job]; i < r->c->first_gang[job + 1]; i++) {
        double w = gang_w(r, &r->c->gangs[i]);
        if (r->c->gangs[i].is_home)
            home_w = fmin(home_w, w);
        best = fmin(best, w);
    }
    return home_w <= best &&
           assignment_put(r->d, job, r->p->jobs[job].present, r->p->jobs[job].n_present, -1);
}

/* Gangs, those that stay first. Who finds no GPUs is left for later. */
static void place_gangs(struct rounding *r)
{
    for (int pass = 0; pass < 2; pass++)
        for (int j = 0; j < r->p->n_jobs; j++) {
            int gpus[GANG_MAX];
            if (r->column_of[j] < 0 || r->m->columns[r->column_of[j]].kind != COLUMN_GANG ||
                r->d->jobs[j].n_gpus > 0)
                continue;
            const struct gang_option *w = &r->c->gangs[r->m->columns[r->column_of[j]].which];
            if (pass == 0)
                stays_home(r, j);
            else if (assignment_free(r->d, j, w->type, w->m, gpus))
                assignment_put(r->d, j, gpus, w->m, -1);
        }
}

/* ---- instances ---- */

static struct pattern_instance *instance_new(struct rounding *r, int type, int gpu)
{
    GROW(r->instances, r->n_instances, r->cap_instances);
    struct pattern_instance *x = &r->instances[r->n_instances++];
    *x = (struct pattern_instance){ .type = type, .gpu = gpu };
    return x;
}

static void instance_add(struct pattern_instance *x, int class, double low)
{
    x->class[x->n] = class;
    x->low[x->n] = low;
    x->job[x->n++] = -1;
}

static void add_pattern(struct rounding *r, const struct master_column *col)
{
    const struct patterns *all = &r->c->patterns[col->type];
    int limit = all->limit[col->which], kinds[THETA_MAX], classes[THETA_MAX];
    struct yield y;

    for (int i = 0; i < col->n_gives; i++) {
        classes[i] = r->c->class_of_bin[col->gives[i]];
        kinds[i] = r->c->classes[classes[i]].kind;
    }
    bool may = problem_yield(r->p, col->type, limit, kinds, col->n_gives, &y);
    assert(may);
    struct pattern_instance *x = instance_new(r, col->type, -1);
    x->draw_w = y.watts - r->p->types[col->type].idle_w;
    for (int i = 0; i < col->n_gives; i++)
        instance_add(x, classes[i], yield_low(r->p, &y, i));
}

/* Whole numbers of every pattern. What is left of the GPUs is for those who are left of the jobs.
 */
static void make_patterns(struct rounding *r)
{
    int *left = ARENA_ARRAY(&r->arena, int, (size_t)r->p->n_types);

    for (int t = 0; t < r->p->n_types; t++)
        left[t] = assignment_n_free(r->d, t);
    for (int i = 0; i < r->m->n_columns; i++) {
        const struct master_column *x = &r->m->columns[i];
        if (x->kind != COLUMN_PATTERN)
            continue;
        for (int k = (int)floor(x->x + 1e-6); k > 0 && left[x->type] > 0; k--, left[x->type]--)
            add_pattern(r, x);
    }
}

/* Places beside fixed jobs. */
static void make_fixed(struct rounding *r)
{
    for (int i = 0; i < r->m->n_columns; i++) {
        const struct master_column *x = &r->m->columns[i];
        if (x->kind != COLUMN_FIXED || x->x <= KEPT_FROM)
            continue;
        const struct fixed_pattern *with = &r->c->fixed[x->which];
        const struct job_class *k = &r->c->classes[r->c->class_of_bin[with->bin]];
        r->is_taken[with->gpu] = true;
        instance_add(instance_new(r, r->p->gpus[with->gpu].type, with->gpu),
                     r->c->class_of_bin[with->bin], k->edge[with->bin - k->first_bin]);
    }
}

/* The slots of all instances are numbered: of each, THETA_MAX. */
static struct pattern_instance *instance_at(const struct rounding *r, int slot)
{
    return &r->instances[slot / THETA_MAX];
}

/* Of each instance one slot of each class. */
static void list_instances(struct rounding *r)
{
    int n = r->n_instances * THETA_MAX, *keys = ARENA_ARRAY(&r->arena, int, (size_t)n);

    for (int i = 0; i < n; i++) {
        const struct pattern_instance *x = instance_at(r, i);
        int s = i % THETA_MAX;
        bool is_new = s < x->n && (s == 0 || x->class[s] != x->class[s - 1]);
        keys[i] = is_new ? x->type * r->c->n_classes + x->class[s] : -1;
    }
    r->slots_of = key_index_make(&r->arena, keys, n, r->p->n_types * r->c->n_classes);
}

/* ---- slots and who needs them ---- */

/* What a job wants of each of its slots; returns how many. */
static int wants_of(const struct rounding *r, int job, double *levels)
{
    if (r->is_wanting[job]) {
        levels[0] = r->p->jobs[job].need;
        return 1;
    }
    if (!r->part_gpus[job] || r->d->jobs[job].n_gpus > 0)
        return 0;
    const struct master_column *x = &r->m->columns[r->column_of[job]];
    for (int i = 0; i < x->n_takes; i++) {
        const struct job_class *k = &r->c->classes[r->c->class_of[job]];
        levels[i] = k->edge[x->takes[i] - k->first_bin];
    }
    return x->n_takes;
}

static void count_slack(struct rounding *r)
{
    double levels[GANG_MAX];

    for (int i = 0; i < r->n_instances; i++)
        for (int s = 0; s < r->instances[i].n; s++)
            r->slack[columns_slot(&r->c->classes[r->instances[i].class[s]],
                                  r->instances[i].low[s])]++;
    for (int j = 0; j < r->p->n_jobs; j++)
        for (int i = wants_of(r, j, levels); i-- > 0;)
            r->slack[columns_slot(&r->c->classes[r->c->class_of[j]], levels[i])]--;
    for (int k = 0; k < r->c->n_classes; k++) {
        int *slack = r->slack + r->c->classes[k].first_bin;
        for (int b = r->c->classes[k].n_bins - 2; b >= 0; b--)
            slack[b] += slack[b + 1];
    }
}

/* May a job that needs less take this slot, and the others still be served? */
static bool may_take(const struct rounding *r, int job, double low)
{
    int class = r->c->class_of[job],
        need = columns_slot(&r->c->classes[class], r->p->jobs[job].need);

    if (low < r->p->jobs[job].need)
        return false;
    for (int b = columns_slot(&r->c->classes[class], low); b > need; b--)
        if (r->slack[b] < 1)
            return false;
    return true;
}

static void take_slot(struct rounding *r, int job, struct pattern_instance *x, int s)
{
    int class = x->class[s], need = columns_slot(&r->c->classes[class], r->p->jobs[job].need);

    for (int b = columns_slot(&r->c->classes[class], x->low[s]); b > need; b--)
        r->slack[b]--;
    x->job[s] = job;
    r->is_wanting[job] = false;
}

/* ---- instances to GPUs where their jobs stand ---- */

/* Residents of a GPU who could stay in an instance: 'slot_of' says where. Returns how many. */
static int fit(const struct rounding *r, const struct pattern_instance *x, const int *jobs, int n,
               int *slot_of)
{
    bool is_used[THETA_MAX] = { false };
    int n_fit = 0;

    for (int i = 0; i < n; i++) {
        slot_of[i] = -1;
        for (int s = 0; s < x->n && slot_of[i] < 0; s++)
            if (!is_used[s] && x->class[s] == r->c->class_of[jobs[i]] &&
                may_take(r, jobs[i], x->low[s]))
                slot_of[i] = s;
        if (slot_of[i] >= 0)
            is_used[slot_of[i]] = true, n_fit++;
    }
    return n_fit;
}

/* The instance in which most of a GPU's residents could stay, at least 'n_least'. */
static void match_gpu(struct rounding *r, int gpu, int n_least)
{
    const struct residents *on = &r->c->residents[gpu];
    int type = r->p->gpus[gpu].type, jobs[THETA_MAX], n = 0, slot_of[THETA_MAX];

    for (int i = 0; i < on->n; i++)
        if (r->is_wanting[on->jobs[i]])
            jobs[n++] = on->jobs[i];
    if (n < n_least)
        return;
    for (int i = 0; i < n; i++) {
        int at = type * r->c->n_classes + r->c->class_of[jobs[i]];
        const int *first = r->slots_of.first + at;
        for (int k = first[0], tries = 0; k < first[1] && tries < TRIES; k++) {
            struct pattern_instance *x = instance_at(r, r->slots_of.items[k]);
            if (x->gpu >= 0)
                continue;
            tries++;
            if (fit(r, x, jobs, n, slot_of) < n_least)
                continue;
            x->gpu = gpu;
            r->is_taken[gpu] = true;
            for (int q = 0; q < n; q++)
                if (slot_of[q] >= 0)
                    take_slot(r, jobs[q], x, slot_of[q]);
            return;
        }
    }
}

static bool is_open(const struct rounding *r, int gpu)
{
    return r->d->gpus[gpu].n_jobs == 0 && r->p->gpus[gpu].may_start && !r->is_taken[gpu];
}

static int by_draw(const void *a, const void *b, void *self)
{
    const struct pattern_instance *all = self;
    int i = *(const int *)a, k = *(const int *)b;

    return all[i].draw_w != all[k].draw_w ? (all[i].draw_w < all[k].draw_w ? 1 : -1) : i - k;
}

/* GPUs of racks, for instances that have none yet. */
struct rack_room {
    double *room_w;           // (n_racks)
    int *n_open;              // (n_types, n_racks)
    struct key_index gpus;    // by rack
};

static void rack_room_init(struct rounding *r, struct rack_room *x)
{
    const struct problem *p = r->p;
    int *rack = ARENA_ARRAY(&r->arena, int, (size_t)p->n_gpus);

    x->room_w = ARENA_ARRAY(&r->arena, double, (size_t)p->n_racks);
    x->n_open = ARENA_ARRAY(&r->arena, int, (size_t)(p->n_types * p->n_racks));
    memcpy(x->room_w, r->d->rack_room_w, (size_t)p->n_racks * sizeof *x->room_w);
    for (int i = 0; i < r->n_instances; i++)
        if (r->instances[i].gpu >= 0)
            x->room_w[p->gpus[r->instances[i].gpu].rack] -= r->instances[i].draw_w;
    for (int g = 0; g < p->n_gpus; g++) {
        rack[g] = p->gpus[g].rack;
        x->n_open[p->gpus[g].type * p->n_racks + p->gpus[g].rack] += is_open(r, g);
    }
    x->gpus = key_index_make(&r->arena, rack, p->n_gpus, p->n_racks);
}

/* Instances that draw most come first, each to the rack with most room, so that as many as can be
 * are under the caps of all.
 */
static void match_racks(struct rounding *r)
{
    int *order = ARENA_ARRAY(&r->arena, int, (size_t)r->n_instances);
    struct rack_room to;

    rack_room_init(r, &to);
    for (int i = 0; i < r->n_instances; i++)
        order[i] = i;
    qsort_r(order, (size_t)r->n_instances, sizeof *order, by_draw, r->instances);
    for (int i = 0; i < r->n_instances; i++) {
        struct pattern_instance *x = &r->instances[order[i]];
        int *n_open = to.n_open + (long)x->type * r->p->n_racks, best = -1;
        for (int k = 0; k < r->p->n_racks && x->gpu < 0; k++)
            if (n_open[k] > 0 && (best < 0 || to.room_w[k] > to.room_w[best]))
                best = k;
        for (int q = best < 0 ? 0 : to.gpus.first[best]; best >= 0 && x->gpu < 0; q++) {
            int gpu = to.gpus.items[q];
            if (r->p->gpus[gpu].type == x->type && is_open(r, gpu))
                r->is_taken[x->gpu = gpu] = true;
        }
        if (best >= 0) {
            n_open[best]--;
            to.room_w[best] -= x->draw_w;
        }
    }
}

static void match_gpus(struct rounding *r)
{
    int *next = ARENA_ARRAY(&r->arena, int, (size_t)r->p->n_types);

    for (int n = r->p->theta; n > 0; n--)
        for (int g = 0; g < r->p->n_gpus; g++)
            if (is_open(r, g))
                match_gpu(r, g, n);
    if (r->d->rack_room_w)
        match_racks(r);
    for (int i = 0; i < r->n_instances; i++) {    // the others to GPUs of their type, in order
        struct pattern_instance *x = &r->instances[i];
        int *g = &next[x->type];
        while (x->gpu < 0 && *g < r->p->n_gpus &&
               (r->p->gpus[*g].type != x->type || !is_open(r, *g)))
            ++*g;
        if (x->gpu < 0 && *g < r->p->n_gpus)
            r->is_taken[x->gpu = *g] = true;
    }
}

/* ---- jobs to slots ---- */

static double low_of(const struct rounding *r, int slot)
{
    return instance_at(r, slot)->low[slot % THETA_MAX];
}

static int by_low(const void *a, const void *b, void *self)
{
    int i = *(const int *)a, k = *(const int *)b;
    double x = low_of(self, i), y = low_of(self, k);

    return x != y ? (x < y ? -1 : 1) : i - k;
}

/* A job that takes several slots has each of its GPUs once. */
static bool has_part(const struct rounding *r, int job, int gpu)
{
    return r->part_gpus[job] && gpus_have(r->part_gpus[job], r->parts[job], gpu);
}

static void give(struct rounding *r, int job, struct pattern_instance *x, int slot)
{
    x->job[slot] = job;
    if (r->part_gpus[job])
        r->part_gpus[job][r->parts[job]++] = x->gpu;
    else
        r->is_wanting[job] = false;
}

/* Slots from the least on: each to the one that needs most of those it can hold. */
static void fill_class(struct rounding *r, int *slots, int n_slots, struct ranked_index *wants,
                       int n_wants)
{
    int *below = ARENA_ARRAY(&r->arena, int, (size_t)n_wants), at = 0, last = -1;

    qsort_r(slots, (size_t)n_slots, sizeof *slots, by_low, r);
    qsort(wants, (size_t)n_wants, sizeof *wants, ranked_least_first);
    for (int i = 0; i < n_slots; i++) {
        struct pattern_instance *x = instance_at(r, slots[i]);
        for (; at < n_wants && wants[at].by <= low_of(r, slots[i]); at++) {
            below[at] = last;
            last = at;
        }
        int pick = last, above = -1;
        while (pick >= 0 && has_part(r, (int)wants[pick].which, x->gpu))
            above = pick, pick = below[pick];
        if (pick < 0)
            continue;
        give(r, (int)wants[pick].which, x, slots[i] % THETA_MAX);
        *(above < 0 ? &last : &below[above]) = below[pick];
    }
}

static void fill_slots(struct rounding *r)
{
    int n = r->n_instances * THETA_MAX, n_wants = 0;
    int *class_of = ARENA_ARRAY(&r->arena, int, (size_t)n);
    double levels[GANG_MAX];

    for (int i = 0; i < n; i++) {
        const struct pattern_instance *x = instance_at(r, i);
        int s = i % THETA_MAX;
        class_of[i] = s < x->n && x->gpu >= 0 && x->job[s] < 0 ? x->class[s] : -1;
    }
    struct key_index open = key_index_make(&r->arena, class_of, n, r->c->n_classes);
    for (int j = 0; j < r->p->n_jobs; j++)
        n_wants += wants_of(r, j, levels);
    struct ranked_index *wants = ARENA_ARRAY(&r->arena, struct ranked_index, (size_t)n_wants);
    for (int k = 0; k < r->c->n_classes; k++) {
        n = 0;
        for (int i = r->c->first_job[k]; i < r->c->first_job[k + 1]; i++)
            for (int q = wants_of(r, r->c->jobs[i], levels); q-- > 0;)
                wants[n++] = (struct ranked_index){ levels[q], r->c->jobs[i] };
        fill_class(r, open.items + open.first[k], open.first[k + 1] - open.first[k], wants, n);
    }
}

/* ---- onto the assignment ---- */

static void place_instances(struct rounding *r)
{
    for (int i = 0; i < r->n_instances; i++) {
        const struct pattern_instance *x = &r->instances[i];
        for (int s = 0; s < x->n; s++)
            if (x->job[s] >= 0 && !r->part_gpus[x->job[s]])
                assignment_put(r->d, x->job[s], &x->gpu, 1, -1);
    }
    for (int j = 0; j < r->p->n_jobs; j++)
        if (r->part_gpus[j] && r->parts[j] > 0 && r->d->jobs[j].n_gpus == 0)
            assignment_put(r->d, j, r->part_gpus[j], r->parts[j], -1);
}

static void insert_rest(struct rounding *r, const struct reduced_costs *reduced)
{
    assignment_insert_rest(r->d, r->u, reduced, NULL);
    for (int j = 0; j < r->p->n_jobs; j++)
        if (r->p->jobs[j].name && r->p->jobs[j].form == FORM_SPREAD && r->d->jobs[j].short_w > 0)
            assignment_extend(r->d, j);
    for (int g = 0; g < r->p->n_gpus; g++)
        if (r->d->gpus[g].n_jobs > 0)
            assignment_relimit(r->d, g);
}

static void rounding_init(struct rounding *r)
{
    const struct problem *p = r->p;

    arena_init(&r->arena);
    r->slack = ARENA_ARRAY(&r->arena, int, (size_t)r->c->n_bins);
    r->column_of = ARENA_ARRAY(&r->arena, int, (size_t)p->n_jobs);
    r->parts = ARENA_ARRAY(&r->arena, int, (size_t)p->n_jobs);
    r->part_gpus = ARENA_ARRAY(&r->arena, int *, (size_t)p->n_jobs);
    r->is_wanting = ARENA_ARRAY(&r->arena, bool, (size_t)p->n_jobs);
    r->is_taken = ARENA_ARRAY(&r->arena, bool, (size_t)p->n_gpus);
    for (int j = 0; j < p->n_jobs; j++) {
        r->column_of[j] = -1;
        r->is_wanting[j] = r->c->class_of[j] >= 0 && r->m->group_of[j] < 0;
    }
    choose_columns(r);
    for (int j = 0; j < p->n_jobs; j++)
        if (r->column_of[j] >= 0 && r->m->columns[r->column_of[j]].kind == COLUMN_SLOTS)
            r->part_gpus[j] = ARENA_ARRAY(&r->arena, int, GANG_MAX);
}

void round_vertex(const struct prices *u, const struct reduced_costs *reduced, struct assignment *d)
{
    struct rounding r = { .p = d->problem, .c = u->columns, .m = u->master, .u = u, .d = d };

    rounding_init(&r);
    keep_contents(&r);
    place_gangs(&r);
    make_patterns(&r);
    make_fixed(&r);
    list_instances(&r);
    count_slack(&r);
    match_gpus(&r);
    fill_slots(&r);
    place_instances(&r);
    insert_rest(&r, reduced);
    free(r.instances);
    arena_release(&r.arena);
}
