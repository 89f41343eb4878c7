/* In order, to GPUs that keep promises: "fifo-promise", "pack" and "eaco".
 *
 * Every job wants the types that keep its promise; where none does, those where it is fastest. The
 * first who finds nothing free has GPUs of these types reserved; those behind it may take what does
 * not delay it (backfill.h), and share all other GPUs.
 */
#include <math.h>

#include "base/arena.h"
#include "optimize/policy/backfill.h"

/* GPUs of one kind with room that are looked at: they differ only in their residents' promises. */
#define TRIES_PER_KIND 4

/* Where no type keeps the promise, those are wanted that do at least this part of the most. Waiting
 * for the fastest alone, or taking whatever is free, kept fewer promises or used more energy over
 * the reference traces.
 */
#define FASTEST_PART 0.7

/* Those who share keep this part of their speed alone for "eaco": below it they had better take
 * turns. Over the reference traces 0.4 was as good, and from 0.6 on ever fewer pairs were believed
 * possible.
 */
#define SHARE_MIN 0.5

/* How a policy shares GPUs. */
struct share_rule {
    bool is_allowed;
    bool is_preferred;    // to a free GPU; else the one that costs less is taken
    double share_min;     // everybody there keeps this part of the speed alone
    bool parts;           // a pair that turns out otherwise
};

struct queue {
    struct policy_work work;
    struct backfill backfill;
    const struct share_rule *sharing;
    int *n_wanted;           // (n_types) what the job at hand would take there; 0: not that type
    bool *is_awaited;        // (n_types) somebody further in front waits for a GPU of it
    double *cannot_share;    // (n_kinds) with this need, sharing was sought in vain
    bool is_out_of_watts;
};

static void forget_sharing(struct queue *q)
{
    for (int k = 0; k < q->work.problem->n_kinds; k++)
        q->cannot_share[k] = INFINITY;
}

/* ---- what a job wants ---- */

/* The fewest GPUs, in doublings, with which 'type' keeps the promise, by what is believed or what
 * is hoped; 0: it does not.
 */
static int n_that_keep(const struct queue *q, int job, int type, bool is_hoping)
{
    const struct problem *p = q->work.problem;
    const struct problem_job *j = &p->jobs[job];
    struct yield alone;

    if (!work_suits(&q->work, job, type, &alone))
        return 0;
    double low = held_low(alone.held[0]) /
                 (is_hoping ? 1 : problem_counted_on(p, type, &j->kind, 1, 0).held);
    for (int n = j->n_min; n <= j->n_max && n <= q->work.assignment->n_of_type[type]; n *= 2)
        if (low * work_gang_factor(&q->work, job, type, n) >= j->need)
            return n;
    return 0;
}

/* The types that come nearest. */
static void want_fastest(struct queue *q, int job)
{
    const struct problem *p = q->work.problem;
    struct yield alone;
    double most = 0;

    for (int type = 0; type < p->n_types; type++)
        if (work_suits(&q->work, job, type, &alone))
            most = fmax(most, alone.speed[0]);
    for (int type = 0; type < p->n_types; type++)
        if (work_suits(&q->work, job, type, &alone) && alone.speed[0] >= FASTEST_PART * most)
            q->n_wanted[type] = p->jobs[job].n_min;
}

/* The types that keep the promise; false: none does. */
static bool want_keepers(struct queue *q, int job, bool is_hoping)
{
    bool is_kept = false;

    for (int type = 0; type < q->work.problem->n_types; type++) {
        q->n_wanted[type] = n_that_keep(q, job, type, is_hoping);
        is_kept |= q->n_wanted[type] > 0;
    }
    return is_kept;
}

/* Which types does a job want, and how many GPUs there? Into n_wanted. False when none of them is
 * believed to keep its promise.
 */
static bool want(struct queue *q, int job)
{
    if (want_keepers(q, job, false))
        return true;
    if (!want_keepers(q, job, true))
        want_fastest(q, job);
    return false;
}

