#include "optimize/search/assignment_inner.h"

#include <math.h>
#include <stdlib.h>

#include "base/grow.h"
#include "optimize/prices/columns.h"
#include "optimize/prices/prices.h"

/* GPUs with two residents or more that one insertion looks at, for combinations of three. */
#define CROWDED_MAX 48

/* GPUs tried of one list. */
#define LIST_TRIES 3

struct seek {
    struct assignment *d;
    int job;
    double base_w;    // what the job misses already, being placed in part
    double best_w;    // added by the best part found; at first, what it must be less than
    int gpu;          // -1: none
};

/* What coming to a GPU costs by reduced costs: its worth and all that is on it, less what the
 * others there should pay.
 */
static double reduced_w(const struct seek *s, int gpu, const struct combo *c)
{
    const struct assignment *d = s->d;
    int type = d->problem->gpus[gpu].type;
    const struct problem_job *j = &d->problem->jobs[s->job];

    if (d->gpus[gpu].n_jobs == 0 && !j->is_exclusive)
        return reduced_open_w(d, type, j->kind, j->need - d->jobs[s->job].held.mean) + c->total_w -
               c->cost_w;
    double draw_w = c->watts - d->problem->types[type].idle_w;
    return c->total_w + d->reduced->type_w[type] + d->reduced->watt_price[type] * draw_w -
           reduced_prices_w(d, gpu);
}

static void try_gpu(struct seek *s, int gpu)
{
    struct combo c;
    int jobs[THETA_MAX];

    if (!assignment_may_join(s->d, s->job, gpu) ||
        !combo_make(s->d, gpu, jobs, assignment_with(s->d, gpu, s->job, jobs), -1, &c))
        return;
    double w = s->d->reduced ? reduced_w(s, gpu, &c) : c.total_w - assignment_gpu_total(s->d, gpu);
    w -= s->base_w;
    const struct problem_job *j = &s->d->problem->jobs[s->job];
    if (s->d->has_fees && !gpus_have(j->present, j->n_present, gpu))
        w += problem_come_w(s->d->problem, j, gpu);
    if (w < s->best_w) {
        s->best_w = w;
        s->gpu = gpu;
    }
}

/* A free GPU of a type: in the fullest group; under rack caps elsewhere too. */
static void try_free(struct seek *s, int type)
{
    const struct assignment_lists *l = s->d->lists;
    int gpu = lists_free(s->d, type, 1);

    if (gpu >= 0)
        try_gpu(s, gpu);
    if (gpu < 0 || (!s->d->rack_room_w && !s->d->has_rules))
        return;
    for (int bucket = type; bucket < 2 * s->d->problem->n_types; bucket += s->d->problem->n_types)
        for (uint64_t left = l->has_free[bucket]; left; left &= left - 1) {
            int group = l->by_free[bucket * (FREE_MAX + 1) + __builtin_ctzll(left) + 1];
            for (int i = 0; i < LIST_TRIES && group >= 0; i++, group = l->groups[group].next)
                if (l->heads[group] != gpu)
                    try_gpu(s, l->heads[group]);
        }
}

/* GPUs where a kind is the newest resident: first those whose resident needs much and yet
 * keeps its promise, then one that may or may not, and if there are none, the least needy. Where
 * there is doubt who needs less also misses less, so that one is always tried.
 */
static void try_list(struct seek *s, const struct position *b, long row)
{
    const struct assignment_lists *l = s->d->lists;
    const int *heads = l->heads + l->n_groups + row * NEED_STEPS;
    unsigned mask = l->masks[row], safe = mask & ((1u << b->kept) - 1);

    if (safe)
        try_gpu(s, heads[31 - __builtin_clz(safe)]);
    int gpu = mask >> b->kept & 1 ? heads[b->kept] : -1;
    for (int i = 0; i < LIST_TRIES && gpu >= 0; i++, gpu = s->d->gpus[gpu].next)
        try_gpu(s, gpu);
    if (s->d->problem->doubt || (!safe && !(mask >> b->kept & 1)))
        try_gpu(s, heads[__builtin_ctz(mask)]);
}

static void try_crowded(struct seek *s, int kind)
{
    const struct assignment *d = s->d;
    const struct position *b = d->tables->positions + (long)kind * d->tables->n_positions;
    int n = 0;

    for (; b->type >= 0 && n < CROWDED_MAX; b++) {
        if (b->beside < 0 || !problem_allows(&d->problem->jobs[s->job], b->type))
            continue;
        for (int level = 1; level < d->problem->theta - 1; level++) {
            long row = lists_row(d, level, b->type, b->beside);
            if (d->lists->masks[row]) {
                try_list(s, b, row);
                n++;
            }
        }
    }
}

