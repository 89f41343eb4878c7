#include "sim/eval/serving.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/grow.h"
#include "catalog/catalog.h"
#include "estimate/estimate.h"
#include "estimate/model/model.h"
#include "estimate/serving.h"
#include "nn/gp.h"
#include "sim/eval/eval.h"
#include "sim/eval/ladder.h"

const char *const serving_figure_names[SERVING_FIGURES] = {
    "line_mape",         "alone_mape",   "alone_coverage90", "beside_mape",
    "beside_coverage90", "beside_worst", "one_mape",         "one_worst",
};

/* Promises, in steps of one request alone. */
static const double promises[] = { 2, 3, 5, 8, 12, 20, 30 };

/* A fold while it runs: the site without what is held out. */
struct fold {
    const struct catalog *from;
    const struct serving_eval_options *o;
    const struct ladder *ladders;    // (n_ladders) of the campaign
    int n_ladders, campaign;
    const struct ladder *held;    // the first of those that are held out
    bool is_family;
    struct catalog catalog;
    struct estimator estimator;
    double sum[SERVING_FIGURES];
    struct serving_row *row;
};

/* ---- the site ---- */

static bool is_held(const struct fold *f, int workload)
{
    const struct workload *w = workload < 0 ? NULL : &f->from->workloads[workload];
    const struct workload *held = &f->from->workloads[f->held->top];
    double batch;

    if (!w)
        return false;
    if (f->is_family && w->family && held->family)
        return w->is_inference && strcmp(w->family, held->family) == 0;
    struct slice a = workload_name_split(w->name, &batch);
    struct slice b = workload_name_split(held->name, &batch);
    return a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}

/* A cell of the campaign, as one that the site measured. */
static int record(struct fold *f, const struct cell *cell, struct err *e)
{
    struct measurement m = { .key = cell->key,
                             .fits = cell->n_speed > 0,
                             .throughput = cell->n_speed > 0 ? exp(cell->ln_speed) : (double)NAN,
                             .watts = cell->n_watts > 0 ? exp(cell->ln_watts) : (double)NAN,
                             .noise = cell->n_speed > 0 ? sqrt(cell_variance(cell)) : (double)NAN };

    m.key.campaign = CATALOG_SITE;
    return cell->n_speed > 0 || cell->n_unfit > 0 ? catalog_record(&f->catalog, &m, 0, e) : 0;
}

static int fill(struct fold *f, struct err *e)
{
    const struct catalog *c = f->from;
    int rc = 0, index;

    for (int i = 0; i < c->n_types && rc == 0; i++) {
        struct gpu_type t = c->types[i];
        if (f->campaign != CATALOG_SITE)
            t.sharing = c->campaign_sharing[f->campaign];
        rc = catalog_add_type(&f->catalog, &t, &index, e);
    }
    for (int i = 0; i < c->n_workloads && rc == 0; i++)
        rc = catalog_add_workload(&f->catalog, &c->workloads[i], &index, e);
    for (int i = 0; i < c->n_cells && rc == 0; i++) {
        const struct cell_key *k = &c->cells[i].key;
        if (k->campaign == f->campaign && cell_key_is_default(k) && !is_held(f, k->workload) &&
            !is_held(f, k->neighbour))
            rc = record(f, &c->cells[i], e);
    }
    for (int i = 0; i < f->n_ladders && rc == 0; i++)
        rc = is_held(f, f->ladders[i].top) ? serving_meet(&f->catalog, f->ladders[i].top, e) : 0;
    return rc;
}

/* The smallest and the largest batch of all that is held out, alone. */
static int reveal_alone(struct fold *f, struct err *e)
{
    int rc = 0;

    for (int i = 0; i < f->n_ladders && rc == 0; i++) {
        const struct ladder *l = &f->ladders[i];
        for (int end = 0; end < 2 && is_held(f, l->top) && rc == 0; end++) {
            const struct cell_key key = { .workload = l->at[end ? l->last : l->first],
                                          .gpu_type = l->type,
                                          .neighbour = -1,
                                          .n_gpus = 1,
                                          .campaign = f->campaign };
            rc = record(f, catalog_cell(f->from, key), e);
        }
    }
    estimate_refresh(&f->estimator);
    return rc;
}

/* ---- scores ---- */

