#include "estimate/commission.h"

#include <math.h>

#include "base/arena.h"
#include "base/rng.h"
#include "catalog/catalog.h"
#include "estimate/estimate.h"
#include "estimate/hierarchical/choose.h"
#include "estimate/hierarchical/posterior.h"

/* Targets of either kind: each candidate asks about all of them again. */
enum { ALONE_TARGETS = 96, BESIDE_TARGETS = 192 };

/* A candidate takes 0.1 ms to try where nothing is known, and 11 ms with 1,000 readings (seven
 * programs on three types): ten measurements of these are 15 s.
 */
enum { CANDIDATES = 128 };

/* A program that fails teaches little, and takes its time all the same. */
#define UNFIT_MOST 0.5

/* A gain below this, in ln, is rounding. */
#define GAIN_LEAST 1e-5

static struct posterior *posterior_of(const struct estimator *e)
{
    return e->beliefs->posterior[LEARN_SPEEDS];
}

static bool may_share(const struct estimator *e, const struct commission_types *there, int type)
{
    return gpu_type_theta(&e->catalog->types[type], there->theta) > 1;
}

static bool is_likely_to_fit(const struct estimator *e, int type, int a, int b)
{
    int both[2] = { a, b };

    return estimate_unfit(e, type, both, b < 0 ? 1 : 2) < UNFIT_MOST;
}

/* Is the next one of those that are drawn, where so many more are wanted of so many that are left?
 */
static bool is_drawn(struct rng *chance, int n_left, int n_wanted)
{
    return n_left <= n_wanted ||
           (n_wanted > 0 && rng_below(chance, (uint64_t)n_left) < (uint64_t)n_wanted);
}

/* ---- targets ---- */

static struct reading target_of(int type, int job, int neighbour)
{
    return (struct reading){ .of = neighbour < 0 ? READ_ALONE : READ_SLOWDOWN,
                             .type = type,
                             .job = job,
                             .neighbour = neighbour,
                             .noise = (float)CATALOG_NOISE };
}

/* 'most' of 'n' by chance, in their order. Returns how many are left. */
static int thin_out(struct rng *chance, struct reading *list, int n, int most)
{
    int kept = 0;

    for (int i = 0; i < n; i++)
        if (is_drawn(chance, n - i, most - kept))
            list[kept++] = list[i];
    return kept;
}

int commission_targets(struct arena *a, const struct estimator *e,
                       const struct commission_types *there, const int *workloads, int n_workloads,
                       uint64_t seed, struct reading **out)
{
    size_t room = (size_t)there->n * (size_t)n_workloads * ((size_t)n_workloads + 1);
    struct reading *list = ARENA_ARRAY(a, struct reading, room);
    struct rng chance;
    int n = 0;

    rng_init(&chance, seed, "targets of a commissioning");
    for (int t = 0; t < there->n; t++)
        for (int i = 0; i < n_workloads; i++)
            if (is_likely_to_fit(e, there->types[t], workloads[i], -1))
                list[n++] = target_of(there->types[t], workloads[i], -1);
    int n_alone = thin_out(&chance, list, n, ALONE_TARGETS);
    n = 0;
    for (int t = 0; t < there->n; t++)
        for (int i = 0; i < n_workloads && may_share(e, there, there->types[t]); i++)
            for (int k = 0; k < n_workloads; k++)
                if (is_likely_to_fit(e, there->types[t], workloads[i], workloads[k]))
                    list[n_alone + n++] = target_of(there->types[t], workloads[i], workloads[k]);
    *out = list;
    return n_alone + thin_out(&chance, list + n_alone, n, BESIDE_TARGETS);
}

static struct cell_belief ask(const struct estimator *e, const struct reading *of)
{
    return posterior_ask(posterior_of(e), of->of, of->type, of->job, of->neighbour);
}

/* With what was measured of the very cell, which the posterior may doubt. A slowdown is at best as
 * sure as it follows from both speeds.
 */
