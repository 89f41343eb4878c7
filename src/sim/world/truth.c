#include "sim/world/truth.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/grow.h"
#include "base/rng.h"
#include "catalog/catalog.h"
#include "estimate/estimate.h"
#include "estimate/prior/power.h"
#include "estimate/prior/roofline.h"

static int truth_init(struct truth *t, const struct catalog *c, struct err *e)
{
    const size_t cells = (size_t)c->n_workloads * (size_t)c->n_types;

    if (cells == 0)
        return err_set(e, EINVAL, "ground truth: the catalog has no %s: import measurements first",
                       c->n_types == 0 ? "GPU types" : "workloads");
    *t = (struct truth){ .catalog = c, .n_types = c->n_types, .n_workloads = c->n_workloads };
    t->speed = heap_array(cells, sizeof *t->speed);
    t->watts = heap_array(cells, sizeof *t->watts);
    t->bend = heap_array(cells, sizeof *t->bend);
    t->slowdown = heap_array(cells * (size_t)c->n_workloads, sizeof *t->slowdown);
    return 0;
}

void truth_release(struct truth *t)
{
    free(t->speed);
    free(t->watts);
    free(t->slowdown);
    free(t->bend);
    *t = (struct truth){ 0 };
}

int truth_find_type(const struct truth *t, const char *name)
{
    return catalog_find_type_alike(t->catalog, name);
}

int truth_find_workload(const struct truth *t, const char *name)
{
    return catalog_find_workload_alike(t->catalog, name);
}

int truth_reference(const struct truth *t, const char *name)
{
    int type = truth_find_type(t, name != NULL ? name : "p100");

    return type < 0 && name == NULL ? 0 : type;
}

int truth_counted_on(const struct truth *t, int workload, int reference)
{
    if (truth_speed(t, workload, reference) > 0)
        return reference;
    for (int a = 0; a < t->n_types; a++)
        if (truth_speed(t, workload, a) > 0)
            return a;
    return -1;
}

/* Where the rooflines of all workloads on all types stand while a truth is made. */
static struct roofline *rooflines(const struct catalog *c)
{
    struct roofline *r = heap_array((size_t)c->n_workloads * (size_t)c->n_types, sizeof *r);

    for (int w = 0; w < c->n_workloads; w++) {
        for (int a = 0; a < c->n_types; a++)
            roofline(&c->workloads[w], &c->types[a], &r[w * c->n_types + a]);
    }
    return r;
}

/* ---- what is hidden ---- */

/* A normal number that belongs to a few names and the seed, whoever else is there. */
static double hidden(uint64_t seed, const char *what, const char *a, const char *b, const char *c)
{
    char purpose[720];
    struct rng rng;

    snprintf(purpose, sizeof purpose, "%s\x1f%s\x1f%s\x1f%s", what, a, b, c);
    rng_init(&rng, seed, purpose);
    return rng_normal(&rng);
}

/* The logarithm of how far workload 'w' on type 'g' is off the model, for sd 1. */
static double hidden_pair(uint64_t seed, const char *what, const struct workload *w,
                          const struct gpu_type *g)
{
    const char *family = w->family != NULL ? w->family : w->name;

    return 0.8 * hidden(seed, what, "family", family, g->name) +
           0.6 * hidden(seed, what, "own", w->name, g->name);
}

double truth_hidden(const struct truth *t, const char *what, int workload, int type, int neighbour)
{
    const struct workload *w = t->catalog->workloads;

    if (t->hides <= 0)
        return 0;
    return t->hides * hidden(t->seed, what, w[workload].name, t->catalog->types[type].name,
                             neighbour >= 0 ? w[neighbour].name : "");
}

/* How each workload on each type differs from the law of limits; 'scale' of 0: not at all. */
static void hide_bends(struct truth *t, uint64_t seed, double scale)
{
    for (int w = 0; w < t->n_workloads; w++) {
        const struct workload *work = &t->catalog->workloads[w];

        for (int a = 0; a < t->n_types; a++) {
            const struct gpu_type *g = &t->catalog->types[a];

            t->bend[w * t->n_types + a] = (struct limit_bend){
                .loss = exp(scale * LIMITS_LOSS_SD * hidden_pair(seed, "limit loss", work, g)),
                .draw = exp(scale * LIMITS_DRAW_SD * hidden_pair(seed, "limit draw", work, g)),
            };
        }
    }
}

/* ---- from measurements ---- */

static const struct cell *cell_of(const struct catalog *c, int w, int a, int neighbour)
{
    return catalog_cell(
        c, (struct cell_key){ .workload = w, .gpu_type = a, .neighbour = neighbour, .n_gpus = 1 });
}

static bool fits(const struct roofline *r, const struct gpu_type *g)
{
    return !(r->mem_bytes > g->mem_bytes);    // of unknown size: it does
}

/* How far measurements of 'w' are from the model, as the mean of the logarithm over types;
 * NaN when there are none.
 */
