/* hindsight.h - the jobs of a period once more, under other policies: what would have been saved.
 *
 * The simulated world is made of what is known by now (measurements, and the estimates where
 * there are none), the jobs are those that were submitted, with the work they really did. Asked by:
 * the daemon, in a child process, for reports and shadow mode. Touches nothing.
 */
#ifndef SIM_HINDSIGHT_H
#define SIM_HINDSIGHT_H

struct arena;
struct catalog;
struct cluster;
struct cluster_settings;
struct err;
struct estimator;
struct state;
struct trace;

struct hindsight_run {
    const char *policy;
    int n_jobs, n_finished;
    double energy_j;
    double work_s;                // in seconds alone on the reference GPU
    double joules_per_work;       // energy_j / work_s
    double promise_attainment;    // 0..1; NaN: no promises
    double mean_jct_s;
};

/* What is looked back at, and for whom. */
struct hindsight {
    const struct state *state;
    const struct catalog *catalog;
    const struct estimator *est;    // of the catalog, and up to date
    const struct cluster_settings *settings;
    double from_s, to_s;            // jobs submitted in [from_s, to_s)
    int n_jobs_max;                 // the newest of them
    const char *const *policies;    // (n_policies)
    int n_policies;
};

/* The nodes of the state that are not down, with the catalog's figures of their types. */
int hindsight_cluster(struct arena *a, const struct state *s, const struct catalog *c,
                      const struct cluster_settings *set, struct cluster *out, struct err *e);

/* The newest jobs of the period, by arrival; the clock begins with the first of them. Of 'h' state,
 * catalog, period and number are read. -ENOENT as below.
 */
int hindsight_trace(struct arena *a, const struct hindsight *h, const struct cluster *cl,
                    struct trace *out, struct err *e);

/* On the nodes that there are; 'out' is (n_policies). -ENOENT: no such job, or none whose work is
 * known.
 *
 * A job that has ended does what it did; one that has not, what was asked of it, or where the steps
 * are only a guess what it has done so far. Who did nothing, and who allows no type that is here,
 * is left out. Every policy may know the catalog's measurements before it begins. The same call
 * gives the same figures. Names in 'out' are those of 'policies'.
 */
int hindsight_run(struct arena *a, const struct hindsight *h, struct hindsight_run *out,
                  struct err *e);

#endif
