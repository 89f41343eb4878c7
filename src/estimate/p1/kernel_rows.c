/* kernel_rows.c - the kernels of one point with many at once.
 *
 * The same sums as in kernel.c, with floats and in another order: loops over all points for each
 * coordinate, which gcc -O3 makes vectors of, and the exponentials of a chunk together.
 */
#include <assert.h>
#include <cblas.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "estimate/p1/kernel.h"
#include "nn/activation.h"

enum { CHUNK = 128 };    // points whose numbers stay in the fastest memory

enum { ALONE_WIDTH = FEATURE_SHARES + FEATURE_KINDS, BESIDE_WIDTH = FEATURE_SHARES + 2 };

/* ---- coordinates ---- */

static int width_of(kernel_f *kernel)
{
    if (kernel == kernel_alone)
        return ALONE_WIDTH;
    if (kernel == kernel_ridge)
        return RIDGE_INPUTS;
    assert(kernel == kernel_beside);
    return BESIDE_WIDTH;
}

static void take_alone(const struct features *f, float *x)
{
    memcpy(x, f->share, sizeof f->share);
    memcpy(x + FEATURE_SHARES, f->kind, sizeof f->kind);
}

static void take_ridge(const struct features *f, float *x)
{
    double inputs[RIDGE_INPUTS];

    ridge_inputs(f, inputs);
    for (int i = 0; i < RIDGE_INPUTS; i++)
        x[i] = (float)inputs[i];
}

/* Such that kernel_beside is e^(-d^2/2) of their distance d. */
static void take_beside(const struct features *f, float *x)
{
    for (int i = 0; i < FEATURE_SHARES; i++)
        x[i] = sqrtf(f->share[i]) / 0.7f;
    x[FEATURE_SHARES] = f->ln_step_s / 2.8f;
    x[FEATURE_SHARES + 1] = f->ln_kernel_s / 2.8f;
}

static void take(kernel_f *kernel, const struct features *f, float *x)
{
    if (kernel == kernel_alone)
        take_alone(f, x);
    else if (kernel == kernel_ridge)
        take_ridge(f, x);
    else
        take_beside(f, x);
}

/* Position of a GPU type among 'types'; added when it is new. */
static int type_of(struct rows *r, const struct features *f)
{
    int t = 0;

    while (t < r->n_types && !features_are_of_one_type(&r->types[t], f))
        t++;
    if (t == r->n_types)
        r->types[r->n_types++] = *f;
    return t;
}

void rows_init(struct arena *a, kernel_f *kernel, int n, const struct kernel_point *points,
               struct rows *out)
{
    size_t size = (size_t)n;
    float x[RIDGE_INPUTS];

    *out = (struct rows){ .kernel = kernel, .n = n, .width = width_of(kernel) };
    out->who = ARENA_ARRAY(a, struct identity, size);
    out->ln_batch = ARENA_ARRAY(a, float, size);
    out->type = ARENA_ARRAY(a, int, size);
    out->types = ARENA_ARRAY(a, struct features, size);
    out->x = ARENA_ARRAY(a, float, size *(size_t)out->width);
    for (int i = 0; i < n; i++) {
        const struct features *f = &points[i].on;
        out->who[i] = points[i].who;
        out->ln_batch[i] = f->ln_batch;
        out->type[i] = type_of(out, f);
        take(kernel, f, x);
        for (int c = 0; c < out->width; c++)
            out->x[(size_t)c * size + (size_t)i] = x[c];
    }
}

/* ---- rows ---- */

/* e^-(d^2)/2 of a logarithm's distance, in units of a length. */
static double near(float a, float b, double length)
{
    double d = (double)(a - b) / length;

    return exp(-d * d / 2);
}

/* Nearly all are, so no call for those. */
static bool is_stranger(const struct identity *a, const struct identity *b)
{
    return a->name != b->name && a->family != b->family;
}

/* How alike the type of 'at' is to each of the points': asked once for each type. */
static const float *same_types(struct arena *a, const struct rows *r, const struct features *on)
{
    float *of_type = ARENA_ARRAY(a, float, (size_t)r->n_types);
    float *same = ARENA_ARRAY(a, float, (size_t)r->n);

    for (int t = 0; t < r->n_types; t++)
        of_type[t] = (float)features_same_type(on, &r->types[t]);
    for (int i = 0; i < r->n; i++)
        same[i] = of_type[r->type[i]];
    return same;
}

