/* A plan from prices alone: GPUs take the patterns whose reduced cost is least.
 *
 * With a thousand kinds hardly a pattern is used twice, and a class program's vertex rounds to
 * nothing; told to hurry, there is none. So patterns are filled with jobs one GPU at a time, those
 * first that lose least against the prices: of each class the neediest whom the slot serves.
 */
#include "optimize/search/search.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/grow.h"
#include "optimize/prices/columns.h"
#include "optimize/prices/prices.h"
#include "optimize/search/assignment_inner.h"

/* What a GPU may lose against the prices: little at first, so that who fits well is not taken by
 * others; as parts of what a GPU costs.
 */
#define LOSS_FIRST 0.002
#define LOSS_LAST 0.1
#define LOSS_GROWS 2

struct near_pattern {
    float loss_w;
    int type;
    long which;
};

struct tight_fill {
    struct arena arena;
    const struct problem *p;
    const struct columns *c;
    const struct prices *u;
    struct assignment *d;
    int *at;       // (n_jobs) where a job is among the columns' jobs
    int *below;    // by that: itself while it has no place, or one before it
    struct near_pattern *near;
    int n_near, cap_near;
};

/* ---- who has no place yet ---- */

/* The last at or before a position who has no place; less than the class's first: none. */
static int last_free(struct tight_fill *x, int at)
{
    while (at >= 0 && x->below[at] != at) {
        int next = x->below[at];
        if (next >= 0)
            x->below[at] = x->below[next];
        at = next;
    }
    return at;
}

static void placed(struct tight_fill *x, int job)
{
    x->below[x->at[job]] = x->at[job] - 1;
}

/* Of a class the one who needs most of those who need no more than 'low' and come before 'before';
 * -1: none.
 */
static int neediest(struct tight_fill *x, int class, double low, int before)
{
    int first = x->c->first_job[class], from = first, n = x->c->first_job[class + 1] - first;

    while (n > 0) {
        int half = n / 2;
        bool is_served = x->p->jobs[x->c->jobs[from + half]].need <= low;
        from += is_served ? half + 1 : 0;
        n = is_served ? n - half - 1 : half;
    }
    if (before >= 0 && from > x->at[before])
        from = x->at[before];
    int at = last_free(x, from - 1);
    return at >= first ? x->c->jobs[at] : -1;
}

/* ---- patterns ---- */

static void list_near(struct tight_fill *x, double most_w)
{
    const double *slot_w = x->u->u.slot_w;

    for (int t = 0; t < x->p->n_types; t++) {
        const struct patterns *all = &x->c->patterns[t];
        double watt_price = dual_watt_price(&x->u->u, t);
        for (long i = 0; i < all->n; i++) {
            double w = x->u->u.type_w[t] - pattern_w(all, i, slot_w, watt_price);
            if (w > most_w)
                continue;
            GROW(x->near, x->n_near, x->cap_near);
            x->near[x->n_near++] = (struct near_pattern){ (float)w, t, i };
        }
    }
}

static int by_loss(const void *a, const void *b)
{
    const struct near_pattern *x = a, *y = b;

    if (x->loss_w != y->loss_w)
        return x->loss_w < y->loss_w ? -1 : 1;
    return x->type != y->type ? x->type - y->type : (x->which > y->which) - (x->which < y->which);
}

/* Jobs for all slots of a pattern, that together lose no more than 'most_w'; returns how many. */
static int fill(struct tight_fill *x, const struct near_pattern *n, double most_w, int *jobs)
{
    const struct patterns *all = &x->c->patterns[n->type];
    const int *bins = all->bin + n->which * all->theta;
    double w = all->cost_w[n->which] + x->u->u.type_w[n->type];
    int k = 0, kinds[THETA_MAX];
    struct yield y;

    if (all->draw_w)
        w += dual_watt_price(&x->u->u, n->type) * (double)all->draw_w[n->which];
    for (; k < all->theta && bins[k]; k++)
        kinds[k] = x->c->classes[x->c->class_of_bin[bins[k]]].kind;
    if (!problem_yield(x->p, n->type, all->limit[n->which], kinds, k, &y))
        return 0;
    for (int s = 0; s < k; s++) {
        int class = x->c->class_of_bin[bins[s]];
        bool is_same = s > 0 && class == x->c->class_of_bin[bins[s - 1]];
        jobs[s] = neediest(x, class, yield_low(x->p, &y, s), is_same ? jobs[s - 1] : -1);
        if (jobs[s] < 0)
            return 0;
        w -= x->u->job_w[jobs[s]];
    }
    return w <= most_w ? k : 0;
}

static void use_pattern(struct tight_fill *x, const struct near_pattern *n, double most_w)
{
    int jobs[THETA_MAX], k, limit = x->c->patterns[n->type].limit[n->which];

    while (lists_has_free(x->d, n->type) && (k = fill(x, n, most_w, jobs)) > 0) {
        int gpu = lists_free(x->d, n->type, 1);
        for (int i = 0; i < k; i++)
            if (assignment_put(x->d, jobs[i], &gpu, 1, limit))
                placed(x, jobs[i]);
        if (x->d->gpus[gpu].n_jobs == 0)
            return;
    }
}

/* ---- all ---- */

void tight_place(const struct prices *u, const struct reduced_costs *reduced, struct assignment *d)
{
    int n_listed = u->columns->first_job[u->columns->n_classes + 1];
    struct tight_fill x = { .p = d->problem, .c = u->columns, .u = u, .d = d };
    double unit_w = x.c->unit_w;

    arena_init(&x.arena);
    x.at = ARENA_ARRAY(&x.arena, int, (size_t)x.p->n_jobs);
    x.below = ARENA_ARRAY(&x.arena, int, (size_t)n_listed);
    for (int i = 0; i < n_listed; i++) {
        x.at[x.c->jobs[i]] = i;
        x.below[i] = d->jobs[x.c->jobs[i]].n_gpus > 0 ? i - 1 : i;
    }
    assignment_insert_rest(d, u, reduced, x.c->class_of);
    list_near(&x, LOSS_LAST * unit_w);
    if (x.n_near > 0)
        qsort(x.near, (size_t)x.n_near, sizeof *x.near, by_loss);
    double most_w = LOSS_FIRST * unit_w;
    while (most_w <= LOSS_LAST * unit_w) {
        for (int i = 0; i < x.n_near && (double)x.near[i].loss_w <= most_w; i++)
            use_pattern(&x, &x.near[i], most_w);
        most_w *= LOSS_GROWS;
    }
    assignment_insert_rest(d, u, NULL, NULL);
    free(x.near);
    arena_release(&x.arena);
}
