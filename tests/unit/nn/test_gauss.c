/* Conditioning: against numbers worked out by hand and a plain elimination. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/rng.h"
#include "nn/gauss.h"
#include "unit/suite.h"

#define CLOSE 1e-10

START_TEST(two_observed_numbers_worked_out_by_hand)
{
    /* K = [2 1; 1 3], det 5, K^-1 = [3 -1; -1 2] / 5; y = (1, 2): K^-1 y = (1, 3) / 5.
     * Target (1, 1): shift 4/5; drop (1 1) K^-1 (1 1)' = 3/5.
     * Target (2, 1), the first observed number itself: shift 1, drop 2: all is known.
     */
    double k_oo[] = { 2, 1, 1, 3 }, y[] = { 1, 2 }, k_to[] = { 1, 1, 2, 1, 0, 0 };
    double shift[3], drop[3];
    struct arena a;

    arena_init(&a);
    ck_assert_int_eq(gauss_condition(&a, 2, k_oo, y, 3, k_to, shift, drop, NULL), 0);
    ck_assert_double_eq_tol(shift[0], 0.8, CLOSE);
    ck_assert_double_eq_tol(drop[0], 0.6, CLOSE);
    ck_assert_double_eq_tol(shift[1], 1, CLOSE);
    ck_assert_double_eq_tol(drop[1], 2, CLOSE);
    ck_assert_double_eq_tol(shift[2], 0, CLOSE);    // unrelated: nothing is learned
    ck_assert_double_eq_tol(drop[2], 0, CLOSE);
    arena_release(&a);
}
END_TEST

/* Solve K x = b by Gauss-Jordan with row exchanges; K and b are overwritten. */
static void eliminate(int n, double *k, double *b)
{
    for (int c = 0; c < n; c++) {
        int pivot = c;
        for (int r = c; r < n; r++)
            if (fabs(k[r * n + c]) > fabs(k[pivot * n + c]))
                pivot = r;
        for (int j = 0; j < n; j++) {
            double t = k[c * n + j];
            k[c * n + j] = k[pivot * n + j];
            k[pivot * n + j] = t;
        }
        double t = b[c];
        b[c] = b[pivot];
        b[pivot] = t;
        for (int r = 0; r < n; r++) {
            double f = r == c ? 0 : k[r * n + c] / k[c * n + c];
            for (int j = 0; j < n; j++)
                k[r * n + j] -= f * k[c * n + j];
            b[r] -= f * b[c];
        }
    }
    for (int c = 0; c < n; c++)
        b[c] /= k[c * n + c];
}

enum { N_MAX = 12, TARGETS = 5 };

static double dot(int n, const double *a, const double *b)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void compare_once(struct rng *r, int n)
{
    double root[N_MAX * N_MAX], k[N_MAX * N_MAX], copy[N_MAX * N_MAX], y[N_MAX], x[N_MAX];
    double k_to[TARGETS * N_MAX], shift[TARGETS], drop[TARGETS];
    struct arena a;

    for (int i = 0; i < n * n; i++)
        root[i] = rng_normal(r);
    for (int i = 0; i < n; i++) {
        y[i] = x[i] = rng_normal(r);
        for (int j = 0; j < n; j++)
            k[i * n + j] = copy[i * n + j] =
                dot(n, root + i * n, root + j * n) + (i == j ? 0.1 : 0);
    }
    for (int i = 0; i < TARGETS * n; i++)
        k_to[i] = rng_normal(r);
    arena_init(&a);
    ck_assert_int_eq(gauss_condition(&a, n, k, y, TARGETS, k_to, shift, drop, NULL), 0);
    double keep[N_MAX * N_MAX];
    for (int i = 0; i < n * n; i++)
        keep[i] = copy[i];
    eliminate(n, copy, x);
    for (int t = 0; t < TARGETS; t++) {
        double again[N_MAX * N_MAX], z[N_MAX];
        for (int i = 0; i < n * n; i++)
            again[i] = keep[i];
        for (int i = 0; i < n; i++)
            z[i] = k_to[t * n + i];
        eliminate(n, again, z);
        ck_assert_double_eq_tol(shift[t], dot(n, k_to + t * n, x), 1e-7);
        ck_assert_double_eq_tol(drop[t], dot(n, k_to + t * n, z), 1e-7);
    }
    arena_release(&a);
}

START_TEST(random_covariances_agree_with_plain_elimination)
{
    struct rng r;

    nn_init();
    rng_init(&r, 1, "gauss");
    for (int i = 0; i < 600; i++)
        compare_once(&r, 1 + i % N_MAX);
}
END_TEST

START_TEST(a_matrix_that_is_no_covariance_is_refused)
{
    static const double bad[][4] = {
        { 1, 2, 2, 1 },     // correlation above one
        { 0, 0, 0, 1 },     // a number without variance
        { -1, 0, 0, 1 },    // negative variance
        { 1, 1, 1, 1 },     // the same number twice, without noise
        { NAN, 0, 0, 1 },
    };
    double y[] = { 1, 1 }, k_to[] = { 1, 1 }, shift[1], drop[1];
    struct arena a;

    arena_init(&a);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double k[4] = { bad[i][0], bad[i][1], bad[i][2], bad[i][3] };
        struct err e = { 0 };
        ck_assert_int_eq(gauss_condition(&a, 2, k, y, 1, k_to, shift, drop, &e), -EDOM);
        ck_assert_str_ne(e.text, "");
    }
    arena_release(&a);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("gauss");
    TCase *t = tcase_create("gauss");

    tcase_add_test(t, two_observed_numbers_worked_out_by_hand);
    tcase_add_test(t, random_covariances_agree_with_plain_elimination);
    tcase_add_test(t, a_matrix_that_is_no_covariance_is_refused);
    suite_add_tcase(s, t);
    return suite_run(s);
}
