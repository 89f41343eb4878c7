/* Generated traces: repeatable, as heavy as asked, with promises of the right size. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "catalog/cluster/cluster.h"
#include "serve/continuous.h"
#include "sim/trace/arrivals.h"
#include "sim/trace/generate.h"
#include "unit/sim/drawing.h"
#include "unit/suite.h"

static struct trace generate(struct drawing *s, const struct trace_generate *o)
{
    struct trace t;
    struct err e;

    ck_assert_int_eq(trace_generate(&s->arena, o, &s->draw, &s->cluster, &t, &e), 0);
    return t;
}

TEST(capacity_counts_gpus_by_their_speed)
{
    struct drawing s;

    drawing_open(&s, "slow", 1);
    ck_assert_double_eq_tol(trace_capacity(&s.draw, &s.cluster), 3 + 2, 1e-9);
    ck_assert_int_eq(s.draw.n_training, 2);    // the huge one does not fit the reference
    ck_assert_int_eq(s.draw.fastest, FAST);
    drawing_close(&s);
}

TEST(load_is_offered_work_over_capacity)
{
    const struct trace_generate o = { .n_jobs = 20000, .load = 0.6, .seed = 1 };
    struct drawing s;
    double work_s = 0;
    struct trace t;

    drawing_open(&s, "slow", 1);
    t = generate(&s, &o);
    for (int i = 0; i < t.n_jobs; i++) {
        double speed = strcmp(t.jobs[i].workload, "big") == 0 ? 10 : 4;
        double alone_s = t.jobs[i].steps / speed;

        ck_assert(alone_s >= WORK_LOW_S - 1 && alone_s <= WORK_HIGH_S + 1);
        work_s += alone_s;
    }
    ck_assert_double_eq_tol(work_s / (t.jobs[t.n_jobs - 1].at_s * 5), 0.6, 0.02);
    drawing_close(&s);
}

TEST(promises_are_a_part_of_the_reference_speed_or_only_the_fastest_keeps_them)
{
    const struct trace_generate o = { .n_jobs = 20000, .load = 0.6, .seed = 2 };
    struct drawing s;
    struct trace t;
    int n_hard = 0;

    drawing_open(&s, "slow", 2);
    t = generate(&s, &o);
    for (int i = 0; i < t.n_jobs; i++) {
        double speed = strcmp(t.jobs[i].workload, "big") == 0 ? 10 : 4;
        double part = t.jobs[i].min_throughput / speed;

        ck_assert((part >= 0.3 && part < 0.9) || (part > 1 && part < 2));
        n_hard += part > 1;
    }
    ck_assert_double_eq_tol((double)n_hard / t.n_jobs, 0.1, 0.01);
    drawing_close(&s);
}

TEST(kinds_come_in_the_shares_that_were_asked)
{
    const struct trace_generate o = {
        .n_jobs = 10000,
        .rate_per_h = 60,
        .inference = 0.25,
        .gangs = 0.2,
        .seed = 3,
    };
    struct drawing s;
    struct trace t;
    int n_servers = 0, n_gangs = 0;

    drawing_open(&s, "slow", 3);
    t = generate(&s, &o);
    for (int i = 0; i < t.n_jobs; i++) {
        n_servers += t.jobs[i].is_inference;
        n_gangs += t.jobs[i].n_gpus > 1;
        ck_assert(t.jobs[i].n_gpus <= 3);    // no type has more
        ck_assert(!t.jobs[i].is_inference || (t.jobs[i].rate > 0 && t.jobs[i].duration_s > 0));
    }
    ck_assert_double_eq_tol(n_servers / 1e4, 0.25, 0.02);
    ck_assert_double_eq_tol(n_gangs / 1e4, 0.75 * 0.2, 0.02);
    ck_assert_double_eq_tol(t.jobs[t.n_jobs - 1].at_s / 60 / 1e4, 1, 0.05);
    drawing_close(&s);
}

TEST(the_same_seed_gives_the_same_trace_and_another_another)
{
    struct buf text[3];

    for (int i = 0; i < 3; i++) {
        const struct trace_generate o = { .n_jobs = 50, .load = 0.5, .seed = i == 2 ? 8 : 7 };
        struct drawing s;
        struct trace t;

        drawing_open(&s, "slow", o.seed);
        t = generate(&s, &o);
        buf_init(&text[i], 1 << 20);
        ck_assert_int_eq(trace_write(&t, &text[i]), 0);
        drawing_close(&s);
    }
    ck_assert_str_eq(buf_text(&text[0]), buf_text(&text[1]));
    ck_assert_str_ne(buf_text(&text[0]), buf_text(&text[2]));
    for (int i = 0; i < 3; i++)
        buf_release(&text[i]);
}

TEST(a_reference_that_is_not_there_is_an_error)
{
    struct trace_draw d;
    struct drawing s;
    struct err e;

    drawing_open(&s, "slow", 1);
    ck_assert_int_lt(trace_draw_init(&d, &s.arena, &s.small.truth, NULL, "a100", 1, &e), 0);
    ck_assert_ptr_nonnull(strstr(e.text, "'a100'"));
    drawing_close(&s);
}

TEST(services_are_drawn_from_their_seed_and_their_requests_come_in_order)
{
    const struct trace_generate_services o = {
        .n_services = 20, .rate = 5, .end_s = 7200, .seed = 3
    };
    struct service_arrivals *r;
    struct trace t = { 0 }, again = { 0 };
    struct drawing s;
    struct buf one, two;
    struct llm_request came[100];
    double last_s = 0;
    struct err e;
    int n, sum = 0;

    drawing_open(&s, "slow", 1);
    buf_init(&one, 1 << 20);
    buf_init(&two, 1 << 20);
    trace_generate_services(&s.arena, &o, &s.draw, &t);
    ck_assert_int_eq(trace_write(&t, &two), 0);
    drawing_close(&s);
    drawing_open(&s, "slow", 1);
    trace_generate_services(&s.arena, &o, &s.draw, &again);
    ck_assert_int_eq(trace_write(&again, &one), 0);
    ck_assert_str_eq(buf_text(&one), buf_text(&two));
    buf_clear(&two);
    ck_assert_int_eq(trace_parse(&s.arena, "t", buf_text(&one), one.len, &t, &e), 0);
    ck_assert_int_eq(trace_write(&t, &two), 0);
    ck_assert_str_eq(buf_text(&one), buf_text(&two));
    ck_assert_int_eq(t.n_services, 20);
    for (int i = 0; i < 20; i++)
        ck_assert(t.services[i].latency_s > 0 && t.services[i].rate > 0 && t.services[i].rate <= 5);
    ck_assert_int_eq(service_arrivals_open(&s.arena, "t", &t.services[0], &r, &e), 0);
    while ((n = service_arrivals_next(r, came, 100)) > 0) {
        for (int i = 0; i < n; i++, sum++) {
            const double at_s = came[i].at_s;

            ck_assert(at_s >= last_s && at_s >= t.services[0].at_s && at_s < 7200);
            last_s = at_s;
        }
    }
    ck_assert_int_gt(sum, 100);
    buf_release(&one);
    buf_release(&two);
    drawing_close(&s);
}
