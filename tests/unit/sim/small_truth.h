/* small_truth.h - a ground truth of round numbers for tests: two GPU types, three workloads.
 *
 *     alone          slow type         fast type
 *     big            10 steps/s 200 W  20 steps/s 250 W
 *     small           4 steps/s 100 W   8 steps/s 150 W
 *     huge           does not fit       5 steps/s 300 W
 *
 * Beside small, big runs at 0.5 of that; beside big, small at 0.8; two of a kind at 0.6.
 * Beside huge nothing fits. Both types idle at 50 W, sleep at 10 W and stop at 300 W.
 */
#ifndef TESTS_SIM_SMALL_TRUTH_H
#define TESTS_SIM_SMALL_TRUTH_H

#include <check.h>
#include <math.h>

#include "base/err.h"
#include "catalog/catalog.h"
#include "sim/world/truth.h"

enum { SLOW, FAST };
enum { BIG, SMALL, HUGE_ONE };

struct small_truth {
    struct catalog catalog;
    struct truth truth;
};

/* A measurement; no steps per second: it did not fit. */
static inline void record_speed(struct catalog *c, int w, int type, int neighbour,
                                double throughput, double watts)
{
    struct measurement m = {
        .key = { .workload = w, .gpu_type = type, .neighbour = neighbour, .n_gpus = 1 },
        .fits = throughput > 0,
        .throughput = throughput > 0 ? throughput : (double)NAN,
        .watts = watts,
        .duration_s = NAN,
        .noise = NAN,
    };
    struct err e;

    ck_assert_int_eq(catalog_record(c, &m, 0, &e), 0);
}

static inline void small_truth_names(struct catalog *c)
{
    static const char *const types[] = { "slow", "fast" };
    static const char *const workloads[] = { "big", "small", "huge" };
    struct err e;
    int index;

    catalog_init(c);
    for (int i = 0; i < 2; i++) {
        struct gpu_type t = *gpu_type_builtin("v100");

        t.name = types[i];
        t.idle_w = 50;
        t.sleep_w = 10;
        t.cap_w = 300;
        ck_assert_int_eq(catalog_add_type(c, &t, &index, &e), 0);
    }
    for (int i = 0; i < 3; i++) {
        struct workload w;

        workload_init(&w, workloads[i]);
        w.params = 1e6;
        w.flop_per_sample = 1e9;
        ck_assert_int_eq(catalog_add_workload(c, &w, &index, &e), 0);
    }
}

static inline void small_truth_init(struct small_truth *s)
{
    static const double speed[] = { 10, 20, 4, 8, 0, 5 };
    static const double watts[] = { 200, 250, 100, 150, 300, 300 };
    static const float slowdown[3][3] = { { 0.6F, 0.5F, 0 }, { 0.8F, 0.6F, 0 }, { 0, 0, 0 } };
    struct err e;

    small_truth_names(&s->catalog);
    ck_assert_int_eq(truth_analytic(&s->truth, &s->catalog, 1, 0, &e), 0);
    for (int i = 0; i < 6; i++) {
        s->truth.speed[i] = speed[i];
        s->truth.watts[i] = watts[i];
    }
    for (int w = 0; w < 3; w++) {
        for (int a = 0; a < 2; a++) {
            for (int n = 0; n < 3; n++)
                s->truth.slowdown[(w * 2 + a) * 3 + n] = slowdown[w][n];
        }
    }
}

static inline void small_truth_release(struct small_truth *s)
{
    truth_release(&s->truth);
    catalog_release(&s->catalog);
}

#endif
