/* choice.c - which scenarios and which of their runs a study is about. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text/text.h"
#include "cli/study/study.h"
#include "study/scenario/text.h"

bool study_is_own(const struct study_options *o)
{
    return o->own.cluster != NULL || o->own.trace != NULL || o->own.sacct != NULL ||
           o->own.record != NULL;
}

/* ---- scenarios ---- */

/* "a, b, c": all that ship with the program. */
static const char *scenario_names(struct arena *a)
{
    int n;
    const struct scenario *all = scenario_all(&n);
    const char *names = all[0].name;

    for (int i = 1; i < n; i++)
        names = arena_printf(a, "%s, %s", names, all[i].name);
    return names;
}

/* Is it a file's name: with a folder, or with the ending of scenario files? */
static bool is_file(const char *word)
{
    static const char end[] = ".scenario";
    const size_t len = strlen(word), end_len = sizeof end - 1;

    return strchr(word, '/') != NULL || (len > end_len && strcmp(word + len - end_len, end) == 0);
}

static int add_scenario(struct arena *a, const struct scenario *s, struct study_runs *out)
{
    for (int i = 0; i < out->n_scenarios; i++) {
        if (strcmp(out->scenarios[i].name, s->name) != 0)
            continue;
        if (s->is_builtin && out->scenarios[i].is_builtin)
            return 0;    // named twice
        return cmd_misuse(&cmd_study, "two scenarios are called '%s': give one file another name",
                          s->name);
    }
    ARENA_GROW(a, out->scenarios, out->n_scenarios, out->cap_scenarios);
    out->scenarios[out->n_scenarios++] = *s;
    return 0;
}

static int add_named(struct arena *a, const char *word, struct study_runs *out, struct err *e)
{
    const struct scenario *s = scenario_by_name(word);
    struct scenario read;

    if (is_file(word)) {
        int rc = scenario_read(a, word, &read, e);

        return rc < 0 ? rc : add_scenario(a, &read, out);
    }
    if (s == NULL)
        return cmd_misuse(&cmd_study,
                          "no scenario '%s'; there are %s; a file's name ends with .scenario", word,
                          scenario_names(a));
    return add_scenario(a, s, out);
}

static bool is_asked(const struct cmd_list *l, const char *word)
{
    for (int i = 0; i < l->n; i++)
        if (slice_is(l->words[i], word))
            return true;
    return l->n == 0;
}

/* Those that ship with the program in their order, then files in the order they were named. */
static int add_scenarios(struct arena *a, const struct study_options *o, struct study_runs *out,
                         struct err *e)
{
    int n, rc = 0;
    const struct scenario *all = scenario_all(&n);

    for (int i = 0; i < n && rc == 0; i++)
        if (is_asked(&o->scenarios, all[i].name))
            rc = add_scenario(a, &all[i], out);
    for (int i = 0; i < o->scenarios.n && rc == 0; i++) {
        const struct slice w = o->scenarios.words[i];

        rc = add_named(a, arena_strndup(a, w.at, w.len), out, e);
    }
    return rc;
}

/* ---- what else was said of them ---- */

static void say(struct arena *a, struct scenario *s, const char *option, const char *value)
{
    s->command = arena_printf(a, "%s %s %s", s->command, option, value);
}

/* "a,b,c" again. */
static const char *joined(struct arena *a, const struct cmd_list *l)
{
    const char *all = "";

    for (int i = 0; i < l->n; i++)
        all = arena_printf(a, "%s%s%.*s", all, i > 0 ? "," : "", (int)l->words[i].len,
                           l->words[i].at);
    return all;
}

