/* From the program's optimum to whole placements. */
#include <math.h>

#include "base/arena.h"
#include "catalog/snapshot.h"
#include "estimate/estimate.h"
#include "optimize/policy/gavel_inner.h"
#include "optimize/policy/place.h"
#include "optimize/policy/solver.h"

/* Gavel's rounds; and the time within which a change has to make up for what its moves lose. Over
 * the reference traces an hour for that made twice as many moves for one percent less energy.
 */
#define LEASE_S 360.0

/* Jobs of one kind that are looked at for one whose promise a place would keep. */
#define CHOICE 8

/* GPUs of one kind that are looked at for room beside somebody. */
#define TRIES_PER_KIND 2

/* ---- where the program is right already ---- */

static int kind_at(const struct draft *d, int gpu, int i)
{
    return d->gavel->kind_of[d->board.gpus[gpu].jobs[i]];
}

/* The value of a GPU as it stands. */
static double value_at(const struct draft *d, int gpu)
{
    const struct board_gpu *bg = &d->board.gpus[gpu];
    int type = d->gavel->snapshot->gpus[gpu].type;

    if (bg->n_jobs == 0)
        return 0;
    return gavel_value_of(&d->gavel->program, type, kind_at(d, gpu, 0),
                          bg->n_jobs > 1 ? kind_at(d, gpu, 1) : -1);
}

/* Those that already do what the program wants. */
static void settle(struct draft *d)
{
    const struct gavel *g = d->gavel;

    for (int i = 0; i < g->snapshot->n_gpus; i++) {
        const struct board_gpu *bg = &d->board.gpus[i];
        if (g->is_out[i] || bg->n_jobs == 0)
            continue;
        int c = gavel_column_at(&g->program, g->snapshot->gpus[i].type, kind_at(d, i, 0),
                                bg->n_jobs > 1 ? kind_at(d, i, 1) : -1);
        if (c >= 0 && d->left[c] > 0) {
            d->left[c]--;
            d->is_settled[i] = true;
        }
    }
}

static double move_loss(const struct gavel *g)
{
    return g->options->move_s / LEASE_S;
}

/* Everybody there has had a lease; and by the program's prices, the GPU and its residents would do
 * more elsewhere, their moves paid for.
 */
static bool is_loose(const struct draft *d, int gpu, enum gavel_moves moves)
{
    const struct gavel *g = d->gavel;
    const struct board_gpu *bg = &d->board.gpus[gpu];
    double value = value_at(d, gpu);
    double gain = g->program.gpu_price[g->snapshot->gpus[gpu].type] - value;

    for (int i = 0; i < bg->n_jobs; i++) {
        if (g->snapshot->jobs[bg->jobs[i]].ran_s < LEASE_S)
            return false;
        gain += g->program.job_price[kind_at(d, gpu, i)];
    }
    return bg->n_jobs > 0 && (moves == GAVEL_ALL || gain > value * move_loss(g));
}

static void put_back(struct draft *d, int job)
{
    int k = d->gavel->kind_of[job];

    d->next[job] = d->first[k];
    d->first[k] = job;
}

/* Take up whoever should be elsewhere. Returns how many they are. */
static int loosen(struct draft *d, enum gavel_moves moves)
{
    const struct gavel *g = d->gavel;
    int n = 0;

    for (int i = 0; i < g->snapshot->n_gpus; i++) {
        if (g->is_out[i] || d->is_settled[i] || !is_loose(d, i, moves))
            continue;
        while (d->board.gpus[i].n_jobs > 0) {
            int job = d->board.gpus[i].jobs[0];
            board_take(&d->board, job);
            put_back(d, job);
            n++;
        }
    }
    return n;
}

/* A job of kind 'k' for a GPU of 'type' beside kind 'beside' (-1: alone): the first whose promise
 * would hold there, else the first; -1: there is none. It leaves the pool.
 */
static int pick(struct draft *d, int k, int type, int beside)
{
    const struct gavel *g = d->gavel;
    int neighbour = beside < 0 ? -1 : g->program.kinds[beside].workload;
    double low = (double)estimate_cell(g->est, g->program.kinds[k].workload, type, neighbour)->low;
    int *link = &d->first[k];

    for (int i = 0; i < CHOICE && *link >= 0; i++, link = &d->next[*link])
        if (g->snapshot->jobs[*link].need <= low)
            break;
    if (*link < 0 || g->snapshot->jobs[*link].need > low)
        link = &d->first[k];
    int job = *link;
    if (job >= 0)
        *link = d->next[job];
    return job;
}

