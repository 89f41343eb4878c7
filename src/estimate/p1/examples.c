#include "estimate/p1/examples.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/rng.h"
#include "catalog/catalog.h"

/* What a neighbour does is told to no better than this: the same pair measured again differs
 * by 2-9 %.
 */
#define PAIR_NOISE 0.05

/* ln r below this is a job that stood still; one such cell must not bend all others. */
#define LN_R_MIN (-3.0)

/* A number for each distinct text; those without one get a number of their own. */
static int number_of(struct map *seen, const char *text, int *n)
{
    int known = text ? map_get(seen, text) : -1;

    if (known >= 0)
        return known;
    if (text)
        map_set(seen, text, *n);
    return (*n)++;
}

static void take_workloads(struct arena *a, const struct catalog *c, struct examples *out)
{
    size_t n = (size_t)c->n_workloads;
    struct map families = { 0 };

    out->n_workloads = c->n_workloads;
    out->n_types = c->n_types;
    out->family = ARENA_ARRAY(a, int, n);
    out->who = ARENA_ARRAY(a, struct identity, n);
    out->at = ARENA_ARRAY(a, struct features, n * (size_t)c->n_types);
    for (int w = 0; w < c->n_workloads; w++) {
        const struct workload *about = &c->workloads[w];
        out->who[w] = identity_of(about);
        out->family[w] = number_of(&families, about->family, &out->n_families);
        for (int g = 0; g < c->n_types; g++)
            features_of(about, &c->types[g], &out->at[w * c->n_types + g]);
    }
    map_release(&families);
}

/* ---- cells ---- */

/* ln speed alone: measured, or else what 'refine' believes, or else nothing. */
static bool alone_speed(const struct catalog *c, int w, int type, double *ln_speed, double *sd)
{
    struct cell_key key = { .workload = w, .gpu_type = type, .neighbour = -1, .n_gpus = 1 };
    const struct cell *seen = catalog_cell(c, key);
    const struct stored_estimate *believed = catalog_estimate(c, w, type, -1);

    if (seen && seen->n_speed) {
        *ln_speed = seen->ln_speed;
        *sd = sqrt(cell_variance(seen));
    } else if (believed) {
        *ln_speed = (double)believed->ln_speed;
        *sd = (double)believed->ln_speed_sd;
    }
    return (seen && seen->n_speed) || believed;
}

static void take_speed(const struct catalog *c, const struct cell *cell, struct examples *out)
{
    const struct cell_key *k = &cell->key;
    double noise = sqrt(cell_variance(cell)), alone, alone_sd;
    struct example x = { .workload = k->workload,
                         .gpu_type = k->gpu_type,
                         .neighbour = k->neighbour };

    if (k->neighbour < 0) {
        x.value = (float)(cell->ln_speed - examples_at(out, k->workload, k->gpu_type)->ln_roofline);
        x.noise = (float)noise;
        out->alone[out->n_alone++] = x;
    } else if (alone_speed(c, k->workload, k->gpu_type, &alone, &alone_sd)) {
        x.value = (float)fmin(fmax(cell->ln_speed - alone, LN_R_MIN), 0);
        x.noise = (float)fmax(hypot(noise, alone_sd), PAIR_NOISE);
        out->pairs[out->n_pairs++] = x;
    }
}

static void take_cell(const struct catalog *c, const struct cell *cell, struct examples *out)
{
    const struct cell_key *k = &cell->key;

    if (!cell_key_is_plain(k))
        return;
    if (cell->n_speed)
        take_speed(c, cell, out);
    if (cell->n_speed || cell->n_unfit)
        out->fits[out->n_fits++] =
            (struct fit_example){ k->workload, k->gpu_type, k->neighbour, cell->n_speed == 0 };
    if (cell->n_watts && k->neighbour < 0)
        out->watts[out->n_watts++] = (struct example){
            .workload = k->workload,
            .gpu_type = k->gpu_type,
            .neighbour = -1,
            .value = (float)(cell->ln_watts - examples_at(out, k->workload, k->gpu_type)->ln_watts),
            .noise = (float)(CATALOG_NOISE / sqrt(cell->n_watts)),
        };
}

/* ---- the replay buffer: fair parts of too many ---- */

struct stratum {
    uint64_t key;     // the families of the workload and of its neighbour; then the rank among such
    uint64_t draw;    // a chance of its own
    int at;
};

static int by_key(const void *a, const void *b)
{
    const struct stratum *p = a, *q = b;

    if (p->key != q->key)
        return p->key < q->key ? -1 : 1;
    if (p->draw != q->draw)
        return p->draw < q->draw ? -1 : 1;
    return p->at < q->at ? -1 : p->at > q->at;
}

/* The first of every stratum, then the second of each that has one, until there is no room. */
static int thin_out(struct arena *a, const struct examples *x, struct example *list, int n, int max,
                    struct rng *chance)
{
    struct stratum *s = ARENA_ARRAY(a, struct stratum, (size_t)n);
    bool *is_kept = ARENA_ARRAY(a, bool, (size_t)n);
    int kept = 0;

    if (n <= max)
        return n;
    for (int i = 0; i < n; i++) {
        int beside = list[i].neighbour < 0 ? 0 : x->family[list[i].neighbour] + 1;
        s[i] = (struct stratum){ (uint64_t)x->family[list[i].workload] << 32 | (uint64_t)beside,
                                 rng_u64(chance), i };
    }
    qsort(s, (size_t)n, sizeof *s, by_key);
    for (int i = 0, first = 0; i < n; i++) {
        bool is_last = i + 1 == n || s[i + 1].key != s[i].key;
        s[i].key = (uint64_t)(i - first);
        first = is_last ? i + 1 : first;
    }
    qsort(s, (size_t)n, sizeof *s, by_key);
    for (int i = 0; i < max; i++)
        is_kept[s[i].at] = true;
    for (int i = 0; i < n; i++)
        if (is_kept[i])
            list[kept++] = list[i];
    return kept;
}

void examples_take(struct arena *a, const struct catalog *c, int max_pairs, uint64_t seed,
                   struct examples *out)
{
    size_t n = (size_t)c->n_cells;
    struct rng chance;

    *out = (struct examples){ 0 };
    take_workloads(a, c, out);
    out->alone = ARENA_ARRAY(a, struct example, n);
    out->pairs = ARENA_ARRAY(a, struct example, n);
    out->watts = ARENA_ARRAY(a, struct example, n);
    out->fits = ARENA_ARRAY(a, struct fit_example, n);
    for (int w = 0; w < c->n_workloads; w++)
        for (int i = c->first_cell[w]; i >= 0; i = c->next_cell[i])
            take_cell(c, &c->cells[i], out);
    rng_init(&chance, seed, "replay buffer");
    out->n_alone = thin_out(a, out, out->alone, out->n_alone, max_pairs, &chance);
    out->n_pairs = thin_out(a, out, out->pairs, out->n_pairs, max_pairs, &chance);
    out->n_watts = thin_out(a, out, out->watts, out->n_watts, max_pairs, &chance);
}
