/* whatif.c - `gogh whatif`: a site's own jobs on other GPUs, and what to retire. */
#include "cli/study/whatif.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text/text.h"
#include "cli/cmd.h"
#include "cli/when.h"
#include "nn/gp.h"
#include "optimize/policy/solver.h"
#include "study/run.h"
#include "study/whatif/change.h"

static const char help[] =
    "What a change of GPUs or settings would do to a site: its own jobs, simulated as it is and as\n"
    "it would be, in the same worlds. Energy, money and CO2 a year, promises kept, mean and 95 %\n"
    "completion times, each with an interval over seeds. GPUs only: no host, no cooling, no price\n"
    "of buying.\n"
    "\n"
    "The site's history, one of:\n"
    "  --trace FILE --cluster FILE   jobs (docs/formats/trace.md) and GPUs\n"
    "  --sacct FILE --cluster FILE   Slurm's accounting (docs/advise.md), with --partition,\n"
    "                    --workload, --tolerance, --days, --from, --to, --shards, --keep-types\n"
    "  --record FILE     what a daemon wrote down ('record PATH' in gogh.conf)\n"
    "  --db DB           a daemon's store; --cluster FILE tells its settings\n"
    "  --truth DB        with --trace and --sacct: the site's measurements. Without it speeds are\n"
    "                    the built-in tables', off by hidden factors that each seed draws\n"
    "  --period T        the history is of so long: 30d (to the last arrival)\n"
    "\n"
    "The change:\n"
    "  --remove TYPE[:COUNT]       GPUs that go; all of the type\n"
    "  --add COUNTxTYPE[@SIZE]     GPUs that come, on nodes of SIZE (as the largest node)\n"
    "  --power-cap P     the cluster draws at most so much: 20kW, 500W; 0: there is no cap\n"
    "  --delay-w W       what a second of a job's time is worth (as at the site); auto: by the\n"
    "                    caps of the GPUs that there would be\n"
    "  --promise-w W     what a promise that is broken costs\n"
    "  --policy P[,Q]    who plans; with two of them, before and after (gogh)\n"
    "  --retire          instead: what retiring each GPU type would save or cost, the best first;\n"
    "                    power cap, prices and policy hold on both sides then\n"
    "\n"
    "  --price P         of a kWh, in whatever money\n"
    "  --co2 KG          of a kWh\n"
    "  --seeds N         worlds: noise, hidden factors, jobs drawn anew in blocks (6)\n"
    "  --first-seed N    the first of them (1)\n"
    "  --json            as JSON (docs/whatif.md tells the keys)\n"
    "\n"
    "Examples:\n"
    "  gogh whatif --db /var/lib/gogh/gogh.db --remove k80 --add 8xl40s --price 0.30 --co2 0.4\n"
    "  gogh whatif --sacct march.sacct --cluster site.cluster --power-cap 20kW\n"
    "  gogh whatif --trace day.trace --cluster lab.cluster --truth measured.db --delay-w 30\n"
    "  gogh whatif --record /var/lib/gogh/record.jsonl --retire --seeds 12\n";

static struct whatif_options given = {
    .advise = { .workload = HISTORY_WORKLOAD,
                .shards = HISTORY_SHARDS,
                .tolerance = HISTORY_TOLERANCE,
                .days = NAN },
    .promise_w = NAN,
    .price = NAN,
    .co2_kg = NAN,
    .first_seed = 1,
    .n_seeds = 6,
};

static const struct cmd_option options[] = {
    CMD_TEXT("trace", given.trace),
    CMD_TEXT("sacct", given.advise.sacct),
    CMD_TEXT("record", given.record),
    CMD_TEXT("db", given.db),
    CMD_TEXT("cluster", given.advise.cluster),
    CMD_TEXT("truth", given.advise.truth),
    CMD_TEXT("period", given.period),
    CMD_TEXT("partition", given.advise.partition),
    CMD_TEXT("workload", given.advise.workload),
    CMD_NUMBER("tolerance", given.advise.tolerance, 1, 100),
    CMD_NUMBER("days", given.advise.days, 0.01, 1e5),
    CMD_TEXT("from", given.advise.from),
    CMD_TEXT("to", given.advise.to),
    CMD_WHOLE("shards", given.advise.shards, 1, 1000),
    CMD_FLAG("keep-types", given.advise.keeps_types),
    CMD_EACH("remove", given.removed),
    CMD_EACH("add", given.added),
    CMD_TEXT("power-cap", given.power_cap),
    CMD_TEXT("delay-w", given.delay),
    CMD_NUMBER("promise-w", given.promise_w, 0, 1e6),
    CMD_WORDS("policy", given.policies),
    CMD_FLAG("retire", given.is_retire),
    CMD_NUMBER("price", given.price, 0, 1e6),
    CMD_NUMBER("co2", given.co2_kg, 0, 1e3),
    CMD_WHOLE("seeds", given.n_seeds, 1, WHATIF_SEEDS_MAX),
    CMD_WHOLE("first-seed", given.first_seed, 0, CMD_SEED_MAX),
    CMD_FLAG("json", given.is_json),
};

