/* serve.c - `gogh bench serve`: real daemons under load, and what becomes of them. */
#include "bench/bench.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/stats.h"
#include "bench/optimize.h"
#include "bench/serve/serve.h"

#define STALLS_SHOWN 8    // lines of a daemon's log, per part

/* ---- figures ---- */

/* Every figure, with its unit and the limit that it should stay within. */
static const struct bench_limit figures[] = {
    { "arrivals", "s", "decisions while 14,000 jobs come to 10,000 GPUs", NAN, false },
    { "arrivals-gap", "%", "that plans may be above the best ones", NAN, false },
    { "arrivals-place", "s", "from submission to start", NAN, false },
    { "arrivals-p99", "s", "of these", NAN, false },
    { "arrivals-failed", "decisions", "that the greedy plan stood in for", 0, false },
    { "arrivals-bare", "decisions", "whose gap is not known", 0, false },
    { "arrivals-memory", "MB", "of the daemon, the most at a time", 300, false },
    { "reports", "% of core", "10,000 jobs that report once a second", 15, false },
    { "reports-decide", "% of core", "decisions meanwhile, in processes of their own", NAN, false },
    { "list", "ms", "GET /v1/jobs of 10,000 jobs, question to last byte", 50, false },
    { "restart", "s", "100,000 jobs in the store, 90,000 of them ended, to ready", 2, false },
    { "restart-adopt", "s", "10,000 jobs that run, found again, to ready", NAN, false },
    { "memory", "MB", "10,000 GPUs, 20,000 jobs, half of them run and report", 300, false },
    { "memory-peak", "MB", "the most at a time", NAN, false },
    { "stalls", "turns", "of more than 100 ms, in all", 0, false },
    { "longest-turn", "ms", "of the loop", 100, false },
    { "slurm-sbatch", "ms", "sbatch, as a process", NAN, false },
    { "slurm-submit", "ms", "gogh submit, as a process", NAN, false },
    { "slurm-squeue", "ms", "squeue, as a process", NAN, false },
    { "slurm-jobs", "ms", "gogh jobs, as a process", NAN, false },
    { "sync", "ms", "4 KiB and fdatasync on this disk", NAN, false },
    { "submit", "/s", "durable submits, 16 clients", 1000, true },
    { "submit-p50", "ms", "of one submit among these", NAN, false },
    { "submit-p99", "ms", "of one submit among these", 20, false },
    { "submit-worst", "ms", "of one submit among these", NAN, false },
    { "submit-group", "jobs", "submits in one commit", NAN, false },
};

void serve_tell(struct serve_bench *b, const char *name, struct samples *values)
{
    const struct bench_limit *f = figures;
    char limit[64] = "";

    while (strcmp(f->name, name) != 0)
        f++;
    const bool has_limit = !isnan(f->limit), is_within = bench_is_within(f, values);
    json_t *o = bench_limit_json(f, values);
    json_object_set_new(o, "within", has_limit ? json_boolean(is_within) : json_null());
    json_array_append_new(b->figures, o);
    if (has_limit)
        snprintf(limit, sizeof limit, "limit %s %g: %s", f->is_at_least ? ">=" : "<=", f->limit,
                 is_within ? "within" : "MISSED");
    if (!b->is_json)
        printf("%-15s %9.4g %-9s (%.4g .. %.4g, %d runs)  %-24s  %s\n", f->name,
               samples_quantile(values, 0.5), f->unit, samples_quantile(values, 0),
               samples_quantile(values, 1), values->n, limit, f->what);
    fflush(stdout);
}

void serve_tell_one(struct serve_bench *b, const char *name, double value)
{
    struct samples one = { 0 };

    samples_add(&one, value);
    serve_tell(b, name, &one);
    samples_release(&one);
}

void serve_remark(const struct serve_bench *b, const char *format, ...)
{
    va_list args;

    if (b->is_json)
        return;
    va_start(args, format);
    printf("  ");
    vprintf(format, args);
    printf("\n");
    va_end(args);
}

/* The daemon names who held its loop. */
static void remark_stalls(const struct serve_bench *b, struct test_daemon *r)
{
    int n = 0;

    for (const char *at = strstr(daemon_log(r), "the loop was held"); at && n < STALLS_SHOWN; n++) {
        const char *end = strchrnul(at, '\n');
        serve_remark(b, "  %.*s", (int)(end - at), at);
        at = strstr(end, "the loop was held");
    }
}

