/* bench.c - `gogh bench`: how fast, how much memory; ranges, not vibes. */
#include "bench/bench.h"

#include <string.h>

#include "cli/cmd.h"

static const char help[] =
    "Measure this build on this machine. Each figure is the median of several runs with the\n"
    "smallest and the largest beside it, and the limit it should stay within.\n"
    "\n"
    "  import     Gavel's 1.2 MB of throughputs into an empty store\n"
    "  open       a store of 1,000,000 measurements opened, and a snapshot made\n"
    "  events     the simulator with a trivial policy\n"
    "  simulate   100,000 jobs on 1,000 GPUs to the end with greedy\n"
    "  estimate   all pairs of 200 workloads on 8 GPU types, after one more measurement; with it\n"
    "             run 'estimate-update', a measurement and all cells of one workload, both\n"
    "             also at a 'young' site with 100 pairs measured, and 'estimate-train',\n"
    "             learning from Gavel's measurements\n"
    "  sharing    what it is worth to know how a site shares its GPUs: errors of slowdowns told so\n"
    "             over not told, before anything was read, with 'sharing-known' five pairs, and\n"
    "             with 'sharing-slices' of MIG\n"
    "  services   tables of services' capacity: made, read ('services-lookup'), and held against\n"
    "             hours that were held out ('services-too-high', 'services-share',\n"
    "             'services-azure')\n"
    "  study      1,000 jobs on 108 GPUs with gogh and power limits; with it runs\n"
    "             'study-alibaba', all pods of a cluster of 6,212 GPUs\n"
    "\n"
    "Without names all of these run. 'import', 'estimate-train', 'services-azure' and 'study'\n"
    "need measured data: the directory $GOGH_DATA, or ../shared/data seen from where you are\n"
    "(docs/formats/study.md#data); without it they are skipped and say so.\n"
    "\n"
    "  optimize   the planner: how near the optimum, how fast, in how much memory; alone on the\n"
    "             line, because it takes up to an hour\n"
    "  serve      the daemon: submits, listing, reports, restart and memory of real goghd\n"
    "             processes ($GOGHD, or beside gogh), and Slurm where it answers; alone, too\n"
    "\n"
    "  --runs N   repetitions (5; 'simulate' runs once unless N is given)\n"
    "  --rows R   parts of 'optimize', with commas between: small30, small100, 500, 10000,\n"
    "             changed, 50000, 1000kinds, three, overload; events; growth; references, or\n"
    "             single ones: per-gpu, gavel, pop, greedy. Parts of 'serve': submit, list,\n"
    "             reports, restart, memory, arrivals, slurm\n"
    "  --seeds N  instances of each row of 'optimize' (30, 13, 3 or 1)\n"
    "  --scale N  rows of 'optimize', or 'serve', with the Nth part of everything, to see that\n"
    "             it works; goals and limits are of the whole\n"
    "  --prove    rows of 'optimize' with at most 1,000 jobs are compared with what the exact\n"
    "             method finds in 60 s, too\n"
    "  --json     one JSON object\n"
    "\n"
    "Examples:\n"
    "  gogh bench\n"
    "  gogh bench events open --runs 9 --json\n"
    "  gogh bench estimate\n"
    "  gogh bench optimize --rows small30,500 --seeds 5\n"
    "  gogh bench serve --rows submit,restart\n";

#define NAMES_MAX 10    // as many as there are

static struct bench_options given;

static const struct cmd_option options[] = {
    CMD_WHOLE("runs", given.runs, 1, 1000),    CMD_TEXT("rows", given.names),
    CMD_WHOLE("seeds", given.seeds, 1, 10000), CMD_WHOLE("scale", given.scale, 1, 10000),
    CMD_FLAG("prove", given.is_proving),       CMD_FLAG("json", given.is_json),
};

static int check_names(const struct cmd_call *call)
{
    for (const char **name = call->words; *name; name++)
        if (!bench_knows(*name))
            return cmd_misuse(
                call->cmd,
                "no bench '%s': want import, open, events, simulate, estimate, sharing, services, "
                "study "
                "or, alone, optimize or serve",
                *name);
    return 0;
}

/* Parts of 'optimize' or 'serve', with commas between. */
static bool are_parts(const char *names, bool (*knows)(struct slice part))
{
    for (const char *at = names; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (!knows((struct slice){ at, strcspn(at, ",") }))
            return false;
    return true;
}

static int check(const struct cmd_call *call)
{
    const bool is_optimize = cmd_is(call->words[0], "optimize"),
               is_serve = cmd_is(call->words[0], "serve");

    if ((is_optimize || is_serve) && call->words[1])
        return cmd_misuse(call->cmd, "'%s' stands alone", call->words[0]);
    if (is_optimize && given.runs > 0)
        return cmd_misuse(call->cmd, "'optimize' has --rows and --seeds, not --runs");
    if ((given.seeds > 0 || given.is_proving) && !is_optimize)
        return cmd_misuse(call->cmd, "--seeds and --prove are for 'optimize'");
    if (given.scale > 0 && !is_serve && !is_optimize)
        return cmd_misuse(call->cmd, "--scale is for 'optimize' and 'serve'");
    if (given.names && !is_optimize && !is_serve)
        return cmd_misuse(call->cmd, "--rows is for 'optimize' and 'serve'");
    if (!are_parts(given.names, is_serve ? bench_serve_knows : bench_optimize_knows))
        return cmd_misuse(call->cmd, "'%s' names a row that is none", given.names);
    return is_optimize || is_serve ? 0 : check_names(call);
}

static int run(const struct cmd_call *call, struct err *e)
{
    given.scale = given.scale > 0 ? given.scale : 1;
    if (cmd_is(call->words[0], "optimize"))
        return bench_optimize(&given, e);
    if (cmd_is(call->words[0], "serve"))
        return bench_serve(&given, e);
    return bench_run(call->words, &given, e);
}

const struct cmd cmd_bench = {
    .name = "bench",
    .synopsis =
        "bench [import|open|events|simulate|sharing|estimate|services|study ...] [--runs N] "
        "[--json] | bench optimize [--rows NAMES] [--seeds N] [--scale N] [--prove] [--json] | "
        "bench serve [--rows NAMES] [--runs N] [--scale N] [--json]",
    .summary = "measure this build on this machine",
    .help = help,
    CMD_OPTIONS(options),
    .max_words = NAMES_MAX,
    .check = check,
    .run = run,
};
