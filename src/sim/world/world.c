#include "sim/world/inner.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/grow.h"
#include "catalog/cluster/cluster.h"
#include "sim/world/truth.h"

/* ---- power ---- */

static void set_watts(struct world *w, struct world_gpu *g, double watts)
{
    if (watts == g->watts)
        return;
    w->energy_j += w->watts * (w->now_s - w->watts_since_s);
    w->watts_since_s = w->now_s;
    w->watts += watts - g->watts;
    g->energy_j += g->watts * (w->now_s - g->since_s);
    g->since_s = w->now_s;
    g->watts = watts;
}

/* What a GPU with somebody on it draws, and how much slower all go, under the least of their
 * limits; without those of its residents whose bits are in 'without'. False: nobody steps there.
 */
static bool limited_on(const struct world *w, const struct world_gpu *g, unsigned without,
                       struct limited *out)
{
    struct truth_residents on = { 0 };
    int limit_w = 0;

    for (int i = 0; i < g->n_jobs; i++) {
        const struct world_job *j = &w->jobs[g->jobs[i]];

        if (j->phase != RUNNING || without & 1U << i)
            continue;
        if (j->limit_w > 0 && (limit_w == 0 || j->limit_w < limit_w))
            limit_w = j->limit_w;
        on.workload[on.n] = j->ask.workload;
        on.share[on.n++] = j->share;
    }
    if (on.n == 0)
        return false;
    *out = truth_drawn(w->truth, (enum power_model)w->settings->power_model, g->figures, g->type,
                       &on, limit_w);
    return true;
}

/* Mean draw of those that step there: replicas from resident 'i' on are busy or not, each for
 * itself; those before it are as 'without' has it.
 */
static double mean_watts(const struct world *w, const struct world_gpu *g, int i, unsigned without)
{
    struct limited now;

    while (i < g->n_jobs && !(is_replica(&w->jobs[g->jobs[i]]) && job_steps(&w->jobs[g->jobs[i]])))
        i++;
    if (i == g->n_jobs)
        return limited_on(w, g, without, &now) ? now.watts : g->figures->idle_w;
    const double busy = w->jobs[g->jobs[i]].busy;
    return busy * mean_watts(w, g, i + 1, without) +
           (1 - busy) * mean_watts(w, g, i + 1, without | 1U << i);
}

static void refresh_watts(struct world *w, struct world_gpu *g)
{
    set_watts(w, g, g->is_asleep ? g->figures->sleep_w : mean_watts(w, g, 0, 0));
}

void world_correct_watts(struct world *w, struct world_gpu *g, double since_s)
{
    const double more_j = (mean_watts(w, g, 0, 0) - g->watts) * (w->now_s - since_s);

    g->energy_j += more_j;
    w->energy_j += more_j;
    refresh_watts(w, g);
}

/* Somebody comes to an empty GPU (1) or the last one leaves it (-1). */
static void count_held(struct world *w, struct world_gpu *g, int change)
{
    w->held_s += w->n_held * (w->now_s - w->held_since_s);
    w->held_since_s = w->now_s;
    w->n_held += change;
    if (change < 0)
        g->held_s += w->now_s - g->held_since_s;
    g->held_since_s = w->now_s;
}

/* ---- telling ---- */

struct observation *world_tell(struct world *w, enum observation_kind kind, int job)
{
    const struct world_job *j = &w->jobs[job];
    struct observation *o;

    GROW(w->news, w->n_news, w->cap_news);
    o = &w->news[w->n_news++];
    *o = (struct observation){
        .kind = kind,
        .time_s = w->now_s,
        .job = job,
        .n_gpus = j->n_gpus,
        .limit_w = j->limit_w,
        .steps_done = j->done,
        .from_s = w->now_s,
        .watts = NAN,
        .node = w->n_told,    // until it is handed over: where its GPUs are listed
    };
    for (int i = 0; i < j->n_gpus; i++) {
        GROW(w->told_gpus, w->n_told, w->cap_told);
        w->told_gpus[w->n_told++] = j->gpus[i];
    }
    return o;
}

