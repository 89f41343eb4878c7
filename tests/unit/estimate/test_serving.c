/* Step times of servers: lines through batches, what replicas show, whom they may have beside them.
 */
#include "estimate/serving.h"

#include <math.h>
#include <string.h>

#include "base/err.h"
#include "catalog/catalog.h"
#include "estimate/estimate.h"
#include "nn/gp.h"
#include "unit/suite.h"
#include "unit/support.h"

/* One server of 32 with all its rungs, one of which nobody has added any, and two that train. */
static const char some[] =
    "type v100\ntype a100\n"
    "workload s family=s params=1e7 flop_per_sample=4e9 bytes_per_sample=1e7 batch=32 inference=1\n"
    "workload u family=u params=1e7 flop_per_sample=4e9 bytes_per_sample=1e7 batch=32 inference=1\n"
    "workload t family=t params=1e8 flop_per_sample=1e10 bytes_per_sample=1e7 batch=64\n"
    "workload n family=n inference=1\n";
enum { S, U, T, N };
enum { V100, A100 };

static struct world w;

static void set_up(void)
{
    struct err e = { 0 };

    nn_init();
    world_init(&w, some);
    ck_assert_msg(serving_meet(&w.catalog, S, &e) == 0, "%s", e.text);
    estimate_use(&w.est, NULL, ESTIMATOR_HIERARCHICAL);
    estimate_refresh(&w.est);
}

static void tear_down(void)
{
    world_release(&w);
}

FIXTURE(set_up, tear_down)

static double tau_at(struct serving_estimate is, double batch)
{
    return exp(is.ln_t0) + exp(is.ln_a) * batch;
}

/* A thousand batches of the mean size, in steps of t0 + a b. */
static void see(int type, int neighbour, double batch, double t0, double a)
{
    const struct serving_seen seen = { 1000 * batch, 1000, 1000 * (t0 + a * batch), 1 };
    struct measurement m;
    struct err e = { 0 };

    ck_assert(serving_measure(&w.est, S, type, neighbour, &seen, &m));
    ck_assert_msg(catalog_record(&w.catalog, &m, 0, &e) == 0, "%s", e.text);
    estimate_refresh(&w.est);
}

/* ---- rungs ---- */

TEST(every_power_of_two_up_to_the_batch_is_a_workload)
{
    struct err e;
    int n = w.catalog.n_workloads;

    ck_assert_int_eq(n, N + 1 + 5);    // 1 to 16, and 32 is itself
    for (int b = 1; b < 32; b *= 2) {
        char name[64];
        snprintf(name, sizeof name, "s (batch size %d)", b);
        int at = catalog_find_workload(&w.catalog, name);
        ck_assert_msg(at >= 0, "%s", name);
        ck_assert_double_eq(w.catalog.workloads[at].batch, b);
        ck_assert_str_eq(w.catalog.workloads[at].family, "s");
    }
    ck_assert_int_eq(serving_meet(&w.catalog, S, &e), 0);
    ck_assert_int_eq(serving_meet(&w.catalog, N, &e), 0);    // it has no batch
    ck_assert_int_eq(w.catalog.n_workloads, n);
}

/* ---- what is believed ---- */

TEST(steps_grow_with_the_batch_and_the_cautious_line_is_above_every_point)
{
    static const int asked[][2] = { { S, -1 }, { S, S }, { S, T }, { U, -1 }, { U, T }, { N, -1 } };
    double t0, a;

    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        struct serving_estimate is = estimate_serving(&w.est, asked[i][0], V100, asked[i][1]);
        ck_assert(isfinite(is.ln_t0) && isfinite(is.ln_a) && is.n >= 1);
        ck_assert(is.t0_sd > 0 && is.a_sd > 0 && fabs(is.corr) <= 1);
        ck_assert(isnan(is.ln_prefill));
        for (double z = 0; z < 4; z += 1) {
            serving_cautious(&is, z, &t0, &a);
            for (int k = 0; k < is.n; k++)
                ck_assert_double_ge((t0 + a * is.at[k].batch) * (1 + 1e-12),
                                    exp(is.at[k].ln_tau + z * is.at[k].sd));
        }
    }
}

TEST(asking_leaves_no_trace)
{
    struct cell_estimate before = estimate_cell(&w.est, T, V100, S);
    struct serving_estimate is = estimate_serving(&w.est, S, V100, T);

    for (int i = 0; i < 3; i++)
        estimate_serving(&w.est, i, A100, i);
    struct serving_estimate again = estimate_serving(&w.est, S, V100, T);
    struct cell_estimate after = estimate_cell(&w.est, T, V100, S);
    ck_assert(memcmp(&is, &again, sizeof is) == 0);
    ck_assert(memcmp(&before, &after, sizeof before) == 0);
}

TEST(who_writes_text_has_a_price_of_prompts)
{
    struct err e;
    struct workload chat = w.catalog.workloads[S];
    int at;

    chat.name = "chat (batch size 8)";
    chat.batch = 8;
    chat.task = "text-generation";
    chat.flop_per_sample = 16e9;
    ck_assert_int_eq(catalog_add_workload(&w.catalog, &chat, &at, &e), 0);
    estimate_refresh(&w.est);
    double v100 = estimate_serving(&w.est, at, V100, -1).ln_prefill;
    double a100 = estimate_serving(&w.est, at, A100, -1).ln_prefill;
    ck_assert(exp(v100) > 1e-5 && exp(v100) < 1e-2);
    ck_assert_double_lt(a100, v100);
}

/* ---- what replicas show ---- */

