/* cmd_bench.c - `gogh bench`: how fast, how much memory; ranges, not vibes. */
#include <errno.h>
#include <ftw.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/stats.h"
#include "catalog/catalog.h"
#include "catalog/cluster/cluster.h"
#include "catalog/import/import.h"
#include "catalog/cluster/ledger.h"
#include "catalog/cluster/snapshot.h"
#include "cli/bench.h"
#include "cli/cmd.h"
#include "sim/ground.h"
#include "sim/sim.h"
#include "sim/trace/generate.h"
#include "store/store.h"

static const char help[] =
    "Measure this build on this machine. Each figure is the median of several runs with the\n"
    "smallest and the largest beside it, and the limit it should stay within.\n"
    "\n"
    "  import     Gavel's 1.2 MB of throughputs into an empty store\n"
    "  open       a store of 1,000,000 measurements opened, and a snapshot made\n"
    "  events     the simulator with a trivial policy\n"
    "  simulate   100,000 jobs on 1,000 GPUs to the end with greedy\n"
    "  estimate   P1 over all cells of 200 workloads on 8 GPU types; with it run\n"
    "             'estimate-update', a refinement by P2 of all cells of one workload, and\n"
    "             'estimate-train', learning from Gavel's measurements\n"
    "  study      1,000 jobs on 108 GPUs with gogh and power limits; with it runs\n"
    "             'study-alibaba', all pods of a cluster of 6,212 GPUs\n"
    "\n"
    "Without names all of these run. 'import', 'estimate-train' and 'study' need measured data:\n"
    "the directory $GOGH_DATA, or ../shared/data seen from where you are\n"
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

struct bench {
    const char *name, *unit, *what;
    double limit;
    bool is_at_least;      // the limit is a floor
    double bytes_limit;    // 0: none
    int runs;
    bench_f *prepare;    // once, in the parent; NULL: nothing; -ENOENT: skip
    bench_f *run;
    const char *details[2];
};

const char *bench_data_dir(void)
{
    const char *dir = getenv("GOGH_DATA");

    return dir ? dir : "../shared/data";
}

/* ---- import ---- */

static const char *gavel_path(struct arena *a)
{
    return arena_printf(a, "%s/gavel/simulation_throughputs.json", bench_data_dir());
}

static int prepare_import(const char *scratch, struct reading *out, struct err *e)
{
    struct arena a;

    (void)scratch;
    (void)out;
    arena_init(&a);
    int missing = access(gavel_path(&a), R_OK) != 0;
    arena_release(&a);
    return missing ? err_set(e, ENOENT, "no measured data at %s (docs/formats/study.md#data)",
                             bench_data_dir())
                   : 0;
}

static int run_import(const char *scratch, struct reading *out, struct err *e)
{
    struct arena a;
    struct store *s = NULL;
    struct catalog c;
    struct import_report report;

    arena_init(&a);
    catalog_init(&c);
    struct import_gavel in = { .path = gavel_path(&a) };
    const char *db = arena_printf(&a, "%s/import-%ld.db", scratch, (long)getpid());
    double began_s = clock_stopwatch_s();
    int rc = store_open(db, STORE_CREATE, &s, e);
    if (rc == 0)
        rc = catalog_load(&c, s, e);
    if (rc == 0)
        rc = import_gavel(&c, &in, 0, NULL, &report, e);
    out->value = clock_stopwatch_s() - began_s;
    catalog_release(&c);
    store_close(s);
    arena_release(&a);
    return rc;
}

/* ---- open ---- */

#define OPEN_MEASUREMENTS 1000000
#define OPEN_WORKLOADS 200
#define OPEN_NODES 1250
#define OPEN_DB "open.db"

static int add_names(struct catalog *c, struct err *e)
{
    static const char *const types[] = { "k80", "p100", "v100", "t4", "a40", "a100", "l4", "h100" };
    int index, rc = 0;

    for (size_t t = 0; t < sizeof types / sizeof *types && rc == 0; t++)
        rc = catalog_add_type(c, gpu_type_builtin(types[t]), &index, e);
    for (int w = 0; w < OPEN_WORKLOADS && rc == 0; w++) {
        struct workload load;
        rc = workload_builtin(&c->arena, "resnet50", w + 1, &load, e);
        if (rc == 0)
            rc = catalog_add_workload(c, &load, &index, e);
    }
    return rc;
}

