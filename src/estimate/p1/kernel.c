#include "estimate/p1/kernel.h"

#include <assert.h>
#include <cblas.h>
#include <errno.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "nn/weights.h"

static double square(double x)
{
    return x * x;
}

/* e^(-d2/2) of squared distances, in units of a length. */
static double near(double d2, double length)
{
    return exp(-d2 / (2 * length * length));
}

static double distance2(const float *a, const float *b, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += square((double)(a[i] - b[i]));
    return sum;
}

static double dot(const float *a, const float *b, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += (double)(a[i] * b[i]);
    return sum;
}

double kernel_alone(const struct kernel_point *a, const struct kernel_point *b)
{
    const struct features *p = &a->on, *q = &b->on;
    double type = features_same_type(p, q);
    double kin = identity_kin(&a->who, &b->who);
    double shares = dot(p->share, q->share, FEATURE_SHARES);
    double kinds = dot(p->kind, q->kind, FEATURE_KINDS);
    double apart = distance2(p->kind, q->kind, FEATURE_KINDS);
    double like = near(distance2(p->share, q->share, FEATURE_SHARES), 0.3) * near(apart, 0.7);
    double k = 0.04 * (1 + type)                                       // all jobs, all jobs there
               + (0.09 + 0.04 * type) * shares                         // what the time goes to
               + 0.16 * kinds * (double)(p->share[0] * q->share[0])    // compute by its kind
               + (1 + type) * (0.1 * near(apart, 0.6) + 0.04 * like);

    if (kin > 0)
        k += kin * (0.09 + 0.04 * type +
                    0.04 * (1 + type) * near(square((double)(p->ln_batch - q->ln_batch)), 1));
    if (a->who.name == b->who.name)
        k += 0.0025;
    return k;
}

void ridge_inputs(const struct features *f, double *x)
{
    int n = 0;

    for (int i = 0; i < FEATURE_SHARES; i++)
        x[n++] = ((double)f->share[i] - 0.25) / 0.25;
    for (int i = 0; i < FEATURE_KINDS; i++)
        x[n++] = ((double)f->kind[i] - 0.25) / 0.35;
    for (int i = 0; i < FEATURE_KINDS; i++)
        x[n++] = ((double)(f->kind[i] * f->share[0]) - 0.15) / 0.25;
    for (int i = 0; i < FEATURE_FIGURES; i++)
        x[n++] = (double)f->figure[i] / 0.5;
    x[n++] = ((double)f->ln_batch - 4) / 2;
    x[n++] = ((double)f->ln_step_s + 2) / 2;
    assert(n == RIDGE_INPUTS);
}

double kernel_ridge(const struct kernel_point *a, const struct kernel_point *b)
{
    double p[RIDGE_INPUTS], q[RIDGE_INPUTS], sum = 0;

    ridge_inputs(&a->on, p);
    ridge_inputs(&b->on, q);
    for (int i = 0; i < RIDGE_INPUTS; i++)
        sum += p[i] * q[i];
    return sum / RIDGE_PENALTY;
}

double kernel_beside(const struct kernel_point *a, const struct kernel_point *b)
{
    const struct features *p = &a->on, *q = &b->on;
    double kin = identity_kin(&a->who, &b->who), d2 = 0;

    for (int i = 0; i < FEATURE_SHARES; i++)
        d2 += square((sqrt((double)p->share[i]) - sqrt((double)q->share[i])) / 0.7);
    d2 += square((double)(p->ln_step_s - q->ln_step_s) / 2.8);
    d2 += square((double)(p->ln_kernel_s - q->ln_kernel_s) / 2.8);
    double k = 0.4 * exp(-d2 / 2);
    if (kin > 0)
        k += 0.6 * kin * near(square((double)(p->ln_batch - q->ln_batch)), 2);
    return k + (a->who.name == b->who.name ? 0.05 : 0);
}

