/* careful.c - tables of capacity where no arrivals are recorded, and where they are. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/rng.h"
#include "serve/capacity.h"
#include "serve/continuous.h"

/* Fitted on Azure's trace and 7,112 service-hours made of it (docs/experiments.md). */
#define CAREFUL 2.2    // what Poisson arrivals promise over what bursts leave
#define METRICS_MARGIN 1.25
#define METRICS_RATE_MAX 1.4    // of the rate that was seen

enum { N_DRAWN = 20000, N_LLM_DRAWN = 3000, FEW = 1000, SEED = 26 };
enum { ARRIVALS_MAX = 40000, LLM_ARRIVALS_MAX = 30000 };    // of an hour; of all hours

/* Clumps of 'clump' arrivals on average, at the same time, at 'rate' a second. */
static struct replay draw_clumps(struct arena *a, const struct serving *spec, double clump,
                                 double rate)
{
    const int n = spec->is_llm ? N_LLM_DRAWN : N_DRAWN;
    double *at_s = ARENA_ARRAY(a, double, (size_t)n), t = 0;
    struct rng rng;

    rng_init(&rng, SEED, "serve/clumps");
    for (int i = 0; i < n;) {
        t += rng_exponential(&rng, clump / rate);
        do
            at_s[i++] = t;
        while (i < n && rng_uniform(&rng) > 1 / clump);
    }
    return (struct replay){ at_s, n, n / rate };
}

static void divide(struct capacity *c, double by)
{
    for (int k = 0; k < c->n_gammas; k++)
        for (int i = 0; i < c->n_alphas; i++)
            for (int j = 0; j < CAPACITY_RATES; j++)
                c->log_f[k][i][j] -= log(by);
}

/* Where even a lone prompt takes long beside its promise, steps that were so many times shorter
 * would hold nothing anywhere: of language models the rate is divided.
 */
static void divide_rates(struct capacity *c, double by)
{
    for (int j = 0; j < CAPACITY_RATES; j++)
        c->log_rate[j] -= log(by);
    c->rate_ref /= by;
}

static void build_careful(struct capacity *c, const struct lengths *l, const struct serving *spec)
{
    const double rate = fmax(spec->rate, 1e-6);
    struct arena a;

    arena_init(&a);
    const struct replay r = draw_clumps(&a, spec, 1, spec->is_llm ? CAREFUL * rate : rate);
    capacity_build_replays(c, &r, 1, l, spec);
    if (spec->is_llm)
        divide_rates(c, CAREFUL);
    else
        divide(c, CAREFUL);
    c->source = CAPACITY_CAREFUL;
    c->margin = 1;
    c->n_hours = 0;
    arena_release(&a);
}

/* ---- recorded hours ---- */

static double count_lengths(const struct lengths *l)
{
    double n = 0;

    for (int i = 0; i < LENGTH_BUCKETS; i++)
        n += l->prompt[i];
    return n;
}

/* All lengths of all hours; NULL where nobody told any. */
static const struct lengths *gather_lengths(struct arena *mem, const struct arrivals *a)
{
    struct lengths *all = ARENA_NEW(mem, struct lengths);

    for (int h = 0; h < arrivals_n_hours(a); h++) {
        const struct arrivals_hour hour = arrivals_hour(a, h);

        lengths_join(all, &hour.lengths);
    }
    return count_lengths(all) > 0 ? all : NULL;
}

/* Those below the other table, cell by cell, at rates that both have. */
static void take_lesser(struct capacity *c, const struct capacity *other)
{
    for (int k = 0; k < c->n_gammas; k++)
        for (int i = 0; i < c->n_alphas; i++)
            for (int j = 0; j < CAPACITY_RATES; j++)
                c->log_f[k][i][j] = fmin(c->log_f[k][i][j], other->log_f[k][i][j]);
}

void capacity_build(struct capacity *c, const struct arrivals *a, const struct serving *spec)
{
    const int n_hours = a ? arrivals_n_hours(a) : 0;
    struct arena mem;
    double n_all = 0;
    int n = 0;

    arena_init(&mem);
    struct replay *r = ARENA_ARRAY(&mem, struct replay, (size_t)n_hours + 1);
    const int most = spec->is_llm ? LLM_ARRIVALS_MAX / (n_hours + 1) : ARRIVALS_MAX;
    for (int h = 0; h < n_hours; h++) {
        const struct arrivals_hour hour = arrivals_hour(a, h);
        double *at_s = ARENA_ARRAY(&mem, double, (size_t)fmin(hour.n, most));

        r[n].n = arrivals_expand(a, h, at_s, (int)fmin(hour.n, most), &r[n].span_s);
        r[n].at_s = at_s;
        n_all += r[n].n;
        n += r[n].n > 0;
    }
    const struct lengths *lengths = n ? gather_lengths(&mem, a) : NULL;
    if (n)
        capacity_build_replays(c, r, n, lengths, spec);
    if (n_all < FEW) {    // too few to know their bursts
        struct capacity poisson;
        struct serving same = *spec;

        if (n)
            same.rate = c->rate_ref;
        build_careful(&poisson, lengths, &same);
        if (n)
            take_lesser(c, &poisson);
        else
            *c = poisson;
    }
    arena_release(&mem);
}

