#include "study/scenario/text.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/text/buf.h"
#include "base/text/file.h"
#include "base/text/words.h"

#define FILE_MAX ((size_t)1 << 20)        // the longest that ships has 2 kB
#define CLUSTER_MAX ((size_t)64 << 20)    // as cluster.c has it
#define PATH_BYTES_MAX 4096               // of a file that is named; Linux takes no more
#define NAME_MAX_BYTES 64                 // of a scenario: runs have it in their file names
#define JOBS_MAX 1000000                  // the largest trace that was ever simulated has 10^5
#define SEEDS_MAX 1000
#define SEED_MAX 1000000000
#define SUFFIX ".scenario"

struct scenario_parser {
    struct words words;
    struct arena *arena;
    struct scenario *out;
    unsigned said;    // bits of the keys that had a line
    bool has_jobs;
    unsigned char *is_cluster;    // (n_lines) lines that are the cluster's
    int n_lines;
};

#define HERE(p) (p)->words.name, (p)->words.line

/* ---- words ---- */

#define N_NAMES(names) ((int)(sizeof(names) / sizeof *(names)))

/* Words behind the key. */
static int n_values(const struct scenario_parser *p)
{
    return p->words.n - 1;
}

/* The word, where it has no '='; an empty one otherwise. */
static struct slice value_at(const struct scenario_parser *p, int i)
{
    const struct word *w = &p->words.word[i + 1];

    return i < n_values(p) && w->key.at == NULL ? w->value : (struct slice){ "", 0 };
}

static int find_name(const char *const *names, int n, struct slice word)
{
    for (int i = 0; i < n; i++)
        if (names[i] != NULL && slice_is(word, names[i]))
            return i;
    return -1;
}

/* A file's name as it is written; NULL: it is none. */
static const char *path_at(const struct scenario_parser *p, int i)
{
    const struct slice w = value_at(p, i);

    if (w.len == 0 || w.len > PATH_BYTES_MAX)
        return NULL;
    for (size_t k = 0; k < w.len; k++)
        if ((unsigned char)w.at[k] < 0x20)
            return NULL;
    return arena_strndup(p->arena, w.at, w.len);
}

static int want(const struct scenario_parser *p, const char *what, struct err *e)
{
    return err_set(e, EINVAL, "%s:%d: want '%s'", HERE(p), what);
}

/* A list of numbers in [low, high], no two alike; 'has_auto': the word auto is NaN. */
static int take_numbers(struct scenario_parser *p, double low, double high, bool has_auto, int *n,
                        const double **out, struct err *e)
{
    const char *key =
        arena_strndup(p->arena, p->words.word[0].value.at, p->words.word[0].value.len);
    double *v = ARENA_ARRAY(p->arena, double, (size_t)p->words.n);

    for (int i = 0; i < n_values(p); i++) {
        const struct slice w = value_at(p, i);

        v[i] = (double)NAN;
        if (!(has_auto && slice_is(w, "auto")) &&
            (text_to_double(w, &v[i]) < 0 || v[i] < low || v[i] > high))
            return err_set(e, EINVAL, "%s:%d: %s wants numbers from %g to %g%s", HERE(p), key, low,
                           high, has_auto ? ", or auto" : "");
        for (int k = 0; k < i; k++)
            if (v[k] == v[i] || (isnan(v[k]) && isnan(v[i])))
                return err_set(e, EINVAL, "%s:%d: %s has a number twice: keep one", HERE(p), key);
    }
    if (n_values(p) == 0)
        return err_set(e, EINVAL, "%s:%d: %s wants at least one number", HERE(p), key);
    *n = n_values(p);
    *out = v;
    return 0;
}

static int take_whole(struct scenario_parser *p, long low, long high, int *out, struct err *e)
{
    long v;

    if (n_values(p) != 1 || text_to_long(value_at(p, 0), low, high, &v) < 0)
        return err_set(e, EINVAL, "%s:%d: %.*s wants one whole number from %ld to %ld", HERE(p),
                       (int)p->words.word[0].value.len, p->words.word[0].value.at, low, high);
    *out = (int)v;
    return 0;
}

