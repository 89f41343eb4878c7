#include "monitor/watch.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/log.h"
#include "monitor/energy.h"
#include "monitor/inbox.h"
#include "monitor/meter.h"
#include "monitor/monitor.h"
#include "monitor/watch_inner.h"

/* How often it is looked whether a window is due. */
#define TICK_S 1.0

/* Somebody who was not heard of for this many report_s, since no window came true, is told of. */
#define PROGRESS_AFTER 1.5

/* The wall clock was set when it leaves the stopwatch by more than this between two looks. */
#define CLOCK_JUMP_S 1.0

double watch_wall_s(struct watch *w, double at_s)
{
    const double ahead_s = clock_now_s(w->setup.clock) - clock_stopwatch_s();
    const double jump_s = ahead_s - w->ahead_s;

    if (fabs(jump_s) > CLOCK_JUMP_S) {
        log_warn("the clock was set %s by %.0f s", jump_s > 0 ? "forward" : "back", fabs(jump_s));
        if (w->setup.energy)
            energy_shift(w->setup.energy, jump_s);
    }
    w->ahead_s = ahead_s;
    return at_s + ahead_s;
}

/* ---- what is to be told ---- */

struct queued *watch_put(struct watch *w, const struct observation *o)
{
    if (w->first_queued == w->n_queued)
        w->first_queued = w->n_queued = 0;
    GROW(w->queue, w->n_queued, w->cap_queue);
    w->queue[w->n_queued] = (struct queued){ .seen = *o };
    return &w->queue[w->n_queued++];
}

static void announce(struct watch *w)
{
    if (w->on_news && (w->first_queued < w->n_queued || w->is_behind))
        w->on_news(w->news_self);
}

void watch_tell(struct watch *w, const struct observation *o)
{
    struct queued *n = watch_put(w, o);

    if (o->served) {
        n->served = served_copy(o->served);
        n->seen.served = n->served;
    }
    announce(w);
}

bool watch_only_serves(const struct watch *w)
{
    for (int i = w ? w->first_queued : 0; w && i < w->n_queued; i++)
        if (w->queue[i].seen.kind != OBS_SERVED)
            return false;
    return w && w->first_queued < w->n_queued;
}

/* ---- notices of the executor ---- */

static enum observation_kind kind_of(const struct run_notice *n, const struct watched_run *r)
{
    static const enum observation_kind kinds[] = { [NOTICE_STARTED] = OBS_STARTED,
                                                   [NOTICE_STOPPED] = OBS_STOPPED,
                                                   [NOTICE_FINISHED] = OBS_FINISHED,
                                                   [NOTICE_FAILED] = OBS_FAILED,
                                                   [NOTICE_INCAPABLE] = OBS_INCAPABLE };
    const bool is_undone = n->kind == NOTICE_FAILED || n->kind == NOTICE_STOPPED;

    return is_undone && r && r->is_unfit ? OBS_UNFIT : kinds[n->kind];
}

/* What 'n' means, and how far its job is. */
static struct observation notice_told(const struct watch *w, const struct run_notice *n)
{
    const struct watched_run *r = watched_find(w, n->job);
    struct observation o = { .watts = NAN, .noise = NAN };

    if (r && r->is_unfit && n->kind != NOTICE_INCAPABLE)
        o = r->unfit;
    o.kind = kind_of(n, r);
    o.time_s = o.from_s = n->time_s;
    o.job = n->job;
    o.n_gpus = n->n_gpus;
    o.gpus = n->gpus;
    o.limit_w = n->limit_w;
    o.reason = n->reason;
    o.steps_done = r ? r->steps : w->setup.state->jobs[n->job]->steps_done;
    return o;
}

/* The executor's next notice: windows that end by it, then the notice itself. False: none. */
static bool take_notice(struct watch *w)
{
    struct run_notice n;

    w->is_behind = w->setup.executor->next(w->setup.executor->self, &n) == 1;
    if (!w->is_behind)
        return false;
    inbox_look(w->inbox);    // what it said at last is told with its end
    struct observation o = notice_told(w, &n);
    struct watched_run *r = watched_find(w, n.job);
    if (r)
        served_tell(w, r);
    if (n.kind == NOTICE_STARTED)
        watched_enter(w, n.job, n.n_gpus, n.gpus, n.limit_w);
    else if (r)
        watched_leave(w, r);
    watch_put(w, &o)->is_notice = true;
    return true;
}

static void on_notices(void *self)
{
    struct watch *w = self;

    w->is_behind = true;
    announce(w);
}

