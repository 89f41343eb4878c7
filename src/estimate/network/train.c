/* Training on synthetic worlds. */
#include <cblas.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/progress.h"
#include "base/rng.h"
#include "estimate/network/inner.h"
#include "estimate/network/worlds.h"
#include "nn/adam.h"

/* A batch has lessons with about as many readings: many of the small ones, which cost less. Two
 * of them share a world.
 */
static const struct {
    int n_most, n_lessons;
    double chance;
} batches[] = { { 16, 32, 0.4 }, { 48, 16, 0.35 }, { 120, 8, 0.25 } };

enum { LESSONS_OF_A_WORLD = 2, N_WARM = 60 };
static const double rate_most = 2e-3, rate_least = 4e-5;

static double batch_loss(const struct network *n, struct arena *a, struct rng *r, float *grad)
{
    double at = rng_uniform(r), sum = 0;
    int kind = at < batches[0].chance ? 0 : at < batches[0].chance + batches[1].chance ? 1 : 2;
    const int n_lessons = batches[kind].n_lessons;
    struct synthetic_world w;
    struct lesson e;

    for (int i = 0; i < n_lessons; i++) {
        if (i % LESSONS_OF_A_WORLD == 0) {
            arena_reset(a);
            synthetic_make(a, r, &w);
        }
        lesson_draw(a, r, &w, batches[kind].n_most, &e);
        sum += lesson_loss(n, a, &w.site, &e, 1 / (float)n_lessons, grad);
    }
    return sum / n_lessons;
}

struct network *network_train(const struct network_options *o)
{
    const int n_steps = o->n_steps > 0 ? o->n_steps : NETWORK_STEPS;
    const int n_warm = n_steps > 2 * N_WARM ? N_WARM : n_steps / 2;
    struct rng weights, worlds;
    struct arena a;
    struct adam adam;

    rng_init(&weights, o->seed, "network-weights");
    rng_init(&worlds, o->seed, "network-worlds");
    struct network *n = network_create(&weights);
    arena_init(&a);
    adam_init(&adam, n->p.n);
    adam.decay = 1e-3f;
    adam.clip = 1;
    for (int step = 0; step < n_steps; step++) {
        params_clear(&n->p);
        batch_loss(n, &a, &worlds, n->p.grad);
        adam_step(&adam, &n->p, adam_cosine(step, n_steps, n_warm, rate_most, rate_least));
        progress_step(o->progress, step + 1, n_steps);
    }
    snprintf(n->about, sizeof n->about, "synthetic sites, %d steps; seed %" PRIu64 "; %s", n_steps,
             o->seed, openblas_get_corename());
    adam_release(&adam);
    arena_release(&a);
    return n;
}
