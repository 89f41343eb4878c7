#include "monitor/inbox.h"

#include <errno.h>
#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/loop.h"
#include "monitor/mute.h"
#include "monitor/report.h"

/* Datagrams to a system call, and calls to a turn: a thousand datagrams take about a millisecond,
 * and the others on the loop want their turn too.
 */
enum { BATCH = 64, BATCHES_MAX = 16 };

struct datagram {
    char bytes[REPORT_BYTES_MAX + 1];    // one more than is allowed, to see that there was more
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct timespec))];
    struct iovec to;
};

struct inbox_socket {
    struct inbox *inbox;
    int fd;            // -1: closed
    double empty_s;    // when nothing was left in it
};

enum { LOCAL, UDP, SOCKETS };

struct inbox {
    struct loop *loop;
    inbox_f *f;
    void *self;
    char *path;    // NULL: no Unix socket
    struct inbox_socket sockets[SOCKETS];
    struct mmsghdr heads[BATCH];
    struct datagram datagrams[BATCH];
};

/* ---- reading ---- */

static void heads_reset(struct inbox *b)
{
    for (int i = 0; i < BATCH; i++) {
        struct datagram *d = &b->datagrams[i];

        d->to = (struct iovec){ .iov_base = d->bytes, .iov_len = sizeof d->bytes };
        b->heads[i].msg_hdr = (struct msghdr){ .msg_iov = &d->to,
                                               .msg_iovlen = 1,
                                               .msg_control = d->control,
                                               .msg_controllen = sizeof d->control };
    }
}

/* The kernel's stamp on the datagram, on the wall clock; NaN: none. */
static double stamp_s(struct msghdr *m)
{
    struct timespec t;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPNS)
            continue;
        memcpy(&t, CMSG_DATA(c), sizeof t);
        return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
    }
    return NAN;
}

/* Not before the socket was last seen empty, nor after now: the wall clock may have been set
 * meanwhile.
 */
static void hand_over(struct inbox_socket *x, int n, double now_s, double wall_s)
{
    struct inbox *b = x->inbox;
    double before_s = x->empty_s;

    for (int i = 0; i < n; i++) {
        struct msghdr *m = &b->heads[i].msg_hdr;
        double arrived_s = now_s - (wall_s - stamp_s(m));

        arrived_s = isnan(arrived_s) ? now_s : fmin(fmax(arrived_s, before_s), now_s);
        before_s = arrived_s;
        b->f(b->self, b->datagrams[i].bytes, b->heads[i].msg_len, arrived_s);
    }
    x->empty_s = n < BATCH ? now_s : before_s;
}

static void on_readable(void *self, int fd, unsigned ready)
{
    struct inbox_socket *x = self;
    const struct clock real = clock_real();
    int n = BATCH;

    (void)ready;
    for (int i = 0; i < BATCHES_MAX && n == BATCH; i++) {
        heads_reset(x->inbox);
        n = recvmmsg(fd, x->inbox->heads, BATCH, MSG_DONTWAIT, NULL);
        hand_over(x, n < 0 ? 0 : n, clock_stopwatch_s(), clock_now_s(&real));
    }
}

void inbox_look(struct inbox *b)
{
    for (int i = 0; i < SOCKETS; i++)
        if (b->sockets[i].fd >= 0)
            on_readable(&b->sockets[i], b->sockets[i].fd, LOOP_READ);
}

/* ---- those who are not heard ---- */

bool inbox_mute(struct inbox *b, const struct muted *list, int n)
{
    static const size_t headers[] = { [LOCAL] = 0, [UDP] = 8 };    // what the filter sees before
    struct sock_filter code[MUTE_PROGRAM_MAX];
    bool is_done = true;

    for (int i = 0; i < SOCKETS; i++) {
        if (b->sockets[i].fd < 0)
            continue;
        struct sock_fprog program = { .len =
                                          (unsigned short)mute_program(list, n, headers[i], code),
                                      .filter = code };
        is_done &= setsockopt(b->sockets[i].fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
                              sizeof program) == 0;
    }
    return is_done;
}

/* ---- opening ---- */

static int socket_watch(struct inbox_socket *x, int fd, struct inbox *b, const char *what,
                        struct err *e)
{
    const int yes = 1, bytes = 4 << 20;

