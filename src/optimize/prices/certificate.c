/* A lower bound on the cost of every plan, from prices.
 *
 *     sum over jobs of what their cheapest choice costs (choices.c)
 *   - sum over GPUs of the most that each can earn by running some pattern (0: asleep)
 *   - prices of watts * those of the cap, and of racks, above all GPUs awake
 *
 * Weak duality: whoever made the prices, and however badly, no plan costs less. A GPU on which
 * somebody stands earns what its staying saves too: so moves are in the bound. Waking is not.
 */
#include "optimize/prices/dual.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/grow.h"
#include "optimize/prices/columns.h"
#include "optimize/prices/fork_join.h"

/* Sums in another order differ by less than this part of their terms. */
#define SAME 1e-9
#define SAME_FLOAT 1e-6    // where one of them is a float

struct lagrangian {
    const struct columns *c;
    struct dual *u;
    double *with_w;       // (n_types, n_bins) the most a GPU earns with a slot in this bin
    double *for_two_w;    // (n_types, n_classes) and the most with a job of this class that pays
                          // nothing and two or more beside it
    const struct job_choice *choices;    // of all jobs
    int *first_fixed;                    // (n_gpus)
};

/* ---- what a GPU of a type earns ---- */

static void price_type(const struct lagrangian *m, int type)
{
    const struct columns *c = m->c;
    const struct patterns *x = &c->patterns[type];
    const double *slot_w = m->u->slot_w;
    double *with_w = m->with_w + (long)type * c->n_bins, most = 0;
    double watt_price = dual_watt_price(m->u, type);

    for (int b = 0; b < c->n_bins; b++)
        with_w[b] = -HUGE_VAL;
    for (long i = 0; i < x->n; i++) {
        const int *bin = x->bin + i * x->theta;
        double w = pattern_w(x, i, slot_w, watt_price);
        most = w > most ? w : most;
        for (int s = 0; s < x->theta && bin[s]; s++) {
            double *with = &with_w[bin[s]];
            *with = w > *with ? w : *with;
        }
        for (int s = 0; x->theta > 2 && bin[2] && s < x->theta && bin[s]; s++) {
            double *two = &m->for_two_w[(long)type * c->n_classes + c->class_of_bin[bin[s]]];
            *two = fmax(*two, w - slot_w[bin[s]]);
        }
    }
    m->u->type_w[type] = most;
}

static void price_types(void *self, int part, int n_parts)
{
    const struct lagrangian *m = self;

    for (int t = 0; t < m->c->p->n_types; t++)
        if (m->c->part_of[t] % n_parts == part)
            price_type(m, t);
}

/* Combinations too many to list, of n jobs where those of m are: each job earns no more among more
 * others, so all together earn no more than n / m times the most that m do, the GPU's own cost
 * apart; and that is at least what it draws idle or under its lowest limit.
 */
static double crowd_w(const struct lagrangian *m, int type)
{
    const struct columns *c = m->c;
    const struct problem *p = c->p;
    const struct problem_type *t = &p->types[type];
    const struct patterns *x = &c->patterns[type];
    double most = 0, least_w = t->idle_w - type_below_idle_w(t);

    for (long i = 0; i < x->n; i++) {
        const int *bin = x->bin + i * x->theta;
        double w = (double)x->gpu_w[i] * (1 + SAME_FLOAT) - x->cost_w[i];
        for (int s = 0; s < x->theta; s++)
            w += m->u->slot_w[bin[s]];
        if (bin[x->theta - 1])
            most = fmax(most, w);
    }
    double draw_w = (least_w - t->idle_w) * p->watts_margin;
    return (double)p->theta / c->theta * most - (least_w - t->sleep_w + p->price_w) -
           dual_watt_price(m->u, type) * draw_w;
}

/* ---- what one GPU earns ---- */

/* What it saves to keep a job in a slot of this bin on a GPU where it stands: its choice is not
 * paid, but the slot and what it misses there are. Never more than its move, and nothing where the
 * slot is worth more to others. A gang that stays has a column of its own.
 */
static double stay_w(const struct lagrangian *m, int job, int bin, double short_w)
{
    const struct problem_job *j = &m->c->p->jobs[job];

    if (j->form == FORM_GANG && j->n_present > 1)
        return 0;
    if (j->n_present > 1)
        return j->move_w / j->n_present;    // one part of several
    return fmax(m->choices[job].cost_w - m->u->slot_w[bin] - short_w, 0);
}

/* 'n' jobs of the GPU together, the first n_fixed of them fixed: the most under any setting,
 * without what fixed ones' slots are worth but with their shortfall. -HUGE_VAL: they must not.
 */
