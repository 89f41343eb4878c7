#include "nn/dense.h"

#include <assert.h>
#include <cblas.h>
#include <stddef.h>
#include <string.h>

#include "nn/params.h"

void dense_init(struct dense *d, struct params *p, int n_in, int n_out, struct rng *r)
{
    assert(n_in > 0 && n_out > 0);
    *d = (struct dense){ n_in, n_out, params_claim(p, n_out * n_in + n_out) };
    params_draw(p, d->at, n_out * n_in, n_in, n_out, r);
}

void dense_forward(const struct dense *d, const float *w, int n, const float *x, float *y)
{
    const float *matrix = w + d->at, *bias = matrix + d->n_out * d->n_in;

    if (n == 0)
        return;
    for (size_t row = 0; row < (size_t)n; row++)
        memcpy(y + row * (size_t)d->n_out, bias, (size_t)d->n_out * sizeof *y);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, d->n_out, d->n_in, 1, x, d->n_in,
                matrix, d->n_in, 1, y, d->n_out);
}

void dense_backward(const struct dense *d, const float *w, int n, const float *x, const float *dy,
                    float *dx, float *grad)
{
    if (n == 0)
        return;
    if (dx != NULL)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, d->n_in, d->n_out, 1, dy,
                    d->n_out, w + d->at, d->n_in, 0, dx, d->n_in);
    if (grad == NULL)
        return;
    float *dmatrix = grad + d->at, *dbias = dmatrix + d->n_out * d->n_in;
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, d->n_out, d->n_in, n, 1, dy, d->n_out, x,
                d->n_in, 1, dmatrix, d->n_in);
    for (size_t row = 0; row < (size_t)n; row++)
        for (int i = 0; i < d->n_out; i++)
            dbias[i] += dy[row * (size_t)d->n_out + (size_t)i];
}
