/* What came of runs, and what users did: told to whoever listens. Everything here is derived from
 * views and the state, so what is lost in a crash is told again by the next view.
 */
#include "act/slurm/inner.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/grow.h"
#include "catalog/cluster/state.h"

bool told_running(const struct slurm *x, const struct managed *m)
{
    return m->n_notices > 0 ? m->is_told_running : managed_job(x, m)->state == JOB_RUNNING;
}

/* ---- notices ---- */

/* Not before the last one, nor in the future: Slurm's times are whole seconds. */
static double time_of(const struct slurm *x, const struct managed *m, double time_s)
{
    const double now_s = slurm_wall_s(x);

    return isnan(time_s) ? now_s : fmin(fmax(time_s, m->told_s), now_s);
}

static void push(struct slurm *x, struct managed *m, enum notice_kind kind, double time_s,
                 const char *reason)
{
    const struct run_notice n = {
        .kind = kind,
        .time_s = time_of(x, m, time_s),
        .job = m->job,
        .run = kind == NOTICE_STARTED || m->told_run < 0 ? m->last.run : m->told_run,
        .n_gpus = m->at.n_gpus,
        .gpus = m->at.gpus,
        .reason = reason,
    };

    notices_push(&x->notices, &n);
    m->told_s = n.time_s;
    m->is_told_running = kind == NOTICE_STARTED;
    m->n_notices++;
}

void tell_started(struct slurm *x, struct managed *m)
{
    push(x, m, NOTICE_STARTED, m->last.start_s, NULL);
    m->told_run = m->last.run;
}

/* Where nobody has heard that it runs, that is told first, as the state needs it. */
void tell_end(struct slurm *x, struct managed *m, enum notice_kind kind, const char *reason)
{
    if (kind != NOTICE_STOPPED && !told_running(x, m))
        tell_started(x, m);
    if (told_running(x, m))
        push(x, m, kind, slurm_has_ended(m->last.state) ? m->last.end_s : (double)NAN, reason);
}

static void notice_done(void *self)
{
    struct slurm *x = self;
    struct managed *m = managed_find(x, notices_first(&x->notices)->job);

    assert(m && m->n_notices > 0);
    m->n_notices--;
    notices_drop(&x->notices);
}

/* Held or cancelled since: then it is not to run, and nobody hears of it. That it has ended for
 * good is heard once it is released.
 */
static bool is_unwanted(struct slurm *x, const struct run_notice *n)
{
    struct managed *m = managed_find(x, n->job);

    if (managed_may_run(x, m))
        return false;
    m->is_told_running = false;
    managed_update(x, m, ON_UNREPORTED);
    if (n->kind == NOTICE_STARTED && m->state == MANAGED_RUNNING)
        managed_leave(x, m, managed_is_held(x, m) ? ON_STOP : ON_CANCEL);
    return true;
}

static int next_notice(void *self, struct run_notice *out)
{
    struct slurm *x = self;
    const struct run_notice *n;

    while ((n = notices_first(&x->notices))) {
        *out = *n;
        if (!is_unwanted(x, out))
            return 1;
        notice_done(x);
    }
    return 0;
}

static void on_news(void *self, void (*f)(void *to), void *to)
{
    struct slurm *x = self;

    notices_listen(&x->notices, f, to);
    if (x->first_change < x->n_changes)
        notices_tell(&x->notices);
}

/* ---- what users did ---- */

/* One that the state would refuse, or that waits to be taken off already, is not told. */
void tell_change(struct slurm *x, struct managed *m, enum job_change change, const char *reason)
{
    static const enum event_kind kinds[] = { [JOB_IS_HELD] = EVENT_JOB_HELD,
                                             [JOB_IS_RELEASED] = EVENT_JOB_RELEASED,
                                             [JOB_IS_CANCELLED] = EVENT_JOB_CANCELLED };

    if (m->n_notices > 0 || !state_expects(x->setup.state, kinds[change], m->job))
        return;
    for (int i = x->first_change; i < x->n_changes; i++)
        if (x->changes[i].job == m->job && x->changes[i].change == change)
            return;
    GROW(x->changes, x->n_changes, x->cap_changes);
    x->changes[x->n_changes++] =
        (struct engine_change){ .change = change,
                                .job = m->job,
                                .time_s = slurm_wall_s(x),
                                .reason = reason ? reason : "by Slurm's commands" };
    notices_tell(&x->notices);
}

static bool next_change(void *self, struct engine_change *out)
{
    struct slurm *x = self;

    if (x->first_change == x->n_changes)
        return false;
    *out = x->changes[x->first_change++];
    x->has_hold |= out->change == JOB_IS_HELD;
    if (x->first_change == x->n_changes)
        x->first_change = x->n_changes = 0;
    return true;
}

/* ---- those who ask ---- */

static bool find(void *self, int job, struct run_info *out)
{
    struct slurm *x = self;
    const struct managed *m = job < 0 ? NULL : managed_find(x, job);

    if (!m || !m->last.id)
        return false;
    *out = (struct run_info){ .run = m->last.run,
                              .is_there = m->now && m->last.state == SLURM_RUNNING,
                              .slurm_id = m->last.id,
                              .out = m->out,
                              .why = m->why,
                              .n_failures = m->n_failures };
    out->secret = slurm_secret(x, job);
    return true;
}

static int find_number(void *self, long slurm_id)
{
    const struct slurm *x = self;
    int job = -1;

    for (int i = 0; i < x->n_active; i++) {
        if (x->active[i]->last.id != slurm_id || !x->active[i]->now)
            continue;
        if (job >= 0)
            return -1;    // tasks of an array that share its number
        job = x->active[i]->job;
    }
    return job;
}

void tell_fill(struct executor *out)
{
    out->next = next_notice;
    out->done = notice_done;
    out->on_news = on_news;
    out->find = find;
    out->find_number = find_number;
    out->next_change = next_change;
}

void tell_release(struct slurm *x)
{
    notices_release(&x->notices);
    free(x->changes);
}