/* Numbers, or auto, that a cluster's setting takes. */
static int read_prices(struct arena *a, const char *option, const char *key,
                       const struct cmd_list *l, const double **out)
{
    double *v = ARENA_ARRAY(a, double, (size_t)l->n);
    struct cluster_settings unused;

    cluster_defaults(&unused);
    for (int i = 0; i < l->n; i++) {
        v[i] = (double)NAN;
        if (!slice_is(l->words[i], "auto") &&
            (text_to_double(l->words[i], &v[i]) < 0 || cluster_set(&unused, key, v[i], NULL) < 0))
            return cmd_misuse(&cmd_study,
                              "%s %.*s: want numbers that 'set %s' of a cluster takes, "
                              "or auto",
                              option, (int)l->words[i].len, l->words[i].at, key);
        for (int k = 0; k < i; k++)
            if (v[k] == v[i] || (isnan(v[k]) && isnan(v[i])))
                return cmd_misuse(&cmd_study, "%s has %.*s twice: keep one", option,
                                  (int)l->words[i].len, l->words[i].at);
    }
    *out = v;
    return 0;
}

static int set_prices(struct arena *a, const struct study_options *o, struct scenario *s)
{
    int status = 0;

    if (o->delays.n > 0) {
        s->n_delays = o->delays.n;
        say(a, s, "--delay-w", joined(a, &o->delays));
        status = read_prices(a, "--delay-w", "delay_w", &o->delays, &s->delays_w);
    }
    if (o->promises.n > 0 && status == 0) {
        s->n_promises = o->promises.n;
        say(a, s, "--promise-w", joined(a, &o->promises));
        status = read_prices(a, "--promise-w", "promise_w", &o->promises, &s->promises_w);
    }
    return status;
}

/* --model and --history: beginnings, side by side, instead of those that the scenario has. */
static int set_beginnings(struct arena *a, const struct study_options *o, struct scenario *s,
                          struct err *e)
{
    enum knowledge *knows = ARENA_ARRAY(a, enum knowledge, (size_t)o->models.n + 1);
    int n = 0, rc = 0;

    if (o->models.n > 0 || o->history > 0) {
        s->model_file = NULL;
        s->history_jobs = 0;
    }
    for (int i = 0; i < o->models.n; i++) {
        const struct slice w = o->models.words[i];
        const enum knowledge k = slice_is(w, "none")         ? KNOWS_NOTHING
                                 : slice_is(w, "pretrained") ? KNOWS_PRETRAINED
                                                             : KNOWS_MODEL;

        for (int j = 0; j < n; j++)
            if (knows[j] == k)
                return cmd_misuse(&cmd_study, "--model takes none, pretrained and one file, each "
                                              "once");
        if (k == KNOWS_MODEL) {
            s->model_file = arena_strndup(a, w.at, w.len);
            rc = own_absolute(a, &s->model_file, e);
        }
        knows[n++] = k;
    }
    if (o->history > 0) {
        s->history_jobs = (int)o->history;
        knows[n++] = KNOWS_HISTORY;
        say(a, s, "--history", arena_printf(a, "%ld", o->history));
    }
    if (o->models.n > 0)
        say(a, s, "--model", joined(a, &o->models));
    if (n > 0) {
        s->n_knows = n;
        s->knows = knows;
    }
    return rc;
}

static int set_limits(struct arena *a, const struct study_options *o, struct scenario *s)
{
    if (o->limits == NULL)
        return 0;
    s->both_limits = strcmp(o->limits, "both") == 0;
    s->has_limits = strcmp(o->limits, "yes") == 0;
    if (!s->both_limits && !s->has_limits && strcmp(o->limits, "no") != 0)
        return cmd_misuse(&cmd_study, "--limits %s: want no, yes or both", o->limits);
    say(a, s, "--limits", o->limits);
    return 0;
}

static int set_all(struct arena *a, const struct study_options *o, struct scenario *s,
                   struct err *e)
{
    int status = set_prices(a, o, s);

    if (status == 0)
        status = set_beginnings(a, o, s, e);
    if (status == 0)
        status = set_limits(a, o, s);
    if (o->first_seed >= 0) {
        s->first_seed = (int)o->first_seed;
        say(a, s, "--first-seed", arena_printf(a, "%ld", o->first_seed));
    }
    return status;
}

