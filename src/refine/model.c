#include "refine/model.h"

#include <assert.h>
#include <cblas.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/file.h"
#include "base/log.h"
#include "estimate/p1/p1.h"
#include "nn/weights.h"
#include "refine/p2.h"
#include "store/store.h"

static struct model *model_new(void)
{
    struct model *m = calloc(1, sizeof *m);

    assert(m);    // out of memory: stop
    arena_init(&m->arena);
    m->comparison = (struct comparison){ .champion = NAN, .challenger = NAN };
    return m;
}

void model_destroy(struct model *m)
{
    if (!m)
        return;
    p2_destroy(m->p2);
    p1_destroy(m->p1);
    arena_release(&m->arena);
    free(m);
}

/* '*out' gets 'm', or nothing when 'rc' says that it came to nothing. */
static int finish(struct model *m, int rc, struct model **out)
{
    if (rc < 0) {
        model_destroy(m);
        m = NULL;
    }
    *out = m;
    return rc;
}

/* ---- learning ---- */

/* Workloads and families that there are examples of. */
static void count_workloads(struct arena *a, const struct examples *x, const struct holdout *v,
                            struct model *m)
{
    bool *is_met = ARENA_ARRAY(a, bool, (size_t)x->n_workloads);
    bool *is_met_family = ARENA_ARRAY(a, bool, (size_t)x->n_families);

    for (int i = 0; i < x->n_alone; i++) {
        const struct example *e = &x->alone[i];
        int family = x->family[e->workload];
        if (!holdout_shows(v, e->workload, e->gpu_type, -1))
            continue;
        m->n_workloads += !is_met[e->workload];
        m->n_families += !is_met_family[family];
        is_met[e->workload] = is_met_family[family] = true;
    }
}

static int count_shown(const struct example *all, int n, const struct holdout *v)
{
    int n_shown = 0;

    for (int i = 0; i < n; i++)
        n_shown += holdout_shows(v, all[i].workload, all[i].gpu_type, all[i].neighbour);
    return n_shown;
}

int model_train(const struct examples *x, const struct holdout *v, const struct p1_options *o,
                const char *about, struct model **out, struct err *e)
{
    struct model *m = model_new();
    struct arena scratch;

    arena_init(&scratch);
    struct holdout all = { .is_held = ARENA_ARRAY(&scratch, bool, (size_t)x->n_workloads) };
    v = v ? v : &all;
    m->about = arena_strdup(&m->arena, about);
    m->blas = arena_strdup(&m->arena, openblas_get_corename());
    m->n_alone = count_shown(x->alone, x->n_alone, v);
    m->n_pairs = count_shown(x->pairs, x->n_pairs, v);
    m->n_watts = count_shown(x->watts, x->n_watts, v);
    count_workloads(&scratch, x, v, m);
    int rc = p1_train(x, v, o, &m->p1, e);
    if (rc == 0)
        m->p2 = p2_train(x, m->p1, o->seed);
    arena_release(&scratch);
    return finish(m, rc, out);
}

/* ---- bytes ---- */

/* Everything that is a number by itself, in one row. What is NaN, which no file holds, is -1. */
enum {
    N_ALONE,
    N_PAIRS,
    N_WATTS,
    N_WORKLOADS,
    N_FAMILIES,
    N_MEASUREMENTS,
    CHAMPION,
    CHALLENGER,
    IS_WON,
    NUMBERS
};

int model_encode(const struct model *m, struct buf *out, struct err *e)
{
    const double numbers[NUMBERS] = {
        [N_ALONE] = m->n_alone,
        [N_PAIRS] = m->n_pairs,
        [N_WATTS] = m->n_watts,
        [N_WORKLOADS] = m->n_workloads,
        [N_FAMILIES] = m->n_families,
        [N_MEASUREMENTS] = (double)m->n_measurements,
        [CHAMPION] = isnan(m->comparison.champion) ? -1 : m->comparison.champion,
        [CHALLENGER] = isnan(m->comparison.challenger) ? -1 : m->comparison.challenger,
        [IS_WON] = m->comparison.is_won,
    };
    struct arena a;
    struct weights w;

    arena_init(&a);
    weights_init(&w, &a);
    weights_put_text(&w, "about", m->about);
    weights_put_text(&w, "blas", m->blas);
    weights_put_doubles(&w, "model", 1, NUMBERS, numbers);
    int rc = p1_save(m->p1, &w, e);
    if (rc == 0) {
        p2_save(m->p2, &w);
        rc = weights_encode(&w, out, e);
    }
    arena_release(&a);
    return rc;
}

