/* Keepers are started on a worker: whoever makes a process waits until it has reached its exec, and
 * on a busy machine that takes its time.
 */
#include "act/local/inner.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "act/local/proc.h"
#include "base/grow.h"
#include "base/log.h"
#include "catalog/cluster/state.h"

#define BATCH 16    // keepers that a worker starts before the loop hears of them

/* A keeper to be. */
struct start {
    struct start *next;
    int job;
    char *dir;
    pid_t pid;    // or -errno
    uint64_t start;
};

/* With a worker, one at a time: the others are for who waits for drivers and for the store. */
struct start_work {
    struct local *local;    // NULL: it is gone
    const char *keeper;
    struct start *first;
};

static void starts_free(struct start *s)
{
    while (s) {
        struct start *next = s->next;

        free(s->dir);
        free(s);
        s = next;
    }
}

/* What is sent to it before it is up is not lost. */
static pid_t spawn(const char *keeper, const char *dir)
{
    char *const argv[] = { (char *)keeper, (char *)dir, NULL };
    sigset_t blocked;

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGINT);
    sigaddset(&blocked, SIGUSR2);
    return proc_spawn(&(struct proc_spawn){ .program = keeper,
                                            .argv = argv,
                                            .env = (char *[]){ "LC_ALL=C", NULL },
                                            .fd = -1,
                                            .blocked = &blocked });
}

static void start_all(void *self)
{
    struct start_work *w = self;

    for (struct start *s = w->first; s; s = s->next) {
        struct proc p = { .start = 0 };

        s->pid = spawn(w->keeper, s->dir);
        if (s->pid > 0)
            (void)proc_read(s->pid, &p);    // ours, and there until we wait for it
        s->start = p.start;
    }
}

static void begin_next(struct local *l);

static void on_started(void *self)
{
    struct start_work *w = self;
    struct local *l = w->local;

    for (struct start *s = w->first; s && l; s = s->next) {
        if (s->pid < 0)
            log_warn("job %s: cannot start %s: %s", l->setup.state->jobs[s->job]->spec.name,
                     w->keeper, strerror(-s->pid));
        run_spawned(l, run_find(l, s->job), s->pid, s->start);
    }
    starts_free(w->first);
    free(w);
    if (l) {
        l->starting = NULL;
        begin_next(l);
    }
}

static void begin_next(struct local *l)
{
    struct start_work *w;
    struct start **end = &l->starts;

    if (l->starting || !l->starts)
        return;
    for (int i = 0; i < BATCH && *end; i++)
        end = &(*end)->next;
    w = heap_array(1, sizeof *w);
    *w = (struct start_work){ .local = l, .keeper = l->setup.keeper, .first = l->starts };
    l->starts = *end;
    *end = NULL;
    l->starting = w;
    loop_work(l->setup.loop, "keepers", start_all, on_started, w);
}

void start_ask(struct local *l, const struct run *r)
{
    struct start **end = &l->starts;
    struct start *s = heap_array(1, sizeof *s);

    *s = (struct start){ .job = r->job, .dir = heap_text(r->dir) };
    while (*end)
        end = &(*end)->next;
    *end = s;
    begin_next(l);
}

void start_release(struct local *l)
{
    starts_free(l->starts);    // their directories are removed when runs are adopted
    if (l->starting)
        l->starting->local = NULL;    // its worker frees it
}