/* Overlooking a position now and then makes the same jobs come out in other places. */
static bool skips(struct assignment *d)
{
    if (d->skip == 0)
        return false;
    d->chance ^= d->chance << 13;
    d->chance ^= d->chance >> 7;
    d->chance ^= d->chance << 17;
    return (uint32_t)(d->chance >> 32) < d->skip;
}

/* The cheapest GPU for one part of the job, if it adds less than best_w. */
static void seek_part(struct seek *s)
{
    const struct assignment *d = s->d;
    const struct problem_job *j = &d->problem->jobs[s->job];
    const struct position *positions = d->reduced ? d->reduced->positions : d->tables->positions;
    const struct position *b = positions + (long)j->kind * d->tables->n_positions;
    double miss = j->need - d->jobs[s->job].held.mean,
           short_w = j->need > 0 ? j->short_w / j->need : 0;

    s->gpu = -1;
    for (; b->type >= 0 && (double)b->least_w - s->base_w < s->best_w; b++) {
        if (b->row < 0 ? !lists_has_free(d, b->type) : !d->lists->masks[b->row] || j->is_exclusive)
            continue;
        double more_w = fmax(miss - (double)b->low, 0) * short_w;
        if ((double)b->least_w + more_w - s->base_w >= s->best_w || !problem_allows(j, b->type) ||
            skips(s->d))
            continue;
        if (b->row < 0)
            try_free(s, b->type);
        else
            try_list(s, b, b->row);
    }
    if (d->problem->theta > 2 && !j->is_exclusive)
        try_crowded(s, j->kind);
    for (int i = 0; i < j->n_present; i++)
        if (j->form == FORM_SPREAD ||                      // it pays for others
            !d->problem->gpus[j->present[i]].may_start)    // on no list, but it may stay
            try_gpu(s, j->present[i]);
    if (s->gpu < 0 && d->has_rules && d->jobs[s->job].n_gpus == 0)
        for (int g = 0; g < d->problem->n_gpus; g++)
            try_gpu(s, g);    // the few that the engine can give it may be far down the lists
}

/* ---- gangs ---- */

struct gang_choice {
    int type, limit, n;
    bool is_far;    // by choice: others on one node would have to be woken
    double w;
};

/* What a gang pays for waking these GPUs. */
static double gang_wake_w(const struct assignment *d, int job, const int *gpus, int n)
{
    double w = 0;

    for (int i = 0; i < n; i++)
        w += problem_come_w(d->problem, &d->problem->jobs[job], gpus[i]);
    return w;
}

/* Under each setting, where waking its GPUs costs 'wake_w'. */
static void try_gang_at(const struct assignment *d, int job, const struct gang_choice *at,
                        bool is_near, double wake_w, struct gang_choice *best)
{
    const struct problem_job *j = &d->problem->jobs[job];

    for (int limit = 0; limit < d->problem->types[at->type].n_limits; limit++) {
        struct yield y;
        if (!assignment_gang_yield(d, job, at->type, limit, at->n, is_near, &y))
            return;
        double idle_w = at->n * d->problem->types[at->type].idle_w;
        double w = y.cost_w + problem_short_w(d->problem, j, y.held[0]) + wake_w;
        if (d->reduced)
            w += at->n * d->reduced->type_w[at->type] +
                 d->reduced->watt_price[at->type] * (y.watts - idle_w);
        if (w < best->w && y.watts - idle_w <= d->room_w)
            *best = (struct gang_choice){ at->type, limit, at->n, at->is_far, w };
    }
}

static void try_gang(const struct assignment *d, int job, int type, int n, struct gang_choice *best)
{
    const struct problem_job *j = &d->problem->jobs[job];
    bool is_near = j->n_nodes < 2 && !d->has_rules && lists_free(d, type, n) >= 0;
    struct gang_choice at = { .type = type, .n = n };
    int gpus[GANG_MAX];
    double wake_w = 0;

    if (!is_near && ((j->n_nodes == 1 && !d->has_rules) || assignment_n_free(d, type) < n))
        return;
    if (d->has_fees || j->n_nodes > 1 || d->has_rules) {
        if (!assignment_free(d, job, type, n, gpus))
            return;
        wake_w = gang_wake_w(d, job, gpus, n);
        is_near = problem_stands(d->problem, gpus, n, 1);
    }
    try_gang_at(d, job, &at, is_near, wake_w, best);
    if (!is_near || !(wake_w > 0) || j->n_nodes != 0 || d->has_rules ||
        !lists_collect(d, type, n, 0, gpus))
        return;
    at.is_far = true;
    try_gang_at(d, job, &at, problem_stands(d->problem, gpus, n, 1), gang_wake_w(d, job, gpus, n),
                best);
}

