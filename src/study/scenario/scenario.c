#include "study/scenario/scenario.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/file.h"
#include "base/text/text.h"
#include "base/text/words.h"
#include "optimize/policy/solver.h"
#include "estimate/model/model.h"
#include "sim/trace/import.h"
#include "study/scenario/data.h"
#include "study/scenario/jobs.h"
#include "study/scenario/past.h"
#include "study/scenario/text.h"
#include "study/scenario/site.h"

const char *knowledge_name(enum knowledge k)
{
    static const char *const names[] = { "empty",   "pretrained", "others",
                                         "history", "model",      "truth" };

    return names[k];
}

/* ---- runs ---- */

int study_run_history(const struct study_run *k)
{
    return k->knows == KNOWS_HISTORY ? k->scenario->history_jobs : 0;
}

unsigned study_run_without(const struct study_run *k)
{
    int lever = k->without[0] != '\0' ? lever_by_name(k->without) : -1;
    unsigned without = k->has_sleep ? 0 : 1U << LEVER_SLEEP;

    assert(k->without[0] == '\0' || lever >= 0);
    return lever >= 0 ? without | 1U << lever : without;
}

/* "-delay60"; "" where it is the cluster's. */
static const char *price_name(struct arena *a, const char *what, const double *price_w)
{
    return price_w != NULL ? arena_printf(a, "-%s%s", what, words_number(a, *price_w)) : "";
}

const char *study_run_name(struct arena *a, const struct study_run *k)
{
    const char *load = k->load > 0 ? words_number(a, k->load) : "full";
    const char *knows = study_run_history(k) > 0
                            ? arena_printf(a, "history%d", study_run_history(k))
                            : knowledge_name(k->knows);

    return arena_printf(a, "%s-%s-%s%s%s%s%s%s%s-%s-s%d", k->scenario->name, load, k->policy,
                        k->has_sleep ? "" : "-awake", k->has_limits ? "-limits" : "",
                        k->without[0] != '\0' ? "-less-" : "", k->without,
                        price_name(a, "delay", k->delay_w), price_name(a, "promise", k->promise_w),
                        knows, k->seed);
}

/* Runs as they are listed. */
struct run_list {
    struct arena *arena;
    struct study_run *keys;
    int n, cap;
    int n_seeds;
};

static void list_seeds(struct run_list *l, struct study_run k)
{
    for (int i = 0; i < l->n_seeds; i++) {
        k.seed = k.scenario->first_seed + i;
        ARENA_GROW(l->arena, l->keys, l->n, l->cap);
        l->keys[l->n++] = k;
    }
}

bool scenario_is_oracle(const char *policy)
{
    return strcmp(policy, "gogh-oracle") == 0 || strcmp(policy, "bound") == 0;
}

bool scenario_has_policy(const char *name)
{
    struct solver s;

    return scenario_is_oracle(name) || solver_by_name(name, 0, &s, NULL) == 0;
}

bool scenario_is_site(const struct scenario *s)
{
    return s->jobs == JOBS_TRACE || s->jobs == JOBS_SACCT;
}

static void list_knowledge(struct run_list *l, struct study_run k)
{
    const struct scenario *s = k.scenario;

    k.knows = scenario_is_oracle(k.policy) ? KNOWS_TRUTH : KNOWS_NOTHING;
    if (s->n_knows == 0 || k.knows == KNOWS_TRUTH)
        list_seeds(l, k);
    for (int i = 0; i < s->n_knows && k.knows != KNOWS_TRUTH; i++) {
        struct study_run one = k;

        one.knows = s->knows[i];
        list_seeds(l, one);
    }
}

/* The 'i'th price of a list; NULL: the cluster's. */
static const double *price_at(const double *prices_w, int i)
{
    return isnan(prices_w[i]) ? NULL : &prices_w[i];
}

/* Does it weigh what places cost? Some policies do only where power limits are to be chosen, which
 * is by cost under every policy.
 */
static bool weighs_cost(const struct study_run *k)
{
    static const char *const plain[] = { "gavel", "fifo-fastest", "fifo-random", "fifo-first",
                                         "slurm" };
    const int n_plain = sizeof plain / sizeof *plain;

    return strcmp(k->policy, "bound") != 0 &&
           (k->has_limits || text_find(plain, n_plain, k->policy) < 0);
}

