#include "daemon/config/version.h"
#include "daemon/service/metrics.h"

#include <assert.h>
#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/text/file.h"
#include "base/map.h"
#include "base/text/text.h"
#include "daemon/http/http.h"
#include "daemon/service/job_json.h"
#include "daemon/service/service.h"
#include "monitor/energy.h"
#include "monitor/watch.h"

static const double limits_s[METRIC_BUCKETS - 1] = {
    .001, .003, .01, .03, .1, .3, 1, 3, 10, 20, 30
};

void histogram_add(struct histogram *h, double v)
{
    int i = 0;

    while (i < METRIC_BUCKETS - 1 && v > limits_s[i])
        i++;
    h->counts[i]++;
    h->sum += v;
}

void metrics_init(struct metrics *m)
{
    *m = (struct metrics){ .gap = { NAN, NAN, NAN }, .last_s = NAN };
}

/* ---- the text format ---- */

static void say(struct buf *out, const char *text)
{
    int rc = buf_puts(out, text);

    assert(rc == 0);
}

static void head(struct buf *out, const char *name, const char *type, const char *help)
{
    int rc = buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);

    assert(rc == 0);
}

/* Inside a label's quotes: \ " and the end of a line are escaped. */
static void say_escaped(struct buf *out, const char *value)
{
    while (*value) {
        size_t n = strcspn(value, "\n\"\\");

        buf_append(out, value, n);
        value += n;
        if (*value == '\n')
            say(out, "\\n");
        else if (*value)
            buf_append(out, (const char[]){ '\\', *value }, 2);
        value += *value != '\0';
    }
}

/* A sample; 'labels' are pairs of name and value up to NULL, or NULL for none. */
#define LABELS(...)       \
    (const char *const[]) \
    {                     \
        __VA_ARGS__, NULL \
    }
static void sample(struct buf *out, const char *name, double v, const char *const *labels)
{
    char number[40] = " NaN\n";

    say(out, name);
    for (int i = 0; labels && labels[i]; i += 2) {
        say(out, i ? "," : "{");
        say(out, labels[i]);
        say(out, "=\"");
        say_escaped(out, labels[i + 1]);
        say(out, labels[i + 2] ? "\"" : "\"}");
    }
    if (!isnan(v))
        snprintf(number, sizeof number, " %.15g\n", v);
    say(out, number);
}

static void single(struct buf *out, const char *name, const char *type, const char *help, double v)
{
    head(out, name, type, help);
    sample(out, name, v, NULL);
}

static void count(struct buf *out, const char *name, const char *help, uint64_t v)
{
    single(out, name, "counter", help, (double)v);
}

static void gauge(struct buf *out, const char *name, const char *help, double v)
{
    single(out, name, "gauge", help, v);
}

/* Prometheus wants each bucket to count all below it, too. 'limits' are (n - 1): the last has none.
 */
static void buckets(struct buf *out, const char *name, const char *help, const double *limits,
                    const uint64_t *counts, int n, double sum)
{
    uint64_t so_far = 0;

    head(out, name, "histogram", help);
    for (int i = 0; i < n; i++) {
        char limit[24] = "+Inf";

        if (i < n - 1)
            snprintf(limit, sizeof limit, "%g", limits[i]);
        so_far += counts[i];
        buf_printf(out, "%s_bucket{le=\"%s\"} %" PRIu64 "\n", name, limit, so_far);
    }
    buf_printf(out, "%s_sum %.15g\n%s_count %" PRIu64 "\n", name, sum, name, so_far);
}

static void histogram_print(struct buf *out, const char *name, const char *help,
                            const struct histogram *h)
{
    buckets(out, name, help, limits_s, h->counts, METRIC_BUCKETS, h->sum);
}

/* ---- what there is to tell ---- */

static void print_build(const struct service *s, struct buf *out)
{
    head(out, "gogh_build_info", "gauge", "The version that runs.");
    sample(out, "gogh_build_info", 1, LABELS("version", gogh_version));
    gauge(out, "gogh_ready",
          "1: the journal is read, runs are adopted, and the store takes what is written.",
          s->is_ready && !s->broken && !s->is_stopping);
    gauge(out, "gogh_store_ok", "1: the store takes what is written.", !s->broken);
}

