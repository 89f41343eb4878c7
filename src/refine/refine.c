#include "refine/refine.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/err.h"
#include "catalog/catalog.h"
#include "estimate/estimate.h"
#include "estimate/prior.h"
#include "estimate/roofline.h"
#include "nn/gauss.h"

/* Measured cells of one workload that correct the others: the lonely ones, then the newest.
 * Beyond this the cube of the factorisation costs more than an old cell tells; a measured
 * cell that is left out corrects only itself.
 */
#define OBSERVED_MAX 48

/* Errors of the roofline on two GPU types correlate .63 (k80, p100), .14 (k80, v100) and .69
 * (p100, v100) on Gavel's workloads; docs/experiments.md has the command. Their mean.
 */
#define SAME_JOB_OTHER_GPU 0.49

/* A neighbour's effect, seen elsewhere: a common part, one of the GPU type, one of the
 * neighbour, and the rest is the cell's own. Together 1.
 */
#define BESIDE_COMMON 0.30
#define BESIDE_SAME_GPU 0.30
#define BESIDE_SAME_NEIGHBOUR 0.20
#define BESIDE_OWN 0.20

/* Watts of one job on two GPU types. */
#define SAME_JOB_OTHER_GPU_WATTS 0.50

/* No measurement is believed better than this: the same pair measured again differs by
 * 2-9 % even when each run is steady.
 */
#define NOISE_FLOOR 0.02

void refiner_init(struct refiner *r, struct catalog *c, const struct estimator *e)
{
    *r = (struct refiner){ .catalog = c, .estimator = e };
    arena_init(&r->arena);
}

void refiner_release(struct refiner *r)
{
    arena_release(&r->arena);
    free(r->is_stale);
    free(r->stale);
}

static void mark_stale(struct refiner *r, int workload)
{
    if (workload >= r->cap) {
        int cap = workload + 64;
        r->is_stale = realloc(r->is_stale, (size_t)cap * sizeof *r->is_stale);
        r->stale = realloc(r->stale, (size_t)cap * sizeof *r->stale);
        assert(r->is_stale && r->stale);
        for (int w = r->cap; w < cap; w++)
            r->is_stale[w] = false;
        r->cap = cap;
    }
    if (r->is_stale[workload])
        return;
    r->is_stale[workload] = true;
    r->stale[r->n_stale++] = workload;
}

/* ---- taking in ---- */

static bool is_plain(const struct cell_key *k)
{
    return k->n_gpus == 1 && k->limit_w == 0;
}

/* Does this tell anything that is not known well enough already? */
static bool is_news(const struct cell_estimate *believed, double surprise, double noise,
                    const struct cell *seen)
{
    return !seen || seen->n_speed < 4 || fabs(surprise) > 3 * hypot(noise, (double)believed->sd);
}

static bool note_surprise(struct refiner *r, const struct measurement *m)
{
    const struct cell_key *k = &m->key;

    if (!is_plain(k) || isnan(m->throughput) || k->workload >= r->estimator->n_workloads ||
        k->neighbour >= r->estimator->n_workloads)
        return true;
    const struct cell_estimate *believed =
        estimate_cell(r->estimator, k->workload, k->gpu_type, k->neighbour);
    double noise = isnan(m->noise) ? CATALOG_NOISE : m->noise;
    double surprise = log(m->throughput / (double)believed->speed);
    r->n_measurements++;
    r->sum_abs_error += fabs(expm1(surprise));
    r->n_covered += fabs(surprise) <= 1.645 * hypot(noise, (double)believed->sd);
    return is_news(believed, surprise, noise, catalog_cell(r->catalog, *k));
}

int refine_take(struct refiner *r, const struct measurement *m, struct err *e)
{
    bool news = note_surprise(r, m);
    int rc = catalog_begin(r->catalog, e);

    if (rc == 0)
        rc = catalog_end(r->catalog, catalog_record(r->catalog, m, 0, e), e);
    if (rc == 0 && news)
        mark_stale(r, m->key.workload);
    return rc;
}

/* ---- correcting ---- */

/* A target or an observed cell, reduced to what the covariance needs. */
struct place {
    int type, neighbour;           // neighbour -1: alone
    double alone_sd, beside_sd;    // of the prior
};

