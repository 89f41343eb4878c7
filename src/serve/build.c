/* build.c - tables of capacity: recorded hours, replayed at every rate and shape of step. */
#include "serve/capacity.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/rng.h"
#include "serve/continuous.h"

#define LATE_MAX 0.01       // of an hour's requests
#define MARGIN_MIN 1.005    // steps are taken to be so much longer, and up to
#define MARGIN_MAX 1.3      // where hours differ much: the spread of the worst three, to this power
#define MARGIN_POWER 0.25
#define PRECISION 1.003     // of F; the smaller end is kept
#define COMPRESS_MAX 4      // an hour speaks of rates up to so many times its own
#define STRETCH_MIN 0.25    // below this share of an hour's rate its arrivals are thinned instead

enum { FEW = 1000 };    // arrivals: hours with fewer are joined; 1 % of them are ten

/* Busiest hour's rate times this; below a quarter replicas of many share the traffic. */
static const double rates[CAPACITY_RATES] = { 1.0 / 64, 1.0 / 16, 0.25, 0.35, 0.5, 0.7, 1, 1.4, 2 };
enum { SAME_RATE = 6 };    // of these: the hours as they were
static const double alphas[CAPACITY_ALPHAS] = { 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3 };

/* Of language models, in equal steps of the logarithm (make_falling relies on it). Measured ones
 * (A100, H100; 8 B to 70 B) have 0.009 to 0.011 and 0.0017 to 0.0055.
 */
static const double llm_alphas[] = { 0.001, 0.004, 0.016, 0.064 };
static const double llm_gammas[] = { 0.0004, 0.0016, 0.0064, 0.0256 };
enum { N_LLM_ALPHAS = 4, N_LLM_GAMMAS = 4 };

/* Arrivals brought to one request a second. */
struct unit {
    double *at_s;
    struct llm_request *requests;    // language models only
    int n;
};

struct builder {
    struct arena arena;            // of the units of one rate
    const struct replay *hours;    // (n_hours)
    int n_hours;
    double n_arrivals;    // of all hours
    const struct lengths *lengths;
    const struct serving *spec;
    struct unit *units;    // (n_units) of the present rate, the worst so far first
    int n_units;
    double rate;
};

/* ---- units of a rate ---- */

static double hour_rate(const struct replay *r)
{
    return r->n / r->span_s;
}

/* Append 'r', of whose arrivals a share 'keep' stays, to 'u'. */
static void append(struct unit *u, const struct replay *r, double keep, struct rng *rng)
{
    const double begin_s = u->n ? u->at_s[u->n - 1] : 0;
    const double scale = hour_rate(r) * keep, from_s = u->n ? r->at_s[0] : 0;

    for (int i = 0; i < r->n; i++)
        if (keep >= 1 || rng_uniform(rng) < keep)
            u->at_s[u->n++] = begin_s + (r->at_s[i] - from_s) * scale;
}

static void draw_lengths(struct builder *b, struct unit *u, struct rng *rng)
{
    u->requests = ARENA_ARRAY(&b->arena, struct llm_request, (size_t)u->n);
    for (int i = 0; i < u->n; i++) {
        const int prompt = lengths_quantile(b->lengths->prompt, rng_uniform(rng));
        const int output = lengths_quantile(b->lengths->output, rng_uniform(rng));

        u->requests[i] = (struct llm_request){ u->at_s[i], prompt, output };
    }
}

/* The hours as they would be at b->rate: as one replica of many sees them where that is far below
 * their own (thinned), without those that were far quieter, and with few arrivals joined.
 */
static void make_units(struct builder *b, int seed)
{
    const double keep_min = fmin(1, 4 * FEW / b->n_arrivals);
    struct rng rng;

    arena_reset(&b->arena);
    rng_init(&rng, (uint64_t)seed, "serve/build");
    b->units = ARENA_ARRAY(&b->arena, struct unit, (size_t)b->n_hours);
    b->n_units = 0;
    double *all = ARENA_ARRAY(&b->arena, double, (size_t)b->n_arrivals);
    struct unit *u = NULL;
    for (int h = 0; h < b->n_hours; h++) {
        const struct replay *r = &b->hours[h];
        const double s = b->rate / hour_rate(r);

        if (s > COMPRESS_MAX)
            continue;
        if (!u || u->n >= FEW) {
            double *behind = u ? u->at_s + u->n : all;

            u = &b->units[b->n_units++];
            u->at_s = behind;
        }
        append(u, r, fmin(1, fmax(s / STRETCH_MIN, keep_min)), &rng);
    }
    for (int i = 0; i < b->n_units && b->spec->is_llm; i++)
        draw_lengths(b, &b->units[i], &rng);
}

