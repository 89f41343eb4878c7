/* From an answer to the columns it uses, and back. */
#include "optimize/exact/exact_inner.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/grow.h"
#include "optimize/model/plan.h"

/* ---- an answer's columns ---- */

struct guests {
    int n;
    int jobs[THETA_MAX];
};

static bool stays(const struct problem_job *j, const struct plan_job *to)
{
    return to->n_gpus > 0 && j->n_present == to->n_gpus &&
           memcmp(j->present, to->gpus, (size_t)to->n_gpus * sizeof(int)) == 0;
}

static int index_of(const int *values, int n, int value)
{
    for (int i = 0; i < n; i++)
        if (values[i] == value)
            return i;
    return -1;
}

static void use(struct pool *pool, const struct column *c)
{
    if (pool_find(pool, c) < 0)
        pool_add(pool, c, 0);
}

/* Who a job is in the column of one of its GPUs. */
static struct seat_item item_there(const struct exact *x, const struct plan *from, int job, int gpu,
                                   double low, double *cost_w)
{
    const struct problem_job *j = &x->p->jobs[job];
    bool is_stay = stays(j, &from->jobs[job]);

    if (exact_is_spread(j)) {
        int part = index_of(j->present, j->n_present, gpu);
        *cost_w += is_stay ? 0 : problem_wake_w(x->p, j, gpu);
        return (struct seat_item){ is_stay ? x->stay_first[job] + part : x->family_of[job], job,
                                   low };
    }
    *cost_w += is_stay ? 0 : problem_wake_w(x->p, j, gpu);
    if (!is_stay && x->p->gpus[gpu].may_start && x->family_of[job] >= 0 && low >= j->need)
        return (struct seat_item){ x->family_of[job], -1, low };
    *cost_w += problem_short_w(j, low) + (is_stay ? 0 : exact_move_w(j));
    return (struct seat_item){ -1, job, low };
}

static struct column seats_there(const struct exact *x, const struct plan *from, int gpu,
                                 const struct guests *guests)
{
    const struct problem *p = x->p;
    int type = p->gpus[gpu].type, kinds[THETA_MAX];
    struct column c = { .form = COLUMN_SEATS, .job = -1, .node = -1, .n = guests->n };
    struct yield y;

    for (int i = 0; i < guests->n; i++)
        kinds[i] = p->jobs[guests->jobs[i]].kind;
    c.limit = from->limit[gpu];
    bool may_run = problem_yield(p, type, c.limit, kinds, guests->n, &y);
    assert(may_run);
    c.cost_w = y.cost_w;
    c.over_w = (y.watts - p->types[type].idle_w) * p->watts_margin;
    bool is_own = !p->gpus[gpu].may_start;
    for (int i = 0; i < guests->n; i++) {
        int job = guests->jobs[i];
        c.items[i] = item_there(x, from, job, gpu, y.low[i], &c.cost_w);
        is_own |= stays(&p->jobs[job], &from->jobs[job]);
    }
    c.place = is_own ? x->place_of[gpu] : x->group_of[gpu];
    return c;
}

static bool is_near(const struct problem *p, const struct plan_job *to)
{
    for (int i = 1; i < to->n_gpus; i++)
        if (p->gpus[to->gpus[i]].node != p->gpus[to->gpus[0]].node)
            return false;
    return true;
}

static int node_index(const struct exact *x, int gpu)
{
    for (int i = 0; i < x->n_nodes; i++)
        if (x->nodes[i].node == x->p->gpus[gpu].node && x->nodes[i].type == x->p->gpus[gpu].type)
            return i;
    return -1;
}

static void share_add(struct column *c, int place)
{
    int i = 0;

    while (i < c->n_shares && c->shares[i].place < place)
        i++;
    if (i == c->n_shares || c->shares[i].place != place) {
        if (c->n_shares == SHARE_MAX) {
            c->n = 0;    // cannot be said
            return;
        }
        memmove(&c->shares[i + 1], &c->shares[i], (size_t)(c->n_shares - i) * sizeof c->shares[0]);
        c->shares[i].place = place;
        c->shares[i].n = 0;
        c->shares[i].node = -1;
        c->n_shares++;
    }
    c->shares[i].n++;
}

