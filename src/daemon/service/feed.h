/* feed.h - what happens, told to whoever listens: server-sent events.
 *
 * Each journalled event goes out once it is on disk, with its sequence number as the id; a
 * listener that comes back with Last-Event-ID gets what it missed from the journal, in slices
 * that do not hold the loop. So does one that reads slowly: it falls behind, and what it
 * gets next is read from the journal; only who reads nothing at all is cut off (http.h).
 */
#ifndef DAEMON_SERVICE_FEED_H
#define DAEMON_SERVICE_FEED_H

#include <stdint.h>

struct feed;
struct request;
struct service;

/* Uses the service's loop, store and ledger. Everything in the ledger now counts as on disk. */
struct feed *feed_create(struct service *s);
void feed_destroy(struct feed *f);    // while http is there, or after it; NULL is fine

/* Answer 'r' with an endless stream, from after 'after_seq' (-1: from now on), of one job's events
 * only ('job' -1: all).
 */
void feed_open(struct feed *f, struct request *r, int64_t after_seq, int job);

/* Events up to this sequence number are on disk. */
void feed_committed(struct feed *f, int64_t last_seq);

#endif
