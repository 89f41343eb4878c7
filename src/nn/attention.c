#include "nn/attention.h"

#include <assert.h>
#include <cblas.h>
#include <math.h>
#include <string.h>

#include "nn/activation.h"
#include "nn/params.h"

void attention_init(struct attention *t, struct params *p, int n_query, int n_token, int n_model,
                    int n_heads, struct rng *r)
{
    assert(n_heads > 0 && n_model > 0 && n_model % n_heads == 0);
    *t = (struct attention){ .n_heads = n_heads, .n_model = n_model };
    dense_init(&t->query, p, n_query, n_model, r);
    dense_init(&t->key_value, p, n_token, 2 * n_model, r);
    dense_init(&t->out, p, n_model, n_model, r);
}

/* What lives in scratch. */
struct attention_parts {
    float *query, *dquery;            // (n, n_model)
    float *key_value, *dkey_value;    // (n, len, 2 n_model)
    float *share, *dshare;            // (n, n_heads, len): how much of a token is taken
    float *gathered, *dgathered;      // (n, n_model): before the last projection
    float *dy;                        // (n, n_model): zero for rows without tokens
};

static struct attention_parts parts_of(const struct attention *t, int n, int len, float *scratch)
{
    size_t rows = (size_t)n * (size_t)t->n_model, tokens = rows * 2 * (size_t)len;
    size_t shares = (size_t)n * (size_t)t->n_heads * (size_t)len;
    struct attention_parts k = { .query = scratch };

    k.dquery = k.query + rows;
    k.gathered = k.dquery + rows;
    k.dgathered = k.gathered + rows;
    k.dy = k.dgathered + rows;
    k.key_value = k.dy + rows;
    k.dkey_value = k.key_value + tokens;
    k.share = k.dkey_value + tokens;
    k.dshare = k.share + shares;
    return k;
}

size_t attention_scratch(const struct attention *t, int n, int len)
{
    size_t per_row = 5 + 4 * (size_t)len;

    return (size_t)n * (per_row * (size_t)t->n_model + 2 * (size_t)t->n_heads * (size_t)len);
}

static bool row_has_tokens(const struct tokens *in, size_t row)
{
    for (size_t i = 0; i < (size_t)in->len; i++)
        if (tokens_have(in, row * (size_t)in->len + i))
            return true;
    return false;
}

/* Scores of a row's tokens, which begin at 'first', to shares: exponents over their sum. Absent
 * tokens get none.
 */
static void softmax(const struct tokens *in, size_t first, float *score)
{
    const size_t len = (size_t)in->len;
    float top = -INFINITY, sum = 0;

    for (size_t i = 0; i < len; i++)
        if (tokens_have(in, first + i) && score[i] > top)
            top = score[i];
    for (size_t i = 0; i < len; i++)
        score[i] -= top;
    exp_forward(len, score, score);
    for (size_t i = 0; i < len; i++) {
        score[i] = tokens_have(in, first + i) ? score[i] : 0;
        sum += score[i];
    }
    for (size_t i = 0; i < len; i++)
        score[i] /= sum;
}

/* One head of one row: 'key' points at its first number of the first token's key; the
 * value stands n_model further, the next token 2 n_model.
 */
static void head_forward(const struct attention *t, const struct tokens *in, size_t row,
                         const float *query, const float *key, float *share, float *gathered)
{
    const int width = t->n_model / t->n_heads, next = 2 * t->n_model, len = in->len;
    const float scale = 1 / sqrtf((float)width);

    for (int i = 0; i < len; i++) {
        float dot = 0;

        for (int j = 0; j < width; j++)
            dot += query[j] * key[(size_t)i * (size_t)next + (size_t)j];
        share[i] = dot * scale;
    }
    softmax(in, row * (size_t)len, share);
    memset(gathered, 0, (size_t)width * sizeof *gathered);
    for (int i = 0; i < len; i++) {
        const float *value = key + (size_t)i * (size_t)next + t->n_model;

        for (int j = 0; j < width; j++)
            gathered[j] += share[i] * value[j];
    }
}