/* ---- a process over points ---- */

/* The Cholesky factor of the inverse. Its numbers are no larger than 1 / sqrt(noise), so floats
 * hold the variance it explains to 1e-6.
 */
static int take_root(struct arena *a, struct process *p, struct err *e)
{
    int n = p->gp.n;
    size_t size = (size_t)n;
    struct arena scratch;

    p->root = ARENA_ARRAY(a, float, size *size);
    if (n == 0)
        return 0;
    arena_init(&scratch);
    double *root = ARENA_ARRAY(&scratch, double, size *size);
    memcpy(root, p->gp.inverse, size * size * sizeof *root);
    int rc = LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', n, root, n);
    for (size_t i = 0; i < size; i++)
        for (size_t j = 0; j <= i; j++)
            p->root[i * size + j] = (float)root[i * size + j];
    arena_release(&scratch);
    return rc == 0 ? 0 : err_set(e, EDOM, "inverse of %d points: minor %d is not positive", n, rc);
}

static int process_solve(struct arena *a, struct process *p, int n, struct err *e)
{
    size_t size = (size_t)n;
    double *k = ARENA_ARRAY(a, double, size *size);

    for (size_t i = 0; i < size; i++) {
        for (size_t j = 0; j <= i; j++)
            k[i * size + j] = k[j * size + i] = p->kernel(&p->points[i], &p->points[j]);
        k[i * size + i] += p->noises[i];
    }
    int rc = gp_fit(a, n, k, p->y, &p->gp, e);
    p->ones = ARENA_ARRAY(a, double, size);
    for (size_t i = 0; i < size * size && rc == 0; i++)
        p->ones[i / size] += p->gp.inverse[i];
    rows_init(a, p->kernel, n, p->points, &p->rows);
    return rc == 0 && p->kernel != kernel_ridge ? take_root(a, p, e) : rc;
}

int process_fit(struct arena *a, kernel_f *kernel, double noise, const struct examples *x, int n,
                const struct example *list, struct process *out, struct err *e)
{
    *out = (struct process){ .kernel = kernel,
                             .points = ARENA_ARRAY(a, struct kernel_point, (size_t)n),
                             .noise = noise,
                             .noises = ARENA_ARRAY(a, double, (size_t)n),
                             .y = ARENA_ARRAY(a, double, (size_t)n) };
    for (int i = 0; i < n; i++) {
        out->points[i] =
            (struct kernel_point){ x->who[list[i].workload],
                                   *examples_at(x, list[i].workload, list[i].gpu_type) };
        out->mean += (double)list[i].value / n;
        out->noises[i] = noise + square((double)list[i].noise);
    }
    for (int i = 0; i < n; i++)
        out->y[i] = (double)list[i].value - out->mean;
    return process_solve(a, out, n, e);
}

/* The points of a workload. */
static int points_of(const struct process *p, const struct identity *who, int *block)
{
    int m = 0;

    for (int i = 0; i < p->gp.n; i++)
        if (p->points[i].who.name == who->name)
            block[m++] = i;
    return m;
}

/* By how much the mean is another without the block; 0 is what nothing makes. */
static double mean_shift(const struct process *p, int m, const int *block)
{
    double gone = 0;

    for (int i = 0; i < m; i++)
        gone += p->y[block[i]];
    return m < p->gp.n ? -gone / (p->gp.n - m) : -p->mean;
}

/* The same points with another y: 1 everywhere. A shift of the mean is as much of it less. */
static struct gp ones_of(const struct process *p)
{
    return (struct gp){ .n = p->gp.n, .inverse = p->gp.inverse, .alpha = p->ones };
}

