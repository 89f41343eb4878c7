/* Power limits: the law's shape, and its way back. */
#include "estimate/prior/limits.h"

#include <math.h>

#include "catalog/gpu_type.h"
#include "unit/suite.h"

static const struct gpu_type v100 = {
    .name = "v", .idle_w = 40, .sleep_w = 10, .cap_w = 250, .limit_low_w = 100
};

static const struct {
    const char *name;
    int limit_w;
    double w0, watts, speed;    // within 1 %
} cases[] = {
    { "no limit changes nothing", 0, 200, 200, 1 },
    { "a limit far above hardly anything", 250, 60, 60, 1 },
    { "one at the draw takes the peaks", 200, 200, 174.6, 0.979 },
    { "one at half the draw costs two fifths of the speed", 100, 200, 98.0, 0.587 },
    { "an idle GPU stays idle", 100, 40, 40, 1 },
    { "a limit below idle is none", 30, 200, 200, 1 },
};

EACH(the_law, cases)
{
    struct limited got = limits_apply(&v100, cases[_i].limit_w, cases[_i].w0);

    ck_assert_msg(fabs(got.watts / cases[_i].watts - 1) < 0.01 &&
                      fabs(got.speed / cases[_i].speed - 1) < 0.01,
                  "%s: %g W, %g", cases[_i].name, got.watts, got.speed);
}

TEST(more_room_is_never_slower_and_more_draw_never_faster)
{
    for (int limit_w = 60; limit_w < 250; limit_w += 10)
        for (double w0 = 45; w0 < 250; w0 += 5) {
            struct limited at = limits_apply(&v100, limit_w, w0);
            struct limited wider = limits_apply(&v100, limit_w + 10, w0);
            struct limited more = limits_apply(&v100, limit_w, w0 + 5);
            ck_assert(at.speed > 0 && at.speed <= 1 && at.watts <= w0 && at.watts >= 40);
            ck_assert(wider.speed >= at.speed && wider.watts >= at.watts);
            ck_assert(more.speed <= at.speed && more.watts >= at.watts);
            if (at.watts > 41)
                ck_assert_double_eq_tol(limits_undo_bent(&v100, limit_w, at.watts, limit_law), w0,
                                        0.5);
        }
    ck_assert_double_eq_tol(limits_undo_bent(&v100, 0, 123, limit_law), 123, 1e-9);
}

/* ln of 0.587 and of 98 / 200, the law at 100 W of one that wants 200, times what it differs by. */
static const struct {
    const char *name;
    double loss, draw;
    double watts, speed;    // within 1 %
} bent[] = {
    { "who is like the law", 1, 1, 98, 0.587 },
    { "who loses twice as much", 2, 1, 98, 0.345 },
    { "who loses half as much", 0.5, 1, 98, 0.766 },
    { "who draws even less", 1, 1.1, 91.3, 0.587 },
    { "nobody draws more than the limit", 1, 0.8, 100, 0.587 },
};

EACH(workloads_differ_from_the_law, bent)
{
    const struct limit_bend b = { .loss = bent[_i].loss, .draw = bent[_i].draw };
    struct limited got = limits_bent(&v100, 100, 200, b);

    ck_assert_msg(fabs(got.watts / bent[_i].watts - 1) < 0.01 &&
                      fabs(got.speed / bent[_i].speed - 1) < 0.01,
                  "%s: %g W, %g", bent[_i].name, got.watts, got.speed);
    got = limits_bent(&v100, 0, 200, b);
    ck_assert(got.watts == 200 && got.speed == 1);
    double w0 = limits_undo_bent(&v100, 175, limits_bent(&v100, 175, 190, b).watts, b);
    ck_assert_double_eq_tol(w0, 190, 0.5);
}

TEST(together_they_differ_as_their_watts_do)
{
    const struct limit_bend two[] = { { .loss = 2, .draw = 1.2, .at = -0.4 },
                                      { .loss = 1, .draw = 1, .loss_sd = 0.2 } };
    struct limit_bend mean = limit_bend_mean(two, (double[]){ 30, 10 }, 2);

    ck_assert_double_eq_tol(mean.loss, 1.75, 1e-12);
    ck_assert_double_eq_tol(mean.draw, 1.15, 1e-12);
    ck_assert_double_eq_tol(mean.loss_sd, 0.05, 1e-12);
    ck_assert_double_eq_tol(mean.at, -0.3, 1e-12);
    mean = limit_bend_mean(two, (double[]){ 0, 0 }, 2);
    ck_assert(mean.loss == 1 && mean.draw == 1);
}

static const struct {
    const char *type;
    int n, limits[LIMITS_OFFERED];
} offers[] = {
    { "v100", 7, { 195, 180, 165, 150, 135, 120, 105 } },
    { "p100", 7, { 245, 225, 205, 185, 165, 145, 125 } },    // nothing below 125
    { "a40", 7, { 260, 240, 220, 200, 180, 160, 140 } },
    { "rtx6000", 7, { 205, 190, 175, 160, 145, 130, 115 } },
    { "t4", 2, { 65, 60 } },
    { "k80", 0, { 0 } },
    { "mi100", 0, { 0 } },
};

EACH(limits_are_offered_where_a_type_accepts_them, offers)
{
    const struct gpu_type unknown = { .name = "u" };
    int out[LIMITS_OFFERED];
    int n = limits_offer(gpu_type_builtin(offers[_i].type), out);

    ck_assert_msg(n == offers[_i].n, "%s: %d", offers[_i].type, n);
    for (int i = 0; i < n; i++)
        ck_assert_msg(out[i] == offers[_i].limits[i], "%s: %d W", offers[_i].type, out[i]);
    ck_assert_int_eq(limits_offer(&unknown, out), 0);
}