/* ---- where it could go ---- */

/* Free GPUs of a type that it wants; they are refused only for want of watts. */
static void consider_free(struct queue *q, int job, int type, bool is_kept,
                          struct destination *best)
{
    int n = q->n_wanted[type], gpus[GANG_MAX];
    struct offer offer;
    struct yield alone;

    if (n == 0 || !backfill_free(&q->backfill, job, type, n, gpus) ||
        !work_suits(&q->work, job, type, &alone))
        return;
    if (work_weigh(&q->work, job, gpus, n, &offer))
        work_prefer(best, is_kept ? offer.cost_w : -alone.speed[0], gpus,
                    n);    // the slower the more
    else
        q->is_out_of_watts = true;
}

/* Beside somebody, where everybody's promise holds, and nobody waits for that GPU. */
static void consider_sharing(struct queue *q, int job, int gpu, struct destination *best)
{
    struct offer offer;

    if (!q->backfill.is_reserved[gpu] && work_weigh(&q->work, job, &gpu, 1, &offer) &&
        offer.keeps && offer.share >= q->sharing->share_min)
        work_prefer(best, offer.cost_w, &gpu, 1);
}

/* What one sought in vain, others of its kind that need as much need not seek, until somebody
 * goes to a free GPU, where there is room then.
 */
static void seek_sharing(struct queue *q, int job, struct destination *best)
{
    const struct problem *p = q->work.problem;
    const struct problem_job *j = &p->jobs[job];
    int gpus[TRIES_PER_KIND];
    struct yield alone;

    if (j->need >= q->cannot_share[j->kind])
        return;
    for (int type = 0; type < p->n_types; type++)
        for (int k = work_suits(&q->work, job, type, &alone) ? 0 : p->n_kinds; k < p->n_kinds;
             k++) {
            int n = assignment_beside(q->work.assignment, type, k, TRIES_PER_KIND, gpus);
            for (int i = 0; i < n; i++)
                consider_sharing(q, job, gpus[i], best);
        }
    if (best->n_gpus == 0 && !j->allowed_types && !q->work.assignment->has_rules)
        q->cannot_share[j->kind] = j->need;
}

static void seek(struct queue *q, int job, bool is_kept, struct destination *best)
{
    const struct problem_job *j = &q->work.problem->jobs[job];

    if (q->sharing->is_allowed && !j->is_exclusive && j->n_min == 1)
        seek_sharing(q, job, best);
    if (best->n_gpus && q->sharing->is_preferred)
        return;
    for (int type = 0; type < q->work.problem->n_types; type++)
        consider_free(q, job, type, is_kept, best);
    q->is_out_of_watts &= best->n_gpus == 0;
}

/* ---- the queue ---- */

/* Why nothing was found; and from now on it waits for the types that it wants, with some GPUs
 * reserved if it is the first.
 */
static enum wait_reason await(struct queue *q, int job)
{
    const struct policy_work *w = &q->work;
    bool is_second = false, is_choosy = false;
    struct yield alone;

    if (q->is_out_of_watts)
        return WAIT_POWER;
    for (int type = 0; type < w->problem->n_types; type++) {
        is_second |= q->n_wanted[type] > 0 && q->is_awaited[type];
        is_choosy |= q->n_wanted[type] == 0 && assignment_n_free(w->assignment, type) > 0 &&
                     work_suits(&q->work, job, type, &alone);
        q->is_awaited[type] |= q->n_wanted[type] > 0;
    }
    if (assignment_never(w->assignment, job))
        return WAIT_NOT;
    backfill_reserve(&q->backfill, job, q->n_wanted);
    return is_second ? WAIT_TURN : is_choosy ? WAIT_PROMISE : WAIT_CAPACITY;
}

static enum wait_reason serve(struct queue *q, int job)
{
    struct destination to = { 0 };

