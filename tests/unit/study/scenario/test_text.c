/* Scenario files: what people write, what they get wrong, and the way back to text. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text/buf.h"
#include "base/text/file.h"
#include "study/scenario/text.h"
#include "unit/suite.h"
#include "unit/support.h"
#include "unit/texts.h"

#define LEAST "node a v100:2\njobs drawn 10\nload 0.5\npolicy gogh\n"

static const char *written(struct arena *a, const struct scenario *s)
{
    struct buf b;

    buf_init(&b, 1 << 20);
    ck_assert_int_eq(scenario_write(s, &b), 0);
    return text_taken(a, &b);
}

/* The scenario as it is written, or the error. */
static const char *digest(struct arena *a, const char *text)
{
    struct scenario s;
    struct err e = { 0 };

    if (scenario_parse(a, "s", text, strlen(text), &s, &e) < 0)
        return arena_printf(a, "! %s", e.text);
    return written(a, &s);
}

static const struct text_row cases[] = {
    { "what is not said has a usual value", LEAST,
      "node a v100:2\ntruth builtin\njobs drawn 10\nload 0.5\npolicy gogh\nlimits no\n"
      "first_seed 11\nseeds 4\n" },
    { "everything can be said, in any order, with comments",
      "seeds 2 # two\nfirst_seed 7\npromise_w auto\ndelay_w auto 15 30\nmodel m.weights\n"
      "history 20\nknows empty history model\nlevers yes\nsleep no\nlimits both\n"
      "policy gogh bound\nload 0.5 0.9\nservices 20 40 7\npromises 0.5 1\nmodels gpt2 \"a b\"\nreference v100\n"
      "jobs served 10 share=0.25\ntruth store \"my db\"\nnode a v100:2 # here\n"
      "set power_model saturating\ntitle \"a title\"\n",
      "title \"a title\"\nnode a v100:2 # here\nset power_model saturating\n"
      "truth store \"my db\"\njobs served 10 share=0.25\nreference v100\nmodels gpt2 \"a b\"\n"
      "promises 0.5 1\nservices 20 40 7\nload 0.5 0.9\npolicy gogh bound\nlimits both\nsleep no\nlevers yes\n"
      "knows empty history model\nhistory 20\nmodel m.weights\ndelay_w auto 15 30\n"
      "promise_w auto\nfirst_seed 7\nseeds 2\n" },
    { "a history is what all begin with", LEAST "history 30\n",
      "node a v100:2\ntruth builtin\njobs drawn 10\nload 0.5\npolicy gogh\nlimits no\n"
      "knows history\nhistory 30\nfirst_seed 11\nseeds 4\n" },
    { "a site has files", "cluster c.cluster\njobs sacct j.txt workload=gpt2\npolicy gogh\n",
      "cluster c.cluster\ntruth builtin\njobs sacct j.txt workload=gpt2\npolicy gogh\nlimits no\n"
      "first_seed 11\nseeds 4\n" },
    { "nothing in it", "# empty\n",
      "! s: say where it runs in one way: 'node NAME TYPE:COUNT' lines, 'cluster FILE' or 'cluster "
      "alibaba'" },
    { "two clusters", LEAST "cluster other\n",
      "! s: say where it runs in one way: 'node NAME TYPE:COUNT' lines, 'cluster FILE' or 'cluster "
      "alibaba'" },
    { "an unknown line", LEAST "lode 1\n",
      "! s:5: a line begins with title, cluster, truth, jobs, reference, models, promises, "
      "services, load, policy, limits, sleep, levers, knows, history, model, delay_w, promise_w, "
      "first_seed, seeds, with node, gputype, workload, set, or with #" },
    { "the cluster's lines are at their own place", "jobs drawn 10\n\nnode a v999:1\n",
      "! s:3: GPU type 'v999' is not built in: describe it with a line 'gputype v999 like=OTHER "
      "key=value ...'" },
    { "something twice", LEAST "load 0.6\n", "! s:5: load is said twice: keep one line" },
    { "a load twice", "load 0.6 0.6\n", "! s:1: load has a number twice: keep one" },
    { "no load at all", "node a v100:2\njobs drawn 10\npolicy gogh\n",
      "! s: no load: add a line like 'load 0.3 0.6 0.9'" },
    { "a load that is none", "load much\n", "! s:1: load wants numbers from 0.01 to 10" },
    { "jobs of no kind", "jobs some\n",
      "! s:1: want 'jobs drawn N', 'jobs served N [share=X]', 'jobs msr N', 'jobs philly N', 'jobs "
      "alibaba', 'jobs trace FILE' or 'jobs sacct FILE [partition=NAME] [workload=NAME]'" },
    { "no number of jobs", "jobs drawn\n",
      "! s:1: jobs drawn wants how many: a number from 2 to 1000000" },
    { "an option of other jobs", "jobs drawn 10 share=0.2\n",
      "! s:1: these jobs take no 'share': share= is of services, partition= and workload= are of "
      "sacct" },
    { "no jobs", "node a v100:2\npolicy gogh\n",
      "! s: no jobs: add a line like 'jobs drawn 1000'" },
    { "no policy", "node a v100:2\njobs drawn 10\nload 0.5\n",
      "! s: no policy: add a line like 'policy fifo-fastest gogh'" },
    { "a policy that nobody knows", "policy wise\n",
      "! s:1: no policy 'wise': 'gogh help simulate' and docs/experiments.md name them" },
    { "limits of no kind", "limits some\n",
      "! s:1: want 'limits no', 'limits yes' or 'limits both'" },
    { "a history that nobody knows", LEAST "knows history\n",
      "! s: 'knows history' and 'history JOBS' go together" },
    { "a truth that is told is none", "knows truth\n",
      "! s:1: knows wants some of empty, pretrained, others, history, model, each once" },
    { "a price that a cluster does not take", "delay_w 2e6\n",
      "! s:1: delay_w wants numbers from 0 to 1e+06, or auto" },
    { "services without days", "services 20 40\n",
      "! s:1: want 'services N RATE DAYS', as in 'services 20 40 7'" },
    { "promises the wrong way round", "promises 0.9 0.3\n",
      "! s:1: want 'promises LOW HIGH', parts of the speed on the reference, as in 'promises 0.3 "
      "0.9'" },
    { "no seeds", "seeds 0\n", "! s:1: seeds wants one whole number from 1 to 1000" },
};

