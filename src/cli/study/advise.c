/* advise.c - `gogh advise`: what GOGH would have saved on a site's own history. */
#include "cli/cmd.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text/file.h"
#include "cli/study/advise.h"
#include "cli/table.h"
#include "nn/gp.h"
#include "optimize/model/options.h"
#include "sim/ground.h"

static const char help[] =
    "What GOGH would have saved on a site's own history: the jobs that Slurm's accounting tells "
    "of,\n"
    "as they ran, and once more under GOGH, in a simulated cluster. Nothing is asked of Slurm.\n"
    "\n"
    "  --sacct FILE      the output of sacct --parsable2 (docs/formats/sacct.md says which "
    "fields);\n"
    "                    may be compressed\n"
    "  --cluster FILE    the site's nodes and GPUs (docs/formats/cluster.md)\n"
    "  --partition NAME  only jobs of this partition\n"
    "  --workload NAME   what a job ran of which neither comment nor name tells; ResNet-50\n"
    "  --truth DB        the site's measurements as ground truth; without it the built-in tables\n"
    "                    are, off by hidden factors drawn from the seed\n"
    "  --seed N          chance; 1\n"
    "  --seeds N         as many worlds, from that seed on, and the spread over them; 3\n"
    "  --tolerance F     who was promised nothing is promised the speed it had, divided by this;\n"
    "                    1.1\n"
    "  --from T, --to T  cut off what ran before and after: 2026-03-01 or 2026-03-01T12:00:00, by\n"
    "                    the site's clock\n"
    "  --days N          only the last N days\n"
    "  --shards N        shards that a GPU has; 2\n"
    "  --keep-types      jobs may only run on the types of GPU they had\n"
    "  --site-sleeps     the site's idle GPUs sleep already\n"
    "  --no-levers       do not try GOGH without sharing and without sleep: in a third of the "
    "time\n"
    "  --price P         of a kWh, in whatever money\n"
    "  --co2 G           grams a kWh\n"
    "  --json            as JSON (docs/advise.md tells the keys)\n"
    "\n"
    "Examples:\n"
    "  f=JobIDRaw,JobID,JobName,User,Partition,State,Submit,Eligible,Start,End,ElapsedRaw\n"
    "  f=$f,AllocTRES,ReqTRES,NodeList,Comment,AdminComment\n"
    "  sacct --allusers --parsable2 --starttime 2026-03-01 --format $f > march.sacct\n"
    "  gogh advise --sacct march.sacct --cluster site.cluster --price 0.30 --co2 380\n"
    "  gogh advise --sacct march.sacct --cluster site.cluster --partition gpu --days 7 --json\n";

#define FILE_MAX ((size_t)1 << 30)
#define PARTITIONS_MAX 16    // that are named where none was asked for

/* Levers that GOGH does without. */
static const unsigned without[ROWS] = {
    [NO_SHARING] = 1U << LEVER_SHARING, [NO_SLEEP] = 1U << LEVER_SLEEP
};

static struct advise_options given = { .workload = HISTORY_WORKLOAD,
                                       .seed = 1,
                                       .n_seeds = 3,
                                       .shards = HISTORY_SHARDS,
                                       .tolerance = HISTORY_TOLERANCE,
                                       .days = NAN,
                                       .price = NAN,
                                       .co2_g = NAN };

static const struct cmd_option options[] = {
    CMD_TEXT("sacct", given.sacct),
    CMD_TEXT("cluster", given.cluster),
    CMD_TEXT("partition", given.partition),
    CMD_TEXT("workload", given.workload),
    CMD_TEXT("truth", given.truth),
    CMD_WHOLE("seed", given.seed, 0, CMD_SEED_MAX),
    CMD_WHOLE("seeds", given.n_seeds, 1, ADVISE_SEEDS_MAX),
    CMD_NUMBER("tolerance", given.tolerance, 1, 100),
    CMD_TEXT("from", given.from),
    CMD_TEXT("to", given.to),
    CMD_NUMBER("days", given.days, 0.01, 1e5),
    CMD_WHOLE("shards", given.shards, 1, 1000),
    CMD_FLAG("keep-types", given.keeps_types),
    CMD_FLAG("site-sleeps", given.site_sleeps),
    CMD_FLAG("no-levers", given.has_no_levers),
    CMD_NUMBER("price", given.price, 0, 1e6),
    CMD_NUMBER("co2", given.co2_g, 0, 1e5),
    CMD_FLAG("json", given.is_json),
};

static int check(const struct cmd_call *call)
{
    if (given.sacct == NULL)
        return cmd_misuse(call->cmd, "say what ran: --sacct FILE, made with '%s'", SACCT_COMMAND);
    if (given.cluster == NULL)
        return cmd_misuse(call->cmd, "say where it ran: --cluster FILE");
    if (!isnan(given.days) && (given.from != NULL || given.to != NULL))
        return cmd_misuse(call->cmd, "--days counts from the end: leave out --from and --to");
    return 0;
}

