#include "sim/eval/sites.h"

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
#include "nn/gp.h"
#include "sim/eval/cells.h"
#include "sim/eval/sites_fold.h"

/* A family of a site. */
struct site_fold {
    const struct eval_site *site;
    int family;
};

/* All that is to be done: first what each site may know is learned, then its folds are run. */
struct site_work {
    const struct catalog *catalog;
    const struct eval_options *o;
    struct site site;
    struct campaign_readings *readings[EVAL_READS];    // (n_campaigns)
    struct eval_site *sites;                           // (n_sites)
    int n_sites;
    struct site_fold *folds;         // (n_folds)
    struct eval_site_part *parts;    // (n_folds)
    int n_folds;

    int (*task_f)(struct site_work *w, int at);
    int n_tasks;
    struct err *failure;     // (n_tasks)
    pthread_mutex_t lock;    // of what follows
    int n_begun, n_done, first_failed;
};

/* ---- threads ---- */

/* The next task, or -1. They begin in order, so that of several failures the first is told. */
static int next_task(struct site_work *w, int done, int rc)
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
    struct site_work *w = self;

    for (int at = next_task(w, -1, 0); at >= 0;)
        at = next_task(w, at, w->task_f(w, at));
    return NULL;
}

/* Run 'n' tasks, this thread among others; a thread that cannot be had is done without. */
static int run_all(struct arena *a, struct site_work *w, int n,
                   int (*task_f)(struct site_work *w, int at), struct err *e)
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

bool eval_sites_are_kin(const char *a, const char *b)
{
    size_t n = strcspn(a, "-");

    return n == strcspn(b, "-") && memcmp(a, b, n) == 0;
}

/* Campaigns as readings of one site: they share workloads and types, not effects. */
static void take_readings(struct arena *a, struct site_work *w)
{
    const struct catalog *c = w->catalog;

    site_init(&w->site, c->types, c->n_types);
    for (int i = 0; i < c->n_workloads; i++)
        site_add(&w->site, &c->workloads[i], c->types);
    for (int what = 0; what < EVAL_READS; what++) {
        w->readings[what] = ARENA_ARRAY(a, struct campaign_readings, (size_t)c->n_campaigns);
        for (int i = 0; i < c->n_campaigns; i++) {
            struct reading *list;
            int n = what == EVAL_SPEEDS ? site_readings(a, c, &w->site, i, &list)
                                        : site_watts(a, c, &w->site, i, &list);
            w->readings[what][i] = (struct campaign_readings){ &w->site, list, n };
        }
    }
}

/* Put the folds of a campaign in the list, and it into that of sites if it has any. */
static void hold_out(struct arena *a, struct site_work *w, int campaign)
{
    struct eval_site *s = &w->sites[w->n_sites];
    bool *has_fold = ARENA_ARRAY(a, bool, (size_t)w->site.n_families);
    int had = w->n_folds;

    *s = (struct eval_site){ .catalog = w->catalog,
                             .o = w->o,
                             .site = &w->site,
                             .campaign = campaign,
                             .at = w->n_sites,
                             .cells = eval_cells_take(a, w->catalog, campaign) };
    for (int what = 0; what < EVAL_READS; what++)
        s->read[what] = w->readings[what][campaign];
    for (int i = 0; i < w->site.n_workloads; i++) {
        int family = w->site.family[i];
        if (!eval_site_scores(s, i) || has_fold[family])
            continue;
        has_fold[family] = true;
        w->folds[w->n_folds++] = (struct site_fold){ s, family };
    }
    w->n_sites += w->n_folds > had;
}

