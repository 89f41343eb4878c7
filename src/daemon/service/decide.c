#include "daemon/service/decide.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/log.h"
#include "base/text/file.h"
#include "base/loop.h"
#include "cycle/cycle.h"
#include "daemon/service/record.h"
#include "daemon/service/inner.h"
#include "optimize/prices/kept.h"

/* A child's whole answer: a plan of 20,000 jobs, and explanations up to their own cap, are far
 * less.
 */
#define ANSWER_MAX (64u << 20)

enum { CHILDREN_MAX = 5 };    // one decision, prices beside, and what people ask for meanwhile

struct decision_child {
    struct decision_child *next;
    struct decider *decider;
    pid_t pid;
    int pidfd, pipe;
    struct buf answer, raw;
    struct loop_timer limit;
    double limit_s, began_s;
    bool is_late;

    /* Either a decision ... */
    struct decision decision;
    struct solver solver;
    bool wants_prices;    // none were kept when it began
    decide_tell_f *tell;
    decide_done_f *decided;
    /* ... or some other work. */
    decide_work_f *work;
    decide_worked_f *worked;
    void *self;
};

struct decider {
    struct service *service;
    struct decision_child *first;
    int n;
};

struct decider *decider_create(struct service *s)
{
    struct decider *d = heap_array(1, sizeof *d);

    d->service = s;
    return d;
}

static void child_free(struct decision_child *c)
{
    struct decision_child **at = &c->decider->first;

    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    c->decider->n--;
    loop_timer_clear(&c->limit);
    json_decref(c->decision.said);
    arena_release(&c->decision.arena);
    buf_release(&c->answer);
    buf_release(&c->raw);
    free(c);
}

static void let_go_of(const struct decision_child *c, int *fd)
{
    if (*fd < 0)
        return;
    loop_unwatch(c->decider->service->loop, *fd);
    close(*fd);
    *fd = -1;
}

static void let_go(struct decision_child *c)
{
    let_go_of(c, &c->pipe);
    let_go_of(c, &c->pidfd);
}

/* The end of it, one way or the other. */
static void tell_owner(struct decision_child *c, const struct err *failed)
{
    if (c->decided)
        c->decided(c->self, failed ? NULL : &c->decision, failed);
    else
        c->worked(c->self, failed ? NULL : c->decision.said, &c->raw, failed);
}

void decider_destroy(struct decider *d)
{
    struct err stopping = { 0 };

    if (!d)
        return;
    err_set(&stopping, ECANCELED, "the daemon is stopping");
    while (d->first) {
        struct decision_child *c = d->first;
        kill(c->pid, SIGKILL);
        waitpid(c->pid, NULL, 0);
        let_go(c);
        tell_owner(c, &stopping);
        child_free(c);
    }
    free(d);
}

int decider_n_busy(const struct decider *d)
{
    return d->n;
}

/* ---- in the child ---- */

/* Nothing of the parent's but memory: no descriptors that would keep its sockets open when it dies,
 * no signals that wait for its loop; and no life without it.
 */
static void leave_parent(pid_t parent, int *pipe)
{
    sigset_t none;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    if (dup2(*pipe, 3) < 0)
        _exit(1);
    *pipe = 3;
    syscall(SYS_close_range, 4u, ~0u, 0u);
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
}

/* What comes first in an answer; then, of a decision, the jobs of the plan (struct plan_job, each
 * with its GPUs behind it) and the prices that it was the first to find; then raw bytes; then JSON.
 * Parent and child are the same program: structs as they are.
 */
struct head {
    int failed;    // errno, and 'text' says why; else 0
    char text[512];
    bool is_fallback;
    struct plan plan;    // its figures; what it points at comes behind
    char made_by[32];
    size_t n_kept, n_raw, n_json;
};

