#include "study/scenario.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/buf.h"
#include "base/err.h"
#include "optimize/policy/solver.h"
#include "estimate/model/model.h"
#include "sim/trace/import.h"
#include "study/data.h"
#include "study/jobs.h"

/* ---- the table ---- */

/* Idle, sleep and cap watts as docs/experiments.md, "Power", has them; so has
 * docs/examples/reference.cluster.
 */
#define FIGURES                                \
    "gputype p100  idle=30 sleep=10 cap=250\n" \
    "gputype v100  idle=40 sleep=10 cap=250\n" \
    "set sleep_after_s 60\n"                   \
    "set move_s        60\n"
#define K80_FIGURES "gputype k80   idle=30 sleep=10 cap=149\n" FIGURES

static const char cluster_12[] =
    "node k-[1-3] k80:4\nnode p-[1-3] p100:4\nnode v-[1-3] v100:4\n" K80_FIGURES;

static const char cluster_36[] =
    "node k-[1-9] k80:4\nnode p-[1-9] p100:4\nnode v-[1-9] v100:4\n" K80_FIGURES;

static const char cluster_no_k80[] =
    "node p-[1-4] p100:4\nnode p-5 p100:2\nnode v-[1-4] v100:4\nnode v-5 v100:2\n" FIGURES;

static const char cluster_k80_heavy[] =
    "node k-[1-6] k80:4\n"
    "node p-1 p100:4\nnode p-2 p100:2\nnode v-1 v100:4\nnode v-2 v100:2\n" K80_FIGURES;

/* Built-in types with their built-in figures. */
static const char cluster_builtin[] =
    "node old-1 p100:4\nnode mid-[1-2] v100:2\nnode new-1 a100:2\n";

static const double three_loads[] = { 0.3, 0.6, 0.9, 0 };
/* Services leave most of a GPU unused: at 0.6 there are too few for those who do not share. */
static const double light_loads[] = { 0.2, 0.4, 0.6, 0 };
static const double load_06[] = { 0.6, 0 };
static const double load_07[] = { 0.7, 0 };

static const char *const every_policy[] = {
    "fifo-random", "fifo-fastest", "fifo-promise", "pack",  "gavel", "eaco",
    "watts",       "gogh",         "gogh-oracle",  "bound", NULL
};
static const char *const main_policies[] = { "fifo-fastest", "fifo-promise", "gavel", "gogh",
                                             NULL };
static const char *const gogh_alone[] = { "gogh", NULL };
static const char *const gogh_and_promise[] = { "fifo-promise", "gogh", NULL };
static const char *const gogh_and_fastest[] = { "fifo-fastest", "gogh", NULL };

static const enum knowledge three_beginnings[] = { KNOWS_NOTHING, KNOWS_PRETRAINED, KNOWS_OTHERS,
                                                   KNOWS_TRUTH };

/* What most are: drawn jobs at three loads, without power limits and with them. */
#define MAIN_POLICIES(seeds)                                                              \
    .n_jobs = 1000, .loads = three_loads, .policies = main_policies, .both_limits = true, \
    .n_seeds = (seeds)

