/* batching.h - a server that takes what waits, up to a batch: replayed, or fed as time goes.
 *
 * A batch of b requests takes t0 + a*b seconds. A free server takes what waits, up to its largest
 * batch, and waits for nothing. The replay judges recorded arrivals, for tables of capacity; the
 * server is the same thing step by step, for a simulator, which owns it.
 */
#ifndef SERVE_BATCHING_H
#define SERVE_BATCHING_H

#include <stdbool.h>

/* Arrival times in order, from 0. Borrowed by whoever is given one. */
struct replay {
    const double *at_s;    // (n)
    int n;
    double span_s;    // the time that they arrived in
};

/* How many of 'r' are later than 'latency_s' through batches of t0_s + a_s*b, 1 <= b <= max_batch.
 * Beyond 'enough' late ones it may stop counting.
 */
int batching_late(const struct replay *r, double t0_s, double a_s, int max_batch, double latency_s,
                  int enough);

/* How long requests took: counts in sixteen buckets to the octave, from 61 us to 34 minutes.
 * Zeroed: none.
 */
enum { LATENCY_BUCKETS = 400 };
struct latencies {
    unsigned n[LATENCY_BUCKETS];
    double total;
};

void latencies_add(struct latencies *l, double s);
void latencies_join(struct latencies *l, const struct latencies *more);
double latencies_quantile(const struct latencies *l, double q);    // within 4 %; NaN when empty

/* One replica. Its figures grow from batch_server_init on; zero those that were told. */
struct batch_server {
    double t0_s, a_s;    // may be changed at any time; the batch under way keeps what it began with
    int max_batch;
    double latency_s;    // later than this is late
    bool is_draining;    // takes no new requests; what waits is served

    double now_s;
    double free_s;         // since when, where no batch is under way
    double batch_end_s;    // of the batch under way; INFINITY: none
    double counted_s;      // until here it is in busy_s
    int n_batch;           // requests in it, the first of the queue
    double *queue;         // (cap) ring of arrival times, those of the batch among them; heap
    int first, n_queue, cap;

    double n_arrived, n_served, n_late, n_batches, busy_s;
    double n_refused;    // while draining, or past BATCH_QUEUE_MAX waiting
    struct latencies latencies;
};

enum { BATCH_QUEUE_MAX = 1 << 20 };    // 8 MB: 200 s of 5,000 requests/s

void batch_server_init(struct batch_server *s, double t0_s, double a_s, int max_batch,
                       double latency_s, double now_s);
void batch_server_release(struct batch_server *s);

/* Serve until 'now_s', which is not before the last time given. Batches that end until then count;
 * the one under way is in busy_s as far as it is done. A batch that begins right at 'now_s' waits
 * for those that may still arrive at that time.
 */
void batch_server_advance(struct batch_server *s, double now_s);

/* A request at 'at_s', which is not before the last time given. False where it was refused. */
bool batch_server_arrive(struct batch_server *s, double at_s);

/* Those that wait, the batch under way among them, leave unserved (a crash, a kill): how many. They
 * count as late, and the batch as far as it came.
 */
int batch_server_abandon(struct batch_server *s);

#endif
