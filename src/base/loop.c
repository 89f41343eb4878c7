#include "base/loop.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/log.h"

const double loop_buckets_s[LOOP_BUCKETS] = { 1e-4, 3e-4, 1e-3, 3e-3, 1e-2,
                                              2e-2, 5e-2, 1e-1, 1,    (double)INFINITY };

/* One watched descriptor; 'stamp' tells events of this watch from those of one before it with
 * the same number.
 */
struct source {
    const char *what;
    loop_fd_f *f;    // NULL: nobody watches it
    void *self;
    uint32_t stamp;
};

struct callback {
    const char *what;
    loop_f *f;
    void *self;
};

/* Something to be called: posted to the loop, or for a worker first. */
struct call {
    struct call *next;
    const char *what;
    loop_f *work;    // NULL: none, or done
    loop_f *f;
    void *self;
};

struct calls {
    struct call *first, **end;
};

enum { SIGNALS = 65, AT_END_MAX = 8, BATCH = 64 };

struct loop {
    int epoll, wake, signals;
    struct source *sources;    // (n_sources) by descriptor
    int n_sources;
    uint32_t next_stamp;
    struct loop_timer *timers;    // those that are set, the next one first
    sigset_t mask;
    struct callback on_signal[SIGNALS];
    struct callback at_end[AT_END_MAX];
    int n_at_end;
    bool is_stopping;
    struct loop_stats stats;
    const char *slowest;    // callback of this turn, and how long it took
    double slowest_s;

    /* Shared with other threads. */
    pthread_mutex_t lock;
    pthread_cond_t has_work, has_done;
    struct calls posted, waiting;    // for the loop, and for workers
    int n_out;                       // handed to workers and not yet posted back
    bool is_closing;
    pthread_t workers[LOOP_WORKERS];
    int n_workers;
};

static void calls_init(struct calls *c)
{
    c->first = NULL;
    c->end = &c->first;
}

static void calls_put(struct calls *c, struct call *one)
{
    one->next = NULL;
    *c->end = one;
    c->end = &one->next;
}

static struct call *calls_take(struct calls *c)
{
    struct call *one = c->first;

    if (one) {
        c->first = one->next;
        if (!c->first)
            c->end = &c->first;
    }
    return one;
}

/* ---- calling, with an eye on the clock ---- */

static void note_time(struct loop *l, const char *what, double began_s)
{
    double took_s = clock_stopwatch_s() - began_s;

    if (took_s > l->slowest_s) {
        l->slowest_s = took_s;
        l->slowest = what;
    }
}

static void call(struct loop *l, const char *what, loop_f *f, void *self)
{
    double began_s = clock_stopwatch_s();

    f(self);
    note_time(l, what, began_s);
}

/* ---- making ---- */

static void on_wake(void *self, int fd, unsigned ready)
{
    uint64_t n;

    (void)self;
    (void)ready;
    if (read(fd, &n, sizeof n) < 0 && errno != EAGAIN)
        log_warn("waking the loop: %s", strerror(errno));
}

static void on_signals(void *self, int fd, unsigned ready)
{
    struct loop *l = self;
    struct signalfd_siginfo info;

    (void)ready;
    while (read(fd, &info, sizeof info) == (ssize_t)sizeof info) {
        const struct callback *to = info.ssi_signo < SIGNALS ? &l->on_signal[info.ssi_signo] : NULL;
        if (to && to->f)
            call(l, to->what, to->f, to->self);
    }
}

static int open_descriptors(struct loop *l, struct err *e)
{
    sigemptyset(&l->mask);
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    l->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->signals = signalfd(-1, &l->mask, SFD_CLOEXEC | SFD_NONBLOCK);
    if (l->epoll < 0 || l->wake < 0 || l->signals < 0)
        return err_set(e, errno, "event loop: %s", strerror(errno));
    int rc = loop_watch(l, l->wake, LOOP_READ, "wake", on_wake, l, e);
    return rc < 0 ? rc : loop_watch(l, l->signals, LOOP_READ, "signal", on_signals, l, e);
}

