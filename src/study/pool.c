#include "study/pool.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/progress.h"

#define TURN_NS 100000000    // between two looks at the children and the screen: 0.1 s

/* What a child that failed says. */
struct child_failure {
    bool cannot_write;    // then nobody can
    struct err err;
};

/* A run to do. */
struct pool_task {
    int key;
    double cost;
};

struct pool_child {
    pid_t pid;    // 0: the place is free
    struct pool_task task;
    int from;    // where its word comes from
};

struct pool {
    struct arena *arena;
    struct results *results;
    const struct study_run *keys;
    const struct pool_options *options;
    struct pool_report *report;

    struct pool_task *todo;    // (n_todo) the long ones first
    int n_todo, n_begun;
    struct pool_child *children;    // (n_children)
    int n_children;

    sigset_t waited, before;    // signals that are waited for; the mask of before
    double done_cost, total_cost;
    struct progress progress;
    char said[64];    // what it shows
};

/* ---- a child ---- */

static int do_run(struct pool *p, const struct study_run *k, struct child_failure *w)
{
    pool_run_f *run = p->options->run != NULL ? p->options->run : study_run_do;
    struct study_result r = { 0 };
    struct arena a;

    arena_init(&a);
    int rc = run(&a, k, p->options->data, &r, &w->err);
    if (rc == 0) {
        rc = results_keep(p->results, k, &r, &w->err);
        w->cannot_write = rc < 0;
    }
    arena_release(&a);
    return rc;
}

static _Noreturn void child_run(struct pool *p, int key, int to, pid_t parent)
{
    struct child_failure w = { 0 };

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)    // it ended before it could be told
        _exit(1);
    results_unlock(p->results);    // the directory is free when the parent ends
    sigprocmask(SIG_SETMASK, &p->before, NULL);
    log_set_level(LOG_ERROR);    // a warning about the data would come from every run
    int rc = do_run(p, &p->keys[key], &w);
    bool is_said = rc == 0 || write(to, &w, sizeof w) == (ssize_t)sizeof w;
    _exit(rc == 0 && is_said ? 0 : 1);
}

static int begin(struct pool *p, struct pool_child *c, struct err *e)
{
    pid_t parent = getpid();
    int ends[2];

    if (pipe(ends) < 0)
        return err_set(e, errno, "pipe: %s", strerror(errno));
    c->task = p->todo[p->n_begun];
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        child_run(p, c->task.key, ends[1], parent);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return err_set(e, errno, "fork: %s", strerror(errno));
    }
    c->pid = pid;
    c->from = ends[0];
    p->n_begun++;
    return 0;
}

/* ---- its end ---- */

static void note_failure(struct pool *p, int key, const char *why)
{
    const char *name = study_run_name(p->arena, &p->keys[key]);

    p->report->n_failed++;
    if (p->report->first_failure == NULL)
        p->report->first_failure = arena_printf(p->arena, "run %s: %s", name, why);
}

/* What became of a child that has ended with 'status'. Only a directory that cannot be written
 * is an error of the pool.
 */
static int end(struct pool *p, struct pool_child *c, int status, struct err *e)
{
    struct child_failure w = { 0 };
    bool has_word = read(c->from, &w, sizeof w) == (ssize_t)sizeof w;

    close(c->from);
    c->pid = 0;
    p->done_cost += c->task.cost;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        p->report->n_done++;
        return 0;
    }
    if (has_word && w.cannot_write) {
        *e = w.err;
        return -w.err.code;
    }
    if (has_word)
        note_failure(p, c->task.key, w.err.text);
    else if (WIFSIGNALED(status))
        note_failure(p, c->task.key,
                     arena_printf(p->arena, "ended by signal %d (%s)", WTERMSIG(status),
                                  strsignal(WTERMSIG(status))));
    else
        note_failure(p, c->task.key, "ended without a word");
    return 0;
}

/* Every place whose child has ended is free again. Gives how many are at work, or -Exxx. */
static int reap(struct pool *p, struct err *e)
{
    int n = 0;

    for (int i = 0; i < p->n_children; i++) {
        struct pool_child *c = &p->children[i];
        int status = 0, rc = 0;

        if (c->pid == 0)
            continue;
        pid_t pid = waitpid(c->pid, &status, WNOHANG);
        if (pid == c->pid)
            rc = end(p, c, status, e);
        else
            n++;
        if (rc < 0)
            return rc;
    }
    return n;
}

static void stop_children(struct pool *p)
{
    for (int i = 0; i < p->n_children; i++) {
        struct pool_child *c = &p->children[i];

        if (c->pid == 0)
            continue;
        kill(c->pid, SIGKILL);
        while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
        close(c->from);
        c->pid = 0;
    }
}

