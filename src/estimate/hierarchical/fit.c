#include "estimate/hierarchical/fit.h"

#include <cblas.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/rng.h"
#include "nn/gp.h"

const struct fit_options fit_defaults = {
    .seed = 1, .n_steps = 120, .n_alone = 110, .n_beside = 110
};

/* ---- the likelihood ---- */

/* The covariance of all readings with their noise, both triangles. */
static void fill_covariance(const struct variances *v, const struct effects *at,
                            const double *noise, int n, double *k)
{
    double slope[VARIANCES];

    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            double c = effects_covariance(v, &at[i], &at[j], slope);
            if (i == j)
                c += noise[i] * noise[i];
            k[(size_t)i * (size_t)n + (size_t)j] = k[(size_t)j * (size_t)n + (size_t)i] = c;
        }
}

/* Half the sum over all pairs of (K^-1 - alpha alpha') times the covariance's slopes. */
static void variance_slopes(const struct variances *v, const struct effects *at, const struct gp *g,
                            double *slope)
{
    double one[VARIANCES];

    for (int i = 0; i < g->n; i++)
        for (int j = 0; j <= i; j++) {
            double weight =
                g->inverse[(size_t)i * (size_t)g->n + (size_t)j] - g->alpha[i] * g->alpha[j];
            effects_covariance(v, &at[i], &at[j], one);
            if (i == j)
                weight /= 2;
            for (int p = 0; p < VARIANCES; p++)
                slope[p] += weight * one[p];
        }
}

static void mean_slopes(const struct effects *at, const struct gp *g, double *slope)
{
    for (int i = 0; i < g->n; i++) {
        double alone = at[i].of == READ_SLOWDOWN ? 0 : -g->alpha[i];
        bool is_line = at[i].of != READ_ALONE && at[i].law == LAW_LEARNED;
        double beside = is_line ? -g->alpha[i] : 0;
        slope[ALONE_MEAN] += alone;
        for (int x = 0; x < ALONE_X; x++)
            slope[ALONE_MEAN + 1 + x] += alone * at[i].alone[x];
        slope[BESIDE_MEAN] += beside;
        for (int x = 0; x < BESIDE_X; x++)
            slope[BESIDE_MEAN + 1 + x] += beside * at[i].beside[x];
    }
}

int hyper_loss(struct arena *a, const struct hyper *h, const struct effects *at,
               const double *value, const double *noise, int n, double *loss, double *slope,
               struct err *e)
{
    struct variances v = hyper_variances(h);
    double *k = ARENA_ARRAY(a, double, (size_t)n *(size_t)n),
           *left = ARENA_ARRAY(a, double, (size_t)n);
    struct gp g;

    for (int i = 0; i < n; i++)
        left[i] = value[i] - effects_mean(h, &at[i]);
    fill_covariance(&v, at, noise, n, k);
    int rc = gp_fit(a, n, k, left, &g, e);
    if (rc < 0)
        return rc;
    *loss = (g.ln_det + cblas_ddot(n, left, 1, g.alpha, 1)) / 2;
    variance_slopes(&v, at, &g, slope);
    mean_slopes(at, &g, slope);
    return 0;
}

/* ---- climbing ---- */

struct climb {
    double rate, first[HYPERS], second[HYPERS];
    int n_steps;
};

/* Kingma and Ba, 2014, with their constants. */
static void climb_step(struct climb *s, const double *slope, int n, double *at)
{
    s->n_steps++;
    double decay1 = 1 - pow(0.9, s->n_steps), decay2 = 1 - pow(0.999, s->n_steps);
    for (int i = 0; i < n; i++) {
        s->first[i] = 0.9 * s->first[i] + 0.1 * slope[i];
        s->second[i] = 0.999 * s->second[i] + 0.001 * slope[i] * slope[i];
        at[i] -= s->rate * s->first[i] / decay1 / (sqrt(s->second[i] / decay2) + 1e-8);
    }
}

/* Readings that one step looks at, as the likelihood wants them. */
struct drawn {
    struct effects *at;
    double *value, *noise;
    int n;
    double weight[2];    // readings alone, and beside, for each that was drawn
};

static void draw_some(const struct campaign_readings *c, int *order, int n, int most,
                      struct rng *chance, struct drawn *out)
{
    for (int i = 0; i < n && i < most; i++) {
        int k = i + (int)rng_below(chance, (uint64_t)(n - i)), taken = order[k];
        order[k] = order[i];
        order[i] = taken;
        const struct reading *r = &c->list[taken];
        out->at[out->n] = effects_of(c->site, r);
        out->value[out->n] = (double)r->value;
        out->noise[out->n++] = (double)r->noise;
    }
}

