/* The simulated world against times and joules computed by hand. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "catalog/cluster/cluster.h"
#include "unit/sim/small_truth.h"
#include "estimate/prior/limits.h"
#include "sim/world/world.h"
#include "unit/suite.h"

#define NEAR(got, want) ck_assert_double_eq_tol((got), (want), 1e-6 * (1 + fabs((double)(want))))

/* Two nodes: GPUs 0 and 1 are slow, 2 and 3 fast. Slowdowns are floats: compare loosely. */
struct setting {
    struct small_truth small;
    struct cluster_settings settings;
    struct world *world;
    struct executor order;
    struct sensor sensor;
};

static void setting_create(struct setting *s, double noise, bool is_always_on)
{
    static const int types[] = { SLOW, SLOW, FAST, FAST }, nodes[] = { 0, 0, 1, 1 };
    const struct gpu_type *figures[4];

    small_truth_init(&s->small);
    for (int i = 0; i < 4; i++)
        figures[i] = &s->small.catalog.types[types[i]];
    s->settings = (struct cluster_settings){
        .sleep_after_s = 60,
        .wake_s = 5,
        .move_s = 60,
        .report_s = 300,
        .noise = noise,
        .theta = 2,
    };
    s->world = world_create(&(struct world_setup){ .truth = &s->small.truth,
                                                   .settings = &s->settings,
                                                   .n_gpus = 4,
                                                   .types = types,
                                                   .figures = figures,
                                                   .nodes = nodes,
                                                   .seed = 7,
                                                   .is_always_on = is_always_on });
    s->order = world_executor(s->world);
    s->sensor = world_sensor(s->world);
}

static void setting_open(struct setting *s, double noise)
{
    setting_create(s, noise, false);
}

static void setting_close(struct setting *s)
{
    world_destroy(s->world);
    small_truth_release(&s->small);
}

static int submit(struct setting *s, int workload, double steps, double promise)
{
    return world_submit(s->world, &(struct world_job_spec){ .workload = workload,
                                                            .steps = steps,
                                                            .promise = promise,
                                                            .reference_speed = 10,
                                                            .max_gpus = 4 });
}

static int start(struct setting *s, int job, int gpu)
{
    struct err e;

    return s->order.start(s->order.self, &(struct placement){ job, 1, &gpu, 0 }, &e);
}

static struct world_outcome outcome(const struct setting *s, int job)
{
    struct world_outcome f;

    world_job_outcome(s->world, job, &f);
    return f;
}

/* The next observation, taken. */
static bool hear(struct setting *s, struct observation *o)
{
    if (!s->sensor.next(s->sensor.self, o))
        return false;
    s->sensor.done(s->sensor.self);
    return true;
}

/* How many observations of a kind there are, forgetting them all; the last one in '*last'. */
static int count_news(struct setting *s, enum observation_kind kind, struct observation *last)
{
    struct observation o;
    int n = 0;

    while (hear(s, &o)) {
        if (o.kind != kind)
            continue;
        n++;
        if (last != NULL)
            *last = o;
    }
    return n;
}

TEST(two_jobs_share_a_gpu)
{
    struct setting s;
    int a, b;

    setting_open(&s, 0);
    a = submit(&s, BIG, 1000, 0);
    ck_assert_int_eq(start(&s, a, 0), 0);
    world_advance(s.world, 20);
    b = submit(&s, SMALL, 400, 0);
    ck_assert_int_eq(start(&s, b, 0), 0);
    world_advance(s.world, 162.5);

    /* 200 steps alone; then 5 and 3.2 steps/s for 125 s; then 175 steps alone. */
    NEAR(outcome(&s, b).end_s, 145);
    NEAR(outcome(&s, a).end_s, 162.5);
    NEAR(world_gpu_now(s.world, 0).energy_j,
         20 * 200.0 + 125 * (50 + 150 * 0.5 + 50 * 0.8) + 17.5 * 200);
    NEAR(world_gpu_s(s.world), 162.5);
    NEAR(world_gpu_now(s.world, 0).held_s, 162.5);
    NEAR(world_gpu_now(s.world, 1).held_s, 0);
    NEAR(world_work_s(s.world), (1000 + 400) / 10.0);

    /* Then idle for a minute, and asleep. */
    world_advance(s.world, 322.5);
    NEAR(world_gpu_now(s.world, 0).energy_j, 28125 + 60 * 50.0 + 100 * 10.0);
    ck_assert(world_gpu_now(s.world, 0).is_asleep);
    setting_close(&s);
}

