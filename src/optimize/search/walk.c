#include "optimize/search/inner.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "optimize/prices/prices.h"

#define REMOVE_JOBS_MAX 24    // taken away in one step
#define REMOVE_GPUS_MAX 4

/* Of 1024 steps so many are swaps of two jobs, and so many evict others for one. */
#define SWAP_OF_1024 32
#define EVICT_OF_1024 192
#define DISPLACE_OF_1024 64    // a job takes the slot of one of its kind that needs less
#define ATTRACT_OF_1024 32     // a GPU with room gets a job that does better there

/* Of 8 times that jobs are inserted, so many go by reduced costs. */
#define REDUCED_OF_8 7

/* An insertion overlooks a position with this chance. */
#define SKIP 0.02

/* The last part of a walk that ends cold accepts nothing worse; what is left of the heat then. */
#define COLD_FROM 0.9
#define COOL_TO 0.01

static int below(struct search_walk *w, int n)
{
    return (int)((rng_u64(&w->rng) >> 32) * (uint64_t)n >> 32);
}

/* ---- where it is worth while ---- */

double walk_loss(const struct search_walk *w, int gpu)
{
    const struct assignment *d = w->d;
    const struct assignment_gpu *g = &d->gpus[gpu];
    int type = d->problem->gpus[gpu].type;

    if (!w->u)
        return g->cost_w + 1;
    double loss = w->u->u.type_w[type];
    if (g->n_jobs == 0)
        return d->problem->gpus[gpu].may_start ? loss : 0;
    double draw_w = g->watts - d->problem->types[type].idle_w;
    loss += g->cost_w + dual_watt_price(&w->u->u, type) * d->problem->watts_margin * draw_w;
    for (int i = 0; i < g->n_jobs; i++) {
        int job = g->jobs[i];
        if (d->problem->jobs[job].is_fixed)
            return 0;
        const struct assignment_job *j = &d->jobs[job];
        loss += (j->short_w + j->fee_w - w->job_w[job]) / j->n_gpus;
    }
    return loss;
}

static void sum_losses(struct search_walk *w)
{
    double all = 0, floor_w = 0;

    for (int g = 0; g < w->d->problem->n_gpus; g++) {
        double loss = fmax(walk_loss(w, g), 0);
        w->sums[g] = loss;
        floor_w += loss;
    }
    w->loss_w = floor_w;
    floor_w = 0.1 * floor_w / (w->d->problem->n_gpus + 1) + 1e-9;
    for (int g = 0; g < w->d->problem->n_gpus; g++)
        w->sums[g] = all += w->sums[g] + floor_w;
}

