#include "optimize/search/planner.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/grow.h"
#include "optimize/model/plan.h"
#include "optimize/search/desk_inner.h"
#include "optimize/prices/prices.h"
#include "optimize/search/search_inner.h"

/* Steps are saved up until there are so many for each GPU, and then taken at once: what is improved
 * after many events comes out better, with a third of the moves, than what is improved after each.
 * At 10,000 GPUs and 12,500 jobs, 500 events and 1,000 steps an event: 0.4 % above the bound and
 * 2.8 moves an event, against 0.8 % and 10.8.
 */
#define STEPS_SAVED 3

/* Room for so many jobs more is there from the beginning. */
#define JOBS_SPARE 1024

/* Prices no longer fit when this share of all watts is lost on top of what was when they came. */
#define LOSS_MOST 0.004

struct planner {
    struct problem problem;    // 'gpus', 'jobs' and names are ours
    int cap_jobs;
    struct problem view;    // for others, with present settings
    struct problem_job *view_jobs;
    int *present;    // (cap_present) beside the desk's seats: everybody's present place
    int cap_present;
    int *gone, n_gone, cap_gone;             // numbers to give again
    int *touched, n_touched, cap_touched;    // jobs that may have moved
    bool *is_touched;                        // (cap_jobs)
    struct desk *desk;
    struct walk *walk;
    uint64_t seed;
    struct arena arena;    // of the prices
    struct prices prices;
    bool has_prices;
    double *type_w, *job_w;    // (n_types), (cap_jobs)
    struct desk_guide *guide;
    double fair_loss_w;                // lost when the prices came
    bool *is_lost;                     // (n_gpus) closed because its node was lost
    bool *is_fresh;                    // (cap_jobs) among 'fresh'
    int *fresh, n_fresh, cap_fresh;    // jobs whose part of the bound is not known yet
    long credit;                       // steps that may be taken
    bool is_urgent;                    // somebody has found no place
};

static void *longer(void *a, size_t n, size_t size)
{
    a = realloc(a, (n ? n : 1) * size);
    assert(a);
    return a;
}

/* A problem has one present setting for each job: those that stand under several count as new. */
const struct problem *planner_problem(struct planner *pl)
{
    size_t n = (size_t)pl->problem.n_jobs;

    pl->view = pl->problem;
    pl->view.jobs = pl->view_jobs = longer(pl->view_jobs, n, sizeof *pl->view_jobs);
    memcpy(pl->view_jobs, pl->problem.jobs, n * sizeof *pl->view_jobs);
    for (int j = 0; j < pl->problem.n_jobs; j++) {
        struct problem_job *v = &pl->view_jobs[j];
        for (int i = 0; i < v->n_present; i++) {
            int limit = pl->desk->gpus[v->present[i]].limit;
            if (i == 0)
                v->present_limit = limit;
            else if (limit != v->present_limit)
                v->n_present = v->present_limit = 0;
        }
        v->is_fixed = v->is_fixed && v->n_present > 0;
    }
    return &pl->view;
}

const struct desk *planner_desk(const struct planner *pl)
{
    return pl->desk;
}

/* ---- where everybody stands ---- */

/* From now on a job is at home where it is. */
static void settle(struct planner *pl, int job)
{
    struct problem_job *p = &pl->problem.jobs[job];
    const struct desk_job *j = &pl->desk->jobs[job];
    int *home = pl->present + j->first;

    memcpy(home, pl->desk->seats + j->first, (size_t)j->n_gpus * sizeof *home);
    for (int i = 1; i < j->n_gpus; i++)    // ascending
        for (int k = i; k > 0 && home[k - 1] > home[k]; k--) {
            int swap = home[k];
            home[k] = home[k - 1];
            home[k - 1] = swap;
        }
    p->present = home;
    p->n_present = j->n_gpus;
    desk_refresh_fee(pl->desk, job);
}

static bool has_moved(const struct planner *pl, int job)
{
    return pl->problem.jobs[job].n_present > 0 && !desk_is_home(pl->desk, job);
}

