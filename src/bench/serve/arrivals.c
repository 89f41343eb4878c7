/* arrivals.c - ten minutes in which a large cluster fills up, decision by decision.
 *
 * All is real but the GPUs: each job is a keeper (0.18 MB) and a `sleep` (0.09 MB) that the daemon
 * starts, and stops where a plan moves it: 28,000 processes at the end, of the 32,768 that Linux
 * has by default, and a descriptor of the daemon's for each job. The local executor runs nothing on
 * other machines, so all GPUs are of one node. Jobs report nothing; what that costs the part
 * "reports" measures.
 */
#include "bench/serve/serve.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/stats.h"
#include "base/text/json.h"
#include "bench/bench.h"

#define N_GPUS 10000
#define N_TYPES 6
#define N_JOBS 14000
#define SECONDS 600
#define LOOK_S 0.1       // decisions are a second apart as a rule: each is seen
#define SCRAPE_S 10.0    // of /metrics, as by Prometheus
#define SETTLE_S 30.0    // after the last arrival
#define SETTLE_DECISIONS 3
#define JOB_LEFT_S 600    // that jobs outlive the bench, should that be killed

/* Samples a second on a P100, about, of which half the jobs want half; and the smallest batch. */
static const struct kind {
    const char *model;
    double samples_s;
    int batch;
} kinds[] = {
    { "resnet50", 180, 16 },
    { "bert-base", 24, 2 },
    { "vit-base", 45, 4 },
    { "gpt2", 6, 1 },
};
enum { N_KINDS = sizeof kinds / sizeof *kinds, N_BATCHES = 12 };

struct filling {
    struct serve_bench *bench;
    struct test_daemon daemon;
    struct serve_conn submits, watch;
    int n_gpus, n_jobs;
    double seconds;
    double next_look_s, next_scrape_s;    // on the stopwatch
    long n_late;                          // submits that went out more than 0.1 s after their time
    long n_cut;                           // connections that the daemon had cut off

    /* As last seen, and what was seen of it one by one. */
    json_int_t n_decisions, n_certified, n_waiting, n_running;
    json_int_t n_unseen;    // decisions of which only the sums are known
    struct samples decision_s, gap_ratio, submit_ms, place_s;
    double peak_bytes;
};

/* A connection that was idle for long, on a machine that had no core for us, has been cut off: then
 * on a new one. What could not be sent was not asked.
 */
static int ask(struct filling *a, struct serve_conn *c, const char *method, const char *path,
               const char *body, struct err *e)
{
    int rc = conn_ask(c, method, path, body, e);

    if (rc != -EIO)
        return rc;
    a->n_cut++;
    conn_close(c);
    rc = conn_open(a->daemon.socket, c, e);
    return rc < 0 ? rc : conn_ask(c, method, path, body, e);
}

/* ---- watching ---- */