static void put(struct draft *d, int job, int gpu)
{
    int *mine = ARENA_NEW(d->gavel->arena, int);

    *mine = gpu;
    board_put(&d->board, job, mine, 1);
}

/* Somebody to go beside those that are alone, where the program wants a pair. */
static void join(struct draft *d)
{
    const struct gavel *g = d->gavel;

    for (int i = 0; i < g->snapshot->n_gpus; i++) {
        int type = g->snapshot->gpus[i].type;
        if (g->is_out[i] || d->is_settled[i] || d->board.gpus[i].n_jobs != 1)
            continue;
        int a = kind_at(d, i, 0);
        for (int b = 0; b < g->program.n_kinds && !d->is_settled[i]; b++) {
            int c = gavel_column_at(&g->program, type, a, b);
            int job = c >= 0 && d->left[c] > 0 ? pick(d, b, type, a) : -1;
            if (job < 0)
                continue;
            put(d, job, i);
            d->left[c]--;
            d->is_settled[i] = true;
        }
    }
}

/* Where a running job was, if nobody is there now and it is of this type; -1: no. */
static int home_of(const struct draft *d, int job, int type)
{
    const struct snap_job *j = &d->gavel->snapshot->jobs[job];

    if (!j->is_running || d->board.gpus[j->gpus[0]].n_jobs > 0 ||
        d->gavel->snapshot->gpus[j->gpus[0]].type != type)
        return -1;
    return j->gpus[0];
}

/* A free GPU: rather one that is nobody's home. */
static int free_gpu(const struct draft *d, int type)
{
    int any = -1;

    for (int g = board_free(&d->board, type); g >= 0; g = d->board.gpus[g].next) {
        if (d->gavel->is_out[g])
            continue;
        if (d->gavel->snapshot->gpus[g].n_jobs == 0)
            return g;
        any = any < 0 ? g : any;
    }
    return any;
}

/* Put one GPU to what a column says. False when jobs or GPUs have run out. */
static bool open_column(struct draft *d, const struct gavel_column *c)
{
    int a = pick(d, c->a, c->type, c->b), gpu = -1;
    int b = c->b >= 0 && a >= 0 ? pick(d, c->b, c->type, c->a) : -1;

    if (a >= 0 && (b >= 0 || c->b < 0)) {
        gpu = home_of(d, a, c->type);
        if (gpu < 0 && b >= 0)
            gpu = home_of(d, b, c->type);
        if (gpu < 0)
            gpu = free_gpu(d, c->type);
    }
    if (gpu >= 0)
        put(d, a, gpu);
    else if (a >= 0)
        put_back(d, a);
    if (gpu >= 0 && b >= 0)
        put(d, b, gpu);
    else if (b >= 0)
        put_back(d, b);
    return gpu >= 0;
}

static void open_columns(struct draft *d)
{
    const struct gavel_program *p = &d->gavel->program;

    for (int i = 0; i < p->n_columns; i++)
        while (d->left[i] > 0 && open_column(d, &p->columns[i]))
            d->left[i]--;
}

/* ---- what is left over ---- */

struct spot {
    double score;    // what it adds, the worth of an empty GPU and of a move taken off
    int gpu;         // -1: none
};

static bool may_join(const struct draft *d, int job, int gpu)
{
    const struct gavel *g = d->gavel;
    int resident = d->board.gpus[gpu].jobs[0];

    return g->program.may_share && !g->snapshot->jobs[job].spec->is_exclusive &&
           !g->snapshot->jobs[resident].spec->is_exclusive &&
           board_fits(&d->board, gpu, job, g->options->unfit_max);
}

