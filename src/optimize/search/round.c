#include "optimize/search/round.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "optimize/prices/classes.h"
#include "optimize/search/desk.h"
#include "optimize/prices/prices.h"

/* Slots that are looked at to find one on a type the job allows. */
#define LOOKS 32

/* A dish, and how many GPUs are still to do it. */
struct order {
    const struct dish *dish;
    int left;
    int next[DISH_MAX];    // the next order with this cluster on this type; -1: none
};

struct slot {
    double low;
    int gpu, order;
};

struct wanted {
    double level;
    int job;
};

struct rounding {
    struct arena *arena;
    const struct problem *p;
    const struct classes *c;
    const struct prices *u;
    struct desk *desk;
    const struct way **way;    // (n_jobs) how each is to be served; NULL: gone, or fixed
    int n_orders;
    struct order *orders;
    int *with;         // (n_types, n_clusters) the first order with it; -1: none
    int *gpu_order;    // (n_gpus) what it is to do; -1: nothing so far
    bool *is_taken;    // (n_gpus) by a gang or a loner
    int *n_here;       // (n_gpus) who stands there now, of those that take slots
    int (*here)[THETA_MAX];
    int n_left;
    int *left;    // (n_jobs) who found no place
};

/* ---- ways ---- */

/* The most demanding of a group take the first of its other ways. */
static void choose_ways(struct rounding *r)
{
    const struct demand *d = &r->c->demand;
    int *next = ARENA_ARRAY(r->arena, int, (size_t)d->n_groups);

    r->way = ARENA_ARRAY(r->arena, const struct way *, (size_t)r->p->n_jobs);
    for (int i = 0; i < d->n_groups; i++)
        for (int k = 0; k < d->groups[i].n; k++)
            r->way[d->jobs[d->groups[i].first + k]] = &d->groups[i].base;
    for (int i = 0; i < r->c->n_ways; i++) {
        const struct class_way *w = &r->c->ways[i];
        const struct group *g = &d->groups[w->group];
        for (int k = (int)(w->count + 0.5); k > 0 && next[w->group] < g->n; k--)
            r->way[d->jobs[g->first + next[w->group]++]] = &w->way;
    }
    for (int j = 0; j < r->p->n_jobs; j++)
        if (r->desk->jobs[j].n_gpus)
            r->way[j] = NULL;    // fixed, and there already
}

/* ---- those that share with nobody ---- */

static bool stays(struct rounding *r, int job, const struct dish *d, int n)
{
    const struct problem_job *j = &r->p->jobs[job];

    if (j->n_present != n || r->p->gpus[j->present[0]].type != d->type)
        return false;
    return desk_put(r->desk, job, j->present, j->n_present, d->limit);
}

static void take_gpus(struct rounding *r, const int *gpus, int n)
{
    for (int i = 0; i < n; i++)
        r->is_taken[gpus[i]] = true;
}

/* A GPU that may be had: of the type, free, with no more than so many there now. */
static bool is_fit(const struct rounding *r, int gpu, int type, int most_here, bool may_wake)
{
    const struct problem_gpu *g = &r->p->gpus[gpu];

    return g->type == type && g->may_start && !r->is_taken[gpu] && r->n_here[gpu] <= most_here &&
           (may_wake || !(g->wake_s > 0));
}

/* Such GPUs, of one node if asked. */
static bool find_gpus(const struct rounding *r, int type, int n_wanted, bool one_node,
                      int most_here, bool may_wake, int *out)
{
    int n = 0;

    for (int g = 0; g < r->p->n_gpus && n < n_wanted; g++) {
        const struct problem_gpu *gpu = &r->p->gpus[g];
        if (n && one_node && gpu->node != r->p->gpus[out[0]].node)
            n = 0;
        if (is_fit(r, g, type, most_here, may_wake))
            out[n++] = g;
    }
    return n == n_wanted;
}

