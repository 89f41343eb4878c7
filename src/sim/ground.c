#include "sim/ground.h"

#include <errno.h>
#include <math.h>

#include "base/err.h"
#include "catalog/cluster/cluster.h"
#include "sim/trace/trace.h"
#include "store/store.h"

static int add_types(struct catalog *c, const struct cluster *cl, const char *reference,
                     struct err *e)
{
    const struct gpu_type *t;
    int rc = 0, index, n;

    if (cl == NULL) {
        t = gpu_type_builtin_all(&n);
        for (int i = 0; i < n && rc == 0; i++)
            rc = catalog_add_type(c, &t[i], &index, e);
        return rc;
    }
    for (int i = 0; i < cl->n_types && rc == 0; i++)
        rc = catalog_add_type(c, &cl->types[i], &index, e);
    if (rc < 0 || reference == NULL)
        return rc;
    if (catalog_find_type_alike(c, reference) >= 0)
        return 0;
    t = gpu_type_builtin(reference);
    if (t == NULL)
        return err_set(e, EINVAL,
                       "reference GPU type '%s' is neither built in nor in the cluster "
                       "file: choose one that is",
                       reference);
    return catalog_add_type(c, t, &index, e);
}

/* The cluster file's workload that is called 'model', whatever its batch; NULL: none. */
static const struct workload *find_model(const struct cluster *cl, const char *model)
{
    struct arena scratch;
    const struct workload *found = NULL;

    arena_init(&scratch);
    for (int i = 0; cl != NULL && i < cl->n_workloads && found == NULL; i++) {
        double batch;
        struct slice name = workload_name_split(cl->workloads[i].name, &batch);

        if (text_alike(arena_strndup(&scratch, name.at, name.len), model))
            found = &cl->workloads[i];
    }
    arena_release(&scratch);
    return found;
}

/* The descriptor of 'model' at 'batch' (NaN: its usual one). */
static int describe(struct arena *a, const struct cluster *cl, const char *model, double batch,
                    struct workload *out, struct err *e)
{
    const struct workload *known = find_model(cl, model);

    if (known == NULL)
        return workload_builtin(a, model, batch, out, e);
    *out = *known;
    if (!isnan(batch))
        out->batch = batch;
    return 0;
}

void ground_name_batches(struct arena *a, struct trace *t, const struct cluster *cl)
{
    for (int i = 0; i < t->n_jobs; i++) {
        struct workload w;
        double batch;

        workload_name_split(t->jobs[i].workload, &batch);
        if (isnan(batch) && describe(a, cl, t->jobs[i].workload, NAN, &w, NULL) == 0)
            t->jobs[i].workload = w.name;
    }
    for (int i = 0; i < t->n_services; i++) {
        struct trace_service *s = &t->services[i];
        double batch;

        workload_name_split(s->workload, &batch);
        if (isnan(batch))    // a server's is the largest that it makes
            s->workload = workload_name(a, s->workload, s->max_batch);
    }
}

/* A workload of the trace, under the name the trace has for it. */
static int add_named(struct catalog *c, const struct cluster *cl, const char *name,
                     const char *where, struct err *e)
{
    struct arena scratch;
    struct workload w;
    struct slice model;
    double batch;
    int index, rc;

    if (catalog_find_workload_alike(c, name) >= 0)
        return 0;
    arena_init(&scratch);
    model = workload_name_split(name, &batch);
    rc = describe(&scratch, cl, arena_strndup(&scratch, model.at, model.len), batch, &w, e);
    if (rc == 0) {
        w.name = name;
        rc = catalog_add_workload(c, &w, &index, e);
    } else {
        rc = err_set(e, EINVAL,
                     "%s: workload '%s' is neither measured nor built in ('gogh catalog models') "
                     "nor described: add a 'workload' line to the cluster file",
                     where, name);
    }
    arena_release(&scratch);
    return rc;
}

static int add_workloads(struct catalog *c, const struct cluster *cl, const struct trace *t,
                         struct err *e)
{
    struct arena scratch;
    int rc = 0, index;

