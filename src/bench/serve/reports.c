/* reports.c - what ten thousand jobs that say how far they are cost the daemon. */
#include "bench/serve/serve.h"

#include <errno.h>
#include <jansson.h>
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
#include "base/text/json.h"

#define REPORTING_S 10
#define REPORTING_SMALL_S 1    // with a part of the size

static int reporters_open(struct reporters *p, const struct test_daemon *r, struct err *e)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    struct rng rng;

    *p = (struct reporters){ .fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0),
                             .first = r->content.n_ended,
                             .n = r->content.n_running,
                             .second = 1 };
    p->at_s = calloc((size_t)p->n, sizeof *p->at_s);
    memcpy(to.sun_path, r->reports, strlen(r->reports));    // no longer than the socket's
    if (!p->at_s || p->fd < 0 || connect(p->fd, (struct sockaddr *)&to, sizeof to) != 0)
        return err_set(e, errno, "%s: %s", r->reports, strerror(errno));
    rng_init(&rng, 1, "bench-reports");
    for (int i = 0; i < p->n; i++)
        p->at_s[i] = rng_uniform(&rng);
    qsort(p->at_s, (size_t)p->n, sizeof *p->at_s, by_number);
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
static int report_one(struct reporters *p, int i, struct err *e)
{
    const int job = p->first + i;
    char secret[SERVE_SECRET_SIZE], text[128];
    struct pollfd room = { .fd = p->fd, .events = POLLOUT };

    serve_secret(job, secret);
    int n = snprintf(text, sizeof text, "gogh1 %d 0 %s %d", job, secret, 20 * p->second);
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

int reporters_run(struct test_daemon *r, int n_seconds, struct err *e)
{
    struct reporters *p = &r->reporters;
    int rc = p->fd < 0 ? reporters_open(p, r, e) : 0;
    const double began_s = clock_stopwatch_s();

    for (int s = 0; s < n_seconds && rc == 0; s++, p->second++)
        for (int i = 0; i < p->n && rc == 0; i++) {
            const double due_s = began_s + s + p->at_s[i];
            const double late_s = clock_stopwatch_s() - due_s;

            if (late_s < 0)
                serve_sleep_until(due_s);
            p->n_late += late_s > 0.1;
            rc = report_one(p, i, e);
        }
    if (rc == 0)
        serve_sleep_until(began_s + n_seconds);
    return rc;
}

/* Percent of a core: the daemon, and its decisions. */
int serve_report(struct serve_bench *b, struct test_daemon *r, struct samples *s, struct err *e)
{
    const double began_s = clock_stopwatch_s();
    const struct serve_cpu before = daemon_cpu(r);
    int rc = reporters_run(r, b->scale > 1 ? REPORTING_SMALL_S : REPORTING_S, e);
    const struct serve_cpu after = daemon_cpu(r);
    const double took_s = clock_stopwatch_s() - began_s;

    if (rc < 0)
        return rc;
    samples_add(&s[0], 100 * (after.self_s - before.self_s) / took_s);
    samples_add(&s[1], 100 * (after.children_s - before.children_s) / took_s);
    return daemon_look(r, e);
}

void serve_remark_reports(struct serve_bench *b, struct test_daemon *r)
{
    const struct reporters *p = &r->reporters;
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