static void print_jobs(const struct service *s, struct buf *out)
{
    const struct state *st = &s->base.ledger.state;
    long n[JOB_CANCELLED + 1] = { 0 };
    long busy = 0;

    for (int i = 0; i < st->n_jobs; i++)
        n[st->jobs[i]->state]++;
    head(out, "gogh_jobs", "gauge", "Jobs by state, those that ended included.");
    for (int i = 0; i <= JOB_CANCELLED; i++)
        sample(out, "gogh_jobs", (double)n[i], LABELS("state", job_state_name((enum job_state)i)));
    for (int i = 0; i < st->n_gpus; i++)
        busy += st->gpus[i].n_jobs > 0;
    gauge(out, "gogh_nodes", "Nodes.", st->n_nodes);
    gauge(out, "gogh_gpus", "GPUs.", st->n_gpus);
    gauge(out, "gogh_gpus_busy", "GPUs with a job on them.", (double)busy);
}

static void print_gpus(const struct service *s, struct buf *out)
{
    const struct state *st = &s->base.ledger.state;
    char name[GPU_NAME_MAX];

    if (s->watch) {
        head(out, "gogh_gpu_power_watts", "gauge", "Draw of a GPU, as read or modelled.");
        for (int g = 0; g < st->n_gpus; g++) {
            api_gpu_name(s, g, name);
            sample(out, "gogh_gpu_power_watts", watch_gpu_w(s->watch, g),
                   LABELS("gpu", name, "type", s->base.catalog.types[st->gpus[g].type].name,
                          "source", watch_power_source(s->watch, g)));
        }
    }
    if (!s->energy)
        return;
    head(out, "gogh_gpu_energy_joules_total", "counter", "Energy of a GPU since the daemon began.");
    for (int g = 0; g < st->n_gpus; g++) {
        api_gpu_name(s, g, name);
        sample(out, "gogh_gpu_energy_joules_total", energy_gpu_j(s->energy, g),
               LABELS("gpu", name, "type", s->base.catalog.types[st->gpus[g].type].name));
    }
}

/* Joules by owner: the jobs' parts, added up. */
static void print_owners(const struct service *s, struct buf *out)
{
    const struct state *st = &s->base.ledger.state;
    struct arena a;
    struct map owners = { 0 };
    int n = 0;

    arena_init(&a);
    double *joules = ARENA_ARRAY(&a, double, (size_t)st->n_jobs + 1);
    const char **names = ARENA_ARRAY(&a, const char *, (size_t)st->n_jobs + 1);
    for (int i = 0; i < st->n_jobs; i++) {
        const char *owner = st->jobs[i]->spec.owner ? st->jobs[i]->spec.owner : "";
        int at = map_get(&owners, owner);
        if (at < 0) {
            at = n++;
            names[at] = owner;
            map_set(&owners, owner, at);
        }
        joules[at] += energy_job_j(s->energy, i);
    }
    head(out, "gogh_owner_energy_joules_total", "counter", "Energy of an owner's jobs.");
    for (int i = 0; i < n; i++)
        sample(out, "gogh_owner_energy_joules_total", joules[i], LABELS("owner", names[i]));
    map_release(&owners);
    arena_release(&a);
}

static void print_job_energy(const struct service *s, struct buf *out)
{
    const struct state *st = &s->base.ledger.state;

    head(out, "gogh_job_energy_joules_total", "counter", "Energy of a running job.");
    for (int i = 0; i < st->n_running; i++) {
        const struct job *j = st->jobs[st->running[i]];
        sample(out, "gogh_job_energy_joules_total", energy_job_j(s->energy, j->id),
               LABELS("job", j->spec.name, "owner", j->spec.owner ? j->spec.owner : "", "workload",
                      s->base.catalog.workloads[j->spec.workload].name));
    }
}

static void print_energy(const struct service *s, struct buf *out)
{
    if (!s->energy)
        return;
    single(out, "gogh_energy_joules_total", "counter", "Energy of all GPUs since the daemon began.",
           energy_total_j(s->energy));
    if (!s->has_earlier_usage)    // a counter that jumps up later would look like use
        return;
    print_owners(s, out);
    if (s->config.has_job_labels)
        print_job_energy(s, out);
}