static int take_yes(struct scenario_parser *p, bool *out, struct err *e)
{
    const struct slice w = value_at(p, 0);

    *out = slice_is(w, "yes");
    if (n_values(p) != 1 || (!*out && !slice_is(w, "no")))
        return err_set(e, EINVAL, "%s:%d: %.*s wants yes or no", HERE(p),
                       (int)p->words.word[0].value.len, p->words.word[0].value.at);
    return 0;
}

/* ---- a line each ---- */

static int take_title(struct scenario_parser *p, struct err *e)
{
    p->out->title = n_values(p) == 1 ? words_name(&p->words, value_at(p, 0)) : NULL;
    if (p->out->title == NULL)
        return err_set(e, EINVAL, "%s:%d: title wants one text of at most 200 bytes, in quotes",
                       HERE(p));
    return 0;
}

static int take_cluster(struct scenario_parser *p, struct err *e)
{
    p->out->cluster_file = n_values(p) == 1 ? path_at(p, 0) : NULL;
    if (p->out->cluster_file == NULL)
        return want(p, "cluster FILE' or 'cluster alibaba", e);
    return 0;
}

static int take_truth(struct scenario_parser *p, struct err *e)
{
    const int truth = find_name(scenario_truths, SCENARIO_TRUTHS, value_at(p, 0));

    if (truth < 0 || n_values(p) != (truth == TRUTH_STORE ? 2 : 1))
        return want(p, "truth gavel', 'truth builtin' or 'truth store FILE", e);
    p->out->truth = (enum scenario_truth)truth;
    if (truth == TRUTH_STORE) {
        p->out->truth_file = path_at(p, 1);
        return p->out->truth_file != NULL ? 0 : want(p, "truth store FILE", e);
    }
    return 0;
}

/* share=0.3 of services, partition= and workload= of accounting. */
static int take_jobs_option(struct scenario_parser *p, const struct word *w, struct err *e)
{
    struct scenario *s = p->out;

    if (s->jobs == JOBS_SERVED && slice_is(w->key, "share")) {
        if (text_to_double(w->value, &s->served) == 0 && s->served > 0 && s->served < 1)
            return 0;
        return err_set(e, EINVAL, "%s:%d: share wants a number between 0 and 1", HERE(p));
    }
    if (s->jobs == JOBS_SACCT && slice_is(w->key, "partition"))
        return (s->partition = words_name(&p->words, w->value)) != NULL
                   ? 0
                   : want(p, "partition=NAME", e);
    if (s->jobs == JOBS_SACCT && slice_is(w->key, "workload"))
        return (s->workload = words_name(&p->words, w->value)) != NULL
                   ? 0
                   : want(p, "workload=NAME", e);
    return err_set(e, EINVAL,
                   "%s:%d: these jobs take no '%.*s': share= is of services, partition= and "
                   "workload= are of sacct",
                   HERE(p), slice_shown(w->key.at != NULL ? w->key : w->value),
                   w->key.at != NULL ? w->key.at : w->value.at);
}

static int take_jobs(struct scenario_parser *p, struct err *e)
{
    static const char usage[] = "jobs drawn N', 'jobs served N [share=X]', 'jobs msr N', 'jobs "
                                "philly N', 'jobs alibaba', 'jobs trace FILE' or 'jobs sacct FILE "
                                "[partition=NAME] [workload=NAME]";
    const int jobs = find_name(scenario_jobs_names, SCENARIO_JOBS, value_at(p, 0));
    struct scenario *s = p->out;
    long n;

    if (jobs < 0)
        return want(p, usage, e);
    p->has_jobs = true;
    s->jobs = (enum scenario_jobs)jobs;
    if (scenario_is_site(s)) {
        s->jobs_file = path_at(p, 1);
        if (s->jobs_file == NULL)
            return want(p, usage, e);
    } else if (jobs != JOBS_ALIBABA) {
        if (text_to_long(value_at(p, 1), 2, JOBS_MAX, &n) < 0)
            return err_set(e, EINVAL, "%s:%d: jobs %s wants how many: a number from 2 to %d",
                           HERE(p), scenario_jobs_names[jobs], JOBS_MAX);
        s->n_jobs = (int)n;
    }
    for (int i = jobs == JOBS_ALIBABA ? 2 : 3; i < p->words.n; i++)
        if (take_jobs_option(p, &p->words.word[i], e) < 0)
            return -EINVAL;
    return 0;
}