static const struct scenario scenarios[] = {
    {
        .name = "reference",
        .title = "12 K80, 12 P100, 12 V100; drawn training jobs",
        .cluster = cluster_12,
        .n_jobs = 1000,
        .loads = three_loads,
        .policies = every_policy,
        .both_limits = true,
        .n_seeds = 6,
    },
    {
        .name = "levers",
        .title = "the reference scenario, one lever taken away at a time",
        .cluster = cluster_12,
        .n_jobs = 1000,
        .loads = three_loads,
        .policies = gogh_alone,
        .has_limits = true,
        .takes_levers_away = true,
        .n_seeds = 3,
    },
    {
        .name = "large",
        .title = "36 K80, 36 P100, 36 V100",
        .cluster = cluster_36,
        MAIN_POLICIES(2),
    },
    {
        .name = "no-k80",
        .title = "18 P100, 18 V100: no old GPUs to avoid",
        .cluster = cluster_no_k80,
        MAIN_POLICIES(3),
    },
    {
        .name = "k80-heavy",
        .title = "24 K80, 6 P100, 6 V100",
        .cluster = cluster_k80_heavy,
        MAIN_POLICIES(3),
    },
    {
        .name = "tight",
        .title = "promises of 0.7 to 1.0 of the speed on a P100",
        .cluster = cluster_12,
        .promise_low = 0.7,
        .promise_high = 1.0,
        MAIN_POLICIES(3),
    },
    {
        .name = "msr",
        .title = "Gavel's MSR traces, thinned to the load",
        .cluster = cluster_12,
        .jobs = JOBS_MSR,
        MAIN_POLICIES(2),
    },
    {
        .name = "philly",
        .title = "Philly's arrivals, lengths and gangs, thinned to the load; drawn workloads",
        .cluster = cluster_12,
        .jobs = JOBS_PHILLY,
        MAIN_POLICIES(2),
    },
    {
        .name = "alibaba",
        .title = "Alibaba's 2023 cluster, 6,212 GPUs of 7 types, all pods",
        .truth = TRUTH_BUILTIN,
        .jobs = JOBS_ALIBABA,
        .policies = gogh_and_fastest,
        .n_seeds = 1,
    },
    {
        .name = "services",
        .title = "training, and services whose rates rise and fall over the day",
        .cluster = cluster_12,
        .jobs = JOBS_SERVED,
        .n_jobs = 300,
        .loads = light_loads,
        .policies = main_policies,
        .both_limits = true,
        .n_seeds = 2,
    },
    {
        .name = "learning",
        .title = "from an empty catalog, a pretrained model, and others' measurements",
        .cluster = cluster_12,
        .n_jobs = 1000,
        .loads = load_06,
        .policies = gogh_and_promise,
        .both_limits = true,
        .knows = three_beginnings,
        .n_seeds = 3,
    },
    {
        .name = "always-on",
        .title = "the reference scenario where no GPU ever sleeps",
        .cluster = cluster_12,
        .is_always_on = true,
        MAIN_POLICIES(3),
    },
    {
        .name = "saturating",
        .title = "the reference scenario under the saturating power model",
        .cluster = cluster_12,
        .power_model = "saturating",
        MAIN_POLICIES(3),
    },
    {
        .name = "builtin",
        .title = "10 GPUs of built-in types: needs no data",
        .cluster = cluster_builtin,
        .truth = TRUTH_BUILTIN,
        .n_jobs = 200,
        .loads = load_07,
        .policies = every_policy,
        .both_limits = true,
        .n_seeds = 4,
    },
};

const struct scenario *scenario_all(int *n)
{
    *n = (int)(sizeof scenarios / sizeof scenarios[0]);
    return scenarios;
}

const struct scenario *scenario_by_name(const char *name)
{
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++)
        if (strcmp(scenarios[i].name, name) == 0)
            return &scenarios[i];
    return NULL;
}

const char *knowledge_name(enum knowledge k)
{
    static const char *const names[] = { "empty", "pretrained", "others", "truth" };

    return names[k];
}

/* ---- runs ---- */

const char *study_run_name(struct arena *a, const struct study_run *k)
{
    const char *load = k->load > 0 ? arena_printf(a, "%g", k->load) : "full";

    return arena_printf(a, "%s-%s-%s%s%s%s%s-%s-s%d", k->scenario->name, load, k->policy,
                        k->has_sleep ? "" : "-awake", k->has_limits ? "-limits" : "",
                        k->without[0] != '\0' ? "-less-" : "", k->without, knowledge_name(k->knows),
                        k->seed);
}

/* Runs as they are listed. */
struct run_list {
    struct arena *arena;
    struct study_run *keys;
    int n, cap;
};