static double covariance(const struct place *p, const struct place *q)
{
    bool same_gpu = p->type == q->type;
    double own = p->alone_sd * q->alone_sd * (same_gpu ? 1 : SAME_JOB_OTHER_GPU);

    if (p->neighbour < 0 || q->neighbour < 0)
        return own;
    bool same_neighbour = p->neighbour == q->neighbour;
    double shared = BESIDE_COMMON + (same_gpu ? BESIDE_SAME_GPU : 0) +
                    (same_neighbour ? BESIDE_SAME_NEIGHBOUR : 0) +
                    (same_gpu && same_neighbour ? BESIDE_OWN : 0);
    return own + p->beside_sd * q->beside_sd * shared;
}

static double place_of(const struct refiner *r, int workload, int type, int neighbour,
                       struct place *out)
{
    const struct estimator *e = r->estimator;
    const struct roofline *on = &e->on[workload * e->n_types + type];
    const struct roofline *beside = neighbour < 0 ? NULL : &e->on[neighbour * e->n_types + type];
    struct prior prior;

    prior_of(on, beside, r->catalog->types[type].mem_bytes, &prior);
    *out = (struct place){ .type = type,
                           .neighbour = neighbour,
                           .alone_sd = prior.alone_sd,
                           .beside_sd = prior.beside_sd };
    return prior.ln_speed;
}

static bool tells_more(const struct cell *a, const struct cell *b)
{
    bool is_alone = a->key.neighbour < 0;

    return is_alone != (b->key.neighbour < 0) ? is_alone : a->last_s > b->last_s;
}

/* The cells measured so far; the OBSERVED_MAX that tell most, in that order. */
static int observed_cells(struct refiner *r, int workload, const struct cell **out)
{
    const struct catalog *c = r->catalog;
    int n = 0;

    for (int i = c->first_cell[workload]; i >= 0; i = c->next_cell[i]) {
        const struct cell *cell = &c->cells[i];
        if (!is_plain(&cell->key) || !cell->n_speed)
            continue;
        if (n == OBSERVED_MAX && !tells_more(cell, out[n - 1]))
            continue;
        int at = n < OBSERVED_MAX ? n++ : n - 1;
        for (; at > 0 && tells_more(cell, out[at - 1]); at--)
            out[at] = out[at - 1];
        out[at] = cell;
    }
    return n;
}

/* Corrected speeds of a workload's cells: all of them, alone first on each type, or only
 * those beside neighbours from 'from' on.
 */
struct correction {
    int from;    // -1: all
    int n;
    struct place *at;           // (n)
    double *mean, *variance;    // (n) of ln speed
    bool *is_seen;              // (n) took part as evidence
};

/* What was seen: residuals 'y' over the prior, their covariance with noise on the
 * diagonal, and the covariance of each target with each of them.
 */
struct evidence {
    int n;
    double *y, *k_oo, *k_to;
};

static int n_beside(const struct refiner *r, const struct correction *to)
{
    return r->estimator->n_workloads - to->from;
}

/* Where a cell stands among the targets; -1: it is none. */
static int target_of(const struct refiner *r, const struct correction *to, const struct cell_key *k)
{
    return k->neighbour < to->from ? -1 : k->gpu_type * n_beside(r, to) + k->neighbour - to->from;
}

static int target_places(struct refiner *r, int workload, struct correction *to, double *mean)
{
    int n = 0;

    for (int type = 0; type < r->estimator->n_types; type++)
        for (int beside = to->from; beside < r->estimator->n_workloads; beside++, n++)
            mean[n] = place_of(r, workload, type, beside, &to->at[n]);
    return n;
}

static double noise_variance(const struct cell *c)
{
    return cell_variance(c) + NOISE_FLOOR * NOISE_FLOOR;
}

static void gather(struct refiner *r, int workload, const struct correction *to,
                   struct evidence *out)
{
    const struct cell *cells[OBSERVED_MAX] = { NULL };
    int n = out->n = observed_cells(r, workload, cells);
    struct place *seen = ARENA_ARRAY(&r->arena, struct place, (size_t)n);

