/* drawn.h - parts of worlds that are drawn at random. */
#ifndef TESTS_UNIT_OPTIMIZE_DRAWN_H
#define TESTS_UNIT_OPTIMIZE_DRAWN_H

#include <math.h>
#include <stdio.h>

#include "base/rng.h"
#include "unit/support.h"

/* One to three nodes n0, n1, n2 with one to 'n_gpus_max' GPUs each. */
static inline void draw_nodes(struct rng *r, struct world *w, int n_gpus_max)
{
    static const char *const kinds[] = { "v100", "k80", "a100" };
    char line[100];

    for (int n = 0, n_nodes = 1 + (int)rng_below(r, 3); n < n_nodes; n++) {
        size_t at = (size_t)snprintf(line, sizeof line, "node n%d", n);
        for (int g = 1 + (int)rng_below(r, (uint64_t)n_gpus_max); g > 0; g--)
            at += (size_t)snprintf(line + at, sizeof line - at, " %s", kinds[rng_below(r, 3)]);
        world_add(w, line);
    }
}

/* Submit 's'; one in 'n_a_server' is made to serve first. */
static inline void draw_submission(struct rng *r, struct world *w, struct job_spec *s,
                                   int n_a_server)
{
    if (rng_below(r, (uint64_t)n_a_server) == 0) {
        s->kind = JOB_INFERENCE;
        s->rate = exp(rng_between(r, -1, 2));
        s->min_throughput = fmin(s->min_throughput, s->rate);
        s->duration_s = 5000;
    }
    world_apply(w, &(struct event){ .kind = EVENT_JOB_SUBMITTED, .time_s = w->now_s, .spec = s });
}

#endif
