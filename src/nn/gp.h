/* gp.h - a Gaussian process over a fixed set of points: fit once, then predict, also as if
 * some of the points had never been seen.
 *
 * Has never heard of a job: kernels are the caller's. Made by gp_fit; lives in the arena it
 * was made in. Double precision, on LAPACK.
 */
#ifndef NN_GP_H
#define NN_GP_H

struct arena;
struct err;

/* One thread for all linear algebra of this process: our matrices are small, and the sums
 * must not depend on how many cores a machine has. Call once, before the first use.
 */
void nn_init(void);

struct gp {
    int n;
    double *inverse;    // (n, n) of the kernel with its noise
    double *alpha;      // (n) inverse times y: a prediction is a kernel row times this
    double ln_det;      // ln of the kernel's determinant
};

/* 'k' (n, n): the kernel of all points with their noise on the diagonal; it becomes the
 * inverse, so it lives as long as 'out'. -EDOM: not positive definite.
 */
int gp_fit(struct arena *a, int n, double *k, const double *y, struct gp *out, struct err *e);

/* What would be predicted for the points 'block' (m, distinct, in any order), and with which
 * covariance 'cov' (m, m; may be NULL; noise included), had only the others been seen.
 * Exact, and far cheaper than fitting again. 'y' as in gp_fit.
 */
int gp_leave_out(struct arena *a, const struct gp *g, const double *y, int m, const int *block,
                 double *mean, double *cov, struct err *e);

#endif
