/* Good prices quickly: ascent on the smoothed dual.
 *
 * What a GPU type earns, a maximum over patterns, is replaced by a soft maximum of temperature tau;
 * its gradient is the supply of slots, the jobs' choices are the demand. Steps with momentum,
 * projected so that prices never fall within a class; tau falls from about a twentieth of what a
 * GPU costs to a thousandth. Only patterns near the best of their type take part; the set is
 * renewed when prices have risen by much.
 *
 * Prices of watts are left as they are. It ends within a percent or less of the best bound; the
 * master program (master.h) does the rest.
 */
#include "optimize/prices/dual.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/grow.h"
#include "optimize/prices/columns.h"
#include "optimize/prices/fork_join.h"
#include "optimize/prices/prices.h"

/* Temperatures as parts of what a GPU costs (its cap and price, on average). */
#define TAU_FROM 0.5
#define TAU_TO 0.001
#define TAU_FALLS 0.5
#define STEPS_FIRST 40        // at one temperature, from a guess
#define STEPS_AGAIN 20        // and from prices that are good already
#define STEPS_LEAST 6         // where time is short
#define CHOICES_EVERY 5       // steps between two looks at what jobs choose
#define CHOICES_WEIGHT 0.4    // of the newest look in the demand

#define PATTERNS_FOR_TWO 150000    // with fewer, waking a thread takes longer than it saves
#define NEAR_TAUS 14               // patterns within so many temperatures of the best take part
#define ACTIVE_MOST 60000          // and about so many of a type, the best ones
#define NEAR_STEPS 512
#define SUPPLY_KEPT 0.7    // of the running mean of supply, which scales steps
#define INERTIA 0.3        // slots that every bin is taken to have besides, in that scale

/* Patterns of one type that take part. */
struct active {
    long n;
    long *which;     // heap, for all: what few need is hardly touched
    float *value;    // scratch
};

/* Neighbouring bins of one price. */
struct price_block {
    double weight, sum;
    int n;
};

struct ascent {
    const struct columns *c;
    const struct prices_options *o;
    double until_s;        // on the options' clock
    bool is_first;         // from a guess
    struct arena arena;    // of everything below
    struct arena choosing[2];
    struct dual *u;
    int threads;              // 1 where two are not worth their starting
    struct active *active;    // (n_types)
    double *risen_from;       // (n_bins) prices for which 'active' was made
    double *last, *ahead;     // (n_bins) prices of the step before, and with momentum
    double *demand, *supply, *mean, *weight;
    double *part_supply[2];
    double *gang_gpus;    // (n_types) GPUs that gangs choose
    double *soft_w;       // (n_types)
    double tau, near_w;
    struct job_choice *choices;
    struct price_block *blocks;    // (n_bins) scratch
};

/* ---- who takes part ---- */

/* How far from the best value a pattern may be: as far as counts, or as leaves about ACTIVE_MOST.
 */
static double near_for(const struct ascent *a, const float *value, long n, double most)
{
    long count[NEAR_STEPS] = { 0 }, sum = 0;
    double scale = NEAR_STEPS / a->near_w;
    int step = 0;

    if (n <= ACTIVE_MOST)
        return a->near_w;
    for (long i = 0; i < n; i++) {
        double at = (most - (double)value[i]) * scale;
        if (at < NEAR_STEPS)
            count[(int)at]++;
    }
    while (step < NEAR_STEPS && (sum += count[step]) <= ACTIVE_MOST)
        step++;
    return fmax(step, 1) / scale;
}

static void renew_type(struct ascent *a, int type)
{
    const struct patterns *x = &a->c->patterns[type];
    struct active *to = &a->active[type];
    double most = 0;

    for (long i = 0; i < x->n; i++) {
        to->value[i] = (float)pattern_w(x, i, a->u->slot_w, dual_watt_price(a->u, type));
        most = (double)to->value[i] > most ? (double)to->value[i] : most;
    }
    double from = most - near_for(a, to->value, x->n, most);
    to->n = 0;
    for (long i = 0; i < x->n; i++)
        if ((double)to->value[i] > from)
            to->which[to->n++] = i;
}

static void renew_part(void *self, int part, int n_parts)
{
    struct ascent *a = self;

    for (int t = 0; t < a->c->p->n_types; t++)
        if (a->c->part_of[t] % n_parts == part)
            renew_type(a, t);
}

/* Prices have risen so much that others may be the best by now. */
static bool is_stale(const struct ascent *a)
{
    double most = 0;

    for (int b = 1; b < a->c->n_bins; b++) {
        double by = a->u->slot_w[b] - a->risen_from[b];
        most = by > most ? by : most;
    }
    return most * a->c->theta > 0.5 * a->near_w;
}

static void renew(struct ascent *a)
{
    a->near_w = NEAR_TAUS * a->tau;
    fork_join(a->threads, renew_part, a);
    memcpy(a->risen_from, a->u->slot_w, (size_t)a->c->n_bins * sizeof *a->risen_from);
}

/* ---- supply ---- */