/* Settle every job that was touched; how many of them ran and have moved? */
static int settle_touched(struct planner *pl)
{
    int n_moves = 0;

    for (int i = 0; i < pl->n_touched; i++) {
        int job = pl->touched[i];
        pl->is_touched[job] = false;
        if (!pl->problem.jobs[job].name)
            continue;
        n_moves += has_moved(pl, job);
        settle(pl, job);
    }
    pl->n_touched = 0;
    return n_moves;
}

static void touch(struct planner *pl, int job)
{
    if (pl->is_touched[job])
        return;
    pl->is_touched[job] = true;
    GROW(pl->touched, pl->n_touched, pl->cap_touched);
    pl->touched[pl->n_touched++] = job;
}

static void on_keep(void *planner, int job)
{
    touch(planner, job);
}

static void notice_gpus(struct planner *pl, int job)
{
    for (int i = 0; i < pl->desk->jobs[job].n_gpus; i++)
        walk_notice(pl->walk, desk_gpus(pl->desk, job)[i]);
}

/* ---- prices ---- */

/* About what certificate_shares would say of a job: the cheapest slot that there is for it. */
static double fair_w(const struct planner *pl, int job)
{
    const struct problem_job *j = &pl->problem.jobs[job];
    const struct berth *b = pl->desk->tables->berths + (long)j->kind * pl->desk->tables->n_berths;
    int size = j->n_min > 1 ? j->n_min : j->is_exclusive ? SLOT_ALONE : SLOT_SHARED;
    double best = j->wait_w;

    for (; b->type >= 0; b++) {
        double low = (double)b->low;
        if (!problem_allows(j, b->type) || (b->beside >= 0 && size != SLOT_SHARED))
            continue;
        if (size > 1)
            low *= pl->problem.gang_near[size];
        best = fmin(best, price_of(&pl->prices, j->kind, size, low) + problem_short_w(j, low));
    }
    return best;
}

static void copy_prices(struct planner *pl, const struct prices *u)
{
    struct arena *a = &pl->arena;

    pl->prices = *u;
    pl->prices.classes = ARENA_ARRAY(a, struct slot_class, (size_t)u->n_classes);
    for (int i = 0; i < u->n_classes; i++) {
        const struct slot_class *from = &u->classes[i];
        size_t size = (size_t)from->n_steps * sizeof *from->from;
        double *at = arena_alloc(a, size), *w = arena_alloc(a, size);
        memcpy(at, from->from, size);
        memcpy(w, from->price, size);
        pl->prices.classes[i] = *from;
        pl->prices.classes[i].from = at;
        pl->prices.classes[i].price = w;
    }
    pl->prices.first = ARENA_ARRAY(a, int, (size_t)pl->problem.n_kinds + 1);
    memcpy(pl->prices.first, u->first, ((size_t)pl->problem.n_kinds + 1) * sizeof *u->first);
    pl->prices.type_w = NULL;
}

static void walk_anew(struct planner *pl)
{
    walk_destroy(pl->walk);
    pl->walk = walk_create(pl->desk, pl->has_prices ? &pl->prices : NULL, pl->type_w, pl->job_w,
                           pl->seed++, 0);
    pl->walk->guide = pl->guide;
    pl->walk->on_keep = on_keep;
    pl->walk->on_keep_self = pl;
    walk_look(pl->walk);
}

void planner_adopt(struct planner *pl, const struct prices *u)
{
    struct arena scratch;

    arena_reset(&pl->arena);
    arena_init(&scratch);
    copy_prices(pl, u);
    pl->type_w = ARENA_ARRAY(&pl->arena, double, (size_t)pl->problem.n_types);
    certificate_shares(&scratch, &pl->problem, &pl->prices, 1, pl->type_w, pl->job_w);
    arena_release(&scratch);
    pl->has_prices = true;
    desk_guide_destroy(pl->guide);
    pl->guide =
        pl->desk->tables->pairs ? desk_guide_create(pl->desk, &pl->prices, pl->type_w) : NULL;
    walk_anew(pl);
    pl->fair_loss_w = pl->walk->loss_w;
}

bool planner_wants_prices(const struct planner *pl)
{
    double watts = 0;

    if (!pl->has_prices)
        return true;
    for (int g = 0; g < pl->problem.n_gpus; g++)
        watts += pl->desk->gpus[g].watts;
    return pl->walk->loss_w - pl->fair_loss_w > LOSS_MOST * watts;
}

