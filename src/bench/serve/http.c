/* http.c - as little HTTP as it takes to ask a daemon many questions quickly. */
#include "bench/serve/serve.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"

#define ANSWER_MAX ((size_t)256 << 20)
#define WAIT_S 60.0    // on a machine at load 30 ten were too few

int conn_open(const char *socket_path, struct serve_conn *c, struct err *e)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };

    *c = (struct serve_conn){ .fd = -1 };
    if (strlen(socket_path) >= sizeof to.sun_path)
        return err_set(e, ENAMETOOLONG, "%s: too long for a socket; set TMPDIR to a shorter path",
                       socket_path);
    memcpy(to.sun_path, socket_path, strlen(socket_path));
    c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof to) != 0) {
        int rc = err_set(e, errno, "%s: %s", socket_path, strerror(errno));
        conn_close(c);
        return rc;
    }
    buf_init(&c->in, ANSWER_MAX);
    return 0;
}

void conn_close(struct serve_conn *c)
{
    if (c->fd >= 0) {
        close(c->fd);
        buf_release(&c->in);
    }
    c->fd = -1;
}

int conn_send(struct serve_conn *c, const char *method, const char *path, const char *body,
              struct err *e)
{
    char text[4096];
    int n = snprintf(text, sizeof text,
                     "%s %s HTTP/1.1\r\nHost: gogh\r\n%sContent-Length: %zu\r\n\r\n%s", method,
                     path, body ? "Content-Type: application/json\r\n" : "",
                     body ? strlen(body) : 0, body ? body : "");

    buf_clear(&c->in);
    c->n_head = c->n_all = 0;
    c->status = 0;
    c->asked_s = clock_stopwatch_s();
    if (n < 0 || (size_t)n >= sizeof text)
        return err_set(e, EMSGSIZE, "a question of %d bytes", n);
    if (send(c->fd, text, (size_t)n, MSG_NOSIGNAL) != n)
        return err_set(e, EIO, "the daemon does not take questions: %s", strerror(errno));
    return 0;
}

/* Where the answer's head ends, what it says, and how long the body is. */
static int read_head(struct serve_conn *c, struct err *e)
{
    char *text = c->in.data;
    const char *end = strstr(text, "\r\n\r\n");
    const char *length;
    static const char version[] = "HTTP/1.1 ";

    if (!end)
        return 0;
    length = strcasestr(text, "\r\nContent-Length:");
    if (strncmp(text, version, sizeof version - 1) != 0 || !length || length > end)
        return err_set(e, EPROTO, "not an answer with a length: '%.60s'", text);
    c->status = (int)strtol(text + sizeof version - 1, NULL, 10);
    c->n_head = (size_t)(end - text) + 4;
    c->n_all = c->n_head + strtoul(length + sizeof "\r\nContent-Length:" - 1, NULL, 10);
    return 0;
}

int conn_read(struct serve_conn *c, struct err *e)
{
    static char bytes[256 << 10];
    ssize_t n = recv(c->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    int rc = 0;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return err_set(e, EPIPE, "the daemon closed the connection");
    rc = buf_append(&c->in, bytes, (size_t)n);
    if (rc == 0 && c->n_head == 0)
        rc = read_head(c, e);
    if (rc < 0 || c->n_head == 0 || c->in.len < c->n_all)
        return rc;
    c->answered_s = clock_stopwatch_s();
    return 1;
}

int conn_ask(struct serve_conn *c, const char *method, const char *path, const char *body,
             struct err *e)
{
    int rc = conn_send(c, method, path, body, e);

    while (rc == 0) {
        struct pollfd p = { .fd = c->fd, .events = POLLIN };
        double left_s = c->asked_s + WAIT_S - clock_stopwatch_s();

        if (left_s <= 0 || poll(&p, 1, (int)(left_s * 1e3) + 1) < 0)
            return err_set(e, ETIMEDOUT, "%s %s: no answer in %g s", method, path, WAIT_S);
        rc = conn_read(c, e);
    }
    if (rc < 0)
        return rc;
    if (c->status != 200 && c->status != 201)
        return err_set(e, EREMOTEIO, "%s %s: %d: %.300s", method, path, c->status, conn_body(c));
    return 0;
}

const char *conn_body(const struct serve_conn *c)
{
    return buf_text(&c->in) + c->n_head;
}
