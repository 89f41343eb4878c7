/* bench.c - the benches of `gogh bench`: each run in a process of its own, and told. */
#include "bench/bench.h"

#include <errno.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/stats.h"
#include "base/text/json.h"
#include "study/scenario/scenario.h"

struct bench {
    struct bench_limit limit;
    double bytes_limit;    // 0: none
    int runs;
    const char *scenario;        // without whose data it is skipped; NULL: it needs none
    bench_prepare_f *prepare;    // once, in the parent; NULL: nothing; -ENOENT: skip
    bench_f *run;
    const char *details[2];
};

const char *bench_data_dir(void)
{
    const char *dir = getenv("GOGH_DATA");

    return dir ? dir : "../shared/data";
}

/* ---- a scratch directory ---- */

int bench_scratch(char *out, size_t size, struct err *e)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(out, size, "%s/gogh-bench-XXXXXX", tmp ? tmp : "/tmp");
    return mkdtemp(out) ? 0 : err_set(e, errno, "%s: %s", out, strerror(errno));
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

void bench_scratch_remove(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);    // all in there is ours
}

/* ---- running and telling ---- */

static const struct bench benches[] = {
    { .limit = { "import", "s", "Gavel's throughputs into an empty store", 1, false },
      .runs = 5,
      .prepare = bench_gavel_data,
      .run = bench_import },
    { .limit = { "open", "s", "1,000,000 measurements opened, snapshot made", 1, false },
      .bytes_limit = 500e6,
      .runs = 5,
      .prepare = bench_open_prepare,
      .run = bench_open,
      .details = { "cells", "gpus" } },
    { .limit = { "events", "events/s", "simulator, trivial policy, 64 GPUs", 1e6, true },
      .runs = 5,
      .run = bench_sim_events,
      .details = { "events", "seconds" } },
    { .limit = { "simulate", "s", "100,000 jobs on 1,000 GPUs, greedy", 60, false },
      .runs = 1,
      .run = bench_sim_greedy,
      .details = { "decisions", "decision_p99_s" } },
    { .limit = { "estimate", "cells/s",
                 "all pairs of 200 workloads on 8 GPU types, after one more measurement", 1e6,
                 true },
      .bytes_limit = 200e6,
      .runs = 5,
      .run = bench_estimate_cells,
      .details = { "first_s", "seconds" } },
    { .limit = { "estimate-update", "ms",
                 "a measurement taken in, and all cells of one of those workloads", 5, false },
      .bytes_limit = 200e6,
      .runs = 5,
      .run = bench_estimate_update },
    { .limit = { "estimate-young", "cells/s", "the same, at a site with 100 pairs measured", 1e6,
                 true },
      .bytes_limit = 200e6,
      .runs = 5,
      .run = bench_estimate_young,
      .details = { "first_s", "seconds" } },
    { .limit = { "estimate-young-update", "ms",
                 "a measurement taken in, and all cells of one of those workloads", 5, false },
      .bytes_limit = 200e6,
      .runs = 5,
      .run = bench_estimate_young_update },
    { .limit = { "estimate-train", "s", "a model learned from Gavel's measurements", 60, false },
      .bytes_limit = 200e6,
      .runs = 3,
      .prepare = bench_gavel_data,
      .run = bench_estimate_train,
      .details = { "readings", "workloads" } },
    { .limit = { "sharing", "of error", "slowdowns of sites with turns, told so over not told", 1,
                 false },
      .runs = 1,
      .run = bench_sharing,
      .details = { "error", "coverage90" } },
    { .limit = { "sharing-known", "of error", "the same, with five pairs of each site known", 1,
                 false },
      .runs = 1,
      .run = bench_sharing_known,
      .details = { "error", "coverage90" } },
    { .limit = { "sharing-slices", "of error", "slowdowns of sites with MIG, likewise", 1, false },
      .runs = 1,
      .run = bench_sharing_slices,
      .details = { "error", "coverage90" } },
    { .limit = { "network", "cells/s", "the network: 200 workloads x 8 GPU types, all pairs", 2e6,
                 true },
      .bytes_limit = 200e6,
      .runs = 5,
      .run = bench_network_cells,
      .details = { "states_s", "seconds" } },
    { .limit = { "network-read", "ms", "256 readings taken in, and a cell of two workloads", 5,
                 false },
      .bytes_limit = 200e6,
      .runs = 5,
      .run = bench_network_read },
    { .limit = { "network-train", "s", "the network learned from synthetic worlds", 120, false },
      .bytes_limit = 200e6,
      .runs = 1,
      .run = bench_network_train,
      .details = { "steps" } },
    { .limit = { "services", "s", "a table of capacity, of a day at 40 requests/s", 1, false },
      .bytes_limit = 200e6,
      .runs = 3,
      .run = bench_services_build,
      .details = { "arrivals", "hours" } },
    { .limit = { "services-large", "s", "the same at 1,000 requests/s", 1, false },
      .bytes_limit = 200e6,
      .runs = 1,
      .run = bench_services_large,
      .details = { "arrivals", "hours" } },
    { .limit = { "services-llm", "s", "of a language model, a day at 5 requests/s", 1, false },
      .bytes_limit = 200e6,
      .runs = 3,
      .run = bench_services_llm,
      .details = { "arrivals", "hours" } },
    { .limit = { "services-lookup", "ns", "one lookup in it", 1000, false },
      .runs = 3,
      .run = bench_services_lookup,
      .details = { "mean" } },
    { .limit = { "services-replay", "ns", "an arrival replayed", 5, false },
      .runs = 3,
      .run = bench_services_replay,
      .details = { "late" } },
    { .limit = { "services-too-high", "of hours", "held out, foreseen more than 10 % too high",
                 0.02, false },
      .runs = 1,
      .run = bench_services_too_high,
      .details = { "hours", "worst" } },
    { .limit = { "services-share", "of truth", "held out, the median that is foreseen", 0.7, true },
      .runs = 1,
      .run = bench_services_share,
      .details = { "p05", "p95" } },
    { .limit = { "services-azure", "of truth", "windows of Azure's trace, the worst", 1.1, false },
      .runs = 1,
      .prepare = bench_azure_data,
      .run = bench_services_azure,
      .details = { "median_of_windows", "windows" } },
    { .limit = { "services-azure-llm", "of truth",
                 "the same for servers of language models; code comes in bursts", 2, false },
      .runs = 1,
      .prepare = bench_azure_data,
      .run = bench_services_azure_llm,
      .details = { "median_of_windows", "windows" } },
    { .limit = { "study", "s", "1,000 jobs on 108 GPUs at load 0.9, gogh with power limits", 20,
                 false },
      .bytes_limit = 1e9,
      .runs = 3,
      .scenario = "large",
      .run = bench_study_large,
      .details = { "decisions", "decision_p99_s" } },
    { .limit = { "study-alibaba", "s", "all pods of Alibaba's 6,212 GPUs, gogh", 600, false },
      .bytes_limit = 1e9,
      .runs = 1,
      .scenario = "alibaba",
      .run = bench_study_alibaba,
      .details = { "decisions", "decision_p99_s" } },
};
enum { N_BENCHES = sizeof benches / sizeof *benches };