/* ln of a batch's seconds, and its standard deviation. */
static struct cell_belief belief_at(const struct serving_estimate *is, double batch)
{
    double t0 = exp(is->ln_t0), ab = exp(is->ln_a) * batch, p = t0 / (t0 + ab);
    double var = p * p * is->t0_sd * is->t0_sd + (1 - p) * (1 - p) * is->a_sd * is->a_sd +
                 2 * p * (1 - p) * is->corr * is->t0_sd * is->a_sd;

    return (struct cell_belief){ log(t0 + ab), sqrt(var) };
}

static double error_of(double ln_foreseen, double tau)
{
    return fabs(exp(ln_foreseen) / tau - 1);
}

static bool is_covered(struct cell_belief is, double tau)
{
    return fabs(log(tau) - is.mean) <= 1.645 * is.sd;
}

static void score_alone(struct fold *f, const struct ladder *l)
{
    struct serving_estimate is = estimate_serving(&f->estimator, l->at[l->last], l->type, -1);
    struct serving_estimate best = ladder_line(l->alone);

    for (int i = l->first; i <= l->last; i++) {
        if (isnan(l->alone[i]))
            continue;
        f->sum[SERVING_LINE_MAPE] += error_of(belief_at(&best, 1 << i).mean, l->alone[i]);
        f->sum[SERVING_ALONE_MAPE] += error_of(belief_at(&is, 1 << i).mean, l->alone[i]);
        f->sum[SERVING_ALONE_COVERAGE] += is_covered(belief_at(&is, 1 << i), l->alone[i]);
        f->row->n_alone++;
    }
}

/* ln of the one factor: as the middle batch is slowed. */
static double ln_one_factor(const struct fold *f, const struct ladder *l)
{
    int mid = l->at[(l->first + l->last_beside) / 2];
    mid = mid < 0 ? l->at[l->last_beside] : mid;
    return (double)estimate_cell(&f->estimator, mid, l->type, -1).mean -
           (double)estimate_cell(&f->estimator, mid, l->type, mid).mean;
}

static void score_beside(struct fold *f, const struct ladder *l)
{
    int top = l->at[l->last_beside];
    struct serving_estimate alone = estimate_serving(&f->estimator, top, l->type, -1);
    struct serving_estimate is = estimate_serving(&f->estimator, top, l->type, top);
    double ln_one = ln_one_factor(f, l);

    for (int i = l->first; i <= l->last_beside; i++) {
        double tau = l->beside[i], ln_two = belief_at(&is, 1 << i).mean,
               ln_by_one = belief_at(&alone, 1 << i).mean + ln_one;
        if (isnan(tau))
            continue;
        f->sum[SERVING_BESIDE_MAPE] += error_of(ln_two, tau);
        f->sum[SERVING_BESIDE_COVERAGE] += is_covered(belief_at(&is, 1 << i), tau);
        f->sum[SERVING_ONE_MAPE] += error_of(ln_by_one, tau);
        f->sum[SERVING_BESIDE_WORST] = fmax(f->sum[SERVING_BESIDE_WORST], tau / exp(ln_two) - 1);
        f->sum[SERVING_ONE_WORST] = fmax(f->sum[SERVING_ONE_WORST], tau / exp(ln_by_one) - 1);
        f->row->n_beside++;
    }
}

/* Which promises the copy is let in for; then the server gets as many requests as t0 and a allow
 * cautiously, and what was measured says whether two steps are still within the promise.
 */
static void judge(struct fold *f, const struct ladder *l)
{
    int top = l->at[l->last_beside];
    struct serving_estimate is = estimate_serving(&f->estimator, top, l->type, top);
    double t0, a;

    serving_cautious(&is, f->o->z, &t0, &a);
    for (size_t i = 0; i < sizeof promises / sizeof *promises; i++) {
        double within_s = promises[i] * l->alone[0];
        f->row->n_asked++;
        if (!serving_is_safe(&f->estimator, top, l->type, top, within_s, NAN, f->o->z))
            continue;
        double batch = fmin(floor((within_s / 2 / is.tail - t0) / a), 1 << l->last_beside);
        f->row->n_admitted++;
        f->row->n_broken += !ladder_holds(l, batch / (t0 + a * batch), within_s);
    }
}

static void score(struct fold *f)
{
    for (int i = 0; i < f->n_ladders; i++) {
        const struct ladder *l = &f->ladders[i];
        if (!is_held(f, l->top))
            continue;
        score_alone(f, l);
        if (l->last_beside <= l->first)
            continue;
        score_beside(f, l);
        if (l->first == 0)
            judge(f, l);
    }
}

