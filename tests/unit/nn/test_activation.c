/* The bends: against torch, against the C library, and against differences. */
#include "nn/activation.h"
#include "unit/nn/reference.h"
#include "unit/suite.h"

typedef void (*forward_f)(size_t n, const float *x, float *y);
typedef void (*backward_f)(size_t n, const float *x, const float *dy, float *dx);

static double exact_silu(double x)
{
    return x / (1 + exp(-x));
}

static const struct {
    const char *name, *gradient;
    forward_f forward;
    backward_f backward;
    double (*exact)(double x);
} bends[] = {
    { "silu", "dsilu", silu_forward, silu_backward, exact_silu },
    { "exp", NULL, exp_forward, NULL, exp },
};

enum { N_BENDS = sizeof bends / sizeof *bends, N_VECTOR = 54 };

TIMES(outputs_and_gradients_are_torchs, N_BENDS)
{
    float y[N_VECTOR], dx[N_VECTOR];
    struct vectors v;

    if (bends[_i].forward == exp_forward)
        return;
    vectors_open(&v, "activation");
    const float *x = vectors_get(&v, "x", N_VECTOR), *dy = vectors_get(&v, "dy", N_VECTOR);
    bends[_i].forward(N_VECTOR, x, y);
    assert_close("y", N_VECTOR, y, vectors_get(&v, bends[_i].name, N_VECTOR), 1e-6);
    if (bends[_i].backward != NULL) {
        bends[_i].backward(N_VECTOR, x, dy, dx);
        assert_close("dx", N_VECTOR, dx, vectors_get(&v, bends[_i].gradient, N_VECTOR), 1e-6);
    }
    vectors_close(&v);
}

/* From the smallest numbers to the largest that do not underflow, both signs. */
TIMES(within_a_millionth_of_the_real_function, N_BENDS)
{
    double worst = 0;

    for (double size = 1e-30; size < 80; size *= 1.00037) {
        float x[2] = { (float)size, (float)-size }, y[2];

        bends[_i].forward(2, x, y);
        for (int k = 0; k < 2; k++) {
            double want = bends[_i].exact((double)x[k]);

            worst = fmax(worst, want == 0 ? fabs((double)y[k]) : fabs((double)y[k] / want - 1));
        }
    }
    ck_assert_msg(worst < 1e-6, "%s is off by %g", bends[_i].name, worst);
}

struct probe {
    int bend;
    float x[40], dy[40];
};

static double probe_value(void *self)
{
    struct probe *k = self;
    float y[40];

    bends[k->bend].forward(40, k->x, y);
    return dot(40, y, k->dy);
}

TIMES(gradients_are_those_of_differences, N_BENDS)
{
    struct probe k = { .bend = _i };
    float dx[40], in_place[40];
    struct rng r;

    if (bends[_i].backward == NULL)
        return;
    rng_init(&r, 1, "activation");
    draw_normal(&r, 40, k.dy);
    for (int i = 0; i < 40; i++)
        k.x[i] = (i % 2 ? 1.0f : -1.0f) * (float)rng_between(&r, 0.1, 4);
    bends[_i].backward(40, k.x, k.dy, dx);
    assert_gradient("x", probe_value, &k, 40, k.x, dx);
    memcpy(in_place, k.dy, sizeof in_place);
    bends[_i].backward(40, k.x, in_place, in_place);
    assert_close("dx in place", 40, in_place, dx, 0);
}

TIMES(far_out_they_stay_finite_and_nan_stays_nan, N_BENDS)
{
    float x[] = { 1e30f, -1e30f, INFINITY, NAN }, y[4];

    bends[_i].forward(4, x, y);
    ck_assert_msg(isnan(y[3]), "%s(NaN) is %g", bends[_i].name, (double)y[3]);
    ck_assert(isfinite(y[1]) && fabsf(y[1]) <= 1);
    ck_assert(y[0] == 1 || y[0] > 1e30f || y[0] == x[0]);
    ck_assert(!isnan(y[2]));
}