/* The same for a gang over several nodes: by nodes, in their order. */
static void room_add(struct column *c, const struct exact *x, int node)
{
    int i = 0;

    while (i < c->n_shares && c->shares[i].node < node)
        i++;
    if (i == c->n_shares || c->shares[i].node != node) {
        if (c->n_shares == SHARE_MAX) {
            c->n = 0;    // cannot be said
            return;
        }
        memmove(&c->shares[i + 1], &c->shares[i], (size_t)(c->n_shares - i) * sizeof c->shares[0]);
        c->shares[i].place = x->nodes[node].place;
        c->shares[i].n = 0;
        c->shares[i].node = node;
        c->n_shares++;
    }
    c->shares[i].n++;
}

static struct column gang_there(const struct exact *x, const struct plan *from, int job)
{
    const struct problem *p = x->p;
    const struct problem_job *j = &p->jobs[job];
    const struct plan_job *to = &from->jobs[job];
    int type = p->gpus[to->gpus[0]].type;
    struct column c = { .form = COLUMN_GANG, .job = job, .place = -1, .node = -1 };
    struct yield y;

    c.n = to->n_gpus;
    c.limit = from->limit[to->gpus[0]];
    c.is_stay = stays(j, to);
    bool may_run = problem_gang_yield(p, type, c.limit, j->kind, c.n, is_near(p, to), &y);
    assert(may_run);
    c.cost_w = y.cost_w + problem_short_w(j, y.low[0]) + (c.is_stay ? 0 : exact_move_w(j));
    c.over_w = (y.watts - c.n * p->types[type].idle_w) * p->watts_margin;
    for (int i = 0; i < to->n_gpus && !c.is_stay; i++)
        c.cost_w += problem_wake_w(p, j, to->gpus[i]);
    for (int i = 0; i < to->n_gpus; i++) {
        int held = index_of(j->present, j->n_present, to->gpus[i]);
        if (c.is_stay || !p->gpus[to->gpus[i]].may_start)
            c.held |= 1ULL << held;
        else if (j->n_nodes < 2)
            share_add(&c, x->group_of[to->gpus[i]]);
    }
    bool minds = j->n_nodes == 1 || p->gang_near[c.n] != p->gang_far[c.n];
    for (int i = 0; i < to->n_gpus && j->n_nodes > 1; i++)
        if (!c.is_stay && p->gpus[to->gpus[i]].may_start)
            room_add(&c, x, node_index(x, to->gpus[i]));
    for (int i = 0; i < to->n_gpus && minds && j->n_nodes < 2 && c.n_shares && is_near(p, to); i++)
        if (p->gpus[to->gpus[i]].may_start)
            c.node = node_index(x, to->gpus[i]);
    return c;
}

static int falling(const void *a, const void *b)
{
    double l = *(const double *)a, r = *(const double *)b;

    return (l < r) - (l > r);
}

/* What a spread job's parts hold: 'part_low' by GPU of the answer. */
static struct column pattern_there(const struct exact *x, const struct plan *from, int job,
                                   double *part_low)
{
    const struct problem_job *j = &x->p->jobs[job];
    int n = from->jobs[job].n_gpus;
    bool is_stay = stays(j, &from->jobs[job]);
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += part_low[i];
    if (!is_stay)
        qsort(part_low, (size_t)n, sizeof *part_low, falling);
    return (struct column){
        .form = COLUMN_PATTERN,
        .job = job,
        .place = -1,
        .node = -1,
        .n = n,
        .is_stay = is_stay,
        .lows = part_low,
        .cost_w = problem_short_w(j, sum) + (is_stay ? 0 : exact_move_w(j)),
    };
}

/* The rows of a job that is by itself in none of the seats. */
static void use_choice(const struct exact *x, const struct plan *from, int job, struct pool *pool)
{
    const struct problem_job *j = &x->p->jobs[job];
    struct column c = { .form = COLUMN_WAIT, .job = job, .place = -1, .node = -1 };

    c.cost_w = exact_move_w(j);
    if (from->jobs[job].n_gpus == 0)
        c.cost_w += j->wait_w;
    else
        c.form = COLUMN_TAKE;
    use(pool, &c);
}

static bool is_gang(const struct problem_job *j, const struct plan_job *to)
{
    return j->form == FORM_GANG && to->n_gpus > 1;
}

