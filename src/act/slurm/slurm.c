#include "act/slurm/slurm.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "act/slurm/inner.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/log.h"
#include "catalog/cluster/state.h"

#define SILENCE_S 60.0         // a driver that owes an answer and says nothing hangs
#define PAUSE_S 0.1            // before one that died is replaced, at first
#define MIN_JOB_AGE_S 300.0    // Slurm's default
#define THETA 2
#define REFUSED "gogh1 refused:"

double slurm_now_s(const struct slurm *x)
{
    return clock_stopwatch_s() + x->skew_s;
}

double slurm_wall_s(const struct slurm *x)
{
    return clock_now_s(x->setup.clock);
}

void slurm_pass_soon(struct slurm *x)
{
    loop_timer_set(&x->pass, 0);
}

/* ---- orders ---- */

static int check_place(const struct slurm *x, const struct placement *p, struct err *e)
{
    if (p->job < 0 || p->job >= x->setup.state->n_jobs)
        return err_set(e, ENODEV, "there is no job %d", p->job);
    if (p->n_gpus < 1)
        return err_set(e, ENODEV, "job %d cannot run on no GPU", p->job);
    for (int i = 0; i < p->n_gpus; i++)
        if (p->gpus[i] < 0 || p->gpus[i] >= x->setup.state->n_gpus)
            return err_set(e, ENODEV, "there is no GPU %d", p->gpus[i]);
    if (!x->is_up || !x->has_view)
        return err_set(e, EAGAIN, "Slurm does not answer%s%s", *x->why_down ? ": " : "",
                       x->why_down);
    return 0;
}

static bool is_there(const struct ward *w, const struct placement *p)
{
    if (w->has_next)
        return spot_is(&w->next, p->gpus, p->n_gpus);
    return (w->phase == WARD_WANTED || w->phase == WARD_RUNNING) &&
           spot_is(&w->at, p->gpus, p->n_gpus);
}

/* A node that may have a copy of it, see start_anew. The GPU is not offered again for a while, and
 * not for equally long to all that are refused, so that each finds another.
 */
static int check_shunned(struct slurm *x, struct ward *w, const struct spot *next, struct err *e)
{
    for (int i = 0; i < next->n_gpus; i++) {
        const int node = x->setup.state->gpus[next->gpus[i]].node;

        for (int k = 0; k < w->shunned.n_gpus; k++) {
            if (x->setup.state->gpus[w->shunned.gpus[k]].node != node)
                continue;
            nodes_shut(x, next, 3 + (7 * w->job + 5 * w->n_shunned++) % 11);
            return err_set(e, EBUSY,
                           "Slurm forgot that job %d ran on node %s, which takes it for a "
                           "second copy; not there",
                           w->job, x->setup.state->nodes[node].name);
        }
    }
    return 0;
}

/* Whoever cannot be placed there is not planned for a while: the next plan would be the same. */
static int check_spot(struct slurm *x, struct ward *w, const struct spot *next, struct err *e)
{
    struct err own = { 0 };
    int rc = place_check(x, w, next, &own);

    if (rc == 0)
        return check_shunned(x, w, next, e);
    if (w->phase == WARD_HELD)
        ward_pause(x, w, own.text);
    return err_set(e, ENODEV, "%s", own.text);
}

static int set_next(struct slurm *x, struct ward *w, const struct placement *p, struct err *e)
{
    struct spot next = { 0 };
    int rc;

    spot_set(&next, p->gpus, p->n_gpus, 0);
    rc = check_spot(x, w, &next, e);
    if (rc < 0) {
        free(next.gpus);
        return rc;
    }
    spot_move(&w->next, &next);
    w->has_next = true;
    w->wait_s = (double)NAN;
    w->due_s = w->phase == WARD_LEAVING ? w->due_s : (double)INFINITY;
    x->n_busy = -1;
    look_soon(x);    // whether its number is still its own is seen first
    return 0;
}

static int order_start(void *self, const struct placement *p, struct err *e)
{
    struct slurm *x = self;
    struct ward *w;
    int rc = x->setup.only_watches ? 1 : check_place(x, p, e);

    if (rc != 0)
        return rc < 0 ? rc : 0;
    w = ward_find(x, p->job);
    if (!w)
        return err_set(e, EAGAIN, "job %d is not in Slurm yet", p->job);
    ward_set_active(x, w, true);
    if (is_there(w, p))
        return 0;
    if (w->phase == WARD_LEAVING)
        return err_set(e, EBUSY, "job %d is still being stopped", p->job);
    if (w->phase == WARD_ENDED)
        return err_set(e, EBUSY, "job %d has ended in Slurm, which is being told", p->job);
    if (w->has_next || w->phase == WARD_WANTED || w->phase == WARD_RUNNING)
        return err_set(e, EBUSY, "job %d runs elsewhere: move it", p->job);
    if (w->phase != WARD_HELD)    // nobody knows yet whether Slurm takes it: no GPU waits for that
        return err_set(e, EAGAIN, "job %d is not in Slurm yet", p->job);
    if (ward_is_paused(x, w))
        return err_set(e, EAGAIN, "job %d pauses: %s", p->job, w->why ? w->why : "");
    return set_next(x, w, p, e);
}

