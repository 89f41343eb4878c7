/* study.c - `gogh study`: scenarios under all their policies, and a report of what is saved. */
#include "cli/study/study.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/file.h"
#include "base/text/text.h"
#include "nn/gp.h"
#include "study/results.h"
#include "study/pool.h"
#include "study/report/report.h"
#include "study/scenario/text.h"

static const char help[] =
    "Simulate scenarios under many policies, over several seeds, on all cores, and write what\n"
    "came of it: DIR/report.html, DIR/results.json and tables (docs/formats/study.md). A study\n"
    "that was stopped goes on where it was when the same command is given again.\n"
    "\n"
    "  --out DIR            where the results go\n"
    "  --scenario NAME...   which ones, with blanks or commas between: those that ship with the\n"
    "                       program, and files (docs/formats/scenario.md), whose names end with\n"
    "                       .scenario; without it all that ship with it and whose data is there\n"
    "  --show NAME          print the file of one that ships with the program: to copy and change\n"
    "  --seeds N            runs of each kind; as the scenario says\n"
    "  --first-seed N       the first of them; 11, or as the scenario says\n"
    "  --policy NAME,...    only these policies\n"
    "  --load X,...         only these loads\n"
    "  --limits WORD        no: nobody limits power; yes: everybody may; both: one after the other\n"
    "  --delay-w W,...      everybody whose plans it changes with each of these prices of a second of\n"
    "                       a job's time; auto is the cluster's\n"
    "  --promise-w W,...    the same with each of these prices of a broken promise\n"
    "  --history N          policies have lived through N other jobs before\n"
    "  --model M,...        they begin with nothing learned (none), with the model that ships with\n"
    "                       the program (pretrained), with a file of 'gogh train'\n"
    "  --jobs-parallel N    runs at the same time; as many as there are cores\n"
    "  --data DIR           published data (docs/formats/study.md#data); $GOGH_DATA, or\n"
    "                       ../shared/data\n"
    "  --report             run nothing: write report and tables anew from the runs that are "
    "there,\n"
    "                       whichever build of the program made them\n"
    "  --list               the scenarios: runs, loads, seeds, and whether their data is there\n"
    "  --json               print results.json instead of a table\n"
    "\n"
    "One's own jobs instead of scenarios; --policy and --load say what to run then:\n"
    "\n"
    "  --cluster FILE       the site's nodes and GPUs (docs/formats/cluster.md)\n"
    "  --trace FILE         its jobs (docs/formats/trace.md), or\n"
    "  --sacct FILE         what its Slurm accounts for (docs/formats/sacct.md); with --partition\n"
    "                       NAME and --workload NAME as of 'gogh advise', or\n"
    "  --record FILE        what its goghd recorded (docs/formats/record.md): cluster, jobs and\n"
    "                       measurements\n"
    "  --truth DB           a store of measurements as ground truth; without it the built-in "
    "tables\n"
    "                       are, off by hidden factors drawn from the seed\n"
    "\n"
    "Examples:\n"
    "  gogh study --list\n"
    "  gogh study --scenario builtin --seeds 2 --out study\n"
    "  gogh study --scenario reference --policy gogh,fifo-fastest --load 0.9 --out study\n"
    "  gogh study --show builtin > mine.scenario; gogh study --scenario mine.scenario --out study\n"
    "  gogh study --cluster docs/examples/small.cluster --trace docs/examples/mixed.trace \\\n"
    "      --delay-w 15,60,240 --out study\n";

static struct study_options given = { .first_seed = -1 };

