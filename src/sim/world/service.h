/* service.h - one service of the simulated world: requests come, replicas answer them.
 *
 * Made and owned by the world, which says when replicas come and go and how long their batches
 * take; knows nothing of GPUs. Lazy: nothing happens between calls of requests_run, which plays all
 * that came meanwhile, request by request.
 *
 * - Each request goes to one of the replicas that take requests, at random by the weights that were
 *   published; to each alike until some were, or where those have none. A replica answers in
 *   batches (serve/batching.h), that of a language model in a running one (serve/continuous.h).
 * - While nobody takes requests they wait, and those that have waited latency_s are refused.
 * - A replica that drains answers what it has; one that is lost loses it.
 * - Hours are judged by what was answered, refused and lost in them; refused and lost ones are
 *   late.
 */
#ifndef SIM_WORLD_SERVICE_H
#define SIM_WORLD_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "serve/any_server.h"
#include "sim/world/serving.h"
#include "sim/world/world.h"

/* Bins of arrivals between two tellings, at most: 4,096 bins of 10 s are of 2.4 ms, an eighth of 20
 * ms. Who promises less has wider ones.
 */
#define SERVED_BINS_MAX 4096

/* One replica that is or was ready. */
struct service_replica {
    int job;
    bool takes;    // requests; false: it drains
    double weight;
    uint64_t route_end;    // of 2^53, its part of the draws ends here
    struct batch_time figures;
    struct any_server server;

    double told_s;    // what follows is since then
    unsigned *counts;
    struct lengths lengths;    // of a language model's requests
    double told_served, told_late, told_batches, told_busy_s;
    double hour_served, hour_late, hour_refused;    // as the hour's sum has them
};

struct service_hour {
    double n_requests, n_late;    // of which some were
    double n_refused, n_lost;
    struct latencies latencies;
};

enum { SERVICE_AHEAD = 256 };    // arrivals that are fetched at once

struct world_service {
    struct world_service_spec ask;
    struct rng routes, tails;
    double first_s, now_s;
    double bin_s, bins_a_s;
    struct llm_request ahead[SERVICE_AHEAD];
    int n_ahead, next_ahead;

    struct service_replica *replicas;    // in the order in which they became ready
    int n_replicas, cap_replicas, n_takers;
    struct llm_request *waiting;    // (cap_waiting) from 'first_waiting' on, for nobody is there
    int first_waiting, n_waiting, cap_waiting;

    int first_hour, n_hours, cap_hours;
    struct service_hour *hours;
    bool is_ended, was_served;    // no more requests come; somebody has taken requests
    double n_arrived;
    int n_starts, n_interruptions;
};

void requests_init(struct world_service *s, const struct world_service_spec *ask, double now_s);
void requests_release(struct world_service *s);

/* Play everything before 'now_s'. Must be up to date when any of the following is called. */
void requests_run(struct world_service *s, double now_s);

/* A replica becomes ready; what has waited goes to it. */
void requests_ready(struct world_service *s, int job, const struct batch_time *figures);

/* The job's replica; NULL: it is not ready, or not any more. */
struct service_replica *requests_find(struct world_service *s, int job);

void requests_set_figures(struct service_replica *r, const struct batch_time *figures);

/* It takes no more requests. */
void requests_drain(struct world_service *s, struct service_replica *r);

/* When to look whether a replica that drains is done, as any_server_done_s has it; its time of now:
 * it is.
 */
double requests_done_s(const struct service_replica *r);

/* It is gone, and what it had: how many requests were lost. */
int requests_lose(struct world_service *s, struct service_replica *r);

/* Weights that were published, of the replicas of these jobs; all others have none. */
void requests_set_weights(struct world_service *s, const int *jobs, const double *weights, int n);

/* What a replica did since it was last told of. Its counts are borrowed until requests_told. */
void requests_tell(const struct world_service *s, const struct service_replica *r,
                   struct served *out);
void requests_told(const struct world_service *s, struct service_replica *r);

/* Hour 'i' of 'n_hours', the present one as far as it is. */
void requests_hour_now(const struct world_service *s, int i, struct service_hour *out);

/* No requests come from now on. */
void requests_end(struct world_service *s);

#endif
