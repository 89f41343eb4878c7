/* gogh-slurm-driver - the one process of GOGH that runs Slurm's commands.
 *
 * Reads requests as lines from its standard input, carries them out one after the other, and
 * writes the answers to its standard output (docs/formats/slurm-driver.md). One thread, which
 * waits in poll(2) only: while a command runs or hangs, requests are read, and the end of the
 * socket, which ends the driver and the command, is noticed.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "act/driver/breaker.h"
#include "act/driver/call.h"
#include "act/driver/owners.h"
#include "act/driver/task.h"
#include "act/driver/wire.h"
#include "act/local/proc.h"
#include "base/arena.h"
#include "base/text/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text/text.h"

#define READ_LIMIT_S 5.0
#define CHANGE_LIMIT_S 10.0
#define RATE 4.0
#define BURST 500.0
#define NEWS_S 2.0    // between two '0 calls' while there is something to do

/* Requests that wait are read up to so many bytes; answers that nobody reads grow up to so many,
 * then no further request is begun. An answer itself may be as long as a listing.
 */
#define WAITING_MAX ((size_t)16 << 20)
#define UNREAD_MAX ((size_t)4 << 20)
#define ANSWER_MAX ((size_t)1 << 30)

struct slurm_driver {
    struct task_setup setup;
    struct breaker breaker;
    struct rate_bucket bucket;
    struct owners owners;
    struct buf in, out;
    size_t n_taken, n_sent;    // of 'in' and 'out'
    bool is_socket, is_read_up, is_over;
    int signals;    // signalfd
    struct task task;
    bool has_task;
    struct slurm_call *call;    // of the task, or of a probe
    bool is_probe, must_probe;
    bool is_known;    // whether Slurm is up has been said
    char why[300];    // it is not
    long n_calls, n_late, n_told;
    double news_s;
};

/* ---- saying ---- */

static void tell_state(struct slurm_driver *d)
{
    wire_begin(&d->out, 0, "state");
    wire_put(&d->out, "slurm", d->breaker.is_open ? "down" : "up");
    if (d->breaker.is_open)
        wire_put(&d->out, "text", d->why);
    wire_end(&d->out);
    d->is_known = true;
}

static void tell_calls(struct slurm_driver *d, double now_s)
{
    const bool is_busy = d->has_task || d->n_taken < d->in.len;

    if (now_s < d->news_s || (!is_busy && d->n_told == d->n_calls))
        return;
    wire_begin(&d->out, 0, "calls");
    wire_put_long(&d->out, "n", d->n_calls);
    wire_put_long(&d->out, "late", d->n_late);
    wire_end(&d->out);
    d->n_told = d->n_calls;
    d->news_s = now_s + NEWS_S;
}

/* Slurm was reached, or not. */
static void note_reach(struct slurm_driver *d, bool is_reached, const char *why, double now_s)
{
    bool is_new;

    if (!is_reached) {
        snprintf(d->why, sizeof d->why, "%s", why);
        d->owners.is_known = false;
    }
    is_new =
        is_reached ? breaker_succeeded(&d->breaker, now_s) : breaker_failed(&d->breaker, now_s);
    if (is_new || !d->is_known)
        tell_state(d);
}

/* ---- calls ---- */

static int begin_call(struct slurm_driver *d, const struct call_order *o, double now_s)
{
    struct err e = { 0 };

    d->n_calls++;
    if (call_begin(o, now_s, &d->call, &e) == 0)
        return 0;
    d->call = NULL;
    note_reach(d, false, e.text, now_s);
    return -1;
}

static void begin_probe(struct slurm_driver *d, double now_s)
{
    struct call_order o;
    struct arena a;

    arena_init(&a);
    d->must_probe = false;
    task_ping(&d->setup, &a, &o);
    d->is_probe = begin_call(d, &o, now_s) == 0;
    arena_release(&a);
}

/* In a few words, for those who are told that Slurm is down. */
static const char *why_of(const struct call_result *r)
{
    if (r->end == CALL_LATE)
        return "Slurm's commands do not end in time";
    return *r->errors ? r->errors : "no controller answers";
}

static void end_call(struct slurm_driver *d, struct call_result *r, double now_s)
{
    char why[300];
    bool is_reached, is_doubtful;

    snprintf(why, sizeof why, "%.*s", (int)strcspn(why_of(r), "\n"), why_of(r));
    if (r->end == CALL_LATE)
        d->n_late++;
    if (d->is_probe)
        is_reached = task_ping_worked(r);
    else
        is_reached = task_take(&d->task, r, &d->out);
    is_doubtful = !d->is_probe && !is_reached && task_is_users(&d->task);
    call_destroy(d->call);
    d->call = NULL;
    d->is_probe = false;
    d->must_probe |= is_doubtful;
    if (!is_doubtful)
        note_reach(d, is_reached, why, now_s);
}

static void go_on(struct slurm_driver *d, double now_s)
{
    struct call_result r;

    if (d->call && call_go_on(d->call, now_s, &r))
        end_call(d, &r, now_s);
}

/* ---- requests ---- */

static void drop_task(struct slurm_driver *d)
{
    task_release(&d->task);
    d->has_task = false;
}