/* ---- the sensor's door ---- */

static int sensor_next(void *self, struct observation *out)
{
    struct watch *w = self;

    if (w->first_queued == w->n_queued && !take_notice(w))
        return 0;
    *out = w->queue[w->first_queued].seen;
    return 1;
}

static void queued_free(struct queued *n)
{
    free(n->gpus);
    free(n->served);
}

static void sensor_done(void *self)
{
    struct watch *w = self;

    assert(w->first_queued < w->n_queued);
    struct queued *n = &w->queue[w->first_queued++];
    if (n->served)
        served_done(w, n);
    queued_free(n);
    if (!n->is_notice)
        return;
    w->setup.executor->done(w->setup.executor->self);
    meter_soon(w->meter);    // the state knows it by now, and so does the model
}

struct sensor watch_sensor(struct watch *w)
{
    return (struct sensor){ .self = w, .next = sensor_next, .done = sensor_done };
}

void watch_on_news(struct watch *w, void (*f)(void *self), void *self)
{
    w->on_news = f;
    w->news_self = self;
}

/* ---- reports ---- */

/* Of a run whose start is a notice that nobody has heard yet? It will say so again. */
static bool is_early(const struct watch *w, const struct job_report *said)
{
    struct run_info found;

    return said->job >= 0 && said->job < w->setup.state->n_jobs &&
           executor_find(w->setup.executor, said->job, &found) && found.run == said->run &&
           found.secret && strlen(found.secret) == REPORT_SECRET_BYTES &&
           job_report_is_signed(said, found.secret);
}

static void hear(struct watch *w, struct watched_run *r, const struct job_report *said, double at_s)
{
    if (said->is_unfit && !r->is_unfit) {
        r->is_unfit = true;
        r->unfit = (struct observation){ .watts = NAN, .noise = NAN };
        watched_neighbours(w, r, &r->unfit);
    }
    if (r->has_reported && said->steps < r->steps)
        return;    // overtaken on its way
    if (said->steps > r->steps && !said->is_unfit)
        r->is_unfit = false;    // it has got by after all
    if (said->steps < r->told_steps)
        r->told_steps = said->steps;    // it went on from an older checkpoint
    r->has_reported = true;
    r->steps = said->steps;
    r->heard_s = at_s;
    if (!w->is_behind && window_count(&r->window, at_s, said->steps))
        watched_note(w, r, at_s);
}

static void on_report(void *self, const char *bytes, size_t len, double arrived_s)
{
    struct watch *w = self;
    struct job_report said;

    w->stats.n_reports++;
    if (job_report_parse(bytes, len, &said) < 0) {
        w->stats.n_bad++;
        return;
    }
    if (said.job < 0)
        said.job = executor_find_number(w->setup.executor, said.slurm_id);
    struct watched_run *r = said.job < 0 ? NULL : watched_find(w, said.job);
    if (r && r->n == said.run && r->secret[0] != '\0' && job_report_is_signed(&said, r->secret)) {
        if (served_is_flood(w, r, (size_t)(said.secret - bytes), arrived_s))
            return;
        if (served_hear(w, r, &said, arrived_s))
            hear(w, r, &said, arrived_s);
        else
            w->stats.n_bad++;
    } else if (!is_early(w, &said)) {
        w->stats.n_bad++;
    }
}

/* ---- the clock's hand ---- */

static void look_at(struct watch *w, struct watched_run *r, double now_s)
{
    const double after_s = clock_spread_s(w->setup.report_s, r->job);
    const double long_s = window_length_s(&r->window);

    if (long_s >= fmax(after_s, MONITOR_WINDOW_MIN_S) || r->window.n_parts == WINDOW_PARTS_MAX)
        watched_tell(w, r, false);
    if (r->window.last_steps > r->told_steps && now_s - r->told_s >= PROGRESS_AFTER * after_s)
        watched_tell_progress(w, r);
}

/* Whoever waits in the state may be about to run there: its start is told a moment later, or once
 * more after a commit that failed.
 */
static bool is_over(const struct watch *w, int job)
{
    struct run_info found;

    if (job_may_run(w->setup.state->jobs[job]))
        return false;
    return !executor_find(w->setup.executor, job, &found) || !found.is_there;
}

/* Jobs that were cancelled leave without a notice, and when they have really gone. As long as news
 * wait, the state knows less than we do, not more.
 */
