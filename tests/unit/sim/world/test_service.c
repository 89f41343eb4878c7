/* Services of the simulated world: every request once, against an oracle, joules that add up. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "catalog/cluster/cluster.h"
#include "serve/continuous.h"
#include "sim/world/serving.h"
#include "sim/world/world.h"
#include "unit/sim/small_truth.h"
#include "unit/suite.h"

#define NEAR(got, want) ck_assert_double_eq_tol((got), (want), 1e-6 * (1 + fabs((double)(want))))

/* Requests at random, 'rate' a second until 'end_s', of all lengths; when they came is kept. */
struct stream {
    struct rng rng;
    double rate, now_s, end_s;
    double at_s[100000];
    int n;
};

static struct llm_request request(const struct stream *t, int i)
{
    return (struct llm_request){ t->at_s[i], 1 + i * 37 % 3000, 1 + i % 7 };
}

static int stream_next(void *self, struct llm_request *out, int n)
{
    struct stream *t = self;

    for (int i = 0; i < n; i++) {
        t->now_s += rng_exponential(&t->rng, 1 / t->rate);
        if (t->now_s >= t->end_s)
            return i;
        ck_assert_int_lt(t->n, (int)N_ROWS(t->at_s));
        t->at_s[t->n] = t->now_s;
        out[i] = request(t, t->n++);
    }
    return n;
}

/* GPUs 0 and 1 are slow, 2 and 3 fast; the service is of the workload "small". */
struct setting {
    struct small_truth small;
    struct cluster_settings settings;
    struct world *world;
    struct executor order;
    struct sensor sensor;
    struct stream stream;
    int service;
};

enum { BATCH = 8 };
#define LATENCY_S 0.6

/* Of a language model where 'tpot_s' is above 0. */
static void setting_open_as(struct setting *s, double tpot_s, double rate, double end_s,
                            uint64_t seed)
{
    static const int types[] = { SLOW, SLOW, FAST, FAST }, nodes[] = { 0, 0, 1, 1 };
    const struct gpu_type *figures[4];

    memset(s, 0, sizeof *s);
    small_truth_init(&s->small);
    if (tpot_s > 0) {
        s->small.catalog.workloads[SMALL].task = "text-generation";
        s->small.catalog.workloads[SMALL].flop_per_sample = 4.48e9;    // 80 us a token of a prompt
    }
    for (int i = 0; i < 4; i++)
        figures[i] = &s->small.catalog.types[types[i]];
    s->settings = (struct cluster_settings){
        .sleep_after_s = 60, .wake_s = 5, .move_s = 60, .report_s = 300, .theta = 2
    };
    s->world = world_create(&(struct world_setup){ .truth = &s->small.truth,
                                                   .settings = &s->settings,
                                                   .n_gpus = 4,
                                                   .types = types,
                                                   .figures = figures,
                                                   .nodes = nodes,
                                                   .seed = 7 });
    s->order = world_executor(s->world);
    s->sensor = world_sensor(s->world);
    s->stream = (struct stream){ .rate = rate, .end_s = end_s };
    rng_init(&s->stream.rng, seed, "arrivals");
    s->service = world_add_service(s->world, &(struct world_service_spec){ .workload = SMALL,
                                                                           .latency_s = LATENCY_S,
                                                                           .tpot_s = tpot_s,
                                                                           .max_batch = BATCH,
                                                                           .seed = seed,
                                                                           .traffic = &s->stream,
                                                                           .next = stream_next });
}

static void setting_open(struct setting *s, double rate, double end_s, uint64_t seed)
{
    setting_open_as(s, 0, rate, end_s, seed);
}

static void setting_close(struct setting *s)
{
    world_destroy(s->world);
    small_truth_release(&s->small);
}

static int replica(struct setting *s, double load_s)
{
    return world_submit(s->world, &(struct world_job_spec){ .workload = SMALL,
                                                            .is_replica = true,
                                                            .service = s->service,
                                                            .load_s = load_s,
                                                            .max_gpus = 1 });
}

static int training(struct setting *s, double steps)
{
    return world_submit(
        s->world, &(struct world_job_spec){
                      .workload = BIG, .steps = steps, .reference_speed = 10, .max_gpus = 1 });
}