TEST(a_world_that_is_always_on_idles)
{
    struct setting s;
    int a;

    setting_create(&s, 0, true);
    world_advance(s.world, 1000);
    a = submit(&s, BIG, 1000, 0);
    ck_assert_int_eq(start(&s, a, 0), 0);
    world_advance(s.world, 5000);
    NEAR(outcome(&s, a).end_s, 1100);    // nobody had to wake
    NEAR(world_energy_j(s.world), 4 * 5000 * 50.0 + 100 * 150.0);
    ck_assert(!world_gpu_now(s.world, 0).is_asleep && !world_gpu_now(s.world, 1).is_asleep);
    setting_close(&s);
}

TEST(a_sleeping_gpu_wakes_before_it_works)
{
    struct setting s;
    int a;

    setting_open(&s, 0);
    world_advance(s.world, 100);
    ck_assert(world_gpu_now(s.world, 0).is_asleep);
    NEAR(world_watts(s.world), 40);
    a = submit(&s, BIG, 1000, 1);
    ck_assert_int_eq(start(&s, a, 0), 0);
    world_advance(s.world, 205);
    NEAR(outcome(&s, a).end_s, 205);
    NEAR(outcome(&s, a).kept_s, 100);
    NEAR(world_gpu_now(s.world, 0).energy_j, 60 * 50.0 + 40 * 10.0 + 5 * 50.0 + 100 * 200.0);
    setting_close(&s);
}

TEST(a_move_loses_its_time_and_holds_the_new_gpu)
{
    struct setting s;
    struct err e;
    int a, to = 2;

    setting_open(&s, 0);
    a = submit(&s, BIG, 1000, 15);
    start(&s, a, 0);
    world_advance(s.world, 30);
    ck_assert_int_eq(s.order.move(s.order.self, &(struct placement){ a, 1, &to, 0 }, &e), 0);
    world_advance(s.world, 90);
    NEAR(outcome(&s, a).steps_done, 300);
    world_advance(s.world, 125);

    /* 300 steps at 10, a minute of nothing, 700 at 20: and only those keep 15 steps/s. */
    NEAR(outcome(&s, a).end_s, 125);
    NEAR(outcome(&s, a).kept_s, 35);
    NEAR(outcome(&s, a).work_s, 100);
    NEAR(world_gpu_now(s.world, 0).energy_j, 30 * 200.0 + 60 * 50.0 + 35 * 10.0);
    NEAR(world_gpu_now(s.world, 2).energy_j, 90 * 50.0 + 35 * 250.0);
    NEAR(world_gpu_s(s.world), 125);
    setting_close(&s);
}

TEST(a_stopped_job_goes_on_where_it_was_and_loses_a_move)
{
    struct setting s;
    struct observation o;
    struct err e;
    int a;

    setting_open(&s, 0);
    a = submit(&s, BIG, 1000, 0);
    start(&s, a, 0);
    world_advance(s.world, 50);
    ck_assert_int_eq(s.order.stop(s.order.self, a, &e), 0);
    ck_assert_int_eq(s.order.stop(s.order.self, a, &e), 0);
    ck_assert_int_eq(count_news(&s, OBS_STOPPED, &o), 1);
    NEAR(o.steps_done, 500);
    world_advance(s.world, 60);
    start(&s, a, 1);
    world_advance(s.world, 200);
    NEAR(outcome(&s, a).end_s, 60 + 60 + 50);
    setting_close(&s);
}