/* ---- one cell ---- */

static bool holds(const struct builder *b, const struct unit *u, double f, double alpha,
                  double gamma)
{
    const struct serving *s = b->spec;
    const int enough = (int)(LATE_MAX * u->n);

    if (!s->is_llm) {    // not the arrivals are scaled, but the server and its promise
        const struct replay r = { u->at_s, u->n, 0 };
        const double t0 = f * b->rate;

        return batching_late(&r, t0, alpha * t0, s->max_batch, s->latency_s * b->rate, enough) <=
               enough;
    }
    const struct continuous_server like = { .t0_s = 1,
                                            .a_s = alpha,
                                            .c_s = gamma,
                                            .max_running = s->max_running,
                                            .ttft_s = s->ttft_s,
                                            .tpot_s = s->tpot_s };
    return continuous_late(u->requests, u->n, &like, f, 1 / b->rate, enough) <= enough;
}

/* With a longer t0 a lone request is late. */
static double most(const struct serving *s, double alpha)
{
    return s->is_llm ? fmin(s->ttft_s, s->tpot_s / (1 + alpha)) : s->latency_s / (1 + alpha);
}

/* The largest F that 'u' holds, and no more than 'best', which it does not hold. */
static double search(const struct builder *b, const struct unit *u, double alpha, double gamma,
                     double best)
{
    const double least = 1e-6 * most(b->spec, alpha);
    double low = best, high;

    do {
        high = low;
        low /= 1.3;
    } while (low > least && !holds(b, u, low, alpha, gamma));
    while (high / low > PRECISION) {
        const double f = sqrt(low * high);

        if (holds(b, u, f, alpha, gamma))
            low = f;
        else
            high = f;
    }
    return low;
}

/* The least F over the units, from 'best' down. Most of them are replayed once only: whoever set
 * the last cell is asked first.
 */
static double least(struct builder *b, double alpha, double gamma, double best)
{
    for (int i = 0; i < b->n_units; i++) {
        const struct unit u = b->units[i];

        if (holds(b, &u, best, alpha, gamma))
            continue;
        best = search(b, &u, alpha, gamma, best);
        for (int k = i; k > 0; k--)
            b->units[k] = b->units[k - 1];
        b->units[0] = u;
    }
    return best;
}

/* ---- the table ---- */

static void lower(double *x, double to, bool *is_changed)
{
    if (*x > to + 1e-9) {
        *x = to;
        *is_changed = true;
    }
}

/* Rounding and chance in the cells must not make a slower place hold more. With u and v for the
 * logarithms of alpha and gamma, F falls in both and, along t0 with a and c as they are, by less
 * than t0 grows: dF/du + dF/dv >= -1. What breaks this is lowered, never raised.
 */
static void make_falling(struct capacity *c, int j)
{
    bool is_changed = true;

    for (int n = 0; n < 1000 && is_changed; n++) {
        is_changed = false;
        for (int k = c->n_gammas - 1; k >= 0; k--)
            for (int i = c->n_alphas - 1; i >= 0; i--) {
                double *f = &c->log_f[k][i][j];
                const bool has_i = i + 1 < c->n_alphas, has_k = k + 1 < c->n_gammas;
                double *fi = has_i ? &c->log_f[k][i + 1][j] : NULL;
                double *fk = has_k ? &c->log_f[k + 1][i][j] : NULL;

                if (has_i)
                    lower(fi, *f, &is_changed);
                if (has_k)
                    lower(fk, *f, &is_changed);
                if (has_i && !has_k)
                    lower(f, *fi + c->log_alpha[i + 1] - c->log_alpha[i], &is_changed);
                if (has_k && !has_i)
                    lower(f, *fk + c->log_gamma[k + 1] - c->log_gamma[k], &is_changed);
                if (!has_i || !has_k)
                    continue;
                const double step = c->log_alpha[i + 1] - c->log_alpha[i];
                const double across = c->log_f[k + 1][i + 1][j];
                const double excess = *fi + *fk - 2 * across - step;
                lower(f, fmin(across + step, (*fi + *fk + step) / 2), &is_changed);
                if (excess > 1e-9) {
                    lower(fi, *fi - excess / 2, &is_changed);
                    lower(fk, *fk - excess / 2, &is_changed);
                }
            }
    }
}

