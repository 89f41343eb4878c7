#include "estimate/serving_line.h"

#include <math.h>

#include "estimate/serving.h"

/* Measured step times lie off their own line by 9 % in the mean (ParvaGPU), some by far more: with
 * this, intervals of 90 % cover 81 to 95 % there.
 */
#define LINE_SD 0.14

/* Errors of a family's step times at unlike batches go together: with families of ParvaGPU held out
 * 0.77 to 0.96 alone, 0.63 to 0.97 beside a copy.
 */
#define POINTS_CORR 0.7

/* Parts of the shortest step: neither t0 nor a is less. A step of one batch only has both. */
#define T0_LEAST 0.02
#define A_LEAST 0.001
#define ONE_BATCH_A 0.5

/* Sums of a weighted line through tau. */
struct sums {
    double w, x, xx, y, xy;
};

/* The line of least weighted squares of relative errors through these step times. */
static void fit(const struct serving_estimate *is, const double *tau, double *t0, double *a)
{
    struct sums s = { 0 };

    for (int i = 0; i < is->n; i++) {
        double sd = hypot(is->at[i].sd, LINE_SD), w = 1 / (sd * sd * tau[i] * tau[i]);
        double b = is->at[i].batch;
        s.w += w;
        s.x += w * b;
        s.xx += w * b * b;
        s.y += w * tau[i];
        s.xy += w * b * tau[i];
    }
    if (is->n == 1) {
        *a = ONE_BATCH_A * tau[0] / is->at[0].batch;
        *t0 = tau[0] - *a * is->at[0].batch;
        return;
    }
    double det = s.w * s.xx - s.x * s.x;
    *t0 = (s.xx * s.y - s.x * s.xy) / det;
    *a = (s.w * s.xy - s.x * s.y) / det;
    if (*a < A_LEAST * tau[0]) {
        *a = A_LEAST * tau[0];
        *t0 = (s.y - *a * s.x) / s.w;
    }
    if (*t0 < T0_LEAST * tau[0]) {
        *t0 = T0_LEAST * tau[0];
        *a = fmax((s.xy - *t0 * s.x) / s.xx, A_LEAST * tau[0]);
    }
}

/* ln t0 and ln a when ln tau of each point is moved by so many standard deviations. */
static void moved(const struct serving_estimate *is, const double *by, double sign, double *ln_t0,
                  double *ln_a)
{
    double tau[SERVING_POINTS] = { 0 }, t0, a;

    for (int i = 0; i < is->n; i++)
        tau[i] = exp(is->at[i].ln_tau + sign * by[i] * is->at[i].sd);
    fit(is, tau, &t0, &a);
    *ln_t0 = log(t0);
    *ln_a = log(a);
}

void serving_line_of(struct serving_estimate *is)
{
    double none[SERVING_POINTS] = { 0 }, tt = LINE_SD * LINE_SD, aa = tt, ta = 0;

    moved(is, none, 0, &is->ln_t0, &is->ln_a);
    for (int d = -1; d < is->n; d++) {    // what points have in common, then each of them
        double by[SERVING_POINTS], up[2], down[2];
        for (int i = 0; i < is->n; i++)
            by[i] = d < 0 ? sqrt(POINTS_CORR) : i == d ? sqrt(1 - POINTS_CORR) : 0;
        moved(is, by, 1, &up[0], &up[1]);
        moved(is, by, -1, &down[0], &down[1]);
        double t0 = (up[0] - down[0]) / 2, a = (up[1] - down[1]) / 2;
        tt += t0 * t0;
        aa += a * a;
        ta += t0 * a;
    }
    is->t0_sd = sqrt(tt);
    is->a_sd = sqrt(aa);
    is->corr = ta / sqrt(tt * aa);
}

void serving_cautious(const struct serving_estimate *is, double z, double *t0_s, double *a_s)
{
    double tau[SERVING_POINTS] = { 0 }, most = 1;

    for (int i = 0; i < is->n; i++)
        tau[i] = exp(is->at[i].ln_tau + z * hypot(is->at[i].sd, LINE_SD));
    fit(is, tau, t0_s, a_s);
    for (int i = 0; i < is->n; i++)
        most = fmax(most, tau[i] / (*t0_s + *a_s * is->at[i].batch));
    *t0_s *= most;
    *a_s *= most;
}