static int take_reference(struct scenario_parser *p, struct err *e)
{
    p->out->reference = n_values(p) == 1 ? words_name(&p->words, value_at(p, 0)) : NULL;
    return p->out->reference != NULL ? 0 : want(p, "reference GPU-TYPE", e);
}

static int take_models(struct scenario_parser *p, struct err *e)
{
    const char **names = ARENA_ARRAY(p->arena, const char *, (size_t)p->words.n);

    for (int i = 0; i < n_values(p); i++) {
        names[i] = words_name(&p->words, value_at(p, i));
        if (names[i] == NULL)
            return want(p, "models NAME ...", e);
    }
    if (n_values(p) == 0)
        return want(p, "models NAME ...", e);
    p->out->n_models = n_values(p);
    p->out->models = names;
    return 0;
}

#define SERVICES_MOST 10000
#define DAYS_MOST 366

static int take_services(struct scenario_parser *p, struct err *e)
{
    struct scenario *s = p->out;
    double n;

    if (n_values(p) != 3 || text_to_double(value_at(p, 0), &n) < 0 || !(n >= 1) ||
        n > SERVICES_MOST || n != (int)n || text_to_double(value_at(p, 1), &s->service_rate) < 0 ||
        !(s->service_rate > 0) || s->service_rate > 1e5 ||
        text_to_double(value_at(p, 2), &s->service_days) < 0 || !(s->service_days > 0) ||
        s->service_days > DAYS_MOST)
        return want(p, "services N RATE DAYS', as in 'services 20 40 7", e);
    s->n_services = (int)n;
    return 0;
}

static int take_promises(struct scenario_parser *p, struct err *e)
{
    struct scenario *s = p->out;

    if (n_values(p) != 2 || text_to_double(value_at(p, 0), &s->promise_low) < 0 ||
        text_to_double(value_at(p, 1), &s->promise_high) < 0 || !(s->promise_low > 0) ||
        s->promise_high < s->promise_low || s->promise_high > 10)
        return want(p,
                    "promises LOW HIGH', parts of the speed on the reference, as in 'promises "
                    "0.3 0.9",
                    e);
    return 0;
}

static int take_loads(struct scenario_parser *p, struct err *e)
{
    return take_numbers(p, 0.01, 10, false, &p->out->n_loads, &p->out->loads, e);
}

static int take_policies(struct scenario_parser *p, struct err *e)
{
    const char **names = ARENA_ARRAY(p->arena, const char *, (size_t)p->words.n);

    for (int i = 0; i < n_values(p); i++) {
        names[i] = words_name(&p->words, value_at(p, i));
        if (names[i] == NULL || !scenario_has_policy(names[i]))
            return err_set(e, EINVAL,
                           "%s:%d: no policy '%s': 'gogh help simulate' and docs/experiments.md "
                           "name them",
                           HERE(p), names[i] != NULL ? names[i] : "");
        if (text_find(names, i, names[i]) >= 0)
            return err_set(e, EINVAL, "%s:%d: policy %s is there twice: keep one", HERE(p),
                           names[i]);
    }
    if (n_values(p) == 0)
        return want(p, "policy NAME ...", e);
    p->out->n_policies = n_values(p);
    p->out->policies = names;
    return 0;
}

static int take_limits(struct scenario_parser *p, struct err *e)
{
    const struct slice w = value_at(p, 0);

    p->out->both_limits = slice_is(w, "both");
    p->out->has_limits = slice_is(w, "yes");
    if (n_values(p) == 1 && (p->out->both_limits || p->out->has_limits || slice_is(w, "no")))
        return 0;
    return want(p, "limits no', 'limits yes' or 'limits both", e);
}