EACH(reading, cases)
{
    struct arena a;

    arena_init(&a);
    text_row_check(&cases[_i], digest(&a, cases[_i].given));
    arena_release(&a);
}

TEST(what_is_written_reads_as_the_same)
{
    struct arena a;
    int n;
    const struct scenario *all = scenario_all(&n);

    arena_init(&a);
    for (int i = 0; i < n; i++) {
        const char *once = written(&a, &all[i]);

        ck_assert_str_eq(digest(&a, once), once);
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (cases[i].want[0] != '!')
            ck_assert_str_eq(digest(&a, cases[i].want), cases[i].want);
    arena_release(&a);
}

TEST(those_that_ship_can_be_copied)
{
    struct arena a;
    int n;
    const struct scenario *all = scenario_all(&n);

    arena_init(&a);
    for (int i = 0; i < n; i++) {
        const char *file = scenario_file(all[i].name);

        ck_assert_ptr_nonnull(file);
        ck_assert_msg(file[0] == '#', "%s begins with what it is for", all[i].name);
        ck_assert_str_eq(digest(&a, file), written(&a, &all[i]));
    }
    ck_assert_ptr_null(scenario_file("no-such"));
    arena_release(&a);
}

static const char *put(struct arena *a, const char *dir, const char *name, const char *text)
{
    const char *path = arena_printf(a, "%s/%s", dir, name);
    struct err e = { 0 };

    ck_assert_msg(file_write(path, text, strlen(text), &e) == 0, "%s", e.text);
    return path;
}

TEST(files_are_meant_from_where_the_scenario_lies)
{
    char *dir = scratch_make();
    struct scenario s;
    struct arena a;
    struct err e = { 0 };

    arena_init(&a);
    const char *cluster = put(&a, dir, "c", "node a v100:1\nset power_model saturating\n");
    const char *path = put(&a, dir, "My Site.scenario",
                           "cluster c\njobs trace t\npolicy gogh\ntruth store /there/db\n");
    ck_assert_msg(scenario_read(&a, path, &s, &e) == 0, "%s", e.text);
    ck_assert_str_eq(s.name, "my-site");
    ck_assert_str_eq(s.cluster_file, cluster);
    ck_assert_str_eq(s.jobs_file, arena_printf(&a, "%s/t", dir));
    ck_assert_str_eq(s.truth_file, "/there/db");
    ck_assert_str_eq(scenario_power_model(&s), "saturating");
    ck_assert_str_eq(s.command, arena_printf(&a, "--scenario %s", path));
    ck_assert(!s.is_builtin);
    scratch_remove(dir);
    arena_release(&a);
}

static const char *must_digest(struct arena *a, const char *path)
{
    const char *got = NULL;
    struct scenario s;
    struct err e = { 0 };

    ck_assert_msg(scenario_read(a, path, &s, &e) == 0, "%s", e.text);
    ck_assert_msg(scenario_digest(a, &s, "/nowhere", &got, &e) == 0, "%s", e.text);
    return got;
}

TEST(the_digest_of_a_file_tells_what_changes_runs)
{
    static const struct {
        const char *name, *text;
        bool is_same;
    } changes[] = {
        { "comments", LEAST "# why\ntitle \"other\"\n", true },
        { "which runs", "node a v100:2\njobs drawn 10\nload 0.7 0.9\npolicy gavel\nseeds 9\n",
          true },
        { "another seed to begin with", LEAST "first_seed 500\n", true },
        { "the cluster", "node a v100:3\njobs drawn 10\nload 0.5\npolicy gogh\n", false },
        { "the jobs", "node a v100:2\njobs drawn 11\nload 0.5\npolicy gogh\n", false },
        { "promises", LEAST "promises 0.5 1\n", false },
        { "services", LEAST "services 20 40 7\n", false },
    };
    char *dir = scratch_make();
    struct arena a;

    arena_init(&a);
    const char *was = must_digest(&a, put(&a, dir, "s.scenario", LEAST));
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        const char *is = must_digest(&a, put(&a, dir, "s.scenario", changes[i].text));

        ck_assert_msg((strcmp(is, was) == 0) == changes[i].is_same, "%s", changes[i].name);
    }
    scratch_remove(dir);
    arena_release(&a);
}

