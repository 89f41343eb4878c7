#include <cblas.h>
#include <math.h>

#include "base/err.h"
#include "catalog/catalog.h"
#include "estimate/model/model.h"

/* ---- what it is learned from ---- */

/* Readings, and the workloads and families that they are of. */
static void count(const struct examples *x, struct model *m)
{
    struct arena a;

    arena_init(&a);
    bool *is_met = ARENA_ARRAY(&a, bool, (size_t)x->site.n_workloads);
    bool *is_met_family = ARENA_ARRAY(&a, bool, (size_t)x->site.n_families);
    for (int what = 0; what < LEARNED; what++)
        for (int c = 0; c < x->n_campaigns; c++)
            for (int i = 0; i < x->read[what][c].n; i++) {
                const struct reading *r = &x->read[what][c].list[i];
                int family = x->site.family[r->job];
                m->n_watts += what == LEARN_WATTS;
                m->n_alone += what == LEARN_SPEEDS && r->of == READ_ALONE;
                m->n_pairs += what == LEARN_SPEEDS && r->of != READ_ALONE;
                m->n_workloads += !is_met[r->job];
                m->n_families += !is_met_family[family];
                is_met[r->job] = is_met_family[family] = true;
            }
    for (int c = 0; c < x->n_campaigns; c++)
        m->n_campaigns += x->read[LEARN_SPEEDS][c].n > 0 || x->read[LEARN_WATTS][c].n > 0;
    arena_release(&a);
}

/* Over campaigns, or as the champion has it. */
static int learn_around(const struct examples *x, enum learned what, const struct model *champion,
                        uint64_t seed, struct hyper *out, struct err *e)
{
    struct fit_options o = fit_defaults;
    struct arena a;
    int n = 0, rc = 0;

    o.seed = seed;
    arena_init(&a);
    struct campaign_readings *others =
        ARENA_ARRAY(&a, struct campaign_readings, (size_t)x->n_campaigns);
    for (int i = 0; i < x->n_campaigns; i++)
        if (i != CATALOG_SITE && x->read[what][i].n > 0)
            others[n++] = x->read[what][i];
    *out = champion ? champion->around[what] : hyper_start();
    if (n >= MODEL_CAMPAIGNS_MIN)
        rc = hyper_fit(others, n, &o, out, e);
    arena_release(&a);
    return rc;
}

/* ---- the comparison ---- */

/* Readings that one half of the families has nothing to do with. */
static struct campaign_readings half_of(struct arena *a, const struct campaign_readings *all,
                                        int half)
{
    struct reading *list = ARENA_ARRAY(a, struct reading, (size_t)all->n);
    struct campaign_readings out = { all->site, list, 0 };
    const int *family = all->site->family;

    for (int i = 0; i < all->n; i++) {
        const struct reading *r = &all->list[i];
        if (family[r->job] % 2 != half && (r->neighbour < 0 || family[r->neighbour] % 2 != half))
            list[out.n++] = *r;
    }
    return out;
}

/* What both are wrong by about either half. A champion of this site has seen its families, and so
 * has the challenger; one from elsewhere has not: then the challenger is estimated again without
 * the half.
 */
static int compare(const struct examples *x, const struct model *champion, uint64_t seed,
                   struct model *m, struct err *e)
{
    const struct campaign_readings *all = &x->read[LEARN_SPEEDS][CATALOG_SITE];
    double champion_sum = 0, challenger_sum = 0;
    struct arena a;
    int rc = 0, n = 0;

    arena_init(&a);
    for (int half = 0; half < 2 && rc == 0; half++) {
        struct campaign_readings rest = half_of(&a, all, half);
        struct hyper_scale was = { .error = NAN }, is = { .error = NAN };
        struct hyper challenger = m->hyper[LEARN_SPEEDS];
        if (champion->n_measurements == 0)
            rc = hyper_refit(&m->around[LEARN_SPEEDS], &rest, seed, &challenger, e);
        if (rc == 0)
            rc = hyper_calibrate(&challenger, all, half, &is, e);
        if (rc == 0)
            rc = hyper_calibrate(&champion->hyper[LEARN_SPEEDS], all, half, &was, e);
        if (isnan(was.error) || isnan(is.error))    // nobody of that half was measured
            continue;
        champion_sum += was.error;
        challenger_sum += is.error;
        n++;
    }
    arena_release(&a);
    if (n > 0)
        m->comparison = (struct comparison){ champion_sum / n, challenger_sum / n,
                                             challenger_sum <= champion_sum };
    return rc;
}

/* ---- training ---- */

static void take_contests(const struct model *from, struct model *m)
{
    struct contest *list = ARENA_ARRAY(&m->arena, struct contest, (size_t)from->n_contests);

    for (int i = 0; i < from->n_contests; i++) {
        list[i] = from->contests[i];
        list[i].campaign = arena_strdup(&m->arena, list[i].campaign);
    }
    m->contests = list;
    m->n_contests = from->n_contests;
}

int model_train(const struct examples *x, const struct model *champion, uint64_t seed,
                const char *about, struct model **out, struct err *e)
{
    struct model *m = model_untaught();
    int rc = 0;

    m->about = arena_strdup(&m->arena, about);
    m->blas = arena_strdup(&m->arena, openblas_get_corename());
    m->n_measurements = x->n_measurements;
    count(x, m);
    if (champion)
        take_contests(champion, m);
    for (enum learned what = 0; what < LEARNED && rc == 0; what++) {
        const struct campaign_readings *own = &x->read[what][CATALOG_SITE];
        rc = learn_around(x, what, champion, seed, &m->around[what], e);
        if (rc == 0)
            rc = hyper_refit(&m->around[what], own, seed, &m->hyper[what], e);
        if (rc == 0 && own->n > 0)
            rc = hyper_calibrate(&m->hyper[what], own, -1, &m->scale[what], e);
    }
    m->comparison.is_won = true;
    if (rc == 0 && champion && x->read[LEARN_SPEEDS][CATALOG_SITE].n > 0)
        rc = compare(x, champion, seed, m, e);
    if (rc < 0) {
        model_destroy(m);
        m = NULL;
    }
    *out = m;
    return rc;
}