/* ---- folds ---- */

static int run_fold(struct fold *f, const struct model *taught, struct err *e)
{
    struct examples x;
    struct model *here = NULL;

    catalog_init(&f->catalog);
    int rc = fill(f, e);
    if (rc == 0) {
        examples_take(&f->catalog, &x);
        rc = model_train(&x, taught, f->o->seed, "", &here, e);
        examples_release(&x);
    }
    estimator_init(&f->estimator, &f->catalog, 1);
    if (rc == 0) {
        estimate_use(&f->estimator, here, ESTIMATOR_GOGH);
        estimate_refresh(&f->estimator);
        rc = f->row->is_alone_known ? reveal_alone(f, e) : 0;
    }
    if (rc == 0)
        score(f);
    estimator_release(&f->estimator);
    catalog_release(&f->catalog);
    model_destroy(here);
    return rc;
}

/* Has what is held out with it been held out already? */
static bool is_done(const struct fold *f, int at)
{
    for (int i = 0; i < at; i++)
        if (is_held(f, f->ladders[i].top))
            return true;
    return false;
}

static int make_row(struct fold *f, const struct model *taught, struct err *e)
{
    int rc = 0;

    memset(f->sum, 0, sizeof f->sum);
    f->is_family = f->row->is_family_held;
    for (int i = 0; i < f->n_ladders && rc == 0; i++) {
        f->held = &f->ladders[i];
        rc = is_done(f, i) ? 0 : run_fold(f, taught, e);
    }
    for (int i = 0; i < SERVING_FIGURES; i++) {
        bool is_worst = i == SERVING_BESIDE_WORST || i == SERVING_ONE_WORST;
        int n = i < SERVING_BESIDE_MAPE ? f->row->n_alone : f->row->n_beside;
        f->row->figure[i] = n == 0 ? (double)NAN : f->sum[i] / (is_worst ? 1 : n);
    }
    return rc;
}

/* What all campaigns but this one and its kin teach. */
static int teach(const struct catalog *c, int campaign, uint64_t seed, struct model **out,
                 struct err *e)
{
    struct examples x;

    examples_take(c, &x);
    for (int what = 0; what < LEARNED; what++)
        for (int i = 0; i < c->n_campaigns; i++)
            if (i == CATALOG_SITE || eval_are_kin(c->campaigns[i], c->campaigns[campaign]))
                x.read[what][i].n = 0;
    int rc = model_train(&x, NULL, seed, "", out, e);
    examples_release(&x);
    return rc;
}

static int run_campaign(const struct catalog *c, const struct serving_eval_options *o, int campaign,
                        struct serving_result *out, struct err *e)
{
    struct fold f = { .from = c, .o = o, .campaign = campaign };
    struct model *taught = NULL;
    struct arena a;

    arena_init(&a);
    f.n_ladders = ladders_take(&a, c, campaign, &f.ladders);
    int rc = f.n_ladders == 0 || o->model ? 0 : teach(c, campaign, o->seed, &taught, e);
    for (int i = 0; i < 4 && f.n_ladders > 0 && rc == 0; i++) {
        f.row = &out->rows[out->n_rows++];
        *f.row = (struct serving_row){ .campaign = campaign,
                                       .is_family_held = i >= 2,
                                       .is_alone_known = i % 2 };
        rc = make_row(&f, o->model ? o->model : taught, e);
    }
    model_destroy(taught);
    arena_release(&a);
    return rc;
}

int serving_eval(const struct catalog *c, const struct serving_eval_options *o,
                 struct serving_result *out, struct err *e)
{
    int rc = 0;

    nn_init();
    *out = (struct serving_result){ 0 };
    out->rows = heap_array(4 * (size_t)c->n_campaigns, sizeof *out->rows);
    for (int i = 0; i < c->n_campaigns && rc == 0; i++)
        if (o->campaign < 0 || i == o->campaign)
            rc = run_campaign(c, o, i, out, e);
    if (rc == 0 && out->n_rows == 0)
        rc = err_set(e, ENODATA,
                     "no server was measured at three batches of 1, 2, 4, ... on one GPU type: "
                     "import measurements of some first");
    return rc;
}

void serving_eval_release(struct serving_result *r)
{
    free(r->rows);
}