/* The next whole line that waits, without its LF; false: there is none. */
static bool find_line(const struct slurm_driver *d, struct slice *out)
{
    const char *from = d->n_taken < d->in.len ? d->in.data + d->n_taken : NULL;
    const char *feed = from ? memchr(from, '\n', d->in.len - d->n_taken) : NULL;

    if (!feed)
        return false;
    *out = (struct slice){ from, (size_t)(feed - from) };
    return true;
}

/* It becomes the task. */
static bool take_line(struct slurm_driver *d)
{
    struct slice line;

    if (!find_line(d, &line))
        return false;
    task_init(&d->task, &d->setup, line.at, line.len, &d->out);
    d->n_taken += line.len + 1;
    d->has_task = true;
    return true;
}

/* Those behind it that can be carried out with it. */
static void join_lines(struct slurm_driver *d)
{
    for (struct slice line; find_line(d, &line) && task_join(&d->task, line.at, line.len);)
        d->n_taken += line.len + 1;
}

/* The current request as far as it goes without waiting. True: it may go further. */
static bool do_task(struct slurm_driver *d, double now_s)
{
    struct call_order o;

    if (!d->has_task && !take_line(d))
        return false;
    if (d->breaker.is_open)
        task_give_up(&d->task, d->why, &d->out);
    if (d->task.is_answered) {
        drop_task(d);
        return true;
    }
    if (rate_bucket_wait_s(&d->bucket, now_s) > 0)
        return false;
    join_lines(d);
    if (!task_next(&d->task, now_s, &o, &d->out))
        return true;
    (void)rate_bucket_take(&d->bucket, now_s);
    (void)begin_call(d, &o, now_s);
    return !d->call;
}

/* What went wrong for one user may be his trouble alone: a probe tells, before others are told. */
static void do_tasks(struct slurm_driver *d, double now_s)
{
    if (!d->call && (d->must_probe || breaker_wants_probe(&d->breaker, now_s)))
        begin_probe(d, now_s);
    while (!d->call && d->out.len - d->n_sent < UNREAD_MAX && do_task(d, now_s))
        ;
}

/* ---- the two ends of the socket ---- */

/* What has been taken makes room once it is more than what is left. */
static void compact(struct buf *b, size_t *n_used)
{
    if (*n_used < b->len && *n_used < 65536)
        return;
    memmove(b->data, b->data + *n_used, b->len - *n_used);
    b->len -= *n_used;
    b->data[b->len] = '\0';
    *n_used = 0;
}

/* A peer that is gone, or one that never ends a line, is no peer. */
static void read_requests(struct slurm_driver *d)
{
    char bytes[65536];
    const ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        d->is_read_up = true;
        d->is_over = d->is_socket;
        return;
    }
    if (d->n_taken > 0)
        compact(&d->in, &d->n_taken);
    (void)buf_append(&d->in, bytes, (size_t)n);
    if (d->in.len - d->n_taken > WIRE_LINE_MAX + 65536 &&
        !memchr(d->in.data + d->n_taken, '\n', d->in.len - d->n_taken)) {
        fprintf(stderr, "gogh-slurm-driver: a line has more than %zu bytes\n", WIRE_LINE_MAX);
        d->is_over = true;
    }
}

static void write_answers(struct slurm_driver *d)
{
    while (d->n_sent < d->out.len) {
        const ssize_t n = write(STDOUT_FILENO, d->out.data + d->n_sent, d->out.len - d->n_sent);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (n <= 0) {
            d->is_over = true;
            return;
        }
        d->n_sent += (size_t)n;
    }
    if (d->out.len)
        compact(&d->out, &d->n_sent);
}

/* ---- the loop ---- */

static int wait_ms(struct slurm_driver *d, double now_s)
{
    const bool is_busy = d->has_task || d->n_taken < d->in.len;
    double at_s = is_busy || d->n_told != d->n_calls ? d->news_s : (double)INFINITY;

    if (d->call)
        at_s = fmin(at_s, call_wake_s(d->call));
    else if (d->breaker.is_open)
        at_s = fmin(at_s, d->breaker.probe_at_s);
    else if (d->has_task && d->out.len - d->n_sent < UNREAD_MAX)
        at_s = fmin(at_s, now_s + rate_bucket_wait_s(&d->bucket, now_s));
    if (isinf(at_s))
        return -1;
    return at_s <= now_s ? 0 : (int)fmin((at_s - now_s) * 1e3 + 1, 60e3);
}

/* Without POLLIN the end of a socket is still told. */
static int fill_fds(struct slurm_driver *d, struct pollfd *fds)
{
    const bool has_room = d->in.len - d->n_taken < WAITING_MAX;
    const bool is_read = !d->is_read_up && (has_room || d->is_socket);
    int n = 0;

    fds[n++] = (struct pollfd){ d->signals, POLLIN, 0 };
    fds[n++] = (struct pollfd){ is_read ? STDIN_FILENO : -1,
                                (short)((has_room ? POLLIN : 0) | POLLRDHUP), 0 };
    fds[n++] = (struct pollfd){ d->n_sent < d->out.len ? STDOUT_FILENO : -1, POLLOUT, 0 };
    if (d->call)
        n += call_fds(d->call, fds + n);
    return n;
}

