/* child.c - a piece of work in a process of its own, with a deadline. */
#include "bench/bench.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

/* What comes through the pipe before the result. */
struct child_report {
    int rc;
    struct err err;
    double more_bytes;
};

void bench_proc_text(pid_t pid, const char *file, char *text, size_t size)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    FILE *f = fopen(path, "re");
    text[f ? fread(text, 1, size - 1, f) : 0] = '\0';
    if (f)
        fclose(f);
}

double bench_memory(pid_t pid, const char *key)
{
    char text[4096];

    bench_proc_text(pid, "status", text, sizeof text);
    const char *at = strstr(text, key);
    return at ? 1024.0 * strtod(at + strlen(key) + 1, NULL) : (double)NAN;
}

static void child_run(bench_child_f *f, const void *self, void *out, size_t size, int to)
{
    struct child_report w = { 0 };
    struct rusage use;
    double before = bench_memory(getpid(), "VmRSS");

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    w.rc = f(self, out, &w.err);
    getrusage(RUSAGE_SELF, &use);
    w.more_bytes = fmax(1024.0 * (double)use.ru_maxrss - before, 0);
    bool is_said =
        write(to, &w, sizeof w) == (ssize_t)sizeof w && write(to, out, size) == (ssize_t)size;
    _exit(is_said ? 0 : 1);
}

/* Fill 'to' before the deadline. 0, -ETIMEDOUT, or -ECHILD when there is no more to come. */
static int hear(int fd, void *to, size_t n, double until_s)
{
    for (char *at = to; n > 0;) {
        double left_s = until_s - clock_stopwatch_s();
        struct pollfd p = { .fd = fd, .events = POLLIN };
        int ready = left_s > 0 ? poll(&p, 1, (int)fmin(ceil(left_s * 1e3), 1e9)) : 0;

        if (ready < 0 && errno == EINTR)
            continue;
        if (ready == 0 && left_s < 1e6)
            return -ETIMEDOUT;
        ssize_t got = read(fd, at, n);
        if (got <= 0)
            return -ECHILD;
        at += got;
        n -= (size_t)got;
    }
    return 0;
}

int bench_child(bench_child_f *f, const void *self, double limit_s, void *out, size_t size,
                double *more_bytes, struct err *e)
{
    double until_s = limit_s > 0 ? clock_stopwatch_s() + limit_s : (double)INFINITY;
    struct child_report w;
    int ends[2];

    if (pipe(ends) < 0)
        return err_set(e, errno, "pipe: %s", strerror(errno));
    fflush(NULL);
    pid_t child = fork();
    if (child < 0)
        return err_set(e, errno, "fork: %s", strerror(errno));
    if (child == 0)
        child_run(f, self, out, size, ends[1]);
    close(ends[1]);
    int rc = hear(ends[0], &w, sizeof w, until_s);
    if (rc == 0)
        rc = hear(ends[0], out, size, until_s);
    close(ends[0]);
    kill(child, SIGKILL);    // it has said all it will; a zombie does not mind
    waitpid(child, NULL, 0);
    if (rc == -ETIMEDOUT)
        return err_set(e, ETIMEDOUT, "not done after %g s", limit_s);
    if (rc < 0)
        return err_set(e, ECHILD, "a run ended without a result");
    *more_bytes = w.more_bytes;
    *e = w.err;
    return w.rc;
}
