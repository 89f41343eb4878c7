/* batching.c - a server that takes what waits, up to a batch: replayed, or fed as time goes. */
#include "serve/batching.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

int batching_late(const struct replay *r, double t0_s, double a_s, int max_batch, double latency_s,
                  int enough)
{
    const double *at = r->at_s;
    const int n = r->n;
    double t = 0;
    int late = 0;

    for (int i = 0, j; i < n; i = j) {
        const int end = n - i > max_batch ? i + max_batch : n;

        if (at[i] > t)
            t = at[i];
        for (j = i + 1; j < end && at[j] <= t;)
            j++;
        t += t0_s + a_s * (j - i);
        for (int k = i; k < j && t - at[k] > latency_s; k++)    // the first ones wait longest
            late++;
        if (late > enough)
            break;
    }
    return late;
}

/* ---- how long requests took ---- */

/* Sixteen to the octave from 2^-14 s on: exponent and four bits of the fraction. */
static int bucket(double s)
{
    uint64_t bits;

    memcpy(&bits, &s, sizeof bits);
    const int64_t b = (int64_t)(bits >> 48) - ((1023 - 14) << 4);
    if (!(s > 0) || b < 0)
        return 0;
    return b < LATENCY_BUCKETS ? (int)b : LATENCY_BUCKETS - 1;
}

static double bucket_low_s(int b)
{
    return ldexp(1 + b % 16 / 16.0, b / 16 - 14);
}

void latencies_add(struct latencies *l, double s)
{
    l->n[bucket(s)]++;
    l->total++;
}

void latencies_join(struct latencies *l, const struct latencies *more)
{
    for (int i = 0; i < LATENCY_BUCKETS; i++)
        l->n[i] += more->n[i];
    l->total += more->total;
}

double latencies_quantile(const struct latencies *l, double q)
{
    double want = q * l->total;

    for (int i = 0; i < LATENCY_BUCKETS && l->total > 0; i++) {
        if (l->n[i] > 0 && want <= l->n[i]) {
            const double low = bucket_low_s(i);

            return low + (bucket_low_s(i + 1) - low) * fmax(want, 0) / l->n[i];
        }
        want -= l->n[i];
    }
    return (double)NAN;
}

/* ---- step by step ---- */

void batch_server_init(struct batch_server *s, double t0_s, double a_s, int max_batch,
                       double latency_s, double now_s)
{
    assert(max_batch >= 1);
    *s = (struct batch_server){ .t0_s = t0_s,
                                .a_s = a_s,
                                .max_batch = max_batch,
                                .latency_s = latency_s,
                                .now_s = now_s,
                                .free_s = now_s,
                                .batch_end_s = (double)INFINITY };
}

void batch_server_release(struct batch_server *s)
{
    free(s->queue);
    s->queue = NULL;
    s->n_queue = s->cap = 0;
}

static double waiting(const struct batch_server *s, int i)
{
    return s->queue[(s->first + i) & (s->cap - 1)];    // cap is a power of two
}

static void end_batch(struct batch_server *s)
{
    const double t = s->batch_end_s;

    for (int i = 0; i < s->n_batch; i++) {
        const double took_s = t - waiting(s, i);

        s->n_late += took_s > s->latency_s;
        latencies_add(&s->latencies, took_s);
    }
    s->first = (s->first + s->n_batch) & (s->cap - 1);
    s->n_queue -= s->n_batch;
    s->n_served += s->n_batch;
    s->n_batches++;
    s->busy_s += t - s->counted_s;
    s->free_s = t;
    s->n_batch = 0;
    s->batch_end_s = (double)INFINITY;
}

void batch_server_advance(struct batch_server *s, double now_s)
{
    assert(now_s >= s->now_s);
    for (;;) {
        if (s->batch_end_s <= now_s)
            end_batch(s);
        if (s->n_batch || !s->n_queue)
            break;
        const double begin_s = fmax(s->free_s, waiting(s, 0));
        if (begin_s >= now_s)
            break;
        while (s->n_batch < s->n_queue && s->n_batch < s->max_batch &&
               waiting(s, s->n_batch) <= begin_s)
            s->n_batch++;
        s->counted_s = begin_s;
        s->batch_end_s = begin_s + s->t0_s + s->a_s * s->n_batch;
    }
    if (s->n_batch) {
        s->busy_s += now_s - s->counted_s;
        s->counted_s = now_s;
    }
    s->now_s = now_s;
}

static void make_room(struct batch_server *s)
{
    const int old = s->cap;

    if (s->n_queue < old)
        return;
    s->cap = old ? 2 * old : 64;
    RESIZE(s->queue, s->cap);
    memcpy(s->queue + old, s->queue, (size_t)s->first * sizeof *s->queue);    // what had wrapped
}

bool batch_server_arrive(struct batch_server *s, double at_s)
{
    batch_server_advance(s, at_s);
    if (s->is_draining || s->n_queue >= BATCH_QUEUE_MAX) {
        s->n_refused++;
        return false;
    }
    make_room(s);
    s->queue[(s->first + s->n_queue++) & (s->cap - 1)] = at_s;
    s->n_arrived++;
    return true;
}

int batch_server_abandon(struct batch_server *s)
{
    const int n = s->n_queue;

    s->n_late += n;
    s->n_queue = s->n_batch = 0;
    s->batch_end_s = (double)INFINITY;
    s->free_s = s->now_s;
    return n;
}
