#include "act/slurm/slurm.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "act/local/local.h"
#include "act/slurm/inner.h"
#include "act/slurm/newcomers.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/grow.h"
#include "catalog/cluster/state.h"

#define SILENCE_S 60.0         // a driver that owes an answer and says nothing hangs
#define PAUSE_S 0.1            // before one that died is replaced, at first
#define MIN_JOB_AGE_S 300.0    // Slurm's default

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

/* It runs nowhere, and Slurm never hears of it. */
static bool is_service(const struct slurm *x, int job)
{
    return x->setup.state->jobs[job]->spec.kind == JOB_SERVICE;
}

/* ---- orders ---- */

static int check_place(const struct slurm *x, const struct placement *p, struct err *e)
{
    if (order_check(x->setup.state, p, e) < 0)
        return -ENODEV;
    if (!x->is_up || !x->has_view)
        return err_set(e, EAGAIN, "Slurm does not answer%s%s", *x->why_down ? ": " : "",
                       x->why_down);
    return 0;
}

static bool is_there(const struct managed *m, const struct placement *p)
{
    if (m->next.n_gpus > 0)
        return gpu_set_is(&m->next, p->gpus, p->n_gpus);
    return (m->state == MANAGED_PINNED || m->state == MANAGED_RUNNING) &&
           gpu_set_is(&m->at, p->gpus, p->n_gpus);
}

/* A node that may have a copy of it, see start_anew. The GPU is not offered again for a while, and
 * not for equally long to all that are refused, so that each finds another.
 */
static int check_shunned(struct slurm *x, struct managed *m, const struct gpu_set *next,
                         struct err *e)
{
    for (int i = 0; i < next->n_gpus; i++) {
        const int node = x->setup.state->gpus[next->gpus[i]].node;

        for (int k = 0; k < m->shunned.n_gpus; k++) {
            if (x->setup.state->gpus[m->shunned.gpus[k]].node != node)
                continue;
            nodes_shut(x, next, 3 + (7 * m->job + 5 * m->n_shunned++) % 11);
            return err_set(e, EBUSY,
                           "Slurm forgot that job %d ran on node %s, which takes it for a "
                           "second copy; not there",
                           m->job, x->setup.state->nodes[node].name);
        }
    }
    return 0;
}

/* Whoever cannot be placed there is not planned for a while: the next plan would be the same. */
static int check_gpus(struct slurm *x, struct managed *m, const struct gpu_set *next, struct err *e)
{
    struct err own = { 0 };

    arena_reset(&x->scratch);
    if (place_gres(x, m, next, &own))
        return check_shunned(x, m, next, e);
    if (m->state == MANAGED_HELD)
        managed_pause(x, m, own.text);
    return err_set(e, ENODEV, "%s", own.text);
}

static int set_next(struct slurm *x, struct managed *m, const struct placement *p, struct err *e)
{
    struct gpu_set next = { 0 };
    int rc;

    gpu_set_copy(&next, p->gpus, p->n_gpus);
    rc = check_gpus(x, m, &next, e);
    if (rc < 0) {
        free(next.gpus);
        return rc;
    }
    gpu_set_take(&m->next, &next);
    m->wait_s = (double)NAN;
    m->due_s = managed_is_leaving(m) ? m->due_s : (double)INFINITY;
    x->n_busy = -1;
    look_soon(x);    // whether its number is still its own is seen first
    return 0;
}

static int order_start(void *self, const struct placement *p, struct err *e)
{
    struct slurm *x = self;
    struct managed *m;
    int rc = x->setup.only_watches ? 1 : check_place(x, p, e);

    if (rc != 0)
        return rc < 0 ? rc : 0;
    m = managed_find(x, p->job);
    if (!m)
        return err_set(e, EAGAIN, "job %d is not in Slurm yet", p->job);
    managed_set_active(x, m, true);
    if (is_there(m, p))
        return 0;
    if (managed_is_leaving(m))
        return err_set(e, EBUSY, "job %d is still being stopped", p->job);
    if (managed_has_ended(m))
        return err_set(e, EBUSY, "job %d has ended in Slurm, which is being told", p->job);
    if (m->next.n_gpus > 0 || m->state == MANAGED_PINNED || m->state == MANAGED_RUNNING)
        return err_set(e, EBUSY, "job %d runs elsewhere: move it", p->job);
    if (managed_is_paused(x, m))
        return err_set(e, EBUSY, "job %d pauses: %s", p->job, m->why ? m->why : "");
    if (m->state !=
        MANAGED_HELD)    // nobody knows yet whether Slurm takes it: no GPU waits for that
        return err_set(e, EAGAIN, "job %d is not in Slurm yet", p->job);
    return set_next(x, m, p, e);
}

