#include "sim/eval/eval.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/grow.h"
#include "catalog/catalog.h"
#include "nn/gp.h"
#include "sim/eval/cells.h"
#include "sim/eval/fold.h"
#include "sim/eval/score.h"

/* The order of rows: baselines, members, P1, and what measurements add to it. */
static const int row_order[] = {
    P1_MEAN,
    P1_NEAREST,
    EVAL_LOW_RANK,
    P1_NEAREST3,
    P1_RIDGE,
    P1_GP,
    P1_FEED_FORWARD,
    P1_RECURRENT,
    P1_ATTENTION,
    P1_ENSEMBLE,
    P1_MEMBERS + P2_NONE,
    P1_MEMBERS + P2_SHIFT,
    P1_MEMBERS + P2_CLOSED,
    P1_MEMBERS + P2_NETWORK,
    P1_MEMBERS + P2_CHAMPION,
    EVAL_HIERARCHICAL,
};
static_assert(sizeof row_order / sizeof *row_order == EVAL_METHODS, "a row for each method");

/* ---- folds ---- */

struct fold_queue {
    struct eval_setting setting;
    int n_folds;
    struct eval_fold *folds;    // (n_folds)
    struct eval_part *parts;    // (n_folds)

    pthread_mutex_t lock;    // of what follows
    int n_begun, n_done;
    bool has_failed;
};

static bool is_worth_it(const struct fold_queue *w, const struct eval_fold *fold)
{
    for (int i = 0; i < w->setting.x.n_workloads; i++)
        if (eval_fold_scores(&w->setting, fold, i))
            return true;
    return false;
}

static int make_folds(struct arena *a, struct fold_queue *w, struct err *e)
{
    static const char *const things[EVAL_PARTS] = { "workload", "family", "GPU type" };
    const struct examples *x = &w->setting.x;
    enum eval_split split = w->setting.o->split;
    int n[EVAL_PARTS] = { x->n_workloads, x->n_families, x->n_types };

    w->folds = ARENA_ARRAY(a, struct eval_fold, (size_t)n[split]);
    for (int i = 0; i < n[split]; i++) {
        w->folds[w->n_folds] = (struct eval_fold){ .workload = split == EVAL_JOB ? i : -1,
                                                   .family = split == EVAL_FAMILY ? i : -1,
                                                   .type = split == EVAL_GPU ? i : -1 };
        w->n_folds += is_worth_it(w, &w->folds[w->n_folds]);
    }
    if (w->n_folds == 0)
        return err_set(e, ENODATA,
                       "no workload was measured alone on one GPU: import measurements first");
    if (w->n_folds == 1)
        return err_set(e, ENODATA,
                       "only one %s was measured: with it held out nothing is left to learn from; "
                       "%s",
                       things[split],
                       split == EVAL_JOB ? "import more measurements" : "try another --split");
    return 0;
}

/* A store that a cluster has run on holds beliefs too. Where a workload's own speed was not
 * measured its slowdowns rest on such a belief, and that may rest on the held-out part.
 */
static void drop_believed(const struct catalog *c, struct examples *x)
{
    int n = 0;

    for (int i = 0; i < x->n_pairs; i++) {
        struct cell_key key = { .workload = x->pairs[i].workload,
                                .gpu_type = x->pairs[i].gpu_type,
                                .neighbour = -1,
                                .n_gpus = 1 };
        const struct cell *alone = catalog_cell(c, key);
        if (alone && alone->n_speed > 0)
            x->pairs[n++] = x->pairs[i];
    }
    x->n_pairs = n;
}

/* ---- threads ---- */

/* The next fold, or -1. Folds begin in order, so that of several failures the first is told,
 * however many threads there are.
 */
static int next_fold(struct fold_queue *w, bool has_done_one, int rc)
{
    const struct eval_options *o = w->setting.o;
    int next;

    pthread_mutex_lock(&w->lock);
    w->n_done += has_done_one;
    w->has_failed = w->has_failed || rc < 0;
    if (has_done_one && o->fold_f)
        o->fold_f(o->self, w->n_done, w->n_folds);
    next = w->has_failed || w->n_begun == w->n_folds ? -1 : w->n_begun++;
    pthread_mutex_unlock(&w->lock);
    return next;
}

