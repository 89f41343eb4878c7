/* arrivals.h - the requests of a trace's service, one after another.
 *
 * Made for the world (world_service_spec), which asks for times as it goes; lives in the caller's
 * arena. Depends on the service's line alone, so that every policy meets the same requests.
 */
#ifndef SIM_TRACE_ARRIVALS_H
#define SIM_TRACE_ARRIVALS_H

struct arena;
struct err;
struct service_arrivals;
struct trace_service;

/* -Exxx: its file cannot be read, or is no list of times in order. */
int service_arrivals_open(struct arena *a, const struct trace_service *s,
                          struct service_arrivals **out, struct err *e);

/* The next times, at most 'n', in order, from the trace's beginning: how many; 0: no more come.
 * 'self' is a struct service_arrivals.
 */
int service_arrivals_next(void *self, double *at_s, int n);

/* The mean rate at a time, requests/s, as somebody knows it who knows all but chance. */
double service_arrivals_rate(const struct service_arrivals *r, double at_s);

#endif
