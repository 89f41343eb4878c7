/* What is chosen to be measured: it teaches more than chance does, keeps to what may be run, and is
 * the same each time.
 */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/rng.h"
#include "catalog/catalog.h"
#include "estimate/commission.h"
#include "estimate/estimate.h"
#include "estimate/hierarchical/choose.h"
#include "estimate/hierarchical/posterior.h"
#include "estimate/model/model.h"
#include "estimate/network/worlds.h"
#include "nn/gp.h"
#include "unit/suite.h"

enum { TYPES = 3, PROGRAMS = 4, WORKLOADS = 10, PICKS = 4, DRAWS = 12 };

static struct arena arena;
static struct catalog c;
static struct estimator est;
static struct model *model;
static struct rng chance;
static struct err e;
static int all_types[TYPES], workloads[WORKLOADS];
static struct commission_types there;
static struct reading *targets;
static int n_targets, n_programs;

static void set_up(void)
{
    nn_init();
    arena_init(&arena);
    catalog_init(&c);
    estimator_init(&est, &c, 1);
    int rc = model_pretrained(&model, &e);
    ck_assert_msg(rc == 0, "%s", e.text);
}

static void tear_down(void)
{
    model_destroy(model);
    estimator_release(&est);
    catalog_release(&c);
    arena_release(&arena);
}

FIXTURE(set_up, tear_down)

static void measure(int type, int job, int neighbour)
{
    struct measurement m = {
        .key = { .workload = job, .gpu_type = type, .neighbour = neighbour, .n_gpus = 1 },
        .fits = true,
        .throughput = exp(rng_normal(&chance)),
        .watts = NAN,
        .duration_s = NAN,
        .noise = NAN
    };

    ck_assert_int_eq(catalog_record(&c, &m, 0, &e), 0);
}

/* A site of built-in types and models, of which some was measured; the first are the programs. */
static void begin(uint64_t seed, int n_measured)
{
    static const char *const names[TYPES] = { "v100", "p100", "a100" };
    int n, index;
    const struct workload *usual = workload_builtin_usual(&n);

    rng_init(&chance, seed, "commission");
    for (int t = 0; t < TYPES; t++)
        ck_assert_int_eq(catalog_add_type(&c, gpu_type_builtin(names[t]), &all_types[t], &e), 0);
    for (int i = 0; i < WORKLOADS; i++) {
        ck_assert_int_eq(catalog_add_workload(&c, &usual[((int)seed + i) % n], &index, &e), 0);
        workloads[i] = index;
    }
    for (int i = 0; i < n_measured; i++)
        measure((int)rng_below(&chance, TYPES), (int)rng_below(&chance, WORKLOADS),
                (int)rng_below(&chance, WORKLOADS + 1) - 1);
    n_programs = PROGRAMS;
    there = (struct commission_types){ .types = all_types, .n = TYPES, .theta = 2 };
    estimate_use(&est, model, ESTIMATOR_HIERARCHICAL);
    estimate_refresh(&est);
    n_targets = commission_targets(&arena, &est, &there, workloads, WORKLOADS, seed, &targets);
}

static int choose(int n_most, struct commission_pick *out)
{
    return commission_choose(&arena, &est,
                             &(struct commission_means){ .there = there,
                                                         .programs = workloads,
                                                         .n_programs = n_programs,
                                                         .targets = targets,
                                                         .n_targets = n_targets,
                                                         .seed = 1 },
                             n_most, out);
}

/* ---- by brute force ---- */

static struct posterior *posterior(void)
{
    return est.beliefs->posterior[LEARN_SPEEDS];
}

static void add(int type, int job, int neighbour)
{
    struct reading r = { .of = neighbour < 0 ? READ_ALONE : READ_PACKED,
                         .type = type,
                         .job = job,
                         .neighbour = neighbour,
                         .noise = (float)CATALOG_NOISE };

    if (posterior_find(posterior(), type, job, neighbour) < 0)
        ck_assert_int_eq(posterior_add(posterior(), &r, &e), 0);
}

/* The mean sd of all targets were these measured. */
static double doubt_with(const struct commission_pick *picks, int n)
{
    int n_known = posterior_n(posterior());
    double sum = 0;

    for (int i = 0; i < n; i++) {
        add(picks[i].type, picks[i].a, -1);
        if (picks[i].b < 0)
            continue;
        add(picks[i].type, picks[i].b, -1);
        add(picks[i].type, picks[i].a, picks[i].b);
        add(picks[i].type, picks[i].b, picks[i].a);
    }
    for (int i = 0; i < n_targets; i++)
        sum += posterior_ask(posterior(), targets[i].of, targets[i].type, targets[i].job,
                             targets[i].neighbour)
                   .sd;
    posterior_truncate(posterior(), n_known);
    return sum / n_targets;
}