/* ---- the history ---- */

/* "2026-03-01" or with a time, by the site's clock. */
static int parse_when(struct arena *a, const char *option, const char *text, double *out,
                      struct err *e)
{
    const char *full = strlen(text) == 10 ? arena_printf(a, "%sT00:00:00", text) : text;

    if (strlen(full) == 19 && sacct_time(slice_of(full), out) == 0 && !isnan(*out))
        return 0;
    return err_set(e, EINVAL, "%s %s: want 2026-03-01 or 2026-03-01T12:00:00", option, text);
}

static int choose_window(struct advice *v, struct history_options *h, struct err *e)
{
    const struct advise_options *o = v->options;
    double last_s = -INFINITY;
    int rc = 0;

    h->from_s = -INFINITY;
    h->to_s = INFINITY;
    for (int i = 0; i < v->sacct.n_jobs; i++)
        last_s = fmax(last_s, v->sacct.jobs[i].start_s + v->sacct.jobs[i].elapsed_s);
    if (!isnan(o->days))
        h->from_s = last_s - o->days * 86400;
    if (o->from != NULL)
        rc = parse_when(v->arena, "--from", o->from, &h->from_s, e);
    if (rc == 0 && o->to != NULL)
        rc = parse_when(v->arena, "--to", o->to, &h->to_s, e);
    if (rc == 0 && h->to_s <= h->from_s)
        rc = err_set(e, EINVAL, "--to %s is not after --from %s", o->to, o->from);
    return rc;
}

/* Partitions that have runs on GPUs, "gpu, big", of a file in which the one asked for has none. */
static const char *partitions_of(struct arena *a, const struct sacct *s)
{
    const char *names[PARTITIONS_MAX], *list = "";
    int n = 0;

    for (int i = 0; i < s->n_jobs && n < PARTITIONS_MAX; i++) {
        const char *one = s->jobs[i].partition;
        int k = 0;

        while (k < n && strcmp(names[k], one) != 0)
            k++;
        if (k < n || one[0] == '\0')
            continue;
        names[n++] = one;
        list = arena_printf(a, "%s%s%s", list, n > 1 ? ", " : "", cell_clean(a, one));
    }
    return list;
}

/* Nothing ran where --partition says: where it did. 0: that is not why. */
static int miss_partition(struct advice *v, const char *text, size_t len, struct err *e)
{
    const struct advise_options *o = v->options;
    struct sacct all;
    struct err other = { 0 };

    if (o->partition == NULL || v->sacct.n_elsewhere == 0 ||
        sacct_parse(v->arena, o->sacct, text, len, NULL, &all, &other) < 0 || all.n_jobs == 0)
        return 0;
    return err_set(e, ENOENT, "%s: no run on GPUs in partition '%s'; there are runs in %s",
                   o->sacct, o->partition, partitions_of(v->arena, &all));
}

static int read_sacct(struct advice *v, struct err *e)
{
    const struct advise_options *o = v->options;
    const struct sacct *s = &v->sacct;
    const char *text;
    size_t len;
    int rc = file_read(v->arena, o->sacct, NULL, FILE_MAX, &text, &len, e);

    if (rc == 0)
        rc = sacct_parse(v->arena, o->sacct, text, len, o->partition, &v->sacct, e);
    if (rc < 0 || s->n_jobs > 0)
        return rc;
    if (miss_partition(v, text, len, e) < 0)
        return -ENOENT;
    if (s->n_refused > 0)
        return err_set(e, ENOENT,
                       "%s: no run on GPUs in %d lines; %d were not understood, line %d first: %s",
                       o->sacct, s->n_lines, s->n_refused, s->refused_line, s->refused_why);
    return err_set(
        e, ENOENT,
        "%s: no run on GPUs in %d lines (%d steps, %d of other partitions, %d never ran, %d "
        "without a GPU): does AccountingStorageTRES in slurm.conf name gres/gpu?",
        o->sacct, s->n_lines, s->n_steps, s->n_elsewhere, s->n_unstarted, s->n_cpu);
}

int advise_read(struct advice *v, struct err *e)
{
    const struct advise_options *o = v->options;
    struct history_options h = { .shards = (int)o->shards, .keeps_types = o->keeps_types };
    int rc = cmd_cluster(v->arena, o->cluster, &v->cluster, e);

    if (rc < 0)
        return rc;
    h.workload = history_workload(v->arena, &v->cluster, o->workload, NAN);
    if (h.workload == NULL)
        return err_set(e, EINVAL,
                       "--workload %s: neither built in ('gogh catalog models') nor described by a "
                       "'workload' line of %s",
                       o->workload, o->cluster);
    rc = read_sacct(v, e);
    if (rc == 0)
        rc = choose_window(v, &h, e);
    if (rc == 0)
        rc = history_make(v->arena, &v->sacct, &v->cluster, &h, &v->history, e);
    return rc;
}

