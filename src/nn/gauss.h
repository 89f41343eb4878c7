/* gauss.h - closed-form conditioning of jointly Gaussian numbers, on LAPACK.
 *
 * Has never heard of a job: observed residuals with their covariance in, corrections of
 * other numbers with their remaining variance out. What any learned refiner starts from
 * and must beat.
 */
#ifndef NN_GAUSS_H
#define NN_GAUSS_H

struct arena;
struct err;

/* One thread for all linear algebra of this process: our matrices are small, and the sums
 * must not depend on how many cores a machine has. Call once, before the first use.
 */
void nn_init(void);

/* Given residuals 'y' (n) of observed numbers, their covariance 'k_oo' (n, n; noise on
 * the diagonal; overwritten by its factor), and the covariance 'k_to' (n_targets, n) of
 * each target with each observed one: write to 'shift' (n_targets) the conditional mean
 * and to 'drop' (n_targets) how much of the target's variance is gone. Row-major.
 * -EDOM: 'k_oo' is not positive definite. 'a' is for scratch.
 */
int gauss_condition(struct arena *a, int n, double *k_oo, const double *y, int n_targets,
                    const double *k_to, double *shift, double *drop, struct err *e);

#endif
