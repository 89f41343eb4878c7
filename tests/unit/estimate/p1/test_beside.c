/* The process over pairs: against plain elimination, and what it forgets. */
#include <errno.h>
#include <stdlib.h>

#include "estimate/p1/beside.h"
#include "nn/weights.h"
#include "unit/estimate/p1/lab.h"

struct lab {
    struct world w;
    struct examples x;
};

/* Pairs of five workloads of three families on one type. */
static void lab_init(struct lab *l)
{
    static const int some[] = { 0, 1, 3, 6, 7 };
    struct rng r;

    rng_init(&r, 3, "slowdowns");
    world_init(&l->w, lab_text);
    for (int i = 0; i < 5; i++) {
        lab_record(&l->w, some[i], 2, -1, 3, NAN);
        for (int k = 0; k < 5; k++)
            lab_record(&l->w, some[i], 2, some[k], 3 - rng_uniform(&r), NAN);
    }
    examples_take(&l->w.arena, &l->w.catalog, 1000, 1, &l->x);
    ck_assert_int_eq(l->x.n_pairs, 25);
}

static struct kernel_point point_at(const struct examples *x, int workload)
{
    return (struct kernel_point){ x->who[workload], *examples_at(x, workload, 2) };
}

/* As beside.c states it. */
static double kernel_of(const struct examples *x, int a, int beside_a, int b, int beside_b)
{
    struct kernel_point p = point_at(x, a), q = point_at(x, b);
    struct kernel_point m = point_at(x, beside_a), n = point_at(x, beside_b);
    double jobs = kernel_beside(&p, &q), neighbours = kernel_beside(&m, &n);

    return 0.1 + 0.06 * jobs + 0.06 * neighbours + 0.06 * jobs * neighbours;
}

/* s of 'job' beside 'neighbour' from the n pairs of 'list', by elimination. */
static double ask_plainly(const struct examples *x, const struct example *list, int n, int job,
                          int neighbour)
{
    double *k = calloc((size_t)(n * n) + 1, sizeof *k), *b = calloc((size_t)n + 1, sizeof *b);
    double answer = BESIDE_MEAN;

    for (int i = 0; i < n; i++) {
        double s = exp((double)list[i].value / 2), noise = s * (double)list[i].noise / 2;
        b[i] = s - BESIDE_MEAN;
        for (int j = 0; j < n; j++)
            k[i * n + j] = kernel_of(x, list[i].workload, list[i].neighbour, list[j].workload,
                                     list[j].neighbour);
        k[i * n + i] += 0.002 + noise * noise;
    }
    lab_solve(n, k, 1, b);
    for (int i = 0; i < n; i++)
        answer += b[i] * kernel_of(x, job, neighbour, list[i].workload, list[i].neighbour);
    free(k);
    free(b);
    return answer;
}

static double ask(struct lab *l, const struct beside *b, int job, int neighbour, bool forget)
{
    struct kernel_point at = point_at(&l->x, job), other = point_at(&l->x, neighbour);
    float constant, as_job[16], as_neighbour[16], rest[16];
    const double *alpha = b->gp.alpha;

    rows_ask(&l->w.arena, &b->rows, &other, as_neighbour);
    if (forget)
        ck_assert_int_eq(beside_forget(&l->w.arena, b, &at.who, &alpha, NULL), 0);
    rows_ask(&l->w.arena, &b->rows, &at, rest);
    beside_as_job(&l->w.arena, b, alpha, rest, &constant, as_job);
    double s = (double)constant;
    for (int i = 0; i < b->n_who; i++)
        s += (double)(as_job[i] * as_neighbour[i]);
    return s;
}

TEST(a_product_of_two_vectors_is_the_whole_sum)
{
    struct lab l;
    struct beside b;

    lab_init(&l);
    ck_assert_int_eq(beside_fit(&l.w.arena, &l.x, l.x.n_pairs, l.x.pairs, &b, NULL), 0);
    ck_assert_int_eq(b.n_who, 5);
    for (int i = 0; i < l.x.n_workloads; i++)
        for (int k = 0; k < l.x.n_workloads; k++)
            ck_assert_double_eq_tol(ask(&l, &b, i, k, false),
                                    ask_plainly(&l.x, l.x.pairs, l.x.n_pairs, i, k), 1e-4);
    world_release(&l.w);
}

TEST(forgetting_is_never_having_seen_it_in_either_role)
{
    struct lab l;
    struct beside b;
    struct example list[32];

    lab_init(&l);
    ck_assert_int_eq(beside_fit(&l.w.arena, &l.x, l.x.n_pairs, l.x.pairs, &b, NULL), 0);
    for (int i = 0; i < l.x.n_workloads; i++) {
        int n = 0;
        for (int p = 0; p < l.x.n_pairs; p++)
            if (l.x.pairs[p].workload != i && l.x.pairs[p].neighbour != i)
                list[n++] = l.x.pairs[p];
        for (int k = 0; k < l.x.n_workloads; k++)
            ck_assert_double_eq_tol(ask(&l, &b, i, k, true), ask_plainly(&l.x, list, n, i, k),
                                    1e-4);
    }
    world_release(&l.w);
}