int serve_note_loop(struct serve_bench *b, struct test_daemon *r, const char *part, struct err *e)
{
    int rc = daemon_look(r, e);
    const double n = daemon_metric(r, "gogh_loop_stalls_total");
    const double ms = 1e3 * daemon_metric(r, "gogh_loop_turn_longest_seconds");

    b->n_stalls += n;
    b->longest_ms = fmax(b->longest_ms, ms);
    json_array_append_new(b->stalls, json_pack("{s:s, s:o, s:o}", "part", part, "stalls",
                                               json_number_or_null(n), "longest_turn_ms",
                                               json_number_or_null(ms)));
    serve_remark(b, "%s: %g turns held the loop for more than 100 ms; the longest took %.1f ms",
                 part, n, ms);
    remark_stalls(b, r);
    return rc;
}

int serve_scaled(const struct serve_bench *b, int n)
{
    return n / b->scale > 3 ? n / b->scale : 3;
}

static int n_runs(const struct serve_bench *b, int otherwise)
{
    return b->runs ? b->runs : otherwise;
}

static int ask_all(struct serve_bench *b, const struct serve_part *p, struct test_daemon *r,
                   struct samples *s, struct err *e)
{
    int rc = daemon_start(r, e);

    if (rc == 0 && p->content.n_running > 0)
        rc = daemon_await(r, "gogh_decisions_total", 1, 60, e);
    for (int i = 0; i < (p->runs > 0 ? n_runs(b, p->runs) : 1) && rc == 0; i++)
        rc = p->ask(b, r, s, e);
    if (rc < 0)
        return rc;
    for (int i = 0; i < SERVE_FIGURES_MAX && p->figures[i]; i++)
        serve_tell(b, p->figures[i], &s[i]);
    if (p->remark)
        p->remark(b, r);
    return serve_note_loop(b, r, p->name, e);
}

static struct serve_content scaled(const struct serve_bench *b, struct serve_content c)
{
    int *const counts[] = { &c.n_running, &c.n_waiting, &c.n_held, &c.n_ended };

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        *counts[i] = *counts[i] > 0 ? serve_scaled(b, *counts[i]) : 0;
    c.n_gpus = c.n_running > 0 ? c.n_running : 100;
    return c;
}

int serve_part_run(struct serve_bench *b, const struct serve_part *p, struct err *e)
{
    const struct serve_content content = scaled(b, p->content);
    struct samples s[SERVE_FIGURES_MAX] = { 0 };
    struct test_daemon r;
    int rc = daemon_make(&r, b->scratch, p->name, &content, "", e);

    if (rc == 0)
        rc = ask_all(b, p, &r, s, e);
    daemon_release(&r);
    for (int i = 0; i < SERVE_FIGURES_MAX; i++)
        samples_release(&s[i]);
    return rc;
}

/* ---- the list ---- */

#define LISTS 20    // in a run

static int ask_list(struct serve_bench *b, struct test_daemon *r, struct samples *p50_ms,
                    struct err *e)
{
    struct samples ms = { 0 };
    int rc = 0;

    (void)b;
    for (int i = 0; i < LISTS && rc == 0; i++) {
        rc = conn_ask(&r->conn, "GET", "/v1/jobs?limit=10000", NULL, e);
        samples_add(&ms, 1e3 * (r->conn.answered_s - r->conn.asked_s));
    }
    if (rc == 0)
        samples_add(p50_ms, samples_quantile(&ms, 0.5));
    samples_release(&ms);
    return rc;
}

static void remark_list(struct serve_bench *b, struct test_daemon *r)
{
    serve_remark(b, "%.1f MB each; a quarter of the jobs run",
                 (double)(r->conn.in.len - r->conn.n_head) / 1e6);
}

/* ---- restart ---- */

static int time_restarts(struct serve_bench *b, struct serve_content c, const char *name,
                         const char *figure, struct err *e)
{
    struct samples seconds = { 0 };
    struct test_daemon r;

    c = scaled(b, c);
    int rc = daemon_make(&r, b->scratch, name, &c, "", e);
    for (int i = 0; i < n_runs(b, 5) && rc == 0; i++) {
        rc = daemon_start(&r, e);
        if (rc == 0) {
            samples_add(&seconds, r.ready_s);
            if (i == 0)
                rc = serve_note_loop(b, &r, name, e);
            daemon_stop(&r);
        }
    }
    if (rc == 0)
        serve_tell(b, figure, &seconds);
    daemon_release(&r);
    samples_release(&seconds);
    return rc;
}