static int take_sleep(struct scenario_parser *p, struct err *e)
{
    bool has_sleep;
    int rc = take_yes(p, &has_sleep, e);

    p->out->is_always_on = !has_sleep;
    return rc;
}

static int take_levers(struct scenario_parser *p, struct err *e)
{
    return take_yes(p, &p->out->takes_levers_away, e);
}

static int take_knows(struct scenario_parser *p, struct err *e)
{
    enum knowledge *knows = ARENA_ARRAY(p->arena, enum knowledge, (size_t)p->words.n);

    for (int i = 0; i < n_values(p); i++) {
        int k = KNOWS_TRUTH - 1;

        while (k >= 0 && !slice_is(value_at(p, i), knowledge_name((enum knowledge)k)))
            k--;
        for (int j = 0; j < i; j++)
            k = (int)knows[j] == k ? -1 : k;
        if (k < 0)
            return err_set(e, EINVAL,
                           "%s:%d: knows wants some of empty, pretrained, others, history, model, "
                           "each once",
                           HERE(p));
        knows[i] = (enum knowledge)k;
    }
    if (n_values(p) == 0)
        return want(p, "knows WORD ...", e);
    p->out->n_knows = n_values(p);
    p->out->knows = knows;
    return 0;
}

static int take_history(struct scenario_parser *p, struct err *e)
{
    return take_whole(p, 2, JOBS_MAX, &p->out->history_jobs, e);
}

static int take_model(struct scenario_parser *p, struct err *e)
{
    p->out->model_file = n_values(p) == 1 ? path_at(p, 0) : NULL;
    return p->out->model_file != NULL ? 0 : want(p, "model FILE', a file of 'gogh train", e);
}

/* A price is a setting of clusters, and has its range from there. */
#define PRICE_MOST_W 1e6

static int take_delays(struct scenario_parser *p, struct err *e)
{
    return take_numbers(p, 0, PRICE_MOST_W, true, &p->out->n_delays, &p->out->delays_w, e);
}

static int take_promise_prices(struct scenario_parser *p, struct err *e)
{
    return take_numbers(p, 0, PRICE_MOST_W, true, &p->out->n_promises, &p->out->promises_w, e);
}

static int take_first_seed(struct scenario_parser *p, struct err *e)
{
    return take_whole(p, 0, SEED_MAX, &p->out->first_seed, e);
}

static int take_seeds(struct scenario_parser *p, struct err *e)
{
    return take_whole(p, 1, SEEDS_MAX, &p->out->n_seeds, e);
}

/* ---- a file ---- */

static const struct scenario_key {
    const char *name;
    int (*take)(struct scenario_parser *p, struct err *e);
} keys[] = {
    { "title", take_title },
    { "cluster", take_cluster },
    { "truth", take_truth },
    { "jobs", take_jobs },
    { "reference", take_reference },
    { "models", take_models },
    { "promises", take_promises },
    { "services", take_services },
    { "load", take_loads },
    { "policy", take_policies },
    { "limits", take_limits },
    { "sleep", take_sleep },
    { "levers", take_levers },
    { "knows", take_knows },
    { "history", take_history },
    { "model", take_model },
    { "delay_w", take_delays },
    { "promise_w", take_promise_prices },
    { "first_seed", take_first_seed },
    { "seeds", take_seeds },
};
#define N_KEYS ((int)(sizeof keys / sizeof keys[0]))

static bool is_clusters(struct slice verb)
{
    static const char *const verbs[] = { "node", "gputype", "workload", "set" };

    return find_name(verbs, N_NAMES(verbs), verb) >= 0;
}

