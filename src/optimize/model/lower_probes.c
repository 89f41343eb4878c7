/* What is tried on purpose: what is counted on of types and pairs beyond belief.
 *
 * Who never goes to a type, or never shares a GPU, never learns who would be better off there. A
 * try takes TRY_S. What it teaches is of use for as long as the jobs that are here, and those that
 * will come, could stay so: 'uses' times as long. Where the gain of a place is normal with mean -m
 * and standard deviation s, a try loses m for that time and then gains E[gain+] for all of the
 * uses, since who is worse off goes back. That pays while m < z s, where
 *
 *     density(z) - z * P(gain > z) = z / uses
 *
 * so that z standard deviations are counted on, and plans take each place by what it is worth with
 * what it would teach. What a step is worth, and the time a job has left, go without: a place that
 * may turn out to be cheap makes no other one dearer. Once it is measured there is nothing left to
 * hope for. A plan says what it hopes for (plan.hope_w), and that is budgeted (cycle.h); promises
 * are held against belief alone.
 */
#include <math.h>

#include "base/arena.h"
#include "catalog/catalog.h"
#include "optimize/model/lower_inner.h"

/* Until a placement is measured, about 300 s; and what the way back costs. */
#define TRY_S 500.0

/* A try delays nobody by more than this part of the time that it has left. */
#define TRY_DELAY 0.1

/* What is known of a kind of work here. */
struct probe_kind {
    double left_s;    // the least that one of its jobs has left
    double uses;      // tries that the longest of them could make use of, and as many as there were
    bool is_gang;     // all of its jobs have several GPUs: what one does is not learned from them
    double best;      // the most that it is believed to do, alone
};

/* The z above, within 0.08 for up to 1,000 uses (tests/unit/optimize/model/test_lower.c). */
double lower_hope_z(double uses)
{
    return 0.35 * log1p(1.3 * uses);
}

/* Uses count up to this many: what a workload will do here is not foreseen for longer than a week.
 */
#define USES_MOST 1000.0

/* Measurements of the workload so far, on one GPU: as much of it is expected to come. */
static double measured(const struct catalog *c, int workload)
{
    double n = 0;

    for (int at = c->first_cell[workload]; at >= 0; at = c->next_cell[at])
        n += cell_key_is_plain(&c->cells[at].key) ? c->cells[at].n_speed : 0;
    return n;
}

static struct probe_kind *look_at_kinds(const struct lowering *l)
{
    const struct problem *p = l->problem;
    struct probe_kind *kinds = ARENA_ARRAY(l->arena, struct probe_kind, (size_t)p->n_kinds);

    for (int k = 0; k < p->n_kinds; k++) {
        kinds[k] = (struct probe_kind){ .left_s = INFINITY, .is_gang = true };
        for (int t = 0; t < p->n_types; t++)
            kinds[k].best = fmax(kinds[k].best, (double)p->speed[problem_cell(p, t, k, -1)]);
    }
    for (int j = 0; j < l->snapshot->n_jobs; j++) {
        const struct snapshot_job *sj = &l->snapshot->jobs[j];
        struct probe_kind *k = &kinds[l->kind_at[j]];
        int n_gpus = sj->spec->n_gpus < GANG_MAX ? sj->spec->n_gpus : GANG_MAX;
        double left_s = sj->spec->kind != JOB_TRAINING ? sj->time_left_s
                        : k->best > 0 ? sj->remaining / (k->best * p->gang_near[n_gpus])
                                      : 0;
        k->is_gang &= n_gpus > 1;
        k->left_s = fmin(k->left_s, left_s);
        k->uses = fmax(k->uses, left_s / TRY_S);
    }
    for (int k = 0; k < p->n_kinds; k++)
        kinds[k].uses =
            fmin(kinds[k].uses + measured(l->snapshot->catalog, l->workload_of[k]), USES_MOST);
    return kinds;
}

/* May a job be at 'speed' for a try, where it could be at 'best'? */
static bool may_try(const struct probe_kind *k, double speed, double best)
{
    return (1 - speed / best) * TRY_S <= TRY_DELAY * k->left_s;
}

/* ---- types ---- */

