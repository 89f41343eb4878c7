#include "estimate/model/model.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/grow.h"
#include "base/log.h"
#include "base/text/buf.h"
#include "base/text/file.h"
#include "nn/weights.h"
#include "store/store.h"

struct model *model_untaught(void)
{
    struct model *m = heap_array(1, sizeof *m);

    arena_init(&m->arena);
    m->about = "untaught";
    m->blas = "none";
    for (int what = 0; what < LEARNED; what++) {
        m->around[what] = m->hyper[what] = hyper_start();
        m->scale[what] = (struct hyper_scale){ 1, 1, 1, NAN };
    }
    m->comparison = (struct comparison){ .champion = NAN, .challenger = NAN };
    return m;
}

void model_destroy(struct model *m)
{
    if (!m)
        return;
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

/* ---- bytes ---- */

/* Everything that is a number by itself, in one row. What is NaN, which no file holds, is -1. */
enum {
    N_CAMPAIGNS,
    N_ALONE,
    N_PAIRS,
    N_WATTS,
    N_WORKLOADS,
    N_FAMILIES,
    N_MEASUREMENTS,
    CHAMPION,
    CHALLENGER,
    IS_WON,
    SCALES,    // alone, beside, known and the error, of each that is learned
    NUMBERS = SCALES + 4 * LEARNED
};

static double or_minus_1(double x)
{
    return isnan(x) ? -1 : x;
}

static double or_nan(double x)
{
    return x >= 0 ? x : (double)NAN;
}

static const char *const around_names[LEARNED] = { "speeds.around", "watts.around" };
static const char *const hyper_names[LEARNED] = { "speeds", "watts" };

static const char of_another_version[] =
    "weights, but not of a model that this version knows: train anew";

/* A row of a contest: cells, then both errors of each. */
enum { CONTEST_COLS = 1 + 2 * CONTESTANTS };

static void put_contests(const struct model *m, struct arena *a, struct weights *w)
{
    double *rows = ARENA_ARRAY(a, double, (size_t)m->n_contests *CONTEST_COLS), *at = rows;
    const char *names = "";

    for (int i = 0; i < m->n_contests; i++) {
        const struct contest *c = &m->contests[i];
        names = arena_printf(a, "%s%s\n", names, c->campaign);
        *at++ = c->n_cells;
        for (int who = 0; who < CONTESTANTS; who++) {
            *at++ = or_minus_1(c->alone[who]);
            *at++ = or_minus_1(c->slowdown[who]);
        }
    }
    weights_put_text(w, "contests", names);
    weights_put_doubles(w, "contests.errors", m->n_contests, CONTEST_COLS, rows);
}

static int take_contests(struct model *m, const struct weights *w, struct err *e)
{
    struct weights_reader in = { w, e, 0 };
    const struct weights_array *errors = weights_find(w, "contests.errors");

    if (!errors)    // of a version before
        return 0;
    const char *names = weights_text(&in, "contests");
    const double *at = weights_doubles(&in, "contests.errors", -1, CONTEST_COLS);
    if (in.rc < 0)
        return err_set(e, EINVAL, "%s", of_another_version);
    struct contest *list = ARENA_ARRAY(&m->arena, struct contest, (size_t)errors->rows);
    for (int i = 0; i < errors->rows; i++) {
        size_t len = strcspn(names, "\n");
        if (names[len] != '\n' || !(at[0] >= 0 && at[0] <= 1e9))
            return err_set(e, EINVAL, "model: a contest about nobody");
        list[i].campaign = arena_strndup(&m->arena, names, len);
        list[i].n_cells = (int)*at++;
        for (int who = 0; who < CONTESTANTS; who++) {
            list[i].alone[who] = or_nan(*at++);
            list[i].slowdown[who] = or_nan(*at++);
        }
        names += len + 1;
    }
    m->contests = list;
    m->n_contests = errors->rows;
    return 0;
}

int model_encode(const struct model *m, struct buf *out, struct err *e)
{
    double numbers[NUMBERS] = {
        [N_CAMPAIGNS] = m->n_campaigns,
        [N_ALONE] = m->n_alone,
        [N_PAIRS] = m->n_pairs,
        [N_WATTS] = m->n_watts,
        [N_WORKLOADS] = m->n_workloads,
        [N_FAMILIES] = m->n_families,
        [N_MEASUREMENTS] = (double)m->n_measurements,
        [CHAMPION] = or_minus_1(m->comparison.champion),
        [CHALLENGER] = or_minus_1(m->comparison.challenger),
        [IS_WON] = m->comparison.is_won,
    };
    struct arena a;
    struct weights w;

    arena_init(&a);
    weights_init(&w, &a);
    weights_put_text(&w, "about", m->about);
    weights_put_text(&w, "blas", m->blas);
    for (int i = 0; i < LEARNED; i++) {
        numbers[SCALES + 4 * i] = m->scale[i].alone;
        numbers[SCALES + 4 * i + 1] = m->scale[i].beside;
        numbers[SCALES + 4 * i + 2] = m->scale[i].known;
        numbers[SCALES + 4 * i + 3] = or_minus_1(m->scale[i].error);
        weights_put_doubles(&w, around_names[i], 1, HYPERS, m->around[i].at);
        weights_put_doubles(&w, hyper_names[i], 1, HYPERS, m->hyper[i].at);
    }
    weights_put_doubles(&w, "model", 1, NUMBERS, numbers);
    if (m->n_contests > 0)
        put_contests(m, &a, &w);
    int rc = weights_encode(&w, out, e);
    arena_release(&a);
    return rc;
}

static int take_numbers(struct model *m, const double *n, struct err *e)
{
    for (int i = 0; i <= N_MEASUREMENTS; i++)
        if (!(n[i] >= 0 && n[i] <= (i == N_MEASUREMENTS ? 1e15 : 1e9)))
            return err_set(e, EINVAL, "model: a count of %g", n[i]);
    m->n_campaigns = (int)n[N_CAMPAIGNS];
    m->n_alone = (int)n[N_ALONE];
    m->n_pairs = (int)n[N_PAIRS];
    m->n_watts = (int)n[N_WATTS];
    m->n_workloads = (int)n[N_WORKLOADS];
    m->n_families = (int)n[N_FAMILIES];
    m->n_measurements = (int64_t)n[N_MEASUREMENTS];
    m->comparison =
        (struct comparison){ or_nan(n[CHAMPION]), or_nan(n[CHALLENGER]), n[IS_WON] != 0 };
    for (int i = 0; i < LEARNED; i++) {
        const double *s = n + SCALES + 4 * i;
        m->scale[i] = (struct hyper_scale){ s[0], s[1], s[2], or_nan(s[3]) };
        for (int k = 0; k < 3; k++)
            if (!(s[k] >= 1 && s[k] <= 1e3))
                return err_set(e, EINVAL, "model: intervals widened %g times", s[k]);
    }
    return 0;
}

/* Logarithms of what a covariance can take, and slopes that are no larger. */
static int take_hyper(const double *at, struct hyper *out, struct err *e)
{
    if (!weights_within_doubles(at, HYPERS, 40))
        return err_set(e, EINVAL, "model: a parameter that is none");
    memcpy(out->at, at, sizeof out->at);
    return 0;
}

static int take_model(struct model *m, const struct weights *w, struct err *e)
{
    struct weights_reader in = { w, e, 0 };
    const char *about = weights_text(&in, "about"), *blas = weights_text(&in, "blas");
    const double *numbers = weights_doubles(&in, "model", 1, NUMBERS);

    if (in.rc < 0)    // an array that every model has, and as long
        return err_set(e, EINVAL, "%s", of_another_version);
    int rc = take_numbers(m, numbers, e);
    if (rc < 0)
        return rc;
    m->about = arena_strdup(&m->arena, about);
    m->blas = arena_strdup(&m->arena, blas);
    for (int i = 0; i < LEARNED && rc == 0; i++) {
        const double *around = weights_doubles(&in, around_names[i], 1, HYPERS);
        const double *hyper = weights_doubles(&in, hyper_names[i], 1, HYPERS);
        rc = in.rc < 0 ? err_set(e, EINVAL, "%s", of_another_version)
                       : take_hyper(around, &m->around[i], e);
        if (rc == 0)
            rc = take_hyper(hyper, &m->hyper[i], e);
    }
    return rc == 0 ? take_contests(m, w, e) : rc;
}

int model_decode(const void *bytes, size_t len, struct model **out, struct err *e)
{
    struct model *m = model_untaught();
    struct arena a;
    struct weights w;

    arena_init(&a);
    int rc = weights_decode(&a, bytes, len, &w, e);
    if (rc == 0)
        rc = take_model(m, &w, e);
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

double model_error(const struct model *m)
{
    return m->scale[LEARN_SPEEDS].error;
}