/* ---- metrics ---- */

/* What a server would show with such clumps; of latency or, of a language model, first tokens. */
struct shown {
    double late_share, p99_s, queue_s;
};

static struct shown show_batches(const struct replay *r, const struct serving *spec,
                                 const struct serving_metrics *m)
{
    struct batch_server s;

    batch_server_init(&s, m->t0_s, m->a_s, spec->max_batch, spec->latency_s, 0);
    for (int i = 0; i < r->n; i++)
        batch_server_arrive(&s, r->at_s[i]);
    batch_server_advance(&s, 1e15);
    double sum_s = 0;
    for (int i = 0; i < LATENCY_BUCKETS; i++)
        sum_s += s.latencies.n[i] * ldexp(1 + (i % 16 + 0.5) / 16, i / 16 - 14);
    const double served_s = m->t0_s + m->a_s * s.n_served / s.n_batches;
    const struct shown out = { s.n_late / s.n_served, latencies_quantile(&s.latencies, 0.99),
                               fmax(sum_s / s.n_served - served_s, 0) };
    batch_server_release(&s);
    return out;
}

static struct shown show_llm(const struct replay *r, const struct serving *spec,
                             const struct serving_metrics *m, const struct lengths *l)
{
    struct continuous_server s;
    struct shown out = { .queue_s = (double)NAN };
    struct rng rng;

    continuous_server_init(&s, m->t0_s, m->a_s, m->c_s, spec->max_running, spec->ttft_s,
                           spec->tpot_s, 0);
    rng_init(&rng, SEED, "serve/lengths");
    for (int i = 0; i < r->n; i++) {
        struct llm_request q = { r->at_s[i], LLM_PROMPT_USUAL, LLM_OUTPUT_USUAL };

        if (l) {
            q.prompt = lengths_quantile(l->prompt, rng_uniform(&rng));
            q.output = lengths_quantile(l->output, rng_uniform(&rng));
        }
        continuous_server_arrive(&s, &q);
    }
    continuous_server_advance(&s, 1e15);
    out.late_share = s.n_late / s.n_served;
    out.p99_s = latencies_quantile(&s.ttft, 0.99);
    continuous_server_release(&s);
    return out;
}

static bool is_as_bad(const struct shown *s, const struct serving_metrics *m)
{
    if (m->late_share > 0)
        return s->late_share >= m->late_share;
    if (m->p99_s > 0)
        return s->p99_s >= m->p99_s;
    return !(m->queue_s > 0) || s->queue_s >= m->queue_s;
}

void capacity_from_metrics(struct capacity *c, const struct serving *spec,
                           const struct serving_metrics *m)
{
    static const double clumps[] = { 1, 1.3, 1.7, 2.3, 3.2, 4.5, 6.5, 10, 15, 24, 40, 70 };
    enum { N_CLUMPS = sizeof clumps / sizeof *clumps };
    struct arena a;
    bool is_found = false;

    if (!(m->rate > 0 && m->t0_s > 0 && m->a_s >= 0)) {
        build_careful(c, NULL, spec);
        return;
    }
    arena_init(&a);
    const struct lengths *l = count_lengths(&m->lengths) > 0 ? &m->lengths : NULL;
    for (int i = 0; i < N_CLUMPS && !is_found; i++) {
        const struct replay r = draw_clumps(&a, spec, clumps[i], m->rate);
        const struct shown s = spec->is_llm ? show_llm(&r, spec, m, l) : show_batches(&r, spec, m);

        is_found = is_as_bad(&s, m) || i + 1 == N_CLUMPS;
        if (is_found)
            capacity_build_replays(c, &r, 1, l, spec);
    }
    c->source = CAPACITY_METRICS;
    c->margin = METRICS_MARGIN;
    c->rate_max = METRICS_RATE_MAX * m->rate;
    c->n_hours = 0;
    arena_release(&a);
}
