/* replicas.c - services on GPUs of the world: what requests do to conditions and joules, and back.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "sim/world/inner.h"
#include "sim/world/truth.h"

/* Neighbours' conditions go by how busy a replica was in the last minutes, and change when that
 * has: not with every request.
 */
#define FELT_S 300.0
#define FELT_STEP 0.125

/* ---- playing ---- */

/* The first replica there that serves looks after its GPU. */
static bool is_first_there(const struct world *w, const struct world_gpu *g, int job)
{
    int i = 0;

    while (!is_replica(&w->jobs[g->jobs[i]]) || !job_steps(&w->jobs[g->jobs[i]]))
        i++;
    return g->jobs[i] == job;
}

/* How busy each replica was since services were last played. */
static void see_busy(struct world *w, double span_s)
{
    const double weight = fmin(span_s / FELT_S, 1);

    for (int i = 0; i < w->n_services; i++) {
        for (int k = 0; k < w->services[i].n_replicas; k++) {
            const struct service_replica *r = &w->services[i].replicas[k];
            const struct server_sums sums = any_server_sums(&r->server);
            struct world_job *j = &w->jobs[r->job];

            j->busy = fmin((sums.busy_s - j->busy_seen) / span_s, 1);
            j->busy_seen = sums.busy_s;
            j->felt_now += weight * (j->busy - j->felt_now);
            j->done = sums.n_served + j->done_before;
        }
    }
}

void replicas_play(struct world *w)
{
    const double since_s = w->served_s;

    if (w->n_services == 0 || since_s == w->now_s)
        return;
    w->served_s = w->now_s;
    for (int i = 0; i < w->n_services; i++)
        requests_run(&w->services[i], w->now_s);
    see_busy(w, w->now_s - since_s);
    for (int i = 0; i < w->n_services; i++) {
        for (int k = 0; k < w->services[i].n_replicas; k++) {
            const int job = w->services[i].replicas[k].job;
            struct world_gpu *g = &w->gpus[w->jobs[job].gpus[0]];

            if (is_first_there(w, g, job))
                world_correct_watts(w, g, since_s);
        }
    }
}

/* ---- conditions ---- */

double replica_slows(const struct world_job *j, double r)
{
    return is_replica(j) ? 1 - j->felt * (1 - r) : r;
}

static struct batch_time figures_of(const struct world *w, const struct world_job *j, double pace)
{
    const struct world_gpu *g = &w->gpus[j->gpus[0]];
    struct batch_time s = truth_serving(w->truth, j->ask.workload, g->type);

    for (int i = 0; i < g->n_jobs; i++) {
        const struct world_job *other = &w->jobs[g->jobs[i]];

        if (other != j && job_steps(other))
            serving_beside(w->truth, j->ask.workload, g->type, other->ask.workload,
                           is_replica(other) ? other->felt : 1, !is_replica(other), &s);
    }
    s.a_s /= pace;
    s.c_s /= pace;
    return s;
}

void replica_set_figures(struct world *w, struct world_job *j, double pace)
{
    struct service_replica *r = requests_find(&w->services[j->served_by], (int)(j - w->jobs));
    const struct batch_time s = figures_of(w, j, pace);

    assert(r != NULL);
    requests_set_figures(r, &s);
}

/* Are neighbours to feel that it has become more or less busy? */
static bool is_felt_anew(const struct world *w, const struct world_job *j)
{
    return w->gpus[j->gpus[0]].n_jobs > 1 && fabs(j->felt_now - j->felt) > FELT_STEP;
}

static void feel(struct world *w)
{
    for (int i = 0; i < w->n_services; i++) {
        for (int k = 0; k < w->services[i].n_replicas; k++) {
            struct world_job *j = &w->jobs[w->services[i].replicas[k].job];

            if (!is_felt_anew(w, j))
                continue;
            world_change_begin(w, j->gpus, 1);
            j->felt = j->felt_now;
            world_change_end(w, j->gpus, 1);
        }
    }
}

/* ---- telling ---- */

static void tell_served(struct world *w, const struct world_service *s, struct service_replica *r)
{
    struct told *t;

    world_tell(w, OBS_SERVED, r->job);
    GROW(w->told, w->n_told_served, w->cap_told_served);
    t = &w->told[w->n_told_served++];
    requests_tell(s, r, &t->served);
    t->counts_at = w->n_told_counts;
    if (w->n_told_counts + t->served.n_bins >= w->cap_told_counts) {
        w->cap_told_counts = 2 * (w->n_told_counts + t->served.n_bins + 1);
        RESIZE(w->told_counts, w->cap_told_counts);
    }
    memcpy(w->told_counts + t->counts_at, t->served.counts,
           (size_t)t->served.n_bins * sizeof *w->told_counts);
    w->n_told_counts += t->served.n_bins;
    requests_told(s, r);
}

/* Does anything still happen to services? */
static bool is_serving(const struct world *w)
{
    for (int i = 0; i < w->n_services; i++)
        if (!w->services[i].is_ended || w->services[i].n_replicas > 0)
            return true;
    return false;
}

