/* The posterior against conditioning by brute force, and what conditioning must do. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "estimate/hierarchical/posterior.h"
#include "nn/gp.h"
#include "unit/estimate/hierarchical/small.h"
#include "unit/suite.h"

enum { N = 40, WORKLOADS = 7, WORKLOADS_MOST = 16 };
enum { CELLS_MOST = SMALL_TYPES * WORKLOADS_MOST * (1 + 2 * WORKLOADS_MOST) };

static struct hyper_scale scale;
static struct small small;
static struct hyper hyper;
static struct reading list[SMALL_MOST];
static struct posterior *posterior;
static struct err e;

static void set_up_for(uint64_t seed)
{
    scale = (struct hyper_scale){ 1, 1.5, 1.7, 0 };
    small_init(&small, seed, WORKLOADS);
    hyper = small_hyper(&small);
    for (int i = 0; i < SMALL_MOST; i++)
        list[i] = small_reading(&small);
}

static void tear_down(void)
{
    posterior_destroy(posterior);
    site_release(&small.site);
}

FIXTURE(nn_init, tear_down)

static struct posterior *create(const struct reading *of, int n)
{
    struct posterior *p;

    ck_assert_msg(posterior_create(&small.site, &hyper, scale, of, n, &p, &e) == 0, "%s", e.text);
    ck_assert_int_eq(posterior_n(p), n);
    return p;
}

static struct reading cells[CELLS_MOST];
static struct cell_belief got[CELLS_MOST], want[CELLS_MOST];
static int n_cells;

static void list_cells(void)
{
    n_cells = 0;
    for (int i = 0; i < SMALL_TYPES * small.site.n_workloads; i++) {
        int type = i % SMALL_TYPES, job = i / SMALL_TYPES;
        cells[n_cells++] = (struct reading){ READ_ALONE, type, job, -1, 0, 0 };
        for (int by = 0; by < small.site.n_workloads; by++) {
            cells[n_cells++] = (struct reading){ READ_SLOWDOWN, type, job, by, 0, 0 };
            cells[n_cells++] = (struct reading){ READ_PACKED, type, job, by, 0, 0 };
        }
    }
}

static struct cell_belief ask(struct posterior *p, const struct reading *q)
{
    return posterior_ask(p, q->of, q->type, q->job, q->neighbour);
}

static void ask_all(struct posterior *p, struct cell_belief *out)
{
    list_cells();
    for (int i = 0; i < n_cells; i++)
        out[i] = ask(p, &cells[i]);
}

static void agree(double within)
{
    for (int i = 0; i < n_cells; i++)
        ck_assert_msg(fabs(got[i].mean - want[i].mean) <= within &&
                          fabs(got[i].sd - want[i].sd) <= within,
                      "cell %d of %d: %.9g +- %.9g, not %.9g +- %.9g", i, n_cells, got[i].mean,
                      got[i].sd, want[i].mean, want[i].sd);
}

/* By what its sd is widened: more where a speed of the job is among the list's first 'n'. */
static double widened(const struct effects *q, int n)
{
    double alone = scale.alone;

    for (int i = 0; i < n; i++)
        if (list[i].job == q->job && list[i].of != READ_SLOWDOWN)
            alone = scale.known;
    return q->of == READ_ALONE    ? alone
           : q->of == READ_PACKED ? fmax(alone, scale.beside)
                                  : scale.beside;
}

/* K of the readings, and from it m + k' K^-1 (y - m) and k_qq - k' K^-1 k of each cell. */
static void brute_all(int n)
{
    static double l[SMALL_MOST * SMALL_MOST];
    struct variances v = hyper_variances(&hyper);
    struct effects at[SMALL_MOST];
    double y[SMALL_MOST], k[SMALL_MOST], slope[VARIANCES];

    ck_assert(small_factor(&small, &hyper, list, n, l));
    for (int i = 0; i < n; i++) {
        at[i] = effects_of(&small.site, &list[i]);
        y[i] = (double)list[i].value - effects_mean(&hyper, &at[i]);
    }
    small_solve(l, n, y);
    for (int c = 0; c < n_cells; c++) {
        struct effects q = effects_of(&small.site, &cells[c]);
        double mean = effects_mean(&hyper, &q), var = effects_covariance(&v, &q, &q, slope);
        for (int i = 0; i < n; i++)
            k[i] = effects_covariance(&v, &q, &at[i], slope);
        small_solve(l, n, k);
        for (int i = 0; i < n; i++) {
            mean += k[i] * y[i];
            var -= k[i] * k[i];
        }
        want[c] = (struct cell_belief){ mean, widened(&q, n) * sqrt(var) };
    }
}