static void put_jobs(struct buf *out, const struct plan *p)
{
    for (int j = 0; j < p->n_jobs; j++) {
        buf_append(out, &p->jobs[j], sizeof p->jobs[j]);
        buf_append(out, p->jobs[j].gpus, (size_t)p->jobs[j].n_gpus * sizeof(int));
    }
}

_Noreturn static void answer(const struct decision_child *c, int pipe, struct head *h,
                             const struct decision *d, json_t *said)
{
    struct buf out, kept;
    char *text =
        said ? json_dumps(said, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15)) : NULL;

    buf_init(&out, ANSWER_MAX);
    buf_init(&kept, ANSWER_MAX);
    if (d && c->wants_prices)
        kept_write(c->decider->service->cycle.kept, &kept);
    h->n_json = text ? strlen(text) : 0;
    h->n_raw = c->raw.len;
    h->n_kept = kept.len;
    buf_append(&out, h, sizeof *h);
    if (d)
        put_jobs(&out, &d->plan);
    buf_append(&out, buf_text(&kept), kept.len);
    buf_append(&out, buf_text(&c->raw), c->raw.len);
    buf_append(&out, text, h->n_json);
    _exit(file_write_all(pipe, out.data, out.len) == 0 ? 0 : 1);
}

static void decide_there(const struct decision_child *c, int pipe)
{
    struct service *s = c->decider->service;
    struct decision d = c->decision;
    struct head h = { 0 };
    struct err why = { 0 };
    int rc = cycle_plan(&s->cycle, &d.arena, &c->solver, &d.snapshot, &d.asked, &d.plan,
                        &d.is_fallback, &why);

    d.why = why.text;
    h.failed = rc < 0 ? -rc : 0;
    h.is_fallback = d.is_fallback;
    snprintf(h.text, sizeof h.text, "%s", d.is_fallback || rc < 0 ? why.text : "");
    if (rc < 0)
        answer(c, pipe, &h, NULL, NULL);
    h.plan = d.plan;
    snprintf(h.made_by, sizeof h.made_by, "%s", d.plan.made_by ? d.plan.made_by : "");
    answer(c, pipe, &h, &d, c->tell ? c->tell(c->self, s, &d) : NULL);
}

static void work_there(struct decision_child *c, int pipe)
{
    struct head h = { 0 };
    struct err e = { 0 };
    json_t *result = c->work(c->self, c->decider->service, &c->raw, &e);

    if (!result) {
        h.failed = e.code ? e.code : EIO;
        snprintf(h.text, sizeof h.text, "%s", e.text);
    }
    answer(c, pipe, &h, NULL, result);
}

/* ---- in the parent, when it is over ---- */

static bool take(const char **at, const char *end, void *to, size_t n)
{
    if ((size_t)(end - *at) < n)
        return false;
    memcpy(to, *at, n);
    *at += n;
    return true;
}

static bool read_jobs(struct decision *d, int n_jobs, const char **at, const char *end)
{
    if (n_jobs != d->snapshot.n_jobs)
        return false;
    d->plan.jobs = ARENA_ARRAY(&d->arena, struct plan_job, (size_t)n_jobs);
    for (int j = 0; j < n_jobs; j++) {
        struct plan_job *pj = &d->plan.jobs[j];
        if (!take(at, end, pj, sizeof *pj) || pj->n_gpus < 0 || pj->n_gpus > d->snapshot.n_gpus)
            return false;
        int *gpus = ARENA_ARRAY(&d->arena, int, (size_t)pj->n_gpus);
        if (!take(at, end, gpus, (size_t)pj->n_gpus * sizeof *gpus))
            return false;
        pj->gpus = gpus;
    }
    return true;
}

static void read_head(struct decision *d, const struct head *h)
{
    d->plan = h->plan;
    d->plan.made_by = arena_strdup(&d->arena, h->made_by);
    d->plan.jobs = NULL;
    d->plan.limit = NULL;    // the jobs say it
    d->is_fallback = h->is_fallback;
    d->why = arena_strdup(&d->arena, h->text);
}

