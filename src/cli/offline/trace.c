/* trace.c - `gogh trace`: make traces by chance, or from other people's. */
#include "cli/cmd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/file.h"
#include "catalog/cluster/cluster.h"
#include "sim/ground.h"
#include "sim/trace/trace.h"
#include "sim/trace/generate.h"
#include "sim/trace/import.h"

static const char help[] =
    "Make traces for `gogh simulate` (docs/formats/trace.md).\n"
    "\n"
    "  trace generate --cluster FILE     Poisson arrivals of drawn jobs\n"
    "      --jobs N                         how many; 100\n"
    "      --load L                         offered work over the cluster's capacity; 0.6\n"
    "      --rate R                         or: jobs per hour\n"
    "      --inference F, --gangs F         shares of servers and of jobs on 2 or 4 GPUs; 0\n"
    "  trace import gavel FILE           Gavel's traces (--member M inside a tar)\n"
    "  trace import philly FILE          Microsoft's Philly, timestamp,duration,num_gpus,...\n"
    "  trace import alibaba FILE         Alibaba's openb pod list\n"
    "  trace import alibaba-nodes FILE   Alibaba's openb node list, as a cluster file\n"
    "      --jobs N                         only the first N to arrive\n"
    "\n"
    "  --truth DB        draw workloads and speeds from the store's measurements; without\n"
    "                    it from the built-in models\n"
    "  --reference TYPE  the GPU that work and promises are drawn in; p100\n"
    "  --seed N          of the draws; 1\n"
    "  --out FILE        write there instead of standard output\n"
    "\n"
    "Examples:\n"
    "  gogh trace generate --cluster docs/examples/reference.cluster --truth gavel.db \\\n"
    "      --jobs 1000 --load 0.6 --seed 11 --out r.trace\n"
    "  gogh trace import gavel traces.tar.gz --member traces/msr/seed=0/0e4a51.trace\n";

static struct options {
    const char *verb, *kind, *input;
    const char *cluster, *truth, *reference, *member, *out;
    long n_jobs, seed;
    double load, rate, inference, gangs;
} given = { .seed = 1 };

static const struct cmd_option options[] = {
    CMD_TEXT("cluster", given.cluster),
    CMD_TEXT("truth", given.truth),
    CMD_TEXT("reference", given.reference),
    CMD_TEXT("member", given.member),
    CMD_TEXT("out", given.out),
    CMD_WHOLE("jobs", given.n_jobs, 1, 1e7),
    CMD_WHOLE("seed", given.seed, 0, CMD_SEED_MAX),
    CMD_NUMBER("load", given.load, 1e-3, 100),
    CMD_NUMBER("rate", given.rate, 1e-6, 1e9),
    CMD_NUMBER("inference", given.inference, 0, 1),
    CMD_NUMBER("gangs", given.gangs, 0, 1),
};

static const struct trace_kind {
    const char *name;
    int (*read)(struct arena *a, struct trace_import *in, struct trace *out, struct err *e);
} kinds[] = {
    { "gavel", trace_import_gavel },
    { "philly", trace_import_philly },
    { "alibaba", trace_import_alibaba },
    { "alibaba-nodes", NULL },    // is no trace but a cluster
};

static const struct trace_kind *kind;    // of an import; NULL: there is no such

static int check_generate(const struct options *o)
{
    if (o->kind[0] != '\0')
        return cmd_misuse(&cmd_trace, "unexpected argument '%s'", o->kind);
    if (o->cluster == NULL)
        return cmd_misuse(&cmd_trace, "say for which cluster: --cluster FILE");
    if (o->load > 0 && o->rate > 0)
        return cmd_misuse(&cmd_trace, "--load and --rate exclude each other");
    if (o->member != NULL)
        return cmd_misuse(&cmd_trace, "--member is for 'trace import'");
    return 0;
}

static int check_import(const struct options *o)
{
    for (int i = 0; i < CMD_COUNT(kinds); i++)
        kind = strcmp(o->kind, kinds[i].name) == 0 ? &kinds[i] : kind;
    if (!kind)
        return cmd_misuse(&cmd_trace,
                          "cannot import '%s': want gavel, philly, alibaba or "
                          "alibaba-nodes",
                          o->kind);
    if (o->input == NULL)
        return cmd_misuse(&cmd_trace, "say which file to import");
    if (o->load > 0 || o->rate > 0 || o->inference > 0 || o->gangs > 0)
        return cmd_misuse(&cmd_trace, "--load, --rate, --inference, --gangs are for 'generate'");
    return 0;
}