static const int measured[] = { 0, 0, 3, 20, 60 };

EACH(the_first_choice_is_the_best_of_all, measured)
{
    struct commission_pick first, one;
    double least = INFINITY;

    begin((uint64_t)_i, measured[_i]);
    ck_assert_int_eq(choose(1, &first), 1);
    for (int t = 0; t < TYPES; t++)
        for (int i = 0; i < PROGRAMS; i++)
            for (int k = i; k < PROGRAMS; k++) {
                one = (struct commission_pick){ .type = t, .a = workloads[i], .b = workloads[k] };
                least = fmin(least, doubt_with(&one, 1));
            }
    ck_assert_double_eq_tol(doubt_with(&first, 1), least, 1e-6);
    ck_assert_double_eq_tol(first.gain, doubt_with(NULL, 0) - least, 1e-5);
    ck_assert_double_gt(first.gain, 1e-3);
}

static struct commission_pick by_chance(void)
{
    return (struct commission_pick){ .type = (int)rng_below(&chance, TYPES),
                                     .a = workloads[rng_below(&chance, PROGRAMS)],
                                     .b = workloads[rng_below(&chance, PROGRAMS)] };
}

/* One after the other need not give the best four: chance may be a little better, once in a while.
 */
TIMES(no_other_choice_of_as_many_teaches_much_more, suite_size(8, 40))
{
    struct commission_pick chosen[PICKS], other[PICKS];

    begin((uint64_t)_i, (_i % 4) * 10);
    ck_assert_int_eq(choose(PICKS, chosen), PICKS);
    double before = doubt_with(NULL, 0), gain = before - doubt_with(chosen, PICKS);
    for (int draw = 0; draw < DRAWS; draw++) {
        for (int i = 0; i < PICKS; i++)
            other[i] = by_chance();
        ck_assert_double_ge(gain, 0.9 * (before - doubt_with(other, PICKS)));
    }
}

TEST(it_is_the_same_each_time_and_nothing_was_learned)
{
    struct commission_pick once[PICKS], again[PICKS];
    const struct reading *of;

    begin(3, 20);
    of = &targets[n_targets - 1];
    struct cell_belief before = commission_belief(&est, of);
    ck_assert_int_eq(choose(PICKS, once), PICKS);
    ck_assert_int_eq(choose(PICKS, again), PICKS);
    for (int i = 0; i < PICKS; i++) {
        ck_assert(once[i].type == again[i].type && once[i].a == again[i].a &&
                  once[i].b == again[i].b);
        ck_assert_double_eq_tol(once[i].gain, again[i].gain, 1e-6);
    }
    struct cell_belief after = commission_belief(&est, of);
    ck_assert_double_eq_tol(before.mean, after.mean, 1e-6);
    ck_assert_double_eq_tol(before.sd, after.sd, 1e-6);
}

/* ---- what may be run ---- */

TEST(gpus_that_nobody_shares_run_one_at_a_time)
{
    struct commission_pick picks[20];

    begin(1, 0);
    c.types[1].share_max = 1;
    n_targets = commission_targets(&arena, &est, &there, workloads, WORKLOADS, 1, &targets);
    for (int i = 0; i < n_targets; i++)
        ck_assert(targets[i].type != 1 || targets[i].of == READ_ALONE);
    int n = choose(20, picks), n_alone = 0;
    for (int i = 0; i < n; i++) {
        ck_assert_int_eq(picks[i].type == 1, picks[i].b < 0);
        n_alone += picks[i].b < 0;
    }
    ck_assert_int_ge(n_alone, 1);
}

TEST(what_does_not_fit_is_neither_run_nor_asked_about)
{
    struct commission_pick picks[20];
    struct measurement m = { .key = { .workload = workloads[0], .neighbour = -1, .n_gpus = 1 },
                             .throughput = NAN,
                             .watts = NAN,
                             .duration_s = NAN,
                             .noise = NAN };

    begin(2, 0);
    for (int t = 0; t < TYPES; t++) {
        m.key.gpu_type = t;
        for (int i = 0; i < 5; i++)
            ck_assert_int_eq(catalog_record(&c, &m, 0, &e), 0);
    }
    estimate_refresh(&est);
    n_targets = commission_targets(&arena, &est, &there, workloads, WORKLOADS, 1, &targets);
    for (int i = 0; i < n_targets; i++)
        ck_assert(targets[i].job != workloads[0] && targets[i].neighbour != workloads[0]);
    int n = choose(20, picks);
    ck_assert_int_ge(n, 1);
    for (int i = 0; i < n; i++)
        ck_assert(picks[i].a != workloads[0] && picks[i].b != workloads[0]);
}

