#include "estimate/estimate.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/catalog.h"
#include "catalog/state.h"
#include "estimate/power.h"
#include "estimate/prior.h"
#include "estimate/roofline.h"

void estimator_init(struct estimator *e, const struct catalog *c, double z)
{
    *e = (struct estimator){ .catalog = c, .z = z };
}

void estimator_release(struct estimator *e)
{
    free(e->cells);
    free(e->alone_w);
    free(e->on);
    free(e->seen);
}

/* ---- one cell ---- */

/* Has it been seen to fit, or not to? Otherwise memory decides. */
static double unfit_of(const struct catalog *c, int w, int type, int neighbour, double prior)
{
    struct cell_key key = { .workload = w, .gpu_type = type, .neighbour = neighbour, .n_gpus = 1 };
    const struct cell *seen = catalog_cell(c, key);

    if (!seen || (!seen->n_speed && !seen->n_unfit))
        return prior;
    return seen->n_speed ? 0 : 1;
}

static struct cell_estimate make_cell(const struct estimator *e, int w, int type, int neighbour)
{
    const struct roofline *on = &e->on[w * e->n_types + type];
    const struct roofline *beside = neighbour < 0 ? NULL : &e->on[neighbour * e->n_types + type];
    const struct stored_estimate *kept = catalog_estimate(e->catalog, w, type, neighbour);
    struct prior prior;

    prior_of(on, beside, e->catalog->types[type].mem_bytes, &prior);
    double ln_speed = kept ? (double)kept->ln_speed : prior.ln_speed;
    double sd = kept ? (double)kept->ln_speed_sd : hypot(prior.alone_sd, prior.beside_sd);
    return (struct cell_estimate){
        .speed = (float)exp(ln_speed),
        .low = (float)exp(ln_speed - e->z * sd),
        .sd = (float)sd,
        .unfit = (float)unfit_of(e->catalog, w, type, neighbour, prior.unfit),
    };
}

static double make_watts(const struct estimator *e, int w, int type)
{
    const struct stored_estimate *kept = catalog_estimate(e->catalog, w, type, -1);

    if (kept && !isnan(kept->ln_watts))
        return exp((double)kept->ln_watts);
    return roofline_watts(&e->on[w * e->n_types + type], &e->catalog->types[type]);
}

/* ---- the table ---- */

static void *table(size_t n, size_t size)
{
    void *t = calloc(n ? n : 1, size);

    assert(t);    // out of memory: stop
    return t;
}

/* Room for more workloads, other types or other figures: start again, all is derived. */
static void make_room(struct estimator *e, int n_workloads, int n_types)
{
    estimator_release(e);
    while (e->stride < n_workloads + 1)
        e->stride = e->stride ? 2 * e->stride : 32;
    size_t rows = (size_t)e->stride * (size_t)n_types;
    e->cells = table(rows * (size_t)e->stride, sizeof *e->cells);
    e->alone_w = table(rows, sizeof *e->alone_w);
    e->on = table(rows, sizeof *e->on);
    e->seen = table((size_t)e->stride, sizeof *e->seen);
    e->n_types = n_types;
    e->n_workloads = e->n_filled = 0;
}

static void fill_cells(struct estimator *e, int w, int from, int to)
{
    for (int type = 0; type < e->n_types; type++)
        for (int n = from; n < to; n++)
            e->cells[((long)w * e->n_types + type) * e->stride + n + 1] = make_cell(e, w, type, n);
}

static void fill_row(struct estimator *e, int w)
{
    fill_cells(e, w, -1, e->n_workloads);
    for (int type = 0; type < e->n_types; type++)
        e->alone_w[w * e->n_types + type] = make_watts(e, w, type);
    e->seen[w] = e->catalog->revision[w];
}

void estimate_meet(struct estimator *e)
{
    const struct catalog *c = e->catalog;

    if (c->n_workloads + 1 > e->stride || c->n_types != e->n_types ||
        c->descriptions != e->descriptions) {
        make_room(e, c->n_workloads, c->n_types);
        e->descriptions = c->descriptions;
    }
    for (int w = e->n_workloads; w < c->n_workloads; w++)
        for (int type = 0; type < e->n_types; type++)
            prior_roofline(c, w, type, &e->on[w * e->n_types + type]);
    e->n_workloads = c->n_workloads;
}

