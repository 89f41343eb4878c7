#include "act/slurm/link.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "act/driver/wire.h"
#include "act/local/proc.h"
#include "base/arena.h"
#include "base/text/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/log.h"
#include "base/loop.h"

#define OUT_MAX ((size_t)64 << 20)      // some thousand scripts that the driver has not read yet
#define READ_MAX ((size_t)256 << 10)    // in one turn: about a millisecond of reading lines
#define PAUSE_TIMES 100                 // at most
#define STEADY_S 30.0                   // one that lived so long did not die of its start
#define CHECK_S 1.0

/* An answer that is owed. */
struct pending_answer {
    uint64_t seq;
    link_line_f *line;
    link_end_f *end;
    void *self;
};

struct link {
    struct link_setup setup;
    int fd;          // the socket; -1: no driver
    pid_t pid;       // 0: not a process of ours
    pid_t *dying;    // (n_dying) drivers that were killed, and not waited for yet
    int n_dying, cap_dying;
    struct buf in, out;
    size_t sent;     // of 'out'
    bool is_open;    // between link_begin and link_ask
    uint64_t next_seq, n_drivers;
    struct pending_answer *pending;    // a queue: from 'first' on
    int first, n_pending, cap_pending;
    double heard_s, started_s, pause_s;    // on the stopwatch
    struct loop_timer start, check;
    struct arena scratch;
};

/* ---- processes ---- */

/* One that hangs in the kernel delays nobody: it is looked at again with the next check. */
static void reap(struct link *k)
{
    for (int i = k->n_dying; i-- > 0;)
        if (waitpid(k->dying[i], NULL, WNOHANG) != 0)
            k->dying[i] = k->dying[--k->n_dying];
}

static void kill_driver(struct link *k)
{
    if (k->pid <= 0)
        return;
    (void)kill(k->pid, SIGKILL);    // ours, and nobody has waited for it yet
    GROW(k->dying, k->n_dying, k->cap_dying);
    k->dying[k->n_dying++] = k->pid;
    k->pid = 0;
    reap(k);
}

static pid_t spawn(struct link *k, int fd)
{
    const struct link_setup *s = &k->setup;
    char rate[40];
    const char *const options[][2] = { { "--commands", s->commands },
                                       { "--conf", s->conf },
                                       { "--rate", s->rate > 0 ? rate : NULL } };
    const char *argv[8] = { s->driver };
    int n = 1;

    snprintf(rate, sizeof rate, "%.15g", s->rate);
    for (int i = 0; i < 3; i++) {
        if (!options[i][1])
            continue;
        argv[n++] = options[i][0];
        argv[n++] = options[i][1];
    }
    return proc_spawn(&(struct proc_spawn){ .program = s->driver,
                                            .argv = (char *const *)argv,
                                            .env = (char *[]){ "LC_ALL=C", NULL },
                                            .fd = fd });
}

/* A socket with the driver behind it; negative: -errno. */
static int open_driver(struct link *k)
{
    int fds[2];
    pid_t pid;

    if (k->setup.open)
        return k->setup.open(k->setup.open_self);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return -errno;
    pid = spawn(k, fds[1]);
    close(fds[1]);
    if (pid > 0) {
        k->pid = pid;
        return fds[0];
    }
    close(fds[0]);
    return pid;
}

/* ---- up and down ---- */

static void on_socket(void *self, int fd, unsigned ready);

static void watch(struct link *k)
{
    const unsigned want = LOOP_READ | (k->sent < k->out.len ? (unsigned)LOOP_WRITE : 0u);

    (void)loop_watch(k->setup.loop, k->fd, want, "the Slurm driver", on_socket, k, NULL);
}

static void start_later(struct link *k)
{
    loop_timer_set(&k->start, k->pause_s);
    k->pause_s = fmin(2 * k->pause_s, PAUSE_TIMES * k->setup.pause_s);
}