/* exp for x <= 0, to a few parts in a million. */
static inline float quick_exp(float x)
{
    float y = x * 1.442695041f;
    union {
        int32_t i;
        float f;
    } two;

    if (x < -80)
        return 0;
    int whole = (int)(y - 0.5f);
    float f = y - (float)whole;
    two.i = (whole + 127) * (1 << 23);
    return two.f * (1 + f * (0.69314718f +
                             f * (0.24022651f +
                                  f * (0.05550411f + f * (0.00961813f + f * 0.0013333558f)))));
}

/* The GPUs of a type choose among its active patterns and sleep, the better the likelier. */
static void supply_type(struct ascent *a, int type, double *supply)
{
    const struct patterns *x = &a->c->patterns[type];
    struct active *act = &a->active[type];
    double most = 0, watt_price = dual_watt_price(a->u, type);

    for (long q = 0; q < act->n; q++) {
        act->value[q] = (float)pattern_w(x, act->which[q], a->ahead, watt_price);
        most = (double)act->value[q] > most ? (double)act->value[q] : most;
    }
    double sum = exp(-most / a->tau);
    for (long q = 0; q < act->n; q++) {
        act->value[q] = quick_exp(fminf(0, (act->value[q] - (float)most) / (float)a->tau));
        sum += (double)act->value[q];
    }
    a->soft_w[type] = most + a->tau * log(sum);
    double n_gpus = fmax(a->c->n_open[type] - a->gang_gpus[type], 0) / sum;
    for (long q = 0; q < act->n; q++) {
        if (act->value[q] < 1e-7f)
            continue;
        double n = n_gpus * (double)act->value[q];
        for (int s = 0; s < x->theta; s++)
            supply[x->bin[act->which[q] * x->theta + s]] += n;
    }
}

static void supply_part(void *self, int part, int n_parts)
{
    struct ascent *a = self;

    memset(a->part_supply[part], 0, (size_t)a->c->n_bins * sizeof *a->supply);
    for (int t = 0; t < a->c->p->n_types; t++)
        if (a->c->part_of[t] % n_parts == part)
            supply_type(a, t, a->part_supply[part]);
}

static void make_supply(struct ascent *a)
{
    fork_join(a->threads, supply_part, a);
    for (int b = 0; b < a->c->n_bins; b++)
        a->supply[b] = a->part_supply[0][b] + a->part_supply[1][b];
}

/* ---- demand ---- */

static void make_demand(struct ascent *a, double weight)
{
    const struct columns *c = a->c;
    double *gang = a->gang_gpus;

    arena_reset(&a->choosing[0]);
    arena_reset(&a->choosing[1]);
    choices_make(a->choosing, c, a->u, true, a->threads, a->choices);
    for (int b = 0; b < c->n_bins; b++)
        a->demand[b] *= 1 - weight;
    for (int t = 0; t < c->p->n_types; t++)
        gang[t] *= 1 - weight;
    for (int j = 0; j < c->p->n_jobs; j++) {
        const struct job_choice *x = &a->choices[j];
        for (int i = 0; i < x->n_slots; i++)
            a->demand[x->bins[i]] += weight;
        if (x->gang < 0)
            continue;
        gang[c->gangs[x->gang].type] += weight * c->gangs[x->gang].m;
    }
}

/* ---- a step ---- */

/* fmax is a call, for the sake of NaN; nothing here is one. */
static inline double larger(double x, double y)
{
    return x > y ? x : y;
}

/* The nearest prices that never fall, each weighted by 'weight': neighbours out of order share one.
 */
static void project(double *price, const double *weight, int n, struct price_block *blocks)
{
    int n_blocks = 0, at = 0;

    for (int i = 0; i < n; i++) {
        struct price_block now = { weight[i], price[i] * weight[i], 1 };
        while (n_blocks > 0 &&
               blocks[n_blocks - 1].sum * now.weight >= now.sum * blocks[n_blocks - 1].weight) {
            now.weight += blocks[n_blocks - 1].weight;
            now.sum += blocks[n_blocks - 1].sum;
            now.n += blocks[--n_blocks].n;
        }
        blocks[n_blocks++] = now;
    }
    for (int i = 0; i < n_blocks; i++)
        for (int k = 0; k < blocks[i].n; k++)
            price[at++] = blocks[i].sum / blocks[i].weight;
}

/* Along the gradient, scaled by how many slots a bin has; no step longer than tau. Returns whether
 * momentum still points uphill.
 */
static bool step_slots(struct ascent *a)
{
    const struct columns *c = a->c;
    double uphill = 0;

    for (int b = 1; b < c->n_bins; b++) {
        a->mean[b] = SUPPLY_KEPT * a->mean[b] + (1 - SUPPLY_KEPT) * a->supply[b];
        double slots = larger(a->demand[b], larger(a->mean[b], 0.5 * a->supply[b])) + INERTIA;
        double by = a->tau * (a->demand[b] - a->supply[b]) / (c->theta * slots);
        a->weight[b] = slots;
        a->ahead[b] += by > a->tau ? a->tau : by < -a->tau ? -a->tau : by;
    }
    for (int k = 0; k < c->n_classes; k++)
        project(a->ahead + c->classes[k].first_bin, a->weight + c->classes[k].first_bin,
                c->classes[k].n_bins, a->blocks);
    for (int b = 1; b < c->n_bins; b++)
        uphill += (a->demand[b] - a->supply[b]) * (a->ahead[b] - a->u->slot_w[b]);
    double *was = a->last;
    a->last = a->u->slot_w;
    a->u->slot_w = a->ahead;
    a->ahead = was;
    return uphill >= 0;
}

