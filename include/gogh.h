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
 * that gogh_steps is given: a checkpoint may be older. A struct gogh is used by one thread at a
 * time. A server of requests says instead when one comes and when it is answered:
 *
 *     gogh_ready(&g);
 *     for (...) {
 *         gogh_arrive(&g);                 when a request comes
 *         gogh_batch(&g, n, seconds);      when a batch of them is done
 *         gogh_done(&g, latency_s);        for each that is answered
 *         gogh_poll(&g);                   about once a second where nothing comes
 *     }
 *
 * With -std=c99, define _POSIX_C_SOURCE to 200112L or more first.
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

#define GOGH_BYTES 1400     /* of a datagram */
#define GOGH_ENTRIES 1024   /* what bins are kept in: a count, or a run of empty ones */
#define GOGH_BINS_MOST 4000 /* kept; older ones are left out */
#define GOGH_BIN_S 0.025    /* where nobody says what latency is promised */

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

    /* Of a server; less than nothing: not said. */
    int is_server, ready;
    double latency_s; /* that is promised */
    double late, queued, batches, busy_s;
    double bin_s, bin_from_s; /* and when the present one began; 0: none has */
    int n_came;               /* in the present bin */
    int n_entries, n_bins;    /* whole bins that were not told yet */
    int entries[GOGH_ENTRIES];
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

/* A positive number of the environment; 0: none. */
static inline double gogh_number(const char *name)
{
    const char *text = getenv(name);
    const double v = text ? strtod(text, NULL) : 0;

    return v > 0 && v < 1e9 ? v : 0;
}

/* An eighth of the promised latency is fine enough to see bursts. */
static inline void gogh_begin_server(struct gogh *g)
{
    const double bin_ms = gogh_number("GOGH_BIN_MS");

    g->ready = -1;
    g->late = g->queued = g->batches = g->busy_s = -1;
    g->latency_s = gogh_number("GOGH_LATENCY_S");
    g->bin_s = bin_ms > 0 ? bin_ms / 1e3 : g->latency_s > 0 ? g->latency_s / 8 : GOGH_BIN_S;
    if (g->bin_s < 0.001)
        g->bin_s = 0.001;
    if (g->bin_s > 60)
        g->bin_s = 60;
}

