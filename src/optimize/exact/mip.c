#include "optimize/exact/mip.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <coin/Cbc_C_Interface.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"

/* ---- the child ---- */

#define CHILD_FD 3       // where the child writes
#define OWN_TIME 0.85    // CBC is told this share of the time, so that it may still speak

static void say(const void *what, size_t n)
{
    for (const char *at = what; n > 0;) {
        ssize_t done = write(CHILD_FD, at, n);
        if (done <= 0)
            _exit(1);
        at += done;
        n -= (size_t)done;
    }
}

static Cbc_Model *model_load(const struct mip *m)
{
    Cbc_Model *model = Cbc_newModel();

    Cbc_loadProblem(model, m->n_columns, m->n_rows, m->start, m->row, m->value, NULL, m->upper,
                    m->cost, m->row_low, m->row_high);
    for (int c = 0; c < m->n_columns; c++)
        if (m->is_integer[c])
            Cbc_setInteger(model, c);
    return model;
}

/* Without anything whole it solves the relaxation only, and keeps the solution elsewhere. */
static const double *model_solution(Cbc_Model *model)
{
    if (Cbc_getNumIntegers(model) > 0)
        return Cbc_bestSolution(model);
    return Cbc_isProvenOptimal(model) ? Cbc_getColSolution(model) : NULL;
}

/* 'is_plain': without heuristics and cuts, in which it crashes now and then. */
static void model_set(Cbc_Model *model, const struct mip_options *o, bool is_plain)
{
    Cbc_setLogLevel(model, 0);
    if (!o->is_as_shipped)
        Cbc_setParameter(model, "preprocess", "off");
    if (is_plain || o->is_proof)
        Cbc_setParameter(model, "heur", "off");
    if (is_plain)
        Cbc_setParameter(model, "cuts", "off");
    Cbc_setParameter(model, "increment", "1e-7");
    if (o->most) {
        char most[32];
        snprintf(most, sizeof most, "%.15g", *o->most);
        Cbc_setParameter(model, "cutoff", most);
    }
    Cbc_setParameter(model, "timeMode", "elapsed");
    Cbc_setAllowableGap(model, 0);
    Cbc_setAllowableFractionGap(model, 0);
    Cbc_setMaximumSeconds(model, o->time_s * OWN_TIME);
}

/* What it says when it has a solution: the result, and the solution after it. */
static void child_solve(const struct mip *m, const struct mip_options *o, bool is_plain)
{
    Cbc_Model *model = model_load(m);

    model_set(model, o, is_plain);
    Cbc_solve(model);

    const double *x = model_solution(model);
    bool is_optimal = Cbc_isProvenOptimal(model) && Cbc_status(model) <= 0;
    struct mip_result said = {
        .status = is_optimal ? MIP_OPTIMAL : MIP_FEASIBLE,
        .nodes = Cbc_getNodeCount(model),
        .objective = Cbc_getObjValue(model),
        .bound = Cbc_getBestPossibleObjValue(model),
    };
    if (!x)
        return;
    say(&said, sizeof said);
    say(x, (size_t)m->n_columns * sizeof *x);
}

/* It holds nothing of its parent's but memory: no files, no signal handlers, no output. */
static _Noreturn void child_run(const struct mip *m, const struct mip_options *o, bool is_plain,
                                int fd, pid_t parent)
{
    int null = open("/dev/null", O_RDWR);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || null < 0)
        _exit(1);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    if (fd != CHILD_FD) {
        if (null == CHILD_FD && (null = dup(null)) < 0)
            _exit(1);
        dup2(fd, CHILD_FD);
    }
    for (int k = 0; k < CHILD_FD; k++)
        dup2(null, k);
    close_range(CHILD_FD + 1, ~0U, 0);
    child_solve(m, o, is_plain);
    _exit(0);
}

/* ---- the parent ---- */

/* Fill 'to' before the deadline; false: too late, or the child is gone. */
static bool hear(int fd, void *to, size_t n, double until_s)
{
    char *at = to;

    while (n > 0) {
        double left_s = until_s - clock_stopwatch_s();
        struct pollfd p = { .fd = fd, .events = POLLIN };
        ssize_t got = left_s > 0 ? poll(&p, 1, (int)fmin(ceil(left_s * 1e3), 1e9)) : 0;
        if (got > 0)
            got = read(fd, at, n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        n -= (size_t)got;
    }
    return true;
}

static void parent_hear(struct arena *a, const struct mip *m, int fd, double until_s,
                        struct mip_result *out)
{
    double *x = ARENA_ARRAY(a, double, (size_t)m->n_columns);
    struct mip_result said;

    if (!hear(fd, &said, sizeof said, until_s) ||
        !hear(fd, x, (size_t)m->n_columns * sizeof *x, until_s))
        return;
    *out = said;
    out->x = x;
}

/* One child, from beginning to end. */
static int solve_once(struct arena *a, const struct mip *m, const struct mip_options *o,
                      bool is_plain, struct mip_result *out, bool *has_failed, struct err *e)
{
    double until_s = clock_stopwatch_s() + o->time_s;
    pid_t parent = getpid();
    int fds[2], status = 0;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_set(e, errno, "cannot make a pipe to CBC: %s", strerror(errno));
    pid_t child = fork();
    if (child < 0) {
        int code = errno;
        close(fds[0]);
        close(fds[1]);
        return err_set(e, code, "cannot start a process for CBC: %s", strerror(code));
    }
    if (child == 0)
        child_run(m, o, is_plain, fds[1], parent);
    close(fds[1]);
    parent_hear(a, m, fds[0], until_s, out);
    close(fds[0]);
    kill(child, SIGKILL);    // has said all it will; a zombie does not mind
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    *has_failed = out->status == MIP_NONE &&
                  (o->is_proof || (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL));
    return 0;
}

int mip_solve(struct arena *a, const struct mip *m, const struct mip_options *o,
              struct mip_result *out, struct err *e)
{
    double began_s = clock_stopwatch_s();
    bool has_failed = true;
    int rc = 0;

    *out = (struct mip_result){ .objective = INFINITY, .bound = -INFINITY };
    for (int i = 0; i < 2 && rc == 0 && has_failed; i++) {
        struct mip_options left = *o;
        left.time_s -= clock_stopwatch_s() - began_s;
        has_failed = false;
        if (left.time_s > 0)
            rc = solve_once(a, m, &left, i == 1, out, &has_failed, e);
    }
    out->seconds = clock_stopwatch_s() - began_s;
    return rc;
}