/* By the guide, where there is one: what is cheapest now may stand in the way tomorrow. */
static void insert(struct planner *pl, int job)
{
    pl->desk->guide = pl->guide;
    pl->is_urgent |= !desk_insert(pl->desk, job);
    pl->desk->guide = NULL;
}

/* ---- coming and going ---- */

/* A number for a job that may take 'room' GPUs. */
static int number_for(struct planner *pl, int room)
{
    for (int i = pl->n_gone; i-- > 0 && i > pl->n_gone - 16;) {
        int job = pl->gone[i];
        if (pl->desk->jobs[job].room < room)
            continue;
        pl->gone[i] = pl->gone[--pl->n_gone];
        return job;
    }
    int cap = pl->cap_jobs;
    GROW(pl->problem.jobs, pl->problem.n_jobs, pl->cap_jobs);
    if (pl->cap_jobs > cap) {
        pl->job_w = longer(pl->job_w, (size_t)pl->cap_jobs, sizeof *pl->job_w);
        pl->is_touched = longer(pl->is_touched, (size_t)pl->cap_jobs, sizeof *pl->is_touched);
        pl->is_fresh = longer(pl->is_fresh, (size_t)pl->cap_jobs, sizeof *pl->is_fresh);
        pl->walk->job_w = pl->desk->dues_w = pl->job_w;
    }
    pl->is_touched[pl->problem.n_jobs] = pl->is_fresh[pl->problem.n_jobs] = false;
    desk_grow(pl->desk, pl->problem.n_jobs, room);
    return pl->problem.n_jobs++;
}

/* The desk's seats may have grown, and present places stand beside them. */
static void grow_present(struct planner *pl)
{
    if (pl->cap_present >= pl->desk->cap_seats)
        return;
    pl->cap_present = pl->desk->cap_seats;
    pl->present = longer(pl->present, (size_t)pl->cap_present, sizeof *pl->present);
    for (int j = 0; j < pl->problem.n_jobs; j++)
        pl->problem.jobs[j].present = pl->present + pl->desk->jobs[j].first;
}

static void note_fresh(struct planner *pl, int job)
{
    if (pl->is_fresh[job])
        return;
    pl->is_fresh[job] = true;
    GROW(pl->fresh, pl->n_fresh, pl->cap_fresh);
    pl->fresh[pl->n_fresh++] = job;
}

int planner_arrive(struct planner *pl, const struct problem_job *job)
{
    int number = number_for(pl, job->n_max);
    struct problem_job *mine = &pl->problem.jobs[number];

    *mine = *job;
    mine->name = strdup(job->name);
    assert(mine->name);
    mine->n_present = mine->present_limit = 0;
    mine->is_fixed = false;
    grow_present(pl);
    mine->present = pl->present + pl->desk->jobs[number].first;
    desk_admit(pl->desk, number);
    pl->job_w[number] = 0;
    note_fresh(pl, number);
    insert(pl, number);
    settle(pl, number);
    walk_admit(pl->walk, number);
    notice_gpus(pl, number);
    return number;
}

void planner_leave(struct planner *pl, int job)
{
    struct problem_job *j = &pl->problem.jobs[job];

    assert(j->name);
    walk_dismiss(pl->walk, job);
    notice_gpus(pl, job);
    j->is_fixed = false;
    if (pl->desk->jobs[job].n_gpus > 0)
        desk_force_away(pl->desk, job);
    j->n_present = 0;
    desk_dismiss(pl->desk, job);
    free((char *)(uintptr_t)j->name);
    j->name = NULL;
    GROW(pl->gone, pl->n_gone, pl->cap_gone);
    pl->gone[pl->n_gone++] = job;
}

/* ---- nodes ---- */

/* Hardest first, whoever has no place tries again. */
static void insert_all(struct planner *pl, int *jobs, int n)
{
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && pl->walk->hardness[jobs[k - 1]] < pl->walk->hardness[jobs[k]];
             k--) {
            int swap = jobs[k];
            jobs[k] = jobs[k - 1];
            jobs[k - 1] = swap;
        }
    for (int i = 0; i < n; i++) {
        insert(pl, jobs[i]);
        settle(pl, jobs[i]);
        walk_note(pl->walk, jobs[i]);
        notice_gpus(pl, jobs[i]);
    }
}