static void on_start(void *self)
{
    struct link *k = self;
    const int fd = open_driver(k);

    if (fd < 0) {
        log_warn("cannot start %s: %s; again in %.1f s",
                 k->setup.driver ? k->setup.driver : "the driver", strerror(-fd), k->pause_s);
        start_later(k);
        return;
    }
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    k->fd = fd;
    k->n_drivers++;
    k->heard_s = k->started_s = clock_stopwatch_s();
    watch(k);
    k->setup.on_up(k->setup.self);
}

/* All that it owes is in doubt. Whoever hears that may not ask yet: there is nobody to ask. */
static void go_down(struct link *k, const char *why)
{
    struct pending_answer *list = k->pending;
    const int first = k->first, n = k->n_pending;

    log_warn("the Slurm driver %s; another one is started", why);
    loop_unwatch(k->setup.loop, k->fd);
    close(k->fd);
    k->fd = -1;
    kill_driver(k);
    buf_clear(&k->in);
    buf_clear(&k->out);
    k->sent = 0;
    k->pending = NULL;
    k->first = k->n_pending = k->cap_pending = 0;
    if (clock_stopwatch_s() - k->started_s > STEADY_S)
        k->pause_s = k->setup.pause_s;
    start_later(k);
    for (int i = first; i < n; i++)
        list[i].end(list[i].self, &(struct link_end){ list[i].seq, LINK_UNKNOWN, LINK_NONE, why });
    free(list);
}

static void on_check(void *self)
{
    struct link *k = self;

    loop_timer_set(&k->check, fmin(CHECK_S, k->setup.silence_s / 4));
    reap(k);
    if (k->fd < 0)
        return;
    if (link_n_pending(k) > 0 && clock_stopwatch_s() - k->heard_s > k->setup.silence_s)
        go_down(k, "does not answer");
}

/* ---- hearing ---- */

enum link_kind link_kind_of(const char *word)
{
    static const char *const words[] = { [LINK_DOWN] = "down",
                                         [LINK_REFUSED] = "refused",
                                         [LINK_GONE] = "gone",
                                         [LINK_MISUSE] = "misuse" };

    for (int i = LINK_DOWN; word && i <= LINK_MISUSE; i++)
        if (strcmp(word, words[i]) == 0)
            return (enum link_kind)i;
    return LINK_REFUSED;
}

static bool is_end(const struct wire_message *m, enum link_outcome *out)
{
    *out = strcmp(m->verb, "done") == 0 ? LINK_DONE : LINK_FAILED;
    if (strcmp(m->verb, "unknown") == 0)
        *out = LINK_UNKNOWN;
    return *out != LINK_FAILED || strcmp(m->verb, "failed") == 0;
}

static void end_first(struct link *k, const struct wire_message *m, enum link_outcome outcome)
{
    const struct pending_answer o = k->pending[k->first++];
    const char *text = wire_get(m, "text");
    struct link_end how = { .seq = o.seq, .outcome = outcome, .text = text ? text : "" };

    if (outcome == LINK_FAILED)
        how.kind = link_kind_of(wire_get(m, "kind"));
    if (k->first == k->n_pending)
        k->first = k->n_pending = 0;
    o.end(o.self, &how);
}

/* 0; -EPROTO: it says what it should not. */
static int hear(struct link *k, char *line, size_t len)
{
    struct wire_message m = { 0 };
    enum link_outcome outcome;
    struct err e = { 0 };

    arena_reset(&k->scratch);
    if (wire_read(&k->scratch, line, len, &m, &e) < 0) {
        log_warn("the Slurm driver: %s", e.text);
        return -EPROTO;
    }
    if (m.seq == 0) {
        k->setup.on_said(k->setup.self, &m);
        return 0;
    }
    if (link_n_pending(k) == 0 || k->pending[k->first].seq != m.seq)
        return -EPROTO;
    if (is_end(&m, &outcome))
        end_first(k, &m, outcome);
    else if (k->pending[k->first].line)
        k->pending[k->first].line(k->pending[k->first].self, &m);
    return 0;
}

