#include "nn/norm.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>

#include "nn/params.h"

/* Added to a variance, so that a row of equal numbers divides by something; as torch's. */
static const float least_variance = 1e-5f;

void norm_init(struct norm *l, struct params *p, int width)
{
    assert(width > 0);
    *l = (struct norm){ width, params_claim(p, 2 * width) };
    for (int i = 0; i < width; i++)
        p->w[l->at + i] = 1;
}

/* What a row is moved and scaled by. */
static void row_scale(int width, const float *x, float *mean, float *scale)
{
    float sum = 0, squares = 0;

    for (int i = 0; i < width; i++)
        sum += x[i];
    *mean = sum / (float)width;
    for (int i = 0; i < width; i++)
        squares += (x[i] - *mean) * (x[i] - *mean);
    *scale = 1 / sqrtf(squares / (float)width + least_variance);
}

void norm_forward(const struct norm *l, const float *w, int n, const float *x, float *y)
{
    const float *gain = w + l->at, *shift = gain + l->width;
    float mean, scale;

    for (int row = 0; row < n; row++, x += l->width, y += l->width) {
        row_scale(l->width, x, &mean, &scale);
        for (int i = 0; i < l->width; i++)
            y[i] = (x[i] - mean) * scale * gain[i] + shift[i];
    }
}

void norm_backward(const struct norm *l, const float *w, int n, const float *x, const float *dy,
                   float *dx, float *grad)
{
    const float *gain = w + l->at, part = 1 / (float)l->width;
    float mean, scale;

    for (int row = 0; row < n; row++, x += l->width, dy += l->width, dx += l->width) {
        float sum = 0, along = 0;    // of the slopes by the scaled row, and by itself

        row_scale(l->width, x, &mean, &scale);
        for (int i = 0; i < l->width; i++) {
            float unit = (x[i] - mean) * scale;

            if (grad != NULL) {
                grad[l->at + i] += dy[i] * unit;
                grad[l->at + l->width + i] += dy[i];
            }
            sum += dy[i] * gain[i];
            along += dy[i] * gain[i] * unit;
        }
        for (int i = 0; i < l->width; i++) {
            float unit = (x[i] - mean) * scale;

            dx[i] = scale * (dy[i] * gain[i] - part * (sum + unit * along));
        }
    }
}