/* Some steps at one temperature. */
static void ascend(struct ascent *a, int n_steps)
{
    int n = a->c->n_bins, k = 0;

    for (int i = 0; i < n_steps; i++) {
        if (i == 0 || is_stale(a))
            renew(a);
        if (i % CHOICES_EVERY == 0) {
            memcpy(a->u->type_w, a->soft_w, (size_t)a->c->p->n_types * sizeof *a->soft_w);
            make_demand(a, CHOICES_WEIGHT);
        }
        double momentum = (double)k / (k + 3);
        k++;
        for (int b = 1; b < n; b++)
            a->ahead[b] = a->u->slot_w[b] + momentum * (a->u->slot_w[b] - a->last[b]);
        a->ahead[0] = 0;
        make_supply(a);
        if (!step_slots(a))
            k = 0;
    }
}

/* Steps at the next temperature, of those until 'to': fewer than suits where time is short, since
 * prices are of no use before they have cooled.
 */
static int steps_for(const struct ascent *a, double to, double step_s)
{
    int n = a->is_first ? STEPS_FIRST : STEPS_AGAIN;

    if (!a->o->clock || step_s <= 0)
        return n;
    double n_left = 1 + floor(log(to / a->tau) / log(TAU_FALLS));
    double most = (a->until_s - clock_now_s(a->o->clock)) / (n_left * step_s);
    return most < n ? (int)fmax(most, STEPS_LEAST) : n;
}

/* ---- all ---- */

static void ascent_init(struct ascent *a, const struct columns *c, const struct prices_options *o,
                        struct dual *u)
{
    size_t n = (size_t)c->n_bins, n_types = (size_t)c->p->n_types;
    double **rows[] = { &a->risen_from, &a->last,           &a->ahead,
                        &a->demand,     &a->supply,         &a->mean,
                        &a->weight,     &a->part_supply[0], &a->part_supply[1] };

    *a = (struct ascent){ .c = c, .o = o, .u = u };
    a->threads = columns_n_patterns(c) > PATTERNS_FOR_TWO ? o->threads : 1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        *rows[i] = ARENA_ARRAY(&a->arena, double, n);
    a->blocks = ARENA_ARRAY(&a->arena, struct price_block, n);
    a->active = ARENA_ARRAY(&a->arena, struct active, n_types);
    for (size_t t = 0; t < n_types; t++) {
        RESIZE(a->active[t].which, c->patterns[t].n);
        RESIZE(a->active[t].value, c->patterns[t].n);
    }
    a->gang_gpus = ARENA_ARRAY(&a->arena, double, n_types);
    a->soft_w = ARENA_ARRAY(&a->arena, double, n_types);
    a->choices = ARENA_ARRAY(&a->arena, struct job_choice, (size_t)c->p->n_jobs);
    u->slot_w = ARENA_ARRAY(&a->arena, double, n);    // steps exchange it with others of theirs
}

void ascent_run(const struct columns *c, const struct prices_options *o, double until_s,
                double tau_from, double tau_to, struct dual *u)
{
    size_t n = (size_t)c->n_bins;
    struct dual now = *u;
    struct ascent a;

    ascent_init(&a, c, o, &now);
    memcpy(now.slot_w, u->slot_w, n * sizeof *now.slot_w);
    memcpy(a.last, u->slot_w, n * sizeof *a.last);
    a.until_s = until_s;
    a.is_first = tau_from <= 0;
    memcpy(a.soft_w, u->type_w, (size_t)c->p->n_types * sizeof *a.soft_w);
    make_demand(&a, 1);
    double to = (tau_to > 0 ? tau_to : TAU_TO) * c->unit_w, step_s = 0;
    a.tau = (tau_from > 0 ? tau_from : TAU_FROM) * c->unit_w;
    while (a.tau >= to && (a.is_first || !o->clock || clock_now_s(o->clock) < until_s)) {
        double began_s = clock_stopwatch_s();
        int n_steps = steps_for(&a, to, step_s);
        ascend(&a, n_steps);
        step_s = (clock_stopwatch_s() - began_s) / n_steps;
        a.tau *= TAU_FALLS;
    }
    memcpy(u->slot_w, now.slot_w, n * sizeof *u->slot_w);
    memcpy(u->type_w, a.soft_w, (size_t)c->p->n_types * sizeof *u->type_w);
    for (int t = 0; t < c->p->n_types; t++) {
        free(a.active[t].which);
        free(a.active[t].value);
    }
    arena_release(&a.choosing[0]);
    arena_release(&a.choosing[1]);
    arena_release(&a.arena);
}
