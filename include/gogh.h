/* gogh.h - tell GOGH how far a job is. One header, C99 or C++, nothing to link.
 *
 *     struct gogh g = gogh_open();
 *     for (...) {
 *         train_a_step();
 *         gogh_step(&g, 1);
 *     }
 *     gogh_close(&g);
 *
 * Sends at most about one datagram a second and one at the end, never waits, and never fails a
 * job: what is lost, the next one says again. Outside GOGH it does nothing. Counts go on from
 * what the job had done before it was moved or restarted (GOGH_STEPS_DONE), or from the first total
 * that gogh_steps is given: a checkpoint may be older. A struct gogh is used by one thread at a time. With -std=c99, define _POSIX_C_SOURCE to 200112L or more first.
 */
#ifndef GOGH_H
#define GOGH_H

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#ifdef MSG_NOSIGNAL
#define GOGH_SEND_FLAGS (MSG_DONTWAIT | MSG_NOSIGNAL)
#else
#define GOGH_SEND_FLAGS MSG_DONTWAIT
#endif

#ifdef SOCK_CLOEXEC
#define GOGH_SOCKET (SOCK_DGRAM | SOCK_CLOEXEC)
#else
#define GOGH_SOCKET SOCK_DGRAM
#endif

#define GOGH_EVERY_S 1.0 /* between two datagrams */
#define GOGH_AGAIN_S 0.1 /* when one could not be sent */

struct gogh {
    int fd;        /* -1: not inside a job of GOGH */
    double steps;  /* done in all, since the job's first start */
    double sent;   /* as it was last said; less than nothing: never */
    double next_s; /* nothing is sent before */
    int is_unfit;
    int is_counted; /* a first count was given */
    char head[160]; /* "gogh1 JOB RUN SECRET" */
    struct sockaddr_storage to;
    socklen_t to_len;
};

static inline double gogh_now_s(void)
{
    struct timespec t;

    if (clock_gettime(CLOCK_MONOTONIC, &t) != 0)
        return 0;
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* "unix:/path"; 0 when it is one. */
static inline int gogh_to_path(struct gogh *g, const char *address)
{
    struct sockaddr_un *to = (struct sockaddr_un *)&g->to;

    if (strncmp(address, "unix:", 5) != 0 || strlen(address + 5) >= sizeof to->sun_path)
        return -1;
    to->sun_family = AF_UNIX;
    memcpy(to->sun_path, address + 5, strlen(address + 5) + 1);
    g->to_len = (socklen_t)sizeof *to;
    return 0;
}

/* "udp:HOST:PORT", "udp:[ADDRESS]:PORT"; 0 when it is one. */
static inline int gogh_to_host(struct gogh *g, const char *address)
{
    struct addrinfo want, *found = NULL;
    const char *colon = strrchr(address, ':');
    char host[256];
    size_t n, bracket;

    if (strncmp(address, "udp:", 4) != 0 || colon < address + 5)
        return -1;
    n = (size_t)(colon - address) - 4;
    bracket = address[4] == '[' && colon[-1] == ']' && n > 2;
    n -= 2 * bracket;
    if (n >= sizeof host)
        return -1;
    memcpy(host, address + 4 + bracket, n);
    host[n] = '\0';
    memset(&want, 0, sizeof want);
    want.ai_socktype = SOCK_DGRAM;
    if (getaddrinfo(host, colon + 1, &want, &found) != 0)
        return -1;
    memcpy(&g->to, found->ai_addr, found->ai_addrlen);
    g->to_len = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

/* Who this is: "gogh1 JOB RUN SECRET"; 0 when it can be told. What a job under Slurm is given at its
 * submission lacks its number in GOGH or the run: Slurm's own stand in.
 */
static inline int gogh_say_who(struct gogh *g)
{
    const char *job = getenv("GOGH_JOB"), *run = getenv("GOGH_RUN");
    const char *secret = getenv("GOGH_SECRET"), *id = getenv("SLURM_JOB_ID");
    const char *restarts = getenv("SLURM_RESTART_COUNT");
    int n;

    if (!secret || (!job && !id) || (!run && !id))
        return -1;
    n = snprintf(g->head, sizeof g->head, "gogh1 %s%s %s %s", job ? "" : "s", job ? job : id,
                 run        ? run
                 : restarts ? restarts
                            : "0",
                 secret);
    return n > 0 && (size_t)n < sizeof g->head ? 0 : -1;
}

/* Begin; where there is no GOGH around, everything below does nothing. */
static inline struct gogh gogh_open(void)
{
    const char *address = getenv("GOGH_REPORTS"), *done = getenv("GOGH_STEPS_DONE");
    struct gogh g;

    memset(&g, 0, sizeof g);
    g.fd = -1;
    g.sent = -1;
    g.steps = done ? strtod(done, NULL) : 0;
    if (!(g.steps >= 0))
        g.steps = 0;
    if (!address || gogh_say_who(&g) != 0)
        return g;
    if (gogh_to_path(&g, address) == 0 || gogh_to_host(&g, address) == 0)
        g.fd = socket(g.to.ss_family, GOGH_SOCKET, 0);
    return g;
}

/* Are we inside a job of GOGH? */
static inline int gogh_inside(const struct gogh *g)
{
    return g->fd >= 0;
}

/* Say now how far it is: 0, or -1 when that could not be sent. */
static inline int gogh_send(struct gogh *g)
{
    char text[256];
    int n =
        snprintf(text, sizeof text, "%s %.15g%s", g->head, g->steps, g->is_unfit ? " unfit=1" : "");
    const int is_sent =
        g->fd >= 0 && n > 0 && (size_t)n < sizeof text &&
        sendto(g->fd, text, (size_t)n, GOGH_SEND_FLAGS, (struct sockaddr *)&g->to, g->to_len) == n;

    g->next_s = gogh_now_s() + (is_sent ? GOGH_EVERY_S : GOGH_AGAIN_S);
    if (is_sent)
        g->sent = g->steps;
    return is_sent ? 0 : -1;
}

/* 'total' steps are done, counted since the job's first start. It never falls, but for the first
 * one, which says where the checkpoint was.
 */
static inline void gogh_steps(struct gogh *g, double total)
{
    if (total > g->steps || (!g->is_counted && total >= 0)) {
        g->steps = total;
        g->is_counted = 1;
    }
    if (g->fd >= 0 && g->steps > g->sent && gogh_now_s() >= g->next_s)
        (void)gogh_send(g);
}

/* 'n' more steps are done. */
static inline void gogh_step(struct gogh *g, double n)
{
    gogh_steps(g, g->steps + n);
}

/* The GPU's memory does not suffice: say so, then end with an error. The job will be started elsewhere. */
static inline void gogh_unfit(struct gogh *g)
{
    g->is_unfit = 1;
    (void)gogh_send(g);
}

/* The last count, and the end. Where the daemon is only busy, up to two seconds are waited for it: no
 * later report would say it again.
 */
static inline void gogh_close(struct gogh *g)
{
    const struct timespec between = { 0, 20 * 1000 * 1000 };
    int i;

    if (g->fd < 0)
        return;
    for (i = 0; i < 100 && g->steps > g->sent; i++) {
        if (gogh_send(g) == 0 || (errno != EAGAIN && errno != ENOBUFS))
            break;
        nanosleep(&between, NULL);
    }
    close(g->fd);
    g->fd = -1;
}

#endif