/* Prices that a decision has found are kept, unless others were there first. */
static bool read_prices(struct kept_prices *k, const char *bytes, size_t n)
{
    return n == 0 || !kept_is_empty(k) || kept_read(k, bytes, n);
}

/* The answer's parts; false: it is cut off, so the child died in the middle of it. */
static bool read_answer(struct decision_child *c, struct head *h)
{
    const char *at = buf_text(&c->answer), *end = at + c->answer.len;

    if (!take(&at, end, h, sizeof *h))
        return false;
    if (c->decided && !h->failed) {
        read_head(&c->decision, h);
        if (!read_jobs(&c->decision, h->plan.n_jobs, &at, end))
            return false;
    }
    if (h->n_kept + h->n_raw + h->n_json != (size_t)(end - at) ||
        !read_prices(c->decider->service->cycle.kept, at, h->n_kept))
        return false;
    at += h->n_kept;
    buf_append(&c->raw, at, h->n_raw);
    at += h->n_raw;
    if (h->n_json)
        c->decision.said = json_loadb(at, h->n_json, JSON_DECODE_ANY, NULL);
    return !h->n_json || c->decision.said;
}

static void describe_death(const struct decision_child *c, int status, struct err *e)
{
    if (c->is_late)
        err_set(e, ETIMEDOUT, "no answer within %g s", c->limit_s);
    else if (WIFSIGNALED(status))
        err_set(e, EIO, "the child that worked on it died of signal %d (%s)", WTERMSIG(status),
                strsignal(WTERMSIG(status)));
    else
        err_set(e, EIO, "the child that worked on it ended without an answer");
}

static void finish(struct decision_child *c, int status)
{
    struct head h = { 0 };
    struct err failed = { 0 };

    let_go(c);
    c->decision.seconds = clock_stopwatch_s() - c->began_s;
    if (!read_answer(c, &h))
        describe_death(c, status, &failed);
    else if (h.failed)
        err_set(&failed, h.failed, "%s", h.text);
    tell_owner(c, failed.code ? &failed : NULL);
    child_free(c);
}

static void on_end(void *self, int fd, unsigned ready)
{
    struct decision_child *c = self;
    int status = 0;

    (void)fd;
    (void)ready;
    if (waitpid(c->pid, &status, WNOHANG) != 0)
        finish(c, status);
}

static void on_answer(void *self, int fd, unsigned ready)
{
    struct decision_child *c = self;
    char bytes[65536];
    ssize_t n = read(fd, bytes, sizeof bytes);
    struct err e = { 0 };

    (void)ready;
    if (n > 0 && buf_append(&c->answer, bytes, (size_t)n) == 0)
        return;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    let_go_of(c, &c->pipe);
    if (n > 0)
        kill(c->pid, SIGKILL);    // it talks too much
    if (loop_watch(c->decider->service->loop, c->pidfd, LOOP_READ, "end of a decision", on_end, c,
                   &e) == 0)
        return;
    int status = 0;
    log_warn("%s", e.text);
    waitpid(c->pid, &status, 0);    // it has closed its pipe: it is about to end
    finish(c, status);
}

static void on_late(void *self)
{
    struct decision_child *c = self;

    c->is_late = true;
    kill(c->pid, SIGKILL);
}

/* ---- starting ---- */

static struct decision_child *child_make(struct decider *d, double limit_s, void *self,
                                         struct err *e)
{
    /* One place is kept for the next decision. */
    if (d->n >= CHILDREN_MAX - !d->service->inner->is_deciding) {
        err_set(e, EAGAIN, "%d questions are being worked on already; ask again later", d->n);
        return NULL;
    }
    struct decision_child *c = heap_array(1, sizeof *c);
    c->decider = d;
    c->pipe = c->pidfd = -1;
    c->limit_s = limit_s;
    c->self = self;
    c->began_s = clock_stopwatch_s();
    arena_init(&c->decision.arena);
    buf_init(&c->answer, ANSWER_MAX);
    buf_init(&c->raw, ANSWER_MAX);
    c->decision.raw = &c->raw;
    loop_timer_init(&c->limit, d->service->loop, "late decision", on_late, c);
    c->next = d->first;
    d->first = c;
    d->n++;
    return c;
}