/* alpha of the process without its block, about the mean without it. */
static int forget(struct arena *a, const struct process *p, int m, const int *block, double *shift,
                  double *alpha, struct err *e)
{
    struct gp ones = ones_of(p);
    double *one = ARENA_ARRAY(a, double, (size_t)p->gp.n);
    int rc = gp_without(a, &p->gp, m, block, alpha, e);

    if (rc == 0)
        rc = gp_without(a, &ones, m, block, one, e);
    *shift = mean_shift(p, m, block);
    for (int i = 0; i < p->gp.n && rc == 0; i++)
        alpha[i] -= *shift * one[i];
    return rc;
}

int process_ask(struct arena *a, const struct process *p, const struct kernel_point *at,
                double *mean, struct err *e)
{
    int n = p->gp.n;
    int *block = ARENA_ARRAY(a, int, (size_t)n);
    double *k = ARENA_ARRAY(a, double, (size_t)n);
    double *rest = ARENA_ARRAY(a, double, (size_t)n), shift = 0;
    int m = points_of(p, &at->who, block);
    int rc = m ? forget(a, p, m, block, &shift, rest, e) : 0;

    for (int i = 0; i < n; i++)
        k[i] = p->kernel(at, &p->points[i]);
    for (int i = 0; i < m; i++)
        k[block[i]] = 0;
    *mean = p->mean + shift + (n ? cblas_ddot(n, k, 1, m ? rest : p->gp.alpha, 1) : 0);
    return rc;
}

/* In four lanes, so that no sum waits for the one before. */
static double mixed_dot(int n, const float *a, const double *b)
{
    double lane[4] = { 0 }, rest = 0;
    int i = 0;

    for (; i + 4 <= n; i += 4)
        for (int l = 0; l < 4; l++)
            lane[l] += (double)a[i + l] * b[i + l];
    for (; i < n; i++)
        rest += (double)a[i] * b[i];
    return (lane[0] + lane[1]) + (lane[2] + lane[3]) + rest;
}

/* |R' k|^2 of each of n_at rows 'k'. In panels of some columns, below whose first there is nothing
 * to skip: half the work of a whole product, and faster for few rows than BLAS's triangular one.
 */
static void explained_by_all(struct arena *a, const struct process *p, int n_at, const float *k,
                             double *out)
{
    enum { PANEL = 64 };
    int n = p->gp.n;
    float *part = ARENA_ARRAY(a, float, (size_t)n_at *PANEL);

    for (int at = 0; at < n_at; at++)
        out[at] = 0;
    for (int first = 0; first < n; first += PANEL) {
        int cols = n - first < PANEL ? n - first : PANEL;
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n_at, cols, n - first, 1, k + first,
                    n, p->root + (size_t)first * (size_t)(n + 1), n, 0, part, PANEL);
        for (int at = 0; at < n_at; at++)
            out[at] += (double)cblas_sdot(cols, part + at * PANEL, 1, part + at * PANEL, 1);
    }
}

/* k' Q k of each of n_at rows 'k', for the process without its block, where k is 0 already. */
static int explained_all(struct arena *a, const struct process *p, int n_at, const float *k, int m,
                         const int *block, double *out, struct err *e)
{
    int n = p->gp.n, rc = 0;
    double *u = ARENA_ARRAY(a, double, (size_t)m), gone = 0;

    explained_by_all(a, p, n_at, k, out);
    for (int at = 0; at < n_at && m && rc == 0; at++) {
        for (int i = 0; i < m; i++)
            u[i] = mixed_dot(n, k + (size_t)at * (size_t)n,
                             p->gp.inverse + (size_t)block[i] * (size_t)n);
        rc = gp_in_block(a, &p->gp, m, block, u, &gone, e);
        out[at] -= gone;
    }
    return rc;
}

