/* CBC in its child: right answers, an end when time is up, and nothing left behind. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sys/wait.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/rng.h"
#include "optimize/exact/mip.h"
#include "unit/suite.h"

#define ITEMS_MAX 50
#define ROWS_MAX 5

/* A program with a dense matrix, every x whole and 0 or 1 unless said otherwise. */
struct dense {
    struct mip m;
    int start[ITEMS_MAX + 1], row[ITEMS_MAX * ROWS_MAX];
    double value[ITEMS_MAX * ROWS_MAX], cost[ITEMS_MAX], upper[ITEMS_MAX];
    bool is_integer[ITEMS_MAX];
    double row_low[ROWS_MAX], row_high[ROWS_MAX];
};

static void dense_shape(struct dense *d, int n_rows, int n_columns)
{
    d->m = (struct mip){
        .n_rows = n_rows,
        .n_columns = n_columns,
        .start = d->start,
        .row = d->row,
        .value = d->value,
        .cost = d->cost,
        .upper = d->upper,
        .is_integer = d->is_integer,
        .row_low = d->row_low,
        .row_high = d->row_high,
    };
    for (int c = 0; c < n_columns; c++) {
        d->start[c + 1] = (c + 1) * n_rows;
        d->upper[c] = 1;
        d->is_integer[c] = true;
        for (int r = 0; r < n_rows; r++)
            d->row[c * n_rows + r] = r;
    }
}

/* Worth as much as possible under several weights: 'rows' of them. */
static void dense_knapsack(struct dense *d, int n_rows, int n_items, uint64_t seed)
{
    struct rng rng;

    *d = (struct dense){ 0 };
    rng_init(&rng, seed, "knapsack");
    dense_shape(d, n_rows, n_items);
    for (int r = 0; r < n_rows; r++) {
        double sum = 0;
        for (int c = 0; c < n_items; c++)
            sum += d->value[c * n_rows + r] = (double)(1 + rng_below(&rng, 1000));
        d->row_low[r] = -INFINITY;
        d->row_high[r] = floor(sum / 2);
    }
    for (int c = 0; c < n_items; c++)
        d->cost[c] = -(double)(1 + rng_below(&rng, 1000));
}

/* Halve five sums at once, as nearly as possible, by choosing among forty numbers of each: what
 * Cornuejols and Dawande (1998) call lagrangian split. Search trees learn nothing from its bound.
 */
static void dense_market(struct dense *d, uint64_t seed)
{
    enum { SUMS = 5, NUMBERS = 40 };
    struct rng rng;

    *d = (struct dense){ 0 };
    rng_init(&rng, seed, "lagrangian");
    dense_shape(d, SUMS, NUMBERS + 2 * SUMS);
    for (int r = 0; r < SUMS; r++) {
        double sum = 0;
        for (int c = 0; c < NUMBERS; c++)
            sum += d->value[c * SUMS + r] = (double)rng_below(&rng, 100);
        d->row_low[r] = d->row_high[r] = floor(sum / 2);
        for (int side = 0; side < 2; side++) {
            int c = NUMBERS + 2 * r + side;    // how far above, how far below
            d->value[c * SUMS + r] = side ? 1 : -1;
            d->cost[c] = 1;
            d->upper[c] = INFINITY;
            d->is_integer[c] = false;
        }
    }
}

static bool feasible(const struct mip *m, const double *x)
{
    for (int r = 0; r < m->n_rows; r++) {
        double sum = 0;
        for (int c = 0; c < m->n_columns; c++)
            sum += x[c] * m->value[c * m->n_rows + r];
        if (sum > m->row_high[r] + 1e-6 || sum < m->row_low[r] - 1e-6)
            return false;
    }
    return true;
}

static double cost_of(const struct mip *m, const double *x)
{
    double sum = 0;

    for (int c = 0; c < m->n_columns; c++)
        sum += m->cost[c] * x[c];
    return sum;
}

static double cheapest(const struct mip *m)
{
    double best = INFINITY;

    for (unsigned set = 0; set < 1U << m->n_columns; set++) {
        double x[ITEMS_MAX];
        for (int c = 0; c < m->n_columns; c++)
            x[c] = set >> c & 1;
        if (feasible(m, x))
            best = fmin(best, cost_of(m, x));
    }
    return best;
}

