/* The life of a run: begun by a keeper, looked at when there is news, ended. */
#include "act/local/inner.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "act/local/proc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/log.h"
#include "catalog/cluster/state.h"

#define SWEEP_S 2.0      // what was not noticed otherwise is noticed by then
#define HURRY_S 0.05     // while processes without a keeper are being killed
#define SWEEP_MAX 256    // running ones in a sweep: some 10 us each

#define BEGIN_S 60.0       // from a keeper to its command: longer, and it hangs
#define PARTING_S 30.0     // over its grace: longer, and the keeper is not doing its work
#define ORPHAN_S 10.0      // what cannot be killed in that time hangs in a driver
#define INCAPABLE_MAX 8    // types of GPU that a program was not built for: more than a box has
#define PAUSE_S 5.0        // between starts while keepers cannot take their orders

/* What starts may take of one turn of the loop; who comes after that is begun in the next ones. A
 * start is a directory and a file: 0.3 ms, and several where others want the disk (`gogh bench
 * serve --rows arrivals`).
 */
#define BURST_S 0.02

/* ---- places and phases ---- */

struct run *run_find(const struct local *l, int job)
{
    const int i = job < 0 ? -1 : map_u64_get(&l->by_job, (uint64_t)job);

    return i < 0 ? NULL : l->runs[i];
}

struct run *run_get(struct local *l, int job)
{
    struct run *r = run_find(l, job);

    if (r)
        return r;
    r = heap_array(1, sizeof *r);
    *r = (struct run){ .job = job, .number = -1, .active = -1, .due_s = (double)INFINITY };
    GROW(l->runs, l->n_runs, l->cap_runs);
    l->runs[l->n_runs] = r;
    map_u64_set(&l->by_job, (uint64_t)job, l->n_runs++);
    return r;
}

void run_free(struct local *l, struct run *r)
{
    const int i = map_u64_get(&l->by_job, (uint64_t)r->job);

    assert(l->runs[i] == r);
    l->runs[i] = NULL;
    free(r->at.gpus);
    free(r->next.gpus);
    free(r->dir);
    free(r->out);
    free(r->err);
    free(r);
}

void run_set_phase(struct local *l, struct run *r, enum run_phase phase)
{
    l->n_busy = -1;
    if (r->phase == phase)
        return;
    if (r->phase == RUN_ENDED) {
        GROW(l->active, l->n_active, l->cap_active);
        r->active = l->n_active;
        l->active[l->n_active++] = r;
    } else {
        l->n_phase[r->phase]--;
    }
    r->phase = phase;
    if (phase != RUN_ENDED) {
        l->n_phase[phase]++;
        return;
    }
    l->active[r->active] = l->active[--l->n_active];
    l->active[r->active]->active = r->active;
    r->active = -1;
}

/* ---- notices ---- */

void notice_push(struct local *l, const struct run *r, enum notice_kind kind, double time_s,
                 const char *reason)
{
    const double now_s = clock_now_s(l->setup.clock);

    notices_push(&l->notices, &(struct run_notice){
                                  .kind = kind,
                                  .time_s = time_s > 0 ? fmin(time_s, now_s) : now_s,
                                  .job = r->job,
                                  .run = r->number,
                                  .n_gpus = r->at.n_gpus,
                                  .gpus = r->at.gpus,
                                  .limit_w = r->at.limit_w,
                                  .is_move = kind == NOTICE_STARTED && r->is_move && r->is_told,
                                  .reason = reason,
                              });
}

static void tell_started(struct local *l, struct run *r, double time_s)
{
    notice_push(l, r, NOTICE_STARTED, time_s, NULL);
    r->is_told = true;
    r->is_move = false;
}

/* ---- keepers ---- */

void keeper_free(struct keeper *k)
{
    struct run *r = run_find(k->local, k->job);

    *k->at = k->next;
    if (k->next)
        k->next->at = k->at;
    if (r && r->keeper == k)
        r->keeper = NULL;
    if (k->fd >= 0) {
        loop_unwatch(k->local->setup.loop, k->fd);
        close(k->fd);
    }
    free(k);
}

static void on_keeper(void *self, int fd, unsigned ready)
{
    struct keeper *k = self;
    struct local *l = k->local;
    const int job = k->job, number = k->number;
    siginfo_t s;
    struct run *r;

    (void)ready;
    (void)waitid(P_PIDFD, (id_t)fd, &s, WEXITED | WNOHANG);    // not ours where it was adopted
    keeper_free(k);
    r = run_find(l, job);
    if (r && r->number == number)
        run_look(l, r);
}