int process_ask_all(struct arena *a, const struct process *p, int n_at,
                    const struct kernel_point *at, double *mean, double *sd, struct err *e)
{
    int n = p->gp.n;
    size_t size = (size_t)n;
    int *block = ARENA_ARRAY(a, int, size);
    float *k = ARENA_ARRAY(a, float, (size_t)n_at *size);
    double *rest = ARENA_ARRAY(a, double, size), shift = 0;
    int m = n_at ? points_of(p, &at->who, block) : 0;
    int rc = m ? forget(a, p, m, block, &shift, rest, e) : 0;

    if (rc < 0)
        return rc;
    for (int i = 0; i < n_at; i++) {
        float *row = k + (size_t)i * size;
        assert(at[i].who.name == at->who.name);
        rows_ask(a, &p->rows, &at[i], row);
        for (int j = 0; j < m; j++)
            row[block[j]] = 0;
        mean[i] = p->mean + shift + mixed_dot(n, row, m ? rest : p->gp.alpha);
    }
    if (!sd)
        return 0;
    assert(p->root || n == 0);
    rc = explained_all(a, p, n_at, k, m, block, sd, e);
    for (int i = 0; i < n_at; i++)
        sd[i] = sqrt(fmax(p->kernel(&at[i], &at[i]) + p->noise - sd[i], 1e-4));
    return rc;
}

int process_leave_out(struct arena *a, const struct process *p, int m, const int *block,
                      double *mean, double *sd, struct err *e)
{
    double *at = ARENA_ARRAY(a, double, (size_t)m);
    double *cov = ARENA_ARRAY(a, double, (size_t)m *(size_t)m);
    double *one = ARENA_ARRAY(a, double, (size_t)p->gp.n),
           *at_one = ARENA_ARRAY(a, double, (size_t)m);
    double shift = mean_shift(p, m, block);
    struct gp ones = ones_of(p);
    int rc = gp_leave_out(a, &p->gp, p->y, m, block, at, cov, e);

    for (int i = 0; i < p->gp.n; i++)
        one[i] = 1;
    if (rc == 0)
        rc = gp_leave_out(a, &ones, one, m, block, at_one, NULL, e);
    for (int i = 0; i < m && rc == 0; i++) {
        mean[block[i]] = p->mean + shift + at[i] - shift * at_one[i];
        sd[block[i]] = sqrt(cov[i * m + i]);
    }
    return rc;
}

/* ---- saving ---- */

/* Digests travel as four numbers of 16 bits each: a float holds those exactly. */
static float *put_digest(float *to, uint64_t d)
{
    for (int i = 0; i < 4; i++)
        *to++ = (float)(d >> (16 * i) & 0xffff);
    return to;
}

static const float *get_digest(const float *from, uint64_t *d)
{
    *d = 0;
    for (int i = 0; i < 4; i++)
        *d |= (uint64_t)fminf(fmaxf(*from++, 0), 65535) << (16 * i);
    return from;
}

/* A point has ln_roofline and ln_watts behind the features that are arrays. */
static int feature_of(int column)
{
    enum { ARRAYS = FEATURE_SHARES + FEATURE_KINDS + FEATURE_FIGURES };

    if (column < ARRAYS)
        return column + 2;
    return column < ARRAYS + 2 ? column - ARRAYS : column;
}

static void put_point(const struct kernel_point *p, float *to)
{
    double row[FEATURE_NUMBERS];

    to = put_digest(put_digest(put_digest(to, p->who.name), p->who.family), p->who.dataset);
    features_write(&p->on, row);
    for (int i = 0; i < FEATURE_NUMBERS; i++)
        to[i] = (float)row[feature_of(i)];
}

/* false: numbers that no feature has. */
static bool get_point(const float *from, struct kernel_point *p)
{
    double row[FEATURE_NUMBERS];

    if (!weights_within(from + DIGEST_FLOATS, FEATURE_NUMBERS, (float)FEATURE_MAX))
        return false;
    from = get_digest(from, &p->who.name);
    from = get_digest(from, &p->who.family);
    from = get_digest(from, &p->who.dataset);
    for (int i = 0; i < FEATURE_NUMBERS; i++)
        row[feature_of(i)] = (double)from[i];
    features_read(row, &p->on);
    return true;
}

