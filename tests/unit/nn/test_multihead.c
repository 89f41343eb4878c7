/* Many queries over one set: against torch, and against differences. */
#include "nn/multihead.h"
#include "nn/params.h"
#include "unit/nn/reference.h"
#include "unit/suite.h"

enum { ROWS = 3, TOKENS = 4, MODEL = 6, HEADS = 2 };
enum { N_X = ROWS * MODEL, N_T = TOKENS * MODEL, N_B = HEADS * ROWS * TOKENS };
enum { N_K = (1 + TOKENS) * 2 * MODEL };

struct probe {
    struct multihead t;
    struct params p;
    float x[N_X], tokens[N_T], bias[N_B], dy[N_X], keys[N_K];
    float *scratch;    // exactly as large as promised: past it the sanitizer watches
};

static void probe_init(struct probe *k)
{
    struct rng r;

    rng_init(&r, 1, "multihead");
    params_init(&k->p);
    params_claim(&k->p, 5);
    multihead_init(&k->t, &k->p, MODEL, HEADS, &r);
    for (int i = 0; i < k->p.n; i++)
        k->p.w[i] += (float)(0.2 * rng_normal(&r));
    draw_normal(&r, N_X, k->x);
    draw_normal(&r, N_T, k->tokens);
    draw_normal(&r, N_B, k->bias);
    draw_normal(&r, N_X, k->dy);
    k->scratch = malloc(multihead_scratch(&k->t, ROWS, TOKENS) * sizeof *k->scratch);
}

static void probe_release(struct probe *k)
{
    params_release(&k->p);
    free(k->scratch);
}

static void forward(struct probe *k, const float *w, int n_tokens, float *y)
{
    multihead_keys(&k->t, w, n_tokens, k->tokens, k->keys);
    multihead_forward(&k->t, w, ROWS, k->x, &(struct multihead_set){ n_tokens, k->keys, k->bias },
                      y, k->scratch);
}

/* After forward, with the same weights. */
static void backward(struct probe *k, const float *w, float *dx, float *dtokens, float *dbias)
{
    float dkeys[N_K] = { 0 };

    multihead_backward(&k->t, w, ROWS, k->x, &(struct multihead_set){ TOKENS, k->keys, k->bias },
                       k->dy, &(struct multihead_slopes){ dx, dkeys, dbias }, k->p.grad,
                       k->scratch);
    multihead_keys_backward(&k->t, w, TOKENS, k->tokens, dkeys, dtokens, k->p.grad);
}

static double probe_value(void *self)
{
    struct probe *k = self;
    float y[N_X];

    forward(k, k->p.w, TOKENS, y);
    return dot(N_X, y, k->dy);
}

TEST(outputs_and_gradients_are_torchs)
{
    float y[N_X], dx[N_X], dtokens[N_T], dbias[N_B];
    struct vectors v;
    struct probe k;

    vectors_open(&v, "multihead");
    probe_init(&k);
    const int n = k.p.n - k.t.query.at;
    memcpy(k.p.w + k.t.query.at, vectors_get(&v, "w", n), (size_t)n * sizeof(float));
    memcpy(k.x, vectors_get(&v, "x", N_X), sizeof k.x);
    memcpy(k.tokens, vectors_get(&v, "tokens", N_T), sizeof k.tokens);
    memcpy(k.bias, vectors_get(&v, "bias", N_B), sizeof k.bias);
    memcpy(k.dy, vectors_get(&v, "dy", N_X), sizeof k.dy);
    forward(&k, k.p.w, TOKENS, y);
    assert_close("y", N_X, y, vectors_get(&v, "y", N_X), 2e-6);
    backward(&k, k.p.w, dx, dtokens, dbias);
    assert_close("dx", N_X, dx, vectors_get(&v, "dx", N_X), 4e-6);
    assert_close("dtokens", N_T, dtokens, vectors_get(&v, "dtokens", N_T), 4e-6);
    assert_close("dbias", N_B, dbias, vectors_get(&v, "dbias", N_B), 4e-6);
    assert_close("grad", n, k.p.grad + k.t.query.at, vectors_get(&v, "grad", n), 4e-6);
    probe_release(&k);
    vectors_close(&v);
}

TEST(gradients_are_those_of_differences)
{
    float dx[N_X], dtokens[N_T], dbias[N_B];
    struct probe k;

    probe_init(&k);
    probe_value(&k);
    backward(&k, k.p.w, dx, dtokens, dbias);
    assert_gradient("x", probe_value, &k, N_X, k.x, dx);
    assert_gradient("tokens", probe_value, &k, N_T, k.tokens, dtokens);
    assert_gradient("bias", probe_value, &k, N_B, k.bias, dbias);
    assert_gradient("w", probe_value, &k, k.p.n, k.p.w, k.p.grad);
    probe_release(&k);
}

TEST(without_tokens_all_rows_take_what_is_always_there)
{
    float y[N_X];
    struct probe k;

    probe_init(&k);
    forward(&k, k.p.w, 0, y);
    for (int row = 1; row < ROWS; row++)
        assert_close("row", MODEL, y + row * MODEL, y, 0);
    probe_release(&k);
}

TEST(a_bias_far_below_hides_a_token)
{
    float y[N_X], again[N_X];
    struct probe k;

    probe_init(&k);
    for (int i = 0; i < HEADS * ROWS; i++)
        k.bias[i * TOKENS + TOKENS - 1] = -1e4f;
    forward(&k, k.p.w, TOKENS, y);
    for (int i = 0; i < MODEL; i++)
        k.tokens[(TOKENS - 1) * MODEL + i] += 3;
    forward(&k, k.p.w, TOKENS, again);
    assert_close("y", N_X, again, y, 0);
    probe_release(&k);
}

TEST(the_order_of_tokens_does_not_matter)
{
    float y[N_X], again[N_X], tokens[N_T], bias[N_B];
    struct probe k;

    probe_init(&k);
    forward(&k, k.p.w, TOKENS, y);
    memcpy(tokens, k.tokens, sizeof tokens);
    memcpy(bias, k.bias, sizeof bias);
    for (int i = 0; i < N_T; i++)
        k.tokens[i] = tokens[(TOKENS - 1 - i / MODEL) * MODEL + i % MODEL];
    for (int i = 0; i < N_B; i++)
        k.bias[i] = bias[i / TOKENS * TOKENS + TOKENS - 1 - i % TOKENS];
    forward(&k, k.p.w, TOKENS, again);
    assert_close("y", N_X, again, y, 1e-6);
    probe_release(&k);
}
