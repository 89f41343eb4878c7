#include "nn/multihead.h"

#include <assert.h>
#include <cblas.h>
#include <math.h>
#include <string.h>

#include "nn/activation.h"
#include "nn/params.h"

void multihead_init(struct multihead *t, struct params *p, int n_model, int n_heads, struct rng *r)
{
    assert(n_heads > 0 && n_model > 0 && n_model % n_heads == 0);
    *t = (struct multihead){ .n_heads = n_heads, .n_model = n_model };
    dense_init(&t->query, p, n_model, n_model, r);
    dense_init(&t->key_value, p, n_model, 2 * n_model, r);
    dense_init(&t->out, p, n_model, n_model, r);
    t->nobody_at = params_claim(p, 2 * n_model);
    params_draw(p, t->nobody_at, 2 * n_model, n_model, n_model, r);
}

void multihead_keys(const struct multihead *t, const float *w, int n_tokens, const float *x,
                    float *keys)
{
    memcpy(keys, w + t->nobody_at, 2 * (size_t)t->n_model * sizeof *keys);
    dense_forward(&t->key_value, w, n_tokens, x, keys + 2 * t->n_model);
}

void multihead_keys_backward(const struct multihead *t, const float *w, int n_tokens,
                             const float *x, const float *dkeys, float *dx, float *grad)
{
    for (int i = 0; i < 2 * t->n_model && grad != NULL; i++)
        grad[t->nobody_at + i] += dkeys[i];
    dense_backward(&t->key_value, w, n_tokens, x, dkeys + 2 * t->n_model, dx, grad);
}

/* What lives in scratch. */
struct multihead_parts {
    float *query, *gathered, *dgathered, *dquery;    // (n, n_model)
    float *share;     // (n_heads, n, 1 + n_tokens): how much of a token is taken
    float *dshare;    // (n, 1 + n_tokens), of one head at a time
};

static struct multihead_parts parts_of(const struct multihead *t, int n, int n_tokens,
                                       float *scratch)
{
    size_t rows = (size_t)n * (size_t)t->n_model, shares = (size_t)n * (size_t)(1 + n_tokens);
    struct multihead_parts k = { .query = scratch };

    k.gathered = k.query + rows;
    k.dgathered = k.gathered + rows;
    k.dquery = k.dgathered + rows;
    k.share = k.dquery + rows;
    k.dshare = k.share + shares * (size_t)t->n_heads;
    return k;
}

size_t multihead_scratch(const struct multihead *t, int n, int n_tokens)
{
    return (size_t)n * (4 * (size_t)t->n_model + (size_t)(1 + n_tokens) * (size_t)(1 + t->n_heads));
}

/* Scores (1 + n_tokens) to shares: exponents over their sum. */
static void softmax(int n, float *score)
{
    float top = score[0], sum = 0;

    for (int i = 1; i < n; i++)
        top = score[i] > top ? score[i] : top;
    for (int i = 0; i < n; i++)
        score[i] -= top;
    exp_forward((size_t)n, score, score);
    for (int i = 0; i < n; i++)
        sum += score[i];
    for (int i = 0; i < n; i++)
        score[i] /= sum;
}

static float scale_of(const struct multihead *t)
{
    return sqrtf((float)t->n_heads / (float)t->n_model);
}

void multihead_forward(const struct multihead *t, const float *w, int n, const float *x,
                       const struct multihead_set *set, float *y, float *scratch)
{
    const struct multihead_parts k = parts_of(t, n, set->n_tokens, scratch);
    const int model = t->n_model, width = model / t->n_heads, len = 1 + set->n_tokens;

    if (n == 0)
        return;
    dense_forward(&t->query, w, n, x, k.query);
    for (int head = 0; head < t->n_heads; head++) {
        const float *key = set->keys + head * width, *value = key + model;
        float *share = k.share + (size_t)head * (size_t)n * (size_t)len;

        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, len, width, scale_of(t),
                    k.query + head * width, model, key, 2 * model, 0, share, len);
        for (size_t row = 0; row < (size_t)n; row++) {
            const float *add = set->bias + ((size_t)head * (size_t)n + row) * (size_t)set->n_tokens;
            float *score = share + row * (size_t)len;

            for (int i = 0; i < set->n_tokens; i++)
                score[1 + i] += add[i];
            softmax(len, score);
        }
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, width, len, 1, share, len, value,
                    2 * model, 0, k.gathered + head * width, model);
    }
    dense_forward(&t->out, w, n, k.gathered, y);
}

/* Slopes by shares become slopes by scores, which those of the bias are. */
static void softmax_backward(int n_tokens, const float *share, float *dshare, float *dbias)
{
    float mean = 0;

    for (int i = 0; i <= n_tokens; i++)
        mean += share[i] * dshare[i];
    for (int i = 0; i <= n_tokens; i++)
        dshare[i] = share[i] * (dshare[i] - mean);
    memcpy(dbias, dshare + 1, (size_t)n_tokens * sizeof *dbias);
}

void multihead_backward(const struct multihead *t, const float *w, int n, const float *x,
                        const struct multihead_set *set, const float *dy,
                        const struct multihead_slopes *slopes, float *grad, float *scratch)
{
    const struct multihead_parts k = parts_of(t, n, set->n_tokens, scratch);
    const int model = t->n_model, width = model / t->n_heads, len = 1 + set->n_tokens;

    if (n == 0)
        return;
    dense_backward(&t->out, w, n, k.gathered, dy, k.dgathered, grad);
    for (int head = 0; head < t->n_heads; head++) {
        const float *key = set->keys + head * width, *value = key + model;
        const float *share = k.share + (size_t)head * (size_t)n * (size_t)len;
        const float *dgathered = k.dgathered + head * width;
        float *dkey = slopes->dkeys + head * width, *dvalue = dkey + model;

        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, len, width, 1, dgathered, model,
                    value, 2 * model, 0, k.dshare, len);
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, len, width, n, 1, share, len,
                    dgathered, model, 1, dvalue, 2 * model);
        for (size_t row = 0; row < (size_t)n; row++)
            softmax_backward(set->n_tokens, share + row * (size_t)len, k.dshare + row * (size_t)len,
                             slopes->dbias +
                                 ((size_t)head * (size_t)n + row) * (size_t)set->n_tokens);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, width, len, scale_of(t), k.dshare,
                    len, key, 2 * model, 0, k.dquery + head * width, model);
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, len, width, n, scale_of(t), k.dshare,
                    len, k.query + head * width, model, 1, dkey, 2 * model);
    }
    dense_backward(&t->query, w, n, x, k.dquery, slopes->dx, grad);
}