/* At whole multiples of the time between, so that hours end at one. */
static void play_again(struct world *w)
{
    w->is_played = is_serving(w);
    if (w->is_played)
        heap_push(&w->heap, (floor(w->now_s / SERVED_EVERY_S) + 1) * SERVED_EVERY_S, WORLD_SERVED,
                  0, 0);
}

void on_served(struct world *w, int index)
{
    (void)index;
    replicas_play(w);
    for (int i = 0; i < w->n_services; i++) {
        struct world_service *s = &w->services[i];

        for (int k = 0; k < s->n_replicas; k++)
            tell_served(w, s, &s->replicas[k]);
    }
    feel(w);
    play_again(w);
}

/* ---- coming and going ---- */

void replica_ready(struct world *w, int job)
{
    struct world_job *j = &w->jobs[job];
    struct world_service *s = &w->services[j->served_by];
    const struct batch_time figures = figures_of(w, j, 1);    // until its GPU's pace is known

    j->busy = j->busy_seen = j->felt = j->felt_now = 0;
    j->done_before = j->done;
    requests_ready(s, job, &figures);
    tell_served(w, s, requests_find(s, job));
    if (!w->is_played)
        play_again(w);
}

void replica_leave(struct world *w, int job)
{
    struct world_job *j = &w->jobs[job];
    struct world_service *s = &w->services[j->served_by];
    struct service_replica *r = requests_find(s, job);

    tell_served(w, s, r);
    requests_lose(s, r);
    j->is_draining = false;
}

void on_drain(struct world *w, int job)
{
    struct world_job *j = &w->jobs[job];
    struct world_service *s = &w->services[j->served_by];

    replicas_play(w);
    const struct service_replica *r = requests_find(s, job);
    const double done_s = requests_done_s(r);
    if (any_server_sums(&r->server).n_open > 0) {
        j->stamp++;
        heap_push(&w->heap, fmax(done_s, nextafter(w->now_s, INFINITY)), WORLD_DRAIN, job,
                  j->stamp);
        return;
    }
    world_end_job(w, job, false);
    world_tell(w, OBS_FINISHED, job);
}

void replica_drain(struct world *w, int job)
{
    struct world_job *j = &w->jobs[job];
    struct world_service *s = &w->services[j->served_by];

    replicas_play(w);
    j->is_draining = true;
    requests_drain(s, requests_find(s, job));
    tell_served(w, s, requests_find(s, job));
    on_drain(w, job);
}

/* ---- services ---- */

int world_add_service(struct world *w, const struct world_service_spec *ask)
{
    const int job = world_submit(
        w, &(struct world_job_spec){
               .workload = ask->workload, .steps = INFINITY, .reference_speed = 1, .max_gpus = 1 });

    replicas_play(w);
    if (w->n_services == 0)
        w->served_s = w->now_s;
    GROW(w->services, w->n_services, w->cap_services);
    w->jobs[job].is_service = true;
    w->jobs[job].served_by = w->n_services;
    requests_init(&w->services[w->n_services++], ask, w->now_s);
    if (!w->is_played)
        play_again(w);
    return job;
}

static struct world_service *service_of(struct world *w, int service)
{
    assert(service >= 0 && service < w->counts.n_jobs && w->jobs[service].is_service);
    replicas_play(w);
    return &w->services[w->jobs[service].served_by];
}

void world_set_weights(struct world *w, int service, const int *jobs, const double *weights, int n)
{
    requests_set_weights(service_of(w, service), jobs, weights, n);
}

void world_end_service(struct world *w, int service)
{
    requests_end(service_of(w, service));
    if (w->jobs[service].phase != ENDED)
        world_end_job(w, service, false);
}

void replicas_release(struct world *w)
{
    for (int i = 0; i < w->n_services; i++)
        requests_release(&w->services[i]);
    free(w->services);
    free(w->told);
    free(w->told_counts);
}

/* ---- figures ---- */

/* In 'more' what is not a sum over hours. */
static void add_service(const struct world_service *s, struct world_service_figures *out,
                        struct latencies *all)
{
    for (int i = 0; i < s->n_hours; i++) {
        struct service_hour h;

        requests_hour_now(s, i, &h);
        out->n_kept += h.n_late <= HOUR_LATE_MOST * h.n_requests;
        out->n_requests += h.n_requests;
        out->n_late += h.n_late;
        out->n_refused += h.n_refused;
        out->n_lost += h.n_lost;
        latencies_join(all, &h.latencies);
    }
    out->n_hours += s->n_hours;
    out->n_arrived += s->n_arrived;
    out->n_starts += s->n_starts;
    out->n_interruptions += s->n_interruptions;
    out->lived_s += s->now_s - s->first_s;
}

void world_service_now(struct world *w, int service, struct world_service_figures *out)
{
    struct latencies all = { 0 };

    *out = (struct world_service_figures){ 0 };
    add_service(service_of(w, service), out, &all);
    out->p99_s = latencies_quantile(&all, 0.99);
}

void world_services_now(struct world *w, struct world_service_figures *out)
{
    struct latencies all = { 0 };

    *out = (struct world_service_figures){ 0 };
    replicas_play(w);
    for (int i = 0; i < w->n_services; i++)
        add_service(&w->services[i], out, &all);
    out->p99_s = latencies_quantile(&all, 0.99);
}
