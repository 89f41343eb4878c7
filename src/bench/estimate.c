/* estimate.c - how fast P1 estimates, P2 refines, and both are learned. */
#include "bench/bench.h"

#include <errno.h>
#include <math.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/rng.h"
#include "catalog/catalog.h"
#include "estimate/p1/p1.h"
#include "nn/gp.h"
#include "refine/model.h"
#include "refine/p2.h"

enum { N_WORKLOADS = 200, N_TYPES = 8, N_SIGHTINGS = 5, N_UPDATES = 50 };

#define MODEL_FILE "estimate.weights"

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
static int record(struct catalog *c, struct rng *rng, int w, int type, int neighbour, struct err *e)
{
    struct features f;

    features_of(&c->workloads[w], &c->types[type], &f);
    double ln_speed = f.ln_roofline + 0.3 * rng_normal(rng);
    struct measurement m = {
        .key = { .workload = w, .gpu_type = type, .neighbour = neighbour, .n_gpus = 1 },
        .fits = true,
        .throughput = exp(neighbour < 0 ? ln_speed : ln_speed - rng_uniform(rng)),
        .watts = neighbour < 0 ? exp(f.ln_watts + 0.1 * rng_normal(rng)) : (double)NAN,
        .duration_s = 300,
        .noise = 0.05,
    };

    return catalog_record(c, &m, 0, e);
}

/* A quarter of the cells alone, and as many pairs as one learns from at once. */
static int add_measurements(struct catalog *c, struct err *e)
{
    struct rng rng;
    int rc = 0;

    rng_init(&rng, 1, "bench-estimate");
    for (int w = 0; w < N_WORKLOADS && rc == 0; w++)
        for (int t = w % 4; t < N_TYPES && rc == 0; t += 4)
            rc = record(c, &rng, w, t, -1, e);
    for (int i = 0; i < EXAMPLES_PAIRS_MAX && rc == 0; i++) {
        int w = (int)rng_below(&rng, N_WORKLOADS);

        rc = record(c, &rng, w, w % 4, (int)rng_below(&rng, N_WORKLOADS), e);
    }
    return rc;
}

static int learn(struct arena *a, const char *path, struct err *e)
{
    struct catalog c;
    struct examples x;
    struct model *m = NULL;
    struct p1_options how = { .seed = 1 };
    int rc = catalog_make(&c, e);

    if (rc == 0)
        rc = add_measurements(&c, e);
    if (rc == 0) {
        examples_take(a, &c, EXAMPLES_PAIRS_MAX, 1, &x);
        rc = model_train(&x, NULL, &how, "bench", &m, e);
    }
    if (rc == 0)
        rc = model_write(m, path, e);
    model_destroy(m);
    catalog_release(&c);
    return rc;
}

int bench_estimate_prepare(struct arena *a, const char *scratch, struct err *e)
{
    const char *path = arena_printf(a, "%s/%s", scratch, MODEL_FILE);

    nn_init();
    return access(path, R_OK) == 0 ? 0 : learn(a, path, e);    // another bench may have made it
}

/* What a run starts from: the names, and the model that was prepared. */
struct loaded_model {
    struct catalog catalog;
    struct model *model;
    struct p1_context *context;
};

static int loaded_model_open(struct loaded_model *s, struct arena *a, const char *scratch,
                             struct err *e)
{
    nn_init();
    int rc = catalog_make(&s->catalog, e);
    if (rc == 0)
        rc = model_read(arena_printf(a, "%s/%s", scratch, MODEL_FILE), &s->model, e);
    return rc;
}

/* Everybody on every type, from descriptors to what P1 needs of them. */
static void loaded_model_fill(struct loaded_model *s)
{
    const struct catalog *c = &s->catalog;
    struct features on[N_TYPES];

    s->context = p1_context_create(s->model->p1, N_TYPES);
    for (int w = 0; w < N_WORKLOADS; w++) {
        struct identity who = identity_of(&c->workloads[w]);

        for (int t = 0; t < N_TYPES; t++)
            features_of(&c->workloads[w], &c->types[t], &on[t]);
        p1_context_add(s->context, &who, on);
    }
}

/* ---- P1: all cells ---- */