static int add_measurements(struct catalog *c, struct err *e)
{
    struct rng rng;
    int rc = 0;

    rng_init(&rng, 1, "bench-open");
    for (long i = 0; i < OPEN_MEASUREMENTS && rc == 0; i++) {
        struct measurement m = {
            .key = { .workload = (int)rng_below(&rng, OPEN_WORKLOADS),
                     .gpu_type = (int)rng_below(&rng, 8),
                     .neighbour = (int)rng_below(&rng, OPEN_WORKLOADS + 1) - 1,
                     .n_gpus = 1 },
            .fits = true,
            .throughput = exp(rng_normal(&rng)),
            .watts = 100 + 50 * rng_uniform(&rng),
            .time_s = (double)i,
            .duration_s = 300,
            .noise = 0.05,
        };
        rc = catalog_record(c, &m, 0, e);
    }
    return rc;
}

static int add_nodes(struct catalog *c, struct store *s, struct err *e)
{
    static const int types[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    static struct event events[OPEN_NODES];
    static char names[OPEN_NODES][16];
    struct ledger l;
    int rc = ledger_open(&l, c, s, e);

    if (rc < 0)
        return rc;
    for (int n = 0; n < OPEN_NODES; n++) {
        snprintf(names[n], sizeof names[n], "n%04d", n);
        events[n] = (struct event){
            .kind = EVENT_NODE_ADDED, .node = names[n], .gpu_types = types, .n_gpus = 8
        };
    }
    rc = ledger_append(&l, events, OPEN_NODES, e);
    ledger_close(&l);
    return rc;
}

static int prepare_open(const char *scratch, struct reading *out, struct err *e)
{
    struct arena a;
    struct store *s = NULL;
    struct catalog c;

    (void)out;
    arena_init(&a);
    catalog_init(&c);
    int rc = store_open(arena_printf(&a, "%s/%s", scratch, OPEN_DB), STORE_CREATE, &s, e);
    if (rc == 0)
        rc = catalog_load(&c, s, e);
    if (rc == 0)
        rc = store_begin(s, e);
    if (rc == 0)
        rc = add_names(&c, e);
    if (rc == 0)
        rc = add_measurements(&c, e);
    if (rc == 0)
        rc = store_commit(s, e);
    if (rc == 0)
        rc = add_nodes(&c, s, e);
    catalog_release(&c);
    store_close(s);
    arena_release(&a);
    return rc;
}

static int run_open(const char *scratch, struct reading *out, struct err *e)
{
    struct arena a;
    struct store *s = NULL;
    struct catalog c;
    struct ledger l;
    struct snapshot snapshot;

    arena_init(&a);
    catalog_init(&c);
    double began_s = clock_stopwatch_s();
    int rc = store_open(arena_printf(&a, "%s/%s", scratch, OPEN_DB), STORE_READ, &s, e);
    if (rc == 0)
        rc = catalog_load(&c, s, e);
    if (rc == 0)
        rc = ledger_open(&l, &c, s, e);
    if (rc == 0) {
        snapshot_take(&a, &l.state, &c, 0, 2, NULL, 0, NULL, NULL, &snapshot);
        out->value = clock_stopwatch_s() - began_s;
        out->detail[0] = c.n_cells;
        out->detail[1] = snapshot.n_gpus;
        ledger_close(&l);
    }
    catalog_release(&c);
    store_close(s);
    arena_release(&a);
    return rc;
}

/* ---- the simulator ---- */

struct rig {
    struct arena arena;
    struct cluster cluster;
    struct ground ground;
    struct trace trace;
    struct sim *sim;
};

static int rig_open(struct rig *r, const char *cluster, const char *policy, int n_jobs, double load,
                    struct err *e)
{
    struct trace_draw draw;
    struct trace_generate how = { .n_jobs = n_jobs, .load = load, .seed = 1 };
    int rc = cluster_parse(&r->arena, "bench cluster", cluster, strlen(cluster), &r->cluster, e);

    if (rc == 0)
        rc = ground_builtin(&r->ground, &r->cluster, NULL, "p100", 1, e);
    if (rc == 0)
        rc = trace_draw_init(&draw, &r->arena, &r->ground.truth, &r->cluster, "p100", 1, e);
    if (rc == 0)
        rc = trace_generate(&r->arena, &how, &draw, &r->cluster, &r->trace, e);
    struct sim_options o = { .cluster = &r->cluster,
                             .trace = &r->trace,
                             .truth = &r->ground.truth,
                             .policy = policy,
                             .seed = 1 };
    if (rc == 0)
        rc = sim_create(&o, &r->sim, e);
    return rc;
}

static int run_sim(const char *cluster, const char *policy, int n_jobs, double load,
                   double *seconds, struct sim_result *result, struct err *e)
{
    struct rig r = { .sim = NULL };

    arena_init(&r.arena);
    int rc = rig_open(&r, cluster, policy, n_jobs, load, e);
    double began_s = clock_stopwatch_s();
    if (rc == 0)
        rc = sim_advance(r.sim, INFINITY, e);
    *seconds = clock_stopwatch_s() - began_s;
    if (rc == 0)
        sim_result(r.sim, result);
    return rc;    // the child ends here; there is nothing to tidy
}

static int run_events(const char *scratch, struct reading *out, struct err *e)
{
    struct sim_result r = { 0 };
    double seconds;

    (void)scratch;
    int rc = run_sim("node n[1-16] k80:1 p100:1 v100:1 a100:1\nset decide_s 3600\n"
                     "set report_s 1e9\n",
                     "fifo-first", 400000, 0.7, &seconds, &r, e);
    out->value = (double)r.n_events / seconds;
    out->detail[0] = (double)r.n_events;
    out->detail[1] = seconds;
    return rc;
}

static int run_simulate(const char *scratch, struct reading *out, struct err *e)
{
    struct sim_result r = { 0 };

    (void)scratch;
    int rc = run_sim("node n[1-250] k80:1 p100:1 v100:1 a100:1\n", "greedy", 100000, 0.7,
                     &out->value, &r, e);
    out->detail[0] = (double)r.n_decisions;
    out->detail[1] = r.decision_p99_s;
    return rc;
}

/* ---- running and telling ---- */

static const struct bench benches[] = {
    { .name = "import",
      .unit = "s",
      .what = "Gavel's throughputs into an empty store",
      .limit = 1,
      .runs = 5,
      .prepare = prepare_import,
      .run = run_import },
    { .name = "open",
      .unit = "s",
      .what = "1,000,000 measurements opened, snapshot made",
      .limit = 1,
      .bytes_limit = 500e6,
      .runs = 5,
      .prepare = prepare_open,
      .run = run_open,
      .details = { "cells", "gpus" } },
    { .name = "events",
      .unit = "events/s",
      .what = "simulator, trivial policy, 64 GPUs",
      .limit = 1e6,
      .is_at_least = true,
      .runs = 5,
      .run = run_events,
      .details = { "events", "seconds" } },
    { .name = "simulate",
      .unit = "s",
      .what = "100,000 jobs on 1,000 GPUs, greedy",
      .limit = 60,
      .runs = 1,
      .run = run_simulate,
      .details = { "decisions", "decision_p99_s" } },
    { .name = "estimate",
      .unit = "cells/s",
      .what = "P1: 200 workloads x 8 GPU types, all pairs, from descriptors",
      .limit = 2e6,
      .is_at_least = true,
      .bytes_limit = 200e6,
      .runs = 5,
      .prepare = bench_estimate_prepare,
      .run = bench_estimate_cells,
      .details = { "assembly_s", "seconds" } },
    { .name = "estimate-update",
      .unit = "ms",
      .what = "P2: all cells of a workload of those, by five measurements",
      .limit = 1,
      .bytes_limit = 200e6,
      .runs = 5,
      .prepare = bench_estimate_prepare,
      .run = bench_estimate_update,
      .details = { "closed_form_ms", "network_ms" } },
    { .name = "estimate-train",
      .unit = "s",
      .what = "P1 and P2 learned from Gavel's measurements",
      .limit = 60,
      .bytes_limit = 200e6,
      .runs = 3,
      .prepare = bench_estimate_data,
      .run = bench_estimate_train,
      .details = { "examples", "workloads" } },
    { .name = "study",
      .unit = "s",
      .what = "1,000 jobs on 108 GPUs at load 0.9, gogh with power limits",
      .limit = 20,
      .bytes_limit = 1e9,
      .runs = 3,
      .prepare = bench_study_data,
      .run = bench_study_large,
      .details = { "decisions", "decision_p99_s" } },
    { .name = "study-alibaba",
      .unit = "s",
      .what = "all pods of Alibaba's 6,212 GPUs, gogh",
      .limit = 600,
      .bytes_limit = 1e9,
      .runs = 1,
      .prepare = bench_alibaba_data,
      .run = bench_study_alibaba,
      .details = { "decisions", "decision_p99_s" } },
};
enum { N_BENCHES = sizeof benches / sizeof *benches };

static void run_child(const struct bench *b, const char *scratch, int to)
{
    struct reading r = { 0 };
    struct rusage use;

    r.rc = b->run(scratch, &r, &r.err);
    getrusage(RUSAGE_SELF, &use);
    r.peak_bytes = 1024.0 * (double)use.ru_maxrss;
    ssize_t n = write(to, &r, sizeof r);
    _exit(n == (ssize_t)sizeof r ? 0 : 1);
}

static int run_once(const struct bench *b, const char *scratch, struct reading *out, struct err *e)
{
    int ends[2], status = 0;

    if (pipe(ends) < 0)
        return err_set(e, errno, "pipe: %s", strerror(errno));
    fflush(NULL);
    pid_t child = fork();
    if (child < 0)
        return err_set(e, errno, "fork: %s", strerror(errno));
    if (child == 0)
        run_child(b, scratch, ends[1]);
    close(ends[1]);
    ssize_t n = read(ends[0], out, sizeof *out);
    close(ends[0]);
    waitpid(child, &status, 0);
    if (n != (ssize_t)sizeof *out)
        return err_set(e, ECHILD, "%s: the run ended with status %d", b->name, status);
    if (out->rc < 0)
        *e = out->err;
    return out->rc;
}

static bool is_within(const struct bench *b, double median, double peak_bytes)
{
    bool is_fast = b->is_at_least ? median >= b->limit : median <= b->limit;

    return is_fast && (b->bytes_limit <= 0 || peak_bytes <= b->bytes_limit);
}

static json_t *tell(const struct bench *b, struct samples *values, struct samples *peaks,
                    const struct reading *last, bool is_json)
{
    double median = samples_quantile(values, 0.5), peak = samples_quantile(peaks, 1);
    double low = samples_quantile(values, 0), high = samples_quantile(values, 1);
    bool ok = is_within(b, median, peak);
    json_t *o = json_pack("{s:s, s:s, s:f, s:f, s:f, s:i, s:f, s:b, s:f}", "name", b->name, "unit",
                          b->unit, "median", median, "min", low, "max", high, "runs",
                          (int)values->n, "limit", b->limit, "within", ok, "peak_bytes", peak);

    for (int i = 0; i < 2; i++)
        if (b->details[i])
            json_object_set_new(o, b->details[i], json_real(last->detail[i]));
    if (!is_json)
        printf("%-15s %10.4g %-9s (%.4g .. %.4g, %zu runs)  limit %s %g: %-6s  %5.0f MB  %s\n",
               b->name, median, b->unit, low, high, values->n,
               b->is_at_least ? ">=" : "<=", b->limit, ok ? "within" : "MISSED", peak / 1e6,
               b->what);
    return o;
}

static int run_bench(const struct bench *b, const char *scratch, int runs, bool is_json,
                     json_t *list, struct err *e)
{
    struct samples values, peaks;
    struct reading r = { 0 };
    int rc = b->prepare ? b->prepare(scratch, &r, e) : 0;

    if (rc == -ENOENT) {
        fprintf(stderr, "gogh bench: %s skipped: %s\n", b->name, e->text);
        json_array_append_new(list, json_pack("{s:s, s:s}", "name", b->name, "skipped", e->text));
        return 0;
    }
    samples_init(&values);
    samples_init(&peaks);
    for (int i = 0; i < (runs ? runs : b->runs) && rc == 0; i++) {
        rc = run_once(b, scratch, &r, e);
        if (rc == 0) {
            samples_add(&values, r.value);
            samples_add(&peaks, r.peak_bytes);
        }
    }
    if (rc == 0)
        json_array_append_new(list, tell(b, &values, &peaks, &r, is_json));
    fflush(stdout);
    samples_release(&values);
    samples_release(&peaks);
    return rc;
}

/* By its name, or by the word before a dash: "estimate" wants "estimate-train" too. */
static bool is_wanted(const char *name, const char *const *names, int n)
{
    for (int i = 0; i < n; i++) {
        size_t len = strlen(names[i]);

        if (strncmp(names[i], name, len) == 0 && (name[len] == '\0' || name[len] == '-'))
            return true;
    }
    return n == 0;
}

static const struct bench *find(const char *name)
{
    for (int i = 0; i < N_BENCHES; i++)
        if (strcmp(benches[i].name, name) == 0)
            return &benches[i];
    return NULL;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static int run_all(const char *const *names, int n, int runs, bool is_json, struct err *e)
{
    const char *tmp = getenv("TMPDIR");
    struct arena a;
    json_t *list = json_array();
    int rc = 0;

    arena_init(&a);
    char *scratch = arena_printf(&a, "%s/gogh-bench-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(scratch))
        rc = err_set(e, errno, "%s: %s", scratch, strerror(errno));
    for (int i = 0; i < N_BENCHES && rc == 0; i++)
        if (is_wanted(benches[i].name, names, n))
            rc = run_bench(&benches[i], scratch, runs, is_json, list, e);
    nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);    // all in there is ours
    json_t *out = json_pack("{s:s, s:o}", "version", GOGH_VERSION, "benches", list);
    if (rc == 0 && is_json) {
        json_dumpf(out, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
        printf("\n");
    }
    json_decref(out);
    arena_release(&a);
    return rc;
}

struct options {
    const char *names[N_BENCHES];
    const char *rows;
    long runs, seeds, scale;
    bool is_json, is_proving;
};

static bool is_alone(const struct options *o, const char *name)
{
    return o->names[0] && strcmp(o->names[0], name) == 0;
}

static int check_names(const struct options *o)
{
    for (int i = 0; i < N_BENCHES && o->names[i]; i++)
        if (!find(o->names[i]))
            return cmd_misuse(
                &cmd_bench,
                "no bench '%s': want import, open, events, simulate, estimate, study or, "
                "alone, optimize or serve",
                o->names[i]);
    return CMD_GO_ON;
}

static int parse_options(int argc, char **argv, struct options *o)
{
    const struct cmd_option options[] = {
        { .name = "runs", .kind = OPTION_WHOLE, .out = &o->runs, .low = 1, .high = 1000 },
        { .name = "rows", .kind = OPTION_TEXT, .out = &o->rows },
        { .name = "seeds", .kind = OPTION_WHOLE, .out = &o->seeds, .low = 1, .high = 10000 },
        { .name = "scale", .kind = OPTION_WHOLE, .out = &o->scale, .low = 1, .high = 10000 },
        { .name = "prove", .kind = OPTION_FLAG, .out = &o->is_proving },
        { .name = "json", .kind = OPTION_FLAG, .out = &o->is_json },
    };
    int status =
        cmd_parse(&cmd_bench, argc, argv, options, CMD_COUNT(options), o->names, N_BENCHES);

    if (status != CMD_GO_ON)
        return status;
    const bool is_optimize = is_alone(o, "optimize"), is_serve = is_alone(o, "serve");
    if ((is_optimize || is_serve) && o->names[1])
        return cmd_misuse(&cmd_bench, "'%s' stands alone", o->names[0]);
    if (is_optimize && o->runs > 0)
        return cmd_misuse(&cmd_bench, "'optimize' has --rows and --seeds, not --runs");
    if ((o->seeds > 0 || o->is_proving) && !is_optimize)
        return cmd_misuse(&cmd_bench, "--seeds and --prove are for 'optimize'");
    if (o->scale > 0 && !is_serve && !is_optimize)
        return cmd_misuse(&cmd_bench, "--scale is for 'optimize' and 'serve'");
    if (o->rows && !is_optimize && !is_serve)
        return cmd_misuse(&cmd_bench, "--rows is for 'optimize' and 'serve'");
    if (is_serve ? !bench_serve_knows(o->rows) : !bench_optimize_knows(o->rows))
        return cmd_misuse(&cmd_bench, "'%s' names a row that is none", o->rows);
    return is_optimize || is_serve ? CMD_GO_ON : check_names(o);
}

static int run(int argc, char **argv)
{
    struct options o = { .rows = NULL };
    struct err e = { 0 };
    int n = 0, rc = 0;
    int status = parse_options(argc, argv, &o);

    if (status != CMD_GO_ON)
        return status;
    while (n < N_BENCHES && o.names[n])
        n++;
    if (is_alone(&o, "optimize"))
        rc = bench_optimize(&(struct bench_options){ .names = o.rows,
                                                     .seeds = (int)o.seeds,
                                                     .scale = o.scale > 0 ? (int)o.scale : 1,
                                                     .is_proving = o.is_proving },
                            o.is_json, &e);
    else if (is_alone(&o, "serve"))
        rc = bench_serve(o.rows, (int)o.runs, (int)o.scale, o.is_json, &e);
    else
        rc = run_all(o.names, n, (int)o.runs, o.is_json, &e);
    return rc < 0 ? cmd_fail(&e) : cmd_done();
}

const struct cmd cmd_bench = {
    .name = "bench",
    .synopsis = "bench [import|open|events|simulate|estimate|study ...] [--runs N] [--json] | "
                "bench optimize [--rows NAMES] [--seeds N] [--scale N] [--prove] [--json] | "
                "bench serve [--rows NAMES] [--runs N] [--scale N] [--json]",
    .summary = "measure this build on this machine",
    .help = help,
    .run = run,
};
