/* From the program's optimum to whole placements. */
#include <math.h>

#include "base/arena.h"
#include "optimize/policy/gavel_inner.h"

/* Gavel's rounds; and the time within which a change has to make up for what its moves lose. Over
 * the reference traces an hour for that made twice as many moves for one percent less energy.
 */
#define LEASE_S 360.0

/* A move loses this part of a lease: a minute. */
#define MOVE_LOSS (60 / LEASE_S)

/* Jobs of one class that are looked at for one whose promise a place would keep. */
#define CHOICE 8

/* GPUs of one kind that are looked at for room beside somebody. */
#define TRIES_PER_KIND 2

/* One way to come near the optimum. */
struct gavel_draft {
    const struct gavel_program *gavel;
    const struct problem *problem;    // the gavel's, as is the assignment
    struct assignment *assignment;
    int *left;           // (n_columns) GPUs that should still do this: what is whole of the optimum
    bool *is_settled;    // (n_gpus) does what the program wants
    int *first, *next;    // (n_classes), (n_jobs) jobs without a place, by class
};

/* ---- where the program is right already ---- */

static int class_at(const struct gavel_draft *d, int gpu, int i)
{
    return d->gavel->class_of[d->assignment->gpus[gpu].jobs[i]];
}

static int second_at(const struct gavel_draft *d, int gpu)
{
    return d->assignment->gpus[gpu].n_jobs > 1 ? class_at(d, gpu, 1) : -1;
}

/* The value of a GPU as it stands. */
static double value_at(const struct gavel_draft *d, int gpu)
{
    if (d->assignment->gpus[gpu].n_jobs == 0)
        return 0;
    return gavel_value(d->gavel, d->problem->gpus[gpu].type, class_at(d, gpu, 0),
                       second_at(d, gpu));
}

/* Those that already do what the program wants. */
static void settle(struct gavel_draft *d)
{
    for (int i = 0; i < d->problem->n_gpus; i++) {
        if (d->gavel->is_out[i] || d->assignment->gpus[i].n_jobs == 0)
            continue;
        int c = *gavel_column_at(d->gavel, d->problem->gpus[i].type, class_at(d, i, 0),
                                 second_at(d, i));
        if (c >= 0 && d->left[c] > 0) {
            d->left[c]--;
            d->is_settled[i] = true;
        }
    }
}

/* Everybody there has had a lease, and the program does not want them so. */
static bool is_loose(const struct gavel_draft *d, int gpu)
{
    const struct assignment_gpu *g = &d->assignment->gpus[gpu];

    for (int i = 0; i < g->n_jobs; i++) {
        const struct problem_job *j = &d->problem->jobs[g->jobs[i]];
        if (j->is_fixed || j->since_s < LEASE_S)
            return false;
    }
    return !d->gavel->is_out[gpu] && !d->is_settled[gpu];
}

static void put_back(struct gavel_draft *d, int job)
{
    int c = d->gavel->class_of[job];

    d->next[job] = d->first[c];
    d->first[c] = job;
}

/* Take up whoever should be elsewhere. */
static void loosen(struct gavel_draft *d)
{
    for (int i = 0; i < d->problem->n_gpus; i++)
        while (d->assignment->gpus[i].n_jobs > 0 && is_loose(d, i)) {
            int job = d->assignment->gpus[i].jobs[0];
            if (!assignment_take(d->assignment, job))
                break;
            put_back(d, job);
        }
}

/* A job of class 'c' for a GPU of 'type' beside class 'beside' (-1: alone): the first whose promise
 * would hold there, else the first; -1: there is none. It leaves the pool.
 */
