/* Joules: the parts add up to the whole, and each hour has its own. */
#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "monitor/energy.h"
#include "unit/suite.h"
#include "unit/support.h"

static const char box[] = "type v100\ntype k80\nworkload w\nnode n1 v100 v100 k80\n"
                          "job a w\njob b w\njob c w\nstart a 0\nstart c 2\n";

enum { A, B, C };

/* What energy_take has handed over. */
struct taken {
    struct row_usage sum[8];    // by job + 1
    struct row_usage rows[256];
    int n;
    int fail_at;    // this row is refused; -1: none
};

static void add(struct row_usage *to, const struct row_usage *r)
{
    to->active_j += r->active_j;
    to->idle_j += r->idle_j;
    to->gpu_s += r->gpu_s;
    to->steps += r->steps;
    to->promised_s += r->promised_s;
    to->kept_s += r->kept_s;
    to->n_measured += r->n_measured;
    to->abs_error += r->abs_error;
    to->n_covered += r->n_covered;
    to->requests += r->requests;
    to->late += r->late;
}

static int take(void *self, const struct row_usage *r)
{
    struct taken *t = self;

    if (t->n == t->fail_at)
        return -5;
    ck_assert_int_lt(t->n, 256);
    t->rows[t->n++] = *r;
    add(&t->sum[r->job + 1], r);
    return 0;
}

static struct taken take_all(struct energy *e, double now_s)
{
    struct taken t = { .fail_at = -1 };

    ck_assert_int_eq(energy_take(e, now_s, take, &t), 0);
    return t;
}

TEST(idle_draw_is_split_evenly_and_the_rest_by_work)
{
    struct world w;

    world_init(&w, box);
    struct energy *e = energy_create(&w.ledger.state, &w.catalog);
    energy_draw(e, 0, 100, 200, 50);
    energy_share(e, 0, 100, (struct energy_share[]){ { A, 3 }, { B, 1 } }, 2);
    energy_share(e, 0, 110, NULL, 0);
    energy_draw(e, 0, 130, 40, 50);
    struct taken t = take_all(e, 140);
    ck_assert_double_eq_tol(t.sum[A + 1].active_j, 10 * 150 * .75, 1e-9);
    ck_assert_double_eq_tol(t.sum[A + 1].idle_j, 250, 1e-9);
    ck_assert_double_eq_tol(t.sum[A + 1].gpu_s, 5, 1e-9);
    ck_assert_double_eq_tol(t.sum[B + 1].active_j, 10 * 150 * .25, 1e-9);
    ck_assert_double_eq_tol(energy_job_j(e, B), 10 * 150 * .25 + 250, 1e-9);
    ck_assert_double_eq_tol(t.sum[0].idle_j, 20 * 200 + 10 * 40, 1e-9);    // nobody's
    ck_assert_double_eq_tol(t.sum[0].active_j + t.sum[0].gpu_s, 0, 1e-9);
    ck_assert_double_eq_tol(energy_gpu_j(e, 0), 6400, 1e-9);
    ck_assert_double_eq(energy_gpu_j(e, 1) + energy_job_j(e, C), 0);
    energy_destroy(e);
    world_release(&w);
}

TEST(hours_are_split_exactly)
{
    struct world w;

    world_init(&w, box);
    struct energy *e = energy_create(&w.ledger.state, &w.catalog);
    energy_draw(e, 2, 3500, 100, 30);
    energy_share(e, 2, 3500, (struct energy_share[]){ { C, 1 } }, 1);
    energy_promise(e, C, 3590, 7230, true);
    energy_promise(e, C, 7230, 7240, false);
    energy_promise(e, B, 10, 20, true);    // while it waits
    struct taken t = take_all(e, 7300);
    for (int i = 0; i < t.n; i++) {
        const struct row_usage *r = &t.rows[i];

        ck_assert_int_eq(r->hour_s % 3600, 0);
        if (r->job == B) {
            ck_assert_int_eq(r->gpu_type, 0);
            ck_assert_double_eq(r->kept_s, 10);
            continue;
        }
        double want_s = r->hour_s == 0 ? 100 : r->hour_s == 3600 ? 3600 : 100;
        double want_kept_s = r->hour_s == 0 ? 10 : r->hour_s == 3600 ? 3600 : 30;
        ck_assert_int_eq(r->gpu_type, world_type(&w, "k80") + 1);
        ck_assert_double_eq_tol(r->gpu_s, want_s, 1e-9);
        ck_assert_double_eq_tol(r->active_j, want_s * 70, 1e-6);
        ck_assert_double_eq_tol(r->idle_j, want_s * 30, 1e-6);
        ck_assert_double_eq_tol(r->kept_s, want_kept_s, 1e-9);
    }
    ck_assert_int_eq(t.n, 4);
    ck_assert_double_eq_tol(t.sum[C + 1].promised_s, 3650, 1e-9);
    energy_destroy(e);
    world_release(&w);
}