/* Seats of all GPUs; marks who is there by himself, and keeps what each part holds. */
static void use_seats(struct exact *x, const struct plan *from, struct pool *pool, bool *is_done,
                      double **part_low)
{
    const struct problem *p = x->p;
    struct guests *guests = ARENA_ARRAY(x->arena, struct guests, (size_t)p->n_gpus);

    for (int j = 0; j < p->n_jobs; j++)
        for (int i = 0; i < from->jobs[j].n_gpus && !is_gang(&p->jobs[j], &from->jobs[j]); i++) {
            struct guests *at = &guests[from->jobs[j].gpus[i]];
            assert(at->n < THETA_MAX);
            at->jobs[at->n++] = j;
        }
    for (int g = 0; g < p->n_gpus; g++) {
        if (guests[g].n == 0)
            continue;
        struct column c = seats_there(x, from, g, &guests[g]);
        use(pool, &c);
        for (int i = 0; i < c.n; i++) {
            int job = guests[g].jobs[i];
            is_done[job] |= c.items[i].family < 0;
            if (part_low[job])
                part_low[job][index_of(from->jobs[job].gpus, from->jobs[job].n_gpus, g)] =
                    c.items[i].low;
        }
    }
}

void exact_from_plan(struct exact *x, const struct plan *from, struct pool *pool)
{
    const struct problem *p = x->p;
    bool *is_done = ARENA_ARRAY(x->arena, bool, (size_t)p->n_jobs);
    double **part_low = ARENA_ARRAY(x->arena, double *, (size_t)p->n_jobs);

    for (int j = 0; j < p->n_jobs; j++)
        if (exact_is_spread(&p->jobs[j]))
            part_low[j] = ARENA_ARRAY(x->arena, double, (size_t)from->jobs[j].n_gpus);
    use_seats(x, from, pool, is_done, part_low);
    for (int j = 0; j < p->n_jobs; j++) {
        struct column c;
        if (!p->jobs[j].name || is_done[j])
            continue;
        if (is_gang(&p->jobs[j], &from->jobs[j])) {
            c = gang_there(x, from, j);
            use(pool, &c);
        } else if (part_low[j] && from->jobs[j].n_gpus) {
            c = pattern_there(x, from, j, part_low[j]);
            use(pool, &c);
        } else {
            use_choice(x, from, j, pool);
        }
    }
}

/* ---- the answer of columns ---- */

/* A slot of a family that somebody has to be put into. */
struct slot {
    double low;
    int gpu;
};

struct laying {
    struct exact *x;
    struct plan *out;
    bool *is_used;          // (n_gpus)
    double *rack_room_w;    // (n_racks) with margin; NULL: no matter
    struct slot **slots;    // (n_families)
    int *n_slots, *cap_slots;
    int **gpus;    // (n_jobs) on the way
    int *n_gpus, *cap_gpus;
    bool *is_done;    // (n_jobs) single jobs that sit by themselves, and gangs
};

static void lay_job(struct laying *l, int job, int gpu)
{
    GROW(l->gpus[job], l->n_gpus[job], l->cap_gpus[job]);
    l->gpus[job][l->n_gpus[job]++] = gpu;
    l->is_done[job] = true;
}

static bool lay_seats(struct laying *l, const struct column *c, int gpu)
{
    if (gpu < 0 || l->is_used[gpu])
        return false;
    l->is_used[gpu] = true;
    l->out->limit[gpu] = (unsigned char)c->limit;
    if (l->rack_room_w)
        l->rack_room_w[l->x->p->gpus[gpu].rack] -= c->over_w;
    for (int i = 0; i < c->n; i++) {
        int f = c->items[i].family;
        if (c->items[i].job >= 0) {
            lay_job(l, c->items[i].job, gpu);
            continue;
        }
        GROW(l->slots[f], l->n_slots[f], l->cap_slots[f]);
        l->slots[f][l->n_slots[f]++] = (struct slot){ c->items[i].low, gpu };
    }
    return true;
}

/* A free GPU of a place (and node, unless -1), where its rack has most room. */
static int lay_find(const struct laying *l, int place, int node)
{
    const struct exact *x = l->x;
    int best = -1;

    for (int g = 0; g < x->p->n_gpus; g++) {
        const struct problem_gpu *gpu = &x->p->gpus[g];
        if (x->group_of[g] != place || l->is_used[g] || (node >= 0 && gpu->node != node))
            continue;
        if (best < 0 ||
            (l->rack_room_w && l->rack_room_w[gpu->rack] > l->rack_room_w[x->p->gpus[best].rack]))
            best = g;
    }
    return best;
}