/* Also lets go of one that is. */
static bool keeper_is_gone(struct keeper *k)
{
    siginfo_t s = { 0 };
    struct proc p;

    if (k->fd >= 0)
        return false;    // the loop will say
    (void)waitid(P_PID, (id_t)k->pid, &s, WEXITED | WNOHANG);
    if (proc_read(k->pid, &p) == 0 && p.start == k->start && p.state != 'Z')
        return false;
    keeper_free(k);
    return true;
}

static void attach(struct local *l, struct run *r, pid_t pid, uint64_t start, int fd)
{
    struct keeper *k = heap_array(1, sizeof *k);

    *k = (struct keeper){ .local = l,
                          .next = l->keepers,
                          .at = &l->keepers,
                          .job = r->job,
                          .number = r->number,
                          .pid = pid,
                          .start = start,
                          .fd = fd };
    if (fd >= 0 && loop_watch(l->setup.loop, fd, LOOP_READ, "a keeper", on_keeper, k, NULL) < 0) {
        close(fd);
        k->fd = -1;
    }
    if (k->next)
        k->next->at = &k->next;
    l->keepers = k;
    r->keeper = k;
    r->keeper_pid = pid;
    r->keeper_start = start;
}

/* Watch the process that keeps 'r'; -ESRCH: there is none. Without a descriptor to spare the
 * sweep looks after it.
 */
static int keeper_attach(struct local *l, struct run *r, pid_t pid, uint64_t start)
{
    int fd = proc_open(pid, start);

    if (fd != -ESRCH)
        attach(l, r, pid, start, fd);
    return fd == -ESRCH ? fd : 0;
}

static int signal_keeper(const struct keeper *k, int signo)
{
    if (k->fd >= 0)
        return pidfd_send_signal(k->fd, signo, NULL, 0) == 0 ? 0 : -errno;
    return proc_signal(k->pid, k->start, signo);
}

/* ---- beginning ---- */

/* Of the run that was launched so. */
void run_set_names(struct local *l, struct run *r, const struct launch *o)
{
    const struct command *c = &o->command;
    const char *dir = dir_path(&l->scratch, l, r->job, (int)o->run);

    free(r->dir);
    free(r->out);
    free(r->err);
    r->dir = heap_text(dir);
    r->out = heap_text(c->out ? c->out : arena_printf(&l->scratch, "%s/out", dir));
    r->err = heap_text(c->err ? c->err : arena_printf(&l->scratch, "%s/err", dir));
    snprintf(r->secret, sizeof r->secret, "%s", o->secret);
    r->number = (int)o->run;
    r->uid = (uid_t)c->uid;
    r->retries = (int)c->retries;
    r->timeout_s = c->timeout_s;
    r->grace_s = c->grace_s;
}

static void keep_launch(struct local *l, struct run *r, const struct launch *o)
{
    run_set_names(l, r, o);
    free(r->at.gpus);
    r->at = r->next;
    r->next = (struct gpu_set){ 0 };
    r->wish = WISH_NONE;
    r->is_sent = r->is_orphan = r->is_unheard = false;
    r->pid = r->keeper_pid = 0;
    r->keeper = NULL;
    r->is_spawning = true;
    r->due_s = (double)INFINITY;
}

void run_spawned(struct local *l, struct run *r, pid_t pid, uint64_t start)
{
    r->is_spawning = false;
    r->has_spawned = true;
    r->due_s = clock_stopwatch_s() + (r->phase == RUN_LEAVING ? r->grace_s + PARTING_S : BEGIN_S);
    if (pid > 0)
        (void)keeper_attach(l, r, pid, start);
    run_look(l, r);    // it may have called before it was known
}

/* Make the directory, and ask for the keeper; or neither. */
static int make_run(struct local *l, struct run *r, struct err *e)
{
    int number = r->number + 1;
    struct launch o;
    int rc;

    arena_reset(&l->scratch);
    rc = dir_make(l, r->job, &number, e);
    if (rc < 0)
        return rc;
    if (limit_check(l, &r->next, NULL) < 0)
        r->next.limit_w = 0;    // and so it is told
    rc = env_order(l, r, number, &r->next, &o, e);
    if (rc == 0)
        rc = dir_write(l, &o, e);
    if (rc < 0) {
        dir_remove(l, r->job, number);
        return rc;
    }
    keep_launch(l, r, &o);
    run_set_phase(l, r, RUN_WANTED);
    start_ask(l, r);
    limit_ask(l, r, &r->at, false);
    return 0;
}