/* ---- the line ---- */

static bool has_change(void)
{
    return given.removed.n > 0 || given.added.n > 0 || given.power_cap != NULL ||
           given.delay != NULL || !isnan(given.promise_w) || given.policies.n == 2;
}

static int check_source(const struct cmd_call *call)
{
    int n = (given.trace != NULL) + (given.advise.sacct != NULL) + (given.record != NULL) +
            (given.db != NULL);
    bool is_file = given.trace != NULL || given.advise.sacct != NULL;

    if (n != 1)
        return cmd_misuse(call->cmd, "say what ran, in one way: --trace FILE, --sacct FILE, "
                                     "--record FILE or --db DB");
    if (is_file && given.advise.cluster == NULL)
        return cmd_misuse(call->cmd, "say where it ran: --cluster FILE");
    if (!is_file && given.advise.truth != NULL)
        return cmd_misuse(call->cmd, "--truth is for --trace and --sacct: a daemon has measured");
    if (given.record != NULL && given.advise.cluster != NULL)
        return cmd_misuse(call->cmd, "a record knows its cluster: leave out --cluster");
    if (!isnan(given.advise.days) && (given.advise.from != NULL || given.advise.to != NULL))
        return cmd_misuse(call->cmd, "--days counts from the end: leave out --from and --to");
    return 0;
}

static int check(const struct cmd_call *call)
{
    int rc = check_source(call);

    if (rc != 0)
        return rc;
    if (given.policies.n > (given.is_retire ? 1 : 2))
        return cmd_misuse(call->cmd, given.is_retire
                                         ? "--retire has one --policy, which plans on both sides"
                                         : "--policy takes one policy, or one before and after");
    if (given.is_retire && (given.removed.n > 0 || given.added.n > 0))
        return cmd_misuse(call->cmd, "--retire tries each type: leave out --remove and --add");
    if (!given.is_retire && !has_change())
        return cmd_misuse(call->cmd, "say what would change: --remove, --add, --power-cap, "
                                     "--delay-w, --promise-w, --policy BEFORE,AFTER; or --retire");
    return 0;
}

/* ---- variants ---- */

static const char *policy_of(struct arena *a, int side)
{
    const struct cmd_list *l = &given.policies;
    const struct slice *s = &l->words[side < l->n ? side : 0];

    return l->n == 0 ? "gogh" : arena_strndup(a, s->at, s->len);
}

static int change_delay(struct cluster_settings *s, struct err *e)
{
    double w;

    s->delay_w = -1;    // by the caps of the GPUs that are there then
    if (strcmp(given.delay, "auto") == 0)
        return 0;
    if (text_to_double(slice_of(given.delay), &w) < 0 || cluster_set(s, "delay_w", w, NULL) < 0)
        return err_set(e, EINVAL, "--delay-w %s: want a number from 0 to 1e6, or auto",
                       given.delay);
    return 0;
}

static int change_settings(struct cluster_settings *s, struct err *e)
{
    double cap_w = 0;
    int rc = 0;

    if (given.power_cap != NULL && (rc = change_parse_watts(given.power_cap, &cap_w, e)) < 0)
        return err_prefix(e, "--power-cap");
    if (given.power_cap != NULL)
        rc = cluster_set(s, "power_cap_w", cap_w, e);
    if (rc == 0 && given.delay != NULL)
        rc = change_delay(s, e);
    if (rc == 0 && !isnan(given.promise_w))
        rc = cluster_set(s, "promise_w", given.promise_w, e);
    return rc;
}

static int parse_changes(struct arena *a, struct fleet_change *out, struct err *e)
{
    int rc = 0;

    for (int i = 0; i < given.removed.n && rc == 0; i++)
        rc = change_parse_removed(a, given.removed.words[i].at, out++, e);
    for (int i = 0; i < given.added.n && rc == 0; i++)
        rc = change_parse_added(a, given.added.words[i].at, out++, e);
    return rc;
}

/* The site, and as it would be. */
static int make_pair(struct whatif_past *s, struct whatif *w, struct err *e)
{
    const int n = given.removed.n + given.added.n;
    struct fleet_change *changes = ARENA_ARRAY(s->arena, struct fleet_change, (size_t)n);
    struct cluster *after = ARENA_NEW(s->arena, struct cluster);
    int rc = parse_changes(s->arena, changes, e);

    if (rc == 0)
        rc = change_apply(s->arena, &s->cluster, changes, n, after, e);
    if (rc == 0)
        rc = change_settings(&after->settings, e);
    w->n_variants = 2;
    w->variants[1] = (struct whatif_variant){ .cluster = after, .policy = policy_of(s->arena, 1) };
    return rc;
}