    out->y = ARENA_ARRAY(&r->arena, double, (size_t)n);
    out->k_oo = ARENA_ARRAY(&r->arena, double, (size_t)n *(size_t)n);
    out->k_to = ARENA_ARRAY(&r->arena, double, (size_t)to->n *(size_t)n);
    for (int i = 0; i < n; i++) {
        const struct cell_key *k = &cells[i]->key;
        double prior = place_of(r, workload, k->gpu_type, k->neighbour, &seen[i]);
        out->y[i] = cells[i]->ln_speed - prior;
        for (int j = 0; j <= i; j++)
            out->k_oo[i * n + j] = out->k_oo[j * n + i] = covariance(&seen[i], &seen[j]);
        out->k_oo[i * n + i] += noise_variance(cells[i]);
        if (target_of(r, to, k) >= 0)
            to->is_seen[target_of(r, to, k)] = true;
        for (int t = 0; t < to->n; t++)
            out->k_to[t * n + i] = covariance(&to->at[t], &seen[i]);
    }
}

/* Measured cells that were too many to take part. */
static void correct_left_out(struct refiner *r, int workload, struct correction *to)
{
    const struct catalog *c = r->catalog;

    for (int i = c->first_cell[workload]; i >= 0; i = c->next_cell[i]) {
        const struct cell *cell = &c->cells[i];
        int t = target_of(r, to, &cell->key);
        if (t < 0 || !is_plain(&cell->key) || !cell->n_speed || to->is_seen[t])
            continue;
        double trust = to->variance[t] / (to->variance[t] + noise_variance(cell));
        to->mean[t] += trust * (cell->ln_speed - to->mean[t]);
        to->variance[t] *= 1 - trust;
    }
}

static int correct_speeds(struct refiner *r, int workload, struct correction *out, struct err *e)
{
    struct arena *a = &r->arena;
    size_t n = (size_t)r->estimator->n_types * (size_t)n_beside(r, out);
    double *prior = ARENA_ARRAY(a, double, n);
    double *drop = ARENA_ARRAY(a, double, n);
    struct evidence seen;
    int rc = 0;

    out->at = ARENA_ARRAY(a, struct place, n);
    out->mean = ARENA_ARRAY(a, double, n);
    out->variance = ARENA_ARRAY(a, double, n);
    out->is_seen = ARENA_ARRAY(a, bool, n);
    out->n = target_places(r, workload, out, prior);
    gather(r, workload, out, &seen);
    if (seen.n)
        rc = gauss_condition(a, seen.n, seen.k_oo, seen.y, out->n, seen.k_to, out->mean, drop, e);
    for (int t = 0; t < out->n; t++) {
        out->mean[t] += prior[t];
        out->variance[t] = fmax(covariance(&out->at[t], &out->at[t]) - drop[t], 0);
    }
    if (seen.n == OBSERVED_MAX)
        correct_left_out(r, workload, out);
    return rc;
}

/* ln watts of the workload alone on 'type' over the prior, or NaN when not measured. */
static double watts_residual(const struct refiner *r, int workload, int type, double prior)
{
    struct cell_key key = { .workload = workload, .gpu_type = type, .neighbour = -1, .n_gpus = 1 };
    const struct cell *cell = catalog_cell(r->catalog, key);

    return cell && cell->n_watts ? cell->ln_watts - prior : (double)NAN;
}

/* Watts alone, one number per type, by the same conditioning. NaN where nothing is known
 * on any type: then the prior stands.
 */
static int correct_watts(struct refiner *r, int workload, double *ln_watts, double *sd,
                         struct err *e)
{
    int n_types = r->estimator->n_types, n = 0;
    double var = roofline_watts_sd() * roofline_watts_sd();
    double *prior = ARENA_ARRAY(&r->arena, double, (size_t)n_types);
    double *y = ARENA_ARRAY(&r->arena, double, (size_t)n_types);
    double *k_oo = ARENA_ARRAY(&r->arena, double, (size_t)(n_types * n_types));
    double *k_to = ARENA_ARRAY(&r->arena, double, (size_t)(n_types * n_types));
    double *drop = ARENA_ARRAY(&r->arena, double, (size_t)n_types);
    int *seen = ARENA_ARRAY(&r->arena, int, (size_t)n_types);