static void start(struct setting *s, int job, int gpu)
{
    struct err e;

    ck_assert_int_eq(s->order.start(s->order.self, &(struct placement){ job, 1, &gpu, 0 }, &e), 0);
}

static struct world_service_figures figures(struct setting *s)
{
    struct world_service_figures f;

    world_service_now(s->world, s->service, &f);
    return f;
}

static bool hear(struct setting *s, struct observation *o)
{
    if (!s->sensor.next(s->sensor.self, o))
        return false;
    s->sensor.done(s->sensor.self);
    return true;
}

static double gpus_j(const struct setting *s)
{
    double sum = 0;

    for (int g = 0; g < 4; g++)
        sum += world_gpu_now(s->world, g).energy_j;
    return sum;
}

/* ---- against an oracle ---- */

struct oracle {
    double n_late, n_served, busy_s;
};

/* One server from 'ready_s' on; those who have then waited the latency have gone. Serves those that
 * end by 'until_s'.
 */
static struct oracle oracle_serve(const double *at_s, int n, const struct batch_time *f,
                                  double ready_s, double until_s)
{
    struct oracle o = { 0 };
    double free_s = ready_s;
    int i = 0;

    for (; i < n && ready_s - at_s[i] >= LATENCY_S; i++) {
        o.n_late++;
        o.n_served++;
    }
    while (i < n) {
        const double begin_s = fmax(free_s, at_s[i]);
        int b = 0;

        while (i + b < n && b < BATCH && at_s[i + b] <= begin_s)
            b++;
        free_s = begin_s + f->t0_s + f->a_s * b;
        o.busy_s += fmax(fmin(free_s, until_s) - fmin(begin_s, until_s), 0);
        if (free_s > until_s)
            break;
        for (; b > 0; b--, i++) {
            o.n_served++;
            o.n_late += free_s - at_s[i] > LATENCY_S;
        }
    }
    return o;
}

static const double rates[] = { 0.5, 3, 6, 9 };    // the last is too much for it

EACH(one_replica_serves_as_an_oracle_does, rates)
{
    static struct setting s;
    const double until_s = 7000;

    setting_open(&s, rates[_i], INFINITY, 3);
    start(&s, replica(&s, 60), 0);
    world_advance(s.world, until_s);
    const struct batch_time f = truth_serving(&s.small.truth, SMALL, SLOW);
    const struct oracle want = oracle_serve(s.stream.at_s, s.stream.n, &f, 60, until_s);
    const struct world_service_figures got = figures(&s);

    ck_assert_double_eq(got.n_requests, want.n_served);
    ck_assert_double_eq(got.n_late, want.n_late);
    ck_assert(got.n_refused > 0 || rates[_i] < 1);
    ck_assert_int_eq(got.n_hours, 2);
    ck_assert_int_eq(got.n_starts, 1);
    ck_assert_int_eq(got.n_interruptions, 0);    // nobody had been there
    NEAR(world_gpu_now(s.world, 0).energy_j, until_s * 50 + want.busy_s * (100 - 50));
    NEAR(world_energy_j(s.world), gpus_j(&s));
    setting_close(&s);
}

/* Of a language model: the same, by the server that tables of capacity replay. */
static const double llm_rates[] = { 0.5, 2, 4 };

EACH(a_language_model_serves_as_its_server_does, llm_rates)
{
    static struct setting s;
    struct continuous_server want;
    const double until_s = 7000;
    double n_refused = 0;

    setting_open_as(&s, 0.28, llm_rates[_i], INFINITY, 3);
    start(&s, replica(&s, 60), 0);
    world_advance(s.world, until_s);
    const struct batch_time f = truth_serving(&s.small.truth, SMALL, SLOW);
    continuous_server_init(&want, f.t0_s, f.a_s, f.c_s, BATCH, LATENCY_S, 0.28, 0);
    want.free_s = 60;
    for (int i = 0; i < s.stream.n && s.stream.at_s[i] < until_s; i++) {
        const struct llm_request q = request(&s.stream, i);

        if (60 - q.at_s >= LATENCY_S)
            n_refused++;
        else
            continuous_server_arrive(&want, &q);
    }
    continuous_server_advance(&want, until_s);
    const struct world_service_figures got = figures(&s);

    ck_assert_double_eq_tol(f.c_s, 8e-5, 1e-9);
    ck_assert_double_eq(got.n_requests, want.n_served + n_refused);
    ck_assert_double_eq(got.n_late, want.n_late + n_refused);
    ck_assert(want.n_late > 0 && want.n_late < want.n_served);
    ck_assert_double_eq(got.n_refused, n_refused);
    NEAR(world_gpu_now(s.world, 0).energy_j, until_s * 50 + want.busy_s * (100 - 50));
    continuous_server_release(&want);
    setting_close(&s);
}

