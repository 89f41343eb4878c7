/* traffic.c - arrivals by chance: a day, a week, clumps, busy spells, sudden clients. */
#include "serve/traffic.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define DAY_S 86400.0
#define MINUTE_S 60.0    // the day's curve is a staircase of minutes

enum { CLUMP_MAX = 256 };    // a quarter of what may be pending

static double base_rate(const struct traffic_spec *s, double at_s)
{
    const double hour = fmod(at_s, DAY_S) / 3600;
    const int weekday = (int)fmod(at_s / DAY_S, 7);
    const double week = (weekday >= 5 ? 1 - s->week : 1) / (1 - s->week * 2 / 7);

    return s->rate * week * (1 + s->day * cos((hour - s->peak_h) * M_PI / 12));
}

double traffic_rate(const struct traffic *t, double at_s)
{
    const struct traffic_spec *s = &t->spec;

    return base_rate(s, at_s) + s->rate * s->client_rate * s->clients_day * s->client_s / DAY_S;
}

/* ---- spells and clients ---- */

static double gap(struct rng *r, double mean_s)
{
    return mean_s > 0 ? rng_exponential(r, mean_s) : (double)INFINITY;
}

static double client_gap_s(struct traffic *t)
{
    return t->spec.clients_day > 0 ? gap(&t->rng, DAY_S / t->spec.clients_day) : (double)INFINITY;
}

void traffic_init(struct traffic *t, const struct traffic_spec *spec, uint64_t seed)
{
    memset(t, 0, sizeof *t);
    t->spec = *spec;
    if (t->spec.clump < 1)
        t->spec.clump = 1;
    if (t->spec.client_clump < 1)
        t->spec.client_clump = 1;
    rng_init(&t->rng, seed, "traffic");
    t->spell_end_s = spec->spell > 1 ? gap(&t->rng, spec->calm_s) : (double)INFINITY;
    t->next_client_s = client_gap_s(t);
}

static void change_clients(struct traffic *t)
{
    const struct traffic_spec *s = &t->spec;

    for (int i = 0; i < t->n_clients;)
        if (t->clients[i].end_s <= t->now_s)
            t->clients[i] = t->clients[--t->n_clients];
        else
            i++;
    if (t->now_s < t->next_client_s)
        return;
    const struct traffic_client c = { t->now_s + rng_exponential(&t->rng, s->client_s),
                                      rng_exponential(&t->rng, s->rate * s->client_rate) };
    if (t->n_clients < TRAFFIC_CLIENTS)
        t->clients[t->n_clients++] = c;
    t->next_client_s = t->now_s + client_gap_s(t);
}

/* At now_s something changes: what, and until when it then stays. */
static void next_segment(struct traffic *t)
{
    const struct traffic_spec *s = &t->spec;

    if (t->now_s >= t->spell_end_s) {
        t->is_spell = !t->is_spell;
        t->spell_end_s = t->now_s + gap(&t->rng, t->is_spell ? s->spell_s : s->calm_s);
    }
    change_clients(t);
    t->segment_s = (floor(t->now_s / MINUTE_S) + 1) * MINUTE_S;
    t->segment_s = fmin(t->segment_s, fmin(t->spell_end_s, t->next_client_s));
    for (int i = 0; i < t->n_clients; i++)
        t->segment_s = fmin(t->segment_s, t->clients[i].end_s);
}

/* ---- arrivals ---- */

static void push(struct traffic *t, double at_s)
{
    int i = t->n_pending++;

    for (; i > 0 && t->pending[(i - 1) / 2] > at_s; i = (i - 1) / 2)
        t->pending[i] = t->pending[(i - 1) / 2];
    t->pending[i] = at_s;
}

static double pop(struct traffic *t)
{
    const double top = t->pending[0], last = t->pending[--t->n_pending];
    int i = 0;

    for (int k; (k = 2 * i + 1) < t->n_pending; i = k) {
        if (k + 1 < t->n_pending && t->pending[k + 1] < t->pending[k])
            k++;
        if (t->pending[k] >= last)
            break;
        t->pending[i] = t->pending[k];
    }
    t->pending[i] = last;
    return top;
}

/* A clump at now_s; what finds no room is lost, which keeps memory bounded. */
static void add_clump(struct traffic *t, double mean)
{
    double at_s = t->now_s, n = 1;

    if (mean > 1)
        n = fmin(1 + floor(log(1 - rng_uniform(&t->rng)) / log(1 - 1 / mean)), CLUMP_MAX);
    for (int i = 0; i < (int)n && t->n_pending < TRAFFIC_PENDING; i++) {
        push(t, at_s);
        if (t->spec.clump_s > 0 && i + 1 < (int)n)
            at_s += rng_exponential(&t->rng, t->spec.clump_s);
    }
}

double traffic_next(struct traffic *t)
{
    const struct traffic_spec *s = &t->spec;

    while (!t->n_pending || t->pending[0] > t->now_s) {
        if (t->now_s >= t->segment_s)
            next_segment(t);
        double clients = 0, base = base_rate(s, t->now_s) / s->clump;
        if (s->spell > 1) {    // so that the mean stays
            const double share = s->spell_s / (s->spell_s + s->calm_s);

            base *= (t->is_spell ? s->spell : 1) / (1 + share * (s->spell - 1));
        }
        for (int i = 0; i < t->n_clients; i++)
            clients += t->clients[i].rate / s->client_clump;
        const double at_s = t->now_s + gap(&t->rng, base + clients > 0 ? 1 / (base + clients) : 0);
        if (!(at_s < t->segment_s)) {
            t->now_s = t->segment_s;    // memoryless: what was drawn is drawn anew
            continue;
        }
        t->now_s = at_s;
        const bool is_client = clients > 0 && rng_uniform(&t->rng) * (base + clients) < clients;
        add_clump(t, is_client ? s->client_clump : s->clump);
    }
    return pop(t);
}

static double log_between(struct rng *r, double low, double high)
{
    return low * exp(rng_uniform(r) * log(high / low));
}

struct traffic_spec traffic_draw(struct rng *r, double rate)
{
    struct traffic_spec s = { .rate = rate, .clump = 1, .spell = 1, .client_clump = 1 };

    s.day = rng_between(r, 0.1, 0.8);
    s.peak_h = rng_between(r, 10, 20);
    s.week = rng_between(r, 0, 0.6);
    s.clump_s = log_between(r, 0.001, 0.1) / rate;
    if (rng_uniform(r) < 0.6)
        s.clump = log_between(r, 1.2, 12);
    if (rng_uniform(r) < 0.6) {
        s.spell = log_between(r, 1.3, 3);
        s.spell_s = log_between(r, 2, 60);
        s.calm_s = s.spell_s * log_between(r, 2, 20);
    }
    if (rng_uniform(r) < 0.6) {
        s.clients_day = log_between(r, 0.3, 24);
        s.client_s = log_between(r, 120, 7200);
        s.client_rate = log_between(r, 0.03, 0.3);
        s.client_clump = log_between(r, 1, 4);
    }
    return s;
}