bool study_run_minds_delay(const struct study_run *k)
{
    return weighs_cost(k) && strcmp(k->policy, "watts") != 0 && strcmp(k->without, "joules") != 0;
}

bool study_run_minds_promise(const struct study_run *k)
{
    return weighs_cost(k);
}

/* Everybody at every price that changes what it does. */
static void list_prices(struct run_list *l, struct study_run k)
{
    const struct scenario *s = k.scenario;
    const bool minds_delay = study_run_minds_delay(&k) && s->n_delays > 0;
    const bool minds_promise = study_run_minds_promise(&k) && s->n_promises > 0;

    for (int d = 0; d < (minds_delay ? s->n_delays : 1); d++)
        for (int p = 0; p < (minds_promise ? s->n_promises : 1); p++) {
            k.delay_w = minds_delay ? price_at(s->delays_w, d) : NULL;
            k.promise_w = minds_promise ? price_at(s->promises_w, p) : NULL;
            list_knowledge(l, k);
        }
}

static void list_levers(struct run_list *l, const struct study_run *k)
{
    const bool has_levers =
        k->scenario->takes_levers_away && strcmp(k->policy, "gogh") == 0 && k->has_limits;

    list_prices(l, *k);
    for (int lever = 0; has_levers && lever < LEVERS; lever++) {
        struct study_run less = *k;

        less.without = lever_name((enum lever)lever);
        if (lever == LEVER_SLEEP)
            less.has_sleep = false;
        if (lever == LEVER_LIMITS)
            less.has_limits = false;
        list_prices(l, less);
    }
}

static void list_load(struct run_list *l, struct study_run k)
{
    const struct scenario *s = k.scenario;

    for (int p = 0; p < s->n_policies; p++) {
        k.policy = s->policies[p];
        k.has_limits = !s->both_limits && s->has_limits;
        list_levers(l, &k);
        k.has_limits = true;
        if (s->both_limits)
            list_levers(l, &k);
    }
}