/* At the workload's own batch it takes what the truth's speed says, alone and beside another. */
TEST(a_batch_takes_as_long_as_a_step)
{
    struct small_truth s;

    small_truth_init(&s);
    for (int type = SLOW; type <= FAST; type++) {
        struct batch_time f = truth_serving(&s.truth, SMALL, type);

        NEAR(f.t0_s + f.a_s, 1 / truth_speed(&s.truth, SMALL, type));
        NEAR(f.tail, 1);
        serving_beside(&s.truth, SMALL, type, BIG, 1, 1, &f);
        NEAR(f.t0_s + f.a_s, 1 / truth_speed(&s.truth, SMALL, type) / (double)0.8F);
        ck_assert_double_gt(f.tail, 1);
        ck_assert(f.t0_s > 0 && f.a_s > 0);
    }
    small_truth_release(&s);
}

/* ---- every request once ---- */

/* Requests that came before now and are in no hour yet, as the world has it. */
static double unanswered(struct setting *s)
{
    const struct world_service_figures f = figures(s);

    return f.n_arrived - f.n_requests;
}

/* Orders at random; then what is left drains. */
static void meddle(struct setting *s, struct rng *r, int *jobs, int n)
{
    struct err e;

    for (int i = 0; i < 200; i++) {
        const int job = jobs[rng_below(r, (uint64_t)n)], gpu = (int)rng_below(r, 4);
        const struct placement p = { job, 1, &gpu, rng_below(r, 2) ? 90 : 0 };
        const double weights[] = { rng_uniform(r), rng_uniform(r) };

        world_advance(s->world, world_now_s(s->world) + rng_exponential(r, 20));
        switch (rng_below(r, 5)) {
        case 0:
            s->order.stop(s->order.self, job, &e);
            break;
        case 1:
            s->order.move(s->order.self, &p, &e);
            break;
        case 2:
            world_set_weights(s->world, s->service, jobs, weights, 2);
            break;
        default:
            s->order.start(s->order.self, &p, &e);
            break;
        }
        ck_assert_double_ge(unanswered(s), 0);
        NEAR(world_energy_j(s->world), gpus_j(s));
    }
}

static struct world_service_figures lived(double tpot_s, uint64_t seed, double *energy_j,
                                          double *told)
{
    static struct setting s;
    struct rng r;
    struct observation o;
    struct err e;
    int jobs[6];

    setting_open_as(&s, tpot_s, 8, 4000, seed);
    rng_init(&r, seed, "orders");
    for (int i = 0; i < 4; i++)
        jobs[i] = replica(&s, 20);
    jobs[4] = training(&s, 1e6);
    jobs[5] = training(&s, 1e6);
    meddle(&s, &r, jobs, 6);
    world_advance(s.world, fmax(world_now_s(s.world), 5000));
    for (int i = 0; i < 4; i++)
        s.order.cancel(s.order.self, jobs[i], &e);
    world_advance(s.world, world_now_s(s.world) + 5000);
    const struct world_service_figures f = figures(&s);
    ck_assert_double_eq(f.n_arrived, s.stream.n);
    ck_assert_double_eq(f.n_requests, s.stream.n);
    ck_assert(f.n_late >= f.n_refused + f.n_lost);
    *energy_j = world_energy_j(s.world);
    *told = 0;
    while (hear(&s, &o))
        for (int i = 0; o.kind == OBS_SERVED && i < o.served->n_bins; i++)
            *told += o.served->counts[i];
    NEAR(*energy_j, gpus_j(&s));
    setting_close(&s);
    return f;
}

