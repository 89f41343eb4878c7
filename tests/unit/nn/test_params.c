/* One line of numbers: claims follow each other, chance repeats. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "nn/params.h"
#include "unit/suite.h"

TEST(claims_follow_each_other_and_begin_at_zero)
{
    static const int sizes[] = { 3, 1, 100, 7, 5000 };
    struct params p;
    int want = 0;

    params_init(&p);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int at = params_claim(&p, sizes[i]);

        ck_assert_int_eq(at, want);
        for (int j = at; j < p.n; j++) {
            ck_assert(p.w[j] == 0 && p.grad[j] == 0);
            p.w[j] = p.grad[j] = (float)(j + 1);
        }
        want += sizes[i];
        ck_assert_int_eq(p.n, want);
    }
    for (int j = 0; j < p.n; j++)    // nothing was lost when the line moved
        ck_assert(p.w[j] == (float)(j + 1) && p.grad[j] == (float)(j + 1));
    params_clear(&p);
    for (int j = 0; j < p.n; j++)
        ck_assert(p.w[j] == (float)(j + 1) && p.grad[j] == 0);
    params_release(&p);
    ck_assert_ptr_null(p.w);
}

TEST(draws_fill_glorots_range_and_nothing_else)
{
    const double bound = sqrt(6.0 / (20 + 30));
    double low = 0, high = 0, square = 0;
    struct params p;
    struct rng r;

    rng_init(&r, 1, "params");
    params_init(&p);
    params_claim(&p, 6010);
    params_draw(&p, 5, 6000, 20, 30, &r);
    for (int i = 0; i < p.n; i++) {
        double v = (double)p.w[i];

        ck_assert((v == 0) == (i < 5 || i >= 6005));
        low = fmin(low, v);
        high = fmax(high, v);
        square += v * v / 6000;
    }
    ck_assert(-bound <= low && low < -0.99 * bound && 0.99 * bound < high && high <= bound);
    ck_assert_double_eq_tol(square, 2.0 / 50, 0.002);
    params_release(&p);
}

TEST(the_same_seed_draws_the_same_bytes_and_no_rng_leaves_zeros)
{
    struct params p[3];

    for (int i = 0; i < 3; i++) {
        struct rng r;

        rng_init(&r, i == 2 ? 8 : 7, "params");
        params_init(&p[i]);
        params_claim(&p[i], 50);
        params_draw(&p[i], 0, 40, 4, 10, NULL);
        for (int j = 0; j < 50; j++)
            ck_assert(p[i].w[j] == 0);
        params_draw(&p[i], 0, 40, 4, 10, &r);
    }
    ck_assert_mem_eq(p[0].w, p[1].w, 50 * sizeof(float));
    ck_assert_mem_ne(p[0].w, p[2].w, 50 * sizeof(float));
    for (int i = 0; i < 3; i++)
        params_release(&p[i]);
}
