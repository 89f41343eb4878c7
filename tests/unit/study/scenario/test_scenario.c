/* Scenarios: which runs they consist of, and what a run is given. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text/file.h"
#include "base/log.h"
#include "base/map.h"
#include "study/scenario/scenario.h"
#include "unit/study/published.h"
#include "unit/suite.h"
#include "unit/support.h"

static const struct scenario *named(const char *name)
{
    const struct scenario *s = scenario_by_name(name);

    ck_assert_msg(s != NULL, "there is no scenario '%s'", name);
    return s;
}

/* ---- runs ---- */

static const struct {
    const char *scenario;
    int n_seeds, n_runs;
    const char *first, *last;
} lists[] = {
    { "reference", 0, 3 * 12 * 2 * 6, "reference-0.3-slurm-empty-s11",
      "reference-0.9-bound-limits-truth-s16" },
    { "reference", 1, 3 * 12 * 2, "reference-0.3-slurm-empty-s11",
      "reference-0.9-bound-limits-truth-s11" },
    { "levers", 0, 3 * 7 * 3, "levers-0.3-gogh-limits-empty-s11",
      "levers-0.9-gogh-limits-less-joules-empty-s13" },
    { "front", 0, 3 * 4 * 5 * 3, "front-0.3-fifo-promise-limits-delay15-empty-s11",
      "front-0.9-gogh-limits-delay240-empty-s13" },
    { "learning", 0, 2 * 2 * 3 * 3, "learning-0.6-fifo-promise-empty-s11",
      "learning-0.6-gogh-limits-others-s13" },
    { "builtin", 0, 10 * 2 * 4, "builtin-0.7-fifo-random-empty-s11",
      "builtin-0.7-bound-limits-truth-s14" },
    { "alibaba", 0, 2, "alibaba-full-fifo-fastest-empty-s11", "alibaba-full-gogh-empty-s11" },
    { "always-on", 2, 3 * 4 * 2 * 2, "always-on-0.3-fifo-fastest-awake-empty-s11",
      "always-on-0.9-gogh-awake-limits-empty-s12" },
};

EACH(runs_are_listed_in_order, lists)
{
    struct study_run *keys;
    struct arena a;
    int n;

    arena_init(&a);
    n = scenario_runs(&a, named(lists[_i].scenario), lists[_i].n_seeds, &keys);
    ck_assert_int_eq(n, lists[_i].n_runs);
    ck_assert_str_eq(study_run_name(&a, &keys[0]), lists[_i].first);
    ck_assert_str_eq(study_run_name(&a, &keys[n - 1]), lists[_i].last);
    arena_release(&a);
}

TEST(each_run_of_a_study_has_a_name_of_its_own)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789.-";
    const struct scenario *all;
    struct map seen = { 0 };
    struct arena a;
    int n_all;

    arena_init(&a);
    all = scenario_all(&n_all);
    for (int i = 0; i < n_all; i++) {
        struct study_run *keys;
        const int n = scenario_runs(&a, &all[i], 0, &keys);

        ck_assert_ptr_eq(scenario_by_name(all[i].name), &all[i]);
        ck_assert_int_gt(n, 0);
        for (int k = 0; k < n; k++) {
            const char *name = study_run_name(&a, &keys[k]);

            ck_assert_uint_eq(strspn(name, letters), strlen(name));
            ck_assert_msg(map_get(&seen, name) < 0, "%s is there twice", name);
            map_set(&seen, name, 1);
        }
    }
    map_release(&seen);
    arena_release(&a);
}

TEST(only_oracles_know_the_truth)
{
    struct study_run *keys;
    struct arena a;

    arena_init(&a);
    int n = scenario_runs(&a, named("reference"), 1, &keys);
    for (int i = 0; i < n; i++) {
        const bool is_oracle =
            strcmp(keys[i].policy, "gogh-oracle") == 0 || strcmp(keys[i].policy, "bound") == 0;

        ck_assert_int_eq(keys[i].knows == KNOWS_TRUTH, is_oracle);
        ck_assert(keys[i].has_sleep);
    }
    arena_release(&a);
}

TEST(a_lever_that_is_the_worlds_is_taken_from_the_world)
{
    struct study_run *keys;
    struct arena a;
    int n_full = 0;

    arena_init(&a);
    int n = scenario_runs(&a, named("levers"), 1, &keys);
    for (int i = 0; i < n; i++) {
        n_full += keys[i].without[0] == '\0';
        ck_assert_int_eq(keys[i].has_sleep, strcmp(keys[i].without, "sleep") != 0);
        ck_assert_int_eq(keys[i].has_limits, strcmp(keys[i].without, "limits") != 0);
    }
    ck_assert_int_eq(n_full, 3);
    arena_release(&a);
}

/* ---- inputs ---- */