TEST(time_that_goes_back_books_nothing)
{
    struct world w;

    world_init(&w, box);
    struct energy *e = energy_create(&w.ledger.state, &w.catalog);
    energy_draw(e, 0, 1000, 100, 0);
    energy_draw(e, 0, 500, 100, 0);
    ck_assert_double_eq(energy_total_j(e), 0);
    energy_draw(e, 0, 510, 100, 0);
    ck_assert_double_eq(energy_total_j(e), 1000);
    energy_shift(e, 3600);    // and a clock that is set books nothing but what has passed
    energy_draw(e, 0, 4111, 100, 0);
    ck_assert_double_eq_tol(energy_total_j(e), 1100, 1e-9);
    energy_draw(e, 0, 4112, NAN, NAN);    // not known: none
    energy_draw(e, 0, 4113, 100, NAN);
    ck_assert_double_eq_tol(energy_total_j(e), 1200, 1e-9);
    energy_destroy(e);
    world_release(&w);
}

TEST(what_could_not_be_written_comes_again)
{
    struct world w;
    struct taken t = { .fail_at = 1 };

    world_init(&w, box);
    struct energy *e = energy_create(&w.ledger.state, &w.catalog);
    energy_steps(e, A, 0, 10, 500);
    energy_steps(e, A, 0, 20, 100);
    energy_surprise(e, A, 0, 20, .125, true);
    energy_surprise(e, A, 0, 21, .25, false);
    energy_steps(e, C, 1, 20, 7);
    energy_served(e, C, 20, 40, 3);
    energy_served(e, C, 21, 2, NAN);    // how many were late is not said
    ck_assert_int_eq(energy_take(e, 30, take, &t), -5);
    t = take_all(e, 40);
    ck_assert_double_eq(t.sum[A + 1].steps, 600);
    ck_assert_double_eq(t.sum[A + 1].n_measured, 2);
    ck_assert_double_eq(t.sum[A + 1].abs_error, .375);
    ck_assert_double_eq(t.sum[A + 1].n_covered, 1);
    ck_assert_double_eq(t.sum[C + 1].steps, 7);
    energy_steps(e, C, 1, 45, 1);
    energy_take_back(e);    // the commit failed
    energy_take_back(e);
    t = take_all(e, 50);
    ck_assert_double_eq(t.sum[A + 1].steps, 600);
    ck_assert_double_eq(t.sum[A + 1].abs_error, .375);
    ck_assert_double_eq(t.sum[C + 1].steps, 8);
    ck_assert_double_eq(t.sum[C + 1].requests, 42);
    ck_assert_double_eq(t.sum[C + 1].late, 3);
    ck_assert_int_eq(take_all(e, 50).n, 0);
    energy_destroy(e);
    world_release(&w);
}

/* Anybody anywhere at any draw, taken out at any time. */
static double wander(struct energy *e, struct rng *r, struct taken *all)
{
    double now_s = rng_between(r, 0, 1e4);

    for (int i = 0; i < 400; i++) {
        struct energy_share who[3];
        int n = (int)rng_below(r, 4), gpu = (int)rng_below(r, 3);

        now_s += rng_exponential(r, 100);
        for (int k = 0; k < n; k++)
            who[k] = (struct energy_share){ .job = k, .weight = rng_between(r, 1e-3, 10) };
        if (rng_below(r, 2) == 0)
            energy_draw(e, gpu, now_s, rng_between(r, 0, 300), rng_between(r, 0, 100));
        else
            energy_share(e, gpu, now_s, who, n);
        if (rng_below(r, 50) == 0) {
            struct taken t = take_all(e, now_s);

            for (int k = 0; k < 8; k++)
                add(&all->sum[k], &t.sum[k]);
        }
    }
    return now_s;
}

TIMES(the_parts_are_the_whole, 30)
{
    struct world w;
    struct taken all = { .fail_at = -1 };
    struct rng r;
    double rows_j = 0, jobs_j = 0, gpus_j = 0;

    world_init(&w, box);
    rng_init(&r, (uint64_t)_i, "energy");
    struct energy *e = energy_create(&w.ledger.state, &w.catalog);
    struct taken last = take_all(e, wander(e, &r, &all));
    for (int k = 0; k < 8; k++) {
        add(&all.sum[k], &last.sum[k]);
        rows_j += all.sum[k].active_j + all.sum[k].idle_j;
    }
    for (int i = 0; i < 3; i++) {
        jobs_j += energy_job_j(e, i);
        gpus_j += energy_gpu_j(e, i);
        ck_assert_double_eq_tol(
            energy_job_j(e, i) / (all.sum[i + 1].active_j + all.sum[i + 1].idle_j), 1, 1e-9);
    }
    jobs_j += all.sum[0].active_j + all.sum[0].idle_j;
    ck_assert_double_gt(energy_total_j(e), 0);
    ck_assert_double_eq_tol(rows_j / energy_total_j(e), 1, 1e-9);
    ck_assert_double_eq_tol(jobs_j / energy_total_j(e), 1, 1e-9);
    ck_assert_double_eq_tol(gpus_j / energy_total_j(e), 1, 1e-9);
    energy_destroy(e);
    world_release(&w);
}
