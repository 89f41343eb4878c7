#include "daemon/http/inner.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define BACKLOG 512          // connections that wait to be taken; the system may allow less
#define ACCEPTS_MAX 64       // in one turn
#define REOPEN_S 0.1         // after the system ran out of descriptors
#define IDLE_ENOUGH_S 1.0    // of a connection that may be cut for somebody new
#define HOG_ENOUGH_S 0.1     // the same, of who has more than a quarter of all connections

/* ---- taking connections ---- */

static void watch_listeners(struct http *h);

static void unwatch_listeners(struct http *h)
{
    h->is_full = true;
    for (int i = 0; i < LISTENERS; i++)
        if (h->listeners[i].fd >= 0)
            loop_unwatch(h->loop, h->listeners[i].fd);
}

void http_reopen(void *self)
{
    struct http *h = self;

    if (h->is_full && !h->is_stopping)
        watch_listeners(h);
}

static bool is_hog(const struct conn *c)
{
    return *http_party(c->http, c->party) > c->http->config->connections_max / 4;
}

/* Cut who has asked for nothing, or not to the end, for longest: first of those who have more than
 * their share, so that nobody can keep the others out. Its end makes room (http_conn_closed).
 */
static void cut_idlest(struct http *h)
{
    const double now_s = clock_stopwatch_s();
    struct conn *found = NULL;
    bool is_found_hog = false;

    for (struct conn *c = h->conns; c != NULL; c = c->next) {
        const bool is = is_hog(c);

        if (c->is_cut || c->state == CONN_ANSWERING || (is_found_hog && !is) ||
            now_s - c->since_s < (is ? HOG_ENOUGH_S : IDLE_ENOUGH_S))
            continue;
        if (found == NULL || is != is_found_hog || c->since_s < found->since_s) {
            found = c;
            is_found_hog = is;
        }
    }
    if (found != NULL)
        http_cut(found);
}

static bool is_out_of_descriptors(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

/* One connection; false: no more for now. */
static bool accept_one(struct listener *l)
{
    struct sockaddr_storage from = { 0 };
    socklen_t len = sizeof from;
    struct http *h = l->http;
    int fd;

    if (h->stats.n_connections >= h->config->connections_max) {
        cut_idlest(h);
        unwatch_listeners(h);
        loop_timer_set(&h->reopen, HOG_ENOUGH_S);    // somebody may be idle enough by then
        return false;
    }
    fd = accept4(l->fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && is_out_of_descriptors(errno)) {
        log_warn("http: no more connections for now: %s; raise the limit of open files",
                 strerror(errno));
        unwatch_listeners(h);
        loop_timer_set(&h->reopen, REOPEN_S);
        return false;
    }
    if (fd < 0)
        return errno == ECONNABORTED || errno == EINTR;
    if (MHD_add_connection(l->server->mhd, fd, (struct sockaddr *)&from, len) != MHD_YES)
        log_warn("http: a connection could not be taken");    // and is closed
    return true;
}

static void on_listener(void *self, int fd, unsigned ready)
{
    struct listener *l = self;
    bool goes_on = true;

    (void)fd;
    (void)ready;
    for (int i = 0; i < ACCEPTS_MAX && goes_on; i++)
        goes_on = accept_one(l);
    http_run_server(l->server);
}

static void watch_listeners(struct http *h)
{
    struct err e = { 0 };

    h->is_full = false;
    for (int i = 0; i < LISTENERS; i++) {
        struct listener *l = &h->listeners[i];

        if (l->fd >= 0 &&
            loop_watch(h->loop, l->fd, LOOP_READ, "http: a connection", on_listener, l, &e) < 0)
            log_error("http: cannot listen any more: %s", e.text);
    }
}

void http_conn_closed(struct http *h)
{
    if (h->is_full && !h->is_stopping)
        loop_timer_set(&h->reopen, 0);
}

/* ---- the Unix socket ---- */

/* Somebody else's, or what is left of somebody? */
static int clear_stale(const struct sockaddr_un *at, struct err *e)
{
    struct stat st;
    int fd, rc, error;

    if (lstat(at->sun_path, &st) < 0)
        return 0;
    if (!S_ISSOCK(st.st_mode))
        return err_set(e, EEXIST, "%s: is there and is no socket: remove it", at->sun_path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_set(e, errno, "a socket: %s", strerror(errno));
    rc = connect(fd, (const struct sockaddr *)at, sizeof *at);
    error = errno;
    close(fd);
    if (rc == 0 || error == EAGAIN)
        return err_set(e, EADDRINUSE, "%s: another daemon listens there: stop it first",
                       at->sun_path);
    if (error == ECONNREFUSED && unlink(at->sun_path) == 0)
        return 0;
    return err_set(e, error, "%s: %s", at->sun_path, strerror(error));
}

static int bind_unix(struct listener *l, const struct sockaddr_un *at, mode_t mode, struct err *e)
{
    struct stat st;

    if (bind(l->fd, (const struct sockaddr *)at, sizeof *at) < 0)
        return err_set(e, errno, "%s: %s; make its directory, and let the daemon write there",
                       at->sun_path, strerror(errno));
    l->path = l->http->config->socket;
    if (lstat(at->sun_path, &st) == 0) {
        l->dev = st.st_dev;
        l->ino = st.st_ino;
    }
    /* Before listen: nobody comes in with the mode that bind gave. */
    if (chmod(at->sun_path, mode) < 0 || listen(l->fd, BACKLOG) < 0)
        return err_set(e, errno, "%s: %s", at->sun_path, strerror(errno));
    return 0;
}

static int open_unix(struct listener *l, struct err *e)
{
    const struct config *c = l->http->config;
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    int rc;

    if (strlen(c->socket) >= sizeof at.sun_path)
        return err_set(e, ENAMETOOLONG, "socket %s: a path of at most %zu bytes can be one",
                       c->socket, sizeof at.sun_path - 1);
    memcpy(at.sun_path, c->socket, strlen(c->socket) + 1);
    rc = clear_stale(&at, e);
    if (rc < 0)
        return rc;
    l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->fd < 0)
        return err_set(e, errno, "a socket: %s", strerror(errno));
    return bind_unix(l, &at, c->socket_mode, e);
}

/* ---- TCP ---- */

/* "HOST:PORT" or "[HOST]:PORT" apart. */
static int split_address(const char *text, char *host, size_t n_host, char *port, size_t n_port,
                         struct err *e)
{
    const char *colon = strrchr(text, ':');
    size_t len = colon != NULL ? (size_t)(colon - text) : 0;

    if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
        text++;
        len -= 2;
    }
    if (colon == NULL || len == 0 || len >= n_host || strlen(colon + 1) >= n_port)
        return err_set(e, EINVAL, "listen %s: want HOST:PORT, as 127.0.0.1:7117", text);
    snprintf(host, n_host, "%.*s", (int)len, text);
    snprintf(port, n_port, "%s", colon + 1);
    return 0;
}