static int hear_lines(struct link *k)
{
    size_t at = 0;
    int rc = 0;

    while (rc == 0) {
        char *line = k->in.data + at;
        const char *lf = k->in.len > at ? memchr(line, '\n', k->in.len - at) : NULL;

        if (!lf)
            break;
        at += (size_t)(lf - line) + 1;
        rc = hear(k, line, (size_t)(lf - line));
    }
    if (at > 0) {
        memmove(k->in.data, k->in.data + at, k->in.len - at);
        k->in.len -= at;
    }
    return rc;
}

/* 0; negative: the driver is not there any more, or not what it should be. */
static int take_in(struct link *k)
{
    size_t total = 0;

    while (total < READ_MAX) {
        char bytes[32768];
        const ssize_t n = read(k->fd, bytes, sizeof bytes);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return 0;
        if (n <= 0)
            return -EPIPE;
        k->heard_s = clock_stopwatch_s();
        total += (size_t)n;
        if (buf_append(&k->in, bytes, (size_t)n) < 0 || hear_lines(k) < 0)
            return -EPROTO;
    }
    return 0;
}

/* ---- saying ---- */

static int send_out(struct link *k)
{
    while (k->sent < k->out.len) {
        const ssize_t n =
            send(k->fd, k->out.data + k->sent, k->out.len - k->sent, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return 0;
        if (n < 0)
            return -EPIPE;
        k->sent += (size_t)n;
    }
    buf_clear(&k->out);
    k->sent = 0;
    return 0;
}

static void on_socket(void *self, int fd, unsigned ready)
{
    struct link *k = self;
    int rc = 0;

    (void)fd;
    if (ready & LOOP_WRITE)
        rc = send_out(k);
    if (rc == 0 && ready & LOOP_READ)
        rc = take_in(k);
    if (rc < 0)
        go_down(k, rc == -EPROTO ? "says what it should not" : "has ended");
    else
        watch(k);
}

struct buf *link_begin(struct link *k, const char *verb)
{
    assert(k->fd >= 0 && !k->is_open);
    k->is_open = true;
    if (link_n_pending(k) == 0)
        k->heard_s = clock_stopwatch_s();    // its silence counts from here
    wire_begin(&k->out, ++k->next_seq, verb);
    return &k->out;
}

uint64_t link_ask(struct link *k, link_line_f *line, link_end_f *end, void *self)
{
    assert(k->is_open && end);
    wire_end(&k->out);
    k->is_open = false;
    GROW(k->pending, k->n_pending, k->cap_pending);
    k->pending[k->n_pending++] =
        (struct pending_answer){ .seq = k->next_seq, .line = line, .end = end, .self = self };
    watch(k);    // sent when the socket says so: nobody is told of a death in the middle of asking
    return k->next_seq;
}

/* ---- life ---- */

struct link *link_create(const struct link_setup *s)
{
    struct link *k = heap_array(1, sizeof *k);

    *k = (struct link){ .setup = *s, .fd = -1, .pause_s = s->pause_s };
    buf_init(&k->in, WIRE_LINE_MAX + READ_MAX);
    buf_init(&k->out, OUT_MAX);
    arena_init(&k->scratch);
    loop_timer_init(&k->start, s->loop, "the Slurm driver's start", on_start, k);
    loop_timer_init(&k->check, s->loop, "the Slurm driver's silence", on_check, k);
    loop_timer_set(&k->start, 0);
    on_check(k);
    return k;
}

void link_destroy(struct link *k)
{
    if (!k)
        return;
    loop_timer_clear(&k->start);
    loop_timer_clear(&k->check);
    if (k->fd >= 0) {
        loop_unwatch(k->setup.loop, k->fd);
        close(k->fd);
    }
    kill_driver(k);
    free(k->dying);
    buf_release(&k->in);
    buf_release(&k->out);
    arena_release(&k->scratch);
    free(k->pending);
    free(k);
}

bool link_is_up(const struct link *k)
{
    return k->fd >= 0;
}

uint64_t link_n_drivers(const struct link *k)
{
    return k->n_drivers;
}

int link_n_pending(const struct link *k)
{
    return k->n_pending - k->first;
}
