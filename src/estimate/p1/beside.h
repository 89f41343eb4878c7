/* beside.h - what neighbours do to each other: a Gaussian process over pairs, one for each GPU
 * type that pairs were measured on.
 *
 * About s = sqrt(r). Its covariance is a constant, the job's likeness, the neighbour's likeness,
 * and their product, so a prediction is a constant of the job plus a product of two vectors, one
 * of the job and one of the neighbour: a table over all pairs is one product of matrices.
 * Part of P1; lives in the arena it was made in.
 */
#ifndef ESTIMATE_P1_BESIDE_H
#define ESTIMATE_P1_BESIDE_H

#include "estimate/p1/kernel.h"

/* One type. */
struct beside {
    struct kernel_point *who;    // (n_who) workloads that pairs were measured of, in either role
    int n_who;
    int *job, *neighbour;    // (gp.n) of each pair, positions in 'who'
    double *y;               // (gp.n) s less BESIDE_MEAN
    double *noises;          // (gp.n) variances
    double *like;            // (n_who, n_who) kernel_beside among them
    struct rows rows;        // of 'who'
    struct gp gp;
};

/* What s is where nothing is known: r of 0.6. */
#define BESIDE_MEAN 0.7746

/* Of the pairs in 'list' (n, all on one type). */
int beside_fit(struct arena *a, const struct examples *x, int n, const struct example *list,
               struct beside *out, struct err *e);

/* A workload on a type, as the process sees it: 'constant' and 'as_job' (n_who) as a job,
 * 'as_neighbour' (n_who) as a neighbour; s of a beside b is a.constant + a.as_job b.as_neighbour.
 * What is common to all types: alpha (gp.n) as if nothing had been measured of 'who', in either
 * role; gp.alpha itself where nothing was. In 'a'.
 */
int beside_forget(struct arena *a, const struct beside *b, const struct identity *who,
                  const double **alpha, struct err *e);

/* As a neighbour it is what rows_ask says of 'rows'; from that, with an alpha, as a job. */
void beside_as_job(struct arena *a, const struct beside *b, const double *alpha,
                   const float *as_neighbour, float *constant, float *as_job);

/* s of its own pairs (positions 'block', m) had these never been seen. */
int beside_leave_out(struct arena *a, const struct beside *b, int m, const int *block, double *s,
                     struct err *e);

void beside_save(const struct beside *b, const char *name, struct weights *to);
int beside_load(struct arena *a, const struct weights *from, const char *name, struct beside *out,
                struct err *e);

#endif
