/* What follows from who is where: the planners' side. The judge is plan_check.c. */
#include "optimize/model/plan.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "optimize/model/problem.h"

const char *wait_reason_name(enum wait_reason r)
{
    static const char *const names[] = {
        [WAIT_NOT] = "placed",      [WAIT_CAPACITY] = "capacity", [WAIT_MEMORY] = "memory",
        [WAIT_TYPE] = "gpu type",   [WAIT_GANG] = "gang size",    [WAIT_POWER] = "power cap",
        [WAIT_PROMISE] = "promise", [WAIT_TURN] = "turn",         [WAIT_ENGINE] = "engine",
    };
    return names[r];
}

static double part_of(double w, double all_w)
{
    return all_w != 0 ? w / fabs(all_w) : 0;
}

struct plan_gap plan_gap(const struct plan *x)
{
    double w = isinf(x->bound_w) ? (double)NAN : fmax(x->cost_w - x->bound_w, 0);

    if (isnan(w))
        return (struct plan_gap){ NAN, NAN, NAN };
    return (struct plan_gap){ w, part_of(w, x->cost_w + x->base_w),
                              part_of(w, fmax(x->varying_w, w)) };
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

void plan_sort_gpus(int *gpus, int n)
{
    qsort(gpus, (size_t)n, sizeof *gpus, by_number);
}

/* On several GPUs at once: priced as one, not part by part. */
static bool is_gang(const struct problem_job *j, const struct plan_job *to)
{
    return j->form == FORM_GANG && to->n_gpus > 1;
}

/* Who is on each GPU, gangs aside. */
static struct residents *residents_of(struct arena *a, const struct problem *p,
                                      const struct plan *x)
{
    struct residents *residents = ARENA_ARRAY(a, struct residents, (size_t)p->n_gpus);

    for (int j = 0; j < p->n_jobs; j++)
        for (int i = 0; i < x->jobs[j].n_gpus && !is_gang(&p->jobs[j], &x->jobs[j]); i++) {
            struct residents *s = &residents[x->jobs[j].gpus[i]];
            assert(s->n < THETA_MAX);
            s->jobs[s->n++] = j;
        }
    return residents;
}

/* What a job holds. */
struct job_held {
    struct held counted, believed;
};

/* What a job gets, on one GPU or a whole gang. */
static void add_speed(struct plan *x, int job, struct counted_on trust, double speed,
                      struct held here, struct job_held *held)
{
    x->jobs[job].speed += speed / trust.speed;
    x->jobs[job].low += fmin(held_low(here) / trust.held, speed / trust.speed);
    held[job].counted = held_add(held[job].counted, here);
    held[job].believed = held_add(held[job].believed, held_times(here, 1 / trust.held));
}

static void price_gpu(const struct problem *p, struct plan *x, const struct residents *s, int gpu,
                      struct job_held *held)
{
    int type = p->gpus[gpu].type, kinds[THETA_MAX];
    struct yield y;

