/* arrivals.c - what arrived at a service: counts in narrow bins, by hour, of the last 24 hours. */
#include "serve/arrivals.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/grow.h"
#include "base/text/buf.h"

#define HOUR_S 3600.0
#define AHEAD_S 60.0    // clocks of nodes may differ so much

enum { N_OPEN = 2, N_SLICES = 4, VERSION = 1 };

/* An hour to which counts are added. */
struct open_hour {
    long hour;          // since the epoch; -1: none
    uint16_t *count;    // (n_bins)
    double n;
    struct lengths lengths;
};

/* An hour that is over, as tokens: a byte below 128 is a gap of up to 15 empty bins in front of a
 * bin of 1 to 8; 128 is followed by gap and count as varints.
 */
struct sealed_hour {
    long hour;
    int n_covered;    // bins that it speaks of
    double n;
    struct lengths lengths;
    unsigned char *bytes;
    size_t len;
};

struct arrivals {
    double bin_s;
    int n_bins;                                   // of an hour
    struct open_hour open[N_OPEN];                // by hour modulo N_OPEN
    long newest;                                  // hour; -1: none yet
    struct sealed_hour sealed[ARRIVALS_HOURS];    // the latest first
    int n_sealed;
};

double arrivals_bin_s(double latency_s)
{
    return fmin(fmax(latency_s / 8, 0.001), 60);
}

struct arrivals *arrivals_create(double bin_s)
{
    struct arrivals *a = heap_array(1, sizeof *a);

    assert(bin_s >= 0.0009 && bin_s <= HOUR_S);
    a->bin_s = bin_s;
    a->n_bins = (int)ceil(HOUR_S / bin_s);
    a->newest = -1;
    for (int i = 0; i < N_OPEN; i++) {
        a->open[i].hour = -1;
        a->open[i].count = heap_array((size_t)a->n_bins, sizeof *a->open[i].count);
    }
    return a;
}

void arrivals_destroy(struct arrivals *a)
{
    if (!a)
        return;
    for (int i = 0; i < N_OPEN; i++)
        free(a->open[i].count);
    for (int i = 0; i < a->n_sealed; i++)
        free(a->sealed[i].bytes);
    free(a);
}

/* ---- tokens ---- */

struct packer {
    unsigned char *bytes;
    size_t len, cap;
};

static bool put(struct packer *p, unsigned v)
{
    if (p->len == ARRIVALS_HOUR_MAX)
        return false;
    if (p->len == p->cap) {
        p->cap = p->cap ? 2 * p->cap : 256;
        RESIZE(p->bytes, p->cap);
    }
    p->bytes[p->len++] = (unsigned char)v;
    return true;
}

static bool put_varint(struct packer *p, uint64_t v)
{
    for (; v >= 128; v >>= 7)
        if (!put(p, 128 | (unsigned)(v & 127)))
            return false;
    return put(p, (unsigned)v);
}

static bool put_bin(struct packer *p, int gap, unsigned count)
{
    if (gap < 16 && count <= 8)
        return put(p, (unsigned)gap << 3 | (count - 1));
    return put(p, 128) && put_varint(p, (uint64_t)gap) && put_varint(p, count);
}

struct reader {
    const unsigned char *at, *end;
    int bin;    // of the token last read; -1: none yet
    unsigned count;
};

static bool get_varint(struct reader *r, uint64_t *v)
{
    *v = 0;
    for (int shift = 0; r->at < r->end && shift < 63; shift += 7) {
        const unsigned byte = *r->at++;

        *v |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return true;
    }
    return false;
}

/* The next bin that is not empty: 1, 0 at the end, -1 where the bytes make no sense. */
static int get_bin(struct reader *r, int n_bins)
{
    uint64_t gap, count;

    if (r->at == r->end)
        return 0;
    const unsigned byte = *r->at++;
    if (byte < 128) {
        gap = byte >> 3;
        count = (byte & 7) + 1;
    } else if (byte != 128 || !get_varint(r, &gap) || !get_varint(r, &count)) {
        return -1;
    }
    if (gap >= (uint64_t)(n_bins - 1 - r->bin) || count < 1 || count > ARRIVALS_COUNT_MAX)
        return -1;
    r->bin += 1 + (int)gap;
    r->count = (unsigned)count;
    return 1;
}

