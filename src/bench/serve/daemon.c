/* daemon.c - a real goghd in a scratch directory, and how it does. */
#include "bench/serve/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/text/file.h"
#include "bench/bench.h"

#define READY_S 60.0
#define STOP_S 20.0

/* ---- processes ---- */

/* Wait for a child until 'until_s'; then it is killed. Its status, or -ETIMEDOUT. */
static int wait_until(pid_t pid, double until_s)
{
    int fd = pidfd_open(pid, 0), status = 0;
    struct pollfd p = { .fd = fd, .events = POLLIN };
    double left_s;
    bool is_over = false;

    while (!is_over && (left_s = until_s - clock_stopwatch_s()) > 0)
        is_over = poll(&p, 1, (int)(left_s * 1e3) + 1) > 0;
    if (fd >= 0)
        close(fd);
    if (!is_over)
        kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return is_over ? status : -ETIMEDOUT;
}

/* In a new child: it dies with us, and its output goes to 'out'. */
static _Noreturn void be_program(char *const *argv, char *const *env, int out, int err)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(null, 0);
    dup2(out >= 0 ? out : null, 1);
    dup2(err >= 0 ? err : null, 2);
    for (char *const *v = env; v && *v; v++)
        putenv(*v);
    execvp(argv[0], argv);
    _exit(127);
}

static size_t drain(int fd, char *out, size_t size, double until_s)
{
    size_t got = 0;

    for (;;) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        double left_s = until_s - clock_stopwatch_s();
        char spill[4096];

        if (left_s <= 0 || poll(&p, 1, (int)(left_s * 1e3) + 1) <= 0)
            return got;
        bool has_room = got + 1 < size;
        ssize_t n = has_room ? read(fd, out + got, size - 1 - got) : read(fd, spill, sizeof spill);
        if (n <= 0)
            return got;
        got += has_room ? (size_t)n : 0;
    }
}

