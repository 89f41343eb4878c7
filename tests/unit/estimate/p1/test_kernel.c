/* Likeness, and processes over points that can forget: against plain elimination. */
#include <errno.h>
#include <stdlib.h>

#include "estimate/p1/kernel.h"
#include "nn/weights.h"
#include "unit/estimate/p1/lab.h"

struct lab {
    struct world w;
    struct examples x;
};

/* All of the lab's eleven alone, on all types, with residuals that no rule explains. */
static void lab_init(struct lab *l)
{
    struct rng r;

    rng_init(&r, 7, "residuals");
    world_init(&l->w, lab_text);
    for (int i = 0; i < l->w.catalog.n_workloads; i++)
        for (int t = 0; t < 3; t++) {
            struct features f;
            features_of(&l->w.catalog.workloads[i], &l->w.catalog.types[t], &f);
            lab_record(&l->w, i, t, -1, f.ln_roofline + 0.4 + 0.5 * rng_normal(&r), NAN);
        }
    examples_take(&l->w.arena, &l->w.catalog, 1000, 1, &l->x);
}

static struct kernel_point point_at(const struct examples *x, int workload, int type)
{
    return (struct kernel_point){ x->who[workload], *examples_at(x, workload, type) };
}

/* ---- kernels ---- */

static const struct {
    const char *name;
    kernel_f *kernel;
} kernels[] = {
    { "alone", kernel_alone },
    { "ridge", kernel_ridge },
    { "beside", kernel_beside },
};

/* By Cholesky: with a speck on the diagonal no pivot of a semidefinite matrix is negative. */
TIMES(kernels_are_symmetric_and_positive, 3)
{
    struct lab l;

    lab_init(&l);
    int n = l.x.n_alone;
    double *k = ARENA_ARRAY(&l.w.arena, double, (size_t)(n * n));
    for (int i = 0; i < n * n; i++) {
        struct kernel_point a = point_at(&l.x, i / n / 3, i / n % 3);
        struct kernel_point b = point_at(&l.x, i % n / 3, i % n % 3);
        k[i] = kernels[_i].kernel(&a, &b);
        ck_assert_msg(isfinite(k[i]) && k[i] == kernels[_i].kernel(&b, &a), "%s: not symmetric",
                      kernels[_i].name);
    }
    for (int i = 0; i < n; i++) {
        k[i * n + i] += 1e-6;
        ck_assert_msg(k[i * n + i] > 0, "%s: pivot %d is %g", kernels[_i].name, i, k[i * n + i]);
        for (int r = i + 1; r < n; r++)
            for (int c = n - 1; c >= i; c--)
                k[r * n + c] -= k[r * n + i] / k[i * n + i] * k[i * n + c];
    }
    world_release(&l.w);
}

/* Rows are the same kernels once more, with floats: over points enough for two chunks and a part
 * of a third.
 */
TIMES(a_row_is_the_kernel_with_each_point, 3)
{
    enum { N = 300 };
    struct lab l;
    struct rows r;
    struct kernel_point *points;
    float k[N];

    lab_init(&l);
    points = ARENA_ARRAY(&l.w.arena, struct kernel_point, N);
    for (int i = 0; i < N; i++)
        points[i] = point_at(&l.x, i % l.x.n_workloads, i / l.x.n_workloads % 3);
    rows_init(&l.w.arena, kernels[_i].kernel, N, points, &r);
    for (int i = 0; i < 3 * l.x.n_workloads; i++) {
        struct kernel_point at = point_at(&l.x, i / 3, i % 3);
        rows_ask(&l.w.arena, &r, &at, k);
        for (int j = 0; j < N; j++)
            ck_assert_msg(fabs((double)k[j] - kernels[_i].kernel(&at, &points[j])) < 1e-6,
                          "%s: %d with %d: %.9g, want %.9g", kernels[_i].name, i, j, (double)k[j],
                          kernels[_i].kernel(&at, &points[j]));
    }
    world_release(&l.w);
}

TEST(a_neighbour_is_most_like_itself)
{
    struct lab l;

    lab_init(&l);
    struct kernel_point a = point_at(&l.x, 0, 2), kin = point_at(&l.x, 1, 2),
                        other = point_at(&l.x, 6, 2);
    ck_assert_double_eq_tol(kernel_beside(&a, &a), 1.05, 1e-9);
    ck_assert_double_gt(kernel_beside(&a, &a), kernel_beside(&a, &kin));
    ck_assert_double_gt(kernel_beside(&a, &kin), kernel_beside(&a, &other));
    ck_assert_double_gt(kernel_alone(&a, &kin), kernel_alone(&a, &other));
    world_release(&l.w);
}