/* A job loses what it has; nobody asks for the price of that move. */
static void uproot(struct planner *pl, int job)
{
    struct problem_job *j = &pl->problem.jobs[job];

    if (j->is_fixed) {    // it cannot stay, so it may as well be planned like others
        j->is_fixed = false;
        walk_admit(pl->walk, job);
    }
    desk_force_away(pl->desk, job);
    j->n_present = 0;
    desk_refresh_fee(pl->desk, job);
}

void planner_lose_node(struct planner *pl, int node)
{
    struct problem *p = &pl->problem;
    int *jobs = NULL, n = 0, cap = 0;

    for (int g = 0; g < p->n_gpus; g++) {
        if (p->gpus[g].node != node)
            continue;
        while (pl->desk->gpus[g].n_jobs > 0) {
            int job = pl->desk->gpus[g].jobs[0];
            uproot(pl, job);
            GROW(jobs, n, cap);
            jobs[n++] = job;
        }
        pl->is_lost[g] |= p->gpus[g].may_start;
        lists_leave(pl->desk, g);
        p->gpus[g].may_start = false;
        lists_join(pl->desk, g);
    }
    insert_all(pl, jobs, n);
    free(jobs);
}

/* What was drained before stays so. */
void planner_gain_node(struct planner *pl, int node)
{
    for (int g = 0; g < pl->problem.n_gpus; g++)
        if (pl->problem.gpus[g].node == node && pl->is_lost[g]) {
            pl->is_lost[g] = false;
            lists_leave(pl->desk, g);
            pl->problem.gpus[g].may_start = true;
            lists_join(pl->desk, g);
            walk_notice(pl->walk, g);
        }
}

/* ---- estimates ---- */

void planner_reestimate(struct planner *pl, int kind)
{
    int *jobs = NULL, n = 0, cap = 0;

    tables_update((struct desk_tables *)(uintptr_t)pl->desk->tables, &pl->problem, kind);
    for (int j = 0; j < pl->problem.n_jobs; j++) {
        const struct problem_job *p = &pl->problem.jobs[j];
        if (!p->name || p->kind != kind || pl->desk->jobs[j].n_gpus == 0)
            continue;
        notice_gpus(pl, j);
        if (desk_reprice(pl->desk, j))
            continue;
        uproot(pl, j);
        GROW(jobs, n, cap);
        jobs[n++] = j;
    }
    if (pl->has_prices && pl->guide) {
        desk_guide_destroy(pl->guide);
        pl->guide = desk_guide_create(pl->desk, &pl->prices, pl->type_w);
        pl->walk->guide = pl->guide;
    }
    insert_all(pl, jobs, n);
    free(jobs);
}

/* ---- making it better ---- */

/* Those who came since know what they should cost. */
static void price_fresh(struct planner *pl)
{
    for (int i = 0; i < pl->n_fresh; i++) {
        int job = pl->fresh[i];
        pl->is_fresh[job] = false;
        if (pl->has_prices && pl->problem.jobs[job].name)
            pl->job_w[job] = fair_w(pl, job);
    }
    pl->n_fresh = 0;
}

int planner_improve(struct planner *pl, int nodes)
{
    long now = 0;

    if (pl->problem.n_gpus == 0 || pl->problem.n_jobs == 0)
        return 0;
    price_fresh(pl);
    pl->credit += nodes;
    if (pl->credit >= (long)STEPS_SAVED * pl->problem.n_gpus)
        now = pl->credit;
    else if (pl->is_urgent)
        now = nodes < pl->credit ? nodes : pl->credit;
    pl->credit -= now;
    pl->is_urgent = false;
    walk_slice(pl->walk, (int)now);
    return settle_touched(pl);
}

/* ---- a full plan ---- */

/* Pieces of a full plan: jobs that stand in each other's way, old place or new. */
struct pieces {
    int *up;       // (n_gpus) union-find
    int *order;    // jobs that would move, by piece
    int n;
};

static int root_of(struct pieces *s, int gpu)
{
    while (s->up[gpu] != gpu)
        gpu = s->up[gpu] = s->up[s->up[gpu]];
    return gpu;
}