static int pick(struct gavel_draft *d, int c, int type, int beside)
{
    const struct gavel_class *classes = d->gavel->classes;
    const struct problem *p = d->problem;
    int neighbour = beside < 0 ? -1 : classes[beside].kind, *link = &d->first[c];
    long cell = problem_cell(p, type, classes[c].kind, neighbour);
    double doubt = p->doubt ? (double)p->doubt[cell] : 0;
    double low = held_low((struct held){ (double)p->held[cell], (double)p->held[cell] * doubt });

    for (int i = 0; i < CHOICE && *link >= 0; i++, link = &d->next[*link])
        if (p->jobs[*link].need <= low)
            break;
    if (*link < 0 || p->jobs[*link].need > low)
        link = &d->first[c];
    int job = *link;
    if (job >= 0)
        *link = d->next[job];
    return job;
}

/* False: there was nobody, or it was refused, and is back in the pool. */
static bool put(struct gavel_draft *d, int job, int gpu)
{
    if (job < 0)
        return false;
    if (gpu >= 0 && assignment_put(d->assignment, job, &gpu, 1, -1))
        return true;
    put_back(d, job);
    return false;
}

/* ---- columns ---- */

/* A free GPU of a type that nobody has reserved; -1: there is none. */
static int free_gpu(const struct gavel_draft *d, int job, int type)
{
    int gpu = -1;

    bool is_found = d->gavel->backfill.has_head
                        ? backfill_spare(&d->gavel->backfill, job, type, 1, &gpu)
                        : assignment_free(d->assignment, job, type, 1, &gpu);
    return is_found && !d->gavel->is_out[gpu] ? gpu : -1;
}

/* Where a running job was, if nobody is there now and it is of this type; -1: no. */
static int home_of(const struct gavel_draft *d, int job, int type)
{
    const struct problem_job *j = job < 0 ? NULL : &d->problem->jobs[job];

    if (!j || j->n_present == 0 || d->assignment->gpus[j->present[0]].n_jobs > 0 ||
        d->problem->gpus[j->present[0]].type != type)
        return -1;
    return j->present[0];
}

/* Put one GPU to what a column says. False when jobs, GPUs or watts have run out. */
static bool open_column(struct gavel_draft *d, const struct gavel_column *c)
{
    int a = pick(d, c->a, c->type, c->b), gpu = -1;
    int b = c->b >= 0 && a >= 0 ? pick(d, c->b, c->type, c->a) : -1;

    if (a >= 0 && (b >= 0 || c->b < 0)) {
        gpu = home_of(d, a, c->type);
        if (gpu < 0)
            gpu = home_of(d, b, c->type);
        if (gpu < 0)
            gpu = free_gpu(d, a, c->type);
    }
    bool is_put = put(d, a, gpu);
    put(d, b, is_put ? gpu : -1);
    return is_put;
}

static void open_columns(struct gavel_draft *d)
{
    for (int i = 0; i < d->gavel->n_columns; i++)
        while (d->left[i] > 0 && open_column(d, &d->gavel->columns[i]))
            d->left[i]--;
}

/* ---- what is left over ---- */

/* What a job adds on a GPU, the worth of an empty one and of a move taken off; if it is more than
 * the best so far.
 */
static void consider(const struct gavel_draft *d, int job, int gpu, double *best, int *best_gpu)
{
    const struct gavel_program *p = d->gavel;
    const struct assignment_gpu *g = &d->assignment->gpus[gpu];
    const struct problem_job *j = &d->problem->jobs[job];
    int type = d->problem->gpus[gpu].type, c = d->gavel->class_of[job];

    if (d->gavel->is_out[gpu] || g->n_jobs > 1 || !assignment_may(d->assignment, job, &gpu, 1, -1))
        return;
    double score = gavel_value(p, type, c, g->n_jobs ? class_at(d, gpu, 0) : -1) - value_at(d, gpu);
    if (g->n_jobs && score <= 0)
        return;
    if (j->n_present > 0 && j->present[0] != gpu)
        score -= gavel_cell_at(p, type, c, -1)->done * MOVE_LOSS;
    if (g->n_jobs == 0)
        score -= p->gpu_price[type];
    if (*best_gpu >= 0 && score <= *best)
        return;
    *best = score;
    *best_gpu = gpu;
}