/* The window that ends now. Speed and watts are measured with noise; a server that serves all it
 * is asked has only counted.
 */
static void tell_window(struct world *w, int job)
{
    const struct world_job *j = &w->jobs[job];
    const struct world_gpu *g = &w->gpus[j->gpus[0]];
    const double duration_s = w->now_s - j->window_s;
    struct observation *o = world_tell(w, OBS_WINDOW, job);

    o->from_s = j->window_s;
    o->steps = j->speed * duration_s;
    if (w->settings->noise > 0 && j->speed == j->capacity)
        o->steps *= exp(w->settings->noise * rng_normal(&w->noise));
    o->watts = (world_gpu_now(w, j->gpus[0]).energy_j - j->window_j) / duration_s;
    if (w->settings->watts_noise > 0)
        o->watts *= exp(w->settings->watts_noise * rng_normal(&w->watts_noise));
    for (int i = 0; i < g->n_jobs; i++) {
        if (g->jobs[i] != job && w->jobs[g->jobs[i]].phase == RUNNING)
            o->neighbours[o->n_neighbours++] = g->jobs[i];
    }
}

/* ---- conditions ---- */

static void settle_job(struct world *w, struct world_job *j)
{
    const double dt = w->now_s - j->since_s, before = j->done;

    if (is_replica(j))
        return;
    j->done += j->speed * dt;
    if (!j->ask.is_inference)
        j->done = fmin(j->done, j->ask.steps);
    w->work_s += (j->done - before) / j->ask.reference_speed;
    if (j->speed >= j->ask.promise * (1 - 1e-9) && j->phase == RUNNING)
        j->kept_s += dt;
    j->since_s = w->now_s;
}

/* Note the jobs that step on these GPUs: their conditions are about to change. */
static void touch(struct world *w, const int *gpus, int n)
{
    for (int i = 0; i < n; i++) {
        const struct world_gpu *g = &w->gpus[gpus[i]];

        for (int k = 0; k < g->n_jobs; k++) {
            struct world_job *j = &w->jobs[g->jobs[k]];

            if (j->phase != RUNNING || j->mark == w->mark)
                continue;
            j->mark = w->mark;
            GROW(w->touched, w->n_touched, w->cap_touched);
            w->touched[w->n_touched++] = g->jobs[k];
        }
    }
}

void world_change_begin(struct world *w, const int *gpus, int n)
{
    const double least_s = fmin(w->settings->report_s, WINDOW_LEAST_S);

    replicas_play(w);
    w->mark++;
    w->n_touched = 0;
    touch(w, gpus, n);
    for (int i = 0; i < w->n_touched; i++) {
        struct world_job *j = &w->jobs[w->touched[i]];

        settle_job(w, j);
        if (w->now_s - j->window_s >= least_s && !is_replica(j))
            tell_window(w, w->touched[i]);
    }
}

/* The product of the slowdowns that job 'j' meets on one GPU. */
static double slowdown_on(const struct world *w, const struct world_job *j,
                          const struct world_gpu *g)
{
    double r = 1;

    for (int i = 0; i < g->n_jobs; i++) {
        const struct world_job *other = &w->jobs[g->jobs[i]];

        if (other != j && other->phase == RUNNING)
            r *= replica_slows(
                other, truth_slowdown(w->truth, j->ask.workload, g->type, other->ask.workload));
    }
    return r;
}

/* What comes next for a running job: its end or its next report. */
static void schedule_job(struct world *w, int job)
{
    struct world_job *j = &w->jobs[job];
    const double report_s = w->now_s + j->report_gap_s;
    double end_s = INFINITY;

    if (is_replica(j))
        return;
    if (j->ask.is_inference)
        end_s = fmax(j->first_s + j->ask.duration_s, w->now_s);
    else if (j->speed > 0)
        end_s = w->now_s + (j->ask.steps - j->done) / j->speed;
    j->stamp++;
    if (end_s <= report_s)
        heap_push(&w->heap, end_s, WORLD_FINISH, job, j->stamp);
    else
        heap_push(&w->heap, report_s, WORLD_REPORT, job, j->stamp);
}