/* Begin; where there is no GOGH around, everything below does nothing. */
static inline struct gogh gogh_open(void)
{
    const char *address = getenv("GOGH_REPORTS"), *done = getenv("GOGH_STEPS_DONE");
    struct gogh g;

    memset(&g, 0, sizeof g);
    g.fd = -1;
    g.sent = -1;
    gogh_begin_server(&g);
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

/* ---- bins ---- */

static inline void gogh_keep_bins(struct gogh *g, int count, int n_bins)
{
    if (g->n_entries == GOGH_ENTRIES || g->n_bins + n_bins > GOGH_BINS_MOST)
        g->n_entries = g->n_bins = 0;
    if (count == 0 && g->n_entries > 0 && g->entries[g->n_entries - 1] < 0)
        g->entries[g->n_entries - 1] -= n_bins;
    else
        g->entries[g->n_entries++] = count > 0 ? count : -n_bins;
    g->n_bins += n_bins;
}

/* The bin of now is the present one. */
static inline void gogh_move_bins(struct gogh *g, double now_s)
{
    const double n_past = (now_s - g->bin_from_s) / g->bin_s;

    if (g->bin_from_s <= 0 || n_past > GOGH_BINS_MOST) {
        g->n_entries = g->n_bins = g->n_came = 0;
        g->bin_from_s = now_s;
    } else if (n_past >= 1) {
        gogh_keep_bins(g, g->n_came, 1);
        if ((int)n_past > 1)
            gogh_keep_bins(g, 0, (int)n_past - 1);
        g->bin_from_s += (int)n_past * g->bin_s;
        g->n_came = 0;
    }
}

/* As many bins as there is room for, as text: how many entries; '*n' is its length. */
static inline int gogh_say_bins(const struct gogh *g, char *text, size_t size, int *n)
{
    int i;

    *n = snprintf(text, size, " arr=%.6g:", g->bin_s * 1e3);
    for (i = 0; i < g->n_entries && (size_t)*n + 16 < size; i++) {
        const int e = g->entries[i];
        const char *comma = i > 0 ? "," : "";

        if (e >= -1)
            *n += snprintf(text + *n, size - (size_t)*n, "%s%d", comma, e > 0 ? e : 0);
        else
            *n += snprintf(text + *n, size - (size_t)*n, "%sz%d", comma, -e);
    }
    return i;
}

/* The first 'n' entries were told. */
static inline void gogh_drop_bins(struct gogh *g, int n)
{
    int i;

    for (i = 0; i < n; i++)
        g->n_bins -= g->entries[i] < 0 ? -g->entries[i] : 1;
    g->n_entries -= n;
    memmove(g->entries, g->entries + n, (size_t)g->n_entries * sizeof *g->entries);
}

/* ---- sending ---- */

static inline int gogh_say_key(char *text, size_t size, const char *key, double value)
{
    return value >= 0 ? snprintf(text, size, " %s=%.15g", key, value) : 0;
}

/* What only a server says, but for its bins: how long that is. */
static inline int gogh_say_served(const struct gogh *g, char *text, size_t size)
{
    int n = gogh_say_key(text, size, "ready", g->ready);

    n += gogh_say_key(text + n, size - (size_t)n, "late", g->late);
    n += gogh_say_key(text + n, size - (size_t)n, "q", g->queued);
    n += gogh_say_key(text + n, size - (size_t)n, "b", g->batches);
    n += gogh_say_key(text + n, size - (size_t)n, "busy", g->busy_s);
    return n;
}

/* Say now how far it is: 0, or -1 when that could not be sent. */
static inline int gogh_send(struct gogh *g)
{
    char text[GOGH_BYTES + 1];
    int n, n_bins = 0, n_entries = 0, is_sent;

    if (g->bin_from_s > 0)
        gogh_move_bins(g, gogh_now_s());
    n = snprintf(text, sizeof text, "%s %.15g%s", g->head, g->steps, g->is_unfit ? " unfit=1" : "");
    if (g->is_server)
        n += gogh_say_served(g, text + n, sizeof text - (size_t)n);
    if (g->n_entries > 0) {
        n_entries = gogh_say_bins(g, text + n, sizeof text - (size_t)n, &n_bins);
        n += n_bins;
    }
    is_sent = g->fd >= 0 && sendto(g->fd, text, (size_t)n, GOGH_SEND_FLAGS,
                                   (struct sockaddr *)&g->to, g->to_len) == n;
    if (is_sent) {
        g->sent = g->steps;
        gogh_drop_bins(g, n_entries);
    }
    g->next_s = gogh_now_s() + (!is_sent ? GOGH_AGAIN_S : g->n_entries > 0 ? 0 : GOGH_EVERY_S);
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

/* ---- servers ---- */

/* Nothing has come, perhaps for long: say so where it is time. Bins that fill up are sent before. */
static inline void gogh_poll(struct gogh *g)
{
    const double now_s = gogh_now_s();

    if (g->fd < 0 || !g->is_server)
        return;
    if (g->bin_from_s > 0)
        gogh_move_bins(g, now_s);
    if (now_s >= g->next_s || (g->n_entries >= GOGH_ENTRIES / 4 && now_s >= g->next_s - 0.75))
        (void)gogh_send(g);
}

/* It takes requests from now on; said at once. */
static inline void gogh_ready(struct gogh *g)
{
    g->is_server = 1;
    g->ready = 1;
    if (g->late < 0 && g->latency_s > 0)
        g->late = 0;
    if (g->bin_from_s <= 0)
        g->bin_from_s = gogh_now_s();
    if (g->queued < 0)
        g->queued = 0;
    (void)gogh_send(g);
}

/* A request came. */
static inline void gogh_arrive(struct gogh *g)
{
    g->is_server = 1;
    gogh_move_bins(g, gogh_now_s());
    g->n_came++;
    g->queued = g->queued < 0 ? 1 : g->queued + 1;
    gogh_poll(g);
}

/* It was answered, so long after it came. */
static inline void gogh_done(struct gogh *g, double latency_s)
{
    g->is_server = 1;
    g->is_counted = 1;
    g->steps += 1;
    if (g->queued > 0)
        g->queued -= 1;
    if (g->latency_s > 0)
        g->late = (g->late < 0 ? 0 : g->late) + !(latency_s <= g->latency_s);
    gogh_poll(g);
}

/* A batch of 'n' requests took so long; one of none is not counted. */
static inline void gogh_batch(struct gogh *g, int n, double seconds)
{
    g->is_server = 1;
    if (n > 0 && seconds >= 0) {
        g->batches = (g->batches < 0 ? 0 : g->batches) + 1;
        g->busy_s = (g->busy_s < 0 ? 0 : g->busy_s) + seconds;
    }
    gogh_poll(g);
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
    if (g->ready > 0)
        g->ready = 0;
    if (g->is_server)
        g->sent = -1;
    for (i = 0; i < 100 && g->steps > g->sent; i++) {
        if (gogh_send(g) == 0 || (errno != EAGAIN && errno != ENOBUFS))
            break;
        nanosleep(&between, NULL);
    }
    close(g->fd);
    g->fd = -1;
}

#endif
