/* How much the network counts, and what lies between two beliefs. */
#include "estimate/blend.h"

#include <math.h>

#include "base/rng.h"
#include "estimate/site/site.h"
#include "unit/suite.h"

static const struct {
    const char *name;
    int n_beside;
    enum sharing how;
    double share;
} shares[] = {
    { "where nothing was shown the network speaks", 0, SHARING_UNKNOWN, 1 },
    { "with 40 readings both count alike", 40, SHARING_MPS, 0.5 },
    { "a tenth is the least", 360, SHARING_MPS, 0.1 },
    { "then the model alone", 361, SHARING_MPS, 0 },
    { "and so it stays", 1000000, SHARING_UNKNOWN, 0 },
    { "of turns there is a law, and both count", 0, SHARING_TIMESLICE, 0.5 },
    { "of slices the network has never heard", 0, SHARING_MIG, 0 },
};

EACH(the_network_counts_less_the_more_a_site_has_shown, shares)
{
    ck_assert_msg(fabs(blend_share(shares[_i].n_beside, shares[_i].how) - shares[_i].share) < 1e-12,
                  "%s", shares[_i].name);
}

/* By drawing from either of two Gaussians: mean and variance of what was drawn. */
TIMES(a_blend_is_what_a_mixture_of_both_is, 20)
{
    struct rng r;
    enum { N = 40000 };
    double sum = 0, squares = 0;

    rng_init(&r, (uint64_t)_i, "blend");
    struct cell_belief model = { rng_normal(&r), 0.1 + rng_uniform(&r) };
    struct cell_belief network = { rng_normal(&r), 0.1 + rng_uniform(&r) };
    double share = rng_uniform(&r), of_model = model.sd * model.sd;
    struct cell_belief is = blend_slowdown(model, network, share);
    share *= fmin(1, 2 * of_model / (of_model + network.sd * network.sd));
    for (int i = 0; i < N; i++) {
        const struct cell_belief *from = rng_uniform(&r) < share ? &network : &model;
        double drawn = from->mean + from->sd * rng_normal(&r);
        sum += drawn;
        squares += drawn * drawn;
    }
    double mean = sum / N, sd = sqrt(squares / N - mean * mean);
    ck_assert_double_eq_tol(is.mean, mean, 6 * is.sd / sqrt(N));
    ck_assert_double_eq_tol(is.sd, sd, 0.05 * is.sd);
}

TEST(who_is_surer_counts_more)
{
    const struct cell_belief sure = { -0.5, 0.05 }, unsure = { -1, 0.5 };

    ck_assert_double_gt(blend_slowdown(sure, unsure, 1).mean, -0.52);
    ck_assert_double_eq_tol(blend_slowdown(unsure, sure, 1).mean, -0.5, 1e-12);
    ck_assert_double_eq_tol(blend_slowdown(unsure, unsure, 0.5).mean, -1, 1e-12);
}

TEST(without_a_share_nothing_changes)
{
    const struct cell_belief model = { -0.5, 0.2 }, packed = { 1.5, 0.3 };
    struct cell_belief is = blend_slowdown(model, (struct cell_belief){ -2, 9 }, 0);
    struct cell_belief speed = blend_packed(packed, model, is);

    ck_assert(is.mean == model.mean && fabs(is.sd - model.sd) < 1e-15);
    ck_assert(speed.mean == packed.mean && fabs(speed.sd - packed.sd) < 1e-15);
}

TEST(a_packed_speed_moves_with_its_slowdown_and_is_never_surer_than_a_reading)
{
    const struct cell_belief model = { -0.5, 0.4 }, packed = { 1.5, 0.1 };
    struct cell_belief slower = blend_packed(packed, model, (struct cell_belief){ -0.8, 0.5 });
    struct cell_belief surer = blend_packed(packed, model, (struct cell_belief){ -0.5, 0.01 });

    ck_assert_double_eq_tol(slower.mean, 1.2, 1e-12);
    ck_assert_double_eq_tol(slower.sd, sqrt(0.01 - 0.16 + 0.25), 1e-12);
    ck_assert_double_eq_tol(surer.sd, READING_NOISE, 1e-12);
}