/* ---- the pool ---- */

static int begin_more(struct pool *p, struct err *e)
{
    int rc = 0;

    for (int i = 0; i < p->n_children && p->n_begun < p->n_todo && rc == 0; i++) {
        if (p->children[i].pid == 0)
            rc = begin(p, &p->children[i], e);
    }
    return rc;
}

/* Until a child ends or a moment has passed. True: somebody wants us to stop. */
static bool wait_a_moment(const struct pool *p)
{
    const struct timespec moment = { .tv_nsec = TURN_NS };
    int sig = sigtimedwait(&p->waited, NULL, &moment);

    return sig == SIGINT || sig == SIGTERM;
}

static void show_progress(struct pool *p)
{
    snprintf(p->said, sizeof p->said, "%d of %d runs,", p->report->n_done + p->report->n_failed,
             p->n_todo);
    progress_step(&p->progress, p->done_cost, p->total_cost);
}

static int work(struct pool *p, struct err *e)
{
    for (;;) {
        int rc = begin_more(p, e);

        if (rc == 0 && wait_a_moment(p))
            rc = -EINTR;
        if (rc == 0)
            rc = reap(p, e);
        if (rc < 0)
            return rc;
        if (rc == 0 && p->n_begun == p->n_todo)
            return 0;
        show_progress(p);
    }
}

/* Children's ends and wishes to stop are taken one by one, never in the middle of something. A
 * signal that is ignored, as by nohup, intervals ignored.
 */
static void hold_signals(struct pool *p)
{
    static const int stops[] = { SIGINT, SIGTERM };

    sigemptyset(&p->waited);
    sigaddset(&p->waited, SIGCHLD);
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        struct sigaction now;

        if (sigaction(stops[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaddset(&p->waited, stops[i]);
    }
    sigprocmask(SIG_BLOCK, &p->waited, &p->before);
}

/* Long ones first, so that none is left alone at the end. */
static int by_cost(const void *a, const void *b)
{
    const struct pool_task *x = a, *y = b;

    if (x->cost != y->cost)
        return x->cost > y->cost ? -1 : 1;
    return (x->key > y->key) - (x->key < y->key);
}

/* Where nobody watches, it is said once. */
static void begin_progress(struct pool *p)
{
    progress_begin(&p->progress, p->said, false);
    if (p->options->is_quiet)
        p->progress.is_shown = false;
    else if (!p->progress.is_shown && p->n_todo > 0)
        fprintf(stderr, "%d run%s, %d at a time\n", p->n_todo, p->n_todo == 1 ? "" : "s",
                p->n_children < p->n_todo ? p->n_children : p->n_todo);
}

static int do_todo(struct pool *p, struct err *e)
{
    int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);

    p->n_children = p->options->n_parallel > 0 ? p->options->n_parallel : cores;
    if (p->n_children < 1)
        p->n_children = 1;
    p->children = ARENA_ARRAY(p->arena, struct pool_child, (size_t)p->n_children);
    for (int i = 0; i < p->n_todo; i++)
        p->total_cost += p->todo[i].cost;
    if (p->n_todo > 0)
        qsort(p->todo, (size_t)p->n_todo, sizeof *p->todo, by_cost);
    hold_signals(p);
    begin_progress(p);
    int rc = p->n_todo > 0 ? work(p, e) : 0;
    progress_end(&p->progress);
    stop_children(p);
    sigprocmask(SIG_SETMASK, &p->before, NULL);
    return rc;
}

static void find_todo(struct pool *p, int n_keys)
{
    struct study_result r;
    struct arena a;

    arena_init(&a);
    p->todo = ARENA_ARRAY(p->arena, struct pool_task, (size_t)n_keys);
    for (int i = 0; i < n_keys; i++) {
        if (results_has(&a, p->results, &p->keys[i], &r))
            p->report->n_kept++;
        else
            p->todo[p->n_todo++] =
                (struct pool_task){ .key = i, .cost = study_run_cost(&p->keys[i]) };
        arena_reset(&a);
    }
    arena_release(&a);
}

int pool_run(struct arena *a, struct results *b, const struct study_run *keys, int n_keys,
             const struct pool_options *o, struct pool_report *report, struct err *e)
{
    struct pool p = { .arena = a, .results = b, .keys = keys, .options = o, .report = report };

    assert(b->is_locked);
    *report = (struct pool_report){ 0 };
    find_todo(&p, n_keys);
    int rc = do_todo(&p, e);
    results_fill(a, b, keys, n_keys);
    if (rc != -EINTR)
        return rc;
    return err_set(e, EINTR,
                   "interrupted; %d of %d runs are kept in %s: the same command goes on from there",
                   b->n_rows, n_keys, b->dir);
}
