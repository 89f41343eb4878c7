#include "sim/eval/modes.h"

#include <assert.h>
#include <math.h>

#include "base/arena.h"
#include "base/rng.h"
#include "estimate/hierarchical/posterior.h"
#include "estimate/network/worlds.h"

enum { KNOWN_MOST = 40, ASKED = 40 };

/* sd of ln slowdown between slices: what power and the way to the host leave of a neighbour. */
#define SLICES_SD 0.03

/* Of a Gaussian, on either side of the median: 90 %. */
#define Z90 1.6448536269514722

#define NOISE 0.03    // of a reading

struct one_site {
    struct synthetic_world world;
    int type;    // that shares as is asked for
    struct reading known[KNOWN_MOST], asked[ASKED];
    int n_known, n_asked;
};

static bool contends(enum contention_rule rule, enum sharing mode)
{
    switch (mode) {
    case SHARING_TIMESLICE:
        return rule == CONTEND_SLICES;
    case SHARING_MPS:
        return rule == CONTEND_SERVER || rule == CONTEND_OVERLAP;
    default:
        return true;    // whatever it is, it is replaced
    }
}

static int find_type(const struct synthetic_world *w, enum sharing mode)
{
    for (int t = 0; t < w->site.n_types; t++)
        if (contends(w->contention[t].rule, mode))
            return t;
    return -1;
}

static struct reading draw_pair(const struct one_site *s, enum sharing mode, struct rng *r)
{
    const uint64_t n = (uint64_t)s->world.site.n_workloads;
    struct reading one = { .of = READ_SLOWDOWN, .type = s->type, .noise = (float)NOISE };

    one.job = (int)rng_below(r, n);
    one.neighbour = s->world.only_alike ? one.job : (int)rng_below(r, n);
    one.value = mode == SHARING_MIG
                    ? -fabsf((float)(SLICES_SD * rng_normal(r)))
                    : synthetic_value(&s->world, one.of, one.type, one.job, one.neighbour);
    return one;
}

static bool has_pair(const struct reading *list, int n, const struct reading *of)
{
    for (int i = 0; i < n; i++)
        if (list[i].job == of->job && list[i].neighbour == of->neighbour)
            return true;
    return false;
}

/* What is known, with noise, and what is asked, as the truth. False: nothing here shares so. */
static bool site_draw(struct arena *a, const struct modes_options *o, struct rng *r,
                      struct one_site *s)
{
    synthetic_make(a, r, &s->world);
    s->type = find_type(&s->world, o->mode);
    s->n_known = s->n_asked = 0;
    if (s->type < 0)
        return false;
    for (int i = 0; i < o->n_known + ASKED; i++) {
        struct reading one = draw_pair(s, o->mode, r);
        if (has_pair(s->known, s->n_known, &one) || has_pair(s->asked, s->n_asked, &one))
            continue;
        if (s->n_known == o->n_known) {
            s->asked[s->n_asked++] = one;
            continue;
        }
        one.value += (float)(NOISE * rng_normal(r));
        s->known[s->n_known++] = one;
    }
    return true;
}

static int foresee(struct one_site *s, const struct hyper *h, struct hyper_scale scale,
                   enum sharing told, struct modes_score *sum, struct err *e)
{
    struct posterior *p;

    s->world.site.sharing[s->type] = told;
    int rc = posterior_create(&s->world.site, h, scale, s->known, s->n_known, &p, e);
    if (rc < 0)
        return rc;
    for (int i = 0; i < s->n_asked; i++) {
        const struct reading *q = &s->asked[i];
        struct cell_belief is = posterior_ask(p, q->of, q->type, q->job, q->neighbour);
        double truth = (double)q->value;
        sum->error += fabs(exp(is.mean) - exp(truth));
        sum->coverage += fabs(is.mean - truth) <= Z90 * is.sd;
    }
    posterior_destroy(p);
    return 0;
}

int modes_eval(const struct hyper *h, struct hyper_scale scale, const struct modes_options *o,
               struct modes_result *out, struct err *e)
{
    struct arena a;
    struct rng r;
    int rc = 0, n = 0;

    assert(o->n_known <= KNOWN_MOST);
    *out = (struct modes_result){ .none = 0 };
    arena_init(&a);
    rng_init(&r, o->seed, "sharing modes");
    for (int sites = 0; sites < o->n_sites && rc == 0; arena_reset(&a)) {
        struct one_site *s = ARENA_NEW(&a, struct one_site);
        if (!site_draw(&a, o, &r, s))
            continue;
        sites++;
        n += s->n_asked;
        rc = foresee(s, h, scale, o->told, &out->told, e);
        if (rc == 0)
            rc = foresee(s, h, scale, SHARING_UNKNOWN, &out->untold, e);
        for (int i = 0; i < s->n_asked; i++)
            out->none += fabs(1 - exp((double)s->asked[i].value));
    }
    arena_release(&a);
    double *const sums[] = { &out->told.error, &out->told.coverage, &out->untold.error,
                             &out->untold.coverage, &out->none };
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
        *sums[i] /= n > 0 ? n : 1;
    return rc;
}