static int take_line(struct scenario_parser *p, struct err *e)
{
    const struct word *first = &p->words.word[0];
    const struct slice verb = first->key.at == NULL ? first->value : (struct slice){ "", 0 };

    if (is_clusters(verb)) {
        p->is_cluster[p->words.line - 1] = 1;
        return 0;
    }
    for (int i = 0; i < N_KEYS; i++) {
        if (!slice_is(verb, keys[i].name))
            continue;
        if ((p->said >> i & 1) != 0)
            return err_set(e, EINVAL, "%s:%d: %s is said twice: keep one line", HERE(p),
                           keys[i].name);
        p->said |= 1u << i;
        return keys[i].take(p, e);
    }
    return err_set(
        e, EINVAL,
        "%s:%d: a line begins with title, cluster, truth, jobs, reference, models, "
        "promises, services, load, policy, limits, sleep, levers, knows, history, "
        "model, delay_w, promise_w, first_seed, seeds, with node, gputype, workload, set, "
        "or with #",
        HERE(p));
}

/* The text with the cluster's lines alone, each where it stood, so that messages name it. */
static const char *cluster_lines(const struct scenario_parser *p, const char *text, size_t len)
{
    char *out = arena_alloc(p->arena, len + 1);
    int line = 0;

    for (size_t i = 0; i < len; i++) {
        out[i] = text[i];
        if (text[i] == '\n')
            line++;
        else if (line >= p->n_lines || !p->is_cluster[line])
            out[i] = ' ';
    }
    out[len] = '\0';
    return out;
}

static bool has_cluster_lines(const struct scenario_parser *p)
{
    for (int i = 0; i < p->n_lines; i++)
        if (p->is_cluster[i])
            return true;
    return false;
}

/* What the cluster tells of the scenario. */
static int check_cluster(struct arena *a, const char *file, struct scenario *s, struct err *e)
{
    struct cluster cl;
    int rc = cluster_parse(a, file, s->cluster, strlen(s->cluster), &cl, e);

    if (rc < 0)
        return rc;
    s->notice = cl.notice;
    if (cl.settings.power_model != POWER_ADDITIVE)
        s->power_model = power_model_name((enum power_model)cl.settings.power_model);
    return 0;
}

static int take_cluster_text(struct scenario_parser *p, const char *text, size_t len, struct err *e)
{
    struct scenario *s = p->out;
    const bool is_alibaba = s->cluster_file != NULL && strcmp(s->cluster_file, "alibaba") == 0;
    const bool has_lines = has_cluster_lines(p);

    if (is_alibaba)
        s->cluster_file = NULL;
    if (has_lines == (is_alibaba || s->cluster_file != NULL))
        return err_set(e, EINVAL,
                       "%s: say where it runs in one way: 'node NAME TYPE:COUNT' lines, 'cluster "
                       "FILE' or 'cluster alibaba'",
                       p->words.name);
    if (!has_lines)
        return 0;
    s->cluster = cluster_lines(p, text, len);
    return check_cluster(p->arena, p->words.name, s, e);
}

static bool knows(const struct scenario *s, enum knowledge k)
{
    for (int i = 0; i < s->n_knows; i++)
        if (s->knows[i] == k)
            return true;
    return false;
}

/* A history, or a model, is what all begin with unless 'knows' has a list. */
static void begin_with(struct scenario *s)
{
    static const enum knowledge history = KNOWS_HISTORY, model = KNOWS_MODEL;

    if (s->n_knows > 0 || (s->history_jobs == 0 && s->model_file == NULL))
        return;
    s->n_knows = 1;
    s->knows = s->history_jobs > 0 ? &history : &model;
}

int scenario_check(const char *file, const struct scenario *s, struct err *e)
{
    if (s->n_policies == 0)
        return err_set(e, EINVAL, "%s: no policy: add a line like 'policy fifo-fastest gogh'",
                       file);
    if (s->n_loads == 0 && s->jobs < JOBS_ALIBABA)
        return err_set(e, EINVAL, "%s: no load: add a line like 'load 0.3 0.6 0.9'", file);
    if (s->jobs == JOBS_ALIBABA && s->n_loads > 0)
        return err_set(e, EINVAL, "%s: Alibaba's pods are taken as they are: leave out 'load'",
                       file);
    if (knows(s, KNOWS_HISTORY) != (s->history_jobs > 0))
        return err_set(e, EINVAL, "%s: 'knows history' and 'history JOBS' go together", file);
    if (knows(s, KNOWS_MODEL) != (s->model_file != NULL))
        return err_set(e, EINVAL, "%s: 'knows model' and 'model FILE' go together", file);
    if (s->jobs == JOBS_ALIBABA && s->history_jobs > 0)
        return err_set(e, EINVAL, "%s: Alibaba's pods are all there are: leave out 'history'",
                       file);
    return 0;
}