static double together_w(const struct lagrangian *m, int gpu, const int *jobs, int n, int n_fixed)
{
    const struct columns *c = m->c;
    const struct problem *p = c->p;
    int type = p->gpus[gpu].type;
    double best = -HUGE_VAL;

    for (int limit = 0; limit < p->types[type].n_limits; limit++) {
        struct yield y;
        if (!problem_yield_of(p, type, limit, jobs, n, &y))
            break;
        double draw_w = (y.watts - p->types[type].idle_w) * p->watts_margin;
        double w = -y.cost_w - dual_watt_price(m->u, type) * draw_w;
        for (int i = 0; i < n_fixed; i++)
            if (p->jobs[jobs[i]].n_present == 1)
                w -= problem_short_w(p, &p->jobs[jobs[i]], y.held[i]);
        for (int i = n_fixed; i < n; i++) {
            int bin = columns_slot(&c->classes[c->class_of[jobs[i]]], yield_low(p, &y, i));
            w += m->u->slot_w[bin] +
                 stay_w(m, jobs[i], bin, problem_short_w(p, &p->jobs[jobs[i]], y.held[i]));
        }
        best = fmax(best, w);
    }
    return best;
}

/* The most over those who may stay: all fixed ones, and some of the others. */
static double stayers_w(const struct lagrangian *m, int gpu, const int *jobs, int n, int n_fixed)
{
    unsigned fixed = (1U << n_fixed) - 1;
    double best = n_fixed ? -HUGE_VAL : 0;
    int some[THETA_MAX];

    for (unsigned mask = n_fixed ? fixed : 1; mask < 1U << n; mask += fixed + 1)
        best = fmax(best, together_w(m, gpu, some, subset(jobs, n, mask, some), n_fixed));
    return best;
}

/* A GPU held by a fixed gang earns nothing, and costs what the gang costs: in equal parts. */
static double gang_w(const struct lagrangian *m, const struct problem_job *j)
{
    const struct problem *p = m->c->p;
    int type = p->gpus[j->present[0]].type;
    bool is_near = problem_stands(p, j->present, j->n_present, 1);
    double best = HUGE_VAL;

    for (int limit = 0; limit < p->types[type].n_limits; limit++) {
        struct yield y;
        if (!problem_gang_yield(p, type, limit, j->kind, j->n_present, is_near, &y))
            break;
        double draw_w = (y.watts - j->n_present * p->types[type].idle_w) * p->watts_margin;
        best = fmin(best, y.cost_w + problem_short_w(p, j, y.held[0]) +
                              dual_watt_price(m->u, type) * draw_w);
    }
    return -best / j->n_present;
}

static double moves_w(const struct columns *c, const int *jobs, int n)
{
    double w = 0;

    for (int i = 0; i < n; i++)
        w += c->p->jobs[jobs[i]].move_w;
    return w;
}

/* Two or more beside fixed jobs: no more than the best pattern with somebody like one of those
 * brings, less what the others' slots are worth at least; those who stay save their moves.
 */
static double crowd_beside_w(const struct lagrangian *m, int gpu, const int *jobs, int n,
                             int n_fixed)
{
    const struct columns *c = m->c;
    int type = c->p->gpus[gpu].type;
    double most = HUGE_VAL, paid_w = 0;

    for (int i = 0; i < n_fixed; i++) {
        if (c->like[jobs[i]] < 0)
            return m->u->type_w[type] + moves_w(c, jobs + n_fixed, n - n_fixed);
        paid_w += m->u->slot_w[c->classes[c->like[jobs[i]]].first_bin];
    }
    for (int i = 0; i < n_fixed; i++) {
        int like = c->like[jobs[i]];
        double least_w = m->u->slot_w[c->classes[like].first_bin];
        double w = c->theta < c->p->theta ? m->u->type_w[type] - least_w
                                          : m->for_two_w[(long)type * c->n_classes + like];
        most = fmin(most, w - (paid_w - least_w));
    }
    return most + moves_w(c, jobs + n_fixed, n - n_fixed);
}

/* A GPU with fixed jobs on it: they stay, alone or with whoever brings most. */
static double held_w(const struct lagrangian *m, int gpu)
{
    const struct columns *c = m->c;
    int jobs[THETA_MAX] = { 0 }, n_fixed, n = columns_residents(c, gpu, jobs, &n_fixed);
    const struct problem_job *first = &c->p->jobs[jobs[0]];

    if (first->form == FORM_GANG && first->n_present > 1)
        return gang_w(m, first);
    double best = stayers_w(m, gpu, jobs, n, n_fixed);
    if (!c->p->gpus[gpu].may_start || first->is_exclusive || n_fixed >= c->p->theta)
        return best;
    for (int i = m->first_fixed[gpu]; i < c->n_fixed && c->fixed[i].gpu == gpu; i++) {
        const struct fixed_pattern *x = &c->fixed[i];
        double saved_w = 0;
        for (int r = n_fixed; r < n; r++)
            if (c->class_of[jobs[r]] == c->class_of_bin[x->bin])
                saved_w = fmax(saved_w, c->p->jobs[jobs[r]].move_w);
        double draw_w = dual_watt_price(m->u, c->p->gpus[gpu].type) * (double)x->draw_w;
        best = fmax(best, m->u->slot_w[x->bin] - x->cost_w - draw_w + saved_w);
    }
    return n_fixed + 2 > c->p->theta ? best : fmax(best, crowd_beside_w(m, gpu, jobs, n, n_fixed));
}

