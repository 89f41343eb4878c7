#include "optimize/policy/backfill.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

void backfill_begin(struct backfill *b, const struct policy_work *w)
{
    size_t n = (size_t)w->problem->n_gpus, n_nodes = (size_t)problem_n_nodes(w->problem);

    *b = (struct backfill){ .work = w,
                            .free_s = ARENA_ARRAY(w->arena, double, n),
                            .is_reserved = ARENA_ARRAY(w->arena, bool, n),
                            .n_nodes = (int)n_nodes,
                            .n_on = ARENA_ARRAY(w->arena, int, n_nodes),
                            .sleeps = ARENA_ARRAY(w->arena, bool, n_nodes) };
}

/* ---- who ends when ---- */

/* At that speed, hopes included in it. */
static double left_s(const struct policy_work *w, int job, int type, double speed)
{
    const struct problem_job *j = &w->problem->jobs[job];
    double believed = speed / problem_counted_on(w->problem, type, &j->kind, 1, 0).speed;

    return j->left_s > 0                       ? j->left_s
           : j->left_steps > 0 && believed > 0 ? j->left_steps / believed
                                               : (double)INFINITY;
}

/* Under the setting that the assignment will choose. */
double backfill_left_s(const struct policy_work *w, int job, int type, int n)
{
    const struct problem_job *j = &w->problem->jobs[job];
    double gang = work_gang_factor(w, job, type, n);
    struct yield y, best;

    if (!problem_yield(w->problem, type, 0, &j->kind, 1, &best))
        return (double)INFINITY;
    for (int limit = 1; limit < w->problem->types[type].n_limits; limit++)
        if (problem_yield(w->problem, type, limit, &j->kind, 1, &y) && y.cost_w < best.cost_w &&
            gang * held_low(y.held[0]) >= j->need)
            best = y;
    return left_s(w, job, type, gang * best.speed[0]);
}

/* When all who are on a GPU will have left. */
static double free_s(const struct policy_work *w, int gpu)
{
    const struct assignment_gpu *g = &w->assignment->gpus[gpu];
    int type = w->problem->gpus[gpu].type;
    double last_s = 0;
    struct yield y;

    if (!w->problem->gpus[gpu].may_start ||
        (g->n_jobs > 0 && !problem_yield_of(w->problem, type, g->limit, g->jobs, g->n_jobs, &y)))
        return (double)INFINITY;
    for (int i = 0; i < g->n_jobs; i++) {
        int n = w->assignment->jobs[g->jobs[i]].n_gpus;
        double gang = n > 1 ? work_gang_factor(w, g->jobs[i], type, n) : 1;
        last_s = fmax(last_s, left_s(w, g->jobs[i], type, gang * y.speed[i]));
    }
    return last_s;
}

/* ---- GPUs that are free at a time ---- */

/* What is looked for, and how many could be picked of each node. */
struct search {
    const struct backfill *b;
    int job, type;
    double at_s;      // who is free then; 0: now
    bool is_early;    // who is reserved counts too
    int *n_on;        // (n_nodes) the backfill's
};

static bool may_pick(const struct search *s, int gpu)
{
    const struct policy_work *w = s->b->work;

    return w->problem->gpus[gpu].type == s->type && w->problem->gpus[gpu].may_start &&
           problem_bars(w->problem, &w->problem->jobs[s->job], gpu) == ENGINE_CAN &&
           (s->at_s > 0 ? s->b->free_s[gpu] <= s->at_s : w->assignment->gpus[gpu].n_jobs == 0) &&
           (s->is_early || !s->b->is_reserved[gpu]);
}

/* How many of each node, as far as what it has for jobs goes: now, or with nobody there. */
static void count_nodes(struct search *s)
{
    const struct policy_work *w = s->b->work;
    const struct problem *p = w->problem;
    const struct engine_node *room = s->at_s > 0 ? p->nodes : w->assignment->node_room;
    enum engine_rule why;

    memset(s->n_on, 0, (size_t)s->b->n_nodes * sizeof *s->n_on);
    for (int g = 0; g < p->n_gpus; g++)
        if (may_pick(s, g)) {
            s->n_on[p->gpus[g].node]++;
            s->b->sleeps[p->gpus[g].node] = p->gpus[g].wake_s > 0;
        }
    for (int i = 0; i < s->b->n_nodes && room; i++) {
        int fits = problem_node_fits(&room[i], &p->jobs[s->job], &why);
        s->n_on[i] = s->n_on[i] < fits ? s->n_on[i] : fits;
    }
}

/* Up to 'most' of a node behind the 'n' that are picked already; returns how many that makes. */
static int pick_from(struct search *s, int node, int most, int n, int *gpus)
{
    const struct problem *p = s->b->work->problem;

    most = n + (most < s->n_on[node] ? most : s->n_on[node]);
    for (int g = 0; g < p->n_gpus && n < most; g++)
        if (p->gpus[g].node == node && may_pick(s, g))
            gpus[n++] = g;
    return n;
}

