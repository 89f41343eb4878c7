/* What came of runs, and what users did: told to whoever listens. Everything here is derived from
 * views and the state, so what is lost in a crash is told again by the next view.
 */
#include "act/slurm/inner.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "catalog/cluster/state.h"

bool told_running(const struct slurm *x, const struct ward *w)
{
    return w->n_notices > 0 ? w->is_told : x->setup.state->jobs[w->job]->state == JOB_RUNNING;
}

/* ---- notices ---- */

/* Not before the last one, nor in the future: Slurm's times are whole seconds. */
static double time_of(const struct slurm *x, const struct ward *w, double time_s)
{
    const double now_s = slurm_wall_s(x);

    return isnan(time_s) ? now_s : fmin(fmax(time_s, w->told_s), now_s);
}

static void push(struct slurm *x, struct ward *w, enum notice_kind kind, double time_s,
                 const char *reason)
{
    struct slurm_notice *n;
    struct spot at = { 0 };

    GROW(x->notices, x->n_notices, x->cap_notices);
    n = &x->notices[x->n_notices++];
    spot_set(&at, w->at.gpus, w->at.n_gpus, w->at.limit_w);
    *n = (struct slurm_notice){ .gpus = at.gpus, .reason = reason ? strdup(reason) : NULL };
    assert(n->reason || !reason);    // out of memory: stop
    n->told = (struct run_notice){
        .kind = kind,
        .time_s = time_of(x, w, time_s),
        .job = w->job,
        .run = kind == NOTICE_STARTED || w->told_run < 0 ? w->run : w->told_run,
        .n_gpus = at.n_gpus,
        .gpus = at.gpus,
        .limit_w = at.limit_w,
        .is_move = kind == NOTICE_STARTED && w->is_move && told_running(x, w),
        .reason = n->reason,
    };
    w->told_s = n->told.time_s;
    w->is_told = kind == NOTICE_STARTED;
    w->n_notices++;
    loop_timer_set(&x->news, 0);
}

void tell_started(struct slurm *x, struct ward *w)
{
    push(x, w, NOTICE_STARTED, w->start_s, NULL);
    w->told_run = w->run;
    w->is_move = false;
}

/* Where nobody has heard that it runs, that is told first, as the state needs it. */
void tell_end(struct slurm *x, struct ward *w, enum notice_kind kind, const char *reason)
{
    if (kind != NOTICE_STOPPED && !told_running(x, w))
        tell_started(x, w);
    if (told_running(x, w))
        push(x, w, kind, slurm_has_ended(w->state) ? w->end_s : (double)NAN, reason);
    w->is_end_told = kind != NOTICE_STOPPED;
}

static void drop(struct slurm *x)
{
    struct slurm_notice *n = &x->notices[x->first_notice++];
    struct ward *w = ward_find(x, n->told.job);

    assert(w && w->n_notices > 0);
    w->n_notices--;
    free(n->gpus);
    free(n->reason);
    if (x->first_notice == x->n_notices)
        x->first_notice = x->n_notices = 0;
}

/* Held or cancelled since: then it is not to run, and nobody hears of it. That it has ended for
 * good is heard once it is released.
 */
static bool is_unwanted(struct slurm *x, const struct run_notice *n)
{
    struct ward *w = ward_find(x, n->job);

    if (ward_may_run(x, w))
        return false;
    w->is_told = w->is_end_told = false;
    if (n->kind == NOTICE_STARTED && w->phase == WARD_RUNNING)
        ward_leave(x, w, ward_is_held(x, w) ? LEAVE_STOP : LEAVE_CANCEL);
    return true;
}

static int next_notice(void *self, struct run_notice *out)
{
    struct slurm *x = self;

    while (x->first_notice < x->n_notices) {
        *out = x->notices[x->first_notice].told;
        if (!is_unwanted(x, out))
            return 1;
        drop(x);
    }
    return 0;
}

static void notice_done(void *self)
{
    struct slurm *x = self;

    assert(x->first_notice < x->n_notices);
    drop(x);
}

static void on_news(void *self, void (*f)(void *to), void *to)
{
    struct slurm *x = self;

    x->on_news = f;
    x->news_self = to;
    if (x->first_notice < x->n_notices || x->first_deed < x->n_deeds)
        loop_timer_set(&x->news, 0);
}

void tell_on_news(void *self)
{
    struct slurm *x = self;

    if (x->on_news)
        x->on_news(x->news_self);
}

/* ---- deeds ---- */

/* One that the state would refuse, or that waits to be taken off already, is not told. */
void tell_deed(struct slurm *x, struct ward *w, enum slurm_deed deed, const char *reason)
{
    static const enum event_kind kinds[] = { [DEED_HELD] = EVENT_JOB_HELD,
                                             [DEED_RELEASED] = EVENT_JOB_RELEASED,
                                             [DEED_CANCELLED] = EVENT_JOB_CANCELLED };

    if (w->n_notices > 0 || !state_expects(x->setup.state, kinds[deed], w->job))
        return;
    for (int i = x->first_deed; i < x->n_deeds; i++)
        if (x->deeds[i].job == w->job && x->deeds[i].deed == deed)
            return;
    GROW(x->deeds, x->n_deeds, x->cap_deeds);
    x->deeds[x->n_deeds++] = (struct slurm_did){
        .deed = deed, .job = w->job, .time_s = slurm_wall_s(x), .reason = reason
    };
    loop_timer_set(&x->news, 0);
}

bool slurm_next_deed(struct slurm *x, struct slurm_did *out)
{
    if (x->first_deed == x->n_deeds)
        return false;
    *out = x->deeds[x->first_deed++];
    x->has_hold |= out->deed == DEED_HELD;
    if (x->first_deed == x->n_deeds)
        x->first_deed = x->n_deeds = 0;
    return true;
}

/* ---- those who ask ---- */

static bool find(void *self, int job, struct run_info *out)
{
    struct slurm *x = self;
    const struct ward *w = job < 0 ? NULL : ward_find(x, job);

    if (!w || !w->id)
        return false;
    *out = (struct run_info){ .run = w->run,
                              .is_there = w->is_there && w->state == SLURM_RUNNING,
                              .slurm_id = w->id,
                              .out = w->out,
                              .why = w->why,
                              .n_failures = w->n_failures };
    if (x->setup.secret)
        out->secret = x->setup.secret(x->setup.secret_self, job);
    return true;
}

static int find_slurm(void *self, long slurm_id)
{
    const struct slurm *x = self;
    int job = -1;

    for (int i = 0; i < x->n_active; i++) {
        if (x->active[i]->id != slurm_id || !x->active[i]->is_there)
            continue;
        if (job >= 0)
            return -1;    // tasks of an array that share its number
        job = x->active[i]->job;
    }
    return job;
}

struct runs tell_runs(struct slurm *x)
{
    return (struct runs){ .self = x,
                          .executor = slurm_executor(x),
                          .next = next_notice,
                          .done = notice_done,
                          .on_news = on_news,
                          .find = find,
                          .find_slurm = find_slurm };
}

void tell_release(struct slurm *x)
{
    loop_timer_clear(&x->news);
    while (x->first_notice < x->n_notices)
        drop(x);
    free(x->notices);
    free(x->deeds);
}
