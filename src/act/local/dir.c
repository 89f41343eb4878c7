/* The run directory: one folder a run, found again after a restart, removed when there are many. */
#include "act/local/inner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "act/local/proc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/log.h"
#include "base/text/file.h"
#include "base/text/text.h"
#include "catalog/cluster/state.h"

/* Folders of ended jobs that are kept for their logs: a site's last days, in a few MB. */
#define LEFTOVERS_MAX 1000

#define COMING_S 60.0    // a keeper that is just taking its order is given this long

char *dir_path(struct arena *a, const struct local *l, int job, int number)
{
    return arena_printf(a, "%s/%d.%d", l->run_dir, job, number);
}

static int cannot(struct err *e, const char *path)
{
    return err_set(e, errno, "%s: cannot write: %s", path, strerror(errno));
}

int dir_make(struct local *l, int job, int *number, struct err *e)
{
    const char *path = dir_path(&l->scratch, l, job, *number);

    /* Owners may pass through to their logs, and see nothing else. */
    while (mkdir(path, 0711) != 0) {
        if (errno != EEXIST || *number == INT_MAX)
            return cannot(e, path);
        path = dir_path(&l->scratch, l, job, ++*number);
    }
    return 0;
}

/* Whole or not at all: a keeper reads what is called 'order'. It is the keeper that makes it
 * durable (keeper_main.c): that may take a while, and the loop has none.
 */
int dir_write(struct local *l, const struct launch *o, struct err *e)
{
    const char *dir = dir_path(&l->scratch, l, (int)o->job, (int)o->run);
    const char *path = arena_printf(&l->scratch, "%s/order", dir);
    const char *temp = arena_printf(&l->scratch, "%s/order.new", dir);
    const char *text = launch_encode(&l->scratch, o);
    int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int rc;

    if (fd < 0)
        return cannot(e, temp);
    rc = file_write_all(fd, text, strlen(text)) == 0 ? 0 : cannot(e, temp);
    if (close(fd) != 0 && rc == 0)
        rc = cannot(e, temp);
    if (rc == 0 && rename(temp, path) != 0)
        rc = cannot(e, path);
    return rc;
}

void dir_remove(const struct local *l, int job, int number)
{
    static const char *const files[] = { "order", "order.new", "status", "lock",
                                         "out",   "err",       "told" };
    struct arena a;
    const char *path;
    int dir;

    arena_init(&a);
    path = dir_path(&a, l, job, number);
    dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    for (size_t i = 0; i < sizeof files / sizeof *files && dir >= 0; i++)
        (void)unlinkat(dir, files[i], 0);
    if (dir >= 0)
        close(dir);
    if (rmdir(path) != 0 && errno != ENOENT)
        log_warn("%s: cannot remove: %s", path, strerror(errno));
    arena_release(&a);
}