/* ---- processes ---- */

/* Mean and sd at 'at' of a process over the n examples of 'list', by elimination. */
static void ask_plainly(const struct examples *x, kernel_f *kernel, double noise,
                        const struct example *list, int n, const struct kernel_point *at,
                        double *mean, double *sd)
{
    double *k = calloc((size_t)(n * n), sizeof *k), *b = calloc((size_t)(2 * n), sizeof *b);
    double *row = calloc((size_t)n, sizeof *row), middle = 0;

    for (int i = 0; i < n; i++)
        middle += (double)list[i].value / n;
    for (int i = 0; i < n; i++) {
        struct kernel_point p = point_at(x, list[i].workload, list[i].gpu_type);
        for (int j = 0; j < n; j++) {
            struct kernel_point q = point_at(x, list[j].workload, list[j].gpu_type);
            k[i * n + j] = kernel(&p, &q);
        }
        k[i * n + i] += noise + (double)(list[i].noise * list[i].noise);
        row[i] = kernel(at, &p);
        b[2 * i] = (double)list[i].value - middle;
        b[2 * i + 1] = row[i];
    }
    lab_solve(n, k, 2, b);
    double gone = 0;
    *mean = middle;
    for (int i = 0; i < n; i++) {
        *mean += row[i] * b[2 * i];
        gone += row[i] * b[2 * i + 1];
    }
    *sd = sqrt(fmax(kernel(at, at) + noise - gone, 1e-4));
    free(k);
    free(b);
    free(row);
}

/* The examples of all but workload 'w'; with 'by_family' all but its family. */
static int others(const struct examples *x, int w, bool by_family, struct example *out)
{
    int n = 0;

    for (int i = 0; i < x->n_alone; i++)
        if (by_family ? x->family[x->alone[i].workload] != x->family[w] : x->alone[i].workload != w)
            out[n++] = x->alone[i];
    return n;
}

/* What a process says at 'at'; the sd only where there is one. */
static void ask(struct arena *a, const struct process *p, const struct kernel_point *at,
                double *mean, double *sd)
{
    double near;

    ck_assert_int_eq(process_ask(a, p, at, mean, NULL), 0);
    if (p->kernel != kernel_ridge)
        ck_assert_int_eq(process_ask_all(a, p, 1, at, &near, sd, NULL), 0);
}

static const struct {
    const char *name;
    kernel_f *kernel;
    double noise;
} processes[] = {
    { "alone", kernel_alone, 0.01 },
    { "ridge", kernel_ridge, 1 },
};

/* Its own values are nowhere in the answer: not in the weights, not in the mean. */
TIMES(a_process_forgets_the_workload_that_asks, 2)
{
    struct lab l;
    struct process p;
    struct example list[64];

    lab_init(&l);
    ck_assert_int_eq(process_fit(&l.w.arena, processes[_i].kernel, processes[_i].noise, &l.x,
                                 l.x.n_alone, l.x.alone, &p, NULL),
                     0);
    for (int w = 0; w < l.x.n_workloads; w++)
        for (int t = 0; t < 3; t++) {
            struct kernel_point at = point_at(&l.x, w, t);
            double mean, sd, want, want_sd;
            int n = others(&l.x, w, false, list);
            ask(&l.w.arena, &p, &at, &mean, &sd);
            ask_plainly(&l.x, processes[_i].kernel, processes[_i].noise, list, n, &at, &want,
                        &want_sd);
            ck_assert_msg(fabs(mean - want) < 1e-6, "%s: %d on %d: %.9g, want %.9g",
                          processes[_i].name, w, t, mean, want);
            ck_assert_msg(p.kernel == kernel_ridge || fabs(sd - want_sd) < 1e-4,
                          "%s: %d on %d: sd %.9g, want %.9g", processes[_i].name, w, t, sd,
                          want_sd);
        }
    world_release(&l.w);
}

TEST(a_newcomer_is_told_what_all_points_say)
{
    struct lab l;
    struct process p;
    struct example list[64];
    double mean, sd, want, want_sd;

    lab_init(&l);
    int n = others(&l.x, 4, false, list);
    struct kernel_point at = point_at(&l.x, 4, 1);
    ck_assert_int_eq(process_fit(&l.w.arena, kernel_alone, 0.01, &l.x, n, list, &p, NULL), 0);
    ask(&l.w.arena, &p, &at, &mean, &sd);
    ask_plainly(&l.x, kernel_alone, 0.01, list, n, &at, &want, &want_sd);
    ck_assert_double_eq_tol(mean, want, 1e-9);
    ck_assert_double_eq_tol(sd, want_sd, 1e-4);
    world_release(&l.w);
}