    *x = (struct inbox_socket){ .inbox = b, .fd = fd, .empty_s = clock_stopwatch_s() };
    /* Where there are no stamps the time of reading stands in; a small buffer only loses more. */
    (void)setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &yes, sizeof yes);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    return loop_watch(b->loop, fd, LOOP_READ, what, on_readable, x, e);
}

static int bind_path(int fd, const char *path, struct err *e)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    struct stat st;

    if (strlen(path) >= sizeof at.sun_path)
        return err_set(e, ENAMETOOLONG, "%s: a socket's path has at most %zu bytes; take another",
                       path, sizeof at.sun_path - 1);
    memcpy(at.sun_path, path, strlen(path) + 1);
    if (lstat(path, &st) == 0) {
        if (!S_ISSOCK(st.st_mode))
            return err_set(e, EEXIST, "%s: is there and no socket; remove it or take another path",
                           path);
        (void)unlink(path);
    }
    if (bind(fd, (const struct sockaddr *)&at, sizeof at) < 0 || chmod(path, 0666) < 0)
        return err_set(e, errno, "%s: reports of jobs cannot come in here: %s", path,
                       strerror(errno));
    return 0;
}

static int open_local(struct inbox *b, const char *path, struct err *e)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return err_set(e, errno, "%s: %s", path, strerror(errno));
    int rc = bind_path(fd, path, e);
    if (rc < 0) {
        close(fd);
        return rc;
    }
    b->path = heap_text(path);
    return socket_watch(&b->sockets[LOCAL], fd, b, "reports", e);
}

static int bind_udp(const struct addrinfo *to, const char *udp, struct err *e)
{
    int fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd >= 0 && bind(fd, to->ai_addr, to->ai_addrlen) == 0)
        return fd;
    int rc = err_set(e, errno, "reports by UDP on %s: %s", udp, strerror(errno));
    if (fd >= 0)
        close(fd);
    return rc;
}

/* "HOST:PORT", "[ADDRESS]:PORT". */
static int open_udp(struct inbox *b, const char *udp, struct err *e)
{
    struct addrinfo want = { .ai_socktype = SOCK_DGRAM, .ai_flags = AI_PASSIVE }, *found = NULL;
    const char *colon = strrchr(udp, ':');
    char host[256] = "";

    if (!colon || colon == udp || (size_t)(colon - udp) >= sizeof host)
        return err_set(e, EINVAL, "'%s': want HOST:PORT for reports by UDP", udp);
    bool is_bracketed = udp[0] == '[' && colon[-1] == ']' && colon - udp > 2;
    memcpy(host, udp + is_bracketed, (size_t)(colon - udp) - 2 * is_bracketed);
    int why = getaddrinfo(host, colon + 1, &want, &found);
    if (why != 0)
        return err_set(e, EINVAL, "'%s': reports by UDP: %s", udp, gai_strerror(why));
    int fd = bind_udp(found, udp, e);
    freeaddrinfo(found);
    return fd < 0 ? fd : socket_watch(&b->sockets[UDP], fd, b, "reports by UDP", e);
}

int inbox_open(struct loop *l, const char *path, const char *udp, inbox_f *f, void *self,
               struct inbox **out, struct err *e)
{
    struct inbox *b = heap_array(1, sizeof *b);
    int rc = 0;

    b->loop = l;
    b->f = f;
    b->self = self;
    b->sockets[LOCAL].fd = b->sockets[UDP].fd = -1;
    if (path)
        rc = open_local(b, path, e);
    if (rc == 0 && udp)
        rc = open_udp(b, udp, e);
    if (rc < 0) {
        inbox_close(b);
        return rc;
    }
    *out = b;
    return 0;
}

void inbox_close(struct inbox *b)
{
    if (!b)
        return;
    for (int i = 0; i < SOCKETS; i++) {
        if (b->sockets[i].fd < 0)
            continue;
        loop_unwatch(b->loop, b->sockets[i].fd);
        close(b->sockets[i].fd);
    }
    if (b->path)
        (void)unlink(b->path);
    free(b->path);
    free(b);
}

int inbox_udp_port(const struct inbox *b)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } at = { .v6 = { 0 } };
    socklen_t n = sizeof at;

    if (b->sockets[UDP].fd < 0 || getsockname(b->sockets[UDP].fd, &at.any, &n) < 0)
        return 0;
    return ntohs(at.any.sa_family == AF_INET6 ? at.v6.sin6_port : at.v4.sin_port);
}