static struct study_run key(const char *scenario, double load, int seed)
{
    return (struct study_run){
        .scenario = named(scenario),
        .load = load,
        .policy = "gogh",
        .seed = seed,
        .has_sleep = true,
        .without = "",
    };
}

static void must_open(struct arena *a, const struct study_run *k, const char *data,
                      struct study_inputs *out)
{
    struct err e = { 0 };

    ck_assert_msg(scenario_open(a, k, data, out, &e) == 0, "%s", e.text);
}

TEST(the_built_in_scenario_needs_no_data)
{
    const struct study_run k = key("builtin", 0.7, 11);
    struct study_inputs s;
    struct arena a;

    arena_init(&a);
    ck_assert(scenario_has_data(k.scenario, "/nowhere", NULL));
    must_open(&a, &k, "/nowhere", &s);
    ck_assert_int_eq(s.trace.n_jobs, 200);
    ck_assert_double_eq(s.arrivals_s, s.trace.jobs[199].at_s);
    ck_assert_ptr_null(s.pretraining.catalog);
    ck_assert_ptr_null(s.pretraining.model);
    scenario_close(&s);
    arena_release(&a);
}

TEST(policies_get_the_same_jobs_and_seeds_others)
{
    struct study_run k = key("builtin", 0.7, 11), other;
    struct study_inputs one, same, another;
    struct arena a;

    arena_init(&a);
    must_open(&a, &k, "/nowhere", &one);
    other = k;
    other.policy = "fifo-random";
    other.has_limits = true;
    must_open(&a, &other, "/nowhere", &same);
    other.seed = 12;
    must_open(&a, &other, "/nowhere", &another);
    for (int i = 0; i < one.trace.n_jobs; i++) {
        ck_assert_double_eq(one.trace.jobs[i].at_s, same.trace.jobs[i].at_s);
        ck_assert_double_eq(one.trace.jobs[i].steps, same.trace.jobs[i].steps);
        ck_assert_double_eq(one.trace.jobs[i].min_throughput, same.trace.jobs[i].min_throughput);
    }
    ck_assert_double_eq(truth_speed(&one.ground.truth, 0, 0),
                        truth_speed(&same.ground.truth, 0, 0));
    ck_assert_double_ne(one.trace.jobs[0].at_s, another.trace.jobs[0].at_s);
    scenario_close(&one);
    scenario_close(&same);
    scenario_close(&another);
    arena_release(&a);
}

TEST(the_world_has_the_runs_sleep_and_limits)
{
    struct study_run k = key("builtin", 0.7, 11);
    struct study_inputs s;
    struct arena a;

    arena_init(&a);
    must_open(&a, &k, "/nowhere", &s);
    ck_assert_double_eq(s.cluster.settings.sleep_after_s, 60);
    ck_assert_int_eq(s.cluster.settings.power_limits, 0);
    ck_assert_int_eq(s.cluster.settings.power_model, POWER_ADDITIVE);
    scenario_close(&s);
    k.has_sleep = false;
    k.has_limits = true;
    must_open(&a, &k, "/nowhere", &s);
    ck_assert_double_gt(s.cluster.settings.sleep_after_s, 1e8);
    ck_assert_int_eq(s.cluster.settings.power_limits, 1);
    scenario_close(&s);
    arena_release(&a);
}

TEST(a_file_that_is_missing_is_named_with_the_cure)
{
    static const struct {
        const char *scenario, *file;
    } missing[] = {
        { "reference", "gavel/simulation_throughputs.json" },
        { "alibaba", "alibaba_openb_v2023/openb_node_list_gpu_node.csv.gz" },
    };
    struct study_inputs s;
    struct arena a;

    arena_init(&a);
    for (int i = 0; i < 2; i++) {
        const struct study_run k = key(missing[i].scenario, 0.6, 11);
        struct err e = { 0 };

        ck_assert_int_lt(scenario_open(&a, &k, "/nowhere", &s, &e), 0);
        ck_assert_msg(strstr(e.text, missing[i].file) != NULL, "%s", e.text);
        ck_assert_msg(strstr(e.text, "give --data DIR or set GOGH_DATA "
                                     "(docs/formats/study.md#data)") != NULL,
                      "%s", e.text);
        ck_assert(!scenario_has_data(k.scenario, "/nowhere", &e));
    }
    arena_release(&a);
}

/* ---- the data directory ---- */

TEST(data_is_where_one_says_else_where_the_environment_says)
{
    ck_assert_int_eq(setenv("GOGH_DATA", "/there", 1), 0);
    ck_assert_str_eq(scenario_data("here"), "here");
    ck_assert_str_eq(scenario_data(NULL), "/there");
    ck_assert_int_eq(unsetenv("GOGH_DATA"), 0);
    ck_assert_str_eq(scenario_data(NULL), "../shared/data");
}

