#include "nn/gauss.h"

#include <cblas.h>
#include <errno.h>
#include <lapacke.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"

void nn_init(void)
{
    openblas_set_num_threads(1);
}

int gauss_condition(struct arena *a, int n, double *k_oo, const double *y, int n_targets,
                    const double *k_to, double *shift, double *drop, struct err *e)
{
    /* K = L L'. With v = L^-1 y and B = K_to L^-T: shift = B v, drop = row sums of B^2. */
    double *v = ARENA_ARRAY(a, double, (size_t)n);
    double *b = ARENA_ARRAY(a, double, (size_t)n_targets *(size_t)n);
    int rc = LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', n, k_oo, n);

    if (rc != 0)
        return err_set(e, EDOM, "covariance of %d observations: leading minor %d is not positive",
                       n, rc);
    memcpy(v, y, (size_t)n * sizeof *v);
    memcpy(b, k_to, (size_t)n_targets * (size_t)n * sizeof *b);
    cblas_dtrsv(CblasRowMajor, CblasLower, CblasNoTrans, CblasNonUnit, n, k_oo, n, v, 1);
    cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, n_targets, n, 1.0,
                k_oo, n, b, n);
    for (int t = 0; t < n_targets; t++) {
        const double *row = b + (size_t)t * (size_t)n;
        shift[t] = cblas_ddot(n, row, 1, v, 1);
        drop[t] = cblas_ddot(n, row, 1, row, 1);
    }
    return 0;
}
