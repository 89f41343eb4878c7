/* small.h - small sites by chance, readings of them, and the linear algebra to be sure by.
 *
 * Built-in types and one that is known in part, workloads of a few families with gaps in what is
 * known of them; every third site shares its types in different ways. The same seed gives the same
 * site.
 */
#ifndef TESTS_UNIT_ESTIMATE_HIERARCHICAL_SMALL_H
#define TESTS_UNIT_ESTIMATE_HIERARCHICAL_SMALL_H

#include <math.h>
#include <stdbool.h>

#include "base/rng.h"
#include "catalog/gpu_type.h"
#include "catalog/workload.h"
#include "estimate/hierarchical/effects.h"

enum { SMALL_TYPES = 3, SMALL_FAMILIES = 4, SMALL_MOST = 160 };

struct small {
    struct rng chance;
    struct gpu_type types[SMALL_TYPES];
    struct site site;
};

/* One more workload, of a family by chance, or of none. */
static inline int small_add(struct small *s)
{
    static const char *const families[SMALL_FAMILIES + 1] = { "a", "b", "c", "d", NULL };
    static const double middle[6] = { 3e7, 1e10, 1e8, 1000, 0.1, 1 };    // params and so on
    struct rng *r = &s->chance;
    struct workload w;

    workload_init(&w, "w");
    w.family = families[rng_below(r, SMALL_FAMILIES + 1)];
    for (int i = 0; i < 6; i++)
        if (rng_below(r, 6) > 0)
            workload_set_number(&w, i, middle[i] * exp(rng_normal(r)));
    w.batch = 32 * exp(rng_normal(r));
    w.conv = rng_uniform(r);
    w.gemm = 1 - w.conv;
    w.gpu_activity = rng_below(r, 2) ? rng_uniform(r) : (double)NAN;
    w.mem_activity = rng_uniform(r);
    return site_add(&s->site, &w, s->types);
}

static inline void small_init(struct small *s, uint64_t seed, int n_workloads)
{
    int n;
    const struct gpu_type *all = gpu_type_builtin_all(&n);

    rng_init(&s->chance, seed, "small site");
    for (int g = 0; g < SMALL_TYPES; g++)
        s->types[g] = all[rng_below(&s->chance, (uint64_t)n)];
    for (int g = 0; g < SMALL_TYPES && seed % 3 == 2; g++)
        s->types[g].sharing = (enum sharing)((seed / 3 + (uint64_t)g) % SHARINGS);
    s->types[SMALL_TYPES - 1].bandwidth_bytes_s = (double)NAN;
    s->types[SMALL_TYPES - 1].launch_s = (double)NAN;
    site_init(&s->site, s->types, SMALL_TYPES);
    while (s->site.n_workloads < n_workloads)
        small_add(s);
}

static inline struct reading small_reading(struct small *s)
{
    struct rng *r = &s->chance;
    uint64_t n = (uint64_t)s->site.n_workloads;
    struct reading one = { .of = (enum reading_of)rng_below(r, READINGS), .neighbour = -1 };

    one.type = (int)rng_below(r, SMALL_TYPES);
    one.job = (int)rng_below(r, n);
    if (one.of != READ_ALONE)
        one.neighbour = (int)rng_below(r, n);
    one.value = (float)(0.3 * rng_normal(r));
    one.noise = (float)rng_between(r, 0.02, 0.08);
    return one;
}

static inline struct hyper small_hyper(struct small *s)
{
    struct hyper h = hyper_start();

    for (int i = 0; i < HYPERS; i++)
        h.at[i] += 0.3 * rng_normal(&s->chance);
    return h;
}

/* L (n, n) of Cholesky of readings' covariance, with their noise. False: it is none. */
static inline bool small_factor(const struct small *s, const struct hyper *h,
                                const struct reading *list, int n, double *l)
{
    struct variances v = hyper_variances(h);
    double slope[VARIANCES];

    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            struct effects a = effects_of(&s->site, &list[i]), b = effects_of(&s->site, &list[j]);
            double noise = i == j ? (double)list[i].noise : 0;
            double left = effects_covariance(&v, &a, &b, slope) + noise * noise;
            for (int m = 0; m < j; m++)
                left -= l[i * n + m] * l[j * n + m];
            if (i == j && !(left > 0))
                return false;
            l[i * n + j] = i == j ? sqrt(left) : left / l[j * n + j];
        }
    return true;
}

/* x becomes L^-1 x. */
static inline void small_solve(const double *l, int n, double *x)
{
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < i; j++)
            x[i] -= l[i * n + j] * x[j];
        x[i] /= l[i * n + i];
    }
}

#endif
