/* What arrived at services, on its way to a store and back. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/text/buf.h"
#include "catalog/cluster/ledger.h"
#include "cycle/inner.h"
#include "cycle/services_inner.h"

/* A row at most: an hour is ARRIVALS_HOUR_MAX and a head, a week of counts 8 kB. */
#define ROW_MAX (2 * ARRIVALS_HOUR_MAX)

double services_unsaved_s(struct cycle *c, int *service)
{
    const struct state *st = &c->ledger->state;
    double first_s = NAN;

    services_meet(c);
    for (int i = 0; i < c->services->n; i++) {
        const struct service_record *r = &c->services->records[i];
        double saved_s = isnan(r->saved_s) ? 0 : r->saved_s;
        if (job_is_over(st->jobs[r->id]) || isnan(r->heard_s) || saved_s > r->heard_s)
            continue;
        if (isnan(first_s) || saved_s < first_s) {
            first_s = saved_s;
            *service = r->id;
        }
    }
    return first_s;
}

/* Hours that are over and were not written since; what is on disk of older ones stays as it is. */
static int save_hours(struct service_record *r, struct buf *row, services_row_f *f, void *self,
                      struct err *e)
{
    int n = arrivals_n_hours(r->arrivals), rc = 0;

    for (int i = 0; i < n && rc == 0; i++) {
        const double from_s = arrivals_hour(r->arrivals, i).from_s;
        if (from_s < r->saved_hour_s)
            break;
        buf_clear(row);
        rc = arrivals_save(r->arrivals, i, row);
        if (rc == 0 && row->len > 0)
            rc = f(self, r->id, (int64_t)from_s, row->data, row->len, e);
    }
    return rc;
}

int services_save(struct cycle *c, int service, services_row_f *f, void *self, struct err *e)
{
    struct service_record *r = services_record(c, service);
    double now_s = clock_now_s(&c->clock), hour_s = 3600 * floor(now_s / 3600);
    struct buf row;

    buf_init(&row, ROW_MAX);
    arrivals_advance(r->arrivals, now_s);
    int rc = save_hours(r, &row, f, self, e);
    buf_clear(&row);
    if (rc == 0)
        rc = arrivals_save_newest(r->arrivals, &row);
    if (rc == 0 && row.len > 0)
        rc = f(self, service, (int64_t)hour_s, row.data, row.len, e);
    if (rc == 0)
        rc = f(self, service, SERVICES_WEEK, &r->demand, sizeof r->demand, e);
    if (rc == 0) {
        r->saved_s = now_s;
        r->saved_hour_s = hour_s - 3600;    // the one before may still get some
    }
    buf_release(&row);
    return rc;
}

int services_load(struct cycle *c, int service, int64_t hour_s, const void *bytes, size_t len,
                  struct err *e)
{
    services_meet(c);
    struct service_record *r = services_record(c, service);
    if (!r)
        return err_set(e, ENOENT, "arrivals of service %d, which is not there", service);
    if (hour_s != SERVICES_WEEK)
        return arrivals_load(r->arrivals, bytes, len, e);
    if (len != sizeof r->demand)
        return err_set(e, EINVAL, "the week of service %d is of another version: begun anew",
                       service);
    memcpy(&r->demand, bytes, len);
    return 0;
}
