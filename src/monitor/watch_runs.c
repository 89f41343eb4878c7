#include "monitor/watch_inner.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "monitor/energy.h"
#include "monitor/meter.h"
#include "monitor/monitor.h"

struct watched_run *watched_find(const struct watch *w, int job)
{
    return job >= 0 && job < w->n_by_job ? w->by_job[job] : NULL;
}

void watched_free(struct watched_run *r)
{
    free(r->gpus);
    free(r->replica);
    free(r);
}

/* ---- residents ---- */

/* Whoever is on a GPU runs. */
static struct watched_run *resident_run(const struct watch *w, int job)
{
    struct watched_run *r = watched_find(w, job);

    assert(r);
    return r;
}

static struct gpu_residents *residents_at(struct watch *w, int gpu)
{
    assert(gpu >= 0 && gpu < w->setup.state->n_gpus);
    while (w->n_residents <= gpu) {
        GROW(w->residents, w->n_residents, w->cap_residents);
        w->residents[w->n_residents++] = (struct gpu_residents){ 0 };
    }
    return &w->residents[gpu];
}

static void residents_drop(struct gpu_residents *s, int job)
{
    for (int i = 0; i < s->n; i++) {
        if (s->jobs[i] == job) {
            s->jobs[i] = s->jobs[--s->n];
            return;
        }
    }
}

/* How much each does there, as a part of what it would do alone; equal parts where that is unknown
 * of anybody.
 */
static void residents_weights(const struct watch *w, int gpu, struct energy_share *out)
{
    const struct watch_setup *set = &w->setup;
    const struct gpu_residents *s = &w->residents[gpu];
    const double now_s = clock_stopwatch_s();
    bool is_known = s->n > 1 && set->alone_speed;

    for (int i = 0; i < s->n; i++) {
        out[i] = (struct energy_share){ .job = s->jobs[i], .weight = 1 };
        if (!is_known)
            continue;
        out[i].weight = window_speed(&resident_run(w, s->jobs[i])->window, now_s) /
                        set->alone_speed(set->model_self, s->jobs[i], gpu);
        is_known = out[i].weight > 0 && isfinite(out[i].weight);
    }
    for (int i = 0; i < s->n && !is_known; i++)
        out[i].weight = 1;
}

void residents_share(struct watch *w, int gpu)
{
    const int n = residents_at(w, gpu)->n;
    struct energy_share who[GPU_JOBS_MAX] = { 0 };

    if (!w->setup.energy)
        return;
    residents_weights(w, gpu, who);
    energy_share(w->setup.energy, gpu, watch_now_s(w), who, n);
}

double watched_watts(const struct watch *w, const struct watched_run *r)
{
    double watts = 0;

    for (int i = 0; i < r->n_gpus; i++) {
        const int gpu = r->gpus[i], n = w->residents[gpu].n;
        struct energy_share who[GPU_JOBS_MAX] = { 0 };
        double drawn_w = meter_w(w->meter, gpu), all = 0, own = 0;
        double idle_w = fmin(drawn_w, meter_idle_w(w->meter, gpu));

        residents_weights(w, gpu, who);
        for (int k = 0; k < n; k++) {
            all += who[k].weight;
            own += who[k].job == r->job ? who[k].weight : 0;
        }
        watts += idle_w / n + (drawn_w - idle_w) * (own / all);
    }
    return watts;
}

/* ---- neighbours ---- */

/* Of a gang: those on any of its GPUs, since the slowest sets the pace. */
void watched_neighbours(const struct watch *w, const struct watched_run *r, struct observation *o)
{
    o->n_neighbours = 0;
    for (int i = 0; i < r->n_gpus; i++) {
        const struct gpu_residents *s = &w->residents[r->gpus[i]];

        for (int k = 0; k < s->n && o->n_neighbours < OBS_NEIGHBOURS_MAX; k++) {
            const int job = s->jobs[k];

            if (job != r->job && !gpus_have(o->neighbours, o->n_neighbours, job))
                o->neighbours[o->n_neighbours++] = job;
        }
    }
}

