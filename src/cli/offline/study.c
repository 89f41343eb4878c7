/* study.c - `gogh study`: scenarios under all their policies, and a report of what is saved. */
#include "cli/cmd.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/text.h"
#include "study/results.h"
#include "study/pool.h"
#include "study/report/report.h"
#include "study/scenario.h"
#include "study/spread.h"

static const char help[] =
    "Simulate scenarios under many policies, over several seeds, on all cores, and write what\n"
    "came of it: DIR/report.html, DIR/results.json and tables (docs/formats/study.md). A study\n"
    "that was stopped goes on where it was when the same command is given again.\n"
    "\n"
    "  --out DIR            where the results go\n"
    "  --scenario NAME...   which ones, with blanks or commas between; without it all whose\n"
    "                       data is there\n"
    "  --seeds N            runs of each kind; as the scenario says\n"
    "  --policy NAME...     only these policies\n"
    "  --load X...          only these loads\n"
    "  --jobs-parallel N    runs at the same time; as many as there are cores\n"
    "  --data DIR           published data (docs/formats/study.md#data); $GOGH_DATA, or\n"
    "                       ../shared/data\n"
    "  --report             run nothing: write report and tables anew from the runs that are "
    "there,\n"
    "                       whichever build of the program made them\n"
    "  --list               the scenarios: runs, loads, seeds, and whether their data is there\n"
    "  --json               print results.json instead of a table\n"
    "\n"
    "Examples:\n"
    "  gogh study --list\n"
    "  gogh study --scenario builtin --seeds 2 --out study\n"
    "  gogh study --scenario reference --policy gogh,fifo-fastest --load 0.9 --out study\n";

static struct {
    struct cmd_list scenarios, policies, loads;
    long n_seeds, n_parallel;    // 0: not said
    const char *data, *out;
    bool is_list, is_json, is_report;
} given;

static const struct cmd_option options[] = {
    CMD_WORDS("scenario", given.scenarios),
    CMD_WHOLE("seeds", given.n_seeds, 1, 1000),
    CMD_WORDS("policy", given.policies),
    CMD_WORDS("load", given.loads),
    CMD_WHOLE("jobs-parallel", given.n_parallel, 1, 1000),
    CMD_TEXT("data", given.data),
    CMD_TEXT("out", given.out),
    CMD_FLAG("report", given.is_report),
    CMD_FLAG("list", given.is_list),
    CMD_FLAG("json", given.is_json),
};

/* Names that follow the option's own one. */
#define WORDS_MAX 16

static int add_scenarios_of(const char *names)
{
    struct cmd_list *l = &given.scenarios;

    if (l->n == 0)
        return cmd_misuse(&cmd_study, "unexpected argument '%s': want --scenario %s", names, names);
    for (size_t len; *names != '\0'; names += len + (names[len] == ',')) {
        len = strcspn(names, ",");
        if (l->n == CMD_LIST_MAX)
            return cmd_misuse(&cmd_study, "--scenario takes at most %d names", CMD_LIST_MAX);
        if (len > 0)
            l->words[l->n++] = (struct slice){ .at = names, .len = len };
    }
    return 0;
}

static int check(const struct cmd_call *call)
{
    int status = 0;

    for (int i = 0; status == 0 && call->words[i] != NULL; i++)
        status = add_scenarios_of(call->words[i]);
    if (status == 0 && !given.is_list && (given.out == NULL || given.out[0] == '\0'))
        return cmd_misuse(call->cmd, "say where the results go: --out DIR");
    return status;
}

/* ---- which runs ---- */

/* The runs of a study, growing in the arena. */
struct study_runs {
    struct study_run *keys;
    int n, cap;
};

/* Is it one of those that were named, where any were? */
static bool is_asked(const struct cmd_list *l, const char *word)
{
    for (int i = 0; i < l->n; i++)
        if (slice_is(l->words[i], word))
            return true;
    return l->n == 0;
}

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

