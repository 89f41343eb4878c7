/* Losses: against torch, against differences, and what masks and scales mean. */
#include "nn/loss.h"
#include "unit/nn/reference.h"
#include "unit/suite.h"

enum { ROWS = 5, K = 3, N = ROWS * K, LD = 11, MEAN = 1, LOG_SD = 5, DELTA4 = 3 };

/* The four of them behind one face; outputs are columns of a matrix LD wide. */
static double gauss(const float *out, const float *t, const float *w, float scale, float *dout)
{
    return loss_gauss(ROWS, K, LD, out + MEAN, out + LOG_SD, t, w, scale,
                      dout == NULL ? NULL : dout + MEAN, dout == NULL ? NULL : dout + LOG_SD);
}

static double square(const float *out, const float *t, const float *w, float scale, float *dout)
{
    return loss_square(ROWS, K, LD, out + MEAN, t, w, scale, dout == NULL ? NULL : dout + MEAN);
}

static double huber(const float *out, const float *t, const float *w, float scale, float *dout)
{
    return loss_huber(ROWS, K, LD, DELTA4 / 4.0f, out + MEAN, t, w, scale,
                      dout == NULL ? NULL : dout + MEAN);
}

static double logistic(const float *out, const float *t, const float *w, float scale, float *dout)
{
    return loss_logistic(ROWS, K, LD, out + MEAN, t, w, scale, dout == NULL ? NULL : dout + MEAN);
}

static const struct {
    const char *name, *in, *target;
    double (*f)(const float *out, const float *target, const float *weight, float scale,
                float *dout);
} losses[] = {
    { "gauss", "mean", "target", gauss },
    { "square", "mean", "target", square },
    { "huber", "mean", "target", huber },
    { "logistic", "logit", "share", logistic },
};

enum { N_LOSSES = sizeof losses / sizeof *losses };

static void columns_set(float *out, int from, const float *columns)
{
    for (int i = 0; i < N; i++)
        out[i / K * LD + from + i % K] = columns[i];
}

static void columns_get(const float *out, int from, float *columns)
{
    for (int i = 0; i < N; i++)
        columns[i] = out[i / K * LD + from + i % K];
}

START_TEST(values_and_gradients_are_torchs)
{
    float out[ROWS * LD] = { 0 }, dout[ROWS * LD], got[N];
    struct vectors v;

    vectors_open(&v, "loss");
    const char *d_name = arena_printf(&v.arena, "%s_d", losses[_i].name);
    float *target = vectors_get(&v, losses[_i].target, N), *weight = vectors_get(&v, "weight", N);
    columns_set(out, MEAN, vectors_get(&v, losses[_i].in, N));
    columns_set(out, LOG_SD, vectors_get(&v, "log_sd", N));
    for (int i = 0; i < N; i++)
        if (weight[i] == 0)
            target[i] = NAN;    // nobody may look
    for (int i = 0; i < ROWS * LD; i++)
        dout[i] = 99;
    double value = losses[_i].f(out, target, weight, loss_scale(N, weight), dout);
    double want = (double)*vectors_get(&v, losses[_i].name, 1);
    ck_assert_double_eq_tol(value, want, 1e-6 * fmax(1, want));
    columns_get(dout, MEAN, got);
    assert_close("gradient", N, got, vectors_get(&v, d_name, N), 1e-6);
    if (_i == 0) {
        columns_get(dout, LOG_SD, got);
        assert_close("gradient of log-sd", N, got, vectors_get(&v, "gauss_dlog_sd", N), 1e-6);
    }
    for (int i = 0; i < ROWS * LD; i++) {
        bool mine = (i % LD >= MEAN && i % LD < MEAN + K) ||
                    (_i == 0 && i % LD >= LOG_SD && i % LD < LOG_SD + K);
        ck_assert_msg(mine || dout[i] == 99, "wrote to a column of somebody else");
    }
    vectors_close(&v);
}
END_TEST

struct probe {
    int loss;
    float out[ROWS * LD], target[N], weight[N];
};

static double probe_value(void *self)
{
    struct probe *k = self;

    return losses[k->loss].f(k->out, k->target, k->weight, 0.5f, NULL);
}