TEST(who_fits_beside_nobody_runs_alone)
{
    struct commission_pick picks[20];
    struct measurement m = {
        .key = { .n_gpus = 1 }, .throughput = NAN, .watts = NAN, .duration_s = NAN, .noise = NAN
    };

    begin(2, 0);
    for (m.key.gpu_type = 0; m.key.gpu_type < TYPES; m.key.gpu_type++)
        for (int i = 0; i < 5 * PROGRAMS; i++) {
            m.key.workload = workloads[1];
            m.key.neighbour = workloads[i % PROGRAMS];
            ck_assert_int_eq(catalog_record(&c, &m, 0, &e), 0);
        }
    estimate_refresh(&est);
    int n = choose(20, picks), n_alone = 0;
    for (int i = 0; i < n; i++) {
        ck_assert_int_eq(picks[i].a == workloads[1], picks[i].b < 0);
        ck_assert_int_ne(picks[i].b, workloads[1]);
        n_alone += picks[i].b < 0;
    }
    ck_assert_int_ge(n_alone, 1);
}

TEST(without_programs_types_or_questions_nothing_is_chosen)
{
    struct commission_pick pick;

    begin(2, 0);
    n_programs = 0;
    ck_assert_int_eq(choose(1, &pick), 0);
    n_programs = PROGRAMS;
    n_targets = 0;
    ck_assert_int_eq(choose(1, &pick), 0);
    begin(2, 0);
    there.n = 0;
    ck_assert_int_eq(choose(1, &pick), 0);
}

/* ---- why ---- */

static const struct {
    const char *name;
    struct commission_pick pick;
    const char *want;
} reasons[] = {
    { "a new type",
      { .type = 0,
        .b = 0,
        .before = { .alone = 0.4, .beside = 0.5 },
        .after = { .alone = 0.3, .beside = 0.2 } },
      "nothing was measured on v100-16; would make slowdowns there 60 % surer" },
    { "no pair so far",
      { .type = 1,
        .b = 0,
        .n_alone = 3,
        .before = { .alone = 0.4, .beside = 0.5 },
        .after = { .alone = 0.4, .beside = 0.4 } },
      "no pair was measured on p100; would make slowdowns there 20 % surer" },
    { "some pairs",
      { .type = 1,
        .b = 0,
        .n_beside = 1,
        .before = { .alone = 0.4, .beside = 0.5 },
        .after = { .alone = 0.4, .beside = 0.4 } },
      "1 slowdown was measured on p100; would make slowdowns there 20 % surer" },
    { "a pair that teaches more of speeds",
      { .type = 1,
        .b = 0,
        .n_alone = 2,
        .before = { .alone = 0.4, .beside = 0.5 },
        .after = { .alone = 0.1, .beside = 0.5 } },
      "2 workloads were measured on p100; would make speeds there 75 % surer" },
    { "one more",
      { .type = 1,
        .b = 0,
        .n_earlier = 2,
        .before = { .alone = 0.4, .beside = 0.5 },
        .after = { .alone = 0.4, .beside = 0.4 } },
      "after 2 above on p100; would make slowdowns there 20 % surer" },
};

EACH(the_reason_says_what_is_missing, reasons)
{
    begin(1, 0);
    const char *said = commission_why(&arena, &est, &reasons[_i].pick);
    ck_assert_msg(strcmp(said, reasons[_i].want) == 0, "%s: %s", reasons[_i].name, said);
}

/* ---- on sites that are made up ---- */

enum { WORLD_PROGRAMS = 6, WORLD_PICKS = 10, ASKED = 150 };

static struct synthetic_world world;

static struct reading_group group_of(int type, int i, int k)
{
    struct reading_group g = { .n = 0 };
    const int cells[4][2] = { { i, -1 }, { k, -1 }, { i, k }, { k, i } };