TEST(what_a_replica_shows_moves_t0_and_a_here_and_elsewhere)
{
    struct serving_estimate before = estimate_serving(&w.est, S, V100, -1);
    struct serving_estimate there = estimate_serving(&w.est, S, A100, -1);
    double t0 = 3 * exp(before.ln_t0), a = 3 * exp(before.ln_a);

    see(V100, -1, 1.2, t0, a);
    see(V100, -1, 9, t0, a);
    see(V100, -1, 27, t0, a);
    struct serving_estimate is = estimate_serving(&w.est, S, V100, -1);
    for (double b = 1; b <= 32; b *= 2)
        ck_assert_double_eq_tol(tau_at(is, b) / (t0 + a * b), 1, 0.12);
    ck_assert_double_lt(is.t0_sd, before.t0_sd);
    ck_assert_double_gt(tau_at(estimate_serving(&w.est, S, A100, -1), 8), 1.2 * tau_at(there, 8));
}

TEST(a_neighbour_has_two_factors)
{
    struct serving_estimate alone = estimate_serving(&w.est, S, V100, -1);
    double t0 = exp(alone.ln_t0), a = exp(alone.ln_a);

    for (double b = 1; b <= 32; b *= 2) {
        see(V100, -1, b, t0, a);
        see(V100, S, b, t0, 2 * a);
    }
    alone = estimate_serving(&w.est, S, V100, -1);
    struct serving_estimate is = estimate_serving(&w.est, S, V100, S);
    ck_assert_double_eq_tol(exp(is.ln_a - alone.ln_a), 2, 0.2);
    ck_assert_double_lt(exp(is.ln_t0 - alone.ln_t0), 1.2);
}

static const struct {
    const char *name;
    struct serving_seen seen;
} nonsense[] = {
    { "nothing", { 0, 0, 0, 1 } },
    { "a few batches", { 9, 9, 1, 1 } },
    { "fewer requests than batches", { 10, 100, 1, 1 } },
    { "no time", { 100, 100, 0, 1 } },
    { "time that runs backwards", { 100, 100, -1, 1 } },
    { "nobody said", { NAN, NAN, NAN, 1 } },
    { "for ever", { 100, 100, INFINITY, 1 } },
};

EACH(numbers_that_no_server_has_tell_nothing, nonsense)
{
    struct measurement m;

    ck_assert_msg(!serving_measure(&w.est, S, V100, -1, &nonsense[_i].seen, &m), "%s",
                  nonsense[_i].name);
}

static const struct {
    const char *name;
    double busy;
    bool tells;
} busy[] = {
    { "a neighbour at work all the time", 1, true },
    { "one that is for half of it counts as if it always were", 0.5, true },
    { "one that hardly works tells nothing", 0.1, false },
};

EACH(what_a_neighbour_does_is_brought_to_all_of_the_time, busy)
{
    struct serving_estimate alone = estimate_serving(&w.est, S, V100, -1);
    double tau = tau_at(alone, 8), seen_s = tau * (1 + 0.4 * busy[_i].busy);
    const struct serving_seen seen = { 8000, 1000, 1000 * seen_s, busy[_i].busy };
    struct measurement m;

    ck_assert_msg(serving_measure(&w.est, S, V100, S, &seen, &m) == busy[_i].tells, "%s",
                  busy[_i].name);
    if (busy[_i].tells)
        ck_assert_double_eq_tol(1 / m.throughput, 1.4 * tau, 1e-6 * tau);
}

/* ---- neighbours ---- */

TEST(training_comes_in_where_there_is_room_for_its_tail_or_that_was_measured)
{
    struct serving_estimate is = estimate_serving(&w.est, S, V100, T);
    double t0, a;

    ck_assert_double_gt(is.tail, 2);
    ck_assert(!is.is_tail_measured);
    serving_cautious(&is, SERVING_Z, &t0, &a);
    double fits = 2 * (t0 + a) * is.tail * 1.01, p99 = fits / 12;
    ck_assert(serving_is_safe(&w.est, S, V100, T, fits, p99, SERVING_Z));
    ck_assert(!serving_is_safe(&w.est, S, V100, T, fits, p99 * 1.01, SERVING_Z));
    ck_assert(!serving_is_safe(&w.est, S, V100, T, fits / 1.02, p99 / 2, SERVING_Z));
    for (int i = 0; i < 20; i++)
        serving_note_tail(&w.est, S, V100, T, 1.5, 0.2);
    is = estimate_serving(&w.est, S, V100, T);
    ck_assert(is.is_tail_measured);
    ck_assert_double_eq_tol(is.tail, 1.5, 0.05);
    ck_assert(serving_is_safe(&w.est, S, V100, T, fits, p99 * 1.01, SERVING_Z));
    ck_assert_double_gt(estimate_serving(&w.est, S, A100, T).tail, 2);    // of that very pair
}

TEST(a_server_comes_in_where_two_cautious_steps_fit)
{
    struct serving_estimate is = estimate_serving(&w.est, S, V100, U);
    double t0, a;

    serving_cautious(&is, SERVING_Z, &t0, &a);
    ck_assert_double_eq_tol(is.tail, 1, 1e-12);
    ck_assert(serving_is_safe(&w.est, S, V100, U, 2.01 * (t0 + a), NAN, SERVING_Z));
    ck_assert(!serving_is_safe(&w.est, S, V100, U, 1.99 * (t0 + a), NAN, SERVING_Z));
    ck_assert(serving_is_safe(&w.est, S, V100, U, 1.99 * (t0 + a), NAN, 0));
}