static void open_window(struct world *w, struct world_job *j)
{
    j->window_s = w->now_s;
    j->window_j = world_gpu_now(w, j->gpus[0]).energy_j;
}

/* What it could do without a limit: that decides what its GPUs would draw. */
static void set_share(struct world *w, struct world_job *j)
{
    double r = 1;

    for (int i = 0; i < j->n_gpus; i++)
        r = fmin(r, slowdown_on(w, j, &w->gpus[j->gpus[i]]));
    j->capacity = j->base_speed * r;
    j->share = j->ask.is_inference ? fmin(j->ask.rate / j->base_speed, r) : r;
}

static void set_speed(struct world *w, struct world_job *j)
{
    double pace = 1;
    struct limited now;

    for (int i = 0; i < j->n_gpus; i++)
        if (limited_on(w, &w->gpus[j->gpus[i]], 0, &now))
            pace = fmin(pace, now.speed);
    if (is_replica(j)) {
        replica_set_figures(w, j, pace);
        return;
    }
    j->capacity *= pace;
    j->speed = j->ask.is_inference ? fmin(j->ask.rate, j->capacity) : j->capacity;
}

/* The GPUs' residents are now as they will be: new speeds, new watts, new windows. */
void world_change_end(struct world *w, const int *gpus, int n)
{
    int n_running = 0;

    touch(w, gpus, n);
    for (int i = 0; i < w->n_touched; i++)
        if (w->jobs[w->touched[i]].phase == RUNNING)
            w->touched[n_running++] = w->touched[i];
    w->n_touched = n_running;
    for (int i = 0; i < n_running; i++)
        set_share(w, &w->jobs[w->touched[i]]);
    for (int i = 0; i < n_running; i++)
        set_speed(w, &w->jobs[w->touched[i]]);
    for (int i = 0; i < n; i++)
        refresh_watts(w, &w->gpus[gpus[i]]);
    for (int i = 0; i < n_running; i++) {
        struct world_job *j = &w->jobs[w->touched[i]];

        for (int k = 0; k < j->n_gpus && j->n_gpus > 1; k++)
            refresh_watts(w, &w->gpus[j->gpus[k]]);
        open_window(w, j);
        j->report_gap_s = w->settings->report_s;
        schedule_job(w, w->touched[i]);
    }
}

/* ---- coming and going ---- */

/* An empty GPU falls asleep in a while. */
static void doze(struct world *w, int gpu)
{
    const uint32_t stamp = ++w->gpus[gpu].stamp;

    if (!w->is_always_on)
        heap_push(&w->heap, w->now_s + w->settings->sleep_after_s, WORLD_SLEEP, gpu, stamp);
}

static void gpu_leave(struct world *w, int gpu, int job)
{
    struct world_gpu *g = &w->gpus[gpu];
    int i = 0;

    while (g->jobs[i] != job)
        i++;
    memmove(&g->jobs[i], &g->jobs[i + 1], (size_t)(g->n_jobs - i - 1) * sizeof g->jobs[0]);
    g->n_jobs--;
    if (g->n_jobs > 0)
        return;
    count_held(w, g, -1);
    doze(w, gpu);
}

/* Take a job off its GPUs and let its neighbours breathe. */
static void leave(struct world *w, int job, enum phase next)
{
    struct world_job *j = &w->jobs[job];
    const bool did_step = j->phase == RUNNING;

    if (did_step)
        world_change_begin(w, j->gpus, j->n_gpus);
    settle_job(w, j);
    if (did_step && is_replica(j))
        replica_leave(w, job);
    j->phase = next;
    j->speed = j->capacity = 0;
    j->stamp++;
    for (int i = 0; i < j->n_gpus; i++)
        gpu_leave(w, j->gpus[i], job);
    if (did_step)
        world_change_end(w, j->gpus, j->n_gpus);
    w->counts.n_placed--;
}