int scenario_runs(struct arena *a, const struct scenario *s, int n_seeds, struct study_run **out)
{
    struct study_run k = { .scenario = s, .has_sleep = !s->is_always_on, .without = "" };
    struct run_list l = { .arena = a, .n_seeds = n_seeds > 0 ? n_seeds : s->n_seeds };

    if (s->n_loads == 0)
        list_load(&l, k);
    for (int i = 0; i < s->n_loads; i++) {
        k.load = s->loads[i];
        list_load(&l, k);
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
    if (s->cluster == NULL && s->cluster_file == NULL)
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
    return files_of(s) != 0 || !s->is_builtin || s->model_file != NULL;
}

/* What the scenario says, but for what is a run's own or for people: two that differ in nothing
 * else give the same runs. Where blocks of jobs are drawn, which seed is the first counts too.
 */
static int put_identity(const struct scenario *s, struct buf *out)
{
    static const char *const nobody[] = { "gogh" };
    struct scenario is = *s;

    is.title = "";
    is.n_loads = is.n_knows = is.n_delays = is.n_promises = 0;
    is.n_policies = 1;
    is.policies = nobody;
    is.both_limits = is.has_limits = is.is_always_on = is.takes_levers_away = false;
    is.history_jobs = is.n_seeds = 0;
    is.first_seed = scenario_is_site(s) ? s->first_seed : 0;
    return scenario_write(&is, out);
}

/* The files that it names, as they are now. */
static int put_own_files(const struct scenario *s, struct buf *out, struct err *e)
{
    const char *const own[] = { s->cluster_file, s->jobs_file, s->truth_file, s->model_file };
    char digest[65];
    int rc = 0;

    for (size_t i = 0; i < sizeof own / sizeof *own && rc == 0; i++) {
        if (own[i] == NULL)
            continue;
        rc = data_file_digest(own[i], digest, e);
        if (rc == 0)
            rc = buf_printf(out, "%s\n", digest);
    }
    return rc;
}

int scenario_digest(struct arena *a, const struct scenario *s, const char *data, const char **out,
                    struct err *e)
{
    char digest[65];
    struct buf all;
    int rc = data_digest(a, data, files_of(s), out, e);

    if (rc < 0 || (s->is_builtin && s->model_file == NULL))
        return rc;
    buf_init(&all, (size_t)65 << 20);
    buf_printf(&all, "%s\n", *out);
    rc = put_own_files(s, &all, e);
    if (rc == 0)
        rc = put_identity(s, &all);
    if (rc == 0) {
        file_digest(buf_text(&all), all.len, digest);
        *out = arena_strdup(a, digest);
    }
    buf_release(&all);
    return rc;
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

static void set_price(struct cluster *cl, const char *key, const double *price_w)
{
    bool is_set = price_w == NULL || cluster_set(&cl->settings, key, *price_w, NULL) == 0;

    assert(is_set);    // the scenario's range was the setting's
}

static int open_cluster(struct arena *a, const struct study_run *k, const char *data,
                        struct cluster *out, struct err *e)
{
    const char *text = k->scenario->cluster, *file = k->scenario->cluster_file;
    int rc = text != NULL ? cluster_parse(a, file != NULL ? file : k->scenario->name, text,
                                          strlen(text), out, e)
                          : open_nodes(a, data, out, e);

    if (rc < 0)
        return rc;
    set_price(out, "delay_w", k->delay_w);
    set_price(out, "promise_w", k->promise_w);
    out->settings.power_limits = k->has_limits;
    if (!k->has_sleep)
        out->settings.sleep_after_s = NEVER_S;
    return 0;
}

static int open_ground(struct arena *a, const struct study_run *k, const char *data,
                       const struct cluster *cl, struct ground *out, struct err *e)
{
    const struct scenario *s = k->scenario;
    const char *reference = s->reference != NULL ? s->reference : "p100";
    struct trace named;
    int rc = scenario_is_site(s) ? site_named(a, s, cl, &named, e) : 0;

    if (rc < 0)
        return rc;
    const struct trace *jobs = scenario_is_site(s) ? &named : NULL;
    switch (s->truth) {
    case TRUTH_GAVEL:
        return data_ground_gavel(out, data, cl, e);
    case TRUTH_STORE:
        return ground_open(out, s->truth_file, cl, jobs, e);
    case TRUTH_BUILTIN:
        break;
    }
    return ground_builtin(out, cl, jobs, reference, (uint64_t)k->seed, e);
}

static int open_pretraining(const struct study_run *k, const char *data,
                            const struct study_inputs *in, struct pretraining *out, struct err *e)
{
    *out = (struct pretraining){ 0 };
    switch (k->knows) {
    case KNOWS_PRETRAINED:
        return model_pretrained(&out->model, e);    // ships with the program
    case KNOWS_OTHERS:
        return pretraining_of_others(out, &in->ground.catalog, k->seed, e);
    case KNOWS_HISTORY:
        return past_live(k, data, in, out, e);
    case KNOWS_MODEL:
        return model_read(k->scenario->model_file, &out->model, e);
    case KNOWS_NOTHING:
    case KNOWS_TRUTH:
        break;
    }
    return 0;
}

int scenario_open(struct arena *a, const struct study_run *k, const char *data,
                  struct study_inputs *out, struct err *e)
{
    int rc;

    *out = (struct study_inputs){ .reference = k->scenario->reference };
    rc = open_cluster(a, k, data, &out->cluster, e);
    if (rc == 0)
        rc = open_ground(a, k, data, &out->cluster, &out->ground, e);
    if (rc < 0)
        return rc;
    rc = jobs_make(a, k, data, &out->cluster, &out->ground.truth, &out->trace, e);
    if (rc == 0)
        rc = open_pretraining(k, data, out, &out->pretraining, e);
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

bool price_is_same(const double *a, const double *b)
{
    return a == NULL || b == NULL ? a == b : *a == *b;
}

bool study_run_is_alike(const struct study_run *a, const struct study_run *b)
{
    return a->scenario == b->scenario && a->load == b->load && strcmp(a->policy, b->policy) == 0 &&
           a->has_sleep == b->has_sleep && a->has_limits == b->has_limits &&
           strcmp(a->without, b->without) == 0 && a->knows == b->knows &&
           price_is_same(a->delay_w, b->delay_w) && price_is_same(a->promise_w, b->promise_w);
}

const char *scenario_power_model(const struct scenario *s)
{
    return s->power_model != NULL ? s->power_model : "additive";
}
