#include "daemon/http/http.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/text/file.h"
#include "base/grow.h"
#include "base/log.h"
#include "daemon/http/inner.h"

/* Bytes that libmicrohttpd may use for one connection: its request line, its headers, and
 * the piece of body that it reads at once. Ours have some 500 bytes of headers.
 */
#define CONNECTION_BYTES (24 << 10)
#define PEM_MAX (1L << 20)
#define SWEEP_MIN_S 0.02
#define SWEEP_MAX_S 1.0
#define LAST_RUNS 50    // at the end, for answers that are on their way
#define TLS_PRIORITIES "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

/* ---- servers ---- */

void http_run_server(void *self)
{
    struct server *d = self;
    MHD_UNSIGNED_LONG_LONG wait_ms = 0;

    if (MHD_run(d->mhd) != MHD_YES)
        log_error("http: libmicrohttpd cannot run");
    if (MHD_get_timeout(d->mhd, &wait_ms) == MHD_YES)
        loop_timer_set(&d->timer, (double)wait_ms / 1000);
    else
        loop_timer_clear(&d->timer);
}

/* Nothing becomes readable by this: without a thread of its own libmicrohttpd has no descriptor
 * for it, and looks for who was resumed when it runs.
 */
void http_resume(struct request_inner *q)
{
    assert(q->is_asleep);
    q->is_asleep = false;
    MHD_resume_connection(q->mhd);
    loop_timer_set(&q->conn->server->timer, 0);
}

static void on_server(void *self, int fd, unsigned ready)
{
    (void)fd;
    (void)ready;
    http_run_server(self);
}

/* ---- connections ---- */

void http_cut(struct conn *c)
{
    if (c->is_cut)
        return;
    c->is_cut = true;
    c->http->stats.n_cut++;
    shutdown(c->fd, SHUT_RDWR);    // libmicrohttpd finds it closed, and ends it
}

/* A number for the address a connection comes from. */
static uint64_t address_of(int fd)
{
    struct sockaddr_storage from = { 0 };
    socklen_t len = sizeof from;

    if (getpeername(fd, (struct sockaddr *)&from, &len) < 0)
        return 0;
    if (from.ss_family == AF_INET)
        return http_hash(&((struct sockaddr_in *)&from)->sin_addr, 4);
    if (from.ss_family == AF_INET6)    // a site's part: the rest is the client's to choose
        return http_hash(&((struct sockaddr_in6 *)&from)->sin6_addr, 8);
    return http_hash("", 0);
}

int *http_party(struct http *h, uint64_t party)
{
    return &h->parties[http_mix(party) % PARTIES];
}