static void turn(struct slurm_driver *d)
{
    struct pollfd fds[3 + CALL_FDS];
    const int n = fill_fds(d, fds);
    double now_s = clock_stopwatch_s();

    (void)poll(fds, (nfds_t)n, wait_ms(d, now_s));
    now_s = clock_stopwatch_s();
    if (fds[0].revents)
        d->is_over = true;
    if (fds[1].revents & POLLIN)
        read_requests(d);
    else if (fds[1].revents)
        d->is_read_up = true;
    if (d->is_socket && (fds[1].revents & (POLLHUP | POLLRDHUP | POLLERR)))
        d->is_over = true;
    go_on(d, now_s);
    do_tasks(d, now_s);
    tell_calls(d, now_s);
    write_answers(d);
    if (d->is_read_up && !d->has_task && !d->call && d->n_sent == d->out.len)
        d->is_over = true;
    while (!d->call && waitpid(-1, NULL, WNOHANG) > 0)
        ;    // those that had been left behind
}

static void run(struct slurm_driver *d)
{
    while (!d->is_over)
        turn(d);
    call_destroy(d->call);
    if (d->has_task)
        drop_task(d);
    owners_release(&d->owners);
    buf_release(&d->in);
    buf_release(&d->out);
}

/* ---- the beginning ---- */

static int open_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGCHLD, SIG_DFL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void usage(FILE *to)
{
    fprintf(to,
            "usage: gogh-slurm-driver [OPTION]...\n"
            "\n"
            "Runs Slurm's commands for goghd, which starts it. By hand: write requests to it, as\n"
            "    printf '1 hello\\tprotocol=1\\n2 nodes\\n' | gogh-slurm-driver\n"
            "The lines are described in docs/formats/slurm-driver.md.\n"
            "\n"
            "  --commands DIR  where sbatch, squeue, scontrol, sinfo and scancel are\n"
            "  --conf FILE     SLURM_CONF for them\n"
            "  --rate R        calls a second on average (%.0f)\n"
            "  --burst N       calls at once (%.0f)\n"
            "  --reading S     seconds that a call which only reads may take (%.0f)\n"
            "  --changing S    seconds for one that changes something (%.0f)\n"
            "  --help\n",
            RATE, BURST, READ_LIMIT_S, CHANGE_LIMIT_S);
}

static double number_of(const char *option, const char *text, double low, double high)
{
    double x = 0;

    if (text_to_double(slice_of(text), &x) == 0 && x >= low && x <= high)
        return x;
    fprintf(stderr, "gogh-slurm-driver: --%s wants a number from %g to %g, not '%s'\n", option, low,
            high, text);
    exit(2);
}

static void read_options(struct slurm_driver *d, int argc, char **argv)
{
    static const struct option options[] = {
        { "commands", required_argument, NULL, 'c' }, { "conf", required_argument, NULL, 'f' },
        { "rate", required_argument, NULL, 'r' },     { "burst", required_argument, NULL, 'b' },
        { "reading", required_argument, NULL, 'R' },  { "changing", required_argument, NULL, 'C' },
        { "help", no_argument, NULL, 'h' },           { NULL, 0, NULL, 0 },
    };
    double rate = RATE, burst = BURST;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'c')
            d->setup.commands = optarg;
        else if (option == 'f')
            d->setup.conf = optarg;
        else if (option == 'r')
            rate = number_of("rate", optarg, 0.01, 1e6);
        else if (option == 'b')
            burst = number_of("burst", optarg, 1, 1e6);
        else if (option == 'R')
            d->setup.read_limit_s = number_of("reading", optarg, 0.01, 3600);
        else if (option == 'C')
            d->setup.change_limit_s = number_of("changing", optarg, 0.01, 3600);
        else
            break;
    }
    if (option != -1 || optind < argc) {
        usage(option == 'h' ? stdout : stderr);
        exit(option == 'h' ? 0 : 2);
    }
    rate_bucket_init(&d->bucket, rate, burst, clock_stopwatch_s());
}

int main(int argc, char **argv)
{
    struct slurm_driver d = { .setup = { .read_limit_s = READ_LIMIT_S,
                                         .change_limit_s = CHANGE_LIMIT_S } };
    struct stat st;

    proc_settle_fds();
    read_options(&d, argc, argv);
    d.is_socket = fstat(STDIN_FILENO, &st) == 0 && S_ISSOCK(st.st_mode);
    if (d.is_socket)
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);    // its own children have the same
    d.signals = open_signals();
    if (d.signals < 0)
        return 1;
    if (d.is_socket)
        for (int fd = 0; fd <= STDOUT_FILENO; fd++)
            (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    d.news_s = clock_stopwatch_s() + NEWS_S;
    breaker_init(&d.breaker);
    d.setup.owners = &d.owners;
    buf_init(&d.in, WAITING_MAX + WIRE_LINE_MAX + 131072);
    buf_init(&d.out, ANSWER_MAX);
    run(&d);
    return 0;
}