START_TEST(gradients_are_those_of_differences)
{
    float dout[ROWS * LD] = { 0 };
    struct probe k = { .loss = _i };
    struct rng r;

    rng_init(&r, 1, "loss");
    draw_normal(&r, ROWS * LD, k.out);
    for (int i = 0; i < N; i++) {
        float *mean = &k.out[i / K * LD + MEAN + i % K], *log_sd = mean + LOG_SD - MEAN;
        /* Away from Huber's corners at 0.75, on either side. */
        float off = (float)rng_between(&r, 0.2, 0.6) + (i % 2 ? 0.7f : 0);

        k.weight[i] = i % 4 == 0 ? 0 : (float)rng_between(&r, 0.5, 1.5);
        *log_sd *= 0.5f;
        k.target[i] = _i == 3 ? (float)rng_uniform(&r) : *mean + (i % 3 ? off : -off);
    }
    losses[_i].f(k.out, k.target, k.weight, 0.5f, dout);
    assert_gradient("out", probe_value, &k, ROWS * LD, k.out, dout);
}
END_TEST

START_TEST(a_value_worked_out_by_hand)
{
    static const double want[] = {
        2.9189385332046727,    // two sds off, sd 1: 2 + ln(2 pi) / 2
        2,                     // 2 * 2 / 2
        0.75 * (2 - 0.375),
        3.0485873515737421,    // ln(1 + e^3): sure of the wrong answer
    };
    float out[ROWS * LD] = { 0 }, target[N] = { 0 }, weight[N] = { 0 };

    out[MEAN] = _i == 3 ? 3 : 2;
    weight[0] = 1;
    ck_assert_double_eq_tol(losses[_i].f(out, target, weight, 1, NULL), want[_i], 1e-6);
    ck_assert_double_eq_tol(losses[_i].f(out, target, weight, 3, NULL), 3 * want[_i], 3e-6);
}
END_TEST

START_TEST(no_weights_are_weights_of_one_and_no_weight_is_no_loss)
{
    float out[ROWS * LD], target[N], ones[N], zeros[N] = { 0 }, dout[ROWS * LD] = { 0 };
    struct rng r;

    rng_init(&r, 2, "loss");
    draw_normal(&r, ROWS * LD, out);
    for (int i = 0; i < N; i++) {
        target[i] = (float)rng_uniform(&r);
        ones[i] = 1;
    }
    ck_assert(loss_scale(N, NULL) == loss_scale(N, ones));
    ck_assert_double_eq_tol((double)loss_scale(N, ones), 1.0 / N, 1e-8);
    ck_assert(losses[_i].f(out, target, NULL, 1, NULL) == losses[_i].f(out, target, ones, 1, NULL));
    ck_assert(loss_scale(N, zeros) == 0);
    ck_assert(losses[_i].f(out, target, zeros, loss_scale(N, zeros), dout) == 0);
    for (int i = 0; i < ROWS * LD; i++)
        ck_assert(dout[i] == 0);
}
END_TEST

START_TEST(logits_far_out_neither_overflow_nor_vanish)
{
    float x[] = { 1000, -1000, 1000, -1000 }, target[] = { 0, 1, 1, 0 }, dx[4];

    ck_assert_double_eq_tol(loss_logistic(1, 4, 4, x, target, NULL, 1, dx), 2000, 1e-3);
    ck_assert(dx[0] == 1 && dx[1] == -1 && dx[2] == 0 && dx[3] == 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("loss");
    TCase *t = tcase_create("loss");

    tcase_add_loop_test(t, values_and_gradients_are_torchs, 0, N_LOSSES);
    tcase_add_loop_test(t, gradients_are_those_of_differences, 0, N_LOSSES);
    tcase_add_loop_test(t, a_value_worked_out_by_hand, 0, N_LOSSES);
    tcase_add_loop_test(t, no_weights_are_weights_of_one_and_no_weight_is_no_loss, 0, N_LOSSES);
    tcase_add_test(t, logits_far_out_neither_overflow_nor_vanish);
    suite_add_tcase(s, t);
    return suite_run(s);
}