/* The posterior is that of the list's first 'n'. */
static void check_all(int n)
{
    ck_assert_int_eq(posterior_n(posterior), n);
    ask_all(posterior, got);
    brute_all(n);
    agree(2e-5);
    for (int i = 0; i < n_cells; i++) {
        struct cell_belief packed, slowdown;
        if (cells[i].of == READ_ALONE)
            continue;
        posterior_ask_pair(posterior, cells[i].type, cells[i].job, cells[i].neighbour, &packed,
                           &slowdown);
        got[i] = cells[i].of == READ_PACKED ? packed : slowdown;
    }
    agree(5e-5);    // single precision, of a difference
}

static const int sizes[] = { 0, 1, 2, 7, N, N, N, N, 150 };

EACH(every_cell_is_what_brute_force_gives, sizes)
{
    set_up_for((uint64_t)_i);
    posterior = create(list, sizes[_i]);
    check_all(sizes[_i]);
    check_all(sizes[_i]);    // again, from what was kept
}

/* From nothing and from some; asked in between, so that what is kept must be extended, and not. */
TIMES(adding_equals_creating_with_all, 4)
{
    int first = _i / 2 * 20;

    set_up_for(11);
    posterior = create(list, first);
    for (int i = first; i < N; i++) {
        if (_i % 2 && i % 4 == 0)
            ask_all(posterior, got);
        ck_assert_int_eq(posterior_add(posterior, &list[i], &e), 0);
    }
    check_all(N);
}

/* Bit for bit: a record that is run again asks less than the daemon was asked. */
TEST(answers_do_not_depend_on_when_others_were_asked)
{
    struct posterior *curious;

    set_up_for(15);
    posterior = create(list, 5);
    curious = create(list, 5);
    for (int i = 5; i < N; i++) {
        ck_assert_int_eq(posterior_add(posterior, &list[i], &e), 0);
        ck_assert_int_eq(posterior_add(curious, &list[i], &e), 0);
        for (int w = 0; w < i % WORKLOADS; w++)
            posterior_ask(curious, READ_PACKED, i % small.site.n_types, w, i % WORKLOADS);
    }
    ask_all(posterior, want);
    ask_all(curious, got);
    agree(0);
    posterior_destroy(curious);
}

/* Asked before, and not. */
TIMES(a_reading_may_say_another_number, 2)
{
    set_up_for(16);
    posterior = create(list, N - 4);
    for (int i = N - 4; i < N; i++)
        ck_assert_int_eq(posterior_add(posterior, &list[i], &e), 0);
    if (_i)
        ask_all(posterior, got);
    for (int i = 0; i < N; i += 3) {
        list[i].value += 0.25f;
        ck_assert_double_eq_tol(posterior_value(posterior, i), (double)list[i].value - 0.25, 1e-6);
        posterior_set(posterior, i, (double)list[i].value);
    }
    check_all(N);
}

static const int cuts[] = { 0, 1, 13, N - 1, N, N + 5 };

/* And forth again, from the end; asked in between, and not. */
TIMES(truncating_returns_to_earlier_answers, 2 * N_ROWS(cuts))
{
    int cut = cuts[_i / 2];

    set_up_for(12);
    posterior = create(list, N);
    if (_i % 2)
        ask_all(posterior, got);
    posterior_truncate(posterior, cut);
    if (_i % 2)
        check_all(cut < N ? cut : N);
    for (int i = N - 1; i >= cut; i--)
        ck_assert_int_eq(posterior_add(posterior, &list[i], &e), 0);
    check_all(N);
}