static void *run_folds(void *self)
{
    struct fold_queue *w = self;
    int at = next_fold(w, false, 0);

    while (at >= 0) {
        struct eval_part *part = &w->parts[at];
        part->rc = eval_fold_run(&w->setting, &w->folds[at], part, &part->e);
        at = next_fold(w, true, part->rc);
    }
    return NULL;
}

/* Run all folds, this thread among others; a thread that cannot be had is done without. */
static int run_all(struct arena *a, struct fold_queue *w, struct err *e)
{
    int n = w->setting.o->n_threads < w->n_folds ? w->setting.o->n_threads : w->n_folds;
    pthread_t *threads = ARENA_ARRAY(a, pthread_t, (size_t)n);
    int n_threads = 0;

    pthread_mutex_init(&w->lock, NULL);
    while (n_threads < n - 1 && pthread_create(&threads[n_threads], NULL, run_folds, w) == 0)
        n_threads++;
    run_folds(w);
    for (int i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&w->lock);
    for (int i = 0; i < w->n_folds; i++) {
        if (w->parts[i].rc < 0) {
            *e = w->parts[i].e;
            return w->parts[i].rc;
        }
    }
    return 0;
}

/* ---- results ---- */

static double fit_auc(struct arena *a, const struct fold_queue *w)
{
    size_t n = 0, at = 0;

    for (int i = 0; i < w->n_folds; i++)
        n += (size_t)w->parts[i].n_fits;
    double *chance = ARENA_ARRAY(a, double, n);
    bool *is_unfit = ARENA_ARRAY(a, bool, n);
    for (int i = 0; i < w->n_folds; i++) {
        const struct eval_part *p = &w->parts[i];
        for (int j = 0; j < p->n_fits; j++, at++) {
            chance[at] = p->chance[j];
            is_unfit[at] = p->is_unfit[j];
        }
    }
    return eval_auc(a, chance, is_unfit, (int)n);
}

/* One row from all folds; false: nobody answered. */
static bool merge_row(const struct fold_queue *w, int at_k, int method, struct eval_row *out)
{
    struct eval_sum all = { 0 };

    for (int i = 0; i < w->n_folds; i++) {
        const struct eval_sum *s = &w->parts[i].sums[at_k][method];
        all.is_asked = all.is_asked || s->is_asked;
        for (int f = 0; f < EVAL_FIGURES; f++) {
            all.sum[f] += s->sum[f];
            all.n[f] += s->n[f];
        }
    }
    out->campaign = out->n = -1;
    out->k = w->setting.o->k[at_k];
    out->method = eval_method_name(method);
    for (int f = 0; f < EVAL_FIGURES; f++)
        out->figure[f] = all.n[f] ? all.sum[f] / all.n[f] : (double)NAN;
    return all.is_asked;
}

static void merge_predictions(const struct fold_queue *w, struct eval_result *out)
{
    size_t n = 0;

    for (int i = 0; i < w->n_folds; i++)
        n += (size_t)w->parts[i].n_predictions;
    out->predictions = heap_array(n, sizeof *out->predictions);
    for (int i = 0; i < w->n_folds; i++) {
        struct eval_part *p = &w->parts[i];
        if (p->n_predictions)
            memcpy(&out->predictions[out->n_predictions], p->predictions,
                   (size_t)p->n_predictions * sizeof *p->predictions);
        out->n_predictions += p->n_predictions;
    }
    for (int i = 0; i < out->n_predictions; i++)
        out->predictions[i].n = -1;
}

/* Workloads that were scored in any fold: several of them when a type is held out. */
static int n_scored(const struct fold_queue *w)
{
    int n = 0;

    for (int i = 0; i < w->setting.x.n_workloads; i++) {
        bool is_scored = false;
        for (int f = 0; f < w->n_folds; f++)
            is_scored = is_scored || eval_fold_scores(&w->setting, &w->folds[f], i);
        n += is_scored;
    }
    return n;
}

