/* Layer norm: against torch, and its gradients against differences. */
#include "nn/norm.h"
#include "nn/params.h"
#include "unit/nn/reference.h"
#include "unit/suite.h"

START_TEST(outputs_and_gradients_are_torchs)
{
    float y[24], dx[24];
    struct vectors v;
    struct params p;
    struct norm m;

    vectors_open(&v, "norm");
    params_init(&p);
    norm_init(&m, &p, 6);
    ck_assert_int_eq(p.n, 12);
    const float *w = vectors_get(&v, "w", 12), *x = vectors_get(&v, "x", 24);
    const float *dy = vectors_get(&v, "dy", 24);
    norm_forward(&m, w, 4, x, y);
    assert_close("y", 24, y, vectors_get(&v, "y", 24), 2e-6);
    norm_backward(&m, w, 4, x, dy, dx, p.grad);
    assert_close("dx", 24, dx, vectors_get(&v, "dx", 24), 2e-6);
    assert_close("grad", 12, p.grad, vectors_get(&v, "grad", 12), 2e-6);
    params_release(&p);
    vectors_close(&v);
}
END_TEST

enum { ROWS = 3, WIDTH = 5, N = ROWS * WIDTH };

struct probe {
    struct norm m;
    struct params p;
    float x[N], dy[N];
};

static double probe_value(void *self)
{
    struct probe *k = self;
    float y[N];

    norm_forward(&k->m, k->p.w, ROWS, k->x, y);
    return dot(N, y, k->dy);
}

static void probe_init(struct probe *k)
{
    struct rng r;

    rng_init(&r, 1, "norm");
    params_init(&k->p);
    params_claim(&k->p, 3);
    norm_init(&k->m, &k->p, WIDTH);
    draw_normal(&r, N, k->x);
    draw_normal(&r, N, k->dy);
}

START_TEST(gradients_are_those_of_differences)
{
    struct probe k;
    float dx[N];

    probe_init(&k);
    for (int i = 0; i < k.p.n; i++)
        k.p.w[i] += 0.1f * (float)i;
    for (int i = 0; i < N; i++)
        k.x[i] *= 3;    // a step of the differences must be small beside the spread
    norm_backward(&k.m, k.p.w, ROWS, k.x, k.dy, dx, k.p.grad);
    assert_gradient("x", probe_value, &k, N, k.x, dx);
    assert_gradient("w", probe_value, &k, k.p.n, k.p.w, k.p.grad);
    params_release(&k.p);
}
END_TEST

START_TEST(a_new_one_gives_mean_0_and_variance_1_also_in_place)
{
    float y[N], dx[N], in_place[N];
    struct probe k;

    probe_init(&k);
    norm_forward(&k.m, k.p.w, ROWS, k.x, y);
    for (int row = 0; row < ROWS; row++) {
        double sum = 0, square = 0;

        for (int i = 0; i < WIDTH; i++) {
            sum += (double)y[row * WIDTH + i] / WIDTH;
            square += (double)y[row * WIDTH + i] * (double)y[row * WIDTH + i] / WIDTH;
        }
        ck_assert_double_eq_tol(sum, 0, 1e-6);
        ck_assert_double_eq_tol(square, 1, 1e-3);
    }
    memcpy(in_place, k.x, sizeof in_place);
    norm_forward(&k.m, k.p.w, ROWS, in_place, in_place);
    assert_close("y in place", N, in_place, y, 0);
    norm_backward(&k.m, k.p.w, ROWS, k.x, k.dy, dx, NULL);
    memcpy(in_place, k.dy, sizeof in_place);
    norm_backward(&k.m, k.p.w, ROWS, k.x, in_place, in_place, NULL);
    assert_close("dx in place", N, in_place, dx, 0);
    params_release(&k.p);
}
END_TEST

START_TEST(a_row_of_equal_numbers_gives_the_shift)
{
    float x[WIDTH] = { 4, 4, 4, 4, 4 }, y[WIDTH], dx[WIDTH];
    struct params p;
    struct norm m;

    params_init(&p);
    norm_init(&m, &p, WIDTH);
    p.w[WIDTH + 2] = 7;
    norm_forward(&m, p.w, 1, x, y);
    norm_backward(&m, p.w, 1, x, x, dx, p.grad);
    for (int i = 0; i < WIDTH; i++)
        ck_assert(y[i] == (i == 2 ? 7 : 0) && isfinite(dx[i]));
    params_release(&p);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("norm");
    TCase *t = tcase_create("norm");

    tcase_add_test(t, outputs_and_gradients_are_torchs);
    tcase_add_test(t, gradients_are_those_of_differences);
    tcase_add_test(t, a_new_one_gives_mean_0_and_variance_1_also_in_place);
    tcase_add_test(t, a_row_of_equal_numbers_gives_the_shift);
    suite_add_tcase(s, t);
    return suite_run(s);
}