static int make_folds(struct arena *a, struct site_work *w, struct err *e)
{
    const struct catalog *c = w->catalog;
    bool is_each = w->o->split == EVAL_CAMPAIGN;
    size_t n_campaigns = (size_t)c->n_campaigns;

    w->sites = ARENA_ARRAY(a, struct eval_site, n_campaigns);
    w->folds = ARENA_ARRAY(a, struct site_fold, n_campaigns * (size_t)w->site.n_families);
    for (int i = 0; i < c->n_campaigns; i++)
        if (is_each || i == w->o->campaign)
            hold_out(a, w, i);
    if (w->n_folds == 0 && is_each)
        return err_set(e, ENODATA,
                       "no workload was measured alone on one GPU: import measurements first");
    if (w->n_folds == 0)
        return err_set(e, ENODATA,
                       "campaign '%s': no workload was measured alone on one GPU; name another one "
                       "with --campaign, or import measurements first",
                       c->campaigns[w->o->campaign]);
    return 0;
}

/* ---- what others teach ---- */

/* Is what campaign 'i' has read no business of the site? */
static bool may_teach(const struct site_work *w, const struct eval_site *s, int i, int what)
{
    const char *const *names = w->catalog->campaigns;

    return w->readings[what][i].n > 0 && i != s->campaign &&
           !eval_sites_are_kin(names[i], names[s->campaign]);
}

/* The first of the sites that all learn from the same others. */
static const struct eval_site *first_of_kin(const struct site_work *w, const struct eval_site *s)
{
    const char *const *names = w->catalog->campaigns;
    const struct eval_site *first = w->sites;

    while (!eval_sites_are_kin(names[first->campaign], names[s->campaign]))
        first++;
    return first;
}

static int learn(struct site_work *w, int at)
{
    struct eval_site *s = &w->sites[at];
    struct fit_options o = fit_defaults;
    struct arena a;
    int rc = 0;

    if (first_of_kin(w, s) != s)
        return 0;
    o.seed = w->o->seed;
    arena_init(&a);
    for (int what = 0; what < EVAL_READS && rc == 0; what++) {
        struct campaign_readings *others =
            ARENA_ARRAY(&a, struct campaign_readings, (size_t)w->catalog->n_campaigns);
        int n = 0;
        for (int i = 0; i < w->catalog->n_campaigns; i++)
            if (may_teach(w, s, i, what))
                others[n++] = w->readings[what][i];
        s->hyper[what] = hyper_start();
        if (n > 0)
            rc = hyper_fit(others, n, &o, &s->hyper[what], &w->failure[at]);
    }
    arena_release(&a);
    return rc;
}

static void share_among_kin(struct site_work *w)
{
    for (int i = 0; i < w->n_sites; i++)
        for (int what = 0; what < EVAL_READS; what++)
            w->sites[i].hyper[what] = first_of_kin(w, &w->sites[i])->hyper[what];
}

static int run_fold(struct site_work *w, int at)
{
    return eval_site_fold_run(w->folds[at].site, w->folds[at].family, &w->parts[at],
                              &w->failure[at]);
}

/* ---- results ---- */

/* One row of a campaign, from all of its folds. */
static void merge_row(const struct site_work *w, const struct eval_site *s, int at, int method,
                      struct eval_row *out)
{
    double sum[EVAL_FIGURES] = { 0 };
    int n[EVAL_FIGURES] = { 0 };

    for (int i = 0; i < w->n_folds; i++) {
        const struct eval_sum *part = &w->parts[i].sums[at][method];
        for (int f = 0; f < EVAL_FIGURES && w->folds[i].site == s; f++) {
            sum[f] += part->sum[f];
            n[f] += part->n[f];
        }
    }
    *out = (struct eval_row){ .campaign = s->campaign,
                              .n = w->o->n[at / w->o->n_k],
                              .k = w->o->k[at % w->o->n_k],
                              .method = eval_site_method_names[method] };
    for (int f = 0; f < EVAL_FIGURES; f++)
        out->figure[f] = n[f] ? sum[f] / n[f] : (double)NAN;
}

/* The mean over campaigns of a row: of 'first' and each 'step' rows on. */
static struct eval_row mean_row(const struct eval_row *first, int n_sites, int step)
{
    struct eval_row out = *first;