struct cell_belief commission_belief(const struct estimator *e, const struct reading *target)
{
    const struct reading *t = target;
    struct cell_belief alone = beliefs_speed(e->beliefs, t->type, t->job, -1);

    if (t->of == READ_ALONE)
        return alone;
    struct cell_belief packed = beliefs_speed(e->beliefs, t->type, t->job, t->neighbour);
    return (struct cell_belief){ packed.mean - alone.mean,
                                 fmin(ask(e, t).sd, hypot(packed.sd, alone.sd)) };
}

struct commission_doubt commission_doubt(const struct estimator *e, const struct reading *targets,
                                         int n, int type)
{
    struct commission_doubt d = { 0 };
    double sum[2] = { 0, 0 };
    int count[2] = { 0, 0 };

    for (int i = 0; i < n; i++) {
        if (type >= 0 && targets[i].type != type)
            continue;
        sum[targets[i].of != READ_ALONE] += ask(e, &targets[i]).sd;
        count[targets[i].of != READ_ALONE]++;
    }
    d.n_alone = count[0];
    d.n_beside = count[1];
    d.alone = count[0] ? sum[0] / count[0] : 0;
    d.beside = count[1] ? sum[1] / count[1] : 0;
    d.all = count[0] + count[1] ? (sum[0] + sum[1]) / (count[0] + count[1]) : 0;
    return d;
}

/* ---- choosing ---- */

static void read_also(struct reading_group *g, int type, int job, int neighbour)
{
    struct reading *r = &g->r[g->n++];

    *r = target_of(type, job, neighbour);
    r->of = neighbour < 0 ? READ_ALONE : READ_PACKED;
}

static void fill_group(const struct commission_pick *pick, struct reading_group *g)
{
    g->n = 0;
    read_also(g, pick->type, pick->a, -1);
    if (pick->b >= 0 && pick->b != pick->a)
        read_also(g, pick->type, pick->b, -1);
    if (pick->b >= 0)
        read_also(g, pick->type, pick->a, pick->b);
    if (pick->b >= 0 && pick->b != pick->a)
        read_also(g, pick->type, pick->b, pick->a);
}

/* What could be measured with the i-th program on a type: pairs with those from it on; alone where
 * nobody shares, or where it fits beside no other. Returns how many.
 */
static int find_with(const struct estimator *e, const struct commission_means *with, int type,
                     int i, struct commission_pick *out)
{
    const int *programs = with->programs, p = programs[i];
    bool is_paired = false;
    int n = 0;

    for (int k = 0; k < with->n_programs && may_share(e, &with->there, type); k++) {
        if (!is_likely_to_fit(e, type, p, programs[k]))
            continue;
        is_paired = true;
        if (k >= i)
            out[n++] = (struct commission_pick){ .type = type, .a = p, .b = programs[k] };
    }
    if (!is_paired && is_likely_to_fit(e, type, p, -1))
        out[n++] = (struct commission_pick){ .type = type, .a = p, .b = -1 };
    return n;
}

static int find_candidates(struct arena *a, const struct estimator *e,
                           const struct commission_means *with, struct commission_pick **out)
{
    size_t room = (size_t)with->there.n * (size_t)with->n_programs * (size_t)with->n_programs;
    int n = 0;

    *out = ARENA_ARRAY(a, struct commission_pick, room);
    for (int t = 0; t < with->there.n; t++)
        for (int i = 0; i < with->n_programs; i++)
            n += find_with(e, with, with->there.types[t], i, *out + n);
    return n;
}

static int thin_candidates(struct commission_pick *list, int n, uint64_t seed)
{
    struct rng chance;
    int kept = 0;

    rng_init(&chance, seed, "candidates of a commissioning");
    for (int i = 0; i < n; i++)
        if (is_drawn(&chance, n - i, CANDIDATES - kept))
            list[kept++] = list[i];
    return kept;
}