TEST(leaving_out_agrees_with_fitting_again)
{
    struct lab l;
    struct beside b;
    struct example list[32];
    double s[32];
    int block[32];

    lab_init(&l);
    ck_assert_int_eq(beside_fit(&l.w.arena, &l.x, l.x.n_pairs, l.x.pairs, &b, NULL), 0);
    for (int f = 0; f < l.x.n_families; f++) {
        int n = 0, m = 0;
        for (int p = 0; p < l.x.n_pairs; p++)
            if (l.x.family[l.x.pairs[p].workload] == f || l.x.family[l.x.pairs[p].neighbour] == f)
                block[m++] = p;
            else
                list[n++] = l.x.pairs[p];
        ck_assert_int_eq(beside_leave_out(&l.w.arena, &b, m, block, s, NULL), 0);
        for (int i = 0; i < m; i++) {
            const struct example *e = &l.x.pairs[block[i]];
            ck_assert_double_eq_tol(s[i], ask_plainly(&l.x, list, n, e->workload, e->neighbour),
                                    1e-5);
        }
    }
    world_release(&l.w);
}

TEST(without_pairs_nothing_is_known)
{
    struct lab l;
    struct beside b;

    lab_init(&l);
    ck_assert_int_eq(beside_fit(&l.w.arena, &l.x, 0, NULL, &b, NULL), 0);
    ck_assert_double_eq_tol(ask(&l, &b, 0, 1, false), BESIDE_MEAN, 1e-6);
    ck_assert_double_eq_tol(ask(&l, &b, 0, 1, true), BESIDE_MEAN, 1e-6);
    world_release(&l.w);
}

/* ---- files ---- */

TIMES(what_is_saved_answers_the_same, 2)
{
    struct lab l;
    struct beside b, back;
    struct weights bag;

    lab_init(&l);
    weights_init(&bag, &l.w.arena);
    ck_assert_int_eq(beside_fit(&l.w.arena, &l.x, l.x.n_pairs, l.x.pairs, &b, NULL), 0);
    beside_save(&b, "it", &bag);
    ck_assert_int_eq(beside_load(&l.w.arena, &bag, "it", &back, NULL), 0);
    for (int i = 0; i < l.x.n_workloads; i++)
        ck_assert_double_eq_tol(ask(&l, &b, i, 6, _i), ask(&l, &back, i, 6, _i), 1e-6);
    world_release(&l.w);
}

static const struct {
    const char *name;
    float row[4];    // job, neighbour, s less its mean, variance
    int rc;
} rows[] = {
    { "the last of two", { 1, 0, 0.1f, 0.01f }, 0 },
    { "a job that is not there", { 2, 0, 0.1f, 0.01f }, -EINVAL },
    { "a neighbour that is not there", { 0, 2, 0.1f, 0.01f }, -EINVAL },
    { "a position below 0", { -1, 0, 0.1f, 0.01f }, -EINVAL },
    { "a position beyond all numbers", { 0, 1e30f, 0.1f, 0.01f }, -EINVAL },
    { "no position", { 0, (float)NAN, 0.1f, 0.01f }, -EINVAL },
    { "more than s can be off", { 0, 1, 1e6f, 0.01f }, -EINVAL },
    { "a noise beyond all", { 0, 1, 0.1f, 1e30f }, -EINVAL },
    { "no noise", { 0, 1, 0.1f, 0 }, -EINVAL },
    { "a noise that is none", { 0, 1, 0.1f, (float)NAN }, -EINVAL },
};

EACH(positions_out_of_range_are_refused, rows)
{
    struct lab l;
    struct beside back;
    struct weights bag;
    struct err e = { 0 };
    struct kernel_point two[2];

    lab_init(&l);
    two[0] = point_at(&l.x, 0);
    two[1] = point_at(&l.x, 3);
    weights_init(&bag, &l.w.arena);
    points_save(two, 2, "it.points", &bag);
    weights_put(&bag, "it.pairs", 1, 4, rows[_i].row);
    int rc = beside_load(&l.w.arena, &bag, "it", &back, &e);
    ck_assert_msg(rc == rows[_i].rc, "%s: %d, %s", rows[_i].name, rc, e.text);
    world_release(&l.w);
}

TEST(workloads_in_no_pair_are_refused)
{
    const float row[4] = { 0, 1, 0.1f, 0.01f };
    struct lab l;
    struct beside back;
    struct weights bag;
    struct err e = { 0 };
    struct kernel_point three[3];

    lab_init(&l);
    for (int i = 0; i < 3; i++)
        three[i] = point_at(&l.x, i);
    weights_init(&bag, &l.w.arena);
    points_save(three, 3, "it.points", &bag);
    weights_put(&bag, "it.pairs", 1, 4, row);
    ck_assert_int_eq(beside_load(&l.w.arena, &bag, "it", &back, &e), -EINVAL);
    world_release(&l.w);
}