/* ---- hours ---- */

static struct sealed_hour seal(const struct arrivals *a, const struct open_hour *o)
{
    struct sealed_hour s = { .hour = o->hour, .n_covered = a->n_bins, .lengths = o->lengths };
    struct packer p = { 0 };
    int last = -1;

    for (int i = 0; i < a->n_bins; i++) {
        if (!o->count[i])
            continue;
        const size_t before = p.len;
        if (!put_bin(&p, i - last - 1, o->count[i])) {
            p.len = before;
            s.n_covered = last + 1;
            break;
        }
        s.n += o->count[i];
        last = i;
    }
    s.bytes = p.bytes;
    s.len = p.len;
    return s;
}

/* Put 's' where it belongs; what it replaces, and what is too old, is let go. */
static void keep(struct arrivals *a, struct sealed_hour s)
{
    int at = 0;

    while (at < a->n_sealed && a->sealed[at].hour > s.hour)
        at++;
    if (at < a->n_sealed && a->sealed[at].hour == s.hour) {
        free(a->sealed[at].bytes);
    } else if (at == ARRIVALS_HOURS) {
        free(s.bytes);
        return;
    } else {
        if (a->n_sealed == ARRIVALS_HOURS)
            free(a->sealed[--a->n_sealed].bytes);
        memmove(&a->sealed[at + 1], &a->sealed[at],
                (size_t)(a->n_sealed++ - at) * sizeof *a->sealed);
    }
    a->sealed[at] = s;
}

static void forget(struct arrivals *a)
{
    while (a->n_sealed && a->sealed[a->n_sealed - 1].hour < a->newest - ARRIVALS_HOURS)
        free(a->sealed[--a->n_sealed].bytes);
}

/* After a restart an hour may have been loaded that is not over. */
static void unseal(struct arrivals *a, struct open_hour *o)
{
    int at = 0;

    while (at < a->n_sealed && a->sealed[at].hour != o->hour)
        at++;
    if (at == a->n_sealed)
        return;
    const struct sealed_hour s = a->sealed[at];
    struct reader r = { s.bytes, s.bytes + s.len, -1, 0 };
    while (get_bin(&r, a->n_bins) > 0)
        o->count[r.bin] = (uint16_t)r.count;
    o->n = s.n;
    o->lengths = s.lengths;
    free(s.bytes);
    memmove(&a->sealed[at], &a->sealed[at + 1], (size_t)(--a->n_sealed - at) * sizeof *a->sealed);
}

static void open_hour(struct arrivals *a, long hour)
{
    struct open_hour *o = &a->open[hour % N_OPEN];

    if (o->hour == hour)
        return;
    if (o->hour >= 0 && o->n > 0)
        keep(a, seal(a, o));
    memset(o->count, 0, (size_t)a->n_bins * sizeof *o->count);
    o->hour = hour;
    o->n = 0;
    o->lengths = (struct lengths){ 0 };
    unseal(a, o);
}

void arrivals_advance(struct arrivals *a, double now_s)
{
    const long hour = (long)(fmin(fmax(now_s, 0), 1e15) / HOUR_S);

    if (hour <= a->newest)
        return;
    open_hour(a, hour > 0 ? hour - 1 : 0);
    open_hour(a, hour);
    a->newest = hour;
    forget(a);
}

/* ---- adding ---- */