static json_int_t whole(json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

static void take_status(struct filling *a, json_t *o)
{
    const json_int_t n_new = whole(o, "decisions") - a->n_decisions;
    json_t *jobs = json_object_get(o, "jobs");

    if (n_new > 0) {
        samples_add(&a->decision_s, json_number_value(json_object_get(o, "decision_s")));
        if (whole(o, "certified") > a->n_certified)
            samples_add(&a->gap_ratio, json_number_value(json_object_get(o, "gap_ratio")));
        a->n_unseen += n_new - 1;
    }
    a->n_decisions = whole(o, "decisions");
    a->n_certified = whole(o, "certified");
    a->n_waiting = whole(jobs, "waiting");
    a->n_running = whole(jobs, "running");
    a->peak_bytes = fmax(a->peak_bytes, bench_memory(a->daemon.daemon, "VmHWM"));
}

static int look(struct filling *a, struct err *e)
{
    int rc = ask(a, &a->watch, "GET", "/v1/status", NULL, e);
    json_t *o = rc == 0 ? json_loads(conn_body(&a->watch), 0, NULL) : NULL;

    if (rc == 0 && !o)
        rc = err_set(e, EPROTO, "/v1/status is no JSON");
    if (rc == 0)
        take_status(a, o);
    json_decref(o);
    const double now_s = clock_stopwatch_s();
    a->next_look_s = now_s + LOOK_S;
    if (rc == 0 && now_s >= a->next_scrape_s) {
        a->next_scrape_s = now_s + SCRAPE_S;
        rc = daemon_look(&a->daemon, e);
    }
    return rc;
}

/* Look from time to time until 'until_s', and once if that is past and a look is due. */
static int watch_until(struct filling *a, double until_s, struct err *e)
{
    int rc = 0;

    while (rc == 0 && a->next_look_s < fmax(until_s, clock_stopwatch_s())) {
        serve_sleep_until(a->next_look_s);
        rc = look(a, e);
    }
    if (rc == 0)
        serve_sleep_until(until_s);
    return rc;
}

/* ---- arriving ---- */

static int submit(struct filling *a, int i, struct err *e)
{
    const struct kind *k = &kinds[i % N_KINDS];
    const int batch = k->batch * (1 + i / N_KINDS % N_BATCHES);
    const double promise = i % 2 ? 0.5 * k->samples_s / batch : 0;
    char body[512];

    snprintf(body, sizeof body,
             "{\"workload\":\"%s\",\"batch\":%d,\"steps\":1000000000,\"min_throughput\":%.4g,"
             "\"cwd\":\"/\",\"argv\":[\"sleep\",\"%.0f\"],\"env\":{\"PATH\":\"/usr/bin:/bin\"}}",
             k->model, batch, promise, a->seconds + JOB_LEFT_S);
    int rc = ask(a, &a->submits, "POST", "/v1/jobs", body, e);
    if (rc == 0)
        samples_add(&a->submit_ms, 1e3 * (a->submits.answered_s - a->submits.asked_s));
    return rc;
}

/* Evenly; who is late makes up for it. */
static int arrive(struct filling *a, struct err *e)
{
    const double began_s = clock_stopwatch_s();
    int rc = 0;

    a->next_look_s = a->next_scrape_s = began_s;
    for (int i = 0; i < a->n_jobs && rc == 0; i++) {
        const double due_s = began_s + a->seconds * i / a->n_jobs;
        rc = watch_until(a, due_s, e);
        a->n_late += clock_stopwatch_s() > due_s + 0.1;
        if (rc == 0)
            rc = submit(a, i, e);
    }
    return rc;
}

/* Until nobody waits, or decisions have had their say on those who do. */
static int settle(struct filling *a, struct err *e)
{
    const double until_s = clock_stopwatch_s() + SETTLE_S;
    int rc = look(a, e);
    const json_int_t enough = a->n_decisions + SETTLE_DECISIONS;

    while (rc == 0 && a->n_waiting > 0 && a->n_decisions < enough && clock_stopwatch_s() < until_s)
        rc = watch_until(a, clock_stopwatch_s() + 2 * LOOK_S, e);
    return rc < 0 ? rc : look(a, e);
}

/* ---- when all is there ---- */

static int take_page(struct filling *a, json_int_t *after, struct err *e)
{
    char path[64];
    json_t *page, *job;
    size_t i;

    snprintf(path, sizeof path, "/v1/jobs?limit=10000&after=%" JSON_INTEGER_FORMAT, *after);
    int rc = ask(a, &a->watch, "GET", path, NULL, e);
    if (rc < 0)
        return rc;
    page = json_loads(conn_body(&a->watch), 0, NULL);
    json_array_foreach(json_object_get(page, "jobs"), i, job)
    {
        json_t *started = json_object_get(job, "started_s");
        if (json_is_number(started))
            samples_add(&a->place_s, json_number_value(started) -
                                         json_number_value(json_object_get(job, "submit_s")));
    }
    json_t *next = json_object_get(page, "next");
    *after = json_is_integer(next) ? json_integer_value(next) : -1;
    json_decref(page);
    return 0;
}

/* From its submission to its start, of each job that has one. */
static int take_latencies(struct filling *a, struct err *e)
{
    json_int_t after = -1;
    int rc;

    do
        rc = take_page(a, &after, e);
    while (rc == 0 && after >= 0);
    return rc;
}

/* ---- telling ---- */

static void put(json_t *o, const char *key, double v)
{
    json_object_set_new(o, key, json_number_or_null(v));
}

static json_t *spread(struct samples *s)
{
    json_t *o = json_object();

    put(o, "p50", samples_quantile(s, 0.5));
    put(o, "p99", samples_quantile(s, 0.99));
    put(o, "worst", samples_quantile(s, 1));
    return o;
}

static void tell(struct filling *a, json_t *o)
{
    const struct test_daemon *r = &a->daemon;
    const double failed = daemon_metric(r, "gogh_solver_fallbacks_total") +
                          daemon_metric(r, "gogh_solver_deaths_total");
    const double bare = (double)(a->n_decisions - a->n_certified);
    const double stalls = daemon_metric(r, "gogh_loop_stalls_total");
    const struct serve_cpu cpu = daemon_cpu(r);

    serve_tell(a->bench, "arrivals", &a->decision_s);
    serve_tell_one(a->bench, "arrivals-p99", samples_quantile(&a->decision_s, 0.99));
    serve_tell_one(a->bench, "arrivals-failed", failed);
    serve_tell_one(a->bench, "arrivals-bare", bare);
    for (int i = 0; i < a->gap_ratio.n; i++)
        a->gap_ratio.v[i] *= 100;
    serve_tell(a->bench, "arrivals-gap", &a->gap_ratio);
    serve_tell(a->bench, "arrivals-place", &a->place_s);
    serve_tell_one(a->bench, "arrivals-memory", a->peak_bytes / 1e6);
    json_object_set_new(o, "decision_s", spread(&a->decision_s));
    json_object_set_new(o, "gap_percent", spread(&a->gap_ratio));
    json_object_set_new(o, "place_s", spread(&a->place_s));
    json_object_set_new(o, "submit_ms", spread(&a->submit_ms));
    put(o, "peak_bytes", a->peak_bytes);
    put(o, "cpu_s", cpu.self_s);
    put(o, "children_cpu_s", cpu.children_s);
    put(o, "core_wait_s", cpu.wait_s);
    put(o, "stalls", stalls);
    put(o, "longest_turn_ms", 1e3 * daemon_metric(r, "gogh_loop_turn_longest_seconds"));
    json_object_set_new(o, "must_met",
                        json_boolean(failed + bare + stalls == 0 && a->peak_bytes <= 300e6));
}

static json_t *counts(const struct filling *a)
{
    static const char *const metrics[][2] = {
        { "fallbacks", "gogh_solver_fallbacks_total" },
        { "deaths", "gogh_solver_deaths_total" },
        { "repricings", "gogh_repricing_seconds_count" },
        { "starts", "gogh_job_starts_total" },
        { "moves", "gogh_job_moves_total" },
        { "stops", "gogh_job_stops_total" },
        { "refused", "gogh_orders_refused_total" },
    };
    json_t *o =
        json_pack("{s:i, s:i, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "gpus", a->n_gpus, "jobs",
                  a->n_jobs, "seconds", a->seconds, "decisions", a->n_decisions, "unseen",
                  a->n_unseen, "certified", a->n_certified, "running", a->n_running, "waiting",
                  a->n_waiting, "late", (json_int_t)a->n_late, "cut", (json_int_t)a->n_cut);

    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++)
        put(o, metrics[i][0], daemon_metric(&a->daemon, metrics[i][1]));
    return o;
}