/* The same on several nodes, as many on each: 'n_here' of every node that has them. */
static bool find_even(const struct rounding *r, int type, int n_here, int n_nodes, int most_here,
                      bool may_wake, int *out)
{
    int n = 0, from = 0;    // of this node since 'from'

    for (int g = 0; g < r->p->n_gpus && n < n_here * n_nodes; g++) {
        const struct problem_gpu *gpu = &r->p->gpus[g];
        if (n > from && gpu->node != r->p->gpus[out[from]].node)
            n = from;
        if (from > 0 && gpu->node == r->p->gpus[out[from - 1]].node)
            continue;
        if (is_fit(r, g, type, most_here, may_wake))
            out[n++] = g;
        from = n - from == n_here ? n : from;
    }
    return n == n_here * n_nodes;
}

static bool place_solo_so(struct rounding *r, int job, const struct dish *d, int n, int most_here,
                          bool is_far, bool may_wake)
{
    int gpus[GANG_MAX], n_nodes = r->p->jobs[job].n_nodes;
    bool found = n_nodes > 1
                     ? find_even(r, d->type, n / n_nodes, n_nodes, most_here, may_wake, gpus)
                     : find_gpus(r, d->type, n, !is_far, most_here, may_wake, gpus);

    if (!found || !desk_put(r->desk, job, gpus, n, d->limit))
        return false;
    take_gpus(r, gpus, n);
    return true;
}

/* On GPUs where nobody stands now before others, on one node where that may be had, and awake. */
static bool place_solo(struct rounding *r, int job, const struct dish *d, int n)
{
    int n_ways = r->p->jobs[job].n_nodes == 0 ? 2 : 1;    // near, and far

    for (int most_here = 0; most_here <= THETA_MAX; most_here += THETA_MAX)
        for (int far = 0; far < n_ways; far++)
            for (int wakes = 0; wakes < (r->desk->has_sleepers ? 2 : 1); wakes++)
                if (place_solo_so(r, job, d, n, most_here, far, wakes))
                    return true;
    return false;
}

static void place_solos(struct rounding *r)
{
    for (int is_new = 0; is_new < 2; is_new++)
        for (int j = 0; j < r->p->n_jobs; j++) {
            const struct way *w = r->way[j];
            if (!w || w->solo < 0 || r->desk->jobs[j].n_gpus)
                continue;
            const struct dish *d = &r->c->menu.solos[w->solo];
            int n = w->n_solo * d->n_gpus;
            if (!is_new && stays(r, j, d, n))
                take_gpus(r, r->p->jobs[j].present, n);
            else if (is_new && !place_solo(r, j, d, n))
                r->left[r->n_left++] = j;
        }
}

/* ---- orders ---- */

struct part {
    int dish;
    double rest;
};

static int by_rest(const void *x, const void *y)
{
    const struct part *a = x, *b = y;

    if (a->rest != b->rest)
        return a->rest > b->rest ? -1 : 1;
    return a->dish - b->dish;
}

/* Whole numbers of each dish: rounded down, then up where the fraction is largest and GPUs are
 * left.
 */
static void make_orders(struct rounding *r, int *n_free)
{
    const struct classes *c = r->c;
    struct part *parts = ARENA_ARRAY(r->arena, struct part, (size_t)c->n_dishes);

    r->orders = ARENA_ARRAY(r->arena, struct order, (size_t)c->n_dishes);
    r->n_orders = c->n_dishes;
    for (int i = 0; i < c->n_dishes; i++) {
        const struct class_dish *d = &c->dishes[i];
        int whole = (int)(d->count + 1e-6);
        r->orders[i] = (struct order){ .dish = d->dish, .left = whole };
        n_free[d->dish->type] -= whole;
        parts[i] = (struct part){ i, d->count - whole };
    }
    qsort(parts, (size_t)c->n_dishes, sizeof *parts, by_rest);
    for (int i = 0; i < c->n_dishes && parts[i].rest >= 0.5; i++) {
        struct order *o = &r->orders[parts[i].dish];
        if (n_free[o->dish->type] > 0) {
            n_free[o->dish->type]--;
            o->left++;
        }
    }
}

static void link_orders(struct rounding *r)
{
    int n_clusters = r->c->kinds.n;
    size_t n = (size_t)r->p->n_types * (size_t)n_clusters;

    r->with = ARENA_ARRAY(r->arena, int, n);
    memset(r->with, -1, n * sizeof *r->with);
    for (int i = 0; i < r->n_orders; i++)
        for (int s = 0; s < r->orders[i].dish->n_slots; s++) {
            int *head =
                &r->with[r->orders[i].dish->type * n_clusters + r->orders[i].dish->cluster[s]];
            bool is_twice = s && r->orders[i].dish->cluster[s] == r->orders[i].dish->cluster[s - 1];
            r->orders[i].next[s] = is_twice ? -1 : *head;
            if (!is_twice)
                *head = i;
        }
}