static bool stands_so(const struct planner *pl, const struct plan *x, int job)
{
    const struct desk_job *j = &pl->desk->jobs[job];
    const struct plan_job *want = &x->jobs[job];

    if (j->n_gpus != want->n_gpus)
        return false;
    for (int i = 0; i < j->n_gpus; i++) {
        int k = 0;
        while (k < want->n_gpus && want->gpus[k] != pl->desk->seats[j->first + i])
            k++;
        if (k == want->n_gpus)
            return false;
    }
    return true;
}

static int gpu_of(const struct planner *pl, const struct plan *x, int job)
{
    return x->jobs[job].n_gpus ? x->jobs[job].gpus[0] : desk_gpus(pl->desk, job)[0];
}

static void join(struct pieces *s, int *first, int gpu)
{
    if (*first < 0)
        *first = gpu;
    s->up[root_of(s, gpu)] = root_of(s, *first);
}

static void find_pieces(const struct planner *pl, const struct plan *x, struct pieces *s)
{
    s->up = heap_array((size_t)pl->problem.n_gpus, sizeof *s->up);
    s->order = heap_array((size_t)pl->problem.n_jobs, sizeof *s->order);
    for (int g = 0; g < pl->problem.n_gpus; g++)
        s->up[g] = g;
    for (int j = 0; j < pl->problem.n_jobs && j < x->n_jobs; j++) {
        int first = -1;
        if (!pl->problem.jobs[j].name || pl->problem.jobs[j].is_fixed || stands_so(pl, x, j))
            continue;
        for (int i = 0; i < x->jobs[j].n_gpus; i++)
            join(s, &first, x->jobs[j].gpus[i]);
        for (int i = 0; i < pl->desk->jobs[j].n_gpus; i++)
            join(s, &first, desk_gpus(pl->desk, j)[i]);
        s->order[s->n++] = j;
    }
}

/* Do what the answer wants of these jobs, or where that cannot be, what is cheapest; false: they
 * cannot even be taken away.
 */
static bool do_piece(struct planner *pl, const struct plan *x, const int *jobs, int n)
{
    struct desk *d = pl->desk;

    for (int i = 0; i < n; i++)
        if (d->jobs[jobs[i]].n_gpus > 0 && !desk_take(d, jobs[i]))
            return false;
    for (int i = 0; i < n; i++) {
        const struct plan_job *want = &x->jobs[jobs[i]];
        if (want->n_gpus > 0)
            desk_put(d, jobs[i], want->gpus, want->n_gpus, -1);
    }
    for (int i = 0; i < n; i++) {
        if (d->jobs[jobs[i]].n_gpus == 0)
            insert(pl, jobs[i]);
        for (int k = 0; k < d->jobs[jobs[i]].n_gpus; k++)
            desk_relimit(d, desk_gpus(d, jobs[i])[k]);
    }
    return true;
}

static void try_piece(struct planner *pl, const struct plan *x, const int *jobs, int n)
{
    double before_w = pl->desk->cost_w;

    desk_mark(pl->desk);
    if (!do_piece(pl, x, jobs, n) || pl->desk->cost_w >= before_w) {
        desk_undo(pl->desk);
        return;
    }
    desk_keep(pl->desk);
    for (int i = 0; i < n; i++) {
        touch(pl, jobs[i]);
        walk_note(pl->walk, jobs[i]);
    }
}

struct piece_key {
    int piece, job;
};

static int by_piece(const void *a, const void *b)
{
    const struct piece_key *x = a, *y = b;

    return x->piece != y->piece ? x->piece - y->piece : x->job - y->job;
}

int planner_full(struct planner *pl, const struct plan *x)
{
    struct pieces s = { 0 };

    find_pieces(pl, x, &s);
    struct piece_key *keys = heap_array((size_t)s.n, sizeof *keys);
    for (int i = 0; i < s.n; i++)
        keys[i] = (struct piece_key){ root_of(&s, gpu_of(pl, x, s.order[i])), s.order[i] };
    qsort(keys, (size_t)s.n, sizeof *keys, by_piece);
    for (int i = 0; i < s.n; i++)
        s.order[i] = keys[i].job;
    for (int i = 0, end; i < s.n; i = end) {
        for (end = i; end < s.n && keys[end].piece == keys[i].piece; end++)
            ;
        try_piece(pl, x, s.order + i, end - i);
    }
    free(keys);
    free(s.up);
    free(s.order);
    walk_look(pl->walk);
    return settle_touched(pl);
}

