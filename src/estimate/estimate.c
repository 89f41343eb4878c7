#include "estimate/estimate.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/catalog.h"
#include "catalog/cluster/state.h"
#include "estimate/p1/p1.h"
#include "estimate/prior/power.h"
#include "estimate/prior/prior.h"
#include "estimate/prior/roofline.h"

void estimator_init(struct estimator *e, const struct catalog *c, double z)
{
    *e = (struct estimator){ .catalog = c, .z = z };
}

void estimator_release(struct estimator *e)
{
    free(e->cells);
    free(e->alone_w);
    free(e->watts_sd);
    free(e->bend);
    free(e->on);
    free(e->seen);
    free(e->column_seen);
    p1_context_destroy(e->context);
    e->context = NULL;
}

void estimate_use(struct estimator *e, const struct p1 *p1)
{
    e->p1 = p1;
    e->stride = 0;    // no catalog fits: the table, and the context of the last P1, are made anew
    e->n_workloads = e->n_filled = 0;    // until then there is nobody to ask about
}

/* ---- before anything was measured ---- */

static void roofline_prior(const struct estimator *e, int w, int type, int neighbour,
                           struct prior *out)
{
    const struct roofline *on = &e->on[w * e->n_types + type];
    const struct roofline *beside = neighbour < 0 ? NULL : &e->on[neighbour * e->n_types + type];

    prior_of(on, beside, e->catalog->types[type].mem_bytes, out);
}

/* As many neighbours as are asked about at once. */
enum { ASKED = 256 };

static void p1_prior(const struct estimator *e, int w, int type, int from, int to,
                     struct prior *out)
{
    struct p1_alone alone = p1_alone(e->context, w, type);
    double z = (double)alone.ln_speed_sd, cross = p1_cross(e->context, alone.regime);
    float ln_r[ASKED] = { 0 }, sd[ASKED] = { 0 };
    int n_lone = from < 0;

    assert(to - from <= ASKED);
    if (from + n_lone < to)
        p1_beside(e->context, w, type, from + n_lone, to, ln_r + n_lone, sd + n_lone);
    for (int i = 0; i < to - from; i++)
        out[i] = (struct prior){
            .ln_speed = (double)(alone.ln_speed + ln_r[i]),
            .alone_sd = z,
            .beside_sd = (double)sd[i],
            .sd = sqrt(z * z + (double)(sd[i] * sd[i]) + 2 * cross * z * (double)sd[i]),
            .unfit = p1_unfit(e->context, w, type, from + i),
        };
}

void estimate_prior(const struct estimator *e, int workload, int type, int from, int to,
                    struct prior *out)
{
    if (e->context)
        p1_prior(e, workload, type, from, to, out);
    else
        for (int n = from; n < to; n++)
            roofline_prior(e, workload, type, n, &out[n - from]);
}

double estimate_prior_watts(const struct estimator *e, int workload, int type, double *sd)
{
    if (e->context) {
        struct p1_alone alone = p1_alone(e->context, workload, type);
        if (sd)
            *sd = (double)alone.ln_watts_sd;
        return (double)alone.ln_watts;
    }
    if (sd)
        *sd = ROOFLINE_WATTS_SD;
    return log(roofline_watts(&e->on[workload * e->n_types + type], &e->catalog->types[type]));
}

/* ---- one cell ---- */

/* Has it been seen to fit, or not to? Otherwise memory decides, and what it was built for. */
static double unfit_of(const struct catalog *c, int w, int type, int neighbour, double prior)
{
    struct cell_key key = { .workload = w, .gpu_type = type, .neighbour = neighbour, .n_gpus = 1 };
    const struct cell *seen = catalog_cell(c, key);

    if (!seen || (!seen->n_speed && !seen->n_unfit))
        return workload_may_run(&c->workloads[w], &c->types[type]) ? prior : 1;
    return seen->n_speed ? 0 : 1;
}