/* ---- telling ---- */

void watched_note(const struct watch *w, struct watched_run *r, double at_s)
{
    r->from_j = meter_read_j(w->meter, r->gpus[0], at_s);
    r->from_use = meter_use(w->meter, r->gpus[0]);
}

/* How busy its GPU was since the window began, as a mean of readings. */
static void window_use(const struct watch *w, const struct watched_run *r, struct observation *out)
{
    const struct meter_use now = meter_use(w->meter, r->gpus[0]), *was = &r->from_use;
    const int n = now.n - was->n;

    out->n_uses = isnan(out->watts) ? 0 : n;    // where the one is worth nothing, so is the other
    if (out->n_uses > 0)
        out->use =
            (struct device_use){ (now.sum.gpu - was->sum.gpu) / n, (now.sum.mem - was->sum.mem) / n,
                                 (now.sum.mem_bytes - was->sum.mem_bytes) / n };
}

/* Pauses draw less than work: with many of them in it, the mean is of neither. */
static double window_watts(const struct watch *w, const struct watched_run *r,
                           const struct window_result *t)
{
    const int gpu = r->gpus[0];
    const double length_s = t->to_s - t->from_s;

    if (meter_unread_s(w->meter, gpu) > t->from_s || t->outliers_s > 0.1 * length_s)
        return NAN;
    double watts = (meter_read_j(w->meter, gpu, t->to_s) - r->from_j) / length_s;
    return watts > 0 ? watts : (double)NAN;
}

static void tell(struct watch *w, struct watched_run *r, struct observation *o)
{
    o->kind = OBS_WINDOW;
    o->job = r->job;
    o->n_gpus = r->n_gpus;
    o->limit_w = r->limit_w;
    watched_neighbours(w, r, o);
    struct queued *n = watch_put(w, o);
    n->gpus = heap_array((size_t)r->n_gpus, sizeof *n->gpus);
    memcpy(n->gpus, r->gpus, (size_t)r->n_gpus * sizeof *n->gpus);
    n->seen.gpus = n->gpus;
    r->told_s = clock_stopwatch_s();
    r->told_steps = o->steps_done;
}

void watched_tell_progress(struct watch *w, struct watched_run *r)
{
    const double time_s = watch_wall_s(w, r->window.last_s);

    tell(w, r,
         &(struct observation){ .time_s = time_s,
                                .from_s = time_s,
                                .steps_done = r->window.last_steps,
                                .watts = NAN,
                                .noise = NAN });
}

static void tell_measured(struct watch *w, struct watched_run *r, const struct window_result *t)
{
    const double time_s = watch_wall_s(w, t->to_s);

    struct observation o = { .time_s = time_s,
                             .from_s = time_s - t->length_s,
                             .steps_done = r->window.edge_steps,
                             .steps = t->steps,
                             .watts = window_watts(w, r, t),
                             .noise = t->noise };

    w->stats.n_windows++;
    window_use(w, r, &o);
    tell(w, r, &o);
}

static void go_on(struct watch *w, struct watched_run *r)
{
    window_go_on(&r->window);
    if (!isnan(r->window.from_s))
        watched_note(w, r, r->window.from_s);
}

bool watched_tell(struct watch *w, struct watched_run *r, bool must_end)
{
    struct window_result t;

    window_tell(&r->window, MONITOR_WINDOW_MIN_S, &t);
    if (t.verdict == WINDOW_SHORT && !must_end && r->window.n_parts < WINDOW_PARTS_MAX)
        return false;
    w->stats.n_outliers += (uint64_t)t.n_outliers;
    if (t.verdict == WINDOW_STEADY)
        tell_measured(w, r, &t);
    else if (t.verdict == WINDOW_UNSTABLE)
        w->stats.n_unstable++;
    go_on(w, r);
    return true;
}

/* ---- changes ---- */

static void end_window(struct watch *w, struct watched_run *r)
{
    watched_tell(w, r, true);
    window_change(&r->window, clock_stopwatch_s(), w->setup.warmup_s);
}