void planner_plan(struct planner *pl, struct arena *a, struct plan *out)
{
    desk_plan(pl->desk, a, out);
}

/* ---- making ---- */

static void own_problem(struct planner *pl, const struct problem *p)
{
    pl->problem = *p;
    pl->problem.gpus = heap_array((size_t)p->n_gpus, sizeof *p->gpus);
    memcpy(pl->problem.gpus, p->gpus, (size_t)p->n_gpus * sizeof *p->gpus);
    pl->cap_jobs = p->n_jobs + p->n_jobs / 4 + JOBS_SPARE;
    pl->problem.jobs = heap_array((size_t)pl->cap_jobs, sizeof *p->jobs);
    for (int j = 0; j < p->n_jobs; j++) {
        pl->problem.jobs[j] = p->jobs[j];    // present places as they are: desk_create reads them
        if (p->jobs[j].name) {
            pl->problem.jobs[j].name = strdup(p->jobs[j].name);
            assert(pl->problem.jobs[j].name);
        } else {
            pl->problem.jobs[j].n_present = 0;
            pl->problem.jobs[j].present = NULL;
        }
    }
}

static void lay_answer(struct planner *pl, const struct plan *x)
{
    struct desk *d = pl->desk;

    for (int j = 0; j < pl->problem.n_jobs; j++)
        if (pl->problem.jobs[j].name && x->jobs[j].n_gpus > 0 && d->jobs[j].n_gpus == 0)
            desk_force(d, j, x->jobs[j].gpus, x->jobs[j].n_gpus, 0);
    for (int g = 0; g < pl->problem.n_gpus; g++)
        if (d->gpus[g].n_jobs > 0)
            desk_force_limit(d, g, x->limit[g]);
}

struct planner *planner_create(const struct problem *p, const struct plan *x, uint64_t seed)
{
    struct planner *pl = heap_array(1, sizeof *pl);

    arena_init(&pl->arena);
    own_problem(pl, p);
    pl->seed = seed;
    pl->desk = desk_create(&pl->problem);
    if (x)
        lay_answer(pl, x);
    else
        desk_lay_present(pl->desk);
    for (int j = 0; j < p->n_jobs && !x; j++)
        desk_insert(pl->desk, j);
    pl->job_w = heap_array((size_t)pl->cap_jobs, sizeof *pl->job_w);
    pl->is_touched = heap_array((size_t)pl->cap_jobs, sizeof *pl->is_touched);
    pl->is_fresh = heap_array((size_t)pl->cap_jobs, sizeof *pl->is_fresh);
    pl->is_lost = heap_array((size_t)p->n_gpus, sizeof *pl->is_lost);
    desk_reserve(pl->desk, pl->cap_jobs, pl->desk->n_seats + 2 * (pl->cap_jobs - p->n_jobs));
    pl->cap_present = pl->desk->cap_seats;
    pl->present = heap_array((size_t)pl->cap_present, sizeof *pl->present);
    for (int j = 0; j < p->n_jobs; j++)
        if (p->jobs[j].name)
            settle(pl, j);
    walk_anew(pl);
    return pl;
}

void planner_destroy(struct planner *pl)
{
    if (!pl)
        return;
    walk_destroy(pl->walk);
    desk_guide_destroy(pl->guide);
    desk_destroy(pl->desk);
    for (int j = 0; j < pl->problem.n_jobs; j++)
        free((char *)(uintptr_t)pl->problem.jobs[j].name);
    free(pl->problem.jobs);
    free(pl->problem.gpus);
    free(pl->view_jobs);
    free(pl->present);
    free(pl->gone);
    free(pl->touched);
    free(pl->is_touched);
    free(pl->fresh);
    free(pl->is_fresh);
    free(pl->is_lost);
    free(pl->job_w);
    arena_release(&pl->arena);
    free(pl);
}