static void gpu_join(struct world *w, int gpu, int job)
{
    struct world_gpu *g = &w->gpus[gpu];

    g->stamp++;
    if (g->is_asleep) {
        g->is_asleep = false;
        g->awake_s = w->now_s + w->settings->wake_s;
        refresh_watts(w, g);
    }
    if (g->n_jobs == 0)
        count_held(w, g, 1);
    g->jobs[g->n_jobs++] = job;
}

/* Put a job on GPUs; it steps from 'lost_s' and restart_s later, a replica when it has loaded. */
static void join(struct world *w, const struct placement *p, double lost_s)
{
    struct world_job *j = &w->jobs[p->job];
    double ready_s = w->now_s + lost_s;

    memmove(j->gpus, p->gpus, (size_t)p->n_gpus * sizeof *j->gpus);
    j->n_gpus = p->n_gpus;
    j->limit_w = p->limit_w;
    j->phase = STARTING;
    j->since_s = w->now_s;
    if (isnan(j->first_s))
        j->first_s = w->now_s;
    for (int i = 0; i < j->n_gpus; i++) {
        gpu_join(w, j->gpus[i], p->job);
        ready_s = fmax(ready_s, w->gpus[j->gpus[i]].awake_s);
    }
    j->stamp++;
    ready_s += is_replica(j) ? j->ask.load_s : w->settings->restart_s;
    heap_push(&w->heap, ready_s, WORLD_READY, p->job, j->stamp);
    if (is_replica(j))
        w->services[j->served_by].n_starts++;
    w->counts.n_placed++;
    w->counts.n_events++;
    world_tell(w, OBS_STARTED, p->job);
}

/* ---- events ---- */

/* Does it run out of memory on this GPU? Beside whom, or alone (-1), goes to '*with'. */
static bool is_misfit(const struct world *w, const struct world_job *j, const struct world_gpu *g,
                      int *with)
{
    const struct truth *t = w->truth;

    *with = -1;
    if (truth_speed(t, j->ask.workload, g->type) <= 0)
        return true;
    for (int i = 0; i < g->n_jobs; i++) {
        const struct world_job *other = &w->jobs[g->jobs[i]];

        *with = g->jobs[i];
        if (other != j && other->phase == RUNNING &&
            (truth_slowdown(t, j->ask.workload, g->type, other->ask.workload) <= 0 ||
             truth_slowdown(t, other->ask.workload, g->type, j->ask.workload) <= 0))
            return true;
    }
    return false;
}

/* Speed of the whole gang with nobody beside it: that of its slowest type, and of a gang
 * over several nodes where it is one.
 */
static double gang_speed(const struct world *w, const struct world_job *j)
{
    double least = INFINITY;
    int is_spread = 0;

    for (int i = 1; i < j->n_gpus; i++)
        is_spread |= w->gpus[j->gpus[i]].node != w->gpus[j->gpus[0]].node;
    for (int i = 0; i < j->n_gpus; i++) {
        const int type = w->gpus[j->gpus[i]].type;

        if (i == 0 || type != w->gpus[j->gpus[i - 1]].type)
            least = fmin(least,
                         truth_gang_speed(w->truth, j->ask.workload, type, j->n_gpus, is_spread));
    }
    return least;
}

static void on_ready(struct world *w, int job)
{
    struct world_job *j = &w->jobs[job];
    bool is_choking = false;

    for (int i = 0; i < j->n_gpus && !is_choking; i++)
        is_choking = is_misfit(w, j, &w->gpus[j->gpus[i]], &j->choked_by);
    if (is_choking) {
        j->phase = CHOKING;
        j->stamp++;
        heap_push(&w->heap, w->now_s + UNFIT_S, WORLD_UNFIT, job, j->stamp);
        return;
    }
    world_change_begin(w, j->gpus, j->n_gpus);
    settle_job(w, j);
    j->phase = RUNNING;
    j->base_speed = gang_speed(w, j);
    if (is_replica(j))
        replica_ready(w, job);
    world_change_end(w, j->gpus, j->n_gpus);
}

