/* ledger.h - the state with its journal: an event is on disk before anybody hears of it.
 *
 * Opened on a store (restart is replay: the checkpoint, then the events after it)
 * or without one (a simulation that nobody needs to resume).
 */
#ifndef CATALOG_LEDGER_H
#define CATALOG_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "catalog/state.h"

struct catalog;
struct err;
struct store;

struct ledger {
    struct state state;
    struct catalog *catalog;    // borrowed
    struct store *store;        // borrowed; NULL: in memory only
    struct arena scratch;
    int64_t last_seq;    // of the newest event applied
    int n_since_checkpoint;
    bool is_broken;    // could not be read again after a failed append; takes nothing more
};

/* Open and, with a store, replay. -EINVAL names the event that does not fit. */
int ledger_open(struct ledger *l, struct catalog *c, struct store *s, struct err *e);
void ledger_close(struct ledger *l);

/* Apply and journal 'n' events in one transaction. Either all of them count or
 * none does; the first that the state refuses is the error. (Without a store those
 * before the refused one have been applied: there is nothing to fall back to.)
 */
int ledger_append(struct ledger *l, const struct event *events, int n, struct err *e);

/* Write nodes, gpus and jobs as they are now, so that the next start replays less. */
int ledger_checkpoint(struct ledger *l, struct err *e);

#endif
