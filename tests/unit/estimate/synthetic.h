/* synthetic.h - a small world whose rules are known, as examples to learn from.
 *
 * Six families of three workloads on two GPU types. Alone, a workload is as much faster than its
 * roofline as it computes more; beside another, sqrt(r) = 1 - 0.5 busy busy'; watts follow how
 * busy it is. Some noise, so that nothing is exact.
 */
#ifndef TESTS_UNIT_ESTIMATE_SYNTHETIC_H
#define TESTS_UNIT_ESTIMATE_SYNTHETIC_H

#include <math.h>

#include "base/arena.h"
#include "base/rng.h"
#include "estimate/p1/examples.h"

enum { FAMILIES = 6, SIBLINGS = 3, WORKLOADS = FAMILIES * SIBLINGS, TYPES = 2 };

static inline double synthetic_alone(const struct features *on)
{
    return 0.8 * ((double)on->share[0] - 0.4);
}

static inline double synthetic_root(const struct features *job, const struct features *neighbour)
{
    return 1 - 0.5 * (double)job->busy * (double)neighbour->busy;
}

static inline void synthetic_features(struct rng *r, int type, double compute, double busy,
                                      struct features *out)
{
    *out = (struct features){
        .ln_roofline = 1,
        .ln_watts = 5,
        .share = { (float)(compute * busy), (float)((1 - compute) * busy), 0, (float)(1 - busy) },
        .kind = { 1, 0, 0, 0 },
        .figure = { type ? -1.0f : 0, type ? -1.0f : 0, 0, 0, type ? -1.0f : 0 },
        .ln_batch = (float)rng_between(r, 2, 5),
        .ln_step_s = (float)rng_between(r, -4, 0),
        .ln_kernel_s = (float)rng_between(r, -11, -8),
        .mem_share = 0.3f,
        .busy = (float)busy,
        .known = 1,
        .figures_known = 1,
    };
}

static inline void synthetic_workloads(struct arena *a, struct rng *r, struct examples *x)
{
    x->n_workloads = WORKLOADS;
    x->n_types = TYPES;
    x->n_families = FAMILIES;
    x->family = ARENA_ARRAY(a, int, WORKLOADS);
    x->who = ARENA_ARRAY(a, struct identity, WORKLOADS);
    x->at = ARENA_ARRAY(a, struct features, WORKLOADS * TYPES);
    for (int f = 0; f < FAMILIES; f++) {
        double compute = rng_uniform(r), busy = 0.2 + 0.8 * rng_uniform(r);
        for (int i = 0; i < SIBLINGS; i++) {
            int w = f * SIBLINGS + i;
            x->family[w] = f;
            x->who[w] = (struct identity){ rng_u64(r), 1000 + (uint64_t)f * 977, 7 };
            for (int g = 0; g < TYPES; g++)
                synthetic_features(r, g, fmin(fmax(compute + 0.05 * i, 0), 1),
                                   fmin(busy + 0.03 * i, 1), &x->at[w * TYPES + g]);
        }
    }
}

static inline void synthetic_examples(struct arena *a, uint64_t seed, struct examples *x)
{
    struct rng r;

    rng_init(&r, seed, "synthetic world");
    *x = (struct examples){ 0 };
    synthetic_workloads(a, &r, x);
    x->alone = ARENA_ARRAY(a, struct example, WORKLOADS * TYPES);
    x->watts = ARENA_ARRAY(a, struct example, WORKLOADS * TYPES);
    x->pairs = ARENA_ARRAY(a, struct example, WORKLOADS * TYPES * WORKLOADS);
    for (int w = 0; w < WORKLOADS; w++)
        for (int g = 0; g < TYPES; g++) {
            const struct features *on = examples_at(x, w, g);
            float alone = (float)(synthetic_alone(on) + 0.01 * rng_normal(&r));
            float watts = 0.3f * on->busy;
            x->alone[x->n_alone++] = (struct example){ w, g, -1, alone, 0.01f };
            x->watts[x->n_watts++] = (struct example){ w, g, -1, watts, 0.01f };
            for (int n = 0; n < WORKLOADS; n++) {
                double root = synthetic_root(on, examples_at(x, n, g));
                x->pairs[x->n_pairs++] = (struct example){ w, g, n, (float)(2 * log(root)), 0.05f };
            }
        }
}

#endif