static void list_seeds(struct run_list *l, struct study_run k, int n_seeds)
{
    for (int i = 0; i < n_seeds; i++) {
        k.seed = SCENARIO_FIRST_SEED + i;
        ARENA_GROW(l->arena, l->keys, l->n, l->cap);
        l->keys[l->n++] = k;
    }
}

bool scenario_is_oracle(const char *policy)
{
    return strcmp(policy, "gogh-oracle") == 0 || strcmp(policy, "bound") == 0;
}

static void list_knowledge(struct run_list *l, struct study_run k, int n_seeds)
{
    static const enum knowledge nothing[] = { KNOWS_NOTHING, KNOWS_TRUTH };
    const enum knowledge *knows = k.scenario->knows != NULL ? k.scenario->knows : nothing;

    if (scenario_is_oracle(k.policy)) {
        k.knows = KNOWS_TRUTH;
        list_seeds(l, k, n_seeds);
        return;
    }
    for (; *knows != KNOWS_TRUTH; knows++) {
        k.knows = *knows;
        list_seeds(l, k, n_seeds);
    }
}

static void list_levers(struct run_list *l, const struct study_run *k, int n_seeds)
{
    const bool has_levers =
        k->scenario->takes_levers_away && strcmp(k->policy, "gogh") == 0 && k->has_limits;

    list_knowledge(l, *k, n_seeds);
    for (int lever = 0; has_levers && lever < LEVERS; lever++) {
        struct study_run less = *k;

        less.without = lever_name((enum lever)lever);
        if (lever == LEVER_SLEEP)
            less.has_sleep = false;
        if (lever == LEVER_LIMITS)
            less.has_limits = false;
        list_knowledge(l, less, n_seeds);
    }
}

static void list_load(struct run_list *l, struct study_run k, int n_seeds)
{
    const struct scenario *s = k.scenario;

    for (int p = 0; s->policies[p] != NULL; p++) {
        k.policy = s->policies[p];
        k.has_limits = !s->both_limits && s->has_limits;
        list_levers(l, &k, n_seeds);
        k.has_limits = true;
        if (s->both_limits)
            list_levers(l, &k, n_seeds);
    }
}

int scenario_runs(struct arena *a, const struct scenario *s, int n_seeds, struct study_run **out)
{
    struct study_run k = { .scenario = s, .has_sleep = !s->is_always_on, .without = "" };
    struct run_list l = { .arena = a };

    if (n_seeds <= 0)
        n_seeds = s->n_seeds;
    if (s->loads == NULL)
        list_load(&l, k, n_seeds);
    for (int i = 0; s->loads != NULL && s->loads[i] > 0; i++) {
        k.load = s->loads[i];
        list_load(&l, k, n_seeds);
    }
    *out = l.keys;
    return l.n;
}

/* ---- the inputs of a run ---- */

const char *scenario_data(const char *given)
{
    const char *set = getenv("GOGH_DATA");

    if (given != NULL)
        return given;
    return set != NULL && set[0] != '\0' ? set : "../shared/data";
}

/* The files that a scenario reads, as bits of enum data_file. */
static unsigned files_of(const struct scenario *s)
{
    unsigned files = 0;

    if (s->truth == TRUTH_GAVEL)
        files |= 1u << DATA_GAVEL_PAIRS | 1u << DATA_GAVEL_ISOLATED | 1u << DATA_GAVEL_WORKLOADS |
                 1u << DATA_GAVEL_WATTS;
    if (s->cluster == NULL)
        files |= 1u << DATA_OPENB_NODES;
    if (s->jobs == JOBS_MSR)
        files |= 1u << DATA_GAVEL_TRACES;
    if (s->jobs == JOBS_PHILLY)
        files |= 1u << DATA_PHILLY;
    if (s->jobs == JOBS_ALIBABA)
        files |= 1u << DATA_OPENB_PODS;
    return files;
}

bool scenario_needs_data(const struct scenario *s)
{
    return files_of(s) != 0;
}

int scenario_digest(struct arena *a, const struct scenario *s, const char *data, const char **out,
                    struct err *e)
{
    return data_digest(a, data, files_of(s), out, e);
}

