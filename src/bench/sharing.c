/* sharing.c - what it is worth to know how a site shares its GPUs, on synthetic sites. */
#include "bench/bench.h"

#include "estimate/model/model.h"
#include "nn/gp.h"
#include "sim/eval/modes.h"

/* Another seed than those that laws were tried on; errors of so many sites differ by 3 % or so. */
enum { N_SITES = 400, SEED = 77 };

static int score(enum sharing mode, int n_known, struct bench_figures *out, struct err *e)
{
    const struct modes_options o = { mode, mode, n_known, N_SITES, SEED };
    struct modes_result r = { .none = 0 };
    struct model *m = NULL;

    nn_init();
    int rc = model_pretrained(&m, e);
    if (rc == 0)
        rc = modes_eval(&m->hyper[LEARN_SPEEDS], m->scale[LEARN_SPEEDS], &o, &r, e);
    model_destroy(m);
    out->value = r.told.error / r.untold.error;
    out->detail[0] = r.told.error;
    out->detail[1] = r.told.coverage;
    return rc;
}

int bench_sharing(struct arena *a, const char *scratch, struct bench_figures *out, struct err *e)
{
    (void)a;
    (void)scratch;
    return score(SHARING_TIMESLICE, 0, out, e);
}

int bench_sharing_known(struct arena *a, const char *scratch, struct bench_figures *out,
                        struct err *e)
{
    (void)a;
    (void)scratch;
    return score(SHARING_TIMESLICE, 5, out, e);
}

int bench_sharing_slices(struct arena *a, const char *scratch, struct bench_figures *out,
                         struct err *e)
{
    (void)a;
    (void)scratch;
    return score(SHARING_MIG, 0, out, e);
}
