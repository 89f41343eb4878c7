/* network.h - P1 and P2 as one network that reads what a site has measured.
 *
 * Readings of a site are tokens; a workload on a GPU type is a row that asks them (attention, with
 * a bias by how the two are related: same type, family, workload, in either role). What comes out
 * is a state, kept; a cell is decoded from the states of the job and of its neighbour. A newcomer's
 * own readings are tokens like the others, so nothing is trained at a site.
 *
 * A network is made by network_train from synthetic worlds alone, or by network_load; it never
 * changes afterwards, so threads may share it. docs/decisions/0023-network.md says why.
 */
#ifndef ESTIMATE_NETWORK_NETWORK_H
#define ESTIMATE_NETWORK_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "estimate/site/site.h"

struct err;
struct network;
struct progress;
struct weights;

struct network_options {
    uint64_t seed;
    int n_steps;                  // of training; 0: NETWORK_STEPS
    struct progress *progress;    // may be NULL
};

enum { NETWORK_STEPS = 10000 };

/* The same options give the same bytes where OpenBLAS does the same sums. Yours to destroy. */
struct network *network_train(const struct network_options *o);
void network_destroy(struct network *n);

/* How it was made, as its file says; and how many weights it has. */
const char *network_about(const struct network *n);
int network_n_weights(const struct network *n);

/* As arrays of 'to' whose names begin with "network"; to a file of only these. */
void network_save(const struct network *n, struct weights *to);
int network_write(const struct network *n, const char *path, struct err *e);

/* -ENOENT, -EINVAL: 'from' holds no such network; 'e' says why. '*out' is yours to destroy. */
int network_load(const struct weights *from, struct network **out, struct err *e);

/* The one that ships with the program, made by `gogh train --network`. -ENOENT: this build has
 * none.
 */
int network_pretrained(struct network **out, struct err *e);

/* More tokens than this are chosen among, see network_read. */
enum { NETWORK_TOKENS = 256 };

/* A network at a site: the context, computed once, and states, computed when asked for. Borrows the
 * network and the site, which may get more workloads meanwhile. One thread at a time.
 */
struct network_site;

struct network_site *network_site_create(const struct network *n, const struct site *s);
void network_site_destroy(struct network_site *k);

/* From now on these are the readings (copied), each cell at most once; without this, there are
 * none. Of more than NETWORK_TOKENS, those with 'focus' (a workload, or -1) come first, then those
 * with its family, then the latest of every kind, type and family in turn. Some milliseconds for
 * 256 tokens, when next asked.
 */
void network_read(struct network_site *k, int focus, const struct reading *readings, int n);

/* What a reading of this cell would be: its mean and standard deviation. 'neighbour' is -1 for
 * READ_ALONE. A state that nobody has asked for before takes some 20 us, a cell some 60 ns. Lessons
 * never ask for a cell that was read, so what is said of one is too unsure: whoever asks has the
 * reading.
 */
void network_ask(struct network_site *k, enum reading_of of, int type, int job, int neighbour,
                 float *mean, float *sd);

#endif