TIMES(every_request_is_answered_refused_or_lost_once, 16)
{
    const double tpot_s = _i < 8 ? 0 : 0.3;    // batches; a language model
    double energy_j, again_j, told, told_again;
    const struct world_service_figures f = lived(tpot_s, (uint64_t)_i, &energy_j, &told);
    const struct world_service_figures g = lived(tpot_s, (uint64_t)_i, &again_j, &told_again);

    ck_assert_double_eq(told, f.n_arrived - f.n_refused);
    ck_assert_int_eq(f.n_interruptions, g.n_interruptions);    // and the same seed, the same bytes
    ck_assert(energy_j == again_j && told == told_again && f.n_late == g.n_late);
    ck_assert(f.p99_s == g.p99_s);
}

/* ---- coming and going ---- */

TEST(a_drain_loses_nothing_and_frees_its_gpu)
{
    static struct setting s;
    struct observation o;
    struct err e;

    setting_open(&s, 14, INFINITY, 5);
    const int old = replica(&s, 10), new = replica(&s, 10);
    start(&s, old, 0);
    world_advance(s.world, 100);
    start(&s, new, 2);
    world_advance(s.world, 200.3);
    ck_assert(!s.order.gpu_is_busy(s.order.self, 0));
    ck_assert_int_eq(s.order.cancel(s.order.self, old, &e), 0);
    ck_assert(s.order.gpu_is_busy(s.order.self, 0));    // there is hardly a moment without
    ck_assert(s.order.job_is_busy(s.order.self, old));
    ck_assert_int_eq(s.order.cancel(s.order.self, old, &e), 0);
    world_advance(s.world, 230);
    ck_assert(!s.order.gpu_is_busy(s.order.self, 0));

    struct world_outcome out;
    world_job_outcome(s.world, old, &out);
    ck_assert(out.is_finished && out.is_serving && out.end_s > 200.3 && out.end_s < 230);
    NEAR(world_gpu_now(s.world, 0).held_s, out.end_s);
    world_advance(s.world, 3600);
    const struct world_service_figures f = figures(&s);
    ck_assert_double_eq(f.n_lost, 0);
    ck_assert_int_eq(f.n_interruptions, 0);
    ck_assert_int_eq(f.n_starts, 2);

    bool has_finished = false;
    while (hear(&s, &o))
        has_finished |= o.kind == OBS_FINISHED && o.job == old;
    ck_assert(has_finished);
    setting_close(&s);
}

TEST(a_language_model_that_drains_ends_with_its_last_token)
{
    static struct setting s;
    struct world_outcome out;
    struct err e;

    setting_open_as(&s, 0.3, 1.5, 200, 5);
    const int old = replica(&s, 10);
    start(&s, old, 0);
    world_advance(s.world, 200);
    const double open = unanswered(&s);
    ck_assert_double_gt(open, 0);
    ck_assert_int_eq(s.order.cancel(s.order.self, old, &e), 0);
    world_advance(s.world, 230);
    world_job_outcome(s.world, old, &out);
    ck_assert(out.is_finished && out.end_s > 200.2 && out.end_s < 205);    // 7 steps of 0.25 s
    ck_assert_double_eq(figures(&s).n_lost, 0);
    ck_assert_double_eq(unanswered(&s), 0);
    setting_close(&s);
}

TEST(a_stop_loses_what_was_queued_and_interrupts)
{
    static struct setting s;
    struct err e;

    setting_open(&s, 8, INFINITY, 5);
    const int job = replica(&s, 10);
    start(&s, job, 0);
    world_advance(s.world, 300);
    const double queued = unanswered(&s);
    ck_assert_double_gt(queued, 0);
    ck_assert_int_eq(s.order.stop(s.order.self, job, &e), 0);
    ck_assert_double_eq(figures(&s).n_lost, queued);
    ck_assert_double_eq(unanswered(&s), 0);
    world_advance(s.world, 400);
    ck_assert_int_eq(figures(&s).n_interruptions, 1);    // those who found nobody are of the same
    start(&s, job, 1);
    world_advance(s.world, 500);
    ck_assert_int_eq(figures(&s).n_starts, 2);
    ck_assert_double_gt(figures(&s).n_refused, 100);
    setting_close(&s);
}

