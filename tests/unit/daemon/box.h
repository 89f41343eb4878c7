/* box.h - HTTP in the test's own process and thread: a loop, a directory, tokens, clients.
 *
 * Clients are plain sockets that never block; whoever waits for an answer turns the loop
 * meanwhile. What takes longer than BOX_PATIENCE_S has failed.
 */
#ifndef TESTS_UNIT_DAEMON_BOX_H
#define TESTS_UNIT_DAEMON_BOX_H

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text/file.h"
#include "base/loop.h"
#include "daemon/config/auth.h"
#include "daemon/config/config.h"
#include "daemon/http/http.h"
#include "daemon/http/route.h"

#define BOX_PATIENCE_S 300.0    // a machine at load 20 keeps this

struct box {
    struct arena arena;
    char dir[256], sock[300], tokens[300];
    struct config config;
    struct auth *auth;
    struct loop *loop;
    struct http *http;
    const char *token[SCOPE_ADMIN + 1];    // one of each scope, of "ann"
};

static inline void box_tokens(struct box *b)
{
    char all[4096] = "";
    struct err e = { 0 };

    for (int s = SCOPE_READ; s <= SCOPE_ADMIN; s++) {
        const char *line = NULL;
        size_t n = strlen(all);

        ck_assert_msg(auth_make_token(&b->arena, scope_name((enum scope)s), (enum scope)s, "ann",
                                      &b->token[s], &line, &e) == 0,
                      "%s", e.text);
        snprintf(all + n, sizeof all - n, "%s", line);
    }
    ck_assert_int_eq(file_write(b->tokens, all, strlen(all), &e), 0);
    ck_assert_int_eq(chmod(b->tokens, 0600), 0);
}

/* Everything but the listening; change 'config' before box_open. */
static inline void box_init(struct box *b)
{
    const char *tmp = getenv("TMPDIR");

    *b = (struct box){ 0 };
    signal(SIGPIPE, SIG_IGN);
    arena_init(&b->arena);
    snprintf(b->dir, sizeof b->dir, "%s/gogh-http-XXXXXX", tmp != NULL ? tmp : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(b->dir));
    snprintf(b->sock, sizeof b->sock, "%s/s", b->dir);
    snprintf(b->tokens, sizeof b->tokens, "%s/tokens", b->dir);
    box_tokens(b);
    b->config = (struct config){
        .socket = b->sock,
        .socket_mode = 0600,
        .socket_scope = SCOPE_SUBMIT,
        .listen = "127.0.0.1:0",
        .tokens = b->tokens,
        .timeout_s = 10,
        .body_max = 64 << 10,
        .connections_max = 64,
    };
}

static inline void box_open(struct box *b, const struct route *table, int n, void *service)
{
    struct err e = { 0 };

    ck_assert_msg(loop_create(&b->loop, &e) == 0, "%s", e.text);
    ck_assert_msg(auth_open(&b->config, &b->auth, &e) == 0, "%s", e.text);
    b->http = http_create(b->loop, &b->config, b->auth, table, n, service);
    ck_assert_msg(http_listen(b->http, &e) == 0, "%s", e.text);
}

static inline void box_close(struct box *b)
{
    http_destroy(b->http);
    auth_close(b->auth);
    loop_destroy(b->loop);
    ck_assert_int_eq(access(b->sock, F_OK), -1);    // the socket goes with the daemon
    unlink(b->tokens);
    ck_assert_int_eq(rmdir(b->dir), 0);
    arena_release(&b->arena);
}

static inline void box_turn(struct box *b)
{
    struct err e = { 0 };

    ck_assert_msg(loop_turn(b->loop, 0.002, &e) == 0, "%s", e.text);
}

/* Turn until 'claim' holds. */
#define BOX_UNTIL(b, claim)                                                            \
    do {                                                                               \
        const double box_end_s = clock_stopwatch_s() + BOX_PATIENCE_S;                 \
        while (!(claim)) {                                                             \
            ck_assert_msg(clock_stopwatch_s() < box_end_s, "never happened: " #claim); \
            box_turn(b);                                                               \
        }                                                                              \
    } while (0)

/* ---- clients ---- */

struct client {
    struct box *box;
    int fd;
    char *in;    // what came and was not taken yet
    size_t n_in, cap;
    bool is_over;    // the other side has closed
};

struct answer {
    int status;
    char *head, *body;    // of the box's arena
    size_t n_body;
};

static inline struct client client_of(struct box *b, int fd)
{
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
    return (struct client){ .box = b, .fd = fd };
}

static inline struct client client_unix(struct box *b)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(at.sun_path, sizeof at.sun_path, "%.100s", b->sock);
    ck_assert_msg(connect(fd, (struct sockaddr *)&at, sizeof at) == 0, "%s", strerror(errno));
    return client_of(b, fd);
}

