/* rows.h - the state as rows of the store: written with each event, read at a start.
 *
 * For the ledger only. A node's row holds the event that added it as JSON; a job has one row
 * with what was asked, written once, and a small one with where it stands.
 */
#ifndef CATALOG_CLUSTER_ROWS_H
#define CATALOG_CLUSTER_ROWS_H

struct err;
struct event;
struct ledger;

/* All in the caller's transaction. */
int rows_write_event(struct ledger *l, const struct event *ev, struct err *e);    // once applied
int rows_write_all(struct ledger *l, struct err *e);                              // anew

/* What reads rows and events of the store. */
struct ledger_reader {
    struct ledger *ledger;
    struct err *e;
};

/* Fill the ledger's empty state; last_seq becomes the last event that the rows reflect. */
int rows_read(struct ledger *l, struct err *e);

#endif
