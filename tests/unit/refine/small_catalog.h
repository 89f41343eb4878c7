/* small_catalog.h - a catalog that something can be learned from: built-in models on two GPU
 * types, as fast as the roofline times what their family hides, and some pairs of them.
 */
#ifndef TESTS_UNIT_REFINE_SMALL_CATALOG_H
#define TESTS_UNIT_REFINE_SMALL_CATALOG_H

#include <math.h>

#include "base/rng.h"
#include "catalog/catalog.h"
#include "estimate/prior/roofline.h"
#include "unit/suite.h"

static const char *const small_families[] = { "resnet50", "bert-base", "gpt2", "vit-base" };
static const char *const small_types[] = { "p100", "v100" };
enum { SMALL_FAMILIES = 4, SMALL_BATCHES = 3, SMALL_TYPES = 2 };

/* Workload 'w', alone (neighbour -1) or beside another, on type 't'. */
static inline void small_measure_in(struct catalog *c, struct rng *rng, int campaign, int w, int t,
                                    int neighbour)
{
    struct roofline on;

    roofline(&c->workloads[w], &c->types[t], &on);
    double hidden = 0.2 * (w / SMALL_BATCHES) - 0.3 + 0.1 * t;
    double ln_r = neighbour < 0 ? 0 : -0.2 - 0.05 * (neighbour / SMALL_BATCHES);
    double watts = roofline_watts(&on, &c->types[t]) * exp(0.03 * rng_normal(rng));
    struct measurement m = {
        .key = { .workload = w,
                 .gpu_type = t,
                 .neighbour = neighbour,
                 .n_gpus = 1,
                 .campaign = campaign },
        .fits = true,
        .throughput = exp(hidden + ln_r + 0.03 * rng_normal(rng)) / on.step_s,
        .watts = neighbour < 0 ? watts : (double)NAN,
        .duration_s = 60,
        .noise = 0.03,
    };

    ck_assert_int_eq(catalog_record(c, &m, 0, NULL), 0);
}

static inline void small_measure(struct catalog *c, struct rng *rng, int w, int t, int neighbour)
{
    small_measure_in(c, rng, CATALOG_SITE, w, t, neighbour);
}

/* Names of everybody, then what was measured of the first 'n_families'. */
static inline void small_names(struct catalog *c)
{
    int index;

    for (int t = 0; t < SMALL_TYPES; t++)
        ck_assert_int_eq(catalog_add_type(c, gpu_type_builtin(small_types[t]), &index, NULL), 0);
    for (int w = 0; w < SMALL_FAMILIES * SMALL_BATCHES; w++) {
        struct workload load;

        ck_assert_int_eq(workload_builtin(&c->arena, small_families[w / SMALL_BATCHES],
                                          8 << w % SMALL_BATCHES, &load, NULL),
                         0);
        ck_assert_int_eq(catalog_add_workload(c, &load, &index, NULL), 0);
    }
}

static inline void small_measurements(struct catalog *c, int n_families, uint64_t seed)
{
    int n = n_families * SMALL_BATCHES;
    struct rng rng;

    rng_init(&rng, seed, "small-catalog");
    for (int t = 0; t < SMALL_TYPES; t++)
        for (int w = 0; w < n; w++) {
            small_measure(c, &rng, w, t, -1);
            for (int i = 1; i < n; i += 3)
                small_measure(c, &rng, w, t, (w + i) % n);
        }
}

#endif
