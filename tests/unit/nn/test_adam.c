/* Adam: step by step with torch's AdamW and its clipping; the cosine of rates. */
#include "nn/adam.h"
#include "nn/params.h"
#include "unit/nn/reference.h"
#include "unit/suite.h"

enum { N = 6, STEPS = 8 };

TEST(every_step_is_torchs)
{
    struct vectors v;
    struct params p;
    struct adam a;

    vectors_open(&v, "adam");
    params_init(&p);
    params_claim(&p, N);
    adam_init(&a, N);
    a.decay = 0.1f;
    a.clip = 5;
    memcpy(p.w, vectors_get(&v, "w0", N), N * sizeof *p.w);
    const float *grads = vectors_get(&v, "grads", N * STEPS), *w = vectors_get(&v, "w", N * STEPS);
    const float *norms = vectors_get(&v, "norms", STEPS);
    for (int step = 0; step < STEPS; step++) {
        memcpy(p.grad, grads + step * N, N * sizeof *p.grad);
        double norm = adam_step(&a, &p, 0.1 / (step + 1));
        ck_assert_double_eq_tol(norm, (double)norms[step], 1e-5);
        assert_close("w", N, p.w, w + step * N, 1e-6);
        assert_close("grad", N, p.grad, grads + step * N, 0);
    }
    ck_assert_int_eq(a.n_steps, STEPS);
    adam_release(&a);
    params_release(&p);
    vectors_close(&v);
}

TEST(the_first_step_is_the_rate_against_the_gradients_sign)
{
    static const float grad[] = { 1e-3f, -5, 200, 0 };
    struct params p;
    struct adam a;

    params_init(&p);
    params_claim(&p, 4);
    adam_init(&a, 4);
    a.decay = 0;
    memcpy(p.grad, grad, sizeof grad);
    adam_step(&a, &p, 0.25);
    assert_close("w", 4, p.w, (const float[]){ -0.25f, 0.25f, -0.25f, 0 }, 1e-4);
    adam_release(&a);
    params_release(&p);
}

TEST(decay_shrinks_weights_that_have_no_gradient)
{
    struct params p;
    struct adam a;

    params_init(&p);
    params_claim(&p, 1);
    adam_init(&a, 1);
    a.decay = 0.5f;
    p.w[0] = 8;
    adam_step(&a, &p, 0.1);
    ck_assert_double_eq_tol((double)p.w[0], 8 * 0.95, 1e-6);
    adam_release(&a);
    params_release(&p);
}

TEST(a_gradient_that_is_not_finite_changes_nothing)
{
    static const float bad[] = { INFINITY, -INFINITY, NAN };
    struct params p;
    struct adam a;

    params_init(&p);
    params_claim(&p, 2);
    adam_init(&a, 2);
    p.w[0] = p.w[1] = 3;
    for (int i = 0; i < 3; i++) {
        p.grad[0] = 1;
        p.grad[1] = bad[i];
        ck_assert(!isfinite(adam_step(&a, &p, 0.1)));
        ck_assert(p.w[0] == 3 && p.w[1] == 3 && a.n_steps == 0 && a.m[0] == 0 && a.v[0] == 0);
    }
    adam_release(&a);
    params_release(&p);
}

TEST(rates_rise_in_a_line_and_fall_along_a_cosine)
{
    static const struct {
        long step;
        double want;
    } cases[] = {
        { 0, 0.25 }, { 1, 0.5 }, { 2, 0.75 }, { 3, 1 }, { 13, 0.6 }, { 22, 0.2049247 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_double_eq_tol(adam_cosine(cases[i].step, 23, 3, 1, 0.2), cases[i].want, 1e-6);
    ck_assert_double_eq_tol(adam_cosine(0, 1, 0, 0.7, 0), 0.7, 1e-12);
}
