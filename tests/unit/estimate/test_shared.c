/* What two jobs draw together: by the law, and by what was measured. */
#include "estimate/shared.h"

#include <math.h>

#include "base/rng.h"
#include "catalog/catalog.h"
#include "estimate/estimate.h"
#include "unit/suite.h"
#include "unit/support.h"

/* By the law a and b draw 40 + 160 * 0.5 + 100 * 0.5 = 170 W together. */
static const char some[] = "type v100 cap=250 idle=40 sleep=10\ntype k80 cap=150 idle=30 sleep=5\n"
                           "workload a\nworkload b\nworkload c\n"
                           "speed a v100 10\nwatts a v100 200\nspeed b v100 10\nwatts b v100 140\n"
                           "speed c v100 10\nwatts c v100 120\n"
                           "speed a k80 4\nwatts a k80 100\nspeed b k80 4\nwatts b k80 90\n"
                           "pairs 0.5\n";

enum { A, B, C };
enum { V100, K80 };
#define LAW_W 170.0

static struct world w;

static void set_up(void)
{
    world_init(&w, some);
}

static void tear_down(void)
{
    world_release(&w);
}

FIXTURE(set_up, tear_down)

static void measure(int workload, int type, int neighbour, double watts)
{
    struct measurement m = {
        .key = { .workload = workload, .gpu_type = type, .neighbour = neighbour, .n_gpus = 1 },
        .fits = true,
        .throughput = 5,
        .watts = watts,
        .noise = NAN,
    };

    ck_assert_int_eq(catalog_record(&w.catalog, &m, 0, NULL), 0);
    estimate_refresh(&w.est);
}

static double drawn_w(int type, int one, int other)
{
    return estimate_watts(&w.est, type, (int[]){ one, other }, NULL, 2);
}

TEST(before_anything_was_measured_it_is_the_law)
{
    ck_assert(!w.est.shared->is_known);
    ck_assert_double_eq_tol(drawn_w(V100, A, B), LAW_W, 0.01);
    ck_assert_double_eq(estimate_shared(&w.est, V100, (int[]){ A, B }, 2), 1);
}

/* Meters read 3 % off, some more and some less. */
TIMES(five_readings_bring_a_pair_to_within_five_per_cent, 6)
{
    static const double truths[] = { 110, 140, 170, 200, 220, 235 };
    struct rng chance;

    rng_init(&chance, (uint64_t)_i, "shared");
    for (int i = 0; i < 5; i++)
        measure(A, V100, B, truths[_i] * exp(0.03 * rng_normal(&chance)));
    ck_assert_double_eq_tol(drawn_w(V100, A, B) / truths[_i], 1, 0.05);
    ck_assert_double_eq_tol(drawn_w(V100, B, A), drawn_w(V100, A, B), 1e-9);
}

TEST(a_pair_teaches_others_of_its_type_and_no_other_type)
{
    double c_w = drawn_w(V100, A, C), k80_w = drawn_w(K80, A, B);

    for (int i = 0; i < 5; i++)
        measure(A, V100, B, 40 + 0.7 * (LAW_W - 40));
    ck_assert(w.est.shared->is_known);
    ck_assert_double_lt(drawn_w(V100, A, C), c_w - 5);
    ck_assert_double_gt(drawn_w(V100, A, C), 40 + 0.7 * (c_w - 40));    // less than what is its own
    ck_assert_double_eq_tol(drawn_w(K80, A, B), k80_w, 1e-9);
    ck_assert_double_eq_tol(estimate_watts(&w.est, V100, (int[]){ A }, NULL, 1), 200, 0.01);
    ck_assert_double_eq(estimate_shared(&w.est, V100, (int[]){ A, B, C }, 3), 1);
}

static const struct {
    const char *name;
    double watts;
} telling_nothing[] = {
    { "a GPU at its cap would draw more", 249 },
    { "less than an idle one", 30 },
    { "hardly more than an idle one", 44 },
};

EACH(what_tells_nothing_is_left_alone, telling_nothing)
{
    measure(A, V100, B, telling_nothing[_i].watts);
    ck_assert_msg(fabs(drawn_w(V100, A, B) - LAW_W) < 0.01, "%s: %g", telling_nothing[_i].name,
                  drawn_w(V100, A, B));
}

TEST(nothing_draws_more_than_its_cap)
{
    for (int i = 0; i < 8; i++)
        measure(A, V100, A, 240);    // the law: 200
    ck_assert_double_gt(drawn_w(V100, A, A), 230);
    ck_assert_double_le(drawn_w(V100, A, A), 250);
    for (int i = 0; i < 8; i++)
        measure(B, V100, C, 239);    // the law: 130
    ck_assert_double_le(drawn_w(V100, A, A), 250);
    ck_assert_double_le(estimate_limited(&w.est, V100, (int[]){ A, A }, NULL, 2, 0).watts, 250);
}

/* Plans reckon with it, and so does their judge. */
TEST(plans_draw_what_was_measured)
{
    struct plan p;

    for (int i = 0; i < 5; i++)
        measure(A, V100, B, 120);
    world_add(&w, "node n v100\njob x a\njob y b\n");
    world_look(&w);
    world_solve(&w, "gogh", &p);
    ck_assert_int_eq(p.jobs[0].n_gpus, 1);
    ck_assert_int_eq(p.jobs[1].n_gpus, 1);
    ck_assert_double_eq_tol(p.watts, drawn_w(V100, A, B), 0.1);
    ck_assert_double_eq_tol(p.watts, 120, 6);
}