static void add_runs(struct arena *a, const struct scenario *s, struct study_runs *out)
{
    struct study_run *keys;
    int n = scenario_runs(a, s, (int)given.n_seeds, &keys);

    for (int i = 0; i < n; i++) {
        ARENA_GROW(a, out->keys, out->n, out->cap);
        out->keys[out->n++] = keys[i];
    }
}

/* Only the policies and loads that were asked for. */
static void keep_asked(struct study_runs *c)
{
    int n = 0;

    for (int i = 0; i < c->n; i++)
        if (is_kept(&c->keys[i], &given.policies, false) &&
            is_kept(&c->keys[i], &given.loads, true))
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

/* "a, b, c": all scenarios. */
static const char *scenario_names(struct arena *a)
{
    int n;
    const struct scenario *all = scenario_all(&n);
    const char *names = all[0].name;

    for (int i = 1; i < n; i++)
        names = arena_printf(a, "%s, %s", names, all[i].name);
    return names;
}

/* Every name must be one; which ones are chosen is asked of the table, in its order. */
static int check_scenarios(struct arena *a)
{
    const struct cmd_list *l = &given.scenarios;

    for (int i = 0; i < l->n; i++) {
        const char *name = arena_strndup(a, l->words[i].at, l->words[i].len);

        if (scenario_by_name(name) == NULL)
            return cmd_misuse(&cmd_study, "no scenario '%s'; there are %s", name,
                              scenario_names(a));
    }
    return 0;
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
static int add_scenarios(struct arena *a, struct study_runs *out)
{
    const char *left_out = NULL;
    struct err e = { 0 }, first = { 0 };
    int n;
    const struct scenario *all = scenario_all(&n);

    for (int i = 0; i < n; i++) {
        if (!is_asked(&given.scenarios, all[i].name))
            continue;
        if (given.is_report || scenario_has_data(&all[i], given.data, &e)) {
            add_runs(a, &all[i], out);
            continue;
        }
        if (given.scenarios.n > 0)
            return cmd_fail(&e);
        first = left_out == NULL ? e : first;
        left_out =
            left_out == NULL ? all[i].name : arena_printf(a, "%s, %s", left_out, all[i].name);
    }
    if (left_out != NULL)
        fprintf(stderr, "gogh: left out for want of data: %s; first, %s\n", left_out, first.text);
    return 0;
}

static int choose(struct arena *a, struct study_runs *out)
{
    int status = check_scenarios(a);

    if (status == 0)
        status = add_scenarios(a, out);
    if (status == 0)
        status = check_filter(a, &given.policies, out, false);
    if (status == 0)
        status = check_filter(a, &given.loads, out, true);
    if (status != 0)
        return status;
    keep_asked(out);
    if (out->n == 0)
        return cmd_misuse(&cmd_study, "no run has one of these policies at one of these loads");
    return 0;
}

/* "-" where a scenario needs no data. */
static const char *data_state(const struct scenario *s)
{
    if (!scenario_needs_data(s))
        return "-";
    return scenario_has_data(s, given.data, NULL) ? "there" : "missing";
}

static void list_one(struct arena *a, const struct scenario *s)
{
    const int n_seeds = given.n_seeds > 0 ? (int)given.n_seeds : s->n_seeds;
    const char *loads = s->loads != NULL ? arena_printf(a, "%g", s->loads[0]) : "as it is";
    struct study_run *keys;

    for (int i = 1; s->loads != NULL && s->loads[i] > 0; i++)
        loads = arena_printf(a, "%s,%g", loads, s->loads[i]);
    printf("%-10s %5d  %-11s %5d  %-7s  %s\n", s->name, scenario_runs(a, s, n_seeds, &keys), loads,
           n_seeds, data_state(s), s->title);
}

static int list(struct arena *a)
{
    int n, status = check_scenarios(a);
    const struct scenario *all = scenario_all(&n);

    if (status != 0)
        return status;
    printf("%-10s %5s  %-11s %5s  %-7s  %s\n", "scenario", "runs", "loads", "seeds", "data",
           "what it is");
    for (int i = 0; i < n; i++)
        if (is_asked(&given.scenarios, all[i].name))
            list_one(a, &all[i]);
    return 0;
}

/* ---- the table ---- */

static void print_head(const struct study_run *k)
{
    printf("\n%s", k->scenario->name);
    if (k->load > 0)
        printf(", load %g", k->load);
    printf(": %s\n%-14s %-7s %-9s %-11s %9s %8s %9s %9s\n", k->scenario->title, "policy", "limits",
           "without", "knows", "J/work", "", "promises", "kWh");
}

/* Mean and half-width over seeds of the figure that stands 'at' bytes into a result, times 'by'. */
static struct spread spread_rows(struct arena *a, const struct results_row *rows, int n, size_t at,
                                 double by)
{
    double *v = ARENA_ARRAY(a, double, (size_t)n);

    for (int i = 0; i < n; i++) {
        memcpy(&v[i], (const char *)&rows[i].result + at, sizeof v[i]);
        v[i] *= by;
    }
    return spread_of(v, n);
}

#define SPREAD(figure, by) spread_rows(a, rows, n, offsetof(struct study_result, figure), by)

/* "-" for what there is none of. */
static const char *shown(struct arena *a, const char *unit, double v)
{
    return isfinite(v) ? arena_printf(a, "%.2f%s", v, unit) : "-";
}

static void print_kind(struct arena *a, const struct results_row *rows, int n)
{
    const struct study_run *k = &rows[0].key;
    struct spread j = SPREAD(energy_j_per_work, 1);
    const char *half = isfinite(j.half) ? arena_printf(a, "± %6.2f", j.half) : "        ";

    printf("%-14s %-7s %-9s %-11s %9s %s %9s %9s\n", k->policy, k->has_limits ? "yes" : "no",
           k->without[0] != '\0' ? k->without : "-", knowledge_name(k->knows), shown(a, "", j.mean),
           half, shown(a, " %", SPREAD(promise_attainment, 100).mean),
           shown(a, "", SPREAD(energy_kwh, 1).mean));
}

static void print_table(struct arena *a, const struct results *b)
{
    for (int i = 0; i < b->n_rows;) {
        const struct study_run *k = &b->rows[i].key;
        int n = 1;

        while (i + n < b->n_rows && study_run_is_alike(k, &b->rows[i + n].key))
            n++;
        if (i == 0 || k->scenario != b->rows[i - 1].key.scenario ||
            k->load != b->rows[i - 1].key.load)
            print_head(k);
        print_kind(a, &b->rows[i], n);
        i += n;
    }
    printf("\nJ/work: joules a second of work alone on the reference GPU, in the steady window;\n"
           "mean over seeds and half of its 95 %% confidence interval. %s/report.html has more.\n",
           b->dir);
}

static int print_json(const struct results *b, struct err *e)
{
    struct buf text;

    buf_init(&text, (size_t)1 << 30);
    return cmd_write(NULL, &text, results_json(b, &text, e), e);
}

/* ---- running ---- */

/* A report makes no directory. */
static int check_place(struct arena *a, struct err *e)
{
    if (!given.is_report || access(arena_printf(a, "%s/runs", given.out), F_OK) == 0)
        return 0;
    return err_set(e, ENOENT,
                   "%s: no study was run there; name another --out, or leave out --report",
                   given.out);
}

/* As pool_run, where nothing is to be run. */
static int find_runs(struct arena *a, struct results *b, const struct study_runs *c,
                     struct pool_report *r, struct err *e)
{
    b->takes_any = true;
    results_fill(a, b, c->keys, c->n);
    *r = (struct pool_report){ .n_kept = b->n_rows };
    if (b->broken != NULL)
        fprintf(stderr, "gogh: %s: is no run, and left out; without --report it is done again\n",
                b->broken);
    if (b->n_rows > 0)
        return 0;
    return err_set(e, ENOENT, "%s: has none of these runs; leave out --report to do them", b->dir);
}

static bool has_scenario(const struct results *b, const struct scenario *s)
{
    for (int i = 0; i < b->n_rows; i++) {
        if (b->rows[i].key.scenario == s)
            return true;
    }
    return false;
}

/* Of the scenarios that were named, else of those that have a run there. */
static void print_found(const struct study_runs *c, const struct results *b)
{
    FILE *to = given.is_json ? stderr : stdout;
    int n = 0;

    for (int i = 0; i < c->n; i++)
        n += given.scenarios.n > 0 || has_scenario(b, c->keys[i].scenario);
    fprintf(to, "%d of %d runs", b->n_rows, n);
    if (b->n_rows < n)
        fprintf(to, "; %d missing", n - b->n_rows);
    fprintf(to, "; results are in %s\n", b->dir);
}

/* Everything that is there is written and shown, also when some runs failed. */
static int finish(struct arena *a, const struct study_runs *c, const struct results *b,
                  const struct pool_report *r, struct err *e)
{
    int rc = results_write(b, e);

    if (rc == 0)
        rc = report_write(a, b, e);
    if (rc == 0 && given.is_json)
        rc = print_json(b, e);
    if (rc < 0)
        return rc;
    if (!given.is_json)
        print_table(a, b);
    if (given.is_report)
        print_found(c, b);
    else if (!given.is_json)
        printf("%d runs done, %d found from before, %d failed; results are in %s\n", r->n_done,
               r->n_kept, r->n_failed, b->dir);
    if (r->first_failure == NULL)
        return 0;
    fflush(stdout);
    fprintf(stderr, "gogh: %d of the runs failed; the first: %s\n", r->n_failed, r->first_failure);
    return EXIT_NO;
}

/* What each of the chosen scenarios reads. */
static int digest_data(struct arena *a, const struct study_runs *c, struct results *b,
                       struct err *e)
{
    int n, rc = 0;
    const struct scenario *all = scenario_all(&n);
    struct results_data *data = ARENA_ARRAY(a, struct results_data, (size_t)n);

    b->data = data;
    for (int i = 0; i < n && rc == 0; i++) {
        bool is_chosen = false;

        for (int k = 0; k < c->n && !is_chosen; k++)
            is_chosen = c->keys[k].scenario == &all[i];
        if (!is_chosen)
            continue;
        data[b->n_data].scenario = &all[i];
        rc = scenario_digest(a, &all[i], given.data, &data[b->n_data++].digest, e);
    }
    return rc;
}

static int study(struct arena *a, const struct study_runs *c, struct err *e)
{
    const struct pool_options po = { .n_parallel = (int)given.n_parallel, .data = given.data };
    struct results b = { .dir = given.out, .version = GOGH_VERSION, .build = results_build(a) };
    struct pool_report r;
    int rc = check_place(a, e);

    if (rc == 0 && !given.is_report)
        rc = digest_data(a, c, &b, e);
    if (rc == 0)
        rc = results_lock(&b, e);
    if (rc == 0)
        rc = given.is_report ? find_runs(a, &b, c, &r, e)
                             : pool_run(a, &b, c->keys, c->n, &po, &r, e);
    if (rc == 0)
        rc = finish(a, c, &b, &r, e);
    results_unlock(&b);
    return rc;
}

static int run(const struct cmd_call *call, struct err *e)
{
    struct study_runs c = { 0 };
    int status;

    given.data = scenario_data(given.data);
    if (given.is_list)
        return list(call->arena);
    status = choose(call->arena, &c);
    return status == 0 ? study(call->arena, &c, e) : status;
}

const struct cmd cmd_study = {
    .name = "study",
    .synopsis = "study [--scenario NAME...] [--seeds N] [--jobs-parallel N] --out DIR [--json]",
    .summary = "compare policies over scenarios, and report what is saved",
    .help = help,
    CMD_OPTIONS(options),
    .max_words = WORDS_MAX,
    .check = check,
    .run = run,
};
