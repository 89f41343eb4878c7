/* pool.h - many runs on all cores, each in a process of its own.
 *
 * A run that crashes or fails is reported by name and does not take the others along; a pool
 * that is interrupted (SIGINT, SIGTERM) ends its children, and the runs that are done are kept.
 * Children end when the parent does, however that ends. Call it while the process has no other
 * threads: children are forks.
 */
#ifndef STUDY_POOL_H
#define STUDY_POOL_H

#include "study/results.h"

struct err;

typedef int pool_run_f(struct arena *a, const struct study_run *k, const char *data,
                       struct study_result *out, struct err *e);

struct pool_options {
    int n_parallel;      // processes; 0: as many as there are cores
    const char *data;    // as for scenario_open
    bool is_quiet;       // no progress; otherwise with ETA on a terminal, a line at first elsewhere
    pool_run_f *run;     // NULL: study_run_do
};

struct pool_report {
    int n_done, n_kept, n_failed;    // run now; found from before; failed
    const char *first_failure;       // sentence with the run's name; NULL: none
};

/* Do what the results does not have yet; afterwards its rows are those that are there, in the order
 * of 'keys'. The results is taken. 0; -EINTR: interrupted; -Exxx: the directory cannot be written.
 */
int pool_run(struct arena *a, struct results *b, const struct study_run *keys, int n_keys,
             const struct pool_options *o, struct pool_report *report, struct err *e);

#endif
