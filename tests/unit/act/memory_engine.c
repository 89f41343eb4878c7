#include "unit/act/memory_engine.h"

#include <check.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/loop.h"

/* ---- what was asked, and what shall fail ---- */

__attribute__((format(printf, 2, 3))) static void note(struct memory_engine *m, const char *format,
                                                       ...)
{
    const size_t at = strlen(m->asked);
    va_list args;

    va_start(args, format);
    vsnprintf(m->asked + at, sizeof m->asked - at - 1, format, args);
    va_end(args);
    strncat(m->asked, ";", sizeof m->asked - strlen(m->asked) - 1);
}

bool memory_was_asked(const struct memory_engine *m, const char *what)
{
    const char *at = m->asked;
    const size_t len = strlen(what);

    for (; (at = strstr(at, what)); at += len)
        if ((at == m->asked || at[-1] == ';') && at[len] == ';')
            return true;
    return false;
}

void memory_forget(struct memory_engine *m)
{
    m->asked[0] = '\0';
}

static const char *name_of(const struct memory_engine *m, int job)
{
    return m->state->jobs[job]->spec.name;
}

/* The first line of the script, if it is about this order; it is used up. "": none is. */
static const char *fault(struct memory_engine *m, const char *order, int job)
{
    static char what[32];
    char word[32], name[64];
    int n = 0;

    what[0] = '\0';
    if (!m->script || sscanf(m->script, "%31s %63s %31s\n%n", word, name, what, &n) < 3 ||
        strcmp(word, order) != 0 || strcmp(name, name_of(m, job)) != 0)
        return "";
    m->script += n;
    return what;
}

/* 1: it is to be carried out slowly. */
static int accept(struct memory_engine *m, const char *order, int job, struct err *e)
{
    note(m, "%s %s", order, name_of(m, job));
    const char *what = fault(m, order, job);
    m->is_dead |= strcmp(what, "die") == 0;
    if (m->is_dead)
        return err_set(e, EAGAIN, "the engine does not answer");
    if (strcmp(what, "refuse") == 0)
        return err_set(e, EBUSY, "not now");
    if (strcmp(what, "cannot") == 0)
        return err_set(e, ENODEV, "not there");
    return strcmp(what, "slow") == 0;
}

/* ---- notices ---- */

static void tell_news(void *self)
{
    struct memory_engine *m = self;

    if (m->on_news && !m->is_closed)
        m->on_news(m->news_to);
}

static void push(struct memory_engine *m, int job, enum notice_kind kind, bool is_move,
                 const char *reason)
{
    const struct memory_run *r = &m->runs[job];

    ck_assert_int_lt(m->n_notices, MEMORY_QUEUE);
    memcpy(m->notice_gpus[m->n_notices], r->gpus, sizeof r->gpus);
    m->notices[m->n_notices] = (struct run_notice){ .kind = kind,
                                                    .time_s = clock_now_s(m->clock),
                                                    .job = job,
                                                    .run = r->run,
                                                    .n_gpus = r->n_gpus,
                                                    .gpus = m->notice_gpus[m->n_notices],
                                                    .is_move = is_move,
                                                    .reason = reason };
    m->n_notices++;
    loop_post(m->loop, "memory's news", tell_news, m);
}

static int next(void *self, struct run_notice *out)
{
    struct memory_engine *m = self;

    if (m->first_notice == m->n_notices)
        return 0;
    *out = m->notices[m->first_notice];
    return 1;
}

static void done(void *self)
{
    struct memory_engine *m = self;

    ck_assert_int_lt(m->first_notice++, m->n_notices);
}

static void on_news(void *self, void (*f)(void *to), void *to)
{
    struct memory_engine *m = self;

    m->on_news = f;
    m->news_to = to;
}

/* ---- orders ---- */

static void leave(struct memory_engine *m, int job, enum notice_kind kind, const char *reason)
{
    push(m, job, kind, false, reason);
    m->runs[job].is_there = false;
}

static void begin(struct memory_engine *m, int job, bool is_move)
{
    struct memory_run *r = &m->runs[job];

    r->run++;
    r->is_there = true;
    r->is_slow = false;
    push(m, job, NOTICE_STARTED, is_move, NULL);
}

static int put(struct memory_engine *m, const char *order, const struct placement *p, struct err *e)
{
    struct memory_run *r = &m->runs[p->job];
    const int rc = accept(m, order, p->job, e);

    if (rc < 0)
        return rc;
    ck_assert_int_le(p->n_gpus, 8);
    r->n_gpus = p->n_gpus;
    memcpy(r->gpus, p->gpus, (size_t)p->n_gpus * sizeof *p->gpus);
    r->is_slow = rc == 1;
    if (!r->is_slow)
        begin(m, p->job, r->is_there);
    return 0;
}

static int start(void *self, const struct placement *p, struct err *e)
{
    return put(self, "start", p, e);
}