/* Names have been looked up: what counts is the address that came of it. */
static bool is_loopback(const struct addrinfo *at)
{
    char host[NI_MAXHOST], text[NI_MAXHOST + 2];

    if (getnameinfo(at->ai_addr, at->ai_addrlen, host, sizeof host, NULL, 0, NI_NUMERICHOST) != 0)
        return false;
    snprintf(text, sizeof text, at->ai_family == AF_INET6 ? "[%s]" : "%s", host);
    return config_is_loopback(text);
}

static int bind_tcp(struct listener *l, const struct addrinfo *at, struct err *e)
{
    const struct config *c = l->http->config;
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } is;
    socklen_t len = sizeof is;
    int on = 1;

    if (c->cert == NULL && !is_loopback(at))
        return err_set(e, EACCES,
                       "listen %s: without TLS only the loopback is allowed: add cert=FILE and "
                       "key=FILE, or listen on 127.0.0.1",
                       c->listen);
    l->fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->fd < 0)
        return err_set(e, errno, "a socket: %s", strerror(errno));
    memset(&is, 0, sizeof is);
    (void)setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(l->fd, at->ai_addr, at->ai_addrlen) < 0 || listen(l->fd, BACKLOG) < 0 ||
        getsockname(l->fd, &is.any, &len) < 0)
        return err_set(e, errno, "listen %s: %s", c->listen, strerror(errno));
    l->http->port = ntohs(is.any.sa_family == AF_INET6 ? is.v6.sin6_port : is.v4.sin_port);
    return 0;
}

static int open_tcp(struct listener *l, struct err *e)
{
    const struct addrinfo hints = { .ai_family = AF_UNSPEC,
                                    .ai_socktype = SOCK_STREAM,
                                    .ai_flags = AI_PASSIVE };
    const char *text = l->http->config->listen;
    struct addrinfo *found = NULL;
    char host[256] = "", port[16] = "";
    int rc = split_address(text, host, sizeof host, port, sizeof port, e);

    if (rc < 0)
        return rc;
    rc = getaddrinfo(host, port, &hints, &found);
    if (rc != 0)
        return err_set(e, EINVAL, "listen %s: %s; want HOST:PORT, as 127.0.0.1:7117", text,
                       gai_strerror(rc));
    rc = bind_tcp(l, found, e);
    freeaddrinfo(found);
    return rc;
}

int http_open_listeners(struct http *h, struct err *e)
{
    int rc = 0;

    if (h->config->socket != NULL)
        rc = open_unix(&h->listeners[0], e);
    if (rc == 0 && h->config->listen != NULL)
        rc = open_tcp(&h->listeners[1], e);
    if (rc == 0)
        watch_listeners(h);
    return rc;
}

void http_close_listeners(struct http *h)
{
    for (int i = 0; i < LISTENERS; i++) {
        struct listener *l = &h->listeners[i];
        struct stat st;

        if (l->fd < 0)
            continue;
        loop_unwatch(h->loop, l->fd);
        if (l->path != NULL && lstat(l->path, &st) == 0 && st.st_dev == l->dev &&
            st.st_ino == l->ino)
            unlink(l->path);
        close(l->fd);
        l->fd = -1;
    }
}