TEST(a_cancelled_job_frees_its_gpu_and_does_not_come_back)
{
    struct setting s;
    struct observation o;
    struct err e;
    int a, b;

    setting_open(&s, 0);
    a = submit(&s, BIG, 1000, 0);
    b = submit(&s, BIG, 1000, 0);
    start(&s, a, 0);
    world_advance(s.world, 50);
    count_news(&s, OBS_STARTED, NULL);
    for (int i = 0; i < 2; i++) {    // asking twice is asking once
        ck_assert_int_eq(s.order.cancel(s.order.self, a, &e), 0);
        ck_assert_int_eq(s.order.cancel(s.order.self, b, &e), 0);
    }
    ck_assert_int_eq(s.order.cancel(s.order.self, 7, &e), -ENODEV);
    world_advance(s.world, 1000);
    while (hear(&s, &o))
        ck_assert_int_eq(o.kind, OBS_WINDOW);    // of what it did until then, and no more
    NEAR(outcome(&s, a).end_s, 50);
    ck_assert(!outcome(&s, a).is_finished);
    ck_assert_int_eq(world_counts(s.world).n_ended, 2);
    NEAR(world_gpu_now(s.world, 0).held_s, 50);
    ck_assert_int_eq(start(&s, a, 1), -EBUSY);
    ck_assert_int_eq(start(&s, b, 1), -EBUSY);
    setting_close(&s);
}

TEST(a_server_draws_by_its_load_and_ends_by_the_clock)
{
    struct setting s;
    int a;

    setting_open(&s, 0);
    a = world_submit(s.world, &(struct world_job_spec){ .workload = BIG,
                                                        .is_inference = true,
                                                        .rate = 4,
                                                        .duration_s = 100,
                                                        .promise = 4,
                                                        .reference_speed = 10,
                                                        .max_gpus = 1 });
    start(&s, a, 0);
    world_advance(s.world, 100);
    NEAR(outcome(&s, a).end_s, 100);
    NEAR(outcome(&s, a).steps_done, 400);
    NEAR(outcome(&s, a).kept_s, 100);
    NEAR(world_gpu_now(s.world, 0).energy_j, 100 * (50 + 150 * 0.4));
    setting_close(&s);
}

TEST(a_gang_is_as_slow_as_its_worst_gpu)
{
    const int both[] = { 0, 1 };
    struct setting s;
    struct err e;
    int a, b;
    double alone;

    setting_open(&s, 0);
    alone = truth_gang_speed(&s.small.truth, BIG, SLOW, 2, 0);
    ck_assert(alone > 10 && alone < 20);
    a = submit(&s, BIG, 1e6, 0);
    b = submit(&s, SMALL, 1e6, 0);
    ck_assert_int_eq(s.order.start(s.order.self, &(struct placement){ a, 2, both, 0 }, &e), 0);
    world_advance(s.world, 10);
    NEAR(outcome(&s, a).speed, alone);
    NEAR(world_gpu_now(s.world, 0).watts, 200);
    start(&s, b, 0);
    world_advance(s.world, 20);
    NEAR(outcome(&s, a).speed, alone * 0.5);
    NEAR(world_gpu_now(s.world, 1).watts, 125);
    NEAR(world_gpu_now(s.world, 0).watts, 50 + 150 * 0.5 + 50 * 0.8);
    setting_close(&s);
}