static int move(void *self, const struct placement *p, struct err *e)
{
    return put(self, "move", p, e);
}

static int stop(void *self, int job, struct err *e)
{
    struct memory_engine *m = self;
    const int rc = accept(m, "stop", job, e);

    if (rc < 0)
        return rc;
    m->runs[job].is_slow = false;
    if (m->runs[job].is_there)
        leave(m, job, NOTICE_STOPPED, "stopped as planned");
    return 0;
}

static int cancel(void *self, int job, struct err *e)
{
    struct memory_engine *m = self;
    const int rc = accept(m, "cancel", job, e);

    if (rc >= 0)
        m->runs[job].is_there = m->runs[job].is_slow = false;
    return rc < 0 ? rc : 0;
}

void memory_settle(struct memory_engine *m)
{
    for (int i = 0; i < MEMORY_JOBS; i++)
        if (m->runs[i].is_slow)
            begin(m, i, m->runs[i].is_there);
}

void memory_end(struct memory_engine *m, int job, enum notice_kind how, const char *reason)
{
    leave(m, job, how, reason);
}

static bool job_is_busy(void *self, int job)
{
    const struct memory_engine *m = self;

    return m->runs[job].is_slow;
}

static bool gpu_is_busy(void *self, int gpu)
{
    const struct memory_engine *m = self;

    for (int i = 0; i < MEMORY_JOBS; i++)
        for (int k = 0; k < m->runs[i].n_gpus && m->runs[i].is_slow; k++)
            if (m->runs[i].gpus[k] == gpu)
                return true;
    return false;
}

/* ---- the journal ---- */

static void job_is(void *self, int job, enum job_change change)
{
    static const char *const words[] = {
        [JOB_IS_NEW] = "new", [JOB_IS_HELD] = "held", [JOB_IS_RELEASED] = "released"
    };
    struct memory_engine *m = self;

    note(m, "%s %s", words[change], name_of(m, job));
}

static void committed(void *self)
{
    struct memory_engine *m = self;

    m->n_safe = m->first_notice;
    note(m, "committed");
}

static void undone(void *self)
{
    note(self, "undone");
}

static bool next_change(void *self, struct engine_change *out)
{
    struct memory_engine *m = self;

    if (m->first_change == m->n_changes)
        return false;
    *out = m->changes[m->first_change++];
    return true;
}

void memory_user(struct memory_engine *m, int job, enum job_change what)
{
    ck_assert_int_lt(m->n_changes, MEMORY_QUEUE);
    m->changes[m->n_changes++] = (struct engine_change){ .change = what,
                                                         .job = job,
                                                         .time_s = clock_now_s(m->clock),
                                                         .reason = "by memory's commands" };
    loop_post(m->loop, "memory's news", tell_news, m);
}

void memory_node(struct memory_engine *m, int node, enum node_state is)
{
    m->node_is(m->owner, node, is);
}

/* ---- how it is ---- */

static bool find(void *self, int job, struct run_info *out)
{
    const struct memory_engine *m = self;

    if (m->runs[job].run == 0)
        return false;
    *out = (struct run_info){ .run = m->runs[job].run, .is_there = m->runs[job].is_there };
    return true;
}

static int find_number(void *self, long number)
{
    const struct memory_engine *m = self;

    return number >= 100 && number < 100 + m->state->n_jobs ? (int)number - 100 : -1;
}

static int facts(void *self, struct engine_fact *out)
{
    const struct memory_engine *m = self;

    out[0] = (struct engine_fact){ .kind = FACT_FLAG,
                                   .key = "up",
                                   .metric = "gogh_memory_up",
                                   .help = "1 while memory answers.",
                                   .number = !m->is_dead };
    return 1;
}

static void set_grace(void *self, double grace_s)
{
    struct memory_engine *m = self;

    m->grace_s = grace_s;
}

static void close_it(void *self)
{
    struct memory_engine *m = self;

    m->is_closed = true;
}

/* ---- life ---- */

void memory_open(struct memory_engine *m, struct loop *loop, const struct clock *clock,
                 const struct state *s)
{
    m->clock = clock;
    m->loop = loop;
    m->state = s;
    m->is_closed = m->is_dead = false;
    m->first_notice = m->n_safe;    // the others are told again
}

struct executor memory_executor(struct memory_engine *m)
{
    return (struct executor){ .self = m,
                              .start = start,
                              .stop = stop,
                              .move = move,
                              .cancel = cancel,
                              .job_is_busy = job_is_busy,
                              .gpu_is_busy = gpu_is_busy,
                              .job_is = job_is,
                              .committed = committed,
                              .undone = undone,
                              .next_change = next_change,
                              .next = next,
                              .done = done,
                              .on_news = on_news,
                              .find = find,
                              .find_number = find_number,
                              .facts = facts,
                              .set_grace = set_grace,
                              .close = close_it,
                              .node = -1 };
}
