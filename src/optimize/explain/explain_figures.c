/* How a job would go somewhere: speed, watts, joules, and what its neighbours lose. */
#include <assert.h>
#include <math.h>

#include "base/arena.h"
#include "estimate/limits.h"
#include "optimize/explain/explain_inner.h"

/* ---- the plan without the job ---- */

/* What an empty GPU draws: to be without it saves the rest. */
static double rest_w(const struct explain_asking *q, int type)
{
    const struct gpu_type *t = &q->snapshot->catalog->types[type];

    return fmax(q->options->may_sleep ? t->sleep_w : t->idle_w, 0);
}

static void seat(struct explain_asking *q, const int *gpus, int n, int limit_w)
{
    for (int i = 0; i < n; i++) {
        struct board_gpu *g = &q->board.gpus[gpus[i]];
        assert(g->n_jobs < THETA_MAX);
        g->jobs[g->n_jobs++] = q->job;
    }
    q->board.jobs[q->job].gpus = gpus;
    q->board.jobs[q->job].n_gpus = n;
    q->board.jobs[q->job].limit_w = limit_w;
}

static void unseat(struct explain_asking *q, const int *gpus, int n)
{
    for (int i = 0; i < n; i++) {
        struct board_gpu *g = &q->board.gpus[gpus[i]];
        int k = 0;
        while (g->jobs[k] != q->job)
            k++;
        for (g->n_jobs--; k < g->n_jobs; k++)
            g->jobs[k] = g->jobs[k + 1];
    }
    q->board.jobs[q->job].gpus = NULL;
    q->board.jobs[q->job].n_gpus = 0;
}

static double drawn_w(const struct explain_asking *q, const int *gpus, int n)
{
    double w = 0;

    for (int i = 0; i < n; i++)
        w += board_drawn_w(&q->board, gpus[i]);
    return w;
}

/* What a cap leaves for the job, from the plan's watts: there empty GPUs are asleep, under a cap they
 * count as idle.
 */
static double room_under_cap(struct explain_asking *q, const struct plan *p)
{
    const struct plan_job *pj = q->placed;
    double all_w = p->watts;

    for (int g = 0; g < q->snapshot->n_gpus; g++)
        if (q->board.gpus[g].n_jobs == 0)
            all_w += board_drawn_w(&q->board, g) - board_watts(&q->board, g);
    all_w -= drawn_w(q, pj->gpus, pj->n_gpus);
    unseat(q, pj->gpus, pj->n_gpus);
    all_w += drawn_w(q, pj->gpus, pj->n_gpus);
    return q->options->power_cap_w - all_w;
}

void explain_lay(struct explain_asking *q, const struct plan *p)
{
    board_lay(&q->board, q->arena, q->snapshot, q->est, p);
    q->room_w = INFINITY;
    if (q->options->power_cap_w > 0)
        q->room_w = room_under_cap(q, p);
    else
        unseat(q, q->placed->gpus, q->placed->n_gpus);
}

/* ---- figures ---- */

double explain_time_s(const struct snap_job *j, double speed)
{
    if (j->spec->kind == JOB_INFERENCE)
        return j->time_left_s;
    return j->remaining / fmax(speed, 1e-12);
}

/* As far above as 'low' is below, on the scale that speeds scatter on; 'at' is what the power limit
 * does, which never makes anybody faster.
 */
static double high_of(const struct explain_asking *q, const struct candidate *c, const int *others,
                      int n, struct limited at)
{
    const struct cell_estimate *cell =
        estimate_cell(q->est, q->j->workload, c->type, n == 1 ? others[0] : -1);
    double sd = (double)cell->sd;

    if (c->n_gpus > 1 || n > 1)
        return c->low > 0 ? c->speed * c->speed / c->low : c->speed;
    return c->speed * exp(q->est->z * sd + sd * sd / 2) * fmin(at.speed / at.low, 1 / at.speed);
}

/* What follows from speeds and watts; 'n_new' GPUs are in use because of it, and neighbours lose
 * 'lost_j' and 'lost_s' GPU-seconds meanwhile.
 */
static void settle(const struct explain_asking *q, struct candidate *c, int n_new, double lost_j,
                   double lost_s)
{
    double time_s = explain_time_s(q->j, c->speed), price_w = q->options->price_w;

    c->joules = c->speed > 0 ? c->added_w * time_s + lost_j : (double)NAN;
    double wake_s = c->n_gpus * c->wake_s;
    c->joules += wake_s * fmax(q->snapshot->catalog->types[c->type].idle_w, 0);
    c->cost_j = c->joules + price_w * (n_new * time_s + lost_s + wake_s);
    c->margin = q->j->need > 0 ? c->low / q->j->need - 1 : (double)NAN;
}

/* Alone on 'n_gpus' whole GPUs, under a limit. */
static void figure_alone(const struct explain_asking *q, struct candidate *c, bool is_spread,
                         int limit_w)
{
    int w = q->j->workload;
    double rate = job_serves(q->j->spec);
    struct limited at = estimate_limited(q->est, c->type, &w, &rate, 1, limit_w);

    c->speed = at.speed * estimate_gang_speed(q->est, w, c->type, c->n_gpus, is_spread, &c->low);
    c->low *= at.low;
    c->limit_w = limit_w;
    c->high = high_of(q, c, NULL, 0, at);
    c->unfit = (double)estimate_cell(q->est, w, c->type, -1)->unfit;
    c->watts = c->n_gpus * at.watts;
    c->added_w = c->watts - c->n_gpus * rest_w(q, c->type);
    c->neighbour_speed = NAN;
    c->neighbour_keeps = true;
    settle(q, c, c->n_gpus, 0, 0);
}