int loop_create(struct loop **out, struct err *e)
{
    struct loop *l = heap_array(1, sizeof *l);

    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->has_work, NULL);
    pthread_cond_init(&l->has_done, NULL);
    calls_init(&l->posted);
    calls_init(&l->waiting);
    l->epoll = l->wake = l->signals = -1;
    int rc = open_descriptors(l, e);
    if (rc < 0) {
        loop_destroy(l);
        return rc;
    }
    *out = l;
    return 0;
}

static void calls_drop(struct calls *c)
{
    struct call *one;

    while ((one = calls_take(c)) != NULL)
        free(one);
}

void loop_destroy(struct loop *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->is_closing = true;
    pthread_cond_broadcast(&l->has_work);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < l->n_workers; i++)
        pthread_join(l->workers[i], NULL);
    const int fds[] = { l->epoll, l->wake, l->signals };
    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    calls_drop(&l->posted);
    calls_drop(&l->waiting);
    pthread_cond_destroy(&l->has_done);
    pthread_cond_destroy(&l->has_work);
    pthread_mutex_destroy(&l->lock);
    free(l->sources);
    free(l);
}

/* ---- descriptors ---- */

static void sources_reach(struct loop *l, int fd)
{
    if (fd < l->n_sources)
        return;
    int n = fd * 2 + 16;
    RESIZE(l->sources, n);
    memset(l->sources + l->n_sources, 0, (size_t)(n - l->n_sources) * sizeof *l->sources);
    l->n_sources = n;
}

int loop_watch(struct loop *l, int fd, unsigned want, const char *what, loop_fd_f *f, void *self,
               struct err *e)
{
    struct epoll_event ev = { .events = (want & LOOP_READ ? EPOLLIN | EPOLLRDHUP : 0u) |
                                        (want & LOOP_WRITE ? EPOLLOUT : 0u) };

    assert(fd >= 0 && f);
    sources_reach(l, fd);
    struct source *s = &l->sources[fd];
    bool is_known = s->f != NULL;
    uint32_t stamp = is_known ? s->stamp : ++l->next_stamp;
    ev.data.u64 = (uint64_t)stamp << 32 | (uint32_t)fd;
    if (epoll_ctl(l->epoll, is_known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &ev) < 0)
        return err_set(e, errno, "watching descriptor %d (%s): %s", fd, what, strerror(errno));
    *s = (struct source){ .what = what, .f = f, .self = self, .stamp = stamp };
    return 0;
}

void loop_unwatch(struct loop *l, int fd)
{
    if (fd < 0 || fd >= l->n_sources || !l->sources[fd].f)
        return;
    l->sources[fd].f = NULL;
    epoll_ctl(l->epoll, EPOLL_CTL_DEL, fd, NULL);
}

static void serve(struct loop *l, const struct epoll_event *ev)
{
    int fd = (int)(uint32_t)ev->data.u64;
    const struct source *s = &l->sources[fd];
    double began_s = clock_stopwatch_s();

    if (!s->f || s->stamp != (uint32_t)(ev->data.u64 >> 32))
        return;    // let go of by an earlier callback of this turn
    const char *what = s->what;
    bool is_readable = ev->events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR);
    bool is_writable = ev->events & (EPOLLOUT | EPOLLERR);
    s->f(s->self, fd, (is_readable ? LOOP_READ : 0u) | (is_writable ? LOOP_WRITE : 0u));
    note_time(l, what, began_s);
}

/* ---- timers: some two dozen in a daemon, in the order in which they are due ---- */

void loop_timer_init(struct loop_timer *t, struct loop *l, const char *what, loop_f *f, void *self)
{
    *t = (struct loop_timer){
        .loop = l, .what = what, .f = f, .self = self, .due_s = (double)INFINITY
    };
}

void loop_timer_clear(struct loop_timer *t)
{
    if (!t->loop || isinf(t->due_s))
        return;    // not set
    for (struct loop_timer **at = &t->loop->timers; *at; at = &(*at)->next) {
        if (*at == t) {
            *at = t->next;
            break;
        }
    }
    t->due_s = (double)INFINITY;
}