static uint64_t user_of(int fd)
{
    struct ucred peer = { .uid = (uid_t)-1 };
    socklen_t len = sizeof peer;

    (void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
    return peer.uid;
}

static void conn_begin(struct server *d, struct MHD_Connection *mhd, void **context)
{
    struct conn *c = heap_array(1, sizeof *c);
    struct http *h = d->http;
    int domain = 0;
    socklen_t len = sizeof domain;

    c->http = h;
    c->server = d;
    c->fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    c->is_unix = getsockopt(c->fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_UNIX;
    c->party = c->is_unix ? user_of(c->fd) : address_of(c->fd);
    ++*http_party(h, c->party);
    c->state = CONN_WAITING;
    c->since_s = clock_stopwatch_s();
    arena_init(&c->arena);
    c->next = h->conns;
    if (h->conns != NULL)
        h->conns->prev = c;
    h->conns = c;
    h->stats.n_connections++;
    *context = c;
}

static void conn_end(struct conn *c)
{
    struct http *h = c->http;

    assert(c->request == NULL);
    if (c->prev != NULL)
        c->prev->next = c->next;
    else
        h->conns = c->next;
    if (c->next != NULL)
        c->next->prev = c->prev;
    --*http_party(h, c->party);
    arena_release(&c->arena);
    free(c);
    h->stats.n_connections--;
    http_conn_closed(h);
}

static void on_connection(void *self, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    if (what == MHD_CONNECTION_NOTIFY_STARTED)
        conn_begin(self, mhd, context);
    else if (*context != NULL)
        conn_end(*context);
}

/* libmicrohttpd's own timeout begins anew with every byte; ours does not. */
static bool is_late(const struct conn *c, double now_s)
{
    const double timeout_s = c->http->config->timeout_s;

    return now_s - c->since_s > (c->state == CONN_ANSWERING ? c->allowed_s : timeout_s);
}

static double sweep_s(const struct http *h)
{
    return fmin(fmax(h->config->timeout_s / 4, SWEEP_MIN_S), SWEEP_MAX_S);
}

static void on_sweep(void *self)
{
    const double now_s = clock_stopwatch_s();
    struct http *h = self;

    for (struct conn *c = h->conns; c != NULL; c = c->next)
        if (is_late(c, now_s))
            http_cut(c);
    loop_timer_set(&h->sweep, sweep_s(h));
}

/* ---- making ---- */

static void on_log(void *self, const char *format, va_list args)
{
    char text[512];

    (void)self;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    vsnprintf(text, sizeof text, format, args);
#pragma GCC diagnostic pop
    text[strcspn(text, "\n")] = '\0';
    log_debug("http: %s", text);
}

struct http *http_create(struct loop *l, const struct config *c, struct auth *a,
                         const struct route *table, int n, void *service)
{
    struct http *h = heap_array(1, sizeof *h);

    *h = (struct http){ .loop = l,
                        .config = c,
                        .auth = a,
                        .auth_generation = 1,
                        .routes = table,
                        .n_routes = n,
                        .service = service };
    h->held_end = &h->held;
    h->buckets = heap_array(LIMIT_BUCKETS, sizeof *h->buckets);
    for (int i = 0; i < SERVERS; i++) {
        h->servers[i] = (struct server){ .http = h, .epoll_fd = -1 };
        loop_timer_init(&h->servers[i].timer, l, "http: a server", http_run_server, &h->servers[i]);
    }
    for (int i = 0; i < LISTENERS; i++)
        h->listeners[i] = (struct listener){ .http = h, .fd = -1 };
    h->listeners[0].server = &h->servers[0];
    h->listeners[1].server = &h->servers[c->cert != NULL];
    loop_timer_init(&h->sweep, l, "http: who dawdles", on_sweep, h);
    loop_timer_init(&h->reopen, l, "http: listen again", http_reopen, h);
    return h;
}

static struct MHD_Daemon *start(struct server *d, unsigned flags, const char *key, const char *cert)
{
    struct http *h = d->http;
    const struct MHD_OptionItem tls[] = {
        { MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)key },
        { MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)cert },
        { MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)TLS_PRIORITIES },
        { MHD_OPTION_END, 0, NULL },
    };
    const struct MHD_OptionItem none[] = { { MHD_OPTION_END, 0, NULL } };

    flags |=
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG;
    return MHD_start_daemon(
        flags, 0, NULL, NULL, http_on_access, h, MHD_OPTION_EXTERNAL_LOGGER, on_log, h,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)h->config->connections_max + 1,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)ceil(h->config->timeout_s) + 1,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, d, MHD_OPTION_NOTIFY_COMPLETED, http_on_completed, h,
        MHD_OPTION_URI_LOG_CALLBACK, http_on_uri, h, MHD_OPTION_ARRAY, key != NULL ? tls : none,
        MHD_OPTION_END);
}

static int watch_server(struct server *d, struct err *e)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(d->mhd, MHD_DAEMON_INFO_EPOLL_FD);

    if (info == NULL)
        return err_set(e, ENOTSUP, "this libmicrohttpd was built without epoll");
    d->epoll_fd = info->epoll_fd;
    return loop_watch(d->http->loop, d->epoll_fd, LOOP_READ, "http: requests", on_server, d, e);
}

