#include "optimize/policy/place.h"

#include <math.h>

#include "base/arena.h"
#include "catalog/catalog.h"
#include "estimate/estimate.h"
#include "estimate/limits.h"
#include "optimize/policy/solver.h"

/* A limit is changed under residents that stay when it saves this part of the joules; estimates
 * move with every measurement, and limits shall not flutter with them.
 */
#define RELIMIT_GAIN 0.03

bool place_suits(const struct board *b, int job, int type, double unfit_max)
{
    const struct snap_job *j = &b->snapshot->jobs[job];

    return job_allows(j->spec, type) &&
           (double)estimate_cell(b->est, j->workload, type, -1)->unfit <= unfit_max;
}

/* What each node has of a type. */
struct nodes {
    int *n_free;
    double *wake_s;    // of the last of these to wake
};

static struct nodes nodes_count(const struct board *b, int type)
{
    size_t n_nodes = (size_t)b->snapshot->n_nodes;
    struct nodes x = { ARENA_ARRAY(b->arena, int, n_nodes),
                       ARENA_ARRAY(b->arena, double, n_nodes) };

    for (int g = board_free(b, type); g >= 0; g = b->gpus[g].next) {
        const struct snap_gpu *gpu = &b->snapshot->gpus[g];
        x.n_free[gpu->node]++;
        x.wake_s[gpu->node] = fmax(x.wake_s[gpu->node], gpu->wake_s);
    }
    return x;
}

/* The node with the fewest free GPUs that still has 'n', of those that wake first; -1 for none. */
static int tightest_node(const struct board *b, const struct nodes *x, int n)
{
    int best = -1;

    for (int i = 0; i < b->snapshot->n_nodes; i++)
        if (x->n_free[i] >= n &&
            (best < 0 || x->wake_s[i] < x->wake_s[best] ||
             (!(x->wake_s[i] > x->wake_s[best]) && x->n_free[i] < x->n_free[best])))
            best = i;
    return best;
}

/* A node for a gang of 'n', or -1; what was searched for in vain is remembered. */
static int node_for(const struct board *b, int type, int n)
{
    if (n > b->n_node[type] || n >= b->no_node[type])
        return -1;
    struct nodes x = nodes_count(b, type);
    int node = tightest_node(b, &x, n);
    if (node < 0)
        b->no_node[type] = n;
    return node;
}

/* 'n_here' free GPUs on each of 'n_nodes' nodes, those with the fewest to spare first. */
static bool place_evenly(const struct board *b, int type, int n_here, int n_nodes, int *out)
{
    struct nodes x = nodes_count(b, type);
    int found = 0;

    for (int k = 0; k < n_nodes; k++) {
        int best = tightest_node(b, &x, n_here);
        if (best < 0)
            return false;
        x.n_free[best] = 0;
        for (int g = board_free(b, type), n = 0; n < n_here; g = b->gpus[g].next)
            if (b->snapshot->gpus[g].node == best) {
                out[found++] = g;
                n++;
            }
    }
    return true;
}

bool place_gang(const struct board *b, int job, int type, int n, int *out)
{
    int node, found = 0;

    if (b->n_free[type] < n)
        return false;
    int n_nodes = b->snapshot->jobs[job].spec->n_nodes;
    if (n_nodes > 1)
        return place_evenly(b, type, n / n_nodes, n_nodes, out);
    node = n > 1 ? node_for(b, type, n) : -1;
    if (n > 1 && node < 0 && n_nodes == 1)
        return false;
    for (int g = board_free(b, type); g >= 0 && found < n; g = b->gpus[g].next)
        if (node < 0 || b->snapshot->gpus[g].node == node)
            out[found++] = g;
    return found == n;
}

double place_wake_s(const struct board *b, const int *gpus, int n)
{
    double wake_s = 0;

    for (int i = 0; i < n; i++)
        wake_s = fmax(wake_s, b->snapshot->gpus[gpus[i]].wake_s);
    return wake_s;
}

