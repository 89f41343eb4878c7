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
#include "estimate/hierarchical/fit.h"
#include "estimate/model/model.h"
#include "estimate/network/network.h"
#include "estimate/prior/prior.h"
#include "estimate/prior/roofline.h"
#include "nn/gp.h"
#include "sim/eval/cells.h"
#include "sim/eval/fold.h"
#include "sim/eval/score.h"

/* All that is to be done: first what each site may know is learned, then its folds are run. */
struct eval_work {
    const struct catalog *catalog;
    const struct eval_options *o;
    struct examples x;          // all campaigns as readings of one site: they share no effects
    struct network *network;    // NULL: nobody asks it
    struct eval_site *sites;    // (n_sites)
    int n_sites;
    struct eval_fold *folds;    // (n_folds)
    struct eval_part *parts;    // (n_folds)
    int n_folds;

    int (*task_f)(struct eval_work *w, int at);
    int n_tasks;
    struct err *failure;     // (n_tasks)
    pthread_mutex_t lock;    // of what follows
    int n_begun, n_done, first_failed;
};

/* ---- threads ---- */

/* The next task, or -1. They begin in order, so that of several failures the first is told. */
static int next_task(struct eval_work *w, int done, int rc)
{
    const struct eval_options *o = w->o;
    int next;

    pthread_mutex_lock(&w->lock);
    w->n_done += done >= 0;
    if (rc < 0 && done < w->first_failed)
        w->first_failed = done;
    if (done >= 0 && o->fold_f)
        o->fold_f(o->self, w->n_done, w->n_sites + w->n_folds);
    next = w->first_failed < w->n_tasks || w->n_begun == w->n_tasks ? -1 : w->n_begun++;
    pthread_mutex_unlock(&w->lock);
    return next;
}

static void *run_tasks(void *self)
{
    struct eval_work *w = self;

    for (int at = next_task(w, -1, 0); at >= 0;)
        at = next_task(w, at, w->task_f(w, at));
    return NULL;
}

/* Run 'n' tasks, this thread among others; a thread that cannot be had is done without. */
static int run_all(struct arena *a, struct eval_work *w, int n,
                   int (*task_f)(struct eval_work *w, int at), struct err *e)
{
    int most = w->o->n_threads < n ? w->o->n_threads : n, n_threads = 0;
    pthread_t *threads = ARENA_ARRAY(a, pthread_t, (size_t)most + 1);

    w->task_f = task_f;
    w->n_tasks = w->first_failed = n;
    w->n_begun = 0;
    w->failure = ARENA_ARRAY(a, struct err, (size_t)n);
    pthread_mutex_init(&w->lock, NULL);
    while (n_threads < most - 1 && pthread_create(&threads[n_threads], NULL, run_tasks, w) == 0)
        n_threads++;
    run_tasks(w);
    for (int i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&w->lock);
    if (w->first_failed == n)
        return 0;
    *e = w->failure[w->first_failed];
    return -e->code;
}

/* ---- what is held out ---- */

/* Of a campaign that is a site never seen, families are held out. */
static enum eval_split part_of(enum eval_split split)
{
    return split < EVAL_PARTS ? split : EVAL_FAMILY;
}

static bool is_worth_it(const struct eval_fold *fold)
{
    for (int w = 0; w < fold->site->site->n_workloads; w++)
        if (eval_fold_scores(fold, w))
            return true;
    return false;
}

/* Put the folds of a campaign in the list, and it into that of sites if it has any. */
static void hold_out(struct arena *a, struct eval_work *w, int campaign)
{
    struct eval_site *s = &w->sites[w->n_sites];
    enum eval_split part = part_of(w->o->split);
    const int n[EVAL_PARTS] = { w->x.site.n_workloads, w->x.site.n_families, w->x.site.n_types };
    int had = w->n_folds;

    *s = (struct eval_site){ .catalog = w->catalog,
                             .o = w->o,
                             .site = w->x.read[LEARN_SPEEDS][campaign].site,
                             .campaign = campaign,
                             .at = w->n_sites,
                             .cells = eval_cells_take(a, w->catalog, campaign),
                             .network = w->network };
    for (int what = 0; what < LEARNED; what++)
        s->read[what] = w->x.read[what][campaign];
    for (int i = 0; i < n[part]; i++) {
        struct eval_fold *fold = &w->folds[w->n_folds];
        *fold = (struct eval_fold){ s, part == EVAL_JOB ? i : -1, part == EVAL_FAMILY ? i : -1,
                                    part == EVAL_GPU ? i : -1 };
        w->n_folds += is_worth_it(fold);
    }
    w->n_sites += w->n_folds > had;
}

static int check_folds(const struct eval_work *w, struct err *e)
{
    static const char *const things[EVAL_PARTS] = { "workload", "family", "GPU type" };
    enum eval_split split = w->o->split;

    if (w->n_folds == 0 && split == EVAL_CAMPAIGN)
        return err_set(e, ENODATA,
                       "no workload was measured alone on one GPU: import measurements first");
    if (w->n_folds == 0)
        return err_set(e, ENODATA,
                       "campaign '%s': no workload was measured alone on one GPU; name another one "
                       "with --campaign, or import measurements first",
                       w->catalog->campaigns[w->o->campaign]);
    if (w->n_folds == 1 && split < EVAL_PARTS)
        return err_set(e, ENODATA,
                       "only one %s was measured: with it held out nothing is left to learn from; "
                       "%s",
                       things[split],
                       split == EVAL_JOB ? "import more measurements" : "try another --split");
    return 0;
}