TEST(what_does_not_fit_is_told_and_waits_again)
{
    struct setting s;
    struct observation o;
    int a, b;

    setting_open(&s, 0);
    a = submit(&s, HUGE_ONE, 100, 0);
    b = submit(&s, BIG, 1e6, 0);
    start(&s, b, 2);
    world_advance(s.world, 5);
    start(&s, a, 2);
    world_advance(s.world, 14);
    ck_assert_int_eq(count_news(&s, OBS_UNFIT, &o), 0);
    world_advance(s.world, 15);
    ck_assert_int_eq(count_news(&s, OBS_UNFIT, &o), 1);
    ck_assert(o.job == a && o.n_neighbours == 1 && o.neighbours[0] == b);
    NEAR(outcome(&s, b).steps_done, 15 * 20);

    /* Too large for the slow type even alone; fine on the fast one. */
    start(&s, a, 0);
    world_advance(s.world, 25);
    ck_assert_int_eq(count_news(&s, OBS_UNFIT, &o), 1);
    ck_assert_int_eq(o.n_neighbours, 0);
    start(&s, a, 3);
    world_advance(s.world, 45);
    NEAR(outcome(&s, a).end_s, 45);
    setting_close(&s);
}

TEST(a_job_that_never_fits_fails_in_the_end)
{
    struct setting s;
    struct observation o;
    int a;

    setting_open(&s, 0);
    a = submit(&s, HUGE_ONE, 100, 0);
    for (int i = 0; i < UNFIT_MAX; i++) {
        ck_assert_int_eq(start(&s, a, 0), 0);
        world_advance(s.world, world_now_s(s.world) + UNFIT_S + s.settings.wake_s);
    }
    ck_assert_int_eq(count_news(&s, OBS_FAILED, &o), 1);
    ck_assert(!outcome(&s, a).is_finished && !isnan(outcome(&s, a).end_s));
    ck_assert_int_lt(start(&s, a, 0), 0);
    setting_close(&s);
}

TEST(windows_cover_the_run_without_gaps)
{
    struct setting s;
    struct observation o;
    double steps = 0, until_s = 0;
    int n = 0;

    setting_open(&s, 0);
    start(&s, submit(&s, BIG, 10000, 0), 0);
    world_advance(s.world, 1000);
    while (hear(&s, &o)) {
        if (o.kind != OBS_WINDOW)
            continue;
        NEAR(o.from_s, until_s);
        NEAR(o.watts, 200);
        NEAR(o.steps_done, o.time_s * 10);
        until_s = o.time_s;
        steps += o.steps;
        n++;
    }
    ck_assert_int_eq(n, 3);    // after 300 s, 600 s more, and at the end
    NEAR(steps, 10000);
    setting_close(&s);
}

TEST(noise_is_of_the_size_it_should_be)
{
    struct setting s;
    struct observation o;
    double sum = 0, squares = 0;
    int n = 0;

    setting_open(&s, 0.05);
    for (int i = 0; i < 400; i++) {
        start(&s, submit(&s, BIG, 1000, 0), 0);
        world_advance(s.world, world_now_s(s.world) + 150);
    }
    while (hear(&s, &o)) {
        if (o.kind == OBS_WINDOW) {
            double x = log(o.steps / (o.time_s - o.from_s) / 10);

            sum += x;
            squares += x * x;
            n++;
        }
    }
    ck_assert_int_eq(n, 400);
    ck_assert_double_eq_tol(sum / n, 0, 0.01);
    ck_assert_double_eq_tol(sqrt(squares / n), 0.05, 0.006);
    setting_close(&s);
}

/* What is told of watts over what is drawn; speeds are told as they are. */
TEST(watts_are_told_with_a_noise_of_their_own)
{
    for (int is_noisy = 0; is_noisy < 2; is_noisy++) {
        struct setting s;
        struct observation o;
        double sum = 0, squares = 0, drawn_w = 0;
        int n = 0;

        setting_open(&s, 0);
        s.settings.watts_noise = is_noisy ? 0.02 : 0;
        for (int i = 0; i < 400; i++) {
            start(&s, submit(&s, BIG, 1000, 0), 0);
            world_advance(s.world, world_now_s(s.world) + 50);
            drawn_w = world_gpu_now(s.world, 0).watts;
            world_advance(s.world, world_now_s(s.world) + 100);
        }
        while (hear(&s, &o)) {
            if (o.kind != OBS_WINDOW)
                continue;
            NEAR(o.steps / (o.time_s - o.from_s), 10);
            sum += log(o.watts / drawn_w);
            squares += log(o.watts / drawn_w) * log(o.watts / drawn_w);
            n++;
        }
        ck_assert_int_eq(n, 400);
        ck_assert_double_eq_tol(sum / n, 0, is_noisy ? 0.004 : 1e-9);
        ck_assert_double_eq_tol(sqrt(squares / n), is_noisy ? 0.02 : 0, is_noisy ? 0.003 : 1e-9);
        setting_close(&s);
    }
}

