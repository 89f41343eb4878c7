/* place.h - what a place holds for a service: by what is believed of step times there.
 *
 * Asked by whoever plans for services (lower_services.c) and by whoever shares requests out
 * (cycle/services.c): the same answer for both.
 */
#ifndef OPTIMIZE_MODEL_PLACE_H
#define OPTIMIZE_MODEL_PLACE_H

struct estimator;
struct service_view;

/* Requests/s of a workload on a GPU type beside another ('neighbour' -1: alone), by cautious step
 * times; 0: none, or the neighbour is a danger to the tail.
 */
double place_capacity(const struct estimator *e, const struct service_view *v, int workload,
                      int type, int neighbour);

/* What is counted on where no place holds anything for sure, so that there is one replica to serve
 * and to learn from: next to nothing, most where a request is answered soonest.
 */
double place_trial(const struct estimator *e, const struct service_view *v, int workload, int type);

/* The part of the time in which a replica is at work that is sent 'rate' requests/s. */
double place_busy(const struct estimator *e, const struct service_view *v, int workload, int type,
                  double rate);

#endif
