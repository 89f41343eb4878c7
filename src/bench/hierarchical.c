/* hierarchical.c - how fast the hierarchical model answers at a site, and takes a measurement. */
#include "bench/bench.h"

#include <errno.h>
#include <math.h>

#include "base/arena.h"
#include "base/clock.h"
#include "estimate/hierarchical/posterior.h"
#include "nn/gp.h"

enum { N_READINGS = 900, N_UPDATES = 50 };

/* A site with readings, some of which are yet to come. */
struct read_site {
    struct site site;
    struct reading readings[N_READINGS + N_UPDATES];
    struct posterior *posterior;
};

static int read_site_make(struct arena *a, struct read_site *k, struct err *e)
{
    const struct hyper h = hyper_start();

    nn_init();
    bench_site_make(a, &k->site, k->readings, N_READINGS + N_UPDATES);
    return posterior_create(&k->site, &h, (struct hyper_scale){ 1, 1, 1, 0 }, k->readings, N_READINGS,
                            &k->posterior, e);
}

static double ask_all(const struct read_site *k)
{
    double sum = 0;

    for (int t = 0; t < k->site.n_types; t++)
        for (int w = 0; w < k->site.n_workloads; w++)
            for (int n = 0; n < k->site.n_workloads; n++)
                sum += posterior_ask(k->posterior, READ_PACKED, t, w, n).mean;
    return sum;
}

int bench_posterior_cells(struct arena *a, const char *scratch, struct bench_figures *out,
                          struct err *e)
{
    struct read_site k;

    (void)scratch;
    int rc = read_site_make(a, &k, e);
    if (rc < 0)
        return rc;
    double made_s = clock_stopwatch_s(), sum = ask_all(&k), first_s = clock_stopwatch_s();
    sum += ask_all(&k);
    double again_s = clock_stopwatch_s();
    double n = (double)k.site.n_types * k.site.n_workloads * k.site.n_workloads;
    out->value = n / (first_s - made_s);
    out->detail[0] = first_s - made_s;
    out->detail[1] = again_s - first_s;
    posterior_destroy(k.posterior);
    return isfinite(sum) ? 0 : err_set(e, EDOM, "an estimate that is no number");
}

int bench_posterior_add(struct arena *a, const char *scratch, struct bench_figures *out,
                        struct err *e)
{
    struct read_site k;
    double sum = 0;

    (void)scratch;
    int rc = read_site_make(a, &k, e);
    if (rc < 0)
        return rc;
    for (int w = 0; w < k.site.n_workloads; w++)
        sum += posterior_ask(k.posterior, READ_PACKED, 0, w, 0).mean;
    double began_s = clock_stopwatch_s();
    for (int i = 0; i < N_UPDATES && rc == 0; i++) {
        rc = posterior_add(k.posterior, &k.readings[N_READINGS + i], e);
        for (int w = 0; w < k.site.n_workloads; w++)
            sum += posterior_ask(k.posterior, READ_PACKED, 0, w, 0).mean;
    }
    out->value = 1e3 * (clock_stopwatch_s() - began_s) / N_UPDATES;
    posterior_destroy(k.posterior);
    if (rc == 0 && !isfinite(sum))
        rc = err_set(e, EDOM, "an estimate that is no number");
    return rc;
}
