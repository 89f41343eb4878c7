#include "monitor/servers/scrape.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/text/text.h"
#include "monitor/pages/exposition.h"
#include "monitor/replica.h"
#include "monitor/sensor.h"

#define REQUESTS_MAX 1e8    // between two pages
#define TOKENS_MAX 1e8      // of a request

/* ---- one page ---- */

enum part { PART_NONE, PART_VALUE, PART_SUM, PART_COUNT, PART_BUCKET };

/* Which part of a row's figure the sample is. */
static enum part part_of(const struct scrape_row *r, struct slice name)
{
    static const struct {
        const char *suffix;
        enum part part;
    } parts[] = { { "_bucket", PART_BUCKET }, { "_sum", PART_SUM }, { "_count", PART_COUNT } };
    const size_t n = strlen(r->metric);

    if (name.len < n || memcmp(name.at, r->metric, n) != 0)
        return PART_NONE;
    if (r->what < SCRAPE_COUNTS)
        return name.len == n ? PART_VALUE : PART_NONE;
    for (int i = 0; i < 3; i++)
        if (slice_is((struct slice){ name.at + n, name.len - n }, parts[i].suffix))
            return parts[i].part;
    return PART_NONE;
}

/* The row for each thing that is read: the first that the page has; -1: none. False: none at all.
 */
static bool choose_rows(const struct scrape_table *t, struct slice page, int rows[SCRAPE_WHATS])
{
    struct sample s;
    bool has_any = false;

    for (int i = 0; i < SCRAPE_WHATS; i++)
        rows[i] = -1;
    while (exposition_next(&page, &s)) {
        for (int i = 0; i < t->n; i++) {
            int *row = &rows[t->rows[i].what];

            if ((*row >= 0 && *row <= i) || part_of(&t->rows[i], s.name) == PART_NONE)
                continue;
            *row = i;
            has_any = true;
        }
    }
    return has_any;
}

static void add(double *to, double value)
{
    *to = isnan(*to) ? value : *to + value;
}

/* Its upper bound; NaN: it has none. */
static double bound_of(struct slice labels)
{
    struct slice key, value;
    double le;

    while (exposition_label(&labels, &key, &value)) {
        if (!slice_is(key, "le"))
            continue;
        if (slice_is(value, "+Inf"))
            return INFINITY;
        return text_to_double(value, &le) == 0 ? le : (double)NAN;
    }
    return NAN;
}

static void add_bucket(struct scrape_histogram *h, double le, double value)
{
    int i = 0;

    if (isnan(le))
        return;
    while (i < h->n && h->le[i] < le)
        i++;
    if (i < h->n && h->le[i] == le) {
        h->below[i] += value;
        return;
    }
    if (h->n == SCRAPE_BUCKETS_MAX)
        return;
    memmove(h->le + i + 1, h->le + i, (size_t)(h->n - i) * sizeof *h->le);
    memmove(h->below + i + 1, h->below + i, (size_t)(h->n - i) * sizeof *h->below);
    h->le[i] = le;
    h->below[i] = value;
    h->n++;
}

static void take_sample(const struct scrape_row *r, const struct sample *s, struct scrape_page *out)
{
    const enum part part = part_of(r, s->name);

    if (part == PART_NONE || !(s->value >= 0))
        return;
    if (part == PART_VALUE) {
        add(&out->counts[r->what], s->value * r->scale);
        return;
    }
    struct scrape_histogram *h = &out->histograms[r->what - SCRAPE_COUNTS];
    if (part == PART_SUM)
        add(&h->sum, s->value * r->scale);
    else if (part == PART_COUNT)
        add(&h->count, s->value);
    else
        add_bucket(h, bound_of(s->labels) * r->scale, s->value);
}

int scrape_parse(const struct scrape_table *t, const char *text, size_t len,
                 struct scrape_page *out)
{
    struct slice page = { text, len };
    int rows[SCRAPE_WHATS];
    struct sample s;

    for (int i = 0; i < SCRAPE_COUNTS; i++)
        out->counts[i] = NAN;
    for (int i = 0; i < SCRAPE_HISTOGRAMS; i++)
        out->histograms[i] = (struct scrape_histogram){ .sum = NAN, .count = NAN };
    if (!choose_rows(t, page, rows))
        return -ENOENT;
    while (exposition_next(&page, &s))
        for (int i = 0; i < SCRAPE_WHATS; i++)
            if (rows[i] >= 0)
                take_sample(&t->rows[rows[i]], &s, out);
    return 0;
}

/* ---- two pages ---- */

/* A figure that appears with the first request was nothing before. */
static double since(double before, double now)
{
    return isnan(before) ? now : now - before;
}

/* Are there other buckets, or do they fall? */
static bool has_begun_anew(const struct scrape_histogram *a, const struct scrape_histogram *b)
{
    bool is_anew = (a->n > 0 && a->n != b->n) || b->count < a->count || b->sum < a->sum;

    for (int i = 0; i < a->n && !is_anew; i++)
        is_anew = a->le[i] != b->le[i] || b->below[i] < a->below[i];
    return is_anew;
}