static void consider(const struct draft *d, int job, int gpu, struct spot *best)
{
    const struct gavel *g = d->gavel;
    const struct board_gpu *bg = &d->board.gpus[gpu];
    const struct snap_job *j = &g->snapshot->jobs[job];
    int type = g->snapshot->gpus[gpu].type, k = g->kind_of[job];
    bool moves = j->is_running && j->gpus[0] != gpu;

    if (g->is_out[gpu] || bg->n_jobs > 1 || (bg->n_jobs && !may_join(d, job, gpu)))
        return;
    double score = gavel_value_of(&g->program, type, k, bg->n_jobs ? kind_at(d, gpu, 0) : -1) -
                   value_at(d, gpu);
    if (bg->n_jobs && score <= 0)
        return;
    if (moves)
        score -= gavel_value(&g->program, k, type, -1) * move_loss(g);
    if (bg->n_jobs == 0)
        score -= g->program.gpu_price[type];
    if (best->gpu < 0 || score > best->score)
        *best = (struct spot){ .score = score, .gpu = gpu };
}

static int best_spot(const struct draft *d, int job)
{
    const struct gavel *g = d->gavel;
    const struct board *b = &d->board;
    const struct snap_job *j = &g->snapshot->jobs[job];
    struct spot best = { .gpu = -1 };

    if (j->is_running)
        consider(d, job, j->gpus[0], &best);
    for (int type = 0; type < b->n_types; type++) {
        if (!place_suits(b, job, type, g->options->alone_unfit_max))
            continue;
        int gpu = free_gpu(d, type);
        if (gpu >= 0)
            consider(d, job, gpu, &best);
        for (int w = 0; w < b->n_workloads && g->program.may_share; w++) {
            int at = board_half(b, type, w);
            for (int i = 0; at >= 0 && i < TRIES_PER_KIND; i++, at = b->gpus[at].next)
                consider(d, job, at, &best);
        }
    }
    return best.gpu;
}

/* Those that the rounding has forgotten: who ran, then who waits, each where it adds most. */
static void seat_rest(struct draft *d)
{
    const struct gavel *g = d->gavel;
    bool *is_hopeless = ARENA_ARRAY(g->arena, bool, (size_t)g->program.n_kinds);

    for (int j = 0; j < g->snapshot->n_jobs; j++) {
        int k = g->kind_of[j];
        if (d->board.jobs[j].n_gpus > 0 || k < 0 || is_hopeless[k])
            continue;
        int gpu = best_spot(d, j);
        if (gpu >= 0)
            put(d, j, gpu);
        else
            is_hopeless[k] = !g->snapshot->jobs[j].is_running;
    }
}

/* What came of it. */
static double worth(const struct draft *d)
{
    const struct gavel *g = d->gavel;
    double value = 0;

    for (int i = 0; i < g->snapshot->n_gpus; i++)
        if (!g->is_out[i])
            value += value_at(d, i);
    for (int j = 0; j < g->snapshot->n_running; j++) {
        const struct plan_job *pj = &d->board.jobs[j];
        if (g->kind_of[j] >= 0 && pj->n_gpus && pj->gpus[0] != g->snapshot->jobs[j].gpus[0])
            value -= move_loss(g) * gavel_value(&g->program, g->kind_of[j],
                                                g->snapshot->gpus[pj->gpus[0]].type, -1);
    }
    return value;
}

bool gavel_draft(const struct gavel *g, enum gavel_moves moves, struct draft *d)
{
    const struct snapshot *s = g->snapshot;
    const struct gavel_program *p = &g->program;

    *d = (struct draft){ .gavel = g };
    board_init(&d->board, g->arena, s, g->est);
    gavel_seat_gangs(g, &d->board);
    d->left = ARENA_ARRAY(g->arena, int, (size_t)p->n_columns);
    for (int i = 0; i < p->n_columns; i++)
        d->left[i] = g->targets[i];
    d->is_settled = ARENA_ARRAY(g->arena, bool, (size_t)s->n_gpus);
    d->first = ARENA_ARRAY(g->arena, int, (size_t)p->n_kinds);
    d->next = ARENA_ARRAY(g->arena, int, (size_t)s->n_jobs);
    for (int k = 0; k < p->n_kinds; k++)
        d->first[k] = -1;
    for (int j = s->n_jobs - 1; j >= s->n_running; j--)
        if (g->kind_of[j] >= 0)
            put_back(d, j);
    settle(d);
    if (moves != GAVEL_STAY && loosen(d, moves) == 0)
        return false;
    join(d);
    open_columns(d);
    seat_rest(d);
    d->value = worth(d);
    return true;
}