/* What the command line makes of it is what a file may say. */
static int set_checked(struct arena *a, const struct study_options *o, struct scenario *s,
                       struct err *e)
{
    int status = set_all(a, o, s, e);

    return status != 0 ? status : scenario_check(s->name, s, e);
}

/* ---- one's own ---- */

static int read_loads(const struct study_options *o, double *out)
{
    for (int i = 0; i < o->loads.n; i++) {
        const struct slice w = o->loads.words[i];

        if (text_to_double(w, &out[i]) < 0 || !(out[i] > 0) || out[i] > 10)
            return cmd_misuse(&cmd_study, "--load %.*s: want a number above 0, 10 at most",
                              (int)w.len, w.at);
        for (int k = 0; k < i; k++)
            if (out[k] == out[i])
                return cmd_misuse(&cmd_study, "--load has %.*s twice: keep one", (int)w.len, w.at);
    }
    return 0;
}

static int read_policies(struct arena *a, const struct study_options *o, const char **out)
{
    for (int i = 0; i < o->policies.n; i++) {
        out[i] = arena_strndup(a, o->policies.words[i].at, o->policies.words[i].len);
        if (!scenario_has_policy(out[i]))
            return cmd_misuse(&cmd_study,
                              "no policy '%s'; 'gogh help simulate' names them, and "
                              "there are gogh-oracle and bound",
                              out[i]);
        if (text_find(out, i, out[i]) >= 0)
            return cmd_misuse(&cmd_study, "--policy has %s twice: keep one", out[i]);
    }
    return 0;
}

/* Loads, seeds and policies are what is asked for, not a choice among what there is. */
static int set_own(struct arena *a, const struct study_options *o, struct scenario *s)
{
    double *loads = ARENA_ARRAY(a, double, (size_t)o->loads.n);
    const char **policies = ARENA_ARRAY(a, const char *, (size_t)o->policies.n);

    if (read_loads(o, loads) != 0 || read_policies(a, o, policies) != 0)
        return EXIT_MISUSE;
    if (o->loads.n > 0) {
        s->n_loads = o->loads.n;
        s->loads = loads;
        say(a, s, "--load", joined(a, &o->loads));
    }
    if (o->n_seeds > 0) {
        s->n_seeds = (int)o->n_seeds;
        say(a, s, "--seeds", arena_printf(a, "%ld", o->n_seeds));
    }
    if (o->policies.n > 0) {
        s->n_policies = o->policies.n;
        s->policies = policies;
        say(a, s, "--policy", joined(a, &o->policies));
    }
    return 0;
}

/* What is refused is refused before a record's files are written. */
static int add_own(struct arena *a, const struct study_options *o, struct study_runs *out,
                   struct err *e)
{
    struct own_options own = o->own;
    struct scenario s = { .command = "" };
    int rc = set_own(a, o, &s);

    own.dir = o->out;
    own.is_made = o->is_report;
    if (rc == 0)
        rc = set_all(a, o, &s, e);
    if (rc == 0)
        rc = scenario_own(a, &own, &s, e);
    if (rc == 0)
        rc = set_own(a, o, &s);
    return rc != 0 ? rc : add_scenario(a, &s, out);
}

int study_scenarios(struct arena *a, const struct study_options *o, struct study_runs *out,
                    struct err *e)
{
    int rc = study_is_own(o) ? add_own(a, o, out, e) : add_scenarios(a, o, out, e);

    for (int i = 0; i < out->n_scenarios && rc == 0; i++) {
        rc = set_checked(a, o, &out->scenarios[i], e);
        if (out->scenarios[i].notice != NULL)
            fprintf(stderr, "gogh: %s\n", out->scenarios[i].notice);
    }
    return rc;
}

/* ---- which runs ---- */

/* Has the run this policy, or load? */
static bool has_value(const struct study_run *k, struct slice word, bool is_of_loads)
{
    double v;

    if (!is_of_loads)
        return slice_is(word, k->policy);
    return text_to_double(word, &v) == 0 && fabs(v - k->load) < 1e-9;
}

