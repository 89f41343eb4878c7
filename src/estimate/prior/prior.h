/* prior.h - what to believe of a cell before anything was measured there.
 *
 * The place of P1, the initial estimator. Standing today: the roofline with its stated
 * uncertainty. Pure functions of descriptors; 'refine' corrects what they say.
 */
#ifndef ESTIMATE_PRIOR_PRIOR_H
#define ESTIMATE_PRIOR_PRIOR_H

struct roofline;

struct prior {
    double ln_speed;     // of the throughput, steps/s
    double alone_sd;     // of the part that is the job's own speed
    double beside_sd;    // of the part that is the neighbour's effect; 0 when alone
    double sd;           // of both together
    double unfit;        // chance that it does not fit
};

/* 'on' is the workload's roofline on the type, 'beside' the neighbour's or NULL;
 * 'capacity_bytes' the type's memory.
 */
void prior_of(const struct roofline *on, const struct roofline *beside, double capacity_bytes,
              struct prior *out);

/* The chance that 'n_jobs' that ask for 'bytes' together do not fit. */
double prior_unfit(double bytes, double capacity_bytes, int n_jobs);

/* The share of the capacity that several jobs may ask for, for that chance to be 'unfit_max'. */
double prior_share_max(double unfit_max);

#endif