static const struct cmd_option options[] = {
    CMD_WORDS("scenario", given.scenarios),
    CMD_TEXT("show", given.show),
    CMD_WHOLE("seeds", given.n_seeds, 1, 1000),
    CMD_WHOLE("first-seed", given.first_seed, 0, 1e9),
    CMD_WORDS("policy", given.policies),
    CMD_WORDS("load", given.loads),
    CMD_TEXT("limits", given.limits),
    CMD_WORDS("delay-w", given.delays),
    CMD_WORDS("promise-w", given.promises),
    CMD_WHOLE("history", given.history, 2, 1e6),
    CMD_WORDS("model", given.models),
    CMD_TEXT("cluster", given.own.cluster),
    CMD_TEXT("trace", given.own.trace),
    CMD_TEXT("sacct", given.own.sacct),
    CMD_TEXT("record", given.own.record),
    CMD_TEXT("truth", given.own.truth),
    CMD_TEXT("partition", given.own.partition),
    CMD_TEXT("workload", given.own.workload),
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

/* One's own jobs come from one place, and know where they ran. */
static int check_own(const struct cmd_call *call)
{
    const struct own_options *o = &given.own;
    const int n = (o->trace != NULL) + (o->sacct != NULL) + (o->record != NULL);

    if (!study_is_own(&given)) {
        if (o->truth != NULL || o->partition != NULL || o->workload != NULL)
            return cmd_misuse(call->cmd, "--truth, --partition and --workload are of one's own "
                                         "jobs: add --cluster FILE and --trace or --sacct FILE");
        return 0;
    }
    if (given.is_list)
        return cmd_misuse(call->cmd, "--list names scenarios: leave out one's own jobs");
    if (given.scenarios.n > 0)
        return cmd_misuse(call->cmd, "--scenario has a cluster and jobs: leave it out, or put "
                                     "'cluster FILE' and 'jobs trace FILE' into its file");
    if (n != 1)
        return cmd_misuse(call->cmd, "say which jobs, in one way: --trace, --sacct or --record "
                                     "FILE");
    if (o->cluster == NULL && o->record == NULL)
        return cmd_misuse(call->cmd, "say on which cluster: --cluster FILE");
    if (o->sacct == NULL && (o->partition != NULL || o->workload != NULL))
        return cmd_misuse(call->cmd, "--partition and --workload are of --sacct");
    return 0;
}

static int check(const struct cmd_call *call)
{
    int status = 0;

    for (int i = 0; status == 0 && call->words[i] != NULL; i++)
        status = add_scenarios_of(call->words[i]);
    if (status == 0)
        status = check_own(call);
    if (status == 0 && !given.is_list && given.show == NULL &&
        (given.out == NULL || given.out[0] == '\0'))
        return cmd_misuse(call->cmd, "say where the results go: --out DIR");
    return status;
}

/* ---- the list ---- */

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
    const char *loads = s->n_loads > 0 ? "" : "as it is";
    struct study_run *keys;

    for (int i = 0; i < s->n_loads; i++)
        loads = arena_printf(a, "%s%s%g", loads, i > 0 ? "," : "", s->loads[i]);
    printf("%-10s %5d  %-11s %5d  %-7s  %s\n", s->name, scenario_runs(a, s, n_seeds, &keys), loads,
           n_seeds, data_state(s), s->title);
}

static int list(struct arena *a, struct err *e)
{
    struct study_runs c = { 0 };
    int status = study_scenarios(a, &given, &c, e);

    if (status != 0)
        return status;
    printf("%-10s %5s  %-11s %5s  %-7s  %s\n", "scenario", "runs", "loads", "seeds", "data",
           "what it is");
    for (int i = 0; i < c.n_scenarios; i++)
        list_one(a, &c.scenarios[i]);
    return 0;
}

static int show(const char *name)
{
    const char *text = scenario_file(name);

    if (text == NULL)
        return cmd_misuse(&cmd_study,
                          "no scenario '%s' ships with the program; --list names those "
                          "that do",
                          name);
    fputs(text, stdout);
    return 0;
}

/* ---- running ---- */

static int print_json(const struct results *b, struct err *e)
{
    struct buf text;

    buf_init(&text, (size_t)1 << 30);
    return cmd_write(NULL, &text, results_json(b, &text, e), e);
}

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
    return err_set(e, ENOENT,
                   "%s: has none of these runs; leave out --report to do them, or for a study of "
                   "one's own jobs add --scenario %s/site.scenario",
                   b->dir, b->dir);
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
        n += given.scenarios.n > 0 || study_is_own(&given) || has_scenario(b, c->keys[i].scenario);
    fprintf(to, "%d of %d runs", b->n_rows, n);
    if (b->n_rows < n)
        fprintf(to, "; %d missing", n - b->n_rows);
    fprintf(to, "; results are in %s\n", b->dir);
}

/* Everything that is there is written and shown, also when some runs failed; where all did, an
 * earlier report stays as it is.
 */