int serve_run(char *const *argv, char *const *env, double limit_s, char *out, size_t size,
              double *took_s, struct err *e)
{
    const double began_s = clock_stopwatch_s();
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        return err_set(e, errno, "pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0)
        be_program(argv, env, ends[1], -1);
    close(ends[1]);
    size_t n = child > 0 ? drain(ends[0], out, out ? size : 0, began_s + limit_s) : 0;
    close(ends[0]);
    if (child < 0)
        return err_set(e, errno, "fork: %s", strerror(errno));
    if (out)
        out[n] = '\0';
    int status = wait_until(child, began_s + limit_s);
    *took_s = clock_stopwatch_s() - began_s;
    if (status == -ETIMEDOUT)
        return err_set(e, ETIMEDOUT, "%s: not done after %g s", argv[0], limit_s);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return err_set(e, ENOENT, "%s: cannot be run", argv[0]);
    if (status != 0)
        return err_set(e, EREMOTEIO, "%s: ended with status %d", argv[0], status);
    return 0;
}

/* One process that stands for all keepers and jobs: it is there, hears nothing, does nothing. */
static pid_t stand_in_start(void)
{
    pid_t pid = fork();
    sigset_t all;

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    for (;;)
        poll(NULL, 0, -1);
}

/* ---- the daemon ---- */

static int write_config(struct test_daemon *r, const char *settings, struct err *e)
{
    const char *text = arena_printf(
        &r->arena,
        "store %s/gogh.db\nrun_dir %s/runs\nsocket %s\nreports %s\ngpus declared\n"
        "rate_max 0\nlog warn\n%s%s",
        r->dir, r->dir, r->socket, r->reports, serve_node(&r->arena, &r->content), settings);

    return file_write(r->config, text, strlen(text), e);
}

int daemon_make(struct test_daemon *r, const char *scratch, const char *name,
                const struct serve_content *c, const char *settings, struct err *e)
{
    *r = (struct test_daemon){ .content = *c, .conn = { .fd = -1 }, .reporters = { .fd = -1 } };
    arena_init(&r->arena);
    r->dir = arena_printf(&r->arena, "%s/%s", scratch, name);
    r->config = arena_printf(&r->arena, "%s/gogh.conf", r->dir);
    r->socket = arena_printf(&r->arena, "%s/s", r->dir);
    r->reports = arena_printf(&r->arena, "%s/r", r->dir);
    if (mkdir(r->dir, 0755) != 0)
        return err_set(e, errno, "%s: %s", r->dir, strerror(errno));
    int rc = write_config(r, settings, e);
    if (rc == 0 && c->n_running > 0) {
        r->stand_in = stand_in_start();
        if (r->stand_in < 0)
            rc = err_set(e, errno, "fork: %s", strerror(errno));
    }
    if (rc == 0)
        rc = serve_fill(r->dir, c, r->stand_in, e);
    return rc;
}

void daemon_release(struct test_daemon *r)
{
    reporters_close(&r->reporters);
    daemon_stop(r);
    if (r->stand_in > 0) {
        kill(r->stand_in, SIGKILL);
        waitpid(r->stand_in, NULL, 0);
    }
    arena_release(&r->arena);
}

/* $GOGHD, or beside this program, or wherever the shell would find it. */
static const char *find_daemon(struct arena *a)
{
    const char *told = getenv("GOGHD");
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    if (told)
        return told;
    if (n > 0) {
        self[n] = '\0';
        const char *beside = arena_printf(a, "%.*sd", (int)n, self);
        if (access(beside, X_OK) == 0)
            return beside;
    }
    return "goghd";
}

/* Each run of a job takes the daemon a descriptor. */
static void raise_descriptors(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static _Noreturn void be_daemon(const struct test_daemon *r, const char *program)
{
    char *argv[] = { (char *)program, "--config", (char *)r->config, NULL };
    char log[4096];

    raise_descriptors();
    snprintf(log, sizeof log, "%s/log", r->dir);
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    be_program(argv, NULL, fd, fd);
}

/* What it said before it ended. */
static int not_ready(struct test_daemon *r, const char *program, struct err *e)
{
    const char *text = daemon_log(r);

    daemon_stop(r);
    return err_set(e, ECHILD, "%s is not ready: %.300s", program,
                   *text ? text : "set GOGHD to the daemon's program");
}

int daemon_start(struct test_daemon *r, struct err *e)
{
    const char *program = find_daemon(&r->arena);
    const double began_s = clock_stopwatch_s();
    struct err why = { 0 };

    r->daemon = fork();
    if (r->daemon < 0)
        return err_set(e, errno, "fork: %s", strerror(errno));
    if (r->daemon == 0)
        be_daemon(r, program);
    while (clock_stopwatch_s() - began_s < READY_S) {
        if (conn_open(r->socket, &r->conn, &why) == 0) {
            if (conn_ask(&r->conn, "GET", "/readyz", NULL, &why) == 0) {
                r->ready_s = clock_stopwatch_s() - began_s;
                return 0;
            }
            conn_close(&r->conn);
        }
        if (waitpid(r->daemon, NULL, WNOHANG) == r->daemon) {
            r->daemon = 0;
            break;
        }
        poll(NULL, 0, 1);
    }
    return not_ready(r, program, e);
}

void daemon_stop(struct test_daemon *r)
{
    conn_close(&r->conn);
    if (r->daemon <= 0)
        return;
    kill(r->daemon, SIGTERM);
    (void)wait_until(r->daemon, clock_stopwatch_s() + STOP_S);
    r->daemon = 0;
}

/* ---- how it does ---- */

static double find_metric(const char *page, const char *name)
{
    const size_t len = strlen(name);

    for (const char *at = page; at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
        if (strncmp(at, name, len) == 0 && at[len] == ' ')
            return strtod(at + len, NULL);
    return NAN;
}

/* On a connection of its own: one that is kept is cut off when it is idle for long. */
int daemon_look(struct test_daemon *r, struct err *e)
{
    int rc;

    conn_close(&r->conn);
    rc = conn_open(r->socket, &r->conn, e);
    return rc < 0 ? rc : conn_ask(&r->conn, "GET", "/metrics", NULL, e);
}

double daemon_metric(const struct test_daemon *r, const char *name)
{
    return r->conn.fd >= 0 ? find_metric(conn_body(&r->conn), name) : (double)NAN;
}

int daemon_await(struct test_daemon *r, const char *name, double value, double limit_s,
                 struct err *e)
{
    const double until_s = clock_stopwatch_s() + limit_s;
    int rc = daemon_look(r, e);

    while (rc == 0 && !(daemon_metric(r, name) >= value)) {
        if (clock_stopwatch_s() > until_s)
            return err_set(e, ETIMEDOUT, "%s is %g after %g s, and should be %g", name,
                           daemon_metric(r, name), limit_s, value);
        poll(NULL, 0, 200);
        rc = daemon_look(r, e);
    }
    return rc;
}

const char *daemon_log(struct test_daemon *r)
{
    const char *text = "";
    size_t len = 0;

    (void)file_read(&r->arena, arena_printf(&r->arena, "%s/log", r->dir), NULL, 1 << 20, &text,
                    &len, NULL);
    return text;
}

/* Of /proc/PID/stat the words behind the name, which may hold anything: the 12th to 15th of them
 * are ticks of user and system time, and those of children (proc(5)); of schedstat the second, ns.
 */
struct serve_cpu daemon_cpu(const struct test_daemon *r)
{
    const double tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK);
    double ticks[4] = { 0 };
    char text[1024];
    int n = 0;

    bench_proc_text(r->daemon, "stat", text, sizeof text);
    for (char *at = strrchr(text, ')'); at && n < 16; at = strchr(at + 1, ' '))
        if (++n > 12)
            ticks[n - 13] = strtod(at, NULL);
    bench_proc_text(r->daemon, "schedstat", text, sizeof text);
    const char *second = strchr(text, ' ');
    return (struct serve_cpu){ (ticks[0] + ticks[1]) * tick_s, (ticks[2] + ticks[3]) * tick_s,
                               second ? 1e-9 * strtod(second, NULL) : 0 };
}