double place_wake_j(const struct board *b, const struct solve_options *o, const int *gpus, int n)
{
    const struct snapshot *s = b->snapshot;
    double joules = 0;

    for (int i = 0; i < n; i++) {
        const struct snap_gpu *g = &s->gpus[gpus[i]];
        joules += g->wake_s * (fmax(s->catalog->types[g->type].idle_w, 0) + o->price_w);
    }
    return joules;
}

enum wait_reason place_reason(const struct board *b, int job, double unfit_max)
{
    const struct job_spec *spec = b->snapshot->jobs[job].spec;
    enum wait_reason why = WAIT_TYPE;

    for (int type = 0; type < b->n_types; type++) {
        if (!job_allows(spec, type) || b->n_all[type] == 0)
            continue;
        if (board_seats(b, spec, type) < spec->n_gpus) {
            why = why == WAIT_TYPE ? WAIT_GANG : why;
            continue;
        }
        if (place_suits(b, job, type, unfit_max))
            return WAIT_CAPACITY;
        why = WAIT_MEMORY;
    }
    return why;
}

double place_drawn_w(const struct board *b)
{
    double w = 0;

    for (int g = 0; g < b->snapshot->n_gpus; g++)
        w += board_drawn_w(b, g);
    return w;
}

/* ---- company ---- */

/* Everybody on a GPU, as they would go without a power limit. */
struct company {
    const struct estimator *est;
    const struct gpu_type *type;
    int type_index, n;
    const struct snap_job *jobs[THETA_MAX + 1];
    int workloads[THETA_MAX + 1];
    double rates[THETA_MAX + 1];    // that servers are asked for
    double speed[THETA_MAX + 1], low[THETA_MAX + 1];
    double share[THETA_MAX + 1];    // of the speed alone
};

/* Job 'job' beside 'others'; a gang is as fast as its most disturbed member. */
static void meet(const struct board *b, int job, int type, const int *others, int n_others,
                 struct company *c)
{
    const struct plan_job *pj = &b->jobs[job];
    int w = b->snapshot->jobs[job].workload, i = c->n++;
    double alone = (double)estimate_cell(b->est, w, type, -1)->speed;

    c->jobs[i] = &b->snapshot->jobs[job];
    c->speed[i] = estimate_speed(b->est, w, type, others, n_others, &c->low[i]);
    c->share[i] = c->speed[i] / alone;
    if (pj->n_gpus < 2)
        return;
    c->speed[i] =
        c->share[i] * estimate_gang_speed(b->est, w, type, pj->n_gpus,
                                          board_is_spread(b, pj->gpus, pj->n_gpus), &c->low[i]);
    c->low[i] *= c->share[i];
}

static struct company company_of(const struct board *b, int gpu, int extra)
{
    const struct board_gpu *g = &b->gpus[gpu];
    int type = b->snapshot->gpus[gpu].type, n = g->n_jobs + (extra >= 0);
    int jobs[THETA_MAX + 1], others[THETA_MAX + 1];
    struct company c = { .est = b->est,
                         .type = &b->snapshot->catalog->types[type],
                         .type_index = type };

    for (int i = 0; i < n; i++) {
        jobs[i] = i < g->n_jobs ? g->jobs[i] : extra;
        c.workloads[i] = b->snapshot->jobs[jobs[i]].workload;
        c.rates[i] = job_serves(b->snapshot->jobs[jobs[i]].spec);
    }
    for (int i = 0; i < n; i++) {
        int n_others = 0;
        for (int k = 0; k < n; k++)
            if (k != i)
                others[n_others++] = c.workloads[k];
        meet(b, jobs[i], type, others, n_others, &c);
    }
    return c;
}

/* All of them under a limit. */
static struct limited company_limited(const struct company *c, int limit_w)
{
    return estimate_limited(c->est, c->type_index, c->workloads, c->rates, c->n, limit_w);
}

/* What an empty GPU draws: to be without it saves the rest. */
static double rest_w(const struct gpu_type *t, const struct solve_options *o)
{
    return fmax(o->may_sleep ? t->sleep_w : t->idle_w, 0);
}

