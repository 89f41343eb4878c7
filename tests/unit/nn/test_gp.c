/* Leaving points out in closed form equals never having seen them. */
#include <check.h>
#include <math.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "nn/gp.h"
#include "unit/suite.h"

enum { N = 9 };

static const double x[N] = { 0, 0.3, 0.7, 1.1, 1.6, 2.0, 2.2, 2.9, 3.3 };
static const double y[N] = { 0.1, 0.5, 0.6, 1.0, 0.9, 0.7, 0.9, 0.1, -0.3 };

static double kernel(int i, int j)
{
    double d = x[i] - x[j];

    return exp(-d * d) + (i == j ? 0.01 : 0);
}

static void fill(const int *points, int n, double *k)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            k[i * n + j] = kernel(points[i], points[j]);
}

static const int all[N] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 };

static const struct {
    const char *name;
    int m, block[N];
} cases[] = {
    { "one point", 1, { 4 } },
    { "the two ends", 2, { 0, 8 } },
    { "three, out of order", 3, { 7, 2, 5 } },
    { "all but one", 8, { 0, 1, 2, 3, 4, 5, 6, 7 } },
    { "none", 0, { 0 } },
};

static bool is_in(int i, const int *block, int m)
{
    for (int b = 0; b < m; b++)
        if (block[b] == i)
            return true;
    return false;
}

EACH(leaving_out_equals_never_having_seen, cases)
{
    struct arena a;
    struct err e = { 0 };
    struct gp full, rest;
    double mean[N], cov[N * N], rest_y[N];
    int m = cases[_i].m, n_rest = 0, rest_of[N];
    const int *block = cases[_i].block;

    arena_init(&a);
    double *k = ARENA_ARRAY(&a, double, N *N), *k_rest = ARENA_ARRAY(&a, double, N *N);
    fill(all, N, k);
    ck_assert_int_eq(gp_fit(&a, N, k, y, &full, &e), 0);
    for (int i = 0; i < N; i++)
        if (!is_in(i, block, m)) {
            rest_y[n_rest] = y[i];
            rest_of[n_rest++] = i;
        }
    fill(rest_of, n_rest, k_rest);
    ck_assert_int_eq(gp_fit(&a, n_rest, k_rest, rest_y, &rest, &e), 0);

    ck_assert_int_eq(gp_leave_out(&a, &full, y, m, block, mean, cov, &e), 0);
    for (int b = 0; b < m; b++) {
        double want = 0, variance = kernel(block[b], block[b]);
        for (int i = 0; i < n_rest; i++) {
            double k_i = kernel(block[b], rest_of[i]);
            want += k_i * rest.alpha[i];
            for (int j = 0; j < n_rest; j++)
                variance -= k_i * rest.inverse[i * n_rest + j] * kernel(block[b], rest_of[j]);
        }
        ck_assert_double_eq_tol(mean[b], want, 1e-8);
        ck_assert_double_eq_tol(cov[b * m + b], variance, 1e-8);
    }
    arena_release(&a);
}

TEST(a_kernel_that_is_none_is_refused)
{
    struct arena a;
    struct err e = { 0 };
    struct gp g;
    double k[4] = { 1, 2, 2, 1 }, two[2] = { 1, 1 };

    arena_init(&a);
    ck_assert_int_lt(gp_fit(&a, 2, k, two, &g, &e), 0);
    arena_release(&a);
}