/* Whoever asks has points of its own but for one; and where there are no points at all. */
TIMES(asking_on_all_types_agrees_with_asking_on_each, 4)
{
    struct lab l;
    struct process p;
    struct example list[64];
    double mean[3], sd[3], want;

    lab_init(&l);
    int n = _i < 2 ? others(&l.x, 4, false, list) : 0;
    ck_assert_int_eq(process_fit(&l.w.arena, processes[_i % 2].kernel, processes[_i % 2].noise,
                                 &l.x, n, list, &p, NULL),
                     0);
    for (int w = 0; w < l.x.n_workloads; w++) {
        struct kernel_point at[3];
        for (int t = 0; t < 3; t++)
            at[t] = point_at(&l.x, w, t);
        bool has_sd = p.kernel != kernel_ridge;
        ck_assert_int_eq(process_ask_all(&l.w.arena, &p, 3, at, mean, has_sd ? sd : NULL, NULL), 0);
        ck_assert_int_eq(process_ask_all(&l.w.arena, &p, 0, NULL, NULL, NULL, NULL), 0);
        for (int t = 0; t < 3; t++) {
            double alone, alone_sd;
            process_ask(&l.w.arena, &p, &at[t], &want, NULL);
            ck_assert_double_eq_tol(mean[t], want, 1e-5);
            process_ask_all(&l.w.arena, &p, 1, &at[t], &alone, has_sd ? &alone_sd : NULL, NULL);
            ck_assert_double_eq_tol(mean[t], alone, 1e-9);
            if (has_sd)
                ck_assert_double_eq_tol(sd[t], alone_sd, 1e-6);
        }
    }
    world_release(&l.w);
}

TIMES(leaving_out_agrees_with_fitting_again, 2)
{
    struct lab l;
    struct process p;
    struct example list[64];
    double mean[64], sd[64], want, want_sd;
    int block[64];

    lab_init(&l);
    ck_assert_int_eq(
        process_fit(&l.w.arena, kernel_alone, 0.01, &l.x, l.x.n_alone, l.x.alone, &p, NULL), 0);
    for (int w = 0; w < l.x.n_workloads; w++) {
        int m = 0, n = others(&l.x, w, _i, list);
        for (int i = 0; i < l.x.n_alone; i++)
            if (_i ? l.x.family[l.x.alone[i].workload] == l.x.family[w]
                   : l.x.alone[i].workload == w)
                block[m++] = i;
        ck_assert_int_eq(process_leave_out(&l.w.arena, &p, m, block, mean, sd, NULL), 0);
        for (int i = 0; i < m; i++) {
            const struct example *e = &l.x.alone[block[i]];
            struct kernel_point at = point_at(&l.x, e->workload, e->gpu_type);
            ask_plainly(&l.x, kernel_alone, 0.01, list, n, &at, &want, &want_sd);
            ck_assert_double_eq_tol(mean[block[i]], want, 1e-6);
            ck_assert_double_eq_tol(sd[block[i]], hypot(want_sd, (double)e->noise), 1e-6);
        }
    }
    world_release(&l.w);
}

TEST(without_points_the_kernel_is_all_there_is)
{
    struct lab l;
    struct process p;
    double mean, sd;

    lab_init(&l);
    struct kernel_point at = point_at(&l.x, 0, 0);
    ck_assert_int_eq(process_fit(&l.w.arena, kernel_alone, 0.01, &l.x, 0, NULL, &p, NULL), 0);
    ask(&l.w.arena, &p, &at, &mean, &sd);
    ck_assert_double_eq(mean, 0);
    ck_assert_double_eq_tol(sd, sqrt(kernel_alone(&at, &at) + 0.01), 1e-9);
    ck_assert_int_eq(process_fit(&l.w.arena, kernel_alone, 0.01, &l.x, 3, l.x.alone, &p, NULL), 0);
    ask(&l.w.arena, &p, &at, &mean, &sd);    // all its own
    ck_assert_double_eq(mean, 0);
    ck_assert_double_eq_tol(sd, sqrt(kernel_alone(&at, &at) + 0.01), 1e-4);
    world_release(&l.w);
}

