/* First come, first served, one job a GPU: the baselines, and what most sites do. */
#include <math.h>

#include "base/arena.h"
#include "base/rng.h"
#include "catalog/snapshot.h"
#include "estimate/estimate.h"
#include "optimize/policy/board.h"
#include "optimize/policy/place.h"
#include "optimize/model/plan.h"
#include "optimize/policy/solver.h"

/* How much a policy likes a type for a job; less than 0 is no. Equal likings go to the
 * type that comes first.
 */
typedef double liking_f(const struct board *b, int job, int type, struct rng *rng);

struct taste {
    liking_f *liking;
};

static double like_fastest(const struct board *b, int job, int type, struct rng *rng)
{
    (void)rng;
    return (double)estimate_cell(b->est, b->snapshot->jobs[job].workload, type, -1)->speed;
}

/* By chance, each free GPU equally likely: the largest of n uniform numbers is u^(1/n). */
static double like_random(const struct board *b, int job, int type, struct rng *rng)
{
    (void)job;
    return pow(rng_uniform(rng), 1.0 / b->n_free[type]);
}

static double like_first(const struct board *b, int job, int type, struct rng *rng)
{
    (void)job;
    (void)rng;
    return 1.0 / (1 + board_free(b, type));
}

/* The type it likes best among those with room, if there is one. */
static bool start_next(struct board *b, int job, liking_f *liking, struct rng *rng,
                       double unfit_max)
{
    int n = b->snapshot->jobs[job].spec->n_gpus;
    int *gpus = ARENA_ARRAY(b->arena, int, (size_t)n);
    int best_type = -1;
    double best = -1;

    for (int type = 0; type < b->n_types; type++) {
        if (!b->n_free[type] || !place_suits(b, job, type, unfit_max) ||
            !place_gang(b, job, type, n, gpus))
            continue;
        double like = liking(b, job, type, rng);
        if (like > best) {
            best = like;
            best_type = type;
        }
    }
    if (best_type < 0)
        return false;
    place_gang(b, job, best_type, n, gpus);
    board_put(b, job, gpus, n);
    return true;
}

/* Start one job, or say why not. */
static enum wait_reason try_next(struct board *b, int job, const struct solver *self,
                                 const struct solve_options *o, liking_f *liking)
{
    struct rng rng;

    /* Far apart for neighbouring seeds and jobs, so that runs over seeds are independent. */
    rng_init(&rng, self->seed ^ (uint64_t)b->snapshot->jobs[job].id * 0x9e3779b97f4a7c15u,
             self->name);
    if (!start_next(b, job, liking, &rng, o->alone_unfit_max))
        return place_reason(b, job, o->alone_unfit_max);
    if (o->power_cap_w <= 0 || place_drawn_w(b) <= o->power_cap_w)
        return WAIT_NOT;
    board_take(b, job);
    return WAIT_POWER;
}

/* In strict order: whoever cannot start for want of a GPU or of watts holds up those
 * behind it; a job that fits no GPU here does not.
 */
static int solve(const struct solver *self, struct arena *a, const struct snapshot *s,
                 const struct estimator *est, const struct solve_options *o, struct plan *out,
                 enum verdict *verdict, struct err *e)
{
    const struct taste *taste = self->how;
    struct board b;
    bool is_blocked = false;

    (void)e;
    board_init(&b, a, s, est);
    for (int j = s->n_running; j < s->n_jobs; j++) {
        enum wait_reason why = is_blocked ? WAIT_TURN : try_next(&b, j, self, o, taste->liking);
        b.jobs[j].reason = why;
        is_blocked |= why == WAIT_CAPACITY || why == WAIT_POWER;
    }
    place_limits(&b, o);
    board_plan(&b, self->name, out);
    *verdict = VERDICT_FEASIBLE;
    return 0;
}

static const struct taste fastest = { like_fastest }, by_chance = { like_random },
                          in_order = { like_first };

const struct solver solver_fifo_fastest = { .name = "fifo-fastest",
                                            .how = &fastest,
                                            .plan = solve };
const struct solver solver_fifo_random = { .name = "fifo-random",
                                           .how = &by_chance,
                                           .plan = solve };
const struct solver solver_fifo_first = { .name = "fifo-first", .how = &in_order, .plan = solve };
