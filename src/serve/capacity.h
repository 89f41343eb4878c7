/* capacity.h - how many requests a second a place holds, by replay of what arrived; one lookup.
 *
 * F(alpha, gamma, rate) is the largest t0 with which at most 1 % are late when recorded hours,
 * brought to that rate, are replayed through steps of t0*(1 + alpha*b) (language models: and
 * gamma per prompt token); the least over the hours. A place holds a rate where t0 <= F/margin.
 *
 * Built from a service's arrivals every ten minutes or so, by a thread or a child: the result is
 * plain data without pointers, a function of arrivals and promise only. Read by the planner.
 */
#ifndef SERVE_CAPACITY_H
#define SERVE_CAPACITY_H

#include <stdbool.h>

#include "serve/arrivals.h"
#include "serve/batching.h"

/* What a service promises, and how its server batches. */
struct serving {
    double rate;         // promised, requests/s: the table's until an hour is recorded
    double latency_s;    // 99 % within; batching servers
    int max_batch;
    bool is_llm;              // the promise is:
    double ttft_s, tpot_s;    // first token, and each further one on average
    int max_running;
};

enum { CAPACITY_RATES = 9, CAPACITY_ALPHAS = 7, CAPACITY_GAMMAS = 4 };

enum capacity_source {
    CAPACITY_CAREFUL,    // nothing recorded: Poisson arrivals, t0 (LLMs: the rate) divided by 2.2
    CAPACITY_METRICS,    // a clump size fitted to scraped metrics
    CAPACITY_REPLAY,     // recorded hours
};

struct capacity {
    enum capacity_source source;
    struct serving spec;
    double margin;            // steps are taken to be so many times longer
    double rate_max;          // never more than this; INFINITY: no such limit
    double rate_ref;          // of the hours, the busiest one's, requests/s
    int n_hours;              // replayed
    double prompt, output;    // mean tokens of a request; 0: no language model
    int n_alphas, n_gammas;
    double log_alpha[CAPACITY_ALPHAS];    // of a/t0
    double log_gamma[CAPACITY_GAMMAS];    // of c/t0; batching servers have one, which is not read
    double log_rate[CAPACITY_RATES];
    double log_f[CAPACITY_GAMMAS][CAPACITY_ALPHAS][CAPACITY_RATES];    // log of seconds
};

/* Of recorded arrivals; with no hour in them, or NULL: the careful rule. */
void capacity_build(struct capacity *c, const struct arrivals *a, const struct serving *spec);

/* The same of 'n' stretches of time, as they are; of language models with these lengths. */
void capacity_build_replays(struct capacity *c, const struct replay *r, int n,
                            const struct lengths *lengths, const struct serving *spec);

/* What a scraper sees of a server; NaN where it does not say. */
struct serving_metrics {
    double rate;                          // requests/s that one replica took
    double t0_s, a_s, c_s;                // where it runs
    double late_share, p99_s, queue_s;    // queue_s: mean time before it is begun
    struct lengths lengths;               // of a language model's requests; none: not told
};

/* Of metrics only: one clump size is fitted to the first of late share, p99 and queueing time that
 * is said; margin 1.25, and never more than 1.4 times the rate seen.
 */
void capacity_from_metrics(struct capacity *c, const struct serving *spec,
                           const struct serving_metrics *m);

/* Requests/s that a place with these step times holds, 0 where a lone request is late there. Falls
 * in each of them. Beyond the largest rate of the table: F falls with 1/rate, which no arrivals
 * undercut; below the smallest: 0. c_s is for language models, seconds per prompt token.
 */
double capacity_mu(const struct capacity *c, double t0_s, double a_s);
double capacity_mu_llm(const struct capacity *c, double t0_s, double a_s, double c_s);

#endif
