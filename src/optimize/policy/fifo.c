/* First come, first served, one job a GPU: the baselines, and what most sites do. */
#include <math.h>

#include "base/rng.h"
#include "optimize/policy/solver.h"
#include "optimize/policy/work.h"

/* How much a policy likes these free GPUs of a type for a job, alone on each of which it is
 * believed to do 'speed'. Equal likings go to the type that comes first.
 */
typedef double liking_f(const struct work *w, const int *gpus, double speed, struct rng *rng);

struct taste {
    liking_f *liking;
};

static double like_fastest(const struct work *w, const int *gpus, double speed, struct rng *rng)
{
    (void)w, (void)gpus, (void)rng;
    return speed;
}

/* By chance, each free GPU equally likely: the largest of n uniform numbers is u^(1/n). */
static double like_random(const struct work *w, const int *gpus, double speed, struct rng *rng)
{
    (void)speed;
    return pow(rng_uniform(rng), 1.0 / desk_n_free(w->desk, w->problem->gpus[gpus[0]].type));
}

static double like_first(const struct work *w, const int *gpus, double speed, struct rng *rng)
{
    (void)w, (void)speed, (void)rng;
    return 1.0 / (1 + gpus[0]);
}

/* On the type that it likes best among those with room, or why not. */
static enum wait_reason start(struct work *w, int job, liking_f *liking, uint64_t seed)
{
    const struct problem_job *j = &w->problem->jobs[job];
    int best_type = -1, gpus[GANG_MAX];
    double best = -1;
    struct yield alone;
    struct rng rng;

    rng_init(&rng, seed, j->name);
    for (int type = 0; type < w->problem->n_types; type++) {
        if (!work_suits(w, job, type, &alone) || !desk_free(w->desk, job, type, j->n_min, gpus))
            continue;
        double hope = (double)problem_trust(w->problem, type, j->kind, 1).speed;
        double like = liking(w, gpus, alone.speed[0] / hope, &rng);
        if (like > best) {
            best = like;
            best_type = type;
        }
    }
    if (best_type < 0)
        return desk_never(w->desk, &w->stock, job) ? WAIT_NOT : WAIT_CAPACITY;
    desk_free(w->desk, job, best_type, j->n_min, gpus);
    return desk_put(w->desk, job, gpus, j->n_min, -1) ? WAIT_NOT : WAIT_POWER;
}

/* In strict order: whoever cannot start for want of a GPU or of watts holds up those
 * behind it; a job that fits no GPU here does not.
 */
static int solve(const struct solver *self, struct arena *a, const struct problem *p,
                 struct plan *out, enum verdict *verdict, struct err *e)
{
    const struct taste *taste = self->how;
    bool is_blocked = false;
    struct work w;

    (void)e;
    work_begin(&w, a, p);
    for (int j = 0; j < p->n_jobs; j++) {
        if (!work_is_waiting(&w, j))
            continue;
        w.why[j] = is_blocked ? WAIT_TURN : start(&w, j, taste->liking, self->seed);
        is_blocked |= w.why[j] != WAIT_NOT;
    }
    work_end(&w, out);
    *verdict = VERDICT_FEASIBLE;
    return 0;
}

static const struct taste fastest = { like_fastest }, by_chance = { like_random },
                          in_order = { like_first };

const struct solver solver_fifo_fastest = { .name = "fifo-fastest",
                                            .how = &fastest,
                                            .solve = solve };
const struct solver solver_fifo_random = { .name = "fifo-random",
                                           .how = &by_chance,
                                           .solve = solve };
const struct solver solver_fifo_first = { .name = "fifo-first", .how = &in_order, .solve = solve };
