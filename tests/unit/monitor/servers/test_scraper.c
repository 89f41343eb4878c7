/* Servers are asked for their pages, by real HTTP on the loopback. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/loop.h"
#include "monitor/servers/scraper.h"
#include "monitor/sensor.h"
#include "unit/suite.h"

/* A server that answers with as many requests as it was asked for pages, times ten. */
struct server {
    pthread_t thread;
    int fd, port;
    bool is_other;    // it says nothing that is known
    atomic_int n_asked;
};

static void *serve(void *self)
{
    struct server *s = self;
    int fd;

    while ((fd = accept(s->fd, NULL, NULL)) >= 0) {
        char asked[1024], text[256];
        const int n = 10 * atomic_fetch_add(&s->n_asked, 1);

        const int len = snprintf(
            text, sizeof text, "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n%s %d\n",
            s->is_other ? "other" : "nv_inference_request_success{m=\"a\"}", n);
        if (read(fd, asked, sizeof asked) > 0)
            ck_assert_int_eq(write(fd, text, (size_t)len), len);
        close(fd);
    }
    return NULL;
}

static void server_open(struct server *s)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof at;

    s->fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(s->fd, (struct sockaddr *)&at, n), 0);
    ck_assert(listen(s->fd, 8) == 0 && getsockname(s->fd, (struct sockaddr *)&at, &n) == 0);
    s->port = ntohs(at.sin_port);
    pthread_create(&s->thread, NULL, serve, s);
}

static void server_close(struct server *s)
{
    shutdown(s->fd, SHUT_RDWR);
    close(s->fd);
    pthread_join(s->thread, NULL);
}

enum { JOBS = 3 };

static struct told {
    int n, n_failed;
    double requests;
    bool is_ready;
    struct err why;
} told[JOBS];

/* Every other page of job 0 is not taken: what it says comes with the next one. */
static bool note(void *self, int job, const struct served *served, const struct err *why)
{
    struct told *t = &told[job];

    ck_assert_ptr_null(self);
    if (!served) {
        t->n_failed++;
        t->why = *why;
        return false;
    }
    ck_assert(t->n == 0 ? served->n_requests == 0 : served->to_s >= served->from_s);
    if (++t->n % 2 == 0)
        return false;
    t->requests += served->n_requests;
    t->is_ready = served->is_ready;
    return true;
}

static void watch_port(struct scraper *s, int job, int port)
{
    char url[64];

    snprintf(url, sizeof url, "http://127.0.0.1:%d/metrics", port);
    scraper_watch(s, job, url, &(struct scrape_promise){ 0 });
}

TEST(servers_are_asked_and_those_that_fail_hold_up_nobody)
{
    struct server good = { 0 }, other = { .is_other = true }, gone = { 0 };
    struct scraper *s;
    struct loop *l;

    memset(told, 0, sizeof told);
    server_open(&good);
    server_open(&other);
    server_open(&gone);
    server_close(&gone);    // its port refuses from now on
    ck_assert_int_eq(loop_create(&l, NULL), 0);
    ck_assert_int_eq(scraper_create(l, scrape_table_builtin(), 0.01, note, NULL, &s, NULL), 0);
    watch_port(s, 0, good.port);
    watch_port(s, 1, other.port);
    watch_port(s, 2, gone.port);
    while (told[0].n < 5 || told[0].n % 2 == 0 || told[1].n_failed < 1 || told[2].n_failed < 1)
        ck_assert_int_eq(loop_turn(l, 1, NULL), 0);
    ck_assert(told[0].is_ready && told[0].n_failed == 0 && told[1].n == 0 && told[2].n == 0);
    ck_assert_double_eq(told[0].requests, 10 * (told[0].n - 1));
    ck_assert_msg(strstr(told[1].why.text, "table of metrics"), "%s", told[1].why.text);
    ck_assert_msg(strstr(told[2].why.text, "connect"), "%s", told[2].why.text);
    const int n = told[0].n;
    scraper_leave(s, 0);
    scraper_leave(s, 0);
    for (int i = told[1].n_failed + 2; told[1].n_failed < i;)
        ck_assert_int_eq(loop_turn(l, 1, NULL), 0);
    ck_assert_int_eq(told[0].n, n);
    scraper_destroy(s);    // perhaps in the middle of a round
    loop_destroy(l);
    server_close(&good);
    server_close(&other);
}