/* It can run on, and nowhere else: Slurm does not put it back, or would give it a second device. */
static int check_free(struct slurm *x, const struct managed *m, struct err *e)
{
    const bool is_here = m->state == MANAGED_RUNNING;

    if (is_here && m->stuck_run == m->last.run)
        return err_set(e, EBUSY, "Slurm does not put job %d back into its queue; it stays", m->job);
    if (is_here && managed_is_users(x, m) && place_is_bound(x, m))
        return err_set(e, EBUSY,
                       "Slurm %s cannot give job %d another device than %s; it stays (23.02.6 can)",
                       x->version, m->job, m->gres);
    return 0;
}

static int order_stop(void *self, int job, struct err *e)
{
    struct slurm *x = self;
    struct managed *m = job < 0 ? NULL : managed_find(x, job);
    int rc;

    if (order_check_job(x->setup.state, job, e) < 0)
        return -ENODEV;
    if (!m || x->setup.only_watches)
        return 0;
    rc = check_free(x, m, e);
    if (rc < 0)
        return rc;
    if (managed_next(m->state, ON_STOP) != m->state) {
        keep_text(&m->why, NULL);
        managed_leave(x, m, ON_STOP);
    } else if (m->next.n_gpus > 0) {
        managed_give_up(x, m, NULL);
    }
    return 0;
}

static int order_move(void *self, const struct placement *p, struct err *e)
{
    struct slurm *x = self;
    int rc = x->setup.only_watches ? 1 : check_place(x, p, e);
    struct managed *m;

    if (rc != 0)
        return rc < 0 ? rc : 0;
    m = managed_find(x, p->job);
    if (!m || !(managed_is_under_way(m) || m->state == MANAGED_RUNNING))
        return err_set(e, EBUSY, "job %d does not run: start it", p->job);
    if (managed_is_leaving(m) && m->state != MANAGED_MOVING)
        return err_set(e, EBUSY, "job %d is still being stopped", p->job);
    if (is_there(m, p))
        return p->limit_w == 0 ? 0 : err_set(e, ENODEV, "Slurm sets no power limits");
    rc = check_free(x, m, e);
    if (rc == 0)
        rc = set_next(x, m, p, e);
    if (rc < 0)
        return rc;
    managed_leave(x, m, ON_MOVE);
    return 0;
}

static int order_cancel(void *self, int job, struct err *e)
{
    struct slurm *x = self;
    struct managed *m = job < 0 ? NULL : managed_find(x, job);

    if (order_check_job(x->setup.state, job, e) < 0)
        return -ENODEV;
    if (m)
        managed_leave(x, m, ON_CANCEL);
    return 0;
}

/* A replica that Slurm does not want does not pause: who asks for its start hears why not. */
static bool job_is_busy(void *self, int job)
{
    const struct slurm *x = self;
    const struct managed *m = managed_find(x, job);

    if (job < 0 || x->setup.only_watches || is_service(x, job))
        return false;
    if (m && managed_is_replica(x, m) && managed_is_paused(x, m) && !managed_is_under_way(m))
        return false;
    return !m || managed_is_under_way(m) || m->state == MANAGED_ABSENT ||
           m->state == MANAGED_SUBMITTED || m->state == MANAGED_PARKED ||
           (m->state == MANAGED_RUNNING && !told_running(x, m)) || managed_is_paused(x, m);
}

/* ---- jobs that come, and wishes about them ---- */