/* An empty file says that the end of this run is in the journal. */
void dir_mark_told(const struct local *l, int job, int number)
{
    struct arena a;
    int fd;

    if (number < 0)
        return;
    arena_init(&a);
    fd = open(arena_printf(&a, "%s/%d.%d/told", l->run_dir, job, number),
              O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    arena_release(&a);
}

void dir_mark_later(struct local *l, int job, int number, bool is_last)
{
    GROW(l->ends, l->n_ends, l->cap_ends);
    l->ends[l->n_ends++] = (struct run_end){ job, number, is_last };
}

int dir_lock(int dir)
{
    int fd = openat(dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return -errno;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    close(fd);
    return -EBUSY;
}

static void dir_leave(struct local *l, int job, int number)
{
    GROW(l->old_dirs, l->n_old_dirs, l->cap_old_dirs);
    l->old_dirs[l->n_old_dirs++] = (struct old_dir){ job, number };
    while (l->n_old_dirs - l->first_old_dir > LEFTOVERS_MAX) {
        const struct old_dir *old = &l->old_dirs[l->first_old_dir++];
        struct run *r = run_find(l, old->job);

        dir_remove(l, old->job, old->number);
        if (r && r->phase == RUN_ENDED && r->number == old->number)
            run_free(l, r);
    }
    if (l->first_old_dir > LEFTOVERS_MAX) {
        l->n_old_dirs -= l->first_old_dir;
        memmove(l->old_dirs, l->old_dirs + l->first_old_dir,
                (size_t)l->n_old_dirs * sizeof *l->old_dirs);
        l->first_old_dir = 0;
    }
}

/* A move leaves a directory behind, too. */
void dir_leave_all(struct local *l, int job, int last)
{
    for (int i = 0; i <= last; i++)
        dir_leave(l, job, i);
}

/* ---- after a restart ---- */

static bool parse_name(const char *name, struct old_dir *out)
{
    const char *dot = strchr(name, '.');
    long job = 0, number = 0;

    if (!dot || text_to_long((struct slice){ name, (size_t)(dot - name) }, 0, INT_MAX, &job) < 0 ||
        text_to_long(slice_of(dot + 1), 0, INT_MAX, &number) < 0)
        return false;
    *out = (struct old_dir){ (int)job, (int)number };
    return true;
}

static int by_run(const void *a, const void *b)
{
    const struct old_dir *x = a, *y = b;

    if (x->job != y->job)
        return x->job < y->job ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static int scan(const struct local *l, struct old_dir **out, int *n, struct err *e)
{
    DIR *d = opendir(l->run_dir);
    struct dirent *entry;
    int cap = 0;

    *out = NULL;
    *n = 0;
    if (!d)
        return err_set(e, errno, "%s: cannot read: %s", l->run_dir, strerror(errno));
    while ((entry = readdir(d)) != NULL) {
        struct old_dir found;

        if (!parse_name(entry->d_name, &found))
            continue;
        GROW(*out, *n, cap);
        (*out)[(*n)++] = found;
    }
    closedir(d);
    if (*n)
        qsort(*out, (size_t)*n, sizeof **out, by_run);
    return 0;
}

/* A run whose order nobody took. Whoever has the lock decides: we, and there never was such a run,
 * or a keeper that is just coming up, and it is awaited.
 */
static bool remove_untaken(const struct local *l, const struct old_dir *x, int dir,
                           struct status *st)
{
    int lock = dir_lock(dir);
    bool is_none = false;

    if (lock < 0)
        return false;
    is_none = status_read(dir, st) == 0 && !st->is_taken && st->ended == ENDED_NOT;
    if (is_none)
        dir_remove(l, x->job, x->number);
    close(lock);
    return is_none;
}

static bool is_known(const struct local *l, const struct launch *o)
{
    return o->job < l->setup.state->n_jobs &&
           fabs(l->setup.state->jobs[o->job]->spec.submit_s - o->submit_s) < 1e-3;
}

static bool is_left(const struct local *l, int job)
{
    const struct run *r = run_find(l, job);

    return job >= l->setup.state->n_jobs ||
           (job_is_over(l->setup.state->jobs[job]) && (!r || r->phase == RUN_ENDED));
}

static struct run *remember(struct local *l, const struct launch *o)
{
    struct run *r = run_get(l, (int)o->job);

    run_set_names(l, r, o);
    gpu_set_copy(&r->at, o->gpus, o->n_gpus);
    r->at.limit_w = (int)o->limit_w;
    r->n_failures = (int)o->n_failures;
    r->is_move = o->is_move;
    return r;
}

static bool is_for_good(const struct run *r, const struct status *st)
{
    if (status_is_bad(st))
        return r->n_failures >= r->retries;
    return st->ended != ENDED_STOPPED && !status_is_incapable(st);
}

/* Is the end of a run that does not run any more, as the state has it, nothing new? A job that
 * waits has been told to since; the mark itself may have come too late.
 */
static bool is_old(const struct job *j, const struct status *st, bool was_told)
{
    if (st->ended == ENDED_NOT || j->state == JOB_RUNNING)
        return false;
    return was_told || j->state != JOB_WAITING ||
           (!isnan(j->started_s) && j->changed_s >= st->ended_s - 1e-3);
}

/* Where the state and the run stand, and what is to be done about it. */
static void adopt(struct local *l, const struct launch *o, const struct status *st, bool was_told)
{
    struct run *r = remember(l, o);
    const struct job *j = l->setup.state->jobs[r->job];

    r->is_told = j->state == JOB_RUNNING;
    r->due_s = clock_stopwatch_s() + COMING_S;
    if (is_old(j, st, was_told)) {
        r->is_unheard = !was_told && j->state == JOB_HELD && is_for_good(r, st);
        r->n_failures += !r->is_unheard && status_is_bad(st);
        return;
    }
    if (r->is_told && gpu_set_is(&r->at, j->gpus, j->n_held)) {
        r->at.limit_w = j->limit_w;    // may have changed since its order was written
        run_set_phase(l, r, st->is_started ? RUN_RUNNING : RUN_WANTED);
        if (st->is_started)
            r->due_s = (double)INFINITY;
    } else {
        run_set_phase(l, r, RUN_WANTED);
    }
    limit_note(l, &r->at);
    if (st->ended == ENDED_NOT && !job_may_run(j))
        run_leave(l, r, j->state == JOB_HELD ? WISH_STOP : WISH_CANCEL);
    else if (st->ended == ENDED_NOT && st->is_stopping)
        run_leave(l, r, WISH_STOP);
    run_look(l, r);
}

/* The run of a job that this store has never heard of. */
static void send_away(const struct local *l, const struct old_dir *x, const struct status *st)
{
    if (st->ended != ENDED_NOT || !st->is_taken || strcmp(st->boot, l->boot) != 0)
        return;
    if (proc_signal(st->keeper_pid, st->keeper_start, SIGUSR2) == 0)
        log_warn("%s/%d.%d: runs for a job that is not in the store; ended", l->run_dir, x->job,
                 x->number);
}

/* There is no order to read. If nobody took one there was no run, and the folder is removed. */
static int meet_nothing(struct local *l, const struct old_dir *x, int rc, bool is_taken,
                        struct err *e)
{
    const char *path = dir_path(&l->scratch, l, x->job, x->number);
    const char *why = arena_strdup(&l->scratch, e->text);

    if (!is_taken && (rc == -ENOENT || rc == -EINVAL)) {
        dir_remove(l, x->job, x->number);
        return 0;
    }
    return err_set(e, -rc, "%s: %s; mend it, or end what runs there and remove it", path, why);
}

static int meet_in(struct local *l, const struct old_dir *x, int dir, struct err *e)
{
    struct status st = { 0 };
    struct launch o = { .job = -1 };
    int rc = status_read(dir, &st);

    if (rc < 0)
        return err_set(e, -rc, "%s/status: cannot read: %s",
                       dir_path(&l->scratch, l, x->job, x->number), strerror(-rc));
    rc = launch_read(&l->scratch, dir, &o, e);
    if (rc == 0 && (o.job != x->job || o.run != x->number))
        rc = err_set(e, EINVAL, "order: is of %ld.%ld", o.job, o.run);
    if (rc < 0)
        return meet_nothing(l, x, rc, st.is_taken, e);
    if (!st.is_taken && st.ended == ENDED_NOT && remove_untaken(l, x, dir, &st))
        return 0;
    if (is_known(l, &o))
        adopt(l, &o, &st, faccessat(dir, "told", F_OK, 0) == 0);
    else
        send_away(l, x, &st);
    return 1;
}

/* A run: 1, 0 if there never was one and the folder is gone, or -errno: who cannot be read may run.
 */
static int meet(struct local *l, const struct old_dir *x, struct err *e)
{
    const char *path = dir_path(&l->scratch, l, x->job, x->number);
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    int rc;

    if (dir < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
        return 0;
    if (dir < 0)
        return err_set(e, errno, "%s: cannot read: %s", path, strerror(errno));
    rc = meet_in(l, x, dir, e);
    close(dir);
    return rc;
}

/* Its keeper could not take it: it has not begun, and the run before is the last one again. */
void dir_take_back(struct local *l, struct run *r)
{
    const int number = r->number;
    struct launch o;
    int dir = -1;

    dir_remove(l, r->job, number);
    r->number = -1;
    for (int i = number - 1; i >= 0 && r->number < 0; i--) {
        dir = open(dir_path(&l->scratch, l, r->job, i), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir >= 0 && launch_read(&l->scratch, dir, &o, NULL) == 0)
            run_set_names(l, r, &o);
        if (dir >= 0)
            close(dir);
    }
}

static bool is_here(const struct local *l, const struct job *j)
{
    return j->n_held > 0 && l->setup.state->gpus[j->gpus[0]].node == l->setup.node;
}

/* The state has it running, and there is no trace of it, nor of anything that is yet to be heard.
 * Also after a cancelling that did not get to the disk.
 */
void dir_miss_lost(struct local *l)
{
    if (notices_first(&l->notices) || l->n_ends > 0)
        return;
    for (int i = 0; i < l->setup.state->n_running; i++) {
        const struct job *j = l->setup.state->jobs[l->setup.state->running[i]];
        struct run *r = is_here(l, j) ? run_get(l, j->id) : NULL;

        if (r && r->phase == RUN_ENDED)
            notice_push(l, r, NOTICE_STOPPED, clock_now_s(l->setup.clock), "its run is gone");
    }
}

/* The runs of one job: (n) of them in order, of which the last one counts. */
static int adopt_job(struct local *l, const struct old_dir *found, int n, struct err *e)
{
    int rc = 0;

    while (n > 0 && rc == 0) {
        arena_reset(&l->scratch);
        rc = meet(l, &found[--n], e);
    }
    if (rc < 0)
        return rc;
    for (int i = 0; i <= n && rc > 0 && is_left(l, found->job); i++)
        dir_leave(l, found->job, found[i].number);
    return 0;
}

int dir_adopt_all(struct local *l, struct err *e)
{
    struct old_dir *found;
    int n, end;
    int rc = scan(l, &found, &n, e);

    for (int i = 0; rc == 0 && i < n; i = end) {
        for (end = i + 1; end < n && found[end].job == found[i].job;)
            end++;
        rc = adopt_job(l, &found[i], end - i, e);
    }
    free(found);
    return rc;
}

/* ---- keepers that call ---- */

/* "started JOB RUN" or "ended JOB RUN": a hint to look, from anybody who can reach the socket. */
static void on_notice(void *self, int fd, unsigned ready)
{
    struct local *l = self;
    char text[80];

    (void)ready;
    for (int i = 0; i < 64; i++) {
        ssize_t n = recv(fd, text, sizeof text - 1, MSG_DONTWAIT);
        if (n < 0)
            return;
        text[n] = '\0';
        const char *at = text + strcspn(text, " ");    // "ended JOB RUN"
        at += strspn(at, " ");
        const struct slice word = { .at = at, .len = strcspn(at, " ") };
        long job;
        struct run *r = text_to_long(word, 0, INT_MAX, &job) == 0 ? run_find(l, (int)job) : NULL;
        if (r)
            run_look(l, r);
    }
}

static int bind_here(int fd, int dir)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };

    /* By way of /proc, for a directory's path may be longer than an address can be. */
    snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/notices.sock", dir);
    (void)unlinkat(dir, "notices.sock", 0);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0)
        return -errno;
    return fchmodat(dir, "notices.sock", 0622, 0) == 0 ? 0 : -errno;
}

int dir_listen(struct local *l, struct err *e)
{
    int dir = open(l->run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = 0;

    l->notice_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->notice_fd < 0 || dir < 0)
        rc = err_set(e, errno, "%s: %s", l->run_dir, strerror(errno));
    else if ((rc = bind_here(l->notice_fd, dir)) < 0)
        (void)err_set(e, -rc, "%s/notices.sock: cannot make: %s", l->run_dir, strerror(-rc));
    if (dir >= 0)
        close(dir);
    if (rc == 0)
        rc =
            loop_watch(l->setup.loop, l->notice_fd, LOOP_READ, "keepers' notices", on_notice, l, e);
    return rc;
}
