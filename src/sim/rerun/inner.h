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
};

/* The world carries out the orders of all parts, from the state that the first began with, and
 * draws; adds to the result of 'last', whose state and catalog are as at the end, with all who ever
 * were there.
 */
int rerun_world(struct rerun_part *last, const struct state *before,
                const struct rerun_entries *all, const struct truth *t, struct err *e);

#endif
