/* The standing fallback: each waiting job, in order, takes the place that costs least.
 *
 * The cost of a place is joules: the extra draw until the job is done, a price for every
 * GPU-second, the time that neighbours lose, and a penalty for the part of a promise that
 * would not hold. Nobody's kept promise is broken to let another in. Afterwards some of
 * those that run are offered free GPUs where they would cost less, moving included.
 */
#include <math.h>

#include "base/arena.h"
#include "catalog/snapshot.h"
#include "estimate/estimate.h"
#include "optimize/policy/board.h"
#include "optimize/policy/place.h"
#include "optimize/model/plan.h"
#include "optimize/policy/solver.h"

/* A wholly broken promise costs this many watts, for as long as it is broken and for an hour at
 * least. More than any one GPU draws: a promise is worth more than the energy of keeping it.
 */
#define BROKEN_W 1000.0
#define HORIZON_S 3600.0

/* Half-full GPUs of one kind that are looked at: they differ only in their residents'
 * promises and remaining work.
 */
#define TRIES_PER_KIND 4

/* Running jobs that are offered another GPU per cycle; all get their turn in time. */
#define MOVES_CONSIDERED 32

/* A move pays only if it saves this share of what is left, and the job has settled well. */
#define MOVE_GAIN 0.10
#define MOVE_SETTLED 2    // times settle_s

struct offer {
    double cost;       // joules and penalties; INFINITY: no offer
    double added_w;    // to the board's draw
    double taken_w;    // of what a power cap allows
    int n_gpus;
    const int *gpus;
};

struct search {
    struct board *board;
    const struct solve_options *options;
    double room_w;    // what the power cap leaves; INFINITY without a cap
    bool hit_cap;     // the last search passed over places for the cap's sake
};

/* Penalty for holding only 'low' of 'need' for 'time_s', in joules. */
static double broken(double low, double need, double time_s)
{
    return low >= need ? 0 : BROKEN_W * fmax(time_s, HORIZON_S) * (1 - low / need);
}

/* A place where the job may not fit is tried when there is no surer one. */
static double doubt(const struct board *b, const struct snap_job *j, int type)
{
    double unfit = (double)estimate_cell(b->est, j->workload, type, -1)->unfit;

    return BROKEN_W * HORIZON_S * unfit;
}

/* How long the job would take; an inference job takes its time whatever the speed. */
static double time_left_s(const struct snap_job *j, double speed)
{
    if (j->spec->kind == JOB_INFERENCE)
        return j->time_left_s;
    return j->remaining / fmax(speed, 1e-12);
}

/* What the residents of 'gpu' lose while 'job' is with them for 'time_s'; INFINITY when a
 * promise that holds now would not hold then.
 */
static double harm(const struct search *s, int gpu, int job, double time_s)
{
    const struct board *b = s->board;
    const struct board_gpu *g = &b->gpus[gpu];
    double joules = 0;

    for (int i = 0; i < g->n_jobs; i++) {
        const struct snap_job *other = &b->snapshot->jobs[g->jobs[i]];
        double low, low_then;
        double speed = board_speed(b, g->jobs[i], &low);
        double speed_then = board_speed_with(b, g->jobs[i], job, &low_then);
        if (low >= other->need && low_then < other->need)
            return INFINITY;
        double together_s = fmin(time_s, time_left_s(other, speed_then));
        double lost_s = together_s * (1 - speed_then / speed);
        if (other->spec->kind == JOB_TRAINING)    // a server takes its time whatever the speed
            joules += lost_s * (board_watts(b, gpu) + s->options->price_w);
        joules += broken(low_then, other->need, together_s) - broken(low, other->need, together_s);
    }
    return joules;
}

static bool is_held(const struct snap_job *j, int gpu)
{
    for (int i = 0; i < j->n_held; i++)
        if (j->gpus[i] == gpu)
            return true;
    return false;
}

/* What it costs to wait until these GPUs are awake: a promise is broken meanwhile. */
static double waking(const struct search *s, const struct snap_job *j, const int *gpus, int n)
{
    double wake_s = place_wake_s(s->board, gpus, n);

    return place_wake_j(s->board, s->options, gpus, n) + (j->need > 0 ? BROKEN_W * wake_s : 0);
}

