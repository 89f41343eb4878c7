/* What batches of replicas teach: step times, alone and beside whom they are. */
#include <math.h>

#include "base/grow.h"
#include "catalog/catalog.h"
#include "catalog/cluster/ledger.h"
#include "cycle/inner.h"
#include "cycle/services_inner.h"

/* The first window of a place is a minute, each further one twice as long, up to an hour: what is
 * new is learned at once, what is known costs next to nothing.
 */
#define WINDOW_S 60.0
#define WINDOW_MOST_S 3600.0

static struct served_window *window_of(struct service_record *r, int job)
{
    for (int i = 0; i < r->n_windows; i++)
        if (r->windows[i].job == job)
            return &r->windows[i];
    return NULL;
}

/* One for the job, in the room of one whose replica is over where there is any. */
static struct served_window *window_add(struct cycle *c, struct service_record *r, int job)
{
    const struct state *st = &c->ledger->state;
    int i = 0;

    while (i < r->n_windows && r->windows[i].job < st->n_jobs &&
           !job_is_over(st->jobs[r->windows[i].job]))
        i++;
    if (i == r->n_windows) {
        GROW(r->windows, r->n_windows, r->cap_windows);
        r->n_windows++;
    }
    r->windows[i] = (struct served_window){ .job = job, .beside = -2, .least_s = WINDOW_S };
    return &r->windows[i];
}

/* The one job beside it, -1: none; -2: there are more, which no cell describes. */
static int neighbour_of(const struct state *st, const struct job *j)
{
    const struct gpu *g = &st->gpus[j->gpus[0]];
    int beside = -1;

    for (int i = 0; i < g->n_jobs; i++)
        if (g->jobs[i] != j->id)
            beside = beside == -1 ? g->jobs[i] : -2;
    return beside;
}

/* The part of the time that the neighbour was at work; 0: not known. */
static double busy_of(const struct cycle *c, int job)
{
    const struct job *j = c->ledger->state.jobs[job];

    if (j->spec.kind != JOB_REPLICA)
        return j->spec.kind == JOB_TRAINING;
    struct service_record *r = services_record(c, j->spec.service);
    const struct served_window *w = r ? window_of(r, job) : NULL;
    double span_s = w ? w->to_s - w->from_s : 0;
    return span_s >= WINDOW_S / 2 ? w->sum.busy_s / span_s : 0;
}

static void begin(struct served_window *w, int beside, int limit_w, double now_s)
{
    w->least_s = w->beside == beside && w->limit_w == limit_w ? fmin(2 * w->least_s, WINDOW_MOST_S)
                                                              : WINDOW_S;
    w->beside = beside;
    w->limit_w = limit_w;
    w->from_s = w->to_s = now_s;
    w->sum = (struct serving_seen){ 0 };
}

bool services_learn(struct cycle *c, struct service_record *r, int job, const struct served *seen,
                    struct measurement *out)
{
    const struct state *st = &c->ledger->state;
    const struct job *j = st->jobs[job];
    struct served_window *w = window_of(r, job);

    if (j->n_held != 1 || isnan(seen->n_requests + seen->n_batches + seen->busy_s))
        return false;
    w = w ? w : window_add(c, r, job);
    int beside = neighbour_of(st, j);
    if (beside != w->beside || j->limit_w != w->limit_w) {
        begin(w, beside, j->limit_w, seen->to_s);    // it changed within what is told now
        return false;
    }
    w->sum.n_requests += seen->n_requests;
    w->sum.n_batches += seen->n_batches;
    w->sum.busy_s += seen->busy_s;
    w->to_s = seen->to_s;
    if (w->to_s - w->from_s < w->least_s || beside < -1)
        return false;
    w->sum.beside_busy = beside < 0 ? 1 : busy_of(c, beside);
    bool is_one = w->sum.n_requests <= w->sum.n_batches * service_batch(j->spec.terms) &&
                  serving_measure(&c->estimator, j->spec.workload, st->gpus[j->gpus[0]].type,
                                  beside < 0 ? -1 : st->jobs[beside]->spec.workload, &w->sum, out);
    if (is_one) {
        out->key.limit_w = j->limit_w;
        out->time_s = w->to_s;
        out->duration_s = w->to_s - w->from_s;
    }
    begin(w, beside, j->limit_w, w->to_s);
    return is_one;
}