static void print_gap(const struct metrics *m, struct buf *out)
{
    if (isnan(m->gap.watts))
        return;
    gauge(out, "gogh_solver_gap_watts", "How far the last plan may be from the best one.",
          m->gap.watts);
    gauge(out, "gogh_solver_gap_ratio", "The same, as a part of all that it costs.", m->gap.ratio);
    gauge(out, "gogh_solver_gap_varying_ratio", "The same, as a part of what plans can change.",
          m->gap.varying_ratio);
}

static void print_decisions(const struct metrics *m, struct buf *out)
{
    count(out, "gogh_decisions_total", "Plans made and carried out.", m->n_decisions);
    count(out, "gogh_decisions_certified_total",
          "Of these with a bound, by which their gap is known.", m->n_certified);
    count(out, "gogh_solver_fallbacks_total", "Decisions for which the greedy plan stood in.",
          m->n_fallbacks);
    count(out, "gogh_solver_deaths_total", "Solvers that died or took too long.",
          m->n_solver_deaths);
    print_gap(m, out);
    histogram_print(out, "gogh_solver_seconds", "From the snapshot to the checked plan.",
                    &m->decision_s);
    histogram_print(out, "gogh_repricing_seconds", "Finding prices anew, beside decisions.",
                    &m->repricing_s);
    count(out, "gogh_job_starts_total", "Orders to start a job.", m->n_starts);
    count(out, "gogh_job_moves_total", "Orders to move a job.", m->n_moves);
    count(out, "gogh_job_stops_total", "Orders to stop a job.", m->n_stops);
    count(out, "gogh_orders_refused_total", "Orders that the executor did not take.", m->n_refused);
    count(out, "gogh_commits_total", "Transactions on disk.", m->n_commits);
    count(out, "gogh_commit_failures_total", "Transactions that the store refused.",
          m->n_commit_failures);
    histogram_print(out, "gogh_commit_seconds", "Until a transaction is on disk.", &m->commit_s);
}

static void print_predictions(const struct metrics *m, struct buf *out)
{
    double n = (double)m->n_measurements;
    double mean = n > 0 ? m->sum_abs_error / n : (double)NAN;

    gauge(out, "gogh_prediction_error_ratio",
          "Mean of |measured / believed - 1| since the daemon began.", mean);
    head(out, "gogh_prediction_abs_error_ratio", "summary",
         "|measured / believed - 1| of the speeds measured.");
    sample(out, "gogh_prediction_abs_error_ratio_sum", m->sum_abs_error, NULL);
    sample(out, "gogh_prediction_abs_error_ratio_count", n, NULL);
    count(out, "gogh_prediction_covered_total", "Of these inside the believed 90 % interval.",
          m->n_covered);
}

static void print_watch(const struct service *s, struct buf *out)
{
    const struct watch_stats w = s->watch ? watch_stats(s->watch) : (struct watch_stats){ 0 };

    count(out, "gogh_reports_total", "Datagrams of jobs taken in.", w.n_reports);
    count(out, "gogh_reports_bad_total", "Datagrams dropped: wrong secret, form or run.", w.n_bad);
    count(out, "gogh_windows_total", "Times of unchanged conditions that were measured.",
          w.n_windows);
    count(out, "gogh_windows_unstable_total", "Times that were too unsteady to measure.",
          w.n_unstable);
    count(out, "gogh_outliers_total", "Measurements left out as outliers.", w.n_outliers);
    count(out, "gogh_reports_false_total", "Times that a server contradicted itself.", w.n_false);
    count(out, "gogh_reports_floods_total", "Times that a job was muted for it sent too much.",
          w.n_floods);
    count(out, "gogh_power_failures_total", "Readings of power that failed.", w.n_power_failures);
}

static void print_loop(const struct service *s, struct buf *out)
{
    if (!s->loop)
        return;
    const struct loop_stats *l = loop_stats(s->loop);
    buckets(out, "gogh_loop_turn_seconds", "How long a turn held the loop.", loop_buckets_s,
            l->buckets, LOOP_BUCKETS, l->busy_s);
    count(out, "gogh_loop_stalls_total", "Turns that took longer than 0.1 s.", l->n_stalls);
    gauge(out, "gogh_loop_turn_longest_seconds", "The longest turn.", l->longest_s);
}