static int begin(struct local *l, struct run *r, struct err *e)
{
    const double began_s = clock_stopwatch_s();
    int rc = make_run(l, r, e);

    l->burst_s += clock_stopwatch_s() - began_s;
    if (l->burst_s >= BURST_S)
        loop_timer_set(&l->more, 0);
    return rc;
}

/* Has this turn seen enough starts, or does anybody hold one of these GPUs who is about to let it
 * go?
 */
static bool must_wait(const struct local *l, const struct run *r, const struct gpu_set *at)
{
    if (l->burst_s >= BURST_S)
        return true;
    if (l->n_phase[RUN_LEAVING] == 0)
        return false;
    for (int i = 0; i < l->n_active; i++) {
        const struct run *o = l->active[i];

        if (o == r || o->phase != RUN_LEAVING)
            continue;
        for (int g = 0; g < at->n_gpus; g++)
            if (gpu_set_has(&o->at, at->gpus[g]) &&
                !(o->wish == WISH_MOVE && gpu_set_has(&o->next, at->gpus[g])))
                return true;
    }
    return false;
}

int run_place(struct local *l, struct run *r, const struct placement *p, struct err *e)
{
    struct launch o;
    int rc;

    if (clock_stopwatch_s() < l->pause_until_s)
        return err_set(e, EAGAIN, "keepers cannot take their orders (is %s full?); again in %.0f s",
                       l->run_dir, ceil(l->pause_until_s - clock_stopwatch_s()));
    gpu_set_copy(&r->next, p->gpus, p->n_gpus);
    r->next.limit_w = p->limit_w;
    if (!must_wait(l, r, &r->next))
        return begin(l, r, e);
    arena_reset(&l->scratch);
    rc = env_order(l, r, r->number + 1, &r->next, &o, e);    // would it start at all?
    if (rc == 0)
        run_set_phase(l, r, RUN_PENDING);
    return rc;
}

/* Its last run has ended for good while it was held: now that it is to run that is told, and no
 * other is begun.
 */
void run_tell_late(struct local *l, struct run *r, const struct placement *p)
{
    r->is_unheard = false;
    r->wish = WISH_NONE;
    gpu_set_copy(&r->at, p->gpus, p->n_gpus);
    run_set_phase(l, r, RUN_WANTED);
    run_look(l, r);
}

/* It is not placed any more, and had not begun; or it cannot begin. */
void run_drop(struct local *l, struct run *r, const char *reason)
{
    run_set_phase(l, r, RUN_ENDED);
    if (r->is_told && reason)
        notice_push(l, r, NOTICE_STOPPED, 0, reason);
    r->is_told = false;
}

void run_try_pending(struct local *l)
{
    struct err e = { 0 };
    int i = 0;

    while (l->n_phase[RUN_PENDING] > 0 && i < l->n_active && l->burst_s < BURST_S) {
        struct run *r = l->active[i];

        if (r->phase == RUN_PENDING &&
            !job_may_run(l->setup.state->jobs[r->job])) {    // held or cancelled since
            run_drop(l, r, NULL);
            i = 0;
        } else if (r->phase == RUN_PENDING && !must_wait(l, r, &r->next) && begin(l, r, &e) < 0) {
            log_warn("job %s: %s; it waits", l->setup.state->jobs[r->job]->spec.name, e.text);
            run_drop(l, r, e.text);
            l->pause_until_s = clock_stopwatch_s() + PAUSE_S;
            notices_tell(&l->notices);    // it is nobody's any more: decide again
            i = 0;
        } else {
            i++;
        }
    }
}

/* Another turn of the loop. */
void run_on_more(void *self)
{
    struct local *l = self;

    l->burst_s = 0;
    run_try_pending(l);
}

/* ---- leaving ---- */

static void send(struct local *l, struct run *r)
{
    int rc;

    if (r->is_sent || !r->keeper)
        return;
    rc = signal_keeper(r->keeper, r->wish == WISH_CANCEL ? SIGUSR2 : SIGTERM);
    r->is_sent = true;
    if (rc < 0 && rc != -ESRCH)
        log_warn("job %s: cannot signal its keeper %d: %s; the daemon needs CAP_KILL",
                 l->setup.state->jobs[r->job]->spec.name, (int)r->keeper->pid, strerror(-rc));
}