/* 'n' arrivals, evenly from 'from_s' to 'to_s', as far as they fall into 'o'. */
static double spread(const struct arrivals *a, struct open_hour *o, double from_s, double to_s,
                     double n)
{
    const double begin_s = HOUR_S * (double)o->hour, width_s = to_s - from_s;
    double taken = 0;
    int i = (int)(fmin(fmax((from_s - begin_s) / a->bin_s, 0), a->n_bins));

    for (; i < a->n_bins; i++) {
        const double low_s = begin_s + i * a->bin_s;
        const double high_s = i + 1 < a->n_bins ? low_s + a->bin_s : begin_s + HOUR_S;
        const double low = fmax((low_s - from_s) / width_s, 0);
        const double high = fmin((high_s - from_s) / width_s, 1);

        if (low_s >= to_s)
            break;
        double k = high > low ? floor(n * high + 0.5) - floor(n * low + 0.5) : 0;
        k = fmin(k, ARRIVALS_COUNT_MAX - o->count[i]);
        o->count[i] = (uint16_t)(o->count[i] + (unsigned)k);
        taken += k;
    }
    o->n += taken;
    return taken;
}

double arrivals_add(struct arrivals *a, double now_s, double from_s, double bin_s, int n,
                    const unsigned *counts)
{
    double taken = 0;

    if (!(bin_s > 1e-6 && bin_s <= HOUR_S) || !isfinite(from_s) || !isfinite(now_s))
        return 0;
    arrivals_advance(a, now_s);
    for (int i = 0; i < n; i++) {
        const double low_s = from_s + i * bin_s, high_s = low_s + bin_s;

        if (!counts[i] || high_s > now_s + AHEAD_S)
            continue;
        if (high_s > HOUR_S * (double)(a->newest + 1))    // the clock ahead of us
            arrivals_advance(a, high_s);
        for (int k = 0; k < N_OPEN; k++)
            if (a->open[k].hour >= 0)
                taken += spread(a, &a->open[k], low_s, high_s, counts[i]);
    }
    return taken;
}

void lengths_add_many(unsigned *histogram, int tokens, unsigned n)
{
    const double b = tokens > 1 ? floor(2 * log2(tokens) + 1e-9) : 0;

    histogram[(int)fmin(b, LENGTH_BUCKETS - 1)] += n;
}

void lengths_add(unsigned *histogram, int tokens)
{
    lengths_add_many(histogram, tokens, 1);
}

void lengths_join(struct lengths *l, const struct lengths *more)
{
    for (int i = 0; i < LENGTH_BUCKETS; i++) {
        l->prompt[i] += more->prompt[i];
        l->output[i] += more->output[i];
    }
}

void arrivals_add_lengths(struct arrivals *a, double at_s, const struct lengths *more)
{
    for (int k = 0; k < N_OPEN; k++) {
        struct open_hour *o = &a->open[k];

        if (o->hour >= 0 && floor(at_s / HOUR_S) == (double)o->hour)
            lengths_join(&o->lengths, more);
    }
}

int lengths_quantile(const unsigned *histogram, double q)
{
    double total = 0;

    for (int i = 0; i < LENGTH_BUCKETS; i++)
        total += histogram[i];
    double want = q * total;
    for (int i = 0; i < LENGTH_BUCKETS && total > 0; i++) {
        if (histogram[i] && want <= histogram[i])    // evenly over the logarithm within a bucket
            return (int)fmax(exp2((i + fmax(want, 0) / histogram[i]) / 2), 1);
        want -= histogram[i];
    }
    return 1;
}

double lengths_mean(const unsigned *histogram)
{
    double n = 0, sum = 0;

    for (int i = 0; i < LENGTH_BUCKETS; i++) {
        n += histogram[i];
        sum += histogram[i] * exp2((i + 0.5) / 2);
    }
    return n > 0 ? sum / n : 1;
}

/* ---- reading ---- */

/* The hour before the newest is open and over; it comes first. */
static const struct open_hour *open_and_over(const struct arrivals *a)
{
    if (a->newest < 1)
        return NULL;
    const struct open_hour *o = &a->open[(a->newest - 1) % N_OPEN];
    return o->hour == a->newest - 1 && o->n > 0 ? o : NULL;
}