/* The most that a GPU earns with this job where it stands, whoever is beside it. */
static double with_one_w(const struct lagrangian *m, int type, int job)
{
    const struct columns *c = m->c;
    const struct job_class *k = &c->classes[c->class_of[job]];
    const double *with_w = m->with_w + (long)type * c->n_bins;
    double enough_w = m->u->type_w[type] - c->p->jobs[job].move_w, best = -HUGE_VAL;

    for (int b = 0; b < k->n_bins; b++) {
        int bin = k->first_bin + b;
        if (with_w[bin] > enough_w)
            best = fmax(best,
                        with_w[bin] + stay_w(m, job, bin,
                                             problem_least_short_w(&c->p->jobs[job], k->top[b])));
    }
    return fmax(best, m->u->type_w[type]);
}

/* A GPU that takes anybody: the best of its type, or one with some of those who stand there. */
static double open_w(const struct lagrangian *m, int gpu)
{
    const struct columns *c = m->c;
    int type = c->p->gpus[gpu].type, jobs[THETA_MAX], n_fixed;
    int n = columns_residents(c, gpu, jobs, &n_fixed);
    double best = m->u->type_w[type], one_w[THETA_MAX];

    for (int i = 0; i < n; i++) {
        one_w[i] = c->theta < c->p->theta ? best + c->p->jobs[jobs[i]].move_w
                                          : with_one_w(m, type, jobs[i]);
        best = fmax(best, one_w[i]);
    }
    for (unsigned mask = 1; mask < 1U << n; mask++) {
        double most = HUGE_VAL, saved_w = 0;
        int some[THETA_MAX], k = subset(jobs, n, mask, some);
        for (int i = 0; i < n; i++)
            if (mask >> i & 1) {
                most = fmin(most, one_w[i] - c->p->jobs[jobs[i]].move_w);
                saved_w += c->p->jobs[jobs[i]].move_w;
            }
        if (k > 1)
            best = fmax(best, k == c->p->theta ? together_w(m, gpu, some, k, 0) : most + saved_w);
    }
    return best;
}

static double gpu_w(const struct lagrangian *m, int gpu)
{
    const struct columns *c = m->c;
    int jobs[THETA_MAX], n_fixed;

    if (c->is_held[gpu])
        return held_w(m, gpu);
    if (c->p->gpus[gpu].may_start)
        return open_w(m, gpu);
    return stayers_w(m, gpu, jobs, columns_residents(c, gpu, jobs, &n_fixed), 0);
}

/* ---- the bound ---- */

static void lagrangian_open(struct arena *a, const struct columns *c, struct dual *u, int threads,
                            struct lagrangian *m)
{
    int n_types = c->p->n_types;

    *m = (struct lagrangian){ .c = c, .u = u };
    m->with_w = ARENA_ARRAY(a, double, (size_t)n_types *(size_t)c->n_bins);
    m->for_two_w = ARENA_ARRAY(a, double, (size_t)n_types *(size_t)c->n_classes);
    for (int i = 0; i < n_types * c->n_classes; i++)
        m->for_two_w[i] = -HUGE_VAL;
    m->first_fixed = ARENA_ARRAY(a, int, (size_t)c->p->n_gpus);
    for (int i = c->n_fixed - 1; i >= 0; i--)
        m->first_fixed[c->fixed[i].gpu] = i;
    fork_join(threads, price_types, m);
    for (int t = 0; t < c->p->n_types && c->theta < c->p->theta; t++)
        if (c->n_usable[t] > 0)
            u->type_w[t] = fmax(u->type_w[t], crowd_w(m, t));
}

double certificate_bound(struct arena *arenas, const struct columns *c, struct dual *u, int threads,
                         struct job_choice *choices)
{
    const struct problem *p = c->p;
    double bound_w = 0, scale_w = 0;
    struct lagrangian m;

    lagrangian_open(&arenas[0], c, u, threads, &m);
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
    double room_w = u->cap_price > 0 ? u->cap_price * c->room_w : 0;
    for (int t = 0; t < p->n_types; t++)
        room_w += u->rack_price[t] > 0 ? u->rack_price[t] * c->rack_room_w[t] : 0;
    bound_w -= room_w * p->watts_margin * (1 + SAME_FLOAT);    // what draws is a float
    scale_w += room_w * p->watts_margin;
    return bound_w - SAME * scale_w;
}