TEST(orders_that_make_no_sense_are_refused)
{
    struct setting s;
    struct err e;
    int a, b, gpu = 1, none = 9;

    setting_open(&s, 0);
    a = submit(&s, BIG, 1000, 0);
    b = submit(&s, BIG, 1000, 0);
    ck_assert_int_eq(start(&s, a, 0), 0);
    ck_assert_int_eq(start(&s, a, 0), 0);    // asking again for what is so
    ck_assert_int_lt(start(&s, a, 1), 0);
    ck_assert_int_lt(start(&s, 99, 0), 0);
    ck_assert_int_lt(s.order.move(s.order.self, &(struct placement){ b, 1, &gpu, 0 }, &e), 0);
    ck_assert_int_lt(s.order.start(s.order.self, &(struct placement){ b, 1, &none, 0 }, &e), 0);
    ck_assert_int_eq(world_counts(s.world).n_placed, 1);
    setting_close(&s);
}

TEST(another_limit_in_the_same_place_loses_no_time_but_pace)
{
    struct setting s;
    struct observation o;
    struct err e;
    int a, gpu = 0;

    setting_open(&s, 0);
    a = submit(&s, BIG, 1000, 0);
    start(&s, a, 0);
    world_advance(s.world, 40);
    ck_assert_int_eq(count_news(&s, OBS_STARTED, NULL), 1);
    ck_assert_int_eq(s.order.move(s.order.self, &(struct placement){ a, 1, &gpu, 150 }, &e), 0);
    ck_assert_int_eq(count_news(&s, OBS_STARTED, &o), 1);
    ck_assert_int_eq(o.limit_w, 150);
    struct limited now =
        limits_apply(&s.small.catalog.types[SLOW], 150, truth_watts(&s.small.truth, BIG, SLOW));
    ck_assert_double_lt(now.speed, 1);
    NEAR(world_gpu_now(s.world, 0).watts, now.watts);
    world_advance(s.world, 1000);
    NEAR(outcome(&s, a).end_s, 40 + 60 / now.speed);
    setting_close(&s);
}

TEST(who_differs_from_the_law_goes_at_another_pace)
{
    struct setting s;
    struct err e;
    int a, gpu = 0;

    setting_open(&s, 0);
    s.small.truth.bend[BIG * 2 + SLOW] = (struct limit_bend){ .loss = 2, .draw = 1 };
    a = submit(&s, BIG, 1000, 0);
    ck_assert_int_eq(s.order.start(s.order.self, &(struct placement){ a, 1, &gpu, 120 }, &e), 0);
    world_advance(s.world, 10);
    struct limited law = limits_apply(&s.small.catalog.types[SLOW], 120, 200);
    NEAR(outcome(&s, a).speed, 10 * law.speed * law.speed);
    NEAR(world_gpu_now(s.world, 0).watts, law.watts);
    setting_close(&s);
}

/* Two of a kind that do not slow each other down, 250 W each on a GPU that idles at 50 and stops at
 * 300: they want 450. By the law, 300 W leave 0.8471 of their speed, and 0.9790 to who wants 300.
 */
static const struct {
    enum power_model model;
    double watts, pace;
} together[] = {
    { POWER_ADDITIVE, 300, 0.8471 / 0.9790 },
    { POWER_SATURATING, 50 + 250 * (1 - 0.2 * 0.2), 1 },
};