static double or_nan(double x)
{
    return x >= 0 ? x : (double)NAN;
}

static int take_numbers(struct model *m, const struct weights *w, struct err *e)
{
    struct weights_reader in = { w, e, 0 };
    const char *about = weights_text(&in, "about"), *blas = weights_text(&in, "blas");
    const double *n = weights_doubles(&in, "model", 1, NUMBERS);

    if (in.rc < 0)
        return in.rc;
    for (int i = 0; i <= N_MEASUREMENTS; i++)
        if (!(n[i] >= 0 && n[i] <= (i == N_MEASUREMENTS ? 1e15 : 1e9)))
            return err_set(e, EINVAL, "model: a count of %g", n[i]);
    m->about = arena_strdup(&m->arena, about);
    m->blas = arena_strdup(&m->arena, blas);
    m->n_alone = (int)n[N_ALONE];
    m->n_pairs = (int)n[N_PAIRS];
    m->n_watts = (int)n[N_WATTS];
    m->n_workloads = (int)n[N_WORKLOADS];
    m->n_families = (int)n[N_FAMILIES];
    m->n_measurements = (int64_t)n[N_MEASUREMENTS];
    m->comparison =
        (struct comparison){ or_nan(n[CHAMPION]), or_nan(n[CHALLENGER]), n[IS_WON] != 0 };
    return 0;
}

int model_decode(const void *bytes, size_t len, struct model **out, struct err *e)
{
    struct model *m = model_new();
    struct arena a;
    struct weights w;

    arena_init(&a);
    int rc = weights_decode(&a, bytes, len, &w, e);
    if (rc == 0)
        rc = take_numbers(m, &w, e);
    if (rc == 0)
        rc = p1_load(&w, &m->p1, e);
    if (rc == 0)
        rc = p2_load(&w, &m->p2, e);
    if (rc == -ENOENT)    // an array that every model has
        rc = err_set(e, EINVAL, "weights, but not of a model that this version knows: train anew");
    arena_release(&a);
    return finish(m, rc, out);
}

/* ---- by name ---- */

static int open_default(struct store *s, struct model **out, struct err *e)
{
    int rc = s ? model_fetch(s, MODEL_CHAMPION, out, e) : -ENOENT;

    if (rc == -EINVAL || rc == -ENOTSUP)    // damaged, or of another version: a site goes on
        log_warn("%s; using the pretrained model until 'gogh train' makes a new one", e->text);
    if (rc == -ENOENT || rc == -EINVAL || rc == -ENOTSUP)
        rc = model_pretrained(out, e);
    return rc == -ENOENT ? 0 : rc;
}

int model_open(const char *which, struct store *s, struct model **out, struct err *e)
{
    *out = NULL;
    if (!which)
        return open_default(s, out, e);
    if (strcmp(which, "none") == 0)
        return 0;
    if (strcmp(which, "pretrained") == 0)
        return model_pretrained(out, e);
    if (strcmp(which, "site") != 0)
        return model_read(which, out, e);
    if (!s)
        return err_set(e, ENOENT, "model 'site': there is no store that could have one");
    return model_fetch(s, MODEL_CHAMPION, out, e);
}

int model_read(const char *path, struct model **out, struct err *e)
{
    struct arena a;
    const char *bytes = NULL;
    size_t len = 0;

    arena_init(&a);
    *out = NULL;
    int rc = file_read(&a, path, NULL, WEIGHTS_BYTES_MAX, &bytes, &len, e);
    if (rc == 0) {
        rc = model_decode(bytes, len, out, e);
        if (rc < 0 && e)
            err_prefix(e, "%s", path);
    }
    arena_release(&a);
    return rc;
}

int model_write(const struct model *m, const char *path, struct err *e)
{
    struct buf b;

    buf_init(&b, WEIGHTS_BYTES_MAX);
    int rc = model_encode(m, &b, e);
    if (rc == 0)
        rc = file_write(path, b.data, b.len, e);
    buf_release(&b);
    return rc;
}