static void job_is_new(struct slurm *x, int job)
{
    struct managed *m = managed_find(x, job);
    const bool is_new = !m;

    x->n_safe = job >= x->n_safe ? job + 1 : x->n_safe;
    if (is_service(x, job))
        return;
    m = managed_get(x, job);
    managed_set_active(x, m, true);
    if (is_new)
        m->doubt_s = (double)NAN;    // it was never asked for
    if (is_new && !managed_is_users(x, m) && !x->setup.only_watches) {
        managed_update(x, m, ON_NEW);
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

    if (x->setup.only_watches || strncmp(j->admin, SLURM_REFUSED, sizeof SLURM_REFUSED - 2) == 0 ||
        map_u64_get(&x->refused, refusal_key(j)) >= 0)
        return;
    map_u64_set(&x->refused, refusal_key(j), 0);
    GROW(x->refusals, x->n_refusals, x->cap_refusals);
    r = &x->refusals[x->n_refusals++];
    *r = (struct refusal){ .why = heap_text(why),
                           .uid = j->uid,
                           .needs_hold = j->held != HOLD_ADMIN };
    slurm_number(j, r->number, sizeof r->number);
    slurm_pass_soon(x);
}

static void job_is_held(struct slurm *x, int job)
{
    struct managed *m = managed_find(x, job);

    if (!m || x->setup.only_watches)
        return;
    managed_leave(x, m, ON_STOP);
    gpu_set_clear(&m->next);
    x->n_busy = -1;
}

static void job_is(void *self, int job, enum job_change change)
{
    if (change == JOB_IS_NEW)
        job_is_new(self, job);
    else if (change == JOB_IS_HELD)
        job_is_held(self, job);
}

/* Notices need nothing: what a crash loses is seen, and told, again. A hold of a user's that is in
 * the state may be undone through GOGH from now on.
 */
static void committed(void *self)
{
    struct slurm *x = self;

    newcomers_committed(x->newcomers);
    x->n_safe = x->setup.state->n_jobs;
    for (int i = 0; i < x->n_active && x->has_hold; i++) {
        struct managed *m = x->active[i];

        if (m->hold == USER_HOLDS && managed_is_held(x, m))
            m->hold = USER_HOLD_KNOWN;
    }
    x->has_hold = false;
}

static void undone(void *self)
{
    struct slurm *x = self;

    newcomers_undone(x->newcomers);
}

static void set_grace(void *self, double grace_s)
{
    struct slurm *x = self;

    x->setup.grace_s = grace_s;
}

/* ---- how it is ---- */

static int facts(void *self, struct engine_fact *out)
{
    const struct slurm *x = self;
    int n_under_way = 0;

    for (int i = 0; i < x->n_active; i++)
        n_under_way += managed_is_under_way(x->active[i]);
    const struct engine_fact all[] = {
        { FACT_FLAG, "up", "gogh_slurm_up", "1 while Slurm answers.", x->is_up, NULL },
        { FACT_TEXT, "trouble", NULL, NULL, NAN, x->is_up ? NULL : x->why_down },
        { FACT_TEXT, "version", NULL, NULL, NAN, *x->version ? x->version : NULL },
        { FACT_TEXT, "partition", NULL, NULL, NAN, x->setup.partition },
        { FACT_TIME, "seen_s", NULL, NULL, x->has_view ? x->view.time_s : (double)NAN, NULL },
        { FACT_COUNT, "calls", "gogh_slurm_calls_total", "Calls of Slurm's commands.",
          (double)x->n_calls, NULL },
        { FACT_COUNT, "late", "gogh_slurm_late_total", "Calls that had to be killed.",
          (double)x->n_late, NULL },
        { FACT_COUNT, "drivers", "gogh_slurm_drivers_total", "Driver processes started.",
          (double)link_n_drivers(x->link), NULL },
        { FACT_COUNT, NULL, "gogh_slurm_views_total", "Complete looks at Slurm.",
          (double)x->n_views, NULL },
        { FACT_COUNT, "resubmits", "gogh_slurm_resubmits_total",
          "Jobs submitted again, since Slurm had lost them.", (double)x->n_resubmits, NULL },
        { FACT_COUNT, "strays", NULL, NULL, (double)x->n_strays, NULL },
        { FACT_COUNT, "foreign", NULL, NULL, newcomers_n_foreign(x->newcomers), NULL },
        { FACT_GAUGE, "under_way", "gogh_slurm_orders_under_way",
          "Orders that are not carried out yet.", n_under_way, NULL },
    };
    static_assert(sizeof all / sizeof *all <= ENGINE_FACTS_MAX, "there is room for all");

    memcpy(out, all, sizeof all);
    return (int)(sizeof all / sizeof *all);
}

/* ---- life ---- */

static struct slurm *slurm_make(const struct slurm_setup *s)
{
    struct slurm *x = heap_array(1, sizeof *x);

    assert(s->theta >= 1);
    *x = (struct slurm){ .setup = *s,
                         .min_job_age_s = MIN_JOB_AGE_S,
                         .boot_s = (double)NAN,
                         .n_busy = -1,
                         .gone_s = (double)NAN,
                         .stray_s = (double)-INFINITY,
                         .reborn_s = (double)-INFINITY,
                         .power_s = (double)-INFINITY,
                         .wake_s = (double)-INFINITY };
    x->last_request = &x->requests;
    arena_init(&x->scratch);
    arena_init(&x->names);
    for (int i = 0; i < 2; i++) {
        arena_init(&x->job_arena[i]);
        arena_init(&x->node_arena[i]);
    }
    loop_timer_init(&x->look, s->loop, "a look at Slurm", look_on_timer, x);
    loop_timer_init(&x->pass, s->loop, "orders for Slurm", slurm_pass, x);
    notices_init(&x->notices, s->loop, "notices of Slurm's runs");
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
    for (int i = 0; i < x->n_managed; i++) {
        struct managed *m = x->managed[i];
        const struct job *j = st->jobs[m->job];
        const double since_s = j->state == JOB_RUNNING ? j->changed_s : j->spec.submit_s;
        size_t at = 0, end = n;

        while (at < end) {    // the first that is not before
            const size_t mid = (at + end) / 2;

            if (times[mid] < since_s)
                at = mid + 1;
            else
                end = mid;
        }
        m->away_s = gaps[at];
    }
    free(times);
    free(gaps);
}

int slurm_create(const struct slurm_setup *s, struct slurm **out, struct err *e)
{
    struct link_setup link = { .loop = s->loop,
                               .driver = s->driver,
                               .commands = s->commands,
                               .conf = s->conf,
                               .rate = s->rate,
                               .pause_s = s->open ? 1e-6 : PAUSE_S,
                               .silence_s = SILENCE_S,
                               .on_up = look_begin,
                               .on_said = look_on_line,
                               .open = s->open,
                               .open_self = s->open_self };
    struct slurm *x;

    *out = NULL;
    if (strlen(s->site) != 16)
        return err_set(e, EINVAL, "the store's mark '%s' is not 16 hex digits", s->site);
    if (!s->open && access(s->driver, X_OK) != 0)
        return err_set(e, errno, "%s: not a program that can be run: %s", s->driver,
                       strerror(errno));
    x = slurm_make(s);
    x->newcomers = newcomers_create(s);
    x->n_safe = s->state->n_jobs;
    for (int job = 0; job < s->state->n_jobs; job++)
        if (!job_is_over(s->state->jobs[job]) && !is_service(x, job))
            managed_set_active(x, managed_get(x, job), true);
    learn_absence(x);
    link.self = x;
    x->link = link_create(&link);
    *out = x;
    return 0;
}

void slurm_destroy(struct slurm *x)
{
    if (!x)
        return;
    link_destroy(x->link);
    newcomers_destroy(x->newcomers);
    loop_timer_clear(&x->pass);
    ask_release(x);
    tell_release(x);
    look_release(x);
    nodes_release(x);
    for (int i = 0; i < x->n_managed; i++)
        managed_free(x->managed[i]);
    free(x->managed);
    free(x->active);
    map_u64_release(&x->by_job);
    map_u64_release(&x->strays);
    map_u64_release(&x->refused);
    map_release(&x->by_number);
    arena_release(&x->scratch);
    arena_release(&x->names);
    free(x);
}

void *slurm_owner(const struct slurm *x)
{
    return x->setup.owner;
}

struct executor slurm_executor(struct slurm *x)
{
    struct executor it = { .self = x,
                           .start = order_start,
                           .stop = order_stop,
                           .move = order_move,
                           .cancel = order_cancel,
                           .job_is_busy = job_is_busy,
                           .gpu_is_busy = nodes_gpu_is_busy,
                           .gpu_wake_s = nodes_wake_s,
                           .node_address = nodes_address,
                           .rules = slurm_rules,
                           .job_is = job_is,
                           .committed = committed,
                           .undone = undone,
                           .facts = facts,
                           .may_run_as = local_may_run_as,
                           .set_grace = set_grace,
                           .needs_even_gangs = true,
                           .node = -1 };

    tell_fill(&it);
    if (x->setup.only_watches)
        it.only_watches =
            "GOGH only watches this Slurm cluster (mode shadow); use Slurm's own commands";
    return it;
}
