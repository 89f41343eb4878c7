/* inner.h - what rerun's files share: one part of a record, from a start of the daemon on. */
#ifndef SIM_RERUN_INNER_H
#define SIM_RERUN_INNER_H

#include <stdbool.h>

#include "base/clock.h"
#include "catalog/catalog.h"
#include "catalog/cluster/ledger.h"
#include "cycle/cycle.h"
#include "sim/rerun/rerun.h"
#include "sim/rerun/read.h"

struct arena;
struct err;
struct model;
struct store;
struct truth;

/* A job as the copy of the store has it. */
struct rerun_job {
    enum job_state state;
    double steps_done;
    int n_held;
    const int *gpus;
};

/* What the first part began with. */
struct rerun_before {
    int n_jobs, n_gpus, n_nodes;
    const struct rerun_job *jobs;
    const bool *is_down;    // (n_nodes)
};

struct rerun_part {
    struct arena *arena;
    const char *name;                // of the record, for messages
    const char *dir;                 // where it and the files beside it are
    const struct rerun_entry *at;    // (n) the first is RERUN_BEGIN
    int n;
    struct rerun_result *result;

    struct store *store;    // the copy, opened for reading
    struct catalog catalog;
    struct ledger ledger;    // in memory from there on
    struct model *model;
    struct clock_manual clock;
    struct cycle cycle;
    bool is_loaded, has_cycle;
    const struct rerun_view *looking;    // whose busy GPUs the executor tells of
    struct rerun_before before;
};

/* The world carries out the orders of all parts, from what was there 'before', and draws; adds to
 * the result of 'last', whose state and catalog are as at the end, with all who ever were there.
 */
int rerun_world(struct rerun_part *last, const struct rerun_before *before,
                const struct rerun_entries *all, const struct truth *t, struct err *e);

#endif
