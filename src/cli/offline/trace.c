/* cmd_trace.c - `gogh trace`: make traces by chance, or from other people's. */
#include "cli/cmd.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/file.h"
#include "base/text/text.h"
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

struct options {
    const char *verb, *kind, *input;
    const char *cluster, *truth, *reference, *member, *out;
    long n_jobs, seed;
    double load, rate, inference, gangs;
};

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
    return CMD_GO_ON;
}

static int check_import(const struct options *o)
{
    static const char *const kinds[] = { "gavel", "philly", "alibaba", "alibaba-nodes" };
    bool is_known = false;

    for (int i = 0; i < 4; i++)
        is_known |= strcmp(o->kind, kinds[i]) == 0;
    if (!is_known)
        return cmd_misuse(&cmd_trace,
                          "cannot import '%s': want gavel, philly, alibaba or "
                          "alibaba-nodes",
                          o->kind);
    if (o->input == NULL)
        return cmd_misuse(&cmd_trace, "say which file to import");
    if (o->load > 0 || o->rate > 0 || o->inference > 0 || o->gangs > 0)
        return cmd_misuse(&cmd_trace, "--load, --rate, --inference, --gangs are for 'generate'");
    return CMD_GO_ON;
}

static int parse_options(int argc, char **argv, struct options *o)
{
    const struct cmd_option options[] = {
        { .name = "cluster", .kind = OPTION_TEXT, .out = &o->cluster },
        { .name = "truth", .kind = OPTION_TEXT, .out = &o->truth },
        { .name = "reference", .kind = OPTION_TEXT, .out = &o->reference },
        { .name = "member", .kind = OPTION_TEXT, .out = &o->member },
        { .name = "out", .kind = OPTION_TEXT, .out = &o->out },
        { .name = "jobs", .kind = OPTION_WHOLE, .out = &o->n_jobs, .low = 1, .high = 1e7 },
        { .name = "seed", .kind = OPTION_WHOLE, .out = &o->seed, .high = CMD_SEED_MAX },
        { .name = "load", .kind = OPTION_NUMBER, .out = &o->load, .low = 1e-3, .high = 100 },
        { .name = "rate", .kind = OPTION_NUMBER, .out = &o->rate, .low = 1e-6, .high = 1e9 },
        { .name = "inference", .kind = OPTION_NUMBER, .out = &o->inference, .high = 1 },
        { .name = "gangs", .kind = OPTION_NUMBER, .out = &o->gangs, .high = 1 },
    };
    const char *words[3];

    *o = (struct options){ .seed = 1 };
    int status = cmd_parse(&cmd_trace, argc, argv, options, CMD_COUNT(options), words, 3);
    if (status != CMD_GO_ON)
        return status;
    o->verb = words[0] != NULL ? words[0] : "";
    o->kind = words[1] != NULL ? words[1] : "";
    o->input = words[2];
    if (strcmp(o->verb, "generate") == 0)
        return check_generate(o);
    if (strcmp(o->verb, "import") == 0)
        return check_import(o);
    return cmd_misuse(&cmd_trace, "cannot do '%s': want generate or import", o->verb);
}

/* ---- output ---- */

#define OUT_MAX ((size_t)1 << 31)

static int put_out(const struct options *o, const struct buf *b, struct err *e)
{
    if (o->out != NULL)
        return file_write(o->out, buf_text(b), b->len, e) < 0 ? cmd_fail(e) : EXIT_DONE;
    fwrite(buf_text(b), 1, b->len, stdout);
    return cmd_done();
}

static int put_trace(const struct options *o, const struct trace *t, const char *origin,
                     struct err *e)
{
    struct buf b;
    int status;

    buf_init(&b, OUT_MAX);
    if (buf_printf(&b, "# %s, seed %ld\n", origin, o->seed) < 0 || trace_write(t, &b) < 0) {
        err_set(e, EFBIG, "the trace has more than %zu bytes: ask for fewer with --jobs", OUT_MAX);
        status = cmd_fail(e);
    } else {
        status = put_out(o, &b, e);
    }
    buf_release(&b);
    return status;
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
    int rc, status;