void run_leave(struct local *l, struct run *r, enum run_wish wish)
{
    if (r->phase != RUN_LEAVING || wish == WISH_CANCEL) {
        r->is_sent = r->phase == RUN_LEAVING && r->wish == WISH_CANCEL;
        r->due_s = clock_stopwatch_s() + r->grace_s + PARTING_S;
    }
    r->wish = wish;
    l->n_busy = -1;
    run_set_phase(l, r, RUN_LEAVING);
    send(l, r);
}

/* ---- ending ---- */

static const char *how_it_ended(struct arena *a, const struct run *r, const struct status *st)
{
    switch (st->ended) {
    case ENDED_EXIT:
        return arena_printf(a, "exit %d", st->code);
    case ENDED_SIGNAL:
        return arena_printf(a, "signal %d (%s)", st->code, strsignal(st->code));
    case ENDED_TIMEOUT:
        return arena_printf(a, "timed out after %.15g s", r->timeout_s);
    case ENDED_FAILED:
        return st->text;
    case ENDED_NOT:
    case ENDED_STOPPED:
    case ENDED_SERVED:
        break;
    }
    return "stopped";
}

static void tell_failure(struct local *l, struct run *r, const struct status *st)
{
    const char *reason = how_it_ended(&l->scratch, r, st);
    /* Of a replica there is no second run: its service asks for another one. */
    const bool is_replica = l->setup.state->jobs[r->job]->spec.kind == JOB_REPLICA;
    const bool is_last = is_replica || r->n_failures > r->retries;

    if (!is_last)
        reason = arena_printf(&l->scratch, "%s; try %d of %d", reason, r->n_failures + 1,
                              r->retries + 1);
    if (!r->is_told)
        tell_started(l, r, st->started_s);
    notice_push(l, r, is_last ? NOTICE_FAILED : NOTICE_STOPPED, st->ended_s, reason);
}

/* It waits for another type of GPU, unless it has gone through so many that this cannot be it (a
 * type on which others of its workload run is offered again): from then on it is a failure as any
 * other, a try less.
 */
static void tell_incapable(struct local *l, struct run *r, const struct status *st)
{
    if (++r->n_incapable > INCAPABLE_MAX) {
        r->n_failures++;
        tell_failure(l, r, st);
        return;
    }
    if (!r->is_told)
        tell_started(l, r, st->started_s);
    notice_push(l, r, NOTICE_INCAPABLE, st->ended_s,
                arena_printf(&l->scratch, "not built for this GPU: %s", st->text));
}

static const char *why_stopped(const struct run *r, const struct status *st)
{
    static const char *const words[] = { [WISH_NONE] = "its keeper was told to stop",
                                         [WISH_STOP] = "stopped as planned",
                                         [WISH_MOVE] = "its keeper was told to stop",
                                         [WISH_CANCEL] = "it was told to end" };

    return *st->text ? st->text : words[r->wish];
}

/* The end of a cancelled job is no news, if its cancelling is on record. */
static void tell_end(struct local *l, struct run *r, const struct status *st)
{
    const bool has_ended_well =
        st->ended == ENDED_SERVED || (st->ended == ENDED_EXIT && st->code == 0);
    const bool is_replica = l->setup.state->jobs[r->job]->spec.kind == JOB_REPLICA;
    const bool is_lost = is_replica && has_ended_well;    // nobody told it to end

    arena_reset(&l->scratch);
    if (r->wish == WISH_CANCEL && !job_may_run(l->setup.state->jobs[r->job])) {
        dir_mark_later(l, r->job, r->number, job_is_over(l->setup.state->jobs[r->job]));
    } else if (has_ended_well && !is_lost) {
        if (!r->is_told)
            tell_started(l, r, st->started_s);
        notice_push(l, r, NOTICE_FINISHED, st->ended_s, NULL);
    } else if (!is_lost && status_is_incapable(st)) {
        tell_incapable(l, r, st);
    } else if (is_lost || st->ended != ENDED_STOPPED) {
        tell_failure(l, r, st);
    } else if (r->is_told) {
        notice_push(l, r, NOTICE_STOPPED, st->ended_s, why_stopped(r, st));
    } else {
        dir_mark_told(l, r->job, r->number);
    }
    r->is_told = false;
}