/* Members and baselines have no opinion on memory of their own. */
static bool asks_p1_of_fits(int method)
{
    return method >= P1_ENSEMBLE && method < EVAL_LOW_RANK;
}

static void merge(struct arena *a, const struct fold_queue *w, struct eval_result *out)
{
    double auc = fit_auc(a, w);
    int n_k = w->setting.o->n_k;

    out->n_folds = w->n_folds;
    out->n_workloads = n_scored(w);
    out->rows = heap_array((size_t)n_k * EVAL_METHODS, sizeof *out->rows);
    for (int k = 0; k < n_k; k++) {
        for (int m = 0; m < EVAL_METHODS; m++) {
            struct eval_row *row = &out->rows[out->n_rows];
            out->n_rows += merge_row(w, k, row_order[m], row);
            row->figure[EVAL_FIT_AUC] = asks_p1_of_fits(row_order[m]) ? auc : (double)NAN;
        }
    }
    merge_predictions(w, out);
}

/* What was read at the site, and what other campaigns teach: of speeds, or of watts. */
static int take_readings(struct arena *a, const struct catalog *c, const struct eval_options *o,
                         int what, struct eval_setting *s, struct err *e)
{
    struct campaign_readings *others =
        ARENA_ARRAY(a, struct campaign_readings, (size_t)c->n_campaigns);
    struct fit_options fit = fit_defaults;
    struct reading *list;
    int n_others = 0;

    for (int i = 0; i < c->n_campaigns; i++) {
        int n = what == EVAL_SPEEDS ? site_readings(a, c, &s->site, i, &list)
                                    : site_watts(a, c, &s->site, i, &list);
        struct campaign_readings read = { &s->site, list, n };
        if (i == CATALOG_SITE)
            s->read[what] = read;
        else if (n > 0)
            others[n_others++] = read;
    }
    fit.seed = o->seed;
    s->hyper[what] = hyper_start();
    return n_others ? hyper_fit(others, n_others, &fit, &s->hyper[what], e) : 0;
}

static int take_site(struct arena *a, const struct catalog *c, const struct eval_options *o,
                     struct eval_setting *s, struct err *e)
{
    int rc = 0;

    site_init(&s->site, c->types, c->n_types);
    for (int w = 0; w < c->n_workloads; w++)
        site_add(&s->site, &c->workloads[w], c->types);
    for (int what = 0; what < EVAL_READS && rc == 0; what++)
        rc = take_readings(a, c, o, what, s, e);
    return rc;
}

static void check(const struct eval_options *o)
{
    assert(o->split < EVAL_PARTS && o->n_k > 0 && o->n_sequences > 0 && o->n_threads > 0);
    for (int i = 0; i < o->n_k; i++)
        assert(o->k[i] >= 0 && o->k[i] <= EVAL_K_MAX && (i == 0 || o->k[i] > o->k[i - 1]));
}

int eval_run(const struct catalog *c, const struct eval_options *o, struct eval_result *out,
             struct err *e)
{
    struct fold_queue w = { .setting = { .catalog = c, .o = o } };
    struct arena a;

    check(o);
    *out = (struct eval_result){ 0 };
    arena_init(&a);
    examples_take(&a, c, EXAMPLES_PAIRS_MAX, o->seed, &w.setting.x);
    drop_believed(c, &w.setting.x);
    w.setting.cells = eval_cells_take(&a, c, CATALOG_SITE);
    nn_init();
    int rc = make_folds(&a, &w, e);
    if (rc == 0)
        rc = take_site(&a, c, o, &w.setting, e);
    w.parts = ARENA_ARRAY(&a, struct eval_part, (size_t)w.n_folds);
    for (int i = 0; i < w.n_folds; i++)
        eval_part_init(&w.parts[i], o->n_k);
    if (rc == 0)
        rc = run_all(&a, &w, e);
    if (rc == 0)
        merge(&a, &w, out);
    for (int i = 0; i < w.n_folds; i++)
        eval_part_release(&w.parts[i]);
    site_release(&w.setting.site);
    arena_release(&a);
    return rc;
}

void eval_release(struct eval_result *r)
{
    free(r->rows);
    free(r->predictions);
}