void loop_timer_set(struct loop_timer *t, double after_s)
{
    struct loop_timer **at = &t->loop->timers;

    loop_timer_clear(t);
    t->due_s = clock_stopwatch_s() + fmax(after_s, 0);
    if (isinf(t->due_s))
        return;
    while (*at && (*at)->due_s <= t->due_s)
        at = &(*at)->next;
    t->next = *at;
    *at = t;
}

/* Those that were due when the turn began; what they set goes into the next turn. */
static void ring(struct loop *l, double now_s)
{
    while (l->timers && l->timers->due_s <= now_s) {
        struct loop_timer *t = l->timers;
        loop_timer_clear(t);
        call(l, t->what, t->f, t->self);
    }
}

/* ---- signals, ends of turns ---- */

int loop_signal(struct loop *l, int signo, loop_f *f, void *self, struct err *e)
{
    assert(signo > 0 && signo < SIGNALS);
    sigaddset(&l->mask, signo);
    if (pthread_sigmask(SIG_BLOCK, &l->mask, NULL) != 0 ||
        signalfd(l->signals, &l->mask, SFD_CLOEXEC | SFD_NONBLOCK) < 0)
        return err_set(e, EINVAL, "signal %d cannot be waited for", signo);
    l->on_signal[signo] = (struct callback){ .what = "signal", .f = f, .self = self };
    return 0;
}

void loop_at_turn_end(struct loop *l, const char *what, loop_f *f, void *self)
{
    assert(l->n_at_end < AT_END_MAX);
    l->at_end[l->n_at_end++] = (struct callback){ .what = what, .f = f, .self = self };
}

/* ---- other threads ---- */

static struct call *call_make(const char *what, loop_f *work, loop_f *f, void *self)
{
    struct call *one = heap_array(1, sizeof *one);

    *one = (struct call){ .what = what, .work = work, .f = f, .self = self };
    return one;
}

/* With the lock held. */
static void post(struct loop *l, struct call *one)
{
    uint64_t n = 1;

    calls_put(&l->posted, one);
    if (write(l->wake, &n, sizeof n) < 0 && errno != EAGAIN)
        abort();    // a descriptor of ours: nobody would ever hear of it
}

void loop_post(struct loop *l, const char *what, loop_f *f, void *self)
{
    struct call *one = call_make(what, NULL, f, self);

    pthread_mutex_lock(&l->lock);
    post(l, one);
    pthread_mutex_unlock(&l->lock);
}