int model_keep(const struct model *m, struct store *s, const char *name, double time_s,
               struct err *e)
{
    struct buf b;

    buf_init(&b, WEIGHTS_BYTES_MAX);
    int rc = model_encode(m, &b, e);
    if (rc == 0)
        rc = store_begin(s, e);
    if (rc == 0) {
        rc = store_put_model(s, name, time_s, b.data, b.len, e);
        if (rc == 0)
            rc = store_commit(s, e);
        if (rc < 0)
            store_rollback(s);
    }
    buf_release(&b);
    return rc;
}

int model_fetch(struct store *s, const char *name, struct model **out, struct err *e)
{
    void *bytes;
    size_t len;
    int rc = store_get_model(s, name, &bytes, &len, e);

    *out = NULL;
    if (rc < 0)
        return rc;
    rc = model_decode(bytes, len, out, e);
    free(bytes);
    if (rc < 0 && e)
        store_blame(s, e);
    return rc;
}

/* ---- how wrong ---- */

/* The mean of both, or the one that there is. */
static double both(double alone, double pair)
{
    if (isnan(alone) || isnan(pair))
        return isnan(alone) ? pair : alone;
    return (alone + pair) / 2;
}

double model_error(const struct model *m)
{
    struct p1_score s = p1_score_of(m->p1, P1_ENSEMBLE);
    double kin = both(s.alone[REGIME_KIN], s.pair[REGIME_KIN]);

    return isnan(kin) ? both(s.alone[REGIME_STRANGER], s.pair[REGIME_STRANGER]) : kin;
}

/* Sums of squares over the same examples. */
struct error_sums {
    double champion, challenger;
    int n;
};

static void add_square(struct error_sums *q, double champion, float *const held[REGIMES], int i)
{
    double kin = (double)held[REGIME_KIN][i], stranger = (double)held[REGIME_STRANGER][i];
    double challenger = isnan(kin) ? stranger : kin;

    if (isnan(challenger) || isnan(champion))
        return;
    q->champion += champion * champion;
    q->challenger += challenger * challenger;
    q->n++;
}

static double root_mean(double sum, int n)
{
    return n > 0 ? sqrt(sum / n) : (double)NAN;
}

/* Both on examples that neither has learned from: of workloads that the champion does not know,
 * and the challenger as its training held them out.
 */
static void compare(const struct p1_context *s, const struct p1_errors *held,
                    const struct examples *x, struct error_sums *alone, struct error_sums *pair)
{
    for (int i = 0; i < x->n_alone; i++) {
        const struct example *ex = &x->alone[i];
        double was = (double)ex->value + examples_at(x, ex->workload, ex->gpu_type)->ln_roofline;

        if (!p1_knows(s, ex->workload))
            add_square(alone, was - (double)p1_alone(s, ex->workload, ex->gpu_type).ln_speed,
                       held->of[P1_ALONE], i);
    }
    for (int i = 0; i < x->n_pairs; i++) {
        const struct example *ex = &x->pairs[i];
        float said, sd;

        if (p1_knows(s, ex->workload))
            continue;
        p1_beside(s, ex->workload, ex->gpu_type, ex->neighbour, ex->neighbour + 1, &said, &sd);
        add_square(pair, (double)ex->value - (double)said, held->of[P1_OWN], i);
    }
}

struct comparison model_compare(const struct model *champion, const struct model *challenger,
                                const struct examples *x)
{
    struct error_sums alone = { 0 }, pair = { 0 };
    struct comparison d = { .champion = NAN,
                            .challenger = model_error(challenger),
                            .is_won = true };

    if (!champion)
        return d;
    struct p1_context *s = p1_context_create(champion->p1, x->n_types);
    for (int w = 0; w < x->n_workloads; w++)
        p1_context_add(s, &x->who[w], examples_at(x, w, 0));
    compare(s, p1_held_out(challenger->p1), x, &alone, &pair);
    p1_context_destroy(s);
    if (alone.n + pair.n == 0)    // nobody is new: more measurements of the same
        return d;
    d.champion = both(root_mean(alone.champion, alone.n), root_mean(pair.champion, pair.n));
    d.challenger = both(root_mean(alone.challenger, alone.n), root_mean(pair.challenger, pair.n));
    d.is_won = d.challenger < d.champion;
    return d;
}
