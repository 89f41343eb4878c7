/* Power limits: the law's shape, and its way back. */
#include "estimate/limits.h"

#include <math.h>

#include "catalog/gpu_type.h"
#include "unit/suite.h"

static const struct gpu_type v100 = { .name = "v", .idle_w = 40, .sleep_w = 10, .cap_w = 250 };

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

START_TEST(the_law)
{
    struct limited got = limits_apply(&v100, cases[_i].limit_w, cases[_i].w0);

    ck_assert_msg(fabs(got.watts / cases[_i].watts - 1) < 0.01 &&
                      fabs(got.speed / cases[_i].speed - 1) < 0.01,
                  "%s: %g W, %g", cases[_i].name, got.watts, got.speed);
}
END_TEST

START_TEST(more_room_is_never_slower_and_more_draw_never_faster)
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
                ck_assert_double_eq_tol(limits_undo(&v100, limit_w, at.watts), w0, 0.5);
        }
    ck_assert_double_eq_tol(limits_undo(&v100, 0, 123), 123, 1e-9);
}
END_TEST

START_TEST(limits_are_offered_for_known_types_only)
{
    const struct gpu_type unknown = { .name = "u" };
    int out[LIMITS_OFFERED];

    ck_assert_int_eq(limits_offer(&v100, out), 3);
    ck_assert(out[0] == 175 && out[1] == 140 && out[2] == 105);
    ck_assert_int_eq(limits_offer(&unknown, out), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("limits");
    TCase *t = tcase_create("limits");

    tcase_add_loop_test(t, the_law, 0, sizeof cases / sizeof *cases);
    tcase_add_test(t, more_room_is_never_slower_and_more_draw_never_faster);
    tcase_add_test(t, limits_are_offered_for_known_types_only);
    suite_add_tcase(s, t);
    return suite_run(s);
}