/* It can run on, and nowhere else: Slurm does not put it back, or would give it a second device. */
static int check_free(struct slurm *x, const struct ward *w, struct err *e)
{
    const bool is_here = w->phase == WARD_RUNNING;

    if (is_here && w->stuck_run == w->run)
        return err_set(e, EBUSY, "Slurm does not put job %d back into its queue; it stays", w->job);
    if (is_here && ward_is_users(x, w) && place_is_bound(x, w))
        return err_set(e, EBUSY,
                       "Slurm %s cannot give job %d another device than %s; it stays (23.02.6 can)",
                       x->version, w->job, w->gres);
    return 0;
}

static int order_stop(void *self, int job, struct err *e)
{
    struct slurm *x = self;
    struct ward *w = job < 0 ? NULL : ward_find(x, job);
    int rc;

    if (job < 0 || job >= x->setup.state->n_jobs)
        return err_set(e, ENODEV, "there is no job %d", job);
    if (!w || x->setup.only_watches)
        return 0;
    rc = check_free(x, w, e);
    if (rc < 0)
        return rc;
    if (w->phase == WARD_WANTED || w->phase == WARD_RUNNING ||
        (w->phase == WARD_LEAVING && w->leave == LEAVE_MOVE)) {
        ward_say_why(w, NULL);
        ward_leave(x, w, LEAVE_STOP);
    } else if (w->has_next) {
        ward_give_up(x, w, NULL);
    }
    return 0;
}

static int order_move(void *self, const struct placement *p, struct err *e)
{
    struct slurm *x = self;
    int rc = x->setup.only_watches ? 1 : check_place(x, p, e);
    struct ward *w;

    if (rc != 0)
        return rc < 0 ? rc : 0;
    w = ward_find(x, p->job);
    if (!w || !(ward_is_under_way(w) || w->phase == WARD_RUNNING))
        return err_set(e, EBUSY, "job %d does not run: start it", p->job);
    if (w->phase == WARD_LEAVING && w->leave != LEAVE_MOVE)
        return err_set(e, EBUSY, "job %d is still being stopped", p->job);
    if (is_there(w, p))
        return p->limit_w == 0 ? 0 : err_set(e, ENODEV, "Slurm sets no power limits");
    rc = check_free(x, w, e);
    if (rc == 0)
        rc = set_next(x, w, p, e);
    if (rc < 0)
        return rc;
    w->is_move = true;
    if (w->phase == WARD_WANTED || w->phase == WARD_RUNNING)
        ward_leave(x, w, LEAVE_MOVE);
    return 0;
}

static int order_cancel(void *self, int job, struct err *e)
{
    struct slurm *x = self;
    struct ward *w = job < 0 ? NULL : ward_find(x, job);

    if (job < 0 || job >= x->setup.state->n_jobs)
        return err_set(e, ENODEV, "there is no job %d", job);
    if (!w || x->setup.only_watches || w->phase == WARD_ENDED)
        return 0;
    if (w->phase == WARD_ABSENT) {
        w->has_next = false;
        ward_set_phase(x, w, WARD_ENDED);
    } else {
        ward_leave(x, w, LEAVE_CANCEL);
    }
    return 0;
}

static bool job_is_busy(void *self, int job)
{
    const struct slurm *x = self;
    const struct ward *w = job < 0 || x->setup.only_watches ? NULL : ward_find(x, job);

    if (job < 0 || x->setup.only_watches)
        return false;
    return !w || ward_is_under_way(w) || w->phase == WARD_ABSENT || w->phase == WARD_ASKED ||
           (w->phase == WARD_RUNNING && !told_running(x, w)) || ward_is_paused(x, w);
}

static bool gpu_is_busy(void *self, int gpu)
{
    return nodes_gpu_is_busy(self, gpu);
}

static double gpu_wake_s(void *self, int gpu)
{
    return nodes_wake_s(self, gpu);
}

struct executor slurm_executor(struct slurm *x)
{
    return (struct executor){ .self = x,
                              .start = order_start,
                              .stop = order_stop,
                              .move = order_move,
                              .cancel = order_cancel,
                              .job_is_busy = job_is_busy,
                              .gpu_is_busy = gpu_is_busy,
                              .gpu_wake_s = gpu_wake_s,
                              .rules = slurm_rules };
}

