/* What a place holds for a service, and how busy it is. */
#include <math.h>

#include "optimize/model/place.h"
#include "serve/capacity.h"
#include "unit/support.h"
#include "unit/suite.h"

static struct world world;

static void set_up(void)
{
    world_init(&world, "type v100\nworkload w batch=8\nspeed w v100 10 sd=0.01\nnode n v100\n");
    world_look(&world);
}

static void tear_down(void)
{
    world_release(&world);
}

FIXTURE(set_up, tear_down)

static const struct serving batching = { .rate = 1, .latency_s = 10, .max_batch = 8 };
static const struct serving llm = { .is_llm = true,
                                    .rate = 1,
                                    .latency_s = 10,
                                    .ttft_s = 10,
                                    .tpot_s = 5,
                                    .max_batch = 8,
                                    .max_running = 8 };

static double busy(const struct serving *s, double output, double rate)
{
    const struct capacity c = { .spec = *s, .output = output };
    const struct service_view v = { .capacity = &c };

    return place_busy(&world.est, &v, 0, 0, rate);
}

TEST(a_request_of_a_language_model_takes_a_step_for_each_token)
{
    const double once = busy(&batching, 0, 0.01);

    ck_assert(once > 0 && once < 0.01);
    ck_assert_double_eq_tol(busy(&llm, 1, 0.01), once, 1e-12);
    ck_assert_double_eq_tol(busy(&llm, 20, 0.01), 20 * once, 1e-9);    // one after the other
    ck_assert_double_lt(busy(&llm, 300, 0.1), 3000 * once);            // they share steps
    ck_assert_double_gt(busy(&llm, 300, 0.1), 0.5);
    ck_assert_double_eq(busy(&llm, 3000, 1), 1);
}

TEST(by_its_busy_share_a_place_holds_fewer_long_answers)
{
    struct capacity c = { .spec = llm, .output = 1 };
    const struct service_view v = { .capacity = &c, .busy_most = 0.5 };
    const double brief = place_capacity(&world.est, &v, 0, 0, -1);

    ck_assert_double_gt(brief, 1);
    c.output = 100;
    ck_assert_double_eq_tol(place_capacity(&world.est, &v, 0, 0, -1), brief / 100, 1e-9);
}