static void subtract(const struct scrape_histogram *before, struct scrape_histogram *h)
{
    h->sum = since(before->sum, h->sum);
    h->count = since(before->count, h->count);
    for (int i = 0; i < before->n; i++)
        h->below[i] -= before->below[i];
}

/* The share at or below 'at', evenly spread inside a bucket; NaN: not known. */
static double share_below(const struct scrape_histogram *h, double at)
{
    double from = 0, before = 0;

    if (h->n == 0 || !(h->count > 0))
        return NAN;
    for (int i = 0; i < h->n; i++) {
        if (at >= h->le[i]) {
            from = h->le[i];
            before = h->below[i];
            continue;
        }
        const double part = isinf(h->le[i]) ? 0 : (at - from) / (h->le[i] - from);
        return fmin((before + part * (h->below[i] - before)) / h->count, 1);
    }
    return fmin(before / h->count, 1);
}

static double late_share(const struct scrape_histogram *h, double promise_s)
{
    return promise_s > 0 ? 1 - share_below(h, promise_s) : (double)NAN;
}

/* Late is who breaks any promise: of several, the worse, since a page does not say who broke both.
 */
static double count_late(const struct scrape_histogram *h, const struct scrape_promise *p,
                         double n_requests)
{
    const double e2e = late_share(&h[SCRAPE_E2E - SCRAPE_COUNTS], p->latency_s);
    const double ttft = late_share(&h[SCRAPE_TTFT - SCRAPE_COUNTS], p->ttft_s);
    const double tpot = late_share(&h[SCRAPE_TPOT - SCRAPE_COUNTS], p->tpot_s);

    if (n_requests == 0)
        return p->latency_s > 0 || p->ttft_s > 0 || p->tpot_s > 0 ? 0 : (double)NAN;
    return n_requests * fmax(fmax(e2e, ttft), tpot);
}

static double count_open(const struct scrape_page *p)
{
    const double running = p->counts[SCRAPE_RUNNING], waiting = p->counts[SCRAPE_WAITING];

    return isnan(running) ? waiting : isnan(waiting) ? running : running + waiting;
}

/* Tokens of requests, evenly spread inside a bucket; beyond the last bound, at that bound. False:
 * there are none, or more than can be.
 */
static bool read_lengths(const struct scrape_histogram *h, unsigned *out)
{
    enum { PARTS = 16 };    // of a bucket: those of vLLM are up to 2.5 times as wide as ours
    double from = 0, before = 0;

    if (h->n == 0 || !(h->count > 0 && h->count < REQUESTS_MAX))
        return false;
    for (int i = 0; i < h->n; i++) {
        const double n = fmin(fmax(h->below[i] - before, 0), REQUESTS_MAX);
        const double wide = isinf(h->le[i]) ? 0 : fmax(h->le[i] - from, 0);

        for (int k = 0; k < PARTS; k++)
            lengths_add_many(out, (int)fmin(from + wide * (k + 0.5) / PARTS, TOKENS_MAX),
                             (unsigned)(floor(n * (k + 1) / PARTS) - floor(n * k / PARTS)));
        from += wide;
        before = h->below[i];
    }
    return true;
}

void scrape_between(const struct scrape_page *before, double from_s, const struct scrape_page *now,
                    double to_s, const struct scrape_promise *p, struct served *out)
{
    struct scrape_histogram h[SCRAPE_HISTOGRAMS] = { 0 };
    double n[SCRAPE_COUNTS];

    *out = (struct served){ .is_ready = true, .from_s = from_s, .to_s = to_s };
    for (int i = 0; i < SCRAPE_COUNTS; i++) {
        n[i] = since(before->counts[i], now->counts[i]);
        out->is_false |= i != SCRAPE_RUNNING && i != SCRAPE_WAITING && n[i] < 0;
    }
    for (int i = 0; i < SCRAPE_HISTOGRAMS; i++) {
        h[i] = now->histograms[i];
        if (has_begun_anew(&before->histograms[i], &h[i]))
            out->is_false = true;
        else
            subtract(&before->histograms[i], &h[i]);
    }
    out->has_lengths = read_lengths(&h[SCRAPE_PROMPT - SCRAPE_COUNTS], out->lengths.prompt) &&
                       read_lengths(&h[SCRAPE_OUTPUT - SCRAPE_COUNTS], out->lengths.output);
    out->n_requests = n[SCRAPE_REQUESTS];
    out->n_late = count_late(h, p, out->n_requests);
    out->n_batches = n[SCRAPE_BATCHES];
    out->busy_s = out->n_requests > 0 ? n[SCRAPE_COMPUTE] * out->n_batches / out->n_requests
                                      : n[SCRAPE_COMPUTE];
    out->n_queued = count_open(now);
    served_check(out, to_s - from_s);
}