/* As one asks what a reading would say: nothing of it may stay, however often it was asked. */
TEST(adding_and_truncating_leaves_nothing_behind)
{
    const struct reading *r = &list[N - 1];

    set_up_for(13);
    posterior = create(list, N - 1);
    ask_all(posterior, want);
    for (int i = 0; i < suite_size(4000, 40000); i++) {
        ck_assert_int_eq(posterior_add(posterior, r, &e), 0);
        for (int w = 0; w < WORKLOADS; w++)
            posterior_ask(posterior, READ_PACKED, r->type, w, r->job);
        posterior_truncate(posterior, N - 1);
    }
    ask_all(posterior, got);
    agree(1e-9);
}

TEST(workloads_may_appear_after_it_was_made)
{
    set_up_for(14);
    posterior = create(list, N / 2);
    for (int i = N / 2; i < N; i++) {
        ask_all(posterior, got);
        if (i % 2 == 0 && small.site.n_workloads < WORKLOADS_MOST)
            small_add(&small);    // of families that were, and that were not
        list[i] = small_reading(&small);
        ck_assert_int_eq(posterior_add(posterior, &list[i], &e), 0);
    }
    ck_assert_int_eq(small.site.n_workloads, WORKLOADS_MOST);
    check_all(N);
}

TIMES(the_order_of_readings_does_not_matter, 3)
{
    struct reading turned[N];

    set_up_for(20 + (uint64_t)_i);
    for (int i = 0; i < N; i++)
        turned[i] = list[(7 + 11 * i) % N];    // 11 and N have no divisor in common
    posterior = create(turned, N);
    check_all(N);
}

TIMES(no_belief_gets_less_sure_by_a_reading, 3)
{
    set_up_for(30 + (uint64_t)_i);
    scale.known = scale.alone;
    posterior = create(NULL, 0);
    ask_all(posterior, want);
    for (int i = 0; i < N; i++) {
        ck_assert_int_eq(posterior_add(posterior, &list[i], &e), 0);
        ask_all(posterior, got);
        for (int c = 0; c < n_cells; c++)
            ck_assert_msg(got[c].sd <= want[c].sd + 5e-6, "cell %d: %g, before %g", c, got[c].sd,
                          want[c].sd);
        memcpy(want, got, sizeof got);
    }
}

TEST(a_reading_that_follows_from_others_is_refused)
{
    set_up_for(41);
    list[0].noise = 0;
    list[1] = list[0];
    ck_assert_int_eq(posterior_create(&small.site, &hyper, scale, list, 2, &posterior, &e), -EDOM);
    ck_assert_ptr_null(posterior);
    posterior = create(list, 1);
    ask_all(posterior, want);
    ck_assert_int_eq(posterior_add(posterior, &list[1], &e), -EDOM);
    ask_all(posterior, got);
    agree(1e-12);
}

/* Of more than it takes: all of those alone, and others from everywhere, with room for more. */
TEST(of_too_many_readings_it_takes_what_it_can)
{
    enum { MANY = 2 * POSTERIOR_MOST, ALONE = SMALL_TYPES * WORKLOADS };
    struct reading *many = calloc(MANY, sizeof *many);

    set_up_for(42);
    for (int i = 0; i < MANY; i++) {
        int type = i / WORKLOADS % SMALL_TYPES, by = i < ALONE ? -1 : i / ALONE % WORKLOADS;
        enum reading_of of = by < 0 ? READ_ALONE : READ_SLOWDOWN;
        many[i] = (struct reading){ of, type, i % WORKLOADS, by, 0, 0.05f };
    }
    ck_assert_int_eq(posterior_create(&small.site, &hyper, scale, many, MANY, &posterior, &e), 0);
    int n = posterior_n(posterior);
    ck_assert(n > POSTERIOR_MOST / 2 && n < POSTERIOR_MOST);
    for (int i = 0; i < ALONE + SMALL_TYPES * WORKLOADS * WORKLOADS; i++)
        ck_assert_double_le(ask(posterior, &many[i]).sd, scale.known * 0.05);
    for (; n < POSTERIOR_MOST; n++)
        ck_assert_int_eq(posterior_add(posterior, &many[n], &e), 0);
    ck_assert_int_eq(posterior_add(posterior, &many[n], &e), -ENOSPC);
    free(many);
}
