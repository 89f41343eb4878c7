/* services.c - tables of capacity: how fast they are made and read, and how right they are. */
#include "bench/bench.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/grow.h"
#include "base/rng.h"
#include "base/stats.h"
#include "base/text/file.h"
#include "serve/azure.h"
#include "serve/capacity.h"
#include "serve/traffic.h"

/* What margins and rules were tried on has seed 1; this is another. */
enum { SEED = 2026, N_SERVICES = 80, N_HELD_OUT = 10, EVERY_H = 5, DAY_H = 24, FEW = 300 };

/* ---- a service with a day of traffic ---- */

/* Hours of traffic, as times: of hour h from first[h] to first[h + 1]. */
struct hours {
    double *at_s;
    int n_hours, *first;
};

static struct hours draw_hours(struct arena *a, const struct traffic_spec *spec, uint64_t seed,
                               int n_hours)
{
    struct hours out = { NULL, n_hours, ARENA_ARRAY(a, int, (size_t)n_hours + 1) };
    struct traffic *t = ARENA_NEW(a, struct traffic);
    int n = 0, cap = 0;
    double at_s;

    traffic_init(t, spec, seed);
    while ((at_s = traffic_next(t)) < 3600.0 * n_hours) {
        ARENA_GROW(a, out.at_s, n, cap);
        out.at_s[n++] = at_s;
        out.first[(int)(at_s / 3600) + 1] = n;
    }
    for (int h = 0; h < n_hours; h++)    // an hour without arrivals
        if (out.first[h + 1] < out.first[h])
            out.first[h + 1] = out.first[h];
    return out;
}

/* What a service that promises 'latency_s' keeps of hours from 'from' to 'to'. */
static struct arrivals *record(const struct hours *hours, int from, int to, double latency_s)
{
    struct arrivals *a = arrivals_create(arrivals_bin_s(latency_s));
    const double bin_s = arrivals_bin_s(latency_s);

    for (int i = hours->first[from]; i < hours->first[to]; i++)
        arrivals_add(a, hours->at_s[i], floor(hours->at_s[i] / bin_s) * bin_s, bin_s, 1,
                     (const unsigned[]){ 1 });
    arrivals_advance(a, 3600.0 * to);
    return a;
}

/* ---- what is true ---- */

/* The largest t0 that holds 'r', raw, with a = alpha*t0; 0 where even a lone request sets it. */
static double true_t0(const struct replay *r, const struct serving *s, double alpha)
{
    const int enough = r->n / 100;
    double high = s->latency_s / (1 + alpha), low = high / 4096;

    if (batching_late(r, 0.98 * high, 0.98 * alpha * high, s->max_batch, s->latency_s, enough) <=
        enough)
        return 0;
    for (int i = 0; i < 16; i++) {
        const double f = sqrt(low * high);

        if (batching_late(r, f, alpha * f, s->max_batch, s->latency_s, enough) <= enough)
            low = f;
        else
            high = f;
    }
    return low;
}

/* What the table says that a place holds, over what 'r' shows that it does. Of fewer than FEW
 * requests a hundredth is too few to tell.
 */
static void judge(const struct capacity *c, const struct replay *r, double alpha,
                  struct samples *ratios)
{
    const double t0_s = true_t0(r, &c->spec, alpha);

    if (r->n >= FEW && t0_s > 0)
        samples_add(ratios, capacity_mu(c, t0_s, alpha * t0_s) / (r->n / r->span_s));
}

/* ---- held out ---- */

static double log_between(struct rng *r, double low, double high)
{
    return low * exp(rng_uniform(r) * log(high / low));
}