/* The second half of a move; where it cannot start, it waits again. */
static void go_on(struct local *l, struct run *r)
{
    struct err e = { 0 };

    dir_mark_told(l, r->job, r->number);
    r->is_move = true;
    run_set_phase(l, r, RUN_PENDING);
    if (!must_wait(l, r, &r->next) && begin(l, r, &e) < 0)
        run_drop(l, r, arena_printf(&l->scratch, "%s", e.text));
}

static void on_ended(struct local *l, struct run *r, const struct status *st)
{
    struct gpu_set was = { 0 };

    r->n_failures += status_is_bad(st);
    r->pid = 0;
    r->is_orphan = false;
    gpu_set_copy(&was, r->at.gpus, r->at.n_gpus);
    if (st->ended == ENDED_STOPPED && r->wish == WISH_MOVE) {
        go_on(l, r);
    } else {
        run_set_phase(l, r, RUN_ENDED);
        tell_end(l, r, st);
        r->is_move = false;
    }
    run_try_pending(l);
    limit_forget(l, &was);
    free(was.gpus);
}

/* ---- keepers that died ---- */

/* Write for a keeper that cannot any more. In memory it counts even if the disk does not take it.
 */
static void write_end(const struct local *l, const struct run *r, struct status *st, int dir,
                      const char *why)
{
    int fd = status_open(dir);

    st->ended_s = clock_now_s(l->setup.clock);
    snprintf(st->text, sizeof st->text, "%s", why);
    if (fd < 0 ||
        status_append(fd, "ended %.3f %s%s%s", st->ended_s,
                      st->ended == ENDED_FAILED ? "failed" : "stopped", *why ? " " : "", why) < 0)
        log_warn("%s: cannot write its status", r->dir);
    if (fd >= 0)
        close(fd);
}

/* Nobody keeps it: its processes end, and then it has. After a restart of the machine there are
 * none, and it is nobody's fault.
 */
static void on_orphan(struct local *l, struct run *r, struct status *st, int dir)
{
    const bool is_same_boot = !st->is_taken || strcmp(st->boot, l->boot) == 0;
    const double t = clock_stopwatch_s();
    char entry[60];

    if (!r->is_orphan)
        r->due_s = t + ORPHAN_S;
    snprintf(entry, sizeof entry, "GOGH_SECRET=%s", r->secret);
    if (is_same_boot && proc_kill_left(r->keeper_pid, r->keeper_start, r->uid, entry) > 0 &&
        t < r->due_s) {
        r->is_orphan = true;
        run_set_phase(l, r, RUN_LEAVING);
        loop_timer_set(&l->sweep, HURRY_S);
        return;
    }
    st->ended = ENDED_STOPPED;
    if (!st->is_taken) {
        l->pause_until_s = t + PAUSE_S;
        log_warn("%s: its keeper could not take the order; is the disk full?", r->dir);
        dir_take_back(l, r);
        notices_tell(&l->notices);    // it is nobody's any more: decide again
    } else if (!is_same_boot) {
        write_end(l, r, st, dir, "the machine was restarted");
    } else if (r->wish != WISH_NONE) {
        write_end(l, r, st, dir, "");
    } else {
        st->ended = ENDED_FAILED;
        write_end(l, r, st, dir, "its keeper was killed");
    }
    on_ended(l, r, st);
}

/* ---- looking ---- */

/* Its status, after it was seen whether there is somebody who may still change it. */
static bool look(struct local *l, struct run *r, int dir, struct status *st)
{
    bool is_kept;

    if (r->keeper && keeper_is_gone(r->keeper))
        r->keeper = NULL;
    is_kept = r->keeper != NULL;
    if (status_read(dir, st) < 0) {
        st->is_taken = dir < 0;
        snprintf(st->boot, sizeof st->boot, "%s", l->boot);
        return is_kept || dir >= 0;    // no descriptors, say: another time; or no directory
    }
    if (is_kept || !st->is_taken || st->ended != ENDED_NOT)
        return is_kept || !(r->has_spawned || st->is_taken);
    if (strcmp(st->boot, l->boot) == 0 &&
        keeper_attach(l, r, st->keeper_pid, st->keeper_start) == 0)
        return true;
    r->keeper_pid = st->keeper_pid;
    r->keeper_start = st->keeper_start;
    return false;
}

/* A keeper that has its lock lives, whether /proc shows it to us (hidepid) or not; as long as it
 * does, its pid is nobody else's.
 */
