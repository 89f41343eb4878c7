#include "optimize/prices/certificate.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/grow.h"
#include "optimize/prices/choices.h"
#include "optimize/prices/columns.h"
#include "optimize/prices/dual.h"
#include "optimize/prices/in_two.h"

/* Sums in another order differ by less than this part of their terms. */
#define SAME 1e-9

struct market {
    const struct columns *c;
    struct dual *u;
    double *with_w;    // (n_types, n_bins) the most a GPU earns with a slot in this bin
    const struct choice *choices;    // of all jobs
    int *first_company;              // (n_gpus)
};

/* ---- what a GPU of a type earns ---- */

static void price_type(const struct market *m, int type)
{
    const struct columns *c = m->c;
    const struct patterns *x = &c->patterns[type];
    const double *slot_w = m->u->slot_w;
    double *with_w = m->with_w + (long)type * c->n_bins, most = 0;

    for (int b = 0; b < c->n_bins; b++)
        with_w[b] = -HUGE_VAL;
    for (long i = 0; i < x->n; i++) {
        const int *bin = x->bin + i * x->theta;
        double w = -x->cost_w[i];
        for (int s = 0; s < x->theta; s++)
            w += slot_w[bin[s]];
        if (x->draw_w)
            w -= m->u->cap_price * (double)x->draw_w[i];
        most = w > most ? w : most;
        for (int s = 0; s < x->theta && bin[s]; s++) {
            double *with = &with_w[bin[s]];
            *with = w > *with ? w : *with;
        }
    }
    m->u->type_w[type] = most;
}

static void price_types(void *self, int part, int n_parts)
{
    const struct market *m = self;

    for (int t = part; t < m->c->p->n_types; t += n_parts)
        price_type(m, t);
}

/* Combinations too many to list (c->theta is less than the problem's): none of n jobs brings more
 * than n / 2 times what the best pair does, and a GPU costs at least what it draws idle or under
 * its lowest limit.
 */
static double crowd_w(const struct market *m, int type)
{
    const struct columns *c = m->c;
    const struct problem *p = c->p;
    const struct problem_type *t = &p->types[type];
    double pair_w = 0, least_w = t->idle_w;

    for (int a = 0; a < c->n_classes; a++)
        for (int b = a; b < c->n_classes; b++) {
            int kinds[] = { c->classes[a].kind, c->classes[b].kind };
            struct yield y;
            if (!problem_yield(p, type, 0, kinds, 2, &y))
                continue;
            double w = y.watts - t->sleep_w + p->price_w - y.cost_w;    // what the work is worth
            for (int i = 0; i < 2; i++) {
                const struct job_class *k = &c->classes[i ? b : a];
                w += m->u->slot_w[k->first_bin + columns_bin(k, y.low[i])];
            }
            pair_w = fmax(pair_w, w);
        }
    for (int l = 1; l < t->n_limits; l++)
        for (int i = 0; i < t->limits[l].n_points; i++)
            least_w = fmin(least_w, t->limits[l].watts[i]);
    double draw_w = (least_w - t->idle_w) * p->watts_margin;
    return 0.5 * p->theta * pair_w - (least_w - t->sleep_w + p->price_w) - m->u->cap_price * draw_w;
}

/* ---- what one GPU earns ---- */

/* What it saves to keep a job in a slot of this bin on a GPU where it stands: its choice is not
 * paid, but the slot and what it misses there are. Never more than its move, and nothing where the
 * slot is worth more to others. A gang that stays has a way of its own.
 */
static double stay_w(const struct market *m, int job, int bin, double low)
{
    const struct problem_job *j = &m->c->p->jobs[job];

    if (j->form == FORM_GANG && j->n_present > 1)
        return 0;
    if (j->n_present > 1)
        return j->move_w / j->n_present;    // one part of several
    return fmax(m->choices[job].cost_w - m->u->slot_w[bin] - problem_short_w(j, low), 0);
}

/* 'n' jobs of the GPU together, the first n_fixed of them fixed: the most under any setting,
 * without what fixed ones' slots are worth but with their shortfall. -HUGE_VAL: they must not.
 */