/* One run, as a child does it. */
struct bench_run {
    const struct bench *bench;
    const char *scratch;
};

static int run_once(const void *self, void *to, struct err *e)
{
    const struct bench_run *r = self;
    struct bench_figures *out = to;
    struct rusage use;
    struct arena a;

    arena_init(&a);
    *out = (struct bench_figures){ 0 };
    int rc = r->bench->run(&a, r->scratch, out, e);
    arena_release(&a);
    getrusage(RUSAGE_SELF, &use);
    out->peak_bytes = 1024.0 * (double)use.ru_maxrss;
    return rc;
}

json_t *bench_limit_json(const struct bench_limit *l, struct samples *values)
{
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:i, s:o}", "name", l->name, "unit", l->unit,
                     "median", json_number_or_null(samples_quantile(values, 0.5)), "min",
                     json_number_or_null(samples_quantile(values, 0)), "max",
                     json_number_or_null(samples_quantile(values, 1)), "runs", values->n, "limit",
                     json_number_or_null(l->limit));
}

bool bench_is_within(const struct bench_limit *l, struct samples *values)
{
    double median = samples_quantile(values, 0.5);

    return l->is_at_least ? median >= l->limit : median <= l->limit;
}

static json_t *tell(const struct bench *b, struct samples *values, double peak_bytes,
                    const struct bench_figures *last, bool is_json)
{
    const struct bench_limit *l = &b->limit;
    const bool ok =
        bench_is_within(l, values) && (b->bytes_limit <= 0 || peak_bytes <= b->bytes_limit);
    json_t *o = bench_limit_json(l, values);

    json_object_set_new(o, "within", json_boolean(ok));
    json_object_set_new(o, "peak_bytes", json_real(peak_bytes));
    for (int i = 0; i < 2; i++)
        if (b->details[i])
            json_object_set_new(o, b->details[i], json_real(last->detail[i]));
    if (!is_json)
        printf("%-15s %10.4g %-9s (%.4g .. %.4g, %d runs)  limit %s %g: %-6s  %5.0f MB  %s\n",
               l->name, samples_quantile(values, 0.5), l->unit, samples_quantile(values, 0),
               samples_quantile(values, 1), values->n, l->is_at_least ? ">=" : "<=", l->limit,
               ok ? "within" : "MISSED", peak_bytes / 1e6, l->what);
    return o;
}

