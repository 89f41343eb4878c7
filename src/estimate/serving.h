/* serving.h - step times of servers: tau(b) = t0 + a b seconds for a batch of b requests.
 *
 * A server is a workload whose batch is the largest that it makes. What the estimator believes of
 * its family at batches 1, 2, 4, ... (its rungs, workloads of the catalog that serving_meet adds)
 * is 1 / tau there, alone and beside a neighbour, and t0 and a are a line through some of these:
 * so a neighbour has two factors, and what was measured of one server, type or neighbour reaches
 * the others as any measurement does. A training job is a neighbour as it is; of a server the rung
 * is taken that is nearest to the asked one: measured pairs of servers have like batches.
 *
 * Asked by whoever plans for services; answers are kept as long as nothing is learned. What was
 * seen of tails is the estimator's own and dies with it.
 */
#ifndef ESTIMATE_SERVING_H
#define ESTIMATE_SERVING_H

#include <stdbool.h>

struct catalog;
struct err;
struct estimator;
struct measurement;

/* Rungs up to a batch of 2,048; asked are the first, the one in the middle, the last, and of those
 * that were measured themselves as many as there is room for.
 */
enum { SERVING_RUNGS = 12, SERVING_POINTS = 6 };

/* Believed of one rung. */
struct serving_point {
    double batch;
    double ln_tau, sd;    // of its seconds
};

struct serving_estimate {
    double ln_t0, ln_a;          // of seconds: a step without requests; one more request in it
    double t0_sd, a_sd, corr;    // standard deviations of both, and their correlation
    double ln_prefill;           // of seconds a token of a prompt; NaN: it writes no text
    double prefill_sd;           // NaN as well
    double tail;                 // what p99 grows by beyond what t0 and a say
    bool is_tail_measured;       // of this very pair, here
    double unfit;                // chance that it does not fit
    int n;                       // points that the line goes through
    struct serving_point at[SERVING_POINTS];
};

/* Add the rungs of a server to the catalog; those that are there stay as they are. Once for each
 * server, before it is asked about (and estimate_meet after that). Errors as catalog_add_workload.
 */
int serving_meet(struct catalog *c, int workload, struct err *e);

/* Of 'workload' on 'type' beside 'neighbour' (-1: alone). A rung that nobody has added is taken to
 * be as far from the workload's own batch as the roofline says, and less sure.
 */
struct serving_estimate estimate_serving(const struct estimator *e, int workload, int type,
                                         int neighbour);

/* Seconds that a token of a prompt takes by the device's figures; NaN: it writes no text. */
struct gpu_type;
struct workload;
double serving_prefill_s(const struct workload *w, const struct gpu_type *g);

/* A line that step times stay below, with the confidence of 'z' standard deviations at each point.
 */
void serving_cautious(const struct serving_estimate *is, double z, double *t0_s, double *a_s);

#define SERVING_BATCHES_LEAST 10    // fewer tell nothing

/* What a replica did in a time in which nothing changed around it. */
struct serving_seen {
    double n_requests, n_batches, busy_s;
    double beside_busy;    // part of the time that its neighbour was at work; 1: always
};

/* That as a measurement of the rung nearest to the mean batch, for catalog_record or refine_take.
 * (A step is linear in its batch, so the mean step is that of the mean batch.) Beside one that is
 * at work for part of the time, what it does to the step is brought to all of the time. False: it
 * tells nothing: too few batches, a neighbour that hardly works, or numbers that no server has.
 */
bool serving_measure(const struct estimator *e, int workload, int type, int neighbour,
                     const struct serving_seen *seen, struct measurement *out);

/* What a request takes that comes when a step of one has begun: the rest of it, and its own. */
double serving_two_steps_s(const struct serving_estimate *is);

/* A p99 was seen that is 'factor' times the one that t0 and a say for the same arrivals; 'noise' is
 * the standard deviation of its logarithm.
 */
void serving_note_tail(struct estimator *e, int workload, int type, int neighbour, double factor,
                       double noise);

/* The default z: of pairs that were never measured none may break its promise. */
#define SERVING_Z 2.33

/* May the server have this neighbour, when 99 of 100 requests are to be answered within 'within_s'?
 * A request waits for the step that is running, and then takes its own: both, cautiously, with the
 * tail, have to fit. Beside training also within_s >= 12 p99 alone ('p99_alone_s'; NaN: two steps
 * alone), unless the tail of this very pair was measured.
 */
bool serving_is_safe(const struct estimator *e, int workload, int type, int neighbour,
                     double within_s, double p99_alone_s, double z);

/* The estimator's part: what was asked for and what was seen of tails. */
struct serving_cache;
struct serving_cache *serving_create(void);
void serving_destroy(struct serving_cache *s);    // NULL is fine

#endif