int bench_estimate_cells(struct arena *a, const char *scratch, struct bench_figures *out,
                         struct err *e)
{
    static float ln_r[N_WORKLOADS], sd[N_WORKLOADS];
    struct loaded_model s;
    double sum = 0;
    int rc = loaded_model_open(&s, a, scratch, e);

    if (rc < 0)
        return rc;    // the child ends here; there is nothing to tidy
    double began_s = clock_stopwatch_s();
    loaded_model_fill(&s);
    double filled_s = clock_stopwatch_s();
    for (int w = 0; w < N_WORKLOADS; w++)
        for (int t = 0; t < N_TYPES; t++) {
            sum += (double)p1_alone(s.context, w, t).ln_speed;
            p1_beside(s.context, w, t, 0, N_WORKLOADS, ln_r, sd);
            sum += (double)ln_r[w];
        }
    double seconds = clock_stopwatch_s() - began_s;
    out->value = (double)N_WORKLOADS * N_TYPES * (N_WORKLOADS + 1) / seconds;
    out->detail[0] = filled_s - began_s;
    out->detail[1] = seconds;
    return isfinite(sum) ? 0 : err_set(e, EDOM, "an estimate that is no number");
}

/* ---- P2: all cells of one workload ---- */

/* Milliseconds to correct all cells of a workload by the same sightings. */
static int time_updates(struct loaded_model *s, enum p2_way way, const struct p2_estimates *before,
                        const struct p2_observation *seen, double *ms, struct err *e)
{
    double total_s = 0;
    int rc = 0;

    for (int i = 0; i < N_UPDATES && rc == 0; i++) {
        struct arena a;
        struct p2_estimates b;

        arena_init(&a);
        p2_estimates_make(&a, before->n_types, before->n_neighbours, true, &b);
        p2_estimates_from_p1(s->context, 0, &b);
        double began_s = clock_stopwatch_s();
        rc = p2_refine(&a, s->model->p2, way, &(struct p2_sightings){ N_SIGHTINGS, seen }, &b, e);
        total_s += clock_stopwatch_s() - began_s;
        arena_release(&a);
    }
    *ms = 1e3 * total_s / N_UPDATES;
    return rc;
}

int bench_estimate_update(struct arena *a, const char *scratch, struct bench_figures *out,
                          struct err *e)
{
    struct loaded_model s;
    struct p2_estimates before;
    struct p2_observation seen[N_SIGHTINGS];
    int rc = loaded_model_open(&s, a, scratch, e);

    if (rc < 0)
        return rc;
    loaded_model_fill(&s);
    p2_estimates_make(a, N_TYPES, N_WORKLOADS, true, &before);
    p2_estimates_from_p1(s.context, 0, &before);
    for (int i = 0; i < N_SIGHTINGS; i++)
        seen[i] = (struct p2_observation){
            .type = i % N_TYPES,
            .neighbour = 10 * i - 1,
            .ln_speed = (double)before.alone[i % N_TYPES] + 0.1,
            .ln_speed_var = 0.0025,
            .ln_r_partner = i > 0 ? -0.2 : (double)NAN,
            .ln_r_partner_var = 0.0025,
            .ln_watts = NAN,
        };
    rc = time_updates(&s, P2_CHAMPION, &before, seen, &out->value, e);
    if (rc == 0)
        rc = time_updates(&s, P2_CLOSED, &before, seen, &out->detail[0], e);
    if (rc == 0)
        rc = time_updates(&s, P2_NETWORK, &before, seen, &out->detail[1], e);
    return rc;
}

/* ---- learning from Gavel's measurements ---- */

int bench_estimate_train(struct arena *a, const char *scratch, struct bench_figures *out,
                         struct err *e)
{
    struct store *s = NULL;
    struct catalog c;
    struct examples x;
    struct model *m = NULL;
    struct p1_options how = { .seed = 1 };

    (void)scratch;
    nn_init();
    int rc = bench_import_gavel(a, ":memory:", &s, &c, e);
    if (rc < 0)
        return rc;    // the child ends here; there is nothing to tidy
    double began_s = clock_stopwatch_s();
    examples_take(a, &c, EXAMPLES_PAIRS_MAX, 1, &x);
    rc = model_train(&x, NULL, &how, "bench", &m, e);
    out->value = clock_stopwatch_s() - began_s;
    if (rc == 0) {
        out->detail[0] = m->n_alone + m->n_pairs;
        out->detail[1] = m->n_workloads;
    }
    return rc;
}