static double together_w(const struct market *m, int gpu, const int *jobs, int n, int n_fixed)
{
    const struct columns *c = m->c;
    const struct problem *p = c->p;
    int type = p->gpus[gpu].type, kinds[THETA_MAX];
    double best = -HUGE_VAL;

    for (int i = 0; i < n; i++)
        kinds[i] = p->jobs[jobs[i]].kind;
    for (int limit = 0; limit < p->types[type].n_limits; limit++) {
        struct yield y;
        if (!problem_yield(p, type, limit, kinds, n, &y))
            break;
        double w =
            -y.cost_w - m->u->cap_price * (y.watts - p->types[type].idle_w) * p->watts_margin;
        for (int i = 0; i < n; i++) {
            const struct problem_job *j = &p->jobs[jobs[i]];
            const struct job_class *k = i < n_fixed ? NULL : &c->classes[c->class_of[jobs[i]]];
            int bin = k ? k->first_bin + columns_bin(k, y.low[i]) : 0;
            if (k)
                w += m->u->slot_w[bin] + stay_w(m, jobs[i], bin, y.low[i]);
            else if (j->n_present == 1)
                w -= problem_short_w(j, y.low[i]);
        }
        best = fmax(best, w);
    }
    return best;
}

/* Residents of a GPU: fixed ones first, then those that have a class. Gangs count as nobody. */
static int residents(const struct columns *c, int gpu, int *jobs, int *n_fixed)
{
    const int *all = &c->residents[gpu * THETA_MAX];
    int n = 0;

    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < THETA_MAX && all[i] >= 0; i++)
            if (pass == 0 ? c->p->jobs[all[i]].is_fixed : c->class_of[all[i]] >= 0)
                jobs[n++] = all[i];
        if (pass == 0)
            *n_fixed = n;
    }
    return n;
}

/* The most over those who may stay: all fixed ones, and some of the others. */
static double stayers_w(const struct market *m, int gpu, const int *jobs, int n, int n_fixed)
{
    int n_free = n - n_fixed;
    double best = n_fixed ? -HUGE_VAL : 0;

    for (int mask = n_fixed ? 0 : 1; mask < 1 << n_free; mask++) {
        int some[THETA_MAX], k = n_fixed;
        for (int i = 0; i < n_fixed; i++)
            some[i] = jobs[i];
        for (int i = 0; i < n_free; i++)
            if (mask >> i & 1)
                some[k++] = jobs[n_fixed + i];
        best = fmax(best, together_w(m, gpu, some, k, n_fixed));
    }
    return best;
}

/* A GPU held by a fixed gang earns nothing, and costs what the gang costs: in equal parts. */
static bool is_fixed_gang(const struct problem_job *j)
{
    return j->is_fixed && j->form == FORM_GANG && j->n_present > 1;
}

static double gang_w(const struct market *m, const struct problem_job *j)
{
    const struct problem *p = m->c->p;
    int type = p->gpus[j->present[0]].type;
    bool is_near = true;
    double best = HUGE_VAL;

    for (int i = 0; i < j->n_present; i++)
        is_near = is_near && p->gpus[j->present[i]].node == p->gpus[j->present[0]].node;
    for (int limit = 0; limit < p->types[type].n_limits; limit++) {
        struct yield y;
        if (!problem_gang_yield(p, type, limit, j->kind, j->n_present, is_near, &y))
            break;
        double draw_w = (y.watts - j->n_present * p->types[type].idle_w) * p->watts_margin;
        best = fmin(best, y.cost_w + problem_short_w(j, y.low[0]) + m->u->cap_price * draw_w);
    }
    return -best / j->n_present;
}

/* A GPU with fixed jobs on it: they stay, alone or with whoever brings most. */
static double held_w(const struct market *m, int gpu)
{
    const struct columns *c = m->c;
    int jobs[THETA_MAX] = { 0 }, n_fixed, n = residents(c, gpu, jobs, &n_fixed);
    const struct problem_job *first = &c->p->jobs[jobs[0]];

    if (is_fixed_gang(first))
        return gang_w(m, first);
    double best = stayers_w(m, gpu, jobs, n, n_fixed);
    if (!c->p->gpus[gpu].may_start || first->is_exclusive || n_fixed >= c->p->theta)
        return best;
    for (int i = m->first_company[gpu]; i < c->n_company && c->company[i].gpu == gpu; i++) {
        const struct company *x = &c->company[i];
        double saved_w = 0;
        for (int r = n_fixed; r < n; r++)
            if (c->class_of[jobs[r]] == c->class_of_bin[x->bin])
                saved_w = fmax(saved_w, c->p->jobs[jobs[r]].move_w);
        best = fmax(best, m->u->slot_w[x->bin] - x->cost_w - m->u->cap_price * (double)x->draw_w +
                              saved_w);
    }
    if (n_fixed + 2 > c->p->theta)
        return best;
    /* More company: no more than the best pattern with somebody like the first brings, whose slot
     * is worth at least its class's lowest price; those who stay save their moves.
     */
    double crowd = m->u->type_w[c->p->gpus[gpu].type];
    for (int i = n_fixed; i < n; i++)
        crowd += c->p->jobs[jobs[i]].move_w;
    for (int i = 0; i < n_fixed; i++)
        crowd -= m->u->slot_w[c->classes[c->like[jobs[i]]].first_bin];
    return fmax(best, crowd);
}