/* Not of servers, whose watts go by what they could do, nor of gangs, nor where no type is believed
 * to hold a promise, for there more is hoped for already.
 */
static double hope_alone(const struct lowering *l, const struct probe_kind *k, int type, int kind)
{
    const struct problem *p = l->problem;
    long alone = problem_cell(p, type, kind, -1);
    double more = lower_hope_z(k->uses) - CURIOSITY;

    if (!p->trust || k->is_gang || p->kinds[kind].rate > 0 || l->missed[kind] > 0 || !(more > 0) ||
        !may_try(k, (double)p->speed[alone], k->best))
        return 1;
    return exp(more * (double)p->doubt[alone]);
}

/* What is hoped for wherever the kind goes is no try: it is trusted, and the rest is hope. */
static void hope_of_types(struct lowering *l, const struct probe_kind *k, int kind, double *hope)
{
    struct problem *p = l->problem;
    double least = INFINITY;

    for (int t = 0; t < p->n_types; t++) {
        hope[t] = hope_alone(l, k, t, kind);
        if ((double)p->speed[problem_cell(p, t, kind, -1)] > 0)
            least = fmin(least, hope[t]);
    }
    for (int t = 0; t < p->n_types && isfinite(least); t++) {
        hope[t] = fmax(hope[t] / least, 1);
        for (int other = -1; other < p->n_kinds; other++)
            p->speed[problem_cell(p, t, kind, other)] *= (float)least;
        if (p->trust)
            p->trust[t * p->n_kinds + kind].speed *= (float)least;
    }
}

/* ---- pairs ---- */

/* The slowdown of a kind beside another: its factor, and the variance of its logarithm. */
struct slowdown {
    double factor, variance;
};

static struct slowdown slowdown_of(const struct problem *p, int type, int kind, int other)
{
    long alone = problem_cell(p, type, kind, -1), pair = problem_cell(p, type, kind, other);
    double own = (double)p->doubt[alone], both = (double)p->doubt[pair];

    return (struct slowdown){ (double)(p->speed[pair] / p->speed[alone]),
                              fmax(both * both - own * own, 0) };
}

/* What is counted on beyond belief of 'kind' beside 'other', as a factor: no more than no slowdown
 * at all.
 */
static double hope_beside(const struct lowering *l, const struct probe_kind *kinds, int type,
                          int kind, int other)
{
    const struct problem *p = l->problem;
    struct slowdown own = slowdown_of(p, type, kind, other);

    if (!(own.variance > 0) || !(own.factor < 1) || p->kinds[kind].rate > 0 ||
        !may_try(&kinds[kind], own.factor, 1) ||
        !may_try(&kinds[other], slowdown_of(p, type, other, kind).factor, 1))
        return 1;
    double z = lower_hope_z(fmin(kinds[kind].uses, kinds[other].uses));
    return fmin(exp(z * sqrt(own.variance)), 1 / own.factor);
}

void lower_probes(struct lowering *l)
{
    struct problem *p = l->problem;
    long n = problem_cell(p, p->n_types, 0, -1);

    if (!l->options->may_probe || !l->options->may_move || p->theta > 2 ||
        l->options->objective != OBJECTIVE_JOULES)
        return;
    const struct probe_kind *kinds = look_at_kinds(l);
    double *of_type = ARENA_ARRAY(l->arena, double, (size_t)p->n_types);
    p->hope = ARENA_ARRAY(l->arena, float, (size_t)n);
    for (int k = 0; k < p->n_kinds; k++) {
        hope_of_types(l, &kinds[k], k, of_type);
        for (int t = 0; t < p->n_types; t++)
            for (int other = -1; other < p->n_kinds; other++) {
                bool runs = other >= 0 && (double)p->speed[problem_cell(p, t, k, other)] > 0;
                double beside = runs ? hope_beside(l, kinds, t, k, other) : 1;
                p->hope[problem_cell(p, t, k, other)] = (float)(of_type[t] * beside);
            }
    }
}

void lower_hopes(struct lowering *l)
{
    struct problem *p = l->problem;
    long n = problem_cell(p, p->n_types, 0, -1);

    for (long i = 0; i < n && p->hope; i++)
        p->speed[i] *= p->hope[i];
}