void estimate_refresh(struct estimator *e)
{
    estimate_meet(e);
    for (int w = 0; w < e->n_workloads; w++) {
        if (w >= e->n_filled || e->seen[w] != e->catalog->revision[w])
            fill_row(e, w);
        else if (e->n_filled < e->n_workloads)
            fill_cells(e, w, e->n_filled, e->n_workloads);
    }
    e->n_filled = e->n_workloads;
}

/* ---- questions ---- */

double estimate_speed(const struct estimator *e, int workload, int type, const int *others, int n,
                      double *low)
{
    const struct cell_estimate *alone = estimate_cell(e, workload, type, -1);
    const struct cell_estimate *one = n == 1 ? estimate_cell(e, workload, type, others[0]) : alone;
    double speed = (double)one->speed;
    double held = n > 1 ? speed : (double)one->low;

    for (int i = 0; i < n && n > 1; i++) {
        const struct cell_estimate *beside = estimate_cell(e, workload, type, others[i]);
        speed *= fmin((double)(beside->speed / alone->speed), 1);
        held *= fmin((double)(beside->low / alone->speed), 1);
    }
    if (low)
        *low = held;
    return speed;
}

double estimate_gang_speed(const struct estimator *e, int workload, int type, int n_gpus,
                           int is_spread, double *low)
{
    struct cell_key key = { .workload = workload,
                            .gpu_type = type,
                            .neighbour = -1,
                            .n_gpus = n_gpus,
                            .is_spread = is_spread };
    const struct cell_estimate *alone = estimate_cell(e, workload, type, -1);
    const struct cell *seen = n_gpus > 1 ? catalog_cell(e->catalog, key) : NULL;
    double speed = (double)alone->speed, held = (double)alone->low;

    if (seen && seen->n_speed) {
        speed = exp(seen->ln_speed);
        held = speed * exp(-e->z * sqrt(cell_variance(seen)));
    } else if (n_gpus > 1) {
        speed *= roofline_gang(n_gpus, is_spread);
        held *= roofline_gang(n_gpus, is_spread);
    }
    if (low)
        *low = held;
    return speed;
}

double estimate_unfit(const struct estimator *e, int type, const int *workloads, int n)
{
    double worst = 0, bytes = 0;

    for (int i = 0; i < n; i++) {
        bytes += e->on[workloads[i] * e->n_types + type].mem_bytes;
        worst = fmax(worst, (double)estimate_cell(e, workloads[i], type, -1)->unfit);
        for (int k = 0; k < n; k++)
            if (k != i)
                worst =
                    fmax(worst, (double)estimate_cell(e, workloads[i], type, workloads[k])->unfit);
    }
    if (n > 2)    // no cell knows of three: memory decides
        worst = fmax(worst, prior_unfit(bytes, e->catalog->types[type].mem_bytes, n));
    return worst;
}

double estimate_watts(const struct estimator *e, int type, const int *workloads,
                      const double *rates, int n)
{
    const struct gpu_type *g = &e->catalog->types[type];
    double alone_w[THETA_MAX], share[THETA_MAX];
    int others[THETA_MAX];

    assert(n <= THETA_MAX);
    if (n == 0)
        return g->sleep_w > 0 ? g->sleep_w : 0;
    for (int i = 0; i < n; i++) {
        int n_others = 0;
        for (int k = 0; k < n; k++)
            if (k != i)
                others[n_others++] = workloads[k];
        double alone = (double)estimate_cell(e, workloads[i], type, -1)->speed;
        double speed = estimate_speed(e, workloads[i], type, others, n_others, NULL);
        if (rates && rates[i] > 0)
            speed = fmin(speed, rates[i]);
        alone_w[i] = e->alone_w[workloads[i] * e->n_types + type];
        share[i] = fmin(speed / alone, 1);
    }
    return power_shared_w(g, alone_w, share, n);
}
