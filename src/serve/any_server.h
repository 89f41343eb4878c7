/* any_server.h - one replica's server, of either kind: batches, or the running batch of a language
 * model.
 *
 * For whoever plays services request by request and does not ask which kind it is: the simulator,
 * which owns one per replica. Times are as in serve/batching.h and serve/continuous.h.
 */
#ifndef SERVE_ANY_SERVER_H
#define SERVE_ANY_SERVER_H

#include <stdbool.h>

#include "serve/batching.h"
#include "serve/continuous.h"

/* What it promises, and how many it answers at once. */
struct server_terms {
    double latency_s;    // of a language model: to the first token
    double tpot_s;       // and for each further one; 0: it is no language model
    int max_batch;
};

struct server_times {
    double t0_s, a_s;
    double c_s;    // for each token of a prompt; language models only
};

struct any_server {
    bool is_llm;
    union {
        struct batch_server batch;
        struct continuous_server continuous;
    };
};

/* 'now_s': requests come from then on; 'free_s': and are answered from then on. */
void any_server_init(struct any_server *s, const struct server_terms *terms,
                     const struct server_times *t, double now_s, double free_s);
void any_server_release(struct any_server *s);

/* From the batch or step on that begins next. */
void any_server_set_times(struct any_server *s, const struct server_times *t);

void any_server_advance(struct any_server *s, double now_s);
bool any_server_arrive(struct any_server *s, const struct llm_request *r);    // false: refused
void any_server_drain(struct any_server *s);    // it takes no more requests

/* All that it has leaves unserved: how many. They are in no sum. */
int any_server_abandon(struct any_server *s);

/* When to look whether one that drains has answered all, with step times 'longest' times as long as
 * they are: of batches the latest time at which it has, of a language model no later than that.
 * Its time of now: it has.
 */
double any_server_done_s(const struct any_server *s, const struct server_times *t, double longest);

/* Since any_server_init. */
struct server_sums {
    double n_served, n_late, n_refused;
    double n_batches;    // NaN: a language model's steps are no batches of requests
    double busy_s;
    int n_open;    // now: that wait or are worked on
};
struct server_sums any_server_sums(const struct any_server *s);

/* How long they took, of a language model to the first token; may be zeroed. */
struct latencies *any_server_latencies(struct any_server *s);

#endif