/* A promise that holds without a limit holds under it. */
void explain_best_alone(const struct explain_asking *q, struct candidate *c, bool is_spread)
{
    int offered[LIMITS_OFFERED], w = q->j->workload;
    double rate = job_serves(q->j->spec);
    int n = limits_offer(&q->snapshot->catalog->types[c->type], offered);

    figure_alone(q, c, is_spread, 0);
    if (!q->options->may_limit || !estimate_may_limit(q->est, c->type, &w, &rate, 1))
        return;
    for (int i = 0; i < n; i++) {
        struct candidate under = *c;
        figure_alone(q, &under, is_spread, offered[i]);
        if (under.cost_j < c->cost_j && (under.low >= q->j->need || c->low < q->j->need))
            *c = under;
    }
}

/* What one neighbour had, and what it has with the job beside it. */
struct harm {
    int job;
    double speed, low;
    double speed_then, low_then;
};

/* Neighbours on a GPU into 'out' (THETA_MAX), as they are without the job; returns how many. */
static int neighbours_of(const struct explain_asking *q, int gpu, struct harm *out)
{
    const struct board_gpu *g = &q->board.gpus[gpu];

    for (int i = 0; i < g->n_jobs; i++) {
        out[i].job = g->jobs[i];
        out[i].speed = board_speed(&q->board, g->jobs[i], &out[i].low);
    }
    return g->n_jobs;
}

/* Add up what neighbours on one GPU lose, which drew 'before_w' with them. */
static void count_harm(const struct explain_asking *q, struct candidate *c, struct harm *h, int n,
                       double before_w, double *lost_j, double *lost_s)
{
    double time_s = explain_time_s(q->j, c->speed);

    for (int i = 0; i < n; i++) {
        const struct snap_job *other = &q->snapshot->jobs[h[i].job];
        h[i].speed_then = board_speed(&q->board, h[i].job, &h[i].low_then);
        double share = h[i].speed_then / h[i].speed;
        if (c->neighbour < 0 || share < c->neighbour_speed) {
            c->neighbour = h[i].job;
            c->neighbour_speed = share;
        }
        c->neighbour_keeps &= h[i].low_then >= other->need;
        if (h[i].low >= other->need && h[i].low_then < other->need)
            c->verdict = CANDIDATE_BREAKS_NEIGHBOUR;
        if (other->spec->kind != JOB_TRAINING)    // a server takes its time whatever the speed
            continue;
        double lost = fmin(time_s, explain_time_s(other, h[i].speed_then)) * (1 - share);
        *lost_j += lost * (before_w - rest_w(q, c->type));
        *lost_s += lost;
    }
}

/* How the job itself goes where it sits, and whether it fits beside those there. */
static void figure_own(const struct explain_asking *q, struct candidate *c, const int *gpus)
{
    c->speed = board_speed(&q->board, q->job, &c->low);
    c->unfit = 0;
    for (int i = 0; i < c->n_gpus; i++) {
        const struct board_gpu *g = &q->board.gpus[gpus[i]];
        int workloads[THETA_MAX], others[THETA_MAX], n_others = 0;
        for (int k = 0; k < g->n_jobs; k++) {
            workloads[k] = q->snapshot->jobs[g->jobs[k]].workload;
            if (g->jobs[k] != q->job)
                others[n_others++] = workloads[k];
        }
        c->unfit = fmax(c->unfit, estimate_unfit(q->est, c->type, workloads, g->n_jobs));
        c->watts += board_watts(&q->board, gpus[i]);
        if (i == 0)
            c->high = high_of(q, c, others, n_others, board_limited(&q->board, gpus[i], -1));
    }
}

void explain_there(struct explain_asking *q, struct candidate *c, const int *gpus, int limit_w)
{
    struct harm(*was)[THETA_MAX] = arena_array(q->arena, (size_t)c->n_gpus, sizeof *was);
    int *n_was = ARENA_ARRAY(q->arena, int, (size_t)c->n_gpus), n_new = 0;
    double *before_w = ARENA_ARRAY(q->arena, double, (size_t)c->n_gpus), lost_j = 0, lost_s = 0;

    for (int i = 0; i < c->n_gpus; i++) {
        n_was[i] = neighbours_of(q, gpus[i], was[i]);
        before_w[i] = n_was[i] ? board_watts(&q->board, gpus[i]) : rest_w(q, c->type);
        c->added_w -= before_w[i];
        n_new += n_was[i] == 0;
    }
    seat(q, gpus, c->n_gpus, limit_w);
    figure_own(q, c, gpus);
    c->limit_w = limit_w;
    c->added_w += c->watts;
    c->neighbour_speed = NAN;
    c->neighbour_keeps = true;
    for (int i = 0; i < c->n_gpus; i++)
        count_harm(q, c, was[i], n_was[i], before_w[i], &lost_j, &lost_s);
    unseat(q, gpus, c->n_gpus);
    settle(q, c, n_new, lost_j, lost_s);
}