static int order_next(const struct rounding *r, int order, int cluster)
{
    const struct dish *d = r->orders[order].dish;

    for (int s = 0; s < d->n_slots; s++)
        if (d->cluster[s] == cluster)
            return r->orders[order].next[s];
    return -1;
}

static int cluster_of(const struct rounding *r, int job)
{
    return r->c->kinds.of[r->p->jobs[job].kind];
}

/* How many of those who stand on the GPU the dish has slots for. */
static int n_kept(const struct rounding *r, int gpu, const struct dish *d)
{
    bool is_used[DISH_MAX] = { false };
    int n = 0;

    for (int i = 0; i < r->n_here[gpu]; i++)
        for (int s = 0; s < d->n_slots; s++)
            if (!is_used[s] && d->cluster[s] == cluster_of(r, r->here[gpu][i])) {
                is_used[s] = true;
                n++;
                break;
            }
    return n;
}

/* The order that lets at least 'least' of a GPU's jobs stay and asks for fewest new ones. */
static int best_order(const struct rounding *r, int gpu, int least)
{
    int best = -1, best_new = INT32_MAX;

    for (int i = 0; i < r->n_here[gpu]; i++) {
        int cluster = cluster_of(r, r->here[gpu][i]);
        int o = r->with[r->p->gpus[gpu].type * r->c->kinds.n + cluster];
        for (; o >= 0; o = order_next(r, o, cluster)) {
            const struct dish *d = r->orders[o].dish;
            int kept = r->orders[o].left > 0 ? n_kept(r, gpu, d) : 0;
            if (kept >= least && d->n_slots - kept < best_new) {
                best = o;
                best_new = d->n_slots - kept;
            }
        }
    }
    return best;
}

static void give_order(struct rounding *r, int gpu, int order)
{
    r->gpu_order[gpu] = order;
    r->orders[order].left--;
}

static bool is_open(const struct rounding *r, int gpu)
{
    return !r->is_taken[gpu] && r->gpu_order[gpu] < 0;
}

/* First where everybody stays, then where somebody does, then anywhere. */
static void give_orders(struct rounding *r)
{
    int *next = ARENA_ARRAY(r->arena, int, (size_t)r->p->n_types);

    for (int least = DISH_MAX; least >= 1; least--)
        for (int g = 0; g < r->p->n_gpus; g++) {
            if (!is_open(r, g) || r->n_here[g] < least)
                continue;
            int o = best_order(r, g, least);
            if (o >= 0)
                give_order(r, g, o);
        }
    for (int most_here = 0; most_here <= THETA_MAX; most_here += THETA_MAX)
        for (int wakes = 0; wakes < (r->desk->has_sleepers ? 2 : 1); wakes++) {
            memset(next, 0, (size_t)r->p->n_types * sizeof *next);
            for (int g = 0; g < r->p->n_gpus; g++) {
                int type = r->p->gpus[g].type;
                if (r->gpu_order[g] >= 0 || !is_fit(r, g, type, most_here, wakes))
                    continue;
                int *o = &next[type];
                while (*o < r->n_orders &&
                       (r->orders[*o].left == 0 || r->orders[*o].dish->type != type))
                    ++*o;
                if (*o < r->n_orders)
                    give_order(r, g, *o);
            }
        }
}

/* ---- slots to jobs ---- */

static int by_low(const void *x, const void *y)
{
    const struct slot *a = x, *b = y;

    if (a->low != b->low)
        return a->low > b->low ? -1 : 1;
    return a->gpu - b->gpu;
}

static int by_level(const void *x, const void *y)
{
    const struct wanted *a = x, *b = y;

    if (a->level != b->level)
        return a->level > b->level ? -1 : 1;
    return a->job - b->job;
}

static bool seat(struct rounding *r, int job, const struct slot *s)
{
    int limit = r->orders[s->order].dish->limit;

    if (r->desk->jobs[job].n_gpus == 0)
        return desk_put(r->desk, job, &s->gpu, 1, limit);
    return desk_add_part(r->desk, job, s->gpu);
}