TEST(weights_say_who_gets_what)
{
    static struct setting s;
    struct observation o;
    double to[2] = { 0 };

    setting_open(&s, 6, INFINITY, 5);
    const int jobs[] = { replica(&s, 10), replica(&s, 10) };
    start(&s, jobs[0], 2);
    start(&s, jobs[1], 3);
    world_advance(s.world, 10);
    world_set_weights(s.world, s.service, jobs, (const double[]){ 3, 1 }, 2);
    world_advance(s.world, 3600);
    while (hear(&s, &o))
        for (int i = 0; o.kind == OBS_SERVED && i < o.served->n_bins; i++)
            to[o.job == jobs[1]] += o.served->counts[i];
    ck_assert_double_eq_tol(to[0] / (to[0] + to[1]), 0.75, 0.02);
    setting_close(&s);
}

/* ---- what is told ---- */

TEST(what_is_told_covers_the_time_without_gaps)
{
    static struct setting s;
    struct observation o;
    double until_s = 10, requests = 0, late = 0, busy_s = 0, arrived = 0;
    int n = 0;

    setting_open(&s, 5, INFINITY, 5);
    start(&s, replica(&s, 10), 0);
    world_advance(s.world, 1000);
    while (hear(&s, &o)) {
        if (o.kind != OBS_SERVED)
            continue;
        ck_assert(o.served->is_ready && !o.served->is_false);
        NEAR(o.served->from_s, until_s);
        NEAR(o.served->bin_s, LATENCY_S / 8);
        until_s = o.served->to_s;
        requests += o.served->n_requests;
        late += o.served->n_late;
        busy_s += o.served->busy_s;
        for (int i = 0; i < o.served->n_bins; i++)
            arrived += o.served->counts[i];
        n++;
    }
    const struct world_service_figures f = figures(&s);
    NEAR(until_s, 1000);
    ck_assert_int_eq(n, 1 + 99);    // when it was ready, and every ten seconds
    ck_assert_double_eq(requests, f.n_requests - f.n_refused);
    ck_assert_double_eq(late, f.n_late - f.n_refused);
    ck_assert_double_eq(arrived, f.n_arrived - f.n_refused);
    NEAR(world_gpu_now(s.world, 0).energy_j, 1000 * 50 + busy_s * 50);
    setting_close(&s);
}

TEST(a_language_model_tells_how_long_its_requests_are)
{
    for (int is_llm = 0; is_llm < 2; is_llm++) {
        static struct setting s;
        struct observation o;
        double prompts = 0, outputs = 0, arrived = 0;

        setting_open_as(&s, is_llm ? 0.3 : 0, 2, INFINITY, 5);
        start(&s, replica(&s, 10), 0);
        world_advance(s.world, 1000);
        while (hear(&s, &o)) {
            if (o.kind != OBS_SERVED)
                continue;
            ck_assert_int_eq(o.served->has_lengths, is_llm);
            for (int i = 0; i < LENGTH_BUCKETS; i++) {
                prompts += o.served->lengths.prompt[i];
                outputs += o.served->lengths.output[i];
            }
            for (int i = 0; i < o.served->n_bins; i++)
                arrived += o.served->counts[i];
            ck_assert_int_le(lengths_quantile(o.served->lengths.output, 0.999), 8);
        }
        ck_assert_double_gt(arrived, 1000);
        ck_assert_double_eq(prompts, is_llm ? arrived : 0);
        ck_assert_double_eq(outputs, prompts);
        setting_close(&s);
    }
}

/* ---- neighbours ---- */

TEST(training_beside_it_lengthens_the_tail_and_is_slowed_by_as_much_as_it_is_busy)
{
    static struct setting s;
    struct world_outcome out;
    double p99_s[2];

    for (int is_beside = 0; is_beside < 2; is_beside++) {
        setting_open(&s, 1.5, INFINITY, 5);
        start(&s, replica(&s, 0), 2);
        const int trained = training(&s, 1e6);
        if (is_beside)
            start(&s, trained, 2);
        world_advance(s.world, 7200);
        world_job_outcome(s.world, trained, &out);
        p99_s[is_beside] = figures(&s).p99_s;
        NEAR(world_energy_j(s.world), gpus_j(&s));
        setting_close(&s);
    }
    ck_assert_double_gt(p99_s[1], 1.5 * p99_s[0]);
    ck_assert_double_gt(out.speed, 1.1 * 20 * 0.5);    // beside one that is always busy
    ck_assert_double_lt(out.speed, 0.999 * 20);
}