/* ---- the runs ---- */

/* Job runs a second, 10,000 jobs on 100 GPUs, one core (docs/advise.md has the measurement). */
#define RUNS_PER_S 225
#define PATIENCE_S 120

static int n_tries(const struct advise_options *o)
{
    return (int)o->n_seeds * (o->has_no_levers ? 1 : 3);
}

/* Who will wait long is told what to do about it. */
static void warn_of_time(const struct advice *v)
{
    double s = (double)v->history.n_jobs * n_tries(v->options) / RUNS_PER_S;

    if (s > PATIENCE_S)
        fprintf(stderr,
                "gogh: %d jobs, %d times: this may take some %.0f minutes or more; --days 7, "
                "--seeds 1 or --no-levers take less\n",
                v->history.n_jobs, n_tries(v->options), s / 60);
}

static void on_step(void *self, int n_ended)
{
    struct advice *v = self;
    int n = v->history.n_jobs;

    progress_step(&v->progress, (double)v->n_runs_done * n + n_ended,
                  (double)n_tries(v->options) * n);
}

int advise_open_ground(const struct advice *v, const struct cluster *cl, uint64_t seed,
                       struct ground *g, struct err *e)
{
    const struct advise_options *o = v->options;
    struct trace all = v->history.trace;
    const struct trace_job *jobs = all.jobs;

    /* Also what jobs may have to be taken for. */
    all.jobs = ARENA_ARRAY(v->arena, struct trace_job, (size_t)all.n_jobs + 1);
    memcpy(all.jobs, jobs, (size_t)all.n_jobs * sizeof *jobs);
    all.jobs[all.n_jobs++] =
        (struct trace_job){ .name = "--workload", .workload = v->history.options.workload };
    return o->truth != NULL ? ground_open(g, o->truth, cl, &all, e)
                            : ground_builtin(g, cl, &all, NULL, seed, e);
}

static int try_policies(struct advice *v, const struct truth *t, uint64_t seed,
                        struct history_figures *out, struct err *e)
{
    int rc = 0;

    for (int r = GOGH; r < ROWS && rc == 0; r++) {
        const struct history_simulate how = { .truth = t,
                                              .seed = seed,
                                              .tolerance = v->options->tolerance,
                                              .without = without[r],
                                              .on_step = v->progress.is_shown ? on_step : NULL,
                                              .self = v };

        if (!advise_has(v->options, (enum advise_row)r))
            continue;
        rc = history_simulate(&v->history, &how, &out[r], e);
        v->n_runs_done++;
    }
    return rc;
}

static int try_seed(struct advice *v, int i, struct err *e)
{
    const uint64_t seed = (uint64_t)v->options->seed + (uint64_t)i;
    const double tolerance = v->options->tolerance;
    struct history_figures *out = v->figures[i];
    struct ground g;
    int rc = advise_open_ground(v, &v->cluster, seed, &g, e);

    if (rc < 0)
        return rc;
    if (i == 0) {
        rc = history_fit(&v->history, &g.truth, e);
        if (rc == 0)
            warn_of_time(v);
    }
    if (rc == 0) {
        history_play(v->arena, &v->history, &g.truth, tolerance, true, &out[WAS_ASLEEP]);
        history_play(v->arena, &v->history, &g.truth, tolerance, false, &out[WAS]);
        rc = try_policies(v, &g.truth, seed, out, e);
    }
    ground_close(&g);
    return rc;
}

/* ---- running ---- */

static int run(const struct cmd_call *call, struct err *e)
{
    struct advice *v = ARENA_ARRAY(call->arena, struct advice, 1);

    v->options = &given;
    v->arena = call->arena;
    nn_init();
    int rc = advise_read(v, e);
    progress_begin(&v->progress, "simulating", false);
    for (int i = 0; i < given.n_seeds && rc == 0; i++)
        rc = try_seed(v, i, e);
    progress_end(&v->progress);
    if (rc == 0 && given.is_json)
        advise_print_json(v);
    else if (rc == 0)
        advise_print_page(v);
    return rc;
}

const struct cmd cmd_advise = {
    .name = "advise",
    .synopsis = "advise --sacct FILE --cluster FILE [--partition NAME] [--workload NAME] [--json]",
    .summary = "what would have been saved on a Slurm site's history",
    .help = help,
    CMD_OPTIONS(options),
    .check = check,
    .run = run,
};