static int best_gpu_for(struct gavel_draft *d, int job)
{
    const struct problem *p = d->problem;
    const struct problem_job *j = &p->jobs[job];
    double most = 0;
    int best = -1;

    if (j->n_present > 0)
        consider(d, job, j->present[0], &most, &best);
    for (int type = 0; type < p->n_types; type++) {
        int gpu = problem_allows(j, type) ? free_gpu(d, job, type) : -1, some[TRIES_PER_KIND];
        if (gpu >= 0)
            consider(d, job, gpu, &most, &best);
        for (int k = 0; k < p->n_kinds && problem_allows(j, type) && !j->is_exclusive; k++) {
            int n = assignment_beside(d->assignment, type, k, TRIES_PER_KIND, some);
            for (int i = 0; i < n; i++)
                consider(d, job, some[i], &most, &best);
        }
    }
    return best;
}

/* What is not whole: who ran, then who waits, each where it adds most. */
static void place_rest(struct gavel_draft *d)
{
    const struct gavel_program *g = d->gavel;
    bool *is_hopeless = ARENA_ARRAY(g->work.arena, bool, (size_t)g->n_classes);

    for (int ran = 1; ran >= 0; ran--)
        for (int j = 0; j < d->problem->n_jobs; j++) {
            int c = g->class_of[j];
            if (d->assignment->jobs[j].n_gpus > 0 || c < 0 ||
                (d->problem->jobs[j].n_present > 0) != ran || is_hopeless[c])
                continue;
            int gpu = best_gpu_for(d, j);
            if (gpu < 0 || !assignment_put(d->assignment, j, &gpu, 1, -1))
                is_hopeless[c] = !ran;
        }
}

/* What came of it. */
static double worth(const struct gavel_draft *d)
{
    const struct gavel_program *g = d->gavel;
    double value = 0;

    for (int i = 0; i < d->problem->n_gpus; i++)
        if (!g->is_out[i])
            value += value_at(d, i);
    for (int j = 0; j < d->problem->n_jobs; j++) {
        const struct problem_job *pj = &d->problem->jobs[j];
        if (g->class_of[j] < 0 || pj->n_present == 0 || d->assignment->jobs[j].n_gpus == 0)
            continue;
        int gpu = assignment_gpus(d->assignment, j)[0];
        if (gpu != pj->present[0])
            value -=
                MOVE_LOSS * gavel_cell_at(g, d->problem->gpus[gpu].type, g->class_of[j], -1)->done;
    }
    return value;
}

static void draft_begin(struct gavel_draft *d, const struct gavel_program *g)
{
    const struct problem *p = g->work.problem;
    struct arena *a = g->work.arena;

    *d = (struct gavel_draft){ .gavel = g,
                               .problem = p,
                               .assignment = g->work.assignment,
                               .left = ARENA_ARRAY(a, int, (size_t)g->n_columns),
                               .is_settled = ARENA_ARRAY(a, bool, (size_t)p->n_gpus),
                               .first = ARENA_ARRAY(a, int, (size_t)g->n_classes),
                               .next = ARENA_ARRAY(a, int, (size_t)p->n_jobs) };
    for (int i = 0; i < g->n_columns; i++)
        d->left[i] = (int)(g->columns[i].n + 1e-6);
    for (int c = 0; c < g->n_classes; c++)
        d->first[c] = -1;
    for (int j = p->n_jobs - 1; j >= 0; j--)
        if (g->class_of[j] >= 0 && d->assignment->jobs[j].n_gpus == 0)
            put_back(d, j);
}

double gavel_draft(const struct gavel_program *g, bool may_move)
{
    struct gavel_draft d;

    draft_begin(&d, g);
    settle(&d);
    if (may_move)
        loosen(&d);
    open_columns(&d);
    place_rest(&d);
    return worth(&d);
}