static void drop_cancelled(struct watch *w)
{
    if (w->is_behind || w->first_queued < w->n_queued)
        return;
    for (int i = w->n_runs - 1; i >= 0; i--) {
        if (is_over(w, w->runs[i]->job))
            watched_leave(w, w->runs[i]);
    }
}

/* Where somebody saves and leaves, the others are neither beside it nor without it: their windows
 * end, and begin anew when it has gone.
 */
static void disturb_busy(struct watch *w)
{
    for (int i = 0; i < w->n_residents; i++) {
        if (w->residents[i].n > 0 && executor_gpu_is_busy(w->setup.executor, i))
            residents_disturb(w, i);
    }
}

static void on_tick(void *self)
{
    struct watch *w = self;
    const double now_s = clock_stopwatch_s();

    loop_timer_set(&w->timer, TICK_S);
    watch_wall_s(w, now_s);    // was the clock set?
    drop_cancelled(w);
    disturb_busy(w);
    served_unmute(w, now_s);
    for (int i = 0; i < w->n_runs && !w->is_behind; i++) {
        look_at(w, w->runs[i], now_s);
        served_tell(w, w->runs[i]);
    }
    announce(w);
}

/* ---- power ---- */

static void on_round(void *self)
{
    struct watch *w = self;
    const double now_s = watch_now_s(w);

    if (!w->setup.energy || !w->meter)
        return;
    for (int i = 0; i < w->setup.state->n_gpus; i++) {
        energy_draw(w->setup.energy, i, now_s, meter_w(w->meter, i), meter_idle_w(w->meter, i));
        if (i < w->n_residents && w->residents[i].n > 1)
            residents_share(w, i);
    }
}

/* ---- beginning and end ---- */

/* Who runs already, as the state has it; the executor's notices tell what has changed since. */
static void adopt(struct watch *w)
{
    const struct state *s = w->setup.state;

    for (int i = 0; i < s->n_running; i++) {
        const struct job *j = s->jobs[s->running[i]];
        watched_enter(w, j->id, j->n_held, j->gpus, j->limit_w);
    }
    w->is_behind = true;    // until it has been looked whether there are any
}

int watch_create(const struct watch_setup *s, struct watch **out, struct err *e)
{
    struct watch *w = heap_array(1, sizeof *w);

    w->setup = *s;
    w->ahead_s = clock_now_s(s->clock) - clock_stopwatch_s();
    loop_timer_init(&w->timer, s->loop, "watch", on_tick, w);
    int rc = meter_create(s, on_round, w, &w->meter, e);
    if (rc == 0)
        rc = inbox_open(s->loop, s->socket, s->udp, on_report, w, &w->inbox, e);
    if (rc < 0) {
        watch_destroy(w);
        return rc;
    }
    adopt(w);
    s->executor->on_news(s->executor->self, on_notices, w);
    loop_timer_set(&w->timer, TICK_S);
    *out = w;
    return 0;
}

void watch_destroy(struct watch *w)
{
    if (!w)
        return;
    loop_timer_clear(&w->timer);
    inbox_close(w->inbox);
    meter_destroy(w->meter);
    for (int i = 0; i < w->n_runs; i++)
        watched_free(w->runs[i]);
    for (int i = w->first_queued; i < w->n_queued; i++)
        queued_free(&w->queue[i]);
    free(w->last_served);
    free(w->runs);
    free(w->by_job);
    free(w->residents);
    free(w->queue);
    free(w);
}

/* ---- for those who show it ---- */

bool watch_job(const struct watch *w, int job, struct watch_job *out)
{
    const struct watched_run *r = watched_find(w, job);
    const double now_s = clock_stopwatch_s();

    if (!r)
        return false;
    *out = (struct watch_job){ .has_reported = r->has_reported,
                               .steps = r->steps,
                               .speed = window_speed(&r->window, now_s),
                               .heard_s = clock_now_s(w->setup.clock) - (now_s - r->heard_s),
                               .watts = watched_watts(w, r) };
    return true;
}

double watch_now_s(struct watch *w)
{
    return watch_wall_s(w, clock_stopwatch_s());
}

double watch_gpu_w(const struct watch *w, int gpu)
{
    return meter_w(w->meter, gpu);
}

const char *watch_power_source(const struct watch *w, int gpu)
{
    return meter_source(w->meter, gpu);
}

int watch_udp_port(const struct watch *w)
{
    return inbox_udp_port(w->inbox);
}

struct watch_stats watch_stats(const struct watch *w)
{
    struct watch_stats s = w->stats;

    s.n_power_failures = meter_n_failures(w->meter);
    return s;
}
