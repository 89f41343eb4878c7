/* Servers against a simulator that goes request by request, and against what theory knows. */
#include "serve/batching.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "serve/continuous.h"
#include "unit/suite.h"

enum { N = 4000 };

static double at[N];

/* Clumps of 'clump' on average, one request a second. */
static struct replay draw(int seed, double clump)
{
    struct rng r;
    double t = 0;

    rng_init(&r, (uint64_t)seed, "test");
    for (int i = 0; i < N;) {
        t += rng_exponential(&r, clump);
        do
            at[i++] = t;
        while (i < N && rng_uniform(&r) > 1 / clump);
    }
    return (struct replay){ at, N, t };
}

/* The oracle: who is in which batch, one request after the other. */
static int late_one_by_one(const struct replay *r, double t0, double a, int max, double limit)
{
    double free_s = 0;
    int late = 0, i = 0;

    while (i < r->n) {
        const double begin = r->at_s[i] > free_s ? r->at_s[i] : free_s;
        int n = 0;

        for (int k = i; k < r->n && n < max && r->at_s[k] <= begin; k++)
            n++;
        free_s = begin + (t0 + a * n);
        for (int k = i; k < i + n; k++)
            late += free_s - r->at_s[k] > limit;
        i += n;
    }
    return late;
}

static const struct {
    double clump, t0, a, latency;
    int max;
} servers[] = {
    { 1, 0.9, 0, 5, 1 },      { 1, 2, 0.1, 6, 8 },     { 5, 1, 0.3, 9, 16 },
    { 20, 0.2, 0.5, 30, 64 }, { 3, 4, 0.01, 5, 1000 }, { 1, 3, 0.2, 2, 4 },
};

EACH(a_replay_counts_what_going_one_by_one_counts, servers)
{
    for (int seed = 0; seed < 5; seed++) {
        const struct replay r = draw(seed, servers[_i].clump);
        const int late = batching_late(&r, servers[_i].t0, servers[_i].a, servers[_i].max,
                                       servers[_i].latency, N);

        ck_assert_int_eq(late, late_one_by_one(&r, servers[_i].t0, servers[_i].a, servers[_i].max,
                                               servers[_i].latency));
    }
}

EACH(a_server_fed_step_by_step_counts_the_same, servers)
{
    const struct replay r = draw(7, servers[_i].clump);
    const int want =
        batching_late(&r, servers[_i].t0, servers[_i].a, servers[_i].max, servers[_i].latency, N);
    struct batch_server s;
    struct rng rng;

    rng_init(&rng, 3, "looks");
    batch_server_init(&s, servers[_i].t0, servers[_i].a, servers[_i].max, servers[_i].latency, 0);
    for (int i = 0; i < r.n; i++) {
        if (rng_uniform(&rng) < 0.3 && r.at_s[i] > s.now_s)    // looks in between change nothing
            batch_server_advance(&s, rng_between(&rng, s.now_s, r.at_s[i]));
        ck_assert(batch_server_arrive(&s, r.at_s[i]));
    }
    batch_server_advance(&s, 1e9);
    ck_assert_double_eq(s.n_served, N);
    ck_assert_double_eq(s.n_late, want);
    ck_assert_double_eq(s.latencies.total, N);
    ck_assert_double_eq_tol(s.busy_s, s.n_batches * servers[_i].t0 + N * servers[_i].a, 1e-6);
    batch_server_release(&s);
}

TEST(poisson_arrivals_one_by_one_wait_as_the_formula_says)
{
    struct batch_server s;
    struct rng rng;
    double t = 0, load = 0.7, n = 400000;

    rng_init(&rng, 5, "md1");
    batch_server_init(&s, load, 0, 1, 1e9, 0);
    for (int i = 0; i < (int)n; i++)
        batch_server_arrive(&s, t += rng_exponential(&rng, 1));
    batch_server_advance(&s, 1e9);
    double sum = 0;
    for (int i = 0; i < LATENCY_BUCKETS; i++)
        sum += s.latencies.n[i] * ldexp(1 + (i % 16 + 0.5) / 16, i / 16 - 14);
    const double want = load + load * load / (2 * (1 - load));    // Pollaczek-Khinchine, M/D/1
    ck_assert_double_eq_tol(sum / n, want, 0.05 * want);
    ck_assert_double_eq_tol(s.busy_s, load * n, 1e-6 * n);
    batch_server_release(&s);
}