static int tell_all(struct filling *a, struct err *e)
{
    struct serve_bench *b = a->bench;
    int rc = daemon_look(&a->daemon, e);
    const struct serve_cpu cpu = daemon_cpu(&a->daemon);

    if (rc < 0)
        return rc;
    b->arrivals = counts(a);
    tell(a, b->arrivals);
    serve_remark(b,
                 "%" JSON_INTEGER_FORMAT " decisions, %" JSON_INTEGER_FORMAT
                 " with a gap; at the end %" JSON_INTEGER_FORMAT " jobs ran, %" JSON_INTEGER_FORMAT
                 " waited; %.0f moves, %.0f times prices anew, %ld submits late",
                 a->n_decisions, a->n_certified, a->n_running, a->n_waiting,
                 daemon_metric(&a->daemon, "gogh_job_moves_total"),
                 daemon_metric(&a->daemon, "gogh_repricing_seconds_count"), a->n_late);
    serve_remark(
        b, "the daemon had %.0f s of the cores, its children %.0f; its loop waited %.1f s for one",
        cpu.self_s, cpu.children_s, cpu.wait_s);
    return serve_note_loop(b, &a->daemon, "arrivals", e);
}

/* ---- the whole ---- */

/* Keepers outlive the daemon, and jobs their keepers: then they are our children. */
static void end_jobs(void)
{
    char path[64];
    pid_t pid;

    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    while ((pid = waitpid(-1, NULL, WNOHANG)) >= 0 || errno == EINTR) {
        FILE *f = pid == 0 ? fopen(path, "re") : NULL;
        char word[24];

        while (f && fscanf(f, "%20s", word) == 1)
            if (strtol(word, NULL, 10) > 1)
                (void)kill((pid_t)strtol(word, NULL, 10), SIGKILL);
        if (f)
            fclose(f);
        if (pid == 0)
            serve_sleep_until(clock_stopwatch_s() + 0.02);
    }
}

static int run(struct filling *a, struct err *e)
{
    const struct serve_content content = { .n_gpus = a->n_gpus, .n_types = N_TYPES };
    int rc = daemon_make(&a->daemon, a->bench->scratch, "arrivals", &content, "power model\n", e);

    if (rc == 0)
        rc = daemon_start(&a->daemon, e);
    if (rc == 0)
        rc = conn_open(a->daemon.socket, &a->submits, e);
    if (rc == 0)
        rc = conn_open(a->daemon.socket, &a->watch, e);
    if (rc == 0)
        rc = arrive(a, e);
    if (rc == 0)
        rc = settle(a, e);
    if (rc == 0)
        rc = take_latencies(a, e);
    return rc < 0 ? rc : tell_all(a, e);
}

int serve_arrivals(struct serve_bench *b, struct err *e)
{
    struct filling a = { .bench = b,
                         .submits = { .fd = -1 },
                         .watch = { .fd = -1 },
                         .n_gpus = serve_scaled(b, N_GPUS),
                         .n_jobs = serve_scaled(b, N_JOBS),
                         .seconds = (double)SECONDS / b->scale };

    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    int rc = run(&a, e);
    conn_close(&a.submits);
    conn_close(&a.watch);
    daemon_release(&a.daemon);
    end_jobs();
    (void)prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
    samples_release(&a.decision_s);
    samples_release(&a.gap_ratio);
    samples_release(&a.submit_ms);
    samples_release(&a.place_s);
    return rc;
}