/* The next hour falls below the worst of these by about as much as the worst three differ; where
 * all are alike a small margin will do. At one cell in the middle of the table.
 */
static double margin_of(const struct builder *b, const struct capacity *c)
{
    const double alpha = exp(c->log_alpha[c->n_alphas / 2]);
    const double gamma = exp(c->log_gamma[c->n_gammas / 2]), top = most(b->spec, alpha);
    double worst[3] = { top, top, top };    // the least first

    for (int i = 0; i < b->n_units; i++) {
        const struct unit *u = &b->units[i];
        double f = worst[2];

        if (!holds(b, u, f, alpha, gamma))
            f = search(b, u, alpha, gamma, f);
        for (int k = 0; k < 3; k++)
            if (f < worst[k]) {
                const double next = worst[k];

                worst[k] = f;
                f = next;
            }
    }
    if (b->n_units < 3)
        return MARGIN_MAX;
    return fmin(fmax(pow(worst[2] / worst[0], MARGIN_POWER), MARGIN_MIN), MARGIN_MAX);
}

static void fill(struct builder *b, struct capacity *c)
{
    for (int j = 0; j < CAPACITY_RATES; j++) {
        b->rate = exp(c->log_rate[j]);
        make_units(b, j);
        if (j == SAME_RATE)
            c->margin = margin_of(b, c);
        for (int k = 0; k < c->n_gammas; k++)
            for (int i = 0; i < c->n_alphas; i++) {
                const double alpha = exp(c->log_alpha[i]), gamma = exp(c->log_gamma[k]);
                double best = most(b->spec, alpha);

                if (i > 0)
                    best = fmin(best, exp(c->log_f[k][i - 1][j]));
                if (k > 0)
                    best = fmin(best, exp(c->log_f[k - 1][i][j]));
                if (j > 0)
                    best = fmin(best, exp(c->log_f[k][i][j - 1]));
                c->log_f[k][i][j] = log(least(b, alpha, gamma, best));
            }
        make_falling(c, j);
    }
}

/* Grids, and what a table says of itself. */
static void begin(struct capacity *c, const struct serving *spec, double rate_ref)
{
    *c = (struct capacity){ .source = CAPACITY_REPLAY,
                            .spec = *spec,
                            .margin = MARGIN_MAX,
                            .rate_max = (double)INFINITY,
                            .rate_ref = rate_ref,
                            .n_alphas = spec->is_llm ? N_LLM_ALPHAS : CAPACITY_ALPHAS,
                            .n_gammas = spec->is_llm ? N_LLM_GAMMAS : 1 };
    for (int i = 0; i < c->n_alphas; i++)
        c->log_alpha[i] = log(spec->is_llm ? llm_alphas[i] : alphas[i]);
    for (int k = 0; k < c->n_gammas; k++)
        c->log_gamma[k] = log(spec->is_llm ? llm_gammas[k] : 1);
    for (int j = 0; j < CAPACITY_RATES; j++)
        c->log_rate[j] = log(rate_ref * rates[j]);
}

/* Of language models whose lengths nobody has told. */
static struct lengths usual_lengths(void)
{
    struct lengths l = { 0 };

    lengths_add(l.prompt, LLM_PROMPT_USUAL - 1);    // in the bucket that ends there
    lengths_add(l.output, LLM_OUTPUT_USUAL - 1);
    return l;
}

void capacity_build_replays(struct capacity *c, const struct replay *r, int n,
                            const struct lengths *lengths, const struct serving *spec)
{
    const struct lengths usual = usual_lengths();
    struct builder b = { .hours = r, .n_hours = n, .lengths = lengths, .spec = spec };
    double rate_ref = 0;

    assert(n > 0);
    arena_init(&b.arena);
    if (!lengths)
        b.lengths = &usual;
    for (int h = 0; h < n; h++) {
        assert(r[h].n > 0 && r[h].span_s > 0);
        rate_ref = fmax(rate_ref, hour_rate(&r[h]));
        b.n_arrivals += r[h].n;
    }
    begin(c, spec, rate_ref);
    c->n_hours = n;
    if (spec->is_llm) {
        c->prompt = lengths_mean(b.lengths->prompt);
        c->output = lengths_mean(b.lengths->output);
    }
    fill(&b, c);
    arena_release(&b.arena);
}