/* One GPU, free or half-full. */
static void consider(struct search *s, int job, int gpu, struct offer *best)
{
    struct board *b = s->board;
    const struct snap_job *j = &b->snapshot->jobs[job];
    const struct board_gpu *g = &b->gpus[gpu];
    int type = b->snapshot->gpus[gpu].type, others[THETA_MAX];
    double low;

    for (int i = 0; i < g->n_jobs; i++)
        others[i] = b->snapshot->jobs[g->jobs[i]].workload;
    struct limited pace = board_limited(b, gpu, job);
    double speed = pace.speed * estimate_speed(b->est, j->workload, type, others, g->n_jobs, &low);
    low *= pace.low;
    double added_w = board_watts_with(b, gpu, job) - board_watts(b, gpu);
    double time_s = time_left_s(j, speed);
    double price_w = g->n_jobs ? 0 : s->options->price_w;
    double cost = (added_w + price_w) * time_s + broken(low, j->need, time_s) + doubt(b, j, type);
    if (cost >= best->cost)
        return;
    cost += harm(s, gpu, job, time_s) + (is_held(j, gpu) ? 0 : waking(s, j, &gpu, 1));
    if (cost >= best->cost)
        return;
    double taken_w = board_watts_with(b, gpu, job) - board_drawn_w(b, gpu);
    if (taken_w > s->room_w) {
        s->hit_cap = true;
        return;
    }
    int *mine = ARENA_NEW(b->arena, int);
    *mine = gpu;
    *best = (struct offer){
        .cost = cost, .added_w = added_w, .taken_w = taken_w, .n_gpus = 1, .gpus = mine
    };
}

static void consider_sharing(struct search *s, int job, int type, struct offer *best)
{
    struct board *b = s->board;

    for (int w = 0; w < b->n_workloads; w++) {
        int tries = TRIES_PER_KIND;
        for (int g = board_half(b, type, w); g >= 0 && tries > 0; g = b->gpus[g].next, tries--)
            if (board_fits(b, g, job, s->options->unfit_max))
                consider(s, job, g, best);
    }
}

static void consider_gang(struct search *s, int job, int type, int n, struct offer *best)
{
    struct board *b = s->board;
    const struct snap_job *j = &b->snapshot->jobs[job];
    int *gpus = ARENA_ARRAY(b->arena, int, (size_t)n);
    double low;

    if (!place_gang(b, job, type, n, gpus))
        return;
    double speed =
        estimate_gang_speed(b->est, j->workload, type, n, board_is_spread(b, gpus, n), &low);
    double added_w = n * (board_watts_with(b, gpus[0], job) - board_watts(b, gpus[0]));
    double time_s = time_left_s(j, speed);
    double cost = (added_w + n * s->options->price_w) * time_s + broken(low, j->need, time_s) +
                  doubt(b, j, type);
    cost += waking(s, j, gpus, n);
    if (cost >= best->cost)
        return;
    double taken_w = n * (board_watts_with(b, gpus[0], job) - board_drawn_w(b, gpus[0]));
    if (taken_w > s->room_w)
        s->hit_cap = true;
    else
        *best = (struct offer){
            .cost = cost, .added_w = added_w, .taken_w = taken_w, .n_gpus = n, .gpus = gpus
        };
}

/* The cheapest place for a waiting job: alone, beside somebody, or on as many GPUs as its
 * promise takes, in doublings.
 */
static struct offer cheapest(struct search *s, int job)
{
    struct board *b = s->board;
    const struct job_spec *spec = b->snapshot->jobs[job].spec;
    bool may_share = s->options->may_share && !spec->is_exclusive && spec->n_gpus == 1;
    struct offer best = { .cost = INFINITY };

    s->hit_cap = false;
    for (int type = 0; type < b->n_types; type++) {
        if (!place_suits(b, job, type, s->options->alone_unfit_max))
            continue;
        if (spec->n_gpus == 1 && b->n_free[type])
            consider(s, job, board_free(b, type), &best);
        if (may_share)
            consider_sharing(s, job, type, &best);
        for (int n = spec->n_gpus > 1 ? spec->n_gpus : 2; n <= spec->max_gpus; n *= 2)
            consider_gang(s, job, type, n, &best);
    }
    return best;
}

/* ---- waiting jobs ---- */

/* Nothing distinguishes two such jobs of one workload when they look for room. */
static bool is_ordinary(const struct job_spec *spec)
{
    return spec->max_gpus == 1 && !spec->is_exclusive && !spec->allowed_types;
}