int arrivals_n_hours(const struct arrivals *a)
{
    return a->n_sealed + (open_and_over(a) != NULL);
}

/* Hour 'i', sealed for the occasion where it is not: then bytes are the caller's. */
static struct sealed_hour look(const struct arrivals *a, int i, bool *is_mine)
{
    const struct open_hour *o = open_and_over(a);

    assert(i >= 0 && i < arrivals_n_hours(a));
    *is_mine = o && i == 0;
    return *is_mine ? seal(a, o) : a->sealed[i - (o != NULL)];
}

static double span_s(const struct arrivals *a, const struct sealed_hour *s)
{
    return fmin(s->n_covered * a->bin_s, HOUR_S);
}

struct arrivals_hour arrivals_hour(const struct arrivals *a, int i)
{
    bool is_mine;
    const struct sealed_hour s = look(a, i, &is_mine);
    const struct arrivals_hour h = { HOUR_S * (double)s.hour, span_s(a, &s),
                                     (unsigned)fmin(s.n, UINT32_MAX), s.lengths };

    if (is_mine)
        free(s.bytes);
    return h;
}

int arrivals_expand(const struct arrivals *a, int i, double *at_s, int max, double *out_span_s)
{
    bool is_mine;
    const struct sealed_hour s = look(a, i, &is_mine);
    struct reader r = { s.bytes, s.bytes + s.len, -1, 0 };
    const double all_s = span_s(a, &s), period_s = all_s / N_SLICES;
    const double kept_s = s.n > max ? period_s * max / s.n : period_s;
    int n = 0;

    while (get_bin(&r, a->n_bins) > 0)
        for (unsigned k = 0; k < r.count && n < max; k++) {
            const double t = fmin((r.bin + (k + 0.5) / r.count) * a->bin_s, all_s);
            const double slice = fmin(floor(t / period_s), N_SLICES - 1);
            const double within_s = t - slice * period_s;

            if (within_s <= kept_s)
                at_s[n++] = slice * kept_s + within_s;
        }
    *out_span_s = N_SLICES * kept_s;
    if (is_mine)
        free(s.bytes);
    return n;
}

int arrivals_recent(const struct arrivals *a, double from_s, double to_s, double *at_s, int max)
{
    int n = 0;

    for (long hour = a->newest - N_OPEN + 1; hour <= a->newest; hour++) {
        const struct open_hour *o = hour >= 0 ? &a->open[hour % N_OPEN] : NULL;

        if (!o || o->hour != hour)
            continue;
        const double begin_s = HOUR_S * (double)hour;
        const int low = (int)fmin(fmax(floor((from_s - begin_s) / a->bin_s), 0), a->n_bins);
        const int high = (int)fmin(fmax(ceil((to_s - begin_s) / a->bin_s), 0), a->n_bins);
        for (int i = low; i < high; i++)
            for (unsigned k = 0; k < o->count[i] && n < INT32_MAX; k++) {
                const double t = begin_s + (i + (k + 0.5) / o->count[i]) * a->bin_s;

                if (t < from_s || t >= to_s)
                    continue;
                if (at_s && n < max)
                    at_s[n] = t - from_s;
                n++;
            }
    }
    return n;
}

/* ---- bytes ---- */

static int save(const struct arrivals *a, struct sealed_hour s, struct buf *out)
{
    const unsigned *lengths = (const unsigned *)&s.lengths;    // prompts, then outputs
    struct packer p = { 0 };
    bool has_lengths = false;

    for (int k = 0; k < 2 * LENGTH_BUCKETS; k++)
        has_lengths |= lengths[k] != 0;
    put(&p, VERSION);
    put_varint(&p, (uint64_t)llround(a->bin_s * 1e9));
    put_varint(&p, (uint64_t)s.hour);
    put_varint(&p, (uint64_t)s.n_covered);
    put(&p, has_lengths);
    for (int k = 0; k < 2 * LENGTH_BUCKETS && has_lengths; k++)
        put_varint(&p, lengths[k]);
    int rc = buf_append(out, p.bytes, p.len);
    if (rc == 0)
        rc = buf_append(out, s.bytes, s.len);
    free(p.bytes);
    return rc;
}

