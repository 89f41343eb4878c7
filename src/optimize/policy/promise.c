#include "optimize/policy/promise.h"

#include <math.h>

#include "base/arena.h"
#include "catalog/snapshot.h"
#include "estimate/estimate.h"
#include "optimize/policy/place.h"
#include "optimize/model/plan.h"
#include "optimize/policy/solver.h"

/* Half-full GPUs of one kind that are looked at: they differ only in their residents'
 * promises and remaining work.
 */
#define TRIES_PER_KIND 4

/* Where no type keeps the promise, those are wanted that do at least this part of the most. Waiting
 * for the fastest alone, or taking whatever is free, kept fewer promises or used more energy over
 * the reference traces.
 */
#define FASTEST_PART 0.7

/* Where a job could go; n_gpus 0: nowhere. */
struct seat {
    double cost;    // joules, or where no type keeps the promise: the slower the more
    int n_gpus;
    const int *gpus;
};

static void forget_company(struct queue *q)
{
    for (int w = 0; w < q->board.n_workloads; w++)
        q->no_company[w] = INFINITY;
}

void queue_init(struct queue *q, struct arena *a, const struct snapshot *s,
                const struct estimator *est, const struct solve_options *o,
                const struct sharing *sharing)
{
    struct board *b = &q->board;

    *q = (struct queue){ .options = o, .sharing = sharing };
    board_init(b, a, s, est);
    q->n_usable = ARENA_ARRAY(a, int, (size_t)b->n_types);
    q->n_wanted = ARENA_ARRAY(a, int, (size_t)b->n_types);
    q->is_awaited = ARENA_ARRAY(a, bool, (size_t)b->n_types);
    q->no_company = ARENA_ARRAY(a, double, (size_t)b->n_workloads);
    for (int g = 0; g < s->n_gpus; g++)
        q->n_usable[s->gpus[g].type] += s->gpus[g].may_start;
    forget_company(q);
}

/* ---- what a job wants ---- */

/* As "gogh" does, so many standard deviations of a speed are hoped for: so that types get tried;
 * more where no type is believed to keep the promise.
 */
#define HOPE_SD 0.5
#define HOPE_LOST_SD 2.5

static double hope(const struct board *b, int job, int type, double n_sd)
{
    int w = b->snapshot->jobs[job].workload;

    return exp(n_sd * (double)estimate_cell(b->est, w, type, -1)->sd);
}

/* The fewest GPUs, in doublings, with which 'type' keeps the promise; 0: it does not. */
static int n_that_keep(const struct board *b, int job, int type, int n_usable, double more)
{
    const struct snap_job *j = &b->snapshot->jobs[job];
    double low;

    for (int n = j->spec->n_gpus; n <= j->spec->max_gpus && n <= n_usable; n *= 2) {
        estimate_gang_speed(b->est, j->workload, type, n, board_is_far(b, j->spec, type, n), &low);
        if (low * more >= j->need)
            return n;
    }
    return 0;
}

static bool is_possible(const struct queue *q, int job, int type, double unfit_max)
{
    const struct board *b = &q->board;
    const struct job_spec *spec = b->snapshot->jobs[job].spec;

    return q->n_usable[type] >= spec->n_gpus && board_seats(b, spec, type) >= spec->n_gpus &&
           place_suits(b, job, type, unfit_max);
}

/* A type where it may not fit is tried when there is no surer one. */
static double unfit_max_for(const struct queue *q, int job)
{
    for (int type = 0; type < q->board.n_types; type++)
        if (is_possible(q, job, type, q->options->unfit_max))
            return q->options->unfit_max;
    return q->options->alone_unfit_max;
}

/* The types that come nearest. */
static void want_fastest(struct queue *q, int job, double unfit_max)
{
    const struct board *b = &q->board;
    const struct snap_job *j = &b->snapshot->jobs[job];
    double most = 0;

    for (int type = 0; type < b->n_types; type++)
        if (is_possible(q, job, type, unfit_max))
            most = fmax(most, (double)estimate_cell(b->est, j->workload, type, -1)->speed);
    for (int type = 0; type < b->n_types; type++) {
        double speed = (double)estimate_cell(b->est, j->workload, type, -1)->speed;
        if (is_possible(q, job, type, unfit_max) && speed >= FASTEST_PART * most)
            q->n_wanted[type] = j->spec->n_gpus;
    }
}

/* The types that keep the promise, so many standard deviations hoped for; false: none does. */
static bool want_keepers(struct queue *q, int job, double unfit_max, double n_sd)
{
    const struct board *b = &q->board;
    bool is_kept = false;

    for (int type = 0; type < b->n_types; type++) {
        q->n_wanted[type] = 0;
        if (is_possible(q, job, type, unfit_max))
            q->n_wanted[type] =
                n_that_keep(b, job, type, q->n_usable[type], hope(b, job, type, n_sd));
        is_kept |= q->n_wanted[type] > 0;
    }
    return is_kept;
}

bool queue_want(struct queue *q, int job)
{
    double unfit_max = unfit_max_for(q, job);

    if (want_keepers(q, job, unfit_max, 0))
        return true;
    if (!want_keepers(q, job, unfit_max, HOPE_LOST_SD))
        want_fastest(q, job, unfit_max);
    return false;
}

/* ---- where it could go ---- */