bool scenario_has_data(const struct scenario *s, const char *data, struct err *e)
{
    const unsigned files = files_of(s);
    const char *path;
    struct arena a;
    int rc = 0;

    arena_init(&a);
    for (int f = 0; f < DATA_FILES && rc == 0; f++)
        if ((files >> f & 1) != 0)
            rc = data_path(&a, data, (enum data_file)f, &path, e);
    arena_release(&a);
    return rc == 0;
}

/* Idle for this long is never (the most that a cluster file may say). */
#define NEVER_S 1e9

static int open_nodes(struct arena *a, const char *data, struct cluster *out, struct err *e)
{
    const char *text;
    struct buf b;
    size_t len;
    int rc = data_read(a, data, DATA_OPENB_NODES, NULL, &text, &len, e);

    if (rc < 0)
        return rc;
    buf_init(&b, (size_t)1 << 24);
    rc = cluster_import_alibaba(a, "openb nodes", text, len, &b, e);
    if (rc == 0)
        rc = cluster_parse(a, "openb nodes", buf_text(&b), b.len, out, e);
    buf_release(&b);
    return rc;
}

static int open_cluster(struct arena *a, const struct study_run *k, const char *data,
                        struct cluster *out, struct err *e)
{
    const char *text = k->scenario->cluster;
    int rc = text != NULL ? cluster_parse(a, k->scenario->name, text, strlen(text), out, e)
                          : open_nodes(a, data, out, e);

    if (rc < 0)
        return rc;
    for (int m = 0; k->scenario->power_model != NULL && m < POWER_MODELS; m++)
        if (strcmp(power_model_name((enum power_model)m), k->scenario->power_model) == 0)
            out->settings.power_model = m;
    out->settings.power_limits = k->has_limits;
    if (!k->has_sleep)
        out->settings.sleep_after_s = NEVER_S;
    return 0;
}

static int open_pretraining(const struct study_run *k, const struct ground *g,
                            struct pretraining *out, struct err *e)
{
    *out = (struct pretraining){ 0 };
    if (k->knows == KNOWS_PRETRAINED)
        return model_pretrained(&out->model, e);    // ships with the program
    if (k->knows == KNOWS_OTHERS)
        return pretraining_of_others(out, &g->catalog, k->seed, e);
    return 0;
}

int scenario_open(struct arena *a, const struct study_run *k, const char *data,
                  struct study_inputs *out, struct err *e)
{
    int rc;

    *out = (struct study_inputs){ 0 };
    rc = open_cluster(a, k, data, &out->cluster, e);
    if (rc < 0)
        return rc;
    rc = k->scenario->truth == TRUTH_GAVEL
             ? data_ground_gavel(&out->ground, data, &out->cluster, e)
             : ground_builtin(&out->ground, &out->cluster, NULL, "p100", (uint64_t)k->seed, e);
    if (rc < 0)
        return rc;
    rc = jobs_make(a, k, data, &out->cluster, &out->ground.truth, &out->trace, e);
    if (rc == 0)
        rc = open_pretraining(k, &out->ground, &out->pretraining, e);
    if (rc < 0) {
        scenario_close(out);
        return rc;
    }
    assert(out->trace.n_jobs > 0);
    out->arrivals_s = out->trace.jobs[out->trace.n_jobs - 1].at_s;
    return 0;
}

void scenario_close(struct study_inputs *s)
{
    pretraining_release(&s->pretraining);
    ground_close(&s->ground);
}

bool study_run_is_alike(const struct study_run *a, const struct study_run *b)
{
    return a->scenario == b->scenario && a->load == b->load && strcmp(a->policy, b->policy) == 0 &&
           a->has_sleep == b->has_sleep && a->has_limits == b->has_limits &&
           strcmp(a->without, b->without) == 0 && a->knows == b->knows;
}

const char *scenario_power_model(const struct scenario *s)
{
    return s->power_model != NULL ? s->power_model : "additive";
}
