/* table.h - a service's table of capacity, built where nobody waits for it.
 *
 * Made on the owner's thread from what arrived (bytes are copied), built by any other one, read by
 * the owner again: services_table_begin and _end of cycle/services.h.
 */
#ifndef CYCLE_TABLE_H
#define CYCLE_TABLE_H

#include "base/text/buf.h"
#include "serve/capacity.h"

struct table_build {
    int service;
    double bin_s;
    struct serving spec;
    struct serving_metrics metrics;    // for want of arrivals; its rate is 0: there are none, too
    int n_hours;
    struct buf hours[ARRIVALS_HOURS];    // as arrivals_save writes them
    struct capacity result;
};

struct table_build *table_build_create(int service, const struct arrivals *a, double bin_s,
                                       const struct serving *spec, const struct serving_metrics *m);
void table_build_destroy(struct table_build *b);    // NULL is fine

/* Up to a second of a core. */
void table_build_run(struct table_build *b);

/* The same at once: by what arrived, else by metrics (where replicas tell no bins nothing has,
 * however much they serve), else by the careful rule.
 */
void table_make(struct capacity *out, const struct arrivals *a, const struct serving *spec,
                const struct serving_metrics *m);

#endif