static bool is_placed(const struct world_job *j)
{
    return j->phase == STARTING || j->phase == CHOKING || j->phase == RUNNING;
}

void world_end_job(struct world *w, int job, bool has_failed)
{
    struct world_job *j = &w->jobs[job];

    if (is_placed(j))
        leave(w, job, ENDED);
    j->phase = ENDED;
    j->has_failed = has_failed;
    j->end_s = w->now_s;
    w->counts.n_ended++;
}

static void on_unfit(struct world *w, int job)
{
    struct world_job *j = &w->jobs[job];
    struct observation *o;

    if (++j->n_unfit >= UNFIT_MAX) {
        world_end_job(w, job, true);
        world_tell(w, OBS_FAILED, job)->reason = "out of memory again and again";
        return;
    }
    o = world_tell(w, OBS_UNFIT, job);
    if (j->choked_by >= 0)    // whether or not it is still there
        o->neighbours[o->n_neighbours++] = j->choked_by;
    leave(w, job, ABSENT);
}

static void on_report(struct world *w, int job)
{
    struct world_job *j = &w->jobs[job];

    replicas_play(w);
    settle_job(w, j);
    tell_window(w, job);
    open_window(w, j);
    j->report_gap_s *= 2;    // long jobs report ever more rarely
    schedule_job(w, job);
}

static void on_finish(struct world *w, int job)
{
    struct world_job *j = &w->jobs[job];

    settle_job(w, j);
    if (!j->ask.is_inference) {    // the last rounding error
        w->work_s += (j->ask.steps - j->done) / j->ask.reference_speed;
        j->done = j->ask.steps;
    }
    world_end_job(w, job, false);
    world_tell(w, OBS_FINISHED, job);
}

static void on_sleep(struct world *w, int gpu)
{
    w->gpus[gpu].is_asleep = true;
    refresh_watts(w, &w->gpus[gpu]);
}

static void happen(struct world *w, const struct heap_item *i)
{
    static void (*const on[])(struct world * w, int index) = {
        [WORLD_READY] = on_ready,   [WORLD_UNFIT] = on_unfit, [WORLD_REPORT] = on_report,
        [WORLD_FINISH] = on_finish, [WORLD_SLEEP] = on_sleep, [WORLD_SERVED] = on_served,
        [WORLD_DRAIN] = on_drain,
    };

    w->counts.n_events++;
    on[i->kind](w, i->index);
}

static bool is_stale(const struct world *w, const struct heap_item *i)
{
    if (i->kind == WORLD_SERVED)
        return false;
    if (i->kind == WORLD_SLEEP)
        return w->gpus[i->index].stamp != i->stamp;
    return w->jobs[i->index].stamp != i->stamp;
}

double world_next_s(struct world *w)
{
    const struct heap_item *top = heap_top(&w->heap);

    while (top != NULL && is_stale(w, top)) {
        heap_pop(&w->heap);
        top = heap_top(&w->heap);
    }
    return top != NULL ? top->at_s : (double)INFINITY;
}

void world_advance(struct world *w, double t_s)
{
    const struct heap_item *top;

    assert(t_s >= w->now_s);
    while ((top = heap_top(&w->heap)) != NULL && top->at_s <= t_s) {
        const struct heap_item item = heap_pop(&w->heap);

        if (is_stale(w, &item))
            continue;
        w->now_s = item.at_s;
        happen(w, &item);
    }
    w->now_s = t_s;
}

/* ---- orders ---- */

