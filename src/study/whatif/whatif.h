/* whatif.h - a site's jobs on other GPUs: the same worlds, with and without a change.
 *
 * A *variant* is a cluster, with its settings, and who plans there; the first is the site as it is.
 * Every variant runs in every world: a seed, which draws noise, what is hidden in the truth, and
 * the jobs (resample.h). Runs go side by side in processes of their own (pool.h). Figures are of a
 * year of such periods, and of GPUs only. Made by `gogh whatif`; lives in the caller's arena.
 */
#ifndef STUDY_WHATIF_WHATIF_H
#define STUDY_WHATIF_WHATIF_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/trace/trace.h"
#include "study/spread.h"

struct arena;
struct catalog;
struct cluster;
struct err;
struct truth;

enum whatif_figure {
    WHATIF_KWH,         // a year
    WHATIF_PROMISES,    // kept, 0..1; NaN: none was made
    WHATIF_MEAN_JCT,    // s
    WHATIF_P95_JCT,     // s
    WHATIF_FIGURES,
};

/* What is so with one seed. Borrowed from whoever opened it. */
struct whatif_world {
    const struct truth *truth;      // of all types of all variants
    const struct catalog *known;    // what the policy knows when it begins; NULL: nothing
    const struct trace *trace;      // the history: by arrival, from 0 on
};

/* Makes one, in 'a' and what 'self' has; and lets go of it. A process has one at a time. */
typedef int whatif_open_f(void *self, struct arena *a, uint64_t seed, struct whatif_world *out,
                          struct err *e);
typedef void whatif_close_f(void *self);

struct whatif_variant {
    const struct cluster *cluster;
    const char *policy;
    const char *type;    // that it is without, and how many there were; NULL: another change
    int count;

    /* By whatif_run. */
    int n_cannot;                         // jobs that no GPU of it could run, and are left out
    const char *cannot;                   // the first of them; NULL: there is none
    double n_unfinished;                  // others that had not finished, a run
    double (*of_seed)[WHATIF_FIGURES];    // (n_seeds)
};

struct whatif {
    whatif_open_f *open;
    whatif_close_f *close;
    void *self;
    double period_s;    // of the history
    double delay_w;     // what a second of a job's time is worth, for whatif_cost_kwh
    uint64_t first_seed;
    int n_seeds;
    int n_variants;
    struct whatif_variant *variants;    // the first is the site as it is
    int n_jobs;                         // of the history; by whatif_run
};

/* Could the job run on some GPUs of the cluster, if it had all of them for itself? */
bool whatif_fits(const struct trace_job *j, const struct cluster *cl, const struct truth *t);

/* How long jobs with these arrivals are the site's: to the last one, and as long as between two. */
double whatif_period_s(const struct trace *t);

/* Run them all. -EINVAL: what no world can be made of; -EINTR: interrupted. */
int whatif_run(struct arena *a, struct whatif *w, struct err *e);

/* A figure over the seeds; and by how much more of it a variant has than the site as it is, world
 * by world.
 */
struct spread whatif_spread(const struct whatif *w, const struct whatif_variant *v,
                            enum whatif_figure f);
struct spread whatif_difference(const struct whatif *w, const struct whatif_variant *v,
                                enum whatif_figure f);

/* What a variant costs more than the site as it is, in kWh a year, its energy and, at
 * 'delay_w', its jobs' time.
 */
double whatif_cost_kwh(const struct whatif *w, const struct whatif_variant *v);

/* Variants but the first, the best one to have first: those that jobs can run and finish in as at
 * the site, of them those in which not so much of the promised time is lost, a point, then by
 * whatif_cost_kwh; where nothing finished, which has no cost, last.
 */
#define WHATIF_PROMISES_LOST 0.01
void whatif_sort(struct whatif *w);

#endif