static int open_pipe(int p[2], struct err *e)
{
    if (pipe2(p, O_CLOEXEC) < 0)
        return err_set(e, errno, "a pipe to a child: %s", strerror(errno));
    fcntl(p[0], F_SETFL, O_NONBLOCK);
    return 0;
}

/* In the parent: wait for what the child says. */
static int attend(struct decision_child *c, pid_t pid, int pipe, struct err *e)
{
    c->pid = pid;
    c->pipe = pipe;
    c->pidfd = (int)syscall(SYS_pidfd_open, pid, 0u);
    int rc = c->pidfd < 0 ? err_set(e, errno, "watching a child: %s", strerror(errno)) : 0;
    if (rc == 0)
        rc = loop_watch(c->decider->service->loop, pipe, LOOP_READ, "decision", on_answer, c, e);
    if (rc == 0) {
        loop_timer_set(&c->limit, c->limit_s);
        return 0;
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    let_go(c);
    return rc;
}

/* Fork; the child never comes back from here. On an error 'c' is gone. */
static int launch(struct decision_child *c, struct err *e)
{
    pid_t parent = getpid();
    int p[2], rc = open_pipe(p, e);

    if (rc < 0) {
        child_free(c);
        return rc;
    }
    pid_t pid = fork();
    if (pid == 0) {
        leave_parent(parent, &p[1]);
        c->decided ? decide_there(c, p[1]) : work_there(c, p[1]);
    }
    close(p[1]);
    if (pid > 0) {
        rc = attend(c, pid, p[0], e);
    } else {
        rc = err_set(e, errno, "a child to work: %s", strerror(errno));
        close(p[0]);
    }
    if (rc < 0)
        child_free(c);
    return rc;
}

/* What questions have in common is worked out once, here, and not by each child; but the loop does
 * not wait for long, and whoever is not reached costs the child.
 */
#define WARM_MOST_S 0.02

static void warm(const struct estimator *e, const struct snapshot *s)
{
    double began_s = clock_stopwatch_s();

    estimate_warm_pairs(e);
    for (int i = 0; i < s->n_jobs && clock_stopwatch_s() - began_s < WARM_MOST_S; i++)
        estimate_warm(e, s->jobs[i].workload);
}

int decider_ask(struct decider *d, const char *policy, decide_tell_f *tell, decide_done_f *done,
                void *self, struct err *e)
{
    struct service *s = d->service;
    struct solver solver = s->cycle.solver;
    int rc = policy ? solver_by_name(policy, (uint64_t)s->config.seed, &solver, e) : 0;

    if (rc < 0)
        return rc;
    struct decision_child *c = child_make(d, s->config.solve_s, self, e);
    if (!c)
        return -EAGAIN;
    c->solver = solver;
    c->wants_prices = kept_is_empty(s->cycle.kept);
    c->tell = tell;
    c->decided = done;
    rc = cycle_look(&s->cycle, &c->decision.arena, &c->decision.snapshot, e);
    c->decision.time_s = c->decision.snapshot.now_s;
    if (rc < 0) {
        child_free(c);
        return rc;
    }
    record_look(s->record, &c->solver, &c->decision.snapshot);
    warm(&s->cycle.estimator, &c->decision.snapshot);
    return launch(c, e);
}

int decider_work(struct decider *d, double limit_s, decide_work_f *work, decide_worked_f *done,
                 void *self, struct err *e)
{
    struct decision_child *c = child_make(d, limit_s, self, e);

    if (!c)
        return -EAGAIN;
    c->work = work;
    c->worked = done;
    return launch(c, e);
}