static bool lay_gang_gpu(struct laying *l, const struct column *c, int gpu)
{
    if (gpu < 0 || l->is_used[gpu])
        return false;
    l->is_used[gpu] = true;
    l->out->limit[gpu] = (unsigned char)c->limit;
    if (l->rack_room_w)
        l->rack_room_w[l->x->p->gpus[gpu].rack] -= c->over_w / c->n;
    lay_job(l, c->job, gpu);
    return true;
}

static bool lay_gang(struct laying *l, const struct column *c)
{
    const struct problem_job *j = &l->x->p->jobs[c->job];

    for (int i = 0; i < j->n_present; i++)
        if ((c->held >> i & 1) && !lay_gang_gpu(l, c, j->present[i]))
            return false;
    for (int i = 0; i < c->n_shares; i++) {
        int at = c->node >= 0 ? c->node : c->shares[i].node;
        int node = at >= 0 ? l->x->nodes[at].node : -1;
        for (int k = 0; k < c->shares[i].n; k++)
            if (!lay_gang_gpu(l, c, lay_find(l, c->shares[i].place, node)))
                return false;
    }
    return true;
}

/* Those bound to GPUs first, then those bound to nodes, then the others. */
static int turn_of(const struct exact *x, const struct column *c)
{
    if (c->form == COLUMN_SEATS)
        return x->places[c->place].gpu >= 0 ? 0 : 3;
    if (c->form == COLUMN_GANG)
        return c->is_stay ? 0 : c->node >= 0 || (c->n_shares && c->shares[0].node >= 0) ? 1 : 2;
    return -1;
}

static bool lay_columns(struct laying *l, const struct pool *pool, const double *value)
{
    for (int turn = 0; turn < 4; turn++)
        for (int i = 0; i < pool->n; i++) {
            const struct column *c = &pool->columns[i];
            if (value[i] < 0.5 || turn_of(l->x, c) != turn)
                continue;
            for (long k = lround(value[i]); k > 0; k--) {
                bool is_laid = c->form == COLUMN_GANG ? lay_gang(l, c)
                               : turn == 0            ? lay_seats(l, c, l->x->places[c->place].gpu)
                                                      : lay_seats(l, c, lay_find(l, c->place, -1));
                if (!is_laid)
                    return false;
            }
        }
    return true;
}

static int slot_order(const void *a, const void *b)
{
    const struct slot *l = a, *r = b;

    if (l->low != r->low)
        return l->low < r->low ? 1 : -1;
    return l->gpu - r->gpu;
}

struct taker {
    double need, wait_w;
    int job;
};

static int dearest_first(const void *a, const void *b)
{
    const struct taker *l = a, *r = b;

    if (l->wait_w != r->wait_w)
        return l->wait_w < r->wait_w ? 1 : -1;
    return l->job - r->job;
}

static int neediest_first(const void *a, const void *b)
{
    const struct taker *l = a, *r = b;

    if (l->need != r->need)
        return l->need < r->need ? 1 : -1;
    return l->job - r->job;
}

/* Can the n takers have a slot each? Slots fall. */
static bool may_take(struct taker *takers, int n, const struct slot *slots, int n_slots)
{
    if (n > n_slots)
        return false;
    qsort(takers, (size_t)n, sizeof *takers, neediest_first);
    for (int i = 0; i < n; i++)
        if (takers[i].need > slots[i].low)
            return false;
    return true;
}

/* Every slot gets a job; those for whom waiting is dearest come first. Who can be served
 * together is a matroid, so taking them greedily leaves the least waiting.
 */