static double measured_over_model(const struct truth *t, const struct roofline *r, int w,
                                  bool is_watts)
{
    const struct catalog *c = t->catalog;
    double sum = 0;
    int n = 0;

    for (int a = 0; a < t->n_types; a++) {
        const struct cell *cell = cell_of(c, w, a, -1);
        const struct roofline *model = &r[w * t->n_types + a];

        if (cell == NULL || (is_watts ? cell->n_watts : cell->n_speed) == 0)
            continue;
        sum += is_watts ? cell->ln_watts - log(roofline_watts(model, &c->types[a]))
                        : cell->ln_speed + log(model->step_s);
        n++;
    }
    return n > 0 ? sum / n : (double)NAN;
}

static int fill_speeds(struct truth *t, const struct roofline *r, int w, int *n_filled,
                       struct err *e)
{
    const struct catalog *c = t->catalog;
    double off = measured_over_model(t, r, w, false);

    for (int a = 0; a < t->n_types; a++) {
        const struct cell *cell = cell_of(c, w, a, -1);
        const struct roofline *model = &r[w * t->n_types + a];
        double *speed = &t->speed[w * t->n_types + a];

        if (cell != NULL && cell->n_speed > 0) {
            *speed = exp(cell->ln_speed);
            continue;
        }
        if (cell != NULL && cell->n_unfit > 0)
            continue;
        if (isnan(off) && isnan(c->workloads[w].flop_per_sample))
            return err_set(e, EINVAL,
                           "ground truth: workload '%s' has neither a measured speed nor "
                           "a descriptor: import one of them, or leave the workload out",
                           c->workloads[w].name);
        if (fits(model, &c->types[a]))
            *speed = exp(isnan(off) ? 0 : off) / model->step_s;
        ++*n_filled;
    }
    return 0;
}

static void fill_watts(struct truth *t, const struct roofline *r, int w, int *n_filled)
{
    const struct catalog *c = t->catalog;
    double off = measured_over_model(t, r, w, true);

    for (int a = 0; a < t->n_types; a++) {
        const struct cell *cell = cell_of(c, w, a, -1);
        const struct gpu_type *g = &c->types[a];
        double *watts = &t->watts[w * t->n_types + a];

        if (cell != NULL && cell->n_watts > 0) {
            *watts = exp(cell->ln_watts);
            continue;
        }
        *watts = roofline_watts(&r[w * t->n_types + a], g) * exp(isnan(off) ? 0 : off);
        *watts = fmin(fmax(*watts, g->idle_w), g->cap_w);
        ++*n_filled;
    }
}

static double pair_model(const struct truth *t, const struct roofline *r, int w, int a, int n)
{
    const struct roofline *x = &r[w * t->n_types + a], *y = &r[n * t->n_types + a];

    if (x->mem_bytes + y->mem_bytes > t->catalog->types[a].mem_bytes)
        return 0;
    return roofline_slowdown(x, y);
}

static void fill_slowdowns(struct truth *t, const struct roofline *r, int w, int a, int *n_filled)
{
    float *slowdown = &t->slowdown[((long)w * t->n_types + a) * t->n_workloads];
    double alone = truth_speed(t, w, a);

    for (int n = 0; n < t->n_workloads; n++) {
        const struct cell *cell = cell_of(t->catalog, w, a, n);

        if (cell != NULL && cell->n_speed > 0 && alone > 0) {
            slowdown[n] = (float)fmin(exp(cell->ln_speed) / alone, 1);
        } else if (cell == NULL || cell->n_unfit == 0) {
            slowdown[n] = (float)pair_model(t, r, w, a, n);
            ++*n_filled;
        }
    }
}

/* Measured truths are one world, whatever the seed of a run. */
#define MEASURED_SEED 1

int truth_from_catalog(struct truth *t, const struct catalog *c, int *n_filled, struct err *e)
{
    struct roofline *r;
    int rc = truth_init(t, c, e);

    if (rc < 0)
        return rc;
    *n_filled = 0;
    r = rooflines(c);
    for (int w = 0; w < t->n_workloads && rc == 0; w++) {
        rc = fill_speeds(t, r, w, n_filled, e);
        fill_watts(t, r, w, n_filled);
        for (int a = 0; a < t->n_types; a++)
            fill_slowdowns(t, r, w, a, n_filled);
    }
    free(r);
    t->seed = MEASURED_SEED;
    t->hides = 1;
    hide_bends(t, t->seed, t->hides);
    if (rc < 0)
        truth_release(t);
    return rc;
}

/* ---- from descriptors ---- */

static void derive_alone(struct truth *t, const struct roofline *r, int w, int a, uint64_t seed,
                         double spread)
{
    const struct workload *work = &t->catalog->workloads[w];
    const struct gpu_type *g = &t->catalog->types[a];
    const struct roofline *model = &r[w * t->n_types + a];
    double dynamic_w = roofline_watts(model, g) - g->idle_w;

    if (fits(model, g))
        t->speed[w * t->n_types + a] =
            exp(spread * hidden_pair(seed, "speed", work, g)) / model->step_s;
    dynamic_w *= exp(spread / 2 * hidden_pair(seed, "watts", work, g));
    t->watts[w * t->n_types + a] = fmin(g->idle_w + dynamic_w, g->cap_w);
}

