#include "study/pretraining.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/grow.h"
#include "catalog/catalog.h"
#include "estimate/p1/examples.h"
#include "estimate/p1/p1.h"
#include "nn/gp.h"
#include "refine/model.h"
#include "sim/sim.h"

int pretraining_shipped(struct pretraining *k, struct err *e)
{
    *k = (struct pretraining){ 0 };
    return model_pretrained(&k->model, e);
}

/* ---- all but a family ---- */

static bool is_of(const struct workload *w, const char *family)
{
    return w->family != NULL && strcmp(w->family, family) == 0;
}

/* Is 'c''s workload 'w' the first of its family? */
static bool is_first(const struct catalog *c, int w)
{
    if (c->workloads[w].family == NULL)
        return false;
    for (int i = 0; i < w; i++)
        if (is_of(&c->workloads[i], c->workloads[w].family))
            return false;
    return true;
}

const char *pretraining_family(const struct catalog *c, int seed)
{
    int n = 0, which;

    for (int w = 0; w < c->n_workloads; w++)
        n += is_first(c, w);
    if (n == 0)
        return NULL;
    which = seed % n;
    for (int w = 0; w < c->n_workloads; w++)
        if (is_first(c, w) && which-- == 0)
            return c->workloads[w].family;
    return NULL;
}

/* Types and the workloads that may be known, with their indices in 'out'; -1: held out. */
static int copy_names(const struct catalog *from, const char *family, struct catalog *out,
                      int *types, int *workloads, struct err *e)
{
    int rc = 0;

    for (int i = 0; i < from->n_types && rc == 0; i++)
        rc = catalog_add_type(out, &from->types[i], &types[i], e);
    for (int i = 0; i < from->n_workloads && rc == 0; i++) {
        workloads[i] = -1;
        if (!is_of(&from->workloads[i], family))
            rc = catalog_add_workload(out, &from->workloads[i], &workloads[i], e);
    }
    return rc;
}

int pretraining_without(const struct catalog *from, const char *family, struct catalog *out,
                        struct err *e)
{
    int *types = heap_array((size_t)from->n_types, sizeof *types);
    int *workloads = heap_array((size_t)from->n_workloads, sizeof *workloads);
    int rc = copy_names(from, family, out, types, workloads, e);

    for (int i = 0; i < from->n_cells && rc == 0; i++)
        rc = sim_copy_cell(out, &from->cells[i], types, workloads, e);
    free(types);
    free(workloads);
    return rc;
}

static int learn(const struct catalog *c, int seed, struct model **out, struct err *e)
{
    const struct p1_options how = { .seed = (uint64_t)seed };
    struct examples x;
    struct arena a;
    int rc;

    nn_init();
    arena_init(&a);
    examples_take(&a, c, EXAMPLES_PAIRS_MAX, how.seed, &x);
    rc = model_train(&x, NULL, &how, "study: a family held out", out, e);
    arena_release(&a);
    return rc;
}

int pretraining_of_others(struct pretraining *k, const struct catalog *truth, int seed,
                          struct err *e)
{
    int rc;

    *k = (struct pretraining){ .family = pretraining_family(truth, seed) };
    if (k->family == NULL)
        return err_set(e, EINVAL, "no workload of the ground truth says its family");
    k->catalog = heap_array(1, sizeof *k->catalog);
    catalog_init(k->catalog);
    rc = pretraining_without(truth, k->family, k->catalog, e);
    if (rc == 0)
        rc = learn(k->catalog, seed, &k->model, e);
    if (rc < 0)
        pretraining_release(k);
    return rc;
}

void pretraining_release(struct pretraining *k)
{
    model_destroy(k->model);
    if (k->catalog != NULL)
        catalog_release(k->catalog);
    free(k->catalog);
    *k = (struct pretraining){ 0 };
}