/* ---- power limits ---- */

/* Joules for the work done: what a server does is the same under any limit that it can bear. */
static double joules_per_work(const struct company *c, const struct solve_options *o, int limit_w)
{
    struct limited at = company_limited(c, limit_w);
    double work = 0;

    for (int i = 0; i < c->n; i++)
        work += c->jobs[i]->spec->kind == JOB_INFERENCE ? 1 : c->share[i] * at.speed;
    return (at.watts - rest_w(c->type, o) + o->price_w) / work;
}

/* Do all promises hold? */
static bool holds_at(const struct company *c, int limit_w)
{
    double pace = company_limited(c, limit_w).low;

    for (int i = 0; i < c->n; i++)
        if (c->low[i] * pace < c->jobs[i]->need)
            return false;
    return true;
}

/* Does every promise still hold that holds without a limit? */
static bool bears(const struct company *c, int limit_w)
{
    double free_pace = company_limited(c, 0).low, pace = company_limited(c, limit_w).low;

    for (int i = 0; i < c->n; i++)
        if (c->low[i] * pace < c->jobs[i]->need && c->low[i] * free_pace >= c->jobs[i]->need)
            return false;
    return true;
}

static int best_limit(const struct company *c, const struct solve_options *o)
{
    int offered[LIMITS_OFFERED], best = 0, n = limits_offer(c->type, offered);
    double least = joules_per_work(c, o, 0);

    if (!estimate_may_limit(c->est, c->type_index, c->workloads, c->rates, c->n))
        return 0;
    for (int i = 0; i < n && bears(c, offered[i]); i++) {    // they fall, and so do speeds
        double joules = joules_per_work(c, o, offered[i]);
        if (joules < least) {
            least = joules;
            best = offered[i];
        }
    }
    return best;
}

static int limit_now(const struct board *b, int gpu)
{
    const struct board_gpu *g = &b->gpus[gpu];

    return g->n_jobs ? b->jobs[g->jobs[0]].limit_w : 0;
}

/* Somebody has come or gone since the snapshot. */
static bool is_changed(const struct board *b, int gpu)
{
    const struct board_gpu *g = &b->gpus[gpu];
    const struct snap_gpu *was = &b->snapshot->gpus[gpu];
    int n_same = 0;

    for (int i = 0; i < g->n_jobs; i++)
        for (int k = 0; k < was->n_jobs; k++)
            n_same += g->jobs[i] == was->jobs[k];
    return n_same != g->n_jobs || n_same != was->n_jobs;
}

/* A gang that shares a GPU binds limits together: these stay. */
static bool may_relimit(const struct board *b, int gpu)
{
    const struct board_gpu *g = &b->gpus[gpu];

    if (g->n_jobs == 0)
        return false;
    const struct plan_job *first = &b->jobs[g->jobs[0]];
    for (int i = 0; i < first->n_gpus && first->n_gpus > 1; i++)
        if (b->gpus[first->gpus[i]].n_jobs > 1 || gpu != first->gpus[0])
            return false;
    for (int i = 1; i < g->n_jobs; i++)
        if (b->jobs[g->jobs[i]].n_gpus > 1)
            return false;
    return true;
}

/* Under a cap a limit is lifted only where the watts for that are left. */
static void set_limit(struct board *b, const struct solve_options *o, int gpu, int limit_w)
{
    const struct board_gpu *g = &b->gpus[gpu];
    int was = limit_now(b, gpu), n_gpus = b->jobs[g->jobs[0]].n_gpus;
    double before_w = board_drawn_w(b, gpu);

    for (int i = 0; i < g->n_jobs; i++)
        b->jobs[g->jobs[i]].limit_w = limit_w;
    if (o->power_cap_w <= 0 || n_gpus * (board_drawn_w(b, gpu) - before_w) <= 0 ||
        place_drawn_w(b) <= o->power_cap_w)
        return;
    for (int i = 0; i < g->n_jobs; i++)
        b->jobs[g->jobs[i]].limit_w = was;
}

