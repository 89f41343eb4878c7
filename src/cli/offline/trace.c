/* trace.c - `gogh trace`: make traces by chance, or from other people's. */
#include "cli/cmd.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/file.h"
#include "catalog/cluster/cluster.h"
#include "catalog/cluster/job.h"
#include "cli/when.h"
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
    "      --services N                     services with a promised latency beside them; 0\n"
    "      --service-rate R, --days D       requests/s of one at the most, on average, and for\n"
    "                                       how long; 120 and 7\n"
    "  trace import gavel FILE           Gavel's traces (--member M inside a tar)\n"
    "  trace import philly FILE          Microsoft's Philly, timestamp,duration,num_gpus,...\n"
    "  trace import alibaba FILE         Alibaba's openb pod list\n"
    "  trace import alibaba-nodes FILE   Alibaba's openb node list, as a cluster file\n"
    "      --jobs N                         only the first N to arrive\n"
    "  trace import azure FILE           Azure's requests to a language model, as a service\n"
    "      --workload W                     of which model; llama-8b\n"
    "      --ttft T, --tpot T               the first token, each further one; 2s, 100ms\n"
    "      --max-gpus N                     replicas at most; 8\n"
    "      --arrivals FILE                  the requests, one a line, which the trace names;\n"
    "                                       beside --out, or in this folder: NAME.arrivals\n"
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
    "  gogh trace import gavel traces.tar.gz --member traces/msr/seed=0/0e4a51.trace\n"
    "  gogh trace import azure AzureLLMInferenceTrace_conv.csv.gz --ttft 1s --out conv.trace\n";

static struct options {
    const char *verb, *kind, *input;
    const char *cluster, *truth, *reference, *member, *out;
    const char *workload, *ttft, *tpot, *arrivals;
    long n_jobs, seed, max_gpus, n_services;
    double load, rate, inference, gangs, service_rate, days;
} given = { .seed = 1, .service_rate = 120, .days = 7 };

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
    CMD_TEXT("workload", given.workload),
    CMD_TEXT("ttft", given.ttft),
    CMD_TEXT("tpot", given.tpot),
    CMD_WHOLE("max-gpus", given.max_gpus, 1, SERVICE_GPUS_MOST),
    CMD_TEXT("arrivals", given.arrivals),
    CMD_WHOLE("services", given.n_services, 0, 10000),
    CMD_NUMBER("service-rate", given.service_rate, 1e-3, 1e5),
    CMD_NUMBER("days", given.days, 1e-3, 366),
};

static int import_nodes(const struct options *o, struct arena *a, const struct trace_import *in,
                        struct err *e);
static int import_requests(const struct options *o, struct arena *a, const struct trace_import *in,
                           struct err *e);

/* What is imported: jobs, or something else that 'import' makes of it. */
static const struct trace_kind {
    const char *name;
    int (*read)(struct arena *a, struct trace_import *in, struct trace *out, struct err *e);
    int (*import)(const struct options *o, struct arena *a, const struct trace_import *in,
                  struct err *e);
} kinds[] = {
    { "gavel", trace_import_gavel, NULL },     { "philly", trace_import_philly, NULL },
    { "alibaba", trace_import_alibaba, NULL }, { "alibaba-nodes", NULL, import_nodes },
    { "azure", NULL, import_requests },
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
                          "cannot import '%s': want gavel, philly, alibaba, alibaba-nodes "
                          "or azure",
                          o->kind);
    if (o->input == NULL)
        return cmd_misuse(&cmd_trace, "say which file to import");
    if (o->load > 0 || o->rate > 0 || o->inference > 0 || o->gangs > 0 || o->n_services > 0)
        return cmd_misuse(&cmd_trace, "--load, --rate, --inference, --gangs and --services are for "
                                      "'generate'");
    return 0;
}

static int check(const struct cmd_call *call)
{
    struct options *o = &given;

    o->verb = call->words[0] != NULL ? call->words[0] : "";
    o->kind = call->words[0] != NULL && call->words[1] != NULL ? call->words[1] : "";
    o->input = call->words[2];
    const bool is_import = strcmp(o->verb, "import") == 0;
    if (!is_import && strcmp(o->verb, "generate") != 0)
        return cmd_misuse(call->cmd, "cannot do '%s': want generate or import", o->verb);
    const int rc = is_import ? check_import(o) : check_generate(o);
    const bool has_service = o->workload || o->ttft || o->tpot || o->max_gpus > 0 || o->arrivals;
    if (rc == 0 && has_service && (!kind || kind->import != import_requests))
        return cmd_misuse(&cmd_trace, "--workload, --ttft, --tpot, --max-gpus, --arrivals are for "
                                      "'import azure'");
    return rc;
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
    const struct trace_generate_services served = { .n_services = (int)o->n_services,
                                                    .rate = o->service_rate,
                                                    .end_s = o->days * 86400,
                                                    .seed = (uint64_t)o->seed };
    struct trace_draw draw;
    struct cluster cl;
    struct ground g;
    struct trace t;
    if (cmd_cluster(a, o->cluster, &cl, e) < 0 || open_ground(o, &cl, &g, e) < 0)
        return -e->code;
    int rc = trace_draw_init(&draw, a, &g.truth, &cl, o->reference, how.seed, e);
    if (rc == 0)
        rc = trace_generate(a, &how, &draw, &cl, &t, e);
    if (rc == 0 && served.n_services > 0)
        trace_generate_services(a, &served, &draw, &t);
    if (rc == 0)
        rc = put_trace(o, &t, "gogh trace generate", e);
    ground_close(&g);
    return rc;
}