TEST(a_draining_server_serves_what_waits_and_takes_no_more)
{
    struct batch_server s;

    batch_server_init(&s, 1, 0, 1, 10, 0);
    batch_server_arrive(&s, 0);
    batch_server_arrive(&s, 0.5);
    s.is_draining = true;
    ck_assert(!batch_server_arrive(&s, 0.6));
    batch_server_advance(&s, 1.5);
    ck_assert_double_eq(s.n_served, 1);
    ck_assert_double_eq_tol(s.busy_s, 1.5, 1e-12);
    ck_assert_int_eq(batch_server_abandon(&s), 1);
    ck_assert_double_eq(s.n_late, 1);
    ck_assert_double_eq(s.n_refused, 1);
    batch_server_release(&s);
}

TEST(quantiles_are_within_a_bucket)
{
    struct latencies l = { .total = 0 };

    ck_assert(isnan(latencies_quantile(&l, 0.5)));
    for (int i = 1; i <= 1000; i++)
        latencies_add(&l, 0.001 * i);
    ck_assert_double_eq_tol(latencies_quantile(&l, 0.99), 0.99, 0.04);
    ck_assert_double_eq_tol(latencies_quantile(&l, 0.5), 0.5, 0.02);
}

/* The oracle of a language model's server: every step, every running request. */
static int llm_one_by_one(const struct llm_request *r, int n, const struct continuous_server *s)
{
    int left[512], read = 0, next = 0, late = 0, n_live = 0, live[512];
    double first[512], t = 0;
    bool was_late[512];

    while (next < n || n_live) {
        int tokens = 0, n_first = 0;

        if (!n_live && r[next].at_s > t)
            t = r[next].at_s;
        int k = next;
        while (k < n && r[k].at_s <= t && n_live + n_first < s->max_running &&
               tokens < CONTINUOUS_CHUNK) {
            const int room = CONTINUOUS_CHUNK - tokens, want = r[k].prompt - read;

            if (want > room) {
                read += room;
                tokens += room;
                break;
            }
            tokens += want;
            read = 0;
            n_first++;
            k++;
        }
        t += s->t0_s + s->a_s * n_live + s->c_s * tokens;
        for (int i = 0; i < n_live;) {
            const int q = live[i];

            if (--left[q] > 0) {
                i++;
                continue;
            }
            late += was_late[q] || (t - first[q]) / (r[q].output - 1) > s->tpot_s;
            live[i] = live[--n_live];
        }
        for (; next < k; next++) {
            first[next] = t;
            left[next] = r[next].output - 1;
            was_late[next] = t - r[next].at_s > s->ttft_s;
            if (left[next] > 0)
                live[n_live++] = next;
            else
                late += was_late[next];
        }
    }
    return late;
}

TIMES(a_language_models_server_counts_what_every_step_counts, 20)
{
    struct llm_request r[300];
    struct rng rng;
    double t = 0;

    rng_init(&rng, (uint64_t)_i, "llm");
    const struct continuous_server s = { .t0_s = 0.0313,
                                         .a_s = 0.00041,
                                         .c_s = 0.000097,
                                         .max_running = 4 + _i,
                                         .ttft_s = 0.8,
                                         .tpot_s = 0.0577 };
    for (int i = 0; i < 300; i++) {
        t += rng_exponential(&rng, 0.5);
        r[i] =
            (struct llm_request){ t, 1 + (int)rng_below(&rng, 6000), 1 + (int)rng_below(&rng, 60) };
    }
    const int late = continuous_late(r, 300, &s, 1, 1, 300);
    ck_assert_int_gt(late, 0);
    ck_assert_int_eq(late, llm_one_by_one(r, 300, &s));
}
