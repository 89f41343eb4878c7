/* metrics.h - counts that only ever grow, and /metrics as Prometheus wants it.
 *
 * Counted where things happen; printed by metrics_print together with what can be asked of
 * the parts at that moment. Names begin with gogh_, units are base units, counts end in _total.
 */
#ifndef DAEMON_SERVICE_METRICS_H
#define DAEMON_SERVICE_METRICS_H

#include <stdint.h>

#include "optimize/model/plan.h"

struct buf;
struct service;

enum { METRIC_BUCKETS = 12 };

/* Seconds, by fixed limits from .001 to 30; the last bucket has no end. */
struct histogram {
    uint64_t counts[METRIC_BUCKETS];    // each observation once
    double sum;
};
void histogram_add(struct histogram *h, double v);

struct metrics {
    uint64_t n_decisions, n_fallbacks, n_solver_deaths;
    uint64_t n_certified;    // decisions whose plan knows its gap
    uint64_t n_moves, n_starts, n_stops, n_refused;
    uint64_t n_commits, n_commit_failures;
    uint64_t n_measurements;
    uint64_t n_covered;      // inside the believed 90 % interval
    double sum_abs_error;    // of |measured / believed - 1|
    struct plan_gap gap;     // of the last plan that knows it; NaN: none yet
    double last_s;           // what the last decision took; NaN: none yet
    struct histogram decision_s, repricing_s, commit_s;
};

void metrics_init(struct metrics *m);

/* The whole page. Joules per GPU, owner and (where configured) job; jobs by state; loop stalls;
 * prediction error and coverage; build info; the process's own CPU, memory and descriptors.
 */
void metrics_print(const struct service *s, struct buf *out);

#endif
