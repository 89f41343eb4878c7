/* estimate.c - how fast cells are estimated, a measurement is taken in, and a model is learned. */
#include "bench/bench.h"

#include <errno.h>
#include <math.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/rng.h"
#include "catalog/catalog.h"
#include "estimate/estimate.h"
#include "estimate/model/model.h"
#include "estimate/prior/roofline.h"
#include "nn/gp.h"
#include "refine/refine.h"

enum { N_WORKLOADS = 200, N_TYPES = 8, N_UPDATES = 50 };

/* Pairs that were measured: of a site where the model alone speaks of slowdowns, and of a young
 * one, where the network has its say.
 */
enum { N_PAIRS = 500, N_PAIRS_YOUNG = 100 };

/* ---- a synthetic catalog ---- */

/* Built-in models at several batch sizes: every one a workload of its own. */
static int catalog_make(struct catalog *c, struct err *e)
{
    int n_models, index, rc;
    const struct workload *models = workload_builtin_all(&n_models);

    catalog_init(c);
    rc = bench_add_types(c, e);
    for (int w = 0; w < N_WORKLOADS && rc == 0; w++) {
        struct workload load;
        int batch = 1 + w / n_models * 8;

        rc = workload_builtin(&c->arena, models[w % n_models].family, batch, &load, e);
        if (rc == 0)
            rc = catalog_add_workload(c, &load, &index, e);
    }
    return rc;
}

/* A cell as fast as the roofline says, but for chance. */
static struct measurement measure(const struct catalog *c, struct rng *rng, int w, int type,
                                  int neighbour)
{
    struct roofline on;

    roofline(&c->workloads[w], &c->types[type], &on);
    double speed = exp(0.3 * rng_normal(rng)) / on.step_s;
    return (struct measurement){
        .key = { .workload = w, .gpu_type = type, .neighbour = neighbour, .n_gpus = 1 },
        .fits = true,
        .throughput = neighbour < 0 ? speed : speed * exp(-rng_uniform(rng)),
        .watts = neighbour < 0 ? 100 * exp(0.1 * rng_normal(rng)) : (double)NAN,
        .duration_s = 300,
        .noise = 0.05,
    };
}

/* A site that has been watched for a while. */
struct watched_site {
    struct catalog catalog;
    struct model *model;
    struct estimator estimator;
    struct refiner refiner;
    struct rng rng;
};

/* One more measurement of two who share a GPU. */
static int watch(struct watched_site *s, struct err *e)
{
    int w = (int)rng_below(&s->rng, N_WORKLOADS), n = (int)rng_below(&s->rng, N_WORKLOADS);
    struct measurement m = measure(&s->catalog, &s->rng, w, w % N_TYPES, n);

    return refine_take(&s->refiner, &m, e);
}

static int watched_site_make(struct watched_site *s, int n_pairs, struct err *e)
{
    nn_init();
    rng_init(&s->rng, 1, "bench-estimate");
    int rc = catalog_make(&s->catalog, e);
    for (int w = 0; w < N_WORKLOADS && rc == 0; w++)
        for (int t = w % 4; t < N_TYPES && rc == 0; t += 4) {
            struct measurement m = measure(&s->catalog, &s->rng, w, t, -1);
            rc = catalog_record(&s->catalog, &m, 0, e);
        }
    estimator_init(&s->estimator, &s->catalog, 1);
    refiner_init(&s->refiner, &s->catalog, &s->estimator);
    if (rc == 0)
        rc = model_pretrained(&s->model, e);
    estimate_use(&s->estimator, s->model, ESTIMATOR_GOGH);
    estimate_meet(&s->estimator);
    for (int i = 0; i < n_pairs && rc == 0; i++)
        rc = watch(s, e);
    estimate_refresh(&s->estimator);
    return rc;    // the child ends soon; there is nothing to tidy
}

/* Every pair on every type. */
static double ask_all(const struct watched_site *s)
{
    double sum = 0;

    for (int t = 0; t < N_TYPES; t++)
        for (int w = 0; w < N_WORKLOADS; w++)
            for (int n = 0; n < N_WORKLOADS; n++)
                sum += (double)estimate_cell(&s->estimator, w, t, n).speed;
    return sum;
}

/* ---- all cells, as a decision asks that follows a measurement ---- */

static int time_cells(int n_pairs, struct bench_figures *out, struct err *e)
{
    static struct watched_site s;

    int rc = watched_site_make(&s, n_pairs, e);
    double made_s = clock_stopwatch_s(), sum = ask_all(&s), first_s = clock_stopwatch_s();
    if (rc == 0)
        rc = watch(&s, e);
    estimate_refresh(&s.estimator);
    sum += ask_all(&s);
    double seconds = clock_stopwatch_s() - first_s;
    out->value = (double)N_WORKLOADS * N_WORKLOADS * N_TYPES / seconds;
    out->detail[0] = first_s - made_s;
    out->detail[1] = seconds;
    return rc < 0 || isfinite(sum) ? rc : err_set(e, EDOM, "an estimate that is no number");
}

int bench_estimate_cells(struct arena *a, const char *scratch, struct bench_figures *out,
                         struct err *e)
{
    (void)a;
    (void)scratch;
    return time_cells(N_PAIRS, out, e);
}

int bench_estimate_young(struct arena *a, const char *scratch, struct bench_figures *out,
                         struct err *e)
{
    (void)a;
    (void)scratch;
    return time_cells(N_PAIRS_YOUNG, out, e);
}

/* ---- a measurement, and all cells of its workload ---- */

static int time_update(int n_pairs, struct bench_figures *out, struct err *e)
{
    static struct watched_site s;
    double sum = 0;

    int rc = watched_site_make(&s, n_pairs, e);
    sum += ask_all(&s);
    double began_s = clock_stopwatch_s();
    for (int i = 0; i < N_UPDATES && rc == 0; i++) {
        rc = watch(&s, e);
        estimate_refresh(&s.estimator);
        for (int t = 0; t < N_TYPES; t++)
            for (int n = -1; n < N_WORKLOADS; n++)
                sum += (double)estimate_cell(&s.estimator, i, t, n).speed;
    }
    out->value = 1e3 * (clock_stopwatch_s() - began_s) / N_UPDATES;
    return rc < 0 || isfinite(sum) ? rc : err_set(e, EDOM, "an estimate that is no number");
}

int bench_estimate_update(struct arena *a, const char *scratch, struct bench_figures *out,
                          struct err *e)
{
    (void)a;
    (void)scratch;
    return time_update(N_PAIRS, out, e);
}

int bench_estimate_young_update(struct arena *a, const char *scratch, struct bench_figures *out,
                                struct err *e)
{
    (void)a;
    (void)scratch;
    return time_update(N_PAIRS_YOUNG, out, e);
}

/* ---- learning from Gavel's measurements ---- */

int bench_estimate_train(struct arena *a, const char *scratch, struct bench_figures *out,
                         struct err *e)
{
    struct store *s = NULL;
    struct catalog c;
    struct examples x;
    struct model *m = NULL;

    (void)scratch;
    nn_init();
    int rc = bench_import_gavel(a, ":memory:", &s, &c, e);
    if (rc < 0)
        return rc;    // the child ends here; there is nothing to tidy
    double began_s = clock_stopwatch_s();
    examples_take(&c, &x);
    rc = model_train(&x, NULL, 1, "bench", &m, e);
    out->value = clock_stopwatch_s() - began_s;
    if (rc == 0) {
        out->detail[0] = m->n_alone + m->n_pairs;
        out->detail[1] = m->n_workloads;
    }
    return rc;
}