static void attach_hidden(struct local *l, struct run *r, int dir, const struct status *st)
{
    struct proc p;
    int fd = -1, lock;

    if (!st->is_taken || strcmp(st->boot, l->boot) != 0 || proc_read(st->keeper_pid, &p) == 0)
        return;
    fd = pidfd_open(st->keeper_pid, 0);
    lock = fd >= 0 ? dir_lock(dir) : -1;
    if (lock == -EBUSY)
        attach(l, r, st->keeper_pid, st->keeper_start, fd);
    else if (fd >= 0)
        close(fd);
    if (lock >= 0)
        close(lock);
}

/* Nobody is seen to keep it: is there nobody? Then nobody can come as long as we have the lock. */
static bool is_kept_unseen(struct local *l, struct run *r, int dir, int *lock, struct status *st)
{
    *lock = dir < 0 ? -1 : dir_lock(dir);
    if (*lock >= 0)
        (void)status_read(dir, st);    // its last words
    if (*lock == -EBUSY && !r->keeper)
        attach_hidden(l, r, dir, st);
    return *lock == -EBUSY || *lock == -EMFILE || *lock == -ENFILE;
}

static void on_started(struct local *l, struct run *r, const struct status *st)
{
    r->pid = st->pid;
    r->start = st->start;
    if (r->phase != RUN_WANTED)
        return;
    run_set_phase(l, r, RUN_RUNNING);
    r->due_s = (double)INFINITY;
    tell_started(l, r, st->started_s);
}

void run_look(struct local *l, struct run *r)
{
    struct status st;
    bool is_kept;
    int dir, lock = -1;

    if (r->phase == RUN_ENDED || r->phase == RUN_PENDING || r->is_spawning)
        return;
    dir = open(r->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 && errno != ENOENT)
        return;
    is_kept = look(l, r, dir, &st);
    if (!is_kept && st.ended == ENDED_NOT)
        is_kept = is_kept_unseen(l, r, dir, &lock, &st);
    if (st.is_started && !r->pid && st.ended == ENDED_NOT)
        on_started(l, r, &st);
    if (st.ended != ENDED_NOT)
        on_ended(l, r, &st);
    else if (!is_kept)
        on_orphan(l, r, &st, dir);
    else if (r->wish != WISH_NONE)
        send(l, r);
    if (lock >= 0)
        close(lock);
    if (dir >= 0)
        close(dir);
}

/* It neither began nor ended in time: no keeper, no run. */
static void lose_patience(struct run *r)
{
    log_warn("%s: its keeper does not answer; killed", r->dir);
    r->due_s = clock_stopwatch_s() + PARTING_S;
    if (r->keeper)
        (void)signal_keeper(r->keeper, SIGKILL);
    else
        r->has_spawned = true;    // whoever was awaited will not come
}

static void sweep_one(struct local *l, struct run *r)
{
    if (r->due_s < clock_stopwatch_s() && !r->is_orphan && !r->is_spawning)
        lose_patience(r);
    run_look(l, r);
}

/* Those that no descriptor could be had for. */
static void sweep_keepers(struct local *l)
{
    struct keeper *next;

    for (struct keeper *k = l->keepers; k; k = next) {
        next = k->next;
        (void)keeper_is_gone(k);
    }
}

/* Looking may end a run, and begin others: back to front, nobody is passed over for long. */
void run_on_sweep(void *self)
{
    struct local *l = self;
    bool is_hurried = false;
    int n_running = 0;

    for (int i = l->n_active - 1; i >= 0; i--) {
        if (i < l->n_active &&
            (l->active[i]->phase == RUN_WANTED || l->active[i]->phase == RUN_LEAVING))
            sweep_one(l, l->active[i]);
    }
    for (int i = 0; i < l->n_active && n_running < SWEEP_MAX; i++) {
        if (l->cursor >= l->n_active)
            l->cursor = 0;
        struct run *r = l->active[l->cursor++];
        if (r->phase != RUN_RUNNING)
            continue;
        n_running++;
        sweep_one(l, r);
    }
    run_try_pending(l);
    sweep_keepers(l);
    limit_sweep(l);
    dir_miss_lost(l);
    for (int i = 0; i < l->n_active; i++)
        is_hurried |= l->active[i]->is_orphan;
    loop_timer_set(&l->sweep, is_hurried ? HURRY_S : SWEEP_S);
}