static void derive_slowdowns(struct truth *t, const struct roofline *r, int w, int a, uint64_t seed,
                             double spread)
{
    const struct catalog *c = t->catalog;
    float *slowdown = &t->slowdown[((long)w * t->n_types + a) * t->n_workloads];

    for (int n = 0; n < t->n_workloads; n++) {
        double model = pair_model(t, r, w, a, n), off;

        if (model == 0)
            continue;
        off = hidden(seed, "beside", c->workloads[w].name, c->types[a].name, c->workloads[n].name);
        slowdown[n] = (float)pow(model, exp(spread / 2 * off));
    }
}

int truth_analytic(struct truth *t, const struct catalog *c, uint64_t seed, double spread,
                   struct err *e)
{
    struct roofline *r;
    int rc = truth_init(t, c, e);

    if (rc < 0)
        return rc;
    r = rooflines(c);
    for (int w = 0; w < t->n_workloads; w++) {
        for (int a = 0; a < t->n_types; a++) {
            derive_alone(t, r, w, a, seed, spread);
            derive_slowdowns(t, r, w, a, seed, spread);
        }
    }
    t->seed = seed;
    t->hides = spread > 0 ? 1 : 0;
    hide_bends(t, t->seed, t->hides);
    free(r);
    return 0;
}

/* ---- from beliefs ---- */

#define PROBABLE 0.5    // chance from which on something does not fit

static void believe_alone(struct truth *t, const struct estimator *est, int w, int a)
{
    const struct cell *cell = cell_of(t->catalog, w, a, -1);
    struct cell_estimate is = estimate_cell(est, w, a, -1);
    int at = w * t->n_types + a;

    if (cell != NULL && cell->n_speed > 0)
        t->speed[at] = exp(cell->ln_speed);
    else
        t->speed[at] = (double)is.unfit > PROBABLE ? 0 : (double)is.speed;
    t->watts[at] = cell != NULL && cell->n_watts > 0 ? exp(cell->ln_watts) : (double)is.watts;
    t->bend[at] = estimate_bend(est, w, a);
}

static void believe_pairs(struct truth *t, const struct estimator *est, int w, int a)
{
    float *slowdown = &t->slowdown[((long)w * t->n_types + a) * t->n_workloads];
    double alone = (double)estimate_cell(est, w, a, -1).speed;

    for (int n = 0; n < t->n_workloads; n++) {
        const struct cell *cell = cell_of(t->catalog, w, a, n);
        struct cell_estimate is = estimate_cell(est, w, a, n);

        if (cell != NULL && cell->n_speed > 0 && truth_speed(t, w, a) > 0)
            slowdown[n] = (float)fmin(exp(cell->ln_speed) / truth_speed(t, w, a), 1);
        else if ((double)is.unfit <= PROBABLE)
            slowdown[n] = (float)fmin((double)is.speed / alone, 1);
    }
}

int truth_from_beliefs(struct truth *t, const struct catalog *c, const struct estimator *est,
                       struct err *e)
{
    int rc = truth_init(t, c, e);

    if (rc < 0)
        return rc;
    assert(est->catalog == c && est->n_workloads == c->n_workloads && est->n_types == c->n_types);
    for (int w = 0; w < t->n_workloads; w++) {
        for (int a = 0; a < t->n_types; a++) {
            believe_alone(t, est, w, a);
            believe_pairs(t, est, w, a);
        }
    }
    return 0;
}

struct limited truth_drawn(const struct truth *t, enum power_model model, const struct gpu_type *g,
                           int type, const struct truth_residents *on, int limit_w)
{
    double alone_w[THETA_MAX], dynamic_w[THETA_MAX];
    struct limit_bend bend[THETA_MAX];
    struct limited freely, limited;

    for (int i = 0; i < on->n; i++) {
        alone_w[i] = truth_watts(t, on->workload[i], type);
        dynamic_w[i] = power_dynamic_w(g, alone_w[i], on->share[i]);
        bend[i] = truth_bend(t, on->workload[i], type);
    }
    freely = power_drawn(model, g, alone_w, on->share, on->n);
    limited = limits_bent(g, limit_w, freely.watts, limit_bend_mean(bend, dynamic_w, on->n));
    limited.speed *= freely.speed;
    return limited;
}

double truth_gang_speed(const struct truth *t, int workload, int type, int n, int is_spread)
{
    double alone = truth_speed(t, workload, type);
    const struct cell *cell;

    if (n == 1 || alone == 0)
        return alone;
    cell = catalog_cell(t->catalog, (struct cell_key){ .workload = workload,
                                                       .gpu_type = type,
                                                       .neighbour = -1,
                                                       .n_gpus = n,
                                                       .is_spread = is_spread != 0 });
    if (cell != NULL && cell->n_speed > 0)
        return exp(cell->ln_speed);
    return alone * roofline_gang(n, is_spread);
}
