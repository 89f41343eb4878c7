/* continuous.h - a server of a language model: requests join and leave a running batch.
 *
 * A step takes t0 + a*running + c*prompt tokens seconds: each running request gets a token, and
 * prompts that wait are read in their order, CONTINUOUS_CHUNK tokens a step at most. A request is
 * late where its first token comes after 'ttft_s', or its others took more than 'tpot_s' each, on
 * average. The simulator owns one per replica; the tables of capacity replay with it.
 */
#ifndef SERVE_CONTINUOUS_H
#define SERVE_CONTINUOUS_H

#include <stdbool.h>

#include "serve/batching.h"

enum { CONTINUOUS_CHUNK = 2048, CONTINUOUS_QUEUE_MAX = 1 << 20 };

/* Tokens of a request where nobody has told any. */
enum { LLM_PROMPT_USUAL = 2048, LLM_OUTPUT_USUAL = 256 };

struct llm_request {
    double at_s;
    int prompt, output;    // tokens, at least 1 each
};

struct continuous_run;    // one that is running

struct continuous_server {
    double t0_s, a_s, c_s;    // may be changed at any time; the step under way keeps its own
    int max_running;
    double ttft_s, tpot_s;
    bool is_draining;

    double now_s, free_s;
    double step_end_s;    // of the step under way; INFINITY: none
    double counted_s;     // until here it is in busy_s
    long n_steps;         // done; a running request ends with a step that is known beforehand
    struct llm_request *queue;    // (cap) ring
    int first, n_queue, cap;
    int n_read;     // prompt tokens of the first of the queue that were read before this step
    int n_first;    // requests, first of the queue, whose prompts are read with this step
    int n_part;     // tokens of the one behind them that are read with it
    struct continuous_run *runs;    // (max_running) heap: what ends first
    int n_runs;

    double n_arrived, n_served, n_late, busy_s, n_tokens, n_refused;
    struct latencies ttft, tpot;
};

void continuous_server_init(struct continuous_server *s, double t0_s, double a_s, double c_s,
                            int max_running, double ttft_s, double tpot_s, double now_s);
void continuous_server_release(struct continuous_server *s);
void continuous_server_advance(struct continuous_server *s, double now_s);
bool continuous_server_arrive(struct continuous_server *s, const struct llm_request *r);

/* All that it has leaves unserved, and counts as late: how many. */
int continuous_server_abandon(struct continuous_server *s);

/* When it may have answered all at the earliest, were its times to stay and nobody to come; its
 * time of now: it has.
 */
double continuous_server_look_s(const struct continuous_server *s);

/* How many of 'n' requests in order of time are late; beyond 'enough' it may stop counting. 'like'
 * has the costs, cap and promise; its times are multiplied by 'f', arrivals by 'stretch'.
 */
int continuous_late(const struct llm_request *r, int n, const struct continuous_server *like,
                    double f, double stretch, int enough);

#endif
