#include "nn/gp.h"

#include <cblas.h>
#include <errno.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"

void nn_init(void)
{
    openblas_set_num_threads(1);
}

int gp_fit(struct arena *a, int n, double *k, const double *y, struct gp *out, struct err *e)
{
    *out = (struct gp){ .n = n, .inverse = k, .alpha = ARENA_ARRAY(a, double, (size_t)n) };
    if (n == 0)
        return 0;
    int rc = LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', n, k, n);
    for (int i = 0; i < n && rc == 0; i++)
        out->ln_det += 2 * log(k[(size_t)i * (size_t)n + (size_t)i]);
    if (rc == 0)
        rc = LAPACKE_dpotri(LAPACK_ROW_MAJOR, 'L', n, k, n);
    if (rc != 0)
        return err_set(e, EDOM, "kernel of %d points: leading minor %d is not positive", n, rc);
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++)
            k[(size_t)i * (size_t)n + (size_t)j] = k[(size_t)j * (size_t)n + (size_t)i];
    cblas_dsymv(CblasRowMajor, CblasLower, n, 1, k, n, y, 1, 0, out->alpha, 1);
    return 0;
}

/* 'factor' gets the Cholesky factor of Q_BB, with Q the inverse and B the block, 'gone' (Q_BB)^-1
 * alpha_B: the conditional mean is y_B less that, and its covariance (Q_BB)^-1.
 */
static int solve_block(struct arena *a, const struct gp *g, int m, const int *block,
                       double **factor, double **gone, struct err *e)
{
    double *q = *factor = ARENA_ARRAY(a, double, (size_t)m *(size_t)m);

    *gone = ARENA_ARRAY(a, double, (size_t)m);
    for (int i = 0; i < m; i++) {
        const double *row = g->inverse + (size_t)block[i] * (size_t)g->n;
        for (int j = 0; j < m; j++)
            q[(size_t)i * (size_t)m + (size_t)j] = row[block[j]];
        (*gone)[i] = g->alpha[block[i]];
    }
    int rc = m ? LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', m, q, m) : 0;
    if (rc != 0)
        return err_set(e, EDOM, "block of %d points: leading minor %d is not positive", m, rc);
    if (m)
        LAPACKE_dpotrs(LAPACK_ROW_MAJOR, 'L', m, 1, q, m, *gone, 1);
    return 0;
}

int gp_leave_out(struct arena *a, const struct gp *g, const double *y, int m, const int *block,
                 double *mean, double *cov, struct err *e)
{
    double *factor, *gone;
    int rc = solve_block(a, g, m, block, &factor, &gone, e);

    if (rc < 0 || m == 0)
        return rc;
    for (int i = 0; i < m; i++)
        mean[i] = y[block[i]] - gone[i];
    if (!cov)
        return 0;
    memcpy(cov, factor, (size_t)m * (size_t)m * sizeof *cov);
    LAPACKE_dpotri(LAPACK_ROW_MAJOR, 'L', m, cov, m);
    for (int i = 0; i < m; i++)
        for (int j = i + 1; j < m; j++)
            cov[(size_t)i * (size_t)m + (size_t)j] = cov[(size_t)j * (size_t)m + (size_t)i];
    return 0;
}
