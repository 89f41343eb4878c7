/* network.c - how fast the network answers at a site, takes in readings, and learns. */
#include "bench/bench.h"

#include <errno.h>
#include <math.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/rng.h"
#include "estimate/network/network.h"
#include "estimate/network/worlds.h"
#include "nn/gp.h"
#include "nn/weights.h"

enum { N_WORKLOADS = 200, N_TYPES = 8, N_UPDATES = 20, FEW_STEPS = 20 };

/* Many workloads and types out of a smaller synthetic site. */
static void site_widen(struct arena *a, const struct site *from, struct site *s)
{
    *s = (struct site){ .n_types = N_TYPES,
                        .n_workloads = N_WORKLOADS,
                        .n_families = from->n_families,
                        .gpu = arena_array(a, N_TYPES, sizeof *s->gpu),
                        .sharing = ARENA_ARRAY(a, enum sharing, N_TYPES),
                        .on = ARENA_ARRAY(a, struct site_on, (size_t)N_TYPES * N_WORKLOADS),
                        .family = ARENA_ARRAY(a, int, N_WORKLOADS) };
    for (int t = 0; t < N_TYPES; t++)
        for (int k = 0; k < SITE_GPU; k++)
            s->gpu[t][k] = from->gpu[t % from->n_types][k];
    for (int i = 0; i < N_WORKLOADS; i++) {
        s->family[i] = from->family[i % from->n_workloads];
        for (int t = 0; t < N_TYPES; t++)
            s->on[i * N_TYPES + t] = *site_on(from, i % from->n_workloads, t % from->n_types);
    }
}

/* As many readings as are tokens. The speed does not depend on what was learned. */
struct at_site {
    struct site site;
    struct network *network;
    struct network_site *here;
    struct reading readings[NETWORK_TOKENS];
};

void bench_site_make(struct arena *a, struct site *site, struct reading *readings, int n)
{
    struct synthetic_world *w = ARENA_NEW(a, struct synthetic_world);
    struct rng r;

    rng_init(&r, 1, "bench-network");
    synthetic_make(a, &r, w);
    site_widen(a, &w->site, site);
    for (int i = 0; i < n; i++) {
        const int other = i % 2 ? (int)rng_below(&r, N_WORKLOADS) : -1;

        readings[i] = (struct reading){
            i % 2 ? READ_SLOWDOWN : READ_ALONE, i % N_TYPES, i % N_WORKLOADS, other,
            (float)(-0.3 * rng_uniform(&r)),    0.03f
        };
    }
}

static void at_site_make(struct arena *a, struct at_site *k)
{
    nn_init();
    bench_site_make(a, &k->site, k->readings, NETWORK_TOKENS);
    k->network = network_train(&(struct network_options){ .seed = 1, .n_steps = FEW_STEPS });
    k->here = network_site_create(k->network, &k->site);
}

static void at_site_release(struct at_site *k)
{
    network_site_destroy(k->here);
    network_destroy(k->network);
}

int bench_network_cells(struct arena *a, const char *scratch, struct bench_figures *out,
                        struct err *e)
{
    struct at_site k;
    float mean, sd, sum = 0;

    (void)scratch;
    at_site_make(a, &k);
    network_read(k.here, -1, k.readings, NETWORK_TOKENS);
    double began_s = clock_stopwatch_s();
    for (int w = 0; w < N_WORKLOADS; w++)
        network_ask(k.here, READ_ALONE, 0, w, -1, &mean, &sd);
    double stated_s = clock_stopwatch_s();
    for (int t = 0; t < N_TYPES; t++)
        for (int w = 0; w < N_WORKLOADS; w++)
            for (int other = 0; other < N_WORKLOADS; other++) {
                network_ask(k.here, READ_SLOWDOWN, t, w, other, &mean, &sd);
                sum += mean + sd;
            }
    double seconds = clock_stopwatch_s() - began_s;
    out->value = (double)N_WORKLOADS * N_TYPES * N_WORKLOADS / seconds;
    out->detail[0] = stated_s - began_s;
    out->detail[1] = seconds;
    at_site_release(&k);
    return isfinite(sum) ? 0 : err_set(e, EDOM, "an estimate that is no number");
}

int bench_network_read(struct arena *a, const char *scratch, struct bench_figures *out,
                       struct err *e)
{
    struct at_site k;
    float mean, sd, sum = 0;

    (void)scratch;
    at_site_make(a, &k);
    double began_s = clock_stopwatch_s();
    for (int i = 0; i < N_UPDATES; i++) {
        network_read(k.here, -1, k.readings, NETWORK_TOKENS);
        network_ask(k.here, READ_SLOWDOWN, 0, i, i + 1, &mean, &sd);
        sum += mean;
    }
    out->value = 1e3 * (clock_stopwatch_s() - began_s) / N_UPDATES;
    at_site_release(&k);
    return isfinite(sum) ? 0 : err_set(e, EDOM, "an estimate that is no number");
}

int bench_network_train(struct arena *a, const char *scratch, struct bench_figures *out,
                        struct err *e)
{
    struct network *again = NULL;
    struct weights bag;

    (void)scratch;
    nn_init();
    double began_s = clock_stopwatch_s();
    struct network *n = network_train(&(struct network_options){ .seed = 1 });
    out->value = clock_stopwatch_s() - began_s;
    weights_init(&bag, a);
    network_save(n, &bag);
    int rc = network_load(&bag, &again, e);
    out->detail[0] = NETWORK_STEPS;
    network_destroy(n);
    network_destroy(again);
    return rc;
}