static struct cell_estimate make_cell(const struct estimator *e, int w, int type, int neighbour,
                                      const struct prior *prior)
{
    const struct stored_estimate *kept = catalog_estimate(e->catalog, w, type, neighbour);
    double mean = kept ? (double)kept->ln_speed : prior->ln_speed;
    double sd = kept ? (double)kept->ln_speed_sd : prior->sd;
    double speed = exp(mean - sd * sd / 2);

    return (struct cell_estimate){
        .speed = (float)speed,
        .low = (float)fmin(exp(mean - e->z * sd), speed),
        .sd = (float)sd,
        .unfit = (float)unfit_of(e->catalog, w, type, neighbour, prior->unfit),
    };
}

static double make_watts(const struct estimator *e, int w, int type, float *sd)
{
    const struct stored_estimate *kept = catalog_estimate(e->catalog, w, type, -1);
    double prior_sd = NAN;

    if (kept && !isnan(kept->ln_watts)) {
        *sd = kept->ln_watts_sd;
        return exp((double)kept->ln_watts);
    }
    double watts = exp(estimate_prior_watts(e, w, type, &prior_sd));
    *sd = (float)prior_sd;
    return watts;
}

static struct limit_bend make_bend(const struct estimator *e, int w, int type)
{
    const struct stored_estimate *kept = catalog_estimate(e->catalog, w, type, -1);

    if (!kept || !(kept->loss_sd > 0))
        return limit_law;
    return (struct limit_bend){ .loss = exp((double)kept->ln_loss),
                                .draw = exp((double)kept->ln_draw),
                                .loss_sd = (double)kept->loss_sd,
                                .at = (double)kept->loss_at };
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
    e->watts_sd = table(rows, sizeof *e->watts_sd);
    e->bend = table(rows, sizeof *e->bend);
    for (size_t i = 0; i < rows; i++)
        e->bend[i] = limit_law;
    e->on = table(rows, sizeof *e->on);
    e->seen = table((size_t)e->stride, sizeof *e->seen);
    e->column_seen = table((size_t)e->stride, sizeof *e->column_seen);
    e->n_types = n_types;
    e->n_workloads = e->n_filled = 0;
    e->context = e->p1 ? p1_context_create(e->p1, n_types) : NULL;
}

static void fill_cells(struct estimator *e, int w, int from, int to)
{
    for (int type = 0; type < e->n_types; type++) {
        struct cell_estimate *row = &e->cells[((long)w * e->n_types + type) * e->stride + 1];
        for (int at = from; at < to; at += ASKED) {
            struct prior prior[ASKED];
            int end = at + ASKED < to ? at + ASKED : to;
            estimate_prior(e, w, type, at, end, prior);
            for (int n = at; n < end; n++)
                row[n] = make_cell(e, w, type, n, &prior[n - at]);
        }
    }
}

static void fill_row(struct estimator *e, int w)
{
    fill_cells(e, w, -1, e->n_workloads);
    for (int type = 0; type < e->n_types; type++) {
        int at = w * e->n_types + type;
        e->alone_w[at] = make_watts(e, w, type, &e->watts_sd[at]);
        e->bend[w * e->n_types + type] = make_bend(e, w, type);
    }
    e->seen[w] = e->catalog->revision[w];
}

static void show_to_p1(struct estimator *e, int w)
{
    const struct workload *about = &e->catalog->workloads[w];
    struct identity who = identity_of(about);
    struct features *on = table((size_t)e->n_types, sizeof *on);

    for (int type = 0; type < e->n_types; type++)
        features_of(about, &e->catalog->types[type], &on[type]);
    p1_context_add(e->context, &who, on);
    free(on);
}

void estimate_meet(struct estimator *e)
{
    const struct catalog *c = e->catalog;

    if (c->n_workloads + 1 > e->stride || c->n_types != e->n_types ||
        c->descriptions != e->descriptions) {
        make_room(e, c->n_workloads, c->n_types);
        e->descriptions = c->descriptions;
    }
    for (; e->n_workloads < c->n_workloads; e->n_workloads++) {
        for (int type = 0; type < e->n_types; type++)
            roofline(&c->workloads[e->n_workloads], &c->types[type],
                     &e->on[e->n_workloads * e->n_types + type]);
        if (e->context)
            show_to_p1(e, e->n_workloads);
    }
}

