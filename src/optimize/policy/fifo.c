/* First come, first served, one job a GPU: the baselines, and what most sites do. Those behind the
 * first who cannot start may pass it where that does not delay it (backfill.h).
 */
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/rng.h"
#include "optimize/policy/backfill.h"

enum fifo_order { FASTEST, BY_CHANCE, FIRST, AS_SLURM };

/* Jobs behind the head that are tried: Slurm's bf_max_job_test, as it comes. */
#define TRIES_MAX 500

/* Slurm's multifactor priority as sites set it: it grows with age, for so long, and a step of a
 * job's own priority outweighs a day of that.
 */
#define AGE_MOST_S (7 * 86400.0)
#define STEP_S 86400.0

struct fifo_queue {
    struct policy_work work;
    struct backfill backfill;
    enum fifo_order order;
    uint64_t seed;
    int *n_wanted;    // (n_types) what the job at hand could take of each
    int *jobs;        // (n) that wait, in their order
    int n;
};

/* How much a policy likes free GPUs of a type, of which this is the first and on which a job would
 * do 'speed'; for the fastest, what was not measured yet is hoped for, so that it is tried. Equal
 * likings go to the type that comes first.
 */
static double liking(const struct fifo_queue *q, int gpu, double speed, struct rng *rng)
{
    const struct problem_gpu *g = &q->work.problem->gpus[gpu];

    if (q->order == FIRST)
        return 1.0 / (1 + gpu);
    if (q->order == AS_SLURM)
        return (g->wake_s > 0 ? 0 : 1) + 1.0 / (1 + gpu);    // Slurm wakes a node when it must
    if (q->order == FASTEST)
        return speed;
    /* Each free GPU equally likely: the largest of n uniform numbers is u^(1/n). */
    return pow(rng_uniform(rng), 1.0 / assignment_n_free(q->work.assignment, g->type));
}

/* On the type that it likes best among those with room, or why not. */
static enum wait_reason start(struct fifo_queue *q, int job)
{
    const struct problem_job *j = &q->work.problem->jobs[job];
    struct destination to = { 0 };
    struct yield alone;
    int gpus[GANG_MAX];
    struct rng rng;

    rng_init(&rng, q->seed, j->name);
    for (int type = 0; type < q->work.problem->n_types; type++) {
        bool suits = work_suits(&q->work, job, type, &alone);
        q->n_wanted[type] = suits ? j->n_min : 0;
        if (!suits || !backfill_free(&q->backfill, job, type, j->n_min, gpus))
            continue;
        double speed = alone.speed[0] * work_gang_factor(&q->work, job, type, j->n_min);
        work_prefer(&to, -liking(q, gpus[0], speed, &rng), gpus, j->n_min);
    }
    if (to.n_gpus > 0)
        return work_put(&q->work, job, &to) ? WAIT_NOT : WAIT_POWER;
    return assignment_never(q->work.assignment, job) ? WAIT_NOT
           : q->backfill.has_head                    ? WAIT_TURN
                                                     : WAIT_CAPACITY;
}

static double slurm_priority(const struct problem_job *j)
{
    return STEP_S * j->priority + fmin(j->since_s, AGE_MOST_S);
}

/* Who waits, in the order of the queue; for Slurm by its priorities, of equals the first. */
static void line_up(struct fifo_queue *q)
{
    const struct problem *p = q->work.problem;

    q->jobs = ARENA_ARRAY(q->work.arena, int, (size_t)p->n_jobs);
    for (int j = 0; j < p->n_jobs; j++) {
        int at = q->n;
        if (!work_is_waiting(&q->work, j))
            continue;
        for (; q->order == AS_SLURM && at > 0 &&
               slurm_priority(&p->jobs[q->jobs[at - 1]]) < slurm_priority(&p->jobs[j]);
             at--)
            q->jobs[at] = q->jobs[at - 1];
        q->jobs[at] = j;
        q->n++;
    }
}

/* Whoever cannot start for want of watts holds up those behind it, and whoever cannot for want of
 * GPUs those who would delay it; a job that fits no GPU here does not.
 */
static int solve(const struct solver *self, struct arena *a, const struct problem *p,
                 struct plan *out, struct err *e)
{
    const enum fifo_order *order = self->how;
    struct fifo_queue q = { .order = *order,
                            .seed = self->seed,
                            .n_wanted = ARENA_ARRAY(a, int, (size_t)p->n_types) };
    int tries = TRIES_MAX;

    (void)e;
    work_begin(&q.work, a, p);
    backfill_begin(&q.backfill, &q.work);
    q.backfill.is_in_order = q.order == AS_SLURM;
    line_up(&q);
    for (int i = 0; i < q.n; i++) {
        enum wait_reason *why = &q.work.why[q.jobs[i]];
        *why = tries > 0 ? start(&q, q.jobs[i]) : WAIT_TURN;
        if (*why == WAIT_CAPACITY)
            backfill_reserve(&q.backfill, q.jobs[i], q.n_wanted);
        tries -= *why == WAIT_POWER ? tries : q.backfill.has_head;
    }
    work_end(&q.work, out);
    return 0;
}

static const enum fifo_order fastest = FASTEST, by_chance = BY_CHANCE, in_order = FIRST,
                             as_slurm = AS_SLURM;

const struct solver solver_fifo_fastest = {
    .name = "fifo-fastest",
    .about = "the same, on a free GPU of the type hoped fastest for the job",
    .how = &fastest,
    .solve = solve,
};

const struct solver solver_fifo_random = {
    .name = "fifo-random",
    .about = "first come, first served with backfill, one job a GPU, on a random free one; ignores "
             "promises",
    .how = &by_chance,
    .solve = solve,
};

const struct solver solver_fifo_first = {
    .name = "fifo-first",
    .about = "the same, on the first free GPU",
    .how = &in_order,
    .solve = solve,
};

const struct solver solver_slurm = {
    .name = "slurm",
    .about = "Slurm as sites run it: age and priority, backfill, the first GPUs in the order of "
             "nodes that fit, one job a GPU",
    .how = &as_slurm,
    .solve = solve,
};