static int check_whole(struct scenario_parser *p, struct err *e)
{
    struct scenario *s = p->out;

    begin_with(s);
    if (s->title == NULL)
        s->title = "";
    if (!p->has_jobs)
        return err_set(e, EINVAL, "%s: no jobs: add a line like 'jobs drawn 1000'", p->words.name);
    return scenario_check(p->words.name, s, e);
}

static int count_lines(const char *text, size_t len)
{
    int n = 1;

    for (size_t i = 0; i < len; i++)
        n += text[i] == '\n';
    return n;
}

int scenario_parse(struct arena *a, const char *file, const char *text, size_t len,
                   struct scenario *out, struct err *e)
{
    struct scenario_parser p = { .arena = a, .out = out };
    int rc;

    if (len > FILE_MAX)
        return err_set(e, EFBIG, "%s: is too long for a scenario", file);
    *out = (struct scenario){
        .first_seed = SCENARIO_FIRST_SEED, .n_seeds = 4, .served = 1.0 / 3, .truth = TRUTH_BUILTIN
    };
    p.n_lines = count_lines(text, len);
    p.is_cluster = ARENA_ARRAY(a, unsigned char, (size_t)p.n_lines);
    words_open(&p.words, a, file, text, len);
    while ((rc = words_next(&p.words, e)) > 0) {
        rc = take_line(&p, e);
        if (rc < 0)
            return rc;
    }
    if (rc == 0)
        rc = take_cluster_text(&p, text, len, e);
    return rc < 0 ? rc : check_whole(&p, e);
}

/* ---- and the files that it names ---- */

/* 'path' as seen from the folder of 'from'. */
static const char *beside(struct arena *a, const char *from, const char *path)
{
    const char *slash = strrchr(from, '/');

    if (path == NULL || path[0] == '/' || slash == NULL)
        return path;
    return arena_printf(a, "%.*s/%s", (int)(slash - from), from, path);
}

/* "dir/my site.scenario" is "my-site". */
static const char *name_of(struct arena *a, const char *path)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789.-";
    const char *slash = strrchr(path, '/');
    char *name = arena_strdup(a, slash != NULL ? slash + 1 : path);
    size_t len = strlen(name);

    if (len > sizeof SUFFIX - 1 && strcmp(name + len - (sizeof SUFFIX - 1), SUFFIX) == 0)
        len -= sizeof SUFFIX - 1;
    len = len < NAME_MAX_BYTES ? len : NAME_MAX_BYTES;
    name[len] = '\0';
    for (char *c = name; *c != '\0'; c++) {
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c - 'A' + 'a');
        else if (strchr(letters, *c) == NULL)
            *c = '-';
    }
    return name;
}

int scenario_use_cluster(struct arena *a, const char *path, struct scenario *s, struct err *e)
{
    size_t len;
    int rc = file_read_text(a, path, NULL, CLUSTER_MAX, &s->cluster, &len, e);

    s->cluster_file = path;
    return rc < 0 ? rc : check_cluster(a, path, s, e);
}

int scenario_read(struct arena *a, const char *path, struct scenario *out, struct err *e)
{
    const char *text;
    size_t len;
    int rc = file_read_text(a, path, NULL, FILE_MAX, &text, &len, e);

    if (rc == 0)
        rc = scenario_parse(a, path, text, len, out, e);
    if (rc < 0)
        return rc;
    out->name = name_of(a, path);
    out->command = arena_printf(a, "--scenario %s", path);
    out->jobs_file = beside(a, path, out->jobs_file);
    out->truth_file = beside(a, path, out->truth_file);
    out->model_file = beside(a, path, out->model_file);
    if (out->cluster_file != NULL)
        rc = scenario_use_cluster(a, beside(a, path, out->cluster_file), out, e);
    return rc;
}