/* A GPU, the likelier the more is lost on it. */
static int lossy_gpu(struct search_walk *w)
{
    int n = w->d->problem->n_gpus, low = 0, high = n - 1;
    double at = rng_uniform(&w->rng) * w->sums[n - 1];

    while (low < high) {
        int mid = (low + high) / 2;
        if (w->sums[mid] > at)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

/* ---- take away ---- */

struct removal {
    int n;
    int jobs[REMOVE_JOBS_MAX];
};

static bool has_job(const struct removal *r, int job)
{
    for (int i = 0; i < r->n; i++)
        if (r->jobs[i] == job)
            return true;
    return false;
}

/* Take a job away; false: it cannot be. */
static bool remove_job(struct search_walk *w, struct removal *r, int job)
{
    if (r->n == REMOVE_JOBS_MAX || w->d->problem->jobs[job].is_fixed || w->d->jobs[job].n_gpus == 0)
        return false;
    if (!assignment_take(w->d, job))
        return false;
    r->jobs[r->n++] = job;
    return true;
}

static void remove_gpu(struct search_walk *w, struct removal *r, int gpu)
{
    int jobs[THETA_MAX], n = w->d->gpus[gpu].n_jobs;

    memcpy(jobs, w->d->gpus[gpu].jobs, sizeof jobs);
    for (int i = n; i-- > 0;)
        remove_job(w, r, jobs[i]);
    if (w->d->gpus[gpu].n_jobs > 0)
        assignment_relimit(w->d, gpu);    // who stays there may do so under a better setting
}

static int random_gpu(struct search_walk *w)
{
    int gpu = 0;

    for (int i = 0; i < 4; i++) {
        gpu = below(w, w->d->problem->n_gpus);
        if (w->d->gpus[gpu].n_jobs > 0)
            break;
    }
    return gpu;
}

/* A job of the same kind that may be moved; -1: none. */
static int random_kin(struct search_walk *w, int job)
{
    const int *first = w->related.first + w->d->problem->jobs[job].kind;

    return first[0] < first[1] ? w->related.items[first[0] + below(w, first[1] - first[0])] : -1;
}

/* A GPU of a job of the same kind; -1: none. */
static int gpu_of_kind(struct search_walk *w, int job)
{
    int related = random_kin(w, job);

    if (related < 0)
        return -1;
    int n_gpus = w->d->jobs[related].n_gpus;
    return n_gpus ? assignment_gpus(w->d, related)[below(w, n_gpus)] : -1;
}

static bool may_move(const struct assignment *d, int job)
{
    return d->problem->jobs[job].name && !d->problem->jobs[job].is_fixed;
}

static bool is_troubled(const struct search_walk *w, int job)
{
    const struct assignment_job *j = &w->d->jobs[job];

    return may_move(w->d, job) && (j->n_gpus == 0 || j->short_w > 0);
}

/* Remember who waits or misses its promise. */
static void note_trouble(struct search_walk *w, int job)
{
    if (!is_troubled(w, job) || w->is_listed[job])
        return;
    w->is_listed[job] = true;
    w->troubled[w->n_troubled++] = job;
}

/* One of those, or -1. */
static int troubled_job(struct search_walk *w)
{
    for (int tries = 0; tries < 4 && w->n_troubled > 0; tries++) {
        int at = below(w, w->n_troubled), job = w->troubled[at];
        if (is_troubled(w, job))
            return job;
        w->is_listed[job] = false;
        w->troubled[at] = w->troubled[--w->n_troubled];
    }
    return -1;
}

/* Some of those who wait or miss their promise get another chance. */
static void add_troubled(struct search_walk *w, struct removal *r)
{
    for (int i = below(w, 3); i-- > 0;) {
        int job = troubled_job(w);
        if (job < 0 || r->n == REMOVE_JOBS_MAX || has_job(r, job))
            continue;
        if (w->d->jobs[job].n_gpus == 0)
            r->jobs[r->n++] = job;
        else
            remove_job(w, r, job);
    }
}

/* Where something has just happened: of two such GPUs the one with the larger loss. */
static int recent_gpu(struct search_walk *w)
{
    int a = w->recent[below(w, w->n_recent)], b = w->recent[below(w, w->n_recent)];

    return walk_loss(w, a) > walk_loss(w, b) ? a : b;
}

static void remove_some(struct search_walk *w, struct removal *r)
{
    int n_gpus = 1 + below(w, REMOVE_GPUS_MAX);
    int gpu = w->u || below(w, 4) == 0 ? lossy_gpu(w) : random_gpu(w);

    if (w->n_recent > 0 && below(w, 16) == 0)
        gpu = recent_gpu(w);
    r->n = 0;
    if (n_gpus == 1 && below(w, 2) && w->d->gpus[gpu].n_jobs > 1)
        remove_job(w, r, w->d->gpus[gpu].jobs[below(w, w->d->gpus[gpu].n_jobs)]);
    else
        remove_gpu(w, r, gpu);
    for (int i = 1; i < n_gpus; i++) {
        int how = below(w, 8);
        int other = how < 4 && r->n > 0 ? gpu_of_kind(w, r->jobs[below(w, r->n)])
                    : how < 6           ? lossy_gpu(w)
                                        : random_gpu(w);
        if (other >= 0)
            remove_gpu(w, r, other);
    }
    add_troubled(w, r);
}

/* ---- insert again ---- */

static void shuffle(struct search_walk *w, struct removal *r)
{
    for (int i = r->n - 1; i > 0; i--) {
        int k = below(w, i + 1), job = r->jobs[i];
        r->jobs[i] = r->jobs[k];
        r->jobs[k] = job;
    }
}

static void sort_by(struct removal *r, const double *key, double sign)
{
    for (int i = 1; i < r->n; i++) {
        int job = r->jobs[i], k = i;
        for (; k > 0 && sign * key[r->jobs[k - 1]] < sign * key[job]; k--)
            r->jobs[k] = r->jobs[k - 1];
        r->jobs[k] = job;
    }
}

static void insert_again(struct search_walk *w, struct removal *r)
{
    shuffle(w, r);
    int how = below(w, 8);
    if (how < 4)
        sort_by(r, w->hardness, how < 3 ? 1 : -1);
    w->d->reduced = below(w, 8) < REDUCED_OF_8 ? w->reduced : NULL;
    for (int i = 0; i < r->n; i++)
        assignment_insert(w->d, r->jobs[i]);
    w->d->reduced = NULL;
}

/* ---- swap ---- */

/* Two jobs change places. False: they cannot. */
static bool swap(struct search_walk *w)
{
    struct assignment *d = w->d;
    int a_gpu = below(w, 2) ? lossy_gpu(w) : random_gpu(w);
    int a_at[GANG_MAX], b_at[GANG_MAX];

    if (d->gpus[a_gpu].n_jobs == 0)
        return false;
    int a = d->gpus[a_gpu].jobs[below(w, d->gpus[a_gpu].n_jobs)];
    int b_gpu = below(w, 4) == 0 ? gpu_of_kind(w, a) : random_gpu(w);
    if (b_gpu < 0 || d->gpus[b_gpu].n_jobs == 0)
        return false;
    int b = d->gpus[b_gpu].jobs[below(w, d->gpus[b_gpu].n_jobs)];
    if (a == b || d->problem->jobs[a].is_fixed || d->problem->jobs[b].is_fixed)
        return false;
    int na = d->jobs[a].n_gpus, nb = d->jobs[b].n_gpus;
    memcpy(a_at, assignment_gpus(d, a), (size_t)na * sizeof *a_at);
    memcpy(b_at, assignment_gpus(d, b), (size_t)nb * sizeof *b_at);
    return assignment_take(d, a) && assignment_take(d, b) && assignment_put(d, a, b_at, nb, -1) &&
           assignment_put(d, b, a_at, na, -1);
}

/* ---- evict ---- */

/* Somebody who would gain from a better place: one that waits or misses its promise, if such a
 * one is met soon; else anybody.
 */
static int needy_job(struct search_walk *w)
{
    const struct assignment *d = w->d;
    int job = -1;

    if (below(w, 4) > 0 && (job = troubled_job(w)) >= 0)
        return job;
    for (int tries = 0; tries < 4; tries++) {
        int gpu = w->n_recent > 0 && tries < 2 ? recent_gpu(w) : lossy_gpu(w);
        const struct assignment_gpu *g = &d->gpus[gpu];
        if (g->n_jobs == 0)
            continue;
        int one = g->jobs[below(w, g->n_jobs)];
        if (d->problem->jobs[one].is_fixed)
            continue;
        job = one;
        if (d->jobs[one].short_w > 0)
            break;
    }
    return job;
}

/* Make a GPU empty; false: somebody stays. */
static bool clear_gpu(struct search_walk *w, struct removal *r, int gpu)
{
    remove_gpu(w, r, gpu);
    return w->d->gpus[gpu].n_jobs == 0;
}

/* Clear 'n' GPUs of the same node and type, from 'gpu' on. */
static bool clear_gang(struct search_walk *w, struct removal *r, int group, int n, int *gpus)
{
    const struct assignment *d = w->d;
    const struct group *of = &d->lists->groups[group];
    const int *all = d->lists->members + of->first;
    int got = 0;

    for (int i = 0; i < of->n && got < n; i++)
        if (d->gpus[all[i]].n_jobs == 0 && d->problem->gpus[all[i]].may_start)
            gpus[got++] = all[i];    // what is free comes first
    for (int i = 0; i < of->n && got < n; i++)
        if (d->gpus[all[i]].n_jobs > 0 && d->problem->gpus[all[i]].may_start &&
            clear_gpu(w, r, all[i]))
            gpus[got++] = all[i];
    return got == n;
}

/* The same on several nodes, as many GPUs on each: from the node of 'gpu' on, round about. */
static bool clear_evenly(struct search_walk *w, struct removal *r, int gpu, int n, int n_nodes,
                         int *gpus)
{
    const struct assignment_lists *l = w->d->lists;
    const struct problem_gpu *all = w->d->problem->gpus;
    int n_here = n / n_nodes, got = 0, first = l->group_of[gpu];

    for (int i = 0; i < l->n_groups && got < n; i++) {
        int group = (first + i) % l->n_groups;
        if (all[l->members[l->groups[group].first]].type == all[gpu].type)
            got += clear_gang(w, r, group, n_here, gpus + got) ? n_here : 0;
    }
    return got == n;
}

/* One job gets GPUs that others must leave; then everybody else is inserted again. */
static bool evict(struct search_walk *w, struct removal *r)
{
    struct assignment *d = w->d;
    int job = needy_job(w), gpu = random_gpu(w), gpus[GANG_MAX], n = 1;

    if (job < 0)
        return false;
    const struct problem_job *j = &d->problem->jobs[job];
    for (int tries = 0; tries < 4; tries++) {
        int type = d->problem->gpus[gpu].type;
        if (problem_allows(j, type) &&
            (tries == 3 || tables_alone(d->tables, type, j->kind, 0)->low >= j->need / j->n_max))
            break;
        gpu = random_gpu(w);
    }
    if (d->jobs[job].n_gpus > 0 && !assignment_take(d, job))
        return false;
    if (j->form == FORM_GANG)
        n = j->n_min + below(w, j->n_max - j->n_min + 1);
    if (n == 1 && d->gpus[gpu].n_jobs > 1 && below(w, 2))
        remove_job(w, r, d->gpus[gpu].jobs[below(w, d->gpus[gpu].n_jobs)]);    // one makes room
    else if (j->n_nodes > 1 ? !clear_evenly(w, r, gpu, n, j->n_nodes, gpus)
             : n > 1        ? !clear_gang(w, r, d->lists->group_of[gpu], n, gpus)
                            : !clear_gpu(w, r, gpu))
        return false;
    if (n == 1)
        gpus[0] = gpu;
    if (!assignment_put(d, job, gpus, n, -1))
        return false;
    if (j->form == FORM_SPREAD)
        assignment_extend(d, job);
    insert_again(w, r);
    return true;
}

/* ---- displace ---- */

#define KIN_TRIES 12

/* A job on one GPU that may change with others of its kind. */
static bool is_single(const struct assignment *d, int job)
{
    return d->jobs[job].n_gpus == 1 && !d->gpus[assignment_gpus(d, job)[0]].is_whole;
}

/* One of the same kind, that needs less and holds enough for 'job'; -1: none met. */
static int humbler_kin(struct search_walk *w, int job)
{
    const struct assignment *d = w->d;
    const struct problem_job *j = &d->problem->jobs[job];
    int best = -1, related;

    for (int i = 0; i < KIN_TRIES && (related = random_kin(w, job)) >= 0; i++) {
        const struct problem_job *k = &d->problem->jobs[related];
        if (related == job || !is_single(d, related) || k->need >= j->need ||
            held_low(d->jobs[related].held) < j->need || k->is_exclusive != j->is_exclusive ||
            !problem_allows(j, d->problem->gpus[assignment_gpus(d, related)[0]].type))
            continue;
        if (best < 0 || k->need < d->problem->jobs[best].need)
            best = related;
    }
    return best;
}

/* A job that loses much takes the slot of a humbler one, that one of a humbler still, and so on;
 * the last is inserted wherever it is cheapest.
 */
static bool displace(struct search_walk *w, struct removal *r)
{
    struct assignment *d = w->d;
    int job = needy_job(w);

    if (job < 0 || d->problem->jobs[job].n_min > 1)
        return false;
    if (d->jobs[job].n_gpus > 0 && !assignment_take(d, job))
        return false;
    for (int depth = 1 + below(w, 3); depth-- > 0;) {
        int related = humbler_kin(w, job);
        if (related < 0)
            break;
        int gpu = assignment_gpus(d, related)[0];
        if (!assignment_take(d, related) || !assignment_put(d, job, &gpu, 1, -1))
            return false;
        job = related;
    }
    r->jobs[r->n++] = job;
    insert_again(w, r);
    return true;
}

/* ---- attract ---- */

#define ATTRACT_TRIES 12

/* What it would save to have a job on a GPU instead of where it is; less than 0: nothing. */
static double attraction_w(const struct search_walk *w, int job, int gpu)
{
    const struct assignment *d = w->d;
    int from = assignment_gpus(d, job)[0], jobs[THETA_MAX];
    int n = assignment_without(d, from, job, jobs);
    struct combo c, rest = { 0 };

    if (from == gpu || !assignment_may_join(d, job, gpu))
        return -1;
    if (n > 0 && !combo_make(d, from, jobs, n, -1, &rest))
        return -1;
    double save_w = assignment_gpu_total(d, from) - rest.total_w + assignment_gpu_total(d, gpu);
    n = assignment_with(d, gpu, job, jobs);
    return combo_make(d, gpu, jobs, n, -1, &c) ? save_w - c.total_w : -1;
}

/* The best of some jobs comes to a GPU that has room; those it leaves are inserted again. */
static bool attract(struct search_walk *w, struct removal *r)
{
    struct assignment *d = w->d;
    int gpu = w->n_recent > 0 && below(w, 2) ? recent_gpu(w) : lossy_gpu(w), best = -1,
        mates[THETA_MAX];
    double best_w = -HUGE_VAL;

    if (d->gpus[gpu].n_jobs >= d->problem->theta || d->gpus[gpu].is_whole)
        return false;
    for (int i = 0; i < ATTRACT_TRIES; i++) {
        int other = i % 2 ? lossy_gpu(w) : random_gpu(w);
        if (d->gpus[other].n_jobs == 0 || other == gpu)
            continue;
        int job = d->gpus[other].jobs[below(w, d->gpus[other].n_jobs)];
        if (!is_single(d, job) || d->problem->jobs[job].is_fixed)
            continue;
        double save_w = attraction_w(w, job, gpu);
        if (save_w > best_w) {
            best_w = save_w;
            best = job;
        }
    }
    if (best < 0)
        return false;
    int from = assignment_gpus(d, best)[0], n = d->gpus[from].n_jobs;
    memcpy(mates, d->gpus[from].jobs, sizeof mates);
    if (!assignment_take(d, best) || !assignment_put(d, best, &gpu, 1, -1))
        return false;
    for (int i = 0; i < n && below(w, 2); i++)
        if (mates[i] != best)
            remove_job(w, r, mates[i]);
    insert_again(w, r);
    return true;
}

/* ---- the best so far ---- */

static void save_best(struct search_walk *w)
{
    const struct assignment *d = w->d;

    if (!w->best_n) {
        w->best_gpus = ARENA_ARRAY(&w->arena, int, (size_t)d->n_job_gpus);
        w->best_n = ARENA_ARRAY(&w->arena, int, (size_t)d->problem->n_jobs);
        w->best_limit = ARENA_ARRAY(&w->arena, unsigned char, (size_t)d->problem->n_gpus);
    }
    for (int j = 0; j < d->problem->n_jobs; j++)
        w->best_n[j] = d->jobs[j].n_gpus;
    for (int g = 0; g < d->problem->n_gpus; g++)
        w->best_limit[g] = d->gpus[g].limit;
    memcpy(w->best_gpus, d->job_gpus, (size_t)d->n_job_gpus * sizeof *w->best_gpus);
}

/* In the same order, too: what is restored is exactly what was saved. */
static bool sits_as_best(const struct search_walk *w, int job)
{
    const struct assignment_job *j = &w->d->jobs[job];

    return j->n_gpus == w->best_n[job] && memcmp(w->d->job_gpus + j->first, w->best_gpus + j->first,
                                                 (size_t)j->n_gpus * sizeof *w->best_gpus) == 0;
}

static void restore_best(struct search_walk *w)
{
    struct assignment *d = w->d;

    for (int j = 0; j < d->problem->n_jobs; j++)
        if (d->jobs[j].n_gpus > 0 && !sits_as_best(w, j))
            assignment_force_away(d, j);
    for (int j = 0; j < d->problem->n_jobs; j++)
        if (w->best_n[j] > 0 && d->jobs[j].n_gpus == 0)
            assignment_force(d, j, w->best_gpus + d->jobs[j].first, w->best_n[j], 0);
    for (int g = 0; g < d->problem->n_gpus; g++)
        if (d->gpus[g].n_jobs > 0)
            assignment_force_limit(d, g, w->best_limit[g]);
}

/* ---- walking ---- */

static void accept(struct search_walk *w, double change_w)
{
    assignment_keep(w->d);
    for (int i = 0; i < w->d->journal->n_jobs; i++)
        note_trouble(w, w->d->journal->jobs[i].job);
    if (w->d->cost_w < w->best_w - 1e-9 * fabs(w->best_w)) {
        w->best_w = w->d->cost_w;
        w->is_best = true;
    } else if (change_w > 0) {
        w->is_best = false;
    }
}

static void step(struct search_walk *w)
{
    struct assignment *d = w->d;
    struct removal r = { 0 };
    double before_w = d->cost_w;
    int how = below(w, 1024);
    bool done = true;

    assignment_mark(d);
    if ((how -= SWAP_OF_1024) < 0) {
        done = swap(w);
    } else if ((how -= EVICT_OF_1024) < 0) {
        done = evict(w, &r);
    } else if ((how -= DISPLACE_OF_1024) < 0) {
        done = displace(w, &r);
    } else if (how < ATTRACT_OF_1024) {
        done = attract(w, &r);
    } else {
        remove_some(w, &r);
        insert_again(w, &r);
    }
    double change_w = d->cost_w - before_w;
    double most_w = w->heat_w > 0 ? -w->heat_w * log(1 - rng_uniform(&w->rng)) : 0;
    if (!done || change_w > most_w - w->least_w * d->journal->n_jobs) {
        assignment_undo(d);
        return;
    }
    if (change_w > 0 && w->is_best) {    // the best is about to be left: remember it
        assignment_undo(d);
        save_best(w);
        w->is_best = false;
        return;
    }
    accept(w, change_w);
}

/* Between 0 and 1: how much of the walk is done. */
static double progress(const struct search_walk *w, const struct walk_plan *plan)
{
    double done = plan->nodes > 0 ? (double)w->nodes / (double)plan->nodes : 0;

    if (!plan->clock)
        return done;
    double now_s = clock_now_s(plan->clock);
    if (now_s >= plan->until_s)
        return 1;
    return fmax(done, (now_s - plan->from_s) / (plan->until_s - plan->from_s));
}

static double heat_at(const struct walk_plan *plan, double done)
{
    if (plan->heat_w <= 0)
        return 0;
    if (plan->cool_w > 0)
        return plan->heat_w * pow(plan->cool_w / plan->heat_w, done);
    return done >= COLD_FROM ? 0 : plan->heat_w * pow(COOL_TO, done / COLD_FROM);
}

void walk_run(struct search_walk *w, const struct walk_plan *plan)
{
    struct assignment *d = w->d;
    double done;

    if (d->problem->n_gpus == 0 || d->problem->n_jobs == 0)
        return;
    w->best_w = d->cost_w;
    w->is_best = true;
    d->skip = (uint32_t)(SKIP * 4294967296.0);
    while ((done = progress(w, plan)) < 1) {
        w->heat_w = heat_at(plan, done);
        if (w->nodes % 1024 == 0)
            sum_losses(w);
        for (int i = 0; i < 32; i++, w->nodes++)
            step(w);
    }
    d->skip = 0;
    if (!w->is_best && w->best_n && w->best_w < d->cost_w)
        restore_best(w);
}

/* ---- between full plans ---- */

void walk_notice(struct search_walk *w, int gpu)
{
    w->recent[w->n_recent < RECENT_MAX ? w->n_recent++ : below(w, RECENT_MAX)] = gpu;
}

void walk_slice(struct search_walk *w, int nodes)
{
    w->heat_w = 0;
    w->best_w = w->d->cost_w;
    w->is_best = true;
    w->d->skip = (uint32_t)(SKIP * 4294967296.0);
    for (int i = 0; i < nodes; i++, w->nodes++) {
        if (w->nodes % 2048 == 0)
            sum_losses(w);
        step(w);
    }
    w->d->skip = 0;
}

/* ---- making ---- */

/* Who asks for much of what its kind can do at best, and whoever must be whole, goes first. */
static double hardness_of(const struct assignment *d, int job)
{
    const struct problem_job *j = &d->problem->jobs[job];
    double most = 0;

    for (int type = 0; type < d->problem->n_types; type++)
        if (problem_allows(j, type))
            most = fmax(most, tables_alone(d->tables, type, j->kind, 0)->low);
    return (most > 0 ? j->need / most : 0) + (j->form == FORM_GANG ? j->n_min - 1 : 0);
}

struct search_walk *walk_create(struct assignment *d, const struct prices *u, const double *job_w,
                                uint64_t seed, uint64_t stream)
{
    struct search_walk *w = heap_array(1, sizeof *w);
    size_t n_jobs = (size_t)d->problem->n_jobs;
    int *kind = ARENA_ARRAY(&w->arena, int, n_jobs);

    w->d = d;
    w->u = u;
    w->job_w = job_w;
    d->job_price_w = job_w;
    rng_init(&w->rng, seed ^ stream * 0x9e3779b97f4a7c15u, "search");
    d->chance = rng_u64(&w->rng) | 1;
    w->sums = ARENA_ARRAY(&w->arena, double, (size_t)d->problem->n_gpus);
    w->recent = ARENA_ARRAY(&w->arena, int, RECENT_MAX);
    w->hardness = ARENA_ARRAY(&w->arena, double, n_jobs);
    w->troubled = ARENA_ARRAY(&w->arena, int, n_jobs);
    w->is_listed = ARENA_ARRAY(&w->arena, bool, n_jobs);
    for (int j = 0; j < d->problem->n_jobs; j++) {
        kind[j] = may_move(d, j) ? d->problem->jobs[j].kind : -1;
        w->hardness[j] = may_move(d, j) ? hardness_of(d, j) : 0;
        note_trouble(w, j);
    }
    w->related = key_index_make(&w->arena, kind, d->problem->n_jobs, d->problem->n_kinds);
    return w;
}

void walk_destroy(struct search_walk *w)
{
    if (!w)
        return;
    arena_release(&w->arena);
    free(w);
}