/* The most that a GPU earns with this job where it stands, whoever is beside it. */
static double with_one_w(const struct market *m, int type, int job)
{
    const struct columns *c = m->c;
    const struct job_class *k = &c->classes[c->class_of[job]];
    const double *with_w = m->with_w + (long)type * c->n_bins;
    double enough_w = m->u->type_w[type] - c->p->jobs[job].move_w, best = -HUGE_VAL;

    for (int b = 0; b < k->n_bins; b++) {
        int bin = k->first_bin + b;
        if (with_w[bin] > enough_w)
            best = fmax(best, with_w[bin] + stay_w(m, job, bin, k->top[b]));
    }
    return fmax(best, m->u->type_w[type]);
}

/* A GPU that takes anybody: the best of its type, or one with some of those who stand there. */
static double open_w(const struct market *m, int gpu)
{
    const struct columns *c = m->c;
    int type = c->p->gpus[gpu].type, jobs[THETA_MAX], n_fixed;
    int n = residents(c, gpu, jobs, &n_fixed);
    double best = m->u->type_w[type], one_w[THETA_MAX];

    for (int i = 0; i < n; i++) {
        one_w[i] = c->theta < c->p->theta ? best + c->p->jobs[jobs[i]].move_w
                                          : with_one_w(m, type, jobs[i]);
        best = fmax(best, one_w[i]);
    }
    for (int mask = 1; mask < 1 << n; mask++) {
        double most = HUGE_VAL, saved_w = 0;
        int some[THETA_MAX], k = 0;
        for (int i = 0; i < n; i++)
            if (mask >> i & 1) {
                some[k++] = jobs[i];
                most = fmin(most, one_w[i] - c->p->jobs[jobs[i]].move_w);
                saved_w += c->p->jobs[jobs[i]].move_w;
            }
        if (k < 2)
            continue;
        if (k == c->p->theta)
            best = fmax(best, together_w(m, gpu, some, k, 0));
        else if (most > -HUGE_VAL)
            best = fmax(best, most + saved_w + 0);
    }
    return best;
}

static double gpu_w(const struct market *m, int gpu)
{
    const struct columns *c = m->c;
    int jobs[THETA_MAX], n_fixed;

    if (c->is_held[gpu])
        return held_w(m, gpu);
    if (c->p->gpus[gpu].may_start)
        return open_w(m, gpu);
    return stayers_w(m, gpu, jobs, residents(c, gpu, jobs, &n_fixed), 0);
}

/* ---- the bound ---- */

static void market_open(struct arena *a, const struct columns *c, struct dual *u, int threads,
                        struct market *m)
{
    *m = (struct market){ .c = c, .u = u };
    m->with_w = ARENA_ARRAY(a, double, (size_t)c->p->n_types *(size_t)c->n_bins);
    m->first_company = ARENA_ARRAY(a, int, (size_t)c->p->n_gpus);
    for (int i = c->n_company - 1; i >= 0; i--)
        m->first_company[c->company[i].gpu] = i;
    in_two(threads, price_types, m);
    for (int t = 0; t < c->p->n_types && c->theta < c->p->theta; t++)
        if (c->n_open[t] > 0)
            u->type_w[t] = fmax(u->type_w[t], crowd_w(m, t));
}

double certificate_bound(struct arena *arenas, const struct columns *c, struct dual *u, int threads,
                         struct choice *choices)
{
    const struct problem *p = c->p;
    double bound_w = 0, scale_w = 0;
    struct market m;

    market_open(&arenas[0], c, u, threads, &m);
    choices_make(arenas, c, u, false, threads, choices);
    m.choices = choices;
    for (int j = 0; j < p->n_jobs; j++) {
        bound_w += choices[j].cost_w;
        scale_w += fabs(choices[j].cost_w);
    }
    for (int g = 0; g < p->n_gpus; g++) {
        double w = gpu_w(&m, g);
        bound_w -= w;
        scale_w += fabs(w);
    }
    if (u->cap_price > 0) {
        double w = u->cap_price * c->room_w * p->watts_margin;
        bound_w -= w;
        scale_w += fabs(w);
    }
    return bound_w - SAME * scale_w;
}
