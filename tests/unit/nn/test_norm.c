/* Layer normalisation: against torch, and its gradients against differences. */
#include "nn/norm.h"
#include "nn/params.h"
#include "unit/nn/reference.h"
#include "unit/suite.h"

TEST(outputs_and_gradients_are_torchs)
{
    float y[4 * 5], dx[4 * 5];
    struct vectors v;
    struct params p;
    struct norm l;

    vectors_open(&v, "norm");
    params_init(&p);
    norm_init(&l, &p, 5);
    ck_assert_int_eq(p.n, 10);
    const float *w = vectors_get(&v, "w", p.n), *x = vectors_get(&v, "x", 20);
    norm_forward(&l, w, 4, x, y);
    assert_close("y", 20, y, vectors_get(&v, "y", 20), 2e-6);
    norm_backward(&l, w, 4, x, vectors_get(&v, "dy", 20), dx, p.grad);
    assert_close("dx", 20, dx, vectors_get(&v, "dx", 20), 2e-6);
    assert_close("grad", p.n, p.grad, vectors_get(&v, "grad", p.n), 2e-6);
    params_release(&p);
    vectors_close(&v);
}

enum { ROWS = 3, WIDTH = 6, N = ROWS * WIDTH };

struct probe {
    struct norm l;
    struct params p;
    float x[N], dy[N];
};

static double probe_value(void *self)
{
    struct probe *k = self;
    float y[N];

    norm_forward(&k->l, k->p.w, ROWS, k->x, y);
    return dot(N, y, k->dy);
}

static void probe_init(struct probe *k)
{
    struct rng r;

    rng_init(&r, 1, "norm");
    params_init(&k->p);
    params_claim(&k->p, 3);    // a layer need not stand first
    norm_init(&k->l, &k->p, WIDTH);
    for (int i = 0; i < k->p.n; i++)
        k->p.w[i] += (float)(0.3 * rng_normal(&r));
    draw_normal(&r, N, k->x);
    draw_normal(&r, N, k->dy);
}

TEST(gradients_are_those_of_differences)
{
    float dx[N];
    struct probe k;

    probe_init(&k);
    norm_backward(&k.l, k.p.w, ROWS, k.x, k.dy, dx, k.p.grad);
    assert_gradient("x", probe_value, &k, N, k.x, dx);
    assert_gradient("w", probe_value, &k, k.p.n, k.p.w, k.p.grad);
    params_release(&k.p);
}

TEST(slopes_may_be_overwritten_in_place)
{
    float dx[N];
    struct probe k;

    probe_init(&k);
    norm_backward(&k.l, k.p.w, ROWS, k.x, k.dy, dx, NULL);
    norm_backward(&k.l, k.p.w, ROWS, k.x, k.dy, k.dy, NULL);
    assert_close("dx", N, k.dy, dx, 0);
    params_release(&k.p);
}

TEST(a_row_of_equal_numbers_becomes_the_shift)
{
    struct params p;
    struct norm l;
    float x[WIDTH], y[WIDTH];

    params_init(&p);
    norm_init(&l, &p, WIDTH);
    for (int i = 0; i < WIDTH; i++) {
        x[i] = 7;
        p.w[l.at + WIDTH + i] = (float)i;
    }
    norm_forward(&l, p.w, 1, x, y);
    assert_close("y", WIDTH, y, p.w + l.at + WIDTH, 0);
    params_release(&p);
}