void points_save(const struct kernel_point *points, int n, const char *name, struct weights *to)
{
    float *rows = ARENA_ARRAY(to->a, float, (size_t)n *POINT_FLOATS);

    for (int i = 0; i < n; i++)
        put_point(&points[i], rows + (size_t)i * POINT_FLOATS);
    weights_put(to, name, n, POINT_FLOATS, rows);
}

int points_load(struct arena *a, const struct weights *from, const char *name,
                struct kernel_point **out, int *n, struct err *e)
{
    struct weights_reader in = { from, e, 0 };
    const float *rows = weights_floats(&in, name, -1, POINT_FLOATS);

    if (in.rc < 0)
        return in.rc;
    *n = weights_find(from, name)->rows;
    if (*n > POINTS_MAX)
        return err_set(e, EINVAL, "%s: %d points are more than a model has", name, *n);
    *out = ARENA_ARRAY(a, struct kernel_point, (size_t)*n);
    for (int i = 0; i < *n; i++)
        if (!get_point(rows + (size_t)i * POINT_FLOATS, &(*out)[i]))
            return err_set(e, EINVAL, "%s: point %d is beyond any feature", name, i + 1);
    return 0;
}

/* The process is kept as what it was made from, and made again: an inverse of 512 points is 2 MB,
 * the points themselves 80 KB.
 */
void process_save(const struct process *p, const char *name, struct weights *to)
{
    struct arena *a = to->a;
    int n = p->gp.n;
    double *rest = ARENA_ARRAY(a, double, 2 * (size_t)n + 2);

    points_save(p->points, n, arena_printf(a, "%s.points", name), to);
    rest[0] = p->mean;
    rest[1] = p->noise;
    memcpy(rest + 2, p->y, (size_t)n * sizeof *rest);
    memcpy(rest + 2 + n, p->noises, (size_t)n * sizeof *rest);
    weights_put_doubles(to, arena_printf(a, "%s.values", name), 1, 2 * n + 2, rest);
}

/* No residual and no variance of one is near this. */
#define VALUE_MAX 1e6

/* Of the row that process_save writes: the process's noise and those of its n points. */
static bool are_variances(const double *rest, int n)
{
    for (int i = 0; i < n; i++)
        if (!(rest[2 + n + i] >= rest[1]))
            return false;
    return rest[1] > 0;
}

int process_load(struct arena *a, kernel_f *kernel, const struct weights *from, const char *name,
                 struct process *out, struct err *e)
{
    struct weights_reader in = { from, e, 0 };
    int n = 0;

    *out = (struct process){ .kernel = kernel };
    int rc = points_load(a, from, arena_printf(a, "%s.points", name), &out->points, &n, e);
    if (rc == 0 && n > EXAMPLES_PAIRS_MAX)
        rc = err_set(e, EINVAL, "%s: %d points are more than are learned from", name, n);
    if (rc < 0)
        return rc;
    const double *rest = weights_doubles(&in, arena_printf(a, "%s.values", name), 1, 2 * n + 2);
    if (in.rc < 0)
        return in.rc;
    if (!weights_within_doubles(rest, 2 * (size_t)n + 2, VALUE_MAX))
        rc = err_set(e, EINVAL, "%s.values: a number that nothing measured is", name);
    if (rc == 0 && !are_variances(rest, n))
        rc = err_set(e, EINVAL, "%s.values: a variance below what is left unexplained", name);
    if (rc < 0)
        return rc;
    out->mean = rest[0];
    out->noise = rest[1];
    out->y = ARENA_ARRAY(a, double, (size_t)n);
    out->noises = ARENA_ARRAY(a, double, (size_t)n);
    memcpy(out->y, rest + 2, (size_t)n * sizeof *rest);
    memcpy(out->noises, rest + 2 + n, (size_t)n * sizeof *rest);
    return process_solve(a, out, n, e);
}