struct runs slurm_runs(struct slurm *x)
{
    return tell_runs(x);
}

/* ---- jobs that come, and wishes about them ---- */

void slurm_job_is_new(struct slurm *x, int job)
{
    struct ward *w = ward_find(x, job);
    const bool is_new = !w;

    x->n_safe = job >= x->n_safe ? job + 1 : x->n_safe;
    w = ward_get(x, job);
    ward_set_active(x, w, true);
    if (is_new)
        w->doubt_s = (double)NAN;    // it was never asked for
    if (is_new && !ward_is_users(x, w) && !x->setup.only_watches) {
        ward_set_phase(x, w, WARD_ABSENT);
        slurm_pass_soon(x);
    }
}

static uint64_t refusal_key(const struct slurm_job *j)
{
    return (uint64_t)j->id * 0x9e3779b97f4a7c15u ^ (uint64_t)(j->task + 1) * 0xc2b2ae3d27d4eb4fu ^
           (uint64_t)j->submit_s;
}

void slurm_refuse(struct slurm *x, const struct slurm_job *j, const char *why)
{
    struct refusal *r;

    if (x->setup.only_watches || strncmp(j->admin, REFUSED, sizeof REFUSED - 1) == 0 ||
        map_u64_get(&x->refused, refusal_key(j)) >= 0)
        return;
    map_u64_set(&x->refused, refusal_key(j), 0);
    GROW(x->refusals, x->n_refusals, x->cap_refusals);
    r = &x->refusals[x->n_refusals++];
    *r = (struct refusal){ .why = strdup(why), .uid = j->uid, .needs_hold = j->held != HOLD_ADMIN };
    assert(r->why);    // out of memory: stop
    match_number(j, r->number, sizeof r->number);
    slurm_pass_soon(x);
}

int slurm_find_job(struct slurm *x, const struct slurm_job *j)
{
    return match_job(x, j);
}

void slurm_job_is_held(struct slurm *x, int job)
{
    struct ward *w = ward_find(x, job);

    if (!w || x->setup.only_watches)
        return;
    if (w->phase == WARD_WANTED || w->phase == WARD_RUNNING ||
        (w->phase == WARD_LEAVING && w->leave == LEAVE_MOVE))
        ward_leave(x, w, LEAVE_STOP);
    w->has_next = w->is_move = false;
    x->n_busy = -1;
}

void slurm_on_view(struct slurm *x, slurm_view_f *f, void *self)
{
    x->on_view = f;
    x->view_self = self;
}

const struct slurm_view *slurm_view(const struct slurm *x)
{
    return x->has_view ? &x->view : NULL;
}

/* Notices need nothing: what a crash loses is seen, and told, again. A hold of a user's that is in
 * the state may be undone through GOGH from now on.
 */
void slurm_is_safe(struct slurm *x)
{
    x->n_safe = x->setup.state->n_jobs;
    for (int i = 0; i < x->n_active && x->has_hold; i++) {
        struct ward *w = x->active[i];

        w->is_hold_told |= w->is_user_held && ward_is_held(x, w);
    }
    x->has_hold = false;
}

void slurm_set_grace(struct slurm *x, double grace_s)
{
    if (x)
        x->setup.grace_s = grace_s;
}

struct slurm_stats slurm_stats(const struct slurm *x)
{
    struct slurm_stats s = { .is_up = x->is_up,
                             .text = x->is_up ? NULL : x->why_down,
                             .view_s = x->has_view ? x->view.time_s : (double)NAN,
                             .n_calls = x->n_calls,
                             .n_late = x->n_late,
                             .n_drivers = link_n_drivers(x->link),
                             .n_views = x->n_views,
                             .n_resubmits = x->n_resubmits,
                             .n_strays = x->n_strays,
                             .version = *x->version ? x->version : NULL };

    for (int i = 0; i < x->n_active; i++)
        s.n_under_way += ward_is_under_way(x->active[i]);
    return s;
}

/* ---- life ---- */

static char *copy(const char *text)
{
    char *c = text ? strdup(text) : NULL;

    assert(c || !text);    // out of memory: stop
    return c;
}

static void on_up(void *self)
{
    look_begin(self);
}

static struct slurm *slurm_make(const struct slurm_setup *s)
{
    struct slurm *x = heap_array(1, sizeof *x);

