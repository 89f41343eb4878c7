#include "sim/trace/arrivals.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text/file.h"
#include "base/text/text.h"
#include "serve/traffic.h"
#include "sim/trace/trace.h"

#define FILE_MAX ((size_t)1 << 30)    // some 60 million times
#define DIURNAL_PEAK_H 14

struct service_arrivals {
    const struct trace_service *service;
    double end_s;
    struct traffic traffic;
    bool is_listed;
    int n, next;
    double *at_s;    // (n) of a file
};

static struct traffic_spec spec_of(const struct trace_service *s)
{
    struct traffic_spec spec = { .rate = s->rate, .clump = 1, .spell = 1, .client_clump = 1 };
    struct rng r;

    if (strcmp(s->traffic, "diurnal") == 0) {
        spec.day = 0.5;
        spec.peak_h = DIURNAL_PEAK_H;
    } else if (strcmp(s->traffic, "drawn") == 0) {
        rng_init(&r, (uint64_t)s->seed, "traffic of a service");
        spec = traffic_draw(&r, s->rate);
    }
    return spec;
}

/* One time a line, in order, from the service's beginning. */
static int read_times(struct arena *a, struct service_arrivals *r, struct err *e)
{
    const char *path = r->service->arrivals, *text;
    double last_s = 0;
    size_t len;
    int cap = 0, line = 0, rc = file_read_text(a, path, NULL, FILE_MAX, &text, &len, e);
    struct slice one;

    while (rc == 0 && slice_next(&text, '\n', &one)) {
        double at_s;

        line++;
        if (one.len == 0)
            continue;
        if (text_to_double(one, &at_s) < 0 || at_s < last_s || at_s > 1e12)
            return err_set(e, EINVAL,
                           "%s:%d: want a time in seconds, not before the one above it", path,
                           line);
        ARENA_GROW(a, r->at_s, r->n, cap);
        r->at_s[r->n++] = r->service->at_s + at_s;
        last_s = at_s;
    }
    return rc;
}

int service_arrivals_open(struct arena *a, const struct trace_service *s,
                          struct service_arrivals **out, struct err *e)
{
    struct service_arrivals *r = ARENA_ARRAY(a, struct service_arrivals, 1);

    *out = r;
    r->service = s;
    r->end_s = isnan(s->end_s) ? (double)INFINITY : s->end_s;
    r->is_listed = s->arrivals != NULL;
    if (r->is_listed)
        return read_times(a, r, e);
    const struct traffic_spec spec = spec_of(s);
    traffic_init(&r->traffic, &spec, (uint64_t)s->seed);
    return 0;
}

int service_arrivals_next(void *self, double *at_s, int n)
{
    struct service_arrivals *r = self;
    int got = 0;

    while (got < n) {
        if (r->is_listed && r->next == r->n)
            break;
        const double t_s = r->is_listed ? r->at_s[r->next++] : traffic_next(&r->traffic);
        if (t_s >= r->end_s) {
            r->is_listed = true;    // and nothing is left of it
            r->next = r->n;
            break;
        }
        if (t_s >= r->service->at_s)
            at_s[got++] = t_s;
    }
    return got;
}

double service_arrivals_rate(const struct service_arrivals *r, double at_s)
{
    return r->service->arrivals != NULL ? r->service->rate : traffic_rate(&r->traffic, at_s);
}
