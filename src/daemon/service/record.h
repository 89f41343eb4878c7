/* record.h - what a run consisted of, written down as it happens (docs/formats/record.md).
 *
 *     store as it was -> PATH.db
 *     header, events, measurements, looks, plans, orders, joules -> PATH
 *
 * Everything that a plan follows from is in there, in the order in which it came to the state: so
 * `gogh replay --record PATH` (sim/rerun/rerun.h) makes the same plans again, and carries them out
 * in the simulated world. Made by the daemon where the configuration says 'record PATH'; on the
 * loop's thread.
 *
 * Lines are whole JSON objects. What a transaction did waits until it is safe; of one that was
 * undone the events are left out, and what the catalog learned, which stays in memory, is not. A
 * record that cannot be written is given up with a warning; the daemon goes on.
 *
 * All functions take NULL, which records nothing.
 */
#ifndef DAEMON_SERVICE_RECORD_H
#define DAEMON_SERVICE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

struct cluster;
struct config;
struct cycle;
struct decision;
struct energy;
struct err;
struct event;
struct executor;
struct measurement;
struct record;
struct snapshot;
struct solo_profile;
struct solver;
struct workload;

/* Copy the store beside 'path' and append a header. Call once the cycle has its model, options and
 * first beliefs (one cycle_look), before anything else happens; it is borrowed. 'path' NULL: '*out'
 * is NULL. 'can_sleep': the executor puts empty GPUs to sleep.
 */
int record_open(const char *path, const struct config *c, const struct cycle *cycle, bool can_sleep,
                struct record **out, struct err *e);
void record_close(struct record *r);

/* Orders that this executor accepts are written down. */
void record_orders(struct record *r, struct executor *x);

/* ---- within a transaction: written when it is safe ---- */

void record_event(struct record *r, const struct event *ev);    // that the state has taken
void record_measure(struct record *r, const struct measurement *m);
void record_profile(struct record *r, int workload, const struct solo_profile *seen, double time_s);
void record_workload(struct record *r, const struct workload *w);    // as given to the catalog
void record_commit(struct record *r);
void record_undo(struct record *r);

/* cluster_install has put 'cl' into catalog and ledger, in a transaction of its own that is safe:
 * its GPU types, and what the journal has since 'after_seq'.
 */
void record_installed(struct record *r, const struct cluster *cl, int64_t after_seq);

/* ---- decisions ---- */

/* The state and the estimates have been looked at for a plan by 'solver'. A model that came into
 * use since the last time is written down before it.
 */
void record_look(struct record *r, const struct solver *solver, const struct snapshot *s);

/* What came of it, as the solver made it. 'is_acted': it is about to be carried out (cycle_act);
 * 'is_repriced': prices of the same look are being found beside. record_prices: these are in use.
 */
void record_plan(struct record *r, const struct decision *d, bool is_acted, bool is_repriced);
void record_prices(struct record *r);

/* Nothing came of it: it took too long, or the child died. */
void record_cut(struct record *r, const char *why);

/* ---- joules ---- */

/* What each GPU has used since the process began; all of it is booked up to 'at_s'. */
void record_energy(struct record *r, double at_s, const struct energy *e);

#endif