void place_limits(struct board *b, const struct solve_options *o)
{
    for (int g = 0; g < b->snapshot->n_gpus && o->may_limit; g++) {
        if (!may_relimit(b, g))
            continue;
        struct company c = company_of(b, g, -1);
        int now = limit_now(b, g), best = best_limit(&c, o);
        bool breaks = !bears(&c, now) && bears(&c, best);
        bool is_better =
            joules_per_work(&c, o, best) < (1 - RELIMIT_GAIN) * joules_per_work(&c, o, now);
        if (best != now && (is_changed(b, g) || breaks || is_better))
            set_limit(b, o, g, best);
    }
}

/* ---- weighing ---- */

/* How long it would take; a server takes its time whatever the speed. */
static double time_left_s(const struct snap_job *j, double speed)
{
    if (j->spec->kind == JOB_INFERENCE)
        return j->time_left_s;
    return j->remaining / fmax(speed, 1e-12);
}

/* Does a job that begins so much later, and then holds 'low', still meet its deadline? */
static bool is_in_time(const struct board *b, const struct snap_job *j, double low, double wake_s)
{
    double left_s = j->spec->deadline_s - b->snapshot->now_s;    // NaN: there is none

    return !(wake_s > 0) || !(left_s > 0) || low * (left_s - wake_s) >= j->remaining;
}

struct place_offer place_weigh(const struct board *b, const struct solve_options *o, int job,
                               int gpu)
{
    struct company c = company_of(b, gpu, job);
    bool may_choose = o->may_limit && o->power_cap_w <= 0;    // a cap may forbid to lift one
    int limit_w = may_choose ? best_limit(&c, o) : limit_now(b, gpu), last = c.n - 1;
    struct limited at = company_limited(&c, limit_w);
    double before_w = last ? board_watts(b, gpu) : rest_w(c.type, o);
    double price_w = last ? 0 : o->price_w;
    double time_s = time_left_s(c.jobs[last], c.speed[last] * at.speed);
    struct place_offer offer = { .joules = (at.watts - before_w + price_w) * time_s,
                                 .share = INFINITY,
                                 .keeps = holds_at(&c, limit_w) };

    for (int i = 0; i < c.n; i++)
        offer.share = fmin(offer.share, c.share[i]);
    offer.joules += place_wake_j(b, o, &gpu, 1);
    offer.keeps =
        offer.keeps && is_in_time(b, c.jobs[last], c.low[last] * at.low, place_wake_s(b, &gpu, 1));
    for (int i = 0; i < last; i++) {
        double before = board_speed(b, b->gpus[gpu].jobs[i], NULL);
        double together_s = fmin(time_s, time_left_s(c.jobs[i], c.speed[i] * at.speed));
        if (c.jobs[i]->spec->kind == JOB_TRAINING)
            offer.joules += together_s * (1 - c.speed[i] * at.speed / before) *
                            (before_w - rest_w(c.type, o) + o->price_w);
    }
    return offer;
}

struct place_offer place_weigh_gang(const struct board *b, const struct solve_options *o, int job,
                                    const int *gpus, int n)
{
    const struct snap_job *j = &b->snapshot->jobs[job];
    struct company c = company_of(b, gpus[0], job);

    c.speed[0] = estimate_gang_speed(b->est, j->workload, b->snapshot->gpus[gpus[0]].type, n,
                                     board_is_spread(b, gpus, n), &c.low[0]);
    int limit_w = o->may_limit ? best_limit(&c, o) : 0;
    struct limited at = company_limited(&c, limit_w);
    double time_s = time_left_s(j, c.speed[0] * at.speed);
    return (struct place_offer){
        .joules =
            n * (at.watts - rest_w(c.type, o) + o->price_w) * time_s + place_wake_j(b, o, gpus, n),
        .share = 1,
        .keeps =
            holds_at(&c, limit_w) && is_in_time(b, j, c.low[0] * at.low, place_wake_s(b, gpus, n)),
    };
}