void residents_disturb(struct watch *w, int gpu)
{
    const struct gpu_residents *s = residents_at(w, gpu);

    for (int k = 0; k < s->n; k++) {
        struct watched_run *r = resident_run(w, s->jobs[k]);

        if (!isnan(r->window.from_s))
            end_window(w, r);
        else
            window_delay(&r->window, clock_stopwatch_s(), w->setup.warmup_s);
    }
}

/* Whoever is on one of these GPUs lives under other conditions from now on. */
static void end_windows(struct watch *w, int n_gpus, const int *gpus)
{
    for (int i = 0; i < n_gpus; i++) {
        const struct gpu_residents *s = residents_at(w, gpus[i]);

        for (int k = 0; k < s->n; k++)
            end_window(w, resident_run(w, s->jobs[k]));
    }
}

static void leave_gpus(struct watch *w, struct watched_run *r)
{
    end_windows(w, r->n_gpus, r->gpus);
    for (int i = 0; i < r->n_gpus; i++)
        residents_drop(residents_at(w, r->gpus[i]), r->job);
}

static void take_gpus(struct watch *w, struct watched_run *r, int n_gpus, const int *gpus)
{
    end_windows(w, n_gpus, gpus);
    r->n_gpus = n_gpus;
    r->gpus = heap_array((size_t)n_gpus, sizeof *gpus);
    for (int i = 0; i < n_gpus; i++) {
        struct gpu_residents *s = residents_at(w, gpus[i]);

        assert(s->n < GPU_JOBS_MAX);
        s->jobs[s->n++] = r->job;
        r->gpus[i] = gpus[i];
    }
}

static struct watched_run *run_add(struct watch *w, int job)
{
    struct watched_run *r = heap_array(1, sizeof *r);

    r->job = job;
    r->n = -1;
    while (w->n_by_job <= job) {
        GROW(w->by_job, w->n_by_job, w->cap_by_job);
        w->by_job[w->n_by_job++] = NULL;
    }
    w->by_job[job] = r;
    GROW(w->runs, w->n_runs, w->cap_runs);
    r->place = w->n_runs;
    w->runs[w->n_runs++] = r;
    return r;
}

/* A new run of it: what an older one said is over. */
static void run_begin(struct watch *w, struct watched_run *r, const struct run_info *found)
{
    r->n = found->run;
    r->secret[0] = '\0';
    if (found->secret && strlen(found->secret) == REPORT_SECRET_BYTES)
        memcpy(r->secret, found->secret, sizeof r->secret);
    served_forget(w, r);
    r->has_reported = r->is_unfit = false;
    r->heard_s = NAN;
    r->told_s = clock_stopwatch_s();
    r->steps = r->told_steps = w->setup.state->jobs[r->job]->steps_done;
    window_begin(&r->window, r->told_s, w->setup.warmup_s, w->setup.report_s);
}

void watched_enter(struct watch *w, int job, int n_gpus, const int *gpus, int limit_w)
{
    struct run_info found = { .run = -1 };
    struct watched_run *r = watched_find(w, job);

    if (r)
        leave_gpus(w, r);
    else
        r = run_add(w, job);
    const bool is_first = !r->gpus;
    const int n_before = r->n_gpus;
    int *before = r->gpus;
    executor_find(w->setup.executor, job, &found);
    take_gpus(w, r, n_gpus, gpus);
    r->limit_w = limit_w;
    if (is_first || found.run != r->n)
        run_begin(w, r, &found);
    for (int i = 0; before && i < n_before; i++)
        residents_share(w, before[i]);
    for (int i = 0; i < n_gpus; i++)
        residents_share(w, gpus[i]);
    free(before);
}

void watched_leave(struct watch *w, struct watched_run *r)
{
    leave_gpus(w, r);
    served_forget(w, r);
    for (int i = 0; i < r->n_gpus; i++)
        residents_share(w, r->gpus[i]);
    w->by_job[r->job] = NULL;
    w->runs[r->place] = w->runs[--w->n_runs];
    w->runs[r->place]->place = r->place;
    watched_free(r);
}