static inline struct client client_tcp(struct box *b)
{
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)http_port(b->http)),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_int_eq(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return client_of(b, fd);
}

static inline void client_close(struct client *c)
{
    close(c->fd);
    free(c->in);
    *c = (struct client){ .fd = -1 };
}

/* Send all of it, turning as long as the other side does not take it; false: it has closed. */
static inline bool client_send(struct client *c, const char *bytes, size_t len)
{
    const double end_s = clock_stopwatch_s() + BOX_PATIENCE_S;

    while (len > 0) {
        ssize_t n = send(c->fd, bytes, len, MSG_NOSIGNAL);

        if (n < 0 && errno != EAGAIN)
            return false;
        if (n > 0) {
            bytes += n;
            len -= (size_t)n;
        } else {
            ck_assert_msg(clock_stopwatch_s() < end_s, "nobody reads");
            box_turn(c->box);
        }
    }
    return true;
}

/* Take what is there. */
static inline void client_take(struct client *c)
{
    ssize_t n;

    do {
        if (c->cap - c->n_in < 65536) {
            c->cap = c->cap * 2 + 65537;
            c->in = realloc(c->in, c->cap);
            ck_assert_ptr_nonnull(c->in);
        }
        n = recv(c->fd, c->in + c->n_in, 65536, 0);
        if (n > 0)
            c->n_in += (size_t)n;
        if (n == 0 || (n < 0 && errno != EAGAIN))
            c->is_over = true;
        c->in[c->n_in] = '\0';
    } while (n > 0);
}

/* The whole of an answer with a Content-Length at the front of what came? Its size, or 0. */
static inline size_t answer_size(const struct client *c, bool is_head)
{
    const char *end = c->in != NULL ? strstr(c->in, "\r\n\r\n") : NULL;
    const char *length = end != NULL ? strcasestr(c->in, "\r\nContent-Length:") : NULL;
    size_t n_head = end != NULL ? (size_t)(end - c->in) + 4 : 0;
    size_t n = 0;

    if (end == NULL)
        return 0;
    if (length != NULL && length < end && !is_head)
        n = strtoul(length + 17, NULL, 10);
    return c->n_in >= n_head + n ? n_head + n : 0;
}

static inline struct answer client_answer_to(struct client *c, bool is_head)
{
    struct arena *a = &c->box->arena;
    struct answer got = { 0 };
    size_t n = 0, n_head;

    BOX_UNTIL(c->box, (client_take(c), (n = answer_size(c, is_head)) > 0 || c->is_over));
    if (n == 0)
        return got;    // closed without an answer
    n_head = (size_t)(strstr(c->in, "\r\n\r\n") - c->in) + 4;
    got.status = (int)strtol(c->in + 9, NULL, 10);
    got.head = arena_strndup(a, c->in, n_head);
    got.body = arena_strndup(a, c->in + n_head, n - n_head);
    got.n_body = n - n_head;
    memmove(c->in, c->in + n, c->n_in - n + 1);
    c->n_in -= n;
    return got;
}

static inline struct answer client_answer(struct client *c)
{
    return client_answer_to(c, false);
}

/* Send a request and wait for its answer. */
static inline struct answer client_ask(struct client *c, const char *request)
{
    (void)client_send(c, request, strlen(request));
    return client_answer_to(c, strncmp(request, "HEAD ", 5) == 0);
}

/* "METHOD PATH" with headers and a body, as text in the box's arena. */
static inline const char *request_of(struct box *b, const char *line, const char *headers,
                                     const char *body)
{
    return arena_printf(&b->arena, "%s HTTP/1.1\r\nHost: gogh\r\n%sContent-Length: %zu\r\n\r\n%s",
                        line, headers, strlen(body), body);
}

#endif
