/* rerun.h - a recorded run of the daemon, gone through again in the simulator.
 *
 * The record (docs/formats/record.md) has everything that plans followed from, in its order. It is
 * walked through twice:
 *
 *   plans    the store as it was, events and measurements as they came, and at each look the cycle
 *            looks and plans anew: the plan must be the one that was carried out, GPU by GPU.
 *   joules   the simulated world (world.h) gets the orders at the times they were given, starts,
 *            moves, runs and ends jobs as its truth and the settings have it, and draws watts; what
 *            that adds up to is held against what the daemon accounted.
 *
 * Called by `gogh replay --record`. Results live in the caller's arena.
 */
#ifndef SIM_RERUN_RERUN_H
#define SIM_RERUN_RERUN_H

#include "estimate/beliefs.h"

struct arena;
struct err;
struct hindsight;

struct rerun_options {
    const char *record;    // file
    const char
        *truth;    // a store of measurements for the world; NULL: what was believed at the end
};

struct rerun_type {
    const char *name;    // GPU type
    int n_gpus;
    double cluster_j, sim_j;
};

struct rerun_result {
    int n_parts;    // times that the daemon was started
    long n_events, n_measurements;
    long n_decisions;       // plans that were carried out
    long n_same;            // and came out the same
    long n_cut;             // that the daemon gave up, which depends on the machine: not repeated
    double watts_off;       // largest |predicted draw now / then - 1| of plans that are the same
    const char *differs;    // the first plan that did not, and how; NULL: all are the same

    /* 0, and the difference NaN: no part has joules (the daemon was killed within a minute). */
    double cluster_j, sim_j;
    double difference;    // sim_j / cluster_j - 1
    double seconds;       // of these joules
    int n_types;
    const struct rerun_type *types;

    /* Jobs that ended well in the cluster; how many of them did in the world, and when: mean of
     * (its time to finish there / in the cluster - 1), NaN for none.
     */
    int n_finished, n_finished_sim;
    double jct_off;
};

/* -EINVAL names the line that makes no sense; -ENOENT: a file is missing. */
int rerun(struct arena *a, const struct rerun_options *o, struct rerun_result *out, struct err *e);

/* What a record adds up to at its end: nothing is planned. 'on_end' is told once; it may add GPU
 * types to the catalog, which is in memory alone, and what it gives is given back.
 */
struct catalog;
struct cluster_settings;
struct estimator;
struct model;
struct state;
struct rerun_site {
    const struct state *state;
    struct catalog *catalog;
    const struct model *model;
    const struct estimator *est;    // what was believed at its end
    enum estimator_kind kind;
    const struct cluster_settings *settings;
};
typedef int rerun_end_f(void *self, const struct rerun_site *site, struct err *e);
int rerun_end(struct arena *a, const char *record, rerun_end_f *on_end, void *self, struct err *e);

#endif
