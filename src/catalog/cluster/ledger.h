/* ledger.h - the state with its journal: an event is on disk before anybody hears of it.
 *
 * Opened on a store or without one (a simulation that nobody needs to resume). In the
 * store every event stands beside the rows that it changed, so that a restart reads rows;
 * events that have none yet (a store from before there were rows) are replayed, and get theirs
 * with the first group.
 */
#ifndef CATALOG_CLUSTER_LEDGER_H
#define CATALOG_CLUSTER_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "catalog/cluster/state.h"

struct catalog;
struct err;
struct store;

struct ledger {
    struct state state;
    struct catalog *catalog;    // borrowed
    struct store *store;        // borrowed; NULL: in memory only
    struct arena scratch;
    int64_t last_seq;     // of the newest event applied
    bool is_behind;       // events were replayed that the store's rows do not reflect yet
    bool is_begun;        // a group is open
    int64_t begun_seq;    // last_seq when it began
};

/* Open and, with a store, read what is there. -EINVAL names the event or row that does not fit. */
int ledger_open(struct ledger *l, struct catalog *c, struct store *s, struct err *e);
void ledger_close(struct ledger *l);    // undoes an open group

/* Apply and journal 'n' events in one transaction. Either all of them count or
 * none does; the first that the state refuses is the error. (Without a store, and within an
 * open group, those before the refused one have been applied.)
 */
int ledger_append(struct ledger *l, const struct event *events, int n, struct err *e);

/* The same in steps, for a group of unrelated events that share one commit: begin, add each,
 * commit. An event that the state refuses (-EINVAL) changes nothing and spoils nothing; any other
 * error of an add, and a failed commit, undoes the whole group: memory is what the disk has, and
 * jobs that were there before stay where they are in memory. Begin is idempotent. When the fault
 * is gone (-ENOSPC, -EROFS, -EIO, -EBUSY), the next group works.
 *
 * Catalog writes may go into the same transaction: catalog_begin and catalog_end join it.
 * What the catalog learned in a group that is undone it keeps in memory; the next group begins
 * by writing the types and workloads that the store lacks (catalog_resync). Measurements of an
 * undone group count until the process ends, and are not in the store.
 */
int ledger_begin(struct ledger *l, struct err *e);
int ledger_add(struct ledger *l, const struct event *ev, struct err *e);
int ledger_commit(struct ledger *l, struct err *e);    // 0 when nothing was begun
void ledger_undo(struct ledger *l);                    // of what was begun and not committed

#endif
