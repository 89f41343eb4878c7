#include "nn/norm.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>

#include "nn/params.h"

#define EPSILON 1e-5f    // torch's

void norm_init(struct norm *m, struct params *p, int n)
{
    assert(n > 0);
    *m = (struct norm){ n, params_claim(p, 2 * n) };
    for (int i = 0; i < n; i++)
        p->w[m->at + i] = 1;
}

/* Mean, and one over the standard deviation, of a row. */
static void row_moments(int n, const float *x, float *mean, float *inverse_sd)
{
    float sum = 0, square = 0;

    for (int i = 0; i < n; i++)
        sum += x[i];
    *mean = sum / (float)n;
    for (int i = 0; i < n; i++)
        square += (x[i] - *mean) * (x[i] - *mean);
    *inverse_sd = 1 / sqrtf(square / (float)n + EPSILON);
}

void norm_forward(const struct norm *m, const float *w, int n_rows, const float *x, float *y)
{
    const float *scale = w + m->at, *shift = scale + m->n;
    float mean, inverse_sd;

    for (int row = 0; row < n_rows; row++, x += m->n, y += m->n) {
        row_moments(m->n, x, &mean, &inverse_sd);
        for (int i = 0; i < m->n; i++)
            y[i] = (x[i] - mean) * inverse_sd * scale[i] + shift[i];
    }
}

/* With u the row at mean 0 and variance 1, and du = dy scale:
 * dx = (du - mean(du) - u mean(du u)) / sd. Each dy[i] is read before dx[i] is written.
 */
static void row_backward(int n, const float *scale, const float *x, const float *dy, float *dx,
                         float mean, float inverse_sd)
{
    float sum = 0, along = 0;

    for (int i = 0; i < n; i++) {
        sum += dy[i] * scale[i];
        along += dy[i] * scale[i] * (x[i] - mean) * inverse_sd;
    }
    sum /= (float)n;
    along /= (float)n;
    for (int i = 0; i < n; i++)
        dx[i] = (dy[i] * scale[i] - sum - (x[i] - mean) * inverse_sd * along) * inverse_sd;
}

void norm_backward(const struct norm *m, const float *w, int n_rows, const float *x,
                   const float *dy, float *dx, float *grad)
{
    float mean, inverse_sd;

    for (int row = 0; row < n_rows; row++) {
        size_t at = (size_t)row * (size_t)m->n;

        row_moments(m->n, x + at, &mean, &inverse_sd);
        for (int i = 0; grad != NULL && i < m->n; i++) {
            grad[m->at + i] += dy[at + (size_t)i] * (x[at + (size_t)i] - mean) * inverse_sd;
            grad[m->at + m->n + i] += dy[at + (size_t)i];
        }
        if (dx != NULL)
            row_backward(m->n, w + m->at, x + at, dy + at, dx + at, mean, inverse_sd);
    }
}