void attention_forward(const struct attention *t, const float *w, const float *query,
                       const struct tokens *in, float *y, float *scratch)
{
    const int n = in->n, len = in->len;
    const struct attention_parts k = parts_of(t, n, len, scratch);
    const size_t model = (size_t)t->n_model, l = (size_t)len;

    dense_forward(&t->query, w, n, query, k.query);
    dense_forward(&t->key_value, w, n * len, in->x, k.key_value);
    memset(k.gathered, 0, (size_t)n * model * sizeof *k.gathered);
    for (size_t row = 0; row < (size_t)n; row++) {
        if (!row_has_tokens(in, row))
            continue;
        for (size_t head = 0; head < (size_t)t->n_heads; head++) {
            size_t first = head * (model / (size_t)t->n_heads);

            head_forward(t, in, row, k.query + row * model + first,
                         k.key_value + row * l * 2 * model + first,
                         k.share + (row * (size_t)t->n_heads + head) * l,
                         k.gathered + row * model + first);
        }
    }
    dense_forward(&t->out, w, n, k.gathered, y);
    for (size_t row = 0; row < (size_t)n; row++)
        if (!row_has_tokens(in, row))
            memset(y + row * model, 0, model * sizeof *y);
}

/* One head of one row, backwards; dquery and dkey (with its value) are overwritten. An
 * absent token has a share of 0, which makes all its gradients 0.
 */
static void head_backward(const struct attention *t, int len, const float *query, const float *key,
                          const float *share, const float *dgathered, float *dshare, float *dquery,
                          float *dkey)
{
    const int width = t->n_model / t->n_heads;
    const float scale = 1 / sqrtf((float)width);
    float mean = 0;

    for (int i = 0; i < len; i++) {
        const float *value = key + (size_t)i * 2 * (size_t)t->n_model + t->n_model;
        float *dvalue = dkey + (value - key);

        dshare[i] = 0;
        for (int j = 0; j < width; j++) {
            dshare[i] += dgathered[j] * value[j];
            dvalue[j] = dgathered[j] * share[i];
        }
        mean += dshare[i] * share[i];
    }
    memset(dquery, 0, (size_t)width * sizeof *dquery);
    for (int i = 0; i < len; i++) {
        const size_t at = (size_t)i * 2 * (size_t)t->n_model;
        const float dscore = share[i] * (dshare[i] - mean) * scale;

        for (int j = 0; j < width; j++) {
            dquery[j] += dscore * key[at + (size_t)j];
            dkey[at + (size_t)j] = dscore * query[j];
        }
    }
}

void attention_backward(const struct attention *t, const float *w, const float *query,
                        const struct tokens *in, const float *dy, float *dquery, float *dtokens,
                        float *grad, float *scratch)
{
    const int n = in->n, len = in->len;
    const struct attention_parts k = parts_of(t, n, len, scratch);
    const size_t model = (size_t)t->n_model, l = (size_t)len;

    memcpy(k.dy, dy, (size_t)n * model * sizeof *dy);
    for (size_t row = 0; row < (size_t)n; row++)
        if (!row_has_tokens(in, row))
            memset(k.dy + row * model, 0, model * sizeof *dy);
    dense_backward(&t->out, w, n, k.gathered, k.dy, k.dgathered, grad);
    memset(k.dquery, 0, (size_t)n * model * sizeof *k.dquery);
    memset(k.dkey_value, 0, (size_t)n * l * 2 * model * sizeof *k.dkey_value);
    for (size_t row = 0; row < (size_t)n; row++) {
        if (!row_has_tokens(in, row))
            continue;
        for (size_t head = 0; head < (size_t)t->n_heads; head++) {
            size_t first = head * (model / (size_t)t->n_heads);
            size_t share = (row * (size_t)t->n_heads + head) * l;
            size_t key = row * l * 2 * model + first;

            head_backward(t, len, k.query + row * model + first, k.key_value + key, k.share + share,
                          k.dgathered + row * model + first, k.dshare + share,
                          k.dquery + row * model + first, k.dkey_value + key);
        }
    }
    dense_backward(&t->query, w, n, query, k.dquery, dquery, grad);
    dense_backward(&t->key_value, w, n * len, in->x, k.dkey_value, dtokens, grad);
}