static void *worker_run(void *self)
{
    struct loop *l = self;

    pthread_mutex_lock(&l->lock);
    while (!l->is_closing) {
        struct call *one = calls_take(&l->waiting);
        if (!one) {
            pthread_cond_wait(&l->has_work, &l->lock);
            continue;
        }
        pthread_mutex_unlock(&l->lock);
        one->work(one->self);
        pthread_mutex_lock(&l->lock);
        l->n_out--;
        post(l, one);
        pthread_cond_signal(&l->has_done);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* Workers take no signals: these are the loop's. */
static void start_worker(struct loop *l)
{
    sigset_t all, was;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &was);
    if (pthread_create(&l->workers[l->n_workers], NULL, worker_run, l) == 0)
        l->n_workers++;
    else if (l->n_workers == 0)
        abort();    // no thread at all can be had: as little to be done as without memory
    pthread_sigmask(SIG_SETMASK, &was, NULL);
}

void loop_work(struct loop *l, const char *what, loop_f *work, loop_f *done, void *self)
{
    struct call *one = call_make(what, work, done, self);

    pthread_mutex_lock(&l->lock);
    if (l->n_workers < LOOP_WORKERS && l->n_out >= l->n_workers)
        start_worker(l);
    l->n_out++;
    calls_put(&l->waiting, one);
    pthread_cond_signal(&l->has_work);
    pthread_mutex_unlock(&l->lock);
}

/* What was posted before this turn; what these post in turn waits for the next one. */
static void deliver(struct loop *l)
{
    pthread_mutex_lock(&l->lock);
    struct calls posted = l->posted;
    calls_init(&l->posted);
    pthread_mutex_unlock(&l->lock);
    for (struct call *one; (one = calls_take(&posted)) != NULL; free(one))
        call(l, one->what, one->f, one->self);
}

/* False: it takes longer. */
static bool wait_for_workers(struct loop *l, double until_s)
{
    struct timespec until = { .tv_sec = (time_t)until_s,
                              .tv_nsec = (long)((until_s - floor(until_s)) * 1e9) };
    int rc = 0;

    pthread_mutex_lock(&l->lock);
    while (l->n_out > 0 && rc == 0)
        rc = pthread_cond_clockwait(&l->has_done, &l->lock, CLOCK_MONOTONIC, &until);
    bool is_done = l->n_out == 0;
    pthread_mutex_unlock(&l->lock);
    return is_done;
}

bool loop_settle(struct loop *l, double most_s)
{
    const double until_s = clock_stopwatch_s() + fmin(most_s, 1e9);
    bool is_more = true;

    while (is_more) {
        if (!wait_for_workers(l, until_s))
            return false;
        deliver(l);
        pthread_mutex_lock(&l->lock);
        is_more = l->n_out > 0 || l->posted.first;
        pthread_mutex_unlock(&l->lock);
    }
    return true;
}

/* ---- turning ---- */

/* What this thread has had of the cores: of a long turn the rest was waited, for one or for a disk.
 */
static double thread_cpu_s(void)
{
    struct timespec t = { 0 };

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void count_turn(struct loop *l, double took_s, double cpu_s)
{
    struct loop_stats *s = &l->stats;
    int bucket = 0;

    while (took_s > loop_buckets_s[bucket])
        bucket++;
    s->buckets[bucket]++;
    s->n_turns++;
    s->busy_s += took_s;
    s->longest_s = fmax(s->longest_s, took_s);
    if (took_s > LOOP_STALL_S) {
        s->n_stalls++;
        log_warn("the loop was held for %.0f ms, %.0f of them by '%s'; %.0f ms on a core",
                 1e3 * took_s, 1e3 * l->slowest_s, l->slowest ? l->slowest : "many small things",
                 1e3 * cpu_s);
    }
}

static int wait_ms(const struct loop *l, double most_s)
{
    double wait_s = most_s;

    if (l->timers)
        wait_s = fmin(wait_s, l->timers->due_s - clock_stopwatch_s());
    if (!(wait_s < 3600))
        wait_s = 3600;
    return wait_s > 0 ? (int)ceil(wait_s * 1e3) : 0;
}

int loop_turn(struct loop *l, double most_s, struct err *e)
{
    struct epoll_event ready[BATCH];
    int n = epoll_wait(l->epoll, ready, BATCH, wait_ms(l, most_s));
    double began_s = clock_stopwatch_s(), cpu_s = thread_cpu_s();

    if (n < 0 && errno != EINTR)
        return err_set(e, errno, "event loop: %s", strerror(errno));
    l->slowest = NULL;
    l->slowest_s = 0;
    for (int i = 0; i < n; i++)
        serve(l, &ready[i]);
    deliver(l);
    ring(l, began_s);
    for (int i = 0; i < l->n_at_end; i++)
        call(l, l->at_end[i].what, l->at_end[i].f, l->at_end[i].self);
    count_turn(l, clock_stopwatch_s() - began_s, thread_cpu_s() - cpu_s);
    return 0;
}

int loop_run(struct loop *l, struct err *e)
{
    int rc = 0;

    l->is_stopping = false;
    while (rc == 0 && !l->is_stopping)
        rc = loop_turn(l, (double)INFINITY, e);
    return rc;
}

void loop_stop(struct loop *l)
{
    l->is_stopping = true;
}

const struct loop_stats *loop_stats(const struct loop *l)
{
    return &l->stats;
}
