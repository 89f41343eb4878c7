/* Energy-aware co-location by a slowdown threshold: newcomers go beside somebody where nobody is
 * slowed down much and all promises hold, so that other GPUs may sleep; else to the free GPU with
 * the fewest joules that keeps the promise. A pair that turns out to be a mistake is parted.
 */
#include "base/arena.h"
#include "catalog/snapshot.h"
#include "estimate/estimate.h"
#include "optimize/policy/board.h"
#include "optimize/policy/place.h"
#include "optimize/model/plan.h"
#include "optimize/policy/promise.h"
#include "optimize/policy/solver.h"

/* Those who share keep this part of their speed alone: below it they had better take turns. Over
 * the reference traces 0.4 was as good, and from 0.6 on ever fewer pairs were believed possible.
 */
#define SHARE_MIN 0.5

/* Does somebody on the GPU go slower than was bargained for? */
static bool is_mistake(const struct queue *q, int gpu)
{
    const struct board *b = &q->board;
    const struct board_gpu *g = &b->gpus[gpu];

    for (int i = 0; i < g->n_jobs; i++) {
        const struct snap_job *j = &b->snapshot->jobs[g->jobs[i]];
        double low, speed = board_speed(b, g->jobs[i], &low) / board_limited(b, gpu, -1).speed;
        double alone =
            estimate_speed(b->est, j->workload, b->snapshot->gpus[gpu].type, NULL, 0, NULL);
        if (speed < SHARE_MIN * alone || low < j->need)
            return true;
    }
    return false;
}

/* The last one of those who ran on the GPU already; -1: somebody is there who is not to be moved
 * away from or with: a newcomer or a gang.
 */
static int latest(const struct board *b, int gpu)
{
    const struct board_gpu *g = &b->gpus[gpu];
    int last = -1;

    for (int i = 0; i < g->n_jobs; i++) {
        const struct snap_job *j = &b->snapshot->jobs[g->jobs[i]];
        if (!j->is_running || j->n_held > 1)
            return -1;
        if (last < 0 || j->ran_s < b->snapshot->jobs[last].ran_s)
            last = g->jobs[i];
    }
    return last;
}

/* How many on a GPU hold their promises, 'except' left out? */
static int n_holding(const struct board *b, int gpu, int except)
{
    const struct board_gpu *g = &b->gpus[gpu];
    int n = 0;

    for (int i = 0; i < g->n_jobs; i++) {
        double low;
        board_speed(b, g->jobs[i], &low);
        n += g->jobs[i] != except && low >= b->snapshot->jobs[g->jobs[i]].need;
    }
    return n;
}

/* The latest goes to a free GPU that keeps its promise, unless that takes the watts, or, by odd
 * estimates, somebody's promise who stays.
 */
static void part(struct queue *q, int gpu)
{
    struct board *b = &q->board;
    double cap_w = q->options->power_cap_w;
    int job = latest(b, gpu);
    int to = job >= 0 && queue_want(q, job) ? queue_free_gpu(q, job) : -1;

    if (to < 0)
        return;
    int *mine = ARENA_NEW(b->arena, int), n_before = n_holding(b, gpu, job);
    *mine = to;
    board_take(b, job);
    board_put(b, job, mine, 1);
    if ((cap_w <= 0 || place_drawn_w(b) <= cap_w) && n_holding(b, gpu, job) >= n_before)
        return;
    board_take(b, job);
    board_put(b, job, b->snapshot->jobs[job].gpus, 1);
}

static int solve(const struct solver *self, struct arena *a, const struct snapshot *s,
                 const struct estimator *est, const struct solve_options *o, struct plan *out,
                 enum verdict *verdict, struct err *e)
{
    static const struct sharing sharing = { .is_allowed = true,
                                            .is_preferred = true,
                                            .share_min = SHARE_MIN };
    struct queue q;

    (void)e;
    queue_init(&q, a, s, est, o, &sharing);
    queue_serve(&q);
    for (int g = 0; g < s->n_gpus && o->may_move; g++)
        if (q.board.gpus[g].n_jobs > 1 && is_mistake(&q, g))
            part(&q, g);
    queue_plan(&q, self->name, out);
    *verdict = VERDICT_FEASIBLE;
    return 0;
}

const struct solver solver_eaco = { .name = "eaco", .plan = solve };