static int finish(struct arena *a, const struct study_runs *c, const struct results *b,
                  const struct pool_report *r, struct err *e)
{
    if (b->n_rows == 0 && r->first_failure != NULL)
        return err_set(e, EINVAL, "all %d runs failed; the first: %s", r->n_failed,
                       r->first_failure);
    int rc = results_write(b, e);

    if (rc == 0)
        rc = report_write(a, b, e);
    if (rc == 0 && given.is_json)
        rc = print_json(b, e);
    if (rc < 0)
        return rc;
    if (!given.is_json)
        study_print_table(a, b);
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
    struct results_data *data = ARENA_ARRAY(a, struct results_data, (size_t)c->n_scenarios);
    int rc = 0;

    b->data = data;
    for (int i = 0; i < c->n_scenarios && rc == 0; i++) {
        const struct scenario *s = &c->scenarios[i];
        bool is_chosen = false;

        for (int k = 0; k < c->n && !is_chosen; k++)
            is_chosen = c->keys[k].scenario == s;
        if (!is_chosen)
            continue;
        data[b->n_data].scenario = s;
        rc = scenario_digest(a, s, given.data, &data[b->n_data++].digest, e);
    }
    return rc;
}

/* One's own inputs as a scenario file: to change and to run again. */
static int keep_own(struct arena *a, const struct study_runs *c, struct err *e)
{
    struct buf text;

    if (!study_is_own(&given) || given.is_report)
        return 0;
    buf_init(&text, (size_t)1 << 20);
    buf_printf(&text, "# gogh study %s\n", c->scenarios[0].command);
    int rc = scenario_write(&c->scenarios[0], &text);
    rc = rc < 0 ? err_set(e, EFBIG, "the scenario is too long")
                : file_write(arena_printf(a, "%s/site.scenario", given.out), buf_text(&text),
                             text.len, e);
    buf_release(&text);
    return rc;
}

/* Inputs that no run could begin with are told before anything is written: of each scenario that is
 * chosen those of the first run, but for what it would have learned before.
 */
static int check_inputs(const struct study_runs *c, struct err *e)
{
    int rc = 0;

    for (int i = 0; i < c->n && rc == 0; i++) {
        struct study_run k = c->keys[i];
        struct study_inputs in;
        struct arena a;

        if (i > 0 && k.scenario == c->keys[i - 1].scenario)
            continue;
        k.knows = KNOWS_NOTHING;
        arena_init(&a);
        rc = scenario_open(&a, &k, given.data, &in, e);
        if (rc == 0)
            scenario_close(&in);
        arena_release(&a);
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
    if (rc == 0 && !given.is_report)
        rc = check_inputs(c, e);
    if (rc == 0)
        rc = results_lock(&b, e);
    if (rc == 0)
        rc = keep_own(a, c, e);
    if (rc == 0)
        rc = given.is_report ? find_runs(a, &b, c, &r, e)
                             : pool_run(a, &b, c->keys, c->n, &po, &r, e);
    if (rc == 0)
        rc = finish(a, c, &b, &r, e);
    results_unlock(&b);
    return rc;
}

/* A price that none of the runs minds is told: who swept it would take it for broken. */
static void tell_idle_prices(const struct study_runs *c)
{
    int n_delay = 0, n_promise = 0;

    for (int i = 0; i < c->n; i++) {
        n_delay += c->keys[i].delay_w != NULL;
        n_promise += c->keys[i].promise_w != NULL;
    }
    if (given.delays.n > 0 && n_delay == 0)
        fprintf(stderr, "gogh: --delay-w changes nothing: none of these policies minds it\n");
    if (given.promises.n > 0 && n_promise == 0)
        fprintf(stderr, "gogh: --promise-w changes nothing: none of these policies minds it\n");
}

static int run(const struct cmd_call *call, struct err *e)
{
    struct study_runs c = { 0 };
    int status;

    given.data = scenario_data(given.data);
    if (given.show != NULL)
        return show(given.show);
    if (given.is_list)
        return list(call->arena, e);
    nn_init();    // a record is gone through before there are runs
    status = study_choose(call->arena, &given, &c, e);
    if (status == 0)
        tell_idle_prices(&c);
    return status == 0 ? study(call->arena, &c, e) : status;
}

const struct cmd cmd_study = {
    .name = "study",
    .synopsis = "study [--scenario NAME|FILE...] [--seeds N] [--first-seed N] --out DIR [--json]",
    .summary = "compare policies over scenarios, and report what is saved",
    .help = help,
    CMD_OPTIONS(options),
    .max_words = WORDS_MAX,
    .check = check,
    .run = run,
};