    for (int n = 0; n < 4; n++)
        g.r[g.n++] = (struct reading){ .of = cells[n][1] < 0 ? READ_ALONE : READ_PACKED,
                                       .type = type,
                                       .job = cells[n][0],
                                       .neighbour = cells[n][1],
                                       .noise = (float)CATALOG_NOISE };
    return g;
}

static void read_truth(struct posterior *p, const struct reading_group *g)
{
    for (int i = 0; i < g->n; i++) {
        struct reading r = g->r[i];

        if (posterior_find(p, r.type, r.job, r.neighbour) >= 0)
            continue;
        r.value = synthetic_value(&world, r.of, r.type, r.job, r.neighbour) +
                  r.noise * (float)rng_normal(&chance);
        ck_assert_int_eq(posterior_add(p, &r, &e), 0);
    }
}

/* How wrong slowdowns are of workloads for which there is no program. */
static double slowdown_error(struct posterior *p, const struct reading *asked, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++) {
        const struct reading *q = &asked[i];
        double truth =
            exp((double)synthetic_value(&world, READ_SLOWDOWN, q->type, q->job, q->neighbour));

        sum +=
            fabs(exp(posterior_ask(p, READ_SLOWDOWN, q->type, q->job, q->neighbour).mean) - truth);
    }
    return sum / n;
}

/* Programs stand evenly among the workloads, whose families stand together. */
static int program(int i)
{
    return i * world.site.n_workloads / WORLD_PROGRAMS;
}

static int draw_stranger(void)
{
    for (;;) {
        int w = (int)rng_below(&chance, (uint64_t)world.site.n_workloads), i = 0;

        while (i < WORLD_PROGRAMS && program(i) != w)
            i++;
        if (i == WORLD_PROGRAMS)
            return w;
    }
}

static void draw_asked(struct reading *asked)
{
    for (int i = 0; i < ASKED; i++)
        asked[i] = (struct reading){ .of = READ_SLOWDOWN,
                                     .type = (int)rng_below(&chance, (uint64_t)world.site.n_types),
                                     .job = draw_stranger(),
                                     .neighbour = draw_stranger() };
}

/* The error after so many pairs, chosen or by chance; before any of them to 'before'. */
static double error_after(const struct reading_group *groups, int n, const struct reading *asked,
                          bool is_chosen, double *before)
{
    struct posterior *p;

    ck_assert_int_eq(posterior_create(&world.site, &model->hyper[LEARN_SPEEDS],
                                      model->scale[LEARN_SPEEDS], NULL, 0, &p, &e),
                     0);
    *before = slowdown_error(p, asked, ASKED);
    struct reading_group best[WORLD_PICKS];
    for (int i = 0; i < WORLD_PICKS; i++) {
        best[i] = groups[is_chosen ? posterior_choose_group(p, groups, n, asked, ASKED, NULL)
                                   : (int)rng_below(&chance, (uint64_t)n)];
        if (is_chosen)
            posterior_suppose(p, &best[i]);
    }
    posterior_truncate(p, 0);
    for (int i = 0; i < WORLD_PICKS; i++)
        read_truth(p, &best[i]);
    double error = slowdown_error(p, asked, ASKED);
    posterior_destroy(p);
    return error;
}

TEST(ten_pairs_that_were_chosen_teach_more_than_ten_by_chance)
{
    double chosen = 0, random = 0, before = 0;
    int n_worlds = suite_size(12, 100), n_used = 0;

    for (uint64_t seed = 0; n_used < n_worlds; seed++) {
        struct reading_group groups[WORLD_TYPES * WORLD_PROGRAMS * WORLD_PROGRAMS];
        struct reading asked[ASKED];
        double had;
        int n = 0;

        rng_init(&chance, seed, "commission a world");
        arena_reset(&arena);
        synthetic_make(&arena, &chance, &world);
        if (world.site.n_workloads < 2 * WORLD_PROGRAMS || world.only_alike)
            continue;
        n_used++;
        draw_asked(asked);
        for (int t = 0; t < world.site.n_types; t++)
            for (int i = 0; i < WORLD_PROGRAMS; i++)
                for (int k = i + 1; k < WORLD_PROGRAMS; k++)
                    groups[n++] = group_of(t, program(i), program(k));
        chosen += error_after(groups, n, asked, true, &had) / n_worlds;
        random += error_after(groups, n, asked, false, &had) / n_worlds;
        before += had / n_worlds;
    }
    printf("slowdown error: %.4f before, %.4f chosen, %.4f by chance\n", before, chosen, random);
    ck_assert_double_lt(chosen, random);
    ck_assert_double_lt(chosen, before);
}
