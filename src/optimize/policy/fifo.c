/* First come, first served, one job a GPU: the baselines, and what most sites do. */
#include <math.h>

#include "base/rng.h"
#include "optimize/policy/work.h"

enum fifo_order { FASTEST, BY_CHANCE, FIRST };

/* How much a policy likes free GPUs of a type, of which this is the first and alone on each of
 * which a job is believed to do 'speed'. Equal likings go to the type that comes first.
 */
static double liking(const struct policy_work *w, enum fifo_order order, int gpu, double speed,
                     struct rng *rng)
{
    if (order == FIRST)
        return 1.0 / (1 + gpu);
    if (order == FASTEST)
        return speed;
    /* Each free GPU equally likely: the largest of n uniform numbers is u^(1/n). */
    return pow(rng_uniform(rng),
               1.0 / assignment_n_free(w->assignment, w->problem->gpus[gpu].type));
}

/* On the type that it likes best among those with room, or why not. */
static enum wait_reason start(struct policy_work *w, int job, enum fifo_order order, uint64_t seed)
{
    const struct problem_job *j = &w->problem->jobs[job];
    struct destination to = { 0 };
    struct yield alone;
    int gpus[GANG_MAX];
    struct rng rng;

    rng_init(&rng, seed, j->name);
    for (int type = 0; type < w->problem->n_types; type++) {
        if (!work_suits(w, job, type, &alone) ||
            !assignment_free(w->assignment, job, type, j->n_min, gpus))
            continue;
        double hope = problem_counted_on(w->problem, type, &j->kind, 1, 0).speed;
        work_prefer(&to, -liking(w, order, gpus[0], alone.speed[0] / hope, &rng), gpus, j->n_min);
    }
    if (to.n_gpus == 0)
        return assignment_never(w->assignment, job) ? WAIT_NOT : WAIT_CAPACITY;
    return work_put(w, job, &to) ? WAIT_NOT : WAIT_POWER;
}

/* In strict order: whoever cannot start for want of a GPU or of watts holds up those
 * behind it; a job that fits no GPU here does not.
 */
static int solve(const struct solver *self, struct arena *a, const struct problem *p,
                 struct plan *out, struct err *e)
{
    const enum fifo_order *order = self->how;
    bool is_blocked = false;
    struct policy_work w;

    (void)e;
    work_begin(&w, a, p);
    for (int j = 0; j < p->n_jobs; j++) {
        if (!work_is_waiting(&w, j))
            continue;
        w.why[j] = is_blocked ? WAIT_TURN : start(&w, j, *order, self->seed);
        is_blocked |= w.why[j] != WAIT_NOT;
    }
    work_end(&w, out);
    return 0;
}

static const enum fifo_order fastest = FASTEST, by_chance = BY_CHANCE, in_order = FIRST;

const struct solver solver_fifo_fastest = {
    .name = "fifo-fastest",
    .about = "the same, on a free GPU of the type believed fastest for the job",
    .how = &fastest,
    .solve = solve,
};

const struct solver solver_fifo_random = {
    .name = "fifo-random",
    .about = "first come, first served, one job a GPU, on a random free one; ignores promises",
    .how = &by_chance,
    .solve = solve,
};

const struct solver solver_fifo_first = {
    .name = "fifo-first",
    .about = "the same, on the first free GPU",
    .how = &in_order,
    .solve = solve,
};