static void print_http(const struct service *s, struct buf *out)
{
    static const char *const classes[] = { "other", "1xx", "2xx", "3xx", "4xx", "5xx" };

    if (!s->http)
        return;
    struct http_stats h = http_stats(s->http);
    count(out, "gogh_http_requests_total", "Requests.", h.n_requests);
    count(out, "gogh_http_refused_total", "Requests refused before they reached a route.",
          h.n_refused);
    count(out, "gogh_http_unauthorised_total", "Requests of nobody we know.", h.n_unauthorised);
    count(out, "gogh_http_limited_total", "Requests above the rate of their caller.", h.n_limited);
    head(out, "gogh_http_answers_total", "counter", "Answers by class of status.");
    for (int i = 0; i < 6; i++)
        sample(out, "gogh_http_answers_total", (double)h.by_class[i], LABELS("class", classes[i]));
    count(out, "gogh_http_cut_total", "Connections cut off for dawdling.", h.n_cut);
    gauge(out, "gogh_http_connections", "Open connections.", h.n_connections);
    gauge(out, "gogh_http_streams", "Listeners to events.", h.n_streams);
}

/* ---- the process ---- */

/* Since Linux 6.2 the directory's size is their number (proc_pid_fd(5)); before, they are counted.
 */
static int count_descriptors(void)
{
    struct stat st;
    DIR *d;
    int n = 0;

    if (stat("/proc/self/fd", &st) == 0 && st.st_size > 0)
        return (int)st.st_size;
    d = opendir("/proc/self/fd");
    if (!d)
        return 0;
    while (readdir(d))
        n++;
    closedir(d);
    return n - 3;    // ".", "..", and the one it was read through
}

/* Bytes of memory in use: the second word of statm, in pages; and the first, of address space. */
static void read_memory(double *resident, double *virtual)
{
    char text[128] = "";
    FILE *f = fopen("/proc/self/statm", "r");
    long pages[2] = { 0, 0 };
    char *at = text;

    *resident = *virtual = NAN;
    if (!f)
        return;
    if (fgets(text, sizeof text, f))
        for (int i = 0; i < 2; i++)
            pages[i] = strtol(at, &at, 10);
    fclose(f);
    *virtual = (double)pages[0] * (double)sysconf(_SC_PAGESIZE);
    *resident = (double)pages[1] * (double)sysconf(_SC_PAGESIZE);
}

static void print_process(const struct service *s, struct buf *out)
{
    struct rusage used = { 0 };
    struct rlimit files = { 0 };
    double resident, virtual;

    getrusage(RUSAGE_SELF, &used);
    getrlimit(RLIMIT_NOFILE, &files);
    read_memory(&resident, &virtual);
    single(out, "process_cpu_seconds_total", "counter", "CPU time of the daemon, children aside.",
           (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
               1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec));
    gauge(out, "process_resident_memory_bytes", "Memory in use.", resident);
    gauge(out, "process_virtual_memory_bytes", "Address space in use.", virtual);
    gauge(out, "process_open_fds", "Open descriptors.", count_descriptors());
    gauge(out, "process_max_fds", "Descriptors that may be open.", (double)files.rlim_cur);
    gauge(out, "process_start_time_seconds", "When the process began, since 1970.", s->began_s);
}

/* What the engine says of itself. */
static void print_engine(const struct service *s, struct buf *out)
{
    struct engine_fact facts[ENGINE_FACTS_MAX];
    const int n = executor_facts(&s->cycle.executor, facts);

    for (int i = 0; i < n; i++)
        if (facts[i].metric)
            single(out, facts[i].metric, facts[i].kind == FACT_COUNT ? "counter" : "gauge",
                   facts[i].help, facts[i].number);
}

void metrics_print(const struct service *s, struct buf *out)
{
    print_build(s, out);
    print_jobs(s, out);
    print_gpus(s, out);
    print_energy(s, out);
    print_decisions(&s->metrics, out);
    print_predictions(&s->metrics, out);
    print_watch(s, out);
    print_engine(s, out);
    print_loop(s, out);
    print_http(s, out);
    print_process(s, out);
}