static int check_order(const struct world *w, const struct placement *p, struct err *e)
{
    const struct world_job *j;

    if (p->job < 0 || p->job >= w->counts.n_jobs)
        return err_set(e, ENODEV, "there is no job %d", p->job);
    j = &w->jobs[p->job];
    if (j->phase == ENDED)
        return err_set(e, EBUSY, "job %d has ended", p->job);
    if (j->is_draining)
        return err_set(e, EBUSY, "job %d is about to end", p->job);
    if (j->is_service)
        return err_set(e, ENODEV, "job %d is a service: start its replicas", p->job);
    if (p->n_gpus < 1 || p->n_gpus > j->ask.max_gpus)
        return err_set(e, ENODEV, "job %d cannot have %d GPUs", p->job, p->n_gpus);
    for (int i = 0; i < p->n_gpus; i++) {
        const struct world_gpu *g;
        int others = 0;

        if (p->gpus[i] < 0 || p->gpus[i] >= w->n_gpus)
            return err_set(e, ENODEV, "there is no GPU %d", p->gpus[i]);
        g = &w->gpus[p->gpus[i]];
        for (int k = 0; k < g->n_jobs; k++)
            others += g->jobs[k] != p->job;
        if (others >= THETA_MAX)
            return err_set(e, EBUSY, "GPU %d is full", p->gpus[i]);
    }
    return 0;
}

/* The same place under another power limit: conditions change, no time is lost. */
static void relimit(struct world *w, int job, int limit_w)
{
    struct world_job *j = &w->jobs[job];

    if (j->limit_w == limit_w)
        return;
    world_change_begin(w, j->gpus, j->n_gpus);
    j->limit_w = limit_w;
    world_change_end(w, j->gpus, j->n_gpus);
    world_tell(w, OBS_STARTED, job);
}

/* 1: nothing is left to do, for it is there already; 0: it must start, or move. */
static int begin_order(struct world *w, const struct placement *p, struct err *e)
{
    int rc = check_order(w, p, e);

    if (rc < 0)
        return rc;
    const struct world_job *j = &w->jobs[p->job];
    if (!is_placed(j) || !gpus_same(j->gpus, j->n_gpus, p->gpus, p->n_gpus))
        return 0;
    relimit(w, p->job, p->limit_w);
    return 1;
}

static int order_start(void *self, const struct placement *p, struct err *e)
{
    struct world *w = self;
    int rc = begin_order(w, p, e);

    if (rc != 0)
        return rc < 0 ? rc : 0;
    if (is_placed(&w->jobs[p->job]))
        return err_set(e, EBUSY, "job %d runs elsewhere: move it", p->job);
    const struct world_job *j = &w->jobs[p->job];
    join(w, p, j->done > 0 && !is_replica(j) ? w->settings->move_s : 0);
    return 0;
}

static int order_stop(void *self, int job, struct err *e)
{
    struct world *w = self;

    if (job < 0 || job >= w->counts.n_jobs)
        return err_set(e, ENODEV, "there is no job %d", job);
    if (!is_placed(&w->jobs[job]))
        return 0;
    leave(w, job, ABSENT);
    world_tell(w, OBS_STOPPED, job);
    w->counts.n_events++;
    return 0;
}

static int order_move(void *self, const struct placement *p, struct err *e)
{
    struct world *w = self;
    int rc = begin_order(w, p, e);

    if (rc != 0)
        return rc < 0 ? rc : 0;
    if (!is_placed(&w->jobs[p->job]))
        return err_set(e, EBUSY, "job %d does not run: start it", p->job);
    leave(w, p->job, ABSENT);
    join(w, p, is_replica(&w->jobs[p->job]) ? 0 : w->settings->move_s);
    return 0;
}

/* Whoever asked knows: nothing is told. */
static int order_cancel(void *self, int job, struct err *e)
{
    struct world *w = self;

    if (job < 0 || job >= w->counts.n_jobs)
        return err_set(e, ENODEV, "there is no job %d", job);
    const struct world_job *j = &w->jobs[job];
    if (j->phase == ENDED || j->is_draining)
        return 0;
    if (is_replica(j) && j->phase == RUNNING)
        replica_drain(w, job);
    else if (j->is_service)
        world_end_service(w, job);
    else
        world_end_job(w, job, !is_replica(j));
    w->counts.n_events++;
    return 0;
}