static int import_nodes(const struct options *o, struct arena *a, const struct trace_import *in,
                        struct err *e)
{
    struct buf b;

    buf_init(&b, OUT_MAX);
    return cmd_write(o->out, &b, cluster_import_alibaba(a, o->input, in->text, in->len, &b, e), e);
}

/* 'name' without those ends that it has, in their order, and another instead. */
static const char *with_end(struct arena *a, const char *name, const char *const *ends, int n,
                            const char *end)
{
    size_t len = strlen(name);

    for (int i = 0; i < n; i++) {
        const size_t k = strlen(ends[i]);

        if (len > k && memcmp(name + len - k, ends[i], k) == 0)
            len -= k;
    }
    return arena_printf(a, "%.*s%s", (int)len, name, end);
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* The file of requests, and in '*named' how the trace says it: from the trace's folder, or in full
 * where that is another or nobody knows it.
 */
static int arrivals_path(const struct options *o, struct arena *a, const char **path,
                         const char **named, struct err *e)
{
    static const char *const ends[] = { ".gz", ".xz", ".bz2", ".zst", ".csv", ".trace" };
    const char *like = o->out ? o->out : last_part(o->input);
    char here[PATH_MAX];

    *path = o->arrivals ? o->arrivals : with_end(a, like, ends, CMD_COUNT(ends), ".arrivals");
    const bool is_beside = o->out && !o->arrivals;
    *named = is_beside ? last_part(*path) : *path;
    if (!is_beside && (*path)[0] != '/') {
        if (!getcwd(here, sizeof here))
            return err_set(e, errno, "this folder has no name any more: give --arrivals /PATH");
        *named = arena_printf(a, "%s/%s", here, *path);
    }
    if (!text_is_name(slice_of(*named)))
        return err_set(e, EINVAL, "%s: want a path of at most 200 printable bytes: give --arrivals",
                       *named);
    return 0;
}

/* What the file of requests does not say of the service. */
static int service_terms(const struct options *o, struct trace_service *s, struct err *e)
{
    *s = (struct trace_service){ .name = "azure",
                                 .workload = o->workload ? o->workload : "llama-8b",
                                 .ttft_s = 2,
                                 .tpot_s = 0.1,
                                 .max_batch = SERVICE_BATCH,
                                 .max_gpus = o->max_gpus > 0 ? (int)o->max_gpus : 8,
                                 .load_s = SERVICE_LOAD_S };
    int rc = o->ttft ? when_duration(o->ttft, &s->ttft_s, e) : 0;
    if (rc == 0 && o->tpot)
        rc = when_duration(o->tpot, &s->tpot_s, e);
    if (rc == 0 && (s->ttft_s < 1e-4 || s->ttft_s > 1e4 || s->tpot_s < 1e-5 || s->tpot_s > 1e4))
        rc = err_set(e, EINVAL, "--ttft and --tpot: want times from 0.1 ms and 0.01 ms to 10000 s");
    if (rc == 0 && !text_is_name(slice_of(s->workload)))
        rc = err_set(e, EINVAL, "--workload: want a name of 1 to 200 printable bytes");
    return rc;
}

static int import_requests(const struct options *o, struct arena *a, const struct trace_import *in,
                           struct err *e)
{
    struct trace_service s;
    const struct trace t = { .n_services = 1, .services = &s };
    const char *path;
    struct buf b;

    if (service_terms(o, &s, e) < 0 || arrivals_path(o, a, &path, &s.arrivals, e) < 0)
        return -e->code;
    buf_init(&b, OUT_MAX);
    int rc = cmd_write(path, &b, trace_import_azure(a, in, &s, &b, e), e);
    if (rc == 0)
        rc = put_trace(o, &t, "gogh trace import", e);
    if (rc == 0)
        fprintf(stderr, "gogh: the requests are in %s\n", path);
    return rc;
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
    return kind->import ? kind->import(o, a, &in, e) : import_with_draw(o, a, in, e);
}

static int run(const struct cmd_call *call, struct err *e)
{
    return strcmp(given.verb, "generate") == 0 ? generate(&given, call->arena, e)
                                               : import(&given, call->arena, e);
}

const struct cmd cmd_trace = {
    .name = "trace",
    .synopsis = "trace generate --cluster FILE [--jobs N] [--load L | --rate R] [--out FILE] | "
                "trace import gavel|philly|alibaba|alibaba-nodes|azure FILE [--out FILE]",
    .summary = "make traces by chance, or from published ones",
    .help = help,
    CMD_OPTIONS(options),
    .max_words = 3,
    .check = check,
    .run = run,
};