int arrivals_save(const struct arrivals *a, int i, struct buf *out)
{
    bool is_mine;
    const struct sealed_hour s = look(a, i, &is_mine);
    const int rc = save(a, s, out);

    if (is_mine)
        free(s.bytes);
    return rc;
}

int arrivals_save_newest(const struct arrivals *a, struct buf *out)
{
    if (a->newest < 0)
        return 0;
    const struct sealed_hour s = seal(a, &a->open[a->newest % N_OPEN]);
    const int rc = save(a, s, out);
    free(s.bytes);
    return rc;
}

/* What stands in front of the tokens; 'bin_s' and 'n_bins' are of that time. */
static int read_head(struct reader *r, struct sealed_hour *s, double *bin_s, int *n_bins,
                     struct err *e)
{
    uint64_t bin_ns, hour, n_covered, has_lengths, v;
    unsigned *lengths = (unsigned *)&s->lengths;    // prompts, then outputs

    if (r->at == r->end || *r->at++ != VERSION)
        return err_set(e, EINVAL, "arrivals: not of version %d: delete the row", VERSION);
    if (!get_varint(r, &bin_ns) || !get_varint(r, &hour) || !get_varint(r, &n_covered) ||
        !get_varint(r, &has_lengths) || bin_ns < 900000 || bin_ns > 3600000000000 ||
        hour > 1000000000 || has_lengths > 1)
        return err_set(e, EINVAL, "arrivals: the head of an hour is damaged: delete the row");
    *bin_s = (double)bin_ns * 1e-9;
    *n_bins = (int)ceil(HOUR_S / *bin_s);
    if (n_covered > (uint64_t)*n_bins)
        return err_set(e, EINVAL, "arrivals: an hour has more bins than fit: delete the row");
    s->hour = (long)hour;
    s->n_covered = (int)n_covered;
    for (int k = 0; k < 2 * LENGTH_BUCKETS && has_lengths; k++) {
        if (!get_varint(r, &v) || v > UINT32_MAX)
            return err_set(e, EINVAL, "arrivals: lengths of an hour are damaged: delete the row");
        lengths[k] = (unsigned)v;
    }
    return 0;
}

int arrivals_load(struct arrivals *a, const void *bytes, size_t len, struct err *e)
{
    struct reader r = { bytes, (const unsigned char *)bytes + len, -1, 0 };
    struct sealed_hour s = { 0 };
    double bin_s;
    int n_bins, rc = read_head(&r, &s, &bin_s, &n_bins, e);

    if (rc < 0)
        return rc;
    struct open_hour o = { .hour = s.hour, .lengths = s.lengths };
    o.count = heap_array((size_t)a->n_bins, sizeof *o.count);
    while ((rc = get_bin(&r, s.n_covered)) > 0) {
        const double from_s = HOUR_S * (double)s.hour + r.bin * bin_s;

        if (bin_s > a->bin_s * (1 - 1e-6) && bin_s < a->bin_s * (1 + 1e-6)) {
            o.count[r.bin < a->n_bins ? r.bin : a->n_bins - 1] = (uint16_t)r.count;
            o.n += r.count;
        } else {
            spread(a, &o, from_s, from_s + bin_s, r.count);
        }
    }
    if (rc < 0)
        rc = err_set(e, EINVAL, "arrivals: counts of an hour are damaged: delete the row");
    if (rc == 0 && o.n > 0) {
        const double covered_s = fmin(s.n_covered * bin_s, HOUR_S);

        s = seal(a, &o);
        s.n_covered = (int)fmin(s.n_covered, ceil(covered_s / a->bin_s - 1e-6));
        keep(a, s);
    }
    free(o.count);
    return rc;
}
