/* counted.h - servers that only count: how busy one of them was at most, and how many were late.
 *
 * Of a service whose replicas tell no bins (they are asked for a page of metrics, or report counts
 * only). One per service, plain data, fed with what each replica tells; read when the table of
 * capacity is built, which capacity_from_metrics makes of it.
 */
#ifndef SERVE_COUNTED_H
#define SERVE_COUNTED_H

#include <stdbool.h>

#include "serve/arrivals.h"

struct serving_metrics;

/* Sums over a while, and over replicas. */
struct counted_while {
    double from_s, to_s;
    double served_s;    // all replicas' time together
    double n_requests, n_late;
    double queued_s;    // time by the number that waited
    bool is_known;      // how many were late
    struct lengths lengths;
};

/* Zeroed: nothing was said. */
struct counted {
    struct counted_while now, busiest;    // the busiest of a day
};

/* What one replica did from 'from_s' to 'to_s'. NaN, and NULL, where it does not say. */
void counted_add(struct counted *c, double from_s, double to_s, double n_requests, double n_late,
                 double n_queued, const struct lengths *lengths);

/* The mean replica of the busiest while, but for step times; false: none is known yet. */
bool counted_metrics(const struct counted *c, struct serving_metrics *out);

#endif