/* On nodes that have at least 'n_here' of them, so many of each; 0: whatever each has. */
static bool pick(struct search *s, int n, int n_here, int *gpus)
{
    int n_picked = 0;

    for (int asleep = 0; asleep < 2; asleep++)
        for (int i = 0; i < s->b->n_nodes && n_picked < n; i++)
            if (s->n_on[i] > 0 && s->n_on[i] >= n_here && s->b->sleeps[i] == (asleep == 1))
                n_picked = pick_from(s, i, n_here ? n_here : n - n_picked, n_picked, gpus);
    return n_picked == n;
}

/* As the job's nodes have to be; on one node where that is left open and can be. */
static bool find(const struct backfill *b, int job, int type, int n, double at_s, bool is_early,
                 int *gpus)
{
    struct search s = { b, job, type, at_s, is_early, b->n_on };
    int n_nodes = n > 1 ? b->work->problem->jobs[job].n_nodes : 0;

    count_nodes(&s);
    if (n_nodes > 1)
        return pick(&s, n, n / n_nodes, gpus) &&
               (at_s > 0 || problem_devices_match(b->work->problem, gpus, n));
    return pick(&s, n, n, gpus) || (n_nodes == 0 && pick(&s, n, 0, gpus));
}

/* ---- the head ---- */

static int by_time(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The earliest time at which so many GPUs of a type are free as the job has to have them; INFINITY:
 * nobody knows.
 */
static double earliest_s(const struct backfill *b, int job, int type, int n, int *gpus)
{
    const struct problem *p = b->work->problem;
    double *ends = ARENA_ARRAY(b->work->arena, double, (size_t)p->n_gpus);
    int n_ends = 0, low = 0;

    for (int g = 0; g < p->n_gpus; g++)
        if (p->gpus[g].type == type && isfinite(b->free_s[g]))
            ends[n_ends++] = fmax(b->free_s[g], 1e-9);    // 0 is now
    qsort(ends, (size_t)n_ends, sizeof *ends, by_time);
    for (int high = n_ends; low < high;) {
        int mid = low + (high - low) / 2;
        if (find(b, job, type, n, ends[mid], true, gpus))
            high = mid;
        else
            low = mid + 1;
    }
    return low < n_ends && find(b, job, type, n, ends[low], true, gpus) ? ends[low]
                                                                        : (double)INFINITY;
}

/* All that it could use. */
static void reserve_all(struct backfill *b, const int *n_wanted)
{
    for (int g = 0; g < b->work->problem->n_gpus; g++)
        b->is_reserved[g] = n_wanted[b->work->problem->gpus[g].type] > 0;
}

/* Where nodes have CPUs and memory for so many, all GPUs of these nodes. */
static void reserve(struct backfill *b, const int *gpus, int n)
{
    const struct problem *p = b->work->problem;

    for (int i = 0; i < n; i++)
        for (int g = 0; g < p->n_gpus; g++)
            b->is_reserved[g] |= g == gpus[i] || (b->work->assignment->node_room &&
                                                  p->gpus[g].node == p->gpus[gpus[i]].node);
}

void backfill_reserve(struct backfill *b, int job, const int *n_wanted)
{
    const struct problem *p = b->work->problem;
    int gpus[GANG_MAX] = { 0 }, best[GANG_MAX], n_best = 0;
    double start_s = (double)INFINITY;

    if (b->has_head)
        return;
    b->has_head = true;
    for (int g = 0; g < p->n_gpus; g++)
        b->free_s[g] = free_s(b->work, g);
    for (int type = 0; type < p->n_types; type++) {
        double at_s =
            n_wanted[type] ? earliest_s(b, job, type, n_wanted[type], gpus) : (double)INFINITY;
        if (at_s >= start_s)
            continue;
        start_s = at_s;
        n_best = n_wanted[type];
        for (int i = 0; i < n_best; i++)
            best[i] = gpus[i];
    }
    b->start_s = isfinite(start_s) ? start_s : 0;
    if (n_best > 0)
        reserve(b, best, n_best);
    else
        reserve_all(b, n_wanted);
}

/* ---- those behind it ---- */

bool backfill_spare(const struct backfill *b, int job, int type, int n, int *gpus)
{
    return assignment_n_free(b->work->assignment, type) >= n &&
           find(b, job, type, n, 0, false, gpus);
}

bool backfill_free(const struct backfill *b, int job, int type, int n, int *gpus)
{
    bool is_early = !b->has_head || backfill_left_s(b->work, job, type, n) <= b->start_s;

    if (assignment_n_free(b->work->assignment, type) < n)
        return false;
    if (is_early && !b->is_in_order)
        return assignment_free(b->work->assignment, job, type, n, gpus);
    return find(b, job, type, n, 0, is_early, gpus);
}
