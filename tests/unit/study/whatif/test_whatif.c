#include "study/whatif/whatif.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "catalog/cluster/cluster.h"
#include "sim/ground.h"
#include "unit/suite.h"

static struct arena arena;
static struct cluster cluster;
static struct err e;

static void set_up(void)
{
    static const char site[] = "node a k80:2 v100:2\nnode b v100:4\n";

    arena_init(&arena);
    ck_assert_int_eq(cluster_parse(&arena, "t", site, strlen(site), &cluster, &e), 0);
}

static void tear_down(void)
{
    arena_release(&arena);
}

FIXTURE(set_up, tear_down)

/* ---- who can run ---- */

static const struct {
    const char *name, *job;
    bool fits;
} asks[] = {
    { "one GPU", "workload=resnet18 steps=9", true },
    { "as many as a type has", "workload=resnet18 steps=9 gpus=6", true },
    { "more than any type has", "workload=resnet18 steps=9 gpus=7", false },
    { "on one node", "workload=resnet18 steps=9 gpus=4 one_node", true },
    { "on one node that is too small", "workload=resnet18 steps=9 gpus=5 one_node", false },
    { "on two nodes", "workload=resnet18 steps=9 gpus=4 nodes=2", true },
    { "on two nodes of which one is too small", "workload=resnet18 steps=9 gpus=6 nodes=2", false },
    { "on a type that is too few", "workload=resnet18 steps=9 gpus=3 types=k80", false },
    { "on a type that is gone", "workload=resnet18 steps=9 types=p100", false },
    { "on one that is gone or one that is there", "workload=resnet18 steps=9 types=p100,k80",
      true },
    { "in memory that nobody has", "workload=llama-7b batch=512 steps=9", false },
};

EACH(a_job_fits_where_its_whole_gang_has_room, asks)
{
    const char *text = arena_printf(&arena, "job a at=0 %s\n", asks[_i].job);
    struct ground g;
    struct trace t;

    ck_assert_msg(trace_parse(&arena, "t", text, strlen(text), &t, &e) == 0, "%s", e.text);
    ground_name_batches(&arena, &t, &cluster);
    ck_assert_msg(ground_builtin(&g, &cluster, &t, "p100", 1, &e) == 0, "%s", e.text);
    ck_assert_msg(whatif_fits(&t.jobs[0], &cluster, &g.truth) == asks[_i].fits, "%s",
                  asks[_i].name);
    ground_close(&g);
}

TEST(a_period_ends_as_long_after_the_last_job_as_jobs_are_apart)
{
    struct trace_job jobs[] = { { .at_s = 0 }, { .at_s = 50 }, { .at_s = 300 } };

    ck_assert_double_eq(whatif_period_s(&(struct trace){ .n_jobs = 3, .jobs = jobs }), 450);
    ck_assert_double_eq(whatif_period_s(&(struct trace){ .n_jobs = 1, .jobs = jobs }), 0);
}

/* ---- figures ---- */

/* Three seeds; the site has 100, 110, 120 kWh, and each variant 'more' and so much longer jobs. */
static void fill(struct whatif_variant *v, double more_kwh, double more_s, double more_promises)
{
    v->of_seed = arena_array(&arena, 3, sizeof *v->of_seed);
    for (int i = 0; i < 3; i++) {
        v->of_seed[i][WHATIF_KWH] = 100 + 10 * i + more_kwh;
        v->of_seed[i][WHATIF_PROMISES] = 0.95 + more_promises;
        v->of_seed[i][WHATIF_MEAN_JCT] = 1000 * (i + 1) + more_s;
        v->of_seed[i][WHATIF_P95_JCT] = NAN;
    }
}

TEST(differences_are_taken_world_by_world)
{
    struct whatif_variant v[2] = { 0 };
    const struct whatif w = { .n_seeds = 3, .n_variants = 2, .variants = v };

    fill(&v[0], 0, 0, 0);
    fill(&v[1], -5, 0, 0);
    struct spread site = whatif_spread(&w, &v[0], WHATIF_KWH);
    struct spread more = whatif_difference(&w, &v[1], WHATIF_KWH);
    ck_assert_double_eq(site.mean, 110);
    ck_assert(site.from == 100 && site.to == 120);
    ck_assert_double_eq(more.mean, -5);
    ck_assert_double_eq(more.half, 0);
    ck_assert(isnan(whatif_spread(&w, &v[0], WHATIF_P95_JCT).mean));
}

/* An hour of period, 3.6 jobs: 31,536 a year; a second of each at 1 kW is 8.76 kWh. */
TEST(time_costs_what_the_site_says)
{
    struct whatif_variant v[2] = { 0 };
    struct whatif w = { .n_seeds = 3, .n_variants = 2, .variants = v, .period_s = 36000 };

    fill(&v[0], 0, 0, 0);
    fill(&v[1], 7, 1, 0);
    w.n_jobs = 36;
    ck_assert_double_eq_tol(whatif_cost_kwh(&w, &v[1]), 7, 1e-9);
    w.delay_w = 1000;
    ck_assert_double_eq_tol(whatif_cost_kwh(&w, &v[1]), 7 + 8.76, 1e-9);
}

TEST(the_best_to_retire_comes_first)
{
    static const char *const want[] = { NULL,      "saves",  "costs", "breaks",
                                        "strands", "stalls", "stops" };
    enum { VARIANTS = sizeof want / sizeof *want };
    struct whatif_variant v[VARIANTS] = { { .n_unfinished = 1 },
                                          { .type = "stops", .n_unfinished = 36 },
                                          { .type = "stalls", .n_unfinished = 1.5 },
                                          { .type = "strands", .n_unfinished = 1, .n_cannot = 1 },
                                          { .type = "breaks", .n_unfinished = 1 },
                                          { .type = "costs", .n_unfinished = 1 },
                                          { .type = "saves", .n_unfinished = 1 } };
    struct whatif w = { .n_seeds = 3,
                        .n_variants = VARIANTS,
                        .variants = v,
                        .period_s = 36000,
                        .n_jobs = 36,
                        .delay_w = 1000 };

    fill(&v[0], 0, 0, 0);
    fill(&v[1], -90, NAN, 0);    // nothing finishes there
    fill(&v[2], -45, 0, 0);
    fill(&v[3], -50, 0, 0);
    fill(&v[4], -40, 0, -0.02);
    fill(&v[5], -20, 3, 0);    // what it saves is less than its time is worth
    fill(&v[6], -10, 0, -0.005);
    whatif_sort(&w);
    for (int i = 1; i < VARIANTS; i++)
        ck_assert_str_eq(w.variants[i].type, want[i]);
    ck_assert_ptr_null(w.variants[0].type);
}