static int open_plain(struct http *h, struct err *e)
{
    h->servers[0].mhd = start(&h->servers[0], 0, NULL, NULL);
    if (h->servers[0].mhd == NULL)
        return err_set(e, EIO, "libmicrohttpd does not start; GOGH_LOG=debug tells more");
    return watch_server(&h->servers[0], e);
}

static int open_tls(struct http *h, struct err *e)
{
    const struct config *c = h->config;
    const char *cert = NULL, *key = NULL;
    struct arena a;
    size_t len = 0;
    int rc;

    if (c->key == NULL)
        return err_set(e, EINVAL, "listen %s: a certificate needs its key: add key=FILE",
                       c->listen);
    arena_init(&a);
    rc = file_read(&a, c->cert, NULL, PEM_MAX, &cert, &len, e);
    if (rc == 0)
        rc = file_read(&a, c->key, NULL, PEM_MAX, &key, &len, e);
    if (rc == 0) {
        h->servers[1].mhd =
            start(&h->servers[1], MHD_USE_TLS, key, cert);    // keeps no pointer to either
        if (h->servers[1].mhd == NULL)
            rc = err_set(e, EINVAL, "%s and %s are no certificate (PEM) with its key", c->cert,
                         c->key);
    }
    arena_release(&a);
    return rc < 0 ? rc : watch_server(&h->servers[1], e);
}

int http_listen(struct http *h, struct err *e)
{
    const struct config *c = h->config;
    int rc = open_plain(h, e);

    if (rc == 0 && c->listen != NULL && c->cert != NULL)
        rc = open_tls(h, e);
    if (rc == 0)
        rc = http_open_listeners(h, e);
    if (rc == 0)
        loop_timer_set(&h->sweep, sweep_s(h));
    return rc;
}

void http_use_auth(struct http *h, struct auth *a)
{
    h->auth = a;
    h->auth_generation++;
    for (struct conn *c = h->conns; c != NULL; c = c->next)
        if (c->request != NULL && c->request->stream != NULL && !http_may_stay(c->request))
            stream_end(c->request->stream);
}

int http_port(const struct http *h)
{
    return h->port;
}

struct http_stats http_stats(const struct http *h)
{
    return h->stats;
}

/* ---- the end ---- */

/* Everything that sleeps must be awake before libmicrohttpd is stopped. */
static bool answer_all(struct http *h)
{
    const struct err stopping = { .code = ESHUTDOWN, .text = "the daemon is stopping" };
    bool is_busy = false;

    http_flush(h, &stopping);
    for (struct conn *c = h->conns; c != NULL; c = c->next) {
        struct request_inner *q = c->request;

        if (q == NULL)
            continue;
        is_busy = is_busy || q->stage >= STAGE_WORKING;
        if (q->stage == STAGE_WORKING)
            reply_err(&q->r, &stopping);
        if (q->stream != NULL)
            stream_end(q->stream);
    }
    return is_busy;
}

static void run_servers(struct http *h)
{
    for (int i = 0; i < SERVERS; i++)
        if (h->servers[i].mhd != NULL)
            (void)MHD_run(h->servers[i].mhd);
}

static void stop_server(struct server *d)
{
    loop_timer_clear(&d->timer);
    if (d->mhd == NULL)
        return;
    if (d->epoll_fd >= 0)
        loop_unwatch(d->http->loop, d->epoll_fd);
    MHD_stop_daemon(d->mhd);
}

void http_destroy(struct http *h)
{
    if (h == NULL)
        return;
    h->is_stopping = true;
    http_close_listeners(h);
    loop_timer_clear(&h->sweep);
    loop_timer_clear(&h->reopen);
    for (int i = 0; i < LAST_RUNS && answer_all(h); i++)
        run_servers(h);
    for (int i = 0; i < SERVERS; i++)
        stop_server(&h->servers[i]);
    assert(h->conns == NULL);
    free(h->buckets);
    free(h);
}