    seek(q, job, want(q, job), &to);
    if (to.n_gpus == 0)
        return await(q, job);
    if (q->work.assignment->gpus[to.gpus[0]].n_jobs == 0)
        forget_sharing(q);
    work_put(&q->work, job, &to);
    return WAIT_NOT;
}

/* ---- parting ---- */

/* Does somebody who shares go slower than was bargained for? */
static bool is_mistake(const struct queue *q, int gpu)
{
    return q->work.assignment->gpus[gpu].n_jobs > 1 &&
           (work_least_share(&q->work, gpu) < q->sharing->share_min ||
            work_n_short(&q->work, gpu) > 0);
}

/* The last one of those who ran on the GPU already; -1: it may not be moved, or a newcomer is
 * there.
 */
static int latest(const struct queue *q, int gpu)
{
    const struct assignment_gpu *g = &q->work.assignment->gpus[gpu];
    const struct problem_job *jobs = q->work.problem->jobs;
    int last = -1;

    for (int i = 0; i < g->n_jobs; i++) {
        int job = g->jobs[i];
        if (jobs[job].n_present != 1 || jobs[job].present[0] != gpu)
            return -1;
        if (last < 0 || jobs[job].since_s < jobs[last].since_s)
            last = job;
    }
    return last >= 0 && !jobs[last].is_fixed ? last : -1;
}

/* The latest goes to a free GPU that keeps its promise, unless that takes the watts, or, by odd
 * estimates, somebody's promise who stays.
 */
static void part(struct queue *q, int gpu)
{
    int job = latest(q, gpu);
    struct destination to = { 0 };

    if (job < 0 || !want(q, job))
        return;
    for (int type = 0; type < q->work.problem->n_types; type++)
        if (q->n_wanted[type] == 1)
            consider_free(q, job, type, true, &to);
    work_put(&q->work, job, &to);
}

static int solve(const struct solver *self, struct arena *a, const struct problem *p,
                 struct plan *out, struct err *e)
{
    struct queue q = { .sharing = self->how,
                       .n_wanted = ARENA_ARRAY(a, int, (size_t)p->n_types),
                       .is_awaited = ARENA_ARRAY(a, bool, (size_t)p->n_types),
                       .cannot_share = ARENA_ARRAY(a, double, (size_t)p->n_kinds) };

    (void)e;
    work_begin(&q.work, a, p);
    backfill_begin(&q.backfill, &q.work);
    forget_sharing(&q);
    for (int j = 0; j < p->n_jobs; j++)
        if (work_is_waiting(&q.work, j))
            q.work.why[j] = q.is_out_of_watts ? WAIT_TURN : serve(&q, j);
    for (int g = 0; g < p->n_gpus && q.sharing->parts; g++)
        if (is_mistake(&q, g))
            part(&q, g);
    work_end(&q.work, out);
    return 0;
}

static const struct share_rule never = { .is_allowed = false },
                               where_it_pays = { .is_allowed = true },
                               consolidating = { .is_allowed = true,
                                                 .is_preferred = true,
                                                 .share_min = SHARE_MIN,
                                                 .parts = true };

const struct solver solver_fifo_promise = {
    .name = "fifo-promise",
    .about =
        "first come, first served, one job a GPU: of the free types that keep the promise, the "
        "one with the fewest joules",
    .how = &never,
    .solve = solve,
};

const struct solver solver_pack = {
    .name = "pack",
    .about = "fifo-promise that also puts a job beside another where all promises hold; nobody who "
             "runs is moved",
    .levers = LEVER_BIT(SHARING),
    .how = &where_it_pays,
    .solve = solve,
};

const struct solver solver_eaco = {
    .name = "eaco",
    .about = "consolidation by a threshold of slowdown: sharing is preferred to any free GPU where "
             "promises hold and everybody keeps half of the speed alone",
    .levers = LEVER_BIT(SHARING) | LEVER_BIT(MOVING),
    .how = &consolidating,
    .solve = solve,
};