static void hold_out_service(uint64_t seed, int service, struct samples *ratios)
{
    struct arena a;
    struct rng rng;
    char purpose[32];

    arena_init(&a);
    snprintf(purpose, sizeof purpose, "service %d", service);
    rng_init(&rng, seed, purpose);
    const double rate = log_between(&rng, 0.7, 4);    // only rate times latency matters
    const struct traffic_spec spec = traffic_draw(&rng, rate);
    const struct serving s = { .rate = rate,
                               .latency_s = log_between(&rng, 3, 60) / rate,
                               .max_batch = 8 << rng_below(&rng, 4) };
    const struct hours hours =
        draw_hours(&a, &spec, rng_u64(&rng), DAY_H + (N_HELD_OUT - 1) * EVERY_H + 1);
    for (int i = 0; i < N_HELD_OUT; i++) {
        const int h = DAY_H + i * EVERY_H, first = hours.first[h];
        struct arrivals *recorded = record(&hours, h - DAY_H, h, s.latency_s);
        struct capacity c;
        struct replay r = { NULL, hours.first[h + 1] - first, 3600 };
        double *at_s = ARENA_ARRAY(&a, double, (size_t)r.n);

        for (int k = 0; k < r.n; k++)
            at_s[k] = hours.at_s[first + k] - 3600.0 * h;
        r.at_s = at_s;
        capacity_build(&c, recorded, &s);
        judge(&c, &r, log_between(&rng, 0.01, 0.5), ratios);
        arrivals_destroy(recorded);
    }
    arena_release(&a);
}

/* The share of service-hours predicted more than a tenth too high. */
static double too_high(const struct samples *ratios)
{
    int n = 0;

    for (int i = 0; i < ratios->n; i++)
        n += ratios->v[i] > 1.1;
    return (double)n / ratios->n;
}

static void hold_out(struct samples *ratios)
{
    for (int i = 0; i < N_SERVICES; i++)
        hold_out_service(SEED, i, ratios);
}

int bench_services_too_high(struct arena *a, const char *scratch, struct bench_figures *out,
                            struct err *e)
{
    struct samples ratios = { 0 };

    (void)a, (void)scratch, (void)e;
    hold_out(&ratios);
    out->value = too_high(&ratios);
    out->detail[0] = ratios.n;
    out->detail[1] = samples_quantile(&ratios, 1);
    samples_release(&ratios);
    return 0;
}

int bench_services_share(struct arena *a, const char *scratch, struct bench_figures *out,
                         struct err *e)
{
    struct samples ratios = { 0 };

    (void)a, (void)scratch, (void)e;
    hold_out(&ratios);
    out->value = samples_quantile(&ratios, 0.5);
    out->detail[0] = samples_quantile(&ratios, 0.05);
    out->detail[1] = samples_quantile(&ratios, 0.95);
    samples_release(&ratios);
    return 0;
}

/* ---- Azure's traces ---- */

static int read_azure(struct arena *a, const char *which, struct azure_trace *out, struct err *e)
{
    const char *text;
    size_t len;
    const char *path = arena_printf(a, "%s/azure_llm_trace_2023/AzureLLMInferenceTrace_%s.csv.gz",
                                    bench_data_dir(), which);
    int rc = file_read_text(a, path, NULL, 1 << 28, &text, &len, e);

    return rc < 0 ? rc : azure_read(a, path, text, len, out, e);
}

int bench_azure_data(struct arena *a, const char *scratch, struct err *e)
{
    struct azure_trace t;

    (void)scratch;
    return read_azure(a, "code", &t, e);
}

/* Windows of 'window_s': times in bins of an eighth of 'latency_s', or as they were (0). */
static int cut(struct arena *a, const struct azure_trace *t, double window_s, double latency_s,
               struct replay *out, int max)
{
    const int n = (int)fmin(t->span_s / window_s, max);
    int i = 0;

    for (int w = 0; w < n; w++) {
        double *at_s = ARENA_ARRAY(a, double, (size_t)t->n);
        const double bin_s = latency_s / 8;

        out[w] = (struct replay){ at_s, 0, window_s };
        for (; i < t->n && t->requests[i].at_s < (w + 1) * window_s; i++) {
            const double at = t->requests[i].at_s - w * window_s;

            at_s[out[w].n++] = bin_s > 0 ? (floor(at / bin_s) + 0.5) * bin_s : at;
        }
    }
    return n;
}

/* Each window from the third on, foreseen from those before it, for eight kinds of server. */
static void judge_azure(struct arena *a, const struct azure_trace *t, double window_s,
                        struct samples *ratios)
{
    enum { MAX = 12, KNOWN = 3 };
    struct replay raw[MAX], binned[MAX];
    const int n = cut(a, t, window_s, 0, raw, MAX);
    const double rate = t->n / t->span_s;