static int make_folds(struct arena *a, struct eval_work *w, struct err *e)
{
    size_t n_campaigns = (size_t)w->catalog->n_campaigns;
    size_t n =
        (size_t)w->x.site.n_workloads + (size_t)w->x.site.n_types;    // no more parts, and one

    w->sites = ARENA_ARRAY(a, struct eval_site, n_campaigns);
    w->folds = ARENA_ARRAY(a, struct eval_fold, n_campaigns * n + 1);
    for (int i = 0; i < w->catalog->n_campaigns; i++)
        if (w->o->split == EVAL_CAMPAIGN || i == w->o->campaign)
            hold_out(a, w, i);
    return check_folds(w, e);
}

/* ---- what others teach ---- */

bool eval_are_kin(const char *a, const char *b)
{
    size_t n = strcspn(a, "-");

    return n == strcspn(b, "-") && memcmp(a, b, n) == 0;
}

/* Is what campaign 'i' has read no business of the site? */
static bool may_teach(const struct eval_work *w, const struct eval_site *s, int i, int what)
{
    const char *const *names = w->catalog->campaigns;

    return w->x.read[what][i].n > 0 && i != s->campaign &&
           !eval_are_kin(names[i], names[s->campaign]);
}

/* The only place that hyper-parameters come from. */
static int learn(struct eval_work *w, int at)
{
    struct eval_site *s = &w->sites[at];
    struct fit_options o = fit_defaults;
    struct arena a;
    int rc = 0;

    o.seed = w->o->seed;
    arena_init(&a);
    for (enum learned what = 0; what < LEARNED && rc == 0; what++) {
        if (w->o->model) {
            s->hyper[what] = w->o->model->around[what];
            continue;
        }
        struct campaign_readings *others =
            ARENA_ARRAY(&a, struct campaign_readings, (size_t)w->catalog->n_campaigns);
        int n = 0;
        for (int i = 0; i < w->catalog->n_campaigns; i++)
            if (may_teach(w, s, i, what))
                others[n++] = w->x.read[what][i];
        s->hyper[what] = hyper_start();
        if (n > 0)
            rc = hyper_fit(others, n, &o, &s->hyper[what], &w->failure[at]);
    }
    arena_release(&a);
    return rc;
}

static int run_fold(struct eval_work *w, int at)
{
    return eval_fold_run(&w->folds[at], &w->parts[at], &w->failure[at]);
}

/* ---- results ---- */

static bool is_scored(const struct eval_work *w, const struct eval_site *s, int workload)
{
    for (int i = 0; i < w->n_folds; i++)
        if (w->folds[i].site == s && eval_fold_scores(&w->folds[i], workload))
            return true;
    return false;
}

/* The chance that a pair does not fit, as the daemon takes it. */
static double unfit(const struct catalog *c, int workload, const struct eval_cell *cell)
{
    const struct gpu_type *type = &c->types[cell->type];
    struct roofline own, beside;
    struct prior prior;

    roofline(&c->workloads[workload], type, &own);
    roofline(&c->workloads[cell->neighbour], type, &beside);
    prior_of(&own, &beside, type->mem_bytes, &prior);
    return prior.unfit;
}

/* Over all pairs that were tried of workloads that are scored. */
static double fit_auc(const struct eval_work *w, const struct eval_site *s)
{
    struct arena a;
    size_t room = 0;
    int n = 0;

    for (int i = 0; i < w->x.site.n_workloads; i++)
        room += (size_t)s->cells[i].n;
    arena_init(&a);
    double *chance = ARENA_ARRAY(&a, double, room);
    bool *is_unfit = ARENA_ARRAY(&a, bool, room);
    for (int i = 0; i < w->x.site.n_workloads; i++)
        for (int k = 0; k < s->cells[i].n && is_scored(w, s, i); k++) {
            const struct eval_cell *c = &s->cells[i].cell[k];
            if (c->neighbour < 0 || !(eval_cell_counts(c, -1) || c->is_unfit))
                continue;
            chance[n] = unfit(w->catalog, i, c);
            is_unfit[n++] = c->is_unfit;
        }
    double auc = eval_auc(&a, chance, is_unfit, n);
    arena_release(&a);
    return auc;
}

/* One row of a campaign, from all of its folds. */
static struct eval_row merge_row(const struct eval_work *w, const struct eval_site *s, int at,
                                 enum eval_method m)
{
    struct eval_row out = { .campaign = s->campaign,
                            .n = w->o->n[at / w->o->n_k],
                            .k = w->o->k[at % w->o->n_k],
                            .method = eval_method_names[m] };
    struct eval_sum sum = { 0 };

