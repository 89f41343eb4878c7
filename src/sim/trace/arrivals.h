/* arrivals.h - the requests of a trace's service, one after another.
 *
 * Made for the world (world_service_spec), which asks for requests as it goes; lives in the
 * caller's arena. Depends on the service's line alone, so that every policy meets the same
 * requests.
 */
#ifndef SIM_TRACE_ARRIVALS_H
#define SIM_TRACE_ARRIVALS_H

struct arena;
struct err;
struct llm_request;
struct service_arrivals;
struct trace_service;

/* A file that it names is looked for from the folder of 'trace' on, the trace's own name. -Exxx: it
 * cannot be read, or is no list of requests in order.
 */
int service_arrivals_open(struct arena *a, const char *trace, const struct trace_service *s,
                          struct service_arrivals **out, struct err *e);

/* The next ones, at most 'n', in order, their times from the trace's beginning: how many; 0: no
 * more come. Where nobody says how long they are, LLM_PROMPT_USUAL and LLM_OUTPUT_USUAL tokens.
 * 'self' is a struct service_arrivals.
 */
int service_arrivals_next(void *self, struct llm_request *out, int n);

/* When no more come, where that is known: right behind the last of a file, or as the line says. */
double service_arrivals_end_s(const struct service_arrivals *r);    // INFINITY: never

#endif