    for (int kind = 0; kind < 4; kind++) {
        const struct serving s = { .rate = rate,
                                   .latency_s = (kind & 1 ? 30 : 3) / rate,
                                   .max_batch = kind & 2 ? 64 : 8 };

        cut(a, t, window_s, s.latency_s, binned, MAX);
        for (int w = KNOWN; w < n; w++) {
            struct capacity c;

            capacity_build_replays(&c, binned, w, NULL, &s);
            judge(&c, &raw[w], 0.02, ratios);
            judge(&c, &raw[w], 0.2, ratios);
        }
    }
}

/* The rate up to which 'n' requests of a window of 'window_s' are held. */
static double true_llm_rate(const struct llm_request *r, int n, double window_s,
                            const struct continuous_server *s)
{
    double low = 0.01, high = 30;

    for (int i = 0; i < 14; i++) {
        const double faster = sqrt(low * high);

        if (continuous_late(r, n, s, 1, 1 / faster, n / 100) <= n / 100)
            low = faster;
        else
            high = faster;
    }
    return low * n / window_s;
}

/* 70 B on four H100, on four A100, and a model of about 8 B: t0, a, c in seconds. */
static const double llm_places[][3] = { { 0.0290, 0.000315, 0.0000942 },
                                        { 0.0439, 0.000381, 0.00024 },
                                        { 0.012, 0.00012, 0.00002 } };

static void judge_azure_llm(struct arena *a, const struct azure_trace *t, struct samples *ratios)
{
    enum { MAX = 6, KNOWN = 3, WINDOW_S = 600 };
    static const double ttft_s[] = { 1, 2, 5 }, tpot_s[] = { 0.06, 0.1, 0.2 };
    struct lengths lengths = { .prompt = { 0 } };
    struct llm_request *r = ARENA_ARRAY(a, struct llm_request, (size_t)t->n);
    struct replay raw[MAX];
    const int n_windows = cut(a, t, WINDOW_S, 0, raw, MAX);
    int first = 0;

    for (; t->requests[first].at_s < KNOWN * WINDOW_S; first++) {
        lengths_add(lengths.prompt, t->requests[first].prompt);
        lengths_add(lengths.output, t->requests[first].output);
    }
    for (int w = KNOWN; w < n_windows; first += raw[w++].n) {
        for (int i = 0; i < raw[w].n; i++) {
            r[i] = t->requests[first + i];
            r[i].at_s -= (double)w * WINDOW_S;
        }
        for (int k = 0; k < 9; k++) {
            const double *p = llm_places[k % 3];
            const struct serving s = {
                .is_llm = true, .ttft_s = ttft_s[k / 3], .tpot_s = tpot_s[k / 3], .max_running = 128
            };
            const struct continuous_server server = { .t0_s = p[0],
                                                      .a_s = p[1],
                                                      .c_s = p[2],
                                                      .max_running = 128,
                                                      .ttft_s = s.ttft_s,
                                                      .tpot_s = s.tpot_s };
            struct capacity c;

            capacity_build_replays(&c, raw, w, &lengths, &s);
            samples_add(ratios, capacity_mu_llm(&c, p[0], p[1], p[2]) /
                                    true_llm_rate(r, raw[w].n, WINDOW_S, &server));
        }
    }
}

/* Worst ratio over windows of both traces. */
static int bench_azure(struct arena *a, bool is_llm, struct bench_figures *out, struct err *e)
{
    static const char *const names[] = { "conv", "code" };
    struct samples ratios = { 0 };
    struct azure_trace t;
    int rc = 0;

    for (int i = 0; i < 2 && rc == 0; i++) {
        rc = read_azure(a, names[i], &t, e);
        if (rc == 0 && is_llm)
            judge_azure_llm(a, &t, &ratios);
        for (int k = 1; k <= 2 && rc == 0 && !is_llm; k++)
            judge_azure(a, &t, 300 * k, &ratios);
    }
    out->value = samples_quantile(&ratios, 1);
    out->detail[0] = samples_quantile(&ratios, 0.5);
    out->detail[1] = ratios.n;
    samples_release(&ratios);
    return rc;
}