static struct drawn draw(struct arena *a, const struct campaign_readings *c, int n_alone,
                         int n_beside, struct rng *chance)
{
    int *order = ARENA_ARRAY(a, int, (size_t)c->n), n = 0;
    size_t room = (size_t)n_alone + (size_t)n_beside;
    struct drawn out = { ARENA_ARRAY(a, struct effects, room),
                         ARENA_ARRAY(a, double, room),
                         ARENA_ARRAY(a, double, room),
                         0,
                         { 1, 1 } };

    for (int beside = 0; beside < 2; beside++) {
        n = 0;
        for (int i = 0; i < c->n; i++)
            if ((c->list[i].of != READ_ALONE) == beside)
                order[n++] = i;
        int most = beside ? n_beside : n_alone;
        draw_some(c, order, n, most, chance, &out);
        out.weight[beside] = n > most ? (double)n / most : 1;
    }
    return out;
}

/* How far from where it began a fit may go: sd of ln variances; of slopes' means around 0. The
 * intercepts are free.
 */
#define VARIANCE_SD 1.0
#define ALONE_MEAN_SD 0.2
#define BESIDE_MEAN_SD 0.3

static void shrink(const struct hyper *h, const struct hyper *start, double *slope)
{
    for (int i = 0; i < VARIANCES; i++)
        slope[i] += (h->at[i] - start->at[i]) / (VARIANCE_SD * VARIANCE_SD);
    for (int i = 1; i <= ALONE_X; i++)
        slope[ALONE_MEAN + i] += h->at[ALONE_MEAN + i] / (ALONE_MEAN_SD * ALONE_MEAN_SD);
    for (int i = 1; i <= BESIDE_X; i++)
        slope[BESIDE_MEAN + i] += h->at[BESIDE_MEAN + i] / (BESIDE_MEAN_SD * BESIDE_MEAN_SD);
}

/* No campaign has more say than this in a step about a parameter, however many readings it has:
 * one that is unlike all others would have the last word.
 */
#define SAY_MOST 3.0

int hyper_fit(const struct campaign_readings *campaigns, int n, const struct fit_options *o,
              struct hyper *out, struct err *e)
{
    struct climb climb = { .rate = 0.05 };
    struct arena a;
    struct rng chance;
    const struct hyper start = hyper_start();
    int rc = 0;

    *out = start;
    arena_init(&a);
    rng_init(&chance, o->seed, "hierarchical fit");
    for (int step = 0; step < o->n_steps && rc == 0; step++) {
        double slope[HYPERS] = { 0 }, loss;
        for (int i = 0; i < n && rc == 0; i++) {
            struct drawn d = draw(&a, &campaigns[i], o->n_alone, o->n_beside, &chance);
            double own[HYPERS] = { 0 };
            rc = hyper_loss(&a, out, d.at, d.value, d.noise, d.n, &loss, own, e);
            for (int x = 0; x < HYPERS; x++)
                slope[x] += fmin(fmax(own[x], -SAY_MOST), SAY_MOST);
            arena_reset(&a);
        }
        shrink(out, &start, slope);
        climb_step(&climb, slope, HYPERS, out->at);
    }
    arena_release(&a);
    return rc;
}

/* Fewer readings say nothing about variances. More are drawn anew in each step. */
#define REFIT_LEAST 8
#define REFIT_MOST 200
#define REFIT_STEPS 30
#define REFIT_SD 1.0    // of ln variances, around the campaigns'

int hyper_refit(const struct hyper *around, const struct campaign_readings *site, uint64_t seed,
                struct hyper *out, struct err *e)
{
    struct climb climb = { .rate = 0.08 };
    struct arena a;
    struct rng chance;
    int rc = 0;

    *out = *around;
    if (site->n < REFIT_LEAST)
        return 0;
    arena_init(&a);
    rng_init(&chance, seed, "hierarchical refit");
    for (int step = 0; step < REFIT_STEPS && rc == 0; step++) {
        double slope[HYPERS] = { 0 }, loss;
        struct drawn d = draw(&a, site, REFIT_MOST, REFIT_MOST, &chance);
        rc = hyper_loss(&a, out, d.at, d.value, d.noise, d.n, &loss, slope, e);
        for (int i = 0; i < VARIANCES; i++)
            slope[i] = slope[i] * d.weight[i >= BESIDE_SITE] +
                       (out->at[i] - around->at[i]) / (REFIT_SD * REFIT_SD);
        slope[ALONE_SMOOTH] = slope[ALONE_SCALE] = 0;
        climb_step(&climb, slope, VARIANCES, out->at);
        arena_reset(&a);
    }
    arena_release(&a);
    return rc;
}