static int part_restart(struct serve_bench *b, struct err *e)
{
    const struct serve_content ended = { .n_ended = 90000, .n_waiting = 10000, .is_drained = true };
    const struct serve_content running = { .n_running = 10000 };
    int rc = time_restarts(b, ended, "restart", "restart", e);

    return rc < 0 ? rc : time_restarts(b, running, "adopt", "restart-adopt", e);
}

/* ---- memory ---- */

static int ask_memory(struct serve_bench *b, struct test_daemon *r, struct samples *s,
                      struct err *e)
{
    int rc = reporters_run(r, 3, e);

    (void)b;
    if (rc == 0)
        rc = conn_ask(&r->conn, "GET", "/v1/jobs?limit=10000", NULL, e);
    if (rc < 0)
        return rc;
    samples_add(&s[0], bench_memory(r->daemon, "VmRSS") / 1e6);
    samples_add(&s[1], bench_memory(r->daemon, "VmHWM") / 1e6);
    return 0;
}

/* ---- the whole ---- */

/* Of the jobs that are listed a quarter runs: those have most to tell. */
static const struct serve_part parts[] = {
    { .name = "submit",
      .content = { .n_held = 10000 },
      .runs = 5,
      .figures = { "sync", "submit", "submit-p50", "submit-p99", "submit-worst", "submit-group" },
      .ask = serve_submit },
    { .name = "list",
      .content = { .n_running = 2500, .n_held = 7500 },
      .runs = 5,
      .figures = { "list" },
      .ask = ask_list,
      .remark = remark_list },
    { .name = "reports",
      .content = { .n_running = 10000 },
      .runs = 3,
      .figures = { "reports", "reports-decide" },
      .ask = serve_report,
      .remark = serve_remark_reports },
    { .name = "restart", .run = part_restart },
    { .name = "memory",
      .content = { .n_running = 10000, .n_waiting = 10000 },
      .figures = { "memory", "memory-peak" },
      .ask = ask_memory },
    { .name = "arrivals", .run = serve_arrivals },
    { .name = "slurm", .run = serve_slurm },
};
enum { N_PARTS = sizeof parts / sizeof *parts };

bool bench_serve_knows(struct slice part)
{
    for (int i = 0; i < N_PARTS; i++)
        if (slice_is(part, parts[i].name))
            return true;
    return false;
}

static int run_parts(struct serve_bench *b, const char *names, struct err *e)
{
    int rc = 0;

    for (int i = 0; i < N_PARTS && rc == 0; i++)
        if (bench_wants(names, parts[i].name)) {
            rc = parts[i].run ? parts[i].run(b, e) : serve_part_run(b, &parts[i], e);
            if (rc < 0)
                rc = err_prefix(e, "%s", parts[i].name);
        }
    if (rc == 0 && json_array_size(b->stalls) > 0) {
        serve_tell_one(b, "stalls", b->n_stalls);
        serve_tell_one(b, "longest-turn", b->longest_ms);
    }
    return rc;
}

static int run_in(struct serve_bench *b, const char *names, struct err *e)
{
    b->figures = json_array();
    b->stalls = json_array();
    int rc = run_parts(b, names, e);
    json_t *o = json_pack("{s:s, s:i, s:o, s:o}", "version", GOGH_VERSION, "scale", b->scale,
                          "figures", b->figures, "loops", b->stalls);
    if (b->reports)
        json_object_set_new(o, "reports", b->reports);
    if (b->arrivals)
        json_object_set_new(o, "arrivals", b->arrivals);
    if (b->has_no_slurm)
        json_object_set_new(o, "left_out", json_pack("[s]", "slurm"));
    if (rc == 0 && b->is_json)
        json_print(o, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    else
        json_decref(o);
    return rc;
}

int bench_serve(const struct bench_options *how, struct err *e)
{
    char scratch[4096];
    struct serve_bench b = { .scratch = scratch,
                             .scale = (int)how->scale,
                             .runs = (int)how->runs,
                             .is_json = how->is_json };
    int rc = bench_scratch(scratch, sizeof scratch, e);

    if (rc == 0) {
        rc = run_in(&b, how->names, e);
        bench_scratch_remove(scratch);
    }
    return rc;
}
