/* local.h - the executor for one box: jobs are processes of this machine.
 *
 * Each run of a job has a directory RUN_DIR/JOB.N (N counts runs from 0) and a keeper, a small
 * process of its own that starts the command as its owner, waits for it, and writes down how
 * it ended (docs/formats/run.md). Keepers outlive the daemon: a new one finds them again by their
 * directories, pid and start time. The directory is made before the process, and a keeper takes
 * it with a lock, so no run is started twice.
 *
 * Sides of doors: the executor's, and half of the sensor's: notices are read by 'monitor/watch'.
 * Everything here is on the loop's thread and returns at once.
 */
#ifndef ACT_LOCAL_LOCAL_H
#define ACT_LOCAL_LOCAL_H

#include <stdbool.h>
#include <sys/types.h>

#include "act/executor.h"

struct catalog;
struct clock;
struct devices;
struct err;
struct local;
struct loop;
struct state;

/* Texts are borrowed, as is all else that is pointed at. */
struct local_setup {
    struct loop *loop;
    const struct clock *clock;
    const struct state *state;        // specs, GPUs, names
    const struct catalog *catalog;    // names of types and workloads
    int node;                         // this box, in the state; others are of no concern
    struct devices *devices;          // of its slots in order; declared ones have none
    const char *run_dir;
    const char *keeper;     // the keeper's program
    const char *reports;    // address that jobs are told to report to (GOGH_REPORTS)
    double grace_s;         // where a command says nothing else
    bool uses_mps;

    /* Whether MPS serves jobs here, once that is known, where uses_mps asks for it. */
    void (*on_mps)(void *self, bool is_up);
    void *mps_self;

    /* Steps that a job has done, as last heard; NULL: as the state has it. */
    double (*steps_done)(void *self, int job);
    void *steps_self;
};

/* Runs found in the run directory are adopted, and what came of them meanwhile becomes
 * notices: also of jobs that the state thinks are waiting (started just before the daemon died), or
 * cancelled (they are ended).
 */
int local_create(const struct local_setup *s, struct local **out, struct err *e);
void local_destroy(struct local *l);    // leaves the jobs running; NULL is fine

/* 'committed' says that the notices which 'done' took off are on disk: until then a restart tells
 * them again. Closing it destroys 'l'.
 */
struct executor local_executor(struct local *l);

/* Can this daemon start processes of that user at all? -EPERM says why not, and the cure. */
int local_may_run_as(uid_t uid, struct err *e);

/* Orders that are not carried out yet. */
int local_n_under_way(const struct local *l);

#endif