    *x = (struct slurm){ .setup = *s,
                         .partition = copy(s->partition),
                         .site = copy(s->site),
                         .reports = copy(s->reports),
                         .min_job_age_s = MIN_JOB_AGE_S,
                         .boot_s = (double)NAN,
                         .n_busy = -1,
                         .gone_s = (double)NAN,
                         .stray_s = (double)-INFINITY,
                         .reborn_s = (double)-INFINITY,
                         .power_s = (double)-INFINITY,
                         .wake_s = (double)-INFINITY };
    if (x->setup.theta < 1)
        x->setup.theta = THETA;
    map_u64_init(&x->by_job);
    map_u64_init(&x->strays);
    map_u64_init(&x->refused);
    map_init(&x->by_number);
    arena_init(&x->scratch);
    for (int i = 0; i < 2; i++) {
        arena_init(&x->job_arena[i]);
        arena_init(&x->node_arena[i]);
    }
    loop_timer_init(&x->look, s->loop, "a look at Slurm", look_on_timer, x);
    loop_timer_init(&x->pass, s->loop, "orders for Slurm", slurm_pass, x);
    loop_timer_init(&x->news, s->loop, "notices of Slurm's runs", tell_on_news, x);
    return x;
}

static int by_time(const void *a, const void *b)
{
    const double p = *(const double *)a, q = *(const double *)b;

    return (p > q) - (p < q);
}

/* Since each job's start, or its submission where it waits, the longest time without any event of
 * the state: whoever was away for so long has left such a gap, also if he was back and away again
 * since.
 */
static void learn_absence(struct slurm *x)
{
    const struct state *st = x->setup.state;
    const size_t n = 2 * (size_t)st->n_jobs;
    double *times = heap_array(n + 1, sizeof *times), *gaps = heap_array(n + 1, sizeof *gaps);

    for (int job = 0; job < st->n_jobs; job++) {
        times[2 * job] = st->jobs[job]->changed_s;
        times[2 * job + 1] = fmax(st->jobs[job]->heard_s, st->jobs[job]->spec.submit_s);
    }
    times[n] = slurm_wall_s(x);
    qsort(times, n + 1, sizeof *times, by_time);
    for (size_t i = n; i-- > 0;)
        gaps[i] = fmax(gaps[i + 1], times[i + 1] - times[i]);
    for (int i = 0; i < x->n_wards; i++) {
        struct ward *w = x->wards[i];
        const struct job *j = st->jobs[w->job];
        const double since_s = j->state == JOB_RUNNING ? j->changed_s : j->spec.submit_s;
        size_t at = 0, end = n;

        while (at < end) {    // the first that is not before
            const size_t mid = (at + end) / 2;

            if (times[mid] < since_s)
                at = mid + 1;
            else
                end = mid;
        }
        w->was_before = true;
        w->away_s = gaps[at];
    }
    free(times);
    free(gaps);
}

int slurm_create_with(const struct slurm_setup *s, int (*open)(void *self), void *open_self,
                      struct slurm **out, struct err *e)
{
    struct link_setup link = { .loop = s->loop,
                               .driver = s->driver,
                               .commands = s->commands,
                               .conf = s->conf,
                               .rate = s->rate,
                               .pause_s = open ? 1e-6 : PAUSE_S,
                               .silence_s = SILENCE_S,
                               .on_up = on_up,
                               .on_said = look_said,
                               .open = open,
                               .open_self = open_self };
    struct slurm *x;

    *out = NULL;
    if (strlen(s->site) != 16)
        return err_set(e, EINVAL, "the store's mark '%s' is not 16 hex digits", s->site);
    if (!open && access(s->driver, X_OK) != 0)
        return err_set(e, errno, "%s: not a program that can be run: %s", s->driver,
                       strerror(errno));
    x = slurm_make(s);
    x->n_safe = s->state->n_jobs;
    for (int job = 0; job < s->state->n_jobs; job++) {
        const enum job_state st = s->state->jobs[job]->state;

        if (st != JOB_WAITING && st != JOB_HELD && st != JOB_RUNNING)
            continue;
        ward_set_active(x, ward_get(x, job), true);
    }
    learn_absence(x);
    link.self = x;
    x->link = link_create(&link);
    *out = x;
    return 0;
}

int slurm_create(const struct slurm_setup *s, struct slurm **out, struct err *e)
{
    return slurm_create_with(s, NULL, NULL, out, e);
}

void slurm_destroy(struct slurm *x)
{
    if (!x)
        return;
    link_destroy(x->link);
    loop_timer_clear(&x->pass);
    ask_release(x);
    tell_release(x);
    look_release(x);
    nodes_release(x);
    for (int i = 0; i < x->n_wards; i++)
        ward_free(x->wards[i]);
    free(x->wards);
    free(x->active);
    map_u64_release(&x->by_job);
    map_u64_release(&x->strays);
    map_u64_release(&x->refused);
    map_release(&x->by_number);
    arena_release(&x->scratch);
    free(x->partition);
    free(x->site);
    free(x->reports);
    free(x);
}
