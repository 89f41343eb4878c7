/* kernel.h - how alike two workloads on GPU types are, for Gaussian processes; and a process over
 * remembered points that can forget one workload again.
 *
 * The constants are round numbers for round beliefs (a residual over the roofline of some 0.5, a
 * third of it shared within a family), stated here and nowhere fitted: in a prototype, dropping any
 * one term moved held-out errors by less than families differ among themselves, and fitting all of
 * them gained nothing. What is fitted is the scale of the uncertainty, from held-out errors, in P1.
 */
#ifndef ESTIMATE_P1_KERNEL_H
#define ESTIMATE_P1_KERNEL_H

#include "estimate/p1/examples.h"
#include "nn/gp.h"

struct arena;
struct err;
struct weights;

/* One workload on one type, as a point. */
struct kernel_point {
    struct identity who;
    struct features on;
};

typedef double kernel_f(const struct kernel_point *a, const struct kernel_point *b);

/* Of the residual of a job's own speed, and of its watts: efficiencies that are shared by what the
 * step's time goes to, by the kind of kernels, by the type, by the family, and by likeness.
 */
kernel_f kernel_alone;

/* The same as ridge regression sees it: linear in the features. */
kernel_f kernel_ridge;

/* Of what a workload does to others and others to it: 1.05 for itself. */
kernel_f kernel_beside;

/* The penalty's strength in units of the noise, which process_fit is then given. */
#define RIDGE_PENALTY 10.0
#define RIDGE_NOISE 1.0

/* What kernel_ridge is linear in, about mean 0 and of unit size. */
enum { RIDGE_INPUTS = 19 };
void ridge_inputs(const struct features *f, double *x);

/* ---- one point with many ---- */

/* Points side by side, as loops without calls and branches want them: a row of any of the kernels
 * above costs a tenth of asking it for each point. Made by rows_init; lives in its arena.
 */
struct rows {
    kernel_f *kernel;
    int n, n_types, width;
    struct identity *who;      // (n)
    float *ln_batch;           // (n)
    int *type;                 // (n) the GPU type of each, a position in 'types'
    struct features *types;    // (n_types) only the figures count
    float *x;                  // (width, n) coordinates: the first of all, the second of all
};

void rows_init(struct arena *a, kernel_f *kernel, int n, const struct kernel_point *points,
               struct rows *out);

/* The kernel of 'at' with each point, to 1e-6: k (n). 'a' is for scratch. */
void rows_ask(struct arena *a, const struct rows *r, const struct kernel_point *at, float *k);

/* ---- a process over points ---- */

struct process {
    kernel_f *kernel;
    struct kernel_point *points;    // (n)
    double mean;                    // of y, which the process is about the rest of
    double noise;                   // variance, on top of each example's own
    double *noises;                 // (n) variance of each
    double *y;                      // (n) less the mean
    double *ones;                   // (n) the inverse times 1: what another mean would change
    struct gp gp;
    struct rows rows;
    float *root;    // (n, n) lower R with R R' the inverse: k' times it is |R' k|^2; NULL: ridge's
};

/* Over the n examples with features from 'x'. */
int process_fit(struct arena *a, kernel_f *kernel, double noise, const struct examples *x, int n,
                const struct example *list, struct process *out, struct err *e);

/* The mean at 'at', as if nothing had been seen of its own workload. */
int process_ask(struct arena *a, const struct process *p, const struct kernel_point *at,
                double *mean, struct err *e);

/* The same of one workload at n_at points (types), to 1e-5 and many times faster: what there is to
 * forget is forgotten once, and kernels are worked out in rows. With the standard deviation, to
 * 1e-4; NULL: nobody asks, and over kernel_ridge there is none.
 */
int process_ask_all(struct arena *a, const struct process *p, int n_at,
                    const struct kernel_point *at, double *mean, double *sd, struct err *e);

/* Mean and sd at each of its own points had 'block' never been seen; only the block's entries
 * of 'mean' and 'sd' (n) are written.
 */
int process_leave_out(struct arena *a, const struct process *p, int m, const int *block,
                      double *mean, double *sd, struct err *e);

void process_save(const struct process *p, const char *name, struct weights *to);
int process_load(struct arena *a, kernel_f *kernel, const struct weights *from, const char *name,
                 struct process *out, struct err *e);

/* Points as rows of floats, for whoever saves them. More than POINTS_MAX are refused. A process
 * takes the square of its points in memory, so one is refused over more than it may learn from:
 * EXAMPLES_PAIRS_MAX.
 */
enum { DIGEST_FLOATS = 3 * 4, POINT_FLOATS = DIGEST_FLOATS + FEATURE_NUMBERS };
enum { POINTS_MAX = 4 * EXAMPLES_PAIRS_MAX };
void points_save(const struct kernel_point *points, int n, const char *name, struct weights *to);
int points_load(struct arena *a, const struct weights *from, const char *name,
                struct kernel_point **out, int *n, struct err *e);

#endif