    for (int t = 0; t < n_types; t++) {
        prior[t] =
            log(roofline_watts(&r->estimator->on[workload * n_types + t], &r->catalog->types[t]));
        ln_watts[t] = sd[t] = NAN;
        y[n] = watts_residual(r, workload, t, prior[t]);
        if (!isnan(y[n]))
            seen[n++] = t;
    }
    if (n == 0)
        return 0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++)
            k_oo[i * n + j] =
                i == j ? var + CATALOG_NOISE * CATALOG_NOISE : var * SAME_JOB_OTHER_GPU_WATTS;
        for (int t = 0; t < n_types; t++)
            k_to[t * n + i] = seen[i] == t ? var : var * SAME_JOB_OTHER_GPU_WATTS;
    }
    int rc = gauss_condition(&r->arena, n, k_oo, y, n_types, k_to, ln_watts, drop, e);
    for (int t = 0; t < n_types; t++) {
        ln_watts[t] += prior[t];
        sd[t] = sqrt(fmax(var - drop[t], 0));
    }
    return rc;
}

static int correct(struct refiner *r, int workload, struct err *e)
{
    struct correction speeds = { .from = -1 };
    size_t n_types = (size_t)r->estimator->n_types;
    double *ln_watts = ARENA_ARRAY(&r->arena, double, n_types);
    double *watts_sd = ARENA_ARRAY(&r->arena, double, n_types);
    int rc = correct_speeds(r, workload, &speeds, e);

    if (rc == 0)
        rc = correct_watts(r, workload, ln_watts, watts_sd, e);
    for (int t = 0; t < speeds.n && rc == 0; t++) {
        const struct place *p = &speeds.at[t];
        bool is_alone = p->neighbour < 0;
        struct stored_estimate est = {
            .is_set = true,
            .ln_speed = (float)speeds.mean[t],
            .ln_speed_sd = (float)sqrt(speeds.variance[t]),
            .ln_watts = is_alone ? (float)ln_watts[p->type] : NAN,
            .ln_watts_sd = is_alone ? (float)watts_sd[p->type] : NAN,
        };
        catalog_put_estimate(r->catalog, workload, p->type, p->neighbour, &est);
    }
    return rc;
}

/* The workload's cells beside neighbours from 'from' on, which have just appeared: what is
 * known of the workload reaches them too.
 */
static int greet(struct refiner *r, int workload, int from, struct err *e)
{
    struct correction speeds = { .from = from };
    bool is_derived = r->estimator->n_filled > from;    // somebody refreshed before settling
    int rc = correct_speeds(r, workload, &speeds, e);

    for (int t = 0; t < speeds.n && rc == 0; t++) {
        struct stored_estimate est = { .is_set = true,
                                       .ln_speed = (float)speeds.mean[t],
                                       .ln_speed_sd = (float)sqrt(speeds.variance[t]),
                                       .ln_watts = NAN,
                                       .ln_watts_sd = NAN };
        const struct place *p = &speeds.at[t];
        if (is_derived)
            catalog_put_estimate(r->catalog, workload, p->type, p->neighbour, &est);
        else
            catalog_add_estimate(r->catalog, workload, p->type, p->neighbour, &est);
    }
    arena_reset(&r->arena);
    return rc;
}

/* A workload that has just appeared is a possible neighbour of all others. Those that come
 * with measurements of their own are corrected whole, and so are all when a description
 * changed that priors are made from.
 */
static int meet_newcomers(struct refiner *r, struct err *e)
{
    bool is_same = r->descriptions == r->estimator->descriptions;
    int from = is_same ? r->n_met : 0, rc = 0;

    r->descriptions = r->estimator->descriptions;
    r->n_met = r->estimator->n_workloads;
    for (int w = 0; w < r->n_met && from < r->n_met && rc == 0; w++) {
        if (r->catalog->first_cell[w] < 0)
            continue;
        if (w >= from)
            mark_stale(r, w);
        else
            rc = greet(r, w, from, e);
    }
    return rc;
}

int refine_settle(struct refiner *r, struct err *e)
{
    int rc = meet_newcomers(r, e), n_settled = r->n_stale;

    for (int i = 0; i < r->n_stale; i++) {
        assert(r->stale[i] < r->estimator->n_workloads);    // measured, so it was estimated
        r->is_stale[r->stale[i]] = false;
        if (rc == 0)
            rc = correct(r, r->stale[i], e);
        arena_reset(&r->arena);
    }
    r->n_stale = 0;
    return rc < 0 ? rc : n_settled;
}
