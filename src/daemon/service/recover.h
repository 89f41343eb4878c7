/* recover.h - a restart: a store opened, its catalog and its state back in memory.
 *
 * The first thing a daemon does. Also how `gogh replay` looks at a run that has ended or
 * died. Owns what it opens; nothing in the store is changed by opening it.
 */
#ifndef DAEMON_SERVICE_RECOVER_H
#define DAEMON_SERVICE_RECOVER_H

#include "catalog/catalog.h"
#include "catalog/cluster/ledger.h"
#include "store/store.h"

struct err;

struct recovered {
    struct store *store;
    struct catalog catalog;
    struct ledger ledger;
};

/* Open 'path' and read it. On an error nothing is left open. */
int recover_open(struct recovered *r, const char *path, enum store_mode mode, struct err *e);
void recover_close(struct recovered *r);

#endif
