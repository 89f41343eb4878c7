/* What follows from who is where: the planners' side. The judge is answer_check.c. */
#include "optimize/model/answer.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "optimize/model/problem.h"

struct seat {
    int n;
    int jobs[THETA_MAX];
};

/* On several GPUs at once: priced as one, not part by part. */
static bool is_gang(const struct problem_job *j, const struct answer_job *to)
{
    return j->form == FORM_GANG && to->n_gpus > 1;
}

static bool is_moved(const struct problem_job *j, const struct answer_job *to)
{
    if (j->n_present == 0)
        return false;
    return j->n_present != to->n_gpus ||
           memcmp(j->present, to->gpus, (size_t)to->n_gpus * sizeof(int)) != 0;
}

/* Who is on each GPU, gangs aside. */
static struct seat *seat_all(struct arena *a, const struct problem *p, const struct answer *x)
{
    struct seat *seats = ARENA_ARRAY(a, struct seat, (size_t)p->n_gpus);

    for (int j = 0; j < p->n_jobs; j++)
        for (int i = 0; i < x->jobs[j].n_gpus && !is_gang(&p->jobs[j], &x->jobs[j]); i++) {
            struct seat *s = &seats[x->jobs[j].gpus[i]];
            assert(s->n < THETA_MAX);
            s->jobs[s->n++] = j;
        }
    return seats;
}

static void price_gpu(const struct problem *p, struct answer *x, const struct seat *s, int gpu)
{
    int kinds[THETA_MAX];
    struct yield y;

    for (int i = 0; i < s->n; i++)
        kinds[i] = p->jobs[s->jobs[i]].kind;
    if (!problem_yield(p, p->gpus[gpu].type, x->limit[gpu], kinds, s->n, &y))
        return;    // they must not run so: the judge will say it
    x->watts += y.watts - p->types[p->gpus[gpu].type].sleep_w;
    x->cost_w += y.cost_w;
    for (int i = 0; i < s->n; i++) {
        x->jobs[s->jobs[i]].speed += y.speed[i];
        x->jobs[s->jobs[i]].low += y.low[i];
    }
}

static void price_gang(const struct problem *p, struct answer *x, int job)
{
    struct answer_job *to = &x->jobs[job];
    const struct problem_gpu *first = &p->gpus[to->gpus[0]];
    bool is_near = true;
    struct yield y;

    for (int i = 1; i < to->n_gpus; i++)
        is_near &= p->gpus[to->gpus[i]].node == first->node;
    if (!problem_gang_yield(p, first->type, x->limit[to->gpus[0]], p->jobs[job].kind, to->n_gpus,
                            is_near, &y))
        return;
    x->watts += y.watts - to->n_gpus * p->types[first->type].sleep_w;
    x->cost_w += y.cost_w;
    to->speed = y.speed[0];
    to->low = y.low[0];
}

/* Its shortfall, waiting and moving; its speed is known by now. */
static void price_job(const struct problem *p, struct answer *x, int job)
{
    const struct problem_job *j = &p->jobs[job];
    struct answer_job *to = &x->jobs[job];

    if (to->n_gpus) {
        x->n_placed++;
        x->n_short += to->low < j->need;
        to->short_w = problem_short_w(j, to->low);
        x->short_w += to->short_w;
    } else {
        x->n_waiting++;
        x->wait_w += j->wait_w;
    }
    if (is_moved(j, to)) {
        x->n_moves++;
        x->move_w += j->move_w;
    }
    for (int i = 0; i < to->n_gpus && (j->n_present == 0 || is_moved(j, to)); i++)
        x->move_w += problem_wake_w(p, j, to->gpus[i]);
}

void answer_price(struct arena *a, const struct problem *p, struct answer *out)
{
    struct seat *seats = seat_all(a, p, out);

    out->n_placed = out->n_waiting = out->n_short = out->n_moves = 0;
    out->cost_w = out->watts = out->short_w = out->wait_w = out->move_w = 0;
    for (int j = 0; j < p->n_jobs; j++) {
        out->jobs[j].speed = out->jobs[j].low = out->jobs[j].short_w = 0;
        if (is_gang(&p->jobs[j], &out->jobs[j]))
            price_gang(p, out, j);
    }
    for (int g = 0; g < p->n_gpus; g++) {
        out->watts += p->types[p->gpus[g].type].sleep_w;
        if (seats[g].n)
            price_gpu(p, out, &seats[g], g);
    }
    for (int j = 0; j < p->n_jobs; j++)
        if (p->jobs[j].name)
            price_job(p, out, j);
    out->cost_w += out->short_w + out->wait_w + out->move_w;
}