/* Staying is worth a move, and costs what the slot is worth beyond what the job needs. */
static bool pays_to_stay(const struct rounding *r, const struct wanted *w, const struct slot *s)
{
    const struct problem_job *j = &r->p->jobs[w->job];
    double scale = r->c->kinds.scale[j->kind];

    return s->low >= w->level &&
           price_of(r->u, j->kind, SLOT_SHARED, s->low * scale) <=
               price_of(r->u, j->kind, SLOT_SHARED, w->level * scale) + j->move_w;
}

static bool is_here(const struct rounding *r, int job, int gpu)
{
    for (int i = 0; i < r->n_here[gpu]; i++)
        if (r->here[gpu][i] == job)
            return true;
    return false;
}

struct hall {
    int n_slots, n_wanted;
    struct slot *slots;
    struct wanted *wanted;
};

static int by_gpu(const void *x, const void *y)
{
    const struct slot *a = x, *b = y;

    return a->gpu != b->gpu ? a->gpu - b->gpu : by_low(x, y);
}

/* The first slot on 'gpu' or a later one. */
static int first_on(const struct hall *h, int gpu)
{
    int from = 0, to = h->n_slots;

    while (from < to) {
        int mid = (from + to) / 2;
        if (h->slots[mid].gpu < gpu)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

#define TAKEN (-1.0)    // 'low' of a slot that somebody has

static bool seat_where_it_is(struct rounding *r, struct hall *h, const struct wanted *w)
{
    const struct problem_job *j = &r->p->jobs[w->job];

    for (int p = 0; p < j->n_present; p++) {
        int gpu = j->present[p];
        if (r->gpu_order[gpu] < 0 || !is_here(r, w->job, gpu))
            continue;
        for (int s = first_on(h, gpu); s < h->n_slots && h->slots[s].gpu == gpu; s++)
            if (h->slots[s].low >= 0 && pays_to_stay(r, w, &h->slots[s]) &&
                seat(r, w->job, &h->slots[s])) {
                h->slots[s].low = TAKEN;
                return true;
            }
    }
    return false;
}

/* Those who may stay where they are do. */
static void seat_those_here(struct rounding *r, struct hall *h)
{
    int n = 0, n_free = 0;

    qsort(h->slots, (size_t)h->n_slots, sizeof *h->slots, by_gpu);
    for (int i = 0; i < h->n_wanted; i++)
        if (!seat_where_it_is(r, h, &h->wanted[i]))
            h->wanted[n++] = h->wanted[i];
    h->n_wanted = n;
    for (int s = 0; s < h->n_slots; s++)
        if (h->slots[s].low >= 0)
            h->slots[n_free++] = h->slots[s];
    h->n_slots = n_free;
}

/* The slot that holds least of those that hold enough: slots come onto the pile as the level
 * falls, and the last that came lies on top.
 */
static void seat_others(struct rounding *r, struct hall *h)
{
    struct slot *pile = ARENA_ARRAY(r->arena, struct slot, (size_t)h->n_slots);
    int n = 0, next = 0;

    qsort(h->slots, (size_t)h->n_slots, sizeof *h->slots, by_low);
    qsort(h->wanted, (size_t)h->n_wanted, sizeof *h->wanted, by_level);
    for (int i = 0; i < h->n_wanted; i++) {
        const struct wanted *w = &h->wanted[i];
        bool is_seated = false;
        while (next < h->n_slots && h->slots[next].low >= w->level)
            pile[n++] = h->slots[next++];
        for (int k = n - 1; k >= 0 && k >= n - LOOKS && !is_seated; k--)
            if (problem_allows(&r->p->jobs[w->job], r->p->gpus[pile[k].gpu].type) &&
                seat(r, w->job, &pile[k])) {
                memmove(pile + k, pile + k + 1, (size_t)(n - k - 1) * sizeof *pile);
                n--;
                is_seated = true;
            }
        if (!is_seated)
            r->left[r->n_left++] = w->job;
    }
}

static double level_of(const struct rounding *r, int job, const struct way *w, int slot)
{
    double need = r->p->jobs[job].need / r->c->kinds.scale[r->p->jobs[job].kind];

    return w->n_slots == 1 && w->cost_w <= 0 ? need : w->level[slot];
}

static struct hall *make_halls(struct rounding *r)
{
    int n = r->c->kinds.n;
    struct hall *halls = ARENA_ARRAY(r->arena, struct hall, (size_t)n);

    for (int pass = 0; pass < 2; pass++) {
        for (int g = 0; g < r->p->n_gpus; g++) {
            const struct dish *d = r->gpu_order[g] >= 0 ? r->orders[r->gpu_order[g]].dish : NULL;
            for (int s = 0; d && s < d->n_slots; s++) {
                struct hall *h = &halls[d->cluster[s]];
                if (pass == 1)
                    h->slots[h->n_slots] = (struct slot){ d->low[s], g, r->gpu_order[g] };
                h->n_slots++;
            }
        }
        for (int j = 0; j < r->p->n_jobs; j++) {
            const struct way *w = r->way[j];
            for (int s = 0; w && s < w->n_slots; s++) {
                struct hall *h = &halls[cluster_of(r, j)];
                if (pass == 1)
                    h->wanted[h->n_wanted] = (struct wanted){ level_of(r, j, w, s), j };
                h->n_wanted++;
            }
        }
        for (int c = 0; c < n && pass == 0; c++) {
            struct hall *h = &halls[c];
            *h = (struct hall){ .slots = ARENA_ARRAY(r->arena, struct slot, (size_t)h->n_slots),
                                .wanted =
                                    ARENA_ARRAY(r->arena, struct wanted, (size_t)h->n_wanted) };
        }
    }
    return halls;
}

/* ---- the whole ---- */

/* Who stands where now, of those that are to take slots. */
static void look_around(struct rounding *r)
{
    const struct problem *p = r->p;

    r->gpu_order = ARENA_ARRAY(r->arena, int, (size_t)p->n_gpus);
    memset(r->gpu_order, -1, (size_t)p->n_gpus * sizeof *r->gpu_order);
    r->is_taken = ARENA_ARRAY(r->arena, bool, (size_t)p->n_gpus);
    r->n_here = ARENA_ARRAY(r->arena, int, (size_t)p->n_gpus);
    r->here = arena_array(r->arena, (size_t)p->n_gpus, sizeof *r->here);
    r->left = ARENA_ARRAY(r->arena, int, (size_t)p->n_jobs *WAY_SLOTS);
    for (int j = 0; j < p->n_jobs; j++)
        for (int i = 0; r->way[j] && r->way[j]->n_slots && i < p->jobs[j].n_present; i++) {
            int g = p->jobs[j].present[i];
            r->here[g][r->n_here[g]++] = j;
        }
    for (int g = 0; g < p->n_gpus; g++)
        r->is_taken[g] = r->desk->gpus[g].n_jobs > 0;    // fixed ones
}

static int *count_free(const struct rounding *r)
{
    int *n = ARENA_ARRAY(r->arena, int, (size_t)r->p->n_types);

    for (int g = 0; g < r->p->n_gpus; g++)
        n[r->p->gpus[g].type] += !r->is_taken[g] && (r->p->gpus[g].may_start || r->n_here[g]);
    return n;
}

void round_classes(struct arena *a, const struct classes *c, const struct prices *u, struct desk *d)
{
    struct rounding r = { .arena = a, .p = d->problem, .c = c, .u = u, .desk = d };

    choose_ways(&r);
    look_around(&r);
    place_solos(&r);
    make_orders(&r, count_free(&r));
    link_orders(&r);
    give_orders(&r);
    struct hall *halls = make_halls(&r);
    for (int i = 0; i < c->kinds.n; i++) {
        seat_those_here(&r, &halls[i]);
        seat_others(&r, &halls[i]);
    }
    for (int i = 0; i < r.n_left; i++)
        if (d->jobs[r.left[i]].n_gpus == 0)
            desk_insert(d, r.left[i]);
    for (int j = 0; j < r.p->n_jobs; j++)
        if (r.way[j] && d->jobs[j].short_w > 0 && r.p->jobs[j].form == FORM_SPREAD)
            desk_extend(d, j);
    for (int j = 0; j < r.p->n_jobs; j++)
        if (r.way[j] && d->jobs[j].n_gpus == 0)
            desk_insert(d, j);
}