/* Of the rows that stay, cells beside those of which something was learned. */
static void refill_columns(struct estimator *e)
{
    for (int n = 0; n < e->n_workloads; n++) {
        bool is_old = n < e->n_filled && e->column_seen[n] != e->catalog->column_revision[n];
        for (int w = 0; w < e->n_filled && is_old; w++)
            fill_cells(e, w, n, n + 1);
        e->column_seen[n] = e->catalog->column_revision[n];
    }
}

void estimate_refresh(struct estimator *e)
{
    estimate_meet(e);
    refill_columns(e);
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
        worst = fmax(worst, e->context ? p1_unfit_together(e->context, type, workloads, n)
                                       : prior_unfit(bytes, e->catalog->types[type].mem_bytes, n));
    return worst;
}

double estimate_mem_share(const struct estimator *e, int workload, int type)
{
    if (e->context)
        return (double)p1_alone(e->context, workload, type).mem_share;
    return e->on[workload * e->n_types + type].mem_bytes / e->catalog->types[type].mem_bytes;
}

double estimate_mem_share_max(const struct estimator *e, double unfit_max)
{
    return e->context ? p1_share_max(e->context, unfit_max) : prior_share_max(unfit_max);
}

/* What each of them draws alone, and how fast it runs here relative to that. */
static void shares_of(const struct estimator *e, int type, const int *workloads,
                      const double *rates, int n, double *alone_w, double *share)
{
    int others[THETA_MAX];

    assert(n <= THETA_MAX);
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
}

double estimate_watts(const struct estimator *e, int type, const int *workloads,
                      const double *rates, int n)
{
    const struct gpu_type *g = &e->catalog->types[type];
    double alone_w[THETA_MAX], share[THETA_MAX];

    if (n == 0)
        return fmax(g->sleep_w, 0);    // of NaN and 0, 0
    shares_of(e, type, workloads, rates, n, alone_w, share);
    return power_shared_w(g, alone_w, share, n);
}

struct limited estimate_limited(const struct estimator *e, int type, const int *workloads,
                                const double *rates, int n, int limit_w)
{
    const struct gpu_type *g = &e->catalog->types[type];
    double alone_w[THETA_MAX], share[THETA_MAX];
    struct limit_bend bend[THETA_MAX];

    if (n == 0)
        return (struct limited){ .watts = fmax(g->sleep_w, 0), .speed = 1, .low = 1 };
    shares_of(e, type, workloads, rates, n, alone_w, share);
    double w0 = power_shared_w(g, alone_w, share, n);
    for (int i = 0; i < n; i++) {
        bend[i] = e->bend[workloads[i] * e->n_types + type];
        share[i] = power_dynamic_w(g, alone_w[i], share[i]);
    }
    struct limit_bend mean = limit_bend_mean(bend, share, n);
    struct limited out = limits_bent(g, limit_w, w0, mean);
    double from = fabs(log(limits_apply(g, limit_w, w0).speed) - mean.at);
    out.low = out.speed * exp(-e->z * mean.loss_sd * from);
    return out;
}

/* What is known so well that it may be limited: as after a measurement or two. */
#define WATTS_SURE_SD 0.12
#define SPEED_SURE_SD 0.1

int estimate_may_limit(const struct estimator *e, int type, const int *workloads,
                       const double *rates, int n)
{
    for (int i = 0; i < n; i++) {
        bool serves = rates && rates[i] > 0;
        double sd = (double)estimate_cell(e, workloads[i], type, -1)->sd;
        if (!((double)e->watts_sd[workloads[i] * e->n_types + type] <= WATTS_SURE_SD) ||
            (serves && sd > SPEED_SURE_SD))
            return 0;
    }
    return 1;
}