static void count_measured(const struct estimator *e, struct commission_pick *pick)
{
    const struct catalog *c = e->catalog;

    pick->n_alone = pick->n_beside = 0;
    for (int i = 0; i < c->n_cells; i++) {
        const struct cell *cell = &c->cells[i];

        if (cell->key.gpu_type != pick->type || !cell->n_speed || !cell_key_is_plain(&cell->key))
            continue;
        pick->n_alone += cell->key.neighbour < 0;
        pick->n_beside += cell->key.neighbour >= 0;
    }
}

/* From now on it is supposed to have been measured. */
static void take(const struct estimator *e, const struct reading_group *g,
                 const struct commission_means *with, struct commission_pick *pick)
{
    count_measured(e, pick);
    pick->before = commission_doubt(e, with->targets, with->n_targets, pick->type);
    posterior_suppose(posterior_of(e), g);
    pick->after = commission_doubt(e, with->targets, with->n_targets, pick->type);
}

static double surer(double before, double after)
{
    return before > 0 ? 100 * (1 - after / before) : 0;
}

/* Is it one per cent, as it is told, at least? */
static bool is_worth_it(const struct commission_pick *pick)
{
    return surer(pick->before.alone, pick->after.alone) >= 0.5 ||
           surer(pick->before.beside, pick->after.beside) >= 0.5;
}

int commission_choose(struct arena *a, const struct estimator *e,
                      const struct commission_means *with, int n_most, struct commission_pick *out)
{
    struct posterior *p = posterior_of(e);
    struct commission_pick *left;
    int n_left = find_candidates(a, e, with, &left);
    int n_known = posterior_n(p), n = 0;

    n_left = thin_candidates(left, n_left, with->seed);
    n_most = n_most < COMMISSION_MOST ? n_most : COMMISSION_MOST;
    struct reading_group *groups = ARENA_ARRAY(a, struct reading_group, (size_t)n_left);
    for (int i = 0; i < n_left; i++)
        fill_group(&left[i], &groups[i]);
    while (n < n_most) {
        double gain;
        int best = posterior_choose_group(p, groups, n_left, with->targets, with->n_targets, &gain);

        if (best < 0 || gain < GAIN_LEAST)
            break;
        out[n] = left[best];
        out[n].gain = gain;
        for (int i = 0; i < n; i++)
            out[n].n_earlier += out[i].type == out[n].type;
        take(e, &groups[best], with, &out[n]);
        if (!is_worth_it(&out[n]))
            break;
        n++;
    }
    posterior_truncate(p, n_known);
    return n;
}

/* ---- why ---- */

const char *commission_why(struct arena *a, const struct estimator *e,
                           const struct commission_pick *pick)
{
    const char *type = e->catalog->types[pick->type].name;
    double speeds = surer(pick->before.alone, pick->after.alone);
    double slowdowns = surer(pick->before.beside, pick->after.beside);
    bool is_of_pairs = pick->b >= 0 && slowdowns >= speeds;
    const char *gain =
        arena_printf(a, "would make %s there %.0f %% surer", is_of_pairs ? "slowdowns" : "speeds",
                     fmax(is_of_pairs ? slowdowns : speeds, 0));

    if (pick->n_earlier > 0)
        return arena_printf(a, "after %d above on %s; %s", pick->n_earlier, type, gain);
    if (pick->n_alone + pick->n_beside == 0)
        return arena_printf(a, "nothing was measured on %s; %s", type, gain);
    if (is_of_pairs && pick->n_beside == 0)
        return arena_printf(a, "no pair was measured on %s; %s", type, gain);
    int n = is_of_pairs ? pick->n_beside : pick->n_alone;
    return arena_printf(a, "%d %s%s measured on %s; %s", n, is_of_pairs ? "slowdown" : "workload",
                        n == 1 ? " was" : "s were", type, gain);
}
