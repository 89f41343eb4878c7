#include "nn/loss.h"

#include <assert.h>
#include <math.h>

#define HALF_LOG_2PI 0.91893853320467274

float loss_scale(size_t n, const float *weight)
{
    double sum = weight == NULL ? (double)n : 0;

    for (size_t i = 0; weight != NULL && i < n; i++)
        sum += (double)weight[i];
    return sum > 0 ? (float)(1 / sum) : 0;
}

static float weight_at(const float *weight, size_t i)
{
    return weight == NULL ? 1 : weight[i];
}

double loss_gauss(int n, int k, int ld, const float *mean, const float *log_sd, const float *target,
                  const float *weight, float scale, float *dmean, float *dlog_sd)
{
    double sum = 0;

    assert((dmean == NULL) == (dlog_sd == NULL));
    for (int row = 0; row < n; row++)
        for (int i = 0; i < k; i++) {
            size_t at = (size_t)row * (size_t)ld + (size_t)i;
            size_t t = (size_t)row * (size_t)k + (size_t)i;
            float w = weight_at(weight, t) * scale;
            float inverse_sd = w == 0 ? 0 : expf(-log_sd[at]);
            float z = w == 0 ? 0 : (target[t] - mean[at]) * inverse_sd;

            if (w != 0)
                sum +=
                    (double)w * (0.5 * (double)z * (double)z + (double)log_sd[at] + HALF_LOG_2PI);
            if (dmean != NULL) {
                dmean[at] = -w * z * inverse_sd;
                dlog_sd[at] = w * (1 - z * z);
            }
        }
    return sum;
}

/* Of one number: how wrong, and which way. 'param' is the loss's own. */
typedef float (*pointwise_f)(float x, float target, float param, float *slope);

static double sum_pointwise(pointwise_f f, float param, int n, int k, int ld, const float *x,
                            const float *target, const float *weight, float scale, float *dx)
{
    double sum = 0;

    for (int row = 0; row < n; row++)
        for (int i = 0; i < k; i++) {
            size_t at = (size_t)row * (size_t)ld + (size_t)i;
            size_t t = (size_t)row * (size_t)k + (size_t)i;
            float w = weight_at(weight, t) * scale, slope = 0;

            if (w != 0)
                sum += (double)w * (double)f(x[at], target[t], param, &slope);
            if (dx != NULL)
                dx[at] = w * slope;
        }
    return sum;
}

static float point_huber(float x, float target, float delta, float *slope)
{
    float off = x - target;

    *slope = off > delta ? delta : off < -delta ? -delta : off;    // NaN stays NaN
    return fabsf(off) <= delta ? off * off / 2 : delta * (fabsf(off) - delta / 2);
}

static float point_square(float x, float target, float param, float *slope)
{
    (void)param;
    *slope = x - target;
    return *slope * *slope / 2;
}

/* max(x, 0) - x t + ln(1 + e^-|x|): the exponent never overflows. */
static float point_logistic(float x, float target, float param, float *slope)
{
    float tail = expf(-fabsf(x));

    (void)param;
    *slope = (x >= 0 ? 1 / (1 + tail) : tail / (1 + tail)) - target;
    return fmaxf(x, 0) - x * target + log1pf(tail);
}

double loss_square(int n, int k, int ld, const float *x, const float *target, const float *weight,
                   float scale, float *dx)
{
    return sum_pointwise(point_square, 0, n, k, ld, x, target, weight, scale, dx);
}

double loss_huber(int n, int k, int ld, float delta, const float *x, const float *target,
                  const float *weight, float scale, float *dx)
{
    assert(delta > 0);
    return sum_pointwise(point_huber, delta, n, k, ld, x, target, weight, scale, dx);
}

double loss_logistic(int n, int k, int ld, const float *x, const float *target, const float *weight,
                     float scale, float *dx)
{
    return sum_pointwise(point_logistic, 0, n, k, ld, x, target, weight, scale, dx);
}