/* ---- calibration ---- */

/* What is foreseen, and how: speeds alone and slowdowns from other families, and the former with
 * one of the workload's own.
 */
enum { FROM_OTHERS, BESIDE_OTHERS, FROM_OWN, WAYS };

/* Squared errors over their variances, and absolute ones: the sums, of how many. */
struct misses {
    double sum, sum_abs;
    int n;
};

static void miss(struct misses *m, double off, double variance)
{
    m->sum += off * off / fmax(variance, 1e-6);
    m->sum_abs += fabs(off);
    m->n++;
}

/* Had the family never been seen: the mean over its readings of each kind, added to 'all' where
 * there are any.
 */
static int leave_family(struct arena *a, const struct gp *g, const struct effects *at,
                        const double *left, int family, struct misses all[WAYS], struct err *e)
{
    int *block = ARENA_ARRAY(a, int, (size_t)g->n), m = 0;
    struct misses own[WAYS] = { { 0 } };

    for (int i = 0; i < g->n; i++)
        if (at[i].family == family || at[i].by_family == family)
            block[m++] = i;
    double *off = ARENA_ARRAY(a, double, (size_t)m);
    double *cov = ARENA_ARRAY(a, double, (size_t)m *(size_t)m);
    int rc = gp_leave_out(a, g, left, m, block, off, cov, e);
    for (int i = 0; i < m && rc == 0; i++)
        off[i] = left[block[i]] - off[i];
    for (int i = 0; i < m && rc == 0; i++) {
        const struct effects *of = &at[block[i]];
        const double *c = &cov[(size_t)i * (size_t)m];
        miss(&own[of->of == READ_ALONE ? FROM_OTHERS : BESIDE_OTHERS], off[i], c[i]);
        for (int j = 0; j < m && of->of == READ_ALONE; j++) {
            double pull = c[j] / cov[(size_t)j * (size_t)m + (size_t)j];
            if (j != i && at[block[j]].of == READ_ALONE && at[block[j]].job == of->job)
                miss(&own[FROM_OWN], off[i] - pull * off[j], c[i] - pull * c[j]);
        }
    }
    for (int k = 0; k < WAYS && rc == 0; k++) {
        all[k].sum += own[k].n ? own[k].sum / own[k].n : 0;
        all[k].sum_abs += own[k].n ? own[k].sum_abs / own[k].n : 0;
        all[k].n += own[k].n > 0;
    }
    return rc;
}

/* As many families as agree with the model are assumed to have been seen before. */
#define CALIBRATE_PRIOR 3.0

static double scale_of(const struct misses *m)
{
    return fmax(1, sqrt((m->sum + CALIBRATE_PRIOR) / (m->n + CALIBRATE_PRIOR)));
}

/* Readings that are looked at: a cube, and a hundred families are no surer than ten. */
#define CALIBRATE_MOST 300

static double error_of(const struct misses *all)
{
    double sum = 0;
    int n = 0;

    for (int k = FROM_OTHERS; k <= BESIDE_OTHERS; k++) {
        sum += all[k].n ? all[k].sum_abs / all[k].n : 0;
        n += all[k].n > 0;
    }
    return n ? sum / n : (double)NAN;
}

int hyper_calibrate(const struct hyper *h, const struct campaign_readings *site, int half,
                    struct hyper_scale *out, struct err *e)
{
    struct variances v = hyper_variances(h);
    struct misses all[WAYS] = { { 0 } };
    struct arena a;
    struct rng chance;
    struct gp g;

    arena_init(&a);
    rng_init(&chance, 1, "hierarchical calibrate");
    struct drawn d = draw(&a, site, CALIBRATE_MOST, CALIBRATE_MOST, &chance);
    double *k = ARENA_ARRAY(&a, double, (size_t)d.n *(size_t)d.n);
    for (int i = 0; i < d.n; i++)
        d.value[i] -= effects_mean(h, &d.at[i]);
    fill_covariance(&v, d.at, d.noise, d.n, k);
    int rc = gp_fit(&a, d.n, k, d.value, &g, e);
    for (int f = 0; f < site->site->n_families && rc == 0; f++)
        if (half < 0 || f % 2 == half)
            rc = leave_family(&a, &g, d.at, d.value, f, all, e);
    *out = (struct hyper_scale){ .alone = scale_of(&all[FROM_OTHERS]),
                                 .beside = scale_of(&all[BESIDE_OTHERS]),
                                 .error = error_of(all) };
    out->known = fmax(out->alone, scale_of(&all[FROM_OWN]));
    arena_release(&a);
    return rc;
}