TIMES(what_two_draw_and_whether_clocks_fall_depends_on_the_model, 2)
{
    struct setting s;
    int a, b;

    setting_open(&s, 0);
    s.settings.power_model = together[_i].model;
    s.small.truth.slowdown[(BIG * 2 + FAST) * 3 + BIG] = 1;
    a = submit(&s, BIG, 1e6, 0);
    b = submit(&s, BIG, 1e6, 0);
    start(&s, a, 2);
    start(&s, b, 2);
    world_advance(s.world, 10);
    NEAR(world_gpu_now(s.world, 2).watts, together[_i].watts);
    ck_assert_double_eq_tol(outcome(&s, a).speed, 20 * together[_i].pace, 0.01);
    ck_assert_double_eq_tol(outcome(&s, b).speed, 20 * together[_i].pace, 0.01);
    NEAR(world_gpu_now(s.world, 2).energy_j, 10 * together[_i].watts);
    setting_close(&s);
}

/* Random orders for a while; a digest of everything the sensor told. */
static double stir(struct setting *s, struct rng *rng)
{
    struct observation o;
    double digest = 0;
    struct err e;

    for (int i = 0; i < 3000; i++) {
        int gpu = (int)rng_below(rng, 4), job;

        if (rng_uniform(rng) < 0.3 || world_counts(s->world).n_jobs == 0)
            submit(s, (int)rng_below(rng, 3), 1 + rng_uniform(rng) * 3000, 5);
        job = (int)rng_below(rng, (uint64_t)world_counts(s->world).n_jobs);
        if (rng_uniform(rng) < 0.6)
            start(s, job, gpu);
        else if (rng_uniform(rng) < 0.5)
            s->order.move(s->order.self, &(struct placement){ job, 1, &gpu, 0 }, &e);
        else
            s->order.stop(s->order.self, job, &e);
        world_advance(s->world, world_now_s(s->world) + rng_exponential(rng, 40));
        while (hear(s, &o))
            digest = digest * 0.999 + o.time_s * (o.kind + 1) + o.steps_done + o.steps;
    }
    return digest;
}

TEST(energy_and_steps_are_conserved_whatever_is_ordered)
{
    struct setting s;
    struct rng rng;
    double sum = 0, held_s = 0, work_s = 0;

    setting_open(&s, 0.05);
    rng_init(&rng, 3, "orders");
    stir(&s, &rng);
    for (int i = 0; i < 4; i++) {
        sum += world_gpu_now(s.world, i).energy_j;
        held_s += world_gpu_now(s.world, i).held_s;
    }
    NEAR(world_energy_j(s.world), sum);
    NEAR(world_gpu_s(s.world), held_s);
    ck_assert(sum <= 4 * 300 * world_now_s(s.world) && sum >= 4 * 10 * world_now_s(s.world));
    ck_assert(world_gpu_s(s.world) <= 4 * world_now_s(s.world));
    ck_assert_int_gt(world_counts(s.world).n_ended, 100);
    for (int i = 0; i < world_counts(s.world).n_jobs; i++) {
        struct world_outcome f = outcome(&s, i);
        double end_s = isnan(f.end_s) ? world_now_s(s.world) : f.end_s;

        ck_assert(f.steps_done <= 3001 && f.steps_done >= 0);
        ck_assert(f.kept_s <= end_s - f.submit_s + 1e-6);
        work_s += f.work_s;
    }
    NEAR(world_work_s(s.world), work_s);
    setting_close(&s);
}

TEST(the_same_orders_give_the_same_world)
{
    struct setting s, t;
    struct rng x, y;

    setting_open(&s, 0.05);
    setting_open(&t, 0.05);
    rng_init(&x, 4, "orders");
    rng_init(&y, 4, "orders");
    ck_assert(stir(&s, &x) == stir(&t, &y));
    ck_assert(world_energy_j(s.world) == world_energy_j(t.world));
    setting_close(&s);
    setting_close(&t);
}