int bench_services_azure(struct arena *a, const char *scratch, struct bench_figures *out,
                         struct err *e)
{
    (void)scratch;
    return bench_azure(a, false, out, e);
}

int bench_services_azure_llm(struct arena *a, const char *scratch, struct bench_figures *out,
                             struct err *e)
{
    (void)scratch;
    return bench_azure(a, true, out, e);
}

/* ---- speed ---- */

/* A day of 'rate' requests/s, by chance, recorded. */
static struct arrivals *record_day(double rate, double latency_s)
{
    const struct traffic_spec spec = { .rate = rate,
                                       .day = 0.5,
                                       .peak_h = 15,
                                       .clump = 2,
                                       .clump_s = 0.01 / rate,
                                       .spell = 2,
                                       .spell_s = 30,
                                       .calm_s = 300,
                                       .client_clump = 1 };
    struct arrivals *a = arrivals_create(arrivals_bin_s(latency_s));
    struct traffic *t = heap_array(1, sizeof *t);
    double at_s;

    traffic_init(t, &spec, SEED);
    while ((at_s = traffic_next(t)) < 24.0 * 3600)
        arrivals_add(a, at_s, at_s, 0.001, 1, (const unsigned[]){ 1 });
    arrivals_advance(a, 24.0 * 3600);
    free(t);
    return a;
}

static int time_build(double rate, bool is_llm, struct bench_figures *out)
{
    const struct serving s = { .rate = rate,
                               .latency_s = 0.2,
                               .max_batch = 32,
                               .is_llm = is_llm,
                               .ttft_s = 2,
                               .tpot_s = 0.1,
                               .max_running = 128 };
    struct arrivals *a = record_day(rate, is_llm ? s.ttft_s : s.latency_s);
    struct capacity c;
    const double from_s = clock_stopwatch_s();

    capacity_build(&c, a, &s);
    out->value = clock_stopwatch_s() - from_s;
    for (int i = 0; i < arrivals_n_hours(a); i++)
        out->detail[0] += arrivals_hour(a, i).n;
    out->detail[1] = c.n_hours;
    arrivals_destroy(a);
    return 0;
}

int bench_services_build(struct arena *a, const char *scratch, struct bench_figures *out,
                         struct err *e)
{
    (void)a, (void)scratch, (void)e;
    return time_build(40, false, out);
}

int bench_services_large(struct arena *a, const char *scratch, struct bench_figures *out,
                         struct err *e)
{
    (void)a, (void)scratch, (void)e;
    return time_build(1000, false, out);
}

int bench_services_llm(struct arena *a, const char *scratch, struct bench_figures *out,
                       struct err *e)
{
    (void)a, (void)scratch, (void)e;
    return time_build(5, true, out);
}

int bench_services_lookup(struct arena *a, const char *scratch, struct bench_figures *out,
                          struct err *e)
{
    enum { N = 2000000 };
    const struct serving s = { .rate = 40, .latency_s = 0.2, .max_batch = 32 };
    struct capacity c;
    double sum = 0;

    (void)a, (void)scratch, (void)e;
    capacity_build(&c, NULL, &s);
    const double from_s = clock_stopwatch_s();
    for (int i = 0; i < N; i++)
        sum += capacity_mu(&c, 0.001 + 0.0001 * (i % 1000), 0.00001 * (i % 777));
    out->value = (clock_stopwatch_s() - from_s) / N * 1e9;
    out->detail[0] = sum / N;
    return 0;
}

int bench_services_replay(struct arena *a, const char *scratch, struct bench_figures *out,
                          struct err *e)
{
    enum { N = 1000000, TIMES = 10 };
    double *at_s = ARENA_ARRAY(a, double, N), t = 0;
    struct rng rng;

    (void)scratch, (void)e;
    rng_init(&rng, SEED, "replay");
    for (int i = 0; i < N; i++)
        at_s[i] = t += rng_exponential(&rng, 1);
    const struct replay r = { at_s, N, t };
    const double from_s = clock_stopwatch_s();
    for (int i = 0; i < TIMES; i++)
        out->detail[0] += batching_late(&r, 2 + 0.1 * i, 0.2, 32, 20, N);
    out->value = (clock_stopwatch_s() - from_s) / N / TIMES * 1e9;
    return 0;
}