static int count_files(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    ck_assert_ptr_nonnull(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static void solve(struct arena *a, const struct mip *m, double time_s, struct mip_result *out)
{
    struct mip_options o = { .time_s = time_s };
    struct err e = { 0 };

    ck_assert_msg(mip_solve(a, m, &o, out, &e) == 0, "%s", e.text);
}

TEST(finds_what_trying_everything_finds)
{
    struct dense d;
    struct arena a;
    struct mip_result r;

    arena_init(&a);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        dense_knapsack(&d, 3, 12, seed);
        solve(&a, &d.m, 60, &r);
        ck_assert_int_eq(r.status, MIP_OPTIMAL);
        ck_assert(feasible(&d.m, r.x));
        ck_assert_double_eq_tol(r.objective, cheapest(&d.m), 1e-6);
        ck_assert_double_eq_tol(r.objective, cost_of(&d.m, r.x), 1e-6);
        ck_assert_double_eq_tol(r.bound, r.objective, 1e-3);
    }
    arena_release(&a);
}

TEST(looks_at_nothing_that_costs_more_than_asked_for)
{
    struct dense d;
    struct arena a;
    struct mip_result r;
    struct err e = { 0 };

    arena_init(&a);
    dense_knapsack(&d, 3, 12, 1);
    double best = cheapest(&d.m), most = best - 1;
    struct mip_options o = { .time_s = 60, .most = &most };
    ck_assert_int_eq(mip_solve(&a, &d.m, &o, &r, &e), 0);
    ck_assert_int_eq(r.status, MIP_NONE);
    most = best + 1e-3;
    o.is_proof = true;
    ck_assert_int_eq(mip_solve(&a, &d.m, &o, &r, &e), 0);
    ck_assert_int_eq(r.status, MIP_OPTIMAL);
    ck_assert_double_eq_tol(r.objective, best, 1e-6);
    arena_release(&a);
}

TEST(minds_equalities_and_what_need_not_be_whole)
{
    struct dense d = { 0 };
    struct arena a;
    struct mip_result r;

    /* x + y = 2.5, x whole, y not: x at most 2 and cheaper. */
    arena_init(&a);
    dense_shape(&d, 1, 2);
    d.value[0] = d.value[1] = 1;
    d.upper[0] = d.upper[1] = INFINITY;
    d.is_integer[1] = false;
    d.cost[0] = 1;
    d.cost[1] = 3;
    d.row_low[0] = d.row_high[0] = 2.5;
    solve(&a, &d.m, 60, &r);
    ck_assert_int_eq(r.status, MIP_OPTIMAL);
    ck_assert_double_eq_tol(r.x[0], 2, 1e-6);
    ck_assert_double_eq_tol(r.objective, 3.5, 1e-6);
    arena_release(&a);
}

TEST(never_claims_that_there_is_no_answer)
{
    struct dense d = { 0 };
    struct arena a;
    struct mip_result r;

    arena_init(&a);
    dense_shape(&d, 1, 1);
    d.value[0] = 1;
    d.row_low[0] = d.row_high[0] = 0.5;
    solve(&a, &d.m, 60, &r);
    ck_assert_int_eq(r.status, MIP_NONE);
    ck_assert_ptr_null(r.x);
    ck_assert(isinf(r.objective) && r.bound < 0 && isinf(r.bound));
    arena_release(&a);
}

TEST(is_over_when_its_time_is)
{
    struct dense d;
    struct arena a;
    struct mip_result r;

    arena_init(&a);
    dense_market(&d, 1);
    double began_s = suite_cpu_s();
    solve(&a, &d.m, 0.5, &r);
    ck_assert_double_lt(suite_cpu_s() - began_s, 20);
    ck_assert_int_ne(r.status, MIP_OPTIMAL);
    if (r.status == MIP_FEASIBLE)
        ck_assert(feasible(&d.m, r.x) && r.bound <= r.objective + 1e-6);
    solve(&a, &d.m, 0, &r);
    ck_assert_int_eq(r.status, MIP_NONE);
    arena_release(&a);
}

TEST(leaves_no_process_and_no_file_behind)
{
    struct dense d;
    struct arena a;
    struct mip_result r;

    arena_init(&a);
    dense_market(&d, 2);
    int before = count_files();
    solve(&a, &d.m, 0.1, &r);
    dense_knapsack(&d, 3, 12, 2);
    solve(&a, &d.m, 60, &r);
    ck_assert_int_eq(count_files(), before);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
    arena_release(&a);
}

static void *one_of_two(void *arg)
{
    struct dense *d = arg;
    struct arena a;
    struct mip_result r;

    arena_init(&a);
    for (int i = 0; i < 5; i++) {
        solve(&a, &d->m, 60, &r);
        ck_assert_int_eq(r.status, MIP_OPTIMAL);
        ck_assert_double_eq_tol(r.objective, cheapest(&d->m), 1e-6);
    }
    arena_release(&a);
    return NULL;
}

TEST(two_threads_may_solve_at_once)
{
    struct dense d[2];
    pthread_t threads[2];

    for (int i = 0; i < 2; i++) {
        dense_knapsack(&d[i], 3, 10, 10 + (uint64_t)i);
        ck_assert_int_eq(pthread_create(&threads[i], NULL, one_of_two, &d[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
}