    if (cluster_read(a, o->cluster, &cl, e) < 0 || open_ground(o, &cl, &g, e) < 0)
        return cmd_fail(e);
    rc = trace_draw_init(&draw, a, &g.truth, &cl, o->reference, how.seed, e);
    if (rc == 0)
        rc = trace_generate(a, &how, &draw, &cl, &t, e);
    status = rc == 0 ? put_trace(o, &t, "gogh trace generate", e) : cmd_fail(e);
    ground_close(&g);
    return status;
}

static int import_nodes(const struct options *o, struct arena *a, const char *text, size_t len,
                        struct err *e)
{
    struct buf b;
    int status;

    buf_init(&b, OUT_MAX);
    if (cluster_import_alibaba(a, o->input, text, len, &b, e) < 0)
        status = cmd_fail(e);
    else
        status = put_out(o, &b, e);
    buf_release(&b);
    return status;
}

static int import_jobs(const struct options *o, struct arena *a, struct trace_import *in,
                       struct trace *t, struct err *e)
{
    if (strcmp(o->kind, "gavel") == 0)
        return trace_import_gavel(a, in, t, e);
    if (strcmp(o->kind, "philly") == 0)
        return trace_import_philly(a, in, t, e);
    return trace_import_alibaba(a, in, t, e);
}

/* Gavel's traces say what runs, so they need no truth; with one, jobs get promises. */
static int import_with_draw(const struct options *o, struct arena *a, struct trace_import in,
                            struct err *e)
{
    const bool needs_draw = o->truth != NULL || strcmp(o->kind, "gavel") != 0;
    struct trace_draw draw;
    struct ground g = { 0 };
    struct trace t;
    int rc = 0, status;

    if (needs_draw) {
        if (open_ground(o, NULL, &g, e) < 0)
            return cmd_fail(e);
        rc = trace_draw_init(&draw, a, &g.truth, NULL, o->reference, (uint64_t)o->seed, e);
        in.draw = &draw;
    }
    if (rc == 0)
        rc = import_jobs(o, a, &in, &t, e);
    if (rc == 0 && in.n_skipped > 0)
        fprintf(stderr, "gogh: %s: left out %d rows without a GPU or a duration\n", o->input,
                in.n_skipped);
    status = rc == 0 ? put_trace(o, &t, "gogh trace import", e) : cmd_fail(e);
    if (needs_draw)
        ground_close(&g);
    return status;
}

static int import(const struct options *o, struct arena *a, struct err *e)
{
    struct trace_import in = { .name = o->input, .n_jobs = (int)o->n_jobs };
    int rc = file_read_text(a, o->input, o->member, (size_t)1 << 30, &in.text, &in.len, e);

    if (rc < 0)
        return cmd_fail(e);
    if (strcmp(o->kind, "alibaba-nodes") == 0)
        return import_nodes(o, a, in.text, in.len, e);
    return import_with_draw(o, a, in, e);
}

static int run(int argc, char **argv)
{
    struct options o;
    struct arena a;
    struct err e = { 0 };
    int status = parse_options(argc, argv, &o);

    if (status != CMD_GO_ON)
        return status;
    arena_init(&a);
    status = strcmp(o.verb, "generate") == 0 ? generate(&o, &a, &e) : import(&o, &a, &e);
    arena_release(&a);
    return status;
}

const struct cmd cmd_trace = {
    .name = "trace",
    .synopsis = "trace generate --cluster FILE [--jobs N] [--load L | --rate R] [--out FILE] | "
                "trace import gavel|philly|alibaba|alibaba-nodes FILE [--out FILE]",
    .summary = "make traces by chance, or from published ones",
    .help = help,
    .run = run,
};