static int prepare(const struct bench *b, const char *scratch, struct err *e)
{
    struct arena a;

    if (b->scenario && !scenario_has_data(scenario_by_name(b->scenario), bench_data_dir(), e))
        return -ENOENT;
    arena_init(&a);
    int rc = b->prepare ? b->prepare(&a, scratch, e) : 0;
    arena_release(&a);
    return rc;
}

static int run_bench(const struct bench *b, const char *scratch, const struct bench_options *how,
                     json_t *list, struct err *e)
{
    struct samples values = { 0 };
    struct bench_figures r = { 0 };
    const struct bench_run task = { b, scratch };
    double more_bytes, peak_bytes = 0;
    int rc = prepare(b, scratch, e);

    if (rc == -ENOENT) {
        fprintf(stderr, "gogh bench: %s skipped: %s\n", b->limit.name, e->text);
        json_array_append_new(list,
                              json_pack("{s:s, s:s}", "name", b->limit.name, "skipped", e->text));
        return 0;
    }
    for (int i = 0; i < (how->runs ? how->runs : b->runs) && rc == 0; i++) {
        rc = bench_child(run_once, &task, 0, &r, sizeof r, &more_bytes, e);
        if (rc < 0)
            rc = err_prefix(e, "%s", b->limit.name);
        if (rc == 0)
            samples_add(&values, r.value);
        peak_bytes = fmax(peak_bytes, r.peak_bytes);
    }
    if (rc == 0)
        json_array_append_new(list, tell(b, &values, peak_bytes, &r, how->is_json));
    fflush(stdout);
    samples_release(&values);
    return rc;
}

/* By its name, or by the word before a dash: "estimate" wants "estimate-train" too. */
static bool is_wanted(const char *name, const char *const *names)
{
    bool has_none = !*names;

    for (; *names; names++) {
        size_t len = strlen(*names);

        if (strncmp(*names, name, len) == 0 && (name[len] == '\0' || name[len] == '-'))
            return true;
    }
    return has_none;
}

bool bench_knows(const char *name)
{
    for (int i = 0; i < N_BENCHES; i++)
        if (strcmp(benches[i].limit.name, name) == 0)
            return true;
    return false;
}

int bench_run(const char *const *names, const struct bench_options *how, struct err *e)
{
    char scratch[4096];
    json_t *list = json_array();
    int rc = bench_scratch(scratch, sizeof scratch, e);

    for (int i = 0; i < N_BENCHES && rc == 0; i++)
        if (is_wanted(benches[i].limit.name, names))
            rc = run_bench(&benches[i], scratch, how, list, e);
    bench_scratch_remove(scratch);
    json_t *out = json_pack("{s:s, s:o}", "version", GOGH_VERSION, "benches", list);
    if (rc == 0 && how->is_json)
        json_print(out, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    else
        json_decref(out);
    return rc;
}
