/* The recurrent layer: against torch, with absent tokens, and against differences. */
#include "nn/gru.h"
#include "nn/params.h"
#include "unit/nn/reference.h"
#include "unit/suite.h"

static const struct {
    const char *name, *file;
    int rows, len;
} files[] = {
    { "all tokens are there", "gru", 3, 5 },
    { "some rows lack some tokens, one all of them", "gru-absent", 4, 4 },
};

EACH(outputs_and_gradients_are_torchs, files)
{
    const int rows = files[_i].rows, len = files[_i].len, n_x = rows * len * 3, n_h = rows * 4;
    struct vectors v;
    struct params p;
    struct gru g;

    vectors_open(&v, files[_i].file);
    params_init(&p);
    gru_init(&g, &p, 3, 4, NULL);
    const float *w = vectors_get(&v, "w", p.n), *x = vectors_get(&v, "x", n_x);
    const bool *there = vectors_get_flags(&v, "there", rows * len);
    float *scratch = ARENA_ARRAY(&v.arena, float, gru_scratch(&g, rows, len));
    float *h = ARENA_ARRAY(&v.arena, float, (size_t)n_h);
    float *dx = ARENA_ARRAY(&v.arena, float, (size_t)n_x);
    float *dh0 = ARENA_ARRAY(&v.arena, float, (size_t)n_h);
    gru_forward(&g, w, &(struct tokens){ rows, len, x, there }, vectors_get(&v, "h0", n_h), h,
                scratch);
    assert_close("h", n_h, h, vectors_get(&v, "h", n_h), 2e-6);
    gru_backward(&g, w, &(struct tokens){ rows, len, x, there }, vectors_get(&v, "dh", n_h), dx,
                 dh0, p.grad, scratch);
    assert_close("dx", n_x, dx, vectors_get(&v, "dx", n_x), 2e-6);
    assert_close("dh0", n_h, dh0, vectors_get(&v, "dh0", n_h), 2e-6);
    assert_close("grad", p.n, p.grad, vectors_get(&v, "grad", p.n), 2e-6);
    params_release(&p);
    vectors_close(&v);
}

enum { ROWS = 3, LEN = 4, IN = 2, STATE = 3, N_X = ROWS * LEN * IN, N_H = ROWS * STATE };

struct probe {
    struct gru g;
    struct params p;
    float x[N_X], h0[N_H], dh[N_H];
    bool there[ROWS * LEN];
    float *scratch;    // exactly as large as promised: past it the sanitizer watches
};

static void probe_init(struct probe *k)
{
    static const bool there[ROWS * LEN] = { 1, 1, 1, 1, 0, 1, 0, 1, 0, 0, 0, 0 };
    struct rng r;

    rng_init(&r, 1, "gru");
    params_init(&k->p);
    params_claim(&k->p, 5);
    gru_init(&k->g, &k->p, IN, STATE, &r);
    for (int i = 0; i < k->p.n; i++)
        k->p.w[i] += (float)(0.3 * rng_normal(&r));
    draw_normal(&r, N_X, k->x);
    draw_normal(&r, N_H, k->h0);
    draw_normal(&r, N_H, k->dh);
    memcpy(k->there, there, sizeof there);
    k->scratch = malloc(gru_scratch(&k->g, ROWS, LEN) * sizeof *k->scratch);
}

static void probe_release(struct probe *k)
{
    params_release(&k->p);
    free(k->scratch);
}

static double probe_value(void *self)
{
    struct probe *k = self;
    float h[N_H];

    gru_forward(&k->g, k->p.w, &(struct tokens){ ROWS, LEN, k->x, k->there }, k->h0, h, k->scratch);
    return dot(N_H, h, k->dh);
}

TEST(gradients_are_those_of_differences)
{
    float dx[N_X], dh0[N_H];
    struct probe k;

    probe_init(&k);
    probe_value(&k);
    gru_backward(&k.g, k.p.w, &(struct tokens){ ROWS, LEN, k.x, k.there }, k.dh, dx, dh0, k.p.grad,
                 k.scratch);
    assert_gradient("x", probe_value, &k, N_X, k.x, dx);
    assert_gradient("h0", probe_value, &k, N_H, k.h0, dh0);
    assert_gradient("w", probe_value, &k, k.p.n, k.p.w, k.p.grad);
    probe_release(&k);
}

TEST(an_absent_token_leaves_the_state_and_what_stands_there_does_not_matter)
{
    float h[N_H], again[N_H], dx[N_X];
    struct probe k;

    probe_init(&k);
    gru_forward(&k.g, k.p.w, &(struct tokens){ ROWS, LEN, k.x, k.there }, k.h0, h, k.scratch);
    assert_close("h without tokens", STATE, h + 2 * STATE, k.h0 + 2 * STATE, 0);
    for (int i = 0; i < ROWS * LEN; i++)
        if (!k.there[i])
            k.x[i * IN] = 1e6f;
    gru_forward(&k.g, k.p.w, &(struct tokens){ ROWS, LEN, k.x, k.there }, k.h0, again, k.scratch);
    assert_close("h", N_H, again, h, 0);
    gru_backward(&k.g, k.p.w, &(struct tokens){ ROWS, LEN, k.x, k.there }, k.dh, dx, NULL, NULL,
                 k.scratch);
    for (int i = 0; i < N_X; i++)
        ck_assert((dx[i] == 0) == !k.there[i / IN]);
    probe_release(&k);
}

TEST(no_mask_is_all_tokens_and_no_state_is_zeros)
{
    float h[N_H], again[N_H], zeros[N_H] = { 0 };
    struct probe k;

    probe_init(&k);
    memset(k.there, 1, sizeof k.there);
    gru_forward(&k.g, k.p.w, &(struct tokens){ ROWS, LEN, k.x, k.there }, zeros, h, k.scratch);
    gru_forward(&k.g, k.p.w, &(struct tokens){ ROWS, LEN, k.x, NULL }, NULL, again, k.scratch);
    assert_close("h", N_H, again, h, 0);
    gru_forward(&k.g, k.p.w, &(struct tokens){ ROWS, 0, NULL, NULL }, k.h0, h, k.scratch);
    assert_close("h of no tokens", N_H, h, k.h0, 0);
    gru_backward(&k.g, k.p.w, &(struct tokens){ ROWS, 0, NULL, NULL }, k.dh, NULL, h, k.p.grad,
                 k.scratch);
    assert_close("dh0 of no tokens", N_H, h, k.dh, 0);
    probe_release(&k);
}
