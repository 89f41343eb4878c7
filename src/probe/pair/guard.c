#include "probe/pair/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "act/local/proc.h"
#include "base/clock.h"
#include "base/err.h"

#define STRAYS_S 10.0    // as the keeper's: what cannot be killed in that time hangs in a driver

/* Descriptors of a guard; its standard error is the program's. */
enum { LIFELINE = 0, STATUS = 1, ERRORS = 2, OUTPUT = 3 };

/* ---- in the program to be ---- */

static _Noreturn void be_program(const struct guard_order *o, pid_t guard)
{
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);    // should even the guard be killed
    if (getppid() != guard || nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 ||
        dup2(OUTPUT, STDOUT_FILENO) < 0)
        _exit(127);
    close(OUTPUT);
    proc_reset_signals();
    execvpe(o->argv[0], o->argv, o->env);
    dprintf(ERRORS, "cannot run '%.200s': %s\n", o->argv[0], strerror(errno));
    _exit(127);
}

/* ---- in the guard ---- */

struct guarding {
    pid_t pid;       // of the program
    int signals;     // signalfd
    bool is_over;    // 'code', a status of wait(2)
    int code;
    bool is_ending;
    double kill_at_s, killed_s;    // INFINITY: not yet
};

/* Moved out of each other's way first. */
static int place_fds(int lifeline, int status, int errors)
{
    int fds[] = { lifeline, status, errors, STDOUT_FILENO };

    for (int i = 0; i < 4; i++) {
        fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 20);
        if (fds[i] < 0)
            return -errno;
    }
    for (int i = 0; i < 4; i++)
        if (dup2(fds[i], i) < 0)
            return -errno;
    (void)close_range(4, ~0U, 0);
    return 0;
}

static int open_signals(void)
{
    sigset_t set;

    sigfillset(&set);    // whoever wants the guard to end lets go of the lifeline
    (void)sigprocmask(SIG_SETMASK, &set, NULL);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* While the program is there, if only as a zombie, its number is its group's. */
static void signal_group(const struct guarding *g, int signo)
{
    if (!g->is_over)
        (void)kill(-g->pid, signo);
}

/* Wait for whoever has ended. False: no children are left. */
static bool reap(struct guarding *g)
{
    for (;;) {
        siginfo_t s = { 0 };
        int code = 0;

        if (waitid(P_ALL, 0, &s, WEXITED | WNOHANG | WNOWAIT) != 0)
            return errno != ECHILD;
        if (s.si_pid == 0)
            return true;
        if (s.si_pid == g->pid)
            signal_group(g, SIGKILL);    // what it leaves goes with it
        (void)waitpid(s.si_pid, &code, 0);
        if (s.si_pid != g->pid)
            continue;
        g->is_over = true;
        g->code = code;
        g->kill_at_s = clock_stopwatch_s();
    }
}

static void look(struct guarding *g, double grace_s, bool is_let_go)
{
    const double t = clock_stopwatch_s();

    if (is_let_go && !g->is_ending) {
        g->is_ending = true;
        g->kill_at_s = fmin(g->kill_at_s, t + grace_s);
        signal_group(g, SIGTERM);
        signal_group(g, SIGCONT);    // one that was halted is to hear it too
    }
    if (t < g->kill_at_s)
        return;
    g->killed_s = fmin(g->killed_s, t);
    signal_group(g, SIGKILL);
    proc_kill_children();
}

/* Until nobody is left. False: somebody cannot be killed. */
static bool keep(struct guarding *g, double grace_s)
{
    struct signalfd_siginfo heard;

    for (;;) {
        struct pollfd fds[2] = { { g->is_ending ? -1 : LIFELINE, POLLIN, 0 },
                                 { g->signals, POLLIN, 0 } };
        const double left_s = g->kill_at_s - clock_stopwatch_s();

        if (!reap(g))
            return true;
        if (clock_stopwatch_s() - g->killed_s > STRAYS_S)
            return false;
        /* A killed one's children become ours without a word. */
        (void)poll(fds, 2, isinf(left_s) ? -1 : left_s > 0 ? (int)(left_s * 1e3) + 1 : 10);
        while (read(g->signals, &heard, sizeof heard) == sizeof heard)
            continue;
        look(g, grace_s, fds[0].revents != 0);
    }
}

static _Noreturn void be_guard(const struct guard_order *o, int lifeline, int status, int errors,
                               pid_t parent)
{
    struct guarding g = { .kill_at_s = (double)INFINITY, .killed_s = (double)INFINITY };
    const pid_t self = getpid();
    int code = GUARD_STUCK;
    ssize_t sent;

    (void)setpgid(0, 0);    // who kills the group of gogh-pair lets the guard do its work
    if (place_fds(lifeline, status, errors) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
        _exit(1);
    g.signals = open_signals();
    g.pid = g.signals >= 0 ? fork() : -1;
    if (g.pid == 0)
        be_program(o, self);
    if (g.pid < 0)
        _exit(1);
    (void)setpgid(g.pid, g.pid);    // here too: whoever comes first
    close(OUTPUT);
    if (keep(&g, o->grace_s))
        code = g.code;
    (void)signal(SIGPIPE, SIG_IGN);
    sent = write(STATUS, &code, sizeof code);
    (void)sent;    // whoever listened may be gone
    if (getppid() != parent && o->at_orphaned)
        o->at_orphaned();
    _exit(0);
}

/* ---- in gogh-pair ---- */

static void shut(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void shut_pipe(int ends[2])
{
    shut(&ends[0]);
    shut(&ends[1]);
}

int guard_start(const struct guard_order *o, struct guard *out, struct err *e)
{
    int lifeline[2] = { -1, -1 }, status[2] = { -1, -1 }, errors[2] = { -1, -1 };
    const pid_t parent = getpid();
    pid_t pid = -1;
    int error;

    if (pipe2(lifeline, O_CLOEXEC) == 0 && pipe2(status, O_CLOEXEC) == 0 &&
        pipe2(errors, O_CLOEXEC) == 0)
        pid = fork();
    error = errno;
    if (pid == 0)
        be_guard(o, lifeline[0], status[1], errors[1], parent);
    if (pid < 0) {
        shut_pipe(lifeline);
        shut_pipe(status);
        shut_pipe(errors);
        return err_set(e, error, "cannot start '%.100s': %s", o->argv[0], strerror(error));
    }
    close(lifeline[0]);
    close(status[1]);
    close(errors[1]);
    (void)fcntl(errors[0], F_SETFL, O_NONBLOCK);
    *out = (struct guard){ pid, lifeline[1], status[0], errors[0] };
    return 0;
}

void guard_end(struct guard *g)
{
    shut(&g->lifeline);
}

int guard_close(struct guard *g)
{
    int code = GUARD_LOST;

    if (read(g->status, &code, sizeof code) != (ssize_t)sizeof code)
        code = GUARD_LOST;
    shut(&g->lifeline);
    shut(&g->status);
    shut(&g->errors);
    (void)waitpid(g->pid, NULL, 0);
    g->pid = 0;
    return code;
}