/* Everything but kin, for m <= CHUNK points of which 'x' has the coordinates, 'n' apart. */
static void alone_chunk(int m, size_t n, const float *x, const float *at, const float *same,
                        float *k)
{
    float near_kind[CHUNK] = { 0 }, like[CHUNK] = { 0 };

    for (int i = 0; i < m; i++) {
        float shares = 0, kinds = 0, apart = 0, apart_kind = 0;
        for (size_t c = 0; c < FEATURE_SHARES; c++) {
            float other = x[c * n + (size_t)i], d = at[c] - other;
            shares += at[c] * other;
            apart += d * d;
        }
        for (size_t c = FEATURE_SHARES; c < ALONE_WIDTH; c++) {
            float other = x[c * n + (size_t)i], d = at[c] - other;
            kinds += at[c] * other;
            apart_kind += d * d;
        }
        k[i] = 0.04f * (1 + same[i]) + (0.09f + 0.04f * same[i]) * shares +
               0.16f * kinds * (at[0] * x[i]);
        near_kind[i] = apart_kind * (-1 / (2 * 0.6f * 0.6f));
        like[i] = apart * (-1 / (2 * 0.3f * 0.3f)) + apart_kind * (-1 / (2 * 0.7f * 0.7f));
    }
    exp_forward((size_t)m, near_kind, near_kind);
    exp_forward((size_t)m, like, like);
    for (int i = 0; i < m; i++)
        k[i] += (1 + same[i]) * (0.1f * near_kind[i] + 0.04f * like[i]);
}

static void row_alone(struct arena *a, const struct rows *r, const struct kernel_point *at,
                      const float *x, float *k)
{
    const float *same = same_types(a, r, &at->on);

    for (int i = 0; i < r->n; i += CHUNK)
        alone_chunk(r->n - i < CHUNK ? r->n - i : CHUNK, (size_t)r->n, r->x + i, x, same + i,
                    k + i);
    for (int i = 0; i < r->n; i++) {
        if (is_stranger(&at->who, &r->who[i]))
            continue;
        double kin = identity_kin(&at->who, &r->who[i]), type = (double)same[i];
        k[i] += (float)(kin * (0.09 + 0.04 * type +
                               0.04 * (1 + type) * near(at->on.ln_batch, r->ln_batch[i], 1)));
        if (at->who.name == r->who[i].name)
            k[i] += 0.0025f;
    }
}

static void row_ridge(const struct rows *r, const float *x, float *k)
{
    const float penalty = (float)RIDGE_PENALTY;

    if (r->n)
        cblas_sgemv(CblasRowMajor, CblasTrans, r->width, r->n, 1 / penalty, r->x, r->n, x, 1, 0, k,
                    1);
}

static void row_beside(const struct rows *r, const struct kernel_point *at, const float *x,
                       float *k)
{
    size_t n = (size_t)r->n;

    for (size_t i = 0; i < n; i++) {
        float d2 = 0;
        for (size_t c = 0; c < BESIDE_WIDTH; c++) {
            float d = x[c] - r->x[c * n + i];
            d2 += d * d;
        }
        k[i] = d2 * -0.5f;
    }
    exp_forward(n, k, k);
    for (size_t i = 0; i < n; i++) {
        k[i] *= 0.4f;
        if (is_stranger(&at->who, &r->who[i]))
            continue;
        double kin = identity_kin(&at->who, &r->who[i]);
        k[i] += (float)(0.6 * kin * near(at->on.ln_batch, r->ln_batch[i], 2));
        if (at->who.name == r->who[i].name)
            k[i] += 0.05f;
    }
}

void rows_ask(struct arena *a, const struct rows *r, const struct kernel_point *at, float *k)
{
    float x[RIDGE_INPUTS];

    take(r->kernel, &at->on, x);
    if (r->kernel == kernel_alone)
        row_alone(a, r, at, x, k);
    else if (r->kernel == kernel_ridge)
        row_ridge(r, x, k);
    else
        row_beside(r, at, x, k);
}