static int check(const struct cmd_call *call)
{
    struct options *o = &given;

    o->verb = call->words[0] != NULL ? call->words[0] : "";
    o->kind = call->words[0] != NULL && call->words[1] != NULL ? call->words[1] : "";
    o->input = call->words[2];
    if (strcmp(o->verb, "generate") == 0)
        return check_generate(o);
    if (strcmp(o->verb, "import") == 0)
        return check_import(o);
    return cmd_misuse(call->cmd, "cannot do '%s': want generate or import", o->verb);
}

/* ---- output ---- */

#define OUT_MAX ((size_t)1 << 31)

static int put_trace(const struct options *o, const struct trace *t, const char *origin,
                     struct err *e)
{
    struct buf b;
    int rc = 0;

    buf_init(&b, OUT_MAX);
    if (buf_printf(&b, "# %s, seed %ld\n", origin, o->seed) < 0 || trace_write(t, &b) < 0)
        rc = err_set(e, EFBIG, "the trace has more than %zu bytes: ask for fewer with --jobs",
                     OUT_MAX);
    return cmd_write(o->out, &b, rc, e);
}

/* ---- generate and import ---- */

static int open_ground(const struct options *o, const struct cluster *cl, struct ground *g,
                       struct err *e)
{
    if (o->truth != NULL)
        return ground_open(g, o->truth, cl, NULL, e);
    return ground_builtin(g, cl, NULL, o->reference != NULL ? o->reference : "p100",
                          (uint64_t)o->seed, e);
}

static int generate(const struct options *o, struct arena *a, struct err *e)
{
    const struct trace_generate how = {
        .n_jobs = o->n_jobs > 0 ? (int)o->n_jobs : 100,
        .load = o->load > 0 ? o->load : 0.6,
        .rate_per_h = o->rate,
        .inference = o->inference,
        .gangs = o->gangs,
        .seed = (uint64_t)o->seed,
    };
    struct trace_draw draw;
    struct cluster cl;
    struct ground g;
    struct trace t;
    if (cmd_cluster(a, o->cluster, &cl, e) < 0 || open_ground(o, &cl, &g, e) < 0)
        return -e->code;
    int rc = trace_draw_init(&draw, a, &g.truth, &cl, o->reference, how.seed, e);
    if (rc == 0)
        rc = trace_generate(a, &how, &draw, &cl, &t, e);
    if (rc == 0)
        rc = put_trace(o, &t, "gogh trace generate", e);
    ground_close(&g);
    return rc;
}

static int import_nodes(const struct options *o, struct arena *a, const char *text, size_t len,
                        struct err *e)
{
    struct buf b;

    buf_init(&b, OUT_MAX);
    return cmd_write(o->out, &b, cluster_import_alibaba(a, o->input, text, len, &b, e), e);
}

/* Gavel's traces say what runs, so they need no truth; with one, jobs get promises. */
static int import_with_draw(const struct options *o, struct arena *a, struct trace_import in,
                            struct err *e)
{
    const bool needs_draw = o->truth != NULL || kind->read != trace_import_gavel;
    struct trace_draw draw;
    struct ground g = { 0 };
    struct trace t;
    int rc = 0;

    if (needs_draw) {
        if (open_ground(o, NULL, &g, e) < 0)
            return -e->code;
        rc = trace_draw_init(&draw, a, &g.truth, NULL, o->reference, (uint64_t)o->seed, e);
        in.draw = &draw;
    }
    if (rc == 0)
        rc = kind->read(a, &in, &t, e);
    if (rc == 0 && in.n_skipped > 0)
        fprintf(stderr, "gogh: %s: left out %d rows without a GPU or a duration\n", o->input,
                in.n_skipped);
    if (rc == 0)
        rc = put_trace(o, &t, "gogh trace import", e);
    if (needs_draw)
        ground_close(&g);
    return rc;
}

static int import(const struct options *o, struct arena *a, struct err *e)
{
    struct trace_import in = { .name = o->input, .n_jobs = (int)o->n_jobs };
    int rc = file_read_text(a, o->input, o->member, (size_t)1 << 30, &in.text, &in.len, e);

    if (rc < 0)
        return rc;
    return kind->read ? import_with_draw(o, a, in, e) : import_nodes(o, a, in.text, in.len, e);
}

static int run(const struct cmd_call *call, struct err *e)
{
    return strcmp(given.verb, "generate") == 0 ? generate(&given, call->arena, e)
                                               : import(&given, call->arena, e);
}

const struct cmd cmd_trace = {
    .name = "trace",
    .synopsis = "trace generate --cluster FILE [--jobs N] [--load L | --rate R] [--out FILE] | "
                "trace import gavel|philly|alibaba|alibaba-nodes FILE [--out FILE]",
    .summary = "make traces by chance, or from published ones",
    .help = help,
    CMD_OPTIONS(options),
    .max_words = 3,
    .check = check,
    .run = run,
};