/* Free GPUs of a type that it wants. */
static void consider_free(struct queue *q, int job, int type, bool is_kept, struct seat *best)
{
    const struct board *b = &q->board;
    int n = q->n_wanted[type];

    if (n == 0 || q->is_awaited[type] || b->n_free[type] < n)
        return;
    int *gpus = ARENA_ARRAY(b->arena, int, (size_t)n);
    if (!place_gang(b, job, type, n, gpus))
        return;
    struct place_offer offer = n > 1 ? place_weigh_gang(b, q->options, job, gpus, n)
                                     : place_weigh(b, q->options, job, gpus[0]);
    double speed = (double)estimate_cell(b->est, b->snapshot->jobs[job].workload, type, -1)->speed;
    double cost = is_kept ? offer.joules / hope(b, job, type, HOPE_SD)
                          : -speed * hope(b, job, type, HOPE_LOST_SD);
    if (best->n_gpus == 0 || cost < best->cost)
        *best = (struct seat){ .cost = cost, .n_gpus = n, .gpus = gpus };
}

int queue_free_gpu(struct queue *q, int job)
{
    struct seat best = { 0 };

    for (int type = 0; type < q->board.n_types; type++)
        if (q->n_wanted[type] == 1)
            consider_free(q, job, type, true, &best);
    return best.n_gpus ? best.gpus[0] : -1;
}

/* Beside somebody, where everybody's promise holds. */
static void consider_company(struct queue *q, int job, int gpu, struct seat *best)
{
    const struct board *b = &q->board;

    if (!board_fits(b, gpu, job, q->options->unfit_max))
        return;
    struct place_offer offer = place_weigh(b, q->options, job, gpu);
    if (!offer.keeps || offer.share < q->sharing->share_min ||
        (best->n_gpus && offer.joules >= best->cost))
        return;
    int *mine = ARENA_NEW(b->arena, int);
    *mine = gpu;
    *best = (struct seat){ .cost = offer.joules, .n_gpus = 1, .gpus = mine };
}

/* What one sought in vain, others of its workload that need as much need not seek, until somebody
 * goes to a free GPU, where there is room then.
 */
static struct seat seek_company(struct queue *q, int job)
{
    const struct board *b = &q->board;
    const struct snap_job *j = &b->snapshot->jobs[job];
    struct seat best = { 0 };

    if (j->need >= q->no_company[j->workload])
        return best;
    for (int type = 0; type < b->n_types; type++) {
        if (!place_suits(b, job, type, q->options->unfit_max))
            continue;
        for (int w = 0; w < b->n_workloads; w++) {
            int g = board_half(b, type, w);
            for (int tries = 0; g >= 0 && tries < TRIES_PER_KIND; tries++, g = b->gpus[g].next)
                consider_company(q, job, g, &best);
        }
    }
    if (best.n_gpus == 0 && !j->spec->allowed_types)
        q->no_company[j->workload] = j->need;
    return best;
}

static struct seat seek(struct queue *q, int job, bool is_kept)
{
    const struct job_spec *spec = q->board.snapshot->jobs[job].spec;
    bool shares =
        q->sharing->is_allowed && q->options->may_share && !spec->is_exclusive && spec->n_gpus == 1;
    struct seat best = shares ? seek_company(q, job) : (struct seat){ 0 };

    if (best.n_gpus && q->sharing->is_preferred)
        return best;
    for (int type = 0; type < q->board.n_types; type++)
        consider_free(q, job, type, is_kept, &best);
    return best;
}

/* ---- the queue ---- */

/* Why nothing was found; and from now on it waits for the types that it wants. */
static enum wait_reason await(struct queue *q, int job)
{
    const struct board *b = &q->board;
    enum wait_reason why = place_reason(b, job, q->options->alone_unfit_max);
    bool is_second = false, is_choosy = false;

    for (int type = 0; type < b->n_types; type++) {
        is_second |= q->n_wanted[type] > 0 && q->is_awaited[type];
        is_choosy |= q->n_wanted[type] == 0 && b->n_free[type] > 0 &&
                     is_possible(q, job, type, q->options->unfit_max);
        q->is_awaited[type] |= q->n_wanted[type] > 0;
    }
    if (why != WAIT_CAPACITY)
        return why;
    return is_second ? WAIT_TURN : is_choosy ? WAIT_PROMISE : WAIT_CAPACITY;
}

static enum wait_reason serve(struct queue *q, int job)
{
    struct board *b = &q->board;
    bool is_kept = queue_want(q, job);
    struct seat seat = seek(q, job, is_kept);

    if (seat.n_gpus == 0)
        return await(q, job);
    if (b->gpus[seat.gpus[0]].n_jobs == 0)
        forget_company(q);
    board_put(b, job, seat.gpus, seat.n_gpus);
    if (q->options->power_cap_w <= 0 || place_drawn_w(b) <= q->options->power_cap_w)
        return WAIT_NOT;
    board_take(b, job);
    q->is_out_of_watts = true;
    return WAIT_POWER;
}

void queue_serve(struct queue *q)
{
    const struct snapshot *s = q->board.snapshot;

    for (int j = s->n_running; j < s->n_jobs; j++)
        q->board.jobs[j].reason = q->is_out_of_watts ? WAIT_TURN : serve(q, j);
}

void queue_plan(struct queue *q, const char *made_by, struct plan *out)
{
    place_limits(&q->board, q->options);
    board_plan(&q->board, made_by, out);
}