    for (int i = 0; i < w->n_folds; i++)
        if (w->folds[i].site == s)
            eval_sum_merge(&sum, &w->parts[i].sums[at][m]);
    eval_sum_means(&sum, out.figure);
    return out;
}

/* The mean over campaigns of a row: of 'first' and each 'step' rows on. */
static struct eval_row mean_row(const struct eval_row *first, int n_sites, int step)
{
    struct eval_row out = *first;
    struct eval_sum sum = { 0 };

    for (int i = 0; i < n_sites; i++)
        eval_sum_add(&sum, first[i * step].figure);
    eval_sum_means(&sum, out.figure);
    out.campaign = -1;
    return out;
}

static void merge_rows(const struct eval_work *w, struct eval_result *out)
{
    int n = w->o->n_n * w->o->n_k;

    out->rows = heap_array((size_t)(w->n_sites + 1) * (size_t)n * EVAL_METHODS, sizeof *out->rows);
    for (int s = 0; s < w->n_sites; s++) {
        double auc = fit_auc(w, &w->sites[s]);
        for (int i = 0; i < n * EVAL_METHODS; i++) {
            enum eval_method m = (enum eval_method)(i % EVAL_METHODS);
            if (!eval_has(w->o, m))
                continue;
            struct eval_row *row = &out->rows[out->n_rows++];
            *row = merge_row(w, &w->sites[s], i / EVAL_METHODS, m);
            row->figure[EVAL_FIT_AUC] = m == EVAL_GOGH ? auc : (double)NAN;
        }
    }
    int step = out->n_rows / w->n_sites;
    for (int i = 0; i < step && w->o->split == EVAL_CAMPAIGN; i++)
        out->rows[out->n_rows++] = mean_row(&out->rows[i], w->n_sites, step);
}

static void merge(const struct eval_work *w, struct eval_result *out)
{
    size_t n = 0;

    out->n_folds = w->n_folds;
    for (int s = 0; s < w->n_sites; s++)
        for (int i = 0; i < w->x.site.n_workloads; i++)
            out->n_workloads += is_scored(w, &w->sites[s], i);
    merge_rows(w, out);
    for (int i = 0; i < w->n_folds; i++)
        n += (size_t)w->parts[i].n_predictions;
    out->predictions = heap_array(n, sizeof *out->predictions);
    for (int i = 0; i < w->n_folds; i++) {
        const struct eval_part *p = &w->parts[i];
        if (p->n_predictions)
            memcpy(&out->predictions[out->n_predictions], p->predictions,
                   (size_t)p->n_predictions * sizeof *p->predictions);
        out->n_predictions += p->n_predictions;
    }
}

/* ---- all of it ---- */

static void check(const struct catalog *c, const struct eval_options *o)
{
    assert(o->n_k > 0 && o->n_sequences > 0 && o->n_threads > 0);
    assert(o->split < EVAL_PARTS || o->n_n > 0);
    assert(o->split == EVAL_CAMPAIGN || (o->campaign >= 0 && o->campaign < c->n_campaigns));
    for (int i = 0; i < o->n_k; i++)
        assert(o->k[i] >= 0 && o->k[i] <= EVAL_K_MAX && (i == 0 || o->k[i] > o->k[i - 1]));
    for (int i = 0; i < o->n_n && o->split >= EVAL_PARTS; i++)
        assert(o->n[i] >= 0 && o->n[i] <= EVAL_N_MAX && (i == 0 || o->n[i] > o->n[i - 1]));
}

/* Of a campaign that parts are held out of all else is known. */
static struct eval_options complete(const struct eval_options *o)
{
    static const int all[] = { -1 };
    struct eval_options out = *o;

    if (o->split < EVAL_PARTS) {
        out.n = all;
        out.n_n = 1;
    }
    return out;
}

int eval_run(const struct catalog *c, const struct eval_options *o, struct eval_result *out,
             struct err *e)
{
    struct eval_options all = complete(o);
    struct eval_work w = { .catalog = c, .o = &all };
    struct arena a;

    check(c, o);
    nn_init();
    *out = (struct eval_result){ 0 };
    arena_init(&a);
    examples_take(c, &w.x);
    int rc = eval_has(&all, EVAL_NETWORK) || eval_has(&all, EVAL_GOGH)
                 ? network_pretrained(&w.network, e)
                 : 0;
    if (rc == 0)
        rc = make_folds(&a, &w, e);
    w.parts = ARENA_ARRAY(&a, struct eval_part, (size_t)w.n_folds);
    for (int i = 0; i < w.n_folds; i++)
        eval_part_init(&w.parts[i], &all);
    if (rc == 0)
        rc = run_all(&a, &w, w.n_sites, learn, e);
    if (rc == 0)
        rc = run_all(&a, &w, w.n_folds, run_fold, e);
    if (rc == 0)
        merge(&w, out);
    for (int i = 0; i < w.n_folds; i++)
        eval_part_release(&w.parts[i]);
    network_destroy(w.network);
    examples_release(&w.x);
    arena_release(&a);
    return rc;
}

void eval_release(struct eval_result *r)
{
    free(r->rows);
    free(r->predictions);
}