/* Only replicas that drain take time to go. */
static bool job_is_busy(void *self, int job)
{
    const struct world *w = self;

    return job >= 0 && job < w->counts.n_jobs && w->jobs[job].is_draining;
}

static bool gpu_is_busy(void *self, int gpu)
{
    const struct world *w = self;
    bool is_busy = false;

    for (int i = 0; i < w->gpus[gpu].n_jobs; i++)
        is_busy |= w->jobs[w->gpus[gpu].jobs[i]].is_draining;
    return is_busy;
}

struct executor world_executor(struct world *w)
{
    return (struct executor){
        .self = w,
        .start = order_start,
        .stop = order_stop,
        .move = order_move,
        .cancel = order_cancel,
        .job_is_busy = job_is_busy,
        .gpu_is_busy = gpu_is_busy,
    };
}

static int next_news(void *self, struct observation *out)
{
    struct world *w = self;

    if (w->next_news == w->n_news) {
        w->n_news = w->next_news = w->n_told = 0;
        w->n_told_counts = w->n_told_served = w->next_told = 0;
        return 0;
    }
    *out = w->news[w->next_news];
    out->gpus = &w->told_gpus[out->node];
    if (out->kind == OBS_SERVED) {
        struct told *t = &w->told[w->next_told];

        t->served.counts = w->told_counts + t->counts_at;
        out->served = &t->served;
    }
    out->node = -1;
    return 1;
}

static void news_done(void *self)
{
    struct world *w = self;

    assert(w->next_news < w->n_news);
    w->next_told += w->news[w->next_news++].kind == OBS_SERVED;
}

struct sensor world_sensor(struct world *w)
{
    return (struct sensor){ .self = w, .next = next_news, .done = news_done };
}

bool world_has_news(const struct world *w)
{
    return w->next_news < w->n_news;
}

/* ---- making ---- */

struct world *world_create(const struct world_setup *s)
{
    struct world *w = heap_array(1, sizeof *w);

    w->truth = s->truth;
    w->settings = s->settings;
    w->is_always_on = s->is_always_on;
    w->n_gpus = s->n_gpus;
    w->gpus = heap_array((size_t)s->n_gpus, sizeof *w->gpus);
    arena_init(&w->arena);
    rng_init(&w->noise, s->seed, "noise");
    rng_init(&w->watts_noise, s->seed, "watts noise");
    for (int i = 0; i < s->n_gpus; i++) {
        struct world_gpu *g = &w->gpus[i];

        *g = (struct world_gpu){
            .figures = s->figures[i],
            .type = s->types[i],
            .node = s->nodes[i],
        };
        refresh_watts(w, g);
        doze(w, i);
    }
    return w;
}

void world_destroy(struct world *w)
{
    if (w == NULL)
        return;
    free(w->gpus);
    free(w->jobs);
    free(w->news);
    free(w->told_gpus);
    free(w->touched);
    replicas_release(w);
    heap_release(&w->heap);
    arena_release(&w->arena);
    free(w);
}

int world_submit(struct world *w, const struct world_job_spec *ask)
{
    struct world_job *j;

    GROW(w->jobs, w->counts.n_jobs, w->cap_jobs);
    j = &w->jobs[w->counts.n_jobs];
    *j = (struct world_job){
        .ask = *ask,
        .gpus = ARENA_ARRAY(&w->arena, int, (size_t)ask->max_gpus),
        .submit_s = w->now_s,
        .since_s = w->now_s,
        .first_s = NAN,
        .end_s = NAN,
        .served_by = ask->is_replica ? w->jobs[ask->service].served_by : -1,
    };
    if (ask->is_replica) {
        assert(j->served_by >= 0 && w->jobs[ask->service].is_service && ask->max_gpus == 1);
        j->ask.steps = INFINITY;
        j->ask.reference_speed = 1;
    }
    w->counts.n_events++;
    return w->counts.n_jobs++;
}
