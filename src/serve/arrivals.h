/* arrivals.h - what arrived at a service: counts in narrow bins, by hour, of the last 24 hours.
 *
 * Made with the service, fed with what its replicas tell, read when its table of capacity is built;
 * one hour is one row of the store. Bins are an eighth of the promised latency: replays of evenly
 * spread bins then err by -3 ... +6 %, those of half of it by up to +35 %. A bin is never below a
 * millisecond: reports of several processes agree on no more, and an hour has 3.6 million of them.
 *
 * Two hours are open, to which replicas may add in any order, 2 bytes a bin. Older ones are sealed:
 * one byte for a bin that is not empty, ARRIVALS_HOUR_MAX at most. Where that is not enough (it is
 * 36 minutes of 5,000 requests/s in bins of 2.5 ms), the hour speaks of its first part only: wider
 * bins would hide the bursts.
 */
#ifndef SERVE_ARRIVALS_H
#define SERVE_ARRIVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arrivals;
struct buf;
struct err;

enum {
    ARRIVALS_HOURS = 24,
    ARRIVALS_HOUR_MAX = 1 << 20,    // bytes of a sealed hour
    ARRIVALS_COUNT_MAX = 65535,     // in a bin; more are not counted
    LENGTH_BUCKETS = 48,            // of tokens, each sqrt(2) wider than the one before
};

/* Tokens of requests, of servers of language models. */
struct lengths {
    unsigned prompt[LENGTH_BUCKETS], output[LENGTH_BUCKETS];
};

/* The width of the bins of a service that promises 'latency_s'. */
double arrivals_bin_s(double latency_s);

/* Empty, with bins of 'bin_s'. */
struct arrivals *arrivals_create(double bin_s);
void arrivals_destroy(struct arrivals *a);

/* Add 'counts' of 'n' bins of 'bin_s' from 'from_s' on; bins of another width are respread evenly.
 * What is more than a minute after 'now_s', or before the open hours, is left out. Returns how many
 * arrivals were taken.
 */
double arrivals_add(struct arrivals *a, double now_s, double from_s, double bin_s, int n,
                    const unsigned *counts);

/* Tokens of requests of about 'at_s'; where that hour is not open, nothing happens. */
void arrivals_add_lengths(struct arrivals *a, double at_s, const struct lengths *more);

/* Open the hour of 'now_s': seals and forgets, also where nothing arrives any more. */
void arrivals_advance(struct arrivals *a, double now_s);

/* Hours that are over, the latest first: i of arrivals_n_hours; 'from_s' is when it began. */
struct arrivals_hour {
    double from_s, span_s;    // span_s: what it speaks of, an hour or its first part
    unsigned n;               // arrivals in that time
    struct lengths lengths;
};
int arrivals_n_hours(const struct arrivals *a);
struct arrivals_hour arrivals_hour(const struct arrivals *a, int i);

/* The times of hour 'i', spread evenly within bins, into at_s: how many. Of more than 'max' four
 * slices are taken, at even distances, and put one behind the other. 'span_s': the time they fill.
 */
int arrivals_expand(const struct arrivals *a, int i, double *at_s, int max, double *span_s);

/* Arrivals from 'from_s' to 'to_s', as far as open hours have them: how many, the first 'max' of
 * them as times from 'from_s' on in 'at_s' (NULL: only counted).
 */
int arrivals_recent(const struct arrivals *a, double from_s, double to_s, double *at_s, int max);

/* Hour 'i' as bytes (docs/formats/arrivals.md); the hour under way, of which nothing is written
 * where there is none; and back: -EINVAL says what is wrong with the bytes, and nothing changes. An
 * hour that is there already is replaced, one of another width is respread. Load before adding.
 */
int arrivals_save(const struct arrivals *a, int i, struct buf *out);
int arrivals_save_newest(const struct arrivals *a, struct buf *out);
int arrivals_load(struct arrivals *a, const void *bytes, size_t len, struct err *e);

/* Tokens at the quantile 'q' of a histogram with LENGTH_BUCKETS; 1 where it is empty. */
int lengths_quantile(const unsigned *histogram, double q);
double lengths_mean(const unsigned *histogram);    // 1 as well
void lengths_add(unsigned *histogram, int tokens);
void lengths_add_many(unsigned *histogram, int tokens, unsigned n);
void lengths_join(struct lengths *l, const struct lengths *more);

#endif
