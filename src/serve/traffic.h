/* traffic.h - arrivals by chance: a day, a week, clumps, busy spells, clients that appear suddenly.
 *
 * A Poisson process whose rate follows day and week, multiplied in busy spells, with arrivals in
 * clumps, and with further clients that come, stay a while and go. Streaming: a week of twenty
 * services takes no memory. The same spec and seed give the same times.
 */
#ifndef SERVE_TRAFFIC_H
#define SERVE_TRAFFIC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"

struct traffic_spec {
    double rate;            // mean over a week, of the base, requests/s
    double day;             // 0..1: swing around the mean by hour of day
    double peak_h;          // hour of the day of the peak
    double week;            // 0..1: how much less at weekends
    double clump;           // mean arrivals of a clump, >= 1; geometric
    double clump_s;         // mean time between those of a clump
    double spell;           // the rate's factor in a busy spell; 1: none. The mean stays
    double spell_s;         // mean length of one
    double calm_s;          // and of the time between them
    double clients_day;     // clients that appear in a day, on average
    double client_s;        // mean stay
    double client_rate;     // mean rate of one over 'rate'; exponential
    double client_clump;    // mean arrivals of their clumps
};

enum { TRAFFIC_CLIENTS = 16, TRAFFIC_PENDING = 1024 };

struct traffic {
    struct traffic_spec spec;
    struct rng rng;
    double now_s;          // base process has been drawn until here
    double segment_s;      // the rate stays until here
    double spell_end_s;    // the next change between spell and calm
    int is_spell;
    double next_client_s;
    int n_clients;
    struct traffic_client {
        double end_s, rate;
    } clients[TRAFFIC_CLIENTS];
    int n_pending;
    double pending[TRAFFIC_PENDING];    // a heap: of clumps under way
};

void traffic_init(struct traffic *t, const struct traffic_spec *spec, uint64_t seed);

/* The time of the next arrival, seconds since a Monday's midnight; never before the last one. */
double traffic_next(struct traffic *t);

/* The mean rate at a time, over all that chance could do: what a perfect forecast knows. */
double traffic_rate(const struct traffic *t, double at_s);

/* A service as chance has it: rate and kinds of burst drawn over what was seen of real ones. */
struct traffic_spec traffic_draw(struct rng *r, double rate);

#endif