static const char *must_digest(struct arena *a, const char *scenario, const char *data)
{
    const char *digest = NULL;
    struct err e = { 0 };

    ck_assert_msg(scenario_digest(a, named(scenario), data, &digest, &e) == 0, "%s", e.text);
    return digest;
}

TEST(the_digest_tells_apart_the_data_that_a_scenario_reads)
{
    char *dir = scratch_make();
    const char *one, *same, *other, *sub, *path;
    struct arena a;
    struct err e = { 0 };

    arena_init(&a);
    ck_assert_str_eq(must_digest(&a, "reference", dir), "none");
    sub = arena_printf(&a, "%s/power", dir);
    path = arena_printf(&a, "%s/gavel_watts.csv", sub);
    ck_assert_int_eq(mkdir(sub, 0700), 0);
    ck_assert_int_eq(file_write(path, "1", 1, &e), 0);
    one = must_digest(&a, "reference", dir);
    same = must_digest(&a, "msr", dir);
    ck_assert_int_eq(file_write(path, "2", 1, &e), 0);
    other = must_digest(&a, "reference", dir);
    ck_assert_uint_eq(strlen(one), 64);
    ck_assert_str_eq(one, same);
    ck_assert_str_ne(one, other);
    ck_assert_str_eq(must_digest(&a, "alibaba", dir), "none");
    ck_assert_str_eq(must_digest(&a, "builtin", dir), "none");
    scratch_remove(dir);
    arena_release(&a);
}

/* ---- with published data, where it is ---- */

static int count_gpus(const struct cluster *cl, const char *type)
{
    int n = 0;

    for (int i = 0; i < cl->n_nodes; i++)
        for (int g = 0; g < cl->nodes[i].n_gpus; g++)
            n += strcmp(cl->types[cl->nodes[i].types[g]].name, type) == 0;
    return n;
}

static const struct {
    const char *scenario;
    double load;
    int n_k80, n_p100, n_v100, n_jobs;
} clusters[] = {
    { "reference", 0.9, 12, 12, 12, 1000 },  { "levers", 0.3, 12, 12, 12, 1000 },
    { "large", 0.6, 36, 36, 36, 1000 },      { "no-k80", 0.6, 0, 18, 18, 1000 },
    { "k80-heavy", 0.6, 24, 6, 6, 1000 },    { "tight", 0.6, 12, 12, 12, 1000 },
    { "saturating", 0.6, 12, 12, 12, 1000 },
};

EACH(clusters_have_the_gpus_that_they_are_named_for, clusters)
{
    struct study_run k = key(clusters[_i].scenario, clusters[_i].load, 11);
    struct study_inputs s;
    struct arena a;
    const char *data;

    log_set_level(LOG_ERROR);
    arena_init(&a);
    data = published(&a, k.scenario);
    if (data == NULL) {
        arena_release(&a);
        return;
    }
    must_open(&a, &k, data, &s);
    ck_assert_int_eq(count_gpus(&s.cluster, "k80"), clusters[_i].n_k80);
    ck_assert_int_eq(count_gpus(&s.cluster, "p100"), clusters[_i].n_p100);
    ck_assert_int_eq(count_gpus(&s.cluster, "v100"), clusters[_i].n_v100);
    ck_assert_int_eq(s.trace.n_jobs, clusters[_i].n_jobs);
    ck_assert_int_eq(s.cluster.settings.power_model,
                     strcmp(clusters[_i].scenario, "saturating") == 0 ? POWER_SATURATING
                                                                      : POWER_ADDITIVE);
    /* Watts and speeds of Gavel's files: an LM of batch 10 alone on a p100. */
    const int w = truth_find_workload(&s.ground.truth, "LM (batch size 10)");
    const int p100 = truth_find_type(&s.ground.truth, "p100");
    ck_assert_int_ge(w, 0);
    ck_assert(truth_speed(&s.ground.truth, w, p100) > 20);
    ck_assert(truth_watts(&s.ground.truth, w, p100) < 250);
    scenario_close(&s);
    arena_release(&a);
}

TEST(alibabas_cluster_is_there_whole)
{
    struct study_run k = key("alibaba", 0, 11);
    struct study_inputs s;
    struct arena a;
    const char *data;

    arena_init(&a);
    data = published(&a, k.scenario);
    if (data == NULL) {
        arena_release(&a);
        return;
    }
    must_open(&a, &k, data, &s);
    ck_assert_int_eq(s.cluster.n_gpus, 6212);
    ck_assert_int_eq(s.cluster.n_types, 7);
    ck_assert_int_eq(s.trace.n_jobs, 7063);    // of 8,152 pods, those with a GPU and a duration
    scenario_close(&s);
    arena_release(&a);
}