static void place_waiting(struct search *s)
{
    struct board *b = s->board;
    enum wait_reason *told = ARENA_ARRAY(b->arena, enum wait_reason, (size_t)b->n_workloads);

    for (int j = b->snapshot->n_running; j < b->snapshot->n_jobs; j++) {
        const struct snap_job *job = &b->snapshot->jobs[j];
        bool is_like_others = is_ordinary(job->spec);
        if (is_like_others && told[job->workload] != WAIT_NOT) {
            b->jobs[j].reason = told[job->workload];
            continue;
        }
        struct offer best = cheapest(s, j);
        if (best.n_gpus) {
            board_put(b, j, best.gpus, best.n_gpus);
            s->room_w -= best.taken_w;
            continue;
        }
        b->jobs[j].reason =
            s->hit_cap ? WAIT_POWER : place_reason(b, j, s->options->alone_unfit_max);
        if (is_like_others)
            told[job->workload] = b->jobs[j].reason;
    }
}

/* ---- running jobs ---- */

/* Newcomers who came to a limited GPU and are left there alone do not keep its limit. */
static void limit_newcomers(struct board *b, int gpu, int limit_w)
{
    const struct board_gpu *g = &b->gpus[gpu];

    for (int i = 0; i < g->n_jobs; i++)
        if (b->snapshot->jobs[g->jobs[i]].is_running)
            return;
    for (int i = 0; i < g->n_jobs; i++)
        b->jobs[g->jobs[i]].limit_w = limit_w;
}

/* Offer free GPUs only: sharing is for newcomers. */
static void reconsider(struct search *s, int job)
{
    struct board *b = s->board;
    struct offer stay = { .cost = INFINITY }, best = { .cost = INFINITY };
    const int *here = b->jobs[job].gpus;
    int limit_w = b->jobs[job].limit_w;
    double before_w = board_drawn_w(b, here[0]);

    board_take(b, job);
    double room_w = s->room_w;
    s->room_w = INFINITY;
    consider(s, job, here[0], &stay);
    limit_newcomers(b, here[0], 0);
    s->room_w = room_w + before_w - board_drawn_w(b, here[0]);
    for (int type = 0; type < b->n_types; type++) {
        int g = board_free(b, type);
        if (g >= 0 && g != here[0] && place_suits(b, job, type, s->options->alone_unfit_max))
            consider(s, job, g, &best);
    }
    double moving = s->options->move_s * (best.added_w + s->options->price_w);
    bool pays = best.n_gpus && best.cost + moving < stay.cost * (1 - MOVE_GAIN);
    if (pays) {
        board_put(b, job, best.gpus, 1);
        s->room_w -= best.taken_w;
    } else {
        limit_newcomers(b, here[0], limit_w);
        board_put(b, job, here, 1);
        b->jobs[job].limit_w = limit_w;
        s->room_w = room_w;
    }
}

static void improve_running(struct search *s)
{
    struct board *b = s->board;
    int n = b->snapshot->n_running;
    int n_free = 0;

    for (int type = 0; type < b->n_types; type++)
        n_free += b->n_free[type];
    if (n == 0 || n_free == 0)
        return;
    double settled_s = MOVE_SETTLED * s->options->settle_s;
    /* Where to begin follows from the time alone, so that a snapshot repeats its plan. */
    int first = (int)((uint64_t)fabs(b->snapshot->now_s * 1000) % (uint64_t)n);
    for (int i = 0; i < n && i < MOVES_CONSIDERED; i++) {
        int job = (first + i) % n;
        if (b->jobs[job].n_gpus == 1 && b->snapshot->jobs[job].ran_s >= settled_s)
            reconsider(s, job);
    }
}

static int solve(const struct solver *self, struct arena *a, const struct snapshot *s,
                 const struct estimator *est, const struct solve_options *o, struct plan *out,
                 enum verdict *verdict, struct err *e)
{
    struct board b;
    struct search search = { .board = &b, .options = o, .room_w = INFINITY };

    (void)e;
    board_init(&b, a, s, est);
    if (o->power_cap_w > 0) {
        search.room_w = o->power_cap_w;
        for (int g = 0; g < s->n_gpus; g++)
            search.room_w -= board_drawn_w(&b, g);
    }
    place_waiting(&search);
    if (o->may_move)
        improve_running(&search);
    board_plan(&b, self->name, out);
    plan_price(a, out, s, est);
    *verdict = VERDICT_FEASIBLE;
    return 0;
}

const struct solver solver_greedy = { .name = "greedy", .solve = solve };
