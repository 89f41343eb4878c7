/* checkpoint.h - the state as rows, so that a restart need not replay everything.
 *
 * Written and read by the ledger only. A row's body is JSON: a node's is the event
 * that added it, a job's is the event that submitted it plus where it stands.
 */
#ifndef CATALOG_CHECKPOINT_H
#define CATALOG_CHECKPOINT_H

struct err;
struct ledger;

/* Both inside the caller's transaction. */
int checkpoint_write(struct ledger *l, struct err *e);
int checkpoint_read(struct ledger *l, struct err *e);

#endif