static struct gang_choice seek_gang(const struct assignment *d, int job, double less_than_w)
{
    const struct problem_job *j = &d->problem->jobs[job];
    struct gang_choice best = { .w = less_than_w };

    for (int type = 0; type < d->problem->n_types; type++)
        for (int n = j->n_min > 2 ? j->n_min : 2; n <= j->n_max && problem_allows(j, type); n++)
            try_gang(d, job, type, n, &best);
    return best;
}

/* ---- a whole job ---- */

void assignment_extend(struct assignment *d, int job)
{
    struct seek s = { .d = d, .job = job };

    for (int i = d->jobs[job].n_gpus; i < d->problem->jobs[job].n_max; i++) {
        s.base_w = d->jobs[job].short_w;
        s.best_w = i == 0 ? d->problem->jobs[job].wait_w : 0;
        seek_part(&s);
        if (s.gpu < 0 || !assignment_add_part(d, job, s.gpu))
            break;
    }
    for (int i = 0; d->jobs[job].n_gpus > 1 && i < d->jobs[job].n_gpus; i++)
        assignment_relimit(d, assignment_gpus(d, job)[i]);    // now that the others help
}

static bool insert_spread(struct assignment *d, int job)
{
    double before_w = d->cost_w;

    assignment_extend(d, job);
    if (d->jobs[job].n_gpus == 0)
        return false;
    return d->cost_w < before_w || !assignment_take(d, job);
}

static bool insert_gang(struct assignment *d, int job)
{
    const struct problem_job *j = &d->problem->jobs[job];
    struct seek s = { .d = d, .job = job, .best_w = j->wait_w, .gpu = -1 };
    int gpus[GANG_MAX];

    if (j->n_min <= 1)
        seek_part(&s);
    if (j->n_max > 1) {
        struct gang_choice c = seek_gang(d, job, s.best_w);
        if (c.n > 0 &&
            (c.is_far ? lists_collect(d, c.type, c.n, 0, gpus)
                      : assignment_free(d, job, c.type, c.n, gpus)) &&
            assignment_put(d, job, gpus, c.n, d->is_keeping ? -1 : c.limit))
            return true;
    }
    return s.gpu >= 0 && assignment_add_part(d, job, s.gpu);
}

static bool insert_anywhere(struct assignment *d, int job)
{
    return d->problem->jobs[job].form == FORM_SPREAD ? insert_spread(d, job) : insert_gang(d, job);
}

/* A job with one GPU that runs now: its old place saves the move. */
static bool insert_single(struct assignment *d, int job)
{
    const struct problem_job *j = &d->problem->jobs[job];
    struct seek s = { .d = d, .job = job, .best_w = j->wait_w };

    seek_part(&s);
    if (j->n_present == 1 && !d->jobs[job].is_away) {
        s.best_w += j->move_w;
        try_gpu(&s, j->present[0]);
    }
    return s.gpu >= 0 && assignment_add_part(d, job, s.gpu);
}

bool assignment_insert(struct assignment *d, int job)
{
    const struct problem_job *j = &d->problem->jobs[job];

    if (!j->name || d->jobs[job].n_gpus > 0)
        return false;
    if (j->n_max == 1 && j->n_present <= 1)
        return insert_single(d, job);
    double before_w = d->cost_w;
    if (j->n_present == 0 || d->jobs[job].is_away ||
        !assignment_put(d, job, j->present, j->n_present, -1))
        return insert_anywhere(d, job);
    double home_w = d->cost_w;
    if (!assignment_take(d, job))
        return true;
    if (insert_anywhere(d, job) && d->cost_w <= home_w)
        return true;
    if (home_w >= before_w)
        return d->jobs[job].n_gpus > 0;
    if (d->jobs[job].n_gpus > 0 && !assignment_take(d, job))
        return true;
    return assignment_put(d, job, j->present, j->n_present, -1);
}

/* ---- all who wait ---- */

void assignment_insert_rest(struct assignment *d, const struct prices *u,
                            const struct reduced_costs *reduced, const int *class_of)
{
    struct ranked_index *left = heap_array((size_t)d->problem->n_jobs, sizeof *left);
    int n = 0;

    for (int j = 0; j < d->problem->n_jobs; j++)
        if (d->problem->jobs[j].name && d->jobs[j].n_gpus == 0 && (!class_of || class_of[j] < 0))
            left[n++] =
                (struct ranked_index){ u->job_w[j] + 1e3 * (d->problem->jobs[j].n_min - 1), j };
    qsort(left, (size_t)n, sizeof *left, ranked_most_first);    // the hardest
    d->reduced = reduced;
    d->job_price_w = reduced ? u->job_w : NULL;
    for (int i = 0; i < n; i++)
        assignment_insert(d, (int)left[i].which);
    d->reduced = NULL;
    d->job_price_w = NULL;
    free(left);
}
