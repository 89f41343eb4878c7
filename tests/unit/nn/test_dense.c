/* The dense layer: against torch, and its gradients against differences. */
#include "nn/dense.h"
#include "nn/params.h"
#include "unit/nn/reference.h"
#include "unit/suite.h"

TEST(outputs_and_gradients_are_torchs)
{
    float y[4 * 3], dx[4 * 5];
    struct vectors v;
    struct params p;
    struct dense d;

    vectors_open(&v, "dense");
    params_init(&p);
    dense_init(&d, &p, 5, 3, NULL);
    ck_assert_int_eq(p.n, 18);
    const float *w = vectors_get(&v, "w", p.n), *x = vectors_get(&v, "x", 20);
    dense_forward(&d, w, 4, x, y);
    assert_close("y", 12, y, vectors_get(&v, "y", 12), 1e-6);
    dense_backward(&d, w, 4, x, vectors_get(&v, "dy", 12), dx, p.grad);
    assert_close("dx", 20, dx, vectors_get(&v, "dx", 20), 1e-6);
    assert_close("grad", p.n, p.grad, vectors_get(&v, "grad", p.n), 1e-6);
    params_release(&p);
    vectors_close(&v);
}

enum { ROWS = 3, IN = 4, OUT = 5 };

struct probe {
    struct dense d;
    struct params p;
    float x[ROWS * IN], dy[ROWS * OUT];
};

static double probe_value(void *self)
{
    struct probe *k = self;
    float y[ROWS * OUT];

    dense_forward(&k->d, k->p.w, ROWS, k->x, y);
    return dot(ROWS * OUT, y, k->dy);
}

static void probe_init(struct probe *k, struct rng *r)
{
    params_init(&k->p);
    params_claim(&k->p, 7);    // a layer need not stand first
    dense_init(&k->d, &k->p, IN, OUT, r);
    draw_normal(r, ROWS * IN, k->x);
    draw_normal(r, ROWS * OUT, k->dy);
}

TEST(gradients_are_those_of_differences)
{
    float dx[ROWS * IN];
    struct probe k;
    struct rng r;

    rng_init(&r, 1, "dense");
    probe_init(&k, &r);
    dense_backward(&k.d, k.p.w, ROWS, k.x, k.dy, dx, k.p.grad);
    assert_gradient("x", probe_value, &k, ROWS * IN, k.x, dx);
    assert_gradient("w", probe_value, &k, k.p.n, k.p.w, k.p.grad);
    params_release(&k.p);
}

TEST(gradients_of_weights_add_up_and_either_may_be_left_out)
{
    float dx[ROWS * IN], again[ROWS * IN], once[7 + IN * OUT + OUT];
    struct probe k;
    struct rng r;

    rng_init(&r, 2, "dense");
    probe_init(&k, &r);
    dense_backward(&k.d, k.p.w, ROWS, k.x, k.dy, dx, NULL);
    for (int i = 0; i < k.p.n; i++)
        ck_assert(k.p.grad[i] == 0);
    dense_backward(&k.d, k.p.w, ROWS, k.x, k.dy, NULL, k.p.grad);
    memcpy(once, k.p.grad, sizeof once);
    dense_backward(&k.d, k.p.w, ROWS, k.x, k.dy, again, k.p.grad);
    for (int i = 0; i < k.p.n; i++)
        ck_assert_double_eq_tol((double)k.p.grad[i], 2 * (double)once[i], 1e-5);
    assert_close("dx", ROWS * IN, again, dx, 0);
    dense_forward(&k.d, k.p.w, 0, NULL, NULL);
    dense_backward(&k.d, k.p.w, 0, NULL, NULL, dx, k.p.grad);
    assert_close("dx of no rows", ROWS * IN, dx, again, 0);
    params_release(&k.p);
}
