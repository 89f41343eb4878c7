#include "study/scenario/pretraining.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/grow.h"
#include "catalog/catalog.h"
#include "estimate/model/model.h"
#include "nn/gp.h"
#include "sim/sim.h"

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

static int learn(const struct catalog *c, int seed, struct model **out, struct err *e)
{
    struct examples x;
    int rc;

    nn_init();
    examples_take(c, &x);
    rc = model_train(&x, NULL, (uint64_t)seed, "study: a family held out", out, e);
    examples_release(&x);
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
    rc = sim_adopt(k->catalog, truth, k->family, e);
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
