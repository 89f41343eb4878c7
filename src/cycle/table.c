#include "cycle/table.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/grow.h"
#include "base/log.h"

struct table_build *table_build_create(int service, const struct arrivals *a, double bin_s,
                                       const struct serving *spec, const struct serving_metrics *m)
{
    struct table_build *b = heap_array(1, sizeof *b);
    int n = arrivals_n_hours(a);

    b->service = service;
    b->bin_s = bin_s;
    b->spec = *spec;
    b->metrics = *m;
    for (int i = 0; i < n && i < ARRIVALS_HOURS; i++) {
        buf_init(&b->hours[b->n_hours], 2 * ARRIVALS_HOUR_MAX);
        if (arrivals_save(a, i, &b->hours[b->n_hours++]) < 0)
            log_warn("service %d: an hour of arrivals is too long to be replayed", service);
    }
    return b;
}

void table_build_destroy(struct table_build *b)
{
    for (int i = 0; b && i < b->n_hours; i++)
        buf_release(&b->hours[i]);
    free(b);
}

void table_build_run(struct table_build *b)
{
    struct arrivals *a = arrivals_create(b->bin_s);
    struct err e = { 0 };

    for (int i = b->n_hours - 1; i >= 0; i--)
        if (b->hours[i].len > 0 && arrivals_load(a, b->hours[i].data, b->hours[i].len, &e) < 0)
            log_warn("service %d: %s", b->service, e.text);
    table_make(&b->result, a, &b->spec, &b->metrics);
    arrivals_destroy(a);
}

void table_make(struct capacity *out, const struct arrivals *a, const struct serving *spec,
                const struct serving_metrics *m)
{
    if (m->rate > 0 && arrivals_n_hours(a) == 0)
        capacity_from_metrics(out, spec, m);
    else
        capacity_build(out, a, spec);
}
