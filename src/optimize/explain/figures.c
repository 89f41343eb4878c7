/* How a job would go somewhere, and what that costs: by the functions that plans are priced with.
 */
#include <math.h>

#include "optimize/explain/inner.h"

double explain_time_s(const struct snapshot_job *j, double speed)
{
    if (j->spec->kind == JOB_INFERENCE)
        return j->time_left_s;
    return j->remaining / fmax(speed, 1e-12);
}

/* What some jobs do on one GPU, and what that costs with their shortfalls; INFINITY: never so. */
static double total_w(const struct problem *p, int type, int limit, const int *jobs, int n,
                      struct yield *y)
{
    *y = (struct yield){ 0 };
    if (n == 0)
        return 0;
    if (!problem_yield_of(p, type, limit, jobs, n, y))
        return INFINITY;
    double w = y->cost_w;
    for (int i = 0; i < n; i++)
        w += problem_short_w(p, &p->jobs[jobs[i]], y->held[i]);
    return w;
}

int explain_best_limit(const struct explain *q, int gpu)
{
    const struct explain_gpu *g = &q->gpus[gpu];
    int type = q->p->gpus[gpu].type, best = g->limit;
    struct yield y;
    double best_w = total_w(q->p, type, best, g->jobs, g->n_jobs, &y);

    for (int l = 0; l < q->p->types[type].n_limits; l++) {
        double w = total_w(q->p, type, l, g->jobs, g->n_jobs, &y);
        if (w < best_w) {
            best = l;
            best_w = w;
        }
    }
    return best;
}

/* The job somewhere, under one setting. */
struct trial {
    int limit;
    bool has_room;        // the power cap allows it
    int n_on;             // others on the GPU
    double total_w;       // of the GPUs with all on them
    double before_w;      // and without it
    double drawn_w;       // more than a cap counts without it
    double watts_then;    // of the GPUs without it, empty ones asleep
    double speed;         // of the job, as it is counted on
    struct held held;
    struct yield with, without;    // on one GPU: those there, the job last; and those there
};

/* Alone on GPUs of the type, or with those on one of them ('g'). */
static bool try_limit(const struct explain *q, const struct candidate *c,
                      const struct explain_gpu *g, bool is_near, int limit, struct trial *t)
{
    const struct problem_type *type = &q->p->types[c->type];
    int jobs[THETA_MAX] = { 0 }, n_on = g ? g->n_jobs : 0;

    for (int i = 0; i < n_on; i++)
        jobs[i] = g->jobs[i];
    jobs[n_on] = q->job;
    *t = (struct trial){ .limit = limit, .n_on = n_on };
    if (c->n_gpus == 1)
        t->total_w = total_w(q->p, c->type, limit, jobs, n_on + 1, &t->with);
    else if (problem_gang_yield(q->p, c->type, limit, q->j->kind, c->n_gpus, is_near, &t->with))
        t->total_w = t->with.cost_w + problem_short_w(q->p, q->j, t->with.held[0]);
    else
        return false;
    t->before_w = total_w(q->p, c->type, n_on ? g->limit : 0, jobs, n_on, &t->without);
    t->drawn_w = t->with.watts - (n_on ? t->without.watts : c->n_gpus * type->idle_w);
    t->watts_then = n_on ? t->without.watts : c->n_gpus * type->sleep_w;
    t->has_room = t->drawn_w * q->p->watts_margin <= q->room_w;
    t->speed = t->with.speed[n_on];
    t->held = t->with.held[n_on];
    return isfinite(t->total_w) && isfinite(t->before_w);
}

/* Under this setting, or under the cheapest one that there is room for (else, the cheapest). */
static bool try_limits(const struct explain *q, const struct candidate *c, const int *gpus,
                       int limit, struct trial *best)
{
    int last = limit < 0 ? q->p->types[c->type].n_limits - 1 : limit;
    bool is_near = gpus ? problem_stands(q->p, gpus, c->n_gpus, 1) : q->j->n_nodes < 2;
    const struct explain_gpu *g = gpus && c->n_gpus == 1 ? &q->gpus[gpus[0]] : NULL;
    bool found = false;
    struct trial t;

    for (int l = limit < 0 ? 0 : limit; l <= last; l++)
        if (try_limit(q, c, g, is_near, l, &t) &&
            (!found || t.has_room > best->has_room ||
             (t.has_room == best->has_room && t.total_w < best->total_w))) {
            *best = t;
            found = true;
        }
    return found;
}