    out.campaign = -1;
    for (int f = 0; f < EVAL_FIGURES; f++) {
        double sum = 0;
        int n = 0;
        for (int i = 0; i < n_sites; i++) {
            double figure = first[i * step].figure[f];
            sum += isnan(figure) ? 0 : figure;
            n += !isnan(figure);
        }
        out.figure[f] = n ? sum / n : (double)NAN;
    }
    return out;
}

static void merge_rows(const struct site_work *w, struct eval_result *out)
{
    int n = w->o->n_n * w->o->n_k, step = n * SITES_METHODS;

    out->rows = heap_array((size_t)(w->n_sites + 1) * (size_t)step, sizeof *out->rows);
    for (int s = 0; s < w->n_sites; s++)
        for (int at = 0; at < n; at++)
            for (int m = 0; m < SITES_METHODS; m++)
                merge_row(w, &w->sites[s], at, m, &out->rows[out->n_rows++]);
    for (int i = 0; i < step && w->o->split == EVAL_CAMPAIGN; i++)
        out->rows[out->n_rows++] = mean_row(&out->rows[i], w->n_sites, step);
}

static void merge(const struct site_work *w, struct eval_result *out)
{
    size_t n = 0;

    out->n_folds = w->n_folds;
    for (int s = 0; s < w->n_sites; s++)
        for (int i = 0; i < w->site.n_workloads; i++)
            out->n_workloads += eval_site_scores(&w->sites[s], i);
    merge_rows(w, out);
    for (int i = 0; i < w->n_folds; i++)
        n += (size_t)w->parts[i].n_predictions;
    out->predictions = heap_array(n, sizeof *out->predictions);
    for (int i = 0; i < w->n_folds; i++) {
        const struct eval_site_part *p = &w->parts[i];
        if (p->n_predictions)
            memcpy(&out->predictions[out->n_predictions], p->predictions,
                   (size_t)p->n_predictions * sizeof *p->predictions);
        out->n_predictions += p->n_predictions;
    }
}

static void check(const struct catalog *c, const struct eval_options *o)
{
    assert(o->split >= EVAL_PARTS && o->n_n > 0 && o->n_k > 0);
    assert(o->n_sequences > 0 && o->n_threads > 0);
    assert(o->split != EVAL_SITE || (o->campaign >= 0 && o->campaign < c->n_campaigns));
    for (int i = 0; i < o->n_k; i++)
        assert(o->k[i] >= 0 && o->k[i] <= EVAL_K_MAX && (i == 0 || o->k[i] > o->k[i - 1]));
    for (int i = 0; i < o->n_n; i++)
        assert(o->n[i] >= 0 && o->n[i] <= EVAL_N_MAX && (i == 0 || o->n[i] > o->n[i - 1]));
}

int eval_sites_run(const struct catalog *c, const struct eval_options *o, struct eval_result *out,
                   struct err *e)
{
    struct site_work w = { .catalog = c, .o = o };
    struct arena a;

    check(c, o);
    nn_init();
    *out = (struct eval_result){ 0 };
    arena_init(&a);
    take_readings(&a, &w);
    int rc = make_folds(&a, &w, e);
    w.parts = ARENA_ARRAY(&a, struct eval_site_part, (size_t)w.n_folds);
    for (int i = 0; i < w.n_folds; i++)
        eval_site_part_init(&w.parts[i], o);
    if (rc == 0)
        rc = run_all(&a, &w, w.n_sites, learn, e);
    share_among_kin(&w);
    if (rc == 0)
        rc = run_all(&a, &w, w.n_folds, run_fold, e);
    if (rc == 0)
        merge(&w, out);
    for (int i = 0; i < w.n_folds; i++)
        eval_site_part_release(&w.parts[i]);
    site_release(&w.site);
    arena_release(&a);
    return rc;
}