/* The site, and without each of its types. */
static int make_retired(struct whatif_past *s, struct whatif *w, struct err *e)
{
    int rc = change_settings(&s->cluster.settings, e);

    w->n_variants = 1;
    for (int t = 0; t < s->cluster.n_types && rc == 0; t++) {
        const struct fleet_change without = { .type = s->cluster.types[t].name };
        struct cluster *left = ARENA_NEW(s->arena, struct cluster);

        if (change_count(&s->cluster, t) == 0)
            continue;
        rc = change_apply(s->arena, &s->cluster, &without, 1, left, e);
        w->variants[w->n_variants++] =
            (struct whatif_variant){ .cluster = left,
                                     .policy = policy_of(s->arena, 0),
                                     .type = without.type,
                                     .count = change_count(&s->cluster, t) };
    }
    if (rc == 0)
        return 0;
    return s->cluster.n_types > 1
               ? rc
               : err_set(e, EINVAL, "the site has one GPU type: there is none to retire");
}

static int make_variants(struct whatif_past *s, struct whatif *w, struct err *e)
{
    const struct cluster *all[CATALOG_TYPES_MAX + 2];
    struct solver unused;

    w->variants = ARENA_ARRAY(s->arena, struct whatif_variant, (size_t)s->cluster.n_types + 2);
    w->variants[0] =
        (struct whatif_variant){ .cluster = &s->cluster, .policy = policy_of(s->arena, 0) };
    int rc = given.is_retire ? make_retired(s, w, e) : make_pair(s, w, e);
    for (int v = 0; v < w->n_variants && rc == 0; v++) {
        all[v] = w->variants[v].cluster;
        rc = solver_by_name(w->variants[v].policy, 0, &unused, e);
    }
    if (rc == 0)
        change_unite(s->arena, all, w->n_variants, &s->types);
    return rc;
}

/* ---- running ---- */

/* Shorter ones say nothing about a year. */
#define PERIOD_LEAST_S 600

static int choose_period(const struct whatif_past *s, struct whatif *w, struct err *e)
{
    const double told_s = whatif_period_s(&s->trace);

    w->period_s = told_s;
    if (given.period != NULL && when_duration(given.period, &w->period_s, e) < 0)
        return err_prefix(e, "--period");
    if (w->period_s < told_s && s->trace.jobs[s->trace.n_jobs - 1].at_s >= w->period_s)
        return err_set(e, EINVAL, "--period %s: jobs arrived for longer than that, %.3g days",
                       given.period, told_s / 86400);
    if (w->period_s < PERIOD_LEAST_S)
        return err_set(e, EINVAL,
                       "%d jobs that came within %.0f s do not tell what a year is like: say how "
                       "long a time they are of, with --period",
                       s->trace.n_jobs, w->period_s);
    return 0;
}

/* Where nothing finishes, no type is better to retire than another. */
static int check_finishes(const struct whatif *w, struct err *e)
{
    const double cap_w = w->variants[0].cluster->settings.power_cap_w;

    if (!isnan(whatif_spread(w, &w->variants[0], WHATIF_MEAN_JCT).mean))
        return 0;
    return cap_w > 0 ? err_set(e, EINVAL,
                               "under a power cap of %g W the site as it is finishes no job: say "
                               "a higher one, with --power-cap; empty GPUs count as idle",
                               cap_w)
                     : err_set(e, EINVAL,
                               "the site as it is finishes no job, so no type is better to retire "
                               "than another: try another --policy");
}

static int answer(struct whatif_past *s, struct err *e)
{
    struct whatif w = { .first_seed = (uint64_t)given.first_seed, .n_seeds = (int)given.n_seeds };
    int rc = choose_period(s, &w, e);

    s->cluster.settings.delay_w = study_delay_w(&s->cluster);    // other GPUs are no other price
    if (rc == 0)
        rc = make_variants(s, &w, e);
    if (rc == 0)
        rc = past_begin(s, &w, e);
    w.delay_w = study_delay_w(&s->cluster);
    if (rc == 0)
        rc = whatif_run(s->arena, &w, e);
    if (rc == 0 && given.is_retire)
        rc = check_finishes(&w, e);
    past_end(s);
    if (rc < 0)
        return rc;
    if (given.is_retire)
        whatif_sort(&w);
    if (given.is_json)
        whatif_print_json(s, &w);
    else
        whatif_print_page(s, &w);
    return 0;
}

static int run(const struct cmd_call *call, struct err *e)
{
    nn_init();
    return past_read(call->arena, &given, answer, e);
}

const struct cmd cmd_whatif = {
    .name = "whatif",
    .synopsis = "whatif (--trace FILE | --sacct FILE | --record FILE | --db DB) [--cluster FILE] "
                "[--remove TYPE[:N]] [--add NxTYPE[@SIZE]] [--retire] [--json]",
    .summary = "a site's own jobs on other GPUs; what to retire",
    .help = help,
    CMD_OPTIONS(options),
    .check = check,
    .run = run,
};
