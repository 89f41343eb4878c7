/* reports.c - what ten thousand jobs that say how far they are cost the daemon. */
#include "bench/serve/serve.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/rng.h"
#include "base/stats.h"
#include "bench/optimize.h"

#define REPORTING_JOBS 10000
#define REPORTING_S 10
#define REPORTING_SMALL_S 1    // with a part of the size

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

int reporters_open(struct reporters *p, const struct test_daemon *r, struct err *e)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    struct rng rng;

    *p = (struct reporters){ .fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0),
                             .first = r->content.n_ended,
                             .n = r->content.n_running };
    p->at_s = calloc((size_t)p->n, sizeof *p->at_s);
    if (strlen(r->reports) >= sizeof to.sun_path)
        return err_set(e, ENAMETOOLONG, "%s: too long for a socket", r->reports);
    memcpy(to.sun_path, r->reports, strlen(r->reports));
    if (!p->at_s || p->fd < 0 || connect(p->fd, (struct sockaddr *)&to, sizeof to) != 0)
        return err_set(e, errno, "%s: %s", r->reports, strerror(errno));
    rng_init(&rng, 1, "bench-reports");
    for (int i = 0; i < p->n; i++)
        p->at_s[i] = rng_uniform(&rng);
    qsort(p->at_s, (size_t)p->n, sizeof *p->at_s, compare);
    return 0;
}

void reporters_close(struct reporters *p)
{
    if (p->fd >= 0)
        close(p->fd);
    free(p->at_s);
}

/* A job would let a report go that finds no room; here it waits, so that the daemon has them all,
 * and is counted.
 */
static int report_one(struct reporters *p, int i, int second, struct err *e)
{
    const int job = p->first + i;
    char secret[SERVE_SECRET_SIZE], text[128];
    struct pollfd room = { .fd = p->fd, .events = POLLOUT };

    serve_secret(job, secret);
    int n = snprintf(text, sizeof text, "gogh1 %d 0 %s %d", job, secret, 20 * second);
    bool is_full = false;
    while (send(p->fd, text, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL) != n) {
        if (errno != EAGAIN)
            return err_set(e, errno, "a report: %s", strerror(errno));
        is_full = true;
        poll(&room, 1, 1000);
    }
    p->n_sent++;
    p->n_full += is_full;
    return 0;
}

void serve_sleep_until(double at_s)
{
    struct timespec t = { .tv_sec = (time_t)at_s };

    t.tv_nsec = (long)((at_s - (double)t.tv_sec) * 1e9);
    (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

int reporters_run(struct reporters *p, int second, int n_seconds, struct err *e)
{
    const double began_s = clock_stopwatch_s();
    int rc = 0;

    for (int s = 0; s < n_seconds && rc == 0; s++)
        for (int i = 0; i < p->n && rc == 0; i++) {
            const double due_s = began_s + s + p->at_s[i];
            const double late_s = clock_stopwatch_s() - due_s;

            if (late_s < 0)
                serve_sleep_until(due_s);
            p->n_late += late_s > 0.1;
            rc = report_one(p, i, second + s, e);
        }
    if (rc == 0)
        serve_sleep_until(began_s + n_seconds);
    return rc;
}

static int report_run(struct test_daemon *r, struct reporters *p, int second, int n_seconds,
                      struct samples *out, struct err *e)
{
    const double began_s = clock_stopwatch_s();
    const struct serve_cpu before = daemon_cpu(r);
    int rc = reporters_run(p, second, n_seconds, e);
    const struct serve_cpu after = daemon_cpu(r);
    const double took_s = clock_stopwatch_s() - began_s;

    if (rc < 0)
        return rc;
    samples_add(&out[0], 100 * (after.self_s - before.self_s) / took_s);
    samples_add(&out[1], 100 * (after.children_s - before.children_s) / took_s);
    return 0;
}

static void tell_reports(struct serve_bench *b, const struct test_daemon *r,
                         const struct reporters *p, struct samples *f)
{
    serve_tell(b, "reports", &f[0]);
    serve_tell(b, "reports-decide", &f[1]);
    const double taken = daemon_metric(r, "gogh_reports_total");
    const double refused = daemon_metric(r, "gogh_reports_bad_total");
    b->reports = json_pack("{s:I, s:o, s:o, s:I}", "sent", (json_int_t)p->n_sent, "taken",
                           json_number_or_null(taken), "refused", json_number_or_null(refused),
                           "without_room", (json_int_t)p->n_full);
    serve_remark(b,
                 "%ld sent, %.0f taken in, %.0f refused; %ld found no room at first, %ld were late",
                 p->n_sent, taken, refused, p->n_full, p->n_late);
    serve_remark(b, "meanwhile %.0f windows, %.0f decisions, %.0f commits, %.0f moves",
                 daemon_metric(r, "gogh_windows_total"), daemon_metric(r, "gogh_decisions_total"),
                 daemon_metric(r, "gogh_commits_total"), daemon_metric(r, "gogh_job_moves_total"));
}

int serve_reports(struct serve_bench *b, struct err *e)
{
    const int n = serve_scaled(b, REPORTING_JOBS);
    const int n_seconds = b->scale > 1 ? REPORTING_SMALL_S : REPORTING_S;
    const struct serve_content content = { .n_gpus = n, .n_running = n };
    struct samples f[2] = { 0 };    // percent of a core: the daemon, and its decisions
    struct reporters p = { .fd = -1 };
    struct test_daemon r;
    int rc = daemon_make(&r, b->scratch, "reports", &content, "", e);

    if (rc == 0)
        rc = daemon_start(&r, e);
    if (rc == 0)
        rc = daemon_await(&r, "gogh_decisions_total", 1, 60, e);
    if (rc == 0)
        rc = reporters_open(&p, &r, e);
    for (int i = 0; i < serve_runs(b, 3) && rc == 0; i++)
        rc = report_run(&r, &p, 1 + i * n_seconds, n_seconds, f, e);
    if (rc == 0)
        rc = daemon_look(&r, e);
    if (rc == 0) {
        tell_reports(b, &r, &p, f);
        rc = serve_note_loop(b, &r, "reports", e);
    }
    reporters_close(&p);
    daemon_release(&r);
    samples_release(&f[0]);
    samples_release(&f[1]);
    return rc;
}