static void fill_cost(const struct explain *q, struct candidate *c, const int *gpus,
                      const struct trial *t, struct counted_on trust)
{
    const struct problem_kind *k = &q->p->kinds[q->j->kind];
    struct candidate_cost *w = &c->cost;
    double speed = t->speed / trust.speed;

    *w = (struct candidate_cost){ .draw_w = t->with.watts - t->watts_then,
                                  .price_w = t->n_on ? 0 : c->n_gpus * q->p->price_w,
                                  .work_w = -k->value_j * problem_done(k, t->speed),
                                  .short_w = problem_short_w(q->p, q->j, t->held) };
    w->hope_w = k->value_j * (problem_done(k, t->speed) - problem_done(k, speed)) +
                problem_short_w(q->p, q->j, held_times(t->held, 1 / trust.held)) - w->short_w;
    if (!gpus || !problem_is_at(q->j, gpus, c->n_gpus)) {
        w->move_w = q->j->n_present ? q->j->move_w : 0;
        for (int i = 0; i < c->n_gpus && gpus; i++) {
            w->wake_w += problem_come_w(q->p, q->j, gpus[i]);
            c->wake_s = fmax(c->wake_s, q->p->gpus[gpus[i]].wake_s);
        }
    }
    double own_w = w->draw_w + w->price_w + w->work_w + w->short_w;
    w->neighbour_w = t->n_on == 0 ? 0 : t->total_w - t->before_w - own_w;
    w->cost_w = own_w + w->neighbour_w + w->move_w + w->wake_w;
}

/* What is counted on of the i-th of those on 'g' (NULL: nobody) with the job, who is the last. */
static struct counted_on trust_of(const struct explain *q, const struct candidate *c,
                                  const struct explain_gpu *g, int i)
{
    int kinds[THETA_MAX], n = 0;

    for (; g && n < g->n_jobs; n++)
        kinds[n] = q->p->jobs[g->jobs[n]].kind;
    kinds[n++] = q->j->kind;
    return problem_counted_on(q->p, c->type, kinds, n, i);
}

/* Those beside it: who loses most, and whether all promises hold by what is believed. */
static void fill_neighbours(const struct explain *q, struct candidate *c, int gpu,
                            const struct trial *t)
{
    const struct explain_gpu *g = &q->gpus[gpu];

    for (int i = 0; i < g->n_jobs; i++) {
        const struct problem_job *other = &q->p->jobs[g->jobs[i]];
        double share = t->with.speed[i] / t->without.speed[i];
        double low = held_low(t->with.held[i]) / trust_of(q, c, g, i).held;
        if (c->neighbour < 0 || share < c->neighbour_speed) {
            c->neighbour = g->jobs[i];
            c->neighbour_speed = share;
        }
        c->neighbour_keeps &= low >= other->need * (1 - PROMISE_SHORT);
    }
}

void explain_nowhere(struct candidate *c)
{
    c->speed = c->low = c->high = c->watts = c->joules = c->margin = c->kept = c->cost.cost_w = NAN;
    c->neighbour_speed = NAN;
}

enum explain_fit explain_there(const struct explain *q, struct candidate *c, const int *gpus,
                               int limit)
{
    const struct problem *p = q->p;
    const struct explain_gpu *g = c->n_gpus == 1 && gpus ? &q->gpus[gpus[0]] : NULL;
    struct counted_on trust = trust_of(q, c, g, g ? g->n_jobs : 0);
    struct trial t = { 0 };

    c->neighbour_speed = NAN;
    c->neighbour_keeps = true;
    if (c->n_gpus > GANG_MAX || !try_limits(q, c, gpus, limit, &t))
        return EXPLAIN_NEVER;
    c->limit_w = p->types[c->type].limits[t.limit].limit_w;
    c->counted = trust.speed;
    c->speed = t.speed / trust.speed;
    c->low = fmin(held_low(t.held) / trust.held, c->speed);
    c->kept = promise_kept(q->j->need, held_times(t.held, 1 / trust.held));
    c->high = c->low > 0 ? c->speed * c->speed / c->low : c->speed;
    c->watts = t.with.watts;
    c->margin = q->j->need > 0 ? c->low / q->j->need - 1 : (double)NAN;
    fill_cost(q, c, gpus, &t, trust);
    c->joules = c->cost.draw_w * explain_time_s(q->sj, c->speed);
    if (gpus && c->n_gpus == 1)
        fill_neighbours(q, c, gpus[0], &t);
    return t.has_room ? EXPLAIN_FITS : EXPLAIN_NO_ROOM;
}
