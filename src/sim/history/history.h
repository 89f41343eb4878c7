/* history.h - a site's accounting as what happened on its GPUs, and as jobs to be placed again.
 *
 * The history is played in a world (world.h) whose orders are the accounting's: each job on the
 * very GPUs it had, from its start to its end. What the truth lets it do there is its work, so
 * under that truth it takes the same time on the same GPUs again; what all GPUs draw meanwhile is
 * the energy as it was. The same jobs, with that work, are then given to a policy. Made for `gogh
 * advise`; lives in the caller's arena, and borrows the accounting and the cluster.
 */
#ifndef SIM_HISTORY_HISTORY_H
#define SIM_HISTORY_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/trace/trace.h"

struct arena;
struct cluster;
struct err;
struct sacct;
struct sacct_job;
struct truth;

/* How it is known what a job ran. */
enum history_source { FROM_COMMENT, FROM_NAME, FROM_DEFAULT, HISTORY_SOURCES };

struct history_job {
    const struct sacct_job *ran;
    double at_s, start_s, end_s;    // ready, on its GPUs, gone; from the history's beginning
    int n_gpus;
    int *gpus;     // (n_gpus) of the cluster, node by node
    int shards;    // of its one GPU; 0: its GPUs are its own
    enum history_source source;
};

/* As they are unless one says otherwise. */
#define HISTORY_WORKLOAD "ResNet-50"
#define HISTORY_SHARDS 2
#define HISTORY_TOLERANCE 1.1    // of history_play and history_simulate

struct history_options {
    const char *workload;    // of jobs that do not tell; with its batch
    double from_s, to_s;     // site's clock; what ran before and after is cut off
    int shards;              // that a GPU has
    bool keeps_types;        // jobs may only run on the types they had
};

struct history {
    const struct sacct *sacct;
    const struct cluster *cluster;
    struct history_options options;
    const int *type_of, *node_of;        // (n_gpus of the cluster)
    double begin_s;                      // the first arrival, site's clock
    double end_s;                        // the last end, from there
    double first_end_s, last_start_s;    // also: outside of them the accounting may lack jobs
    int n_jobs;
    struct history_job *jobs;    // by arrival
    struct trace trace;          // the same; steps and promises are history_play's
    int n_pairs;
    int (*pairs)[2];    // jobs that shared a GPU

    /* Jobs that are left out. */
    int n_outside;         // ran before or after
    int n_unknown_node;    // a node that the cluster has not; the first of them
    const char *unknown_node;
    int n_no_room;    // more GPUs than their nodes had free; the first of them
    const char *no_room;
    int n_unfit;    // would not fit where they ran, whatever they are taken for
    int n_mixed;    // gangs of several types, too large for any one: a plan has none such

    int n_from[HISTORY_SOURCES];
    int n_taken_for_default;    // of the first two sources: would not fit where they ran
    int n_unknown_workload;     // comments that name one which nobody knows
    int n_asked;                // promises of comments
    int n_shared;               // jobs on shards
    double gpu_s;               // held by jobs
};

/* The whole name of 'model' at 'batch' (NaN: its usual one), of the cluster file or built in;
 * NULL: nobody knows it.
 */
const char *history_workload(struct arena *a, const struct cluster *cl, const char *model,
                             double batch);

/* The workload that a job's name tells ("train_resnet50_bs64"), or NULL. */
const char *history_recognise(struct arena *a, const struct cluster *cl, const char *name);

/* Who had which GPU: by node, by type where it is told, else the first that is free. -ENOENT: no
 * job is left.
 */
int history_make(struct arena *a, const struct sacct *s, const struct cluster *cl,
                 const struct history_options *o, struct history *out, struct err *e);

/* The starts, or the ends, of all jobs, in order; in 'a'. */
struct trace_moment *history_moments(struct arena *a, const struct history *h, bool is_end);

/* The truth's type of each GPU of the cluster; in 'a'. */
int *history_true_types(struct arena *a, const struct history *h, const struct truth *t);

/* Jobs that by the truth do not fit where they ran are taken for the default workload, or left out,
 * and so are gangs that no plan could place. Call it once, before anything below; what fits does
 * not depend on a truth's seed. -ENOENT: no job is left.
 */
int history_fit(struct history *h, const struct truth *t, struct err *e);

/* Figures of the history, or of a policy instead; of jobs that finished, where it says so. */
struct history_figures {
    double energy_j;    // of all GPUs, to the end of the history or, where later, of the last job
    double idle_j;      // of this, by GPUs that nobody held; NaN: not known
    double mean_wait_s, p95_wait_s;    // from ready to the first start
    double mean_jct_s;                 // from ready to the end, of finished jobs
    double promise_attainment;         // as in sim.h; NaN: no promises
    double end_s;
    int n_finished;
    int n_later;    // finished jobs that took longer than 'tolerance' times what they took
    long n_moves;
};

/* As it was. Fills in the steps of the trace's jobs and their promises: the comment's, or what the
 * history gave, divided by 'tolerance'. With 'is_asleep', GPUs nobody holds fall asleep and wake in
 * no time.
 */
void history_play(struct arena *a, struct history *h, const struct truth *t, double tolerance,
                  bool is_asleep, struct history_figures *out);

/* The same jobs under 'gogh' without some levers (optimize/policy/solver.h). 'on_step' hears how
 * many jobs have ended, now and then; NULL: nobody does.
 */
struct history_simulate {
    const struct truth *truth;
    uint64_t seed;
    double tolerance;
    unsigned without;
    void (*on_step)(void *self, int n_ended);
    void *self;
};
int history_simulate(const struct history *h, const struct history_simulate *how,
                     struct history_figures *out, struct err *e);

#endif