TEST(what_is_saved_answers_the_same)
{
    struct lab l;
    struct process p, back;
    struct weights bag;
    double mean, sd, want, want_sd;

    lab_init(&l);
    weights_init(&bag, &l.w.arena);
    ck_assert_int_eq(
        process_fit(&l.w.arena, kernel_alone, 0.01, &l.x, l.x.n_alone, l.x.alone, &p, NULL), 0);
    process_save(&p, "it", &bag);
    ck_assert_int_eq(process_load(&l.w.arena, kernel_alone, &bag, "it", &back, NULL), 0);
    for (int w = 0; w < l.x.n_workloads; w++) {
        struct kernel_point at = point_at(&l.x, w, 1);
        ask(&l.w.arena, &p, &at, &want, &want_sd);
        ask(&l.w.arena, &back, &at, &mean, &sd);
        ck_assert_double_eq_tol(mean, want, 1e-9);
        ck_assert_double_eq_tol(sd, want_sd, 1e-9);
    }
    ck_assert_uint_eq(back.points[5].who.name, p.points[5].who.name);
    ck_assert_uint_eq(back.points[5].who.dataset, p.points[5].who.dataset);
    struct err e = { 0 };
    ck_assert_int_eq(process_load(&l.w.arena, kernel_alone, &bag, "other", &back, &e), -ENOENT);
    world_release(&l.w);
}

TEST(points_with_fewer_values_are_refused)
{
    struct lab l;
    struct process back;
    struct weights bag;
    struct err e = { 0 };
    const double short_row[4] = { 0 };
    struct kernel_point two[2];

    lab_init(&l);
    two[0] = point_at(&l.x, 0, 0);
    two[1] = point_at(&l.x, 1, 0);
    weights_init(&bag, &l.w.arena);
    points_save(two, 2, "it.points", &bag);
    weights_put_doubles(&bag, "it.values", 1, 4, short_row);
    ck_assert_int_eq(process_load(&l.w.arena, kernel_alone, &bag, "it", &back, &e), -EINVAL);
    world_release(&l.w);
}

static const struct {
    const char *name;
    double values[6];    // mean, noise, y of two points, their noises
    float batch;         // of the first
    int rc;
} saved[] = {
    { "two points", { 0, 0.01, 1, 2, 0.01, 0.02 }, 3, 0 },
    { "a mean beyond all", { 1e30, 0.01, 1, 2, 0.01, 0.02 }, 3, -EINVAL },
    { "a value beyond all", { 0, 0.01, 1e30, 2, 0.01, 0.02 }, 3, -EINVAL },
    { "no noise at all", { 0, 0, 1, 2, 0.01, 0.02 }, 3, -EINVAL },
    { "less noise than is left unexplained", { 0, 0.01, 1, 2, 0.001, 0.02 }, 3, -EINVAL },
    { "a feature beyond all", { 0, 0.01, 1, 2, 0.01, 0.02 }, 1e30f, -EINVAL },
};

EACH(numbers_out_of_range_are_refused, saved)
{
    struct lab l;
    struct process back;
    struct weights bag;
    struct err e = { 0 };
    struct kernel_point two[2];

    lab_init(&l);
    two[0] = point_at(&l.x, 0, 0);
    two[1] = point_at(&l.x, 1, 0);
    two[0].on.ln_batch = saved[_i].batch;
    weights_init(&bag, &l.w.arena);
    points_save(two, 2, "it.points", &bag);
    weights_put_doubles(&bag, "it.values", 1, 6, saved[_i].values);
    int rc = process_load(&l.w.arena, kernel_alone, &bag, "it", &back, &e);
    ck_assert_msg(rc == saved[_i].rc, "%s: %d, %s", saved[_i].name, rc, e.text);
    world_release(&l.w);
}

/* Their square would be 36 MB: it is refused before. */
TEST(more_points_than_are_learned_from_are_refused)
{
    enum { N = EXAMPLES_PAIRS_MAX + 1 };
    struct lab l;
    struct process back;
    struct weights bag;
    struct err e = { 0 };

    lab_init(&l);
    struct kernel_point *many = ARENA_ARRAY(&l.w.arena, struct kernel_point, N);
    double *values = ARENA_ARRAY(&l.w.arena, double, 2 * N + 2);
    for (int i = 0; i < N; i++)
        values[2 + N + i] = 0.01;
    values[1] = 0.01;
    weights_init(&bag, &l.w.arena);
    points_save(many, N, "it.points", &bag);
    weights_put_doubles(&bag, "it.values", 1, 2 * N + 2, values);
    ck_assert_int_eq(process_load(&l.w.arena, kernel_alone, &bag, "it", &back, &e), -EINVAL);
    world_release(&l.w);
}
