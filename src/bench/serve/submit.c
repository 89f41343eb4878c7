/* submit.c - durable submits: how many a second, and how long one takes. */
#include "bench/serve/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/stats.h"

#define SUBMITS 4000    // in a run: some seconds
#define CLIENTS 16
#define SYNCS 200

/* What a durable write costs here at the least: 4 KiB and fdatasync(2). */
static int time_sync(const struct serve_bench *b, struct samples *ms, struct err *e)
{
    static const char page[4096];
    char path[4096];
    int rc = 0;

    snprintf(path, sizeof path, "%s/sync", b->scratch);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0)
        return err_set(e, errno, "%s: %s", path, strerror(errno));
    for (int i = 0; i < SYNCS && rc == 0; i++) {
        const double began_s = clock_stopwatch_s();
        if (write(fd, page, sizeof page) != (ssize_t)sizeof page || fdatasync(fd) != 0)
            rc = err_set(e, errno, "%s: %s", path, strerror(errno));
        samples_add(ms, 1e3 * (clock_stopwatch_s() - began_s));
    }
    close(fd);
    return rc;
}

static int submit_one(struct serve_conn *c, struct err *e)
{
    return conn_send(c, "POST", "/v1/jobs",
                     "{\"workload\":\"resnet50\",\"batch\":64,\"steps\":100000,"
                     "\"min_throughput\":2,\"hold\":true,\"cwd\":\"/\","
                     "\"argv\":[\"python3\",\"train.py\",\"--data\",\"/data/train\"],"
                     "\"env\":{\"PATH\":\"/usr/bin:/bin\",\"HOME\":\"/\",\"LANG\":\"C\"}}",
                     e);
}

static int take_answer(struct serve_conn *c, struct samples *ms, struct err *e)
{
    int rc = conn_read(c, e);

    if (rc > 0 && c->status != 201)
        return err_set(e, EREMOTEIO, "a submit: %d: %.300s", c->status, conn_body(c));
    if (rc > 0)
        samples_add(ms, 1e3 * (c->answered_s - c->asked_s));
    return rc;
}

/* Every client submits again as soon as it has its answer, until there are 'n'. */
static int submit_many(struct serve_conn *clients, int n, struct samples *ms, struct err *e)
{
    struct pollfd polls[CLIENTS];
    int n_sent = 0, rc = 0;

    for (int i = 0; i < CLIENTS && rc == 0; i++) {
        polls[i] = (struct pollfd){ .fd = clients[i].fd, .events = POLLIN };
        if (n_sent++ < n)
            rc = submit_one(&clients[i], e);
    }
    while (rc == 0 && ms->n < n) {
        if (poll(polls, CLIENTS, 10000) <= 0)
            return err_set(e, ETIMEDOUT, "no submit was answered in 10 s");
        for (int i = 0; i < CLIENTS && rc >= 0; i++) {
            rc = polls[i].revents ? take_answer(&clients[i], ms, e) : 0;
            if (rc > 0)
                rc = n_sent++ < n ? submit_one(&clients[i], e) : 0;
        }
    }
    return rc;
}

static int connect_clients(struct serve_conn *clients, const char *socket, struct err *e)
{
    int rc = 0;

    for (int i = 0; i < CLIENTS && rc == 0; i++)
        rc = conn_open(socket, &clients[i], e);
    return rc;
}

/* What is told of it, in this order. */
enum { SYNC, PER_S, P50, P99, WORST, GROUP };

int serve_submit(struct serve_bench *b, struct test_daemon *r, struct samples *s, struct err *e)
{
    const int n = serve_scaled(b, SUBMITS);
    struct serve_conn clients[CLIENTS];
    struct samples ms = { 0 };
    int rc = time_sync(b, &s[SYNC], e);

    for (int i = 0; i < CLIENTS; i++)
        clients[i] = (struct serve_conn){ .fd = -1 };
    if (rc == 0)
        rc = daemon_look(r, e);
    const double commits = daemon_metric(r, "gogh_commits_total");
    if (rc == 0)
        rc = connect_clients(clients, r->socket, e);
    const double began_s = clock_stopwatch_s();
    if (rc == 0)
        rc = submit_many(clients, n, &ms, e);
    const double took_s = clock_stopwatch_s() - began_s;
    if (rc == 0)
        rc = daemon_look(r, e);
    if (rc == 0) {
        samples_add(&s[PER_S], n / took_s);
        samples_add(&s[P50], samples_quantile(&ms, 0.5));
        samples_add(&s[P99], samples_quantile(&ms, 0.99));
        samples_add(&s[WORST], samples_quantile(&ms, 1));
        samples_add(&s[GROUP], n / (daemon_metric(r, "gogh_commits_total") - commits));
    }
    for (int i = 0; i < CLIENTS; i++)
        conn_close(&clients[i]);
    samples_release(&ms);
    return rc;
}
