/* Keepers are started on a worker: whoever makes a process waits until it has reached its exec, and
 * on a busy machine that takes its time.
 */
#include "act/local/inner.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>

#include "act/local/proc.h"
#include "base/clock.h"
#include "base/grow.h"
#include "base/log.h"
#include "catalog/cluster/state.h"

#define BATCH 16    // keepers that a worker starts before the loop hears of them

/* A keeper to be. */
struct start {
    struct start *next;
    int job;
    char *dir;
    pid_t pid;
    uint64_t start;
    int rc;
};

/* With a worker, one at a time: the others are for who waits for drivers and for the store. */
struct start_work {
    struct local *local;    // NULL: it is gone
    char *keeper;
    struct start *first;
};

static char *copy(const char *text)
{
    char *c = strdup(text);

    assert(c);    // out of memory: stop
    return c;
}

static void starts_free(struct start *s)
{
    while (s) {
        struct start *next = s->next;

        free(s->dir);
        free(s);
        s = next;
    }
}

/* The keeper leads a session of its own, has no descriptors of ours, and finds those signals
 * blocked that it waits for: what is sent before it is up is not lost.
 */
static int spawn(char *keeper, char *dir, pid_t *pid)
{
    static char *const none[] = { "LC_ALL=C", NULL };
    char *argv[] = { keeper, dir, NULL };
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t all, blocked;
    int rc;

    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&files, 1, 2);
    posix_spawn_file_actions_addclosefrom_np(&files, 3);
    posix_spawnattr_init(&how);
    sigfillset(&all);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGINT);
    sigaddset(&blocked, SIGUSR2);
    posix_spawnattr_setsigdefault(&how, &all);
    posix_spawnattr_setsigmask(&how, &blocked);
    posix_spawnattr_setflags(&how,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    rc = posix_spawn(pid, keeper, &files, &how, argv, none);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
    return -rc;
}

static void start_all(void *self)
{
    struct start_work *w = self;

    for (struct start *s = w->first; s; s = s->next) {
        struct proc p = { .start = 0 };

        s->rc = spawn(w->keeper, s->dir, &s->pid);
        if (s->rc == 0)
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
        if (s->rc < 0)
            log_warn("job %s: cannot start %s: %s", l->state->jobs[s->job]->spec.name, w->keeper,
                     strerror(-s->rc));
        run_spawned(l, run_find(l, s->job), s->rc < 0 ? 0 : s->pid, s->start);
    }
    starts_free(w->first);
    free(w->keeper);
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
    *w = (struct start_work){ .local = l, .keeper = copy(l->keeper), .first = l->starts };
    l->starts = *end;
    *end = NULL;
    l->starting = w;
    loop_work(l->loop, "keepers", start_all, on_started, w);
}

void start_ask(struct local *l, const struct run *r)
{
    struct start **end = &l->starts;
    struct start *s = heap_array(1, sizeof *s);

    *s = (struct start){ .job = r->job, .dir = copy(r->dir) };
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
