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
struct cluster_settings;
struct err;
struct estimator;
struct state;

struct hindsight_run {
    const char *policy;
    int n_jobs, n_finished;
    double energy_j;
    double work_s;                // in seconds alone on the reference GPU
    double joules_per_work;       // energy_j / work_s
    double promise_attainment;    // 0..1; NaN: no promises
    double mean_jct_s;
};

/* Jobs submitted in [from_s, to_s), at most 'n_jobs_max' (the newest), on the nodes that there are.
 * 'policies' is (n), 'out' is (n). -ENOENT: no such job, or none whose work is known.
 *
 * A job that has ended does what it did; one that has not, what was asked of it, or where the steps
 * are only a guess what it has done so far. Who did nothing, and who allows no type that is here, is
 * left out. Every policy may know the catalog's measurements before it begins. 'est' is of 'c' and
 * up to date; the same call gives the same figures. Names in 'out' are those of 'policies'.
 */
int hindsight_run(struct arena *a, const struct state *s, const struct catalog *c,
                  const struct estimator *est, const struct cluster_settings *set, double from_s,
                  double to_s, int n_jobs_max, const char *const *policies, int n,
                  struct hindsight_run *out, struct err *e);

#endif