static bool lay_family(struct laying *l, int family)
{
    const struct exact *x = l->x;
    int n = 0, n_taken = 0, n_slots = l->n_slots[family];
    struct slot *slots = l->slots[family];
    size_t room = (size_t)x->families[family].n_members + 1;
    struct taker *all = ARENA_ARRAY(x->arena, struct taker, room);
    struct taker *taken = ARENA_ARRAY(x->arena, struct taker, room);

    for (int j = 0; j < x->p->n_jobs; j++)
        if (x->family_of[j] == family && !l->is_done[j])
            all[n++] = (struct taker){ x->p->jobs[j].need, x->p->jobs[j].wait_w, j };
    qsort(all, (size_t)n, sizeof *all, dearest_first);
    if (n_slots)
        qsort(slots, (size_t)n_slots, sizeof *slots, slot_order);
    for (int i = 0; i < n && n_taken < n_slots; i++) {
        taken[n_taken++] = all[i];
        if (may_take(taken, n_taken, slots, n_slots))
            continue;
        for (int k = 0; k < n_taken; k++)
            if (taken[k].job == all[i].job)
                taken[k] = taken[--n_taken];
    }
    if (n_taken < n_slots || !may_take(taken, n_taken, slots, n_slots))
        return false;
    for (int i = 0; i < n_taken; i++)
        lay_job(l, taken[i].job, slots[i].gpu);
    return true;
}

static int int_order(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void lay_answer(struct laying *l, const struct plan *start)
{
    const struct problem *p = l->x->p;

    for (int j = 0; j < p->n_jobs; j++) {
        struct plan_job *to = &l->out->jobs[j];
        int n = l->n_gpus[j];
        int *gpus = ARENA_ARRAY(l->x->arena, int, (size_t)n);
        *to = (struct plan_job){ .n_gpus = n, .gpus = gpus, .reason = WAIT_NOT };
        if (n) {
            memcpy(gpus, l->gpus[j], (size_t)n * sizeof *gpus);
            qsort(gpus, (size_t)n, sizeof *gpus, int_order);
        } else if (p->jobs[j].name) {
            to->reason = start->jobs[j].n_gpus ? WAIT_CAPACITY : start->jobs[j].reason;
        }
    }
}

static void laying_init(struct laying *l, struct exact *x, struct plan *out)
{
    const struct problem *p = x->p;
    struct arena *a = x->arena;
    size_t n_families = (size_t)x->n_families, n_jobs = (size_t)p->n_jobs;

    *out = (struct plan){ .n_jobs = p->n_jobs, .n_gpus = p->n_gpus };
    out->jobs = ARENA_ARRAY(a, struct plan_job, n_jobs);
    out->limit = ARENA_ARRAY(a, unsigned char, (size_t)p->n_gpus);
    *l = (struct laying){ .x = x, .out = out };
    l->is_used = ARENA_ARRAY(a, bool, (size_t)p->n_gpus);
    l->slots = ARENA_ARRAY(a, struct slot *, n_families);
    l->n_slots = ARENA_ARRAY(a, int, n_families);
    l->cap_slots = ARENA_ARRAY(a, int, n_families);
    l->gpus = ARENA_ARRAY(a, int *, n_jobs);
    l->n_gpus = ARENA_ARRAY(a, int, n_jobs);
    l->cap_gpus = ARENA_ARRAY(a, int, n_jobs);
    l->is_done = ARENA_ARRAY(a, bool, n_jobs);
    if (!p->rack_cap_w)
        return;
    l->rack_room_w = ARENA_ARRAY(a, double, (size_t)p->n_racks);
    for (int r = 0; r < p->n_racks; r++)
        l->rack_room_w[r] = p->rack_cap_w[r] > 0 ? p->rack_cap_w[r] : HUGE_VAL;
    for (int g = 0; g < p->n_gpus; g++)
        l->rack_room_w[p->gpus[g].rack] -= p->types[p->gpus[g].type].idle_w * p->watts_margin;
}

static void laying_release(struct laying *l)
{
    for (int f = 0; f < l->x->n_families; f++)
        free(l->slots[f]);
    for (int j = 0; j < l->x->p->n_jobs; j++)
        free(l->gpus[j]);
}

bool exact_to_plan(struct exact *x, const struct pool *pool, const double *value,
                   const struct plan *start, struct plan *out)
{
    struct laying l;

    laying_init(&l, x, out);
    bool is_laid = lay_columns(&l, pool, value);
    for (int f = 0; f < x->n_families && is_laid; f++)
        if (x->families[f].job < 0)
            is_laid = lay_family(&l, f);
    if (is_laid)
        lay_answer(&l, start);
    laying_release(&l);
    return is_laid;
}