    for (int i = 0; i < s->n; i++)
        kinds[i] = p->jobs[s->jobs[i]].kind;
    if (!problem_yield(p, type, x->limit[gpu], kinds, s->n, &y))
        return;    // they must not run so: the judge will say it
    x->watts += y.watts - p->types[type].sleep_w;
    x->cost_w += y.cost_w;
    x->varying_w += fabs(y.cost_w);
    for (int i = 0; i < s->n; i++) {
        const struct problem_kind *k = &p->kinds[kinds[i]];
        add_speed(x, s->jobs[i], problem_counted_on(p, type, kinds, s->n, i), y.speed[i], y.held[i],
                  held);
        x->hope_w += k->value_j * y.speed[i] * (1 - 1 / problem_hoped(p, type, kinds, s->n, i));
    }
}

static void price_gang(const struct problem *p, struct plan *x, int job, struct job_held *held)
{
    const struct plan_job *to = &x->jobs[job];
    const struct problem_gpu *first = &p->gpus[to->gpus[0]];
    const int *kind = &p->jobs[job].kind;
    bool is_near = problem_stands(p, to->gpus, to->n_gpus, 1);
    struct yield y;

    if (!problem_gang_yield(p, first->type, x->limit[to->gpus[0]], *kind, to->n_gpus, is_near, &y))
        return;
    x->watts += y.watts - to->n_gpus * p->types[first->type].sleep_w;
    x->cost_w += y.cost_w;
    x->varying_w += fabs(y.cost_w);
    x->hope_w +=
        p->kinds[*kind].value_j * y.speed[0] * (1 - 1 / problem_hoped(p, first->type, kind, 1, 0));
    add_speed(x, job, problem_counted_on(p, first->type, kind, 1, 0), y.speed[0], y.held[0], held);
}

/* Its shortfall, waiting and moving; its speed is known by now, and what is counted on of it. */
static void price_job(const struct problem *p, struct plan *x, int job, const struct job_held *held)
{
    const struct problem_job *j = &p->jobs[job];
    struct plan_job *to = &x->jobs[job];

    if (to->n_gpus) {
        int first = to->gpus[0];
        x->n_placed++;
        to->limit_w = p->types[p->gpus[first].type].limits[x->limit[first]].limit_w;
        to->is_short = to->low < j->need * (1 - PROMISE_SHORT);
        to->kept = promise_kept(j->need, held->believed);
        to->short_w = problem_short_w(p, j, held->counted);
        x->short_w += to->short_w;
    } else {
        x->n_waiting++;
        x->wait_w += j->wait_w;
    }
    bool stays = problem_is_at(j, to->gpus, to->n_gpus);
    if (j->n_present > 0 && !stays) {
        x->n_moves++;
        x->move_w += j->move_w;
    }
    for (int i = 0; i < to->n_gpus && !stays; i++)
        x->move_w += problem_come_w(p, j, to->gpus[i]);
}

/* Nobody plans for it: it stays, or cannot run, or is gone. */
static void price_unplanned(const struct problem_job *j, struct plan *x, struct plan_job *to)
{
    *to = (struct plan_job){ .reason = j->cannot };
    x->n_waiting += j->cannot != WAIT_NOT;
    if (!j->frozen)
        return;
    *to = (struct plan_job){ .n_gpus = j->n_present,
                             .gpus = j->present,
                             .limit_w = j->frozen->limit_w,
                             .speed = j->frozen->speed,
                             .low = j->frozen->low,
                             .is_short = j->frozen->low < j->need * (1 - PROMISE_SHORT),
                             .kept = j->frozen->low < j->need * (1 - PROMISE_SHORT) ? 0 : 1 };
    x->n_placed++;
}

void plan_price(struct arena *a, const struct problem *p, struct plan *out)
{
    *out = (struct plan){ .made_by = out->made_by,
                          .n_jobs = out->n_jobs,
                          .n_gpus = out->n_gpus,
                          .jobs = out->jobs,
                          .limit = out->limit,
                          .bound_w = -INFINITY,
                          .base_w = problem_base_w(p) };
    for (int j = 0; j < p->n_jobs; j++) {
        struct plan_job *to = &out->jobs[j];
        int n_gpus = p->jobs[j].name ? to->n_gpus : 0;
        *to = (struct plan_job){ .n_gpus = n_gpus, .gpus = to->gpus, .reason = to->reason };
    }
    struct residents *residents = residents_of(a, p, out);
    struct job_held *held = ARENA_ARRAY(a, struct job_held, (size_t)p->n_jobs);

    for (int j = 0; j < p->n_jobs; j++)
        if (is_gang(&p->jobs[j], &out->jobs[j]))
            price_gang(p, out, j, held);
    for (int g = 0; g < p->n_gpus; g++) {
        double sleep_w = p->types[p->gpus[g].type].sleep_w;
        out->watts += p->gpus[g].held_w > 0 ? p->gpus[g].held_w : sleep_w;
        if (residents[g].n)
            price_gpu(p, out, &residents[g], g, held);
    }
    for (int j = 0; j < p->n_jobs; j++) {
        if (p->jobs[j].name)
            price_job(p, out, j, &held[j]);
        else
            price_unplanned(&p->jobs[j], out, &out->jobs[j]);
        out->n_short += out->jobs[j].is_short;
    }
    out->cost_w += out->short_w + out->wait_w + out->move_w;
    out->varying_w += out->short_w + out->wait_w + out->move_w;
}