/* Runs of each policy at two prices of delay and three of a promise. */
static const struct {
    const char *policy;
    bool has_limits;
    int n;
} priced[] = {
    { "gogh", false, 6 },         { "gogh", true, 6 },          { "gogh-oracle", false, 6 },
    { "greedy", false, 6 },       { "gavel-cost", false, 6 },   { "pack", false, 6 },
    { "eaco", false, 6 },         { "fifo-promise", false, 6 }, { "watts", false, 3 },
    { "watts", true, 3 },         { "gavel", false, 1 },        { "gavel", true, 6 },
    { "fifo-fastest", false, 1 }, { "fifo-fastest", true, 6 },  { "slurm", false, 1 },
    { "slurm", true, 6 },         { "bound", false, 1 },        { "bound", true, 1 },
};

EACH(whoever_minds_a_price_is_run_at_all_of_them, priced)
{
    const char *text;
    struct study_run *keys;
    struct scenario s;
    struct arena a;
    struct err e = { 0 };

    arena_init(&a);
    text = arena_printf(&a,
                        "node a v100:2\njobs drawn 10\nload 0.5\npolicy %s\nlimits %s\nseeds 1\n"
                        "delay_w 15 240\npromise_w auto 300 3000\n",
                        priced[_i].policy, priced[_i].has_limits ? "yes" : "no");
    ck_assert_msg(scenario_parse(&a, "s", text, strlen(text), &s, &e) == 0, "%s", e.text);
    ck_assert_int_eq(scenario_runs(&a, &s, 0, &keys), priced[_i].n);
    arena_release(&a);
}

TEST(prices_and_loads_that_nearly_agree_are_other_runs)
{
    static const char text[] = "node a v100:2\njobs drawn 10\nload 0.12345678 0.12345679\n"
                               "policy gogh\ndelay_w 123456.1 123456.2 1000000\nseeds 1\n";
    struct study_run *keys;
    struct scenario s;
    struct arena a;
    struct err e = { 0 };

    arena_init(&a);
    ck_assert_msg(scenario_parse(&a, "s", text, strlen(text), &s, &e) == 0, "%s", e.text);
    s.name = "x";
    ck_assert_int_eq(scenario_runs(&a, &s, 0, &keys), 6);
    ck_assert_str_eq(study_run_name(&a, &keys[0]), "x-0.12345678-gogh-delay123456.1-empty-s11");
    ck_assert_str_eq(study_run_name(&a, &keys[1]), "x-0.12345678-gogh-delay123456.2-empty-s11");
    ck_assert_str_eq(study_run_name(&a, &keys[5]), "x-0.12345679-gogh-delay1000000-empty-s11");
    arena_release(&a);
}

TEST(prices_and_beginnings_make_runs)
{
    static const char text[] = LEAST "delay_w auto 30\nknows empty history\nhistory 50\nseeds 1\n";
    static const char *const names[] = {
        "x-0.5-gogh-empty-s11",
        "x-0.5-gogh-history50-s11",
        "x-0.5-gogh-delay30-empty-s11",
        "x-0.5-gogh-delay30-history50-s11",
    };
    struct study_run *keys;
    struct scenario s;
    struct arena a;
    struct err e = { 0 };

    arena_init(&a);
    ck_assert_msg(scenario_parse(&a, "s", text, strlen(text), &s, &e) == 0, "%s", e.text);
    s.name = "x";
    ck_assert_int_eq(scenario_runs(&a, &s, 0, &keys), 4);
    for (int i = 0; i < 4; i++)
        ck_assert_str_eq(study_run_name(&a, &keys[i]), names[i]);
    ck_assert_int_eq(study_run_history(&keys[1]), 50);
    ck_assert(!study_run_is_alike(&keys[0], &keys[2]) && !study_run_is_alike(&keys[0], &keys[1]));
    arena_release(&a);
}