static bool is_kept(const struct study_run *k, const struct cmd_list *l, bool is_of_loads)
{
    for (int i = 0; i < l->n; i++)
        if (has_value(k, l->words[i], is_of_loads))
            return true;
    return l->n == 0;
}

static void add_runs(struct arena *a, const struct study_options *o, const struct scenario *s,
                     struct study_runs *out)
{
    struct study_run *keys;
    int n = scenario_runs(a, s, (int)o->n_seeds, &keys);

    for (int i = 0; i < n; i++) {
        ARENA_GROW(a, out->keys, out->n, out->cap);
        out->keys[out->n++] = keys[i];
    }
}

/* Only the policies and loads that were asked for. */
static void keep_asked(const struct study_options *o, struct study_runs *c)
{
    int n = 0;

    for (int i = 0; i < c->n; i++)
        if (is_kept(&c->keys[i], &o->policies, false) && is_kept(&c->keys[i], &o->loads, true))
            c->keys[n++] = c->keys[i];
    c->n = n;
}

/* "a, b, c": the policies of these runs, or their loads. */
static const char *values_of(struct arena *a, const struct study_runs *c, bool is_load_wanted)
{
    const char *values = NULL;

    for (int i = 0; i < c->n; i++) {
        const struct study_run *key = &c->keys[i];
        bool is_new = true;

        for (int k = 0; k < i && is_new; k++)
            is_new = is_load_wanted ? fabs(c->keys[k].load - key->load) > 1e-9
                                    : strcmp(c->keys[k].policy, key->policy) != 0;
        if (!is_new)
            continue;
        const char *one = is_load_wanted ? arena_printf(a, "%g", key->load) : key->policy;
        values = values == NULL ? one : arena_printf(a, "%s, %s", values, one);
    }
    return values;
}

/* Every policy, or load, asked for must be somebody's. */
static int check_filter(struct arena *a, const struct cmd_list *l, const struct study_runs *c,
                        bool is_of_loads)
{
    for (int i = 0; i < l->n; i++) {
        const struct slice word = l->words[i];
        bool is_met = false;

        for (int k = 0; k < c->n && !is_met; k++)
            is_met = has_value(&c->keys[k], word, is_of_loads);
        if (!is_met)
            return cmd_misuse(&cmd_study, "no run has the %s '%.*s'; there are %s",
                              is_of_loads ? "load" : "policy", (int)word.len, word.at,
                              values_of(a, c, is_of_loads));
    }
    return 0;
}

/* Scenarios that were named must have their data; without names, those that have it are taken. */
static int add_all_runs(struct arena *a, const struct study_options *o, struct study_runs *out,
                        struct err *e)
{
    const char *left_out = NULL;
    struct err first = { 0 };

    for (int i = 0; i < out->n_scenarios; i++) {
        const struct scenario *s = &out->scenarios[i];

        if (o->is_report || scenario_has_data(s, o->data, e)) {
            add_runs(a, o, s, out);
            continue;
        }
        if (o->scenarios.n > 0 || study_is_own(o))
            return -e->code;
        first = left_out == NULL ? *e : first;
        left_out = left_out == NULL ? s->name : arena_printf(a, "%s, %s", left_out, s->name);
    }
    if (left_out != NULL)
        fprintf(stderr, "gogh: left out for want of data: %s; first, %s\n", left_out, first.text);
    return 0;
}

int study_choose(struct arena *a, const struct study_options *o, struct study_runs *out,
                 struct err *e)
{
    int status = study_scenarios(a, o, out, e);

    if (status == 0)
        status = add_all_runs(a, o, out, e);
    if (status == 0)
        status = check_filter(a, &o->policies, out, false);
    if (status == 0)
        status = check_filter(a, &o->loads, out, true);
    if (status != 0)
        return status;
    keep_asked(o, out);
    if (out->n == 0)
        return cmd_misuse(&cmd_study, "no run has one of these policies at one of these loads");
    return 0;
}