    for (int i = 0; cl != NULL && i < cl->n_workloads && rc == 0; i++)
        rc = catalog_add_workload(c, &cl->workloads[i], &index, e);
    arena_init(&scratch);
    for (int i = 0; t != NULL && i < t->n_jobs && rc == 0; i++) {
        const struct trace_job *j = &t->jobs[i];
        arena_reset(&scratch);
        rc = add_named(c, cl, j->workload,
                       arena_printf(&scratch, "%s:%d: job %s", t->name, j->line, j->name), e);
    }
    for (int i = 0; t != NULL && i < t->n_services && rc == 0; i++) {
        const struct trace_service *s = &t->services[i];
        rc = add_named(c, cl, s->workload,
                       arena_printf(&scratch, "%s:%d: service %s", t->name, s->line, s->name), e);
    }
    arena_release(&scratch);
    return rc;
}

static int add_builtin_workloads(struct catalog *c, struct err *e)
{
    int rc = 0, index, n;
    const struct workload *all = workload_builtin_usual(&n);

    for (int i = 0; i < n && rc == 0; i++)
        rc = catalog_add_workload(c, &all[i], &index, e);
    return rc;
}

int ground_describe_types(struct ground *g, const struct cluster *cl, struct err *e)
{
    int rc = 0;

    for (int i = 0; cl != NULL && i < cl->n_types && rc == 0; i++) {
        int index = catalog_find_type_alike(&g->catalog, cl->types[i].name);

        if (index >= 0)
            rc = catalog_describe_type(&g->catalog, index, &cl->types[i], e);
    }
    return rc;
}

/* What the store has not measured is described by the cluster file or built in, and its
 * speeds are the model's.
 */
int ground_open(struct ground *g, const char *path, const struct cluster *cl, const struct trace *t,
                struct err *e)
{
    *g = (struct ground){ 0 };
    catalog_init(&g->catalog);
    int rc = store_open(path, STORE_READ, &g->store, e);
    if (rc == 0)
        rc = catalog_load(&g->catalog, g->store, e);
    if (rc == 0)
        rc = ground_describe_types(g, cl, e);
    if (rc == 0)
        rc = add_workloads(&g->catalog, cl, t, e);
    if (rc == 0) {
        rc = truth_from_catalog(&g->truth, &g->catalog, &g->n_filled, e);
        if (rc < 0)
            err_prefix(e, "%s", path);
    }
    if (rc < 0)
        ground_close(g);
    return rc;
}

int ground_meet_types(struct ground *g, const struct cluster *cl, struct err *e)
{
    const int n_before = g->catalog.n_types;
    int rc = 0, index;

    for (int i = 0; i < cl->n_types && rc == 0; i++)
        if (catalog_find_type_alike(&g->catalog, cl->types[i].name) < 0)
            rc = catalog_add_type(&g->catalog, &cl->types[i], &index, e);
    if (rc < 0 || g->catalog.n_types == n_before)
        return rc;
    truth_release(&g->truth);
    g->n_filled = 0;
    return truth_from_catalog(&g->truth, &g->catalog, &g->n_filled, e);
}

int ground_builtin(struct ground *g, const struct cluster *cl, const struct trace *t,
                   const char *reference, uint64_t seed, struct err *e)
{
    int rc;

    *g = (struct ground){ 0 };
    catalog_init(&g->catalog);
    rc = add_types(&g->catalog, cl, reference, e);
    if (rc == 0)
        rc = add_workloads(&g->catalog, cl, t, e);
    if (rc == 0 && t == NULL)
        rc = add_builtin_workloads(&g->catalog, e);
    if (rc == 0)
        rc = truth_analytic(&g->truth, &g->catalog, seed, GROUND_SPREAD, e);
    if (rc < 0)
        ground_close(g);
    return rc;
}

void ground_close(struct ground *g)
{
    truth_release(&g->truth);
    catalog_release(&g->catalog);
    store_close(g->store);
    *g = (struct ground){ 0 };
}
